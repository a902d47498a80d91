/*
 * The products of kernels/cuda/blas.h for the emulator, enqueued on the stream
 * like a kernel: a plain loop with sums in float32 in the order of K, or with
 * LLM_EMU_MMA the sums of tensor cores.  LLM_EMU_BLAS=0: all are refused, as
 * cublasLt may refuse some.
 */

#include "kernels/cuda/blas.h"

/* most rows of products that are left to our kernels */
#define BLAS_FEW  64

struct llm_blas_s {
    cudaStream_t   stream;
    int            bf16;
};


llm_blas_t *
llm_blas_create(cudaStream_t stream, int bf16, llm_err_t *err)
{
    llm_blas_t  *b;

    b = (llm_blas_t *) malloc(sizeof(llm_blas_t));

    if (b == NULL) {
        (void) llm_fail(err, "no memory for the products");
        return NULL;
    }

    b->stream = stream;
    b->bf16 = bf16;

    return b;
}


void
llm_blas_free(llm_blas_t *b, int alive)
{
    (void) alive;
    free(b);
}


/* element k of row i of a matrix [rows][n]; 0 outside it */

static uint16_t
llm_blas_at(const void *m, size_t ld, size_t rows, size_t i, size_t k,
    size_t n)
{
    return i < rows && k < n ? ((const uint16_t *) m)[i * ld + k]
                             : (uint16_t) 0;
}


/* 16 columns of the result from o on, for 8 rows from r on, each one chain over
   K in the arithmetic of tensor cores */

static void
llm_blas_tile(const llm_blas_args_t &a, int bf16, size_t o, size_t r)
{
    float      d[16][8], *y;
    size_t     i, j, k;
    uint16_t   rows[16][24];

    memset(d, 0, sizeof(d));

    for (k = 0; k < a.n_in; k += 16) {
        for (i = 0; i < 16; i++) {
            for (j = 0; j < 16; j++) {
                rows[i][j] = llm_blas_at(a.w, a.ldw, a.n_out, o + i, k + j,
                                         a.n_in);
            }

            for (j = 0; j < 8; j++) {
                rows[i][16 + j] = llm_blas_at(a.x, a.ldx, a.rows, r + j,
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


static void
llm_blas_run(const llm_blas_args_t &a, int bf16)
{
    float      sum, *row, *y;
    size_t     o, r, k;

    if (emu::mma_rule()) {
        for (o = 0; o < a.n_out; o += 16) {
            for (r = 0; r < a.rows; r += 8) {
                llm_blas_tile(a, bf16, o, r);
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

            for (sum = 0, k = 0; k < a.n_in; k++) {
                sum += row[k] * llm_load16(x + k, bf16);
            }

            y = a.y + r * a.ldy + o;
            *y = a.add ? *y + sum : sum;
        }
    }

    free(row);
}


int
llm_blas_is_prepared(llm_blas_t *b, const llm_blas_args_t *a)
{
    (void) b;
    (void) a;

    /* there are no plans to choose from, but LLM_BLAS_TABLE may ask for a
       table */
    return getenv("LLM_BLAS_TABLE") == nullptr;
}


float
llm_blas_prepare(llm_blas_t *b, const llm_blas_args_t *a, uint32_t least,
    const float *want, float ours)
{
    (void) b;
    (void) a;
    (void) least;
    (void) want;
    (void) ours;

    return 0;
}


int
llm_blas_has_plan(llm_blas_t *b, const llm_blas_args_t *a)
{
    const char  *set;

    (void) b;

    set = getenv("LLM_EMU_BLAS");

    /* few rows: our kernels are what the tests are about */

    return a->rows > BLAS_FEW && (set == nullptr || strcmp(set, "0") != 0);
}


int
llm_blas_linear(llm_blas_t *b, const llm_blas_args_t *a)
{
    int              bf16 = b->bf16;
    llm_blas_args_t  args = *a;

    if (!llm_blas_has_plan(b, a)) {
        return 1;
    }

    emu_enqueue(b->stream, [=]() { llm_blas_run(args, bf16); });

    return 0;
}
