/*
 * The engine's figures as text: Prometheus' exposition format under the
 * names that dashboards and inference routers scrape already (prefix vllm:),
 * and the module's own under llm_; or the same as JSON.
 *
 * A scrape reads atomics and blocks nobody; the buffer is the caller's.
 */

#include "engine/api/api.h"

#include <math.h>

/* a figure of every model, by its place in llm_model_stats_t */
typedef struct {
    const char  *name;
    const char  *help;
    const char  *type;
    size_t       offset;
    int          wide;                  /* uint64_t, else uint32_t */
} llm_metric_t;

typedef struct {
    const char  *name;
    const char  *help;
    size_t       offset;                /* of a llm_hist_t */
} llm_metric_hist_t;

#define llm_gauge(name, field, help)                                         \
    { name, help, "gauge", offsetof(llm_model_stats_t, field), 0 }
#define llm_counter(name, field, help)                                       \
    { name, help, "counter", offsetof(llm_model_stats_t, field), 1 }

static const llm_metric_t  llm_metrics[] = {
    llm_gauge("vllm:num_requests_running", running,
              "Sequences that the engine is working on."),
    llm_gauge("vllm:num_requests_waiting", waiting,
              "Requests that wait for a place."),
    llm_gauge("llm_sequences_parked", parked,
              "Sequences that wait for a slow reader."),
    llm_gauge("llm_kv_pages", kv_pages, "KV pages that there are."),
    llm_gauge("llm_kv_pages_used", kv_used, "KV pages held by sequences."),
    llm_gauge("llm_kv_pages_cached", kv_cached,
              "KV pages kept for prefixes alone."),
    llm_counter("vllm:prefix_cache_queries", prefix_queries,
                "Prompt tokens looked up in the prefix cache."),
    llm_counter("vllm:prefix_cache_hits", prefix_hits,
                "Prompt tokens found in the prefix cache."),
    llm_counter("vllm:prompt_tokens_total", prompt_tokens,
                "Prompt tokens taken."),
    llm_counter("llm_prompt_tokens_computed_total", prompt_computed,
                "Prompt tokens computed, recomputed ones too."),
    llm_counter("vllm:generation_tokens_total", generation_tokens,
                "Tokens generated."),
    llm_counter("vllm:num_preemptions_total", preemptions,
                "Sequences put back because pages ran out."),
    llm_counter("llm_steps_total", steps, "Steps of the engine."),
    llm_counter("llm_request_errors_total", errors,
                "Requests that ended in an error.")
};

#define llm_metric_hist(name, field, help)                                   \
    { name, help, offsetof(llm_model_stats_t, field) }

static const llm_metric_hist_t  llm_metric_hists[] = {
    llm_metric_hist("vllm:time_to_first_token_seconds", ttft,
                    "Arrival to first token."),
    llm_metric_hist("vllm:inter_token_latency_seconds", itl,
                    "Between two tokens of a sequence."),
    llm_metric_hist("vllm:e2e_request_latency_seconds", e2e,
                    "Arrival to end of a request."),
    llm_metric_hist("vllm:request_queue_time_seconds", queue,
                    "Arrival to the first step."),
    llm_metric_hist("vllm:request_prefill_time_seconds", prefill,
                    "First step to first token."),
    llm_metric_hist("vllm:request_decode_time_seconds", decode,
                    "First token to last.")
};

static const char *const  llm_metric_reasons[] = {
    [LLM_FINISH_STOP] = "stop",
    [LLM_FINISH_LENGTH] = "length",
    [LLM_FINISH_TOOL_CALLS] = "tool_calls",
    [LLM_FINISH_CANCELLED] = "abort"
};

typedef struct {
    const char  *name;
    const char  *help;
    size_t       offset;                /* in llm_worker_stats_t */
} llm_metric_worker_t;

static const llm_metric_worker_t  llm_metric_workers[] = {
    { "llm_worker_events_total", "Events that the engine sent to a worker.",
      offsetof(llm_worker_stats_t, events) },
    { "llm_worker_token_events_total", "Of these, events with text.",
      offsetof(llm_worker_stats_t, token_events) },
    { "llm_worker_wakeups_total", "Times that the engine woke a worker.",
      offsetof(llm_worker_stats_t, wakeups) },
    { "llm_worker_writes_total", "Pieces of streams that a worker sent on.",
      offsetof(llm_worker_stats_t, writes) }
};


/* a label's value: backslash, quote and newline are escaped */

static void
llm_metric_label(llm_buf_t *out, llm_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len; i++) {
        if (s.data[i] == '\n') {
            (void) llm_buf_adds(out, "\\n");
            continue;
        }

        if (s.data[i] == '\\' || s.data[i] == '"') {
            (void) llm_buf_addc(out, '\\');
        }

        (void) llm_buf_addc(out, s.data[i]);
    }
}


static void
llm_metric_head(llm_buf_t *out, const char *name, const char *help,
    const char *type)
{
    (void) llm_buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help,
                        name, type);
}


/* name{model_name="..." up to where further labels or the brace follow */

static void
llm_metric_open(llm_buf_t *out, const char *name, const char *suffix,
    llm_str_t model)
{
    (void) llm_buf_addf(out, "%s%s{model_name=\"", name, suffix);
    llm_metric_label(out, model);
    (void) llm_buf_addc(out, '"');
}


static unsigned long long
llm_metric_value(const llm_metric_t *m, const llm_model_stats_t *st)
{
    const char  *p;

    p = (const char *) st + m->offset;

    return m->wide ? *(const uint64_t *) p : *(const uint32_t *) p;
}


static double
llm_metric_kv_share(const llm_model_stats_t *st)
{
    return st->kv_pages ? (double) st->kv_used / st->kv_pages : 0;
}


static void
llm_metric_models(llm_buf_t *out, const llm_api_conf_t *conf,
    const llm_model_stats_t *st)
{
    uint32_t             k;
    size_t               i, r;
    const llm_metric_t  *m;

    for (i = 0; i < llm_nelems(llm_metrics); i++) {
        m = &llm_metrics[i];
        llm_metric_head(out, m->name, m->help, m->type);

        for (k = 0; k < conf->n_models; k++) {
            llm_metric_open(out, m->name, "", conf->models[k].name);
            (void) llm_buf_addf(out, "} %llu\n",
                                llm_metric_value(m, &st[k]));
        }
    }

    llm_metric_head(out, "vllm:kv_cache_usage_perc",
                    "KV pages held by sequences, 1 is all of them.",
                    "gauge");

    for (k = 0; k < conf->n_models; k++) {
        llm_metric_open(out, "vllm:kv_cache_usage_perc", "",
                        conf->models[k].name);
        (void) llm_buf_addf(out, "} %.6g\n", llm_metric_kv_share(&st[k]));
    }

    llm_metric_head(out, "vllm:request_success_total",
                    "Choices that ended, by reason.", "counter");

    for (k = 0; k < conf->n_models; k++) {
        for (r = LLM_FINISH_STOP; r < llm_nelems(llm_metric_reasons); r++) {
            llm_metric_open(out, "vllm:request_success_total", "",
                            conf->models[k].name);
            (void) llm_buf_addf(out, ",finished_reason=\"%s\"} %llu\n",
                                llm_metric_reasons[r],
                                (unsigned long long) st[k].finished[r]);
        }
    }
}


static void
llm_metric_hist_text(llm_buf_t *out, const llm_metric_hist_t *m,
    llm_str_t model, const llm_hist_t *h)
{
    uint32_t  i;

    for (i = 0; i < h->n; i++) {
        llm_metric_open(out, m->name, "_bucket", model);
        (void) llm_buf_addf(out, ",le=\"%g\"} %llu\n", h->bounds[i],
                            (unsigned long long) h->buckets[i]);
    }

    llm_metric_open(out, m->name, "_bucket", model);
    (void) llm_buf_addf(out, ",le=\"+Inf\"} %llu\n",
                        (unsigned long long) h->count);
    llm_metric_open(out, m->name, "_sum", model);
    (void) llm_buf_addf(out, "} %.6f\n", h->sum);
    llm_metric_open(out, m->name, "_count", model);
    (void) llm_buf_addf(out, "} %llu\n", (unsigned long long) h->count);
}


static void
llm_metric_worker_text(llm_buf_t *out, llm_zone_t *z, uint32_t n_workers)
{
    size_t               i;
    uint32_t             w;
    llm_worker_stats_t   st;

    for (i = 0; i < llm_nelems(llm_metric_workers); i++) {
        llm_metric_head(out, llm_metric_workers[i].name,
                        llm_metric_workers[i].help, "counter");

        for (w = 0; w < n_workers; w++) {
            llm_zone_worker_stats(z, w, &st);
            (void) llm_buf_addf(out, "%s{worker=\"%u\"} %llu\n",
                       llm_metric_workers[i].name, w,
                       (unsigned long long) *(const uint64_t *)
                       ((const char *) &st + llm_metric_workers[i].offset));
        }
    }
}


static int
llm_metric_text(llm_buf_t *out, llm_zone_t *z, const llm_api_conf_t *conf,
    const llm_model_stats_t *st, uint32_t n_workers)
{
    size_t    i;
    uint32_t  k;

    llm_metric_models(out, conf, st);

    for (i = 0; i < llm_nelems(llm_metric_hists); i++) {
        llm_metric_head(out, llm_metric_hists[i].name,
                        llm_metric_hists[i].help, "histogram");

        for (k = 0; k < conf->n_models; k++) {
            llm_metric_hist_text(out, &llm_metric_hists[i],
                                 conf->models[k].name,
                                 (const llm_hist_t *) ((const char *) &st[k]
                                     + llm_metric_hists[i].offset));
        }
    }

    llm_metric_head(out, "llm_engine_up",
                    "1 while the engine lives and makes progress.", "gauge");
    (void) llm_buf_addf(out, "llm_engine_up %d\n", llm_zone_alive(z) != 0);

    llm_metric_worker_text(out, z, n_workers);

    return out->failed ? LLM_ERROR : LLM_OK;
}


/* ---- JSON ---- */

static void
llm_metric_json_model(llm_buf_t *out, llm_str_t name,
    const llm_model_stats_t *st)
{
    size_t             i;
    const llm_hist_t  *h;

    (void) llm_buf_adds(out, "{\"model\":");
    (void) llm_json_add_string(out, name.data, name.len);

    for (i = 0; i < llm_nelems(llm_metrics); i++) {
        (void) llm_buf_addf(out, ",\"%s\":%llu", llm_metrics[i].name,
                            llm_metric_value(&llm_metrics[i], st));
    }

    (void) llm_buf_addf(out, ",\"vllm:kv_cache_usage_perc\":%.6g",
                        llm_metric_kv_share(st));
    (void) llm_buf_adds(out, ",\"vllm:request_success_total\":{");

    for (i = LLM_FINISH_STOP; i < llm_nelems(llm_metric_reasons); i++) {
        (void) llm_buf_addf(out, "%s\"%s\":%llu",
                            i == LLM_FINISH_STOP ? "" : ",",
                            llm_metric_reasons[i],
                            (unsigned long long) st->finished[i]);
    }

    (void) llm_buf_addc(out, '}');

    for (i = 0; i < llm_nelems(llm_metric_hists); i++) {
        h = (const llm_hist_t *) ((const char *) st
                                  + llm_metric_hists[i].offset);
        (void) llm_buf_addf(out, ",\"%s\":{\"count\":%llu,\"sum\":%.6f}",
                            llm_metric_hists[i].name,
                            (unsigned long long) h->count, h->sum);
    }

    (void) llm_buf_addc(out, '}');
}


static int
llm_metric_json(llm_buf_t *out, llm_zone_t *z, const llm_api_conf_t *conf,
    const llm_model_stats_t *st, uint32_t n_workers)
{
    size_t               i;
    uint32_t             k;
    llm_worker_stats_t   ws;

    (void) llm_buf_addf(out, "{\"llm_engine_up\":%d,\"models\":[",
                        llm_zone_alive(z) != 0);

    for (k = 0; k < conf->n_models; k++) {
        (void) llm_buf_adds(out, k ? "," : "");
        llm_metric_json_model(out, conf->models[k].name, &st[k]);
    }

    (void) llm_buf_adds(out, "],\"workers\":[");

    for (k = 0; k < n_workers; k++) {
        llm_zone_worker_stats(z, k, &ws);
        (void) llm_buf_addf(out, "%s{\"worker\":%u", k ? "," : "", k);

        for (i = 0; i < llm_nelems(llm_metric_workers); i++) {
            (void) llm_buf_addf(out, ",\"%s\":%llu",
                       llm_metric_workers[i].name,
                       (unsigned long long) *(const uint64_t *)
                       ((const char *) &ws + llm_metric_workers[i].offset));
        }

        (void) llm_buf_addc(out, '}');
    }

    (void) llm_buf_adds(out, "]}");

    return out->failed ? LLM_ERROR : LLM_OK;
}


int
llm_api_metrics_body(llm_zone_t *z, const llm_api_conf_t *conf,
    uint32_t n_workers, int json, llm_buf_t *out)
{
    int                 rc;
    uint32_t            k;
    llm_model_stats_t  *st;

    st = calloc(llm_max(conf->n_models, 1u), sizeof(llm_model_stats_t));
    if (st == NULL) {
        return LLM_ERROR;
    }

    for (k = 0; k < conf->n_models; k++) {
        llm_zone_model_stats(z, k, &st[k]);
    }

    rc = json ? llm_metric_json(out, z, conf, st, n_workers)
              : llm_metric_text(out, z, conf, st, n_workers);

    free(st);

    return rc;
}
