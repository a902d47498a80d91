/*
 * From the engine's events to the client, and back: slow readers, clients
 * that go away, time.
 *
 * - Events only append bytes and mark their request dirty.  Once the ring is
 *   drained each dirty request is served once, whatever number of events it
 *   got: one write per request and step.
 * - While a buffer is on its way nothing else is sent; what comes meanwhile
 *   gathers in the other one.  Past llm_stream_buffer the engine is told to
 *   pause the request, below half of it to go on.
 * - A request is finalized once, and never inside the drain.  It gives its
 *   place in the engine back with the last event, or in its cleanup.
 * - Each live request has a timer, never cancelable: it keeps a worker that
 *   shuts down alive, sends heartbeats, and ends what the engine forgot.
 */

#include "ngx_http_llm_module.h"


/* past its deadline a request waits this long for the engine to say so */
#define NGX_HTTP_LLM_GRACE_US  (3 * 1000000)

/* a buffer larger than this is given back when its stream is idle */
#define NGX_HTTP_LLM_KEEP      8192


static void ngx_http_llm_mark_dirty(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_set_error(ngx_http_llm_ctx_t *ctx, llm_err_t *err,
    uint32_t retry_after);
static void ngx_http_llm_cancel(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_serve(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_finalize(ngx_http_llm_ctx_t *ctx, ngx_int_t rc);
static ngx_int_t ngx_http_llm_start_stream(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_flush(ngx_http_llm_ctx_t *ctx,
    ngx_uint_t writable);
static ngx_int_t ngx_http_llm_send_data(ngx_http_llm_ctx_t *ctx);
static ngx_uint_t ngx_http_llm_is_busy(ngx_http_llm_ctx_t *ctx);
static ngx_int_t ngx_http_llm_set_write_event(ngx_http_llm_ctx_t *ctx,
    ngx_uint_t progress);
static void ngx_http_llm_set_pace(ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_write_handler(ngx_http_request_t *r);
static void ngx_http_llm_timer_handler(ngx_event_t *ev);
static void ngx_http_llm_set_timer(ngx_http_llm_ctx_t *ctx);


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

    retry_after = 0;

    if (ev->type == LLM_EV_DONE || ev->type == LLM_EV_ERROR) {
        ctx->ended = 1;
        ngx_http_llm_free_slot(ctx);

        if (ev->type == LLM_EV_ERROR) {
            retry_after = ev->u.error.retry_after;
        }
    }

    if (llm_api_event(ctx->api, ev, &ctx->data[ctx->cur], &err) != LLM_OK) {
        ngx_http_llm_set_error(ctx, &err, retry_after);
    }

    if (ctx->ended || ctx->data[ctx->cur].len
        || (ctx->stream && ev->type == LLM_EV_START))
    {
        ngx_http_llm_mark_dirty(ctx);
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
    ctx->retry_after = retry_after;

    if (ctx->request->header_sent) {
        (void) llm_api_error_frame(err, &ctx->data[ctx->cur]);
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
    llm_buf_t           *body;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (!r->header_sent && ctx->failed) {
        rc = ctx->err ? ngx_http_llm_send_error(r, ctx->err, ctx->retry_after)
                      : NGX_HTTP_INTERNAL_SERVER_ERROR;
        ngx_http_llm_finalize(ctx, rc);
        return;
    }

    if (!ctx->stream) {
        body = &ctx->data[ctx->cur];
        rc = ngx_http_llm_send(r, NGX_HTTP_OK, "application/json",
                               (u_char *) body->data, body->len);
        ngx_http_llm_finalize(ctx, rc);
        return;
    }

    if (!r->header_sent) {
        rc = ngx_http_llm_start_stream(ctx);

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


static ngx_int_t
ngx_http_llm_start_stream(ngx_http_llm_ctx_t *ctx)
{
    ngx_int_t                  rc;
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = ctx->request;
    c = r->connection;

    /* conditions are for files: an answer is never a 304 or a 412 */
    r->disable_not_modified = 1;

    r->headers_out.status = NGX_HTTP_OK;
    ngx_str_set(&r->headers_out.content_type, "text/event-stream");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    if (ngx_http_llm_add_header(r, "x-request-id", (char *) ctx->id.data,
                                ctx->id.len)
        != NGX_OK
        || ngx_http_llm_add_header(r, "Cache-Control", "no-cache", 8)
           != NGX_OK
        || ngx_http_llm_add_header(r, "X-Accel-Buffering", "no", 2)
           != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK) {
        return rc;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (clcf->tcp_nodelay && ngx_tcp_nodelay(c) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ctx->ended || ctx->data[ctx->cur].len) {
        return NGX_OK;
    }

    /* the header is not to wait for the first token */

    return ngx_http_send_special(r, NGX_HTTP_FLUSH);
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

    if (writable && ngx_http_llm_is_busy(ctx)) {

        if (ngx_http_output_filter(r, NULL) == NGX_ERROR) {
            ngx_http_llm_finalize(ctx, NGX_ERROR);
            return;
        }
    }

    /* the end is handed over even to a busy connection: from then on
       nginx's own writer takes care of it */

    while (ctx->ended || !ngx_http_llm_is_busy(ctx)) {

        if (!ctx->ended && ctx->data[ctx->cur].len == 0) {
            break;
        }

        rc = ngx_http_llm_send_data(ctx);

        if (ctx->ended || rc == NGX_ERROR) {
            ngx_http_llm_finalize(ctx, rc);
            return;
        }
    }

    if (ngx_http_llm_set_write_event(ctx, writable) != NGX_OK) {
        ngx_http_llm_finalize(ctx, NGX_ERROR);
        return;
    }

    ngx_http_llm_set_pace(ctx);
}


/* the gathering buffer goes out, the other one gathers from now on */

static ngx_int_t
ngx_http_llm_send_data(ngx_http_llm_ctx_t *ctx)
{
    llm_buf_t    *data;
    ngx_buf_t    *b;
    ngx_chain_t   out;

    data = &ctx->data[ctx->cur];
    b = &ctx->bufs[ctx->cur];

    if (data->failed) {
        return NGX_ERROR;
    }

    ngx_memzero(b, sizeof(ngx_buf_t));

    b->start = (u_char *) data->data;
    b->pos = b->start;
    b->last = b->start + data->len;
    b->end = b->last;
    b->memory = (data->len > 0);
    b->flush = !ctx->ended;
    b->last_buf = ctx->ended;
    b->last_in_chain = ctx->ended;
    b->tag = (ngx_buf_tag_t) &ngx_http_llm_module;

    out.buf = b;
    out.next = NULL;

    ctx->last_output = ngx_current_msec;
    ctx->main->worker->counters->writes++;

    if (!ctx->ended) {
        ctx->cur ^= 1;
        ctx->data[ctx->cur].len = 0;
    }

    return ngx_http_output_filter(ctx->request, &out);
}


static ngx_uint_t
ngx_http_llm_is_busy(ngx_http_llm_ctx_t *ctx)
{
    ngx_buf_t  *b;

    b = &ctx->bufs[ctx->cur ^ 1];

    return b->pos != b->last || ctx->request->connection->buffered;
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


/* a slow reader's sequence is parked, and its memory kept small */

static void
ngx_http_llm_set_pace(ngx_http_llm_ctx_t *ctx)
{
    size_t      len;
    llm_buf_t  *sent;

    len = ctx->data[ctx->cur].len;
    sent = &ctx->data[ctx->cur ^ 1];

    if (!ngx_http_llm_is_busy(ctx) && sent->cap > NGX_HTTP_LLM_KEEP) {
        llm_buf_free(sent);
    }

    if (ctx->slot == NGX_HTTP_LLM_NO_SLOT) {
        return;
    }

    if (!ctx->paused && len > ctx->conf->stream_buffer) {
        ctx->paused = 1;
        llm_client_tell(ctx->main->worker->client, LLM_MSG_PAUSE, ctx->slot,
                        ctx->ticket);

    } else if (ctx->paused && len <= ctx->conf->stream_buffer / 2) {
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

    if (ctx->deadline_us && now > ctx->deadline_us + NGX_HTTP_LLM_GRACE_US) {
        ngx_http_llm_fail(ctx, 504, "timeout",
                          "The request took longer than the server allows.");

    } else if (ctx->stream && ctx->conf->heartbeat
               && ngx_current_msec - ctx->last_output >= ctx->conf->heartbeat
               && !ngx_http_llm_is_busy(ctx))
    {
        ctx->last_output = ngx_current_msec;

        (void) llm_buf_adds(&ctx->data[ctx->cur], ": heartbeat\n\n");
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

    if (ctx->deadline_us) {
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


/* nothing points to the bytes any more */

void
ngx_http_llm_pool_cleanup(void *data)
{
    ngx_http_llm_ctx_t *ctx = data;

    llm_buf_free(&ctx->data[0]);
    llm_buf_free(&ctx->data[1]);
}
