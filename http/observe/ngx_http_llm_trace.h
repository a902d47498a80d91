/*
 * Tracing: a request's trace context, and its spans.
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

/* trace context of a request, in r->pool; ids are hexadecimal */

typedef struct {
    u_char                       trace[32];
    u_char                       span[16];      /* of this request */
    u_char                       parent[16];    /* zeros: none */
    ngx_uint_t                   flags;
    ngx_str_t                    state;         /* value of tracestate */
} ngx_http_llm_trace_t;


/* parts of it that have a variable */

typedef enum {
    NGX_HTTP_LLM_TRACE_ID = 0,
    NGX_HTTP_LLM_TRACE_SPAN_ID,
    NGX_HTTP_LLM_TRACE_PARENT_ID,
    NGX_HTTP_LLM_TRACE_STATE,
    NGX_HTTP_LLM_TRACE_PARENT
} ngx_http_llm_trace_e;


/* ngx_http_llm_trace.c */

/* the trace context of any request; NULL: no memory, or no random numbers */
ngx_http_llm_trace_t *ngx_http_llm_trace(ngx_http_request_t *r);
/* data: ngx_http_llm_trace_e */
ngx_int_t ngx_http_llm_trace_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


/* ngx_http_llm_spans.c */

/* $llm_spans */
ngx_int_t ngx_http_llm_spans_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#endif /* NGX_HTTP_LLM_TRACE_H */
