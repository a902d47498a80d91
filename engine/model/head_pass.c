/*
 * The beginning and the end of a head's step; see head.h.  What lies between is
 * the layers, as in any model (forward.c).
 */

#include "engine/model/head_pass.h"


/* a step with states and no logits makes rows of EAGLE3's taps */

static int
llm_head_makes(const llm_model_t *m)
{
    return m->desc.head.kind == LLM_HEAD_EAGLE3
           && m->gives == LLM_GIVES_HIDDEN;
}


void
llm_head_begin(llm_model_t *m)
{
    llm_act_t    *in;
    llm_linear_t  out = { m->makes, NULL, m->act[LLM_MA_X], 0 };

    in = m->act[llm_head_makes(m) ? LLM_MA_TAPS : LLM_MA_PAIR];
    m->ops->input(m->exec, LLM_ROWS_ALL, 0, 0, in);

    if (m->desc.head.kind == LLM_HEAD_EAGLE3 && !llm_head_makes(m)) {
        m->ops->input(m->exec, LLM_ROWS_ALL, m->desc.head.n_in, 0,
                      m->act[LLM_MA_X]);
        return;
    }

    m->ops->linear(m->exec, LLM_ROWS_ALL, in, &out, 1);
}


int
llm_head_is_made(llm_model_t *m)
{
    if (!llm_head_makes(m)) {
        return 0;
    }

    m->ops->gather(m->exec, m->act[LLM_MA_X], m->act[LLM_MA_X_OUT]);
    m->ops->scale(m->exec, LLM_ROWS_OUT, 1, m->act[LLM_MA_X_OUT], 0,
                  m->act[LLM_MA_HIDDEN]);

    return 1;
}


void
llm_head_state(llm_model_t *m)
{
    llm_act_t    *const *a = m->act;
    llm_linear_t  out = { m->after, NULL, a[LLM_MA_HIDDEN], 0 };

    llm_norm_t  norm = {
        .kind = m->desc.arch->norm,
        .eps = m->desc.hp.norm_eps,
        .w = m->output_norm
    };

    if (m->desc.head.kind == LLM_HEAD_EAGLE3) {
        m->ops->scale(m->exec, LLM_ROWS_OUT, 1, a[LLM_MA_X_OUT], 0,
                      a[LLM_MA_HIDDEN]);
        return;
    }

    m->ops->norm(m->exec, LLM_ROWS_OUT, a[LLM_MA_X_OUT], &norm, a[LLM_MA_H]);
    m->ops->linear(m->exec, LLM_ROWS_OUT, a[LLM_MA_H], &out, 1);
}
