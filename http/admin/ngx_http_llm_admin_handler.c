/*
 * Requests to llm_admin: which model or alias they are about, their bodies, and
 * the answers to those that only read.
 *
 * Nothing here blocks the event loop: threads read and write files, and a timer
 * looks for the result of a command.  If a client leaves, what its request has
 * already done remains.
 */

#include "http/admin/ngx_http_llm_admin.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_request.h"


/* ms: the longest time that an argument may have, and the defaults of timeout=
   and notice= */
#define NGX_HTTP_LLM_ADMIN_MOST     (24 * 3600 * 1000)
#define NGX_HTTP_LLM_ADMIN_TIMEOUT  30000
#define NGX_HTTP_LLM_ADMIN_NOTICE   1000


static ngx_http_llm_admin_request_t *ngx_http_llm_admin_create(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_llm_admin_find(ngx_http_llm_admin_request_t *a,
    llm_err_t *err);
static ngx_int_t ngx_http_llm_admin_found(ngx_http_llm_admin_request_t *a,
    llm_err_t *err);
static ngx_int_t ngx_http_llm_admin_allow(ngx_http_llm_admin_request_t *a,
    llm_err_t *err);
static ngx_int_t ngx_http_llm_admin_get(ngx_http_llm_admin_request_t *a);
static ngx_int_t ngx_http_llm_admin_read(ngx_http_llm_admin_request_t *a);
static void ngx_http_llm_admin_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_llm_admin_parse(ngx_http_llm_admin_request_t *a,
    llm_err_t *err);
static ngx_int_t ngx_http_llm_admin_time(ngx_http_request_t *r,
    const char *name, ngx_msec_t usual, ngx_msec_t *to, llm_err_t *err);


ngx_int_t
ngx_http_llm_admin_handler(ngx_http_request_t *r)
{
    llm_err_t                      err;
    ngx_http_llm_admin_request_t  *a;

    /* nginx makes access checks for a client's request, not for subrequests */

    if (r != r->main) {
        llm_fail_with(&err, 501, "subrequest_not_supported", NULL,
                      "llm_admin does not answer subrequests of nginx (SSI, "
                      "addition, mirror).");
        return ngx_http_llm_send_error(r, &err, 0);
    }

    a = ngx_http_llm_admin_create(r);
    if (a == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_llm_admin_find(a, &err) != NGX_OK
        || ngx_http_llm_admin_allow(a, &err) != NGX_OK
        || ngx_http_llm_admin_check_origin(r, &err) != NGX_OK)
    {
        return ngx_http_llm_admin_refuse(a, &err);
    }

    return (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))
           ? ngx_http_llm_admin_get(a) : ngx_http_llm_admin_read(a);
}


static ngx_http_llm_admin_request_t *
ngx_http_llm_admin_create(ngx_http_request_t *r)
{
    ngx_http_cleanup_t            *cln;
    ngx_http_llm_admin_request_t  *a;

    a = ngx_pcalloc(r->pool, sizeof(ngx_http_llm_admin_request_t));
    cln = ngx_http_cleanup_add(r, 0);

    if (a == NULL || cln == NULL) {
        return NULL;
    }

    a->request = r;
    a->main = ngx_http_get_module_main_conf(r, ngx_http_llm_module);
    a->admin = ngx_http_llm_admin_of(a->main);
    a->model = -1;

    ngx_http_llm_refresh_models(a->main);

    cln->handler = ngx_http_llm_admin_cleanup;
    cln->data = a;

    return a;
}


void
ngx_http_llm_admin_cleanup(void *data)
{
    ngx_http_llm_admin_request_t *a = data;

    if (a->timer.timer_set) {
        ngx_del_timer(&a->timer);
    }

    if (a->job) {
        a->job->request = NULL;
    }

    llm_buf_free(&a->body.flat);
}


/* ---- model or alias ---- */

static ngx_int_t
ngx_http_llm_admin_route(ngx_http_llm_admin_request_t *a)
{
    u_char                   *p, *last;
    llm_str_t                 path;
    ngx_http_request_t       *r;
    ngx_http_llm_loc_conf_t  *llcf;

    r = a->request;
    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    if (r->uri.len < llcf->prefix) {
        return NGX_DECLINED;
    }

    p = r->uri.data + llcf->prefix;
    last = r->uri.data + r->uri.len;

    if (p < last && *p != '/' && p[-1] != '/') {
        return NGX_DECLINED;
    }

    while (p < last && *p == '/') {
        p++;
    }

    path.data = (char *) p;
    path.len = last - p;

    return llm_admin_route(path, &a->to) == LLM_OK ? NGX_OK : NGX_DECLINED;
}


/* index of the model with exactly this name or alias=; -1: none */

static ngx_int_t
ngx_http_llm_admin_model(ngx_http_llm_admin_request_t *a, llm_str_t name)
{
    ngx_str_t  s;

    s.data = (u_char *) name.data;
    s.len = name.len;

    return ngx_http_llm_find_model(a->main, &s);
}


static ngx_int_t
ngx_http_llm_admin_find(ngx_http_llm_admin_request_t *a, llm_err_t *err)
{
    ngx_http_request_t  *r;

    r = a->request;

    if (ngx_http_llm_admin_route(a) != NGX_OK) {
        llm_fail_with(err, 404, "not_found", NULL, "There is nothing at "
                      "%.*s.", (int) ngx_min(r->uri.len, 200), r->uri.data);
        return NGX_ERROR;
    }

    if (a->to.what < LLM_ADMIN_MODEL || a->to.what > LLM_ADMIN_RESUME) {
        return NGX_OK;
    }

    if (r->method == NGX_HTTP_POST && llm_admin_route_router(&a->to)) {
        a->router = 1;
        return NGX_OK;                  /* the body is not read yet */
    }

    /* a model may be called "a/load"; then "a/load/load" loads it */

    if (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD|NGX_HTTP_PUT
                     |NGX_HTTP_DELETE))
    {
        a->model = ngx_http_llm_admin_model(a, a->to.whole);

        if (a->model >= 0 || (r->method & (NGX_HTTP_PUT|NGX_HTTP_DELETE))) {
            a->to.what = LLM_ADMIN_MODEL;
            a->to.name = a->to.whole;
        }
    }

    return ngx_http_llm_admin_found(a, err);
}


static ngx_int_t
ngx_http_llm_admin_found(ngx_http_llm_admin_request_t *a, llm_err_t *err)
{
    if (a->model < 0) {
        a->model = ngx_http_llm_admin_model(a, a->to.name);
    }

    if (a->model >= 0) {
        a->naming = a->main->api_models[a->model].naming;
        return NGX_OK;
    }

    if (a->request->method == NGX_HTTP_PUT) {
        return NGX_OK;
    }

    llm_fail_with(err, 404, "model_not_found", NULL,
                  "There is no model '%.*s'.",
                  (int) ngx_min(a->to.name.len, 128), a->to.name.data);

    return NGX_ERROR;
}


static ngx_int_t
ngx_http_llm_admin_allow(ngx_http_llm_admin_request_t *a, llm_err_t *err)
{
    size_t               len;
    const char          *p, *methods;
    ngx_str_t           *name;
    ngx_http_request_t  *r;

    r = a->request;
    name = &r->method_name;
    methods = llm_admin_methods(a->to.what);

    for (p = methods; *p; p += strspn(p, ", ")) {
        len = strcspn(p, ", ");

        if (len == name->len && ngx_memcmp(p, name->data, len) == 0) {
            return NGX_OK;
        }

        p += len;
    }

    llm_fail_with(err, 405, "method_not_allowed", NULL,
                  "%.*s is not allowed here, use %s.",
                  (int) ngx_min(name->len, 32), name->data, methods);

    if (ngx_http_llm_add_header(r, "Allow", methods, ngx_strlen(methods))
        != NGX_OK)
    {
        llm_fail(err, "No memory is left for this answer.");
    }

    return NGX_ERROR;
}


/* ---- reading ---- */

static ngx_int_t
ngx_http_llm_admin_show(ngx_http_llm_admin_request_t *a, llm_buf_t *out,
    llm_err_t *err)
{
    llm_admin_conf_t  conf;

    ngx_http_llm_admin_models_conf(a->main, &conf);

    /* what is shown as done must also be in the state */

    if (a->to.what <= LLM_ADMIN_MODEL) {
        ngx_http_llm_admin_keep(a->main);
    }

    switch (a->to.what) {

    case LLM_ADMIN_LIST_MODELS:
        (void) llm_admin_models_body(&conf, out);
        break;

    case LLM_ADMIN_LIST_ALIASES:
        if (ngx_http_llm_admin_show_aliases(a, out) != NGX_OK) {
            out->failed = 1;
        }

        break;

    case LLM_ADMIN_ALIAS:
        if (ngx_http_llm_admin_show_alias(a, out, err) != NGX_OK) {
            return NGX_ERROR;
        }

        break;

    case LLM_ADMIN_USAGE:
        if (ngx_http_llm_admin_show_usage(a, out, err) != NGX_OK) {
            return NGX_ERROR;
        }

        break;

    default: /* LLM_ADMIN_MODEL */
        (void) llm_admin_model_body(&conf, a->model, out);
    }

    if (out->failed) {
        llm_fail(err, "No memory is left for this answer.");
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_llm_admin_get(ngx_http_llm_admin_request_t *a)
{
    ngx_int_t  rc;
    llm_buf_t  body;
    llm_err_t  err;

    llm_buf_init(&body, 0);

    if (ngx_http_llm_admin_show(a, &body, &err) != NGX_OK) {
        llm_buf_free(&body);
        return ngx_http_llm_send_error(a->request, &err, 0);
    }

    rc = ngx_http_discard_request_body(a->request);

    if (rc != NGX_OK) {
        llm_buf_free(&body);
        return rc;
    }

    return ngx_http_llm_send_body(a->request, NGX_HTTP_OK, "application/json",
                                  &body);
}


/* ---- actions ---- */

static ngx_int_t
ngx_http_llm_admin_read(ngx_http_llm_admin_request_t *a)
{
    ngx_int_t            rc;
    llm_err_t            err;
    ngx_uint_t           gzip;
    ngx_http_request_t  *r;

    r = a->request;

    if (ngx_http_llm_coding(r, &gzip, &err) != NGX_OK) {
        return ngx_http_llm_admin_refuse(a, &err);
    }

    if (gzip) {
        llm_fail_with(&err, 415, "unsupported_content_encoding", NULL,
                      "The body must be sent without a Content-Encoding "
                      "here.");
        return ngx_http_llm_admin_refuse(a, &err);
    }

    if (r->headers_in.content_length_n > LLM_ADMIN_BODY) {
        llm_fail_with(&err, 413, "request_too_large", NULL,
                      "The body may have at most %d bytes.", LLM_ADMIN_BODY);
        return ngx_http_llm_admin_refuse(a, &err);
    }

    r->request_body_in_single_buf = 1;

    rc = ngx_http_read_client_request_body(r, ngx_http_llm_admin_body_handler);

    return rc >= NGX_HTTP_SPECIAL_RESPONSE ? rc : NGX_DONE;
}


ngx_int_t
ngx_http_llm_admin_post_action(ngx_http_request_t *r)
{
    ngx_http_llm_detach(r, ngx_http_llm_admin_cleanup);

    return NGX_DECLINED;
}


/* the request's data is found by its cleanup, because the module's context is
   for requests to llm_api */

static void
ngx_http_llm_admin_body_handler(ngx_http_request_t *r)
{
    llm_err_t                      err;
    ngx_http_cleanup_t            *cln;
    ngx_http_llm_admin_request_t  *a;

    for (cln = r->cleanup; cln->handler != ngx_http_llm_admin_cleanup;
         cln = cln->next)
    {
        /* void */
    }

    a = cln->data;

    if (ngx_http_llm_admin_parse(a, &err) != NGX_OK) {
        ngx_http_llm_admin_fail(a, &err);

    } else if (a->to.what == LLM_ADMIN_ALIAS) {
        ngx_http_llm_admin_put_alias(a);

    } else if (r->method == NGX_HTTP_PUT) {
        ngx_http_llm_admin_put_model(a);

    } else if (r->method == NGX_HTTP_DELETE) {
        ngx_http_llm_admin_delete_model(a);

    } else {
        ngx_http_llm_admin_command(a);
    }
}


/* the bytes of a body, which nginx may have written to a file; NGX_DECLINED:
   there are too many */

static ngx_int_t
ngx_http_llm_admin_bytes(ngx_http_request_t *r, ngx_str_t *text)
{
    off_t         size;
    u_char       *p;
    ssize_t       n;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    ngx_str_null(text);
    size = 0;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        size += ngx_buf_size(cl->buf);
    }

    if (size > LLM_ADMIN_BODY) {
        return NGX_DECLINED;
    }

    p = ngx_pnalloc(r->pool, size + 1);
    if (p == NULL) {
        return NGX_ERROR;
    }

    text->data = p;

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        b = cl->buf;
        n = ngx_buf_size(b);

        if (ngx_buf_in_memory(b)) {
            ngx_memcpy(p, b->pos, n);

        } else if (n && ngx_read_file(b->file, p, n, b->file_pos) != n) {
            return NGX_ERROR;
        }

        p += n;
    }

    text->len = p - text->data;

    return NGX_OK;
}


/* the model that the body names */

static ngx_int_t
ngx_http_llm_admin_named(ngx_http_llm_admin_request_t *a, llm_err_t *err)
{
    if (a->body.value.len == 0) {
        llm_fail_with(err, 400, "missing_required_parameter", "model",
                      "'model' is required: the name of a model.");
        return NGX_ERROR;
    }

    a->to.name = a->body.value;
    a->to.whole = a->body.value;
    a->body.given = 0;

    return ngx_http_llm_admin_found(a, err);
}


static ngx_int_t
ngx_http_llm_admin_parse(ngx_http_llm_admin_request_t *a, llm_err_t *err)
{
    ngx_int_t            rc;
    ngx_str_t            text;
    const char          *member;
    ngx_http_request_t  *r;

    r = a->request;
    ngx_str_null(&text);

    rc = r->request_body ? ngx_http_llm_admin_bytes(r, &text) : NGX_OK;

    if (rc == NGX_DECLINED) {
        llm_fail_with(err, 413, "request_too_large", NULL,
                      "The body may have at most %d bytes.", LLM_ADMIN_BODY);
        return NGX_ERROR;
    }

    if (rc != NGX_OK) {
        llm_fail(err, "The request's body could not be read.");
        return NGX_ERROR;
    }

    member = a->router ? "model"
             : (a->to.what == LLM_ADMIN_LOAD) ? "file"
             : (r->method != NGX_HTTP_PUT) ? NULL
             : (a->to.what == LLM_ADMIN_MODEL) ? "file" : "model";

    if (llm_admin_read_body(&a->body, text.len ? (char *) text.data : "",
                            text.len, member, err)
        != LLM_OK)
    {
        return NGX_ERROR;
    }

    if (a->router && ngx_http_llm_admin_named(a, err) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_llm_admin_time(r, "wait", 0, &a->wait, err) != NGX_OK) {
        return NGX_ERROR;
    }

    switch (a->to.what) {

    case LLM_ADMIN_UNLOAD:
    case LLM_ADMIN_MODEL:
        return ngx_http_llm_admin_time(r, "timeout",
                                       NGX_HTTP_LLM_ADMIN_TIMEOUT,
                                       &a->timeout, err);

    case LLM_ADMIN_DRAIN:
        return ngx_http_llm_admin_time(r, "notice", NGX_HTTP_LLM_ADMIN_NOTICE,
                                       &a->timeout, err);

    default:
        return NGX_OK;
    }
}


/* an argument that is a time: seconds, or with a unit, as in nginx */

static ngx_int_t
ngx_http_llm_admin_time(ngx_http_request_t *r, const char *name,
    ngx_msec_t usual, ngx_msec_t *to, llm_err_t *err)
{
    ngx_int_t  n;
    ngx_str_t  value;

    *to = usual;

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), &value) != NGX_OK)
    {
        return NGX_OK;
    }

    n = ngx_parse_time(&value, 0);

    if (n == NGX_ERROR || n > NGX_HTTP_LLM_ADMIN_MOST) {
        llm_fail_with(err, 400, "invalid_value", name,
                      "'%s' must be a time of up to a day, such as 30 or 30s.",
                      name);
        return NGX_ERROR;
    }

    *to = n;

    return NGX_OK;
}
