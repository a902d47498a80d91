/*
 * A block: a pre-norm gated feed-forward network.
 */

#include "engine/model/blocks.h"


static void
llm_block_feed(const llm_pass_t *p)
{
    llm_model_t              *m = p->m;
    llm_act_t                *const *a = m->act;
    const llm_model_layer_t  *l = &m->layers[p->layer];

    llm_linear_t  gate_up[] = {
        { l->w[LLM_LT_GATE], l->v[LLM_LT_GATE_BIAS], a[LLM_MA_GATE], 0 },
        { l->w[LLM_LT_UP], l->v[LLM_LT_UP_BIAS], a[LLM_MA_UP], 0 }
    };

    llm_linear_t  down = {
        l->w[LLM_LT_DOWN], l->v[LLM_LT_DOWN_BIAS], p->x, 1
    };

    m->ops->norm(m->dev, p->rows, p->x, l->v[LLM_LT_FFN_NORM],
                 m->desc.hp.norm_eps, a[LLM_MA_H]);
    m->ops->linear(m->dev, p->rows, a[LLM_MA_H], gate_up,
                   llm_nelems(gate_up));
    m->ops->glu(m->dev, p->rows, m->desc.arch->glu, a[LLM_MA_GATE],
                a[LLM_MA_UP], a[LLM_MA_GLU]);
    m->ops->linear(m->dev, p->rows, a[LLM_MA_GLU], &down, 1);
}


const llm_block_t  llm_block_ffn = {
    .forward = llm_block_feed,

    .required = llm_arch_bit(LLM_LT_FFN_NORM) | llm_arch_bit(LLM_LT_GATE)
                | llm_arch_bit(LLM_LT_UP) | llm_arch_bit(LLM_LT_DOWN),

    .optional = llm_arch_bit(LLM_LT_GATE_BIAS) | llm_arch_bit(LLM_LT_UP_BIAS)
                | llm_arch_bit(LLM_LT_DOWN_BIAS)
};
