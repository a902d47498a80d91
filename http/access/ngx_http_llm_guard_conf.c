/*
 * The module of llm_guard, its directive, and what nginx -t checks.
 */

#include "http/access/ngx_http_llm_guard.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_param.h"
#include "http/request/ngx_http_llm_stage.h"


#define NGX_HTTP_LLM_GUARD_TIMEOUT  5000


static ngx_int_t ngx_http_llm_add_guard(ngx_conf_t *cf);
static ngx_int_t ngx_http_llm_add_guard_length(ngx_conf_t *cf);
static void *ngx_http_llm_create_guard_main_conf(ngx_conf_t *cf);
static void *ngx_http_llm_create_guard_loc_conf(ngx_conf_t *cf);
static char *ngx_http_llm_merge_guard_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_llm_guard(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_llm_guard_param(ngx_conf_t *cf,
    ngx_http_llm_guard_t *guard, ngx_str_t *value);


static ngx_command_t  ngx_http_llm_guard_commands[] = {

    { ngx_string("llm_guard"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE123,
      ngx_http_llm_guard,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_llm_guard_module_ctx = {
    ngx_http_llm_add_guard,                /* preconfiguration */
    ngx_http_llm_add_guard_length,         /* postconfiguration */

    ngx_http_llm_create_guard_main_conf,   /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_llm_create_guard_loc_conf,    /* create location configuration */
    ngx_http_llm_merge_guard_loc_conf      /* merge location configuration */
};


ngx_module_t  ngx_http_llm_guard_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_guard_module_ctx,        /* module context */
    ngx_http_llm_guard_commands,           /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_llm_add_guard(ngx_conf_t *cf)
{
    return ngx_http_llm_add_stage(cf, &ngx_http_llm_guard_stage);
}


static ngx_int_t
ngx_http_llm_add_guard_length(ngx_conf_t *cf)
{
    ngx_http_handler_pt             *h;
    ngx_http_core_main_conf_t       *cmcf;
    ngx_http_llm_guard_main_conf_t  *gmcf;

    gmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_guard_module);

    if (!gmcf->used) {
        return NGX_OK;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_llm_guard_length;

    return NGX_OK;
}


static void *
ngx_http_llm_create_guard_main_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_guard_main_conf_t));
}


static void *
ngx_http_llm_create_guard_loc_conf(ngx_conf_t *cf)
{
    ngx_http_llm_guard_loc_conf_t  *conf;

    conf = ngx_palloc(cf->pool, sizeof(ngx_http_llm_guard_loc_conf_t));

    if (conf) {
        conf->guard = NGX_CONF_UNSET_PTR;
    }

    return conf;
}


/* ngx_http_llm_module is merged first, so the endpoints of the location are
   known */

static char *
ngx_http_llm_merge_guard_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_llm_guard_loc_conf_t *prev = parent;
    ngx_http_llm_guard_loc_conf_t *conf = child;

    ngx_http_llm_loc_conf_t  *llcf;

    ngx_conf_merge_ptr_value(conf->guard, prev->guard, NULL);

    llcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_llm_module);

    if (conf->guard && ngx_http_llm_is_api(llcf)) {
        ngx_http_llm_uri_warn(cf, &conf->guard->uri, "cannot be a guard");
    }

    return NGX_CONF_OK;
}


/* llm_guard URI [timeout=TIME] [open] | off */

static char *
ngx_http_llm_guard(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_guard_loc_conf_t *glcf = conf;

    char                            *rv;
    ngx_str_t                       *value;
    ngx_uint_t                       i;
    ngx_http_llm_guard_t            *guard;
    ngx_http_llm_guard_main_conf_t  *gmcf;

    if (glcf->guard != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        glcf->guard = NULL;
        return cf->args->nelts == 2 ? NGX_CONF_OK
                                    : "has parameters besides \"off\"";
    }

    guard = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_guard_t));
    if (guard == NULL) {
        return NGX_CONF_ERROR;
    }

    rv = ngx_http_llm_once(cf, 2);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    guard->timeout = NGX_HTTP_LLM_GUARD_TIMEOUT;

    rv = ngx_http_llm_uri_read(cf, cmd, &guard->uri);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    for (i = 2; i < cf->args->nelts; i++) {
        rv = ngx_http_llm_guard_param(cf, guard, &value[i]);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    gmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_guard_module);

    gmcf->used = 1;
    glcf->guard = guard;

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_guard_param(ngx_conf_t *cf, ngx_http_llm_guard_t *guard,
    ngx_str_t *value)
{
    if (ngx_strcmp(value->data, "open") == 0) {
        guard->open = 1;
        return NGX_CONF_OK;
    }

    if (ngx_strncmp(value->data, "timeout=", 8) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "unknown parameter \"%V\"",
                           value);
        return NGX_CONF_ERROR;
    }

    return ngx_http_llm_param_time(cf, value, 8, &guard->timeout);
}
