/*
 * What the files of llm_guard share: a directive, and the state of a request
 * whose guard is asked.
 *
 *   ngx_http_llm_guard_conf.c  the module, the directive
 *   ngx_http_llm_guard.c       waiting, the verdict
 *   ngx_http_llm_guard_ask.c   the subrequest
 */

#ifndef NGX_HTTP_LLM_GUARD_H
#define NGX_HTTP_LLM_GUARD_H


#include "http/conf/ngx_http_llm_conf.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_stage.h"


typedef struct {
    ngx_http_llm_uri_t           uri;
    ngx_msec_t                   timeout;       /* ms */
    ngx_uint_t                   open;          /* 1: a guard's failure allows
                                                   the request */
} ngx_http_llm_guard_t;


typedef struct {
    ngx_uint_t                   used;          /* 1: some location has
                                                   llm_guard */
} ngx_http_llm_guard_main_conf_t;


typedef struct {
    ngx_http_llm_guard_t        *guard;         /* NULL: off */
} ngx_http_llm_guard_loc_conf_t;


/* state of a request whose guard is asked, in r->pool */

typedef struct {
    ngx_http_llm_body_t         *body;
    ngx_http_llm_guard_t        *guard;
    ngx_http_request_t          *subrequest;    /* NULL: not made */
    ngx_str_t                    uri;           /* value of llm_guard's URI */
    ngx_str_t                    head;          /* first part of the
                                                   subrequest's body; `told` is
                                                   the second */
    llm_buf_t                    told;          /* the client's part of the
                                                   body; len 0: nothing to
                                                   ask */
    unsigned                     last:1;        /* 1: llm_timeout ends the
                                                   wait */
    unsigned                     timedout:1;
    unsigned                     failed:1;      /* 1: the guard gave no
                                                   answer */
    unsigned                     over:1;        /* 1: the request has stopped
                                                   waiting */
} ngx_http_llm_asked_t;


extern ngx_module_t  ngx_http_llm_guard_module;


/* ngx_http_llm_guard.c */

extern ngx_http_llm_stage_t  ngx_http_llm_guard_stage;

/* handler of the preaccess phase: sets the length of a guard's subrequest */
ngx_int_t ngx_http_llm_guard_length(ngx_http_request_t *r);

/* ngx_http_llm_guard_ask.c */

/* makes the subrequest; done is called when it ends; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_guard_request(ngx_http_llm_asked_t *asked,
    ngx_str_t *uri, ngx_str_t *args, ngx_http_post_subrequest_pt done);


#endif /* NGX_HTTP_LLM_GUARD_H */
