/*
 * Metered requests: when a request is prepared, its worker is told how many
 * tokens its prompts have and its answers may have (PREPARED).  The request is
 * queued after the worker has charged an account for them (GRANT).  A request
 * that gets no grant was tokenised, but costs no step.
 */

#include "engine/serve/requests.h"


static int
llm_ask_send(const llm_req_t *r)
{
    uint32_t      i;
    uint64_t      n;
    llm_event_t  *ev;

    ev = llm_event_open(&r->out.to, LLM_EV_PREPARED, 0, 0);
    if (ev == NULL) {
        return LLM_FULL;
    }

    n = r->heard ? r->heard->most : 0;

    for (i = 0; i < r->run.n_seqs; i++) {
        n += r->run.seqs[i].max_gen;
    }

    ev->u.prepared.prompt_tokens = r->prep.prompt_tokens;
    ev->u.prepared.audio_s = llm_req_seconds(r);
    ev->u.prepared.answer_tokens = n;

    llm_event_close(&r->out.to, ev);

    return LLM_OK;
}


void
llm_engine_ask_grant(llm_engine_t *e, llm_req_t *r)
{
    r->state = LLM_REQ_ASKING;
    llm_jobs_add(&e->asking, r);
}


int
llm_engine_send_grants(llm_engine_t *e)
{
    llm_req_t   *r;
    llm_jobs_t   jobs;

    llm_jobs_init(&jobs);
    llm_jobs_move(&jobs, &e->asking);

    while ((r = llm_jobs_take(&jobs)) != NULL) {
        if (llm_ask_send(r) != LLM_OK) {
            llm_jobs_add(&e->asking, r);
        }
    }

    return e->asking.first != NULL;
}
