/*
 * Packing into the records of linear.h, by a warp for each quad: what a lane
 * writes of a tile's quanta, and a thread of a row's scales.
 */

#ifndef LLM_CUDA_PACK_H
#define LLM_CUDA_PACK_H

#include "kernels/cuda/unpack.h"


/* where quantum i of a lane is in a tile: instruction i / 8, register
   i / 2 % 4, half i % 2 */

static __device__ __forceinline__ uint32_t
llm_pack_row(uint32_t lane, uint32_t i)
{
    return lane / 4 + i / 2 % 2 * 8;
}


static __device__ __forceinline__ uint32_t
llm_pack_col(uint32_t lane, uint32_t i)
{
    return i / 8 * 16 + i / 4 % 2 * 8 + lane % 4 * 2 + i % 2;
}


/* the record of a quad */

static __device__ __forceinline__ uint8_t *
llm_pack_record(const llm_packed_t &p, uint32_t row_tile, uint32_t quad)
{
    return (uint8_t *) p.records
           + ((size_t) row_tile * p.quads + quad) * llm_record_bytes(p.cls);
}


/* writes a lane's 16 quanta of a tile; bits: the lane's word of fifth bits of
   two tiles, which begins with 0 and is written with the second one */

static __device__ inline void
llm_pack_quanta(int cls, uint8_t *record, uint32_t tile, uint32_t lane,
    const uint32_t v[16], uint32_t *bits)
{
    uint32_t  i, m, r, w[2], at, high;
    uint8_t  *to;

    to = record + (cls == 8 ? tile * 512 + lane * 16
                            : tile / 2 * 512 + lane * 16 + tile % 2 * 8);
    w[0] = w[1] = 0;
    high = 0;

    for (i = 0; i < 16; i++) {
        m = i / 8;
        r = i / 2 % 4;

        if (cls == 8) {
            to[i] = (uint8_t) (v[i] ^ 0x80);
            continue;
        }

        w[m] |= (v[i] & 15) << (cls == LLM_CLASS_CODED
                                ? i % 8 * 4 : i % 2 * 16 + r % 2 * 8
                                              + r / 2 * 4);

        at = 4 + i % 2 * 16 + r / 2 * 4;

        if (cls == 5) {
            at += llm_bits_turn<5>((int) tile, (int) m, (int) r % 2);
            *bits |= (v[i] >> 4) << at % 32;
        }

        if (cls == 6) {
            at += llm_bits_turn<6>((int) tile, (int) m, (int) r % 2);
            high |= (v[i] >> 4) << at % 32;
        }
    }

    if (cls != 8) {
        *(uint2 *) to = make_uint2(w[0], w[1]);
    }

    to = record + llm_quanta_bytes(cls);

    if (cls == 6) {
        *(uint32_t *) (to + lane * 16 + tile * 4) = high;
    }

    if (cls == 5 && tile % 2) {
        *(uint32_t *) (to + lane * 8 + tile / 2 * 4) = *bits;
        *bits = 0;
    }
}


/* two numbers times a factor as f16, the first in the low half */

static __device__ __forceinline__ uint32_t
llm_pack_pair(float first, float second)
{
    return (uint32_t) llm_f2h(first) | (uint32_t) llm_f2h(second) << 16;
}


/* writes what belongs to a row of a tile: scales d and minima m of both halves,
   given the scale of the weight's row, a power of two */

static __device__ inline void
llm_pack_scales(int cls, uint8_t *record, uint32_t tile, uint32_t row,
    float scale, const float d[2], const float m[2])
{
    float     min;
    uint8_t  *to;
    uint32_t  at;

    /* the scale's inverse, and that times 2^24 */

    min = __uint_as_float((254u << 23) - __float_as_uint(scale));
    scale = min * 0x1p24f;

    at = row * 4 + tile;
    to = record + llm_quanta_bytes(cls) + llm_bits_bytes(cls);

    if (cls == 8) {
        *(uint16_t *) (to + at * 2) = llm_f2h(d[0] * scale);
        return;
    }

    *(uint32_t *) (to + at * 4) = cls == 4 || cls == 5
                                  ? llm_pack_pair(d[0] * scale, m[0] * min)
                                  : llm_pack_pair(d[0] * scale, d[1] * scale);

    if (cls == LLM_CLASS_MINS) {
        *(uint32_t *) (record + llm_quanta_bytes(cls) + at * 4)
            = llm_pack_pair(m[0] * min, m[1] * min);
    }
}


/* the most of a row's scales and minima, for its scale */

static __device__ __forceinline__ float
llm_pack_most(float most, const float d[2], const float m[2])
{
    most = fmaxf(most, fmaxf(fabsf(d[0]), fabsf(d[1])));

    return fmaxf(most, fmaxf(fabsf(m[0]), fabsf(m[1])) * 0x1p-20f);
}


/* a warp's row's scale: `most` becomes at least 2^14 and less than 2^15, times
   2^24 less for the quanta */

static __device__ __forceinline__ float
llm_pack_scale(float most)
{
    uint32_t  e;

    e = __float_as_uint(llm_warp_max(most)) >> 23;
    e = llm_min(llm_max(e, 14u), 240u);

    return __uint_as_float((e + 10) << 23);
}

#endif /* LLM_CUDA_PACK_H */
