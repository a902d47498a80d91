/*
 * The facts of the packings as constants, for kernels that are expanded once
 * for each; included after simd512.h or simd256.h.  The table that goes with
 * the weights is pack.c's.
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


/* bits of what is multiplied */

simd_inline int
quant_range(uint32_t pack)
{
    return quant_packs[pack].range;
}


/* what it is like once it is unpacked */

simd_inline uint32_t
quant_kind(uint32_t pack)
{
    return quant_packs[pack].kind;
}


/* codes go through the type's book */

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


/* bytes of scales that go together */

simd_inline uint32_t
quant_scale_size(uint32_t pack)
{
    return quant_scale_facts[quant_packs[pack].scale].size;
}


/* the same for one block, on average */

simd_inline uint32_t
quant_scale_step(uint32_t pack)
{
    return quant_scale_size(pack)
           / quant_scale_facts[quant_packs[pack].scale].blocks;
}


/* scales of a block */

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


/* which zero[] a packing starts from, or -1 */

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


/*
 * What a block's x is multiplied by to become codes, max being the largest
 * |x|.  0 where that is next to nothing and its inverse may be infinite, and
 * where it is no finite number: then the codes are 0, and the block's scale,
 * which is not finite, makes NaN of whatever they are multiplied with.
 */

#define QUANT_TINY  0x1p-100f

simd_inline float
quant_inverse(float max, float steps)
{
    return max >= QUANT_TINY && max < INFINITY ? steps / max : 0;
}


simd_inline uint32_t
quant_code_size(uint32_t pack)
{
    return (uint32_t) quant_bits(pack) * 64;
}
