/*
 * The memory of a token zone's accounts: new, or that of the previous
 * configuration.
 */

#include "http/access/ngx_http_llm_quota.h"


static void ngx_http_llm_account_insert(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static void ngx_http_llm_account_move(ngx_http_llm_quota_t *q,
    ngx_log_t *log);
static void ngx_http_llm_account_copy(ngx_http_llm_quota_t *q,
    ngx_http_llm_quota_t *old, ngx_log_t *log);


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

    sh->place = q->place;
    sh->id = (uint32_t) (llm_now_us() * 2654435761u) ^ (uint32_t) ngx_pid;

    q->shpool->data = sh;
    q->shpool->log_nomem = 0;
    q->sh = sh;

    if (ngx_http_llm_claim_init(q) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_llm_usage_load(q, shm_zone->shm.log);
    ngx_http_llm_account_move(q, shm_zone->shm.log);

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


/* copies the accounts of the previous configuration's zone of this name, which
   has another size */

static void
ngx_http_llm_account_move(ngx_http_llm_quota_t *q, ngx_log_t *log)
{
    ngx_str_t        *name;
    ngx_uint_t        i;
    ngx_shm_zone_t   *zone;
    ngx_list_part_t  *part;

    name = &q->shm_zone->shm.name;

    for (part = (ngx_list_part_t *) &ngx_cycle->shared_memory.part;
         part;
         part = part->next)
    {
        zone = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (zone[i].tag == q->shm_zone->tag
                && zone[i].init == q->shm_zone->init
                && zone[i].shm.name.len == name->len
                && ngx_memcmp(zone[i].shm.name.data, name->data, name->len)
                   == 0)
            {
                ngx_http_llm_account_copy(q, zone[i].data, log);
            }
        }
    }
}


/* copies no reservations: a live request settles in the old memory, and reaches
   this zone only through the usage file, if there is one */

static void
ngx_http_llm_account_copy(ngx_http_llm_quota_t *q, ngx_http_llm_quota_t *old,
    ngx_log_t *log)
{
    int64_t                  held;
    ngx_str_t                key;
    ngx_queue_t             *p;
    ngx_http_llm_account_t  *a, *b;

    if (old == q || old->sh == NULL
        || q->key.value.len != old->key.value.len
        || ngx_memcmp(q->key.value.data, old->key.value.data,
                      q->key.value.len)
           != 0)
    {
        return;
    }

    ngx_http_llm_quota_lock(old);

    for (p = ngx_queue_last(&old->sh->age);
         p != ngx_queue_sentinel(&old->sh->age);
         p = ngx_queue_prev(p))
    {
        a = ngx_queue_data(p, ngx_http_llm_account_t, age);

        key.len = a->len;
        key.data = a->key;

        b = ngx_http_llm_account_get(q, a->node.key, &key, 0);

        if (b == NULL) {
            ngx_log_error(NGX_LOG_WARN, log, 0,
                          "zone \"%V\" is too small for the accounts that it "
                          "had before", &q->shm_zone->shm.name);
            break;
        }

        held = ngx_http_llm_account_held(old, a);

        b->n.tokens = a->n.tokens;
        b->n.tokens.excess = ngx_max(b->n.tokens.excess - held, 0);
        b->n.requests = a->n.requests;

        if (b->known == NULL) {
            b->n.day = a->n.day;
            b->n.day_units = ngx_max(a->n.day_units - held, 0);
            b->n.n_requests = a->n.n_requests;
            b->n.n_prompt = a->n.n_prompt;
            b->n.n_cached = a->n.n_cached;
            b->n.n_answer = a->n.n_answer;
        }
    }

    ngx_http_llm_quota_unlock(old);
}
