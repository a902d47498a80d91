/*
 * Errors that nginx itself answers in an llm_api location (a body larger than
 * client_max_body_size, "deny", auth_basic, limit_req, ...): the HTML page is
 * replaced by a JSON error in the endpoint's form.  An error_page takes
 * precedence, because another location then serves the error.
 */

#include "http/reply/ngx_http_llm_reply.h"


typedef struct {
    ngx_str_t   body;
    ngx_uint_t  sent;
} ngx_http_llm_refusal_t;


static ngx_uint_t ngx_http_llm_is_page(ngx_http_request_t *r);
static void ngx_http_llm_refused(ngx_http_request_t *r, llm_err_t *err);
static void ngx_http_llm_refusal_cleanup(void *data);


static const struct {
    int          status;
    const char  *code;
    const char  *message;
} ngx_http_llm_refusals[] = {
    { 400, "bad_http", "This is not an HTTP request, or its body is not "
                       "framed as its headers say." },
    { 401, "invalid_api_key", "Please authenticate." },
    { 403, NULL, "This is not allowed." },
    { 404, "not_found", "There is nothing here." },
    { 405, "method_not_allowed", "This method is not allowed here." },
    { 408, "request_timeout", "The request did not come in time." },
    { 429, "rate_limit_exceeded", "Too many requests, try again soon." },
    { 502, NULL, "The server behind this one gave no valid answer." },
    { 503, NULL, "The server cannot take this request now, try again soon." },
    { 504, NULL, "The server behind this one did not answer in time." }
};


ngx_int_t
ngx_http_llm_refusal_header(ngx_http_request_t *r)
{
    llm_buf_t                       body;
    llm_err_t                       err;
    llm_str_t                       id;
    ngx_str_t                       request_id;
    ngx_pool_cleanup_t             *cln;
    ngx_http_llm_refusal_t         *refusal;
    ngx_http_llm_reply_loc_conf_t  *rlcf;

    if (!ngx_http_llm_is_page(r)) {
        return NGX_OK;
    }

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_filter_module);

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_llm_refusal_t));

    if (cln == NULL || ngx_http_llm_request_id(r, &request_id) != NGX_OK) {
        return NGX_ERROR;
    }

    id.data = (char *) request_id.data;
    id.len = request_id.len;

    ngx_http_llm_refused(r, &err);

    llm_buf_init(&body, 0);

    if (llm_api_error_body(rlcf->form(r), id, &err, &body) != LLM_OK) {
        llm_buf_free(&body);
        return NGX_ERROR;
    }

    refusal = cln->data;
    refusal->sent = 0;
    refusal->body.len = body.len;
    refusal->body.data = ngx_pnalloc(r->pool, body.len);

    if (refusal->body.data) {
        ngx_memcpy(refusal->body.data, body.data, body.len);
    }

    llm_buf_free(&body);

    if (refusal->body.data == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_llm_refusal_cleanup;

    r->headers_out.content_length_n = refusal->body.len;
    ngx_str_set(&r->headers_out.content_type, "application/json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    /* "add_header" may have set it already */

    return (err.status == 429 || err.status == 503)
           && !ngx_http_llm_has_header(r, "Retry-After")
           ? ngx_http_llm_add_number(r, "Retry-After", 1) : NGX_OK;
}


/* is the answer an error page of nginx?  Nothing else in a llm_api location is
   HTML. */

static ngx_uint_t
ngx_http_llm_is_page(ngx_http_request_t *r)
{
    ngx_str_t                      *type;
    ngx_http_llm_reply_loc_conf_t  *rlcf;

    type = &r->headers_out.content_type;
    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_filter_module);

    return r == r->main
           && rlcf->form
           && r->err_status >= NGX_HTTP_BAD_REQUEST
           && r->headers_out.status == r->err_status
           && type->len == sizeof("text/html") - 1
           && ngx_strncmp(type->data, "text/html", type->len) == 0;
}


static void
ngx_http_llm_refused(ngx_http_request_t *r, llm_err_t *err)
{
    int                        status;
    ngx_uint_t                 i;
    ngx_http_core_loc_conf_t  *clcf;

    status = (int) r->err_status;

    if (status == NGX_HTTP_REQUEST_ENTITY_TOO_LARGE) {
        clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

        llm_fail_with(err, status, "request_too_large", NULL,
                      "The request body is too large: this server takes %lld "
                      "bytes (client_max_body_size).",
                      (long long) clcf->client_max_body_size);
        return;
    }

    for (i = 0; i < sizeof(ngx_http_llm_refusals)
                    / sizeof(ngx_http_llm_refusals[0]); i++)
    {
        if (ngx_http_llm_refusals[i].status == status) {
            llm_fail_with(err, status, ngx_http_llm_refusals[i].code, NULL,
                          "%s", ngx_http_llm_refusals[i].message);
            return;
        }
    }

    llm_fail_with(err, status, NULL, NULL, "The server has %s this request.",
                  status < 500 ? "refused" : "failed to answer");
}


ngx_chain_t *
ngx_http_llm_refusal_body(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_buf_t               *b;
    ngx_chain_t             *out;
    ngx_http_llm_refusal_t  *refusal;

    if (in == NULL || r != r->main || r->err_status < NGX_HTTP_BAD_REQUEST) {
        return in;
    }

    refusal = ngx_http_llm_find_record(r, ngx_http_llm_refusal_cleanup);

    if (refusal == NULL || refusal->sent) {
        return in;
    }

    b = ngx_calloc_buf(r->pool);
    out = ngx_alloc_chain_link(r->pool);

    if (b == NULL || out == NULL) {
        return NGX_CHAIN_ERROR;
    }

    refusal->sent = 1;

    b->pos = refusal->body.data;
    b->last = b->pos + refusal->body.len;
    b->memory = 1;
    b->last_buf = 1;
    b->last_in_chain = 1;

    out->buf = b;
    out->next = NULL;

    return out;
}


static void
ngx_http_llm_refusal_cleanup(void *data)
{
    /* the pool frees the record, which is found by this handler */
}
