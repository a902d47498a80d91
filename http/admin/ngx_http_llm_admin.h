/*
 * llm_admin: what its files share.
 *
 *   ngx_http_llm_admin.c         the module, the directive, its checks
 *   ngx_http_llm_admin_param.c   its parameters
 *   ngx_http_llm_admin_memory.c  what it leaves behind, in shared memory
 *   ngx_http_llm_admin_begin.c   what a new zone has of it
 *   ngx_http_llm_admin_state.c   what the engine has made of commands
 *   ngx_http_llm_admin_sync.c    all that in a file, which others may have, too
 *   ngx_http_llm_admin_alias.c   aliases that it has set
 *   ngx_http_llm_admin_model.c   commands for models
 *   ngx_http_llm_admin_add.c     models that it adds and removes
 *   ngx_http_llm_admin_file.c    the files that they name
 *   ngx_http_llm_admin_usage.c   accounts of token quotas
 *   ngx_http_llm_admin_handler.c requests: routing, bodies
 *   ngx_http_llm_admin_answer.c  answers, lines of the log
 *   ngx_http_llm_admin_origin.c  pages in browsers, which may not send them
 *   ngx_http_llm_admin_job.c     what they wait for
 *
 * What llm_admin changes holds for all of nginx, whichever location it was
 * asked in: state= and models= are the same for all of them.
 */

#ifndef NGX_HTTP_LLM_ADMIN_H
#define NGX_HTTP_LLM_ADMIN_H


#include "http/conf/ngx_http_llm_conf.h"
#include "http/worker/ngx_http_llm_worker.h"


/*
 * In shared memory, under the slab pool's lock.  It is changed in the copy
 * that is not used, which then takes the other one's place: a worker that dies
 * meanwhile leaves what there was.
 */

typedef struct {
    ngx_uint_t                   version;       /* counts changes */
    ngx_uint_t                   saved;         /* the one that a file
                                                   has ... */
    ngx_uint_t                   place;         /* ... whose path has this
                                                   hash */
    ngx_uint_t                   bad_file;      /* it could not be used, and is
                                                   to be kept */
    llm_keys_id_t                file;          /* which one was written or
                                                   read last, and ... */
    llm_admin_state_t            known;         /* ... what it has; both under
                                                   its folder's lock */
    ngx_uint_t                   active;        /* index of the copy in use */
    llm_admin_state_t            copies[2];
} ngx_http_llm_admin_shared_t;


/* of all llm_admin of a configuration, in the cycle's pool */

typedef struct {
    ngx_str_t                    state;         /* full, NUL-terminated; len 0:
                                                   no file */
    ngx_str_t                    models;        /* a folder without links,
                                                   likewise */
    ngx_uint_t                   place;         /* hash of state */
    ngx_str_t                    state_text;    /* as they are written */
    ngx_str_t                    models_text;
    ngx_str_t                    new_text;

    llm_admin_state_t           *first;         /* while the configuration is
                                                   read; NULL: none */
    llm_admin_known_t           *known;         /* [models] of the
                                                   configuration */
    ngx_shm_zone_t              *shm_zone;      /* data: this */
    ngx_slab_pool_t             *shpool;
    ngx_http_llm_admin_shared_t  *sh;

    ngx_uint_t                   applied;       /* the version that the zone
                                                   began with, and 1 */

    ngx_atomic_t                *told;          /* [models] shared: the last
                                                   command whose end is in the
                                                   log */
    llm_override_t              *saved;         /* [models] shared, under the
                                                   lock: what this has of
                                                   them */
    llm_admin_name_t            *saved_names;   /* likewise, of added ones */

    /* of worker 0 */

    ngx_event_t                  timer;
    ngx_uint_t                   saving;        /* a thread does */
    ngx_msec_t                   tried;         /* when that failed; 0: it did
                                                   not */
} ngx_http_llm_admin_t;


/* the module's configuration */

typedef struct {
    ngx_http_llm_admin_t        *admin;         /* NULL: there is none */
} ngx_http_llm_admin_main_conf_t;


typedef struct {
    ngx_http_core_srv_conf_t    *server;        /* of llm_admin ... */
    ngx_array_t                  server_names;  /* ... with these:
                                                   ngx_http_server_name_t */
} ngx_http_llm_admin_loc_conf_t;


extern ngx_module_t  ngx_http_llm_admin_module;

#define ngx_http_llm_admin_of(mcf)                                            \
    ((ngx_http_llm_admin_main_conf_t *)                                       \
         ngx_http_llm_get_main_conf(mcf, ngx_http_llm_admin_module))->admin


typedef struct ngx_http_llm_admin_request_s  ngx_http_llm_admin_request_t;
typedef struct ngx_http_llm_admin_job_s  ngx_http_llm_admin_job_t;


/* work for a thread; malloc(): its request may be gone when it is done */

struct ngx_http_llm_admin_job_s {
    ngx_http_llm_task_t          task;
    ngx_http_llm_main_conf_t    *main;
    ngx_http_llm_admin_request_t  *request;     /* of the event loop; NULL: it
                                                   is gone, or there was none */
    int                        (*run)(ngx_http_llm_admin_job_t *job);
    void                       (*done)(ngx_http_llm_admin_job_t *job);
    void                       (*found)(ngx_http_llm_admin_request_t *a,
                                        const char *file);

    int                          rc;            /* of run() */
    llm_err_t                    err;           /* why */

    ngx_uint_t                   model;         /* of a file */
    char                         name[LLM_MAX_FILE];    /* as it was named,
                                                   empty: the
                                                   configuration's */
    char                         path[LLM_MAX_FILE];    /* where it is */
};


/* in r->pool */

struct ngx_http_llm_admin_request_s {
    ngx_http_request_t          *request;
    ngx_http_llm_main_conf_t    *main;
    ngx_http_llm_admin_t        *admin;
    llm_admin_route_t            to;
    ngx_int_t                    model;         /* index; -1: there is none */
    uint32_t                     naming;        /* of it */
    llm_command_kind_t           kind;          /* what it is to do */
    llm_admin_body_t             body;
    ngx_msec_t                   wait;          /* ?wait=; 0: none */
    ngx_msec_t                   timeout;       /* of a command */
    ngx_msec_t                   until;         /* when the wait is over */
    uint64_t                     number;        /* of the command */

    ngx_str_t                    from;          /* what was there before */
    ngx_http_llm_admin_job_t    *job;           /* NULL: none runs */
    ngx_event_t                  timer;
};


/* ngx_http_llm_admin_param.c */

char *ngx_http_llm_admin_param(ngx_conf_t *cf, ngx_http_llm_admin_t *admin,
    ngx_str_t *value);

/* ngx_http_llm_admin_memory.c */

ngx_int_t ngx_http_llm_init_admin_zone(ngx_shm_zone_t *shm_zone, void *data);
void ngx_http_llm_admin_lock(ngx_http_llm_admin_t *admin);
void ngx_http_llm_admin_unlock(ngx_http_llm_admin_t *admin);
/* with the lock held: what there is; a copy to be changed; it takes the
   other's place */
llm_admin_state_t *ngx_http_llm_admin_state(ngx_http_llm_admin_t *admin);
llm_admin_state_t *ngx_http_llm_admin_change(ngx_http_llm_admin_t *admin);
void ngx_http_llm_admin_changed(ngx_http_llm_admin_t *admin);

/* ngx_http_llm_admin_begin.c */

/* the engine's zone was made; one that is new begins with what llm_admin has
   made of the models */
ngx_int_t ngx_http_llm_admin_zone(ngx_http_llm_main_conf_t *mcf,
    ngx_slab_pool_t *shpool, ngx_log_t *log);
/* a model has another name */
void ngx_http_llm_admin_renamed(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t model);
/* likewise, if there was more since */
void ngx_http_llm_admin_apply(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log);
/* what has no place in it is forgotten */
void ngx_http_llm_admin_drop(ngx_http_llm_main_conf_t *mcf);
/* a place for a model; -1: there is none */
ngx_int_t ngx_http_llm_admin_vacant(ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_admin_sync.c */

/* has the file this version of the state, or is there none? */
ngx_uint_t ngx_http_llm_admin_is_saved(ngx_http_llm_admin_t *admin,
    ngx_uint_t version);
/* in any thread; LLM_ERROR: see err */
int ngx_http_llm_admin_save_state(ngx_http_llm_admin_t *admin, ngx_log_t *log,
    llm_err_t *err);
/* a thread writes the file; NGX_DECLINED: there is none, or nothing new;
   NGX_ERROR: no thread or no memory; a may be NULL */
ngx_int_t ngx_http_llm_admin_save(ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_admin_request_t *a,
    void (*done)(ngx_http_llm_admin_job_t *job), ngx_log_t *log);

/* ngx_http_llm_admin_state.c */

/* worker 0 begins, before its engine does, and ends */
void ngx_http_llm_init_admin(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log);
void ngx_http_llm_stop_admin(ngx_http_llm_main_conf_t *mcf);
/* of a model's command, that it has ended; or, if it has not, that another one
   (0: none) is in its place */
void ngx_http_llm_admin_tell(ngx_http_llm_main_conf_t *mcf, ngx_uint_t model,
    const llm_command_status_t *st, uint64_t other, ngx_log_t *log);
/* keeps what commands have made of the models */
void ngx_http_llm_admin_keep(ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_admin_alias.c */

/* what is set, a copy in the pool; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_admin_aliases(ngx_http_llm_main_conf_t *mcf,
    ngx_pool_t *pool, llm_admin_alias_t **list, ngx_uint_t *n);
ngx_int_t ngx_http_llm_admin_show_aliases(ngx_http_llm_admin_request_t *a,
    llm_buf_t *out);
/* NGX_ERROR: see err */
ngx_int_t ngx_http_llm_admin_show_alias(ngx_http_llm_admin_request_t *a,
    llm_buf_t *out, llm_err_t *err);
/* PUT and DELETE */
void ngx_http_llm_admin_put_alias(ngx_http_llm_admin_request_t *a);

/* ngx_http_llm_admin_model.c */

void ngx_http_llm_admin_models_conf(ngx_http_llm_main_conf_t *mcf,
    llm_admin_conf_t *conf);
void ngx_http_llm_admin_command(ngx_http_llm_admin_request_t *a);
/* looks for the file that the body names, and goes on by found() */
void ngx_http_llm_admin_find_file(ngx_http_llm_admin_request_t *a,
    void (*found)(ngx_http_llm_admin_request_t *a, const char *file));
/* the command for the model; file may be NULL; NGX_ERROR: the request has
   ended, and nothing has been done.  shown: the file for the log, or NULL */
ngx_int_t ngx_http_llm_admin_send(ngx_http_llm_admin_request_t *a,
    const char *file, const char *shown);

/* ngx_http_llm_admin_add.c */

/* PUT models/NAME and DELETE */
void ngx_http_llm_admin_put_model(ngx_http_llm_admin_request_t *a);
void ngx_http_llm_admin_delete_model(ngx_http_llm_admin_request_t *a);
/* ngx_http_llm_admin_file.c */

/* where a file is that a client or a state has named, and that a model can be
   loaded of it; path has room for LLM_MAX_FILE; LLM_ERROR: see err */
int ngx_http_llm_admin_resolve(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t model, const char *name, char *path, llm_err_t *err);

/* ngx_http_llm_admin_usage.c */

/* NGX_ERROR: see err */
ngx_int_t ngx_http_llm_admin_show_usage(ngx_http_llm_admin_request_t *a,
    llm_buf_t *out, llm_err_t *err);

/* ngx_http_llm_admin_origin.c */

/* of the server of the location */
char *ngx_http_llm_admin_keep_server_names(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_loc_conf_t *llcf);
/* what pages of this server send with a request that acts */
#define NGX_HTTP_LLM_ADMIN_HEADER  "X-LLM-Admin"

/* NGX_ERROR: it may be one of another site's page, see err */
ngx_int_t ngx_http_llm_admin_check_origin(ngx_http_request_t *r,
    llm_err_t *err);

/* ngx_http_llm_admin_answer.c */

/* sends an answer, or an error, and ends the request */
void ngx_http_llm_admin_answer(ngx_http_llm_admin_request_t *a,
    ngx_uint_t status, llm_buf_t *body);
void ngx_http_llm_admin_fail(ngx_http_llm_admin_request_t *a,
    llm_err_t *err);
/* sends the error, but does not end the request; as it is returned */
ngx_int_t ngx_http_llm_admin_refuse(ngx_http_llm_admin_request_t *a,
    llm_err_t *err);
/* the line of an action; to may be NULL */
void ngx_http_llm_admin_audit(ngx_http_llm_admin_request_t *a, ngx_str_t *to,
    const char *result);

/* ngx_http_llm_admin_handler.c */

ngx_int_t ngx_http_llm_admin_handler(ngx_http_request_t *r);
/* a handler of the rewrite phase */
ngx_int_t ngx_http_llm_admin_post_action(ngx_http_request_t *r);
/* nothing comes back to the request any more */
void ngx_http_llm_admin_cleanup(void *data);

/* ngx_http_llm_admin_job.c */

/* waits for its timer, or for a thread */
void ngx_http_llm_admin_wait(ngx_http_llm_admin_request_t *a,
    ngx_event_handler_pt handler, ngx_msec_t time);
/* NULL: no memory */
ngx_http_llm_admin_job_t *ngx_http_llm_admin_job(
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_admin_request_t *a,
    ngx_log_t *log);
/* runs it, and frees it when it is done, or if there is no thread: NGX_ERROR */
ngx_int_t ngx_http_llm_admin_run(ngx_http_llm_admin_job_t *job,
    ngx_log_t *log);


#endif /* NGX_HTTP_LLM_ADMIN_H */
