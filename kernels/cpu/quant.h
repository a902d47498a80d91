/*
 * The facts of the packings as constants, for kernels that are expanded once
 * for each; included after simd512.h or simd256.h.  The table that goes with
 * the weights is pack.c's.
 */

#include <math.h>


simd_inline int
quant_bits(uint32_t pack)
{
    return pack == LLM_PACK_Q8_0 ? 8
           : pack == LLM_PACK_Q6_K ? 6
           : pack == LLM_PACK_Q5_0 || pack == LLM_PACK_Q5_1
             || pack == LLM_PACK_Q5_K ? 5 : 4;
}


simd_inline int
quant_has_min(uint32_t pack)
{
    return pack == LLM_PACK_Q4_1 || pack == LLM_PACK_Q5_1
           || pack == LLM_PACK_Q4_K || pack == LLM_PACK_Q5_K;
}


/* which zero[] a packing starts from, or -1 */

simd_inline int
quant_zero(uint32_t pack)
{
    return pack == LLM_PACK_Q8_0 ? LLM_ZERO_128
           : pack == LLM_PACK_Q6_K ? LLM_ZERO_32
           : pack == LLM_PACK_Q5_0 ? LLM_ZERO_16
           : pack == LLM_PACK_Q4_0 ? LLM_ZERO_8 : -1;
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
    return quant_bits(pack) == 8 ? 512 : quant_bits(pack) == 6 ? 384
           : quant_bits(pack) == 5 ? 320 : 256;
}
