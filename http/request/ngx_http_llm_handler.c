/*
 * The content handler of llm_api: finds the endpoint, checks whether there is
 * room for the request, and has its body read and parsed (ngx_http_llm_body.c).
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"
#include "http/worker/ngx_http_llm_worker.h"


static ngx_int_t ngx_http_llm_send_answer(ngx_http_llm_ctx_t *ctx,
    llm_str_t rest);
static ngx_int_t ngx_http_llm_admit(ngx_http_llm_ctx_t *ctx, llm_err_t *err);


ngx_int_t
ngx_http_llm_api_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    llm_err_t                 err;
    ngx_uint_t                gzip;
    llm_api_route_t           to;
    ngx_http_llm_ctx_t       *ctx;
    ngx_http_llm_loc_conf_t  *llcf;

    ctx = ngx_http_llm_create_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    rc = ngx_http_llm_route(r, llcf, &to);

    ctx->reply->endpoint = to.path;            /* errors have its form */
    ctx->path = to.name;

    if (rc != NGX_OK) {
        return ngx_http_llm_send_no_route(r, to.allow);
    }

    ctx->reply->endpoint = to.endpoint;

    if (llm_api_answers(to.endpoint)) {
        return ngx_http_llm_send_answer(ctx, to.rest);
    }

    /* an answer of the engine is written to the client's connection, which a
       subrequest has to share */

    if (r != r->main) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "\"llm_api\" does not serve subrequests that need the "
                      "engine");
        llm_fail_with(&err, 501, "subrequest_not_supported", NULL,
                      "Subrequests of nginx (SSI, addition, mirror) cannot use "
                      "endpoints that need the engine.");
        return ngx_http_llm_send_error(r, &err, 0);
    }

    if (!llm_api_bodiless(to.endpoint)) {

        if (ngx_http_llm_coding(r, &gzip, &err) != NGX_OK) {
            return ngx_http_llm_send_error(r, &err, 0);
        }

        ctx->gzip = gzip;
    }

    if (ngx_http_llm_admit(ctx, &err) != NGX_OK) {
        return ngx_http_llm_send_error(r, &err, 1);
    }

    if (ngx_http_llm_find_most(ctx, &err) != NGX_OK
        || ngx_http_llm_on_begin(ctx, &err) != NGX_OK)
    {
        return ngx_http_llm_send_error(r, &err, 0);
    }

    rc = ngx_http_read_client_request_body(r, ngx_http_llm_body_handler);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    return NGX_DONE;
}


ngx_http_llm_ctx_t *
ngx_http_llm_create_ctx(ngx_http_request_t *r)
{
    ngx_http_cleanup_t              *cln;
    ngx_pool_cleanup_t              *pcln;
    ngx_http_llm_ctx_t              *ctx;
    ngx_http_variable_value_t       *id;
    ngx_http_llm_reply_main_conf_t  *rmcf;

    pcln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_llm_ctx_t));
    cln = ngx_http_cleanup_add(r, 0);

    if (pcln == NULL || cln == NULL) {
        return NULL;
    }

    ctx = pcln->data;
    ngx_memzero(ctx, sizeof(ngx_http_llm_ctx_t));

    ctx->request = r;
    ctx->reply = ngx_http_llm_create_reply(r);
    ctx->main = ngx_http_get_module_main_conf(r, ngx_http_llm_module);
    ctx->conf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);
    ctx->slot = NGX_HTTP_LLM_NO_SLOT;
    ctx->model = -1;
    ctx->place = -1;
    ctx->most_tokens = -1;
    ctx->most_prompt = -1;
    ctx->max_tokens = -1;
    ctx->arrival_us = llm_now_us();

    pcln->handler = ngx_http_llm_pool_cleanup;
    cln->handler = ngx_http_llm_cleanup;
    cln->data = ctx;

    ngx_http_set_ctx(r, ctx, ngx_http_llm_module);

    if (ctx->reply == NULL || ngx_http_llm_create_data(ctx) != NGX_OK) {
        return NULL;
    }

    /* the id is $request_id, so that all logs of a request agree */

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_llm_filter_module);
    id = ngx_http_get_indexed_variable(r, rmcf->request_id);
    if (id == NULL || id->not_found) {
        return NULL;
    }

    ctx->id.len = id->len;
    ctx->id.data = id->data;

    return ngx_http_llm_request_id(r, &ctx->request_id) == NGX_OK ? ctx
                                                                  : NULL;
}


/* an internal redirect clears the module's contexts, but not the pool */

ngx_http_llm_ctx_t *
ngx_http_llm_find_ctx(ngx_http_request_t *r)
{
    ngx_http_llm_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r->main, ngx_http_llm_module);

    if (ctx || !r->main->internal) {
        return ctx;
    }

    return ngx_http_llm_find_record(r, ngx_http_llm_pool_cleanup);
}


/* sends the answer of an endpoint that needs neither a body nor the engine */

static ngx_int_t
ngx_http_llm_send_answer(ngx_http_llm_ctx_t *ctx, llm_str_t rest)
{
    int                  found;
    ngx_int_t            rc;
    llm_buf_t            body;
    llm_err_t            err;
    llm_str_t            alias;
    llm_api_conf_t       conf;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (ngx_http_llm_api_conf(ctx, &conf, &alias) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    llm_buf_init(&body, 0);

    found = llm_api_answer(ctx->reply->endpoint, &conf, rest, &body, &err);
    ngx_http_llm_asked(ctx, &conf, alias);

    if (found != LLM_OK) {
        llm_buf_free(&body);
        return ngx_http_llm_send_error(r, &err, 0);
    }

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        llm_buf_free(&body);
        return rc;
    }

    return ngx_http_llm_send_body(r, NGX_HTTP_OK, "application/json", &body);
}


/*
 * Before the body is read: does any of the location's models admit the request?
 * If all refuse it with the same error, that is the answer.  If their errors
 * differ, the body is read first, because it names the model.
 */

static ngx_int_t
ngx_http_llm_admit(ngx_http_llm_ctx_t *ctx, llm_err_t *err)
{
    llm_err_t               first;
    ngx_int_t               priority;
    ngx_uint_t              i, n;
    ngx_http_llm_worker_t  *w;

    w = ctx->main->worker;
    priority = ngx_http_llm_highest_priority(ctx->conf);
    ngx_http_llm_refresh_models(ctx->main);

    for (i = 0, n = 0; i < ctx->main->models.nelts; i++) {

        if (!(ctx->conf->allowed & ((uint64_t) 1 << i))
            || ctx->main->api_models[i].name.len == 0)
        {
            continue;
        }

        if (llm_client_admits(w->client, i, priority, err) == LLM_OK) {
            return NGX_OK;
        }

        if (n++ == 0) {
            first = *err;

        } else if (first.status != err->status
                   || ngx_strcmp(first.code, err->code) != 0
                   || ngx_strcmp(first.msg, err->msg) != 0)
        {
            return NGX_OK;
        }
    }

    return n ? NGX_ERROR : NGX_OK;
}


/* called before an error is sent instead of an answer */

void
ngx_http_llm_failed_reply(ngx_http_request_t *r)
{
    ngx_http_llm_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_llm_module);

    if (ctx == NULL) {
        return;
    }

    ngx_http_llm_on_whole(ctx, 0);
    ngx_http_llm_on_end(ctx);

    /* logs and figures need the tenant, even if the request failed early */

    if (ctx->tenant.len == 0) {
        (void) ngx_http_llm_find_tenant(ctx);
    }
}
