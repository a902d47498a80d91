/*
 * What a constrained sequence may draw next.  A running sequence whose
 * request has a grammar has a matcher, which has seen its tokens, and a mask
 * of the tokens that may follow.  The mask is computed while the device works
 * (llm_rule_prepare()); a first token's when it is drawn.
 */

#include "engine/sched/sched_internal.h"


int
llm_rule_take(llm_sched_t *s, llm_seq_t *q, llm_err_t *err)
{
    uint32_t  i, n;

    if (q->req->prep.gram == NULL) {
        return LLM_OK;
    }

    q->matcher = llm_matcher_create(llm_gram_of(q->req->prep.gram), err);
    n = llm_max(s->conf.runner.n_vocab, llm_vocab_size(s->conf.vocab));
    q->mask = calloc(n / 32 + 1, sizeof(*q->mask));
    q->masked = 0;

    if (q->matcher == NULL || q->mask == NULL) {
        llm_rule_give(q);
        return llm_fail(err, "no memory for a grammar");
    }

    for (i = 0; i < q->n_gen; i++) {
        if (llm_matcher_accept(q->matcher, q->gen[i], err) != LLM_OK) {
            llm_rule_give(q);
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


void
llm_rule_give(llm_seq_t *q)
{
    llm_matcher_free(q->matcher);
    free(q->mask);
    q->matcher = NULL;
    q->mask = NULL;
}


int
llm_rule_mask(llm_seq_t *q, const uint32_t **mask, llm_err_t *err)
{
    *mask = q->mask;

    if (q->matcher == NULL || q->masked == q->n_gen + 1) {
        return LLM_OK;
    }

    if (llm_matcher_mask(q->matcher, q->mask, err) != LLM_OK) {
        return LLM_ERROR;
    }

    q->masked = q->n_gen + 1;

    return LLM_OK;
}


/* the masks of the step in flight; one that fails fails again when it is
   needed, and there the error is handled */

void
llm_rule_prepare(llm_step_t *st)
{
    uint32_t         i;
    llm_err_t        err;
    llm_seq_t       *q;
    const uint32_t  *mask;

    for (i = 0; i < st->batch.n_out; i++) {
        q = st->out_seqs[i];

        if (q && q->matcher) {
            (void) llm_rule_mask(q, &mask, &err);
        }
    }
}


int
llm_rule_accept(llm_seq_t *q, int32_t id, llm_err_t *err)
{
    return q->matcher ? llm_matcher_accept(q->matcher, id, err) : LLM_OK;
}


int
llm_rule_ends(const llm_seq_t *q)
{
    return q->matcher && llm_matcher_must_end(q->matcher);
}
