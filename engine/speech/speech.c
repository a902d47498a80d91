/*
 * What a transcription asks for next; see speech.h.
 */

#include "engine/speech/state.h"

#include "engine/base/language.h"
#include "engine/speech/text.h"

#include <math.h>

/* limits that a text has to meet, of OpenAI's program */
#define LLM_SPEECH_RATIO     2.4        /* of compression, at most */
#define LLM_SPEECH_LOGPROB  -1.0        /* mean of a token, at least */
#define LLM_SPEECH_SILENCE   0.6        /* above it nobody speaks */

#define LLM_SPEECH_ATTEMPTS  6          /* temperatures 0 to 1 */

/* most tokens of <|startoftranscript|>, language, task, <|notimestamps|>: the
   first step wants the logits of each */
#define LLM_SPEECH_HEAD      LLM_SPEECH_OUT


/* most tokens of a window's text; the prompt has one token less, so that there
   is one for <|startofprev|> */

static uint32_t
llm_speech_half(const llm_speech_t *s)
{
    return s->o.rules->info.n_text_ctx / 2;
}


static int
llm_speech_check(const llm_speech_opts_t *o, llm_err_t *err)
{
    const llm_whisper_info_t  *info;

    info = &o->rules->info;

    if (info->n_text_ctx < 4 * LLM_SPEECH_HEAD || info->n_audio_ctx == 0
        || info->n_frames < info->n_audio_ctx)
    {
        return llm_fail(err, "the model's context is too short to transcribe");
    }

    if (!info->multilingual && o->translate) {
        return llm_fail_with(err, 400, NULL, NULL, "this model knows English "
                             "only, so there is nothing that it could "
                             "translate");
    }

    if (o->language > 0 && (!info->multilingual
                            || (uint32_t) o->language >= info->n_languages))
    {
        return llm_fail_with(err, 400, NULL, "language", "this model does not "
                             "know the language \"%s\" (%s)%s",
                             llm_language((size_t) o->language)->code,
                             llm_language((size_t) o->language)->name,
                             info->multilingual ? "" : ", but English only");
    }

    return LLM_OK;
}


static int
llm_speech_prompt(llm_speech_t *s, llm_err_t *err)
{
    int        rc;
    size_t     i;
    float      zero;
    llm_ids_t  ids;
    llm_buf_t  text;
    llm_str_t  prompt;

    prompt = llm_speech_strip(s->o.prompt);

    if (prompt.len == 0) {
        return LLM_OK;
    }

    memset(&ids, 0, sizeof(ids));
    llm_buf_init(&text, 0);
    zero = 0;

    (void) llm_buf_addc(&text, ' ');

    if (llm_buf_add(&text, prompt.data, prompt.len) != LLM_OK) {
        return llm_fail(err, "no memory for a prompt");
    }

    rc = llm_vocab_tokenize(s->o.vocab, text.data, text.len, NULL, 0,
                            LLM_TOKENIZE_PLAIN, 0, &ids, err);

    for (i = 0; i < ids.len && rc == LLM_OK; i++) {
        (void) llm_buf_add(&s->kept.tokens, &ids.data[i], sizeof(int32_t));
        (void) llm_buf_add(&s->kept.logprobs, &zero, sizeof(float));
    }

    llm_buf_free(&text);
    free(ids.data);

    return rc;
}


/* the next window, or the end */

static void
llm_speech_window(llm_speech_t *s)
{
    s->attempt = 0;

    if (s->seek >= s->frames) {
        s->want = LLM_SPEECH_DONE;
        return;
    }

    s->size = llm_min(s->frames - s->seek,
                      (size_t) s->o.rules->info.n_frames);
    s->want = LLM_SPEECH_WINDOW;
}


llm_speech_t *
llm_speech_create(const llm_speech_opts_t *opts, size_t frames, llm_err_t *err)
{
    size_t         n;
    llm_speech_t  *s;

    if (llm_speech_check(opts, err) != LLM_OK) {
        return NULL;
    }

    s = calloc(1, sizeof(llm_speech_t));

    if (s == NULL) {
        (void) llm_fail(err, "no memory for a transcription");
        return NULL;
    }

    llm_speech_kept_init(&s->kept);
    s->o = *opts;
    s->frames = frames;
    s->encoded = SIZE_MAX;
    s->language = opts->rules->info.multilingual ? opts->language : 0;

    n = opts->rules->info.n_text_ctx + LLM_SPEECH_HEAD;
    s->seq = calloc(n, sizeof(int32_t));
    s->forced = calloc(n, sizeof(int32_t));
    s->logprobs = calloc(n, sizeof(float));
    s->pieces = calloc(n, sizeof(llm_speech_piece_t));
    s->logits = malloc(opts->rules->info.n_vocab * sizeof(float));

    if (s->seq == NULL || s->forced == NULL || s->logprobs == NULL
        || s->pieces == NULL || s->logits == NULL)
    {
        (void) llm_fail(err, "no memory for a transcription");
        llm_speech_free(s);
        return NULL;
    }

    if (llm_speech_prompt(s, err) != LLM_OK) {
        llm_speech_free(s);
        return NULL;
    }

    llm_speech_window(s);

    return s;
}


void
llm_speech_free(llm_speech_t *s)
{
    if (s == NULL) {
        return;
    }

    llm_speech_kept_free(&s->kept);
    llm_speech_align_free(&s->align);
    free(s->seq);
    free(s->forced);
    free(s->logprobs);
    free(s->pieces);
    free(s->logits);
    free(s);
}


size_t
llm_speech_bytes(const llm_speech_t *s)
{
    size_t  n;

    n = s->o.rules->info.n_text_ctx + LLM_SPEECH_HEAD;

    return sizeof(*s) + llm_speech_kept_bytes(&s->kept)
           + (s->align.sum ? s->align.rows * s->align.frames : 0)
             * sizeof(float)
           + n * (sizeof(*s->seq) + sizeof(*s->forced) + sizeof(*s->logprobs)
                  + sizeof(*s->pieces))
           + s->o.rules->info.n_vocab * sizeof(*s->logits);
}


/* the tokens that say what is to be done; returns their number */

static uint32_t
llm_speech_head(const llm_speech_t *s, int timestamps, int32_t *out)
{
    uint32_t                   n;
    const llm_whisper_info_t  *info;

    info = &s->o.rules->info;
    n = 0;
    out[n++] = info->sot;

    if (info->multilingual) {
        out[n++] = info->language + s->language;
        out[n++] = s->o.translate ? info->translate : info->transcribe;
    }

    if (!timestamps) {
        out[n++] = info->no_timestamps;
    }

    return n;
}


/* an attempt at the window's text begins */

static void
llm_speech_attempt(llm_speech_t *s)
{
    size_t          n, max;
    const int32_t  *past;

    s->len = 0;
    past = (const int32_t *) s->kept.tokens.data;
    n = s->kept.tokens.len / sizeof(int32_t);

    if (n > s->kept.prompt) {
        max = llm_min(n - s->kept.prompt, (size_t) llm_speech_half(s) - 1);
        s->seq[s->len++] = s->o.rules->info.sot_prev;
        memcpy(s->seq + s->len, past + n - max, max * sizeof(int32_t));
        s->len += (uint32_t) max;
    }

    s->sot = s->len;
    s->len += llm_speech_head(s, s->o.timestamps, s->seq + s->len);
    s->begin = s->len;
    s->sum = 0;
    s->silence = 0;
    s->want = LLM_SPEECH_STEP;
}


/* the window is complete: keeps its segments and goes to the next one */

static int
llm_speech_finish(llm_speech_t *s, const llm_speech_words_t *w, size_t next,
    llm_err_t *err)
{
    if (llm_speech_keep(s, w, err) != LLM_OK) {
        return LLM_ERROR;
    }

    s->seek = next;
    llm_speech_window(s);

    return LLM_OK;
}


/* the text is taken: where its words are is asked for, if that is wanted */

static int
llm_speech_accept(llm_speech_t *s, llm_err_t *err)
{
    size_t                     next;
    uint32_t                   i, end;
    llm_speech_words_t         none;
    const llm_whisper_info_t  *info;

    info = &s->o.rules->info;
    next = llm_speech_cut(s, s->seq + s->begin, s->len - s->begin);

    if (!s->o.words) {
        return llm_speech_finish(s, NULL, next, err);
    }

    s->n_forced = llm_speech_head(s, 0, s->forced);
    s->n_text = 0;

    /* what comes after the last segment is decoded again */
    end = s->begin + (uint32_t) s->pieces[s->n_pieces - 1].to;

    for (i = s->begin; i < end; i++) {
        if (s->seq[i] < info->eot) {
            s->forced[s->n_forced++] = s->seq[i];
            s->n_text++;
        }
    }

    s->forced[s->n_forced++] = info->eot;

    if (s->n_text) {
        s->want = LLM_SPEECH_ALIGN;
        return LLM_OK;
    }

    /* nothing was said */
    i = 0;

    if (llm_speech_pieces_words(s, &none, &i, &next, err) != LLM_OK) {
        llm_speech_words_free(&none);
        return LLM_ERROR;
    }

    llm_speech_words_free(&none);

    return llm_speech_finish(s, NULL, next, err);
}


/* an attempt is over: is its text good, is there one, or is it tried again? */

static int
llm_speech_judge(llm_speech_t *s, llm_err_t *err)
{
    int        bad, silent;
    double     avg;
    llm_buf_t  text;
    llm_str_t  str;

    llm_buf_init(&text, 0);

    if (llm_speech_text(&text, s->o.vocab, s->o.rules->info.eot,
                        s->seq + s->begin, s->len - s->begin)
        != LLM_OK)
    {
        llm_buf_free(&text);
        return llm_fail(err, "no memory for a transcript");
    }

    str.data = text.data;
    str.len = text.len;
    s->ratio = llm_speech_ratio(llm_speech_strip(str));
    llm_buf_free(&text);

    if (!s->o.thresholds) {
        return llm_speech_accept(s, err);
    }

    avg = s->sum / (s->len - s->begin + 1);
    silent = s->silence > LLM_SPEECH_SILENCE && avg < LLM_SPEECH_LOGPROB;
    bad = s->ratio > LLM_SPEECH_RATIO || avg < LLM_SPEECH_LOGPROB;

    if (bad && !silent && s->o.temperature < 0
        && s->attempt + 1 < LLM_SPEECH_ATTEMPTS)
    {
        s->attempt++;
        llm_speech_attempt(s);
        return LLM_OK;
    }

    if (s->silence > LLM_SPEECH_SILENCE && avg <= LLM_SPEECH_LOGPROB) {
        s->seek += s->size;
        llm_speech_window(s);
        return LLM_OK;
    }

    return llm_speech_accept(s, err);
}


void
llm_speech_next(const llm_speech_t *s, llm_speech_ask_t *ask)
{
    memset(ask, 0, sizeof(*ask));
    ask->want = s->want;

    switch (s->want) {

    case LLM_SPEECH_WINDOW:
        ask->frame = s->seek;
        break;

    case LLM_SPEECH_LANGUAGE:
        ask->tokens = &s->o.rules->info.sot;
        ask->n = 1;
        ask->n_out = 1;
        break;

    case LLM_SPEECH_STEP:
        ask->tokens = s->seq;
        ask->n = s->len;
        ask->n_out = s->len - s->sot;

        if (s->len > s->begin) {
            ask->pos = s->len - 1;
            ask->tokens += ask->pos;
            ask->n = 1;
            ask->n_out = 1;
        }

        break;

    case LLM_SPEECH_ALIGN:
        ask->tokens = s->forced;
        ask->n = s->n_forced;
        break;

    default:
        break;
    }
}


int
llm_speech_encoded(llm_speech_t *s, llm_err_t *err)
{
    if (s->want != LLM_SPEECH_WINDOW) {
        return llm_fail(err, "no window was asked for");
    }

    s->encoded = s->seek;

    if (s->language < 0) {
        s->want = LLM_SPEECH_LANGUAGE;
        return LLM_OK;
    }

    llm_speech_attempt(s);

    return LLM_OK;
}


/* a number in [0, 1) that depends on the seed and on what is decoded alone */

static double
llm_speech_chance(const llm_speech_t *s)
{
    uint64_t  x;

    x = s->o.seed + s->seek * 0x9e3779b97f4a7c15ull
        + ((uint64_t) s->attempt << 32) + s->len;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x ^= x >> 31;

    return (double) (x >> 11) / 9007199254740992.0;
}


int
llm_speech_logits(llm_speech_t *s, const float *first, const float *last,
    llm_err_t *err)
{
    double                     p;
    int32_t                    id;
    const llm_speech_rules_t  *r;

    r = s->o.rules;

    if (s->want == LLM_SPEECH_LANGUAGE) {
        s->language = (int) llm_speech_language(r, first, &p);
        s->decoded++;
        llm_speech_attempt(s);
        return LLM_OK;
    }

    if (s->want != LLM_SPEECH_STEP) {
        return llm_fail(err, "no logits were asked for");
    }

    if (s->len == s->begin) {
        s->silence = llm_speech_silence(r, first);
    }

    memcpy(s->logits, last, r->info.n_vocab * sizeof(float));
    llm_speech_rules_apply(r, s->logits, s->seq + s->begin, s->len - s->begin,
                           s->o.timestamps);
    id = llm_speech_pick(r, s->logits, llm_speech_temperature(s),
                         llm_speech_chance(s), &p);
    s->sum += p;
    s->decoded++;

    if (id == r->info.eot) {
        return llm_speech_judge(s, err);
    }

    s->logprobs[s->len] = (float) p;
    s->seq[s->len++] = id;

    if (s->len - s->begin == llm_speech_half(s)
        || s->len > r->info.n_text_ctx)
    {
        return llm_speech_judge(s, err);
    }

    return LLM_OK;
}


/* begins the alignment of s->forced */

static int
llm_speech_align_forced(llm_speech_t *s, llm_err_t *err)
{
    size_t                     frames;
    llm_speech_align_t        *a;
    const llm_whisper_info_t  *info;

    a = &s->align;
    info = &s->o.rules->info;
    frames = llm_max(s->size / (info->n_frames / info->n_audio_ctx), 1);

    memset(a, 0, sizeof(*a));
    a->n = s->n_forced;
    a->n_ctx = info->n_audio_ctx;
    a->frames = llm_min(frames, (size_t) info->n_audio_ctx);

    /* the row of <|notimestamps|> is that of the first token of the text, and
       so on; the last one is that of the end */

    a->first = s->n_forced - s->n_text - 2;
    a->rows = s->n_text + 1;

    return llm_speech_align_begin(a, err);
}


static int
llm_speech_timed(llm_speech_t *s, llm_err_t *err)
{
    int                 rc;
    size_t              next;
    uint32_t           *times;
    llm_speech_words_t  words;

    times = malloc((s->n_text + 1) * sizeof(uint32_t));

    if (times == NULL) {
        return llm_fail(err, "no memory for the times of words");
    }

    memset(&words, 0, sizeof(words));
    next = llm_speech_cut(s, s->seq + s->begin, s->len - s->begin);
    rc = llm_speech_align_end(&s->align, times, err);

    if (rc == LLM_OK) {
        rc = llm_speech_pieces_words(s, &words, times, &next, err);
    }

    if (rc == LLM_OK) {
        rc = llm_speech_finish(s, &words, next, err);
    }

    llm_speech_words_free(&words);
    llm_speech_align_free(&s->align);
    free(times);

    return rc;
}


int
llm_speech_aligned(llm_speech_t *s, float *weights, llm_err_t *err)
{
    if (s->want != LLM_SPEECH_ALIGN) {
        return llm_fail(err, "no alignment was asked for");
    }

    if (s->align.sum == NULL && llm_speech_align_forced(s, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (weights) {
        llm_speech_align_add(&s->align, weights);
    }

    return s->align.n_heads < s->o.rules->info.n_align
           ? LLM_MORE : llm_speech_timed(s, err);
}


int
llm_speech_spoken(const llm_speech_t *s)
{
    return s->language;
}


int
llm_speech_has_words(const llm_speech_t *s)
{
    return s->o.words;
}


uint64_t
llm_speech_tokens(const llm_speech_t *s)
{
    return s->decoded;
}
