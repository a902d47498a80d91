/*
 * The values of a location's limits for a request, and which of them an account
 * exceeds.
 */

#include "http/access/ngx_http_llm_quota.h"
#include "http/conf/ngx_http_llm_param.h"


static ngx_int_t ngx_http_llm_quota_share(ngx_http_request_t *r,
    ngx_http_llm_limit_t *l, ngx_http_llm_share_t *s,
    ngx_http_llm_refusal_t *no);
static ngx_int_t ngx_http_llm_quota_units(ngx_http_request_t *r,
    ngx_http_llm_amount_t *a, ngx_uint_t plain, llm_rate_t *rate,
    int64_t *units);


ngx_int_t
ngx_http_llm_quota_shares(ngx_http_request_t *r, ngx_array_t *limits,
    ngx_http_llm_share_t **shares, ngx_uint_t *n, ngx_http_llm_refusal_t *no)
{
    ngx_int_t              rc;
    ngx_uint_t             i;
    ngx_http_llm_limit_t  *l;
    ngx_http_llm_share_t  *s;

    ngx_memzero(no, sizeof(ngx_http_llm_refusal_t));

    s = ngx_pcalloc(r->pool, limits->nelts * sizeof(ngx_http_llm_share_t));
    if (s == NULL) {
        return NGX_ERROR;
    }

    *shares = s;
    *n = 0;
    l = limits->elts;

    for (i = 0; i < limits->nelts; i++) {
        rc = ngx_http_llm_quota_share(r, &l[i], &s[*n], no);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        *n += (rc == NGX_OK);
    }

    return NGX_OK;
}


/* NGX_DECLINED: the request's key is empty, so this limit does not apply */

static ngx_int_t
ngx_http_llm_quota_share(ngx_http_request_t *r, ngx_http_llm_limit_t *l,
    ngx_http_llm_share_t *s, ngx_http_llm_refusal_t *no)
{
    int64_t                burst;
    llm_rate_t             v;
    ngx_http_llm_quota_t  *q;

    q = l->quota;
    s->limit = l;

    no->what = NGX_HTTP_LLM_SHORT_VALUE;
    no->share = s;

    if (ngx_http_complex_value(r, &q->key, &s->key) != NGX_OK) {
        return NGX_ERROR;
    }

    if (s->key.len == 0) {
        no->what = NGX_HTTP_LLM_SHORT_NONE;
        return NGX_DECLINED;
    }

    if (s->key.len > NGX_HTTP_LLM_MAX_KEY) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "the value of \"%V\" is too long for a token quota",
                      &q->key.value);
        return NGX_ERROR;
    }

    s->hash = ngx_crc32_short(s->key.data, s->key.len);

    if (ngx_http_llm_quota_units(r, &q->rate, 0, &s->rate, &s->burst)
        != NGX_OK
        || ngx_http_llm_quota_units(r, &q->requests, 0, &s->requests,
                                    &s->most_requests) != NGX_OK
        || ngx_http_llm_quota_units(r, &l->burst, 1, &v, &burst) != NGX_OK
        || ngx_http_llm_quota_units(r, &q->day, 1, &v, &s->day) != NGX_OK
        || ngx_http_llm_quota_units(r, &q->streams, 1, &v, &s->streams)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (s->burst >= 0 && burst >= 0) {
        s->burst = burst;
    }

    if (s->streams >= 0) {
        s->streams = (int64_t) v.n;
    }

    no->what = NGX_HTTP_LLM_SHORT_NONE;

    return NGX_OK;
}


/* *units: -1 if there is no such limit.  NGX_ERROR: the value is not a number;
   the request is refused, because a mistake in a limit must not lift it */

static ngx_int_t
ngx_http_llm_quota_units(ngx_http_request_t *r, ngx_http_llm_amount_t *a,
    ngx_uint_t plain, llm_rate_t *rate, int64_t *units)
{
    ngx_int_t  rc;

    rc = ngx_http_llm_amount(r, a, plain, rate);

    *units = (rc == NGX_OK) ? (int64_t) rate->n * LLM_QUOTA_UNIT : -1;

    return rc == NGX_ERROR ? NGX_ERROR : NGX_OK;
}


void
ngx_http_llm_quota_run(ngx_http_llm_share_t *s, ngx_http_llm_account_t *a)
{
    ngx_http_llm_account_run(a, s->rate.step, s->requests.step);

    /* without a limit there is nothing to remember */

    if (s->burst < 0) {
        a->n.tokens.excess = 0;
    }

    if (s->most_requests < 0) {
        a->n.requests.excess = 0;
    }
}


ngx_uint_t
ngx_http_llm_quota_short(ngx_http_llm_share_t *s, ngx_http_llm_account_t *a,
    ngx_uint_t begins, int64_t wanted, ngx_http_llm_refusal_t *no)
{
    int64_t  most, day;

    no->share = s;
    no->wanted = wanted;

    day = a->n.day_units + (a->known ? a->known->others : 0);

    if (s->day >= 0 && day + wanted > s->day) {
        no->what = NGX_HTTP_LLM_SHORT_DAY;
        no->left = ngx_max(s->day - day, 0);
        no->wait_us = (86400 - (uint64_t) ngx_time() % 86400) * 1000000;
        return 1;
    }

    if (s->burst >= 0 && a->n.tokens.excess + wanted > s->burst) {
        most = s->burst - wanted;

        no->what = NGX_HTTP_LLM_SHORT_TOKENS;
        no->left = ngx_max(s->burst - a->n.tokens.excess, 0);
        no->wait_us = llm_bucket_wait(&a->n.tokens, most);
        return 1;
    }

    if (!begins) {
        return 0;
    }

    if (s->most_requests >= 0
        && a->n.requests.excess + LLM_QUOTA_UNIT > s->most_requests)
    {
        no->what = NGX_HTTP_LLM_SHORT_REQUESTS;
        no->wait_us = llm_bucket_wait(&a->n.requests,
                                      s->most_requests - LLM_QUOTA_UNIT);
        return 1;
    }

    if (s->streams >= 0
        && (int64_t) ngx_http_llm_account_streams(a) >= s->streams)
    {
        no->what = NGX_HTTP_LLM_SHORT_STREAMS;
        no->wait_us = s->streams ? 1000000 : UINT64_MAX;
        return 1;
    }

    return 0;
}


ngx_uint_t
ngx_http_llm_quota_lacks(ngx_http_llm_share_t *s, ngx_http_llm_account_t *a,
    ngx_http_llm_refusal_t *no)
{
    ngx_uint_t             lacks;
    ngx_http_llm_quota_t  *q;

    q = s->limit->quota;

    ngx_http_llm_account_change(q, a, NULL);
    ngx_http_llm_quota_run(s, a);
    lacks = ngx_http_llm_quota_short(s, a, 1, s->least, no);
    ngx_http_llm_account_done(q);

    if (lacks && !ngx_queue_empty(&a->claims)) {
        ngx_http_llm_account_sweep(q, a);
        lacks = ngx_http_llm_quota_short(s, a, 1, s->least, no);
    }

    return lacks;
}
