/*
 * llm_admin: what its files share.
 *
 *   ngx_http_llm_admin.c         the module, the directive, its checks
 *   ngx_http_llm_admin_param.c   parameters of the directive
 *   ngx_http_llm_admin_memory.c  the state, in shared memory
 *   ngx_http_llm_admin_begin.c   how a new zone of the engine gets the state
 *   ngx_http_llm_admin_state.c   results of commands, from the engine's zone
 *   ngx_http_llm_admin_sync.c    the state's file, which several nginx may use
 *   ngx_http_llm_admin_alias.c   aliases
 *   ngx_http_llm_admin_model.c   commands for models
 *   ngx_http_llm_admin_add.c     adding and removing models
 *   ngx_http_llm_admin_file.c    files of models that clients name
 *   ngx_http_llm_admin_usage.c   usage of token quotas
 *   ngx_http_llm_admin_handler.c requests: routing, bodies
 *   ngx_http_llm_admin_answer.c  answers, lines in the log
 *   ngx_http_llm_admin_origin.c  requests of pages in browsers
 *   ngx_http_llm_admin_job.c     waiting for timers and threads
 *
 * llm_admin changes models and aliases for the whole nginx, in whichever
 * location it is used; state= and models= are the same in all of them.
 */

#ifndef NGX_HTTP_LLM_ADMIN_H
#define NGX_HTTP_LLM_ADMIN_H


#include "http/conf/ngx_http_llm_conf.h"
#include "http/worker/ngx_http_llm_worker.h"


/*
 * In shared memory, under the slab pool's lock.  A change is made in the copy
 * that is not in use, and then that copy becomes the one in use: a worker that
 * dies during a change leaves the old state.
 */

typedef struct {
    ngx_uint_t                   version;       /* counter of changes */
    ngx_uint_t                   saved;         /* version that the file has */
    ngx_uint_t                   place;         /* hash of that file's path */
    ngx_uint_t                   bad_file;      /* 1: the file could not be
                                                   used, and will be kept as
                                                   FILE.bad */
    llm_keys_id_t                file;          /* file that was written or read
                                                   last */
    llm_admin_state_t            known;         /* state that this file has; as
                                                   `file`, under the lock of the
                                                   folder */
    ngx_uint_t                   active;        /* index of the copy in use */
    llm_admin_state_t            copies[2];
} ngx_http_llm_admin_shared_t;


/* what all llm_admin of a configuration share, in the cycle's pool */

typedef struct {
    ngx_str_t                    state;         /* full path, NUL-terminated;
                                                   len 0: no file */
    ngx_str_t                    models;        /* path of a folder, without
                                                   links, NUL-terminated; len 0:
                                                   none */
    ngx_uint_t                   place;         /* hash of state */
    ngx_str_t                    state_text;    /* parameters as they were
                                                   written */
    ngx_str_t                    models_text;
    ngx_str_t                    new_text;

    llm_admin_state_t           *first;         /* used while the configuration
                                                   is read; NULL: none */
    llm_admin_known_t           *known;         /* [models] of the
                                                   configuration */
    ngx_shm_zone_t              *shm_zone;      /* data: this */
    ngx_slab_pool_t             *shpool;
    ngx_http_llm_admin_shared_t  *sh;

    ngx_uint_t                   applied;       /* version that the zone began
                                                   with, plus 1; 0: none */

    ngx_atomic_t                *told;          /* [models], shared: last
                                                   command whose end was
                                                   logged */
    llm_override_t              *saved;         /* [models], shared, under the
                                                   lock: what the state has of
                                                   each model */
    llm_admin_name_t            *saved_names;   /* the same: names of added
                                                   models */

    /* of worker 0 */

    ngx_event_t                  timer;
    ngx_uint_t                   saving;        /* 1: a thread is writing the
                                                   file */
    ngx_msec_t                   tried;         /* time at which that failed; 0:
                                                   it did not fail */
} ngx_http_llm_admin_t;


/* the module's configuration */

typedef struct {
    ngx_http_llm_admin_t        *admin;         /* NULL: no llm_admin */
} ngx_http_llm_admin_main_conf_t;


typedef struct {
    ngx_http_core_srv_conf_t    *server;        /* server of the location */
    ngx_array_t                  server_names;  /* copy of its names:
                                                   ngx_http_server_name_t */
} ngx_http_llm_admin_loc_conf_t;


extern ngx_module_t  ngx_http_llm_admin_module;

#define ngx_http_llm_admin_of(mcf)                                            \
    ((ngx_http_llm_admin_main_conf_t *)                                       \
         ngx_http_llm_get_main_conf(mcf, ngx_http_llm_admin_module))->admin


typedef struct ngx_http_llm_admin_request_s  ngx_http_llm_admin_request_t;
typedef struct ngx_http_llm_admin_job_s  ngx_http_llm_admin_job_t;


/* work for a thread; allocated by malloc(), because the request may end
   first */

struct ngx_http_llm_admin_job_s {
    ngx_http_llm_task_t          task;
    ngx_http_llm_main_conf_t    *main;
    ngx_http_llm_admin_request_t  *request;     /* used by the event loop; NULL:
                                                   ended, or none */
    int                        (*run)(ngx_http_llm_admin_job_t *job);
    void                       (*done)(ngx_http_llm_admin_job_t *job);
    void                       (*found)(ngx_http_llm_admin_request_t *a,
                                        const char *file);

    int                          rc;            /* result of run() */
    llm_err_t                    err;           /* reason of a failure */

    ngx_uint_t                   model;         /* model that a file is for */
    char                         name[LLM_MAX_FILE];    /* file as it was named;
                                                   empty: the
                                                   configuration's */
    char                         path[LLM_MAX_FILE];    /* its full path */
};


/* in r->pool */

struct ngx_http_llm_admin_request_s {
    ngx_http_request_t          *request;
    ngx_http_llm_main_conf_t    *main;
    ngx_http_llm_admin_t        *admin;
    llm_admin_route_t            to;
    ngx_int_t                    model;         /* index; -1: none */
    uint32_t                     naming;        /* number of the model's name */
    llm_command_kind_t           kind;          /* command that is sent */
    llm_admin_body_t             body;
    ngx_uint_t                   router;        /* 1: the body names the model,
                                                   as in llama-server */
    ngx_msec_t                   wait;          /* ms, of ?wait=; 0: none */
    ngx_msec_t                   timeout;       /* ms, of the command */
    ngx_msec_t                   until;         /* end of the wait */
    uint64_t                     number;        /* of the command, once it was
                                                   sent */

    ngx_str_t                    from;          /* previous value, for the
                                                   log */
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
/* with the lock held: the state in use; a copy to change; puts that copy in
   use */
llm_admin_state_t *ngx_http_llm_admin_state(ngx_http_llm_admin_t *admin);
llm_admin_state_t *ngx_http_llm_admin_change(ngx_http_llm_admin_t *admin);
void ngx_http_llm_admin_changed(ngx_http_llm_admin_t *admin);

/* ngx_http_llm_admin_begin.c */

/* the engine's zone was made: a new zone gets the models' states that llm_admin
   has kept; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_admin_zone(ngx_http_llm_main_conf_t *mcf,
    ngx_slab_pool_t *shpool, ngx_log_t *log);
/* a model's name has changed */
void ngx_http_llm_admin_renamed(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t model);
/* gives the zone what has changed since ngx_http_llm_admin_zone() */
void ngx_http_llm_admin_apply(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log);
/* forgets added models that have no place in the zone */
void ngx_http_llm_admin_drop(ngx_http_llm_main_conf_t *mcf);
/* index of a free place for a new model; -1: none */
ngx_int_t ngx_http_llm_admin_vacant(ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_admin_sync.c */

/* 1: the file has this version of the state, or there is no file */
ngx_uint_t ngx_http_llm_admin_is_saved(ngx_http_llm_admin_t *admin,
    ngx_uint_t version);
/* merges the state with the file, and writes it; in any thread; LLM_ERROR: see
   err */
int ngx_http_llm_admin_save_state(ngx_http_llm_admin_t *admin, ngx_log_t *log,
    llm_err_t *err);
/* starts a thread that writes the file; NGX_DECLINED: there is no file, or
   nothing new; NGX_ERROR: no thread or no memory; a may be NULL */
ngx_int_t ngx_http_llm_admin_save(ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_admin_request_t *a,
    void (*done)(ngx_http_llm_admin_job_t *job), ngx_log_t *log);

/* ngx_http_llm_admin_state.c */

/* worker 0 begins, before its engine does, and ends */
void ngx_http_llm_init_admin(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log);
void ngx_http_llm_stop_admin(ngx_http_llm_main_conf_t *mcf);
/* logs once that a model's command has ended, or, if it has not, that command
   number `other` has replaced it; 0: none has */
void ngx_http_llm_admin_tell(ngx_http_llm_main_conf_t *mcf, ngx_uint_t model,
    const llm_command_status_t *st, uint64_t other, ngx_log_t *log);
/* copies the models' states from the engine's zone to llm_admin's */
void ngx_http_llm_admin_keep(ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_admin_alias.c */

/* copies the aliases that are set into the pool; NGX_ERROR: no memory */
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
/* looks for the file that the body names, in a thread; then calls found() */
void ngx_http_llm_admin_find_file(ngx_http_llm_admin_request_t *a,
    void (*found)(ngx_http_llm_admin_request_t *a, const char *file));
/* sends the command for the model; file may be NULL; shown: the file for the
   log, or NULL.  NGX_ERROR: the request has ended, and nothing was done */
ngx_int_t ngx_http_llm_admin_send(ngx_http_llm_admin_request_t *a,
    const char *file, const char *shown);

/* ngx_http_llm_admin_add.c */

/* PUT models/NAME and DELETE */
void ngx_http_llm_admin_put_model(ngx_http_llm_admin_request_t *a);
void ngx_http_llm_admin_delete_model(ngx_http_llm_admin_request_t *a);

/* ngx_http_llm_admin_file.c */

/* finds the path of a file that a client or the state names, and checks that
   the file can be loaded; path has room for LLM_MAX_FILE bytes; media:
   LLM_MEDIUM_..., what it takes, or NULL; LLM_ERROR: see err */
int ngx_http_llm_admin_resolve(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t model, const char *name, char *path, uint32_t *media,
    llm_err_t *err);

/* ngx_http_llm_admin_usage.c */

/* NGX_ERROR: see err */
ngx_int_t ngx_http_llm_admin_show_usage(ngx_http_llm_admin_request_t *a,
    llm_buf_t *out, llm_err_t *err);

/* ngx_http_llm_admin_origin.c */

/* copies the names of the location's server */
char *ngx_http_llm_admin_keep_server_names(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_loc_conf_t *llcf);
/* header that pages of this server must send with a request that changes
   something */
#define NGX_HTTP_LLM_ADMIN_HEADER  "X-LLM-Admin"

/* NGX_ERROR: the request may come from a page of another site, see err */
ngx_int_t ngx_http_llm_admin_check_origin(ngx_http_request_t *r,
    llm_err_t *err);

/* ngx_http_llm_admin_answer.c */

/* sends an answer, or an error, and ends the request */
void ngx_http_llm_admin_answer(ngx_http_llm_admin_request_t *a,
    ngx_uint_t status, llm_buf_t *body);
void ngx_http_llm_admin_fail(ngx_http_llm_admin_request_t *a,
    llm_err_t *err);
/* sends the error, but does not end the request: returns what a handler
   returns */
ngx_int_t ngx_http_llm_admin_refuse(ngx_http_llm_admin_request_t *a,
    llm_err_t *err);
/* logs an action; to may be NULL */
void ngx_http_llm_admin_audit(ngx_http_llm_admin_request_t *a, ngx_str_t *to,
    const char *result);

/* ngx_http_llm_admin_handler.c */

ngx_int_t ngx_http_llm_admin_handler(ngx_http_request_t *r);
/* handler of the rewrite phase */
ngx_int_t ngx_http_llm_admin_post_action(ngx_http_request_t *r);
/* detaches timer and job from the request */
void ngx_http_llm_admin_cleanup(void *data);

/* ngx_http_llm_admin_job.c */

/* makes the request wait for its timer, or for a thread */
void ngx_http_llm_admin_wait(ngx_http_llm_admin_request_t *a,
    ngx_event_handler_pt handler, ngx_msec_t time);
/* NULL: no memory */
ngx_http_llm_admin_job_t *ngx_http_llm_admin_job(
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_admin_request_t *a,
    ngx_log_t *log);
/* runs a job in a thread, and frees it afterwards; NGX_ERROR: no thread, the
   job was freed */
ngx_int_t ngx_http_llm_admin_run(ngx_http_llm_admin_job_t *job,
    ngx_log_t *log);


#endif /* NGX_HTTP_LLM_ADMIN_H */
