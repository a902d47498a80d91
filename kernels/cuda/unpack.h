/*
 * Unpacking in registers: a tile of linear.h becomes the A operands of two
 * instructions, and is multiplied by rows of activations.
 */

#ifndef LLM_CUDA_UNPACK_H
#define LLM_CUDA_UNPACK_H

#include "kernels/cuda/linear.h"


/*
 * The low four nibbles of w as bytes: for class 2 the nibbles themselves, for
 * class 3 their values in the book; a nibble's highest bit chooses the half of
 * the book.
 */

template<int CLS> static __device__ __forceinline__ uint32_t
llm_coded_bytes(const llm_packed_t &p, uint32_t w)
{
    uint32_t  first, second;

    if (CLS == LLM_CLASS_MINS) {
        return (w & 15u) | (w & 0xf0u) << 4 | (w & 0xf00u) << 8
               | (w & 0xf000u) << 12;
    }

    first = __byte_perm(p.book[0], p.book[1], w & 0x7777u);
    second = __byte_perm(p.book[2], p.book[3], w & 0x7777u);

    return __byte_perm(first, second, 0x3210u | (w & 0x8888u) >> 1);
}


/* a lane's quanta of a tile, as unsigned bytes: word i is for registers 2 i % 4
   and the next of instruction i / 2 */

template<int CLS> static __device__ __forceinline__ void
llm_quanta(const llm_packed_t &p, size_t tile, uint32_t lane, uint32_t a[4])
{
    int       i;
    uint2     w;
    uint4     v;
    uint32_t  h;

    if (CLS == 8) {
        v = *(const uint4 *) (p.bytes + tile * 512 + lane * 16);
        a[0] = v.x ^ 0x80808080u;
        a[1] = v.y ^ 0x80808080u;
        a[2] = v.z ^ 0x80808080u;
        a[3] = v.w ^ 0x80808080u;
        return;
    }

    w = *(const uint2 *) (p.bytes + tile * 256 + lane * 8);

    if (CLS == LLM_CLASS_CODED || CLS == LLM_CLASS_MINS) {
        a[0] = llm_coded_bytes<CLS>(p, w.x);
        a[1] = llm_coded_bytes<CLS>(p, w.x >> 16);
        a[2] = llm_coded_bytes<CLS>(p, w.y);
        a[3] = llm_coded_bytes<CLS>(p, w.y >> 16);
        return;
    }

    a[0] = w.x & 0x0f0f0f0fu;
    a[1] = w.x >> 4 & 0x0f0f0f0fu;
    a[2] = w.y & 0x0f0f0f0fu;
    a[3] = w.y >> 4 & 0x0f0f0f0fu;

    if (CLS == 5) {
        h = ((const uint16_t *) p.bits)[tile * 32 + lane];

        /* each of four bits becomes the fifth bit of a byte */

#pragma unroll
        for (i = 0; i < 4; i++) {
            a[i] |= ((h >> 4 * i & 15u) * 0x00204081u & 0x01010101u) << 4;
        }
    }

    if (CLS == 6) {
        h = ((const uint32_t *) p.bits)[tile * 32 + lane];

#pragma unroll
        for (i = 0; i < 4; i++) {
            a[i] |= (h >> 2 * i & 0x03030303u) << 4;
        }
    }
}


/* byte i of w, less zero, as a float: the byte becomes the end of the mantissa
   of 2^23, and 2^23 is subtracted */

static __device__ __forceinline__ float
llm_byte(uint32_t w, int i, float zero)
{
    return __uint_as_float((w >> 8 * i & 0xffu) | 0x4b000000u)
           - (8388608.0f + zero);
}


/* a lane's operands of class 16, which is stored in their order */

static __device__ __forceinline__ void
llm_16_operands(const uint4 *v, uint32_t a[2][4])
{
    int    i;
    uint4  w;

#pragma unroll
    for (i = 0; i < 2; i++) {
        w = v[i];
        a[i][0] = w.x;
        a[i][1] = w.y;
        a[i][2] = w.z;
        a[i][3] = w.w;
    }
}


/* a lane's operands of a tile's two instructions, 16-bit */

template<int CLS> static __device__ __forceinline__ void
llm_unpack(const llm_packed_t &p, size_t tile, uint32_t lane, int bf16,
    uint32_t a[2][4])
{
    int       i, h;
    float     s, m, lo, hi;
    uint32_t  q[4], pair[2], mins[2];

    const float  zero = CLS == 8 || CLS == LLM_CLASS_CODED
                        ? 128.0f : CLS == 6 ? 32.0f : 0.0f;
    const bool   coded = CLS == LLM_CLASS_CODED || CLS == LLM_CLASS_MINS;
    const bool   halves = coded || CLS == 6;

    if (CLS == LLM_CLASS_FP8) {
        llm_fp8_operands(*(const uint4 *) (p.bytes + tile * 512 + lane * 16),
                         bf16, a);
        return;
    }

    if (CLS == LLM_CLASS_16) {
        llm_16_operands((const uint4 *) (p.bytes + tile * 1024 + lane * 32),
                        a);
        return;
    }

    llm_quanta<CLS>(p, tile, lane, q);

    /* the pairs of rows lane / 4 and lane / 4 + 8 */

    pair[0] = p.pairs[tile * LLM_TILE_ROWS + lane / 4];
    pair[1] = p.pairs[tile * LLM_TILE_ROWS + lane / 4 + 8];
    mins[0] = mins[1] = 0;

    if (CLS == LLM_CLASS_MINS) {
        mins[0] = ((const uint32_t *) p.bits)[tile * LLM_TILE_ROWS
                                              + lane / 4];
        mins[1] = ((const uint32_t *) p.bits)[tile * LLM_TILE_ROWS
                                              + lane / 4 + 8];
    }

#pragma unroll
    for (i = 0; i < 4; i++) {
#pragma unroll
        for (h = 0; h < 2; h++) {
            s = llm_h2f((uint16_t) (halves && i >= 2 ? pair[h] >> 16
                                                     : pair[h]));
            s = coded ? s * (1.0f / LLM_CODED_UNIT) : s;
            m = CLS == 8 || halves ? 0.0f
                                   : llm_h2f((uint16_t) (pair[h] >> 16));

            if (CLS == LLM_CLASS_MINS) {
                m = llm_h2f((uint16_t) (i >= 2 ? mins[h] >> 16 : mins[h]));
            }

            lo = __fmaf_rn(s, llm_byte(q[i], 2 * h, zero), m);
            hi = __fmaf_rn(s, llm_byte(q[i], 2 * h + 1, zero), m);
            a[i / 2][2 * (i % 2) + h] = (uint32_t) llm_store16(lo, bf16)
                                 | (uint32_t) llm_store16(hi, bf16) << 16;
        }
    }
}


/* acc += a tile by NT * 8 rows of activations, over its block of 32 columns */

template<int CLS, int NT> static __device__ __forceinline__ void
llm_block_product(const llm_packed_t &p, const uint16_t *x, size_t tile,
    uint32_t block, const uint32_t rows[NT], int bf16, float acc[1][NT][4])
{
    int       n;
    uint4     v;
    uint32_t  lane, a[2][4], b[2];

    lane = threadIdx.x % 32;
    llm_unpack<CLS>(p, tile, lane, bf16, a);

#pragma unroll
    for (n = 0; n < NT; n++) {
        v = *(const uint4 *) (x + ((size_t) rows[n] * p.blocks + block)
                                  * LLM_TILE_COLS + lane % 4 * 8);
        b[0] = v.x;
        b[1] = v.y;

        if (bf16) {
            llm_mma_bf16(acc[0][n], a[0], b);

        } else {
            llm_mma_f16(acc[0][n], a[0], b);
        }

        b[0] = v.z;
        b[1] = v.w;

        if (bf16) {
            llm_mma_bf16(acc[0][n], a[1], b);

        } else {
            llm_mma_f16(acc[0][n], a[1], b);
        }
    }
}

#endif /* LLM_CUDA_UNPACK_H */
