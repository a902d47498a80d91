/*
 * Worker processes, from their start to their end.
 *
 *   ngx_http_llm_zone.c      the shared zone, eventfds
 *   ngx_http_llm_process.c   engine and client, worker start and end
 *   ngx_http_llm_shutdown.c  graceful shutdown
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

/* milliseconds between checks of a worker with live requests that the engine is
   alive */
#define NGX_HTTP_LLM_WATCH       500


/* most events taken before their output is sent: what they use of their
   requests is in the CPU's cache then */
#define NGX_HTTP_LLM_SENDS       256


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
    pthread_cond_t               work;          /* signals a task in waiting, or
                                                   stop */

    /* used by the event loop and the threads, under the lock */

    ngx_queue_t                  waiting;       /* task->queue */
    ngx_queue_t                  done;
    ngx_uint_t                   nidle;         /* threads without a task */
    ngx_uint_t                   stop;

    /* used by the event loop only; fd does not change */

    int                          fd;            /* wakes the event loop */
    ngx_uint_t                   nthreads;
    pthread_t                    threads[NGX_HTTP_LLM_THREADS];
} ngx_http_llm_tasks_t;


/* a worker's counters in shared memory, a cache line for each worker: only the
   worker writes them, any worker reads them, in any order */

typedef struct {
    ngx_atomic_t                 unsent;        /* bytes of memory for output
                                                   that clients have not got */
    ngx_atomic_t                 pid;           /* 0: no process; a worker that
                                                   crashed leaves its pid, see
                                                   llm_process_lives() */
    ngx_atomic_t                 open;          /* requests, not freed yet, that
                                                   were in a llm_api location */
    ngx_atomic_t                 quitting;      /* 1: the worker got QUIT */
    ngx_atomic_t                 quit;          /* ngx_current_msec of QUIT;
                                                   written before quitting */
    ngx_atomic_t                 streams;       /* streams whose header was
                                                   sent, and that continue */
    ngx_atomic_t                 born;          /* start of the process, because
                                                   pids are reused; written
                                                   before pid */
    u_char                       unused[64 - 7 * sizeof(ngx_atomic_t)];
} ngx_http_llm_counters_t;


/* this worker, from init_process to exit_process; in the cycle's pool */

struct ngx_http_llm_worker_s {
    ngx_uint_t                   n;             /* number; worker 0 has the
                                                   engine */
    llm_client_t                *client;
    llm_engine_t                *engine;        /* NULL: not worker 0, or not
                                                   started */
    ngx_connection_t            *conn;          /* connection of the eventfd */
    ngx_http_llm_counters_t     *counters;      /* this worker's */
    ngx_atomic_t                *writes;        /* pieces of answers written, by
                                                   all workers that have had
                                                   this number */

    ngx_http_llm_slot_t         *slots;         /* [nslots], by malloc() */
    uint32_t                     nslots;
    uint32_t                     free;          /* first free slot, or
                                                   NGX_HTTP_LLM_NO_SLOT */

    ngx_http_llm_tasks_t         tasks;

    ngx_queue_t                  live;          /* ctx->live */
    ngx_queue_t                  dirty;         /* ctx->dirty */
    ngx_uint_t                   nlive;

    size_t                       held;          /* sum of body->held */

    llm_buf_t                    scratch;       /* output of one event */

    void                        *spare[NGX_HTTP_LLM_SENDS];  /* free blocks of
                                                   the smallest size, see
                                                   ngx_http_llm_output.c */
    ngx_uint_t                   nspare;

    ngx_event_t                  watch;         /* checks for a dead engine */
    ngx_event_t                  hold;          /* keeps worker 0 alive while
                                                   others need the engine */
    ngx_event_t                  cutoff;        /* ends requests shortly before
                                                   worker_shutdown_timeout */
    ngx_event_t                  lost;          /* ends this process when the
                                                   GPU's context is lost */
    ngx_event_t                  start;         /* starts the engine again */
    ngx_msec_t                   start_pause;   /* until the next start */
};


/* array of the counters of all workers, by their numbers */
#define ngx_http_llm_counters(mcf)                                            \
    ((ngx_http_llm_counters_t *) (mcf)->counters)


/* does this process serve requests? */
#define ngx_http_llm_is_worker()                                              \
    (ngx_process == NGX_PROCESS_SINGLE || ngx_process == NGX_PROCESS_WORKER)


/* what a worker calls for its requests: a constant of http/request */

struct ngx_http_llm_requests_s {
    void                       (*init)(void);
    /* takes an event of the engine; data: the main configuration */
    void                       (*event)(void *data, const llm_event_t *ev);
    /* is called with several events before event() is with each; data: the
       main configuration */
    void                       (*ahead)(void *data,
                                        const llm_event_t *const *ev,
                                        uint32_t n);
    /* sends the output of the events that were taken */
    void                       (*send)(ngx_http_llm_worker_t *w);
    /* live requests get an error and end */
    void                       (*end)(ngx_http_llm_worker_t *w);
};


/* the main configuration, from a timer whose data is the worker's connection,
   or from an event of that connection */
#define ngx_http_llm_event_conf(ev)                                           \
    ((ngx_http_llm_main_conf_t *) ((ngx_connection_t *) (ev)->data)->data)


extern ngx_module_t  ngx_llm_module;


/* ngx_http_llm_zone.c */

char *ngx_http_llm_add_zone(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf);
char *ngx_http_llm_size_zone(ngx_cycle_t *cycle);


/* ngx_http_llm_process.c */

ngx_int_t ngx_http_llm_init_module(ngx_cycle_t *cycle);
/* a worker begins: everything but the engine, which starts after all modules.
   A worker ends: requests and threads first, the engine after all modules. */
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
