/*
 * Idempotency-Key: a request that is sent again with the key of an earlier one
 * gets the earlier one's answer, byte for byte, and is not computed again.
 *
 * - The first request with a key owns its entry in the store
 *   (ngx_http_llm_store.c), and writes the answer there while it is sent, also
 *   when it is streamed.  Later requests wait until the answer is complete, and
 *   get it at once.  A request with the same key and another body gets a 409.
 * - Only complete answers without an error are kept.  If the owner fails, its
 *   client leaves, or its worker dies, the entry is removed; the next request
 *   with the key owns a new one.
 * - The engine does not count the memory of requests that wait and of answers
 *   that are sent again.  In each worker they may take the worker's part of
 *   llm_queue's memory=.
 */

#include "http/access/ngx_http_llm_idempotency.h"
#include "http/access/ngx_http_llm_keys.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"

#include <ngx_md5.h>

/* interval at which a waiting request looks for the answer, in milliseconds; it
   grows from the first value to the second */
#define NGX_HTTP_LLM_IDEM_LOOK     50
#define NGX_HTTP_LLM_IDEM_RARELY   500

/* most bytes of a key */
#define NGX_HTTP_LLM_IDEM_KEY      255


/* data of a request with a key, in r->pool */

typedef struct {
    u_char                       digest[16];    /* of path and body; written by
                                                   input() */
    u_char                       key[16];       /* the entry's key */
    ngx_md5_t                    md5;           /* of the body so far */
    ngx_uint_t                   begun;         /* 1: md5 has begun */
    ngx_http_llm_entry_t        *entry;         /* entry that this request owns;
                                                   NULL: none */
} ngx_http_llm_idem_t;


static ngx_int_t ngx_http_llm_idem_init(ngx_http_llm_body_t *body);
static void ngx_http_llm_idem_digest(ngx_http_llm_body_t *body, u_char *p,
    size_t size);
static void ngx_http_llm_idem_key(ngx_http_llm_ctx_t *ctx, uint64_t tenant,
    ngx_str_t *header, u_char *key);
static ngx_int_t ngx_http_llm_idem_begin(ngx_http_llm_body_t *body);
static ngx_int_t ngx_http_llm_idem_look(ngx_http_llm_body_t *body);
static ngx_int_t ngx_http_llm_idem_copy(ngx_http_llm_body_t *body,
    ngx_http_llm_entry_t *e);
static ngx_int_t ngx_http_llm_idem_wait(ngx_http_llm_body_t *body);
static void ngx_http_llm_idem_timer(ngx_event_t *ev);
static void ngx_http_llm_idem_set_timer(ngx_http_llm_ctx_t *ctx);
static ngx_int_t ngx_http_llm_idem_replay(ngx_http_llm_body_t *body);
static void ngx_http_llm_idem_add(ngx_http_llm_ctx_t *ctx, const char *data,
    size_t len);
static void ngx_http_llm_idem_end(ngx_http_llm_ctx_t *ctx, ngx_uint_t complete);
static void ngx_http_llm_idem_finish(ngx_http_llm_ctx_t *ctx);


ngx_http_llm_stage_t  ngx_http_llm_idem_stage = {
    .body = ngx_http_llm_idem_init,
    .input = ngx_http_llm_idem_digest,
    .parsed = ngx_http_llm_idem_begin,
    .bytes = ngx_http_llm_idem_add,
    .whole = ngx_http_llm_idem_end,
    .cleanup = ngx_http_llm_idem_finish
};


static const char  ngx_http_llm_idem_full[] =
    "too many requests with an Idempotency-Key wait for their answers or for "
    "their clients (llm_queue memory=)";


#define ngx_http_llm_idem_conf(ctx)                                           \
    ((ngx_http_llm_idem_conf_t *)                                             \
         ngx_http_llm_get_main_conf((ctx)->main,                              \
                                    ngx_http_llm_idempotency_module))

#define ngx_http_llm_idem_pool(zone)                                          \
    ((ngx_slab_pool_t *) (zone)->shm.addr)


/* value of the header; NGX_DECLINED: not sent, or llm_idempotency is off */

static ngx_int_t
ngx_http_llm_idem_header(ngx_http_request_t *r, ngx_str_t *value)
{
    ngx_http_llm_idem_conf_t   *imcf;
    ngx_http_variable_value_t  *v;

    imcf = ngx_http_get_module_main_conf(r, ngx_http_llm_idempotency_module);

    if (imcf->zone == NULL) {
        return NGX_DECLINED;
    }

    v = ngx_http_get_indexed_variable(r, imcf->header);

    if (v == NULL || v->not_found || v->len == 0) {
        return NGX_DECLINED;
    }

    value->data = v->data;
    value->len = v->len;

    return NGX_OK;
}


/* does the request have a key?  Requests without a body need none */

static ngx_int_t
ngx_http_llm_idem_init(ngx_http_llm_body_t *body)
{
    ngx_str_t             header;
    ngx_http_request_t   *r;
    ngx_http_llm_idem_t  *idem;

    r = body->ctx->request;

    if (llm_api_bodiless(body->ctx->reply->endpoint)
        || ngx_http_llm_idem_header(r, &header) != NGX_OK)
    {
        return NGX_OK;
    }

    idem = ngx_pcalloc(r->pool, sizeof(ngx_http_llm_idem_t));
    if (idem == NULL) {
        return NGX_ERROR;
    }

    ngx_http_llm_set_data(body->ctx, idem, ngx_http_llm_idem_stage);

    return NGX_OK;
}


/* the digest includes the path: the same body means something else elsewhere */

static void
ngx_http_llm_idem_digest(ngx_http_llm_body_t *body, u_char *p, size_t size)
{
    ngx_md5_t             md5;
    ngx_str_t            *uri;
    ngx_http_llm_idem_t  *idem;

    idem = ngx_http_llm_get_data(body->ctx, ngx_http_llm_idem_stage);

    if (idem == NULL) {
        return;
    }

    uri = &body->ctx->request->uri;

    /* a form comes in pieces */

    if (!idem->begun) {
        idem->begun = 1;
        ngx_md5_init(&idem->md5);
        ngx_md5_update(&idem->md5, uri->data, uri->len);
        ngx_md5_update(&idem->md5, "", 1);
    }

    ngx_md5_update(&idem->md5, p, size);
    md5 = idem->md5;
    ngx_md5_final(idem->digest, &md5);
}


/*
 * The key of an entry.  Clients with the same tenant are distinguished by their
 * credentials, because a proxy may have one address for many clients.  A
 * checked API key is represented by its id, in a form that no header can have.
 */

static void
ngx_http_llm_idem_key(ngx_http_llm_ctx_t *ctx, uint64_t tenant,
    ngx_str_t *header, u_char *key)
{
    ngx_md5_t                   md5;
    const char                 *id;
    const llm_key_t            *checked;
    ngx_table_elt_t            *auth;
    ngx_http_request_t         *r;
    ngx_http_variable_value_t  *api_key;

    r = ctx->request;
    auth = r->headers_in.authorization;
    api_key = ngx_http_llm_x_api_key(r);

    ngx_md5_init(&md5);
    ngx_md5_update(&md5, &tenant, sizeof(tenant));

    checked = ngx_http_llm_key(r);

    if (checked) {
        id = llm_key_member(checked, "id", 2);
        auth = NULL;
        api_key = NULL;

        ngx_md5_update(&md5, "\0", 2);
        ngx_md5_update(&md5, id, ngx_strlen(id));
    }

    if (auth) {
        ngx_md5_update(&md5, auth->value.data, auth->value.len);
    }

    ngx_md5_update(&md5, "", 1);

    if (api_key && !api_key->not_found) {
        ngx_md5_update(&md5, api_key->data, api_key->len);
    }

    ngx_md5_update(&md5, "", 1);
    ngx_md5_update(&md5, header->data, header->len);
    ngx_md5_final(key, &md5);
}


/*
 * A request with a key.  NGX_OK: it is to be computed; NGX_DONE: its answer was
 * sent, or it waits; NGX_ERROR and *err: it is refused.
 */

static ngx_int_t
ngx_http_llm_idem_begin(ngx_http_llm_body_t *body)
{
    ngx_int_t             rc;
    ngx_str_t             header;
    llm_request_t        *msg;
    ngx_http_llm_ctx_t   *ctx;
    ngx_http_llm_idem_t  *idem;

    ctx = body->ctx;
    idem = ngx_http_llm_get_data(ctx, ngx_http_llm_idem_stage);

    if (idem == NULL
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
    ngx_http_llm_idem_key(ctx, msg->tenant, &header, idem->key);

    rc = ngx_http_llm_idem_look(body);

    switch (rc) {

    case NGX_AGAIN:
        rc = ngx_http_llm_idem_wait(body);
        break;

    case NGX_DONE:
        ngx_http_finalize_request(ctx->request,
                                  ngx_http_llm_idem_replay(body));
        return NGX_DONE;

    default:
        break;
    }

    body->retry_after = (rc == NGX_ERROR && body->err.status == 429);

    return rc;
}


/*
 * NGX_OK: this request owns the entry, or there is no room for one; NGX_AGAIN:
 * another request owns it; NGX_DONE: body->msg has the answer; NGX_ERROR
 */

static ngx_int_t
ngx_http_llm_idem_look(ngx_http_llm_body_t *body)
{
    ngx_int_t              rc;
    ngx_shm_zone_t        *zone;
    ngx_slab_pool_t       *shpool;
    ngx_http_llm_idem_t   *idem;
    ngx_http_llm_entry_t  *e;

    idem = ngx_http_llm_get_data(body->ctx, ngx_http_llm_idem_stage);
    zone = ngx_http_llm_idem_conf(body->ctx)->zone;
    shpool = ngx_http_llm_idem_pool(zone);

    ngx_shmtx_lock(&shpool->mutex);

    e = ngx_http_llm_store_find(zone, idem->key);

    if (e == NULL) {
        idem->entry = ngx_http_llm_store_create(zone, idem->key,
                                                idem->digest);
        rc = NGX_OK;

    } else if (ngx_memcmp(e->digest, idem->digest, 16) != 0) {
        llm_fail_with(&body->err, 409, "idempotency_key_reused", NULL,
                      "This Idempotency-Key was used for another request.");
        rc = NGX_ERROR;

    } else if (e->owner) {
        rc = NGX_AGAIN;

    } else {
        rc = ngx_http_llm_idem_copy(body, e);
    }

    ngx_shmtx_unlock(&shpool->mutex);

    /* client libraries would retry a 409 */

    if (rc == NGX_ERROR && body->err.status == 409
        && ngx_http_llm_add_header(body->ctx->request, "x-should-retry",
                                   "false", 5)
           != NGX_OK)
    {
        llm_fail(&body->err, "No memory is left for this answer.");
    }

    return rc;
}


/* keeps output of the owner */

static void
ngx_http_llm_idem_add(ngx_http_llm_ctx_t *ctx, const char *data, size_t len)
{
    ngx_shm_zone_t       *zone;
    ngx_slab_pool_t      *shpool;
    ngx_http_llm_idem_t  *idem;

    idem = ngx_http_llm_get_data(ctx, ngx_http_llm_idem_stage);

    if (idem == NULL || idem->entry == NULL) {
        return;
    }

    zone = ngx_http_llm_idem_conf(ctx)->zone;
    shpool = ngx_http_llm_idem_pool(zone);

    ngx_shmtx_lock(&shpool->mutex);

    if (ngx_http_llm_store_append(zone, idem->entry, data, len) != NGX_OK) {
        ngx_http_llm_store_remove(zone, idem->entry);
        idem->entry = NULL;
    }

    ngx_shmtx_unlock(&shpool->mutex);

    if (idem->entry == NULL) {
        ngx_log_error(NGX_LOG_INFO, ctx->request->connection->log, 0,
                      "llm: the answer is too large for \"llm_idempotency\"");
    }
}


/* the owner's answer is complete, or there will be none */

static void
ngx_http_llm_idem_end(ngx_http_llm_ctx_t *ctx, ngx_uint_t complete)
{
    ngx_shm_zone_t       *zone;
    ngx_slab_pool_t      *shpool;
    ngx_http_llm_idem_t  *idem;

    idem = ngx_http_llm_get_data(ctx, ngx_http_llm_idem_stage);

    if (idem == NULL || idem->entry == NULL) {
        return;
    }

    zone = ngx_http_llm_idem_conf(ctx)->zone;
    shpool = ngx_http_llm_idem_pool(zone);

    ngx_shmtx_lock(&shpool->mutex);

    if (complete) {
        idem->entry->until = ngx_time()
                             + ngx_http_llm_idem_conf(ctx)->valid;
        idem->entry->owner = 0;

    } else {
        ngx_http_llm_store_remove(zone, idem->entry);
    }

    idem->entry = NULL;

    ngx_shmtx_unlock(&shpool->mutex);
}


/*
 * The client has left before it has read an answer that is completely computed:
 * the rest is stored for when it asks again.
 */

static void
ngx_http_llm_idem_finish(ngx_http_llm_ctx_t *ctx)
{
    int                   rc;
    llm_buf_t             out;
    ngx_uint_t            complete;
    ngx_http_llm_idem_t  *idem;

    idem = ngx_http_llm_get_data(ctx, ngx_http_llm_idem_stage);

    if (idem == NULL || idem->entry == NULL) {
        return;
    }

    complete = 0;

    if (ctx->done && !ctx->stream && !ctx->failed && !ctx->broken) {

        do {
            llm_buf_init(&out, 0);
            rc = llm_api_body_next(ctx->api, ctx->conf->stream_buffer, &out);

            if (out.len) {
                ngx_http_llm_idem_add(ctx, out.data, out.len);
            }

            llm_buf_free(&out);

        } while (rc == LLM_MORE && idem->entry);

        complete = (rc == LLM_OK);
    }

    ngx_http_llm_idem_end(ctx, complete);
}


/* the answer replaces the message, which is not needed any more */

static ngx_int_t
ngx_http_llm_idem_copy(ngx_http_llm_body_t *body, ngx_http_llm_entry_t *e)
{
    ngx_http_llm_free_message(body);
    llm_buf_init(&body->msg, 0);

    if (ngx_http_llm_hold(body, e->len, ngx_http_llm_idem_full) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_llm_store_copy(e, &body->msg);

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
        type = llm_api_stream_type(body->ctx->api);

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


/* another request computes the answer: looks for it by a timer */

static ngx_int_t
ngx_http_llm_idem_wait(ngx_http_llm_body_t *body)
{
    ngx_http_llm_ctx_t  *ctx;
    ngx_http_request_t  *r;

    ctx = body->ctx;
    r = ctx->request;

    if (ngx_http_llm_hold_message(body, ngx_http_llm_idem_full) != NGX_OK) {
        return NGX_ERROR;
    }

    body->brief = 0;
    r->write_event_handler = ngx_http_request_empty_handler;

    ngx_http_llm_watch(ctx, "waiting for the answer of the same request",
                       ngx_http_llm_idem_timer, body);
    ngx_http_llm_idem_set_timer(ctx);

    return NGX_DONE;
}


static void
ngx_http_llm_idem_set_timer(ngx_http_llm_ctx_t *ctx)
{
    uint64_t  ms;

    ms = (llm_now_us() - ctx->arrival_us) / 1000 / 16;
    ms = ngx_max(ms, NGX_HTTP_LLM_IDEM_LOOK);

    ngx_add_timer(&ctx->timer, ngx_min(ms, NGX_HTTP_LLM_IDEM_RARELY));
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
        ngx_http_llm_idem_set_timer(ctx);
        return;

    case NGX_OK:
        (void) ngx_http_llm_hold(body, 0, NULL);    /* the engine counts it */
        ngx_http_llm_go_on(body, NGX_OK);
        break;

    case NGX_DONE:
        ngx_http_finalize_request(r, ngx_http_llm_idem_replay(body));
        break;

    default:
        body->retry_after = (body->err.status == 429);
        ngx_http_llm_go_on(body, NGX_ERROR);
    }

    ngx_http_run_posted_requests(c);
}
