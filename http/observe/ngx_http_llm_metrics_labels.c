/*
 * Metrics of requests: the rows of their tables, and the models and tenants
 * that own the counters.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/observe/ngx_http_llm_metrics.h"


const ngx_http_llm_tokens_row_t  ngx_http_llm_tokens_rows[] = {
    { "prompt", "prompt", offsetof(ngx_http_llm_tokens_t, prompt),
      "Prompt tokens of requests that have ended" },
    { "cached", "cached", offsetof(ngx_http_llm_tokens_t, cached),
      "Prompt tokens of requests that have ended, found in the prefix cache" },
    { "completion", "completion",
      offsetof(ngx_http_llm_tokens_t, completion),
      "Tokens generated for requests that have ended" },
    { NULL, NULL, 0, NULL }
};


#define at(field)  offsetof(llm_gpu_stats_t, field)

const ngx_http_llm_gpu_row_t  ngx_http_llm_gpu_rows[] = {
    { "llm_gpu_utilization_ratio", "utilization", at(busy), LLM_GPU_BUSY,
      0.01, "Share of time in which the GPU ran a kernel." },
    { "llm_gpu_memory_utilization_ratio", "memory_utilization",
      at(memory_busy), LLM_GPU_BUSY, 0.01,
      "Share of time in which the GPU's memory was read or written." },
    { "llm_gpu_memory_used_bytes", "memory_used", at(memory_used),
      LLM_GPU_MEMORY, 1, "Memory of the GPU in use, by any process." },
    { "llm_gpu_memory_total_bytes", "memory", at(memory_total),
      LLM_GPU_MEMORY, 1, "Memory of the GPU." },
    { "llm_gpu_power_watts", "power", at(power_mw), LLM_GPU_POWER, 0.001,
      "Power that the GPU draws." },
    { "llm_gpu_temperature_celsius", "temperature", at(celsius),
      LLM_GPU_CELSIUS, 1, "Temperature of the GPU." },
    { NULL, NULL, 0, 0, 0, NULL }
};

#undef at


/* counters of requests: by endpoint and status, or by error */

const ngx_http_llm_kind_t  ngx_http_llm_kinds[] = {
    { NGX_HTTP_LLM_TALLY_REQUESTS, "requests", "requests",
      "Requests that have ended, by endpoint and HTTP status" },
    { NGX_HTTP_LLM_TALLY_REJECTED, "requests_rejected", "rejected",
      "Requests that ended with an error before anything was computed, by "
      "the error" },
    { NGX_HTTP_LLM_TALLY_FAILED, "requests_failed", "failed",
      "Requests that ended with an error after they had begun to run, by the "
      "error" },
    { 0, NULL, NULL, NULL }
};


static ngx_int_t
ngx_http_llm_owners_of(ngx_http_request_t *r, ngx_http_llm_owners_t *o,
    ngx_http_llm_tally_t *t)
{
    o->tally = t;
    o->labels = ngx_pcalloc(r->pool, t->nowners * sizeof(char *));
    o->names = ngx_pcalloc(r->pool, t->nowners * sizeof(ngx_str_t));
    o->counted = ngx_http_llm_tally_read(t, r->pool, &o->n);

    return o->labels && o->names && o->counted ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_llm_name_owner(ngx_http_request_t *r, ngx_http_llm_owners_t *o,
    ngx_uint_t i, ngx_str_t *name)
{
    o->names[i] = *name;
    o->labels[i] = ngx_http_llm_write_label(r->pool, o->label, name);

    return o->labels[i] ? NGX_OK : NGX_ERROR;
}


/* the models of this configuration, and owner 0: no model */

ngx_int_t
ngx_http_llm_models_of(ngx_http_request_t *r, ngx_http_llm_owners_t *o)
{
    ngx_str_t                  none = ngx_null_string;
    ngx_uint_t                 i;
    ngx_http_llm_kept_t       *k;
    ngx_http_llm_model_t      *m;
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);
    k = ngx_http_llm_stats(mcf)->shm_zone->data;
    m = mcf->models.elts;

    o->prefix = "llm_";
    o->label = "model_name";
    o->of = "model";

    if (ngx_http_llm_owners_of(r, o, &k->tally) != NGX_OK
        || ngx_http_llm_name_owner(r, o, 0, &none) != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < mcf->models.nelts; i++) {
        if (m[i].name.len == 0) {
            continue;
        }

        if (ngx_http_llm_name_owner(r, o,
                                    1 + ngx_http_llm_stats(mcf)->places[i],
                                    &m[i].name)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_llm_tenants_of(ngx_http_request_t *r, ngx_http_llm_owners_t *o)
{
    ngx_str_t                  name = ngx_null_string;
    ngx_str_t                  other = ngx_string("other");
    ngx_uint_t                 i, n;
    ngx_http_llm_tenants_t    *t;
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);
    t = ngx_http_llm_stats(mcf)->tenants_zone->data;
    n = t->n;

    o->prefix = "llm_tenant_";
    o->label = "tenant";
    o->of = "tenant";

    if (ngx_http_llm_owners_of(r, o, &t->tally) != NGX_OK
        || ngx_http_llm_name_owner(r, o, NGX_HTTP_LLM_NO_TENANT, &name)
           != NGX_OK
        || ngx_http_llm_name_owner(r, o, NGX_HTTP_LLM_OTHER_TENANT, &other)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < n; i++) {
        name.len = t->names[i].len;
        name.data = t->names[i].text;

        if (ngx_http_llm_name_owner(r, o, NGX_HTTP_LLM_FIRST_TENANT + i,
                                    &name)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


uint64_t
ngx_http_llm_tokens_at(ngx_http_llm_owners_t *o, ngx_uint_t owner,
    const ngx_http_llm_tokens_row_t *row)
{
    return *(ngx_atomic_t *) ((char *) &o->tally->tokens[owner]
                              + row->offset);
}


const char *const  ngx_http_llm_slo_names[] = { "ttft", "itl", "e2e" };


double
ngx_http_llm_slo_seconds(const ngx_http_llm_slo_t *slo, ngx_uint_t k)
{
    ngx_msec_t  ms;

    ms = (k == 0) ? slo->ttft : (k == 1) ? slo->itl : slo->e2e;

    return (double) ms * 1e-3;
}


double
ngx_http_llm_gpu_at(const llm_gpu_stats_t *gpu,
    const ngx_http_llm_gpu_row_t *row)
{
    return (double) *(const uint64_t *) ((const char *) gpu + row->offset)
           * row->unit;
}


ngx_http_llm_counted_t *
ngx_http_llm_next_counted(ngx_http_llm_owners_t *o, ngx_uint_t kind,
    ngx_uint_t *i)
{
    ngx_http_llm_counted_t  *c;

    while (*i < o->n) {
        c = &o->counted[(*i)++];

        if (c->kind == ngx_http_llm_kinds[kind].kind && o->labels[c->owner]) {
            return c;
        }
    }

    return NULL;
}
