/*
 * All that the nginx module sees of the engine: the zone of shared memory
 * that joins workers and engine, the client's side of it, the engine's
 * threads, and the flat messages that travel both ways.
 *
 * Messages carry offsets, never pointers: the same bytes travel inside one
 * process and through shared memory.  Down go llm_msg_t (requests, cancels),
 * up come llm_event_t; each worker has a ring for each way.
 *
 * Ownership: the caller owns the zone's memory and the eventfds.  One engine
 * per zone at a time, one client per worker; a client is used by its
 * worker's event loop only.  Functions that may be called from other
 * threads say so.
 */

#ifndef LLM_LLM_H
#define LLM_LLM_H

#include "engine/base/base.h"
#include "engine/base/flat.h"
#include "engine/base/sampling.h"

#define LLM_MAX_MODELS     32
#define LLM_MAX_WORKERS    256
#define LLM_MAX_CHOICES    128          /* n times prompts of one request */
#define LLM_MAX_STOPS      16
#define LLM_MAX_SLOTS      (1 << 20)    /* live requests of one worker */


/* ---- what a request says ---- */

/* a run of bytes inside a message, from the message's first byte */
typedef struct {
    uint32_t     off;
    uint32_t     len;                   /* bytes, or items where said so */
} llm_ref_t;

typedef enum {
    LLM_MSG_REQUEST = 1,
    LLM_MSG_CANCEL,                     /* the client went away */
    LLM_MSG_PAUSE,                      /* its reader is slow: park it */
    LLM_MSG_RESUME
} llm_msg_type_t;

/* what a request wants of its model; none embeds or scores yet */
typedef enum {
    LLM_TASK_GENERATE = 0,
    LLM_TASK_EMBED,
    LLM_TASK_SCORE
} llm_task_t;

/* where its prompts are: in chat, or in prompts */
typedef enum {
    LLM_KIND_CHAT = 1,
    LLM_KIND_COMPLETION
} llm_kind_t;

/* every message down begins so */
typedef struct {
    uint32_t     size;                  /* of the whole message, 8-aligned */
    uint32_t     type;                  /* llm_msg_type_t */
    uint32_t     slot;                  /* the worker's index of the request,
                                           below LLM_MAX_SLOTS */
    uint32_t     epoch;                 /* set by the client */
    uint64_t     ticket;                /* never used twice in a zone */
} llm_msg_t;

#define LLM_REQ_STREAM       1          /* text is wanted as it comes */
#define LLM_REQ_ECHO         2          /* completions: the prompt first */
#define LLM_REQ_IGNORE_EOS   4
#define LLM_REQ_TOKEN_IDS    8          /* events carry token ids */
#define LLM_REQ_NO_CACHE    16          /* neither read nor fill the prefix
                                           cache (for checks) */
#define LLM_REQ_SPECIAL     32          /* control tokens are shown as text */
#define LLM_REQ_PRIORITY    64          /* the client itself named one */

typedef struct {
    llm_msg_t        head;

    uint32_t         model;             /* index in the zone */
    uint32_t         task;              /* llm_task_t */
    uint32_t         kind;              /* llm_kind_t */
    uint32_t         flags;             /* LLM_REQ_... */
    uint32_t         n;                 /* choices for each prompt */
    int32_t          max_tokens;        /* of a choice; what the context
                                           leaves is the most, and -1 */
    int32_t          min_tokens;
    int32_t          priority;          /* the higher the first */
    uint32_t         weight;            /* tenant's share, 1..., in 1/1000 */
    uint32_t         window;            /* bytes of TEXT events that may wait
                                           to be read; 0: no bound */
    uint64_t         tenant;            /* hash; fairness and cache salt */
    uint64_t         salt;              /* of cache_salt, 0: none */
    uint64_t         arrival_us;        /* llm_now_us() */
    uint64_t         queue_deadline_us; /* 0: none; must be running by then */
    uint64_t         deadline_us;       /* 0: none; must be done by then */

    llm_sampling_t   sampling;

    llm_ref_t        chat;              /* flat object for llm_chat_render() */
    llm_ref_t        prompts;           /* llm_prompt_ref_t[len] */
    llm_ref_t        stops;             /* llm_ref_t[len]: stop strings */
    llm_ref_t        stop_ids;          /* int32_t[len] */
    llm_ref_t        logit_bias;        /* llm_logit_bias_t[len] */
} llm_request_t;

/*
 * In a message's tool call, or in the function of one: the object that the
 * JSON text of "arguments" says, beside that text.  Only engine/api writes
 * this key, which no client can set, and no template sees it.
 */
#define LLM_CHAT_ARGS  "arguments, read"

/* one prompt of a completion: text, or token ids */
typedef struct {
    uint32_t         is_ids;
    llm_ref_t        ref;               /* bytes; ids: count of int32_t */
} llm_prompt_ref_t;


/* ---- what comes back ---- */

typedef enum {
    LLM_EV_START = 1,   /* admitted and prepared: the request is valid; its
                           counts are known; nothing was generated yet */
    LLM_EV_TEXT,        /* text of a choice, in whole UTF-8 characters */
    LLM_EV_FINISH,      /* a choice has ended */
    LLM_EV_DONE,        /* the request has ended; last event of its ticket */
    LLM_EV_ERROR        /* it failed; last event of its ticket */
} llm_event_type_t;

typedef enum {
    LLM_FINISH_NONE = 0,
    LLM_FINISH_STOP,
    LLM_FINISH_LENGTH,
    LLM_FINISH_TOOL_CALLS,
    LLM_FINISH_CANCELLED
} llm_finish_t;

/* where text belongs in a chat answer */
typedef enum {
    LLM_PART_CONTENT = 0,
    LLM_PART_REASONING,
    LLM_PART_TOOL_NAME,                 /* a new call: call, its id, name */
    LLM_PART_TOOL_ARGS                  /* more of its arguments */
} llm_part_t;

typedef struct {
    uint32_t     size;                  /* of the whole event, 8-aligned */
    uint32_t     type;                  /* llm_event_type_t */
    uint32_t     slot;
    uint32_t     index;                 /* choice */
    uint64_t     ticket;

    union {
        struct {                        /* START */
            uint32_t     prompt_tokens; /* of all prompts */
            uint32_t     cached_tokens;
            uint64_t     queue_us;      /* arrival to running */
        } start;

        struct {                        /* TEXT */
            uint32_t     part;          /* llm_part_t */
            uint32_t     call;          /* of the tool call, from 0 */
            uint32_t     n_tokens;      /* tokens that this event stands for */
            uint32_t     echo;          /* the prompt's: without streaming it
                                           comes once, with the prompt's first
                                           choice, and is for all of them */
            llm_ref_t    text;          /* offsets from the event's start */
            llm_ref_t    logprobs;      /* llm_token_logprob_t[len] */
            llm_ref_t    ids;           /* int32_t[len]: the tokens, if they
                                           were asked for */
        } text;

        struct {                        /* FINISH */
            uint32_t     reason;        /* llm_finish_t */
            uint32_t     completion_tokens;
            uint32_t     reasoning_tokens;
            int32_t      stop_id;       /* token that ended it, or -1 */
            llm_ref_t    stop;          /* the stop string that matched */
        } finish;

        struct {                        /* DONE */
            uint32_t     prompt_tokens;
            uint32_t     cached_tokens;
            uint32_t     completion_tokens;
            uint32_t     reasoning_tokens;
            uint64_t     queue_us;
            uint64_t     ttft_us;       /* arrival to the first token */
            uint64_t     total_us;
        } done;

        struct {                        /* ERROR */
            uint32_t     status;
            uint32_t     retry_after;   /* seconds, 0: none */
            uint32_t     completion_tokens;  /* until then, of all choices */
            llm_ref_t    msg;
            llm_ref_t    code;          /* may be empty */
            llm_ref_t    param;
        } error;
    } u;
} llm_event_t;

/* one token and its rivals; in TEXT events when logprobs were asked for */
typedef struct {
    int32_t      id;
    float        logprob;
    uint32_t     text_offset;           /* in the choice's text, bytes */
    llm_ref_t    bytes;                 /* from the event's start */
    llm_ref_t    top;                   /* llm_top_logprob_t[len] */
} llm_token_logprob_t;

typedef struct {
    int32_t      id;
    float        logprob;
    llm_ref_t    bytes;
} llm_top_logprob_t;

/* the bytes of a reference; base is the message or the event */
#define llm_ref_data(base, ref)  ((const void *) ((const char *) (base)      \
                                                  + (ref).off))


/* ---- the zone ---- */

typedef struct llm_zone_s  llm_zone_t;

typedef enum {
    LLM_MODEL_IDLE = 0,                 /* lazy, or no engine yet */
    LLM_MODEL_LOADING,
    LLM_MODEL_READY,
    LLM_MODEL_FAILED
} llm_model_state_t;

/* a snapshot for /health and /v1/models */
typedef struct {
    llm_model_state_t  state;
    uint32_t           permille;        /* of loading */
    uint32_t           wanted;          /* loading, for it was idle and there
                                           is a request */
    uint32_t           running;         /* sequences */
    uint32_t           waiting;         /* requests */
    uint32_t           ctx;             /* 0 until it is known */
    char               error[512];      /* why it failed */
    char               device[128];
} llm_model_status_t;

/* a model as the zone has to know it before there is an engine */
typedef struct {
    uint32_t     parallel;              /* sequences that run at once */
} llm_zone_model_t;

/* bytes that a zone takes; ring_size is both rings of one worker */
size_t llm_zone_size(uint32_t n_workers, uint32_t n_models,
    size_t ring_size);
/*
 * Formats mem (64-byte aligned, llm_zone_size() bytes).  queue is the number
 * of requests that may wait, all workers and models together.  Called once,
 * before any client or engine is attached.
 */
llm_zone_t *llm_zone_init(void *mem, uint32_t n_workers,
    const llm_zone_model_t *models, uint32_t n_models, size_t ring_size,
    uint32_t queue);
void llm_zone_status(llm_zone_t *z, uint32_t model, llm_model_status_t *st);
/* changes whenever an engine attaches; 0: none was there yet */
uint32_t llm_zone_epoch(llm_zone_t *z);

/*
 * Figures for metrics.  Counters only grow, also over a new engine; any
 * process may read them at any time.
 */
#define LLM_HIST_MAX  24

/* bounds in seconds, cumulative counts; the last bucket, +Inf, is count */
typedef struct {
    uint32_t       n;
    const double  *bounds;              /* [n] static */
    uint64_t       buckets[LLM_HIST_MAX];
    uint64_t       count;
    double         sum;
} llm_hist_t;

typedef struct {
    uint32_t     running;               /* sequences; gauges */
    uint32_t     parked;
    uint32_t     waiting;               /* requests */
    uint32_t     kv_pages;
    uint32_t     kv_used;               /* pages held by sequences */
    uint32_t     kv_cached;             /* pages kept for prefixes alone */
    uint64_t     request_memory;        /* bytes that live requests take */

    uint64_t     prompt_tokens;         /* counters */
    uint64_t     prompt_computed;       /* prompt tokens really computed */
    uint64_t     generation_tokens;
    uint64_t     prefix_queries;        /* prompt tokens looked up */
    uint64_t     prefix_hits;           /* of these found */
    uint64_t     preemptions;
    uint64_t     steps;
    uint64_t     steps_behind;          /* launched while another ran */
    uint64_t     finished[5];           /* choices, by llm_finish_t */
    uint64_t     errors;                /* requests that ended in an error */

    llm_hist_t   ttft;
    llm_hist_t   itl;
    llm_hist_t   e2e;
    llm_hist_t   queue;
    llm_hist_t   prefill;
    llm_hist_t   decode;
} llm_model_stats_t;

typedef struct {
    uint64_t     events;                /* all that were sent up */
    uint64_t     token_events;          /* of these with text */
    uint64_t     wakeups;               /* writes to its eventfd */
} llm_worker_stats_t;

void llm_zone_model_stats(llm_zone_t *z, uint32_t model,
    llm_model_stats_t *st);
void llm_zone_worker_stats(llm_zone_t *z, uint32_t worker,
    llm_worker_stats_t *st);

/* is an engine alive and making progress (its pid lives, no step hangs)? */
int llm_zone_alive(llm_zone_t *z);


/* ---- a worker's side ---- */

typedef struct llm_client_s  llm_client_t;

typedef struct {
    llm_zone_t  *zone;
    uint32_t     worker;
    int          engine_fd;             /* eventfd that wakes the engine */
} llm_client_conf_t;

/*
 * Takes the worker's rings over, whatever a dead predecessor left in them.
 * The engine cancels the predecessor's requests.  NULL: no memory.
 */
llm_client_t *llm_client_attach(const llm_client_conf_t *conf);
/* cancels what is live and gives the rings back; the process may exit */
void llm_client_detach(llm_client_t *c);

/*
 * Is there room for one more request of this model?  Before a body is read;
 * submit() decides.  LLM_OK, or LLM_ERROR with err as submit().
 */
int llm_client_admits(llm_client_t *c, uint32_t model, llm_err_t *err);

/*
 * Sends a request; msg is llm_request_t with its bytes behind it; head.size,
 * slot and type are the caller's, head.ticket is set here.  LLM_ERROR and
 * err: 429 queue full, 503 model failed, loading with a full queue or ring
 * full, 413 larger than the ring takes.  No event comes then.  *retry_after
 * in seconds goes with 429 and 503.
 */
int llm_client_submit(llm_client_t *c, llm_request_t *msg,
    uint32_t *retry_after, llm_err_t *err);
/* CANCEL, PAUSE, RESUME; never fails (kept and re-sent if the ring is full);
   after CANCEL no event of the ticket is handed out any more */
void llm_client_tell(llm_client_t *c, llm_msg_type_t type, uint32_t slot,
    uint64_t ticket);

/*
 * Hands out the events that are there, at most max (0: all); the event is
 * valid during the call only.  The caller has read its eventfd before.
 * Returns the number handed out.  When it returns less than max the client
 * is armed: the engine will write to the worker's eventfd for the next
 * event.  If max was reached call again.  Also notices a new engine epoch:
 * live tickets of the old one get an LLM_EV_ERROR (503).
 */
typedef void (*llm_event_pt)(void *data, const llm_event_t *ev);
uint32_t llm_client_drain(llm_client_t *c, llm_event_pt handler, void *data,
    uint32_t max);


/* ---- the engine ---- */

typedef struct {
    const char  *name;                  /* for the log */
    const char  *path;
    const char  *template_path;         /* NULL: the file's own template */
    const char  *device;                /* "auto", "cpu", "cuda:0", "emu",
                                           "synthetic:N" with LLM_TEST */
    uint32_t     ctx;                   /* 0: the model's */
    uint32_t     parallel;
    uint32_t     threads;
    uint32_t     batch;                 /* tokens a step, 0: default */
    size_t       kv_cache;              /* bytes, 0: default */
    int          weights_fp8;           /* wider matrices to fp8 at load */
    int          kv_fp8;                /* the KV cache in fp8 */
    uint32_t     idle_s;                /* unload after; 0: never */
    int          lazy;                  /* load at the first request */
} llm_engine_model_t;

/*
 * The engines of one nginx, over its reloads, in llm_engines_size() bytes of
 * zeros that they share: a model for which an older one leaves no memory
 * waits until that has ended.
 */
typedef struct llm_engines_s  llm_engines_t;

size_t llm_engines_size(void);

typedef struct {
    llm_zone_t                *zone;
    llm_engines_t             *engines; /* NULL: there is no other */
    const llm_engine_model_t  *models;  /* copied */
    uint32_t                   n_models;
    int                        engine_fd;
    const int                 *worker_fds;
    uint32_t                   n_workers;
    size_t                     max_bytes;  /* memory of all requests; 0: the
                                              default */
    const char                *backend_dir;
    llm_log_pt                 log;
    void                      *log_data;
} llm_engine_conf_t;

typedef struct llm_engine_s  llm_engine_t;

/*
 * Starts the threads and returns at once; models load in the background.
 * It fails only for want of memory or threads.
 */
llm_engine_t *llm_engine_start(const llm_engine_conf_t *conf,
    llm_err_t *err);
/* requests live in any worker, waiting or running; from any thread */
uint32_t llm_engine_live(llm_engine_t *e);
/*
 * A GPU's context is lost to this process, and those whose requests that cost
 * were told: nothing on it is served before another process is worker 0.  Its
 * eventfd is written then; from any thread.
 */
int llm_engine_lost(llm_engine_t *e);
/* stops within one step; live requests get an error event; joins all */
void llm_engine_stop(llm_engine_t *e);

/*
 * Cheap check of a model file for `nginx -t`: it opens and its header is
 * that of a supported model.
 */
int llm_model_file_check(const char *path, llm_err_t *err);
/* the same for template=: it is a file that can be read, and not too long */
int llm_template_file_check(const char *path, llm_err_t *err);
/* a CUDA device's backend is there; if not err says how to get it */
int llm_device_check(const char *device, llm_err_t *err);
/* where the device's memory is the machine's: it has so much, used or not */
int llm_kv_cache_check(const char *device, size_t kv_cache, llm_err_t *err);

#endif /* LLM_LLM_H */
