/*
 * Counts each request once, when it is logged: a handler of the log phase sees
 * what an access log does.
 *
 * A request counts if it has come to a llm_api location, however it ended:
 * refused by a module of nginx, answered by an error_page, or cut off.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/observe/ngx_http_llm_metrics.h"
#include "http/observe/ngx_http_llm_outcome.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"


static ngx_uint_t ngx_http_llm_owner_now(ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_ctx_t *ctx);
static void ngx_http_llm_count_in(ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_tally_t *t, ngx_uint_t owner, ngx_http_request_t *r,
    ngx_http_llm_ctx_t *ctx, ngx_uint_t status);


/* the value of $status */

static ngx_uint_t
ngx_http_llm_status(ngx_http_request_t *r)
{
    if (r->err_status) {
        return r->err_status;
    }

    if (r->headers_out.status) {
        return r->headers_out.status;
    }

    return r->http_version == NGX_HTTP_VERSION_9 ? 9 : 0;
}


ngx_int_t
ngx_http_llm_log_handler(ngx_http_request_t *r)
{
    ngx_uint_t                 owner, status;
    ngx_str_t                  none = ngx_null_string;
    ngx_http_llm_ctx_t        *ctx;
    ngx_http_llm_kept_t       *kept;
    ngx_http_llm_stats_t      *f;
    ngx_http_llm_tenants_t    *tenants;
    ngx_http_llm_loc_conf_t   *llcf;
    ngx_http_llm_main_conf_t  *mcf;

    if (r != r->main) {
        return NGX_OK;
    }

    ctx = ngx_http_llm_find_ctx(r);
    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    if (ctx == NULL && !ngx_http_llm_is_api(llcf)
        && !ngx_http_llm_is_counted(r))
    {
        return NGX_OK;
    }

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);
    f = ngx_http_llm_stats(mcf);
    kept = f->shm_zone->data;
    status = ngx_http_llm_status(r);

    owner = ngx_http_llm_owner_now(mcf, ctx);
    ngx_http_llm_count_in(mcf, &kept->tally, owner, r, ctx, status);

    if (f->tenants_zone) {
        tenants = f->tenants_zone->data;
        owner = ngx_http_llm_tenant_owner(mcf, ctx ? &ctx->tenant : &none);
        ngx_http_llm_count_in(mcf, &tenants->tally, owner, r, ctx, status);
    }

    if (ctx) {
        ngx_http_llm_judge(r, ctx, status);
    }

    return NGX_OK;
}


/* nginx may log a request long after its last token, when its model is removed
   and its place may be another one's, or the same name's anew */

static ngx_uint_t
ngx_http_llm_owner_now(ngx_http_llm_main_conf_t *mcf, ngx_http_llm_ctx_t *ctx)
{
    return ctx && ctx->model >= 0
           && llm_zone_naming(mcf->zone, ctx->model) == ctx->naming
           ? 1 + ctx->place : 0;
}


static void
ngx_http_llm_count_in(ngx_http_llm_main_conf_t *mcf, ngx_http_llm_tally_t *t,
    ngx_uint_t owner, ngx_http_request_t *r, ngx_http_llm_ctx_t *ctx,
    ngx_uint_t status)
{
    ngx_str_t               cause;
    ngx_uint_t              word, started;
    ngx_http_llm_tokens_t  *n;

    word = ctx ? ngx_http_llm_word(mcf, (u_char *) ctx->path.data,
                                   ctx->path.len)
               : ngx_http_llm_word(mcf, (u_char *) "", 0);

    ngx_http_llm_tally_add(t, owner, NGX_HTTP_LLM_TALLY_REQUESTS, word,
                           status);

    cause = ngx_http_llm_cause(r);
    started = ctx && ctx->started;

    if (cause.len) {
        word = ngx_http_llm_word(mcf, cause.data, cause.len);
        ngx_http_llm_tally_add(t, owner,
                               started ? NGX_HTTP_LLM_TALLY_FAILED
                                       : NGX_HTTP_LLM_TALLY_REJECTED,
                               word, 0);
    }

    if (started) {
        n = &t->tokens[owner];

        (void) ngx_atomic_fetch_add(&n->prompt, ctx->usage.prompt_tokens);
        (void) ngx_atomic_fetch_add(&n->cached, ctx->usage.cached_tokens);
        (void) ngx_atomic_fetch_add(&n->completion,
                                    ctx->usage.completion_tokens);
    }
}
