/*
 * Instances: a model of the configuration with one of its files, from loading
 * to the end.
 *
 * A loader thread fills an instance, or empties it, and then sets `loaded`; no
 * other thread touches those fields meanwhile.  Everything else here belongs to
 * the scheduler's thread.
 */

#ifndef LLM_LOAD_H
#define LLM_LOAD_H

#include "engine/ipc/engines.h"
#include "engine/prepare/prepare.h"
#include "engine/serve/jobs.h"

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
    LLM_INSTANCE_MODEL = 0,             /* e->models[] has it, the zone shows
                                           it */
    LLM_INSTANCE_BESIDE,                /* another file of a model, which takes
                                           the model's place once it is loaded */
    LLM_INSTANCE_REPLACED               /* it lost its place, or never got one;
                                           it ends with its requests */
} llm_instance_role_t;

/* a model of the configuration with one file */
struct llm_instance_s {
    llm_engine_t        *engine;
    llm_instance_t      *next;          /* in e->instances */
    uint32_t             index;
    llm_instance_role_t  role;
    llm_instance_t      *beside;        /* the other file that is loaded */
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


/* load.c */
/* the file that it serves */
const char *llm_instance_path(const llm_instance_t *m);
/* says how much of it is loaded; from the scheduler, or the loader */
void llm_instance_permille(llm_instance_t *m, uint32_t permille);
/* begins the load, state LOADING; LLM_ERROR and load_err: no thread could be
   started */
int llm_instance_begin(llm_instance_t *m);
/* the same, and the zone shows it; or state FAILED */
int llm_instance_load(llm_instance_t *m);
/* the same, but the zone goes on showing the previous state */
int llm_instance_start(llm_instance_t *m);
/* an older engine holds the memory: the load begins when that has ended */
void llm_instance_wait(llm_instance_t *m);
/* state FAILED, because of load_err; sets when the load is tried again */
void llm_instance_failed(llm_instance_t *m);
void llm_instance_close(llm_instance_t *m);
/* removes names of folders from a message */
void llm_instance_hide(llm_instance_t *m, llm_err_t *err);

/* instance.c */
/* one more in e->instances, role MODEL; NULL: no memory */
llm_instance_t *llm_instance_create(llm_engine_t *e, uint32_t index,
    const llm_engine_model_t *conf, const char *file);
/* takes it out of e->instances; it was unloaded */
void llm_instance_free(llm_instance_t *m);
/* it is the model's present file, or another one that is loaded; shown: the
   zone shows how far that is as the model's state */
void llm_instance_place(llm_instance_t *m, llm_instance_role_t role, int shown);

/* models.c */
/*
 * Loads a failed model again, if it is time; the zone shows it as failed
 * until it is ready.  It also loads one that waited for an older engine's
 * memory; the zone shows that as loading.
 */
void llm_instance_retry(llm_instance_t *m, uint64_t now);
/* the loader has ended: LLM_OK, or LLM_ERROR and load_err, and the model is
   closed */
int llm_instance_join(llm_instance_t *m);
/* takes over the loader's result: state READY or FAILED, or LOADING while the
   model warms up */
void llm_instance_loaded(llm_instance_t *m);
/* a loaded model, which has warmed up: state READY */
void llm_instance_open(llm_instance_t *m);
/* waits for the loader, if any, and frees the model; state IDLE, or another */
void llm_instance_unload(llm_instance_t *m, llm_model_state_t state);
/* fails its requests that are live */
void llm_instance_fail_live(llm_instance_t *m, const llm_err_t *err,
    uint32_t retry_after);
/* the device is broken: all requests fail with load_err, state FAILED */
void llm_instance_break(llm_instance_t *m);
/* the device failed a step: all requests fail with err, then, once they are
   gone, llm_instance_rebuilt() loads the model again */
void llm_instance_rebuild(llm_instance_t *m, const llm_err_t *err);
/* what it takes from now on of its model's weight_bytes and kv_bytes, which are
   sums */
void llm_instance_count_memory(llm_instance_t *m, uint64_t weights, uint64_t kv);
/* counts an error that is the device's */
void llm_instance_count_error(llm_instance_t *m, const llm_err_t *err);
/* must the model's device be closed and opened again? */
int llm_instance_device_failed(const llm_err_t *err);
void llm_instance_rebuilt(llm_instance_t *m);

/* sampling_defaults.c: what the file says of sampling; what is out of range is left out,
   and logged */
void llm_instance_sampling(llm_instance_t *m, const llm_gguf_t *g);

/* swap.c: another file for a model */
/* begins to load it beside m; LLM_ERROR and err: it cannot */
int llm_swap_load(llm_instance_t *m, const char *file, llm_err_t *err);
/* the loader has ended: it warms up, takes m's place, or fails */
void llm_swap_loaded(llm_instance_t *b);
void llm_swap_open(llm_instance_t *b);
/* it is given up; requests that waited for it are m's again */
void llm_swap_fail(llm_instance_t *b, const llm_err_t *err);
/* the device failed a step of one that is not a model's present file */
void llm_swap_broken(llm_instance_t *m, const llm_err_t *err);
/* frees one that was replaced, once it is not in use */
void llm_swap_free_replaced(llm_instance_t *m);

/* warm.c */
/* a loaded model begins */
void llm_warm_begin(llm_instance_t *m);
/* goes on; was there anything to do?  *over: that was the end of it */
int llm_warm_step(llm_instance_t *m, int *over);
/* it is broken off, or over; its requests end */
void llm_warm_stop(llm_instance_t *m);

#ifdef LLM_TEST

/* synthetic.c */
int llm_synthetic_is(const char *device);
/* fills m->vocab and m->runner */
int llm_synthetic_open(llm_instance_t *m, llm_err_t *err);
void llm_synthetic_close(llm_synthetic_t *s);
const llm_gguf_t *llm_synthetic_gguf(const llm_synthetic_t *s);
/* is it time for a step?  When is the next? */
int llm_synthetic_due(llm_synthetic_t *s, uint64_t now);
uint64_t llm_synthetic_next(const llm_synthetic_t *s);

#endif

#endif /* LLM_LOAD_H */
