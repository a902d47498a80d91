/*
 * The dimensions that tensors.def names, as numbers of a layer and of the
 * model; see arch.h.
 */

#include "engine/model/arch.h"


int
llm_layer_tensor_is_matrix(const llm_desc_t *d, llm_layer_tensor_t t)
{
    return d->facts[t].out != LLM_DIM_NONE
           && (d->facts[t].out < LLM_DIM_N_HEADS
               || d->facts[t].out > LLM_DIM_N_SSM_GROUPS)
           && d->facts[t].in != LLM_DIM_CONV_WIDTH;
}


uint32_t
llm_desc_dim(const llm_desc_t *d, const llm_layer_desc_t *l, llm_dim_t dim)
{
    switch (dim) {

    case LLM_DIM_EMBD:
        return d->hp.n_embd;

    case LLM_DIM_FF:
        return l->n_ff;

    case LLM_DIM_FF_EXPERT:
        return l->n_ff_expert;

    case LLM_DIM_FF_SHARED:
        return l->n_ff_shared;

    case LLM_DIM_ROUTER:
    case LLM_DIM_N_EXPERTS:
        return l->route.n_experts;

    case LLM_DIM_Q:
        return l->n_heads * l->head_dim_k;

    case LLM_DIM_K:
        return l->n_kv_heads * l->head_dim_k;

    case LLM_DIM_V:
        return l->n_kv_heads * l->head_dim_v;

    case LLM_DIM_HEADS:
        return l->n_heads * l->head_dim_v;

    case LLM_DIM_HEAD_K:
        return l->head_dim_k;

    case LLM_DIM_N_HEADS:
        return l->n_heads;

    case LLM_DIM_N_KV_HEADS:
        return l->n_kv_heads;

    case LLM_DIM_Q_GATE:
        return 2 * l->n_heads * l->head_dim_k;

    case LLM_DIM_CONV:
        return l->state.conv_channels;

    case LLM_DIM_CONV_WIDTH:
        return l->state.conv_width;

    case LLM_DIM_SSM:
        return l->state.n_heads * l->state.n_cols;

    case LLM_DIM_SSM_MIXED:
        return l->state.n_heads * l->state.n_cols + l->state.conv_channels;

    case LLM_DIM_SSM_HEAD:
        return l->state.n_cols;

    case LLM_DIM_SSM_HEADS:
    case LLM_DIM_N_SSM_HEADS:
        return l->state.n_heads;

    case LLM_DIM_SSM_HEADS_2:
        return 2 * l->state.n_heads;

    case LLM_DIM_SSM_GROUP:
        return l->n_ssm_groups ? l->state.n_heads * l->state.n_cols
                                 / l->n_ssm_groups : 0;

    case LLM_DIM_N_SSM_GROUPS:
        return l->n_ssm_groups;

    case LLM_DIM_Q_RANK:
        return l->q_rank;

    case LLM_DIM_LATENT:
        return l->latent ? l->head_dim_v : 0;

    case LLM_DIM_LATENT_ROPE:
        return l->latent ? l->head_dim_k - l->head_dim_v : 0;

    case LLM_DIM_HEAD_PLAIN:
        return l->head_plain;

    case LLM_DIM_HEAD_OUT:
        return l->head_out;

    case LLM_DIM_Q_HEADS:
        return l->latent ? l->n_heads * (l->head_plain + l->head_dim_k
                                         - l->head_dim_v) : 0;

    case LLM_DIM_OUT_HEADS:
        return l->n_heads * l->head_out;

    case LLM_DIM_KV_HEADS:
        return l->n_heads * (l->head_plain + l->head_out);

    case LLM_DIM_VOCAB:
        return d->hp.n_vocab;

    case LLM_DIM_CTX:
        return d->hp.n_ctx_train;

    case LLM_DIM_ROT:
        return d->ropes[0].n_rot / 2;

    case LLM_DIM_INPUT:
        return d->n_input;

    case LLM_DIM_INPUTS:
        return d->n_input * d->hp.n_layers;

    case LLM_DIM_ANY:
        return 0;

    case LLM_DIM_ONE:
    case LLM_DIM_NONE:
        break;
    }

    return 1;
}


uint32_t
llm_desc_max(const llm_desc_t *d, llm_dim_t dim)
{
    uint32_t  i, max;

    max = 0;

    for (i = 0; i < d->hp.n_layers; i++) {
        max = llm_max(max, llm_desc_dim(d, &d->layers[i], dim));
    }

    return max;
}
