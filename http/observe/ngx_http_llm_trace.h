/*
 * The trace that a request belongs to, and what it did in it.
 *
 *   ngx_http_llm_trace.c  traceparent, $llm_trace_...
 *   ngx_http_llm_spans.c  $llm_spans
 */

#ifndef NGX_HTTP_LLM_TRACE_H
#define NGX_HTTP_LLM_TRACE_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


#define NGX_HTTP_LLM_TRACE_SAMPLED  1

/* the trace of a request, in r->pool; ids are hexadecimal */

typedef struct {
    u_char                       trace[32];
    u_char                       span[16];      /* of the request */
    u_char                       parent[16];    /* zeros: none */
    ngx_uint_t                   flags;
    ngx_str_t                    state;         /* tracestate */
} ngx_http_llm_trace_t;


/* what a variable has of it */

typedef enum {
    NGX_HTTP_LLM_TRACE_ID = 0,
    NGX_HTTP_LLM_TRACE_SPAN_ID,
    NGX_HTTP_LLM_TRACE_PARENT_ID,
    NGX_HTTP_LLM_TRACE_STATE,
    NGX_HTTP_LLM_TRACE_PARENT
} ngx_http_llm_trace_e;


/* ngx_http_llm_trace.c */

/* of any request; NULL: no memory, or no random numbers */
ngx_http_llm_trace_t *ngx_http_llm_trace(ngx_http_request_t *r);
/* data: ngx_http_llm_trace_e */
ngx_int_t ngx_http_llm_trace_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


/* ngx_http_llm_spans.c */

/* $llm_spans */
ngx_int_t ngx_http_llm_spans_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#endif /* NGX_HTTP_LLM_TRACE_H */
