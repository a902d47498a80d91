/*
 * Dequantising on the device: one element of a row in GGUF's layout (ggml's
 * block formats, see kernels/types.h).  Used for embedding rows and to pack
 * weights; the products read layouts of their own.
 */

#ifndef LLM_CUDA_QUANTS_H
#define LLM_CUDA_QUANTS_H

#include "kernels/cuda/internal.h"


static __device__ __forceinline__ uint16_t
llm_load_u16(const uint8_t *p)
{
    return (uint16_t) (p[0] | p[1] << 8);
}


/* the 6-bit scale and minimum of sub-block j of a Q4_K or Q5_K block */

static __device__ __forceinline__ void
llm_k_scale(const uint8_t *s, uint32_t j, uint32_t *scale, uint32_t *min)
{
    if (j < 4) {
        *scale = s[j] & 63;
        *min = s[j + 4] & 63;

    } else {
        *scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
        *min = (s[j + 4] >> 4) | (s[j] >> 6) << 4;
    }
}


/* Q4_0, Q4_1, Q5_0, Q5_1, Q8_0: blocks of 32 */

static __device__ __forceinline__ float
llm_deq_32(uint32_t type, const uint8_t *row, uint32_t i)
{
    float           d, m;
    uint32_t        q, high;
    const uint8_t  *b;

    high = 0;
    m = 0;

    switch (type) {

    case LLM_TYPE_Q8_0:
        b = row + i / 32 * LLM_BYTES_Q8_0;
        return llm_h2f(llm_load_u16(b)) * (float) (int8_t) b[2 + i % 32];

    case LLM_TYPE_Q4_0:
        b = row + i / 32 * LLM_BYTES_Q4_0;
        d = llm_h2f(llm_load_u16(b));
        m = -8.0f * d;
        b += 2;
        break;

    case LLM_TYPE_Q4_1:
        b = row + i / 32 * LLM_BYTES_Q4_1;
        d = llm_h2f(llm_load_u16(b));
        m = llm_h2f(llm_load_u16(b + 2));
        b += 4;
        break;

    case LLM_TYPE_Q5_0:
        b = row + i / 32 * LLM_BYTES_Q5_0;
        d = llm_h2f(llm_load_u16(b));
        m = -16.0f * d;
        high = (uint32_t) b[2 + i % 32 / 8] >> i % 8 & 1;
        b += 6;
        break;

    default: /* LLM_TYPE_Q5_1 */
        b = row + i / 32 * LLM_BYTES_Q5_1;
        d = llm_h2f(llm_load_u16(b));
        m = llm_h2f(llm_load_u16(b + 2));
        high = (uint32_t) b[4 + i % 32 / 8] >> i % 8 & 1;
        b += 8;
        break;
    }

    q = i % 32 < 16 ? b[i % 16] & 15u : (uint32_t) b[i % 16] >> 4;

    return d * (float) (q | high << 4) + m;
}


/* Q4_K, Q5_K, Q6_K: blocks of 256 */

static __device__ __forceinline__ float
llm_deq_k(uint32_t type, const uint8_t *row, uint32_t i)
{
    int             v;
    float           d, min;
    uint32_t        q, j, r, s, m;
    const uint8_t  *b, *qs;

    r = i % 256;

    if (type == LLM_TYPE_Q6_K) {
        b = row + i / 256 * LLM_BYTES_Q6_K;
        d = llm_h2f(llm_load_u16(b + 208));

        /* in each half of 128, four quarters of 32 share 64 bytes of low and 32
           bytes of high bits */

        j = r / 128;
        s = r % 128 / 32;
        q = b[j * 64 + (s & 1) * 32 + r % 32];
        q = s < 2 ? q & 15 : q >> 4;
        q |= ((uint32_t) b[128 + j * 32 + r % 32] >> 2 * s & 3) << 4;
        v = (int8_t) b[192 + r / 16];

        return d * (float) v * (float) ((int) q - 32);
    }

    b = row + i / 256 * (type == LLM_TYPE_Q4_K ? LLM_BYTES_Q4_K
                                               : LLM_BYTES_Q5_K);
    d = llm_h2f(llm_load_u16(b));
    min = llm_h2f(llm_load_u16(b + 2));
    j = r / 32;
    llm_k_scale(b + 4, j, &s, &m);

    qs = b + (type == LLM_TYPE_Q4_K ? 16 : 48);
    q = qs[r / 64 * 32 + r % 32];
    q = j & 1 ? q >> 4 : q & 15;

    if (type == LLM_TYPE_Q5_K) {
        q |= ((uint32_t) b[16 + r % 32] >> j & 1) << 4;
    }

    return d * (float) s * (float) q - min * (float) m;
}


/* element i of a row of any type but the coded ones */

static __device__ __forceinline__ float
llm_deq(uint32_t type, const uint8_t *row, uint32_t i)
{
    switch (type) {

    case LLM_TYPE_F32:
        return ((const float *) row)[i];

    case LLM_TYPE_F16:
        return llm_h2f(((const uint16_t *) row)[i]);

    case LLM_TYPE_BF16:
        return llm_b2f(((const uint16_t *) row)[i]);

    case LLM_TYPE_Q4_K:
    case LLM_TYPE_Q5_K:
    case LLM_TYPE_Q6_K:
        return llm_deq_k(type, row, i);

    default:
        return llm_deq_32(type, row, i);
    }
}

#endif /* LLM_CUDA_QUANTS_H */
