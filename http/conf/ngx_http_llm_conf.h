/*
 * The configuration that all of the module shares.
 *
 *   ngx_http_llm_conf.c       llm_queue, locations that serve something of ours
 *   ngx_http_llm_tenant.c     llm_tenant, llm_priority
 *   ngx_http_llm_uri_check.c  URIs of the configuration that lead nowhere
 *   ngx_http_llm_perms.c      files that workers cannot use
 *   ngx_http_llm_defaults.c   llm_defaults
 *   ngx_http_llm_life.c       calls of the subjects, see ngx_http_llm_life_t
 */

#ifndef NGX_HTTP_LLM_CONF_H
#define NGX_HTTP_LLM_CONF_H


#include "http/conf/ngx_http_llm_alias.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/conf/ngx_http_llm_param.h"


typedef struct ngx_http_llm_worker_s  ngx_http_llm_worker_t;
typedef struct ngx_http_llm_requests_s  ngx_http_llm_requests_t;


/*
 * What a subject (metrics, health, llm_admin, ...) does when models, the
 * engine's zone and workers begin, change or end: a constant of its module,
 * which its preconfiguration adds to the list.  In the order of that list.
 *
 * A member that is NULL: the subject has no part in it.
 */

typedef struct {
    /* bytes of the zone that it takes for each model */
    size_t                       each;

    /* The engine's zone was made, in the master.  NGX_ERROR: no memory, which
       the subject has logged. */
    ngx_int_t                  (*zone)(ngx_http_llm_main_conf_t *mcf,
                                       ngx_slab_pool_t *shpool,
                                       ngx_log_t *log);
    /* A model that was added has another name now, or none. */
    void                       (*renamed)(ngx_http_llm_main_conf_t *mcf,
                                          ngx_uint_t model);
    /* This worker got QUIT, or ends.  Called several times. */
    void                       (*quit)(ngx_http_llm_main_conf_t *mcf);

    /* Has the model another file than its llm_model says, which can be
       used? */
    ngx_uint_t                 (*replaces)(ngx_conf_t *cf,
                                           ngx_http_llm_main_conf_t *mcf,
                                           ngx_uint_t model);
    /* Aliases that were set while nginx runs, a copy in the pool; those of
       one subject are there.  NGX_ERROR: no memory. */
    ngx_int_t                  (*aliases)(ngx_http_llm_main_conf_t *mcf,
                                          ngx_pool_t *pool,
                                          llm_admin_alias_t **list,
                                          ngx_uint_t *n);
} ngx_http_llm_life_t;


/* places for models that llm_admin adds */

typedef struct {
    ngx_uint_t                   n;
    ngx_str_t                    like;          /* the parameters of that
                                                   model; len 0: none */
    ngx_str_t                    file;          /* of the directive that says
                                                   so */
    ngx_uint_t                   line;
} ngx_http_llm_places_t;


/* a file of the configuration that workers read, or write */

typedef struct {
    const char                  *directive;
    ngx_str_t                    name;          /* as messages have it */
    ngx_str_t                    path;          /* full, NUL-terminated */
    ngx_uint_t                   written;       /* others are made beside it,
                                                   which take its place */
} ngx_http_llm_used_file_t;


struct ngx_http_llm_main_conf_s {
    ngx_array_t                  models;        /* ngx_http_llm_model_t; the
                                                   last nadded are for those
                                                   that llm_admin adds:
                                                   without a name (len 0) or
                                                   with the one that this
                                                   process has read last */
    llm_api_model_t             *api_models;    /* [models.nelts] likewise */
    ngx_uint_t                   nadded;
    u_char                      *added;         /* [nadded][LLM_NAME_TEXT]:
                                                   these names */
    uint32_t                     names;         /* llm_zone_names() then */
    ngx_array_t                  uses;          /* ngx_http_llm_loc_conf_t * */
    ngx_array_t                  aliases;       /* ngx_http_llm_alias_t *, of
                                                   all levels */
    ngx_http_llm_places_t        places;
    ngx_array_t                  files;         /* ngx_http_llm_used_file_t */
    ngx_array_t                  lives;         /* const
                                                   ngx_http_llm_life_t * */
    ngx_array_t                  stages;        /* ngx_http_llm_stage_t *, see
                                                   http/request */
    const ngx_http_llm_requests_t  *requests;   /* who serves them, see
                                                   http/worker */

    ngx_int_t                    queue;
    ngx_msec_t                   queue_timeout;
    size_t                       queue_memory;
    llm_zone_bounds_t            bounds;
    size_t                       shared_memory;

    ngx_uint_t                   keep_bodies;   /* $request_body is used, or
                                                   $llm_route_key */

    ngx_cycle_t                 *cycle;
    ngx_shm_zone_t              *shm_zone;
    ngx_shm_zone_t              *engines;       /* data: llm_engines_t */
    llm_zone_t                  *zone;
    llm_kept_t                   kept;          /* where its counters are */
    uint32_t                     nworkers;
    int                         *fds;           /* [nworkers + 1], the last
                                                   one is the engine's */
    void                        *affinity;      /* cpu_set_t of the master */

    void                        *counters;      /* shared, of all workers, see
                                                   ngx_http_llm_counters() */
    ngx_http_llm_worker_t       *worker;        /* NULL in the master */
};


/*
 * What a location serves: a constant of each directive that sets a content
 * handler (ngx_http_llm_use()).
 */

typedef struct {
    ngx_http_handler_pt          handler;
    uint32_t                     scope;         /* LLM_SCOPE_... that an API
                                                   key needs; of llm_api: the
                                                   endpoint's instead */
    /* once the models are known; may be NULL */
    char                      *(*check)(ngx_conf_t *cf,
                                    ngx_http_llm_main_conf_t *mcf,
                                    ngx_http_llm_loc_conf_t *llcf);
    unsigned                     api:1;         /* it is llm_api */
    unsigned                     main:1;        /* it serves no subrequests */
} ngx_http_llm_serves_t;


struct ngx_http_llm_loc_conf_s {
    uint64_t                     allowed;       /* bit for each model */
    ngx_int_t                    fallback;      /* index, -1: none */
    size_t                       prefix;        /* bytes of the URI in front of
                                                   the API's path */
    ngx_str_t                   *names;         /* as written, until checked */
    ngx_uint_t                   nnames;
    ngx_str_t                    fallback_name;
    const char                  *directive;     /* the one that needs a
                                                   model */
    const ngx_http_llm_serves_t  *serves;       /* NULL: nothing of ours */
    ngx_uint_t                   inherited;     /* as its location does: "if",
                                                   "limit_except" */
    ngx_http_core_loc_conf_t    *core;          /* of the location */
    ngx_str_t                    file;
    ngx_uint_t                   line;

    ngx_http_llm_amount_t        max_tokens;    /* of an answer */
    ngx_http_llm_amount_t        max_prompt;
    ngx_msec_t                   timeout;
    ngx_msec_t                   heartbeat;
    size_t                       stream_buffer;
    ngx_flag_t                   ignore_client_abort;

    ngx_array_t                 *aliases;       /* ngx_http_llm_alias_t *; NULL:
                                                   none */
    void                        *mirror;        /* the URIs of "mirror", to
                                                   tell them from those of the
                                                   level above; NULL: none */
    llm_api_preset_t            *preset;        /* llm_defaults; NULL: none */
    ngx_http_complex_value_t    *tenant;
    ngx_http_complex_value_t    *weight;
    ngx_http_complex_value_t    *priority;
};


/* is it a location with llm_api? */
#define ngx_http_llm_is_api(llcf)                                             \
    ((llcf)->serves && (llcf)->serves->api)


/* a module's own configuration: in any process, and while all is read; of the
   location that llcf is of, which serves something of ours */
#define ngx_http_llm_get_main_conf(mcf, module)                               \
    ngx_http_cycle_get_module_main_conf((mcf)->cycle, module)
#define ngx_http_llm_get_loc_conf(llcf, module)                               \
    (llcf)->core->loc_conf[(module).ctx_index]


extern ngx_module_t  ngx_http_llm_module;


/* ngx_http_llm_amount.c */

char *ngx_http_llm_max_tokens(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


/* ngx_http_llm_conf.c */

char *ngx_http_llm_queue(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* registers a location that needs models */
char *ngx_http_llm_use(ngx_conf_t *cf, ngx_http_llm_loc_conf_t *llcf,
    const ngx_http_llm_serves_t *serves);
/* names to indices, once the whole configuration is read */
char *ngx_http_llm_check_uses(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf);


/* ngx_http_llm_tenant.c */

char *ngx_http_llm_tenant(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llm_priority(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* NGX_ERROR: it is none; empty it is 0 */
ngx_int_t ngx_http_llm_read_priority(ngx_str_t *value, ngx_int_t *priority);
/* of a tenant that has a name */
uint64_t ngx_http_llm_hash_tenant(ngx_str_t *tenant);

/* ngx_http_llm_uri_check.c */

/* what a URI leads to in a server */

typedef enum {
    NGX_HTTP_LLM_LEADS_MAYBE = 0,               /* it cannot be told */
    NGX_HTTP_LLM_LEADS_NOWHERE,
    NGX_HTTP_LLM_LEADS_MAIN,                    /* to a location of ours that
                                                   serves no subrequests */
    NGX_HTTP_LLM_LEADS_OURS                     /* to another one of ours */
} ngx_http_llm_leads_e;

ngx_http_llm_leads_e ngx_http_llm_leads(ngx_conf_t *cf,
    ngx_http_core_srv_conf_t *cscf, ngx_str_t *uri);
/* may the rewrite module change URIs there? */
ngx_uint_t ngx_http_llm_rewrites(ngx_conf_t *cf, void **loc_conf);
/* a warning, in the server that is being merged */
void ngx_http_llm_check_mirror(ngx_conf_t *cf, ngx_http_llm_loc_conf_t *prev,
    ngx_http_llm_loc_conf_t *conf);


/* ngx_http_llm_life.c */

/* in a module's preconfiguration */
ngx_int_t ngx_http_llm_add_life(ngx_conf_t *cf,
    const ngx_http_llm_life_t *life);
/* calls of the members */
size_t ngx_http_llm_lives_each(ngx_http_llm_main_conf_t *mcf);
ngx_int_t ngx_http_llm_on_zone(ngx_http_llm_main_conf_t *mcf,
    ngx_slab_pool_t *shpool, ngx_log_t *log);
void ngx_http_llm_on_renamed(ngx_http_llm_main_conf_t *mcf, ngx_uint_t model);
void ngx_http_llm_on_quit(ngx_http_llm_main_conf_t *mcf);
ngx_uint_t ngx_http_llm_is_replaced(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_uint_t model);
ngx_int_t ngx_http_llm_set_aliases(ngx_http_llm_main_conf_t *mcf,
    ngx_pool_t *pool, llm_admin_alias_t **list, ngx_uint_t *n);

/* ngx_http_llm_perms.c */

/* a file that workers read, or write; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_add_file(ngx_http_llm_main_conf_t *mcf,
    const char *directive, ngx_str_t *name, ngx_str_t *path,
    ngx_uint_t written);
/* the directive whose file is written there, NULL: none */
const char *ngx_http_llm_who_writes(ngx_http_llm_main_conf_t *mcf,
    ngx_str_t *path);
/* tells of files that the workers' user cannot read, or write; NGX_ERROR: a
   model is not usable because of that, see ngx_http_llm_unusable() */
ngx_int_t ngx_http_llm_check_access(ngx_cycle_t *cycle);


/* ngx_http_llm_defaults.c */

char *ngx_http_llm_defaults(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


#endif /* NGX_HTTP_LLM_CONF_H */
