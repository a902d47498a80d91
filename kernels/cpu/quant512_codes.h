/*
 * Reading packed quantised panels by AVX-512: codes and scales of a block;
 * included after simd512.h and quant.h.
 */

/* the eight groups of a block's codes, a byte each */

simd_inline void
quant_codes(uint32_t pack, const uint8_t *c, __m512i w[8])
{
    int      i, shift;
    __m512i  v, h, low, bits;

    if (quant_bits(pack) == 8) {
        simd_unroll
        for (i = 0; i < 8; i++) {
            w[i] = _mm512_load_si512(c + i * 64);
        }

        return;
    }

    low = _mm512_set1_epi8(15);

    simd_unroll
    for (i = 0; i < 4; i++) {
        v = _mm512_load_si512(c + i * 64);
        w[2 * i] = _mm512_and_si512(v, low);
        w[2 * i + 1] = _mm512_and_si512(_mm512_srli_epi16(v, 4), low);
    }

    if (quant_bits(pack) == 4) {
        return;
    }

    bits = _mm512_set1_epi8(quant_bits(pack) == 5 ? 0x10 : 0x30);

    simd_unroll
    for (i = 0; i < 8; i++) {
        if (quant_bits(pack) == 5) {
            h = _mm512_load_si512(c + 256);
            shift = 4 - i;

        } else {
            h = _mm512_load_si512(c + 256 + i / 4 * 64);
            shift = 4 - i % 4 * 2;
        }

        h = shift >= 0 ? _mm512_slli_epi16(h, (unsigned) shift)
                       : _mm512_srli_epi16(h, (unsigned) -shift);

        /* w | h & bits */
        w[i] = _mm512_ternarylogic_epi32(w[i], h, bits, 0xf8);
    }
}


/*
 * The scales of block b: d[0], and d[1] for the second half of Q6_K's; the
 * minimum m, to be added.
 */

simd_inline void
quant_scales(uint32_t pack, const uint8_t *s, uint32_t b, __m512 d[2],
    __m512 *m)
{
    __m512          x;
    const uint8_t  *p;

#define quant_f16(p)  _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) (p)))
#define quant_u8(p)                                                          \
    _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(                                 \
                       _mm_loadu_si128((const __m128i *) (p))))
#define quant_i8(p)                                                          \
    _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(                                 \
                       _mm_loadu_si128((const __m128i *) (p))))

    switch (pack) {

    case LLM_PACK_Q8_0:
    case LLM_PACK_Q4_0:
    case LLM_PACK_Q5_0:
        d[0] = quant_f16(s + b * 32);
        return;

    case LLM_PACK_Q4_1:
    case LLM_PACK_Q5_1:
        d[0] = quant_f16(s + b * 64);
        *m = quant_f16(s + b * 64 + 32);
        return;

    case LLM_PACK_Q6_K:
        p = s + b / 8 * 288;
        x = quant_f16(p);
        p += 32 + b % 8 * 32;
        d[0] = _mm512_mul_ps(x, quant_i8(p));
        d[1] = _mm512_mul_ps(x, quant_i8(p + 16));
        return;

    default:  /* Q4_K, Q5_K */
        p = s + b / 8 * 320;
        d[0] = _mm512_mul_ps(quant_f16(p), quant_u8(p + 64 + b % 8 * 32));
        x = _mm512_sub_ps(_mm512_setzero_ps(), quant_f16(p + 32));
        *m = _mm512_mul_ps(x, quant_u8(p + 64 + b % 8 * 32 + 16));
    }

#undef quant_f16
#undef quant_u8
#undef quant_i8
}
