/*
 * The engine's threads and what they share.
 *
 *   scheduler     one: takes messages from the workers' rings, steps the
 *                 models, writes events; owns everything below unless noted
 *   preparation   several: from a request's message to tokens and grammars.
 *                 One is for small messages and compiles no grammars, two are
 *                 for transcriptions, of short and of long sounds; the others
 *                 are for all other messages, and one of them runs at a time
 *                 (preparers.c)
 *   loaders       one for each instance that is being loaded, or that was
 *                 replaced and is being freed
 *
 * A model of the configuration is served by one llm_instance_t, in
 * e->models[].  A command may load another file into a second instance, which
 * replaces the first one when it is ready; the first one is freed when its
 * last request has ended.  A request belongs to one instance (r->instance), so
 * its text comes from one file.
 *
 * Requests travel between the scheduler and the preparation threads in a queue
 * and a list under one mutex.  A loader fills or frees its llm_instance_t and
 * then sets `loaded`; no other thread touches those fields meanwhile.
 */

#ifndef LLM_ENGINE_INTERNAL_H
#define LLM_ENGINE_INTERNAL_H

#include "engine/base/thread.h"
#include "engine/serve/commands.h"
#include "engine/serve/load.h"
#include "engine/serve/turns.h"
#include "engine/serve/workers.h"

/* threads of which each takes one list alone; the others run one at a time,
   each may hold one paused compilation */
#define LLM_ENGINE_ALONE      3
#define LLM_ENGINE_OTHERS     10
#define LLM_ENGINE_PREPARERS  (LLM_ENGINE_ALONE + LLM_ENGINE_OTHERS)

/* most of the others that may have requests of the list MEDIA at a time, and of
   LARGE: the rest is for text.  Decoders: theirs and those of transcriptions */
#define LLM_ENGINE_MEDIA      3
#define LLM_ENGINE_LARGE      3
#define LLM_ENGINE_DECODERS   (LLM_ENGINE_MEDIA + LLM_ENGINE_LARGE + 2)

/* memory of all requests in bytes, unless the configuration sets it */
#define LLM_ENGINE_MAX_BYTES  ((size_t) 256 << 20)

/* the thread that reads the GPUs' metrics from NVML */
typedef struct llm_gpu_s  llm_gpu_t;

/* a preparation thread; only the thread itself uses the last five fields */
typedef struct {
    llm_engine_t        *engine;
    uint32_t             alone;         /* llm_turn_bit() of the list that it
                                           takes alone, and without grammars;
                                           0: it is one of the others */
    pthread_t            thread;
    llm_req_t           *job;
    llm_turn_t           from;          /* the list from which it came */
    uint64_t             rest_us;       /* time when its decoder began */
    uint64_t             charged_us;    /* thread's CPU time up to which tenants
                                           have been charged */
    uint64_t             slice_us;      /* thread's CPU time from which it lets
                                           others go first */
} llm_preparer_t;

struct llm_engine_s {
    llm_zone_t          *zone;
    const llm_kept_t    *kept;          /* counters that outlive the zone, or
                                           NULL */
    llm_engines_t       *engines;
    uint32_t             place;         /* index in engines; UINT32_MAX: not
                                           in it */
    uint32_t             epoch;
    int                  fd;
    const char          *backend_dir;   /* owned */
    llm_devices_t       *devices;       /* that its models share; owned */
    llm_media_pool_t    *media;         /* decodes images; owned */
    llm_log_pt           log;
    void                *log_data;

    _Atomic int          stop;          /* set by stop(), read by all threads */
    _Atomic int          lost;          /* a GPU's context is lost and the
                                           errors of its requests are in the
                                           rings; set by the scheduler, read
                                           by worker 0 */

    llm_instance_t     **models;        /* [n_models] */
    llm_running_t       *running;       /* [n_models] command of each model */
    uint32_t             n_models;
    llm_instance_t      *instances;     /* list of all: those of models[], those
                                           that are being loaded to replace
                                           one, and replaced ones */
    llm_peer_t          *peers;         /* [n_peers] */
    uint32_t             n_peers;
    llm_internal_client_t  internal;
    uint32_t             n_checks;      /* calls of llm_engine_check_peers() */
    llm_zone_counts_t    seen;          /* used by llm_engine_audit() alone */

    llm_gpu_t           *gpu;           /* NULL: no model has run on a GPU, or
                                           the thread could not be started */
    pthread_t            scheduler;
    llm_preparer_t       preparers[LLM_ENGINE_PREPARERS];
    uint32_t             n_preparers;

    pthread_mutex_t      lock;          /* guards the next eight fields */
    pthread_cond_t       work;          /* any of them has changed */
    llm_turns_t          turns;         /* requests to be prepared */
    llm_jobs_t           prepared;      /* requests that come back */
    llm_preparer_t      *runs;          /* of the others, the one that runs;
                                           NULL: none */
    uint32_t             n_idle;        /* others without a job */
    uint32_t             n_media;       /* others with one of MEDIA */
    uint32_t             n_large;       /* and of LARGE */
    int                  quit;

    llm_req_t           *live;          /* list of all requests */
    uint32_t             n_live;
    size_t               n_bytes;       /* memory that they take, as last
                                           counted */
    size_t               max_bytes;
    uint64_t             serial;        /* of the last request */
    llm_jobs_t           doomed;        /* requests whose ERROR waits for room
                                           in a ring */
    llm_jobs_t           asking;        /* requests whose PREPARED waits for
                                           room */
    llm_jobs_t           answered;      /* requests whose answer waits for
                                           room */
    uint64_t             check_us;      /* when to check deadlines and workers
                                           next, llm_now_us() */
};


/* gpu.c: starts the thread that writes the GPUs' metrics into the zone; NULL:
   no memory or no thread */
llm_gpu_t *llm_gpu_start(llm_engine_t *e);
/* gpu may be NULL.  A thread that hangs is left running and may use the zone
   later: the zone stays as long as the process. */
void llm_gpu_stop(llm_gpu_t *gpu);

/* common.c */
void llm_engine_log(llm_engine_t *e, int level, const char *fmt, ...)
    llm_printf_like(3, 4);
/* makes worker 0 exit, as a GPU is lost; called by the scheduler */
void llm_engine_lose(llm_engine_t *e);
/* wakes the scheduler if it sleeps; from any thread */
void llm_engine_wake(llm_engine_t *e);
/* the same, as `masked` of llm_sched_conf_t */
void llm_engine_masked(void *data);
/* writes into the zone how many requests of the model use replaced files;
   returns the number of its replaced instances */
uint32_t llm_engine_show_replaced(llm_engine_t *e, uint32_t model);

/* loop.c */
void *llm_engine_main(void *engine);

#endif /* LLM_ENGINE_INTERNAL_H */
