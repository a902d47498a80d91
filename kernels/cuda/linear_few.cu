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
 * Two weights of a gated network may be one product: a tile then has eight rows
 * of the gate's and the same eight of the other's, so a lane has the sums that
 * belong together.
 *
 * Invariant: an element of the result is one chain of instructions over K in
 * its natural order, 16 columns each, as in linear_16.cu.
 */

#include "kernels/cuda/linear.h"
#include "kernels/cuda/values.h"

/* most copies of x by a thread that go through registers, at the start */
#define LLM_FEW_X_FIRST  8

/* a call's weights, in the order of the grid's blocks */
typedef struct {
    const uint16_t   *w[LLM_FEW_WEIGHTS];
    llm_out_t         o[LLM_FEW_WEIGHTS];
    uint32_t          end[LLM_FEW_WEIGHTS];     /* one more than the weight's
                                                   last block */
} llm_few_t;

/* of a gated network: w[0] and o[0] are the gate's, w[1] and o[1] the other's,
   without y */
typedef struct {
    llm_few_t         f;
    llm_glu_t         act;
    void             *y;
    int               y_is16;
} llm_few_glu_t;


/*
 * What a kernel is made for.  A block is WM by WN warps, for WM * 16 rows of
 * the weight and XR rows of x: WN * NT * 8, or 1.  A stage has COLS columns,
 * first the rows of the weight, then those of x; a stage's row is ROW bytes, a
 * chunk of it 16.  In a ring for one row of x, seven rows of zeros that
 * instructions need are one, after the stages.  GLU: rows 8 to 15 of a warp are
 * of another weight than rows 0 to 7.
 */
template<int WM_, int WN_, int NT_, int XR_, int COLS_, int STAGES_,
    int GLU_ = 0>
struct llm_few_shape_t {
    enum {
        WM = WM_, WN = WN_, NT = NT_, XR = XR_, COLS = COLS_,
        STAGES = STAGES_, GLU = GLU_,
        ROWS = GLU ? 8 : 16,            /* of a weight, of a warp */
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
        X_COPIES = XR / X_STEP,
        X_FIRST = X_COPIES * (STAGES - 1)       /* copies to all stages but
                                                   one */
    };

    static_assert(SHARED <= 99 << 10, "on Ada a block has at most 99 KiB");
    static_assert(ROWS % W_STEP == 0, "a copy is of rows of one weight");
    static_assert(X_COPIES * X_STEP == XR, "not all of x is copied");
};


/* a thread's part of the copies to a stage */
template<class S> struct llm_few_copy_t {
    const uint8_t    *w[1 + S::GLU];    /* of the next stage, as below */
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
llm_few_copy_w(llm_few_copy_t<S> &t, const uint16_t *const *w, uint32_t row0,
    uint32_t n_rows, uint32_t n_in)
{
    int       i;
    uint32_t  r, row, first, chunk;

    chunk = threadIdx.x % S::CHUNKS;
    row = threadIdx.x % (S::WN * 32) / S::CHUNKS;
    first = llm_min(row0, n_rows - 1);

    t.col = chunk * 8;
    t.w_to = threadIdx.x / (S::WN * 32) * S::W_SIZE
             + llm_few_at<S>(row, chunk);

#pragma unroll
    for (i = 0; i <= S::GLU; i++) {
        t.w[i] = (const uint8_t *) (w[i] + (size_t) first * n_in) + chunk * 16;
    }

#pragma unroll
    for (i = 0; i < S::W_COPIES; i++) {
        r = llm_min(row0 + row + i * S::W_STEP % S::ROWS, n_rows - 1);
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
                       t.w[i * S::W_STEP / S::ROWS] + t.w_off[i],
                       t.col < n_in);
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
    int  i;

#pragma unroll
    for (i = 0; i <= S::GLU; i++) {
        t.w[i] += S::ROW;
    }

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


/*
 * Copies x to all stages but one, through registers if it is little.  The first
 * stage then waits for its own copies of w: those of x would be newer than all
 * of the ring's, and a thread waits for its oldest copies first.
 */

template<class S> static __device__ __forceinline__ void
llm_few_begin_x(llm_few_copy_t<S> &t, uint8_t *mem, uint32_t n_in)
{
    int  i, s;

    if constexpr (S::X_FIRST <= LLM_FEW_X_FIRST) {
        uint4  v[S::STAGES - 1][S::X_COPIES];

#pragma unroll
        for (s = 0; s < S::STAGES - 1; s++) {
#pragma unroll
            for (i = 0; i < S::X_COPIES; i++) {
                v[s][i] = make_uint4(0, 0, 0, 0);

                if (t.x_col + s * S::COLS < n_in && (t.x_rows >> i & 1)) {
                    v[s][i] = *(const uint4 *) (t.x + s * S::ROW
                                                + t.x_off[i]);
                }
            }
        }

#pragma unroll
        for (s = 0; s < S::STAGES - 1; s++) {
#pragma unroll
            for (i = 0; i < S::X_COPIES; i++) {
                *(uint4 *) (mem + llm_few_down<S>(t.x_to, i * S::X_STEP))
                    = v[s][i];
            }

            llm_few_next_x<S>(t);
        }

    } else {
#pragma unroll 1
        for (s = 0; s < S::STAGES - 1; s++) {
            llm_few_fetch_x<S>(t, mem, 0, 1, n_in);
            llm_cp_async_commit();
            llm_few_next_x<S>(t);
        }
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
    llm_few_begin_x<S>(t, mem, n_in);

    if (S::XR == 1) {
        *(uint4 *) (mem + S::STAGES * S::SIZE + threadIdx.x * 16) =
            make_uint4(0, 0, 0, 0);
    }
}


/* acc = a warp's rows of the weights, the first of which is row0, by its rows
   of x; n_in is a multiple of 32 */

template<class S, int BF16> static __device__ __forceinline__ void
llm_few_product(uint8_t *mem, const uint16_t *const *w, uint32_t row0,
    uint32_t n_rows, const uint16_t *x, const uint32_t *rows, uint32_t n_in,
    float acc[S::NT][4])
{
    int                i, n, p;
    uint32_t           lane, wm, wn, s, w_at, x_at, zero;
    llm_few_copy_t<S>  t;
    llm_few_pair_t<S>  q[2];

    lane = threadIdx.x % 32;
    wm = threadIdx.x / 32 / S::WN;
    wn = threadIdx.x / 32 % S::WN;

    llm_few_copy_w<S>(t, w, row0, n_rows, n_in);
    llm_few_begin<S>(t, mem, x, rows, n_in);

#pragma unroll
    for (n = 0; n < S::NT; n++) {
#pragma unroll
        for (i = 0; i < 4; i++) {
            acc[n][i] = 0;
        }
    }

    w_at = wm * S::W_SIZE + llm_few_at<S>(lane % 16, lane / 16);
    x_at = S::WM * S::W_SIZE
           + llm_few_at<S>(S::XR == 1 ? 0 : wn * S::NT * 8 + lane % 8,
                           lane / 8);
    zero = S::STAGES * S::SIZE + lane / 8 * 16;

    auto read = [&](llm_few_pair_t<S> &to, int pair) {
        llm_few_read<S>(to, mem, w_at,
                        S::XR == 1 && lane % 8 ? zero : x_at, pair);
    };

    llm_few_wait<S>();
    read(q[0], 0);

    for (s = 0; s < n_in / S::COLS; s++) {
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
                w_at = llm_few_next<S>(w_at, (S::STAGES - 1) * S::SIZE);
                x_at = llm_few_next<S>(x_at, (S::STAGES - 1) * S::SIZE);
                llm_few_wait<S>();
                read(q[0], 0);
            }

            llm_few_mma<S, BF16>(acc, q[p % 2]);
        }
    }

#pragma unroll
    for (p = 0; p < S::PAIRS - 1; p++) {
        if (s * S::COLS + p * 32 < n_in) {
            read(q[0], p);
            llm_few_mma<S, BF16>(acc, q[0]);
        }
    }

    /* a block does not end while copies to its ring are on their way, even
       though those after the last column only write zeros */

    llm_cp_async_wait<0>();
}


template<int WM, int WN, int NT, int XR, int COLS, int STAGES, int BF16>
__global__ void
__launch_bounds__(WM * WN * 32)
llm_k_linear_few(llm_few_t f, const uint16_t *x, uint32_t n_in)
{
    using S = llm_few_shape_t<WM, WN, NT, XR, COLS, STAGES>;

    int       i, m, n;
    float     acc[NT][4];
    uint32_t  lane, warp, row0;

    LLM_SHARED(mem);

    llm_early_start();

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

    for (m = 0; blockIdx.x >= f.end[m]; m++) { /* void */ }

    row0 = ((blockIdx.x - (m ? f.end[m - 1] : 0)) * WM + warp / WN) * 16;

    llm_few_product<S, BF16>(mem, f.w + m, row0, f.o[m].n_rows, x,
                             f.o[m].count, n_in, acc);

#pragma unroll
    for (n = 0; n < NT; n++) {
#pragma unroll
        for (i = 0; i < 4; i++) {
            llm_put(f.o[m], (warp % WN * NT + n) * 8 + lane % 4 * 2 + (i & 1),
                    row0 + lane / 4 + (i & 2 ? 8 : 0), acc[n][i]);
        }
    }
}


/* not inlined: the code for all functions is long */

static __device__ LLM_CALLED float
llm_few_glu(llm_glu_t act, float gate, float up)
{
    llm_act_fn_t  fn = { act, { 0, 0, 0, 0 }, 0, 0 };

    return llm_glu_one(fn, gate, up);
}


/* y = the function of the gate's product, by the other one */

template<int WM, int WN, int NT, int XR, int COLS, int STAGES, int BF16>
__global__ void
__launch_bounds__(WM * WN * 32)
llm_k_linear_glu(llm_few_glu_t g, const uint16_t *x, uint32_t n_in)
{
    using S = llm_few_shape_t<WM, WN, NT, XR, COLS, STAGES, 1>;

    int       i, n;
    float     acc[NT][4];
    uint32_t  lane, warp, row, row0, col;

    LLM_SHARED(mem);

    llm_early_start();

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    row0 = (blockIdx.x * WM + warp / WN) * 8;

    llm_few_product<S, BF16>(mem, g.f.w, row0, g.f.o[0].n_rows, x,
                             g.f.o[0].count, n_in, acc);

    col = row0 + lane / 4;

#pragma unroll
    for (n = 0; n < NT; n++) {
#pragma unroll
        for (i = 0; i < 2; i++) {
            row = (warp % WN * NT + n) * 8 + lane % 4 * 2 + i;

            if (row < *g.f.o[0].count && col < g.f.o[0].n_rows) {
                llm_store(g.y, (size_t) row * g.f.o[0].n_out + col,
                          llm_few_glu(g.act,
                                      llm_put_value(g.f.o[0], col, acc[n][i]),
                                      llm_put_value(g.f.o[1], col,
                                                    acc[n][i + 2])),
                          g.y_is16, BF16);
            }
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


template<int WM, int WN, int NT, int XR, int COLS, int STAGES, int BF16>
static void
llm_few_launch(llm_cuda_t *d, llm_few_glu_t *g, uint32_t n, const uint16_t *x,
    uint32_t n_in)
{
    using S = llm_few_shape_t<WM, WN, NT, XR, COLS, STAGES, 1>;

    (void) n;

    llm_cuda_use_shared<llm_k_linear_glu<WM, WN, NT, XR, COLS, STAGES, BF16>>
        (d, S::SHARED);

    llm_launch_early(llm_cuda_early(d),
        (llm_k_linear_glu<WM, WN, NT, XR, COLS, STAGES, BF16>),
        (g->f.o[0].n_rows + WM * 8 - 1) / (WM * 8), S::THREADS, S::SHARED,
        d->stream, *g, x, n_in);
}


/* are the weights together small?  Small ones get blocks of 16 rows, so that
   every SM has work */

static int
llm_few_small(llm_few_t *f, uint32_t n, uint32_t rows)
{
    return llm_few_blocks(f, n, 1) <= (rows <= 16 ? LLM_FEW_SMALL
                                                  : LLM_FEW_SMALLER);
}


/* up to LLM_FEW_GLU rows; f: llm_few_t or llm_few_glu_t */

template<int BF16, class F> static void
llm_few_16(llm_cuda_t *d, uint32_t rows, int small, F *f, uint32_t n,
    const uint16_t *x, uint32_t n_in)
{

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

    } else {
        if (small) {
            LLM_FEW_LAUNCH(1, 1, 2, 16, 128, 9);

        } else {
            LLM_FEW_LAUNCH(4, 1, 2, 16, 128, 3);
        }
    }
}


template<int BF16> static void
llm_few_rows(llm_cuda_t *d, uint32_t rows, llm_few_t *f, uint32_t n,
    const uint16_t *x, uint32_t n_in)
{
    int  small;

    small = llm_few_small(f, n, rows);

    if (rows <= LLM_FEW_GLU) {
        llm_few_16<BF16>(d, rows, small, f, n, x, n_in);

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


void
llm_linear_few_glu(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    uint32_t n_in, const uint16_t *const w[2], const llm_out_t o[2],
    llm_glu_t act, llm_act_t *y)
{
    int            small;
    llm_few_glu_t  g;

    memset(&g, 0, sizeof(g));
    memcpy(g.f.w, w, 2 * sizeof(w[0]));
    memcpy(g.f.o, o, 2 * sizeof(o[0]));
    g.act = act;
    g.y = y->data;
    g.y_is16 = y->is16;
    small = llm_few_small(&g.f, 2, rows);

    if (d->bf16) {
        llm_few_16<1>(d, rows, small, &g, 2, x, n_in);

    } else {
        llm_few_16<0>(d, rows, small, &g, 2, x, n_in);
    }
}
