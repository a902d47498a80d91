/*
 * Vectors of 8 floats with AVX2, FMA and F16C, for the kernels that are written
 * once for all instruction sets (simd_*.h); simd512.h has the same functions
 * for AVX-512.  Included between the target pragmas of one .c file.
 */

#include <immintrin.h>

#define VL  8

typedef __m256   vf_t;
typedef __m256i  vi_t;

#define simd_inline  static inline __attribute__((always_inline))

/* before a loop with a constant count, so that arrays are kept in registers */
#define simd_unroll  _Pragma("GCC unroll 16")


simd_inline vf_t vf_zero(void) { return _mm256_setzero_ps(); }
simd_inline vf_t vf_set1(float x) { return _mm256_set1_ps(x); }
simd_inline vf_t vf_load(const float *p) { return _mm256_loadu_ps(p); }
simd_inline void vf_store(float *p, vf_t v) { _mm256_storeu_ps(p, v); }
simd_inline vf_t vf_add(vf_t a, vf_t b) { return _mm256_add_ps(a, b); }
simd_inline vf_t vf_sub(vf_t a, vf_t b) { return _mm256_sub_ps(a, b); }
simd_inline vf_t vf_mul(vf_t a, vf_t b) { return _mm256_mul_ps(a, b); }
simd_inline vf_t vf_div(vf_t a, vf_t b) { return _mm256_div_ps(a, b); }
simd_inline vf_t vf_max(vf_t a, vf_t b) { return _mm256_max_ps(a, b); }
simd_inline vf_t vf_min(vf_t a, vf_t b) { return _mm256_min_ps(a, b); }


/* a * b + c, and c - a * b, rounded once */

simd_inline vf_t
vf_fma(vf_t a, vf_t b, vf_t c)
{
    return _mm256_fmadd_ps(a, b, c);
}


simd_inline vf_t
vf_fnma(vf_t a, vf_t b, vf_t c)
{
    return _mm256_fnmadd_ps(a, b, c);
}


/* the first n lanes, n <= VL: the others are loaded as zeros and not stored */

simd_inline vi_t
vi_first(uint32_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int) n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}


simd_inline vf_t
vf_load_n(const float *p, uint32_t n)
{
    return _mm256_maskload_ps(p, vi_first(n));
}


simd_inline void
vf_store_n(float *p, vf_t v, uint32_t n)
{
    _mm256_maskstore_ps(p, vi_first(n), v);
}


/* lanes below n from a, the others from b */

simd_inline vf_t
vf_first(vf_t a, vf_t b, uint32_t n)
{
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(vi_first(n)));
}


simd_inline float
vf_hmax(vf_t v)
{
    __m128  x;

    x = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    x = _mm_max_ss(x, _mm_movehdup_ps(x));

    return _mm_cvtss_f32(x);
}


simd_inline float
vf_hsum(vf_t v)
{
    __m128  x;

    x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    x = _mm_add_ss(x, _mm_movehdup_ps(x));

    return _mm_cvtss_f32(x);
}


simd_inline vf_t
vf_abs(vf_t v)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
}


/* exchanges the lanes of pairs (0, 1), (2, 3) ... */

simd_inline vf_t
vf_swap_pairs(vf_t v)
{
    return _mm256_permute_ps(v, 0xb1);
}


simd_inline vf_t
vf_load_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) p));
}


simd_inline void
vf_store_f16(uint16_t *p, vf_t v)
{
    _mm_storeu_si128((__m128i *) p,
                     _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}


/* VL pairs of bfloat16 at p: the first, or the second, of each as float32 */

simd_inline vf_t
vf_load_bf16_even(const uint16_t *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(
                               _mm256_loadu_si256((const __m256i *) p), 16));
}


simd_inline vf_t
vf_load_bf16_odd(const uint16_t *p)
{
    return _mm256_castsi256_ps(_mm256_and_si256(
                               _mm256_loadu_si256((const __m256i *) p),
                               _mm256_set1_epi32((int) 0xffff0000)));
}


/* the nearest integer; v * 2^n for integers n from -126 to 127 */

simd_inline vf_t
vf_round(vf_t v)
{
    return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT
                              | _MM_FROUND_NO_EXC);
}


simd_inline vf_t
vf_scale2(vf_t v, vf_t n)
{
    vi_t  e;

    e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));

    return _mm256_mul_ps(v, _mm256_castsi256_ps(_mm256_slli_epi32(e, 23)));
}


/* v, but 0 in lanes where x < limit */

simd_inline vf_t
vf_keep_ge(vf_t v, vf_t x, vf_t limit)
{
    return _mm256_and_ps(_mm256_cmp_ps(x, limit, _CMP_NLT_UQ), v);
}
