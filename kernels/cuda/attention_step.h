/*
 * One tile of the cache for 16 query rows: scores, mask, online softmax,
 * values; by one warp, or by a block's warps together.  Both do the same
 * arithmetic in the same order for a row (attention_kernel.h).
 */

#ifndef LLM_CUDA_ATTENTION_STEP_H
#define LLM_CUDA_ATTENTION_STEP_H

#include "kernels/cuda/attention.h"


/* a warp's state of 16 rows and N * 8 columns of the values: a lane holds rows
   lane / 4 and lane / 4 + 8 */
template<int N> struct llm_att_state_t {
    float  max[2];
    float  sum[2];
    float  acc[N][4];
};


/* a lane's part of the rows' sums of weights in the current split, for each
   quarter of a tile, or for those of the warp; Q: quarters */
template<int Q> struct llm_att_sums_t {
    float  of[Q][2];
};


/* sets the rows' sums of weights, once a split is done: of four lanes, and then
   of the quarters in their order */

template<int Q, int N> static __device__ __forceinline__ void
llm_att_total(llm_att_state_t<N> &st, const llm_att_sums_t<Q> &sums)
{
    int    i, n;
    float  sum;

#pragma unroll
    for (i = 0; i < 2; i++) {
        st.sum[i] = 0;

#pragma unroll
        for (n = 0; n < Q; n++) {
            sum = sums.of[n][i];
            sum += __shfl_xor_sync(LLM_FULL_WARP, sum, 1);
            sum += __shfl_xor_sync(LLM_FULL_WARP, sum, 2);
            st.sum[i] += sum;
        }
    }
}


template<int Q> static __device__ __forceinline__ void
llm_att_clear(llm_att_sums_t<Q> &sums)
{
    int  n;

#pragma unroll
    for (n = 0; n < Q; n++) {
        sums.of[n][0] = sums.of[n][1] = 0;
    }
}


template<int N> static __device__ __forceinline__ void
llm_att_clear(llm_att_state_t<N> &s)
{
    int  i, j;

#pragma unroll
    for (j = 0; j < 2; j++) {
        s.max[j] = -INFINITY;
        s.sum[j] = 0;
    }

#pragma unroll
    for (i = 0; i < N; i++) {
#pragma unroll
        for (j = 0; j < 4; j++) {
            s.acc[i][j] = 0;
        }
    }
}


/* loads the A fragments of a warp's 16 query rows from memory, two elements at
   a time, because heads have an even number of elements */

template<int DH> static __device__ __forceinline__ void
llm_att_queries(const llm_att_args_t &a, uint32_t row0, uint32_t kv_head,
    uint32_t first, uint32_t n_rows, uint32_t q[DH / 16][4])
{
    int           i, k;
    uint32_t      index, dim;
    float2        v;
    const float  *src[2];

    dim = threadIdx.x % 4 * 2;

#pragma unroll
    for (i = 0; i < 2; i++) {
        index = first + threadIdx.x % 32 / 4 + 8 * (uint32_t) i;
        src[i] = a.q + ((size_t) (row0 + index / a.group) * a.n_heads
                        + kv_head * a.group + index % a.group) * a.dk + dim;
        src[i] = index < n_rows ? src[i] : NULL;
    }

#pragma unroll
    for (k = 0; k < DH / 16; k++) {
#pragma unroll
        for (i = 0; i < 4; i++) {
            v = { 0, 0 };

            if (src[i % 2] && dim + k * 16 + i / 2 * 8 < a.dk) {
                v = *(const float2 *) (src[i % 2] + k * 16 + i / 2 * 8);
            }

            q[k][i] = llm_att_pack(v.x, v.y);
        }
    }
}


/* scores of the 16 rows for 8 positions: n-tile nt of the K tile */

template<int DH> static __device__ __forceinline__ void
llm_att_scores(const uint16_t *ks, int nt, const uint32_t q[DH / 16][4],
    float s[4])
{
    int       k;
    uint32_t  b[4];

    enum { STRIDE = llm_att_tile<DH, 1>::STRIDE };

    s[0] = s[1] = s[2] = s[3] = 0;

#pragma unroll
    for (k = 0; k < DH / 16; k += 2) {
        llm_ldmatrix_x4<0>(b, ks + (nt * 8 + threadIdx.x % 8) * STRIDE
                              + k * 16 + threadIdx.x % 32 / 8 * 8);

        llm_mma_f16(s, q[k], b);
        llm_mma_f16(s, q[k + 1], b + 2);
    }
}


/* acc += P V for 16 positions (k-step kt of the V tile) and the columns from
   n-tile n0 on */

template<int DH, int N> static __device__ __forceinline__ void
llm_att_values(const uint16_t *vs, int kt, int n0, const uint32_t p[4],
    llm_att_state_t<N> &st)
{
    int       n;
    uint32_t  b[4];

    enum { STRIDE = llm_att_tile<DH, 1>::STRIDE };

#pragma unroll
    for (n = 0; n < N; n += 2) {
        llm_ldmatrix_x4<1>(b, vs + (kt * 16 + threadIdx.x % 16) * STRIDE
                              + (n0 + n) * 8 + threadIdx.x % 32 / 16 * 8);

        llm_mma_f16(st.acc[n], p, b);
        llm_mma_f16(st.acc[n + 1], p, b + 2);
    }
}


/* a capped score; not inlined, because the code is long and used many times */

static __device__ LLM_CALLED float
llm_att_cap(float cap, float s)
{
    return cap * tanhf(s);
}


/* a row's score for position `at`, times log2(e) */

template<int SLOPES> static __device__ __forceinline__ float
llm_att_score(const llm_att_args_t &a, const llm_att_fall_t &fall, int at,
    float s)
{
    s *= a.scale;
    s = a.cap > 0 ? llm_att_cap(a.cap, s) : s;

    return SLOPES ? __fmaf_rn(-fall.slope, (float) abs(at - fall.pos), s) : s;
}


/* the last and first position that each of a lane's two rows sees; to[i] is -1
   if there is no such row */
typedef struct {
    int               to[2];
    int               from[2];
} llm_att_rows_t;


/*
 * Applies cap and slopes to a lane's scores of N * 8 positions from `at` on,
 * masks the positions that the rows do not see, and returns the rows' maxima in
 * m.  Scores with neither still lack the scale: llm_att_scale().  `whole`: the
 * warp's rows see all of the tile.
 */

template<int N, int SLOPES> static __device__ __forceinline__ void
llm_att_mask(const llm_att_args_t &a, const llm_att_fall_t *falls, int at,
    int whole, const llm_att_rows_t &r, float s[N][4], float m[2])
{
    int             i, n;
    llm_att_fall_t  fall[2];

    at += (int) (threadIdx.x % 4) * 2;

    if (SLOPES || a.cap > 0) {
        fall[0] = fall[1] = { 0, 0 };

        if (SLOPES) {
            fall[0] = falls[threadIdx.x % 32 / 4];
            fall[1] = falls[threadIdx.x % 32 / 4 + 8];
        }

#pragma unroll
        for (n = 0; n < N; n++) {
#pragma unroll
            for (i = 0; i < 4; i++) {
                s[n][i] = llm_att_score<SLOPES>(a, fall[i / 2],
                                                at + n * 8 + i % 2, s[n][i]);
            }
        }
    }

    if (!whole) {
#pragma unroll
        for (n = 0; n < N; n++) {
#pragma unroll
            for (i = 0; i < 4; i++) {
                if (at + n * 8 + i % 2 > r.to[i / 2]
                    || at + n * 8 + i % 2 < r.from[i / 2])
                {
                    s[n][i] = -INFINITY;
                }
            }
        }
    }

    m[0] = m[1] = -INFINITY;

#pragma unroll
    for (n = 0; n < N; n++) {
#pragma unroll
        for (i = 0; i < 4; i++) {
            m[i / 2] = fmaxf(m[i / 2], s[n][i]);
        }
    }

#pragma unroll
    for (i = 0; i < 2; i++) {
        m[i] = fmaxf(m[i], __shfl_xor_sync(LLM_FULL_WARP, m[i], 1));
        m[i] = fmaxf(m[i], __shfl_xor_sync(LLM_FULL_WARP, m[i], 2));
    }
}


/* the factor, with log2(e), that scores still need after llm_att_mask() */

template<int SLOPES> static __device__ __forceinline__ float
llm_att_scale(const llm_att_args_t &a)
{
    return SLOPES || a.cap > 0 ? 1.0f : a.scale;
}


/* updates a row's maximum with m, the tile's; returns the base that the tile's
   weights are relative to; *old: the factor for the row's sums so far */

static __device__ __forceinline__ float
llm_att_base(float m, float scale, float *max, float *old)
{
    float  base, now;

    now = fmaxf(*max, m * scale);
    base = now == -INFINITY ? 0.0f : now;
    *old = llm_exp2(*max - base);
    *max = now;

    return base;
}


/* turns a lane's scores of 8 positions into weights, and adds them to the
   lane's sums */

static __device__ __forceinline__ void
llm_att_exp(float s[4], float scale, const float base[2], float sum[2])
{
    int  i;

#pragma unroll
    for (i = 0; i < 2; i++) {
        s[2 * i] = llm_exp2(__fmaf_rn(s[2 * i], scale, -base[i]));
        s[2 * i + 1] = llm_exp2(__fmaf_rn(s[2 * i + 1], scale, -base[i]));
        sum[i] += s[2 * i] + s[2 * i + 1];
    }
}


/* the same; p: the weights, packed two of a row */

static __device__ __forceinline__ void
llm_att_weigh(float s[4], float scale, const float base[2], uint32_t p[2],
    float sum[2])
{
    int  i;

    llm_att_exp(s, scale, base, sum);

#pragma unroll
    for (i = 0; i < 2; i++) {
        p[i] = llm_att_pack_weights(s[2 * i], s[2 * i + 1]);
    }
}


/* multiplies the rows' values so far by old[], the factors for a new maximum; a
   factor of 1 changes no bit */

template<int N> static __device__ __forceinline__ void
llm_att_rescale(llm_att_state_t<N> &st, const float old[2])
{
    int  n, j;

    if (__all_sync(LLM_FULL_WARP, old[0] == 1.0f && old[1] == 1.0f)) {
        return;
    }

#pragma unroll
    for (n = 0; n < N; n++) {
#pragma unroll
        for (j = 0; j < 4; j++) {
            st.acc[n][j] *= old[j / 2];
        }
    }
}


static __device__ __forceinline__ int
llm_att_whole(const llm_att_rows_t &r, uint32_t first, int positions)
{
    return __all_sync(LLM_FULL_WARP,
                      llm_min(r.to[0], r.to[1]) >= (int) first + positions - 1
                      && llm_max(r.from[0], r.from[1]) <= (int) first);
}


/* the same with the sums of weights so far */

template<int Q> static __device__ __forceinline__ void
llm_att_rescale(llm_att_sums_t<Q> &sums, const float old[2])
{
    int  n;

#pragma unroll
    for (n = 0; n < Q; n++) {
        sums.of[n][0] *= old[0];
        sums.of[n][1] *= old[1];
    }
}


/* one tile of the cache for a warp's 16 rows; falls are those of the warp's
   rows */

template<int DK, int DV, int SLOPES> static __device__ __forceinline__ void
llm_att_step(const llm_att_args_t &a, const uint16_t *ks, const uint16_t *vs,
    uint32_t first, const llm_att_fall_t *falls, const llm_att_rows_t &r,
    const uint32_t q[DK / 16][4],
    llm_att_sums_t<llm_att_positions<DK>::QUARTERS> &sums,
    llm_att_state_t<DV / 8> &st)
{
    int       i, n, whole;
    float     m[2], old[2], base[2], scale;
    uint32_t  p[4];

    /* QUARTER: tiles of 8 positions that are summed together */
    enum { TILE = llm_att_positions<DK>::N,
           QUARTER = TILE / 8 / llm_att_positions<DK>::QUARTERS };

    float     s[TILE / 8][4];

    whole = llm_att_whole(r, first, TILE);
    scale = llm_att_scale<SLOPES>(a);

#pragma unroll
    for (n = 0; n < TILE / 8; n++) {
        llm_att_scores<DK>(ks, n, q, s[n]);
    }

    llm_att_mask<TILE / 8, SLOPES>(a, falls, (int) first, whole, r, s, m);

#pragma unroll
    for (i = 0; i < 2; i++) {
        base[i] = llm_att_base(m[i], scale, &st.max[i], &old[i]);
    }

    llm_att_rescale<DV / 8>(st, old);
    llm_att_rescale(sums, old);

#pragma unroll
    for (n = 0; n < TILE / 16; n++) {
        llm_att_weigh(s[2 * n], scale, base, p, sums.of[2 * n / QUARTER]);
        llm_att_weigh(s[2 * n + 1], scale, base, p + 2,
                      sums.of[(2 * n + 1) / QUARTER]);
        llm_att_values<DV, DV / 8>(vs, n, 0, p, st);
    }
}


/* llm_att_total() of 16 rows that the block's warps share, of which each has a
   quarter; all threads of the block call it */

template<int N, int POSITIONS> static __device__ __forceinline__ void
llm_att_few_total(llm_att_state_t<N> &st, const llm_att_sums_t<1> &mine,
    uint8_t *shared)
{
    int       i, n;
    float    *sums;
    uint32_t  lane;

    lane = threadIdx.x % 32;
    sums = (float *) (shared + LLM_ATT_ROWS * (POSITIONS + 8) * 2)
           + LLM_ATT_WARPS * LLM_ATT_ROWS;
    llm_att_total(st, mine);

#pragma unroll
    for (i = 0; i < 2; i++) {
        if (lane % 4 == 0) {
            sums[threadIdx.x / 32 * LLM_ATT_ROWS + lane / 4 + 8 * i]
                = st.sum[i];
        }

        st.sum[i] = 0;
    }

    __syncthreads();

#pragma unroll
    for (n = 0; n < LLM_ATT_WARPS; n++) {
#pragma unroll
        for (i = 0; i < 2; i++) {
            st.sum[i] += sums[n * LLM_ATT_ROWS + lane / 4 + 8 * i];
        }
    }

    __syncthreads();
}


/* llm_att_step() with 16 rows that the block's warps share: a warp computes the
   scores of a quarter of the positions and the values of a quarter of the
   columns */

template<int DK, int DV, int SLOPES> static __device__ __forceinline__ void
llm_att_few_step(const llm_att_args_t &a, const uint16_t *ks,
    const uint16_t *vs, uint32_t first, const llm_att_fall_t *falls,
    const llm_att_rows_t &r, const uint32_t q[DK / 16][4], uint8_t *shared,
    llm_att_sums_t<1> &sums, llm_att_state_t<DV / 32> &st)
{
    int        i, n, whole;
    float      m[2], old[2], base[2], scale, *maxima;
    uint32_t   p[4], lane, warp;
    uint16_t  *weights;

    enum { TILE = llm_att_positions<DK>::N, N = TILE / 8 / LLM_ATT_WARPS,
           STRIDE = TILE + 8 };

    float      s[N][4];

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    weights = (uint16_t *) shared;
    maxima = (float *) (shared + LLM_ATT_ROWS * STRIDE * 2);
    whole = llm_att_whole(r, first, TILE);
    scale = llm_att_scale<SLOPES>(a);

#pragma unroll
    for (n = 0; n < N; n++) {
        llm_att_scores<DK>(ks, (int) warp * N + n, q, s[n]);
    }

    llm_att_mask<N, SLOPES>(a, falls, (int) (first + warp * N * 8), whole, r,
                            s, m);

#pragma unroll
    for (i = 0; i < 2; i++) {
        if (lane % 4 == 0) {
            maxima[warp * LLM_ATT_ROWS + lane / 4 + 8 * i] = m[i];
        }
    }

    __syncthreads();

#pragma unroll
    for (i = 0; i < 2; i++) {
#pragma unroll
        for (n = 0; n < LLM_ATT_WARPS; n++) {
            m[i] = fmaxf(m[i], maxima[n * LLM_ATT_ROWS + lane / 4 + 8 * i]);
        }

        base[i] = llm_att_base(m[i], scale, &st.max[i], &old[i]);
    }

    llm_att_rescale(sums, old);

#pragma unroll
    for (n = 0; n < N; n++) {
        llm_att_weigh(s[n], scale, base, p, sums.of[0]);

#pragma unroll
        for (i = 0; i < 2; i++) {
            *(uint32_t *) (weights + (lane / 4 + 8 * i) * STRIDE
                           + (warp * N + n) * 8 + lane % 4 * 2) = p[i];
        }
    }

    llm_att_rescale<DV / 32>(st, old);
    __syncthreads();

#pragma unroll
    for (n = 0; n < TILE / 16; n++) {
        llm_ldmatrix_x4<0>(p, weights + lane % 16 * STRIDE + n * 16
                              + lane / 16 * 8);
        llm_att_values<DV, DV / 32>(vs, n, (int) warp * (DV / 32), p, st);
    }
}

#endif /* LLM_CUDA_ATTENTION_STEP_H */
