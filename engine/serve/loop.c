/*
 * The scheduler's thread: it reads messages, runs a step of each model, sends
 * events, and sleeps when there is nothing to do.
 */

#include "engine/serve/requests.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define LLM_ENGINE_CHECK_US   50000     /* time between checks of deadlines and
                                           workers */
#define LLM_ENGINE_BAD_STEPS  3         /* failed steps in a row that mean that
                                           the device is broken */


static void
llm_engine_take_prepared(llm_engine_t *e)
{
    llm_req_t   *r;
    llm_jobs_t   jobs;

    llm_jobs_init(&jobs);

    pthread_mutex_lock(&e->lock);
    llm_jobs_move(&jobs, &e->prepared);
    pthread_mutex_unlock(&e->lock);

    while ((r = llm_jobs_take(&jobs)) != NULL) {
        llm_engine_prepared(e, r);
    }
}


/* has the request not run yet, or were all its remaining sequences
   preempted? */

static int
llm_engine_is_waiting(const llm_req_t *r)
{
    int               waits;
    uint32_t          i;
    const llm_seq_t  *q;

    if (r->run.start_us == 0) {
        return 1;
    }

    waits = 0;

    for (i = 0; r->state == LLM_REQ_SCHEDULED && i < r->run.n_seqs; i++) {
        q = &r->run.seqs[i];

        if (q->state == LLM_SEQ_RUNNING || q->state == LLM_SEQ_PARKED) {
            return 0;
        }

        waits |= q->state == LLM_SEQ_WAITING;
    }

    return waits;
}


static void
llm_engine_check_deadlines(llm_engine_t *e, uint64_t now)
{
    uint32_t              i, waiting[LLM_MAX_MODELS];
    llm_err_t             err;
    llm_req_t            *r, *next;
    const llm_request_t  *msg;

    memset(waiting, 0, sizeof(waiting));

    for (r = e->live; r; r = next) {
        next = r->next;
        msg = r->msg;
        waiting[r->model] += !r->own && llm_engine_is_waiting(r);

        if (r->state == LLM_REQ_SCHEDULED || r->state == LLM_REQ_HEARD) {
            llm_engine_count(e, r, llm_req_bytes(r));
        }

        if (msg->deadline_us && now >= msg->deadline_us) {
            (void) llm_engine_late(&err);
            llm_engine_fail(e, r, &err, 0);

        } else if (msg->queue_deadline_us && now >= msg->queue_deadline_us
                   && r->run.start_us == 0)
        {
            (void) llm_fail_with(&err, 503, "queue_timeout", NULL,
                                 "the request waited too long in the queue");
            llm_engine_fail(e, r, &err,
                            llm_engine_retry_after(r->instance));
        }
    }

    for (i = 0; i < e->n_models; i++) {
        llm_zone_set(e->zone->models[i].figures.waiting, waiting[i]);
    }
}


static void
llm_engine_check(llm_engine_t *e)
{
    uint64_t         now;
    uint32_t         i;
    llm_instance_t  *m;

    now = llm_now_us();

    if (now < e->check_us) {
        return;
    }

    e->check_us = now + LLM_ENGINE_CHECK_US;

    llm_engine_check_peers(e);
    llm_engine_check_deadlines(e, now);
    llm_engine_audit(e);
    llm_engine_give_way(e, now);

    for (i = 0; i < e->n_models; i++) {
        m = e->models[i];

        llm_instance_retry(m, now);

        if (m->conf.idle_s && m->state == LLM_MODEL_READY && !m->ends
            && m->n_reqs == 0
            && now >= m->used_us + (uint64_t) m->conf.idle_s * 1000000)
        {
            llm_engine_log(e, LLM_LOG_NOTICE, "model \"%s\" was idle for "
                           "%u s and is unloaded", m->conf.name,
                           m->conf.idle_s);
            llm_instance_unload(m, LLM_MODEL_IDLE);
        }
    }
}


static int
llm_engine_step(llm_engine_t *e, llm_instance_t *m)
{
    int        rc;
    llm_err_t  err;

#ifdef LLM_TEST
    if (m->synthetic && !llm_synthetic_due(m->synthetic, llm_now_us())) {
        return 0;
    }
#endif

    rc = m->hearing ? llm_hearing_step(m->hearing, &err)
                    : llm_sched_step(m->sched, &err);

    if (rc == 0) {
        return 0;
    }

    if (rc != LLM_ERROR) {
        m->n_failed_steps = 0;
        m->retry_s = 0;
        return rc;
    }

    llm_engine_log(e, LLM_LOG_ERR, "model \"%s\": a step failed: %s",
                   m->conf.name, err.msg);
    llm_instance_count_error(m, &err);

    if (m->role != LLM_INSTANCE_MODEL || m->ends) {
        llm_swap_broken(m, &err);

    } else if (strcmp(err.code, LLM_DEVICE_LOST) == 0) {
        m->lost = 1;
        llm_instance_rebuild(m, &err);

    } else if (++m->n_failed_steps >= LLM_ENGINE_BAD_STEPS) {
        m->load_err = err;
        llm_instance_break(m);

    } else if (llm_instance_device_failed(&err)
               || strcmp(err.code, LLM_FILE_ERROR) == 0)
    {
        llm_instance_rebuild(m, &err);
    }

    return 1;
}


/* an instance's loader has ended */

static void
llm_engine_loaded(llm_instance_t *m)
{
    if (m->role == LLM_INSTANCE_MODEL) {
        llm_instance_loaded(m);

    } else {
        llm_swap_loaded(m);
    }
}


/* takes further what goes on between steps: rebuilds, warm-ups, freeing of
   replaced instances, commands; nonzero if a warm-up had anything to do */

static int
llm_engine_loads(llm_engine_t *e)
{
    int              busy, over;
    llm_instance_t  *m, *next;

    busy = 0;

    for (m = e->instances; m; m = next) {
        next = m->next;

        if (m->rebuild) {
            llm_instance_rebuilt(m);
        }

        busy |= llm_warm_step(m, &over);

        if (over && m->role == LLM_INSTANCE_MODEL) {
            llm_instance_open(m);

        } else if (over) {
            llm_swap_open(m);
        }

        if (m->role == LLM_INSTANCE_REPLACED) {
            llm_swap_free_replaced(m);
        }
    }

    llm_engine_commands(e);

    return busy;
}


/* sends the events of an instance's requests; a step that failed may have
   closed it */

static void
llm_engine_send(llm_instance_t *m)
{
    m->unsent = m->hearing ? llm_hearing_send(m->hearing, llm_engine_ended,
                                              llm_engine_fail)
                : m->sched ? llm_sched_send_events(m->sched) : 0;
}


/* one round of the loop; nonzero if there was anything to do; *unsent: events
   wait for room in a ring */

static int
llm_engine_round(llm_engine_t *e, int *unsent)
{
    int              busy;
    uint32_t         i;
    llm_instance_t  *m;

    busy = 0;
    *unsent = 0;

    llm_engine_messages(e);
    llm_engine_take_prepared(e);
    llm_engine_check(e);

    for (m = e->instances; m; m = m->next) {

        if (m->loading
            && atomic_load_explicit(&m->loaded, memory_order_acquire))
        {
            llm_engine_loaded(m);
            busy = 1;
        }

        if (m->unsent) {
            llm_engine_send(m);
        }

        if (m->sched || m->hearing) {
            busy |= llm_engine_step(e, m);
            llm_engine_send(m);
            *unsent |= m->unsent;
        }

        llm_engine_show_forecast(m, llm_now_us());
    }

    *unsent |= llm_engine_send_grants(e);
    *unsent |= llm_engine_send_answers(e);
    *unsent |= llm_engine_send_errors(e);

    for (i = 0; i < e->n_peers; i++) {
        *unsent |= e->peers[i].refusal.pending;
    }

    busy |= llm_engine_loads(e);

    for (i = 0; i < e->n_peers; i++) {
        llm_port_show(&e->peers[i].port);
    }

    llm_internal_drain(&e->internal);

    return busy;
}


/* called after engine_armed was set: has anything arrived in between? */

static int
llm_engine_has_work(llm_engine_t *e)
{
    int                    found;
    uint32_t               i;
    const llm_instance_t  *m;

    if (atomic_load(&e->stop)) {
        return 1;
    }

    for (i = 0; i < e->n_peers; i++) {
        if (!e->peers[i].refusal.pending
            && !llm_ring_empty(&e->peers[i].down))
        {
            return 1;
        }
    }

    for (m = e->instances; m; m = m->next) {
        if ((m->loading && atomic_load(&m->loaded))
            || (m->sched && llm_sched_can_draw(m->sched)))
        {
            return 1;
        }
    }

    pthread_mutex_lock(&e->lock);
    found = e->prepared.first != NULL;
    pthread_mutex_unlock(&e->lock);

    return found;
}


#ifdef LLM_TEST

/* when the next step of a synthetic model is due; UINT64_MAX: there is none */

static uint64_t
llm_engine_next_step(const llm_engine_t *e)
{
    uint64_t               next;
    const llm_instance_t  *m;

    next = UINT64_MAX;

    for (m = e->instances; m && e->n_live; m = m->next) {
        if (m->sched && m->synthetic) {
            next = llm_min(next, llm_synthetic_next(m->synthetic));
        }
    }

    return next;
}

#endif


/* milliseconds for poll(); -1: no timeout */

static int
llm_engine_timeout(const llm_engine_t *e, int unsent)
{
    uint32_t               i;
    const llm_instance_t  *m;

#ifdef LLM_TEST
    uint64_t  now, next;

    now = llm_now_us();
    next = llm_engine_next_step(e);

    if (next != UINT64_MAX) {
        return next > now ? (int) ((next - now + 999) / 1000) : 0;
    }
#endif

    if (unsent) {
        return 20;                      /* normally the reader wakes the
                                           engine */
    }

    if (e->n_live || atomic_load(&e->zone->suspect)
        || llm_engine_commands_wait(e))
    {
        return LLM_ENGINE_CHECK_US / 1000;
    }

    for (i = 0; i < e->n_models; i++) {
        m = e->models[i];

        if (m->waits || m->cramped) {
            return LLM_ENGINE_CHECK_US / 1000;
        }

        if (m->state == LLM_MODEL_FAILED
            || (m->conf.idle_s && m->state == LLM_MODEL_READY))
        {
            return 1000;
        }
    }

    return -1;
}


static void
llm_engine_sleep(llm_engine_t *e, int unsent)
{
    uint64_t       n;
    struct pollfd  fd;

    atomic_store(&e->zone->engine_armed, 1);
    atomic_store(&e->zone->woken_us, 0);

    if (!llm_engine_has_work(e)) {
        /* with live requests poll() has a timeout, as a stuck preparation
           thread would never wake the engine; busy_since_us shows workers an
           engine that does not come back from it */

        atomic_store(&e->zone->busy_since_us, e->n_live ? llm_now_us() : 0);

        fd.fd = e->fd;
        fd.events = POLLIN;
        fd.revents = 0;

        if (poll(&fd, 1, llm_engine_timeout(e, unsent)) > 0) {
            (void) !read(e->fd, &n, sizeof(n));
        }

        atomic_store(&e->zone->busy_since_us, llm_now_us());
    }

    atomic_store(&e->zone->engine_armed, 0);
}


/* ends live requests with an error, then ends all other threads */

static void
llm_engine_shutdown(llm_engine_t *e)
{
    uint32_t         i;
    llm_err_t        err;
    llm_req_t       *r, *next;
    llm_instance_t  *m;

    (void) llm_fail_with(&err, 503, "shutting_down", NULL,
                         "the server is shutting down");

    for (m = e->instances; m; m = m->next) {
        __atomic_store_n(&m->cancel, 1, __ATOMIC_RELAXED);
    }

    llm_engine_messages(e);
    llm_engine_drop_commands(e, &err);

    for (r = e->live; r; r = next) {
        next = r->next;
        llm_engine_fail(e, r, &err, 1);
    }

    for (m = e->instances; m; m = m->next) {
        llm_engine_send(m);
    }

    (void) llm_engine_send_errors(e);

    for (i = 0; i < e->n_peers; i++) {
        llm_port_show(&e->peers[i].port);
    }

    llm_engine_quit(e);
    llm_engine_take_prepared(e);

    while ((r = llm_turns_next(&e->turns, LLM_TURNS_ALL)) != NULL) {
        llm_turns_take(&e->turns, r);
        llm_turns_leave(&e->turns, r);
        llm_engine_prepared(e, r);
    }

    (void) llm_engine_send_errors(e);

    while (e->live) {
        llm_engine_cancel(e, e->live);
    }

    for (i = 0; i < e->n_peers; i++) {
        llm_port_show(&e->peers[i].port);
    }

    for (m = e->instances; m; m = m->next) {
        llm_instance_unload(m, LLM_MODEL_IDLE);
    }

    llm_zone_set(e->zone->busy_since_us, 0);
    atomic_store(&e->zone->engine_pid, 0);
}


void *
llm_engine_main(void *data)
{
    int            busy, unsent;
    uint32_t       i;
    llm_engine_t  *e = data;

    (void) pthread_setname_np(pthread_self(), "llm-schedule");

    for (i = 0; i < e->n_models; i++) {
        if (!e->models[i]->conf.lazy
            && e->models[i]->state != LLM_MODEL_STOPPED)
        {
            (void) llm_instance_load(e->models[i]);
        }
    }

    while (!atomic_load(&e->stop)) {
        llm_zone_set(e->zone->busy_since_us, llm_now_us());

        busy = llm_engine_round(e, &unsent);

        if (!busy && !atomic_load(&e->stop)) {
            llm_engine_sleep(e, unsent);
        }
    }

    llm_engine_shutdown(e);

    return NULL;
}
