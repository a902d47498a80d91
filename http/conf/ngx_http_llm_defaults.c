/*
 * llm_defaults: values of members that requests of a location do not have.
 * engine/api/preset.c checks the members and applies them.
 */

#include "http/conf/ngx_http_llm_conf.h"


static void
ngx_http_llm_defaults_free(void *data)
{
    llm_api_preset_free(data);
}


/* llm_defaults 'JSON' */

char *
ngx_http_llm_defaults(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_loc_conf_t *llcf = conf;

    llm_err_t            err;
    ngx_str_t           *value;
    ngx_pool_cleanup_t  *cln;

    if (llcf->preset) {
        return "is duplicate";
    }

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;

    llcf->preset = llm_api_preset_create((char *) value[1].data, value[1].len,
                                         &err);
    if (llcf->preset == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value of \"llm_defaults\": %s", err.msg);
        return NGX_CONF_ERROR;
    }

    cln->handler = ngx_http_llm_defaults_free;
    cln->data = llcf->preset;

    return NGX_CONF_OK;
}
