/*
 * Mamba-2 alone, together with attention in each layer (Falcon-H1), or in
 * layers of its own (Nemotron-H).
 */

#include "engine/model/blocks.h"
#include "engine/model/reader.h"


/* the smallest time step, which files do not have */
#define LLM_NEMOTRON_DT_MIN  0.001f


static const llm_arch_experts_t  llm_nemotron_h_experts = {
    .score = LLM_ROUTE_SIGMOID,
    .normalize = 1,
    .shared = LLM_WANT_OPTIONAL
};


/* the norm of the gated result is optional, and the norm before the network
   has another name */

static int
llm_falcon_h1_read(llm_reader_t *r)
{
    r->d->facts[LLM_LT_FFN_NORM].name = "ffn_norm";
    llm_desc_want(r->d, LLM_LT_SSM_NORM, LLM_WANT_OPTIONAL);

    return llm_read_ssm(r);
}


/* makes a layer of this block alone */

static void
llm_nemotron_h_layer(llm_layer_desc_t *l, const llm_block_t *block)
{
    memset(l->want, 0, sizeof(l->want));
    llm_desc_chain(l, &block, 1);
    l->want[LLM_LT_GATE] = LLM_WANT_NONE;
    l->want[LLM_LT_GATE_BIAS] = LLM_WANT_NONE;
    l->want[LLM_LT_GATE_EXPS] = LLM_WANT_NONE;
    l->want[LLM_LT_GATE_EXPS_BIAS] = LLM_WANT_NONE;

    if (block != &llm_block_attention) {
        l->n_heads = 0;
        l->n_kv_heads = 0;
        l->head_dim_k = 0;
        l->head_dim_v = 0;
    }

    if (block != &llm_block_mixture) {
        memset(&l->route, 0, sizeof(llm_route_t));
        l->n_ff_expert = 0;
        l->n_ff_shared = 0;
    }

    if (l->n_ff_shared) {
        l->want[LLM_LT_UP_SHARED] = LLM_WANT_REQUIRED;
        l->want[LLM_LT_DOWN_SHARED] = LLM_WANT_REQUIRED;
    }
}


/*
 * A layer is one of four blocks: with a feed_forward_length it is a network or
 * a mixture, else attention if it has heads for K, else Mamba-2.  There is no
 * RoPE, and no network has a gate.
 */

static int
llm_nemotron_h_read(llm_reader_t *r)
{
    uint32_t            i, n_ff;
    llm_layer_desc_t   *l;
    const llm_block_t  *block;

    r->d->facts[LLM_LT_FFN_NORM].name = r->d->facts[LLM_LT_ATTN_NORM].name;

    for (i = 0; i < r->d->hp.n_layers; i++) {
        l = &r->d->layers[i];
        n_ff = 0;

        if (llm_read_layer(r, "feed_forward_length", i, &n_ff) == LLM_ERROR)
        {
            return LLM_ERROR;
        }

        if (n_ff) {
            block = l->route.n_experts ? &llm_block_mixture : &llm_block_ffn;

        } else {
            block = l->n_kv_heads ? &llm_block_attention : &llm_block_mamba2;
        }

        llm_nemotron_h_layer(l, block);
        l->n_ff = block == &llm_block_ffn ? n_ff : 0;
        l->dt_min = LLM_NEMOTRON_DT_MIN;
    }

    return llm_read_ssm(r);
}


const llm_arch_t  llm_arch_mamba2 = {
    .name = "mamba2",
    .recurrent = &llm_block_mamba2,
    .read = llm_read_ssm
};

const llm_arch_t  llm_arch_falcon_h1 = {
    .name = "falcon-h1",
    .rope = LLM_ROPE_NEOX,
    .blocks = { &llm_block_attention, &llm_block_mamba2_beside,
                &llm_block_ffn },
    .read = llm_falcon_h1_read
};

const llm_arch_t  llm_arch_nemotron_h = {
    .name = "nemotron_h",
    .rope_use = LLM_ROPE_UNUSED,
    .act = LLM_GLU_RELU2,
    .recurrent = &llm_block_mamba2,
    .read = llm_nemotron_h_read
};

const llm_arch_t  llm_arch_nemotron_h_moe = {
    .name = "nemotron_h_moe",
    .rope_use = LLM_ROPE_UNUSED,
    .act = LLM_GLU_RELU2,
    .recurrent = &llm_block_mamba2,
    .experts = &llm_nemotron_h_experts,
    .read = llm_nemotron_h_read
};
