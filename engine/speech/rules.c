/*
 * Rules of decoding; see rules.h.
 */

#include "engine/sample/rows.h"
#include "engine/speech/rules.h"

#include <math.h>
#include <stdio.h>

/* the first timestamp of a window is 1.00 s at most */
#define LLM_SPEECH_FIRST  (1 * LLM_SPEECH_TICKS)


static int
llm_speech_ids_fit(const llm_whisper_info_t *info)
{
    int32_t  n;

    n = (int32_t) info->n_vocab;

    return info->n_vocab < (1u << 30) && info->eot > 0 && info->eot < info->sot
           && info->sot < info->timestamp && info->timestamp < n
           && info->language > info->sot && info->n_languages > 0
           && info->n_languages < (uint32_t) (n - info->language)
           && info->translate > 0 && info->translate < n
           && info->transcribe > 0 && info->transcribe < n
           && info->sot_lm > 0 && info->sot_lm < n
           && info->sot_prev > 0 && info->sot_prev < n
           && info->no_speech > 0 && info->no_speech < n
           && info->no_timestamps > 0 && info->no_timestamps < info->timestamp;
}


int
llm_speech_rules_init(llm_speech_rules_t *r, const llm_whisper_info_t *info,
    int32_t space, const int32_t *suppressed, size_t n_suppressed,
    llm_err_t *err)
{
    size_t  i;

    memset(r, 0, sizeof(*r));

    if (!llm_speech_ids_fit(info)) {
        return llm_fail(err, "the model's special tokens are not those of a "
                        "Whisper model");
    }

    r->info = *info;
    r->space = (space >= 0 && space < info->eot) ? space : -1;
    r->never = calloc(1, info->n_vocab);

    if (r->never == NULL) {
        return llm_fail(err, "no memory for the rules of transcription");
    }

    for (i = 0; i < n_suppressed; i++) {
        if (suppressed[i] >= 0 && (uint32_t) suppressed[i] < info->n_vocab) {
            r->never[suppressed[i]] = 1;
        }
    }

    r->never[info->sot] = 1;
    r->never[info->translate] = 1;
    r->never[info->transcribe] = 1;
    r->never[info->sot_lm] = 1;
    r->never[info->sot_prev] = 1;
    r->never[info->no_speech] = 1;

    return LLM_OK;
}


/* adds the token of a text: the first one, if `only` is not set or it is the
   only one */

static int
llm_speech_add(const llm_vocab_t *v, const char *text, int only,
    llm_ids_t *ids, llm_err_t *err)
{
    int        rc;
    size_t     len;
    llm_ids_t  found;

    memset(&found, 0, sizeof(found));
    rc = llm_vocab_tokenize(v, text, strlen(text), NULL, 0,
                            LLM_TOKENIZE_PLAIN, 0, &found, err);
    len = found.len;

    if (rc == LLM_OK && len && (len == 1 || !only)) {
        ids->data[ids->len++] = found.data[0];
    }

    free(found.data);

    return rc;
}


int
llm_speech_rules_load(llm_speech_rules_t *r, const llm_whisper_info_t *info,
    const llm_vocab_t *v, llm_err_t *err)
{
    int        rc, any;
    char       text[16];
    size_t     i;
    int32_t    data[256];
    llm_ids_t  ids;

    /* what people write into subtitles that nobody says; each with a space
       before it and without; of the musical notes, whose bytes are several
       tokens, the first one */

    static const char *const  symbols[] = {
        "\"", "#", "(", ")", "*", "+", "/", ":", ";", "<", "=", ">", "@", "[",
        "\\", "]", "^", "_", "`", "{", "|", "}", "~", "\u300c", "\u300d",
        "\u300e", "\u300f", "<<", ">>", "<<<", ">>>", "--", "---", "-(", "-[",
        "('", "(\"", "((", "))", "(((", ")))", "[[", "]]", "{{", "}}",
        "\u266a\u266a", "\u266a\u266a\u266a",
        "\u2669", "\u266a", "\u266b", "\u266c", "\u266d", "\u266e", "\u266f"
    };

    ids.data = data;
    ids.len = 0;

    /* the first is the space itself */
    data[0] = -1;
    rc = llm_speech_add(v, " ", 1, &ids, err);
    ids.len = 1;

    if (rc == LLM_OK) {
        rc = llm_speech_add(v, " -", 0, &ids, err);
    }

    if (rc == LLM_OK) {
        rc = llm_speech_add(v, " '", 0, &ids, err);
    }

    for (i = 0; i < 2 * llm_nelems(symbols) && rc == LLM_OK; i++) {
        any = i / 2 >= llm_nelems(symbols) - 7;
        (void) snprintf(text, sizeof(text), "%s%s", i & 1 ? " " : "",
                        symbols[i / 2]);
        rc = llm_speech_add(v, text, !any, &ids, err);
    }

    if (rc != LLM_OK) {
        memset(r, 0, sizeof(*r));
        return rc;
    }

    return llm_speech_rules_init(r, info, data[0], data + 1, ids.len - 1, err);
}


void
llm_speech_rules_free(llm_speech_rules_t *r)
{
    free(r->never);
    r->never = NULL;
}


static void
llm_speech_forbid(float *logits, int32_t from, int32_t to)
{
    for ( /* void */ ; from < to; from++) {
        logits[from] = -INFINITY;
    }
}


/*
 * Times come in pairs: of the end of a text and of the beginning of the next,
 * but for the first, which stands alone.  After a pair follows text, after the
 * first of a pair the second, or the end.
 */

static void
llm_speech_pairs(const llm_speech_rules_t *r, float *logits,
    const int32_t *tokens, size_t n)
{
    int      last, before;
    size_t   i;
    int32_t  t, begin, end;

    begin = r->info.timestamp;
    end = (int32_t) r->info.n_vocab;

    last = n > 0 && tokens[n - 1] >= begin;
    before = n < 2 || tokens[n - 2] >= begin;

    if (last && before) {
        llm_speech_forbid(logits, begin, end);

    } else if (last) {
        llm_speech_forbid(logits, 0, r->info.eot);
    }

    for (i = n; i > 0; i--) {
        t = tokens[i - 1];

        if (t >= begin) {
            /* a segment takes time; its successor may begin where it ends */
            t = (last && !before) ? t : t + 1;
            llm_speech_forbid(logits, begin, llm_min(t, end));
            break;
        }
    }

    if (n == 0) {
        llm_speech_forbid(logits, 0, begin);
        llm_speech_forbid(logits, llm_min(begin + LLM_SPEECH_FIRST + 1, end),
                          end);
    }
}


static float
llm_speech_most(const float *logits, int32_t from, int32_t to)
{
    float    max;
    int32_t  i;

    max = -INFINITY;

    for (i = from; i < to; i++) {
        max = logits[i] > max ? logits[i] : max;
    }

    return max;
}


/* the logarithm of the sum of the exponentials of some logits, and the largest
   of them; -INFINITY: there is none */

static double
llm_speech_sum(const float *logits, int32_t from, int32_t to, double *most)
{
    float    max;
    double   sum;
    int32_t  i;

    max = llm_speech_most(logits, from, to);
    *most = max;

    if (max == -INFINITY) {
        return -INFINITY;
    }

    sum = 0;

    for (i = from; i < to; i++) {
        sum += exp((double) logits[i] - max);
    }

    return max + log(sum);
}


void
llm_speech_rules_apply(const llm_speech_rules_t *r, float *logits,
    const int32_t *tokens, size_t n, int timestamps)
{
    double   times;
    int32_t  i, end;

    end = (int32_t) r->info.n_vocab;

    for (i = 0; i < end; i++) {
        if (r->never[i] || !isfinite(logits[i])) {
            logits[i] = -INFINITY;
        }
    }

    if (n == 0) {
        logits[r->info.eot] = -INFINITY;

        if (r->space >= 0) {
            logits[r->space] = -INFINITY;
        }
    }

    if (!timestamps) {
        return;
    }

    logits[r->info.no_timestamps] = -INFINITY;
    llm_speech_pairs(r, logits, tokens, n);

    /* if a time is likelier than any text, there is a time */
    if (llm_speech_sum(logits, r->info.timestamp, end, &times)
        > llm_speech_most(logits, 0, r->info.timestamp))
    {
        llm_speech_forbid(logits, 0, r->info.timestamp);
    }
}


static int32_t
llm_speech_draw(const float *logits, int32_t n, double max,
    double temperature, double chance)
{
    double   sum;
    int32_t  i, last;

    sum = 0;

    for (i = 0; i < n; i++) {
        sum += exp((logits[i] - max) / temperature);
    }

    chance *= sum;
    last = 0;

    for (i = 0; i < n; i++) {
        if (logits[i] == -INFINITY) {
            continue;
        }

        last = i;
        chance -= exp((logits[i] - max) / temperature);

        if (chance < 0) {
            break;
        }
    }

    return last;
}


int32_t
llm_speech_pick(const llm_speech_rules_t *r, const float *logits,
    double temperature, double chance, double *logprob)
{
    double   max, sum;
    int32_t  id, n;

    n = (int32_t) r->info.n_vocab;
    sum = llm_speech_sum(logits, 0, n, &max);

    if (max == -INFINITY) {
        *logprob = 0;
        return r->info.eot;
    }

    if (temperature > 0) {
        id = llm_speech_draw(logits, n, max, temperature, chance);

    } else {
        for (id = 0; logits[id] != (float) max; id++) { /* void */ }
    }

    *logprob = logits[id] - sum;

    return id;
}


double
llm_speech_silence(const llm_speech_rules_t *r, const float *logits)
{
    double  max, sum, p;

    sum = llm_speech_sum(logits, 0, (int32_t) r->info.n_vocab, &max);
    p = exp(logits[r->info.no_speech] - sum);

    return isfinite(p) ? p : 0;
}


uint32_t
llm_speech_language(const llm_speech_rules_t *r, const float *logits,
    double *prob)
{
    double        max, sum;
    uint32_t      best;
    const float  *l;

    l = logits + r->info.language;
    sum = llm_speech_sum(l, 0, (int32_t) r->info.n_languages, &max);
    best = llm_row_best(l, r->info.n_languages);

    *prob = exp(l[best] - sum);
    *prob = isfinite(*prob) ? *prob : 0;

    return best;
}
