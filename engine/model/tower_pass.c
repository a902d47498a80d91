/*
 * The operations of a tower's step, over the table of the device; see
 * tower_internal.h.  A step's rows are in the buffers from the first row on.
 *
 * Keys and values of a layer are in the cache's layer with the same parity:
 * while some rows still read one layer's, others write the next one's.
 */

#include "engine/model/tower_internal.h"

#include <math.h>


llm_act_t *
llm_tower_buffer(const llm_tower_t *t, llm_tower_act_t a, uint32_t cols)
{
    t->ops->act_cols(t->act_of[a], cols);

    return t->act_of[a];
}


void
llm_tower_apply(const llm_tower_t *t, const llm_tower_linear_t *l,
    llm_act_t *x, llm_act_t *y, int add)
{
    llm_act_t     *clamped;
    llm_linear_t   out = { l->w, l->bias, y, add };

    if (!l->clamped) {
        t->ops->linear(t->exec, LLM_ROWS_ALL, x, &out, 1);
        return;
    }

    clamped = llm_tower_buffer(t, LLM_TA_CLAMPED, l->n_in);
    t->ops->act(t->exec, LLM_ROWS_ALL, &l->before, x, clamped);
    t->ops->linear(t->exec, LLM_ROWS_ALL, clamped, &out, 1);
    t->ops->act(t->exec, LLM_ROWS_ALL, &l->after, y, y);
}


void
llm_tower_normalize(const llm_tower_t *t, const llm_tower_norm_t *n,
    float eps, const llm_act_t *x, llm_act_t *y, int add)
{
    llm_norm_t  norm = {
        .kind = t->kind->norm,
        .eps = eps,
        .w = n->w,
        .bias = n->bias,
        .add = add
    };

    t->ops->norm(t->exec, LLM_ROWS_ALL, x, &norm, y);
}


void
llm_tower_activate(const llm_tower_t *t, llm_glu_t kind, const llm_act_t *x,
    llm_act_t *y)
{
    llm_act_fn_t  fn = { .kind = kind };

    t->ops->act(t->exec, LLM_ROWS_ALL, &fn, x, y);
}


void
llm_tower_convolve(const llm_tower_t *t, const llm_tower_linear_t *w,
    const llm_tower_norm_t *norm, llm_act_t *x, uint32_t cols)
{
    llm_act_t   *out = llm_tower_buffer(t, LLM_TA_OUT, cols);
    llm_norm_t   layer = { .kind = LLM_NORM_LAYER, .eps = t->eps };

    const llm_act_fn_t  relu = { .kind = LLM_GLU_BOUND, .bound = INFINITY };

    llm_tower_apply(t, w, x, out, 0);

    if (norm == NULL || norm->w == NULL) {
        llm_tower_activate(t, LLM_GLU_GELU_ERF, out, out);
        return;
    }

    layer.w = norm->w;
    layer.bias = norm->bias;
    t->ops->norm(t->exec, LLM_ROWS_ALL, out, &layer, out);
    t->ops->act(t->exec, LLM_ROWS_ALL, &relu, out, out);
}


void
llm_tower_embed(const llm_tower_t *t)
{
    llm_act_t  *x = t->act_of[LLM_TA_X];

    t->ops->input(t->exec, LLM_ROWS_ALL, 0, 0, t->act_of[LLM_TA_PATCH]);

    if (t->n_convs && !t->kind->sliced) {
        llm_tower_convolve(t, &t->embed, NULL, t->act_of[LLM_TA_PATCH],
                           t->width);
        llm_tower_copy(t, t->act_of[LLM_TA_OUT], x);

    } else {
        llm_tower_apply(t, &t->embed, t->act_of[LLM_TA_PATCH], x, 0);
    }

    if (t->pre.w) {
        llm_tower_normalize(t, &t->pre, t->eps, x, x, 0);
    }

    if (t->table) {
        t->ops->input(t->exec, LLM_ROWS_ALL, t->n_values, 1, x);
    }

    if (t->placed.w) {
        llm_tower_normalize(t, &t->placed, t->eps, x, x, 0);
    }
}


static llm_heads_t
llm_tower_heads_of(const llm_tower_t *t, uint32_t layer)
{
    llm_heads_t               h;
    const llm_tower_layer_t  *l = &t->layers[layer];

    memset(&h, 0, sizeof(h));
    h.layer = layer % 2;
    h.n_heads = t->n_heads;
    h.n_kv_heads = t->n_heads;
    h.head_dim_k = t->head_dim;
    h.head_dim_v = t->head_dim;
    h.scale = t->scale;
    h.q_norm = l->q_norm;
    h.k_norm = l->k_norm;
    h.norm_eps = t->eps;
    h.both = !l->windowed;
    h.spans = l->windowed;

    return h;
}


void
llm_tower_keys(const llm_tower_t *t, uint32_t layer)
{
    llm_heads_t               h = llm_tower_heads_of(t, layer);
    llm_act_t                *const *a = t->act_of;
    const llm_tower_layer_t  *l = &t->layers[layer];

    llm_norm_t  norm = {
        .kind = LLM_NORM_RMS, .eps = t->eps, .group = t->head_dim
    };

    if (t->kind->keys) {
        t->kind->keys(t, layer);
        return;
    }

    llm_tower_normalize(t, &l->ln1, t->eps, a[LLM_TA_X], a[LLM_TA_H], 0);
    llm_tower_apply(t, &l->k, a[LLM_TA_H], a[LLM_TA_K], 0);
    llm_tower_apply(t, &l->v, a[LLM_TA_H], a[LLM_TA_V], 0);

    if (t->norm_v) {
        t->ops->norm(t->exec, LLM_ROWS_ALL, a[LLM_TA_V], &norm, a[LLM_TA_V]);
    }

    h.n_heads = 0;
    t->ops->rope_kv(t->exec, &h, &t->rope, a[LLM_TA_Q], a[LLM_TA_K],
                    a[LLM_TA_V], t->kv);
}


void
llm_tower_add(const llm_tower_t *t, const llm_tower_linear_t *w,
    const llm_tower_norm_t *norm, llm_act_t *h)
{
    llm_act_t  *out, *x = t->act_of[LLM_TA_X];

    if (norm->w == NULL && !w->clamped) {
        llm_tower_apply(t, w, h, x, 1);
        return;
    }

    out = llm_tower_buffer(t, LLM_TA_OUT, t->width);
    llm_tower_apply(t, w, h, out, 0);

    if (norm->w) {
        llm_tower_normalize(t, norm, t->eps, out, x, 1);

    } else {
        t->ops->scale(t->exec, LLM_ROWS_ALL, 1, out, 1, x);
    }
}


void
llm_tower_layer(const llm_tower_t *t, uint32_t layer)
{
    llm_act_t                *gate, *up, *glu;
    llm_heads_t               h = llm_tower_heads_of(t, layer);
    llm_act_t                *const *a = t->act_of;
    const llm_tower_layer_t  *l = &t->layers[layer];

    if (t->kind->layer) {
        t->kind->layer(t, layer);
        return;
    }

    llm_tower_normalize(t, &l->ln1, t->eps, a[LLM_TA_X], a[LLM_TA_H], 0);
    llm_tower_apply(t, &l->q, a[LLM_TA_H], a[LLM_TA_Q], 0);
    t->ops->rope_kv(t->exec, &h, &t->rope, a[LLM_TA_Q], NULL, NULL, t->kv);
    t->ops->attention(t->exec, &h, a[LLM_TA_Q], t->kv, a[LLM_TA_ATTN]);
    llm_tower_add(t, &l->out, &l->attn_post, a[LLM_TA_ATTN]);

    gate = llm_tower_buffer(t, LLM_TA_GATE, l->n_ff);
    up = llm_tower_buffer(t, LLM_TA_UP, l->n_ff);
    glu = llm_tower_buffer(t, LLM_TA_GLU, l->n_ff);

    llm_tower_normalize(t, &l->ln2, t->eps, a[LLM_TA_X], a[LLM_TA_H], 0);
    llm_tower_apply(t, &l->up, a[LLM_TA_H], up, 0);

    if (l->gate.w) {
        llm_tower_apply(t, &l->gate, a[LLM_TA_H], gate, 0);
        t->ops->glu(t->exec, LLM_ROWS_ALL, t->act, gate, up, glu);

    } else {
        llm_tower_activate(t, t->act, up, glu);
    }

    llm_tower_add(t, &l->down, &l->ffn_post, glu);
}


void
llm_tower_copy(const llm_tower_t *t, const llm_act_t *x, llm_act_t *y)
{
    t->ops->scale(t->exec, LLM_ROWS_ALL, 1, x, 0, y);
}


void
llm_tower_cell_rms(const llm_tower_t *t, const llm_vec_t *w)
{
    llm_norm_t  norm = { .kind = LLM_NORM_RMS, .eps = t->merge_eps, .w = w };

    t->ops->norm(t->exec, LLM_ROWS_ALL, t->act_of[LLM_TA_CELL], &norm,
                 t->act_of[LLM_TA_CELL_H]);
}


void
llm_tower_two(const llm_tower_t *t, const llm_tower_merger_t *m,
    uint32_t part)
{
    llm_act_t  *const *a = t->act_of;

    llm_tower_apply(t, &m->linear[0], a[LLM_TA_CELL_H], a[LLM_TA_MID], 0);
    llm_tower_activate(t, LLM_GLU_GELU_ERF, a[LLM_TA_MID], a[LLM_TA_MID_H]);
    llm_tower_apply(t, &m->linear[1], a[LLM_TA_MID_H],
                    a[LLM_TA_PART + part], 0);
}
