/*
 * Attention in bfloat16 with AMX tiles, for one query as for many.  Queries,
 * keys, values and the weights of the softmax are bfloat16, all sums and the
 * softmax float32.
 *
 * The cache's layout (cpu.h) is that of a tile of weights: a page has the keys
 * of a tile's columns, and two adjacent elements of each in a row.  Values of
 * two pages make one tile, so a block's values are copied to the scratch, tile
 * by tile.
 *
 * A query's weights are e^(score - max), where max is that of the first keys, and
 * is replaced only if a later score exceeds it by more than AMXA_LAZY: weights
 * are floats, and lose nothing by being larger than 1, while a new max multiplies
 * the query's outputs.  Maxima of all queries of a group are found first, so that their
 * weights are computed without a branch.
 *
 * Invariant: keys are processed in blocks of AMXA_KEYS from the start of the
 * range, and a tile has always the same 32 of them.  A row of a tile does not
 * depend on the others.  A key that a query does not see has the weight 0, and
 * values that are not yet written are replaced by 0, so tiles that no query of
 * 32 sees are left out without changing a bit.
 */

#include "kernels/cpu/cpu.h"

#if defined(__x86_64__)

#include "kernels/cpu/amx_target.h"

#include "kernels/cpu/simd512.h"
#include "kernels/cpu/simd_math.h"
#include "kernels/cpu/bf16_kv.h"
#include "kernels/cpu/amx.h"

#define AMXA_KEYS    LLM_ATTN_KEYS
#define AMXA_PAGES   (AMXA_KEYS / LLM_KV_PAGE)
#define AMXA_SPAN    32                 /* keys of a tile of values */
#define AMXA_SPANS   (AMXA_KEYS / AMXA_SPAN)
#define AMXA_ROWS    (2 * AMX_ROWS)     /* queries of a group */
#define AMXA_TILE    (AMX_ROWS * 32)    /* elements of a tile of values */

/* how much a score may exceed its query's max, as a power of 2 */
#define AMXA_LAZY    8

/* elements from row to row of scores and weights: not a power of 2, so that
   rows fall into different cache sets */
#define AMXA_S       (AMXA_KEYS + 16)
#define AMXA_P       (AMXA_KEYS + 32)

_Static_assert(LLM_KV_PAGE == AMX_ROWS, "a tile has a page's keys");
_Static_assert(AMXA_ROWS == LLM_ATTN_SOME && AMXA_S <= LLM_ATTN_STRIDE
               && AMXA_P <= LLM_ATTN_STRIDE, "scores and weights fit");
_Static_assert(LLM_ATTN_MOST % AMXA_ROWS == 0, "rows in pairs of tiles");
_Static_assert(LLM_ATTN_FEW >= AMX_ROWS, "results have a tile's rows");
_Static_assert(LLM_ATTN_SPLIT % AMXA_KEYS == 0, "a split has whole blocks");


/*
 * The pages of the next block, which are requested into the second-level cache
 * while tiles are multiplied, some lines in each step of each group of queries: the
 * hardware follows a page no further than its end.
 */

typedef struct {
    uint32_t         page;              /* the next one of the sequence */
    uint32_t         last;              /* the last one + 1 */
    const uint8_t   *at;
    const uint8_t   *end;               /* of the current page */
    uint32_t         lines;             /* of a step */
} amxa_ahead_t;


/* the arrays are in the thread's scratch */

typedef struct {
    llm_cpu_attn_t  *a;
    float           *sum;               /* [n][16] parts of the weights' sum */
    float           *scores;            /* [32][AMXA_S] of a group of queries */
    uint16_t        *p;                 /* [32][AMXA_P] e^(score - max) */
    uint16_t        *q;                 /* [n][dk_pad] */
    uint16_t        *v;                 /* [dv_pad / 16][AMXA_SPANS] tiles */
    float            unit;              /* scores are powers of 2 times it */
    int              adjust;            /* 1: scores need more than a factor */
    uint32_t         key;               /* first key of the block */
    uint32_t         first;             /* pages of the block that the group */
    uint32_t         end;               /* sees: first to end - 1 */
    uint32_t         from;              /* first key that a query sees */
    const uint16_t  *page[AMXA_PAGES];  /* pages that no query sees are
                                           replaced by one that some query
                                           sees */
    amxa_ahead_t     ahead;
} amxa_t;


simd_inline void
amxa_ahead_step(amxa_t *b)
{
    uint32_t               i;
    amxa_ahead_t          *ahead = &b->ahead;
    const llm_cpu_attn_t  *a = b->a;

    for (i = 0; i < ahead->lines; i++) {

        if (ahead->at == ahead->end) {
            if (ahead->page == ahead->last) {
                return;
            }

            ahead->at = (const uint8_t *) (const void *)
                        (a->base + a->pages[ahead->page++] * a->kv->page);
            ahead->end = ahead->at + a->kv->page * sizeof(uint16_t);
        }

        __builtin_prefetch(ahead->at, 0, 2);
        ahead->at += 64;
    }
}


/* the pages of the block after b->key, if there is one; a step is a pair of
   tiles of keys or of values, for each group of queries */

static void
amxa_ahead_set(amxa_t *b)
{
    size_t                 lines, steps;
    uint32_t               first, last;
    const llm_cpu_attn_t  *a = b->a;

    first = llm_min(b->key + AMXA_KEYS, a->ahead);
    last = llm_min(first + AMXA_KEYS, a->ahead);

    b->ahead.page = (first + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
    b->ahead.last = (last + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
    b->ahead.at = b->ahead.end = NULL;

    lines = AMXA_PAGES * a->kv->page * sizeof(uint16_t) / 64;
    steps = AMXA_SPANS * (a->kv->dk_pad / 32 + (a->kv->dv_pad + 31) / 32)
            * ((a->n + AMXA_ROWS - 1) / AMXA_ROWS);

    b->ahead.lines = (uint32_t) ((lines + steps - 1) / steps);
}


/*
 * The keys of the block that the n queries from m on see, counted in the
 * block, in units of AMXA_SPAN: first to *end - 1; returns first.  *whole: all
 * queries see all keys.
 */

static uint32_t
amxa_span(const amxa_t *b, uint32_t m, uint32_t n, uint32_t *end, int *whole)
{
    uint32_t  i, first, last, from, limit;

    first = AMXA_KEYS;
    last = 0;
    *whole = 1;

    for (i = m; i < m + n; i++) {
        from = llm_max(b->a->from[i], b->key);
        limit = llm_min(b->a->limit[i], b->key + AMXA_KEYS);

        if (from < limit) {
            first = llm_min(first, from - b->key);
            last = llm_max(last, limit - b->key);
        }

        *whole &= limit == from + AMXA_KEYS;
    }

    *end = (last + AMXA_SPAN - 1) / AMXA_SPAN;

    return first / AMXA_SPAN;
}


/*
 * Scores of 16 or 32 queries from m on, by the keys of tiles k to end - 1.
 * Tiles 0 and 1 have the first 16 queries' scores, 2 and 3 the others'.
 */

simd_inline void
amxa_scores(amxa_t *b, uint32_t m, uint32_t k, uint32_t end, const int two)
{
    float           *s;
    size_t           d, dk;
    const uint16_t  *q, *k0, *k1;

    dk = b->a->kv->dk_pad;
    q = b->q + m * dk;

    for ( /* void */ ; k < end; k++) {
        k0 = b->page[2 * k];
        k1 = b->page[2 * k + 1];
        s = b->scores + k * AMXA_SPAN;

        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);

        for (d = 0; d < dk; d += 32) {
            _tile_loadd(4, q + d, dk * 2);
            _tile_loadd(6, k0 + d * LLM_KV_PAGE, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, k1 + d * LLM_KV_PAGE, 64);
            _tile_dpbf16ps(1, 4, 7);
            amxa_ahead_step(b);

            if (two) {
                _tile_loadd(5, q + AMX_ROWS * dk + d, dk * 2);
                _tile_dpbf16ps(2, 5, 6);
                _tile_dpbf16ps(3, 5, 7);
            }
        }

        _tile_stored(0, s, AMXA_S * 4);
        _tile_stored(1, s + 16, AMXA_S * 4);

        if (two) {
            s += AMX_ROWS * AMXA_S;
            _tile_stored(2, s, AMXA_S * 4);
            _tile_stored(3, s + 16, AMXA_S * 4);
        }
    }
}


/* outputs of 16 or 32 queries from m on: adds the weighted values of the keys
   of tiles from k to end - 1 */

simd_inline void
amxa_values(amxa_t *b, uint32_t m, uint32_t k, uint32_t end, const int two)
{
    float           *y;
    size_t           d, dv, next;
    uint32_t         i;
    const uint16_t  *p, *v;

    dv = b->a->kv->dv_pad;

    for (d = 0; d < dv; d += 32) {

        /* if the second tile of outputs is missing, the first one is computed
           twice */
        next = d + 16 < dv ? 16 : 0;
        y = b->a->acc + m * dv + d;

        _tile_loadd(0, y, dv * 4);
        _tile_loadd(1, y + next, dv * 4);

        if (two) {
            _tile_loadd(2, y + AMX_ROWS * dv, dv * 4);
            _tile_loadd(3, y + AMX_ROWS * dv + next, dv * 4);
        }

        for (i = k; i < end; i++) {
            p = b->p + i * AMXA_SPAN;
            v = b->v + (d / 16 * AMXA_SPANS + i) * AMXA_TILE;

            _tile_loadd(4, p, AMXA_P * 2);
            _tile_loadd(6, v, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, v + next / 16 * AMXA_SPANS * AMXA_TILE, 64);
            _tile_dpbf16ps(1, 4, 7);
            amxa_ahead_step(b);

            if (two) {
                _tile_loadd(5, p + AMX_ROWS * AMXA_P, AMXA_P * 2);
                _tile_dpbf16ps(2, 5, 6);
                _tile_dpbf16ps(3, 5, 7);
            }
        }

        _tile_stored(0, y, dv * 4);
        _tile_stored(1, y + next, dv * 4);

        if (two) {
            _tile_stored(2, y + AMX_ROWS * dv, dv * 4);
            _tile_stored(3, y + AMX_ROWS * dv + next, dv * 4);
        }
    }
}


/* scales the scores of query m, caps them, and subtracts slope * distance */

static void
amxa_adjust(const amxa_t *b, uint32_t m)
{
    float                 *s;
    int32_t                i, d;
    const llm_cpu_attn_t  *a = b->a;

    s = b->scores + m % AMXA_ROWS * AMXA_S;

    for (i = 0; i < AMXA_KEYS; i++) {
        s[i] *= a->scale;
    }

    if (a->softcap > 0) {
        simd_softcap(a->softcap, s, AMXA_KEYS);
    }

    if (a->slopes) {
        d = (int32_t) b->key - (int32_t) a->at[m];

        for (i = 0; i < AMXA_KEYS; i++) {
            s[i] -= a->slope[m] * (float) abs(d + i);
        }
    }
}


/* the lanes of vector v whose keys are from `first` to `end` - 1 */

simd_inline __mmask16
amxa_mask(uint32_t v, uint32_t first, uint32_t end)
{
    uint32_t  low, high;

    low = first > v * VL ? llm_min(first - v * VL, VL) : 0;
    high = end > v * VL ? llm_min(end - v * VL, VL) : 0;

    return (__mmask16) (((1u << high) - 1) & ~((1u << low) - 1));
}


/* vector v of the scores of query m, -infinity for keys that it does not see
   if masked */

simd_inline vf_t
amxa_score(const amxa_t *b, uint32_t m, uint32_t v, const int masked)
{
    vf_t                   s;
    uint32_t               first, end;
    const llm_cpu_attn_t  *a = b->a;

    s = vf_load(b->scores + m % AMXA_ROWS * AMXA_S + v * VL);

    if (!masked) {
        return s;
    }

    first = a->from[m] > b->key ? a->from[m] - b->key : 0;
    end = a->limit[m] > b->key ? a->limit[m] - b->key : 0;

    return _mm512_mask_mov_ps(vf_set1(-INFINITY), amxa_mask(v, first, end), s);
}


/* the largest scores of the block, of 16 queries from m on */

simd_inline vf_t
amxa_tops(const amxa_t *b, uint32_t m, const int masked)
{
    int       i;
    vf_t      t[4], tops;
    uint32_t  v, first, end;

    first = masked ? b->first : 0;
    end = masked ? b->end : AMXA_PAGES;
    tops = vf_zero();

    simd_unroll
    for (i = 0; i < AMX_ROWS; i++) {
        t[i % 4] = amxa_score(b, m + (uint32_t) i, first, masked);

        for (v = first + 1; v < end; v++) {
            t[i % 4] = vf_max(t[i % 4],
                              amxa_score(b, m + (uint32_t) i, v, masked));
        }

        if (i % 4 == 3) {
            tops = _mm512_mask_broadcast_f32x4(tops,
                                               (__mmask16) (15 << (i - 3)),
                                               bf16_max4(t));
        }
    }

    return tops;
}


/*
 * Sets the max of 16 queries from m on, and multiplies what was summed up so
 * far of those whose max has changed.
 */

simd_inline void
amxa_maxima(const amxa_t *b, uint32_t m, const int masked)
{
    vf_t      old, new, f;
    float     factors[AMX_ROWS], *y;
    size_t    i;
    uint32_t  grown, r;

    old = vf_load(b->a->max + m);
    new = vf_mul(amxa_tops(b, m, masked), vf_set1(b->unit));
    grown = _mm512_cmp_ps_mask(new, vf_add(old, vf_set1(AMXA_LAZY)),
                               _CMP_GT_OQ);

    if (grown == 0) {
        return;
    }

    new = _mm512_mask_mov_ps(old, (__mmask16) grown, new);
    vf_store(b->a->max + m, new);
    vf_store(factors, bf16_exp2(vf_sub(old, new)));

    for ( /* void */ ; grown; grown &= grown - 1) {
        r = (uint32_t) __builtin_ctz(grown);
        f = vf_set1(factors[r]);

        y = b->sum + (m + r) * VL;
        vf_store(y, vf_mul(vf_load(y), f));
        y = b->a->acc + (m + r) * b->a->kv->dv_pad;

        for (i = 0; i < b->a->kv->dv_pad; i += VL) {
            vf_store(y + i, vf_mul(vf_load(y + i), f));
        }
    }
}


/* writes the weights of query m for the keys that the group sees, and adds them
   to its sum */

simd_inline void
amxa_weights(const amxa_t *b, uint32_t m, const int masked)
{
    vf_t       e[2], top, sum[2];
    uint32_t   v, first, end;
    uint16_t  *to;
    __m512bh   p;

    const vf_t  unit = vf_set1(b->unit);

    first = masked ? b->first : 0;
    end = masked ? b->end : AMXA_PAGES;

    /* max is -infinity if no key was seen so far */
    top = vf_set1(llm_max(b->a->max[m], BF16_LOWEST));
    to = b->p + m % AMXA_ROWS * AMXA_P;
    sum[0] = vf_load(b->sum + m * VL);
    sum[1] = vf_zero();

    simd_unroll
    for (v = first; v < end; v += 2) {
        e[0] = amxa_score(b, m, v, masked);
        e[1] = amxa_score(b, m, v + 1, masked);
        e[0] = bf16_weight(_mm512_fmsub_ps(e[0], unit, top));
        e[1] = bf16_weight(_mm512_fmsub_ps(e[1], unit, top));
        p = _mm512_cvtne2ps_pbh(e[1], e[0]);
        _mm512_storeu_si512(to + v * VL, (__m512i) p);
        sum[v / 2 % 2] = _mm512_dpbf16_ps(sum[v / 2 % 2], p,
                                   (__m512bh) _mm512_set1_epi16(0x3f80));
    }

    vf_store(b->sum + m * VL, vf_add(sum[0], sum[1]));
}


simd_inline void
amxa_softmax(const amxa_t *b, uint32_t m, uint32_t n, const int masked)
{
    uint32_t  i;

    for (i = m; i < m + n; i += AMX_ROWS) {
        amxa_maxima(b, i, masked);
    }

    for (i = m; i < m + n; i++) {
        amxa_weights(b, i, masked);
    }
}


/* n queries from m on; whole: all of them see all keys of the block */

static void
amxa_group_softmax(const amxa_t *b, uint32_t m, uint32_t n, int whole)
{
    uint32_t  i;

    for (i = m; b->adjust && i < m + n; i++) {
        amxa_adjust(b, i);
    }

    if (whole) {
        amxa_softmax(b, m, n, 0);

    } else {
        amxa_softmax(b, m, n, 1);
    }
}


/* copies the values of page i of the block, of whose keys n are written: half
   of a tile for each 16 columns */

simd_inline void
amxa_copy(const amxa_t *b, uint32_t i, uint32_t n)
{
    size_t           k, c, dv;
    __m512i          x;
    uint16_t        *to;
    const uint16_t  *from;

    dv = b->a->kv->dv_pad * 2;
    to = b->v + i / 2 * AMXA_TILE + i % 2 * (AMXA_TILE / 2);
    from = b->page[i] + b->a->kv->k_size;

    for (k = 0; k < LLM_KV_PAGE; k += 2) {
        for (c = 0; c < dv; c += 32) {
            x = k < n ? _mm512_loadu_si512(from + k / 2 * dv + c)
                      : _mm512_setzero_si512();

            if (k + 1 == n) {
                x = _mm512_and_si512(x, _mm512_set1_epi32(0xffff));
            }

            _mm512_storeu_si512(to + c / 32 * AMXA_SPANS * AMXA_TILE + k * 16,
                                x);
        }
    }
}


/* sets the block's pages, and copies their values as far as queries see them */

static void
amxa_begin_block(amxa_t *b)
{
    uint32_t               i, n, low, high, end;
    const llm_cpu_attn_t  *a = b->a;

    low = llm_max(b->key, b->from) / LLM_KV_PAGE - b->key / LLM_KV_PAGE;
    end = llm_min(a->last - b->key, AMXA_KEYS);
    high = (end - 1) / LLM_KV_PAGE;

    for (i = 0; i < AMXA_PAGES; i++) {
        n = b->key / LLM_KV_PAGE + (i < low || i > high ? low : i);
        b->page[i] = a->base + a->pages[n] * a->kv->page;
    }

    for (i = low / 2 * 2; i <= (high | 1); i++) {
        amxa_copy(b, i, i < low || i > high ? 0
                        : llm_min(end - i * LLM_KV_PAGE, LLM_KV_PAGE));
    }
}


/* n queries from m on, of which two tiles have up to 32 */

simd_inline void
amxa_group(amxa_t *b, uint32_t m, uint32_t n, const int two)
{
    int       whole;
    uint32_t  first, end;

    first = amxa_span(b, m, n, &end, &whole);

    if (first >= end) {
        return;
    }

    b->first = first * AMXA_SPAN / LLM_KV_PAGE;
    b->end = end * AMXA_SPAN / LLM_KV_PAGE;

    amxa_scores(b, m, first, end, two);
    amxa_group_softmax(b, m, n, whole);
    amx_written();
    amxa_values(b, m, first, end, two);
}


static void
amxa_block(amxa_t *b)
{
    uint32_t  m, n;

    amxa_begin_block(b);
    amxa_ahead_set(b);
    amx_written();

    for (m = 0; m < b->a->n; m += AMXA_ROWS) {
        n = llm_min(b->a->n - m, AMXA_ROWS);

        if (n > AMX_ROWS) {
            amxa_group(b, m, n, 1);

        } else {
            amxa_group(b, m, n, 0);
        }
    }
}


/* places the tile's arrays in the thread's scratch, and rounds the queries */

static void
amxa_begin(amxa_t *b, llm_cpu_attn_t *a)
{
    size_t    rows, dk;
    uint32_t  m;

    dk = a->kv->dk_pad;
    rows = llm_align(a->n, AMX_ROWS);

    b->a = a;
    b->sum = a->scores;
    b->scores = b->sum + rows * VL;
    b->p = (uint16_t *) (void *) (b->scores + AMXA_ROWS * AMXA_S);
    b->q = b->p + AMXA_ROWS * AMXA_P;
    b->v = b->q + rows * dk;
    b->from = UINT32_MAX;
    b->adjust = a->softcap > 0 || a->slopes || a->scale <= 0;
    b->unit = b->adjust ? BF16_LOG2E : a->scale * BF16_LOG2E;

    memset(a->acc, 0, rows * a->kv->dv_pad * sizeof(float));
    memset(b->sum, 0, rows * VL * sizeof(float));

    for (m = 0; m < a->n; m++) {
        a->max[m] = -INFINITY;
        b->from = llm_min(b->from, a->from[m]);
        bf16_query(a->kv, a->q[m], b->q + m * dk);
    }

    /* the other rows of tiles */

    memset(b->q + m * dk, 0, (rows - m) * dk * sizeof(uint16_t));

    for ( /* void */ ; m < rows; m++) {
        a->max[m] = -INFINITY;
        a->from[m] = a->limit[m] = 0;
    }
}


static void
amx_attn(llm_cpu_attn_t *a)
{
    amxa_t    b;
    uint32_t  m;

    amxa_begin(&b, a);
    amx_configure(64);

    b.key = llm_max(a->first, b.from / AMXA_KEYS * AMXA_KEYS);

    for ( /* void */ ; b.key < a->last; b.key += AMXA_KEYS) {
        amxa_block(&b);
    }

    amx_written();
    _tile_release();

    for (m = 0; m < a->n; m++) {
        a->sum[m] = vf_hsum(vf_load(b.sum + m * VL));
        a->max[m] /= BF16_LOG2E;
    }
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif


void
llm_cpu_attn_amx(llm_cpu_kernels_t *k)
{
    k->attn[LLM_CPU_KV_BF16] = amx_attn;
    k->keep[LLM_CPU_KV_BF16] = bf16_keep;
    k->bf16_dims = 32;
    k->bf16_tile = LLM_ATTN_MOST;
}

#endif
