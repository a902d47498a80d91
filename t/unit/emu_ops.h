/*
 * What the tests of the CUDA backend in the emulator share: steps of many
 * sequences, random matrices of every type, one product, one attention
 * layer's life.  MAX_ROWS is a step's limit.
 */

#ifndef LLM_TEST_EMU_OPS_H
#define LLM_TEST_EMU_OPS_H

#include "t/unit/emu_dev.h"
#include "t/unit/blocks.h"
#include "t/unit/ops.h"

#include <string.h>
#include <unistd.h>

#define MAX_ROWS  640

/* a sequence's rows in a step: n rows from position pos on */
typedef struct {
    uint32_t      pos;
    uint32_t      n;
    uint32_t      page;                 /* its first page, strides of 3 */
} rows_t;

typedef struct {
    llm_batch_t   b;
    int32_t       tokens[MAX_ROWS];
    uint32_t      pos[MAX_ROWS];
    uint32_t      out[MAX_ROWS];
    uint32_t      seq_rows[OPS_MAX_SEQS + 1];
    uint32_t      kv_len[OPS_MAX_SEQS];
    uint32_t      pages[OPS_MAX_SEQS * OPS_MAX_PAGES];
    uint32_t      none[OPS_MAX_SEQS * OPS_MAX_PAGES];
} step_t;

#define N_PAGES  160


static inline void
step_fill(step_t *s, const rows_t *r, uint32_t n, int all_out)
{
    uint32_t  i, k, row;

    memset(s, 0, sizeof(step_t));
    row = 0;

    for (i = 0; i < n; i++) {
        s->seq_rows[i] = row;
        s->kv_len[i] = r[i].pos + r[i].n;

        for (k = 0; k < OPS_MAX_PAGES; k++) {
            s->pages[i * OPS_MAX_PAGES + k] = (r[i].page + 3 * k) % N_PAGES;
        }

        for (k = 0; k < r[i].n; k++, row++) {
            s->tokens[row] = (int32_t) (row * 7 % 50);
            s->pos[row] = r[i].pos + k;

            if (all_out || k + 1 == r[i].n) {
                s->out[s->b.n_out++] = row;
            }
        }
    }

    s->seq_rows[n] = row;
    s->b.n_tokens = row;
    s->b.n_seqs = n;
    s->b.max_pages = OPS_MAX_PAGES;
    s->b.tokens = s->tokens;
    s->b.pos = s->pos;
    s->b.seq_rows = s->seq_rows;
    s->b.kv_len = s->kv_len;
    s->b.pages[LLM_KV_FULL] = s->pages;
    s->b.pages[LLM_KV_WINDOW] = s->none;
    s->b.out_rows = s->out;
    memset(s->none, 0xff, sizeof(s->none));
}


static inline llm_act_t *
act(llm_exec_t *d, llm_act_kind_t kind, uint32_t rows, uint32_t cols,
    const float *src)
{
    llm_err_t   err;
    llm_act_t  *a;

    a = d->ops->act_create(d, rows, cols, kind, &err);

    if (a == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    if (src) {
        d->ops->write(d, a, 0, rows, src);
    }

    return a;
}


static inline void
compare(const float *got, const float *want, size_t n, double bound,
    const char *what)
{
    double  dist;

    dist = ops_distance(got, want, n);
    ok(dist <= bound, "%s: %.6f (at most %g)", what, dist, bound);
}


/* rows of a type: random codes, small scales where the format has halves */

static inline uint8_t *
matrix(uint32_t type, uint32_t n_out, uint32_t n_in, uint64_t seed)
{
    float      f;
    size_t     i, k, size, block;
    uint8_t   *m;
    uint16_t   h;

    size = llm_type_row_size(type, n_in) * n_out;
    block = llm_type_block_size(type);
    m = ops_alloc(size);

    for (i = 0; i < size; i += block) {
        for (k = 0; k < block; k++) {
            m[i + k] = (uint8_t) ops_random(&seed);
        }

        f = ops_normal(&seed);

        if (type == LLM_TYPE_F32) {
            memcpy(m + i, &f, 4);
            continue;
        }

        if (block == 2) {
            h = type == LLM_TYPE_BF16 ? llm_f32_to_bf16(f)
                                      : llm_f32_to_f16(f);
            memcpy(m + i, &h, 2);
            continue;
        }

        blocks_scale(type, m + i, 0.01f * f, 0.02f * ops_normal(&seed));
    }

    return m;
}


/* what product()'s weights are multiplied by, 0: nothing */
static float  product_factor __attribute__((unused));


static inline void
product(llm_exec_t *d, uint32_t type, const uint8_t *m, uint32_t n_out,
    uint32_t n_in, int usage, uint32_t rows, const float *x,
    const float *bias, int add, float *y)
{
    rows_t         r = { 0, rows, 0 };
    step_t        *s;
    llm_act_t     *ax, *ay;
    llm_err_t      err;
    llm_linear_t   l;
    llm_weight_t  *w;

    s = ops_alloc(sizeof(step_t));
    step_fill(s, &r, 1, 1);
    s->b.n_out = 0;                     /* else one row would be captured */

    w = d->ops->weight_create(d, type, n_out, n_in, m, usage, &err);
    if (w == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    if (product_factor != 0) {
        ok(d->ops->weight_scale(d, w, &product_factor, &err) == LLM_OK,
           "a factor");
    }

    ax = act(d, LLM_ACT_VALUE, rows, n_in, x);
    ay = act(d, LLM_ACT_RESIDUAL, rows, n_out, y);

    memset(&l, 0, sizeof(l));
    l.w = w;
    l.y = ay;
    l.add = add;
    l.bias = bias ? d->ops->vec_create(d, bias, n_out, &err) : NULL;

    if (!ok(d->ops->begin(d, &s->b, &err) == LLM_OK, "a step begins")) {
        printf("# %s\n", err.msg);
    }

    d->ops->linear(d, LLM_ROWS_ALL, ax, &l, 1);
    ok(d->ops->end(d, &err) == LLM_OK, "a step ends");
    ops_read(d, ay, y, rows, n_out);

    d->ops->act_free(d, ax);
    d->ops->act_free(d, ay);
    d->ops->weight_free(d, w);

    if (l.bias) {
        d->ops->vec_free(d, (llm_vec_t *) l.bias);
    }

    free(s);
}


/* do both devices give the same bits for a matrix of the type? */

static inline int
same_product(llm_exec_t *d, llm_exec_t *other, uint32_t type, int usage,
    uint64_t seed)
{
    int       same;
    float    *x, *y[2];
    uint8_t  *m;

    enum { N_OUT = 40, N_IN = 512, ROWS = 5 };

    x = ops_alloc(ROWS * N_IN * sizeof(float));
    y[0] = ops_alloc(ROWS * N_OUT * sizeof(float));
    y[1] = ops_alloc(ROWS * N_OUT * sizeof(float));
    ops_fill(x, ROWS * N_IN, 8);
    m = matrix(type, N_OUT, N_IN, seed);

    product(d, type, m, N_OUT, N_IN, usage, ROWS, x, NULL, 0, y[0]);
    product(other, type, m, N_OUT, N_IN, usage, ROWS, x, NULL, 0, y[1]);
    same = memcmp(y[0], y[1], ROWS * N_OUT * sizeof(float)) == 0;

    free(m);
    free(x);
    free(y[0]);
    free(y[1]);

    return same;
}


/* ---- attention ---- */

typedef struct {
    uint32_t          heads;
    uint32_t          kv_heads;
    uint32_t          dk;
    uint32_t          dv;
    uint32_t          rot;
    llm_rope_kind_t   kind;
    int               norm;
    int               sinks;
    llm_heads_t       h;                /* what else there is in it */
} attention_t;

static const attention_t  attentions[] __attribute__((unused)) = {
    { 4, 2, 64, 64, 64, LLM_ROPE_NEOX, .norm = 1 },
    { 3, 3, 32, 32, 32, LLM_ROPE_NORM, .norm = 0 },
    { 8, 1, 128, 128, 128, LLM_ROPE_NEOX, .norm = 1 },
    { 20, 1, 80, 80, 40, LLM_ROPE_NORM, .norm = 0 },
    { 2, 1, 100, 36, 100, LLM_ROPE_NEOX, .norm = 0 },
    { 2, 2, 192, 256, 192, LLM_ROPE_NEOX, .norm = 1 },

    /* wide heads, whose V is cut into slices */
    { 2, 1, 512, 512, 128, LLM_ROPE_NEOX, .norm = 1 },
    { 4, 2, 264, 300, 64, LLM_ROPE_NORM, .sinks = 1,
      .h = { .window = 300 } },
    { 3, 1, 576, 512, 64, LLM_ROPE_NORM, .norm = 0 },

    /* windows: less than a tile, a split and a tile, as long as a split */
    { 4, 2, 64, 64, 64, LLM_ROPE_NEOX, .h = { .window = 24 } },
    { 6, 1, 128, 128, 128, LLM_ROPE_NEOX, .h = { .window = 300 } },
    { 2, 1, 40, 24, 40, LLM_ROPE_NEOX, .h = { .window = 1 } },
    { 4, 4, 192, 160, 64, LLM_ROPE_NORM, .h = { .window = 256 } },
    { 4, 2, 64, 64, 64, LLM_ROPE_NEOX, .h = { .window = 70, .chunks = 1 } },
    { 4, 2, 64, 64, 64, LLM_ROPE_NEOX, .h = { .softcap = 1.5f } },
    { 8, 2, 64, 64, 64, LLM_ROPE_NEOX, .sinks = 1 },
    { 8, 2, 64, 64, 64, LLM_ROPE_NEOX, .sinks = 1, .h = { .window = 300 } },
    { 4, 2, 64, 64, 64, LLM_ROPE_NORM,
      .h = { .temp_scale = 0.1f, .temp_floor = 16, .temp_offset = 1 } },
    { 4, 2, 64, 64, 0, LLM_ROPE_NORM, .norm = 0 },
    { 4, 2, 64, 64, 0, LLM_ROPE_NORM, .norm = 1 },
    { 4, 2, 64, 64, 64, LLM_ROPE_NEOX, .norm = 1, .h = { .norm_last = 1 } },
    { 4, 2, 64, 48, 32, LLM_ROPE_NEOX, .norm = 1, .sinks = 1,
      .h = { .window = 90, .softcap = 3, .temp_scale = 0.2f,
             .temp_floor = 50 } }
};


/* steps of a mixed life: prompts, then decode rows beside a prompt's rest,
   then decode steps of one row a sequence and of several */

static const rows_t  life[][3] = {
    { { 0, 600, 0 }, { 0, 0, 0 }, { 0, 0, 0 } },
    { { 0, 33, 1 }, { 0, 0, 0 }, { 0, 0, 0 } },
    { { 600, 1, 0 }, { 33, 70, 1 }, { 0, 5, 2 } },
    { { 601, 1, 0 }, { 103, 1, 1 }, { 5, 1, 2 } },
    { { 602, 1, 0 }, { 104, 1, 1 }, { 6, 1, 2 } },
    { { 603, 3, 0 }, { 105, 1, 1 }, { 7, 4, 2 } },
    { { 606, 1, 0 }, { 106, 4, 1 }, { 11, 2, 2 } },
    { { 607, 2, 0 }, { 110, 3, 1 }, { 13, 3, 2 } }
};


/* the life that attend() leads: as many steps as `life` has */
static const rows_t  (*attend_life)[3] __attribute__((unused)) = life;

/* steps before that only fill the cache */
static size_t  attend_from __attribute__((unused));

/* rows of the steps from the third on, and by the most heads */
#define ATTEND_ROWS   ((size_t) 110)
#define ATTEND_HEADS  (ATTEND_ROWS * 20)

/* steps of them that were captured ones */
static uint32_t  attend_replayed;


/* pages behind the windows of a sequence's rows are not there any more */

static inline void
forget_pages(step_t *s, const llm_heads_t *h)
{
    uint32_t  i, k;

    for (i = 0; i < s->b.n_seqs; i++) {
        k = llm_heads_first(h, s->pos[s->seq_rows[i]]) / LLM_KV_PAGE;

        while (k > 0) {
            s->pages[i * OPS_MAX_PAGES + --k] = UINT32_MAX;
        }
    }
}


/* what comes of n latent heads: V, dv elements, is the beginning of K, whose
   other dk elements k has */

static inline void
cook_latent(void (*cook)(float *x, size_t n, uint32_t dim), float *k,
    float *v, size_t n, uint32_t dk, uint32_t dv)
{
    float  *both;

    both = ops_alloc((dk + dv) * sizeof(float));

    for ( /* void */ ; n > 0; n--, k += dk, v += dv) {
        memcpy(both, v, dv * sizeof(float));
        memcpy(both + dv, k, dk * sizeof(float));
        cook(both, 1, dk + dv);
        memcpy(v, both, dv * sizeof(float));
        memcpy(k, both + dv, dk * sizeof(float));
    }

    free(both);
}


/*
 * q of the steps from the third on, and the results: as many heads.  With `cook`
 * no head is rotated or normed: what it made of the heads of K and V, n of
 * dim elements, is what comes to the cache.
 */

static inline size_t
attend(llm_exec_t *d, const attention_t *a,
    void (*cook)(float *x, size_t n, uint32_t dim), float *q_out, float *out)
{
    int            rc;
    float         *q, *k, *v, freq[128], norm[576], sinks[80];
    size_t         i, n, rows, done;
    uint32_t       dk;
    step_t        *s;
    llm_kv_t      *kv;
    llm_act_t     *aq, *ak, *av, *ao;
    llm_err_t      err;
    llm_rope_t     rope;
    llm_heads_t    h;
    llm_kv_opts_t  o;

    /* the layer before is smaller, there is nothing of the one behind */

    llm_kv_layer_t  layers[3] = {
        [0] = { .n_kv_heads = 1, .head_dim_k = 16, .head_dim_v = 8 },
        [1] = { .n_kv_heads = a->kv_heads, .head_dim_k = a->dk,
                .head_dim_v = a->dv, .latent = a->h.latent }
    };

    dk = a->h.latent ? a->dk - a->dv : a->dk;
    memset(&o, 0, sizeof(o));
    o.n_layers = 3;
    o.n_pages = N_PAGES;
    o.n_kv_heads = a->kv_heads;
    o.head_dim_k = a->dk;
    o.head_dim_v = a->dv;
    o.n_heads = a->heads;
    o.layers = layers;
    o.kind = a->h.window ? LLM_KV_WINDOW : LLM_KV_FULL;
    kv = d->ops->kv_create(d, &o, &err);

    for (i = 0; i < a->rot / 2; i++) {
        freq[i] = cook ? 0.0f : powf(10000.0f, -2.0f * (float) i
                                               / (float) a->rot);
    }

    ops_fill(norm, a->dk, 4);

    ops_fill(sinks, a->heads, 6);

    h = a->h;
    h.layer = 1;
    h.n_heads = a->heads;
    h.n_kv_heads = a->kv_heads;
    h.head_dim_k = a->dk;
    h.head_dim_v = a->dv;
    h.scale = 1.0f / sqrtf((float) a->dk);
    h.norm_eps = 1e-6f;

    if (a->norm && !cook) {
        h.q_norm = d->ops->vec_create(d, norm, a->dk, &err);
        h.k_norm = d->ops->vec_create(d, norm, a->dk, &err);
    }

    if (a->sinks) {
        h.sinks = d->ops->vec_create(d, sinks, a->heads, &err);
    }

    memset(&rope, 0, sizeof(rope));
    rope.kind = a->kind;
    rope.n_dims = a->rot;
    rope.inv_freq = a->rot ? d->ops->vec_create(d, freq, a->rot / 2, &err)
                           : NULL;
    rope.mscale = cook ? 1.0f : 1.1f;

    aq = act(d, LLM_ACT_PRODUCT, MAX_ROWS, a->heads * a->dk, NULL);
    ak = act(d, LLM_ACT_PRODUCT, MAX_ROWS, a->kv_heads * dk, NULL);
    av = act(d, LLM_ACT_PRODUCT, MAX_ROWS, a->kv_heads * a->dv, NULL);
    ao = act(d, LLM_ACT_VALUE, MAX_ROWS, a->heads * a->dv, NULL);

    q = ops_alloc((size_t) MAX_ROWS * a->heads * a->dk * sizeof(float));
    k = ops_alloc((size_t) MAX_ROWS * a->kv_heads * dk * sizeof(float));
    v = ops_alloc((size_t) MAX_ROWS * a->kv_heads * a->dv * sizeof(float));
    s = ops_alloc(sizeof(step_t));
    done = 0;

    for (i = 0; i < llm_nelems(life); i++) {
        for (n = 1; n < 3 && attend_life[i][n].n; n++) { /* void */ }

        step_fill(s, attend_life[i], (uint32_t) n, i > 2);
        forget_pages(s, &h);

        /* a layer with a window has its pages in the other table */

        if (o.kind == LLM_KV_WINDOW) {
            s->b.pages[LLM_KV_FULL] = s->none;
            s->b.pages[LLM_KV_WINDOW] = s->pages;
        }

        rows = s->b.n_tokens;

        ops_fill(q, rows * a->heads * a->dk, 10 + i);
        ops_fill(k, rows * a->kv_heads * dk, 20 + i);
        ops_fill(v, rows * a->kv_heads * a->dv, 30 + i);

        if (cook && a->h.latent) {
            cook_latent(cook, k, v, rows * a->kv_heads, dk, a->dv);

        } else if (cook) {
            cook(k, rows * a->kv_heads, a->dk);
            cook(v, rows * a->kv_heads, a->dv);
        }

        d->ops->write(d, aq, 0, (uint32_t) rows, q);
        d->ops->write(d, ak, 0, (uint32_t) rows, k);
        d->ops->write(d, av, 0, (uint32_t) rows, v);

        rc = d->ops->begin(d, &s->b, &err);
        attend_replayed += rc == LLM_REPLAYED;

        if (rc == LLM_OK) {
            d->ops->rope_kv(d, &h, &rope, aq, ak, av, kv);

            if (i >= attend_from) {
                d->ops->attention(d, &h, aq, kv, ao);
            }
        }

        ok(d->ops->end(d, &err) == LLM_OK, "step %zu%s", i,
           rc == LLM_REPLAYED ? ", replayed" : "");

        if (i >= 2) {
            ops_read(d, aq, q_out + done * a->dk, (uint32_t) rows,
                     a->heads * a->dk);
            ops_read(d, ao, out + done * a->dv, (uint32_t) rows,
                     a->heads * a->dv);
            done += rows * a->heads;
        }

        if (i == 2) {
            /* what is copied is what was there */
            d->ops->kv_copy(d, kv, 0, 1);
            d->ops->kv_copy(d, kv, 1, 0);
        }
    }

    d->ops->kv_free(d, kv);
    d->ops->act_free(d, aq);
    d->ops->act_free(d, ak);
    d->ops->act_free(d, av);
    d->ops->act_free(d, ao);
    d->ops->vec_free(d, (llm_vec_t *) rope.inv_freq);
    d->ops->vec_free(d, (llm_vec_t *) h.sinks);

    if (a->norm && !cook) {
        d->ops->vec_free(d, (llm_vec_t *) h.q_norm);
        d->ops->vec_free(d, (llm_vec_t *) h.k_norm);
    }

    free(q);
    free(k);
    free(v);
    free(s);

    return done;
}


/* the device under test, or NULL */

static inline llm_exec_t *
open_emu_products(uint32_t weight_type, int weights_fp8, int kv_fp8,
    const char *products)
{
    llm_exec_opts_t  o;

    memset(&o, 0, sizeof(o));
    o.max_tokens = MAX_ROWS;
    o.max_seqs = OPS_MAX_SEQS;
    o.max_pages = OPS_MAX_PAGES;
    o.max_out = MAX_ROWS;
    o.weight_type = weight_type;
    o.weights_fp8 = weights_fp8;
    o.kv_fp8 = kv_fp8;
    o.products = products;
    o.n_kinds = LLM_KV_KINDS;

    return open_tested(&o);
}


static inline llm_exec_t *
open_emu(uint32_t weight_type, int weights_fp8, int kv_fp8)
{
    return open_emu_products(weight_type, weights_fp8, kv_fp8, NULL);
}

#endif /* LLM_TEST_EMU_OPS_H */
