/*
 * The list of requests that have events to send.
 */

#include "engine/sched/sched_internal.h"


void
llm_sched_queue_events(llm_sched_t *s, llm_req_t *r)
{
    if (!r->out.in_list) {
        r->out.in_list = 1;
        r->out.next = s->out;
        s->out = r;
    }
}


void
llm_sched_unqueue_events(llm_sched_t *s, llm_req_t *r)
{
    llm_req_t  **link;

    if (!r->out.in_list) {
        return;
    }

    for (link = &s->out; *link != r; link = &(*link)->out.next) { /* void */ }

    *link = r->out.next;
    r->out.in_list = 0;
}
