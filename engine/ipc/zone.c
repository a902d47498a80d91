/*
 * The zone: its format, the models' states, waking the engine; see zone.h.
 * Requests are counted in zone_admit.c, metrics are read in zone_stats.c.
 */

#include "engine/ipc/zone.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>


/* bytes of one of a worker's two rings, a multiple of a cache line */

static size_t
llm_zone_ring_bytes(size_t ring_size)
{
    size_t  half;

    half = llm_max(ring_size / 2, (size_t) 65536);

    return llm_align(half, 64);
}


static size_t
llm_zone_head_bytes(uint32_t n_workers)
{
    return llm_align(sizeof(llm_zone_t), 64)
           + llm_align(sizeof(llm_zone_worker_t), 64) * n_workers;
}


size_t
llm_zone_size(uint32_t n_workers, uint32_t n_models, size_t ring_size)
{
    (void) n_models;                    /* the header has room for all
                                           models */

    return llm_zone_head_bytes(n_workers)
           + 2 * llm_zone_ring_bytes(ring_size) * n_workers;
}


llm_zone_t *
llm_zone_init(void *mem, uint32_t n_workers, const llm_zone_model_t *models,
    uint32_t n_models, size_t ring_size, uint32_t queue)
{
    size_t              off, bytes;
    uint32_t            i;
    llm_zone_t         *z = mem;
    llm_zone_worker_t  *w;

    if (n_workers == 0 || n_workers > LLM_MAX_WORKERS
        || n_models > LLM_MAX_MODELS)
    {
        return NULL;
    }

    bytes = llm_zone_ring_bytes(ring_size);
    off = llm_zone_head_bytes(n_workers);

    memset(mem, 0, off);

    z->size = llm_zone_size(n_workers, n_models, ring_size);
    z->n_workers = n_workers;
    z->n_models = n_models;
    z->queue = queue;
    z->queue_low = queue;
    z->workers = llm_align(sizeof(llm_zone_t), 64);
    atomic_init(&z->epoch, 1);

    for (i = 0; i < n_models; i++) {
        z->models[i].parallel = llm_max(models[i].parallel, 1u);
        z->models[i].speech = models[i].speech != 0;
        z->models[i].other = models[i].other ? models[i].other
                                             : z->models[i].parallel;
        z->models[i].places = models[i].places ? models[i].places : UINT32_MAX;
        atomic_init(&z->models[i].retry_after, 1);
    }

    for (i = 0; i < n_workers; i++) {
        w = llm_zone_worker(z, i);

        w->down = off;
        llm_ring_format(llm_zone_at(z, off), bytes);
        off += bytes;

        w->up = off;
        llm_ring_format(llm_zone_at(z, off), bytes);
        off += bytes;
    }

    return z;
}


void
llm_zone_set_bounds(llm_zone_t *z, const llm_zone_bounds_t *b)
{
    z->bounds = *b;

    if (b->tokens || b->ttft_us) {
        z->queue_low = z->queue / 2;
    }
}


uint32_t
llm_zone_epoch(llm_zone_t *z)
{
    return atomic_load(&z->attached) ? atomic_load(&z->epoch) : 0;
}


int
llm_zone_engine_lives(llm_zone_t *z)
{
    int32_t  pid;

    pid = atomic_load(&z->engine_pid);

    return llm_process_lives(pid, atomic_load(&z->engine_born));
}


int
llm_zone_engine_there(llm_zone_t *z)
{
    return llm_process_lives(atomic_load(&z->engine_pid), 0);
}


int
llm_zone_alive(llm_zone_t *z)
{
    uint64_t  since, now, max;

    if (!llm_zone_engine_lives(z)) {
        return 0;
    }

    max = LLM_ZONE_STALL_US;
    since = llm_zone_get(z->busy_since_us);

    if (since == 0) {
        max = LLM_ZONE_WAKE_US;
        since = atomic_load(&z->woken_us);
    }

    now = llm_now_us();

    return since == 0 || now < since || now - since < max;
}


void
llm_zone_wake_surely(llm_zone_t *z, int engine_fd)
{
    ssize_t   n;
    uint64_t  one = 1;

    atomic_store(&z->engine_armed, 0);

    do {
        n = write(engine_fd, &one, sizeof(one));
    } while (n == -1 && errno == EINTR);
}


void
llm_zone_wake(llm_zone_t *z, int engine_fd)
{
    if (atomic_load(&z->woken_us) == 0) {
        atomic_store(&z->woken_us, llm_now_us());
    }

    if (atomic_load(&z->engine_armed)
        && atomic_exchange(&z->engine_armed, 0))
    {
        llm_zone_wake_surely(z, engine_fd);
    }
}


int
llm_zone_drains(llm_zone_t *z, uint32_t model)
{
    uint64_t  us;

    us = atomic_load(&z->models[model].command.refuse_us);

    return us && llm_now_us() >= us;
}


void
llm_zone_set_state(llm_zone_t *z, uint32_t model, llm_model_state_t state)
{
    atomic_store_explicit(&z->models[model].state, state,
                          memory_order_release);
}


void
llm_zone_set_text(llm_zone_t *z, uint32_t model, const char *error,
    const char *device)
{
    char                     text[LLM_ZONE_ERROR + LLM_ZONE_DEVICE];
    llm_zone_model_state_t  *m;

    m = &z->models[model];
    llm_words_get(&m->text, text);

    if (error) {
        snprintf(text, LLM_ZONE_ERROR, "%s", error);
    }

    if (device) {
        snprintf(text + LLM_ZONE_ERROR, LLM_ZONE_DEVICE, "%s", device);
    }

    llm_words_set(&m->text, text);
}


void
llm_zone_advise(llm_zone_t *z, uint32_t model, const llm_sampling_t *s)
{
    uint32_t                 temperature, top_p;
    llm_zone_model_state_t  *m;

    m = &z->models[model];

    memcpy(&temperature, &s->temperature, sizeof(temperature));
    memcpy(&top_p, &s->top_p, sizeof(top_p));

    llm_zone_set(m->temperature, temperature);
    llm_zone_set(m->top_p, top_p);
    llm_zone_set(m->advised, s->said & (1u << LLM_PARAM_ID_temperature
                                        | 1u << LLM_PARAM_ID_top_p));
}


static void
llm_zone_advised(llm_zone_model_state_t *m, llm_sampling_t *s)
{
    uint32_t  temperature, top_p;

    temperature = llm_zone_get(m->temperature);
    top_p = llm_zone_get(m->top_p);

    memcpy(&s->temperature, &temperature, sizeof(temperature));
    memcpy(&s->top_p, &top_p, sizeof(top_p));
    s->said = llm_zone_get(m->advised);
}


const char *
llm_model_state_word(const llm_model_status_t *st)
{
    switch (st->state) {

    case LLM_MODEL_STOPPED:
        return "stopped";

    case LLM_MODEL_FAILED:
        return "failed";

    case LLM_MODEL_LOADING:
        return st->warming ? "warming" : "loading";

    case LLM_MODEL_READY:
        return st->draining ? "draining" : "ready";

    default:
        return st->draining ? "draining" : "idle";
    }
}


void
llm_zone_busy(llm_zone_t *z, uint32_t model, llm_zone_busy_t *l)
{
    uint32_t                 n, runs, total;
    uint64_t                 pages;
    llm_zone_model_state_t  *m;

    m = &z->models[model];
    n = llm_zone_inflight(z, model, atomic_load(&z->epoch));
    runs = llm_zone_parallel(z, model);
    total = llm_zone_get(m->figures.kv_pages);
    pages = llm_zone_get(m->figures.kv_used);

    l->waiting = n - llm_min(n, runs);
    l->load = (uint32_t) llm_min((uint64_t) n * 100 / runs,
                                 (uint64_t) UINT32_MAX);
    l->load = llm_max(l->load, total ? (uint32_t) (pages * 100 / total) : 0);
    l->ttft_us = llm_zone_get(m->ttft_us);
}


void
llm_zone_status(llm_zone_t *z, uint32_t model, llm_model_status_t *st)
{
    char                     text[LLM_ZONE_ERROR + LLM_ZONE_DEVICE];
    uint32_t                 n;
    llm_zone_model_state_t  *m;

    m = &z->models[model];

    memset(st, 0, sizeof(*st));

    st->state = atomic_load_explicit(&m->state, memory_order_acquire);
    st->permille = llm_zone_get(m->permille);
    st->warming = llm_zone_get(m->warming);
    st->wanted = llm_zone_get(m->wanted);
    st->refuse_us = atomic_load(&m->command.refuse_us);
    st->draining = st->refuse_us != 0;
    st->running = llm_zone_get(m->figures.running);
    st->ctx = llm_zone_get(m->ctx);
    st->takes = llm_zone_get(m->takes);
    st->ctx_train = llm_zone_get(m->ctx_train);
    st->n_vocab = llm_zone_get(m->n_vocab);
    st->n_embd = llm_zone_get(m->n_embd);
    st->n_params = llm_zone_get(m->n_params);
    st->n_bytes = llm_zone_get(m->n_bytes);
    llm_zone_advised(m, &st->advised);

    n = llm_zone_inflight(z, model, atomic_load(&z->epoch));
    st->requests = n;
    st->waiting = n - llm_min(n, llm_zone_parallel(z, model));

    st->replaced = llm_zone_get(m->command.replaced);
    llm_words_get(&m->command.file, st->file);

    llm_words_get(&m->text, text);
    memcpy(st->error, text, sizeof(st->error));
    memcpy(st->device, text + sizeof(st->error), sizeof(st->device));
}
