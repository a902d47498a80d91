/*
 * OpenAI's WebSocket mode of Responses (llm_websocket): a connection that was
 * upgraded, and the requests that its messages become.
 *
 *   ngx_http_llm_socket.c         the directive, the handshake, the life of a
 *                                 connection
 *   ngx_http_llm_socket_frames.c  frames of RFC 6455
 *   ngx_http_llm_socket_job.c     reading messages; large ones in a thread
 *   ngx_http_llm_socket_ask.c     bytes of requests
 *   ngx_http_llm_socket_relay.c   requests and their answers
 *
 * Each message becomes an ordinary request of nginx, which comes by a pair of
 * sockets: so it goes through all phases, and limits, keys, quotas, logs and
 * metrics count it as any other.  It has the handshake's headers.  Its answer,
 * a stream of events, becomes messages.  Requests of several streams run beside
 * each other, each in a lane; those of one stream after each other.  A client
 * that leaves closes the pairs, which cancels the requests.
 *
 * The state is in the pool of the upgraded request; what it allocates beside is
 * freed with that.
 */

#ifndef NGX_HTTP_LLM_SOCKET_H
#define NGX_HTTP_LLM_SOCKET_H


#include "http/conf/ngx_http_llm_conf.h"


/* codes of close frames, RFC 6455, 7.4.1 */
#define NGX_HTTP_LLM_SOCKET_BYE       1000
#define NGX_HTTP_LLM_SOCKET_AWAY      1001      /* the worker ends */
#define NGX_HTTP_LLM_SOCKET_PROTOCOL  1002
#define NGX_HTTP_LLM_SOCKET_TYPE      1003      /* binary messages */
#define NGX_HTTP_LLM_SOCKET_LARGE     1009
#define NGX_HTTP_LLM_SOCKET_FAILED    1011

#define NGX_HTTP_LLM_SOCKET_TEXT      0x1       /* opcodes */
#define NGX_HTTP_LLM_SOCKET_BINARY    0x2
#define NGX_HTTP_LLM_SOCKET_CLOSE     0x8
#define NGX_HTTP_LLM_SOCKET_PING      0x9
#define NGX_HTTP_LLM_SOCKET_PONG      0xa

/* bytes for the client, above which no more of an answer is read */
#define NGX_HTTP_LLM_SOCKET_HIGH      65536


typedef struct ngx_http_llm_socket_s  ngx_http_llm_socket_t;
typedef struct ngx_http_llm_socket_job_s  ngx_http_llm_socket_job_t;

/* a request and its answer */

typedef struct {
    ngx_http_llm_socket_t       *socket;
    uint32_t                     number;        /* of the lane in api */

    ngx_connection_t            *pair;          /* the client's end of the
                                                   request's pair; NULL: none
                                                   runs */
    llm_buf_t                    ask;           /* the request */
    size_t                       asked;         /* bytes of it that were
                                                   written */
    llm_buf_t                    answer;        /* bytes that are not used
                                                   yet */
    size_t                       searched;      /* bytes of it without an
                                                   event's end */
    ngx_uint_t                   status;        /* of the answer; 0: its header
                                                   is not complete */

    unsigned                     events:1;      /* the answer is a stream */
    unsigned                     last:1;        /* its last event has come */
    unsigned                     waits:1;       /* the answer, for the client
                                                   to read, or for a thread */
} ngx_http_llm_socket_lane_t;

struct ngx_http_llm_socket_s {
    ngx_http_request_t          *request;       /* the upgraded one */
    void                       (*proceed)(ngx_http_llm_socket_t *s);
                                                /* goes on after an answer has
                                                   ended, or a thread; s may be
                                                   freed by that */
    llm_api_socket_t            *api;
    size_t                       most;          /* bytes of a message */
    ngx_msec_t                   until;         /* end of the connection's
                                                   life */

    ngx_http_llm_socket_job_t   *job;           /* a thread reads a message or
                                                   an event, and uses api; or
                                                   NULL */
    llm_buf_t                    in;            /* bytes that are not parsed
                                                   yet */
    llm_buf_t                    message;       /* data of its frames so far */
    llm_buf_t                    out;           /* frames for the client */
    size_t                       sent;          /* bytes of out */

    ngx_http_llm_socket_lane_t   lanes[LLM_API_SOCKET_LANES];
    ngx_uint_t                   running;       /* lanes with a request */
    ngx_uint_t                   turn;          /* lane behind the one that was
                                                   read last */

    unsigned                     begun:1;       /* of a message there were
                                                   frames, but not the last */
    unsigned                     whole:1;       /* the message is complete, and
                                                   not read yet */
    unsigned                     again:1;       /* a lane has become free since
                                                   those that wait were tried */
    unsigned                     pinged:1;      /* nothing came since a ping */
    unsigned                     closing:1;     /* a close frame is in out, or
                                                   was sent */
};


/* ngx_http_llm_socket_frames.c */

/* parses frames until a message is complete or more bytes are needed; answers
   control frames */
void ngx_http_llm_socket_parse(ngx_http_llm_socket_t *s);
/* adds a frame to out */
void ngx_http_llm_socket_frame(ngx_http_llm_socket_t *s, ngx_uint_t opcode,
    const void *data, size_t len);
/* adds a close frame, once */
void ngx_http_llm_socket_close(ngx_http_llm_socket_t *s, ngx_uint_t code);
/* adds texts, with a NUL between two, as messages, and frees the buffer */
void ngx_http_llm_socket_texts(ngx_http_llm_socket_t *s, llm_buf_t *texts);
/* sends what is in out, as far as the client reads.  NGX_DONE: the connection
   was closed by that, and s is freed */
ngx_int_t ngx_http_llm_socket_flush(ngx_http_llm_socket_t *s);


/* ngx_http_llm_socket_job.c */

/* what reads a text, in a thread if it is large; what takes the result, in the
   event loop */
typedef int (*ngx_http_llm_socket_read_pt)(llm_api_socket_t *api,
    llm_str_t text, uint32_t *lane, llm_buf_t *out, llm_err_t *err);
typedef void (*ngx_http_llm_socket_take_pt)(ngx_http_llm_socket_t *s, int rc,
    uint32_t lane, llm_buf_t *out, llm_err_t *err);

/* size: bytes that are read, with what is in api.  s->job is set if it is not
   taken yet */
void ngx_http_llm_socket_read_json(ngx_http_llm_socket_t *s, llm_str_t text,
    size_t size, uint32_t lane, ngx_http_llm_socket_read_pt read,
    ngx_http_llm_socket_take_pt take);
/* s ends before its thread does */
void ngx_http_llm_socket_leave_job(ngx_http_llm_socket_t *s);


/* ngx_http_llm_socket_ask.c */

/* fills lane->ask, which has failed if there is no memory */
void ngx_http_llm_socket_write_ask(ngx_http_llm_socket_lane_t *lane,
    llm_buf_t *body);
/* event handler: writes it to the pair */
void ngx_http_llm_socket_write(ngx_event_t *wev);


/* ngx_http_llm_socket_relay.c */

/* begins the request with this body; NGX_ERROR: no memory or connections */
ngx_int_t ngx_http_llm_socket_relay(ngx_http_llm_socket_lane_t *lane,
    llm_buf_t *body);
/* reads more of the answers, if nothing hinders that any more */
void ngx_http_llm_socket_resume(ngx_http_llm_socket_t *s);
/* the lane's request is over: cancels it if it runs */
void ngx_http_llm_socket_leave(ngx_http_llm_socket_lane_t *lane);
/* cancels all requests */
void ngx_http_llm_socket_cancel(ngx_http_llm_socket_t *s);


#endif /* NGX_HTTP_LLM_SOCKET_H */
