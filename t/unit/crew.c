/*
 * Transcriptions that share a model: each is the same as alone, however many
 * run, whenever they come, and when others fail or leave.
 */

#include "engine/api/transcript.h"
#include "engine/file/source.h"
#include "engine/media/wav.h"
#include "engine/speech/crew.h"

#include "t/unit/tap.h"

#define CLIPS  4

typedef struct {
    llm_speech_sound_t  sound;
    llm_speech_opts_t   opts;
    llm_speech_t       *s;
    uint32_t            place;
    int                 over;
    char               *want;
} clip_t;

static llm_whisper_t       *w;
static llm_vocab_t         *vocab;
static llm_speech_rules_t   rules;
static clip_t               clips[CLIPS];


static char *
transcript(llm_speech_t *s)
{
    llm_buf_t         out;
    llm_err_t         err;
    llm_transcript_t  t;

    llm_buf_init(&out, 0);

    if (llm_speech_transcript(s, &t, &err) == LLM_OK) {
        (void) llm_transcript_write(&out, &t, LLM_TRANSCRIPT_VERBOSE,
                                    LLM_TRANSCRIPT_SEGMENTS
                                    | LLM_TRANSCRIPT_WORDS);
    }

    return out.data;
}


static void
begin(clip_t *c)
{
    llm_err_t  err;

    c->s = llm_speech_create(&c->opts, c->sound.frames, &err);
    c->over = 0;
}


static void
end(clip_t *c)
{
    llm_speech_free(c->s);
    c->s = NULL;
}


static int
load(const char *dir)
{
    char                path[2048];
    FILE               *f;
    float              *x;
    size_t              i, n, len;
    uint32_t            rate;
    llm_err_t           err;
    llm_wav_t           wav;
    llm_gguf_t         *g;
    llm_whisper_opts_t  o;

    static char         file[400000];

    memset(&o, 0, sizeof(o));
    o.model.device = "cpu";
    o.model.threads = 2;
    o.model.max_seqs = CLIPS;
    o.model.batch = 64;
    o.model.max_out = 6;
    o.n_states = CLIPS;

    snprintf(path, sizeof(path), "%s/audio/w-multi-f16.bin", dir);
    w = llm_whisper_load(path, &o, &err);
    g = w ? llm_source_open_header(path, &err) : NULL;
    vocab = g ? llm_vocab_load(g, &err) : NULL;
    llm_gguf_close(g);

    if (vocab == NULL || llm_speech_rules_load(&rules, llm_whisper_info(w),
                                               vocab, &err) != LLM_OK)
    {
        printf("# %s\n", err.msg);
        return 0;
    }

    snprintf(path, sizeof(path), "%s/audio/speech.wav", dir);
    f = fopen(path, "rb");
    len = f ? fread(file, 1, sizeof(file), f) : 0;

    if (f) {
        fclose(f);
    }

    if (llm_wav_open(&wav, file, len, &err) != LLM_OK) {
        return 0;
    }

    /* all of it, its beginning, its end, and 40 seconds of it */
    n = 640000;
    x = calloc(n, sizeof(float));

    for (i = 0; i < n; i++) {
        llm_wav_mono(&wav, i % wav.frames, 1, x + i);
    }

    for (i = 0; i < CLIPS; i++) {
        rate = llm_whisper_info(w)->n_mels;
        (void) llm_speech_sound_init(&clips[i].sound, rate,
                                     x + (i == 2 ? 90000 : 0),
                                     i == 0 ? wav.frames
                                     : i == 3 ? n : 60000 + i * 7777, &err);
        clips[i].opts.rules = &rules;
        clips[i].opts.vocab = vocab;
        clips[i].opts.language = i == 1 ? 2 : -1;
        clips[i].opts.timestamps = i != 2;
        clips[i].opts.words = i == 1;
        clips[i].opts.condition = 1;
        clips[i].opts.temperature = i == 2 ? 0.5 : 0;
    }

    free(x);

    return 1;
}


/* runs clips first, ..., CLIPS - 1, of which each one comes `later` steps after
   the one before it; one of them leaves in the middle */

static void
run(llm_speech_crew_t *c, uint32_t later, uint32_t leaves, const char *what)
{
    int        rc;
    uint32_t   i, steps, same;
    llm_err_t  err;
    char      *got;

    same = 0;
    steps = 0;

    for (i = 0; i < CLIPS; i++) {
        begin(&clips[i]);
    }

    do {
        for (i = 0; i < CLIPS; i++) {
            if (steps == i * later
                && llm_speech_crew_add(c, clips[i].s, &clips[i].sound,
                                       &clips[i].place) != LLM_OK)
            {
                ok(0, "%s: there is a place", what);
            }
        }

        rc = llm_speech_crew_step(c, &err);

        if (++steps == 30 && leaves < CLIPS) {
            llm_speech_crew_remove(c, clips[leaves].place);
        }
    } while (rc == LLM_MORE || steps <= CLIPS * later);

    is_int(rc, LLM_OK, "%s: all have ended after %u steps", what, steps);

    for (i = 0; i < CLIPS; i++) {
        if (i == leaves) {
            same++;

        } else {
            got = transcript(clips[i].s);
            same += llm_speech_crew_state(c, clips[i].place, &err) == LLM_OK
                    && got && strcmp(got, clips[i].want) == 0;
            free(got);
            llm_speech_crew_remove(c, clips[i].place);
        }

        end(&clips[i]);
    }

    is_int(same, CLIPS, "%s: each is as alone", what);
}


/* times of words are made in pieces, as each step delays others' texts: some
   tokens, then a head at a time.  Who leaves between two of them leaves
   nothing */

static void
test_pieces(llm_speech_crew_t *c, clip_t *clip)
{
    char              *text;
    uint32_t           n, want, before, k;
    llm_err_t          err;
    llm_speech_ask_t   ask;

    for (k = 0; k < 2; k++) {
        n = 0;
        want = 0;
        ask.want = LLM_SPEECH_DONE;
        begin(clip);
        (void) llm_speech_crew_add(c, clip->s, &clip->sound, &clip->place);

        do {
            before = ask.want;
            llm_speech_next(clip->s, &ask);
            n += ask.want == LLM_SPEECH_ALIGN;

            if (ask.want == LLM_SPEECH_ALIGN && before != LLM_SPEECH_ALIGN) {
                want += (ask.n + 63) / 64 + llm_whisper_info(w)->n_align;
            }

        } while (llm_speech_crew_step(c, &err) == LLM_MORE
                 && (k == 0 || n < 3));

        if (k == 0) {
            is_int(n, want, "a step for each 64 tokens and each head");
            text = transcript(clip->s);
            is_str(text, clip->want, "the words are the same");
            free(text);
        }

        llm_speech_crew_remove(c, clip->place);
        end(clip);
    }
}


/* times of words come although somebody decodes in every step: when another
   clip ends, it begins anew */

static void
test_others(llm_speech_crew_t *c)
{
    int        over;
    char      *text;
    uint32_t   i, steps, again;
    llm_err_t  err;

    enum { MOST = 6000 };

    for (i = 0; i < CLIPS; i++) {
        begin(&clips[i]);
        (void) llm_speech_crew_add(c, clips[i].s, &clips[i].sound,
                                   &clips[i].place);
    }

    for (over = 0, steps = 0, again = 0; !over && steps < MOST; steps++) {
        (void) llm_speech_crew_step(c, &err);

        for (i = 0; i < CLIPS; i++) {
            if (llm_speech_crew_state(c, clips[i].place, &err) == LLM_MORE) {
                continue;
            }

            if (clips[i].opts.words) {
                over = 1;
                continue;
            }

            llm_speech_crew_remove(c, clips[i].place);
            end(&clips[i]);
            begin(&clips[i]);
            (void) llm_speech_crew_add(c, clips[i].s, &clips[i].sound,
                                       &clips[i].place);
            again++;
        }
    }

    ok(over, "words among others that never end: %u steps, %u others", steps,
       again);

    for (i = 0; i < CLIPS; i++) {
        if (clips[i].opts.words) {
            text = over ? transcript(clips[i].s) : NULL;
            ok(text && strcmp(text, clips[i].want) == 0, "as alone");
            free(text);
        }

        llm_speech_crew_remove(c, clips[i].place);
        end(&clips[i]);
    }
}


int
main(void)
{
    uint32_t            i, place;
    llm_err_t           err;
    const char         *dir;
    llm_speech_ask_t    ask;
    llm_speech_crew_t  *c;

    dir = tap_fixtures();

    if (dir == NULL) {
        skip("there are no shared fixtures");
        return done_testing();
    }

    if (!ok(load(dir), "a model and a sound")) {
        return done_testing();
    }

    for (i = 0; i < CLIPS; i++) {
        begin(&clips[i]);
        is_int(llm_speech_run(clips[i].s, w, &clips[i].sound, &err), LLM_OK,
               "clip %u alone: %llu tokens", i,
               (unsigned long long) llm_speech_tokens(clips[i].s));
        clips[i].want = transcript(clips[i].s);
        ok(strstr(clips[i].want, "\"seek\":") != NULL, "has a text");
        end(&clips[i]);
    }

    c = llm_speech_crew_create(w, CLIPS, &err);
    is_int(llm_speech_crew_step(c, &err), LLM_OK, "nothing to do");
    test_pieces(c, &clips[1]);

    run(c, 0, CLIPS, "all at once");
    run(c, 7, CLIPS, "one after another");
    run(c, 0, 3, "one leaves");
    run(c, 0, 0, "another one leaves");
    test_others(c);

    for (i = 0; i < CLIPS; i++) {
        begin(&clips[i]);
        (void) llm_speech_crew_add(c, clips[i].s, &clips[i].sound, &place);
    }

    is_int(llm_speech_crew_add(c, clips[0].s, &clips[0].sound, &place),
           LLM_FULL, "no place is left");
    is_int(llm_speech_crew_state(c, 0, &err), LLM_MORE, "one runs");

    do {
        (void) llm_speech_crew_step(c, &err);
        llm_speech_next(clips[CLIPS - 1].s, &ask);
    } while (ask.want == LLM_SPEECH_WINDOW);

    is_int(llm_speech_tokens(clips[0].s), 0,
           "those that came together are decoded together");

    for (i = 0; i < CLIPS; i++) {
        llm_speech_crew_remove(c, i);
        end(&clips[i]);
        llm_speech_sound_free(&clips[i].sound);
        free(clips[i].want);
    }

    llm_speech_crew_free(c);
    llm_speech_rules_free(&rules);
    llm_vocab_free(vocab);
    llm_whisper_free(w);

    return done_testing();
}
