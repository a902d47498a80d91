/*
 * Blocks that normalise the residual stream itself, in encoders of BERT's
 * family, which have no norms before attention and the feed-forward network:
 * after attention, and at the end of a layer.  A second norm after attention
 * adds the layer's input once more; another block keeps this input for it.
 */

#include "engine/model/blocks.h"


/* x = norm(x) */

static void
llm_block_norm_attended(const llm_pass_t *p)
{
    llm_pass_norm(p, p->x, LLM_LT_ATTN_AFTER, LLM_LT_ATTN_AFTER_BIAS, p->x);
}


static void
llm_block_keep_input(const llm_pass_t *p)
{
    p->m->ops->scale(p->m->exec, p->rows, 1, p->x, 0, p->m->act[LLM_MA_KEPT]);
}


/* x = norm(x + the layer's input) */

static void
llm_block_norm_again(const llm_pass_t *p)
{
    llm_act_t    *kept;
    llm_model_t  *m = p->m;

    kept = m->act[LLM_MA_KEPT];

    if (p->rows == LLM_ROWS_OUT) {
        m->ops->gather(m->exec, kept, m->act[LLM_MA_KEPT_OUT]);
        kept = m->act[LLM_MA_KEPT_OUT];
    }

    m->ops->scale(m->exec, p->rows, 1, kept, 1, p->x);
    llm_pass_norm(p, p->x, LLM_LT_ATTN_AGAIN, LLM_LT_ATTN_AGAIN_BIAS, p->x);
}


static void
llm_block_norm_layer(const llm_pass_t *p)
{
    llm_pass_norm(p, p->x, LLM_LT_LAYER_AFTER, LLM_LT_LAYER_AFTER_BIAS, p->x);
}


static const llm_tensor_want_t  llm_attn_after_tensors[] = {
    { LLM_LT_ATTN_AFTER, LLM_WANT_REQUIRED },
    { LLM_LT_ATTN_AFTER_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_attn_again_tensors[] = {
    { LLM_LT_ATTN_AGAIN, LLM_WANT_REQUIRED },
    { LLM_LT_ATTN_AGAIN_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_layer_after_tensors[] = {
    { LLM_LT_LAYER_AFTER, LLM_WANT_REQUIRED },
    { LLM_LT_LAYER_AFTER_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};


const llm_block_t  llm_block_attn_after = {
    .forward = llm_block_norm_attended,
    .tensors = llm_attn_after_tensors
};

static const llm_buffer_want_t  llm_keep_buffers[] = {
    { LLM_MA_KEPT, LLM_DIM_EMBD },
    { LLM_MA_N, LLM_DIM_NONE }
};


const llm_block_t  llm_block_keep = {
    .forward = llm_block_keep_input,
    .buffers = llm_keep_buffers
};

static const llm_buffer_want_t  llm_again_buffers[] = {
    { LLM_MA_KEPT_OUT, LLM_DIM_EMBD },
    { LLM_MA_N, LLM_DIM_NONE }
};


const llm_block_t  llm_block_attn_again = {
    .forward = llm_block_norm_again,
    .tensors = llm_attn_again_tensors,
    .buffers = llm_again_buffers
};

const llm_block_t  llm_block_layer_after = {
    .forward = llm_block_norm_layer,
    .tensors = llm_layer_after_tensors
};
