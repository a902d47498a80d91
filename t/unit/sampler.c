/*
 * The sampler against a reference of its own: the chain in double with full
 * sorts.  Distributions by chi-square over fixed seeds, cuts by comparing
 * sets, random numbers by the known answers of Philox.
 */

#include "engine/sample/picks.h"
#include "engine/sample/random.h"
#include "t/unit/tap.h"

#include <math.h>

#define SMALL   12                      /* tokens of the chi-square tests */
#define DRAWS   20000
#define LARGE   151936


/* a generator of test data: nothing of the sampler's */

static uint64_t  state = 88172645463325252ull;

static double
uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;

    return (double) (state >> 11) * 0x1p-53;
}


/* about normal */

static float
noise(float sigma)
{
    int     i;
    double  sum;

    for (sum = 0, i = 0; i < 12; i++) {
        sum += uniform();
    }

    return (float) ((sum - 6) * sigma);
}


/* ---- the reference ---- */

typedef struct {
    double   logit;
    double   p;
    double   rank;                      /* what typical sorts by */
    int32_t  id;
    int      kept;
} token_t;

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
by_logit(const void *one, const void *two)
{
    const token_t  *a = one, *b = two;

    if (a->logit != b->logit) {
        return a->logit < b->logit ? 1 : -1;
    }

    return a->id - b->id;
}


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


static void
test_distribution(const char *name, const setup_t *u, const float *logits)
{
    int                     degrees, stray;
    double                  chi, want, rest_want, rest_got;
    token_t                 t[SMALL];
    uint32_t                i, k;
    uint32_t                got[SMALL] = { 0 };
    llm_err_t               err;
    llm_sampled_t           out;
    llm_sampler_t          *s;
    llm_sampling_t          p;
    llm_sampler_scratch_t  *scratch;

    reference_chain(u, logits, SMALL, t);
    scratch = llm_sampler_scratch_create(SMALL);
    stray = 0;

    for (i = 0; i < DRAWS; i++) {
        p = u->s;
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


static void
test_picks(void)
{
    double                  need, sum;
    float                  *row, bound;
    uint32_t                n, i, k, round, reach, count;
    uint32_t                bad_cut, bad_bound, bad_gather, bad_share;
    token_t                *t;
    llm_sampler_scratch_t  *s;

    row = malloc(5000 * sizeof(float));
    t = malloc(5000 * sizeof(token_t));
    bad_cut = 0;
    bad_bound = 0;
    bad_gather = 0;
    bad_share = 0;

    for (round = 0; round < 300; round++) {
        n = 1 + (uint32_t) (uniform() * 4999);
        s = llm_sampler_scratch_create(n);

        for (i = 0; i < n; i++) {
            row[i] = round % 2 ? noise(2) : floorf(noise(2));

            if (round % 5 == 0 && uniform() < 0.5) {
                row[i] = -INFINITY;
            }

            t[i].id = (int32_t) i;
            t[i].logit = row[i];
        }

        qsort(t, n, sizeof(token_t), by_logit);
        (void) s->pass->scan(row, n, s->block_max);

        /* the bound is reached by k, if there are k at all */

        k = 1 + (uint32_t) (uniform() * uniform() * n);
        bound = llm_pick_bound(s, n, k);

        for (reach = 0, i = 0; i < n; i++) {
            reach += row[i] >= bound;
        }

        bad_bound += reach < k && t[llm_min(reach, n - 1)].logit > -INFINITY;

        count = llm_pick_gather(s, row, n, bound);
        bad_gather += count != reach;

        /* the best k of them are the best k */

        if (count > k) {
            bad_cut += llm_pick_cut(s->picks, count, k, 1) != k;

            llm_pick_sort(s->picks, k);

            for (i = 0; i < k; i++) {
                bad_cut += s->picks[i].id != t[i].id;
            }
        }

        /* weights that are powers of two: sums without rounding */

        count = llm_pick_gather(s, row, n, -1e30f);

        if (count) {
            for (sum = 0, i = 0; i < count; i++) {
                s->picks[i].weight = ldexpf(1, (int) s->picks[i].key);
                sum += s->picks[i].weight;
            }

            need = sum * (round % 10) / 9;

            for (sum = 0, i = 0; i < count; i++) {
                sum += ldexp(1, (int) t[i].logit);

                if (sum >= need) {
                    break;
                }
            }

            k = llm_pick_cut(s->picks, count, need, 0);
            bad_share += k != llm_min(i + 1, count);
            llm_pick_sort(s->picks, k);

            for (i = 0; i < k; i++) {
                bad_share += s->picks[i].id != t[i].id;
            }
        }

        llm_sampler_scratch_free(s);
    }

    is_int(bad_bound, 0, "bounds are reached by as many as they say");
    is_int(bad_gather, 0, "gathering misses none");
    is_int(bad_cut, 0, "the best k, ties by id");
    is_int(bad_share, 0, "the fewest that reach a share");

    free(t);
    free(row);
}


/* ---- rows ---- */

static void
test_exp(void)
{
    float   e;
    double  worst, x;

    worst = 0;

    for (x = -86.9; x <= 0; x += 0.00137) {
        e = llm_row_exp((float) x);
        worst = fmax(worst, fabs(e / exp((double) (float) x) - 1));
    }

    ok(worst < 2.5e-7, "exp within %.3g", worst);
    ok(llm_row_exp(0) == 1 && llm_row_exp(-INFINITY) == 0
       && llm_row_exp(-1000) == 0, "exp at the ends");
}


static void
test_passes(const llm_row_passes_t *pass)
{
    float     row[300], block[5], keep;
    double    sum, want, worst, part[5], other[5];
    uint32_t  n, i, best, bad_max, bad_scan, differ;

    const llm_row_passes_t  *fastest = llm_row_passes(0);

    differ = 0;
    bad_max = 0;
    bad_scan = 0;
    worst = 0;

    for (n = 1; n <= 300; n++) {
        for (i = 0; i < n; i++) {
            row[i] = floorf(noise(3));
        }

        bad_scan += pass->scan(row, n, block) != 0;

        for (best = 0, i = 1; i < n; i++) {
            best = row[i] > row[best] ? i : best;
        }

        bad_max += llm_row_argmax(row, n, block) != best;

        for (want = 0, i = 0; i < n; i++) {
            want += exp((row[i] - (double) row[best]) * 0.625);
        }

        sum = pass->sum_exp(row, n, row[best], 0.625f, part);
        worst = fmax(worst, fabs(sum / want - 1));

        differ += fastest->sum_exp(row, n, row[best], 0.625f, other) != sum
                  || memcmp(part, other, llm_row_blocks(n) * 8) != 0
                  || pass->sum_exp(row, n, row[best], 0.625f, NULL) != sum;

        i = (uint32_t) (uniform() * n);
        keep = row[i];

        row[i] = NAN;
        bad_scan += pass->scan(row, n, block) != 1;
        row[i] = INFINITY;
        bad_scan += pass->scan(row, n, block) != 1;
        row[i] = -INFINITY;
        bad_scan += pass->scan(row, n, block) != 0;
        row[i] = keep;
    }

    is_int(bad_max, 0, "%u wide: the lowest of the largest, rows of 1 to 300",
           pass->width);
    is_int(bad_scan, 0, "%u wide: NaN and plus infinity are found",
           pass->width);
    ok(worst < 3e-7, "%u wide: sums of exp within %.3g", pass->width, worst);
    is_int(differ, 0, "%u wide: the same bits as %u wide", pass->width,
           fastest->width);
}


static void
test_random(void)
{
    double    sum, u;
    uint32_t  i, out;

    /* known answers of Random123 */

    static const struct {
        uint32_t  key[2], counter[4], want[4];
    } known[] = {
        { { 0, 0 }, { 0, 0, 0, 0 },
          { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0xa4093822, 0x299f31d0 },
          { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };

    for (i = 0; i < llm_nelems(known); i++) {
        uint32_t  c[4];

        memcpy(c, known[i].counter, sizeof(c));
        llm_philox(known[i].key, c);
        ok(memcmp(c, known[i].want, sizeof(c)) == 0, "Philox, answer %u", i);
    }

    for (sum = 0, out = 0, i = 0; i < 100000; i++) {
        u = llm_random(7, 1, i);
        out += u < 0 || u >= 1;
        sum += u;
    }

    ok(out == 0 && fabs(sum / i - 0.5) < 0.004, "uniform, mean %.4f",
       sum / i);
    ok(llm_random(1, 0, 0) != llm_random(2, 0, 0)
       && llm_random(1, 0, 0) != llm_random(1, 1, 0)
       && llm_random(1, 0, 0) != llm_random(1, 0, 1)
       && llm_random(1, 0, 0) != llm_random(1ull << 32 | 1, 0, 0),
       "seed, choice and place each count");
}


/* ---- the rest of what sampler.h says ---- */

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
    uint32_t  i;

    test_random();
    test_exp();

    for (i = 0; llm_row_passes(i); i++) {
        test_passes(llm_row_passes(i));
    }

    test_picks();
    test_distributions();
    test_sets();
    test_repeatable();
    test_logprobs();
    test_greedy_and_errors();
    test_edges();
    test_large();

    return done_testing();
}
