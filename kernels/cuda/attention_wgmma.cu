/*
 * Attention of many rows on Hopper, for heads of at most 128 elements: the
 * arithmetic of attention_kernel.h in the same order, its products by wgmma.
 *
 * A block has 128 query rows of an item, 64 for each of two warpgroups, which
 * share tiles of 64 positions in a ring of four stages: two are in use, and two
 * are being copied.  A warpgroup starts the scores of a tile and then the
 * values of the one before, so that its softmax runs beside its own values and
 * beside the other warpgroup's products (FlashAttention-3, arXiv:2407.08608).
 *
 * Invariant: for a row, as attention_kernel.h.  A stage is copied to only after
 * the barrier that follows the last use of its tile.
 */

#include "kernels/cuda/attention_kernel.h"
#include "kernels/cuda/wgmma.h"

#define LLM_AWG_THREADS  256
#define LLM_AWG_ROWS     128
#define LLM_AWG_TILE     64             /* positions */
#define LLM_AWG_TILES    (LLM_AWG_TILE / 16)
#define LLM_AWG_STAGES   4
#define LLM_AWG_STAGE    (2 * LLM_WG_TILE)      /* bytes: K, then V */
#define LLM_AWG_SHARED   (LLM_AWG_STAGES * LLM_AWG_STAGE + LLM_WG_ALIGN)

/* columns of 8 of a head */
#define LLM_AWG_N        16

/* what a block works on */
typedef struct {
    uint8_t          *mem;
    const uint32_t   *pages;            /* of the sequence */
    const uint8_t    *k;                /* the KV head in a page */
    const uint8_t    *v;
    uint32_t          k_page;           /* bytes */
    uint32_t          v_page;
    uint32_t          begin;            /* first position that a row sees */
    uint32_t          end;              /* one more than the last */
    uint32_t          page[LLM_AWG_TILES];      /* of the tile that is copied
                                                   next */
} llm_awg_t;


/* the pages of the tile from position `first` on; after the last one, the last
   page that there is */

static __device__ __forceinline__ void
llm_awg_pages(llm_awg_t &w, uint32_t first)
{
    int       i;
    uint32_t  last;

    last = (w.end - 1) / LLM_KV_PAGE;

#pragma unroll
    for (i = 0; i < LLM_AWG_TILES; i++) {
        w.page[i] = w.pages[llm_min(first / LLM_KV_PAGE + i, last)];
    }
}


/* starts copying a tile of K or of V: the threads copy the positions of a page
   at once; what no row sees, and elements beyond dim, become zeros */

static __device__ __forceinline__ void
llm_awg_copy(const llm_awg_t &w, uint8_t *tile, const uint8_t *head,
    uint32_t page, uint32_t dim, uint32_t first)
{
    int       i, ok;
    uint32_t  row, chunk;

    row = threadIdx.x / 16;
    chunk = threadIdx.x % 16;
    tile += llm_wg_place(row, chunk);
    head += (row * dim + chunk * 8) * 2;
    first += row - w.begin;

#pragma unroll
    for (i = 0; i < LLM_AWG_TILES; i++) {
        ok = chunk * 8 < dim && first + i * LLM_KV_PAGE < w.end - w.begin;
        llm_cp_async16(tile + i * LLM_KV_PAGE * 128,
                       head + (size_t) w.page[i] * page, ok);
    }
}


/* starts copying the tile from `first` on, if there is one, and reads the pages
   of the next */

static __device__ __forceinline__ void
llm_awg_fetch(const llm_att_args_t &a, llm_awg_t &w, uint32_t first)
{
    uint8_t  *stage;

    stage = w.mem + first / LLM_AWG_TILE % LLM_AWG_STAGES * LLM_AWG_STAGE;

    if (first < w.end) {
        llm_awg_copy(w, stage, w.k, w.k_page, a.dk, first);
        llm_awg_copy(w, stage + LLM_WG_TILE, w.v, w.v_page, a.dv, first);
        llm_awg_pages(w, first + LLM_AWG_TILE);
    }

    llm_cp_async_commit();
}


/* turns scores of 64 positions into weights; *old: the factors for the rows'
   values so far */

static __device__ __forceinline__ void
llm_awg_softmax(const llm_att_args_t &a, uint32_t first,
    const llm_att_rows_t &r, float s[8][4], float old[2],
    llm_att_sums_t<LLM_AWG_TILES> &sums, llm_att_state_t<LLM_AWG_N> &st)
{
    int    i, n, whole;
    float  m[2], base[2], scale;

    whole = llm_att_whole(r, first, LLM_AWG_TILE);
    scale = llm_att_scale<0>(a);
    llm_att_mask<8, 0>(a, NULL, (int) first, whole, r, s, m);

#pragma unroll
    for (i = 0; i < 2; i++) {
        base[i] = llm_att_base(m[i], scale, &st.max[i], &old[i]);
    }

    llm_att_rescale(sums, old);

#pragma unroll
    for (n = 0; n < LLM_AWG_TILES; n++) {
        llm_att_exp(s[2 * n], scale, base, sums.of[n]);
        llm_att_exp(s[2 * n + 1], scale, base, sums.of[n]);
    }
}


/* weights as left operands of products, which begin after a later
   llm_wg_begin() */

static __device__ __forceinline__ void
llm_awg_pack(const float s[8][4], uint32_t p[LLM_AWG_TILES][4])
{
    int  n, i;

#pragma unroll
    for (n = 0; n < LLM_AWG_TILES; n++) {
#pragma unroll
        for (i = 0; i < 4; i++) {
            p[n][i] = llm_att_pack_weights(s[2 * n + i / 2][i % 2 * 2],
                                           s[2 * n + i / 2][i % 2 * 2 + 1]);
        }
    }

    llm_wg_hold<LLM_AWG_TILES>(p);
}


/* starts adding the values of the tile from `first` on */

static __device__ __forceinline__ void
llm_awg_values(const llm_awg_t &w, uint32_t first,
    const uint32_t p[LLM_AWG_TILES][4], llm_att_state_t<LLM_AWG_N> &st)
{
    int             k;
    const uint8_t  *tile;

    tile = w.mem + first / LLM_AWG_TILE % LLM_AWG_STAGES * LLM_AWG_STAGE
           + LLM_WG_TILE;

#pragma unroll
    for (k = 0; k < LLM_AWG_TILES; k++) {
        llm_wg_values(st.acc, p[k], w.mem, tile, k);
    }

    llm_wg_commit();
}


/*
 * A branch that is never taken, as sums of weights are not negative.  ptxas
 * moves a wait up as far as it can, and with it the softmax would come after
 * the products that it should run beside; it moves none across a branch.
 */

static __device__ __forceinline__ void
llm_awg_before_wait(const llm_att_sums_t<LLM_AWG_TILES> &sums)
{
#ifndef LLM_EMU
    if (__any_sync(LLM_FULL_WARP, sums.of[LLM_AWG_TILES - 1][0] < 0)) {
        __trap();
    }
#else
    (void) sums;
#endif
}


/* waits for the values; until then p may not change */

static __device__ __forceinline__ void
llm_awg_end_values(uint32_t p[LLM_AWG_TILES][4],
    llm_att_state_t<LLM_AWG_N> &st)
{
    llm_wg_wait<0>();
    llm_wg_hold<LLM_AWG_N>(st.acc);
    llm_wg_hold<LLM_AWG_TILES>(p);
}


/* starts the scores of the tile from `at` on, once it has come */

static __device__ __forceinline__ void
llm_awg_scores(const llm_att_args_t &a, llm_awg_t &w, uint32_t at,
    const uint32_t q[8][4], float s[8][4])
{
    llm_cp_async_wait<1>();
    llm_wg_written();
    __syncthreads();
    llm_awg_fetch(a, w, at + 2 * LLM_AWG_TILE);

    llm_wg_hold<8>(s);
    llm_wg_begin();
    llm_wg_scores(s, q, w.mem, w.mem + at / LLM_AWG_TILE % LLM_AWG_STAGES
                                       * LLM_AWG_STAGE);
    llm_wg_commit();
}


/* all tiles of a block; `all` gets the rows' results.  Not called where there
   is no wgmma. */

[[maybe_unused]] static __device__ __forceinline__ void
llm_awg_block(const llm_att_args_t &a, llm_awg_t &w,
    const llm_att_rows_t &r, const uint32_t q[8][4],
    llm_att_state_t<LLM_AWG_N> &all)
{
    float      s[8][4], old[2];
    uint32_t   at, p[LLM_AWG_TILES][4];

    llm_att_sums_t<LLM_AWG_TILES>  sums;
    llm_att_state_t<LLM_AWG_N>     part;

    llm_att_clear(all);
    llm_att_clear(part);
    llm_att_clear(sums);
    llm_zero<1, 8>(&s);
    at = w.begin / LLM_AWG_TILE * LLM_AWG_TILE;
    llm_awg_pages(w, at);
    llm_awg_fetch(a, w, at);
    llm_awg_fetch(a, w, at + LLM_AWG_TILE);

    llm_awg_scores(a, w, at, q, s);
    llm_wg_wait<0>();
    llm_wg_hold<8>(s);
    llm_awg_softmax(a, at, r, s, old, sums, part);
    llm_awg_pack(s, p);

#pragma unroll 1
    for (at += LLM_AWG_TILE; at < w.end; at += LLM_AWG_TILE) {
        llm_awg_scores(a, w, at, q, s);
        llm_awg_values(w, at - LLM_AWG_TILE, p, part);
        llm_wg_wait<1>();
        llm_wg_hold<8>(s);

        if (at % LLM_CUDA_KV_SPLIT == 0) {
            llm_awg_end_values(p, part);
            llm_att_total(part, sums);
            llm_att_merge(all, part);
            llm_att_clear(part);
            llm_att_clear(sums);
        }

        llm_awg_softmax(a, at, r, s, old, sums, part);
        llm_awg_before_wait(sums);
        llm_awg_end_values(p, part);
        llm_att_rescale(part, old);
        llm_wg_hold<LLM_AWG_N>(part.acc);
        llm_awg_pack(s, p);
    }

    llm_wg_begin();
    llm_awg_values(w, at - LLM_AWG_TILE, p, part);
    llm_awg_end_values(p, part);
    llm_att_total(part, sums);
    llm_att_merge(all, part);
}


/* block (128 of an item's rows; KV head; item) */

__global__ void __launch_bounds__(LLM_AWG_THREADS, 1)
llm_k_attention_wgmma(llm_cuda_step_t cs, llm_att_args_t a)
{
#if LLM_WG_HERE
    uint32_t          seq, tokens, n_rows, end, kv_len;
    uint32_t          q[8][4];
    llm_awg_t         w;
    llm_att_rows_t    r;
    llm_att_place_t   at;

    llm_att_state_t<LLM_AWG_N>  all;

    LLM_SHARED(mem);

    /* a call, as of tanhf(), would wait for the products: see attention.cu */
    a.cap = 0;

    seq = cs.items[blockIdx.z].seq;
    tokens = cs.counts[LLM_N_TOKENS_ITEM];

    at.row0 = cs.seq_rows[seq];
    at.kv_head = blockIdx.y;
    at.dim = 0;
    n_rows = (cs.seq_rows[seq + 1] - at.row0) * a.group;
    at.first = cs.items[blockIdx.z].tile * tokens * a.group;
    end = llm_min(at.first + tokens * a.group, n_rows);
    at.first += blockIdx.x * LLM_AWG_ROWS;
    at.end = llm_min(at.first + LLM_AWG_ROWS, end);

    if (at.first >= end) {
        return;
    }

    kv_len = cs.kv_len[seq];
    w.mem = llm_wg_memory(mem);
    w.pages = cs.pages + cs.page_first[seq];
    w.k = a.kc + at.kv_head * llm_kv_block(a.dk, 0);
    w.v = a.vc + at.kv_head * llm_kv_block(a.dv, 0);
    w.k_page = (uint32_t) (a.n_kv_heads * llm_kv_block(a.dk, 0));
    w.v_page = (uint32_t) (a.n_kv_heads * llm_kv_block(a.dv, 0));
    llm_att_range(cs, a, at.row0 + at.first / a.group,
                  at.row0 + (at.end - 1) / a.group, kv_len, &w.begin, &w.end);

    /* the same in all threads of a warp, which the compiler has to know */

    w.begin = __shfl_sync(LLM_FULL_WARP, w.begin, 0);
    w.end = __shfl_sync(LLM_FULL_WARP, w.end, 0);

    at.first += threadIdx.x / 32 * LLM_ATT_ROWS;
    llm_att_rows(cs, a, at, kv_len, r);
    llm_att_queries<128>(a, at.row0, at.kv_head, at.first, at.end, q);

    llm_awg_block(a, w, r, q, all);
    llm_att_store<LLM_AWG_N>(a, all, at, NULL);
#else
    (void) cs;
    (void) a;
#endif
}


int
llm_cuda_wgmma_compiled(void)
{
#ifdef LLM_EMU
    return 1;
#else
    return LLM_CUDA_WGMMA;
#endif
}


/* attention of the items that llm_cuda_items_fill() has put first */

void
llm_cuda_attention_wgmma(llm_cuda_t *d, const llm_kv_t *kv,
    const llm_att_args_t &a)
{
    uint32_t  rows;

    rows = llm_min(d->max_seq_rows, d->item_tokens) * a.group;
    llm_cuda_use_shared<llm_k_attention_wgmma>(d, LLM_AWG_SHARED);

    llm_launch(llm_k_attention_wgmma,
               dim3((rows + LLM_AWG_ROWS - 1) / LLM_AWG_ROWS, a.n_kv_heads,
                    d->wide_items),
               LLM_AWG_THREADS, LLM_AWG_SHARED, d->stream,
               llm_cuda_step_of(d, kv), a);
}
