/*
 * The subrequest that asks a guard.  Its body has what the client sent
 * (engine/api/guard.c).
 *
 * - It is a background subrequest, of which only the header counts.  So the
 *   client's connection stays the main request's: llm_ignore_client_abort works
 *   here, too, and the guard's answer may have any size.
 * - It has none of the client's headers or limits, only a type and a length:
 *   with "open", a failed guard allows the request, so no header of a client
 *   may make the guard fail.  It has a copy of the request's variables; changes
 *   to the copy do not reach the request.
 */

#include "http/access/ngx_http_llm_guard.h"
#include "http/reply/ngx_http_llm_reply.h"


static ngx_http_request_body_t *ngx_http_llm_guard_body(
    ngx_http_llm_asked_t *asked);
static ngx_int_t ngx_http_llm_guard_headers(ngx_http_llm_asked_t *asked,
    ngx_http_headers_in_t *in);
static ngx_table_elt_t *ngx_http_llm_guard_header(ngx_http_headers_in_t *in,
    const char *name, const char *lowcase, const char *value, size_t len);
static ngx_http_variable_value_t *ngx_http_llm_guard_variables(
    ngx_http_request_t *r);


/* allocates everything first: after ngx_http_subrequest() there is no way
   back */

ngx_int_t
ngx_http_llm_guard_request(ngx_http_llm_asked_t *asked, ngx_str_t *uri,
    ngx_str_t *args, ngx_http_post_subrequest_pt done)
{
    ngx_http_request_t          *r, *sr;
    ngx_http_headers_in_t        in;
    ngx_http_request_body_t     *rb;
    ngx_http_variable_value_t   *variables;
    ngx_http_post_subrequest_t  *ps;

    static ngx_str_t  post = ngx_string("POST");

    r = asked->body->ctx->request;

    ps = ngx_palloc(r->pool, sizeof(ngx_http_post_subrequest_t));
    rb = ngx_http_llm_guard_body(asked);
    variables = ngx_http_llm_guard_variables(r);

    if (ps == NULL || rb == NULL || variables == NULL
        || ngx_http_llm_guard_headers(asked, &in) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ps->handler = done;
    ps->data = asked;

    if (ngx_http_subrequest(r, uri, args, &sr, ps,
                            NGX_HTTP_SUBREQUEST_BACKGROUND)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    sr->method = NGX_HTTP_POST;
    sr->method_name = post;
    sr->header_only = 1;
    sr->headers_in = in;
    sr->request_body = rb;
    sr->variables = variables;

    asked->subrequest = sr;

    return NGX_OK;
}


static ngx_http_request_body_t *
ngx_http_llm_guard_body(ngx_http_llm_asked_t *asked)
{
    ngx_buf_t                *b;
    ngx_uint_t                i;
    ngx_pool_t               *pool;
    ngx_chain_t              *cl, **last;
    ngx_http_request_body_t  *rb;

    pool = asked->body->ctx->request->pool;

    rb = ngx_pcalloc(pool, sizeof(ngx_http_request_body_t));
    if (rb == NULL) {
        return NULL;
    }

    last = &rb->bufs;

    for (i = 0; i < 2; i++) {
        b = ngx_calloc_buf(pool);
        cl = ngx_alloc_chain_link(pool);

        if (b == NULL || cl == NULL) {
            return NULL;
        }

        b->start = i ? (u_char *) asked->told.data : asked->head.data;
        b->end = b->start + (i ? asked->told.len : asked->head.len);
        b->pos = b->start;
        b->last = b->end;
        b->memory = 1;

        cl->buf = b;
        cl->next = NULL;
        *last = cl;
        last = &cl->next;
    }

    return rb;
}


static ngx_int_t
ngx_http_llm_guard_headers(ngx_http_llm_asked_t *asked,
    ngx_http_headers_in_t *in)
{
    u_char              *p, *last;
    ngx_http_request_t  *r;

    static const char  json[] = "application/json";

    r = asked->body->ctx->request;

    ngx_memzero(in, sizeof(ngx_http_headers_in_t));

    in->server = r->headers_in.server;
    in->content_length_n = -1;          /* see ngx_http_llm_guard_length() */
    in->keep_alive_n = -1;

    p = ngx_pnalloc(r->pool, NGX_SIZE_T_LEN);

    if (p == NULL
        || ngx_list_init(&in->headers, r->pool, 2, sizeof(ngx_table_elt_t))
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    last = ngx_sprintf(p, "%uz", asked->head.len + asked->told.len);

    in->content_type = ngx_http_llm_guard_header(in, "Content-Type",
                                                 "content-type", json,
                                                 sizeof(json) - 1);
    in->content_length = ngx_http_llm_guard_header(in, "Content-Length",
                                                   "content-length",
                                                   (char *) p, last - p);

    return in->content_type && in->content_length ? NGX_OK : NGX_ERROR;
}


static ngx_table_elt_t *
ngx_http_llm_guard_header(ngx_http_headers_in_t *in, const char *name,
    const char *lowcase, const char *value, size_t len)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&in->headers);
    if (h == NULL) {
        return NULL;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->key.len = ngx_strlen(name);
    h->key.data = (u_char *) name;
    h->value.len = len;
    h->value.data = (u_char *) value;
    h->lowcase_key = (u_char *) lowcase;
    h->hash = ngx_hash_key(h->lowcase_key, h->key.len);

    return h;
}


/* copies the values that are known, as $request_id, except those of the body,
   which differs */

static ngx_http_variable_value_t *
ngx_http_llm_guard_variables(ngx_http_request_t *r)
{
    u_char                     *name;
    ngx_uint_t                  i, n;
    ngx_http_variable_t        *v;
    ngx_http_variable_value_t  *values;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_get_module_main_conf(r, ngx_http_core_module);

    v = cmcf->variables.elts;
    n = cmcf->variables.nelts;

    values = ngx_palloc(r->pool, n * sizeof(ngx_http_variable_value_t));
    if (values == NULL) {
        return NULL;
    }

    ngx_memcpy(values, r->variables, n * sizeof(ngx_http_variable_value_t));

    for (i = 0; i < n; i++) {
        name = v[i].name.data;

        if (ngx_strncmp(name, "content_", 8) == 0
            || ngx_strncmp(name, "http_content_", 13) == 0
            || ngx_strncmp(name, "request_body", 12) == 0)
        {
            values[i].valid = 0;
            values[i].not_found = 0;
        }
    }

    return values;
}
