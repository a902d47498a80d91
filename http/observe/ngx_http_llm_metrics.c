/*
 * llm_metrics: metrics of the engine and the workers in Prometheus's text
 * format 0.0.4, or in JSON.  Metrics that dashboards and inference routers know
 * from vLLM have its names, with the prefix "vllm:"; all others begin with
 * "llm_".  Any worker answers for all, because the counters are in the shared
 * zone.
 *
 * A metric is a row of a table; its kind (ngx_http_llm_metrics_kinds.c) writes
 * it in both formats.  Metrics of requests are written in
 * ngx_http_llm_metrics_prometheus.c and ngx_http_llm_metrics_json.c.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/observe/ngx_http_llm_metrics.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/worker/ngx_http_llm_worker.h"


typedef struct {
    const ngx_http_llm_metric_t       *rows;
    ngx_uint_t                         n;
} ngx_http_llm_metrics_t;

/* a model or a worker */

typedef struct {
    const char                        *label;
    const void                        *figures;
    ngx_str_t                         *name;    /* of a model */
} ngx_http_llm_subject_t;

typedef struct {
    llm_worker_stats_t                 engine;
    uint64_t                           writes;
    ngx_http_llm_counters_t            own;
} ngx_http_llm_worker_figures_t;


static ngx_http_llm_subject_t *ngx_http_llm_model_subjects(
    ngx_http_request_t *r, ngx_http_llm_main_conf_t *mcf, ngx_uint_t *n);
static ngx_http_llm_subject_t *ngx_http_llm_worker_subjects(
    ngx_http_request_t *r, ngx_http_llm_main_conf_t *mcf);
static void ngx_http_llm_metrics_build(ngx_http_llm_main_conf_t *mcf,
    llm_buf_t *b);
static void ngx_http_llm_metrics_prometheus(
    const ngx_http_llm_metrics_t *metrics, ngx_http_llm_subject_t *subjects,
    ngx_uint_t n, llm_buf_t *b);
static void ngx_http_llm_metrics_json(ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_subject_t *models, ngx_uint_t n,
    ngx_http_llm_subject_t *workers, llm_buf_t *b);
static void ngx_http_llm_metrics_media(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t json, llm_buf_t *b);
static void ngx_http_llm_metrics_members(
    const ngx_http_llm_metrics_t *metrics, const void *figures,
    const char *before, llm_buf_t *b);


#define at(field)  offsetof(llm_model_stats_t, field)

static const ngx_http_llm_metric_t  ngx_http_llm_model_rows[] = {
    { "vllm:num_requests_running", "running",
      &ngx_http_llm_gauge, at(running), 0,
      "Sequences that take part in the engine's steps." },
    { "vllm:num_requests_waiting", "waiting",
      &ngx_http_llm_gauge, at(waiting), 0,
      "Requests that wait in the queue." },
    { "llm_requests_prefilling", "prefilling",
      &ngx_http_llm_gauge, at(prefilling), 0,
      "Sequences that run and have no token yet." },
    { "llm_prompt_tokens_pending", "prompt_tokens_pending",
      &ngx_http_llm_gauge, at(prompt_left), 0,
      "Prompt tokens of running and waiting requests, not computed yet." },
    { "llm_requests_parked", "parked",
      &ngx_http_llm_gauge, at(parked), 0,
      "Sequences paused until their clients have read more." },
    { "llm_kv_pages", "kv_pages",
      &ngx_http_llm_gauge, at(kv_pages), 0,
      "Pages of the KV cache, in all." },
    { "llm_kv_pages_used", "kv_pages_used",
      &ngx_http_llm_gauge, at(kv_used), 0,
      "Pages of the KV cache that sequences hold." },
    { "llm_kv_pages_cached", "kv_pages_cached",
      &ngx_http_llm_gauge, at(kv_cached), 0,
      "Pages of the KV cache kept for the prefix cache only." },
    { "llm_kv_window_pages", "kv_window_pages",
      &ngx_http_llm_gauge, at(window_pages), 0,
      "Pages of the KV cache for layers with a window, in models that have "
      "other layers, too." },
    { "llm_kv_window_pages_used", "kv_window_pages_used",
      &ngx_http_llm_gauge, at(window_used), 0,
      "Pages of the KV cache for layers with a window that sequences hold." },
    { "llm_kv_window_pages_cached", "kv_window_pages_cached",
      &ngx_http_llm_gauge, at(window_cached), 0,
      "Pages of the KV cache for layers with a window kept for the prefix "
      "cache only." },
    { "llm_state_snapshots", "state_snapshots",
      &ngx_http_llm_gauge, at(snapshots), 0,
      "Snapshots of recurrent state kept for the prefix cache." },
    { "llm_request_memory_bytes", "request_memory",
      &ngx_http_llm_size, at(request_memory), 0,
      "Memory of all waiting and running requests." },
    { "llm_model_weights_bytes", "weights",
      &ngx_http_llm_size, at(weight_bytes), 0,
      "Size of the model's weights in its file, while it is loaded." },
    { "llm_kv_cache_bytes", "kv_cache",
      &ngx_http_llm_size, at(kv_bytes), 0,
      "Memory of the KV cache and of recurrent states, while the model is "
      "loaded." },
    { "vllm:prompt_tokens_total", "prompt_tokens",
      &ngx_http_llm_counter, at(prompt_tokens), 0,
      "Prompt tokens, cached ones included." },
    { "vllm:generation_tokens_total", "generation_tokens",
      &ngx_http_llm_counter, at(generation_tokens), 0,
      "Tokens generated." },
    { "vllm:prefix_cache_queries_total", "prefix_cache_queries",
      &ngx_http_llm_counter, at(prefix_queries), 0,
      "Prompt tokens looked up in the prefix cache." },
    { "vllm:prefix_cache_hits_total", "prefix_cache_hits",
      &ngx_http_llm_counter, at(prefix_hits), 0,
      "Prompt tokens found in the prefix cache." },
    { "llm_prefix_cache_evictions_total", "prefix_cache_evictions",
      &ngx_http_llm_counter, at(evictions), 0,
      "Pages taken from the prefix cache to make room." },
    { "vllm:num_preemptions_total", "preemptions",
      &ngx_http_llm_counter, at(preemptions), 0,
      "Times that a sequence lost its pages to another one." },
    { "llm_prompt_tokens_computed_total", "prompt_tokens_computed",
      &ngx_http_llm_counter, at(prompt_computed), 0,
      "Prompt tokens computed, not found in the prefix cache." },
    { "llm_steps_total", "steps",
      &ngx_http_llm_counter, at(steps), 0,
      "Steps of the engine, each of one batch." },
    { "llm_steps_behind_total", "steps_behind",
      &ngx_http_llm_counter, at(steps_behind), 0,
      "Steps launched before the previous one had ended." },
    { "vllm:mm_cache_queries_total", "media_queries",
      &ngx_http_llm_counter, at(media_queries), 0,
      "Images, tiles or sounds of chats whose encoded rows were looked up." },
    { "vllm:mm_cache_hits_total", "media_hits",
      &ngx_http_llm_counter, at(media_hits), 0,
      "Images, tiles or sounds of chats whose encoded rows were kept." },
    { "llm_encodes_total", "encodes",
      &ngx_http_llm_counter, at(encodes), 0,
      "Runs of an encoder: of an image, a tile, a sound or 30 seconds of it." },
    { "llm_audio_seconds_total", "audio_seconds",
      &ngx_http_llm_seconds, at(audio_ms), 0,
      "Seconds of sound that were transcribed." },
    { "vllm:spec_decode_num_drafts_total", "drafts",
      &ngx_http_llm_drafts, at(drafts), 0,
      "Drafts: tokens guessed for a sequence in a step, by kind." },
    { "vllm:spec_decode_num_draft_tokens_total", "drafted_tokens",
      &ngx_http_llm_drafts, at(drafted), 0,
      "Tokens of drafts, by kind." },
    { "vllm:spec_decode_num_accepted_tokens_total", "accepted_tokens",
      &ngx_http_llm_drafts, at(accepted), 0,
      "Drafted tokens that the model then drew, by kind." },
    { "llm_request_errors_total", "errors",
      &ngx_http_llm_counter, at(errors), 0,
      "Requests that the engine ended with an error of its own (5xx)." },
    { "llm_device_errors_total", "device_errors",
      &ngx_http_llm_counter, at(device_errors), 0,
      "Steps and loads that failed because of the device." },
    { "llm_out_of_memory_total", "out_of_memory",
      &ngx_http_llm_counter, at(memory_errors), 0,
      "Steps and loads that failed because memory ran out." },
    { "vllm:kv_cache_usage_perc", "kv_cache_usage",
      &ngx_http_llm_share, at(kv_used), at(kv_pages),
      "Share of the KV cache's pages in use, from 0 to 1." },
    { "vllm:cache_config_info", "cache_config",
      &ngx_http_llm_pages, at(kv_pages), 0,
      "Tokens of a page of the KV cache, and the number of its pages." },
    { "vllm:request_success_total", "finished",
      &ngx_http_llm_reasons, at(finished), 0,
      "Finished choices, by finish reason." },
    { "vllm:time_to_first_token_seconds", "time_to_first_token",
      &ngx_http_llm_hist, at(ttft), 0,
      "Time from a request's arrival to its first token." },
    { "vllm:inter_token_latency_seconds", "inter_token_latency",
      &ngx_http_llm_hist, at(itl), 0,
      "Time between two tokens of a sequence." },
    { "vllm:e2e_request_latency_seconds", "e2e_request_latency",
      &ngx_http_llm_hist, at(e2e), 0,
      "Time from a request's arrival to its end." },
    { "vllm:request_queue_time_seconds", "queue_time",
      &ngx_http_llm_hist, at(queue), 0,
      "Time from a request's arrival until it runs." },
    { "vllm:request_prefill_time_seconds", "prefill_time",
      &ngx_http_llm_hist, at(prefill), 0,
      "Time from when a request runs to its first token." },
    { "vllm:request_decode_time_seconds", "decode_time",
      &ngx_http_llm_hist, at(decode), 0,
      "Time from a request's first token to its end." },
    { "llm_step_rows", "rows",
      &ngx_http_llm_hist, at(rows), 0,
      "Rows of a step: tokens of prompts and answers." },
};

#undef at

static const ngx_http_llm_metrics_t  ngx_http_llm_model_metrics = {
    ngx_http_llm_model_rows, llm_nelems(ngx_http_llm_model_rows)
};


#define at(field)  offsetof(ngx_http_llm_worker_figures_t, field)

static const ngx_http_llm_metric_t  ngx_http_llm_worker_rows[] = {
    { "llm_worker_events_total", "events",
      &ngx_http_llm_counter, at(engine.events), 0,
      "Events that the engine sent to a worker." },
    { "llm_worker_token_events_total", "token_events",
      &ngx_http_llm_counter, at(engine.token_events), 0,
      "Events with text that the engine sent to a worker." },
    { "llm_worker_wakeups_total", "wakeups",
      &ngx_http_llm_counter, at(engine.wakeups), 0,
      "Times that the engine woke a worker." },
    { "llm_worker_writes_total", "writes",
      &ngx_http_llm_counter, at(writes), 0,
      "Pieces of answers that a worker sent to its clients." },
    { "llm_worker_unsent_bytes", "unsent",
      &ngx_http_llm_size, at(own.unsent), 0,
      "Memory of a worker for output not yet read by clients." },
    { "llm_worker_streams", "streams",
      &ngx_http_llm_size, at(own.streams), 0,
      "Streamed answers of a worker that have begun and not ended." },
};

#undef at

static const ngx_http_llm_metrics_t  ngx_http_llm_worker_metrics = {
    ngx_http_llm_worker_rows, llm_nelems(ngx_http_llm_worker_rows)
};


#define at(field)  offsetof(llm_media_stats_t, field)

static const ngx_http_llm_metric_t  ngx_http_llm_media_rows[] = {
    { "llm_media_memory_bytes", "bytes",
      &ngx_http_llm_size, at(bytes), 0,
      "Memory for the images and sound of requests (llm_media_memory)." },
    { "llm_media_memory_used_bytes", "used",
      &ngx_http_llm_size, at(used), 0,
      "Part of llm_media_memory_bytes that requests use." },
    { "llm_media_memory_full_total", "full",
      &ngx_http_llm_counter, at(full), 0,
      "Requests refused because llm_media_memory_bytes were in use." },
};

#undef at

static const ngx_http_llm_metrics_t  ngx_http_llm_media_metrics = {
    ngx_http_llm_media_rows, llm_nelems(ngx_http_llm_media_rows)
};


ngx_int_t
ngx_http_llm_metrics_handler(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    llm_buf_t                  body;
    llm_err_t                  err;
    ngx_uint_t                 n;
    ngx_http_llm_subject_t    *models, *workers;
    ngx_http_llm_metrics_conf_t  *mlcf;
    ngx_http_llm_main_conf_t  *mcf;

    rc = ngx_http_llm_get_only(r);
    if (rc != NGX_DECLINED) {
        return rc;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);
    mlcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_metrics_module);

    ngx_http_llm_refresh_models(mcf);

    models = ngx_http_llm_model_subjects(r, mcf, &n);
    workers = ngx_http_llm_worker_subjects(r, mcf);

    if (models == NULL || workers == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    llm_buf_init(&body, 0);

    if (mlcf->json) {
        ngx_http_llm_metrics_json(mcf, models, n, workers, &body);
        ngx_http_llm_report_json(r, mlcf->tenants, &body);
        llm_buf_addc(&body, '}');

    } else {
        ngx_http_llm_metrics_build(mcf, &body);
        ngx_http_llm_metrics_prometheus(&ngx_http_llm_model_metrics, models,
                                        n, &body);
        ngx_http_llm_metrics_prometheus(&ngx_http_llm_worker_metrics, workers,
                                        mcf->nworkers, &body);
        ngx_http_llm_metrics_media(mcf, 0, &body);
        ngx_http_llm_report_prometheus(r, mlcf->tenants, &body);
    }

    if (body.failed) {
        llm_buf_free(&body);
        llm_fail(&err, "No memory is left for this answer.");
        return ngx_http_llm_send_error(r, &err, 0);
    }

    return ngx_http_llm_send_body(r, NGX_HTTP_OK,
                                  mlcf->json
                                  ? "application/json"
                                  : "text/plain; version=0.0.4", &body);
}


static ngx_http_llm_subject_t *
ngx_http_llm_model_subjects(ngx_http_request_t *r,
    ngx_http_llm_main_conf_t *mcf, ngx_uint_t *n)
{
    ngx_uint_t               i, k;
    llm_model_stats_t       *figures;
    ngx_http_llm_model_t    *models;
    ngx_http_llm_subject_t  *subjects;

    subjects = ngx_palloc(r->pool, mcf->models.nelts
                                   * sizeof(ngx_http_llm_subject_t));
    figures = ngx_palloc(r->pool, mcf->models.nelts
                                  * sizeof(llm_model_stats_t));

    if (subjects == NULL || figures == NULL) {
        return NULL;
    }

    models = mcf->models.elts;

    for (i = 0, k = 0; i < mcf->models.nelts; i++) {

        if (models[i].name.len == 0) {
            continue;
        }

        llm_zone_model_stats(mcf->zone, &mcf->kept, i, &figures[k]);

        subjects[k].name = &models[i].name;
        subjects[k].figures = &figures[k];
        subjects[k].label = ngx_http_llm_write_label(r->pool, "model_name",
                                                     &models[i].name);
        if (subjects[k++].label == NULL) {
            return NULL;
        }
    }

    *n = k;

    return subjects;
}


static ngx_http_llm_subject_t *
ngx_http_llm_worker_subjects(ngx_http_request_t *r,
    ngx_http_llm_main_conf_t *mcf)
{
    u_char                         *label;
    uint32_t                        w;
    ngx_http_llm_subject_t         *subjects;
    ngx_http_llm_worker_figures_t  *figures;

    subjects = ngx_palloc(r->pool,
                          mcf->nworkers * sizeof(ngx_http_llm_subject_t));
    figures = ngx_palloc(r->pool, mcf->nworkers
                                  * sizeof(ngx_http_llm_worker_figures_t));

    if (subjects == NULL || figures == NULL) {
        return NULL;
    }

    for (w = 0; w < mcf->nworkers; w++) {
        label = ngx_pnalloc(r->pool, sizeof("worker=\"\"") + NGX_INT32_LEN);
        if (label == NULL) {
            return NULL;
        }

        ngx_sprintf(label, "worker=\"%uD\"%Z", w);

        llm_zone_worker_stats(mcf->zone, &mcf->kept, w, &figures[w].engine);
        figures[w].writes = *ngx_http_llm_writes(mcf, w);
        figures[w].own = ngx_http_llm_counters(mcf)[w];

        subjects[w].figures = &figures[w];
        subjects[w].label = (char *) label;
    }

    return subjects;
}


/* the value of llm_build_info is always 1; its labels have the versions */

static void
ngx_http_llm_metrics_build(ngx_http_llm_main_conf_t *mcf, llm_buf_t *b)
{
    llm_buf_adds(b, "# HELP llm_build_info The versions of nginx-llm and of "
                    "nginx.\n# TYPE llm_build_info gauge\n"
                    "llm_build_info{version=\"" LLM_VERSION "\",nginx=\""
                    NGINX_VERSION "\"} 1\n");

    llm_buf_addf(b, "# HELP llm_start_time_seconds When the engine began, in "
                    "seconds since 1970.\n"
                    "# TYPE llm_start_time_seconds gauge\n"
                    "llm_start_time_seconds %llu\n",
                 (unsigned long long) llm_zone_started(mcf->zone));
}


static void
ngx_http_llm_metrics_prometheus(const ngx_http_llm_metrics_t *metrics,
    ngx_http_llm_subject_t *subjects, ngx_uint_t n, llm_buf_t *b)
{
    ngx_uint_t                    i, k;
    const ngx_http_llm_metric_t  *m;

    for (k = 0; k < metrics->n; k++) {
        m = &metrics->rows[k];

        llm_buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help,
                     m->name, m->kind->type);

        for (i = 0; i < n; i++) {
            m->kind->prometheus(m, subjects[i].figures, subjects[i].label, b);
        }
    }
}


static void
ngx_http_llm_metrics_json(ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_subject_t *models, ngx_uint_t n,
    ngx_http_llm_subject_t *workers, llm_buf_t *b)
{
    uint32_t    w;
    ngx_uint_t  i;

    llm_buf_addf(b, "{\"version\":\"" LLM_VERSION "\",\"nginx\":\""
                    NGINX_VERSION "\",\"start_time\":%llu,\"models\":[",
                 (unsigned long long) llm_zone_started(mcf->zone));

    for (i = 0; i < n; i++) {
        llm_buf_adds(b, i ? ",{\"name\":" : "{\"name\":");
        llm_json_add_string(b, (char *) models[i].name->data,
                            models[i].name->len);
        ngx_http_llm_metrics_members(&ngx_http_llm_model_metrics,
                                     models[i].figures, ",", b);
        llm_buf_addc(b, '}');
    }

    llm_buf_adds(b, "],\"workers\":[");

    for (w = 0; w < mcf->nworkers; w++) {
        ngx_http_llm_metrics_members(&ngx_http_llm_worker_metrics,
                                     workers[w].figures, w ? ",{" : "{", b);
        llm_buf_addc(b, '}');
    }

    llm_buf_adds(b, "],\"media_memory\":");
    ngx_http_llm_metrics_media(mcf, 1, b);
}


/* the zone's own figures */

static void
ngx_http_llm_metrics_media(ngx_http_llm_main_conf_t *mcf, ngx_uint_t json,
    llm_buf_t *b)
{
    llm_media_stats_t       st;
    ngx_http_llm_subject_t  zone;

    llm_zone_media_stats(mcf->zone, &st);

    zone.label = "";
    zone.figures = &st;

    if (json) {
        ngx_http_llm_metrics_members(&ngx_http_llm_media_metrics, &st, "{", b);
        llm_buf_addc(b, '}');

    } else {
        ngx_http_llm_metrics_prometheus(&ngx_http_llm_media_metrics, &zone, 1,
                                        b);
    }
}


static void
ngx_http_llm_metrics_members(const ngx_http_llm_metrics_t *metrics,
    const void *figures, const char *before, llm_buf_t *b)
{
    ngx_uint_t                    k;
    const ngx_http_llm_metric_t  *m;

    for (k = 0; k < metrics->n; k++) {
        m = &metrics->rows[k];

        llm_buf_addf(b, "%s\"%s\":", k ? "," : before, m->json);
        m->kind->json(m, figures, b);
    }
}
