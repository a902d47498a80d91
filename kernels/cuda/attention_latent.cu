/*
 * Latent attention over the paged cache on tensor cores.  Many query heads
 * share a head of K whose first elements are V, so a block reads a tile of the
 * cache once, for the scores and for the values of all its query rows.
 *
 * The query rows of one sequence and one KV head (tokens times query heads)
 * have consecutive numbers.  A block of eight warps takes 64, 32 or 16 of an
 * item's (llm_cuda_item_t); the items of sequences with many rows have a launch
 * of their own, so that no block of the others is without rows.
 *
 * Q and two tiles of the cache are in shared memory.  For each tile, a warp
 * computes some of the scores over one half of a head's elements; four
 * neighbouring threads add both halves of a row's scores and turn them into
 * weights; then each warp adds its columns of V to its sums.  Splits, and the
 * kernel that merges them, are the same as in attention.cu.
 *
 * Invariant: a row's arithmetic depends only on its own sequence, not on the
 * number of rows of a block nor on the row's place among them.
 */

#include "kernels/cuda/attention_latent.h"


/* the warp's sums of its part of V; maximum and sum of the thread's row of
   scores */
template<int R> struct llm_lat_state_t {
    float  max;
    float  sum;
    float  acc[llm_lat_shape<R>::VM][llm_lat_shape<R>::VN][4];
};


template<int R> static __device__ __forceinline__ void
llm_lat_clear(llm_lat_state_t<R> &st)
{
    st.max = -INFINITY;
    st.sum = 0;
    llm_zero<llm_lat_shape<R>::VM, llm_lat_shape<R>::VN>(st.acc);
}


/* ---- a tile ---- */

/* adds the products of 32 elements, from q and k on */

template<int SM, int SN> static __device__ __forceinline__ void
llm_lat_scores_32(const llm_lat_block_t &b, const uint16_t *q,
    const uint16_t *k, float acc[SM][SN][4])
{
    int       m, n;
    uint32_t  qf[SM][2][4], kf[SN][4];

#pragma unroll
    for (m = 0; m < SM; m++) {
        llm_ldmatrix_x4<0>(qf[m][0], q + m * 16 * b.stride);
        llm_ldmatrix_x4<0>(qf[m][1], q + m * 16 * b.stride + 16);
    }

#pragma unroll
    for (n = 0; n < SN; n++) {
        llm_ldmatrix_x4<0>(kf[n], k + n * 8 * b.stride);
    }

    llm_mma_tiles<SM, SN>(acc, qf, kf, 0);
}


/* scores of the block's rows for a tile, over each half of a head's elements
   separately */

template<int R> static __device__ __forceinline__ void
llm_lat_scores(const llm_lat_block_t &b, const uint16_t *ks)
{
    int              m, n;
    float           *s;
    uint32_t         c, end, half, lane, warp, row, col;
    const uint16_t  *q, *k;

    enum { SM = llm_lat_shape<R>::SM, SN = llm_lat_shape<R>::SN,
           SG = llm_lat_shape<R>::SG };

    float            acc[SM][SN][4];

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    half = warp % 2;
    col = warp / 2 % SG * SN * 8;
    row = warp / 2 / SG * SM * 16;

    q = b.q + (row + lane % 16) * b.stride + lane / 16 * 8;
    k = ks + (col + lane % 8) * b.stride + lane / 8 * 8;
    c = half ? (b.steps + 1) / 2 * 32 : 0;
    end = (half ? b.steps : (b.steps + 1) / 2) * 32;

    llm_zero<SM, SN>(acc);

    /* a remainder of the first loop would be under predicates */

#pragma unroll 1
    for ( /* void */ ; c + 96 <= end; c += 96) {
#pragma unroll
        for (n = 0; n < 96; n += 32) {
            llm_lat_scores_32<SM, SN>(b, q + c + n, k + c + n, acc);
        }
    }

#pragma unroll 1
    for ( /* void */ ; c < end; c += 32) {
        llm_lat_scores_32<SM, SN>(b, q + c, k + c, acc);
    }

    s = b.s + (half * R + row + lane / 4) * LLM_LAT_SCORES + col
        + lane % 4 * 2;

#pragma unroll
    for (m = 0; m < SM; m++) {
#pragma unroll
        for (n = 0; n < SN; n++) {
            *(float2 *) (s + m * 16 * LLM_LAT_SCORES + n * 8)
                = make_float2(acc[m][n][0], acc[m][n][1]);
            *(float2 *) (s + (m * 16 + 8) * LLM_LAT_SCORES + n * 8)
                = make_float2(acc[m][n][2], acc[m][n][3]);
        }
    }
}


/* maximum and sum over four neighbouring lanes */

static __device__ __forceinline__ float
llm_lat_max(float v)
{
    v = fmaxf(v, __shfl_xor_sync(LLM_FULL_WARP, v, 1));

    return fmaxf(v, __shfl_xor_sync(LLM_FULL_WARP, v, 2));
}


static __device__ __forceinline__ float
llm_lat_sum(float v)
{
    v += __shfl_xor_sync(LLM_FULL_WARP, v, 1);

    return v + __shfl_xor_sync(LLM_FULL_WARP, v, 2);
}


/*
 * Turns scores into 16-bit weights, in the same place; f[] gets the factors for
 * the rows' sums so far.  With fewer than 64 rows, whole warps have none.
 */

template<int R> static __device__ __forceinline__ void
llm_lat_softmax(const llm_att_args_t &a, const llm_lat_block_t &b,
    uint32_t at, llm_lat_state_t<R> &st)
{
    int       j, key;
    float    *s, v[8], m, old, part, sum;
    float4    x, y;
    uint32_t  row, c;

    row = threadIdx.x / 4;
    c = threadIdx.x % 4 * 8;

    if (row >= R) {
        return;
    }

    s = b.s + row * LLM_LAT_SCORES;
    m = -INFINITY;

#pragma unroll
    for (j = 0; j < 2; j++) {
        x = *(const float4 *) (s + c + 4 * j);
        y = *(const float4 *) (s + R * LLM_LAT_SCORES + c + 4 * j);
        v[4 * j] = x.x + y.x;
        v[4 * j + 1] = x.y + y.y;
        v[4 * j + 2] = x.z + y.z;
        v[4 * j + 3] = x.w + y.w;
    }

#pragma unroll
    for (j = 0; j < 8; j++) {
        key = (int) (at + c) + j;
        v[j] = __fmul_rn(v[j], a.scale);
        v[j] = a.cap > 0 ? __fmul_rn(a.cap, tanhf(v[j])) : v[j];
        v[j] = key <= b.pos && key >= b.from ? v[j] : -INFINITY;
        m = fmaxf(m, v[j]);
    }

    m = llm_lat_max(m);
    llm_att_weights(st.max, m, &m, &old, &part);
    st.max = m;
    sum = 0;

#pragma unroll
    for (j = 0; j < 8; j++) {
        v[j] = v[j] == -INFINITY ? 0.0f : llm_exp2(v[j] - m);
        sum += v[j];
    }

    /* after this shuffle the other lanes have read their scores */
    sum = llm_lat_sum(sum);
    st.sum = __fmaf_rn(st.sum, old, sum);
    __syncwarp();

    *(uint4 *) ((uint16_t *) s + c)
        = make_uint4(llm_att_pack(v[0], v[1]), llm_att_pack(v[2], v[3]),
                     llm_att_pack(v[4], v[5]), llm_att_pack(v[6], v[7]));

    if (c == 0) {
        b.f[row] = old;
    }
}


/* the warp's first row and first column of V */

template<int R> static __device__ __forceinline__ void
llm_lat_place(uint32_t *row, uint32_t *col)
{
    uint32_t  warp;

    enum { VG = llm_lat_shape<R>::VG };

    warp = threadIdx.x / 32;
    *row = warp / VG * llm_lat_shape<R>::VM * 16;
    *col = warp % VG * llm_lat_shape<R>::VN * 8;
}


/* multiplies the sums so far by f[] and adds the tile's values */

template<int R> static __device__ __forceinline__ void
llm_lat_values(const llm_att_args_t &a, const llm_lat_block_t &b,
    const uint16_t *ks, llm_lat_state_t<R> &st)
{
    int              i, k, m, n;
    float            old;
    uint32_t         lane, row, col, pf[2][4], vf[4];
    const uint16_t  *p, *v;

    enum { VM = llm_lat_shape<R>::VM, VN = llm_lat_shape<R>::VN };

    lane = threadIdx.x % 32;
    llm_lat_place<R>(&row, &col);

    if (b.first + row >= b.rows_end || col >= a.dv) {
        return;
    }

#pragma unroll
    for (m = 0; m < VM; m++) {
#pragma unroll
        for (i = 0; i < 2; i++) {
            old = b.f[row + m * 16 + i * 8 + lane / 4];

#pragma unroll
            for (n = 0; n < VN; n++) {
                st.acc[m][n][2 * i] *= old;
                st.acc[m][n][2 * i + 1] *= old;
            }
        }
    }

    p = (const uint16_t *) (b.s + (row + lane % 16) * LLM_LAT_SCORES)
        + lane / 16 * 8;
    v = ks + lane % 16 * b.stride + col + lane / 16 * 8;

#pragma unroll
    for (k = 0; k < LLM_LAT_TILE; k += 16) {
#pragma unroll
        for (m = 0; m < VM; m++) {
            llm_ldmatrix_x4<0>(pf[m], p + m * 32 * LLM_LAT_SCORES + k);
        }

#pragma unroll
        for (n = 0; n < VN; n += 2) {
            llm_ldmatrix_x4<1>(vf, v + k * b.stride + n * 8);

#pragma unroll
            for (m = 0; m < VM; m++) {
                llm_mma_f16(st.acc[m][n], pf[m], vf);
                llm_mma_f16(st.acc[m][n + 1], pf[m], vf + 2);
            }
        }
    }
}


/* computes a split, tile by tile, while the next tile is being copied; the
   block's first split loads the queries, too */

template<int R, int FP8> static __device__ __forceinline__ void
llm_lat_split(const llm_cuda_step_t &cs, const llm_att_args_t &a,
    const llm_lat_block_t &b, uint32_t split, int is_first,
    llm_lat_state_t<R> &st)
{
    uint32_t         at, end, turn;
    const uint16_t  *ks;

    llm_lat_clear<R>(st);
    at = split * LLM_CUDA_KV_SPLIT;
    end = llm_min(at + LLM_CUDA_KV_SPLIT, b.end);
    at += b.begin > at ? (b.begin - at) / LLM_LAT_TILE * LLM_LAT_TILE : 0;

    __syncthreads();
    llm_lat_fetch<FP8>(cs, a, b, 0, at);
    llm_cp_async_commit();

    if (is_first) {
        llm_lat_queries<R>(a, b);
    }

    for (turn = 0; at < end; at += LLM_LAT_TILE, turn ^= 1) {
        llm_cp_async_wait<0>();
        __syncthreads();

        ks = b.k;

        if (FP8) {
            llm_lat_widen(b, b.raw + turn * llm_lat_raw(b.steps), b.k);
            __syncthreads();

        } else {
            ks += turn * LLM_LAT_TILE * b.stride;
        }

        if (at + LLM_LAT_TILE < end) {
            llm_lat_fetch<FP8>(cs, a, b, turn ^ 1, at + LLM_LAT_TILE);
        }

        llm_cp_async_commit();

        llm_lat_scores<R>(b, ks);
        __syncthreads();
        llm_lat_softmax<R>(a, b, at, st);
        __syncthreads();
        llm_lat_values<R>(a, b, ks, st);
    }
}


/* ---- results ---- */

/* merges part into all; part comes after all in the sequence */

template<int R> static __device__ __forceinline__ void
llm_lat_merge(const llm_lat_block_t &b, llm_lat_state_t<R> &all,
    const llm_lat_state_t<R> &part)
{
    int        i, j, m, n;
    float      max, w0, w1;
    uint32_t   row, col;

    enum { VM = llm_lat_shape<R>::VM, VN = llm_lat_shape<R>::VN };

    __syncthreads();

    if (threadIdx.x / 4 < R) {
        llm_att_weights(all.max, part.max, &max, &w0, &w1);
        all.max = max;
        all.sum = llm_att_join(all.sum, w0, part.sum, w1);

        if (threadIdx.x % 4 == 0) {
            b.f[threadIdx.x / 4] = w0;
            b.f[R + threadIdx.x / 4] = w1;
        }
    }

    __syncthreads();
    llm_lat_place<R>(&row, &col);

#pragma unroll
    for (m = 0; m < VM; m++) {
#pragma unroll
        for (i = 0; i < 2; i++) {
            w0 = b.f[row + m * 16 + i * 8 + threadIdx.x % 32 / 4];
            w1 = b.f[R + row + m * 16 + i * 8 + threadIdx.x % 32 / 4];

#pragma unroll
            for (n = 0; n < VN; n++) {
#pragma unroll
                for (j = 2 * i; j < 2 * i + 2; j++) {
                    all.acc[m][n][j] = llm_att_join(all.acc[m][n][j], w0,
                                                    part.acc[m][n][j], w1);
                }
            }
        }
    }
}


/* writes the block's rows to the output, or as partial results, of the
   sequence's rows one after the other */

template<int R> static __device__ __forceinline__ void
llm_lat_store(const llm_att_args_t &a, const llm_lat_block_t &b,
    const llm_lat_state_t<R> &st, float *partial)
{
    int        i, j, m, n;
    float      f, *dst;
    size_t     out;
    uint32_t   row, col, index, head, dim;

    enum { VM = llm_lat_shape<R>::VM, VN = llm_lat_shape<R>::VN };

    __syncthreads();
    row = threadIdx.x / 4;
    index = b.first + row;

    if (row < R && index < b.rows_end && threadIdx.x % 4 == 0) {
        head = b.kv_head * a.group + index % a.group;

        if (partial) {
            dst = partial + ((size_t) (index / a.group) * a.n_heads + head)
                            * (a.dv + 2);
            dst[0] = st.max;
            dst[1] = st.sum;

        } else {
            b.f[row] = llm_att_factor(a, head, st.max, st.sum);
        }
    }

    __syncthreads();
    llm_lat_place<R>(&row, &col);
    row += threadIdx.x % 32 / 4;

#pragma unroll
    for (m = 0; m < VM; m++) {
#pragma unroll
        for (i = 0; i < 2; i++) {
            index = b.first + row + m * 16 + i * 8;

            if (index >= b.rows_end) {
                continue;
            }

            head = b.kv_head * a.group + index % a.group;
            out = ((size_t) (b.row0 + index / a.group) * a.n_heads + head)
                  * a.dv;
            dst = partial ? partial + 2 + ((size_t) (index / a.group)
                                           * a.n_heads + head) * (a.dv + 2)
                          : NULL;
            f = partial ? 1.0f : b.f[row + m * 16 + i * 8];

#pragma unroll
            for (n = 0; n < VN; n++) {
#pragma unroll
                for (j = 0; j < 2; j++) {
                    dim = col + n * 8 + threadIdx.x % 4 * 2 + j;

                    if (dim >= a.dv) {
                        continue;
                    }

                    if (partial) {
                        dst[dim] = st.acc[m][n][2 * i + j];

                    } else {
                        /* -0 becomes 0, as where splits are merged */
                        llm_store(a.out, out + dim,
                                  (st.acc[m][n][2 * i + j] + 0.0f) * f,
                                  a.out16, a.bf16);
                    }
                }
            }
        }
    }
}


/* ---- blocks ---- */

/* sets the block's work: part `part` of an item's query rows, R each; returns 0
   if there is none */

template<int R, int FP8> static __device__ int
llm_lat_begin(const llm_cuda_step_t &cs, const llm_att_args_t &a,
    const llm_cuda_item_t &item, uint32_t part, uint8_t *mem,
    llm_lat_block_t *b)
{
    uint32_t  index, rows, last;

    rows = cs.counts[LLM_N_TOKENS_ITEM] * a.group;

    b->seq = item.seq;
    b->kv_head = blockIdx.y;
    b->row0 = cs.seq_rows[b->seq];
    b->first = item.tile * rows;
    b->rows_end = llm_min(b->first + rows,
                          (cs.seq_rows[b->seq + 1] - b->row0) * a.group);
    b->first += part * R;

    if (b->first >= b->rows_end) {
        return 0;
    }

    last = llm_min(b->first + R, b->rows_end) - 1;
    b->begin = llm_att_first(a, cs.pos[b->row0 + b->first / a.group]);
    b->end = cs.pos[b->row0 + last / a.group] + 1;

    index = b->first + threadIdx.x / 4;
    b->pos = index <= last ? (int) cs.pos[b->row0 + index / a.group] : -1;
    b->from = (int) llm_att_first(a, (uint32_t) llm_max(b->pos, 0));

    (void) llm_lat_layout<R, FP8>(b, mem, a.dk, a.dv);

    return 1;
}


/* one split, as partial results; or all that the item's rows see, if that is
   the first split and nothing is to be merged */

template<int R, int FP8> static __device__ void
llm_lat_one(const llm_cuda_step_t &cs, const llm_att_args_t &a,
    const llm_cuda_item_t &item, uint8_t *mem)
{
    float               *partial;
    uint32_t             split, rows;
    llm_lat_block_t      b;
    llm_lat_state_t<R>   st;

    split = item.split == LLM_CUDA_NO_SPLIT ? 0 : item.split;

    if (!llm_lat_begin<R, FP8>(cs, a, item, blockIdx.x, mem, &b)
        || split * LLM_CUDA_KV_SPLIT >= b.end
        || split < b.begin / LLM_CUDA_KV_SPLIT)
    {
        return;
    }

    llm_lat_split<R, FP8>(cs, a, b, split, 1, st);
    partial = NULL;

    if (item.split != LLM_CUDA_NO_SPLIT) {
        rows = cs.seq_rows[b.seq + 1] - b.row0;
        partial = a.partial + (size_t) (cs.split_base[b.seq] + split * rows)
                              * a.n_heads * (a.dv + 2);
    }

    llm_lat_store<R>(a, b, st, partial);
}


/* all splits, one after the other */

template<int R, int FP8> static __device__ void
llm_lat_all(const llm_cuda_step_t &cs, const llm_att_args_t &a,
    const llm_cuda_item_t &item, uint32_t part, uint8_t *mem)
{
    uint32_t             split, first;
    llm_lat_block_t      b;
    llm_lat_state_t<R>   all, st;

    if (!llm_lat_begin<R, FP8>(cs, a, item, part, mem, &b)) {
        return;
    }

    llm_lat_clear<R>(all);
    first = b.begin / LLM_CUDA_KV_SPLIT;

    for (split = first; split * LLM_CUDA_KV_SPLIT < b.end; split++) {
        llm_lat_split<R, FP8>(cs, a, b, split, split == first, st);
        llm_lat_merge<R>(b, all, st);
    }

    llm_lat_store<R>(a, b, all, NULL);
}


/*
 * Block (R of an item's query rows; KV head; item).  A block that merges splits
 * has two states, and with 64 rows they would not fit the registers: it takes
 * the halves of its rows one after the other.
 */

template<int R, int FP8> __global__ void
__launch_bounds__(LLM_LAT_THREADS)
llm_k_latent(llm_cuda_step_t cs, llm_att_args_t a)
{
    uint32_t         i;
    llm_cuda_item_t  item;

    enum { PARTS = R > 32 ? 2 : 1 };

    LLM_SHARED(mem);

    i = a.first_item + blockIdx.z;

    if (i >= cs.counts[LLM_N_ITEMS]) {
        return;
    }

    item = cs.items[i];

    if (item.length == 1) {
        llm_lat_one<R, FP8>(cs, a, item, mem);
        return;
    }

#pragma unroll 1
    for (i = 0; i < PARTS; i++) {
        llm_lat_all<R / PARTS, FP8>(cs, a, item, blockIdx.x * PARTS + i, mem);
    }
}


/* returns nonzero, without a launch, if a block would need more shared memory
   than the GPU has */

template<int R, int FP8> static int
llm_lat_launch(llm_cuda_t *d, const llm_kv_t *kv, const llm_att_args_t &a,
    uint32_t rows)
{
    size_t            shared;
    llm_lat_block_t   b;

    shared = llm_lat_layout<R, FP8>(&b, NULL, a.dk, a.dv);

    if (shared > d->gpu->shared) {
        return 1;
    }

    llm_cuda_use_shared<llm_k_latent<R, FP8>>(d, shared);

    llm_launch((llm_k_latent<R, FP8>),
               dim3((rows + R - 1) / R, a.n_kv_heads,
                    a.n_items - a.first_item),
               LLM_LAT_THREADS, shared, d->stream, llm_cuda_step_of(d, kv), a);

    return 0;
}


/* blocks with as many rows as an item of the launch can have, as `most` and as
   fit the GPU's shared memory */

template<int FP8> static void
llm_lat_choose(llm_cuda_t *d, const llm_kv_t *kv, const llm_att_args_t &a,
    uint32_t most)
{
    uint32_t  rows, n;

    rows = llm_min(a.max_rows, d->item_tokens) * a.group;
    n = llm_min(rows, most);

    if ((n <= 32 || llm_lat_launch<64, FP8>(d, kv, a, rows))
        && (n <= 16 || llm_lat_launch<32, FP8>(d, kv, a, rows)))
    {
        (void) llm_lat_launch<16, FP8>(d, kv, a, rows);
    }
}


static void
llm_lat_items(llm_cuda_t *d, const llm_kv_t *kv, const llm_att_args_t &a,
    uint32_t most)
{
    if (d->opts.kv_fp8) {
        llm_lat_choose<1>(d, kv, a, most);

    } else {
        llm_lat_choose<0>(d, kv, a, most);
    }
}


/* items of many rows merge splits: 32 rows are most for them */

void
llm_cuda_latent(llm_cuda_t *d, const llm_kv_t *kv, const llm_att_args_t &a)
{
    llm_att_args_t  one;

    one = a;

    if (kv->opts.kind != LLM_KV_CROSS && d->wide_items) {
        one.n_items = d->wide_items;
        llm_lat_items(d, kv, one, 32);

        one.n_items = a.n_items;
        one.first_item = d->wide_items;
        one.max_rows = d->narrow_rows;
    }

    if (one.first_item < one.n_items) {
        llm_lat_items(d, kv, one, 64);
    }
}
