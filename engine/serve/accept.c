/*
 * Takes requests in: checks a message in a worker's ring against the bound of
 * memory, copies it, and claims its media; or refuses it.  What is taken in is
 * in e->live, and requests.c has it from then on.  The scheduler's thread alone
 * runs this.
 *
 * The ring's record is the worker's, which may change it: only the checked copy
 * of its fixed part is believed.
 */

#include "engine/serve/requests.h"

typedef enum {
    LLM_REFUSE_MEMORY,
    LLM_REFUSE_FULL,
    LLM_REFUSE_REMOVED
} llm_refuse_t;


static int
llm_peer_slot(llm_peer_t *p, uint32_t slot)
{
    uint32_t     n;
    llm_req_t  **slots;

    if (slot < p->n_slots) {
        return LLM_OK;
    }

    if (slot >= LLM_MAX_SLOTS) {
        return LLM_ERROR;
    }

    n = llm_max(llm_max(p->n_slots * 2, slot + 1), 64u);

    slots = realloc(p->slots, n * sizeof(*slots));
    if (slots == NULL) {
        return LLM_ERROR;
    }

    memset(slots + p->n_slots, 0, (n - p->n_slots) * sizeof(*slots));
    p->slots = slots;
    p->n_slots = n;

    return LLM_OK;
}


int
llm_engine_send_refusal(llm_engine_t *e, llm_peer_t *p)
{
    llm_refusal_t  *f;

    f = &p->refusal;

    if (!f->pending) {
        return 0;
    }

    if (llm_event_error(&f->to, &f->err, f->retry_after) != LLM_OK) {
        return 1;
    }

    f->pending = 0;
    llm_zone_count_error(llm_zone_counters(e->zone, e->kept, f->model),
                         f->err.status);
    llm_zone_release(e->zone, f->model, e->epoch, f->priority);

    return 0;
}


/*
 * Refuses a request before it is in e->live.  Its error needs no memory and is
 * never lost: the worker's further messages wait until it has been sent.
 */

static void
llm_engine_refuse(llm_engine_t *e, llm_peer_t *p, const llm_request_t *msg,
    const void *rec, llm_refuse_t why)
{
    llm_refusal_t  *f;

    llm_media_abandon(e->zone, msg, rec, msg->head.size);

    f = &p->refusal;
    f->pending = 1;
    f->to.port = &p->port;
    f->to.slot = msg->head.slot;
    f->to.ticket = msg->head.ticket;
    f->model = msg->model;
    f->priority = msg->priority;
    f->retry_after = why == LLM_REFUSE_REMOVED
                     ? 0 : llm_engine_retry_after(e->models[msg->model]);

    if (why == LLM_REFUSE_FULL) {
        (void) llm_engine_full(e, &f->err);

    } else if (why == LLM_REFUSE_REMOVED) {
        (void) llm_command_removed(&f->err);

    } else {
        (void) llm_fail_with(&f->err, 503, NULL, NULL,
                             "no memory for another request");
    }

    (void) llm_engine_send_refusal(e, p);
}


void
llm_engine_enter(llm_engine_t *e, llm_peer_t *p, llm_req_t *r)
{
    r->serial = ++e->serial;
    r->entered_us = llm_now_us();

    r->next = e->live;
    if (e->live) {
        e->live->prev = r;
    }

    e->live = r;
    e->n_live++;
    p->n_live++;
    r->instance->n_reqs++;
}


void
llm_engine_accept(llm_engine_t *e, llm_peer_t *p, const llm_request_t *msg,
    const void *rec)
{
    size_t          bytes;
    llm_req_t      *r;
    llm_request_t  *copy;

    if (llm_peer_slot(p, msg->head.slot) != LLM_OK) {
        llm_engine_refuse(e, p, msg, rec, LLM_REFUSE_MEMORY);
        return;
    }

    /* the model was removed while the message was in the ring */

    if (msg->naming != llm_zone_naming(e->zone, msg->model)) {
        llm_engine_refuse(e, p, msg, rec, LLM_REFUSE_REMOVED);
        return;
    }

    if (e->n_bytes + msg->head.size > e->max_bytes) {
        llm_engine_refuse(e, p, msg, rec, LLM_REFUSE_FULL);
        return;
    }

    copy = malloc(msg->head.size);
    if (copy == NULL) {
        llm_engine_refuse(e, p, msg, rec, LLM_REFUSE_MEMORY);
        return;
    }

    memcpy(copy, rec, msg->head.size);
    *copy = *msg;

    r = llm_req_create(copy);
    if (r == NULL) {
        llm_engine_refuse(e, p, msg, rec, LLM_REFUSE_MEMORY);
        return;
    }

    if (llm_media_claim(e->zone, r->msg, &r->media) != LLM_OK) {
        llm_engine_refuse(e, p, msg, rec, LLM_REFUSE_MEMORY);
        llm_req_free(r);
        return;
    }

    bytes = llm_req_bytes(r);

    if (e->n_bytes + bytes > e->max_bytes) {
        llm_engine_refuse(e, p, msg, rec, LLM_REFUSE_FULL);
        llm_req_free(r);
        return;
    }

    if (p->slots[msg->head.slot]) {
        llm_engine_cancel(e, p->slots[msg->head.slot]);
    }

    r->instance = e->models[r->model];
    r->out.to.port = &p->port;
    r->out.to.slot = msg->head.slot;
    r->out.to.ticket = msg->head.ticket;
    p->slots[msg->head.slot] = r;

    llm_engine_enter(e, p, r);
    llm_engine_count(e, r, bytes);
    llm_engine_route(e, r);
}
