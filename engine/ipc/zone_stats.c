/*
 * Metrics in the zone: histograms, and reading of all metrics; see llm.h.
 * Schedulers write them, any process reads them; a reader may see the count of
 * a histogram an observation ahead of the sum.
 */

#include "engine/ipc/zone.h"

/* the bounds of vLLM's histograms, so that dashboards for vLLM work */

static const double  llm_bounds_ttft[] = {
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0,
    2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0
};

static const double  llm_bounds_itl[] = {
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5,
    5.0, 7.5, 10.0, 20.0, 40.0, 80.0
};

static const double  llm_bounds_request[] = {
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0,
    50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0
};

/* the bounds of vLLM's histogram of tokens in an iteration */
static const double  llm_bounds_rows[] = {
    1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384
};

typedef struct {
    const double  *bounds;
    uint32_t       n;
    double         unit;                /* factor from an observed value to the
                                           bounds' unit */
} llm_bounds_t;

#define llm_bounds(b)  { (b), llm_nelems(b), 1e-6 }

static const llm_bounds_t  llm_bounds_of[LLM_HIST_N] = {
    [LLM_HIST_TTFT] = llm_bounds(llm_bounds_ttft),
    [LLM_HIST_ITL] = llm_bounds(llm_bounds_itl),
    [LLM_HIST_E2E] = llm_bounds(llm_bounds_request),
    [LLM_HIST_QUEUE] = llm_bounds(llm_bounds_request),
    [LLM_HIST_PREFILL] = llm_bounds(llm_bounds_request),
    [LLM_HIST_DECODE] = llm_bounds(llm_bounds_request),
    [LLM_HIST_ROWS] = { llm_bounds_rows, llm_nelems(llm_bounds_rows), 1 }
};


size_t
llm_counters_size(void)
{
    return sizeof(llm_zone_counters_t);
}


size_t
llm_sent_size(void)
{
    return sizeof(llm_zone_sent_t);
}


size_t
llm_times_size(void)
{
    return sizeof(llm_zone_times_t);
}


static void
llm_zone_count(llm_zone_hist_t *hist, const llm_bounds_t *b, uint64_t n)
{
    double    v;
    uint32_t  i;

    v = (double) n * b->unit;

    for (i = 0; i < b->n && v > b->bounds[i]; i++) { /* void */ }

    if (i < b->n) {
        llm_zone_add(hist->buckets[i], 1);
    }

    llm_zone_add(hist->sum, n);
    llm_zone_add(hist->count, 1);
}


void
llm_zone_observe(llm_zone_counters_t *c, llm_zone_hist_id_t h, uint64_t n)
{
    llm_zone_count(&c->hist[h], &llm_bounds_of[h], n);
}


void
llm_zone_observe_for(const llm_kept_t *kept, uint32_t account,
    llm_zone_hist_id_t h, uint64_t us)
{
    llm_zone_times_t  *t;

    if (kept && kept->times && account != 0 && account <= kept->n_times) {
        t = (llm_zone_times_t *) kept->times + (account - 1);
        llm_zone_count(&t->hist[h], &llm_bounds_of[h], us);
    }
}


static void
llm_zone_hist(llm_zone_hist_t *h, llm_zone_hist_id_t id, llm_hist_t *out)
{
    uint32_t  i;
    uint64_t  total;

    total = 0;

    out->n = llm_bounds_of[id].n;
    out->bounds = llm_bounds_of[id].bounds;
    out->count = llm_zone_get(h->count);
    out->sum = (double) llm_zone_get(h->sum) * llm_bounds_of[id].unit;

    for (i = 0; i < out->n; i++) {
        total += llm_zone_get(h->buckets[i]);
        out->buckets[i] = total;
    }

    /* a bucket may have grown since the count was read */

    out->count = llm_max(out->count, total);
}


void
llm_zone_model_stats(llm_zone_t *z, const llm_kept_t *kept, uint32_t model,
    llm_model_stats_t *st)
{
    uint32_t              i;
    llm_zone_figures_t   *f;
    llm_zone_counters_t  *c;

    f = &z->models[model].figures;
    c = llm_zone_counters(z, kept, model);

    memset(st, 0, sizeof(*st));

    st->running = llm_zone_get(f->running);
    st->parked = llm_zone_get(f->parked);
    st->waiting = llm_zone_get(f->waiting);
    st->prefilling = llm_zone_get(f->prefilling);
    st->prompt_left = llm_zone_get(f->prompt_left);
    st->kv_pages = llm_zone_get(f->kv_pages);
    st->kv_used = llm_zone_get(f->kv_used);
    st->kv_cached = llm_zone_get(f->kv_cached);
    st->window_pages = llm_zone_get(f->window_pages);
    st->window_used = llm_zone_get(f->window_used);
    st->window_cached = llm_zone_get(f->window_cached);
    st->snapshots = llm_zone_get(f->snapshots);
    st->request_memory = llm_zone_get(f->request_memory);
    st->weight_bytes = llm_zone_get(f->weight_bytes);
    st->kv_bytes = llm_zone_get(f->kv_bytes);
    st->answered = llm_zone_get(f->answered);
    st->prompt_tokens = llm_zone_get(c->prompt_tokens);
    st->prompt_computed = llm_zone_get(c->prompt_computed);
    st->generation_tokens = llm_zone_get(c->generation_tokens);
    st->prefix_queries = llm_zone_get(c->prefix_queries);
    st->prefix_hits = llm_zone_get(c->prefix_hits);
    st->evictions = llm_zone_get(c->evictions);
    st->preemptions = llm_zone_get(c->preemptions);
    st->steps = llm_zone_get(c->steps);
    st->steps_behind = llm_zone_get(c->steps_behind);
    st->media_queries = llm_zone_get(c->media_queries);
    st->media_hits = llm_zone_get(c->media_hits);
    st->encodes = llm_zone_get(c->encodes);
    st->audio_ms = llm_zone_get(c->audio_ms);

    for (i = 0; i < LLM_DRAFT_N; i++) {
        st->drafts[i] = llm_zone_get(c->drafts[i]);
        st->drafted[i] = llm_zone_get(c->drafted[i]);
        st->accepted[i] = llm_zone_get(c->accepted[i]);
    }

    st->errors = llm_zone_get(c->errors);
    st->device_errors = llm_zone_get(c->device_errors);
    st->memory_errors = llm_zone_get(c->memory_errors);

    for (i = 0; i < llm_nelems(st->finished); i++) {
        st->finished[i] = llm_zone_get(c->finished[i]);
    }

    llm_zone_hist(&c->hist[LLM_HIST_TTFT], LLM_HIST_TTFT, &st->ttft);
    llm_zone_hist(&c->hist[LLM_HIST_ITL], LLM_HIST_ITL, &st->itl);
    llm_zone_hist(&c->hist[LLM_HIST_E2E], LLM_HIST_E2E, &st->e2e);
    llm_zone_hist(&c->hist[LLM_HIST_QUEUE], LLM_HIST_QUEUE, &st->queue);
    llm_zone_hist(&c->hist[LLM_HIST_PREFILL], LLM_HIST_PREFILL, &st->prefill);
    llm_zone_hist(&c->hist[LLM_HIST_DECODE], LLM_HIST_DECODE, &st->decode);
    llm_zone_hist(&c->hist[LLM_HIST_ROWS], LLM_HIST_ROWS, &st->rows);
}


uint64_t
llm_zone_started(llm_zone_t *z)
{
    return llm_zone_get(z->started);
}


void
llm_zone_worker_stats(llm_zone_t *z, const llm_kept_t *kept, uint32_t worker,
    llm_worker_stats_t *st)
{
    llm_zone_sent_t  *sent;

    sent = llm_zone_sent(z, kept, worker);

    st->events = llm_zone_get(sent->events);
    st->token_events = llm_zone_get(sent->token_events);
    st->wakeups = llm_zone_get(sent->wakeups);
}


void
llm_times_stats(const void *times, uint32_t i, llm_hist_t *ttft,
    llm_hist_t *itl)
{
    llm_zone_times_t  *t;

    t = &((llm_zone_times_t *) times)[i];

    llm_zone_hist(&t->hist[LLM_HIST_TTFT], LLM_HIST_TTFT, ttft);
    llm_zone_hist(&t->hist[LLM_HIST_ITL], LLM_HIST_ITL, itl);
}


uint32_t
llm_zone_gpus(llm_zone_t *z, llm_gpu_stats_t *gpus, uint32_t n)
{
    uint32_t         i;
    llm_zone_gpu_t  *g;

    n = llm_min(n, atomic_load(&z->n_gpus));

    for (i = 0; i < n; i++) {
        g = &z->gpus[i];

        memcpy(gpus[i].name, g->name, sizeof(g->name));
        memcpy(gpus[i].uuid, g->uuid, sizeof(g->uuid));
        gpus[i].has = llm_zone_get(g->has);
        gpus[i].busy = llm_zone_get(g->busy);
        gpus[i].memory_busy = llm_zone_get(g->memory_busy);
        gpus[i].memory_used = llm_zone_get(g->memory_used);
        gpus[i].memory_total = llm_zone_get(g->memory_total);
        gpus[i].power_mw = llm_zone_get(g->power_mw);
        gpus[i].celsius = llm_zone_get(g->celsius);
    }

    return n;
}
