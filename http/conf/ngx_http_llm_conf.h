/*
 * The configuration that all of the module shares.
 *
 *   ngx_http_llm_conf.c       llm_queue, directives with a content handler,
 *                             variables of a subject
 *   ngx_http_llm_tenant.c     llm_tenant, llm_priority
 *   ngx_http_llm_uri_check.c  which location serves a URI
 *   ngx_http_llm_perms.c      files that workers cannot use
 *   ngx_http_llm_defaults.c   llm_defaults
 *   ngx_http_llm_life.c       calls the hooks of ngx_http_llm_life_t
 */

#ifndef NGX_HTTP_LLM_CONF_H
#define NGX_HTTP_LLM_CONF_H


#include "http/conf/ngx_http_llm_alias.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/conf/ngx_http_llm_param.h"


typedef struct ngx_http_llm_worker_s  ngx_http_llm_worker_t;
typedef struct ngx_http_llm_requests_s  ngx_http_llm_requests_t;


/*
 * Hooks of a subject (metrics, health, llm_admin, ...), called when models, the
 * engine's zone and workers begin, change or end.  The record is a constant of
 * the subject's module, whose preconfiguration adds it to a list; hooks are
 * called in the order of the list.
 *
 * NULL: the subject has no such hook.
 */

typedef struct {
    /* bytes of the zone that the subject needs for each model */
    size_t                       each;

    /* The master has created the engine's zone.  NGX_ERROR: no memory, which
       the subject has logged. */
    ngx_int_t                  (*zone)(ngx_http_llm_main_conf_t *mcf,
                                       ngx_slab_pool_t *shpool,
                                       ngx_log_t *log);
    /* A model that llm_admin added has another name now, or none. */
    void                       (*renamed)(ngx_http_llm_main_conf_t *mcf,
                                          ngx_uint_t model);
    /* This worker got QUIT, or ends.  Called several times. */
    void                       (*quit)(ngx_http_llm_main_conf_t *mcf);

    /* Does another file, which can be used, replace the one that the model's
       llm_model names?  *media: LLM_MEDIUM_..., what that file takes */
    ngx_uint_t                 (*replaces)(ngx_conf_t *cf,
                                           ngx_http_llm_main_conf_t *mcf,
                                           ngx_uint_t model, uint32_t *media);
    /* Copies aliases that were set while nginx runs to the pool.  The first
       subject that has any is the only one used.  NGX_ERROR: no memory. */
    ngx_int_t                  (*aliases)(ngx_http_llm_main_conf_t *mcf,
                                          ngx_pool_t *pool,
                                          llm_admin_alias_t **list,
                                          ngx_uint_t *n);
} ngx_http_llm_life_t;


/* places for models that llm_admin adds */

typedef struct {
    ngx_uint_t                   n;
    ngx_str_t                    like;          /* model whose parameters they
                                                   get; len 0: defaults */
    ngx_str_t                    file;          /* where the directive is */
    ngx_uint_t                   line;
} ngx_http_llm_places_t;


/* a file of the configuration that workers read, or write */

typedef struct {
    const char                  *directive;
    ngx_str_t                    name;          /* name in messages */
    ngx_str_t                    path;          /* full, NUL-terminated */
    ngx_uint_t                   written;       /* 1: workers replace the file
                                                   by a new one, which they
                                                   create in its folder */
} ngx_http_llm_used_file_t;


struct ngx_http_llm_main_conf_s {
    ngx_array_t                  models;        /* ngx_http_llm_model_t; the
                                                   last nadded are places for
                                                   models that llm_admin adds,
                                                   with the name that this
                                                   process has read last (len
                                                   0: none) */
    llm_api_model_t             *api_models;    /* [models.nelts], in the same
                                                   order */
    ngx_uint_t                   nadded;
    u_char                      *added;         /* [nadded][LLM_NAME_TEXT]:
                                                   names of added models */
    uint32_t                     names;         /* llm_zone_names() when they
                                                   were read */
    ngx_array_t                  uses;          /* ngx_http_llm_loc_conf_t * */
    ngx_array_t                  aliases;       /* ngx_http_llm_alias_t *, of
                                                   all levels */
    ngx_http_llm_places_t        places;
    ngx_array_t                  files;         /* ngx_http_llm_used_file_t */
    ngx_array_t                  lives;         /* const
                                                   ngx_http_llm_life_t * */
    ngx_array_t                  stages;        /* ngx_http_llm_stage_t *, see
                                                   http/request */
    const ngx_http_llm_requests_t  *requests;   /* what a worker calls for its
                                                   requests, see http/worker */

    ngx_int_t                    queue;
    ngx_msec_t                   queue_timeout;
    size_t                       queue_memory;
    llm_zone_bounds_t            bounds;
    size_t                       shared_memory;
    size_t                       media_memory;  /* of images and sound; unused
                                                   if no model takes any */

    ngx_uint_t                   keep_bodies;   /* 1: $request_body or
                                                   $llm_route_key is used */

    ngx_cycle_t                 *cycle;
    ngx_shm_zone_t              *shm_zone;
    ngx_shm_zone_t              *engines;       /* data: llm_engines_t */
    llm_zone_t                  *zone;
    llm_kept_t                   kept;          /* counters that outlive the
                                                   zone */
    uint32_t                     nworkers;
    int                         *fds;           /* [nworkers + 1] eventfds, the
                                                   last one is the engine's */
    void                        *affinity;      /* cpu_set_t of the master */

    void                        *counters;      /* shared memory: [nworkers],
                                                   ngx_http_llm_counters() */
    ngx_http_llm_worker_t       *worker;        /* NULL in the master */
};


/*
 * What a location serves.  Each directive that sets a content handler
 * (ngx_http_llm_use()) has one constant of this type.
 */

typedef struct {
    ngx_http_handler_pt          handler;
    uint32_t                     scope;         /* LLM_SCOPE_... that an API
                                                   key needs; unused for
                                                   llm_api, where the endpoint
                                                   has a scope */
    /* called when the models are known; may be NULL */
    char                      *(*check)(ngx_conf_t *cf,
                                    ngx_http_llm_main_conf_t *mcf,
                                    ngx_http_llm_loc_conf_t *llcf);
    unsigned                     api:1;         /* the directive is llm_api */
    unsigned                     main:1;        /* subrequests are refused */
} ngx_http_llm_serves_t;


struct ngx_http_llm_loc_conf_s {
    uint64_t                     allowed;       /* bit for each model */
    ngx_int_t                    fallback;      /* index, -1: none */
    size_t                       prefix;        /* bytes of the URI before the
                                                   API's path */
    ngx_str_t                   *names;         /* names of the models, as
                                                   written */
    ngx_uint_t                   nnames;
    ngx_str_t                    fallback_name;
    const char                  *directive;     /* name of the directive that
                                                   set the content handler */
    const ngx_http_llm_serves_t  *serves;       /* NULL: no content handler of
                                                   ours */
    ngx_uint_t                   inherited;     /* 1: an "if" or "limit_except"
                                                   block, with the content
                                                   handler of its location */
    ngx_http_core_loc_conf_t    *core;          /* core module's configuration
                                                   of the location */
    ngx_str_t                    file;          /* where the directive is */
    ngx_uint_t                   line;

    ngx_http_llm_amount_t        max_tokens;    /* most tokens of an answer */
    ngx_http_llm_amount_t        max_prompt;    /* most tokens of a prompt */
    ngx_msec_t                   timeout;
    ngx_msec_t                   heartbeat;
    size_t                       stream_buffer;
    ngx_flag_t                   ignore_client_abort;

    ngx_array_t                 *aliases;       /* ngx_http_llm_alias_t *; NULL:
                                                   none */
    void                        *mirror;        /* ngx_array_t of the URIs of
                                                   "mirror", to see whether they
                                                   are inherited; NULL: none */
    llm_api_preset_t            *preset;        /* llm_defaults; NULL: none */
    ngx_http_complex_value_t    *tenant;
    ngx_http_complex_value_t    *weight;
    ngx_http_complex_value_t    *priority;
};


/* is it a location with llm_api? */
#define ngx_http_llm_is_api(llcf)                                             \
    ((llcf)->serves && (llcf)->serves->api)


/* the configuration of another of our modules, in any process and while the
   configuration is read: the main one, and that of llcf's location, where
   llcf->serves must be set */
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
/* turns names of models into indices, when the whole configuration is read */
char *ngx_http_llm_check_uses(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf);
/* a preconfiguration adds the subject's variables; the last one's name is
   empty */
ngx_int_t ngx_http_llm_add_variables(ngx_conf_t *cf,
    ngx_http_variable_t *vars);


/* ngx_http_llm_tenant.c */

char *ngx_http_llm_tenant(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llm_priority(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* an empty value is 0; NGX_ERROR: not a priority */
ngx_int_t ngx_http_llm_read_priority(ngx_str_t *value, ngx_int_t *priority);
/* hash of a tenant's name */
uint64_t ngx_http_llm_hash_tenant(ngx_str_t *tenant);

/* ngx_http_llm_uri_check.c */

/* the location of a server that serves a URI */

typedef enum {
    NGX_HTTP_LLM_LEADS_MAYBE = 0,               /* unknown */
    NGX_HTTP_LLM_LEADS_NOWHERE,                 /* none */
    NGX_HTTP_LLM_LEADS_MAIN,                    /* one with a content handler
                                                   of ours that refuses
                                                   subrequests */
    NGX_HTTP_LLM_LEADS_OURS                     /* one with another content
                                                   handler of ours */
} ngx_http_llm_leads_e;

ngx_http_llm_leads_e ngx_http_llm_leads(ngx_conf_t *cf,
    ngx_http_core_srv_conf_t *cscf, ngx_str_t *uri);
/* may the rewrite module change URIs in this server or location? */
ngx_uint_t ngx_http_llm_rewrites(ngx_conf_t *cf, void **loc_conf);
/* warns about "mirror" to a location that refuses subrequests, in the server
   that is being merged */
void ngx_http_llm_check_mirror(ngx_conf_t *cf, ngx_http_llm_loc_conf_t *prev,
    ngx_http_llm_loc_conf_t *conf);

/* ngx_http_llm_uri.c */

/* the URI of a directive whose location is asked by a subrequest */

typedef struct {
    ngx_http_complex_value_t     value;
    ngx_str_t                   *directive;     /* its name */
    ngx_str_t                    file;          /* file and line of the
                                                   directive */
    ngx_uint_t                   line;
    ngx_http_core_srv_conf_t    *checked;       /* server in which the URI was
                                                   checked last */
} ngx_http_llm_uri_t;

/* reads the directive's first parameter */
char *ngx_http_llm_uri_read(ngx_conf_t *cf, ngx_command_t *cmd,
    ngx_http_llm_uri_t *uri);
/* warns, once in each server, about a URI that no location serves, or one of
   ours, which `cannot` what it is asked for */
void ngx_http_llm_uri_warn(ngx_conf_t *cf, ngx_http_llm_uri_t *uri,
    const char *cannot);
/* splits the arguments off the value that the URI has for a request: from a
   variable it may be anything.  NGX_ERROR: it is invalid, which was logged */
ngx_int_t ngx_http_llm_uri_split(ngx_http_request_t *r,
    ngx_http_llm_uri_t *uri, ngx_str_t *value, ngx_str_t *args);

/* ngx_http_llm_life.c */

/* for a module's preconfiguration */
ngx_int_t ngx_http_llm_add_life(ngx_conf_t *cf,
    const ngx_http_llm_life_t *life);
/* bytes of the zone that all subjects need for each model */
size_t ngx_http_llm_lives_each(ngx_http_llm_main_conf_t *mcf);
/* these call the hooks */
ngx_int_t ngx_http_llm_on_zone(ngx_http_llm_main_conf_t *mcf,
    ngx_slab_pool_t *shpool, ngx_log_t *log);
void ngx_http_llm_on_renamed(ngx_http_llm_main_conf_t *mcf, ngx_uint_t model);
void ngx_http_llm_on_quit(ngx_http_llm_main_conf_t *mcf);
ngx_uint_t ngx_http_llm_is_replaced(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_uint_t model, uint32_t *media);
ngx_int_t ngx_http_llm_set_aliases(ngx_http_llm_main_conf_t *mcf,
    ngx_pool_t *pool, llm_admin_alias_t **list, ngx_uint_t *n);

/* ngx_http_llm_perms.c */

/* registers a file that workers read, or write (written); NGX_ERROR: no
   memory */
ngx_int_t ngx_http_llm_add_file(ngx_http_llm_main_conf_t *mcf,
    const char *directive, ngx_str_t *name, ngx_str_t *path,
    ngx_uint_t written);
/* name of the directive whose file with this path is written; NULL: none */
const char *ngx_http_llm_who_writes(ngx_http_llm_main_conf_t *mcf,
    ngx_str_t *path);
/* warns about files that the workers' user cannot read or write; NGX_ERROR: a
   model is not usable because of that, and ngx_http_llm_unusable() failed */
ngx_int_t ngx_http_llm_check_access(ngx_cycle_t *cycle);


/* ngx_http_llm_defaults.c */

char *ngx_http_llm_defaults(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


#endif /* NGX_HTTP_LLM_CONF_H */
