/*
 * The device's memory: vectors, KV pages, and copies of rows to and from the
 * host.
 *
 * All copies are in the device's stream: the legacy stream, which
 * cudaMemcpy() and cudaMemset() use, does not wait for a non-blocking stream,
 * nor the other way round.
 *
 * Memory of a lost context cannot be freed: llm_cuda_free(), through which
 * all is freed, checks that.
 */

#include "kernels/cuda/internal.h"

#include <stdio.h>


int
llm_cuda_alloc(void **p, size_t size, const char *what, llm_err_t *err)
{
    cudaError_t  e;

    e = cudaMalloc((uint8_t **) p, llm_max(size, (size_t) 1));

    if (e != cudaSuccess) {
        *p = NULL;
        (void) cudaGetLastError();      /* or the next launch would report
                                           it */
        return llm_fail(err, "CUDA: %zu bytes for %s: %s", size, what,
                        cudaGetErrorString(e));
    }

    return LLM_OK;
}


void
llm_cuda_free(const llm_cuda_t *d, void *p)
{
    if (llm_cuda_alive(d)) {
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
llm_cuda_vec_create(llm_dev_t *dev, const float *src, uint32_t n,
    llm_err_t *err)
{
    llm_vec_t   *v;
    llm_cuda_t  *d = (llm_cuda_t *) dev;

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
        llm_cuda_vec_free(dev, v);
        return NULL;
    }

    return v;
}


void
llm_cuda_vec_free(llm_dev_t *dev, llm_vec_t *v)
{
    if (v) {
        llm_cuda_free((llm_cuda_t *) dev, v->data);
        free(v);
    }
}


size_t
llm_cuda_kv_page_size(llm_dev_t *dev, const llm_kv_opts_t *o)
{
    int  fp8 = ((llm_cuda_t *) dev)->opts.kv_fp8;

    return (size_t) o->n_layers * o->n_kv_heads
           * (llm_kv_block(o->head_dim_k, fp8)
              + llm_kv_block(o->head_dim_v, fp8));
}


void
llm_cuda_kv_free(llm_dev_t *dev, llm_kv_t *kv)
{
    llm_cuda_t  *d = (llm_cuda_t *) dev;

    if (kv) {
        llm_cuda_free(d, kv->k);
        llm_cuda_free(d, kv->v);
        free(kv);
    }
}


/*
 * Partial results of split attention: enough for every page to be in a split
 * of one sequence; sequences that share pages may need more, and those that
 * find no room are not split.
 */

static int
llm_cuda_partial(llm_cuda_t *d, const llm_kv_opts_t *o, llm_err_t *err)
{
    uint32_t  n;

    n = o->n_pages / (LLM_CUDA_KV_SPLIT / LLM_KV_PAGE) + d->opts.max_seqs;

    llm_cuda_free(d, d->partial);
    d->partial = NULL;

    if (llm_cuda_alloc((void **) &d->partial,
                       (size_t) n * o->n_heads * (o->head_dim_v + 2)
                       * sizeof(float), "split attention", err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    d->partial_cap = n;

    return LLM_OK;
}


llm_kv_t *
llm_cuda_kv_create(llm_dev_t *dev, const llm_kv_opts_t *o, llm_err_t *err)
{
    size_t       k, v;
    llm_kv_t    *kv;
    llm_cuda_t  *d = (llm_cuda_t *) dev;

    kv = (llm_kv_t *) calloc(1, sizeof(llm_kv_t));
    if (kv == NULL) {
        (void) llm_fail(err, "no memory for the KV cache");
        return NULL;
    }

    kv->opts = *o;
    if (o->head_dim_k > 256 || o->head_dim_v > 256) {
        free(kv);
        (void) llm_fail(err, "CUDA: heads of %u and %u dimensions, 256 is "
                        "the most", o->head_dim_k, o->head_dim_v);
        return NULL;
    }

    kv->k_page = o->n_kv_heads * llm_kv_block(o->head_dim_k, d->opts.kv_fp8);
    kv->v_page = o->n_kv_heads * llm_kv_block(o->head_dim_v, d->opts.kv_fp8);

    k = kv->k_page * o->n_pages * o->n_layers;
    v = kv->v_page * o->n_pages * o->n_layers;

    /* slots that were never written are masked, but NaN times zero is NaN:
       clear them */

    if (llm_cuda_partial(d, o, err) != LLM_OK
        || llm_cuda_alloc((void **) &kv->k, k, "the KV cache", err) != LLM_OK
        || llm_cuda_alloc((void **) &kv->v, v, "the KV cache", err) != LLM_OK)
    {
        llm_cuda_kv_free(dev, kv);
        return NULL;
    }

    if (llm_cuda_clear(d, kv->k, k, "clearing of the KV cache", err) != LLM_OK
        || llm_cuda_clear(d, kv->v, v, "clearing of the KV cache", err)
           != LLM_OK)
    {
        llm_cuda_kv_free(dev, kv);
        return NULL;
    }

    return kv;
}


/*
 * A row of blocks copies one page of a layer, which is a multiple of 16
 * bytes.  cudaMemcpy2D() has a limit on the pitch that larger caches exceed.
 */

__global__ void
llm_k_kv_copy(uint8_t *pages, size_t size, size_t n_pages, uint32_t src,
    uint32_t dst)
{
    size_t        i, n;
    uint4        *to;
    const uint4  *from;

    pages += blockIdx.y * n_pages * size;
    from = (const uint4 *) (pages + src * size);
    to = (uint4 *) (pages + dst * size);
    n = size / sizeof(uint4);

    for (i = (size_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (size_t) gridDim.x * blockDim.x)
    {
        to[i] = from[i];
    }
}


static void
llm_cuda_kv_copy_pages(llm_cuda_t *d, const llm_kv_t *kv, uint8_t *pages,
    size_t size, uint32_t src, uint32_t dst)
{
    unsigned  blocks;

    blocks = (unsigned) llm_min((size / sizeof(uint4) + 255) / 256,
                                (size_t) 64);

    llm_launch(llm_k_kv_copy, dim3(blocks, kv->opts.n_layers), 256, 0,
               d->stream, pages, size, (size_t) kv->opts.n_pages, src, dst);
}


void
llm_cuda_kv_copy(llm_dev_t *dev, llm_kv_t *kv, uint32_t src, uint32_t dst)
{
    llm_cuda_t  *d = (llm_cuda_t *) dev;

    llm_cuda_kv_copy_pages(d, kv, kv->k, kv->k_page, src, dst);
    llm_cuda_kv_copy_pages(d, kv, kv->v, kv->v_page, src, dst);
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
 * end() has copied the logits and states.  Other rows are for tests: NULL if
 * there is no memory, and llm_cuda_check() keeps the reason for the next
 * end().
 */

const float *
llm_cuda_map(llm_dev_t *dev, const llm_act_t *a, uint32_t row, uint32_t n)
{
    size_t        count;
    const float  *src;
    llm_cuda_t   *d = (llm_cuda_t *) dev;

    if (a == d->logits && d->ended && row + n <= d->ended->n_out) {
        return d->host_logits + (size_t) row * a->cols;
    }

    if (a == d->states && d->ended && row + n <= d->ended->n_out) {
        return d->host_states + (size_t) row * a->cols;
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
llm_cuda_write(llm_dev_t *dev, llm_act_t *a, uint32_t row, uint32_t n,
    const float *src)
{
    size_t       count;
    float       *dst;
    llm_cuda_t  *d = (llm_cuda_t *) dev;

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
