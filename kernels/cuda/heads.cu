/*
 * Products of heads, each with a matrix of its own, for latent attention.
 *
 * The matrices are packed like those of experts.  A block takes some tiles of
 * one head's matrix, unpacked in registers, and some rows of activations, which
 * go through shared memory piece by piece.
 *
 * Invariant: an element is one chain of instructions over K in its natural
 * order, whatever the tile.
 */

#include "kernels/cuda/unpack.h"

#include <assert.h>

#define LLM_HEADS_WARPS  4
#define LLM_HEADS_COLS   128            /* of a piece of x */
#define LLM_HEADS_STRIDE (LLM_HEADS_COLS + 8)   /* of the piece's rows: puts
                                                   them in different banks */

typedef struct {
    const uint32_t   *count;            /* number of rows */
    llm_packed_t      w;                /* of head 0 */
    size_t            stride;           /* bytes from one head's matrix to the
                                           next */
    const float      *factors;          /* [n_heads] or NULL */
    const void       *x;
    void             *y;
    uint32_t          n_in;
    uint32_t          x_dim;            /* elements of a head of x */
    uint32_t          y_dim;
    uint32_t          x_cols;
    uint32_t          y_cols;
    int               x_is16;
    int               y_is16;
} llm_heads_args_t;


/* eight elements of x from `at` on, as 16-bit; from the n-th on zeros */

static __device__ __forceinline__ uint4
llm_heads_eight(const llm_heads_args_t &a, size_t at, int n, int bf16)
{
    int              i;
    float4           lo, hi;
    uint32_t         v[8];
    const float     *f;

    if (n >= 8 && at % 8 == 0 && a.x_is16) {
        return *(const uint4 *) ((const uint16_t *) a.x + at);
    }

    if (n >= 8 && at % 8 == 0) {
        f = (const float *) a.x + at;
        lo = *(const float4 *) f;
        hi = *(const float4 *) (f + 4);
        v[0] = llm_store16(lo.x, bf16);
        v[1] = llm_store16(lo.y, bf16);
        v[2] = llm_store16(lo.z, bf16);
        v[3] = llm_store16(lo.w, bf16);
        v[4] = llm_store16(hi.x, bf16);
        v[5] = llm_store16(hi.y, bf16);
        v[6] = llm_store16(hi.z, bf16);
        v[7] = llm_store16(hi.w, bf16);

    } else {
#pragma unroll
        for (i = 0; i < 8; i++) {
            v[i] = i < n ? llm_store16(llm_load(a.x, at + i, a.x_is16, bf16),
                                       bf16)
                         : 0;
        }
    }

    return make_uint4(v[0] | v[1] << 16, v[2] | v[3] << 16,
                      v[4] | v[5] << 16, v[6] | v[7] << 16);
}


/* copies a head's columns from `col` on of rows [row0, row0 + ROWS) of x to
   shared memory; zeros where there is no row or column */

template<int ROWS> static __device__ __forceinline__ void
llm_heads_stage(const llm_heads_args_t &a, uint32_t head, uint32_t row0,
    uint32_t rows, uint32_t col, int bf16, uint16_t *s)
{
    int       n;
    uint32_t  i, r, c;

    enum { CHUNKS = LLM_HEADS_COLS / 8 };

#pragma unroll
    for (i = threadIdx.x; i < ROWS * CHUNKS; i += LLM_HEADS_WARPS * 32) {
        r = i / CHUNKS;
        c = i % CHUNKS * 8;
        n = row0 + r < rows ? (int) a.n_in - (int) (col + c) : 0;

        *(uint4 *) (s + r * LLM_HEADS_STRIDE + c)
            = llm_heads_eight(a, (size_t) (row0 + r) * a.x_cols
                                 + head * a.x_dim + col + c, n, bf16);
    }
}


/* acc += a quad: MT tiles of the matrix by NT * 8 rows */

template<int CLS, int MT, int NT> static __device__ __forceinline__ void
llm_heads_quad(const llm_packed_t &p, uint32_t tile, uint32_t quad,
    const uint16_t *s, int bf16, float acc[MT][NT][4])
{
    int              m, n, i;
    uint32_t         lane, t, w[MT][2][4], b[NT][4];
    llm_lane_t<CLS>  l[MT];

    lane = threadIdx.x % 32;

#pragma unroll
    for (m = 0; m < MT; m++) {
        /* tiles after the last are not stored */
        t = llm_min(tile + (uint32_t) m, p.row_tiles - 1);
        llm_lane_load<CLS>(p.records + ((size_t) t * p.quads + quad)
                                       * llm_record_bytes(CLS), lane, l[m]);
    }

#pragma unroll
    for (i = 0; i < LLM_QUAD_COLS / LLM_TILE_COLS; i++) {
#pragma unroll
        for (m = 0; m < MT; m++) {
            llm_unpack<CLS>(p, l[m], i, bf16, w[m]);
        }

#pragma unroll
        for (n = 0; n < NT; n++) {
            llm_ldmatrix_x4<0>(b[n], s + ((uint32_t) n * 8 + lane % 8)
                                         * LLM_HEADS_STRIDE + i * 32
                                     + lane / 8 * 8);
        }

        llm_mma_tiles<MT, NT>(acc, w, b, bf16);
    }
}


template<int MT, int NT> static __device__ __forceinline__ void
llm_heads_put(const llm_heads_args_t &a, const llm_packed_t &p, uint32_t head,
    uint32_t tile, uint32_t row0, uint32_t rows, int bf16,
    const float acc[MT][NT][4])
{
    int       i, m, n;
    float     v, f;
    uint32_t  lane, row, col;

    lane = threadIdx.x % 32;
    f = a.factors ? a.factors[head] : 1.0f;

#pragma unroll
    for (m = 0; m < MT; m++) {
#pragma unroll
        for (n = 0; n < NT; n++) {
#pragma unroll
            for (i = 0; i < 4; i++) {
                col = (tile + (uint32_t) m) * LLM_TILE_ROWS + lane / 4
                      + (i & 2 ? 8 : 0);
                row = llm_unrelated(row0 + (uint32_t) n * 8 + lane % 4 * 2
                                    + (i & 1));

                if (row >= rows || col >= p.n_out) {
                    continue;
                }

                v = acc[m][n][i];
                v = p.scales ? __fmul_rn(v, p.scales[col]) : v;
                llm_store(a.y, (size_t) row * a.y_cols + head * a.y_dim + col,
                          __fmul_rn(v, f), a.y_is16, bf16);
            }
        }
    }
}


/* copies the elements of a head after those that are multiplied */

static __device__ __forceinline__ void
llm_heads_copy(const llm_heads_args_t &a, uint32_t head, uint32_t row,
    uint32_t end, int bf16)
{
    size_t    from, to;
    uint32_t  i;

    for ( /* void */ ; row < end; row++) {
        from = (size_t) row * a.x_cols + head * a.x_dim + a.n_in;
        to = (size_t) row * a.y_cols + head * a.y_dim + a.w.n_out;

        for (i = threadIdx.x; i < a.x_dim - a.n_in; i += blockDim.x) {
            llm_store(a.y, to + i, llm_load(a.x, from + i, a.x_is16, bf16),
                      a.y_is16, bf16);
        }
    }
}


/* block (tiles of the matrix, head, tile of NT * 8 rows) */

template<int CLS, int MT, int NT, int BF16> __global__ void
__launch_bounds__(LLM_HEADS_WARPS * 32, MT * NT == 1 ? 8 : 1)
llm_k_heads(llm_heads_args_t a)
{
    float          acc[MT][NT][4];
    uint16_t      *s;
    uint32_t       head, tile, row0, rows, q;
    llm_packed_t   p;

    enum { ROWS = NT * 8 };

    LLM_SHARED(mem);

    rows = *a.count;
    row0 = blockIdx.z * ROWS;

    if (row0 >= rows) {
        return;                         /* rows of a bucket that is not full */
    }

    s = (uint16_t *) mem;
    head = blockIdx.y;
    tile = (blockIdx.x * LLM_HEADS_WARPS + threadIdx.x / 32) * MT;
    p = llm_packed_of(a.w, a.stride, head);

    if (blockIdx.x == 0) {
        llm_heads_copy(a, head, row0, llm_min(row0 + ROWS, rows), BF16);
    }

    llm_zero<MT, NT>(acc);

    for (q = 0; q < p.quads; q++) {
        __syncthreads();
        llm_heads_stage<ROWS>(a, head, row0, rows, q * LLM_QUAD_COLS, BF16, s);
        __syncthreads();
        llm_heads_quad<CLS, MT, NT>(p, tile, q, s, BF16, acc);
    }

    llm_heads_put<MT, NT>(a, p, head, tile, row0, rows, BF16, acc);
}


template<int CLS, int MT, int NT, int BF16> static void
llm_heads_launch(llm_cuda_t *d, uint32_t rows, uint32_t n_heads,
    const llm_heads_args_t &a)
{
    uint32_t  tiles;

    tiles = LLM_HEADS_WARPS * MT;

    llm_launch((llm_k_heads<CLS, MT, NT, BF16>),
               dim3((a.w.row_tiles + tiles - 1) / tiles, n_heads,
                    (rows + NT * 8 - 1) / (NT * 8)),
               LLM_HEADS_WARPS * 32,
               NT * 8 * LLM_HEADS_STRIDE * sizeof(uint16_t), d->stream,
               a);
}


template<int CLS, int BF16> static void
llm_heads_rows(llm_cuda_t *d, uint32_t rows, uint32_t n_heads,
    const llm_heads_args_t &a)
{
    if (rows <= 8) {
        llm_heads_launch<CLS, 1, 1, BF16>(d, rows, n_heads, a);

    } else if (rows <= 32) {
        llm_heads_launch<CLS, 1, 4, BF16>(d, rows, n_heads, a);

    } else {
        llm_heads_launch<CLS, 2, 8, BF16>(d, rows, n_heads, a);
    }
}


template<int CLS> static void
llm_heads_class(llm_cuda_t *d, uint32_t rows, uint32_t n_heads,
    const llm_heads_args_t &a)
{
    if (d->bf16) {
        llm_heads_rows<CLS, 1>(d, rows, n_heads, a);

    } else {
        llm_heads_rows<CLS, 0>(d, rows, n_heads, a);
    }
}


void
llm_cuda_linear_heads(llm_exec_t *exec, llm_rows_t which,
    const llm_weight_t *w, const llm_act_t *x, llm_act_t *y)
{
    uint32_t           rows, n;
    llm_cuda_t        *d = (llm_cuda_t *) exec;
    llm_heads_args_t   a;

    n = w->n_experts;
    rows = llm_cuda_rows(d, which);

    if (rows == 0) {
        return;
    }

    assert(x->cols % n == 0 && y->cols % n == 0
           && x->cols / n - w->n_in == y->cols / n - w->n_out);

    llm_packed_view(&a.w, w->cls, w->type, w->n_out, w->n_in, w->packed);
    a.count = llm_cuda_count(d, which);
    a.stride = w->stride;
    a.factors = w->factors;
    a.x = x->data;
    a.y = y->data;
    a.n_in = w->n_in;
    a.x_cols = x->cols;
    a.y_cols = y->cols;
    a.x_dim = x->cols / n;
    a.y_dim = y->cols / n;
    a.x_is16 = x->is16;
    a.y_is16 = y->is16;

    switch (w->cls) {
    LLM_CLASS_CASE(LLM_CLASS_FP8, llm_heads_class, d, rows, n, a)
    LLM_CLASS_CASE(LLM_CLASS_16, llm_heads_class, d, rows, n, a)
    LLM_QUANT_CASES(llm_heads_class, d, rows, n, a)
    }
}
