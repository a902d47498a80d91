/*
 * Products of quantised weights with few rows, with VPDPBUSD (AVX-512 VNNI),
 * and what those with many rows share with them; included after gemm_store.h and
 * quant512_codes.h.  Codes are the unsigned factors, activations the signed
 * ones.  What a code's zero adds to a dot product is compensated by starting
 * from zero[] of the stage.
 */

#define QUANT_FEW_MM   8
#define QUANT_FEW_NP   2

/* up to this number of rows, codes are unpacked in registers for each tile, in
   panels that the second-level cache has after the first one; with more rows, a
   panel is unpacked once for all */
#define QUANT_FEW      16
#define QUANT_FEW_FINE 6

/* distances of prefetches, in bytes of codes: QUANT_FAR from memory to the
   second-level cache, QUANT_NEAR from there to the first.  QUANT_FAR_MM, in
   blocks, replaces QUANT_FAR in tiles of QUANT_FEW_MM rows, which are limited
   by arithmetic */
#define QUANT_FAR      4608
#define QUANT_NEAR     2048
#define QUANT_FAR_MM   18


/* p, of which the compiler knows nothing: otherwise it keeps what is read
   there for the next panel, and pointers for each address of a loop, in more
   registers than there are */

simd_inline const int8_t *
quant_hidden(const int8_t *p)
{
    __asm__ ("" : "+r" (p));

    return p;
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


/*
 * A block whose halves have scales of their own: first is the first half's dot
 * products times its scale.  x is multiplied in once for both, see
 * docs/internals/model.md.
 */

simd_inline __m512
quant_halves_add(__m512 first, __m512i dot, __m512 d, __m512 x, __m512 acc)
{
    return _mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), d, first),
                           x, acc);
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

        acc = quant_halves_add(_mm512_mul_ps(_mm512_cvtepi32_ps(a0), d[0]),
                               a1, d[1], _mm512_set1_ps(x->d[at]), acc);

        if (quant_has_min(pack)) {
            acc = _mm512_fmadd_ps(min[0], _mm512_set1_ps(x->half[half]), acc);
            acc = _mm512_fmadd_ps(min[1], _mm512_set1_ps(x->half[half + 16]),
                                  acc);
        }

        return acc;
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
    __m512                  acc[QUANT_FEW_MM * QUANT_FEW_NP];   /* [mm][np] */
    __m512                  d[2], min[2];
    __m512i                 w[8], book;
    uint32_t                b, r, last, end;
    const int8_t           *q[QUANT_FEW_MM], *from;
    const uint8_t          *codes[QUANT_FEW_NP], *scales[QUANT_FEW_NP];
    const llm_cpu_stage_t  *x;

    x = g->x;
    last = g->panel + g->n_panels - 1;
    end = g->row + g->n_rows;
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
        /* so are rows */
        r = llm_min(row + (uint32_t) m, end - 1);
        q[m] = x->q + r * x->stride;
        first[m] = llm_stage_at(r, x->n_blocks);
        first2[m] = llm_stage_at(r, x->n_blocks * 2);

        simd_unroll
        for (p = 0; p < np; p++) {
            acc[m * np + p] = _mm512_setzero_ps();
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
                from = q[m] + b * LLM_BLOCK;
                from = fine || mm > 1 ? quant_hidden(from) : from;
                acc[m * np + p] = quant_block(x, pack, w, d, min, from, at,
                                              half, acc[m * np + p], fine);
            }
        }
    }

    gemm_store_tile(g, row, panel * LLM_PANEL, acc, mm, np);
}


/*
 * A function for each tile of each packing: in a function of several tiles the
 * compiler keeps less of a tile in registers.
 */

typedef void (*quant_few_pt)(const llm_cpu_gemm_t *g, uint32_t panel,
    uint32_t row);

typedef struct {
    uint32_t             mm;
    uint32_t             np;
    quant_few_pt         tile;
} quant_few_t;

#define quant_few_function(NAME, mm, np, fine)                               \
    static __attribute__((noinline)) void                                    \
    quant_few_##NAME##_##mm##_##fine(const llm_cpu_gemm_t *g,                \
        uint32_t panel, uint32_t row)                                        \
    {                                                                        \
        quant_few_tile(g, LLM_PACK_##NAME, panel, row, mm, np, fine);        \
    }

#define LLM_PACK(NAME, bits, range, zero, scale, as)                         \
    quant_few_function(NAME, 8, 1, 0)                                        \
    quant_few_function(NAME, 4, 2, 0)                                        \
    quant_few_function(NAME, 2, 2, 0)                                        \
    quant_few_function(NAME, 1, 2, 0)                                        \
    quant_few_function(NAME, 4, 2, 1)                                        \
    quant_few_function(NAME, 1, 2, 1)
#include "kernels/cpu/packs.def"

#define quant_few_row(NAME, mm, np, fine)                                    \
    { mm, np, quant_few_##NAME##_##mm##_##fine }

static const quant_few_t  quant_few_tiles[LLM_PACK_N][6] = {
#define LLM_PACK(NAME, bits, range, zero, scale, as)                         \
    [LLM_PACK_##NAME] = {                                                    \
        quant_few_row(NAME, 8, 1, 0), quant_few_row(NAME, 4, 2, 0),          \
        quant_few_row(NAME, 2, 2, 0), quant_few_row(NAME, 1, 2, 0),          \
        quant_few_row(NAME, 4, 2, 1), quant_few_row(NAME, 1, 2, 1)           \
    },
#include "kernels/cpu/packs.def"
};


/* is a tile of mm rows worth its time for n of them?  Three take longer in
   tiles of two and one than in one of four, and seven likewise */

static int
quant_few_suits(uint32_t mm, uint32_t n)
{
    return mm <= n + (mm >= 4);
}


/* the largest tiles first */

static void
quant_few(const llm_cpu_gemm_t *g)
{
    uint32_t            p, row, end;
    const quant_few_t  *t;

    end = g->row + g->n_rows;
    t = quant_few_tiles[g->w->format.pack] + (g->x->fine ? 4 : 0);

    for (row = g->row; row < end; row += t->mm) {
        while (!quant_few_suits(t->mm, end - row)) {
            t++;
        }

        for (p = g->panel; p < g->panel + g->n_panels; p += t->np) {
            t->tile(g, p, row);
        }
    }
}
