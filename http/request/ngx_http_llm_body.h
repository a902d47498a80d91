/*
 * Bodies of requests: decompressed and parsed, in threads if they are large.
 */

#ifndef NGX_HTTP_LLM_BODY_H
#define NGX_HTTP_LLM_BODY_H


#include "http/request/ngx_http_llm_request.h"


/*
 * A body that is being parsed to a message, in r->pool.  The event loop fills
 * it, then a thread reads ctx->reply->endpoint, bufs, size, unpacked and conf,
 * and writes endpoint, api, msg, media, err and alias, which the event loop
 * reads afterwards.  Only the event loop uses parsing and gone.
 */

struct ngx_http_llm_body_s {
    ngx_http_llm_ctx_t          *ctx;
    ngx_chain_t                 *bufs;
    size_t                       size;
    size_t                       unpacked;      /* most bytes of the body after
                                                   decompression; 0: it is not
                                                   compressed */
    llm_api_conf_t               conf;

    const llm_api_endpoint_t    *endpoint;      /* of the body's dialect; NULL:
                                                   that of its path */
    llm_api_t                   *api;           /* NULL: see err */
    llm_buf_t                    msg;
    ngx_uint_t                   media;         /* 1: msg is a request that owns
                                                   blocks of media; the thread
                                                   sets it */
    llm_err_t                    err;
    llm_str_t                    alias;         /* alias that was asked for */

    ngx_uint_t                   stage;         /* index of the subject whose
                                                   hook `parsed` is next */
    uint32_t                     retry_after;   /* seconds, sent with err; 0:
                                                   not sent */
    size_t                       held;          /* bytes of a message that
                                                   waits, or of an answer that
                                                   is sent again */

    ngx_http_llm_task_t          task;
    unsigned                     parsing:1;     /* a thread uses the body */
    unsigned                     gone:1;        /* the request was terminated
                                                   during parsing */
    unsigned                     released:1;    /* a cleanup will release what
                                                   is held */
    unsigned                     brief:1;       /* nothing else points to the
                                                   body: it is freed once the
                                                   request is submitted */
};


/* ngx_http_llm_body.c */

void ngx_http_llm_init_bodies(void);
/* ngx_http_llm_form.c: parse a form, in any thread: the body, in pieces, or its
   bytes, which were decompressed */
void ngx_http_llm_parse_form(ngx_http_llm_body_t *body);
void ngx_http_llm_parse_form_of(ngx_http_llm_body_t *body, u_char *p,
    size_t len);
/* called when the body was read: parses it, at once or in a thread */
void ngx_http_llm_body_handler(ngx_http_request_t *r);
/* sets the bytes that a waiting request holds; 0: none.  NGX_ERROR and
   body->err, with the message `why`: there is no room for so much */
ngx_int_t ngx_http_llm_hold(ngx_http_llm_body_t *body, size_t size,
    const char *why);
/* the same for the bytes of its message and of the guard's body */
ngx_int_t ngx_http_llm_hold_message(ngx_http_llm_body_t *body,
    const char *why);


/* ngx_http_llm_message.c */

/* frees the message, with the media of a request that was not sent */
void ngx_http_llm_free_message(ngx_http_llm_body_t *body);
/* has the media of a parsed request freed at the end of the request at the
   latest; NGX_ERROR and body->err: no memory */
ngx_int_t ngx_http_llm_keep_media(ngx_http_llm_body_t *body);

/* ngx_http_llm_coding.c */

/* reads bytes of a buffer that is in a file, in any thread; NGX_ERROR: they are
   not there, which was logged */
ngx_int_t ngx_http_llm_read_part(ngx_buf_t *b, off_t at, size_t size,
    u_char *p, ngx_log_t *log);
/* is the body compressed with gzip?  Called before it is read.  NGX_ERROR and
   *err: the request's headers name another coding */
ngx_int_t ngx_http_llm_coding(ngx_http_request_t *r, ngx_uint_t *gzip,
    llm_err_t *err);
/* most bytes of a body after decompression */
size_t ngx_http_llm_unpacked(ngx_http_llm_ctx_t *ctx);
/* decompresses a whole body, in any thread: NGX_OK, or NGX_ERROR and *err */
ngx_int_t ngx_http_llm_gunzip(u_char *p, size_t size, size_t max,
    llm_buf_t *out, llm_err_t *err);


#endif /* NGX_HTTP_LLM_BODY_H */
