/*
 * The gauges of a model in the zone.  Two schedulers may serve one model while
 * one file takes another's place, so a gauge is the sum of their parts.
 */

#include "engine/sched/sched_internal.h"


void
llm_sched_tell(llm_sched_t *s, const uint32_t *values)
{
    uint32_t             i, n;
    llm_zone_figures_t  *f = s->figures;
    _Atomic uint32_t    *gauges[LLM_SCHED_GAUGES] = {
        &f->running, &f->parked, &f->prefilling, &f->prompt_left,
        &f->kv_pages, &f->kv_used, &f->kv_cached,
        &f->window_pages, &f->window_used, &f->window_cached, &f->snapshots
    };

    for (i = 0; i < LLM_SCHED_GAUGES; i++) {
        n = values ? values[i] : 0;

        if (n != s->told[i]) {
            llm_zone_add(*gauges[i], n - s->told[i]);
            s->told[i] = n;
        }
    }
}


/* running sequences that have no token yet */

static uint32_t
llm_sched_prefilling(const llm_sched_t *s)
{
    uint32_t  i, n;

    for (i = 0, n = 0; i < s->n_running; i++) {
        n += s->running[i]->n_gen == 0;
    }

    return n;
}


void
llm_sched_gauges(llm_sched_t *s)
{
    uint32_t      available[LLM_KV_KINDS], k;
    uint64_t      evicted;
    llm_pages_t  *p;

    p = s->pages;

    evicted = llm_pages_evicted(p);
    llm_zone_add(s->counters->evictions, evicted - s->n_evicted);
    s->n_evicted = evicted;

    for (k = 0; k < LLM_KV_KINDS; k++) {
        available[k] = llm_pages_available(p, k);
    }

    llm_sched_tell(s, (const uint32_t [LLM_SCHED_GAUGES]) {
        s->n_running,
        s->n_parked,
        llm_sched_prefilling(s),
        (uint32_t) llm_min(s->todo, UINT32_MAX),
        s->conf.runner.n_pages[LLM_KV_FULL],
        llm_pages_total(p, LLM_KV_FULL) - available[LLM_KV_FULL],
        llm_pages_cached(p, LLM_KV_FULL),
        s->conf.runner.n_pages[LLM_KV_WINDOW],
        llm_pages_total(p, LLM_KV_WINDOW) - available[LLM_KV_WINDOW],
        llm_pages_cached(p, LLM_KV_WINDOW),
        s->slots ? llm_state_slots_n_snapshots(s->slots) : 0
    });
}
