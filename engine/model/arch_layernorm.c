/*
 * Architectures with LayerNorm and its bias: GPT-2, Falcon, StarCoder and
 * StarCoder 2, StableLM, Nemotron, GPT-NeoX, Orion, CodeShell, Jais 2; and the
 * first OLMo, whose norms have no weights at all.
 */

#include "engine/model/reader.h"


/* no gate */
static const llm_tensor_want_t  llm_plain_tensors[] = {
    { LLM_LT_ATTN_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_FFN_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_GATE, LLM_WANT_NONE },
    { LLM_LT_GATE_BIAS, LLM_WANT_NONE },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_falcon_tensors[] = {
    { LLM_LT_ATTN_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_FFN_NORM, LLM_WANT_NONE },
    { LLM_LT_GATE, LLM_WANT_NONE },
    { LLM_LT_GATE_BIAS, LLM_WANT_NONE },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_stablelm_tensors[] = {
    { LLM_LT_ATTN_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_FFN_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_olmo_tensors[] = {
    { LLM_LT_ATTN_NORM, LLM_WANT_NONE },
    { LLM_LT_FFN_NORM, LLM_WANT_NONE },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_olmo_globals[] = {
    { LLM_GT_OUTPUT_NORM, LLM_WANT_NONE },
    { LLM_GT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_output_bias[] = {
    { LLM_GT_OUTPUT_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_GT_N, LLM_WANT_NONE }
};

/* positions are embeddings */
static const llm_tensor_want_t  llm_gpt2_globals[] = {
    { LLM_GT_OUTPUT_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_GT_POS_EMBD, LLM_WANT_REQUIRED },
    { LLM_GT_N, LLM_WANT_NONE }
};


/* large models have a second norm, attn_norm_2, which is attention's; the
   network then reads attn_norm */

static int
llm_falcon_read(llm_reader_t *r)
{
    llm_tensor_fact_t  *f = r->d->facts;

    llm_desc_parallel(r->d);

    if (llm_gguf_find_tensor(r->g, "blk.0.attn_norm_2.weight")) {
        f[LLM_LT_FFN_NORM].name = f[LLM_LT_ATTN_NORM].name;
        f[LLM_LT_FFN_NORM_BIAS].name = f[LLM_LT_ATTN_NORM_BIAS].name;
        f[LLM_LT_ATTN_NORM].name = "attn_norm_2.weight";
        f[LLM_LT_ATTN_NORM_BIAS].name = "attn_norm_2.bias";
        llm_desc_want(r->d, LLM_LT_FFN_NORM, LLM_WANT_REQUIRED);
        llm_desc_want(r->d, LLM_LT_FFN_NORM_BIAS, LLM_WANT_REQUIRED);
    }

    return LLM_OK;
}


/*
 * Models with parallel layers have no second norm, and have norms on Q and K.
 * The field use_parallel_residual is wrong in some files: the converter writes
 * it even for models whose config.json does not have it.
 */

static int
llm_stablelm_read(llm_reader_t *r)
{
    llm_read_ignore(r, "use_parallel_residual");
    llm_desc_head_norms(r->d, LLM_WANT_OPTIONAL);

    if (llm_gguf_find_tensor(r->g, "blk.0.ffn_norm.weight") == NULL) {
        llm_desc_parallel(r->d);
        llm_desc_want(r->d, LLM_LT_FFN_NORM, LLM_WANT_NONE);
        llm_desc_want(r->d, LLM_LT_FFN_NORM_BIAS, LLM_WANT_NONE);
    }

    return LLM_OK;
}


/* attention and the feed-forward network may read the same input, each through
   its own norm */

static int
llm_gptneox_read(llm_reader_t *r)
{
    int  parallel;

    parallel = 1;

    if (llm_read_bool(r, "use_parallel_residual", &parallel) == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (parallel) {
        llm_desc_parallel(r->d);
    }

    return LLM_OK;
}


const llm_arch_t  llm_arch_gpt2 = {
    .name = "gpt2",
    .rope_use = LLM_ROPE_UNUSED,
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU,
    .tensors = llm_plain_tensors,
    .globals = llm_gpt2_globals
};

const llm_arch_t  llm_arch_falcon = {
    .name = "falcon",
    .rope = LLM_ROPE_NEOX,
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU_ERF,
    .tensors = llm_falcon_tensors,
    .globals = llm_output_bias,
    .read = llm_falcon_read
};

const llm_arch_t  llm_arch_starcoder2 = {
    .name = "starcoder2",
    .rope = LLM_ROPE_NEOX,
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU,
    .tensors = llm_plain_tensors,
    .globals = llm_output_bias
};

const llm_arch_t  llm_arch_stablelm = {
    .name = "stablelm",
    .rope = LLM_ROPE_NEOX,
    .norm = LLM_NORM_LAYER,
    .tensors = llm_stablelm_tensors,
    .globals = llm_output_bias,
    .read = llm_stablelm_read
};

const llm_arch_t  llm_arch_nemotron = {
    .name = "nemotron",
    .rope = LLM_ROPE_NEOX,
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_RELU2,
    .tensors = llm_plain_tensors,
    .globals = llm_output_bias
};

const llm_arch_t  llm_arch_gptneox = {
    .name = "gptneox",
    .rope = LLM_ROPE_NEOX,
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU_ERF,
    .tensors = llm_plain_tensors,
    .globals = llm_output_bias,
    .read = llm_gptneox_read
};

const llm_arch_t  llm_arch_orion = {
    .name = "orion",
    .rope = LLM_ROPE_NEOX,
    .norm = LLM_NORM_LAYER,
    .tensors = llm_stablelm_tensors,
    .globals = llm_output_bias
};

const llm_arch_t  llm_arch_starcoder = {
    .name = "starcoder",
    .rope_use = LLM_ROPE_UNUSED,
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU,
    .tensors = llm_plain_tensors,
    .globals = llm_gpt2_globals
};

const llm_arch_t  llm_arch_codeshell = {
    .name = "codeshell",
    .rope = LLM_ROPE_NEOX,
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_GELU,
    .tensors = llm_plain_tensors,
    .globals = llm_output_bias
};

const llm_arch_t  llm_arch_jais2 = {
    .name = "jais2",
    .rope = LLM_ROPE_NEOX,
    .norm = LLM_NORM_LAYER,
    .act = LLM_GLU_RELU2,
    .tensors = llm_plain_tensors,
    .globals = llm_output_bias
};

const llm_arch_t  llm_arch_olmo = {
    .name = "olmo",
    .norm = LLM_NORM_LAYER,
    .bare = 1,
    .tensors = llm_olmo_tensors,
    .globals = llm_olmo_globals,
    .read = llm_read_bound
};
