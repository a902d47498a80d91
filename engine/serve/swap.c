/*
 * Replaces a model's file: the new file is loaded while the present one serves,
 * warms up, and takes its place; requests that began with the old file end with
 * it.  If the new file is broken, or there is no memory for both, nothing
 * changes.
 *
 * Requests that come while the present file does not serve wait for the new
 * one; if that fails they go back to the present one.
 */

#include "engine/serve/requests.h"

#include <stdio.h>


/* does the present file serve, or is it being loaded? */

static int
llm_swap_serves(const llm_instance_t *m)
{
    return m->state == LLM_MODEL_READY || m->state == LLM_MODEL_LOADING;
}


int
llm_swap_load(llm_instance_t *m, const char *file, llm_err_t *err)
{
    llm_instance_t  *b;
    llm_engine_t    *e;

    e = m->engine;
    file = strcmp(file, m->conf.path) == 0 ? NULL : file;

    b = llm_instance_create(e, m->index, &m->conf, file);
    if (b == NULL) {
        return llm_fail_with(err, 503, NULL, NULL, "no memory");
    }

    b->naming = m->naming;
    llm_instance_place(b, LLM_INSTANCE_BESIDE, !llm_swap_serves(m));
    b->on_gpu = m->on_gpu;
    b->request_us = m->request_us;

    if (llm_instance_begin(b) != LLM_OK) {
        *err = b->load_err;
        err->status = 503;
        llm_instance_free(b);
        return LLM_ERROR;
    }

    llm_engine_log(e, LLM_LOG_NOTICE, "model \"%s\": %s is being loaded to "
                   "replace %s", m->conf.name, llm_instance_path(b),
                   llm_instance_path(m));

    llm_instance_stay(m);
    m->beside = b;

    if (b->permille[1]) {
        llm_zone_set(e->zone->models[m->index].retry_after, 5);
        llm_zone_set_state(e->zone, m->index, LLM_MODEL_LOADING);
    }

    return LLM_OK;
}


/* moves the requests of a list to the instance `to`, where they wait */

static void
llm_swap_take(llm_instance_t *to, llm_jobs_t *from)
{
    llm_req_t  *r;

    while ((r = llm_jobs_take(from)) != NULL) {
        llm_engine_move(r, to);
        llm_jobs_add(&to->held, r);
    }
}


/* the instance is freed once its requests have ended */

static void
llm_swap_replaced(llm_instance_t *m)
{
    llm_warm_stop(m);
    m->role = LLM_INSTANCE_REPLACED;
    m->beside = NULL;
    m->rebuild = 0;
    m->waits = LLM_WAITS_NOT;
    m->cramped = 0;

    __atomic_store_n(&m->cancel, 1, __ATOMIC_RELAXED);

    (void) llm_engine_show_replaced(m->engine, m->index);
}


void
llm_swap_fail(llm_instance_t *b, const llm_err_t *err)
{
    llm_req_t       *r;
    llm_jobs_t       held;
    llm_running_t   *o;
    llm_engine_t    *e;
    llm_instance_t  *m;

    e = b->engine;
    m = e->models[b->index];
    o = &e->running[b->index];

    o->over = 1;
    o->result = *err;

    if (strcmp(err->code, "model_stopped") == 0) {
        llm_engine_log(e, LLM_LOG_NOTICE, "model \"%s\": the load of %s was "
                       "stopped: %s", b->conf.name, llm_instance_path(b),
                       err->msg);

    } else {
        llm_engine_log(e, LLM_LOG_ERR, "model \"%s\": %s does not replace "
                       "%s: %s", b->conf.name, llm_instance_path(b),
                       llm_instance_path(m), err->msg);
    }

    llm_instance_hide(b, &o->result);

    m->beside = NULL;
    llm_warm_stop(b);
    llm_jobs_init(&held);

    while ((r = llm_jobs_take(&b->held)) != NULL) {
        llm_engine_move(r, m);
        llm_jobs_add(&held, r);
    }

    llm_instance_fail_live(b, err, 0);

    if (b->permille[1]) {
        llm_zone_set_state(e->zone, m->index, m->state);
    }

    llm_swap_replaced(b);

    while ((r = llm_jobs_take(&held)) != NULL) {
        llm_engine_route(e, r);
    }
}


void
llm_swap_loaded(llm_instance_t *b)
{
    llm_err_t  err;

    if (b->role == LLM_INSTANCE_REPLACED) {
        (void) pthread_join(b->loader, NULL);
        b->loading = 0;
        b->state = LLM_MODEL_IDLE;
        return;
    }

    if (llm_instance_join(b) != LLM_OK) {
        err = b->load_err;
        b->state = LLM_MODEL_IDLE;
        b->lost = strcmp(err.code, LLM_DEVICE_LOST) == 0;

        err.status = 503;

        if (err.code[0] == '\0') {
            snprintf(err.code, sizeof(err.code), "model_failed");
        }

        llm_swap_fail(b, &err);
        return;
    }

    if (b->conf.warmup && b->sched) {
        llm_warm_begin(b);

    } else {
        llm_swap_open(b);
    }
}


void
llm_swap_open(llm_instance_t *b)
{
    llm_engine_t        *e;
    llm_instance_t      *m;
    llm_zone_command_t  *z;

    e = b->engine;
    m = e->models[b->index];
    z = &e->zone->models[b->index].command;

    llm_swap_take(b, &m->held);
    llm_swap_replaced(m);

    e->models[b->index] = b;
    llm_instance_place(b, LLM_INSTANCE_MODEL, 1);

    llm_command_set_file(z, b->file ? b->file : "");
    atomic_store(&z->stopped, 0);

    e->running[b->index].over = 1;
    memset(&e->running[b->index].result, 0, sizeof(llm_err_t));

    llm_engine_log(e, LLM_LOG_NOTICE, "model \"%s\": %s has replaced %s, "
                   "which %u requests still use", b->conf.name,
                   llm_instance_path(b), llm_instance_path(m), m->n_reqs);

    llm_instance_open(b);
}


void
llm_swap_broken(llm_instance_t *m, const llm_err_t *err)
{
    llm_err_t  e;

    m->lost |= strcmp(err->code, LLM_DEVICE_LOST) == 0;

    if (m->role == LLM_INSTANCE_BESIDE) {
        e = *err;
        e.status = 503;
        llm_swap_fail(m, &e);
        return;
    }

    if (strcmp(err->code, LLM_DEVICE_LOST) == 0
        || llm_instance_device_failed(err)
        || strcmp(err->code, LLM_FILE_ERROR) == 0)
    {
        llm_instance_fail_live(m, err, 5);
    }
}


static void *
llm_replaced_main(void *data)
{
    llm_instance_t  *m = data;

    (void) pthread_setname_np(pthread_self(), "llm-free");

    llm_instance_close(m);

    atomic_store(&m->loaded, 1);
    llm_engine_wake(m->engine);

    return NULL;
}


/* freeing much memory takes time, and other models' steps must not wait for it:
   the scheduler's thread frees what only it may, another thread the rest */

static void
llm_replaced_close(llm_instance_t *m)
{
    m->closed = 1;
    atomic_store(&m->loaded, 0);

    if (m->sched) {
        llm_sched_free(m->sched);
        m->sched = NULL;
    }

    if (llm_thread_start(&m->loader, llm_replaced_main, m) == 0) {
        m->loading = 1;

    } else {
        llm_instance_close(m);
    }
}


/*
 * If its GPU's context was lost, only another process can load anything there:
 * this process exits once no request is live, unless the model's present
 * instance has found the loss before.
 */

void
llm_swap_free_replaced(llm_instance_t *m)
{
    llm_engine_t  *e;

    e = m->engine;

    if (m->n_reqs || m->loading) {
        return;
    }

    if (m->lost) {
        if (e->live == NULL) {
            llm_engine_lose(e);
        }

        return;
    }

    if (!m->closed) {
        llm_replaced_close(m);
    }

    if (m->loading) {
        return;
    }

    llm_engine_log(e, LLM_LOG_NOTICE, "model \"%s\": %s has been freed",
                   m->conf.name, llm_instance_path(m));

    llm_instance_free(m);
}
