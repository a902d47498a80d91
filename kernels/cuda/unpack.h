/*
 * Unpacking in registers: a lane's part of a record of linear.h becomes the A
 * operands of the tiles' instructions, and is multiplied by rows of
 * activations.
 */

#ifndef LLM_CUDA_UNPACK_H
#define LLM_CUDA_UNPACK_H

#include "kernels/cuda/linear.h"


/* a lane's part of a record: what it reads, 16 bytes at a time */

template<int CLS> struct llm_lane_t {
    enum { QUANTA = llm_quanta_bytes(CLS) / 512,
           BITS = CLS == 5 || CLS == 6 ? 1 : CLS == LLM_CLASS_MINS ? 2 : 0,
           PAIRS = CLS == LLM_CLASS_16 || CLS == LLM_CLASS_FP8 ? 0 : 2 };

    uint4  quanta[QUANTA];
    uint4  bits[BITS > 0 ? BITS : 1];       /* minima: of rows lane / 4 and
                                           lane / 4 + 8, as pairs */
    uint4  pairs[PAIRS > 0 ? PAIRS : 1];
};


static __device__ __forceinline__ uint32_t
llm_word(const uint4 &v, int i)
{
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}


/* loads what tile `tile` is the last to need */

template<int CLS> static __device__ __forceinline__ void
llm_lane_load_part(const uint8_t *record, uint32_t lane, int tile,
    llm_lane_t<CLS> &l)
{
    int             i;
    uint2           two;
    const uint8_t  *bits, *pairs;

    bits = record + llm_quanta_bytes(CLS);
    pairs = bits + llm_bits_bytes(CLS);

#pragma unroll
    for (i = 0; i < l.QUANTA; i++) {
        if ((4 * i + 3) / l.QUANTA == tile) {
            l.quanta[i] = *(const uint4 *) (record + i * 512 + lane * 16);
        }
    }

    if (tile < 3) {
        return;
    }

    if (CLS == 6) {
        l.bits[0] = *(const uint4 *) (bits + lane * 16);
    }

    if (CLS == 5) {
        two = *(const uint2 *) (bits + lane * 8);
        l.bits[0] = make_uint4(two.x, two.y, 0, 0);
    }

#pragma unroll
    for (i = 0; i < l.PAIRS; i++) {
        if (CLS == LLM_CLASS_MINS) {
            l.bits[i] = *(const uint4 *) (bits + i * 128 + lane / 4 * 16);
        }

        if (CLS == 8) {
            two = *(const uint2 *) (pairs + i * 64 + lane / 4 * 8);
            l.pairs[i] = make_uint4(two.x, two.y, 0, 0);

        } else {
            l.pairs[i] = *(const uint4 *) (pairs + i * 128 + lane / 4 * 16);
        }
    }
}


template<int CLS> static __device__ __forceinline__ void
llm_lane_load(const uint8_t *record, uint32_t lane, llm_lane_t<CLS> &l)
{
    int  tile;

#pragma unroll
    for (tile = 0; tile < 4; tile++) {
        llm_lane_load_part<CLS>(record, lane, tile, l);
    }
}


/* where the further bits of the lower half of register r (0 or 1) of
   instruction m of a tile are in their word: shifted right, round the end, by
   this, they are above a quantum of four bits.  Class 5: a word for two tiles,
   class 6: for one. */

template<int CLS> static __device__ __forceinline__ uint32_t
llm_bits_turn(int tile, int m, int r)
{
    return CLS == 6 ? (uint32_t) (m * 8 + r * 2)
                    : (uint32_t) (m * 8 + tile % 2 * 2 + r);
}


/*
 * Class 3: the values of a word's eight codes plus 128, as pairs of denormal
 * f16.  Four codes are the selector of two permutations, one of the magnitudes
 * of negative values and one of the others.  A code is of one of them; in the
 * other its highest bit asks for the sign of a byte, which is 0.
 */

static __device__ __forceinline__ void
llm_quanta_coded(const llm_packed_t &p, uint32_t w, uint32_t q[4])
{
    int       r;
    uint32_t  other, minus, plus, sum;

    other = w ^ 0x88888888u;

#pragma unroll
    for (r = 0; r < 4; r += 2) {
        minus = llm_permute(p.book[0], p.book[1], w >> 8 * r);
        plus = llm_permute(p.book[2], p.book[3], other >> 8 * r);
        sum = plus - minus + 0x80808080u;       /* no byte takes from the
                                                   next */
        q[r] = llm_choose_bytes(sum, 0, 0x4140);
        q[r + 1] = llm_choose_bytes(sum, 0, 0x4342);
    }
}


/*
 * The quanta of instruction m's registers, pairs of denormal f16: q 2^-24, or
 * for the last two registers of classes 2, 4, 5, 6 q 2^-20.
 */

template<int CLS> static __device__ __forceinline__ void
llm_quanta(const llm_packed_t &p, const llm_lane_t<CLS> &l, int tile, int m,
    uint32_t q[4])
{
    int       r;
    uint32_t  w, high;

    w = CLS == 8 ? 0 : llm_word(l.quanta[tile / 2], tile % 2 * 2 + m);

    if (CLS == LLM_CLASS_CODED) {
        llm_quanta_coded(p, w, q);

    } else if (CLS == 8) {
#pragma unroll
        for (r = 0; r < 4; r++) {
            w = llm_word(l.quanta[tile % l.QUANTA], 2 * m + r / 2);
            q[r] = llm_choose_bytes(w, 0, r % 2 ? 0x4342 : 0x4140);
        }

    } else {
#pragma unroll
        for (r = 0; r < 2; r++) {
            q[r] = w >> 8 * r & 0x000f000fu;
            q[r + 2] = w >> 8 * r & 0x00f000f0u;

            if (CLS == 5 || CLS == 6) {
                high = llm_word(l.bits[0], CLS == 5 ? tile / 2 : tile);
                high = __funnelshift_r(high, high,
                                       llm_bits_turn<CLS>(tile, m, r));
                q[r] |= high & (CLS == 5 ? 0x00100010u : 0x00300030u);
                q[r + 2] |= high & (CLS == 5 ? 0x01000100u : 0x03000300u);
            }
        }
    }
}


/* the operands of a tile's two instructions, f16 */

template<int CLS> static __device__ __forceinline__ void
llm_unpack_f16(const llm_packed_t &p, const llm_lane_t<CLS> &l, int tile,
    uint32_t a[2][4])
{
    int       h, m, r, half;
    uint32_t  q[4], pair[2], low[2], zero[2];

    const bool  halves = CLS == LLM_CLASS_CODED || CLS == LLM_CLASS_MINS
                         || CLS == 6;
    const bool  nibbles = CLS != 8 && CLS != LLM_CLASS_CODED;

    /* of the rows lane / 4 and lane / 4 + 8: scales of q 2^-24 and q 2^-20, and
       what is added, in one half or the other */

#pragma unroll
    for (h = 0; h < 2; h++) {
        pair[h] = llm_word(l.pairs[h], CLS == 8 ? tile / 2 : tile);
        low[h] = nibbles ? llm_mul_f16x2(pair[h], 0x2c002c00u) : pair[h];
        zero[h] = CLS == 8 || CLS == LLM_CLASS_CODED
                  ? llm_mul_f16x2(pair[h], 0x80808080u)     /* -128 2^-24 */
                  : CLS == 6
                  ? llm_mul_f16x2(pair[h], 0x80208020u)     /* -32 2^-24 */
                  : CLS == LLM_CLASS_MINS ? llm_word(l.bits[h], tile)
                                          : pair[h];
    }

#pragma unroll
    for (m = 0; m < 2; m++) {
        llm_quanta<CLS>(p, l, tile, m, q);
        half = CLS == 8 ? tile % 2 : halves ? m : 0;

#pragma unroll
        for (r = 0; r < 4; r++) {
            h = r % 2;
            a[m][r] = llm_fma_f16x2(q[r],
                llm_half_f16x2(r < 2 ? pair[h] : low[h], half),
                llm_half_f16x2(zero[h], CLS == 8 || halves ? half : 1));
        }
    }
}


/* the same in the device's 16-bit type, for all classes */

template<int CLS> static __device__ __forceinline__ void
llm_unpack(const llm_packed_t &p, const llm_lane_t<CLS> &l, int tile,
    int bf16, uint32_t a[2][4])
{
    int       i, n;
    uint32_t  w;

    n = l.QUANTA;

    if (CLS != LLM_CLASS_16 && CLS != LLM_CLASS_FP8) {
        llm_unpack_f16<CLS>(p, l, tile, a);
    }

#pragma unroll
    for (i = 0; i < 8; i++) {
        if (CLS == LLM_CLASS_16) {
            a[i / 4][i % 4] = llm_word(l.quanta[(2 * tile + i / 4) % n],
                                       i % 4);

        } else if (CLS == LLM_CLASS_FP8) {
            w = llm_word(l.quanta[tile % n], i / 2);
            a[i / 4][i % 4] = llm_e2x16(w >> 16 * (i % 2) & 0xffff, bf16);

        } else if (bf16) {
            a[i / 4][i % 4] = llm_f16x2_to_bf16x2(a[i / 4][i % 4]);
        }
    }
}


/*
 * acc += a quad by NT * 8 rows of activations: folded rows, of whose elements a
 * lane's first are at x[n]; or with ONE a row in shared memory, from x[0] on,
 * which stands for eight.  With `more`, l becomes the quad at `next`, each part
 * as soon as it is free.
 */

template<int CLS, int NT, int ONE> static __device__ __forceinline__ void
llm_quad_product(const llm_packed_t &p, llm_lane_t<CLS> &l,
    const uint8_t *next, int more, const uint16_t *const x[NT], int bf16,
    float acc[1][NT][4])
{
    int       n, tile;
    uint4     v;
    uint32_t  a[1][2][4], b[NT][4];

#pragma unroll
    for (tile = 0; tile < LLM_QUAD_COLS / LLM_TILE_COLS; tile++) {
        llm_unpack<CLS>(p, l, tile, bf16, a[0]);

        if (more) {
            llm_lane_load_part<CLS>(next, threadIdx.x % 32, tile, l);
        }

#pragma unroll
        for (n = 0; n < NT; n++) {
            if (ONE) {
                llm_ldmatrix_x4<0>(b[n], x[n] + tile * LLM_TILE_COLS
                                         + threadIdx.x % 32 / 8 * 8);

            } else {
                v = *(const uint4 *) (x[n] + tile * LLM_TILE_COLS);
                b[n][0] = v.x;
                b[n][1] = v.y;
                b[n][2] = v.z;
                b[n][3] = v.w;
            }
        }

        llm_mma_tiles<1, NT>(acc, a, b, bf16);
    }
}

#endif /* LLM_CUDA_UNPACK_H */
