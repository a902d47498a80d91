/*
 * Vectors of 16 floats with AVX-512, for the kernels that are written once for
 * all instruction sets (simd_*.h); simd256.h has the same functions for AVX2.
 * Included between the target pragmas of one .c file.
 */

#include <immintrin.h>

#define VL  16

typedef __m512   vf_t;
typedef __m512i  vi_t;

#define simd_inline  static inline __attribute__((always_inline))

/* before a loop with a constant count, so that arrays are kept in registers */
#define simd_unroll  _Pragma("GCC unroll 16")


simd_inline vf_t vf_zero(void) { return _mm512_setzero_ps(); }
simd_inline vf_t vf_set1(float x) { return _mm512_set1_ps(x); }
simd_inline vf_t vf_load(const float *p) { return _mm512_loadu_ps(p); }
simd_inline void vf_store(float *p, vf_t v) { _mm512_storeu_ps(p, v); }
simd_inline vf_t vf_add(vf_t a, vf_t b) { return _mm512_add_ps(a, b); }
simd_inline vf_t vf_sub(vf_t a, vf_t b) { return _mm512_sub_ps(a, b); }
simd_inline vf_t vf_mul(vf_t a, vf_t b) { return _mm512_mul_ps(a, b); }
simd_inline vf_t vf_div(vf_t a, vf_t b) { return _mm512_div_ps(a, b); }
simd_inline vf_t vf_max(vf_t a, vf_t b) { return _mm512_max_ps(a, b); }
simd_inline vf_t vf_min(vf_t a, vf_t b) { return _mm512_min_ps(a, b); }


/* a * b + c, and c - a * b, rounded once */

simd_inline vf_t
vf_fma(vf_t a, vf_t b, vf_t c)
{
    return _mm512_fmadd_ps(a, b, c);
}


simd_inline vf_t
vf_fnma(vf_t a, vf_t b, vf_t c)
{
    return _mm512_fnmadd_ps(a, b, c);
}


/* the first n lanes, n <= VL: the others are loaded as zeros and not stored */

simd_inline vf_t
vf_load_n(const float *p, uint32_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16) ((1u << n) - 1), p);
}


simd_inline void
vf_store_n(float *p, vf_t v, uint32_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16) ((1u << n) - 1), v);
}


/* lanes below n from a, the others from b */

simd_inline vf_t
vf_first(vf_t a, vf_t b, uint32_t n)
{
    return _mm512_mask_mov_ps(b, (__mmask16) ((1u << n) - 1), a);
}


simd_inline float vf_hmax(vf_t v) { return _mm512_reduce_max_ps(v); }
simd_inline float vf_hsum(vf_t v) { return _mm512_reduce_add_ps(v); }


simd_inline vf_t
vf_abs(vf_t v)
{
    return _mm512_abs_ps(v);
}


/* exchanges the lanes of pairs (0, 1), (2, 3) ... */

simd_inline vf_t
vf_swap_pairs(vf_t v)
{
    return _mm512_permute_ps(v, 0xb1);
}


simd_inline vf_t
vf_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) p));
}


simd_inline void
vf_store_f16(uint16_t *p, vf_t v)
{
    _mm256_storeu_si256((__m256i *) p,
                        _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}


/* VL pairs of bfloat16 at p: the first, or the second, of each as float32 */

simd_inline vf_t
vf_load_bf16_even(const uint16_t *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16));
}


simd_inline vf_t
vf_load_bf16_odd(const uint16_t *p)
{
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p),
                                     _mm512_set1_epi32((int) 0xffff0000)));
}


/* the nearest integer; v * 2^n */

simd_inline vf_t
vf_round(vf_t v)
{
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT
                                   | _MM_FROUND_NO_EXC);
}


simd_inline vf_t
vf_scale2(vf_t v, vf_t n)
{
    return _mm512_scalef_ps(v, n);
}


/* v, but 0 in lanes where x < limit */

simd_inline vf_t
vf_keep_ge(vf_t v, vf_t x, vf_t limit)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), v);
}
