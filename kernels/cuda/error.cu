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
    uint32_t     i;
    llm_cuda_t  *one;

    for (i = 0; i < d->n_team; i++) {
        one = d->team[i];
        one->n_submitted = one->n_begun;
        one->n_ended = one->n_begun;
        one->ended = NULL;
    }
}


int
llm_cuda_fail_lost(llm_err_t *err, int gpu, const char *why)
{
    return llm_fail_with(err, 500, LLM_DEVICE_LOST, NULL, "CUDA: device %d: "
                         "%s; the GPU's context is lost to this process", gpu,
                         why);
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
    int  i, lost;

    if (!d->failed) {
        return LLM_OK;
    }

    d->failed = 0;
    llm_cuda_void(d);

    /* what reads another GPU's memory fails for an error of either; the
       thread's device is d's again in the end */

    for (i = 0, lost = -1; i < LLM_CUDA_MAX_GPUS; i++) {
        lost = (d->peers >> i & 1) && llm_cuda_sticks(i) ? i : lost;
    }

    lost = llm_cuda_sticks(d->gpu->index) ? d->gpu->index : lost;

    if (lost >= 0) {
        return llm_cuda_fail_lost(err, lost, d->why);
    }

    return llm_fail_with(err, 500,
                         d->no_memory ? LLM_DEVICE_MEMORY : LLM_DEVICE_ERROR,
                         NULL, "CUDA: device %d: %s", d->gpu->index, d->why);
}
