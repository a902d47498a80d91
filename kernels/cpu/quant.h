/*
 * Properties of the packings (packs.def) as compile-time constants, for kernels
 * that are expanded for each packing; included after simd512.h or simd256.h.
 * pack.c has the table that is used at run time.
 */

#include <math.h>


static const struct {
    int                  bits;
    int                  range;
    int                  zero;
    llm_pack_scale_t     scale;
    llm_pack_t           kind;
} quant_packs[LLM_PACK_N] = {
    [LLM_PACK_NONE] = { 0, 0, 0, 0, LLM_PACK_NONE },
#define LLM_PACK(NAME, bits, range, zero, scale, as)                         \
    { bits, range, zero, LLM_SCALE_##scale, LLM_PACK_##as },
#include "kernels/cpu/packs.def"
};

static const struct {
    uint32_t             blocks;
    uint32_t             size;
    int                  halves;
    int                  has_min;
} quant_scale_facts[LLM_SCALE_N] = {
#define LLM_SCALE(NAME, blocks, bytes, halves, min)                          \
    { blocks, bytes, halves, min },
#include "kernels/cpu/packs.def"
};


simd_inline int
quant_bits(uint32_t pack)
{
    return quant_packs[pack].bits;
}


/* bits of the factors of a product */

simd_inline int
quant_range(uint32_t pack)
{
    return quant_packs[pack].range;
}


/* the packing that is the same after unpacking */

simd_inline uint32_t
quant_kind(uint32_t pack)
{
    return quant_packs[pack].kind;
}


/* are codes looked up in the type's book? */

simd_inline int
quant_has_book(uint32_t pack)
{
    return quant_packs[pack].range != quant_packs[pack].bits;
}


simd_inline llm_pack_scale_t
quant_scale(uint32_t pack)
{
    return quant_packs[pack].scale;
}


/* bytes of a group of scales */

simd_inline uint32_t
quant_scale_size(uint32_t pack)
{
    return quant_scale_facts[quant_packs[pack].scale].size;
}


/* bytes of scales per block, on average */

simd_inline uint32_t
quant_scale_step(uint32_t pack)
{
    return quant_scale_size(pack)
           / quant_scale_facts[quant_packs[pack].scale].blocks;
}


/* scales per block */

simd_inline int
quant_halves(uint32_t pack)
{
    return quant_scale_facts[quant_packs[pack].scale].halves;
}


simd_inline int
quant_has_min(uint32_t pack)
{
    return quant_scale_facts[quant_packs[pack].scale].has_min;
}


/* index of the zero[] that dot products of a packing start from; -1: none */

simd_inline int
quant_zero(uint32_t pack)
{
    switch (quant_packs[pack].zero) {
    case 8:   return LLM_ZERO_8;
    case 16:  return LLM_ZERO_16;
    case 32:  return LLM_ZERO_32;
    case 64:  return LLM_ZERO_64;
    case 128: return LLM_ZERO_128;
    default:  return -1;
    }
}


simd_inline uint32_t
quant_code_size(uint32_t pack)
{
    return (uint32_t) quant_bits(pack) * 64;
}
