/*
 * The bill of a request: its limits, and its claims on their accounts.  All
 * zones are locked in the order of the limits, so a request is charged in all
 * of them or in none.
 */

#include "http/access/ngx_http_llm_quota.h"
#include "http/request/ngx_http_llm_request.h"


static void ngx_http_llm_bill_least(ngx_http_llm_bill_t *bill);
static ngx_int_t ngx_http_llm_bill_look(ngx_http_llm_bill_t *bill,
    ngx_http_llm_refusal_t *no);
static ngx_int_t ngx_http_llm_bill_claims(ngx_http_llm_bill_t *bill,
    ngx_http_llm_refusal_t *no);
static void ngx_http_llm_bill_count(ngx_http_llm_bill_t *bill, int64_t units);


ngx_int_t
ngx_http_llm_bill_open(ngx_http_request_t *r, ngx_http_llm_reply_t *reply,
    ngx_http_llm_bill_t **opened, llm_err_t *err)
{
    ngx_http_llm_bill_t             *bill;
    ngx_http_llm_refusal_t           no;
    ngx_http_llm_quotas_loc_conf_t  *qlcf;

    *opened = NULL;
    qlcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_quotas_module);

    if (qlcf->limits == NULL) {
        return NGX_OK;
    }

    bill = ngx_pcalloc(r->pool, sizeof(ngx_http_llm_bill_t));

    if (bill == NULL) {
        llm_fail(err, "No memory is left for this request.");
        return NGX_ERROR;
    }

    bill->request = r;
    bill->reply = reply;
    *opened = bill;

    if (ngx_http_llm_quota_shares(r, qlcf->limits, &bill->shares,
                                  &bill->nshares, &no)
        != NGX_OK)
    {
        bill->nshares = 0;
        ngx_http_llm_quota_refuse(reply, &no, err);
        return NGX_ERROR;
    }

    ngx_http_llm_bill_least(bill);
    ngx_http_llm_bill_share(bill);

    return NGX_OK;
}


ngx_int_t
ngx_http_llm_bill_check(ngx_http_llm_bill_t *bill, llm_err_t *err)
{
    ngx_int_t               rc;
    ngx_http_llm_refusal_t  no;

    ngx_http_llm_bill_lock(bill);

    rc = ngx_http_llm_bill_look(bill, &no);

    ngx_http_llm_bill_unlock(bill);

    if (rc != NGX_OK) {
        ngx_http_llm_quota_refuse(bill->reply, &no, err);
    }

    return rc;
}


/* any request needs a token; of those that need seconds of audio only forms are
   known now */

static void
ngx_http_llm_bill_least(ngx_http_llm_bill_t *bill)
{
    ngx_uint_t             i;
    ngx_http_llm_share_t  *s;

    for (i = 0; i < bill->nshares; i++) {
        s = &bill->shares[i];

        if (!s->limit->quota->audio
            || llm_api_takes_form(bill->reply->endpoint))
        {
            s->least = LLM_QUOTA_UNIT;
        }
    }
}


void
ngx_http_llm_bill_share(ngx_http_llm_bill_t *bill)
{
    ngx_uint_t  i;

    for (i = 0; i < bill->nshares; i++) {
        ngx_http_llm_usage_share(bill->shares[i].limit->quota);
    }
}


/* makes no accounts yet: a request without one is checked against an empty
   account */

static ngx_int_t
ngx_http_llm_bill_look(ngx_http_llm_bill_t *bill, ngx_http_llm_refusal_t *no)
{
    ngx_uint_t               i;
    ngx_http_llm_quota_t    *q;
    ngx_http_llm_share_t    *s;
    ngx_http_llm_account_t  *a, none;

    ngx_memzero(&none, sizeof(ngx_http_llm_account_t));
    ngx_queue_init(&none.claims);

    for (i = 0; i < bill->nshares; i++) {
        s = &bill->shares[i];
        q = s->limit->quota;

        if (s->limit->dry_run) {
            continue;
        }

        a = ngx_http_llm_account_find(q, s->hash, &s->key);

        if ((a ? ngx_http_llm_quota_lacks(s, a, no)
               : ngx_http_llm_quota_short(s, &none, 1, s->least, no))
            && ngx_http_llm_quota_enforced(bill->request, no))
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_llm_bill_claim(ngx_http_llm_bill_t *bill, llm_err_t *err)
{
    ngx_int_t               rc;
    ngx_http_llm_refusal_t  no;

    ngx_http_llm_bill_lock(bill);

    rc = ngx_http_llm_bill_claims(bill, &no);

    ngx_http_llm_bill_unlock(bill);

    if (rc != NGX_OK) {
        ngx_http_llm_bill_settle(bill);
        ngx_http_llm_quota_refuse(bill->reply, &no, err);
    }

    return rc;
}


/* makes a claim on each account; then, if no limit is exceeded, counts one
   request in each */

static ngx_int_t
ngx_http_llm_bill_claims(ngx_http_llm_bill_t *bill, ngx_http_llm_refusal_t *no)
{
    ngx_uint_t               i;
    ngx_http_llm_quota_t    *q;
    ngx_http_llm_share_t    *s;
    ngx_http_llm_account_t  *a;

    for (i = 0; i < bill->nshares; i++) {
        s = &bill->shares[i];
        q = s->limit->quota;

        a = ngx_http_llm_account_get(q, s->hash, &s->key, 0);

        if (a) {
            if (ngx_http_llm_quota_lacks(s, a, no)
                && ngx_http_llm_quota_enforced(bill->request, no))
            {
                ngx_http_llm_account_drop(q, a);
                return NGX_ERROR;
            }

            s->claim = ngx_http_llm_claim_create(q, a);
        }

        if (s->claim == NULL) {
            no->what = NGX_HTTP_LLM_SHORT_MEMORY;
            no->share = s;

            if (a) {
                ngx_http_llm_account_drop(q, a);
            }

            if (ngx_http_llm_quota_enforced(bill->request, no)) {
                return NGX_ERROR;
            }
        }
    }

    ngx_http_llm_bill_count(bill, LLM_QUOTA_UNIT);

    return NGX_OK;
}


static void
ngx_http_llm_bill_count(ngx_http_llm_bill_t *bill, int64_t units)
{
    ngx_uint_t             i;
    ngx_http_llm_share_t  *s;

    for (i = 0; i < bill->nshares; i++) {
        s = &bill->shares[i];

        if (s->claim && s->most_requests >= 0) {
            llm_bucket_add(&s->claim->account->n.requests, units);
        }
    }
}


void
ngx_http_llm_bill_lock(ngx_http_llm_bill_t *bill)
{
    ngx_uint_t  i;

    for (i = 0; i < bill->nshares; i++) {
        ngx_http_llm_quota_lock(bill->shares[i].limit->quota);
    }
}


void
ngx_http_llm_bill_unlock(ngx_http_llm_bill_t *bill)
{
    ngx_uint_t  i;

    for (i = bill->nshares; i > 0; i--) {
        ngx_http_llm_account_done(bill->shares[i - 1].limit->quota);
        ngx_http_llm_quota_unlock(bill->shares[i - 1].limit->quota);
    }
}


void
ngx_http_llm_bill_use(ngx_http_llm_bill_t *bill, uint64_t prompt,
    uint64_t cached, uint64_t seconds)
{
    ngx_uint_t             i;
    ngx_http_llm_claim_t  *c;

    for (i = 0; i < bill->nshares; i++) {
        c = bill->shares[i].claim;

        if (c) {
            c->prompt = (uint32_t) ngx_min(prompt, LLM_QUOTA_MOST);
            c->cached = (uint32_t) ngx_min(cached, c->prompt);
            c->seconds = (uint32_t) ngx_min(seconds, LLM_QUOTA_MOST);
            c->started = 1;
        }
    }
}


void
ngx_http_llm_bill_return(ngx_http_llm_bill_t *bill)
{
    ngx_uint_t             i;
    ngx_http_llm_claim_t  *c;

    for (i = 0; i < bill->nshares; i++) {
        c = bill->shares[i].claim;

        if (c) {
            c->prompt = 0;
            c->cached = 0;
            c->seconds = 0;
            c->answer = 0;
            c->started = 0;
        }
    }

    ngx_http_llm_bill_lock(bill);
    ngx_http_llm_bill_count(bill, -LLM_QUOTA_UNIT);
    ngx_http_llm_bill_unlock(bill);

    ngx_http_llm_bill_settle(bill);
}


/* ends the claims; a refused request gets everything back */

void
ngx_http_llm_bill_settle(ngx_http_llm_bill_t *bill)
{
    ngx_uint_t             i;
    ngx_http_llm_quota_t  *q;
    ngx_http_llm_share_t  *s;

    for (i = 0; i < bill->nshares; i++) {
        s = &bill->shares[i];
        q = s->limit->quota;

        if (s->claim == NULL) {
            continue;
        }

        ngx_http_llm_quota_lock(q);
        ngx_http_llm_account_change(q, s->claim->account, s->claim);
        ngx_http_llm_quota_run(s, s->claim->account);
        ngx_http_llm_account_done(q);
        ngx_http_llm_claim_end(q, s->claim);
        ngx_http_llm_quota_unlock(q);

        s->claim = NULL;
        ngx_http_llm_usage_share(q);
    }
}
