/*
 * Architectures that exist only as mixtures of experts: gpt-oss, OLMoE,
 * GLM 4.5, MiniMax M2, Llama 4, dots.llm1, Ling 2, K-EXAONE, Trinity, DBRX.
 */

#include "engine/model/reader.h"

#include <math.h>

#define LLM_LLAMA4_CHUNK  8192
#define LLM_GPT_OSS_CTX   4096


static const llm_tensor_want_t  llm_gpt_oss_tensors[] = {
    { LLM_LT_SINKS, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_norms_optional[] = {
    { LLM_LT_Q_NORM, LLM_WANT_OPTIONAL },
    { LLM_LT_K_NORM, LLM_WANT_OPTIONAL },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_afmoe_tensors[] = {
    { LLM_LT_Q_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_K_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_ATTN_GATE, LLM_WANT_REQUIRED },
    { LLM_LT_ATTN_POST, LLM_WANT_REQUIRED },
    { LLM_LT_FFN_POST, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_arch_experts_t  llm_gpt_oss_experts = {
    .score = LLM_ROUTE_CHOSEN
};

static const llm_arch_experts_t  llm_olmoe_experts = {
    .score = LLM_ROUTE_SOFTMAX
};

static const llm_arch_experts_t  llm_dbrx_experts = {
    .score = LLM_ROUTE_SOFTMAX,
    .normalize = 1
};

static const llm_arch_experts_t  llm_glm4moe_experts = {
    .score = LLM_ROUTE_SIGMOID,
    .shared = LLM_WANT_OPTIONAL
};

static const llm_arch_experts_t  llm_minimax_experts = {
    .score = LLM_ROUTE_SIGMOID,
    .normalize = 1
};

static const llm_arch_experts_t  llm_llama4_experts = {
    .score = LLM_ROUTE_SIGMOID,
    .shared = LLM_WANT_REQUIRED,
    .weigh_input = 1
};


static const llm_arch_experts_t  llm_dots_experts = {
    .score = LLM_ROUTE_SOFTMAX,
    .shared = LLM_WANT_REQUIRED,
    .biased_sigmoid = 1
};


/*
 * The first of every two layers has a window.  The models that were published
 * do not round where YaRN's ramp begins and ends ("truncate": false in their
 * config.json).  No key of a file says so; they are known by their original
 * context.
 */

static int
llm_gpt_oss_read(llm_reader_t *r)
{
    int               rc;
    llm_rope_conf_t  *rope;

    llm_desc_rename_ffn_norm(r->d);

    rope = &r->d->ropes[0].conf;
    rope->unrounded = rope->n_ctx_orig == LLM_GPT_OSS_CTX;

    rc = llm_read_windows(r, 2, 0);

    return rc == LLM_ABSENT ? llm_read_missing(r, "attention.sliding_window")
                            : rc;
}


static int
llm_glm4moe_read(llm_reader_t *r)
{
    llm_desc_rename_ffn_norm(r->d);

    /* positions of images have parts, which are the same for text */
    llm_read_ignore(r, "rope.dimension_sections");

    return LLM_OK;
}


/* the norm before the mixture has another name */

static int
llm_dbrx_read(llm_reader_t *r)
{
    r->d->facts[LLM_LT_FFN_NORM].name = r->d->facts[LLM_LT_ATTN_AFTER].name;

    return llm_read_bound(r);
}


static int
llm_olmoe_read(llm_reader_t *r)
{
    llm_desc_row_norms(r->d);

    return LLM_OK;
}


/*
 * Three of every four layers have RoPE and see chunks of positions, the fourth
 * has no RoPE and scales up the queries of far positions.  A window of 0 means
 * no chunks; then all layers have RoPE.  Files do not say whether Q and K are
 * normalised: in layers with RoPE they are, except in Maverick, known by its
 * 128 experts.
 */

static int
llm_llama4_read(llm_reader_t *r)
{
    int                rc;
    uint32_t           i, window;
    llm_layer_desc_t  *l;

    window = LLM_LLAMA4_CHUNK;
    rc = llm_read_u32(r, "attention.sliding_window", &window);

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    for (i = 0; i < r->d->hp.n_layers; i++) {
        l = &r->d->layers[i];
        l->norm_qk = l->route.n_experts != 128;

        if (window == 0) {
            continue;
        }

        l->chunks = 1;
        l->window = i % 4 == 3 ? 0 : window;

        if (i % 4 == 3) {
            l->norm_qk = 0;
            l->rope = LLM_NO_ROPE;
            l->temp_scale = 0.1f;
            l->temp_floor = LLM_LLAMA4_CHUNK;
            l->temp_offset = 1;
        }
    }

    return LLM_OK;
}


/* three of every four layers have windows, and only those have RoPE */

static int
llm_exaone_moe_read(llm_reader_t *r)
{
    if (llm_read_windows(r, 4, 0) == LLM_ERROR
        || llm_read_rope_base(r, "rope.freq_base_swa",
                              &r->d->ropes[0].conf.base) != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_desc_rope_in_windows(r->d);

    return LLM_OK;
}


/* three of every four layers have windows and RoPE, the fourth has neither; it
   has no RoPE even if the file has no windows */

static int
llm_afmoe_read(llm_reader_t *r)
{
    uint32_t  i;

    r->d->embd_scale = sqrtf((float) r->d->hp.n_embd);

    if (llm_read_windows(r, 4, 0) == LLM_ERROR) {
        return LLM_ERROR;
    }

    for (i = 3; i < r->d->hp.n_layers; i += 4) {
        r->d->layers[i].rope = LLM_NO_ROPE;
    }

    return LLM_OK;
}


const llm_arch_t  llm_arch_gpt_oss = {
    .name = "gpt-oss",
    .rope = LLM_ROPE_NEOX,
    .act = LLM_GLU_CLAMPED,
    .experts = &llm_gpt_oss_experts,
    .tensors = llm_gpt_oss_tensors,
    .read = llm_gpt_oss_read
};

const llm_arch_t  llm_arch_olmoe = {
    .name = "olmoe",
    .rope = LLM_ROPE_NEOX,
    .experts = &llm_olmoe_experts,
    .tensors = llm_want_qk_norms,
    .read = llm_olmoe_read
};

const llm_arch_t  llm_arch_dbrx = {
    .name = "dbrx",
    .rope = LLM_ROPE_NEOX,
    .norm = LLM_NORM_LAYER,
    .experts = &llm_dbrx_experts,
    .read = llm_dbrx_read
};

const llm_arch_t  llm_arch_glm4moe = {
    .name = "glm4moe",
    .rope = LLM_ROPE_NEOX,
    .experts = &llm_glm4moe_experts,
    .tensors = llm_norms_optional,
    .predicts = 1,
    .read = llm_glm4moe_read
};

const llm_arch_t  llm_arch_minimax_m2 = {
    .name = "minimax-m2",
    .rope = LLM_ROPE_NEOX,
    .experts = &llm_minimax_experts,
    .tensors = llm_want_qk_norms,
    .read = llm_olmoe_read
};

const llm_arch_t  llm_arch_llama4 = {
    .name = "llama4",
    .experts = &llm_llama4_experts,
    .read = llm_llama4_read
};

const llm_arch_t  llm_arch_dots1 = {
    .name = "dots1",
    .rope = LLM_ROPE_NEOX,
    .experts = &llm_dots_experts,
    .tensors = llm_want_qk_norms
};

const llm_arch_t  llm_arch_bailingmoe2 = {
    .name = "bailingmoe2",
    .rope = LLM_ROPE_NEOX,
    .experts = &llm_dots_experts,
    .tensors = llm_want_qk_norms
};

const llm_arch_t  llm_arch_exaone_moe = {
    .name = "exaone-moe",
    .rope = LLM_ROPE_NEOX,
    .experts = &llm_dots_experts,
    .tensors = llm_want_qk_norms,
    .read = llm_exaone_moe_read
};

const llm_arch_t  llm_arch_afmoe = {
    .name = "afmoe",
    .rope = LLM_ROPE_NEOX,
    .experts = &llm_glm4moe_experts,
    .tensors = llm_afmoe_tensors,
    .read = llm_afmoe_read
};
