/*
 * llm_capture: a request's input and output as variables for logs.
 */

#ifndef NGX_HTTP_LLM_CAPTURE_H
#define NGX_HTTP_LLM_CAPTURE_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* data: 0: $llm_input; 1: $llm_output */
ngx_int_t ngx_http_llm_capture_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#endif /* NGX_HTTP_LLM_CAPTURE_H */
