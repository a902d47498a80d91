/*
 * Images and sound of requests: what a location allows of them
 * (ngx_http_llm_media.c), and those that are fetched (ngx_http_llm_fetch.c).
 */

#ifndef NGX_HTTP_LLM_MEDIA_H
#define NGX_HTTP_LLM_MEDIA_H


#include "http/request/ngx_http_llm_stage.h"


/* llm_fetch */

typedef struct {
    ngx_http_complex_value_t     uri;
    ngx_msec_t                   timeout;       /* of all files of a request */

    ngx_str_t                    file;          /* file and line of the
                                                   directive */
    ngx_uint_t                   line;
    ngx_http_core_srv_conf_t    *checked;       /* server in which the URI was
                                                   checked last */
} ngx_http_llm_fetch_t;


typedef struct {
    ngx_uint_t                   images;        /* 1: skip */
    ngx_uint_t                   max_images;
    size_t                       max_size;
    size_t                       max_pixels;
    ngx_http_llm_fetch_t        *fetch;         /* NULL: off */
} ngx_http_llm_media_conf_t;


extern ngx_module_t  ngx_http_llm_media_module;


/* ngx_http_llm_fetch.c */

extern ngx_http_llm_stage_t  ngx_http_llm_media_stage;

/* takes the bytes of a subrequest that fetches; NGX_DECLINED: it is none */
ngx_int_t ngx_http_llm_fetch_body(ngx_http_request_t *r, ngx_chain_t *in);
/* $llm_fetch_url */
ngx_int_t ngx_http_llm_fetch_url(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


#endif /* NGX_HTTP_LLM_MEDIA_H */
