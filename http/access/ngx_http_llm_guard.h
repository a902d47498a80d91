/*
 * What the files of llm_guard share: a guard, and one that is asked.
 *
 *   ngx_http_llm_guard.c       the directive, waiting, the verdict
 *   ngx_http_llm_guard_ask.c   the subrequest
 */

#ifndef NGX_HTTP_LLM_GUARD_H
#define NGX_HTTP_LLM_GUARD_H


#include "http/ngx_http_llm_module.h"


struct ngx_http_llm_guard_s {
    ngx_http_complex_value_t     uri;
    ngx_msec_t                   timeout;
    ngx_uint_t                   open;

    ngx_str_t                    file;          /* where it stands */
    ngx_uint_t                   line;
    ngx_http_core_srv_conf_t    *checked;       /* the server in which its URI
                                                   was looked for last */
};


/* a guard that is asked, in r->pool */

typedef struct {
    ngx_http_llm_body_t         *body;
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


/* ngx_http_llm_guard.c: the subrequest has ended */
ngx_int_t ngx_http_llm_guard_done(ngx_http_request_t *r, void *data,
    ngx_int_t rc);

/* ngx_http_llm_guard_ask.c */

/* NGX_ERROR: it is none, as the log says */
ngx_int_t ngx_http_llm_guard_uri(ngx_http_request_t *r, ngx_str_t *uri,
    ngx_str_t *args);
/* makes the subrequest; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_guard_request(ngx_http_llm_asked_t *asked,
    ngx_str_t *uri, ngx_str_t *args);


#endif /* NGX_HTTP_LLM_GUARD_H */
