/*
 * A request of llm_api: from its location through the body and the engine to
 * the bytes that its client gets.
 *
 *   ngx_http_llm_api.c          llm_api, and its checks by nginx -t
 *   ngx_http_llm_handler.c      content handler
 *   ngx_http_llm_path.c         routing
 *   ngx_http_llm_submit.c       submission to the engine
 *   ngx_http_llm_no_route.c     requests that match no endpoint
 *   ngx_http_llm_names.c        aliases of models
 *   ngx_http_llm_identity.c     model, tenant, priority of a request
 *   ngx_http_llm_stage.c        calls the hooks of the subjects
 *   ngx_http_llm_slot.c         table of a worker's live requests
 *   ngx_http_llm_live.c         what a worker calls for its requests
 *   ngx_http_llm_ahead.c        prefetching
 *   ngx_http_llm_event.c        the engine's events, errors, pause and resume
 *   ngx_http_llm_stream.c       sending, disconnects, timers
 *   ngx_http_llm_output.c       memory of output
 *   ngx_http_llm_leaving.c      headers of models with a sunset
 *   ngx_http_llm_count.c        requests counted for the end of a worker
 *   ngx_http_llm_post_action.c  post_action
 *
 * Bodies: ngx_http_llm_body.h.
 */

#ifndef NGX_HTTP_LLM_REQUEST_H
#define NGX_HTTP_LLM_REQUEST_H


#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/worker/ngx_http_llm_worker.h"


typedef struct ngx_http_llm_block_s  ngx_http_llm_block_t;
typedef struct ngx_http_llm_body_s  ngx_http_llm_body_t;


/* most bytes, in units of llm_stream_buffer, of an answer that is kept because
   it is not streamed, or because its stream repeats it at the end */
#define NGX_HTTP_LLM_MAX_ANSWER  64


/*
 * A request.  It is allocated from r->pool, so that the log phase can read its
 * figures.  Its API object and its slot are freed in the request's cleanup,
 * that is, as soon as the client is gone; output that is not sent by then is
 * freed with the pool, because HTTP/2 frames may point to it until then.
 */

struct ngx_http_llm_ctx_s {
    ngx_http_request_t          *request;
    ngx_http_llm_main_conf_t    *main;
    ngx_http_llm_loc_conf_t     *conf;

    llm_api_t                   *api;
    ngx_http_llm_reply_t        *reply;         /* its endpoint is set when the
                                                   request is routed; NULL: a
                                                   probe */
    llm_str_t                    path;          /* of the endpoint, without
                                                   "v1/" */
    uint64_t                     arrival_us;
    uint64_t                     deadline_us;   /* 0: none */

    uint32_t                     slot;          /* index in the worker's slots,
                                                   or NGX_HTTP_LLM_NO_SLOT */
    uint64_t                     ticket;        /* tells requests that had this
                                                   slot apart */
    ngx_queue_t                  live;
    ngx_queue_t                  dirty;

    ngx_http_llm_block_t        *blocks;        /* see ..._output.c */
    ngx_http_llm_block_t        *gather;
    ngx_http_llm_block_t        *newest;
    ngx_chain_t                 *free;
    size_t                       held;          /* bytes of memory of blocks */
    size_t                       largest;       /* most bytes of output of one
                                                   event so far */

    llm_err_t                   *err;           /* error to be sent if failed;
                                                   NULL: no memory for it */
    uint32_t                     retry_after;   /* seconds, sent with err; 0:
                                                   not sent */

    void                       **data;          /* data of each subject, see
                                                   ngx_http_llm_stage.h */

    ngx_event_t                  timer;
    ngx_msec_t                   last_output;

    /* takes its events; set for a health probe, which has no nginx request */
    void                       (*event)(ngx_http_llm_ctx_t *ctx,
                                        const llm_event_t *ev);

    ngx_str_t                    id;            /* id of the answer:
                                                   $request_id */
    ngx_str_t                    request_id;    /* the client's x-request-id, or
                                                   id */
    ngx_str_t                    user;
    ngx_str_t                    metadata;      /* JSON */
    ngx_str_t                    tenant;
    ngx_str_t                    alias;         /* alias that was asked for;
                                                   len 0: none */
    ngx_int_t                    most_tokens;   /* llm_max_tokens; -1: none */
    ngx_int_t                    most_prompt;   /* prompt= of llm_max_tokens;
                                                   -1: none */
    int32_t                      max_tokens;    /* of the message; -1: what
                                                   the context leaves */
    ngx_int_t                    model;         /* -1: not resolved yet */
    ngx_str_t                    name;          /* name of the model, when it is
                                                   resolved */
    ngx_int_t                    place;         /* index of the figures of the
                                                   model; -1: unknown, or the
                                                   model is gone */
    uint32_t                     naming;        /* number of the name that the
                                                   model had then; 0: the
                                                   configuration's */
    llm_api_usage_t              usage;         /* set when api is freed */
    uint64_t                     first_us;      /* time of the first token; 0:
                                                   none has come */
    uint64_t                     latest_us;     /* time of the latest token */
    uint64_t                     ended_us;      /* time after which no event
                                                   comes; 0: not known yet */
    uint64_t                     predicted_us;  /* see START of llm_event_t */
    llm_period_t                 prepared;      /* see llm_event_t */

    unsigned                     stream:1;
    unsigned                     streaming:1;   /* counted in the worker's
                                                   streams */
    unsigned                     started:1;     /* START has come */
    unsigned                     ended:1;       /* no event will come */
    unsigned                     done:1;        /* the last event was DONE */
    unsigned                     complete:1;    /* all output is gathered */
    unsigned                     broken:1;      /* a part of the output is
                                                   missing */
    unsigned                     failed:1;      /* the request failed before its
                                                   header was sent */
    unsigned                     submitted:1;   /* the engine has accepted the
                                                   request */
    unsigned                     computed:1;    /* the request needs the model,
                                                   not only its vocabulary or
                                                   template */
    unsigned                     is_dirty:1;    /* in the queue dirty */
    unsigned                     paused:1;      /* the engine got a PAUSE */
    unsigned                     gzip:1;        /* the request's body is
                                                   compressed with gzip */
};


/* ngx_http_llm_count.c */

/* handler of the rewrite and the preaccess phase: counts requests as soon as
   they are in a llm_api location */
ngx_int_t ngx_http_llm_count_handler(ngx_http_request_t *r);
/* has it been in a llm_api location? */
ngx_uint_t ngx_http_llm_is_counted(ngx_http_request_t *r);


/* ngx_http_llm_names.c */

/* evaluates the location's aliases for this request, for the parser;
   NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_make_aliases(ngx_http_llm_ctx_t *ctx,
    llm_api_conf_t *conf);
/* records the alias that the request asked for; name.len 0: none */
void ngx_http_llm_asked(ngx_http_llm_ctx_t *ctx, const llm_api_conf_t *conf,
    llm_str_t name);


/* ngx_http_llm_slot.c */

/* NGX_ERROR: no memory, or too many requests */
ngx_int_t ngx_http_llm_take_slot(ngx_http_llm_ctx_t *ctx);
void ngx_http_llm_free_slot(ngx_http_llm_ctx_t *ctx);


/* ngx_http_llm_ahead.c */

/* prefetches what the events use */
void ngx_http_llm_ahead(void *data, const llm_event_t *const *ev, uint32_t n);
/* prefetches what sending the output of the next dirty requests uses, at most
   LLM_CLIENT_AHEAD; returns their number */
ngx_uint_t ngx_http_llm_ahead_of_sending(ngx_http_llm_worker_t *w);

/* ngx_http_llm_live.c */

extern const ngx_http_llm_requests_t  ngx_http_llm_requests;

/* ngx_http_llm_api.c */

char *ngx_http_llm_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


/* ngx_http_llm_path.c */

/* what follows "/v1/" in a URI, or else all of it */
llm_str_t ngx_http_llm_api_path(ngx_str_t *uri);
/* the path of the API in the request's URI; NGX_DECLINED: it has none */
ngx_int_t ngx_http_llm_path(ngx_http_request_t *r,
    ngx_http_llm_loc_conf_t *llcf, llm_str_t *path);
/* finds the endpoint; NGX_DECLINED: there is none */
ngx_int_t ngx_http_llm_route(ngx_http_request_t *r,
    ngx_http_llm_loc_conf_t *llcf, llm_api_route_t *to);

/* ngx_http_llm_submit.c */

/* fills conf with what the request may use, for the parser, which sets *alias
   to the alias that was asked for; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_api_conf(ngx_http_llm_ctx_t *ctx, llm_api_conf_t *conf,
    llm_str_t *alias);
/* called when the body was parsed: submits the request, or sends an error */
void ngx_http_llm_parsed(ngx_http_llm_body_t *body);
/* continues a request that a subject has taken over at the stage `parsed`.
   rc NGX_OK: calls the next subjects, then submits the request; NGX_ERROR:
   refuses it with body->err and body->retry_after */
void ngx_http_llm_go_on(ngx_http_llm_body_t *body, ngx_int_t rc);

/* ngx_http_llm_handler.c */

ngx_int_t ngx_http_llm_api_handler(ngx_http_request_t *r);
/* creates a request's state, in r->pool; NULL: no memory */
ngx_http_llm_ctx_t *ngx_http_llm_create_ctx(ngx_http_request_t *r);
/* the state of a request in the last llm_api location that it came to, or
   NULL */
ngx_http_llm_ctx_t *ngx_http_llm_find_ctx(ngx_http_request_t *r);
/* see ngx_http_llm_reply_main_conf_t */
void ngx_http_llm_failed_reply(ngx_http_request_t *r);


/* ngx_http_llm_no_route.c */

/* answers a request that matches no endpoint; allow: the methods of the
   endpoints at its path, or an empty string */
ngx_int_t ngx_http_llm_send_no_route(ngx_http_request_t *r, const char *allow);


/* ngx_http_llm_identity.c */

/* sets the tenant that the request counts for, as far as it is known by now;
   NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_find_tenant(ngx_http_llm_ctx_t *ctx);
/* sets model, tenant and priority of a request that was parsed; NGX_ERROR: no
   memory, see body->err */
ngx_int_t ngx_http_llm_identify(ngx_http_llm_body_t *body);
/* the highest priority that a request of the location may have: variables are
   not evaluated, because they may depend on the body, which is not read yet */
ngx_int_t ngx_http_llm_highest_priority(ngx_http_llm_loc_conf_t *conf);
/* evaluates llm_max_tokens; NGX_ERROR: see err */
ngx_int_t ngx_http_llm_find_most(ngx_http_llm_ctx_t *ctx, llm_err_t *err);
void ngx_http_llm_set_deadlines(ngx_http_llm_ctx_t *ctx, llm_request_t *msg);


/* ngx_http_llm_event.c */

/* sets how many bytes of a stream may be unread in the ring */
void ngx_http_llm_set_window(ngx_http_llm_ctx_t *ctx, llm_request_t *msg);
/* takes an event of the engine: only gathers output, never finalizes the
   request */
void ngx_http_llm_event(void *data, const llm_event_t *ev);
/* moves the contents of the worker's scratch buffer to the request's output */
void ngx_http_llm_take_scratch(ngx_http_llm_ctx_t *ctx);
/* queues a request that has output to send, or ends */
void ngx_http_llm_mark_dirty(ngx_http_llm_ctx_t *ctx);
/* ends the request with this error, and marks it dirty */
void ngx_http_llm_fail(ngx_http_llm_ctx_t *ctx, int status,
    const char *code, const char *msg);
/* called after each output: resumes a paused sequence if its client has caught
   up */
void ngx_http_llm_set_pace(ngx_http_llm_ctx_t *ctx);
void ngx_http_llm_cleanup(void *data);
void ngx_http_llm_pool_cleanup(void *data);


/* ngx_http_llm_post_action.c */

/* handler of the rewrite phase */
ngx_int_t ngx_http_llm_post_action_handler(ngx_http_request_t *r);
/* runs this cleanup of the request if post_action has moved the request on */
void ngx_http_llm_detach(ngx_http_request_t *r, ngx_http_cleanup_pt cleanup);


/* ngx_http_llm_stream.c */

/* lets a request wait: watches whether the client leaves, and sets the timer's
   handler; the caller starts the timer */
void ngx_http_llm_watch(ngx_http_llm_ctx_t *ctx, char *action,
    ngx_event_handler_pt handler, void *data);
/* the same, and starts the timer, for `ms` or until llm_timeout, which comes
   first if 1 is returned */
ngx_uint_t ngx_http_llm_watch_for(ngx_http_llm_ctx_t *ctx, ngx_msec_t ms,
    char *action, ngx_event_handler_pt handler, void *data);
/* lets a submitted request wait for events, and watches its client */
void ngx_http_llm_wait(ngx_http_llm_ctx_t *ctx);
/* sends the output that events have left in each dirty request */
void ngx_http_llm_send_dirty(ngx_http_llm_worker_t *w);


/* ngx_http_llm_output.c */

/* adds output; NGX_ERROR: no memory, a part may have been added */
ngx_int_t ngx_http_llm_gather(ngx_http_llm_ctx_t *ctx, const char *data,
    size_t len);
/* bytes gathered and not handed over yet */
off_t ngx_http_llm_gathered(ngx_http_llm_ctx_t *ctx);
/* passes all gathered output to nginx; last: it ends the answer */
ngx_int_t ngx_http_llm_hand_over(ngx_http_llm_ctx_t *ctx, ngx_uint_t last);
/* frees what nginx has sent; called after each output */
void ngx_http_llm_free_sent(ngx_http_llm_ctx_t *ctx);
/* frees all blocks, when nothing points to the bytes any more */
void ngx_http_llm_free_blocks(ngx_http_llm_ctx_t *ctx);


#endif /* NGX_HTTP_LLM_REQUEST_H */
