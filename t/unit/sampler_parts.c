/*
 * What the sampler is made of: random numbers by the known answers of Philox,
 * passes over a row against plain loops, picks against full sorts.
 */

#include "engine/sample/picks.h"
#include "engine/sample/random.h"
#include "t/unit/sampler_data.h"


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

        bad_max += llm_row_argmax(row, n, block) != best
                   || llm_row_best(row, n) != best;

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
        u = llm_random(7, 1, i, 0);
        out += u < 0 || u >= 1;
        sum += u;
    }

    ok(out == 0 && fabs(sum / i - 0.5) < 0.004, "uniform, mean %.4f",
       sum / i);
    ok(llm_random(1, 0, 0, 0) != llm_random(2, 0, 0, 0)
       && llm_random(1, 0, 0, 0) != llm_random(1, 1, 0, 0)
       && llm_random(1, 0, 0, 0) != llm_random(1, 0, 1, 0)
       && llm_random(1, 0, 0, 0) != llm_random(1ull << 32 | 1, 0, 0, 0),
       "seed, choice and place each count");
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

    return done_testing();
}
