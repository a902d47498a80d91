/*
 * What the readers of several architectures use: lists of tensors, and changes
 * to all layers of a description; see reader.h.
 */

#include "engine/model/blocks.h"
#include "engine/model/reader.h"


const llm_tensor_want_t  llm_want_qk_norms[] = {
    { LLM_LT_Q_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_K_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};

const llm_tensor_want_t  llm_want_post_norms[] = {
    { LLM_LT_ATTN_POST, LLM_WANT_REQUIRED },
    { LLM_LT_FFN_POST, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};

const llm_tensor_want_t  llm_want_qk_post_norms[] = {
    { LLM_LT_Q_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_K_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_ATTN_POST, LLM_WANT_REQUIRED },
    { LLM_LT_FFN_POST, LLM_WANT_REQUIRED },
    { LLM_LT_N, LLM_WANT_NONE }
};

/* a feed-forward network without a gate */
const llm_tensor_want_t  llm_want_no_gate[] = {
    { LLM_LT_GATE, LLM_WANT_NONE },
    { LLM_LT_GATE_BIAS, LLM_WANT_NONE },
    { LLM_LT_N, LLM_WANT_NONE }
};


const llm_tensor_want_t  llm_want_nextn[] = {
    { LLM_LT_NEXTN_PROJ, LLM_WANT_REQUIRED },
    { LLM_LT_NEXTN_EMBD_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_NEXTN_STATE_NORM, LLM_WANT_REQUIRED },
    { LLM_LT_NEXTN_EMBD, LLM_WANT_OPTIONAL },
    { LLM_LT_NEXTN_NORM, LLM_WANT_OPTIONAL },
    { LLM_LT_NEXTN_OUTPUT, LLM_WANT_OPTIONAL },
    { LLM_LT_N, LLM_WANT_NONE }
};


void
llm_desc_want(llm_desc_t *d, llm_layer_tensor_t t, llm_want_t want)
{
    uint32_t  i;

    for (i = 0; i < d->hp.n_layers; i++) {
        d->layers[i].want[t] = want;
    }
}


void
llm_desc_head_norms(llm_desc_t *d, llm_want_t want)
{
    d->facts[LLM_LT_Q_NORM].out = LLM_DIM_N_HEADS;
    d->facts[LLM_LT_K_NORM].out = LLM_DIM_N_KV_HEADS;
    llm_desc_want(d, LLM_LT_Q_NORM, want);
    llm_desc_want(d, LLM_LT_K_NORM, want);
}


void
llm_desc_row_norms(llm_desc_t *d)
{
    d->facts[LLM_LT_Q_NORM].in = LLM_DIM_Q;
    d->facts[LLM_LT_K_NORM].in = LLM_DIM_K;
}


void
llm_desc_rename_ffn_norm(llm_desc_t *d)
{
    d->facts[LLM_LT_FFN_NORM].name = d->facts[LLM_LT_ATTN_POST].name;
}


void
llm_desc_parallel(llm_desc_t *d)
{
    uint32_t  i;

    for (i = 0; i < d->hp.n_layers; i++) {
        d->layers[i].parallel = 1;
    }
}


void
llm_layer_want(llm_layer_desc_t *l, const llm_tensor_want_t *w)
{
    for ( /* void */ ; w && w->id != LLM_LT_N; w++) {
        l->want[w->id] = w->want;
    }
}


void
llm_desc_chain(llm_layer_desc_t *l, const llm_block_t *const *blocks,
    uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n && blocks[i]; i++) {
        l->blocks[i] = blocks[i];
        llm_layer_want(l, blocks[i]->tensors);
    }

    l->blocks[i] = NULL;
}
