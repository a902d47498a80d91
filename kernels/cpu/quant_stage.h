/*
 * Rounding of activations to integers, what is the same with AVX2 and AVX-512;
 * included after quant.h.
 */

/* blocks at a time; their number is the lanes of 128 bits */
#define QUANT_STAGE  4

/*
 * A block's codes are x times steps / max, where max is the largest |x|; or 0
 * if max is so small that steps / max may be infinite, and if max is not
 * finite: then all products are NaN, because the block's scale is not finite.
 */
#define QUANT_TINY   0x1p-100f


/* rounds QUANT_STAGE blocks of x, which become codes from `to` on, with scales
   *d; returns the sums of their halves */

simd_inline __m256i
quant_stage_blocks(const llm_cpu_stage_t *s, const float *x, size_t to,
    __m128 *d);


/* the largest |x| of a block in each lane, compared as integers, so that NaN is
   larger than infinity */

simd_inline __m256i
quant_max(const float *x);


/* the largest of each of four vectors of integers */

simd_inline __m128i
quant_max4(const __m256i v[4])
{
    __m256i  a, b;

    a = _mm256_max_epi32(_mm256_unpacklo_epi32(v[0], v[1]),
                         _mm256_unpackhi_epi32(v[0], v[1]));
    b = _mm256_max_epi32(_mm256_unpacklo_epi32(v[2], v[3]),
                         _mm256_unpackhi_epi32(v[2], v[3]));
    a = _mm256_max_epi32(_mm256_unpacklo_epi64(a, b),
                         _mm256_unpackhi_epi64(a, b));

    return _mm_max_epi32(_mm256_castsi256_si128(a),
                         _mm256_extracti128_si256(a, 1));
}


/* x[QUANT_STAGE] without the blocks whose bit is not set */

static __attribute__((noinline)) void
quant_stage_finite(float *to, const float *x, unsigned finite)
{
    unsigned  i;

    memset(to, 0, QUANT_STAGE * LLM_BLOCK * sizeof(float));

    for (i = 0; i < QUANT_STAGE; i++) {
        if (finite & 1u << i) {
            memcpy(to + i * LLM_BLOCK, x + i * LLM_BLOCK,
                   LLM_BLOCK * sizeof(float));
        }
    }
}


/* the scales of QUANT_STAGE blocks; returns the factors from *x to codes.  If a
   block is not finite, *x becomes rest, which has the others */

simd_inline __m128
quant_stage_scales(const llm_cpu_stage_t *s, const float **x, float *rest,
    __m128 *d)
{
    int      i;
    __m128   max, finite, steps, large;
    __m256i  m[QUANT_STAGE];

    simd_unroll
    for (i = 0; i < QUANT_STAGE; i++) {
        m[i] = quant_max(*x + i * LLM_BLOCK);
    }

    max = _mm_castsi128_ps(quant_max4(m));
    finite = _mm_cmp_ps(max, _mm_set1_ps(INFINITY), _CMP_LT_OQ);
    large = _mm_cmp_ps(max, _mm_set1_ps(QUANT_TINY), _CMP_GE_OQ);
    steps = _mm_set1_ps(s->fine ? 127.0f * 128.0f : 127.0f);

    *d = _mm_div_ps(max, steps);

    if (_mm_movemask_ps(finite) != 15) {
        quant_stage_finite(rest, *x, (unsigned) _mm_movemask_ps(finite));
        *x = rest;
    }

    return _mm_and_ps(_mm_div_ps(steps, max), _mm_and_ps(finite, large));
}


/* stores n numbers of 4 bytes, each for the block or half after that of the one
   before */

simd_inline void
quant_stage_put(void *to, const void *from, uint32_t n)
{
    uint32_t     i;
    char        *t = to;
    const char  *f = from;

    simd_unroll
    for (i = 0; i < n; i++) {
        memcpy(t + i * 64, f + i * 4, 4);
    }
}


/* what products need beside codes, of n blocks from b on */

simd_inline void
quant_stage_facts(const llm_cpu_stage_t *s, uint32_t row, uint32_t b,
    const uint32_t n, int what, __m128 d, __m256i halves)
{
    int      zero;
    float    f[2 * QUANT_STAGE];
    size_t   at, half;
    int32_t  v[2 * QUANT_STAGE];
    __m128i  sum;

    static const int  factors[LLM_ZERO_N] = {
        [LLM_ZERO_8] = -8, [LLM_ZERO_16] = -16, [LLM_ZERO_128] = -128,
        [LLM_ZERO_32] = -32, [LLM_ZERO_64] = -64
    };

    at = llm_stage_at(row, s->n_blocks) + (size_t) b * 16;
    half = llm_stage_at(row, s->n_blocks * 2) + (size_t) b * 32;

    sum = _mm_hadd_epi32(_mm256_castsi256_si128(halves),
                         _mm256_extracti128_si256(halves, 1));

    _mm_storeu_ps(f, d);
    quant_stage_put(s->d + at, f, n);
    _mm_storeu_ps(f, _mm_mul_ps(d, _mm_cvtepi32_ps(sum)));
    quant_stage_put(s->sum + at, f, n);

    simd_unroll
    for (zero = 0; zero < LLM_ZERO_N; zero++) {
        if (!(what & LLM_STAGE_ZERO << zero)) {
            continue;
        }

        if (zero < LLM_ZERO_32) {
            _mm_storeu_si128((__m128i *) (void *) v,
                             _mm_mullo_epi32(sum,
                                             _mm_set1_epi32(factors[zero])));
            quant_stage_put(s->zero[zero] + at, v, n);

        } else {
            _mm256_storeu_si256((__m256i *) (void *) v,
                                _mm256_mullo_epi32(halves,
                                           _mm256_set1_epi32(factors[zero])));
            quant_stage_put(s->zero[zero] + half, v, 2 * n);
        }
    }

    if (what & LLM_STAGE_HALF) {
        _mm256_storeu_ps(f, _mm256_mul_ps(_mm256_cvtepi32_ps(halves),
                                _mm256_permutevar8x32_ps(
                                    _mm256_castps128_ps256(d),
                                    _mm256_setr_epi32(0, 0, 1, 1,
                                                      2, 2, 3, 3))));
        quant_stage_put(s->half + half, f, 2 * n);
    }
}


static void
quant_stage_q8(const llm_cpu_stage_t *s, const float *x, uint32_t row,
    int what)
{
    float     rest[QUANT_STAGE * LLM_BLOCK];
    __m128    d;
    __m256i   sums;
    uint32_t  b, n;

    for (b = 0; b + QUANT_STAGE <= s->n_blocks; b += QUANT_STAGE) {
        sums = quant_stage_blocks(s, x + b * LLM_BLOCK,
                                  row * s->stride + b * LLM_BLOCK, &d);
        quant_stage_facts(s, row, b, QUANT_STAGE, what, d, sums);
    }

    n = s->n_blocks - b;

    if (n) {
        /* codes after the last block are stored, too: a row has room */
        memset(rest, 0, sizeof(rest));
        memcpy(rest, x + b * LLM_BLOCK, n * LLM_BLOCK * sizeof(float));
        sums = quant_stage_blocks(s, rest, row * s->stride + b * LLM_BLOCK,
                                  &d);
        quant_stage_facts(s, row, b, n, what, d, sums);
    }
}
