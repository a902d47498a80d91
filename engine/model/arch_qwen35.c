/*
 * Qwen3-Next and Qwen 3.5: layers of gated delta nets, and every few layers
 * attention whose heads are gated; each is followed by a feed-forward network
 * or a mixture of experts.
 */

#include "engine/model/blocks.h"
#include "engine/model/reader.h"

#include <stdio.h>


static const llm_arch_experts_t  llm_qwen35_experts = {
    .score = LLM_ROUTE_SOFTMAX,
    .normalize = 1,
    .shared = LLM_WANT_REQUIRED
};


/* what the three architectures have in common; tiled: in the files, heads of V
   are tiled over those of K */

static int
llm_delta_read(llm_reader_t *r, int tiled)
{
    uint32_t           i;
    llm_layer_desc_t  *l;

    llm_desc_rename_ffn_norm(r->d);
    r->d->facts[LLM_LT_Q].out = LLM_DIM_Q_GATE;
    r->d->facts[LLM_LT_SSM_A].in = LLM_DIM_SSM_HEADS;
    r->d->facts[LLM_LT_SSM_A].out = LLM_DIM_NONE;
    r->d->facts[LLM_LT_SSM_NORM].in = LLM_DIM_SSM_HEAD;
    r->d->facts[LLM_LT_SSM_NORM].out = LLM_DIM_NONE;

    for (i = 0; i < r->d->hp.n_layers; i++) {
        l = &r->d->layers[i];
        l->gated = l->n_kv_heads != 0;
        l->tiled = tiled;

        if (l->n_ff_shared) {
            l->want[LLM_LT_SWITCH] = LLM_WANT_REQUIRED;
        }

        if (l->gated && l->head_dim_k != l->head_dim_v) {
            return llm_fail(r->err, "%s: %s.attention.value_length: %u is not "
                            "supported with a gate of %u",
                            llm_gguf_name(r->g), r->d->hp.arch,
                            l->head_dim_v, l->head_dim_k);
        }
    }

    return llm_read_ssm(r);
}


/* positions have three parts, which take turns */

static int
llm_qwen35_read(llm_reader_t *r)
{
    int  has;

    return llm_read_sections(r, 3, &has) == LLM_OK ? llm_delta_read(r, 1)
                                                   : LLM_ERROR;
}


/* alpha and beta are one tensor; in older files, Q, K, V and the gate are one,
   too */

static int
llm_qwen3next_read(llm_reader_t *r)
{
    char               name[64];
    uint32_t           i;
    llm_layer_desc_t  *l;

    for (i = 0; i < r->d->hp.n_layers; i++) {
        l = &r->d->layers[i];

        if (l->want[LLM_LT_DELTA_ALPHA]) {
            l->want[LLM_LT_DELTA_ALPHA] = LLM_WANT_NONE;
            l->want[LLM_LT_DELTA_BETA] = LLM_WANT_NONE;
            l->want[LLM_LT_DELTA_BOTH] = LLM_WANT_REQUIRED;
        }

        snprintf(name, sizeof(name), "blk.%u.%s", i,
                 r->d->facts[LLM_LT_DELTA_MIXED].name);

        if (l->want[LLM_LT_DELTA_QKV] && llm_gguf_find_tensor(r->g, name)) {
            l->want[LLM_LT_DELTA_QKV] = LLM_WANT_NONE;
            l->want[LLM_LT_DELTA_GATE] = LLM_WANT_NONE;
            l->want[LLM_LT_DELTA_MIXED] = LLM_WANT_REQUIRED;
        }
    }

    return llm_delta_read(r, 0);
}


const llm_arch_t  llm_arch_qwen3next = {
    .name = "qwen3next",
    .rope = LLM_ROPE_NEOX,
    .recurrent = &llm_block_delta,
    .experts = &llm_qwen35_experts,
    .tensors = llm_want_qk_norms,
    .predicts = 1,
    .read = llm_qwen3next_read
};

const llm_arch_t  llm_arch_qwen35 = {
    .name = "qwen35",
    .rope = LLM_ROPE_NEOX,
    .recurrent = &llm_block_delta,
    .tensors = llm_want_qk_norms,
    .predicts = 1,
    .read = llm_qwen35_read
};

const llm_arch_t  llm_arch_qwen35moe = {
    .name = "qwen35moe",
    .rope = LLM_ROPE_NEOX,
    .recurrent = &llm_block_delta,
    .experts = &llm_qwen35_experts,
    .tensors = llm_want_qk_norms,
    .predicts = 1,
    .read = llm_qwen35_read
};
