/*
 * Products of 16-bit weights through cublasLt; the emulator computes those with
 * many rows in the loop of t/gpu/emu/blas.cpp.
 *
 * Invariant: a product has the bits of llm_linear_16(), or is refused.
 * cublasLt does not promise that, so it is tested when a weight is loaded: a
 * candidate must give the bits of our kernel.  Candidates that split K are
 * not tried.
 *
 * llm_blas_t is owned by its device; calls enqueue on the device's stream.
 */

#ifndef LLM_CUDA_BLAS_H
#define LLM_CUDA_BLAS_H

#include "kernels/cuda/internal.h"

typedef struct llm_blas_s  llm_blas_t;

typedef struct {
    uint32_t      rows;
    uint32_t      n_out;
    uint32_t      n_in;
    const void   *x;                    /* [rows][ldx], 16-bit */
    const void   *w;                    /* [n_out][ldw], 16-bit */
    float        *y;                    /* [rows][ldy] */
    uint32_t      ldx;
    uint32_t      ldw;
    uint32_t      ldy;
    int           add;                  /* y += */
} llm_blas_args_t;

llm_blas_t *llm_blas_create(cudaStream_t stream, int bf16, llm_err_t *err);
/* alive: llm_cuda_alive(); b may be NULL */
void llm_blas_free(llm_blas_t *b, int alive);

/* the largest number of rows with the same plan as `rows` */

static inline uint32_t
llm_blas_bucket(uint32_t rows)
{
    uint32_t  b;

    for (b = 1; b < rows; b = b == 1 ? 8 : b * 2) { /* void */ }

    return b;
}


/* has llm_blas_prepare() been called for products with this many rows? */
int llm_blas_is_prepared(llm_blas_t *b, const llm_blas_args_t *a);

/*
 * Times cublasLt's candidates for such a product and keeps the fastest one that
 * gives the values at want [rows][ldy], if it takes less than `ours`
 * milliseconds (negative: unknown).  `least` is the smallest number of rows
 * that the plan is for; its results are compared, too.  y is overwritten.
 * Returns the milliseconds of the fastest candidate with the right bits, or a
 * negative number if there is none.  Between steps only.
 */
float llm_blas_prepare(llm_blas_t *b, const llm_blas_args_t *a,
    uint32_t least, const float *want, float ours);

/* is there a plan for the product? */
int llm_blas_has_plan(llm_blas_t *b, const llm_blas_args_t *a);

/* y = x w^T (+ y), sums in float32; returns nonzero if there is no plan for the
   product, or if it could not be enqueued */
int llm_blas_linear(llm_blas_t *b, const llm_blas_args_t *a);

#endif /* LLM_CUDA_BLAS_H */
