/*
 * Products in fp8: e4m3 activations, with a scale for each row, by weights of
 * class 7 (linear.h).  A block has rows of the weight and of activations; a
 * stage of its ring has a quad of columns of both.
 *
 * Tensor cores add products of e4m3 with few bits, so their sums go no further
 * than a quad: those of quads are added as floats.
 *
 * Invariant: an element is a chain over the quads in their order; each is four
 * instructions, of 32 columns, from 0 on.  These are wgmma on a Hopper, where
 * mma.sync has no e4m3 of its own, and mma.sync elsewhere, for any number of
 * rows: both have other bits.
 */

#include "kernels/cuda/linear.h"
#include "kernels/cuda/wgmma.h"

#define LLM_FP8_THREADS  512            /* for a row */

/* a call's weights, in the order of the grid's blocks */
typedef struct {
    llm_packed_t      p[LLM_FEW_WEIGHTS];
    llm_out_t         o[LLM_FEW_WEIGHTS];
    uint32_t          end[LLM_FEW_WEIGHTS];     /* one more than the weight's
                                                   last block */
} llm_fp8_t;


/* ---- activations ---- */

size_t
llm_fp8_size(uint32_t rows, uint32_t n_in)
{
    return rows * (llm_align((size_t) n_in, LLM_QUAD_COLS) + sizeof(float));
}


static __device__ __forceinline__ float
llm_fp8_value(const uint16_t *row, uint32_t i, uint32_t n_in, int bf16)
{
    return i < n_in ? llm_load16(row + i, bf16) : 0.0f;
}


/* a block for each row: its largest magnitude becomes 448 */

__global__ void
llm_k_fp8_rows(const uint32_t *count, const uint16_t *x, uint32_t n_in,
    uint32_t stride, int bf16, uint8_t *y, float *scales)
{
    float            max, v, *s;
    uint32_t         i, j, word;
    const uint16_t  *row;

    LLM_SHARED(mem);

    llm_early_begin();

    if (blockIdx.x >= *count) {
        return;
    }

    s = (float *) mem;
    row = x + (size_t) blockIdx.x * n_in;
    max = 0;

    for (i = threadIdx.x * 4; i < n_in; i += LLM_FP8_THREADS * 4) {
#pragma unroll
        for (j = 0; j < 4; j++) {
            max = fmaxf(max, fabsf(llm_fp8_value(row, i + j, n_in, bf16)));
        }
    }

    max = llm_warp_max(max);

    if (threadIdx.x % 32 == 0) {
        s[threadIdx.x / 32] = max;
    }

    __syncthreads();

    for (i = 0; i < LLM_FP8_THREADS / 32; i++) {
        max = fmaxf(max, s[i]);
    }

    max /= 448.0f;

    if (threadIdx.x == 0) {
        scales[blockIdx.x] = max;
    }

    y += (size_t) blockIdx.x * stride;

    for (i = threadIdx.x * 4; i < stride; i += LLM_FP8_THREADS * 4) {
#pragma unroll
        for (word = 0, j = 0; j < 4; j++) {
            v = llm_fp8_value(row, i + j, n_in, bf16);
            word |= (uint32_t) llm_f2e(v == 0.0f ? 0.0f : v / max) << j * 8;
        }

        *(uint32_t *) (y + i) = word;
    }
}


void
llm_fp8_rows(llm_cuda_t *d, llm_rows_t which, const uint16_t *x,
    uint32_t n_in, uint8_t *x8)
{
    size_t    stride;
    uint32_t  rows;

    rows = llm_cuda_rows(d, which);
    stride = llm_align((size_t) n_in, LLM_QUAD_COLS);

    llm_launch_early(llm_cuda_early(d), llm_k_fp8_rows, rows, LLM_FP8_THREADS,
                     LLM_FP8_THREADS / 32 * sizeof(float), d->stream,
                     llm_cuda_count(d, which), x, n_in, (uint32_t) stride,
                     d->bf16, x8, (float *) (x8 + rows * stride));
}


/* ---- products ---- */

/* WM: warpgroups of a block, each with 64 rows of the weight; XR: its rows of
   x */
template<int WM_, int NT_, int STAGES_> struct llm_fp8_shape_t {
    enum {
        WM = WM_, NT = NT_, STAGES = STAGES_,
        XR = NT * 8,
        THREADS = WM * 128,
        TILES = WM * 4,                 /* of 16 rows of the weight */
        W_SIZE = TILES * llm_record_bytes(LLM_CLASS_E4),
        SIZE = W_SIZE + XR * LLM_QUAD_COLS,
        SHARED = SIZE * STAGES + LLM_WG_ALIGN,
        W_COPIES = W_SIZE / (THREADS * 16),
        X_COPIES = XR * 8 > THREADS ? XR * 8 / THREADS : 1
    };

    static_assert(W_COPIES * THREADS * 16 == W_SIZE
                  && (X_COPIES == 1 || X_COPIES * THREADS == XR * 8),
                  "not all is copied");

    static_assert(SHARED <= 99 << 10, "on Ada a block has at most 99 KiB");
    static_assert(SIZE * STAGES >= llm_put_bytes(TILES, NT),
                  "no room for the results");
};


/* a thread's part of the copies to a stage: 16 bytes each, at these offsets
   from the next quad of the block's first tile, and of its first row of x */
template<class S> struct llm_fp8_copy_t {
    const uint8_t    *w;
    const uint8_t    *x;
    uint32_t          w_off[S::W_COPIES];
    uint32_t          x_off[S::X_COPIES];
    uint32_t          x_to;             /* of the first, in the stage */
    uint32_t          x_rows;           /* bit j: the row of copy j exists */
};


/* tiles after the weight's last one are read as that, and not used */

template<class S> static __device__ __forceinline__ void
llm_fp8_copy(llm_fp8_copy_t<S> &t, const llm_packed_t &p, uint32_t tile,
    const uint8_t *x, uint32_t row0, uint32_t rows)
{
    int       j;
    uint32_t  i, row, stride;

    enum { RECORD = llm_record_bytes(LLM_CLASS_E4) };

    t.w = p.records + (size_t) tile * p.quads * RECORD;

#pragma unroll
    for (j = 0; j < S::W_COPIES; j++) {
        i = j * S::THREADS * 16 + threadIdx.x * 16;
        t.w_off[j] = llm_min(i / RECORD, p.row_tiles - 1 - tile) * p.quads
                     * RECORD + i % RECORD;
    }

    stride = p.quads * LLM_QUAD_COLS;
    row = threadIdx.x / 8;
    t.x = x + (size_t) row0 * stride + threadIdx.x % 8 * 16;
    t.x_to = S::W_SIZE + llm_wg_place(row, threadIdx.x % 8);
    t.x_rows = 0;

#pragma unroll
    for (j = 0; j < S::X_COPIES; j++) {
        i = row + j * (S::THREADS / 8);
        t.x_rows |= (uint32_t) (row0 + i < rows) << j;
        t.x_off[j] = row0 + i < rows ? i * stride : 0;
    }
}


/* starts copying to a stage, and goes on to the next quad */

template<class S> static __device__ __forceinline__ void
llm_fp8_fetch_w(llm_fp8_copy_t<S> &t, uint8_t *stage)
{
    int  j;

#pragma unroll
    for (j = 0; j < S::W_COPIES; j++) {
        llm_cp_async16(stage + j * S::THREADS * 16 + threadIdx.x * 16,
                       t.w + t.w_off[j]);
    }

    t.w += llm_record_bytes(LLM_CLASS_E4);
}


/* the same of x, whose rows are where wgmma wants them */

template<class S> static __device__ __forceinline__ void
llm_fp8_fetch_x(llm_fp8_copy_t<S> &t, uint8_t *stage)
{
    int  j;

#pragma unroll
    for (j = 0; j < S::X_COPIES; j++) {
        if (S::XR * 8 >= S::THREADS || threadIdx.x < S::XR * 8) {
            llm_cp_async16(stage + t.x_to + j * S::THREADS * 16,
                           t.x + t.x_off[j], t.x_rows >> j & 1);
        }
    }

    t.x += LLM_QUAD_COLS;
}


/* d = a quad of the warp's tile by the stage's rows of x, by mma.sync */

template<int NT> static __device__ __forceinline__ void
llm_fp8_mma(float d[NT][4], const uint32_t a[4][4], const uint8_t *x)
{
    int       k, n;
    uint32_t  b[4], lane;

    lane = threadIdx.x % 32;

    llm_zero<1, NT>((float (*)[NT][4]) d);

#pragma unroll
    for (n = 0; n < NT; n++) {
#pragma unroll
        for (k = 0; k < 4; k += 2) {
            llm_ldmatrix_x4<0>(b, x + llm_wg_place(n * 8 + lane % 8,
                                                   k * 2 + lane / 8));
            llm_mma_e4m3(d[n], a[k], b);
            llm_mma_e4m3(d[n], a[k + 1], b + 2);
        }
    }
}


/* the same by wgmma; all warps of the warpgroup call it */

template<int NT> static __device__ __forceinline__ void
llm_fp8_wgmma(float d[NT][4], uint32_t a[4][4], const uint8_t *mem,
    const uint8_t *x)
{
    int  n;

    enum { N = NT < 8 ? NT : 8 };

    llm_wg_hold<4>(a);
    llm_wg_hold<NT>(d);
    llm_wg_begin();

#pragma unroll
    for (n = 0; n < NT; n += N) {
        llm_wg_product_e4m3<N>(d + n, a, mem, x + n * 8 * LLM_QUAD_COLS);
    }

    llm_wg_commit();
    llm_wg_wait<0>();
    llm_wg_hold<NT>(d);
    llm_wg_hold<4>(a);
}


/* sum = a block's tiles, from `tile` on, by its rows of x, from row0 on */

template<class S, int WG> static __device__ __forceinline__ void
llm_fp8_block(uint8_t *mem, const llm_packed_t &p, uint32_t tile,
    const uint8_t *x, uint32_t row0, uint32_t rows, float sum[S::NT][4])
{
    int        i, n;
    float      d[S::NT][4];
    uint4      v;
    uint8_t   *stage;
    uint32_t   lane, warp, k, s, at, to, a[4][4];

    llm_fp8_copy_t<S>  t;

    enum { NT = S::NT, STAGES = S::STAGES };

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

    llm_fp8_copy<S>(t, p, tile, x, row0, rows);

#pragma unroll 1
    for (s = 0; s < STAGES - 1; s++) {
        if (s < p.quads) {
            llm_fp8_fetch_w<S>(t, mem + s * S::SIZE);
        }
    }

    llm_early_wait();

#pragma unroll 1
    for (s = 0; s < STAGES - 1; s++) {
        if (s < p.quads) {
            llm_fp8_fetch_x<S>(t, mem + s * S::SIZE);
        }

        llm_cp_async_commit();
    }

    at = 0;
    to = (STAGES - 1) * S::SIZE;
    llm_zero<1, NT>((float (*)[NT][4]) d);
    llm_zero<1, NT>((float (*)[NT][4]) sum);

#pragma unroll 1
    for (k = 0; k < p.quads; k++) {
        llm_cp_async_wait<STAGES - 2>();
        llm_wg_written();
        __syncthreads();

        if (k + STAGES - 1 < p.quads) {
            llm_fp8_fetch_w<S>(t, mem + to);
            llm_fp8_fetch_x<S>(t, mem + to);
        }

        llm_cp_async_commit();
        stage = mem + at;
        to = at;
        at = at == (STAGES - 1) * S::SIZE ? 0 : at + S::SIZE;

#pragma unroll
        for (i = 0; i < 4; i++) {
            v = *(const uint4 *) (stage + warp * llm_record_bytes(LLM_CLASS_E4)
                                  + i * 512 + lane * 16);
            a[i][0] = v.x;
            a[i][1] = v.y;
            a[i][2] = v.z;
            a[i][3] = v.w;
        }

        if constexpr (WG) {
            llm_fp8_wgmma<NT>(d, a, mem, stage + S::W_SIZE);

        } else {
            llm_fp8_mma<NT>(d, a, stage + S::W_SIZE);
        }

#pragma unroll
        for (n = 0; n < NT; n++) {
#pragma unroll
            for (i = 0; i < 4; i++) {
                sum[n][i] += d[n][i];
            }
        }
    }
}


/* for which instruction there is code here: other kernels are empty.
   LLM_FP8_ALL: for both, for the emulator of PTX */
#if defined(LLM_EMU) || defined(LLM_FP8_ALL)
#define LLM_FP8_HERE(wg)  1
#elif LLM_WG_HERE
#define LLM_FP8_HERE(wg)  (wg)
#elif __CUDA_ARCH__ >= 890
#define LLM_FP8_HERE(wg)  (!(wg))
#else
#define LLM_FP8_HERE(wg)  0
#endif


/* WG: by wgmma */

template<int WM, int NT, int STAGES, int WG> __global__ void
__launch_bounds__(WM * 128)
llm_k_linear_fp8(llm_fp8_t f, const uint8_t *x, const float *x_scales)
{
    if constexpr (LLM_FP8_HERE(WG)) {
        using S = llm_fp8_shape_t<WM, NT, STAGES>;

        int       i, n;
        float     sum[NT][4];
        uint32_t  m, tile, rows, row0, row;

        LLM_SHARED(mem);

        llm_early_start();

        for (m = 0; blockIdx.x >= f.end[m]; m++) { /* void */ }

        tile = (blockIdx.x - (m ? f.end[m - 1] : 0)) * S::TILES;
        rows = *f.o[m].count;
        row0 = blockIdx.y * S::XR;

        if (row0 >= rows) {
            llm_early_wait();
            return;                     /* rows of a bucket that is not full */
        }

        llm_fp8_block<S, WG>(llm_wg_memory(mem), f.p[m], tile, x, row0, rows,
                             sum);

#pragma unroll
        for (n = 0; n < NT; n++) {
#pragma unroll
            for (i = 0; i < 4; i++) {
                row = row0 + n * 8 + threadIdx.x % 4 * 2 + (i & 1);
                sum[n][i] = __fmul_rn(sum[n][i],
                                      row < rows ? x_scales[row] : 0.0f);
            }
        }

        llm_put_block<NT, S::TILES>(f.o[m], mem, row0, rows,
                                    tile * LLM_TILE_ROWS, sum);
    }
}


template<int WM, int NT, int STAGES, int WG> static void
llm_fp8_launch(llm_cuda_t *d, uint32_t rows, const uint8_t *x8, llm_fp8_t *f,
    uint32_t n)
{
    uint32_t  i, all;

    using S = llm_fp8_shape_t<WM, NT, STAGES>;

    for (i = 0, all = 0; i < LLM_FEW_WEIGHTS; i++) {
        if (i < n) {
            all += (f->p[i].row_tiles + S::TILES - 1) / S::TILES;
        }

        f->end[i] = all;
    }

    llm_cuda_use_shared<llm_k_linear_fp8<WM, NT, STAGES, WG>>(d, S::SHARED);

    llm_launch_early(llm_cuda_early(d),
        (llm_k_linear_fp8<WM, NT, STAGES, WG>),
        dim3(all, (rows + S::XR - 1) / S::XR), S::THREADS, S::SHARED,
        d->stream, *f, x8,
        (const float *) (x8 + (size_t) rows * f->p[0].quads * LLM_QUAD_COLS));
}


template<int WG> static void
llm_fp8_products(llm_cuda_t *d, uint32_t rows, const uint8_t *x8,
    llm_fp8_t *f, uint32_t n)
{
    if (rows <= 8) {
        llm_fp8_launch<1, 1, 8, WG>(d, rows, x8, f, n);

    } else if (rows <= 16) {
        llm_fp8_launch<1, 2, 8, WG>(d, rows, x8, f, n);

    } else if (rows <= 64) {
        llm_fp8_launch<1, 8, 6, WG>(d, rows, x8, f, n);

    } else {
        llm_fp8_launch<2, 16, 3, WG>(d, rows, x8, f, n);
    }
}


void
llm_linear_fp8(llm_cuda_t *d, uint32_t rows, const uint8_t *x8,
    const llm_packed_t *p, const llm_out_t *o, uint32_t n)
{
    uint32_t   i;
    llm_fp8_t  f;

    memset(&f, 0, sizeof(f));

    for (i = 0; i < n; i++) {
        f.p[i] = p[i];
        f.o[i] = o[i];
    }

    if (d->gpu->wgmma) {
        llm_fp8_products<1>(d, rows, x8, &f, n);

    } else {
        llm_fp8_products<0>(d, rows, x8, &f, n);
    }
}
