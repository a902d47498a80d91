/*
 * The variables $llm_...  While a request runs they are read from its API
 * object, later from the copy that the cleanup handler has left in r->pool, so
 * that the access log has them.
 */

#include "http/access/ngx_http_llm_proxied.h"
#include "http/observe/ngx_http_llm_busy.h"
#include "http/observe/ngx_http_llm_outcome.h"
#include "http/observe/ngx_http_llm_trace.h"
#include "http/observe/ngx_http_llm_variables.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"


typedef enum {
    NGX_HTTP_LLM_VAR_MODEL = 0,
    NGX_HTTP_LLM_VAR_ALIAS,
    NGX_HTTP_LLM_VAR_REQUEST_ID,
    NGX_HTTP_LLM_VAR_TENANT,
    NGX_HTTP_LLM_VAR_USER,
    NGX_HTTP_LLM_VAR_METADATA,
    NGX_HTTP_LLM_VAR_PROMPT_TOKENS,
    NGX_HTTP_LLM_VAR_CACHED_TOKENS,
    NGX_HTTP_LLM_VAR_COMPLETION_TOKENS,
    NGX_HTTP_LLM_VAR_REASONING_TOKENS,
    NGX_HTTP_LLM_VAR_FINISH_REASON,
    NGX_HTTP_LLM_VAR_ENDPOINT,
    NGX_HTTP_LLM_VAR_STREAM,
    NGX_HTTP_LLM_VAR_QUEUE_TIME,
    NGX_HTTP_LLM_VAR_TTFT,
    NGX_HTTP_LLM_VAR_TPOT,
    NGX_HTTP_LLM_VAR_MAX_TOKENS,
    NGX_HTTP_LLM_VAR_PREFILL_RATE,
    NGX_HTTP_LLM_VAR_DECODE_RATE
} ngx_http_llm_var_e;


static ngx_int_t ngx_http_llm_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_llm_error_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static u_char *ngx_http_llm_figure(ngx_http_llm_ctx_t *ctx, u_char *p,
    uintptr_t what);
static ngx_int_t ngx_http_llm_proxied_figure(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t what);
static u_char *ngx_http_llm_seconds(u_char *p, uint64_t us);
static u_char *ngx_http_llm_rate(u_char *p, uint32_t tokens, uint64_t us);


static ngx_http_variable_t  ngx_http_llm_vars[] = {

    { ngx_string("llm_model"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_MODEL, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_alias"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_ALIAS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_request_id"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_REQUEST_ID, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_tenant"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_TENANT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_user"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_USER, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_metadata"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_METADATA, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_prompt_tokens"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_PROMPT_TOKENS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_cached_tokens"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_CACHED_TOKENS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_completion_tokens"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_COMPLETION_TOKENS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_reasoning_tokens"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_REASONING_TOKENS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_endpoint"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_ENDPOINT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_stream"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_STREAM, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_error"), NULL, ngx_http_llm_error_variable,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_finish_reason"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_FINISH_REASON, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_queue_time"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_QUEUE_TIME, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_ttft"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_TTFT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_tpot"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_TPOT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_max_tokens"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_MAX_TOKENS, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_prefill_rate"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_PREFILL_RATE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_decode_rate"), NULL, ngx_http_llm_variable,
      NGX_HTTP_LLM_VAR_DECODE_RATE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_load"), NULL, ngx_http_llm_busy_variable,
      NGX_HTTP_LLM_LOAD_LOAD, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_waiting"), NULL, ngx_http_llm_busy_variable,
      NGX_HTTP_LLM_LOAD_WAITING, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_predicted_ttft"), NULL, ngx_http_llm_busy_variable,
      NGX_HTTP_LLM_LOAD_TTFT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("llm_trace_id"), NULL, ngx_http_llm_trace_variable,
      NGX_HTTP_LLM_TRACE_ID, 0, 0 },

    { ngx_string("llm_span_id"), NULL, ngx_http_llm_trace_variable,
      NGX_HTTP_LLM_TRACE_SPAN_ID, 0, 0 },

    { ngx_string("llm_parent_id"), NULL, ngx_http_llm_trace_variable,
      NGX_HTTP_LLM_TRACE_PARENT_ID, 0, 0 },

    { ngx_string("llm_traceparent"), NULL, ngx_http_llm_trace_variable,
      NGX_HTTP_LLM_TRACE_PARENT, 0, 0 },

    { ngx_string("llm_tracestate"), NULL, ngx_http_llm_trace_variable,
      NGX_HTTP_LLM_TRACE_STATE, 0, 0 },

    { ngx_string("llm_spans"), NULL, ngx_http_llm_spans_variable,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_llm_add_observe(ngx_conf_t *cf)
{
    return ngx_http_llm_add_variables(cf, ngx_http_llm_vars);
}


static ngx_int_t
ngx_http_llm_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    u_char              *p;
    ngx_str_t           *s, path;
    const char          *reason;
    ngx_http_llm_ctx_t  *ctx;

    if (ngx_http_llm_proxied_figure(r, v, data) == NGX_OK) {
        return NGX_OK;
    }

    ctx = ngx_http_llm_find_ctx(r);
    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    if (ctx->api) {
        llm_api_usage(ctx->api, &ctx->usage);
    }

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    s = NULL;

    switch (data) {

    case NGX_HTTP_LLM_VAR_MODEL:
        s = (ctx->model >= 0) ? &ctx->name : NULL;
        break;

    case NGX_HTTP_LLM_VAR_ALIAS:
        s = ctx->alias.len ? &ctx->alias : NULL;
        break;

    case NGX_HTTP_LLM_VAR_REQUEST_ID:
        s = &ctx->request_id;
        break;

    case NGX_HTTP_LLM_VAR_USER:
        s = ctx->user.len ? &ctx->user : NULL;
        break;

    case NGX_HTTP_LLM_VAR_METADATA:
        s = ctx->metadata.len ? &ctx->metadata : NULL;
        break;

    case NGX_HTTP_LLM_VAR_TENANT:
        s = ctx->tenant.len ? &ctx->tenant : NULL;
        break;

    case NGX_HTTP_LLM_VAR_ENDPOINT:
        path.data = (u_char *) ctx->path.data;
        path.len = ctx->path.len;
        s = path.len ? &path : NULL;
        break;

    case NGX_HTTP_LLM_VAR_STREAM:
        ngx_str_set(&path, "0");
        path.data = ctx->stream ? (u_char *) "1" : path.data;
        s = (ctx->model >= 0) ? &path : NULL;
        break;

    case NGX_HTTP_LLM_VAR_FINISH_REASON:
        reason = ngx_http_llm_finish_reason(ctx);

        if (reason) {
            v->data = (u_char *) reason;
            v->len = ngx_strlen(v->data);
            return NGX_OK;
        }

        break;

    default:
        p = ngx_pnalloc(r->pool, NGX_INT64_LEN + sizeof(".000000"));
        if (p == NULL) {
            return NGX_ERROR;
        }

        v->data = p;
        v->len = ngx_http_llm_figure(ctx, p, data) - p;
        v->not_found = (v->len == 0);

        return NGX_OK;
    }

    if (s == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->data = s->data;
    v->len = s->len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llm_error_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t  cause;

    cause = ngx_http_llm_cause(r->main);

    v->data = cause.data;
    v->len = cause.len;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = (cause.len == 0);

    return NGX_OK;
}


/* writes nothing if the value is not known yet */

static u_char *
ngx_http_llm_figure(ngx_http_llm_ctx_t *ctx, u_char *p, uintptr_t what)
{
    uint64_t          ttft, total, tpot;
    llm_api_usage_t  *u;

    u = &ctx->usage;
    ngx_http_llm_times(ctx, &ttft, &total);

    switch (what) {

    case NGX_HTTP_LLM_VAR_PROMPT_TOKENS:
        return ctx->started ? ngx_sprintf(p, "%uD", u->prompt_tokens) : p;

    case NGX_HTTP_LLM_VAR_CACHED_TOKENS:
        return ctx->started ? ngx_sprintf(p, "%uD", u->cached_tokens) : p;

    case NGX_HTTP_LLM_VAR_COMPLETION_TOKENS:
        return ctx->started ? ngx_sprintf(p, "%uD", u->completion_tokens) : p;

    case NGX_HTTP_LLM_VAR_REASONING_TOKENS:
        return ctx->started ? ngx_sprintf(p, "%uD", u->reasoning_tokens) : p;

    case NGX_HTTP_LLM_VAR_QUEUE_TIME:
        return ctx->started ? ngx_http_llm_seconds(p, u->queue_us) : p;

    case NGX_HTTP_LLM_VAR_TTFT:
        return ttft ? ngx_http_llm_seconds(p, ttft) : p;

    case NGX_HTTP_LLM_VAR_MAX_TOKENS:
        return ctx->max_tokens >= 0 ? ngx_sprintf(p, "%D", ctx->max_tokens) : p;

    case NGX_HTTP_LLM_VAR_PREFILL_RATE:
        return ngx_http_llm_rate(p, u->prompt_tokens - u->cached_tokens,
                                 ttft > u->queue_us ? ttft - u->queue_us : 0);

    case NGX_HTTP_LLM_VAR_DECODE_RATE:
        tpot = ngx_http_llm_tpot(ctx);

        return tpot == NGX_HTTP_LLM_NO_TPOT ? p
                                            : ngx_http_llm_rate(p, 1, tpot);

    default: /* NGX_HTTP_LLM_VAR_TPOT */

        tpot = ngx_http_llm_tpot(ctx);

        return tpot == NGX_HTTP_LLM_NO_TPOT ? p
                                            : ngx_http_llm_seconds(p, tpot);
    }
}


/* tokens of an answer that another server gave; NGX_DECLINED: it did not, or
   this is another variable */

static ngx_int_t
ngx_http_llm_proxied_figure(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t what)
{
    u_char                  *p;
    uint64_t                 n;
    ngx_http_llm_proxied_t  *proxied;

    if (what != NGX_HTTP_LLM_VAR_PROMPT_TOKENS
        && what != NGX_HTTP_LLM_VAR_CACHED_TOKENS
        && what != NGX_HTTP_LLM_VAR_COMPLETION_TOKENS)
    {
        return NGX_DECLINED;
    }

    proxied = ngx_http_llm_get_proxied(r);
    p = proxied && proxied->answered ? ngx_pnalloc(r->pool, NGX_INT64_LEN)
                                     : NULL;
    if (p == NULL) {
        return NGX_DECLINED;
    }

    n = what == NGX_HTTP_LLM_VAR_PROMPT_TOKENS ? proxied->usage.prompt
        : what == NGX_HTTP_LLM_VAR_CACHED_TOKENS ? proxied->usage.cached
                                                 : proxied->usage.answer;

    v->data = p;
    v->len = ngx_sprintf(p, "%uL", n) - p;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


static u_char *
ngx_http_llm_seconds(u_char *p, uint64_t us)
{
    return ngx_sprintf(p, "%uL.%06uL", us / 1000000, us % 1000000);
}


/* writes tokens per second, from tokens and microseconds; nothing if the time
   is 0 */

static u_char *
ngx_http_llm_rate(u_char *p, uint32_t tokens, uint64_t us)
{
    uint64_t  centi;

    if (us == 0) {
        return p;
    }

    centi = (uint64_t) tokens * 100000000 / us;

    return ngx_sprintf(p, "%uL.%02uL", centi / 100, centi % 100);
}
