/*
 * A bound of reasoning: behind so many tokens what ends it takes the place of
 * what the model draws.  The draws from then on are the host's, so that no
 * step is launched before the token is known.
 */

#include "engine/sched/sched_internal.h"


/* is the next draw, behind those in flight, beyond the bound? */

int
llm_think_is_over(const llm_seq_t *q)
{
    const llm_request_t  *msg;

    msg = q->req->msg;

    return (msg->flags & LLM_REQ_THINK_MOST) && q->emit.answer
           && llm_answer_is_reasoning(q->emit.answer)
           && q->emit.n_reasoning + q->pending >= msg->think_tokens;
}


/* puts what has to come in the place of a token that was drawn */

void
llm_think_end(llm_seq_t *q, llm_sampled_t *token)
{
    const llm_ids_t  *ids;

    if (!llm_think_is_over(q)) {
        q->n_ended = 0;
        return;
    }

    ids = &q->req->prep.endings[llm_answer_pair(q->emit.answer)];

    if (q->n_ended < ids->len) {
        q->ended.id = ids->data[q->n_ended++];
        q->ended.logprob = 0;           /* nothing else could come */

        token->id = q->ended.id;
        token->logprob = q->ended.logprob;

        if (token->n_top) {
            token->n_top = 1;
            token->top = &q->ended;
        }
    }
}
