/*
 * The stages of a request's life, in which subjects (quotas, guard, capture,
 * ...) take part.  Each subject has a record of hooks, which the
 * preconfiguration of its module adds to a list.  At each stage the hooks are
 * called in the order of the list, which is that of the modules in `config`.
 * The files that serve requests name no subject.
 *
 * NULL: the subject has no such hook.  All hooks but input run in the event
 * loop.
 */

#ifndef NGX_HTTP_LLM_STAGE_H
#define NGX_HTTP_LLM_STAGE_H


#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_request.h"


typedef struct {
    ngx_uint_t                   index;         /* in the list; set when the
                                                   configuration is read */

    /* A request is in its location, its body is not read yet.  NGX_ERROR: the
       request is refused with err. */
    ngx_int_t                  (*begin)(ngx_http_llm_ctx_t *ctx,
                                        llm_err_t *err);

    /* Removes from conf what the request may not use.  Called before the body
       is parsed, or before an answer that needs no body. */
    void                       (*allow)(ngx_http_llm_ctx_t *ctx,
                                        llm_api_conf_t *conf);

    /* Sets ctx->tenant if llm_tenant gives no name.  Called several times. */
    void                       (*tenant)(ngx_http_llm_ctx_t *ctx);

    /* The body was read.  It has body->size bytes, or at most body->unpacked
       bytes if that is not 0.  NGX_ERROR: no memory. */
    ngx_int_t                  (*body)(ngx_http_llm_body_t *body);

    /* Gets the whole body, decompressed, before it is parsed.  May run in a
       thread, so it must not use r->pool. */
    void                       (*input)(ngx_http_llm_body_t *body, u_char *p,
                                        size_t len);

    /* The body was parsed to a message for the engine; model and tenant are
       known.  NGX_OK: the next subject is called.  NGX_DONE: the subject takes
       the request over, until it calls ngx_http_llm_go_on(), or has finalized
       it.  NGX_ERROR: the request is refused with body->err and
       body->retry_after. */
    ngx_int_t                  (*parsed)(ngx_http_llm_body_t *body);

    /* The engine has not accepted the message; end() follows. */
    void                       (*returned)(ngx_http_llm_ctx_t *ctx);

    /* The engine has counted the prompt's tokens, and waits for permission to
       run the request.  Called only if a subject has set LLM_REQ_METERED.
       NGX_ERROR: the request is refused with err. */
    ngx_int_t                  (*prepared)(ngx_http_llm_ctx_t *ctx,
                                           const llm_event_t *ev,
                                           llm_err_t *err);

    /* The request begins to run; more text of its answer has come. */
    void                       (*start)(ngx_http_llm_ctx_t *ctx,
                                        const llm_event_t *ev);
    void                       (*text)(ngx_http_llm_ctx_t *ctx,
                                       const llm_event_t *ev);

    /* No more events will come.  ev: the engine's last event; NULL: the request
       was refused, has failed or is over.  Called several times. */
    void                       (*end)(ngx_http_llm_ctx_t *ctx,
                                      const llm_event_t *ev);

    /* Bytes of the answer, in the form in which its client gets them. */
    void                       (*bytes)(ngx_http_llm_ctx_t *ctx,
                                        const char *data, size_t len);

    /* No more bytes will come.  ok: the answer is whole; otherwise an error, or
       nothing, replaces the rest.  Called several times. */
    void                       (*whole)(ngx_http_llm_ctx_t *ctx,
                                        ngx_uint_t ok);

    /* The client has received everything, or is gone; ctx->api still
       exists. */
    void                       (*cleanup)(ngx_http_llm_ctx_t *ctx);

    /* Adds headers to an answer of any location, also if the request has no
       ctx.  NGX_ERROR: no memory. */
    ngx_int_t                  (*headers)(ngx_http_request_t *r);
} ngx_http_llm_stage_t;


/* a subject's own data of a request; NULL: none.  It is not an nginx context,
   because an internal redirect clears contexts while the engine and the log
   still need them. */

#define ngx_http_llm_get_data(ctx, stage)  (ctx)->data[(stage).index]
#define ngx_http_llm_set_data(ctx, p, stage)  (ctx)->data[(stage).index] = (p)


extern ngx_http_llm_stage_t  ngx_http_llm_leaving_stage;


/* ngx_http_llm_stage.c */

/* for a module's preconfiguration */
ngx_int_t ngx_http_llm_add_stage(ngx_conf_t *cf, ngx_http_llm_stage_t *stage);
/* allocates ctx->data; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_create_data(ngx_http_llm_ctx_t *ctx);
/* these call the hooks of all subjects */
ngx_int_t ngx_http_llm_on_begin(ngx_http_llm_ctx_t *ctx, llm_err_t *err);
void ngx_http_llm_on_allow(ngx_http_llm_ctx_t *ctx, llm_api_conf_t *conf);
void ngx_http_llm_on_tenant(ngx_http_llm_ctx_t *ctx);
ngx_int_t ngx_http_llm_on_body(ngx_http_llm_body_t *body);
void ngx_http_llm_on_input(ngx_http_llm_body_t *body, u_char *p, size_t len);
/* only of subjects that were not called yet (body->stage) */
ngx_int_t ngx_http_llm_on_parsed(ngx_http_llm_body_t *body);
void ngx_http_llm_on_returned(ngx_http_llm_ctx_t *ctx);
ngx_int_t ngx_http_llm_on_prepared(ngx_http_llm_ctx_t *ctx,
    const llm_event_t *ev, llm_err_t *err);
/* start, text or end, depending on the event's type */
void ngx_http_llm_on_event(ngx_http_llm_ctx_t *ctx, const llm_event_t *ev);
void ngx_http_llm_on_end(ngx_http_llm_ctx_t *ctx);
void ngx_http_llm_on_bytes(ngx_http_llm_ctx_t *ctx, const char *data,
    size_t len);
void ngx_http_llm_on_whole(ngx_http_llm_ctx_t *ctx, ngx_uint_t ok);
void ngx_http_llm_on_cleanup(ngx_http_llm_ctx_t *ctx);
ngx_int_t ngx_http_llm_on_headers(ngx_http_request_t *r);


#endif /* NGX_HTTP_LLM_STAGE_H */
