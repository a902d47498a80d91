/*
 * For a balancer in front of other servers: $llm_route_key, which is equal for
 * requests that should go to the same server, and llm_upstream.
 */

#ifndef NGX_HTTP_LLM_ROUTE_H
#define NGX_HTTP_LLM_ROUTE_H

#include "http/conf/ngx_http_llm_conf.h"


/* of an upstream; all NULL without llm_upstream */

typedef struct {
    ngx_http_upstream_init_pt        init_upstream;     /* these three: of the
                                                           balancing method */
    ngx_http_upstream_init_peer_pt   init_peer;
    ngx_event_free_peer_pt           free_peer;
    u_char                          *file;              /* of the directive */
    ngx_uint_t                       line;
} ngx_http_llm_upstream_conf_t;


typedef struct {
    size_t                       message;       /* most bytes of a message in
                                                   $llm_route_key */
    size_t                       prompt;        /* most bytes of a prompt in
                                                   it */
} ngx_http_llm_route_conf_t;


extern ngx_module_t  ngx_http_llm_upstream_module;


/* ngx_http_llm_route.c */

char *ngx_http_llm_route_bytes(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
void *ngx_http_llm_create_route_conf(ngx_conf_t *cf);
char *ngx_http_llm_merge_route_conf(ngx_conf_t *cf, void *parent, void *child);
ngx_int_t ngx_http_llm_route_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#endif /* NGX_HTTP_LLM_ROUTE_H */
