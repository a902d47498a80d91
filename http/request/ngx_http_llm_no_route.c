/*
 * Requests that match no endpoint.  A GET of the location's prefix lists the
 * endpoints; the errors of other requests name that path, or the right methods.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"


static ngx_uint_t ngx_http_llm_wants_websocket(ngx_http_request_t *r);
static ngx_int_t ngx_http_llm_send_index(ngx_http_request_t *r, ngx_str_t *uri);
static ngx_int_t ngx_http_llm_send_nothing(ngx_http_request_t *r);


ngx_int_t
ngx_http_llm_send_no_route(ngx_http_request_t *r, const char *allow)
{
    size_t      len;
    u_char     *methods;
    llm_err_t   err;

    if (*allow == '\0') {
        return ngx_http_llm_send_nothing(r);
    }

    /* kept in the pool: an error_page may send the header later */

    len = ngx_strlen(allow);
    methods = ngx_pnalloc(r->pool, len);

    if (methods == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(methods, allow, len);

    if (ngx_http_llm_add_header(r, "Allow", (char *) methods, len)
        != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_llm_wants_websocket(r)) {

        /* with this status agents fall back to HTTP at once */

        if (ngx_http_llm_add_header(r, "Upgrade", "HTTP/1.1",
                                    sizeof("HTTP/1.1") - 1)
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        llm_fail_with(&err, 426, "websocket_not_supported", NULL,
                      "WebSockets are not supported: send the request with "
                      "%s, and \"stream\": true for events.", allow);
        return ngx_http_llm_send_error(r, &err, 0);
    }

    llm_fail_with(&err, 405, "method_not_allowed", NULL,
                  "%.*s is not allowed here, use %s.",
                  (int) ngx_min(r->method_name.len, 32),
                  r->method_name.data, allow);

    return ngx_http_llm_send_error(r, &err, 0);
}


static ngx_uint_t
ngx_http_llm_wants_websocket(ngx_http_request_t *r)
{
    ngx_table_elt_t  *h;

    h = r->headers_in.upgrade;

    return h && r->method == NGX_HTTP_GET
           && ngx_strlcasestrn(h->value.data, h->value.data + h->value.len,
                               (u_char *) "websocket",
                               sizeof("websocket") - 2)
              != NULL;
}


static ngx_int_t
ngx_http_llm_send_nothing(ngx_http_request_t *r)
{
    ngx_str_t                  uri;
    llm_err_t                  err;
    llm_str_t                  path;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_llm_loc_conf_t   *llcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    uri = r->uri;

    while (uri.len && uri.data[uri.len - 1] == '/') {
        uri.len--;
    }

    /* endpoints are listed only in a location whose prefix is the API's */

    if (llcf->prefix == 0 || llcf->prefix != clcf->name.len) {
        llm_fail_with(&err, 404, "not_found", NULL, "There is nothing at %.*s.",
                      (int) ngx_min(r->uri.len, 200), r->uri.data);
        return ngx_http_llm_send_error(r, &err, 0);
    }

    if (ngx_http_llm_path(r, llcf, &path) == NGX_OK && llm_api_is_root(path)) {
        return (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))
               ? ngx_http_llm_send_index(r, &uri)
               : ngx_http_llm_send_no_route(r, "GET, HEAD");
    }

    llm_fail_with(&err, 404, "not_found", NULL,
                  "There is nothing at %.*s; GET %.*s lists what there is.",
                  (int) ngx_min(r->uri.len, 200), r->uri.data,
                  (int) ngx_min(llcf->prefix, 100), clcf->name.data);

    return ngx_http_llm_send_error(r, &err, 0);
}


/* uri: without a trailing slash */

static ngx_int_t
ngx_http_llm_send_index(ngx_http_request_t *r, ngx_str_t *uri)
{
    ngx_int_t  rc;
    llm_buf_t  body;
    llm_str_t  base;

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    base.data = (char *) uri->data;
    base.len = uri->len;

    llm_buf_init(&body, 0);

    if (llm_api_index(base, &body) != LLM_OK) {
        llm_buf_free(&body);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_llm_send_body(r, NGX_HTTP_OK, "application/json", &body);
}
