/*
 * A store of answers in shared memory, for all workers: for each
 * Idempotency-Key of each client an entry with the digest of the request, and
 * its answer as far as it was sent.  ngx_http_llm_idempotency.c uses it.
 *
 * The store is bounded (llm_idempotency SIZE): the oldest answers make room,
 * and an answer larger than a quarter of the store is not kept.  It survives
 * reloads.
 *
 * Invariant: while the owner of an entry lives, no other process removes the
 * entry, so the owner may keep a pointer to it.  All other access is under the
 * slab pool's lock, and entries are looked up by their key each time.
 *
 * The slab pool owns the entries and their pages.
 */

#include "http/access/ngx_http_llm_idempotency.h"
#include "http/worker/ngx_http_llm_worker.h"


#define NGX_HTTP_LLM_BUCKETS  512


/* part of an answer: one page of the slab pool */

struct ngx_http_llm_page_s {
    ngx_http_llm_page_t         *next;
    size_t                       len;
    u_char                       data[];
};


typedef struct {
    ngx_queue_t                  age;
    ngx_queue_t                  buckets[NGX_HTTP_LLM_BUCKETS];
} ngx_http_llm_store_t;


static ngx_uint_t ngx_http_llm_store_abandoned(ngx_http_llm_entry_t *e);
static void *ngx_http_llm_store_alloc(ngx_shm_zone_t *zone, size_t size);


#define ngx_http_llm_store_pool(zone)                                         \
    ((ngx_slab_pool_t *) (zone)->shm.addr)


ngx_int_t
ngx_http_llm_init_store(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_uint_t             i;
    ngx_slab_pool_t       *shpool;
    ngx_http_llm_store_t  *store;

    if (data) {
        shm_zone->data = data;
        return NGX_OK;
    }

    shpool = ngx_http_llm_store_pool(shm_zone);
    shpool->log_nomem = 0;

    store = ngx_slab_alloc(shpool, sizeof(ngx_http_llm_store_t));
    if (store == NULL) {
        return NGX_ERROR;
    }

    ngx_queue_init(&store->age);

    for (i = 0; i < NGX_HTTP_LLM_BUCKETS; i++) {
        ngx_queue_init(&store->buckets[i]);
    }

    shm_zone->data = store;

    return NGX_OK;
}


/* has the owner died? */

static ngx_uint_t
ngx_http_llm_store_abandoned(ngx_http_llm_entry_t *e)
{
    return !llm_process_lives(e->owner, e->born);
}


static ngx_queue_t *
ngx_http_llm_store_bucket(ngx_http_llm_store_t *store, u_char *key)
{
    uint32_t  hash;

    ngx_memcpy(&hash, key, sizeof(uint32_t));

    return &store->buckets[hash % NGX_HTTP_LLM_BUCKETS];
}


ngx_http_llm_entry_t *
ngx_http_llm_store_find(ngx_shm_zone_t *zone, u_char *key)
{
    ngx_queue_t           *q, *bucket;
    ngx_http_llm_entry_t  *e;

    bucket = ngx_http_llm_store_bucket(zone->data, key);

    for (q = ngx_queue_head(bucket);
         q != ngx_queue_sentinel(bucket);
         q = ngx_queue_next(q))
    {
        e = ngx_queue_data(q, ngx_http_llm_entry_t, bucket);

        if (ngx_memcmp(e->key, key, 16) != 0) {
            continue;
        }

        if (e->owner ? !ngx_http_llm_store_abandoned(e)
                     : e->until >= ngx_time())
        {
            return e;
        }

        ngx_http_llm_store_remove(zone, e);

        return NULL;
    }

    return NULL;
}


ngx_http_llm_entry_t *
ngx_http_llm_store_create(ngx_shm_zone_t *zone, u_char *key, u_char *digest)
{
    ngx_http_llm_entry_t  *e;
    ngx_http_llm_store_t  *store;

    store = zone->data;

    e = ngx_http_llm_store_alloc(zone, sizeof(ngx_http_llm_entry_t));
    if (e == NULL) {
        return NULL;
    }

    ngx_memzero(e, sizeof(ngx_http_llm_entry_t));
    ngx_memcpy(e->key, key, 16);
    ngx_memcpy(e->digest, digest, 16);

    e->owner = ngx_pid;
    e->born = ngx_http_llm_born();

    ngx_queue_insert_tail(ngx_http_llm_store_bucket(store, e->key),
                          &e->bucket);
    ngx_queue_insert_tail(&store->age, &e->age);

    return e;
}


/* the oldest answers make room */

static void *
ngx_http_llm_store_alloc(ngx_shm_zone_t *zone, size_t size)
{
    void                  *p;
    ngx_queue_t           *q, *next;
    ngx_slab_pool_t       *shpool;
    ngx_http_llm_entry_t  *e;
    ngx_http_llm_store_t  *store;

    store = zone->data;
    shpool = ngx_http_llm_store_pool(zone);

    p = ngx_slab_alloc_locked(shpool, size);

    for (q = ngx_queue_head(&store->age);
         p == NULL && q != ngx_queue_sentinel(&store->age);
         q = next)
    {
        next = ngx_queue_next(q);
        e = ngx_queue_data(q, ngx_http_llm_entry_t, age);

        if (e->owner && !ngx_http_llm_store_abandoned(e)) {
            continue;
        }

        ngx_http_llm_store_remove(zone, e);
        p = ngx_slab_alloc_locked(shpool, size);
    }

    return p;
}


void
ngx_http_llm_store_remove(ngx_shm_zone_t *zone, ngx_http_llm_entry_t *e)
{
    ngx_slab_pool_t      *shpool;
    ngx_http_llm_page_t  *page;

    shpool = ngx_http_llm_store_pool(zone);

    ngx_queue_remove(&e->bucket);
    ngx_queue_remove(&e->age);

    while (e->first) {
        page = e->first;
        e->first = page->next;
        ngx_slab_free_locked(shpool, page);
    }

    ngx_slab_free_locked(shpool, e);
}


ngx_int_t
ngx_http_llm_store_append(ngx_shm_zone_t *zone, ngx_http_llm_entry_t *e,
    const char *data, size_t len)
{
    size_t                n, room;
    ngx_http_llm_page_t  *page;

    room = ngx_pagesize - sizeof(ngx_http_llm_page_t);

    if (e->len + len > zone->shm.size / 4) {
        return NGX_ERROR;
    }

    e->len += len;

    while (len) {
        page = e->last;

        if (page == NULL || page->len == room) {
            page = ngx_http_llm_store_alloc(zone, ngx_pagesize);
            if (page == NULL) {
                return NGX_ERROR;
            }

            page->next = NULL;
            page->len = 0;

            if (e->last) {
                e->last->next = page;

            } else {
                e->first = page;
            }

            e->last = page;
        }

        n = ngx_min(len, room - page->len);
        ngx_memcpy(page->data + page->len, data, n);
        page->len += n;
        data += n;
        len -= n;
    }

    return NGX_OK;
}


void
ngx_http_llm_store_copy(ngx_http_llm_entry_t *e, llm_buf_t *to)
{
    ngx_http_llm_page_t  *page;

    for (page = e->first; page; page = page->next) {
        (void) llm_buf_add(to, page->data, page->len);
    }
}
