/*
 * The request that a message of a WebSocket becomes, and its answer.
 *
 * One end of a pair of sockets is a connection of this worker as if a client
 * had connected to the port of the WebSocket, with that client's address; the
 * other end writes the request and reads the answer, in HTTP/1.0, so that the
 * answer ends with the connection and is not chunked.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/socket/ngx_http_llm_socket.h"


/* bytes of an answer's header, or of an answer that is no stream */
#define NGX_HTTP_LLM_SOCKET_MOST_ANSWER  (1024 * 1024)


static ngx_int_t ngx_http_llm_socket_has_room(ngx_log_t *log);
static ngx_int_t ngx_http_llm_socket_accept(ngx_http_llm_socket_t *s,
    ngx_socket_t fd);
static ngx_int_t ngx_http_llm_socket_dress(ngx_connection_t *c,
    ngx_connection_t *of);
static ngx_int_t ngx_http_llm_socket_connect(ngx_http_llm_socket_lane_t *lane,
    ngx_socket_t fd);
static void ngx_http_llm_socket_read(ngx_event_t *rev);
static void ngx_http_llm_socket_read_answer(ngx_http_llm_socket_lane_t *lane);
static void ngx_http_llm_socket_use(ngx_http_llm_socket_lane_t *lane);
static ngx_int_t ngx_http_llm_socket_use_head(
    ngx_http_llm_socket_lane_t *lane);
static void ngx_http_llm_socket_use_event(ngx_http_llm_socket_lane_t *lane,
    char *p, size_t len);
static int ngx_http_llm_socket_read_event(llm_api_socket_t *api,
    llm_str_t text, uint32_t *lane, llm_buf_t *out, llm_err_t *err);
static void ngx_http_llm_socket_take_event(ngx_http_llm_socket_t *s, int rc,
    uint32_t lane, llm_buf_t *out, llm_err_t *err);
static void ngx_http_llm_socket_end(ngx_http_llm_socket_lane_t *lane);


ngx_int_t
ngx_http_llm_socket_relay(ngx_http_llm_socket_lane_t *lane, llm_buf_t *body)
{
    int                     fds[2];
    ngx_http_llm_socket_t  *s;

    s = lane->socket;

    ngx_http_llm_socket_write_ask(lane, body);

    if (lane->ask.failed
        || ngx_http_llm_socket_has_room(s->request->connection->log) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == -1) {
        ngx_log_error(NGX_LOG_ERR, s->request->connection->log,
                      ngx_socket_errno, "socketpair() failed for a WebSocket");
        return NGX_ERROR;
    }

    if (ngx_http_llm_socket_connect(lane, fds[0]) != NGX_OK) {
        (void) ngx_close_socket(fds[1]);
        return NGX_ERROR;
    }

    if (ngx_http_llm_socket_accept(s, fds[1]) != NGX_OK) {
        ngx_http_llm_socket_leave(lane);
        return NGX_ERROR;
    }

    ngx_http_llm_socket_write(lane->pair->write);

    return NGX_OK;
}


/* are there two connections?  Found out by trying, each message of a client
   would write a line into the log */

static ngx_int_t
ngx_http_llm_socket_has_room(ngx_log_t *log)
{
    static time_t  logged;              /* this worker's event loop's alone */

    if (ngx_cycle->free_connection_n + ngx_cycle->reusable_connections_n >= 2) {
        return NGX_OK;
    }

    if (logged != ngx_time()) {
        logged = ngx_time();
        ngx_log_error(NGX_LOG_WARN, log, 0, "%ui worker_connections are not "
                      "enough for the messages of WebSockets, each of which "
                      "takes two", ngx_cycle->connection_n);
    }

    return NGX_ERROR;
}


/* ---- nginx's end ---- */

/* does with one end of the pair what nginx does with a connection that it has
   accepted; takes the socket, also if it fails */

static ngx_int_t
ngx_http_llm_socket_accept(ngx_http_llm_socket_t *s, ngx_socket_t fd)
{
    ngx_connection_t       *c, *of;
    ngx_http_connection_t  *hc;

    of = s->request->connection;

    c = ngx_get_connection(fd, of->log);
    if (c == NULL) {
        (void) ngx_close_socket(fd);
        return NGX_ERROR;
    }

    if (ngx_nonblocking(fd) == -1
        || (c->pool = ngx_create_pool(of->listening->pool_size, of->log))
           == NULL
        || ngx_http_llm_socket_dress(c, of) != NGX_OK)
    {
        if (c->pool) {
            ngx_destroy_pool(c->pool);
        }

        ngx_close_connection(c);
        return NGX_ERROR;
    }

#if (NGX_STAT_STUB)
    (void) ngx_atomic_fetch_add(ngx_stat_active, 1);
#endif

    c->listening->handler(c);

    if (c->destroyed) {
        return NGX_ERROR;
    }

    /* its request is about to be written: nginx, short of connections, must not
       close it as one that nobody uses */

    ngx_reusable_connection(c, 0);

    /* TLS, and the header of the PROXY protocol, were the WebSocket's */

    hc = c->data;
    hc->proxy_protocol = 0;
#if (NGX_HTTP_SSL)
    hc->ssl = 0;
#endif

    return NGX_OK;
}


/* gives the connection what ngx_event_accept() gives one; addresses are those
   of the WebSocket's client */

static ngx_int_t
ngx_http_llm_socket_dress(ngx_connection_t *c, ngx_connection_t *of)
{
    ngx_log_t  *log;

    log = ngx_palloc(c->pool, sizeof(ngx_log_t));
    c->sockaddr = ngx_palloc(c->pool, NGX_SOCKADDRLEN);
    c->local_sockaddr = ngx_palloc(c->pool, NGX_SOCKADDRLEN);
    c->addr_text.data = ngx_pnalloc(c->pool, of->addr_text.len);

    if (log == NULL || c->sockaddr == NULL || c->local_sockaddr == NULL
        || c->addr_text.data == NULL
        || ngx_connection_local_sockaddr(of, NULL, 0) != NGX_OK)
    {
        return NGX_ERROR;
    }

    *log = of->listening->log;
    ngx_memcpy(c->sockaddr, of->sockaddr, of->socklen);
    ngx_memcpy(c->local_sockaddr, of->local_sockaddr, of->local_socklen);
    ngx_memcpy(c->addr_text.data, of->addr_text.data, of->addr_text.len);

    c->type = SOCK_STREAM;
    c->socklen = of->socklen;
    c->local_socklen = of->local_socklen;
    c->addr_text.len = of->addr_text.len;
    c->listening = of->listening;
    c->log = log;
    c->pool->log = log;
    c->read->log = log;
    c->write->log = log;
    c->write->ready = 1;
    c->recv = ngx_recv;
    c->send = ngx_send;
    c->recv_chain = ngx_recv_chain;
    c->send_chain = ngx_send_chain;
    c->tcp_nodelay = NGX_TCP_NODELAY_DISABLED;  /* it is no TCP */
    c->tcp_nopush = NGX_TCP_NOPUSH_DISABLED;
    c->number = ngx_atomic_fetch_add(ngx_connection_counter, 1);
#if (nginx_version >= 1019010)
    c->start_time = ngx_current_msec;           /* for keepalive_time */
#endif

    log->data = NULL;
    log->handler = NULL;
    log->connection = c->number;

    return NGX_OK;
}


/* ---- this end ---- */

static ngx_int_t
ngx_http_llm_socket_connect(ngx_http_llm_socket_lane_t *lane, ngx_socket_t fd)
{
    ngx_log_t         *log;
    ngx_connection_t  *c;

    log = lane->socket->request->connection->log;

    c = ngx_get_connection(fd, log);
    if (c == NULL) {
        (void) ngx_close_socket(fd);
        return NGX_ERROR;
    }

    lane->socket->running++;
    lane->pair = c;
    lane->asked = 0;
    lane->status = 0;
    lane->events = 0;
    lane->last = 0;
    lane->waits = 0;
    lane->searched = 0;

    c->data = lane;
    c->type = SOCK_STREAM;
    c->recv = ngx_recv;
    c->send = ngx_send;
    c->read->handler = ngx_http_llm_socket_read;
    c->write->handler = ngx_http_llm_socket_write;
    c->read->log = log;
    c->write->log = log;
    c->write->ready = 1;

    if (ngx_nonblocking(fd) == -1
        || ngx_handle_read_event(c->read, 0) != NGX_OK)
    {
        ngx_http_llm_socket_leave(lane);
        return NGX_ERROR;
    }

    return NGX_OK;
}


void
ngx_http_llm_socket_leave(ngx_http_llm_socket_lane_t *lane)
{
    if (lane->pair) {
        ngx_close_connection(lane->pair);
        lane->pair = NULL;
        lane->socket->running--;
    }

    llm_buf_free(&lane->ask);
    llm_buf_free(&lane->answer);
    llm_buf_init(&lane->ask, 0);
    llm_buf_init(&lane->answer, 0);
}


void
ngx_http_llm_socket_cancel(ngx_http_llm_socket_t *s)
{
    ngx_uint_t  i;

    for (i = 0; i < LLM_API_SOCKET_LANES; i++) {
        ngx_http_llm_socket_leave(&s->lanes[i]);
    }
}


/* ---- the answer ---- */

static void
ngx_http_llm_socket_read(ngx_event_t *rev)
{
    ngx_connection_t            *c, *client;
    ngx_http_llm_socket_lane_t  *lane;

    c = rev->data;
    lane = c->data;
    client = lane->socket->request->connection;

    ngx_http_llm_socket_read_answer(lane);
    ngx_http_run_posted_requests(client);
}


static void
ngx_http_llm_socket_read_answer(ngx_http_llm_socket_lane_t *lane)
{
    ssize_t                 n;
    ngx_connection_t       *c;
    ngx_http_llm_socket_t  *s;

    u_char                  buf[16384];

    c = lane->pair;
    s = lane->socket;

    if (s->job == NULL) {
        ngx_http_llm_socket_use(lane);  /* what waited for a thread */
    }

    if (s->closing) {
        ngx_http_llm_socket_cancel(s);

    } else if (s->job || s->out.len - s->sent >= NGX_HTTP_LLM_SOCKET_HIGH) {
        lane->waits = 1;

    } else {

        /* one piece, and then it is the turn of the other streams */

        s->turn = lane - s->lanes + 1;
        n = c->recv(c, buf, sizeof(buf));

        if ((n <= 0 && n != NGX_AGAIN)
            || ngx_handle_read_event(c->read, 0) != NGX_OK)
        {
            ngx_http_llm_socket_end(lane);
            return;
        }

        if (n != NGX_AGAIN) {
            (void) llm_buf_add(&lane->answer, buf, (size_t) n);
            ngx_http_llm_socket_use(lane);
        }

        if (s->closing) {
            ngx_http_llm_socket_cancel(s);

        } else if (n != NGX_AGAIN) {
            ngx_post_event(c->read, &ngx_posted_events);
        }
    }

    (void) ngx_http_llm_socket_flush(s);
}


void
ngx_http_llm_socket_resume(ngx_http_llm_socket_t *s)
{
    ngx_uint_t                   i;
    ngx_http_llm_socket_lane_t  *lane;

    for (i = 0; i < LLM_API_SOCKET_LANES; i++) {
        lane = &s->lanes[(s->turn + i) % LLM_API_SOCKET_LANES];

        if (lane->pair && lane->waits && !s->job
            && s->out.len - s->sent < NGX_HTTP_LLM_SOCKET_HIGH)
        {
            lane->waits = 0;
            ngx_post_event(lane->pair->read, &ngx_posted_events);
        }
    }
}


/* takes complete events out of the answer, until a thread has one */

static void
ngx_http_llm_socket_use(ngx_http_llm_socket_lane_t *lane)
{
    char                   *p, *end;
    size_t                  at;
    ngx_http_llm_socket_t  *s;

    if (lane->status == 0 && ngx_http_llm_socket_use_head(lane) != NGX_OK) {
        return;
    }

    if (!lane->events) {
        if (lane->answer.len > NGX_HTTP_LLM_SOCKET_MOST_ANSWER) {
            lane->answer.failed = 1;
        }

        return;
    }

    s = lane->socket;

    for (at = 0; at < lane->answer.len && !s->closing && !s->job; /* void */ ) {
        p = lane->answer.data + at;
        end = memmem(p + lane->searched,
                     lane->answer.len - at - lane->searched, "\n\n", 2);

        if (end == NULL) {
            lane->searched = lane->answer.len - at - 1;
            break;
        }

        lane->searched = 0;
        ngx_http_llm_socket_use_event(lane, p, (size_t) (end - p));
        at = (size_t) (end + 2 - lane->answer.data);
    }

    if (at) {
        lane->answer.len -= at;
        ngx_memmove(lane->answer.data, lane->answer.data + at,
                    lane->answer.len);
    }

    if (lane->answer.failed) {
        ngx_http_llm_socket_close(s, NGX_HTTP_LLM_SOCKET_FAILED);
    }
}


/* NGX_AGAIN: the header is not complete */

static ngx_int_t
ngx_http_llm_socket_use_head(ngx_http_llm_socket_lane_t *lane)
{
    char       *end;
    size_t      len;
    ngx_int_t   status;

    static char  events[] = "\r\ncontent-type: text/event-stream";

    end = lane->answer.len
          ? memmem(lane->answer.data, lane->answer.len, "\r\n\r\n", 4) : NULL;

    if (end == NULL) {
        if (lane->answer.len > NGX_HTTP_LLM_SOCKET_MOST_ANSWER) {
            ngx_http_llm_socket_close(lane->socket,
                                      NGX_HTTP_LLM_SOCKET_FAILED);
        }

        return NGX_AGAIN;
    }

    /* "HTTP/1.1 200 " */

    len = (size_t) (end - lane->answer.data);
    status = len < 12 ? NGX_ERROR
                      : ngx_atoi((u_char *) lane->answer.data + 9, 3);
    lane->status = status > 0 ? (ngx_uint_t) status : 500;
    lane->events = lane->status == 200
                   && ngx_strlcasestrn((u_char *) lane->answer.data,
                                       (u_char *) end, (u_char *) events,
                                       sizeof(events) - 2)
                      != NULL;

    lane->answer.len -= len + 4;
    ngx_memmove(lane->answer.data, end + 4, lane->answer.len);

    return NGX_OK;
}


/* an event of the stream: its line with data, which is JSON, or "[DONE]" */

static void
ngx_http_llm_socket_use_event(ngx_http_llm_socket_lane_t *lane, char *p,
    size_t len)
{
    char       *data;
    llm_str_t   json;

    data = len >= 6 && ngx_strncmp(p, "data: ", 6) == 0
           ? p : memmem(p, len, "\ndata: ", 7);

    if (data == NULL) {
        return;                         /* a heartbeat */
    }

    data += *data == '\n' ? 7 : 6;

    if (data == p + len || *data != '{') {
        return;
    }

    json.data = data;
    json.len = len - (size_t) (data - p);
    ngx_http_llm_socket_read_json(lane->socket, json, json.len, lane->number,
                                  ngx_http_llm_socket_read_event,
                                  ngx_http_llm_socket_take_event);
}


/* may run in a thread */

static int
ngx_http_llm_socket_read_event(llm_api_socket_t *api, llm_str_t text,
    uint32_t *lane, llm_buf_t *out, llm_err_t *err)
{
    (void) err;

    return llm_api_socket_event(api, *lane, text, out);
}


static void
ngx_http_llm_socket_take_event(ngx_http_llm_socket_t *s, int rc,
    uint32_t lane, llm_buf_t *out, llm_err_t *err)
{
    (void) err;

    s->lanes[lane].last |= rc;
    ngx_http_llm_socket_texts(s, out);
}


/* the answer is complete, or breaks off */

static void
ngx_http_llm_socket_end(ngx_http_llm_socket_lane_t *lane)
{
    llm_buf_t               texts;
    llm_str_t               body;
    ngx_http_llm_socket_t  *s;

    s = lane->socket;

    if (!lane->last && !s->closing) {
        body = llm_str("");

        if (!lane->events && lane->status && !lane->answer.failed
            && lane->answer.len)
        {
            body.data = lane->answer.data;
            body.len = lane->answer.len;
        }

        llm_buf_init(&texts, 0);
        llm_api_socket_failed(s->api, lane->number,
                              lane->status ? (uint32_t) lane->status : 500,
                              body, &texts);
        ngx_http_llm_socket_texts(s, &texts);
    }

    ngx_http_llm_socket_leave(lane);
    llm_api_socket_end(s->api, lane->number);
    s->again = 1;
    s->proceed(s);
}
