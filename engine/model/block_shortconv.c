/*
 * A block: a short convolution between two gates, instead of attention:
 * W_out (c * conv(b * x)), with b, c and x from one product.
 *
 * It works on all rows of a step, in their order, so it comes before blocks
 * that work on some of the rows.
 */

#include "engine/model/blocks.h"


static void
llm_block_short(const llm_pass_t *p)
{
    llm_model_t              *m = p->m;
    llm_act_t                *const *a = m->act;
    const llm_model_layer_t  *l = p->l;

    /* x is in the buffer that the convolution's result overwrites */

    llm_linear_t  in[] = {
        { l->w[LLM_LT_SHORTCONV_B], NULL, a[LLM_MA_SSM], 0 },
        { l->w[LLM_LT_SHORTCONV_C], NULL, a[LLM_MA_SSM_GATE], 0 },
        { l->w[LLM_LT_SHORTCONV_X], NULL, a[LLM_MA_CONV], 0 }
    };

    llm_conv_t  conv = {
        .layer = p->layer,
        .w = l->v[LLM_LT_SHORTCONV]
    };

    llm_pass_norm(p, p->x, LLM_LT_ATTN_NORM, LLM_LT_N, a[LLM_MA_H]);
    m->ops->linear(m->exec, p->rows, a[LLM_MA_H], in, 3);
    m->ops->glu(m->exec, p->rows, LLM_GLU_LINEAR, a[LLM_MA_SSM],
                a[LLM_MA_CONV], a[LLM_MA_CONV_IN]);
    m->ops->conv(m->exec, &conv, a[LLM_MA_CONV_IN], m->at->state,
                 a[LLM_MA_CONV]);

    if (p->ends) {
        return;
    }

    m->ops->glu(m->exec, p->rows, LLM_GLU_LINEAR, a[LLM_MA_SSM_GATE],
                a[LLM_MA_CONV], a[LLM_MA_SSM_GLU]);
    llm_pass_add(p, a[LLM_MA_SSM_GLU], LLM_LT_SHORTCONV_OUT, LLM_LT_N,
                 LLM_LT_N);
}


static const llm_tensor_want_t  llm_shortconv_tensors[] = {
    { LLM_LT_ATTN_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_SHORTCONV_B, LLM_WANT_REQUIRED },
    { LLM_LT_SHORTCONV_C, LLM_WANT_REQUIRED },
    { LLM_LT_SHORTCONV_X, LLM_WANT_REQUIRED },
    { LLM_LT_SHORTCONV, LLM_WANT_REQUIRED },
    { LLM_LT_SHORTCONV_OUT, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};


static const llm_buffer_want_t  llm_shortconv_buffers[] = {
    { LLM_MA_CONV_IN, LLM_DIM_CONV },
    { LLM_MA_CONV, LLM_DIM_CONV },
    { LLM_MA_SSM, LLM_DIM_CONV },
    { LLM_MA_SSM_GATE, LLM_DIM_CONV },
    { LLM_MA_SSM_GLU, LLM_DIM_CONV },
    { LLM_MA_N, LLM_DIM_NONE }
};


const llm_block_t  llm_block_shortconv = {
    .forward = llm_block_short,
    .mixes = 1,
    .needs = LLM_CAN_STATE | LLM_CAN_NORMS,
    .tensors = llm_shortconv_tensors,
    .buffers = llm_shortconv_buffers
};
