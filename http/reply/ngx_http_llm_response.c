/*
 * Answers that are sent whole: JSON bodies and errors.
 *
 * If an error_page handles an error, the request's body is kept, whether it was
 * read or not: the error_page's handler may need it.
 */

#include "http/reply/ngx_http_llm_reply.h"


static ngx_int_t ngx_http_llm_send(ngx_http_request_t *r, ngx_uint_t status,
    const char *type, u_char *data, size_t len);
static ngx_uint_t ngx_http_llm_has_error_page(ngx_http_request_t *r,
    ngx_int_t status);
static ngx_int_t ngx_http_llm_drop_body(ngx_http_request_t *r);
static ngx_int_t ngx_http_llm_error_headers(ngx_http_request_t *r,
    const llm_err_t *err, uint32_t retry_after);


ngx_int_t
ngx_http_llm_add_header(ngx_http_request_t *r, const char *name,
    const char *value, size_t len)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->hash = 1;
    h->key.len = ngx_strlen(name);
    h->key.data = (u_char *) name;
    h->value.len = len;
    h->value.data = (u_char *) value;
#if (nginx_version >= 1023000)
    h->next = NULL;
#endif

    return NGX_OK;
}


ngx_uint_t
ngx_http_llm_has_header(ngx_http_request_t *r, const char *name)
{
    size_t            len;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    len = ngx_strlen(name);

    for (part = &r->headers_out.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (h[i].hash && h[i].key.len == len
                && ngx_strncasecmp(h[i].key.data, (u_char *) name, len) == 0)
            {
                return 1;
            }
        }
    }

    return 0;
}


ngx_int_t
ngx_http_llm_add_number(ngx_http_request_t *r, const char *name, uint64_t n)
{
    u_char  *p, *last;

    p = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    last = ngx_sprintf(p, "%uL", n);

    return ngx_http_llm_add_header(r, name, (char *) p, last - p);
}


/* a client's id goes to headers and logs, so it may have only letters, digits,
   and marks without a meaning there */

static ngx_uint_t
ngx_http_llm_is_sane_id(u_char *p, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        if (!((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'A' && p[i] <= 'Z')
              || (p[i] >= 'a' && p[i] <= 'z')
              || (p[i] && strchr("-_.:/+=@", p[i]))))
        {
            return 0;
        }
    }

    return len > 0 && len <= NGX_HTTP_LLM_MAX_ID;
}


ngx_int_t
ngx_http_llm_request_id(ngx_http_request_t *r, ngx_str_t *id)
{
    ngx_http_variable_value_t       *v;
    ngx_http_llm_reply_main_conf_t  *rmcf;

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_llm_filter_module);
    v = ngx_http_get_indexed_variable(r, rmcf->client_id);

    if (v == NULL || v->not_found || !ngx_http_llm_is_sane_id(v->data, v->len))
    {
        v = ngx_http_get_indexed_variable(r, rmcf->request_id);
    }

    if (v == NULL || v->not_found) {
        return NGX_ERROR;
    }

    id->len = v->len;
    id->data = v->data;

    return NGX_OK;
}


ngx_int_t
ngx_http_llm_add_id(ngx_http_request_t *r)
{
    ngx_str_t              id;
    const char            *name;
    ngx_http_llm_reply_t  *reply;

    if (ngx_http_llm_request_id(r, &id) != NGX_OK) {
        return NGX_ERROR;
    }

    reply = ngx_http_llm_get_reply(r);
    name = reply ? llm_api_id_header(reply->endpoint) : NULL;

    if (name && ngx_http_llm_add_header(r, name, (char *) id.data, id.len)
                != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_llm_add_header(r, "x-request-id", (char *) id.data,
                                   id.len);
}


static ngx_int_t
ngx_http_llm_send(ngx_http_request_t *r, ngx_uint_t status, const char *type,
    u_char *data, size_t len)
{
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t   out;

    /* conditional requests are for files: an answer is never a 304 or a 412 */
    r->disable_not_modified = 1;

    r->headers_out.status = status;
    r->headers_out.content_length_n = len;
    r->headers_out.content_type.len = ngx_strlen(type);
    r->headers_out.content_type.data = (u_char *) type;
    r->headers_out.content_type_len = strcspn(type, ";");
    r->headers_out.content_type_lowcase = NULL;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->pos = data;
    b->last = data + len;
    b->memory = (len > 0);
    b->last_buf = (r == r->main);
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


ngx_int_t
ngx_http_llm_send_body(ngx_http_request_t *r, ngx_uint_t status,
    const char *type, llm_buf_t *body)
{
    size_t   len;
    u_char  *data;

    len = body->len;
    data = ngx_pnalloc(r->pool, len + 1);

    if (data) {
        ngx_memcpy(data, body->data, len);
    }

    llm_buf_free(body);

    if (data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_llm_send(r, status, type, data, len);
}


ngx_int_t
ngx_http_llm_send_error(ngx_http_request_t *r, llm_err_t *err,
    uint32_t retry_after)
{
    ngx_int_t                        rc;
    llm_buf_t                        body;
    ngx_str_t                        id;
    llm_str_t                        text;
    ngx_http_llm_reply_t            *reply;
    ngx_http_llm_reply_loc_conf_t   *rlcf;
    ngx_http_llm_reply_main_conf_t  *rmcf;

    ngx_http_llm_set_cause(r, err);
    ngx_http_llm_log_error(r, err);

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_llm_filter_module);

    if (rmcf->failed) {
        rmcf->failed(r);
    }

    reply = ngx_http_llm_get_reply(r);
    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_filter_module);

    if (rlcf->intercept_errors
        && !r->discard_body     /* the body is still there */
        && ngx_http_llm_has_error_page(r, err->status))
    {
        return err->status;
    }

    if (ngx_http_llm_request_id(r, &id) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    text.len = id.len;
    text.data = (char *) id.data;

    llm_buf_init(&body, 0);

    if (ngx_http_llm_error_headers(r, err, retry_after) != NGX_OK
        || llm_api_error_body(reply ? reply->endpoint : NULL, text, err,
                              &body)
           != LLM_OK)
    {
        llm_buf_free(&body);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_llm_drop_body(r);
    if (rc != NGX_OK) {
        llm_buf_free(&body);
        return rc;
    }

    return ngx_http_llm_send_body(r, err->status, "application/json", &body);
}


ngx_uint_t
ngx_http_llm_may_hand_on(ngx_http_request_t *r)
{
    ngx_http_llm_reply_loc_conf_t  *rlcf;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_filter_module);

    return rlcf->intercept_errors
           || ngx_http_llm_has_error_page(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
}


/* would the special response handler find an error_page for this status? */

static ngx_uint_t
ngx_http_llm_has_error_page(ngx_http_request_t *r, ngx_int_t status)
{
    ngx_uint_t                 i;
    ngx_http_err_page_t       *page;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (clcf->error_pages == NULL || r->error_page || r->uri_changes == 0) {
        return 0;
    }

    page = clcf->error_pages->elts;

    for (i = 0; i < clcf->error_pages->nelts; i++) {
        if (page[i].status == status) {
            return 1;
        }
    }

    return 0;
}


/* discards a body that was not read, without a "100 Continue" */

static ngx_int_t
ngx_http_llm_drop_body(ngx_http_request_t *r)
{
    if (r->headers_in.expect && !r->expect_tested) {
        r->expect_tested = 1;
        r->keepalive = 0;
    }

    return ngx_http_discard_request_body(r);
}


/* x-llm-error is for llm_upstream and for logs of proxies; OpenAI's and
   Anthropic's clients obey the other headers */

static ngx_int_t
ngx_http_llm_error_headers(ngx_http_request_t *r, const llm_err_t *err,
    uint32_t retry_after)
{
    u_char                *p;
    ngx_str_t              word;
    ngx_http_llm_reply_t  *reply;

    reply = ngx_http_llm_get_reply(r);

    /* err may be freed before the header is sent */

    word.data = (u_char *) llm_api_error_word(err);
    word.len = ngx_strlen(word.data);

    p = ngx_pstrdup(r->pool, &word);

    if (p == NULL
        || ngx_http_llm_add_header(r, "x-llm-error", (char *) p, word.len)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (reply && reply->hopeless
        && ngx_http_llm_add_header(r, "x-should-retry", "false", 5) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (reply && reply->retry_ms) {
        retry_after = ngx_min(reply->retry_ms / 1000 + 1, NGX_MAX_INT32_VALUE);

        if (ngx_http_llm_add_number(r, "retry-after-ms", reply->retry_ms)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return retry_after ? ngx_http_llm_add_number(r, "Retry-After", retry_after)
                       : NGX_OK;
}


ngx_int_t
ngx_http_llm_get_only(ngx_http_request_t *r)
{
    ngx_int_t  rc;
    llm_err_t  err;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {

        if (ngx_http_llm_add_header(r, "Allow", "GET, HEAD", 9) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        llm_fail_with(&err, 405, "method_not_allowed", NULL,
                      "Use GET or HEAD here.");
        return ngx_http_llm_send_error(r, &err, 0);
    }

    rc = ngx_http_discard_request_body(r);

    return rc == NGX_OK ? NGX_DECLINED : rc;
}


u_char *
ngx_http_llm_clean(ngx_http_request_t *r, ngx_str_t *value)
{
    size_t   size;
    u_char  *p;

    size = 4 * ngx_min(value->len, 64) + 1;

    p = ngx_pnalloc(r->pool, size);
    if (p == NULL) {
        return (u_char *) "";
    }

    (void) llm_clean((char *) p, size, (char *) value->data, value->len);

    return p;
}
