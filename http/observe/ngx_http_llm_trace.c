/*
 * W3C trace context (https://www.w3.org/TR/trace-context/), version 00: the
 * trace that a request belongs to, and its span, as $llm_trace_id,
 * $llm_span_id, $llm_parent_id, $llm_traceparent and $llm_tracestate.
 *
 * - The context is made when it is first needed, and stays the same for the
 *   request and its subrequests.  Modules that change the request's header, as
 *   nginx-otel does, do so before, in the rewrite phase.
 * - Without a valid traceparent a new trace begins, which is recorded;
 *   tracestate then belongs to another trace, and is ignored.
 */

#include "http/observe/ngx_http_llm_trace.h"
#include "http/reply/ngx_http_llm_reply.h"

#include <sys/random.h>


/* "00-", the trace, "-", the parent, "-", two digits of flags */
#define NGX_HTTP_LLM_TRACEPARENT  (3 + 32 + 1 + 16 + 1 + 2)

/* the flags that are known, and are passed on: recorded, random */
#define NGX_HTTP_LLM_TRACE_FLAGS  3


static ngx_int_t ngx_http_llm_trace_new(ngx_http_llm_trace_t *t);
static ngx_uint_t ngx_http_llm_trace_in(ngx_http_request_t *r,
    ngx_http_llm_trace_t *t);
static ngx_uint_t ngx_http_llm_trace_parse(ngx_str_t *s,
    ngx_http_llm_trace_t *t);
static ngx_uint_t ngx_http_llm_is_hex(u_char *p, size_t len);
static ngx_uint_t ngx_http_llm_is_id(u_char *p, size_t len);
static ngx_int_t ngx_http_llm_trace_state(ngx_http_request_t *r,
    ngx_str_t *state);
static void ngx_http_llm_trace_cleanup(void *data);


ngx_http_llm_trace_t *
ngx_http_llm_trace(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t    *cln;
    ngx_http_llm_trace_t  *t;

    r = r->main;

    t = ngx_http_llm_find_record(r, ngx_http_llm_trace_cleanup);
    if (t) {
        return t;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_llm_trace_t));
    if (cln == NULL) {
        return NULL;
    }

    t = cln->data;
    ngx_memzero(t, sizeof(ngx_http_llm_trace_t));

    if (ngx_http_llm_trace_new(t) != NGX_OK) {
        return NULL;
    }

    if (ngx_http_llm_trace_in(r, t)
        && ngx_http_llm_trace_state(r, &t->state) != NGX_OK)
    {
        return NULL;
    }

    cln->handler = ngx_http_llm_trace_cleanup;

    return t;
}


static void
ngx_http_llm_trace_cleanup(void *data)
{
    /* the handler only marks the entry; the pool frees it */
}


static ngx_int_t
ngx_http_llm_trace_new(ngx_http_llm_trace_t *t)
{
    u_char  id[24];

    if (getrandom(id, sizeof(id), 0) != sizeof(id)) {
        return NGX_ERROR;
    }

    /* an id must not be all zeros */

    id[15] |= (id[15] == 0);
    id[23] |= (id[23] == 0);

    (void) ngx_hex_dump(t->trace, id, 16);
    (void) ngx_hex_dump(t->span, id + 16, 8);

    t->flags = NGX_HTTP_LLM_TRACE_SAMPLED;

    return NGX_OK;
}


/* does the request belong to a trace? */

static ngx_uint_t
ngx_http_llm_trace_in(ngx_http_request_t *r, ngx_http_llm_trace_t *t)
{
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    n = 0;
    h = ngx_http_llm_next_sent(r, "traceparent", &n);

    return h && ngx_http_llm_next_sent(r, "traceparent", &n) == NULL
           && ngx_http_llm_trace_parse(&h->value, t);
}


/* later versions begin as this one */

static ngx_uint_t
ngx_http_llm_trace_parse(ngx_str_t *s, ngx_http_llm_trace_t *t)
{
    u_char  *p;

    p = s->data;

    if (s->len < NGX_HTTP_LLM_TRACEPARENT
        || !ngx_http_llm_is_hex(p, 2) || ngx_strncmp(p, "ff", 2) == 0
        || p[2] != '-' || p[35] != '-' || p[52] != '-'
        || !ngx_http_llm_is_id(p + 3, 32)
        || !ngx_http_llm_is_id(p + 36, 16)
        || !ngx_http_llm_is_hex(p + 53, 2))
    {
        return 0;
    }

    if (s->len > NGX_HTTP_LLM_TRACEPARENT
        && (ngx_strncmp(p, "00", 2) == 0
            || p[NGX_HTTP_LLM_TRACEPARENT] != '-'))
    {
        return 0;
    }

    ngx_memcpy(t->trace, p + 3, 32);
    ngx_memcpy(t->parent, p + 36, 16);
    t->flags = ngx_hextoi(p + 53, 2) & NGX_HTTP_LLM_TRACE_FLAGS;

    return 1;
}


/* lower case letters only */

static ngx_uint_t
ngx_http_llm_is_hex(u_char *p, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        if (!((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f'))) {
            return 0;
        }
    }

    return 1;
}


static ngx_uint_t
ngx_http_llm_is_id(u_char *p, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        if (p[i] != '0') {
            return ngx_http_llm_is_hex(p, len);
        }
    }

    return 0;
}


/* several headers form one list */

static ngx_int_t
ngx_http_llm_trace_state(ngx_http_request_t *r, ngx_str_t *state)
{
    size_t            len;
    u_char           *p;
    ngx_uint_t        n;
    ngx_table_elt_t  *h;

    len = 0;
    n = 0;

    while ((h = ngx_http_llm_next_sent(r, "tracestate", &n)) != NULL) {
        len += h->value.len + 1;
    }

    if (len == 0) {
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    state->data = p;
    n = 0;

    while ((h = ngx_http_llm_next_sent(r, "tracestate", &n)) != NULL) {

        if (h->value.len == 0) {
            continue;
        }

        if (p != state->data) {
            *p++ = ',';
        }

        p = ngx_cpymem(p, h->value.data, h->value.len);
    }

    state->len = p - state->data;

    return NGX_OK;
}


ngx_int_t
ngx_http_llm_trace_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t              s;
    ngx_http_llm_trace_t  *t;

    t = ngx_http_llm_trace(r);
    if (t == NULL) {
        return NGX_ERROR;
    }

    switch (data) {

    case NGX_HTTP_LLM_TRACE_ID:
        s.data = t->trace;
        s.len = 32;
        break;

    case NGX_HTTP_LLM_TRACE_SPAN_ID:
        s.data = t->span;
        s.len = 16;
        break;

    case NGX_HTTP_LLM_TRACE_PARENT_ID:
        s.data = t->parent;
        s.len = t->parent[0] ? 16 : 0;
        break;

    case NGX_HTTP_LLM_TRACE_STATE:
        s = t->state;
        break;

    default: /* NGX_HTTP_LLM_TRACE_PARENT */

        s.data = ngx_pnalloc(r->pool, NGX_HTTP_LLM_TRACEPARENT);
        if (s.data == NULL) {
            return NGX_ERROR;
        }

        s.len = ngx_sprintf(s.data, "00-%*s-%*s-%02xi", (size_t) 32, t->trace,
                            (size_t) 16, t->span, t->flags)
                - s.data;
    }

    v->data = s.data;
    v->len = s.len;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = (s.len == 0);

    return NGX_OK;
}
