/*
 * $llm_...: variables about any request, for logs.  Those of a subject that has
 * a module are in its module.
 */

#ifndef NGX_HTTP_LLM_VARIABLES_H
#define NGX_HTTP_LLM_VARIABLES_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* ngx_http_llm_variables.c */

ngx_int_t ngx_http_llm_add_observe(ngx_conf_t *cf);


#endif /* NGX_HTTP_LLM_VARIABLES_H */
