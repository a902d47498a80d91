/*
 * The buffers of a step that a model needs, and how wide its largest layer
 * makes each; blocks set the width that theirs has (llm_pass_act()).
 */

#include "engine/model/model_internal.h"


/* what each buffer of activations is for; its columns: llm_acts_cols() */
static const struct {
    llm_act_kind_t  kind;
    int             out;                /* it has max_out rows, not batch */
} llm_acts[LLM_MA_N] = {
    [LLM_MA_X]             = { LLM_ACT_RESIDUAL, 0 },
    [LLM_MA_H]             = { LLM_ACT_VALUE, 0 },
    [LLM_MA_Q]             = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_K]             = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_V]             = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_Q_LOW]         = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_Q_LOW_H]       = { LLM_ACT_VALUE, 0 },
    [LLM_MA_Q_HEADS]       = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_ATTN]          = { LLM_ACT_VALUE, 0 },
    [LLM_MA_HEADS]         = { LLM_ACT_VALUE, 0 },
    [LLM_MA_GATE]          = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_UP]            = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_GLU]           = { LLM_ACT_VALUE, 0 },
    [LLM_MA_OUT]           = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_ROUTER]        = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_ROUTER_IN]     = { LLM_ACT_VALUE, 0 },
    [LLM_MA_SWITCH]        = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_MIXED]         = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_KEPT]          = { LLM_ACT_RESIDUAL, 0 },
    [LLM_MA_KEPT_OUT]      = { LLM_ACT_RESIDUAL, 1 },
    [LLM_MA_Q_GATE]        = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_ATTN_GATE]     = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_ATTN_OUT]      = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_CONV_IN]       = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_CONV]          = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_SSM]           = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_SSM_GATE]      = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_SSM_GLU]       = { LLM_ACT_VALUE, 0 },
    [LLM_MA_SSM_DT]        = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_SSM_BETA]      = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_SSM_BOTH]      = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_INPUTS]        = { LLM_ACT_RESIDUAL, 0 },
    [LLM_MA_INPUTS_PROJ]   = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_INPUT]         = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_INPUT_OUT]     = { LLM_ACT_PRODUCT, 1 },
    [LLM_MA_INPUT_GATE]    = { LLM_ACT_PRODUCT, 0 },
    [LLM_MA_INPUT_GLU]     = { LLM_ACT_VALUE, 0 },
    [LLM_MA_H_OUT]         = { LLM_ACT_VALUE, 1 },
    [LLM_MA_X_OUT]         = { LLM_ACT_RESIDUAL, 1 },
    [LLM_MA_LOGITS]        = { LLM_ACT_LOGITS, 1 },
    [LLM_MA_STATE]         = { LLM_ACT_STATE, 1 }
};


/* does any layer want the tensor? */

static int
llm_acts_wanted(const llm_desc_t *d, llm_layer_tensor_t t)
{
    uint32_t  i;

    for (i = 0; i < d->hp.n_layers && d->layers[i].want[t] == LLM_WANT_NONE;
         i++)
    { /* void */ }

    return i < d->hp.n_layers;
}


/* 0: the model has no use for the buffer */

static uint32_t
llm_acts_cols(const llm_desc_t *d, llm_model_act_t a)
{
    switch (a) {

    case LLM_MA_Q:
        return llm_desc_max(d, LLM_DIM_Q);

    case LLM_MA_K:
        return llm_desc_max(d, LLM_DIM_K);

    case LLM_MA_V:
        return llm_desc_max(d, LLM_DIM_V);

    case LLM_MA_ATTN:
        return llm_desc_max(d, LLM_DIM_HEADS);

    case LLM_MA_Q_LOW:
    case LLM_MA_Q_LOW_H:
        return llm_desc_max(d, LLM_DIM_Q_RANK);

    case LLM_MA_Q_HEADS:
        return llm_desc_max(d, LLM_DIM_Q_HEADS);

    case LLM_MA_HEADS:
        return llm_desc_max(d, LLM_DIM_OUT_HEADS);

    case LLM_MA_GATE:
    case LLM_MA_UP:
    case LLM_MA_GLU:
        return llm_max(llm_desc_max(d, LLM_DIM_FF),
                       llm_desc_max(d, LLM_DIM_FF_SHARED));

    case LLM_MA_ROUTER:
        return llm_desc_max(d, LLM_DIM_ROUTER);

    case LLM_MA_ROUTER_IN:
    case LLM_MA_MIXED:
        return llm_acts_wanted(d, LLM_LT_ROUTER_SCALE) ? d->hp.n_embd : 0;

    case LLM_MA_KEPT:
    case LLM_MA_KEPT_OUT:
        return llm_acts_wanted(d, LLM_LT_ATTN_AGAIN) ? d->hp.n_embd : 0;

    case LLM_MA_SWITCH:
        return llm_desc_max(d, LLM_DIM_FF_SHARED) ? 1 : 0;

    case LLM_MA_Q_GATE:
        return d->facts[LLM_LT_Q].out == LLM_DIM_Q_GATE
               ? llm_desc_max(d, LLM_DIM_Q_GATE) : 0;

    case LLM_MA_ATTN_GATE:
    case LLM_MA_ATTN_OUT:
        return d->facts[LLM_LT_Q].out == LLM_DIM_Q_GATE
               || llm_acts_wanted(d, LLM_LT_ATTN_GATE)
               ? llm_desc_max(d, LLM_DIM_HEADS) : 0;

    case LLM_MA_CONV_IN:
    case LLM_MA_CONV:
        return llm_desc_max(d, LLM_DIM_CONV);

    case LLM_MA_SSM:
    case LLM_MA_SSM_GATE:
    case LLM_MA_SSM_GLU:
        return llm_max(llm_desc_max(d, LLM_DIM_SSM),
                       llm_desc_max(d, LLM_DIM_CONV));

    case LLM_MA_SSM_DT:
    case LLM_MA_SSM_BETA:
        return llm_desc_max(d, LLM_DIM_SSM_HEADS);

    case LLM_MA_SSM_BOTH:
        return llm_desc_max(d, LLM_DIM_SSM_HEADS_2);

    case LLM_MA_INPUTS:
    case LLM_MA_INPUTS_PROJ:
        return d->n_input * d->hp.n_layers;

    case LLM_MA_INPUT:
    case LLM_MA_INPUT_OUT:
    case LLM_MA_INPUT_GATE:
    case LLM_MA_INPUT_GLU:
        return d->n_input;

    case LLM_MA_LOGITS:
        return d->hp.encoder ? 0 : d->hp.n_vocab;

    default:
        return d->hp.n_embd;
    }
}


int
llm_load_acts(llm_load_t *l)
{
    uint32_t      i, cols;
    llm_model_t  *m;

    m = l->m;

    for (i = 0; i < LLM_MA_N; i++) {
        cols = llm_acts_cols(&m->desc, i);

        if (cols == 0) {
            continue;
        }

        m->act[i] = m->ops->act_create(m->dev,
                                       llm_acts[i].out ? m->max_out
                                                             : m->batch,
                                       cols, llm_acts[i].kind, l->err);
        if (m->act[i] == NULL) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* one choice of experts for all layers: as much as the largest needs */

int
llm_load_choice(llm_load_t *l)
{
    llm_model_t          *m = l->m;
    const llm_hparams_t  *hp = &m->desc.hp;

    llm_choice_opts_t  o = {
        .max_rows = m->batch,
        .n_experts = hp->n_experts,
        .n_used = hp->n_experts_used,
        .n_in = hp->n_embd,
        .n_ff = hp->n_ff_expert
    };

    if (hp->n_experts == 0) {
        return LLM_OK;
    }

    m->choice = m->ops->choice_create(m->dev, &o, l->err);

    return m->choice ? LLM_OK : LLM_ERROR;
}
