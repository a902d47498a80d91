/*
 * llm_metrics, the directive; its handler: ngx_http_llm_metrics.c.
 */

#include "http/observe/ngx_http_llm_metrics.h"


static char *ngx_http_llm_metrics_tenants(ngx_conf_t *cf,
    ngx_http_llm_loc_conf_t *llcf, ngx_str_t *value);


static const ngx_http_llm_serves_t  ngx_http_llm_metrics_serves = {
    .handler = ngx_http_llm_metrics_handler,
    .scope = LLM_SCOPE_MONITOR
};


/* llm_metrics [prometheus | json] [tenants=N] */

char *
ngx_http_llm_metrics(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_loc_conf_t *llcf = conf;

    ngx_str_t   *value;
    ngx_uint_t   i;

    value = cf->args->elts;

    if (ngx_http_llm_once(cf, 1) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "tenants=", 8) == 0) {
            if (ngx_http_llm_metrics_tenants(cf, llcf, &value[i])
                != NGX_CONF_OK)
            {
                return NGX_CONF_ERROR;
            }

        } else if (i == 1 && ngx_strcmp(value[i].data, "json") == 0) {
            llcf->metrics_json = 1;

        } else if (i != 1 || ngx_strcmp(value[i].data, "prometheus") != 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "unknown format \"%V\", it must be "
                               "\"prometheus\" or \"json\"", &value[i]);
            return NGX_CONF_ERROR;
        }
    }

    return ngx_http_llm_use(cf, llcf, &ngx_http_llm_metrics_serves);
}


/* if several say how many, the most counts */

static char *
ngx_http_llm_metrics_tenants(ngx_conf_t *cf, ngx_http_llm_loc_conf_t *llcf,
    ngx_str_t *value)
{
    ngx_int_t                  n;
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);
    n = ngx_atoi(value->data + 8, value->len - 8);

    if (n == NGX_ERROR || n == 0 || n > NGX_HTTP_LLM_MAX_TENANTS)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid number of tenants \"%V\", it must be "
                           "from 1 to %d", value, NGX_HTTP_LLM_MAX_TENANTS);
        return NGX_CONF_ERROR;
    }

    llcf->tenants = n;
    mcf->figures->ntenants = ngx_max(mcf->figures->ntenants, (ngx_uint_t) n);

    return NGX_CONF_OK;
}
