/*
 * The bytes of a file that is fetched: they go from the filter into the memory
 * for media, or are dropped when the file is refused; and what is said of files
 * that have not come (ngx_http_llm_fetch.c).
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_media.h"


/* most bytes of a URL in an error's message */
#define NGX_HTTP_LLM_SHOWN_URL  200


static void ngx_http_llm_fetch_add(ngx_http_llm_fetched_t *f,
    ngx_http_request_t *sr, u_char *p, size_t size);
static ngx_int_t ngx_http_llm_fetch_room(ngx_http_llm_fetched_t *f,
    ngx_http_request_t *sr);
static ngx_int_t ngx_http_llm_fetch_refuse(ngx_http_llm_fetched_t *f,
    ngx_uint_t status, const char *code, const char *fmt, ...);


llm_media_ref_t *
ngx_http_llm_fetch_list(ngx_http_llm_body_t *body, ngx_uint_t *n)
{
    llm_request_t  *msg;

    msg = (llm_request_t *) body->msg.data;
    *n = msg->media.len;

    return (llm_media_ref_t *) (body->msg.data + msg->media.off);
}


/* The subrequest has ended.  A result that would end the client's request, too,
   only marks the file as failed. */

ngx_int_t
ngx_http_llm_fetch_done(ngx_http_request_t *r, void *data, ngx_int_t rc)
{
    ngx_http_llm_fetched_t *f = data;

    if (r->connection->error) {
        return rc;
    }

    switch (rc) {

    case NGX_ERROR:
    case NGX_HTTP_REQUEST_TIME_OUT:
    case NGX_HTTP_CLIENT_CLOSED_REQUEST:
    case NGX_HTTP_CLOSE:
        f->failed = 1;
        return NGX_OK;

    default:
        return rc;
    }
}


/* an error that names the file */

static ngx_int_t
ngx_http_llm_fetch_refuse(ngx_http_llm_fetched_t *f, ngx_uint_t status,
    const char *code, const char *fmt, ...)
{
    char                  why[192], place[192];
    va_list               args;
    ngx_uint_t            n;
    llm_media_ref_t      *m;
    ngx_http_llm_body_t  *body;

    f->refused = 1;
    body = f->body;

    if (!f->subrequest->done) {
        ngx_post_event(&f->stop, &ngx_posted_events);
    }

    m = ngx_http_llm_fetch_list(body, &n) + f->index;

    va_start(args, fmt);
    (void) vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);

    (void) snprintf(place, sizeof(place), "%.*s", (int) m->place.len,
                    body->msg.data + m->place.off);

    llm_fail_with(&body->err, status, code, place,
                  "The file at '%.*s' %s", (int) ngx_min(f->url.len,
                                                    NGX_HTTP_LLM_SHOWN_URL),
                  (char *) f->url.data, why);
    body->retry_after = (status == 429);

    return NGX_ERROR;
}


/* judges the file that has come, or has not */

ngx_int_t
ngx_http_llm_fetch_result(ngx_http_llm_fetched_t *f)
{
    ngx_uint_t            n;
    llm_media_ref_t      *m;
    ngx_http_request_t   *sr;

    sr = f->subrequest;
    m = ngx_http_llm_fetch_list(f->body, &n) + f->index;

    if (f->refused) {
        return NGX_ERROR;
    }

    if (f->timedout && f->last) {
        llm_fail_with(&f->body->err, 504, "timeout", NULL,
                      "The request took longer than the server allows.");
        return NGX_ERROR;
    }

    if (f->timedout) {
        return ngx_http_llm_fetch_refuse(f, 400, "media_fetch_failed",
                                         "did not come within %lu ms "
                                         "(llm_fetch).",
                                         (unsigned long) f->fetch->timeout);
    }

    if (!f->failed && sr->headers_out.status != NGX_HTTP_OK) {
        return ngx_http_llm_fetch_refuse(f, 400, "media_fetch_failed",
                                         "could not be fetched: the answer "
                                         "has the status %lu.",
                                         (unsigned long)
                                         sr->headers_out.status);
    }

    if (f->failed || m->block.n == 0
        || (sr->headers_out.content_length_n != -1
            && sr->headers_out.content_length_n != (off_t) f->len))
    {
        return ngx_http_llm_fetch_refuse(f, 400, "media_fetch_failed",
                                         f->failed || f->len
                                         ? "could not be fetched: its "
                                           "transfer was cut off."
                                         : "is empty.");
    }

    llm_media_shrink(f->body->ctx->main->zone, f->body->conf.holder,
                     &m->block, f->len);

    return NGX_OK;
}


/* called by the filter, with a part of the answer */

ngx_int_t
ngx_http_llm_fetch_body(ngx_http_request_t *r, ngx_chain_t *in)
{
    size_t                   size;
    ngx_buf_t               *b;
    ngx_chain_t             *cl;
    ngx_http_llm_fetched_t  *f;

    if (r->post_subrequest == NULL
        || r->post_subrequest->handler != ngx_http_llm_fetch_done)
    {
        return NGX_DECLINED;
    }

    f = r->post_subrequest->data;

    for (cl = in; cl; cl = cl->next) {
        b = cl->buf;
        size = ngx_buf_in_memory(b) ? b->last - b->pos : 0;

        if (size && !f->refused && !f->timedout
            && r->headers_out.status == NGX_HTTP_OK)
        {
            ngx_http_llm_fetch_add(f, r, b->pos, size);
        }

        b->pos = b->last;
        b->file_pos = b->file_last;
    }

    return NGX_OK;
}


static void
ngx_http_llm_fetch_add(ngx_http_llm_fetched_t *f, ngx_http_request_t *sr,
    u_char *p, size_t size)
{
    u_char           *to;
    ngx_uint_t        n;
    llm_media_ref_t  *m;

    m = ngx_http_llm_fetch_list(f->body, &n) + f->index;

    if (m->block.n == 0 && ngx_http_llm_fetch_room(f, sr) != NGX_OK) {
        return;
    }

    if (size > m->block.len - f->len) {
        (void) ngx_http_llm_fetch_refuse(f, 400, "media_too_large",
                                         "has more than %llu bytes "
                                         "(llm_max_image_size).",
                                         (unsigned long long) m->block.len);
        return;
    }

    to = llm_media_data(f->body->ctx->main->zone, &m->block);
    ngx_memcpy(to + f->len, p, size);
    f->len += size;
}


/* takes memory for the file: as much as its length, or as is allowed */

static ngx_int_t
ngx_http_llm_fetch_room(ngx_http_llm_fetched_t *f, ngx_http_request_t *sr)
{
    size_t            max, left, size;
    ngx_str_t        *type;
    ngx_uint_t        n;
    llm_zone_t       *zone;
    llm_media_ref_t  *list, *m;

    zone = f->body->ctx->main->zone;
    list = ngx_http_llm_fetch_list(f->body, &n);
    m = list + f->index;
    type = &sr->headers_out.content_type;
    max = f->body->conf.media.max_size;
    size = max;

    if (type->len >= 5 && ngx_strncasecmp(type->data, (u_char *) "text/", 5)
                          == 0)
    {
        return ngx_http_llm_fetch_refuse(f, 400, "media_fetch_failed",
                                         "is \"%.*s\", not %s.",
                                         (int) ngx_min(type->len, 64),
                                         (char *) type->data,
                                         m->kind == LLM_MEDIUM_IMAGE
                                         ? "an image" : "a sound");
    }

    if (sr->headers_out.content_length_n > 0) {
        if (sr->headers_out.content_length_n > (off_t) max) {
            return ngx_http_llm_fetch_refuse(f, 400, "media_too_large",
                                             "has %lld bytes, more than the "
                                             "%zu that this server takes "
                                             "(llm_max_image_size).",
                                             (long long)
                                             sr->headers_out.content_length_n,
                                             max);
        }

        size = sr->headers_out.content_length_n;
    }

    left = llm_media_left(zone, list, n);

    if (sr->headers_out.content_length_n == -1) {
        size = ngx_min(size, left);
    }

    if (size == 0 || size > left) {
        return ngx_http_llm_fetch_refuse(f, 400, "media_too_large",
                                         "does not fit with the others of "
                                         "this request into the memory for "
                                         "images and sounds "
                                         "(llm_media_memory).");
    }

    if (llm_media_alloc(zone, f->body->conf.holder, size, &m->block)
        == LLM_OK)
    {
        return NGX_OK;
    }

    llm_media_refused(zone);

    return ngx_http_llm_fetch_refuse(f, 429, "media_memory_full",
                                     "has no room now: the images and sounds "
                                     "of other requests take it "
                                     "(llm_media_memory).");
}
