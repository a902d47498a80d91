/*
 * The engine's threads and what they share.
 *
 *   scheduler     one: takes messages from the workers' rings, steps the
 *                 models, writes events; owns everything below unless said
 *   preparation   from a request's message to tokens: one thread for small
 *                 messages, and some of which one runs at a time, for all, who
 *                 compile grammars, too (preparers.c)
 *   loaders       one for each model that is loading, or that another file has
 *                 taken the place of and that is freed
 *
 * A model of the configuration is served by one llm_instance_t, which
 * e->models[] has.  A command may load another file: a second one beside it,
 * which takes its place when it is ready; the first one ends with its
 * requests.  A request belongs to one of them (r->instance), and its text is of
 * that alone.
 *
 * Requests travel between scheduler and preparation in a queue and a list
 * under one mutex.  A loader fills its llm_instance_t, or empties it, and then
 * sets `loaded`; no other thread touches those fields meanwhile.
 */

#ifndef LLM_ENGINE_INTERNAL_H
#define LLM_ENGINE_INTERNAL_H

#include "engine/base/thread.h"
#include "engine/serve/commands.h"
#include "engine/serve/load.h"
#include "engine/serve/turns.h"
#include "engine/serve/workers.h"

/* the first is for small messages; of the others one runs at a time, and each
   can have a compilation that was put aside */
#define LLM_ENGINE_PREPARERS  5

/* memory of all requests, if the configuration sets none */
#define LLM_ENGINE_MAX_BYTES  ((size_t) 256 << 20)

/* the thread that asks NVML */
typedef struct llm_gpu_s  llm_gpu_t;

/* a preparation thread; it alone uses the last three */
typedef struct {
    llm_engine_t        *engine;
    int                  small;         /* it takes small messages only, and
                                           compiles no grammar */
    pthread_t            thread;
    llm_req_t           *job;
    uint64_t             charged_us;    /* its CPU time for which somebody has
                                           paid */
    uint64_t             slice_us;      /* and at which others may go on */
} llm_preparer_t;

struct llm_engine_s {
    llm_zone_t          *zone;
    const llm_kept_t    *kept;          /* where counters are, or NULL */
    llm_engines_t       *engines;
    uint32_t             place;         /* in that table */
    uint32_t             epoch;
    int                  fd;
    const char          *backend_dir;   /* owned */
    llm_devices_t       *devices;       /* that its models share; owned */
    llm_log_pt           log;
    void                *log_data;

    _Atomic int          stop;          /* set by stop(), read by all */
    _Atomic int          lost;          /* a GPU is lost, and the errors of its
                                           requests are in the rings: the
                                           scheduler sets it, worker 0 reads
                                           it */

    llm_instance_t     **models;
    llm_running_t       *running;       /* the commands of these */
    uint32_t             n_models;
    llm_instance_t      *instances;     /* these, other files that are being
                                           loaded, and replaced ones */
    llm_peer_t          *peers;
    uint32_t             n_peers;
    llm_internal_client_t  internal;
    uint32_t             n_checks;      /* of the peers */
    llm_zone_counts_t    seen;          /* by llm_engine_audit() */

    llm_gpu_t           *gpu;           /* NULL: no model has run on one */
    pthread_t            scheduler;
    llm_preparer_t       preparers[LLM_ENGINE_PREPARERS];
    uint32_t             n_preparers;

    pthread_mutex_t      lock;          /* guards the next six */
    pthread_cond_t       work;          /* any of them has changed */
    llm_turns_t          turns;         /* requests to be prepared */
    llm_jobs_t           prepared;
    llm_preparer_t      *runs;          /* which of those that are not for small
                                           messages, or NULL */
    uint32_t             n_idle;        /* of these, which have no job */
    int                  quit;

    llm_req_t           *live;          /* all requests */
    uint32_t             n_live;
    size_t               n_bytes;       /* memory that they take, as last
                                           counted */
    size_t               max_bytes;
    uint64_t             serial;
    llm_jobs_t           doomed;        /* requests whose errors wait for room
                                           in the rings */
    llm_jobs_t           asking;        /* those whose PREPARED does */
    llm_jobs_t           answered;      /* and those whose answers do */
    uint64_t             check_us;      /* when to check deadlines and workers
                                           next */
};


/* gpu.c: figures of the GPUs, from now on; NULL: no thread for it */
llm_gpu_t *llm_gpu_start(llm_engine_t *e);
/* gpu may be NULL; the engine's zone stays as long as the process */
void llm_gpu_stop(llm_gpu_t *gpu);

/* common.c */
void llm_engine_log(llm_engine_t *e, int level, const char *fmt, ...)
    llm_printf_like(3, 4);
/* for the scheduler: makes worker 0 end */
void llm_engine_lose(llm_engine_t *e);
/* wakes the scheduler if it sleeps; from any thread */
void llm_engine_wake(llm_engine_t *e);
/* the same for llm_sched_conf_t */
void llm_engine_masked(void *data);
/* tells the zone how many requests end with files that were replaced; how many
   of those files are there? */
uint32_t llm_engine_show_replaced(llm_engine_t *e, uint32_t model);

/* loop.c */
void *llm_engine_main(void *engine);

#endif /* LLM_ENGINE_INTERNAL_H */
