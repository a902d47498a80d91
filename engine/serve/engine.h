/*
 * The engine's threads and what they share.
 *
 *   scheduler     one: takes messages from the workers' rings, steps the
 *                 models, writes events; owns everything below unless said
 *   preparation   two: from a request's message to tokens, one of them for
 *                 small messages only
 *   loaders       one for each model that is loading
 *
 * Requests travel between scheduler and preparation by two lists under one
 * mutex.  A loader fills its llm_served_t and says `loaded`; nobody else
 * touches those fields meanwhile.
 */

#ifndef LLM_ENGINE_INTERNAL_H
#define LLM_ENGINE_INTERNAL_H

#include <pthread.h>

#include "engine/ipc/engines.h"
#include "engine/model/model.h"
#include "engine/sched/sched.h"
#include "engine/text/chat/chat.h"

#define LLM_ENGINE_PREPARERS  2

/* the first of the preparers takes messages up to this size only: large ones,
   however many, never hold up a small one */
#define LLM_ENGINE_SMALL      ((size_t) 64 << 10)

/* what all requests may take where the configuration does not say */
#define LLM_ENGINE_MAX_BYTES  ((size_t) 256 << 20)

/* a first-in, first-out list through llm_req_t.job_next */
typedef struct {
    llm_req_t           *first;
    llm_req_t          **last;
} llm_jobs_t;

/* synthetic.c; never there without LLM_TEST */
typedef struct llm_synthetic_s  llm_synthetic_t;

/* one model of the configuration */
typedef struct {
    llm_engine_t        *engine;
    uint32_t             index;
    llm_engine_model_t   conf;          /* strings owned */
    llm_model_state_t    state;

    pthread_t            loader;
    /* loader sets it with release when all below is there */
    _Atomic int          loaded;
    int                  cancel;        /* atomic: scheduler sets, loader and
                                           llm_model_load() read; relaxed */

    llm_model_t         *model;
    llm_synthetic_t     *synthetic;     /* in the place of a model */
    llm_vocab_t         *vocab;
    llm_chat_t          *chat;          /* NULL: see chat_err */
    llm_err_t            chat_err;
    llm_err_t            load_err;      /* status 0: it is loaded */
    llm_runner_t         runner;

    llm_sched_t         *sched;
    llm_jobs_t           held;          /* requests that wait for the load */
    uint32_t             n_reqs;
    size_t               n_bytes;       /* that these take */
    uint32_t             n_failed_steps;    /* in a row, over rebuilds */
    int                  rebuild;       /* state LOADING, but its requests
                                           have to end before the load */
    int                  lost;          /* only another process can load it */
    int                  on_gpu;        /* device=auto found one */
    uint32_t             n_older;       /* engines, when the load began */
    int                  waits;         /* state LOADING, but there is no
                                           loader until one of them has gone */
    int                  cramped;       /* state READY, with fewer pages than
                                           wanted beside an older engine */
    uint64_t             retry_us;      /* FAILED: when it is loaded again */
    uint32_t             retry_s;       /* the pause before that; 0: none
                                           since the last step */
    char                 told[512];     /* the reason that was logged last */
    int                  unsaid;        /* events wait for room */
    uint64_t             used_us;       /* when the last request ended */
    double               request_us;    /* how long requests take, about */
} llm_served_t;

/* a request that did not get into the list of the living */
typedef struct {
    int                  pending;       /* its error found no room yet */
    llm_to_t             to;
    uint32_t             model;
    uint32_t             retry_after;
    llm_err_t            err;
} llm_refusal_t;

/* one worker */
typedef struct {
    llm_port_t           port;          /* events, up */
    llm_ring_t           down;
    llm_refusal_t        refusal;       /* nothing is taken from `down` while
                                           it is pending */
    llm_req_t          **slots;         /* live requests */
    uint32_t             n_slots;
    uint32_t             n_live;
} llm_peer_t;

/* a preparation thread */
typedef struct {
    llm_engine_t        *engine;
    int                  small;         /* takes small messages only */
    pthread_t            thread;
} llm_preparer_t;

struct llm_engine_s {
    llm_zone_t          *zone;
    llm_engines_t       *engines;
    uint32_t             place;         /* among them */
    uint32_t             epoch;
    int                  fd;
    const char          *backend_dir;   /* owned */
    llm_log_pt           log;
    void                *log_data;

    _Atomic int          stop;          /* set by stop(), read by all */
    _Atomic int          lost;          /* set by the scheduler, once the
                                           errors of a model that is lost are
                                           in the rings; read by worker 0 */

    llm_served_t        *models;
    uint32_t             n_models;
    llm_peer_t          *peers;
    uint32_t             n_peers;

    pthread_t            scheduler;
    llm_preparer_t       preparers[LLM_ENGINE_PREPARERS];
    uint32_t             n_preparers;

    pthread_mutex_t      lock;          /* of the next four */
    pthread_cond_t       work;
    llm_jobs_t           to_prepare;
    llm_jobs_t           prepared;
    int                  quit;

    llm_req_t           *live;          /* all requests */
    uint32_t             n_live;
    size_t               n_bytes;       /* that they take, by the last count */
    size_t               max_bytes;
    uint64_t             serial;
    llm_jobs_t           doomed;        /* errors that wait for room */
    uint64_t             check_us;      /* when to look at the clocks again */
};

/* jobs.c */
void llm_jobs_init(llm_jobs_t *j);
void llm_jobs_add(llm_jobs_t *j, llm_req_t *r);
llm_req_t *llm_jobs_take(llm_jobs_t *j);
/* all of from goes behind to */
void llm_jobs_move(llm_jobs_t *to, llm_jobs_t *from);
void llm_jobs_remove(llm_jobs_t *j, llm_req_t *r);

/* common.c */
void llm_engine_log(llm_engine_t *e, int level, const char *fmt, ...)
    llm_printf_like(3, 4);
/* the scheduler's: tells worker 0 that it has to end */
void llm_engine_lose(llm_engine_t *e);
/* wakes the scheduler if it sleeps; from any thread */
void llm_engine_wake(llm_engine_t *e);
/* a thread with signals blocked; it has the CPU affinity of who starts it */
int llm_engine_thread(pthread_t *t, void *(*main)(void *), void *arg);

/* prompt.c */
/* the only prompt of a chat; all prompts of a completion */
int llm_prep_chat(const llm_served_t *m, llm_req_t *r, llm_err_t *err);
int llm_prep_completion(const llm_served_t *m, llm_req_t *r, llm_err_t *err);
/* a prompt without a token gets one, or is refused */
int llm_prep_empty(const llm_served_t *m, const llm_req_t *r,
    llm_prompt_ids_t *p, llm_err_t *err);
/* how many tokens may be generated behind the prompt */
int llm_prep_room(const llm_served_t *m, const llm_req_t *r,
    const llm_prompt_ids_t *p, uint32_t *max_gen, llm_err_t *err);
/* LLM_ERROR: no memory */
int llm_prep_echo(const llm_served_t *m, const llm_req_t *r,
    llm_prompt_ids_t *p);

/* prep.c */
/* all that the scheduler needs of a request; in any thread */
int llm_prep_request(const llm_served_t *m, llm_req_t *r, llm_err_t *err);

/* preparers.c */
void *llm_engine_prepare_main(void *preparer);
/* the oldest job, or the oldest small one; NULL: there is none.  Under the
   lock */
llm_req_t *llm_prep_next(llm_engine_t *e, int small);
/* ends the preparation threads */
void llm_engine_quit(llm_engine_t *e);

/* load.c */
/* state LOADING; LLM_ERROR: there is no thread for it, state FAILED */
int llm_served_load(llm_served_t *m);
/* the same, while the zone goes on to show the state of before */
int llm_served_start(llm_served_t *m);
/* an older engine holds the memory: it is loaded when that has gone */
void llm_served_wait(llm_served_t *m);
/* state FAILED, for load_err; when it is tried again */
void llm_served_failed(llm_served_t *m);
void llm_served_close(llm_served_t *m);
/* takes names of folders out of a message */
void llm_served_hide(llm_served_t *m, llm_err_t *err);

/* models.c */
/* loads a failed model again, if it is time; the zone shows it as failed
   until it is ready.  So with one that waits for an older engine's memory,
   which the zone shows as loading */
void llm_served_retry(llm_served_t *m, uint64_t now);
/* takes the loader's result over: state READY or FAILED */
void llm_served_loaded(llm_served_t *m);
/* waits for the loader, if any; state IDLE */
void llm_served_unload(llm_served_t *m);
/* the device is broken: all requests fail with load_err, state FAILED */
void llm_served_break(llm_served_t *m);
/* the device failed a step: all requests fail with err, then, once they are
   gone, llm_served_rebuilt() loads the model again */
void llm_served_rebuild(llm_served_t *m, const llm_err_t *err);
void llm_served_rebuilt(llm_served_t *m);

#ifdef LLM_TEST

/* synthetic.c */
int llm_synthetic_is(const char *device);
/* fills m->vocab and m->runner */
int llm_synthetic_open(llm_served_t *m, llm_err_t *err);
void llm_synthetic_close(llm_synthetic_t *s);
const llm_gguf_t *llm_synthetic_gguf(const llm_synthetic_t *s);
/* is it time for a step?  When is the next? */
int llm_synthetic_due(llm_synthetic_t *s, uint64_t now);
uint64_t llm_synthetic_next(const llm_synthetic_t *s);

#endif

/* peers.c */
/* takes what the workers sent */
void llm_engine_messages(llm_engine_t *e);
/* cancels the requests of workers that are gone */
void llm_engine_check_peers(llm_engine_t *e);
/* clears counts of admission that nobody will take back */
void llm_engine_audit(llm_engine_t *e);

/* loop.c */
void *llm_engine_main(void *engine);

/* reqs.c */
void llm_engine_accept(llm_engine_t *e, llm_peer_t *p,
    const llm_request_t *msg);
/* the error of a request that was refused; 1: it found no room again */
int llm_engine_tell_refusal(llm_engine_t *e, llm_peer_t *p);
/* counts anew what a request takes */
void llm_engine_count(llm_engine_t *e, llm_req_t *r, size_t bytes);
void llm_engine_prepare(llm_engine_t *e, llm_req_t *r);
void llm_engine_prepared(llm_engine_t *e, llm_req_t *r);
void llm_engine_ended(void *engine, llm_req_t *r);
void llm_engine_cancel(llm_engine_t *e, llm_req_t *r);
void llm_engine_fail(llm_engine_t *e, llm_req_t *r, const llm_err_t *err,
    uint32_t retry_after);
int llm_engine_tell_doomed(llm_engine_t *e);
uint32_t llm_engine_retry_after(const llm_served_t *m);

#endif /* LLM_ENGINE_INTERNAL_H */
