/*
 * The pages of keys and values on the device, and the memory for partial
 * results of split attention.
 *
 * Invariant: the layers follow one another, each with its pages of K and then
 * its pages of V, in the size that the layer needs; a latent layer has no pages
 * of V.  Pages are multiples of 16 bytes.  llm_kv_t owns the pages; the device
 * owns the partial results.
 */

#include "kernels/cuda/internal.h"

#include <stdio.h>

/* most bytes of partial results beyond those of one row a sequence */
#define LLM_CUDA_PARTIAL  ((size_t) 64 << 20)


static llm_kv_layer_t
llm_cuda_kv_shape(const llm_kv_opts_t *o, uint32_t layer)
{
    llm_kv_layer_t  all;

    if (o->layers) {
        return o->layers[layer];
    }

    memset(&all, 0, sizeof(all));
    all.n_kv_heads = o->n_kv_heads;
    all.head_dim_k = o->head_dim_k;
    all.head_dim_v = o->head_dim_v;

    return all;
}


/* bytes of one page of a layer */

static void
llm_cuda_kv_page(const llm_kv_opts_t *o, uint32_t layer, int fp8, size_t *k,
    size_t *v)
{
    llm_kv_layer_t  l;

    l = llm_cuda_kv_shape(o, layer);
    *k = l.n_kv_heads * llm_kv_block(l.head_dim_k, fp8);
    *v = l.latent ? 0 : l.n_kv_heads * llm_kv_block(l.head_dim_v, fp8);
}


size_t
llm_cuda_kv_page_size(llm_exec_t *exec, const llm_kv_opts_t *o)
{
    size_t       n, k, v;
    uint32_t     i;
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    for (n = 0, i = 0; i < o->n_layers; i++) {
        llm_cuda_kv_page(o, i, d->opts.kv_fp8, &k, &v);
        n += k + v;
    }

    return n;
}


void
llm_cuda_kv_free(llm_exec_t *exec, llm_kv_t *kv)
{
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    if (kv) {
        llm_cuda_free(d, kv->data);
        llm_cuda_free(d, kv->dev_rooms);
        free(kv->rooms);
        free(kv);
    }
}


/*
 * Allocates partial results of split attention: enough if every page belongs to
 * one sequence with one row, and up to 8 times as many, for more rows, while
 * they take less than LLM_CUDA_PARTIAL bytes.  Sequences that share pages may
 * need more; those that find no room are not split.  All layers of all caches
 * use the same memory in turn.
 */

static int
llm_cuda_partial(llm_cuda_t *d, const llm_kv_opts_t *o, llm_err_t *err)
{
    size_t    row;
    uint32_t  n;

    n = o->n_pages / (LLM_CUDA_KV_SPLIT / LLM_KV_PAGE) + d->opts.max_seqs;
    row = (size_t) o->n_heads * (o->head_dim_v + 2) * sizeof(float);
    n = llm_max(n, (uint32_t) llm_min((size_t) n * 8, LLM_CUDA_PARTIAL
                                                      / llm_max(row, 1u)));

    if (d->partial && n <= d->partial_cap && n * row <= d->partial_size) {
        d->partial_cap = (uint32_t) llm_min(d->partial_cap,
                                            d->partial_size / llm_max(row, 1u));
        return LLM_OK;
    }

    llm_cuda_free(d, d->partial);
    d->partial = NULL;
    d->partial_size = 0;

    if (llm_cuda_alloc((void **) &d->partial, n * row, "split attention", err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    d->partial_cap = n;
    d->partial_size = n * row;

    return LLM_OK;
}


/* sets where the pages of each layer begin; returns the bytes of all */

static size_t
llm_cuda_kv_place(llm_cuda_t *d, llm_kv_t *kv)
{
    size_t          at, k, v;
    uint32_t        i;
    llm_kv_room_t  *r;

    for (at = 0, i = 0; i < kv->opts.n_layers; i++) {
        llm_cuda_kv_page(&kv->opts, i, d->opts.kv_fp8, &k, &v);

        r = &kv->rooms[i];
        r->k = at;
        r->k_page = k;
        r->v = at + k * kv->opts.n_pages;
        r->v_page = v;
        at = r->v + v * kv->opts.n_pages;
    }

    return at;
}


/* does attention support the heads of all layers? */

static int
llm_cuda_kv_fits(const llm_kv_opts_t *o, llm_err_t *err)
{
    uint32_t        i;
    llm_kv_layer_t  l;

    if (llm_max(o->head_dim_k, o->head_dim_v) > LLM_CUDA_MAX_HEAD) {
        return llm_fail(err, "CUDA: heads of %u and %u dimensions: at most %u "
                        "are supported", o->head_dim_k, o->head_dim_v,
                        LLM_CUDA_MAX_HEAD);
    }

    for (i = 0; i < o->n_layers; i++) {
        l = llm_cuda_kv_shape(o, i);

        /* attention_kernel.h reads and writes elements two at a time */

        if (!l.latent && (l.head_dim_k % 2 || l.head_dim_v % 2)) {
            return llm_fail(err, "CUDA: heads of %u and %u dimensions: odd "
                            "numbers are not supported", l.head_dim_k,
                            l.head_dim_v);
        }

        if (l.latent && l.head_dim_v > LLM_CUDA_MAX_LATENT) {
            return llm_fail(err, "CUDA: a latent of %u dimensions: at most %u "
                            "are supported", l.head_dim_v,
                            LLM_CUDA_MAX_LATENT);
        }
    }

    return LLM_OK;
}


llm_kv_t *
llm_cuda_kv_create(llm_exec_t *exec, const llm_kv_opts_t *o, llm_err_t *err)
{
    size_t           size, rooms;
    uint32_t         i;
    llm_kv_t        *kv;
    llm_cuda_t      *d = (llm_cuda_t *) exec;
    llm_kv_layer_t   l;

    if (llm_cuda_kv_fits(o, err) != LLM_OK) {
        return NULL;
    }

    for (i = 0; i < o->n_layers; i++) {
        l = llm_cuda_kv_shape(o, i);

        if (l.n_kv_heads) {
            d->latent |= l.latent;
            d->group = llm_max(d->group, o->n_heads / l.n_kv_heads);
        }
    }

    rooms = o->n_layers * sizeof(llm_kv_room_t);
    kv = (llm_kv_t *) calloc(1, sizeof(llm_kv_t));

    if (kv) {
        kv->opts = *o;
        kv->rooms = (llm_kv_room_t *) calloc(1, rooms);
    }

    if (kv == NULL || kv->rooms == NULL) {
        free(kv);
        (void) llm_fail(err, "no memory for the KV cache");
        return NULL;
    }

    size = llm_cuda_kv_place(d, kv);

    if (llm_cuda_partial(d, o, err) != LLM_OK
        || llm_cuda_alloc((void **) &kv->dev_rooms, rooms, "the KV cache",
                          err) != LLM_OK
        || llm_cuda_alloc((void **) &kv->data, size, "the KV cache", err)
           != LLM_OK)
    {
        llm_cuda_kv_free(exec, kv);
        return NULL;
    }

    llm_cuda_put(d, kv->dev_rooms, kv->rooms, rooms, "the KV cache");

    /* clear slots that were never written: they are masked, but NaN times zero
       is NaN */

    if (llm_cuda_clear(d, kv->data, size, "clearing of the KV cache", err)
        != LLM_OK)
    {
        llm_cuda_kv_free(exec, kv);
        return NULL;
    }

    return kv;
}


/*
 * Blocks with y = 2 l copy a page of K of layer l, those with y = 2 l + 1 its
 * page of V.  cudaMemcpy2D() limits the pitch, and larger caches exceed it.
 */

__global__ void
llm_k_kv_copy(uint8_t *data, const llm_kv_room_t *rooms, uint32_t src,
    uint32_t dst)
{
    size_t          i, n, size;
    uint4          *to;
    const uint4    *from;
    llm_kv_room_t   r;

    r = rooms[blockIdx.y / 2];
    data += blockIdx.y % 2 ? r.v : r.k;
    size = blockIdx.y % 2 ? r.v_page : r.k_page;

    from = (const uint4 *) (data + src * size);
    to = (uint4 *) (data + dst * size);
    n = size / sizeof(uint4);

    for (i = (size_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (size_t) gridDim.x * blockDim.x)
    {
        to[i] = from[i];
    }
}


void
llm_cuda_kv_copy(llm_exec_t *exec, llm_kv_t *kv, uint32_t src, uint32_t dst)
{
    size_t        most;
    uint32_t      i;
    llm_cuda_t   *d = (llm_cuda_t *) exec;

    for (most = 0, i = 0; i < kv->opts.n_layers; i++) {
        most = llm_max(most, llm_max(kv->rooms[i].k_page,
                                     kv->rooms[i].v_page));
    }

    if (most == 0) {
        return;                         /* none of these layers keeps any */
    }

    most = llm_min((most / sizeof(uint4) + 255) / 256, (size_t) 64);

    llm_launch(llm_k_kv_copy, dim3((unsigned) most, 2 * kv->opts.n_layers),
               256, 0, d->stream, kv->data,
               (const llm_kv_room_t *) kv->dev_rooms, src, dst);
}
