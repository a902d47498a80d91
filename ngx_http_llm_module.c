/*
 * The nginx module that serves large language models: the directives for
 * models and the API, and the configuration that all subjects share.
 *
 * The subjects (keys, quotas, metrics, ...) are modules of their own, in the
 * folders of http/; `config` lists them.  ngx_http_llm_module is the first: it
 * sets what a location serves before the others merge their configurations of
 * that location.  ngx_llm_module is the last.  It is a core module because the
 * size of the shared memory depends on the number of workers, which is known
 * only when the whole configuration is read.  It starts the engine after all
 * other modules of a worker have begun, and stops it after they have ended.
 */

#include "http/conf/ngx_http_llm_alias.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/conf/ngx_http_llm_param.h"
#include "http/observe/ngx_http_llm_variables.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"
#include "http/worker/ngx_http_llm_worker.h"


static void *ngx_http_llm_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_llm_init_main_conf(ngx_conf_t *cf, void *conf);
static ngx_int_t ngx_http_llm_postconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_llm_add_handlers(ngx_conf_t *cf);
static void *ngx_http_llm_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_llm_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_llm_init_conf(ngx_cycle_t *cycle, void *conf);


static ngx_http_llm_size_min_t  ngx_http_llm_shared_memory_min = {
    ngx_http_llm_check_size, 256 * 1024, 1
};

static ngx_http_llm_size_min_t  ngx_http_llm_media_memory_min = {
    ngx_http_llm_check_size, 1024 * 1024, 1
};

static ngx_http_llm_size_min_t  ngx_http_llm_stream_buffer_min = {
    ngx_http_llm_check_size, 4096, 0
};

static ngx_conf_post_t  ngx_http_llm_time_bound = {
    ngx_http_llm_check_time
};


static ngx_command_t  ngx_http_llm_commands[] = {

    { ngx_string("llm_model"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_2MORE,
      ngx_http_llm_model,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_queue"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_1MORE,
      ngx_http_llm_queue,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_shared_memory"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_llm_main_conf_t, shared_memory),
      &ngx_http_llm_shared_memory_min },

    { ngx_string("llm_media_memory"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_MAIN_CONF_OFFSET,
      offsetof(ngx_http_llm_main_conf_t, media_memory),
      &ngx_http_llm_media_memory_min },

    { ngx_string("llm_api"),
      NGX_HTTP_LOC_CONF|NGX_HTTP_LIF_CONF|NGX_CONF_ANY,
      ngx_http_llm_api,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_max_tokens"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_llm_max_tokens,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_defaults"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_llm_defaults,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_timeout"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_loc_conf_t, timeout),
      &ngx_http_llm_time_bound },

    { ngx_string("llm_heartbeat"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_loc_conf_t, heartbeat),
      &ngx_http_llm_time_bound },

    { ngx_string("llm_stream_buffer"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_loc_conf_t, stream_buffer),
      &ngx_http_llm_stream_buffer_min },

    { ngx_string("llm_ignore_client_abort"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_loc_conf_t, ignore_client_abort),
      NULL },

    { ngx_string("llm_alias"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE2,
      ngx_http_llm_alias,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_tenant"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_llm_tenant,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_priority"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_llm_priority,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_loc_conf_t, priority),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_llm_module_ctx = {
    ngx_http_llm_add_observe,              /* preconfiguration */
    ngx_http_llm_postconfiguration,        /* postconfiguration */

    ngx_http_llm_create_main_conf,         /* create main configuration */
    ngx_http_llm_init_main_conf,           /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_llm_create_loc_conf,          /* create location configuration */
    ngx_http_llm_merge_loc_conf            /* merge location configuration */
};


ngx_module_t  ngx_http_llm_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_module_ctx,              /* module context */
    ngx_http_llm_commands,                 /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_llm_init_module,              /* init module */
    ngx_http_llm_init_process,             /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_llm_exit_process,             /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_core_module_t  ngx_llm_module_ctx = {
    ngx_string("llm"),
    NULL,
    ngx_llm_init_conf
};


ngx_module_t  ngx_llm_module = {
    NGX_MODULE_V1,
    &ngx_llm_module_ctx,                   /* module context */
    NULL,                                  /* module directives */
    NGX_CORE_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_llm_init_engine,              /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_llm_exit_engine,              /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_http_llm_create_main_conf(ngx_conf_t *cf)
{
    void                      **end;
    ngx_http_llm_main_conf_t   *mcf;

    mcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_main_conf_t));
    if (mcf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&mcf->models, cf->pool, 4,
                       sizeof(ngx_http_llm_model_t))
        != NGX_OK
        || ngx_array_init(&mcf->uses, cf->pool, 4,
                          sizeof(ngx_http_llm_loc_conf_t *))
           != NGX_OK
        || ngx_array_init(&mcf->aliases, cf->pool, 1,
                          sizeof(ngx_http_llm_alias_t *))
           != NGX_OK
        || ngx_array_init(&mcf->files, cf->pool, 4,
                          sizeof(ngx_http_llm_used_file_t))
           != NGX_OK
        || ngx_array_init(&mcf->lives, cf->pool, 4,
                          sizeof(ngx_http_llm_life_t *))
           != NGX_OK
        || ngx_array_init(&mcf->stages, cf->pool, 8,
                          sizeof(ngx_http_llm_stage_t *))
           != NGX_OK)
    {
        return NULL;
    }

    end = ngx_array_push(&mcf->stages);
    if (end == NULL) {
        return NULL;
    }

    *end = NULL;

    mcf->requests = &ngx_http_llm_requests;
    mcf->cycle = cf->cycle;
    mcf->queue = NGX_CONF_UNSET;
    mcf->queue_timeout = NGX_CONF_UNSET_MSEC;
    mcf->queue_memory = NGX_CONF_UNSET_SIZE;
    mcf->shared_memory = NGX_CONF_UNSET_SIZE;
    mcf->media_memory = NGX_CONF_UNSET_SIZE;

    return mcf;
}


static char *
ngx_http_llm_init_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_llm_main_conf_t *mcf = conf;

    char                            *rv;
    ngx_http_llm_reply_main_conf_t  *rmcf;

    ngx_conf_init_value(mcf->queue, 64);
    ngx_conf_init_msec_value(mcf->queue_timeout, 60000);
    ngx_conf_init_size_value(mcf->queue_memory, 256 * 1024 * 1024);
    ngx_conf_init_size_value(mcf->shared_memory, 8 * 1024 * 1024);
    ngx_conf_init_size_value(mcf->media_memory, 128 * 1024 * 1024);

    /* the last stage: all modules have added theirs */

    if (ngx_http_llm_add_stage(cf, &ngx_http_llm_leaving_stage) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    rv = ngx_http_llm_add_places(cf, mcf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    rmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_filter_module);

    rmcf->on |= (mcf->models.nelts != 0);
    rmcf->came = ngx_http_llm_is_counted;
    rmcf->failed = ngx_http_llm_failed_reply;
    rmcf->headers = ngx_http_llm_on_headers;

    rv = ngx_http_llm_check_aliases(cf, mcf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    rv = ngx_http_llm_check_uses(cf, mcf);
    if (rv != NGX_CONF_OK || mcf->models.nelts == 0) {
        return rv;
    }

    return ngx_http_llm_check_models(cf, mcf);
}


/* other modules have added their zones by now, so nginx initializes those
   first */

static ngx_int_t
ngx_http_llm_postconfiguration(ngx_conf_t *cf)
{
    ngx_uint_t                  i;
    ngx_http_variable_t        *v;
    ngx_http_llm_main_conf_t   *mcf;
    ngx_http_core_main_conf_t  *cmcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);
    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    v = cmcf->variables.elts;

    for (i = 0; i < cmcf->variables.nelts; i++) {
        if ((v[i].name.len == 12
             && ngx_strncmp(v[i].name.data, "request_body", 12) == 0)
            || (v[i].name.len == 13
                && ngx_strncmp(v[i].name.data, "llm_route_key", 13) == 0))
        {
            mcf->keep_bodies = 1;
        }

        if (v[i].name.len == 18
            && ngx_strncmp(v[i].name.data, "llm_predicted_ttft", 18) == 0)
        {
            mcf->bounds.forecast = 1;
        }
    }

    if (mcf->models.nelts == 0) {
        return NGX_OK;
    }

    if (ngx_http_llm_add_zone(cf, mcf) != NGX_CONF_OK) {
        return NGX_ERROR;
    }

    return ngx_http_llm_add_handlers(cf);
}


static ngx_int_t
ngx_http_llm_add_handlers(ngx_conf_t *cf)
{
    ngx_uint_t                  i;
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    static const struct {
        ngx_uint_t           phase;
        ngx_http_handler_pt  handler;
    } handlers[] = {
        { NGX_HTTP_REWRITE_PHASE, ngx_http_llm_post_action_handler },
        { NGX_HTTP_REWRITE_PHASE, ngx_http_llm_count_handler },
        { NGX_HTTP_PREACCESS_PHASE, ngx_http_llm_count_handler }
    };

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    for (i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
        h = ngx_array_push(&cmcf->phases[handlers[i].phase].handlers);
        if (h == NULL) {
            return NGX_ERROR;
        }

        *h = handlers[i].handler;
    }

    return NGX_OK;
}


static void *
ngx_http_llm_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_llm_loc_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->timeout = NGX_CONF_UNSET_MSEC;
    conf->heartbeat = NGX_CONF_UNSET_MSEC;
    conf->stream_buffer = NGX_CONF_UNSET_SIZE;
    conf->ignore_client_abort = NGX_CONF_UNSET;

    return conf;
}


static char *
ngx_http_llm_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_llm_loc_conf_t *prev = parent;
    ngx_http_llm_loc_conf_t *conf = child;

    ngx_http_core_loc_conf_t  *clcf;

    ngx_conf_merge_msec_value(conf->timeout, prev->timeout, 600000);
    ngx_conf_merge_msec_value(conf->heartbeat, prev->heartbeat, 15000);
    ngx_conf_merge_size_value(conf->stream_buffer, prev->stream_buffer,
                              256 * 1024);
    ngx_conf_merge_value(conf->ignore_client_abort,
                         prev->ignore_client_abort, 0);

    if (ngx_http_llm_merge_aliases(cf, prev, conf) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    if (conf->max_tokens.set == 0 && conf->max_prompt.set == 0) {
        conf->max_tokens = prev->max_tokens;
        conf->max_prompt = prev->max_prompt;
    }

    if (conf->preset == NULL) {
        conf->preset = prev->preset;
    }

    if (conf->priority == NULL) {
        conf->priority = prev->priority;
    }

    if (conf->tenant == NULL) {
        conf->tenant = prev->tenant;
        conf->weight = prev->weight;
    }

    /* "if" and "limit_except" blocks inherit the handler of their location */

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->noname && clcf->handler == NULL && prev->serves) {
        clcf->handler = prev->serves->handler;
        conf->inherited = 1;
        conf->core = clcf;
        conf->serves = prev->serves;
        conf->allowed = prev->allowed;
        conf->fallback = prev->fallback;
        conf->prefix = prev->prefix;
    }

    ngx_http_llm_check_mirror(cf, prev, conf);

    return NGX_CONF_OK;
}


static char *
ngx_llm_init_conf(ngx_cycle_t *cycle, void *conf)
{
    if (ngx_http_llm_check_access(cycle) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return ngx_http_llm_size_zone(cycle);
}
