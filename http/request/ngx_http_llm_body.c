/*
 * Parses the request's body, which nginx has left in memory and files, to a
 * message for the engine.
 *
 * - Parsing megabytes of JSON takes a while, so bodies above a small size, and
 *   those that are compressed, are read and parsed by threads
 *   (ngx_http_llm_task.c), in order.
 * - While a thread uses a request, the request is `blocked`: its pool, its body
 *   and its configuration stay, even if the client leaves.  The thread uses
 *   only those and the ngx_http_llm_body_t.
 * - Our copy of the body is freed as soon as the body is parsed, and so is
 *   nginx's own buffer, unless something else may need it.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"
#include "http/worker/ngx_http_llm_worker.h"

#include <malloc.h>


/* bytes; malloc() returns freed blocks of this size to the system */
#define NGX_HTTP_LLM_MMAP        (1024 * 1024)

/* bytes; parsing a larger body leaves megabytes of small free blocks */
#define NGX_HTTP_LLM_TRIM        (256 * 1024)

/* most bytes of a body that is parsed at once, in about a millisecond */
#define NGX_HTTP_LLM_SMALL_BODY  16384

/* milliseconds; period of a timer that keeps the worker alive */
#define NGX_HTTP_LLM_BODY_HOLD   60000


static ngx_int_t ngx_http_llm_model_argument(ngx_http_request_t *r,
    llm_str_t *model);
static size_t ngx_http_llm_body_size(ngx_http_request_t *r);
static void ngx_http_llm_parse(void *data);
static ngx_int_t ngx_http_llm_join(ngx_http_llm_body_t *body, u_char *p,
    ngx_log_t *log);
static ngx_int_t ngx_http_llm_parse_later(ngx_http_llm_body_t *body);
static void ngx_http_llm_parse_done(void *data);
static void ngx_http_llm_body_hold(ngx_event_t *ev);
static void ngx_http_llm_body_gone(void *data);
static void ngx_http_llm_body_free(ngx_http_request_t *r);
static void ngx_http_llm_release(void *data);


/*
 * Each thread has a heap of its own, in which malloc() by default may keep
 * freed blocks of up to 32 MB: the memory of large bodies would stay in each.
 */

void
ngx_http_llm_init_bodies(void)
{
#ifdef M_MMAP_THRESHOLD
    (void) mallopt(M_MMAP_THRESHOLD, NGX_HTTP_LLM_MMAP);
#endif
}


void
ngx_http_llm_body_handler(ngx_http_request_t *r)
{
    ngx_http_llm_ctx_t   *ctx;
    ngx_http_llm_body_t  *body;

    ctx = ngx_http_get_module_ctx(r, ngx_http_llm_module);

    /* a block of its own, which most requests free as they are submitted: with
       it HTTP/2's requests would need one more block of the pool */

    body = ngx_pmemalign(r->pool, sizeof(ngx_http_llm_body_t), NGX_ALIGNMENT);
    if (body == NULL) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    ngx_memzero(body, sizeof(ngx_http_llm_body_t));
    body->brief = 1;
    body->ctx = ctx;
    body->bufs = r->request_body ? r->request_body->bufs : NULL;
    body->size = ngx_http_llm_body_size(r);

    if (ngx_http_llm_api_conf(ctx, &body->conf, &body->alias) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    llm_buf_init(&body->msg, 0);

    if (llm_api_bodiless(ctx->reply->endpoint)) {
        body->bufs = NULL;
        body->size = 0;

        if (ngx_http_llm_model_argument(r, &body->conf.model) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }
    }

    if (ctx->gzip && body->size) {
        body->unpacked = ngx_http_llm_unpacked(ctx);
    }

    if (ngx_http_llm_on_body(body) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    if (body->size > NGX_HTTP_LLM_SMALL_BODY || body->unpacked) {
        if (ngx_http_llm_parse_later(body) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        }

        return;
    }

    ngx_http_llm_parse(body);
    ngx_http_llm_parsed(body);
}


/* "?model=NAME" of a request without a body */

static ngx_int_t
ngx_http_llm_model_argument(ngx_http_request_t *r, llm_str_t *model)
{
    u_char     *dst, *src;
    ngx_str_t   value;

    if (ngx_http_arg(r, (u_char *) "model", 5, &value) != NGX_OK
        || value.len == 0)
    {
        return NGX_OK;
    }

    dst = ngx_pnalloc(r->pool, value.len);
    if (dst == NULL) {
        return NGX_ERROR;
    }

    src = value.data;
    model->data = (char *) dst;

    ngx_unescape_uri(&dst, &src, value.len, 0);
    model->len = (char *) dst - model->data;

    return NGX_OK;
}


static size_t
ngx_http_llm_body_size(ngx_http_request_t *r)
{
    size_t        size;
    ngx_chain_t  *cl;

    size = 0;

    if (r->request_body) {
        for (cl = r->request_body->bufs; cl; cl = cl->next) {
            size += ngx_buf_size(cl->buf);
        }
    }

    return size;
}


/* runs in any thread */

static void
ngx_http_llm_parse(void *data)
{
    ngx_http_llm_body_t *body = data;

    size_t      size;
    u_char     *p, *copy;
    ngx_buf_t  *b;
    ngx_log_t  *log;
    llm_buf_t   plain;

    if (llm_api_takes_form(body->ctx->reply->endpoint) && !body->unpacked) {
        ngx_http_llm_parse_form(body);
        return;
    }

    copy = NULL;
    size = body->size;
    llm_buf_init(&plain, 0);
    log = body->ctx->main->cycle->log;
    b = body->bufs ? body->bufs->buf : NULL;

    if (b == NULL) {
        p = (u_char *) "";

    } else if (body->bufs->next == NULL && ngx_buf_in_memory(b)) {
        p = b->pos;

    } else {
        p = copy = ngx_alloc(body->size + 1, log);

        if (p == NULL || ngx_http_llm_join(body, p, log) != NGX_OK) {
            llm_fail(&body->err, "The request's body could not be read.");
            goto done;
        }
    }

    if (body->unpacked) {
        if (ngx_http_llm_gunzip(p, size, body->unpacked, &plain, &body->err)
            != NGX_OK)
        {
            goto done;
        }

        p = (u_char *) (plain.len ? plain.data : "");
        size = plain.len;
    }

    if (llm_api_takes_form(body->ctx->reply->endpoint)) {
        ngx_http_llm_parse_form_of(body, p, size);
        goto done;
    }

    ngx_http_llm_on_input(body, p, size);

    body->endpoint = body->ctx->reply->endpoint;
    body->api = llm_api_parse_for(&body->endpoint, &body->conf, (char *) p,
                                  size, &body->msg, &body->err);

    body->media = body->api
                  && ((llm_request_t *) body->msg.data)->media.len;

done:

    llm_buf_free(&plain);

    if (copy) {
        ngx_free(copy);
    }

#ifdef __GLIBC__

    /* malloc() itself never merges blocks as small as the nodes of a tree */

    if (size > NGX_HTTP_LLM_TRIM) {
        (void) malloc_trim(0);
    }

#endif
}


static ngx_int_t
ngx_http_llm_join(ngx_http_llm_body_t *body, u_char *p, ngx_log_t *log)
{
    size_t        size;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    for (cl = body->bufs; cl; cl = cl->next) {
        b = cl->buf;
        size = ngx_buf_size(b);

        if (ngx_buf_in_memory(b)) {
            ngx_memcpy(p, b->pos, size);

        } else if (ngx_http_llm_read_part(b, b->file_pos, size, p, log)
                   != NGX_OK)
        {
            return NGX_ERROR;
        }

        p += size;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_llm_parse_later(ngx_http_llm_body_t *body)
{
    ngx_connection_t      *c;
    ngx_http_cleanup_t    *cln;
    ngx_http_request_t    *r;
    ngx_http_llm_ctx_t    *ctx;

    ctx = body->ctx;
    r = ctx->request;
    c = r->connection;

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_llm_body_gone;
    cln->data = body;
    body->brief = 0;

    body->task.run = ngx_http_llm_parse;
    body->task.done = ngx_http_llm_parse_done;
    body->task.data = body;

    if (ngx_http_llm_run_task(&ctx->main->worker->tasks, &body->task, c->log)
        != NGX_OK)
    {
        llm_fail_with(&body->err, 503, NULL, NULL,
                      "The server is too busy to read the request.");
        ngx_http_llm_parsed(body);
        return NGX_OK;
    }

    body->parsing = 1;

    /* nginx lets a terminated request wait for the thread only if it has a
       write handler */

    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_request_empty_handler;
    r->main->blocked++;

    c->log->action = "parsing a request body";

    /* a worker that shuts down waits for timers */

    ctx->timer.handler = ngx_http_llm_body_hold;
    ctx->timer.data = ctx;
    ctx->timer.log = c->log;
    ngx_add_timer(&ctx->timer, NGX_HTTP_LLM_BODY_HOLD);

    return NGX_OK;
}


/* called in the event loop after the thread's work */

static void
ngx_http_llm_parse_done(void *data)
{
    ngx_http_llm_body_t *body = data;

    ngx_connection_t    *c;
    ngx_http_request_t  *r;
    ngx_http_llm_ctx_t  *ctx;

    ctx = body->ctx;
    r = ctx->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    r->main->blocked--;
    body->parsing = 0;

    if (body->gone || c->error) {
        ngx_http_llm_free_message(body);

        if (body->api) {
            llm_api_free(body->api);
        }

        ngx_http_finalize_request(r, body->gone
                                     ? NGX_ERROR
                                     : NGX_HTTP_CLIENT_CLOSED_REQUEST);

    } else {
        ngx_http_llm_body_free(r);
        ngx_http_llm_parsed(body);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_llm_body_hold(ngx_event_t *ev)
{
    ngx_add_timer(ev, NGX_HTTP_LLM_BODY_HOLD);
}


/* cleanup of a request that may be terminated while a thread uses it */

static void
ngx_http_llm_body_gone(void *data)
{
    ngx_http_llm_body_t *body = data;

    if (body->parsing) {
        body->gone = 1;
    }
}


/*
 * A stream may take minutes, so a body that is not read again is freed.  It is
 * kept for an error_page, for $request_body and $llm_route_key, and for
 * subrequests (mirror), which have the same body.
 */

static void
ngx_http_llm_body_free(ngx_http_request_t *r)
{
    ngx_http_request_body_t   *rb;
    ngx_http_llm_main_conf_t  *mcf;

    rb = r->request_body;
    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);

    if (rb->temp_file || rb->buf == NULL || r->main->count != 1
        || ngx_http_llm_may_hand_on(r) || mcf->keep_bodies)
    {
        return;
    }

    if (ngx_pfree(r->pool, rb->buf->start) == NGX_OK) {
        rb->buf = NULL;
        rb->bufs = NULL;
    }
}


/*
 * A message that waits for something other than the engine takes memory that
 * the engine does not count.  Together, what is held in a worker takes at most
 * llm_queue's memory= divided by the number of workers.
 */

ngx_int_t
ngx_http_llm_hold(ngx_http_llm_body_t *body, size_t size, const char *why)
{
    size_t                     max;
    ngx_http_cleanup_t        *cln;
    ngx_http_llm_worker_t     *w;
    ngx_http_llm_main_conf_t  *mcf;

    mcf = body->ctx->main;
    w = mcf->worker;
    max = mcf->queue_memory / mcf->nworkers;

    w->held -= body->held;
    body->held = 0;

    if (size == 0) {
        return NGX_OK;
    }

    if (size > max || w->held > max - size) {
        llm_fail_with(&body->err, 429, "queue_full", NULL, "%s", why);
        return NGX_ERROR;
    }

    if (!body->released) {
        cln = ngx_http_cleanup_add(body->ctx->request, 0);

        if (cln == NULL) {
            llm_fail(&body->err, "No memory is left for this request.");
            return NGX_ERROR;
        }

        cln->handler = ngx_http_llm_release;
        cln->data = body;
        body->released = 1;
        body->brief = 0;
    }

    w->held += size;
    body->held = size;

    return NGX_OK;
}


ngx_int_t
ngx_http_llm_hold_message(ngx_http_llm_body_t *body, const char *why)
{
    size_t  size;

    size = body->msg.len;

    if (body->conf.guard) {
        size += body->conf.guard->len;
    }

    return ngx_http_llm_hold(body, size, why);
}


static void
ngx_http_llm_release(void *data)
{
    ngx_http_llm_body_t *body = data;

    ngx_http_llm_free_message(body);

    body->ctx->main->worker->held -= body->held;
    body->held = 0;
}
