/*
 * What the files of the module share: its configuration, the state of a
 * worker, the state of a request.
 *
 *   ngx_http_llm_module.c      directives, contexts, the two modules
 *   ngx_http_llm_model.c       llm_model
 *   ngx_http_llm_models.c      the models by name, their files checked
 *   ngx_http_llm_added.c       those that come and go
 *   ngx_http_llm_sunset.c      models that are to go
 *   ngx_http_llm_warmup.c      what a model runs before it is ready
 *   ngx_http_llm_param.c       what all directives ask of parameters
 *   ngx_http_llm_uri_check.c       URIs of the configuration that lead nowhere
 *   ngx_http_llm_conf.c        llm_api, llm_queue and others, their checks
 *   ngx_http_llm_perms.c       files that workers cannot use
 *   ngx_http_llm_zone.c        the shared zone, eventfds
 *   ngx_http_llm_process.c     engine and client, worker start and end
 *   ngx_http_llm_shutdown.c    graceful ends
 *   ngx_http_llm_slot.c        a worker's live requests
 *   ngx_http_llm_handler.c     content handlers: routing, submission
 *   ngx_http_llm_health.c      llm_health
 *   ngx_http_llm_probe.c       its probes of the models
 *   ngx_http_llm_body.c        request bodies, parsed in threads
 *   ngx_http_llm_coding.c      and unpacked, where they are compressed
 *   ngx_http_llm_task.c        those threads
 *   ngx_http_llm_keyfile.c     llm_api_keys, files of keys that change
 *   ngx_http_llm_keys.c        the API key of a request, what it may do
 *   ngx_http_llm_amount.c      numbers that may be variables
 *   ngx_http_llm_quota.h       token quotas, in files of their own
 *   ngx_http_llm_file.c        files that workers write
 *   ngx_http_llm_alias.c       llm_alias, names that follow a rule
 *   ngx_http_llm_defaults.c    llm_defaults
 *   ngx_http_llm_busy.c        how busy the models are
 *   ngx_http_llm_admin.h       llm_admin, likewise
 *   ngx_http_llm_identity.c    model, tenant, priority of a request
 *   ngx_http_llm_idempotency.c requests that are sent again
 *   ngx_http_llm_store.c       their answers in shared memory
 *   ngx_http_llm_guard.h       llm_guard, who is asked first, likewise
 *   ngx_http_llm_route.h       for balancers: $llm_route_key and
 *                              llm_upstream, likewise
 *   ngx_http_llm_event.c       the engine's events, errors, the pace
 *   ngx_http_llm_post_action.c       post_action
 *   ngx_http_llm_stream.c      answers on their way, disconnects, timers
 *   ngx_http_llm_output.c      bytes on their way to a client
 *   ngx_http_llm_response.c    whole answers and errors
 *   ngx_http_llm_no_route.c    where there is no endpoint; the list of them
 *   ngx_http_llm_refusal.c     nginx's own errors in the API's shape
 *   ngx_http_llm_filter.c      x-request-id on all answers
 *   ngx_http_llm_metrics.c     llm_metrics
 *   ngx_http_llm_metrics.h     what it tells of requests, llm_slo, likewise
 *   ngx_http_llm_variables.c   $llm_...
 *   ngx_http_llm_cause.c       why a request failed
 *   ngx_http_llm_capture.c     llm_capture
 *   ngx_http_llm_trace.c       the trace that a request belongs to
 *   ngx_http_llm_spans.c       what it did in it
 *
 * Functions are declared by subject: ngx_http_llm_conf.h, _access.h, _answer.h,
 * _worker.h and _observe.h.
 *
 * Nothing here deals with tensors or JSON: these files move bytes between
 * nginx and engine/llm.h, engine/api/api.h.
 */

#ifndef NGX_HTTP_LLM_MODULE_H
#define NGX_HTTP_LLM_MODULE_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include <pthread.h>

#include "engine/api/api.h"
#include "engine/llm.h"
#include "http/reply/ngx_http_llm_reply.h"


#define NGX_HTTP_LLM_NO_SLOT     ((uint32_t) -1)

/* how often a worker with live requests checks that its engine is alive */
#define NGX_HTTP_LLM_WATCH       500

/* the most of an answer that is kept, because it is not streamed or because
   its stream ends with all of it, in units of llm_stream_buffer */
#define NGX_HTTP_LLM_MAX_ANSWER  64


/* the longest of times in the configuration: 365 days */
#define NGX_HTTP_LLM_MOST_S   (365 * 24 * 60 * 60)
#define NGX_HTTP_LLM_MOST_MS  ((ngx_int_t) NGX_HTTP_LLM_MOST_S * 1000)


/* the most of sizes: a terabyte */
#define NGX_HTTP_LLM_MOST_SIZE  ((size_t) 1 << 40)

/* the most of a tenant's weight, in thousandths */
#define NGX_HTTP_LLM_MOST_WEIGHT  (1000 * 1000)


/* bounds of a size of the configuration */

typedef struct {
    ngx_conf_post_handler_pt     post_handler;
    size_t                       min;
    ngx_uint_t                   shared;        /* it is of shared memory */
} ngx_http_llm_size_min_t;


/* a number of the configuration, or variables that become one */

typedef struct {
    ngx_http_complex_value_t    *value;         /* NULL: rate is it */
    llm_rate_t                   rate;
    unsigned                     set:1;         /* else there is no limit */
} ngx_http_llm_amount_t;


/* a date of the configuration, as it is written; len 0: none */

typedef struct {
    ngx_str_t                    text;
    int64_t                      time;          /* seconds since 1970 */
} ngx_http_llm_date_t;


/* a llm_model directive; memory is the cycle's pool */

typedef struct {
    ngx_str_t                    name;
    ngx_str_t                    path;          /* full, NUL-terminated */
    ngx_str_t                    template_path; /* likewise, may be empty */
    ngx_array_t                  aliases;       /* ngx_str_t */

    int32_t                      max_tokens;    /* -1: what is left */
    int32_t                      queue;         /* requests that may wait for
                                                   it; -1: llm_queue */
    int                          is_default;
    int                          required;      /* nginx does not start with a
                                                   file that is unusable */
    ngx_uint_t                   replaced;      /* llm_admin has put another
                                                   file into its place */

    ngx_msec_t                   probe;         /* how often; 0: never */
    ngx_uint_t                   probe_prompt;  /* tokens of its prompt, about;
                                                   0: one */

    ngx_str_t                    warmup;        /* full, NUL-terminated; len 0:
                                                   no file */
    ngx_str_t                    owner;
    ngx_http_llm_date_t          deprecated;
    ngx_http_llm_date_t          sunset;        /* from then on it is a 404 */
    ngx_str_t                    successor;     /* name of a model */

    ngx_str_t                    file;          /* of the directive */
    ngx_uint_t                   line;

    llm_engine_model_t           engine;        /* what the engine gets */
} ngx_http_llm_model_t;


/*
 * A file of API keys, in the cycle's pool.  The master reads it, workers
 * inherit what it has read, and each looks after changes on its own.  While
 * `busy` a thread of the worker uses what is marked so, and reads `keys`; the
 * rest is the event loop's.
 */

typedef struct {
    ngx_str_t                    path;          /* full, NUL-terminated */
    ngx_msec_t                   check;
    ngx_int_t                    ident;         /* behind three pointers, as an
                                                   event's log wants it */
    llm_keys_t                  *keys;          /* NULL: none is usable */
    llm_keys_id_t                id;            /* of the file read last */
    ngx_event_t                  event;

    pthread_t                    thread;
    ngx_uint_t                   busy;
    ngx_uint_t                   read;          /* a file, too; thread */
    llm_keys_t                  *old;           /* to be freed; thread */
    llm_keys_t                  *fresh;         /* what was read; thread */
    llm_err_t                    err;           /* thread */
    char                         changes[1024]; /* ids that came and went, for
                                                   the log; thread, which reads
                                                   keys for it */
    int                          done;          /* set by the thread, the last
                                                   that it does */
} ngx_http_llm_keyfile_t;


typedef struct ngx_http_llm_main_conf_s  ngx_http_llm_main_conf_t;
typedef struct ngx_http_llm_loc_conf_s  ngx_http_llm_loc_conf_t;
typedef struct ngx_http_llm_ctx_s  ngx_http_llm_ctx_t;
typedef struct ngx_http_llm_admin_s  ngx_http_llm_admin_t;
typedef struct ngx_http_llm_probe_s  ngx_http_llm_probe_t;
typedef struct ngx_http_llm_probed_s  ngx_http_llm_probed_t;
typedef struct ngx_http_llm_block_s  ngx_http_llm_block_t;
typedef struct ngx_http_llm_entry_s  ngx_http_llm_entry_t;
typedef struct ngx_http_llm_quota_s  ngx_http_llm_quota_t;
typedef struct ngx_http_llm_usage_s  ngx_http_llm_usage_t;
typedef struct ngx_http_llm_page_s  ngx_http_llm_page_t;
typedef struct ngx_http_llm_guard_s  ngx_http_llm_guard_t;
typedef struct ngx_http_llm_stats_s  ngx_http_llm_stats_t;


/* a llm_alias directive */

typedef struct {
    ngx_str_t                    name;
    ngx_str_t                    text;          /* of the value */
    ngx_http_complex_value_t     value;
    ngx_str_t                    file;
    ngx_uint_t                   line;
    ngx_uint_t                   said;          /* that it leads nowhere */
} ngx_http_llm_alias_t;


typedef struct {
    ngx_http_llm_ctx_t          *ctx;           /* NULL: the slot is free */
    uint32_t                     next;          /* next in the free list */
} ngx_http_llm_slot_t;


/* the answer of a request with an Idempotency-Key, in shared memory */

struct ngx_http_llm_entry_s {
    ngx_queue_t                  bucket;
    ngx_queue_t                  age;           /* of all, the oldest first */
    u_char                       key[16];       /* of client and key */
    u_char                       digest[16];    /* of the request */
    time_t                       until;         /* valid, once it is complete */
    ngx_pid_t                    owner;         /* 0: it is complete */
    uint64_t                     born;          /* of owner, whose pid may be
                                                   used again */
    size_t                       len;           /* of the answer */
    ngx_http_llm_page_t         *first;
    ngx_http_llm_page_t         *last;
};


/* work that a thread does for the event loop, see ngx_http_llm_task.c */

typedef struct {
    ngx_queue_t                  queue;
    void                       (*run)(void *data);  /* in a thread */
    void                       (*done)(void *data); /* in the event loop */
    void                        *data;
} ngx_http_llm_task_t;


#define NGX_HTTP_LLM_THREADS     2

typedef struct {
    pthread_mutex_t              lock;
    pthread_cond_t               work;          /* waiting, or stop */

    /* used by the event loop and the threads, under the lock */

    ngx_queue_t                  waiting;       /* task->queue */
    ngx_queue_t                  done;
    ngx_uint_t                   nidle;         /* threads */
    ngx_uint_t                   stop;

    /* used by the event loop only; fd does not change */

    int                          fd;            /* wakes the event loop */
    ngx_uint_t                   nthreads;
    pthread_t                    threads[NGX_HTTP_LLM_THREADS];
} ngx_http_llm_tasks_t;


/* what workers know of each other: each writes its own, any worker reads, in
   any order; a cache line for each */

typedef struct {
    ngx_atomic_t                 unsent;        /* bytes kept for clients */
    ngx_atomic_t                 pid;           /* 0: no process; else it is
                                                   alive and the rest is its
                                                   own */
    ngx_atomic_t                 open;          /* requests that came to a
                                                   llm_api location */
    ngx_atomic_t                 quitting;      /* it got QUIT ... */
    ngx_atomic_t                 quit;          /* ... at ngx_current_msec;
                                                   written before */
    ngx_atomic_t                 streams;       /* answers whose header went
                                                   out, and that go on */
    ngx_atomic_t                 born;          /* of pid, which may be used
                                                   again; before it */
    u_char                       unused[64 - 7 * sizeof(ngx_atomic_t)];
} ngx_http_llm_counters_t;


/* a worker's side; lives from init_process to exit_process */

typedef struct {
    llm_client_t                *client;
    llm_engine_t                *engine;        /* worker 0 only */
    ngx_connection_t            *conn;          /* of the eventfd */
    ngx_http_llm_counters_t     *counters;      /* this worker's */
    ngx_atomic_t                *writes;        /* pieces of answers written;
                                                   its successor's, too */

    ngx_http_llm_slot_t         *slots;         /* malloc() */
    uint32_t                     nslots;
    uint32_t                     free;

    ngx_http_llm_tasks_t         tasks;         /* bodies to be parsed */

    ngx_queue_t                  live;          /* ctx->live */
    ngx_queue_t                  dirty;         /* ctx->dirty */
    ngx_uint_t                   nlive;

    ngx_http_llm_usage_t        *usage;         /* worker 0; NULL: nothing is
                                                   written */

    ngx_http_llm_probe_t        *probes;        /* worker 0; [models] */

    size_t                       held;          /* body->held of all */

    llm_buf_t                    scratch;       /* output of one event */

    ngx_event_t                  watch;         /* checks for a dead engine */
    ngx_event_t                  hold;          /* worker 0 while draining */
    ngx_event_t                  cutoff;        /* before the shutdown timer */
    ngx_event_t                  lost;          /* before this process ends */
    ngx_event_t                  start;         /* starts the engine again */
    ngx_msec_t                   start_pause;
} ngx_http_llm_worker_t;


/* what changes models and aliases while nginx runs */

typedef struct {
    /* has the model another file than its llm_model says, which can be
       used? */
    ngx_uint_t                 (*replaces)(ngx_conf_t *cf,
                                           ngx_http_llm_main_conf_t *mcf,
                                           ngx_uint_t model);
    /* aliases that were set, a copy in the pool; NGX_ERROR: no memory */
    ngx_int_t                  (*aliases)(ngx_http_llm_main_conf_t *mcf,
                                          ngx_pool_t *pool,
                                          llm_admin_alias_t **list,
                                          ngx_uint_t *n);
    /* a new zone begins with what was made of the models */
    void                       (*apply)(ngx_http_llm_main_conf_t *mcf,
                                        ngx_log_t *log);
    /* worker 0 begins, before its engine does, and ends */
    void                       (*init)(ngx_http_llm_main_conf_t *mcf,
                                       ngx_log_t *log);
    void                       (*stop)(ngx_http_llm_main_conf_t *mcf);
} ngx_http_llm_overrides_t;


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
    ngx_array_t                  keyfiles;      /* ngx_http_llm_keyfile_t * */
    ngx_array_t                  aliases;       /* ngx_http_llm_alias_t *, of
                                                   all levels */
    ngx_http_llm_admin_t        *admin;         /* NULL: there is none */
    const ngx_http_llm_overrides_t  *overrides; /* NULL: there is no
                                                   llm_admin */
    /* a model that was added has another name now; of the figures */
    void                       (*renamed)(ngx_http_llm_main_conf_t *mcf,
                                          ngx_uint_t model);
    ngx_array_t                  quotas;        /* ngx_http_llm_quota_t * */
    ngx_array_t                  limits;        /* ngx_array_t *, of a location
                                                   each */

    ngx_int_t                    queue;
    ngx_msec_t                   queue_timeout;
    size_t                       queue_memory;
    llm_zone_bounds_t            bounds;
    size_t                       shared_memory;

    size_t                       idem_size;     /* 0: off */
    time_t                       idem_valid;

    ngx_int_t                    idem_header;   /* $http_idempotency_key */
    ngx_int_t                    api_key;       /* $http_x_api_key */
    ngx_uint_t                   keep_bodies;   /* $request_body is used, or
                                                   $llm_route_key */
    ngx_uint_t                   guards;        /* llm_guard is used */

    ngx_cycle_t                 *cycle;
    ngx_shm_zone_t              *shm_zone;
    ngx_shm_zone_t              *engines;       /* data: llm_engines_t */
    ngx_shm_zone_t              *idem;          /* data:
                                                   the store of answers; NULL:
                                                   off */
    llm_zone_t                  *zone;
    llm_kept_t                   kept;          /* where its counters are */
    uint32_t                     nworkers;
    int                         *fds;           /* [nworkers + 1], the last
                                                   one is the engine's */
    void                        *affinity;      /* cpu_set_t of the master */

    ngx_http_llm_counters_t     *counters;      /* [nworkers] shared */
    ngx_http_llm_probed_t       *probed;        /* [models] shared */
    ngx_atomic_t                *told;          /* [models] shared: the last
                                                   command whose end is in the
                                                   log */
    llm_override_t              *saved;         /* [models] shared: what
                                                   llm_admin has of them; under
                                                   its lock */
    llm_admin_name_t            *saved_names;    /* likewise, of added ones */
    ngx_http_llm_stats_t        *figures;

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
    ngx_http_core_loc_conf_t    *core;          /* of the directive's
                                                   location */
    ngx_http_core_srv_conf_t    *server;        /* of llm_admin ... */
    ngx_array_t                  server_names;  /* ... with these:
                                                   ngx_http_server_name_t */
    ngx_str_t                    file;
    ngx_uint_t                   line;

    ngx_http_llm_amount_t        max_tokens;    /* of an answer */
    ngx_http_llm_amount_t        max_prompt;
    ngx_msec_t                   timeout;
    ngx_msec_t                   heartbeat;
    ngx_flag_t                   metrics_json;
    ngx_uint_t                   tenants;       /* llm_metrics shows them */
    ngx_array_t                 *slos;          /* ngx_http_llm_slo_t *; NULL:
                                                   none */
    llm_health_rule_t            health;
    ngx_msec_t                   probe;         /* 0: none */
    ngx_uint_t                   probe_prompt;
    size_t                       stream_buffer;
    ngx_flag_t                   ignore_client_abort;
    size_t                       capture;       /* 0: off */

    ngx_http_llm_keyfile_t      *keyfile;       /* NULL: off */
    ngx_array_t                 *aliases;       /* ngx_http_llm_alias_t *; NULL:
                                                   none */
    ngx_array_t                 *limits;        /* ngx_http_llm_limit_t; NULL:
                                                   none */
    ngx_http_llm_guard_t        *guard;         /* NULL: off */
    void                        *mirror;        /* the URIs of "mirror", to
                                                   tell them from those of the
                                                   level above; NULL: none */
    llm_api_preset_t            *preset;        /* llm_defaults; NULL: none */
    ngx_http_complex_value_t    *tenant;
    ngx_http_complex_value_t    *weight;
    ngx_http_complex_value_t    *priority;
    size_t                       route_message; /* bytes of it in
                                                   $llm_route_key ... */
    size_t                       route_prompt;  /* ... likewise */
};


/* is it a location with llm_api? */
#define ngx_http_llm_is_api(llcf)                                             \
    ((llcf)->serves && (llcf)->serves->api)


/*
 * A request.  It is allocated from r->pool, so that the log phase has its
 * figures.  Its API object and its place in the engine are freed in the
 * request's cleanup, that is, as soon as the client is gone; the bytes that
 * it sends are freed with the pool, because HTTP/2 frames may point to them
 * until then.
 */

struct ngx_http_llm_ctx_s {
    ngx_http_request_t          *request;
    ngx_http_llm_main_conf_t    *main;
    ngx_http_llm_loc_conf_t     *conf;

    llm_api_t                   *api;
    ngx_http_llm_reply_t        *reply;         /* its endpoint is known once
                                                   it is routed; NULL: a
                                                   probe */
    llm_str_t                    path;          /* of the endpoint, behind
                                                   "v1/" */
    uint64_t                     arrival_us;
    uint64_t                     deadline_us;

    uint32_t                     slot;
    uint64_t                     ticket;
    ngx_queue_t                  live;
    ngx_queue_t                  dirty;

    ngx_http_llm_block_t        *blocks;        /* see ..._output.c */
    ngx_http_llm_block_t        *gather;
    ngx_http_llm_block_t        *newest;
    ngx_chain_t                 *free;
    size_t                       held;          /* bytes in blocks */
    size_t                       largest;       /* most output of one event so
                                                   far */

    llm_err_t                   *err;           /* why it failed, if there was
                                                   memory for it */
    uint32_t                     retry_after;

    void                       **data;          /* of each subject, see
                                                   ngx_http_llm_stage.h */

    ngx_event_t                  timer;
    ngx_msec_t                   last_output;

    /* takes its events; set for a health probe, which has no nginx request */
    void                       (*event)(ngx_http_llm_ctx_t *ctx,
                                        const llm_event_t *ev);

    ngx_str_t                    id;            /* of the answer */
    ngx_str_t                    request_id;    /* the client's, or id */
    ngx_str_t                    user;
    ngx_str_t                    metadata;      /* JSON */
    ngx_str_t                    tenant;
    ngx_str_t                    alias;         /* that was asked for */
    ngx_int_t                    most_tokens;   /* llm_max_tokens; -1: none */
    ngx_int_t                    most_prompt;   /* likewise */
    int32_t                      max_tokens;    /* of the message; -1: what
                                                   the context leaves */
    ngx_int_t                    model;         /* -1: not resolved yet */
    ngx_str_t                    name;          /* of it, then */
    ngx_int_t                    place;         /* of its figures; -1: they
                                                   are gone */
    llm_api_usage_t              usage;         /* once api is freed */
    uint64_t                     first_us;      /* the first token came */
    uint64_t                     latest_us;     /* the latest one */
    uint64_t                     ended_us;      /* no event comes any more */
    uint64_t                     predicted_us;  /* see START of llm_event_t */
    llm_period_t                 prepared;      /* see llm_event_t */

    unsigned                     stream:1;
    unsigned                     streaming:1;   /* it counts in the worker's
                                                   streams */
    unsigned                     started:1;     /* START has come */
    unsigned                     ended:1;       /* no event will come */
    unsigned                     done:1;        /* the last one was DONE */
    unsigned                     complete:1;    /* all output is gathered */
    unsigned                     broken:1;      /* a part is missing for lack
                                                   of memory */
    unsigned                     failed:1;      /* before its header went out */
    unsigned                     submitted:1;   /* the engine has had it */
    unsigned                     computed:1;    /* and runs its model for it */
    unsigned                     is_dirty:1;
    unsigned                     paused:1;
    unsigned                     gzip:1;        /* its body is compressed so */
};


/* the configuration of an event: of the worker's connection, or of a timer
   that has it as its data */
#define ngx_http_llm_event_conf(ev)                                           \
    ((ngx_http_llm_main_conf_t *) ((ngx_connection_t *) (ev)->data)->data)


/*
 * A body that is being parsed to a message, in r->pool.  The event loop fills
 * it, then a thread reads ctx->reply->endpoint, bufs, size, unpacked and conf,
 * and writes api, msg, err and alias, which the event loop reads afterwards.
 * Only the event loop uses parsing and gone.
 */

typedef struct {
    ngx_http_llm_ctx_t          *ctx;
    ngx_chain_t                 *bufs;
    size_t                       size;
    size_t                       unpacked;      /* the most bytes that it may
                                                   have; 0: it is no gzip */
    llm_api_conf_t               conf;

    llm_api_t                   *api;           /* NULL: see err */
    llm_buf_t                    msg;
    llm_err_t                    err;
    llm_str_t                    alias;         /* that was asked for */

    ngx_uint_t                   stage;         /* the subject that is asked
                                                   next, by its index */
    uint32_t                     retry_after;   /* seconds, beside err; 0: none
                                                   are told */
    size_t                       held;          /* bytes of a message that
                                                   waits, or of an answer that
                                                   is sent again */

    ngx_http_llm_task_t          task;
    unsigned                     parsing:1;     /* a thread has it */
    unsigned                     gone:1;        /* terminated meanwhile */
    unsigned                     released:1;    /* a cleanup gives back what is
                                                   held */
} ngx_http_llm_body_t;


extern ngx_module_t  ngx_http_llm_module;
extern ngx_module_t  ngx_llm_module;


#include "http/request/ngx_http_llm_stage.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/access/ngx_http_llm_access.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/worker/ngx_http_llm_worker.h"
#include "http/observe/ngx_http_llm_observe.h"


#endif /* NGX_HTTP_LLM_MODULE_H */
