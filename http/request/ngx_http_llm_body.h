/*
 * Bodies of requests: read, unpacked, parsed in threads.
 */

#ifndef NGX_HTTP_LLM_BODY_H
#define NGX_HTTP_LLM_BODY_H


#include "http/request/ngx_http_llm_request.h"


/*
 * A body that is being parsed to a message, in r->pool.  The event loop fills
 * it, then a thread reads ctx->reply->endpoint, bufs, size, unpacked and conf,
 * and writes api, msg, err and alias, which the event loop reads afterwards.
 * Only the event loop uses parsing and gone.
 */

struct ngx_http_llm_body_s {
    ngx_http_llm_ctx_t          *ctx;
    ngx_chain_t                 *bufs;
    size_t                       size;
    size_t                       unpacked;      /* the most bytes that it may
                                                   have; 0: it is no gzip */
    llm_api_conf_t               conf;

    llm_api_t                   *api;           /* NULL: see err */
    llm_buf_t                    msg;
    llm_err_t                    err;
    llm_str_t                    alias;         /* that was asked for */

    ngx_uint_t                   stage;         /* the subject that is asked
                                                   next, by its index */
    uint32_t                     retry_after;   /* seconds, beside err; 0: none
                                                   are told */
    size_t                       held;          /* bytes of a message that
                                                   waits, or of an answer that
                                                   is sent again */

    ngx_http_llm_task_t          task;
    unsigned                     parsing:1;     /* a thread has it */
    unsigned                     gone:1;        /* terminated meanwhile */
    unsigned                     released:1;    /* a cleanup gives back what is
                                                   held */
};


/* ngx_http_llm_body.c */

void ngx_http_llm_init_bodies(void);
/* the body has been read: parses it, at once or in a thread */
void ngx_http_llm_body_handler(ngx_http_request_t *r);
/* counts what a request that waits holds from now on, 0: nothing; NGX_ERROR
   and body->err, which says why: it is more than there is room for */
ngx_int_t ngx_http_llm_hold(ngx_http_llm_body_t *body, size_t size,
    const char *why);
/* likewise, of its message and what else it holds */
ngx_int_t ngx_http_llm_hold_message(ngx_http_llm_body_t *body,
    const char *why);


/* ngx_http_llm_coding.c */

/* before the body is read: NGX_OK, or for another coding NGX_ERROR and *err */
ngx_int_t ngx_http_llm_coding(ngx_http_request_t *r, ngx_uint_t *gzip,
    llm_err_t *err);
/* the most bytes of one that is unpacked */
size_t ngx_http_llm_unpacked(ngx_http_llm_ctx_t *ctx);
/* unpacks a whole body, in any thread: NGX_OK, or NGX_ERROR and *err */
ngx_int_t ngx_http_llm_gunzip(u_char *p, size_t size, size_t max,
    llm_buf_t *out, llm_err_t *err);


#endif /* NGX_HTTP_LLM_BODY_H */
