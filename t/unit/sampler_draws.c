/*
 * What sampler.h says of single draws: the same seed gives the same text,
 * probabilities are the model's, greedy draws, rows that no model should
 * make, a large vocabulary.
 */

#include "engine/sample/sampler.h"
#include "t/unit/sampler_data.h"

#define LARGE   151936


static void
draw_text(uint64_t seed, uint32_t choice, const float *logits, uint32_t n,
    llm_sampler_scratch_t *scratch, uint32_t replay, int32_t *text,
    uint32_t len)
{
    uint32_t         i;
    llm_err_t        err;
    llm_sampled_t    out;
    llm_sampler_t   *s;
    llm_sampling_t   p;

    llm_sampling_default(&p);
    p.has_seed = 1;
    p.seed = seed;
    p.top_p = 0.95f;
    p.repetition_penalty = 1.1f;

    s = llm_sampler_create(&p, choice, NULL, 0, n);

    for (i = 0; i < len; i++) {
        if (i >= replay) {
            (void) llm_sampler_sample(s, scratch, logits, NULL, 0, NULL,
                                      &out, &err);
            text[i] = out.id;
        }

        llm_sampler_accept(s, text[i]);
    }

    llm_sampler_free(s);
}


static void
test_repeatable(void)
{
    float                   logits[1000];
    int32_t                 a[64], b[64];
    uint32_t                i;
    llm_sampler_scratch_t  *one, *two;

    for (i = 0; i < 1000; i++) {
        logits[i] = noise(2);
    }

    one = llm_sampler_scratch_create(1000);
    two = llm_sampler_scratch_create(1000);

    draw_text(42, 0, logits, 1000, one, 0, a, 64);
    draw_text(42, 0, logits, 1000, two, 0, b, 64);
    ok(memcmp(a, b, sizeof(a)) == 0, "the same seed, the same text");

    draw_text(43, 0, logits, 1000, one, 0, b, 64);
    ok(memcmp(a, b, sizeof(a)) != 0, "another seed, another text");

    draw_text(42, 1, logits, 1000, one, 0, b, 64);
    ok(memcmp(a, b, sizeof(a)) != 0, "another choice, another text");

    memcpy(b, a, sizeof(b));
    memset(b + 30, 0xff, 34 * sizeof(int32_t));
    draw_text(42, 0, logits, 1000, one, 30, b, 64);
    ok(memcmp(a, b, sizeof(a)) == 0, "the same text after a replay of 30");

    llm_sampler_scratch_free(one);
    llm_sampler_scratch_free(two);
}


static void
test_logprobs(void)
{
    float                   logits[2000];
    double                  sum;
    token_t                 t[2000];
    uint32_t                i, k, round, wrong, missing, sizes, listed;
    llm_err_t               err;
    llm_sampled_t           out;
    llm_sampler_t          *s;
    llm_sampling_t          p;
    llm_logit_bias_t        bias = { 7, 100 };
    llm_sampler_scratch_t  *scratch;

    for (sum = 0, i = 0; i < 2000; i++) {
        logits[i] = floorf(noise(2) * 8) / 8;
        sum += exp(logits[i]);
        t[i].id = (int32_t) i;
        t[i].logit = logits[i];
    }

    qsort(t, 2000, sizeof(token_t), by_logit);
    scratch = llm_sampler_scratch_create(2000);

    llm_sampling_default(&p);
    p.n_logprobs = 5;
    p.temperature = 1.5f;
    p.has_seed = 1;

    s = llm_sampler_create(&p, 0, NULL, 0, 2000);
    wrong = 0;
    missing = 0;
    sizes = 0;

    for (round = 0; round < 200; round++) {
        (void) llm_sampler_sample(s, scratch, logits, NULL, 0, NULL, &out,
                                  &err);
        llm_sampler_accept(s, out.id);

        wrong += fabs(out.logprob - (logits[out.id] - log(sum))) > 1e-5;
        listed = 0;

        for (k = 0; k < out.n_top; k++) {
            listed += out.top[k].id == out.id;
            wrong += fabs(out.top[k].logprob
                          - (logits[out.top[k].id] - log(sum))) > 1e-5;

            if (k < 5) {
                wrong += out.top[k].id != t[k].id;
            }
        }

        missing += listed != 1;
        sizes += out.n_top != 5
                 && !(out.n_top == 6 && out.top[5].id == out.id);
    }

    is_int(wrong, 0, "log probabilities before the temperature, best first");
    is_int(missing, 0, "the sampled token is listed, once");
    is_int(sizes, 0, "five, and the sampled one behind them");

    llm_sampler_free(s);

    p.n_logprobs = 0;
    s = llm_sampler_create(&p, 0, &bias, 1, 2000);
    (void) llm_sampler_sample(s, scratch, logits, NULL, 0, NULL, &out, &err);
    ok(out.n_top == 0 && out.id == 7
       && fabs(out.logprob - (logits[7] - log(sum))) < 1e-5,
       "its own only: the model's, without the bias");
    llm_sampler_free(s);

    p.n_logprobs = 20;
    p.temperature = 0;
    s = llm_sampler_create(&p, 0, NULL, 0, 3);
    (void) llm_sampler_sample(s, scratch, logits, NULL, 0, NULL, &out, &err);
    is_int(out.n_top, 3, "no more than there are");
    llm_sampler_free(s);

    llm_sampler_scratch_free(scratch);
}


static void
test_greedy_and_errors(void)
{
    float                   logits[100];
    uint32_t                i, wrong;
    uint32_t                mask[4] = { 0 };
    const int32_t           eos = 40;
    llm_err_t               err;
    llm_sampled_t           out;
    llm_sampler_t          *s;
    llm_sampling_t          p;
    llm_sampler_scratch_t  *scratch;

    for (i = 0; i < 100; i++) {
        logits[i] = -(float) (i % 7);
    }

    logits[40] = 3;
    logits[70] = 3;
    logits[90] = 3;

    scratch = llm_sampler_scratch_create(100);
    llm_sampling_default(&p);
    p.temperature = 0;
    p.top_p = 0.5f;

    s = llm_sampler_create(&p, 0, NULL, 0, 100);
    (void) llm_sampler_sample(s, scratch, logits, NULL, 0, NULL, &out, &err);
    is_int(out.id, 40, "greedy: the lowest of the largest");

    (void) llm_sampler_sample(s, scratch, logits, &eos, 1, NULL, &out, &err);
    is_int(out.id, 70, "greedy: but not a banned one");

    mask[90 / 32] = 1u << (90 % 32);
    (void) llm_sampler_sample(s, scratch, logits, &eos, 1, mask, &out, &err);
    is_int(out.id, 90, "greedy: but what the mask allows");

    mask[90 / 32] = 0;
    ok(llm_sampler_sample(s, scratch, logits, &eos, 1, mask, &out, &err)
       == LLM_ERROR && strstr(err.msg, "no token"), "an empty mask");
    llm_sampler_free(s);

    p.temperature = 1;
    p.top_p = 1;
    p.top_k = 1;
    s = llm_sampler_create(&p, 0, NULL, 0, 100);
    (void) llm_sampler_sample(s, scratch, logits, NULL, 0, NULL, &out, &err);
    is_int(out.id, 40, "top_k 1: the lowest of the largest");
    llm_sampler_free(s);

    llm_sampling_default(&p);
    p.n_logprobs = 3;
    s = llm_sampler_create(&p, 0, NULL, 0, 100);

    logits[99] = NAN;
    ok(llm_sampler_sample(s, scratch, logits, NULL, 0, NULL, &out, &err)
       == LLM_ERROR && strstr(err.msg, "not finite"), "NaN");

    logits[99] = INFINITY;
    ok(llm_sampler_sample(s, scratch, logits, NULL, 0, NULL, &out, &err)
       == LLM_ERROR && strstr(err.msg, "not finite"), "plus infinity");

    for (i = 0; i < 100; i++) {
        logits[i] = -INFINITY;
    }

    ok(llm_sampler_sample(s, scratch, logits, NULL, 0, NULL, &out, &err)
       == LLM_ERROR && strstr(err.msg, "no token"), "all minus infinity");

    logits[77] = -500;
    wrong = 0;

    for (i = 0; i < 20; i++) {
        wrong += llm_sampler_sample(s, scratch, logits, NULL, 0, NULL, &out,
                                    &err)
                 != LLM_OK || out.id != 77 || out.logprob != 0;
        llm_sampler_accept(s, out.id);
    }

    is_int(wrong, 0, "one token left has all the mass");
    llm_sampler_free(s);

    p.temperature = 2e-5f;
    p.typical_p = 0.3f;
    p.min_p = 1;
    logits[3] = 3e38f;
    logits[4] = -3e38f;
    s = llm_sampler_create(&p, 0, NULL, 0, 100);
    ok(llm_sampler_sample(s, scratch, logits, NULL, 0, NULL, &out, &err)
       == LLM_OK && out.id == 3, "logits and temperature at the ends");
    llm_sampler_free(s);

    llm_sampler_scratch_free(scratch);
}


/* the row of an edge: what a broken model or an attacker's bias leaves */

static void
edge_row(float *row, uint32_t n, uint32_t kind)
{
    static const float  fills[] = {
        0, -INFINITY, INFINITY, NAN, 3.4e38f, -3.4e38f, 1e-45f, -700
    };
    uint32_t  i;

    for (i = 0; i < n; i++) {
        row[i] = kind < llm_nelems(fills) ? fills[kind] : noise(3);
    }

    switch (kind) {

    case 9:
        row[n - 1] = NAN;
        break;

    case 10:
        row[n / 2] = INFINITY;
        break;

    case 11:
        row[1] = 3.4e38f;
        row[2] = -3.4e38f;
        break;
    }
}


/* is the end a token of the row that may be drawn, or an error that says why?
   And does a device get numbers to draw by? */

static int
edge_holds(llm_sampler_t *s, llm_sampler_scratch_t *scratch, const float *row,
    uint32_t n)
{
    int            rc;
    llm_err_t      err;
    llm_draw_t     draw;
    llm_sampled_t  out;

    memset(&err, 0, sizeof(err));

    if (llm_sampler_plan(s, 0, NULL, 0, NULL, &draw)
        && !(isfinite(draw.scale) && draw.min_gap <= 0 && draw.top_p >= 1e-6f
             && draw.u >= 0 && draw.u < 1))
    {
        return 0;
    }

    rc = llm_sampler_sample(s, scratch, row, NULL, 0, NULL, &out, &err);

    if (rc == LLM_OK) {
        return out.id >= 0 && (uint32_t) out.id < n && row[out.id] > -INFINITY
               && !isnan(out.logprob);
    }

    return rc == LLM_ERROR && err.msg[0];
}


static void
test_edges(void)
{
    static const float      temperatures[] = { 0, 1e-40f, 1e-5f, 1, 2 };
    static const float      shares[] = { 0, 1e-45f, 1e-20f, 0.5f, 1 };
    static const float      penalties[] = { 1e-40f, 0.01f, 1, 100, 1e38f };
    enum { EDGE = 300 };
    float                   row[EDGE];
    uint32_t                i, k, wrong, errors;
    llm_err_t               err;
    llm_drawn_t             drawn;
    llm_sampled_t           out;
    llm_sampler_t          *s;
    llm_sampling_t          p;
    llm_logit_bias_t        bias[2] = { { 1, 100 }, { 2, -100 } };
    llm_sampler_scratch_t  *scratch;

    scratch = llm_sampler_scratch_create(EDGE);
    wrong = 0;
    errors = 0;

    for (i = 0; i < 60000; i++) {
        k = i / 12;

        llm_sampling_default(&p);
        p.temperature = temperatures[k % 5];
        p.top_p = shares[k / 5 % 5];
        p.min_p = shares[k / 25 % 5];
        p.typical_p = k / 125 % 8 < 4 ? 1 : shares[k / 125 % 4];
        p.top_k = k / 1000 % 5 == 4 ? 7 : 0;
        p.repetition_penalty = penalties[k / 1000 % 5];
        p.frequency_penalty = k % 3 ? 0 : 2;
        p.presence_penalty = k % 7 ? 0 : -2;
        p.n_logprobs = k % 4 ? -1 : 2;
        p.has_seed = 1;
        p.seed = i;

        s = llm_sampler_create(&p, 0, bias, k % 2 ? 2 : 0, EDGE);
        llm_sampler_see_prompt(s, 1);
        llm_sampler_see_prompt(s, 150);
        llm_sampler_accept(s, 2);

        edge_row(row, EDGE, i % 12);
        wrong += !edge_holds(s, scratch, row, EDGE);
        llm_sampler_free(s);
    }

    is_int(wrong, 0, "every row ends with a token or an error");

    /* the most likely token is none if a penalty has made it infinite: a
       device says the same of such a row */

    llm_sampling_default(&p);
    p.temperature = 0;
    p.repetition_penalty = 0.01f;
    s = llm_sampler_create(&p, 0, NULL, 0, EDGE);
    llm_sampler_see_prompt(s, 150);
    memset(row, 0, sizeof(row));
    row[150] = 1e37f;
    ok(llm_sampler_sample(s, scratch, row, NULL, 0, NULL, &out, &err)
       == LLM_ERROR && strstr(err.msg, "penalties make them so"),
       "a logit that a penalty makes infinite: an error that says so");
    llm_sampler_free(s);

    /* nor is a device believed that found none */

    llm_sampling_default(&p);
    s = llm_sampler_create(&p, 0, NULL, 0, EDGE);
    memset(&drawn, 0, sizeof(drawn));

    for (i = 0; i < 3; i++) {
        drawn.status = i == 2 ? 77 : LLM_DRAWN_TOKEN;
        drawn.id = i == 0 ? -1 : i == 1 ? EDGE : 5;
        errors += llm_sampler_drawn(s, &drawn, &out, &err) == LLM_ERROR;
    }

    is_int(errors, 3, "a device's token is one of the vocabulary");
    llm_sampler_free(s);
    llm_sampler_scratch_free(scratch);
}


/* how long a draw takes, as a note */

static void
test_large(void)
{
    float                  *logits;
    uint32_t                i, k, wrong;
    uint64_t                start, best;
    llm_err_t               err;
    llm_sampled_t           out;
    llm_sampler_t          *s;
    llm_sampling_t          p;
    llm_sampler_scratch_t  *scratch;

    static const struct {
        const char  *name;
        float        temperature, top_p, min_p, typical_p, penalty;
        int32_t      top_k, n_logprobs;
    } runs[] = {
        { "greedy",                     0, 1, 0, 1, 1, 0, -1 },
        { "greedy, 5 logprobs",         0, 1, 0, 1, 1, 0, 5 },
        { "temperature 1",              1, 1, 0, 1, 1, 0, -1 },
        { "top_k 40, top_p 0.95",       0.8f, 0.95f, 0, 1, 1, 40, -1 },
        { "top_p 0.95",                 0.7f, 0.95f, 0, 1, 1, 0, -1 },
        { "top_p 0.95, temperature 2",  2, 0.95f, 0, 1, 1, 0, -1 },
        { "min_p 0.05",                 1, 1, 0.05f, 1, 1, 0, -1 },
        { "typical_p 0.9",              1, 1, 0, 0.9f, 1, 0, -1 },
        { "penalty, top_k 20, top_p",   0.6f, 0.95f, 0, 1, 1.1f, 20, -1 },
    };

    logits = malloc(LARGE * sizeof(float));

    for (i = 0; i < LARGE; i++) {
        logits[i] = noise(2.5f);
    }

    for (i = 0; i < 12; i++) {
        logits[(i * 7919 + 13) % LARGE] = 16 - (float) i * 0.7f;
    }

    scratch = llm_sampler_scratch_create(LARGE);
    wrong = 0;

    for (k = 0; k < llm_nelems(runs); k++) {
        llm_sampling_default(&p);
        p.temperature = runs[k].temperature;
        p.top_p = runs[k].top_p;
        p.min_p = runs[k].min_p;
        p.typical_p = runs[k].typical_p;
        p.repetition_penalty = runs[k].penalty;
        p.top_k = runs[k].top_k;
        p.n_logprobs = runs[k].n_logprobs;

        s = llm_sampler_create(&p, 0, NULL, 0, LARGE);
        best = UINT64_MAX;

        for (i = 0; i < 20; i++) {
            start = llm_now_us();
            wrong += llm_sampler_sample(s, scratch, logits, NULL, 0, NULL,
                                        &out, &err)
                     != LLM_OK;
            best = llm_min(best, llm_now_us() - start);
            llm_sampler_accept(s, out.id);
        }

        printf("# %-28s %5llu us for %d tokens\n", runs[k].name,
               (unsigned long long) best, LARGE);

        llm_sampler_free(s);
    }

    is_int(wrong, 0, "a large vocabulary");

    llm_sampler_scratch_free(scratch);
    free(logits);
}


int
main(void)
{
    test_repeatable();
    test_logprobs();
    test_greedy_and_errors();
    test_edges();
    test_large();

    return done_testing();
}
