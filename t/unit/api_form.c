/*
 * Forms with a sound: the message is the same however the body is cut, and
 * nothing of a form that is refused, or given up, stays in the memory for
 * media.  And what becomes of the records that the engine answers with.
 */

#include "t/unit/api_talk.h"

#include <sys/mman.h>

#define HOLDER  7
#define CHUNKS  4
#define TYPE    "multipart/form-data; boundary=x"
#define PART(n) "--x\r\nContent-Disposition: form-data; name=\"" n "\"\r\n\r\n"
#define FILE_   "--x\r\nContent-Disposition: form-data; name=\"file\"; "       \
                "filename=\"a.wav\"\r\n\r\n"
#define END     "\r\n--x--\r\n"

static llm_api_conf_t             with;
static const llm_api_endpoint_t  *endpoint;


static uint64_t
used(void)
{
    llm_media_stats_t  st;

    llm_zone_media_stats(with.zone, &st);

    return st.used;
}


static void
open_zone(void)
{
    void              *mem;
    llm_zone_t        *z;
    llm_api_route_t    route;
    llm_zone_model_t   m = { .parallel = 1 };

    mem = mmap(NULL, llm_zone_size(1, 1, 1 << 17), PROT_READ|PROT_WRITE,
               MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
    z = llm_zone_init(mem, 1, &m, 1, 1 << 17, 8);
    mem = mmap(NULL, llm_media_size(CHUNKS << 14), PROT_READ|PROT_WRITE,
               MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
    llm_zone_set_media(z, mem, CHUNKS << 14);

    with = conf;
    with.zone = z;
    with.holder = HOLDER;
    with.media.max_sound = 40000;
    with.media.max_seconds = 60;

    (void) llm_api_route(llm_str("audio/transcriptions"), llm_str("POST"),
                         &route);
    endpoint = route.endpoint;
}


/* the body in pieces of so many bytes; NULL and *err: it was refused */

static llm_api_t *
read_form(const char *body, size_t len, size_t piece, llm_buf_t *msg,
    llm_err_t *err)
{
    size_t           at;
    llm_api_t       *a;
    llm_api_form_t  *f;

    memset(err, 0, sizeof(*err));
    f = llm_api_form_create(endpoint, &with, llm_str(TYPE), len, err);

    if (f == NULL) {
        return NULL;
    }

    for (at = 0, a = NULL; at < len; at += piece) {
        if (llm_api_form_read(f, body + at, llm_min(piece, len - at), err)
            != LLM_OK)
        {
            break;
        }
    }

    if (at >= len) {
        a = llm_api_form_end(f, msg, err);
    }

    llm_api_form_free(f);

    return a;
}


static void
test_message(void)
{
    size_t                  piece;
    llm_err_t               err;
    llm_buf_t               msg;
    llm_api_t              *a;
    llm_request_t          *r;
    const llm_media_ref_t  *m;

    static const char  body[] =
        PART("language") "de\r\n" FILE_ "RIFFsound" "\r\n" PART("prompt")
        "Before\r\n" PART("temperature") "0.5\r\n" PART("seed") "3\r\n"
        PART("response_format") "verbose_json\r\n"
        PART("timestamp_granularities[]") "word" END;

    for (piece = 1; piece < sizeof(body) + 1; piece += 7) {
        llm_buf_init(&msg, 0);
        a = read_form(body, sizeof(body) - 1, piece, &msg, &err);

        if (a == NULL) {
            ok(0, "pieces of %zu: %s", piece, err.msg);
            continue;
        }

        r = (llm_request_t *) msg.data;
        m = llm_ref_data(r, r->media);

        ok(r->task == LLM_TASK_LISTEN && r->head.size == msg.len
           && r->language == 2 && r->words && !r->translate
           && r->heat == 0.5 && r->chance == 3 && r->max_seconds == 60
           && r->spoken.len == 6
           && memcmp(llm_ref_data(r, r->spoken), "Before", 6) == 0
           && r->media.len == 1 && m->block.len == 9
           && memcmp(llm_media_data(with.zone, &m->block), "RIFFsound", 9) == 0
           && used() > 0,
           "pieces of %zu: the message", piece);

        llm_media_release(with.zone, HOLDER, r);
        llm_api_free(a);
        llm_buf_free(&msg);
    }

    is_int((long) used(), 0, "nothing is left");
}


static void
test_refused(void)
{
    char       *large;
    size_t      i, len;
    llm_buf_t   msg;
    llm_err_t   err;

    static const struct {
        const char  *body;
        int          status;
        const char  *param;
    } cases[] = {
        { FILE_ "sound", 400, "" },
        { FILE_ "sound" "\r\n" PART("language") "xx" END, 400, "language" },
        { FILE_ "sound" "\r\n" PART("model") "nobody" END, 404, "model" },
        { PART("prompt") "a" END, 400, "file" },
        { FILE_ END, 400, "file" },
        { FILE_ "sound" "\r\n" FILE_ "sound" END, 400, "file" },
        { "", 400, "" }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        llm_buf_init(&msg, 0);
        ok(read_form(cases[i].body, strlen(cases[i].body), 5, &msg, &err)
           == NULL && err.status == cases[i].status
           && strcmp(err.param, cases[i].param) == 0 && used() == 0,
           "%d %s: %s", err.status, err.param, err.msg);
        llm_buf_free(&msg);
    }

    for (len = 39990; len < 40020; len += 15) {
        large = calloc(1, len + 1000);
        memcpy(large, FILE_, sizeof(FILE_) - 1);
        memcpy(large + sizeof(FILE_) - 1 + len, END, sizeof(END) - 1);
        llm_buf_init(&msg, 0);

        if (len < 40000) {
            llm_api_t *a = read_form(large, sizeof(FILE_) + sizeof(END) - 2
                                     + len, 4096, &msg, &err);

            ok(a != NULL, "%zu bytes: %s", len, err.msg);

            if (a) {
                is_int((long) used(), 3 << 14, "in three chunks");
                llm_media_release(with.zone, HOLDER,
                                  (llm_request_t *) msg.data);
                llm_api_free(a);
            }

        } else {
            ok(read_form(large, sizeof(FILE_) + sizeof(END) - 2 + len, 4096,
                         &msg, &err) == NULL
               && err.status == 413 && used() == 0, "%zu bytes: %s", len,
               err.msg);
        }

        llm_buf_free(&msg);
        free(large);
    }

    with.media.max_sound = 1 << 20;
    large = calloc(1, 100000);
    memcpy(large, FILE_, sizeof(FILE_) - 1);
    llm_buf_init(&msg, 0);
    ok(read_form(large, 100000, 4096, &msg, &err) == NULL
       && err.status == 413 && strstr(err.msg, "llm_media_memory"),
       "more than there is memory: %s", err.msg);
    free(large);
    llm_buf_free(&msg);
}


/* a form with these fields, whose answer is in `a` then */

static void
ask_form(const char *fields)
{
    char       body[512];
    llm_err_t  why;

    (void) snprintf(body, sizeof(body), FILE_ "sound\r\n%s--x--\r\n", fields);
    llm_buf_init(&msg, 0);
    llm_buf_init(&out, 0);
    a = read_form(body, strlen(body), sizeof(body), &msg, &why);
    ok(a != NULL, "a form: %s", why.msg);
    (void) tell(LLM_EV_START, 0, 0, "");
}


static void
end_form(void)
{
    llm_media_release(with.zone, HOLDER, (llm_request_t *) msg.data);
    hang_up();
}


/* a segment of this text (NULL: none), as the engine sends it: a record in two
   events */

static void
say(const char *text)
{
    size_t                    i, n;
    llm_buf_t                 rec;
    llm_transcript_t          t;
    llm_transcript_segment_t  s;

    struct {
        llm_event_t  ev;
        char         text[1024];
    } e;

    memset(&s, 0, sizeof(s));
    memset(&t, 0, sizeof(t));
    t.language = "german";
    t.duration = 2;
    t.segments = &s;
    t.n_segments = text != NULL;
    s.text = (llm_str_t) { text ? strlen(text) : 0, text };
    s.end = 2;
    llm_buf_init(&rec, 0);
    (void) llm_transcript_pack(&rec, &t, 0, 0);

    for (i = 0; i < rec.len; i += n) {
        n = llm_min(rec.len - i, (size_t) 64);
        memset(&e.ev, 0, sizeof(e.ev));
        memcpy(e.text, rec.data + i, n);
        e.ev.type = LLM_EV_TEXT;
        e.ev.size = sizeof(e);
        e.ev.u.text.text.off = offsetof(__typeof__(e), text);
        e.ev.u.text.text.len = (uint32_t) n;
        e.ev.u.text.call = (uint32_t) (rec.len - i - n);
        (void) llm_api_event(a, &e.ev, &out, &err);
    }

    llm_buf_free(&rec);
}


#define FRAME(text)                                                          \
    "data: {\"type\":\"transcript.text.delta\",\"delta\":\"" text "\"}\n\n"


static void
test_stream(void)
{
    ask_form(PART("stream") "true\r\n");
    out.len = 0;
    say("");
    is_int((long) out.len, 0, "a segment without text: no frame");
    say(" Guten Tag.");
    say(" Wie geht");
    say(NULL);
    say(" es?");
    is_str(out.data, FRAME("Guten Tag.") FRAME(" Wie geht") FRAME(" es?"),
           "a frame for each segment, once");
    out.len = 0;
    done();
    ok(out.len && strstr(out.data, "\"text\":\"Guten Tag. Wie geht es?\""),
       "and the last one with all of them");
    end_form();
}


static void
test_body(void)
{
    int     i;
    char   *whole;
    size_t  len;

    ask_form(PART("response_format") "verbose_json\r\n");

    for (i = 0; i < 300; i++) {
        say(" ja");
    }

    say(NULL);
    done();
    len = strlen(body(1 << 20));
    whole = strndup(out.data, len);
    end_form();

    ask_form(PART("response_format") "verbose_json\r\n");

    for (i = 0; i < 300; i++) {
        say(" ja");
    }

    say(NULL);
    done();
    ok(len > 30000 && strncmp(body(3), whole, len) == 0 && out.len == len,
       "%zu bytes, the same in pieces of 3", len);
    free(whole);
    end_form();

    ask_form(PART("response_format") "srt\r\n");
    say(NULL);
    done();
    out.len = 0;
    is_int(llm_api_body_next(a, 100, &out), LLM_OK, "subtitles of silence");
    is_int((long) out.len, 0, "are empty");
    end_form();
}


int
main(void)
{
    open_zone();
    test_message();
    test_refused();
    with.media.max_sound = 40000;
    test_stream();
    test_body();

    return done_testing();
}
