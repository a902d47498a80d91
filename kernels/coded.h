/*
 * The coded types: those whose elements are codes of at most four bits into
 * a table of whole numbers (a book), scaled by blocks of 32 or halves of one.
 * Their rows in types.def say how long a code is, what scales it and which
 * book it is for; here, once for the CPU and for CUDA, is how a block of the
 * file is read.  Values, panels and tiles follow from that.
 *
 *     element = scale of its half * book.values[code] + minimum of its half
 *
 * Invariant: any bytes are a valid block, and no index leaves its table.
 * Facts without state.  Layouts: github.com/ggml-org/ggml,
 * src/ggml-common.h; MXFP4: OCP Microscaling Formats, revision 1.0.
 */

#ifndef LLM_CODED_H
#define LLM_CODED_H

#include "kernels/types.h"

/* CUDA's compiler wants to be told what the device needs, too */

#ifdef __cplusplus
#define LLM_BOTH  static __device__ inline
#define LLM_DATA  static __device__
#define llm_coded_half(h)   llm_h2f(h)
#define llm_coded_float(u)  __uint_as_float(u)
#else
#define LLM_BOTH  static inline
#define LLM_DATA  static
#define llm_coded_half(h)   llm_f16_to_f32(h)
#define llm_coded_float(u)  ((union { uint32_t bits; float f; }) { u }).f
#endif

#include "kernels/grids.h"


/* what scales codes; 32 and 16: a block, or each half of one */
typedef enum {
    LLM_SCALES_H32 = 0,                 /* binary16 */
    LLM_SCALES_E32,                     /* power of two: e8m0 */
    LLM_SCALES_E16,                     /* e4m3 without a sign */
    LLM_SCALES_K32,                     /* binary16 of 256, a signed byte */
    LLM_SCALES_K16,
    LLM_SCALES_M16                      /* K16 of nibbles, with minima */
} llm_scales_t;

typedef struct {
    float                unit;          /* of the scales */
    int8_t               values[16];    /* what a code is worth */
} llm_book_t;

typedef enum {
    LLM_BOOK_TERNARY = 0,
    LLM_BOOK_2,                         /* 0 to 3 */
    LLM_BOOK_3,                         /* -4 to 3 */
    LLM_BOOK_IQ1,
    LLM_BOOK_IQ2,
    LLM_BOOK_IQ3_XXS,
    LLM_BOOK_IQ3_S,
    LLM_BOOK_IQ4,
    LLM_BOOK_FP4,                       /* e2m1, doubled */
    LLM_BOOK_N
} llm_book_id_t;

/*
 * A grid's row has magnitudes; the bit above them is the sign.  IQ1's
 * elements are -1, 0 and 1, moved up or down by an eighth.
 */

LLM_DATA const llm_book_t  llm_books[LLM_BOOK_N] = {
    /* LLM_BOOK_TERNARY */
    { 1.0f, { -1, 0, 1, 2 } },
    /* LLM_BOOK_2 */
    { 1.0f, { 0, 1, 2, 3 } },
    /* LLM_BOOK_3 */
    { 1.0f, { -4, -3, -2, -1, 0, 1, 2, 3 } },
    /* LLM_BOOK_IQ1 */
    { 0.125f, { -7, 1, 9, 0, -9, -1, 7, 0 } },
    /* LLM_BOOK_IQ2 */
    { 0.125f, { 8, 25, 43, 0, -8, -25, -43, 0 } },
    /* LLM_BOOK_IQ3_XXS */
    { 0.25f, { 4, 12, 20, 28, 36, 44, 52, 62,
               -4, -12, -20, -28, -36, -44, -52, -62 } },
    /* LLM_BOOK_IQ3_S */
    { 1.0f, { 1, 3, 5, 7, 9, 11, 13, 15,
              -1, -3, -5, -7, -9, -11, -13, -15 } },
    /* LLM_BOOK_IQ4 */
    { 1.0f, { -127, -104, -83, -65, -49, -35, -22, -10,
              1, 13, 25, 38, 53, 69, 89, 113 } },
    /* LLM_BOOK_FP4 */
    { 1.0f, { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 } }
};

/* 32 elements of a block: codes, and scales as the file has them */
typedef struct {
    uint8_t              q[32];
    uint16_t             d;             /* binary16 */
    uint16_t             m;
    uint8_t              s0;            /* of the block or its first half */
    uint8_t              s1;
} llm_coded_t;


LLM_BOTH uint16_t
llm_coded_u16(const uint8_t *p)
{
    return (uint16_t) (p[0] | p[1] << 8);
}


LLM_BOTH uint32_t
llm_coded_u32(const uint8_t *p)
{
    return llm_coded_u16(p) | (uint32_t) llm_coded_u16(p + 2) << 16;
}


/* nibble i of bytes that have the low one first */

LLM_BOTH uint32_t
llm_coded_nibble(const uint8_t *p, uint32_t i)
{
    return (uint32_t) p[i / 2] >> i % 2 * 4 & 15;
}


/* n bytes of two nibbles: the low ones come first, then the high ones */

LLM_BOTH void
llm_coded_nibbles(const uint8_t *src, uint8_t *q, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        q[i] = src[i] & 15;
        q[i + n] = src[i] >> 4;
    }
}


/* a grid's row: n elements of `bits`, each with a bit of signs above them */

LLM_BOTH void
llm_coded_row(uint8_t *q, uint32_t row, uint32_t signs, uint32_t n,
    uint32_t bits)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        q[i] = (uint8_t) ((row >> bits * i & ((1u << bits) - 1))
                          | (signs >> i & 1) << bits);
    }
}


/* the eighth sign of seven: their number is even */

LLM_BOTH uint32_t
llm_coded_signs(uint32_t seven)
{
    uint32_t  odd;

    seven &= 127;
    odd = seven ^ seven >> 4;
    odd ^= odd >> 2;
    odd ^= odd >> 1;

    return seven | (odd & 1) << 7;
}


/* ---- the types: the i-th 32 elements of the file's block at p ---- */

/* 16 nibbles of scales and minima, 64 bytes of 2 bits, d and dmin f16 */

LLM_BOTH void
llm_coded_q2_k(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    uint32_t  l;

    b->s0 = p[2 * i];
    b->s1 = p[2 * i + 1];
    b->d = llm_coded_u16(p + 80);
    b->m = llm_coded_u16(p + 82);

    p += 16 + i / 4 * 32;

    for (l = 0; l < 32; l++) {
        b->q[l] = p[l] >> i % 4 * 2 & 3;
    }
}


/* scale j of 16: low nibbles in 8 bytes, pairs of high bits in 4 */

LLM_BOTH uint8_t
llm_coded_q3_scale(const uint8_t *s, uint32_t j)
{
    uint32_t  low, high;

    low = (uint32_t) s[j % 8] >> j / 8 * 4 & 15;
    high = (uint32_t) s[8 + j % 4] >> j / 4 * 2 & 3;

    return (uint8_t) ((low | high << 4) - 32);
}


/* 32 bytes of third bits, 64 bytes of 2 bits, 12 of scales, d f16 */

LLM_BOTH void
llm_coded_q3_k(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    uint32_t        l;
    const uint8_t  *low;

    b->s0 = llm_coded_q3_scale(p + 96, 2 * i);
    b->s1 = llm_coded_q3_scale(p + 96, 2 * i + 1);
    b->d = llm_coded_u16(p + 108);

    low = p + 32 + i / 4 * 32;

    for (l = 0; l < 32; l++) {
        b->q[l] = (uint8_t) ((low[l] >> i % 4 * 2 & 3)
                             | (p[l] >> i & 1) << 2);
    }
}


/* d f16; for each 32: 4 indexes, then 4 times 7 signs and the scale */

LLM_BOTH void
llm_coded_iq2_xxs(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    uint32_t  k, v;

    b->d = llm_coded_u16(p);
    p += 2 + 8 * i;
    v = llm_coded_u32(p + 4);
    b->s0 = (uint8_t) (2 * (v >> 28) + 1);

    for (k = 0; k < 4; k++) {
        llm_coded_row(b->q + 8 * k, llm_grid_iq2_xxs[p[k]],
                      llm_coded_signs(v >> 7 * k), 8, 2);
    }
}


/* d f16, 32 words of 9 bits of index and 7 signs, 16 nibbles of scales */

LLM_BOTH void
llm_coded_iq2_xs(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    uint32_t  k, v;

    b->d = llm_coded_u16(p);
    b->s0 = (uint8_t) (2 * (p[66 + i] & 15) + 1);
    b->s1 = (uint8_t) (2 * (p[66 + i] >> 4) + 1);
    p += 2 + 8 * i;

    for (k = 0; k < 4; k++) {
        v = llm_coded_u16(p + 2 * k);
        llm_coded_row(b->q + 8 * k, llm_grid_iq2_xs[v & 511],
                      llm_coded_signs(v >> 9), 8, 2);
    }
}


/* d f16, 32 indexes, 32 bytes of signs, 8 of pairs of high bits, 8 of scales */

LLM_BOTH void
llm_coded_iq2_s(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    uint32_t  k, v;

    b->d = llm_coded_u16(p);
    b->s0 = (uint8_t) (2 * (p[74 + i] & 15) + 1);
    b->s1 = (uint8_t) (2 * (p[74 + i] >> 4) + 1);

    for (k = 0; k < 4; k++) {
        v = p[2 + 4 * i + k] | ((uint32_t) p[66 + i] >> 2 * k & 3) << 8;
        llm_coded_row(b->q + 8 * k, llm_grid_iq2_s[v], p[34 + 4 * i + k], 8,
                      2);
    }
}


/* d f16, 64 indexes of 4 elements, 8 times what IQ2_XXS has behind its own */

LLM_BOTH void
llm_coded_iq3_xxs(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    uint32_t  k, v, signs;

    b->d = llm_coded_u16(p);
    v = llm_coded_u32(p + 66 + 4 * i);
    b->s0 = (uint8_t) (2 * (v >> 28) + 1);
    p += 2 + 8 * i;

    for (k = 0; k < 8; k++) {
        signs = llm_coded_signs(v >> 7 * (k / 2)) >> k % 2 * 4;
        llm_coded_row(b->q + 4 * k, llm_grid_iq3_xxs[p[k]], signs, 4, 3);
    }
}


/* d f16, 64 indexes, 8 bytes of high bits, 32 of signs, 8 nibbles of scales */

LLM_BOTH void
llm_coded_iq3_s(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    uint32_t  k, v, signs;

    b->d = llm_coded_u16(p);
    b->s0 = (uint8_t) (2 * llm_coded_nibble(p + 106, i) + 1);

    for (k = 0; k < 8; k++) {
        v = p[2 + 8 * i + k] | ((uint32_t) p[66 + i] >> k & 1) << 8;
        signs = (uint32_t) p[74 + 4 * i + k / 2] >> k % 2 * 4;
        llm_coded_row(b->q + 4 * k, llm_grid_iq3_s[v], signs, 4, 3);
    }
}


/*
 * d f16, 32 indexes, 8 words: 4 times 3 high bits, 3 bits of scale, and
 * whether the elements are moved down
 */

LLM_BOTH void
llm_coded_iq1_s(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    uint32_t  k, v;

    b->d = llm_coded_u16(p);
    v = llm_coded_u16(p + 34 + 2 * i);
    b->s0 = (uint8_t) (2 * (v >> 12 & 7) + 1);
    p += 2 + 4 * i;

    for (k = 0; k < 4; k++) {
        llm_coded_row(b->q + 8 * k,
                      llm_grid_iq1[p[k] | (v >> 3 * k & 7) << 8],
                      v >> 15 ? 255 : 0, 8, 2);
    }
}


/*
 * 32 indexes; 32 nibbles of 3 high bits and whether the 8 elements are moved
 * down; 4 words, each of 4 scales of 3 bits and a nibble of d, the lowest
 * first
 */

LLM_BOTH void
llm_coded_iq1_m(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    uint32_t  k, v;

    for (k = 0, v = 0; k < 4; k++) {
        v |= (uint32_t) (p[49 + 2 * k] >> 4) << 4 * k;
    }

    b->d = (uint16_t) v;
    v = (uint32_t) llm_coded_u16(p + 48 + i / 2 * 2) >> i % 2 * 6;
    b->s0 = (uint8_t) (2 * (v & 7) + 1);
    b->s1 = (uint8_t) (2 * (v >> 3 & 7) + 1);

    for (k = 0; k < 4; k++) {
        v = llm_coded_nibble(p + 32, 4 * i + k);
        llm_coded_row(b->q + 8 * k,
                      llm_grid_iq1[p[4 * i + k] | (v & 7) << 8],
                      v & 8 ? 255 : 0, 8, 2);
    }
}


/* d f16, nibbles */

LLM_BOTH void
llm_coded_iq4_nl(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    (void) i;

    b->d = llm_coded_u16(p);
    llm_coded_nibbles(p + 2, b->q, 16);
}


/* d f16, 8 pairs of high bits and 8 nibbles of scales, nibbles */

LLM_BOTH void
llm_coded_iq4_xs(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    uint32_t  high;

    b->d = llm_coded_u16(p);
    high = (uint32_t) llm_coded_u16(p + 2) >> 2 * i & 3;
    b->s0 = (uint8_t) ((llm_coded_nibble(p + 4, i) | high << 4) - 32);
    llm_coded_nibbles(p + 8 + 16 * i, b->q, 16);
}


/*
 * Bytes of five elements, as q * 256 / 3^5: the highest digit of base 3 is
 * the first.  48 of them: each digit of the first 32, then of the next 16;
 * then 4 bytes of four elements, and d f16.
 */

LLM_BOTH void
llm_coded_tq1_0(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    uint32_t  l, k, digit, v;

    b->d = llm_coded_u16(p + 52);
    b->s0 = 1;

    for (l = 0; l < 32; l++) {
        k = 32 * i + l;

        if (k < 160) {
            digit = k / 32;
            v = p[k % 32];

        } else if (k < 240) {
            digit = (k - 160) / 16;
            v = p[32 + k % 16];

        } else {
            digit = (k - 240) / 4;
            v = p[48 + k % 4];
        }

        while (digit > 0) {
            v = v * 3 & 255;
            digit--;
        }

        b->q[l] = (uint8_t) (v * 3 >> 8);
    }
}


/* 64 bytes of 2 bits, d f16 */

LLM_BOTH void
llm_coded_tq2_0(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    uint32_t  l;

    b->d = llm_coded_u16(p + 64);
    b->s0 = 1;
    p += i / 4 * 32;

    for (l = 0; l < 32; l++) {
        b->q[l] = p[l] >> i % 4 * 2 & 3;
    }
}


/* e8m0, nibbles */

LLM_BOTH void
llm_coded_mxfp4(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    (void) i;

    b->s0 = p[0];
    llm_coded_nibbles(p + 1, b->q, 16);
}


/*
 * 4 times e4m3, then each 16 elements' nibbles.  The format has no sign and,
 * as ggml reads it, 0 where e4m3 has its NaN.
 */

LLM_BOTH void
llm_coded_nvfp4(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    b->s0 = p[2 * i] == 127 ? 0 : p[2 * i] & 127;
    b->s1 = p[2 * i + 1] == 127 ? 0 : p[2 * i + 1] & 127;
    llm_coded_nibbles(p + 4 + 16 * i, b->q, 8);
    llm_coded_nibbles(p + 12 + 16 * i, b->q + 16, 8);
}


/* ---- what follows from them ---- */

/* the scales of both halves and what is added to them, as floats */

LLM_BOTH void
llm_coded_scales(const llm_coded_t *b, llm_scales_t scales, float unit,
    float d[2], float m[2])
{
    float  super;

    m[0] = m[1] = 0;

    switch (scales) {

    case LLM_SCALES_H32:
        d[0] = d[1] = llm_coded_half(b->d) * unit;
        return;

    case LLM_SCALES_E32:
        /* 2^(s - 128), the codes being doubled */
        d[0] = d[1] = llm_coded_float(b->s0 < 2 ? 0x200000u << b->s0
                                                : (b->s0 - 1u) << 23);
        return;

    case LLM_SCALES_E16:
        /* binary16 has four bits of exponent more, with bias 15 for 7 */
        d[0] = llm_coded_half((uint16_t) (b->s0 << 7)) * 128.0f;
        d[1] = llm_coded_half((uint16_t) (b->s1 << 7)) * 128.0f;
        return;

    case LLM_SCALES_K32:
        super = llm_coded_half(b->d) * unit;
        d[0] = d[1] = super * (float) (int8_t) b->s0;
        return;

    case LLM_SCALES_K16:
        super = llm_coded_half(b->d) * unit;
        d[0] = super * (float) (int8_t) b->s0;
        d[1] = super * (float) (int8_t) b->s1;
        return;

    default: /* LLM_SCALES_M16 */
        super = llm_coded_half(b->d) * unit;
        d[0] = super * (float) (b->s0 & 15);
        d[1] = super * (float) (b->s1 & 15);
        super = -llm_coded_half(b->m);
        m[0] = super * (float) (b->s0 >> 4);
        m[1] = super * (float) (b->s1 >> 4);
    }
}

#endif /* LLM_CODED_H */
