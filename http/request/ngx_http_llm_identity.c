/*
 * Model, tenant, priority, deadlines and token limits of a request, and what
 * logs get of it.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_param.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"

#include <ngx_md5.h>


static void ngx_http_llm_log_arrival(ngx_http_llm_ctx_t *ctx,
    const llm_request_t *msg);
static ngx_int_t ngx_http_llm_copy(ngx_http_request_t *r, ngx_str_t *to,
    llm_str_t from);
static ngx_int_t ngx_http_llm_set_tenant(ngx_http_llm_ctx_t *ctx,
    llm_request_t *msg);
static uint64_t ngx_http_llm_tenant_hash(ngx_http_llm_ctx_t *ctx);
static ngx_int_t ngx_http_llm_set_priority(ngx_http_llm_ctx_t *ctx,
    llm_request_t *msg);


ngx_int_t
ngx_http_llm_identify(ngx_http_llm_body_t *body)
{
    llm_request_t       *msg;
    ngx_http_llm_ctx_t  *ctx;

    ctx = body->ctx;
    msg = (llm_request_t *) body->msg.data;

    ctx->stream = llm_api_is_stream(ctx->api);
    ctx->model = llm_api_model(ctx->api);
    ctx->name.data = (u_char *) body->conf.models[ctx->model].name.data;
    ctx->name.len = body->conf.models[ctx->model].name.len;

    if (ngx_http_llm_copy(ctx->request, &ctx->user, llm_api_user(ctx->api))
        != NGX_OK
        || ngx_http_llm_copy(ctx->request, &ctx->metadata,
                             llm_api_metadata(ctx->api))
           != NGX_OK
        || ngx_http_llm_set_tenant(ctx, msg) != NGX_OK
        || ngx_http_llm_set_priority(ctx, msg) != NGX_OK)
    {
        llm_fail(&body->err, "No memory is left for this request.");
        return NGX_ERROR;
    }

    ngx_http_llm_log_arrival(ctx, msg);

    return NGX_OK;
}


/* logged on arrival: a request that hangs, or during which the process dies,
   has no line in the access log */

static void
ngx_http_llm_log_arrival(ngx_http_llm_ctx_t *ctx, const llm_request_t *msg)
{
    ngx_log_t  *log;
    llm_buf_t   b;

    log = ctx->request->connection->log;

    if (log->log_level < NGX_LOG_INFO) {
        return;
    }

    llm_buf_init(&b, 0);
    llm_api_arrival(msg, &b);

    ngx_log_error(NGX_LOG_INFO, log, 0,
                  "llm: a request: %*s, model \"%V\", priority %D%*s",
                  ctx->path.len, ctx->path.data, &ctx->name,
                  msg->priority, b.failed ? (size_t) 0 : b.len, b.data);

    llm_buf_free(&b);
}


static ngx_int_t
ngx_http_llm_copy(ngx_http_request_t *r, ngx_str_t *to, llm_str_t from)
{
    if (from.len == 0) {
        return NGX_OK;
    }

    to->data = ngx_pnalloc(r->pool, from.len);
    if (to->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(to->data, from.data, from.len);
    to->len = from.len;

    return NGX_OK;
}


/* variables of llm_tenant may depend on the body, and be empty before it is
   read */

ngx_int_t
ngx_http_llm_find_tenant(ngx_http_llm_ctx_t *ctx)
{
    ngx_str_null(&ctx->tenant);

    if (ctx->conf->tenant
        && ngx_http_complex_value(ctx->request, ctx->conf->tenant, &ctx->tenant)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ctx->tenant.len == 0) {
        ngx_http_llm_on_tenant(ctx);
    }

    return NGX_OK;
}


/* sets the tenant that the request counts for, and the tenant's weight */

static ngx_int_t
ngx_http_llm_set_tenant(ngx_http_llm_ctx_t *ctx, llm_request_t *msg)
{
    ngx_int_t            weight;
    ngx_str_t            value;
    ngx_http_request_t  *r;

    r = ctx->request;
    msg->weight = 1000;

    if (ngx_http_llm_find_tenant(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    msg->tenant = ngx_http_llm_tenant_hash(ctx);

    if (ctx->conf->weight == NULL) {
        return NGX_OK;
    }

    if (ngx_http_complex_value(r, ctx->conf->weight, &value) != NGX_OK) {
        return NGX_ERROR;
    }

    if (value.len == 0) {
        return NGX_OK;
    }

    weight = ngx_atofp(value.data, value.len, 3);

    if (weight < 1 || weight > NGX_HTTP_LLM_MOST_WEIGHT) {
        ngx_log_error(NGX_LOG_WARN, r->connection->log, 0,
                      "invalid weight \"%s\" of tenant \"%s\", using 1",
                      ngx_http_llm_clean(r, &value),
                      ngx_http_llm_clean(r, &ctx->tenant));
        return NGX_OK;
    }

    msg->weight = weight;

    return NGX_OK;
}


/*
 * A request without a tenant counts for its client: the address together with
 * the user name of auth_basic.  The name alone is not enough: if nothing has
 * checked it, a client may send any name.  A leading zero byte, which no value
 * of llm_tenant from a header can have, keeps clients apart from tenants.
 */

static uint64_t
ngx_http_llm_tenant_hash(ngx_http_llm_ctx_t *ctx)
{
    u_char               digest[16];
    uint64_t             hash;
    ngx_md5_t            md5;
    ngx_str_t           *addr;
    ngx_http_request_t  *r;

    r = ctx->request;

    if (ctx->tenant.len) {
        return ngx_http_llm_hash_tenant(&ctx->tenant);
    }

    addr = &r->connection->addr_text;

    ngx_md5_init(&md5);
    ngx_md5_update(&md5, "", 1);
    ngx_md5_update(&md5, addr->data, addr->len);
    ngx_md5_update(&md5, "", 1);

    if (r->headers_in.user.len) {
        ngx_md5_update(&md5, r->headers_in.user.data, r->headers_in.user.len);
    }

    ngx_md5_final(digest, &md5);
    ngx_memcpy(&hash, digest, sizeof(uint64_t));

    return hash;
}


ngx_int_t
ngx_http_llm_highest_priority(ngx_http_llm_loc_conf_t *conf)
{
    ngx_int_t  n;

    if (conf->priority == NULL) {
        return 0;
    }

    if (conf->priority->lengths
        || ngx_http_llm_read_priority(&conf->priority->value, &n) != NGX_OK)
    {
        return LLM_MAX_PRIORITY;
    }

    return n;
}


/* a request may ask for a lower priority than llm_priority's (0 without the
   directive), not for a higher one */

static ngx_int_t
ngx_http_llm_set_priority(ngx_http_llm_ctx_t *ctx, llm_request_t *msg)
{
    ngx_int_t  n;
    ngx_str_t  value;

    ngx_str_null(&value);

    if (ctx->conf->priority
        && ngx_http_complex_value(ctx->request, ctx->conf->priority, &value)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_http_llm_read_priority(&value, &n) != NGX_OK) {
        ngx_log_error(NGX_LOG_WARN, ctx->request->connection->log, 0,
                      "invalid priority \"%s\", using 0",
                      ngx_http_llm_clean(ctx->request, &value));
        n = 0;
    }

    if (msg->flags & LLM_REQ_PRIORITY) {
        n = ngx_min(n, msg->priority);
    }

    msg->priority = n;

    return NGX_OK;
}


void
ngx_http_llm_set_deadlines(ngx_http_llm_ctx_t *ctx, llm_request_t *msg)
{
    msg->arrival_us = ctx->arrival_us;
    msg->queue_deadline_us = llm_now_us()
                             + (uint64_t) ctx->main->queue_timeout * 1000;
    msg->deadline_us = 0;

    if (ctx->conf->timeout) {
        msg->deadline_us = ctx->arrival_us
                           + (uint64_t) ctx->conf->timeout * 1000;
    }

    ctx->deadline_us = msg->deadline_us;
}


static ngx_int_t
ngx_http_llm_most(ngx_http_llm_ctx_t *ctx, ngx_http_llm_amount_t *a,
    ngx_int_t *most, llm_err_t *err)
{
    ngx_int_t   rc;
    llm_rate_t  v;

    rc = ngx_http_llm_amount(ctx->request, a, 1, &v);

    if (rc == NGX_ERROR || (rc == NGX_OK && v.n == 0)) {
        llm_fail_with(err, 503, "limit_unavailable", NULL,
                      "The limit of this request's tokens is not available "
                      "now.");
        return NGX_ERROR;
    }

    *most = -1;

    if (rc == NGX_OK) {
        *most = ngx_min(v.n, NGX_HTTP_LLM_MOST_TOKENS);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_llm_find_most(ngx_http_llm_ctx_t *ctx, llm_err_t *err)
{
    return ngx_http_llm_most(ctx, &ctx->conf->max_tokens, &ctx->most_tokens,
                             err) == NGX_OK
           && ngx_http_llm_most(ctx, &ctx->conf->max_prompt,
                                &ctx->most_prompt, err) == NGX_OK
           ? NGX_OK : NGX_ERROR;
}
