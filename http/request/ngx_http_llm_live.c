/*
 * What a worker calls for its live requests, see ngx_http_llm_requests_t.
 */

#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/worker/ngx_http_llm_worker.h"


static void ngx_http_llm_end_requests(ngx_http_llm_worker_t *w);


const ngx_http_llm_requests_t  ngx_http_llm_requests = {
    .init = ngx_http_llm_init_bodies,
    .event = ngx_http_llm_event,
    .ahead = ngx_http_llm_ahead,
    .send = ngx_http_llm_send_dirty,
    .end = ngx_http_llm_end_requests
};


static void
ngx_http_llm_end_requests(ngx_http_llm_worker_t *w)
{
    ngx_queue_t         *q;
    ngx_http_llm_ctx_t  *ctx;

    while (!ngx_queue_empty(&w->live)) {
        q = ngx_queue_head(&w->live);
        ctx = ngx_queue_data(q, ngx_http_llm_ctx_t, live);

        ngx_http_llm_fail(ctx, 503, "server_shutdown",
                          "The server is shutting down.");
    }

    ngx_http_llm_send_dirty(w);
}
