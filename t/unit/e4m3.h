/*
 * The numbers of e4m3 for tests, from a table of its codes, and matrices as
 * devices with fp8 have them.
 */

#ifndef LLM_TEST_E4M3_H
#define LLM_TEST_E4M3_H

#include "t/unit/ops.h"

#include <math.h>

/* those that are not negative, by their codes */

static float  e4m3_numbers[127];


static inline void
e4m3_make(void)
{
    int  e;

    for (e = 0; e < 127; e++) {
        e4m3_numbers[e] = e < 8 ? ldexpf((float) e, -9)
                                : ldexpf(8.0f + (float) (e % 8), e / 8 - 10);
    }
}


/* the nearest of the numbers; of two, the one with the even code */

static inline float
e4m3_nearest(float x)
{
    float  d, best, least;
    int    e;

    best = 0;
    least = INFINITY;

    for (e = 0; e < 127; e++) {
        d = fabsf(fabsf(x) - e4m3_numbers[e]);

        if (d < least || (d == least && e % 2 == 0)) {
            least = d;
            best = e4m3_numbers[e];
        }
    }

    return copysignf(best, x);
}


static inline float
e4m3_largest(const float *x, size_t n)
{
    float   max;
    size_t  i;

    for (max = 0, i = 0; i < n; i++) {
        max = fmaxf(max, fabsf(x[i]));
    }

    return max;
}


/* rounds a row whose largest number becomes 448 */

static inline void
e4m3_round(float *row, size_t n)
{
    float   scale;
    size_t  i;

    scale = e4m3_largest(row, n) / 448.0f;

    for (i = 0; i < n && scale > 0; i++) {
        row[i] = e4m3_nearest(row[i] / scale) * scale;
    }
}


/* a matrix as fp8 weights have it, float32 */

static inline uint8_t *
e4m3_matrix(uint32_t type, const uint8_t *m, uint32_t n_out, uint32_t n_in)
{
    float   *w;
    size_t   i;

    w = ops_alloc((size_t) n_out * n_in * sizeof(float));

    for (i = 0; i < n_out; i++) {
        llm_dequantize(type, m + i * llm_type_row_size(type, n_in),
                       w + i * n_in, n_in);
        e4m3_round(w + i * n_in, n_in);
    }

    return (uint8_t *) w;
}

#endif /* LLM_TEST_E4M3_H */
