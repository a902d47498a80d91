/*
 * Reads the codes and scales of packed quantised panels with AVX-512; included
 * after simd512.h and quant.h.
 */

/* the type's book in every quarter of a vector; unused by packings without a
   book */

simd_inline __m512i
quant_book(const llm_weight_t *w)
{
    return _mm512_broadcast_i32x4(
               _mm_loadu_si128((const __m128i *) w->format.book));
}


/* codes of 4, 5 or 6 bits: nibbles, then the bits above them */

simd_inline void
quant_codes_wide(uint32_t pack, const uint8_t *c, __m512i w[8])
{
    int      i, shift;
    __m512i  v, h, low, bits;

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


/* codes of 2 or 3 bits: pairs, then the third bits */

simd_inline void
quant_codes_narrow(uint32_t pack, const uint8_t *c, __m512i w[8])
{
    int      i;
    __m512i  h, low, third;

    low = _mm512_set1_epi8(3);
    third = _mm512_set1_epi8(4);

    simd_unroll
    for (i = 0; i < 8; i++) {
        w[i] = _mm512_srli_epi16(_mm512_load_si512(c + i / 4 * 64),
                                 (unsigned) (i % 4 * 2));
        w[i] = _mm512_and_si512(w[i], low);

        if (quant_bits(pack) == 3) {
            h = _mm512_load_si512(c + 128);
            h = i < 2 ? _mm512_slli_epi16(h, (unsigned) (2 - i))
                      : _mm512_srli_epi16(h, (unsigned) (i - 2));
            w[i] = _mm512_ternarylogic_epi32(w[i], h, third, 0xf8);
        }
    }
}


/* the eight groups of a block's factors, a byte each */

simd_inline void
quant_codes(uint32_t pack, const uint8_t *c, __m512i book, __m512i w[8])
{
    int  i;

    if (quant_bits(pack) == 8) {
        simd_unroll
        for (i = 0; i < 8; i++) {
            w[i] = _mm512_load_si512(c + i * 64);
        }

    } else if (quant_bits(pack) >= 4) {
        quant_codes_wide(pack, c, w);

    } else {
        quant_codes_narrow(pack, c, w);
    }

    if (quant_has_book(pack)) {
        simd_unroll
        for (i = 0; i < 8; i++) {
            w[i] = _mm512_shuffle_epi8(book, w[i]);
        }
    }
}


/* *d = x times the low nibbles of 16 bytes, *m = y times the high ones */

simd_inline void
quant_nibbles(const uint8_t *p, __m512 x, __m512 y, __m512 *d, __m512 *m)
{
    __m512i  v, low;

    v = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *) p));
    low = _mm512_and_si512(v, _mm512_set1_epi32(15));

    *d = _mm512_mul_ps(x, _mm512_cvtepi32_ps(low));
    *m = _mm512_mul_ps(y, _mm512_cvtepi32_ps(_mm512_srli_epi32(v, 4)));
}


/*
 * The scales of block b: d[0], and d[1] for the second half if each half has a
 * scale.  m: the minima, to be added.
 */

simd_inline void
quant_scales(uint32_t pack, const uint8_t *s, uint32_t b, __m512 d[2],
    __m512 m[2])
{
    __m512          x;
    __m512i         v;
    const uint8_t  *p;

#define quant_f16(p)  _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) (p)))
#define quant_u8(p)                                                          \
    _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(                                 \
                       _mm_loadu_si128((const __m128i *) (p))))
#define quant_i8(p)                                                          \
    _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(                                 \
                       _mm_loadu_si128((const __m128i *) (p))))

#define quant_e4m3(p)                                                        \
    _mm512_mul_ps(_mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(    \
                      _mm_loadu_si128((const __m128i *) (p))), 7)),          \
                  _mm512_set1_ps(128))

    switch (quant_scale(pack)) {

    case LLM_SCALE_H32:
        d[0] = quant_f16(s + b * 32);
        return;

    case LLM_SCALE_HM32:
        d[0] = quant_f16(s + b * 64);
        m[0] = quant_f16(s + b * 64 + 32);
        return;

    case LLM_SCALE_E32:
        /* 2^(s - 128), flushed to 0 if it is 2^-127 or less */
        v = _mm512_cvtepu8_epi32(
                _mm_subs_epu8(_mm_loadu_si128((const __m128i *) (s + b * 16)),
                              _mm_set1_epi8(1)));
        d[0] = _mm512_castsi512_ps(_mm512_slli_epi32(v, 23));
        return;

    case LLM_SCALE_E16:
        /* as in llm_coded_scales() */
        d[0] = quant_e4m3(s + b * 32);
        d[1] = quant_e4m3(s + b * 32 + 16);
        return;

    case LLM_SCALE_KH16:
        p = s + b / 8 * quant_scale_size(pack);
        x = quant_f16(p);
        p += 32 + b % 8 * 32;
        d[0] = _mm512_mul_ps(x, quant_i8(p));
        d[1] = _mm512_mul_ps(x, quant_i8(p + 16));
        return;

    case LLM_SCALE_K32:
        p = s + b / 8 * quant_scale_size(pack);
        d[0] = _mm512_mul_ps(_mm512_loadu_ps(p),
                             quant_i8(p + 64 + b % 8 * 16));
        return;

    case LLM_SCALE_K16:
        p = s + b / 8 * quant_scale_size(pack);
        x = _mm512_loadu_ps(p);
        p += 64 + b % 8 * 32;
        d[0] = _mm512_mul_ps(x, quant_i8(p));
        d[1] = _mm512_mul_ps(x, quant_i8(p + 16));
        return;

    case LLM_SCALE_M16:
        p = s + b / 8 * quant_scale_size(pack);
        x = _mm512_sub_ps(_mm512_setzero_ps(), _mm512_loadu_ps(p + 64));
        quant_nibbles(p + 128 + b % 8 * 32, _mm512_loadu_ps(p), x, &d[0],
                      &m[0]);
        quant_nibbles(p + 144 + b % 8 * 32, _mm512_loadu_ps(p), x, &d[1],
                      &m[1]);
        return;

    default:  /* LLM_SCALE_KM32 */
        p = s + b / 8 * quant_scale_size(pack);
        d[0] = _mm512_mul_ps(quant_f16(p), quant_u8(p + 64 + b % 8 * 32));
        x = _mm512_sub_ps(_mm512_setzero_ps(), quant_f16(p + 32));
        m[0] = _mm512_mul_ps(x, quant_u8(p + 64 + b % 8 * 32 + 16));
    }

#undef quant_e4m3
#undef quant_f16
#undef quant_u8
#undef quant_i8
}
