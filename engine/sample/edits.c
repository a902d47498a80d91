/*
 * The stages that change logits of a row; see stages.h.  Each stage applies to
 * all edits, so each logit is changed in the order of the chain.
 */

#include "engine/sample/stages.h"


void
llm_stage_bias(llm_chain_t *c)
{
    uint32_t  i;

    for (i = 0; i < c->n_edits; i++) {
        c->scratch->row[c->edits[i].id] += c->edits[i].bias;
    }
}


void
llm_stage_repetition(llm_chain_t *c)
{
    float     l, penalty;
    uint32_t  i;

    penalty = c->params->repetition_penalty;

    for (i = 0; i < c->n_edits; i++) {
        if (c->edits[i].seen) {
            l = c->row[c->edits[i].id];
            c->scratch->row[c->edits[i].id] = (l > 0) ? l / penalty
                                                      : l * penalty;
        }
    }
}


void
llm_stage_frequency(llm_chain_t *c)
{
    uint32_t  i, count;

    for (i = 0; i < c->n_edits; i++) {
        count = c->edits[i].seen & ~LLM_EDIT_SEEN;

        if (count) {
            c->scratch->row[c->edits[i].id]
                -= (float) count * c->params->frequency_penalty;
        }
    }
}


void
llm_stage_presence(llm_chain_t *c)
{
    uint32_t  i;

    for (i = 0; i < c->n_edits; i++) {
        if (c->edits[i].seen & ~LLM_EDIT_SEEN) {
            c->scratch->row[c->edits[i].id] -= c->params->presence_penalty;
        }
    }
}
