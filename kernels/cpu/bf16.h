/*
 * Rounding of activations to bfloat16 with AVX512_BF16; included after
 * simd512.h.
 */

/* writes a row of s at element `at`, step elements from 32 to the next 32 */

simd_inline void
bf16_stage_row(const llm_cpu_stage_t *s, const float *x, size_t at,
    const size_t step)
{
    __m512         v;
    __m256i        high;
    uint32_t       i;
    uint16_t      *b, *low;

    b = s->b + at;
    low = s->b_low + at;

    /* padded with zeros to a multiple of 32 */
    for (i = 0; i < llm_align(s->n_in, 32); i += 16) {
        v = i + 16 <= s->n_in ? vf_load(x + i)
            : i < s->n_in ? vf_load_n(x + i, s->n_in - i) : vf_zero();
        high = (__m256i) _mm512_cvtneps_pbh(v);
        at = i / 32 * step + i % 32;
        _mm256_storeu_si256((__m256i *) (b + at), high);

        if (s->fine) {
            v = _mm512_sub_ps(v, _mm512_castsi512_ps(_mm512_slli_epi32(
                                     _mm512_cvtepu16_epi32(high), 16)));
            _mm256_storeu_si256((__m256i *) (low + at),
                                (__m256i) _mm512_cvtneps_pbh(v));
        }
    }
}
