/*
 * llm_fetch: the files that a request's images name by URLs are fetched, one
 * after another, by subrequests to a location of the operator's, which has the
 * URL as $llm_fetch_url.  The bytes go from the location's output filters into
 * the memory for media; nothing of them reaches the client's connection.
 *
 * - A subrequest is a GET with none of the client's headers and without its
 *   body.  It has variables of its own, so that no map or other value that was
 *   computed for one URL, or for the client's request, decides about another.
 * - The block of a file is in the message from its first byte on, so it is
 *   freed with the message.
 * - A file that is refused, and one that is late, is not read to its end: the
 *   subrequest is ended if it has an upstream.  If it has none, the request
 *   waits until it has ended by itself, and its bytes are dropped.  A filter
 *   must not return an error for that: nginx would close the client's
 *   connection.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_media.h"


static void ngx_http_llm_media_allow(ngx_http_llm_ctx_t *ctx,
    llm_api_conf_t *conf);
static ngx_int_t ngx_http_llm_fetch_media(ngx_http_llm_body_t *body);
static ngx_int_t ngx_http_llm_fetch_next(ngx_http_llm_fetched_t *f);
static ngx_int_t ngx_http_llm_fetch_request(ngx_http_llm_fetched_t *f);
static ngx_int_t ngx_http_llm_fetch_headers(ngx_http_request_t *r,
    ngx_http_headers_in_t *in);
static ngx_int_t ngx_http_llm_fetch_variables(ngx_http_llm_fetched_t *f);
static void ngx_http_llm_fetch_wait(ngx_http_llm_fetched_t *f);
static void ngx_http_llm_fetch_write_handler(ngx_http_request_t *r);
static void ngx_http_llm_fetch_timer_handler(ngx_event_t *ev);
static void ngx_http_llm_fetch_stop_handler(ngx_event_t *ev);
static void ngx_http_llm_fetch_stop(ngx_http_llm_fetched_t *f);
static void ngx_http_llm_fetch_cleanup(void *data);
static void ngx_http_llm_fetch_end(ngx_http_llm_fetched_t *f, ngx_int_t rc);


ngx_http_llm_stage_t  ngx_http_llm_media_stage = {
    .allow = ngx_http_llm_media_allow,
    .parsed = ngx_http_llm_fetch_media
};


/* what the location allows of images and sound */

static void
ngx_http_llm_media_allow(ngx_http_llm_ctx_t *ctx, llm_api_conf_t *conf)
{
    ngx_str_t                   uri;
    ngx_http_llm_media_conf_t  *lmcf;

    lmcf = ngx_http_llm_get_loc_conf(ctx->conf, ngx_http_llm_media_module);

    conf->holder = llm_client_holder(ctx->main->worker->client);
    conf->media.most = (uint32_t) lmcf->max_images;
    conf->media.max_size = lmcf->max_size;
    conf->media.max_pixels = lmcf->max_pixels;
    conf->media.max_sound = lmcf->sound_size;
    conf->media.max_seconds = (uint32_t) lmcf->max_seconds;
    conf->media.skip = (lmcf->skip != 0);
    conf->media.fetch = lmcf->fetch
                        && ngx_http_complex_value(ctx->request,
                                                  &lmcf->fetch->uri.value,
                                                  &uri)
                           == NGX_OK
                        && uri.len;
}


/* fetches the media of a request that have a URL */

static ngx_int_t
ngx_http_llm_fetch_media(ngx_http_llm_body_t *body)
{
    ngx_int_t                   rc;
    ngx_http_cleanup_t         *cln;
    ngx_http_llm_fetched_t     *f;
    ngx_http_llm_media_conf_t  *lmcf;

    lmcf = ngx_http_llm_get_loc_conf(body->ctx->conf,
                                     ngx_http_llm_media_module);

    if (!body->media || !body->conf.media.fetch) {
        return NGX_OK;
    }

    f = ngx_pcalloc(body->ctx->request->pool, sizeof(ngx_http_llm_fetched_t));
    cln = ngx_http_cleanup_add(body->ctx->request, 0);

    if (f == NULL || cln == NULL) {
        llm_fail(&body->err, "No memory is left for this request.");
        return NGX_ERROR;
    }

    cln->handler = ngx_http_llm_fetch_cleanup;
    cln->data = f;

    f->stop.handler = ngx_http_llm_fetch_stop_handler;
    f->stop.data = f;
    f->stop.log = body->ctx->request->connection->log;

    f->body = body;
    body->brief = 0;
    f->fetch = lmcf->fetch;
    ngx_http_llm_set_data(body->ctx, f, ngx_http_llm_media_stage);

    if (ngx_http_complex_value(body->ctx->request, &f->fetch->uri.value,
                               &f->uri)
        != NGX_OK)
    {
        llm_fail(&body->err, "No memory is left for this request.");
        return NGX_ERROR;
    }

    if (ngx_http_llm_uri_split(body->ctx->request, &f->fetch->uri, &f->uri,
                               &f->args)
        != NGX_OK)
    {
        llm_fail(&body->err, "The server cannot fetch files.");
        return NGX_ERROR;
    }

    rc = ngx_http_llm_fetch_next(f);

    if (rc != NGX_AGAIN) {
        return rc;
    }

    ngx_http_llm_fetch_wait(f);

    return NGX_DONE;
}


/* fetches the next file; NGX_OK: there is none, NGX_AGAIN: it is on its way */

static ngx_int_t
ngx_http_llm_fetch_next(ngx_http_llm_fetched_t *f)
{
    ngx_uint_t            n;
    llm_media_ref_t      *list;
    ngx_http_llm_body_t  *body;

    body = f->body;
    list = ngx_http_llm_fetch_list(body, &n);

    while (f->index < n
           && (list[f->index].url.len == 0 || list[f->index].block.n))
    {
        f->index++;
    }

    if (f->index == n) {
        return NGX_OK;
    }

    if (body->held == 0
        && ngx_http_llm_hold_message(body, "too many requests wait for files "
                                     "that are fetched (llm_queue memory=)")
           != NGX_OK)
    {
        body->retry_after = 1;
        return NGX_ERROR;
    }

    f->url.len = list[f->index].url.len;
    f->url.data = (u_char *) body->msg.data + list[f->index].url.off;
    f->len = 0;

    if (ngx_http_llm_fetch_request(f) != NGX_OK) {
        llm_fail(&body->err, "No memory is left for this request.");
        return NGX_ERROR;
    }

    return NGX_AGAIN;
}


/* allocates everything first: after ngx_http_subrequest() there is no way
   back */

static ngx_int_t
ngx_http_llm_fetch_request(ngx_http_llm_fetched_t *f)
{
    ngx_http_request_t          *r, *sr;
    ngx_http_headers_in_t        in;
    ngx_http_request_body_t     *rb;
    ngx_http_post_subrequest_t  *ps;

    r = f->body->ctx->request;

    ps = ngx_palloc(r->pool, sizeof(ngx_http_post_subrequest_t));
    rb = ngx_pcalloc(r->pool, sizeof(ngx_http_request_body_t));

    if (ps == NULL || rb == NULL || ngx_http_llm_fetch_variables(f) != NGX_OK
        || ngx_http_llm_fetch_headers(r, &in) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ps->handler = ngx_http_llm_fetch_done;
    ps->data = f;

    if (ngx_http_subrequest(r, &f->uri, &f->args, &sr, ps, 0)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    sr->headers_in = in;
    sr->request_body = rb;
    sr->variables = f->variables;
    sr->filter_need_in_memory = 1;

    f->subrequest = sr;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llm_fetch_headers(ngx_http_request_t *r, ngx_http_headers_in_t *in)
{
    ngx_memzero(in, sizeof(ngx_http_headers_in_t));

    in->server = r->headers_in.server;
    in->content_length_n = -1;
    in->keep_alive_n = -1;

    return ngx_list_init(&in->headers, r->pool, 1, sizeof(ngx_table_elt_t));
}


/* none has a value but $request_id, which is the same in all logs */

static ngx_int_t
ngx_http_llm_fetch_variables(ngx_http_llm_fetched_t *f)
{
    size_t                           size;
    ngx_http_request_t              *r;
    ngx_http_core_main_conf_t       *cmcf;
    ngx_http_llm_reply_main_conf_t  *rmcf;

    r = f->body->ctx->request;
    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);
    rmcf = ngx_http_get_module_main_conf(r, ngx_http_llm_filter_module);

    size = cmcf->variables.nelts * sizeof(ngx_http_variable_value_t);

    if (f->variables == NULL) {
        f->variables = ngx_palloc(r->pool, size);
        if (f->variables == NULL) {
            return NGX_ERROR;
        }
    }

    ngx_memzero(f->variables, size);
    f->variables[rmcf->request_id] = r->variables[rmcf->request_id];

    return NGX_OK;
}


ngx_int_t
ngx_http_llm_fetch_url(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    ngx_http_llm_ctx_t      *ctx;
    ngx_http_llm_fetched_t  *f;

    ctx = ngx_http_get_module_ctx(r->main, ngx_http_llm_module);
    f = (r != r->main && ctx && ctx->data)
        ? ngx_http_llm_get_data(ctx, ngx_http_llm_media_stage) : NULL;

    if (f == NULL || f->over) {
        v->not_found = 1;
        return NGX_OK;
    }

    v->len = f->url.len;
    v->data = f->url.data;
    v->valid = 1;
    v->no_cacheable = 1;
    v->not_found = 0;

    return NGX_OK;
}


/* ---- waiting ---- */

static void
ngx_http_llm_fetch_wait(ngx_http_llm_fetched_t *f)
{
    ngx_http_llm_ctx_t  *ctx;

    ctx = f->body->ctx;
    ctx->request->write_event_handler = ngx_http_llm_fetch_write_handler;

    f->last = ngx_http_llm_watch_for(ctx, f->fetch->timeout,
                                     "fetching files of a request",
                                     ngx_http_llm_fetch_timer_handler, f);
}


/* called when the subrequest has ended */

static void
ngx_http_llm_fetch_write_handler(ngx_http_request_t *r)
{
    ngx_int_t                rc;
    ngx_http_llm_ctx_t      *ctx;
    ngx_http_llm_fetched_t  *f;

    ctx = ngx_http_get_module_ctx(r, ngx_http_llm_module);
    f = ngx_http_llm_get_data(ctx, ngx_http_llm_media_stage);

    if (f->over || !f->subrequest->done) {
        return;
    }

    rc = ngx_http_llm_fetch_result(f);

    if (rc == NGX_OK) {
        rc = ngx_http_llm_fetch_next(f);
    }

    if (rc != NGX_AGAIN) {
        ngx_http_llm_fetch_end(f, rc);
    }
}


static void
ngx_http_llm_fetch_timer_handler(ngx_event_t *ev)
{
    ngx_http_llm_fetched_t *f = ev->data;

    f->timedout = 1;
    ngx_http_llm_fetch_stop(f);
}


static void
ngx_http_llm_fetch_stop_handler(ngx_event_t *ev)
{
    ngx_http_llm_fetch_stop(ev->data);
}


/* ends an upstream as nginx does before a request gets another one */

static void
ngx_http_llm_fetch_stop(ngx_http_llm_fetched_t *f)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *sr;

    sr = f->subrequest;
    c = sr->connection;

    ngx_http_set_log_request(c->log, sr);

    if (!sr->done && sr->upstream && sr->upstream->cleanup) {
        f->failed = 1;

        sr->main->count++;
        (*sr->upstream->cleanup)(sr);
        sr->buffered = 0;
        ngx_http_finalize_request(sr, NGX_OK);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_llm_fetch_cleanup(void *data)
{
    ngx_http_llm_fetched_t *f = data;

    if (f->stop.posted) {
        ngx_delete_posted_event(&f->stop);
    }
}


static void
ngx_http_llm_fetch_end(ngx_http_llm_fetched_t *f, ngx_int_t rc)
{
    ngx_http_llm_ctx_t  *ctx;

    ctx = f->body->ctx;
    f->over = 1;

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    (void) ngx_http_llm_hold(f->body, 0, NULL);

    ngx_http_llm_go_on(f->body, rc);
}
