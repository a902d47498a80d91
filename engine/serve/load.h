/*
 * Instances: a model of the configuration with one of its files, from loading
 * to freeing.
 *
 * A loader thread fills or frees an instance and then sets `loaded`; no other
 * thread touches those fields meanwhile.  Everything else here belongs to the
 * scheduler's thread.
 */

#ifndef LLM_LOAD_H
#define LLM_LOAD_H

#include "engine/ipc/engines.h"
#include "engine/prepare/prepare.h"
#include "engine/serve/jobs.h"

/* synthetic.c; only with LLM_TEST */
typedef struct llm_synthetic_s  llm_synthetic_t;
typedef struct llm_encoder_s  llm_encoder_t;   /* encoder.c */
typedef struct llm_hearing_s  llm_hearing_t;   /* hearing.c */

/* warm.c: requests that the model runs before it is ready, one after another;
   the model's state is LOADING meanwhile */
typedef struct {
    int                  running;
    uint32_t             next;          /* number of the next request */
    uint32_t             n_live;        /* live warm-up requests */
    uint64_t             start_us;
} llm_warm_t;

typedef enum {
    LLM_INSTANCE_MODEL = 0,             /* in e->models[]; the zone shows its
                                           state */
    LLM_INSTANCE_BESIDE,                /* another file of the model; replaces
                                           that instance once it is loaded */
    LLM_INSTANCE_REPLACED               /* replaced, or its load was given up;
                                           freed after its last request */
} llm_instance_role_t;

typedef enum {
    LLM_WAITS_NOT = 0,
    LLM_WAITS_OLDER,                    /* an older engine has to end */
    LLM_WAITS_ROOM                      /* a model has to have no request */
} llm_instance_wait_t;

/* a model of the configuration with one file */
struct llm_instance_s {
    llm_engine_t        *engine;
    llm_instance_t      *next;          /* in e->instances */
    uint32_t             index;         /* of the model in the configuration */
    llm_instance_role_t  role;
    llm_instance_t      *beside;        /* instance that is being loaded to
                                           replace this one, or NULL */
    llm_engine_model_t   conf;          /* strings owned */
    const char          *file;          /* owned; path used instead of
                                           conf.path, or NULL */
    uint32_t             naming;        /* number of its name, see
                                           llm_zone_give_name(); 0: the name is
                                           the configuration's, or there is
                                           none */
    llm_model_state_t    state;
    int                  ends;          /* a command unloads it; it takes no
                                           requests */

    pthread_t            loader;
    int                  loading;       /* `loader` was started and not joined
                                           yet; it loads, or frees a replaced
                                           instance */
    int                  closed;        /* REPLACED: freeing has begun */
    /* where the loader writes its progress, in 1/1000; the second may be NULL;
       set before the loader starts */
    _Atomic uint32_t    *permille[2];
    /* the loader sets it, with release, when all fields below are filled in */
    _Atomic int          loaded;
    int                  cancel;        /* atomic, relaxed: the scheduler sets
                                           it, the loader and llm_model_load()
                                           read it */

    uint32_t             parallel;      /* sequences that run at once, of this
                                           file */
    llm_model_t         *model;
    llm_model_t         *draft;         /* the small model of draft=FILE, or
                                           NULL */
    llm_runner_t         draft_runner;
    llm_head_t          *head;          /* the head that drafts, instead, or
                                           NULL */
    llm_head_runner_t    head_runner;
    llm_encoder_t       *encoder;       /* of mmproj=, or NULL */
    llm_hearing_t       *hearing;       /* a model of speech, instead of
                                           `model` and `sched` */
    llm_synthetic_t     *synthetic;     /* instead of a model */
    llm_prep_env_t       env;           /* what preparation threads see of the
                                           model */
    _Atomic uint64_t     mended;        /* env.mended points here */
    llm_err_t            load_err;      /* status 0: the load has not failed */
    llm_runner_t         runner;

    llm_sched_t         *sched;
    llm_jobs_t           held;          /* requests that wait for the load */
    uint32_t             n_reqs;        /* live requests */
    uint64_t             weight_bytes;  /* its part of the model's gauges of
                                           the same names */
    uint64_t             kv_bytes;
    uint32_t             n_failed_steps;    /* in a row, across rebuilds */
    int                  rebuild;       /* state LOADING, but the load begins
                                           after its requests have ended */
    int                  lost;          /* its GPU's context is lost: only
                                           another process can load it */
    int                  on_gpu;        /* device=auto chose a GPU */
    uint32_t             n_older;       /* older engines alive when the load
                                           began */
    int                  crowded;       /* when the load began, older engines or
                                           the instance to be replaced held
                                           memory that will become free */
    llm_instance_wait_t  waits;         /* state LOADING, but the load begins
                                           after this */
    uint64_t             lacks_us;      /* since when its load lacks memory,
                                           llm_now_us(), while it waits and
                                           while it is tried again; 0: it does
                                           not.  See room.c */
    int                  made_room;     /* models were unloaded for this load */
    uint64_t             vain_us;       /* that did not suffice: before this
                                           time none is unloaded for it */
    int                  gives_way;     /* state READY; requests that come wait
                                           for its next load, see room.c */
    int                  cramped;       /* state READY, with fewer pages than
                                           configured, as it was crowded */
    uint64_t             retry_us;      /* FAILED: when it is loaded again,
                                           llm_now_us() */
    uint32_t             retry_s;       /* pause before that; 0: no failure
                                           since the last step */
    char                 logged[512];   /* reason of a failure that was logged
                                           last */
    int                  unsent;        /* events wait for room in a ring */
    llm_warm_t           warm;
    uint64_t             used_us;       /* when it became ready, or when its
                                           last request ended, probes aside */
    double               request_us;    /* moving average of the time that a
                                           request runs */
    uint64_t             ready_us;      /* when its state became READY */
    uint64_t             shown_us;      /* when its forecast was last written
                                           to the zone */
};


/* load.c */
/* the path of the file that it serves */
const char *llm_instance_path(const llm_instance_t *m);
/* writes the load's progress to the zone; from the scheduler or the loader */
void llm_instance_permille(llm_instance_t *m, uint32_t permille);
/* begins the load: state LOADING, which the zone does not show.  LLM_ERROR and
   load_err: no thread could be started. */
int llm_instance_begin(llm_instance_t *m);
/* the same, but the zone shows LOADING; after an error the state is FAILED */
int llm_instance_load(llm_instance_t *m);
/* llm_instance_begin(); after an error the state is FAILED */
int llm_instance_start(llm_instance_t *m);
/* state LOADING; the load begins when an older engine, or a model, which holds
   the memory, has given it up */
void llm_instance_wait(llm_instance_t *m, llm_instance_wait_t what);
/* state FAILED, because of load_err; sets when the load is tried again */
void llm_instance_failed(llm_instance_t *m);
/* frees what the load has made, and the scheduler */
void llm_instance_close(llm_instance_t *m);
/* removes names of folders from a message */
void llm_instance_hide(llm_instance_t *m, llm_err_t *err);

/* encoder.c: loads the encoder of mmproj=, after the instance's model, and lets
   the runner use it; LLM_ERROR: err says why it does not fit */
int llm_instance_encoder(llm_instance_t *m, const llm_model_opts_t *opts,
    llm_err_t *err);
void llm_instance_close_encoder(llm_instance_t *m);
/* hearing.c: a model of speech, its transcriptions and their events */
/* is the file such a model?  LLM_ABSENT: it is not; LLM_ERROR: it
   cannot be read */
int llm_instance_listens(const char *path, llm_err_t *err);
/* loads it and fills m->hearing, m->env and m->runner; LLM_ERROR: err says
   why it cannot be served */
int llm_instance_hear(llm_instance_t *m, const char *path,
    const llm_model_opts_t *opts, llm_err_t *err);
/* no request may be left in it */
void llm_instance_close_hearing(llm_instance_t *m);
/* its decoder, for its device and its sizes */
const llm_model_t *llm_hearing_model(const llm_hearing_t *h);
/* a prepared transcription waits for a place; remove() is for one in any
   state */
void llm_hearing_add(llm_hearing_t *h, llm_req_t *r);
void llm_hearing_remove(llm_hearing_t *h, llm_req_t *r);
/* a step of all that have a place.  0: there is nothing to do; LLM_ERROR: the
   model failed, and so have those */
int llm_hearing_step(llm_hearing_t *h, llm_err_t *err);
/* sends the events there is room for; nonzero if some are left.  ended() frees a
   request that is in no list any more; failed() calls llm_hearing_remove() */
typedef void (*llm_hearing_ended_pt)(void *engine, llm_req_t *r);
typedef void (*llm_hearing_failed_pt)(llm_engine_t *e, llm_req_t *r,
    const llm_err_t *err, uint32_t retry_after);
int llm_hearing_send(llm_hearing_t *h, llm_hearing_ended_pt ended,
    llm_hearing_failed_pt failed);

/* draft.c: what the instance's model, of the file at path, must keep for a head
   that drafts; LLM_ERROR: err says why there is none */
int llm_instance_keep(const llm_instance_t *m, const char *path,
    llm_keep_t *keep, llm_err_t *err);
/* loads the model of draft=FILE, or the head of that or of speculate=mtp, after
   the instance's own model; LLM_ERROR: err says why it cannot draft for it */
int llm_instance_draft(llm_instance_t *m, const llm_model_opts_t *opts,
    llm_err_t *err);
void llm_instance_close_draft(llm_instance_t *m);

/* instance.c */
/* adds an instance to e->instances, role MODEL; copies all strings; file may be
   NULL.  NULL: no memory */
llm_instance_t *llm_instance_create(llm_engine_t *e, uint32_t index,
    const llm_engine_model_t *conf, const char *file);
/* removes it from e->instances; it must be unloaded */
void llm_instance_free(llm_instance_t *m);
/* sets the role, and where the load's progress goes: for MODEL to the model's
   own in the zone, else to the command's, and with `shown` to both */
void llm_instance_place(llm_instance_t *m, llm_instance_role_t role, int shown);

/* room.c */
#define LLM_ROOM_PATIENCE_US  5000000
#define LLM_ROOM_VAIN_US      300000000     /* see vain_us */

/* may it be unloaded for another one?  A request loads it again */
int llm_instance_yields(const llm_instance_t *m);
/* the model whose load has lacked memory for longest; NULL: none does */
llm_instance_t *llm_engine_first_in_line(const llm_engine_t *e);
/* the model that is unloaded for m: it yields, has no request, and was used
   least recently.  LLM_FULL: there may be one later, or memory; LLM_ABSENT:
   there will be none */
int llm_engine_spare(llm_engine_t *e, const llm_instance_t *m,
    llm_instance_t **spare);
/* if a load waits for long, chooses a model that takes no more requests */
void llm_engine_give_way(llm_engine_t *e, uint64_t now);
/* m takes requests again, and prepares those that wait */
void llm_instance_stay(llm_instance_t *m);

/* models.c */
/*
 * Loads a failed model again, if it is time; the zone shows it as failed until
 * it is ready.  Also loads a model that waited for memory, which the zone shows
 * as loading, and reloads a cramped one, once the memory is free and it has no
 * requests.
 */
void llm_instance_retry(llm_instance_t *m, uint64_t now);
/* joins the loader and makes the scheduler; LLM_ERROR and load_err: that
   failed, and the model is closed */
int llm_instance_join(llm_instance_t *m);
/* takes over the loader's result: state READY or FAILED, or LOADING while the
   model warms up or waits for memory */
void llm_instance_loaded(llm_instance_t *m);
/* a model that is loaded and warmed up becomes READY */
void llm_instance_open(llm_instance_t *m);
/* waits for the loader, if any, frees the model and sets its state */
void llm_instance_unload(llm_instance_t *m, llm_model_state_t state);
/* fails its live requests; new ones wait in `held` or are refused */
void llm_instance_fail_live(llm_instance_t *m, const llm_err_t *err,
    uint32_t retry_after);
/* the device is broken: all requests fail with load_err, state FAILED */
void llm_instance_break(llm_instance_t *m);
/* the device or the file failed a step: all requests fail with err; once they
   are gone, llm_instance_rebuilt() loads the model again */
void llm_instance_rebuild(llm_instance_t *m, const llm_err_t *err);
/* sets its part of the model's gauges weight_bytes and kv_bytes */
void llm_instance_count_memory(llm_instance_t *m, uint64_t weights, uint64_t kv);
/* counts err if it is the device's or says that memory is missing */
void llm_instance_count_error(llm_instance_t *m, const llm_err_t *err);
/* must the model's device be closed and opened again? */
int llm_instance_device_failed(const llm_err_t *err);
/* loads the model again, or, if its GPU is lost, ends worker 0; does nothing
   while requests use it */
void llm_instance_rebuilt(llm_instance_t *m);

/* runner.c: a model as a scheduler uses it, without `chunk` */
void llm_instance_runner_of(llm_model_t *model, llm_runner_t *run);

/* sampling_defaults.c: reads the sampling parameters that the file recommends;
   those out of range are logged and not used */
void llm_instance_sampling(llm_instance_t *m, const llm_gguf_t *g);

/* swap.c: replaces a model's file; m is the present instance, b the new one */
/* begins to load the file; LLM_ERROR and err: it cannot be loaded */
int llm_swap_load(llm_instance_t *m, const char *file, llm_err_t *err);
/* the loader has ended: b warms up, replaces m, or fails */
void llm_swap_loaded(llm_instance_t *b);
/* b replaces m */
void llm_swap_open(llm_instance_t *b);
/* gives b up; requests that waited for it go back to m */
void llm_swap_fail(llm_instance_t *b, const llm_err_t *err);
/* the device failed a step of an instance that is not in e->models[], or that
   a command unloads */
void llm_swap_broken(llm_instance_t *m, const llm_err_t *err);
/* frees a replaced instance, once it is not in use */
void llm_swap_free_replaced(llm_instance_t *m);

/* warm.c */
/* begins to warm up a loaded model */
void llm_warm_begin(llm_instance_t *m);
/* sends the next request, if none is live; nonzero if there was anything to do;
   *over: the warm-up has ended */
int llm_warm_step(llm_instance_t *m, int *over);
/* ends the warm-up, if one runs, and fails its live requests */
void llm_warm_stop(llm_instance_t *m);

#ifdef LLM_TEST

/* synthetic.c */
int llm_synthetic_is(const char *device);
/* fills m->synthetic, m->env.vocab and m->runner */
int llm_synthetic_open(llm_instance_t *m, llm_err_t *err);
void llm_synthetic_close(llm_synthetic_t *s);
const llm_gguf_t *llm_synthetic_gguf(const llm_synthetic_t *s);
/* is it time for a step?  If so, sets when the next one is due */
int llm_synthetic_due(llm_synthetic_t *s, uint64_t now);
/* when the next step is due, llm_now_us() */
uint64_t llm_synthetic_next(const llm_synthetic_t *s);

#endif

#endif /* LLM_LOAD_H */
