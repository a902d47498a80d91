/*
 * What comes back of a step's logits: the index of each row's largest, and
 * the rows that somebody wants to look at.
 *
 * Invariant: the index is the lowest of the largest logits, as in
 * engine/sample: which thread looks at what does not matter.
 */

#include "kernels/cuda/internal.h"

#define LLM_PICK_THREADS  256


int
llm_cuda_pick_room(llm_cuda_t *d, size_t logits, llm_err_t *err)
{
    size_t  size;

    size = d->opts.max_out * sizeof(uint32_t);

    if (llm_cuda_alloc((void **) &d->best, size, "results", err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (cudaMallocHost(&d->host_logits, logits) != cudaSuccess
        || cudaMallocHost(&d->host_best, size) != cudaSuccess)
    {
        (void) cudaGetLastError();
        llm_cuda_pick_free(d);
        return llm_fail(err, "CUDA: %zu bytes of pinned memory for logits: "
                        "out of memory", logits);
    }

    return LLM_OK;
}


void
llm_cuda_pick_free(llm_cuda_t *d)
{
    llm_cuda_free(d, d->best);

    if (llm_cuda_alive(d)) {
        (void) cudaFreeHost(d->host_logits);
        (void) cudaFreeHost(d->host_best);
    }

    d->best = NULL;
    d->host_logits = NULL;
    d->host_best = NULL;
}


/* is (v, i) before (w, k)? */

static __device__ __forceinline__ int
llm_better(float v, uint32_t i, float w, uint32_t k)
{
    return v > w || (v == w && i < k);
}


/* a block a row */

__global__ void
llm_k_best(const uint32_t *count, const float *logits, uint32_t n,
    uint32_t *best)
{
    float        v, w, *values;
    uint32_t     i, k, half, bad, *ids;
    const float *row;

    LLM_SHARED(mem);

    if (blockIdx.x >= *count) {
        return;
    }

    values = (float *) mem;
    ids = (uint32_t *) (values + LLM_PICK_THREADS);
    row = logits + (size_t) blockIdx.x * n;
    v = -INFINITY;
    k = LLM_NO_BEST;
    bad = 0;

    for (i = threadIdx.x; i < n; i += LLM_PICK_THREADS) {
        w = row[i];
        bad |= !(w < INFINITY);

        if (w > v) {
            v = w;
            k = i;
        }
    }

    /* one that is not finite outdoes all, and has no index */

    values[threadIdx.x] = bad ? INFINITY : v;
    ids[threadIdx.x] = bad ? LLM_NO_BEST : k;
    __syncthreads();

    for (half = LLM_PICK_THREADS / 2; half > 0; half /= 2) {
        i = threadIdx.x + half;

        if (threadIdx.x < half
            && llm_better(values[i], ids[i], values[threadIdx.x],
                          ids[threadIdx.x]))
        {
            values[threadIdx.x] = values[i];
            ids[threadIdx.x] = ids[i];
        }

        __syncthreads();
    }

    if (threadIdx.x == 0) {
        best[blockIdx.x] = ids[0];
    }
}


void
llm_cuda_pick(llm_cuda_t *d)
{
    if (d->logits == NULL || d->out_rows == 0) {
        return;
    }

    llm_launch(llm_k_best, d->out_rows, LLM_PICK_THREADS,
               LLM_PICK_THREADS * (sizeof(float) + sizeof(uint32_t)),
               d->stream, d->step.counts + LLM_N_OUT,
               (const float *) d->logits->data, d->logits->cols, d->best);
}


void
llm_cuda_pick_read(llm_cuda_t *d)
{
    size_t    cols;
    uint32_t  i, end;

    if (d->logits == NULL || d->n_out == 0) {
        return;
    }

    cols = d->logits->cols;

    (void) llm_cuda_check(d,
        cudaMemcpyAsync(d->host_best, d->best, d->n_out * sizeof(uint32_t),
                        cudaMemcpyDeviceToHost, d->stream),
        "read of the results");

    for (i = 0; i < d->n_out; i = end + 1) {
        for (end = i; end < d->n_out && !(d->greedy && d->greedy[end]); end++)
        {
            /* void */
        }

        if (end > i) {
            (void) llm_cuda_check(d,
                cudaMemcpyAsync(d->host_logits + i * cols,
                                (const float *) d->logits->data + i * cols,
                                (end - i) * cols * sizeof(float),
                                cudaMemcpyDeviceToHost, d->stream),
                "read of the logits");
        }
    }
}


const uint32_t *
llm_cuda_best(llm_dev_t *dev)
{
    return ((llm_cuda_t *) dev)->host_best;
}
