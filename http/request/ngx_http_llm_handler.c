/*
 * The content handler of llm_api: finds the endpoint, checks whether there is
 * room for the request, and submits it to the engine once ngx_http_llm_body.c
 * has parsed the body; ngx_http_llm_event.c handles the events.
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
static ngx_int_t ngx_http_llm_send(ngx_http_llm_body_t *body);


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

    ctx->reply->endpoint = to.path;            /* whose form errors have */
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
                      "What needs the engine cannot be had by a subrequest of "
                      "nginx (SSI, addition, mirror).");
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

    /* from $request_id, so that all logs of a request agree */

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


llm_str_t
ngx_http_llm_api_path(ngx_str_t *uri)
{
    u_char     *p;
    llm_str_t   path;

    p = ngx_strnstr(uri->data, "/v1/", uri->len);
    p = p ? p + 4 : uri->data;

    path.data = (char *) p;
    path.len = uri->data + uri->len - p;

    return path;
}


/*
 * The API's path is what follows the location's prefix.  In an exact, regex
 * or named location, and after a rewrite to somewhere else, it is what
 * follows "/v1/", or else the whole path.
 */

ngx_int_t
ngx_http_llm_path(ngx_http_request_t *r, ngx_http_llm_loc_conf_t *llcf,
    llm_str_t *path)
{
    u_char                    *p, *last;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    p = r->uri.data;
    last = p + r->uri.len;

    if (llcf->prefix && r->uri.len >= llcf->prefix
        && ngx_memcmp(p, clcf->name.data, llcf->prefix) == 0)
    {
        p += llcf->prefix;

        if (p < last && *p != '/' && p[-1] != '/') {
            return NGX_DECLINED;
        }

    } else {
        p = (u_char *) ngx_http_llm_api_path(&r->uri).data;
    }

    while (p < last && *p == '/') {
        p++;
    }

    path->data = (char *) p;
    path->len = last - p;

    return NGX_OK;
}


ngx_int_t
ngx_http_llm_route(ngx_http_request_t *r, ngx_http_llm_loc_conf_t *llcf,
    llm_api_route_t *to)
{
    llm_str_t  path, method;

    ngx_memzero(to, sizeof(llm_api_route_t));

    if (ngx_http_llm_path(r, llcf, &path) != NGX_OK) {
        return NGX_DECLINED;
    }

    method.data = (char *) r->method_name.data;
    method.len = r->method_name.len;

    return llm_api_route(path, method, to) == LLM_OK ? NGX_OK : NGX_DECLINED;
}


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


/* an endpoint that needs neither a body nor the engine */

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
 * Before the body is read: has any of the location's models room for it?  Where
 * none has, but they do not all say the same, the body tells whose error it is.
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


/* the body has become a message for the engine, or has an error */

void
ngx_http_llm_parsed(ngx_http_llm_body_t *body)
{
    ngx_int_t            rc;
    ngx_http_llm_ctx_t  *ctx;

    ctx = body->ctx;
    ctx->api = body->api;

    ngx_http_llm_asked(ctx, &body->conf, body->alias);

    rc = ctx->api ? ngx_http_llm_identify(body) : NGX_ERROR;

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

    llm_buf_free(&body->msg);

    if (rc != NGX_OK) {
        ngx_http_finalize_request(ctx->request,
                                  ngx_http_llm_send_error(ctx->request,
                                                          &body->err,
                                                          body->retry_after));
        return;
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


/* an error is about to be sent instead of an answer */

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

    /* for logs and figures, if it failed before it was needed */

    if (ctx->tenant.len == 0) {
        (void) ngx_http_llm_find_tenant(ctx);
    }
}
