/*
 * Attention on a cache of int8; written once for all instruction sets, included
 * after simd_attn.h.
 *
 * Queries, and the weights of the softmax, are rounded to int16, so a score is
 * an exact sum of int16 products for each 32 elements, which have a scale, and
 * so are a block's outputs.  Scales, softmax and the sums over blocks are
 * float32.  The cache's layout (cpu.h) is that of VPDPWSSD and VPMADDWD: pairs
 * of elements, and of keys, are adjacent.
 *
 * Invariant: that of simd_attn.h.
 */

#define Q8_GROUP  32                    /* elements of a key with one scale */
#define Q8_NV     4

#if VL == 16
#define Q8_MM     6
#else
#define Q8_MM     2
#endif


/* what a tile's computation keeps in the thread's scratch */

typedef struct {
    llm_cpu_attn_t  *a;
    int16_t         *q;                 /* [n][dk_pad] queries */
    int16_t         *p;                 /* [n][LLM_ATTN_BLOCK] weights times the
                                           scales of values */
    float            scale[LLM_ATTN_TILE];  /* of each row of q */
    float            unit[LLM_ATTN_TILE];   /* of each row of p */
    float            f[LLM_ATTN_TILE];      /* factors on outputs so far */
} q8_attn_t;


#if VL == 16

simd_inline vi_t vi_zero(void) { return _mm512_setzero_si512(); }
simd_inline vf_t vi_float(vi_t v) { return _mm512_cvtepi32_ps(v); }
simd_inline vi_t vi_round(vf_t v) { return _mm512_cvtps_epi32(v); }
simd_inline vi_t vi_set1(int32_t x) { return _mm512_set1_epi32(x); }


/* 2 VL numbers of int8 as int16 */

simd_inline vi_t
vi_load_i8(const int8_t *p)
{
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *) p));
}


/* sum + the products of pairs of int16 */

simd_inline vi_t
vi_dot(vi_t sum, vi_t a, vi_t b)
{
    return _mm512_dpwssd_epi32(sum, a, b);
}


/* the lanes as int16 */

simd_inline void
vi_store_i16(int16_t *p, vi_t v)
{
    _mm256_storeu_si256((__m256i *) p, _mm512_cvtepi32_epi16(v));
}

#else

simd_inline vi_t vi_zero(void) { return _mm256_setzero_si256(); }
simd_inline vf_t vi_float(vi_t v) { return _mm256_cvtepi32_ps(v); }
simd_inline vi_t vi_round(vf_t v) { return _mm256_cvtps_epi32(v); }
simd_inline vi_t vi_set1(int32_t x) { return _mm256_set1_epi32(x); }


simd_inline vi_t
vi_load_i8(const int8_t *p)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *) p));
}


simd_inline vi_t
vi_dot(vi_t sum, vi_t a, vi_t b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}


simd_inline void
vi_store_i16(int16_t *p, vi_t v)
{
    _mm_storeu_si128((__m128i *) p,
                     _mm_packs_epi32(_mm256_castsi256_si128(v),
                                     _mm256_extracti128_si256(v, 1)));
}

#endif


simd_inline vi_t
vi_pair(const int16_t *p)
{
    int32_t  x;

    memcpy(&x, p, 4);

    return vi_set1(x);
}


/*
 * Scores of mm queries from m0 on by nv vectors of keys from v0 on: adds those
 * of each group of elements.
 */

simd_inline void
q8_scores(const q8_attn_t *b, const attn_block_t *block, uint32_t m0,
    uint32_t v0, const int mm, const int nv)
{
    int              m, v;
    vi_t             acc[Q8_MM][Q8_NV], key[Q8_NV], q;
    vf_t             s;
    float           *to;
    size_t           d, g, dk;
    const int8_t    *p[Q8_NV];
    const int16_t   *x[Q8_MM];
    const uint16_t  *scale[Q8_NV];

    dk = b->a->kv->dk_pad;

    simd_unroll
    for (v = 0; v < nv; v++) {
        d = (v0 + (uint32_t) v) * VL % LLM_KV_PAGE;
        scale[v] = block->page[(v0 + (uint32_t) v) * VL / LLM_KV_PAGE];
        p[v] = (const int8_t *) scale[v] + 2 * d;
        scale[v] += dk / 2 * LLM_KV_PAGE + d;
    }

    for (g = 0; g < dk; g += Q8_GROUP) {

        simd_unroll
        for (m = 0; m < mm; m++) {
            x[m] = b->q + (m0 + (uint32_t) m) * dk + g;

            simd_unroll
            for (v = 0; v < nv; v++) {
                acc[m][v] = vi_zero();
            }
        }

        for (d = 0; d < Q8_GROUP; d += 2) {
            simd_unroll
            for (v = 0; v < nv; v++) {
                key[v] = vi_load_i8(p[v] + (g + d) * LLM_KV_PAGE);
            }

            simd_unroll
            for (m = 0; m < mm; m++) {
                q = vi_pair(x[m] + d);

                simd_unroll
                for (v = 0; v < nv; v++) {
                    acc[m][v] = vi_dot(acc[m][v], key[v], q);
                }
            }
        }

        simd_unroll
        for (m = 0; m < mm; m++) {
            simd_unroll
            for (v = 0; v < nv; v++) {
                to = b->a->scores + (m0 + (uint32_t) m) * LLM_ATTN_BLOCK
                     + (v0 + (uint32_t) v) * VL;
                s = g ? vf_load(to) : vf_zero();
                vf_store(to, vf_fma(vi_float(acc[m][v]),
                                    vf_load_f16(scale[v] + g / Q8_GROUP
                                                           * LLM_KV_PAGE),
                                    s));
            }
        }
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        simd_unroll
        for (v = 0; v < nv; v++) {
            to = b->a->scores + (m0 + (uint32_t) m) * LLM_ATTN_BLOCK
                 + (v0 + (uint32_t) v) * VL;
            vf_store(to, vf_mul(vf_load(to),
                                vf_set1(b->scale[m0 + (uint32_t) m])));
        }
    }
}


/* outputs of mm queries from m0 on, in nv vectors of the head's dimensions from
   v0 on: multiplies them by f, then adds the block's weighted values; what is
   beyond the block's keys has the weight 0 */

simd_inline void
q8_values(const q8_attn_t *b, const attn_block_t *block, uint32_t m0,
    uint32_t v0, const int mm, const int nv)
{
    int             m, v;
    vi_t            acc[Q8_MM][8], x[8], p;
    float          *y;
    size_t          dv;
    uint32_t        k;
    const int8_t   *row;
    const int16_t  *w;

    dv = b->a->kv->dv_pad;
    w = b->p + m0 * LLM_ATTN_BLOCK;
    y = b->a->acc + m0 * dv + v0 * VL;

    simd_unroll
    for (m = 0; m < mm; m++) {
        simd_unroll
        for (v = 0; v < nv; v++) {
            acc[m][v] = vi_zero();
        }
    }

    for (k = block->first / 2 * 2; k < block->n_keys; k += 2) {
        row = (const int8_t *) (block->page[k / LLM_KV_PAGE]
                                + b->a->kv->k_size)
              + (k % LLM_KV_PAGE) * dv + v0 * VL * 2;

        simd_unroll
        for (v = 0; v < nv; v++) {
            x[v] = vi_load_i8(row + v * VL * 2);
        }

        simd_unroll
        for (m = 0; m < mm; m++) {
            p = vi_pair(w + m * LLM_ATTN_BLOCK + k);

            simd_unroll
            for (v = 0; v < nv; v++) {
                acc[m][v] = vi_dot(acc[m][v], x[v], p);
            }
        }
    }

    simd_unroll
    for (m = 0; m < mm; m++) {
        simd_unroll
        for (v = 0; v < nv; v++) {
            vf_store(y + (size_t) m * dv + v * VL,
                     vf_fma(vi_float(acc[m][v]),
                            vf_set1(b->unit[m0 + (uint32_t) m]),
                            vf_mul(vf_load(y + (size_t) m * dv + v * VL),
                                   vf_set1(b->f[m0 + (uint32_t) m]))));
        }
    }
}


simd_inline void
q8_group_scores(const q8_attn_t *b, const attn_block_t *block, uint32_t m,
    const int mm)
{
    uint32_t      v;
    attn_block_t  part;

    if (!attn_narrow(b->a, block, m, (uint32_t) mm, &part)) {
        return;
    }

    v = part.first / VL / Q8_NV * Q8_NV;

    for ( /* void */ ; v * VL < part.n_keys; v += Q8_NV) {
        q8_scores(b, &part, m, v, mm, Q8_NV);
    }
}


simd_inline void
q8_group_values(const q8_attn_t *b, const attn_block_t *block, uint32_t m,
    const int mm)
{
    uint32_t      v, n;
    attn_block_t  part;

    if (!attn_narrow(b->a, block, m, (uint32_t) mm, &part)) {
        return;
    }

    n = (uint32_t) (b->a->kv->dv_pad / VL);

    for (v = 0; v + Q8_NV <= n; v += Q8_NV) {
        q8_values(b, &part, m, v, mm, Q8_NV);
    }

    for ( /* void */ ; v < n; v++) {
        q8_values(b, &part, m, v, mm, 1);
    }
}


static void
q8_block_scores(const q8_attn_t *b, const attn_block_t *block)
{
    uint32_t  m, n;

    n = b->a->n;

    for (m = 0; m + Q8_MM <= n; m += Q8_MM) {
        q8_group_scores(b, block, m, Q8_MM);
    }

#if Q8_MM > 2
    for ( /* void */ ; m + 2 <= n; m += 2) {
        q8_group_scores(b, block, m, 2);
    }
#endif

    if (m < n) {
        q8_group_scores(b, block, m, 1);
    }
}


static void
q8_block_values(const q8_attn_t *b, const attn_block_t *block)
{
    uint32_t  m, n;

    n = b->a->n;

    for (m = 0; m + Q8_MM <= n; m += Q8_MM) {
        q8_group_values(b, block, m, Q8_MM);
    }

#if Q8_MM > 2
    for ( /* void */ ; m + 2 <= n; m += 2) {
        q8_group_values(b, block, m, 2);
    }
#endif

    if (m < n) {
        q8_group_values(b, block, m, 1);
    }
}


/* multiplies the weights of query m by the scales of the values, and rounds
   them to int16; their unit is NaN if the query sees values that are no
   numbers */

simd_inline void
q8_weights(q8_attn_t *b, const attn_block_t *block, uint32_t m)
{
    vf_t             w[ATTN_VECTORS], p, top, sum, inv;
    float            max;
    uint32_t         v, at;
    const uint16_t  *scale;

    top = sum = vf_zero();
    at = (uint32_t) (b->a->kv->k_size + b->a->kv->dv_pad / 2 * LLM_KV_PAGE);

    simd_unroll
    for (v = 0; v < ATTN_VECTORS; v++) {
        scale = block->page[v * VL / LLM_KV_PAGE] + at + v * VL % LLM_KV_PAGE;
        p = vf_load(b->a->scores + m * LLM_ATTN_BLOCK + v * VL);

        /* what is not seen may have any scale */
        w[v] = vf_keep_ge(vf_mul(p, vf_load_f16(scale)), p,
                          vf_set1(0x1p-126f));
        top = vf_max(top, w[v]);
        sum = vf_fma(w[v], vf_zero(), sum);
    }

    max = vf_hmax(top);
    inv = vf_set1(max > 0 ? 32767 / max : 0);
    b->unit[m] = max / 32767 + vf_hsum(sum);

    simd_unroll
    for (v = 0; v < ATTN_VECTORS; v++) {
        vi_store_i16(b->p + m * LLM_ATTN_BLOCK + v * VL,
                     vi_round(vf_mul(w[v], inv)));
    }
}


/* the scale that makes the largest of n numbers `most`; NaN if one is not
   finite */

static float
q8_scale(const float *x, uint32_t n, float most)
{
    vf_t      top, sum, v;
    uint32_t  i;

    top = sum = vf_zero();

    for (i = 0; i < n; i += VL) {
        v = vf_abs(vf_load_n(x + i, llm_min(n - i, VL)));
        top = vf_max(top, v);
        sum = vf_fma(v, vf_zero(), sum);
    }

    return vf_hmax(top) / most + vf_hsum(sum);
}


/* rounds n numbers in units of the scale, padded with zeros to `padded` */

simd_inline void
q8_round(const float *x, uint32_t n, size_t padded, float scale, int16_t *to)
{
    vf_t      v, inv;
    uint32_t  i;

    inv = vf_set1(scale > 0 ? 1 / scale : 0);

    for (i = 0; i < padded; i += VL) {
        v = i < n ? vf_load_n(x + i, llm_min(n - i, VL)) : vf_zero();
        vi_store_i16(to + i, vi_round(vf_mul(v, inv)));
    }
}


static void
simd_attn_q8(llm_cpu_attn_t *a)
{
    uint32_t      m, n, key, from;
    q8_attn_t     b;
    attn_block_t  block;

    n = a->kv->head_dim_k;
    b.a = a;
    b.p = (int16_t *) (void *) (a->scores + LLM_ATTN_TILE * LLM_ATTN_BLOCK);
    b.q = b.p + LLM_ATTN_TILE * LLM_ATTN_BLOCK;

    for (m = 0; m < a->n; m++) {
        b.scale[m] = q8_scale(a->q[m], n, 32767);
        q8_round(a->q[m], n, a->kv->dk_pad, b.scale[m],
                 b.q + m * a->kv->dk_pad);
        b.scale[m] *= a->scale;
        b.unit[m] = 0;
    }

    from = attn_begin(a);
    key = llm_max(a->first, from / LLM_ATTN_BLOCK * LLM_ATTN_BLOCK);

    for ( /* void */ ; key < a->last; key += LLM_ATTN_BLOCK) {

        attn_block_pages(a, key, from, &block);
        q8_block_scores(&b, &block);
        attn_block_softmax(a, key, b.f);

        for (m = 0; m < a->n; m++) {
            q8_weights(&b, &block, m);
        }

        q8_block_values(&b, &block);
    }
}


/* rounds a scale to what is stored, and returns that; up, if it is so small
   that the largest number would not be within 127 of its units */

simd_inline uint16_t
q8_half(float *scale)
{
    uint16_t  h;

    h = llm_f32_to_f16(*scale);

    if (*scale > 0 && llm_f16_to_f32(h) * 127.5f <= *scale * 127) {
        h++;
    }

    *scale = llm_f16_to_f32(h);

    return h;
}


/* writes k and v of the token in slot `slot` of a page of one head; only the
   token's own numbers, because another thread may write its neighbour's */

static void
simd_keep_q8(const llm_cpu_kv_layer_t *kv, uint16_t *page, uint32_t slot,
    const float *k, const float *v)
{
    float      scale;
    size_t     i, n, at;
    int16_t    x[Q8_GROUP];
    int8_t    *to;
    uint16_t  *scales;

    to = (int8_t *) page + slot * 2;
    scales = page + kv->dk_pad / 2 * LLM_KV_PAGE + slot;

    for (at = 0; at < kv->head_dim_k; at += Q8_GROUP) {
        n = llm_min(kv->head_dim_k - at, (size_t) Q8_GROUP);
        scale = q8_scale(k + at, (uint32_t) n, 127);
        scales[at / Q8_GROUP * LLM_KV_PAGE] = q8_half(&scale);
        q8_round(k + at, (uint32_t) n, Q8_GROUP, scale, x);

        for (i = 0; i < Q8_GROUP; i += 2) {
            to[(at + i) * LLM_KV_PAGE] = (int8_t) x[i];
            to[(at + i) * LLM_KV_PAGE + 1] = (int8_t) x[i + 1];
        }
    }

    to = (int8_t *) (page + kv->k_size) + slot / 2 * kv->dv_pad * 2
         + slot % 2;
    scales = page + kv->k_size + kv->dv_pad / 2 * LLM_KV_PAGE + slot;
    scale = q8_scale(v, kv->head_dim_v, 127);
    *scales = q8_half(&scale);

    for (at = 0; at < kv->head_dim_v; at += Q8_GROUP) {
        n = llm_min(kv->head_dim_v - at, (size_t) Q8_GROUP);
        q8_round(v + at, (uint32_t) n, Q8_GROUP, scale, x);

        for (i = 0; i < n; i++) {
            to[(at + i) * 2] = (int8_t) x[i];
        }
    }
}
