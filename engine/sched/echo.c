/*
 * Echoed prompts: a completion with echo and logprobs begins with the
 * probabilities of the prompt's tokens.
 *
 * The logits of a row give the probability of the token after it, so all rows
 * of the prompt need logits; a step has as many of these rows as the device has
 * room for results.  The probabilities are kept with the prompt: its choices
 * share them, and a preemption does not lose them.
 */

#include "engine/sched/sched_internal.h"


/* does the row at pos give the probability of a token that is still unknown? */

int
llm_sched_wants_score(const llm_seq_t *q, uint32_t pos)
{
    return llm_seq_unscored(q) && pos + 1 >= q->prompt->n_scored
           && pos + 1 < q->prompt->n;
}


int
llm_sched_score(llm_sched_t *s, llm_seq_t *q, uint32_t pos,
    const float *logits, llm_err_t *err)
{
    llm_sampled_t      token;
    llm_prompt_ids_t  *p;

    p = &q->req->prep.prompts[q->index / q->req->msg->n];

    if (pos + 1 != p->n_scored) {
        return LLM_OK;                  /* another choice has scored it */
    }

    if (llm_sampler_score(q->sampler, s->scratch, logits, p->ids[pos + 1],
                          &token, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (llm_emit_add_prob(&p->probs, &token, p->ends[pos], p->ends[pos + 1])
        != LLM_OK)
    {
        return llm_fail(err, "no memory");
    }

    p->n_scored++;

    return LLM_OK;
}


/*
 * Puts the prompt at the beginning of the answer, once.  If the answer is not
 * streamed, it is sent only for the first of the prompt's choices.
 */

void
llm_sched_echo(llm_seq_t *q)
{
    int                   send;
    const llm_request_t  *msg;

    if (!q->echo_due) {
        return;
    }

    q->echo_due = 0;
    msg = q->req->msg;
    send = q->index % msg->n == 0
           || (msg->flags & (LLM_REQ_STREAM|LLM_REQ_SHOW)) == LLM_REQ_STREAM;

    llm_emit_echo(&q->emit, llm_req_echo(q->req, q->prompt),
                  &q->prompt->probs, send);
}
