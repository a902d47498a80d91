/*
 * VPDPBUSD in AVX2, by Intel's manual, so that the kernels of kernels/cpu/avxvnni.c
 * run and are compared on machines without AVX-VNNI: included before that file
 * (engine/Makefile), it takes the place of the intrinsic.
 */

#ifndef SOFT_VNNI_H
#define SOFT_VNNI_H

#include <immintrin.h>

/* sum + the products of four unsigned bytes of u and signed ones of s, in each 32
   bits */

__attribute__((target("avx2"), always_inline)) static inline __m256i
soft_dpbusd(__m256i sum, __m256i u, __m256i s)
{
    __m256i  even, odd;

    even = _mm256_madd_epi16(_mm256_and_si256(u, _mm256_set1_epi16(0xff)),
                             _mm256_srai_epi16(_mm256_slli_epi16(s, 8), 8));
    odd = _mm256_madd_epi16(_mm256_srli_epi16(u, 8), _mm256_srai_epi16(s, 8));

    return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
}

#define _mm256_dpbusd_avx_epi32(sum, u, s)  soft_dpbusd(sum, u, s)

#endif
