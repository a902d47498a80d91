/*
 * The limit of reasoning: after think_tokens, the tokens that end reasoning
 * replace those that the model draws.  The host draws from then on, so that no
 * step is launched before the token is known.
 */

#include "engine/sched/sched_internal.h"


/* is the next draw, after those in flight, beyond the limit? */

int
llm_think_is_over(const llm_seq_t *q)
{
    const llm_request_t  *msg;

    msg = q->req->msg;

    return (msg->flags & LLM_REQ_THINK_MOST) && q->emit.answer
           && llm_answer_is_reasoning(q->emit.answer)
           && q->emit.n_reasoning + q->pending >= msg->think_tokens;
}


/* beyond the limit, replaces a token that was drawn by the next token of the
   end of reasoning */

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
        q->ended.logprob = 0;           /* no other token was possible */

        token->id = q->ended.id;
        token->logprob = q->ended.logprob;

        if (token->n_top) {
            token->n_top = 1;
            token->top = &q->ended;
        }
    }
}
