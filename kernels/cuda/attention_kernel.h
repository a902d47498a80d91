/*
 * Attention over the paged cache on tensor cores, one launch for any mix of
 * prompt rows and decode rows (online softmax, arXiv:2205.14135; split over
 * the cache, arXiv:2307.08691).
 *
 * The query rows of one sequence and one KV head (tokens times query heads of
 * the group) have consecutive numbers.  A block takes 64 of them, 16 a warp.  A
 * block of at most 16 rows shares them among its warps: each warp takes a
 * quarter of a tile's positions and of the columns of the values.  The host
 * lists the rows and their sequences (llm_cuda_item_t); in a captured step some
 * blocks have no item.
 *
 * A block reads the cache in splits of LLM_CUDA_KV_SPLIT positions: softmax is
 * online within a split, and splits are merged in order.  A sequence with few
 * rows spreads its splits over blocks, and a second kernel merges them; other
 * blocks merge after each split.  A sink is merged last.  A row's weights
 * are summed by lanes over the split, for each quarter of its tiles; then come
 * the sums of lanes, and of quarters in order, so that the sum is the same when
 * warps share the rows.
 *
 * With windows a block reads only the positions that its rows see.  Splits and
 * tiles still begin at the same positions, and masked positions do not change
 * a row's bits.  Without a causal mask a block ends with the last position that
 * its rows see.
 *
 * Invariant: every kernel does the same arithmetic in the same order for a row,
 * whatever the other rows of its tile are, so a row's result depends only on
 * its own sequence.
 *
 * Each file attention_N.cu has the kernels of one size of heads, because nvcc
 * takes long for each and files are compiled in parallel.
 */

#ifndef LLM_CUDA_ATTENTION_KERNEL_H
#define LLM_CUDA_ATTENTION_KERNEL_H

#include "kernels/cuda/attention_step.h"


/* computes the positions [first, end) of a split, tile by tile, while the next
   tile is being copied; `begin` is the first position that a row of the block
   sees; FEW: the block's warps share its rows */

template<int DK, int DV, int FP8, int SLOPES, int FEW>
static __device__ __forceinline__ void
llm_att_split(const llm_cuda_step_t &cs, const llm_att_args_t &a,
    uint8_t *smem, uint32_t seq, uint32_t kv_head, uint32_t dv0,
    uint32_t first, uint32_t begin, uint32_t end, int active,
    const llm_att_rows_t &r, const uint32_t q[DK / 16][4],
    llm_att_state_t<FEW ? DV / 32 : DV / 8> &st)
{
    int                    k, n;
    uint8_t               *stage;
    uint16_t              *ks, *vs;
    const llm_att_fall_t  *falls;

    enum { TILE = llm_att_positions<DK>::N,
           SIZE = llm_att_tile<DK, TILE>::SIZE,
           K = llm_att_stage_t<DK, DV, FP8>::K,
           BYTES = llm_att_stage_t<DK, DV, FP8>::BYTES,
           FEW_AT = llm_att_stage_t<DK, DV, FP8>::FEW };

    llm_att_sums_t<FEW ? 1 : llm_att_positions<DK>::QUARTERS>  sums;

    llm_att_clear(sums);
    llm_att_clear(st);
    falls = (const llm_att_fall_t *) (smem
                                      + llm_att_stage_t<DK, DV, FP8>::FALLS)
            + (FEW ? 0 : threadIdx.x / 32 * LLM_ATT_ROWS);
    first += begin > first ? (begin - first) / TILE * TILE : 0;
    n = (int) (end - first + TILE - 1) / TILE;

    /* not unrolled: the code is long, and has to fit the instruction cache */

#pragma unroll 1
    for (k = 0; k <= n; k++) {

        if (k < n) {
            llm_att_fetch<DK, DV, FP8>(cs, a, smem + k % 2 * BYTES, seq,
                                       kv_head, dv0, first + k * TILE, begin,
                                       end);
        }

        llm_cp_async_commit();

        if (k == 0) {
            continue;
        }

        llm_cp_async_wait<1>();
        __syncthreads();

        stage = smem + (k - 1) % 2 * BYTES;
        ks = (uint16_t *) (FP8 ? smem + 2 * BYTES : stage);
        vs = ks + SIZE;

        if (FP8) {
            llm_att_widen<DK, TILE>(stage, ks);
            llm_att_widen<DV, TILE>(stage + K, vs);
            __syncthreads();
        }

        if constexpr (FEW) {
            llm_att_few_step<DK, DV, SLOPES>(a, ks, vs,
                first + (k - 1) * TILE, falls, r, q, smem + FEW_AT, sums, st);

        } else if (active) {
            llm_att_step<DK, DV, SLOPES>(a, ks, vs, first + (k - 1) * TILE,
                                         falls, r, q, sums, st);
        }

        __syncthreads();
    }

    if constexpr (FEW) {
        llm_att_few_total<DV / 32, TILE>(st, sums, smem + FEW_AT);

    } else {
        llm_att_total(st, sums);
    }
}


template<int N> static __device__ __forceinline__ void
llm_att_merge(llm_att_state_t<N> &all, const llm_att_state_t<N> &part)
{
    int    i, n;
    float  m, w0, w1;

#pragma unroll
    for (i = 0; i < 2; i++) {
        llm_att_weights(all.max[i], part.max[i], &m, &w0, &w1);
        all.max[i] = m;
        all.sum[i] = llm_att_join(all.sum[i], w0, part.sum[i], w1);

#pragma unroll
        for (n = 0; n < N; n++) {
            all.acc[n][2 * i] = llm_att_join(all.acc[n][2 * i], w0,
                                             part.acc[n][2 * i], w1);
            all.acc[n][2 * i + 1] = llm_att_join(all.acc[n][2 * i + 1], w0,
                                                 part.acc[n][2 * i + 1], w1);
        }
    }
}


/* the rows and columns of a block, or of a warp of it */
typedef struct {
    uint32_t          row0;             /* the sequence's first row in the
                                           step */
    uint32_t          kv_head;
    uint32_t          first;            /* number of the first query row */
    uint32_t          end;              /* one more than the block's last */
    uint32_t          dim;              /* first column of V */
} llm_att_place_t;


/* stores a row from column dim on, up to a.dv, two elements at a time, because
   heads have an even number of elements */

template<int N> static __device__ __forceinline__ void
llm_att_store_row(const llm_att_args_t &a, const llm_att_state_t<N> &st,
    int i, uint32_t dim, float factor, void *to, int is16)
{
    int     n;
    float2  v;

#pragma unroll
    for (n = 0; n < N; n++) {
        if (dim + n * 8 >= a.dv) {
            break;
        }

        v.x = st.acc[n][2 * i] * factor;
        v.y = st.acc[n][2 * i + 1] * factor;

        if (is16) {
            *(uint32_t *) ((uint16_t *) to + n * 8)
                = (uint32_t) llm_store16(v.x, a.bf16)
                  | (uint32_t) llm_store16(v.y, a.bf16) << 16;

        } else {
            *(float2 *) ((float *) to + n * 8) = v;
        }
    }
}


/* writes a warp's rows to the output, or as partial results, of the sequence's
   rows one after the other */

template<int N> static __device__ __forceinline__ void
llm_att_store(const llm_att_args_t &a, const llm_att_state_t<N> &st,
    const llm_att_place_t &at, float *partial)
{
    int        i;
    float     *dst;
    size_t     out;
    uint32_t   index, dim, head;

    dim = at.dim + threadIdx.x % 4 * 2;

#pragma unroll
    for (i = 0; i < 2; i++) {
        index = at.first + threadIdx.x % 32 / 4 + 8 * (uint32_t) i;

        if (index >= at.end) {
            continue;
        }

        head = at.kv_head * a.group + index % a.group;

        if (partial) {
            dst = partial + ((size_t) (index / a.group) * a.n_heads + head)
                            * (a.dv + 2);

            if (dim == 0) {
                dst[0] = st.max[i];
                dst[1] = st.sum[i];
            }

            llm_att_store_row<N>(a, st, i, dim, 1.0f, dst + 2 + dim, 0);
            continue;
        }

        out = ((size_t) (at.row0 + index / a.group) * a.n_heads + head)
              * a.dv + dim;
        llm_att_store_row<N>(a, st, i, dim,
                             llm_att_factor(a, head, st.max[i], st.sum[i]),
                             (uint8_t *) a.out + out * (a.out16 ? 2 : 4),
                             a.out16);
    }
}


/* the slopes and positions of the block's query rows from number `first` on;
   they may be read after the next barrier */

static __device__ __forceinline__ void
llm_att_falls(const llm_cuda_step_t &cs, const llm_att_args_t &a,
    uint32_t row0, uint32_t kv_head, uint32_t first, uint32_t n_rows,
    llm_att_fall_t *falls)
{
    uint32_t  i, index;

    for (i = threadIdx.x; i < LLM_ATT_WARPS * LLM_ATT_ROWS;
         i += LLM_ATT_THREADS)
    {
        index = llm_min(first + i, n_rows - 1);
        falls[i].pos = (int) cs.pos[row0 + index / a.group];
        falls[i].slope = a.slopes[kv_head * a.group + index % a.group]
                         * LLM_LOG2E;
    }
}


/* the positions that the lane's two rows see, of the warp's 16 from at.first
   on */

static __device__ __forceinline__ void
llm_att_rows(const llm_cuda_step_t &cs, const llm_att_args_t &a,
    const llm_att_place_t &at, uint32_t kv_len, llm_att_rows_t &r)
{
    int       i;
    uint32_t  index, row;

#pragma unroll
    for (i = 0; i < 2; i++) {
        index = at.first + threadIdx.x % 32 / 4 + 8 * (uint32_t) i;
        r.to[i] = -1;
        r.from[i] = 0;

        if (index < at.end) {
            row = at.row0 + index / a.group;
            r.to[i] = (int) llm_att_row_end(cs, a, row, kv_len) - 1;
            r.from[i] = (int) llm_att_row_first(cs, a, row);
        }
    }
}


/*
 * Computes a block's query rows [at.first, at.end) of the sequence: all that
 * they see, if split is LLM_CUDA_NO_SPLIT, or that split, as partial results.
 */

template<int DK, int DV, int FP8, int SLOPES, int FEW>
static __device__ __forceinline__ void
llm_att_block_rows(const llm_cuda_step_t &cs, const llm_att_args_t &a,
    uint8_t *mem, uint32_t seq, llm_att_place_t at, uint32_t split)
{
    int                   active;
    float                *partial;
    uint32_t              s, begin, end, kv_len, dv0, rows;
    uint32_t              q[DK / 16][4];
    llm_att_rows_t        r;

    enum { N = FEW ? DV / 32 : DV / 8 };

    llm_att_state_t<N>    part, all;

    /* the first and the last position that a row of this block sees */

    kv_len = cs.kv_len[seq];
    llm_att_range(cs, a, at.row0 + at.first / a.group,
                  at.row0 + (at.end - 1) / a.group, kv_len, &begin, &end);
    dv0 = at.dim;

    if (SLOPES) {
        llm_att_falls(cs, a, at.row0, at.kv_head, at.first, at.end,
                      (llm_att_fall_t *) (mem
                                    + llm_att_stage_t<DK, DV, FP8>::FALLS));
    }

    if (FEW) {
        at.dim += threadIdx.x / 32 * (DV / LLM_ATT_WARPS);

    } else {
        at.first += threadIdx.x / 32 * LLM_ATT_ROWS;
    }

    active = at.first < at.end;
    llm_att_rows(cs, a, at, kv_len, r);
    llm_att_queries<DK>(a, at.row0, at.kv_head, at.first, at.end, q);

    partial = NULL;
    s = begin / LLM_CUDA_KV_SPLIT * LLM_CUDA_KV_SPLIT;

    if (split != LLM_CUDA_NO_SPLIT) {
        s = split * LLM_CUDA_KV_SPLIT;

        if (s >= end || s + LLM_CUDA_KV_SPLIT <= begin) {
            return;
        }

        end = llm_min(s + LLM_CUDA_KV_SPLIT, end);
        rows = cs.seq_rows[seq + 1] - at.row0;
        partial = a.partial + (size_t) (cs.split_base[seq] + split * rows)
                              * a.n_heads * (a.dv + 2);
    }

    /* merging the first split with an empty result does not change its bits */

    llm_att_clear(all);

#pragma unroll 1
    for ( /* void */ ; s < end; s += LLM_CUDA_KV_SPLIT) {
        llm_att_split<DK, DV, FP8, SLOPES, FEW>(cs, a, mem, seq, at.kv_head,
            dv0, s, begin, llm_min(s + LLM_CUDA_KV_SPLIT, end), active, r, q,
            part);
        llm_att_merge(all, part);
    }

    if (active) {
        llm_att_store<N>(a, all, at, partial);
    }
}


/* are a tile's positions and columns enough for all warps of a block? */
template<int DK, int DV> struct llm_att_shares {
    enum { IT = llm_att_positions<DK>::N >= LLM_ATT_WARPS * 8
                && DV >= LLM_ATT_WARPS * 16 };
};


/*
 * Block (64 of an item's rows; slice of V and KV head; item).  FEW: no item has
 * more than 16 rows.
 */

template<int DK, int DV, int FP8, int SLOPES, int FEW> __global__ void
__launch_bounds__(LLM_ATT_THREADS, FEW || DK <= 64 ? 3 : DK <= 128 ? 2 : 1)
llm_k_attention(llm_cuda_step_t cs, llm_att_args_t a)
{
    uint32_t          item, seq, split, n_rows, end, tokens;
    llm_att_place_t   at;

    LLM_SHARED(mem);

    llm_early_begin();

    item = a.first_item + blockIdx.z;

    if (item >= cs.counts[LLM_N_ITEMS]) {
        return;
    }

    seq = cs.items[item].seq;
    split = cs.items[item].split;
    tokens = cs.counts[LLM_N_TOKENS_ITEM];

    at.row0 = cs.seq_rows[seq];
    at.kv_head = blockIdx.y / a.slices;
    at.dim = blockIdx.y % a.slices * DV;
    at.first = cs.items[item].tile * tokens * a.group;
    n_rows = (cs.seq_rows[seq + 1] - at.row0) * a.group;
    end = llm_min(at.first + tokens * a.group, n_rows);
    at.first += blockIdx.x * LLM_ATT_WARPS * LLM_ATT_ROWS;
    at.end = llm_min(at.first + LLM_ATT_WARPS * LLM_ATT_ROWS, end);

    if (at.first >= end) {
        return;
    }

    if constexpr (FEW) {
        llm_att_block_rows<DK, DV, FP8, SLOPES, 1>(cs, a, mem, seq, at, split);

    } else {
        if constexpr (llm_att_shares<DK, DV>::IT) {
            if (at.end - at.first <= LLM_ATT_ROWS) {
                llm_att_block_rows<DK, DV, FP8, SLOPES, 1>(cs, a, mem, seq,
                                                           at, split);
                return;
            }
        }

        llm_att_block_rows<DK, DV, FP8, SLOPES, 0>(cs, a, mem, seq, at, split);
    }
}


template<int DK, int DV, int FP8, int SLOPES, int FEW> static void
llm_att_launch_rows(llm_cuda_t *d, const llm_kv_t *kv,
    const llm_att_args_t &a, uint32_t rows)
{
    size_t  shared = llm_att_stage_t<DK, DV, FP8>::ALL;

    llm_cuda_use_shared<llm_k_attention<DK, DV, FP8, SLOPES, FEW>>(d, shared);

    llm_launch_early(llm_cuda_early(d),
                     (llm_k_attention<DK, DV, FP8, SLOPES, FEW>),
                     dim3((rows + LLM_ATT_WARPS * LLM_ATT_ROWS - 1)
                          / (LLM_ATT_WARPS * LLM_ATT_ROWS),
                          a.slices * a.n_kv_heads, a.n_items - a.first_item),
                     LLM_ATT_THREADS, shared, d->stream,
                     llm_cuda_step_of(d, kv), a);
}


template<int DK, int DV, int FP8, int SLOPES> static void
llm_att_launch_as(llm_cuda_t *d, const llm_kv_t *kv, const llm_att_args_t &a)
{
    uint32_t  rows;

    rows = llm_min(a.max_rows, d->item_tokens) * a.group;

    if constexpr (llm_att_shares<DK, DV>::IT) {
        if (rows <= LLM_ATT_ROWS) {
            llm_att_launch_rows<DK, DV, FP8, SLOPES, 1>(d, kv, a, rows);
            return;
        }
    }

    llm_att_launch_rows<DK, DV, FP8, SLOPES, 0>(d, kv, a, rows);
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
