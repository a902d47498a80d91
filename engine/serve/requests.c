/*
 * The life of a request in the engine: from where accept.c has taken it in to
 * its last event.  The scheduler's thread alone runs this.
 *
 *   NEW        in `held` of its instance, which is not loaded, or gives way
 *   PREPARING  queued in e->turns, begun or not, and removed from it if it
 *              ends; or in a preparation thread, paused or not: then only
 *              `cancelled` and `late` are set
 *   ASKING     metered: its size is known, its worker must grant it; in
 *              e->asking until there is room in the ring for PREPARED
 *   SCHEDULED  in its model's scheduler
 *   HEARD      a transcription: in the crew of its model (hearing.c)
 *   ANSWERED   in e->answered: its answer waits for room in the ring
 *   DOOMED     in e->doomed: its ERROR waits for room in the ring
 */

#include "engine/serve/requests.h"


void
llm_engine_count(llm_engine_t *e, llm_req_t *r, size_t bytes)
{
    e->n_bytes += bytes - r->bytes;

    llm_zone_add(e->zone->models[r->model].figures.request_memory,
                 bytes - r->bytes);

    r->bytes = bytes;
}


/* has the model, in any of its instances, requests of clients? */

static int
llm_engine_is_asked(const llm_engine_t *e, uint32_t model)
{
    const llm_instance_t  *m;

    for (m = e->instances; m; m = m->next) {
        if (m->index == model && m->n_reqs != m->warm.n_live) {
            return 1;
        }
    }

    return 0;
}


/* notes the end of a client's request, for the model's idle time and the
   average time of its requests; a probe counts for neither */

static void
llm_engine_ends(llm_engine_t *e, const llm_req_t *r)
{
    uint64_t         now;
    llm_instance_t  *m;

    m = r->instance;
    now = llm_now_us();

    if (r->msg->flags & LLM_REQ_PROBE) {
        e->check_us = 0;                /* a live probe hides that nothing
                                           else is live */
        return;
    }

    m->used_us = now;

    if (r->out.first_us) {
        m->request_us += 0.1 * ((double) (now - r->run.start_us)
                                - m->request_us);
    }
}


/* the end of a warm-up's request */

static void
llm_engine_own_ends(llm_engine_t *e, const llm_req_t *r)
{
    llm_instance_t  *m;

    m = r->instance;
    m->warm.n_live--;

    if (r->failure) {
        llm_engine_log(e, LLM_LOG_WARN, "model \"%s\": a request of the "
                       "warm-up failed: %s", m->conf.name,
                       r->failure->err.msg);
    }
}


static void
llm_engine_forget(llm_engine_t *e, llm_req_t *r)
{
    llm_peer_t      *p;
    llm_instance_t  *m;

    p = (llm_peer_t *) r->out.to.port;
    m = r->instance;

    if (r->out.to.slot < p->n_slots && p->slots[r->out.to.slot] == r) {
        p->slots[r->out.to.slot] = NULL;
    }

    *(r->prev ? &r->prev->next : &e->live) = r->next;

    if (r->next) {
        r->next->prev = r->prev;
    }

    e->n_live--;
    llm_engine_count(e, r, 0);
    p->n_live--;
    m->n_reqs--;

    if (r->own) {
        llm_engine_own_ends(e, r);

    } else {
        llm_engine_ends(e, r);
    }

    if (m->role == LLM_INSTANCE_REPLACED) {
        llm_engine_show_replaced(e, r->model);
    }

    if (!llm_engine_is_asked(e, r->model)) {
        llm_zone_set(e->zone->models[r->model].figures.waiting, 0);
    }

    if (!r->own) {
        llm_zone_release(e->zone, r->model, e->epoch, r->msg->priority);
        llm_zone_set(e->zone->models[r->model].retry_after,
                     llm_engine_retry_after(m));
    }

    llm_req_free(r);
}


int
llm_engine_full(const llm_engine_t *e, llm_err_t *err)
{
    return llm_fail_with(err, 429, "queue_full", NULL,
                         "no memory is left for another request: waiting and "
                         "running requests take %zu of %zu bytes (llm_queue "
                         "memory=)",
                         llm_min(e->n_bytes, e->max_bytes), e->max_bytes);
}


/* estimate of the seconds until a place is free */

uint32_t
llm_engine_retry_after(const llm_instance_t *m)
{
    double  s;

    if (m->state != LLM_MODEL_READY) {
        return 5;
    }

    s = m->request_us * 1e-6 / m->parallel + 0.5;

    return (uint32_t) llm_max(llm_min(s, 60.0), 1.0);
}


void
llm_engine_ended(void *data, llm_req_t *r)
{
    llm_engine_forget(data, r);
}


static void
llm_engine_doom(llm_engine_t *e, llm_req_t *r, const llm_err_t *err,
    uint32_t retry_after)
{
    llm_req_fail(r, err, retry_after);
    r->state = LLM_REQ_DOOMED;
    llm_jobs_add(&e->doomed, r);
}


int
llm_engine_send_errors(llm_engine_t *e)
{
    llm_jobs_t   jobs;
    llm_req_t   *r;

    llm_jobs_init(&jobs);
    llm_jobs_move(&jobs, &e->doomed);

    while ((r = llm_jobs_take(&jobs)) != NULL) {
        if (llm_event_failure(&r->out.to, &r->failure->err,
                              r->failure->retry_after, 0, &r->prepared)
            != LLM_OK)
        {
            llm_jobs_add(&e->doomed, r);
            continue;
        }

        if (!r->own) {
            llm_zone_count_error(llm_zone_counters(e->zone, e->kept, r->model),
                                 r->failure->err.status);
        }

        llm_engine_forget(e, r);
    }

    return e->doomed.first != NULL;
}


void
llm_engine_prepare(llm_engine_t *e, llm_req_t *r)
{
    int        rc;
    llm_err_t  err;

    r->state = LLM_REQ_PREPARING;

    pthread_mutex_lock(&e->lock);
    rc = llm_turns_enter(&e->turns, r);
    pthread_cond_broadcast(&e->work);   /* to all: not every thread may take
                                           it */
    pthread_mutex_unlock(&e->lock);

    if (rc != LLM_OK) {
        (void) llm_fail_with(&err, 503, NULL, NULL,
                             "no memory for another request");
        llm_engine_doom(e, r, &err, 1);
    }
}


void
llm_engine_prepare_held(llm_instance_t *m)
{
    llm_req_t   *r;
    llm_jobs_t   held;

    llm_jobs_init(&held);
    llm_jobs_move(&held, &m->held);

    while ((r = llm_jobs_take(&held)) != NULL) {
        llm_engine_prepare(m->engine, r);
    }
}


void
llm_engine_move(llm_req_t *r, llm_instance_t *to)
{
    r->instance->n_reqs--;
    r->instance = to;
    to->n_reqs++;
}


/* is another file being loaded while the present one does not serve? */

static int
llm_engine_waits_beside(const llm_instance_t *m)
{
    return m->beside && (m->state == LLM_MODEL_IDLE
                         || m->state == LLM_MODEL_FAILED
                         || m->state == LLM_MODEL_STOPPED);
}


void
llm_engine_route(llm_engine_t *e, llm_req_t *r)
{
    llm_err_t        err;
    llm_instance_t  *m;

    m = r->instance;

    if (llm_engine_waits_beside(m)) {
        llm_engine_move(r, m->beside);
        llm_jobs_add(&m->beside->held, r);
        return;
    }

    if (m->ends || m->state == LLM_MODEL_STOPPED) {
        (void) llm_command_stopped(&err);
        llm_engine_doom(e, r, &err, 0);
        return;
    }

    switch (m->state) {

    case LLM_MODEL_READY:
        if (m->gives_way && !(r->msg->flags & LLM_REQ_PROBE)) {
            break;
        }

        llm_engine_prepare(e, r);
        return;

    case LLM_MODEL_FAILED:
        (void) llm_fail_with(&err, 503, "model_failed", NULL,
                             "the model could not be loaded: %.400s",
                             m->load_err.msg);
        llm_engine_doom(e, r, &err, 0);
        return;

    case LLM_MODEL_IDLE:
        if (r->msg->flags & LLM_REQ_PROBE) {
            if (r->msg->task == LLM_TASK_PROPS) {
                llm_engine_admit(e, r);
                return;
            }

            (void) llm_fail_with(&err, 503, "model_idle", NULL,
                                 "the model is not loaded");
            llm_engine_doom(e, r, &err, 0);
            return;
        }

        if (llm_instance_load(m) != LLM_OK) {
            (void) llm_fail_with(&err, 503, "model_loading", NULL,
                                 "no thread could be started to load the "
                                 "model");
            llm_engine_doom(e, r, &err, 1);
            return;
        }

        llm_zone_set(e->zone->models[r->model].wanted, 1);
        break;

    default:                            /* it is being loaded */
        break;
    }

    llm_jobs_add(&m->held, r);
}


int
llm_engine_late(llm_err_t *err)
{
    return llm_fail_with(err, 504, "timeout", NULL,
                         "the request took longer than allowed");
}


/* the state of a prepared request that may go on */

static llm_req_state_t
llm_engine_state(const llm_req_t *r)
{
    if (r->heard) {
        return LLM_REQ_HEARD;
    }

    return llm_prep_needs_model(r->msg) ? LLM_REQ_SCHEDULED
                                        : LLM_REQ_ANSWERED;
}


/*
 * A request comes back from a preparation thread.  It may take more memory
 * than was counted for its message, so the bound is checked again.
 */

void
llm_engine_prepared(llm_engine_t *e, llm_req_t *r)
{
    llm_err_t  err;

    if (r->late) {
        llm_engine_doom(e, r, &r->late->err, r->late->retry_after);
        return;
    }

    if (atomic_load_explicit(&r->cancelled, memory_order_relaxed)) {
        llm_engine_forget(e, r);
        return;
    }

    if (r->failure) {
        llm_engine_doom(e, r, &r->failure->err, r->failure->retry_after);
        return;
    }

    r->state = llm_engine_state(r);
    llm_engine_count(e, r, llm_req_bytes(r));

    if (e->n_bytes > e->max_bytes) {
        (void) llm_engine_full(e, &err);
        llm_engine_doom(e, r, &err,
                        llm_engine_retry_after(r->instance));
        return;
    }

    if (r->msg->flags & LLM_REQ_METERED) {
        llm_engine_ask_grant(e, r);
        return;
    }

    llm_engine_admit(e, r);
}


void
llm_engine_admit(llm_engine_t *e, llm_req_t *r)
{
    uint32_t   retry;
    llm_err_t  err;

    retry = 1;
    r->state = llm_engine_state(r);

    if (r->state == LLM_REQ_ANSWERED) {
        r->run.start_us = llm_now_us();

        /* it is sent at once, so its deadline is not checked later */

        if (r->msg->deadline_us && r->run.start_us >= r->msg->deadline_us) {
            (void) llm_engine_late(&err);
            llm_engine_doom(e, r, &err, 0);
            return;
        }

        llm_jobs_add(&e->answered, r);
        return;
    }

    if (llm_engine_may_wait(e, r, &retry, &err) != LLM_OK) {
        llm_engine_doom(e, r, &err, retry);
        return;
    }

    if (r->heard) {
        llm_hearing_add(r->instance->hearing, r);

    } else {
        llm_sched_add(r->instance->sched, r);
    }
}


/* ends the preparation of a request.  1: no thread has it, it was removed from
   e->turns; 0: a thread has it and will give it back soon */

static int
llm_engine_call_off(llm_engine_t *e, llm_req_t *r)
{
    int  waits;

    pthread_mutex_lock(&e->lock);

    waits = r->turn != LLM_TURN_PAUSED && r->turn != LLM_TURN_N;

    if (waits) {
        llm_turns_take(&e->turns, r);
        llm_turns_leave(&e->turns, r);
    }

    atomic_store_explicit(&r->cancelled, 1, memory_order_relaxed);
    pthread_cond_broadcast(&e->work);   /* its thread may be paused */
    pthread_mutex_unlock(&e->lock);

    return waits;
}


/*
 * Cancels a request: no further event is sent.  If it has no sequences yet,
 * it is counted as one cancelled choice.
 */

void
llm_engine_cancel(llm_engine_t *e, llm_req_t *r)
{
    llm_peer_t        *p;
    _Atomic uint64_t  *cancelled;

    p = (llm_peer_t *) r->out.to.port;
    cancelled = &llm_zone_counters(e->zone, e->kept, r->model)
                 ->finished[LLM_FINISH_CANCELLED];

    switch (r->state) {

    case LLM_REQ_NEW:
        llm_zone_add(*cancelled, 1);
        llm_jobs_remove(&r->instance->held, r);
        break;

    case LLM_REQ_PREPARING:
        llm_zone_add(*cancelled, 1);
        llm_failure_free(r->late);
        r->late = NULL;

        if (llm_engine_call_off(e, r)) {
            break;
        }

        p->slots[r->out.to.slot] = NULL;
        return;

    case LLM_REQ_ASKING:
        llm_zone_add(*cancelled, 1);
        llm_jobs_remove(&e->asking, r);
        break;

    case LLM_REQ_SCHEDULED:
        llm_zone_add(*cancelled, r->run.n_seqs - r->run.n_ended);
        llm_sched_remove(r->instance->sched, r);
        break;

    case LLM_REQ_HEARD:
        llm_zone_add(*cancelled, 1);
        llm_hearing_remove(r->instance->hearing, r);
        break;

    case LLM_REQ_ANSWERED:
        llm_zone_add(*cancelled, 1);
        llm_jobs_remove(&e->answered, r);
        break;

    case LLM_REQ_DOOMED:
        llm_jobs_remove(&e->doomed, r);
        break;
    }

    llm_engine_forget(e, r);
}


/* ends a request with an ERROR event */

void
llm_engine_fail(llm_engine_t *e, llm_req_t *r, const llm_err_t *err,
    uint32_t retry_after)
{
    switch (r->state) {

    case LLM_REQ_NEW:
        llm_jobs_remove(&r->instance->held, r);
        llm_engine_doom(e, r, err, retry_after);
        return;

    case LLM_REQ_PREPARING:
        if (r->late || atomic_load_explicit(&r->cancelled,
                                            memory_order_relaxed))
        {
            return;
        }

        r->late = llm_failure_create(err, retry_after);

        if (llm_engine_call_off(e, r)) {
            llm_engine_doom(e, r, err, retry_after);
        }

        return;

    case LLM_REQ_ASKING:
        llm_jobs_remove(&e->asking, r);
        llm_engine_doom(e, r, err, retry_after);
        return;

    case LLM_REQ_SCHEDULED:
        llm_sched_fail(r->instance->sched, r, err, retry_after);
        return;

    case LLM_REQ_HEARD:
        llm_hearing_remove(r->instance->hearing, r);
        llm_engine_doom(e, r, err, retry_after);
        return;

    case LLM_REQ_ANSWERED:
        llm_jobs_remove(&e->answered, r);
        llm_engine_doom(e, r, err, retry_after);
        return;

    case LLM_REQ_DOOMED:
        return;
    }
}
