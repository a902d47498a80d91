/*
 * Cohere's Command R and Command A (command-r and cohere2): LayerNorm without
 * a bias; attention and the feed-forward network read the same norm; logits
 * are scaled.
 */

#include "engine/model/reader.h"


static const llm_tensor_want_t  llm_cohere_tensors[] = {
    { LLM_LT_FFN_NORM, LLM_WANT_NONE },
    { LLM_LT_N, LLM_WANT_NONE }
};


static int
llm_command_r_read(llm_reader_t *r)
{
    int  rc;

    /* only the largest model has these norms */
    llm_desc_head_norms(r->d, LLM_WANT_OPTIONAL);
    llm_desc_parallel(r->d);

    rc = llm_read_f32(r, "logit_scale", &r->d->logit_scale);

    return rc == LLM_ABSENT ? llm_read_missing(r, "logit_scale") : rc;
}


/* three of every four layers have windows, and only those have RoPE */

static int
llm_cohere2_read(llm_reader_t *r)
{
    int  rc;

    if (llm_command_r_read(r) != LLM_OK) {
        return LLM_ERROR;
    }

    rc = llm_read_windows(r, 4, 0);
    llm_desc_rope_in_windows(r->d);

    return rc == LLM_ABSENT ? llm_read_missing(r, "attention.sliding_window")
                            : rc;
}


const llm_arch_t  llm_arch_command_r = {
    .name = "command-r",
    .norm = LLM_NORM_LAYER,
    .tensors = llm_cohere_tensors,
    .read = llm_command_r_read
};

const llm_arch_t  llm_arch_cohere2 = {
    .name = "cohere2",
    .norm = LLM_NORM_LAYER,
    .tensors = llm_cohere_tensors,
    .read = llm_cohere2_read
};
