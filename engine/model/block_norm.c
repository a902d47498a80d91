/*
 * Two blocks: norms of the residual stream itself, behind attention and at
 * the end of a layer, as encoders of BERT's family have them in the place of
 * norms before their blocks.
 */

#include "engine/model/blocks.h"


/* x = norm(x) */

static void
llm_block_norm_attended(const llm_pass_t *p)
{
    llm_pass_norm(p, p->x, LLM_LT_ATTN_AFTER, LLM_LT_ATTN_AFTER_BIAS, p->x);
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

static const llm_tensor_want_t  llm_layer_after_tensors[] = {
    { LLM_LT_LAYER_AFTER, LLM_WANT_REQUIRED },
    { LLM_LT_LAYER_AFTER_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};


const llm_block_t  llm_block_attn_after = {
    .forward = llm_block_norm_attended,
    .tensors = llm_attn_after_tensors
};

const llm_block_t  llm_block_layer_after = {
    .forward = llm_block_norm_layer,
    .tensors = llm_layer_after_tensors
};
