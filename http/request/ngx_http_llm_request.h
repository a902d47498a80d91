/*
 * A request on its way: from its location through the body and the engine to
 * the bytes that its client gets.
 *
 *   ngx_http_llm_api.c          llm_api, what nginx -t says of it
 *   ngx_http_llm_handler.c      its handler
 *   ngx_http_llm_path.c         routing
 *   ngx_http_llm_submit.c       submission
 *   ngx_http_llm_no_route.c     where there is no endpoint; the list of them
 *   ngx_http_llm_names.c        where aliases lead
 *   ngx_http_llm_identity.c     model, tenant, priority of a request
 *   ngx_http_llm_stage.c        the subjects that take part
 *   ngx_http_llm_slot.c         a worker's live requests
 *   ngx_http_llm_live.c         what a worker does with them
 *   ngx_http_llm_event.c        the engine's events, errors, the pace
 *   ngx_http_llm_stream.c       answers on their way, disconnects, timers
 *   ngx_http_llm_output.c       bytes on their way to a client
 *   ngx_http_llm_leaving.c      headers of models that are to go
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


/* the most of an answer that is kept, because it is not streamed or because
   its stream ends with all of it, in units of llm_stream_buffer */
#define NGX_HTTP_LLM_MAX_ANSWER  64


/*
 * A request.  It is allocated from r->pool, so that the log phase has its
 * figures.  Its API object and its place in the engine are freed in the
 * request's cleanup, that is, as soon as the client is gone; the bytes that
 * it sends are freed with the pool, because HTTP/2 frames may point to them
 * until then.
 */

struct ngx_http_llm_ctx_s {
    ngx_http_request_t          *request;
    ngx_http_llm_main_conf_t    *main;
    ngx_http_llm_loc_conf_t     *conf;

    llm_api_t                   *api;
    ngx_http_llm_reply_t        *reply;         /* its endpoint is known once
                                                   it is routed; NULL: a
                                                   probe */
    llm_str_t                    path;          /* of the endpoint, behind
                                                   "v1/" */
    uint64_t                     arrival_us;
    uint64_t                     deadline_us;

    uint32_t                     slot;
    uint64_t                     ticket;
    ngx_queue_t                  live;
    ngx_queue_t                  dirty;

    ngx_http_llm_block_t        *blocks;        /* see ..._output.c */
    ngx_http_llm_block_t        *gather;
    ngx_http_llm_block_t        *newest;
    ngx_chain_t                 *free;
    size_t                       held;          /* bytes in blocks */
    size_t                       largest;       /* most output of one event so
                                                   far */

    llm_err_t                   *err;           /* why it failed, if there was
                                                   memory for it */
    uint32_t                     retry_after;

    void                       **data;          /* of each subject, see
                                                   ngx_http_llm_stage.h */

    ngx_event_t                  timer;
    ngx_msec_t                   last_output;

    /* takes its events; set for a health probe, which has no nginx request */
    void                       (*event)(ngx_http_llm_ctx_t *ctx,
                                        const llm_event_t *ev);

    ngx_str_t                    id;            /* of the answer */
    ngx_str_t                    request_id;    /* the client's, or id */
    ngx_str_t                    user;
    ngx_str_t                    metadata;      /* JSON */
    ngx_str_t                    tenant;
    ngx_str_t                    alias;         /* that was asked for */
    ngx_int_t                    most_tokens;   /* llm_max_tokens; -1: none */
    ngx_int_t                    most_prompt;   /* likewise */
    int32_t                      max_tokens;    /* of the message; -1: what
                                                   the context leaves */
    ngx_int_t                    model;         /* -1: not resolved yet */
    ngx_str_t                    name;          /* of it, then */
    ngx_int_t                    place;         /* of its figures; -1: they
                                                   are gone */
    llm_api_usage_t              usage;         /* once api is freed */
    uint64_t                     first_us;      /* the first token came */
    uint64_t                     latest_us;     /* the latest one */
    uint64_t                     ended_us;      /* no event comes any more */
    uint64_t                     predicted_us;  /* see START of llm_event_t */
    llm_period_t                 prepared;      /* see llm_event_t */

    unsigned                     stream:1;
    unsigned                     streaming:1;   /* it counts in the worker's
                                                   streams */
    unsigned                     started:1;     /* START has come */
    unsigned                     ended:1;       /* no event will come */
    unsigned                     done:1;        /* the last one was DONE */
    unsigned                     complete:1;    /* all output is gathered */
    unsigned                     broken:1;      /* a part is missing for lack
                                                   of memory */
    unsigned                     failed:1;      /* before its header went out */
    unsigned                     submitted:1;   /* the engine has had it */
    unsigned                     computed:1;    /* and runs its model for it */
    unsigned                     is_dirty:1;
    unsigned                     paused:1;
    unsigned                     gzip:1;        /* its body is compressed so */
};


/* ngx_http_llm_count.c */

/* a handler of the rewrite and the preaccess phase, which counts requests as
   soon as they are in a llm_api location */
ngx_int_t ngx_http_llm_count_handler(ngx_http_request_t *r);
/* has it been in a llm_api location? */
ngx_uint_t ngx_http_llm_is_counted(ngx_http_request_t *r);


/* ngx_http_llm_names.c */

/* where the location's aliases lead for this request; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_make_aliases(ngx_http_llm_ctx_t *ctx,
    llm_api_conf_t *conf);
/* the request asked for this alias, or for none */
void ngx_http_llm_asked(ngx_http_llm_ctx_t *ctx, const llm_api_conf_t *conf,
    llm_str_t name);


/* ngx_http_llm_slot.c */

ngx_int_t ngx_http_llm_take_slot(ngx_http_llm_ctx_t *ctx);
void ngx_http_llm_free_slot(ngx_http_llm_ctx_t *ctx);


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

/* fills conf with what the request may use, for the parser, which leaves in
   alias what was asked for; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_api_conf(ngx_http_llm_ctx_t *ctx, llm_api_conf_t *conf,
    llm_str_t *alias);
/* the body was parsed: submits the request, or answers why not */
void ngx_http_llm_parsed(ngx_http_llm_body_t *body);
/* a subject that has taken the request over at the stage `parsed` gives it
   back: the next ones are asked, then it is submitted; NGX_ERROR: it is
   refused, see body->err and body->retry_after */
void ngx_http_llm_go_on(ngx_http_llm_body_t *body, ngx_int_t rc);

/* ngx_http_llm_handler.c */

ngx_int_t ngx_http_llm_api_handler(ngx_http_request_t *r);
/* a request's state, from here to its end */
ngx_http_llm_ctx_t *ngx_http_llm_create_ctx(ngx_http_request_t *r);
/* see ngx_http_llm_reply_main_conf_t */
void ngx_http_llm_failed_reply(ngx_http_request_t *r);


/* ngx_http_llm_no_route.c */

/* there is no such endpoint, or, if allow is not empty, it has these methods */
ngx_int_t ngx_http_llm_send_no_route(ngx_http_request_t *r, const char *allow);


/* ngx_http_llm_identity.c */

/* the tenant that the request counts for, as far as it is known by now;
   NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_find_tenant(ngx_http_llm_ctx_t *ctx);
/* model, tenant and priority of a request that was parsed; NGX_ERROR: no
   memory, see body->err */
ngx_int_t ngx_http_llm_identify(ngx_http_llm_body_t *body);
/* the highest that a location's request may turn out to have: variables are not
   looked at before the body is there, as they may depend on it */
ngx_int_t ngx_http_llm_highest_priority(ngx_http_llm_loc_conf_t *conf);
/* llm_max_tokens; NGX_ERROR: see err */
ngx_int_t ngx_http_llm_find_most(ngx_http_llm_ctx_t *ctx, llm_err_t *err);
void ngx_http_llm_set_deadlines(ngx_http_llm_ctx_t *ctx, llm_request_t *msg);


/* ngx_http_llm_event.c */

/* sets how many bytes of a stream may be unread in the ring */
void ngx_http_llm_set_window(ngx_http_llm_ctx_t *ctx, llm_request_t *msg);
/* takes an event of the engine; it only gathers output and never finalizes */
void ngx_http_llm_event(void *data, const llm_event_t *ev);
/* gathers what was written into the worker's scratch */
void ngx_http_llm_take_scratch(ngx_http_llm_ctx_t *ctx);
/* the request has something to send, or ends */
void ngx_http_llm_mark_dirty(ngx_http_llm_ctx_t *ctx);
/* ends the request with an error of our own; it is marked dirty */
void ngx_http_llm_fail(ngx_http_llm_ctx_t *ctx, int status,
    const char *code, const char *msg);
/* after each output: a paused sequence goes on if its client caught up */
void ngx_http_llm_set_pace(ngx_http_llm_ctx_t *ctx);
void ngx_http_llm_cleanup(void *data);
void ngx_http_llm_pool_cleanup(void *data);


/* ngx_http_llm_post_action.c */

/* a handler of the rewrite phase */
ngx_int_t ngx_http_llm_post_action_handler(ngx_http_request_t *r);
/* if nginx has moved the request on by post_action: runs this cleanup of it */
void ngx_http_llm_detach(ngx_http_request_t *r, ngx_http_cleanup_pt cleanup);


/* ngx_http_llm_stream.c */

/* a request waits: for its client to leave, and for its timer, which the
   caller sets */
void ngx_http_llm_watch(ngx_http_llm_ctx_t *ctx, char *action,
    ngx_event_handler_pt handler, void *data);
/* the request is submitted: wait for events, watch the client */
void ngx_http_llm_wait(ngx_http_llm_ctx_t *ctx);
/* sends the output that events have left in each dirty request */
void ngx_http_llm_send_dirty(ngx_http_llm_worker_t *w);


/* ngx_http_llm_output.c */

/* adds output; NGX_ERROR: no memory, a part may have been added */
ngx_int_t ngx_http_llm_gather(ngx_http_llm_ctx_t *ctx, const char *data,
    size_t len);
/* bytes gathered and not handed over yet */
off_t ngx_http_llm_gathered(ngx_http_llm_ctx_t *ctx);
/* passes all that was gathered to nginx; last: it is the answer's end */
ngx_int_t ngx_http_llm_hand_over(ngx_http_llm_ctx_t *ctx, ngx_uint_t last);
/* frees what nginx has sent; called after each output */
void ngx_http_llm_free_sent(ngx_http_llm_ctx_t *ctx);
/* frees all blocks, when nothing points to the bytes any more */
void ngx_http_llm_free_blocks(ngx_http_llm_ctx_t *ctx);


#endif /* NGX_HTTP_LLM_REQUEST_H */
