/*
 * The sampler's stages that come from llama.cpp, bad words and allowed
 * tokens: the distributions of tokens drawn with fixed seeds against
 * probabilities that t/unit/sampler_expected.py computed.
 */

#include "engine/sample/sampler.h"
#include "t/unit/tap.h"

#include <math.h>

#define DRAWS  4000

typedef struct {
    const char      *name;
    llm_sampling_t   p;
    int32_t          prompt[24];
    uint32_t         n_prompt;
    int32_t          generated[24];
    uint32_t         n_generated;
    const char      *breakers[4];
    uint32_t         n_breakers;
    int32_t          words[24];         /* -1 behind each */
    uint32_t         n_words;
    uint32_t         allowed;           /* 0: all */
    float            logits[16];
    double           want[16];
} expected_t;

#include "t/unit/sampler_expected.h"


static llm_str_t
bytes_of(const void *vocab, int32_t id)
{
    (void) vocab;

    return (llm_str_t) { strlen(expected_texts[id]), expected_texts[id] };
}


/* what the case says of words and tokens; lists have room for all of it */

static llm_filter_t
filter_of(const expected_t *e, llm_bad_word_t *bad, llm_str_t *breakers)
{
    uint32_t     i, from;
    llm_filter_t  r = { .bytes = bytes_of };

    r.allowed = e->allowed ? &e->allowed : NULL;
    r.bad = bad;
    r.breakers = breakers;
    r.n_breakers = e->n_breakers;

    for (i = 0; i < e->n_breakers; i++) {
        breakers[i].data = e->breakers[i];
        breakers[i].len = strlen(e->breakers[i]);
    }

    for (i = 0, from = 0; i < e->n_words; i++) {
        if (e->words[i] == -1) {
            bad[r.n_bad].ids = e->words + from;
            bad[r.n_bad++].n = i - from;
            from = i + 1;
        }
    }

    return r;
}


static void
begin(llm_sampler_t *s, const expected_t *e, const llm_filter_t *filter,
    uint64_t seed)
{
    uint32_t        i;
    llm_sampling_t  p;

    p = e->p;
    p.n_logprobs = -1;
    p.has_seed = 1;
    p.seed = seed;

    (void) llm_sampler_restart(s, &p, 0, NULL, 0);
    (void) llm_sampler_set_filter(s, filter);

    for (i = 0; i < e->n_prompt; i++) {
        llm_sampler_see_prompt(s, e->prompt[i]);
    }

    for (i = 0; i < e->n_generated; i++) {
        llm_sampler_accept(s, e->generated[i]);
    }
}


/* the 99.9 % point of chi-square, by Wilson and Hilferty */

static double
chi_limit(int degrees)
{
    double  a;

    a = 2.0 / (9.0 * degrees);

    return degrees * pow(1 - a + 3.29 * sqrt(a), 3);
}


static void
test_case(const expected_t *e, llm_sampler_t *s,
    llm_sampler_scratch_t *scratch)
{
    int             stray, failed, degrees;
    double          chi, want, rest_want, rest_got;
    uint32_t        i;
    uint32_t        got[EXPECTED_VOCAB] = { 0 };
    llm_err_t       err;
    llm_str_t       breakers[4];
    llm_filter_t     filter;
    llm_sampled_t   out;
    llm_bad_word_t  bad[24];

    filter = filter_of(e, bad, breakers);
    failed = 0;

    for (i = 0; i < DRAWS; i++) {
        begin(s, e, &filter, i);

        if (llm_sampler_sample(s, scratch, e->logits, NULL, 0, NULL, &out,
                               &err)
            == LLM_OK)
        {
            got[out.id]++;

        } else {
            failed++;
        }
    }

    chi = 0;
    stray = 0;
    degrees = -1;
    rest_want = 0;
    rest_got = 0;

    for (i = 0; i < EXPECTED_VOCAB; i++) {
        want = e->want[i] * DRAWS;
        stray += want == 0 && got[i];

        if (want < 8) {
            rest_want += want;
            rest_got += got[i];
            continue;
        }

        chi += (got[i] - want) * (got[i] - want) / want;
        degrees++;
    }

    if (rest_want >= 8) {
        chi += (rest_got - rest_want) * (rest_got - rest_want) / rest_want;
        degrees++;
    }

    ok(stray == 0 && failed == 0, "%s: nothing else", e->name);
    ok(degrees < 1 || chi < chi_limit(degrees),
       "%s: chi-square %.1f with %d degrees", e->name, chi, degrees);
}


/* what a device cannot draw is left to the host; the rest is not */

static void
test_plans(llm_sampler_t *s)
{
    uint32_t               i;
    llm_draw_t             d;
    llm_filter_t            filter;
    llm_sampling_t         p;
    static const uint32_t  allowed[] = { 6 }, mask[] = { 3 };
    static const int32_t   ids[] = { 1, 2 };

    static const llm_bad_word_t  one = { ids, 1 }, two = { ids, 2 };

    static const struct {
        const char      *name;
        llm_filter_t      filter;
        const uint32_t  *mask;
        int              device;
        const uint32_t  *its_mask;
    } plans[] = {
        { "no filter", { .n_bad = 0 }, NULL, 1, NULL },
        { "allowed tokens", { .allowed = allowed }, NULL, 1, allowed },
        { "a mask", { .n_bad = 0 }, mask, 1, mask },
        { "both", { .allowed = allowed }, mask, 0, NULL },
        { "a bad word of one token", { .bad = &one, .n_bad = 1 }, NULL, 1,
          NULL },
        { "of two", { .bad = &two, .n_bad = 1 }, NULL, 0, NULL }
    };

    for (i = 0; i < llm_nelems(plans); i++) {
        llm_sampling_default(&p);
        filter = plans[i].filter;

        (void) llm_sampler_restart(s, &p, 0, NULL, 0);
        (void) llm_sampler_set_filter(s, &filter);

        is_int(llm_sampler_plan(s, 0, NULL, 0, plans[i].mask, &d),
               plans[i].device, "%s: where it is drawn", plans[i].name);

        if (plans[i].device) {
            ok(d.mask == plans[i].its_mask
               && d.n_edits == plans[i].filter.n_bad,
               "%s: with this mask", plans[i].name);
        }
    }
}


static void
test_host_only(llm_sampler_t *s, const char *name, llm_sampling_t p, int best)
{
    llm_draw_t  d;

    (void) llm_sampler_restart(s, &p, 0, NULL, 0);
    is_int(llm_sampler_plan(s, 0, NULL, 0, NULL, &d), 0, "%s: on the host",
           name);

    p.temperature = 0;
    (void) llm_sampler_restart(s, &p, 0, NULL, 0);
    is_int(llm_sampler_plan(s, 0, NULL, 0, NULL, &d), best,
           "%s: and if the most likely token is taken", name);
}


/* contradicting filter are the request's fault */

static void
test_nothing(llm_sampler_t *s, llm_sampler_scratch_t *scratch)
{
    llm_err_t              err;
    llm_sampled_t          out;
    llm_sampling_t         p;
    static const float     logits[EXPECTED_VOCAB] = { 1, 2, 3 };
    static const uint32_t  allowed = 4;
    static const int32_t   ids[] = { 2 };

    static const llm_bad_word_t  bad = { ids, 1 };

    llm_filter_t  filter = { .allowed = &allowed, .bad = &bad, .n_bad = 1 };

    llm_sampling_default(&p);
    (void) llm_sampler_restart(s, &p, 0, NULL, 0);
    (void) llm_sampler_set_filter(s, &filter);

    is_int(llm_sampler_sample(s, scratch, logits, NULL, 0, NULL, &out, &err),
           LLM_ERROR, "the only allowed token is a bad word");
    is_int(err.status, 400, "which is the request's fault");
}


/* a long repetition, and the time that a step takes with it */

static void
test_long(void)
{
    uint32_t                i;
    llm_err_t               err;
    llm_sampled_t           out;
    llm_sampler_t          *s;
    llm_sampling_t          p;
    static const float      logits[2] = { 1, 0 };
    llm_sampler_scratch_t  *scratch;

    llm_sampling_default(&p);
    p.temperature = 0;
    p.dry_multiplier = 1;
    p.dry_base = 100;

    s = llm_sampler_create(&p, 0, NULL, 0, 2);
    scratch = llm_sampler_scratch_create(2);

    for (i = 0; i < 100000; i++) {
        llm_sampler_see_prompt(s, 0);
    }

    is_int(llm_sampler_sample(s, scratch, logits, NULL, 0, NULL, &out, &err),
           LLM_OK, "100,000 equal tokens, a penalty beyond all numbers");
    is_int(out.id, 1, "the other token is drawn");

    llm_sampler_free(s);
    llm_sampler_scratch_free(scratch);
}


int
main(void)
{
    uint32_t                i;
    llm_sampler_t          *s;
    llm_sampling_t          p, q;
    llm_sampler_scratch_t  *scratch;

    llm_sampling_default(&p);
    s = llm_sampler_create(&p, 0, NULL, 0, EXPECTED_VOCAB);
    scratch = llm_sampler_scratch_create(EXPECTED_VOCAB);

    for (i = 0; i < llm_nelems(expected); i++) {
        test_case(&expected[i], s, scratch);
    }

    test_plans(s);

    q = p;
    q.dry_multiplier = 1;
    test_host_only(s, "DRY", q, 0);
    q = p;
    q.repeat_last_n = 4;
    q.presence_penalty = 1;
    test_host_only(s, "a window", q, 0);
    q = p;
    q.xtc_probability = 0.5f;
    test_host_only(s, "XTC", q, 1);
    q = p;
    q.top_n_sigma = 1;
    test_host_only(s, "top-n-sigma", q, 1);
    q = p;
    q.dynatemp_range = 1;
    test_host_only(s, "dynamic temperature", q, 1);

    test_nothing(s, scratch);
    test_long();

    llm_sampler_free(s);
    llm_sampler_scratch_free(scratch);

    return done_testing();
}
