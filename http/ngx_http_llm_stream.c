/*
 * From the engine's events to the client, and back: slow readers, clients
 * that go away, time.
 *
 * - Events only append bytes (ngx_http_llm_output.c) and mark their request
 *   dirty.  Once the ring is drained each dirty request is served once,
 *   whatever number of events it got: one write per request and step.
 * - While something is on its way nothing else is sent; what comes meanwhile
 *   gathers.  An answer that is not streamed is written when it is complete,
 *   a piece of llm_stream_buffer at a time: the next one is made when the
 *   client has taken the last.
 * - What a stream holds stays within llm_stream_buffer.  At half of it the
 *   engine is told to pause, at a quarter to go on.  It is told while the
 *   event is read, and the engine lets no more than a window (a sixteenth)
 *   of events wait unread, so two windows may come after the pause: the one
 *   that is in the ring, and one that the engine writes before it hears of
 *   it.  An event is several times as long in JSON; if twice the longest one
 *   so far is more than the other half the pause comes that much earlier.
 * - A request is finalized once, and never inside the drain.  It gives its
 *   place in the engine back with the last event, or in its cleanup.
 * - Each live request has a timer, never cancelable: it keeps a worker that
 *   shuts down alive, sends heartbeats, and ends what the engine forgot.
 */

#include "http/ngx_http_llm_module.h"


/* past its deadline a request waits this long for the engine to say so */
#define NGX_HTTP_LLM_GRACE_US  (3 * 1000000)

/* the worker's scratch is not kept if it is larger than this */
#define NGX_HTTP_LLM_KEEP      65536


static void ngx_http_llm_mark_dirty(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_set_error(ngx_http_llm_ctx_t *ctx, llm_err_t *err,
    uint32_t retry_after);
static void ngx_http_llm_cancel(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_serve(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_finalize(ngx_http_llm_ctx_t *ctx, ngx_int_t rc);
static ngx_int_t ngx_http_llm_start(ngx_http_llm_ctx_t *ctx);
static ngx_int_t ngx_http_llm_stream_headers(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_take_scratch(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_fill(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_flush(ngx_http_llm_ctx_t *ctx,
    ngx_uint_t writable);
static ngx_uint_t ngx_http_llm_is_busy(ngx_http_llm_ctx_t *ctx);
static ngx_int_t ngx_http_llm_set_write_event(ngx_http_llm_ctx_t *ctx,
    ngx_uint_t progress);
static size_t ngx_http_llm_high_water(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_set_pace(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_write_handler(ngx_http_request_t *r);
static void ngx_http_llm_timer_handler(ngx_event_t *ev);
static void ngx_http_llm_set_timer(ngx_http_llm_ctx_t *ctx);


void
ngx_http_llm_set_window(ngx_http_llm_ctx_t *ctx, llm_request_t *msg)
{
    msg->window = 0;

    if (ctx->stream) {
        msg->window = ngx_max(ngx_min(ctx->conf->stream_buffer / 16,
                                      NGX_MAX_INT32_VALUE), 1);
    }
}


void
ngx_http_llm_wait(ngx_http_llm_ctx_t *ctx)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = ctx->request;
    c = r->connection;

    r->write_event_handler = ngx_http_llm_write_handler;

    if (ctx->conf->ignore_client_abort) {
        r->read_event_handler = ngx_http_block_reading;

    } else {
        r->read_event_handler = ngx_http_test_reading;

        /* a FIN may have come before anybody looked for it */

        if (c->read->ready) {
            ngx_post_event(c->read, &ngx_posted_events);
        }
    }

    c->log->action = "generating an answer";

    ctx->timer.handler = ngx_http_llm_timer_handler;
    ctx->timer.data = ctx;
    ctx->timer.log = c->log;
    ctx->last_output = ngx_current_msec;

    ngx_http_llm_set_timer(ctx);
}


/* called by llm_client_drain(); data is ours, not the event's request */

void
ngx_http_llm_event(void *data, const llm_event_t *ev)
{
    ngx_http_llm_main_conf_t *mcf = data;

    llm_err_t               err;
    uint32_t                retry_after;
    ngx_http_llm_ctx_t     *ctx;
    ngx_http_llm_worker_t  *w;

    w = mcf->worker;
    ctx = (ev->slot < w->nslots) ? w->slots[ev->slot].ctx : NULL;

    if (ctx == NULL || ctx->ticket != ev->ticket) {
        return;
    }

    if (ev->type == LLM_EV_START) {
        ctx->started = 1;
    }

    if (ev->type == LLM_EV_TEXT && ev->u.text.n_tokens) {
        ctx->latest_us = llm_now_us();

        if (ctx->first_us == 0) {
            ctx->first_us = ctx->latest_us;
        }
    }

    retry_after = 0;

    if (ev->type == LLM_EV_DONE || ev->type == LLM_EV_ERROR) {
        ctx->ended = 1;
        ctx->done = (ev->type == LLM_EV_DONE);
        ctx->complete = ctx->stream;
        ngx_http_llm_free_slot(ctx);

        if (ev->type == LLM_EV_ERROR) {
            retry_after = ev->u.error.retry_after;
        }
    }

    if (llm_api_event(ctx->api, ev, &w->scratch, &err) == LLM_OK) {
        ngx_http_llm_take_scratch(ctx);

    } else {
        w->scratch.len = 0;
        w->scratch.failed = 0;
        ngx_http_llm_set_error(ctx, &err, retry_after);
    }

    if (ctx->ended || ctx->gather || ctx->broken
        || (ctx->stream && ev->type == LLM_EV_START))
    {
        ngx_http_llm_mark_dirty(ctx);
    }

    /* before the event's room in the ring is given back */

    if (!ctx->paused && ctx->slot != NGX_HTTP_LLM_NO_SLOT
        && ctx->held > ngx_http_llm_high_water(ctx))
    {
        ctx->paused = 1;
        llm_client_tell(w->client, LLM_MSG_PAUSE, ctx->slot, ctx->ticket);
    }
}


/* what was written into the worker's scratch becomes the request's */

static void
ngx_http_llm_take_scratch(ngx_http_llm_ctx_t *ctx)
{
    llm_buf_t  *b;

    b = &ctx->main->worker->scratch;

    if (b->failed || ngx_http_llm_gather(ctx, b->data, b->len) != NGX_OK) {
        ctx->broken = 1;
    }

    ctx->largest = ngx_max(ctx->largest, b->len);
    b->len = 0;
    b->failed = 0;

    if (b->cap > NGX_HTTP_LLM_KEEP) {
        llm_buf_free(b);
    }
}


static void
ngx_http_llm_mark_dirty(ngx_http_llm_ctx_t *ctx)
{
    if (!ctx->is_dirty) {
        ctx->is_dirty = 1;
        ngx_queue_insert_tail(&ctx->main->worker->dirty, &ctx->dirty);
    }
}


void
ngx_http_llm_send_dirty(ngx_http_llm_worker_t *w)
{
    ngx_queue_t         *q;
    ngx_connection_t    *c;
    ngx_http_llm_ctx_t  *ctx;

    while (!ngx_queue_empty(&w->dirty)) {
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


void
ngx_http_llm_fail(ngx_http_llm_ctx_t *ctx, int status, const char *code,
    const char *msg)
{
    llm_err_t  err;

    llm_fail_with(&err, status, code, NULL, "%s", msg);

    ngx_http_llm_set_error(ctx, &err, status == 503 ? 1 : 0);
    ngx_http_llm_mark_dirty(ctx);
}


/* the request is over; a stream that has begun gets an error event */

static void
ngx_http_llm_set_error(ngx_http_llm_ctx_t *ctx, llm_err_t *err,
    uint32_t retry_after)
{
    ngx_http_llm_cancel(ctx);

    ctx->ended = 1;
    ctx->done = 0;
    ctx->complete = 1;
    ctx->retry_after = retry_after;

    if (ctx->request->header_sent) {
        if (!ctx->stream) {
            ctx->broken = 1;            /* half a body, all one can do */
            return;
        }

        (void) llm_api_error_frame(err, &ctx->main->worker->scratch);
        ngx_http_llm_take_scratch(ctx);
        return;
    }

    ctx->err = ngx_palloc(ctx->request->pool, sizeof(llm_err_t));
    if (ctx->err) {
        *ctx->err = *err;
    }

    ctx->failed = 1;
}


static void
ngx_http_llm_cancel(ngx_http_llm_ctx_t *ctx)
{
    if (ctx->slot == NGX_HTTP_LLM_NO_SLOT) {
        return;
    }

    llm_client_tell(ctx->main->worker->client, LLM_MSG_CANCEL, ctx->slot,
                    ctx->ticket);

    ngx_http_llm_free_slot(ctx);
}


/* there is something new for this client */

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
            ngx_http_llm_finalize(ctx, rc);
            return;
        }
    }

    ngx_http_llm_flush(ctx, 0);
}


/* from here on nginx alone looks after the request */

static void
ngx_http_llm_finalize(ngx_http_llm_ctx_t *ctx, ngx_int_t rc)
{
    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    ngx_http_finalize_request(ctx->request, rc);
}


/*
 * The header: of a stream, or of a whole answer.  The latter has a length if
 * it is complete in its first piece.
 */

static ngx_int_t
ngx_http_llm_start(ngx_http_llm_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    /* conditions are for files: an answer is never a 304 or a 412 */
    r->disable_not_modified = 1;

    if (!ctx->stream) {
        ngx_http_llm_fill(ctx);
    }

    if (ctx->broken
        || ngx_http_llm_add_header(r, "x-request-id", (char *) ctx->id.data,
                                   ctx->id.len)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = NGX_HTTP_OK;

    if (ctx->stream) {
        if (ngx_http_llm_stream_headers(ctx) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

    } else {
        ngx_str_set(&r->headers_out.content_type, "application/json");

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

    if (!ctx->stream || ctx->complete || ctx->gather) {
        return NGX_OK;
    }

    /* the header is not to wait for the first token */

    return ngx_http_send_special(r, NGX_HTTP_FLUSH);
}


static ngx_int_t
ngx_http_llm_stream_headers(ngx_http_llm_ctx_t *ctx)
{
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = ctx->request;
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    ngx_str_set(&r->headers_out.content_type, "text/event-stream");

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


/* the next piece of a whole answer */

static void
ngx_http_llm_fill(ngx_http_llm_ctx_t *ctx)
{
    int  rc;

    rc = llm_api_body_next(ctx->api, ctx->conf->stream_buffer,
                           &ctx->main->worker->scratch);

    ctx->complete = (rc == LLM_OK);
    ngx_http_llm_take_scratch(ctx);
    ctx->broken |= (rc == LLM_ERROR);
}


/*
 * Sends what is there.  writable: the socket says that it takes more, so
 * what was held back is tried again.  May finalize the request.
 */

static void
ngx_http_llm_flush(ngx_http_llm_ctx_t *ctx, ngx_uint_t writable)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    /* what another one's output held back (an addition) is nobody's buf */

    if (writable && (ngx_http_llm_is_busy(ctx) || r->postponed)) {

        if (ngx_http_output_filter(r, NULL) == NGX_ERROR) {
            ngx_http_llm_finalize(ctx, NGX_ERROR);
            return;
        }
    }

    /* the end is handed over even to a busy connection: from then on
       nginx's own writer takes care of it */

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

        /* a piece of a whole answer at a time, and others in between */

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


/* send_timeout runs from the last time that the client took something */

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


/* held bytes that pause a stream; see the head of this file */

static size_t
ngx_http_llm_high_water(ngx_http_llm_ctx_t *ctx)
{
    size_t  max, late;

    max = ctx->conf->stream_buffer;
    late = ngx_max(2 * ctx->largest, max / 2);

    return (late < max) ? max - late : 0;
}


/* a slow reader's sequence is parked until it has caught up */

static void
ngx_http_llm_set_pace(ngx_http_llm_ctx_t *ctx)
{
    if (ctx->paused && ctx->slot != NGX_HTTP_LLM_NO_SLOT
        && ctx->held <= ngx_http_llm_high_water(ctx) / 2)
    {
        ctx->paused = 0;
        llm_client_tell(ctx->main->worker->client, LLM_MSG_RESUME, ctx->slot,
                        ctx->ticket);
    }
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

        (void) llm_buf_adds(&ctx->main->worker->scratch, ": heartbeat\n\n");
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


/* the client has all, or is gone */

void
ngx_http_llm_cleanup(void *data)
{
    ngx_http_llm_ctx_t *ctx = data;

    ngx_http_llm_cancel(ctx);

    if (ctx->is_dirty) {
        ngx_queue_remove(&ctx->dirty);
        ctx->is_dirty = 0;
    }

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    if (ctx->api) {
        llm_api_usage(ctx->api, &ctx->usage);
        llm_api_free(ctx->api);
        ctx->api = NULL;
    }
}


void
ngx_http_llm_pool_cleanup(void *data)
{
    ngx_http_llm_ctx_t *ctx = data;

    ngx_http_llm_free_blocks(ctx);
}
