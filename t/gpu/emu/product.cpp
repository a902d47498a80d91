/*
 * Products as cublasLt computes them, on the emulator: a plain loop with sums in
 * float32 in the order of K, or with LLM_EMU_MMA the sums of tensor cores.
 */

#include "t/gpu/emu/product.h"


/* element k of row i of a matrix [rows][n]; 0 outside it */

static uint16_t
at(const void *m, size_t ld, size_t rows, size_t i, size_t k,
    size_t n)
{
    return i < rows && k < n ? ((const uint16_t *) m)[i * ld + k]
                             : (uint16_t) 0;
}


/* 16 columns of the result from o on, for 8 rows from r on, each one chain over
   K in the arithmetic of tensor cores */

static void
tile(const llm_blas_args_t &a, int bf16, bool backwards, size_t o, size_t r)
{
    float      d[16][8], *y;
    size_t     i, j, n, k;
    uint16_t   rows[16][24];

    memset(d, 0, sizeof(d));

    for (n = 0; n < a.n_in; n += 16) {
        k = backwards ? (a.n_in - 1 - n) / 16 * 16 : n;

        for (i = 0; i < 16; i++) {
            for (j = 0; j < 16; j++) {
                rows[i][j] = at(a.w, a.ldw, a.n_out, o + i, k + j,
                                         a.n_in);
            }

            for (j = 0; j < 8; j++) {
                rows[i][16 + j] = at(a.x, a.ldx, a.rows, r + j,
                                              k + i, a.n_in);
            }
        }

        emu::mma_16(rows, bf16, d);
    }

    for (i = 0; i < 16 && o + i < a.n_out; i++) {
        for (j = 0; j < 8 && r + j < a.rows; j++) {
            y = a.y + (r + j) * a.ldy + o + i;
            *y = a.add ? *y + d[i][j] : d[i][j];
        }
    }
}


void
emu_product(const llm_blas_args_t &a, int bf16, bool backwards)
{
    float      sum, *row, *y;
    size_t     o, r, n, k;

    if (emu::mma_rule()) {
        for (o = 0; o < a.n_out; o += 16) {
            for (r = 0; r < a.rows; r += 8) {
                tile(a, bf16, backwards, o, r);
            }
        }

        return;
    }

    row = (float *) malloc(a.n_in * sizeof(float));

    for (o = 0; row && o < a.n_out; o++) {
        for (k = 0; k < a.n_in; k++) {
            row[k] = llm_load16((const uint16_t *) a.w + o * a.ldw + k, bf16);
        }

        for (r = 0; r < a.rows; r++) {
            const uint16_t  *x = (const uint16_t *) a.x + r * a.ldx;

            for (sum = 0, n = 0; n < a.n_in; n++) {
                k = backwards ? a.n_in - 1 - n : n;
                sum += row[k] * llm_load16(x + k, bf16);
            }

            y = a.y + r * a.ldy + o;
            *y = a.add ? *y + sum : sum;
        }
    }

    free(row);
}
