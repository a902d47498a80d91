/*
 * Rounding of activations to bfloat16 by AVX512_BF16; included after
 * simd512.h.
 */

static void
bf16_stage(const llm_cpu_stage_t *s, uint32_t row)
{
    uint16_t      *b;
    __m512         v;
    uint32_t       i;
    const float   *x;

    x = s->x + (size_t) row * s->n_in;
    b = s->b + row * s->stride;

    /* zeros up to a multiple of 32 */
    for (i = 0; i < llm_align(s->n_in, 32); i += 16) {
        v = i < s->n_in ? vf_load_n(x + i, llm_min(s->n_in - i, 16))
                        : vf_zero();
        _mm256_storeu_si256((__m256i *) (b + i),
                            (__m256i) _mm512_cvtneps_pbh(v));
    }
}
