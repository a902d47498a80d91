/*
 * Attention over the paged cache on tensor cores, one launch for any mix of
 * prompt rows and decode rows (online softmax, arXiv:2205.14135; split over
 * the cache, arXiv:2307.08691).
 *
 * The query rows of one sequence and one KV head (tokens times heads of the
 * group) have consecutive numbers; a warp takes 16 of them, a block four
 * times as many.  The cache is walked in splits of LLM_CUDA_KV_SPLIT
 * positions: within a split softmax is online, splits are merged in order.  A
 * sequence with a single row spreads its splits over blocks and a second
 * kernel merges them; a longer one merges as it goes.  A sink is the last that
 * is merged.
 *
 * Of windows only what the rows of a block see is read; splits and tiles begin
 * where they always do, and what is masked for a row leaves its bits alone.
 * Without a causal mask a block ends with the last position that its rows see.
 *
 * Invariant: both ways do the same arithmetic in the same order for a row,
 * whatever the other rows of its tile are, so a row's result depends on its
 * own sequence only.
 *
 * A file attention_N.cu has the kernels of one size of heads: nvcc takes long
 * for each, and compiles them side by side.
 */

#ifndef LLM_CUDA_ATTENTION_KERNEL_H
#define LLM_CUDA_ATTENTION_KERNEL_H

#include "kernels/cuda/attention.h"


/* the state of a warp's 16 rows: lane holds rows lane / 4 and + 8 */
template<int DH> struct llm_att_state_t {
    float  max[2];
    float  sum[2];
    float  acc[DH / 8][4];
};


template<int DH> static __device__ __forceinline__ void
llm_att_clear(llm_att_state_t<DH> &s)
{
    int  i, j;

    for (i = 0; i < 2; i++) {
        s.max[i] = -INFINITY;
        s.sum[i] = 0;
    }

#pragma unroll
    for (i = 0; i < DH / 8; i++) {
#pragma unroll
        for (j = 0; j < 4; j++) {
            s.acc[i][j] = 0;
        }
    }
}


/* loads the A fragments of a warp's 16 query rows from memory */

template<int DH> static __device__ __forceinline__ void
llm_att_queries(const llm_att_args_t &a, uint32_t row0, uint32_t kv_head,
    uint32_t first, uint32_t n_rows, uint32_t q[DH / 16][4])
{
    int           i;
    float         v[2];
    uint32_t      r, k, j, index, dim;
    const float  *src;

#pragma unroll
    for (k = 0; k < DH / 16; k++) {
#pragma unroll
        for (i = 0; i < 4; i++) {
            r = threadIdx.x % 32 / 4 + (i & 1 ? 8 : 0);
            dim = k * 16 + threadIdx.x % 4 * 2 + (i & 2 ? 8 : 0);
            index = first + r;
            src = a.q + ((size_t) (row0 + index / a.group) * a.n_heads
                         + kv_head * a.group + index % a.group) * a.dk;

            for (j = 0; j < 2; j++) {
                v[j] = index < n_rows && dim + j < a.dk ? src[dim + j] : 0.0f;
            }

            q[k][i] = llm_att_pack(v[0], v[1]);
        }
    }
}


/* scores of the 16 rows against 8 positions: n-tile nt of the K tile */

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


/* acc += P V for 16 positions: k-step kt of the V tile */

template<int DH> static __device__ __forceinline__ void
llm_att_values(const uint16_t *vs, int kt, const uint32_t p[4],
    llm_att_state_t<DH> &st)
{
    int       n;
    uint32_t  b[4];

    enum { STRIDE = llm_att_tile<DH, 1>::STRIDE };

#pragma unroll
    for (n = 0; n < DH / 8; n += 2) {
        llm_ldmatrix_x4<1>(b, vs + (kt * 16 + threadIdx.x % 16) * STRIDE
                              + n * 8 + threadIdx.x % 32 / 16 * 8);

        llm_mma_f16(st.acc[n], p, b);
        llm_mma_f16(st.acc[n + 1], p, b + 2);
    }
}


/* a row's score against position `at`, times log2(e) */

template<int SLOPES> static __device__ __forceinline__ float
llm_att_score(const llm_att_args_t &a, const llm_att_fall_t &fall, int at,
    float s)
{
    s *= a.scale;
    s = a.cap > 0 ? a.cap * tanhf(s) : s;

    return SLOPES ? __fmaf_rn(-fall.slope, (float) abs(at - fall.pos), s) : s;
}


/*
 * One tile of the cache for one warp: scores, mask, online softmax, values.
 * to[i] is the last position that the lane's row i sees, -1 if there is no such
 * row, and from[i] the first; falls are those of the warp's rows.
 */

template<int DK, int DV, int SLOPES> static __device__ __forceinline__ void
llm_att_step(const llm_att_args_t &a, const uint16_t *ks, const uint16_t *vs,
    uint32_t first, const llm_att_fall_t *falls, const int to[2],
    const int from[2], const uint32_t q[DK / 16][4], llm_att_state_t<DV> &st)
{
    int             i, j, n, at;
    float           m, old, part, p[2], sum;
    uint32_t        pk[4];
    llm_att_fall_t  fall;

    enum { TILE = llm_att_positions<DK>::N };

    float     s[TILE / 8][4];

#pragma unroll
    for (n = 0; n < TILE / 8; n++) {
        llm_att_scores<DK>(ks, n, q, s[n]);
    }

#pragma unroll
    for (i = 0; i < 2; i++) {
        m = -INFINITY;
        fall = { 0, 0 };

        if (SLOPES) {
            fall = falls[threadIdx.x % 32 / 4 + 8 * i];
        }

#pragma unroll
        for (n = 0; n < TILE / 8; n++) {
#pragma unroll
            for (j = 0; j < 2; j++) {
                at = (int) first + n * 8 + (int) (threadIdx.x % 4) * 2 + j;
                s[n][2 * i + j] = at <= to[i] && at >= from[i]
                                  ? llm_att_score<SLOPES>(a, fall, at,
                                                          s[n][2 * i + j])
                                  : -INFINITY;
                m = fmaxf(m, s[n][2 * i + j]);
            }
        }

        m = fmaxf(m, __shfl_xor_sync(LLM_FULL_WARP, m, 1));
        m = fmaxf(m, __shfl_xor_sync(LLM_FULL_WARP, m, 2));

        llm_att_weights(st.max[i], m, &m, &old, &part);
        st.max[i] = m;
        sum = 0;

#pragma unroll
        for (n = 0; n < TILE / 8; n++) {
#pragma unroll
            for (j = 0; j < 2; j++) {
                p[j] = s[n][2 * i + j] == -INFINITY
                       ? 0.0f : llm_exp2(s[n][2 * i + j] - m);
                s[n][2 * i + j] = p[j];
                sum += p[j];
            }
        }

        sum += __shfl_xor_sync(LLM_FULL_WARP, sum, 1);
        sum += __shfl_xor_sync(LLM_FULL_WARP, sum, 2);
        st.sum[i] = __fmaf_rn(st.sum[i], old, sum);

#pragma unroll
        for (n = 0; n < DV / 8; n++) {
            st.acc[n][2 * i] *= old;
            st.acc[n][2 * i + 1] *= old;
        }
    }

#pragma unroll
    for (n = 0; n < TILE / 16; n++) {
        pk[0] = llm_att_pack(s[2 * n][0], s[2 * n][1]);
        pk[1] = llm_att_pack(s[2 * n][2], s[2 * n][3]);
        pk[2] = llm_att_pack(s[2 * n + 1][0], s[2 * n + 1][1]);
        pk[3] = llm_att_pack(s[2 * n + 1][2], s[2 * n + 1][3]);

        llm_att_values<DV>(vs, n, pk, st);
    }
}


/* the positions [first, end) of a split of which `begin` is the first that any
   row of the block sees, tile by tile, while the next tile is being copied */

template<int DK, int DV, int FP8, int SLOPES> static __device__ void
llm_att_split(const llm_cuda_step_t &cs, const llm_att_args_t &a,
    uint8_t *smem, uint32_t seq, uint32_t kv_head, uint32_t dv0,
    uint32_t first, uint32_t begin, uint32_t end, int active,
    const int to[2], const int from[2], const uint32_t q[DK / 16][4],
    llm_att_state_t<DV> &st)
{
    uint32_t               at;
    uint8_t               *stage, *next, *turn;
    uint16_t              *ks, *vs;
    const llm_att_fall_t  *falls;

    enum { TILE = llm_att_positions<DK>::N,
           SIZE = llm_att_tile<DK, TILE>::SIZE,
           K = llm_att_stage_t<DK, DV, FP8>::K,
           BYTES = llm_att_stage_t<DK, DV, FP8>::BYTES };

    llm_att_clear<DV>(st);
    stage = smem;
    next = smem + BYTES;
    falls = (const llm_att_fall_t *) (smem
                                      + llm_att_stage_t<DK, DV, FP8>::FALLS)
            + threadIdx.x / 32 * LLM_ATT_ROWS;
    first += begin > first ? (begin - first) / TILE * TILE : 0;

    llm_att_fetch<DK, DV, FP8>(cs, a, stage, seq, kv_head, dv0, first, begin,
                               end);
    llm_cp_async_commit();

    for (at = first; at < end; at += TILE) {

        if (at + TILE < end) {
            llm_att_fetch<DK, DV, FP8>(cs, a, next, seq, kv_head, dv0,
                                       at + TILE, begin, end);
        }

        llm_cp_async_commit();
        llm_cp_async_wait<1>();
        __syncthreads();

        ks = (uint16_t *) (FP8 ? smem + 2 * BYTES : stage);
        vs = ks + SIZE;

        if (FP8) {
            llm_att_widen<DK, TILE>(stage, ks);
            llm_att_widen<DV, TILE>(stage + K, vs);
            __syncthreads();
        }

        if (active) {
            llm_att_step<DK, DV, SLOPES>(a, ks, vs, at, falls, to, from, q,
                                         st);
        }

        __syncthreads();

        turn = stage;
        stage = next;
        next = turn;
    }
}


template<int DH> static __device__ __forceinline__ void
llm_att_merge(llm_att_state_t<DH> &all, const llm_att_state_t<DH> &part)
{
    int    i, n;
    float  m, w0, w1;

#pragma unroll
    for (i = 0; i < 2; i++) {
        llm_att_weights(all.max[i], part.max[i], &m, &w0, &w1);
        all.max[i] = m;
        all.sum[i] = llm_att_join(all.sum[i], w0, part.sum[i], w1);

#pragma unroll
        for (n = 0; n < DH / 8; n++) {
            all.acc[n][2 * i] = llm_att_join(all.acc[n][2 * i], w0,
                                             part.acc[n][2 * i], w1);
            all.acc[n][2 * i + 1] = llm_att_join(all.acc[n][2 * i + 1], w0,
                                                 part.acc[n][2 * i + 1], w1);
        }
    }
}


/* writes a warp's rows to the output, or as a partial result of a split */

template<int DH> static __device__ __forceinline__ void
llm_att_store(const llm_att_args_t &a, const llm_att_state_t<DH> &st,
    uint32_t row0, uint32_t kv_head, uint32_t dv0, uint32_t first,
    uint32_t n_rows, float *partial)
{
    int        i, n, j;
    float      inv, *dst;
    size_t     out;
    uint32_t   index, dim, head;

#pragma unroll
    for (i = 0; i < 2; i++) {
        index = first + threadIdx.x % 32 / 4 + 8 * (uint32_t) i;

        if (index >= n_rows) {
            continue;
        }

        head = kv_head * a.group + index % a.group;
        out = ((size_t) (row0 + index / a.group) * a.n_heads + head) * a.dv;
        dst = partial + (size_t) head * (a.dv + 2);
        inv = llm_att_factor(a, head, st.max[i], st.sum[i]);

#pragma unroll
        for (n = 0; n < DH / 8; n++) {
#pragma unroll
            for (j = 0; j < 2; j++) {
                dim = dv0 + n * 8 + threadIdx.x % 4 * 2 + j;

                if (dim >= a.dv) {
                    continue;
                }

                if (partial) {
                    dst[2 + dim] = st.acc[n][2 * i + j];

                } else {
                    llm_store(a.out, out + dim, st.acc[n][2 * i + j] * inv,
                              a.out16, a.bf16);
                }
            }
        }

        if (partial && dv0 == 0 && threadIdx.x % 4 == 0) {
            dst[0] = st.max[i];
            dst[1] = st.sum[i];
        }
    }
}


/* how the scores of the block's rows fall, from number `first` of the
   sequence on; read behind the next barrier */

static __device__ __forceinline__ void
llm_att_falls(const llm_cuda_step_t &cs, const llm_att_args_t &a,
    uint32_t row0, uint32_t kv_head, uint32_t first, uint32_t n_rows,
    llm_att_fall_t *falls)
{
    uint32_t  i, index;

    for (i = threadIdx.x; i < LLM_ATT_WARPS * LLM_ATT_ROWS;
         i += LLM_ATT_THREADS)
    {
        index = first + i;
        index = index < n_rows ? index : n_rows - 1;
        falls[i].pos = (int) cs.pos[row0 + index / a.group];
        falls[i].slope = a.slopes[kv_head * a.group + index % a.group]
                         * LLM_LOG2E;
    }
}


/* block (tile of query rows; slice of V, KV head and split; sequence) */

template<int DK, int DV, int FP8, int SLOPES> __global__ void
__launch_bounds__(LLM_ATT_THREADS, DK > 64 ? 1 : 3)
llm_k_attention(llm_cuda_step_t cs, llm_att_args_t a)
{
    int                   i, active, to[2], from[2];
    uint32_t              seq, kv_head, split, row0, n_rows, first, base;
    uint32_t              s, n_splits, begin, end, index, last, dv0;
    uint32_t              q[DK / 16][4];
    llm_att_state_t<DV>   part, all;

    LLM_SHARED(mem);

    seq = blockIdx.z;
    dv0 = blockIdx.y % a.slices * DV;
    kv_head = blockIdx.y / a.slices % a.n_kv_heads;
    split = blockIdx.y / a.slices / a.n_kv_heads;

    if (seq >= cs.counts[LLM_N_SEQS]) {
        return;
    }

    row0 = cs.seq_rows[seq];
    n_rows = (cs.seq_rows[seq + 1] - row0) * a.group;
    first = blockIdx.x * LLM_ATT_WARPS * LLM_ATT_ROWS;
    base = cs.split_base[seq];

    if (first >= n_rows || (base == LLM_CUDA_NO_SPLIT && split > 0)) {
        return;
    }

    /* the first and the last position that a row of this block sees */

    begin = llm_att_first(a, cs.pos[row0 + first / a.group]);
    last = first + LLM_ATT_WARPS * LLM_ATT_ROWS - 1;
    last = last < n_rows ? last : n_rows - 1;
    end = llm_att_end(a, cs.pos[row0 + last / a.group], cs.kv_len[seq]);
    n_splits = (end + LLM_CUDA_KV_SPLIT - 1) / LLM_CUDA_KV_SPLIT;

    if (SLOPES) {
        llm_att_falls(cs, a, row0, kv_head, first, n_rows,
                      (llm_att_fall_t *) (mem
                                    + llm_att_stage_t<DK, DV, FP8>::FALLS));
    }

    first += threadIdx.x / 32 * LLM_ATT_ROWS;
    active = first < n_rows;

    for (i = 0; i < 2; i++) {
        index = first + threadIdx.x % 32 / 4 + 8 * (uint32_t) i;
        to[i] = -1;
        from[i] = 0;

        if (index < n_rows) {
            index = cs.pos[row0 + index / a.group];
            to[i] = (int) llm_att_end(a, index, cs.kv_len[seq]) - 1;
            from[i] = (int) llm_att_first(a, index);
        }
    }

    llm_att_queries<DK>(a, row0, kv_head, first, n_rows, q);

    if (base != LLM_CUDA_NO_SPLIT) {
        if (split >= n_splits || split < begin / LLM_CUDA_KV_SPLIT) {
            return;
        }

        s = (split + 1) * LLM_CUDA_KV_SPLIT;
        llm_att_split<DK, DV, FP8, SLOPES>(cs, a, mem, seq, kv_head, dv0,
                                           split * LLM_CUDA_KV_SPLIT, begin,
                                           s < end ? s : end, active, to,
                                           from, q, part);

        if (active) {
            llm_att_store<DV>(a, part, row0, kv_head, dv0, first, n_rows,
                              a.partial + (size_t) (base + split) * a.n_heads
                                          * (a.dv + 2));
        }

        return;
    }

    llm_att_clear<DV>(all);

    for (s = begin / LLM_CUDA_KV_SPLIT; s < n_splits; s++) {
        index = (s + 1) * LLM_CUDA_KV_SPLIT;
        llm_att_split<DK, DV, FP8, SLOPES>(cs, a, mem, seq, kv_head, dv0,
                                           s * LLM_CUDA_KV_SPLIT, begin,
                                           index < end ? index : end, active,
                                           to, from, q, part);
        llm_att_merge<DV>(all, part);
    }

    if (active) {
        llm_att_store<DV>(a, all, row0, kv_head, dv0, first, n_rows, NULL);
    }
}


template<int DK, int DV, int FP8, int SLOPES> static void
llm_att_launch_as(llm_cuda_t *d, const llm_kv_t *kv, const llm_att_args_t &a)
{
    size_t    shared;
    uint32_t  tiles, splits;

    /* without a causal mask all of a sequence's rows are in the step: a
       sequence of one row has one split */

    splits = a.behind ? 1 : d->splits;
    shared = llm_att_stage_t<DK, DV, FP8>::ALL;
    tiles = (d->max_seq_rows * a.group + LLM_ATT_WARPS * LLM_ATT_ROWS - 1)
            / (LLM_ATT_WARPS * LLM_ATT_ROWS);

    (void) llm_cuda_check(d, cudaFuncSetAttribute(
                              llm_k_attention<DK, DV, FP8, SLOPES>,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              (int) shared), "shared memory of attention");

    llm_launch((llm_k_attention<DK, DV, FP8, SLOPES>),
               dim3(tiles, a.slices * a.n_kv_heads * splits, d->seqs),
               LLM_ATT_THREADS, shared, d->stream, llm_cuda_step_of(d, kv), a);
}


template<int DK, int DV, int SLOPES> static void
llm_att_launch_kv(llm_cuda_t *d, const llm_kv_t *kv, const llm_att_args_t &a)
{
    if (d->opts.kv_fp8) {
        llm_att_launch_as<DK, DV, 1, SLOPES>(d, kv, a);

    } else {
        llm_att_launch_as<DK, DV, 0, SLOPES>(d, kv, a);
    }
}


template<int DK, int DV> void
llm_att_launch(llm_cuda_t *d, const llm_kv_t *kv, const llm_att_args_t &a)
{
    if (a.slopes) {
        llm_att_launch_kv<DK, DV, LLM_ATT_SLOPES(DK)>(d, kv, a);

    } else {
        llm_att_launch_kv<DK, DV, 0>(d, kv, a);
    }
}

#endif /* LLM_CUDA_ATTENTION_KERNEL_H */
