/*
 * Which model gives its memory up for another one whose load lacks it.
 *
 * - Only models that a request loads again (lazy, idle=) give way.  One that is
 *   loading, or has requests, will do so later: then the other one waits.
 * - When one has waited for LLM_ROOM_PATIENCE_US, the model that was loaded
 *   first takes no more requests.  They wait for its next load, so that a model
 *   that is always asked keeps no other one away.
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


int
llm_engine_spare(llm_engine_t *e, const llm_instance_t *but,
    llm_instance_t **spare)
{
    int              rc;
    uint32_t         i;
    llm_instance_t  *m;

    rc = LLM_ABSENT;
    *spare = NULL;

    for (i = 0; i < e->n_models; i++) {
        m = e->models[i];

        if (m == but || !llm_instance_may_yield(m)) {
            continue;
        }

        rc = LLM_FULL;

        if (m->state == LLM_MODEL_READY && llm_instance_busy(m) == 0
            && (*spare == NULL || m->used_us < (*spare)->used_us))
        {
            *spare = m;
        }
    }

    return *spare ? LLM_OK : rc;
}


void
llm_engine_give_way(llm_engine_t *e, uint64_t now)
{
    int              waits, long_enough;
    uint32_t         i;
    llm_instance_t  *m, *first;

    waits = 0;
    long_enough = 0;
    first = NULL;

    for (i = 0; i < e->n_models; i++) {
        m = e->models[i];

        if (m->waits == LLM_WAITS_ROOM) {
            waits = 1;
            long_enough |= now - m->waits_us >= LLM_ROOM_PATIENCE_US;

        } else if (m->state == LLM_MODEL_READY && llm_instance_may_yield(m)
                   && (first == NULL || m->ready_us < first->ready_us))
        {
            first = m;
        }
    }

    for (i = 0; i < e->n_models && !waits; i++) {
        m = e->models[i];

        if (m->gives_way) {
            m->gives_way = 0;
            llm_engine_prepare_held(m);
        }
    }

    if (first && long_enough) {
        first->gives_way = 1;
    }
}
