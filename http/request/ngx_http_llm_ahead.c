/*
 * Asks for the memory of requests shortly before it is used.
 *
 * With thousands of streams, the lines that a token event uses are in no cache
 * of the CPU, and most of the event's time would be waiting for one after the
 * other.  So the requests of many events are visited before: a step for each
 * pointer on the way from a request to what is used, and each step some
 * requests after the one before it, when the lines that it reads have come.
 *
 * Only reads, and only memory that stays until the events are handed out or the
 * output is sent.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/worker/ngx_http_llm_worker.h"


#define NGX_HTTP_LLM_LINE  64

/* requests between two steps */
#define NGX_HTTP_LLM_LAG   6

#define ngx_http_llm_prefetch(p)  __builtin_prefetch(p)


/* nginx has no header for it */
extern ngx_module_t  ngx_http_chunked_filter_module;


/* a structure from its first byte */

static void
ngx_http_llm_prefetch_all(const void *data, size_t len)
{
    size_t       i;
    const char  *p;

    p = data;

    for (i = 0; i < len; i += NGX_HTTP_LLM_LINE) {
        ngx_http_llm_prefetch(p + i);
    }
}


/* the fields that ngx_http_llm_event() and ngx_http_llm_gather() use */

static void
ngx_http_llm_prefetch_ctx(const ngx_http_llm_ctx_t *ctx)
{
    ngx_http_llm_prefetch(ctx);
    ngx_http_llm_prefetch(&ctx->ticket);
    ngx_http_llm_prefetch(&ctx->dirty);
    ngx_http_llm_prefetch(&ctx->gather);
    ngx_http_llm_prefetch(&ctx->held);
    ngx_http_llm_prefetch(&ctx->data);
    ngx_http_llm_prefetch(&ctx->event);
    ngx_http_llm_prefetch(&ctx->first_us);
    ngx_http_llm_prefetch(&ctx->prepared);      /* before the flags */
}


static void
ngx_http_llm_prefetch_event(void *data, ngx_uint_t step)
{
    ngx_http_llm_ctx_t  *ctx = data;

    switch (step) {

    case 0:
        ngx_http_llm_prefetch_ctx(ctx);
        break;

    case 1:
        ngx_http_llm_prefetch(ctx->data);
        ngx_http_llm_prefetch(ctx->free);
        llm_api_ahead(ctx->api, 0);
        break;

    default:
        llm_api_ahead(ctx->api, 1);

        if (ctx->free) {
            ngx_http_llm_prefetch_all(ctx->free->buf, sizeof(ngx_buf_t));
        }
    }
}


/* takes each of n items, some of them NULL, through all steps */

static void
ngx_http_llm_prefetch_steps(void **item, ngx_uint_t n, ngx_uint_t steps,
    void (*prefetch)(void *item, ngx_uint_t step))
{
    ngx_uint_t  i, at, step;

    for (i = 0; i < n + (steps - 1) * NGX_HTTP_LLM_LAG; i++) {

        for (step = 0; step < steps; step++) {
            at = i - step * NGX_HTTP_LLM_LAG;   /* below 0: not below n */

            if (at < n && item[at]) {
                prefetch(item[at], step);
            }
        }
    }
}


/* called by llm_client_drain() before the events are handed out */

void
ngx_http_llm_ahead(void *data, const llm_event_t *const *ev, uint32_t n)
{
    ngx_http_llm_main_conf_t *mcf = data;

    void                   *ctx[LLM_CLIENT_AHEAD];
    uint32_t                i;
    ngx_http_llm_worker_t  *w;

    w = mcf->worker;

    for (i = 0; i < n; i++) {
        ctx[i] = (ev[i]->slot < w->nslots) ? w->slots[ev[i]->slot].ctx : NULL;
    }

    ngx_http_llm_prefetch_steps(ctx, n, 3, ngx_http_llm_prefetch_event);
}


/* what nginx's filters use */

static void
ngx_http_llm_prefetch_request(void *data, ngx_uint_t step)
{
    ngx_uint_t               chunked;
    ngx_connection_t        *c;
    ngx_http_request_t      *r = data;

    chunked = ngx_http_chunked_filter_module.ctx_index;

    switch (step) {

    case 0:
        ngx_http_llm_prefetch(r);
        ngx_http_llm_prefetch(&r->pool);
        ngx_http_llm_prefetch(&r->headers_out.status);
        ngx_http_llm_prefetch(&r->out);
        ngx_http_llm_prefetch(&r->posted_requests);
        ngx_http_llm_prefetch(&r->cleanup);     /* before the flags */
        ngx_http_llm_prefetch(&r->state);       /* after the flags */
        break;

    case 1:
        ngx_http_llm_prefetch_all(r->connection, sizeof(ngx_connection_t));
        ngx_http_llm_prefetch(&r->ctx[ngx_http_llm_module.ctx_index]);
        ngx_http_llm_prefetch(&r->ctx[chunked]);
        break;

    case 2:
        c = r->connection;
        ngx_http_llm_prefetch_all(c->write, sizeof(ngx_event_t));
        ngx_http_llm_prefetch_all(c->log, sizeof(ngx_log_t));
        ngx_http_llm_prefetch(r->ctx[chunked]);
        break;

    default:
        ngx_http_llm_prefetch(r->connection->log->data);
    }
}


ngx_uint_t
ngx_http_llm_ahead_of_sending(ngx_http_llm_worker_t *w)
{
    void                *r[LLM_CLIENT_AHEAD];
    ngx_uint_t           n;
    ngx_queue_t         *q;
    ngx_http_llm_ctx_t  *ctx;

    n = 0;

    for (q = ngx_queue_head(&w->dirty);
         q != ngx_queue_sentinel(&w->dirty) && n < LLM_CLIENT_AHEAD;
         q = ngx_queue_next(q))
    {
        ctx = ngx_queue_data(q, ngx_http_llm_ctx_t, dirty);
        r[n++] = ctx->request;
    }

    ngx_http_llm_prefetch_steps(r, n, 4, ngx_http_llm_prefetch_request);

    return n;
}
