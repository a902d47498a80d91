/*
 * The engine's events: what each adds to the output of its request, and what
 * is sent to the engine in return (pause, resume, cancel).
 * ngx_http_llm_stream.c sends the output to the client.
 *
 * - Events only append bytes (ngx_http_llm_output.c) and mark their request
 *   dirty.  When the ring is drained, each dirty request is served once,
 *   however many events it got: one write for each request and step.
 * - The output that a stream holds stays within llm_stream_buffer.  At half of
 *   it the engine gets a PAUSE, at a quarter a RESUME.  The PAUSE is sent while
 *   an event is read.  The engine leaves at most max_unread (a sixteenth of the
 *   buffer) of events unread, so twice that may follow the PAUSE: what is in
 *   the ring, and what the engine writes before it reads the PAUSE.  The
 *   JSON of an event is several times as long as the event.  If twice the
 *   longest output of an event so far is more than half of the buffer, the
 *   PAUSE is sent earlier, to leave room for that.  Only the end of a Responses
 *   stream, which repeats the whole answer, may exceed the buffer.
 * - A request frees its slot with the last event, or in its cleanup.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"
#include "http/worker/ngx_http_llm_worker.h"


/* bytes; a larger scratch buffer of the worker is freed after use */
#define NGX_HTTP_LLM_KEEP      65536


static void ngx_http_llm_set_error(ngx_http_llm_ctx_t *ctx, llm_err_t *err,
    uint32_t retry_after);
static void ngx_http_llm_failed(ngx_http_llm_ctx_t *ctx,
    const llm_event_t *ev);
static void ngx_http_llm_prepared(ngx_http_llm_ctx_t *ctx,
    const llm_event_t *ev);
static void ngx_http_llm_cancel(ngx_http_llm_ctx_t *ctx);
static size_t ngx_http_llm_high_water(ngx_http_llm_ctx_t *ctx);


void
ngx_http_llm_set_window(ngx_http_llm_ctx_t *ctx, llm_request_t *msg)
{
    msg->max_unread = 0;

    if (ctx->stream) {
        msg->max_unread = ngx_max(ngx_min(ctx->conf->stream_buffer / 16,
                                          NGX_MAX_INT32_VALUE), 1);
    }
}


/* called by llm_client_drain(); data is the configuration, not the request */

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

    if (ctx->event) {
        ctx->event(ctx, ev);
        return;
    }

    if (ev->type == LLM_EV_PREPARED) {
        ngx_http_llm_prepared(ctx, ev);
        return;
    }

    if (ev->type == LLM_EV_START) {
        ctx->started = 1;
        ctx->prepared = ev->u.start.prepared;
        ctx->predicted_us = ev->u.start.predicted_us;
    }

    ngx_http_llm_on_event(ctx, ev);

    if (ev->type == LLM_EV_TEXT && ev->u.text.n_tokens) {
        ctx->latest_us = llm_now_us();

        if (ctx->first_us == 0) {
            ctx->first_us = ctx->latest_us;
        }
    }

    retry_after = 0;

    if (ev->type == LLM_EV_DONE || ev->type == LLM_EV_ERROR) {
        ctx->ended = 1;
        ctx->ended_us = llm_now_us();
        ctx->done = (ev->type == LLM_EV_DONE);
        ctx->complete = ctx->stream;
        ngx_http_llm_free_slot(ctx);

        if (ev->type == LLM_EV_ERROR) {
            retry_after = ev->u.error.retry_after;
            ngx_http_llm_failed(ctx, ev);
        }
    }

    if (llm_api_event(ctx->api, ev, &w->scratch, &err) == LLM_OK) {
        ngx_http_llm_take_scratch(ctx);

    } else {
        w->scratch.len = 0;
        w->scratch.failed = 0;
        ngx_http_llm_set_error(ctx, &err, retry_after);
    }

    if (ctx->ended && ctx->stream) {
        ngx_http_llm_on_whole(ctx, ctx->done && !ctx->broken);
    }

    if (ctx->ended || ctx->gather || ctx->broken
        || (ctx->stream && (ev->type == LLM_EV_START
                            || ev->type == LLM_EV_PROGRESS)))
    {
        ngx_http_llm_mark_dirty(ctx);
    }

    /* sent before the event's space in the ring is released */

    if (!ctx->paused && ctx->slot != NGX_HTTP_LLM_NO_SLOT
        && ctx->held > ngx_http_llm_high_water(ctx))
    {
        ctx->paused = 1;
        llm_client_signal(w->client, LLM_MSG_PAUSE, ctx->slot, ctx->ticket);
    }
}


/* records an ERROR event for logs; llm_api_event() makes the client's error */

static void
ngx_http_llm_failed(ngx_http_llm_ctx_t *ctx, const llm_event_t *ev)
{
    size_t     len;
    llm_err_t  err;

    if (ev->u.error.prepared.us) {
        ctx->prepared = ev->u.error.prepared;
    }

    len = ngx_min(ev->u.error.code.len, sizeof(err.code) - 1);

    err.status = ev->u.error.status;
    ngx_memcpy(err.code, llm_ref_data(ev, ev->u.error.code), len);
    err.code[len] = '\0';

    ngx_http_llm_set_cause(ctx->request, &err);
}


/* asks the subjects whether a prepared request may run */

static void
ngx_http_llm_prepared(ngx_http_llm_ctx_t *ctx, const llm_event_t *ev)
{
    llm_err_t  err;

    if (ngx_http_llm_on_prepared(ctx, ev, &err) == NGX_OK) {
        llm_client_signal(ctx->main->worker->client, LLM_MSG_GRANT, ctx->slot,
                          ctx->ticket);
        return;
    }

    ngx_http_llm_set_error(ctx, &err, 0);
    ngx_http_llm_mark_dirty(ctx);
}


void
ngx_http_llm_take_scratch(ngx_http_llm_ctx_t *ctx)
{
    llm_buf_t  *b;

    b = &ctx->main->worker->scratch;

    if (b->len && !b->failed) {
        ngx_http_llm_on_bytes(ctx, b->data, b->len);
    }

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


void
ngx_http_llm_mark_dirty(ngx_http_llm_ctx_t *ctx)
{
    if (!ctx->is_dirty) {
        ctx->is_dirty = 1;
        ngx_queue_insert_tail(&ctx->main->worker->dirty, &ctx->dirty);
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


/* ends the request with an error: an error event in a stream that has begun */

static void
ngx_http_llm_set_error(ngx_http_llm_ctx_t *ctx, llm_err_t *err,
    uint32_t retry_after)
{
    ngx_http_llm_cancel(ctx);

    ngx_http_llm_on_end(ctx);
    ngx_http_llm_set_cause(ctx->request, err);

    if (ctx->ended_us == 0) {
        ctx->ended_us = llm_now_us();
    }

    ctx->ended = 1;
    ctx->done = 0;
    ctx->complete = 1;
    ctx->retry_after = retry_after;

    if (ctx->request->header_sent) {
        if (!ctx->stream) {
            ctx->broken = 1;            /* half of the body was sent, so the
                                           connection is closed */
            return;
        }

        (void) llm_api_error_frame(ctx->api, err,
                                   &ctx->main->worker->scratch);
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

    llm_client_signal(ctx->main->worker->client, LLM_MSG_CANCEL, ctx->slot,
                    ctx->ticket);

    ngx_http_llm_free_slot(ctx);
}


/* held bytes at which a stream pauses; see the head of this file */

static size_t
ngx_http_llm_high_water(ngx_http_llm_ctx_t *ctx)
{
    size_t  max, late;

    max = ctx->conf->stream_buffer;
    late = ngx_max(2 * ctx->largest, max / 2);

    return (late < max) ? max - late : 0;
}


/* the sequence of a slow client is parked until the client has caught up */

void
ngx_http_llm_set_pace(ngx_http_llm_ctx_t *ctx)
{
    if (ctx->paused && ctx->slot != NGX_HTTP_LLM_NO_SLOT
        && ctx->held <= ngx_http_llm_high_water(ctx) / 2)
    {
        ctx->paused = 0;
        llm_client_signal(ctx->main->worker->client, LLM_MSG_RESUME, ctx->slot,
                        ctx->ticket);
    }
}


/* called when the client has received everything, or is gone */

void
ngx_http_llm_cleanup(void *data)
{
    ngx_http_llm_ctx_t *ctx = data;

    ngx_http_llm_cancel(ctx);
    ngx_http_llm_on_end(ctx);

    if (ctx->ended_us == 0) {
        ctx->ended_us = llm_now_us();
    }

    if (ctx->streaming) {
        ctx->streaming = 0;
        ctx->main->worker->counters->streams--;
    }

    if (ctx->is_dirty) {
        ngx_queue_remove(&ctx->dirty);
        ctx->is_dirty = 0;
    }

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    ngx_http_llm_on_cleanup(ctx);

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
