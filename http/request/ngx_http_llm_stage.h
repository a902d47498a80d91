/*
 * The stages of a request's life, in which subjects (quotas, guard, capture,
 * ...) take part: each has a record of the type below, which the
 * preconfiguration of its module adds to the list.  At each stage they are
 * called in the order of that list, which is that of the modules in `config`.
 * What serves requests names none of them.
 *
 * A member that is NULL: the subject has no part in that stage.  All but input
 * run in the event loop.
 */

#ifndef NGX_HTTP_LLM_STAGE_H
#define NGX_HTTP_LLM_STAGE_H


#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_request.h"


typedef struct {
    ngx_uint_t                   index;         /* in the list; set when the
                                                   configuration is read */

    /* A request has come to its location, its body was not read.
       NGX_ERROR: it is refused, see err. */
    ngx_int_t                  (*begin)(ngx_http_llm_ctx_t *ctx,
                                        llm_err_t *err);

    /* What the request may use is known: the subject takes from conf what it
       may not.  Before its body is parsed, or instead. */
    void                       (*allow)(ngx_http_llm_ctx_t *ctx,
                                        llm_api_conf_t *conf);

    /* Where llm_tenant says nothing: sets ctx->tenant.  Called several
       times. */
    void                       (*tenant)(ngx_http_llm_ctx_t *ctx);

    /* The body was read, body->size or body->unpacked says how large it is at
       most.  NGX_ERROR: no memory. */
    ngx_int_t                  (*body)(ngx_http_llm_body_t *body);

    /* The whole body, not compressed, before it is parsed.  Perhaps in a
       thread: r->pool must not be used. */
    void                       (*input)(ngx_http_llm_body_t *body, u_char *p,
                                        size_t len);

    /* The body has become a message for the engine, its model and its tenant
       are known.  NGX_OK: it goes on.  NGX_DONE: the subject takes it over;
       the request goes on where it stopped by ngx_http_llm_go_on(), or the
       subject has finalized it.  NGX_ERROR: it is refused, see body->err and
       body->retry_after. */
    ngx_int_t                  (*parsed)(ngx_http_llm_body_t *body);

    /* The engine has not taken the message; end() follows. */
    void                       (*returned)(ngx_http_llm_ctx_t *ctx);

    /* The engine knows how many tokens the prompt has, and waits: only if a
       subject has set LLM_REQ_METERED.  NGX_ERROR: it is refused, see err. */
    ngx_int_t                  (*prepared)(ngx_http_llm_ctx_t *ctx,
                                           const llm_event_t *ev,
                                           llm_err_t *err);

    /* It begins to run; and more of its answer. */
    void                       (*start)(ngx_http_llm_ctx_t *ctx,
                                        const llm_event_t *ev);
    void                       (*text)(ngx_http_llm_ctx_t *ctx,
                                       const llm_event_t *ev);

    /* No more will come of the engine.  ev: the engine's last event; NULL: the
       request was refused, has failed or is over.  Called several times. */
    void                       (*end)(ngx_http_llm_ctx_t *ctx,
                                      const llm_event_t *ev);

    /* Bytes of the answer, in the form in which its client gets them. */
    void                       (*bytes)(ngx_http_llm_ctx_t *ctx,
                                        const char *data, size_t len);

    /* These were all, ok: of a whole answer; else there is an error, or
       nothing, instead.  Called several times. */
    void                       (*whole)(ngx_http_llm_ctx_t *ctx,
                                        ngx_uint_t ok);

    /* The client has everything, or is gone; ctx->api is still there. */
    void                       (*cleanup)(ngx_http_llm_ctx_t *ctx);

    /* The header of whatever answers a request in any location, also without a
       ctx.  NGX_ERROR: no memory. */
    ngx_int_t                  (*headers)(ngx_http_request_t *r);
} ngx_http_llm_stage_t;


/* a subject's own data of a request; NULL: it has none.  It is not a context
   of nginx's, which an internal redirect clears while the engine and the log
   still need it. */

#define ngx_http_llm_get_data(ctx, stage)  (ctx)->data[(stage).index]
#define ngx_http_llm_set_data(ctx, p, stage)  (ctx)->data[(stage).index] = (p)


extern ngx_http_llm_stage_t  ngx_http_llm_leaving_stage;


/* ngx_http_llm_stage.c */

/* in a module's preconfiguration */
ngx_int_t ngx_http_llm_add_stage(ngx_conf_t *cf, ngx_http_llm_stage_t *stage);
/* room for the data of all subjects; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_create_data(ngx_http_llm_ctx_t *ctx);
/* calls of the members above */
ngx_int_t ngx_http_llm_on_begin(ngx_http_llm_ctx_t *ctx, llm_err_t *err);
void ngx_http_llm_on_allow(ngx_http_llm_ctx_t *ctx, llm_api_conf_t *conf);
void ngx_http_llm_on_tenant(ngx_http_llm_ctx_t *ctx);
ngx_int_t ngx_http_llm_on_body(ngx_http_llm_body_t *body);
void ngx_http_llm_on_input(ngx_http_llm_body_t *body, u_char *p, size_t len);
/* of those that were not called yet */
ngx_int_t ngx_http_llm_on_parsed(ngx_http_llm_body_t *body);
void ngx_http_llm_on_returned(ngx_http_llm_ctx_t *ctx);
ngx_int_t ngx_http_llm_on_prepared(ngx_http_llm_ctx_t *ctx,
    const llm_event_t *ev, llm_err_t *err);
/* start, text or end, as the event says */
void ngx_http_llm_on_event(ngx_http_llm_ctx_t *ctx, const llm_event_t *ev);
void ngx_http_llm_on_end(ngx_http_llm_ctx_t *ctx);
void ngx_http_llm_on_bytes(ngx_http_llm_ctx_t *ctx, const char *data,
    size_t len);
void ngx_http_llm_on_whole(ngx_http_llm_ctx_t *ctx, ngx_uint_t ok);
void ngx_http_llm_on_cleanup(ngx_http_llm_ctx_t *ctx);
ngx_int_t ngx_http_llm_on_headers(ngx_http_request_t *r);


#endif /* NGX_HTTP_LLM_STAGE_H */
