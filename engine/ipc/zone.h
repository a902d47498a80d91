/*
 * The layout of the zone: what workers and engine share in addition to the
 * rings.  Internal to engine/; others use llm.h.
 *
 * Invariant of admission: the number of requests that wait is the sum over the
 * models of max(0, inflight - parallel), where `parallel` is that of the sort
 * of file that serves (llm_zone_parallel()).  A request that would wait is
 * counted only if that sum does not exceed `queue`, or `queue_low` for a
 * priority below 0, and its model has no more than `places` in flight.  A
 * request that need not wait, because fewer than `parallel` of its own or a
 * higher priority are in flight, is counted in any case, and the request that
 * gives way to it waits; so `parallel` more may wait for each priority.
 * Workers count a request before they send it, the engine removes it from the
 * count when it ends.  Counters have the engine's epoch in their upper half,
 * so requests that were counted for a dead engine do not count.
 *
 * The memory is the caller's.  It has offsets from its start and no pointers,
 * by which a broken worker could lead the engine to any address.  For counters
 * that outlive the zone each process has its own table (llm_kept_t).
 */

#ifndef LLM_ZONE_H
#define LLM_ZONE_H

#include "engine/llm.h"
#include "engine/ipc/command.h"
#include "engine/ipc/ring.h"

#define LLM_ZONE_ERROR       512        /* bytes of the texts of a model */
#define LLM_ZONE_DEVICE      128

/* an engine whose step takes longer than this hangs */
#define LLM_ZONE_STALL_US    15000000

/* number of priorities; level 0 is the lowest */
#define LLM_ZONE_LEVELS      (2 * LLM_MAX_PRIORITY + 1)

/* an engine that was woken and has not run after this time is stopped */
#define LLM_ZONE_WAKE_US     3000000

/* written by schedulers only: of one engine or, for counters that outlive the
   zone, of an ending and a new one; any process reads; all relaxed */
typedef struct {
    _Atomic uint64_t             count;
    _Atomic uint64_t             sum;        /* microseconds, or rows */
    _Atomic uint64_t             buckets[LLM_HIST_MAX];
} llm_zone_hist_t;

typedef enum {
    LLM_HIST_TTFT = 0,
    LLM_HIST_ITL,
    LLM_HIST_E2E,
    LLM_HIST_QUEUE,
    LLM_HIST_PREFILL,
    LLM_HIST_DECODE,
    LLM_HIST_ROWS,                      /* of a step */
    LLM_HIST_N
} llm_zone_hist_id_t;

/* counters of a model; writers, readers and order as above */
typedef struct {
    _Alignas(64) _Atomic uint64_t  prompt_tokens;
    _Atomic uint64_t             prompt_computed;
    _Atomic uint64_t             generation_tokens;
    _Atomic uint64_t             prefix_queries;
    _Atomic uint64_t             prefix_hits;
    _Atomic uint64_t             evictions;
    _Atomic uint64_t             preemptions;
    _Atomic uint64_t             steps;
    _Atomic uint64_t             steps_behind;
    _Atomic uint64_t             media_queries;
    _Atomic uint64_t             media_hits;
    _Atomic uint64_t             encodes;
    _Atomic uint64_t             audio_ms;
    _Atomic uint64_t             drafts[LLM_DRAFT_N];
    _Atomic uint64_t             drafted[LLM_DRAFT_N];
    _Atomic uint64_t             accepted[LLM_DRAFT_N];
    _Atomic uint64_t             finished[5];
    _Atomic uint64_t             errors;     /* the server's: 5xx */
    _Atomic uint64_t             device_errors;
    _Atomic uint64_t             memory_errors;
    llm_zone_hist_t              hist[LLM_HIST_N];
} llm_zone_counters_t;

/* counters of a worker; writers, readers and order as above */
typedef struct {
    _Alignas(64) _Atomic uint64_t  events;
    _Atomic uint64_t             token_events;
    _Atomic uint64_t             wakeups;
} llm_zone_sent_t;

/* the times of a tenant's tokens: those of LLM_HIST_TTFT and LLM_HIST_ITL */
#define LLM_TIMES_N  2

typedef struct {
    _Alignas(64) llm_zone_hist_t  hist[LLM_TIMES_N];
} llm_zone_times_t;

#define LLM_ZONE_GPUS  16

/* a GPU; the thread of serve/gpu.c writes the texts before n_gpus counts the
   GPU, and the rest with each query, relaxed */
typedef struct {
    char                         name[64];
    char                         uuid[64];
    _Atomic uint32_t             has;
    _Atomic uint64_t             busy;
    _Atomic uint64_t             memory_busy;
    _Atomic uint64_t             memory_used;
    _Atomic uint64_t             memory_total;
    _Atomic uint64_t             power_mw;
    _Atomic uint64_t             celsius;
} llm_zone_gpu_t;

/* gauges of a model; the engine's scheduler writes, any process reads; all
   relaxed */
typedef struct {
    _Atomic uint32_t             running;
    _Atomic uint32_t             parked;
    _Atomic uint32_t             waiting;
    _Atomic uint32_t             prefilling;
    _Atomic uint32_t             prompt_left;
    _Atomic uint32_t             kv_pages;
    _Atomic uint32_t             kv_used;
    _Atomic uint32_t             kv_cached;
    _Atomic uint32_t             window_pages;
    _Atomic uint32_t             window_used;
    _Atomic uint32_t             window_cached;
    _Atomic uint32_t             snapshots;
    _Atomic uint64_t             request_memory;
    _Atomic uint64_t             weight_bytes;
    _Atomic uint64_t             kv_bytes;
    _Atomic uint64_t             answered;   /* tokens generated and requests
                                                ended, in this zone */
} llm_zone_figures_t;

typedef struct {
    uint32_t                     parallel;   /* set once by init(), as are the
                                                next three */
    uint32_t                     speech;     /* is that of a file of speech? */
    uint32_t                     other;      /* the same of a file of the other
                                                sort */
    uint32_t                     places;     /* most requests in flight, of
                                                which `parallel` run */
    _Atomic uint32_t             state;      /* engine writes, release */
    _Atomic uint32_t             ctx;        /* engine writes this and the next
                                                nine, relaxed */
    _Atomic uint32_t             takes;      /* LLM_MEDIUM_... */
    _Atomic uint32_t             ctx_train;
    _Atomic uint32_t             n_vocab;
    _Atomic uint32_t             n_embd;
    _Atomic uint64_t             n_params;
    _Atomic uint64_t             n_bytes;
    _Atomic uint32_t             advised;    /* bits by llm_param_id_t: which
                                                of the next two are known */
    _Atomic uint32_t             temperature;  /* bits of a float */
    _Atomic uint32_t             top_p;      /* bits of a float */
    _Atomic uint32_t             permille;   /* engine writes, relaxed */
    /* engine writes, relaxed: the model is loaded, and warms up */
    _Atomic uint32_t             warming;
    /* engine writes, relaxed: the model was idle, a request waits for its
       load */
    _Atomic uint32_t             wanted;
    _Atomic uint32_t             retry_after;  /* engine's estimate, seconds */
    /* engines write, one after another: how many loads in a row have lost the
       GPU's context, which ends the engine's process */
    _Atomic uint32_t             losses;
    _Atomic uint64_t             ttft_us;    /* engine writes, relaxed:
                                                predicted, 0: not known */

    /* engine writes: why the model has failed, its device */
    llm_words(LLM_ZONE_ERROR + LLM_ZONE_DEVICE)  text;

    /* number of the model's name, 0: none.  The process that gives a name
       writes the other fields while this is 0, and then this, release; the
       engine sets it to 0 */
    _Atomic uint32_t             naming;
    _Atomic int64_t              named;      /* when, seconds since 1970 */
    llm_words(LLM_NAME_TEXT)     name;

    llm_zone_command_t           command;

    /* epoch << 32 | LLM_COUNT_OTHER | requests; workers add, the engine
       subtracts and sets or clears the bit: the file that serves is of the
       other sort, so `other` of its requests run at once */
    _Alignas(64) _Atomic uint64_t  inflight;
    /* the same by priority; incremented before inflight, decremented after */
    _Atomic uint64_t             levels[LLM_ZONE_LEVELS];

    _Alignas(64) llm_zone_figures_t  figures;

    llm_zone_counters_t          own;        /* see llm_zone_counters(); zeroed
                                                when a name is given */
} llm_zone_model_state_t;

typedef struct {
    _Atomic uint32_t             pid;        /* worker; 0: detached */
    _Atomic uint64_t             born;       /* worker, before pid: start time
                                                of that process */
    _Atomic uint32_t             generation; /* worker, at attach; 0: none */
    /* worker: nonzero between counting a request and publishing it, so that
       the engine knows whether a dead worker may have left a count */
    _Atomic uint32_t             intent;
    /* the engine sets it when the event ring was full; the worker, when it has
       made room, clears it and wakes the engine */
    _Atomic uint32_t             want_room;

    uint64_t                     down;       /* offset of the request ring */
    uint64_t                     up;         /* offset of the event ring */

    /* the worker sets it before it sleeps; the engine clears it and writes the
       eventfd.  Sequentially consistent with the ring's tail */
    _Alignas(64) _Atomic uint32_t  armed;

    llm_zone_sent_t              own;        /* see llm_zone_sent() */
} llm_zone_worker_t;

struct llm_zone_s {
    uint64_t                     size;
    uint32_t                     n_workers;
    uint32_t                     n_models;
    uint32_t                     queue;      /* most requests that wait */
    uint32_t                     queue_low;  /* the same when a request of a
                                                priority below 0 comes */
    llm_zone_bounds_t            bounds;     /* set before there is a client or
                                                an engine */
    uint64_t                     workers;    /* offset */
    uint64_t                     media;      /* offset, 0: none; see media.h;
                                                set before there is a client or
                                                an engine */

    _Atomic uint32_t             names;      /* see naming.c */
    _Atomic uint32_t             generation; /* last one given out */
    _Atomic uint32_t             epoch;      /* of the engine, from 1 */
    _Atomic uint32_t             attached;   /* there has been an engine */
    _Atomic int32_t              engine_pid; /* 0: none now */
    _Atomic uint64_t             engine_born;    /* start time of that process;
                                                    written while engine_pid
                                                    is 0 */
    _Atomic uint64_t             started;    /* when the engine attached,
                                                seconds since 1970; relaxed */
    /* a worker died between counting and publishing: the counts may be too
       large.  Set by any process that notices, cleared by the engine's audit */
    _Atomic uint32_t             suspect;
    /* engine: when it last woke up to work, or went to sleep with live
       requests; 0 while it sleeps without any */
    _Atomic uint64_t             busy_since_us;
    /*
     * Since when a sleeping engine may have work: set, if it is 0, by every
     * sender; the engine sets it to 0 when it is about to sleep, before it
     * looks for work for the last time.  So wherever an engine is stopped,
     * busy_since_us is set, or the next message sets this.
     */
    _Atomic uint64_t             woken_us;

    /* the engine sets it before it sleeps; workers clear it and write
       engine_fd */
    _Alignas(64) _Atomic uint32_t  engine_armed;

    /* epoch << 32 | requests that wait, over all models */
    _Alignas(64) _Atomic uint64_t  waiting;

    /* GPUs in gpus[]; written by the thread of serve/gpu.c, release, and set
       to 0 by an engine that attaches */
    _Atomic uint32_t             n_gpus;
    llm_zone_gpu_t               gpus[LLM_ZONE_GPUS];

    _Alignas(64) llm_zone_model_state_t  models[LLM_MAX_MODELS];
};

/* a copy of all counts */
typedef struct {
    uint64_t                     waiting;
    uint64_t                     inflight[LLM_MAX_MODELS];
    uint64_t                     levels[LLM_MAX_MODELS][LLM_ZONE_LEVELS];
} llm_zone_counts_t;

#define llm_zone_worker(z, i)                                                \
    ((llm_zone_worker_t *) ((char *) (z) + (z)->workers) + (i))
#define llm_zone_at(z, off)  ((void *) ((char *) (z) + (off)))

/* tickets: the generation of a client, and below it a sequence number */
#define LLM_TICKET_SEQ_BITS  40
#define llm_generation(ticket)                                               \
    ((uint32_t) ((ticket) >> LLM_TICKET_SEQ_BITS))

/*
 * Counts one request.  LLM_ERROR: it would have to wait and the queue is full;
 * LLM_STALE: epoch is no longer the zone's.
 */
int llm_zone_admit(llm_zone_t *z, uint32_t model, uint32_t epoch,
    int32_t priority);
/* most requests that wait when one of this priority comes */
uint32_t llm_zone_queue(const llm_zone_t *z, int32_t priority);
/* does the model drain, so that new requests are refused by now? */
int llm_zone_drains(llm_zone_t *z, uint32_t model);
/* is a request of this epoch counted? */
int llm_zone_in_use(llm_zone_t *z, uint32_t model, uint32_t epoch);
/* requests of the model that run or wait, counted in this epoch */
uint32_t llm_zone_inflight(llm_zone_t *z, uint32_t model, uint32_t epoch);
/* how many of these run at once, and how many there may be: of the file that
   serves now */
uint32_t llm_zone_parallel(llm_zone_t *z, uint32_t model);
uint32_t llm_zone_places(llm_zone_t *z, uint32_t model);
/* the engine of this epoch: the model's file is one of speech, or is none */
void llm_zone_set_speech(llm_zone_t *z, uint32_t model, uint32_t epoch,
    int speech);
/* would llm_zone_admit() find room now? */
int llm_zone_has_room(llm_zone_t *z, uint32_t model, int32_t priority);
/* removes one request of this epoch from the counts */
void llm_zone_release(llm_zone_t *z, uint32_t model, uint32_t epoch,
    int32_t priority);
/*
 * Reads all counts.  clear() sets each to 0 that is still as seen, and stops
 * with LLM_STALE at the first that is not; for the engine, when no request is
 * on its way.
 */
void llm_zone_counts(llm_zone_t *z, llm_zone_counts_t *seen);
int llm_zone_clear_counts(llm_zone_t *z, const llm_zone_counts_t *seen);

/* does the engine's process live? */
int llm_zone_engine_lives(llm_zone_t *z);
/* the same, but cheaper: true also if another process has got the pid */
int llm_zone_engine_there(llm_zone_t *z);
/* wakes the engine if it sleeps; from any process and thread */
void llm_zone_wake(llm_zone_t *z, int engine_fd);
/* writes engine_fd even if another process has cleared engine_armed, as that
   process may have died before it wrote */
void llm_zone_wake_surely(llm_zone_t *z, int engine_fd);

/* write a model's status, for the engine; a text that is NULL is not changed */
void llm_zone_advise(llm_zone_t *z, uint32_t model, const llm_sampling_t *s);
void llm_zone_set_text(llm_zone_t *z, uint32_t model, const char *error,
    const char *device);
void llm_zone_set_state(llm_zone_t *z, uint32_t model,
    llm_model_state_t state);

/* the counters of a model, and of a worker: those of kept; in the zone if kept
   is NULL or has none of the model */
static inline llm_zone_counters_t *
llm_zone_counters(llm_zone_t *z, const llm_kept_t *kept, uint32_t model)
{
    return kept && kept->models[model] ? kept->models[model]
                                       : &z->models[model].own;
}


static inline llm_zone_sent_t *
llm_zone_sent(llm_zone_t *z, const llm_kept_t *kept, uint32_t worker)
{
    return kept ? (llm_zone_sent_t *) kept->workers + worker
                : &llm_zone_worker(z, worker)->own;
}


/* adds a value to a histogram; n: microseconds, or rows */
void llm_zone_observe(llm_zone_counters_t *c, llm_zone_hist_id_t h,
    uint64_t n);
/* the same for the account of a request; account was written by a worker and
   may be invalid: then nothing is done */
void llm_zone_observe_for(const llm_kept_t *kept, uint32_t account,
    llm_zone_hist_id_t h, uint64_t us);

/* is the time to the first token predicted? */
static inline int
llm_zone_forecasts(const llm_zone_t *z)
{
    return z->bounds.forecast || z->bounds.tokens || z->bounds.ttft_us;
}


/* a counter or gauge that one thread writes */
#define llm_zone_add(field, n)                                               \
    atomic_fetch_add_explicit(&(field), (n), memory_order_relaxed)
#define llm_zone_set(field, n)                                               \
    atomic_store_explicit(&(field), (n), memory_order_relaxed)
#define llm_zone_get(field)                                                  \
    atomic_load_explicit(&(field), memory_order_relaxed)


/* counts the error of a request by its status: only the server's, 5xx, not the
   client's */
static inline void
llm_zone_count_error(llm_zone_counters_t *c, int status)
{
    if (status >= 500) {
        llm_zone_add(c->errors, 1);
    }
}

#endif /* LLM_ZONE_H */
