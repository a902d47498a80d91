/*
 * Ends a sequence, or all sequences of a request, and frees what they hold; no
 * other file does.
 */

#include "engine/sched/sched_internal.h"


/* refunds the tenant for prompt tokens that were charged but not computed */

static void
llm_sched_settle(llm_sched_t *s, llm_seq_t *q)
{
    llm_shares_refund(&q->req->run.tenant->share, q->advance);
    q->advance = 0;
    llm_sched_set_todo(s, q, 0);
}


/* the reason to report: the last part of the text may contain a stop string, or
   the end of a call */

static llm_finish_t
llm_sched_reason(const llm_seq_t *q, llm_finish_t reason)
{
    if (q->emit.hit >= 0) {
        reason = LLM_FINISH_STOP;
    }

    return reason == LLM_FINISH_STOP && llm_emit_calls(&q->emit)
           ? LLM_FINISH_TOOL_CALLS : reason;
}


void
llm_sched_end_seq(llm_sched_t *s, llm_seq_t *q, llm_finish_t reason)
{
    int        rc;
    llm_err_t  err;

    llm_sched_settle(s, q);

    if (q->state == LLM_SEQ_RUNNING) {
        llm_sched_clear_running(s, q);
    }

    llm_sched_drop(s, q);
    rc = llm_emit_end(&q->emit, reason != LLM_FINISH_STOP);

    q->state = LLM_SEQ_ENDED;
    q->reason = llm_sched_reason(q, reason);
    q->req->run.n_ended++;
    q->req->out.reasoning_tokens += q->emit.n_reasoning;

    llm_zone_add(s->counters->finished[q->reason], 1);
    llm_speed_answer(s, q);

    if (llm_seq_pools(q) && q->req->run.n_ended == q->req->run.n_seqs) {
        llm_speed_first(s, q->req, llm_now_us());
    }

    if (rc != LLM_OK) {
        (void) llm_fail(&err, "no memory");
        llm_req_fail(q->req, &err, 0);
    }

    llm_sched_queue_events(s, q->req);
}


/* frees all that the sequences of a request hold */

void
llm_sched_clear(llm_sched_t *s, llm_req_t *r)
{
    uint32_t    i;
    llm_seq_t  *q;

    if (r->run.tenant == NULL) {
        return;                         /* cleared before, or never added */
    }

    llm_media_drop(s, r);

    for (i = 0; i < r->run.n_seqs; i++) {
        q = &r->run.seqs[i];

        switch (q->state) {

        case LLM_SEQ_WAITING:
            llm_queue_remove(&s->queue, q);
            break;

        case LLM_SEQ_RUNNING:
            llm_sched_clear_running(s, q);
            break;

        case LLM_SEQ_PARKED:
            llm_sched_unpark(s, q);
            break;

        default:
            break;
        }

        llm_sched_settle(s, q);
        llm_sched_drop(s, q);
        q->state = LLM_SEQ_ENDED;
    }

    llm_queue_leave(&s->queue, r);
}


void
llm_sched_fail(llm_sched_t *s, llm_req_t *r, const llm_err_t *err,
    uint32_t retry_after)
{
    llm_sched_clear(s, r);
    llm_req_fail(r, err, retry_after);
    llm_sched_queue_events(s, r);
    llm_sched_gauges(s);                /* there may be no further step */
}
