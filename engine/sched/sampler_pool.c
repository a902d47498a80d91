/*
 * Samplers and masks of running sequences.  A sampler has tables of the
 * vocabulary's size, so only running sequences have one: when a sequence is
 * admitted, a free sampler is set up with its parameters, its prompt and its
 * tokens.  Samplers are created when first needed, at most max_seqs, and freed
 * with the scheduler.  A sequence that is embedded or scored needs none.
 */

#include "engine/sched/sched_internal.h"


static llm_sampler_t *
llm_seat_sampler(llm_sched_t *s, const llm_request_t *msg, uint32_t choice)
{
    llm_sampler_t           *sampler;
    const llm_logit_bias_t  *bias;

    bias = llm_ref_data(msg, msg->logit_bias);

    if (s->n_samplers == 0) {
        return llm_sampler_create(&msg->sampling, choice, bias,
                                  msg->logit_bias.len,
                                  s->conf.runner.n_vocab);
    }

    sampler = s->samplers[s->n_samplers - 1];

    if (llm_sampler_restart(sampler, &msg->sampling, choice, bias,
                            msg->logit_bias.len)
        != LLM_OK)
    {
        return NULL;
    }

    s->n_samplers--;

    return sampler;
}


int
llm_seat_take(llm_sched_t *s, llm_seq_t *q, llm_err_t *err)
{
    uint32_t              i;
    const llm_request_t  *msg;

    if (llm_seq_pools(q)) {
        return LLM_OK;
    }

    msg = q->req->msg;

    q->sampler = llm_seat_sampler(s, msg, q->index % msg->n);
    if (q->sampler == NULL) {
        return llm_fail(err, "no memory");
    }

    if (llm_rule_take(s, q, err) != LLM_OK
        || llm_trigger_take(s, q, err) != LLM_OK)
    {
        llm_seat_give(s, q);
        return LLM_ERROR;
    }

    if (llm_sampler_set_filter(q->sampler, &q->req->prep.filter) != LLM_OK) {
        llm_seat_give(s, q);
        return llm_fail(err, "no memory");
    }

    if (llm_sampler_wants_prompt(q->sampler)) {
        for (i = 0; i < q->prompt->n; i++) {
            if (llm_prompt_media(q->prompt, i) == NULL) {
                llm_sampler_see_prompt(q->sampler, q->prompt->ids[i]);
            }
        }
    }

    for (i = 0; i < q->n_gen; i++) {
        llm_sampler_accept(q->sampler, q->gen[i]);
    }

    return LLM_OK;
}


void
llm_seat_give(llm_sched_t *s, llm_seq_t *q)
{
    llm_rule_give(s, q);

    if (q->sampler) {
        s->samplers[s->n_samplers++] = q->sampler;
        q->sampler = NULL;
    }
}


void
llm_seat_free(llm_sched_t *s)
{
    while (s->n_samplers) {
        llm_sampler_free(s->samplers[--s->n_samplers]);
    }

    free(s->samplers);
}
