/*
 * Matrix products of 16-bit rows through cublasLt; in the emulator through
 * the plain loop of t/gpu/emu/blas.cpp.
 *
 * Invariant: the order of the sum over K depends on the weight's shape and
 * type, never on the number of rows: no algorithm that splits K is ever
 * chosen.
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
    void         *y;                    /* [rows][ldy] */
    uint32_t      ldx;
    uint32_t      ldw;
    uint32_t      ldy;
    int           y_is16;               /* else float32 */
    int           add;                  /* y += */
} llm_blas_args_t;

llm_blas_t *llm_blas_create(cudaStream_t stream, int bf16, llm_err_t *err);
void llm_blas_free(llm_blas_t *b);

/*
 * Times what cublasLt offers for such a product and keeps the fastest; x is
 * read and y overwritten.  Between steps only.
 */
void llm_blas_prepare(llm_blas_t *b, const llm_blas_args_t *a);

/* y = x w^T (+ y), sums in float32; nonzero when cublasLt refuses */
int llm_blas_linear(llm_blas_t *b, const llm_blas_args_t *a);

#endif /* LLM_CUDA_BLAS_H */
