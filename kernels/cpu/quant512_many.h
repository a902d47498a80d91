/*
 * Products of quantised weights with more than QUANT_FEW rows: panels are
 * unpacked two at a time, for all rows.  Included after quant512.h.
 */

#define QUANT_MANY_MM  4


/*
 * Two unpacked panels, for products of many rows: codes as bytes, scales and
 * minima as float32.  All are in the scratch, except Q8_0's codes, which are
 * read from the weight.
 */

typedef struct {
    const uint8_t       *codes[2];      /* [n_blocks][512] */
    float               *d;             /* [n_blocks][halves][2][16], or
                                           [n_blocks][halves][2][2][16]: d of
                                           both panels, then m */
} quant_pair_t;


/* floats of d and m for a block or half */

simd_inline size_t
quant_pair_step(uint32_t pack)
{
    return quant_has_min(pack) ? 64 : 32;
}


/* i: which of the two it becomes */

simd_inline void
quant_unpack(const llm_weight_t *w, uint32_t pack, uint32_t panel, int i,
    uint8_t *scratch, quant_pair_t *p)
{
    float          *f;
    __m512          d[2], m[2];
    __m512i         v[8], book;
    uint32_t        b, k, n;
    const uint8_t  *codes, *scales;

    const uint32_t  halves = (uint32_t) quant_halves(pack);

    n = w->n_in / LLM_BLOCK;
    codes = w->data + panel * w->panel_size;
    scales = codes + w->codes_size;
    book = quant_book(w);

    p->d = (float *) (void *) (scratch + 2 * n * 512);
    scratch += (uint32_t) i * n * 512;
    p->codes[i] = pack == LLM_PACK_Q8_0 ? codes : scratch;
    f = p->d + i * 16;

    for (b = 0; b < n; b++) {

        quant_scales(pack, scales, b, d, m);

        simd_unroll
        for (k = 0; k < halves; k++) {
            _mm512_store_ps(f, d[k]);

            if (quant_has_min(pack)) {
                _mm512_store_ps(f + 32, m[k]);
            }

            f += quant_pair_step(pack);
        }

        if (pack != LLM_PACK_Q8_0) {
            quant_codes(pack, codes + b * quant_code_size(pack), book, v);

            simd_unroll
            for (k = 0; k < 8; k++) {
                _mm512_store_si512(scratch + b * 512 + k * 64, v[k]);
            }
        }
    }
}


/* the rows of a tile, of the same 16 rows of the stage */

typedef struct {
    const int8_t        *q;             /* of the first row */
    size_t               stride;        /* bytes of a row of q */
    size_t               first;         /* its index of d[] */
    size_t               start;         /* of zero[], sum[] and half[] */
} quant_rows_t;


/*
 * a += `groups` groups of two panels by the rows of x; q: the first group's
 * elements of the first row
 */

simd_inline void
quant_groups(__m512i (*a)[2], const uint8_t *c0, const uint8_t *c1,
    const int8_t *q, size_t stride, const int groups)
{
    int            i, m;
    __m512i        w0, w1, v;
    const int8_t  *row[QUANT_MANY_MM];

    simd_unroll
    for (m = 0; m < QUANT_MANY_MM; m++) {
        row[m] = quant_hidden(q + (size_t) m * stride);
    }

    simd_unroll
    for (i = 0; i < groups; i++) {
        w0 = _mm512_load_si512(c0 + i * 64);
        w1 = _mm512_load_si512(c1 + i * 64);

        simd_unroll
        for (m = 0; m < QUANT_MANY_MM; m++) {
            v = quant_x(row[m] + i * 4);
            a[m][0] = _mm512_dpbusd_epi32(a[m][0], w0, v);
            a[m][1] = _mm512_dpbusd_epi32(a[m][1], w1, v);
        }
    }
}


/* the dot products of what has scale `at`: a block or half of one */

simd_inline void
quant_dots(__m512i (*a)[2], const llm_cpu_stage_t *x, uint32_t pack,
    const quant_pair_t *p, const quant_rows_t *r, size_t at, const int fine)
{
    int             m;
    __m512i         v;
    const int8_t   *q;
    const uint8_t  *c0, *c1;

    const int  groups = 8 / quant_halves(pack);

    q = r->q + at * (size_t) groups * 4;
    c0 = p->codes[0] + at * (size_t) groups * 64;
    c1 = p->codes[1] + at * (size_t) groups * 64;

    simd_unroll
    for (m = 0; m < QUANT_MANY_MM; m++) {
        a[m][0] = a[m][1] = fine ? _mm512_setzero_si512()
                            : quant_start(x, pack, r->start + at * 16
                                                   + (size_t) m);
    }

    quant_groups(a, c0, c1, q, r->stride, groups);

    if (fine) {
        simd_unroll
        for (m = 0; m < QUANT_MANY_MM; m++) {
            v = quant_start(x, pack, r->start + at * 16 + (size_t) m);
            a[m][0] = _mm512_add_epi32(_mm512_slli_epi32(a[m][0], 7), v);
            a[m][1] = _mm512_add_epi32(_mm512_slli_epi32(a[m][1], 7), v);
        }

        quant_groups(a, c0, c1, q + (x->q_low - x->q), r->stride, groups);
    }
}


/* adds block b to the sums of the rows by two panels */

simd_inline void
quant_many_block(__m512 (*acc)[2], const llm_cpu_stage_t *x, uint32_t pack,
    const quant_pair_t *p, const quant_rows_t *r, size_t b, const int fine)
{
    int           i, m;
    __m512        t[QUANT_MANY_MM][2], d[2], f;
    size_t        at;
    __m512i       a[QUANT_MANY_MM][2];
    const float  *scales;

    at = b * (size_t) quant_halves(pack);
    scales = p->d + at * quant_pair_step(pack);
    quant_dots(a, x, pack, p, r, at, fine);

    if (quant_halves(pack) == 2) {
        d[0] = _mm512_load_ps(scales);
        d[1] = _mm512_load_ps(scales + 16);

        simd_unroll
        for (m = 0; m < QUANT_MANY_MM; m++) {
            simd_unroll
            for (i = 0; i < 2; i++) {
                t[m][i] = _mm512_mul_ps(_mm512_cvtepi32_ps(a[m][i]), d[i]);
            }
        }

        quant_dots(a, x, pack, p, r, at + 1, fine);
        scales += quant_pair_step(pack);
    }

    d[0] = _mm512_load_ps(scales);
    d[1] = _mm512_load_ps(scales + 16);

    simd_unroll
    for (m = 0; m < QUANT_MANY_MM; m++) {
        f = _mm512_set1_ps(x->d[r->first + b * 16 + (size_t) m]);

        simd_unroll
        for (i = 0; i < 2; i++) {
            acc[m][i] = quant_halves(pack) == 2
                        ? quant_halves_add(t[m][i], a[m][i], d[i], f,
                                           acc[m][i])
                        : _mm512_fmadd_ps(_mm512_cvtepi32_ps(a[m][i]),
                                          _mm512_mul_ps(d[i], f), acc[m][i]);
        }
    }
}


/* adds the minima of block b times the sums of x */

simd_inline void
quant_many_minima(__m512 (*acc)[2], const llm_cpu_stage_t *x, uint32_t pack,
    const quant_pair_t *p, const quant_rows_t *r, size_t b)
{
    int           i, m;
    __m512        d[2], f;
    size_t        at;
    const float  *sums, *minima;

    const int  halves = quant_halves(pack);

    sums = halves == 2 ? x->half : x->sum;

    simd_unroll
    for (i = 0; i < halves; i++) {
        at = b * (size_t) halves + (size_t) i;
        minima = p->d + at * quant_pair_step(pack) + 32;
        d[0] = _mm512_load_ps(minima);
        d[1] = _mm512_load_ps(minima + 16);

        simd_unroll
        for (m = 0; m < QUANT_MANY_MM; m++) {
            f = _mm512_set1_ps(sums[r->start + at * 16 + (size_t) m]);
            acc[m][0] = _mm512_fmadd_ps(d[0], f, acc[m][0]);
            acc[m][1] = _mm512_fmadd_ps(d[1], f, acc[m][1]);
        }
    }
}


/* bytes that are prefetched into the second-level cache, some in each block */

typedef struct {
    const uint8_t       *p;
    const uint8_t       *end;
    size_t               step;          /* bytes of a block, 64 n */
} quant_next_t;


simd_inline void
quant_next(quant_next_t *n)
{
    const uint8_t  *to;

    if (n->p < n->end) {
        for (to = n->p + n->step; n->p < to; n->p += 64) {
            quant_ask(n->p, 1);
        }
    }
}


/* QUANT_MANY_MM rows by two panels.  The stage has whole tiles of 16 rows, and
   row is a multiple of QUANT_MANY_MM; results of rows that do not exist are not
   stored */

simd_inline void
quant_many_tile(const llm_cpu_gemm_t *g, uint32_t pack,
    const quant_pair_t *p, uint32_t panel, uint32_t row, quant_next_t *next,
    const int fine)
{
    int           m;
    size_t        b;
    __m512        acc[QUANT_MANY_MM][2];
    quant_rows_t  r;

    r.q = g->x->q + row * g->x->stride;
    r.stride = g->x->stride;
    r.first = llm_stage_at(row, g->x->n_blocks);
    r.start = llm_stage_at(row, g->x->n_blocks
                                * (uint32_t) quant_halves(pack));

    simd_unroll
    for (m = 0; m < QUANT_MANY_MM; m++) {
        acc[m][0] = acc[m][1] = _mm512_setzero_ps();
    }

    for (b = 0; b < g->x->n_blocks; b++) {
        quant_next(next);
        quant_many_block(acc, g->x, pack, p, &r, b, fine);

        if (quant_has_min(pack)) {
            quant_many_minima(acc, g->x, pack, p, &r, b);
        }
    }

    gemm_store_tile(g, row, panel * LLM_PANEL, acc[0], QUANT_MANY_MM, 2);
}


simd_inline void
quant_many_rows(const llm_cpu_gemm_t *g, uint32_t pack,
    const quant_pair_t *p, uint32_t panel)
{
    size_t         size, blocks;
    uint32_t       row, end;
    quant_next_t   next;

    end = g->row + g->n_rows;

    /* the panels after these two, spread over the blocks of all tiles */
    size = llm_min(g->w->n_panels - llm_min(panel + 2, g->w->n_panels), 2)
           * g->w->panel_size;
    blocks = (size_t) (g->n_rows + QUANT_MANY_MM - 1) / QUANT_MANY_MM
             * g->x->n_blocks;
    next.p = g->w->data + (panel + 2) * g->w->panel_size;
    next.end = next.p + size;
    next.step = llm_align(size / blocks + 1, 64);

    for (row = g->row; row < end; row += QUANT_MANY_MM) {
        if (g->x->fine) {
            quant_many_tile(g, pack, p, panel, row, &next, 1);

        } else {
            quant_many_tile(g, pack, p, panel, row, &next, 0);
        }
    }
}


/*
 * Unpacked panels differ only in zero, minimum and halves: a function for each
 * kind.
 */

#define quant_many_function(NAME)                                            \
    static __attribute__((noinline)) void                                    \
    quant_many_##NAME(const llm_cpu_gemm_t *g, const quant_pair_t *p,        \
        uint32_t panel)                                                      \
    {                                                                        \
        quant_many_rows(g, LLM_PACK_##NAME, p, panel);                       \
    }

quant_many_function(Q8_0)
quant_many_function(Q4_0)
quant_many_function(Q4_1)
quant_many_function(Q5_0)
quant_many_function(Q6_K)
quant_many_function(K16_3)
quant_many_function(M16_2)


static void
quant_many_any(const llm_cpu_gemm_t *g, const quant_pair_t *p,
    uint32_t panel)
{
    switch (quant_kind(g->w->format.pack)) {

    case LLM_PACK_Q8_0:
        quant_many_Q8_0(g, p, panel);
        break;

    case LLM_PACK_Q4_0:
        quant_many_Q4_0(g, p, panel);
        break;

    case LLM_PACK_Q5_0:
        quant_many_Q5_0(g, p, panel);
        break;

    case LLM_PACK_Q6_K:
        quant_many_Q6_K(g, p, panel);
        break;

    case LLM_PACK_K16_3:
        quant_many_K16_3(g, p, panel);
        break;

    case LLM_PACK_M16_2:
        quant_many_M16_2(g, p, panel);
        break;

    default:  /* a minimum and no zero: LLM_PACK_Q4_1, LLM_PACK_Q5_1 */
        quant_many_Q4_1(g, p, panel);
    }
}


static void
quant_unpack_any(const llm_weight_t *w, uint32_t panel, int i,
    uint8_t *scratch, quant_pair_t *p)
{
    switch (w->format.pack) {

#define LLM_PACK(NAME, bits, range, zero, scale, as)                         \
    case LLM_PACK_##NAME:                                                    \
        quant_unpack(w, LLM_PACK_##NAME, panel, i, scratch, p);              \
        break;
#include "kernels/cpu/packs.def"

    default:
        break;
    }
}


/* the second of the last two panels may be missing: then it is the first one
   again, and its results are not stored */

static void
quant_many(const llm_cpu_gemm_t *g)
{
    uint32_t      i, end;
    quant_pair_t  p;

    end = g->panel + g->n_panels;

    for (i = g->panel; i < end; i += 2) {
        quant_unpack_any(g->w, i, 0, g->scratch, &p);
        quant_unpack_any(g->w, llm_min(i + 1, end - 1), 1, g->scratch, &p);
        quant_many_any(g, &p, i);
    }
}
