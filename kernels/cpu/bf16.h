/*
 * Rounding of activations to bfloat16 with AVX512_BF16; included after
 * simd512.h.
 */

static void
bf16_stage(const llm_cpu_stage_t *s, const float *x, uint32_t row)
{
    __m512         v;
    __m256i        high;
    uint32_t       i;
    uint16_t      *b, *low;

    b = s->b + row * s->stride;
    low = s->b_low + row * s->stride;

    /* padded with zeros to a multiple of 32 */
    for (i = 0; i < llm_align(s->n_in, 32); i += 16) {
        v = i < s->n_in ? vf_load_n(x + i, llm_min(s->n_in - i, 16))
                        : vf_zero();
        high = (__m256i) _mm512_cvtneps_pbh(v);
        _mm256_storeu_si256((__m256i *) (b + i), high);

        if (s->fine) {
            v = _mm512_sub_ps(v, _mm512_castsi512_ps(_mm512_slli_epi32(
                                     _mm512_cvtepu16_epi32(high), 16)));
            _mm256_storeu_si256((__m256i *) (low + i),
                                (__m256i) _mm512_cvtneps_pbh(v));
        }
    }
}
