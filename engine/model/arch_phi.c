/*
 * Phi 2, whose attention and feed-forward network read the same norm, and
 * Phi 3 with its long RoPE: other factors if the context is longer than that
 * of the original training.
 */

#include "engine/model/reader.h"


static const llm_tensor_want_t  llm_phi2_tensors[] = {
    { LLM_LT_ATTN_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_FFN_NORM, LLM_WANT_NONE },
    { LLM_LT_GATE, LLM_WANT_NONE },
    { LLM_LT_GATE_BIAS, LLM_WANT_NONE },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_phi2_globals[] = {
    { LLM_GT_OUTPUT_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_GT_OUTPUT_BIAS, LLM_WANT_REQUIRED },
    { LLM_GT_N, LLM_WANT_NONE }
};

static int
llm_phi2_read(llm_reader_t *r)
{
    llm_desc_parallel(r->d);

    return LLM_OK;
}


const llm_arch_t  llm_arch_phi2 = {
    .name = "phi2",
    .rope = LLM_ROPE_NEOX,
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU,
    .tensors = llm_phi2_tensors,
    .globals = llm_phi2_globals,
    .read = llm_phi2_read
};

const llm_arch_t  llm_arch_phi3 = {
    .name = "phi3",
    .rope = LLM_ROPE_NEOX,
    .globals = llm_long_rope,
    .read = llm_read_long_rope
};
