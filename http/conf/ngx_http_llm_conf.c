/*
 * The directives with parameters, except llm_model: llm_queue, llm_tenant,
 * those of locations; and the checks that need the whole configuration.
 * Errors are reported with file and line.
 */

#include "http/admin/ngx_http_llm_admin.h"
#include "http/observe/ngx_http_llm_metrics.h"
#include "http/access/ngx_http_llm_quota.h"


static char *ngx_http_llm_queue_param(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_str_t *value);
static char *ngx_http_llm_queue_tokens(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_str_t *value);
static char *ngx_http_llm_metrics_tenants(ngx_conf_t *cf,
    ngx_http_llm_loc_conf_t *llcf, ngx_str_t *value);
static size_t ngx_http_llm_prefix(ngx_http_core_loc_conf_t *clcf);
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


/* llm_tenant $value [weight=$value] */

char *
ngx_http_llm_tenant(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_loc_conf_t *llcf = conf;

    ngx_int_t                          weight;
    ngx_str_t                         *value, s;
    ngx_uint_t                         i;
    ngx_http_complex_value_t         **cv;
    ngx_http_compile_complex_value_t   ccv;

    if (llcf->tenant) {
        return "is duplicate";
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        s = value[i];
        cv = &llcf->tenant;

        if (i == 2) {
            if (ngx_strncmp(s.data, "weight=", 7) != 0) {
                ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                                   "unknown parameter \"%V\"", &s);
                return NGX_CONF_ERROR;
            }

            s.data += 7;
            s.len -= 7;
            cv = &llcf->weight;
        }

        *cv = ngx_palloc(cf->pool, sizeof(ngx_http_complex_value_t));
        if (*cv == NULL) {
            return NGX_CONF_ERROR;
        }

        ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

        ccv.cf = cf;
        ccv.value = &s;
        ccv.complex_value = *cv;

        if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
            return NGX_CONF_ERROR;
        }
    }

    if (llcf->weight == NULL || llcf->weight->lengths) {
        return NGX_CONF_OK;
    }

    weight = ngx_atofp(s.data, s.len, 3);

    if (weight < 1 || weight > NGX_HTTP_LLM_MOST_WEIGHT) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" of \"llm_tenant\", it must "
                           "be between 0.001 and 1000", &value[2]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* llm_priority VALUE */

char *
ngx_http_llm_priority(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_loc_conf_t *llcf = conf;

    char       *rv;
    ngx_int_t   n;
    ngx_str_t  *value;

    rv = ngx_http_set_complex_value_slot(cf, cmd, conf);

    if (rv != NGX_CONF_OK || llcf->priority->lengths) {
        return rv;
    }

    value = cf->args->elts;

    if (ngx_http_llm_read_priority(&value[1], &n) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid value \"%V\" of \"llm_priority\", it "
                           "must be between -100 and 100", &value[1]);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* llm_api [MODEL ...] [fallback=MODEL] */

char *
ngx_http_llm_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_loc_conf_t *llcf = conf;

    char                      *rv;
    ngx_str_t                 *value, *name;
    ngx_uint_t                 i;
    ngx_http_core_loc_conf_t  *clcf;

    rv = ngx_http_llm_use(cf, llcf, ngx_http_llm_api_handler);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    rv = ngx_http_llm_once(cf, 1);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    name = ngx_palloc(cf->pool, cf->args->nelts * sizeof(ngx_str_t));
    if (name == NULL) {
        return NGX_CONF_ERROR;
    }

    llcf->names = name;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "fallback=", 9) != 0) {
            name[llcf->nnames++] = value[i];
            continue;
        }

        llcf->fallback_name.data = value[i].data + 9;
        llcf->fallback_name.len = value[i].len - 9;

        if (llcf->fallback_name.len == 0) {
            return "has an empty \"fallback=\" parameter";
        }
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    llcf->prefix = ngx_http_llm_prefix(clcf);

    return NGX_CONF_OK;
}


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

    return ngx_http_llm_use(cf, llcf, ngx_http_llm_metrics_handler);
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


/* check_uses() looks whether there are any models */

char *
ngx_http_llm_use(ngx_conf_t *cf, ngx_http_llm_loc_conf_t *llcf,
    ngx_http_handler_pt handler)
{
    ngx_str_t                  *value;
    ngx_http_core_loc_conf_t   *clcf;
    ngx_http_llm_loc_conf_t   **use;
    ngx_http_llm_main_conf_t   *mcf;

    value = cf->args->elts;
    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->handler == handler) {
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

    llcf->handler = handler;
    llcf->core = clcf;

    clcf->handler = handler;

    return NGX_CONF_OK;
}


/*
 * Bytes of the URI in front of the API's path: the location's prefix, or its
 * part up to "/v1/" if it has that, as in "/v1/chat".  0 for exact, regex and
 * named locations: there the path is looked for in each URI.
 */

static size_t
ngx_http_llm_prefix(ngx_http_core_loc_conf_t *clcf)
{
    u_char  *v1;

#if (NGX_PCRE)
    if (clcf->regex) {
        return 0;
    }
#endif

    if (clcf->exact_match || clcf->named || clcf->name.len == 0) {
        return 0;
    }

    v1 = ngx_strnstr(clcf->name.data, "/v1/", clcf->name.len);

    return v1 ? (size_t) (v1 + 4 - clcf->name.data) : clcf->name.len;
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

    if (llcf->core->handler != llcf->handler) {
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

    if (ngx_http_llm_admin_keep_server_names(cf, llcf) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    ngx_http_llm_want_probes(mcf, llcf);
    ngx_http_llm_check_path(cf, llcf);

    return ngx_http_llm_check_own_aliases(cf, mcf, llcf);
}
