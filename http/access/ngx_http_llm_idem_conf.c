/*
 * The module of llm_idempotency, its directive and its memory.
 */

#include "http/access/ngx_http_llm_idempotency.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_param.h"
#include "http/request/ngx_http_llm_stage.h"


static ngx_int_t ngx_http_llm_add_idem(ngx_conf_t *cf);
static ngx_int_t ngx_http_llm_idem_find_header(ngx_conf_t *cf);
static void *ngx_http_llm_create_idem_conf(ngx_conf_t *cf);
static char *ngx_http_llm_init_idem_conf(ngx_conf_t *cf, void *conf);
static char *ngx_http_llm_idempotency(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


static ngx_command_t  ngx_http_llm_idempotency_commands[] = {

    { ngx_string("llm_idempotency"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE12,
      ngx_http_llm_idempotency,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_llm_idempotency_module_ctx = {
    ngx_http_llm_add_idem,                 /* preconfiguration */
    ngx_http_llm_idem_find_header,         /* postconfiguration */

    ngx_http_llm_create_idem_conf,         /* create main configuration */
    ngx_http_llm_init_idem_conf,           /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_llm_idempotency_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_idempotency_module_ctx,  /* module context */
    ngx_http_llm_idempotency_commands,     /* module directives */
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
ngx_http_llm_add_idem(ngx_conf_t *cf)
{
    return ngx_http_llm_add_stage(cf, &ngx_http_llm_idem_stage);
}


static ngx_int_t
ngx_http_llm_idem_find_header(ngx_conf_t *cf)
{
    ngx_str_t                  name = ngx_string("http_idempotency_key");
    ngx_http_llm_idem_conf_t  *imcf;

    imcf = ngx_http_conf_get_module_main_conf(cf,
                                              ngx_http_llm_idempotency_module);

    imcf->header = ngx_http_get_variable_index(cf, &name);

    return imcf->header == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


static void *
ngx_http_llm_create_idem_conf(ngx_conf_t *cf)
{
    ngx_http_llm_idem_conf_t  *imcf;

    imcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_idem_conf_t));

    if (imcf) {
        imcf->size = NGX_CONF_UNSET_SIZE;
        imcf->valid = 600;
    }

    return imcf;
}


static char *
ngx_http_llm_init_idem_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_llm_idem_conf_t *imcf = conf;

    ngx_str_t                  name = ngx_string("llm_idempotency");
    ngx_http_llm_main_conf_t  *mcf;

    ngx_conf_init_size_value(imcf->size, 4 * 1024 * 1024);

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);

    if (imcf->size == 0 || mcf->models.nelts == 0) {
        return NGX_CONF_OK;
    }

    imcf->zone = ngx_shared_memory_add(cf, &name, imcf->size,
                                       &ngx_http_llm_idempotency_module);
    if (imcf->zone == NULL) {
        return NGX_CONF_ERROR;
    }

    imcf->zone->init = ngx_http_llm_init_store;

    return NGX_CONF_OK;
}


/* llm_idempotency SIZE [valid=TIME] | off */

static char *
ngx_http_llm_idempotency(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_idem_conf_t *imcf = conf;

    char       *rv;
    ngx_int_t   valid;
    ngx_str_t  *value, s;

    if (imcf->size != NGX_CONF_UNSET_SIZE) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        imcf->size = 0;
        return cf->args->nelts == 2 ? NGX_CONF_OK
                                    : "has parameters besides \"off\"";
    }

    rv = ngx_http_llm_param_size(cf, &value[1], 0, 16 * ngx_pagesize,
                                 ngx_http_llm_machine_memory(),
                                 &imcf->size);

    if (rv != NGX_CONF_OK || cf->args->nelts == 2) {
        return rv;
    }

    if (ngx_strncmp(value[2].data, "valid=", 6) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "unknown parameter \"%V\"",
                           &value[2]);
        return NGX_CONF_ERROR;
    }

    s.data = value[2].data + 6;
    s.len = value[2].len - 6;
    valid = ngx_parse_time(&s, 1);

    if (valid < 1 || valid > NGX_HTTP_LLM_MOST_S) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid time \"%V\" of \"llm_idempotency\", it "
                           "must be between 1s and 365d", &value[2]);
        return NGX_CONF_ERROR;
    }

    imcf->valid = valid;

    return NGX_CONF_OK;
}
