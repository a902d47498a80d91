/*
 * Llama and its relatives, whose RoPE turns neighbours: mistral3, ernie4_5,
 * smollm3, arcee, granite; their mixtures of experts, and granite's hybrid
 * with Mamba-2.
 */

#include "engine/model/blocks.h"
#include "engine/model/reader.h"


/* queries of far positions are sharper than those within the context that
   YaRN begins with */

static int
llm_mistral3_read(llm_reader_t *r)
{
    float     scale;
    uint32_t  i;

    scale = 0;

    if (llm_read_f32(r, "attention.temperature_scale", &scale) == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (scale != 0 && r->d->ropes[0].conf.n_ctx_orig == 0) {
        return llm_read_missing(r, "rope.scaling.original_context_length");
    }

    for (i = 0; i < r->d->hp.n_layers; i++) {
        r->d->layers[i].temp_scale = scale;
        r->d->layers[i].temp_floor = r->d->ropes[0].conf.n_ctx_orig;
    }

    return LLM_OK;
}


/* every fourth layer has no RoPE */

static int
llm_smollm3_read(llm_reader_t *r)
{
    uint32_t  i;

    for (i = 3; i < r->d->hp.n_layers; i += 4) {
        r->d->layers[i].rope = LLM_NO_ROPE;
    }

    return LLM_OK;
}


static int
llm_granite_read(llm_reader_t *r)
{
    float     scale;
    uint32_t  i;

    scale = 1;

    if (llm_read_f32(r, "embedding_scale", &r->d->embd_scale) == LLM_ERROR
        || llm_read_f32(r, "residual_scale", &scale) == LLM_ERROR
        || llm_read_f32(r, "logit_scale", &r->d->logit_scale) == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    if (r->d->logit_scale == 0) {
        return llm_fail(r->err, "%s: %s.logit_scale: logits cannot be "
                        "divided by 0", llm_gguf_name(r->g), r->d->hp.arch);
    }

    r->d->logit_scale = 1 / r->d->logit_scale;

    for (i = 0; i < r->d->hp.n_layers; i++) {
        r->d->layers[i].residual_scale = scale;
    }

    return LLM_OK;
}


/* a file says by this field that it has no RoPE; one without experts has the
   width of its network twice */

static int
llm_granitehybrid_read(llm_reader_t *r)
{
    int       has_rope;
    uint32_t  i;

    has_rope = 1;

    if (llm_read_bool(r, "rope.scaling.finetuned", &has_rope) == LLM_ERROR
        || llm_granite_read(r) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < r->d->hp.n_layers; i++) {
        if (!has_rope) {
            r->d->layers[i].rope = LLM_NO_ROPE;
        }

        if (r->d->layers[i].route.n_experts == 0) {
            llm_read_ignore(r, "expert_shared_feed_forward_length");
        }
    }

    return llm_read_ssm(r);
}


/* a feed-forward network without a gate */
static const llm_tensor_want_t  llm_arcee_tensors[] = {
    { LLM_LT_GATE, LLM_WANT_NONE },
    { LLM_LT_GATE_BIAS, LLM_WANT_NONE },
    { LLM_LT_N, LLM_WANT_NONE }
};


/* Mixtral is llama with experts */
static const llm_arch_experts_t  llm_mixtral_experts = {
    .score = LLM_ROUTE_SOFTMAX,
    .normalize = 1
};

static const llm_arch_experts_t  llm_ernie_experts = {
    .score = LLM_ROUTE_SOFTMAX,
    .normalize = 1,
    .shared = LLM_WANT_OPTIONAL
};

static const llm_arch_experts_t  llm_granite_experts = {
    .score = LLM_ROUTE_CHOSEN,
    .shared = LLM_WANT_OPTIONAL
};


const llm_arch_t  llm_arch_llama = {
    .name = "llama",
    .experts = &llm_mixtral_experts
};

const llm_arch_t  llm_arch_ernie4_5 = { .name = "ernie4_5" };

const llm_arch_t  llm_arch_ernie4_5_moe = {
    .name = "ernie4_5-moe",
    .experts = &llm_ernie_experts
};

const llm_arch_t  llm_arch_mistral3 = {
    .name = "mistral3",
    .read = llm_mistral3_read
};

const llm_arch_t  llm_arch_smollm3 = {
    .name = "smollm3",
    .read = llm_smollm3_read
};

const llm_arch_t  llm_arch_arcee = {
    .name = "arcee",
    .act = LLM_GLU_RELU2,
    .tensors = llm_arcee_tensors
};

const llm_arch_t  llm_arch_granite = {
    .name = "granite",
    .read = llm_granite_read
};

const llm_arch_t  llm_arch_granitemoe = {
    .name = "granitemoe",
    .experts = &llm_granite_experts,
    .read = llm_granite_read
};

const llm_arch_t  llm_arch_granitehybrid = {
    .name = "granitehybrid",
    .recurrent = &llm_block_mamba2,
    .experts = &llm_granite_experts,
    .read = llm_granitehybrid_read
};
