/*
 * The nginx module that serves large language models: its directives,
 * contexts and life cycle.  What they do is in the files of http/; see
 * http/ngx_http_llm_module.h.
 *
 * There are three modules in the shared object.  ngx_llm_module is of the
 * core type only because the number of workers, and with it the size of the
 * shared memory, is not known before the whole configuration is read.
 * ngx_http_llm_filter_module adds headers (http/reply/ngx_http_llm_filter.c).
 */

#include "http/admin/ngx_http_llm_admin.h"
#include "http/balance/ngx_http_llm_route.h"


static void *ngx_http_llm_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_llm_init_main_conf(ngx_conf_t *cf, void *conf);
static ngx_int_t ngx_http_llm_postconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_llm_add_handlers(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);
static void *ngx_http_llm_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_llm_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_llm_init_conf(ngx_cycle_t *cycle, void *conf);


static ngx_http_llm_size_min_t  ngx_http_llm_shared_memory_min = {
    ngx_http_llm_check_size, 256 * 1024, 1
};

static ngx_http_llm_size_min_t  ngx_http_llm_stream_buffer_min = {
    ngx_http_llm_check_size, 4096, 0
};

static ngx_conf_post_t  ngx_http_llm_time_bound = {
    ngx_http_llm_check_time
};


/* the subjects that take part in a request's life, in the order in which they
   are called at each stage */

ngx_http_llm_stage_t  *ngx_http_llm_stages[] = {
    &ngx_http_llm_key_stage,
    &ngx_http_llm_metrics_stage,
    &ngx_http_llm_idem_stage,
    &ngx_http_llm_quota_stage,
    &ngx_http_llm_guard_stage,
    &ngx_http_llm_capture_stage,
    &ngx_http_llm_sunset_stage,
    NULL
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

    { ngx_string("llm_idempotency"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE12,
      ngx_http_llm_idempotency,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_api"),
      NGX_HTTP_LOC_CONF|NGX_HTTP_LIF_CONF|NGX_CONF_ANY,
      ngx_http_llm_api,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_health"),
      NGX_HTTP_LOC_CONF|NGX_CONF_ANY,
      ngx_http_llm_health,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_metrics"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE12,
      ngx_http_llm_metrics,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_admin"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1234,
      ngx_http_llm_admin,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_slo"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_llm_slo,
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

    { ngx_string("llm_capture"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_http_llm_capture,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_api_keys"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_llm_api_keys,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_alias"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE2,
      ngx_http_llm_alias,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_token_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_2MORE,
      ngx_http_llm_token_zone,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_token_limit"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_llm_token_limit,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_guard"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE123,
      ngx_http_llm_guard,
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

    { ngx_string("llm_route"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_llm_route_bytes,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_upstream"),
      NGX_HTTP_UPS_CONF|NGX_CONF_NOARGS,
      ngx_http_llm_upstream,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_llm_module_ctx = {
    ngx_http_llm_add_variables,            /* preconfiguration */
    ngx_http_llm_postconfiguration,        /* postconfiguration */

    ngx_http_llm_create_main_conf,         /* create main configuration */
    ngx_http_llm_init_main_conf,           /* init main configuration */

    ngx_http_llm_create_srv_conf,          /* create server configuration */
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
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_http_llm_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_llm_main_conf_t  *mcf;

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
        || ngx_array_init(&mcf->keyfiles, cf->pool, 1,
                          sizeof(ngx_http_llm_keyfile_t *))
           != NGX_OK
        || ngx_array_init(&mcf->aliases, cf->pool, 1,
                          sizeof(ngx_http_llm_alias_t *))
           != NGX_OK
        || ngx_array_init(&mcf->quotas, cf->pool, 1,
                          sizeof(ngx_http_llm_quota_t *))
           != NGX_OK
        || ngx_array_init(&mcf->limits, cf->pool, 1, sizeof(ngx_array_t *))
           != NGX_OK
        || ngx_http_llm_create_figures(cf, mcf) != NGX_OK)
    {
        return NULL;
    }

    ngx_http_llm_init_stages();

    mcf->cycle = cf->cycle;
    mcf->queue = NGX_CONF_UNSET;
    mcf->queue_timeout = NGX_CONF_UNSET_MSEC;
    mcf->queue_memory = NGX_CONF_UNSET_SIZE;
    mcf->shared_memory = NGX_CONF_UNSET_SIZE;
    mcf->idem_size = NGX_CONF_UNSET_SIZE;
    mcf->idem_valid = 600;

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
    ngx_conf_init_size_value(mcf->idem_size, 4 * 1024 * 1024);

    rv = ngx_http_llm_add_places(cf, mcf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    rmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_filter_module);

    rmcf->on = (mcf->models.nelts != 0);
    rmcf->came = ngx_http_llm_is_counted;
    rmcf->failed = ngx_http_llm_failed_reply;
    rmcf->headers = ngx_http_llm_on_headers;

    rv = ngx_http_llm_check_quotas(cf, mcf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    rv = ngx_http_llm_check_aliases(cf, mcf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    rv = ngx_http_llm_check_uses(cf, mcf);
    if (rv != NGX_CONF_OK || mcf->models.nelts == 0) {
        return rv;
    }

    rv = ngx_http_llm_check_models(cf, mcf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    rv = ngx_http_llm_check_admin(cf, mcf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    rv = ngx_http_llm_add_store(cf, mcf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    rv = ngx_http_llm_add_figures(cf, mcf);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    return ngx_http_llm_add_zone(cf, mcf);
}


static ngx_int_t
ngx_http_llm_postconfiguration(ngx_conf_t *cf)
{
    ngx_str_t                   key = ngx_string("http_idempotency_key");
    ngx_str_t                   api_key = ngx_string("http_x_api_key");
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

    if (ngx_http_llm_check_upstreams(cf) != NGX_OK) {
        return NGX_ERROR;
    }

    mcf->idem_header = ngx_http_get_variable_index(cf, &key);
    mcf->api_key = ngx_http_get_variable_index(cf, &api_key);

    if (mcf->idem_header == NGX_ERROR || mcf->api_key == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (mcf->keyfiles.nelts && ngx_http_llm_add_access(cf) != NGX_OK) {
        return NGX_ERROR;
    }

    if (mcf->models.nelts == 0) {
        return NGX_OK;
    }

    return ngx_http_llm_add_handlers(cf, mcf);
}


static ngx_int_t
ngx_http_llm_add_handlers(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf)
{
    ngx_uint_t                  i;
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    static const struct {
        ngx_uint_t           phase;
        ngx_http_handler_pt  handler;
        ngx_uint_t           guards;            /* only where there are some */
    } handlers[] = {
        { NGX_HTTP_PREACCESS_PHASE, ngx_http_llm_guard_length, 1 },
        { NGX_HTTP_REWRITE_PHASE, ngx_http_llm_post_action_handler, 0 },
        { NGX_HTTP_REWRITE_PHASE, ngx_http_llm_admin_post_action, 0 },
        { NGX_HTTP_REWRITE_PHASE, ngx_http_llm_count_handler, 0 },
        { NGX_HTTP_PREACCESS_PHASE, ngx_http_llm_count_handler, 0 },
        { NGX_HTTP_LOG_PHASE, ngx_http_llm_log_handler, 0 }
    };

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    for (i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {

        if (handlers[i].guards && !mcf->guards) {
            continue;
        }

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

    conf->keyfile = NGX_CONF_UNSET_PTR;
    conf->guard = NGX_CONF_UNSET_PTR;
    conf->timeout = NGX_CONF_UNSET_MSEC;
    conf->heartbeat = NGX_CONF_UNSET_MSEC;
    conf->stream_buffer = NGX_CONF_UNSET_SIZE;
    conf->ignore_client_abort = NGX_CONF_UNSET;
    conf->capture = NGX_CONF_UNSET_SIZE;
    conf->route_message = NGX_CONF_UNSET_SIZE;
    conf->route_prompt = NGX_CONF_UNSET_SIZE;

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
    ngx_conf_merge_size_value(conf->capture, prev->capture, 0);

    ngx_http_llm_merge_route(prev, conf);

    ngx_conf_merge_ptr_value(conf->keyfile, prev->keyfile, NULL);

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

    if (conf->limits == NULL) {
        conf->limits = prev->limits;
    }

    if (conf->slos == NULL) {
        conf->slos = prev->slos;
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
        conf->serves = prev->serves;
        conf->metrics_json = prev->metrics_json;
        conf->tenants = prev->tenants;
        conf->health = prev->health;
        conf->probe = prev->probe;
        conf->probe_prompt = prev->probe_prompt;
        conf->allowed = prev->allowed;
        conf->fallback = prev->fallback;
        conf->prefix = prev->prefix;
        conf->server_names = prev->server_names;
    }

    if (ngx_http_llm_merge_guard(cf, prev, conf) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
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
