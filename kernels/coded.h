/*
 * The coded types: element types whose elements are codes of at most four bits,
 * indexes of a codebook of integers (a book), with a scale for each block of 32
 * elements or for each half of it.  Their rows in types.def give the length of
 * a code, the scales and the book.  This file reads the blocks of a GGUF file,
 * for the CPU and for CUDA; their values, the CPU's panels and CUDA's tiles are
 * made from what it reads.
 *
 *     element = scale of its half * book.values[code] + minimum of its half
 *
 * Invariant: any bytes are a valid block, and every index is inside its table.
 * Functions and tables without state.  Layouts: github.com/ggml-org/ggml,
 * src/ggml-common.h; MXFP4: OCP Microscaling Formats, revision 1.0.
 */

#ifndef LLM_CODED_H
#define LLM_CODED_H

#include "kernels/types.h"

/* CUDA's compiler must be told what the device needs, too */

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


/* scales of codes: ...32: one for each 32 elements, ...16: one for each 16 */
typedef enum {
    LLM_SCALES_H32 = 0,                 /* binary16 */
    LLM_SCALES_E32,                     /* power of two: e8m0 */
    LLM_SCALES_E16,                     /* e4m3 without a sign */
    LLM_SCALES_K32,                     /* binary16 for each 256, times a
                                           signed byte */
    LLM_SCALES_K16,                     /* as K32 */
    LLM_SCALES_M16                      /* binary16 for each 256, times a
                                           nibble; minima of the same form */
} llm_scales_t;

typedef struct {
    float                unit;          /* factor on the scales */
    int8_t               values[16];    /* value of each code */
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
 * In the IQ types except IQ4, the low bits of a code come from a grid, and the
 * bit above them is the sign.  In IQ1 that bit says whether the elements -1, 0
 * and 1 are moved up or down by an eighth.
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

/* 32 elements of a block: codes, and scales as stored in the file; what the
   type does not have is not set */
typedef struct {
    uint8_t              q[32];         /* codes */
    uint16_t             d;             /* scale, binary16 */
    uint16_t             m;             /* minimum, or scale of minima */
    uint8_t              s0;            /* scale of the 32 elements, or of the
                                           first half; M16: and its minimum */
    uint8_t              s1;            /* the same of the second half; Q4_K and
                                           Q5_K: minimum of the 32 elements */
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


/* nibble i of the bytes at p, the low nibble of a byte before the high one */

LLM_BOTH uint32_t
llm_coded_nibble(const uint8_t *p, uint32_t i)
{
    return (uint32_t) p[i / 2] >> i % 2 * 4 & 15;
}


/* n bytes of two nibbles: the n low nibbles, then the n high ones */

LLM_BOTH void
llm_coded_nibbles(const uint8_t *src, uint8_t *q, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        q[i] = src[i] & 15;
        q[i + n] = src[i] >> 4;
    }
}


/* codes from a grid's row: n elements of `bits`, each with its bit of `signs`
   above them */

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


/* adds the eighth sign to seven: the number of set signs is even */

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


/* ---- readers: the i-th 32 elements of the file's block at p ---- */

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


/* d f16; for each 32: 4 indexes, then 4 x 7 bits of signs and 4 of scale */

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


/* d f16, 32 words (9 bits of index and 7 signs each), 16 nibbles of scales */

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


/* d f16, 64 indexes of 4 elements; for each 32: signs and scale as in IQ2_XXS,
   4 bytes */

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
 * d f16, 32 indexes, 8 words: 4 x 3 high bits of indexes, 3 bits of scale, and
 * a bit that is 1 if the elements are moved down
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
 * 32 indexes; 32 nibbles: 3 high bits of the index, and a bit that is 1 if the
 * 8 elements are moved down; 4 words: 4 scales of 3 bits and a nibble of d, the
 * lowest nibble first
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
 * 48 bytes of five elements: digits of base 3, the highest first, of a number
 * that is stored times 256 / 3^5; 4 bytes of four elements; d f16.  Elements
 * are in the order of the first digit of bytes 0-31, their second digit and so
 * on, then the digits of bytes 32-47, then those of the last 4 bytes.
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
 * 4 scales in e4m3, then 8 bytes of nibbles for each 16 elements.  The scales
 * have no sign; e4m3's NaN means 0, as in ggml.
 */

LLM_BOTH void
llm_coded_nvfp4(const uint8_t *p, uint32_t i, llm_coded_t *b)
{
    b->s0 = p[2 * i] == 127 ? 0 : p[2 * i] & 127;
    b->s1 = p[2 * i + 1] == 127 ? 0 : p[2 * i + 1] & 127;
    llm_coded_nibbles(p + 4 + 16 * i, b->q, 8);
    llm_coded_nibbles(p + 12 + 16 * i, b->q + 16, 8);
}


/* ---- scales as floats ---- */

/* d: the scales of both halves; m: the minima that are added to elements */

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
        /* 2^(s - 128), because the book has doubled values */
        d[0] = d[1] = llm_coded_float(b->s0 < 2 ? 0x200000u << b->s0
                                                : (b->s0 - 1u) << 23);
        return;

    case LLM_SCALES_E16:
        /* read as binary16, whose exponent has bias 15 and not 7: times 2^8,
           then halved, because the book has doubled values */
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
