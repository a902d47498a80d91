/*
 * Memory of the machine that was promised to the models of a registry
 * (devices.h) and is not in use yet: weights of loads in progress, an encoder
 * and what drafts, which are loaded after their model, and the pages of
 * kv_cache= and of states of windows of sound, which come into use one by one.
 * The kernel counts this memory as free, but no other model may take it.
 *
 * A load checks and promises under one lock, because each model is loaded by a
 * thread of its own.  A cache whose size was not configured is no promise: it
 * takes what is free.  Models belong to their owners; each is in the list from
 * its check until it is freed.
 */

#include "engine/model/model_internal.h"
#include "engine/base/machine.h"


/* bytes that a model will still take; the lock is held */

static size_t
llm_promise_left(const llm_model_t *m)
{
    size_t                   n, taken;
    uint32_t                 i;
    const llm_model_part_t  *p;

    taken = atomic_load_explicit(&m->promise.taken, memory_order_relaxed);
    n = m->promise.weights - llm_min(m->promise.weights, taken)
        + m->promise.tower + m->promise.draft;

    if (!m->promise.loaded) {
        return n + m->promise.kv;
    }

    if (m->ops->kv_unused == NULL) {
        return n;
    }

    /* a model in the machine's memory has one part */

    p = &m->parts[0];
    n += p->cross ? m->ops->kv_unused(p->exec, p->cross) : 0;

    for (i = 0; m->promise.kv && i < m->n_kinds; i++) {
        n += p->kv[i] ? m->ops->kv_unused(p->exec, p->kv[i]) : 0;
    }

    return n;
}


static size_t
llm_promise_sum(const llm_devices_t *devices, const llm_model_t *but)
{
    size_t        n;
    llm_model_t  *m;

    for (n = 0, m = devices->promised; m; m = m->promise.next) {
        n += m != but ? llm_promise_left(m) : 0;
    }

    return n;
}


size_t
llm_promised(llm_devices_t *devices, const llm_model_t *but)
{
    size_t  n;

    pthread_mutex_lock(&devices->lock);
    n = llm_promise_sum(devices, but);
    pthread_mutex_unlock(&devices->lock);

    return n;
}


int
llm_promise(llm_load_t *l)
{
    int           rc;
    llm_model_t  *m;

    m = l->m;

    pthread_mutex_lock(&m->devices->lock);

    l->promised = llm_promise_sum(m->devices, m);
    rc = llm_load_fits(l, llm_machine_memory_free(""), llm_machine_memory(""));

    if (rc == LLM_OK) {
        m->promise.weights = llm_load_weight_bytes(m)
                             + llm_load_cross_bytes(l);
        m->promise.tower = l->beside.tower;
        m->promise.draft = llm_beside_draft_bytes(&l->beside);
        m->promise.kv = l->opts->kv_bytes;
        m->promise.listed = 1;
        m->promise.next = m->devices->promised;
        m->devices->promised = m;
    }

    pthread_mutex_unlock(&m->devices->lock);

    return rc;
}


void
llm_promise_loaded(llm_model_t *m)
{
    pthread_mutex_lock(&m->devices->lock);
    m->promise.loaded = 1;
    m->promise.weights = 0;
    pthread_mutex_unlock(&m->devices->lock);
}


void
llm_model_towers_loaded(llm_model_t *m)
{
    pthread_mutex_lock(&m->devices->lock);
    m->promise.tower = 0;
    pthread_mutex_unlock(&m->devices->lock);
}


void
llm_model_draft_begins(llm_model_t *m)
{
    pthread_mutex_lock(&m->devices->lock);
    m->promise.draft = 0;
    pthread_mutex_unlock(&m->devices->lock);
}


void
llm_promise_end(llm_model_t *m)
{
    llm_model_t  **p;

    pthread_mutex_lock(&m->devices->lock);

    for (p = &m->devices->promised; m->promise.listed;
         p = &(*p)->promise.next)
    {
        if (*p == m) {
            *p = m->promise.next;
            m->promise.listed = 0;
            break;
        }
    }

    pthread_mutex_unlock(&m->devices->lock);
}
