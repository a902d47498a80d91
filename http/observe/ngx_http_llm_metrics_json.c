/*
 * Metrics of requests, objectives and GPUs in JSON; see
 * ngx_http_llm_metrics_prometheus.c.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/observe/ngx_http_llm_metrics.h"


static void ngx_http_llm_owners_json(ngx_http_request_t *r,
    ngx_http_llm_owners_t *o, llm_buf_t *b);
static void ngx_http_llm_times_json(ngx_http_request_t *r,
    ngx_http_llm_owners_t *o, llm_buf_t *b);
static void ngx_http_llm_slos_json(ngx_http_request_t *r, llm_buf_t *b);
static void ngx_http_llm_gpus_json(ngx_http_request_t *r, llm_buf_t *b);


void
ngx_http_llm_report_json(ngx_http_request_t *r, ngx_uint_t tenants,
    llm_buf_t *b)
{
    ngx_http_llm_owners_t  o;

    if (ngx_http_llm_models_of(r, &o) != NGX_OK) {
        b->failed = 1;
        return;
    }

    llm_buf_addc(b, ',');
    ngx_http_llm_owners_json(r, &o, b);

    if (tenants) {
        if (ngx_http_llm_tenants_of(r, &o) != NGX_OK) {
            b->failed = 1;
            return;
        }

        llm_buf_adds(b, ",\"tenants\":{");
        ngx_http_llm_owners_json(r, &o, b);
        ngx_http_llm_times_json(r, &o, b);
        llm_buf_addc(b, '}');
    }

    ngx_http_llm_slos_json(r, b);
    ngx_http_llm_gpus_json(r, b);
}


static void
ngx_http_llm_owner_json(ngx_http_llm_owners_t *o, ngx_uint_t i,
    const char *before, llm_buf_t *b)
{
    llm_buf_addf(b, "%s{\"%s\":", before, o->of);
    llm_json_add_string(b, (char *) o->names[i].data, o->names[i].len);
}


static void
ngx_http_llm_owners_json(ngx_http_request_t *r, ngx_http_llm_owners_t *o,
    llm_buf_t *b)
{
    ngx_str_t                  word;
    ngx_uint_t                 i, k, n;
    const char                *comma;
    ngx_http_llm_counted_t    *c;
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);

    for (k = 0; ngx_http_llm_kinds[k].name; k++) {
        llm_buf_addf(b, "\"%s\":[", ngx_http_llm_kinds[k].json);
        comma = "";

        for (i = 0; (c = ngx_http_llm_next_counted(o, k, &i)) != NULL; ) {
            ngx_http_llm_word_text(mcf, c->word, &word);
            ngx_http_llm_owner_json(o, c->owner, comma, b);
            comma = ",";

            if (c->kind == NGX_HTTP_LLM_TALLY_REQUESTS) {
                llm_buf_addf(b, ",\"endpoint\":\"%.*s\",\"code\":%u",
                             (int) word.len, word.data,
                             (unsigned) c->status);
            } else {
                llm_buf_addf(b, ",\"reason\":\"%.*s\"", (int) word.len,
                             word.data);
            }

            llm_buf_addf(b, ",\"n\":%llu}", (unsigned long long) c->n);
        }

        llm_buf_adds(b, "],");
    }

    llm_buf_addf(b, "\"lost\":%lu,\"tokens\":[",
                 (unsigned long) o->tally->lost);
    comma = "";

    for (i = 0; i < o->tally->nowners; i++) {
        if (o->labels[i] == NULL) {
            continue;
        }

        ngx_http_llm_owner_json(o, i, comma, b);
        comma = ",";

        for (n = 0; ngx_http_llm_tokens_rows[n].name; n++) {
            llm_buf_addf(b, ",\"%s\":%llu", ngx_http_llm_tokens_rows[n].json,
                         (unsigned long long)
                         ngx_http_llm_tokens_at(o, i,
                                             &ngx_http_llm_tokens_rows[n]));
        }

        llm_buf_addc(b, '}');
    }

    llm_buf_addc(b, ']');
}


static void
ngx_http_llm_times_json(ngx_http_request_t *r, ngx_http_llm_owners_t *o,
    llm_buf_t *b)
{
    ngx_uint_t                 i;
    llm_hist_t                 ttft, itl;
    const char                *comma;
    ngx_http_llm_tenants_t    *t;
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);
    t = ngx_http_llm_stats(mcf)->tenants_zone->data;

    llm_buf_adds(b, ",\"times\":[");
    comma = "";

    for (i = 0; i < o->tally->nowners; i++) {
        if (o->labels[i] == NULL) {
            continue;
        }

        llm_times_stats(t->times, i, &ttft, &itl);

        ngx_http_llm_owner_json(o, i, comma, b);
        llm_buf_adds(b, ",\"time_to_first_token\":");
        ngx_http_llm_write_hist_json(b, &ttft);
        llm_buf_adds(b, ",\"inter_token_latency\":");
        ngx_http_llm_write_hist_json(b, &itl);
        llm_buf_addc(b, '}');
        comma = ",";
    }

    llm_buf_addc(b, ']');
}


static void
ngx_http_llm_slos_json(ngx_http_request_t *r, llm_buf_t *b)
{
    double                      bound;
    ngx_uint_t                  i, k;
    const char                 *comma;
    ngx_http_llm_slo_t        **slo;
    ngx_http_llm_main_conf_t   *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);
    slo = ngx_http_llm_stats(mcf)->slos.elts;

    llm_buf_adds(b, ",\"slos\":[");

    for (i = 0; i < ngx_http_llm_stats(mcf)->slos.nelts; i++) {
        llm_buf_adds(b, i ? ",{\"name\":" : "{\"name\":");
        llm_json_add_string(b, (char *) slo[i]->name.data,
                            slo[i]->name.len);
        llm_buf_addf(b, ",\"good\":%lu", (unsigned long)
                     slo[i]->score->good);
        llm_buf_addf(b, ",\"total\":%lu,\"bounds\":{", (unsigned long)
                     slo[i]->score->total);
        comma = "";

        for (k = 0; k < NGX_HTTP_LLM_SLO_BOUNDS; k++) {
            bound = ngx_http_llm_slo_seconds(slo[i], k);

            if (bound > 0) {
                llm_buf_addf(b, "%s\"%s\":%g", comma,
                             ngx_http_llm_slo_names[k], bound);
                comma = ",";
            }
        }

        llm_buf_adds(b, "}}");
    }

    llm_buf_addc(b, ']');
}


static void
ngx_http_llm_gpus_json(ngx_http_request_t *r, llm_buf_t *b)
{
    uint32_t                       i, n;
    ngx_uint_t                     k;
    llm_gpu_stats_t                gpus[NGX_HTTP_LLM_MAX_GPUS];
    ngx_http_llm_main_conf_t      *mcf;
    const ngx_http_llm_gpu_row_t  *row;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);
    n = llm_zone_gpus(mcf->zone, gpus, NGX_HTTP_LLM_MAX_GPUS);

    llm_buf_adds(b, ",\"gpus\":[");

    for (i = 0; i < n; i++) {
        llm_buf_addf(b, "%s{\"uuid\":\"%s\",\"name\":\"%s\"", i ? "," : "",
                     gpus[i].uuid, gpus[i].name);

        for (k = 0; ngx_http_llm_gpu_rows[k].name; k++) {
            row = &ngx_http_llm_gpu_rows[k];

            if (gpus[i].has & row->bit) {
                llm_buf_addf(b, ",\"%s\":%.15g", row->json,
                             ngx_http_llm_gpu_at(&gpus[i], row));
            }
        }

        llm_buf_addc(b, '}');
    }

    llm_buf_addc(b, ']');
}
