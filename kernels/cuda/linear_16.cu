/*
 * Products of 16-bit and fp8 weights with many rows, on tensor cores.  Tiles of
 * both operands go through a ring of stages in shared memory, where the 16-byte
 * chunks of a row are permuted so that the same chunk of eight rows is in
 * different banks.
 *
 * Invariant: whatever the tile, an element of the result is one chain of
 * instructions over K in its natural order, 16 columns each, as in a product
 * of cublasLt that does not split K.  With PARTS, K is cut into LLM_K_PARTS
 * that depend only on the weight's shape, and the sums of the parts are added
 * in their order, as in linear_q.cu.
 */

#include "kernels/cuda/linear.h"

/* byte offset of a row's chunk in a stage; KS: columns of a stage, 32 or 128 */

template<int KS> static __device__ __forceinline__ uint32_t
llm_turned(uint32_t row, uint32_t chunk)
{
    uint32_t  turn = KS >= 64 ? row & 7 : row >> 1 & 3;

    return row * KS * 2 + (chunk ^ turn) * 16;
}


/* a kernel's weight: 16-bit rows, or tiles of packed e4m3 */
template<int FP8> struct llm_w_t;

template<> struct llm_w_t<0> {
    const uint16_t   *rows;
};

template<> struct llm_w_t<1> {
    const uint8_t    *tiles;            /* [row_tiles][n_in / 32][512] */
    uint32_t          row_tiles;
};


/* copies rows [row0, row0 + ROWS) and columns [col, col + KS) to a stage */

template<int ROWS, int KS, int THREADS> static __device__ __forceinline__ void
llm_fetch(uint8_t *stage, const uint16_t *m, uint32_t n_in, uint32_t row0,
    uint32_t rows, uint32_t col)
{
    int       ok;
    uint32_t  i, r, c;

#pragma unroll
    for (i = threadIdx.x; i < ROWS * (KS / 8); i += THREADS) {
        r = i / (KS / 8);
        c = i % (KS / 8);
        ok = row0 + r < rows && col + c * 8 < n_in;

        llm_cp_async16(stage + llm_turned<KS>(r, c),
                       m + (ok ? (size_t) (row0 + r) * n_in + col + c * 8
                               : 0), ok);
    }
}


template<int ROWS, int KS, int THREADS> static __device__ __forceinline__ void
llm_fetch_w(uint8_t *stage, const llm_w_t<0> &w, uint32_t n_in,
    uint32_t row0, uint32_t rows, uint32_t col)
{
    llm_fetch<ROWS, KS, THREADS>(stage, w.rows, n_in, row0, rows, col);
}


/* the same for packed tiles: tiles of a row follow one another, 512 bytes
   each */

template<int ROWS, int KS, int THREADS> static __device__ __forceinline__ void
llm_fetch_w(uint8_t *stage, const llm_w_t<1> &w, uint32_t n_in,
    uint32_t row0, uint32_t rows, uint32_t col)
{
    int       ok;
    uint32_t  i, t, b;

    (void) rows;

#pragma unroll
    for (i = threadIdx.x; i < ROWS / LLM_TILE_ROWS * (KS / 32) * 32;
         i += THREADS)
    {
        t = row0 / LLM_TILE_ROWS + i / (KS / 32 * 32);
        b = col / 32 + i / 32 % (KS / 32);
        ok = t < w.row_tiles && b < n_in / 32;

        llm_cp_async16(stage + i * 16,
                       w.tiles + (ok ? ((size_t) t * (n_in / 32) + b) * 512
                                       + i % 32 * 16
                                     : 0), ok);
    }
}


/* acc += W X^T over 32 columns, from chunk c of the stage on */

template<int MT, int NT, int KS, int FP8> static __device__ __forceinline__
void
llm_step_32(const uint8_t *w, const uint8_t *x, uint32_t w0, uint32_t x0,
    uint32_t c, int bf16, float acc[MT][NT][4])
{
    int       k, m, n;
    uint32_t  lane, a[MT][2][4], b[NT][4];

    lane = threadIdx.x % 32;

#pragma unroll
    for (m = 0; m < MT; m++) {
        if (FP8) {
            llm_fp8_operands(*(const uint4 *) (w
                + ((w0 / LLM_TILE_ROWS + m) * (KS / 32) + c / 4) * 512
                + lane * 16), bf16, a[m]);

        } else {
#pragma unroll
            for (k = 0; k < 2; k++) {
                llm_ldmatrix_x4<0>(a[m][k],
                    w + llm_turned<KS>(w0 + m * 16 + lane % 16,
                                       c + k * 2 + lane / 16));
            }
        }
    }

#pragma unroll
    for (n = 0; n < NT; n++) {
        llm_ldmatrix_x4<0>(b[n],
            x + llm_turned<KS>(x0 + n * 8 + lane % 8, c + lane / 8));
    }

    llm_mma_tiles<MT, NT>(acc, a, b, bf16);
}


template<int MT, int NT> static __device__ __forceinline__ void
llm_end_part(float acc[MT][NT][4], float total[MT][NT][4])
{
    int  m, n, i;

#pragma unroll
    for (m = 0; m < MT; m++) {
#pragma unroll
        for (n = 0; n < NT; n++) {
#pragma unroll
            for (i = 0; i < 4; i++) {
                total[m][n][i] += acc[m][n][i];
                acc[m][n][i] = 0;
            }
        }
    }
}


/* copies the columns of step s to a stage: rows of the weight, then of x */

template<int WROWS, int XROWS, int KS, int THREADS, int WSIZE, int FP8>
static __device__ __forceinline__ void
llm_fetch_step(uint8_t *stage, const llm_w_t<FP8> &w, const uint16_t *x,
    uint32_t n_in, uint32_t n_rows, uint32_t rows, uint32_t s)
{
    llm_fetch_w<WROWS, KS, THREADS>(stage, w, n_in, blockIdx.x * WROWS,
                                    n_rows, s * KS);
    llm_fetch<XROWS, KS, THREADS>(stage + WSIZE, x, n_in, blockIdx.y * XROWS,
                                  rows, s * KS);
}


/* writes the sums of a warp's tiles; the first is at row wm of the block's rows
   of the weight and row wn of its rows of x */

template<int WROWS, int XROWS, int MT, int NT>
static __device__ __forceinline__ void
llm_put_tiles(const llm_out_t &o, uint32_t wm, uint32_t wn, uint32_t lane,
    const float sum[MT][NT][4])
{
    int       i, m, n;
    uint32_t  wcol, row;

#pragma unroll
    for (m = 0; m < MT; m++) {
#pragma unroll
        for (n = 0; n < NT; n++) {
#pragma unroll
            for (i = 0; i < 4; i++) {
                wcol = blockIdx.x * WROWS + wm + m * 16 + lane / 4
                       + (i & 2 ? 8 : 0);
                row = llm_unrelated(blockIdx.y * XROWS + wn + n * 8
                                    + lane % 4 * 2 + (i & 1));
                llm_put(o, row, wcol, sum[m][n][i]);
            }
        }
    }
}


/*
 * A block of WM by WN warps computes WM * MT * 16 columns of the result for
 * WN * NT * 8 rows.  n_in is a multiple of 32.
 */

template<int WM, int WN, int MT, int NT, int KS, int STAGES, int PARTS,
    int FP8>
__global__ void
__launch_bounds__(WM * WN * 32)
llm_k_linear_16(llm_w_t<FP8> w, const uint16_t *x, uint32_t n_in,
    llm_out_t o)
{
    float      acc[MT][NT][4], total[MT][NT][4];
    uint8_t   *stage;
    uint32_t   lane, warp, wm, wn, k, s, c, steps, part, end, rows;

    enum {
        WROWS = WM * MT * 16,
        XROWS = WN * NT * 8,
        THREADS = WM * WN * 32,
        WSIZE = WROWS * KS * (FP8 ? 1 : 2),
        SIZE = WSIZE + XROWS * KS * 2
    };

    LLM_SHARED(mem);

    rows = *o.count;

    if (blockIdx.y * XROWS >= rows) {
        return;                         /* rows of a bucket that is not full */
    }

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    wm = warp / WN * MT * 16;
    wn = warp % WN * NT * 8;
    steps = (n_in + KS - 1) / KS;

    llm_zero<MT, NT>(acc);
    llm_zero<MT, NT>(total);

    for (s = 0; s < STAGES - 1; s++) {
        if (s < steps) {
            llm_fetch_step<WROWS, XROWS, KS, THREADS, WSIZE, FP8>(
                mem + s * SIZE, w, x, n_in, o.n_rows, rows, s);
        }

        llm_cp_async_commit();
    }

    part = 0;
    end = llm_k_part(n_in / 32, 1);

    for (k = 0; k < steps; k++) {
        llm_cp_async_wait<STAGES - 2>();
        __syncthreads();

        s = k + STAGES - 1;

        if (s < steps) {
            llm_fetch_step<WROWS, XROWS, KS, THREADS, WSIZE, FP8>(
                mem + s % STAGES * SIZE, w, x, n_in, o.n_rows, rows, s);
        }

        llm_cp_async_commit();
        stage = mem + k % STAGES * SIZE;

#pragma unroll
        for (c = 0; c < KS / 32; c++) {
            if (KS > 32 && k * KS + c * 32 >= n_in) {
                break;
            }

            while (PARTS && k * (KS / 32) + c == end) {
                llm_end_part<MT, NT>(acc, total);
                end = llm_k_part(n_in / 32, ++part + 1);
            }

            llm_step_32<MT, NT, KS, FP8>(stage, stage + WSIZE, wm, wn, c * 4,
                                         o.bf16, acc);
        }
    }

    if (PARTS) {
        llm_end_part<MT, NT>(acc, total);
    }

    llm_put_tiles<WROWS, XROWS, MT, NT>(o, wm, wn, lane,
                                        PARTS ? total : acc);
}


template<int WM, int WN, int MT, int NT, int KS, int STAGES, int PARTS,
    int FP8>
static void
llm_linear_16_launch(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_w_t<FP8> &w, uint32_t n_in, const llm_out_t *o)
{
    size_t    shared;
    uint32_t  wrows, xrows;

    wrows = WM * MT * 16;
    xrows = WN * NT * 8;
    shared = (size_t) (wrows * (FP8 ? 1 : 2) + xrows * 2) * KS * STAGES;

    llm_cuda_use_shared<llm_k_linear_16<WM, WN, MT, NT, KS, STAGES, PARTS,
                                        FP8>>(d, shared);
    llm_launch((llm_k_linear_16<WM, WN, MT, NT, KS, STAGES, PARTS, FP8>),
               dim3((o->n_rows + wrows - 1) / wrows,
                    (rows + xrows - 1) / xrows),
               WM * WN * 32, shared, d->stream, w, x, n_in, *o);
}


void
llm_linear_16(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const uint16_t *rows16, uint32_t n_in, const llm_out_t *o)
{
    llm_w_t<0>  w = { rows16 };

    if (rows <= LLM_FEW_ROWS) {
        llm_linear_few(d, rows, x, n_in, &rows16, o, 1);

    } else {
        llm_linear_16_launch<2, 4, 4, 4, 32, 4, 0, 0>(d, rows, x, w, n_in,
                                                      o);
    }
}


void
llm_linear_parts(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const uint16_t *rows16, uint32_t n_in, const llm_out_t *o)
{
    llm_w_t<0>  w = { rows16 };

    llm_linear_16_launch<2, 4, 4, 4, 32, 4, 1, 0>(d, rows, x, w, n_in, o);
}


void
llm_linear_parts_fp8(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_packed_t *p, const llm_out_t *o)
{
    uint32_t    n_in = p->blocks * LLM_TILE_COLS;
    llm_w_t<1>  w = { p->bytes, p->row_tiles };

    /* x is read once for each 64 rows of the weight, which have half as many
       bytes as 64 rows of x */

    if (rows <= 32) {
        llm_linear_16_launch<4, 1, 1, 4, 128, 4, 1, 1>(d, rows, x, w, n_in,
                                                       o);

    } else if (rows <= 64) {
        llm_linear_16_launch<4, 2, 1, 4, 128, 4, 1, 1>(d, rows, x, w, n_in,
                                                       o);

    } else {
        llm_linear_16_launch<2, 4, 4, 4, 32, 4, 1, 1>(d, rows, x, w, n_in,
                                                      o);
    }
}
