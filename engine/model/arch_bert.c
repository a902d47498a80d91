/*
 * Encoders with BERT's layers, whose norms come after attention and after the
 * feed-forward network: BERT itself (and what is converted to it: RoBERTa,
 * XLM-RoBERTa, bge, e5, MiniLM), Nomic's with and without experts, Jina's v2
 * (also the one for code) and v3.
 *
 * Positions are embeddings, RoPE or ALiBi.
 */

#include "engine/model/blocks.h"
#include "engine/model/reader.h"


static const llm_tensor_want_t  llm_bert_tensors[] = {
    { LLM_LT_ATTN_NORM, LLM_WANT_NONE },
    { LLM_LT_FFN_NORM, LLM_WANT_NONE },
    { LLM_LT_GATE, LLM_WANT_NONE },
    { LLM_LT_GATE_BIAS, LLM_WANT_NONE },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_gated_bert_tensors[] = {
    { LLM_LT_ATTN_NORM, LLM_WANT_NONE },
    { LLM_LT_FFN_NORM, LLM_WANT_NONE },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_code_bert_tensors[] = {
    { LLM_LT_ATTN_NORM, LLM_WANT_NONE },
    { LLM_LT_FFN_NORM, LLM_WANT_NONE },
    { LLM_LT_Q_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_Q_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_K_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_K_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_mixed_bert_tensors[] = {
    { LLM_LT_ATTN_NORM, LLM_WANT_NONE },
    { LLM_LT_FFN_NORM, LLM_WANT_NONE },
    { LLM_LT_GATE, LLM_WANT_NONE },
    { LLM_LT_GATE_BIAS, LLM_WANT_NONE },
    { LLM_LT_GATE_EXPS, LLM_WANT_NONE },
    { LLM_LT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_bert_globals[] = {
    { LLM_GT_EMBD_NORM, LLM_WANT_REQUIRED },
    { LLM_GT_EMBD_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_GT_TOKEN_TYPES, LLM_WANT_OPTIONAL },
    { LLM_GT_POS_EMBD, LLM_WANT_REQUIRED },
    { LLM_GT_OUTPUT_NORM, LLM_WANT_NONE },
    { LLM_GT_N, LLM_WANT_NONE }
};

static const llm_tensor_want_t  llm_turned_bert_globals[] = {
    { LLM_GT_EMBD_NORM, LLM_WANT_REQUIRED },
    { LLM_GT_EMBD_NORM_BIAS, LLM_WANT_REQUIRED },
    { LLM_GT_TOKEN_TYPES, LLM_WANT_OPTIONAL },
    { LLM_GT_OUTPUT_NORM, LLM_WANT_NONE },
    { LLM_GT_N, LLM_WANT_NONE }
};

static const llm_arch_experts_t  llm_bert_experts = {
    .score = LLM_ROUTE_SOFTMAX
};


/* an expert is a network without a gate */

static int
llm_mixed_bert_read(llm_reader_t *r)
{
    uint32_t  i;

    static const llm_block_t  *const mixed[] = {
        &llm_block_attention, &llm_block_attn_after, &llm_block_mixture,
        &llm_block_layer_after
    };

    for (i = 0; i < r->d->hp.n_layers; i++) {
        if (r->d->layers[i].route.n_experts == 0) {
            continue;
        }

        memset(r->d->layers[i].want, 0, sizeof(r->d->layers[i].want));
        r->d->layers[i].n_ff = 0;
        llm_desc_chain(&r->d->layers[i], mixed, llm_nelems(mixed));
        llm_layer_want(&r->d->layers[i], r->d->arch->tensors);
    }

    return LLM_OK;
}


/* Jina's for code: Q and K are normalised as whole rows, and attention's
   result is normalised twice */

static void
llm_code_bert(llm_desc_t *d)
{
    uint32_t           i;
    llm_layer_desc_t  *l;

    static const llm_block_t  *const twice[] = {
        &llm_block_keep, &llm_block_attention, &llm_block_attn_after,
        &llm_block_attn_again, &llm_block_ffn, &llm_block_layer_after
    };

    d->up_first = 1;
    llm_desc_row_norms(d);

    for (i = 0; i < d->hp.n_layers; i++) {
        l = &d->layers[i];
        llm_desc_chain(l, twice, llm_nelems(twice));
        llm_layer_want(l, llm_code_bert_tensors);
    }
}


/* ALiBi; the gate may be the first half of the "up" matrix, or be missing */

static int
llm_sloped_bert_read(llm_reader_t *r)
{
    const llm_gguf_tensor_t  *up;

    r->d->max_slope = 8;

    if (llm_gguf_find_tensor(r->g, "blk.0.attn_norm_2.weight")) {
        llm_code_bert(r->d);
    }

    up = llm_gguf_find_tensor(r->g, "blk.0.ffn_up.weight");

    if (up && up->ne[1] == r->d->layers[0].n_ff
        && llm_gguf_find_tensor(r->g, "blk.0.ffn_gate.weight") == NULL)
    {
        llm_desc_want(r->d, LLM_LT_GATE, LLM_WANT_NONE);
    }

    if (llm_read_f32(r, "attention.max_alibi_bias", &r->d->max_slope)
        == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    if (!(r->d->max_slope > 0 && r->d->max_slope <= 64)) {
        return llm_fail(r->err, "%s: %s.attention.max_alibi_bias: %g is not "
                        "within 0 and 64", llm_gguf_name(r->g),
                        r->d->hp.arch, r->d->max_slope);
    }

    return LLM_OK;
}


#define LLM_BERT                                                             \
    .encoder = 1,                                                            \
    .norm = LLM_NORM_LAYER,                                                  \
    .blocks = { &llm_block_attention, &llm_block_attn_after,                 \
                &llm_block_ffn, &llm_block_layer_after }

const llm_arch_t  llm_arch_bert = {
    .name = "bert",
    .rope_use = LLM_ROPE_UNUSED,
    LLM_BERT,
    .act = LLM_GLU_GELU_ERF,
    .tensors = llm_bert_tensors,
    .globals = llm_bert_globals
};

const llm_arch_t  llm_arch_nomic_bert = {
    .name = "nomic-bert",
    LLM_BERT,
    .rope = LLM_ROPE_NEOX,
    .tensors = llm_gated_bert_tensors,
    .globals = llm_turned_bert_globals
};

const llm_arch_t  llm_arch_nomic_bert_moe = {
    .name = "nomic-bert-moe",
    LLM_BERT,
    .rope = LLM_ROPE_NEOX,
    .act = LLM_GLU_GELU_ERF,
    .experts = &llm_bert_experts,
    .tensors = llm_mixed_bert_tensors,
    .globals = llm_turned_bert_globals,
    .read = llm_mixed_bert_read
};

const llm_arch_t  llm_arch_jina_bert_v2 = {
    .name = "jina-bert-v2",
    .rope_use = LLM_ROPE_UNUSED,
    LLM_BERT,
    .act = LLM_GLU_GELU_ERF,
    .tensors = llm_gated_bert_tensors,
    .globals = llm_turned_bert_globals,
    .read = llm_sloped_bert_read
};

const llm_arch_t  llm_arch_jina_bert_v3 = {
    .name = "jina-bert-v3",
    LLM_BERT,
    .rope = LLM_ROPE_NEOX,
    .act = LLM_GLU_GELU_ERF,
    .tensors = llm_bert_tensors,
    .globals = llm_turned_bert_globals
};
