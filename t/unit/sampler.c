/*
 * The sampler against a reference of its own: the chain in double with full
 * sorts.  Distributions by chi-square over fixed seeds, cuts by comparing
 * sets.
 */

#include "engine/sample/sampler.h"
#include "t/unit/sampler_data.h"

#define SMALL   12                      /* tokens of the chi-square tests */
#define DRAWS   20000


/* ---- the reference ---- */

typedef struct {
    llm_sampling_t           s;
    const llm_logit_bias_t  *bias;
    uint32_t                 n_bias;
    const int32_t           *prompt;
    uint32_t                 n_prompt;
    const int32_t           *generated;
    uint32_t                 n_generated;
    const int32_t           *banned;
    uint32_t                 n_banned;
    const uint32_t          *mask;
} setup_t;


static int
by_rank(const void *one, const void *two)
{
    const token_t  *a = one, *b = two;

    if (a->rank != b->rank) {
        return a->rank > b->rank ? 1 : -1;
    }

    return a->id - b->id;
}


static int
by_id(const void *one, const void *two)
{
    const token_t  *a = one, *b = two;

    return a->id - b->id;
}


static void
reference_softmax(token_t *t, uint32_t n)
{
    double    max, sum;
    uint32_t  i;

    max = -INFINITY;
    sum = 0;

    for (i = 0; i < n; i++) {
        max = t[i].kept && t[i].logit > max ? t[i].logit : max;
    }

    for (i = 0; i < n; i++) {
        t[i].p = t[i].kept ? exp(t[i].logit - max) : 0;
        sum += t[i].p;
    }

    for (i = 0; i < n; i++) {
        t[i].p /= sum;
    }
}


/* keeps the first of t in their order whose mass reaches share */

static void
reference_share(token_t *t, uint32_t n, double share)
{
    double    sum;
    uint32_t  i;

    for (sum = 0, i = 0; i < n; i++) {
        if (sum >= share) {
            t[i].kept = 0;
        }

        sum += t[i].p;
    }

    reference_softmax(t, n);
}


static int
reference_count(const int32_t *ids, uint32_t n, int32_t id)
{
    int       count;
    uint32_t  i;

    for (count = 0, i = 0; i < n; i++) {
        count += ids[i] == id;
    }

    return count;
}


/* the probability of each token, in the order of ids */

static void
reference_chain(const setup_t *u, const float *logits, uint32_t n,
    token_t *t)
{
    int                    out, seen;
    double                 h;
    uint32_t               i;
    const llm_sampling_t  *s;

    s = &u->s;

    for (i = 0; i < n; i++) {
        t[i].id = (int32_t) i;
        t[i].kept = 1;
        t[i].logit = logits[i];
    }

    for (i = 0; i < u->n_bias; i++) {
        t[u->bias[i].id].logit += u->bias[i].bias;
    }

    for (i = 0; i < n; i++) {
        out = reference_count(u->generated, u->n_generated, (int32_t) i);
        seen = out + reference_count(u->prompt, u->n_prompt, (int32_t) i);

        if (seen) {
            t[i].logit = t[i].logit > 0
                         ? t[i].logit / s->repetition_penalty
                         : t[i].logit * s->repetition_penalty;
        }

        t[i].logit -= out * s->frequency_penalty;
        t[i].logit -= out ? s->presence_penalty : 0;

        if (u->mask && !(u->mask[i / 32] >> (i % 32) & 1)) {
            t[i].kept = 0;
        }

        if (reference_count(u->banned, u->n_banned, (int32_t) i)) {
            t[i].kept = 0;
        }

        t[i].logit = t[i].kept ? t[i].logit / s->temperature : -INFINITY;
    }

    qsort(t, n, sizeof(token_t), by_logit);

    for (i = 0; i < n; i++) {
        t[i].kept &= t[i].logit >= t[0].logit + log(s->min_p);

        if (s->top_k > 0 && i >= (uint32_t) s->top_k) {
            t[i].kept = 0;
        }
    }

    reference_softmax(t, n);

    if (s->typical_p < 1) {
        for (h = 0, i = 0; i < n; i++) {
            h -= t[i].p > 0 ? t[i].p * log(t[i].p) : 0;
        }

        for (i = 0; i < n; i++) {
            t[i].rank = t[i].p > 0 ? fabs(-log(t[i].p) - h) : INFINITY;
        }

        qsort(t, n, sizeof(token_t), by_rank);
        reference_share(t, n, s->typical_p);
        qsort(t, n, sizeof(token_t), by_logit);
    }

    if (s->top_p < 1) {
        reference_share(t, n, s->top_p);
    }

    qsort(t, n, sizeof(token_t), by_id);
}


/* ---- distributions ---- */

/* the value that chi-square with d degrees stays below but once in 10^5:
   Wilson and Hilferty's approximation */

static double
chi_limit(int d)
{
    double  a;

    a = 2.0 / (9.0 * d);

    return d * pow(1 - a + 4.265 * sqrt(a), 3);
}


/* the sampler's own probabilities of a draw (of_draw): how far they are at most
   from t's; listed, best first, are those that can be drawn */

static double
drawn_distance(const llm_sampled_t *out, const token_t *t, uint32_t n_kept)
{
    double    far;
    uint32_t  i;

    far = fabs(exp(out->logprob) - t[out->id].p);

    if (out->n_top != llm_min(n_kept, (uint32_t) SMALL)) {
        return 1;
    }

    for (i = 0; i < out->n_top; i++) {
        far = llm_max(far, fabs(exp(out->top[i].logprob)
                                - t[out->top[i].id].p));

        if (i && out->top[i].logprob > out->top[i - 1].logprob) {
            return 1;
        }
    }

    return far;
}


static void
test_distribution(const char *name, const setup_t *u, const float *logits)
{
    int                     degrees, stray;
    double                  chi, want, rest_want, rest_got, far;
    token_t                 t[SMALL];
    uint32_t                i, k, n_kept;
    uint32_t                got[SMALL] = { 0 };
    llm_err_t               err;
    llm_sampled_t           out;
    llm_sampler_t          *s;
    llm_sampling_t          p;
    llm_sampler_scratch_t  *scratch;

    reference_chain(u, logits, SMALL, t);
    scratch = llm_sampler_scratch_create(SMALL);
    stray = 0;
    far = 0;

    for (i = 0, n_kept = 0; i < SMALL; i++) {
        n_kept += t[i].p > 1e-37;
    }

    for (i = 0; i < DRAWS; i++) {
        p = u->s;
        p.n_logprobs = i % 100 == 0 ? SMALL : -1;
        p.of_draw = 1;
        p.has_seed = 1;
        p.seed = i;

        s = llm_sampler_create(&p, 0, u->bias, u->n_bias, SMALL);

        for (k = 0; k < u->n_prompt; k++) {
            llm_sampler_see_prompt(s, u->prompt[k]);
        }

        for (k = 0; k < u->n_generated; k++) {
            llm_sampler_accept(s, u->generated[k]);
        }

        if (llm_sampler_sample(s, scratch, logits, u->banned, u->n_banned,
                               u->mask, &out, &err)
            == LLM_OK)
        {
            got[out.id]++;

            if (p.n_logprobs > 0) {
                far = llm_max(far, drawn_distance(&out, t, n_kept));
            }
        }

        llm_sampler_free(s);
    }

    llm_sampler_scratch_free(scratch);

    chi = 0;
    degrees = -1;
    rest_want = 0;
    rest_got = 0;

    for (i = 0; i < SMALL; i++) {
        want = t[i].p * DRAWS;
        stray += want == 0 && got[i];

        /* cells that are too small for the test are taken together */

        if (want < 10) {
            rest_want += want;
            rest_got += got[i];
            continue;
        }

        chi += (got[i] - want) * (got[i] - want) / want;
        degrees++;
    }

    if (rest_want >= 10) {
        chi += (rest_got - rest_want) * (rest_got - rest_want) / rest_want;
        degrees++;
    }

    is_int(stray, 0, "%s: nothing outside of the set", name);
    ok(far < 1e-5, "%s: the probabilities of the draw, within %.1g", name, far);

    ok(degrees < 1 ? got[0] + rest_got >= 0 : chi < chi_limit(degrees),
       "%s: chi-square %.1f with %d degrees", name, chi, degrees);
}


static void
test_distributions(void)
{
    setup_t         u;
    const uint32_t  mask = 0xb57;

    static const float    logits[SMALL] = {
        1.5f, 2.5f, -1, 0.25f, 2.5f, 1, -3, 0, 2, 0.5f, -0.5f, 1.75f
    };
    static const int32_t  prompt[] = { 1, 3, 3, 6 };
    static const int32_t  generated[] = { 4, 4, 8, 4, 6, 11 };
    static const int32_t  banned[] = { 4, 0 };

    static const llm_logit_bias_t  bias[] = {
        { 6, 4 }, { 1, -100 }, { 8, 1 }, { 6, 0.5f }
    };

    memset(&u, 0, sizeof(u));
    llm_sampling_default(&u.s);
    test_distribution("plain", &u, logits);

    u.s.temperature = 0.5f;
    test_distribution("temperature 0.5", &u, logits);

    u.s.temperature = 2;
    test_distribution("temperature 2", &u, logits);

    llm_sampling_default(&u.s);
    u.s.top_k = 3;
    test_distribution("top_k 3", &u, logits);

    u.s.top_k = 500;
    test_distribution("top_k beyond the vocabulary", &u, logits);

    llm_sampling_default(&u.s);
    u.s.top_p = 0.7f;
    test_distribution("top_p 0.7", &u, logits);

    u.s.top_k = 4;
    test_distribution("top_k 4, then top_p 0.7", &u, logits);

    llm_sampling_default(&u.s);
    u.s.min_p = 0.2f;
    test_distribution("min_p 0.2", &u, logits);

    u.s.temperature = 1.5f;
    u.s.top_k = 6;
    u.s.top_p = 0.9f;
    test_distribution("temperature, min_p, top_k, top_p", &u, logits);

    llm_sampling_default(&u.s);
    u.s.typical_p = 0.5f;
    test_distribution("typical_p 0.5", &u, logits);

    u.s.top_p = 0.6f;
    u.s.top_k = 8;
    test_distribution("top_k, typical_p, top_p", &u, logits);

    llm_sampling_default(&u.s);
    u.bias = bias;
    u.n_bias = llm_nelems(bias);
    test_distribution("biases", &u, logits);

    u.banned = banned;
    u.n_banned = llm_nelems(banned);
    test_distribution("biases and bans", &u, logits);

    u.mask = &mask;
    test_distribution("biases, bans and a mask", &u, logits);

    memset(&u, 0, sizeof(u));
    llm_sampling_default(&u.s);
    u.prompt = prompt;
    u.n_prompt = llm_nelems(prompt);
    u.generated = generated;
    u.n_generated = llm_nelems(generated);

    u.s.repetition_penalty = 1.5f;
    test_distribution("repetition penalty", &u, logits);

    llm_sampling_default(&u.s);
    u.s.presence_penalty = 1;
    test_distribution("presence penalty", &u, logits);

    llm_sampling_default(&u.s);
    u.s.frequency_penalty = 0.5f;
    test_distribution("frequency penalty", &u, logits);

    u.s.presence_penalty = -1;
    u.s.repetition_penalty = 0.7f;
    u.bias = bias;
    u.n_bias = llm_nelems(bias);
    u.s.top_p = 0.9f;
    test_distribution("all penalties, biases, top_p", &u, logits);
}


/* ---- sets, over rows of many sizes ---- */

static void
random_setup(llm_sampling_t *s)
{
    llm_sampling_default(s);

    s->temperature = (float) (0.1 + 1.9 * uniform());

    if (uniform() < 0.5) {
        s->top_k = 1 + (int32_t) (uniform() * uniform() * 300);
    }

    if (uniform() < 0.5) {
        s->top_p = (float) (0.02 + 0.97 * uniform());
    }

    if (uniform() < 0.3) {
        s->min_p = (float) (uniform() * uniform());
    }

    if (uniform() < 0.2) {
        s->typical_p = (float) (0.05 + 0.9 * uniform());
    }
}


/*
 * Every draw is in the reference's set; and as the last token of a set is
 * what a wrong bound loses first, the set's size is compared too.
 */

static void
test_sets(void)
{
    float                  *logits;
    double                  slack;
    uint32_t                n, i, round, wrong, failed, in_set;
    token_t                *t;
    setup_t                 u;
    llm_err_t               err;
    llm_sampled_t           out;
    llm_sampler_t          *s;
    llm_sampler_scratch_t  *scratch;

    logits = malloc(20000 * sizeof(float));
    t = malloc(20000 * sizeof(token_t));
    memset(&u, 0, sizeof(u));
    wrong = 0;
    failed = 0;
    in_set = 0;

    for (round = 0; round < 400; round++) {
        n = 1 + (uint32_t) (uniform() * (round % 10 ? 700 : 20000));

        for (i = 0; i < n; i++) {
            logits[i] = noise(3);

            /* many that are equal */
            if (round % 3 == 0) {
                logits[i] = floorf(logits[i] * 4) / 4;
            }
        }

        random_setup(&u.s);
        u.s.has_seed = 1;
        reference_chain(&u, logits, n, t);

        scratch = llm_sampler_scratch_create(n);
        s = llm_sampler_create(&u.s, 0, NULL, 0, n);

        for (i = 0; i < 50; i++) {
            if (llm_sampler_sample(s, scratch, logits, NULL, 0, NULL, &out,
                                   &err)
                != LLM_OK)
            {
                failed++;
                break;
            }

            llm_sampler_accept(s, out.id);
            in_set += t[out.id].p > 0;

            /* a sum in float may put the border one token further */

            slack = t[out.id].p > 0 ? 0 : 1;
            wrong += slack > 0;
        }

        llm_sampler_free(s);
        llm_sampler_scratch_free(scratch);
    }

    is_int(failed, 0, "no draw fails");
    is_int(wrong, 0, "no draw outside of the set");
    is_int(in_set, 400 * 50, "%u draws of 400 chains", in_set);

    free(t);
    free(logits);
}


int
main(void)
{
    test_distributions();
    test_sets();

    return done_testing();
}
