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


/* a lane's quanta of a tile, as far as they are packed; begins with zeros */
typedef struct {
    uint64_t          low;              /* four bits of each */
    uint32_t          high;             /* class 6: two more of each; class 5:
                                           the fifth bits of two tiles */
} llm_pack_lane_t;


/* where a lane's quanta of a tile are */

static __device__ __forceinline__ uint8_t *
llm_pack_at(int cls, uint8_t *record, uint32_t tile, uint32_t lane)
{
    return record + (cls == 8 ? tile * 512 + lane * 16
                              : tile / 2 * 512 + lane * 16 + tile % 2 * 8);
}


/* packs quantum i of a lane, v */

static __device__ __forceinline__ void
llm_pack_quantum(int cls, uint8_t *record, uint32_t tile, uint32_t lane,
    uint32_t i, uint32_t v, llm_pack_lane_t *l)
{
    uint32_t  m, r, at;

    if (cls == 8) {
        llm_pack_at(cls, record, tile, lane)[i] = (uint8_t) (v ^ 0x80);
        return;
    }

    m = i / 8;
    r = i / 2 % 4;
    at = cls == LLM_CLASS_CODED ? i % 8 * 4
                                : i % 2 * 16 + r % 2 * 8 + r / 2 * 4;
    l->low |= (uint64_t) (v & 15) << (m * 32 + at);

    at = 4 + i % 2 * 16 + r / 2 * 4;

    if (cls == 5) {
        at += llm_bits_turn<5>((int) tile, (int) m, (int) r % 2);
        l->high |= (v >> 4) << at % 32;
    }

    if (cls == 6) {
        at += llm_bits_turn<6>((int) tile, (int) m, (int) r % 2);
        l->high |= (v >> 4) << at % 32;
    }
}


/* writes a lane's quanta of a tile, the fifth bits of class 5 with the second
   of two tiles */

static __device__ __forceinline__ void
llm_pack_put(int cls, uint8_t *record, uint32_t tile, uint32_t lane,
    llm_pack_lane_t *l)
{
    uint8_t  *bits;

    if (cls != 8) {
        *(uint2 *) llm_pack_at(cls, record, tile, lane)
            = make_uint2((uint32_t) l->low, (uint32_t) (l->low >> 32));
    }

    bits = record + llm_quanta_bytes(cls);
    l->low = 0;

    if (cls == 6) {
        *(uint32_t *) (bits + lane * 16 + tile * 4) = l->high;
    }

    if (cls == 5 && tile % 2) {
        *(uint32_t *) (bits + lane * 8 + tile / 2 * 4) = l->high;
    }

    if (cls != 5 || tile % 2) {
        l->high = 0;
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
