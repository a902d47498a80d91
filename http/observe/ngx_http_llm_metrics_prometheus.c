/*
 * Metrics of requests, objectives and GPUs for Prometheus; those of models and
 * workers are rows of tables in ngx_http_llm_metrics.c.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/observe/ngx_http_llm_metrics.h"


static void ngx_http_llm_report_owners(ngx_http_request_t *r,
    ngx_http_llm_owners_t *o, llm_buf_t *b);
static void ngx_http_llm_report_kind(ngx_http_request_t *r,
    ngx_http_llm_owners_t *o, ngx_uint_t kind, llm_buf_t *b);
static void ngx_http_llm_report_tokens(ngx_http_llm_owners_t *o,
    llm_buf_t *b);
static void ngx_http_llm_report_times(ngx_http_request_t *r,
    ngx_http_llm_owners_t *o, llm_buf_t *b);
static void ngx_http_llm_report_slos(ngx_http_request_t *r, llm_buf_t *b);
static void ngx_http_llm_report_gpus(ngx_http_request_t *r, llm_buf_t *b);


static void
ngx_http_llm_head(llm_buf_t *b, const char *name, const char *type,
    const char *help)
{
    llm_buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}


void
ngx_http_llm_report_prometheus(ngx_http_request_t *r, ngx_uint_t tenants,
    llm_buf_t *b)
{
    ngx_http_llm_owners_t  o;

    if (ngx_http_llm_models_of(r, &o) != NGX_OK) {
        b->failed = 1;
        return;
    }

    ngx_http_llm_report_owners(r, &o, b);

    if (tenants) {
        if (ngx_http_llm_tenants_of(r, &o) != NGX_OK) {
            b->failed = 1;
            return;
        }

        ngx_http_llm_report_owners(r, &o, b);
        ngx_http_llm_report_times(r, &o, b);
    }

    ngx_http_llm_report_slos(r, b);
    ngx_http_llm_report_gpus(r, b);
}


static void
ngx_http_llm_report_owners(ngx_http_request_t *r, ngx_http_llm_owners_t *o,
    llm_buf_t *b)
{
    ngx_uint_t  i;

    for (i = 0; ngx_http_llm_kinds[i].name; i++) {
        ngx_http_llm_report_kind(r, o, i, b);
    }

    ngx_http_llm_report_tokens(o, b);

    llm_buf_addf(b, "# HELP %srequests_lost_total Counts of requests by "
                 "endpoint, status or error that were lost for lack of "
                 "room.\n"
                 "# TYPE %srequests_lost_total counter\n"
                 "%srequests_lost_total %lu\n", o->prefix, o->prefix,
                 o->prefix, (unsigned long) o->tally->lost);
}


static void
ngx_http_llm_report_kind(ngx_http_request_t *r, ngx_http_llm_owners_t *o,
    ngx_uint_t kind, llm_buf_t *b)
{
    char                       name[64];
    ngx_str_t                  word;
    ngx_uint_t                 i;
    ngx_http_llm_counted_t    *c;
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);

    (void) ngx_sprintf((u_char *) name, "%s%s_total%Z", o->prefix,
                       ngx_http_llm_kinds[kind].name);
    llm_buf_addf(b, "# HELP %s %s, of a %s.\n# TYPE %s counter\n", name,
                 ngx_http_llm_kinds[kind].help, o->of, name);

    for (i = 0; (c = ngx_http_llm_next_counted(o, kind, &i)) != NULL; ) {
        ngx_http_llm_word_text(mcf, c->word, &word);

        if (c->kind == NGX_HTTP_LLM_TALLY_REQUESTS) {
            llm_buf_addf(b, "%s{%s,endpoint=\"%.*s\",code=\"%03u\"} %llu\n",
                         name, o->labels[c->owner], (int) word.len,
                         word.data, (unsigned) c->status,
                         (unsigned long long) c->n);

        } else {
            llm_buf_addf(b, "%s{%s,reason=\"%.*s\"} %llu\n", name,
                         o->labels[c->owner], (int) word.len, word.data,
                         (unsigned long long) c->n);
        }
    }
}


static void
ngx_http_llm_report_tokens(ngx_http_llm_owners_t *o, llm_buf_t *b)
{
    char        name[64];
    ngx_uint_t  i, k;

    const ngx_http_llm_tokens_row_t  *row;

    for (k = 0; ngx_http_llm_tokens_rows[k].name; k++) {
        row = &ngx_http_llm_tokens_rows[k];

        (void) ngx_sprintf((u_char *) name, "%srequest_%s_tokens_total%Z",
                           o->prefix, row->name);
        llm_buf_addf(b, "# HELP %s %s, of a %s.\n# TYPE %s counter\n", name,
                     row->help, o->of, name);

        for (i = 0; i < o->tally->nowners; i++) {
            if (o->labels[i]) {
                llm_buf_addf(b, "%s{%s} %llu\n", name, o->labels[i],
                             (unsigned long long)
                             ngx_http_llm_tokens_at(o, i, row));
            }
        }
    }
}


/* for tenants only: the times of models are in their own table */

static void
ngx_http_llm_report_times(ngx_http_request_t *r, ngx_http_llm_owners_t *o,
    llm_buf_t *b)
{
    ngx_uint_t                 i, k;
    llm_hist_t                 hist[2];
    ngx_http_llm_tenants_t    *t;
    ngx_http_llm_main_conf_t  *mcf;

    static const char *const  names[] = {
        "llm_tenant_time_to_first_token_seconds",
        "llm_tenant_inter_token_latency_seconds"
    };

    static const char *const  helps[] = {
        "Time from a request's arrival to its first token, of a tenant.",
        "Time between two tokens of a sequence, of a tenant."
    };

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);
    t = ngx_http_llm_stats(mcf)->tenants_zone->data;

    for (k = 0; k < 2; k++) {
        ngx_http_llm_head(b, names[k], "histogram", helps[k]);

        for (i = 0; i < o->tally->nowners; i++) {
            if (o->labels[i]) {
                llm_times_stats(t->times, i, &hist[0], &hist[1]);
                ngx_http_llm_write_hist(b, names[k], o->labels[i], &hist[k]);
            }
        }
    }
}


/* writes good before total, so that good is never larger */

static void
ngx_http_llm_report_slos(ngx_http_request_t *r, llm_buf_t *b)
{
    double                      bound;
    ngx_uint_t                  i, k, n;
    const char                **label;
    ngx_http_llm_slo_t        **slo;
    ngx_http_llm_main_conf_t   *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);
    slo = ngx_http_llm_stats(mcf)->slos.elts;
    n = ngx_http_llm_stats(mcf)->slos.nelts;

    if (n == 0) {
        return;
    }

    label = ngx_palloc(r->pool, n * sizeof(char *));

    for (i = 0; label && i < n; i++) {
        label[i] = ngx_http_llm_write_label(r->pool, "slo", &slo[i]->name);

        if (label[i] == NULL) {
            label = NULL;
        }
    }

    if (label == NULL) {
        b->failed = 1;
        return;
    }

    ngx_http_llm_head(b, "llm_slo_good_requests_total", "counter",
                      "Requests that met an objective.");

    for (i = 0; i < n; i++) {
        llm_buf_addf(b, "llm_slo_good_requests_total{%s} %lu\n", label[i],
                     (unsigned long) slo[i]->score->good);
    }

    ngx_http_llm_head(b, "llm_slo_requests_total", "counter",
                      "Requests that count for an objective.");

    for (i = 0; i < n; i++) {
        llm_buf_addf(b, "llm_slo_requests_total{%s} %lu\n", label[i],
                     (unsigned long) slo[i]->score->total);
    }

    ngx_http_llm_head(b, "llm_slo_bound_seconds", "gauge",
                      "The bounds of an objective.");

    for (i = 0; i < n; i++) {
        for (k = 0; k < NGX_HTTP_LLM_SLO_BOUNDS; k++) {
            bound = ngx_http_llm_slo_seconds(slo[i], k);

            if (bound > 0) {
                llm_buf_addf(b, "llm_slo_bound_seconds{%s,bound=\"%s\"} %g\n",
                             label[i], ngx_http_llm_slo_names[k], bound);
            }
        }
    }
}


/* "gpu" is the index as nvidia-smi counts */

static void
ngx_http_llm_report_gpus(ngx_http_request_t *r, llm_buf_t *b)
{
    uint32_t                       i, n;
    ngx_uint_t                     k;
    llm_gpu_stats_t                gpus[NGX_HTTP_LLM_MAX_GPUS];
    ngx_http_llm_main_conf_t      *mcf;
    const ngx_http_llm_gpu_row_t  *row;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);
    n = llm_zone_gpus(mcf->zone, gpus, NGX_HTTP_LLM_MAX_GPUS);

    if (n == 0) {
        return;
    }

    ngx_http_llm_head(b, "llm_gpu_info", "gauge",
                      "The GPUs that NVML lists.");

    for (i = 0; i < n; i++) {

        if (gpus[i].uuid[0] == '\0') {
            continue;                   /* this GPU does not answer */
        }

        llm_buf_addf(b, "llm_gpu_info{gpu=\"%u\",uuid=\"%s\",name=\"%s\"} "
                     "1\n", i, gpus[i].uuid, gpus[i].name);
    }

    for (k = 0; ngx_http_llm_gpu_rows[k].name; k++) {
        row = &ngx_http_llm_gpu_rows[k];

        ngx_http_llm_head(b, row->name, "gauge", row->help);

        for (i = 0; i < n; i++) {
            if (gpus[i].has & row->bit) {
                llm_buf_addf(b, "%s{gpu=\"%u\"} %.15g\n", row->name, i,
                             ngx_http_llm_gpu_at(&gpus[i], row));
            }
        }
    }
}
