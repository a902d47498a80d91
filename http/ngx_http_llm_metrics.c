/*
 * llm_metrics: the figures of engine and workers, as Prometheus reads them
 * (text format 0.0.4) or as JSON.  Names that dashboards and inference
 * routers scrape from other servers have the prefix "vllm:", what only this
 * one has "llm_".  Any worker answers for all: the figures lie in the zone.
 */

#include "http/ngx_http_llm_module.h"


typedef struct {
    const char  *name;                  /* as in Prometheus */
    const char  *json;
    const char  *help;
    size_t       offset;                /* in llm_model_stats_t */
} ngx_http_llm_metric_t;

typedef struct {
    const char  *name;
    const char  *json;
    const char  *help;
} ngx_http_llm_worker_metric_t;


static void ngx_http_llm_prometheus(ngx_http_llm_main_conf_t *mcf,
    llm_model_stats_t *st, llm_buf_t *b);
static void ngx_http_llm_prometheus_build(llm_buf_t *b);
static void ngx_http_llm_prometheus_value(ngx_http_llm_main_conf_t *mcf,
    llm_model_stats_t *st, const ngx_http_llm_metric_t *m, const char *type,
    ngx_uint_t wide, llm_buf_t *b);
static void ngx_http_llm_prometheus_finished(ngx_http_llm_main_conf_t *mcf,
    llm_model_stats_t *st, llm_buf_t *b);
static void ngx_http_llm_prometheus_hist(ngx_http_llm_main_conf_t *mcf,
    llm_model_stats_t *st, const ngx_http_llm_metric_t *m, llm_buf_t *b);
static void ngx_http_llm_prometheus_workers(ngx_http_llm_main_conf_t *mcf,
    llm_buf_t *b);
static void ngx_http_llm_metrics_head(llm_buf_t *b, const char *name,
    const char *type, const char *help);
static void ngx_http_llm_metrics_label(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t model, llm_buf_t *b);
static void ngx_http_llm_metrics_json(ngx_http_llm_main_conf_t *mcf,
    llm_model_stats_t *st, llm_buf_t *b);
static void ngx_http_llm_json_model(ngx_str_t *name, llm_model_stats_t *st,
    llm_buf_t *b);
static void ngx_http_llm_json_hist(const llm_hist_t *h, const char *name,
    llm_buf_t *b);
static double ngx_http_llm_kv_usage(const llm_model_stats_t *st);
static uint64_t ngx_http_llm_worker_figure(ngx_http_llm_main_conf_t *mcf,
    uint32_t worker, ngx_uint_t n);


#define at(field)  offsetof(llm_model_stats_t, field)

static const ngx_http_llm_metric_t  ngx_http_llm_gauges[] = {    /* uint32_t */
    { "vllm:num_requests_running", "running",
      "Sequences that are being computed.", at(running) },
    { "vllm:num_requests_waiting", "waiting",
      "Requests that wait for a place.", at(waiting) },
    { "llm_requests_parked", "parked",
      "Sequences that wait for a slow reader.", at(parked) },
    { "llm_kv_pages", "kv_pages",
      "Pages of the KV cache.", at(kv_pages) },
    { "llm_kv_pages_used", "kv_pages_used",
      "Pages that sequences hold.", at(kv_used) },
    { "llm_kv_pages_cached", "kv_pages_cached",
      "Pages kept for prefixes alone.", at(kv_cached) },
};

static const ngx_http_llm_metric_t  ngx_http_llm_sizes[] = {     /* uint64_t */
    { "llm_request_memory_bytes", "request_memory",
      "Memory of the requests that wait and run.", at(request_memory) },
};

static const ngx_http_llm_metric_t  ngx_http_llm_counters[] = {  /* uint64_t */
    { "vllm:prompt_tokens_total", "prompt_tokens",
      "Tokens of prompts.", at(prompt_tokens) },
    { "vllm:generation_tokens_total", "generation_tokens",
      "Tokens generated.", at(generation_tokens) },
    { "vllm:prefix_cache_queries_total", "prefix_cache_queries",
      "Prompt tokens looked up in the prefix cache.", at(prefix_queries) },
    { "vllm:prefix_cache_hits_total", "prefix_cache_hits",
      "Prompt tokens found in the prefix cache.", at(prefix_hits) },
    { "vllm:num_preemptions_total", "preemptions",
      "Sequences that were put back into the queue.", at(preemptions) },
    { "llm_prompt_tokens_computed_total", "prompt_tokens_computed",
      "Prompt tokens that went through the model.", at(prompt_computed) },
    { "llm_steps_total", "steps",
      "Steps of the engine.", at(steps) },
    { "llm_steps_behind_total", "steps_behind",
      "Steps that a GPU had before the one in front had ended.",
      at(steps_behind) },
    { "llm_request_errors_total", "errors",
      "Requests that ended in an error.", at(errors) },
};

static const ngx_http_llm_metric_t  ngx_http_llm_hists[] = {
    { "vllm:time_to_first_token_seconds", "time_to_first_token",
      "From arrival to the first token.", at(ttft) },
    { "vllm:inter_token_latency_seconds", "inter_token_latency",
      "Between two tokens of a sequence.", at(itl) },
    { "vllm:e2e_request_latency_seconds", "e2e_request_latency",
      "From arrival to the end.", at(e2e) },
    { "vllm:request_queue_time_seconds", "queue_time",
      "From arrival to a place.", at(queue) },
    { "vllm:request_prefill_time_seconds", "prefill_time",
      "From a place to the first token.", at(prefill) },
    { "vllm:request_decode_time_seconds", "decode_time",
      "From the first token to the last.", at(decode) },
};

#undef at

/* the only gauge of the workers' */
#define NGX_HTTP_LLM_UNSENT  4

static const ngx_http_llm_worker_metric_t  ngx_http_llm_worker_metrics[] = {
    { "llm_worker_events_total", "events",
      "Events that the engine sent to a worker." },
    { "llm_worker_token_events_total", "token_events",
      "Events with text." },
    { "llm_worker_wakeups_total", "wakeups",
      "Times that the engine woke a worker up." },
    { "llm_worker_writes_total", "writes",
      "Pieces of streams that a worker handed to its clients." },
    { "llm_worker_unsent_bytes", "unsent",
      "Memory that a worker holds for what its clients have not read." },
};

/* llm_finish_t in vLLM's words; the same reason may come from two of ours */
static const char *const  ngx_http_llm_reasons[] = {
    NULL, "stop", "length", "tool_calls", "abort"
};


ngx_int_t
ngx_http_llm_metrics_handler(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    llm_buf_t                  body;
    llm_err_t                  err;
    ngx_uint_t                 i;
    llm_model_stats_t         *st;
    ngx_http_llm_loc_conf_t   *llcf;
    ngx_http_llm_main_conf_t  *mcf;

    rc = ngx_http_llm_get_only(r);
    if (rc != NGX_DECLINED) {
        return rc;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);
    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    st = ngx_palloc(r->pool, mcf->models.nelts * sizeof(llm_model_stats_t));
    if (st == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    for (i = 0; i < mcf->models.nelts; i++) {
        llm_zone_model_stats(mcf->zone, i, &st[i]);
    }

    llm_buf_init(&body, 0);

    if (llcf->metrics_json) {
        ngx_http_llm_metrics_json(mcf, st, &body);

    } else {
        ngx_http_llm_prometheus(mcf, st, &body);
    }

    if (body.failed) {
        llm_buf_free(&body);
        llm_fail(&err, "No memory is left for this answer.");
        return ngx_http_llm_send_error(r, &err, 0);
    }

    return ngx_http_llm_send_body(r, NGX_HTTP_OK,
                                  llcf->metrics_json
                                  ? "application/json"
                                  : "text/plain; version=0.0.4", &body);
}


static void
ngx_http_llm_prometheus(ngx_http_llm_main_conf_t *mcf, llm_model_stats_t *st,
    llm_buf_t *b)
{
    ngx_uint_t  i;

    ngx_http_llm_prometheus_build(b);

    for (i = 0; i < llm_nelems(ngx_http_llm_gauges); i++) {
        ngx_http_llm_prometheus_value(mcf, st, &ngx_http_llm_gauges[i],
                                      "gauge", 0, b);
    }

    for (i = 0; i < llm_nelems(ngx_http_llm_sizes); i++) {
        ngx_http_llm_prometheus_value(mcf, st, &ngx_http_llm_sizes[i],
                                      "gauge", 1, b);
    }

    for (i = 0; i < llm_nelems(ngx_http_llm_counters); i++) {
        ngx_http_llm_prometheus_value(mcf, st, &ngx_http_llm_counters[i],
                                      "counter", 1, b);
    }

    ngx_http_llm_metrics_head(b, "vllm:kv_cache_usage_perc", "gauge",
                              "Share of the KV cache in use, 1 is all.");

    for (i = 0; i < mcf->models.nelts; i++) {
        llm_buf_adds(b, "vllm:kv_cache_usage_perc");
        ngx_http_llm_metrics_label(mcf, i, b);
        llm_buf_addf(b, "} %.6g\n", ngx_http_llm_kv_usage(&st[i]));
    }

    ngx_http_llm_prometheus_finished(mcf, st, b);

    for (i = 0; i < llm_nelems(ngx_http_llm_hists); i++) {
        ngx_http_llm_prometheus_hist(mcf, st, &ngx_http_llm_hists[i], b);
    }

    ngx_http_llm_prometheus_workers(mcf, b);
}


/* always 1: what dashboards look at is the labels */

static void
ngx_http_llm_prometheus_build(llm_buf_t *b)
{
    ngx_http_llm_metrics_head(b, "llm_build_info", "gauge",
                              "The versions of nginx-llm and of nginx.");
    llm_buf_adds(b, "llm_build_info{version=\"" LLM_VERSION "\",nginx=\""
                    NGINX_VERSION "\"} 1\n");
}


/* a uint64_t where it is wide, else a uint32_t */

static void
ngx_http_llm_prometheus_value(ngx_http_llm_main_conf_t *mcf,
    llm_model_stats_t *st, const ngx_http_llm_metric_t *m, const char *type,
    ngx_uint_t wide, llm_buf_t *b)
{
    char        *field;
    uint64_t     v;
    ngx_uint_t   i;

    ngx_http_llm_metrics_head(b, m->name, type, m->help);

    for (i = 0; i < mcf->models.nelts; i++) {
        field = (char *) &st[i] + m->offset;
        v = wide ? *(uint64_t *) field : *(uint32_t *) field;

        llm_buf_adds(b, m->name);
        ngx_http_llm_metrics_label(mcf, i, b);
        llm_buf_addf(b, "} %llu\n", (unsigned long long) v);
    }
}


static void
ngx_http_llm_prometheus_finished(ngx_http_llm_main_conf_t *mcf,
    llm_model_stats_t *st, llm_buf_t *b)
{
    ngx_uint_t  i, reason;

    ngx_http_llm_metrics_head(b, "vllm:request_success_total", "counter",
                              "Choices by the reason that ended them.");

    for (i = 0; i < mcf->models.nelts; i++) {
        for (reason = 1; reason < llm_nelems(ngx_http_llm_reasons); reason++)
        {
            llm_buf_adds(b, "vllm:request_success_total");
            ngx_http_llm_metrics_label(mcf, i, b);
            llm_buf_addf(b, ",finished_reason=\"%s\"} %llu\n",
                         ngx_http_llm_reasons[reason],
                         (unsigned long long) st[i].finished[reason]);
        }
    }
}


static void
ngx_http_llm_prometheus_hist(ngx_http_llm_main_conf_t *mcf,
    llm_model_stats_t *st, const ngx_http_llm_metric_t *m, llm_buf_t *b)
{
    uint32_t           j;
    ngx_uint_t         i;
    const llm_hist_t  *h;

    ngx_http_llm_metrics_head(b, m->name, "histogram", m->help);

    for (i = 0; i < mcf->models.nelts; i++) {
        h = (llm_hist_t *) ((char *) &st[i] + m->offset);

        for (j = 0; j < h->n; j++) {
            llm_buf_addf(b, "%s_bucket", m->name);
            ngx_http_llm_metrics_label(mcf, i, b);
            llm_buf_addf(b, ",le=\"%g\"} %llu\n", h->bounds[j],
                         (unsigned long long) h->buckets[j]);
        }

        llm_buf_addf(b, "%s_bucket", m->name);
        ngx_http_llm_metrics_label(mcf, i, b);
        llm_buf_addf(b, ",le=\"+Inf\"} %llu\n", (unsigned long long) h->count);

        llm_buf_addf(b, "%s_sum", m->name);
        ngx_http_llm_metrics_label(mcf, i, b);
        llm_buf_addf(b, "} %.6f\n", h->sum);

        llm_buf_addf(b, "%s_count", m->name);
        ngx_http_llm_metrics_label(mcf, i, b);
        llm_buf_addf(b, "} %llu\n", (unsigned long long) h->count);
    }
}


static void
ngx_http_llm_prometheus_workers(ngx_http_llm_main_conf_t *mcf, llm_buf_t *b)
{
    uint32_t                             w;
    ngx_uint_t                           n;
    const ngx_http_llm_worker_metric_t  *m;

    for (n = 0; n < llm_nelems(ngx_http_llm_worker_metrics); n++) {
        m = &ngx_http_llm_worker_metrics[n];
        ngx_http_llm_metrics_head(b, m->name,
                                  n == NGX_HTTP_LLM_UNSENT ? "gauge"
                                                           : "counter",
                                  m->help);

        for (w = 0; w < mcf->nworkers; w++) {
            llm_buf_addf(b, "%s{worker=\"%u\"} %llu\n", m->name, w,
                         (unsigned long long)
                             ngx_http_llm_worker_figure(mcf, w, n));
        }
    }
}


static void
ngx_http_llm_metrics_head(llm_buf_t *b, const char *name, const char *type,
    const char *help)
{
    llm_buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}


/* {model_name="...", the brace is left open */

static void
ngx_http_llm_metrics_label(ngx_http_llm_main_conf_t *mcf, ngx_uint_t model,
    llm_buf_t *b)
{
    ngx_str_t             *name;
    ngx_uint_t             i;
    ngx_http_llm_model_t  *models;

    models = mcf->models.elts;
    name = &models[model].name;

    llm_buf_adds(b, "{model_name=\"");

    for (i = 0; i < name->len; i++) {
        if (name->data[i] == '\n') {
            llm_buf_adds(b, "\\n");
            continue;
        }

        if (name->data[i] == '"' || name->data[i] == '\\') {
            llm_buf_addc(b, '\\');
        }

        llm_buf_addc(b, name->data[i]);
    }

    llm_buf_addc(b, '"');
}


static void
ngx_http_llm_metrics_json(ngx_http_llm_main_conf_t *mcf,
    llm_model_stats_t *st, llm_buf_t *b)
{
    uint32_t               w;
    ngx_uint_t             i, n;
    ngx_http_llm_model_t  *models;

    models = mcf->models.elts;

    llm_buf_adds(b, "{\"version\":\"" LLM_VERSION "\",\"nginx\":\""
                    NGINX_VERSION "\",\"models\":[");

    for (i = 0; i < mcf->models.nelts; i++) {
        if (i) {
            llm_buf_addc(b, ',');
        }

        ngx_http_llm_json_model(&models[i].name, &st[i], b);
    }

    llm_buf_adds(b, "],\"workers\":[");

    for (w = 0; w < mcf->nworkers; w++) {
        for (n = 0; n < llm_nelems(ngx_http_llm_worker_metrics); n++) {
            llm_buf_addf(b, "%s\"%s\":%llu", n ? "," : w ? ",{" : "{",
                         ngx_http_llm_worker_metrics[n].json,
                         (unsigned long long)
                             ngx_http_llm_worker_figure(mcf, w, n));
        }

        llm_buf_addc(b, '}');
    }

    llm_buf_adds(b, "]}");
}


static void
ngx_http_llm_json_model(ngx_str_t *name, llm_model_stats_t *st, llm_buf_t *b)
{
    ngx_uint_t                    n;
    const ngx_http_llm_metric_t  *m;

    llm_buf_adds(b, "{\"name\":");
    llm_json_add_string(b, (char *) name->data, name->len);

    for (n = 0; n < llm_nelems(ngx_http_llm_gauges); n++) {
        m = &ngx_http_llm_gauges[n];
        llm_buf_addf(b, ",\"%s\":%u", m->json,
                     *(uint32_t *) ((char *) st + m->offset));
    }

    for (n = 0; n < llm_nelems(ngx_http_llm_sizes); n++) {
        m = &ngx_http_llm_sizes[n];
        llm_buf_addf(b, ",\"%s\":%llu", m->json, (unsigned long long)
                     *(uint64_t *) ((char *) st + m->offset));
    }

    for (n = 0; n < llm_nelems(ngx_http_llm_counters); n++) {
        m = &ngx_http_llm_counters[n];
        llm_buf_addf(b, ",\"%s\":%llu", m->json, (unsigned long long)
                     *(uint64_t *) ((char *) st + m->offset));
    }

    llm_buf_addf(b, ",\"kv_cache_usage\":%.6g,\"finished\":{",
                 ngx_http_llm_kv_usage(st));

    for (n = 1; n < llm_nelems(ngx_http_llm_reasons); n++) {
        llm_buf_addf(b, "%s\"%s\":%llu", n > 1 ? "," : "",
                     ngx_http_llm_reasons[n],
                     (unsigned long long) st->finished[n]);
    }

    llm_buf_addc(b, '}');

    for (n = 0; n < llm_nelems(ngx_http_llm_hists); n++) {
        m = &ngx_http_llm_hists[n];
        ngx_http_llm_json_hist((llm_hist_t *) ((char *) st + m->offset),
                               m->json, b);
    }

    llm_buf_addc(b, '}');
}


static void
ngx_http_llm_json_hist(const llm_hist_t *h, const char *name, llm_buf_t *b)
{
    uint32_t  j;

    llm_buf_addf(b, ",\"%s\":{\"count\":%llu,\"sum\":%.6f,\"buckets\":[",
                 name, (unsigned long long) h->count, h->sum);

    for (j = 0; j < h->n; j++) {
        llm_buf_addf(b, "%s[%g,%llu]", j ? "," : "", h->bounds[j],
                     (unsigned long long) h->buckets[j]);
    }

    llm_buf_adds(b, "]}");
}


static double
ngx_http_llm_kv_usage(const llm_model_stats_t *st)
{
    return st->kv_pages ? (double) st->kv_used / st->kv_pages : 0;
}


/* the n-th of ngx_http_llm_worker_metrics */

static uint64_t
ngx_http_llm_worker_figure(ngx_http_llm_main_conf_t *mcf, uint32_t worker,
    ngx_uint_t n)
{
    llm_worker_stats_t  st;

    llm_zone_worker_stats(mcf->zone, worker, &st);

    switch (n) {

    case 0:
        return st.events;

    case 1:
        return st.token_events;

    case 2:
        return st.wakeups;

    case 3:
        return mcf->counters[worker].writes;

    default: /* NGX_HTTP_LLM_UNSENT */
        return mcf->counters[worker].unsent;
    }
}
