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


/* `step` rows at a time; closes exec, whose captured steps are this one's */

static inline void
run_heads(llm_exec_t *exec, const heads_case_t *c, llm_act_kind_t kind,
    const void *m, const float *scales, const float *x, uint32_t step,
    float *y)
{
    uint32_t          i, n, x_cols, y_cols;
    llm_act_t        *ax, *ay;
    llm_batch_t       b;
    llm_weight_t     *w;
    const llm_ops_t  *o = exec->ops;

    x_cols = c->n_heads * (c->n_in + c->rest);
    y_cols = c->n_heads * (c->n_out + c->rest);
    ax = o->act_create(exec, c->rows, x_cols, kind, NULL);
    ay = o->act_create(exec, c->rows, y_cols, kind, NULL);
    w = o->heads_create(exec, c->type, c->n_heads, c->n_out, c->n_in, m,
                        llm_type_row_size(c->type, c->n_in) * c->n_out, NULL);

    if (scales) {
        ok(o->weight_scale(exec, w, scales, NULL) == LLM_OK, "factors");
    }

    for (i = 0; i < c->rows; i += n) {
        n = llm_min(step, c->rows - i);
        o->write(exec, ax, 0, n, x + (size_t) i * x_cols);
        ops_rows_batch(&b, n);

        if (o->begin(exec, &b, NULL) != LLM_REPLAYED) {
            o->linear_heads(exec, LLM_ROWS_ALL, w, ax, ay);
        }

        o->end(exec, NULL);
        ops_read(exec, ay, y + (size_t) i * y_cols, n, y_cols);
    }

    o->weight_free(exec, w);
    o->act_free(exec, ax);
    o->act_free(exec, ay);
    o->close(exec);
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
latent_step(llm_exec_t *exec, const latent_t *t, const llm_vec_t *freq,
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

    memset(&rope, 0, sizeof(rope));
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

    exec->ops->write(exec, a[0], 0, n, t->q + (size_t) pos * t->q_cols);
    exec->ops->write(exec, a[1], 0, n, t->k + (size_t) pos * t->k_cols);
    exec->ops->write(exec, a[2], 0, n, t->v + (size_t) pos * t->v_cols);
    exec->ops->begin(exec, &b, NULL);
    exec->ops->rope_kv(exec, &h, &rope, a[0], a[1], a[2], kv);
    exec->ops->attention(exec, &h, a[0], kv, a[3]);
    exec->ops->end(exec, NULL);
}


/* `step` positions at a time; closes exec */

static inline void
run_latent(llm_exec_t *exec, const latent_t *t, uint32_t step, float *out)
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

    kv = exec->ops->kv_create(exec, &o, NULL);
    freq = exec->ops->vec_create(exec, t->freq, (t->c->dim_k - t->c->dim_v) / 2,
                                 NULL);
    a[0] = ops_act(exec, NULL, OPS_MAX_ROWS, t->q_cols);
    a[1] = ops_act(exec, NULL, OPS_MAX_ROWS, t->k_cols);
    a[2] = ops_act(exec, NULL, OPS_MAX_ROWS, t->v_cols);
    a[3] = ops_act(exec, NULL, OPS_MAX_ROWS, t->out_cols);

    for (i = 0; i < t->c->n; i += n) {
        n = llm_min(step, t->c->n - i);
        latent_step(exec, t, freq, kv, a, i, n);
        ops_read(exec, a[3], out + (size_t) i * t->out_cols, n, t->out_cols);
    }

    for (i = 0; i < 4; i++) {
        exec->ops->act_free(exec, a[i]);
    }

    exec->ops->vec_free(exec, freq);
    exec->ops->kv_free(exec, kv);
    exec->ops->close(exec);
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
