/*
 * llm_health: may a balancer send requests, and does the engine live?  Every
 * worker gives the same answer, made from the shared zone.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/conf/ngx_http_llm_param.h"
#include "http/observe/ngx_http_llm_health.h"
#include "http/reply/ngx_http_llm_reply.h"


static ngx_int_t ngx_http_llm_add_health(ngx_conf_t *cf);
static void *ngx_http_llm_create_health_main_conf(ngx_conf_t *cf);
static void *ngx_http_llm_create_health_loc_conf(ngx_conf_t *cf);
static char *ngx_http_llm_merge_health_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_llm_init_health(ngx_cycle_t *cycle);
static char *ngx_http_llm_health(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_llm_probe_prompt(ngx_conf_t *cf,
    ngx_http_llm_health_conf_t *hlcf, ngx_str_t *value);
static ngx_int_t ngx_http_llm_health_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_llm_health_body(ngx_http_request_t *r,
    llm_buf_t *body, int *ready);
static ngx_uint_t ngx_http_llm_draining(ngx_http_llm_main_conf_t *mcf);


static const ngx_http_llm_serves_t  ngx_http_llm_health_serves = {
    .handler = ngx_http_llm_health_handler,
    .scope = LLM_SCOPE_MONITOR,
    .check = ngx_http_llm_want_probes
};


static const ngx_http_llm_life_t  ngx_http_llm_health_life = {
    .zone = ngx_http_llm_create_probed,
    .quit = ngx_http_llm_stop_probes
};


static ngx_command_t  ngx_http_llm_health_commands[] = {

    { ngx_string("llm_health"),
      NGX_HTTP_LOC_CONF|NGX_CONF_ANY,
      ngx_http_llm_health,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_llm_health_module_ctx = {
    ngx_http_llm_add_health,               /* preconfiguration */
    NULL,                                  /* postconfiguration */

    ngx_http_llm_create_health_main_conf,  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_llm_create_health_loc_conf,   /* create location configuration */
    ngx_http_llm_merge_health_loc_conf     /* merge location configuration */
};


ngx_module_t  ngx_http_llm_health_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_health_module_ctx,       /* module context */
    ngx_http_llm_health_commands,          /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_llm_init_health,              /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_llm_add_health(ngx_conf_t *cf)
{
    return ngx_http_llm_add_life(cf, &ngx_http_llm_health_life);
}


static void *
ngx_http_llm_create_health_main_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_health_main_conf_t));
}


static void *
ngx_http_llm_create_health_loc_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_health_conf_t));
}


static char *
ngx_http_llm_merge_health_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_llm_health_conf_t *prev = parent;
    ngx_http_llm_health_conf_t *conf = child;

    ngx_http_llm_loc_conf_t  *llcf;

    llcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_llm_module);

    if (llcf->inherited) {
        *conf = *prev;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_llm_init_health(ngx_cycle_t *cycle)
{
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_llm_module);

    if (mcf == NULL || mcf->worker == NULL || mcf->worker->n != 0) {
        return NGX_OK;
    }

    return ngx_http_llm_init_probes(mcf, cycle->log);
}


/* llm_health [live | ready] [MODEL ...] [probe=TIME] [prompt=N] */

static char *
ngx_http_llm_health(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_health_conf_t *hlcf = conf;

    char                     *rv;
    ngx_str_t                *value;
    ngx_uint_t                i, ready;
    ngx_http_llm_loc_conf_t  *llcf;

    llcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_llm_module);

    rv = ngx_http_llm_use(cf, llcf, &ngx_http_llm_health_serves);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    rv = ngx_http_llm_once(cf, 1);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    value = cf->args->elts;
    ready = 0;
    i = 1;

    if (cf->args->nelts > 1 && ngx_strcmp(value[1].data, "live") == 0) {

        if (cf->args->nelts > 2) {
            return "with \"live\" has no other parameters";
        }

        hlcf->rule = LLM_HEALTH_LIVE;
        return NGX_CONF_OK;
    }

    if (cf->args->nelts > 1 && ngx_strcmp(value[1].data, "ready") == 0) {
        ready = 1;
        i = 2;
    }

    llcf->names = ngx_palloc(cf->pool, cf->args->nelts * sizeof(ngx_str_t));
    if (llcf->names == NULL) {
        return NGX_CONF_ERROR;
    }

    for ( /* void */ ; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "probe=", 6) == 0) {
            rv = ngx_http_llm_param_time(cf, &value[i], 6, &hlcf->probe);

        } else if (ngx_strncmp(value[i].data, "prompt=", 7) == 0) {
            rv = ngx_http_llm_probe_prompt(cf, hlcf, &value[i]);

        } else {
            llcf->names[llcf->nnames++] = value[i];
        }

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    if (hlcf->prompt && hlcf->probe == 0) {
        return "has \"prompt\" without \"probe\"";
    }

    if (ready) {
        hlcf->rule = llcf->nnames ? LLM_HEALTH_ALL : LLM_HEALTH_ANY;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_probe_prompt(ngx_conf_t *cf, ngx_http_llm_health_conf_t *hlcf,
    ngx_str_t *value)
{
    uint64_t  n;

    if (llm_count((char *) value->data + 7, value->len - 7, 65536, &n)
        != LLM_OK
        || n == 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid number of tokens \"%V\" of "
                           "\"llm_health\", it must be between 1 and 65536",
                           value);
        return NGX_CONF_ERROR;
    }

    hlcf->prompt = n;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_llm_health_handler(ngx_http_request_t *r)
{
    int                        ready;
    ngx_int_t                  rc;
    llm_buf_t                  body;
    llm_err_t                  err;
    ngx_http_llm_main_conf_t  *mcf;

    rc = ngx_http_llm_get_only(r);
    if (rc != NGX_DECLINED) {
        return rc;
    }

    llm_buf_init(&body, 0);
    ready = 0;

    /* wakes the engine, so that the next request here sees it if an idle engine
       has stopped */

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);
    llm_client_wake(mcf->worker->client);
    ngx_http_llm_refresh_models(mcf);

    if (ngx_http_llm_health_body(r, &body, &ready) != NGX_OK) {
        llm_buf_free(&body);
        llm_fail(&err, "No memory is left for this answer.");
        return ngx_http_llm_send_error(r, &err, 0);
    }

    if (!ready
        && ngx_http_llm_add_header(r, "Retry-After", "1", 1) != NGX_OK)
    {
        llm_buf_free(&body);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_llm_send_body(r, ready ? NGX_HTTP_OK
                                           : NGX_HTTP_SERVICE_UNAVAILABLE,
                                  "application/json", &body);
}


static ngx_int_t
ngx_http_llm_health_body(ngx_http_request_t *r, llm_buf_t *body, int *ready)
{
    ngx_uint_t                   i;
    const char                  *ill[LLM_MAX_MODELS];
    llm_api_conf_t               conf;
    llm_api_health_t             health;
    ngx_http_llm_loc_conf_t     *llcf;
    ngx_http_llm_main_conf_t    *mcf;
    ngx_http_llm_health_conf_t  *hlcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);
    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);
    hlcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_health_module);

    ngx_memzero(&conf, sizeof(llm_api_conf_t));

    conf.models = mcf->api_models;
    conf.n_models = mcf->models.nelts;
    conf.allowed = llcf->allowed;
    conf.fallback = -1;
    conf.cap = -1;
    conf.now = ngx_time();

    health.rule = hlcf->rule;
    health.draining = ngx_http_llm_draining(mcf);
    health.ill = ill;

    for (i = 0; i < mcf->models.nelts; i++) {
        ill[i] = hlcf->probe ? ngx_http_llm_probe_result(mcf, i) : NULL;
    }

    return llm_api_health_body(mcf->zone, &conf, &health, body, ready)
           == LLM_OK ? NGX_OK : NGX_ERROR;
}


/* after QUIT, a worker serves requests on open connections; after a reload new
   workers go on */

static ngx_uint_t
ngx_http_llm_draining(ngx_http_llm_main_conf_t *mcf)
{
    return ngx_exiting && !llm_zone_replaced(mcf->zone, mcf->engines->data);
}
