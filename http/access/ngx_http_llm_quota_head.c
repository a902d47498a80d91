/*
 * What clients are told of their token quotas: x-ratelimit-... on all answers
 * of a location with llm_token_limit, in the form of OpenAI's API, and why and
 * for how long they are refused.
 */

#include "http/access/ngx_http_llm_quota.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"


/* what is left in a bucket; the least of several limits is what is told */

typedef struct {
    ngx_uint_t                   known;
    int64_t                      limit;         /* units, as left */
    int64_t                      left;
    uint64_t                     wait_us;       /* until it is whole again */
} ngx_http_llm_rest_t;


static void ngx_http_llm_quota_rest(ngx_http_llm_rest_t *rest, int64_t limit,
    const llm_bucket_t *b);
static ngx_int_t ngx_http_llm_quota_add(ngx_http_request_t *r,
    ngx_http_llm_rest_t *rest, const char *limit, const char *left,
    const char *wait);


/* ---- headers ---- */

ngx_int_t
ngx_http_llm_quota_headers(ngx_http_request_t *r)
{
    ngx_uint_t                       i, n;
    ngx_http_llm_ctx_t              *ctx;
    ngx_http_llm_bill_t             *bill;
    ngx_http_llm_rest_t              tokens, requests;
    ngx_http_llm_quota_t            *q;
    ngx_http_llm_share_t            *s;
    ngx_http_llm_account_t          *a, none;
    ngx_http_llm_refusal_t           no;
    ngx_http_llm_loc_conf_t         *llcf;
    ngx_http_llm_quotas_loc_conf_t  *qlcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);
    qlcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_quotas_module);

    if (qlcf->limits == NULL || !ngx_http_llm_is_api(llcf)) {
        return NGX_OK;
    }

    ctx = ngx_http_get_module_ctx(r, ngx_http_llm_module);

    bill = ctx ? ngx_http_llm_get_data(ctx, ngx_http_llm_quota_stage) : NULL;

    if (bill && bill->shares) {
        s = bill->shares;
        n = bill->nshares;

    } else if (ngx_http_llm_quota_shares(r, qlcf->limits, &s, &n, &no)
               != NGX_OK)
    {
        return NGX_OK;
    }

    ngx_memzero(&tokens, sizeof(ngx_http_llm_rest_t));
    ngx_memzero(&requests, sizeof(ngx_http_llm_rest_t));

    for (i = 0; i < n; i++) {
        q = s[i].limit->quota;

        ngx_http_llm_quota_lock(q);

        a = ngx_http_llm_account_find(q, s[i].hash, &s[i].key);

        if (a == NULL) {
            ngx_memzero(&none, sizeof(ngx_http_llm_account_t));
            a = &none;
        }

        ngx_http_llm_quota_run(&s[i], a);
        ngx_http_llm_quota_rest(&tokens, s[i].burst, &a->n.tokens);
        ngx_http_llm_quota_rest(&requests, s[i].most_requests,
                                &a->n.requests);

        ngx_http_llm_quota_unlock(q);
    }

    if (ngx_http_llm_quota_add(r, &tokens, "x-ratelimit-limit-tokens",
                               "x-ratelimit-remaining-tokens",
                               "x-ratelimit-reset-tokens")
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_llm_quota_add(r, &requests, "x-ratelimit-limit-requests",
                                  "x-ratelimit-remaining-requests",
                                  "x-ratelimit-reset-requests");
}


static void
ngx_http_llm_quota_rest(ngx_http_llm_rest_t *rest, int64_t limit,
    const llm_bucket_t *b)
{
    int64_t  left;

    if (limit < 0) {
        return;
    }

    left = ngx_max(limit - b->excess, 0);

    if (rest->known && rest->left <= left) {
        return;
    }

    rest->known = 1;
    rest->limit = limit;
    rest->left = left;
    rest->wait_us = llm_bucket_wait(b, 0);
}


static ngx_int_t
ngx_http_llm_quota_add(ngx_http_request_t *r, ngx_http_llm_rest_t *rest,
    const char *limit, const char *left, const char *wait)
{
    u_char  *p;

    if (!rest->known) {
        return NGX_OK;
    }

    if (ngx_http_llm_add_number(r, limit, rest->limit / LLM_QUOTA_UNIT)
        != NGX_OK
        || ngx_http_llm_add_number(r, left, rest->left / LLM_QUOTA_UNIT)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (rest->wait_us == UINT64_MAX) {
        return NGX_OK;                  /* nothing ever comes back */
    }

    p = ngx_pnalloc(r->pool, LLM_QUOTA_TIME);
    if (p == NULL) {
        return NGX_ERROR;
    }

    llm_quota_time((char *) p, rest->wait_us);

    return ngx_http_llm_add_header(r, wait, (char *) p, ngx_strlen(p));
}


/* ---- refusals ---- */

static const char *
ngx_http_llm_quota_what(ngx_http_llm_short_e what)
{
    switch (what) {

    case NGX_HTTP_LLM_SHORT_TOKENS:
        return "tokens";

    case NGX_HTTP_LLM_SHORT_DAY:
        return "tokens of the day";

    case NGX_HTTP_LLM_SHORT_REQUESTS:
        return "requests";

    case NGX_HTTP_LLM_SHORT_STREAMS:
        return "requests at a time";

    default:
        return "memory";
    }
}


ngx_uint_t
ngx_http_llm_quota_enforced(ngx_http_llm_ctx_t *ctx,
    ngx_http_llm_refusal_t *no)
{
    ngx_uint_t             dry, level;
    ngx_http_llm_limit_t  *l;

    l = no->share->limit;
    dry = l->dry_run;

    level = no->what == NGX_HTTP_LLM_SHORT_MEMORY ? NGX_LOG_ERR
                                                  : NGX_LOG_WARN;

    ngx_log_error(level, ctx->request->connection->log, 0,
                  "llm_token_limit%s: no more %s in zone \"%V\"",
                  dry ? ", dry run" : "", ngx_http_llm_quota_what(no->what),
                  &l->quota->shm_zone->shm.name);

    return !dry;
}


static void
ngx_http_llm_quota_short_error(ngx_http_llm_refusal_t *no, llm_err_t *err)
{
    long long              left, wanted, most;
    ngx_http_llm_share_t  *s;

    s = no->share;
    left = no->left / LLM_QUOTA_UNIT;
    wanted = no->wanted / LLM_QUOTA_UNIT;

    switch (no->what) {

    case NGX_HTTP_LLM_SHORT_DAY:
        llm_fail_with(err, 429, "insufficient_quota", NULL,
                      "The day's quota of %lld tokens does not suffice: "
                      "%lld are left, %lld are needed.",
                      (long long) (s->day / LLM_QUOTA_UNIT), left, wanted);
        return;

    case NGX_HTTP_LLM_SHORT_TOKENS:
        most = s->burst / LLM_QUOTA_UNIT;

        if (wanted > most) {
            llm_fail_with(err, 429, "rate_limit_exceeded", NULL,
                          "The request needs %lld tokens for its prompt and "
                          "its answer, more than the %lld that may be taken "
                          "at once: shorten the prompt, or lower max_tokens.",
                          wanted, most);
            return;
        }

        llm_fail_with(err, 429, "rate_limit_exceeded", NULL,
                      "Rate limit reached: %lld of %lld tokens are left, "
                      "%lld are needed.", left, most, wanted);
        return;

    case NGX_HTTP_LLM_SHORT_REQUESTS:
        llm_fail_with(err, 429, "rate_limit_exceeded", NULL,
                      "Rate limit reached: all of %lld requests are used.",
                      (long long) (s->most_requests / LLM_QUOTA_UNIT));
        return;

    case NGX_HTTP_LLM_SHORT_STREAMS:
        llm_fail_with(err, 429, "rate_limit_exceeded", NULL,
                      "Too many requests at a time: %lld may be served.",
                      (long long) s->streams);
        return;

    default:
        llm_fail_with(err, 503, "quota_unavailable", NULL,
                      "The quota of this request cannot be checked now.");
    }
}


/* of several zones it is good to know which one it was */

static void
ngx_http_llm_quota_name(ngx_http_llm_refusal_t *no, llm_err_t *err)
{
    size_t      len;
    ngx_str_t  *zone;

    zone = &no->share->limit->zone;
    len = ngx_strlen(err->msg);

    if (err->status == 429) {
        (void) ngx_snprintf((u_char *) err->msg + len, sizeof(err->msg) - len,
                            " (zone \"%V\")%Z", zone);
        err->msg[sizeof(err->msg) - 1] = '\0';
    }
}


void
ngx_http_llm_quota_refuse(ngx_http_llm_ctx_t *ctx, ngx_http_llm_refusal_t *no,
    llm_err_t *err)
{
    ngx_http_llm_quota_short_error(no, err);
    ngx_http_llm_quota_name(no, err);

    if (err->status != 429) {
        return;
    }

    ctx->reply->hopeless = no->wait_us == UINT64_MAX
                    || no->what == NGX_HTTP_LLM_SHORT_DAY;

    if (no->wait_us != UINT64_MAX) {
        ctx->reply->retry_ms = no->wait_us / 1000 + 1;
    }
}
