/*
 * Which request is prepared next; see turns.h.
 */

#include "engine/serve/turns.h"

#include <stddef.h>


void
llm_turns_init(llm_turns_t *q)
{
    memset(q, 0, sizeof(*q));
    llm_shares_init(&q->shares, sizeof(llm_payer_t));
}


void
llm_turns_free(llm_turns_t *q)
{
    llm_shares_free(&q->shares);
}


void
llm_turns_leave(llm_turns_t *q, llm_req_t *r)
{
    llm_shares_leave(&q->shares, &r->payer->share);
    r->payer = NULL;
}


/* does a go before b, of the same tenant? */

static int
llm_turns_precedes(const llm_req_t *a, const llm_req_t *b)
{
    return a->msg->priority != b->msg->priority
           ? a->msg->priority > b->msg->priority : a->line < b->line;
}


static int
llm_turns_before(const llm_req_t *a, const llm_req_t *b)
{
    if (a->msg->priority == b->msg->priority
        && a->payer->share.time != b->payer->share.time)
    {
        return a->payer->share.time < b->payer->share.time;
    }

    return llm_turns_precedes(a, b);
}


/* in the order of llm_turns_precedes(), nearly always at the end */

static void
llm_turns_insert(llm_jobs_t *j, llm_req_t *r)
{
    llm_req_t  *last, **link;

    last = j->first == NULL ? NULL
           : (llm_req_t *) ((char *) j->last - offsetof(llm_req_t, job_next));

    if (last == NULL || !llm_turns_precedes(r, last)) {
        llm_jobs_add(j, r);
        return;
    }

    for (link = &j->first;
         !llm_turns_precedes(r, *link);
         link = &(*link)->job_next)
    { /* void */ }

    r->job_next = *link;
    *link = r;
}


void
llm_turns_back(llm_turns_t *q, llm_req_t *r)
{
    r->line = ++q->line;
}


void
llm_turns_put(llm_turns_t *q, llm_req_t *r, llm_turn_t list)
{
    llm_payer_t  *p;

    p = r->payer;
    r->turn = list;
    q->bytes += r->prep.begun_bytes;

    if (p->n_jobs++ == 0) {
        p->prev = NULL;
        p->next = q->waiting;

        if (q->waiting) {
            q->waiting->prev = p;
        }

        q->waiting = p;
    }

    llm_turns_insert(&p->jobs[list], r);
}


/* is there much text to prepare?  A query is tokenised again with each
   document; as the message has not been checked yet, its size times the pairs
   is a bound */

static int
llm_turns_is_large(const llm_request_t *msg)
{
    size_t  size;

    size = msg->head.size;

    if (msg->task == LLM_TASK_SCORE) {
        size *= llm_max(msg->prompts.len / 2, 1u);
    }

    return size > LLM_TURNS_SMALL;
}


/* the list of a request with which nothing was done */

static llm_turn_t
llm_turns_first(const llm_request_t *msg)
{
    if (msg->task == LLM_TASK_LISTEN) {
        return LLM_TURN_SOUND;
    }

    if (msg->media.len) {
        return LLM_TURN_MEDIA;
    }

    return llm_turns_is_large(msg) ? LLM_TURN_SLOW : LLM_TURN_QUICK;
}


int
llm_turns_enter(llm_turns_t *q, llm_req_t *r)
{
    uint32_t      i;
    llm_payer_t  *p;

    p = (llm_payer_t *) llm_shares_enter(&q->shares, r->msg->tenant,
                                         r->msg->weight);
    if (p == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; p->n_jobs == 0 && i < LLM_TURN_N; i++) {
        llm_jobs_init(&p->jobs[i]);
    }

    r->payer = p;
    llm_turns_back(q, r);
    llm_turns_put(q, r, llm_turns_first(r->msg));

    return LLM_OK;
}


void
llm_turns_take(llm_turns_t *q, llm_req_t *r)
{
    llm_payer_t  *p;

    p = r->payer;
    llm_jobs_remove(&p->jobs[r->turn], r);
    r->turn = LLM_TURN_N;
    q->bytes -= r->prep.begun_bytes;

    if (--p->n_jobs == 0) {
        *(p->prev ? &p->prev->next : &q->waiting) = p->next;

        if (p->next) {
            p->next->prev = p->prev;
        }
    }
}


llm_req_t *
llm_turns_next(const llm_turns_t *q, uint32_t lists)
{
    uint32_t            i;
    llm_req_t          *r, *best;
    const llm_payer_t  *p;

    best = NULL;

    for (p = q->waiting; p; p = p->next) {
        for (i = 0; i < LLM_TURN_N; i++) {
            r = lists & llm_turn_bit(i) ? p->jobs[i].first : NULL;

            if (r && (best == NULL || llm_turns_before(r, best))) {
                best = r;
            }
        }
    }

    return best;
}


void
llm_turns_charge(llm_req_t *r, uint64_t us)
{
    llm_shares_charge(&r->payer->share, us);
}
