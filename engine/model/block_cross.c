/*
 * A block: attention over the states that an encoder left of a window, with a
 * norm before it.  Their keys and values are in a cache of their own, which
 * ear.c has filled; no step of the decoder adds to them.
 */

#include "engine/model/blocks.h"
#include "engine/model/ear.h"


static void
llm_block_look(const llm_pass_t *p)
{
    llm_model_t              *m = p->m;
    llm_act_t                *const *a = m->act;
    const llm_layer_desc_t   *d = p->d;
    const llm_model_layer_t  *l = p->l;

    llm_heads_t  heads = {
        .layer = p->layer,
        .n_heads = d->n_heads,
        .n_kv_heads = d->n_kv_heads,
        .head_dim_k = d->head_dim_k,
        .head_dim_v = d->head_dim_v,
        .scale = d->scale,
        .both = 1
    };

    llm_linear_t  q = { l->w[LLM_LT_CROSS_Q], l->v[LLM_LT_CROSS_Q_BIAS],
                        a[LLM_MA_Q], 0 };

    llm_pass_norm(p, p->x, LLM_LT_CROSS_NORM, LLM_LT_CROSS_NORM_BIAS,
                  a[LLM_MA_H]);
    m->ops->linear(m->exec, p->rows, a[LLM_MA_H], &q, 1);
    llm_ear_keep_queries(p);

    if (p->ends) {
        return;
    }

    m->ops->attention(m->exec, &heads, a[LLM_MA_Q], m->at->cross,
                      a[LLM_MA_ATTN]);
    llm_pass_add(p, a[LLM_MA_ATTN], LLM_LT_CROSS_OUT,
                 LLM_LT_CROSS_OUT_BIAS, LLM_LT_N);
}


static const llm_tensor_want_t  llm_look_tensors[] = {
    { LLM_LT_CROSS_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_CROSS_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_CROSS_Q, LLM_WANT_REQUIRED },
    { LLM_LT_CROSS_K, LLM_WANT_REQUIRED },
    { LLM_LT_CROSS_V, LLM_WANT_REQUIRED },
    { LLM_LT_CROSS_OUT, LLM_WANT_REQUIRED },
    { LLM_LT_CROSS_Q_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_CROSS_K_BIAS, LLM_WANT_OPTIONAL },
    { LLM_LT_CROSS_V_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_CROSS_OUT_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};


static const llm_buffer_want_t  llm_look_buffers[] = {
    { LLM_MA_Q, LLM_DIM_Q },
    { LLM_MA_ATTN, LLM_DIM_HEADS },
    { LLM_MA_N, LLM_DIM_NONE }
};


const llm_block_t  llm_block_cross = {
    .forward = llm_block_look,
    .mixes = 1,                         /* attention() works on all rows */
    .needs = LLM_CAN_CROSS | LLM_CAN_ENCODE,
    .tensors = llm_look_tensors,
    .buffers = llm_look_buffers
};
