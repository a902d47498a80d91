/*
 * Two blocks: Mamba-2 (arXiv:2405.21060) instead of attention, and in addition
 * to attention, with the same input.
 *
 * They work on all rows of a step, in their order, so they come before blocks
 * that work on some of the rows.
 */

#include "engine/model/blocks.h"


/* Mamba-2 of the rows in H */

static void
llm_mamba2_forward(const llm_pass_t *p)
{
    llm_model_t              *m = p->m;
    llm_act_t                *const *a = m->act;
    const llm_layer_desc_t   *d = p->d;
    const llm_model_layer_t  *l = p->l;
    uint32_t                  inner = d->state.n_heads * d->state.n_cols;

    llm_linear_t  in[] = {
        { l->w[LLM_LT_SSM_IN_GATE], NULL, a[LLM_MA_SSM_GATE], 0 },
        { l->w[LLM_LT_SSM_IN_CONV], NULL, a[LLM_MA_CONV_IN], 0 },
        { l->w[LLM_LT_SSM_IN_DT], NULL, a[LLM_MA_SSM_DT], 0 }
    };

    llm_conv_t  conv = {
        .layer = p->layer,
        .w = l->v[LLM_LT_SSM_CONV],
        .bias = l->v[LLM_LT_SSM_CONV_BIAS],
        .silu = 1
    };

    llm_scan_t  scan = {
        .layer = p->layer,
        .n_heads = d->state.n_heads,
        .dim = d->state.n_cols,
        .n_groups = d->n_ssm_groups,
        .n_state = d->state.n_rows,
        .dt_min = d->dt_min,
        .a = l->v[LLM_LT_SSM_A],
        .dt_bias = l->v[LLM_LT_SSM_DT],
        .d = l->v[LLM_LT_SSM_D]
    };

    llm_norm_t  norm = {
        .kind = m->desc.arch->norm,
        .eps = m->desc.hp.norm_eps,
        .w = l->v[LLM_LT_SSM_NORM],
        .group = inner / d->n_ssm_groups
    };

    m->ops->linear(m->exec, p->rows, a[LLM_MA_H], in, 3);
    m->ops->conv(m->exec, &conv, a[LLM_MA_CONV_IN], m->at->state,
                 a[LLM_MA_CONV]);
    m->ops->scan(m->exec, &scan, a[LLM_MA_CONV], a[LLM_MA_SSM_DT],
                 m->at->state, a[LLM_MA_SSM]);

    if (p->ends) {
        return;
    }

    m->ops->glu(m->exec, p->rows, LLM_GLU_SILU, a[LLM_MA_SSM_GATE],
                a[LLM_MA_SSM], a[LLM_MA_SSM_GLU]);

    if (norm.w) {
        m->ops->norm(m->exec, p->rows, a[LLM_MA_SSM_GLU], &norm,
                     a[LLM_MA_SSM_GLU]);
    }

    llm_pass_add(p, a[LLM_MA_SSM_GLU], LLM_LT_SSM_OUT, LLM_LT_N, LLM_LT_N);
}


static void
llm_block_mamba2_alone(const llm_pass_t *p)
{
    llm_pass_norm(p, p->x, LLM_LT_ATTN_NORM, LLM_LT_N, p->m->act[LLM_MA_H]);
    llm_mamba2_forward(p);
}


static const llm_tensor_want_t  llm_mamba2_tensors[] = {
    { LLM_LT_ATTN_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_SSM_IN_GATE, LLM_WANT_REQUIRED },
    { LLM_LT_SSM_IN_CONV, LLM_WANT_REQUIRED },
    { LLM_LT_SSM_IN_DT, LLM_WANT_REQUIRED },
    { LLM_LT_SSM_CONV, LLM_WANT_REQUIRED },
    { LLM_LT_SSM_CONV_BIAS, LLM_WANT_OPTIONAL },
    { LLM_LT_SSM_A, LLM_WANT_REQUIRED },
    { LLM_LT_SSM_D, LLM_WANT_REQUIRED },
    { LLM_LT_SSM_DT, LLM_WANT_REQUIRED },
    { LLM_LT_SSM_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_SSM_OUT, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};


static const llm_buffer_want_t  llm_mamba2_buffers[] = {
    { LLM_MA_CONV_IN, LLM_DIM_CONV },
    { LLM_MA_CONV, LLM_DIM_CONV },
    { LLM_MA_SSM, LLM_DIM_SSM },
    { LLM_MA_SSM_GATE, LLM_DIM_SSM },
    { LLM_MA_SSM_GLU, LLM_DIM_SSM },
    { LLM_MA_SSM_DT, LLM_DIM_SSM_HEADS },
    { LLM_MA_N, LLM_DIM_NONE }
};


const llm_block_t  llm_block_mamba2 = {
    .forward = llm_block_mamba2_alone,
    .mixes = 1,
    .needs = LLM_CAN_STATE | LLM_CAN_NORMS,
    .tensors = llm_mamba2_tensors,
    .buffers = llm_mamba2_buffers
};

/* comes after attention, which has left its input in H */
const llm_block_t  llm_block_mamba2_beside = {
    .forward = llm_mamba2_forward,
    .mixes = 1,
    .needs = LLM_CAN_STATE | LLM_CAN_NORMS,
    .tensors = llm_mamba2_tensors,
    .buffers = llm_mamba2_buffers
};
