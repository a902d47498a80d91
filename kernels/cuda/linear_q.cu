/*
 * Products of quantised weights with few rows: the activations are int8 with
 * a scale for each block of 32, the products of a block are exact in int32
 * on tensor cores, blocks are summed in float32.
 *
 * Invariant: the sum over K is cut among the warps of a block by the
 * weight's shape alone and added in the order of the warps.
 */

#include "kernels/cuda/linear.h"


int
llm_packed_class(uint32_t type)
{
    switch (type) {

    case LLM_TYPE_Q8_0:
        return 8;

    case LLM_TYPE_Q4_0:
    case LLM_TYPE_Q4_1:
    case LLM_TYPE_Q4_K:
        return 4;

    case LLM_TYPE_Q5_0:
    case LLM_TYPE_Q5_1:
    case LLM_TYPE_Q5_K:
        return 5;

    case LLM_TYPE_Q6_K:
        return 6;

    default:
        return 0;
    }
}


/* bytes of a tile in the first two planes */

static size_t
llm_packed_bytes(int cls)
{
    return cls == 8 ? 512 : 256;
}


static size_t
llm_packed_bits(int cls)
{
    return cls == 5 ? 64 : cls == 6 ? 128 : 0;
}


void
llm_packed_view(llm_packed_t *p, uint32_t type, uint32_t n_out,
    uint32_t n_in, const uint8_t *base)
{
    size_t  tiles;

    p->cls = llm_packed_class(type);
    p->n_out = n_out;
    p->row_tiles = (n_out + LLM_TILE_ROWS - 1) / LLM_TILE_ROWS;
    p->blocks = n_in / LLM_TILE_COLS;

    tiles = (size_t) p->row_tiles * p->blocks;
    p->bytes = base;
    p->bits = base + tiles * llm_packed_bytes(p->cls);
    p->pairs = (const uint32_t *) (p->bits
                                   + tiles * llm_packed_bits(p->cls));
}


size_t
llm_packed_size(uint32_t type, uint32_t n_out, uint32_t n_in)
{
    llm_packed_t  p;

    llm_packed_view(&p, type, n_out, n_in, NULL);

    return (size_t) ((const uint8_t *) p.pairs - (const uint8_t *) NULL)
           + (size_t) p.row_tiles * p.blocks * LLM_TILE_ROWS
             * sizeof(uint32_t);
}


/* ---- packing ---- */

/* the quantum of element i (unsigned, but Q8_0's), its scale and minimum */

static __device__ uint32_t
llm_quantum(uint32_t type, const uint8_t *row, uint32_t i, float *scale,
    float *min)
{
    float     zero, one;
    uint32_t  q;

    /* the value is scale * q + min; both are values of the block at hand,
       found by asking what the block's format would make of them */

    const uint8_t  *b;
    uint32_t        s, m, r;

    switch (type) {

    case LLM_TYPE_Q8_0:
        b = row + i / 32 * 34;
        *scale = llm_h2f(llm_load_u16(b));
        *min = 0;
        return b[2 + i % 32];

    case LLM_TYPE_Q6_K:
        b = row + i / 256 * 210;
        r = i % 256;
        s = r % 128 / 32;
        q = b[r / 128 * 64 + (s & 1) * 32 + r % 32];
        q = s < 2 ? q & 15 : q >> 4;
        q |= ((uint32_t) b[128 + r / 128 * 32 + r % 32] >> 2 * s & 3) << 4;
        *scale = llm_h2f(llm_load_u16(b + 208))
                 * (float) (int8_t) b[192 + r / 16];
        *min = 0;
        return q;

    case LLM_TYPE_Q4_K:
    case LLM_TYPE_Q5_K:
        b = row + i / 256 * (type == LLM_TYPE_Q4_K ? 144 : 176);
        r = i % 256;
        llm_k_scale(b + 4, r / 32, &s, &m);
        *scale = llm_h2f(llm_load_u16(b)) * (float) s;
        *min = -llm_h2f(llm_load_u16(b + 2)) * (float) m;

        q = b[(type == LLM_TYPE_Q4_K ? 16 : 48) + r / 64 * 32 + r % 32];
        q = r / 32 & 1 ? q >> 4 : q & 15;

        if (type == LLM_TYPE_Q5_K) {
            q |= ((uint32_t) b[16 + r % 32] >> r / 32 & 1) << 4;
        }

        return q;

    default:
        break;
    }

    /* blocks of 32: Q4_0, Q4_1, Q5_0, Q5_1 */

    zero = 0;
    b = row + i / 32 * (type == LLM_TYPE_Q4_0 ? 18
                        : type == LLM_TYPE_Q4_1 ? 20
                        : type == LLM_TYPE_Q5_0 ? 22 : 24);
    one = llm_h2f(llm_load_u16(b));

    switch (type) {
    case LLM_TYPE_Q4_0: zero = -8.0f * one; b += 2; break;
    case LLM_TYPE_Q5_0: zero = -16.0f * one; b += 2; break;
    default: zero = llm_h2f(llm_load_u16(b + 2)); b += 4; break;
    }

    *scale = one;
    *min = zero;
    q = 0;

    if (type == LLM_TYPE_Q5_0 || type == LLM_TYPE_Q5_1) {
        q = ((uint32_t) b[i % 32 / 8] >> i % 8 & 1) << 4;
        b += 4;
    }

    return q | (i % 32 < 16 ? b[i % 16] & 15u : (uint32_t) b[i % 16] >> 4);
}


/*
 * A warp packs a tile.  Of the lane's 16 values, v[4 a + j] is byte j of the
 * operand's register a: row lane / 4 (+ 8 for odd a), column
 * 4 (lane % 4) + j (+ 16 for a >= 2).
 */

__global__ void
llm_k_pack(llm_packed_t p, uint32_t type, const uint8_t *raw,
    size_t row_size)
{
    float      scale, min, second;
    size_t     tile;
    uint8_t   *bytes;
    uint32_t   a, j, lane, row, col, v[16], *pairs;

    tile = (size_t) blockIdx.y * p.blocks + blockIdx.x;
    lane = threadIdx.x;

    for (a = 0; a < 4; a++) {
        row = blockIdx.y * LLM_TILE_ROWS + lane / 4 + (a & 1 ? 8 : 0);

        for (j = 0; j < 4; j++) {
            col = blockIdx.x * LLM_TILE_COLS + lane % 4 * 4 + j
                  + (a & 2 ? 16 : 0);
            v[4 * a + j] = row < p.n_out
                           ? llm_quantum(type, raw + row * row_size, col,
                                         &scale, &min)
                           : 0;
        }
    }

    if (p.cls == 8) {
        bytes = (uint8_t *) p.bytes + tile * 512 + lane * 16;

        for (j = 0; j < 16; j++) {
            bytes[j] = (uint8_t) v[j];
        }

    } else {
        bytes = (uint8_t *) p.bytes + tile * 256 + lane * 8;

        for (j = 0; j < 4; j++) {
            bytes[j] = (uint8_t) ((v[j] & 15) | (v[4 + j] & 15) << 4);
            bytes[4 + j] = (uint8_t) ((v[8 + j] & 15)
                                      | (v[12 + j] & 15) << 4);
        }
    }

    if (p.cls == 5) {
        for (a = 0, j = 0; j < 16; j++) {
            a |= (v[j] >> 4) << j;
        }

        ((uint16_t *) p.bits)[tile * 32 + lane] = (uint16_t) a;
    }

    if (p.cls == 6) {
        bytes = (uint8_t *) p.bits + tile * 128 + lane * 4;

        for (j = 0; j < 4; j++) {
            bytes[j] = (uint8_t) (v[j] >> 4 | (v[4 + j] >> 4) << 2
                                  | (v[8 + j] >> 4) << 4
                                  | (v[12 + j] >> 4) << 6);
        }
    }

    if (lane < LLM_TILE_ROWS) {
        row = blockIdx.y * LLM_TILE_ROWS + lane;
        col = blockIdx.x * LLM_TILE_COLS;
        scale = 0;
        second = 0;

        if (row < p.n_out) {
            (void) llm_quantum(type, raw + row * row_size, col, &scale,
                               &second);

            if (p.cls == 6) {
                (void) llm_quantum(type, raw + row * row_size, col + 16,
                                   &second, &min);
            }
        }

        pairs = (uint32_t *) p.pairs + tile * LLM_TILE_ROWS + lane;
        *pairs = (uint32_t) llm_store16(scale, 0)
                 | (uint32_t) llm_store16(second, 0) << 16;
    }
}


void
llm_pack(llm_cuda_t *d, const llm_packed_t *p, uint32_t type,
    const uint8_t *raw, size_t row_size)
{
    uint32_t      at, n;
    llm_packed_t  part;

    /* a grid's second dimension ends at 65535 */

    for (at = 0; at < p->row_tiles; at += n) {
        n = llm_min(p->row_tiles - at, 65535u);

        part = *p;
        part.n_out = p->n_out - at * LLM_TILE_ROWS;
        part.bytes += (size_t) at * p->blocks * llm_packed_bytes(p->cls);
        part.bits += (size_t) at * p->blocks * llm_packed_bits(p->cls);
        part.pairs += (size_t) at * p->blocks * LLM_TILE_ROWS;

        llm_launch(llm_k_pack, dim3(p->blocks, n), 32, 0, d->stream, part,
                   type, raw + (size_t) at * LLM_TILE_ROWS * row_size,
                   row_size);
    }
}


/* ---- products ---- */

/* the A operand of tile `tile`, as the packing kernel left it */

template<int CLS> static __device__ __forceinline__ void
llm_unpack(const llm_packed_t &p, size_t tile, uint32_t lane, uint32_t a[4])
{
    int       i;
    uint2     w;
    uint4     v;
    uint32_t  h;

    if (CLS == 8) {
        v = *(const uint4 *) (p.bytes + tile * 512 + lane * 16);
        a[0] = v.x;
        a[1] = v.y;
        a[2] = v.z;
        a[3] = v.w;
        return;
    }

    w = *(const uint2 *) (p.bytes + tile * 256 + lane * 8);
    a[0] = w.x & 0x0f0f0f0fu;
    a[1] = w.x >> 4 & 0x0f0f0f0fu;
    a[2] = w.y & 0x0f0f0f0fu;
    a[3] = w.y >> 4 & 0x0f0f0f0fu;

    if (CLS == 5) {
        h = ((const uint16_t *) p.bits)[tile * 32 + lane];

        /* four bits to the fifth bit of four bytes */

#pragma unroll
        for (i = 0; i < 4; i++) {
            a[i] |= ((h >> 4 * i & 15u) * 0x00204081u & 0x01010101u) << 4;
        }
    }

    if (CLS == 6) {
        h = ((const uint32_t *) p.bits)[tile * 32 + lane];

        /* two bits on top, then 32 is subtracted from each byte: bit 5 is
           turned over and copied into the sign */

#pragma unroll
        for (i = 0; i < 4; i++) {
            a[i] |= (h >> 2 * i & 0x03030303u) << 4;
            a[i] ^= 0x20202020u;
            a[i] |= (a[i] & 0x20202020u) * 6;
        }
    }
}


/* the activations of one linear operation, int8 */
typedef struct {
    const uint2      *q;                /* [rows][blocks][4 lanes] 8 bytes */
    const float      *scale;            /* [rows][blocks] */
    const float      *sum;              /* [rows][blocks] scale * sum of q */
} llm_q8_t;


/* acc += one block of 32 columns: a tile by NT * 8 rows of activations */

template<int CLS, int NT> static __device__ __forceinline__ void
llm_block_product(const llm_packed_t &p, const llm_q8_t &x, uint32_t tile_row,
    uint32_t block, uint32_t row0, float acc[NT][4])
{
    int        i, n;
    float      s[2], m[2], xs, xm;
    uint2      q;
    size_t     tile, at;
    int32_t    lo[4], hi[4];
    uint32_t   lane, a[4], none[4], b[2], pair;

    lane = threadIdx.x % 32;
    tile = (size_t) tile_row * p.blocks + block;
    llm_unpack<CLS>(p, tile, lane, a);

#pragma unroll
    for (i = 0; i < 2; i++) {
        pair = p.pairs[tile * LLM_TILE_ROWS + lane / 4 + 8 * i];
        s[i] = llm_h2f((uint16_t) pair);
        m[i] = CLS == 8 ? 0.0f : llm_h2f((uint16_t) (pair >> 16));
    }

#pragma unroll
    for (n = 0; n < NT; n++) {
        at = (size_t) (row0 + n * 8 + lane / 4) * p.blocks + block;
        q = x.q[at * 4 + lane % 4];
        b[0] = q.x;
        b[1] = q.y;

#pragma unroll
        for (i = 0; i < 4; i++) {
            lo[i] = 0;
            hi[i] = 0;
        }

        if (CLS == 6) {
            /* two halves of 16 columns with a scale each */

            none[0] = a[0];
            none[1] = a[1];
            none[2] = 0;
            none[3] = 0;
            llm_mma_s8(lo, none, b);
            none[0] = 0;
            none[1] = 0;
            none[2] = a[2];
            none[3] = a[3];
            llm_mma_s8(hi, none, b);

        } else {
            llm_mma_s8(lo, a, b);
        }

#pragma unroll
        for (i = 0; i < 4; i++) {
            at = (size_t) (row0 + n * 8 + lane % 4 * 2 + (i & 1)) * p.blocks
                 + block;
            xs = x.scale[at];

            acc[n][i] = __fmaf_rn((float) lo[i], s[i / 2] * xs, acc[n][i]);

            if (CLS == 6) {
                acc[n][i] = __fmaf_rn((float) hi[i], m[i / 2] * xs,
                                      acc[n][i]);

            } else if (CLS != 8) {
                xm = x.sum[at];
                acc[n][i] = __fmaf_rn(m[i / 2], xm, acc[n][i]);
            }
        }
    }
}


/* block (row tile of the weight, tile of NT * 8 rows) */

template<int CLS, int NT> __global__ void
__launch_bounds__(LLM_LINEAR_WARPS * 32)
llm_k_linear_q(llm_packed_t p, llm_q8_t x, llm_out_t o)
{
    int        i, n;
    float      acc[NT][4];
    uint32_t   warp, first, end, b;

    LLM_SHARED(mem);

#pragma unroll
    for (n = 0; n < NT; n++) {
#pragma unroll
        for (i = 0; i < 4; i++) {
            acc[n][i] = 0;
        }
    }

    warp = threadIdx.x / 32;
    first = (uint32_t) ((uint64_t) p.blocks * warp / LLM_LINEAR_WARPS);
    end = (uint32_t) ((uint64_t) p.blocks * (warp + 1) / LLM_LINEAR_WARPS);

#pragma unroll 4
    for (b = first; b < end; b++) {
        llm_block_product<CLS, NT>(p, x, blockIdx.x, b, blockIdx.y * NT * 8,
                                   acc);
    }

    llm_put_tile<NT>(o, (float *) mem, acc, blockIdx.x);
}


template<int CLS, int NT> static void
llm_linear_q_launch(llm_cuda_t *d, uint32_t rows, const llm_packed_t *p,
    const llm_out_t *o)
{
    size_t    shared;
    llm_q8_t  x;

    x.q = (const uint2 *) d->q8;
    x.scale = d->q8_scale;
    x.sum = d->q8_sum;
    shared = (size_t) LLM_LINEAR_WARPS * LLM_TILE_ROWS * NT * 8
             * sizeof(float);

    llm_launch((llm_k_linear_q<CLS, NT>),
               dim3(p->row_tiles, (rows + NT * 8 - 1) / (NT * 8)),
               LLM_LINEAR_WARPS * 32, shared, d->stream, *p, x, *o);
}


template<int CLS> static void
llm_linear_q_class(llm_cuda_t *d, uint32_t rows, const llm_packed_t *p,
    const llm_out_t *o)
{
    if (rows <= 8) {
        llm_linear_q_launch<CLS, 1>(d, rows, p, o);

    } else if (rows <= 16) {
        llm_linear_q_launch<CLS, 2>(d, rows, p, o);

    } else {
        llm_linear_q_launch<CLS, 4>(d, rows, p, o);
    }
}


void
llm_linear_q(llm_cuda_t *d, uint32_t rows, const llm_packed_t *p,
    const llm_out_t *o)
{
    switch (p->cls) {

    case 4:
        llm_linear_q_class<4>(d, rows, p, o);
        break;

    case 5:
        llm_linear_q_class<5>(d, rows, p, o);
        break;

    case 6:
        llm_linear_q_class<6>(d, rows, p, o);
        break;

    default:
        llm_linear_q_class<8>(d, rows, p, o);
        break;
    }
}
