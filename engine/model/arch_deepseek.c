/*
 * DeepSeek V2, V3 and R1, and models of the same architecture: Kimi K2, GLM
 * 4.7 Flash, Mistral Large 3 and Small 4.  Attention is latent, the first
 * layers have no experts.  MiniCPM 3 and PLM have latent attention and no
 * experts.
 */

#include "engine/model/blocks.h"
#include "engine/model/reader.h"

#include <math.h>


/* V2 scores its experts by a softmax, V3 and later models by a sigmoid; files
   do not always say which, but only the later ones have PROBS_BIAS */
static const llm_arch_experts_t  llm_deepseek_experts = {
    .score = LLM_ROUTE_SOFTMAX,
    .shared = LLM_WANT_OPTIONAL,
    .biased_sigmoid = 1
};


/*
 * Widths of a head of K, with its rotated part, and of V, before they become
 * latent.  In older files these are attention.key_length and .value_length,
 * and the matrices of keys and values are one tensor.
 */

static int
llm_latent_heads(llm_reader_t *r, uint32_t *k, uint32_t *v)
{
    int                      rc;
    const llm_layer_desc_t  *l = &r->d->layers[0];

    *k = 0;
    *v = l->head_dim_v;
    rc = llm_read_u32(r, "attention.key_length_mla", k);

    if (rc == LLM_ERROR
        || llm_read_u32(r, "attention.value_length_mla", v) == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    if (*k == 0) {
        *k = l->head_dim_k;
        llm_desc_want(r->d, LLM_LT_KV_B, LLM_WANT_REQUIRED);

    } else {
        llm_desc_want(r->d, LLM_LT_K_B, LLM_WANT_REQUIRED);
        llm_desc_want(r->d, LLM_LT_V_B, LLM_WANT_REQUIRED);
    }

    if (llm_read_within(r, "attention.key_length_mla", *k,
                        r->d->ropes[0].n_rot + 1, LLM_MAX_HEAD_DIM) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_read_within(r, "attention.value_length_mla", *v, 1,
                           LLM_MAX_HEAD_DIM);
}


/* width between Q's two matrices; a file where Q has one matrix may have the
   field, too */

static int
llm_latent_rank(llm_reader_t *r, uint32_t *rank)
{
    *rank = 0;

    if (llm_gguf_find_tensor(r->g, "blk.0.attn_q_a.weight") == NULL) {
        llm_read_ignore(r, "attention.q_lora_rank");
        llm_desc_want(r->d, LLM_LT_Q, LLM_WANT_REQUIRED);

        return LLM_OK;
    }

    llm_desc_want(r->d, LLM_LT_Q_A, LLM_WANT_REQUIRED);
    llm_desc_want(r->d, LLM_LT_Q_A_NORM, LLM_WANT_REQUIRED);
    llm_desc_want(r->d, LLM_LT_Q_B, LLM_WANT_REQUIRED);

    return llm_read_size(r, "attention.q_lora_rank", LLM_MAX_WIDTH, rank);
}


static int
llm_latent_sizes(llm_reader_t *r, uint32_t k, uint32_t v, uint32_t q_rank)
{
    uint32_t           i, rank, n_rot;
    llm_layer_desc_t  *l;

    rank = 0;
    n_rot = r->d->ropes[0].n_rot;

    if (llm_read_size(r, "attention.kv_lora_rank", LLM_MAX_HEAD_DIM - n_rot,
                      &rank) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < r->d->hp.n_layers; i++) {
        l = &r->d->layers[i];

        if (l->n_heads > LLM_MAX_WIDTH / llm_max(rank + n_rot, k + v)) {
            return llm_fail(r->err, "%s: %s.attention.head_count: %u heads "
                            "are too many", llm_gguf_name(r->g),
                            r->d->hp.arch, l->n_heads);
        }

        l->latent = 1;
        l->n_kv_heads = 1;
        l->head_dim_k = rank + n_rot;
        l->head_dim_v = rank;
        l->head_plain = k - n_rot;
        l->head_out = v;
        l->q_rank = q_rank;
    }

    r->d->facts[LLM_LT_Q].out = LLM_DIM_Q_HEADS;
    r->d->facts[LLM_LT_ATTN_OUT].in = LLM_DIM_OUT_HEADS;

    return LLM_OK;
}


/*
 * YaRN's factor is on the scores, squared, and not on cos and sin
 * (.yarn_scores).  Files have a tenth of transformers' mscale_all_dim; mscale
 * always has the same value, so the factor on cos and sin is 1.
 */

static int
llm_deepseek_scale(llm_reader_t *r, uint32_t k)
{
    float                   scale, v;
    uint32_t                i;
    const llm_rope_conf_t  *c = &r->d->ropes[0].conf;

    scale = 0;

    if (llm_read_f32(r, "attention.scale", &scale) == LLM_ERROR) {
        return LLM_ERROR;
    }

    scale = scale == 0 ? (float) (1 / sqrt(k)) : scale;

    if (c->weight > 0) {
        v = llm_rope_mscale(c->factor, 10 * c->weight);
        scale *= v * v;
    }

    for (i = 0; i < r->d->hp.n_layers; i++) {
        r->d->layers[i].scale = scale;
    }

    return LLM_OK;
}


/* Mistral Large 3 scales up the queries of far positions */

static int
llm_deepseek_temper(llm_reader_t *r)
{
    float     scale;
    uint32_t  i, floor;

    scale = 0;
    floor = 0;

    if (llm_read_f32(r, "attention.temperature_scale", &scale) == LLM_ERROR
        || llm_read_u32(r, "attention.temperature_length", &floor)
           == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    if (scale != 0 && floor == 0) {
        return llm_read_missing(r, "attention.temperature_length");
    }

    for (i = 0; i < r->d->hp.n_layers; i++) {
        r->d->layers[i].temp_scale = scale;
        r->d->layers[i].temp_floor = floor;
    }

    return LLM_OK;
}


/* files without experts may still have fields of experts: Youtu */

static void
llm_deepseek_dense(llm_reader_t *r)
{
    size_t  i;

    static const char  *const useless[] = {
        "expert_feed_forward_length", "expert_weights_norm",
        "expert_weights_scale"
    };

    for (i = 0; i < llm_nelems(useless); i++) {
        llm_read_ignore(r, useless[i]);
    }
}


static int
llm_latent_read(llm_reader_t *r)
{
    uint32_t  k, v, q_rank;

    if (llm_latent_heads(r, &k, &v) != LLM_OK
        || llm_latent_rank(r, &q_rank) != LLM_OK
        || llm_latent_sizes(r, k, v, q_rank) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_deepseek_scale(r, k);
}


static int
llm_deepseek2_read(llm_reader_t *r)
{
    if (llm_latent_read(r) != LLM_OK) {
        return LLM_ERROR;
    }

    if (r->d->layers[r->d->hp.n_layers - 1].route.n_experts == 0) {
        llm_deepseek_dense(r);
    }

    return llm_deepseek_temper(r);
}


static int
llm_minicpm3_read(llm_reader_t *r)
{
    llm_minicpm_scales(r->d);

    if (llm_latent_read(r) != LLM_OK || llm_read_granite(r) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_read_long_rope(r);
}


const llm_arch_t  llm_arch_deepseek2 = {
    .name = "deepseek2",
    .yarn_scores = 1,
    .attention = &llm_block_latent,
    .experts = &llm_deepseek_experts,
    .read = llm_deepseek2_read
};

const llm_arch_t  llm_arch_mistral4 = {
    .name = "mistral4",
    .yarn_scores = 1,
    .attention = &llm_block_latent,
    .experts = &llm_deepseek_experts,
    .read = llm_deepseek2_read
};

const llm_arch_t  llm_arch_minicpm3 = {
    .name = "minicpm3",
    .rope = LLM_ROPE_NEOX,
    .yarn_scores = 1,
    .attention = &llm_block_latent,
    .globals = llm_long_rope,
    .read = llm_minicpm3_read
};

const llm_arch_t  llm_arch_plm = {
    .name = "plm",
    .act = LLM_GLU_RELU2,
    .yarn_scores = 1,
    .attention = &llm_block_latent,
    .tensors = llm_want_no_gate,
    .read = llm_latent_read
};
