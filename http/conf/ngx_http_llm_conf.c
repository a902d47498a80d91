/*
 * llm_queue, and what all directives with a content handler have in common,
 * with those checks that need the whole configuration.  Errors are reported
 * with file and line.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/conf/ngx_http_llm_param.h"
#include "http/reply/ngx_http_llm_reply.h"


static char *ngx_http_llm_queue_param(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_str_t *value);
static char *ngx_http_llm_queue_tokens(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_str_t *value);
static char *ngx_http_llm_check_use(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_loc_conf_t *llcf);


/* llm_queue N [timeout=TIME] [memory=SIZE] [tokens=N] [ttft=TIME] */

char *
ngx_http_llm_queue(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_main_conf_t *mcf = conf;

    char       *rv;
    uint64_t    n;
    ngx_str_t  *value;
    ngx_uint_t  i;

    if (mcf->queue != NGX_CONF_UNSET) {
        return "is duplicate";
    }

    value = cf->args->elts;

    rv = ngx_http_llm_once(cf, 2);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    if (llm_count((char *) value[1].data, value[1].len, 1 << 20, &n)
        != LLM_OK)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid number of requests \"%V\" of "
                           "\"llm_queue\", it must be between 0 and %d",
                           &value[1], 1 << 20);
        return NGX_CONF_ERROR;
    }

    mcf->queue = n;

    for (i = 2; i < cf->args->nelts; i++) {
        rv = ngx_http_llm_queue_param(cf, mcf, &value[i]);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_queue_param(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_str_t *value)
{
    char        *rv;
    ngx_msec_t   ttft;

    if (ngx_strncmp(value->data, "timeout=", 8) == 0) {
        return ngx_http_llm_param_time(cf, value, 8, &mcf->queue_timeout);
    }

    if (ngx_strncmp(value->data, "memory=", 7) == 0) {
        return ngx_http_llm_param_size(cf, value, 7, 1024 * 1024,
                                       NGX_HTTP_LLM_MOST_SIZE,
                                       &mcf->queue_memory);
    }

    if (ngx_strncmp(value->data, "tokens=", 7) == 0) {
        return ngx_http_llm_queue_tokens(cf, mcf, value);
    }

    if (ngx_strncmp(value->data, "ttft=", 5) == 0) {
        rv = ngx_http_llm_param_time(cf, value, 5, &ttft);

        if (rv == NGX_CONF_OK) {
            mcf->bounds.ttft_us = (uint64_t) ttft * 1000;
        }

        return rv;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "unknown parameter \"%V\"",
                       value);

    return NGX_CONF_ERROR;
}


static char *
ngx_http_llm_queue_tokens(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_str_t *value)
{
    uint64_t  n;

    if (llm_count((char *) value->data + 7, value->len - 7,
                  NGX_MAX_INT32_VALUE, &n) != LLM_OK
        || n == 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid number of tokens \"%V\" of \"llm_queue\", "
                           "it must be between 1 and %d", value,
                           NGX_MAX_INT32_VALUE);
        return NGX_CONF_ERROR;
    }

    mcf->bounds.tokens = n;

    return NGX_CONF_OK;
}


/* check_uses() checks that there are models */

char *
ngx_http_llm_use(ngx_conf_t *cf, ngx_http_llm_loc_conf_t *llcf,
    const ngx_http_llm_serves_t *serves)
{
    ngx_str_t                  *value;
    ngx_http_core_loc_conf_t   *clcf;
    ngx_http_llm_loc_conf_t   **use;
    ngx_http_llm_main_conf_t   *mcf;
    ngx_http_llm_reply_loc_conf_t  *rlcf;

    value = cf->args->elts;
    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->handler == serves->handler) {
        return "is duplicate";
    }

    if (clcf->handler) {
        return "conflicts with another content handler in this location";
    }

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);

    use = ngx_array_push(&mcf->uses);
    if (use == NULL) {
        return NGX_CONF_ERROR;
    }

    *use = llcf;

    llcf->directive = (char *) value[0].data;
    llcf->line = cf->conf_file->line;
    llcf->file = cf->conf_file->file.name;

    llcf->serves = serves;
    llcf->core = clcf;

    clcf->handler = serves->handler;

    rlcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_llm_filter_module);

    rlcf->ours = 1;

    return NGX_CONF_OK;
}


char *
ngx_http_llm_check_uses(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf)
{
    char                      *rv;
    ngx_uint_t                 i;
    ngx_http_llm_loc_conf_t  **llcf;

    llcf = mcf->uses.elts;

    for (i = 0; i < mcf->uses.nelts; i++) {
        rv = ngx_http_llm_check_use(cf, mcf, llcf[i]);
        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_check_use(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_loc_conf_t *llcf)
{
    ngx_int_t    model;
    ngx_str_t   *name;
    ngx_uint_t   i;

    if (mcf->models.nelts == 0) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%s\" without any \"llm_model\" in %V:%ui",
                      llcf->directive, &llcf->file, llcf->line);
        return NGX_CONF_ERROR;
    }

    /* a later directive may have replaced the handler without an error */

    if (llcf->core->handler != llcf->serves->handler) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%s\" conflicts with another content handler in its "
                      "location in %V:%ui",
                      llcf->directive, &llcf->file, llcf->line);
        return NGX_CONF_ERROR;
    }

    llcf->fallback = -1;
    llcf->allowed = ((uint64_t) 1 << mcf->models.nelts) - 1;

    if (llcf->nnames) {
        llcf->allowed = 0;
    }

    for (i = 0; i <= llcf->nnames; i++) {

        if (i < llcf->nnames) {
            name = &llcf->names[i];

        } else if (llcf->fallback_name.len) {
            name = &llcf->fallback_name;

        } else {
            break;
        }

        model = ngx_http_llm_find_model(mcf, name);

        if (model < 0) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"%s\" names \"%V\", but there is no such "
                          "\"llm_model\" in %V:%ui",
                          llcf->directive, name, &llcf->file, llcf->line);
            return NGX_CONF_ERROR;
        }

        llcf->allowed |= (uint64_t) 1 << model;

        if (i == llcf->nnames) {
            llcf->fallback = model;
        }
    }

    return llcf->serves->check ? llcf->serves->check(cf, mcf, llcf)
                               : NGX_CONF_OK;
}


ngx_int_t
ngx_http_llm_add_variables(ngx_conf_t *cf, ngx_http_variable_t *vars)
{
    ngx_http_variable_t  *var, *v;

    for (v = vars; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}
