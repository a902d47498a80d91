/*
 * Passes over a row of logits; see rows.h.
 *
 * Invariant: the order of every operation is fixed by the source, and
 * products are never fused with sums.
 */

#include "engine/sample/rows.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize ("fp-contract=off")
#endif

#define LOG2E    1.44269504f
#define LN2_HIGH 0.693359375f           /* exact in 10 bits */
#define LN2_LOW  -2.12194440e-4f
#define ROUND    12582912.0f            /* 1.5 * 2^23: adding it rounds */
#define LOWEST   -87.0f


/*
 * exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2, with the series
 * of exp(r) up to the seventh power.  A macro, for floats and for vectors.
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


typedef float  llm_f4_t __attribute__((vector_size(16)));


/* vectors of four floats, which every machine has */

#define W        4
#define P(name)  name##4
#define TARGET
#include "engine/sample/rows_pass.h"

#if defined(__x86_64__)

#define W        8
#define P(name)  name##8
#define TARGET   __attribute__((target("avx2")))
#include "engine/sample/rows_pass.h"

#define W        16
#define P(name)  name##16
#define TARGET   __attribute__((target("avx512f")))
#include "engine/sample/rows_pass.h"

#endif


const llm_row_passes_t *
llm_row_passes(uint32_t i)
{
    static const llm_row_passes_t  passes4 = { 4, llm_scan4, llm_sum4 };

#if defined(__x86_64__)

    static const llm_row_passes_t  passes8 = { 8, llm_scan8, llm_sum8 };
    static const llm_row_passes_t  passes16 = { 16, llm_scan16, llm_sum16 };

    if (__builtin_cpu_supports("avx512f") && i-- == 0) {
        return &passes16;
    }

    if (__builtin_cpu_supports("avx2") && i-- == 0) {
        return &passes8;
    }

#endif

    return i == 0 ? &passes4 : NULL;
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


uint32_t
llm_row_best(const float *row, uint32_t n)
{
    float                    max, most;
    uint32_t                 i, at, end, best;
    const llm_row_passes_t  *pass;

    pass = llm_row_passes(0);
    at = 0;
    most = -INFINITY;

    for (i = 0; i < n; i = end) {
        end = n - i > LLM_ROW_BLOCK ? i + LLM_ROW_BLOCK : n;
        (void) pass->scan(row + i, end - i, &max);

        if (max > most) {
            most = max;
            at = i;
        }
    }

    end = n - at > LLM_ROW_BLOCK ? at + LLM_ROW_BLOCK : n;

    for (best = at, i = at + 1; i < end; i++) {
        best = row[i] > row[best] ? i : best;
    }

    return best;
}
