/*
 * Creates the activation buffers of a step: those of the model itself and those
 * that the blocks of its layers list.  A buffer is as wide as the widest layer
 * needs; before a block runs, its buffers get the width of its layer
 * (llm_pass_buffers()).  The model owns them.
 */

#include "engine/model/blocks.h"


static const struct {
    llm_act_kind_t  kind;
    int             out;                /* max_out rows instead of batch */
} llm_acts[LLM_MA_N] = {
#define LLM_BUFFER(ID, kind, rows)                                           \
    { LLM_ACT_##kind, LLM_ROWS_##rows == LLM_ROWS_OUT },
#include "engine/model/tensors.def"
};


static void
llm_acts_widen(const llm_desc_t *d, const llm_layer_desc_t *l,
    const llm_buffer_want_t *b, uint32_t *cols)
{
    for ( /* void */ ; b && b->buffer != LLM_MA_N; b++) {
        cols[b->buffer] = llm_max(cols[b->buffer],
                                  llm_desc_dim(d, l, b->cols));
    }
}


/* the buffers of the part that the load is at; rows with results are in the
   last one alone */

static int
llm_acts_part(llm_load_t *l)
{
    int                      last;
    uint32_t                 i, k, cols[LLM_MA_N];
    llm_model_t             *m = l->m;
    const llm_layer_desc_t  *layer;

    last = (m->at == llm_part_last(m));
    memset(cols, 0, sizeof(cols));
    llm_acts_widen(&m->desc, &m->desc.layers[0], llm_forward_buffers, cols);

    for (i = m->at->first; i < m->at->end; i++) {
        layer = &m->desc.layers[i];

        for (k = 0; layer->blocks[k]; k++) {
            llm_acts_widen(&m->desc, layer, layer->blocks[k]->buffers, cols);
        }
    }

    for (i = 0; i < LLM_MA_N; i++) {
        if (cols[i] == 0 || (llm_acts[i].out && !last)) {
            continue;
        }

        m->act[i] = m->ops->act_create(m->exec, llm_acts[i].out ? m->max_out
                                                               : m->batch,
                                       cols[i], llm_acts[i].kind, l->err);
        if (m->act[i] == NULL) {
            return LLM_ERROR;
        }
    }

    return llm_keep_acts(l);
}


int
llm_load_acts(llm_load_t *l)
{
    uint32_t  i;

    for (i = 0; i < l->m->n_parts; i++) {
        llm_part_enter(l->m, i);

        if (llm_acts_part(l) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* one choice of experts for all layers of a part, as large as the largest
   needs */

int
llm_load_choice(llm_load_t *l)
{
    uint32_t              i;
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

    for (i = 0; i < m->n_parts; i++) {
        llm_part_enter(m, i);
        m->at->choice = m->ops->choice_create(m->exec, &o, l->err);

        if (m->at->choice == NULL) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
