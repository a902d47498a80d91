/*
 * Rounding of activations to integers with AVX2; included after quant_stage.h.
 */

/* stores 32 integers as bytes; the pack instructions work within halves of 128
   bits, hence the permutation */

simd_inline void
quant_store_bytes(int8_t *q, const __m256i v[4])
{
    __m256i  a;

    a = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]),
                           _mm256_packs_epi32(v[2], v[3]));
    a = _mm256_permutevar8x32_epi32(a, _mm256_setr_epi32(0, 4, 1, 5,
                                                         2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *) q, a);
}


/* stores 32 integers as 16-bit ones, of each four the first and the third one,
   then the others: see quant_tile_words() */

simd_inline void
quant_store_words(int16_t *q, const __m256i v[4])
{
    int      i;
    __m256i  a;

    const __m256i  order = _mm256_broadcastsi128_si256(
                               _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7,
                                             8, 9, 12, 13, 10, 11, 14, 15));

    simd_unroll
    for (i = 0; i < 2; i++) {
        a = _mm256_packs_epi32(v[2 * i], v[2 * i + 1]);
        a = _mm256_shuffle_epi8(_mm256_permute4x64_epi64(a, 0xd8), order);
        _mm256_storeu_si256((__m256i *) q + i, a);
    }
}


simd_inline __m256i
quant_max(const float *x)
{
    int      i;
    __m256i  max;

    max = _mm256_castps_si256(vf_abs(vf_load(x)));

    simd_unroll
    for (i = 1; i < 4; i++) {
        max = _mm256_max_epi32(max, _mm256_castps_si256(
                                        vf_abs(vf_load(x + i * 8))));
    }

    return max;
}


/* the sums of each of eight vectors of integers */

simd_inline __m256i
quant_sums(const __m256i v[8])
{
    __m256i  a, b;

    a = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]),
                          _mm256_hadd_epi32(v[2], v[3]));
    b = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]),
                          _mm256_hadd_epi32(v[6], v[7]));

    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                            _mm256_permute2x128_si256(a, b, 0x31));
}


simd_inline __m256i
quant_stage_blocks(const llm_cpu_stage_t *s, const float *x, size_t to,
    __m128 *d)
{
    int      i, k;
    float    rest[QUANT_STAGE * LLM_BLOCK];
    __m128   id;
    __m256   scale;
    __m256i  q[4], half[2 * QUANT_STAGE];

    id = quant_stage_scales(s, &x, rest, d);

    simd_unroll
    for (i = 0; i < QUANT_STAGE; i++) {
        scale = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(id),
                                         _mm256_set1_epi32(i));

        simd_unroll
        for (k = 0; k < 4; k++) {
            q[k] = _mm256_cvtps_epi32(vf_mul(vf_load(x + i * LLM_BLOCK
                                                     + k * 8), scale));
        }

        half[2 * i] = _mm256_add_epi32(q[0], q[1]);
        half[2 * i + 1] = _mm256_add_epi32(q[2], q[3]);

        if (s->fine) {
            quant_store_words((int16_t *) (void *) s->b + to + i * LLM_BLOCK,
                              q);

        } else {
            quant_store_bytes(s->q + to + i * LLM_BLOCK, q);
        }
    }

    return quant_sums(half);
}
