/*
 * The first and the last event of a request, whoever has it: a scheduler, a
 * model of speech, or nobody, as its answer needed no model.  What a request
 * has not got is 0.
 */

#include "engine/sched/request.h"


uint32_t
llm_req_seconds(const llm_req_t *r)
{
    return r->heard ? llm_seconds_up(r->heard->seconds) : r->prep.audio_s;
}


int
llm_req_send_start(llm_req_t *r, uint32_t ctx)
{
    llm_event_t  *ev;

    if (r->out.start_sent) {
        return LLM_OK;
    }

    ev = llm_event_open(&r->out.to, LLM_EV_START, 0, 0);
    if (ev == NULL) {
        return LLM_FULL;
    }

    ev->u.start.prompt_tokens = r->prep.prompt_tokens;
    ev->u.start.cached_tokens = r->out.cached_tokens;
    ev->u.start.ctx = ctx;
    ev->u.start.audio_s = llm_req_seconds(r);
    ev->u.start.audio_tokens = r->prep.audio_tokens;
    ev->u.start.heard_s = r->heard ? r->heard->heard_s : r->prep.audio_s;
    ev->u.start.prepared = r->prepared;
    ev->u.start.predicted_us = r->run.predicted_us;
    ev->u.start.start_us = r->run.start_us;
    ev->u.start.queue_us = r->run.start_us
                           - llm_min(r->run.start_us, r->msg->arrival_us);

    llm_event_close(&r->out.to, ev);
    r->out.start_sent = 1;

    return LLM_OK;
}


int
llm_req_send_done(llm_req_t *r, uint64_t now)
{
    uint64_t      arrival;
    llm_event_t  *ev;

    ev = llm_event_open(&r->out.to, LLM_EV_DONE, 0, 0);
    if (ev == NULL) {
        return LLM_FULL;
    }

    arrival = llm_min(r->msg->arrival_us, r->run.start_us);

    ev->u.done.prompt_tokens = r->prep.prompt_tokens;
    ev->u.done.cached_tokens = r->out.cached_tokens;
    ev->u.done.completion_tokens = r->out.completion_tokens;
    ev->u.done.reasoning_tokens = r->out.reasoning_tokens;
    ev->u.done.accepted_tokens = r->out.accepted_tokens;
    ev->u.done.rejected_tokens = r->out.drafted_tokens
                                 - r->out.accepted_tokens;
    ev->u.done.queue_us = r->run.start_us - arrival;
    ev->u.done.ttft_us = r->out.first_us ? r->out.first_us - arrival : 0;
    ev->u.done.total_us = now - arrival;

    llm_event_close(&r->out.to, ev);

    return LLM_OK;
}
