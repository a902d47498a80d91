/*
 * The operands of bits.cu: hashes of their places, so that a GPU's results
 * alone, without the operands, can be compared with (t/unit/emu_mma.c).
 */

#ifndef LLM_GPU_BITS_H
#define LLM_GPU_BITS_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define BITS_BOTH  __host__ __device__ static
#else
#define BITS_BOTH  static inline
#endif

enum { BITS_BF16, BITS_F16, BITS_E4M3, BITS_TYPES };

/* results of a tile: A has 64 rows, B 8 columns */
#define BITS_TILE  512


BITS_BOTH uint32_t
bits_hash(uint32_t i, uint32_t seed)
{
    uint32_t  h;

    h = (i ^ seed * 0x9e3779b9u) * 0x85ebca6bu;
    h = (h ^ h >> 15) * 0xc2b2ae35u;
    h = (h ^ h >> 13) * 0x27d4eb2fu;

    return h ^ h >> 16;
}


/* seed of A; B's is one more, the sums' two more; s: index in spreads[] */

BITS_BOTH uint32_t
bits_seed(int type, uint32_t s)
{
    return 100 * (uint32_t) type + 10 * s;
}


/*
 * Element i: any sign and mantissa, and an exponent of -spread .. 0; of e4m3
 * -6 .. 0 at most.
 */

BITS_BOTH uint16_t
bits_value(int type, uint32_t i, uint32_t seed, uint32_t spread)
{
    uint32_t  h = bits_hash(i, seed), e = (h >> 16) % (spread + 1);

    switch (type) {

    case BITS_BF16:
        return (uint16_t) ((h & 0x8000) | (127 - e) << 7 | (h & 0x7f));

    case BITS_F16:
        return (uint16_t) ((h & 0x8000) | (15 - e) << 10 | (h & 0x3ff));

    default:
        return (uint16_t) ((h >> 8 & 0x80) | (7 - e % 7) << 3 | (h & 7));
    }
}


/* sum i, a float: any sign and mantissa, an exponent of 1 - 2 spread .. 1 */

BITS_BOTH float
bits_sum(uint32_t i, uint32_t seed, uint32_t spread)
{
    float     f;
    uint32_t  h, bits;

    h = bits_hash(i, seed);
    bits = (h & 0x80000000) | (128 - (h >> 23 & 0xff) % (2 * spread + 1)) << 23
           | (h & 0x7fffff);
    memcpy(&f, &bits, sizeof(f));

    return f;
}

#endif /* LLM_GPU_BITS_H */
