/*
 * Rounding of activations, and products of quantised weights, with VPDPBUSD
 * (AVX-512 VNNI); included after simd_gemm.h.  Codes are the unsigned factors,
 * activations the signed ones.  What a code's zero adds to a dot product is
 * compensated by starting from zero[] of the stage.
 */

#define QUANT_FEW_MM   8
#define QUANT_FEW_NP   2
#define QUANT_MANY_MM  6

/* up to this number of rows, codes are unpacked in registers for each tile;
   with more rows, a panel is unpacked once for all */
#define QUANT_FEW      8
#define QUANT_FEW_FINE 4

/* distances of prefetches, in bytes of codes: QUANT_FAR from memory to the
   second-level cache, QUANT_NEAR from there to the first.  QUANT_FAR_MM, in
   blocks, replaces QUANT_FAR in tiles of QUANT_FEW_MM rows, which are limited
   by arithmetic */
#define QUANT_FAR      4608
#define QUANT_NEAR     2048
#define QUANT_FAR_MM   18


simd_inline void
quant_store_bytes(int8_t *q, __m512i a, __m512i b)
{
    _mm_storeu_si128((__m128i *) q, _mm512_cvtsepi32_epi8(a));
    _mm_storeu_si128((__m128i *) (q + 16), _mm512_cvtsepi32_epi8(b));
}


/* the largest |x|, compared as integers, so that NaN is larger than infinity */

simd_inline float
quant_max(__m512 x0, __m512 x1)
{
    int  bits;

    bits = _mm512_reduce_max_epi32(
               _mm512_max_epi32(_mm512_castps_si512(_mm512_abs_ps(x0)),
                                _mm512_castps_si512(_mm512_abs_ps(x1))));

    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(bits)));
}


/* h, the nearest to v / 128, so that v - 128 h fits into a byte */

simd_inline __m512i
quant_high(__m512i v)
{
    return _mm512_srai_epi32(_mm512_add_epi32(v, _mm512_set1_epi32(64)), 7);
}


static void
quant_stage_q8(const llm_cpu_stage_t *s, const float *x, uint32_t row,
    int what)
{
    int            sum0, sum1;
    float          max, d, id, steps;
    size_t         i, to, half;
    __m512         x0, x1;
    __m512i        q0, q1, h0, h1;
    uint32_t       b;

    steps = s->fine ? 127.0f * 128.0f : 127.0f;

    for (b = 0; b < s->n_blocks; b++, x += LLM_BLOCK) {

        x0 = _mm512_loadu_ps(x);
        x1 = _mm512_loadu_ps(x + 16);

        max = quant_max(x0, x1);
        d = max / steps;
        id = quant_inverse(max, steps);

        if (!(max < INFINITY)) {
            x0 = x1 = _mm512_setzero_ps();
        }

        q0 = _mm512_cvtps_epi32(_mm512_mul_ps(x0, _mm512_set1_ps(id)));
        q1 = _mm512_cvtps_epi32(_mm512_mul_ps(x1, _mm512_set1_ps(id)));

        sum0 = _mm512_reduce_add_epi32(q0);
        sum1 = _mm512_reduce_add_epi32(q1);

        to = row * s->stride + b * LLM_BLOCK;

        if (s->fine) {
            h0 = quant_high(q0);
            h1 = quant_high(q1);
            q0 = _mm512_sub_epi32(q0, _mm512_slli_epi32(h0, 7));
            q1 = _mm512_sub_epi32(q1, _mm512_slli_epi32(h1, 7));

            quant_store_bytes(s->q + to, h0, h1);
            quant_store_bytes(s->q_low + to, q0, q1);

        } else {
            quant_store_bytes(s->q + to, q0, q1);
        }

        i = llm_stage_at(row, s->n_blocks) + (size_t) b * 16;

        s->d[i] = d;
        s->sum[i] = d * (float) (sum0 + sum1);

        half = llm_stage_at(row, s->n_blocks * 2) + (size_t) b * 32;

        if (what & LLM_STAGE_ZERO << LLM_ZERO_8) {
            s->zero[LLM_ZERO_8][i] = -8 * (sum0 + sum1);
        }

        if (what & LLM_STAGE_ZERO << LLM_ZERO_16) {
            s->zero[LLM_ZERO_16][i] = -16 * (sum0 + sum1);
        }

        if (what & LLM_STAGE_ZERO << LLM_ZERO_128) {
            s->zero[LLM_ZERO_128][i] = -128 * (sum0 + sum1);
        }

        if (what & LLM_STAGE_ZERO << LLM_ZERO_32) {
            s->zero[LLM_ZERO_32][half] = -32 * sum0;
            s->zero[LLM_ZERO_32][half + 16] = -32 * sum1;
        }

        if (what & LLM_STAGE_ZERO << LLM_ZERO_64) {
            s->zero[LLM_ZERO_64][half] = -64 * sum0;
            s->zero[LLM_ZERO_64][half + 16] = -64 * sum1;
        }

        if (what & LLM_STAGE_HALF) {
            s->half[half] = d * (float) sum0;
            s->half[half + 16] = d * (float) sum1;
        }
    }
}


/* four elements of x in every lane */

simd_inline __m512i
quant_x(const int8_t *q)
{
    int32_t  v;

    memcpy(&v, q, 4);

    return _mm512_set1_epi32(v);
}


/* a + four groups of a block by 16 elements of x */

simd_inline __m512i
quant_half(__m512i a, const __m512i *w, const int8_t *q)
{
    int  i;

    simd_unroll
    for (i = 0; i < 4; i++) {
        a = _mm512_dpbusd_epi32(a, w[i], quant_x(q + i * 4));
    }

    return a;
}


simd_inline __m512
quant_scale_add(__m512i dot, __m512 d, float x, __m512 acc)
{
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot),
                           _mm512_mul_ps(d, _mm512_set1_ps(x)), acc);
}


/* the start value of dot products, from index `at` of zero[] */

simd_inline __m512i
quant_start(const llm_cpu_stage_t *x, uint32_t pack, size_t at)
{
    return quant_zero(pack) >= 0
           ? _mm512_set1_epi32(x->zero[quant_zero(pack)][at])
           : _mm512_setzero_si512();
}


/* acc + the dot products of one block of one row, scaled */

simd_inline __m512
quant_block(const llm_cpu_stage_t *x, uint32_t pack, const __m512i w[8],
    const __m512 d[2], const __m512 min[2], const int8_t *q, size_t at,
    size_t half, __m512 acc, const int fine)
{
    __m512i  a0, a1;

    a0 = _mm512_setzero_si512();
    a1 = _mm512_setzero_si512();

    if (fine) {
        a0 = _mm512_slli_epi32(quant_half(a0, w, q), 7);
        a1 = _mm512_slli_epi32(quant_half(a1, w + 4, q + 16), 7);
        q += x->q_low - x->q;
    }

    if (quant_halves(pack) == 2) {
        a0 = _mm512_add_epi32(a0, quant_start(x, pack, half));
        a1 = _mm512_add_epi32(a1, quant_start(x, pack, half + 16));
        a0 = quant_half(a0, w, q);
        a1 = quant_half(a1, w + 4, q + 16);

        acc = quant_scale_add(a0, d[0], x->d[at], acc);

        if (quant_has_min(pack)) {
            acc = _mm512_fmadd_ps(min[0], _mm512_set1_ps(x->half[half]), acc);
        }

        acc = quant_scale_add(a1, d[1], x->d[at], acc);

        return quant_has_min(pack)
               ? _mm512_fmadd_ps(min[1], _mm512_set1_ps(x->half[half + 16]),
                                 acc)
               : acc;
    }

    a0 = _mm512_add_epi32(a0, quant_start(x, pack, at));
    a0 = quant_half(a0, w, q);
    a1 = quant_half(a1, w + 4, q + 16);

    acc = quant_scale_add(_mm512_add_epi32(a0, a1), d[0], x->d[at], acc);

    return quant_has_min(pack)
           ? _mm512_fmadd_ps(min[0], _mm512_set1_ps(x->sum[at]), acc) : acc;
}


/*
 * Products of few rows are limited by memory.  The hardware prefetcher keeps
 * only about 3/4 of the requests in flight that one core can have, and starts
 * again in each page.  So every block prefetches the codes and scales of later
 * blocks; at the end of a panel, those of the panel `next` bytes later, which
 * this thread reads next.  After the last panel of a weight, this is most
 * likely the next weight, see memory.c.  The first-level cache has few buffers
 * for requests in flight, and two threads of a core share them; so data is
 * prefetched into it only from a short distance, when the second level has it.
 */

/* the branches are for clang, whose __builtin_prefetch() accepts only literal
   constants, not the argument of an inlined function */

simd_inline void
quant_ask(const uint8_t *p, const int far)
{
    if (far) {
        __builtin_prefetch(p, 0, 2);
    } else {
        __builtin_prefetch(p, 0, 3);
    }
}


simd_inline void
quant_prefetch(uint32_t pack, const uint8_t *codes, const uint8_t *scales,
    uint32_t b, uint32_t n_blocks, size_t next, const int far)
{
    size_t  i;

    if (b >= n_blocks) {
        b -= n_blocks;
        codes += next;
        scales += next;
    }

    codes += b * quant_code_size(pack);
    scales += b * quant_scale_step(pack);

    simd_unroll
    for (i = 0; i < quant_code_size(pack); i += 64) {
        quant_ask(codes + i, far);
    }

    quant_ask(scales, far);
}


simd_inline void
quant_ahead(uint32_t pack, const uint8_t *codes, const uint8_t *scales,
    uint32_t b, uint32_t n_blocks, size_t next, const int mm)
{
    uint32_t  far;

    far = mm == QUANT_FEW_MM ? QUANT_FAR_MM
                             : QUANT_FAR / quant_code_size(pack);

    quant_prefetch(pack, codes, scales, b + far, n_blocks, next, 1);
    quant_prefetch(pack, codes, scales,
                   b + QUANT_NEAR / quant_code_size(pack), n_blocks, next, 0);
}


/*
 * mm rows by np panels, whose codes are unpacked block by block.  With two
 * panels, a core reads two streams from memory, which is faster than one.
 */

simd_inline void
quant_few_tile(const llm_cpu_gemm_t *g, uint32_t pack, uint32_t panel,
    uint32_t row, const int mm, const int np, const int fine)
{
    int                     m, p;
    size_t                  at, half;
    size_t                  first[QUANT_FEW_MM], first2[QUANT_FEW_MM];
    __m512                  acc[QUANT_FEW_MM][QUANT_FEW_NP], d[2], min[2];
    __m512i                 w[8], book;
    uint32_t                b, last;
    const int8_t           *q[QUANT_FEW_MM];
    const uint8_t          *codes[QUANT_FEW_NP], *scales[QUANT_FEW_NP];
    const llm_cpu_stage_t  *x;

    x = g->x;
    last = g->panel + g->n_panels - 1;
    min[0] = min[1] = _mm512_setzero_ps();
    book = quant_book(g->w);

    simd_unroll
    for (p = 0; p < np; p++) {
        /* a panel after the last one is replaced by the last; its results are
           not stored */
        codes[p] = g->w->data + llm_min(panel + (uint32_t) p, last)
                                * g->w->panel_size;
        scales[p] = codes[p] + g->w->codes_size;
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        q[m] = x->q + (row + (uint32_t) m) * x->stride;
        first[m] = llm_stage_at(row + (uint32_t) m, x->n_blocks);
        first2[m] = llm_stage_at(row + (uint32_t) m, x->n_blocks * 2);

        simd_unroll
        for (p = 0; p < np; p++) {
            acc[m][p] = _mm512_setzero_ps();
        }
    }

    for (b = 0; b < x->n_blocks; b++) {
        simd_unroll
        for (p = 0; p < np; p++) {
            quant_ahead(pack, codes[p], scales[p], b, x->n_blocks,
                        (size_t) np * g->w->panel_size, mm);
            quant_codes(pack, codes[p] + b * quant_code_size(pack), book, w);
            quant_scales(pack, scales[p], b, d, min);

            simd_unroll
            for (m = 0; m < mm; m++) {
                at = first[m] + (size_t) b * 16;
                half = first2[m] + (size_t) b * 32;
                acc[m][p] = quant_block(x, pack, w, d, min,
                                        q[m] + b * LLM_BLOCK, at, half,
                                        acc[m][p], fine);
            }
        }
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        simd_unroll
        for (p = 0; p < np; p++) {
            gemm_store(g, row + (uint32_t) m,
                       (panel + (uint32_t) p) * LLM_PANEL, acc[m][p]);
        }
    }
}


/* tiles of mm rows by np panels, while at least mm rows are left */

#define quant_few_rows(mm, np, fine)                                         \
    for ( /* void */ ; row + mm <= end; row += mm) {                         \
        for (p = g->panel; p < g->panel + g->n_panels; p += np) {            \
            quant_few_tile(g, pack, p, row, mm, np, fine);                   \
        }                                                                    \
    }

simd_inline void
quant_few(const llm_cpu_gemm_t *g, uint32_t pack)
{
    uint32_t  p, row, end;

    row = g->row;
    end = g->row + g->n_rows;

    if (g->x->fine) {
        quant_few_rows(4, 2, 1)
        quant_few_rows(1, 2, 1)
        return;
    }

    quant_few_rows(8, 1, 0)
    quant_few_rows(4, 2, 0)
    quant_few_rows(2, 2, 0)
    quant_few_rows(1, 2, 0)
}


/*
 * An unpacked panel, for products of many rows: codes as bytes, scales and
 * minima as float32.  All are in the scratch, except Q8_0's codes, which are
 * read from the weight.
 */

typedef struct {
    const uint8_t       *codes;         /* [n_blocks][512] */
    const float         *d;             /* [n_blocks][halves][16] */
    const float         *m;             /* [n_blocks][halves][16] */
} quant_panel_t;


simd_inline void
quant_unpack(const llm_weight_t *w, uint32_t pack, uint32_t panel,
    uint8_t *scratch, quant_panel_t *p)
{
    float          *fd, *fm;
    __m512          d[2], m[2];
    __m512i         v[8], book;
    uint32_t        b, i, n;
    const uint8_t  *codes, *scales;

    const uint32_t  halves = (uint32_t) quant_halves(pack);

    n = w->n_in / LLM_BLOCK;
    codes = w->data + panel * w->panel_size;
    scales = codes + w->codes_size;

    fd = (float *) (void *) (scratch + n * 512);
    fm = fd + n * 32;
    book = quant_book(w);

    p->codes = pack == LLM_PACK_Q8_0 ? codes : scratch;
    p->d = fd;
    p->m = fm;

    for (b = 0; b < n; b++) {

        quant_scales(pack, scales, b, d, m);

        simd_unroll
        for (i = 0; i < halves; i++) {
            _mm512_store_ps(fd + (b * halves + i) * 16, d[i]);

            if (quant_has_min(pack)) {
                _mm512_store_ps(fm + (b * halves + i) * 16, m[i]);
            }
        }

        if (pack != LLM_PACK_Q8_0) {
            quant_codes(pack, codes + b * quant_code_size(pack), book, v);

            simd_unroll
            for (i = 0; i < 8; i++) {
                _mm512_store_si512(scratch + b * 512 + i * 64, v[i]);
            }
        }
    }
}


/*
 * a += `groups` groups of two panels by mm rows of x; offset: from q to the
 * elements of the first group
 */

simd_inline void
quant_pair(__m512i (*a)[2], const uint8_t *c0, const uint8_t *c1,
    const int8_t *const *q, size_t offset, const int mm, const int groups)
{
    int      i, m;
    __m512i  w0, w1, v;

    simd_unroll
    for (i = 0; i < groups; i++) {
        w0 = _mm512_load_si512(c0 + i * 64);
        w1 = _mm512_load_si512(c1 + i * 64);

        simd_unroll
        for (m = 0; m < mm; m++) {
            v = quant_x(q[m] + offset + i * 4);
            a[m][0] = _mm512_dpbusd_epi32(a[m][0], w0, v);
            a[m][1] = _mm512_dpbusd_epi32(a[m][1], w1, v);
        }
    }
}


/* mm rows by two panels */

simd_inline void
quant_many_tile(const llm_cpu_gemm_t *g, uint32_t pack,
    const quant_panel_t *p, uint32_t panel, uint32_t row, const int mm,
    const int fine)
{
    int                     m;
    size_t                  at, end, code, low;
    size_t                  first[QUANT_MANY_MM], start[QUANT_MANY_MM];
    __m512                  acc[QUANT_MANY_MM][2], d0, d1, f;
    __m512i                 a[QUANT_MANY_MM][2], v;
    const int8_t           *q[QUANT_MANY_MM];
    const llm_cpu_stage_t  *x;

    /* scales per block, and groups per scale */
    const size_t            halves = (size_t) quant_halves(pack);
    const size_t            groups = 8 / halves;
    const float            *sums;

    x = g->x;
    sums = halves == 2 ? x->half : x->sum;
    end = x->n_blocks * halves;
    low = fine ? (size_t) (x->q_low - x->q) : 0;

    simd_unroll
    for (m = 0; m < mm; m++) {
        q[m] = x->q + (row + m) * x->stride;
        first[m] = llm_stage_at(row + (uint32_t) m, x->n_blocks);
        start[m] = llm_stage_at(row + (uint32_t) m, end);
        acc[m][0] = _mm512_setzero_ps();
        acc[m][1] = _mm512_setzero_ps();
    }

    for (at = 0; at < end; at++) {

        code = at * groups * 64;

        simd_unroll
        for (m = 0; m < mm; m++) {
            v = fine ? _mm512_setzero_si512()
                     : quant_start(x, pack, start[m] + at * 16);
            a[m][0] = a[m][1] = v;
        }

        quant_pair(a, p[0].codes + code, p[1].codes + code, q,
                   at * groups * 4, mm, (int) groups);

        if (fine) {
            simd_unroll
            for (m = 0; m < mm; m++) {
                v = quant_start(x, pack, start[m] + at * 16);
                a[m][0] = _mm512_add_epi32(_mm512_slli_epi32(a[m][0], 7), v);
                a[m][1] = _mm512_add_epi32(_mm512_slli_epi32(a[m][1], 7), v);
            }

            quant_pair(a, p[0].codes + code, p[1].codes + code, q,
                       low + at * groups * 4, mm, (int) groups);
        }

        d0 = _mm512_load_ps(p[0].d + at * 16);
        d1 = _mm512_load_ps(p[1].d + at * 16);

        simd_unroll
        for (m = 0; m < mm; m++) {
            f = _mm512_set1_ps(x->d[first[m] + at / halves * 16]);
            acc[m][0] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(a[m][0]),
                                        _mm512_mul_ps(d0, f), acc[m][0]);
            acc[m][1] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(a[m][1]),
                                        _mm512_mul_ps(d1, f), acc[m][1]);
        }

        if (quant_has_min(pack)) {
            d0 = _mm512_load_ps(p[0].m + at * 16);
            d1 = _mm512_load_ps(p[1].m + at * 16);

            simd_unroll
            for (m = 0; m < mm; m++) {
                f = _mm512_set1_ps(sums[start[m] + at * 16]);
                acc[m][0] = _mm512_fmadd_ps(d0, f, acc[m][0]);
                acc[m][1] = _mm512_fmadd_ps(d1, f, acc[m][1]);
            }
        }
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        gemm_store(g, row + m, panel * LLM_PANEL, acc[m][0]);
        gemm_store(g, row + m, (panel + 1) * LLM_PANEL, acc[m][1]);
    }
}


simd_inline void
quant_many_rows(const llm_cpu_gemm_t *g, uint32_t pack,
    const quant_panel_t *p, uint32_t panel)
{
    uint32_t  row, end;

    end = g->row + g->n_rows;
    row = g->row;

    if (g->x->fine) {
        for ( /* void */ ; row + QUANT_MANY_MM <= end; row += QUANT_MANY_MM)
        {
            quant_many_tile(g, pack, p, panel, row, QUANT_MANY_MM, 1);
        }

        for ( /* void */ ; row + 2 <= end; row += 2) {
            quant_many_tile(g, pack, p, panel, row, 2, 1);
        }

        if (row < end) {
            quant_many_tile(g, pack, p, panel, row, 1, 1);
        }

        return;
    }

    for ( /* void */ ; row + QUANT_MANY_MM <= end; row += QUANT_MANY_MM) {
        quant_many_tile(g, pack, p, panel, row, QUANT_MANY_MM, 0);
    }

    if (row + 4 <= end) {
        quant_many_tile(g, pack, p, panel, row, 4, 0);
        row += 4;
    }

    if (row + 2 <= end) {
        quant_many_tile(g, pack, p, panel, row, 2, 0);
        row += 2;
    }

    if (row < end) {
        quant_many_tile(g, pack, p, panel, row, 1, 0);
    }
}


/*
 * Unpacked panels differ only in zero, minimum and halves: one expansion for
 * each kind.
 */

static void
quant_many_any(const llm_cpu_gemm_t *g, const quant_panel_t *p,
    uint32_t panel)
{
    switch (quant_kind(g->w->format.pack)) {

    case LLM_PACK_Q8_0:
        quant_many_rows(g, LLM_PACK_Q8_0, p, panel);
        break;

    case LLM_PACK_Q4_0:
        quant_many_rows(g, LLM_PACK_Q4_0, p, panel);
        break;

    case LLM_PACK_Q5_0:
        quant_many_rows(g, LLM_PACK_Q5_0, p, panel);
        break;

    case LLM_PACK_Q6_K:
        quant_many_rows(g, LLM_PACK_Q6_K, p, panel);
        break;

    case LLM_PACK_K16_3:
        quant_many_rows(g, LLM_PACK_K16_3, p, panel);
        break;

    case LLM_PACK_M16_2:
        quant_many_rows(g, LLM_PACK_M16_2, p, panel);
        break;

    default:  /* a minimum and no zero: LLM_PACK_Q4_1, LLM_PACK_Q5_1 */
        quant_many_rows(g, LLM_PACK_Q4_1, p, panel);
    }
}


static void
quant_unpack_any(const llm_weight_t *w, uint32_t panel, uint8_t *scratch,
    quant_panel_t *p)
{
    switch (w->format.pack) {

#define LLM_PACK(NAME, bits, range, zero, scale, as)                         \
    case LLM_PACK_##NAME:                                                    \
        quant_unpack(w, LLM_PACK_##NAME, panel, scratch, p);                 \
        break;
#include "kernels/cpu/packs.def"

    default:
        break;
    }
}


static void
quant_many(const llm_cpu_gemm_t *g)
{
    size_t         size;
    uint32_t       i, n, end;
    quant_panel_t  p[2];

    end = g->panel + g->n_panels;
    size = g->w->n_in / LLM_BLOCK * (size_t) (512 + 4 * 64);

    for (i = g->panel; i < end; i += 2) {

        for (n = 0; n < 2 && i + n < end; n++) {
            quant_unpack_any(g->w, i + n, g->scratch + n * size, &p[n]);
        }

        if (n == 1) {
            p[1] = p[0];
        }

        quant_many_any(g, p, i);
    }
}


static void
quant_gemm(const llm_cpu_gemm_t *g)
{
    if (g->n_rows > (g->x->fine ? QUANT_FEW_FINE : QUANT_FEW)) {
        quant_many(g);
        return;
    }

    switch (g->w->format.pack) {

#define LLM_PACK(NAME, bits, range, zero, scale, as)                         \
    case LLM_PACK_##NAME:                                                    \
        quant_few(g, LLM_PACK_##NAME);                                       \
        break;
#include "kernels/cpu/packs.def"

    default:
        break;
    }
}
