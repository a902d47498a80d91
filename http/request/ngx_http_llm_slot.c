/*
 * A worker's table of live requests: messages and events name a request by
 * its slot, an index in the table, and its ticket.
 */

#include "http/request/ngx_http_llm_request.h"
#include "http/worker/ngx_http_llm_worker.h"


ngx_int_t
ngx_http_llm_take_slot(ngx_http_llm_ctx_t *ctx)
{
    uint32_t                i, n;
    ngx_http_llm_slot_t    *slots;
    ngx_http_llm_worker_t  *w;

    w = ctx->main->worker;

    if (w->free == NGX_HTTP_LLM_NO_SLOT) {

        n = w->nslots ? w->nslots * 2 : 64;

        if (n > LLM_MAX_SLOTS) {
            return NGX_ERROR;
        }

        slots = ngx_alloc(n * sizeof(ngx_http_llm_slot_t),
                          ctx->main->cycle->log);
        if (slots == NULL) {
            return NGX_ERROR;
        }

        if (w->nslots) {
            ngx_memcpy(slots, w->slots,
                       w->nslots * sizeof(ngx_http_llm_slot_t));
            ngx_free(w->slots);
        }

        for (i = n; i > w->nslots; i--) {
            slots[i - 1].ctx = NULL;
            slots[i - 1].next = w->free;
            w->free = i - 1;
        }

        w->slots = slots;
        w->nslots = n;
    }

    ctx->slot = w->free;
    w->free = w->slots[ctx->slot].next;
    w->slots[ctx->slot].ctx = ctx;

    ngx_queue_insert_tail(&w->live, &ctx->live);
    w->nlive++;

    if (!w->watch.timer_set) {
        ngx_add_timer(&w->watch, NGX_HTTP_LLM_WATCH);
    }

    return NGX_OK;
}


void
ngx_http_llm_free_slot(ngx_http_llm_ctx_t *ctx)
{
    ngx_http_llm_worker_t  *w;

    w = ctx->main->worker;

    w->slots[ctx->slot].ctx = NULL;
    w->slots[ctx->slot].next = w->free;
    w->free = ctx->slot;

    ctx->slot = NGX_HTTP_LLM_NO_SLOT;

    ngx_queue_remove(&ctx->live);
    w->nlive--;
}
