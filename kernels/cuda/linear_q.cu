/*
 * Quantised weights: packing, unpacking, and products with few rows, which
 * unpack in registers just before the tensor cores.
 *
 * Invariant: how the sum over K is divided among a block's warps depends only
 * on the weight's shape, and the warps' sums are added in order; linear_16.cu
 * does the same for many rows.
 */

#include "kernels/cuda/unpack.h"


int
llm_packed_class(uint32_t type)
{
    switch (type) {

#define LLM_QUANT(NAME, name, number, block, bytes, pack, cls)               \
    case LLM_TYPE_##NAME:                                                    \
        return cls;
#include "kernels/types.def"

    default:
        return 0;
    }
}


/* bytes of a tile in the first plane, and in the second */

static size_t
llm_packed_bytes(int cls)
{
    return cls == 8 || cls == LLM_CLASS_FP8 ? 512
           : cls == LLM_CLASS_16 ? 1024 : 256;
}


static size_t
llm_packed_bits(int cls)
{
    return cls == 5 || cls == LLM_CLASS_MINS ? 64 : cls == 6 ? 128 : 0;
}


/* the values of a coded type's codes, a byte each, plus 128 */

static void
llm_packed_book(uint32_t type, uint32_t words[4])
{
    int            i;
    const int8_t  *values;

    values = llm_type_codes(type);
    memset(words, 0, 4 * sizeof(uint32_t));

    for (i = 0; values && i < 16; i++) {
        words[i / 4] |= (uint32_t) (values[i] + 128) << i % 4 * 8;
    }
}


void
llm_packed_view(llm_packed_t *p, int cls, uint32_t type, uint32_t n_out,
    uint32_t n_in, const uint8_t *base)
{
    size_t  tiles;

    p->cls = cls;
    p->n_out = n_out;
    p->row_tiles = (n_out + LLM_TILE_ROWS - 1) / LLM_TILE_ROWS;
    p->blocks = (n_in + LLM_TILE_COLS - 1) / LLM_TILE_COLS;

    tiles = (size_t) p->row_tiles * p->blocks;
    p->bytes = base;
    p->bits = base + tiles * llm_packed_bytes(p->cls);
    p->pairs = (const uint32_t *) (p->bits
                                   + tiles * llm_packed_bits(p->cls));
    p->scales = cls == LLM_CLASS_FP8 ? (const float *) p->pairs : NULL;
    llm_packed_book(type, p->book);
}


size_t
llm_packed_size(int cls, uint32_t n_out, uint32_t n_in)
{
    size_t        rows;
    llm_packed_t  p;

    llm_packed_view(&p, cls, LLM_TYPE_F32, n_out, n_in, NULL);
    rows = (size_t) p.row_tiles * LLM_TILE_ROWS;

    return (size_t) ((const uint8_t *) p.pairs - (const uint8_t *) NULL)
           + rows * (cls == LLM_CLASS_FP8 ? sizeof(float)
                     : cls == LLM_CLASS_16 ? 0
                     : p.blocks * sizeof(uint32_t));
}


/* ---- packing ---- */

/* the quantum of element i (unsigned except for Q8_0), its scale and minimum:
   the value is scale * q + min, for Q6_K scale * (q - 32) */

static __device__ uint32_t
llm_quantum(uint32_t type, const uint8_t *row, uint32_t i, float *scale,
    float *min)
{
    float     zero, one;
    uint32_t  q;

    const uint8_t  *b;
    uint32_t        s, m, r;

    switch (type) {

    case LLM_TYPE_Q8_0:
        b = row + i / 32 * LLM_BYTES_Q8_0;
        *scale = llm_h2f(llm_load_u16(b));
        *min = 0;
        return b[2 + i % 32];

    case LLM_TYPE_Q6_K:
        b = row + i / 256 * LLM_BYTES_Q6_K;
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
        b = row + i / 256 * (type == LLM_TYPE_Q4_K ? LLM_BYTES_Q4_K
                                                   : LLM_BYTES_Q5_K);
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
    b = row + i / 32 * (type == LLM_TYPE_Q4_0 ? LLM_BYTES_Q4_0
                        : type == LLM_TYPE_Q4_1 ? LLM_BYTES_Q4_1
                        : type == LLM_TYPE_Q5_0 ? LLM_BYTES_Q5_0
                        : LLM_BYTES_Q5_1);
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


/* a warp packs a tile: see linear.h; v[4 a + j] are the lane's quanta */

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
        for (j = 0; j < 4; j++) {
            row = blockIdx.y * LLM_TILE_ROWS + lane / 4 + (j & 2 ? 8 : 0);
            col = blockIdx.x * LLM_TILE_COLS + (a & 2 ? 16 : 0)
                  + (a & 1 ? 8 : 0) + lane % 4 * 2 + (j & 1);
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

    /* a grid's second dimension is at most 65535 */

    for (at = 0; at < p->row_tiles; at += n) {
        n = llm_min(p->row_tiles - at, 65535u);

        part = *p;
        part.n_out = p->n_out - at * LLM_TILE_ROWS;
        part.bytes += (size_t) at * p->blocks * llm_packed_bytes(p->cls);
        part.bits += (size_t) at * p->blocks * llm_packed_bits(p->cls);
        part.pairs += (size_t) at * p->blocks * LLM_TILE_ROWS;

        if (p->cls == LLM_CLASS_CODED || p->cls == LLM_CLASS_MINS) {
            llm_pack_coded(d, &part, n, type,
                           raw + (size_t) at * LLM_TILE_ROWS * row_size,
                           row_size);
            continue;
        }

        llm_launch(llm_k_pack, dim3(p->blocks, n), 32, 0, d->stream, part,
                   type, raw + (size_t) at * LLM_TILE_ROWS * row_size,
                   row_size);
    }
}


/* ---- unpacking ---- */

/* a warp unpacks a tile to 16-bit rows of blocks * 32 columns */

template<int CLS> __global__ void
llm_k_unpack(llm_packed_t p, uint32_t tile_row, uint16_t *y, int bf16)
{
    size_t     tile;
    uint32_t   i, r, lane, row, col, a[2][4];

    tile = (size_t) (tile_row + blockIdx.y) * p.blocks + blockIdx.x;
    lane = threadIdx.x;
    llm_unpack<CLS>(p, tile, lane, bf16, a);

#pragma unroll
    for (i = 0; i < 2; i++) {
#pragma unroll
        for (r = 0; r < 4; r++) {
            row = blockIdx.y * LLM_TILE_ROWS + lane / 4 + (r & 1 ? 8 : 0);
            col = blockIdx.x * LLM_TILE_COLS + 16 * i + lane % 4 * 2
                  + (r & 2 ? 8 : 0);
            *(uint32_t *) (y + (size_t) row * p.blocks * LLM_TILE_COLS + col)
                = a[i][r];
        }
    }
}


template<int CLS> static void
llm_unpack_class(llm_cuda_t *d, const llm_packed_t *p, dim3 grid,
    uint32_t tile, uint16_t *y)
{
    llm_launch(llm_k_unpack<CLS>, grid, 32, 0, d->stream, *p, tile, y,
               d->bf16);
}


void
llm_unpack_rows(llm_cuda_t *d, const llm_packed_t *p, uint32_t first,
    uint32_t n, uint16_t *y)
{
    dim3      grid;
    uint32_t  tile;

    tile = first / LLM_TILE_ROWS;
    grid = dim3(p->blocks, (n + LLM_TILE_ROWS - 1) / LLM_TILE_ROWS);

    switch (p->cls) {
    LLM_QUANT_CASES(llm_unpack_class, d, p, grid, tile, y)
    }
}


/* ---- products ---- */

/* block (row tile of the weight, tile of NT * 8 rows) */

template<int CLS, int NT> __global__ void
__launch_bounds__(LLM_K_PARTS * 32)
llm_k_linear_q(llm_packed_t p, const uint16_t *x, llm_out_t o)
{
    int       n;
    float     acc[1][NT][4];
    uint32_t  warp, end, b, rows[NT];

    LLM_SHARED(mem);

    llm_zero<1, NT>(acc);
    warp = threadIdx.x / 32;
    end = llm_k_part(p.blocks, warp + 1);

#pragma unroll
    for (n = 0; n < NT; n++) {
        rows[n] = (blockIdx.y * NT + n) * 8 + threadIdx.x % 32 / 4;
    }

#pragma unroll 4
    for (b = llm_k_part(p.blocks, warp); b < end; b++) {
        llm_block_product<CLS, NT>(p, x, (size_t) blockIdx.x * p.blocks + b,
                                   b, rows, o.bf16, acc);
    }

    llm_put_tile<NT>(o, (float *) mem, acc[0], blockIdx.x);
}


template<int CLS, int NT> static void
llm_linear_q_launch(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_packed_t *p, const llm_out_t *o)
{
    size_t  shared;

    shared = (size_t) LLM_K_PARTS * LLM_TILE_ROWS * NT * 8 * sizeof(float);

    llm_launch((llm_k_linear_q<CLS, NT>),
               dim3(p->row_tiles, (rows + NT * 8 - 1) / (NT * 8)),
               LLM_K_PARTS * 32, shared, d->stream, *p, x, *o);
}


template<int CLS> static void
llm_linear_q_class(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_packed_t *p, const llm_out_t *o)
{
    if (rows <= 8) {
        llm_linear_q_launch<CLS, 1>(d, rows, x, p, o);

    } else if (rows <= 16) {
        llm_linear_q_launch<CLS, 2>(d, rows, x, p, o);

    } else {
        llm_linear_q_launch<CLS, 4>(d, rows, x, p, o);
    }
}


void
llm_linear_q(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_packed_t *p, const llm_out_t *o)
{
    switch (p->cls) {
    LLM_CLASS_CASE(LLM_CLASS_FP8, llm_linear_q_class, d, rows, x, p, o)
    LLM_QUANT_CASES(llm_linear_q_class, d, rows, x, p, o)
    }
}
