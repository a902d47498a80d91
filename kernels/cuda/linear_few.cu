/*
 * Products of 16-bit weights with few rows, whose time is spent reading the
 * weights.  A warp has 16 rows of a weight and up to 16 rows of x; with more
 * rows of x, several warps share the rows of the weight.  A ring of stages in
 * shared memory keeps enough loads of the weight in flight.  All weights of a
 * call, for instance q, k and v, are one launch, so that small ones do not
 * leave most of the GPU idle.
 *
 * A chain of tensor-core instructions leaves a warp idle for most of its time.
 * All else is done in that time: operands are read from shared memory one pair
 * of instructions ahead, also from the next stage, and copies are started
 * between the pairs.  The ring is filled with weights before the kernels that
 * compute x have ended (device.h).
 *
 * Invariant: an element of the result is one chain of instructions over K in
 * its natural order, 16 columns each, as in linear_16.cu.
 */

#include "kernels/cuda/linear.h"

/* a call's weights, in the order of the grid's blocks */
typedef struct {
    const uint16_t   *w[LLM_FEW_WEIGHTS];
    llm_out_t         o[LLM_FEW_WEIGHTS];
    uint32_t          end[LLM_FEW_WEIGHTS];     /* one more than the weight's
                                                   last block */
} llm_few_t;


/*
 * What a kernel is made for.  A block is WM by WN warps, for WM * 16 rows of
 * the weight and XR rows of x: WN * NT * 8, or 1.  A stage has COLS columns,
 * first the rows of the weight, then those of x; a stage's row is ROW bytes, a
 * chunk of it 16.  In a ring for one row of x, seven rows of zeros that
 * instructions need are one, after the stages.
 */
template<int WM_, int WN_, int NT_, int XR_, int COLS_, int STAGES_>
struct llm_few_shape_t {
    enum {
        WM = WM_, WN = WN_, NT = NT_, XR = XR_, COLS = COLS_,
        STAGES = STAGES_,
        THREADS = WM * WN * 32,
        ROW = COLS * 2,
        CHUNKS = ROW / 16,
        W_SIZE = 16 * ROW,              /* of a warp */
        SIZE = WM * W_SIZE + XR * ROW,
        SHARED = SIZE * STAGES + (XR == 1 ? ROW : 0),
        PAIRS = COLS / 32,              /* of instructions */
        W_STEP = WN * 32 / CHUNKS,      /* rows from one copy of a thread to
                                           the next */
        X_STEP = THREADS / CHUNKS,
        W_COPIES = 16 / W_STEP,
        X_COPIES = XR / X_STEP
    };

    static_assert(SHARED <= 99 << 10, "on Ada a block has at most 99 KiB");
    static_assert(X_COPIES * X_STEP == XR, "not all of x is copied");
};


/* a thread's part of the copies to a stage */
template<class S> struct llm_few_copy_t {
    const uint8_t    *w;                /* of the next stage, as below */
    const uint8_t    *x;
    uint32_t          col;              /* first of the thread's chunk of w */
    uint32_t          x_col;            /* the same of x */
    uint32_t          w_to;             /* offset of the chunk in the ring */
    uint32_t          x_to;
    uint32_t          w_off[S::W_COPIES];
    uint32_t          x_off[S::X_COPIES];
    uint32_t          x_rows;           /* bit i: the row of copy i exists */
};


/*
 * The offset of a chunk that is `rows` rows after the one at `first`, with the
 * same column.  Chunks of eight rows that follow one another are in different
 * banks: their numbers are combined with the row's.  `rows` is a constant, and
 * a multiple of what `first` can add to it without a carry.
 */

template<class S> static __device__ __forceinline__ uint32_t
llm_few_down(uint32_t first, uint32_t rows)
{
    return (first ^ (rows & 7) * 16) + rows * S::ROW;
}


/* the offset of a chunk of a row in a stage's part */

template<class S> static __device__ __forceinline__ uint32_t
llm_few_at(uint32_t row, uint32_t chunk)
{
    return row * S::ROW + (chunk ^ (row & 7)) * 16;
}


/* the offset of the next stage of the one at `at`; both as any part of it */

template<class S> static __device__ __forceinline__ uint32_t
llm_few_next(uint32_t at, uint32_t last)
{
    return at >= last ? at - (S::STAGES - 1) * S::SIZE : at + S::SIZE;
}


/* instead of rows after the weight's last one the last is read, and their
   results are not written */

template<class S> static __device__ __forceinline__ void
llm_few_copy_w(llm_few_copy_t<S> &t, const uint16_t *w, uint32_t row0,
    uint32_t n_rows, uint32_t n_in)
{
    int       i;
    uint32_t  r, row, first, chunk;

    chunk = threadIdx.x % S::CHUNKS;
    row = threadIdx.x % (S::WN * 32) / S::CHUNKS;
    first = llm_min(row0, n_rows - 1);

    t.col = chunk * 8;
    t.w = (const uint8_t *) (w + (size_t) first * n_in) + chunk * 16;
    t.w_to = threadIdx.x / (S::WN * 32) * S::W_SIZE
             + llm_few_at<S>(row, chunk);

#pragma unroll
    for (i = 0; i < S::W_COPIES; i++) {
        r = llm_min(row0 + row + i * S::W_STEP, n_rows - 1);
        t.w_off[i] = (r - first) * n_in * 2;
    }
}


template<class S> static __device__ __forceinline__ void
llm_few_copy_x(llm_few_copy_t<S> &t, const uint16_t *x, uint32_t rows,
    uint32_t n_in)
{
    int       i;
    uint32_t  r, row, chunk;

    chunk = threadIdx.x % S::CHUNKS;
    row = threadIdx.x / S::CHUNKS;

    t.x_col = chunk * 8;
    t.x = (const uint8_t *) x + chunk * 16;
    t.x_to = S::WM * S::W_SIZE + llm_few_at<S>(row, chunk);
    t.x_rows = 0;

#pragma unroll
    for (i = 0; i < S::X_COPIES; i++) {
        r = row + i * S::X_STEP;
        t.x_rows |= (uint32_t) (r < rows) << i;
        t.x_off[i] = (r < rows ? r : 0) * n_in * 2;
    }
}


/* starts part p of `parts` of the copies of w to a stage; what is beyond n_in
   becomes zeros */

template<class S> static __device__ __forceinline__ void
llm_few_fetch_w(const llm_few_copy_t<S> &t, uint8_t *mem, int p, int parts,
    uint32_t n_in)
{
    int  i;

#pragma unroll
    for (i = p * S::W_COPIES / parts; i < (p + 1) * S::W_COPIES / parts; i++)
    {
        llm_cp_async16(mem + llm_few_down<S>(t.w_to, i * S::W_STEP),
                       t.w + t.w_off[i], t.col < n_in);
    }
}


template<class S> static __device__ __forceinline__ void
llm_few_fetch_x(const llm_few_copy_t<S> &t, uint8_t *mem, int p, int parts,
    uint32_t n_in)
{
    int  i;

#pragma unroll
    for (i = p * S::X_COPIES / parts; i < (p + 1) * S::X_COPIES / parts; i++)
    {
        llm_cp_async16(mem + llm_few_down<S>(t.x_to, i * S::X_STEP),
                       t.x + t.x_off[i],
                       t.x_col < n_in && (t.x_rows >> i & 1));
    }
}


template<class S> static __device__ __forceinline__ void
llm_few_next_w(llm_few_copy_t<S> &t)
{
    t.w += S::ROW;
    t.col += S::COLS;
    t.w_to = llm_few_next<S>(t.w_to, (S::STAGES - 1) * S::SIZE);
}


template<class S> static __device__ __forceinline__ void
llm_few_next_x(llm_few_copy_t<S> &t)
{
    t.x += S::ROW;
    t.x_col += S::COLS;
    t.x_to = llm_few_next<S>(t.x_to, (S::STAGES - 1) * S::SIZE);
}


/* operands of a pair of instructions: 32 columns */
template<class S> struct llm_few_pair_t {
    uint32_t  a[2][4];
    uint32_t  b[S::NT][4];
};


/* reads pair p of a stage; w and x: offsets of the row that the lane passes to
   the first instruction, in that stage */

template<class S> static __device__ __forceinline__ void
llm_few_read(llm_few_pair_t<S> &q, const uint8_t *mem, uint32_t w, uint32_t x,
    int p)
{
    int       k, n;
    uint32_t  at;

    /* four chunks from chunk 4 p on: the row's number was combined with them */

#pragma unroll
    for (k = 0; k < 2; k++) {
        at = (w ^ (p % 2 * 4 + k * 2) * 16) + p / 2 * 128;
        llm_ldmatrix_x4<0>(q.a[k], mem + at);
    }

#pragma unroll
    for (n = 0; n < S::NT; n++) {
        at = (x ^ p % 2 * 4 * 16) + p / 2 * 128 + n * 8 * S::ROW;
        llm_ldmatrix_x4<0>(q.b[n], mem + at);
    }
}


template<class S, int BF16> static __device__ __forceinline__ void
llm_few_mma(float acc[S::NT][4], const llm_few_pair_t<S> &q)
{
    int  k, n;

#pragma unroll
    for (k = 0; k < 2; k++) {
#pragma unroll
        for (n = 0; n < S::NT; n++) {
            if (BF16) {
                llm_mma_bf16(acc[n], q.a[k], q.b[n] + 2 * k);

            } else {
                llm_mma_f16(acc[n], q.a[k], q.b[n] + 2 * k);
            }
        }
    }
}


/* waits for the copies to the stage after which STAGES - 2 were started */

template<class S> static __device__ __forceinline__ void
llm_few_wait(void)
{
    llm_cp_async_wait<S::STAGES - 2>();

    if (S::THREADS == 32) {
        __syncwarp();

    } else {
        __syncthreads();
    }
}


/* starts the copies to all stages but one: of w before x is known */

template<class S> static __device__ __forceinline__ void
llm_few_begin(llm_few_copy_t<S> &t, uint8_t *mem, const uint16_t *x,
    const uint32_t *rows, uint32_t n_in)
{
    int  s;

#pragma unroll 1
    for (s = 0; s < S::STAGES - 1; s++) {
        llm_few_fetch_w<S>(t, mem, 0, 1, n_in);
        llm_cp_async_commit();
        llm_few_next_w<S>(t);
    }

    llm_few_copy_x<S>(t, x, *rows, n_in);
    llm_early_wait();

#pragma unroll 1
    for (s = 0; s < S::STAGES - 1; s++) {
        llm_few_fetch_x<S>(t, mem, 0, 1, n_in);
        llm_cp_async_commit();
        llm_few_next_x<S>(t);
    }

    if (S::XR == 1) {
        *(uint4 *) (mem + S::STAGES * S::SIZE + threadIdx.x * 16) =
            make_uint4(0, 0, 0, 0);
    }
}


/* n_in is a multiple of 32 */

template<int WM, int WN, int NT, int XR, int COLS, int STAGES, int BF16>
__global__ void
__launch_bounds__(WM * WN * 32)
llm_k_linear_few(llm_few_t f, const uint16_t *x, uint32_t n_in)
{
    using S = llm_few_shape_t<WM, WN, NT, XR, COLS, STAGES>;

    int                i, m, n, p;
    float              acc[NT][4];
    uint32_t           lane, wm, wn, row0, s, w_at, x_at, zero;
    llm_few_copy_t<S>  t;
    llm_few_pair_t<S>  q[2];

    LLM_SHARED(mem);

    llm_early_start();

    lane = threadIdx.x % 32;
    wm = threadIdx.x / 32 / WN;
    wn = threadIdx.x / 32 % WN;

    for (m = 0; blockIdx.x >= f.end[m]; m++) { /* void */ }

    row0 = ((blockIdx.x - (m ? f.end[m - 1] : 0)) * WM + wm) * 16;

    llm_few_copy_w<S>(t, f.w[m], row0, f.o[m].n_rows, n_in);
    llm_few_begin<S>(t, mem, x, f.o[m].count, n_in);

#pragma unroll
    for (n = 0; n < NT; n++) {
#pragma unroll
        for (i = 0; i < 4; i++) {
            acc[n][i] = 0;
        }
    }

    w_at = wm * S::W_SIZE + llm_few_at<S>(lane % 16, lane / 16);
    x_at = WM * S::W_SIZE
           + llm_few_at<S>(XR == 1 ? 0 : wn * NT * 8 + lane % 8,
                           lane / 8);
    zero = STAGES * S::SIZE + lane / 8 * 16;

    auto read = [&](llm_few_pair_t<S> &to, int pair) {
        llm_few_read<S>(to, mem, w_at,
                        XR == 1 && lane % 8 ? zero : x_at, pair);
    };

    llm_few_wait<S>();
    read(q[0], 0);

    for (s = 0; s < n_in / COLS; s++) {
#pragma unroll
        for (p = 0; p < S::PAIRS; p++) {
            llm_few_fetch_w<S>(t, mem, p, S::PAIRS, n_in);
            llm_few_fetch_x<S>(t, mem, p, S::PAIRS, n_in);

            if (p + 1 < S::PAIRS) {
                read(q[(p + 1) % 2], p + 1);

            } else {
                llm_cp_async_commit();
                llm_few_next_w<S>(t);
                llm_few_next_x<S>(t);
                w_at = llm_few_next<S>(w_at, (STAGES - 1) * S::SIZE);
                x_at = llm_few_next<S>(x_at, (STAGES - 1) * S::SIZE);
                llm_few_wait<S>();
                read(q[0], 0);
            }

            llm_few_mma<S, BF16>(acc, q[p % 2]);
        }
    }

#pragma unroll
    for (p = 0; p < S::PAIRS - 1; p++) {
        if (s * COLS + p * 32 < n_in) {
            read(q[0], p);
            llm_few_mma<S, BF16>(acc, q[0]);
        }
    }

    /* a block does not end while copies to its ring are on their way, even
       though those after the last column only write zeros */

    llm_cp_async_wait<0>();

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


template<int WM, int WN, int NT, int XR, int COLS, int STAGES, int BF16>
static void
llm_few_launch(llm_cuda_t *d, llm_few_t *f, uint32_t n, const uint16_t *x,
    uint32_t n_in)
{
    uint32_t  blocks;

    using S = llm_few_shape_t<WM, WN, NT, XR, COLS, STAGES>;

    blocks = llm_few_blocks(f, n, WM);

    llm_cuda_use_shared<llm_k_linear_few<WM, WN, NT, XR, COLS, STAGES, BF16>>
        (d, S::SHARED);

    llm_launch_early(llm_cuda_early(d),
        (llm_k_linear_few<WM, WN, NT, XR, COLS, STAGES, BF16>), blocks,
        S::THREADS, S::SHARED, d->stream, *f, x, n_in);
}


/* small weights get blocks of 16 rows, so that every SM has work */

template<int BF16> static void
llm_few_rows(llm_cuda_t *d, uint32_t rows, llm_few_t *f, uint32_t n,
    const uint16_t *x, uint32_t n_in)
{
    int  small;

    small = llm_few_blocks(f, n, 1) <= (rows <= 16 ? LLM_FEW_SMALL
                                                   : LLM_FEW_SMALLER);

#define LLM_FEW_LAUNCH(...)                                                  \
    llm_few_launch<__VA_ARGS__, BF16>(d, f, n, x, n_in)

    if (rows == 1) {
        LLM_FEW_LAUNCH(1, 1, 1, 1, 256, 8);

    } else if (rows <= 8) {
        if (small) {
            LLM_FEW_LAUNCH(1, 1, 1, 8, 128, 12);

        } else {
            LLM_FEW_LAUNCH(4, 1, 1, 8, 128, 4);
        }

    } else if (rows <= 16) {
        if (small) {
            LLM_FEW_LAUNCH(1, 1, 2, 16, 128, 9);

        } else {
            LLM_FEW_LAUNCH(4, 1, 2, 16, 128, 3);
        }

    } else if (rows <= 32) {
        if (small) {
            LLM_FEW_LAUNCH(1, 2, 2, 32, 128, 6);

        } else {
            LLM_FEW_LAUNCH(4, 2, 2, 32, 128, 4);
        }

    } else {
        if (small) {
            LLM_FEW_LAUNCH(1, 4, 2, 64, 128, 4);

        } else {
            LLM_FEW_LAUNCH(4, 4, 2, 64, 128, 3);
        }
    }

#undef LLM_FEW_LAUNCH
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
