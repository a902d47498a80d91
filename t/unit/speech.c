/*
 * Transcriptions by a model that says what the test has written down: windows,
 * prompts, second attempts, silence, segments, words.
 */

#include "engine/speech/align.h"
#include "engine/speech/speech.h"
#include "engine/speech/text.h"
#include "engine/speech/words.h"

#include "t/unit/tap.h"
#include "t/unit/vocab_build.h"

#include <math.h>

#define EOT        BPE_SIZE
#define SOT        (EOT + 1)
#define LANGUAGE   (EOT + 2)            /* English, Chinese, German */
#define TRANSLATE  (EOT + 5)
#define TRANSCRIBE (EOT + 6)
#define PREV       (EOT + 8)
#define NO_SPEECH  (EOT + 9)
#define NO_TIMES   (EOT + 10)
#define TIMES      (EOT + 11)
#define T(s)       (TIMES + (int32_t) ((s) * 50 + 0.5))
#define VOCAB      (TIMES + 1501)
#define CTX        64

/* what the model says in a window: a text of ASCII, in which \1 is followed by
   a time in seconds, two digits, and \2 is German's token */
typedef struct {
    size_t       frame;
    const char  *text;
    float        sure;                  /* logit of a token; the others' is 0 */
    float        silent;                /* logit of silence */
    const char  *again;                 /* at a higher temperature */
} said_t;

typedef struct {
    const said_t        *said;
    int                  language;
    size_t               windows[16];   /* frames that were asked for */
    size_t               n_windows;
    char                 prompts[16][256];
    size_t               n_prompts;
    size_t               languages;
    size_t               aligned;       /* tokens of the first ALIGN */
    size_t               steps;
    uint32_t             at;            /* tokens of the text so far */
    size_t               attempts;      /* in this window */
    int                  head;          /* the first tokens of an attempt were
                                           right */
} model_t;

static llm_vocab_t         *vocab;
static llm_speech_rules_t   rules;
static llm_speech_opts_t    plain;


static void
info_of(llm_whisper_info_t *info)
{
    memset(info, 0, sizeof(*info));
    info->n_mels = 80;
    info->n_frames = 3000;
    info->n_audio_ctx = 1500;
    info->n_text_ctx = CTX;
    info->n_vocab = VOCAB;
    info->n_align = 2;
    info->multilingual = 1;
    info->eot = EOT;
    info->sot = SOT;
    info->language = LANGUAGE;
    info->n_languages = 3;
    info->translate = TRANSLATE;
    info->transcribe = TRANSCRIBE;
    info->sot_lm = TRANSCRIBE + 1;
    info->sot_prev = PREV;
    info->no_speech = NO_SPEECH;
    info->no_timestamps = NO_TIMES;
    info->timestamp = TIMES;
}


/* token number i of a text */

static int32_t
token(const char *text, uint32_t i)
{
    int  v;

    for ( /* void */ ; *text; text++, i--) {
        if (*text == '\1') {
            v = (text[1] - '0') * 10 + text[2] - '0';

            if (i == 0) {
                return T(v);
            }

            text += 2;

        } else if (i == 0) {
            return *text == '\2' ? LANGUAGE + 2 : (unsigned char) *text;
        }
    }

    return EOT;
}


static const said_t *
said_at(const model_t *m)
{
    size_t         frame;
    const said_t  *s;

    frame = m->windows[m->n_windows - 1];

    for (s = m->said; s->text; s++) {
        if (s->frame == frame) {
            return s;
        }
    }

    return s;
}


/* remembers the prompt of an attempt, and checks what follows it */

static void
begin(model_t *m, const llm_speech_opts_t *o, const llm_speech_ask_t *ask)
{
    char      *p;
    uint32_t   i;

    p = m->prompts[m->n_prompts++ % 16];
    m->at = 0;
    m->attempts++;

    for (i = 0; i < ask->n && ask->tokens[i] != SOT; i++) {
        if (ask->tokens[i] < 256) {
            *p++ = (char) ask->tokens[i];
        } else {
            *p++ = ask->tokens[i] == PREV ? '<' : '|';
        }
    }

    *p = '\0';

    m->head = m->head && ask->n - i == (o->timestamps ? 3 : 4)
              && ask->n_out == ask->n - i
              && ask->tokens[i + 1] == LANGUAGE + m->language
              && ask->tokens[i + 2] == (o->translate ? TRANSLATE : TRANSCRIBE)
              && (o->timestamps || ask->tokens[i + 3] == NO_TIMES)
              && (i == 0 || ask->tokens[0] == PREV);
}


static void
say(model_t *m, const llm_speech_opts_t *o, const llm_speech_ask_t *ask,
    float *first, float *last)
{
    const char    *text;
    const said_t  *s;

    memset(first, 0, VOCAB * sizeof(float));
    memset(last, 0, VOCAB * sizeof(float));

    if (ask->want == LLM_SPEECH_LANGUAGE) {
        m->languages++;
        first[LANGUAGE + m->language] = 9;
        return;
    }

    if (ask->pos == 0) {
        begin(m, o, ask);
    }

    s = said_at(m);

    if (s->text == NULL) {
        last[EOT] = 30;
        return;
    }

    text = (m->attempts > 1 && s->again) ? s->again : s->text;
    first[NO_SPEECH] = s->silent;
    last[token(text, m->at)] = m->attempts > 1 ? 40 : s->sure;

    /* others are almost as likely */
    if (m->attempts == 1 && s->sure < 10) {
        last['W'] = s->sure - 0.1f;
        last['X'] = s->sure - 0.1f;
        last['Y'] = s->sure - 0.1f;
    }

    m->at++;
    m->steps++;
}


/* the token number i of n is looked at from frame 10 * i on, by both heads */

static void
look(const llm_speech_ask_t *ask, float *w)
{
    uint32_t  h, i, k;

    for (h = 0; h < 2; h++) {
        for (i = 0; i < ask->n; i++) {
            for (k = 0; k < 1500; k++) {
                *w++ = (i >= 3 && k / 10 == i - 3) ? 0.1f : 1e-6f;
            }
        }
    }
}


static llm_speech_t *
transcribe(model_t *m, const llm_speech_opts_t *o, size_t frames)
{
    int                rc;
    float             *w, first[VOCAB], last[VOCAB];
    llm_err_t          err;
    llm_speech_t      *s;
    llm_speech_ask_t   ask, same;

    m->head = 1;
    s = llm_speech_create(o, frames, &err);

    if (s == NULL) {
        printf("# %s\n", err.msg);
        exit(1);
    }

    for (rc = LLM_OK; rc == LLM_OK; /* void */ ) {
        llm_speech_next(s, &same);
        llm_speech_next(s, &ask);
        m->head = m->head && memcmp(&ask, &same, sizeof(ask)) == 0
                  && ask.pos + ask.n <= CTX;

        switch (ask.want) {

        case LLM_SPEECH_WINDOW:
            m->windows[m->n_windows++ % 16] = ask.frame;
            m->attempts = 0;
            rc = llm_speech_encoded(s, &err);
            break;

        case LLM_SPEECH_LANGUAGE:
        case LLM_SPEECH_STEP:
            say(m, o, &ask, first, last);
            rc = llm_speech_logits(s, ask.n_out > 1 || ask.pos == 0 ? first
                                                                    : last,
                                   last, &err);
            break;

        case LLM_SPEECH_ALIGN:
            m->aligned = m->aligned ? m->aligned : ask.n;
            w = malloc(2 * (size_t) ask.n * 1500 * sizeof(float));
            look(&ask, w);
            rc = llm_speech_aligned(s, w, &err);

            if (rc == LLM_MORE) {
                rc = llm_speech_aligned(s, w + (size_t) ask.n * 1500, &err);
            }

            free(w);
            break;

        default:
            return s;
        }

        if (m->n_windows > 15) {
            break;
        }
    }

    return s;
}


static void
is_text(llm_speech_t *s, const char *want, const char *what)
{
    char              got[2048];
    size_t            n;
    uint32_t          i, k;
    llm_err_t         err;
    llm_transcript_t  t;

    const llm_transcript_segment_t  *seg;

    if (llm_speech_transcript(s, &t, &err) != LLM_OK) {
        ok(0, "%s", what);
        return;
    }

    n = 0;
    got[0] = '\0';

    for (i = 0; i < t.n_segments; i++) {
        seg = &t.segments[i];
        n += (size_t) snprintf(got + n, sizeof(got) - n, "[%.2f%.*s %.2f]",
                               seg->start, (int) seg->text.len, seg->text.data,
                               seg->end);

        for (k = 0; k < seg->n_words; k++) {
            n += (size_t) snprintf(got + n, sizeof(got) - n, "(%.2f%.*s %.2f)",
                                   seg->words[k].start,
                                   (int) seg->words[k].text.len,
                                   seg->words[k].text.data,
                                   seg->words[k].end);
        }
    }

    is_str(got, want, "%s", what);
}


static void
test_windows(void)
{
    model_t       m;
    llm_speech_t *s;

    /* the second window begins where the last whole segment ended, and sees
       the text before it; the third one has a single time at its end */
    static const said_t  said[] = {
        { 0, "\1" "00 a b\1" "12\1" "12 c\1" "20\1" "20 cut", 30, 0, NULL },
        { 2000, "\1" "01 d\1" "25", 30, 0, NULL },
        { 5000, "\1" "00 e", 30, 0, NULL },
        { 0, NULL, 0, 0, NULL }
    };

    memset(&m, 0, sizeof(m));
    m.said = said;
    m.language = 2;
    s = transcribe(&m, &plain, 6000);

    is_text(s, "[0.00 a b 12.00][12.00 c 20.00][20.00 d 45.00][50.00 e 60.00]",
            "segments");
    ok(m.n_windows == 3 && m.windows[1] == 2000 && m.windows[2] == 5000,
       "windows begin where segments end");
    ok(m.languages == 1 && llm_speech_spoken(s) == 2,
       "the language is found once");
    ok(m.head, "each attempt begins with what is to be done");
    is_str(m.prompts[0], "", "nothing was said before");
    is_str(m.prompts[1], "<| a b|| c|", "what is cut off is no prompt");
    is_str(m.prompts[2], "<| a b|| c|| d|", "all that was said");
    llm_speech_free(s);

    plain.condition = 0;
    plain.prompt = llm_str("\n Hi: ");
    plain.language = 1;
    memset(&m, 0, sizeof(m));
    m.said = said;
    m.language = 1;
    s = transcribe(&m, &plain, 6000);
    is_str(m.prompts[0], "< Hi:", "a prompt, without white space around it");
    ok(m.prompts[1][0] == '\0' && m.prompts[2][0] == '\0',
       "and nothing later");
    ok(m.languages == 0 && m.head, "a language that is given is not looked for");
    llm_speech_free(s);

    plain.condition = 1;
    plain.prompt.len = 0;
    plain.language = 0;
    m.n_windows = 0;
    m.language = 0;
    s = transcribe(&m, &plain, 0);
    is_text(s, "", "no sound has no text");
    is_int(m.n_windows, 0, "nor a window");
    llm_speech_free(s);
}


static void
test_long(void)
{
    model_t        m;
    llm_speech_t  *s;

    static const said_t  said[] = {
        { 0, "\1" "00 abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz",
          30, 0, NULL },
        { 3000, "\1" "00 x\1" "05", 30, 0, NULL },
        { 0, NULL, 0, 0, NULL }
    };

    memset(&m, 0, sizeof(m));
    m.said = said;
    s = transcribe(&m, &plain, 3500);
    is_text(s, "[0.00 abcdefghijklmnopqrstuvwxyz abc 30.00][30.00 x 35.00]",
            "a window has half of the context at most");
    is_int(strlen(m.prompts[1]), CTX / 2, "and so has its prompt");
    ok(m.head, "nothing goes beyond the context");
    llm_speech_free(s);
}


static void
test_judged(void)
{
    size_t         bytes;
    model_t        m;
    llm_err_t      err;
    llm_speech_t  *s;

    static const said_t  said[] = {
        { 0, "\1" "00 lalalalalalalalalalalalalalala\1" "30", 60, 0,
          "\1" "00 la\1" "30" },
        { 3000, "\1" "00 unsure\1" "30", 7.6f, 0, "\1" "00 sure\1" "30" },
        { 6000, "\1" "00 noise\1" "30", 7.6f, 40, NULL },
        { 9000, "\1" "00 loud\1" "30", 60, 40, NULL },
        { 0, NULL, 0, 0, NULL }
    };

    plain.thresholds = 1;
    plain.temperature = -1;
    memset(&m, 0, sizeof(m));
    m.said = said;
    s = transcribe(&m, &plain, 12000);
    is_text(s, "[0.00 la 30.00][30.00 sure 60.00][90.00 loud 120.00]",
            "texts that repeat themselves or are improbable, silence");
    is_int(m.n_prompts, 6, "two were tried again");
    ok(llm_speech_tokens(s) == m.steps, "all tokens are counted");
    bytes = llm_speech_bytes(s);
    llm_speech_free(s);
    s = llm_speech_create(&plain, 12000, &err);
    ok(bytes > llm_speech_bytes(s) && llm_speech_bytes(s) > VOCAB,
       "and memory, with that of texts");
    llm_speech_free(s);

    plain.temperature = 0.3;
    memset(&m, 0, sizeof(m));
    m.said = said;
    s = transcribe(&m, &plain, 3000);
    is_int(m.n_prompts, 1, "with one temperature there is one attempt");
    llm_speech_free(s);

    plain.thresholds = 0;
    plain.temperature = 0;
    memset(&m, 0, sizeof(m));
    m.said = said;
    s = transcribe(&m, &plain, 9000);
    ok(m.n_prompts == 3, "and without thresholds");
    is_text(s, "[0.00 lalalalalalalalalalalalalalala 30.00]"
            "[30.00 unsure 60.00][60.00 noise 90.00]", "all texts are kept");
    llm_speech_free(s);
}


static void
test_odd(void)
{
    model_t        m;
    llm_speech_t  *s;

    static const said_t  said[] = {
        { 0, "\1" "00 I\2am\1" "30", 30, 0, NULL },
        { 3000, "\1" "00\1" "00 x", 30, 0, NULL },
        { 6000, " \1" "05", 30, 0, NULL },
        { 9000, "\xff\1" "00", 30, 0, NULL },
        { 12000, "a\1" "02\1" "02b", 30, 0, NULL },
        { 12200, "c", 30, 0, NULL },
        { 0, NULL, 0, 0, NULL }
    };

    memset(&m, 0, sizeof(m));
    m.said = said;
    s = transcribe(&m, &plain, 3000);
    is_text(s, "[0.00 Iam 30.00]", "a language's token is no text");
    llm_speech_free(s);

    /* without rules of times there may be any */
    plain.timestamps = 0;
    memset(&m, 0, sizeof(m));
    m.said = said;
    s = transcribe(&m, &plain, 15200);
    ok(m.n_windows == 6 && m.windows[5] == 12200 && m.windows[1] == 3000 && m.windows[2] == 6000,
       "a window never follows itself");
    ok(m.head, "no times are asked for");
    is_text(s, "[0.00 Iam 30.00][30.00 30.00][60.00 65.00]"
            "[90.00\xef\xbf\xbd 120.00][120.00a 122.00][122.00c 152.00]",
            "empty segments, and bytes that are no character");
    llm_speech_free(s);
    plain.timestamps = 1;
}


static void
test_words(void)
{
    model_t        m;
    llm_speech_t  *s;

    static const said_t  said[] = {
        { 0, "\1" "00 Oh, \"so\" is\1" "03\1" "03 \xc3\xa4\1" "20\1" "20 t",
          30, 0, NULL },
        { 300, "\1" "00 t\1" "17", 30, 0, NULL },
        { 0, NULL, 0, 0, NULL }
    };

    plain.words = 1;
    memset(&m, 0, sizeof(m));
    m.said = said;
    s = transcribe(&m, &plain, 2000);

    /* a byte is a token of 0.2 s; marks keep their own times, as do those of
       OpenAI's program; the next window begins where the last word ended */
    is_text(s, "[0.00 Oh, \"so\" is 2.40](0.00 Oh, 0.60)(1.00 \"so\" 1.60)"
            "(1.80 is 2.40)[2.40 \xc3\xa4 3.00](2.40 \xc3\xa4 3.00)"
            "[3.00 t 3.40](3.00 t 3.40)", "words");
    ok(m.windows[1] == 300, "a window begins where a word ended");
    is_int(m.aligned, 3 + 1 + 15 + 1, "what is cut off is not looked for");
    llm_speech_free(s);
    plain.words = 0;
}


static void
is_words(const char *text, int spaces, const char *want)
{
    char                got[512];
    size_t              i, n;
    int32_t             ids[128];
    llm_err_t           err;
    llm_speech_words_t  w;

    for (n = 0; text[n]; n++) {
        ids[n] = (unsigned char) text[n];
    }

    if (llm_speech_words_split(&w, vocab, ids, n, spaces, &err) != LLM_OK) {
        ok(0, "%s", text);
        return;
    }

    for (i = 0, n = 0; i < w.n; i++) {
        n += (size_t) snprintf(got + n, sizeof(got) - n, "%.*s/%u|",
                               (int) (w.data[i].to - w.data[i].from),
                               w.text.data + w.data[i].from,
                               w.data[i].n_tokens);
    }

    got[n] = '\0';
    is_str(got, want, "words of \"%s\"", text);
    llm_speech_words_free(&w);
}


static void
test_split(void)
{
    is_words("", 1, "");
    is_words(" one two.", 1, " one/4| two/4|./1|");
    is_words("one", 1, "one/3|");
    is_words(" \xe6\x97\xa5\xe6\x9c\xac", 1, " \xe6\x97\xa5\xe6\x9c\xac/7|");
    is_words("\xe6\x97\xa5\xe6\x9c\xac", 0, "\xe6\x97\xa5/3|\xe6\x9c\xac/3|");

    /* a byte that is none of a character's, and two that are cut off: the first
       is taken for all of it, as by OpenAI's program */
    is_words("a\x97z", 1, "a\xef\xbf\xbdz/3|");
    is_words("a\xe6\x97", 1, "a\xef\xbf\xbd/2|");
}


/* w: [2][5][40], of two heads */

static int
align(float *w, size_t frames, uint32_t times[4])
{
    int                 rc;
    llm_err_t           err;
    llm_speech_align_t  a = { .n = 5, .n_ctx = 40, .frames = frames,
                              .first = 1, .rows = 4 };

    if (llm_speech_align_begin(&a, &err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_speech_align_add(&a, w);
    llm_speech_align_add(&a, w + 5 * 40);
    rc = llm_speech_align_end(&a, times, &err);
    llm_speech_align_free(&a);

    return rc;
}


static void
test_align(void)
{
    float     w[2 * 5 * 40];
    uint32_t  i, times[4];

    /* one frame, and a matrix without any difference */
    for (i = 0; i < llm_nelems(w); i++) {
        w[i] = 0.5f;
    }

    is_int(align(w, 1, times), LLM_OK,
           "one frame");
    ok(times[0] == 0 && times[3] == 0, "is the time of all tokens");

    for (i = 0; i < llm_nelems(w); i++) {
        w[i] = (i % 7) ? NAN : INFINITY;
    }

    is_int(align(w, 40, times), LLM_OK,
           "what is no number does no harm");
    ok(times[0] == 0 && times[3] < 40, "a path is found");

    memset(w, 0, sizeof(w));

    for (i = 0; i < 2 * 5 * 40; i++) {
        w[i] = (i / 40 % 5 >= 1 && i % 40 / 10 == i / 40 % 5 - 1) ? 0.1f : 0;
    }

    is_int(align(w, 40, times), LLM_OK,
           "a stair");
    ok(times[0] == 0 && times[1] == 10 && times[2] == 20 && times[3] == 30,
       "is followed: %u %u %u", times[1], times[2], times[3]);
}


static void
test_text(void)
{
    char       text[200];
    llm_str_t  s;

    s = llm_speech_strip(llm_str("\t \xe3\x80\x80 a b\xc2\xa0\n"));
    ok(llm_str_is(s, "a b"), "white space of all kinds is removed");
    s = llm_speech_strip(llm_str(" \xe3\x80\x80 "));
    is_int(s.len, 0, "all of it");
    s = llm_speech_strip(llm_str("\x80\xff"));
    is_int(s.len, 2, "but no bytes that are none");

    memset(text, 'a', sizeof(text));
    ok(llm_speech_ratio((llm_str_t) { 200, text }) > 10, "a text of one letter");
    ok(llm_speech_ratio((llm_str_t) { 0, NULL }) == 0, "no text");
    ok(fabsf(llm_speech_ratio(llm_str("The quick brown fox jumps over the "
                                      "lazy dog.")) - 0.862745f) < 1e-5f,
       "the ratio is zlib's at level 6");
}


static void
refused(const char *message)
{
    llm_err_t      err;
    llm_speech_t  *s;

    memset(&err, 0, sizeof(err));
    s = llm_speech_create(&plain, 100, &err);
    ok(s == NULL && strstr(err.msg, message) != NULL, "%s", err.msg);
    llm_speech_free(s);
}


static void
test_refused(void)
{
    llm_err_t     err;
    llm_speech_t *s;

    plain.language = 7;
    refused("\"ja\" (japanese)");
    plain.language = -1;
    rules.info.multilingual = 0;
    plain.translate = 1;
    refused("English only");
    plain.translate = 0;
    plain.language = 2;
    refused("but English only");
    plain.language = 0;
    rules.info.multilingual = 1;
    rules.info.n_text_ctx = 8;
    refused("too short");
    rules.info.n_text_ctx = CTX;

    s = llm_speech_create(&plain, 100, &err);
    ok(llm_speech_logits(s, NULL, NULL, &err) == LLM_ERROR
       && llm_speech_aligned(s, NULL, &err) == LLM_ERROR
       && llm_speech_encoded(s, &err) == LLM_OK
       && llm_speech_encoded(s, &err) == LLM_ERROR,
       "an answer to what was not asked is none");
    llm_speech_free(s);
    llm_speech_free(NULL);
}


int
main(void)
{
    llm_err_t           err;
    llm_whisper_info_t  info;

    vocab = tiny_load(tiny_bpe, NULL, &err);
    info_of(&info);

    if (!ok(vocab && llm_speech_rules_load(&rules, &info, vocab, &err)
                     == LLM_OK, "rules are made of a vocabulary"))
    {
        return done_testing();
    }

    ok(rules.space == ' ' && rules.never['('] && !rules.never['a']
       && !rules.never['!'], "tokens that are no speech");

    /* whose texts are single bytes, which real models never say alone */
    rules.never[' '] = 0;
    rules.never['"'] = 0;

    plain.rules = &rules;
    plain.vocab = vocab;
    plain.language = -1;
    plain.timestamps = 1;
    plain.condition = 1;

    test_windows();
    test_long();
    test_judged();
    test_odd();
    test_words();
    test_split();
    test_align();
    test_text();
    test_refused();

    llm_speech_rules_free(&rules);
    llm_vocab_free(vocab);

    return done_testing();
}
