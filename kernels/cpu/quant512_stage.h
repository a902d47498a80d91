/*
 * Rounding of activations to integers with AVX-512 VNNI; included after
 * quant_stage.h.
 */

simd_inline __m256i
quant_max(const float *x)
{
    __m512i  v;

    v = _mm512_max_epi32(_mm512_castps_si512(vf_abs(vf_load(x))),
                         _mm512_castps_si512(vf_abs(vf_load(x + 16))));

    return _mm256_max_epi32(_mm512_castsi512_si256(v),
                            _mm512_extracti64x4_epi64(v, 1));
}


/* four vectors of integers as bytes */

simd_inline __m512i
quant_bytes(const __m512i v[4])
{
    const __m512i  order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13,
                                             2, 6, 10, 14, 3, 7, 11, 15);

    return _mm512_permutexvar_epi32(order,
               _mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]),
                                  _mm512_packs_epi32(v[2], v[3])));
}


/* the sums of 16 bytes each of two vectors */

simd_inline __m256i
quant_sums(__m512i v0, __m512i v1)
{
    __m512i  t, ones;

    const __m512i  order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13,
                                             0, 0, 0, 0, 0, 0, 0, 0);

    ones = _mm512_set1_epi8(1);
    v0 = _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, v0);
    v1 = _mm512_dpbusd_epi32(_mm512_setzero_si512(), ones, v1);

    t = _mm512_add_epi32(_mm512_unpacklo_epi32(v0, v1),
                         _mm512_unpackhi_epi32(v0, v1));
    t = _mm512_add_epi32(t, _mm512_shuffle_epi32(t, _MM_PERM_BADC));

    return _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, t));
}


/* h, the nearest to v / 128, so that v - 128 h fits into a byte */

simd_inline __m512i
quant_high(__m512i v)
{
    return _mm512_srai_epi32(_mm512_add_epi32(v, _mm512_set1_epi32(64)), 7);
}


/* stores the codes of QUANT_STAGE blocks; returns the sums of their halves */

simd_inline __m256i
quant_stage_codes(const llm_cpu_stage_t *s, __m512i q[8], size_t to)
{
    int      i;
    __m512i  h[8], b[2];
    __m256i  sum;

    sum = _mm256_setzero_si256();

    if (s->fine) {
        simd_unroll
        for (i = 0; i < 8; i++) {
            h[i] = quant_high(q[i]);
            q[i] = _mm512_sub_epi32(q[i], _mm512_slli_epi32(h[i], 7));
        }

        b[0] = quant_bytes(h);
        b[1] = quant_bytes(h + 4);
        _mm512_storeu_si512(s->q + to, b[0]);
        _mm512_storeu_si512(s->q + to + 64, b[1]);
        sum = _mm256_slli_epi32(quant_sums(b[0], b[1]), 7);
    }

    b[0] = quant_bytes(q);
    b[1] = quant_bytes(q + 4);
    _mm512_storeu_si512((s->fine ? s->q_low : s->q) + to, b[0]);
    _mm512_storeu_si512((s->fine ? s->q_low : s->q) + to + 64, b[1]);

    return _mm256_add_epi32(sum, quant_sums(b[0], b[1]));
}


simd_inline __m256i
quant_stage_blocks(const llm_cpu_stage_t *s, const float *x, size_t to,
    __m128 *d)
{
    int      i;
    float    rest[QUANT_STAGE * LLM_BLOCK];
    __m128   id;
    __m512   v;
    __m512i  q[8];

    id = quant_stage_scales(s, &x, rest, d);

    simd_unroll
    for (i = 0; i < 8; i++) {
        v = _mm512_permutexvar_ps(_mm512_set1_epi32(i / 2),
                                  _mm512_castps128_ps512(id));
        q[i] = _mm512_cvtps_epi32(vf_mul(vf_load(x + i * 16), v));
    }

    return quant_stage_codes(s, q, to);
}
