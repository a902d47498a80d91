/*
 * The module of token quotas, and
 *
 *   llm_token_limit zone=NAME [burst=N|$v] [reserve=N] [dry_run];
 *   llm_proxied_usage on | off;
 *
 * A limit may name a zone that is declared later: names are looked up after the
 * whole configuration was read.
 */

#include "http/access/ngx_http_llm_proxied.h"
#include "http/access/ngx_http_llm_quota.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_param.h"
#include "http/request/ngx_http_llm_stage.h"
#include "http/worker/ngx_http_llm_worker.h"


static ngx_int_t ngx_http_llm_add_quotas(ngx_conf_t *cf);
static void *ngx_http_llm_create_quotas_main_conf(ngx_conf_t *cf);
static char *ngx_http_llm_init_quotas_main_conf(ngx_conf_t *cf, void *conf);
static void *ngx_http_llm_create_quotas_loc_conf(ngx_conf_t *cf);
static char *ngx_http_llm_merge_quotas_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_llm_init_quotas(ngx_cycle_t *cycle);
static void ngx_http_llm_exit_quotas(ngx_cycle_t *cycle);
static char *ngx_http_llm_token_limit(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_http_llm_limit_param(ngx_conf_t *cf, ngx_http_llm_limit_t *l,
    ngx_str_t *value);


static ngx_conf_post_t  ngx_http_llm_proxied_post = {
    ngx_http_llm_proxied_is_set
};


static ngx_command_t  ngx_http_llm_quotas_commands[] = {

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

    { ngx_string("llm_proxied_usage"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_quotas_loc_conf_t, proxied),
      &ngx_http_llm_proxied_post },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_llm_quotas_module_ctx = {
    ngx_http_llm_add_quotas,               /* preconfiguration */
    ngx_http_llm_proxied_init,             /* postconfiguration */

    ngx_http_llm_create_quotas_main_conf,  /* create main configuration */
    ngx_http_llm_init_quotas_main_conf,    /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_llm_create_quotas_loc_conf,   /* create location configuration */
    ngx_http_llm_merge_quotas_loc_conf     /* merge location configuration */
};


ngx_module_t  ngx_http_llm_quotas_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_quotas_module_ctx,       /* module context */
    ngx_http_llm_quotas_commands,          /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_llm_init_quotas,              /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_llm_exit_quotas,              /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


#define NGX_HTTP_LLM_PARAM_ERROR(cf, what, value)                             \
    do {                                                                      \
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, what " \"%V\"", value);      \
        return NGX_CONF_ERROR;                                                \
    } while (0)


static ngx_int_t
ngx_http_llm_add_quotas(ngx_conf_t *cf)
{
    if (ngx_http_llm_add_stage(cf, &ngx_http_llm_quota_stage) != NGX_OK
        || ngx_http_llm_add_stage(cf, &ngx_http_llm_quota_head_stage) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_llm_add_stage(cf, &ngx_http_llm_proxied_stage);
}


static void *
ngx_http_llm_create_quotas_main_conf(ngx_conf_t *cf)
{
    ngx_http_llm_quotas_main_conf_t  *qmcf;

    qmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_quotas_main_conf_t));

    if (qmcf == NULL
        || ngx_array_init(&qmcf->quotas, cf->pool, 1,
                          sizeof(ngx_http_llm_quota_t *))
           != NGX_OK
        || ngx_array_init(&qmcf->limits, cf->pool, 1, sizeof(ngx_array_t *))
           != NGX_OK)
    {
        return NULL;
    }

    return qmcf;
}


static void *
ngx_http_llm_create_quotas_loc_conf(ngx_conf_t *cf)
{
    ngx_http_llm_quotas_loc_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_quotas_loc_conf_t));

    if (conf) {
        conf->proxied = NGX_CONF_UNSET;
    }

    return conf;
}


static char *
ngx_http_llm_merge_quotas_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_llm_quotas_loc_conf_t *prev = parent;
    ngx_http_llm_quotas_loc_conf_t *conf = child;

    if (conf->limits == NULL) {
        conf->limits = prev->limits;
    }

    ngx_conf_merge_value(conf->proxied, prev->proxied, 0);

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_token_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_quotas_loc_conf_t *qlcf = conf;

    char                              *rv;
    ngx_str_t                         *value;
    ngx_uint_t                         i;
    ngx_array_t                      **list;
    ngx_http_llm_limit_t              *l, *other;
    ngx_http_llm_quotas_main_conf_t   *qmcf;

    if (qlcf->limits == NULL) {
        qmcf = ngx_http_conf_get_module_main_conf(cf,
                                                  ngx_http_llm_quotas_module);

        qlcf->limits = ngx_array_create(cf->pool, 2,
                                        sizeof(ngx_http_llm_limit_t));
        list = ngx_array_push(&qmcf->limits);

        if (qlcf->limits == NULL || list == NULL) {
            return NGX_CONF_ERROR;
        }

        *list = qlcf->limits;
    }

    l = ngx_array_push(qlcf->limits);
    if (l == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memzero(l, sizeof(ngx_http_llm_limit_t));

    l->reserve = UINT64_MAX;
    l->file = cf->conf_file->file.name;
    l->line = cf->conf_file->line;

    rv = ngx_http_llm_once(cf, 1);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        rv = ngx_http_llm_limit_param(cf, l, &value[i]);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    if (l->zone.len == 0) {
        NGX_HTTP_LLM_PARAM_ERROR(cf, "no zone= in", &cmd->name);
    }

    other = qlcf->limits->elts;

    for (i = 0; i < qlcf->limits->nelts - 1; i++) {
        if (other[i].zone.len == l->zone.len
            && ngx_memcmp(other[i].zone.data, l->zone.data, l->zone.len) == 0)
        {
            return "is duplicate";
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_limit_param(ngx_conf_t *cf, ngx_http_llm_limit_t *l,
    ngx_str_t *value)
{
    ngx_str_t  s;

    if (ngx_http_llm_is_param(value, "zone=", &s)) {
        l->zone = s;
        return NGX_CONF_OK;
    }

    if (ngx_http_llm_is_param(value, "burst=", &s)) {
        return ngx_http_llm_set_amount(cf, &l->burst, 1, &s);
    }

    if (ngx_http_llm_is_param(value, "reserve=", &s)) {
        if (llm_quota_amount((char *) s.data, s.len, &l->reserve) != LLM_OK) {
            NGX_HTTP_LLM_PARAM_ERROR(cf, "not a number of tokens:", value);
        }

        return NGX_CONF_OK;
    }

    if (value->len == 7 && ngx_strncmp(value->data, "dry_run", 7) == 0) {
        l->dry_run = 1;
        return NGX_CONF_OK;
    }

    NGX_HTTP_LLM_PARAM_ERROR(cf, "unknown parameter", value);
}


/* sorts the limits, so that all requests lock zones in the same order */

static char *
ngx_http_llm_find_quotas(ngx_conf_t *cf,
    ngx_http_llm_quotas_main_conf_t *qmcf, ngx_array_t *limits)
{
    ngx_uint_t              i, k;
    ngx_str_t              *name;
    ngx_http_llm_limit_t   *l, swap;
    ngx_http_llm_quota_t  **q;

    l = limits->elts;
    q = qmcf->quotas.elts;

    for (i = 0; i < limits->nelts; i++) {

        for (k = 0; k < qmcf->quotas.nelts; k++) {
            name = &q[k]->shm_zone->shm.name;

            if (name->len == l[i].zone.len
                && ngx_memcmp(name->data, l[i].zone.data, name->len) == 0)
            {
                l[i].quota = q[k];
            }
        }

        if (l[i].quota == NULL) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "there is no \"llm_token_zone\" of the name \"%V\" "
                          "in %V:%ui", &l[i].zone, &l[i].file, l[i].line);
            return NGX_CONF_ERROR;
        }

        if (l[i].burst.set && !l[i].quota->rate.set) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"burst=\" of zone \"%V\", whose "
                          "\"llm_token_zone\" has no \"rate=\", in %V:%ui",
                          &l[i].zone, &l[i].file, l[i].line);
            return NGX_CONF_ERROR;
        }

        for (k = i; k > 0 && l[k].quota->order < l[k - 1].quota->order; k--) {
            swap = l[k];
            l[k] = l[k - 1];
            l[k - 1] = swap;
        }
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_llm_init_quotas_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_llm_quotas_main_conf_t *qmcf = conf;

    char          *rv;
    ngx_uint_t     i;
    ngx_array_t  **lists;

    lists = qmcf->limits.elts;

    for (i = 0; i < qmcf->limits.nelts; i++) {
        rv = ngx_http_llm_find_quotas(cf, qmcf, lists[i]);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


/* gives back what the dead worker that this one replaces had reserved */

static void
ngx_http_llm_sweep_quotas(ngx_http_llm_quotas_main_conf_t *qmcf)
{
    ngx_uint_t              i;
    ngx_http_llm_quota_t  **q;

    q = qmcf->quotas.elts;

    for (i = 0; i < qmcf->quotas.nelts; i++) {
        ngx_http_llm_quota_lock(q[i]);
        ngx_http_llm_account_sweep(q[i], NULL);
        ngx_http_llm_quota_unlock(q[i]);
    }
}


static ngx_int_t
ngx_http_llm_init_quotas(ngx_cycle_t *cycle)
{
    ngx_http_llm_main_conf_t         *mcf;
    ngx_http_llm_quotas_main_conf_t  *qmcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_llm_module);

    if (!ngx_http_llm_is_worker() || mcf == NULL) {
        return NGX_OK;
    }

    qmcf = ngx_http_llm_get_main_conf(mcf, ngx_http_llm_quotas_module);

    ngx_http_llm_sweep_quotas(qmcf);

    if (mcf->worker == NULL) {
        return NGX_OK;
    }

    ngx_http_llm_usage_attach(qmcf);

    return mcf->worker->n == 0 ? ngx_http_llm_usage_init(mcf, qmcf, cycle->log)
                               : NGX_OK;
}


static void
ngx_http_llm_exit_quotas(ngx_cycle_t *cycle)
{
    ngx_http_llm_quotas_main_conf_t  *qmcf;

    qmcf = ngx_http_cycle_get_module_main_conf(cycle,
                                               ngx_http_llm_quotas_module);

    if (qmcf && qmcf->usage) {
        ngx_http_llm_usage_stop(qmcf);
    }
}
