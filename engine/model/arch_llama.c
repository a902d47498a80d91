/*
 * Llama and similar architectures, whose RoPE rotates pairs of neighbours:
 * mistral3, ernie4_5, smollm3, arcee, granite, MiniCPM, InternLM 2, ChatGLM 3
 * and GLM 4 9B, and others that differ only in name; their mixtures of
 * experts, and granite's hybrid with Mamba-2.
 */

#include "engine/model/blocks.h"
#include "engine/model/reader.h"

#include <math.h>


/* queries beyond the original training context, which is also YaRN's, are
   scaled up */

static int
llm_mistral3_read(llm_reader_t *r)
{
    float     scale;
    uint32_t  i, floor;

    scale = 0;
    floor = r->d->hp.n_ctx_train;

    if (llm_read_f32(r, "attention.temperature_scale", &scale) == LLM_ERROR
        || llm_read_size(r, "rope.scaling.original_context_length",
                         LLM_MAX_CTX, &floor) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < r->d->hp.n_layers; i++) {
        r->d->layers[i].temp_scale = scale;
        r->d->layers[i].temp_floor = floor;
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


int
llm_read_granite(llm_reader_t *r)
{
    float     scale;
    uint32_t  i;

    scale = r->d->layers[0].residual_scale;

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


void
llm_minicpm_scales(llm_desc_t *d)
{
    uint32_t  i;

    d->embd_scale = 12;
    d->logit_scale = (float) d->hp.n_embd / 256;

    for (i = 0; i < d->hp.n_layers; i++) {
        d->layers[i].residual_scale = 1.4f / sqrtf((float) d->hp.n_layers);
    }
}


static int
llm_minicpm_read(llm_reader_t *r)
{
    llm_minicpm_scales(r->d);

    return llm_read_long_rope(r) == LLM_OK ? llm_read_granite(r) : LLM_ERROR;
}


/* the 13B model, known by its 40 layers, has ALiBi */

static int
llm_baichuan_read(llm_reader_t *r)
{
    if (r->d->hp.n_layers == 40) {
        return llm_fail(r->err, "%s: %s.block_count: 40: ALiBi, which this "
                        "model has, is not supported", llm_gguf_name(r->g),
                        r->d->hp.arch);
    }

    return LLM_OK;
}


/* a file without experts has the width of its network in the field of shared
   experts, too */

static int
llm_granitehybrid_read(llm_reader_t *r)
{
    uint32_t  i;

    if (llm_read_granite(r) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < r->d->hp.n_layers; i++) {
        if (r->d->layers[i].route.n_experts == 0) {
            llm_read_ignore(r, "expert_shared_feed_forward_length");
        }
    }

    return llm_read_ssm(r);
}


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

/* DeepSeek's first, Ling */
static const llm_arch_experts_t  llm_deepseek1_experts = {
    .score = LLM_ROUTE_SOFTMAX,
    .shared = LLM_WANT_REQUIRED
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
    .tensors = llm_want_no_gate
};

const llm_arch_t  llm_arch_granite = {
    .name = "granite",
    .read = llm_read_granite
};

const llm_arch_t  llm_arch_granitemoe = {
    .name = "granitemoe",
    .experts = &llm_granite_experts,
    .read = llm_read_granite
};

const llm_arch_t  llm_arch_internlm2 = { .name = "internlm2" };

const llm_arch_t  llm_arch_chatglm = { .name = "chatglm" };

const llm_arch_t  llm_arch_xverse = { .name = "xverse" };

const llm_arch_t  llm_arch_baichuan = {
    .name = "baichuan",
    .read = llm_baichuan_read
};

const llm_arch_t  llm_arch_deepseek = {
    .name = "deepseek",
    .experts = &llm_deepseek1_experts
};

const llm_arch_t  llm_arch_bailingmoe = {
    .name = "bailingmoe",
    .experts = &llm_deepseek1_experts
};

const llm_arch_t  llm_arch_minicpm = {
    .name = "minicpm",
    .globals = llm_long_rope,
    .read = llm_minicpm_read
};

const llm_arch_t  llm_arch_granitehybrid = {
    .name = "granitehybrid",
    .rope_use = LLM_ROPE_FINETUNED,
    .recurrent = &llm_block_mamba2,
    .experts = &llm_granite_experts,
    .read = llm_granitehybrid_read
};
