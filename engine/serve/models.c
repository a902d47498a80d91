/*
 * The states of a model (loaded, unloaded, failed, loaded again) and what
 * they mean for its requests; load.c has the load itself.
 */

#include "engine/serve/requests.h"

#include <stdio.h>


static int
llm_instance_ready(llm_instance_t *m)
{
    llm_engine_t      *e;
    llm_sched_conf_t   conf;

    e = m->engine;

    if (m->hearing) {
        return LLM_OK;
    }

    memset(&conf, 0, sizeof(conf));

    conf.runner = m->runner;
    conf.vocab = m->env.vocab;
    conf.zone = e->zone;
    conf.kept = e->kept;
    conf.model = m->index;
    memcpy(conf.speculate, m->conf.speculate, sizeof(conf.speculate));
    m->env.speculates = conf.speculate[0] != LLM_DRAFT_NONE;
    conf.draft = m->draft ? &m->draft_runner : NULL;
    conf.head = m->head ? &m->head_runner : NULL;
    conf.ended = llm_engine_ended;
    conf.masked = llm_engine_masked;
    conf.data = e;

    m->env.grams = llm_gram_cache_create(m->env.vocab);

    if (m->env.grams == NULL) {
        return llm_fail(&m->load_err, "no memory for the model");
    }

    m->sched = llm_sched_create(&conf, &m->load_err);

    if (m->sched == NULL) {
        return LLM_ERROR;
    }

    m->env.eog = llm_sched_eog(m->sched, &m->env.n_eog);

    return LLM_OK;
}


static void
llm_instance_fail_held(llm_instance_t *m)
{
    llm_err_t   err;
    llm_req_t  *r;

    (void) llm_fail_with(&err, 503, "model_failed", NULL,
                         "the model could not be loaded: %.400s",
                         m->load_err.msg);

    while ((r = m->held.first) != NULL) {
        llm_engine_fail(m->engine, r, &err, 0);
    }
}


/* writes what /models shows of a model into the zone */

static void
llm_instance_show(const llm_instance_t *m)
{
    const llm_hparams_t     *hp;
    llm_zone_model_state_t  *z;

    z = &m->engine->zone->models[m->index];

    llm_zone_set_speech(m->engine->zone, m->index, m->engine->epoch,
                        m->hearing != NULL);
    llm_zone_set(z->ctx, m->runner.ctx);
    llm_zone_set(z->ctx_train, m->runner.ctx);
    llm_zone_set(z->n_vocab, m->runner.n_vocab);
    llm_zone_set(z->takes, llm_prep_takes(&m->env));

    if (m->model == NULL) {
        return;
    }

    hp = llm_model_hparams(m->model);

    llm_zone_advise(m->engine->zone, m->index, &m->env.advised);
    llm_zone_set(z->ctx_train, hp->n_ctx_train);
    llm_zone_set(z->n_embd, hp->n_embd);
    llm_zone_set(z->n_params, hp->n_params);
    llm_zone_set(z->n_bytes, hp->n_bytes);
}


int
llm_instance_device_failed(const llm_err_t *err)
{
    return strcmp(err->code, LLM_DEVICE_ERROR) == 0
           || strcmp(err->code, LLM_DEVICE_MEMORY) == 0;
}


void
llm_instance_count_error(llm_instance_t *m, const llm_err_t *err)
{
    llm_zone_counters_t  *c;

    c = llm_zone_counters(m->engine->zone, m->engine->kept, m->index);

    if (llm_instance_device_failed(err)
        || strcmp(err->code, LLM_DEVICE_LOST) == 0)
    {
        llm_zone_add(c->device_errors, 1);
    }

    if (strcmp(err->code, LLM_DEVICE_MEMORY) == 0
        || strcmp(err->code, LLM_MEMORY_ERROR) == 0)
    {
        llm_zone_add(c->memory_errors, 1);
    }
}


int
llm_instance_join(llm_instance_t *m)
{
    (void) pthread_join(m->loader, NULL);
    m->loading = 0;
    atomic_store(&m->loaded, 0);

    if (m->load_err.status || llm_instance_ready(m) != LLM_OK) {
        llm_instance_close(m);
        return LLM_ERROR;
    }

    return LLM_OK;
}


static void
llm_instance_again(llm_instance_t *m)
{
    if (llm_instance_start(m) != LLM_OK) {
        llm_instance_fail_held(m);
    }
}


/* as llm_engine_spare(), for the first in line.  LLM_OK: a model was unloaded; the
   requests that have come for it meanwhile wait */

static int
llm_instance_make_room(llm_instance_t *m)
{
    int              rc;
    llm_engine_t    *e;
    llm_instance_t  *spare;

    e = m->engine;

    if (llm_engine_first_in_line(e) != m) {
        return LLM_FULL;
    }

    if (llm_now_us() < m->vain_us) {
        return LLM_ABSENT;
    }

    rc = llm_engine_spare(e, m, &spare);

    if (rc != LLM_OK) {
        return rc;
    }

    llm_engine_log(e, LLM_LOG_NOTICE, "model \"%s\" is unloaded to make room "
                   "for \"%s\"", spare->conf.name, m->conf.name);
    llm_instance_unload(spare, LLM_MODEL_IDLE);
    m->made_room = 1;

    if (spare->held.first) {
        (void) llm_fail(&spare->load_err, "it has made room for \"%s\"",
                        m->conf.name);
        llm_zone_set(e->zone->models[spare->index].wanted, 1);
        spare->lacks_us = llm_now_us();
        llm_instance_wait(spare, LLM_WAITS_ROOM);
    }

    return LLM_OK;
}


/* does anybody want a model that a request loads? */

static int
llm_instance_is_wanted(const llm_instance_t *m)
{
    return m->held.first || !llm_instance_yields(m)
           || m->engine->running[m->index].begun;
}


/* there is no memory, and nobody wants it any more: the next request tries */

static void
llm_instance_give_up(llm_instance_t *m)
{
    llm_engine_log(m->engine, LLM_LOG_WARN, "model \"%s\" is loaded by the next "
                   "request for it: %s", m->conf.name, m->load_err.msg);
    llm_zone_set(m->engine->zone->models[m->index].wanted, 0);
    llm_instance_unload(m, LLM_MODEL_IDLE);
}


/* LLM_OK: the load begins again, waits, or is given up; LLM_ABSENT: no memory
   will become free */

static int
llm_instance_lacks_memory(llm_instance_t *m)
{
    if (m->n_older) {
        llm_instance_wait(m, LLM_WAITS_OLDER);
        return LLM_OK;
    }

    if (!llm_instance_is_wanted(m)) {
        llm_instance_count_error(m, &m->load_err);
        llm_instance_give_up(m);
        return LLM_OK;
    }

    if (m->lacks_us == 0) {
        m->lacks_us = llm_now_us();
    }

    switch (llm_instance_make_room(m)) {

    case LLM_OK:
        llm_instance_again(m);
        return LLM_OK;

    case LLM_FULL:
        llm_instance_wait(m, LLM_WAITS_ROOM);
        return LLM_OK;
    }

    if (m->made_room) {
        m->vain_us = llm_now_us() + LLM_ROOM_VAIN_US;
    }

    return LLM_ABSENT;
}


/* goes on with a load that waits, if it may.  If no memory will become free, some
   may have: of loads beside this one, which have failed */

static void
llm_instance_waited(llm_instance_t *m)
{
    llm_engine_t  *e;

    e = m->engine;

    if (m->waits == LLM_WAITS_OLDER) {
        if (llm_engines_older(e->engines, e->place) < m->n_older) {
            llm_instance_again(m);
        }

    } else if (!llm_instance_is_wanted(m)) {
        llm_instance_give_up(m);

    } else if (llm_instance_make_room(m) != LLM_FULL) {
        llm_instance_again(m);
    }
}


void
llm_instance_loaded(llm_instance_t *m)
{
    llm_engine_t  *e;

    e = m->engine;

    if (llm_instance_join(m) != LLM_OK) {

        if (!m->ends && strcmp(m->load_err.code, LLM_MEMORY_ERROR) == 0
            && llm_instance_lacks_memory(m) == LLM_OK)
        {
            return;
        }

        llm_zone_set(e->zone->models[m->index].wanted, 0);

        if (m->ends) {
            return;
        }

        llm_instance_count_error(m, &m->load_err);
        llm_instance_failed(m);
        llm_instance_fail_held(m);
        return;
    }

    if (m->ends) {
        llm_instance_close(m);

    } else if (m->conf.warmup && m->sched) {
        llm_warm_begin(m);

    } else {
        llm_instance_open(m);
    }
}


void
llm_instance_open(llm_instance_t *m)
{
    char                device[128];
    llm_zone_t         *z;
    llm_engine_t       *e;
    const llm_model_t  *model;

    e = m->engine;
    z = e->zone;

    llm_zone_set(z->models[m->index].wanted, 0);
    m->ready_us = llm_now_us();

    model = m->hearing ? llm_hearing_model(m->hearing) : m->model;

    if (model) {
        llm_model_device(model, device, sizeof(device));

    } else {
        snprintf(device, sizeof(device), "%s", m->conf.device);
    }

    if (m->env.chat == NULL && m->hearing == NULL) {
        llm_engine_log(e, LLM_LOG_WARN, "model \"%s\": no chat: %s",
                       m->conf.name, m->env.chat_err.msg);
        llm_instance_hide(m, &m->env.chat_err);
    }

    llm_engine_log(e, LLM_LOG_NOTICE, "model \"%s\" is ready: %s, context "
                   "%u, %u sequences, %u pages", m->conf.name, device,
                   m->runner.ctx, m->runner.max_seqs,
                   m->runner.n_pages[LLM_KV_FULL]);

    m->cramped = m->crowded && m->model && llm_model_short_kv(m->model);

    if (m->cramped) {
        llm_engine_log(e, LLM_LOG_WARN, "model \"%s\": %s leaves memory for "
                       "only %u pages of the KV cache; the model is loaded "
                       "again, with all pages, when that memory is free and "
                       "no request is live", m->conf.name,
                       m->n_older ? "the engine of an older configuration or "
                                    "binary"
                                  : "the file that it replaces",
                       m->runner.n_pages[LLM_KV_FULL]);
    }

    if (e->gpu == NULL && model && llm_model_on_gpu(model)) {
        e->gpu = llm_gpu_start(e);
    }

    m->logged[0] = '\0';
    m->lacks_us = 0;
    m->made_room = 0;
    m->vain_us = 0;
    m->state = LLM_MODEL_READY;
    m->used_us = llm_now_us();

    llm_zone_set(z->models[m->index].permille, 1000);
    llm_instance_show(m);

    if (model) {
        llm_instance_count_memory(m, llm_model_hparams(model)->n_bytes,
                                  llm_model_kv_bytes(model));
    }

    llm_zone_set(z->models[m->index].retry_after, 1);
    llm_zone_set(z->models[m->index].losses, 0);
    llm_zone_set_text(z, m->index, "", device);
    llm_zone_set_state(z, m->index, LLM_MODEL_READY);

    llm_engine_prepare_held(m);
}


void
llm_instance_unload(llm_instance_t *m, llm_model_state_t state)
{
    if (m->loading) {
        __atomic_store_n(&m->cancel, 1, __ATOMIC_RELAXED);
        (void) pthread_join(m->loader, NULL);
        m->loading = 0;
    }

    llm_warm_stop(m);
    llm_instance_close(m);

    m->rebuild = 0;
    m->waits = LLM_WAITS_NOT;
    m->lacks_us = 0;
    m->made_room = 0;
    m->gives_way = 0;
    m->cramped = 0;
    m->n_failed_steps = 0;
    m->state = state;

    if (m->role == LLM_INSTANCE_MODEL) {
        llm_zone_set_state(m->engine->zone, m->index, state);
    }
}


void
llm_instance_fail_live(llm_instance_t *m, const llm_err_t *err,
    uint32_t retry_after)
{
    llm_req_t     *r, *next;
    llm_engine_t  *e;

    e = m->engine;

    for (r = e->live; r; r = next) {
        next = r->next;

        if (r->instance == m) {
            llm_engine_fail(e, r, err, retry_after);
        }
    }
}


void
llm_instance_break(llm_instance_t *m)
{
    llm_err_t  err;

    llm_warm_stop(m);
    llm_instance_failed(m);

    (void) llm_fail_with(&err, 503, "model_failed", NULL,
                         "the model's device failed: %.400s",
                         m->load_err.msg);

    llm_instance_fail_live(m, &err, 0);
}


void
llm_instance_rebuild(llm_instance_t *m, const llm_err_t *err)
{
    llm_engine_t  *e;

    e = m->engine;

    llm_engine_log(e, LLM_LOG_WARN, "model \"%s\" is loaded again: its "
                   "%s failed", m->conf.name,
                   strcmp(err->code, LLM_FILE_ERROR) ? "device" : "file");

    llm_warm_stop(m);
    m->rebuild = 1;
    m->state = LLM_MODEL_LOADING;
    llm_zone_set(e->zone->models[m->index].permille, 0);
    llm_zone_set(e->zone->models[m->index].retry_after, 5);
    llm_zone_set_state(e->zone, m->index, LLM_MODEL_LOADING);

    llm_instance_fail_live(m, err, 5);
}


/* requests in preparation use the vocabulary, ending ones the scheduler; those
   in state NEW use nothing of the instance */

static int
llm_instance_in_use(const llm_instance_t *m)
{
    llm_req_t  *r;

    for (r = m->engine->live; r; r = r->next) {
        if (r->instance == m && r->state != LLM_REQ_NEW) {
            return 1;
        }
    }

    return 0;
}


void
llm_instance_rebuilt(llm_instance_t *m)
{
    if (llm_instance_in_use(m)) {
        return;
    }

    if (m->lost) {
        llm_engine_lose(m->engine);
        return;
    }

    m->rebuild = 0;
    llm_instance_close(m);

    if (llm_instance_load(m) != LLM_OK) {
        llm_instance_fail_held(m);
    }
}


void
llm_instance_retry(llm_instance_t *m, uint64_t now)
{
    llm_engine_t  *e;

    e = m->engine;

    if (m->ends) {
        return;
    }

    if (m->waits) {
        llm_instance_waited(m);
        return;
    }

    if (m->cramped) {
        if (m->state == LLM_MODEL_READY && m->n_reqs == 0
            && m->beside == NULL && !llm_engine_show_replaced(e, m->index)
            && llm_engines_older(e->engines, e->place) == 0)
        {
            llm_instance_close(m);
            (void) llm_instance_load(m);
        }

        return;
    }

    if (m->state != LLM_MODEL_FAILED || m->conf.retry_s == 0 || m->beside
        || now < m->retry_us
        || llm_instance_in_use(m))
    {
        return;
    }

    if (m->lost) {

        /* this process will exit, after the requests of all models have
           ended */

        if (e->live == NULL) {
            llm_engine_lose(e);
        }

        return;
    }

    if (!llm_instance_is_wanted(m)
        && strcmp(m->load_err.code, LLM_MEMORY_ERROR) == 0)
    {
        llm_instance_give_up(m);
        return;
    }

    m->n_failed_steps = 0;
    llm_instance_close(m);

    (void) llm_instance_start(m);
}
