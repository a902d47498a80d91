/*
 * Shared by the files of the linear operation: layouts of packed weights and
 * arguments of launches.
 *
 * A packed weight is cut into tiles of 16 rows by 32 columns, which are the A
 * operands of two m16n8k16.  Quanta (a weight's integers) of a lane are stored
 * together, so a warp reads a tile from consecutive bytes; rows are padded with
 * zeros to a multiple of 16.  A lane has 16 quanta: number 8 m + 2 r + j is for
 * instruction m, register r, half j, and comes from row lane / 4 (+ 8 for odd
 * r), column 16 m + 2 (lane % 4) + j (+ 8 for r >= 2).
 *
 *   class   types             bytes of a lane        pair of a row
 *   1       e4m3, see below   16
 *   2       coded, minima     8: nibbles             scales of both halves,
 *                                                    then their minima
 *   3       coded             8: nibbles             scales of both halves
 *   8       Q8_0              16                     scale, 0
 *   4       Q4_0 Q4_1 Q4_K    8: nibbles             scale, minimum
 *   5       Q5_0 Q5_1 Q5_K    8, and 2: fifth bits   scale, minimum
 *   6       Q6_K              8, and 4: two bits     scales of both halves
 *   16      experts only:     32: 16-bit elements    none
 *           F32 F16 BF16
 *
 * In classes 2 and 3 a lane's nibbles are in the order of its quanta, and
 * scales are stored times LLM_CODED_UNIT, so that small ones lose no bits;
 * quanta of class 3 are indexes of the type's book (coded.h).  In the other
 * classes the low nibbles of four bytes are for registers 0 and 1, the high
 * nibbles for registers 2 and 3.
 *
 * There are three planes, one after another, each indexed [row tile][column
 * block]: bytes, further bits of quanta (in class 2 minima), and pairs of f16.
 * A weight is computed from the quantum and the pair and rounded to the
 * device's 16-bit type, in the same way for few rows, which unpack in
 * registers, and for many, which unpack a piece to memory.
 *
 * With weights_fp8, F32, F16 and BF16 become class 1: the largest element of a
 * row becomes 448, and the rows' scales, floats, follow the bytes.  An e4m3 is
 * exact in 16 bits; llm_put() multiplies the sum by the scale.  Rows are padded
 * with zeros to a multiple of 32 columns.
 */

#ifndef LLM_CUDA_LINEAR_H
#define LLM_CUDA_LINEAR_H

#include "kernels/cuda/quants.h"

#define LLM_TILE_ROWS      16
#define LLM_TILE_COLS      32

/* most rows of activations of the kernels for few rows */
#define LLM_FEW_ROWS       64
#define LLM_FEW_ROWS_FP8   16           /* with more rows linear_16.cu reads x
                                           less often */

/* most weights of a launch of linear_few.cu; and most tiles of 16 rows that
   these may have together to count as small: with up to 16 rows of x, and with
   more, for which a block needs more shared memory */
#define LLM_FEW_WEIGHTS    4
#define LLM_FEW_SMALL      528
#define LLM_FEW_SMALLER    264

/* parts of the sum over K of a quantised weight; with few rows each part is a
   warp's */
#define LLM_K_PARTS        8

#define LLM_CLASS_FP8      1
#define LLM_CLASS_MINS     2
#define LLM_CLASS_CODED    3
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

#define LLM_CODED_UNIT     128.0f

typedef struct {
    int               cls;              /* 1 to 6, 8, 16 */
    uint32_t          n_out;
    uint32_t          row_tiles;
    uint32_t          blocks;           /* of 32 columns */
    const uint8_t    *bytes;
    const uint8_t    *bits;
    const uint32_t   *pairs;            /* [row tile][block][16] */
    const float      *scales;           /* [row tile][16]; NULL except for
                                           class 1 */
    uint32_t          book[4];          /* class 3: a byte for each code, its
                                           value plus 128 */
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
    uint32_t          n_rows;           /* rows of the weight, or of the piece
                                           of it */
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

/* enqueues the packing of rows in GGUF's layout, of a quantised type */
void llm_pack(llm_cuda_t *d, const llm_packed_t *p, uint32_t type,
    const uint8_t *raw, size_t row_size);

/* the same for up to 65535 row tiles of a coded type */
void llm_pack_coded(llm_cuda_t *d, const llm_packed_t *p, uint32_t row_tiles,
    uint32_t type, const uint8_t *raw, size_t row_size);
/* x[row] = w[at[row]], or +=, for the step's rows; w is of a coded type */
void llm_embed_coded(llm_cuda_t *d, const llm_weight_t *w,
    const uint32_t *at, int add, llm_act_t *x);

/* enqueues the packing to class 1 of rows of F32, F16 or BF16 */
void llm_pack_fp8(llm_cuda_t *d, const llm_packed_t *p, uint32_t type,
    uint32_t n_in, const uint8_t *raw, size_t row_size);

/* enqueues a copy to the device; src may be freed at once */
void llm_cuda_upload(llm_cuda_t *d, uint8_t *dst, const uint8_t *src,
    size_t size);

/* unpacks rows [first, first + n), first a multiple of 16, to 16 bits at y */
void llm_unpack_rows(llm_cuda_t *d, const llm_packed_t *p, uint32_t first,
    uint32_t n, uint16_t *y);

/* few rows of x by a packed weight; x was folded by llm_k_fold() */
void llm_linear_q(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_packed_t *p, const llm_out_t *out);
/* up to LLM_FEW_ROWS rows of x by n 16-bit weights; n_in is a multiple of 32 */
void llm_linear_few(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    uint32_t n_in, const uint16_t *const *w, const llm_out_t *o, uint32_t n);
/* any number of rows of x by a 16-bit weight; n_in is a multiple of 32 */
void llm_linear_16(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const uint16_t *w, uint32_t n_in, const llm_out_t *out);
/* the same, with sums in the order of llm_linear_q() */
void llm_linear_parts(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const uint16_t *w, uint32_t n_in, const llm_out_t *out);
/* the same with a weight of class 1, whose tiles are converted to 16 bits when
   they are read from shared memory */
void llm_linear_parts_fp8(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_packed_t *p, const llm_out_t *out);


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


/* the view of matrix i of several that are `stride` bytes apart */

static __device__ __forceinline__ llm_packed_t
llm_packed_of(const llm_packed_t &first, size_t stride, uint32_t i)
{
    size_t        at;
    llm_packed_t  p = first;

    at = i * stride;
    p.bytes += at;
    p.bits += at;
    p.pairs += at / sizeof(uint32_t);
    p.scales = p.scales ? p.scales + at / sizeof(float) : NULL;

    return p;
}


/* the first of the blocks of 32 columns of part i of K */

static __device__ __forceinline__ uint32_t
llm_k_part(uint32_t blocks, uint32_t i)
{
    return (uint32_t) ((uint64_t) blocks * i / LLM_K_PARTS);
}


/* converts a lane's 16 bytes of a tile of class 1 to two A operands */

static __device__ __forceinline__ void
llm_fp8_operands(uint4 v, int bf16, uint32_t a[2][4])
{
    int       i;
    uint32_t  w[4];

    w[0] = v.x;
    w[1] = v.y;
    w[2] = v.z;
    w[3] = v.w;

#pragma unroll
    for (i = 0; i < 8; i++) {
        a[i / 4][i % 4] = llm_e2x16(w[i / 2] >> 16 * (i % 2) & 0xffff, bf16);
    }
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
    v = o.scales ? __fmul_rn(v, o.scales[col]) : v;
    v = o.factor ? __fmul_rn(v, *o.factor) : v;

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

        llm_put(o, blockIdx.y * N + c, row_tile * LLM_TILE_ROWS + r,
                llm_sum_parts<NT>(s, r, c));
    }
}

#endif /* LLM_CUDA_LINEAR_H */
