/*
 * Passes over a row of logits; see rows.h.
 *
 * Invariant: the order of every operation is fixed by the source (eight
 * lanes, then the lanes in order), never by what the machine's registers
 * hold, and products are never fused with sums.
 */

#include "engine/sample/rows.h"

#include <math.h>
#include <string.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize ("fp-contract=off")
/* the vectors below never cross a call */
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#define LANES  8

typedef float    llm_f8_t __attribute__((vector_size(LANES * 4)));
typedef int32_t  llm_i8_t __attribute__((vector_size(LANES * 4)));

#define LOG2E    1.44269504f
#define LN2_HIGH 0.693359375f           /* exact in 10 bits */
#define LN2_LOW  -2.12194440e-4f
#define ROUND    12582912.0f            /* 1.5 * 2^23: adding it rounds */
#define LOWEST   -87.0f


/*
 * exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2, and the series
 * of exp(r) to its seventh power.  One text for a float and for a vector.
 */

#define llm_exp_body(x, n, r, p)                                             \
    n = (x) * LOG2E + ROUND;                                                 \
    n = n - ROUND;                                                           \
    r = (x) - n * LN2_HIGH;                                                  \
    r = r - n * LN2_LOW;                                                     \
    p = r * (1.0f / 5040) + (1.0f / 720);                                    \
    p = p * r + (1.0f / 120);                                                \
    p = p * r + (1.0f / 24);                                                 \
    p = p * r + (1.0f / 6);                                                  \
    p = p * r + 0.5f;                                                        \
    p = p * r + 1.0f;                                                        \
    p = p * r + 1.0f


float
llm_row_exp(float x)
{
    float    n, r, p;
    int32_t  bits;

    if (!(x >= LOWEST)) {
        return 0;
    }

    llm_exp_body(x, n, r, p);

    memcpy(&bits, &p, 4);
    bits += (int32_t) n * (1 << 23);
    memcpy(&p, &bits, 4);

    return p;
}


static inline __attribute__((always_inline)) void
llm_exp8(const llm_f8_t *px, llm_f8_t *out)
{
    llm_f8_t  x, n, r, p;
    llm_i8_t  keep;

    /* what is too small is computed at the limit and then made 0 */

    keep = *px >= LOWEST;
    x = (llm_f8_t) { 0 } + LOWEST;
    x = (llm_f8_t) (((llm_i8_t) *px & keep) | ((llm_i8_t) x & ~keep));

    llm_exp_body(x, n, r, p);

    p = (llm_f8_t) ((llm_i8_t) p
                    + __builtin_convertvector(n, llm_i8_t) * (1 << 23));

    *out = (llm_f8_t) ((llm_i8_t) p & keep);
}


int
llm_row_scan(const float *row, uint32_t n, float *block_max)
{
    int       bad;
    float     m;
    uint32_t  b, i, end, j;
    llm_f8_t  v, max;
    llm_i8_t  gt, worse;

    worse = (llm_i8_t) { 0 };
    bad = 0;

    for (b = 0, i = 0; i < n; b++) {
        end = (n - i < LLM_ROW_BLOCK) ? n : i + LLM_ROW_BLOCK;
        max = (llm_f8_t) { 0 } - INFINITY;

        for ( /* void */ ; i + LANES <= end; i += LANES) {
            memcpy(&v, row + i, sizeof(v));
            gt = v > max;
            max = (llm_f8_t) (((llm_i8_t) v & gt) | ((llm_i8_t) max & ~gt));
            worse |= ~(v < INFINITY);
        }

        m = -INFINITY;

        for (j = 0; j < LANES; j++) {
            m = (max[j] > m) ? max[j] : m;
        }

        for ( /* void */ ; i < end; i++) {
            m = (row[i] > m) ? row[i] : m;
            bad |= !(row[i] < INFINITY);
        }

        block_max[b] = m;
    }

    for (j = 0; j < LANES; j++) {
        bad |= worse[j] != 0;
    }

    return bad;
}


uint32_t
llm_row_argmax(const float *row, uint32_t n, const float *block_max)
{
    uint32_t  b, best, i;

    best = 0;

    for (b = 1; b < llm_row_blocks(n); b++) {
        if (block_max[b] > block_max[best]) {
            best = b;
        }
    }

    i = best * LLM_ROW_BLOCK;

    while (row[i] != block_max[best]) {
        i++;
    }

    return i;
}


double
llm_row_sum_exp(const float *row, uint32_t n, float max, float scale,
    double *block_sum)
{
    float     tail;
    double    sum, part;
    uint32_t  b, i, end, j;
    llm_f8_t  v, e, acc;

    sum = 0;

    for (b = 0, i = 0; i < n; b++) {
        end = (n - i < LLM_ROW_BLOCK) ? n : i + LLM_ROW_BLOCK;
        acc = (llm_f8_t) { 0 };

        for ( /* void */ ; i + LANES <= end; i += LANES) {
            memcpy(&v, row + i, sizeof(v));
            v = (v - max) * scale;
            llm_exp8(&v, &e);
            acc += e;
        }

        part = 0;

        for (j = 0; j < LANES; j++) {
            part += acc[j];
        }

        for ( /* void */ ; i < end; i++) {
            tail = (row[i] - max) * scale;
            part += llm_row_exp(tail);
        }

        if (block_sum) {
            block_sum[b] = part;
        }

        sum += part;
    }

    return sum;
}
