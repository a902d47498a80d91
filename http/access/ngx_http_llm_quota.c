/*
 * What a request is charged, and gets back:
 *
 *   before its body is read   debt, the day's tokens, requests and streams are
 *                             checked
 *   after it was parsed       they are checked again; the request gets a claim
 *                             on each account, and counts as a request
 *   after it was tokenised    the prompt and a reserve for the answer, or the
 *                             seconds of audio, are charged, or the request is
 *                             refused
 *   when it begins to run     tokens found in the prefix cache become cheaper
 *   with each token           the charge is used up; further tokens are charged
 *                             to the account, which may go into debt
 *   at its end                what was charged and not used goes back; all of
 *                             it, if the server failed before there was an
 *                             answer
 *
 * These are stages of ngx_http_llm_stage.h.
 *
 * Several zones are locked together, in their order in the configuration, and
 * either all are charged or none.  An invalid request is charged nothing.
 */

#include "http/access/ngx_http_llm_proxied.h"
#include "http/access/ngx_http_llm_quota.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"


static int64_t ngx_http_llm_quota_price(ngx_http_llm_share_t *s,
    const llm_event_t *ev);
static ngx_int_t ngx_http_llm_quota_begin(ngx_http_llm_ctx_t *ctx,
    llm_err_t *err);
static ngx_int_t ngx_http_llm_quota_claim(ngx_http_llm_body_t *body);
static void ngx_http_llm_quota_return(ngx_http_llm_ctx_t *ctx);
static ngx_int_t ngx_http_llm_quota_charge(ngx_http_llm_ctx_t *ctx,
    const llm_event_t *ev, llm_err_t *err);
static void ngx_http_llm_quota_start(ngx_http_llm_ctx_t *ctx,
    const llm_event_t *ev);
static void ngx_http_llm_quota_text(ngx_http_llm_ctx_t *ctx,
    const llm_event_t *ev);
static void ngx_http_llm_quota_pay(ngx_http_llm_bill_t *bill, uint64_t n);
static void ngx_http_llm_quota_end(ngx_http_llm_ctx_t *ctx,
    const llm_event_t *ev);


ngx_http_llm_stage_t  ngx_http_llm_quota_stage = {
    .begin = ngx_http_llm_quota_begin,
    .parsed = ngx_http_llm_quota_claim,
    .returned = ngx_http_llm_quota_return,
    .prepared = ngx_http_llm_quota_charge,
    .start = ngx_http_llm_quota_start,
    .text = ngx_http_llm_quota_text,
    .end = ngx_http_llm_quota_end
};


/* ---- before the body is read ---- */

static ngx_int_t
ngx_http_llm_quota_begin(ngx_http_llm_ctx_t *ctx, llm_err_t *err)
{
    ngx_int_t             rc;
    ngx_http_llm_bill_t  *bill;

    ngx_http_llm_proxied_leave(ctx->request);

    rc = ngx_http_llm_bill_open(ctx->request, ctx->reply, &bill, err);

    ngx_http_llm_set_data(ctx, bill, ngx_http_llm_quota_stage);

    return rc == NGX_OK && bill && bill->nshares
           ? ngx_http_llm_bill_check(bill, err) : rc;
}


/* ---- after it was parsed ---- */

static ngx_int_t
ngx_http_llm_quota_claim(ngx_http_llm_body_t *body)
{
    llm_request_t        *msg;
    ngx_http_llm_bill_t  *bill;

    bill = ngx_http_llm_get_data(body->ctx, ngx_http_llm_quota_stage);

    if (bill == NULL || bill->nshares == 0) {
        return NGX_OK;
    }

    /* requests that need no model cost no tokens */

    msg = (llm_request_t *) body->msg.data;

    if (msg->task < LLM_TASK_TOKENIZE) {
        bill->metered = 1;
        msg->flags |= LLM_REQ_METERED;
    }

    return ngx_http_llm_bill_claim(bill, &body->err);
}


/* the engine has not taken the request */

static void
ngx_http_llm_quota_return(ngx_http_llm_ctx_t *ctx)
{
    ngx_http_llm_bill_t  *bill;

    bill = ngx_http_llm_get_data(ctx, ngx_http_llm_quota_stage);

    if (bill == NULL || bill->nshares == 0) {
        return;
    }

    ngx_http_llm_bill_return(bill);
}


/* ---- after it was tokenised ---- */

static int64_t
ngx_http_llm_quota_price(ngx_http_llm_share_t *s, const llm_event_t *ev)
{
    uint64_t               n;
    ngx_http_llm_quota_t  *q;

    q = s->limit->quota;

    n = (q->in ? ev->u.prepared.prompt_tokens : 0)
        + (q->out ? ngx_min(ev->u.prepared.answer_tokens, s->limit->reserve)
                  : 0)
        + (q->audio ? ev->u.prepared.audio_s : 0);

    return (int64_t) ngx_min(n, LLM_QUOTA_MOST + 1) * LLM_QUOTA_UNIT;
}


static ngx_int_t
ngx_http_llm_quota_charge(ngx_http_llm_ctx_t *ctx, const llm_event_t *ev,
    llm_err_t *err)
{
    int64_t                  units;
    ngx_int_t                rc;
    ngx_uint_t               i;
    ngx_http_llm_quota_t    *q;
    ngx_http_llm_share_t    *s;
    ngx_http_llm_bill_t     *bill;
    ngx_http_llm_account_t  *a;
    ngx_http_llm_refusal_t   no;

    bill = ngx_http_llm_get_data(ctx, ngx_http_llm_quota_stage);

    if (bill == NULL) {
        return NGX_OK;
    }

    rc = NGX_OK;

    ngx_http_llm_bill_share(bill);
    ngx_http_llm_bill_lock(bill);

    for (i = 0; rc == NGX_OK && i < bill->nshares; i++) {
        s = &bill->shares[i];
        q = s->limit->quota;

        if (s->claim == NULL) {
            continue;
        }

        a = s->claim->account;
        units = ngx_http_llm_quota_price(s, ev);

        ngx_http_llm_account_change(q, a, s->claim);
        ngx_http_llm_quota_run(s, a);

        if (ngx_http_llm_quota_short(s, a, 0, units, &no)
            && ngx_http_llm_quota_enforced(ctx->request, &no))
        {
            rc = NGX_ERROR;
        }
    }

    for (i = 0; rc == NGX_OK && i < bill->nshares; i++) {
        s = &bill->shares[i];

        if (s->claim) {
            ngx_http_llm_claim_charge(s->claim,
                                      ngx_http_llm_quota_price(s, ev));
        }
    }

    ngx_http_llm_bill_unlock(bill);

    if (rc != NGX_OK) {
        ngx_http_llm_quota_return(ctx);
        ngx_http_llm_quota_refuse(ctx->reply, &no, err);

    } else {
        ngx_http_llm_bill_share(bill);
    }

    return rc;
}


/* ---- while it runs ---- */

static void
ngx_http_llm_quota_start(ngx_http_llm_ctx_t *ctx, const llm_event_t *ev)
{
    ngx_http_llm_bill_t  *bill;

    bill = ngx_http_llm_get_data(ctx, ngx_http_llm_quota_stage);

    if (bill && bill->metered) {
        ngx_http_llm_bill_use(bill, ev->u.start.prompt_tokens,
                              ev->u.start.cached_tokens, ev->u.start.heard_s);
    }
}


static void
ngx_http_llm_quota_text(ngx_http_llm_ctx_t *ctx, const llm_event_t *ev)
{
    ngx_uint_t             i;
    ngx_http_llm_bill_t   *bill;
    ngx_http_llm_claim_t  *c;

    bill = ngx_http_llm_get_data(ctx, ngx_http_llm_quota_stage);

    if (bill == NULL || !bill->metered) {
        return;
    }

    for (i = 0; ev->u.text.heard_s && i < bill->nshares; i++) {
        c = bill->shares[i].claim;

        if (c) {
            c->seconds = ngx_max(c->seconds, ev->u.text.heard_s);
        }
    }

    bill->answer_tokens += ev->u.text.n_tokens;
    ngx_http_llm_quota_pay(bill, ev->u.text.n_tokens);
}


/* ev: the engine's last event, or NULL at the end of the request.  An error
   event says how many tokens were generated before it.  A request that is not
   metered keeps its claims until its client has the answer */

static void
ngx_http_llm_quota_end(ngx_http_llm_ctx_t *ctx, const llm_event_t *ev)
{
    ngx_http_llm_bill_t  *bill;

    bill = ngx_http_llm_get_data(ctx, ngx_http_llm_quota_stage);

    if (bill == NULL || (ev && !bill->metered)) {
        return;
    }

    if (ev && ev->type == LLM_EV_ERROR
        && ev->u.error.completion_tokens > bill->answer_tokens)
    {
        ngx_http_llm_quota_pay(bill, ev->u.error.completion_tokens
                                     - bill->answer_tokens);
    }

    /* the server failed before there was an answer: nothing was used */

    if (ev && ev->type == LLM_EV_ERROR && bill->answer_tokens == 0
        && ev->u.error.completion_tokens == 0
        && (ev->u.error.status == 500 || ev->u.error.status == 503))
    {
        ngx_http_llm_bill_return(bill);
        return;
    }

    ngx_http_llm_bill_settle(bill);
}


/* n more tokens were generated; the zone is locked only when they exceed the
   charge */

static void
ngx_http_llm_quota_pay(ngx_http_llm_bill_t *bill, uint64_t n)
{
    int64_t                  more;
    ngx_uint_t               i;
    ngx_http_llm_quota_t    *q;
    ngx_http_llm_share_t    *s;
    ngx_http_llm_claim_t    *c;

    for (i = 0; n && i < bill->nshares; i++) {
        s = &bill->shares[i];
        q = s->limit->quota;
        c = s->claim;

        if (c == NULL) {
            continue;
        }

        c->answer += n;
        more = ngx_http_llm_claim_used(q, c) - c->charged;

        if (more > 0) {
            ngx_http_llm_quota_lock(q);
            ngx_http_llm_account_change(q, c->account, c);
            ngx_http_llm_quota_run(s, c->account);
            ngx_http_llm_claim_charge(c, more);
            ngx_http_llm_account_done(q);
            ngx_http_llm_quota_unlock(q);
        }
    }
}
