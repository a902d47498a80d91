/*
 * Replies: headers, bodies and errors in the API's form.  The lowest layer of
 * the glue: nothing here knows how a request is served.  What replies need to
 * know of a request is in the record below, or comes from hooks.
 *
 *   ngx_http_llm_response.c  answers that go out in one piece
 *   ngx_http_llm_cause.c     why a request failed
 *   ngx_http_llm_filter.c    the module ngx_http_llm_filter_module
 *   ngx_http_llm_refusal.c   nginx's own errors in the API's form
 *   ngx_http_llm_sent.c      headers that the client has sent
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
 * What replies need to know of a request.  It is the filter module's context,
 * and the data of a cleanup of r->pool, where it can still be found after an
 * internal redirect has cleared the contexts.
 */

typedef struct {
    const llm_api_endpoint_t    *endpoint;      /* endpoint whose form errors
                                                   have; NULL: OpenAI's form */
    ngx_str_t                    cause;         /* why the request failed, in a
                                                   word; len 0: it has not */
    uint64_t                     retry_ms;      /* milliseconds until a retry
                                                   may succeed; 0: unknown */
    ngx_uint_t                   hopeless;      /* 1: no retry can succeed */
} ngx_http_llm_reply_t;


/* set when the whole configuration is read */

typedef struct {
    ngx_uint_t                   on;            /* 1: there are models, or
                                                   answers to look at */
    ngx_int_t                    request_id;    /* index of $request_id */
    ngx_int_t                    client_id;     /* $http_x_request_id */

    /* has the request been in a location with llm_api? */
    ngx_uint_t                 (*came)(ngx_http_request_t *r);
    /* called before an error is sent instead of an answer */
    void                       (*failed)(ngx_http_request_t *r);
    /* adds headers to an answer of any location; NGX_ERROR: no memory */
    ngx_int_t                  (*headers)(ngx_http_request_t *r);
    /* takes a part of a subrequest's body; NGX_DECLINED: it goes on to the
       client */
    ngx_int_t                  (*take)(ngx_http_request_t *r, ngx_chain_t *in);
    /* looks at a part of a main request's body, in memory; NULL: nobody does */
    void                       (*pass)(ngx_http_request_t *r, ngx_chain_t *in);
} ngx_http_llm_reply_main_conf_t;


typedef struct {
    ngx_flag_t                   intercept_errors;
    ngx_uint_t                   ours;          /* 1: the content handler is
                                                   ours */
    /* the endpoint whose form errors have, by the request's path, even if the
       request was refused before routing; NULL: not a llm_api location */
    const llm_api_endpoint_t  *(*form)(ngx_http_request_t *r);
} ngx_http_llm_reply_loc_conf_t;


extern ngx_module_t  ngx_http_llm_filter_module;


/* ngx_http_llm_response.c */

ngx_int_t ngx_http_llm_add_header(ngx_http_request_t *r, const char *name,
    const char *value, size_t len);
/* ignores case */
ngx_uint_t ngx_http_llm_has_header(ngx_http_request_t *r, const char *name);
ngx_int_t ngx_http_llm_add_number(ngx_http_request_t *r, const char *name,
    uint64_t n);
/* the client's x-request-id if it is sane, else $request_id */
ngx_int_t ngx_http_llm_request_id(ngx_http_request_t *r, ngx_str_t *id);
/* adds the request's id as x-request-id, and in the header where the endpoint's
   clients expect it; called by the header filter */
ngx_int_t ngx_http_llm_add_id(ngx_http_request_t *r);
/* sends a whole answer; copies body to r->pool and frees it */
ngx_int_t ngx_http_llm_send_body(ngx_http_request_t *r, ngx_uint_t status,
    const char *type, llm_buf_t *body);
/* sends an error in the endpoint's form, or leaves it to the error_page of its
   status; the result goes to ngx_http_finalize_request().  retry_after:
   seconds; 0: no Retry-After header */
ngx_int_t ngx_http_llm_send_error(ngx_http_request_t *r, llm_err_t *err,
    uint32_t retry_after);
/* may a later error be handled by an error_page, which needs the body? */
ngx_uint_t ngx_http_llm_may_hand_on(ngx_http_request_t *r);
/* NGX_DECLINED: the method is GET or HEAD, and the body was discarded;
   otherwise the handler returns the result, because an error was sent */
ngx_int_t ngx_http_llm_get_only(ngx_http_request_t *r);
/* the beginning of a client's text for a log, escaped by llm_clean() */
u_char *ngx_http_llm_clean(ngx_http_request_t *r, ngx_str_t *value);

/* ngx_http_llm_cause.c */

/* creates the record when the request reaches its handler; NULL: no memory */
ngx_http_llm_reply_t *ngx_http_llm_create_reply(ngx_http_request_t *r);
/* NULL: the request has not reached its handler */
ngx_http_llm_reply_t *ngx_http_llm_get_reply(ngx_http_request_t *r);
void ngx_http_llm_set_cause(ngx_http_request_t *r, const llm_err_t *err);
/* the latest data in r->pool whose cleanup handler is this one, or NULL: how
   records are found once an internal redirect has cleared the contexts */
void *ngx_http_llm_find_record(ngx_http_request_t *r,
    ngx_pool_cleanup_pt handler);
/* why the request failed, in a word; empty: it has not failed, or nginx or the
   client ended it */
ngx_str_t ngx_http_llm_cause(ngx_http_request_t *r);
/* writes a line to the error log, without any text from the client */
void ngx_http_llm_log_error(ngx_http_request_t *r, const llm_err_t *err);

/* ngx_http_llm_sent.c */

/* the first header of this name; NULL: none was sent */
ngx_table_elt_t *ngx_http_llm_sent(ngx_http_request_t *r, const char *name);
/* the next one of this name after the first n of all headers; n is then the
   number of headers up to it */
ngx_table_elt_t *ngx_http_llm_next_sent(ngx_http_request_t *r,
    const char *name, ngx_uint_t *n);
/* does the value of an Origin header name this request's host? */
ngx_uint_t ngx_http_llm_same_origin(ngx_http_request_t *r, ngx_str_t *origin);

/* ngx_http_llm_refusal.c */

/* for the filters: turn the error page that nginx itself sends into a JSON
   error, first its header, then its body */
ngx_int_t ngx_http_llm_refusal_header(ngx_http_request_t *r);
ngx_chain_t *ngx_http_llm_refusal_body(ngx_http_request_t *r, ngx_chain_t *in);


#endif /* NGX_HTTP_LLM_REPLY_H */
