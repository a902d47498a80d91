/*
 * Buffers of activations.  The first one for logits comes with memory for
 * draws, the first one for states with pinned memory for its copy on the host.
 */

#include "kernels/cuda/internal.h"


llm_act_t *
llm_cuda_act_create(llm_exec_t *exec, uint32_t max_rows, uint32_t cols,
    llm_act_kind_t kind, llm_err_t *err)
{
    size_t       size;
    llm_act_t   *a;
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    a = (llm_act_t *) calloc(1, sizeof(llm_act_t));
    if (a == NULL) {
        (void) llm_fail(err, "no memory for activations");
        return NULL;
    }

    a->cols = cols;
    a->kind = kind;
    a->is16 = kind == LLM_ACT_VALUE;

    size = (size_t) max_rows * cols * (a->is16 ? 2 : 4);

    if (llm_cuda_alloc(&a->data, size, "activations", err) != LLM_OK) {
        free(a);
        return NULL;
    }

    /* operations also compute the bucket's rows beyond those of the step */

    if (llm_cuda_clear(d, a->data, size, "clearing of activations", err)
        != LLM_OK)
    {
        llm_cuda_act_free(exec, a);
        return NULL;
    }

    if (kind == LLM_ACT_LOGITS && d->logits == NULL) {

        if (llm_cuda_pick_room(d, max_rows, cols, err) != LLM_OK) {
            llm_cuda_act_free(exec, a);
            return NULL;
        }

        d->logits = a;
    }

    if (kind == LLM_ACT_HIDDEN && d->hidden == NULL) {

        if (cudaMallocHost(&d->host_hidden, size) != cudaSuccess) {
            (void) cudaGetLastError();
            d->host_hidden = NULL;
            llm_cuda_act_free(exec, a);
            (void) llm_fail(err, "CUDA: %zu bytes of pinned memory for "
                            "states: out of memory", size);
            return NULL;
        }

        d->hidden = a;
    }

    return a;
}


void
llm_cuda_act_free(llm_exec_t *exec, llm_act_t *a)
{
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    if (a == NULL) {
        return;
    }

    if (a == d->logits) {
        llm_cuda_pick_free(d);
        d->logits = NULL;
    }

    if (a == d->hidden) {
        if (llm_cuda_alive(d->gpu)) {
            (void) cudaFreeHost(d->host_hidden);
        }

        d->host_hidden = NULL;
        d->hidden = NULL;
    }

    llm_cuda_free(d, a->data);
    free(a);
}


void
llm_cuda_act_cols(llm_act_t *a, uint32_t cols)
{
    a->cols = cols;
}
