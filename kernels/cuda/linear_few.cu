/*
 * Products of 16-bit weights with few rows, whose time is spent reading the
 * weights.  A warp has 16 rows of a weight and up to 16 rows of x; with more
 * rows of x, several warps share the rows of the weight.  A ring of stages in
 * shared memory keeps enough loads of the weight in flight.  All weights of a
 * call, for instance q, k and v, are one launch, so that small ones do not
 * leave most of the GPU idle.
 *
 * Invariant: an element of the result is one chain of instructions over K in
 * its natural order, 16 columns each, as in linear_16.cu.
 */

#include "kernels/cuda/linear.h"

/* columns of a stage, and bytes of a row of it */
#define LLM_FEW_COLS  128
#define LLM_FEW_ROW   (LLM_FEW_COLS * 2)

/* a call's weights, in the order of the grid's blocks */
typedef struct {
    const uint16_t   *w[LLM_FEW_WEIGHTS];
    llm_out_t         o[LLM_FEW_WEIGHTS];
    uint32_t          end[LLM_FEW_WEIGHTS];     /* one more than the weight's
                                                   last block */
} llm_few_t;


/* byte offset of a chunk of 16 bytes: the same chunk of eight rows is in
   different banks */

static __device__ __forceinline__ uint32_t
llm_few_at(uint32_t row, uint32_t chunk)
{
    return row * LLM_FEW_ROW + (chunk ^ (row & 7)) * 16;
}


template<int BF16> static __device__ __forceinline__ void
llm_few_mma(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    if (BF16) {
        llm_mma_bf16(d, a, b);

    } else {
        llm_mma_f16(d, a, b);
    }
}


/* acc += W X^T over 32 columns, from chunk c of a stage on */

template<int NT, int BF16> static __device__ __forceinline__ void
llm_few_step(const uint8_t *w, const uint8_t *x, uint32_t c, uint32_t lane,
    float acc[NT][4])
{
    int       n, k;
    uint32_t  a[2][4], b[NT][4];

#pragma unroll
    for (k = 0; k < 2; k++) {
        llm_ldmatrix_x4<0>(a[k], w + llm_few_at(lane % 16,
                                                c + k * 2 + lane / 16));
    }

#pragma unroll
    for (n = 0; n < NT; n++) {
        llm_ldmatrix_x4<0>(b[n], x + llm_few_at(n * 8 + lane % 8,
                                                c + lane / 8));
    }

#pragma unroll
    for (k = 0; k < 2; k++) {
#pragma unroll
        for (n = 0; n < NT; n++) {
            llm_few_mma<BF16>(acc[n], a[k], b[n] + 2 * k);
        }
    }
}


/*
 * What a thread copies of each stage.  A block is WM by WN warps, for WM * 16
 * rows of the weight and WN * NT * 8 rows of x.
 */
template<int WM, int WN, int NT> struct llm_few_copy_t {
    enum { W_CHUNKS = 8 / WN,           /* of 16 bytes */
           X_CHUNKS = NT * 8 * 16 / (WM * 32) };

    const uint16_t   *w;
    const uint16_t   *x;
    uint32_t          w_off[W_CHUNKS];
    uint32_t          x_off[X_CHUNKS];
    uint32_t          x_rows;           /* bit i: the row of chunk i exists */
};


/* the row of a thread's chunk i: among the 16 rows of the weight of its warps,
   and among the block's rows of x */

template<int WN> static __device__ __forceinline__ uint32_t
llm_few_w_row(int i)
{
    return (i * WN + threadIdx.x / 32 % WN) * 2 + threadIdx.x % 32 / 16;
}


template<int WM, int WN> static __device__ __forceinline__ uint32_t
llm_few_x_row(int i)
{
    return (i * WM * WN * 32 + threadIdx.x) / 16;
}


/* sets what the thread copies; instead of rows after the weight's last one the
   last is read, and their results are not written */

template<int WM, int WN, int NT> static __device__ __forceinline__ void
llm_few_copy_of(llm_few_copy_t<WM, WN, NT> &t, uint32_t row0,
    uint32_t n_rows, uint32_t rows, uint32_t n_in)
{
    int       i;
    uint32_t  r, chunk;

    chunk = threadIdx.x % 16 * 8;

#pragma unroll
    for (i = 0; i < t.W_CHUNKS; i++) {
        r = row0 + llm_few_w_row<WN>(i);
        t.w_off[i] = llm_min(r, n_rows - 1) * n_in + chunk;
    }

    t.x_rows = 0;

#pragma unroll
    for (i = 0; i < t.X_CHUNKS; i++) {
        r = llm_few_x_row<WM, WN>(i);
        t.x_rows |= (uint32_t) (r < rows) << i;
        t.x_off[i] = (r < rows ? r : 0) * n_in + chunk;
    }
}


/* starts the thread's copies of a step's columns, of w and of x; TAIL: the step
   has fewer columns than a stage */

template<int WM, int WN, int NT, int TAIL> static __device__ __forceinline__
void
llm_few_fetch(const llm_few_copy_t<WM, WN, NT> &t, uint8_t *w, uint8_t *x,
    uint32_t step, uint32_t n_in)
{
    int              i, ok;
    uint32_t         chunk;
    const uint16_t  *from;

    chunk = threadIdx.x % 16;
    ok = !TAIL || step * LLM_FEW_COLS + chunk * 8 < n_in;
    from = t.w + (ok ? step * LLM_FEW_COLS : 0);

#pragma unroll
    for (i = 0; i < t.W_CHUNKS; i++) {
        llm_cp_async16(w + llm_few_at(llm_few_w_row<WN>(i), chunk),
                       from + t.w_off[i], ok);
    }

    from = t.x + (ok ? step * LLM_FEW_COLS : 0);

#pragma unroll
    for (i = 0; i < t.X_CHUNKS; i++) {
        llm_cp_async16(x + llm_few_at(llm_few_x_row<WM, WN>(i), chunk),
                       from + t.x_off[i], ok & (int) (t.x_rows >> i));
    }
}


/*
 * A block computes WM * 16 columns of the result for up to WN * NT * 8 rows.
 * n_in is a multiple of 32.
 */

template<int WM, int WN, int NT, int STAGES, int BF16> __global__ void
__launch_bounds__(WM * WN * 32)
llm_k_linear_few(llm_few_t f, const uint16_t *x, uint32_t n_in)
{
    int                         i, m, n;
    float                       acc[NT][4];
    uint8_t                    *mine, *shared;
    uint32_t                    lane, wm, wn, row0, steps, full, s, c;
    llm_few_copy_t<WM, WN, NT>  t;

    enum {
        WSIZE = 16 * LLM_FEW_ROW,               /* a warp's rows of w */
        XSIZE = NT * 8 * LLM_FEW_ROW,           /* a warp's rows of x */
        SIZE = WM * WSIZE + WN * XSIZE
    };

    LLM_SHARED(mem);

    lane = threadIdx.x % 32;
    wm = threadIdx.x / 32 / WN;
    wn = threadIdx.x / 32 % WN;

    for (m = 0; blockIdx.x >= f.end[m]; m++) { /* void */ }

    row0 = ((blockIdx.x - (m ? f.end[m - 1] : 0)) * WM + wm) * 16;
    steps = (n_in + LLM_FEW_COLS - 1) / LLM_FEW_COLS;
    full = n_in / LLM_FEW_COLS;

    t.w = f.w[m];
    t.x = x;
    llm_few_copy_of<WM, WN, NT>(t, row0, f.o[m].n_rows, *f.o[m].count, n_in);

    auto fetch = [&](uint32_t step) {
        uint8_t  *to = mem + step % STAGES * SIZE;

        if (step < full) {
            llm_few_fetch<WM, WN, NT, 0>(t, to + wm * WSIZE, to + WM * WSIZE,
                                         step, n_in);

        } else if (step < steps) {
            llm_few_fetch<WM, WN, NT, 1>(t, to + wm * WSIZE, to + WM * WSIZE,
                                         step, n_in);
        }

        llm_cp_async_commit();
    };

#pragma unroll
    for (n = 0; n < NT; n++) {
#pragma unroll
        for (i = 0; i < 4; i++) {
            acc[n][i] = 0;
        }
    }

    for (s = 0; s < STAGES - 1; s++) {
        fetch(s);
    }

    for (s = 0; s < steps; s++) {
        llm_cp_async_wait<STAGES - 2>();
        __syncthreads();

        fetch(s + STAGES - 1);
        mine = mem + s % STAGES * SIZE + wm * WSIZE;
        shared = mem + s % STAGES * SIZE + WM * WSIZE + wn * XSIZE;

        if (s < full) {
#pragma unroll
            for (c = 0; c < LLM_FEW_COLS / 8; c += 4) {
                llm_few_step<NT, BF16>(mine, shared, c, lane, acc);
            }

        } else {
#pragma unroll 1
            for (c = 0; c < n_in % LLM_FEW_COLS / 8; c += 4) {
                llm_few_step<NT, BF16>(mine, shared, c, lane, acc);
            }
        }
    }

#pragma unroll
    for (n = 0; n < NT; n++) {
#pragma unroll
        for (i = 0; i < 4; i++) {
            llm_put(f.o[m], (wn * NT + n) * 8 + lane % 4 * 2 + (i & 1),
                    row0 + lane / 4 + (i & 2 ? 8 : 0), acc[n][i]);
        }
    }
}


/* sets the ends of the weights' blocks, each with 16 rows for each of `warps`
   warps; returns the number of blocks */

static uint32_t
llm_few_blocks(llm_few_t *f, uint32_t n, uint32_t warps)
{
    uint32_t  i, all;

    for (i = 0, all = 0; i < LLM_FEW_WEIGHTS; i++) {
        if (i < n) {
            all += (f->o[i].n_rows + warps * 16 - 1) / (warps * 16);
        }

        f->end[i] = all;
    }

    return all;
}


template<int WM, int WN, int NT, int STAGES, int BF16> static void
llm_few_launch(llm_cuda_t *d, llm_few_t *f, uint32_t n, const uint16_t *x,
    uint32_t n_in)
{
    size_t    shared;
    uint32_t  blocks;

    /* on Ada a block has at most 99 KiB */
    static_assert((WM * 16 + WN * NT * 8) * LLM_FEW_ROW * STAGES <= 99 << 10,
                  "too much shared memory");

    shared = (size_t) (WM * 16 + WN * NT * 8) * LLM_FEW_ROW * STAGES;
    blocks = llm_few_blocks(f, n, WM);

    llm_cuda_use_shared<llm_k_linear_few<WM, WN, NT, STAGES, BF16>>(d, shared);

    llm_launch((llm_k_linear_few<WM, WN, NT, STAGES, BF16>), blocks,
               WM * WN * 32, shared, d->stream, *f, x, n_in);
}


/* small weights get blocks of 16 rows, so that every SM has work */

template<int BF16> static void
llm_few_rows(llm_cuda_t *d, uint32_t rows, llm_few_t *f, uint32_t n,
    const uint16_t *x, uint32_t n_in)
{
    int  small;

    small = llm_few_blocks(f, n, 1) <= (rows <= 16 ? LLM_FEW_SMALL
                                                   : LLM_FEW_SMALLER);

    if (rows <= 8) {
        if (small) {
            llm_few_launch<1, 1, 1, 8, BF16>(d, f, n, x, n_in);

        } else {
            llm_few_launch<4, 1, 1, 4, BF16>(d, f, n, x, n_in);
        }

    } else if (rows <= 16) {
        if (small) {
            llm_few_launch<1, 1, 2, 6, BF16>(d, f, n, x, n_in);

        } else {
            llm_few_launch<4, 1, 2, 4, BF16>(d, f, n, x, n_in);
        }

    } else if (rows <= 32) {
        if (small) {
            llm_few_launch<1, 2, 2, 6, BF16>(d, f, n, x, n_in);

        } else {
            llm_few_launch<4, 2, 2, 4, BF16>(d, f, n, x, n_in);
        }

    } else {
        if (small) {
            llm_few_launch<1, 4, 2, 4, BF16>(d, f, n, x, n_in);

        } else {
            llm_few_launch<4, 4, 2, 3, BF16>(d, f, n, x, n_in);
        }
    }
}


void
llm_linear_few(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    uint32_t n_in, const uint16_t *const *w, const llm_out_t *o, uint32_t n)
{
    uint32_t   i;
    llm_few_t  f;

    memset(&f, 0, sizeof(f));

    for (i = 0; i < n; i++) {
        f.w[i] = w[i];
        f.o[i] = o[i];
    }

    if (d->bf16) {
        llm_few_rows<1>(d, rows, &f, n, x, n_in);

    } else {
        llm_few_rows<0>(d, rows, &f, n, x, n_in);
    }
}
