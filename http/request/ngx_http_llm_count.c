/*
 * Counts the requests that have been in a llm_api location: worker 0 does not
 * end before them (ngx_http_llm_shutdown.c).
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/worker/ngx_http_llm_worker.h"


static void ngx_http_llm_uncount(void *data);


ngx_uint_t
ngx_http_llm_is_counted(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;

    for (cln = r->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_llm_uncount) {
            return 1;
        }
    }

    return 0;
}


/*
 * In the rewrite phase the location is known, except for "if" blocks; in the
 * preaccess phase, where limit_req delays requests, it is final.  This handler
 * is called before limit_req's, because handlers of modules that are loaded
 * last are called first.  Even if another location answers the request, it is
 * counted until its pool is freed, after it was logged.
 */

ngx_int_t
ngx_http_llm_count_handler(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_llm_loc_conf_t   *llcf;
    ngx_http_llm_main_conf_t  *mcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    if (!ngx_http_llm_is_api(llcf) || r != r->main
        || ngx_http_llm_is_counted(r))
    {
        return NGX_DECLINED;
    }

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);

    cln->handler = ngx_http_llm_uncount;
    cln->data = mcf->worker->counters;

    mcf->worker->counters->open++;

    return NGX_DECLINED;
}


static void
ngx_http_llm_uncount(void *data)
{
    ngx_http_llm_counters_t *counters = data;

    counters->open--;
}
