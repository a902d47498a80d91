/*
 * The first and the last event of requests that no scheduler has: answers that
 * need no model, and transcriptions.
 */

#include "engine/serve/engine.h"


int
llm_engine_send_start(const llm_instance_t *m, llm_req_t *r)
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
    ev->u.start.ctx = m->runner.ctx;
    ev->u.start.prepared = r->prepared;
    ev->u.start.queue_us = r->run.start_us
                           - llm_min(r->run.start_us, r->msg->arrival_us);

    llm_event_close(&r->out.to, ev);
    r->out.start_sent = 1;

    return LLM_OK;
}


int
llm_engine_send_done(llm_req_t *r)
{
    uint64_t      now, arrival;
    llm_event_t  *ev;

    ev = llm_event_open(&r->out.to, LLM_EV_DONE, 0, 0);
    if (ev == NULL) {
        return LLM_FULL;
    }

    now = llm_now_us();
    arrival = llm_min(r->msg->arrival_us, r->run.start_us);

    ev->u.done.prompt_tokens = r->prep.prompt_tokens;
    ev->u.done.completion_tokens = r->out.completion_tokens;
    ev->u.done.queue_us = r->run.start_us - arrival;
    ev->u.done.ttft_us = r->out.first_us ? r->out.first_us - arrival : 0;
    ev->u.done.total_us = now - arrival;

    llm_event_close(&r->out.to, ev);

    return LLM_OK;
}
