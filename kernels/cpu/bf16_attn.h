/*
 * Attention in bfloat16 with AVX512_BF16: queries, keys, values and the
 * weights of the softmax in bfloat16, all sums and the softmax in float32; for
 * models whose products round activations anyway.  Included after simd_math.h
 * and bf16_kv.h.
 *
 * Two elements of a key are adjacent, and so are the elements of two keys'
 * values (cpu.h has the layout), so VDPBF16PS adds two products to each of 16
 * scores, or of 16 outputs, and nothing is shuffled.
 *
 * Invariant: keys are processed in blocks of LLM_ATTN_BLOCK from the start of
 * the range.  Within a block, the order in which a query's scores, sums and
 * outputs are computed does not depend on the other queries of the tile.  A
 * key that a query does not see has the weight 0, which changes no bit of the
 * query's sums, so whole groups of such keys may be left out.
 */

#define BFA_PAGES   (LLM_ATTN_BLOCK / LLM_KV_PAGE)
#define BFA_MM      6                   /* queries in registers, and */
#define BFA_NV      4                   /* vectors of keys or outputs */
#define BFA_ROWS    4                   /* queries of one softmax */
#define BFA_AHEAD   8                   /* queries that are requested before
                                           they are rounded */

_Static_assert(LLM_KV_PAGE == 16, "a vector has a page's keys");
_Static_assert(BFA_PAGES == BFA_NV, "a block's scores are in registers");
_Static_assert(LLM_ATTN_TILE * LLM_ATTN_BLOCK
               <= LLM_ATTN_SOME * LLM_ATTN_STRIDE, "scores and weights fit");


/* what a tile's computation keeps in the thread's scratch; pages of the block
   that no query sees are replaced by one that some query sees */

typedef struct {
    llm_cpu_attn_t  *a;
    uint16_t        *q;                 /* [n][dk_pad] the queries */
    float           *scores;            /* [n][LLM_ATTN_BLOCK] */
    uint16_t        *p;                 /* [n][LLM_ATTN_BLOCK]
                                           e^(score - max) */
    float           *sum;               /* [n][16] parts of their sum */
    float           *f;                 /* [n] factor on what was summed up
                                           before this block */
    uint32_t         key;               /* first key of the block */
    const uint16_t  *page[BFA_PAGES];
    const uint16_t  *next[BFA_PAGES];   /* of the next block, for prefetches */
} bfa_t;

/* keys of the block that some query of a group sees, counted in the block;
   nothing if end is 0 */
typedef struct {
    uint32_t         first;
    uint32_t         end;
} bfa_span_t;


/* the two numbers at p in all lanes */

simd_inline __m512bh
bfa_pair(const uint16_t *p)
{
    int32_t  x;

    memcpy(&x, p, 4);

    return (__m512bh) _mm512_set1_epi32(x);
}


simd_inline __m512bh
bfa_load(const uint16_t *p)
{
    return (__m512bh) _mm512_loadu_si512(p);
}


/*
 * Scores of mm queries from m0 on by the keys of nv pages from v0 on.
 * ahead: 1: the same lines of the next block are requested.
 */

simd_inline void
bfa_scores(const bfa_t *b, uint32_t m0, uint32_t v0, const int mm,
    const int nv, const int ahead)
{
    int              m, v;
    size_t           d, dk;
    vf_t             acc[BFA_MM][BFA_NV], scale;
    __m512bh         k[BFA_NV], q;
    const uint16_t  *x[BFA_MM];

    dk = b->a->kv->dk_pad;

    simd_unroll
    for (m = 0; m < mm; m++) {
        x[m] = b->q + (m0 + m) * dk;

        simd_unroll
        for (v = 0; v < nv; v++) {
            acc[m][v] = vf_zero();
        }
    }

    for (d = 0; d < dk; d += 2) {
        simd_unroll
        for (v = 0; v < nv; v++) {
            k[v] = bfa_load(b->page[v0 + v] + d * LLM_KV_PAGE);

            if (ahead) {
                __builtin_prefetch(b->next[v0 + v] + d * LLM_KV_PAGE, 0, 2);
            }
        }

        simd_unroll
        for (m = 0; m < mm; m++) {
            q = bfa_pair(x[m] + d);

            simd_unroll
            for (v = 0; v < nv; v++) {
                acc[m][v] = _mm512_dpbf16_ps(acc[m][v], k[v], q);
            }
        }
    }

    scale = vf_set1(b->a->scale);

    simd_unroll
    for (m = 0; m < mm; m++) {
        simd_unroll
        for (v = 0; v < nv; v++) {
            vf_store(b->scores + (m0 + m) * LLM_ATTN_BLOCK
                     + (v0 + v) * LLM_KV_PAGE, vf_mul(acc[m][v], scale));
        }
    }
}


/* adds the values of two keys; odd: the second one is not yet written */

simd_inline void
bfa_values_step(vf_t acc[BFA_MM][8], const uint16_t *const *x,
    const uint16_t *row, const int mm, const int nv, const int odd)
{
    int       m, v;
    __m512bh  val[8], p;

    simd_unroll
    for (v = 0; v < nv; v++) {
        val[v] = bfa_load(row + v * 32);

        if (odd) {
            val[v] = (__m512bh) _mm512_and_si512((__m512i) val[v],
                                                 _mm512_set1_epi32(0xffff));
        }
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        p = bfa_pair(x[m]);

        simd_unroll
        for (v = 0; v < nv; v++) {
            acc[m][v] = _mm512_dpbf16_ps(acc[m][v], val[v], p);
        }
    }
}


/*
 * Outputs of mm queries from m0 on, in nv vectors of the head's dimensions from
 * v0 on: multiplies them by f, then adds the weighted values of the span, whose
 * last page has the keys below n_keys.
 */

simd_inline void
bfa_values(const bfa_t *b, uint32_t m0, uint32_t v0, bfa_span_t s,
    uint32_t n_keys, const int mm, const int nv, const int ahead)
{
    int              m, v;
    vf_t             acc[BFA_MM][8];
    float           *y;
    size_t           dv, at;
    uint32_t         k, end;
    const uint16_t  *x[BFA_MM];

    dv = b->a->kv->dv_pad;
    y = b->a->acc + m0 * dv + v0 * VL;

    simd_unroll
    for (m = 0; m < mm; m++) {
        simd_unroll
        for (v = 0; v < nv; v++) {
            acc[m][v] = vf_mul(vf_load(y + m * dv + v * VL),
                               vf_set1(b->f[m0 + m]));
        }
    }

    /* a second key at n_keys is not one of the sequence */
    end = s.end == n_keys ? s.end / 2 : (s.end + 1) / 2;

    for (k = s.first / 2; k < end; k++) {

        at = b->a->kv->k_size + k % 8 * dv * 2 + v0 * 32;

        simd_unroll
        for (m = 0; m < mm; m++) {
            x[m] = b->p + (m0 + m) * LLM_ATTN_BLOCK + k * 2;
        }

        if (ahead) {
            simd_unroll
            for (v = 0; v < nv; v++) {
                __builtin_prefetch(b->next[k / 8] + at + v * 32, 0, 2);
            }
        }

        bfa_values_step(acc, x, b->page[k / 8] + at, mm, nv, 0);
    }

    if (k * 2 < s.end) {
        simd_unroll
        for (m = 0; m < mm; m++) {
            x[m] = b->p + (m0 + m) * LLM_ATTN_BLOCK + k * 2;
        }

        at = b->a->kv->k_size + k % 8 * dv * 2 + v0 * 32;
        bfa_values_step(acc, x, b->page[k / 8] + at, mm, nv, 1);
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        simd_unroll
        for (v = 0; v < nv; v++) {
            vf_store(y + m * dv + v * VL, acc[m][v]);
        }
    }
}


/* the block's scores of query m, -infinity where it sees no key */

simd_inline void
bfa_masked(const bfa_t *b, uint32_t m, vf_t s[BFA_PAGES])
{
    int        v;
    uint64_t   seen;
    uint32_t   from, limit;

    from = b->a->from[m] > b->key ? b->a->from[m] - b->key : 0;
    limit = b->a->limit[m] > b->key ? b->a->limit[m] - b->key : 0;

    seen = limit < LLM_ATTN_BLOCK ? ((uint64_t) 1 << limit) - 1 : UINT64_MAX;
    seen &= from < LLM_ATTN_BLOCK ? UINT64_MAX << from : 0;

    simd_unroll
    for (v = 0; v < BFA_PAGES; v++) {
        s[v] = _mm512_mask_mov_ps(vf_set1(-INFINITY),
                                  (__mmask16) (seen >> v * 16), s[v]);
    }
}


/* keeps e^(score - max) of query m in bfloat16, and adds these to its sum */

simd_inline void
bfa_weights(const bfa_t *b, uint32_t m, const vf_t s[BFA_PAGES])
{
    int       v;
    vf_t      e[BFA_PAGES], top, sum;
    __m512bh  p;

    const vf_t  unit = vf_set1(BF16_LOG2E);

    /* max is -infinity if no key was seen so far */
    top = vf_max(vf_set1(BF16_LOWEST), vf_set1(b->a->max[m]));
    top = vf_mul(top, unit);
    sum = vf_mul(vf_load(b->sum + m * VL), vf_set1(b->f[m]));

    simd_unroll
    for (v = 0; v < BFA_PAGES; v++) {
        e[v] = bf16_weight(_mm512_fmsub_ps(s[v], unit, top));
    }

    simd_unroll
    for (v = 0; v < BFA_PAGES; v += 2) {
        p = _mm512_cvtne2ps_pbh(e[v + 1], e[v]);
        _mm512_storeu_si512(b->p + m * LLM_ATTN_BLOCK + v * VL, (__m512i) p);
        sum = _mm512_dpbf16_ps(sum, p,
                               (__m512bh) _mm512_set1_epi16(0x3f80));
    }

    vf_store(b->sum + m * VL, sum);
}


/*
 * The softmax of mm queries, 4 or 1, from m on: updates max, f and sum, and
 * writes p.  masked: not all of them see all keys of the block.
 */

simd_inline void
bfa_softmax(const bfa_t *b, uint32_t m, const int mm, const int masked)
{
    int     r, v;
    vf_t    s[BFA_ROWS][BFA_PAGES], t[BFA_ROWS], x;
    __m128  old, new;

    simd_unroll
    for (r = 0; r < mm; r++) {
        simd_unroll
        for (v = 0; v < BFA_PAGES; v++) {
            s[r][v] = vf_load(b->scores + (m + r) * LLM_ATTN_BLOCK + v * VL);
        }

        if (masked) {
            bfa_masked(b, m + r, s[r]);
        }

        t[r] = vf_max(vf_max(s[r][0], s[r][1]), vf_max(s[r][2], s[r][3]));
    }

    if (mm == BFA_ROWS) {
        old = _mm_loadu_ps(b->a->max + m);
        new = _mm_max_ps(old, bf16_max4(t));
        _mm_storeu_ps(b->a->max + m, new);

    } else {
        old = _mm_load_ss(b->a->max + m);
        new = _mm_max_ss(old, _mm_set_ss(vf_hmax(t[0])));
        _mm_store_ss(b->a->max + m, new);
    }

    new = _mm_max_ps(_mm_set1_ps(BF16_LOWEST), new);
    x = _mm512_castps128_ps512(_mm_sub_ps(old, new));
    x = bf16_exp2(vf_mul(x, vf_set1(BF16_LOG2E)));
    vf_store_n(b->f + m, x, (uint32_t) mm);

    simd_unroll
    for (r = 0; r < mm; r++) {
        bfa_weights(b, m + r, s[r]);
    }
}


/* the keys of the block that queries m to m + mm - 1 see; *whole: all of them
   see all keys */

static bfa_span_t
bfa_span(const bfa_t *b, uint32_t m, uint32_t mm, int *whole)
{
    uint32_t    i, from, limit, key;
    bfa_span_t  s;

    key = b->key;
    s.first = LLM_ATTN_BLOCK;
    s.end = 0;
    *whole = 1;

    for (i = m; i < m + mm; i++) {
        from = llm_max(b->a->from[i], key);
        limit = llm_min(b->a->limit[i], key + LLM_ATTN_BLOCK);

        if (from >= limit) {
            *whole = 0;
            continue;
        }

        s.first = llm_min(s.first, from - key);
        s.end = llm_max(s.end, limit - key);
        *whole &= limit - from == LLM_ATTN_BLOCK;
    }

    return s;
}


simd_inline void
bfa_group_scores(const bfa_t *b, uint32_t m, const int mm)
{
    int         whole;
    uint32_t    v, end;
    bfa_span_t  s;

    s = bfa_span(b, m, (uint32_t) mm, &whole);
    v = s.first / LLM_KV_PAGE;
    end = (s.end + LLM_KV_PAGE - 1) / LLM_KV_PAGE;

    if (v == 0 && end == BFA_PAGES) {
        if (m == 0) {
            bfa_scores(b, m, 0, mm, BFA_NV, 1);

        } else {
            bfa_scores(b, m, 0, mm, BFA_NV, 0);
        }

        return;
    }

    for ( /* void */ ; v + 2 <= end; v += 2) {
        bfa_scores(b, m, v, mm, 2, 0);
    }

    if (v < end) {
        bfa_scores(b, m, v, mm, 1, 0);
    }
}


simd_inline void
bfa_group_values(const bfa_t *b, uint32_t m, uint32_t n_keys, const int mm)
{
    int         whole;
    uint32_t    v, n;
    bfa_span_t  s;

    s = bfa_span(b, m, (uint32_t) mm, &whole);
    n = (uint32_t) (b->a->kv->dv_pad / VL);
    v = 0;

    if (s.end == 0) {
        return;
    }

    if (mm <= 2) {
        for ( /* void */ ; v + 8 <= n; v += 8) {
            bfa_values(b, m, v, s, n_keys, mm, 8, 1);
        }
    }

    for ( /* void */ ; v + 4 <= n; v += 4) {
        if (m == 0) {
            bfa_values(b, m, v, s, n_keys, mm, 4, 1);

        } else {
            bfa_values(b, m, v, s, n_keys, mm, 4, 0);
        }
    }

    if (v + 2 <= n) {
        bfa_values(b, m, v, s, n_keys, mm, 2, 0);
        v += 2;
    }

    if (v < n) {
        bfa_values(b, m, v, s, n_keys, mm, 1, 0);
    }
}


static void
bfa_block_scores(const bfa_t *b)
{
    uint32_t  m, n;

    n = b->a->n;

    for (m = 0; m + BFA_MM <= n; m += BFA_MM) {
        bfa_group_scores(b, m, BFA_MM);
    }

    if (m + 4 <= n) {
        bfa_group_scores(b, m, 4);
        m += 4;
    }

    if (m + 2 <= n) {
        bfa_group_scores(b, m, 2);
        m += 2;
    }

    if (m < n) {
        bfa_group_scores(b, m, 1);
    }
}


static void
bfa_block_values(const bfa_t *b, uint32_t n_keys)
{
    uint32_t  m, n;

    n = b->a->n;

    for (m = 0; m + BFA_MM <= n; m += BFA_MM) {
        bfa_group_values(b, m, n_keys, BFA_MM);
    }

    if (m + 4 <= n) {
        bfa_group_values(b, m, n_keys, 4);
        m += 4;
    }

    if (m + 2 <= n) {
        bfa_group_values(b, m, n_keys, 2);
        m += 2;
    }

    if (m < n) {
        bfa_group_values(b, m, n_keys, 1);
    }
}


/* caps the scores of query m, and subtracts slope * distance from them */

static void
bfa_adjust(const bfa_t *b, uint32_t m)
{
    float                 *p;
    int32_t                i, d;
    const llm_cpu_attn_t  *a = b->a;

    p = b->scores + m * LLM_ATTN_BLOCK;

    if (a->softcap > 0) {
        simd_softcap(a->softcap, p, LLM_ATTN_BLOCK);
    }

    if (a->slopes) {
        d = (int32_t) b->key - (int32_t) a->at[m];

        for (i = 0; i < LLM_ATTN_BLOCK; i++) {
            p[i] -= a->slope[m] * (float) abs(d + i);
        }
    }
}


static void
bfa_block_softmax(const bfa_t *b)
{
    int       whole;
    uint32_t  m, n;

    n = b->a->n;

    if (b->a->softcap > 0 || b->a->slopes) {
        for (m = 0; m < n; m++) {
            bfa_adjust(b, m);
        }
    }

    for (m = 0; m + BFA_ROWS <= n; m += BFA_ROWS) {
        (void) bfa_span(b, m, BFA_ROWS, &whole);

        if (whole) {
            bfa_softmax(b, m, BFA_ROWS, 0);

        } else {
            bfa_softmax(b, m, BFA_ROWS, 1);
        }
    }

    for ( /* void */ ; m < n; m++) {
        bfa_softmax(b, m, 1, 1);
    }
}


/* sets the pages of the block at `key`, of which the tile sees [from, last) */

simd_inline void
bfa_pages(const llm_cpu_attn_t *a, uint32_t key, uint32_t from, uint32_t last,
    const uint16_t *page[BFA_PAGES])
{
    uint32_t  i, p, low, high;

    low = llm_max(key, from) / LLM_KV_PAGE;
    high = (last - 1) / LLM_KV_PAGE;

    simd_unroll
    for (i = 0; i < BFA_PAGES; i++) {
        p = key / LLM_KV_PAGE + i;
        p = p < low || p > high ? low : p;
        page[i] = a->base + a->pages[p] * a->kv->page;
    }
}


/* places the tile's arrays in the thread's scratch, and rounds the queries;
   returns the first key that a query sees */

static uint32_t
bfa_begin(bfa_t *b, llm_cpu_attn_t *a)
{
    uint32_t  i, m, from;

    b->a = a;
    b->scores = a->scores;
    b->sum = b->scores + LLM_ATTN_TILE * LLM_ATTN_BLOCK;
    b->f = b->sum + LLM_ATTN_TILE * VL;
    b->p = (uint16_t *) (void *) (b->f + LLM_ATTN_TILE);
    b->q = b->p + LLM_ATTN_TILE * LLM_ATTN_BLOCK;

    memset(a->acc, 0, a->n * a->kv->dv_pad * sizeof(float));
    memset(b->sum, 0, a->n * VL * sizeof(float));
    from = UINT32_MAX;

    for (m = 0; m < a->n; m++) {
        a->max[m] = -INFINITY;
        from = llm_min(from, a->from[m]);

        for (i = 0; m + BFA_AHEAD < a->n && i < a->kv->head_dim_k; i += VL) {
            __builtin_prefetch(a->q[m + BFA_AHEAD] + i, 0, 3);
        }

        bf16_query(a->kv, a->q[m], b->q + m * a->kv->dk_pad);
    }

    return from;
}


static void
bf16_attn(llm_cpu_attn_t *a)
{
    bfa_t     b;
    uint32_t  m, n, key, from, next;

    from = bfa_begin(&b, a);
    key = llm_max(a->first, from / LLM_ATTN_BLOCK * LLM_ATTN_BLOCK);

    for ( /* void */ ; key < a->last; key = next) {

        b.key = key;
        next = key + LLM_ATTN_BLOCK;
        n = llm_min(a->last - key, LLM_ATTN_BLOCK);

        bfa_pages(a, key, from, a->last, b.page);
        bfa_pages(a, next < a->ahead ? next : key, from, a->ahead, b.next);

        bfa_block_scores(&b);
        bfa_block_softmax(&b);
        bfa_block_values(&b, n);
    }

    for (m = 0; m < a->n; m++) {
        a->sum[m] = vf_hsum(vf_load(b.sum + m * VL));
    }
}
