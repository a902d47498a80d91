/*
 * Headers about token quotas: x-ratelimit-... on all answers of a location with
 * llm_token_limit, in the form of OpenAI's API.
 */

#include "http/access/ngx_http_llm_quota.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"


/* what is left in a bucket; of several limits the one with the least left is
   reported */

typedef struct {
    ngx_uint_t                   known;
    int64_t                      limit;         /* units, as left */
    int64_t                      left;
    uint64_t                     wait_us;       /* until nothing is used any
                                                   more */
} ngx_http_llm_rest_t;


static ngx_int_t ngx_http_llm_quota_headers(ngx_http_request_t *r);
static void ngx_http_llm_quota_rest(ngx_http_llm_rest_t *rest, int64_t limit,
    const llm_bucket_t *b);
static ngx_int_t ngx_http_llm_quota_add(ngx_http_request_t *r,
    ngx_http_llm_rest_t *rest, const char *limit, const char *left,
    const char *wait);


/* a stage of its own, because it uses the data of the other one */

ngx_http_llm_stage_t  ngx_http_llm_quota_head_stage = {
    .headers = ngx_http_llm_quota_headers
};


static ngx_int_t
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

        if (!q->audio) {
            ngx_http_llm_quota_rest(&tokens, s[i].burst, &a->n.tokens);
        }

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
        return NGX_OK;                  /* used tokens never come back */
    }

    p = ngx_pnalloc(r->pool, LLM_QUOTA_TIME);
    if (p == NULL) {
        return NGX_ERROR;
    }

    llm_quota_time((char *) p, rest->wait_us);

    return ngx_http_llm_add_header(r, wait, (char *) p, ngx_strlen(p));
}
