/*
 * The variables $llm_load, $llm_waiting and $llm_predicted_ttft: how busy the
 * models are.
 */

#ifndef NGX_HTTP_LLM_BUSY_H
#define NGX_HTTP_LLM_BUSY_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


typedef enum {
    NGX_HTTP_LLM_LOAD_LOAD = 0,
    NGX_HTTP_LLM_LOAD_WAITING,
    NGX_HTTP_LLM_LOAD_TTFT
} ngx_http_llm_load_e;

ngx_int_t ngx_http_llm_busy_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#endif /* NGX_HTTP_LLM_BUSY_H */
