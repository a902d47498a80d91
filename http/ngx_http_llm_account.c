/*
 * Accounts of token quotas in shared memory, and the claims that live requests
 * have on them.
 *
 * - All is done under the slab pool's lock, which nginx's master takes from a
 *   worker that died with it.  Figures that this one was changing are as
 *   before again: see `undo`.  A claim that it had just put into its lists, or
 *   was taking out of them, holds nothing.
 * - What a dead worker's claims hold is given back by the worker that takes
 *   its place, and by whoever is about to be refused because of them.
 * - An account of which nothing is left to remember makes room for another.
 *   One that is still owed something never does: if there is no room, the
 *   request is refused, and the log says so.
 *
 * Accounts and claims are the slab pool's.
 */

#include "http/ngx_http_llm_quota.h"


static void ngx_http_llm_account_insert(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static void *ngx_http_llm_quota_alloc(ngx_http_llm_quota_t *q, size_t size,
    ngx_http_llm_account_t *keep);
static ngx_uint_t ngx_http_llm_account_idle(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a);


ngx_int_t
ngx_http_llm_init_quota(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_http_llm_quota_t *old = data;

    ngx_http_llm_quota_t     *q;
    ngx_http_llm_accounts_t  *sh;

    q = shm_zone->data;
    q->shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (old) {
        if (q->key.value.len != old->key.value.len
            || ngx_strncmp(q->key.value.data, old->key.value.data,
                           q->key.value.len)
               != 0)
        {
            ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                          "llm_token_zone \"%V\" uses the \"%V\" key while "
                          "previously it used the \"%V\" key",
                          &shm_zone->shm.name, &q->key.value,
                          &old->key.value);
            return NGX_ERROR;
        }

        q->sh = old->sh;

        return NGX_OK;
    }

    if (shm_zone->shm.exists) {
        q->sh = q->shpool->data;
        return NGX_OK;
    }

    sh = ngx_slab_calloc(q->shpool, sizeof(ngx_http_llm_accounts_t));
    if (sh == NULL) {
        return NGX_ERROR;
    }

    ngx_rbtree_init(&sh->tree, &sh->sentinel, ngx_http_llm_account_insert);
    ngx_queue_init(&sh->age);
    ngx_queue_init(&sh->claims);

    q->shpool->data = sh;
    q->shpool->log_nomem = 0;
    q->sh = sh;

    ngx_http_llm_usage_load(q, shm_zone->shm.log);

    return NGX_OK;
}


static void
ngx_http_llm_account_insert(ngx_rbtree_node_t *temp, ngx_rbtree_node_t *node,
    ngx_rbtree_node_t *sentinel)
{
    ngx_rbtree_node_t       **p;
    ngx_http_llm_account_t   *a, *b;

    for ( ;; ) {
        if (node->key != temp->key) {
            p = node->key < temp->key ? &temp->left : &temp->right;

        } else {
            a = (ngx_http_llm_account_t *) node;
            b = (ngx_http_llm_account_t *) temp;

            p = ngx_memn2cmp(a->key, b->key, a->len, b->len) < 0
                ? &temp->left : &temp->right;
        }

        if (*p == sentinel) {
            break;
        }

        temp = *p;
    }

    *p = node;
    node->parent = temp;
    node->left = sentinel;
    node->right = sentinel;
    ngx_rbt_red(node);
}


/* ---- the lock ---- */

void
ngx_http_llm_quota_lock(ngx_http_llm_quota_t *q)
{
    ngx_http_llm_accounts_t  *sh;

    ngx_shmtx_lock(&q->shpool->mutex);

    sh = q->sh;

    if (sh->undo.account) {
        sh->undo.account->n = sh->undo.n;

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
    ngx_memory_barrier();
    sh->undo.account = a;
    ngx_memory_barrier();
}


void
ngx_http_llm_account_done(ngx_http_llm_quota_t *q)
{
    q->sh->changes++;
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
    ngx_str_t *key)
{
    ngx_http_llm_account_t  *a;

    a = ngx_http_llm_account_find(q, hash, key);

    if (a) {
        ngx_queue_remove(&a->age);
        ngx_queue_insert_head(&q->sh->age, &a->age);
        return a;
    }

    a = ngx_http_llm_quota_alloc(q, sizeof(ngx_http_llm_account_t) + key->len,
                                 NULL);
    if (a == NULL) {
        return NULL;
    }

    ngx_memzero(a, sizeof(ngx_http_llm_account_t));

    a->node.key = hash;
    a->len = key->len;
    ngx_memcpy(a->key, key->data, key->len);
    ngx_queue_init(&a->claims);

    ngx_rbtree_insert(&q->sh->tree, &a->node);
    ngx_queue_insert_head(&q->sh->age, &a->age);

    return a;
}


/* accounts of which nothing is to be remembered make room, the oldest first,
   but for the one that it is for */

static void *
ngx_http_llm_quota_alloc(ngx_http_llm_quota_t *q, size_t size,
    ngx_http_llm_account_t *keep)
{
    void                    *p;
    ngx_uint_t               n;
    ngx_queue_t             *last, *prev;
    ngx_http_llm_account_t  *a;

    p = ngx_slab_alloc_locked(q->shpool, size);

    last = ngx_queue_last(&q->sh->age);

    for (n = 0; p == NULL && n < 64 && last != ngx_queue_sentinel(&q->sh->age);
         n++)
    {
        prev = ngx_queue_prev(last);
        a = ngx_queue_data(last, ngx_http_llm_account_t, age);
        last = prev;

        if (a == keep || !ngx_http_llm_account_idle(q, a)) {
            continue;
        }

        ngx_queue_remove(&a->age);
        ngx_rbtree_delete(&q->sh->tree, &a->node);
        ngx_slab_free_locked(q->shpool, a);

        p = ngx_slab_alloc_locked(q->shpool, size);
    }

    return p;
}


/* nothing is owed to it, or by it; what it took today, or with a file of usage
   ever, is to be known */

static ngx_uint_t
ngx_http_llm_account_idle(ngx_http_llm_quota_t *q, ngx_http_llm_account_t *a)
{
    uint64_t  now;

    if (!ngx_queue_empty(&a->claims)) {
        return 0;
    }

    if (q->state.len
        || (q->day.set && a->n.day == ngx_time() / 86400 && a->n.day_units))
    {
        return 0;
    }

    now = llm_now_us();

    llm_bucket_run(&a->n.tokens, a->n.tokens.step, now);
    llm_bucket_run(&a->n.requests, a->n.requests.step, now);

    return a->n.tokens.excess == 0 && a->n.requests.excess == 0;
}


/* ---- claims ---- */

ngx_http_llm_claim_t *
ngx_http_llm_claim_create(ngx_http_llm_quota_t *q, ngx_http_llm_account_t *a)
{
    ngx_http_llm_claim_t  *c;

    c = ngx_http_llm_quota_alloc(q, sizeof(ngx_http_llm_claim_t), a);
    if (c == NULL) {
        return NULL;
    }

    ngx_memzero(c, sizeof(ngx_http_llm_claim_t));

    c->account = a;
    c->owner = ngx_pid;

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

    if (q->out) {
        n += (int64_t) ngx_min(c->answer, LLM_QUOTA_MOST) * LLM_QUOTA_UNIT;
    }

    return n;
}


/* what comes back later than the day on which it was charged does not count
   for the new one */

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

    if (units > 0 || c->day == n->day) {
        n->day_units = ngx_max(n->day_units + units, 0);
    }
}


void
ngx_http_llm_claim_end(ngx_http_llm_quota_t *q, ngx_http_llm_claim_t *c)
{
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

    ngx_slab_free_locked(q->shpool, c);
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
    ngx_uint_t             dead;
    ngx_queue_t           *list, *p, *next;
    ngx_http_llm_claim_t  *c;

    list = a ? &a->claims : &q->sh->claims;
    alive = 0;

    for (p = ngx_queue_head(list); p != ngx_queue_sentinel(list); p = next) {

        next = ngx_queue_next(p);
        c = a ? ngx_queue_data(p, ngx_http_llm_claim_t, same)
              : ngx_queue_data(p, ngx_http_llm_claim_t, all);

        if (c->owner == alive) {
            continue;
        }

        /* a worker that begins has none: its pid was another one's before */

        dead = (c->owner == ngx_pid)
               ? a == NULL
               : kill(c->owner, 0) == -1 && ngx_errno == NGX_ESRCH;

        if (dead) {
            ngx_http_llm_claim_end(q, c);

        } else {
            alive = c->owner;
        }
    }
}


void
ngx_http_llm_sweep_quotas(ngx_http_llm_main_conf_t *mcf)
{
    ngx_uint_t              i;
    ngx_http_llm_quota_t  **q;

    q = mcf->quotas.elts;

    for (i = 0; i < mcf->quotas.nelts; i++) {
        ngx_http_llm_quota_lock(q[i]);
        ngx_http_llm_account_sweep(q[i], NULL);
        ngx_http_llm_quota_unlock(q[i]);
    }
}
