/*
 * Submits a parsed request to the engine, after the subjects' stage `parsed`;
 * and tells the parser what the request may use.
 */

#include "http/conf/ngx_http_llm_model.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"


static ngx_int_t ngx_http_llm_send(ngx_http_llm_body_t *body);


ngx_int_t
ngx_http_llm_api_conf(ngx_http_llm_ctx_t *ctx, llm_api_conf_t *conf,
    llm_str_t *alias)
{
    conf->models = ngx_http_llm_models_now(ctx->main, ctx->request->pool);

    if (conf->models == NULL) {
        return NGX_ERROR;
    }

    conf->n_models = ctx->main->models.nelts;
    conf->allowed = ctx->conf->allowed;
    conf->denied = 0;
    conf->fallback = ctx->conf->fallback;
    conf->cap = ctx->most_tokens;
    conf->id.len = ctx->id.len;
    conf->id.data = (char *) ctx->id.data;
    conf->model = llm_str("");
    conf->zone = ctx->main->zone;
    conf->now = ngx_time();
    conf->max_answer = ctx->conf->stream_buffer * NGX_HTTP_LLM_MAX_ANSWER;
    conf->guard = NULL;
    conf->preset = ctx->conf->preset;
    conf->alias = alias;

    *alias = llm_str("");

    if (ngx_http_llm_make_aliases(ctx, conf) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_llm_on_allow(ctx, conf);

    return NGX_OK;
}


/* body->api is NULL if the body has an error */

void
ngx_http_llm_parsed(ngx_http_llm_body_t *body)
{
    ngx_int_t            rc;
    ngx_http_llm_ctx_t  *ctx;

    ctx = body->ctx;
    ctx->api = body->api;

    if (body->endpoint) {
        ctx->reply->endpoint = body->endpoint;
    }

    ngx_http_llm_asked(ctx, &body->conf, body->alias);

    rc = ctx->api ? ngx_http_llm_keep_media(body) : NGX_ERROR;

    if (rc == NGX_OK) {
        rc = ngx_http_llm_identify(body);
    }

    if (rc != NGX_OK) {
        body->retry_after = (body->err.status == 429);
    }

    ngx_http_llm_go_on(body, rc);
}


void
ngx_http_llm_go_on(ngx_http_llm_body_t *body, ngx_int_t rc)
{
    ngx_http_llm_ctx_t  *ctx;

    ctx = body->ctx;

    if (rc == NGX_OK) {
        rc = ngx_http_llm_on_parsed(body);
    }

    if (rc == NGX_DONE) {
        return;
    }

    if (rc == NGX_OK) {
        rc = ngx_http_llm_send(body);
    }

    ngx_http_llm_free_message(body);

    if (rc != NGX_OK) {
        ngx_http_finalize_request(ctx->request,
                                  ngx_http_llm_send_error(ctx->request,
                                                          &body->err,
                                                          body->retry_after));
        return;
    }

    if (body->brief) {
        (void) ngx_pfree(ctx->request->pool, body);
    }

    ngx_http_llm_wait(ctx);
}


static ngx_int_t
ngx_http_llm_send(ngx_http_llm_body_t *body)
{
    llm_request_t       *msg;
    ngx_http_llm_ctx_t  *ctx;

    ctx = body->ctx;
    msg = (llm_request_t *) body->msg.data;

    if (ngx_http_llm_take_slot(ctx) != NGX_OK) {
        llm_fail(&body->err, "No memory is left for this request.");
        ngx_http_llm_on_returned(ctx);
        return NGX_ERROR;
    }

    ngx_http_llm_set_deadlines(ctx, msg);
    ngx_http_llm_set_window(ctx, msg);

    msg->most_prompt = ngx_max(ctx->most_prompt, 0);

    msg->head.slot = ctx->slot;

    if (llm_client_submit(ctx->main->worker->client, msg, &body->retry_after,
                          &body->err)
        != LLM_OK)
    {
        ngx_http_llm_free_slot(ctx);
        ngx_http_llm_on_returned(ctx);
        return NGX_ERROR;
    }

    ctx->ticket = msg->head.ticket;
    ctx->max_tokens = msg->max_tokens;
    ctx->submitted = 1;
    ctx->computed = (msg->task < LLM_TASK_TOKENIZE);

    return NGX_OK;
}
