/*
 * llm_guard: before a request waits for the engine, a subrequest asks a
 * location of this server whether it is allowed (ngx_http_llm_guard_ask.c).
 *
 * - The guard is asked after the lookup of an Idempotency-Key: an answer that
 *   is sent again was allowed before.  While the guard is asked, the request
 *   counts among its quota's streams and holds its part of the memory of
 *   requests.
 * - At the timeout the subrequest is ended, if it waits for an upstream or is
 *   delayed.  If it waits for something else it ends by itself, and its result
 *   is ignored.
 */

#include "http/access/ngx_http_llm_guard.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"


static ngx_int_t ngx_http_llm_guard_init(ngx_http_llm_body_t *body);
static void ngx_http_llm_guard_free(void *data);
static ngx_int_t ngx_http_llm_guard_ask(ngx_http_llm_body_t *body);
static void ngx_http_llm_guard_refused(ngx_http_llm_asked_t *asked);
static ngx_int_t ngx_http_llm_guard_begin(ngx_http_llm_asked_t *asked);
static ngx_int_t ngx_http_llm_guard_head(ngx_http_llm_asked_t *asked);
static void ngx_http_llm_guard_wait(ngx_http_llm_asked_t *asked);
static void ngx_http_llm_guard_write_handler(ngx_http_request_t *r);
static void ngx_http_llm_guard_timer_handler(ngx_event_t *ev);
static void ngx_http_llm_guard_cancel(ngx_http_request_t *sr);
static ngx_int_t ngx_http_llm_guard_done(ngx_http_request_t *r, void *data,
    ngx_int_t rc);
static void ngx_http_llm_guard_end(ngx_http_llm_asked_t *asked);
static ngx_int_t ngx_http_llm_guard_verdict(ngx_http_llm_asked_t *asked);


ngx_http_llm_stage_t  ngx_http_llm_guard_stage = {
    .body = ngx_http_llm_guard_init,
    .parsed = ngx_http_llm_guard_ask
};


/* before the body is parsed */

static ngx_int_t
ngx_http_llm_guard_init(ngx_http_llm_body_t *body)
{
    ngx_pool_cleanup_t             *cln;
    ngx_http_llm_asked_t           *asked;
    ngx_http_llm_guard_loc_conf_t  *glcf;

    glcf = ngx_http_llm_get_loc_conf(body->ctx->conf,
                                     ngx_http_llm_guard_module);

    if (glcf->guard == NULL) {
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(body->ctx->request->pool,
                               sizeof(ngx_http_llm_asked_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    asked = cln->data;
    ngx_memzero(asked, sizeof(ngx_http_llm_asked_t));

    asked->body = body;
    body->brief = 0;
    asked->guard = glcf->guard;
    llm_buf_init(&asked->told, 0);

    cln->handler = ngx_http_llm_guard_free;

    body->conf.guard = &asked->told;
    ngx_http_llm_set_data(body->ctx, asked, ngx_http_llm_guard_stage);

    return NGX_OK;
}


static void
ngx_http_llm_guard_free(void *data)
{
    ngx_http_llm_asked_t *asked = data;

    llm_buf_free(&asked->told);
}


static ngx_int_t
ngx_http_llm_guard_ask(ngx_http_llm_body_t *body)
{
    ngx_int_t              rc;
    ngx_str_t              uri;
    ngx_http_llm_ctx_t    *ctx;
    ngx_http_llm_asked_t  *asked;

    ctx = body->ctx;
    asked = ngx_http_llm_get_data(ctx, ngx_http_llm_guard_stage);

    if (asked == NULL || asked->told.len == 0) {
        return NGX_OK;
    }

    if (ngx_http_complex_value(ctx->request, &asked->guard->uri.value, &uri)
        != NGX_OK)
    {
        llm_fail(&body->err, "No memory is left for this request.");
        return NGX_ERROR;
    }

    if (uri.len == 0) {
        ngx_http_llm_guard_free(asked);
        return NGX_OK;
    }

    asked->uri = uri;
    rc = ngx_http_llm_guard_begin(asked);

    if (rc == NGX_ERROR) {
        ngx_http_llm_guard_refused(asked);
    }

    return rc;
}


/* a client may retry when the guard is busy */

static void
ngx_http_llm_guard_refused(ngx_http_llm_asked_t *asked)
{
    ngx_http_llm_body_t  *body;

    body = asked->body;
    body->retry_after = (body->err.status == 429 || body->err.status == 503);
}


static ngx_int_t
ngx_http_llm_guard_begin(ngx_http_llm_asked_t *asked)
{
    ngx_str_t             uri, args;
    ngx_http_llm_body_t  *body;

    body = asked->body;

    if (ngx_http_llm_guard_head(asked) != NGX_OK) {
        goto nomem;
    }

    if (ngx_http_llm_hold_message(body, "too many requests wait for the "
                                  "answer of a guard (llm_queue memory=)")
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    uri = asked->uri;

    if (ngx_http_llm_uri_split(body->ctx->request, &asked->guard->uri, &uri,
                               &args)
        != NGX_OK)
    {
        asked->failed = 1;
        (void) ngx_http_llm_hold(body, 0, NULL);
        ngx_http_llm_guard_free(asked);
        return ngx_http_llm_guard_verdict(asked);
    }

    if (ngx_http_llm_guard_request(asked, &uri, &args,
                                   ngx_http_llm_guard_done) != NGX_OK) {
        goto nomem;
    }

    ngx_http_llm_guard_wait(asked);

    return NGX_DONE;

nomem:

    llm_fail(&body->err, "No memory is left for this request.");

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_llm_guard_head(ngx_http_llm_asked_t *asked)
{
    u_char               *p;
    llm_buf_t             head;
    llm_str_t             id, tenant;
    ngx_http_llm_ctx_t   *ctx;

    ctx = asked->body->ctx;

    id.len = ctx->request_id.len;
    id.data = (char *) ctx->request_id.data;
    tenant.len = ctx->tenant.len;
    tenant.data = (char *) ctx->tenant.data;

    p = NULL;
    llm_buf_init(&head, 0);

    if (llm_api_guard_head(ctx->api, &asked->body->conf, id, tenant, &head)
        == LLM_OK)
    {
        p = ngx_pnalloc(ctx->request->pool, head.len);
    }

    if (p) {
        ngx_memcpy(p, head.data, head.len);
        asked->head.data = p;
        asked->head.len = head.len;
    }

    llm_buf_free(&head);

    return p ? NGX_OK : NGX_ERROR;
}


/* ---- waiting ---- */

static void
ngx_http_llm_guard_wait(ngx_http_llm_asked_t *asked)
{
    ngx_http_llm_ctx_t  *ctx;

    ctx = asked->body->ctx;
    ctx->request->write_event_handler = ngx_http_llm_guard_write_handler;

    asked->last = ngx_http_llm_watch_for(ctx, asked->guard->timeout,
                                         "waiting for the answer of a guard",
                                         ngx_http_llm_guard_timer_handler,
                                         asked);
}


/*
 * The subrequest has ended.  May be called several times: with a status of
 * nginx's own, the subrequest goes on to the error page.  A result that would
 * end the client's request, too, only marks the guard as failed.
 */

static ngx_int_t
ngx_http_llm_guard_done(ngx_http_request_t *r, void *data, ngx_int_t rc)
{
    ngx_http_llm_asked_t *asked = data;

    if (!asked->over && ngx_http_post_request(r->main, NULL) != NGX_OK) {
        return NGX_ERROR;
    }

    if (r->connection->error) {
        return rc;
    }

    switch (rc) {

    case NGX_ERROR:
    case NGX_HTTP_REQUEST_TIME_OUT:
    case NGX_HTTP_CLIENT_CLOSED_REQUEST:
    case NGX_HTTP_CLOSE:
        asked->failed = 1;
        return NGX_OK;

    default:
        return rc;
    }
}


/* limit_req delays a request by the timer of its connection, so events of the
   delayed subrequest come here */

static void
ngx_http_llm_guard_write_handler(ngx_http_request_t *r)
{
    ngx_http_llm_ctx_t    *ctx;
    ngx_http_request_t    *sr;
    ngx_http_llm_asked_t  *asked;

    ctx = ngx_http_get_module_ctx(r, ngx_http_llm_module);
    asked = ngx_http_llm_get_data(ctx, ngx_http_llm_guard_stage);
    sr = asked->subrequest;

    if (sr->done) {
        ngx_http_llm_guard_end(asked);

    } else if (sr->upstream == NULL) {
        sr->write_event_handler(sr);
    }
}


static void
ngx_http_llm_guard_timer_handler(ngx_event_t *ev)
{
    ngx_connection_t      *c;
    ngx_http_request_t    *r;
    ngx_http_llm_asked_t  *asked;

    asked = ev->data;
    r = asked->body->ctx->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    if (!asked->subrequest->done) {
        asked->over = 1;
        asked->failed = 1;
        asked->timedout = 1;

        ngx_http_llm_guard_cancel(asked->subrequest);
    }

    ngx_http_llm_guard_end(asked);
    ngx_http_run_posted_requests(c);
}


/* ends an upstream as nginx does before a request gets another one */

static void
ngx_http_llm_guard_cancel(ngx_http_request_t *sr)
{
    ngx_event_t          *wev;
    ngx_http_upstream_t  *u;

    u = sr->upstream;
    wev = sr->connection->write;

    if (u && u->cleanup) {
        sr->main->count++;
        (*u->cleanup)(sr);

    } else if (u == NULL && wev->delayed && wev->timer_set) {
        wev->delayed = 0;
        ngx_del_timer(wev);

    } else {
        return;
    }

    ngx_http_finalize_request(sr, NGX_OK);
}


static void
ngx_http_llm_guard_end(ngx_http_llm_asked_t *asked)
{
    ngx_int_t            rc;
    ngx_http_llm_ctx_t  *ctx;

    ctx = asked->body->ctx;

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    if (asked->subrequest->done) {
        asked->subrequest->request_body->bufs = NULL;
        ngx_http_llm_guard_free(asked);
    }

    asked->over = 1;

    (void) ngx_http_llm_hold(asked->body, 0, NULL);

    rc = ngx_http_llm_guard_verdict(asked);

    if (rc == NGX_ERROR) {
        ngx_http_llm_guard_refused(asked);
    }

    ngx_http_llm_go_on(asked->body, rc);
}


/* ---- the guard's answer ---- */

static ngx_int_t
ngx_http_llm_guard_verdict(ngx_http_llm_asked_t *asked)
{
    llm_err_t            *err;
    ngx_log_t            *log;
    ngx_uint_t            status;
    ngx_http_llm_ctx_t   *ctx;

    ctx = asked->body->ctx;
    err = &asked->body->err;
    log = ctx->request->connection->log;

    status = asked->failed ? 0 : asked->subrequest->headers_out.status;

    if (status >= 200 && status < 300) {
        return NGX_OK;
    }

    if (status == NGX_HTTP_FORBIDDEN) {
        llm_fail_with(err, 400, "content_policy_violation", NULL,
                      "This request was refused because of its content.");
        return NGX_ERROR;
    }

    if (asked->timedout && asked->last) {
        llm_fail_with(err, 504, "timeout", NULL,
                      "The request took longer than the server allows.");
        return NGX_ERROR;
    }

    ngx_log_error(NGX_LOG_ERR, log, asked->timedout ? NGX_ETIMEDOUT : 0,
                  "llm_guard \"%s\" failed (status %ui): the request is %s",
                  ngx_http_llm_clean(ctx->request, &asked->uri), status,
                  asked->guard->open ? "allowed" : "refused");

    if (asked->guard->open) {
        return NGX_OK;
    }

    llm_fail_with(err, 503, "guard_unavailable", NULL,
                  "This request cannot be checked now, try again later.");

    return NGX_ERROR;
}


/*
 * nginx compares a request's length with client_max_body_size when it looks
 * for the location.  The client's request has passed the limit of its own
 * location, so the subrequest gets its length only afterwards, here.
 */

ngx_int_t
ngx_http_llm_guard_length(ngx_http_request_t *r)
{
    ngx_http_llm_asked_t  *asked;

    if (r->post_subrequest
        && r->post_subrequest->handler == ngx_http_llm_guard_done)
    {
        asked = r->post_subrequest->data;
        r->headers_in.content_length_n = asked->head.len
                                         + asked->told.len;
    }

    return NGX_DECLINED;
}
