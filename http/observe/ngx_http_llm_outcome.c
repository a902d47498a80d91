/*
 * The outcome of a request, for logs, variables, traces and metrics.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/observe/ngx_http_llm_outcome.h"
#include "http/request/ngx_http_llm_request.h"


const char *
ngx_http_llm_finish_reason(ngx_http_llm_ctx_t *ctx)
{
    if (ctx->started && !ctx->done && (ctx->ended || ctx->api == NULL)) {
        return "abort";
    }

    return ctx->usage.finish_reason;
}


/* the engine's last event has the times of a complete answer; those of an
   incomplete one are measured here */

void
ngx_http_llm_times(ngx_http_llm_ctx_t *ctx, uint64_t *ttft, uint64_t *total)
{
    *ttft = ctx->usage.ttft_us;
    *total = ctx->usage.total_us;

    if (!ctx->done && ctx->first_us) {
        *ttft = ctx->first_us - ctx->arrival_us;
        *total = ctx->latest_us - ctx->arrival_us;
    }
}


uint64_t
ngx_http_llm_tpot(ngx_http_llm_ctx_t *ctx)
{
    uint64_t  ttft, total;

    ngx_http_llm_times(ctx, &ttft, &total);

    if (ctx->usage.completion_tokens < 2 || total < ttft) {
        return NGX_HTTP_LLM_NO_TPOT;
    }

    return (total - ttft) / (ctx->usage.completion_tokens - 1);
}
