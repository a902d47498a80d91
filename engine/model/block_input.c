/*
 * Two blocks: a layer's own input, which is made for all layers from the tokens
 * and their embeddings before the first layer; and a factor on the residual
 * stream at the end of a layer.
 */

#include "engine/model/blocks.h"

#include <math.h>


/* (sqrt(width) E[token] + norm(W x / sqrt(n_embd))) / sqrt(2); a row has the
   inputs of all layers, one after the other */

void
llm_forward_inputs(llm_model_t *m)
{
    float         width;
    llm_act_t    *const *a = m->act;
    llm_linear_t  proj = { m->input_proj, NULL, a[LLM_MA_INPUTS_PROJ], 0 };

    llm_norm_t  norm = {
        .kind = LLM_NORM_RMS,
        .eps = m->desc.hp.norm_eps,
        .w = m->input_norm,
        .group = m->desc.n_input
    };

    width = (float) m->desc.n_input;

    m->ops->embed(m->exec, m->input_embd, a[LLM_MA_INPUTS]);
    m->ops->scale(m->exec, LLM_ROWS_ALL, 1, a[LLM_MA_X], 0, a[LLM_MA_H]);
    m->ops->linear(m->exec, LLM_ROWS_ALL, a[LLM_MA_H], &proj, 1);
    m->ops->scale(m->exec, LLM_ROWS_ALL,
                  1 / sqrtf((float) m->desc.hp.n_embd), proj.y, 0, proj.y);
    m->ops->norm(m->exec, LLM_ROWS_ALL, proj.y, &norm, proj.y);
    m->ops->scale(m->exec, LLM_ROWS_ALL, sqrtf(width / 2), a[LLM_MA_INPUTS],
                  0, a[LLM_MA_INPUTS]);
    m->ops->scale(m->exec, LLM_ROWS_ALL, sqrtf(0.5f), proj.y, 1,
                  a[LLM_MA_INPUTS]);
}


/* x += norm(P (gelu(G x) * input)) */

static void
llm_block_take_input(const llm_pass_t *p)
{
    llm_model_t  *m = p->m;
    llm_act_t    *const *a = m->act;
    llm_act_t    *input = a[LLM_MA_INPUT];

    llm_linear_t  gate = {
        p->l->w[LLM_LT_INPUT_GATE], NULL, a[LLM_MA_INPUT_GATE], 0
    };

    m->ops->columns(m->exec, LLM_ROWS_ALL, a[LLM_MA_INPUTS],
                    p->layer * m->desc.n_input, input);

    if (p->rows == LLM_ROWS_OUT) {
        m->ops->gather(m->exec, input, a[LLM_MA_INPUT_OUT]);
        input = a[LLM_MA_INPUT_OUT];
    }

    m->ops->scale(m->exec, p->rows, 1, p->x, 0, a[LLM_MA_H]);
    m->ops->linear(m->exec, p->rows, a[LLM_MA_H], &gate, 1);
    m->ops->glu(m->exec, p->rows, LLM_GLU_GELU, gate.y, input,
                a[LLM_MA_INPUT_GLU]);
    llm_pass_add(p, a[LLM_MA_INPUT_GLU], LLM_LT_INPUT_PROJ, LLM_LT_N,
                 LLM_LT_INPUT_POST);
}


static const llm_tensor_want_t  llm_input_tensors[] = {
    { LLM_LT_INPUT_GATE, LLM_WANT_REQUIRED },
    { LLM_LT_INPUT_PROJ, LLM_WANT_REQUIRED },
    { LLM_LT_INPUT_POST, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};


static const llm_buffer_want_t  llm_input_buffers[] = {
    { LLM_MA_INPUTS, LLM_DIM_INPUTS },
    { LLM_MA_INPUTS_PROJ, LLM_DIM_INPUTS },
    { LLM_MA_INPUT, LLM_DIM_INPUT },
    { LLM_MA_INPUT_OUT, LLM_DIM_INPUT },
    { LLM_MA_INPUT_GATE, LLM_DIM_INPUT },
    { LLM_MA_INPUT_GLU, LLM_DIM_INPUT },
    { LLM_MA_N, LLM_DIM_NONE }
};


const llm_block_t  llm_block_input = {
    .forward = llm_block_take_input,
    .tensors = llm_input_tensors,
    .buffers = llm_input_buffers
};


static void
llm_block_scale(const llm_pass_t *p)
{
    if (p->l->v[LLM_LT_OUT_SCALE]) {
        p->m->ops->scale(p->m->exec, p->rows, p->l->out_scale, p->x, 0, p->x);
    }
}


static const llm_tensor_want_t  llm_scale_tensors[] = {
    { LLM_LT_OUT_SCALE, LLM_WANT_OPTIONAL },
    { LLM_LT_N, LLM_WANT_NONE }
};


const llm_block_t  llm_block_out_scale = {
    .forward = llm_block_scale,
    .tensors = llm_scale_tensors
};
