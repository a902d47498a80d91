/*
 * Products with many rows on Hopper: the arithmetic of linear_16.cu in the same
 * order, by wgmma.
 *
 * A block has 64 rows of the weight for each of its one or two warpgroups, and
 * rows of x for both, in a ring of stages: two are in use, the others are being
 * copied.
 * A warpgroup starts the products of a stage and then waits for those of the one
 * before.  Both operands of a product with 16-bit weights are in shared memory.
 * Packed weights stay packed there; a warp unpacks 32 columns while the products
 * of the 32 before run, and has a second set of registers for that.
 *
 * Invariant: for an element, as linear_16.cu: a chain over K, or of a packed
 * weight one for each of LLM_K_PARTS.  A stage is copied to only after the
 * barrier that follows the last use of what is in it.
 */

#include "kernels/cuda/unpack.h"
#include "kernels/cuda/wgmma.h"

#define LLM_LWG_SMS  132                /* of an H100; for the choice of a block
                                           alone */

/* CLS: of the weight, 0: 16 bits; WG: warpgroups; N * 8 rows of x */
template<int CLS_, int WG_, int N_, int STAGES_> struct llm_lwg_shape_t {
    enum {
        CLS = CLS_, WG = WG_, N = N_, STAGES = STAGES_,
        THREADS = WG * 128,
        COLS = CLS ? LLM_QUAD_COLS : 64,        /* of a stage */
        WROWS = WG * 64,
        TILES = WROWS / LLM_TILE_ROWS,
        XROWS = N * 8,
        W_BYTES = CLS ? TILES * llm_record_bytes(CLS) : WROWS * COLS * 2,
        W_SIZE = (W_BYTES + LLM_WG_ALIGN - 1) / LLM_WG_ALIGN * LLM_WG_ALIGN,
        SIZE = W_SIZE + XROWS * COLS * 2,
        SHARED = SIZE * STAGES + LLM_WG_ALIGN,
        AHEAD = STAGES - 2              /* stages that are being copied */
    };

    static_assert(SHARED <= 227 << 10
                  && SIZE * STAGES >= llm_put_bytes(TILES, N),
                  "shared memory");
};

/* a block's weight: 16-bit rows, or records */
template<int CLS> struct llm_lwg_w_t {
    llm_packed_t      p;
};

template<> struct llm_lwg_w_t<0> {
    const uint16_t   *rows;
};


/* ---- copies ---- */

/* a thread's part of copies of `ROWS` rows: 16 bytes of each STEP-th row.  After
   the last row there is the last row again, whose results are not stored. */
template<int ROWS, int COLS, int THREADS> struct llm_lwg_rows_t {
    enum { CHUNKS = COLS / 8,
           STEP = THREADS / CHUNKS,
           COPIES = ROWS / STEP };

    static_assert(COPIES * STEP == ROWS && STEP % 8 == 0,
                  "each thread copies as much, to one place of 8 rows");

    const uint16_t   *begin;            /* the block's first row */
    const uint16_t   *from;             /* the next columns of it */
    int               left;             /* its columns from there on */
    uint32_t          off[COPIES];      /* elements */
    uint32_t          to;               /* the first, in the stage's rows */
};


template<int ROWS, int COLS, int THREADS>
static __device__ __forceinline__ void
llm_lwg_rows(llm_lwg_rows_t<ROWS, COLS, THREADS> &t, const uint16_t *m,
    uint32_t n_in, uint32_t row0, uint32_t rows)
{
    int       j;
    uint32_t  row, chunk;

    row = threadIdx.x / t.CHUNKS;
    chunk = threadIdx.x % t.CHUNKS;
    t.begin = m + (size_t) row0 * n_in;
    t.from = t.begin + chunk * 8;
    t.left = (int) (n_in - chunk * 8);
    t.to = chunk / 8 * ROWS * 128 + row * 128 + ((chunk ^ row) % 8) * 16;

#pragma unroll
    for (j = 0; j < t.COPIES; j++) {
        t.off[j] = llm_min(row + j * t.STEP, rows - 1 - row0) * n_in;
    }
}


/* starts copying the next columns; those after the last one are zeros */

template<int ROWS, int COLS, int THREADS>
static __device__ __forceinline__ void
llm_lwg_fetch_rows(llm_lwg_rows_t<ROWS, COLS, THREADS> &t, uint8_t *stage)
{
    int              j, ok;
    const uint16_t  *from;

    ok = t.left > 0;
    from = ok ? t.from : t.begin;

#pragma unroll
    for (j = 0; j < t.COPIES; j++) {
        llm_cp_async16(stage + t.to + j * t.STEP * 128, from + t.off[j], ok);
    }

    t.from += COLS;
    t.left -= COLS;
}


/* the same of the block's tiles of a packed weight, whose columns are whole
   quads */
template<class S> struct llm_lwg_records_t {
    enum { RECORD = llm_record_bytes(S::CLS),
           CHUNKS = RECORD / 16,
           ALL = S::TILES * CHUNKS,
           COPIES = (ALL + S::THREADS - 1) / S::THREADS };

    const uint8_t    *from;
    uint32_t          off[COPIES];      /* bytes */
};


template<class S> static __device__ __forceinline__ void
llm_lwg_records(llm_lwg_records_t<S> &t, const llm_packed_t &p, uint32_t tile)
{
    int       j;
    uint32_t  i;

    t.from = p.records + (size_t) tile * p.quads * t.RECORD;

#pragma unroll
    for (j = 0; j < t.COPIES; j++) {
        i = llm_min(j * S::THREADS + threadIdx.x, t.ALL - 1u);
        t.off[j] = llm_min(i / t.CHUNKS, p.row_tiles - 1 - tile) * p.quads
                   * t.RECORD + i % t.CHUNKS * 16;
    }
}


template<class S> static __device__ __forceinline__ void
llm_lwg_fetch_records(llm_lwg_records_t<S> &t, uint8_t *stage)
{
    int       j;
    uint32_t  i;

#pragma unroll
    for (j = 0; j < t.COPIES; j++) {
        i = j * S::THREADS + threadIdx.x;

        if (t.ALL % S::THREADS == 0 || i < t.ALL) {
            llm_cp_async16(stage + i * 16, t.from + t.off[j]);
        }
    }

    t.from += t.RECORD;
}


/* waits for the stage of step k in all threads, whose products of step k - 2
   have ended */

template<class S> static __device__ __forceinline__ void
llm_lwg_arrive(void)
{
    llm_cp_async_wait<S::AHEAD - 1>();
    llm_wg_written();
    __syncthreads();
}


/* ---- 16-bit weights ---- */

/* acc += the stage's first STEPS times 16 columns; the products of the stage
   before have ended then */

template<class S, int BF16, int STEPS> static __device__ __forceinline__ void
llm_lwg_stage_16(const uint8_t *mem, const uint8_t *stage,
    float acc[S::N][4])
{
    int             i;
    const uint8_t  *w;

    w = stage + threadIdx.x / 128 * 64 * 128;

    llm_wg_hold<S::N>(acc);
    llm_wg_begin();

#pragma unroll
    for (i = 0; i < STEPS; i++) {
        llm_wg_linear_shared<S::N, BF16>(acc, mem, w + i * 32,
                                         stage + S::W_SIZE + i * 32);
    }

    llm_wg_commit();
    llm_wg_wait<1>();
}


template<class S, int BF16> static __device__ __forceinline__ void
llm_lwg_block_16(uint8_t *mem, const llm_lwg_w_t<0> &w, const uint16_t *x,
    uint32_t n_in, uint32_t wrow, uint32_t n_rows, uint32_t row0,
    uint32_t rows, float acc[S::N][4])
{
    uint32_t  k, whole, steps, at, to;

    llm_lwg_rows_t<S::WROWS, S::COLS, S::THREADS>  tw;
    llm_lwg_rows_t<S::XROWS, S::COLS, S::THREADS>  tx;

    whole = n_in / S::COLS;
    steps = (n_in + S::COLS - 1) / S::COLS;

    llm_lwg_rows(tw, w.rows, n_in, wrow, n_rows);
    llm_lwg_rows(tx, x, n_in, row0, rows);
    llm_zero<1, S::N>((float (*)[S::N][4]) acc);

#pragma unroll 1
    for (k = 0; k < S::AHEAD; k++) {
        if (k < steps) {
            llm_lwg_fetch_rows(tw, mem + k * S::SIZE);
            llm_lwg_fetch_rows(tx, mem + k * S::SIZE + S::W_SIZE);
        }

        llm_cp_async_commit();
    }

    at = 0;
    to = S::AHEAD * S::SIZE;

#pragma unroll 1
    for (k = 0; k < whole; k++) {
        llm_lwg_arrive<S>();

        if (k + S::AHEAD < steps) {
            llm_lwg_fetch_rows(tw, mem + to);
            llm_lwg_fetch_rows(tx, mem + to + S::W_SIZE);
        }

        llm_cp_async_commit();
        llm_lwg_stage_16<S, BF16, 4>(mem, mem + at, acc);

        at = at == (S::STAGES - 1) * S::SIZE ? 0 : at + S::SIZE;
        to = to == (S::STAGES - 1) * S::SIZE ? 0 : to + S::SIZE;
    }

    if (whole < steps) {
        llm_lwg_arrive<S>();
        llm_cp_async_commit();
        llm_lwg_stage_16<S, BF16, 2>(mem, mem + at, acc);
    }

    llm_wg_wait<0>();
    llm_wg_hold<S::N>(acc);
}


/* ---- packed weights ---- */

/* A branch that is never taken: ptxas moves nothing across it, and would else
   unpack most of a quad before the first products. */

static __device__ __forceinline__ void
llm_lwg_in_turn(uint32_t n_out, int tile)
{
#ifndef LLM_EMU
    if (n_out == 0xffffff00u + (uint32_t) tile) {
        __trap();
    }
#else
    (void) n_out;
    (void) tile;
#endif
}


/* acc += the stage's quad; the products of its last 32 columns may not have
   ended then */

template<class S, int BF16> static __device__ __forceinline__ void
llm_lwg_quad(const uint8_t *mem, const llm_packed_t &p, const uint8_t *stage,
    uint32_t a[2][2][4], float acc[S::N][4])
{
    int                 tile, i;
    const uint8_t      *x;
    llm_lane_t<S::CLS>  l;

    llm_lane_load<S::CLS>(stage + threadIdx.x / 32 * llm_record_bytes(S::CLS),
                          threadIdx.x % 32, l);

#pragma unroll
    for (tile = 0; tile < 4; tile++) {
        llm_unpack<S::CLS>(p, l, tile, BF16, a[tile % 2]);

        x = stage + S::W_SIZE + tile / 2 * S::XROWS * 128 + tile % 2 * 64;
        llm_wg_hold<2>(a[tile % 2]);
        llm_wg_hold<S::N>(acc);
        llm_wg_begin();

#pragma unroll
        for (i = 0; i < 2; i++) {
            llm_wg_linear<S::N, BF16>(acc, a[tile % 2][i], mem, x + i * 32);
        }

        llm_wg_commit();
        llm_wg_wait<1>();
        llm_wg_hold<2>(a[(tile + 1) % 2]);
        llm_lwg_in_turn(p.n_out, tile);
    }
}


template<class S, int BF16> static __device__ __forceinline__ void
llm_lwg_block_packed(uint8_t *mem, const llm_packed_t &p, const uint16_t *x,
    uint32_t n_in, uint32_t wrow, uint32_t row0, uint32_t rows,
    float total[S::N][4])
{
    int       n, i;
    float     acc[S::N][4];
    uint32_t  k, end, part, steps, at, to, a[2][2][4];

    llm_lwg_records_t<S>                           tw;
    llm_lwg_rows_t<S::XROWS, S::COLS, S::THREADS>  tx;

    steps = p.quads;

    llm_lwg_records(tw, p, wrow / LLM_TILE_ROWS);
    llm_lwg_rows(tx, x, n_in, row0, rows);
    llm_zero<1, S::N>((float (*)[S::N][4]) total);
    memset(a, 0, sizeof(a));

#pragma unroll 1
    for (k = 0; k < S::AHEAD; k++) {
        if (k < steps) {
            llm_lwg_fetch_records(tw, mem + k * S::SIZE);
            llm_lwg_fetch_rows(tx, mem + k * S::SIZE + S::W_SIZE);
        }

        llm_cp_async_commit();
    }

    k = 0;
    at = 0;
    to = S::AHEAD * S::SIZE;

#pragma unroll 1
    for (part = 1; part <= LLM_K_PARTS; part++) {
        end = llm_k_part(steps, part);
        llm_zero<1, S::N>((float (*)[S::N][4]) acc);

#pragma unroll 1
        for ( /* void */ ; k < end; k++) {
            llm_lwg_arrive<S>();

            if (k + S::AHEAD < steps) {
                llm_lwg_fetch_records(tw, mem + to);
                llm_lwg_fetch_rows(tx, mem + to + S::W_SIZE);
            }

            llm_cp_async_commit();
            llm_lwg_quad<S, BF16>(mem, p, mem + at, a, acc);

            at = at == (S::STAGES - 1) * S::SIZE ? 0 : at + S::SIZE;
            to = to == (S::STAGES - 1) * S::SIZE ? 0 : to + S::SIZE;
        }

        llm_wg_wait<0>();
        llm_wg_hold<S::N>(acc);

#pragma unroll
        for (n = 0; n < S::N; n++) {
#pragma unroll
            for (i = 0; i < 4; i++) {
                total[n][i] += acc[n][i];
            }
        }
    }
}


/* ---- launches ---- */

/* block (rows of x; rows of the weight): blocks that run together share the
   weight's */

template<int CLS, int WG, int N, int STAGES, int BF16> __global__ void
__launch_bounds__(WG * 128, 1)
llm_k_linear_wgmma(llm_lwg_w_t<CLS> w, const uint16_t *x, uint32_t n_in,
    llm_out_t o)
{
#if LLM_WG_HERE
    using S = llm_lwg_shape_t<CLS, WG, N, STAGES>;

    float     sum[N][4];
    uint32_t  wrow, row0, rows;

    LLM_SHARED(mem);

    rows = *o.count;
    row0 = blockIdx.x * S::XROWS;
    wrow = blockIdx.y * S::WROWS;

    if (row0 >= rows) {
        return;                         /* rows of a bucket that is not full */
    }

    if constexpr (CLS) {
        llm_lwg_block_packed<S, BF16>(llm_wg_memory(mem), w.p, x, n_in, wrow,
                                      row0, rows, sum);

    } else {
        llm_lwg_block_16<S, BF16>(llm_wg_memory(mem), w, x, n_in, wrow,
                                  o.n_rows, row0, rows, sum);
    }

    llm_put_block<N, S::TILES>(o, mem, row0, rows, wrow, sum);
#else
    (void) w;
    (void) x;
    (void) n_in;
    (void) o;
#endif
}


template<int CLS, int WG, int N, int STAGES, int BF16> static void
llm_lwg_launch(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_lwg_w_t<CLS> &w, uint32_t n_in, const llm_out_t *o)
{
    using S = llm_lwg_shape_t<CLS, WG, N, STAGES>;

    llm_cuda_use_shared<llm_k_linear_wgmma<CLS, WG, N, STAGES, BF16>>(d,
        S::SHARED);
    llm_launch((llm_k_linear_wgmma<CLS, WG, N, STAGES, BF16>),
               dim3((rows + S::XROWS - 1) / S::XROWS,
                    (o->n_rows + S::WROWS - 1) / S::WROWS),
               S::THREADS, S::SHARED, d->stream, w, x, n_in, *o);
}


/* blocks of so many rows of x and of the weight, and how often all SMs have
   one */

static uint64_t
llm_lwg_blocks(uint32_t rows, const llm_out_t *o, uint32_t xrows,
    uint32_t wrows)
{
    return (uint64_t) ((rows + xrows - 1) / xrows)
           * ((o->n_rows + wrows - 1) / wrows);
}


static uint64_t
llm_lwg_waves(uint32_t rows, const llm_out_t *o, uint32_t xrows)
{
    return (llm_lwg_blocks(rows, o, xrows, 128) + LLM_LWG_SMS - 1)
           / LLM_LWG_SMS;
}


/*
 * Small blocks if each has an SM for itself.  Otherwise one of 256 rows takes
 * twice the products of one of 128, which reads shared memory so much more that
 * it takes a quarter longer: 6 KB in 64 cycles, beside the copies, of 128 bytes
 * a cycle that there are.
 */

template<int BF16> static void
llm_lwg_rows_16(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_lwg_w_t<0> &w, uint32_t n_in, const llm_out_t *o)
{
    if (llm_lwg_blocks(rows, o, 64, 64) <= LLM_LWG_SMS) {
        llm_lwg_launch<0, 1, 8, 8, BF16>(d, rows, x, w, n_in, o);

    } else if (8 * llm_lwg_waves(rows, o, 256)
               <= 5 * llm_lwg_waves(rows, o, 128))
    {
        llm_lwg_launch<0, 2, 32, 4, BF16>(d, rows, x, w, n_in, o);

    } else {
        llm_lwg_launch<0, 2, 16, 6, BF16>(d, rows, x, w, n_in, o);
    }
}


void
llm_linear_wgmma(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const uint16_t *rows16, uint32_t n_in, const llm_out_t *o)
{
    llm_lwg_w_t<0>  w = { rows16 };

    if (d->bf16) {
        llm_lwg_rows_16<1>(d, rows, x, w, n_in, o);

    } else {
        llm_lwg_rows_16<0>(d, rows, x, w, n_in, o);
    }
}


template<int CLS, int BF16> static void
llm_lwg_rows_packed(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_lwg_w_t<CLS> &w, uint32_t n_in, const llm_out_t *o)
{
    if (llm_lwg_blocks(rows, o, 64, 64) <= LLM_LWG_SMS) {
        llm_lwg_launch<CLS, 1, 8, 6, BF16>(d, rows, x, w, n_in, o);

    } else {
        llm_lwg_launch<CLS, 2, 16, 4, BF16>(d, rows, x, w, n_in, o);
    }
}


template<int CLS> static void
llm_lwg_class(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_packed_t *p, uint32_t n_in, const llm_out_t *o)
{
    llm_lwg_w_t<CLS>  w = { *p };

    if (d->bf16) {
        llm_lwg_rows_packed<CLS, 1>(d, rows, x, w, n_in, o);

    } else {
        llm_lwg_rows_packed<CLS, 0>(d, rows, x, w, n_in, o);
    }
}


void
llm_linear_packed_wgmma(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_packed_t *p, uint32_t n_in, const llm_out_t *o)
{
    switch (p->cls) {
    LLM_CLASS_CASE(LLM_CLASS_FP8, llm_lwg_class, d, rows, x, p, n_in, o)
    LLM_QUANT_CASES(llm_lwg_class, d, rows, x, p, n_in, o)
    }
}
