/*
 * Qwen 2 and 3 and similar architectures: RoPE rotates the halves of a head,
 * and Qwen 3 has norms on each head of Q and K.  Towers of vision models are in
 * tower_qwen.c.
 */

#include "engine/model/reader.h"

#include <math.h>


static const llm_tensor_want_t  llm_output_bias_optional[] = {
    { LLM_GT_OUTPUT_BIAS, LLM_WANT_OPTIONAL },
    { LLM_GT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_apertus_tensors[] = {
    { LLM_LT_Q_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_K_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_GATE, LLM_WANT_NONE },
    { LLM_LT_GATE_BIAS, LLM_WANT_NONE },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_qwen2moe_tensors[] = {
    { LLM_LT_SWITCH, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_arch_experts_t  llm_qwen2moe_experts = {
    .score = LLM_ROUTE_SOFTMAX,
    .shared = LLM_WANT_REQUIRED
};

static const llm_arch_experts_t  llm_qwen3moe_experts = {
    .score = LLM_ROUTE_SOFTMAX,
    .normalize = 1
};

static const llm_arch_experts_t  llm_hunyuan_experts = {
    .score = LLM_ROUTE_SOFTMAX,
    .normalize = 1,
    .shared = LLM_WANT_REQUIRED
};


static int
llm_seed_oss_read(llm_reader_t *r)
{
    llm_desc_rename_ffn_norm(r->d);

    return LLM_OK;
}


/* the norms of Q and K come after RoPE */

static int
llm_hunyuan_read(llm_reader_t *r)
{
    uint32_t  i;

    for (i = 0; i < r->d->hp.n_layers; i++) {
        r->d->layers[i].norm_last = 1;
    }

    return LLM_OK;
}


/* positions have three parts, which are the same for text */

static int
llm_qwen2vl_read(llm_reader_t *r)
{
    int  has;

    return llm_read_sections(r, 0, &has);
}


/* the parts take turns; the first layers get something of an image, too
   (deepstack) */

static int
llm_qwen3vl_read(llm_reader_t *r)
{
    int         has;
    uint32_t   *n = &r->d->hp.n_deepstack;

    if (llm_read_u32(r, "n_deepstack_layers", n) == LLM_ERROR
        || llm_read_within(r, "n_deepstack_layers", *n, 0,
                           r->d->hp.n_layers) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_read_sections(r, 3, &has);
}


/* three of every four layers have windows and a RoPE that is not scaled */

static int
llm_mellum_read(llm_reader_t *r)
{
    return llm_read_unscaled_windows(r, 4);
}


static float
llm_softplus(float x)
{
    return x > 20 ? x : log1pf(expf(x));
}


/* xIELU has parameters for each layer; files have the trained alphas, to which
   softplus is applied here */

static int
llm_apertus_read(llm_reader_t *r)
{
    float     *x;
    size_t     k;
    uint32_t   i;

    static const char  *const keys[] = {
        "xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps"
    };

    for (i = 0; i < r->d->hp.n_layers; i++) {
        x = r->d->layers[i].act.xielu;

        for (k = 0; k < llm_nelems(keys); k++) {
            switch (llm_read_item(r, keys[k], i, &x[k])) {

            case LLM_OK:
                break;

            case LLM_ABSENT:
                return llm_fail(r->err, "%s: %s: it is missing",
                                llm_gguf_name(r->g), keys[k]);

            default:
                return LLM_ERROR;
            }
        }

        x[0] = llm_softplus(x[0]);
        x[1] = x[2] + llm_softplus(x[1]);
    }

    return LLM_OK;
}


const llm_arch_t  llm_arch_qwen2 = {
    .name = "qwen2",
    .rope = LLM_ROPE_NEOX
};

const llm_arch_t  llm_arch_qwen3 = {
    .name = "qwen3",
    .rope = LLM_ROPE_NEOX,
    .tensors = llm_want_qk_norms
};

const llm_arch_t  llm_arch_qwen2moe = {
    .name = "qwen2moe",
    .rope = LLM_ROPE_NEOX,
    .experts = &llm_qwen2moe_experts,
    .tensors = llm_qwen2moe_tensors
};

const llm_arch_t  llm_arch_qwen3moe = {
    .name = "qwen3moe",
    .rope = LLM_ROPE_NEOX,
    .experts = &llm_qwen3moe_experts,
    .tensors = llm_want_qk_norms
};

const llm_arch_t  llm_arch_seed_oss = {
    .name = "seed_oss",
    .rope = LLM_ROPE_NEOX,
    .read = llm_seed_oss_read
};

const llm_arch_t  llm_arch_hunyuan_dense = {
    .name = "hunyuan-dense",
    .rope = LLM_ROPE_NEOX,
    .tensors = llm_want_qk_norms,
    .read = llm_hunyuan_read
};

const llm_arch_t  llm_arch_hunyuan_moe = {
    .name = "hunyuan-moe",
    .rope = LLM_ROPE_NEOX,
    .experts = &llm_hunyuan_experts,
    .tensors = llm_want_qk_norms,
    .read = llm_hunyuan_read
};

const llm_arch_t  llm_arch_apertus = {
    .name = "apertus",
    .rope = LLM_ROPE_NEOX,
    .act = LLM_GLU_XIELU,
    .tensors = llm_apertus_tensors,
    .read = llm_apertus_read
};

const llm_arch_t  llm_arch_qwen2vl = {
    .name = "qwen2vl",
    .rope = LLM_ROPE_NEOX,
    .read = llm_qwen2vl_read
};

const llm_arch_t  llm_arch_qwen3vl = {
    .name = "qwen3vl",
    .rope = LLM_ROPE_NEOX,
    .tensors = llm_want_qk_norms,
    .read = llm_qwen3vl_read
};

const llm_arch_t  llm_arch_qwen3vlmoe = {
    .name = "qwen3vlmoe",
    .rope = LLM_ROPE_NEOX,
    .experts = &llm_qwen3moe_experts,
    .tensors = llm_want_qk_norms,
    .read = llm_qwen3vl_read
};

const llm_arch_t  llm_arch_mellum = {
    .name = "mellum",
    .rope = LLM_ROPE_NEOX,
    .experts = &llm_qwen3moe_experts,
    .tensors = llm_want_qk_norms,
    .read = llm_mellum_read
};

const llm_arch_t  llm_arch_maincoder = {
    .name = "maincoder",
    .tensors = llm_want_qk_norms,
    .read = llm_hunyuan_read
};

const llm_arch_t  llm_arch_pangu_embed = {
    .name = "pangu-embedded",
    .rope = LLM_ROPE_NEOX,
    .globals = llm_output_bias_optional
};

const llm_arch_t  llm_arch_exaone = {
    .name = "exaone",
    .rope = LLM_ROPE_NEOX
};
