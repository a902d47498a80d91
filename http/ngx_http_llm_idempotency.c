/*
 * Idempotency-Key: a request that is sent again with the key of an earlier
 * one gets that one's answer, byte for byte, and is not computed again.
 *
 * - A store in shared memory, for all workers, has an entry for each key of
 *   each client: the digest of the request, and its answer as far as it is
 *   known.  It is bounded (llm_idempotency SIZE); the oldest answers make
 *   room, and an answer that takes more than a quarter of it is not kept.  It
 *   lives over reloads.
 * - The first request with a key is its entry's owner and writes the answer
 *   there while it is sent, streams as they are.  Others wait until it is
 *   complete, and get it at once.  With another body they get a 409.
 * - Only answers that are complete and not errors are kept.  If the owner
 *   fails, its client leaves, or its worker dies, the entry goes, and the
 *   next request with the key is the owner of a new one.
 *
 * Invariant: an entry with an owner is removed by nobody else while that
 * process lives, so the owner may keep a pointer to it.  All else is done
 * under the slab pool's lock; entries are found by their key each time.
 *
 * Entries and their pages are the slab pool's.
 */

#include "http/ngx_http_llm_module.h"

#include <ngx_md5.h>

#define NGX_HTTP_LLM_IDEM_BUCKETS  512

/* a repeated request looks for the answer so often, in milliseconds */
#define NGX_HTTP_LLM_IDEM_LOOK     50

/* most bytes of a key */
#define NGX_HTTP_LLM_IDEM_KEY      255


typedef struct ngx_http_llm_page_s  ngx_http_llm_page_t;

/* a part of an answer: one page of the slab pool */

struct ngx_http_llm_page_s {
    ngx_http_llm_page_t         *next;
    size_t                       len;
    u_char                       data[];
};


struct ngx_http_llm_entry_s {
    ngx_queue_t                  bucket;
    ngx_queue_t                  age;           /* of all, the oldest first */
    u_char                       key[16];       /* of client and key */
    u_char                       digest[16];    /* of the request */
    time_t                       until;         /* valid, once it is complete */
    ngx_pid_t                    owner;         /* 0: it is complete */
    ngx_uint_t                   stream;
    size_t                       len;           /* of the answer */
    ngx_http_llm_page_t         *first;
    ngx_http_llm_page_t         *last;
};


struct ngx_http_llm_store_s {
    ngx_queue_t                  age;
    ngx_queue_t                  buckets[NGX_HTTP_LLM_IDEM_BUCKETS];
};


static ngx_int_t ngx_http_llm_idem_init(ngx_shm_zone_t *shm_zone,
    void *data);
static void ngx_http_llm_idem_key(ngx_http_llm_ctx_t *ctx, uint64_t tenant,
    ngx_str_t *header, u_char *key);
static ngx_int_t ngx_http_llm_idem_look(ngx_http_llm_body_t *body);
static ngx_http_llm_entry_t *ngx_http_llm_idem_find(
    ngx_http_llm_store_t *store, u_char *key);
static ngx_http_llm_entry_t *ngx_http_llm_idem_create(ngx_shm_zone_t *zone,
    ngx_http_llm_body_t *body);
static void *ngx_http_llm_idem_alloc(ngx_shm_zone_t *zone, size_t size);
static void ngx_http_llm_idem_remove(ngx_shm_zone_t *zone,
    ngx_http_llm_entry_t *e);
static ngx_int_t ngx_http_llm_idem_append(ngx_shm_zone_t *zone,
    ngx_http_llm_entry_t *e, const char *data, size_t len);
static ngx_int_t ngx_http_llm_idem_copy(ngx_http_llm_body_t *body,
    ngx_http_llm_entry_t *e);
static ngx_int_t ngx_http_llm_idem_wait(ngx_http_llm_body_t *body);
static void ngx_http_llm_idem_timer(ngx_event_t *ev);
static void ngx_http_llm_idem_gone(void *data);
static ngx_int_t ngx_http_llm_idem_replay(ngx_http_llm_body_t *body);


#define ngx_http_llm_idem_pool(zone)                                          \
    ((ngx_slab_pool_t *) (zone)->shm.addr)


/* llm_idempotency SIZE [valid=TIME] | off */

char *
ngx_http_llm_idempotency(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_main_conf_t *mcf = conf;

    ssize_t     size;
    ngx_int_t   valid;
    ngx_str_t  *value, s;

    if (mcf->idem_size != NGX_CONF_UNSET_SIZE) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0 && cf->args->nelts == 2) {
        mcf->idem_size = 0;
        return NGX_CONF_OK;
    }

    size = ngx_parse_size(&value[1]);

    if (size < (ssize_t) (16 * ngx_pagesize)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid size \"%V\": it must be at least %uzk",
                           &value[1], 16 * ngx_pagesize / 1024);
        return NGX_CONF_ERROR;
    }

    mcf->idem_size = size;

    if (cf->args->nelts == 2) {
        return NGX_CONF_OK;
    }

    if (ngx_strncmp(value[2].data, "valid=", 6) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid parameter \"%V\"",
                           &value[2]);
        return NGX_CONF_ERROR;
    }

    s.data = value[2].data + 6;
    s.len = value[2].len - 6;
    valid = ngx_parse_time(&s, 1);

    if (valid == NGX_ERROR || valid == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid time \"%V\"", &s);
        return NGX_CONF_ERROR;
    }

    mcf->idem_valid = valid;

    return NGX_CONF_OK;
}


char *
ngx_http_llm_add_store(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf)
{
    ngx_str_t  name = ngx_string("llm_idempotency");

    if (mcf->idem_size == 0) {
        return NGX_CONF_OK;
    }

    mcf->idem = ngx_shared_memory_add(cf, &name, mcf->idem_size,
                                      &ngx_http_llm_module);
    if (mcf->idem == NULL) {
        return NGX_CONF_ERROR;
    }

    mcf->idem->init = ngx_http_llm_idem_init;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_llm_idem_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_uint_t             i;
    ngx_slab_pool_t       *shpool;
    ngx_http_llm_store_t  *store;

    if (data) {
        shm_zone->data = data;
        return NGX_OK;
    }

    shpool = ngx_http_llm_idem_pool(shm_zone);
    shpool->log_nomem = 0;

    store = ngx_slab_alloc(shpool, sizeof(ngx_http_llm_store_t));
    if (store == NULL) {
        return NGX_ERROR;
    }

    ngx_queue_init(&store->age);

    for (i = 0; i < NGX_HTTP_LLM_IDEM_BUCKETS; i++) {
        ngx_queue_init(&store->buckets[i]);
    }

    shm_zone->data = store;

    return NGX_OK;
}


/* the value of the header; NGX_DECLINED: it is not there */

static ngx_int_t
ngx_http_llm_idem_header(ngx_http_request_t *r, ngx_str_t *value)
{
    ngx_http_variable_value_t  *v;
    ngx_http_llm_main_conf_t   *mcf;

    mcf = ngx_http_get_module_main_conf(r, ngx_http_llm_module);

    if (mcf->idem == NULL) {
        return NGX_DECLINED;
    }

    v = ngx_http_get_indexed_variable(r, mcf->idem_header);

    if (v == NULL || v->not_found || v->len == 0) {
        return NGX_DECLINED;
    }

    value->data = v->data;
    value->len = v->len;

    return NGX_OK;
}


ngx_uint_t
ngx_http_llm_idem_wants(ngx_http_request_t *r)
{
    ngx_str_t  value;

    return ngx_http_llm_idem_header(r, &value) == NGX_OK;
}


/*
 * The key of an entry.  Clients whose tenant is the same are kept apart by
 * their credentials: a proxy may have one address for many.
 */

static void
ngx_http_llm_idem_key(ngx_http_llm_ctx_t *ctx, uint64_t tenant,
    ngx_str_t *header, u_char *key)
{
    ngx_md5_t            md5;
    ngx_table_elt_t     *auth;
    ngx_http_request_t  *r;

    r = ctx->request;
    auth = r->headers_in.authorization;

    ngx_md5_init(&md5);
    ngx_md5_update(&md5, &tenant, sizeof(tenant));

    if (auth) {
        ngx_md5_update(&md5, auth->value.data, auth->value.len);
    }

    ngx_md5_update(&md5, "", 1);
    ngx_md5_update(&md5, header->data, header->len);
    ngx_md5_final(key, &md5);
}


/*
 * A request with a key: NGX_OK, it is to be computed; NGX_DONE, it has its
 * answer, or waits for it; NGX_ERROR and *err, it is refused.
 */

ngx_int_t
ngx_http_llm_idem_begin(ngx_http_llm_body_t *body)
{
    ngx_int_t            rc;
    ngx_str_t            header;
    llm_request_t       *msg;
    ngx_http_llm_ctx_t  *ctx;

    ctx = body->ctx;

    if (!body->digested
        || ngx_http_llm_idem_header(ctx->request, &header) != NGX_OK)
    {
        return NGX_OK;
    }

    if (header.len > NGX_HTTP_LLM_IDEM_KEY) {
        llm_fail_with(&body->err, 400, "idempotency_key_too_long", NULL,
                      "The header Idempotency-Key has %zu bytes, more than "
                      "%d.", header.len, NGX_HTTP_LLM_IDEM_KEY);
        return NGX_ERROR;
    }

    msg = (llm_request_t *) body->msg.data;
    ngx_http_llm_idem_key(ctx, msg->tenant, &header, body->key);

    rc = ngx_http_llm_idem_look(body);

    switch (rc) {

    case NGX_AGAIN:
        return ngx_http_llm_idem_wait(body);

    case NGX_DONE:
        ngx_http_finalize_request(ctx->request,
                                  ngx_http_llm_idem_replay(body));
        return NGX_DONE;

    default:
        return rc;
    }
}


/*
 * NGX_OK: this request is the owner, or there is no room for an entry;
 * NGX_AGAIN: another one is; NGX_DONE: body->msg has the answer; NGX_ERROR
 */

static ngx_int_t
ngx_http_llm_idem_look(ngx_http_llm_body_t *body)
{
    ngx_int_t              rc;
    ngx_shm_zone_t        *zone;
    ngx_slab_pool_t       *shpool;
    ngx_http_llm_entry_t  *e;

    zone = body->ctx->main->idem;
    shpool = ngx_http_llm_idem_pool(zone);

    ngx_shmtx_lock(&shpool->mutex);

    e = ngx_http_llm_idem_find(zone->data, body->key);

    if (e && (e->owner ? kill(e->owner, 0) == -1 && ngx_errno == NGX_ESRCH
                       : e->until < ngx_time()))
    {
        ngx_http_llm_idem_remove(zone, e);
        e = NULL;
    }

    if (e == NULL) {
        body->ctx->entry = ngx_http_llm_idem_create(zone, body);
        rc = NGX_OK;

    } else if (ngx_memcmp(e->digest, body->digest, 16) != 0) {
        llm_fail_with(&body->err, 409, "idempotency_key_reused", NULL,
                      "This Idempotency-Key was used for another request.");
        rc = NGX_ERROR;

    } else if (e->owner) {
        rc = NGX_AGAIN;

    } else {
        rc = ngx_http_llm_idem_copy(body, e);
    }

    ngx_shmtx_unlock(&shpool->mutex);

    /* clients' libraries would try a 409 again */

    if (rc == NGX_ERROR && body->err.status == 409
        && ngx_http_llm_add_header(body->ctx->request, "x-should-retry",
                                   "false", 5)
           != NGX_OK)
    {
        llm_fail(&body->err, "No memory is left for this answer.");
    }

    return rc;
}


static ngx_queue_t *
ngx_http_llm_idem_bucket(ngx_http_llm_store_t *store, u_char *key)
{
    uint32_t  hash;

    ngx_memcpy(&hash, key, sizeof(uint32_t));

    return &store->buckets[hash % NGX_HTTP_LLM_IDEM_BUCKETS];
}


static ngx_http_llm_entry_t *
ngx_http_llm_idem_find(ngx_http_llm_store_t *store, u_char *key)
{
    ngx_queue_t           *q, *bucket;
    ngx_http_llm_entry_t  *e;

    bucket = ngx_http_llm_idem_bucket(store, key);

    for (q = ngx_queue_head(bucket);
         q != ngx_queue_sentinel(bucket);
         q = ngx_queue_next(q))
    {
        e = ngx_queue_data(q, ngx_http_llm_entry_t, bucket);

        if (ngx_memcmp(e->key, key, 16) == 0) {
            return e;
        }
    }

    return NULL;
}


/* NULL: there is no room, and the request goes on without an entry */

static ngx_http_llm_entry_t *
ngx_http_llm_idem_create(ngx_shm_zone_t *zone, ngx_http_llm_body_t *body)
{
    ngx_http_llm_entry_t  *e;
    ngx_http_llm_store_t  *store;

    store = zone->data;

    e = ngx_http_llm_idem_alloc(zone, sizeof(ngx_http_llm_entry_t));
    if (e == NULL) {
        return NULL;
    }

    ngx_memzero(e, sizeof(ngx_http_llm_entry_t));
    ngx_memcpy(e->key, body->key, 16);
    ngx_memcpy(e->digest, body->digest, 16);

    e->owner = ngx_pid;
    e->stream = body->ctx->stream;

    ngx_queue_insert_tail(ngx_http_llm_idem_bucket(store, e->key),
                          &e->bucket);
    ngx_queue_insert_tail(&store->age, &e->age);

    return e;
}


/* the oldest answers make room */

static void *
ngx_http_llm_idem_alloc(ngx_shm_zone_t *zone, size_t size)
{
    void                  *p;
    ngx_queue_t           *q, *next;
    ngx_slab_pool_t       *shpool;
    ngx_http_llm_entry_t  *e;
    ngx_http_llm_store_t  *store;

    store = zone->data;
    shpool = ngx_http_llm_idem_pool(zone);

    p = ngx_slab_alloc_locked(shpool, size);

    for (q = ngx_queue_head(&store->age);
         p == NULL && q != ngx_queue_sentinel(&store->age);
         q = next)
    {
        next = ngx_queue_next(q);
        e = ngx_queue_data(q, ngx_http_llm_entry_t, age);

        if (e->owner
            && !(kill(e->owner, 0) == -1 && ngx_errno == NGX_ESRCH))
        {
            continue;
        }

        ngx_http_llm_idem_remove(zone, e);
        p = ngx_slab_alloc_locked(shpool, size);
    }

    return p;
}


static void
ngx_http_llm_idem_remove(ngx_shm_zone_t *zone, ngx_http_llm_entry_t *e)
{
    ngx_slab_pool_t      *shpool;
    ngx_http_llm_page_t  *page;

    shpool = ngx_http_llm_idem_pool(zone);

    ngx_queue_remove(&e->bucket);
    ngx_queue_remove(&e->age);

    while (e->first) {
        page = e->first;
        e->first = page->next;
        ngx_slab_free_locked(shpool, page);
    }

    ngx_slab_free_locked(shpool, e);
}


/* NGX_ERROR: the answer is too large for the store, or that has no room */

static ngx_int_t
ngx_http_llm_idem_append(ngx_shm_zone_t *zone, ngx_http_llm_entry_t *e,
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
            page = ngx_http_llm_idem_alloc(zone, ngx_pagesize);
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


/* output of the owner */

void
ngx_http_llm_idem_add(ngx_http_llm_ctx_t *ctx, const char *data, size_t len)
{
    ngx_shm_zone_t   *zone;
    ngx_slab_pool_t  *shpool;

    zone = ctx->main->idem;
    shpool = ngx_http_llm_idem_pool(zone);

    ngx_shmtx_lock(&shpool->mutex);

    if (ngx_http_llm_idem_append(zone, ctx->entry, data, len) != NGX_OK) {
        ngx_http_llm_idem_remove(zone, ctx->entry);
        ctx->entry = NULL;
    }

    ngx_shmtx_unlock(&shpool->mutex);

    if (ctx->entry == NULL) {
        ngx_log_error(NGX_LOG_INFO, ctx->request->connection->log, 0,
                      "llm: the answer is too large for \"llm_idempotency\"");
    }
}


/* the owner's answer is complete, or there will be none */

void
ngx_http_llm_idem_end(ngx_http_llm_ctx_t *ctx, ngx_uint_t complete)
{
    ngx_shm_zone_t   *zone;
    ngx_slab_pool_t  *shpool;

    zone = ctx->main->idem;
    shpool = ngx_http_llm_idem_pool(zone);

    ngx_shmtx_lock(&shpool->mutex);

    if (complete) {
        ctx->entry->until = ngx_time() + ctx->main->idem_valid;
        ctx->entry->owner = 0;

    } else {
        ngx_http_llm_idem_remove(zone, ctx->entry);
    }

    ctx->entry = NULL;

    ngx_shmtx_unlock(&shpool->mutex);
}


/*
 * The client leaves before it has read an answer that was computed to its
 * end: the rest is for when it asks again.
 */

void
ngx_http_llm_idem_finish(ngx_http_llm_ctx_t *ctx)
{
    int         rc;
    llm_buf_t   out;
    ngx_uint_t  complete;

    complete = 0;

    if (ctx->done && !ctx->stream && !ctx->failed && !ctx->broken) {

        do {
            llm_buf_init(&out, 0);
            rc = llm_api_body_next(ctx->api, ctx->conf->stream_buffer, &out);

            if (out.len) {
                ngx_http_llm_idem_add(ctx, out.data, out.len);
            }

            llm_buf_free(&out);

        } while (rc == LLM_MORE && ctx->entry);

        complete = (rc == LLM_OK);
    }

    if (ctx->entry) {
        ngx_http_llm_idem_end(ctx, complete);
    }
}


/* the message, which is not needed any more, becomes the answer */

static ngx_int_t
ngx_http_llm_idem_copy(ngx_http_llm_body_t *body, ngx_http_llm_entry_t *e)
{
    ngx_http_llm_page_t  *page;

    llm_buf_free(&body->msg);
    llm_buf_init(&body->msg, 0);

    for (page = e->first; page; page = page->next) {
        (void) llm_buf_add(&body->msg, page->data, page->len);
    }

    if (body->msg.failed) {
        llm_fail(&body->err, "No memory is left for this answer.");
        return NGX_ERROR;
    }

    return NGX_DONE;
}


static ngx_int_t
ngx_http_llm_idem_replay(ngx_http_llm_body_t *body)
{
    const char          *type;
    ngx_http_request_t  *r;

    r = body->ctx->request;
    type = "application/json";

    if (body->ctx->stream) {
        type = "text/event-stream";

        if (ngx_http_llm_add_header(r, "Cache-Control", "no-cache", 8)
            != NGX_OK
            || ngx_http_llm_add_header(r, "X-Accel-Buffering", "no", 2)
               != NGX_OK)
        {
            llm_buf_free(&body->msg);
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    if (ngx_http_llm_add_header(r, "Idempotent-Replayed", "true", 4)
        != NGX_OK)
    {
        llm_buf_free(&body->msg);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_llm_send_body(r, NGX_HTTP_OK, type, &body->msg);
}


/* another request computes the answer: looks again from time to time */

static ngx_int_t
ngx_http_llm_idem_wait(ngx_http_llm_body_t *body)
{
    ngx_connection_t    *c;
    ngx_http_cleanup_t  *cln;
    ngx_http_llm_ctx_t  *ctx;
    ngx_http_request_t  *r;

    ctx = body->ctx;
    r = ctx->request;
    c = r->connection;

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        llm_fail(&body->err, "No memory is left for this request.");
        return NGX_ERROR;
    }

    cln->handler = ngx_http_llm_idem_gone;
    cln->data = body;

    r->write_event_handler = ngx_http_request_empty_handler;

    if (ctx->conf->ignore_client_abort) {
        r->read_event_handler = ngx_http_block_reading;

    } else {
        r->read_event_handler = ngx_http_test_reading;

        if (c->read->ready) {
            ngx_post_event(c->read, &ngx_posted_events);
        }
    }

    c->log->action = "waiting for the answer of the same request";

    ctx->timer.handler = ngx_http_llm_idem_timer;
    ctx->timer.data = body;
    ctx->timer.log = c->log;

    ngx_add_timer(&ctx->timer, NGX_HTTP_LLM_IDEM_LOOK);

    return NGX_DONE;
}


static void
ngx_http_llm_idem_timer(ngx_event_t *ev)
{
    ngx_int_t             rc;
    ngx_connection_t     *c;
    ngx_http_llm_ctx_t   *ctx;
    ngx_http_request_t   *r;
    ngx_http_llm_body_t  *body;

    body = ev->data;
    ctx = body->ctx;
    r = ctx->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    rc = ngx_http_llm_idem_look(body);

    if (rc == NGX_AGAIN && ctx->conf->timeout
        && llm_now_us() - ctx->arrival_us
           > (uint64_t) ctx->conf->timeout * 1000)
    {
        llm_fail_with(&body->err, 504, "timeout", NULL,
                      "The request took longer than the server allows.");
        rc = NGX_ERROR;
    }

    switch (rc) {

    case NGX_AGAIN:
        ngx_add_timer(ev, NGX_HTTP_LLM_IDEM_LOOK);
        return;

    case NGX_OK:
        ngx_http_llm_submit(body);
        break;

    case NGX_DONE:
        ngx_http_finalize_request(r, ngx_http_llm_idem_replay(body));
        break;

    default:
        llm_buf_free(&body->msg);
        ngx_http_finalize_request(r, ngx_http_llm_send_error(r, &body->err,
                                                             0));
    }

    ngx_http_run_posted_requests(c);
}


/* the client of a request that waits has gone, or it is over */

static void
ngx_http_llm_idem_gone(void *data)
{
    ngx_http_llm_body_t *body = data;

    llm_buf_free(&body->msg);
}
