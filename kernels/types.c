/*
 * The table of element types, and the exact float32 values of each format;
 * see types.h.  Blocks are read byte by byte, so a row needs no alignment.
 */

#include "kernels/coded.h"

#include <string.h>


typedef void (*llm_dequantize_pt)(const uint8_t *block, float *dst);

typedef struct {
    const char         *name;
    uint32_t            block;          /* elements */
    uint32_t            size;           /* bytes */
    llm_dequantize_pt   dequantize;     /* one block */
    const llm_book_t   *book;           /* of a coded type; else NULL */
} llm_type_row_t;


static float
llm_load_f16(const uint8_t *p)
{
    uint16_t  h;

    memcpy(&h, p, sizeof(h));

    return llm_f16_to_f32(h);
}


void
llm_block_f32(const uint8_t *b, float *dst)
{
    memcpy(dst, b, sizeof(float));
}


void
llm_block_f16(const uint8_t *b, float *dst)
{
    *dst = llm_load_f16(b);
}


void
llm_block_bf16(const uint8_t *b, float *dst)
{
    uint16_t  h;

    memcpy(&h, b, sizeof(h));
    *dst = llm_bf16_to_f32(h);
}


/* d f16, 16 bytes of two nibbles: the low nibbles are the first half */

void
llm_block_q4_0(const uint8_t *b, float *dst)
{
    int             i;
    float           d;
    const uint8_t  *q;

    d = llm_load_f16(b);
    q = b + 2;

    for (i = 0; i < 16; i++) {
        dst[i] = d * (float) ((q[i] & 15) - 8);
        dst[i + 16] = d * (float) ((q[i] >> 4) - 8);
    }
}


/* d f16, m f16, nibbles */

void
llm_block_q4_1(const uint8_t *b, float *dst)
{
    int             i;
    float           d, m;
    const uint8_t  *q;

    d = llm_load_f16(b);
    m = llm_load_f16(b + 2);
    q = b + 4;

    for (i = 0; i < 16; i++) {
        dst[i] = d * (float) (q[i] & 15) + m;
        dst[i + 16] = d * (float) (q[i] >> 4) + m;
    }
}


/* bit i of the 32 bits at h is the fifth bit of element i */

static int
llm_fifth(const uint8_t *h, int i)
{
    return ((h[i / 8] >> (i % 8)) & 1) << 4;
}


/* d f16, 32 high bits, nibbles */

void
llm_block_q5_0(const uint8_t *b, float *dst)
{
    int             i;
    float           d;
    const uint8_t  *h, *q;

    d = llm_load_f16(b);
    h = b + 2;
    q = b + 6;

    for (i = 0; i < 16; i++) {
        dst[i] = d * (float) (((q[i] & 15) | llm_fifth(h, i)) - 16);
        dst[i + 16] = d * (float) (((q[i] >> 4) | llm_fifth(h, i + 16)) - 16);
    }
}


/* d f16, m f16, 32 high bits, nibbles */

void
llm_block_q5_1(const uint8_t *b, float *dst)
{
    int             i;
    float           d, m;
    const uint8_t  *h, *q;

    d = llm_load_f16(b);
    m = llm_load_f16(b + 2);
    h = b + 4;
    q = b + 8;

    for (i = 0; i < 16; i++) {
        dst[i] = d * (float) ((q[i] & 15) | llm_fifth(h, i)) + m;
        dst[i + 16] = d * (float) ((q[i] >> 4) | llm_fifth(h, i + 16)) + m;
    }
}


/* d f16, 32 signed bytes */

void
llm_block_q8_0(const uint8_t *b, float *dst)
{
    int    i;
    float  d;

    d = llm_load_f16(b);

    for (i = 0; i < 32; i++) {
        dst[i] = d * (float) (int8_t) b[2 + i];
    }
}


/*
 * The K types with 8 sub-blocks of 32: 12 bytes hold 8 scales and 8 minima
 * of 6 bits.  The first four scales are the low 6 bits of bytes 0-3, the first
 * four minima those of bytes 4-7.  The others have their low nibbles in bytes
 * 8-11, and their high 2 bits on top of bytes 0-7.
 */

static void
llm_k_scale(const uint8_t *s, int i, int *scale, int *min)
{
    if (i < 4) {
        *scale = s[i] & 63;
        *min = s[i + 4] & 63;
        return;
    }

    *scale = (s[i + 4] & 15) | ((s[i - 4] >> 6) << 4);
    *min = (s[i + 4] >> 4) | ((s[i] >> 6) << 4);
}


/*
 * d f16, dmin f16, 12 bytes of scales, 128 bytes of nibbles: 32 bytes hold two
 * sub-blocks, the low nibbles the first
 */

void
llm_block_q4_k(const uint8_t *b, float *dst)
{
    int             i, j, scale, min;
    float           d, dmin, f, m;
    const uint8_t  *q;

    d = llm_load_f16(b);
    dmin = llm_load_f16(b + 2);

    for (i = 0; i < 8; i++) {
        llm_k_scale(b + 4, i, &scale, &min);
        f = d * (float) scale;
        m = dmin * (float) min;
        q = b + 16 + (i / 2) * 32;

        for (j = 0; j < 32; j++) {
            *dst++ = f * (float) ((q[j] >> (i % 2 * 4)) & 15) - m;
        }
    }
}


/*
 * as Q4_K with 32 bytes of high bits between scales and nibbles: bit i of
 * byte j belongs to element j of sub-block i
 */

void
llm_block_q5_k(const uint8_t *b, float *dst)
{
    int             i, j, v, scale, min;
    float           d, dmin, f, m;
    const uint8_t  *h, *q;

    d = llm_load_f16(b);
    dmin = llm_load_f16(b + 2);
    h = b + 16;

    for (i = 0; i < 8; i++) {
        llm_k_scale(b + 4, i, &scale, &min);
        f = d * (float) scale;
        m = dmin * (float) min;
        q = b + 48 + (i / 2) * 32;

        for (j = 0; j < 32; j++) {
            v = ((q[j] >> (i % 2 * 4)) & 15) | (((h[j] >> i) & 1) << 4);
            *dst++ = f * (float) v - m;
        }
    }
}


/*
 * 128 bytes of nibbles (the low bits of elements), 64 bytes of pairs of high
 * bits, 16 signed scales, d f16.  Each half of 128 elements is four runs of 32:
 * runs 0 and 1 have the low nibbles of the half's 64 bytes, runs 2 and 3 the
 * high ones; run r has bits 2r and 2r+1 of the half's 32 bytes of high bits.
 */

void
llm_block_q6_k(const uint8_t *b, float *dst)
{
    int             half, r, j, v, scale;
    float           d;
    const uint8_t  *ql, *qh;

    d = llm_load_f16(b + 208);

    for (half = 0; half < 2; half++) {
        qh = b + 128 + half * 32;

        for (r = 0; r < 4; r++) {
            ql = b + half * 64 + (r % 2) * 32;

            for (j = 0; j < 32; j++) {
                v = ((ql[j] >> (r / 2 * 4)) & 15)
                    | (((qh[j] >> (r * 2)) & 3) << 4);
                scale = (int8_t) b[192 + half * 8 + r * 2 + j / 16];

                *dst++ = d * (float) scale * (float) (v - 32);
            }
        }
    }
}


/* converts 32 elements of a coded type */

static void
llm_coded_values(const llm_coded_t *b, llm_scales_t scales,
    const llm_book_t *book, float *dst)
{
    int    i;
    float  d[2], m[2];

    llm_coded_scales(b, scales, book->unit, d, m);

    for (i = 0; i < 32; i++) {
        dst[i] = d[i / 16] * (float) book->values[b->q[i]] + m[i / 16];
    }
}


#define LLM_CODED(NAME, name, number, block, bytes, scales, bits, book)      \
    void                                                                     \
    llm_block_##name(const uint8_t *p, float *dst)                           \
    {                                                                        \
        uint32_t     i;                                                      \
        llm_coded_t  b;                                                      \
                                                                             \
        for (i = 0; i < block / 32; i++) {                                   \
            llm_coded_##name(p, i, &b);                                      \
            llm_coded_values(&b, LLM_SCALES_##scales,                        \
                             &llm_books[LLM_BOOK_##book], dst + 32 * i);     \
        }                                                                    \
    }
#include "kernels/types.def"


static const llm_type_row_t  llm_types[LLM_TYPE_END] = {
#define LLM_FLOAT(NAME, name, number, bytes)                                 \
    [number] = { #NAME, 1, bytes, llm_block_##name, NULL },
#define LLM_QUANT(NAME, name, number, block, bytes, pack, class)             \
    [number] = { #NAME, block, bytes, llm_block_##name, NULL },
#define LLM_CODED(NAME, name, number, block, bytes, scales, bits, book)      \
    [number] = { #NAME, block, bytes, llm_block_##name,                      \
                 &llm_books[LLM_BOOK_##book] },
#include "kernels/types.def"
};


static const llm_type_row_t *
llm_type_row(uint32_t type)
{
    if (type >= LLM_TYPE_END || llm_types[type].name == NULL) {
        return NULL;
    }

    return &llm_types[type];
}


const char *
llm_type_name(uint32_t type)
{
    const llm_type_row_t  *row;

    row = llm_type_row(type);

    return row ? row->name : NULL;
}


size_t
llm_type_block(uint32_t type)
{
    const llm_type_row_t  *row;

    row = llm_type_row(type);

    return row ? row->block : 0;
}


size_t
llm_type_block_size(uint32_t type)
{
    const llm_type_row_t  *row;

    row = llm_type_row(type);

    return row ? row->size : 0;
}


size_t
llm_type_row_size(uint32_t type, size_t n)
{
    const llm_type_row_t  *row;

    row = llm_type_row(type);

    return row ? n / row->block * row->size : 0;
}


const int8_t *
llm_type_codes(uint32_t type)
{
    const llm_type_row_t  *row;

    row = llm_type_row(type);

    return row && row->book ? row->book->values : NULL;
}


void
llm_dequantize(uint32_t type, const void *src, float *dst, size_t n)
{
    size_t                 i;
    const uint8_t         *b;
    const llm_type_row_t  *row;

    row = llm_type_row(type);
    if (row == NULL) {
        return;
    }

    if (type == LLM_TYPE_F32) {
        memcpy(dst, src, n * sizeof(float));
        return;
    }

    b = src;

    if (type == LLM_TYPE_F16) {
        for (i = 0; i < n; i++) {
            dst[i] = llm_load_f16(b + i * sizeof(uint16_t));
        }

        return;
    }

    for (i = 0; i < n; i += row->block) {
        row->dequantize(b, dst + i);
        b += row->size;
    }
}


static float
llm_bits_to_f32(uint32_t u)
{
    float  f;

    memcpy(&f, &u, sizeof(f));

    return f;
}


static uint32_t
llm_f32_to_bits(float f)
{
    uint32_t  u;

    memcpy(&u, &f, sizeof(u));

    return u;
}


float
llm_f16_to_f32(uint16_t h)
{
    float     f;
    uint32_t  sign, exp, mant;

    sign = (uint32_t) (h & 0x8000) << 16;
    exp = (h >> 10) & 31;
    mant = h & 0x3ff;

    if (exp == 31) {
        return llm_bits_to_f32(sign | 0x7f800000 | mant << 13);
    }

    if (exp == 0) {
        /* a subnormal is mant * 2^-24, exact in float32 */
        f = (float) mant * 0x1p-24f;
        return llm_bits_to_f32(sign | llm_f32_to_bits(f));
    }

    return llm_bits_to_f32(sign | (exp + 112) << 23 | mant << 13);
}


uint16_t
llm_f32_to_f16(float f)
{
    uint32_t  u, sign, mant, shift, rest, half;

    u = llm_f32_to_bits(f);
    sign = (u >> 16) & 0x8000;
    u &= 0x7fffffff;

    if (u > 0x7f800000) {
        return (uint16_t) (sign | 0x7e00 | ((u >> 13) & 0x3ff));
    }

    if (u >= 0x477ff000) {
        /* 65520 and more round to infinity */
        return (uint16_t) (sign | 0x7c00);
    }

    if (u >= 0x38800000) {
        u -= 112u << 23;
        u += 0xfff + ((u >> 13) & 1);
        return (uint16_t) (sign | u >> 13);
    }

    if (u < 0x33000000) {
        return (uint16_t) sign;
    }

    /* a subnormal: the mantissa with its hidden bit in units of 2^-24 */

    shift = 126 - (u >> 23);
    mant = (u & 0x7fffff) | 0x800000;
    rest = mant & ((1u << shift) - 1);
    half = 1u << (shift - 1);
    mant >>= shift;

    if (rest > half || (rest == half && (mant & 1))) {
        mant++;
    }

    return (uint16_t) (sign | mant);
}


float
llm_bf16_to_f32(uint16_t h)
{
    return llm_bits_to_f32((uint32_t) h << 16);
}


uint16_t
llm_f32_to_bf16(float f)
{
    uint32_t  u;

    u = llm_f32_to_bits(f);

    if ((u & 0x7fffffff) > 0x7f800000) {
        return (uint16_t) (u >> 16 | 64);
    }

    return (uint16_t) ((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}


float
llm_e4m3_to_f32(uint8_t e)
{
    uint32_t  sign, exp, mant;

    sign = (uint32_t) (e & 0x80) << 24;
    exp = (e >> 3) & 15;
    mant = e & 7;

    if ((e & 0x7f) == 0x7f) {
        return llm_bits_to_f32(sign | 0x7fc00000);
    }

    if (exp == 0) {
        /* a subnormal is mant * 2^-9 */
        return llm_bits_to_f32(sign
                               | llm_f32_to_bits((float) mant * 0x1p-9f));
    }

    return llm_bits_to_f32(sign | (exp + 120) << 23 | mant << 20);
}


uint8_t
llm_f32_to_e4m3(float f)
{
    uint32_t  u, sign;

    u = llm_f32_to_bits(f);
    sign = (u >> 24) & 0x80;
    u &= 0x7fffffff;

    if (u > 0x7f800000) {
        return (uint8_t) (sign | 0x7f);
    }

    if (u >= 0x43e00000) {
        return (uint8_t) (sign | 0x7e);
    }

    if (u < 0x3c800000) {
        /* a subnormal: adding 2^14 leaves multiples of 2^-9, rounded */
        u = llm_f32_to_bits(llm_bits_to_f32(u) + 0x1p14f);
        return (uint8_t) (sign | (u & 15));
    }

    u -= 120u << 23;
    u += 0x7ffff + ((u >> 20) & 1);

    return (uint8_t) (sign | u >> 20);
}
