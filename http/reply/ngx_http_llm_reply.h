/*
 * Replies: headers, bodies, errors, in the API's form.  The ground floor of the
 * glue: nothing here knows how a request is served.  What it needs to know of
 * one is told by the record below and by hooks.
 *
 *   ngx_http_llm_response.c  answers that go out in one piece
 *   ngx_http_llm_cause.c     why a request failed
 *   ngx_http_llm_filter.c    the module ngx_http_llm_filter_module
 *   ngx_http_llm_refusal.c   nginx's own errors in the API's form
 */

#ifndef NGX_HTTP_LLM_REPLY_H
#define NGX_HTTP_LLM_REPLY_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "engine/api/api.h"
#include "engine/llm.h"


/* most bytes of a client's x-request-id */
#define NGX_HTTP_LLM_MAX_ID  128


/*
 * What is known of a request for its replies: the filter module's context, and
 * in r->pool, because an internal redirect clears contexts.
 */

typedef struct {
    const llm_api_endpoint_t    *endpoint;      /* whose form errors have;
                                                   NULL: OpenAI's */
    ngx_str_t                    cause;         /* why it failed, in a word;
                                                   len 0: it has not */
    uint64_t                     retry_ms;      /* when it may be tried again;
                                                   0: not known */
    ngx_uint_t                   hopeless;      /* it need not be tried again */
} ngx_http_llm_reply_t;


/* set once the configuration is read */

typedef struct {
    ngx_uint_t                   on;            /* there are models */
    ngx_int_t                    request_id;    /* index of $request_id */
    ngx_int_t                    client_id;     /* $http_x_request_id */

    /* has the request been in a location with llm_api? */
    ngx_uint_t                 (*came)(ngx_http_request_t *r);
    /* it gets an error instead of an answer */
    void                       (*failed)(ngx_http_request_t *r);
    /* adds headers to whatever is answered; NGX_ERROR: no memory */
    ngx_int_t                  (*headers)(ngx_http_request_t *r);
} ngx_http_llm_reply_main_conf_t;


typedef struct {
    ngx_flag_t                   intercept_errors;
    ngx_uint_t                   ours;          /* it has a content handler of
                                                   ours */
    /* the endpoint, or else its form, of a request to llm_api, whatever it
       is refused by; NULL: it is no llm_api */
    const llm_api_endpoint_t  *(*form)(ngx_http_request_t *r);
} ngx_http_llm_reply_loc_conf_t;


extern ngx_module_t  ngx_http_llm_filter_module;


/* ngx_http_llm_response.c */

ngx_int_t ngx_http_llm_add_header(ngx_http_request_t *r, const char *name,
    const char *value, size_t len);
/* in any case of its letters */
ngx_uint_t ngx_http_llm_has_header(ngx_http_request_t *r, const char *name);
ngx_int_t ngx_http_llm_add_number(ngx_http_request_t *r, const char *name,
    uint64_t n);
/* the client's x-request-id if it is sane, else $request_id */
ngx_int_t ngx_http_llm_request_id(ngx_http_request_t *r, ngx_str_t *id);
/* x-request-id, and where the endpoint's clients look for it; for the filter,
   by which all answers have it */
ngx_int_t ngx_http_llm_add_id(ngx_http_request_t *r);
/* a whole answer; frees body, r->pool gets a copy */
ngx_int_t ngx_http_llm_send_body(ngx_http_request_t *r, ngx_uint_t status,
    const char *type, llm_buf_t *body);
/* an error in the endpoint's form, or the error_page of its status; the result
   goes to ngx_http_finalize_request() */
ngx_int_t ngx_http_llm_send_error(ngx_http_request_t *r, llm_err_t *err,
    uint32_t retry_after);
/* may a later error be handled by an error_page, which needs the body? */
ngx_uint_t ngx_http_llm_may_hand_on(ngx_http_request_t *r);
/* NGX_DECLINED: it is a GET or HEAD, its body was discarded; else the answer's
   code */
ngx_int_t ngx_http_llm_get_only(ngx_http_request_t *r);
/* the beginning of a client's text for a log, escaped by llm_clean() */
u_char *ngx_http_llm_clean(ngx_http_request_t *r, ngx_str_t *value);

/* ngx_http_llm_cause.c */

/* a new record, of a request that comes to its handler; NULL: no memory */
ngx_http_llm_reply_t *ngx_http_llm_create_reply(ngx_http_request_t *r);
/* the request's, or NULL: it has not come to its handler */
ngx_http_llm_reply_t *ngx_http_llm_get_reply(ngx_http_request_t *r);
void ngx_http_llm_set_cause(ngx_http_request_t *r, const llm_err_t *err);
/* in a word; empty: it has not failed, or nginx or the client ended it */
ngx_str_t ngx_http_llm_cause(ngx_http_request_t *r);
/* a line in the error log, without any text of the client's */
void ngx_http_llm_log_error(ngx_http_request_t *r, const llm_err_t *err);

/* ngx_http_llm_refusal.c */

/* for the filters: the header of a page that nginx itself sends for an error
   becomes that of a JSON error; then its body does */
ngx_int_t ngx_http_llm_refusal_header(ngx_http_request_t *r);
ngx_chain_t *ngx_http_llm_refusal_body(ngx_http_request_t *r, ngx_chain_t *in);


#endif /* NGX_HTTP_LLM_REPLY_H */
