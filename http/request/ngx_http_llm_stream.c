/*
 * Sends the output of events (ngx_http_llm_event.c) to the client: headers,
 * slow clients, clients that leave, timeouts.
 *
 * - While earlier output is not sent completely, new output is gathered.  An
 *   answer that is not streamed is written when it is complete, in pieces of
 *   llm_stream_buffer: the next piece is made when the client has received the
 *   one before.
 * - A request is finalized once, and never while events are drained.
 * - Each live request has a timer, never cancelable: it keeps a worker that
 *   shuts down alive, sends heartbeats, and ends a request if the engine has
 *   missed its deadline.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"
#include "http/worker/ngx_http_llm_worker.h"


/* microseconds that a request waits after its deadline for the engine's
   error */
#define NGX_HTTP_LLM_GRACE_US  (3 * 1000000)


static void ngx_http_llm_serve(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_finalize(ngx_http_llm_ctx_t *ctx, ngx_int_t rc);
static ngx_int_t ngx_http_llm_start(ngx_http_llm_ctx_t *ctx);
static ngx_int_t ngx_http_llm_stream_headers(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_fill(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_flush(ngx_http_llm_ctx_t *ctx,
    ngx_uint_t writable);
static ngx_uint_t ngx_http_llm_is_busy(ngx_http_llm_ctx_t *ctx);
static ngx_int_t ngx_http_llm_set_write_event(ngx_http_llm_ctx_t *ctx,
    ngx_uint_t progress);
static void ngx_http_llm_write_handler(ngx_http_request_t *r);
static void ngx_http_llm_timer_handler(ngx_event_t *ev);
static void ngx_http_llm_set_timer(ngx_http_llm_ctx_t *ctx);


void
ngx_http_llm_watch(ngx_http_llm_ctx_t *ctx, char *action,
    ngx_event_handler_pt handler, void *data)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = ctx->request;
    c = r->connection;

    if (ctx->conf->ignore_client_abort) {
        r->read_event_handler = ngx_http_block_reading;

    } else {
        r->read_event_handler = ngx_http_test_reading;

        /* a FIN may have come before the handler was set */

        if (c->read->ready) {
            ngx_post_event(c->read, &ngx_posted_events);
        }
    }

    c->log->action = action;

    ctx->timer.handler = handler;
    ctx->timer.data = data;
    ctx->timer.log = c->log;
}


ngx_uint_t
ngx_http_llm_watch_for(ngx_http_llm_ctx_t *ctx, ngx_msec_t ms, char *action,
    ngx_event_handler_pt handler, void *data)
{
    uint64_t    past, most;
    ngx_uint_t  last;

    most = ctx->conf->timeout;
    past = (llm_now_us() - ctx->arrival_us) / 1000;
    last = most && past + ms > most;

    if (last) {
        ms = (past < most) ? most - past : 0;
    }

    ngx_http_llm_watch(ctx, action, handler, data);
    ngx_add_timer(&ctx->timer, ms);

    return last;
}


void
ngx_http_llm_wait(ngx_http_llm_ctx_t *ctx)
{
    ctx->request->write_event_handler = ngx_http_llm_write_handler;

    ngx_http_llm_watch(ctx, "generating an answer",
                       ngx_http_llm_timer_handler, ctx);

    ctx->last_output = ngx_current_msec;

    ngx_http_llm_set_timer(ctx);
}


void
ngx_http_llm_send_dirty(ngx_http_llm_worker_t *w)
{
    ngx_uint_t           n;
    ngx_queue_t         *q;
    ngx_connection_t    *c;
    ngx_http_llm_ctx_t  *ctx;

    n = 0;

    while (!ngx_queue_empty(&w->dirty)) {

        if (n == 0) {
            n = ngx_http_llm_ahead_of_sending(w);
        }

        n--;
        q = ngx_queue_head(&w->dirty);
        ctx = ngx_queue_data(q, ngx_http_llm_ctx_t, dirty);

        ngx_queue_remove(q);
        ctx->is_dirty = 0;

        c = ctx->request->connection;

        ngx_http_set_log_request(c->log, ctx->request);
        ngx_http_llm_serve(ctx);
        ngx_http_run_posted_requests(c);
    }
}


/* sends new output to this client */

static void
ngx_http_llm_serve(ngx_http_llm_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (!r->header_sent && ctx->failed) {
        rc = ctx->err ? ngx_http_llm_send_error(r, ctx->err, ctx->retry_after)
                      : NGX_HTTP_INTERNAL_SERVER_ERROR;
        ngx_http_llm_finalize(ctx, rc);
        return;
    }

    if (!r->header_sent) {
        rc = ngx_http_llm_start(ctx);

        if (rc == NGX_ERROR || rc > NGX_OK) {
            ngx_http_llm_on_whole(ctx, 0);
            ngx_http_llm_finalize(ctx, rc);
            return;
        }

        if (r->header_only) {
            ngx_http_llm_finalize(ctx, NGX_OK);
            return;
        }
    }

    ngx_http_llm_flush(ctx, 0);
}


/* after this, only nginx handles the request */

static void
ngx_http_llm_finalize(ngx_http_llm_ctx_t *ctx, ngx_int_t rc)
{
    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    ngx_http_finalize_request(ctx->request, rc);
}


/*
 * Sends the header of an answer.  One that is not streamed has a Content-Length
 * if its first piece is all of it.
 */

static ngx_int_t
ngx_http_llm_start(ngx_http_llm_ctx_t *ctx)
{
    ngx_int_t            rc;
    const char          *type;
    ngx_http_request_t  *r;

    r = ctx->request;

    /* conditional requests are for files: an answer is never a 304 or a 412 */
    r->disable_not_modified = 1;

    if (!ctx->stream) {
        ngx_http_llm_fill(ctx);
    }

    if (ctx->broken) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = NGX_HTTP_OK;

    if (ctx->stream) {
        if (ngx_http_llm_stream_headers(ctx) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

    } else {
        type = llm_api_body_type(ctx->api);
        r->headers_out.content_type.data = (u_char *) type;
        r->headers_out.content_type.len = ngx_strlen(type);

        if (ctx->complete) {
            r->headers_out.content_length_n = ngx_http_llm_gathered(ctx);
        }
    }

    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK) {
        return rc;
    }

    if (ctx->stream && !ctx->streaming) {
        ctx->streaming = 1;
        ctx->main->worker->counters->streams++;
    }

    if (!ctx->stream || ctx->complete || ctx->gather) {
        return NGX_OK;
    }

    /* the header must not wait for the first token */

    return ngx_http_send_special(r, NGX_HTTP_FLUSH);
}


static ngx_int_t
ngx_http_llm_stream_headers(ngx_http_llm_ctx_t *ctx)
{
    const char                *type;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = ctx->request;
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    type = llm_api_stream_type(ctx->api);
    r->headers_out.content_type.data = (u_char *) type;
    r->headers_out.content_type.len = ngx_strlen(type);

    if (ngx_http_llm_add_header(r, "Cache-Control", "no-cache", 8) != NGX_OK
        || ngx_http_llm_add_header(r, "X-Accel-Buffering", "no", 2)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (clcf->tcp_nodelay && ngx_tcp_nodelay(r->connection) != NGX_OK) {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* makes the next piece of an answer that is not streamed */

static void
ngx_http_llm_fill(ngx_http_llm_ctx_t *ctx)
{
    int  rc;

    rc = llm_api_body_next(ctx->api, ctx->conf->stream_buffer,
                           &ctx->main->worker->scratch);

    ctx->complete = (rc == LLM_OK);
    ngx_http_llm_take_scratch(ctx);
    ctx->broken |= (rc == LLM_ERROR);

    if (ctx->complete) {
        ngx_http_llm_on_whole(ctx, !ctx->broken);
    }
}


/*
 * Sends the gathered output.  writable: the socket can take more, so unsent
 * output is tried again.  May finalize the request.
 */

static void
ngx_http_llm_flush(ngx_http_llm_ctx_t *ctx, ngx_uint_t writable)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    /* output postponed after a subrequest's (of the addition module) is not in
       our buffers */

    if (writable && (ngx_http_llm_is_busy(ctx) || r->postponed)) {

        if (ngx_http_output_filter(r, NULL) == NGX_ERROR) {
            ngx_http_llm_finalize(ctx, NGX_ERROR);
            return;
        }
    }

    /* the end is handed over even if the connection is busy: nginx's own writer
       sends it then */

    while (ctx->complete || !ngx_http_llm_is_busy(ctx)) {

        if (!ctx->stream && !ctx->complete && ctx->gather == NULL) {
            ngx_http_llm_fill(ctx);
        }

        if (ctx->broken) {
            ngx_http_llm_finalize(ctx, NGX_ERROR);
            return;
        }

        if (!ctx->complete && ctx->gather == NULL) {
            break;
        }

        rc = ngx_http_llm_hand_over(ctx, ctx->complete);

        if (ctx->complete || rc == NGX_ERROR) {
            ngx_http_llm_finalize(ctx, rc);
            return;
        }

        /* one piece of an answer that is not streamed at a time, so that other
           requests are served in between */

        if (!ctx->stream && !ngx_http_llm_is_busy(ctx)) {
            ngx_post_event(r->connection->write, &ngx_posted_next_events);
            break;
        }
    }

    if (ngx_http_llm_set_write_event(ctx, writable) != NGX_OK) {
        ngx_http_llm_finalize(ctx, NGX_ERROR);
        return;
    }

    ngx_http_llm_set_pace(ctx);
}


static ngx_uint_t
ngx_http_llm_is_busy(ngx_http_llm_ctx_t *ctx)
{
    ngx_http_llm_free_sent(ctx);

    return ctx->blocks != ctx->gather || ctx->request->connection->buffered;
}


/* send_timeout runs from the last time that the client received something */

static ngx_int_t
ngx_http_llm_set_write_event(ngx_http_llm_ctx_t *ctx, ngx_uint_t progress)
{
    ngx_event_t               *wev;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = ctx->request;
    wev = r->connection->write;
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (r->connection->data == r
        && ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (wev->delayed) {
        return NGX_OK;
    }

    if (!ngx_http_llm_is_busy(ctx)) {

        if (wev->timer_set) {
            ngx_del_timer(wev);
        }

    } else if (progress || !wev->timer_set) {
        ngx_add_timer(wev, clcf->send_timeout);
    }

    return NGX_OK;
}


static void
ngx_http_llm_write_handler(ngx_http_request_t *r)
{
    ngx_event_t         *wev;
    ngx_connection_t    *c;
    ngx_http_llm_ctx_t  *ctx;

    c = r->connection;
    wev = c->write;

    ctx = ngx_http_get_module_ctx(r, ngx_http_llm_module);

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, c->log, NGX_ETIMEDOUT,
                      "client timed out");
        c->timedout = 1;
        ngx_http_llm_finalize(ctx, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    if (wev->error) {
        c->error = 1;
        ngx_http_llm_finalize(ctx, NGX_HTTP_CLIENT_CLOSED_REQUEST);
        return;
    }

    if (!r->header_sent || wev->delayed) {

        if (ngx_handle_write_event(wev, 0) != NGX_OK) {
            ngx_http_llm_finalize(ctx, NGX_ERROR);
        }

        return;
    }

    ngx_http_llm_flush(ctx, 1);
}


static void
ngx_http_llm_timer_handler(ngx_event_t *ev)
{
    uint64_t             now;
    ngx_connection_t    *c;
    ngx_http_llm_ctx_t  *ctx;

    ctx = ev->data;
    c = ctx->request->connection;

    ngx_http_set_log_request(c->log, ctx->request);

    now = llm_now_us();

    if (ctx->deadline_us && !ctx->ended
        && now > ctx->deadline_us + NGX_HTTP_LLM_GRACE_US)
    {
        ngx_http_llm_fail(ctx, 504, "timeout",
                          "The request took longer than the server allows.");

    } else if (ctx->stream && ctx->conf->heartbeat && !ctx->ended
               && ngx_current_msec - ctx->last_output >= ctx->conf->heartbeat
               && !ngx_http_llm_is_busy(ctx))
    {
        ctx->last_output = ngx_current_msec;

        (void) llm_api_heartbeat(ctx->api, &ctx->main->worker->scratch);
        ngx_http_llm_take_scratch(ctx);
        ngx_http_llm_mark_dirty(ctx);
    }

    ngx_http_llm_set_timer(ctx);

    ngx_http_llm_send_dirty(ctx->main->worker);
}


static void
ngx_http_llm_set_timer(ngx_http_llm_ctx_t *ctx)
{
    uint64_t    now, left;
    ngx_msec_t  timer, idle;

    timer = 60000;

    if (ctx->deadline_us && !ctx->ended) {
        now = llm_now_us();
        left = ctx->deadline_us + NGX_HTTP_LLM_GRACE_US + 1000;
        left = (left > now) ? (left - now) / 1000 : 0;
        timer = ngx_min(timer, left + 1);
    }

    if (ctx->stream && ctx->conf->heartbeat) {
        idle = ngx_current_msec - ctx->last_output;
        idle = (idle < ctx->conf->heartbeat) ? ctx->conf->heartbeat - idle
                                             : ctx->conf->heartbeat;
        timer = ngx_min(timer, idle);
    }

    ngx_add_timer(&ctx->timer, timer);
}
