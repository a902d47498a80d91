/*
 * llm_capture: the texts of a request for logs.
 */

#ifndef NGX_HTTP_LLM_CAPTURE_H
#define NGX_HTTP_LLM_CAPTURE_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* $llm_input; $llm_output where data is set */
ngx_int_t ngx_http_llm_capture_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#endif /* NGX_HTTP_LLM_CAPTURE_H */
