/*
 * Products of quantised weights with AVX2; included after simd_gemm.h and
 * quant.h.
 *
 * VPMADDUBSW adds two products of unsigned and signed bytes in 16 bits, and
 * saturates.  To avoid that, 16-bit sums are widened after 8, 4, 2 or 1 groups
 * of factors with up to 4, 5, 6 or 7 bits; factors of 8 bits are multiplied as
 * magnitudes, with their signs moved to x, and widened after each group, or
 * with many rows as nibbles (quant256_many.h).  Fine activations are 16-bit
 * integers, and so are codes for them.  So dot products are exact, as with all
 * instruction sets.
 *
 * With AVX-VNNI, VPDPBUSD adds to 32 bits, and nothing of this is needed.
 */

#define QUANT_MM       4

/* 1: with AVX-VNNI (avxvnni.c) */
#ifndef QUANT_VNNI
#define QUANT_VNNI     0
#endif


/* the type's book in both halves of a vector */

simd_inline __m256i
quant_book(const llm_weight_t *w)
{
    return _mm256_broadcastsi128_si256(
               _mm_loadu_si128((const __m128i *) w->format.book));
}


/* v shifted left by n bits, or right if n < 0, in lanes of 16 bits; callers
   mask out the bits of the neighbouring byte */

simd_inline __m256i
quant_shift(__m256i v, int n)
{
    return n >= 0 ? _mm256_slli_epi16(v, n) : _mm256_srli_epi16(v, -n);
}


/* the codes of 8 rows of group i of a packed block, a byte each */

simd_inline __m256i
quant_group_codes(uint32_t pack, const uint8_t *c, int i)
{
    int      shift;
    __m256i  v, h, mask;

    const int  bits = quant_bits(pack);

#define quant_plane(at)  _mm256_load_si256((const __m256i *) (c + (at)))

    if (bits == 8) {
        return quant_plane(i * 64);
    }

    if (bits < 4) {
        v = quant_shift(quant_plane(i / 4 * 64), -(i % 4 * 2));
        v = _mm256_and_si256(v, _mm256_set1_epi8(3));
        h = bits == 3 ? quant_plane(128) : _mm256_setzero_si256();
        shift = 2 - i;
        mask = _mm256_set1_epi8(4);

    } else {
        v = quant_shift(quant_plane(i / 2 * 64), -(i % 2 * 4));
        v = _mm256_and_si256(v, _mm256_set1_epi8(15));
        h = bits == 5 ? quant_plane(256)
            : bits == 6 ? quant_plane(256 + i / 4 * 64)
            : _mm256_setzero_si256();
        shift = bits == 5 ? 4 - i : 4 - i % 4 * 2;
        mask = _mm256_set1_epi8(bits == 5 ? 0x10 : 0x30);
    }

#undef quant_plane

    if (bits == 2 || bits == 4) {
        return v;
    }

    return _mm256_or_si256(v, _mm256_and_si256(quant_shift(h, shift), mask));
}


/* the factors of 8 rows of group i: the codes, or what the book has for them */

simd_inline __m256i
quant_group(uint32_t pack, const uint8_t *c, __m256i book, int i)
{
    __m256i  v;

    v = quant_group_codes(pack, c, i);

    return quant_has_book(pack) ? _mm256_shuffle_epi8(book, v) : v;
}


/* *d = x times the low nibbles of 8 bytes, *m = y times the high ones */

simd_inline void
quant_nibbles(const uint8_t *p, __m256 x, __m256 y, __m256 *d, __m256 *m)
{
    __m256i  v, low;

    v = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *) p));
    low = _mm256_and_si256(v, _mm256_set1_epi32(15));

    *d = _mm256_mul_ps(x, _mm256_cvtepi32_ps(low));
    *m = _mm256_mul_ps(y, _mm256_cvtepi32_ps(_mm256_srli_epi32(v, 4)));
}


/*
 * The scales of 8 rows from `lane` on, of block b: d[0], and d[1] for the
 * second half if each half has a scale.  m: the minima, to be added.
 */

simd_inline void
quant_scales(uint32_t pack, const uint8_t *s, uint32_t b, uint32_t lane,
    __m256 d[2], __m256 m[2])
{
    __m256          x;
    __m256i         v;
    const uint8_t  *p;

#define quant_f16(p)                                                         \
    _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) ((p) + lane * 2)))
#define quant_u8(p)                                                          \
    _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(                                 \
                       _mm_loadl_epi64((const __m128i *) ((p) + lane))))
#define quant_i8(p)                                                          \
    _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(                                 \
                       _mm_loadl_epi64((const __m128i *) ((p) + lane))))

#define quant_f32(p)                                                         \
    _mm256_loadu_ps((const float *) (const void *) (p) + lane)
#define quant_e4m3(p)                                                        \
    _mm256_mul_ps(_mm256_cvtph_ps(_mm_slli_epi16(_mm_cvtepu8_epi16(          \
                      _mm_loadl_epi64((const __m128i *) ((p) + lane))), 7)), \
                  _mm256_set1_ps(128))

    p = s + b / 8 * quant_scale_size(pack);

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
        v = _mm256_cvtepu8_epi32(
                _mm_subs_epu8(_mm_loadl_epi64((const __m128i *) (s + b * 16
                                                                 + lane)),
                              _mm_set1_epi8(1)));
        d[0] = _mm256_castsi256_ps(_mm256_slli_epi32(v, 23));
        return;

    case LLM_SCALE_E16:
        /* as in llm_coded_scales() */
        d[0] = quant_e4m3(s + b * 32);
        d[1] = quant_e4m3(s + b * 32 + 16);
        return;

    case LLM_SCALE_KH16:
        x = quant_f16(p);
        p += 32 + b % 8 * 32;
        d[0] = _mm256_mul_ps(x, quant_i8(p));
        d[1] = _mm256_mul_ps(x, quant_i8(p + 16));
        return;

    case LLM_SCALE_K32:
        d[0] = _mm256_mul_ps(quant_f32(p), quant_i8(p + 64 + b % 8 * 16));
        return;

    case LLM_SCALE_K16:
        x = quant_f32(p);
        p += 64 + b % 8 * 32;
        d[0] = _mm256_mul_ps(x, quant_i8(p));
        d[1] = _mm256_mul_ps(x, quant_i8(p + 16));
        return;

    case LLM_SCALE_M16:
        x = _mm256_sub_ps(_mm256_setzero_ps(), quant_f32(p + 64));
        s = p + 128 + b % 8 * 32 + lane;
        quant_nibbles(s, quant_f32(p), x, &d[0], &m[0]);
        quant_nibbles(s + 16, quant_f32(p), x, &d[1], &m[1]);
        return;

    default:  /* LLM_SCALE_KM32 */
        d[0] = _mm256_mul_ps(quant_f16(p), quant_u8(p + 64 + b % 8 * 32));
        x = _mm256_sub_ps(_mm256_setzero_ps(), quant_f16(p + 32));
        m[0] = _mm256_mul_ps(x, quant_u8(p + 64 + b % 8 * 32 + 16));
    }

#undef quant_f32
#undef quant_e4m3
#undef quant_f16
#undef quant_u8
#undef quant_i8
}


/* groups whose products' sum fits into 16 bits */

simd_inline int
quant_fit(uint32_t pack)
{
    return quant_range(pack) >= 7 ? 1
           : quant_range(pack) == 6 ? 2
           : quant_range(pack) == 5 ? 4 : 8;
}


/* the products of one group, as 16-bit sums */

simd_inline __m256i
quant_products(uint32_t pack, __m256i w, __m256i x)
{
    if (quant_range(pack) == 8) {
        w = _mm256_xor_si256(w, _mm256_set1_epi8((char) 0x80));
        x = _mm256_sign_epi8(x, w);
        w = _mm256_abs_epi8(w);
    }

    return _mm256_maddubs_epi16(w, x);
}


/*
 * The next panel is prefetched while the first rows are multiplied with this
 * one: one half of it with the outputs from lane 0, one half with the others.
 */

typedef struct {
    const uint8_t  *p;
    size_t          step;               /* bytes to prefetch per block; 0:
                                           none */
} quant_ahead_t;

simd_inline quant_ahead_t
quant_ahead(const llm_cpu_gemm_t *g, uint32_t row, uint32_t out)
{
    uint32_t        panel;
    quant_ahead_t   a = { g->w->data, 0 };

    panel = out / LLM_PANEL + 1;

    if (row == g->row && panel < g->w->n_panels) {
        a.p += panel * g->w->panel_size
               + (out % LLM_PANEL ? g->w->panel_size / 2 : 0);
        a.step = (g->w->panel_size / 2 + g->x->n_blocks - 1)
                 / g->x->n_blocks;
    }

    return a;
}


/* the rows of x of a tile, and their places in the stage's arrays */
typedef struct {
    const llm_cpu_stage_t  *x;
    const int8_t           *q[QUANT_MM];
    size_t                  first[QUANT_MM];    /* first index in d */
    size_t                  start[QUANT_MM];    /* first index in sum, half and
                                                   zero */
    const int16_t          *words[QUANT_MM];    /* fine: in place of q */
} quant_rows_t;


/* rows after the piece's last one are replaced by it; their results are not
   stored */

simd_inline void
quant_tile_rows(quant_rows_t *r, const llm_cpu_gemm_t *g, uint32_t pack,
    uint32_t row, const int mm)
{
    int                     m;
    uint32_t                at;
    const llm_cpu_stage_t  *x = g->x;

    r->x = x;

    simd_unroll
    for (m = 0; m < mm; m++) {
        at = llm_min(row + (uint32_t) m, g->row + g->n_rows - 1);
        r->q[m] = x->q + at * x->stride;
        r->words[m] = (const int16_t *) (const void *) x->b + at * x->stride;
        r->first[m] = llm_stage_at(at, x->n_blocks);
        r->start[m] = llm_stage_at(at, x->n_blocks
                                       * (size_t) quant_halves(pack));
    }
}


/* sets the scales and minima of block b for 8 outputs; returns its codes */

simd_inline const uint8_t *
quant_tile_scales(uint32_t pack, int plain, const uint8_t *codes,
    const uint8_t *scales, size_t b, size_t nb, uint32_t lane, __m256 d[2],
    __m256 min[2])
{
    size_t        at, part;
    const float  *fd = (const float *) (const void *) scales;

    const size_t  halves = (size_t) quant_halves(pack);

    if (!plain) {
        quant_scales(pack, scales, b, lane, d, min);
        return codes + b * quant_code_size(pack) + lane * 4;
    }

    simd_unroll
    for (part = 0; part < halves; part++) {
        at = (b * halves + part) * 16 + lane;
        d[part] = _mm256_load_ps(fd + at);

        if (quant_has_min(pack)) {
            min[part] = _mm256_load_ps(fd + nb * 32 + at);
        }
    }

    return codes + b * 512 + lane * 4;
}


/* a sum that the compiler does not see through: it would add the products of a
   block in pairs, and keep most of them in memory until then */

simd_inline void
quant_in_turn(__m256i *sum)
{
    __asm__ ("" : "+x" (*sum));
}


#if QUANT_VNNI

/* a += codes times x of one part (a block or half of it) */

simd_inline void
quant_tile_bytes(const quant_rows_t *r, uint32_t pack, const uint8_t *c,
    __m256i book, size_t b, size_t part, const int mm, __m256i *a)
{
    int      i, m;
    int32_t  x4;
    __m256i  w;

    const int  groups = quant_halves(pack) == 2 ? 4 : 8;

    simd_unroll
    for (i = 0; i < groups; i++) {
        w = quant_group(pack, c, book, (int) part * groups + i);

        simd_unroll
        for (m = 0; m < mm; m++) {
            memcpy(&x4, r->q[m] + b * LLM_BLOCK
                        + ((int) part * groups + i) * 4, 4);
            a[m] = _mm256_dpbusd_avx_epi32(a[m], w, _mm256_set1_epi32(x4));
        }
    }
}

#else

/* a += codes times x of one part (a block or half of it) */

simd_inline void
quant_tile_bytes(const quant_rows_t *r, uint32_t pack, const uint8_t *c,
    __m256i book, size_t b, size_t part, const int mm, __m256i *a)
{
    int      i, m;
    int32_t  x4;
    __m256i  s[QUANT_MM], w, v;

    const int      groups = quant_halves(pack) == 2 ? 4 : 8;
    const int      narrow = quant_fit(pack) < groups ? quant_fit(pack)
                                                    : groups;
    const __m256i  ones = _mm256_set1_epi16(1);

    simd_unroll
    for (m = 0; m < mm; m++) {
        s[m] = _mm256_setzero_si256();
    }

    simd_unroll
    for (i = 0; i < groups; i++) {
        w = quant_group(pack, c, book, (int) part * groups + i);

        simd_unroll
        for (m = 0; m < mm; m++) {
            memcpy(&x4, r->q[m] + b * LLM_BLOCK
                        + ((int) part * groups + i) * 4, 4);
            v = quant_products(pack, w, _mm256_set1_epi32(x4));

            s[m] = i % narrow ? _mm256_add_epi16(s[m], v) : v;

            if (mm > 1) {
                quant_in_turn(&s[m]);
            }

            if (i % narrow == narrow - 1) {
                v = _mm256_madd_epi16(s[m], ones);
                a[m] = _mm256_add_epi32(a[m], v);
            }
        }
    }
}


#endif


/*
 * The same with x in 16 bits, which VPMADDWD multiplies without overflow: of
 * the four codes of a row, the first and the third one, then the others.
 */

simd_inline void
quant_tile_group(uint32_t pack, __m256i w, const int16_t *const *x, size_t at,
    const int mm, __m256i *a)
{
    int      m;
    int32_t  one, two;
    __m256i  even, odd;

    if (quant_range(pack) == 8) {
        w = _mm256_xor_si256(w, _mm256_set1_epi8((char) 0x80));
    }

    even = _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8);
    odd = _mm256_srai_epi16(w, 8);

    simd_unroll
    for (m = 0; m < mm; m++) {
        memcpy(&one, x[m] + at, 4);
        memcpy(&two, x[m] + at + 2, 4);
        a[m] = _mm256_add_epi32(a[m], _mm256_madd_epi16(even,
                                          _mm256_set1_epi32(one)));
        a[m] = _mm256_add_epi32(a[m], _mm256_madd_epi16(odd,
                                          _mm256_set1_epi32(two)));
    }
}


simd_inline void
quant_tile_words(const quant_rows_t *r, uint32_t pack, int plain,
    const uint8_t *c, __m256i book, size_t b, size_t part, const int mm,
    __m256i *a)
{
    int     i, g;
    size_t  at;

    const int  groups = quant_halves(pack) == 2 ? 4 : 8;

    at = b * LLM_BLOCK + part * (size_t) groups * 4;

    if (plain) {
        /* unrolled, this would want more registers than there are */
        c += (int) part * groups * 64;

        _Pragma("GCC unroll 1")
        for (i = 0; i < groups; i++, c += 64, at += 4) {
            quant_tile_group(pack, _mm256_load_si256((const __m256i *) c),
                             r->words, at, mm, a);
        }

        return;
    }

    simd_unroll
    for (i = 0; i < groups; i++) {
        g = (int) part * groups + i;
        quant_tile_group(pack, quant_group(pack, c, book, g), r->words,
                         at + (size_t) i * 4, mm, a);
    }
}


/* a = the exact dot products of one part */

simd_inline void
quant_tile_product(const quant_rows_t *r, uint32_t pack, int plain,
    const uint8_t *c, __m256i book, size_t b, size_t part, const int mm,
    const int fine, __m256i *a)
{
    int     m;
    size_t  at;

    const int     zero = quant_range(pack) == 8 && (fine || !QUANT_VNNI)
                         ? -1 : quant_zero(pack);
    const size_t  half = b * (size_t) quant_halves(pack) + part;

    simd_unroll
    for (m = 0; m < mm; m++) {
        at = r->start[m] + half * 16;
        a[m] = zero >= 0 ? _mm256_set1_epi32(r->x->zero[zero][at])
                         : _mm256_setzero_si256();
    }

    if (fine) {
        quant_tile_words(r, pack, plain, c, book, b, part, mm, a);

    } else {
        quant_tile_bytes(r, pack, c, book, b, part, mm, a);
    }
}


/* acc += the dot products of one part, scaled, and its minimum */

simd_inline void
quant_tile_add(const quant_rows_t *r, uint32_t pack, size_t b, size_t part,
    const int mm, __m256 d, __m256 min, const __m256i *a, __m256 *acc)
{
    int           m;
    size_t        at;
    __m256        f;
    const float  *sums;

    sums = quant_halves(pack) == 2 ? r->x->half : r->x->sum;

    simd_unroll
    for (m = 0; m < mm; m++) {
        f = _mm256_set1_ps(r->x->d[r->first[m] + b * 16]);
        acc[m] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(a[m]),
                                 _mm256_mul_ps(d, f), acc[m]);

        if (quant_has_min(pack)) {
            at = r->start[m] + (b * (size_t) quant_halves(pack) + part) * 16;
            acc[m] = _mm256_fmadd_ps(min, _mm256_set1_ps(sums[at]), acc[m]);
        }
    }
}


/*
 * mm rows by 8 outputs of a panel from `lane` on.  Codes and scales are packed,
 * or, if plain, bytes and floats in the scratch, which only fine ones are read
 * from here.
 */

simd_inline void
quant_tile(const llm_cpu_gemm_t *g, uint32_t pack, int plain,
    const uint8_t *codes, const uint8_t *scales, uint32_t out, uint32_t lane,
    uint32_t row, const int mm, const int fine)
{
    int             m;
    size_t          at, b, part;
    __m256          acc[QUANT_MM], d[2], min[2];
    __m256i         a[QUANT_MM], book;
    quant_rows_t    r;
    quant_ahead_t   ahead;
    const uint8_t  *c;

    book = quant_book(g->w);
    min[0] = min[1] = _mm256_setzero_ps();
    ahead = quant_ahead(g, row, out);
    quant_tile_rows(&r, g, pack, row, mm);

    simd_unroll
    for (m = 0; m < mm; m++) {
        acc[m] = _mm256_setzero_ps();
    }

    for (b = 0; b < g->x->n_blocks; b++) {

        for (at = 0; at < ahead.step; at += 64) {
            __builtin_prefetch(ahead.p + b * ahead.step + at, 0, 2);
        }

        c = quant_tile_scales(pack, plain, codes, scales, b, g->x->n_blocks,
                              lane, d, min);

        simd_unroll
        for (part = 0; part < (size_t) quant_halves(pack); part++) {
            quant_tile_product(&r, pack, plain, c, book, b, part, mm, fine,
                               a);
            quant_tile_add(&r, pack, b, part, mm, d[part], min[part], a, acc);
        }
    }

    gemm_store_tile(g, row, out, acc, mm, 1);
}


/*
 * A function for each tile of each packing: in a function of several tiles the
 * compiler keeps less of a tile in registers.
 */

typedef void (*quant_few_pt)(const llm_cpu_gemm_t *g, uint32_t panel,
    uint32_t row);

typedef struct {
    uint32_t             mm;
    uint32_t             least;         /* rows for which it is worth its time:
                                           three take longer in smaller tiles
                                           than in one of four, unless codes
                                           need no unpacking */
    quant_few_pt         tile;
} quant_few_t;

#define quant_few_function(NAME, mm, fine)                                   \
    static __attribute__((noinline)) void                                    \
    quant_few_##NAME##_##mm##_##fine(const llm_cpu_gemm_t *g,                \
        uint32_t panel, uint32_t row)                                        \
    {                                                                        \
        uint32_t        lane;                                                \
        const uint8_t  *codes = g->w->data + panel * g->w->panel_size;       \
                                                                             \
        for (lane = 0; lane < LLM_PANEL; lane += 8) {                        \
            quant_tile(g, LLM_PACK_##NAME, 0, codes,                         \
                       codes + g->w->codes_size, panel * LLM_PANEL + lane,   \
                       lane, row, mm, fine);                                 \
        }                                                                    \
    }

#define LLM_PACK(NAME, bits, range, zero, scale, as)                         \
    quant_few_function(NAME, 4, 0)                                           \
    quant_few_function(NAME, 2, 0)                                           \
    quant_few_function(NAME, 1, 0)                                           \
    quant_few_function(NAME, 4, 1)                                           \
    quant_few_function(NAME, 1, 1)
#include "kernels/cpu/packs.def"

#define quant_few_least(NAME)                                                \
    (LLM_PACK_##NAME == LLM_PACK_Q8_0 ? 4 : 3)

#define quant_few_row(NAME, mm, least, fine)                                 \
    { mm, least, quant_few_##NAME##_##mm##_##fine }

/* by size; those of fine rows behind the others */
#define QUANT_FEW_TILES  3

static const quant_few_t  quant_few_tiles[][5] = {
#define LLM_PACK(NAME, bits, range, zero, scale, as)                         \
    [LLM_PACK_##NAME] = {                                                    \
        quant_few_row(NAME, 4, quant_few_least(NAME), 0),                    \
        quant_few_row(NAME, 2, 2, 0),                                        \
        quant_few_row(NAME, 1, 1, 0),                                        \
        quant_few_row(NAME, 4, 3, 1), quant_few_row(NAME, 1, 1, 1)           \
    },
#include "kernels/cpu/packs.def"
};


/* few rows: packed codes are unpacked in registers, for each tile */

static void
quant_few(const llm_cpu_gemm_t *g)
{
    uint32_t            p, row, end;
    const quant_few_t  *t, *tiles;

    end = g->row + g->n_rows;
    tiles = quant_few_tiles[g->w->format.pack]
            + (g->x->fine ? QUANT_FEW_TILES : 0);

    for (p = g->panel; p < g->panel + g->n_panels; p++) {
        t = tiles;

        for (row = g->row; row < end; row += t->mm) {
            while (row + t->least > end) {
                t++;
            }

            t->tile(g, p, row);
        }
    }
}
