/*
 * What a balancer before other servers needs: $llm_route_key, what a request
 * has in common with those that should go to the same machine, and
 * llm_upstream.
 */

#ifndef NGX_HTTP_LLM_ROUTE_H
#define NGX_HTTP_LLM_ROUTE_H

#include "http/ngx_http_llm_module.h"


/* of an upstream; NULL all, if it has no llm_upstream */

typedef struct {
    ngx_http_upstream_init_pt        init_upstream;     /* the method's own */
    ngx_http_upstream_init_peer_pt   init_peer;
    ngx_event_free_peer_pt           free_peer;
    u_char                          *file;              /* of the directive */
    ngx_uint_t                       line;
} ngx_http_llm_srv_conf_t;


/* ngx_http_llm_route.c */

char *ngx_http_llm_route_bytes(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
void ngx_http_llm_merge_route(ngx_http_llm_loc_conf_t *prev,
    ngx_http_llm_loc_conf_t *conf);
ngx_int_t ngx_http_llm_route_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/* ngx_http_llm_upstream.c */

void *ngx_http_llm_create_srv_conf(ngx_conf_t *cf);
char *ngx_http_llm_upstream(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* once all upstreams are known */
ngx_int_t ngx_http_llm_check_upstreams(ngx_conf_t *cf);


#endif /* NGX_HTTP_LLM_ROUTE_H */
