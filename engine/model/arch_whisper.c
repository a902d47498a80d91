/*
 * Whisper (arXiv:2212.04356): a decoder with learned positions and LayerNorm,
 * whose layers have cross-attention to an encoder of sound (ear_desc.c).
 * engine/file/ gives its files these names and keys.
 */

#include "engine/model/blocks.h"
#include "engine/model/reader.h"


static const llm_tensor_want_t  llm_whisper_tensors[] = {
    { LLM_LT_ATTN_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_FFN_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_Q_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_V_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_ATTN_OUT_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_UP_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_DOWN_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_GATE, LLM_WANT_NONE },
    { LLM_LT_GATE_BIAS, LLM_WANT_NONE },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_whisper_globals[] = {
    { LLM_GT_OUTPUT_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_GT_POS_EMBD, LLM_WANT_REQUIRED },
    { LLM_GT_N, LLM_WANT_NONE }
};


static int
llm_whisper_read(llm_reader_t *r)
{
    r->d->hp.listens = 1;

    return llm_read_ear(r);
}


const llm_arch_t  llm_arch_whisper = {
    .name = "whisper",
    .rope_use = LLM_ROPE_UNUSED,
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU_ERF,
    .blocks = { &llm_block_attention, &llm_block_cross, &llm_block_ffn },
    .tensors = llm_whisper_tensors,
    .globals = llm_whisper_globals,
    .read = llm_whisper_read
};
