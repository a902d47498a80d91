/*
 * What a balancer before other servers needs: $llm_route_key, what a request
 * has in common with those that should go to the same machine.
 */

#ifndef NGX_HTTP_LLM_ROUTE_H
#define NGX_HTTP_LLM_ROUTE_H

#include "http/ngx_http_llm_module.h"


/* ngx_http_llm_route.c */

char *ngx_http_llm_route_bytes(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
void ngx_http_llm_merge_route(ngx_http_llm_loc_conf_t *prev,
    ngx_http_llm_loc_conf_t *conf);
ngx_int_t ngx_http_llm_route_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#endif /* NGX_HTTP_LLM_ROUTE_H */
