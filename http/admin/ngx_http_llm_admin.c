/*
 * llm_admin [state=FILE] [models=DIR] [new=N] [like=MODEL]: loads, adds and
 * removes models, sets aliases and shows usage over HTTP.  This file has the
 * directive and its checks.
 *
 * The location decides who has access, by allow, deny or auth_basic.  If it has
 * llm_api_keys, a key needs the scope admin, which its line in the file must
 * name.
 */

#include "http/admin/ngx_http_llm_admin.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/conf/ngx_http_llm_param.h"


static ngx_int_t ngx_http_llm_add_admin(ngx_conf_t *cf);
static ngx_int_t ngx_http_llm_add_admin_handler(ngx_conf_t *cf);
static void *ngx_http_llm_create_admin_main_conf(ngx_conf_t *cf);
static char *ngx_http_llm_init_admin_main_conf(ngx_conf_t *cf, void *conf);
static void *ngx_http_llm_create_admin_loc_conf(ngx_conf_t *cf);
static char *ngx_http_llm_merge_admin_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_llm_init_admin_process(ngx_cycle_t *cycle);
static void ngx_http_llm_exit_admin_process(ngx_cycle_t *cycle);
static char *ngx_http_llm_admin(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_uint_t ngx_http_llm_admin_replaces(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_uint_t i, uint32_t *media);
static ngx_http_llm_admin_t *ngx_http_llm_admin_conf(ngx_conf_t *cf,
    ngx_http_llm_admin_main_conf_t *amcf);
static char *ngx_http_llm_admin_know_models(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_admin_t *admin);
static ngx_uint_t ngx_http_llm_admin_has_prefix(
    ngx_http_core_loc_conf_t *clcf);


static const ngx_http_llm_serves_t  ngx_http_llm_admin_serves = {
    .handler = ngx_http_llm_admin_handler,
    .scope = LLM_SCOPE_ADMIN,
    .check = ngx_http_llm_admin_keep_server_names,
    .main = 1
};


static const ngx_http_llm_life_t  ngx_http_llm_admin_life = {
    .each = sizeof(ngx_atomic_t) + sizeof(llm_override_t)
            + sizeof(llm_admin_name_t),
    .zone = ngx_http_llm_admin_zone,
    .renamed = ngx_http_llm_admin_renamed,
    .replaces = ngx_http_llm_admin_replaces,
    .aliases = ngx_http_llm_admin_aliases
};


static ngx_command_t  ngx_http_llm_admin_commands[] = {

    { ngx_string("llm_admin"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1234,
      ngx_http_llm_admin,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_llm_admin_module_ctx = {
    ngx_http_llm_add_admin,                /* preconfiguration */
    ngx_http_llm_add_admin_handler,        /* postconfiguration */

    ngx_http_llm_create_admin_main_conf,   /* create main configuration */
    ngx_http_llm_init_admin_main_conf,     /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_llm_create_admin_loc_conf,    /* create location configuration */
    ngx_http_llm_merge_admin_loc_conf      /* merge location configuration */
};


ngx_module_t  ngx_http_llm_admin_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_admin_module_ctx,        /* module context */
    ngx_http_llm_admin_commands,           /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    ngx_http_llm_init_admin_process,       /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_llm_exit_admin_process,       /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_llm_add_admin(ngx_conf_t *cf)
{
    return ngx_http_llm_add_life(cf, &ngx_http_llm_admin_life);
}


static ngx_int_t
ngx_http_llm_add_admin_handler(ngx_conf_t *cf)
{
    ngx_http_handler_pt             *h;
    ngx_http_core_main_conf_t       *cmcf;
    ngx_http_llm_admin_main_conf_t  *amcf;

    amcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_admin_module);

    if (amcf->admin == NULL) {
        return NGX_OK;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_REWRITE_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_llm_admin_post_action;

    return NGX_OK;
}


static void *
ngx_http_llm_create_admin_main_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_admin_main_conf_t));
}


static void *
ngx_http_llm_create_admin_loc_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_admin_loc_conf_t));
}


static char *
ngx_http_llm_merge_admin_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_llm_admin_loc_conf_t *prev = parent;
    ngx_http_llm_admin_loc_conf_t *conf = child;

    ngx_http_llm_loc_conf_t  *llcf;

    llcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_llm_module);

    if (llcf->inherited) {
        conf->server_names = prev->server_names;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_llm_init_admin_process(ngx_cycle_t *cycle)
{
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_llm_module);

    if (mcf && mcf->worker && mcf->worker->n == 0
        && ngx_http_llm_admin_of(mcf))
    {
        ngx_http_llm_init_admin(mcf, cycle->log);
    }

    return NGX_OK;
}


static void
ngx_http_llm_exit_admin_process(ngx_cycle_t *cycle)
{
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_llm_module);

    if (mcf && mcf->worker && ngx_http_llm_admin_of(mcf)) {
        ngx_http_llm_stop_admin(mcf);
    }
}


static char *
ngx_http_llm_admin(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_admin_loc_conf_t *alcf = conf;

    char                            *rv;
    ngx_str_t                       *value;
    ngx_uint_t                       i;
    ngx_http_llm_admin_t            *admin;
    ngx_http_llm_loc_conf_t         *llcf;
    ngx_http_core_loc_conf_t        *clcf;
    ngx_http_llm_admin_main_conf_t  *amcf;

    llcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_llm_module);

    rv = ngx_http_llm_use(cf, llcf, &ngx_http_llm_admin_serves);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    rv = ngx_http_llm_once(cf, 1);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (!ngx_http_llm_admin_has_prefix(clcf)) {
        return "needs a location with a prefix, such as \"/admin\"";
    }

    llcf->prefix = clcf->name.len;
    alcf->server = ngx_http_conf_get_module_srv_conf(cf,
                                                     ngx_http_core_module);

    amcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_admin_module);
    admin = ngx_http_llm_admin_conf(cf, amcf);

    if (admin == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {
        rv = ngx_http_llm_admin_param(cf, admin, &value[i]);

        if (rv != NGX_CONF_OK) {
            return rv;
        }
    }

    return NGX_CONF_OK;
}


/* the path of a request is what follows the location's name */

static ngx_uint_t
ngx_http_llm_admin_has_prefix(ngx_http_core_loc_conf_t *clcf)
{
#if (NGX_PCRE)
    if (clcf->regex) {
        return 0;
    }
#endif

    return !clcf->exact_match && !clcf->named && clcf->name.len != 0;
}


/* the first llm_admin makes the common configuration */

static ngx_http_llm_admin_t *
ngx_http_llm_admin_conf(ngx_conf_t *cf, ngx_http_llm_admin_main_conf_t *amcf)
{
    ngx_str_t              name = ngx_string("llm_admin");
    size_t                 size;
    ngx_http_llm_admin_t  *admin;

    if (amcf->admin) {
        return amcf->admin;
    }

    admin = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_admin_t));
    if (admin == NULL) {
        return NULL;
    }

    size = ngx_align(sizeof(ngx_http_llm_admin_shared_t), ngx_pagesize);

    admin->shm_zone = ngx_shared_memory_add(cf, &name,
                                            size + size / 64
                                            + 8 * ngx_pagesize,
                                            &ngx_http_llm_admin_module);
    if (admin->shm_zone == NULL) {
        return NULL;
    }

    admin->shm_zone->init = ngx_http_llm_init_admin_zone;
    admin->shm_zone->data = admin;

    amcf->admin = admin;

    return admin;
}


/* the state that the configuration will begin with, or NULL */

static llm_admin_state_t *
ngx_http_llm_admin_first_state(ngx_conf_t *cf, ngx_http_llm_admin_t *admin)
{
    llm_err_t                  err;
    llm_admin_state_t         *st;
    ngx_http_llm_admin_t      *before;
    ngx_http_llm_main_conf_t  *old;

    st = ngx_palloc(cf->temp_pool, sizeof(llm_admin_state_t));
    if (st == NULL) {
        return NULL;
    }

    old = ngx_http_llm_old_conf(cf->cycle);

    before = old ? ngx_http_llm_admin_of(old) : NULL;

    if (before && before->sh) {

        /* worker 0 may not have copied the last changes yet */

        if (old->zone) {
            ngx_http_llm_admin_keep(old);
        }

        ngx_http_llm_admin_lock(before);
        *st = *ngx_http_llm_admin_state(before);
        ngx_http_llm_admin_unlock(before);

    } else if (admin->state.len == 0
               || llm_admin_read_file(st, (char *) admin->state.data, &err)
                  != LLM_OK)
    {
        return NULL;
    }

    return st;
}


/* 1: llm_admin has loaded another file for model i, so the configuration's file
   is not needed */

static ngx_uint_t
ngx_http_llm_admin_replaces(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t i, uint32_t *media)
{
    char                      path[LLM_MAX_FILE];
    llm_err_t                 err;
    ngx_http_llm_admin_t     *admin;
    ngx_http_llm_model_t     *model;
    const llm_admin_model_t  *m;

    admin = ngx_http_llm_admin_of(mcf);

    if (admin == NULL) {
        return 0;
    }

    if (admin->first == NULL) {
        admin->first = ngx_http_llm_admin_first_state(cf, admin);
    }

    model = mcf->models.elts;

    m = admin->first
        ? llm_admin_find_model(admin->first, ngx_http_llm_text(&model[i].name))
        : NULL;

    return m && m->o.file[0] && !m->o.added
           && ngx_http_llm_admin_resolve(mcf, i, m->o.file, path, media,
                                         &err)
              == LLM_OK;
}


/* checks parameters that depend on each other, and collects what llm_admin
   shows of models */

static char *
ngx_http_llm_init_admin_main_conf(ngx_conf_t *cf, void *conf)
{
    ngx_http_llm_admin_main_conf_t *amcf = conf;

    ngx_http_llm_admin_t      *admin;
    ngx_http_llm_places_t     *places;
    ngx_http_llm_main_conf_t  *mcf;

    admin = amcf->admin;

    if (admin == NULL) {
        return NGX_CONF_OK;
    }

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);
    places = &mcf->places;

    if (places->like.len && admin->new_text.len == 0) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"llm_admin\" has \"like=\" without \"new=\" in "
                      "%V:%ui", &places->file, places->line);
        return NGX_CONF_ERROR;
    }

    if (places->n && admin->models.len == 0) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"llm_admin\" has \"new=\" without \"models=\" in "
                      "%V:%ui", &places->file, places->line);
        return NGX_CONF_ERROR;
    }

    if (admin->models.len
        && ngx_http_llm_add_file(mcf, "llm_admin", &admin->models_text,
                                 &admin->models, 0)
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    return ngx_http_llm_admin_know_models(cf, mcf, admin);
}


static char *
ngx_http_llm_admin_know_models(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_admin_t *admin)
{
    ngx_uint_t             i;
    llm_admin_known_t     *known;
    ngx_http_llm_model_t  *model;

    known = ngx_palloc(cf->pool,
                       mcf->models.nelts * sizeof(llm_admin_known_t));
    if (known == NULL) {
        return NGX_CONF_ERROR;
    }

    model = mcf->models.elts;

    for (i = 0; i < mcf->models.nelts; i++) {
        known[i].name.data = (char *) model[i].name.data;
        known[i].name.len = model[i].name.len;
        known[i].path = (char *) model[i].path.data;
    }

    admin->known = known;

    return NGX_CONF_OK;
}
