/*
 * Blocks of latent attention: each warp's part of the work, and the queries and
 * tiles of the paged cache in shared memory: f16, or the cache's bytes of e4m3,
 * which the block converts to f16, without loss.
 */

#ifndef LLM_CUDA_ATTENTION_LATENT_H
#define LLM_CUDA_ATTENTION_LATENT_H

#include "kernels/cuda/attention.h"

#define LLM_LAT_WARPS    8
#define LLM_LAT_THREADS  (LLM_LAT_WARPS * 32)
#define LLM_LAT_TILE     32             /* positions */
#define LLM_LAT_SCORES   (LLM_LAT_TILE + 4)     /* stride of a row of scores */


/* how the warps of a block share R query rows */

template<int R> struct llm_lat_shape {
    enum {
        /* scores: a warp's tiles of 16 rows and of 8 positions, and warps that
           share the same rows */
        SM = R == 64 ? 2 : 1,
        SN = R == 16 ? 1 : 2,
        SG = LLM_LAT_TILE / 8 / SN,

        /* values: a warp's tiles of 16 rows, warps that share the same rows, a
           warp's tiles of 8 columns */
        VM = R == 16 ? 1 : 2,
        VG = LLM_LAT_WARPS * VM * 16 / R,
        VN = LLM_CUDA_MAX_LATENT / 8 / VG
    };
};

/* what a block works on */
typedef struct {
    uint32_t   seq;
    uint32_t   kv_head;
    uint32_t   row0;                    /* first row of the sequence */
    uint32_t   first;                   /* number of the block's first query
                                           row */
    uint32_t   rows_end;                /* one more than the item's last */
    uint32_t   begin;                   /* first position that a row of the
                                           block sees */
    uint32_t   end;                     /* one more than the last */
    uint32_t   steps;                   /* of 32 elements of a head of K */
    uint32_t   stride;                  /* of rows of Q and K, elements */

    /* a thread's row of scores */
    int        pos;                     /* position; -1: there is no such row */
    int        from;                    /* first position that the row sees */

    /* shared memory */
    uint16_t  *q;                       /* [R][stride] */
    uint16_t  *k;                       /* [2][TILE][stride]; with fp8 [1] */
    uint8_t   *raw;                     /* [2] tiles of fp8, not converted */
    float     *s;                       /* [2][R][SCORES] scores; weights take
                                           the place of s[0] */
    float     *f;                       /* [2][R] factors of rows */
} llm_lat_block_t;


/* bytes of a tile of fp8: elements, then a byte of scale for each position */

static __device__ __host__ __forceinline__ size_t
llm_lat_raw(uint32_t steps)
{
    return (size_t) LLM_LAT_TILE * (steps * 32 + 1);
}


/* Sets the block's pointers, steps and stride; returns the bytes of its shared
   memory.  In a row there is room for all columns of a warp some of which are
   V's: the warp multiplies what is after V, too, and does not store it. */

template<int R, int FP8> static __device__ __host__ __forceinline__ size_t
llm_lat_layout(llm_lat_block_t *b, uint8_t *mem, uint32_t dk, uint32_t dv)
{
    size_t    at;
    uint32_t  cols;

    cols = llm_lat_shape<R>::VN * 8;
    cols = (dv + cols - 1) / cols * cols;

    b->steps = (dk + 31) / 32;
    b->stride = llm_max(b->steps * 32, cols) + LLM_ATT_PAD;

    b->q = (uint16_t *) mem;
    at = (size_t) R * b->stride * sizeof(uint16_t);

    b->k = (uint16_t *) (mem + at);
    at += (size_t) (FP8 ? 1 : 2) * LLM_LAT_TILE * b->stride
          * sizeof(uint16_t);

    b->raw = mem + at;
    at += FP8 ? 2 * llm_lat_raw(b->steps) : 0;

    b->s = (float *) (mem + at);
    at += 2 * R * LLM_LAT_SCORES * sizeof(float);

    b->f = (float *) (mem + at);

    return at + 2 * R * sizeof(float);
}


/* loads the block's queries, in f16; zeros where there is no row or element */

template<int R> static __device__ __forceinline__ void
llm_lat_queries(const llm_att_args_t &a, const llm_lat_block_t &b)
{
    int           i;
    float         v[4];
    float4        w;
    uint32_t      r, c, n, index;
    const float  *src;

    for (r = threadIdx.x / 32; r < R; r += LLM_LAT_WARPS) {
        index = b.first + r;
        n = index < b.rows_end ? a.dk : 0;
        src = a.q + ((size_t) (b.row0 + index / a.group) * a.n_heads
                     + b.kv_head * a.group + index % a.group) * a.dk;

#pragma unroll 5
        for (c = threadIdx.x % 32 * 4; c < b.steps * 32; c += 32 * 4) {

            if (c + 4 <= n && a.dk % 4 == 0) {
                w = *(const float4 *) (src + c);
                v[0] = w.x;
                v[1] = w.y;
                v[2] = w.z;
                v[3] = w.w;

            } else {
#pragma unroll
                for (i = 0; i < 4; i++) {
                    v[i] = c + i < n ? src[c + i] : 0.0f;
                }
            }

            *(uint2 *) (b.q + r * b.stride + c)
                = make_uint2(llm_att_pack(v[0], v[1]),
                             llm_att_pack(v[2], v[3]));
        }
    }
}


/* starts copying the tile at position `at`, a warp for each position; zeros for
   positions that no row of the block sees */

static __device__ void
llm_lat_load(const llm_cuda_step_t &cs, const llm_att_args_t &a,
    const llm_lat_block_t &b, uint16_t *s, uint32_t at)
{
    int              seen;
    uint32_t         p, c, j, pos;
    const uint16_t  *src;

    for (p = threadIdx.x / 32; p < LLM_LAT_TILE; p += LLM_LAT_WARPS) {
        pos = at + p;
        seen = pos >= b.begin && pos < b.end;
        src = (const uint16_t *) a.kc;

        if (seen) {
            src = (const uint16_t *) llm_att_block(cs, a.kc, b.seq, b.kv_head,
                                                   a.n_kv_heads, pos,
                                                   llm_kv_block(a.dk, 0))
                  + pos % LLM_KV_PAGE * a.dk;
        }

        for (c = threadIdx.x % 32 * 8; c < b.steps * 32; c += 32 * 8) {

            if (a.dk % 8 == 0) {
                llm_cp_async16(s + p * b.stride + c, src + c,
                               seen && c < a.dk);
                continue;
            }

            for (j = c; j < c + 8; j++) {
                s[p * b.stride + j] = seen && j < a.dk ? src[j]
                                                       : (uint16_t) 0;
            }
        }
    }
}


/* the same for an fp8 cache, without conversion; `at` is the start of a page */

static __device__ void
llm_lat_load_raw(const llm_cuda_step_t &cs, const llm_att_args_t &a,
    const llm_lat_block_t &b, uint8_t *s, uint32_t at)
{
    int             seen;
    uint32_t        p, c, j, pos, dim;
    const uint8_t  *src;

    dim = b.steps * 32;

    for (p = threadIdx.x / 32; p < LLM_LAT_TILE; p += LLM_LAT_WARPS) {
        pos = at + p;
        seen = pos >= b.begin && pos < b.end;
        src = a.kc;

        if (seen) {
            src = llm_att_block(cs, a.kc, b.seq, b.kv_head, a.n_kv_heads, pos,
                                llm_kv_block(a.dk, 1));
            src += pos % LLM_KV_PAGE * a.dk;
        }

        for (c = threadIdx.x % 32 * 16; c < dim; c += 32 * 16) {

            if (a.dk % 16 == 0) {
                llm_cp_async16(s + p * dim + c, src + c, seen && c < a.dk);
                continue;
            }

            for (j = c; j < c + 16; j++) {
                s[p * dim + j] = seen && j < a.dk ? src[j] : (uint8_t) 0;
            }
        }
    }

    p = threadIdx.x * LLM_KV_PAGE;

    if (p < LLM_LAT_TILE) {
        pos = at + p;
        seen = pos + LLM_KV_PAGE > b.begin && pos < b.end;
        src = a.kc;

        if (seen) {
            src = llm_att_block(cs, a.kc, b.seq, b.kv_head, a.n_kv_heads, pos,
                                llm_kv_block(a.dk, 1)) + LLM_KV_PAGE * a.dk;
        }

        llm_cp_async16(s + LLM_LAT_TILE * dim + p, src, seen);
    }
}


/* converts such a tile to f16; a scale's byte is the exponent of an f16 */

static __device__ void
llm_lat_widen(const llm_lat_block_t &b, const uint8_t *raw, uint16_t *s)
{
    int       i;
    uint4     v;
    uint32_t  p, c, dim, scale, w[4], h[8];

    dim = b.steps * 32;

    for (p = threadIdx.x / 32; p < LLM_LAT_TILE; p += LLM_LAT_WARPS) {
        scale = (uint32_t) raw[LLM_LAT_TILE * dim + p] << 10;
        scale |= scale << 16;

        for (c = threadIdx.x % 32 * 16; c < dim; c += 32 * 16) {
            v = *(const uint4 *) (raw + p * dim + c);
            w[0] = v.x;
            w[1] = v.y;
            w[2] = v.z;
            w[3] = v.w;

#pragma unroll
            for (i = 0; i < 8; i++) {
                h[i] = llm_mul_f16x2(llm_e2x16(w[i / 2] >> 16 * (i % 2)
                                               & 0xffff, 0), scale);
            }

            *(uint4 *) (s + p * b.stride + c)
                = make_uint4(h[0], h[1], h[2], h[3]);
            *(uint4 *) (s + p * b.stride + c + 8)
                = make_uint4(h[4], h[5], h[6], h[7]);
        }
    }
}


template<int FP8> static __device__ __forceinline__ void
llm_lat_fetch(const llm_cuda_step_t &cs, const llm_att_args_t &a,
    const llm_lat_block_t &b, uint32_t turn, uint32_t at)
{
    if (FP8) {
        llm_lat_load_raw(cs, a, b, b.raw + turn * llm_lat_raw(b.steps), at);

    } else {
        llm_lat_load(cs, a, b, b.k + turn * LLM_LAT_TILE * b.stride, at);
    }
}

#endif /* LLM_CUDA_ATTENTION_LATENT_H */
