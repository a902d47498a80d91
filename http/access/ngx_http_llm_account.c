/*
 * Accounts of token quotas in shared memory.
 *
 * - All access is under the slab pool's lock.  If a worker dies with the lock,
 *   nginx's master releases it, and the next holder restores the figures that
 *   the worker was changing: see `undo`.
 * - An account is created by the first request of its key, and is kept while it
 *   has claims, debt, or tokens of a day that a limit needs.  An account
 *   without these makes room for another.  If no account can make room the
 *   request is refused and logged.
 * - With a usage file, an account makes room only once the file has its
 *   figures.
 * - A zone with another size is new memory: the accounts are copied.
 *
 * The slab pool owns the accounts.
 */

#include "http/access/ngx_http_llm_quota.h"


/* most accounts that are examined to make room for one allocation; those that
   stay are examined again only after all others */
#define NGX_HTTP_LLM_LOOK  64


static ngx_uint_t ngx_http_llm_account_idle(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a);
static void ngx_http_llm_account_delete(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a);


/* ---- the lock ---- */

void
ngx_http_llm_quota_lock(ngx_http_llm_quota_t *q)
{
    ngx_http_llm_accounts_t  *sh;

    ngx_shmtx_lock(&q->shpool->mutex);

    sh = q->sh;

    if (sh->undo.account) {
        sh->undo.account->n = sh->undo.n;

        if (sh->undo.account->known) {
            *sh->undo.account->known = sh->undo.known;
        }

        if (sh->undo.claim) {
            sh->undo.claim->charged = sh->undo.charged;
        }

        sh->undo.account = NULL;
    }
}


void
ngx_http_llm_quota_unlock(ngx_http_llm_quota_t *q)
{
    ngx_shmtx_unlock(&q->shpool->mutex);
}


void
ngx_http_llm_account_change(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a, ngx_http_llm_claim_t *claim)
{
    ngx_http_llm_accounts_t  *sh;

    sh = q->sh;

    sh->undo.n = a->n;
    sh->undo.claim = claim;
    sh->undo.charged = claim ? claim->charged : 0;

    if (a->known) {
        sh->undo.known = *a->known;
    }

    ngx_memory_barrier();
    sh->undo.account = a;
    ngx_memory_barrier();
}


void
ngx_http_llm_account_done(ngx_http_llm_quota_t *q)
{
    q->sh->changes++;
    ngx_http_llm_account_known(q);
}


void
ngx_http_llm_account_known(ngx_http_llm_quota_t *q)
{
    ngx_memory_barrier();
    q->sh->undo.account = NULL;
}


/* ---- accounts ---- */

ngx_http_llm_account_t *
ngx_http_llm_account_find(ngx_http_llm_quota_t *q, uint32_t hash,
    ngx_str_t *key)
{
    ngx_int_t                rc;
    ngx_rbtree_node_t       *node;
    ngx_http_llm_account_t  *a;

    for (node = q->sh->tree.root; node != &q->sh->sentinel; /* void */ ) {

        if (hash != node->key) {
            node = hash < node->key ? node->left : node->right;
            continue;
        }

        a = (ngx_http_llm_account_t *) node;
        rc = ngx_memn2cmp(key->data, a->key, key->len, a->len);

        if (rc == 0) {
            return a;
        }

        node = rc < 0 ? node->left : node->right;
    }

    return NULL;
}


ngx_http_llm_account_t *
ngx_http_llm_account_get(ngx_http_llm_quota_t *q, uint32_t hash,
    ngx_str_t *key, ngx_uint_t spare)
{
    size_t                   size;
    ngx_http_llm_known_t    *known;
    ngx_http_llm_account_t  *a;

    a = ngx_http_llm_account_find(q, hash, key);

    if (a) {
        ngx_queue_remove(&a->age);
        ngx_queue_insert_head(&q->sh->age, &a->age);
        return a;
    }

    size = sizeof(ngx_http_llm_account_t) + key->len;

    a = spare ? ngx_slab_alloc_locked(q->shpool, size)
              : ngx_http_llm_quota_alloc(q, size, NULL);
    if (a == NULL) {
        return NULL;
    }

    known = NULL;
    size = sizeof(ngx_http_llm_known_t);

    if (q->state.len) {
        known = spare ? ngx_slab_alloc_locked(q->shpool, size)
                      : ngx_http_llm_quota_alloc(q, size, NULL);

        if (known == NULL) {
            ngx_slab_free_locked(q->shpool, a);
            return NULL;
        }

        ngx_memzero(known, size);
    }

    ngx_memzero(a, sizeof(ngx_http_llm_account_t));

    a->node.key = hash;
    a->known = known;
    a->len = key->len;
    ngx_memcpy(a->key, key->data, key->len);
    ngx_queue_init(&a->claims);

    ngx_rbtree_insert(&q->sh->tree, &a->node);
    ngx_queue_insert_head(&q->sh->age, &a->age);

    return a;
}


void *
ngx_http_llm_quota_alloc(ngx_http_llm_quota_t *q, size_t size,
    ngx_http_llm_account_t *keep)
{
    void                    *p;
    ngx_uint_t               n;
    ngx_queue_t             *last;
    ngx_http_llm_account_t  *a;

    p = ngx_slab_alloc_locked(q->shpool, size);

    for (n = 0;
         p == NULL && n < NGX_HTTP_LLM_LOOK && !ngx_queue_empty(&q->sh->age);
         n++)
    {
        last = ngx_queue_last(&q->sh->age);
        a = ngx_queue_data(last, ngx_http_llm_account_t, age);

        if (a == keep || !ngx_http_llm_account_idle(q, a)) {
            ngx_queue_remove(last);
            ngx_queue_insert_head(&q->sh->age, last);
            continue;
        }

        ngx_http_llm_account_delete(q, a);

        p = ngx_slab_alloc_locked(q->shpool, size);
    }

    return p;
}


static void
ngx_http_llm_account_delete(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a)
{
    if (a->known && (a->n.n_requests || a->n.n_prompt || a->n.day_units)) {
        q->sh->beyond = 1;              /* the file keeps it */
    }

    ngx_queue_remove(&a->age);
    ngx_rbtree_delete(&q->sh->tree, &a->node);

    if (a->known) {
        ngx_slab_free_locked(q->shpool, a->known);
    }

    ngx_slab_free_locked(q->shpool, a);
}


static ngx_uint_t
ngx_http_llm_account_owes(ngx_http_llm_account_t *a)
{
    ngx_http_llm_account_run(a, a->n.tokens.step, a->n.requests.step);

    return a->n.tokens.excess != 0 || a->n.requests.excess != 0;
}


/* 1: the account may be deleted: it has no claims and no debt, no tokens of
   today if there is a limit per day, and no figures that the usage file
   lacks */

static ngx_uint_t
ngx_http_llm_account_idle(ngx_http_llm_quota_t *q, ngx_http_llm_account_t *a)
{
    ngx_http_llm_known_t  *k;

    if (!ngx_queue_empty(&a->claims) || ngx_http_llm_account_owes(a)
        || (q->day.set && a->n.day_units))
    {
        return 0;
    }

    k = a->known;

    return k == NULL
           || (k->n_requests == a->n.n_requests
               && k->n_prompt == a->n.n_prompt
               && k->n_cached == a->n.n_cached
               && k->n_answer == a->n.n_answer);
}


void
ngx_http_llm_account_drop(ngx_http_llm_quota_t *q, ngx_http_llm_account_t *a)
{
    if (ngx_queue_empty(&a->claims) && !ngx_http_llm_account_owes(a)
        && a->n.n_requests == 0 && a->n.n_prompt == 0
        && a->n.n_answer == 0 && a->n.day_units == 0
        && (a->known == NULL || a->known->others == 0))
    {
        ngx_http_llm_account_delete(q, a);
    }
}


uint32_t
ngx_http_llm_today(void)
{
    return (uint32_t) (ngx_time() / 86400);
}


void
ngx_http_llm_account_run(ngx_http_llm_account_t *a, uint64_t rate,
    uint64_t requests)
{
    uint32_t  day;
    uint64_t  now;

    now = llm_now_us();
    day = ngx_http_llm_today();

    llm_bucket_run(&a->n.tokens, rate, now);
    llm_bucket_run(&a->n.requests, requests, now);

    if (a->n.day < day) {
        a->n.day_units = 0;
    }

    a->n.day = day;
}
