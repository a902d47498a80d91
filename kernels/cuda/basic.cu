/*
 * The operations on single rows: embedding, norm, rotary embedding with the
 * write to the KV cache, gated activation, gathering of rows.
 *
 * Invariant: a block works on one row, and sums have an order that only
 * depends on the row's length.  Rows beyond the step's count are not touched.
 */

#include "kernels/cuda/linear.h"

#define LLM_ROW_THREADS  256


__global__ void
llm_k_embed(llm_cuda_step_t st, uint32_t type, const uint8_t *w,
    size_t row_size, uint32_t cols, float *x)
{
    uint32_t        i, row;
    const uint8_t  *src;

    row = blockIdx.x;

    if (row >= st.counts[LLM_N_TOKENS]) {
        return;
    }

    src = w + (size_t) (uint32_t) st.tokens[row] * row_size;

    for (i = threadIdx.x; i < cols; i += blockDim.x) {
        x[(size_t) row * cols + i] = llm_deq(type, src, i);
    }
}


void
llm_cuda_embed(llm_dev_t *dev, const llm_weight_t *w, llm_act_t *x)
{
    int          cls;
    llm_cuda_t  *d = (llm_cuda_t *) dev;

    cls = llm_packed_class(w->type);

    if (cls == LLM_CLASS_CODED || cls == LLM_CLASS_MINS) {
        llm_embed_coded(d, w->type, (const uint8_t *) w->raw, w->row_size, x);
        return;
    }

    llm_launch(llm_k_embed, d->rows, LLM_ROW_THREADS, 0, d->stream, d->step,
               w->type, (const uint8_t *) w->raw, w->row_size, x->cols,
               (float *) x->data);
}


/* the sum over a block of LLM_ROW_THREADS threads; s has a float for each
   warp */

static __device__ __forceinline__ float
llm_block_sum(float v, float *s)
{
    float     sum;
    uint32_t  i;

    v = llm_warp_sum(v);

    if (threadIdx.x % 32 == 0) {
        s[threadIdx.x / 32] = v;
    }

    __syncthreads();

    for (sum = 0, i = 0; i < LLM_ROW_THREADS / 32; i++) {
        sum += s[i];
    }

    return sum;
}


__global__ void
llm_k_norm(const uint32_t *count, const float *x, const float *w, float eps,
    uint32_t cols, void *y, int is16, int bf16)
{
    float      v, sum, scale;
    size_t     base;
    uint32_t   i;

    LLM_SHARED(mem);

    if (blockIdx.x >= *count) {
        return;
    }

    base = (size_t) blockIdx.x * cols;
    sum = 0;

    for (i = threadIdx.x; i < cols; i += blockDim.x) {
        v = x[base + i];
        sum += v * v;
    }

    sum = llm_block_sum(sum, (float *) mem);
    scale = rsqrtf(sum / (float) cols + eps);

    for (i = threadIdx.x; i < cols; i += blockDim.x) {
        v = x[base + i] * scale * w[i];

        if (is16) {
            ((uint16_t *) y)[base + i] = llm_store16(v, bf16);

        } else {
            ((float *) y)[base + i] = v;
        }
    }
}


void
llm_cuda_norm(llm_dev_t *dev, llm_rows_t rows, const llm_act_t *x,
    const llm_norm_t *n, llm_act_t *y)
{
    llm_cuda_t      *d = (llm_cuda_t *) dev;
    const uint32_t  *count;

    count = d->step.counts + (rows == LLM_ROWS_OUT ? LLM_N_OUT
                                                   : LLM_N_TOKENS);

    llm_launch(llm_k_norm, llm_cuda_rows(d, rows), LLM_ROW_THREADS,
               LLM_ROW_THREADS / 32 * sizeof(float), d->stream, count,
               (const float *) x->data, (const float *) n->w->data, n->eps,
               x->cols, y->data, y->is16, d->bf16);
}


/* arguments of llm_k_rope_kv() */
typedef struct {
    float            *q;
    float            *k;
    const float      *v;
    uint8_t          *kc;               /* the layer's pages */
    uint8_t          *vc;
    const float      *q_norm;
    const float      *k_norm;
    const float      *inv_freq;
    float             eps;
    float             mscale;
    uint32_t          n_heads;
    uint32_t          n_kv_heads;
    uint32_t          dk;
    uint32_t          dv;
    uint32_t          n_dims;
    int               neox;
    int               kv_fp8;
} llm_rope_args_t;


/* norm and rotation of one head, in shared memory, by one warp */

static __device__ void
llm_rope_head(const llm_rope_args_t a, float *s, const float *norm,
    uint32_t pos)
{
    float     sum, scale, c, sn, x, y;
    double    angle;
    uint32_t  i, lane, i0, i1, half;

    lane = threadIdx.x % 32;

    if (norm) {
        for (sum = 0, i = lane; i < a.dk; i += 32) {
            sum += s[i] * s[i];
        }

        scale = rsqrtf(llm_warp_sum(sum) / (float) a.dk + a.eps);

        for (i = lane; i < a.dk; i += 32) {
            s[i] *= scale * norm[i];
        }

        __syncwarp();
    }

    half = a.n_dims / 2;

    for (i = lane; i < half; i += 32) {
        i0 = a.neox ? i : 2 * i;
        i1 = a.neox ? i + half : 2 * i + 1;

        /* at far positions the angle needs more digits than a float has */

        angle = (double) pos * (double) a.inv_freq[i];
        angle -= floor(angle * 0.15915494309189535) * 6.283185307179586;
        c = cosf((float) angle) * a.mscale;
        sn = sinf((float) angle) * a.mscale;

        x = s[i0];
        y = s[i1];
        s[i0] = x * c - y * sn;
        s[i1] = x * sn + y * c;
    }

    __syncwarp();
}


/* the least exponent e for which max / 2^e is in the range of e4m3 */

static __device__ __forceinline__ int
llm_kv_scale(float max)
{
    int       e;
    uint32_t  u;

    /* 448 is 1.75 * 2^8 */

    u = __float_as_uint(max);
    e = (int) (u >> 23) - 127 - 8 + ((u & 0x7fffff) > 0x600000);
    e = e < LLM_KV_SCALE_MIN ? LLM_KV_SCALE_MIN : e;

    return e > LLM_KV_SCALE_MAX ? LLM_KV_SCALE_MAX : e;
}


/* a warp writes one head of a token to `slot` of its block in the cache */

static __device__ void
llm_kv_write(uint8_t *block, uint32_t slot, uint32_t dim, const float *src,
    int fp8)
{
    int        e;
    float      max, scale;
    uint8_t   *row8;
    uint16_t  *row16;
    uint32_t   i, lane;

    lane = threadIdx.x % 32;

    if (!fp8) {
        row16 = (uint16_t *) block + (size_t) slot * dim;

        for (i = lane; i < dim; i += 32) {
            row16[i] = llm_store16(src[i], 0);
        }

        return;
    }

    for (max = 0, i = lane; i < dim; i += 32) {
        max = fmaxf(max, fabsf(src[i]));
    }

    e = llm_kv_scale(llm_warp_max(max));
    scale = __uint_as_float((uint32_t) (127 - e) << 23);
    row8 = block + (size_t) slot * dim;

    for (i = lane; i < dim; i += 32) {
        /* NaN becomes a number in the cache, as with f16 */
        row8[i] = llm_f2e(fminf(fmaxf(src[i] * scale, -448.0f), 448.0f));
    }

    if (lane == 0) {
        block[(size_t) LLM_KV_PAGE * dim + slot] = (uint8_t) (e + 15);
    }
}


/* block (row, head): a warp for each query head, key head, value head */

__global__ void
llm_k_rope_kv(llm_cuda_step_t st, llm_rope_args_t a)
{
    float      *s, *p;
    size_t      block;
    uint32_t    i, row, head, pos, page, lane;

    LLM_SHARED(mem);

    row = blockIdx.x;
    head = blockIdx.y;
    lane = threadIdx.x;
    s = (float *) mem;

    if (row >= st.counts[LLM_N_TOKENS]) {
        return;
    }

    pos = st.pos[row];

    if (head < a.n_heads) {
        p = a.q + ((size_t) row * a.n_heads + head) * a.dk;

        for (i = lane; i < a.dk; i += 32) {
            s[i] = p[i];
        }

        __syncwarp();
        llm_rope_head(a, s, a.q_norm, pos);

        for (i = lane; i < a.dk; i += 32) {
            p[i] = s[i];
        }

        return;
    }

    head -= a.n_heads;
    page = st.pages[(size_t) st.row_seq[row] * st.max_pages
                    + pos / LLM_KV_PAGE];
    block = (size_t) page * a.n_kv_heads + head;

    p = a.k + ((size_t) row * a.n_kv_heads + head) * a.dk;

    for (i = lane; i < a.dk; i += 32) {
        s[i] = p[i];
    }

    __syncwarp();
    llm_rope_head(a, s, a.k_norm, pos);

    llm_kv_write(a.kc + block * llm_kv_block(a.dk, a.kv_fp8),
                 pos % LLM_KV_PAGE, a.dk, s, a.kv_fp8);
    llm_kv_write(a.vc + block * llm_kv_block(a.dv, a.kv_fp8),
                 pos % LLM_KV_PAGE, a.dv,
                 a.v + ((size_t) row * a.n_kv_heads + head) * a.dv,
                 a.kv_fp8);
}


void
llm_cuda_rope_kv(llm_dev_t *dev, const llm_heads_t *h,
    const llm_rope_t *rope, llm_act_t *q, llm_act_t *k, const llm_act_t *v,
    llm_kv_t *kv)
{
    size_t           layer;
    llm_cuda_t      *d = (llm_cuda_t *) dev;
    llm_rope_args_t  a;

    layer = (size_t) h->layer * kv->opts.n_pages;

    a.q = (float *) q->data;
    a.k = (float *) k->data;
    a.v = (const float *) v->data;
    a.kc = kv->k + layer * kv->k_page;
    a.vc = kv->v + layer * kv->v_page;
    a.q_norm = h->q_norm ? h->q_norm->data : NULL;
    a.k_norm = h->k_norm ? h->k_norm->data : NULL;
    a.inv_freq = rope->inv_freq->data;
    a.eps = h->norm_eps;
    a.mscale = rope->mscale;
    a.n_heads = h->n_heads;
    a.n_kv_heads = h->n_kv_heads;
    a.dk = h->head_dim_k;
    a.dv = h->head_dim_v;
    a.n_dims = rope->n_dims;
    a.neox = rope->kind == LLM_ROPE_NEOX;
    a.kv_fp8 = d->opts.kv_fp8;

    llm_launch(llm_k_rope_kv, dim3(d->rows, h->n_heads + h->n_kv_heads), 32,
               h->head_dim_k * sizeof(float), d->stream, d->step, a);
}


static __device__ __forceinline__ float
llm_glu_one(llm_glu_t act, float g, float u)
{
    float  t;

    if (act == LLM_GLU_SILU) {
        return g / (1.0f + expf(-g)) * u;
    }

    t = 0.7978845608028654f * (g + 0.044715f * g * g * g);

    return 0.5f * g * (1.0f + tanhf(t)) * u;
}


__global__ void
llm_k_glu(llm_glu_t act, const float *gate, const float *up,
    size_t n, uint16_t *y, int bf16)
{
    size_t  i;

    i = (size_t) blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        y[i] = llm_store16(llm_glu_one(act, gate[i], up[i]), bf16);
    }
}


/* on all rows of the bucket: those beyond the count are not used */

void
llm_cuda_glu(llm_dev_t *dev, llm_rows_t rows, llm_glu_t act,
    const llm_act_t *gate, const llm_act_t *up, llm_act_t *y)
{
    size_t       n;
    llm_cuda_t  *d = (llm_cuda_t *) dev;

    n = (size_t) llm_cuda_rows(d, rows) * y->cols;

    llm_launch(llm_k_glu, (unsigned) ((n + LLM_ROW_THREADS - 1)
                                      / LLM_ROW_THREADS),
               LLM_ROW_THREADS, 0, d->stream, act,
               (const float *) gate->data, (const float *) up->data, n,
               (uint16_t *) y->data, d->bf16);
}


__global__ void
llm_k_gather(llm_cuda_step_t st, const uint32_t *x, uint32_t *y,
    uint32_t words)
{
    uint32_t  i, from;

    if (blockIdx.x >= st.counts[LLM_N_OUT]) {
        return;
    }

    from = st.out_rows[blockIdx.x];

    for (i = threadIdx.x; i < words; i += blockDim.x) {
        y[(size_t) blockIdx.x * words + i] = x[(size_t) from * words + i];
    }
}


/* rows of the residual stream, float32 */

void
llm_cuda_gather(llm_dev_t *dev, const llm_act_t *x, llm_act_t *y)
{
    llm_cuda_t  *d = (llm_cuda_t *) dev;

    llm_launch(llm_k_gather, d->out_rows, LLM_ROW_THREADS, 0, d->stream,
               d->step, (const uint32_t *) x->data, (uint32_t *) y->data,
               x->is16 ? x->cols / 2 : x->cols);
}
