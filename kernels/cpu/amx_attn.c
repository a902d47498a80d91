/*
 * Attention in bfloat16 with AMX tiles, for one query as for many.  Queries,
 * keys, values and the weights of the softmax are bfloat16, all sums and the
 * softmax float32.
 *
 * The cache's layout (cpu.h) is that of a tile of weights: a page has the keys
 * of a tile's columns, and two adjacent elements of each in a row.  Values of
 * two pages make one tile, so a block's values are copied to the scratch, where
 * pages lie one behind the other.
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
#define AMXA_ROWS    (2 * AMX_ROWS)     /* queries of a group */

/* elements from row to row of scores and weights: not a power of 2, so that
   rows fall into different cache sets */
#define AMXA_S       (AMXA_KEYS + 16)
#define AMXA_P       (AMXA_KEYS + 32)

_Static_assert(LLM_KV_PAGE == AMX_ROWS, "a tile has a page's keys");
_Static_assert(LLM_ATTN_TILE % AMXA_ROWS == 0, "rows in pairs of tiles");
_Static_assert(LLM_ATTN_FEW >= AMX_ROWS, "results have a tile's rows");
_Static_assert(LLM_ATTN_SPLIT % AMXA_KEYS == 0, "a split has whole blocks");


/*
 * The pages of the next block, which are requested into the second-level cache
 * while tiles of the first queries are multiplied, some lines in each step: the
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
    float           *scores;            /* [32][AMXA_S] of a group of queries */
    uint16_t        *p;                 /* [32][AMXA_P] e^(score - max) */
    uint16_t        *q;                 /* [n][dk_pad] */
    uint16_t        *v;                 /* [AMXA_KEYS / 2][dv_pad][2] */
    uint32_t         key;               /* first key of the block */
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
   tiles of keys or of values */

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
    steps = AMXA_KEYS / AMXA_SPAN
            * (a->kv->dk_pad / 32 + (a->kv->dv_pad + 31) / 32);

    b->ahead.lines = (uint32_t) ((lines + steps - 1) / steps);
}


/*
 * The keys of the block that the n queries from m on see, counted in the
 * block, in units of AMXA_SPAN: first to *end - 1; returns first.
 */

static uint32_t
amxa_span(const amxa_t *b, uint32_t m, uint32_t n, uint32_t *end)
{
    uint32_t  i, first, last, from, limit;

    first = AMXA_KEYS;
    last = 0;

    for (i = m; i < m + n; i++) {
        from = llm_max(b->a->from[i], b->key);
        limit = llm_min(b->a->limit[i], b->key + AMXA_KEYS);

        if (from < limit) {
            first = llm_min(first, from - b->key);
            last = llm_max(last, limit - b->key);
        }
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
            v = b->v + (i * AMXA_SPAN * dv + d * 2);

            _tile_loadd(4, p, AMXA_P * 2);
            _tile_loadd(6, v, dv * 4);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, v + next * 2, dv * 4);
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


/*
 * The softmax of query m, which sees the keys from `first` to `end` - 1 of the
 * block: updates its max and sum, multiplies its output by the factor, and
 * writes p.  masked: these are not all keys.
 */

simd_inline void
amxa_softmax(const amxa_t *b, uint32_t m, uint32_t first, uint32_t end,
    const int masked)
{
    int        v;
    vf_t       s[AMXA_PAGES], top, f, sum[2], scale;
    float     *y, max, factor;
    size_t     i;
    uint16_t  *to;
    __m512bh   p;

    const vf_t    unit = vf_set1(BF16_LOG2E);
    const float  *scores = b->scores + m % AMXA_ROWS * AMXA_S;

    to = b->p + m % AMXA_ROWS * AMXA_P;
    scale = vf_set1(b->a->softcap > 0 || b->a->slopes ? 1 : b->a->scale);
    top = vf_set1(b->a->max[m]);

    simd_unroll
    for (v = 0; v < AMXA_PAGES; v++) {
        s[v] = vf_mul(vf_load(scores + v * VL), scale);

        if (masked) {
            s[v] = _mm512_mask_mov_ps(vf_set1(-INFINITY),
                                      amxa_mask((uint32_t) v, first, end),
                                      s[v]);
        }

        top = vf_max(top, s[v]);
    }

    max = vf_hmax(top);
    top = vf_mul(vf_set1(max), unit);
    f = bf16_exp2(_mm512_fmsub_ps(vf_set1(b->a->max[m]), unit, top));
    b->a->max[m] = max;
    sum[0] = sum[1] = vf_zero();

    simd_unroll
    for (v = 0; v < AMXA_PAGES; v += 2) {
        s[v] = bf16_exp2(_mm512_fmsub_ps(s[v], unit, top));
        s[v + 1] = bf16_exp2(_mm512_fmsub_ps(s[v + 1], unit, top));
        p = _mm512_cvtne2ps_pbh(s[v + 1], s[v]);
        _mm512_storeu_si512(to + v * VL, (__m512i) p);
        sum[v / 2 % 2] = _mm512_dpbf16_ps(sum[v / 2 % 2], p,
                                   (__m512bh) _mm512_set1_epi16(0x3f80));
    }

    vf_store_n(&factor, f, 1);
    b->a->sum[m] = __builtin_fmaf(b->a->sum[m], factor,
                                  vf_hsum(vf_add(sum[0], sum[1])));

    if (factor == 1) {
        return;
    }

    y = b->a->acc + m * b->a->kv->dv_pad;

    for (i = 0; i < b->a->kv->dv_pad; i += VL) {
        vf_store(y + i, vf_mul(vf_load(y + i), f));
    }
}


/* n queries from m on */

static void
amxa_group_softmax(const amxa_t *b, uint32_t m, uint32_t n)
{
    uint32_t               first, end;
    const llm_cpu_attn_t  *a = b->a;

    for (n += m; m < n; m++) {

        first = llm_max(a->from[m], b->key);
        end = llm_min(a->limit[m], b->key + AMXA_KEYS);

        if (first >= end) {
            memset(b->p + m % AMXA_ROWS * AMXA_P, 0,
                   AMXA_KEYS * sizeof(uint16_t));
            continue;
        }

        if (a->softcap > 0 || a->slopes) {
            amxa_adjust(b, m);
        }

        if (end - first == AMXA_KEYS) {
            amxa_softmax(b, m, 0, AMXA_KEYS, 0);

        } else {
            amxa_softmax(b, m, first - b->key, end - b->key, 1);
        }
    }
}


/* copies the values of page i of the block, of whose keys n are written */

simd_inline void
amxa_copy(const amxa_t *b, uint32_t i, uint32_t n)
{
    size_t           k, dv;
    uint16_t        *to;
    const uint16_t  *from;

    dv = b->a->kv->dv_pad * 2;
    to = b->v + i * LLM_KV_PAGE / 2 * dv;
    from = b->page[i] + b->a->kv->k_size;

    memcpy(to, from, n / 2 * dv * sizeof(uint16_t));
    k = n / 2 * dv;

    if (n % 2) {
        for ( /* void */ ; k < (n + 1) / 2 * dv; k += 32) {
            _mm512_storeu_si512(to + k,
                    _mm512_and_si512(_mm512_loadu_si512(from + k),
                                     _mm512_set1_epi32(0xffff)));
        }
    }

    memset(to + k, 0, (LLM_KV_PAGE / 2 * dv - k) * sizeof(uint16_t));
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
    uint32_t  first, end;

    first = amxa_span(b, m, n, &end);

    if (first >= end) {
        return;
    }

    amxa_scores(b, m, first, end, two);
    amxa_group_softmax(b, m, n);
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


static void
amx_attn(llm_cpu_attn_t *a)
{
    amxa_t    b;
    size_t    rows;
    uint32_t  m;

    rows = llm_align(a->n, AMX_ROWS);

    b.a = a;
    b.scores = a->scores;
    b.p = (uint16_t *) (void *) (b.scores + AMXA_ROWS * AMXA_S);
    b.q = b.p + AMXA_ROWS * AMXA_P;
    b.v = b.q + LLM_ATTN_TILE * a->kv->dk_pad;
    b.from = UINT32_MAX;

    memset(a->acc, 0, rows * a->kv->dv_pad * sizeof(float));

    for (m = 0; m < a->n; m++) {
        a->max[m] = -INFINITY;
        a->sum[m] = 0;
        b.from = llm_min(b.from, a->from[m]);
        bf16_query(a->kv, a->q[m], b.q + m * a->kv->dk_pad);
    }

    /* the other rows of tiles; their weights are any that the scratch has */
    memset(b.q + m * a->kv->dk_pad, 0,
           (rows - m) * a->kv->dk_pad * sizeof(uint16_t));

    amx_configure(64);

    b.key = llm_max(a->first, b.from / AMXA_KEYS * AMXA_KEYS);

    for ( /* void */ ; b.key < a->last; b.key += AMXA_KEYS) {
        amxa_block(&b);
    }

    amx_written();
    _tile_release();
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
}

#endif
