/*
 * Wire formats: OpenAI's requests in, answers, SSE frames and error bodies
 * out.  Runs in the worker's event loop: no tensor, no nginx, no blocking;
 * llm_api_parse() shares nothing and runs in any thread.
 *
 * A llm_api_t is one request: llm_api_parse() makes it, and it turns the
 * engine's events into bytes for the client.  It owns its memory: one block,
 * and an arena with the events of an answer that is not streamed.
 *
 * Invariant: frames are built from prepared pieces, without a JSON tree; every
 * error body has message, type, param and code.
 */

#ifndef LLM_API_H
#define LLM_API_H

#include "engine/api/admin.h"
#include "engine/api/json.h"
#include "engine/api/keys.h"
#include "engine/api/proxied.h"
#include "engine/api/quota.h"
#include "engine/api/route_key.h"
#include "engine/api/socket.h"
#include "engine/api/usage.h"
#include "engine/base/count.h"
#include "engine/base/version.h"
#include "engine/llm.h"

/* see endpoint.h */
typedef struct llm_api_endpoint_s  llm_api_endpoint_t;

/* a model as users name it */
typedef struct {
    llm_str_t          name;            /* len 0: no model has this index now,
                                           see llm_zone_give_name() */
    const llm_str_t   *aliases;
    uint32_t           n_aliases;
    uint32_t           is_default;
    int32_t            max_tokens;      /* default of requests that name
                                           none; -1: what is left */
    int64_t            created;         /* seconds since 1970 */
    uint32_t           weights_fp8;     /* weights=fp8 and kv=, which change the
                                           model's answers */
    uint32_t           kv;              /* 1: fp8; 2: q8_0 */
    const char        *products;        /* products=, as the two before, or
                                           NULL */
    llm_str_t          owner;
    llm_str_t          deprecated;      /* dates as they were written; len 0:
                                           not given */
    llm_str_t          sunset;
    int64_t            sunset_time;     /* seconds since 1970; from then on the
                                           model is refused; 0: never */
    llm_str_t          successor;       /* a name, or len 0 */
    uint32_t           naming;          /* number of its naming in the zone; 0:
                                           the name is the configuration's */
    uint32_t           media;           /* LLM_MEDIUM_..., what it takes */
    uint32_t           idle_s;          /* idle=; 0: it stays loaded */
} llm_api_model_t;

/* an alias whose model a rule chooses, request by request */
typedef struct {
    llm_str_t          name;
    llm_str_t          value;           /* a model's name or alias, exactly;
                                           empty: the alias does not exist for
                                           this request */
    uint32_t           granted;         /* the client's key names the alias, so
                                           any model that it stands for is
                                           allowed */
} llm_api_alias_t;

/*
 * Members that requests get if they do not name them (llm_defaults).  The text
 * is a JSON object; each of its members, with its value, must be valid in the
 * requests of some endpoint.  A request that names a member, or another member
 * with the same meaning, does not get the default; null is not a value.  NULL
 * and *err if the text is wrong.
 */
typedef struct llm_api_preset_s  llm_api_preset_t;

llm_api_preset_t *llm_api_preset_create(const char *text, size_t len,
    llm_err_t *err);
void llm_api_preset_free(llm_api_preset_t *p);

/* what a location allows of images and sound */
typedef struct {
    uint32_t                most;       /* of one request */
    size_t                  max_size;   /* bytes of one */
    uint64_t                max_pixels; /* of an image; 0: no bound */
    int                     skip;       /* an image that the model does not take
                                           becomes a placeholder; 0: it is
                                           refused if it was not answered yet */
    int                     fetch;      /* URLs are fetched */
    size_t                  max_sound;  /* bytes of a sound */
    uint32_t                max_seconds;    /* of it */
} llm_api_media_conf_t;

/* what a location may use */
typedef struct {
    const llm_api_model_t  *models;
    uint32_t                n_models;
    uint64_t                allowed;    /* bit for each model */
    uint64_t                denied;     /* allowed models that the client's key
                                           does not permit */
    int32_t                 fallback;   /* index of the default model, or -1 */
    int32_t                 cap;        /* llm_max_tokens; -1: none */
    llm_str_t               id;         /* of this request: letters, digits */
    llm_str_t               model;      /* model asked for if the endpoint
                                           takes no body, or empty */
    int64_t                 now;        /* seconds since 1970 */
    llm_zone_t             *zone;       /* source of the models' state; NULL:
                                           the state is unknown */
    size_t                  max_answer; /* most bytes of an answer that is not
                                           streamed; 0: 16 MB */
    const llm_api_alias_t  *aliases;
    uint32_t                n_aliases;
    llm_str_t              *alias;      /* gets the alias that was asked for, a
                                           model's or one of aliases, as it is
                                           spelt there; may be NULL */
    const llm_api_preset_t  *preset;    /* defaults of requests, or NULL */
    uint32_t                holder;     /* llm_client_holder(), which owns the
                                           blocks of media; 0: requests have no
                                           media */
    llm_api_media_conf_t    media;
    llm_buf_t              *guard;      /* gets what a guard is told of a
                                           request that needs a model, see
                                           llm_api_guard_head(); NULL if there
                                           is no guard */
} llm_api_conf_t;

/* most bytes of what a log gets from a request */
#define LLM_API_LOG_USER      512
#define LLM_API_LOG_METADATA  16384

typedef struct llm_api_s  llm_api_t;

/* the endpoint of a request */
typedef struct {
    const llm_api_endpoint_t  *endpoint;
    const llm_api_endpoint_t  *path;    /* an endpoint at this path, whatever
                                           the method: it decides the form of
                                           errors */
    llm_str_t                  name;    /* "chat/completions" */
    uint32_t                   scope;   /* scope that a key needs */
    llm_str_t                  rest;    /* what follows the endpoint's path: a
                                           model's id */
    char                       allow[64];
} llm_api_route_t;

/*
 * Finds the endpoint of a path after the location's prefix
 * ("chat/completions", "v1/models/demo", already URL-decoded) and of a method.
 * "api/" before a path makes it Ollama's.
 * LLM_ERROR: there is none (404), or, if allow is not empty, only for the
 * methods named there (405).
 */
int llm_api_route(llm_str_t path, llm_str_t method, llm_api_route_t *to);
/* is the path the location's prefix itself, or its "v1" or "api"? */
int llm_api_is_root(llm_str_t path);
/* all endpoints in JSON, their paths below base ("/v1") */
int llm_api_index(llm_str_t base, llm_buf_t *out);

/* does the endpoint take no body?  llm_api_parse() still makes a request, from
   conf alone */
int llm_api_bodiless(const llm_api_endpoint_t *ep);
/* does the endpoint answer at once, needing neither a body nor the engine? */
int llm_api_answers(const llm_api_endpoint_t *ep);
/* header that gets the request's id in addition to x-request-id, or NULL; ep
   may be NULL */
const char *llm_api_id_header(const llm_api_endpoint_t *ep);
/* the body of an endpoint that answers at once; LLM_ERROR and *err if it
   fails */
int llm_api_answer(const llm_api_endpoint_t *ep, const llm_api_conf_t *conf,
    llm_str_t rest, llm_buf_t *out, llm_err_t *err);

/*
 * Parses a body to a flat request: *msg gets llm_request_t and its bytes; the
 * caller sets head.slot, tenant, the tenant's salt, priority and deadlines
 * (priority and salt have what the body asked for, or 0).  NULL: *err has all
 * that the error body needs (400, 404 for the model, 413 when *msg's limit is
 * too small, 500 for no memory).
 *
 * Unknown fields are ignored, null counts as absent, of equal keys the last
 * one counts.  Known fields that cannot be served are refused unless they are
 * null, false or empty.  max_completion_tokens precedes max_tokens; -1 means
 * as many as the context allows; 0 is refused in chats and generates nothing
 * in completions, whose default is 16 if the model has none.  Empty stop
 * strings are left out; at most LLM_MAX_STOPS others are allowed.  With
 * tool_choice "none" the prompt has no tools; functions and function_call are
 * read as tools and tool_choice.  A trailing assistant message with text and
 * without tool calls is continued unless continue_final_message or
 * add_generation_prompt forbid it.  reasoning_effort and enable_thinking,
 * given directly or by "thinking" or "reasoning", are added to
 * chat_template_kwargs if that does not name them; the effort "none" turns
 * thinking off. 10.0 is an integer.
 */
llm_api_t *llm_api_parse(const llm_api_endpoint_t *ep,
    const llm_api_conf_t *conf, const char *body, size_t len, llm_buf_t *msg,
    llm_err_t *err);
/* the same; *ep becomes the endpoint of the body's dialect, which may be
   another one at the same path: an error has its form */
llm_api_t *llm_api_parse_for(const llm_api_endpoint_t **ep,
    const llm_api_conf_t *conf, const char *body, size_t len, llm_buf_t *msg,
    llm_err_t *err);
void llm_api_free(llm_api_t *a);

/*
 * Requests whose body is a form with a file (multipart/form-data), which is
 * read in pieces as it comes; the file goes into the memory for media.
 * size: bytes of the whole body.  read() and end() return LLM_ERROR, or NULL,
 * and *err, as llm_api_parse() does; then, and after end(), the form is to be
 * freed.  In any thread; conf and the content type stay.
 */
typedef struct llm_api_form_s  llm_api_form_t;

/* does the endpoint take a form instead of JSON? */
int llm_api_takes_form(const llm_api_endpoint_t *ep);
llm_api_form_t *llm_api_form_create(const llm_api_endpoint_t *ep,
    const llm_api_conf_t *conf, llm_str_t content_type, size_t size,
    llm_err_t *err);
int llm_api_form_read(llm_api_form_t *f, const void *data, size_t len,
    llm_err_t *err);
llm_api_t *llm_api_form_end(llm_api_form_t *f, llm_buf_t *msg,
    llm_err_t *err);
void llm_api_form_free(llm_api_form_t *f);

/*
 * Reads a file of requests that a model runs before it is ready (warmup=FILE).
 * Each line is a request as a client would send it to chat/completions (with
 * "messages") or completions (with "prompt").  It may also name a "tenant",
 * because only requests of the same tenant share computed prefixes.  Empty
 * lines and lines that begin with "#" are skipped.  take() gets each request
 * as a message that is valid during the call and ends after its first token;
 * take() sets the message's tenant.  LLM_ERROR and *err, which names the line.
 */
#define LLM_WARMUP_BYTES  (64u << 20)   /* most bytes of a file */
typedef int (*llm_warmup_pt)(void *data, llm_request_t *msg, llm_str_t tenant,
    llm_err_t *err);
int llm_api_warmup(const char *path, const llm_api_conf_t *conf,
    llm_warmup_pt take, void *data, llm_err_t *err);

/*
 * The beginning of the JSON object that a guard gets, which conf->guard goes
 * on with: {"request_id": ..., "endpoint": its path, "model": the name that
 * was resolved, "tenant": ... or null if it is empty; then follow all members
 * of the client's object except these four.
 */
int llm_api_guard_head(const llm_api_t *a, const llm_api_conf_t *conf,
    llm_str_t request_id, llm_str_t tenant, llm_buf_t *out);

int llm_api_is_stream(const llm_api_t *a);
/* is the text of this TEXT event that of the prompt, which is told beside the
   answer and is no part of it? */
int llm_api_is_shown(const llm_api_t *a, const llm_event_t *ev);
/* adds the text of the answer so far, which the TEXT events of a form do not
   have in themselves; nothing for other answers */
void llm_api_text(const llm_api_t *a, llm_buf_t *out);
/* media type of an answer that is no stream */
const char *llm_api_body_type(const llm_api_t *a);
/* media type of a stream; and a frame that says nothing, for a client that has
   received none for a while */
const char *llm_api_stream_type(const llm_api_t *a);
int llm_api_heartbeat(const llm_api_t *a, llm_buf_t *out);
/* describes a request in a line of the log: ", stream, max_tokens 5,
   temperature 0.7", and sampling parameters that have no effect; none of the
   request's text.  If memory ends, out->failed is set. */
void llm_api_arrival(const llm_request_t *msg, llm_buf_t *out);
/* for the log, or empty: the request's "user", or else its
   "safety_identifier", cut to LLM_API_LOG_USER bytes; and its "metadata" as
   JSON, or "{}" if that is longer than LLM_API_LOG_METADATA.  Both are valid
   as long as a. */
llm_str_t llm_api_user(const llm_api_t *a);
llm_str_t llm_api_metadata(const llm_api_t *a);
uint32_t llm_api_model(const llm_api_t *a);

/*
 * The index of a model by a name a client has sent.  Names are tried in this
 * order: exact name, alias, name ignoring case, unique part of a name, the same
 * for NAME of "NAME:latest", fallback; an empty name means the default.  An
 * exact match in conf->aliases comes after all models' names and aliases, a
 * match ignoring case again after those; such an alias stands for a model,
 * never for another alias.  -1 and *err if there is no such model (404
 * model_not_found), if it is denied (403 model_not_allowed) and was not named
 * by a granted alias, or if its sunset is over (404, with its successor).
 */
int32_t llm_api_resolve(const llm_api_conf_t *conf, llm_str_t name,
    llm_err_t *err);
/* the model that conf->aliases[i] stands for; -1: none of the location's */
int32_t llm_api_alias_model(const llm_api_conf_t *conf, uint32_t i);
/* the index in conf->aliases of the name that *conf->alias got; -1: none */
int32_t llm_api_alias_index(const llm_api_conf_t *conf, llm_str_t name);
/* a bit for each model that the key names neither by name nor by alias */
uint64_t llm_api_denied(const llm_key_t *k, const llm_api_model_t *models,
    uint32_t n_models);

/*
 * In a stream, appends the SSE frames of this event, if it has any.  Otherwise
 * the event is kept for llm_api_body_next(), and an answer that becomes larger
 * than max_answer is an error (400, answer_too_large).  The same bound holds
 * for streams whose last event repeats the whole answer.  An ERROR event after
 * START in a stream becomes an error frame; before START, or without
 * streaming, it fills *err and returns LLM_ERROR, so that the answer can have
 * an error status.  LLM_ERROR with status 500 if there is no memory.
 *
 * A chat stream begins with the role of every choice: at START, or, if token
 * ids were asked for, when the prompt's ids come.  Logprobs: NaN becomes null
 * (the first token of an echoed prompt); token_ids are in the choice if they
 * were asked for.
 */
int llm_api_event(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out,
    llm_err_t *err);

/*
 * The body of an answer that is not streamed, once DONE has come: appends to
 * out until it has max bytes or slightly more.  LLM_OK: that was the end;
 * LLM_MORE: there is more, call again; LLM_ERROR: no memory.
 */
int llm_api_body_next(llm_api_t *a, size_t max, llm_buf_t *out);

/* figures for nginx's variables, valid at any time; tokens are counted from
   the events so far */
typedef struct {
    uint32_t     prompt_tokens;
    uint32_t     cached_tokens;
    uint32_t     audio_tokens;          /* part of prompt_tokens */
    uint32_t     completion_tokens;
    uint32_t     reasoning_tokens;      /* part of completion_tokens */
    uint32_t     accepted_tokens;       /* drafted tokens that are part of
                                           completion_tokens, and those that are
                                           not; known at the end */
    uint32_t     rejected_tokens;
    uint64_t     queue_us;
    uint64_t     ttft_us;
    uint64_t     total_us;
    const char  *finish_reason;         /* of the first choice, or NULL */
} llm_api_usage_t;

void llm_api_usage(const llm_api_t *a, llm_api_usage_t *u);

/* prefetches what an event of a stream uses: without deep the answer itself,
   with it what that refers to; a NULL: nothing */
void llm_api_ahead(const llm_api_t *a, int deep);

/*
 * {"error": {...}}; type follows from status.  Some endpoints have a form of
 * their own.  ep may be NULL; id is the request's.
 */
int llm_api_error_body(const llm_api_endpoint_t *ep, llm_str_t id,
    const llm_err_t *err, llm_buf_t *out);
/* one word for an error: its code, or else its type */
const char *llm_api_error_word(const llm_err_t *err);
/* the body as SSE frames, the last ones of a stream */
int llm_api_error_frame(llm_api_t *a, const llm_err_t *err, llm_buf_t *out);

/* which models must be able to serve for /health to say "healthy" */
typedef enum {
    LLM_HEALTH_LOADED = 0,              /* no model is being loaded, and at
                                           least one can serve; others may have
                                           failed */
    LLM_HEALTH_ANY,                     /* at least one can serve */
    LLM_HEALTH_ALL,                     /* all can serve */
    LLM_HEALTH_LIVE                     /* the engine makes progress */
} llm_health_rule_t;

typedef struct {
    llm_health_rule_t   rule;
    int                 draining;       /* the server is shutting down: only
                                           LIVE is healthy then */
    const char *const  *ill;            /* why a loaded model cannot serve,
                                           [n_models]; NULL for a model that
                                           can; NULL if all can */
} llm_api_health_t;

/* the body of /health for the models of conf; *ready: they are healthy */
int llm_api_health_body(llm_zone_t *z, const llm_api_conf_t *conf,
    const llm_api_health_t *h, llm_buf_t *out, int *ready);

#endif /* LLM_API_H */
