/*
 * Starting and stopping the engine; see llm.h and engine.h.
 */

#define _GNU_SOURCE

#include "engine/serve/requests.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>


static void
llm_engine_free(llm_engine_t *e)
{
    uint32_t  i;

    llm_engines_leave(e->engines, e->place);

    while (e->instances) {
        llm_instance_free(e->instances);
    }

    for (i = 0; e->peers && i < e->n_peers; i++) {
        free(e->peers[i].slots);
    }

    llm_turns_free(&e->turns);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->work);

    llm_internal_close(&e->internal);
    free(e->models);
    free(e->running);
    free(e->peers);
    llm_devices_free(e->devices);
    llm_media_pool_free(e->media);
    free((char *) e->backend_dir);
    free(e);
}


/* makes the models of the configuration, with the names, files and states that
   commands have left in the zone; LLM_ERROR: no memory */

static int
llm_engine_copy_models(llm_engine_t *e, const llm_engine_conf_t *conf)
{
    uint32_t             i;
    const char          *file;
    llm_naming_t         given;
    llm_override_t       left;
    llm_engine_model_t   m;

    for (i = 0; i < e->n_models; i++) {
        /* in this order: the file was written before the name */

        llm_zone_name(e->zone, i, &given);
        llm_zone_override(e->zone, i, &left);

        m = conf->models[i];

        if (given.naming) {
            m.name = given.name;

        } else if (m.added) {
            memset(&left, 0, sizeof(left));
            left.stopped = 1;
        }

        if (!m.added && strcmp(left.file, m.path) == 0) {
            llm_command_set_file(&e->zone->models[i].command, "");
            left.file[0] = '\0';
        }

        file = left.file[0] ? left.file : NULL;
        e->models[i] = llm_instance_create(e, i, &m, file);

        if (e->models[i] == NULL) {
            return LLM_ERROR;
        }

        e->models[i]->naming = given.naming;

        if (left.stopped) {
            e->models[i]->state = LLM_MODEL_STOPPED;
        }

        if (conf->models[i].warmup && e->internal.mem == NULL
            && llm_internal_open(&e->internal, e->n_models) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static llm_engine_t *
llm_engine_create(const llm_engine_conf_t *conf)
{
    llm_engine_t  *e;

    e = calloc(1, sizeof(*e));
    if (e == NULL) {
        return NULL;
    }

    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->work, NULL);

    e->zone = conf->zone;
    e->kept = conf->kept;
    e->engines = conf->engines;
    e->place = UINT32_MAX;
    e->fd = conf->engine_fd;
    e->log = conf->log;
    e->log_data = conf->log_data;
    e->n_models = llm_min(conf->n_models, conf->zone->n_models);
    e->n_peers = llm_min(conf->n_workers, conf->zone->n_workers);
    e->max_bytes = conf->max_bytes ? conf->max_bytes : LLM_ENGINE_MAX_BYTES;

    llm_turns_init(&e->turns);
    e->n_idle = LLM_ENGINE_OTHERS;
    llm_jobs_init(&e->prepared);
    llm_jobs_init(&e->doomed);
    llm_jobs_init(&e->asking);
    llm_jobs_init(&e->answered);

    e->models = calloc(llm_max(e->n_models, 1u), sizeof(*e->models));
    e->running = calloc(llm_max(e->n_models, 1u), sizeof(*e->running));
    e->peers = calloc(llm_max(e->n_peers, 1u), sizeof(*e->peers));
    e->backend_dir = conf->backend_dir ? strdup(conf->backend_dir) : NULL;
    e->devices = llm_devices_create();
    e->media = llm_media_pool_create(NULL, LLM_ENGINE_DECODERS);

    if ((conf->backend_dir && e->backend_dir == NULL) || e->devices == NULL
        || e->media == NULL || e->models == NULL || e->running == NULL
        || e->peers == NULL
        || llm_engine_copy_models(e, conf) != LLM_OK)
    {
        llm_engine_free(e);
        return NULL;
    }

    return e;
}


/*
 * Attaches the engine to the zone and begins a new epoch.  The first engine
 * keeps the zone's epoch, so it serves requests that were sent before it
 * attached.
 */

static void
llm_engine_attach(llm_engine_t *e, const int *worker_fds)
{
    ssize_t          n;
    uint32_t         i;
    uint64_t         one = 1;
    llm_peer_t      *p;
    llm_zone_t      *z;
    llm_instance_t  *m;

    z = e->zone;

    for (i = 0; i < e->n_models; i++) {
        llm_zone_set(z->models[i].figures.running, 0);
        llm_zone_set(z->models[i].figures.parked, 0);
        llm_zone_set(z->models[i].figures.waiting, 0);
        llm_zone_set(z->models[i].figures.prefilling, 0);
        llm_zone_set(z->models[i].figures.prompt_left, 0);
        llm_zone_set(z->models[i].figures.request_memory, 0);
        llm_zone_set(z->models[i].figures.kv_pages, 0);
        llm_zone_set(z->models[i].figures.kv_used, 0);
        llm_zone_set(z->models[i].figures.kv_cached, 0);
        llm_zone_set(z->models[i].figures.window_pages, 0);
        llm_zone_set(z->models[i].figures.window_used, 0);
        llm_zone_set(z->models[i].figures.window_cached, 0);
        llm_zone_set(z->models[i].figures.snapshots, 0);
        llm_zone_set(z->models[i].figures.weight_bytes, 0);
        llm_zone_set(z->models[i].figures.kv_bytes, 0);
        llm_zone_set(z->models[i].permille, 0);
        llm_zone_set(z->models[i].warming, 0);
        llm_zone_set(z->models[i].wanted, 0);
        llm_zone_set(z->models[i].command.replaced, 0);
        llm_zone_set_text(z, i, "", "");
        llm_command_sweep(&z->models[i].command);

        m = e->models[i];
        llm_zone_set_state(z, i, m->state == LLM_MODEL_STOPPED || m->conf.lazy
                                 ? m->state : LLM_MODEL_LOADING);
    }

    for (i = 0; i < e->n_peers; i++) {
        p = &e->peers[i];
        llm_port_open(&p->port, z, e->kept, i, worker_fds[i]);
        llm_ring_consumer(&p->down, llm_zone_at(z, p->port.worker->down));
    }

    llm_media_sweep(z, 1);
    atomic_store(&z->n_gpus, 0);
    llm_zone_set(z->started, (uint64_t) time(NULL));
    atomic_store(&z->busy_since_us, llm_now_us());
    atomic_store(&z->engine_armed, 0);
    atomic_store(&z->woken_us, 0);

    if (atomic_load(&z->attached)) {
        atomic_fetch_add(&z->epoch, 1);
    }

    e->epoch = atomic_load(&z->epoch);
    atomic_store(&z->engine_pid, 0);
    atomic_store(&z->engine_born, llm_process_born(getpid()));
    atomic_store(&z->engine_pid, (int32_t) getpid());
    atomic_store(&z->attached, 1);

    for (i = 0; i < e->n_peers; i++) {
        do {
            n = write(worker_fds[i], &one, sizeof(one));
        } while (n == -1 && errno == EINTR);
    }
}


llm_engine_t *
llm_engine_start(const llm_engine_conf_t *conf, llm_err_t *err)
{
    uint32_t         i;
    llm_engine_t    *e;
    llm_preparer_t  *p;

    static const llm_turn_t  alone[LLM_ENGINE_ALONE] = {
        LLM_TURN_QUICK, LLM_TURN_SOUND, LLM_TURN_LONG
    };

    e = llm_engine_create(conf);
    if (e == NULL) {
        (void) llm_fail(err, "no memory for the engine");
        return NULL;
    }

    if (e->engines) {
        e->place = llm_engines_enter(e->engines);
    }

    llm_engine_attach(e, conf->worker_fds);

    for (i = 0; i < LLM_ENGINE_PREPARERS; i++) {
        p = &e->preparers[i];
        p->engine = e;
        p->alone = i < LLM_ENGINE_ALONE ? llm_turn_bit(alone[i]) : 0;

        if (llm_thread_start(&p->thread, llm_engine_prepare_main, p) != 0) {
            goto failed;
        }

        e->n_preparers++;
    }

    if (llm_thread_start(&e->scheduler, llm_engine_main, e) != 0) {
        goto failed;
    }

    return e;

failed:

    (void) llm_fail(err, "the engine's threads could not be started");

    llm_engine_quit(e);
    atomic_store(&e->zone->engine_pid, 0);
    llm_engine_free(e);

    return NULL;
}


uint32_t
llm_engine_live(llm_engine_t *e)
{
    uint32_t  i, n;

    for (i = 0, n = 0; i < e->n_models; i++) {
        n += llm_zone_inflight(e->zone, i, e->epoch);
    }

    return n;
}


void
llm_engine_stop(llm_engine_t *e)
{
    atomic_store(&e->stop, 1);
    llm_engine_wake(e);

    (void) pthread_join(e->scheduler, NULL);
    llm_gpu_stop(e->gpu);

    llm_engine_free(e);
}
