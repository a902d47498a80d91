/*
 * The worker's end of the connection to the engine: sends requests, hands out
 * events.
 *
 * Events for a ticket that is not live in its slot are dropped.  Messages that
 * must not get lost (CANCEL, PAUSE, RESUME, GRANT) wait in `pending` while the
 * ring is full.  Memory for them is allocated when a request is submitted, so
 * sending them never fails.
 */

#include "engine/ipc/client.h"
#include "engine/ipc/media.h"

#include <stdio.h>
#include <unistd.h>

void
llm_client_wake(llm_client_t *c)
{
    llm_zone_wake(c->zone, c->engine_fd);
}


uint32_t
llm_client_holder(const llm_client_t *c)
{
    return c->holder;
}


llm_client_t *
llm_client_attach(const llm_client_conf_t *conf)
{
    uint32_t            generation, suspect;
    llm_zone_t         *z;
    llm_client_t       *c;
    llm_zone_worker_t  *w;

    z = conf->zone;

    if (conf->worker >= z->n_workers) {
        return NULL;
    }

    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return NULL;
    }

    w = llm_zone_worker(z, conf->worker);
    generation = atomic_fetch_add(&z->generation, 1) + 1;

    c->zone = z;
    c->worker = w;
    c->engine_fd = conf->engine_fd;
    c->epoch = atomic_load(&z->epoch);
    c->holder = generation;
    c->next_ticket = (uint64_t) generation << LLM_TICKET_SEQ_BITS | 1;

    llm_ring_producer(&c->down, llm_zone_at(z, w->down));
    llm_ring_consumer(&c->up, llm_zone_at(z, w->up));

    llm_media_vacate(z, atomic_load(&w->generation));

    suspect = atomic_exchange(&w->intent, 0);

    /* armed from the start: the first event wakes the worker */

    atomic_store(&w->armed, 1);

    atomic_store(&w->pid, 0);
    atomic_store(&w->born, llm_process_born(getpid()));
    atomic_store(&w->pid, (uint32_t) getpid());
    atomic_store(&w->generation, generation);

    if (suspect) {
        atomic_store(&z->suspect, 1);
    }

    /* the worker before this one may have died while it woke the engine */

    llm_zone_wake_surely(z, c->engine_fd);

    return c;
}


static int
llm_client_flush(llm_client_t *c)
{
    void      *p;
    uint32_t   i;

    for (i = 0; i < c->n_pending; i++) {
        p = llm_ring_reserve(&c->down, sizeof(llm_msg_t));
        if (p == NULL) {
            break;
        }

        memcpy(p, &c->pending[i], sizeof(llm_msg_t));
        llm_ring_push(&c->down, p);
    }

    if (i) {
        c->n_pending -= i;
        memmove(c->pending, c->pending + i, c->n_pending * sizeof(llm_msg_t));

        (void) llm_ring_publish(&c->down);
        llm_client_wake(c);
    }

    return c->n_pending ? LLM_FULL : LLM_OK;
}


void
llm_client_detach(llm_client_t *c)
{
    uint32_t  i;

    for (i = 0; i < c->n_slots; i++) {
        if (c->live[i].ticket) {
            llm_client_signal(c, LLM_MSG_CANCEL, i, c->live[i].ticket);
        }
    }

    (void) llm_client_flush(c);

    llm_media_vacate(c->zone, c->holder);

    /* the engine sees that the worker is gone and cancels its requests */

    atomic_store(&c->worker->pid, 0);
    llm_client_wake(c);

    free(c->live);
    free(c->pending);
    free(c);
}


/* makes room in both tables for one more request */

static int
llm_client_grow(llm_client_t *c, uint32_t slot)
{
    uint32_t     n;
    llm_msg_t   *pending;
    llm_live_t  *live;

    if (slot >= c->n_slots) {
        n = llm_max(llm_max(c->n_slots * 2, slot + 1), 64u);
        n = llm_min(n, (uint32_t) LLM_MAX_SLOTS);

        live = realloc(c->live, n * sizeof(*live));
        if (live == NULL) {
            return LLM_ERROR;
        }

        memset(live + c->n_slots, 0, (n - c->n_slots) * sizeof(*live));
        c->live = live;
        c->n_slots = n;
    }

    /* at most two messages wait for each ticket: a GRANT and another one */

    n = c->n_pending + 2 * (c->n_live + 1);

    if (n > c->cap_pending) {
        n = llm_max(n, c->cap_pending * 2);

        pending = realloc(c->pending, n * sizeof(*pending));
        if (pending == NULL) {
            return LLM_ERROR;
        }

        c->pending = pending;
        c->cap_pending = n;
    }

    return LLM_OK;
}


int
llm_client_no_engine(llm_err_t *err)
{
    return llm_fail_with(err, 503, "engine_restarting", NULL,
                         "the engine is restarting, try again soon");
}


static int
llm_client_draining(llm_err_t *err)
{
    return llm_fail_with(err, 503, "model_draining", NULL,
                         "the model takes no new requests");
}


static int
llm_client_usable(llm_client_t *c, uint32_t model, llm_err_t *err)
{
    llm_zone_t          *z;
    llm_model_status_t   st;

    z = c->zone;

    if (model >= z->n_models) {
        return llm_fail(err, "there is no model %u", model);
    }

    if (atomic_load(&z->attached) && !llm_zone_engine_there(z)) {
        return llm_client_no_engine(err);
    }

    if (llm_zone_drains(z, model)) {
        return llm_client_draining(err);
    }

    switch (atomic_load_explicit(&z->models[model].state,
                                 memory_order_acquire))
    {

    case LLM_MODEL_STOPPED:
        return llm_command_stopped(err);

    case LLM_MODEL_FAILED:
        llm_zone_status(z, model, &st);

        return llm_fail_with(err, 503, "model_failed", NULL,
                             "the model could not be loaded: %.400s",
                             st.error);

    default:
        return LLM_OK;
    }
}


static int
llm_client_full(llm_client_t *c, uint32_t model, int32_t priority,
    llm_err_t *err)
{
    uint32_t  places, queue;

    if (atomic_load_explicit(&c->zone->models[model].state,
                             memory_order_acquire)
        != LLM_MODEL_READY)
    {
        return llm_fail_with(err, 503, "model_loading", NULL,
                             "the model is loading and the queue is full");
    }

    /* the model's own bound, or that of all models */

    places = llm_zone_places(c->zone, model);

    if (llm_zone_inflight(c->zone, model, atomic_load(&c->zone->epoch))
        >= places)
    {
        return llm_fail_with(err, 429, "queue_full", NULL,
                             "too many requests for this model: %u wait "
                             "already",
                             places - llm_zone_parallel(c->zone, model));
    }

    queue = llm_zone_queue(c->zone, priority);

    return llm_fail_with(err, 429, "queue_full", NULL,
                         "too many requests: %u wait already%s", queue,
                         queue < c->zone->queue
                         ? ", the limit for a low priority" : "");
}


int
llm_client_admits(llm_client_t *c, uint32_t model, int32_t priority,
    llm_err_t *err)
{
    if (llm_client_usable(c, model, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (!llm_zone_has_room(c->zone, model, priority)) {
        return llm_client_full(c, model, priority, err);
    }

    return LLM_OK;
}


/*
 * Writes the request, counts it and publishes it, in this order: there are
 * only a few instructions between counting and publishing, and `intent` shows
 * the engine that a worker died in between.
 */

static int
llm_client_send(llm_client_t *c, const llm_request_t *msg, llm_err_t *err)
{
    int             rc, drains;
    uint32_t        epoch;
    llm_request_t  *p;

    p = llm_ring_reserve(&c->down, msg->head.size);

    if (p == NULL) {
        return llm_fail_with(err, 503, "queue_full", NULL,
                             "the ring to the engine is full");
    }

    memcpy(p, msg, msg->head.size);

    atomic_store(&c->worker->intent, 1);

    do {
        epoch = atomic_load(&c->zone->epoch);
        rc = llm_zone_admit(c->zone, msg->model, epoch, msg->priority);
    } while (rc == LLM_STALE);

    /* the model may drain by now: either the drain has seen this request in the
       count, and waits for its end, or the request is refused here */

    drains = rc == LLM_OK && llm_zone_drains(c->zone, msg->model);

    if (drains) {
        llm_zone_release(c->zone, msg->model, epoch, msg->priority);

    } else if (rc == LLM_OK) {
        p->head.epoch = epoch;
        llm_media_post(c->zone, c->holder, epoch, p);
        llm_ring_push(&c->down, (llm_record_t *) p);
        (void) llm_ring_publish(&c->down);
    }

    atomic_store(&c->worker->intent, 0);

    if (drains) {
        return llm_client_draining(err);
    }

    if (rc != LLM_OK) {
        return llm_client_full(c, msg->model, msg->priority, err);
    }

    c->live[msg->head.slot].epoch = epoch;
    llm_client_wake(c);

    return LLM_OK;
}


int
llm_client_submit(llm_client_t *c, llm_request_t *msg, uint32_t *retry_after,
    llm_err_t *err)
{
    uint32_t     slot;
    llm_live_t  *live;

    slot = msg->head.slot;
    *retry_after = 0;

    if (msg->head.size < sizeof(*msg) || msg->head.size % 8
        || msg->head.type != LLM_MSG_REQUEST || slot >= LLM_MAX_SLOTS)
    {
        return llm_fail(err, "malformed request to the engine");
    }

    if (msg->head.size > llm_ring_max(&c->down)) {
        return llm_fail_with(err, 413, "request_too_large", NULL,
                             "the request takes %u bytes, more than the %u "
                             "that fit into shared memory (llm_shared_memory)",
                             msg->head.size, llm_ring_max(&c->down));
    }

    if (msg->model < c->zone->n_models
        && msg->naming != llm_zone_naming(c->zone, msg->model))
    {
        return llm_command_removed(err);
    }

    if (llm_client_admits(c, msg->model, msg->priority, err) != LLM_OK) {
        goto refused;
    }

    if (llm_client_grow(c, slot) != LLM_OK) {
        (void) llm_fail_with(err, 503, NULL, NULL, "no memory");
        goto refused;
    }

    live = &c->live[slot];

    if (live->ticket) {
        return llm_fail(err, "slot %u is in use", slot);
    }

    (void) llm_client_flush(c);

    msg->head.ticket = c->next_ticket;

    if (llm_client_send(c, msg, err) != LLM_OK) {
        goto refused;
    }

    llm_media_forget(msg);

    live->ticket = c->next_ticket++;
    live->model = msg->model;
    c->n_live++;

    return LLM_OK;

refused:

    if (err->status == 429 || err->status == 503) {
        *retry_after = msg->model < c->zone->n_models
                       ? llm_zone_get(c->zone->models[msg->model].retry_after)
                       : 1;
    }

    return LLM_ERROR;
}


static int
llm_client_forget(llm_client_t *c, uint32_t slot, uint64_t ticket)
{
    if (slot >= c->n_slots || c->live[slot].ticket != ticket) {
        return LLM_ERROR;
    }

    c->live[slot].ticket = 0;
    c->n_live--;

    return LLM_OK;
}


/* does a message replace one of its ticket that waits?  The last one counts,
   but GRANT is independent of PAUSE and RESUME; CANCEL replaces all */

static int
llm_client_replaces(llm_msg_type_t type, uint32_t waits)
{
    return type == LLM_MSG_CANCEL
           || (type == LLM_MSG_GRANT) == (waits == LLM_MSG_GRANT);
}


void
llm_client_signal(llm_client_t *c, llm_msg_type_t type, uint32_t slot,
    uint64_t ticket)
{
    uint32_t    i;
    llm_msg_t  *m;

    if (slot >= c->n_slots || ticket == 0 || c->live[slot].ticket != ticket) {
        return;
    }

    if (type == LLM_MSG_CANCEL) {
        (void) llm_client_forget(c, slot, ticket);
    }

    for (i = 0; i < c->n_pending; i++) {
        if (c->pending[i].ticket == ticket
            && llm_client_replaces(type, c->pending[i].type))
        {
            c->pending[i].type = type;
            (void) llm_client_flush(c);
            return;
        }
    }

    m = &c->pending[c->n_pending++];

    memset(m, 0, sizeof(*m));
    m->size = sizeof(*m);
    m->type = type;
    m->slot = slot;
    m->epoch = atomic_load(&c->zone->epoch);
    m->ticket = ticket;

    (void) llm_client_flush(c);
}


/* makes the last event of a ticket whose engine is gone */

static void
llm_client_fail(llm_client_t *c, uint32_t slot, llm_event_pt handler,
    void *data)
{
    static const char  msg[] = "the engine has restarted, try again";
    static const char  code[] = "engine_restarting";

    uint32_t           retry;
    uint64_t           buf[(sizeof(llm_event_t) + sizeof(msg) + sizeof(code)
                            + 7) / 8];
    llm_event_t       *ev = (llm_event_t *) buf;

    memset(buf, 0, sizeof(buf));
    retry = llm_zone_get(c->zone->models[c->live[slot].model].retry_after);

    ev->size = sizeof(buf);
    ev->type = LLM_EV_ERROR;
    ev->slot = slot;
    ev->ticket = c->live[slot].ticket;
    ev->u.error.status = 503;
    ev->u.error.retry_after = (uint16_t) llm_min(retry, UINT16_MAX);
    ev->u.error.msg.off = sizeof(*ev);
    ev->u.error.msg.len = sizeof(msg) - 1;
    ev->u.error.code.off = sizeof(*ev) + sizeof(msg);
    ev->u.error.code.len = sizeof(code) - 1;

    memcpy(ev + 1, msg, sizeof(msg));
    memcpy((char *) (ev + 1) + sizeof(msg), code, sizeof(code));

    (void) llm_client_forget(c, slot, ev->ticket);

    handler(data, ev);
}


/*
 * Begins a sweep if the engine that live tickets were sent to is gone: there is
 * a new epoch, or the engine's process is dead.  The latter costs a system call
 * and is checked at most four times a second.
 */

static void
llm_client_check_engine(llm_client_t *c)
{
    uint32_t  epoch;
    uint64_t  now;

    epoch = atomic_load(&c->zone->epoch);

    if (epoch != c->epoch) {
        c->epoch = epoch;
        c->sweep = 0;
        c->sweeping = 1;
    }

    if (c->n_live == 0 || !atomic_load(&c->zone->attached)) {
        return;
    }

    now = llm_now_us();

    if (now - c->checked_us >= 250000) {
        c->checked_us = now;

        if (!llm_zone_engine_lives(c->zone) && !c->sweeping) {
            c->sweep = 0;
            c->sweeping = 1;
        }
    }
}


/* fails live tickets of an engine that is gone, at most max in a call */

static uint32_t
llm_client_sweep(llm_client_t *c, llm_event_pt handler, void *data,
    uint32_t max)
{
    int          dead;
    uint32_t     n;
    llm_live_t  *live;

    dead = !llm_zone_engine_lives(c->zone);

    for (n = 0; c->sweep < c->n_slots && n < max; c->sweep++) {
        live = &c->live[c->sweep];

        if (live->ticket && (dead || live->epoch != c->epoch)) {
            llm_client_fail(c, c->sweep, handler, data);
            n++;
        }
    }

    if (c->sweep >= c->n_slots) {
        c->sweeping = 0;
    }

    return n;
}


void
llm_client_look_ahead(llm_client_t *c, llm_ahead_pt ahead)
{
    c->ahead = ahead;
}


/* the next events of the ring, whatever their tickets; they stay valid until
   the ring is released */

static uint32_t
llm_client_next(llm_client_t *c, const llm_event_t **ev, void *data,
    uint32_t max)
{
    uint32_t             n;
    const llm_record_t  *rec;

    n = 0;

    while (n < max && (rec = llm_ring_next(&c->up)) != NULL) {
        if (rec->size >= sizeof(llm_event_t)) {
            ev[n++] = (const llm_event_t *) rec;
        }
    }

    if (n && c->ahead) {
        c->ahead(data, ev, n);
    }

    return n;
}


/* reads the events in the ring; their room is released in portions */

static uint32_t
llm_client_take(llm_client_t *c, llm_event_pt handler, void *data,
    uint32_t max)
{
    uint32_t            i, n, got, taken;
    const llm_event_t  *ev[LLM_CLIENT_AHEAD];

    n = 0;
    taken = 0;

    while (n < max) {
        got = llm_client_next(c, ev, data,
                              llm_min(max - n, (uint32_t) LLM_CLIENT_AHEAD));
        if (got == 0) {
            break;
        }

        for (i = 0; i < got; i++) {
            if (ev[i]->slot >= c->n_slots
                || c->live[ev[i]->slot].ticket != ev[i]->ticket)
            {
                continue;
            }

            if (ev[i]->type == LLM_EV_DONE || ev[i]->type == LLM_EV_ERROR) {
                (void) llm_client_forget(c, ev[i]->slot, ev[i]->ticket);
            }

            handler(data, ev[i]);
            n++;
        }

        taken += got;
        llm_ring_release(&c->up);
    }

    llm_ring_release(&c->up);

    if (taken && atomic_load(&c->worker->want_room)
        && atomic_exchange(&c->worker->want_room, 0))
    {
        llm_client_wake(c);
    }

    return n;
}


uint32_t
llm_client_drain(llm_client_t *c, llm_event_pt handler, void *data,
    uint32_t max)
{
    uint32_t  n;

    if (max == 0) {
        max = UINT32_MAX;
    }

    n = 0;
    (void) llm_client_flush(c);

    for ( ;; ) {
        n += llm_client_take(c, handler, data, max - n);

        if (n >= max) {
            return n;
        }

        /* only now, as the ring may have had the last event of a ticket */

        llm_client_check_engine(c);

        if (c->sweeping) {
            n += llm_client_sweep(c, handler, data, max - n);

            if (n >= max) {
                return n;
            }
        }

        /* arm first, then check again, so that no event is missed in
           between */

        atomic_store(&c->worker->armed, 1);

        if (llm_ring_empty(&c->up) && atomic_load(&c->zone->epoch) == c->epoch)
        {
            return n;
        }

        (void) atomic_exchange(&c->worker->armed, 0);
    }
}
