/*
 * Claims that live requests have on accounts of token quotas, under the zone's
 * lock.
 *
 * - Claims have memory of their own, which accounts cannot take: a client with
 *   an account can be served however many accounts there are.
 * - What a dead worker's claims hold is given back by the worker that replaces
 *   it, and by any request that would be refused because of them.
 * - If a worker dies while it adds a claim to its lists, or removes one, that
 *   claim holds nothing.
 */

#include "http/access/ngx_http_llm_quota.h"
#include "http/worker/ngx_http_llm_worker.h"


/* 1/16 of the zone is for claims */
#define NGX_HTTP_LLM_CLAIMS  16


ngx_int_t
ngx_http_llm_claim_init(ngx_http_llm_quota_t *q)
{
    size_t                    i, n;
    ngx_http_llm_claim_t     *c;
    ngx_http_llm_accounts_t  *sh;

    sh = q->sh;
    n = ngx_max(q->shm_zone->shm.size / NGX_HTTP_LLM_CLAIMS, ngx_pagesize)
        / sizeof(ngx_http_llm_claim_t);

    c = ngx_slab_alloc(q->shpool, n * sizeof(ngx_http_llm_claim_t));
    if (c == NULL) {
        return NGX_ERROR;
    }

    ngx_queue_init(&sh->room);

    for (i = 0; i < n; i++) {
        ngx_queue_insert_tail(&sh->room, &c[i].all);
    }

    sh->room_start = (u_char *) c;
    sh->room_end = (u_char *) (c + n);

    return NGX_OK;
}


ngx_http_llm_claim_t *
ngx_http_llm_claim_create(ngx_http_llm_quota_t *q, ngx_http_llm_account_t *a)
{
    ngx_queue_t           *p;
    ngx_http_llm_claim_t  *c;

    if (!ngx_queue_empty(&q->sh->room)) {
        p = ngx_queue_head(&q->sh->room);
        ngx_queue_remove(p);
        c = ngx_queue_data(p, ngx_http_llm_claim_t, all);

    } else {
        c = ngx_http_llm_quota_alloc(q, sizeof(ngx_http_llm_claim_t), a);

        if (c == NULL) {
            return NULL;
        }
    }

    ngx_memzero(c, sizeof(ngx_http_llm_claim_t));

    c->account = a;
    c->owner = ngx_pid;
    c->born = ngx_http_llm_born();

    ngx_queue_insert_tail(&q->sh->claims, &c->all);
    ngx_queue_insert_tail(&a->claims, &c->same);

    return c;
}


int64_t
ngx_http_llm_claim_used(ngx_http_llm_quota_t *q, ngx_http_llm_claim_t *c)
{
    int64_t  n;

    n = 0;

    if (q->in) {
        n += (int64_t) (c->prompt - c->cached) * LLM_QUOTA_UNIT
             + (int64_t) c->cached * q->cached * (LLM_QUOTA_UNIT / 1000);
    }

    if (q->audio) {
        n += (int64_t) c->seconds * LLM_QUOTA_UNIT;
    }

    if (q->out) {
        n += (int64_t) ngx_min(c->answer, LLM_QUOTA_MOST) * LLM_QUOTA_UNIT;
    }

    return n;
}


/* tokens of an earlier day are not given back to the current one; the claim's
   day may be later than the account's, see ngx_http_llm_account_run() */

void
ngx_http_llm_claim_charge(ngx_http_llm_claim_t *c, int64_t units)
{
    ngx_http_llm_figures_t  *n;

    n = &c->account->n;

    if (c->charged == 0) {
        c->day = n->day;
    }

    c->charged += units;
    llm_bucket_add(&n->tokens, units);

    if (units > 0 || c->day >= n->day) {
        n->day_units = ngx_max(n->day_units + units, 0);
    }
}


/* corrects the charge to what was used, and frees the claim; the account
   stays */

static void
ngx_http_llm_claim_settle(ngx_http_llm_quota_t *q, ngx_http_llm_claim_t *c)
{
    u_char                  *p;
    ngx_http_llm_figures_t  *n;

    n = &c->account->n;

    ngx_http_llm_account_change(q, c->account, c);

    ngx_http_llm_claim_charge(c, ngx_http_llm_claim_used(q, c) - c->charged);

    n->n_requests += c->started;
    n->n_prompt += c->prompt;
    n->n_cached += c->cached;
    n->n_answer += c->answer;

    ngx_http_llm_account_done(q);

    ngx_queue_remove(&c->same);
    ngx_queue_remove(&c->all);

    p = (u_char *) c;

    if (p >= q->sh->room_start && p < q->sh->room_end) {
        ngx_queue_insert_head(&q->sh->room, &c->all);

    } else {
        ngx_slab_free_locked(q->shpool, c);
    }
}


void
ngx_http_llm_claim_end(ngx_http_llm_quota_t *q, ngx_http_llm_claim_t *c)
{
    ngx_http_llm_account_t  *a;

    a = c->account;

    ngx_http_llm_claim_settle(q, c);
    ngx_http_llm_account_drop(q, a);
}


ngx_uint_t
ngx_http_llm_account_streams(ngx_http_llm_account_t *a)
{
    ngx_uint_t    n;
    ngx_queue_t  *p;

    n = 0;

    for (p = ngx_queue_head(&a->claims);
         p != ngx_queue_sentinel(&a->claims);
         p = ngx_queue_next(p))
    {
        n++;
    }

    return n;
}


void
ngx_http_llm_account_sweep(ngx_http_llm_quota_t *q, ngx_http_llm_account_t *a)
{
    ngx_pid_t              alive;
    uint64_t               born;
    ngx_uint_t             dead;
    ngx_queue_t           *list, *p, *next;
    ngx_http_llm_claim_t  *c;

    list = a ? &a->claims : &q->sh->claims;
    alive = 0;
    born = 0;

    for (p = ngx_queue_head(list); p != ngx_queue_sentinel(list); p = next) {

        next = ngx_queue_next(p);
        c = a ? ngx_queue_data(p, ngx_http_llm_claim_t, same)
              : ngx_queue_data(p, ngx_http_llm_claim_t, all);

        if (c->owner == alive && c->born == born) {
            continue;
        }

        /* a new worker has no claims yet: those with its pid are an earlier
           process's */

        dead = (a == NULL && c->owner == ngx_pid)
               || !llm_process_lives(c->owner, c->born);

        if (dead && a) {
            ngx_http_llm_claim_settle(q, c);

        } else if (dead) {
            ngx_http_llm_claim_end(q, c);

        } else {
            alive = c->owner;
            born = c->born;
        }
    }
}


int64_t
ngx_http_llm_account_held(ngx_http_llm_quota_t *q, ngx_http_llm_account_t *a)
{
    int64_t                units;
    ngx_queue_t           *p;
    ngx_http_llm_claim_t  *c;

    units = 0;

    for (p = ngx_queue_head(&a->claims);
         p != ngx_queue_sentinel(&a->claims);
         p = ngx_queue_next(p))
    {
        c = ngx_queue_data(p, ngx_http_llm_claim_t, same);

        if (c->day >= a->n.day) {
            units += ngx_max(c->charged - ngx_http_llm_claim_used(q, c), 0);
        }
    }

    return units;
}
