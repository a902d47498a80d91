/*
 * A block: a gated delta net (arXiv:2412.06464), instead of attention.
 *
 * It works on all rows of a step, in their order, so it comes before blocks
 * that work on some of the rows.
 */

#include "engine/model/blocks.h"


/* Q, K and V; the result's gate; alpha and beta, which may be one tensor: for
   each head of K the betas, then the alphas of its heads of V */

static void
llm_delta_products(const llm_pass_t *p)
{
    llm_act_t                *both;
    llm_model_t              *m = p->m;
    llm_act_t                *const *a = m->act;
    const llm_layer_desc_t   *d = p->d;
    const llm_model_layer_t  *l = p->l;
    uint32_t                  n = d->state.n_heads / d->n_ssm_groups;

    llm_linear_t  out[] = {
        { l->w[LLM_LT_DELTA_QKV], NULL, a[LLM_MA_CONV_IN], 0 },
        { l->w[LLM_LT_DELTA_GATE], NULL, a[LLM_MA_SSM_GATE], 0 },
        { l->w[LLM_LT_DELTA_ALPHA], NULL, a[LLM_MA_SSM_DT], 0 },
        { l->w[LLM_LT_DELTA_BETA], NULL, a[LLM_MA_SSM_BETA], 0 }
    };

    if (l->w[LLM_LT_DELTA_BOTH] == NULL) {
        m->ops->linear(m->exec, p->rows, a[LLM_MA_H], out, 4);
        return;
    }

    both = a[LLM_MA_SSM_BOTH];
    out[2] = (llm_linear_t) { l->w[LLM_LT_DELTA_BOTH], NULL, both, 0 };
    m->ops->linear(m->exec, p->rows, a[LLM_MA_H], out, 3);
    m->ops->pieces(m->exec, p->rows, both, 0, n, 2 * n, a[LLM_MA_SSM_BETA]);
    m->ops->pieces(m->exec, p->rows, both, n, n, 2 * n, a[LLM_MA_SSM_DT]);
}


static void
llm_block_delta_net(const llm_pass_t *p)
{
    llm_model_t              *m = p->m;
    llm_act_t                *const *a = m->act;
    const llm_layer_desc_t   *d = p->d;
    const llm_model_layer_t  *l = p->l;

    llm_conv_t  conv = {
        .layer = p->layer,
        .w = l->v[LLM_LT_SSM_CONV],
        .silu = 1
    };

    llm_delta_t  delta = {
        .layer = p->layer,
        .n_k_heads = d->n_ssm_groups,
        .n_v_heads = d->state.n_heads,
        .dim_k = d->state.n_rows,
        .dim_v = d->state.n_cols,
        .tiled = d->tiled,
        .a = l->v[LLM_LT_SSM_A],
        .dt = l->v[LLM_LT_SSM_DT]
    };

    llm_norm_t  norm = {
        .kind = m->desc.arch->norm,
        .eps = m->desc.hp.norm_eps,
        .w = l->v[LLM_LT_SSM_NORM],
        .group = d->state.n_cols
    };

    llm_pass_norm(p, p->x, LLM_LT_ATTN_NORM, LLM_LT_N, a[LLM_MA_H]);
    llm_delta_products(p);

    m->ops->conv(m->exec, &conv, a[LLM_MA_CONV_IN], m->at->state,
                 a[LLM_MA_CONV]);
    m->ops->delta(m->exec, &delta, a[LLM_MA_CONV], a[LLM_MA_SSM_DT],
                  a[LLM_MA_SSM_BETA], m->at->state, a[LLM_MA_SSM]);

    if (p->ends) {
        return;
    }

    m->ops->norm(m->exec, p->rows, a[LLM_MA_SSM], &norm, a[LLM_MA_SSM]);
    m->ops->glu(m->exec, p->rows, LLM_GLU_SILU, a[LLM_MA_SSM_GATE],
                a[LLM_MA_SSM], a[LLM_MA_SSM_GLU]);
    llm_pass_add(p, a[LLM_MA_SSM_GLU], LLM_LT_SSM_OUT, LLM_LT_N, LLM_LT_N);
}


static const llm_tensor_want_t  llm_delta_tensors[] = {
    { LLM_LT_ATTN_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_DELTA_QKV, LLM_WANT_REQUIRED },
    { LLM_LT_DELTA_GATE, LLM_WANT_REQUIRED },
    { LLM_LT_DELTA_ALPHA, LLM_WANT_REQUIRED },
    { LLM_LT_DELTA_BETA, LLM_WANT_REQUIRED },
    { LLM_LT_SSM_CONV, LLM_WANT_REQUIRED },
    { LLM_LT_SSM_A, LLM_WANT_REQUIRED },
    { LLM_LT_SSM_DT, LLM_WANT_REQUIRED },
    { LLM_LT_SSM_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_SSM_OUT, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};


static const llm_buffer_want_t  llm_delta_buffers[] = {
    { LLM_MA_CONV_IN, LLM_DIM_CONV },
    { LLM_MA_CONV, LLM_DIM_CONV },
    { LLM_MA_SSM, LLM_DIM_SSM },
    { LLM_MA_SSM_GATE, LLM_DIM_SSM },
    { LLM_MA_SSM_GLU, LLM_DIM_SSM },
    { LLM_MA_SSM_DT, LLM_DIM_SSM_HEADS },
    { LLM_MA_SSM_BETA, LLM_DIM_SSM_HEADS },
    { LLM_MA_SSM_BOTH, LLM_DIM_SSM_HEADS_2 },
    { LLM_MA_N, LLM_DIM_NONE }
};


const llm_block_t  llm_block_delta = {
    .forward = llm_block_delta_net,
    .mixes = 1,
    .needs = LLM_CAN_STATE | LLM_CAN_NORMS,
    .tensors = llm_delta_tensors,
    .buffers = llm_delta_buffers
};
