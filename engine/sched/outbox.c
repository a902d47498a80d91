/*
 * The list of requests that have events to send.
 */

#include "engine/sched/sched_internal.h"


/* the request has something to say */

void
llm_sched_queue_events(llm_sched_t *s, llm_req_t *r)
{
    if (!r->in_out) {
        r->in_out = 1;
        r->out_next = s->out;
        s->out = r;
    }
}


void
llm_sched_unqueue_events(llm_sched_t *s, llm_req_t *r)
{
    llm_req_t  **link;

    if (!r->in_out) {
        return;
    }

    for (link = &s->out; *link != r; link = &(*link)->out_next) { /* void */ }

    *link = r->out_next;
    r->in_out = 0;
}
