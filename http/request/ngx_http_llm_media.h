/*
 * Images and sound of requests: what a location allows of them
 * (ngx_http_llm_media.c), and those that are fetched (ngx_http_llm_fetch.c,
 * ngx_http_llm_fetch_bytes.c).
 */

#ifndef NGX_HTTP_LLM_MEDIA_H
#define NGX_HTTP_LLM_MEDIA_H


#include "http/conf/ngx_http_llm_conf.h"
#include "http/request/ngx_http_llm_stage.h"


/* llm_fetch */

typedef struct {
    ngx_http_llm_uri_t           uri;
    ngx_msec_t                   timeout;       /* of all files of a request */
} ngx_http_llm_fetch_t;


typedef struct {
    ngx_uint_t                   skip;          /* llm_images */
    ngx_uint_t                   max_images;
    size_t                       max_size;
    size_t                       max_pixels;
    size_t                       sound_size;    /* bytes */
    size_t                       max_seconds;
    ngx_http_llm_fetch_t        *fetch;         /* NULL: off */
} ngx_http_llm_media_conf_t;


/* state of a request that waits for its files, in r->pool */

typedef struct {
    ngx_http_llm_body_t         *body;
    ngx_http_llm_fetch_t        *fetch;
    ngx_str_t                    uri;           /* value of llm_fetch's URI */
    ngx_str_t                    args;
    ngx_http_variable_value_t   *variables;     /* of all subrequests, one
                                                   after another */
    ngx_http_request_t          *subrequest;    /* the present one, or the
                                                   last */
    ngx_uint_t                   index;         /* media that is fetched */
    ngx_str_t                    url;
    size_t                       len;           /* bytes of it so far */
    ngx_event_t                  stop;          /* ends the subrequest, after
                                                   its filters */
    unsigned                     last:1;        /* 1: llm_timeout ends the
                                                   wait */
    unsigned                     timedout:1;
    unsigned                     failed:1;      /* 1: the subrequest broke
                                                   off */
    unsigned                     refused:1;     /* 1: body->err says why the
                                                   bytes were not taken */
    unsigned                     over:1;        /* 1: the request has stopped
                                                   waiting */
} ngx_http_llm_fetched_t;


extern ngx_module_t  ngx_http_llm_media_module;


/* ngx_http_llm_fetch.c */

extern ngx_http_llm_stage_t  ngx_http_llm_media_stage;

/* $llm_fetch_url */
ngx_int_t ngx_http_llm_fetch_url(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);

/* ngx_http_llm_fetch_bytes.c */

/* the media of the request's message, and their number */
llm_media_ref_t *ngx_http_llm_fetch_list(ngx_http_llm_body_t *body,
    ngx_uint_t *n);
/* handler of the subrequests; data is a ngx_http_llm_fetched_t */
ngx_int_t ngx_http_llm_fetch_done(ngx_http_request_t *r, void *data,
    ngx_int_t rc);
/* judges the present file, which has come or has not; NGX_ERROR: see
   body->err */
ngx_int_t ngx_http_llm_fetch_result(ngx_http_llm_fetched_t *f);
/* takes the bytes of a subrequest that fetches; NGX_DECLINED: it is none */
ngx_int_t ngx_http_llm_fetch_body(ngx_http_request_t *r, ngx_chain_t *in);


#endif /* NGX_HTTP_LLM_MEDIA_H */
