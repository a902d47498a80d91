/*
 * What the files of the module share: its configuration, the state of a
 * worker, the state of a request.
 *
 *   ngx_http_llm_module.c      directives, contexts, the two modules
 *   ngx_http_llm_model.c       llm_model
 *   ngx_http_llm_models.c      the models by name, their files checked
 *   ngx_http_llm_sunset.c      models that are to go
 *   ngx_http_llm_warmup.c      what a model runs before it is ready
 *   ngx_http_llm_param.c       what all directives ask of parameters
 *   ngx_http_llm_conf.c        llm_api, llm_queue and others, their checks
 *   ngx_http_llm_zone.c        the shared zone, eventfds
 *   ngx_http_llm_process.c     engine and client, worker start and end
 *   ngx_http_llm_shutdown.c    graceful ends
 *   ngx_http_llm_slot.c        a worker's live requests
 *   ngx_http_llm_handler.c     content handlers: routing, submission
 *   ngx_http_llm_health.c      llm_health
 *   ngx_http_llm_probe.c       its probes of the models
 *   ngx_http_llm_body.c        request bodies, parsed in threads
 *   ngx_http_llm_task.c        those threads
 *   ngx_http_llm_keyfile.c     llm_api_keys, files of keys that change
 *   ngx_http_llm_keys.c        the API key of a request, what it may do
 *   ngx_http_llm_amount.c      numbers that may be variables
 *   ngx_http_llm_quota.h       token quotas, in files of their own
 *   ngx_http_llm_file.c        files that workers write
 *   ngx_http_llm_alias.c       llm_alias, names that follow a rule
 *   ngx_http_llm_defaults.c    llm_defaults
 *   ngx_http_llm_load.c        how busy the models are
 *   ngx_http_llm_admin.h       llm_admin, likewise
 *   ngx_http_llm_identity.c    model, tenant, priority of a request
 *   ngx_http_llm_idempotency.c requests that are sent again
 *   ngx_http_llm_store.c       their answers in shared memory
 *   ngx_http_llm_guard.h       llm_guard, who is asked first, likewise
 *   ngx_http_llm_route.h       for balancers: $llm_route_key and
 *                              llm_upstream, likewise
 *   ngx_http_llm_event.c       the engine's events, errors, the pace
 *   ngx_http_llm_stream.c      answers on their way, disconnects, timers
 *   ngx_http_llm_output.c      bytes on their way to a client
 *   ngx_http_llm_response.c    whole answers and errors
 *   ngx_http_llm_filter.c      x-request-id on all answers
 *   ngx_http_llm_metrics.c     llm_metrics
 *   ngx_http_llm_figures.h     what it tells of requests, llm_slo, likewise
 *   ngx_http_llm_variables.c   $llm_...
 *   ngx_http_llm_cause.c       why a request failed
 *   ngx_http_llm_capture.c     llm_capture
 *   ngx_http_llm_trace.c       the trace that a request belongs to
 *   ngx_http_llm_spans.c       what it did in it
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


#define NGX_HTTP_LLM_NO_SLOT     ((uint32_t) -1)

/* most bytes of a client's x-request-id */
#define NGX_HTTP_LLM_MAX_ID      128

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
    int                          is_default;
    int                          required;      /* nginx does not start with a
                                                   file that is unusable */

    ngx_msec_t                   probe;         /* how often; 0: never */

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
 * `busy` a thread of the worker uses what is marked so; the rest is the event
 * loop's.
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
    int                          done;          /* set by the thread, the last
                                                   that it does */
} ngx_http_llm_keyfile_t;


typedef struct ngx_http_llm_ctx_s  ngx_http_llm_ctx_t;
typedef struct ngx_http_llm_admin_s  ngx_http_llm_admin_t;
typedef struct ngx_http_llm_probe_s  ngx_http_llm_probe_t;
typedef struct ngx_http_llm_probed_s  ngx_http_llm_probed_t;
typedef struct ngx_http_llm_block_s  ngx_http_llm_block_t;
typedef struct ngx_http_llm_entry_s  ngx_http_llm_entry_t;
typedef struct ngx_http_llm_quota_s  ngx_http_llm_quota_t;
typedef struct ngx_http_llm_share_s  ngx_http_llm_share_t;
typedef struct ngx_http_llm_usage_s  ngx_http_llm_usage_t;
typedef struct ngx_http_llm_page_s  ngx_http_llm_page_t;
typedef struct ngx_http_llm_capture_s  ngx_http_llm_capture_t;
typedef struct ngx_http_llm_guard_s  ngx_http_llm_guard_t;
typedef struct ngx_http_llm_asked_s  ngx_http_llm_asked_t;
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
    u_char                       unused[64 - 5 * sizeof(ngx_atomic_t)];
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


typedef struct {
    ngx_array_t                  models;        /* ngx_http_llm_model_t */
    llm_api_model_t             *api_models;    /* [models.nelts] */
    ngx_array_t                  uses;          /* ngx_http_llm_loc_conf_t * */
    ngx_array_t                  keyfiles;      /* ngx_http_llm_keyfile_t * */
    ngx_array_t                  aliases;       /* ngx_http_llm_alias_t *, of
                                                   all levels */
    ngx_http_llm_admin_t        *admin;         /* NULL: there is none */
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

    ngx_int_t                    request_id;    /* index of $request_id */
    ngx_int_t                    client_id;     /* $http_x_request_id */
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
    uint32_t                     nworkers;
    int                         *fds;           /* [nworkers + 1], the last
                                                   one is the engine's */
    void                        *affinity;      /* cpu_set_t of the master */

    ngx_http_llm_counters_t     *counters;      /* [nworkers] shared */
    ngx_http_llm_probed_t       *probed;        /* [models] shared */
    ngx_http_llm_stats_t        *figures;

    ngx_http_llm_worker_t       *worker;        /* NULL in the master */
} ngx_http_llm_main_conf_t;


typedef struct {
    uint64_t                     allowed;       /* bit for each model */
    ngx_int_t                    fallback;      /* index, -1: none */
    size_t                       prefix;        /* bytes of the URI in front of
                                                   the API's path */
    ngx_str_t                   *names;         /* as written, until checked */
    ngx_uint_t                   nnames;
    ngx_str_t                    fallback_name;
    const char                  *directive;     /* the one that needs a
                                                   model */
    ngx_http_handler_pt          handler;       /* its own ... */
    ngx_http_core_loc_conf_t    *core;          /* ... of this location */
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
    size_t                       stream_buffer;
    ngx_flag_t                   ignore_client_abort;
    ngx_flag_t                   intercept_errors;
    size_t                       capture;       /* 0: off */

    ngx_http_llm_keyfile_t      *keyfile;       /* NULL: off */
    ngx_array_t                 *aliases;       /* ngx_http_llm_alias_t *; NULL:
                                                   none */
    ngx_array_t                 *limits;        /* ngx_http_llm_limit_t; NULL:
                                                   none */
    ngx_http_llm_guard_t        *guard;         /* NULL: off */
    llm_api_preset_t            *preset;        /* llm_defaults; NULL: none */
    ngx_http_complex_value_t    *tenant;
    ngx_http_complex_value_t    *weight;
    ngx_http_complex_value_t    *priority;
    size_t                       route_message; /* bytes of it in
                                                   $llm_route_key ... */
    size_t                       route_prompt;  /* ... likewise */
} ngx_http_llm_loc_conf_t;


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
    const llm_api_endpoint_t    *endpoint;
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
    ngx_str_t                    cause;         /* the same in a word, for
                                                   logs */
    ngx_http_llm_capture_t      *capture;       /* NULL: off */
    uint32_t                     retry_after;
    uint64_t                     retry_ms;      /* the same, if it is known so
                                                   exactly */

    ngx_http_llm_share_t        *shares;        /* of token quotas */
    ngx_uint_t                   nshares;
    uint64_t                     answer_tokens; /* that were paid for */

    ngx_http_llm_asked_t        *asked;         /* the guard; NULL: it was
                                                   not */

    ngx_event_t                  timer;
    ngx_msec_t                   last_output;

    ngx_http_llm_probe_t        *probe;         /* it is one, and has no
                                                   request */
    ngx_http_llm_entry_t        *entry;         /* the answer is kept there;
                                                   NULL: it is not */

    ngx_str_t                    id;            /* of the answer */
    ngx_str_t                    request_id;    /* the client's, or id */
    ngx_str_t                    user;
    ngx_str_t                    metadata;      /* JSON */
    ngx_str_t                    tenant;
    ngx_str_t                    alias;         /* that was asked for */
    ngx_int_t                    most_tokens;   /* llm_max_tokens; -1: none */
    ngx_int_t                    most_prompt;   /* likewise */
    ngx_int_t                    model;         /* -1: not resolved yet */
    llm_api_usage_t              usage;         /* once api is freed */
    uint64_t                     first_us;      /* the first token came */
    uint64_t                     latest_us;     /* the latest one */
    uint64_t                     ended_us;      /* no event comes any more */
    uint64_t                     predicted_us;  /* see START of llm_event_t */
    llm_period_t                   prepared;      /* see llm_event_t */

    unsigned                     stream:1;
    unsigned                     started:1;     /* START has come */
    unsigned                     ended:1;       /* no event will come */
    unsigned                     done:1;        /* the last one was DONE */
    unsigned                     complete:1;    /* all output is gathered */
    unsigned                     broken:1;      /* a part is missing for lack
                                                   of memory */
    unsigned                     failed:1;      /* before its header went out */
    unsigned                     metered:1;     /* its tokens are paid for */
    unsigned                     submitted:1;   /* the engine has had it */
    unsigned                     computed:1;    /* and runs its model for it */
    unsigned                     hopeless:1;    /* it need not be tried
                                                   again */
    unsigned                     is_dirty:1;
    unsigned                     paused:1;
};


/*
 * A body that is being parsed to a message, in r->pool.  The event loop fills
 * it, then a thread reads ctx->endpoint, bufs, size and conf, and writes api,
 * msg, err and alias, which the event loop reads afterwards.  Only the event
 * loop uses parsing and gone.
 */

typedef struct {
    ngx_http_llm_ctx_t          *ctx;
    ngx_chain_t                 *bufs;
    size_t                       size;
    llm_api_conf_t               conf;

    llm_api_t                   *api;           /* NULL: see err */
    llm_buf_t                    msg;
    llm_err_t                    err;
    llm_str_t                    alias;         /* that was asked for */

    u_char                       digest[16];    /* of the request, if it may be
                                                   sent again */
    u_char                       key[16];       /* of its Idempotency-Key */
    llm_buf_t                    told;          /* what a guard is told */
    size_t                       held;          /* bytes of a message that
                                                   waits, or of an answer that
                                                   is sent again */

    ngx_http_llm_task_t          task;
    unsigned                     digested:1;    /* digest is wanted */
    unsigned                     parsing:1;     /* a thread has it */
    unsigned                     gone:1;        /* terminated meanwhile */
    unsigned                     released:1;    /* a cleanup gives back what is
                                                   held */
} ngx_http_llm_body_t;


#define NGX_HTTP_LLM_TRACE_SAMPLED  1

/* the trace of a request, in r->pool; ids are hexadecimal */

typedef struct {
    u_char                       trace[32];
    u_char                       span[16];      /* of the request */
    u_char                       parent[16];    /* zeros: none */
    ngx_uint_t                   flags;
    ngx_str_t                    state;         /* tracestate */
} ngx_http_llm_trace_t;


/* what a variable has of it */

typedef enum {
    NGX_HTTP_LLM_TRACE_ID = 0,
    NGX_HTTP_LLM_TRACE_SPAN_ID,
    NGX_HTTP_LLM_TRACE_PARENT_ID,
    NGX_HTTP_LLM_TRACE_STATE,
    NGX_HTTP_LLM_TRACE_PARENT
} ngx_http_llm_trace_e;


/* ngx_http_llm_model.c */

char *ngx_http_llm_model(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_llm_models.c */

/* index of the model with this name or alias, or -1 */
ngx_int_t ngx_http_llm_find_model(ngx_http_llm_main_conf_t *mcf,
    ngx_str_t *name);
/* of the configuration that a reload replaces; NULL: there is none */
ngx_http_llm_main_conf_t *ngx_http_llm_old_conf(ngx_conf_t *cf);
/* ngx_str_t and llm_str_t differ only in the sign of char */
llm_str_t ngx_http_llm_text(ngx_str_t *s);
/* fills mcf->api_models; broken files are named in the log */
char *ngx_http_llm_check_models(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_warmup.c */

/* the file of the i'th model's warm-up, if it has one */
char *ngx_http_llm_read_warmup(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t i);

/* ngx_http_llm_sunset.c */

/* a value of deprecated= or sunset=; NGX_ERROR: it is no date */
ngx_int_t ngx_http_llm_read_date(ngx_str_t *value, ngx_http_llm_date_t *date);
/* warns of what is over, or soon will be, and of successors that there are
   not; NGX_CONF_ERROR if dates contradict each other */
char *ngx_http_llm_check_sunset(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);
/* Deprecation, Sunset and Link, if the request's model has them */
ngx_int_t ngx_http_llm_sunset_headers(ngx_http_request_t *r);

/* ngx_http_llm_param.c */

/* an error if a parameter, from the one of this number on, is there twice */
char *ngx_http_llm_once(ngx_conf_t *cf, ngx_uint_t first);
/* for messages: the parameter that s is the end of */
ngx_str_t *ngx_http_llm_whole(ngx_conf_t *cf, ngx_str_t *s);
/* what stands behind the parameter's name, which has so many bytes */
char *ngx_http_llm_param_time(ngx_conf_t *cf, ngx_str_t *value, size_t name,
    ngx_msec_t *ms);
char *ngx_http_llm_param_size(ngx_conf_t *cf, ngx_str_t *value, size_t name,
    size_t min, size_t max, size_t *size);
/* the most of shared memory, which nginx maps without saying for what */
size_t ngx_http_llm_machine_memory(void);
/* may it be a name? */
ngx_uint_t ngx_http_llm_is_text(ngx_str_t *s);
/* post handlers; of check_size() with a ngx_http_llm_size_min_t */
char *ngx_http_llm_check_size(ngx_conf_t *cf, void *post, void *data);
char *ngx_http_llm_check_time(ngx_conf_t *cf, void *post, void *data);

/* ngx_http_llm_conf.c */

char *ngx_http_llm_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llm_queue(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llm_metrics(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llm_tenant(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llm_priority(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* registers a location that needs models */
char *ngx_http_llm_use(ngx_conf_t *cf, ngx_http_llm_loc_conf_t *llcf,
    ngx_http_handler_pt handler);
/* names to indices, once the whole configuration is read */
char *ngx_http_llm_check_uses(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf);
/* warns of files that the workers' user cannot read, or write */
void ngx_http_llm_check_access(ngx_cycle_t *cycle);

/* ngx_http_llm_keyfile.c */

char *ngx_http_llm_api_keys(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* a worker begins to look after changes, and ends */
void ngx_http_llm_init_keys(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log);
void ngx_http_llm_stop_keys(ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_keys.c */

/* the valid key of a request, where its location has keys, or NULL */
const llm_key_t *ngx_http_llm_key(ngx_http_request_t *r);
/* what a client proves itself by; len 0: nothing */
void ngx_http_llm_find_secret(ngx_http_request_t *r, ngx_str_t *s);
/* adds the access phase's handler */
ngx_int_t ngx_http_llm_add_access(ngx_conf_t *cf);
/* $llm_key, $llm_key_NAME */
ngx_int_t ngx_http_llm_key_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/* ngx_http_llm_amount.c */

/* plain: a number; else it may have "/s", "/m" or "/h" behind it */
char *ngx_http_llm_set_amount(ngx_conf_t *cf, ngx_http_llm_amount_t *a,
    ngx_uint_t plain, ngx_str_t *s);
/* what it is for a request; NGX_DECLINED: there is none, or its value is
   empty; NGX_ERROR: no memory, or it is no number, which is logged */
ngx_int_t ngx_http_llm_amount(ngx_http_request_t *r, ngx_http_llm_amount_t *a,
    ngx_uint_t plain, llm_rate_t *rate);
/* llm_max_tokens, and what it is for a request; NGX_ERROR: see err */
char *ngx_http_llm_max_tokens(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_int_t ngx_http_llm_find_most(ngx_http_llm_ctx_t *ctx, llm_err_t *err);

/* ngx_http_llm_quota_conf.c */

char *ngx_http_llm_token_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llm_token_limit(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
/* names of zones to zones, once the whole configuration is read */
char *ngx_http_llm_check_quotas(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_account.c */

/* gives back what a dead worker, whose place this one takes, had reserved */
void ngx_http_llm_sweep_quotas(ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_file.c */

/* writes a file beside it, which takes its place; *err: what cannot be
   written */
int ngx_http_llm_replace_file(const char *what, ngx_str_t *path,
    llm_buf_t *text, llm_err_t *err);

/* ngx_http_llm_usage.c */

/* worker 0 begins to write files of usage, and ends */
ngx_int_t ngx_http_llm_usage_init(ngx_http_llm_main_conf_t *mcf,
    ngx_log_t *log);
void ngx_http_llm_usage_stop(ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_quota.c; err is set if NGX_ERROR is returned */

/* before the body is read */
ngx_int_t ngx_http_llm_quota_begin(ngx_http_llm_ctx_t *ctx, llm_err_t *err);
/* once the tokens of the prompt are known, and the most that the answer may
   have */
ngx_int_t ngx_http_llm_quota_charge(ngx_http_llm_ctx_t *ctx, uint64_t prompt,
    uint64_t answer, llm_err_t *err);
/* it begins to run */
void ngx_http_llm_quota_start(ngx_http_llm_ctx_t *ctx, uint32_t prompt,
    uint32_t cached);
/* n tokens more were generated */
void ngx_http_llm_quota_pay(ngx_http_llm_ctx_t *ctx, uint64_t n);
/* no more will be: gives back what was not used; it may be called again */
void ngx_http_llm_quota_end(ngx_http_llm_ctx_t *ctx);

/* ngx_http_llm_quota_head.c */

/* x-ratelimit-... */
ngx_int_t ngx_http_llm_quota_headers(ngx_http_request_t *r);

/* ngx_http_llm_zone.c */

char *ngx_http_llm_add_zone(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf);
char *ngx_http_llm_size_zone(ngx_cycle_t *cycle);

/* ngx_http_llm_process.c */

/* the configuration of an event: of the worker's connection, or of a timer */
ngx_http_llm_main_conf_t *ngx_http_llm_event_conf(ngx_event_t *ev);
ngx_int_t ngx_http_llm_init_module(ngx_cycle_t *cycle);
ngx_int_t ngx_http_llm_init_process(ngx_cycle_t *cycle);
void ngx_http_llm_exit_process(ngx_cycle_t *cycle);
/* does an engine or a client run in this process? */
ngx_uint_t ngx_http_llm_serves(void);

/* ngx_http_llm_shutdown.c */

void ngx_http_llm_init_shutdown(ngx_http_llm_worker_t *w);
/* this worker got QUIT */
void ngx_http_llm_begin_shutdown(ngx_http_llm_main_conf_t *mcf);
/* live requests get an error and end */
void ngx_http_llm_end_requests(ngx_http_llm_worker_t *w);
/* adds a phase handler that counts requests as soon as they are in a llm_api
   location */
ngx_int_t ngx_http_llm_add_phases(ngx_conf_t *cf);
/* has it been in a llm_api location? */
ngx_uint_t ngx_http_llm_is_counted(ngx_http_request_t *r);

/* ngx_http_llm_slot.c */

ngx_int_t ngx_http_llm_take_slot(ngx_http_llm_ctx_t *ctx);
void ngx_http_llm_free_slot(ngx_http_llm_ctx_t *ctx);

/* ngx_http_llm_handler.c */

ngx_int_t ngx_http_llm_api_handler(ngx_http_request_t *r);
/* a request's state, from here to its end */
ngx_http_llm_ctx_t *ngx_http_llm_create_ctx(ngx_http_request_t *r);
/* finds the endpoint; NGX_DECLINED: there is none */
ngx_int_t ngx_http_llm_route(ngx_http_request_t *r,
    ngx_http_llm_loc_conf_t *llcf, llm_api_route_t *to);
/* fills conf with what the request may use, for the parser, which leaves in
   alias what was asked for; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_api_conf(ngx_http_llm_ctx_t *ctx, llm_api_conf_t *conf,
    llm_str_t *alias);
/* the body was parsed: submits the request, or answers why not */
void ngx_http_llm_parsed(ngx_http_llm_body_t *body);
/* sends it to the engine, once its guard has let it pass */
void ngx_http_llm_submit(ngx_http_llm_body_t *body);
/* NGX_DECLINED: it is a GET or HEAD, its body was discarded; else the answer's
   code */
ngx_int_t ngx_http_llm_get_only(ngx_http_request_t *r);

/* ngx_http_llm_health.c */

char *ngx_http_llm_health(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_int_t ngx_http_llm_health_handler(ngx_http_request_t *r);

/* ngx_http_llm_probe.c */

/* a location wants its models probed */
void ngx_http_llm_want_probes(ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_loc_conf_t *llcf);
/* where their results are told */
ngx_int_t ngx_http_llm_create_probed(ngx_http_llm_main_conf_t *mcf,
    ngx_slab_pool_t *shpool);
/* worker 0 begins, and ends */
ngx_int_t ngx_http_llm_init_probes(ngx_http_llm_main_conf_t *mcf,
    ngx_log_t *log);
void ngx_http_llm_stop_probes(ngx_http_llm_worker_t *w);
void ngx_http_llm_probe_event(ngx_http_llm_probe_t *p,
    const llm_event_t *ev);
/* why a model that is loaded cannot serve, or NULL */
const char *ngx_http_llm_probe_result(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t i);

/* ngx_http_llm_body.c */

void ngx_http_llm_init_bodies(void);
/* the body has been read: parses it, at once or in a thread */
void ngx_http_llm_body_handler(ngx_http_request_t *r);
/* counts what a request that waits holds from now on, 0: nothing; NGX_ERROR
   and body->err, which says why: it is more than there is room for */
ngx_int_t ngx_http_llm_hold(ngx_http_llm_body_t *body, size_t size,
    const char *why);

/* ngx_http_llm_alias.c */

char *ngx_http_llm_alias(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llm_merge_aliases(ngx_conf_t *cf,
    ngx_http_llm_loc_conf_t *prev, ngx_http_llm_loc_conf_t *conf);
/* as requests name models: without regard to case */
ngx_uint_t ngx_http_llm_same_name(ngx_str_t *a, ngx_str_t *b);
/* the model that has this name or alias=, in any case; -1: none */
ngx_int_t ngx_http_llm_pinned(ngx_http_llm_main_conf_t *mcf,
    ngx_str_t *name);
/* once all models are known */
char *ngx_http_llm_check_aliases(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);
/* those of the location alone lead to its models */
char *ngx_http_llm_check_own_aliases(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_loc_conf_t *llcf);
/* where the location's aliases lead for this request; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_make_aliases(ngx_http_llm_ctx_t *ctx,
    llm_api_conf_t *conf);
/* the request asked for this alias, or for none */
void ngx_http_llm_asked(ngx_http_llm_ctx_t *ctx, const llm_api_conf_t *conf,
    llm_str_t name);

/* ngx_http_llm_defaults.c */

char *ngx_http_llm_defaults(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_llm_load.c */

/* $llm_load, $llm_waiting, $llm_predicted_ttft */
typedef enum {
    NGX_HTTP_LLM_LOAD_LOAD = 0,
    NGX_HTTP_LLM_LOAD_WAITING,
    NGX_HTTP_LLM_LOAD_TTFT
} ngx_http_llm_load_e;

ngx_int_t ngx_http_llm_load_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/* ngx_http_llm_admin.c, ngx_http_llm_admin_state.c and
   ngx_http_llm_admin_handler.c; see ngx_http_llm_admin.h */

char *ngx_http_llm_admin(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llm_check_admin(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);
/* has it given the model another file, which can be used? */
ngx_uint_t ngx_http_llm_admin_replaces(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_uint_t i);
/* a new zone begins with what llm_admin has made of the models */
void ngx_http_llm_admin_apply(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log);
/* worker 0 begins, before its engine does, and ends */
void ngx_http_llm_init_admin(ngx_http_llm_main_conf_t *mcf, ngx_log_t *log);
void ngx_http_llm_stop_admin(ngx_http_llm_main_conf_t *mcf);
ngx_int_t ngx_http_llm_admin_handler(ngx_http_request_t *r);

/* ngx_http_llm_identity.c */

/* the tenant that the request counts for, as far as it is known by now;
   NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_find_tenant(ngx_http_llm_ctx_t *ctx);
/* model, tenant and priority of a request that was parsed; NGX_ERROR: no
   memory, see body->err */
ngx_int_t ngx_http_llm_identify(ngx_http_llm_body_t *body);
/* NGX_ERROR: it is none; empty it is 0 */
ngx_int_t ngx_http_llm_read_priority(ngx_str_t *value, ngx_int_t *priority);
/* of a tenant that has a name */
uint64_t ngx_http_llm_hash_tenant(ngx_str_t *tenant);
void ngx_http_llm_set_deadlines(ngx_http_llm_ctx_t *ctx, llm_request_t *msg);

/* ngx_http_llm_store.c; with the store's lock held, but for the first two */

char *ngx_http_llm_idempotency(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_llm_add_store(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf);
/* the entry of this key, if it is still valid, or NULL */
ngx_http_llm_entry_t *ngx_http_llm_store_find(ngx_shm_zone_t *zone,
    u_char *key);
/* a new one, this process is its owner; NULL: there is no room */
ngx_http_llm_entry_t *ngx_http_llm_store_create(ngx_shm_zone_t *zone,
    u_char *key, u_char *digest);
/* NGX_ERROR: the answer is too large, or there is no room */
ngx_int_t ngx_http_llm_store_append(ngx_shm_zone_t *zone,
    ngx_http_llm_entry_t *e, const char *data, size_t len);
void ngx_http_llm_store_remove(ngx_shm_zone_t *zone,
    ngx_http_llm_entry_t *e);
/* appends the answer */
void ngx_http_llm_store_copy(ngx_http_llm_entry_t *e, llm_buf_t *to);

/* ngx_http_llm_idempotency.c */

/* has the request a key? */
ngx_uint_t ngx_http_llm_idem_wants(ngx_http_request_t *r);
/* NGX_OK: it is to be computed; NGX_DONE: its answer is sent, or will be;
   NGX_ERROR: it is refused, see body->err */
ngx_int_t ngx_http_llm_idem_begin(ngx_http_llm_body_t *body);
/* for a request with an entry: more of its answer, its end, and its cleanup */
void ngx_http_llm_idem_add(ngx_http_llm_ctx_t *ctx, const char *data,
    size_t len);
void ngx_http_llm_idem_end(ngx_http_llm_ctx_t *ctx, ngx_uint_t complete);
void ngx_http_llm_idem_finish(ngx_http_llm_ctx_t *ctx);

/* ngx_http_llm_guard_ask.c: adds a phase handler, where a guard is used */
ngx_int_t ngx_http_llm_add_guard(ngx_conf_t *cf);

/* ngx_http_llm_guard.c */

char *ngx_http_llm_guard(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* before the body is parsed */
ngx_int_t ngx_http_llm_guard_init(ngx_http_llm_body_t *body);
/* NGX_OK: the request passes; NGX_DONE: its guard is asked, and submits it
   again; NGX_ERROR: it is refused, see body->err */
ngx_int_t ngx_http_llm_ask(ngx_http_llm_body_t *body);

/* ngx_http_llm_task.c */

ngx_int_t ngx_http_llm_init_tasks(ngx_http_llm_tasks_t *t, int fd,
    ngx_log_t *log);
ngx_int_t ngx_http_llm_run_task(ngx_http_llm_tasks_t *t,
    ngx_http_llm_task_t *task, ngx_log_t *log);
void ngx_http_llm_finish_tasks(ngx_http_llm_tasks_t *t);
void ngx_http_llm_stop_tasks(ngx_http_llm_tasks_t *t);

/* ngx_http_llm_metrics.c */

ngx_int_t ngx_http_llm_metrics_handler(ngx_http_request_t *r);

/* ngx_http_llm_figures.c */

ngx_int_t ngx_http_llm_create_figures(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);
/* before the engine's zone is added: these are there first */
char *ngx_http_llm_add_figures(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);
/* the engine's zone counts in what is kept; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_keep_figures(ngx_http_llm_main_conf_t *mcf);
/* where a worker counts what it writes */
ngx_atomic_t *ngx_http_llm_writes(ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t worker);
/* for llm_request_t; 0: tenants are not counted */
uint32_t ngx_http_llm_tenant_account(ngx_http_llm_ctx_t *ctx);

/* ngx_http_llm_count.c: adds handlers that count requests */
ngx_int_t ngx_http_llm_add_counting(ngx_conf_t *cf);

/* ngx_http_llm_slo.c */

char *ngx_http_llm_slo(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_http_llm_event.c */

/* sets how many bytes of a stream may be unread in the ring */
void ngx_http_llm_set_window(ngx_http_llm_ctx_t *ctx, llm_request_t *msg);
/* takes an event of the engine; it only gathers output and never finalizes */
void ngx_http_llm_event(void *data, const llm_event_t *ev);
/* gathers what was written into the worker's scratch */
void ngx_http_llm_take_scratch(ngx_http_llm_ctx_t *ctx);
/* the request has something to send, or ends */
void ngx_http_llm_mark_dirty(ngx_http_llm_ctx_t *ctx);
/* ends the request with an error of our own; it is marked dirty */
void ngx_http_llm_fail(ngx_http_llm_ctx_t *ctx, int status,
    const char *code, const char *msg);
/* after each output: a paused sequence goes on if its client caught up */
void ngx_http_llm_set_pace(ngx_http_llm_ctx_t *ctx);
void ngx_http_llm_cleanup(void *data);
void ngx_http_llm_pool_cleanup(void *data);

/* ngx_http_llm_stream.c */

/* a request waits: for its client to leave, and for its timer, which the
   caller sets */
void ngx_http_llm_watch(ngx_http_llm_ctx_t *ctx, char *action,
    ngx_event_handler_pt handler, void *data);
/* the request is submitted: wait for events, watch the client */
void ngx_http_llm_wait(ngx_http_llm_ctx_t *ctx);
/* sends the output that events have left in each dirty request */
void ngx_http_llm_send_dirty(ngx_http_llm_worker_t *w);

/* ngx_http_llm_output.c */

/* adds output; NGX_ERROR: no memory, a part may have been added */
ngx_int_t ngx_http_llm_gather(ngx_http_llm_ctx_t *ctx, const char *data,
    size_t len);
/* bytes gathered and not handed over yet */
off_t ngx_http_llm_gathered(ngx_http_llm_ctx_t *ctx);
/* passes all that was gathered to nginx; last: it is the answer's end */
ngx_int_t ngx_http_llm_hand_over(ngx_http_llm_ctx_t *ctx, ngx_uint_t last);
/* frees what nginx has sent; called after each output */
void ngx_http_llm_free_sent(ngx_http_llm_ctx_t *ctx);
/* frees all blocks, when nothing points to the bytes any more */
void ngx_http_llm_free_blocks(ngx_http_llm_ctx_t *ctx);

/* ngx_http_llm_response.c */

ngx_int_t ngx_http_llm_add_header(ngx_http_request_t *r, const char *name,
    const char *value, size_t len);
ngx_int_t ngx_http_llm_add_number(ngx_http_request_t *r, const char *name,
    uint64_t n);
/* the client's x-request-id if it is sane, else $request_id */
ngx_int_t ngx_http_llm_request_id(ngx_http_request_t *r, ngx_str_t *id);
/* x-request-id, and where the endpoint's clients look for it; for the filter,
   by which all answers have it */
ngx_int_t ngx_http_llm_add_id(ngx_http_request_t *r);
/* a whole answer; frees body, r->pool gets a copy */
ngx_int_t ngx_http_llm_send_body(ngx_http_request_t *r, ngx_uint_t status,
    const char *type, llm_buf_t *body);
/* an error in OpenAI's shape, or the error_page of its status; the result
   goes to ngx_http_finalize_request() */
ngx_int_t ngx_http_llm_send_error(ngx_http_request_t *r, llm_err_t *err,
    uint32_t retry_after);

/* may a later error be handled by an error_page, which needs the body? */
ngx_uint_t ngx_http_llm_may_hand_on(ngx_http_request_t *r);
/* the beginning of a client's text for a log, escaped by llm_clean() */
u_char *ngx_http_llm_clean(ngx_http_request_t *r, ngx_str_t *value);

/* ngx_http_llm_filter.c */

void ngx_http_llm_add_filter(void);

/* ngx_http_llm_variables.c */

ngx_int_t ngx_http_llm_add_variables(ngx_conf_t *cf);
/* the state of a request to a llm_api location, the last one that it came to,
   or NULL */
ngx_http_llm_ctx_t *ngx_http_llm_find_ctx(ngx_http_request_t *r);

/* microseconds from a request's arrival to its first token, 0: it had none, and
   to its latest one or its end */
void ngx_http_llm_times(ngx_http_llm_ctx_t *ctx, uint64_t *ttft,
    uint64_t *total);
/* and for each further token */
#define NGX_HTTP_LLM_NO_TPOT  UINT64_MAX
uint64_t ngx_http_llm_tpot(ngx_http_llm_ctx_t *ctx);

/* of the first choice; a request that began and did not end was aborted; NULL:
   there is none yet */
const char *ngx_http_llm_finish_reason(ngx_http_llm_ctx_t *ctx);

/* ngx_http_llm_cause.c */

void ngx_http_llm_set_cause(ngx_http_request_t *r, const llm_err_t *err);
/* in a word; empty: it has not failed, or nginx or the client ended it */
ngx_str_t ngx_http_llm_cause(ngx_http_request_t *r);
/* a line in the error log, without any text of the client's */
void ngx_http_llm_log_error(ngx_http_request_t *r, const llm_err_t *err);

/* ngx_http_llm_capture.c */

char *ngx_http_llm_capture(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* a body of this size is going to be parsed */
ngx_int_t ngx_http_llm_capture_begin(ngx_http_llm_ctx_t *ctx, size_t size);
/* keeps the body, in any thread, and what a TEXT event says */
void ngx_http_llm_capture_input(ngx_http_llm_ctx_t *ctx, u_char *p,
    size_t len);
void ngx_http_llm_capture_output(ngx_http_llm_ctx_t *ctx,
    const llm_event_t *ev);
/* $llm_input; $llm_output where data is set */
ngx_int_t ngx_http_llm_capture_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/* ngx_http_llm_trace.c */

/* of any request; NULL: no memory, or no random numbers */
ngx_http_llm_trace_t *ngx_http_llm_trace(ngx_http_request_t *r);
/* data: ngx_http_llm_trace_e */
ngx_int_t ngx_http_llm_trace_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/* ngx_http_llm_spans.c */

/* $llm_spans */
ngx_int_t ngx_http_llm_spans_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


extern ngx_module_t  ngx_http_llm_module;
extern ngx_module_t  ngx_llm_module;


#endif /* NGX_HTTP_LLM_MODULE_H */
