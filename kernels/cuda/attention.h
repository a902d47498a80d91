/*
 * Attention's arguments, the positions that a row sees, and copying tiles of
 * the paged cache to shared memory: f16, or the cache's bytes of e4m3, which
 * the block converts to f16, without loss, before it uses a tile.
 */

#ifndef LLM_CUDA_ATTENTION_H
#define LLM_CUDA_ATTENTION_H

#include "kernels/cuda/internal.h"

#define LLM_ATT_WARPS    4
#define LLM_ATT_THREADS  (LLM_ATT_WARPS * 32)
#define LLM_ATT_ROWS     16             /* of a warp */
#define LLM_ATT_SLICE    128            /* elements of V of a block of
                                           attention_wide.cu */
#define LLM_ATT_PAD      8              /* elements after a row, which put rows
                                           in different banks */
#define LLM_LOG2E        1.4426950408889634f

/* does the kernel for heads of DK elements exist with slopes?  No known model
   with slopes has heads wider than 128; wider ones take attention_wide.cu */
#define LLM_ATT_SLOPES(DK)  ((DK) != 256)


typedef struct {
    const float      *q;
    const uint8_t    *kc;               /* the layer's pages */
    const uint8_t    *vc;
    void             *out;
    float            *partial;          /* [split][row][n_heads][dv + 2] of each
                                           split sequence */
    const float      *sinks;            /* [n_heads] or NULL */
    const float      *slopes;           /* [n_heads] or NULL */
    float             scale;            /* of scores, times log2(e); with a cap
                                           divided by the cap instead */
    float             cap;              /* times log2(e); 0: no cap */
    uint32_t          before;           /* most positions before its own that a
                                           row sees */
    uint32_t          behind;           /* most positions after its own */
    uint32_t          chunk;            /* positions of a chunk; 0: a sliding
                                           window, or none */
    int               spans;            /* rows see what the step says */
    uint32_t          n_heads;
    uint32_t          n_kv_heads;
    uint32_t          group;            /* query heads of a KV head */
    uint32_t          dk;               /* elements of a head of K, and of V */
    uint32_t          dv;
    uint32_t          slices;           /* of V, a block for each; 1 except in
                                           attention_wide.cu */
    uint32_t          first_item;       /* of the launch */
    uint32_t          n_items;          /* of the list, or more */
    uint32_t          max_rows;         /* most rows of a sequence in it */
    int               out16;            /* elements of out are 16-bit, else
                                           float */
    int               bf16;             /* a 16-bit out is bf16; K, V and P are
                                           f16 */
} llm_att_args_t;

/* attention_N.cu: heads of at most DK elements, blocks of DV elements of V */
template<int DK, int DV> void llm_att_launch(llm_cuda_t *d,
    const llm_kv_t *kv, const llm_att_args_t &a);

/* attention_wgmma.cu: heads of at most LLM_ATT_WGMMA elements, without cap and
   slopes, a multiple of 8; the step's wide items */
#define LLM_ATT_WGMMA  128
void llm_cuda_attention_wgmma(llm_cuda_t *d, const llm_kv_t *kv,
    const llm_att_args_t &a);

/* attention_latent.cu: latent attention, without the merge of splits */
void llm_cuda_latent(llm_cuda_t *d, const llm_kv_t *kv,
    const llm_att_args_t &a);


/* ALiBi of a query row: score -= slope * distance from pos */
typedef struct {
    int               pos;
    float             slope;            /* times log2(e) */
} llm_att_fall_t;


/* the first position that position pos sees, as llm_heads_first() */

static __device__ __forceinline__ uint32_t
llm_att_first(const llm_att_args_t &a, uint32_t pos)
{
    if (pos <= a.before) {
        return 0;
    }

    return a.chunk ? pos / a.chunk * a.chunk : pos - a.before;
}


/* one more than the last position that position pos sees, as llm_heads_end() */

static __device__ __forceinline__ uint32_t
llm_att_end(const llm_att_args_t &a, uint32_t pos, uint32_t len)
{
    return len - pos > a.behind ? pos + a.behind + 1 : len;
}


/* the same of a row of the step, as llm_batch_first() and llm_batch_end() */

static __device__ __forceinline__ uint32_t
llm_att_row_first(const llm_cuda_step_t &st, const llm_att_args_t &a,
    uint32_t row)
{
    uint32_t  first;

    first = llm_att_first(a, st.pos[row]);

    return a.spans ? llm_max(first, st.sees[2 * row]) : first;
}


static __device__ __forceinline__ uint32_t
llm_att_row_end(const llm_cuda_step_t &st, const llm_att_args_t &a,
    uint32_t row, uint32_t len)
{
    return a.spans ? st.sees[2 * row + 1] : llm_att_end(a, st.pos[row], len);
}


/* the first position that some of the rows row ... last see, and one more than
   the last one; without spans no row between them sees more */

static __device__ __forceinline__ void
llm_att_range(const llm_cuda_step_t &st, const llm_att_args_t &a,
    uint32_t row, uint32_t last, uint32_t len, uint32_t *begin, uint32_t *end)
{
    uint32_t  n;

    *begin = llm_att_row_first(st, a, row);
    *end = llm_att_row_end(st, a, last, len);

    for ( /* void */ ; a.spans && row <= last; row++) {
        n = llm_att_row_first(st, a, row);
        *begin = llm_min(*begin, n);
        n = llm_att_row_end(st, a, row, len);
        *end = llm_max(*end, n);
    }
}


/* 2^x for x <= 0; results below the least normal float are 0 */

static __device__ __forceinline__ float
llm_exp2(float x)
{
#ifdef LLM_EMU
    return exp2f(x);
#else
    float  y;

    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));

    return y;
#endif
}


/* the common maximum of two partial results, and the factors that make them
   relative to it */

static __device__ __forceinline__ void
llm_att_weights(float m0, float m1, float *m, float *w0, float *w1)
{
    *m = fmaxf(m0, m1);
    *w0 = m0 == -INFINITY ? 0.0f : llm_exp2(m0 - *m);
    *w1 = m1 == -INFINITY ? 0.0f : llm_exp2(m1 - *m);
}


static __device__ __forceinline__ float
llm_att_join(float a, float wa, float b, float wb)
{
    return __fmaf_rn(b, wb, __fmul_rn(a, wa));
}


/* packs two floats to f16, a in the low half; values beyond f16's range become
   its largest */

static __device__ __forceinline__ uint32_t
llm_att_pack(float a, float b)
{
    return (uint32_t) llm_store16(a, 0) | (uint32_t) llm_store16(b, 0) << 16;
}


/* the same for weights, which are at most 1 */

static __device__ __forceinline__ uint32_t
llm_att_pack_weights(float a, float b)
{
#ifdef LLM_EMU
    return llm_att_pack(a, b);
#else
    uint32_t  r;

    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));

    return r;
#endif
}


/*
 * The factor from a row's sum of values to its result.  A sink adds its weight
 * to the row's sum: it is a key with that score and without a value.
 */

static __device__ __forceinline__ float
llm_att_factor(const llm_att_args_t &a, uint32_t head, float max, float sum)
{
    float  m, w, sink;

    if (a.sinks == NULL) {
        return 1.0f / sum;
    }

    llm_att_weights(max, a.sinks[head] * LLM_LOG2E, &m, &w, &sink);

    return w / __fmaf_rn(sum, w, sink);
}


/* positions of a tile, for heads of up to DK elements of K */
template<int DK> struct llm_att_positions {
    enum { N = DK > 256 ? 16 : DK > 128 ? 32 : 64,
           QUARTERS = DK > 256 ? 1 : 4  /* sums of weights of a row */
    };
};

/* a tile of N positions of the cache in shared memory */
template<int DH, int N> struct llm_att_tile {
    enum { STRIDE = DH + LLM_ATT_PAD,
           SIZE = N * STRIDE,
           RAW = N * (DH + 1)           /* bytes of fp8, with the scales */
    };
};


/* address of a KV head's block in the page of position pos; size: its bytes */

static __device__ __forceinline__ const uint8_t *
llm_att_block(const llm_cuda_step_t &st, const uint8_t *cache, uint32_t seq,
    uint32_t kv_head, uint32_t n_kv_heads, uint32_t pos, size_t size)
{
    uint32_t  page;

    page = st.pages[st.page_first[seq] + pos / LLM_KV_PAGE];

    return cache + ((size_t) page * n_kv_heads + kv_head) * size;
}


/* how a block copies N rows: chunks of 16 bytes of a row, chunks of a thread,
   neighbouring threads that copy a row.  A thread's next chunk is DOWN rows
   below, or RIGHT elements to the right. */
template<int DH, int N> struct llm_att_copy {
    enum { CHUNKS = DH / 8,
           EACH = N * CHUNKS / LLM_ATT_THREADS,
           EVEN = LLM_ATT_THREADS % CHUNKS == 0,
           WIDTH = EVEN ? CHUNKS : LLM_ATT_THREADS / N,
           DOWN = EVEN ? LLM_ATT_THREADS / CHUNKS : 0,
           RIGHT = EVEN ? 0 : WIDTH * 8 };

    static_assert(N * CHUNKS % LLM_ATT_THREADS == 0 && CHUNKS % WIDTH == 0
                  && (!EVEN || LLM_KV_PAGE % (LLM_ATT_THREADS / CHUNKS) == 0),
                  "each thread copies as much");
};


/* of a sequence's pages those of a tile of N positions from `first` on, the
   start of a page; positions from `end` on get the last page that exists */

template<int N> static __device__ __forceinline__ void
llm_att_pages(const uint32_t *pages, uint32_t first, uint32_t end,
    uint32_t page[N / LLM_KV_PAGE])
{
    int       i;
    uint32_t  last;

    last = (end - 1) / LLM_KV_PAGE;

#pragma unroll
    for (i = 0; i < N / LLM_KV_PAGE; i++) {
        page[i] = pages[llm_min(first / LLM_KV_PAGE + i, last)];
    }
}


/* llm_att_load() for heads whose size is no multiple of 16 bytes.  It reads the
   sequence's list of pages: an array that is passed to a function would be in
   local memory. */

template<int DH, int N> static __device__ LLM_CALLED void
llm_att_load_odd(uint16_t *s, const uint8_t *head, size_t stride,
    const uint32_t *pages, uint32_t dim, uint32_t skip, uint32_t first,
    uint32_t begin, uint32_t end)
{
    uint32_t         i, p, c;
    uint16_t         v;
    const uint16_t  *src;

    for (i = threadIdx.x; i < N * DH; i += LLM_ATT_THREADS) {
        p = i / DH;
        c = i % DH;
        v = 0;

        if (first + p >= begin && first + p < end && skip + c < dim) {
            src = (const uint16_t *) (head + pages[(first + p) / LLM_KV_PAGE]
                                             * stride);
            v = src[p % LLM_KV_PAGE * dim + c];
        }

        s[p * llm_att_tile<DH, N>::STRIDE + c] = v;
    }
}


/*
 * Starts copying a tile of K or V: a row for each position from `first` on, the
 * start of a page, with the elements of the head from `skip` on.  Positions
 * outside [begin, end), and elements beyond dim, become zeros.
 */

template<int DH, int N> static __device__ __forceinline__ void
llm_att_load(uint16_t *s, const uint8_t *cache, const uint32_t *pages,
    const uint32_t page[N / LLM_KV_PAGE], uint32_t kv_head,
    uint32_t n_kv_heads, uint32_t dim, uint32_t skip, uint32_t first,
    uint32_t begin, uint32_t end)
{
    int             j, ok;
    size_t          stride;
    uint32_t        row, col, pos, mine, down, right;
    const uint8_t  *head, *src;

    enum { STRIDE = llm_att_tile<DH, N>::STRIDE,
           WIDTH = llm_att_copy<DH, N>::WIDTH,
           EACH = llm_att_copy<DH, N>::EACH };

    head = cache + kv_head * llm_kv_block(dim, 0) + skip * 2;
    stride = n_kv_heads * llm_kv_block(dim, 0);

    if (dim % 8) {
        llm_att_load_odd<DH, N>(s, head, stride, pages, dim, skip, first,
                                begin, end);
        return;
    }

    row = threadIdx.x / WIDTH;
    col = threadIdx.x % WIDTH * 8;
    s += row * STRIDE + col;
    pos = first + row - begin;          /* before it: a large number */

    /* the compiler would keep the places of all chunks, each in two registers,
       from one tile to the next */
    mine = llm_unrelated((row * dim + col) * 2);

    /* constant indexes, so page[] stays in registers */

#pragma unroll
    for (j = 0; j < EACH; j++) {
        down = (uint32_t) j * llm_att_copy<DH, N>::DOWN;
        right = (uint32_t) j * llm_att_copy<DH, N>::RIGHT;
        ok = skip + col + right < dim && pos + down < end - begin;
        src = head + page[down / LLM_KV_PAGE] * stride
              + (down % LLM_KV_PAGE * dim + right) * 2 + mine;
        llm_cp_async16(s + down * STRIDE + right, src, ok);
    }
}


/* the same for an fp8 cache, without conversion: DH bytes for each position,
   then the scales of all positions */

template<int DH, int N> static __device__ void
llm_att_load_raw(const llm_cuda_step_t &st, uint8_t *s, const uint8_t *cache,
    uint32_t seq, uint32_t kv_head, uint32_t n_kv_heads, uint32_t dim,
    uint32_t skip, uint32_t first, uint32_t begin, uint32_t end)
{
    int             ok;
    uint32_t        i, j, p, pos, c;
    const uint8_t  *src;

    enum { TILE = N, CHUNKS = DH / 16 };

    for (i = threadIdx.x; i < TILE * CHUNKS; i += LLM_ATT_THREADS) {
        p = i / CHUNKS;
        c = i % CHUNKS * 16;
        pos = first + p;
        src = NULL;

        if (pos >= begin && pos < end && skip + c < dim) {
            src = llm_att_block(st, cache, seq, kv_head, n_kv_heads, pos,
                                llm_kv_block(dim, 1))
                  + pos % LLM_KV_PAGE * dim + skip + c;

            if (dim % 16 == 0) {
                llm_cp_async16(s + p * DH + c, src, 1);
                continue;
            }
        }

        for (j = 0; j < 16; j++) {
            s[p * DH + c + j] = src && skip + c + j < dim ? src[j]
                                                          : (uint8_t) 0;
        }
    }

    for (i = threadIdx.x; i < TILE / LLM_KV_PAGE; i += LLM_ATT_THREADS) {
        pos = first + i * LLM_KV_PAGE;
        ok = pos + LLM_KV_PAGE > begin && pos < end;
        src = cache;

        if (ok) {
            src = llm_att_block(st, cache, seq, kv_head, n_kv_heads, pos,
                                llm_kv_block(dim, 1)) + LLM_KV_PAGE * dim;
        }

        llm_cp_async16(s + TILE * DH + i * LLM_KV_PAGE, src, ok);
    }
}


/* converts such a tile to f16; a scale's byte is the exponent of an f16 */

template<int DH, int N> static __device__ void
llm_att_widen(const uint8_t *raw, uint16_t *s)
{
    int       j;
    uint4     v;
    uint32_t  i, p, c, scale, w[4], h[8];

    enum { TILE = N, STRIDE = llm_att_tile<DH, N>::STRIDE,
           CHUNKS = DH / 16 };

    for (i = threadIdx.x; i < TILE * CHUNKS; i += LLM_ATT_THREADS) {
        p = i / CHUNKS;
        c = i % CHUNKS * 16;
        v = *(const uint4 *) (raw + p * DH + c);
        w[0] = v.x;
        w[1] = v.y;
        w[2] = v.z;
        w[3] = v.w;
        scale = (uint32_t) raw[TILE * DH + p] << 10;
        scale |= scale << 16;

#pragma unroll
        for (j = 0; j < 8; j++) {
            h[j] = llm_mul_f16x2(llm_e2x16(w[j / 2] >> 16 * (j % 2) & 0xffff,
                                           0), scale);
        }

        *(uint4 *) (s + p * STRIDE + c) = make_uint4(h[0], h[1], h[2], h[3]);
        *(uint4 *) (s + p * STRIDE + c + 8) = make_uint4(h[4], h[5], h[6],
                                                         h[7]);
    }
}


/*
 * A block's shared memory: two stages, each with a tile of K and one of V in
 * f16; for fp8, two stages of the cache's bytes and then one such stage in f16.
 * Next an llm_att_fall_t for each row of the block, used only with slopes, and
 * what llm_att_few_step() shares: the weights of 16 rows, and a maximum and a
 * sum for each warp and row.
 */

template<int DK, int DV, int FP8> struct llm_att_stage_t {
    enum { N = llm_att_positions<DK>::N,
           K = FP8 ? (int) llm_att_tile<DK, N>::RAW
                   : 2 * (int) llm_att_tile<DK, N>::SIZE,
           BYTES = K + (FP8 ? (int) llm_att_tile<DV, N>::RAW
                            : 2 * (int) llm_att_tile<DV, N>::SIZE),
           FALLS = 2 * BYTES + (FP8 ? 2 * ((int) llm_att_tile<DK, N>::SIZE
                                           + (int) llm_att_tile<DV, N>::SIZE)
                                    : 0),
           FEW = FALLS + LLM_ATT_WARPS * LLM_ATT_ROWS
                         * (int) sizeof(llm_att_fall_t),
           ALL = FEW + LLM_ATT_ROWS * (N + 8) * 2
                 + 2 * LLM_ATT_WARPS * LLM_ATT_ROWS * 4 };
};


/* starts copying the tiles of K and V from position `first` on to a stage, of V
   the elements from `dv0` on */

template<int DK, int DV, int FP8> static __device__ __forceinline__ void
llm_att_fetch(const llm_cuda_step_t &cs, const llm_att_args_t &a,
    uint8_t *stage, uint32_t seq, uint32_t kv_head, uint32_t dv0,
    uint32_t first, uint32_t begin, uint32_t end)
{
    uint8_t         *v;
    const uint32_t  *pages;

    enum { N = llm_att_positions<DK>::N };

    uint32_t         page[N / LLM_KV_PAGE];

    v = stage + llm_att_stage_t<DK, DV, FP8>::K;

    if (FP8) {
        llm_att_load_raw<DK, N>(cs, stage, a.kc, seq, kv_head, a.n_kv_heads,
                                a.dk, 0, first, begin, end);
        llm_att_load_raw<DV, N>(cs, v, a.vc, seq, kv_head, a.n_kv_heads,
                                a.dv, dv0, first, begin, end);
        return;
    }

    pages = cs.pages + cs.page_first[seq];
    llm_att_pages<N>(pages, first, end, page);
    llm_att_load<DK, N>((uint16_t *) stage, a.kc, pages, page, kv_head,
                        a.n_kv_heads, a.dk, 0, first, begin, end);
    llm_att_load<DV, N>((uint16_t *) v, a.vc, pages, page, kv_head,
                        a.n_kv_heads, a.dv, dv0, first, begin, end);
}

#endif /* LLM_CUDA_ATTENTION_H */
