/*
 * Shared by the files of the linear operation: layouts of packed weights and
 * arguments of launches.
 *
 * A packed weight is cut into tiles of 16 rows by 32 columns, which are the A
 * operands of two m16n8k16, and stored by quads of four tiles side by side: a
 * record holds all of a quad, and records are indexed [row tile][quad].  Rows
 * are padded with zeros to a multiple of 16, columns to a multiple of 128.
 *
 * Of a tile a lane has 16 quanta, a weight's integers: that of instruction m,
 * register r and half j comes from row lane / 4 (+ 8 for odd r), column
 * 16 m + 2 (lane % 4) + j (+ 8 for r >= 2).
 *
 *   class   types             quanta    bits            pairs of a row
 *   1, 7    e4m3, see below   2048
 *   2       coded, minima     1024      256: minima     scales of both halves
 *   3       coded             1024                      scales of both halves
 *   8       Q8_0              2048                      128: scales alone
 *   4       Q4_0 Q4_1 Q4_K    1024                      scale, minimum
 *   5       Q5_0 Q5_1 Q5_K    1024      256: fifth      scale, minimum
 *   6       Q6_K              1024      512: two bits   scales of both halves
 *   16      experts only:     4096
 *           F32 F16 BF16
 *
 * A record is quanta, bits and pairs, in bytes of the table; pairs of f16 are
 * 256 bytes where not said otherwise, indexed [row][tile], as minima are.
 * llm_k_pack() says which bit is where, llm_unpack() how it is read: few
 * instructions make two quanta of a register, each of which is the mantissa of
 * a denormal f16, q 2^-24 or q 2^-20, and one more multiplies and adds.
 *
 * So that this works for all scales, each row has a power of two, which is in
 * its pairs and minima: the largest scale is below 2^15, and llm_put()
 * multiplies the sum by the inverse, the row's scale, a float behind the
 * records.  A weight is computed from the quantum and the pair and rounded once
 * to f16, for any number of rows; where the device computes with bf16, a second
 * time to that.
 *
 * With weights_fp8, F32, F16 and BF16 become class 1: the largest element of a
 * row becomes 448, and the rows' scales follow the records.  An e4m3 is exact
 * in 16 bits.
 *
 * With products in fp8 they become class 7 instead, whose tiles are A operands
 * of m16n8k32: byte j of a lane's register r is from row lane / 4 (+ 8 for odd
 * r), column 4 (lane % 4) + j (+ 16 for r >= 2).
 */

#ifndef LLM_CUDA_LINEAR_H
#define LLM_CUDA_LINEAR_H

#include "kernels/cuda/quants.h"

#define LLM_TILE_ROWS      16
#define LLM_TILE_COLS      32

#define LLM_QUAD_COLS      128

/* most rows of activations of the kernels for few rows, and of those that read
   packed weights: with more rows linear_16.cu reads x less often */
#define LLM_FEW_ROWS       64
#define LLM_FEW_ROWS_Q     16

/* most rows of a gated network's products that are one launch with it */
#define LLM_FEW_GLU        16

/* most weights of a launch for few rows; and most tiles of 16 rows that those
   of linear_few.cu may have together to count as small: with up to 16 rows of
   x, and with more, for which a block needs more shared memory */
#define LLM_FEW_WEIGHTS    4
#define LLM_FEW_SMALL      528
#define LLM_FEW_SMALLER    264

/* parts of the sum over K of a quantised weight; with few rows each part is a
   warp's */
#define LLM_K_PARTS        8

#define LLM_CLASS_FP8      1
#define LLM_CLASS_MINS     2
#define LLM_CLASS_CODED    3
#define LLM_CLASS_E4       7
#define LLM_CLASS_16       16

/* the classes of a coded type's scales (coded.h) */
#define LLM_CLASS_H32      LLM_CLASS_CODED
#define LLM_CLASS_E32      LLM_CLASS_CODED
#define LLM_CLASS_E16      LLM_CLASS_CODED
#define LLM_CLASS_K32      LLM_CLASS_CODED
#define LLM_CLASS_K16      LLM_CLASS_CODED
#define LLM_CLASS_M16      LLM_CLASS_MINS

/*
 * Cases of a switch over a packed matrix's class that call f<CLS>(...): for one
 * class, and for all classes of quantised types.
 */
#define LLM_CLASS_CASE(CLS, f, ...)                                          \
    case CLS:                                                                \
        f<CLS>(__VA_ARGS__);                                                 \
        break;

#define LLM_QUANT_CASES(f, ...)                                              \
    LLM_CLASS_CASE(LLM_CLASS_MINS, f, __VA_ARGS__)                           \
    LLM_CLASS_CASE(LLM_CLASS_CODED, f, __VA_ARGS__)                          \
    LLM_CLASS_CASE(4, f, __VA_ARGS__)                                        \
    LLM_CLASS_CASE(5, f, __VA_ARGS__)                                        \
    LLM_CLASS_CASE(6, f, __VA_ARGS__)                                        \
    default:                                                                 \
        f<8>(__VA_ARGS__);                                                   \
        break;

typedef struct {
    int               cls;              /* 1 to 8, 16 */
    uint32_t          n_out;
    uint32_t          row_tiles;
    uint32_t          quads;            /* of 128 columns */
    const uint8_t    *records;          /* [row tile][quad] */
    const float      *scales;           /* [row tile][16]; NULL for class 16 */
    uint32_t          book[4];          /* class 3: magnitudes, a byte each,
                                           of codes 0 to 7, whose values are
                                           negative (or unused), and of 8 to
                                           15, whose values are not */
} llm_packed_t;

/* the result of a product */
typedef struct {
    const uint32_t   *count;            /* number of rows */
    const float      *scales;           /* one for each row of the weight, or
                                           NULL */
    const float      *factor;           /* one for all rows, or NULL */
    const float      *bias;             /* or NULL */
    void             *y;
    uint32_t          n_out;            /* y's stride */
    uint32_t          n_rows;           /* rows of the weight */
    int               y_is16;
    int               add;
    int               bf16;
} llm_out_t;

/* the class of a quantised type; 0: the type is not quantised */
int llm_packed_class(uint32_t type);
/* bytes of a packed weight, and its view at base */
size_t llm_packed_size(int cls, uint32_t n_out, uint32_t n_in);
void llm_packed_view(llm_packed_t *p, int cls, uint32_t type, uint32_t n_out,
    uint32_t n_in, const uint8_t *base);

/* the code that class 3 has for a code of a coded type with this value: the
   sign is the highest bit.  Of a type's codes with the same lower bits one is
   negative and the other one is not, or both are 0. */
static __device__ __host__ __forceinline__ uint32_t
llm_packed_code(uint32_t code, int value)
{
    return (code & 7) | (value < 0 ? 0u : 8u);
}

/* enqueues the packing of rows in GGUF's layout, of a quantised type */
void llm_pack(llm_cuda_t *d, const llm_packed_t *p, uint32_t type,
    uint32_t n_in, const uint8_t *raw, size_t row_size);

/* the same for a coded type, whose rows of the grid begin with tile `at` */
void llm_pack_coded(llm_cuda_t *d, const llm_packed_t *p, uint32_t at,
    uint32_t row_tiles, uint32_t type, uint32_t n_in, const uint8_t *raw,
    size_t row_size);
/* its rows' scales */
void llm_scale_rows_coded(llm_cuda_t *d, const llm_packed_t *p, uint32_t type,
    uint32_t n_in, const uint8_t *raw, size_t row_size);
/* x[row] = w[at[row]], or +=, for the step's rows; w is of a coded type */
void llm_embed_coded(llm_cuda_t *d, const llm_weight_t *w,
    const uint32_t *at, int add, llm_act_t *x);

/* enqueues the packing to class 1 or 7 of rows of F32, F16 or BF16 */
void llm_pack_fp8(llm_cuda_t *d, const llm_packed_t *p, uint32_t type,
    uint32_t n_in, const uint8_t *raw, size_t row_size);

/* enqueues a copy to the device; src may be freed at once */
void llm_cuda_upload(llm_cuda_t *d, uint8_t *dst, const uint8_t *src,
    size_t size);

/* linear.cu: makes room for x of products with n_in columns */
int llm_cuda_linear_room(llm_cuda_t *d, uint32_t n_in, llm_err_t *err);

/* elements of a row of a 16-bit matrix with n columns */
static inline uint32_t
llm_cuda_stride(uint32_t n)
{
    return (uint32_t) llm_align((size_t) n, LLM_TILE_COLS);
}

/* up to LLM_FEW_ROWS_Q rows of x, n_in columns wide, by n weights of the same
   class; if there are several rows, they were folded by llm_k_fold() */
void llm_linear_q(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    uint32_t n_in, const llm_packed_t *p, const llm_out_t *o, uint32_t n);
/* does llm_linear_q() need folded rows? */
int llm_linear_q_folds(uint32_t rows, uint32_t n_in);
/* up to LLM_FEW_ROWS rows of x by n 16-bit weights; n_in is a multiple of 32 */
void llm_linear_few(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    uint32_t n_in, const uint16_t *const *w, const llm_out_t *o, uint32_t n);
/* up to LLM_FEW_GLU rows of x by 16-bit weights of the same size: y = act(the
   product with w[0]) times that with w[1]; of o, y is not used */
void llm_linear_few_glu(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    uint32_t n_in, const uint16_t *const w[2], const llm_out_t o[2],
    llm_glu_t act, llm_act_t *y);
/* any number of rows of x by a 16-bit weight; n_in is a multiple of 32 */
void llm_linear_16(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const uint16_t *w, uint32_t n_in, const llm_out_t *out);
/* the same by a packed weight, with sums in the order of llm_linear_q() */
void llm_linear_packed(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_packed_t *p, uint32_t n_in, const llm_out_t *out);
/* both on a GPU with wgmma, for more than LLM_FEW_ROWS rows */
void llm_linear_wgmma(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const uint16_t *w, uint32_t n_in, const llm_out_t *out);
void llm_linear_packed_wgmma(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_packed_t *p, uint32_t n_in, const llm_out_t *out);


/*
 * Products in fp8 (linear_fp8.cu) of any number of rows.  x8: what
 * llm_fp8_rows() makes of x: rows of e4m3, padded with zeros to whole quads,
 * and behind `rows` of them a scale for each, a float.  p: n weights of class
 * 7, n_in columns wide, at most LLM_FEW_WEIGHTS.
 */
size_t llm_fp8_size(uint32_t rows, uint32_t n_in);
void llm_fp8_rows(llm_cuda_t *d, llm_rows_t which, const uint16_t *x,
    uint32_t n_in, uint8_t *x8);
void llm_linear_fp8(llm_cuda_t *d, uint32_t rows, const uint8_t *x8,
    const llm_packed_t *p, const llm_out_t *o, uint32_t n);


/*
 * Folded rows, for llm_block_product(): in each 32 columns, the eight that lane
 * t = 0 .. 3 of a group of four passes to two instructions follow one another.
 * Returns the column that is stored at place i.
 */

static __device__ __forceinline__ uint32_t
llm_fold(uint32_t i)
{
    /* lane t, instruction m, half h of a register, element j */
    return i / 32 * 32 + i % 32 / 8 * 2 + i % 8 / 4 * 16 + i % 4 / 2 * 8
           + i % 2;
}


/* bytes of a record's parts, by class */

static constexpr __device__ __host__ __forceinline__ uint32_t
llm_quanta_bytes(int cls)
{
    return cls == LLM_CLASS_16 ? 4096
           : cls == 8 || cls == LLM_CLASS_FP8 || cls == LLM_CLASS_E4 ? 2048
           : 1024;
}


static constexpr __device__ __host__ __forceinline__ uint32_t
llm_bits_bytes(int cls)
{
    return cls == 6 ? 512 : cls == 5 || cls == LLM_CLASS_MINS ? 256 : 0;
}


static constexpr __device__ __host__ __forceinline__ uint32_t
llm_record_bytes(int cls)
{
    return llm_quanta_bytes(cls) + llm_bits_bytes(cls)
           + (cls == LLM_CLASS_16 || cls == LLM_CLASS_FP8
              || cls == LLM_CLASS_E4 ? 0 : cls == 8 ? 128 : 256);
}


/* the view of matrix i of several that are `stride` bytes apart */

static __device__ __forceinline__ llm_packed_t
llm_packed_of(const llm_packed_t &first, size_t stride, uint32_t i)
{
    size_t        at;
    llm_packed_t  p = first;

    at = i * stride;
    p.records += at;
    p.scales = p.scales ? p.scales + at / sizeof(float) : NULL;

    return p;
}


/* the first quad of part i of K */

static __device__ __forceinline__ uint32_t
llm_k_part(uint32_t quads, uint32_t i)
{
    return (uint32_t) ((uint64_t) quads * i / LLM_K_PARTS);
}


/* an element's sum v with scale and factor */

static __device__ __forceinline__ float
llm_put_scaled(const llm_out_t &o, uint32_t col, float v)
{
    v = o.scales ? __fmul_rn(v, o.scales[col]) : v;

    return o.factor ? __fmul_rn(v, *o.factor) : v;
}


/* the element that llm_put() writes as a float, if it does not add */

static __device__ __forceinline__ float
llm_put_value(const llm_out_t &o, uint32_t col, float v)
{
    v = llm_put_scaled(o, col, v);

    return o.bias ? v + o.bias[col] : v;
}


/* writes an element of the result, given its complete sum v; y[row][col] */

static __device__ __forceinline__ void
llm_put(const llm_out_t &o, uint32_t row, uint32_t col, float v)
{
    size_t     i;
    float     *y32;
    uint16_t  *y16;

    if (row >= *o.count || col >= o.n_rows) {
        return;
    }

    i = (size_t) row * o.n_out + col;
    v = llm_put_scaled(o, col, v);

    if (o.y_is16) {
        y16 = (uint16_t *) o.y + i;
        v = o.add ? llm_load16(y16, o.bf16) + v : v;
        *y16 = llm_store16(o.bias ? v + o.bias[col] : v, o.bf16);

    } else {
        y32 = (float *) o.y + i;
        v = o.add ? *y32 + v : v;
        *y32 = o.bias ? v + o.bias[col] : v;
    }
}


/*
 * The end of a block in which each of WARPS warps has 16 rows of the weight, from
 * wrow on, by N * 8 rows of x, from row0 on: sum[n][4], the D of N mma.  Writes
 * what llm_put() does, through shared memory, llm_put_bytes() from mem on, where
 * nothing is needed any more: so a warp writes rows of y, whose columns are the
 * same for all of them, and many loads of what is added to are under way at once.
 */

static constexpr __device__ __host__ __forceinline__ uint32_t
llm_put_bytes(uint32_t warps, uint32_t n)
{
    /* the lanes of an mma's D are in different banks */
    return n * 8 * (warps * LLM_TILE_ROWS + 4) * (uint32_t) sizeof(float);
}


template<int N, int WARPS, int IS16> static __device__ __forceinline__ void
llm_put_rows(const llm_out_t &o, const float *s, uint32_t row0, uint32_t rows,
    uint32_t wrow)
{
    enum { COLS = WARPS * LLM_TILE_ROWS, EACH = COLS / 32,
           EVERY = N * 8 / WARPS, AHEAD = EVERY < 4 ? EVERY : 4 };

    int       i, c, ok[EACH];
    float     v, factor, scale[EACH], bias[EACH], old[AHEAD][EACH];
    size_t    at;
    uint32_t  row, col;

    col = threadIdx.x % 32;
    s += col;
    col += wrow;
    factor = o.factor ? *o.factor : 1.0f;

#pragma unroll
    for (c = 0; c < EACH; c++) {
        ok[c] = col + c * 32 < o.n_rows;
        scale[c] = ok[c] && o.scales ? o.scales[col + c * 32] : 1.0f;
        bias[c] = ok[c] && o.bias ? o.bias[col + c * 32] : -0.0f;
    }

    rows = llm_min(rows - row0, (uint32_t) N * 8);

#pragma unroll 1
    for (row = threadIdx.x / 32 * AHEAD; row < rows; row += WARPS * AHEAD) {
        at = (size_t) (row0 + row) * o.n_out + col;

#pragma unroll
        for (i = 0; i < AHEAD; i++) {
#pragma unroll
            for (c = 0; c < EACH; c++) {
                old[i][c] = o.add && ok[c] && row + i < rows
                            ? llm_load(o.y, at + i * o.n_out + c * 32, IS16,
                                       o.bf16) : 0.0f;
            }
        }

#pragma unroll
        for (i = 0; i < AHEAD; i++) {
#pragma unroll
            for (c = 0; c < EACH; c++) {
                v = s[(row + i) * (COLS + 4) + c * 32];
                v = __fmul_rn(__fmul_rn(v, scale[c]), factor);
                v = (o.add ? old[i][c] + v : v) + bias[c];

                if (ok[c] && row + i < rows) {
                    llm_store(o.y, at + i * o.n_out + c * 32, v, IS16,
                              o.bf16);
                }
            }
        }
    }
}


template<int N, int WARPS> static __device__ __forceinline__ void
llm_put_block(const llm_out_t &o, uint8_t *mem, uint32_t row0, uint32_t rows,
    uint32_t wrow, const float sum[N][4])
{
    int       n, i;
    float    *s;
    uint32_t  lane;

    enum { STRIDE = WARPS * LLM_TILE_ROWS + 4 };

    lane = threadIdx.x % 32;
    s = (float *) mem + lane % 4 * 2 * STRIDE
        + threadIdx.x / 32 * LLM_TILE_ROWS + lane / 4;

    __syncthreads();

#pragma unroll
    for (n = 0; n < N; n++) {
#pragma unroll
        for (i = 0; i < 4; i++) {
            s[(n * 8 + (i & 1)) * STRIDE + (i & 2 ? 8 : 0)] = sum[n][i];
        }
    }

    __syncthreads();

    if (o.y_is16) {
        llm_put_rows<N, WARPS, 1>(o, (const float *) mem, row0, rows, wrow);

    } else {
        llm_put_rows<N, WARPS, 0>(o, (const float *) mem, row0, rows, wrow);
    }
}


/*
 * Each warp of a block has sums over its own part of K, for the same 16 rows of
 * a weight and N rows of activations: acc[n-tile][4], an mma's D.  Writes them
 * to shared memory s, of LLM_K_PARTS * 16 * N floats, and waits for all warps.
 */

template<int NT> static __device__ __forceinline__ void
llm_share_parts(float *s, const float acc[NT][4])
{
    int       i, n;
    uint32_t  lane, warp, r, c;

    enum { N = NT * 8 };

    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;

#pragma unroll
    for (n = 0; n < NT; n++) {
#pragma unroll
        for (i = 0; i < 4; i++) {
            r = lane / 4 + (i & 2 ? 8 : 0);
            c = (uint32_t) n * 8 + lane % 4 * 2 + (i & 1);
            s[(warp * LLM_TILE_ROWS + r) * N + c] = acc[n][i];
        }
    }

    __syncthreads();
}


/* row r of the weight by row c of x: adds up the warps' sums in their order */

template<int NT> static __device__ __forceinline__ float
llm_sum_parts(const float *s, uint32_t r, uint32_t c)
{
    int    w;
    float  sum;

    for (sum = 0, w = 0; w < LLM_K_PARTS; w++) {
        sum += s[((uint32_t) w * LLM_TILE_ROWS + r) * NT * 8 + c];
    }

    return sum;
}


template<int NT> static __device__ __forceinline__ void
llm_put_tile(const llm_out_t &o, float *s, const float acc[NT][4],
    uint32_t row_tile)
{
    uint32_t  i, r, c;

    enum { N = NT * 8 };

    llm_share_parts<NT>(s, acc);

    /* neighbouring threads write neighbouring columns of the result */

    for (i = threadIdx.x; i < LLM_TILE_ROWS * N; i += LLM_K_PARTS * 32) {
        r = i % LLM_TILE_ROWS;
        c = i / LLM_TILE_ROWS;

        llm_put(o, c, row_tile * LLM_TILE_ROWS + r,
                llm_sum_parts<NT>(s, r, c));
    }
}

#endif /* LLM_CUDA_LINEAR_H */
