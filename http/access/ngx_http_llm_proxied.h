/*
 * Requests that another server answers, see ngx_http_llm_proxied.c.
 */

#ifndef NGX_HTTP_LLM_PROXIED_H
#define NGX_HTTP_LLM_PROXIED_H


#include "http/access/ngx_http_llm_quota.h"


typedef struct {
    ngx_http_request_t          *request;
    ngx_http_llm_bill_t         *bill;          /* NULL: no limits */
    uint32_t                     scope;         /* LLM_SCOPE_... of its path */
    ngx_uint_t                   form;          /* 1: the path takes a form */
    ngx_uint_t                   answered;      /* 1: with 200, by another
                                                   server */
    ngx_uint_t                   text;          /* 1: the answer may have a
                                                   usage */
    ngx_uint_t                   coded;         /* 1: it is compressed */
    ngx_uint_t                   whole;         /* 1: its end has come */
    llm_proxied_t                usage;
} ngx_http_llm_proxied_t;


extern ngx_http_llm_stage_t  ngx_http_llm_proxied_stage;

/* called when llm_proxied_usage is read, and at the end of the configuration */
char *ngx_http_llm_proxied_is_set(ngx_conf_t *cf, void *post, void *data);
ngx_int_t ngx_http_llm_proxied_init(ngx_conf_t *cf);
/* is the location one with llm_proxied_usage, and serves nothing of ours? */
ngx_uint_t ngx_http_llm_is_proxied(ngx_http_request_t *r);
/* the request goes on in another location: it costs nothing in this one */
void ngx_http_llm_proxied_leave(ngx_http_request_t *r);
/* NULL: the request was in no such location */
ngx_http_llm_proxied_t *ngx_http_llm_get_proxied(ngx_http_request_t *r);


#endif /* NGX_HTTP_LLM_PROXIED_H */
