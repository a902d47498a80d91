/*
 * $llm_...: variables about a request, for logs.
 */

#ifndef NGX_HTTP_LLM_VARIABLES_H
#define NGX_HTTP_LLM_VARIABLES_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* ngx_http_llm_variables.c */

ngx_int_t ngx_http_llm_add_variables(ngx_conf_t *cf);


#endif /* NGX_HTTP_LLM_VARIABLES_H */
