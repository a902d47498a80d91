/*
 * blas.h in a build without cuBLAS: all products are refused, and our own
 * kernels compute them.
 */

#include "kernels/cuda/blas.h"

struct llm_blas_s {
    int  none;
};


llm_blas_t *
llm_blas_create(cudaStream_t stream, int bf16, llm_err_t *err)
{
    llm_blas_t  *b;

    (void) stream;
    (void) bf16;

    b = (llm_blas_t *) calloc(1, sizeof(llm_blas_t));
    if (b == NULL) {
        (void) llm_fail(err, "no memory for the products");
    }

    return b;
}


void
llm_blas_free(llm_blas_t *b, int alive)
{
    (void) alive;
    free(b);
}


int
llm_blas_is_prepared(llm_blas_t *b, const llm_blas_args_t *a)
{
    (void) b;
    (void) a;

    return 1;
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

    return -1;
}


int
llm_blas_has_plan(llm_blas_t *b, const llm_blas_args_t *a)
{
    (void) b;
    (void) a;

    return 0;
}


int
llm_blas_linear(llm_blas_t *b, const llm_blas_args_t *a)
{
    (void) b;
    (void) a;

    return 1;
}
