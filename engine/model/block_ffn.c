/*
 * A block: a feed-forward network, gated if the layer has the matrix GATE, with
 * a norm before it, after it, or both.
 */

#include "engine/model/blocks.h"


llm_act_t *
llm_pass_feed(const llm_pass_t *p, const llm_act_t *h)
{
    llm_model_t              *m = p->m;
    llm_act_t                *gate, *up, *glu;
    const llm_layer_desc_t   *d = p->d;
    const llm_model_layer_t  *l = p->l;

    gate = m->act[LLM_MA_GATE];
    up = m->act[LLM_MA_UP];
    glu = m->act[LLM_MA_GLU];

    llm_linear_t  products[] = {
        { l->w[LLM_LT_UP], l->v[LLM_LT_UP_BIAS], up, 0 },
        { l->w[LLM_LT_GATE], l->v[LLM_LT_GATE_BIAS], gate, 0 }
    };

    if (l->w[LLM_LT_GATE]) {

        if (m->ops->linear_glu == NULL
            || !m->ops->linear_glu(m->exec, p->rows, h, d->act.kind,
                                   &products[1], &products[0], glu))
        {
            m->ops->linear(m->exec, p->rows, h, products, 2);
            m->ops->glu(m->exec, p->rows, d->act.kind, gate, up, glu);
        }

    } else {
        m->ops->linear(m->exec, p->rows, h, products, 1);
        m->ops->act(m->exec, p->rows, &d->act, up, glu);
    }

    return glu;
}


static void
llm_block_feed(const llm_pass_t *p)
{
    llm_act_t  *h;

    h = p->m->act[LLM_MA_H];

    if (p->d->parallel) {
        h = p->h;

    } else {
        llm_pass_norm(p, p->x, LLM_LT_FFN_NORM, LLM_LT_FFN_NORM_BIAS, h);
    }

    llm_pass_add(p, llm_pass_feed(p, h), LLM_LT_DOWN, LLM_LT_DOWN_BIAS,
                 LLM_LT_FFN_POST);
}


static const llm_tensor_want_t  llm_feed_tensors[] = {
    { LLM_LT_FFN_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_GATE, LLM_WANT_REQUIRED },
    { LLM_LT_UP, LLM_WANT_REQUIRED },
    { LLM_LT_DOWN, LLM_WANT_REQUIRED },
    { LLM_LT_GATE_BIAS, LLM_WANT_OPTIONAL },
    { LLM_LT_UP_BIAS, LLM_WANT_OPTIONAL },
    { LLM_LT_DOWN_BIAS, LLM_WANT_OPTIONAL },
    { LLM_LT_N, LLM_WANT_NONE }
};


static const llm_buffer_want_t  llm_feed_buffers[] = {
    { LLM_MA_GATE, LLM_DIM_FF },
    { LLM_MA_UP, LLM_DIM_FF },
    { LLM_MA_GLU, LLM_DIM_FF },
    { LLM_MA_N, LLM_DIM_NONE }
};


const llm_block_t  llm_block_ffn = {
    .forward = llm_block_feed,
    .tensors = llm_feed_tensors,
    .buffers = llm_feed_buffers
};
