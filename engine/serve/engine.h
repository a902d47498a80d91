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
 * A model of the configuration is served by one llm_served_t, which
 * e->models[] has.  A command may load another file: a second one beside it,
 * which takes its place when it is ready; the first one ends with its
 * requests.  A request belongs to one of them (r->served), and its text is of
 * that alone.
 *
 * Requests travel between scheduler and preparation in a queue and a list
 * under one mutex.  A loader fills its llm_served_t, or empties it, and then
 * sets `loaded`; no other thread touches those fields meanwhile.
 */

#ifndef LLM_ENGINE_INTERNAL_H
#define LLM_ENGINE_INTERNAL_H

#include "engine/base/thread.h"
#include "engine/ipc/engines.h"
#include "engine/prepare/prepare.h"
#include "engine/serve/turns.h"

/* the first is for small messages; of the others one runs at a time, and each
   can have a compilation that was put aside */
#define LLM_ENGINE_PREPARERS  5

/* memory of all requests, if the configuration sets none */
#define LLM_ENGINE_MAX_BYTES  ((size_t) 256 << 20)

/* synthetic.c; never there without LLM_TEST */
typedef struct llm_synthetic_s  llm_synthetic_t;

/* warm.c: requests that the model runs before it is ready, one after another;
   its state is LOADING meanwhile */
typedef struct {
    int                  running;
    uint32_t             next;          /* the next one's number */
    uint32_t             n_live;
    uint64_t             start_us;
} llm_warm_t;

typedef enum {
    LLM_SERVED_MODEL = 0,               /* e->models[] has it, the zone shows
                                           it */
    LLM_SERVED_BESIDE,                  /* another file, on its way there */
    LLM_SERVED_REPLACED                 /* another one has its place, or it
                                           never got there: it ends with its
                                           requests */
} llm_served_role_t;

/* a model of the configuration with one file */
struct llm_served_s {
    llm_engine_t        *engine;
    llm_served_t        *next;          /* in e->served */
    uint32_t             index;
    llm_served_role_t    role;
    llm_served_t        *beside;        /* the other file that is loaded */
    llm_engine_model_t   conf;          /* strings owned */
    const char          *file;          /* owned; instead of the
                                           configuration's, or NULL */
    uint32_t             naming;        /* of its name; 0: it is the
                                           configuration's, or there is none */
    llm_model_state_t    state;
    int                  ends;          /* it is unloaded by a command, and
                                           takes no requests */

    pthread_t            loader;
    int                  loading;       /* the loader runs, or has ended and is
                                           to be joined; or who frees it */
    int                  closed;        /* REPLACED: it is freed, or was */
    /* where the loader says how far it is, the second may be NULL; set before
       it starts */
    _Atomic uint32_t    *permille[2];
    /* the loader sets it, with release, when all below is filled in */
    _Atomic int          loaded;
    int                  cancel;        /* atomic: scheduler sets, loader and
                                           llm_model_load() read; relaxed */

    llm_model_t         *model;
    llm_synthetic_t     *synthetic;     /* instead of a model */
    llm_prep_env_t       env;           /* what preparation threads see of it */
    _Atomic uint64_t     mended;        /* env.mended */
    llm_err_t            load_err;      /* status 0: it is loaded */
    llm_runner_t         runner;

    llm_sched_t         *sched;
    llm_jobs_t           held;          /* requests that wait for the load */
    uint32_t             n_reqs;
    uint64_t             weight_bytes;  /* its parts of the figures */
    uint64_t             kv_bytes;
    uint32_t             n_failed_steps;    /* in a row, over rebuilds */
    int                  rebuild;       /* state LOADING, but it is loaded only
                                           after its requests have ended */
    int                  lost;          /* its GPU is lost: only another
                                           process can load it */
    int                  on_gpu;        /* device=auto found one */
    uint32_t             n_older;       /* older engines, when the load
                                           began */
    int                  crowded;       /* then they, or the file that it is
                                           loaded beside, had memory that will
                                           be free */
    int                  waits;         /* state LOADING, but it is loaded only
                                           after an older engine has ended */
    int                  cramped;       /* state READY, with fewer pages than
                                           configured because of that */
    uint64_t             retry_us;      /* FAILED: when it is loaded again */
    uint32_t             retry_s;       /* the pause before that; 0: no failure
                                           since the last step */
    char                 logged[512];   /* the reason that was logged last */
    int                  unsent;        /* events wait for room */
    llm_warm_t           warm;
    uint64_t             used_us;       /* when the last request ended */
    double               request_us;    /* average time of a request, about */
    uint64_t             ready_us;      /* since when its state is READY */
    uint64_t             shown_us;      /* when its forecast was */
};

/* the command that runs for a model of the configuration */
typedef struct {
    uint64_t             number;        /* 0: none does */
    llm_command_kind_t   kind;
    int                  begun;         /* LOAD: it is in the loader's hands */
    int                  over;          /* LOAD of another file: it has ended,
                                           with result */
    llm_err_t            result;
    uint64_t             end_us;        /* UNLOAD: when running requests get an
                                           error; 0: they have got it */
} llm_order_t;

/* a request that was refused before it was in e->live */
typedef struct {
    int                  pending;       /* its error waits for room in the
                                           ring */
    llm_to_t             to;
    uint32_t             model;
    int32_t              priority;
    uint32_t             retry_after;
    llm_err_t            err;
} llm_refusal_t;

/* the thread that asks NVML */
typedef struct llm_gpu_s  llm_gpu_t;

/* one worker */
typedef struct {
    llm_port_t           port;          /* events to the worker */
    llm_ring_t           down;
    llm_refusal_t        refusal;       /* while it is pending nothing is read
                                           from `down` */
    llm_req_t          **slots;         /* live requests */
    uint32_t             n_slots;
    uint32_t             n_live;
} llm_peer_t;

/* nobody: the worker whose requests a warm-up's are, in a zone of its own; what
   it is sent is dropped */
typedef struct {
    void                *mem;           /* of the zone; NULL: no model warms
                                           up */
    llm_zone_t          *zone;
    llm_ring_t           up;
    llm_peer_t           peer;
} llm_nobody_t;

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
    llm_log_pt           log;
    void                *log_data;

    _Atomic int          stop;          /* set by stop(), read by all */
    _Atomic int          lost;          /* a GPU is lost, and the errors of its
                                           requests are in the rings: the
                                           scheduler sets it, worker 0 reads
                                           it */

    llm_served_t       **models;
    llm_order_t         *orders;        /* of these */
    uint32_t             n_models;
    llm_served_t        *served;        /* all, also what is loaded beside them,
                                           and was replaced */
    llm_peer_t          *peers;
    uint32_t             n_peers;
    llm_nobody_t         nobody;
    uint32_t             n_checks;      /* of these peers */
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

/* answers.c */
/* sends what there is room for; nonzero if something is left */
int llm_engine_send_answers(llm_engine_t *e);

/* warm.c */
/* where the engine's own requests send their events; LLM_ERROR: no memory */
int llm_nobody_open(llm_nobody_t *n, uint32_t n_models);
void llm_nobody_close(llm_nobody_t *n);
/* drops what was sent */
void llm_nobody_drain(llm_nobody_t *n);
/* a loaded model begins */
void llm_warm_begin(llm_served_t *m);
/* goes on; was there anything to do?  *over: that was the end of it */
int llm_warm_step(llm_served_t *m, int *over);
/* it is broken off, or over; its requests end */
void llm_warm_stop(llm_served_t *m);

/* judge.c */
/* may it wait?  LLM_ERROR: no, and when it should be tried again, in seconds */
int llm_engine_judge(llm_engine_t *e, llm_req_t *r, uint32_t *retry_after,
    llm_err_t *err);
void llm_engine_show_forecast(llm_served_t *m, uint64_t now);

/* ask.c: requests that run only when their worker agrees */
void llm_engine_ask(llm_engine_t *e, llm_req_t *r);
/* sends what there is room for; nonzero if something is left */
int llm_engine_send_asked(llm_engine_t *e);

/* advice.c: what the file says of sampling; what is out of range is left out,
   and logged */
void llm_served_advice(llm_served_t *m, const llm_gguf_t *g);

/* preparers.c */
void *llm_engine_prepare_main(void *preparer);
/* takes the next job for a thread; NULL: there is none.  The caller has the
   lock */
llm_req_t *llm_preparer_take(llm_preparer_t *p);
/* ends the preparation threads */
void llm_engine_quit(llm_engine_t *e);

/* load.c */
/* the file that it serves */
const char *llm_served_path(const llm_served_t *m);
/* says how much of it is loaded; from the scheduler, or the loader */
void llm_served_permille(llm_served_t *m, uint32_t permille);
/* begins the load, state LOADING; LLM_ERROR and load_err: no thread could be
   started */
int llm_served_begin(llm_served_t *m);
/* the same, and the zone shows it; or state FAILED */
int llm_served_load(llm_served_t *m);
/* the same, but the zone goes on showing the previous state */
int llm_served_start(llm_served_t *m);
/* an older engine holds the memory: the load begins when that has ended */
void llm_served_wait(llm_served_t *m);
/* state FAILED, because of load_err; sets when the load is tried again */
void llm_served_failed(llm_served_t *m);
void llm_served_close(llm_served_t *m);
/* removes names of folders from a message */
void llm_served_hide(llm_served_t *m, llm_err_t *err);

/* served.c */
/* one more in e->served, role MODEL; NULL: no memory */
llm_served_t *llm_served_create(llm_engine_t *e, uint32_t index,
    const llm_engine_model_t *conf, const char *file);
/* takes it out of e->served; it was unloaded */
void llm_served_free(llm_served_t *m);
/* it is the model's present file, or another one that is loaded; shown: the
   zone shows how far that is as the model's state */
void llm_served_place(llm_served_t *m, llm_served_role_t role, int shown);

/* models.c */
/*
 * Loads a failed model again, if it is time; the zone shows it as failed
 * until it is ready.  It also loads one that waited for an older engine's
 * memory; the zone shows that as loading.
 */
void llm_served_retry(llm_served_t *m, uint64_t now);
/* the loader has ended: LLM_OK, or LLM_ERROR and load_err, and the model is
   closed */
int llm_served_join(llm_served_t *m);
/* takes over the loader's result: state READY or FAILED, or LOADING while the
   model warms up */
void llm_served_loaded(llm_served_t *m);
/* a loaded model, which has warmed up: state READY */
void llm_served_open(llm_served_t *m);
/* waits for the loader, if any, and frees the model; state IDLE, or another */
void llm_served_unload(llm_served_t *m, llm_model_state_t state);
/* fails its requests that are live */
void llm_served_fail_live(llm_served_t *m, const llm_err_t *err,
    uint32_t retry_after);
/* the device is broken: all requests fail with load_err, state FAILED */
void llm_served_break(llm_served_t *m);
/* the device failed a step: all requests fail with err, then, once they are
   gone, llm_served_rebuilt() loads the model again */
void llm_served_rebuild(llm_served_t *m, const llm_err_t *err);
/* what it takes from now on of its model's weight_bytes and kv_bytes, which are
   sums */
void llm_served_count_memory(llm_served_t *m, uint64_t weights, uint64_t kv);
/* counts an error that is the device's */
void llm_served_count_error(llm_served_t *m, const llm_err_t *err);
/* must the model's device be closed and opened again? */
int llm_served_device_failed(const llm_err_t *err);
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

/* beside.c: another file for a model */
/* begins to load it beside m; LLM_ERROR and err: it cannot */
int llm_beside_load(llm_served_t *m, const char *file, llm_err_t *err);
/* the loader has ended: it warms up, takes m's place, or fails */
void llm_beside_loaded(llm_served_t *b);
void llm_beside_open(llm_served_t *b);
/* it is given up; requests that waited for it are m's again */
void llm_beside_fail(llm_served_t *b, const llm_err_t *err);
/* the device failed a step of one that is not a model's present file */
void llm_beside_broken(llm_served_t *m, const llm_err_t *err);
/* frees one that was replaced, once it is not in use */
void llm_replaced_step(llm_served_t *m);

/* commands.c: what the workers' commands do */
/* msg is a copy of what rec, in a ring, begins with; its size was checked */
void llm_engine_command(llm_engine_t *e, const llm_command_msg_t *msg,
    const void *rec);
/* goes on with those that run */
void llm_engine_commands(llm_engine_t *e);
/* is one waiting for a time, and for nothing else? */
int llm_engine_commands_wait(const llm_engine_t *e);
/* the engine stops: they end with err */
void llm_engine_drop_commands(llm_engine_t *e, const llm_err_t *err);

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
/* msg is a copy of the fixed part of what lies in the ring, rec, and was
   checked: only this says how large it is, and whose */
void llm_engine_accept(llm_engine_t *e, llm_peer_t *p,
    const llm_request_t *msg, const void *rec);
/* a request becomes live */
void llm_engine_enter(llm_engine_t *e, llm_peer_t *p, llm_req_t *r);
/* sends the error of a refused request; 1: there is still no room for it */
int llm_engine_send_refusal(llm_engine_t *e, llm_peer_t *p);
/* replaces the memory that is counted for a request */
void llm_engine_count(llm_engine_t *e, llm_req_t *r, size_t bytes);
void llm_engine_prepare(llm_engine_t *e, llm_req_t *r);
/* hands it on: to preparation, to those that wait for the model, or it is
   refused */
void llm_engine_route(llm_engine_t *e, llm_req_t *r);
/* one that waits for its model's load goes to another file's */
void llm_engine_move(llm_req_t *r, llm_served_t *to);
void llm_engine_prepared(llm_engine_t *e, llm_req_t *r);
/* a prepared request is answered, or waits for its turn */
void llm_engine_admit(llm_engine_t *e, llm_req_t *r);
void llm_engine_ended(void *engine, llm_req_t *r);
void llm_engine_cancel(llm_engine_t *e, llm_req_t *r);
void llm_engine_fail(llm_engine_t *e, llm_req_t *r, const llm_err_t *err,
    uint32_t retry_after);
int llm_engine_send_errors(llm_engine_t *e);
uint32_t llm_engine_retry_after(const llm_served_t *m);
/* the error of a request whose deadline has passed; LLM_ERROR */
int llm_engine_late(llm_err_t *err);

#endif /* LLM_ENGINE_INTERNAL_H */
