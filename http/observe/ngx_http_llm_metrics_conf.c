/*
 * The module of metrics, and llm_metrics, its directive; the handler is in
 * ngx_http_llm_metrics.c.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_param.h"
#include "http/observe/ngx_http_llm_metrics.h"
#include "http/request/ngx_http_llm_stage.h"


static ngx_int_t ngx_http_llm_add_metrics(ngx_conf_t *cf);
static ngx_int_t ngx_http_llm_add_log(ngx_conf_t *cf);
static void *ngx_http_llm_create_metrics_main_conf(ngx_conf_t *cf);
static char *ngx_http_llm_init_metrics_main_conf(ngx_conf_t *cf, void *conf);
static void *ngx_http_llm_create_metrics_loc_conf(ngx_conf_t *cf);
static char *ngx_http_llm_merge_metrics_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_llm_init_metrics(ngx_cycle_t *cycle);
static char *ngx_http_llm_metrics(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_llm_metrics_tenants(ngx_conf_t *cf,
    ngx_http_llm_metrics_conf_t *mlcf, ngx_str_t *value);


static const ngx_http_llm_serves_t  ngx_http_llm_metrics_serves = {
    .handler = ngx_http_llm_metrics_handler,
    .scope = LLM_SCOPE_MONITOR
};


static const ngx_http_llm_life_t  ngx_http_llm_metrics_life = {
    .zone = ngx_http_llm_keep_figures,
    .renamed = ngx_http_llm_find_figures
};


static ngx_command_t  ngx_http_llm_metrics_commands[] = {

    { ngx_string("llm_metrics"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE12,
      ngx_http_llm_metrics,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_slo"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_llm_slo,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_llm_metrics_module_ctx = {
    ngx_http_llm_add_metrics,              /* preconfiguration */
    ngx_http_llm_add_log,                  /* postconfiguration */

    ngx_http_llm_create_metrics_main_conf, /* create main configuration */
    ngx_http_llm_init_metrics_main_conf,   /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_llm_create_metrics_loc_conf,  /* create location configuration */
    ngx_http_llm_merge_metrics_loc_conf    /* merge location configuration */
};


ngx_module_t  ngx_http_llm_metrics_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_metrics_module_ctx,      /* module context */
    ngx_http_llm_metrics_commands,         /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_llm_init_metrics,             /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_llm_add_metrics(ngx_conf_t *cf)
{
    if (ngx_http_llm_add_life(cf, &ngx_http_llm_metrics_life) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_llm_add_stage(cf, &ngx_http_llm_metrics_stage);
}


static ngx_int_t
ngx_http_llm_add_log(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_llm_main_conf_t   *mcf;
    ngx_http_core_main_conf_t  *cmcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);

    if (mcf->models.nelts == 0) {
        return NGX_OK;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_LOG_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_llm_log_handler;

    return NGX_OK;
}


static void *
ngx_http_llm_create_metrics_main_conf(ngx_conf_t *cf)
{
    ngx_http_llm_stats_t  *f;

    f = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_stats_t));

    if (f == NULL
        || ngx_array_init(&f->slos, cf->pool, 1,
                          sizeof(ngx_http_llm_slo_t *))
           != NGX_OK)
    {
        return NULL;
    }

    return f;
}


static char *
ngx_http_llm_init_metrics_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);

    return mcf->models.nelts ? ngx_http_llm_add_figures(cf, conf)
                             : NGX_CONF_OK;
}


static void *
ngx_http_llm_create_metrics_loc_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_metrics_conf_t));
}


static char *
ngx_http_llm_merge_metrics_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_llm_metrics_conf_t *prev = parent;
    ngx_http_llm_metrics_conf_t *conf = child;

    ngx_http_llm_loc_conf_t  *llcf;

    if (conf->slos == NULL) {
        conf->slos = prev->slos;
    }

    llcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_llm_module);

    if (llcf->inherited) {
        conf->json = prev->json;
        conf->tenants = prev->tenants;
    }

    return NGX_CONF_OK;
}


/* sets the counter of the worker's writes */

static ngx_int_t
ngx_http_llm_init_metrics(ngx_cycle_t *cycle)
{
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_llm_module);

    if (mcf && mcf->worker) {
        mcf->worker->writes = ngx_http_llm_writes(mcf, mcf->worker->n);
    }

    return NGX_OK;
}


/* llm_metrics [prometheus | json] [tenants=N] */

static char *
ngx_http_llm_metrics(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_metrics_conf_t *mlcf = conf;

    ngx_str_t                *value;
    ngx_uint_t                i;
    ngx_http_llm_loc_conf_t  *llcf;

    value = cf->args->elts;

    if (ngx_http_llm_once(cf, 1) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "tenants=", 8) == 0) {
            if (ngx_http_llm_metrics_tenants(cf, mlcf, &value[i])
                != NGX_CONF_OK)
            {
                return NGX_CONF_ERROR;
            }

        } else if (i == 1 && ngx_strcmp(value[i].data, "json") == 0) {
            mlcf->json = 1;

        } else if (i != 1 || ngx_strcmp(value[i].data, "prometheus") != 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "unknown format \"%V\", it must be "
                               "\"prometheus\" or \"json\"", &value[i]);
            return NGX_CONF_ERROR;
        }
    }

    llcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_llm_module);

    return ngx_http_llm_use(cf, llcf, &ngx_http_llm_metrics_serves);
}


/* of several tenants= the largest is used */

static char *
ngx_http_llm_metrics_tenants(ngx_conf_t *cf,
    ngx_http_llm_metrics_conf_t *mlcf, ngx_str_t *value)
{
    ngx_int_t              n;
    ngx_http_llm_stats_t  *f;

    f = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_metrics_module);
    n = ngx_atoi(value->data + 8, value->len - 8);

    if (n == NGX_ERROR || n == 0 || n > NGX_HTTP_LLM_MAX_TENANTS) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid number of tenants \"%V\", it must be "
                           "from 1 to %d", value, NGX_HTTP_LLM_MAX_TENANTS);
        return NGX_CONF_ERROR;
    }

    mlcf->tenants = n;
    f->ntenants = ngx_max(f->ntenants, (ngx_uint_t) n);

    return NGX_CONF_OK;
}
