/*
 * A block: grouped-query attention over paged keys and values, with a norm
 * before it, after it, or both, and optionally a gate on its result.
 *
 * rope_kv() and attention() work on all rows of a step, so this block comes
 * before blocks that work on some of the rows.
 */

#include "engine/model/blocks.h"


/* normalises Q or K as a whole row, or each head with its own weights, and
   sets *w to NULL; if all heads share one vector of weights, rope_kv() does
   it */

static void
llm_attend_norm(const llm_pass_t *p, llm_layer_tensor_t t,
    llm_layer_tensor_t bias, llm_act_t *x, const llm_vec_t **w)
{
    llm_model_t              *m = p->m;
    const llm_tensor_fact_t  *f = &m->desc.facts[t];

    llm_norm_t  norm = {
        .kind = m->desc.arch->norm,
        .eps = m->desc.hp.norm_eps,
        .w = *w,
        .bias = p->l->v[bias],
        .group = f->in == LLM_DIM_HEAD_K ? p->d->head_dim_k : 0
    };

    if (*w == NULL || (f->in == LLM_DIM_HEAD_K && f->out == LLM_DIM_NONE)) {
        return;
    }

    m->ops->norm(m->exec, p->rows, x, &norm, x);
    *w = NULL;
}


/* norms that rope_kv() does not compute */

static void
llm_attend_norms(const llm_pass_t *p, llm_heads_t *h)
{
    llm_model_t             *m = p->m;
    llm_act_t               *const *a = m->act;
    const llm_layer_desc_t  *d = p->d;

    llm_norm_t  norm = { .kind = m->desc.arch->norm, .eps = h->norm_eps };

    llm_attend_norm(p, LLM_LT_Q_NORM, LLM_LT_Q_NORM_BIAS, a[LLM_MA_Q],
                    &h->q_norm);
    llm_attend_norm(p, LLM_LT_K_NORM, LLM_LT_K_NORM_BIAS, a[LLM_MA_K],
                    &h->k_norm);

    if (d->norm_qk) {
        norm.group = d->head_dim_k;
        m->ops->norm(m->exec, p->rows, a[LLM_MA_Q], &norm, a[LLM_MA_Q]);
        m->ops->norm(m->exec, p->rows, a[LLM_MA_K], &norm, a[LLM_MA_K]);
    }

    if (d->norm_v && d->kv_layer == p->layer && !d->outside) {
        norm.group = d->head_dim_v;
        m->ops->norm(m->exec, p->rows, a[LLM_MA_V], &norm, a[LLM_MA_V]);
    }
}


/* splits Q_GATE, in which each head of Q is followed by its gate */

static void
llm_attend_ungate(const llm_pass_t *p)
{
    llm_model_t             *m = p->m;
    llm_act_t               *const *a = m->act;
    const llm_layer_desc_t  *d = p->d;

    m->ops->pieces(m->exec, p->rows, a[LLM_MA_Q_GATE], 0, d->head_dim_k,
                   2 * d->head_dim_k, a[LLM_MA_Q]);
    m->ops->pieces(m->exec, p->rows, a[LLM_MA_Q_GATE], d->head_dim_k,
                   d->head_dim_k, 2 * d->head_dim_k, a[LLM_MA_ATTN_GATE]);
}


/* the products: Q; K and V if the layer has its own; gates */

static void
llm_attend_products(const llm_pass_t *p, int own)
{
    uint32_t                  n;
    llm_model_t              *m = p->m;
    llm_act_t                *const *a = m->act;
    llm_linear_t              out[4];
    const llm_model_layer_t  *l = p->l;

    n = 0;
    out[n++] = (llm_linear_t) { l->w[LLM_LT_Q], l->v[LLM_LT_Q_BIAS],
                                p->d->gated ? a[LLM_MA_Q_GATE] : a[LLM_MA_Q],
                                0 };

    if (own) {
        out[n++] = (llm_linear_t) { l->w[LLM_LT_K], l->v[LLM_LT_K_BIAS],
                                    a[LLM_MA_K], 0 };

        /* without a matrix for V, V is the product of K's, without K's norm */

        out[n++] = (llm_linear_t) { l->w[l->w[LLM_LT_V] ? LLM_LT_V
                                                        : LLM_LT_K],
                                    l->v[LLM_LT_V_BIAS], a[LLM_MA_V], 0 };
    }

    if (l->w[LLM_LT_ATTN_GATE]) {
        out[n++] = (llm_linear_t) { l->w[LLM_LT_ATTN_GATE], NULL,
                                    a[LLM_MA_ATTN_GATE], 0 };
    }

    m->ops->linear(m->exec, p->rows, a[p->d->pair ? LLM_MA_PAIR : LLM_MA_H],
                   out, n);

    if (p->d->gated) {
        llm_attend_ungate(p);
    }
}


/* clamps Q, and K and V if the layer has its own */

static void
llm_attend_bound(const llm_pass_t *p, int own)
{
    llm_model_t   *m = p->m;
    llm_act_t     *const *a = m->act;
    llm_act_fn_t   fn = { .kind = LLM_GLU_BOUND, .bound = p->d->bound,
                          .least = -p->d->bound };

    if (p->d->bound == 0) {
        return;
    }

    m->ops->act(m->exec, p->rows, &fn, a[LLM_MA_Q], a[LLM_MA_Q]);

    if (own) {
        m->ops->act(m->exec, p->rows, &fn, a[LLM_MA_K], a[LLM_MA_K]);
        m->ops->act(m->exec, p->rows, &fn, a[LLM_MA_V], a[LLM_MA_V]);
    }
}


static void
llm_block_attend(const llm_pass_t *p)
{
    int                       own, gates;
    llm_kv_t                 *kv;
    llm_act_t                *out;
    llm_rope_t                rope;
    llm_model_t              *m = p->m;
    llm_act_t                *const *a = m->act;
    const llm_layer_desc_t   *d = p->d;
    const llm_model_layer_t  *l = p->l;

    llm_heads_t  heads = {
        .layer = m->desc.hp.encoder ? 0 : d->kv_layer,
        .n_heads = d->n_heads,
        .n_kv_heads = d->n_kv_heads,
        .head_dim_k = d->head_dim_k,
        .head_dim_v = d->head_dim_v,
        .scale = d->scale,
        .q_norm = l->v[LLM_LT_Q_NORM],
        .k_norm = l->v[LLM_LT_K_NORM],
        .norm_eps = m->desc.hp.norm_eps,
        .norm_last = d->norm_last,
        .both = m->desc.hp.encoder,
        .spans = d->spans,
        .window = llm_pass_window(p),
        .chunks = d->chunks,
        .softcap = d->softcap,
        .sinks = l->v[LLM_LT_SINKS],
        .slopes = m->at->slopes,
        .temp_scale = d->temp_scale,
        .temp_floor = d->temp_floor,
        .temp_offset = d->temp_offset
    };

    own = (d->kv_layer == p->layer && !d->outside);
    gates = (d->gated || l->w[LLM_LT_ATTN_GATE]);
    kv = llm_pass_kv(p);
    out = gates ? a[LLM_MA_ATTN_OUT] : a[LLM_MA_ATTN];
    rope = llm_pass_rope(p);

    if (!d->pair) {
        llm_pass_norm(p, p->x, LLM_LT_ATTN_NORM, LLM_LT_ATTN_NORM_BIAS,
                      a[LLM_MA_H]);
    }

    llm_attend_products(p, own);
    llm_attend_bound(p, own);
    llm_attend_norms(p, &heads);
    m->ops->rope_kv(m->exec, &heads, &rope, a[LLM_MA_Q],
                    own ? a[LLM_MA_K] : NULL, a[LLM_MA_V], kv);

    if (p->ends) {
        return;
    }

    m->ops->attention(m->exec, &heads, a[LLM_MA_Q], kv, out);

    if (gates) {
        m->ops->glu(m->exec, p->rows, LLM_GLU_SIGMOID, a[LLM_MA_ATTN_GATE],
                    out, a[LLM_MA_ATTN]);
    }

    /* the input of a parallel feed-forward network, before x changes */

    if (d->parallel && l->v[LLM_LT_FFN_NORM]) {
        llm_pass_norm(p, p->x, LLM_LT_FFN_NORM, LLM_LT_FFN_NORM_BIAS,
                      a[LLM_MA_H]);
    }

    llm_pass_add(p, a[LLM_MA_ATTN], LLM_LT_ATTN_OUT, LLM_LT_ATTN_OUT_BIAS,
                 LLM_LT_ATTN_POST);
}


static const llm_tensor_want_t  llm_attend_tensors[] = {
    { LLM_LT_ATTN_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_Q, LLM_WANT_REQUIRED },
    { LLM_LT_K, LLM_WANT_REQUIRED },
    { LLM_LT_V, LLM_WANT_REQUIRED },
    { LLM_LT_ATTN_OUT, LLM_WANT_REQUIRED },
    { LLM_LT_Q_BIAS, LLM_WANT_OPTIONAL },
    { LLM_LT_K_BIAS, LLM_WANT_OPTIONAL },
    { LLM_LT_V_BIAS, LLM_WANT_OPTIONAL },
    { LLM_LT_ATTN_OUT_BIAS, LLM_WANT_OPTIONAL },
    { LLM_LT_N, LLM_WANT_NONE }
};


static const llm_buffer_want_t  llm_attend_buffers[] = {
    { LLM_MA_Q, LLM_DIM_Q },
    { LLM_MA_K, LLM_DIM_K },
    { LLM_MA_V, LLM_DIM_V },
    { LLM_MA_ATTN, LLM_DIM_HEADS },
    { LLM_MA_Q_GATE, LLM_DIM_Q_GATE },
    { LLM_MA_ATTN_GATE, LLM_DIM_GATES },
    { LLM_MA_ATTN_OUT, LLM_DIM_GATES },
    { LLM_MA_N, LLM_DIM_NONE }
};


const llm_block_t  llm_block_attention = {
    .forward = llm_block_attend,
    .mixes = 1,
    .tensors = llm_attend_tensors,
    .buffers = llm_attend_buffers
};
