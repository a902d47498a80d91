/*
 * What the files of llm_guard share: a guard, and one that is asked.
 *
 *   ngx_http_llm_guard_conf.c  the module, the directive
 *   ngx_http_llm_guard.c       waiting, the verdict
 *   ngx_http_llm_guard_ask.c   the subrequest
 */

#ifndef NGX_HTTP_LLM_GUARD_H
#define NGX_HTTP_LLM_GUARD_H


#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_stage.h"


typedef struct {
    ngx_http_complex_value_t     uri;
    ngx_msec_t                   timeout;
    ngx_uint_t                   open;

    ngx_str_t                    file;          /* where it stands */
    ngx_uint_t                   line;
    ngx_http_core_srv_conf_t    *checked;       /* the server in which its URI
                                                   was looked for last */
} ngx_http_llm_guard_t;


typedef struct {
    ngx_uint_t                   used;          /* there is a llm_guard */
} ngx_http_llm_guard_main_conf_t;


typedef struct {
    ngx_http_llm_guard_t        *guard;         /* NULL: off */
} ngx_http_llm_guard_loc_conf_t;


/* a guard that is asked, in r->pool */

typedef struct {
    ngx_http_llm_body_t         *body;
    ngx_http_llm_guard_t        *guard;
    ngx_http_request_t          *subrequest;    /* NULL: it could not be
                                                   made */
    ngx_str_t                    uri;           /* as it was asked */
    ngx_str_t                    head;          /* of the guard's request,
                                                   which told ends */
    llm_buf_t                    told;          /* what the client said; len 0:
                                                   nothing */
    unsigned                     last:1;        /* it is llm_timeout that
                                                   limits it */
    unsigned                     timedout:1;
    unsigned                     failed:1;      /* there is no answer */
    unsigned                     over:1;        /* nobody waits any more */
} ngx_http_llm_asked_t;


extern ngx_module_t  ngx_http_llm_guard_module;


/* ngx_http_llm_guard.c */

extern ngx_http_llm_stage_t  ngx_http_llm_guard_stage;

/* a handler of the preaccess phase */
ngx_int_t ngx_http_llm_guard_length(ngx_http_request_t *r);

/* ngx_http_llm_guard_ask.c */

/* NGX_ERROR: it is none, as the log says */
ngx_int_t ngx_http_llm_guard_uri(ngx_http_request_t *r, ngx_str_t *uri,
    ngx_str_t *args);
/* makes the subrequest, at whose end done is called; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_guard_request(ngx_http_llm_asked_t *asked,
    ngx_str_t *uri, ngx_str_t *args, ngx_http_post_subrequest_pt done);


#endif /* NGX_HTTP_LLM_GUARD_H */
