/*
 * How busy the models are, as variables of any location: of the request's
 * model, once it is known.  Before that, and in locations of other modules,
 * they cover all models that the location may use, or all models: the sum of
 * waiting requests, and the largest of each other figure.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/observe/ngx_http_llm_busy.h"
#include "http/observe/ngx_http_llm_outcome.h"
#include "http/request/ngx_http_llm_request.h"


/* models that count for the request, a bit for each */

static uint64_t
ngx_http_llm_load_models(ngx_http_request_t *r, ngx_http_llm_ctx_t *ctx)
{
    ngx_http_llm_loc_conf_t  *llcf;

    if (ctx && ctx->model >= 0) {
        return (uint64_t) 1 << ctx->model;
    }

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    return llcf->allowed ? llcf->allowed : (uint64_t) -1;
}


static void
ngx_http_llm_load_sum(ngx_http_llm_main_conf_t *mcf, uint64_t models,
    llm_zone_busy_t *sum)
{
    ngx_uint_t       i;
    llm_zone_busy_t  l;

    ngx_memzero(sum, sizeof(llm_zone_busy_t));

    for (i = 0; i < mcf->models.nelts; i++) {

        if (!(models & ((uint64_t) 1 << i))) {
            continue;
        }

        llm_zone_busy(mcf->zone, i, &l);

        sum->load = ngx_max(sum->load, l.load);
        sum->waiting += l.waiting;
        sum->ttft_us = ngx_max(sum->ttft_us, l.ttft_us);
    }
}


ngx_int_t
ngx_http_llm_busy_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                    *p;
    llm_zone_busy_t            l;
    ngx_http_llm_ctx_t        *ctx;
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);

    if (mcf->zone == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    ctx = ngx_http_llm_find_ctx(r);

    ngx_http_llm_load_sum(mcf, ngx_http_llm_load_models(r, ctx), &l);

    p = ngx_pnalloc(r->pool, NGX_INT64_LEN + sizeof(".000000"));
    if (p == NULL) {
        return NGX_ERROR;
    }

    v->data = p;

    switch (data) {

    case NGX_HTTP_LLM_LOAD_LOAD:
        p = ngx_sprintf(p, "%uD", l.load);
        break;

    case NGX_HTTP_LLM_LOAD_WAITING:
        p = ngx_sprintf(p, "%uD", l.waiting);
        break;

    default: /* NGX_HTTP_LLM_LOAD_TTFT */

        /* for a running request, what was predicted for it */

        if (ctx && ctx->predicted_us) {
            l.ttft_us = ctx->predicted_us;
        }

        if (l.ttft_us) {
            p = ngx_sprintf(p, "%uL.%06uL", l.ttft_us / 1000000,
                            l.ttft_us % 1000000);
        }
    }

    v->len = p - v->data;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = (v->len == 0);

    return NGX_OK;
}
