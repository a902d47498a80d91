/*
 * Operations on whole rows: embeddings, norms, rotary embedding with the write
 * to the KV cache.
 *
 * Invariant: a block works on one row, or a part of it, and the order of a sum
 * depends only on its length.  Rows beyond the step's count are not written.
 */

#include "kernels/cuda/linear.h"

#define LLM_ROW_THREADS  256


/* x[row] = w[at[row]], or += */

__global__ void
llm_k_embed(const uint32_t *count, const uint32_t *at, uint32_t type,
    const uint8_t *w, size_t row_size, uint32_t cols, int add, float *x)
{
    float           v;
    uint32_t        i;
    const uint8_t  *src;

    if (blockIdx.x >= *count) {
        return;
    }

    src = w + (size_t) at[blockIdx.x] * row_size;
    x += (size_t) blockIdx.x * cols;

    for (i = threadIdx.x; i < cols; i += blockDim.x) {
        v = llm_deq(type, src, i);
        x[i] = add ? x[i] + v : v;
    }
}


static void
llm_cuda_embed_at(llm_cuda_t *d, const llm_weight_t *w, const uint32_t *at,
    int add, llm_act_t *x)
{
    int  cls;

    cls = llm_packed_class(w->type);

    if (cls == LLM_CLASS_CODED || cls == LLM_CLASS_MINS) {
        llm_embed_coded(d, w, at, add, x);
        return;
    }

    llm_launch(llm_k_embed, d->rows, LLM_ROW_THREADS, 0, d->stream,
               d->step.counts + LLM_N_TOKENS, at, w->type,
               (const uint8_t *) w->raw, w->row_size, x->cols, add,
               (float *) x->data);
}


void
llm_cuda_embed(llm_exec_t *exec, const llm_weight_t *w, llm_act_t *x)
{
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    /* tokens are not negative */
    llm_cuda_embed_at(d, w, (const uint32_t *) d->step.tokens, 0, x);
}


void
llm_cuda_embed_pos(llm_exec_t *exec, const llm_weight_t *w, llm_act_t *x)
{
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    llm_cuda_embed_at(d, w, d->step.pos, 1, x);
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


typedef struct {
    const uint32_t   *count;
    const void       *x;
    const float      *w;                /* or NULL */
    const float      *bias;             /* or NULL */
    void             *y;
    float             eps;
    uint32_t          cols;
    uint32_t          group;
    int               wide;             /* w is as wide as a row, else as a
                                           group */
    int               layer;            /* the mean is subtracted */
    int               add;
    int               x_is16;
    int               is16;
    int               bf16;
} llm_norm_args_t;


/* element i of the block's group, which begins at element `base` of x */

static __device__ __forceinline__ float
llm_norm_in(const llm_norm_args_t &a, size_t base, uint32_t i)
{
    return llm_load(a.x, base + i, a.x_is16, a.bf16);
}


/* block (row, group of columns); two floats of shared memory a warp */

__global__ void
llm_k_norm(llm_norm_args_t a)
{
    float     v, mean, sum, scale, *s;
    size_t    base;
    uint32_t  i, first;

    LLM_SHARED(mem);

    if (blockIdx.x >= *a.count) {
        return;
    }

    s = (float *) mem;
    first = blockIdx.y * a.group;
    base = (size_t) blockIdx.x * a.cols + first;
    mean = 0;

    if (a.layer) {
        for (sum = 0, i = threadIdx.x; i < a.group; i += blockDim.x) {
            sum += llm_norm_in(a, base, i);
        }

        mean = llm_block_sum(sum, s + LLM_ROW_THREADS / 32)
               / (float) a.group;
    }

    for (sum = 0, i = threadIdx.x; i < a.group; i += blockDim.x) {
        v = llm_norm_in(a, base, i) - mean;
        sum += v * v;
    }

    sum = llm_block_sum(sum, s);
    scale = rsqrtf(sum / (float) a.group + a.eps);

    for (i = threadIdx.x; i < a.group; i += blockDim.x) {
        v = (llm_norm_in(a, base, i) - mean) * scale;
        v = a.w ? v * a.w[a.wide ? first + i : i] : v;
        v = a.bias ? v + a.bias[first + i] : v;
        v = a.add ? llm_load(a.y, base + i, a.is16, a.bf16) + v : v;
        llm_store(a.y, base + i, v, a.is16, a.bf16);
    }
}


/*
 * RMS norm of whole rows of floats.  Block (row): a thread holds up to EACH
 * times four columns in registers, so that all loads of a row are in flight
 * together.
 */

template<int EACH> __global__ void
llm_k_norm_row(llm_norm_args_t a)
{
    int        i;
    float      sum, scale;
    float4     v[EACH], w[EACH];
    size_t     base;
    uint32_t   at, rows;

    LLM_SHARED(mem);

    rows = *a.count;
    base = (size_t) blockIdx.x * a.cols;
    sum = 0;

    /* rows of the bucket that the step does not have are read, too: they have
       memory */

#pragma unroll
    for (i = 0; i < EACH; i++) {
        at = (i * LLM_ROW_THREADS + threadIdx.x) * 4;
        v[i] = w[i] = make_float4(0, 0, 0, 0);

        if (at < a.cols) {
            v[i] = *(const float4 *) ((const float *) a.x + base + at);
            w[i] = *(const float4 *) (a.w + at);
        }
    }

    if (blockIdx.x >= rows) {
        return;
    }

#pragma unroll
    for (i = 0; i < EACH; i++) {
        sum += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z
               + v[i].w * v[i].w;
    }

    sum = llm_block_sum(sum, (float *) mem);
    scale = rsqrtf(sum / (float) a.cols + a.eps);

#pragma unroll
    for (i = 0; i < EACH; i++) {
        at = (i * LLM_ROW_THREADS + threadIdx.x) * 4;

        if (at < a.cols) {
            v[i].x *= scale * w[i].x;
            v[i].y *= scale * w[i].y;
            v[i].z *= scale * w[i].z;
            v[i].w *= scale * w[i].w;
            llm_store_4(a.y, base + at, v[i], a.is16, a.bf16);
        }
    }
}


/* launches llm_k_norm_row(); returns nonzero if that kernel cannot do it */

static int
llm_cuda_norm_row(llm_cuda_t *d, uint32_t rows, const llm_norm_args_t &a)
{
    uint32_t  each;

    each = (a.cols + 4 * LLM_ROW_THREADS - 1) / (4 * LLM_ROW_THREADS);

    if (a.layer || a.add || a.bias || a.w == NULL || a.x_is16
        || a.group != a.cols || a.cols % 4 || each > 8)
    {
        return 1;
    }

    if (each <= 2) {
        llm_launch(llm_k_norm_row<2>, rows, LLM_ROW_THREADS,
                   LLM_ROW_THREADS / 32 * sizeof(float), d->stream, a);

    } else if (each <= 4) {
        llm_launch(llm_k_norm_row<4>, rows, LLM_ROW_THREADS,
                   LLM_ROW_THREADS / 32 * sizeof(float), d->stream, a);

    } else {
        llm_launch(llm_k_norm_row<8>, rows, LLM_ROW_THREADS,
                   LLM_ROW_THREADS / 32 * sizeof(float), d->stream, a);
    }

    return 0;
}


void
llm_cuda_norm(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *x,
    const llm_norm_t *n, llm_act_t *y)
{
    llm_cuda_t       *d = (llm_cuda_t *) exec;
    llm_norm_args_t   a;

    a.count = llm_cuda_count(d, rows);
    a.x = x->data;
    a.x_is16 = x->is16;
    a.w = n->w ? n->w->data : NULL;
    a.bias = n->bias ? n->bias->data : NULL;
    a.y = y->data;
    a.eps = n->eps;
    a.cols = x->cols;
    a.group = n->group ? n->group : x->cols;
    a.wide = n->w && n->w->n == x->cols;
    a.layer = n->kind == LLM_NORM_LAYER;
    a.add = n->add;
    a.is16 = y->is16;
    a.bf16 = d->bf16;

    if (llm_cuda_norm_row(d, llm_cuda_rows(d, rows), a) == 0) {
        return;
    }

    llm_launch(llm_k_norm, dim3(llm_cuda_rows(d, rows), a.cols / a.group),
               LLM_ROW_THREADS, 2 * LLM_ROW_THREADS / 32 * sizeof(float),
               d->stream, a);
}


#define LLM_ROPE_WARPS  4

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
    uint32_t          all_heads;        /* query heads, and KV heads unless k is
                                           NULL */
    uint32_t          dk;
    uint32_t          dv;
    uint32_t          plain;            /* elements of a latent head before the
                                           rotated ones; 0: not latent */
    uint32_t          n_dims;           /* rotated elements; 0: no rotation */
    int               neox;
    int               norm_last;
    int               kv_fp8;
    float             temp_scale;       /* see llm_heads_t */
    uint32_t          temp_floor;
    uint32_t          temp_offset;
} llm_rope_args_t;


/* a warp computes the RMS norm of a head in shared memory */

static __device__ void
llm_rope_norm(const llm_rope_args_t &a, float *s, const float *norm)
{
    float     sum, scale;
    uint32_t  i, lane;

    lane = threadIdx.x % 32;

    for (sum = 0, i = lane; i < a.dk; i += 32) {
        sum += s[i] * s[i];
    }

    scale = rsqrtf(llm_warp_sum(sum) / (float) a.dk + a.eps);

    for (i = lane; i < a.dk; i += 32) {
        s[i] *= scale * norm[i];
    }

    __syncwarp();
}


/* a warp computes norm and rotation of a head in shared memory */

static __device__ void
llm_rope_head(const llm_rope_args_t &a, float *s, const float *norm,
    uint32_t pos)
{
    float     c, sn, x, y;
    double    angle;
    uint32_t  i, lane, i0, i1, half;

    lane = threadIdx.x % 32;

    if (norm && !a.norm_last) {
        llm_rope_norm(a, s, norm);
    }

    half = a.n_dims / 2;

    for (i = lane; i < half; i += 32) {
        i0 = a.neox ? i : 2 * i;
        i1 = a.neox ? i + half : 2 * i + 1;

        /* far positions need more digits of the angle than a float has */

        angle = (double) pos * (double) a.inv_freq[i];
        angle -= floor(angle * 0.15915494309189535) * 6.283185307179586;
        sincosf((float) angle, &sn, &c);
        c *= a.mscale;
        sn *= a.mscale;

        x = s[i0];
        y = s[i1];
        s[i0] = x * c - y * sn;
        s[i1] = x * sn + y * c;
    }

    __syncwarp();

    if (norm && a.norm_last) {
        llm_rope_norm(a, s, norm);
    }
}


/* the least exponent e for which max / 2^e is in the range of e4m3, between
   LLM_KV_SCALE_MIN and LLM_KV_SCALE_MAX */

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


/* block (row, heads): a warp for each query head and each KV head */

__global__ void
llm_k_rope_kv(llm_cuda_step_t st, llm_rope_args_t a)
{
    float        *s, *p, temper;
    size_t        block;
    uint32_t      i, first, row, head, pos, page, lane;
    const float  *v;

    LLM_SHARED(mem);

    row = blockIdx.x;
    head = blockIdx.y * LLM_ROPE_WARPS + threadIdx.x / 32;
    lane = threadIdx.x % 32;
    s = (float *) mem + threadIdx.x / 32 * a.dk;

    if (row >= st.counts[LLM_N_TOKENS] || head >= a.all_heads) {
        return;
    }

    pos = st.pos[row];

    if (head < a.n_heads) {
        p = a.q + ((size_t) row * a.n_heads + head) * a.dk;
        first = a.temp_scale != 0 ? 0 : a.plain;

        for (i = first + lane; i < a.dk; i += 32) {
            s[i] = p[i];
        }

        __syncwarp();
        llm_rope_head(a, s + a.plain, a.q_norm, pos);
        temper = 1;

        if (a.temp_scale != 0) {
            temper += a.temp_scale
                      * logf((float) (1 + (pos + a.temp_offset)
                                          / a.temp_floor));
        }

        for (i = first + lane; i < a.dk; i += 32) {
            p[i] = s[i] * temper;
        }

        return;
    }

    head -= a.n_heads;
    page = st.pages[st.page_first[st.row_seq[row]] + pos / LLM_KV_PAGE];
    block = (size_t) page * a.n_kv_heads + head;

    p = a.k + ((size_t) row * a.n_kv_heads + head) * (a.dk - a.plain);
    v = a.v + ((size_t) row * a.n_kv_heads + head) * a.dv;

    for (i = lane; i < a.dk; i += 32) {
        s[i] = i < a.plain ? v[i] : p[i - a.plain];
    }

    __syncwarp();
    llm_rope_head(a, s + a.plain, a.k_norm, pos);

    llm_kv_write(a.kc + block * llm_kv_block(a.dk, a.kv_fp8),
                 pos % LLM_KV_PAGE, a.dk, s, a.kv_fp8);

    if (a.plain == 0) {
        llm_kv_write(a.vc + block * llm_kv_block(a.dv, a.kv_fp8),
                     pos % LLM_KV_PAGE, a.dv, v, a.kv_fp8);
    }
}


void
llm_cuda_rope_kv(llm_exec_t *exec, const llm_heads_t *h,
    const llm_rope_t *rope, llm_act_t *q, llm_act_t *k, const llm_act_t *v,
    llm_kv_t *kv)
{
    llm_cuda_t      *d = (llm_cuda_t *) exec;
    llm_rope_args_t  a;

    a.q = (float *) q->data;
    a.k = k ? (float *) k->data : NULL;
    a.v = k ? (const float *) v->data : NULL;
    a.kc = kv->data + kv->rooms[h->layer].k;
    a.vc = kv->data + kv->rooms[h->layer].v;
    a.q_norm = h->q_norm ? h->q_norm->data : NULL;
    a.k_norm = h->k_norm ? h->k_norm->data : NULL;
    a.inv_freq = rope->n_dims ? rope->inv_freq->data : NULL;
    a.eps = h->norm_eps;
    a.mscale = rope->mscale;
    a.n_heads = h->n_heads;
    a.n_kv_heads = h->n_kv_heads;
    a.dk = h->head_dim_k;
    a.dv = h->head_dim_v;
    a.plain = h->latent ? h->head_dim_v : 0;
    a.n_dims = rope->n_dims;
    a.neox = rope->kind == LLM_ROPE_NEOX;
    a.norm_last = h->norm_last;
    a.kv_fp8 = d->opts.kv_fp8;
    a.temp_scale = h->temp_scale;
    a.temp_floor = h->temp_floor;
    a.temp_offset = h->temp_offset;

    a.all_heads = h->n_heads + (k ? h->n_kv_heads : 0);

    llm_launch(llm_k_rope_kv,
               dim3(d->rows, (a.all_heads + LLM_ROPE_WARPS - 1)
                             / LLM_ROPE_WARPS),
               LLM_ROPE_WARPS * 32,
               LLM_ROPE_WARPS * h->head_dim_k * sizeof(float), d->stream,
               llm_cuda_step_of(d, kv), a);
}
