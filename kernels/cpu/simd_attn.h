/*
 * Attention of up to LLM_ATTN_TILE queries (rows x query heads of one KV head)
 * over a range of keys, with the online softmax of arXiv:2205.14135; written
 * once for all instruction sets, included after simd_ops.h.
 *
 * Invariant: keys are processed in blocks of LLM_ATTN_BLOCK from the start of
 * the range.  Within a block, the order in which a query's scores, sums and
 * outputs are computed does not depend on the other queries of the tile.  A
 * key that a query does not see changes none of the query's bits, so groups of
 * queries leave out what none of them sees.
 */

#define ATTN_PAGES    (LLM_ATTN_BLOCK / LLM_KV_PAGE)
#define ATTN_VECTORS  (LLM_ATTN_BLOCK / VL)


/* one block of keys; pages outside the range are replaced by one inside it */

typedef struct {
    const uint16_t  *page[ATTN_PAGES];
    uint32_t         key;               /* first key of the block */
    uint32_t         first;             /* first key that any query sees,
                                           counted in the block */
    uint32_t         n_keys;            /* keys of the block in the range */
} attn_block_t;


/* a vector from element i of a page of binary16, or of float32 if wide */

simd_inline vf_t
attn_load(const uint16_t *p, size_t i, const int wide)
{
    return wide ? vf_load((const float *) (const void *) p + i)
                : vf_load_f16(p + i);
}


/*
 * Scores of mm queries from m0 on by nv vectors of keys from v0 on; the page's
 * K is [head_dim_k][LLM_KV_PAGE].
 */

simd_inline void
attn_scores(const llm_cpu_attn_t *a, const attn_block_t *b, uint32_t m0,
    uint32_t v0, const int mm, const int nv, const int wide)
{
    int              m, v;
    vf_t             acc[8][4], k[4], q;
    uint32_t         d, dk;
    const float     *x[8];
    const uint16_t  *p[4];

    dk = a->kv->head_dim_k;

    simd_unroll
    for (v = 0; v < nv; v++) {
        p[v] = b->page[(v0 + v) * VL / LLM_KV_PAGE]
               + (v0 + v) * VL % LLM_KV_PAGE * (wide ? 2 : 1);
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        x[m] = a->q[m0 + m];

        simd_unroll
        for (v = 0; v < nv; v++) {
            acc[m][v] = vf_zero();
        }
    }

    for (d = 0; d < dk; d++) {
        simd_unroll
        for (v = 0; v < nv; v++) {
            k[v] = attn_load(p[v], (size_t) d * LLM_KV_PAGE, wide);
        }

        simd_unroll
        for (m = 0; m < mm; m++) {
            q = vf_set1(x[m][d]);

            simd_unroll
            for (v = 0; v < nv; v++) {
                acc[m][v] = vf_fma(k[v], q, acc[m][v]);
            }
        }
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        simd_unroll
        for (v = 0; v < nv; v++) {
            vf_store(a->scores + (m0 + m) * LLM_ATTN_BLOCK + (v0 + v) * VL,
                     vf_mul(acc[m][v], vf_set1(a->scale)));
        }
    }
}


/* adds n elements from d on to the latent scores, see below */

simd_inline void
attn_latent_step(vf_t acc[4][4], const float *const *x,
    const uint16_t *const *p, uint32_t d, uint32_t n, const int mm,
    const int nk)
{
    int   m, k;
    vf_t  key[4], q;

    simd_unroll
    for (k = 0; k < nk; k++) {
        key[k] = vf_load_f16(p[k] + d);
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        q = n == VL ? vf_load(x[m] + d) : vf_load_n(x[m] + d, n);

        simd_unroll
        for (k = 0; k < nk; k++) {
            acc[m][k] = vf_fma(key[k], q, acc[m][k]);
        }
    }
}


/*
 * Scores of mm queries from m0 on by nk keys from k0 on, for latent layers,
 * where the elements of a key are adjacent.  So lanes are products of elements,
 * which are added up at the end.
 */

simd_inline void
attn_latent_scores(const llm_cpu_attn_t *a, const attn_block_t *b,
    uint32_t m0, uint32_t k0, const int mm, const int nk)
{
    int              m, k;
    vf_t             acc[4][4];
    uint32_t         d, dk;
    const float     *x[4];
    const uint16_t  *p[4];

    dk = a->kv->head_dim_k;

    simd_unroll
    for (k = 0; k < nk; k++) {
        p[k] = b->page[(k0 + k) / LLM_KV_PAGE]
               + (k0 + k) % LLM_KV_PAGE * a->kv->v_row;
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        x[m] = a->q[m0 + m];

        simd_unroll
        for (k = 0; k < nk; k++) {
            acc[m][k] = vf_zero();
        }
    }

    for (d = 0; d + VL <= dk; d += VL) {
        attn_latent_step(acc, x, p, d, VL, mm, nk);
    }

    if (d < dk) {
        attn_latent_step(acc, x, p, d, dk - d, mm, nk);
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        simd_unroll
        for (k = 0; k < nk; k++) {
            a->scores[(m0 + m) * LLM_ATTN_BLOCK + k0 + k]
                = vf_hsum(acc[m][k]) * a->scale;
        }
    }
}


static void
attn_latent_block(const llm_cpu_attn_t *a, const attn_block_t *b)
{
    uint32_t  m, k;

    for (k = b->first / 4 * 4; k < b->n_keys; k += 4) {
        m = 0;

#if VL == 16
        for ( /* void */ ; m + 4 <= a->n; m += 4) {
            attn_latent_scores(a, b, m, k, 4, 4);
        }
#endif

        for ( /* void */ ; m + 2 <= a->n; m += 2) {
            attn_latent_scores(a, b, m, k, 2, 4);
        }

        if (m < a->n) {
            attn_latent_scores(a, b, m, k, 1, 4);
        }
    }
}


/*
 * Replaces the scores of query m by e^(score - max), and updates its max and
 * sum; returns the factor on its output so far.  The query sees the keys from
 * first to n_keys - 1 of the block.
 */

simd_inline float
attn_softmax(llm_cpu_attn_t *a, uint32_t m, uint32_t first, uint32_t n_keys)
{
    vf_t      s[ATTN_VECTORS], inf, top, sum, f;
    float    *p, max;
    uint32_t  v, n;

    p = a->scores + m * LLM_ATTN_BLOCK;
    inf = vf_set1(-INFINITY);
    top = vf_set1(a->max[m]);

    simd_unroll
    for (v = 0; v < ATTN_VECTORS; v++) {
        n = n_keys > v * VL ? llm_min(n_keys - v * VL, VL) : 0;
        s[v] = vf_first(vf_load(p + v * VL), inf, n);

        if (first > v * VL) {
            s[v] = vf_first(inf, s[v], llm_min(first - v * VL, VL));
        }

        top = vf_max(top, s[v]);
    }

    max = vf_hmax(top);
    top = vf_set1(max);
    sum = vf_zero();

    simd_unroll
    for (v = 0; v < ATTN_VECTORS; v++) {
        s[v] = vf_exp(vf_sub(s[v], top));
        sum = vf_add(sum, s[v]);
        vf_store(p + v * VL, s[v]);
    }

    f = vf_exp(vf_sub(vf_set1(a->max[m]), top));
    vf_store_n(&max, f, 1);

    a->sum[m] = __builtin_fmaf(a->sum[m], max, vf_hsum(sum));
    vf_store_n(&a->max[m], top, 1);

    return max;
}


/*
 * Outputs of mm queries from m0 on, in nv vectors of the head's dimensions from
 * v0 on: multiplies them by f, then adds the block's weighted values.
 */

simd_inline void
attn_values(const llm_cpu_attn_t *a, const attn_block_t *b, const float *f,
    uint32_t m0, uint32_t v0, const int mm, const int nv, const int wide)
{
    int              m, v;
    vf_t             acc[8][8], x[8], p;
    float           *y;
    size_t           dv, step;
    uint32_t         k, end;
    const float     *s;
    const uint16_t  *row;

    dv = a->kv->dv_pad;
    step = (size_t) a->kv->v_row * (wide ? 2 : 1);
    s = a->scores + m0 * LLM_ATTN_BLOCK;
    y = a->acc + m0 * dv + v0 * VL;

    simd_unroll
    for (m = 0; m < mm; m++) {
        simd_unroll
        for (v = 0; v < nv; v++) {
            acc[m][v] = vf_mul(vf_load(y + m * dv + v * VL),
                               vf_set1(f[m0 + m]));
        }
    }

    for (k = b->first; k < b->n_keys; k = end) {
        end = llm_min(b->n_keys, (k / LLM_KV_PAGE + 1) * LLM_KV_PAGE);
        row = b->page[k / LLM_KV_PAGE] + a->kv->k_size
              + (k % LLM_KV_PAGE * a->kv->v_row + v0 * VL) * (wide ? 2 : 1);

        for ( /* void */ ; k < end; k++, row += step) {
            simd_unroll
            for (v = 0; v < nv; v++) {
                x[v] = attn_load(row, (size_t) v * VL, wide);
            }

            simd_unroll
            for (m = 0; m < mm; m++) {
                p = vf_set1(s[m * LLM_ATTN_BLOCK + k]);

                simd_unroll
                for (v = 0; v < nv; v++) {
                    acc[m][v] = vf_fma(p, x[v], acc[m][v]);
                }
            }
        }
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        simd_unroll
        for (v = 0; v < nv; v++) {
            vf_store(y + m * dv + v * VL, acc[m][v]);
        }
    }
}


/* narrows the block to the keys that some of mm queries from m0 on see; returns
   0 if there are none */

static int
attn_narrow(const llm_cpu_attn_t *a, const attn_block_t *b, uint32_t m0,
    uint32_t mm, attn_block_t *part)
{
    uint32_t  m, from, limit, first, end;

    *part = *b;
    first = LLM_ATTN_BLOCK;
    end = 0;

    for (m = m0; m < m0 + mm; m++) {
        from = llm_max(a->from[m], b->key);
        limit = llm_min(a->limit[m], b->key + LLM_ATTN_BLOCK);

        if (from < limit) {
            first = llm_min(first, from - b->key);
            end = llm_max(end, limit - b->key);
        }
    }

    part->first = llm_max(first, b->first);
    part->n_keys = llm_min(end, b->n_keys);

    return end > 0;
}


/* tile sizes fit into the registers: 32 with AVX-512, 16 with AVX2 */

simd_inline void
attn_group_scores(const llm_cpu_attn_t *a, const attn_block_t *b,
    uint32_t m, const int mm, const int nv, const int wide)
{
    uint32_t      v;
    attn_block_t  part;

    if (!attn_narrow(a, b, m, (uint32_t) mm, &part)) {
        return;
    }

    v = part.first / VL / (uint32_t) nv * (uint32_t) nv;

    for ( /* void */ ; v * VL < part.n_keys; v += (uint32_t) nv) {
        attn_scores(a, &part, m, v, mm, nv, wide);
    }
}


simd_inline void
attn_block_scores(const llm_cpu_attn_t *a, const attn_block_t *b,
    const int wide)
{
    uint32_t  m;

    m = 0;

#if VL == 16
    for ( /* void */ ; m + 8 <= a->n; m += 8) {
        attn_group_scores(a, b, m, 8, 2, wide);
    }

    for ( /* void */ ; m + 4 <= a->n; m += 4) {
        attn_group_scores(a, b, m, 4, 4, wide);
    }
#else
    for ( /* void */ ; m + 6 <= a->n; m += 6) {
        attn_group_scores(a, b, m, 6, 2, wide);
    }
#endif

    for ( /* void */ ; m + 2 <= a->n; m += 2) {
        attn_group_scores(a, b, m, 2, 4, wide);
    }

    if (m < a->n) {
        attn_group_scores(a, b, m, 1, 4, wide);
    }
}


/* all outputs, in nv vectors at a time, and the rest one by one */

simd_inline void
attn_group_values(const llm_cpu_attn_t *a, const attn_block_t *b,
    const float *f, uint32_t m, const int mm, const int nv, const int wide)
{
    uint32_t      v, n;
    attn_block_t  part;

    if (!attn_narrow(a, b, m, (uint32_t) mm, &part)) {
        return;
    }

    n = (uint32_t) (a->kv->dv_pad / VL);

    for (v = 0; v + (uint32_t) nv <= n; v += (uint32_t) nv) {
        attn_values(a, &part, f, m, v, mm, nv, wide);
    }

    for ( /* void */ ; v < n; v++) {
        attn_values(a, &part, f, m, v, mm, 1, wide);
    }
}


simd_inline void
attn_block_values(const llm_cpu_attn_t *a, const attn_block_t *b,
    const float *f, const int wide)
{
    uint32_t  m;

    m = 0;

#if VL == 16
    for ( /* void */ ; m + 8 <= a->n; m += 8) {
        attn_group_values(a, b, f, m, 8, 2, wide);
    }
#else
    for ( /* void */ ; m + 6 <= a->n; m += 6) {
        attn_group_values(a, b, f, m, 6, 2, wide);
    }
#endif

    for ( /* void */ ; m + 2 <= a->n; m += 2) {
        attn_group_values(a, b, f, m, 2, 4, wide);
    }

    if (m < a->n) {
        attn_group_values(a, b, f, m, 1, 8, wide);
    }
}


/* subtracts slope * distance from the scores of query m; key: the block's first
   key */

static void
attn_slope(const llm_cpu_attn_t *a, uint32_t m, uint32_t key)
{
    float    *p;
    int32_t   i, d;

    p = a->scores + m * LLM_ATTN_BLOCK;
    d = (int32_t) key - (int32_t) a->at[m];

    for (i = 0; i < LLM_ATTN_BLOCK; i++) {
        p[i] -= a->slope[m] * (float) abs(d + i);
    }
}


/*
 * Sets the pages of the block that begins at `key`.  A page that no query sees
 * is not read: it may belong to another sequence by now.
 */

simd_inline void
attn_block_pages(const llm_cpu_attn_t *a, uint32_t key, uint32_t from,
    attn_block_t *b)
{
    uint32_t  i, page, low, high;

    b->key = key;
    b->n_keys = llm_min(a->last - key, LLM_ATTN_BLOCK);
    b->first = from > key ? from - key : 0;
    low = (key + b->first) / LLM_KV_PAGE;
    high = (a->last - 1) / LLM_KV_PAGE;

    simd_unroll
    for (i = 0; i < ATTN_PAGES; i++) {
        page = key / LLM_KV_PAGE + i;
        page = page < low || page > high ? low : page;
        b->page[i] = a->base + a->pages[page] * a->kv->page;
    }
}


/* the weights of all queries in the block at `key`, and the factors on their
   outputs so far */

static void
attn_block_softmax(llm_cpu_attn_t *a, uint32_t key, float *f)
{
    uint32_t  m, first, seen;

    for (m = 0; m < a->n; m++) {

        if (a->limit[m] <= key || a->from[m] >= key + LLM_ATTN_BLOCK) {
            memset(a->scores + m * LLM_ATTN_BLOCK, 0,
                   LLM_ATTN_BLOCK * sizeof(float));
            f[m] = 1;
            continue;
        }

        if (a->softcap > 0) {
            simd_softcap(a->softcap, a->scores + m * LLM_ATTN_BLOCK,
                         LLM_ATTN_BLOCK);
        }

        if (a->slopes) {
            attn_slope(a, m, key);
        }

        first = a->from[m] > key ? a->from[m] - key : 0;
        seen = llm_min(a->limit[m] - key, LLM_ATTN_BLOCK);
        f[m] = attn_softmax(a, m, first, seen);
    }
}


/* clears the results; returns the first key that a query sees */

static uint32_t
attn_begin(llm_cpu_attn_t *a)
{
    uint32_t  m, from;

    memset(a->acc, 0, a->n * a->kv->dv_pad * sizeof(float));
    from = UINT32_MAX;

    for (m = 0; m < a->n; m++) {
        a->max[m] = -INFINITY;
        a->sum[m] = 0;
        from = llm_min(from, a->from[m]);
    }

    return from;
}


simd_inline void
attn_all(llm_cpu_attn_t *a, const int wide)
{
    float         f[LLM_ATTN_TILE];
    uint32_t      key, from;
    attn_block_t  b;

    from = attn_begin(a);
    key = llm_max(a->first, from / LLM_ATTN_BLOCK * LLM_ATTN_BLOCK);

    for ( /* void */ ; key < a->last; key += LLM_ATTN_BLOCK) {

        attn_block_pages(a, key, from, &b);

        if (a->kv->latent) {
            attn_latent_block(a, &b);

        } else {
            attn_block_scores(a, &b, wide);
        }

        attn_block_softmax(a, key, f);
        attn_block_values(a, &b, f, wide);
    }
}


static void
simd_attn(llm_cpu_attn_t *a)
{
    attn_all(a, 0);
}


/* on a cache of float32 */

static void
simd_attn_f32(llm_cpu_attn_t *a)
{
    attn_all(a, 1);
}


static void
simd_keep_f32(const llm_cpu_kv_layer_t *kv, uint16_t *page, uint32_t slot,
    const float *k, const float *v)
{
    float     *to;
    uint32_t   i;

    to = (float *) (void *) page + slot;

    for (i = 0; i < kv->head_dim_k; i++) {
        to[i * LLM_KV_PAGE] = k[i];
    }

    memcpy((float *) (void *) (page + kv->k_size) + slot * kv->v_row, v,
           kv->head_dim_v * sizeof(float));
}


static void
simd_attn_merge(llm_cpu_attn_t *a, const llm_cpu_attn_t *b)
{
    vf_t          fa, fb, top;
    float         ea, eb, *y;
    size_t        i, dv;
    uint32_t      m;
    const float  *x;

    dv = a->kv->dv_pad;

    for (m = 0; m < a->n; m++) {

        if (b->limit[m] <= b->first || b->from[m] >= b->last) {
            continue;
        }

        top = vf_max(vf_set1(a->max[m]), vf_set1(b->max[m]));
        fa = vf_exp(vf_sub(vf_set1(a->max[m]), top));
        fb = vf_exp(vf_sub(vf_set1(b->max[m]), top));

        vf_store_n(&ea, fa, 1);
        vf_store_n(&eb, fb, 1);
        vf_store_n(&a->max[m], top, 1);
        a->sum[m] = __builtin_fmaf(b->sum[m], eb, a->sum[m] * ea);

        y = a->acc + m * dv;
        x = b->acc + m * dv;

        for (i = 0; i < dv; i += VL) {
            vf_store(y + i, vf_fma(vf_load(x + i), fb,
                                   vf_mul(vf_load(y + i), fa)));
        }
    }
}


static void
simd_attn_finish(const llm_cpu_attn_t *a, uint32_t m, const float *sink,
    float *out)
{
    vf_t          sum;
    uint32_t      i, n, dv;
    const float  *x;

    dv = a->kv->head_dim_v;
    x = a->acc + m * a->kv->dv_pad;
    sum = vf_set1(a->sum[m]);

    if (sink) {
        sum = vf_add(sum, vf_exp(vf_sub(vf_set1(*sink),
                                        vf_set1(a->max[m]))));
    }


    for (i = 0; i < dv; i += VL) {
        n = llm_min(dv - i, VL);
        vf_store_n(out + i, vf_div(vf_load(x + i), sum), n);
    }
}
