/*
 * Latent attention's operations on random numbers, for the tests of the CPU's
 * (latent.c) and of the CUDA backend's (emu_latent.c): products of heads with
 * a matrix each, and attention whose V is the beginning of K.
 */

#ifndef LLM_TEST_LATENT_H
#define LLM_TEST_LATENT_H

#include "t/unit/ops.h"

#include <string.h>

#define MAX_N  1200                     /* positions */


/* ---- heads ---- */

typedef struct {
    uint32_t   type;
    uint32_t   n_heads;
    uint32_t   n_in;
    uint32_t   n_out;
    uint32_t   rest;                    /* elements behind, copied */
    uint32_t   rows;
    double     bound;                   /* of an instruction set */
} heads_case_t;

static const heads_case_t  heads_cases[] __attribute__((unused)) = {
    { LLM_TYPE_F32,  4, 32, 64, 16, 70, 1e-6 },
    { LLM_TYPE_F32,  3, 7, 19, 5, 9, 1e-6 },
    { LLM_TYPE_F16,  5, 64, 50, 0, 130, 1e-6 },
    { LLM_TYPE_F16,  1, 33, 16, 1, 49, 1e-6 },
    { LLM_TYPE_BF16, 4, 64, 48, 8, 97, 0.004 },
    { LLM_TYPE_Q8_0, 3, 64, 40, 16, 100, 0.01 },
    { LLM_TYPE_Q8_0, 16, 96, 64, 0, 20, 0.01 },
    { LLM_TYPE_Q8_0, 2, 32, 512, 64, 1, 0.015 }
};


static inline void *
heads_matrix(const heads_case_t *c)
{
    float      f;
    size_t     i, n;
    uint8_t   *m;
    uint16_t   h;
    uint64_t   seed = 7;

    n = (size_t) c->n_heads * c->n_out * c->n_in;
    m = ops_alloc(llm_type_row_size(c->type, c->n_in) * c->n_heads
                  * c->n_out);

    for (i = 0; i < n; i++) {
        f = ops_normal(&seed);

        switch (c->type) {

        case LLM_TYPE_F32:
            memcpy(m + i * 4, &f, 4);
            break;

        case LLM_TYPE_Q8_0:
            h = llm_f32_to_f16(f / 64);
            memcpy(m + i / 32 * 34, &h, 2);
            m[i / 32 * 34 + 2 + i % 32] = (uint8_t) ops_random(&seed);
            break;

        default:
            h = c->type == LLM_TYPE_F16 ? llm_f32_to_f16(f)
                                        : llm_f32_to_bf16(f);
            memcpy(m + i * 2, &h, 2);
        }
    }

    return m;
}


/* `step` rows at a time; closes dev, whose captured steps are this one's */

static inline void
run_heads(llm_dev_t *dev, const heads_case_t *c, llm_act_kind_t kind,
    const void *m, const float *scales, const float *x, uint32_t step,
    float *y)
{
    uint32_t          i, n, x_cols, y_cols;
    llm_act_t        *ax, *ay;
    llm_batch_t       b;
    llm_weight_t     *w;
    const llm_ops_t  *o = dev->ops;

    x_cols = c->n_heads * (c->n_in + c->rest);
    y_cols = c->n_heads * (c->n_out + c->rest);
    ax = o->act_create(dev, c->rows, x_cols, kind, NULL);
    ay = o->act_create(dev, c->rows, y_cols, kind, NULL);
    w = o->heads_create(dev, c->type, c->n_heads, c->n_out, c->n_in, m,
                        llm_type_row_size(c->type, c->n_in) * c->n_out, NULL);

    if (scales) {
        ok(o->weight_scale(dev, w, scales, NULL) == LLM_OK, "factors");
    }

    for (i = 0; i < c->rows; i += n) {
        n = llm_min(step, c->rows - i);
        o->write(dev, ax, 0, n, x + (size_t) i * x_cols);
        ops_rows_batch(&b, n);

        if (o->begin(dev, &b, NULL) != LLM_REPLAYED) {
            o->linear_heads(dev, LLM_ROWS_ALL, w, ax, ay);
        }

        o->end(dev, NULL);
        ops_read(dev, ay, y + (size_t) i * y_cols, n, y_cols);
    }

    o->weight_free(dev, w);
    o->act_free(dev, ax);
    o->act_free(dev, ay);
    o->close(dev);
}


/* ---- attention ---- */

typedef struct {
    const char       *name;
    uint32_t          n;                /* positions */
    uint32_t          n_heads;
    uint32_t          n_kv_heads;
    uint32_t          dim_k;
    uint32_t          dim_v;
    llm_rope_kind_t   kind;
    uint32_t          window;
    float             temper;
} latent_case_t;

static const latent_case_t  latent_cases[] __attribute__((unused)) = {
    { "as DeepSeek's", 90, 16, 1, 576, 512, LLM_ROPE_NORM, 0, 0 },
    { "small", 150, 4, 1, 80, 64, LLM_ROPE_NORM, 0, 0 },
    { "odd sizes", 100, 5, 1, 50, 40, LLM_ROPE_NEOX, 0, 0 },
    { "smaller than a vector", 70, 3, 1, 13, 5, LLM_ROPE_NORM, 0, 0 },
    { "more heads than a tile", 70, 35, 1, 48, 32, LLM_ROPE_NORM, 0, 0 },
    { "beyond a split", MAX_N, 4, 1, 40, 24, LLM_ROPE_NORM, 0, 0 },
    { "two heads of keys", 90, 6, 2, 44, 28, LLM_ROPE_NEOX, 0, 0 },
    { "a window", 140, 4, 1, 40, 24, LLM_ROPE_NORM, 30, 0 },
    { "tempered queries", 80, 4, 1, 40, 24, LLM_ROPE_NORM, 0, 0.1f }
};

/* a case's numbers: q, k, v, each [n][heads][elements] */
typedef struct {
    const latent_case_t  *c;
    uint32_t              q_cols;
    uint32_t              k_cols;
    uint32_t              v_cols;
    uint32_t              out_cols;
    float                *q;
    float                *k;
    float                *v;
    float                *freq;
} latent_t;


/* rows [pos, pos + n) of the case, on pages that lie apart */

static inline void
latent_step(llm_dev_t *dev, const latent_t *t, const llm_vec_t *freq,
    llm_kv_t *kv, llm_act_t **a, uint32_t pos, uint32_t n)
{
    uint32_t         i;
    llm_batch_t      b;
    llm_rope_t       rope;
    llm_heads_t      h;
    static uint32_t  pages[OPS_MAX_PAGES];

    for (i = 0; i < OPS_MAX_PAGES; i++) {
        pages[i] = (i * 37 + 5) % OPS_MAX_PAGES;
    }

    ops_seq_batch(&b, pos, n, pages);
    memset(&h, 0, sizeof(h));

    rope.kind = t->c->kind;
    rope.n_dims = (t->c->dim_k - t->c->dim_v) / 2 * 2;
    rope.inv_freq = freq;
    rope.mscale = 1;

    h.n_heads = t->c->n_heads;
    h.n_kv_heads = t->c->n_kv_heads;
    h.head_dim_k = t->c->dim_k;
    h.head_dim_v = t->c->dim_v;
    h.scale = 0.1f;
    h.latent = 1;
    h.window = t->c->window;
    h.temp_scale = t->c->temper;
    h.temp_floor = 16;
    h.temp_offset = 1;

    dev->ops->write(dev, a[0], 0, n, t->q + (size_t) pos * t->q_cols);
    dev->ops->write(dev, a[1], 0, n, t->k + (size_t) pos * t->k_cols);
    dev->ops->write(dev, a[2], 0, n, t->v + (size_t) pos * t->v_cols);
    dev->ops->begin(dev, &b, NULL);
    dev->ops->rope_kv(dev, &h, &rope, a[0], a[1], a[2], kv);
    dev->ops->attention(dev, &h, a[0], kv, a[3]);
    dev->ops->end(dev, NULL);
}


/* `step` positions at a time; closes dev */

static inline void
run_latent(llm_dev_t *dev, const latent_t *t, uint32_t step, float *out)
{
    uint32_t        i, n;
    llm_kv_t       *kv;
    llm_vec_t      *freq;
    llm_act_t      *a[4];
    llm_kv_layer_t  layer = { t->c->n_kv_heads, t->c->dim_k, t->c->dim_v,
                              1 };
    llm_kv_opts_t   o = { .n_layers = 1, .n_pages = OPS_MAX_PAGES,
                          .n_kv_heads = t->c->n_kv_heads,
                          .head_dim_k = t->c->dim_k,
                          .head_dim_v = t->c->dim_v,
                          .n_heads = t->c->n_heads, .layers = &layer };

    kv = dev->ops->kv_create(dev, &o, NULL);
    freq = dev->ops->vec_create(dev, t->freq, (t->c->dim_k - t->c->dim_v) / 2,
                                NULL);
    a[0] = ops_act(dev, NULL, OPS_MAX_ROWS, t->q_cols);
    a[1] = ops_act(dev, NULL, OPS_MAX_ROWS, t->k_cols);
    a[2] = ops_act(dev, NULL, OPS_MAX_ROWS, t->v_cols);
    a[3] = ops_act(dev, NULL, OPS_MAX_ROWS, t->out_cols);

    for (i = 0; i < t->c->n; i += n) {
        n = llm_min(step, t->c->n - i);
        latent_step(dev, t, freq, kv, a, i, n);
        ops_read(dev, a[3], out + (size_t) i * t->out_cols, n, t->out_cols);
    }

    for (i = 0; i < 4; i++) {
        dev->ops->act_free(dev, a[i]);
    }

    dev->ops->vec_free(dev, freq);
    dev->ops->kv_free(dev, kv);
    dev->ops->close(dev);
}


static inline void
latent_init(latent_t *t, const latent_case_t *c)
{
    uint32_t  i, rot;

    rot = c->dim_k - c->dim_v;
    t->c = c;
    t->q_cols = c->n_heads * c->dim_k;
    t->k_cols = c->n_kv_heads * rot;
    t->v_cols = c->n_kv_heads * c->dim_v;
    t->out_cols = c->n_heads * c->dim_v;
    t->q = ops_alloc((size_t) c->n * t->q_cols * sizeof(float));
    t->k = ops_alloc((size_t) c->n * t->k_cols * sizeof(float));
    t->v = ops_alloc((size_t) c->n * t->v_cols * sizeof(float));
    t->freq = ops_alloc(rot / 2 * sizeof(float));

    ops_fill(t->q, (size_t) c->n * t->q_cols, 11);
    ops_fill(t->k, (size_t) c->n * t->k_cols, 12);
    ops_fill(t->v, (size_t) c->n * t->v_cols, 13);

    for (i = 0; i < rot / 2; i++) {
        t->freq[i] = (float) pow(100, -(double) i / (rot / 2));
    }
}


static inline void
latent_free(latent_t *t)
{
    free(t->q);
    free(t->k);
    free(t->v);
    free(t->freq);
}

#endif /* LLM_TEST_LATENT_H */
