/*
 * The device's memory: vectors, and copies of rows to and from the host.
 *
 * All copies go through the device's stream: the legacy stream, which
 * cudaMemcpy() and cudaMemset() use, does not wait for a non-blocking stream,
 * nor the other way round.
 *
 * Memory of a lost context cannot be freed: llm_cuda_free(), which frees all
 * buffers, checks that.
 */

#include "kernels/cuda/internal.h"

#include <stdio.h>


int
llm_cuda_alloc(void **p, size_t size, const char *what, llm_err_t *err)
{
    int          device;
    cudaError_t  e;

    e = cudaMalloc((uint8_t **) p, llm_max(size, (size_t) 1));

    if (e != cudaSuccess) {
        *p = NULL;
        (void) cudaGetLastError();      /* or the next launch would report e */
        (void) cudaGetDevice(&device);
        return llm_fail(err, "CUDA: device %d: %zu bytes for %s: %s", device,
                        size, what, cudaGetErrorString(e));
    }

    return LLM_OK;
}


void
llm_cuda_free(const llm_cuda_t *d, void *p)
{
    if (llm_cuda_alive(d->gpu)) {
        (void) cudaFree(p);
    }
}


int
llm_cuda_clear(llm_cuda_t *d, void *p, size_t size, const char *what,
    llm_err_t *err)
{
    (void) llm_cuda_check(d, cudaMemsetAsync(p, 0, size, d->stream), what);
    (void) llm_cuda_check(d, cudaStreamSynchronize(d->stream), what);

    return llm_cuda_report(d, err);
}


void
llm_cuda_put(llm_cuda_t *d, void *dst, const void *src, size_t size,
    const char *what)
{
    (void) llm_cuda_check(d, cudaMemcpyAsync(dst, src, size,
                                             cudaMemcpyHostToDevice,
                                             d->stream), what);
    (void) llm_cuda_check(d, cudaStreamSynchronize(d->stream), what);
}


/* ---- buffers ---- */

llm_vec_t *
llm_cuda_vec_create(llm_exec_t *exec, const float *src, uint32_t n,
    llm_err_t *err)
{
    llm_vec_t   *v;
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    v = (llm_vec_t *) calloc(1, sizeof(llm_vec_t));
    if (v == NULL) {
        (void) llm_fail(err, "no memory for a vector");
        return NULL;
    }

    v->n = n;

    if (llm_cuda_alloc((void **) &v->data, n * sizeof(float), "a vector",
                       err)
        != LLM_OK)
    {
        free(v);
        return NULL;
    }

    llm_cuda_put(d, v->data, src, n * sizeof(float), "upload of a vector");

    if (llm_cuda_report(d, err) != LLM_OK) {
        llm_cuda_vec_free(exec, v);
        return NULL;
    }

    return v;
}


void
llm_cuda_vec_free(llm_exec_t *exec, llm_vec_t *v)
{
    if (v) {
        llm_cuda_free((llm_cuda_t *) exec, v->data);
        free(v);
    }
}


/* ---- rows to and from the host ---- */

__global__ void
llm_k_to_float(const uint16_t *x, float *y, size_t n, int bf16)
{
    size_t  i;

    i = (size_t) blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        y[i] = llm_load16(&x[i], bf16);
    }
}


__global__ void
llm_k_from_float(const float *x, uint16_t *y, size_t n, int bf16)
{
    size_t  i;

    i = (size_t) blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        y[i] = llm_store16(x[i], bf16);
    }
}


static int
llm_cuda_rows_room(llm_cuda_t *d, size_t size)
{
    if (size > d->host_rows_cap) {
        (void) cudaFreeHost(d->host_rows);
        d->host_rows = NULL;
        d->host_rows_cap = 0;

        if (llm_cuda_check(d, cudaMallocHost(&d->host_rows, size),
                           "pinned memory"))
        {
            return LLM_ERROR;
        }

        d->host_rows_cap = size;
    }

    if (size > d->dev_rows_cap) {
        llm_cuda_free(d, d->dev_rows);
        d->dev_rows = NULL;
        d->dev_rows_cap = 0;

        if (llm_cuda_check(d, cudaMalloc(&d->dev_rows, size),
                           "memory for rows"))
        {
            return LLM_ERROR;
        }

        d->dev_rows_cap = size;
    }

    return LLM_OK;
}


/*
 * Logits and states were copied by end().  Other buffers are read for tests
 * only; without memory map() returns NULL, and the next end() reports why.
 */

const float *
llm_cuda_map(llm_exec_t *exec, const llm_act_t *a, uint32_t row, uint32_t n)
{
    size_t        count;
    const float  *src;
    llm_cuda_t   *d = (llm_cuda_t *) exec;

    if (a == d->logits && d->ended && row + n <= d->ended->n_out) {
        return d->host_logits + (size_t) row * a->cols;
    }

    if (a == d->hidden && d->ended && row + n <= d->ended->n_out) {
        return d->host_hidden + (size_t) row * a->cols;
    }

    count = (size_t) n * a->cols;

    if (llm_cuda_rows_room(d, count * sizeof(float)) != LLM_OK) {
        return NULL;
    }

    src = (const float *) a->data + (size_t) row * a->cols;

    if (a->is16) {
        llm_launch(llm_k_to_float, (unsigned) ((count + 255) / 256), 256, 0,
                   d->stream,
                   (const uint16_t *) a->data + (size_t) row * a->cols,
                   d->dev_rows, count, d->bf16);
        src = d->dev_rows;
    }

    (void) llm_cuda_check(d, cudaMemcpyAsync(d->host_rows, src,
                                             count * sizeof(float),
                                             cudaMemcpyDeviceToHost,
                                             d->stream), "read of rows");
    (void) llm_cuda_check(d, cudaStreamSynchronize(d->stream),
                          "read of rows");

    return d->host_rows;
}


void
llm_cuda_write(llm_exec_t *exec, llm_act_t *a, uint32_t row, uint32_t n,
    const float *src)
{
    size_t       count;
    float       *dst;
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    count = (size_t) n * a->cols;

    if (llm_cuda_rows_room(d, count * sizeof(float)) != LLM_OK) {
        return;
    }

    dst = a->is16 ? d->dev_rows : (float *) a->data + (size_t) row * a->cols;

    llm_cuda_put(d, dst, src, count * sizeof(float), "write of rows");

    if (a->is16) {
        llm_launch(llm_k_from_float, (unsigned) ((count + 255) / 256), 256,
                   0, d->stream, (const float *) d->dev_rows,
                   (uint16_t *) a->data + (size_t) row * a->cols, count,
                   d->bf16);
        (void) llm_cuda_check(d, cudaStreamSynchronize(d->stream),
                              "write of rows");
    }
}
