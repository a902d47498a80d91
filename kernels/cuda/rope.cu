/*
 * Rotary embedding, with the norm of heads of Q and K, and the write of K and V
 * to the cache.
 *
 * Invariant: a warp works on one head of one row.  Rows beyond the step's count
 * are not written.
 */

#include "kernels/cuda/internal.h"

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
    uint32_t          all_heads;        /* query heads; heads of K, and of V,
                                           unless they are not written */
    uint32_t          dk;
    uint32_t          dv;
    uint32_t          plain;            /* elements of a latent head before the
                                           rotated ones; 0: not latent */
    uint32_t          n_dims;           /* rotated elements; 0: no rotation */
    uint32_t          sections[LLM_TURNS];      /* see llm_rope_t */
    uint32_t          mixed;
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


/* as llm_rope_part() */

static __device__ __forceinline__ uint32_t
llm_rope_part_of(const llm_rope_args_t &a, uint32_t i)
{
    uint32_t  part;

    if (a.mixed) {
        part = i % a.mixed;

        return i < a.mixed * a.sections[part] ? part : 0;
    }

    for (part = 0; part < LLM_TURNS; part++) {
        if (i < a.sections[part]) {
            return part;
        }

        i -= a.sections[part];
    }

    return 0;
}


/* a warp computes the cosines of a row's positions, and after them its sines */

static __device__ void
llm_rope_turns(const llm_rope_args_t &a, float *turns, const uint32_t *pos)
{
    float     c, sn;
    double    angle;
    uint32_t  i, half;

    half = a.n_dims / 2;

    for (i = threadIdx.x % 32; i < half; i += 32) {

        /* far positions need more digits of the angle than a float has */

        angle = (double) pos[llm_rope_part_of(a, i)]
                * (double) a.inv_freq[i];
        angle -= floor(angle * 0.15915494309189535) * 6.283185307179586;
        sincosf((float) angle, &sn, &c);

        turns[i] = c * a.mscale;
        turns[half + i] = sn * a.mscale;
    }
}


/* a warp computes norm and rotation of a head in shared memory */

static __device__ void
llm_rope_head(const llm_rope_args_t &a, float *s, const float *turns,
    const float *norm)
{
    float     c, sn, x, y;
    uint32_t  i, lane, i0, i1, half;

    lane = threadIdx.x % 32;

    if (norm && !a.norm_last) {
        llm_rope_norm(a, s, norm);
    }

    half = a.n_dims / 2;

    for (i = lane; i < half; i += 32) {
        i0 = a.neox ? i : 2 * i;
        i1 = a.neox ? i + half : 2 * i + 1;

        c = turns[i];
        sn = turns[half + i];
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


/* a warp's query head; s: shared memory for it */

static __device__ void
llm_rope_q(const llm_rope_args_t &a, float *s, const float *turns, float *q,
    uint32_t pos)
{
    float     temper;
    uint32_t  i, first, lane;

    lane = threadIdx.x % 32;
    first = a.temp_scale != 0 ? 0 : a.plain;

    for (i = first + lane; i < a.dk; i += 32) {
        s[i] = q[i];
    }

    __syncwarp();
    llm_rope_head(a, s + a.plain, turns, a.q_norm);
    temper = 1;

    if (a.temp_scale != 0) {
        temper += a.temp_scale
                  * logf((float) (1 + (pos + a.temp_offset) / a.temp_floor));
    }

    for (i = first + lane; i < a.dk; i += 32) {
        q[i] = s[i] * temper;
    }
}


/* a warp's head of K, with the latent elements from v; to slot `slot` */

static __device__ void
llm_rope_k(const llm_rope_args_t &a, float *s, const float *turns,
    const float *k, const float *v, uint8_t *block, uint32_t slot)
{
    uint32_t  i;

    for (i = threadIdx.x % 32; i < a.dk; i += 32) {
        s[i] = i < a.plain ? v[i] : k[i - a.plain];
    }

    __syncwarp();
    llm_rope_head(a, s + a.plain, turns, a.k_norm);
    llm_kv_write(block, slot, a.dk, s, a.kv_fp8);
}


/*
 * Block (row, heads): a warp for each query head, each head of K and each of V.
 * What follows from the step alone, which is the same for all of its kernels,
 * is computed before the kernels before this one have ended.
 */

__global__ void
llm_k_rope_kv(llm_cuda_step_t st, llm_rope_args_t a)
{
    int           live;
    float        *s, *turns;
    size_t        block, at;
    uint32_t      row, head, pos, page;
    const float  *v;

    LLM_SHARED(mem);

    llm_early_start();

    row = blockIdx.x;
    head = blockIdx.y * LLM_ROPE_WARPS + threadIdx.x / 32;
    s = (float *) mem + threadIdx.x / 32 * 2 * a.dk;
    turns = s + a.dk;

    live = row < st.counts[LLM_N_TOKENS] && head < a.all_heads;
    pos = 0;
    page = 0;

    if (live) {
        pos = st.pos[row];
        llm_rope_turns(a, turns, st.turns + LLM_TURNS * row);
        page = head < a.n_heads
               ? 0 : st.pages[st.page_first[st.row_seq[row]]
                              + pos / LLM_KV_PAGE];
    }

    llm_early_wait();

    if (!live) {
        return;
    }

    if (head < a.n_heads) {
        llm_rope_q(a, s, turns,
                   a.q + ((size_t) row * a.n_heads + head) * a.dk, pos);
        return;
    }

    head = (head - a.n_heads) % a.n_kv_heads;
    block = (size_t) page * a.n_kv_heads + head;
    at = (size_t) row * a.n_kv_heads + head;
    v = a.v + at * a.dv;

    if (blockIdx.y * LLM_ROPE_WARPS + threadIdx.x / 32
        < a.n_heads + a.n_kv_heads)
    {
        llm_rope_k(a, s, turns, a.k + at * (a.dk - a.plain), v,
                   a.kc + block * llm_kv_block(a.dk, a.kv_fp8),
                   pos % LLM_KV_PAGE);
        return;
    }

    llm_kv_write(a.vc + block * llm_kv_block(a.dv, a.kv_fp8),
                 pos % LLM_KV_PAGE, a.dv, v, a.kv_fp8);
}


void
llm_cuda_rope_kv(llm_exec_t *exec, const llm_heads_t *h,
    const llm_rope_t *rope, llm_act_t *q, llm_act_t *k, const llm_act_t *v,
    llm_kv_t *kv)
{
    llm_cuda_t      *d = (llm_cuda_t *) exec;
    llm_rope_args_t  a;

    a.q = q ? (float *) q->data : NULL;
    a.k = k ? (float *) k->data : NULL;
    a.v = k ? (const float *) v->data : NULL;
    a.kc = kv->data + kv->rooms[h->layer].k;
    a.vc = kv->data + kv->rooms[h->layer].v;
    a.q_norm = h->q_norm ? h->q_norm->data : NULL;
    a.k_norm = h->k_norm ? h->k_norm->data : NULL;
    a.inv_freq = rope->n_dims ? rope->inv_freq->data : NULL;
    a.eps = h->norm_eps;
    a.mscale = rope->mscale;
    a.n_heads = q ? h->n_heads : 0;
    a.n_kv_heads = h->n_kv_heads;
    a.dk = h->head_dim_k;
    a.dv = h->head_dim_v;
    a.plain = h->latent ? h->head_dim_v : 0;
    a.n_dims = rope->n_dims;
    memcpy(a.sections, rope->sections, sizeof(a.sections));
    a.mixed = rope->mixed;
    a.neox = rope->kind == LLM_ROPE_NEOX;
    a.norm_last = h->norm_last;
    a.kv_fp8 = d->opts.kv_fp8;
    a.temp_scale = h->temp_scale;
    a.temp_floor = h->temp_floor;
    a.temp_offset = h->temp_offset;

    a.all_heads = a.n_heads + (k == NULL ? 0 : h->latent ? h->n_kv_heads
                                                  : 2 * h->n_kv_heads);

    llm_launch_early(llm_cuda_early(d), llm_k_rope_kv,
                     dim3(d->rows, (a.all_heads + LLM_ROPE_WARPS - 1)
                                   / LLM_ROPE_WARPS),
                     LLM_ROPE_WARPS * 32,
                     LLM_ROPE_WARPS * 2 * h->head_dim_k * sizeof(float),
                     d->stream, llm_cuda_step_of(d, kv), a);
}
