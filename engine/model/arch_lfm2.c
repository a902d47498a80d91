/*
 * LFM2: layers of short convolutions, and some of attention; each is followed
 * by a feed-forward network or a mixture of experts.
 */

#include "engine/model/blocks.h"
#include "engine/model/reader.h"


static const llm_tensor_want_t  llm_lfm2_globals[] = {
    { LLM_GT_OUTPUT_NORM, LLM_WANT_NONE },
    { LLM_GT_OUTPUT_NORM_LFM, LLM_WANT_REQUIRED },
    { LLM_GT_N, LLM_WANT_NONE }
};

static const llm_arch_experts_t  llm_lfm2_experts = {
    .score = LLM_ROUTE_SIGMOID,
    .normalize = 1
};


static int
llm_lfm2_read(llm_reader_t *r)
{
    uint32_t  i;

    for (i = 0; i < r->d->hp.n_layers; i++) {
        r->d->layers[i].route.eps = 1e-6f;
    }

    return llm_read_shortconv(r);
}


const llm_arch_t  llm_arch_lfm2 = {
    .name = "lfm2",
    .rope = LLM_ROPE_NEOX,
    .recurrent = &llm_block_shortconv,
    .tensors = llm_want_qk_norms,
    .globals = llm_lfm2_globals,
    .read = llm_lfm2_read
};

const llm_arch_t  llm_arch_lfm2moe = {
    .name = "lfm2moe",
    .rope = LLM_ROPE_NEOX,
    .recurrent = &llm_block_shortconv,
    .experts = &llm_lfm2_experts,
    .tensors = llm_want_qk_norms,
    .globals = llm_lfm2_globals,
    .read = llm_lfm2_read
};
