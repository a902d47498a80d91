/*
 * Products of many rows with AVX2, by unpacked panels; included after
 * quant256.h.
 *
 * A tile is four rows by a panel's 16 outputs: each four elements of x are loaded
 * once for both vectors of outputs, as two loads a cycle are what a tile of eight
 * outputs waits for.  Its float sums are in memory between blocks.
 *
 * Invariant: an output's bits are those of quant_tile().
 */

/* rows of a tile */
#define QUANT_WIDE     4

/* least rows for which a panel is turned into nibbles */
#define QUANT_NIBBLES  32


/* four elements of x, in each lane */

simd_inline __m256i
quant_wide_x(const int8_t *x)
{
    int32_t  x4;

    memcpy(&x4, x, 4);

    return _mm256_set1_epi32(x4);
}


#if QUANT_VNNI

/* a += the groups of a part */

simd_inline void
quant_wide_groups(uint32_t pack, const uint8_t *c, const int8_t *const *x,
    size_t at, const int groups, const int mm, __m256i a[QUANT_WIDE][2])
{
    int             i, m, p;
    __m256i         v;
    const __m256i  *w = (const __m256i *) c;

    (void) pack;

    simd_unroll
    for (i = 0; i < groups; i++) {

        simd_unroll
        for (m = 0; m < mm; m++) {
            v = quant_wide_x(x[m] + at + i * 4);

            simd_unroll
            for (p = 0; p < 2; p++) {
                a[m][p] = _mm256_dpbusd_avx_epi32(a[m][p], w[2 * i + p], v);
                quant_in_turn(&a[m][p]);
            }
        }
    }
}

#else

/* the factors of 16 outputs; of 8 bits w are their magnitudes, and sign has
   their signs */
typedef struct {
    __m256i  w[2];
    __m256i  sign[2];
} quant_wide_t;


simd_inline void
quant_wide_load(uint32_t pack, const uint8_t *c, quant_wide_t *f)
{
    int  p;

    simd_unroll
    for (p = 0; p < 2; p++) {
        f->w[p] = _mm256_load_si256((const __m256i *) c + p);

        if (quant_range(pack) == 8) {
            f->sign[p] = _mm256_xor_si256(f->w[p],
                                          _mm256_set1_epi8((char) 0x80));
            f->w[p] = _mm256_abs_epi8(f->sign[p]);
        }
    }
}


simd_inline __m256i
quant_wide_products(uint32_t pack, const quant_wide_t *f, int p, __m256i x)
{
    if (quant_range(pack) == 8) {
        x = _mm256_sign_epi8(x, f->sign[p]);
    }

    return _mm256_maddubs_epi16(f->w[p], x);
}


/* a += n groups from c and x[] + at on, whose sums fit into 16 bits */

simd_inline void
quant_wide_few(uint32_t pack, const uint8_t *c, const int8_t *const *x,
    size_t at, const int n, const int mm, __m256i a[QUANT_WIDE][2])
{
    int           i, m, p;
    __m256i       v[2], s;
    quant_wide_t  f[2];

    const __m256i  ones = _mm256_set1_epi16(1);

    simd_unroll
    for (i = 0; i < n; i++) {
        quant_wide_load(pack, c + i * 64, &f[i]);
    }

    simd_unroll
    for (m = 0; m < mm; m++) {

        simd_unroll
        for (i = 0; i < n; i++) {
            v[i] = quant_wide_x(x[m] + at + i * 4);
        }

        simd_unroll
        for (p = 0; p < 2; p++) {
            s = quant_wide_products(pack, &f[0], p, v[0]);

            if (n == 2) {
                s = _mm256_add_epi16(s, quant_wide_products(pack, &f[1], p,
                                                            v[1]));
            }

            a[m][p] = _mm256_add_epi32(a[m][p], _mm256_madd_epi16(s, ones));
            quant_in_turn(&a[m][p]);
        }
    }
}


/* s = the 16-bit sums of n groups */

simd_inline void
quant_wide_sums(uint32_t pack, const uint8_t *c, const int8_t *const *x,
    size_t at, const int n, const int mm, __m256i s[QUANT_WIDE][2])
{
    int           i, m, p;
    __m256i       v;
    quant_wide_t  f;

    simd_unroll
    for (i = 0; i < n; i++) {
        quant_wide_load(pack, c + i * 64, &f);

        simd_unroll
        for (m = 0; m < mm; m++) {
            v = quant_wide_x(x[m] + at + i * 4);

            simd_unroll
            for (p = 0; p < 2; p++) {
                s[m][p] = i ? _mm256_add_epi16(s[m][p],
                                  quant_wide_products(pack, &f, p, v))
                            : quant_wide_products(pack, &f, p, v);
                quant_in_turn(&s[m][p]);
            }
        }
    }
}


/* a += n groups, more than two */

simd_inline void
quant_wide_many(uint32_t pack, const uint8_t *c, const int8_t *const *x,
    size_t at, const int n, const int mm, __m256i a[QUANT_WIDE][2])
{
    int      m, p;
    __m256i  s[QUANT_WIDE][2];

    const __m256i  ones = _mm256_set1_epi16(1);

    quant_wide_sums(pack, c, x, at, n, mm, s);

    simd_unroll
    for (m = 0; m < mm; m++) {
        simd_unroll
        for (p = 0; p < 2; p++) {
            a[m][p] = _mm256_add_epi32(a[m][p],
                                       _mm256_madd_epi16(s[m][p], ones));
        }
    }
}


/* a += the groups of a part */

simd_inline void
quant_wide_groups(uint32_t pack, const uint8_t *c, const int8_t *const *x,
    size_t at, const int groups, const int mm, __m256i a[QUANT_WIDE][2])
{
    int  i;

    const int  fit = quant_fit(pack) < groups ? quant_fit(pack) : groups;

    simd_unroll
    for (i = 0; i < groups; i += fit) {
        if (fit <= 2) {
            quant_wide_few(pack, c + i * 64, x, at + (size_t) i * 4, fit, mm,
                           a);

        } else {
            quant_wide_many(pack, c + i * 64, x, at + (size_t) i * 4, fit, mm,
                            a);
        }
    }
}

#endif


/* a = the exact dot products of one part of block b (the block or half of it),
   whose codes are at c */

simd_inline void
quant_wide_part(const quant_rows_t *r, uint32_t pack, const uint8_t *c,
    size_t b, size_t part, const int mm, __m256i a[QUANT_WIDE][2])
{
    int     m;
    size_t  at;

    const int  groups = quant_halves(pack) == 2 ? 4 : 8;
    const int  zero = quant_range(pack) == 8 && !QUANT_VNNI
                      ? -1 : quant_zero(pack);

    at = (b * (size_t) quant_halves(pack) + part) * 16;

    simd_unroll
    for (m = 0; m < mm; m++) {
        a[m][0] = zero >= 0
                  ? _mm256_set1_epi32(r->x->zero[zero][r->start[m] + at])
                  : _mm256_setzero_si256();
        a[m][1] = a[m][0];
    }

    at = b * LLM_BLOCK + part * (size_t) groups * 4;
    quant_wide_groups(pack, c, r->q, at, groups, mm, a);
}


/* acc += the dot products of one part, scaled, and its minima */

simd_inline void
quant_wide_add(const quant_rows_t *r, uint32_t pack, const float *scales,
    size_t b, size_t part, const int mm, __m256i a[QUANT_WIDE][2],
    __m256 acc[QUANT_WIDE][2])
{
    int           m, p;
    size_t        at;
    __m256        f, sum, d[2], min[2];
    const float  *sums;

    at = (b * (size_t) quant_halves(pack) + part) * 16;
    sums = quant_halves(pack) == 2 ? r->x->half : r->x->sum;

    simd_unroll
    for (p = 0; p < 2; p++) {
        d[p] = _mm256_load_ps(scales + at + p * 8);
        min[p] = quant_has_min(pack)
                 ? _mm256_load_ps(scales + r->x->n_blocks * 32 + at + p * 8)
                 : _mm256_setzero_ps();
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        f = _mm256_set1_ps(r->x->d[r->first[m] + b * 16]);
        sum = quant_has_min(pack) ? _mm256_set1_ps(sums[r->start[m] + at])
                                  : _mm256_setzero_ps();

        simd_unroll
        for (p = 0; p < 2; p++) {
            acc[m][p] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(a[m][p]),
                                        _mm256_mul_ps(d[p], f), acc[m][p]);

            if (quant_has_min(pack)) {
                acc[m][p] = _mm256_fmadd_ps(min[p], sum, acc[m][p]);
            }
        }
    }
}


/* mm rows by a panel in the scratch */

simd_inline void
quant_wide_tile(const llm_cpu_gemm_t *g, uint32_t pack, uint32_t panel,
    uint32_t row, const int mm)
{
    int            m;
    size_t         at, b, part;
    __m256         acc[QUANT_WIDE][2];
    __m256i        a[QUANT_WIDE][2];
    quant_rows_t   r;
    quant_ahead_t  ahead;
    const float   *scales;

    const size_t  halves = (size_t) quant_halves(pack);

    ahead = quant_ahead(g, row, panel * LLM_PANEL);
    ahead.step *= 2;
    quant_tile_rows(&r, g, pack, row, mm);
    scales = (const float *) (const void *) (g->scratch
                                             + g->x->n_blocks * 512);

    simd_unroll
    for (m = 0; m < mm; m++) {
        acc[m][0] = acc[m][1] = _mm256_setzero_ps();
    }

    for (b = 0; b < g->x->n_blocks; b++) {

        for (at = 0; at < ahead.step; at += 64) {
            __builtin_prefetch(ahead.p + b * ahead.step + at, 0, 2);
        }

        simd_unroll
        for (part = 0; part < halves; part++) {
            quant_wide_part(&r, pack, g->scratch + b * 512
                                      + part * (512 / halves), b, part, mm, a);
            quant_wide_add(&r, pack, scales, b, part, mm, a, acc);
        }
    }

    gemm_store_tile(g, row, panel * LLM_PANEL, acc[0], mm, 2);
}


simd_inline void
quant_wide(const llm_cpu_gemm_t *g, uint32_t pack, uint32_t panel)
{
    uint32_t  row, end;

    end = g->row + g->n_rows;

    for (row = g->row; row + QUANT_WIDE <= end; row += QUANT_WIDE) {
        quant_wide_tile(g, pack, panel, row, QUANT_WIDE);
    }

    for ( /* void */ ; row < end; row++) {
        quant_wide_tile(g, pack, panel, row, 1);
    }
}


#if !QUANT_VNNI

/* ---- factors of 8 bits as nibbles ---- */

/*
 * With many rows: 16 high + low, less 128.  The products of a vector take four
 * instructions, as with signs, but two of these are additions, for which there
 * are more units.
 *
 * Turns an unpacked panel into nibbles, in place: a block is 512 bytes for 8
 * outputs, and the same for the others; a group the lower nibbles, then the
 * higher ones.
 */

static void
quant_nibble_panel(uint8_t *scratch, size_t n_blocks)
{
    int       i;
    size_t    b;
    __m256i   v[16];
    uint8_t  *to;

    const __m256i  low = _mm256_set1_epi8(15);

    memmove(scratch + n_blocks * 1024, scratch + n_blocks * 512,
            n_blocks * 64);

    for (b = n_blocks; b-- > 0; /* void */ ) {
        memcpy(v, scratch + b * 512, sizeof(v));

        simd_unroll
        for (i = 0; i < 16; i++) {
            to = scratch + b * 1024 + (size_t) (i % 2 * 512 + i / 2 * 64);
            _mm256_store_si256((__m256i *) to, _mm256_and_si256(v[i], low));
            _mm256_store_si256((__m256i *) to + 1,
                               _mm256_and_si256(_mm256_srli_epi16(v[i], 4),
                                                low));
        }
    }
}


/* acc += block b, whose nibbles of 8 outputs are at c */

simd_inline void
quant_nibble_block(const quant_rows_t *r, const uint8_t *c, __m256 scale,
    size_t b, const int mm, __m256 acc[QUANT_WIDE])
{
    int      m;
    __m256   f;
    __m256i  a, s[QUANT_WIDE][2];

    const __m256i  ones = _mm256_set1_epi16(1);
    const __m256i  high = _mm256_set1_epi16(16);

    quant_wide_sums(LLM_PACK_Q4_0, c, r->q, b * LLM_BLOCK, 8, mm, s);

    simd_unroll
    for (m = 0; m < mm; m++) {
        a = _mm256_set1_epi32(r->x->zero[LLM_ZERO_128][r->start[m] + b * 16]);
        a = _mm256_add_epi32(a, _mm256_madd_epi16(s[m][0], ones));
        a = _mm256_add_epi32(a, _mm256_madd_epi16(s[m][1], high));
        f = _mm256_set1_ps(r->x->d[r->first[m] + b * 16]);
        acc[m] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(a),
                                 _mm256_mul_ps(scale, f), acc[m]);
    }
}


/* mm rows by 8 outputs of a panel of nibbles in the scratch */

simd_inline void
quant_nibble_tile(const llm_cpu_gemm_t *g, uint32_t out, uint32_t row,
    const int mm)
{
    int             m;
    size_t          at, b;
    __m256          acc[QUANT_WIDE];
    quant_rows_t    r;
    quant_ahead_t   ahead;
    const float    *scales;
    const uint8_t  *codes;

    at = out % LLM_PANEL;
    ahead = quant_ahead(g, row, out);
    quant_tile_rows(&r, g, LLM_PACK_Q8_0, row, mm);
    codes = g->scratch + at / 8 * 512;
    scales = (const float *) (const void *) (g->scratch
                                             + g->x->n_blocks * 1024) + at;

    simd_unroll
    for (m = 0; m < mm; m++) {
        acc[m] = _mm256_setzero_ps();
    }

    for (b = 0; b < g->x->n_blocks; b++) {

        for (at = 0; at < ahead.step; at += 64) {
            __builtin_prefetch(ahead.p + b * ahead.step + at, 0, 2);
        }

        quant_nibble_block(&r, codes + b * 1024,
                           _mm256_load_ps(scales + b * 16), b, mm, acc);
    }

    gemm_store_tile(g, row, out, acc, mm, 1);
}


static void
quant_nibble(const llm_cpu_gemm_t *g, uint32_t panel)
{
    uint32_t  row, end, out;

    end = g->row + g->n_rows;
    quant_nibble_panel(g->scratch, g->x->n_blocks);

    for (out = panel * LLM_PANEL; out < (panel + 1) * LLM_PANEL; out += 8) {

        for (row = g->row; row + QUANT_WIDE <= end; row += QUANT_WIDE) {
            quant_nibble_tile(g, out, row, QUANT_WIDE);
        }

        for ( /* void */ ; row < end; row++) {
            quant_nibble_tile(g, out, row, 1);
        }
    }
}

#endif


/* ---- panels ---- */

/* unpacks a panel: codes as bytes, then scales, then minima in float32 */

simd_inline void
quant_unpack(const llm_weight_t *w, uint32_t pack, const uint8_t *codes,
    uint8_t *scratch)
{
    int             i;
    float          *fd;
    __m256          d[2], m[2];
    __m256i         book;
    uint32_t        b, n, at, part, lane;
    const uint8_t  *scales;

    const uint32_t  halves = (uint32_t) quant_halves(pack);

    n = w->n_in / LLM_BLOCK;
    scales = codes + w->codes_size;
    fd = (float *) (void *) (scratch + n * 512);
    book = quant_book(w);

    for (b = 0; b < n; b++) {
        for (lane = 0; lane < LLM_PANEL; lane += 8) {

            quant_scales(pack, scales, b, lane, d, m);

            simd_unroll
            for (part = 0; part < halves; part++) {
                at = (b * halves + part) * 16 + lane;
                _mm256_store_ps(fd + at, d[part]);

                if (quant_has_min(pack)) {
                    _mm256_store_ps(fd + n * 32 + at, m[part]);
                }
            }

            simd_unroll
            for (i = 0; i < 8; i++) {
                _mm256_store_si256((__m256i *) (scratch + b * 512 + i * 64
                                                + lane * 4),
                                   quant_group(pack, codes
                                               + b * quant_code_size(pack)
                                               + lane * 4, book, i));
            }
        }
    }
}


static void
quant_unpack_any(const llm_weight_t *w, const uint8_t *codes,
    uint8_t *scratch)
{
    switch (w->format.pack) {

#define LLM_PACK(NAME, bits, range, zero, scale, as)                         \
    case LLM_PACK_##NAME:                                                    \
        quant_unpack(w, LLM_PACK_##NAME, codes, scratch);                    \
        break;
#include "kernels/cpu/packs.def"

    default:
        break;
    }
}


/* fine rows by an unpacked panel */

simd_inline void
quant_fine(const llm_cpu_gemm_t *g, uint32_t kind, const uint8_t *codes,
    const uint8_t *scales, uint32_t panel)
{
    uint32_t  row, end, lane, out;

    end = g->row + g->n_rows;

    for (lane = 0; lane < LLM_PANEL; lane += 8) {

        out = panel * LLM_PANEL + lane;
        row = g->row;

        for ( /* void */ ; row + 4 <= end; row += 4) {
            quant_tile(g, kind, 1, codes, scales, out, lane, row, 4, 1);
        }

        for ( /* void */ ; row < end; row++) {
            quant_tile(g, kind, 1, codes, scales, out, lane, row, 1, 1);
        }
    }
}


/* many rows: each panel is unpacked once, into the scratch */

simd_inline void
quant_many(const llm_cpu_gemm_t *g, uint32_t kind)
{
    size_t    nb;
    uint32_t  p;

    nb = g->w->n_in / LLM_BLOCK;

    for (p = g->panel; p < g->panel + g->n_panels; p++) {
        quant_unpack_any(g->w, g->w->data + p * g->w->panel_size,
                         g->scratch);

        if (g->x->fine) {
            quant_fine(g, kind, g->scratch, g->scratch + nb * 512, p);

#if !QUANT_VNNI
        } else if (quant_range(kind) == 8 && g->n_rows >= QUANT_NIBBLES) {
            quant_nibble(g, p);
#endif

        } else {
            quant_wide(g, kind, p);
        }
    }
}


/* one expansion for all packings that are the same after unpacking */

static void
quant_many_any(const llm_cpu_gemm_t *g)
{
    switch (quant_kind(g->w->format.pack)) {

    case LLM_PACK_Q8_0:
        quant_many(g, LLM_PACK_Q8_0);
        break;

    case LLM_PACK_Q4_0:
        quant_many(g, LLM_PACK_Q4_0);
        break;

    case LLM_PACK_Q4_1:
        quant_many(g, LLM_PACK_Q4_1);
        break;

    case LLM_PACK_Q5_0:
        quant_many(g, LLM_PACK_Q5_0);
        break;

    case LLM_PACK_Q5_1:
        quant_many(g, LLM_PACK_Q5_1);
        break;

    case LLM_PACK_Q6_K:
        quant_many(g, LLM_PACK_Q6_K);
        break;

    case LLM_PACK_K16_3:
        quant_many(g, LLM_PACK_K16_3);
        break;

    default:
        quant_many(g, LLM_PACK_M16_2);
    }
}


static void
quant_gemm(const llm_cpu_gemm_t *g)
{
    if (g->n_rows > 4) {
        quant_many_any(g);

    } else {
        quant_few(g);
    }
}
