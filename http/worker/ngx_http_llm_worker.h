/*
 * A process from its start to its end.
 *
 *   ngx_http_llm_zone.c      the shared zone, eventfds
 *   ngx_http_llm_process.c   engine and client, worker start and end
 *   ngx_http_llm_shutdown.c  graceful ends
 *   ngx_http_llm_task.c      threads that work for the event loop
 */

#ifndef NGX_HTTP_LLM_WORKER_H
#define NGX_HTTP_LLM_WORKER_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>

#include <pthread.h>

#include "http/conf/ngx_http_llm_conf.h"


typedef struct ngx_http_llm_ctx_s  ngx_http_llm_ctx_t;


#define NGX_HTTP_LLM_NO_SLOT     ((uint32_t) -1)

/* how often a worker with live requests checks that its engine is alive */
#define NGX_HTTP_LLM_WATCH       500


typedef struct {
    ngx_http_llm_ctx_t          *ctx;           /* NULL: the slot is free */
    uint32_t                     next;          /* next in the free list */
} ngx_http_llm_slot_t;


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

struct ngx_http_llm_worker_s {
    ngx_uint_t                   n;             /* 0: the one with the
                                                   engine */
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

    size_t                       held;          /* body->held of all */

    llm_buf_t                    scratch;       /* output of one event */

    ngx_event_t                  watch;         /* checks for a dead engine */
    ngx_event_t                  hold;          /* worker 0 while draining */
    ngx_event_t                  cutoff;        /* before the shutdown timer */
    ngx_event_t                  lost;          /* before this process ends */
    ngx_event_t                  start;         /* starts the engine again */
    ngx_msec_t                   start_pause;
};


/* of all workers, by their numbers */
#define ngx_http_llm_counters(mcf)                                            \
    ((ngx_http_llm_counters_t *) (mcf)->counters)


/* does a process with this configuration serve requests? */
#define ngx_http_llm_is_worker()                                              \
    (ngx_process == NGX_PROCESS_SINGLE || ngx_process == NGX_PROCESS_WORKER)


/* who serves requests: a constant of http/request */

struct ngx_http_llm_requests_s {
    void                       (*init)(void);
    /* takes an event of the engine; data: the main configuration */
    void                       (*event)(void *data, const llm_event_t *ev);
    /* events were taken: sends what they have left */
    void                       (*send)(ngx_http_llm_worker_t *w);
    /* live requests get an error and end */
    void                       (*end)(ngx_http_llm_worker_t *w);
};


/* the configuration of an event: of the worker's connection, or of a timer
   that has it as its data */
#define ngx_http_llm_event_conf(ev)                                           \
    ((ngx_http_llm_main_conf_t *) ((ngx_connection_t *) (ev)->data)->data)


extern ngx_module_t  ngx_llm_module;


/* ngx_http_llm_zone.c */

char *ngx_http_llm_add_zone(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf);
char *ngx_http_llm_size_zone(ngx_cycle_t *cycle);


/* ngx_http_llm_process.c */

ngx_int_t ngx_http_llm_init_module(ngx_cycle_t *cycle);
/* a worker begins: all but the engine, which is started once all modules have
   begun; ends: requests and threads first, the engine after all modules */
ngx_int_t ngx_http_llm_init_process(ngx_cycle_t *cycle);
ngx_int_t ngx_http_llm_init_engine(ngx_cycle_t *cycle);
void ngx_http_llm_exit_process(ngx_cycle_t *cycle);
void ngx_http_llm_exit_engine(ngx_cycle_t *cycle);
/* when this process began, see llm_process_lives() */
uint64_t ngx_http_llm_born(void);
/* does an engine or a client run in this process? */
ngx_uint_t ngx_http_llm_serves(void);


/* ngx_http_llm_shutdown.c */

void ngx_http_llm_init_shutdown(ngx_http_llm_worker_t *w);
/* this worker got QUIT */
void ngx_http_llm_begin_shutdown(ngx_http_llm_main_conf_t *mcf);


/* ngx_http_llm_task.c */

ngx_int_t ngx_http_llm_init_tasks(ngx_http_llm_tasks_t *t, int fd,
    ngx_log_t *log);
ngx_int_t ngx_http_llm_run_task(ngx_http_llm_tasks_t *t,
    ngx_http_llm_task_t *task, ngx_log_t *log);
void ngx_http_llm_finish_tasks(ngx_http_llm_tasks_t *t);
void ngx_http_llm_stop_tasks(ngx_http_llm_tasks_t *t);


#endif /* NGX_HTTP_LLM_WORKER_H */
