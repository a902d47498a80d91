/*
 * Which model gives its memory up for another one whose load lacks it.
 *
 * - Loads that lack memory stand in line by the time since when they do.  Only
 *   the first one has models unloaded, and is tried again; the others wait until
 *   it is loaded, has failed, or is given up.
 * - Only models that a request loads again (lazy, idle=) are unloaded, when they
 *   have no request.
 * - If the first in line has waited for LLM_ROOM_PATIENCE_US, a model that has
 *   served for as long takes no more requests.  They wait for its next load, so
 *   that a model that is always asked keeps no other one away.
 */

#include "engine/serve/requests.h"


int
llm_instance_yields(const llm_instance_t *m)
{
    return m->conf.lazy || m->conf.idle_s;
}


/* will it give way before long? */

static int
llm_instance_may_yield(const llm_instance_t *m)
{
    return llm_instance_yields(m) && !m->ends && !m->waits && m->beside == NULL
           && (m->state == LLM_MODEL_READY || m->state == LLM_MODEL_LOADING);
}


/* live requests that do not wait for its load */

static uint32_t
llm_instance_busy(const llm_instance_t *m)
{
    uint32_t          n;
    const llm_req_t  *r;

    for (n = m->n_reqs, r = m->held.first; r; r = r->job_next) {
        n--;
    }

    return n;
}


llm_instance_t *
llm_engine_first_in_line(const llm_engine_t *e)
{
    uint32_t         i;
    llm_instance_t  *m, *first;

    for (i = 0, first = NULL; i < e->n_models; i++) {
        m = e->models[i];

        if (m->lacks_us && !m->ends
            && (first == NULL || m->lacks_us < first->lacks_us))
        {
            first = m;
        }
    }

    return first;
}


/* is another one being loaded, or freed?  Memory may be left of it */

static int
llm_engine_loads_beside(const llm_engine_t *e, const llm_instance_t *m)
{
    const llm_instance_t  *other;

    for (other = e->instances; other; other = other->next) {
        if (other != m && other->loading) {
            return 1;
        }
    }

    return 0;
}


int
llm_engine_spare(llm_engine_t *e, const llm_instance_t *m,
    llm_instance_t **spare)
{
    int              rc;
    uint32_t         i;
    llm_instance_t  *other;

    rc = llm_engine_loads_beside(e, m) ? LLM_FULL : LLM_ABSENT;
    *spare = NULL;

    for (i = 0; i < e->n_models; i++) {
        other = e->models[i];

        if (other == m || !llm_instance_may_yield(other)) {
            continue;
        }

        rc = LLM_FULL;

        if (other->state == LLM_MODEL_READY && llm_instance_busy(other) == 0
            && (*spare == NULL || other->used_us < (*spare)->used_us))
        {
            *spare = other;
        }
    }

    return *spare ? LLM_OK : rc;
}


void
llm_instance_stay(llm_instance_t *m)
{
    if (m->gives_way && m->state == LLM_MODEL_READY) {
        m->gives_way = 0;
        llm_engine_prepare_held(m);
    }
}


/* the model that was loaded first of those that yield and have served for long */

static llm_instance_t *
llm_engine_oldest(const llm_engine_t *e, uint64_t now)
{
    uint32_t         i;
    llm_instance_t  *m, *oldest;

    for (i = 0, oldest = NULL; i < e->n_models; i++) {
        m = e->models[i];

        if (m->state == LLM_MODEL_READY && llm_instance_may_yield(m)
            && now - m->ready_us >= LLM_ROOM_PATIENCE_US
            && (oldest == NULL || m->ready_us < oldest->ready_us))
        {
            oldest = m;
        }
    }

    return oldest;
}


void
llm_engine_give_way(llm_engine_t *e, uint64_t now)
{
    uint32_t         i;
    llm_instance_t  *m, *first;

    first = llm_engine_first_in_line(e);

    if (first == NULL) {
        for (i = 0; i < e->n_models; i++) {
            llm_instance_stay(e->models[i]);
        }

    } else if (first->waits == LLM_WAITS_ROOM
               && now - first->lacks_us >= LLM_ROOM_PATIENCE_US
               && (m = llm_engine_oldest(e, now)) != NULL)
    {
        m->gives_way = 1;
    }
}
