/*
 * Shared by the files of the linear operation: layouts of packed weights and
 * arguments of launches.
 *
 * A packed weight is cut into tiles of 16 rows by 32 columns, the A operands
 * of two m16n8k16: the quanta of each lane are together, so that a warp reads
 * a tile as one run, and rows are padded with zeros to a multiple of 16. Of a
 * lane's 16 quanta, 8 m + 2 r + j belongs to instruction m, register r, half
 * j: row lane / 4 (+ 8 for odd r), column 16 m + 2 (lane % 4) + j (+ 8 for r
 * >= 2).
 *
 *   class   types             bytes a lane           and a row's pair
 *   1       e4m3, see below   16
 *   2       coded, minima     8: nibbles             scales of both halves,
 *                                                    then their minima
 *   3       coded             8: nibbles             scales of both halves
 *   8       Q8_0              16                     scale, 0
 *   4       Q4_0 Q4_1 Q4_K    8: nibbles             scale, minimum
 *   5       Q5_0 Q5_1 Q5_K    8, and 2: fifth bits   scale, minimum
 *   6       Q6_K              8, and 4: two bits     scales of both halves
 *   16      experts alone:    32: 16-bit elements    none
 *           F32 F16 BF16
 *
 * A lane's nibbles are in the order of its quanta for classes 2 and 3, whose
 * scales are LLM_CODED_UNIT times what they are, lest small ones lose bits;
 * those of class 3 go through the type's book.  Class 2 has the minima where
 * others have further bits.  For the other classes the low nibbles of four
 * bytes are registers 0 and 1, the high ones registers 2 and 3.
 *
 * The three planes (bytes, further bits, pairs of f16) follow one another,
 * each indexed [row tile][column block].  A weight is computed from the
 * quantum and the pair and rounded to the device's 16 bits: the same for few
 * rows, which unpack in registers, and for many, which unpack to a piece in
 * memory.
 *
 * F32, F16 and BF16 become class 1 with weights_fp8: the largest element of a
 * row becomes 448, and the row's scale, a float, follows the bytes.  An e4m3
 * is exact in 16 bits; llm_put() multiplies the sum by the scale.  Rows of
 * any number of columns are padded with zeros.
 */

#ifndef LLM_CUDA_LINEAR_H
#define LLM_CUDA_LINEAR_H

#include "kernels/cuda/quants.h"

#define LLM_TILE_ROWS      16
#define LLM_TILE_COLS      32

/* most rows of activations for the kernels for few rows */
#define LLM_FEW_ROWS       64
#define LLM_FEW_ROWS_FP8   16           /* with more, linear_16.cu shares x */

/* most weights of a launch of linear_few.cu, and most tiles of 16 rows of them
   that it takes for small ones: with 16 rows of x, and with more, for which a
   block needs more shared memory */
#define LLM_FEW_WEIGHTS    4
#define LLM_FEW_SMALL      528
#define LLM_FEW_SMALLER    264

/* parts into which the sum over K of a quantised weight is cut: with few rows
   a warp for each */
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
 * In a switch over the class of a packed matrix: calls of f<CLS>(...), of one
 * class, and of all that quantised types have.
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
    const uint32_t   *pairs;            /* [tile][block][16] */
    const float      *scales;           /* [tile][16], of class 1, or NULL */
    uint32_t          book[4];          /* class 3: a byte a code, plus 128 */
} llm_packed_t;

/* the result of a product */
typedef struct {
    const uint32_t   *count;            /* number of rows */
    const float      *scales;           /* of the weight's rows, or NULL */
    const float      *factor;           /* of all of them, or NULL */
    const float      *bias;             /* or NULL */
    void             *y;
    uint32_t          n_out;            /* y's stride */
    uint32_t          n_rows;           /* rows of the weight, or of its
                                           piece */
    int               y_is16;
    int               add;
    int               bf16;
} llm_out_t;

/* the class of a quantised type, or 0 */
int llm_packed_class(uint32_t type);
size_t llm_packed_size(int cls, uint32_t n_out, uint32_t n_in);
void llm_packed_view(llm_packed_t *p, int cls, uint32_t type, uint32_t n_out,
    uint32_t n_in, const uint8_t *base);

/* enqueues the packing of rows in GGUF's layout; class 1: linear_8.cu */
void llm_pack(llm_cuda_t *d, const llm_packed_t *p, uint32_t type,
    const uint8_t *raw, size_t row_size);

/* the same of up to 65535 tiles of rows of a coded type */
void llm_pack_coded(llm_cuda_t *d, const llm_packed_t *p, uint32_t row_tiles,
    uint32_t type, const uint8_t *raw, size_t row_size);
/* x[row] = w[at[row]], or +=, of the step's rows, w of a coded type */
void llm_embed_coded(llm_cuda_t *d, const llm_weight_t *w,
    const uint32_t *at, int add, llm_act_t *x);

void llm_pack_fp8(llm_cuda_t *d, const llm_packed_t *p, uint32_t type,
    uint32_t n_in, const uint8_t *raw, size_t row_size);

/* copies to the device; done when the device's stream is there */
void llm_cuda_upload(llm_cuda_t *d, uint8_t *dst, const uint8_t *src,
    size_t size);

/* unpacks rows [first, first + n), first a multiple of 16, to 16 bits at y */
void llm_unpack_rows(llm_cuda_t *d, const llm_packed_t *p, uint32_t first,
    uint32_t n, uint16_t *y);

/* few rows of x by a packed weight; llm_k_fold() has folded x */
void llm_linear_q(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_packed_t *p, const llm_out_t *out);
/* up to LLM_FEW_ROWS rows of x by n weights of 16-bit rows, n_in a multiple of
   32 */
void llm_linear_few(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    uint32_t n_in, const uint16_t *const *w, const llm_out_t *o, uint32_t n);
/* x by 16-bit rows, n_in a multiple of 32; any number of rows */
void llm_linear_16(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const uint16_t *w, uint32_t n_in, const llm_out_t *out);
/* the same in the order of llm_linear_q() */
void llm_linear_parts(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const uint16_t *w, uint32_t n_in, const llm_out_t *out);
/* the same with a weight of class 1, whose tiles are converted to 16 bits when
   they are read from shared memory */
void llm_linear_parts_fp8(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_packed_t *p, const llm_out_t *out);


/*
 * Folded rows, for llm_block_product(): in each 32 columns those that lane t =
 * 0 .. 3 of a group of four passes to two instructions are put side by side.
 * The column that comes to place i.
 */

static __device__ __forceinline__ uint32_t
llm_fold(uint32_t i)
{
    /* lane t, instruction m, half h of a register, element j */
    return i / 32 * 32 + i % 32 / 8 * 2 + i % 8 / 4 * 16 + i % 4 / 2 * 8
           + i % 2;
}


/* the view of matrix i of a stack, whose matrices are `stride` bytes apart */

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


/* the beginning of part i, in blocks of 32 columns */

static __device__ __forceinline__ uint32_t
llm_k_part(uint32_t blocks, uint32_t i)
{
    return (uint32_t) ((uint64_t) blocks * i / LLM_K_PARTS);
}


/* a lane's 16 bytes of a tile of class 1: two A operands */

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


/* writes one element of the result, once its sum is complete */

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
 * Each warp of a block has sums over its own part of K, for the same 16 rows
 * of weights and N rows of activations: the block gives them to each other in
 * s, of LLM_K_PARTS * 16 * N floats.  acc[n-tile][4] is an mma's D.
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


/* row r of the weights by row c: the warps' sums in the order of the warps */

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
