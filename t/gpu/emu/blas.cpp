/*
 * The products of kernels/cuda/blas.h for the emulator, without cublasLt: there
 * is a plan for each of many rows, which is enqueued on the stream like a kernel
 * (product.cpp).  LLM_EMU_BLAS=0: all are refused, as cublasLt may refuse some.
 * blas.cu itself runs in t/unit/emu_blas.c, over the cublasLt of cublas/.
 */

#include "kernels/cuda/blas.h"
#include "t/gpu/emu/product.h"

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

    emu_enqueue(b->stream, [=]() { emu_product(args, bf16); });

    return 0;
}
