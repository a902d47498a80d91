/*
 * The waiting sequences; see queue.h.
 */

#include "engine/sched/queue.h"


void
llm_queue_init(llm_queue_t *q)
{
    memset(q, 0, sizeof(*q));
}


void
llm_queue_free(llm_queue_t *q)
{
    uint32_t       i;
    llm_tenant_t  *t, *next;

    for (i = 0; i < LLM_QUEUE_BUCKETS; i++) {
        for (t = q->buckets[i]; t; t = next) {
            next = t->chain;
            free(t);
        }
    }

    memset(q, 0, sizeof(*q));
}


/* the least virtual time of tenants that have requests; if none has, the time
   at which the last one stopped */

static uint64_t
llm_queue_time(const llm_queue_t *q)
{
    uint32_t             i;
    uint64_t             least;
    const llm_tenant_t  *t;

    if (q->n_active == 0) {
        return q->time;
    }

    least = UINT64_MAX;

    for (i = 0; i < LLM_QUEUE_BUCKETS; i++) {
        for (t = q->buckets[i]; t; t = t->chain) {
            if (t->n_reqs) {
                least = llm_min(least, t->time);
            }
        }
    }

    return least;
}


/*
 * Forgets tenants without requests whose virtual time is not ahead of now, at
 * which they would start again anyway.  If there are still too many, forgets
 * all tenants without requests.
 */

static void
llm_queue_forget(llm_queue_t *q, uint64_t now)
{
    uint32_t        i;
    llm_tenant_t   *t, **link;

    for (i = 0; i < LLM_QUEUE_BUCKETS; i++) {
        link = &q->buckets[i];

        while ((t = *link) != NULL) {
            if (t->n_reqs == 0
                && (t->time <= now || q->n_tenants > LLM_QUEUE_TENANTS))
            {
                *link = t->chain;
                free(t);
                q->n_tenants--;
                continue;
            }

            link = &t->chain;
        }
    }
}


static uint32_t
llm_queue_bucket(uint64_t id)
{
    return (uint32_t) ((id * 0x9e3779b97f4a7c15ull) >> 54);
}


llm_tenant_t *
llm_queue_find(const llm_queue_t *q, uint64_t id)
{
    llm_tenant_t  *t;

    for (t = q->buckets[llm_queue_bucket(id)]; t && t->id != id; t = t->chain)
    { /* void */ }

    return t;
}


uint64_t
llm_queue_begin(const llm_queue_t *q, const llm_tenant_t *t)
{
    uint64_t  least;

    if (t && t->n_reqs) {
        return t->time;
    }

    least = llm_queue_time(q);

    return t ? llm_max(t->time, least) : least;
}


int
llm_queue_enter(llm_queue_t *q, llm_req_t *r)
{
    uint64_t        id;
    llm_tenant_t   *t, **bucket;

    id = r->msg->tenant;
    t = llm_queue_find(q, id);

    if (t == NULL) {
        bucket = &q->buckets[llm_queue_bucket(id)];

        if (q->n_tenants >= LLM_QUEUE_TENANTS) {
            llm_queue_forget(q, llm_queue_time(q));
        }

        t = calloc(1, sizeof(*t));
        if (t == NULL) {
            return LLM_ERROR;
        }

        t->id = id;
        t->chain = *bucket;
        *bucket = t;
        q->n_tenants++;
    }

    if (t->n_reqs == 0) {
        t->time = llm_queue_begin(q, t);
        q->n_active++;
    }

    t->weight = r->msg->weight ? r->msg->weight : 1000;
    t->n_reqs++;
    r->run.tenant = t;

    return LLM_OK;
}


void
llm_queue_leave(llm_queue_t *q, llm_req_t *r)
{
    llm_tenant_t  *t;

    t = r->run.tenant;
    r->run.tenant = NULL;

    if (--t->n_reqs == 0 && --q->n_active == 0) {
        q->time = llm_max(q->time, t->time);
    }
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

    /* its place is nearly always the end */

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
        && ra->run.tenant->time != rb->run.tenant->time
        && !llm_queue_is_aged(q, ra) && !llm_queue_is_aged(q, rb))
    {
        return ra->run.tenant->time < rb->run.tenant->time;
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


void
llm_queue_charge(llm_tenant_t *t, uint64_t tokens)
{
    t->time += tokens * 1000000 / t->weight;
}


void
llm_queue_refund(llm_tenant_t *t, uint64_t tokens)
{
    t->time -= llm_min(t->time, tokens * 1000000 / t->weight);
}
