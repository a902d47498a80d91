/*
 * What a step keeps of all its rows for a head that drafts: the states after
 * the last norm, or the inputs of some layers.
 *
 * Invariant: the rows that give results are computed as they are without
 * keep, so logits have the same bits.  The other rows stop in the last layer,
 * once its keys and values are in the cache; with keep they are computed to its
 * end, in a second pass beside that of the results.  Where all rows give
 * results their states are kept from there.
 *
 * The buffers belong to the model's parts.
 */

#include "engine/model/keep.h"

#include <assert.h>


int
llm_keep_check(llm_load_t *l)
{
    uint32_t           i;
    llm_model_t       *m = l->m;
    const llm_keep_t  *k = &l->opts->keep;

    for (i = 0; i < k->n_layers; i++) {
        if (k->layers[i] >= m->desc.hp.n_layers) {
            return llm_fail(l->err, "%s: the head that drafts for it reads "
                            "layer %u, and it has %u layers",
                            llm_gguf_name(m->gguf), k->layers[i],
                            m->desc.hp.n_layers);
        }
    }

    if (l->opts->split_rows && (k->states || k->n_layers)) {
        return llm_fail(l->err, "%s: split=rows: no head can draft for a model "
                        "whose rows are divided; split=layers has no such "
                        "limit", llm_gguf_name(m->gguf));
    }

    m->keep = *k;

    return LLM_OK;
}


/* is buffer i in the part that the load is at? */

static int
llm_keep_is_here(const llm_model_t *m, uint32_t i)
{
    const llm_keep_t  *k = &m->keep;

    if (k->states) {
        return i == 0 && m->at == llm_part_last(m);
    }

    return i < k->n_layers && k->layers[i] >= m->at->first
           && k->layers[i] < m->at->end;
}


int
llm_keep_acts(llm_load_t *l)
{
    uint32_t      i;
    llm_model_t  *m = l->m;

    for (i = 0; i < llm_nelems(m->keep.layers); i++) {
        if (!llm_keep_is_here(m, i)) {
            continue;
        }

        m->act[LLM_MA_KEEP_0 + i] =
            m->ops->act_create(m->exec, m->batch, m->desc.hp.n_embd,
                               LLM_ACT_RESIDUAL, l->err);

        if (m->act[LLM_MA_KEEP_0 + i] == NULL) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


void
llm_keep_input(llm_model_t *m, uint32_t layer)
{
    uint32_t  i;

    for (i = 0; i < m->keep.n_layers; i++) {
        if (m->keep.layers[i] == layer) {
            m->ops->scale(m->exec, LLM_ROWS_ALL, 1, m->act[LLM_MA_X], 0,
                          m->act[LLM_MA_KEEP_0 + i]);
        }
    }
}


/* keeps the states of these rows */

static void
llm_keep_norm(llm_model_t *m, llm_rows_t rows, const llm_act_t *x)
{
    llm_act_t  *y = m->act[LLM_MA_KEEP_0];

    llm_norm_t  norm = {
        .kind = m->desc.arch->norm,
        .eps = m->desc.hp.norm_eps,
        .w = m->output_norm,
        .bias = m->output_norm_bias
    };

    if (norm.w || m->desc.arch->bare) {
        m->ops->norm(m->exec, rows, x, &norm, y);

    } else {
        m->ops->scale(m->exec, rows, 1, x, 0, y);
    }
}


int
llm_keep_all(const llm_model_t *m)
{
    return m->keep.states && !m->all_out;
}


void
llm_keep_rest(const llm_pass_t *p, uint32_t block)
{
    uint32_t    i;
    llm_pass_t  all = *p;

    for (i = block + 1; all.d->blocks[i]; i++) {
        llm_pass_buffers(&all, all.d->blocks[i]->buffers);
        all.d->blocks[i]->forward(&all);
    }

    llm_keep_norm(p->m, LLM_ROWS_ALL, all.x);
}


void
llm_keep_results(llm_model_t *m)
{
    if (m->keep.states && m->all_out) {
        llm_keep_norm(m, LLM_ROWS_OUT, m->act[LLM_MA_X_OUT]);
    }
}


const float *
llm_model_kept(llm_model_t *m, uint32_t i, uint32_t row, uint32_t n)
{
    assert(row + n <= m->n_kept);
    assert(i < llm_max(m->keep.n_layers, (uint32_t) (m->keep.states != 0)));

    llm_part_enter(m, m->keep.states ? m->n_parts - 1
                                     : llm_part_of(m, m->keep.layers[i]));

    return m->ops->map(m->exec, m->act[LLM_MA_KEEP_0 + i], row, n);
}
