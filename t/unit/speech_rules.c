/*
 * Rules of decoding: those of OpenAI's program as the shared fixtures have
 * them, and a small model of our own.
 */

#include "engine/speech/rules.h"

#include "t/unit/tap.h"

#include <cjson/cJSON.h>
#include <math.h>

#define VOCAB  60000

static float  logits[VOCAB];


/* the ids of a Whisper model, by the size of its vocabulary */

static void
ids(llm_whisper_info_t *info, uint32_t n_vocab)
{
    int32_t  i;

    memset(info, 0, sizeof(*info));
    info->n_vocab = n_vocab;
    info->multilingual = n_vocab >= 51865;
    info->n_languages = n_vocab == 51866 ? 100 : 99;
    info->n_mels = 80;
    info->n_frames = 3000;
    info->n_audio_ctx = 1500;
    info->n_text_ctx = 448;

    i = info->multilingual ? 50257 : 50256;
    info->eot = i;
    info->sot = i + 1;
    info->language = i + 2;
    i += 2 + (int32_t) info->n_languages;
    info->translate = i;
    info->transcribe = i + 1;
    info->sot_lm = i + 2;
    info->sot_prev = i + 3;
    info->no_speech = i + 4;
    info->no_timestamps = i + 5;
    info->timestamp = i + 6;
}


static void
fill(const llm_whisper_info_t *info, uint32_t k, double b, double e)
{
    double    v;
    uint32_t  i, h;

    for (i = 0; i < info->n_vocab; i++) {
        h = (i + 60000 * k) * 2654435761u;
        h ^= h >> 15;
        h *= 2246822519u;
        h ^= h >> 13;
        v = -log((h + 0.5) / 4294967296.0);
        v += (int32_t) i >= info->timestamp ? b : 0;
        v += (int32_t) i == info->eot ? e : 0;
        logits[i] = (float) v;
    }
}


static double
number(const cJSON *o, const char *name)
{
    return cJSON_GetObjectItem(o, name)->valuedouble;
}


static cJSON *
load(const char *dir, const char *name)
{
    char    path[2048];
    char   *text, *p;
    FILE   *f;
    cJSON  *o;
    size_t  n;

    snprintf(path, sizeof(path), "%s/audio/%s", dir, name);
    f = fopen(path, "rb");

    if (f == NULL) {
        return NULL;
    }

    text = malloc(1 << 20);
    n = fread(text, 1, (1 << 20) - 1, f);
    text[n] = '\0';
    fclose(f);

    /* margins where there is no second token, which nothing here reads */
    while ((p = strstr(text, "Infinity")) != NULL) {
        memcpy(p, "99999999", 8);
    }

    o = cJSON_Parse(text);
    free(text);

    return o;
}


/* what is masked is in ranges [from, to) */

static int
masked(const cJSON *ranges, uint32_t n_vocab)
{
    int             bad;
    uint32_t        i;
    unsigned char  *want;
    const cJSON    *r;

    want = calloc(1, n_vocab);

    cJSON_ArrayForEach(r, ranges) {
        for (i = (uint32_t) cJSON_GetArrayItem(r, 0)->valueint;
             i < (uint32_t) cJSON_GetArrayItem(r, 1)->valueint; i++)
        {
            want[i] = 1;
        }
    }

    bad = 0;

    for (i = 0; i < n_vocab; i++) {
        bad += want[i] != (logits[i] == -INFINITY);
    }

    free(want);

    return bad == 0;
}


static void
test_case(llm_speech_rules_t *r, const cJSON *c, const cJSON *lists)
{
    int          i, n, first, times;
    double       p;
    int32_t      tokens[64], id;
    const char  *mode;
    const cJSON *list;

    mode = cJSON_GetObjectItem(c, "mode")->valuestring;
    times = strcmp(mode, "no timestamps") != 0;
    list = cJSON_GetObjectItem(c, "ids");
    first = (int) number(c, "sample_begin");
    n = 0;

    for (i = first; i < cJSON_GetArraySize(list); i++) {
        tokens[n++] = cJSON_GetArrayItem(list, i)->valueint;
    }

    fill(&r->info, (uint32_t) number(c, "k"), number(c, "b"), number(c, "e"));
    llm_speech_rules_apply(r, logits, tokens, (size_t) n, times);
    id = llm_speech_pick(r, logits, 0, 0, &p);

    ok(masked(cJSON_GetArrayItem(lists, (int) number(c, "ranges")),
              r->info.n_vocab)
       && id == (int32_t) number(c, "argmax"), "%u, %s, %s, %g, %g",
       r->info.n_vocab, mode, cJSON_GetObjectItem(c, "case")->valuestring,
       number(c, "b"), number(c, "e"));
}


static void
test_fixtures(const char *dir)
{
    int                  n, k;
    cJSON               *rules, *tokens;
    int32_t              list[256];
    llm_err_t            err;
    const cJSON         *c, *o;
    llm_speech_rules_t   r;
    llm_whisper_info_t   info;

    rules = load(dir, "rules.json");
    tokens = load(dir, "tokens.json");

    if (!ok(rules && tokens, "the fixtures are there")) {
        return;
    }

    k = 0;

    cJSON_ArrayForEach(c, cJSON_GetObjectItem(rules, "cases")) {
        ids(&info, (uint32_t) number(c, "n_vocab"));
        n = 0;

        cJSON_ArrayForEach(o, tokens) {
            const cJSON *item, *t;

            item = cJSON_GetObjectItem(o, "non_speech_tokens");

            if (item && cJSON_IsTrue(cJSON_GetObjectItem(o, "multilingual"))
                        == (info.multilingual != 0))
            {
                cJSON_ArrayForEach(t, item) {
                    list[n++] = t->valueint;
                }
            }
        }

        if (llm_speech_rules_init(&r, &info, 220, list, (size_t) n, &err)
            == LLM_OK)
        {
            test_case(&r, c, cJSON_GetObjectItem(rules, "range_lists"));
            k++;
        }

        llm_speech_rules_free(&r);
    }

    is_int(k, 210, "cases of OpenAI's rules");
    cJSON_Delete(rules);
    cJSON_Delete(tokens);
}


static void
test_small(void)
{
    double              p, chance;
    int32_t             id, first;
    uint32_t            i, seen;
    int32_t             none[2] = { -1, 1 << 30 };
    llm_err_t           err;
    llm_speech_rules_t  r;
    llm_whisper_info_t  info;

    ids(&info, 51865);
    is_int(llm_speech_rules_init(&r, &info, -1, none, 2, &err), LLM_OK,
           "ids that no token has are passed over");

    for (i = 0; i < info.n_vocab; i++) {
        logits[i] = (i & 1) ? NAN : INFINITY;
    }

    llm_speech_rules_apply(&r, logits, NULL, 0, 0);
    is_int(llm_speech_pick(&r, logits, 0, 0, &p), info.eot,
           "what is no number is never taken");
    ok(p == 0, "and the end is certain");
    ok(llm_speech_silence(&r, logits) == 0, "nor is there a probability");
    (void) llm_speech_language(&r, logits, &p);
    ok(p == 0, "nor a language");

    for (i = 0; i < info.n_vocab; i++) {
        logits[i] = -100;
    }

    logits[10] = 1;
    logits[11] = 0;
    logits[info.language + 7] = -50;
    logits[info.no_speech] = 1;

    ok(fabs(llm_speech_silence(&r, logits) - 1 / (2 + exp(-1))) < 1e-6,
       "the probability of silence");
    is_int(llm_speech_language(&r, logits, &p), 7, "the likeliest language");
    ok(p > 0.999, "among languages");

    llm_speech_rules_apply(&r, logits, NULL, 0, 0);
    is_int(llm_speech_pick(&r, logits, 0, 0, &p), 10, "the likeliest token");
    ok(fabs(p + log(1 + exp(-1))) < 1e-6, "and its probability");

    /* 0 to 1 by chance: first 10, then 11, as often as they are likely */
    seen = 0;
    first = 0;

    for (i = 0; i < 1000; i++) {
        chance = (i + 0.5) / 1000;
        id = llm_speech_pick(&r, logits, 0.5, chance, &p);
        seen += id == 10;
        first = i ? first : id;
    }

    ok(abs((int) seen - 881) <= 1 && first == 10,
       "by chance, at a temperature: %u", seen);
    is_int(llm_speech_pick(&r, logits, 1, 0.9999999999, &p), 11,
           "never what has no probability to speak of");
    llm_speech_rules_free(&r);

    info.timestamp = 52000;
    is_int(llm_speech_rules_init(&r, &info, -1, NULL, 0, &err), LLM_ERROR,
           "ids beyond the vocabulary");
    ids(&info, 51865);
    info.n_languages = 60000;
    is_int(llm_speech_rules_init(&r, &info, -1, NULL, 0, &err), LLM_ERROR,
           "languages beyond it");
}


int
main(void)
{
    const char  *dir;

    test_small();
    dir = tap_fixtures();

    if (dir == NULL) {
        skip("there are no shared fixtures");
        return done_testing();
    }

    test_fixtures(dir);

    return done_testing();
}
