/*
 * Products with many rows, on tensor cores.  Tiles of both operands go through
 * a ring of stages in shared memory, where the 16-byte chunks of a row are
 * permuted so that the same chunk of eight rows is in different banks.  Packed
 * weights stay packed in shared memory; each warp unpacks what it multiplies.
 *
 * Invariant: whatever the tile, an element of the result is one chain of
 * instructions over K in its natural order, 16 columns each, as in a product
 * of cublasLt that does not split K.  Of a packed weight K is cut into
 * LLM_K_PARTS that depend only on the weight's shape, and the sums of the parts
 * are added in their order, as in linear_q.cu.
 */

#include "kernels/cuda/unpack.h"

/* byte offset of a row's chunk in a stage; KS: columns of a stage, 32 or 128 */

template<int KS> static __device__ __forceinline__ uint32_t
llm_turned(uint32_t row, uint32_t chunk)
{
    uint32_t  turn = KS >= 64 ? row & 7 : row >> 1 & 3;

    return row * KS * 2 + (chunk ^ turn) * 16;
}


/* a kernel's weight: 16-bit rows (class 0), or records */
template<int CLS> struct llm_w_t {
    llm_packed_t      p;
};

template<> struct llm_w_t<0> {
    const uint16_t   *rows;
};


/* copies rows [row0, row0 + ROWS) and columns [col, col + KS) to a stage.  The
   compiler does not know the number of threads, so the number of a thread's
   chunks is a constant: a test for each would take more than its copy. */

template<int ROWS, int KS, int THREADS> static __device__ __forceinline__ void
llm_fetch(uint8_t *stage, const uint16_t *m, uint32_t n_in, uint32_t row0,
    uint32_t rows, uint32_t col)
{
    int       j, ok;
    uint32_t  i, r, c;

    enum { CHUNKS = ROWS * (KS / 8) };

    static_assert(CHUNKS % THREADS == 0, "each thread copies as much");

#pragma unroll
    for (j = 0; j < CHUNKS / THREADS; j++) {
        i = (uint32_t) j * THREADS + threadIdx.x;
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


/* the same for records: a stage has one of each row tile, and some threads may
   have a chunk less */

template<int ROWS, int KS, int THREADS, int CLS>
static __device__ __forceinline__ void
llm_fetch_w(uint8_t *stage, const llm_w_t<CLS> &w, uint32_t n_in,
    uint32_t row0, uint32_t rows, uint32_t col)
{
    int       j, ok;
    uint32_t  i, t;

    enum { CHUNKS = llm_record_bytes(CLS) / 16,
           ALL = ROWS / LLM_TILE_ROWS * CHUNKS };

    static_assert(KS == LLM_QUAD_COLS, "a stage is a quad");

    (void) rows;
    (void) n_in;

#pragma unroll
    for (j = 0; j < (ALL + THREADS - 1) / THREADS; j++) {
        i = (uint32_t) j * THREADS + threadIdx.x;

        if (ALL % THREADS && i >= ALL) {
            break;
        }

        t = row0 / LLM_TILE_ROWS + i / CHUNKS;
        ok = t < w.p.row_tiles;

        llm_cp_async16(stage + i * 16,
                       w.p.records
                       + (ok ? ((size_t) t * w.p.quads + col / KS)
                               * llm_record_bytes(CLS) + i % CHUNKS * 16
                             : 0), ok);
    }
}


/* acc += W X^T over 32 columns, from chunk c of the stage on */

template<int MT, int NT, int KS> static __device__ __forceinline__ void
llm_step_32(const uint8_t *w, const uint8_t *x, uint32_t w0, uint32_t x0,
    uint32_t c, int bf16, float acc[MT][NT][4])
{
    int       k, m, n;
    uint32_t  lane, a[MT][2][4], b[NT][4];

    lane = threadIdx.x % 32;

#pragma unroll
    for (m = 0; m < MT; m++) {
#pragma unroll
        for (k = 0; k < 2; k++) {
            llm_ldmatrix_x4<0>(a[m][k],
                w + llm_turned<KS>(w0 + m * 16 + lane % 16,
                                   c + k * 2 + lane / 16));
        }
    }

#pragma unroll
    for (n = 0; n < NT; n++) {
        llm_ldmatrix_x4<0>(b[n],
            x + llm_turned<KS>(x0 + n * 8 + lane % 8, c + lane / 8));
    }

    llm_mma_tiles<MT, NT>(acc, a, b, bf16);
}


/* the columns of a step, `cols` of them: of 16-bit rows */

template<int MT, int NT, int KS> static __device__ __forceinline__ void
llm_step(const llm_w_t<0> &w, const uint8_t *stage, const uint8_t *x,
    uint32_t w0, uint32_t x0, uint32_t cols, int bf16, float acc[MT][NT][4])
{
    uint32_t  c;

    (void) w;

#pragma unroll
    for (c = 0; c < KS / 32; c++) {
        if (KS == 32 || c * 32 < cols) {
            llm_step_32<MT, NT, KS>(stage, x, w0, x0, c * 4, bf16, acc);
        }
    }
}


/* and of records, a lane's parts of which are loaded once for a quad; not more
   than four tiles of x are in registers */

template<int MT, int NT, int KS, int CLS> static __device__ __forceinline__
void
llm_step(const llm_w_t<CLS> &w, const uint8_t *stage, const uint8_t *x,
    uint32_t w0, uint32_t x0, uint32_t cols, int bf16, float acc[MT][NT][4])
{
    int              c, k, m, n, i;
    uint32_t         lane, a[MT][2][4], b[4][4];
    llm_lane_t<CLS>  l[MT];

    (void) cols;
    lane = threadIdx.x % 32;

#pragma unroll
    for (m = 0; m < MT; m++) {
        llm_lane_load<CLS>(stage + (w0 / LLM_TILE_ROWS + m)
                                   * llm_record_bytes(CLS), lane, l[m]);
    }

#pragma unroll
    for (c = 0; c < KS / 32; c++) {
#pragma unroll
        for (m = 0; m < MT; m++) {
            llm_unpack<CLS>(w.p, l[m], c, bf16, a[m]);
        }

#pragma unroll
        for (n = 0; n < NT; n += 4) {
#pragma unroll
            for (i = 0; i < 4; i++) {
                llm_ldmatrix_x4<0>(b[i],
                    x + llm_turned<KS>(x0 + (n + i) * 8 + lane % 8,
                                       c * 4 + lane / 8));
            }

#pragma unroll
            for (k = 0; k < 2; k++) {
#pragma unroll
                for (m = 0; m < MT; m++) {
#pragma unroll
                    for (i = 0; i < 4; i++) {
                        if (bf16) {
                            llm_mma_bf16(acc[m][n + i], a[m][k],
                                         b[i] + 2 * k);

                        } else {
                            llm_mma_f16(acc[m][n + i], a[m][k], b[i] + 2 * k);
                        }
                    }
                }
            }
        }
    }
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

template<int WROWS, int XROWS, int KS, int THREADS, int WSIZE, int CLS>
static __device__ __forceinline__ void
llm_fetch_step(uint8_t *stage, const llm_w_t<CLS> &w, const uint16_t *x,
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


/* bytes of `rows` rows of a weight in a stage */

static constexpr __device__ __host__ __forceinline__ uint32_t
llm_stage_w(int cls, uint32_t rows, uint32_t ks)
{
    return cls ? rows / LLM_TILE_ROWS * llm_record_bytes(cls) : rows * ks * 2;
}


/*
 * A block of WM by WN warps computes WM * MT * 16 columns of the result for
 * WN * NT * 8 rows.  n_in is a multiple of 32.
 */

template<int WM, int WN, int MT, int NT, int KS, int STAGES, int CLS,
    int BF16>
__global__ void
__launch_bounds__(WM * WN * 32, MT * NT < 8 ? 2 : 1)
llm_k_linear_16(llm_w_t<CLS> w, const uint16_t *x, uint32_t n_in,
    llm_out_t o)
{
    float      acc[MT][NT][4], total[MT][NT][4];
    uint8_t   *stage;
    uint32_t   lane, warp, wm, wn, k, s, steps, part, rows;

    enum {
        WROWS = WM * MT * 16,
        XROWS = WN * NT * 8,
        THREADS = WM * WN * 32,
        WSIZE = llm_stage_w(CLS, WROWS, KS),
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
            llm_fetch_step<WROWS, XROWS, KS, THREADS, WSIZE, CLS>(
                mem + s * SIZE, w, x, n_in, o.n_rows, rows, s);
        }

        llm_cp_async_commit();
    }

    part = 1;

    for (k = 0; k < steps; k++) {
        llm_cp_async_wait<STAGES - 2>();
        __syncthreads();

        s = k + STAGES - 1;

        if (s < steps) {
            llm_fetch_step<WROWS, XROWS, KS, THREADS, WSIZE, CLS>(
                mem + s % STAGES * SIZE, w, x, n_in, o.n_rows, rows, s);
        }

        llm_cp_async_commit();
        stage = mem + k % STAGES * SIZE;

        while (CLS && k == llm_k_part(steps, part)) {
            llm_end_part<MT, NT>(acc, total);
            part++;
        }

        llm_step<MT, NT, KS>(w, stage, stage + WSIZE, wm, wn, n_in - k * KS,
                             BF16, acc);
    }

    if (CLS) {
        llm_end_part<MT, NT>(acc, total);
    }

    llm_put_tiles<WROWS, XROWS, MT, NT>(o, wm, wn, lane, CLS ? total : acc);
}


template<int WM, int WN, int MT, int NT, int KS, int STAGES, int BF16,
    int CLS>
static void
llm_linear_16_launch(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_w_t<CLS> &w, uint32_t n_in, const llm_out_t *o)
{
    size_t    shared;
    uint32_t  wrows, xrows;

    /* on Ada a block has at most 99 KiB */
    static_assert((llm_stage_w(CLS, WM * MT * 16, KS) + WN * NT * 8 * KS * 2)
                  * STAGES <= 99 << 10, "too much shared memory");

    wrows = WM * MT * 16;
    xrows = WN * NT * 8;
    shared = (size_t) (llm_stage_w(CLS, wrows, KS) + xrows * KS * 2) * STAGES;

    llm_cuda_use_shared<llm_k_linear_16<WM, WN, MT, NT, KS, STAGES, CLS,
                                        BF16>>(d, shared);
    llm_launch((llm_k_linear_16<WM, WN, MT, NT, KS, STAGES, CLS, BF16>),
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

    } else if (d->gpu->wgmma) {
        llm_linear_wgmma(d, rows, x, rows16, n_in, o);

    } else if (d->bf16) {
        llm_linear_16_launch<2, 4, 4, 4, 32, 4, 1>(d, rows, x, w, n_in, o);

    } else {
        llm_linear_16_launch<2, 4, 4, 4, 32, 4, 0>(d, rows, x, w, n_in, o);
    }
}


template<int CLS, int BF16> static void
llm_linear_packed_rows(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_w_t<CLS> &w, uint32_t n_in, const llm_out_t *o)
{
    /* x is read once for each 64 rows of the weight, or for each 128 */

    if (rows <= 32) {
        llm_linear_16_launch<4, 1, 1, 4, 128, 4, BF16>(d, rows, x, w, n_in,
                                                       o);

    } else if (rows <= 64) {
        llm_linear_16_launch<4, 2, 1, 4, 128, 4, BF16>(d, rows, x, w, n_in,
                                                       o);

    } else {
        /* minima take registers */
        llm_linear_16_launch<4, 2, 2, CLS == LLM_CLASS_MINS ? 4 : 8, 128, 2,
                             BF16>(d, rows, x, w, n_in, o);
    }
}


template<int CLS> static void
llm_linear_packed_class(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_packed_t *p, uint32_t n_in, const llm_out_t *o)
{
    llm_w_t<CLS>  w = { *p };

    if (d->bf16) {
        llm_linear_packed_rows<CLS, 1>(d, rows, x, w, n_in, o);

    } else {
        llm_linear_packed_rows<CLS, 0>(d, rows, x, w, n_in, o);
    }
}


void
llm_linear_packed(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_packed_t *p, uint32_t n_in, const llm_out_t *o)
{
    if (rows > LLM_FEW_ROWS && d->gpu->wgmma) {
        llm_linear_packed_wgmma(d, rows, x, p, n_in, o);
        return;
    }

    switch (p->cls) {
    LLM_CLASS_CASE(LLM_CLASS_FP8, llm_linear_packed_class, d, rows, x, p, n_in,
                   o)
    LLM_QUANT_CASES(llm_linear_packed_class, d, rows, x, p, n_in, o)
    }
}
