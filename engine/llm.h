/*
 * The engine's interface for the nginx module: the zone of shared memory
 * between workers and engine, the client in each worker, the engine's
 * threads, and the flat messages in both directions.
 *
 * Messages have offsets, never pointers, so the same bytes work inside one
 * process and through shared memory.  Workers send llm_msg_t (requests,
 * cancels), the engine sends llm_event_t; each worker has a ring for each
 * direction.
 *
 * Ownership: the caller owns the zone's memory and the eventfds.  A zone has
 * one engine at a time, a worker has one client; only the worker's event loop
 * uses the client.  Functions that may be called from other threads say so.
 */

#ifndef LLM_LLM_H
#define LLM_LLM_H

#include "engine/base/base.h"
#include "engine/base/flat.h"
#include "engine/base/process.h"
#include "engine/base/products.h"
#include "engine/base/sampling.h"

#define LLM_MAX_MODELS     32
#define LLM_MAX_NAME       256         /* bytes of a name that is given to a
                                           model */
#define LLM_NAME_TEXT      264         /* bytes of such a name with its zero, a
                                           multiple of 8 */
#define LLM_MAX_WORKERS    256
#define LLM_MAX_CHOICES    128          /* n times prompts of one request */
#define LLM_MAX_INPUTS     2048         /* inputs to embed, or pairs to
                                           score */
#define LLM_MAX_MEDIA      4096         /* images and sound of one request */
#define LLM_MEDIA_CHUNK    16384        /* bytes of the memory for media that a
                                           block has a multiple of */
#define LLM_MAX_STOPS      16
#define LLM_MAX_PRIORITY   100          /* the lowest is -LLM_MAX_PRIORITY */
#define LLM_MAX_BAD_WORDS  256
#define LLM_MAX_SLOTS      (1 << 20)    /* live requests of one worker */
#define LLM_MAX_FILE       1024         /* bytes of a model's path that a
                                           command may name, with the zero */


/* ---- media: images and sound of requests ---- */

/* bits of a set of kinds, such as those that a model takes */
#define LLM_MEDIUM_IMAGE  1
#define LLM_MEDIUM_AUDIO  2
/* the model transcribes speech, and takes nothing in chats */
#define LLM_MEDIUM_SPEECH  4

/* what bytes are, as the client says, who may be wrong */
typedef enum {
    LLM_MEDIA_ANY = 0,                  /* the client does not say */
    LLM_MEDIA_PNG,
    LLM_MEDIA_JPEG,
    LLM_MEDIA_WEBP,
    LLM_MEDIA_GIF,
    LLM_MEDIA_WAV,
    LLM_MEDIA_MP3,
    LLM_MEDIA_FLAC,
    LLM_MEDIA_OGG,
    LLM_MEDIA_BMP
} llm_media_type_t;

/* how much of an image the client wants the model to see */
typedef enum {
    LLM_DETAIL_AUTO = 0,
    LLM_DETAIL_LOW,
    LLM_DETAIL_HIGH
} llm_detail_t;

/* bytes in the memory for media that workers and engine share (llm_zone_t),
   which has room in chunks */
typedef struct {
    uint32_t     first;                 /* chunk */
    uint32_t     n;                     /* chunks; 0: there are no bytes */
    uint64_t     len;                   /* bytes */
} llm_chunk_t;


/* ---- what a request says ---- */

/* a run of bytes inside a message, from the message's first byte */
typedef struct {
    uint32_t     off;
    uint32_t     len;                   /* bytes, or items where noted */
} llm_ref_t;

typedef enum {
    LLM_MSG_REQUEST = 1,
    LLM_MSG_CANCEL,                     /* the client has gone */
    LLM_MSG_PAUSE,                      /* the client reads slowly: park it */
    LLM_MSG_RESUME,
    LLM_MSG_GRANT,                      /* answer to PREPARED: the request may
                                           run */
    LLM_MSG_COMMAND                     /* load, unload, ... a model */
} llm_msg_type_t;

/* what the model is to do with each prompt */
typedef enum {
    LLM_TASK_GENERATE = 0,
    LLM_TASK_EMBED,                     /* one vector for each prompt */
    LLM_TASK_SCORE,                     /* one number for each pair of prompts,
                                           a query and a document */
    LLM_TASK_LISTEN,                    /* a sound, the only media, to its
                                           transcript */

    /* tasks for which the vocabulary and the template suffice */

    LLM_TASK_TOKENIZE,                  /* a prompt to ids */
    LLM_TASK_DETOKENIZE,                /* ids to text */
    LLM_TASK_RENDER,                    /* a chat to the prompt's text */
    LLM_TASK_DESCRIBE,                  /* the tokenizer, as a flat object */
    LLM_TASK_PROPS                      /* the model, as a flat object */
} llm_task_t;

/* where the prompts of a request are: in chat, or in prompts */
typedef enum {
    LLM_KIND_NONE = 0,                  /* no prompt: LISTEN, DESCRIBE and
                                           PROPS */
    LLM_KIND_CHAT,
    LLM_KIND_COMPLETION
} llm_kind_t;

/* how an answer's constraint is written; in brackets what `rule` refers to */
typedef enum {
    LLM_RULE_NONE = 0,
    LLM_RULE_OBJECT,                    /* any object of JSON [nothing] */
    LLM_RULE_SCHEMA,                    /* JSON Schema [a flat value] */
    LLM_RULE_STRICT,                    /* the same; objects have no properties
                                           that the schema does not name */
    LLM_RULE_GBNF,                      /* [text] */
    LLM_RULE_REGEX,                     /* [text] */
    LLM_RULE_CHOICE                     /* one of some texts [a flat array of
                                           strings] */
} llm_rule_t;

/* what a chat's answer may do with its tools */
typedef enum {
    LLM_TOOLS_AUTO = 0,                 /* call any number, or none */
    LLM_TOOLS_NONE,                     /* call none; the prompt shows none */
    LLM_TOOLS_REQUIRED                  /* call at least one */
} llm_tool_choice_t;

/* the head of every message to the engine */
typedef struct {
    uint32_t     size;                  /* of the whole message, 8-aligned */
    uint32_t     type;                  /* llm_msg_type_t */
    uint32_t     slot;                  /* the worker's index of the request,
                                           below LLM_MAX_SLOTS */
    uint32_t     epoch;                 /* set by the client */
    uint64_t     ticket;                /* never used twice in a zone */
} llm_msg_t;

#define LLM_REQ_STREAM       1          /* send text as it is generated */
#define LLM_REQ_ECHO         2          /* completions: the answer begins with
                                           the prompt */
#define LLM_REQ_IGNORE_EOS   4
#define LLM_REQ_TOKEN_IDS    8          /* events carry token ids */
#define LLM_REQ_NO_CACHE    16          /* do not read or fill the prefix
                                           cache */
#define LLM_REQ_SPECIAL     32          /* show control tokens as text */
#define LLM_REQ_PRIORITY    64          /* the client set a priority */
#define LLM_REQ_THINK_TEXT 128          /* reasoning is left in the content, as
                                           the model marks it */
#define LLM_REQ_THINK_HIDE 256          /* reasoning is not sent */
#define LLM_REQ_ADD        512          /* TOKENIZE: with BOS and EOS, if the
                                           model has them */
#define LLM_REQ_PLAIN     1024          /* TOKENIZE: control tokens in the text
                                           are text */
#define LLM_REQ_PIECES    2048          /* TOKENIZE: events carry the bytes of
                                           each token, as logprobs */
#define LLM_REQ_THINK_MOST 4096         /* reasoning ends after think_tokens */
#define LLM_REQ_METERED   8192          /* after PREPARED it waits for GRANT;
                                           events report each token at once,
                                           even if it has no text yet */
#define LLM_REQ_PROGRESS 32768          /* PROGRESS events are sent */
#define LLM_REQ_SHOW     65536          /* each prompt's text comes first, as an
                                           echo without logprobs: with its
                                           control tokens, without media */
#define LLM_REQ_PROBE    16384          /* not a use of the model: an idle model
                                           refuses it (PROPS: answers nothing),
                                           and it does not keep a model from
                                           becoming idle */

#define LLM_REQ_STATES  131072          /* EMBED: with the pooling type "none"
                                           an input becomes a vector for each
                                           token, not normalised */
#define LLM_REQ_RAW     262144          /* SCORE: scores are log odds, not
                                           probabilities */
#define LLM_REQ_CUT_HEAD 524288         /* SCORE: truncated texts lose their
                                           beginnings, not their ends */

#define LLM_NORMALIZE_NONE  (-1)
#define LLM_NORMALIZE_MAX   0           /* the largest absolute value becomes
                                           32760 */
#define LLM_NORMALIZE_L2    2

typedef struct {
    llm_msg_t        head;

    uint32_t         model;             /* index in the zone */
    uint32_t         task;              /* llm_task_t */
    uint32_t         kind;              /* llm_kind_t */
    uint32_t         flags;             /* LLM_REQ_... */
    uint32_t         n;                 /* choices for each prompt */
    int32_t          max_tokens;        /* of a choice, within what the context
                                           leaves; -1: as many as it leaves */
    int32_t          min_tokens;
    int32_t          priority;          /* higher is served first */
    uint32_t         weight;            /* tenant's share in 1/1000, from 1 */
    uint32_t         max_unread;        /* bytes of TEXT events that may be
                                           unread; 0: no bound */
    uint64_t         tenant;            /* hash; for fair shares and the prefix
                                           cache */
    uint64_t         salt;              /* hash of cache_salt, 0: none */
    uint64_t         arrival_us;        /* llm_now_us() */
    uint64_t         queue_deadline_us; /* when it must have begun to run; 0:
                                           none */
    uint64_t         deadline_us;       /* when it must have ended; 0: none */

    /* EMBED only */
    uint32_t         dimensions;        /* numbers of a vector, the first ones;
                                           0: all */
    int32_t          normalize;         /* LLM_NORMALIZE_..., or the p of the
                                           p-norm that becomes 1 */
    int32_t          truncate;          /* tokens that are kept of a longer
                                           input: the last, of an encoder's the
                                           first; -1: as many as fit; 0: longer
                                           inputs are refused.  SCORE, too: 0,
                                           or -1, see pairs.c */

    llm_sampling_t   sampling;

    llm_ref_t        chat;              /* flat object for llm_chat_render() */
    llm_ref_t        prompts;           /* llm_prompt_ref_t[len] */
    llm_ref_t        stops;             /* llm_ref_t[len]: stop strings */
    llm_ref_t        stop_ids;          /* int32_t[len] */
    llm_ref_t        logit_bias;        /* llm_logit_bias_t[len] */
    llm_ref_t        text_bias;         /* llm_text_bias_t[len] */
    llm_ref_t        allowed_ids;       /* int32_t[len]; none: all */
    llm_ref_t        bad_words;         /* llm_ref_t[len]: strings */
    llm_ref_t        breakers;          /* llm_ref_t[len]: strings, for DRY */
    llm_ref_t        infill;            /* llm_infill_t[len], none or one */
    llm_ref_t        prediction;        /* text that the answer may have, to be
                                           drafted; empty: none */

    uint32_t         rule_kind;         /* llm_rule_t: constraint of each
                                           choice */
    llm_ref_t        rule;              /* bytes; see llm_rule_t */
    llm_ref_t        rule_name;         /* text: the field that it came in */
    uint32_t         tool_choice;       /* llm_tool_choice_t */
    uint32_t         tool_single;       /* one call at most */
    uint32_t         think_tokens;      /* see LLM_REQ_THINK_MOST */
    uint32_t         most_prompt;       /* most tokens of a prompt; 0: what the
                                           context holds */
    llm_ref_t        tool_names;        /* llm_ref_t[len]: the tools of the
                                           chat that may be called; empty: all
                                           of them */
    uint32_t         account;           /* account that its tokens' times count
                                           for: number in `times` of
                                           llm_kept_t, from 1; 0: none */
    uint32_t         naming;            /* number of the model's name, see
                                           llm_zone_give_name(); 0: the name is
                                           the configuration's */
    llm_ref_t        media;             /* llm_media_ref_t[len], 8-aligned; the
                                           request owns the blocks of these */
    uint64_t         max_pixels;        /* of an image; a larger one is refused
                                           before it is decoded; 0: no bound */

    uint32_t         max_seconds;       /* of a sound; 0: no bound but the
                                           decoder's */

    /* LISTEN only */
    int32_t          language;          /* number in base/language.h; -1: it is
                                           detected */
    uint32_t         translate;         /* 1: to English */
    uint32_t         words;             /* 1: words have times */
    double           heat;              /* the only temperature; -1: 0, then
                                           more while a text fails */
    uint64_t         chance;            /* seed */
    llm_ref_t        spoken;            /* text before the sound, or empty */
} llm_request_t;

/* an image or a sound that a chat refers to by its index, see
   LLM_CHAT_MEDIA */
typedef struct {
    uint32_t         kind;              /* one of LLM_MEDIUM_... */
    uint32_t         type;              /* llm_media_type_t */
    uint32_t         detail;            /* llm_detail_t */
    uint32_t         unused;
    llm_chunk_t      block;             /* the file's bytes, as they came; n is
                                           0 while they have to be fetched */
    llm_ref_t        url;               /* where the bytes are fetched; len 0:
                                           they came with the request.  The
                                           engine gets no message in which any
                                           are missing */
    llm_ref_t        place;             /* text: the part's path in the client's
                                           body, for errors */
} llm_media_ref_t;

/* infill: the model writes the text between a prompt and the suffix */
typedef struct {
    llm_ref_t        suffix;
    llm_ref_t        extra;             /* llm_extra_t[len]: other texts for the
                                           prompt, the most important last */
} llm_infill_t;

/* a bias for each token of a text */
typedef struct {
    llm_ref_t        text;
    float            bias;
} llm_text_bias_t;

typedef struct {
    llm_ref_t        name;              /* of a file */
    llm_ref_t        text;
} llm_extra_t;

/*
 * A key in a tool call of a chat, or in the call's function: its value is the
 * JSON text of "arguments" as an object; the text is there, too.  Only
 * engine/api writes this key; clients cannot set it, templates do not see it.
 */
#define LLM_CHAT_ARGS  "arguments, read"

/*
 * A key in a content part of the type "image" or "audio": its value is the
 * index of the part's llm_media_ref_t in the message.  Only engine/api writes
 * parts with this key; clients cannot.
 */
#define LLM_CHAT_MEDIA  "media, index"

/* one prompt of a completion: text, token ids, or parts that are either */
#define LLM_PROMPT_IDS    1
#define LLM_PROMPT_PARTS  2
typedef struct {
    uint32_t         is_ids;            /* 0: text; LLM_PROMPT_... */
    llm_ref_t        ref;               /* bytes of the text; for ids the count
                                           of int32_t, for parts of
                                           llm_prompt_ref_t */
} llm_prompt_ref_t;


/* ---- events: what the engine sends ---- */

typedef enum {
    LLM_EV_PREPARED = 1,/* a metered request is valid, its size is known; it is
                           queued when GRANT has come */
    LLM_EV_START,       /* the request begins to run; its counts are known;
                           nothing was generated yet */
    LLM_EV_TEXT,        /* text of a choice, in whole UTF-8 characters */
    LLM_EV_FINISH,      /* a choice has ended */
    LLM_EV_DONE,        /* the request has ended; last event of its ticket */
    LLM_EV_ERROR,       /* the request failed; last event of its ticket */
    LLM_EV_PROGRESS,    /* how much of the prompts is computed: after START,
                           which then comes before their first step, and after
                           each step of theirs, before the first text */
    LLM_EV_VECTOR       /* a part of an input's vector, or a pair's score;
                           parts come in order */
} llm_event_type_t;

/* what a drafted token comes from; the scheduler's verification is the same for
   all (engine/sched/speculate.c) */
typedef enum {
    LLM_DRAFT_NONE = 0,
    LLM_DRAFT_NGRAM,                    /* tokens that stood in the prompt or in
                                           the answer before */
    LLM_DRAFT_PREDICTION,               /* the client's prediction */
    LLM_DRAFT_GRAMMAR,                  /* text that a grammar forces */
    LLM_DRAFT_MODEL,                    /* a small model of the same
                                           vocabulary, or a head in a file of
                                           its own */
    LLM_DRAFT_MTP,                      /* the model's own layer for
                                           multi-token prediction */
    LLM_DRAFT_N
} llm_draft_kind_t;

typedef enum {
    LLM_FINISH_NONE = 0,
    LLM_FINISH_STOP,
    LLM_FINISH_LENGTH,
    LLM_FINISH_TOOL_CALLS,
    LLM_FINISH_CANCELLED
} llm_finish_t;

/* the part of a chat answer that text belongs to */
typedef enum {
    LLM_PART_CONTENT = 0,
    LLM_PART_REASONING,
    LLM_PART_TOOL_NAME,                 /* a new call: call, its id, name */
    LLM_PART_TOOL_ARGS                  /* more of the call's arguments */
} llm_part_t;

/* a period of a request's time */
typedef struct {
    uint32_t     at_us;                 /* begin, after the request's arrival */
    uint32_t     us;                    /* 0: there was none */
} llm_period_t;

typedef struct {
    uint32_t     size;                  /* of the whole event, 8-aligned */
    uint32_t     type;                  /* llm_event_type_t */
    uint32_t     slot;
    uint32_t     index;                 /* choice */
    uint64_t     ticket;

    union {
        struct {                        /* PREPARED */
            uint32_t     prompt_tokens; /* of all prompts */
            uint32_t     audio_s;       /* seconds of each sound, rounded up,
                                           together; 0: there is none */
            uint64_t     answer_tokens; /* most tokens of all choices
                                           together */
        } prepared;

        struct {                        /* START */
            uint32_t     prompt_tokens; /* of all prompts */
            uint32_t     cached_tokens;
            uint64_t     queue_us;      /* arrival to running */
            uint64_t     start_us;      /* time when it began to run, by
                                           llm_now_us() */
            uint32_t     ctx;           /* tokens that the model can hold */
            uint32_t     audio_s;       /* as in PREPARED */
            uint32_t     audio_tokens;  /* of these, of chats, in
                                           prompt_tokens */
            uint32_t     heard_s;       /* of audio_s, those that are computed
                                           if the request ends now */
            llm_period_t   prepared;      /* template, tokenizer, grammar */
            uint64_t     predicted_us;  /* arrival to the first token, predicted
                                           at admission; 0: not known */
        } start;

        struct {                        /* PROGRESS */
            uint32_t     processed;     /* prompt tokens, of all prompts: first
                                           those from the cache, at last all */
        } progress;

        struct {                        /* TEXT */
            uint16_t     part;          /* llm_part_t */
            uint16_t     echo;          /* the text is the prompt's: without
                                           streaming it comes once, for the
                                           first choice of a prompt, and is
                                           part of each of its choices */
            uint32_t     call;          /* index of the tool call, from 0; with
                                           ids of a prompt, how many more
                                           follow in other events */
            uint32_t     n_tokens;      /* tokens of this event */
            uint32_t     n_reasoning;   /* of n_tokens, those of reasoning */
            uint32_t     heard_s;       /* as in START, of transcriptions; 0: it
                                           says nothing */
            llm_ref_t    text;          /* offsets from the event's start */
            llm_ref_t    logprobs;      /* llm_token_logprob_t[len] */
            llm_ref_t    ids;           /* int32_t[len]: the tokens, if they
                                           were asked for.  A prompt's come in
                                           events with echo and without text,
                                           before all other events of its first
                                           choice. */
        } text;

        struct {                        /* VECTOR */
            uint32_t     first;         /* number of the first value */
            uint32_t     total;         /* values of the whole vector */
            llm_ref_t    values;        /* float[len] */
            uint32_t     width;         /* values of one vector, of which there
                                           may be several, one after another */
        } vector;

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
            uint32_t     accepted_tokens;   /* drafted tokens that the model
                                               drew, and those that it did
                                               not draw */
            uint32_t     rejected_tokens;
            uint64_t     queue_us;
            uint64_t     ttft_us;       /* arrival to the first token */
            uint64_t     total_us;
        } done;

        struct {                        /* ERROR */
            uint16_t     status;
            uint16_t     retry_after;   /* seconds, 0: none */
            uint32_t     completion_tokens;  /* generated before the error, in
                                                all choices */
            llm_period_t   prepared;      /* as in START */
            llm_ref_t    msg;
            llm_ref_t    code;          /* may be empty */
            llm_ref_t    param;
            uint32_t     n_prompt;      /* as in llm_err_t */
            uint32_t     n_ctx;
        } error;
    } u;
} llm_event_t;

/* a token and the most likely ones at its position; in TEXT events if logprobs
   were asked for */
typedef struct {
    int32_t      id;
    float        logprob;
    uint32_t     text_offset;           /* bytes, in the choice's text */
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
    LLM_MODEL_IDLE = 0,                 /* lazy or unloaded, or no engine
                                           yet */
    LLM_MODEL_LOADING,
    LLM_MODEL_READY,
    LLM_MODEL_FAILED,
    LLM_MODEL_STOPPED                   /* unloaded by a command: requests do
                                           not load it but get a 503
                                           model_stopped */
} llm_model_state_t;

/* a snapshot for /health and /v1/models */
typedef struct {
    llm_model_state_t  state;
    uint32_t           permille;        /* progress of loading, in 1/1000 */
    uint32_t           warming;         /* LOADING: the file is loaded, and the
                                           model warms up */
    uint32_t           wanted;          /* LOADING: it was idle and a request
                                           has begun the load */
    uint32_t           draining;        /* by a command: health says 503; from
                                           refuse_us on new requests get a 503
                                           model_draining */
    uint64_t           refuse_us;       /* llm_now_us() */
    uint32_t           running;         /* sequences */
    uint32_t           waiting;         /* requests */
    uint32_t           requests;        /* requests that wait or run */
    uint32_t           replaced;        /* of `requests`, those that still use
                                           a file that was replaced */
    uint32_t           ctx;             /* like the next six, 0 until the model
                                           was loaded */
    uint32_t           takes;           /* LLM_MEDIUM_..., what it takes */
    uint32_t           ctx_train;
    uint32_t           n_vocab;
    uint32_t           n_embd;
    uint64_t           n_params;
    uint64_t           n_bytes;         /* of the weights */
    llm_sampling_t     advised;         /* temperature and top_p only, as far
                                           as the file recommends them */
    char               error[512];      /* why it has failed */
    char               device[128];
    char               file[LLM_MAX_FILE];  /* file that serves, or is to
                                               serve; empty: the
                                               configuration's */
} llm_model_status_t;

/* what the zone needs to know of a model before there is an engine */
typedef struct {
    uint32_t     parallel;              /* sequences that run at once */
    int          speech;                /* the configured file is one of
                                           speech */
    uint32_t     other;                 /* `parallel` of a file of the other
                                           sort; 0: the same */
    uint32_t     places;                /* most requests that run or wait; 0: as
                                           many as the queue of all models
                                           allows */
} llm_zone_model_t;

/* the size of a zone in bytes; ring_size: bytes of both rings of one worker */
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
/*
 * Bounds of the queue other than the number of requests.  If tokens or ttft_us
 * is set, requests of a priority below 0 get half of each bound, and of the
 * number of requests.  Called once, after init().
 */
typedef struct {
    uint64_t     tokens;                /* prompt tokens still to be computed,
                                           over all models; 0: no bound */
    uint64_t     ttft_us;               /* predicted time to the first token;
                                           0: no bound */
    int          forecast;              /* predict this time even if it has no
                                           bound */
} llm_zone_bounds_t;

void llm_zone_set_bounds(llm_zone_t *z, const llm_zone_bounds_t *b);

/*
 * Memory for the media of requests, llm_media_size(bytes) bytes at mem, 64-byte
 * aligned, in the same mapping as the zone.  Blocks belong to a client while
 * their request is not sent, then to the engine, which frees them with the
 * request.  What a process that died has left is freed by the client or the
 * engine that replaces it.
 *
 * set_media() is called once, after init() and before any client or engine is
 * attached.  A zone without it has no memory for media.
 */
size_t llm_media_size(size_t bytes);
void llm_zone_set_media(llm_zone_t *z, void *mem, size_t bytes);

typedef struct {
    uint64_t     bytes;                 /* of the memory */
    uint64_t     used;                  /* of all chunks of blocks */
    uint64_t     full;                  /* requests refused because there was
                                           no room; only grows */
} llm_media_stats_t;

void llm_zone_media_stats(llm_zone_t *z, llm_media_stats_t *st);

/* how busy a model is now; cheap */
typedef struct {
    uint32_t     load;                  /* percent of `parallel` or of the KV
                                           pages that are in use, the larger;
                                           from 100 on requests wait */
    uint32_t     waiting;               /* requests */
    uint64_t     ttft_us;               /* predicted for a short prompt of
                                           priority 0; 0: not known */
} llm_zone_busy_t;

void llm_zone_busy(llm_zone_t *z, uint32_t model, llm_zone_busy_t *l);
void llm_zone_status(llm_zone_t *z, uint32_t model, llm_model_status_t *st);
/* the state in a word: idle, loading, warming, ready, draining, stopped,
   failed */
const char *llm_model_state_word(const llm_model_status_t *st);
/* changes whenever an engine attaches; 0: none has attached yet */
uint32_t llm_zone_epoch(llm_zone_t *z);


/* ---- commands for a model ---- */

typedef enum {
    LLM_COMMAND_NONE = 0,
    LLM_COMMAND_LOAD,                   /* loads the present file, if it is not
                                           ready; or another file, which
                                           replaces it when it is ready */
    LLM_COMMAND_UNLOAD,                 /* new requests get a 503 model_stopped;
                                           running ones get it, too, if they
                                           have not ended after timeout_ms */
    LLM_COMMAND_DRAIN,                  /* health says 503 at once; after
                                           timeout_ms new requests get a 503
                                           model_draining; running ones end
                                           normally */
    LLM_COMMAND_RESUME,                 /* ends DRAIN */
    LLM_COMMAND_REMOVE                  /* UNLOAD of a model that was given its
                                           name; the name is taken back */
} llm_command_kind_t;

typedef enum {
    LLM_COMMAND_SENT = 1,               /* the engine has not seen it yet */
    LLM_COMMAND_RUNNING,
    LLM_COMMAND_DONE,                   /* LOAD: the model is ready; UNLOAD: its
                                           memory is free; DRAIN: no request is
                                           left */
    LLM_COMMAND_FAILED                  /* status, code and reason say why; the
                                           file that served goes on serving */
} llm_command_state_t;

/* the last command that was taken for a model */
typedef struct {
    uint64_t             number;        /* one more than that of the command
                                           before; 0: there was none */
    llm_command_kind_t   kind;
    llm_command_state_t  state;
    uint32_t             permille;      /* LOAD: progress, in 1/1000 */
    uint32_t             warming;       /* LOAD: loaded, the model warms up */
    uint32_t             status;        /* FAILED: HTTP status */
    char                 code[48];
    char                 reason[512];   /* of FAILED; of DONE, if there is
                                           something to say */
    char                 file[LLM_MAX_FILE];  /* of LOAD; empty: none named */
    char                 name[LLM_NAME_TEXT];  /* the model's, if it was given
                                                  to it; else empty */
} llm_command_status_t;

/* from any process and thread */
void llm_zone_command(llm_zone_t *z, uint32_t model,
    llm_command_status_t *st);

/*
 * What commands have changed of a model.  The zone keeps it, so an engine that
 * replaces a dead one begins with it.  In a new zone it is set before the first
 * engine starts, from the zone before or from a state file.
 */
typedef struct {
    char                 file[LLM_MAX_FILE];  /* empty: the configuration's */
    uint32_t             stopped;
    uint32_t             draining;
    uint32_t             added;         /* the model's name was given to it,
                                           too */
    uint64_t             number;        /* of the last command */
} llm_override_t;

/* does not use o->added */
void llm_zone_set_override(llm_zone_t *z, uint32_t model,
    const llm_override_t *o);
void llm_zone_override(llm_zone_t *z, uint32_t model, llm_override_t *o);

/*
 * Models that are added and removed: some models have no name and no file, and
 * are stopped, until both are given to them; a LOAD then uses the file, and
 * REMOVE takes both back.  Each name that is given has a number, its naming, so
 * that requests and commands for one never reach a later one.
 */
typedef struct {
    uint32_t             naming;        /* 0: no name */
    int64_t              since;         /* seconds since 1970 */
    char                 name[LLM_NAME_TEXT];
} llm_naming_t;

/* gives a name and a file to a model that has no name; the caller keeps others
   from doing it at the same time */
void llm_zone_give_name(llm_zone_t *z, uint32_t model, const char *name,
    const char *file);
/* takes the name back; called by the engine, or before there is one */
void llm_zone_take_name(llm_zone_t *z, uint32_t model);
void llm_zone_name(llm_zone_t *z, uint32_t model, llm_naming_t *n);
/* 0: the model has no name; cheap */
uint32_t llm_zone_naming(llm_zone_t *z, uint32_t model);
/* changes whenever any model gets or loses a name */
uint32_t llm_zone_names(llm_zone_t *z);

/*
 * Counters that outlive zones, in memory that all processes map at the same
 * address: aligned to 64 bytes, zeros at first.  Engines of several zones may
 * count there at the same time.  The table itself is copied to each process by
 * fork().  Without a table (NULL) counters are in the zone, and end with it.
 */
typedef struct {
    void        *models[LLM_MAX_MODELS];    /* llm_counters_size() each;
                                               NULL: counters in the zone */
    void        *workers;               /* llm_sent_size() for each */
    void        *times;                 /* llm_times_size() for each account;
                                           NULL: no accounts */
    uint32_t     n_times;
} llm_kept_t;

size_t llm_counters_size(void);
size_t llm_sent_size(void);
size_t llm_times_size(void);

/*
 * Metrics.  Counters only grow, also when a new engine starts; any process may
 * read them at any time.
 */
#define LLM_HIST_MAX  24

/* bounds in seconds (or rows), counts cumulative; the bucket +Inf is count */
typedef struct {
    uint32_t       n;
    const double  *bounds;              /* [n] static */
    uint64_t       buckets[LLM_HIST_MAX];
    uint64_t       count;
    double         sum;
} llm_hist_t;

/* tokens of a page of the KV cache, for clients that predict what fits */
#define LLM_PAGE_TOKENS  16

typedef struct {
    /* gauges */
    uint32_t     running;               /* sequences */
    uint32_t     parked;                /* sequences */
    uint32_t     waiting;               /* requests */
    uint32_t     prefilling;            /* running sequences without a token
                                           yet */
    uint32_t     prompt_left;           /* prompt tokens that running and
                                           waiting sequences have to compute */
    uint32_t     kv_pages;              /* of LLM_PAGE_TOKENS each */
    uint32_t     kv_used;               /* pages held by sequences */
    uint32_t     kv_cached;             /* pages kept for the prefix cache
                                           only */
    uint32_t     window_pages;          /* like kv_..., for pages of layers with
                                           a window, if others have none */
    uint32_t     window_used;
    uint32_t     window_cached;
    uint32_t     snapshots;             /* recurrent states kept for the prefix
                                           cache */
    uint64_t     request_memory;        /* bytes that live requests take */
    uint64_t     weight_bytes;          /* of the weights, in the file; 0: the
                                           model is not loaded */
    uint64_t     kv_bytes;              /* of the KV pages and states */
    uint64_t     answered;              /* tokens generated and requests ended
                                           by engines of this zone alone; shows
                                           whether the model makes progress */

    /* counters */
    uint64_t     prompt_tokens;
    uint64_t     prompt_computed;       /* prompt tokens computed */
    uint64_t     generation_tokens;
    uint64_t     prefix_queries;        /* prompt tokens looked up */
    uint64_t     prefix_hits;           /* prompt tokens found there */
    uint64_t     evictions;             /* pages that left the prefix cache */
    uint64_t     preemptions;
    uint64_t     steps;
    uint64_t     steps_behind;          /* launched while another step ran */
    uint64_t     media_queries;         /* images, or tiles of them, and sounds
                                           of chats whose rows were looked
                                           up */
    uint64_t     media_hits;            /* of these, those whose rows were
                                           known */
    uint64_t     encodes;               /* runs of an encoder that ended: of an
                                           image or tile, of a chat's sound, of
                                           30 seconds of a transcription's */
    uint64_t     audio_ms;              /* of sound that was transcribed, or
                                           came in chats */
    uint64_t     drafts[LLM_DRAFT_N];   /* rows of sequences in steps with
                                           drafted tokens, by
                                           llm_draft_kind_t */
    uint64_t     drafted[LLM_DRAFT_N];  /* drafted tokens */
    uint64_t     accepted[LLM_DRAFT_N]; /* of these, tokens that the model
                                           drew */
    uint64_t     finished[5];           /* choices, by llm_finish_t */
    uint64_t     errors;                /* requests that ended with an error of
                                           the server, 5xx */
    uint64_t     device_errors;         /* steps and loads that failed by an
                                           error of the device */
    uint64_t     memory_errors;         /* steps and loads that failed for lack
                                           of memory */

    llm_hist_t   ttft;
    llm_hist_t   itl;
    llm_hist_t   e2e;
    llm_hist_t   queue;
    llm_hist_t   prefill;
    llm_hist_t   decode;
    llm_hist_t   rows;                  /* of a step */
} llm_model_stats_t;

typedef struct {
    uint64_t     events;                /* events sent to the worker */
    uint64_t     token_events;          /* TEXT events among these */
    uint64_t     wakeups;               /* writes to the worker's eventfd */
} llm_worker_stats_t;

void llm_zone_model_stats(llm_zone_t *z, const llm_kept_t *kept,
    uint32_t model,
    llm_model_stats_t *st);
void llm_zone_worker_stats(llm_zone_t *z, const llm_kept_t *kept,
    uint32_t worker,
    llm_worker_stats_t *st);
/* of account i, from 0 */
void llm_times_stats(const void *times, uint32_t i, llm_hist_t *ttft,
    llm_hist_t *itl);

/* which metrics of a GPU are known */
#define LLM_GPU_BUSY     1
#define LLM_GPU_MEMORY   2
#define LLM_GPU_POWER    4
#define LLM_GPU_CELSIUS  8

typedef struct {
    char         name[64];              /* printable ASCII without quotes */
    char         uuid[64];
    uint32_t     has;                   /* LLM_GPU_..., those known below */
    uint64_t     busy;                  /* percent of time */
    uint64_t     memory_busy;           /* percent of time in which its memory
                                           was read or written */
    uint64_t     memory_used;           /* bytes */
    uint64_t     memory_total;          /* bytes */
    uint64_t     power_mw;
    uint64_t     celsius;
} llm_gpu_stats_t;

/* writes the metrics of up to n of the machine's GPUs, from NVML, if a model
   runs on one; returns their number; 0: no GPU, or no NVML */
uint32_t llm_zone_gpus(llm_zone_t *z, llm_gpu_stats_t *gpus, uint32_t n);

/* when the present or the last engine attached, in seconds since 1970; 0: there
   was none */
uint64_t llm_zone_started(llm_zone_t *z);

/* does the engine's process live, and does it make progress (no step hangs)? */
int llm_zone_alive(llm_zone_t *z);


/* ---- a worker's side ---- */

typedef struct llm_client_s  llm_client_t;

typedef struct {
    llm_zone_t  *zone;
    uint32_t     worker;
    int          engine_fd;             /* eventfd that wakes the engine */
} llm_client_conf_t;

/*
 * Takes over the worker's rings with what a dead predecessor left in them; the
 * engine cancels the predecessor's requests.  NULL: no memory, or no such
 * worker in the zone.
 */
llm_client_t *llm_client_attach(const llm_client_conf_t *conf);
/* cancels live requests, gives the rings back and frees c */
void llm_client_detach(llm_client_t *c);

/* wakes the engine: llm_zone_alive() knows three seconds later whether an idle
   engine still runs */
void llm_client_wake(llm_client_t *c);

/*
 * Is there room for one more request of this model and priority?  For a check
 * before a body is read; submit() decides.  LLM_ERROR and err as in submit().
 */
int llm_client_admits(llm_client_t *c, uint32_t model, int32_t priority,
    llm_err_t *err);

/*
 * Sends a request; msg is llm_request_t followed by its bytes.  The caller sets
 * head.size, slot and type; head.ticket is set here.  LLM_ERROR and err: 429
 * queue full; 503 model failed, stopped, draining or loading with a full queue,
 * ring full, no engine, no memory; 413 too large for the ring; 404 model
 * removed.  Then no event comes.  *retry_after, in seconds, is for 429 and 503.
 */
int llm_client_submit(llm_client_t *c, llm_request_t *msg,
    uint32_t *retry_after, llm_err_t *err);
/*
 * Blocks of a client.  All these may be called from any thread while the client
 * is attached; holder is llm_client_holder().  alloc(): LLM_FULL: there is no
 * room now; LLM_ERROR: there never is.  data() is NULL if the block is not in
 * the memory.  shrink() frees what is beyond len bytes, free() all, and both
 * write to b.
 */
uint32_t llm_client_holder(const llm_client_t *c);
int llm_media_alloc(llm_zone_t *z, uint32_t holder, size_t len,
    llm_chunk_t *b);
void *llm_media_data(llm_zone_t *z, const llm_chunk_t *b);
void llm_media_shrink(llm_zone_t *z, uint32_t holder, llm_chunk_t *b,
    size_t len);
void llm_media_free(llm_zone_t *z, uint32_t holder, llm_chunk_t *b);
/* bytes of the largest block for which there is room beside those of n media,
   if all else is free: no larger one of the same request will ever fit */
size_t llm_media_left(llm_zone_t *z, const llm_media_ref_t *media, size_t n);
/* counts a request that is refused for want of room */
void llm_media_refused(llm_zone_t *z);
/* frees the blocks of a message that was not sent.  After submit() has taken a
   message, its blocks are not the client's any more, and this does nothing */
void llm_media_release(llm_zone_t *z, uint32_t holder, llm_request_t *msg);

/* sends CANCEL, PAUSE, RESUME or GRANT; never fails: if the ring is full it is
   sent later.  After CANCEL no event of the ticket is handed out. */
void llm_client_signal(llm_client_t *c, llm_msg_type_t type, uint32_t slot,
    uint64_t ticket);

/*
 * Sends a command to the engine and sets its *number.  LLM_ERROR and err, at
 * once: 400 file too long; 409 model_loading, model_unloading, model_stopped
 * (RESUME of an unloaded model), command_pending (another command is on its
 * way); 503 engine_restarting or queue_full.
 *
 * llm_zone_command() tells the result.  A larger number there means that
 * another command has followed: any may follow DRAIN, UNLOAD all but REMOVE,
 * and REMOVE all.  If the engine dies the command ends with a 503
 * engine_restarting.
 */
typedef struct {
    uint32_t             model;
    llm_command_kind_t   kind;
    const char          *file;          /* of LOAD; NULL: the present file; the
                                           configuration's path: that file */
    uint32_t             timeout_ms;    /* of UNLOAD, REMOVE and DRAIN */
    uint32_t             naming;        /* as in llm_request_t */
} llm_command_t;

int llm_client_command(llm_client_t *c, const llm_command_t *cmd,
    uint64_t *number, llm_err_t *err);

/*
 * Calls the handler for each event in the ring, for at most max (0: all), and
 * returns their number; an event is valid during the call only.  The caller
 * has read its eventfd before.  If the number is less than max, the client is
 * armed: the engine will write to the worker's eventfd for the next event.
 * Otherwise call again.  Also notices a new engine: live tickets of the old one
 * get an LLM_EV_ERROR (503).
 */
typedef void (*llm_event_pt)(void *data, const llm_event_t *ev);
uint32_t llm_client_drain(llm_client_t *c, llm_event_pt handler, void *data,
    uint32_t max);

/*
 * Sets a function that llm_client_drain() calls with the next n events, at most
 * LLM_CLIENT_AHEAD, before it calls the handler for each of them; events that
 * the handler will not get, as their ticket is not live, are among them.  For
 * what speeds the handler up, such as prefetching.
 */
#define LLM_CLIENT_AHEAD  64
typedef void (*llm_ahead_pt)(void *data, const llm_event_t *const *ev,
    uint32_t n);
void llm_client_look_ahead(llm_client_t *c, llm_ahead_pt ahead);


/* ---- the engine ---- */

/* sequences that run at once, where the configuration does not say
   (llm_parallel()); each of a model of speech takes much more memory, from when
   it is loaded */
#define LLM_PARALLEL         16
#define LLM_PARALLEL_SPEECH  4

typedef struct {
    const char  *name;                  /* for the log */
    const char  *path;
    const char  *template_path;         /* NULL: the file's own template */
    const char  *device;                /* "auto", "cpu", "cuda:0", "cuda:0,1",
                                           "emu", "synthetic:N" with
                                           LLM_TEST */
    int          split_rows;            /* of several devices, each has rows of
                                           every matrix, not some layers */
    uint32_t     ctx;                   /* 0: the model's */
    uint32_t     parallel;              /* 0: llm_parallel() */
    uint32_t     threads;               /* of device cpu; 0: default */
    uint32_t     batch;                 /* tokens in a step, 0: default */
    size_t       kv_cache;              /* bytes, 0: default */
    int          weights_fp8;           /* convert wider matrices to fp8 */
    int          kv_fp8;                /* the KV cache in fp8 */
    int          kv_q8;                 /* or in int8, on CPUs */
    const char  *products;              /* a word of products.h; NULL: the
                                           device's own */
    const char  *packed;                /* folder for a file of packed weights,
                                           or NULL */
    uint32_t     speculate[LLM_DRAFT_N];    /* llm_draft_kind_t in order of
                                               preference, then 0 */
    const char  *draft_path;            /* of LLM_DRAFT_MODEL */
    const char  *mmproj;                /* file with the encoders of images
                                           and sound; NULL: none */
    uint32_t     idle_s;                /* unload after this idle time; 0:
                                           never */
    int          lazy;                  /* load at the first request */
    int          added;                 /* llm_zone_give_name() gives it its
                                           name and file */
    uint32_t     retry_s;               /* seconds before a failed load is tried
                                           again, doubled each time; 0: never */
    int          warmup;                /* it is ready only when it has run a
                                           prompt, steps of all widths, and
                                           `prompts` */
    /* requests whose prompts the warm-up brings into the prefix cache; the
       caller's, kept while the engine lives */
    const llm_request_t *const  *prompts;
    uint32_t     n_prompts;
} llm_engine_model_t;

/* sequences that run at once; speech: the model's file is one of speech */
uint32_t llm_parallel(const llm_engine_model_t *conf, int speech);

/* the kind's word, NULL for LLM_DRAFT_NONE */
const char *llm_draft_name(llm_draft_kind_t kind);
/* reads llm_engine_model_t.speculate: kinds by commas, or "off"; *path: FILE of
   draft=FILE, a part of the text.  LLM_ERROR: err says what it must be */
int llm_speculate_read(llm_str_t text, uint32_t kinds[LLM_DRAFT_N],
    llm_str_t *path, llm_err_t *err);

/*
 * The table of the engines of one nginx, across reloads, in llm_engines_size()
 * bytes of shared memory, zeros at first.  A model that lacks memory because of
 * an older engine in it waits until that engine has ended.
 */
typedef struct llm_engines_s  llm_engines_t;

size_t llm_engines_size(void);
/*
 * The table in a file, which outlives this process: the masters before and
 * after a binary upgrade share it.  The file is created if it is missing, is
 * mapped until the process ends, and must belong to this process's user.
 * NULL: it cannot be used, err says why.
 */
llm_engines_t *llm_engines_map(const char *path, llm_err_t *err);
/* has a later configuration started an engine, while this zone's engine has not
   ended? */
int llm_zone_replaced(llm_zone_t *z, llm_engines_t *t);

typedef struct {
    llm_zone_t                *zone;
    const llm_kept_t          *kept;    /* or NULL; outlives the engine */
    llm_engines_t             *engines; /* NULL: no other engines */
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
 * Starts the threads and returns at once; models load in the background.  It
 * fails only for lack of memory or threads.
 */
llm_engine_t *llm_engine_start(const llm_engine_conf_t *conf,
    llm_err_t *err);
/* number of requests of all workers, waiting or running; from any thread */
uint32_t llm_engine_live(llm_engine_t *e);
/*
 * Has this process lost a GPU's context?  Then the errors of the requests on
 * that GPU are in the rings, worker 0's eventfd was written, and the GPU serves
 * nothing until another process is worker 0.  From any thread.
 */
int llm_engine_lost(llm_engine_t *e);
/* stops within one step; live requests get an ERROR event; joins all threads
   and frees e */
void llm_engine_stop(llm_engine_t *e);

/*
 * Checks a model file for `nginx -t`: it can be opened, and its header is that
 * of a model that can be loaded, vocabulary included.  *media: LLM_MEDIUM_SPEECH
 * if it transcribes speech, else 0.
 */
int llm_model_file_check(const char *path, uint32_t *media, llm_err_t *err);
/* and of what a model of speech may not have in its configuration */
int llm_speech_conf_check(const llm_engine_model_t *conf, const char *path,
    llm_err_t *err);
/* the same of what speculate= says: the file of draft=, or the layer for
   multi-token prediction that mtp needs in the model's own */
int llm_draft_file_check(const llm_engine_model_t *conf, llm_err_t *err);
/* the same for mmproj=: the file has projectors that are known; *media gets
   their kinds, LLM_MEDIUM_... */
int llm_mmproj_file_check(const char *path, uint32_t *media, llm_err_t *err);
/* the same for template=: the file can be read, is text and not too long */
int llm_template_file_check(const char *path, llm_err_t *err);
/* is the name of a device, or of several ("cuda:0,1"), of a known form? */
int llm_device_name_check(const char *device, llm_err_t *err);
/* is a CUDA device's backend installed?  If not, err says how to get it */
int llm_device_check(const char *device, llm_err_t *err);
/* for devices that use the machine's memory: is kv_cache at most all of it? */
int llm_kv_cache_check(const char *device, size_t kv_cache, llm_err_t *err);
/* has this machine what the model, whose file is good, will need: a GPU if the
   device must be one, memory for ctx?  It may get that later, so an error here
   is only a warning */
int llm_machine_check(const llm_engine_model_t *conf, llm_err_t *err);

#endif /* LLM_LLM_H */
