/*
 * The waiting sequences; see queue.h.
 */

#include "engine/sched/queue.h"


void
llm_queue_init(llm_queue_t *q)
{
    memset(q, 0, sizeof(*q));
    llm_shares_init(&q->shares, sizeof(llm_tenant_t));
}


void
llm_queue_free(llm_queue_t *q)
{
    llm_shares_free(&q->shares);
    memset(q, 0, sizeof(*q));
}


int
llm_queue_enter(llm_queue_t *q, llm_req_t *r)
{
    llm_share_t  *share;

    share = llm_shares_enter(&q->shares, r->msg->tenant, r->msg->weight);
    if (share == NULL) {
        return LLM_ERROR;
    }

    r->run.tenant = (llm_tenant_t *) share;

    return LLM_OK;
}


void
llm_queue_leave(llm_queue_t *q, llm_req_t *r)
{
    llm_shares_leave(&q->shares, &r->run.tenant->share);
    r->run.tenant = NULL;
}


void
llm_queue_add(llm_queue_t *q, llm_seq_t *s)
{
    llm_seq_t     *after;
    llm_tenant_t  *t;

    t = s->req->run.tenant;

    if (t->first == NULL) {
        t->prev = NULL;
        t->next = q->waiting;

        if (q->waiting) {
            q->waiting->prev = t;
        }

        q->waiting = t;
    }

    /* the right place is nearly always the end */

    for (after = t->last;
         after && llm_seq_before(s, after);
         after = after->prev)
    { /* void */ }

    s->prev = after;
    s->next = after ? after->next : t->first;

    *(s->prev ? &s->prev->next : &t->first) = s;
    *(s->next ? &s->next->prev : &t->last) = s;

    s->state = LLM_SEQ_WAITING;
    q->n_waiting++;
}


void
llm_queue_remove(llm_queue_t *q, llm_seq_t *s)
{
    llm_tenant_t  *t;

    t = s->req->run.tenant;

    *(s->prev ? &s->prev->next : &t->first) = s->next;
    *(s->next ? &s->next->prev : &t->last) = s->prev;
    q->n_waiting--;

    if (t->first == NULL) {
        *(t->prev ? &t->prev->next : &q->waiting) = t->next;

        if (t->next) {
            t->next->prev = t->prev;
        }
    }
}


int
llm_queue_before(const llm_queue_t *q, const llm_seq_t *a, const llm_seq_t *b)
{
    const llm_req_t  *ra = a->req, *rb = b->req;

    if (ra->msg->priority == rb->msg->priority
        && ra->run.tenant->share.time != rb->run.tenant->share.time
        && !llm_queue_is_aged(q, ra) && !llm_queue_is_aged(q, rb))
    {
        return ra->run.tenant->share.time < rb->run.tenant->share.time;
    }

    return llm_seq_before(a, b);
}


llm_seq_t *
llm_queue_best(const llm_queue_t *q)
{
    llm_seq_t           *best;
    const llm_tenant_t  *t;

    best = NULL;

    for (t = q->waiting; t; t = t->next) {
        if (best == NULL || llm_queue_before(q, t->first, best)) {
            best = t->first;
        }
    }

    return best;
}
