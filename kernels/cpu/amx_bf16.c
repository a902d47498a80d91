/*
 * Products in bfloat16 with AMX tiles: TDPBF16PS in order of k for any number of
 * rows, even for one.  Its sums differ from those of VDPBF16PS, so the two are
 * never mixed.
 *
 * Weights are BF16 in their panels, or, with products=bf16-all, quantised ones,
 * which are rounded to bfloat16 as they are unpacked: their codes times their
 * scales are then what a file of BF16 weights would have.
 */

#include "kernels/cpu/cpu.h"

#if defined(__x86_64__)

#include "kernels/cpu/amx_target.h"

#include "kernels/cpu/simd512.h"
#include "kernels/cpu/gemm_store.h"
#include "kernels/cpu/quant.h"
#include "kernels/cpu/quant512_codes.h"
#include "kernels/cpu/bf16.h"
#include "kernels/cpu/amx.h"

/* elements of a row in a chunk of weights; up to AMX_DEPTH_MAX if they are the
   last */
#define AMX_DEPTH       512
#define AMX_DEPTH_MAX   768

/* pairs of panels that are multiplied by a chunk of x in turn */
#define AMX_PAIRS       8

/* BF16 weights with fewer rows, and x of at most so many bytes, are one chunk:
   sums that are stored and loaded would cost more */
#define AMX_OFTEN       128
#define AMX_ONCE        ((size_t) 1 << 20)

/* floats of the sums of 32 rows by two panels */
#define AMX_SUMS        (4 * AMX_ROWS * LLM_PANEL)

_Static_assert(AMX_PAIRS * LLM_TILE_SPAN / 32 * AMX_SUMS * 4
               + AMX_DEPTH_MAX * AMX_PANELS * 32 <= LLM_TILE_SCRATCH,
               "sums and two chunks fit");


/*
 * x in bfloat16 is kept in the order in which tiles are read: 16 rows of 32
 * elements after one another, then the next 32 elements of these rows.
 */

void
llm_amx_stage_bf16(const llm_cpu_stage_t *s, const float *x, uint32_t row)
{
    bf16_stage_row(s, x, row / AMX_ROWS * AMX_ROWS * s->stride
                         + row % AMX_ROWS * 32,
                   AMX_ROWS * 32);
}


/*
 * The chunks of two panels that are multiplied next, which are read in advance
 * into the second-level cache: else tiles would wait for them.  Their lines are
 * divided among the steps of k of all tiles of the current chunks, so that few
 * requests are in flight.  Up to 32 rows nothing is read in advance, because
 * such a product only waits for memory.
 */

typedef struct {
    const uint8_t       *at[AMX_PANELS];
    const uint8_t       *end[AMX_PANELS];
    uint32_t             lines;         /* of a step, of each panel */
} amx_ahead_t;


simd_inline void
amx_ahead_step(amx_ahead_t *a)
{
    uint32_t  i, p;

    for (i = 0; i < a->lines && a->at[0] < a->end[0]; i++) {
        simd_unroll
        for (p = 0; p < AMX_PANELS; p++) {
            __builtin_prefetch(a->at[p], 0, 2);
            a->at[p] += 64;
        }
    }
}


/* elements k to end - 1 of two panels from `panel` on, while chunks of `depth`
   elements are multiplied by n_rows rows */

static void
amx_ahead_set(amx_ahead_t *a, const llm_weight_t *w, uint32_t panel, size_t k,
    size_t end, size_t depth, uint32_t n_rows)
{
    size_t    unit, lines, steps;
    uint32_t  p, tiles;

    unit = w->codes_size / (llm_align(w->n_in, 32) / 32);
    tiles = (n_rows + 2 * AMX_ROWS - 1) / (2 * AMX_ROWS);

    for (p = 0; p < AMX_PANELS; p++) {
        a->at[p] = w->data + llm_min(panel + p, w->n_panels - 1)
                             * w->panel_size + k / 32 * unit;
        a->end[p] = a->at[p] + (end - k) / 32 * unit;
    }

    lines = (size_t) (a->end[0] - a->at[0]) / 64;
    steps = tiles * (depth / 32);
    a->lines = tiles > 1 && panel < w->n_panels
               ? (uint32_t) ((lines + steps - 1) / steps) : 0;
}


/* byte i of each four, minus zero; start is 2^23 + zero, whose lowest bits are
   added first */

simd_inline __m512
amx_byte(__m512i v, unsigned i, __m512 start)
{
    v = _mm512_srli_epi32(v, 8 * i);

    /* v & 0xff | 2^23 */
    v = _mm512_ternarylogic_epi32(v, _mm512_set1_epi32(0xff),
                                  _mm512_set1_epi32(0x4b000000), 0xea);

    return _mm512_sub_ps(_mm512_castsi512_ps(v), start);
}


/* bfloat16 of two vectors, in turns */

simd_inline __m512i
amx_rounded(__m512 even, __m512 odd)
{
    const __m512i  order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12,
                                            27, 11, 26, 10, 25, 9, 24, 8,
                                            23, 7, 22, 6, 21, 5, 20, 4,
                                            19, 3, 18, 2, 17, 1, 16, 0);

    return _mm512_permutexvar_epi16(order,
                                    (__m512i) _mm512_cvtne2ps_pbh(odd, even));
}


/* codes of four k by 16 outputs, a byte each, times their scale, and their
   minimum, become two rows of a tile */

simd_inline void
amx_scaled(uint32_t pack, __m512i v, __m512 start, __m512 d, __m512 m,
    uint16_t *to)
{
    unsigned  i;
    __m512    f[4];

    simd_unroll
    for (i = 0; i < 4; i++) {
        f[i] = _mm512_mul_ps(amx_byte(v, i, start), d);

        if (quant_has_min(pack)) {
            f[i] = _mm512_add_ps(f[i], m);
        }
    }

    _mm512_store_si512(to, amx_rounded(f[0], f[1]));
    _mm512_store_si512(to + 32, amx_rounded(f[2], f[3]));
}


/* n blocks of a panel in bfloat16, in the layout of BF16 weights */

simd_inline void
amx_round(const llm_weight_t *w, uint32_t pack, uint32_t panel, uint32_t from,
    uint32_t n, uint16_t *to)
{
    uint32_t        b, i, half;
    __m512          d[2], m[2], start;
    __m512i         v[8], book;
    const uint8_t  *codes, *scales;

    codes = w->data + panel * w->panel_size;
    scales = codes + w->codes_size;
    start = _mm512_set1_ps(0x1p23f + w->format.zero);
    book = quant_book(w);
    m[0] = m[1] = _mm512_setzero_ps();

    for (b = from; b < from + n; b++) {

        quant_codes(pack, codes + b * quant_code_size(pack), book, v);
        quant_scales(pack, scales, b, d, m);

        simd_unroll
        for (i = 0; i < 8; i++) {
            half = quant_halves(pack) == 2 ? i / 4 : 0;
            amx_scaled(pack, v[i], start, d[half], m[half], to + i * 64);
        }

        to += LLM_BLOCK * LLM_PANEL;
    }
}


static void
amx_round_any(const llm_weight_t *w, uint32_t panel, uint32_t from, uint32_t n,
    uint16_t *to)
{
    switch (w->format.pack) {

#define LLM_PACK(NAME, bits, range, zero, scale, as)                         \
    case LLM_PACK_##NAME:                                                    \
        amx_round(w, LLM_PACK_##NAME, panel, from, n, to);                   \
        break;
#include "kernels/cpu/packs.def"

    default:
        break;
    }

    amx_written();
}


/* two panels by 32 rows, from element k to element `end` of a row: tiles 0 and
   1 have the sums of the first 16 rows, 2 and 3 those of the other 16 */

typedef struct {
    const uint16_t      *x[2];          /* of 16 rows each; x[1] is NULL if there
                                           are no other rows */
    const uint16_t      *w[2];          /* of element k */
    size_t               low;           /* elements from x to its low part; 0:
                                           there is none */
    size_t               k;
    size_t               end;
    float               *sums;          /* [4][16][16] */
    float               *y;             /* the results of the first row */
    size_t               y_row;         /* elements from a row of y to the next */
    uint32_t             y_rows;        /* rows that there are; 0: the sums are
                                           not complete at `end` */
    uint32_t             y_step;        /* rows that a step of k requests */
    int                  direct;        /* 1: all results are there, and are the
                                           sums, which are stored to y */
} amx_step_t;


/* requests the next rows of y, which another core may have written */

simd_inline void
amx_request_y(const amx_step_t *t, uint32_t *row)
{
    uint32_t  end;

    end = llm_min(*row + t->y_step, t->y_rows);

    for ( /* void */ ; *row < end; (*row)++) {
        __builtin_prefetch(t->y + *row * t->y_row, 1, 3);
        __builtin_prefetch(t->y + *row * t->y_row + LLM_PANEL, 1, 3);
    }
}


/* stores the sums of the four tiles, whose rows are `row` elements apart */

simd_inline void
amx_store_sums(float *y, size_t row, float *y1, float *y2, float *y3)
{
    _tile_stored(0, y, row * 4);
    _tile_stored(1, y1, row * 4);
    _tile_stored(2, y2, row * 4);
    _tile_stored(3, y3, row * 4);
}


simd_inline void
amx_bf16_products(const amx_step_t *t, size_t k)
{
    _tile_stream_loadd(4, t->x[0] + k, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);

    if (t->x[1]) {
        _tile_stream_loadd(5, t->x[1] + k, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
}


static void
amx_bf16_run(const amx_step_t *t, amx_ahead_t *ahead)
{
    float     *y;
    size_t     k;
    uint32_t   row;

    row = 0;

    if (t->k) {
        _tile_loadd(0, t->sums, 64);
        _tile_loadd(1, t->sums + 256, 64);
        _tile_loadd(2, t->sums + 512, 64);
        _tile_loadd(3, t->sums + 768, 64);

    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }

    for (k = t->k; k < t->end; k += 32) {

        _tile_loadd(6, t->w[0] + (k - t->k) * LLM_PANEL, 64);
        _tile_loadd(7, t->w[1] + (k - t->k) * LLM_PANEL, 64);
        amx_ahead_step(ahead);
        amx_request_y(t, &row);

        amx_bf16_products(t, k * AMX_ROWS);

        if (t->low) {
            amx_bf16_products(t, k * AMX_ROWS + t->low);
        }
    }

    if (t->direct) {
        y = t->y + AMX_ROWS * t->y_row;
        amx_store_sums(t->y, t->y_row, t->y + LLM_PANEL, y, y + LLM_PANEL);

    } else {
        y = t->sums;
        amx_store_sums(y, AMX_ROWS, y + 256, y + 512, y + 768);
    }
}


/* stores the results of up to 32 rows by two panels; those of a second panel
   that is missing are not stored, nor are those of missing rows */

static void
amx_bf16_store(const llm_cpu_gemm_t *g, const float *sums, uint32_t row,
    uint32_t panel)
{
    uint32_t  r, end;

    end = llm_min(g->row + g->n_rows - row, 2 * AMX_ROWS);

    for (r = 0; r < end; r++) {
        gemm_store(g, row + r, panel * LLM_PANEL,
                   _mm512_load_ps(sums + r / 16 * 512 + r % 16 * 16));
        gemm_store(g, row + r, (panel + 1) * LLM_PANEL,
                   _mm512_load_ps(sums + r / 16 * 512 + r % 16 * 16 + 256));
    }
}


/* the chunk of a panel from t->k to t->end; codes are unpacked into scratch */

static void
amx_bf16_chunk(const llm_cpu_gemm_t *g, amx_step_t *t, uint32_t panel, int i)
{
    uint16_t            *to;
    const llm_weight_t  *w = g->w;

    panel = llm_min(panel, g->panel + g->n_panels - 1);

    if (w->format.bits == 0) {
        t->w[i] = (const uint16_t *) (const void *)
                  (w->data + panel * w->panel_size) + t->k * LLM_PANEL;
        return;
    }

    to = (uint16_t *) (void *) g->scratch + i * AMX_DEPTH_MAX * LLM_PANEL;
    amx_round_any(w, panel, (uint32_t) (t->k / LLM_BLOCK),
                  (uint32_t) ((t->end - t->k) / LLM_BLOCK), to);
    t->w[i] = to;
}


/* where the results of the rows from `row` on go, after the last chunk */

static void
amx_bf16_results(const llm_cpu_gemm_t *g, amx_step_t *t, uint32_t panel,
    uint32_t row, uint32_t last)
{
    uint32_t  n, steps;

    n = g->w->n_out;
    steps = (uint32_t) ((t->end - t->k) / 32);

    t->y = g->y + (size_t) row * n + panel * LLM_PANEL;
    t->y_row = n;
    t->y_rows = llm_min(last - row, 2 * AMX_ROWS);
    t->y_step = (2 * AMX_ROWS + steps - 1) / steps;
    t->direct = g->scale == 1 && g->bias == NULL && !g->add
                && t->y_rows == 2 * AMX_ROWS
                && panel + AMX_PANELS <= g->panel + g->n_panels
                && (panel + AMX_PANELS) * LLM_PANEL <= n;
}


/* the rows from `first` to last - 1 by two chunks */

static void
amx_bf16_rows(const llm_cpu_gemm_t *g, amx_step_t *t, uint32_t panel,
    uint32_t first, uint32_t last, int complete, amx_ahead_t *ahead)
{
    uint32_t                row;
    const llm_cpu_stage_t  *s = g->x;

    for (row = first; row < last; row += 2 * AMX_ROWS, t->sums += AMX_SUMS) {
        t->x[0] = s->b + row * s->stride;
        t->x[1] = row + AMX_ROWS < last ? t->x[0] + AMX_ROWS * s->stride
                                        : NULL;

        if (complete) {
            amx_bf16_results(g, t, panel, row, last);
        }

        amx_bf16_run(t, ahead);

        if (complete && !t->direct) {
            amx_bf16_store(g, t->sums, row, panel);
        }
    }
}


/* the end of the chunk that begins at k */

static size_t
amx_bf16_end(const llm_cpu_gemm_t *g, size_t k, uint32_t n_rows)
{
    size_t  n;

    n = llm_align(g->w->n_in, 32);

    if (n - k < AMX_DEPTH_MAX
        || (g->w->format.bits == 0 && n_rows < AMX_OFTEN
            && n_rows * n * sizeof(uint16_t) * (g->x->fine ? 2 : 1)
               <= AMX_ONCE))
    {
        return n;
    }

    return k + AMX_DEPTH;
}


/*
 * Some pairs of panels by a span of rows, in chunks of k.  A chunk of x stays
 * in the second-level cache for all pairs, one of weights, which is unpacked if
 * it has codes, in the first-level cache for all rows; sums are kept in scratch
 * from one chunk to the next.  A missing second panel is replaced by the last
 * one.  after: the panel that is multiplied then.
 */

static void
amx_bf16_group(const llm_cpu_gemm_t *g, uint32_t panel, uint32_t n,
    uint32_t after, uint32_t first, uint32_t last, amx_ahead_t *ahead)
{
    float       *sums;
    size_t       next;
    uint32_t     i, rows;
    amx_step_t   t;

    /* y_rows and direct stay 0 until the last chunk */
    memset(&t, 0, sizeof(t));

    t.low = g->x->fine ? (size_t) (g->x->b_low - g->x->b) : 0;
    rows = (last - first + 2 * AMX_ROWS - 1) / (2 * AMX_ROWS);
    sums = (float *) (void *) (g->scratch + AMX_DEPTH_MAX * AMX_PANELS * 32);

    do {
        t.k = t.end;
        t.end = amx_bf16_end(g, t.k, last - first);
        next = t.end < llm_align(g->w->n_in, 32) ? t.end : 0;

        for (i = 0; i < n; i += AMX_PANELS) {

            if (i + AMX_PANELS < n) {
                amx_ahead_set(ahead, g->w, panel + i + AMX_PANELS, t.k, t.end,
                              t.end - t.k, last - first);

            } else {
                amx_ahead_set(ahead, g->w, next ? panel : after, next,
                              amx_bf16_end(g, next, last - first),
                              t.end - t.k, last - first);
            }

            t.sums = sums + i / AMX_PANELS * rows * AMX_SUMS;
            amx_bf16_chunk(g, &t, panel + i, 0);
            amx_bf16_chunk(g, &t, panel + i + 1, 1);
            amx_bf16_rows(g, &t, panel + i, first, last, next == 0, ahead);
        }

    } while (next);
}


void
llm_amx_gemm_bf16(const llm_cpu_gemm_t *g)
{
    uint32_t     row, last, end, panel, next, n;
    amx_ahead_t  ahead;

    amx_configure(64);
    amx_written();
    end = g->panel + g->n_panels;

    for (row = g->row; row < g->row + g->n_rows; row = last) {
        last = llm_min(row + LLM_TILE_SPAN, g->row + g->n_rows);

        for (panel = g->panel; panel < end; panel += n) {
            n = llm_min(end - panel, AMX_PAIRS * AMX_PANELS);
            next = panel + n == end && last < g->row + g->n_rows ? g->panel
                                                                 : panel + n;
            amx_bf16_group(g, panel, n, next, row, last, &ahead);
        }
    }

    _tile_release();
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
