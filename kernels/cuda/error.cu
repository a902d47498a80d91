/*
 * Errors of a GPU: the first one of a step is remembered and reported once.
 *
 * Most errors are sticky: every later call of the process on that GPU fails,
 * even a reset.  The context is then lost to all devices on the GPU until the
 * process ends (LLM_DEVICE_LOST).  After other errors the device is closed and
 * opened again.
 */

#include "kernels/cuda/internal.h"

#include <stdio.h>


/* 1 for each GPU whose context is lost; set and read by any thread, never
   cleared */
static int  llm_cuda_lost[LLM_CUDA_MAX_GPUS];


int
llm_cuda_alive(const llm_cuda_gpu_t *gpu)
{
    return !__atomic_load_n(&llm_cuda_lost[gpu->index], __ATOMIC_RELAXED);
}


int
llm_cuda_check(llm_cuda_t *d, cudaError_t e, const char *what)
{
    if (e == cudaSuccess) {
        return 0;
    }

    if (!d->failed) {
        d->failed = 1;
        d->no_memory = (e == cudaErrorMemoryAllocation);
        snprintf(d->why, sizeof(d->why), "%s: %s", what,
                 cudaGetErrorString(e));
    }

    return 1;
}


void
llm_cuda_void(llm_cuda_t *d)
{
    d->n_submitted = d->n_begun;
    d->n_ended = d->n_begun;
    d->ended = NULL;
}


int
llm_cuda_fail_lost(llm_err_t *err, const char *why)
{
    return llm_fail_with(err, 500, LLM_DEVICE_LOST, NULL, "CUDA: %s; the "
                         "GPU's context is lost to this process", why);
}


/* does every call on a GPU fail from now on?  Then its context is lost. */

static int
llm_cuda_sticks(int gpu)
{
    (void) cudaSetDevice(gpu);
    (void) cudaDeviceSynchronize();
    (void) cudaGetLastError();

    if (cudaDeviceSynchronize() == cudaSuccess) {
        return 0;
    }

    __atomic_store_n(&llm_cuda_lost[gpu], 1, __ATOMIC_RELAXED);

    return 1;
}


int
llm_cuda_report(llm_cuda_t *d, llm_err_t *err)
{
    int  lost;

    if (!d->failed) {
        return LLM_OK;
    }

    d->failed = 0;
    llm_cuda_void(d);

    /* a copy from another GPU fails for an error of either; the thread's device
       is d's again in the end */

    lost = d->received && llm_cuda_sticks(d->sender);

    if (llm_cuda_sticks(d->gpu->index) || lost) {
        return llm_cuda_fail_lost(err, d->why);
    }

    return llm_fail_with(err, 500,
                         d->no_memory ? LLM_DEVICE_MEMORY : LLM_DEVICE_ERROR,
                         NULL, "CUDA: %s", d->why);
}
