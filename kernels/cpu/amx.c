/*
 * Products of quantised weights with AMX tiles (Sapphire Rapids and later), if
 * there are many rows, and the table of kernels: products in bfloat16 are in
 * amx_bf16.c, attention is in amx_attn.c, all other kernels are those of
 * AVX-512.
 *
 * A unit is the elements that share a scale, a block of 32 or half of one.  One
 * TDPBSSD into a zeroed tile computes a unit's dot products of 16 rows by 16
 * outputs, which are then scaled and added in float32 exactly as in the AVX-512
 * kernels, so the bits are the same.
 */

#include "kernels/cpu/cpu.h"

#if defined(__x86_64__)

#include "kernels/cpu/amx_target.h"

#include "kernels/cpu/simd512.h"
#include "kernels/cpu/gemm_store.h"
#include "kernels/cpu/quant.h"
#include "kernels/cpu/quant512_codes.h"
#include "kernels/cpu/amx.h"

/* up to this number of rows AVX-512 is used: a tile takes as long for one row
   as for 16 */
#define AMX_FEW         8
/* blocks of a chunk of k, which stays in L1; up to AMX_CHUNK_MAX if they are
   the last */
#define AMX_CHUNK       32
#define AMX_CHUNK_MAX   48
/* rows whose sums are kept in scratch from one chunk of k to the next */
#define AMX_SPAN        256

/* bytes of dots, sums, and of a chunk's codes, scales and minima */
#define AMX_SCRATCH                                                          \
    (4 * 1024 + AMX_SPAN * 64 + AMX_CHUNK_MAX * (512 + 128 + 128))

_Static_assert(AMX_SCRATCH <= LLM_GEMM_SCRATCH, "a chunk fits");


/* an unpacked chunk of a panel, by units: signed codes, float32 scales and
   minima; the arrays are in the thread's scratch */
typedef struct {
    const llm_cpu_gemm_t  *g;
    int8_t                *codes;       /* [units][512 or 256] */
    float                 *d;           /* [units][16] */
    float                 *m;           /* [units][16] */
    float                 *sums;        /* [AMX_SPAN][16] */
    int32_t               *dots;        /* [4][16][16] */
    uint32_t               panel;
} amx_panel_t;


/* computes a unit's dot products in tile c; x and w are the tiles to load */

#define amx_dot(c, x, w, unit)                                               \
    _tile_zero(c);                                                           \
    _tile_loadd(x, q + (size_t) (unit) * size, stride);                      \
    _tile_loadd(w, codes + (size_t) (unit) * size * 16, 64);                 \
    _tile_dpbssd(c, x, w)


/* row r of a unit's dot products; fine: those of the low parts follow */

simd_inline __m512
amx_dots(const int32_t *dots, int r, const int fine)
{
    __m512i  v;

    v = _mm512_load_si512(dots + r * 16);

    if (fine) {
        v = _mm512_add_epi32(_mm512_slli_epi32(v, 7),
                             _mm512_load_si512(dots + 256 + r * 16));
    }

    return _mm512_cvtepi32_ps(v);
}


/* scales a block's dot products and adds them to the sums of 16 rows */

simd_inline void
amx_scale(__m512 acc[AMX_ROWS], const int32_t *dots, const float *d,
    const float *dx, const int fine)
{
    int     r;
    __m512  dw;

    dw = _mm512_load_ps(d);

    simd_unroll
    for (r = 0; r < AMX_ROWS; r++) {
        acc[r] = _mm512_fmadd_ps(amx_dots(dots, r, fine),
                                 _mm512_mul_ps(dw, _mm512_set1_ps(dx[r])),
                                 acc[r]);
    }
}


/* the same of halves with scales of their own: first and d are those of the
   first half */

simd_inline void
amx_scale_halves(__m512 acc[AMX_ROWS], const int32_t *first,
    const int32_t *dots, const float *d, const float *dx, const int fine)
{
    int     r;
    __m512  v, d0, d1;

    d0 = _mm512_load_ps(d);
    d1 = _mm512_load_ps(d + 16);

    simd_unroll
    for (r = 0; r < AMX_ROWS; r++) {
        v = _mm512_mul_ps(amx_dots(first, r, fine), d0);
        v = _mm512_fmadd_ps(amx_dots(dots, r, fine), d1, v);
        acc[r] = _mm512_fmadd_ps(v, _mm512_set1_ps(dx[r]), acc[r]);
    }
}


/* adds a unit's minima times the sums of x */

simd_inline void
amx_minima(__m512 acc[AMX_ROWS], const float *m, const float *sum)
{
    int     r;
    __m512  mw;

    mw = _mm512_load_ps(m);

    simd_unroll
    for (r = 0; r < AMX_ROWS; r++) {
        acc[r] = _mm512_fmadd_ps(mw, _mm512_set1_ps(sum[r]), acc[r]);
    }
}


/* the operands of 16 rows by a chunk of a panel, from its first unit on */

typedef struct {
    const int8_t          *q;           /* x of the first row */
    const int8_t          *codes;
    size_t                 low;         /* bytes from q to q_low */
    size_t                 stride;      /* bytes from row to row of q */
    const float           *d;           /* [units][16 outputs] */
    const float           *m;           /* [units][16 outputs]; NULL: none */
    const float           *dx;          /* [blocks][16 rows] */
    const float           *sum;         /* [units][16 rows] */
    int32_t               *dots;
    const uint8_t         *next;        /* the next panel, to be prefetched */
    uint32_t               lines;       /* 64-byte lines to prefetch per unit;
                                           0: none */
} amx_run_t;


simd_inline void
amx_ahead(const amx_run_t *t, size_t unit)
{
    uint32_t  i;

    for (i = 0; i < t->lines; i++) {
        __builtin_prefetch(t->next + (unit * t->lines + i) * 64, 0, 2);
    }
}


/* halves of a block are scaled together, when the second one is there; the
   first one's dot products are in the buffer before */

simd_inline void
amx_scale_unit(__m512 acc[AMX_ROWS], const amx_run_t *t, const int32_t *dots,
    size_t unit, const int halves, const int fine)
{
    amx_ahead(t, unit);

    if (halves == 2 && unit % 2 == 0) {
        return;
    }

    if (halves == 2) {
        amx_scale_halves(acc, dots - (fine ? 512 : 256), dots,
                         t->d + (unit - 1) * 16, t->dx + unit / 2 * 16, fine);

        if (t->m) {
            amx_minima(acc, t->m + (unit - 1) * 16, t->sum + (unit - 1) * 16);
        }

    } else {
        amx_scale(acc, dots, t->d + unit * 16, t->dx + unit * 16, fine);
    }

    if (t->m) {
        amx_minima(acc, t->m + unit * 16, t->sum + unit * 16);
    }
}


/*
 * Adds units u to end - 1 to the sums of 16 rows.  Three units are in progress
 * at any time: one is multiplied, one stored, one scaled.
 */

simd_inline void
amx_run(__m512 acc[AMX_ROWS], const amx_run_t *t, size_t u, size_t end,
    const int halves)
{
    int32_t       *dots = t->dots;
    const size_t   size = LLM_BLOCK / (size_t) halves;
    const size_t   stride = t->stride;
    const int8_t  *q = t->q, *codes = t->codes;

    if (end - u > 4) {

        amx_dot(0, 4, 6, u);
        amx_dot(1, 5, 7, u + 1);
        _tile_stored(0, dots, 64);

        for ( /* void */ ; u + 5 < end; u += 4) {

            amx_dot(2, 4, 6, u + 2);
            _tile_stored(1, dots + 256, 64);
            amx_scale_unit(acc, t, dots, u, halves, 0);

            amx_dot(3, 5, 7, u + 3);
            _tile_stored(2, dots + 512, 64);
            amx_scale_unit(acc, t, dots + 256, u + 1, halves, 0);

            amx_dot(0, 4, 6, u + 4);
            _tile_stored(3, dots + 768, 64);
            amx_scale_unit(acc, t, dots + 512, u + 2, halves, 0);

            amx_dot(1, 5, 7, u + 5);
            _tile_stored(0, dots, 64);
            amx_scale_unit(acc, t, dots + 768, u + 3, halves, 0);
        }

        _tile_stored(1, dots + 256, 64);
        amx_scale_unit(acc, t, dots, u, halves, 0);
        amx_scale_unit(acc, t, dots + 256, u + 1, halves, 0);
        u += 2;
    }

    for ( /* void */ ; u < end; u++) {
        amx_dot(0, 4, 6, u);
        _tile_stored(0, dots + u % 2 * 256, 64);
        amx_scale_unit(acc, t, dots + u % 2 * 256, u, halves, 0);
    }
}


/* the same with x in two parts (fine), one unit after the other */

simd_inline void
amx_run_fine(__m512 acc[AMX_ROWS], const amx_run_t *t, size_t u, size_t end,
    const int halves)
{
    int32_t       *dots;
    const size_t   size = LLM_BLOCK / (size_t) halves;
    const size_t   stride = t->stride;
    const int8_t  *q, *codes = t->codes;

    for ( /* void */ ; u < end; u++) {

        dots = t->dots + u % 2 * 512;
        q = t->q;

        amx_dot(0, 4, 6, u);
        q += t->low;
        amx_dot(1, 5, 7, u);

        _tile_stored(0, dots, 64);
        _tile_stored(1, dots + 256, 64);
        amx_scale_unit(acc, t, dots, u, halves, 1);
    }
}


/*
 * 16 rows by a chunk of the panel: n units from `from` on.  sums: the sums of
 * the previous chunk if from is not 0; written unless this is the last chunk,
 * whose sums are the results.
 */

simd_inline void
amx_quant_tile(const amx_panel_t *p, uint32_t row, uint32_t from, uint32_t n,
    float *sums, const int halves, const int min, const int fine)
{
    uint32_t                r, n_rows;
    __m512                  acc[AMX_ROWS];
    amx_run_t               t;
    const llm_weight_t     *w;
    const llm_cpu_stage_t  *x;

    x = p->g->x;
    w = p->g->w;

    t.q = x->q + row * x->stride + from * (LLM_BLOCK / (size_t) halves);
    t.codes = p->codes;
    t.low = (size_t) (x->q_low - x->q);
    t.stride = x->stride;
    t.d = p->d;
    t.m = min ? p->m : NULL;
    t.dx = x->d + llm_stage_at(row, x->n_blocks)
           + from / (size_t) halves * 16;
    t.sum = (halves == 2 ? x->half : x->sum)
            + llm_stage_at(row, x->n_blocks * (uint32_t) halves) + from * 16;
    t.dots = p->dots;
    t.next = w->data;
    t.lines = 0;

    /* the products of the first rows prefetch the next panel */

    if (row == p->g->row && p->panel + 1 < w->n_panels) {
        t.lines = (uint32_t) (w->panel_size
                              / (64 * (size_t) halves * x->n_blocks)) + 1;
        t.next += (p->panel + 1) * w->panel_size + from * t.lines * 64;
    }

    simd_unroll
    for (r = 0; r < AMX_ROWS; r++) {
        acc[r] = from ? _mm512_load_ps(sums + r * 16) : _mm512_setzero_ps();
    }

    if (fine) {
        amx_run_fine(acc, &t, 0, n, halves);

    } else {
        amx_run(acc, &t, 0, n, halves);
    }

    if (from + n < x->n_blocks * (uint32_t) halves) {
        simd_unroll
        for (r = 0; r < AMX_ROWS; r++) {
            _mm512_store_ps(sums + r * 16, acc[r]);
        }

        return;
    }

    n_rows = llm_min(p->g->row + p->g->n_rows - row, AMX_ROWS);

    simd_unroll
    for (r = 0; r < AMX_ROWS; r++) {
        if (r < n_rows) {
            gemm_store(p->g, row + r, p->panel * LLM_PANEL, acc[r]);
        }
    }
}


/* unpacks n blocks into scratch: codes minus the zero, scales and minima */

simd_inline void
amx_unpack(const amx_panel_t *p, uint32_t pack, uint32_t from, uint32_t n)
{
    uint32_t        i;
    __m512          d[2], m[2];
    __m512i         v[8], zero, book;
    uint32_t        b;
    const uint8_t  *src, *scales;

    const uint32_t  halves = (uint32_t) quant_halves(pack);

    src = p->g->w->data + p->panel * p->g->w->panel_size;
    scales = src + p->g->w->codes_size;
    zero = _mm512_set1_epi8((char) p->g->w->format.zero);
    book = quant_book(p->g->w);

    for (b = 0; b < n; b++) {

        quant_codes(pack, src + (from + b) * quant_code_size(pack), book, v);
        quant_scales(pack, scales, from + b, d, m);

        simd_unroll
        for (i = 0; i < 8; i++) {
            _mm512_store_si512(p->codes + b * 512 + i * 64,
                               _mm512_sub_epi8(v[i], zero));
        }

        simd_unroll
        for (i = 0; i < halves; i++) {
            _mm512_store_ps(p->d + (b * halves + i) * 16, d[i]);

            if (quant_has_min(pack)) {
                _mm512_store_ps(p->m + (b * halves + i) * 16,
                                m[i]);
            }
        }
    }

    amx_written();
}


static void
amx_unpack_any(const amx_panel_t *p, uint32_t from, uint32_t n)
{
    switch (p->g->w->format.pack) {

#define LLM_PACK(NAME, bits, range, zero, scale, as)                         \
    case LLM_PACK_##NAME:                                                    \
        amx_unpack(p, LLM_PACK_##NAME, from, n);                             \
        break;
#include "kernels/cpu/packs.def"

    default:
        break;
    }
}


/* one panel by all rows, in spans of rows and chunks of k */

simd_inline void
amx_quant_panel(const amx_panel_t *p, const int halves, const int min,
    const int fine)
{
    uint32_t  row, end, span, b, n, blocks;

    blocks = p->g->x->n_blocks;
    end = p->g->row + p->g->n_rows;

    for (span = p->g->row; span < end; span += AMX_SPAN) {
        for (b = 0; b < blocks; b += n) {

            n = blocks - b < AMX_CHUNK_MAX ? blocks - b : AMX_CHUNK;
            amx_unpack_any(p, b, n);

            for (row = span; row < llm_min(span + AMX_SPAN, end);
                 row += AMX_ROWS)
            {
                amx_quant_tile(p, row, b * (uint32_t) halves,
                               n * (uint32_t) halves,
                               p->sums + (row - span) * 16, halves, min,
                               fine);
            }
        }
    }
}


simd_inline void
amx_quant(const llm_cpu_gemm_t *g, const int halves, const int min)
{
    uint32_t     i;
    amx_panel_t  p;

    p.g = g;
    p.dots = (int32_t *) (void *) g->scratch;
    p.sums = (float *) (void *) (p.dots + 4 * 256);
    p.codes = (int8_t *) (p.sums + AMX_SPAN * 16);
    p.d = (float *) (void *) (p.codes + AMX_CHUNK_MAX * 512);
    p.m = p.d + AMX_CHUNK_MAX * 32;

    amx_configure(LLM_BLOCK / (uint32_t) halves);

    for (i = g->panel; i < g->panel + g->n_panels; i++) {
        p.panel = i;

        if (g->x->fine) {
            amx_quant_panel(&p, halves, min, 1);

        } else {
            amx_quant_panel(&p, halves, min, 0);
        }
    }

    _tile_release();
}


/* unpacked chunks differ only in halves and minima, so there are 4 cases */

static void
amx_gemm_quant(const llm_cpu_gemm_t *g)
{
    int         min;
    llm_pack_t  pack;

    if (g->n_rows <= AMX_FEW) {
        llm_avx512_gemm_quant(g);
        return;
    }

    pack = g->w->format.pack;
    min = quant_has_min(pack);

    if (quant_halves(pack) == 2) {
        if (min) {
            amx_quant(g, 2, 1);

        } else {
            amx_quant(g, 2, 0);
        }

    } else if (min) {
        amx_quant(g, 1, 1);

    } else {
        amx_quant(g, 1, 0);
    }
}


#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif


void
llm_cpu_kernels_amx(llm_cpu_kernels_t *k)
{
    llm_cpu_kernels_avx512(k);

    k->name = "AVX-512, AMX";
    k->bf16 = 1;
    k->tiles = 1;
    k->stage_bf16 = llm_amx_stage_bf16;
    k->gemm_quant = amx_gemm_quant;
    k->gemm_bf16 = llm_amx_gemm_bf16;
    llm_cpu_attn_amx(k);
}

#endif
