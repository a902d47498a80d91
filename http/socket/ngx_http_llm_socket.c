/*
 * llm_websocket: the handshake of a WebSocket, and the connection's life; see
 * ngx_http_llm_socket.h.
 *
 * The upgraded request ends with its connection: when the client closes it or
 * leaves, does not answer a ping, or reads nothing for send_timeout; after an
 * hour, as OpenAI's do; and when the worker ends, between two answers.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/socket/ngx_http_llm_socket.h"

#include <ngx_sha1.h>


#define NGX_HTTP_LLM_SOCKET_LIFE  3600000       /* milliseconds */
#define NGX_HTTP_LLM_SOCKET_IDLE  30000         /* until a ping is sent */

/* Sec-WebSocket-Accept is the base64 of 20 bytes */
#define NGX_HTTP_LLM_SOCKET_ACCEPT  28


typedef struct {
    ngx_flag_t                   on;
} ngx_http_llm_socket_conf_t;


static void *ngx_http_llm_create_socket_conf(ngx_conf_t *cf);
static char *ngx_http_llm_merge_socket_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_llm_socket_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_llm_socket_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_llm_socket_refuse(ngx_http_request_t *r,
    llm_err_t *err);
static ngx_int_t ngx_http_llm_socket_accepts(ngx_http_request_t *r,
    ngx_str_t *key);
static ngx_int_t ngx_http_llm_socket_open(ngx_http_request_t *r);
static void ngx_http_llm_socket_free(void *data);
static void ngx_http_llm_socket_read_client(ngx_event_t *rev);
static void ngx_http_llm_socket_write_client(ngx_event_t *wev);
static ngx_uint_t ngx_http_llm_socket_turn(ngx_http_llm_socket_t *s);
static int ngx_http_llm_socket_read_again(llm_api_socket_t *api,
    llm_str_t text, uint32_t *lane, llm_buf_t *out, llm_err_t *err);
static void ngx_http_llm_socket_take_again(ngx_http_llm_socket_t *s, int rc,
    uint32_t lane, llm_buf_t *out, llm_err_t *err);
static void ngx_http_llm_socket_take_message(ngx_http_llm_socket_t *s, int rc,
    uint32_t lane, llm_buf_t *out, llm_err_t *err);
static void ngx_http_llm_socket_say(ngx_http_llm_socket_t *s, uint32_t lane,
    const llm_err_t *err);
static void ngx_http_llm_socket_timer(ngx_http_llm_socket_t *s);
static void ngx_http_llm_socket_next(ngx_http_llm_socket_t *s);
static ngx_uint_t ngx_http_llm_socket_full(ngx_http_llm_socket_t *s);
static ngx_int_t ngx_http_llm_socket_receive(ngx_http_llm_socket_t *s);


static ngx_command_t  ngx_http_llm_socket_commands[] = {

    { ngx_string("llm_websocket"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_socket_conf_t, on),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_llm_socket_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_llm_socket_init,              /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_llm_create_socket_conf,       /* create location configuration */
    ngx_http_llm_merge_socket_conf         /* merge location configuration */
};


ngx_module_t  ngx_http_llm_socket_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_socket_module_ctx,       /* module context */
    ngx_http_llm_socket_commands,          /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_http_llm_create_socket_conf(ngx_conf_t *cf)
{
    ngx_http_llm_socket_conf_t  *conf;

    conf = ngx_palloc(cf->pool, sizeof(ngx_http_llm_socket_conf_t));

    if (conf) {
        conf->on = NGX_CONF_UNSET;
    }

    return conf;
}


static char *
ngx_http_llm_merge_socket_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_llm_socket_conf_t *prev = parent;
    ngx_http_llm_socket_conf_t *conf = child;

    ngx_conf_merge_value(conf->on, prev->on, 0);

    return NGX_CONF_OK;
}


/* after the access phase, which has checked the client and its key */

static ngx_int_t
ngx_http_llm_socket_init(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PRECONTENT_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_llm_socket_handler;

    return NGX_OK;
}


/* ---- the handshake ---- */

/* NGX_DECLINED: no WebSocket, or one that the content handler refuses */

static ngx_int_t
ngx_http_llm_socket_handler(ngx_http_request_t *r)
{
    llm_err_t                    err;
    llm_str_t                    path;
    ngx_table_elt_t             *key, *version, *origin;
    ngx_http_llm_loc_conf_t     *llcf;
    ngx_http_llm_socket_conf_t  *conf;

    conf = ngx_http_get_module_loc_conf(r, ngx_http_llm_socket_module);
    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    if (!conf->on || r != r->main || r->method != NGX_HTTP_GET
        || r->http_version != NGX_HTTP_VERSION_11
        || r->headers_in.upgrade == NULL
        || ngx_strcasecmp(r->headers_in.upgrade->value.data,
                          (u_char *) "websocket")
           != 0
        || ngx_http_llm_path(r, llcf, &path) != NGX_OK
        || !llm_api_socket_path(path))
    {
        return NGX_DECLINED;
    }

    (void) ngx_http_llm_create_reply(r);

    /* browsers let any page open a WebSocket, and send cookies with it */

    origin = ngx_http_llm_sent(r, "Origin");

    if (origin && !ngx_http_llm_same_origin(r, &origin->value)) {
        llm_fail_with(&err, 403, "origin_not_allowed", NULL, "WebSockets are "
                      "for pages of this server alone, whose name is the "
                      "Origin's.");
        return ngx_http_llm_socket_refuse(r, &err);
    }

    key = ngx_http_llm_sent(r, "Sec-WebSocket-Key");
    version = ngx_http_llm_sent(r, "Sec-WebSocket-Version");

    if (version == NULL || version->value.len != 2
        || ngx_strncmp(version->value.data, "13", 2) != 0)
    {
        if (ngx_http_llm_add_header(r, "Sec-WebSocket-Version", "13", 2)
            != NGX_OK)
        {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        llm_fail_with(&err, 426, "websocket_version", NULL, "WebSockets of "
                      "the version 13 are understood, no others.");
        return ngx_http_llm_socket_refuse(r, &err);
    }

    if (key == NULL || key->value.len != 24
        || r->headers_in.content_length_n > 0 || r->headers_in.chunked)
    {
        llm_fail_with(&err, 400, "invalid_handshake", NULL, "A WebSocket's "
                      "handshake has a Sec-WebSocket-Key of 24 characters, "
                      "and no body.");
        return ngx_http_llm_socket_refuse(r, &err);
    }

    if (ngx_http_llm_socket_accepts(r, &key->value) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_llm_socket_open(r);
}


/* a handler of this phase sends its own answer */

static ngx_int_t
ngx_http_llm_socket_refuse(ngx_http_request_t *r, llm_err_t *err)
{
    ngx_http_finalize_request(r, ngx_http_llm_send_error(r, err, 0));

    return NGX_DONE;
}


/* RFC 6455, 4.2.2 */

static ngx_int_t
ngx_http_llm_socket_accepts(ngx_http_request_t *r, ngx_str_t *key)
{
    u_char      hash[20];
    ngx_str_t   digest, accept;
    ngx_sha1_t  sha1;

    static u_char  guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

    ngx_sha1_init(&sha1);
    ngx_sha1_update(&sha1, key->data, key->len);
    ngx_sha1_update(&sha1, guid, sizeof(guid) - 1);
    ngx_sha1_final(hash, &sha1);

    digest.data = hash;
    digest.len = sizeof(hash);
    accept.data = ngx_pnalloc(r->pool, NGX_HTTP_LLM_SOCKET_ACCEPT);

    if (accept.data == NULL) {
        return NGX_ERROR;
    }

    ngx_encode_base64(&accept, &digest);

    if (ngx_http_llm_add_header(r, "Upgrade", "websocket", 9) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_llm_add_header(r, "Sec-WebSocket-Accept",
                                   (char *) accept.data, accept.len);
}


static ngx_int_t
ngx_http_llm_socket_open(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_uint_t                 i;
    ngx_connection_t          *c;
    ngx_pool_cleanup_t        *cln;
    ngx_http_llm_socket_t     *s;
    ngx_http_core_loc_conf_t  *clcf;

    c = r->connection;
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_llm_socket_t));
    if (cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    s = cln->data;
    ngx_memzero(s, sizeof(ngx_http_llm_socket_t));

    /* client_max_body_size 0 is no bound of nginx's; here 2^30 is, that of a
       buffer */

    s->most = clcf->client_max_body_size > 0
              ? (size_t) ngx_min(clcf->client_max_body_size, 1 << 30)
              : 1 << 30;
    s->request = r;
    s->proceed = ngx_http_llm_socket_next;
    s->until = ngx_current_msec + NGX_HTTP_LLM_SOCKET_LIFE;
    llm_buf_init(&s->in, 0);
    llm_buf_init(&s->message, 0);
    llm_buf_init(&s->out, 0);

    for (i = 0; i < LLM_API_SOCKET_LANES; i++) {
        s->lanes[i].socket = s;
        s->lanes[i].number = (uint32_t) i;
        llm_buf_init(&s->lanes[i].ask, 0);
        llm_buf_init(&s->lanes[i].answer, 0);
    }

    cln->handler = ngx_http_llm_socket_free;

    s->api = llm_api_socket_create(s->most);
    if (s->api == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    r->headers_out.status = NGX_HTTP_SWITCHING_PROTOCOLS;
    ngx_str_set(&r->headers_out.status_line, "101 Switching Protocols");
    r->keepalive = 0;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK
        || ngx_http_send_special(r, NGX_HTTP_FLUSH) == NGX_ERROR)
    {
        ngx_http_finalize_request(r, NGX_ERROR);
        return NGX_DONE;
    }

    c->log->action = "serving a WebSocket";
    c->data = r;
    c->read->handler = ngx_http_llm_socket_read_client;
    c->write->handler = ngx_http_llm_socket_write_client;

    ngx_http_set_ctx(r, s, ngx_http_llm_socket_module);

    if (r->header_in->pos < r->header_in->last) {
        (void) llm_buf_add(&s->in, r->header_in->pos,
                           (size_t) (r->header_in->last - r->header_in->pos));
        r->header_in->pos = r->header_in->last;
    }

    if (c->read->timer_set) {
        ngx_del_timer(c->read);
    }

    ngx_add_timer(c->read, NGX_HTTP_LLM_SOCKET_IDLE);
    ngx_post_event(c->read, &ngx_posted_events);

    return NGX_DONE;
}


static void
ngx_http_llm_socket_free(void *data)
{
    ngx_http_llm_socket_t *s = data;

    ngx_http_llm_socket_cancel(s);
    ngx_http_llm_socket_leave_job(s);
    llm_api_socket_free(s->api);
    llm_buf_free(&s->in);
    llm_buf_free(&s->message);
    llm_buf_free(&s->out);
}


/* ---- the client's connection ---- */

static void
ngx_http_llm_socket_read_client(ngx_event_t *rev)
{
    ngx_connection_t       *c;
    ngx_http_request_t     *r;
    ngx_http_llm_socket_t  *s;

    c = rev->data;
    r = c->data;
    s = ngx_http_get_module_ctx(r, ngx_http_llm_socket_module);

    ngx_http_set_log_request(c->log, r);

    if (c->close) {

        /* the worker ends, and no answer is on its way */

        ngx_http_llm_socket_close(s, NGX_HTTP_LLM_SOCKET_AWAY);
        (void) ngx_http_llm_socket_flush(s);

    } else if (rev->timedout) {
        rev->timedout = 0;
        ngx_http_llm_socket_timer(s);

    } else if (ngx_http_llm_socket_receive(s) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);

    } else {
        ngx_http_llm_socket_next(s);
    }

    ngx_http_run_posted_requests(c);    /* a request that ends by an error */
}


/* so many bytes wait that no more are read */

static ngx_uint_t
ngx_http_llm_socket_full(ngx_http_llm_socket_t *s)
{
    return s->in.len > s->most + NGX_HTTP_LLM_SOCKET_HIGH;
}


/* NGX_ERROR: the client has left */

static ngx_int_t
ngx_http_llm_socket_receive(ngx_http_llm_socket_t *s)
{
    ssize_t            n;
    ngx_connection_t  *c;

    u_char             buf[16384];

    c = s->request->connection;

    /* frames that wait are bounded: a message, and its frame's head */

    while (!ngx_http_llm_socket_full(s)) {
        n = c->recv(c, buf, sizeof(buf));

        if (n == NGX_AGAIN) {
            break;
        }

        if (n <= 0) {
            return NGX_ERROR;
        }

        s->pinged = 0;

        if (s->closing) {
            continue;
        }

        if (llm_buf_add(&s->in, buf, (size_t) n) != LLM_OK) {
            return NGX_ERROR;
        }
    }

    return ngx_handle_read_event(c->read, 0);
}


/* goes on with what has come: parses it, and begins requests.  s may be freed
   by that */

static void
ngx_http_llm_socket_next(ngx_http_llm_socket_t *s)
{
    for ( ;; ) {
        ngx_http_llm_socket_parse(s);

        if (s->closing) {
            ngx_http_llm_socket_cancel(s);
            break;
        }

        if (s->job) {
            break;
        }

        if (ngx_exiting || ngx_terminate) {
            if (s->running == 0) {
                ngx_http_llm_socket_close(s, NGX_HTTP_LLM_SOCKET_AWAY);
            }

            break;
        }

        if (!ngx_http_llm_socket_turn(s)) {
            break;
        }
    }

    ngx_http_llm_socket_resume(s);

    if (s->in.len == 0) {
        llm_buf_free(&s->in);           /* most connections are idle */
        llm_buf_init(&s->in, 0);
    }

    if (s->request->connection->read->ready && !ngx_http_llm_socket_full(s)) {
        ngx_post_event(s->request->connection->read, &ngx_posted_events);
    }

    (void) ngx_http_llm_socket_flush(s);
}


/* reads the next message: one whose stream had to wait, or the one that has
   come.  0: there is none */

static ngx_uint_t
ngx_http_llm_socket_turn(ngx_http_llm_socket_t *s)
{
    llm_str_t  text;

    if (s->again && llm_api_socket_waiting(s->api)) {
        s->again = 0;
        ngx_http_llm_socket_read_json(s, llm_str(""),
                                      llm_api_socket_waiting(s->api), 0,
                                      ngx_http_llm_socket_read_again,
                                      ngx_http_llm_socket_take_again);
        return 1;
    }

    if (!s->whole || !llm_api_socket_room(s->api, s->message.len)) {
        return 0;
    }

    text.data = s->message.data;
    text.len = s->message.len;
    ngx_http_llm_socket_read_json(s, text, text.len, 0, llm_api_socket_ask,
                                  ngx_http_llm_socket_take_message);

    llm_buf_free(&s->message);
    llm_buf_init(&s->message, 0);
    s->whole = 0;

    return 1;
}


static int
ngx_http_llm_socket_read_again(llm_api_socket_t *api, llm_str_t text,
    uint32_t *lane, llm_buf_t *out, llm_err_t *err)
{
    (void) text;

    return llm_api_socket_again(api, lane, out, err);
}


static void
ngx_http_llm_socket_take_again(ngx_http_llm_socket_t *s, int rc,
    uint32_t lane, llm_buf_t *out, llm_err_t *err)
{
    s->again = rc != LLM_FULL;          /* others may have their turn, too */
    ngx_http_llm_socket_take_message(s, rc, lane, out, err);
}


/* out: the body of the request that a message asks for */

static void
ngx_http_llm_socket_take_message(ngx_http_llm_socket_t *s, int rc,
    uint32_t lane, llm_buf_t *out, llm_err_t *err)
{
    if (rc == LLM_FULL) {
        return;                         /* it waits */
    }

    if (rc == LLM_OK) {
        if (ngx_http_llm_socket_relay(&s->lanes[lane], out) == NGX_OK) {
            return;
        }

        ngx_http_llm_socket_leave(&s->lanes[lane]);
        llm_api_socket_end(s->api, lane);
        llm_fail_with(err, 503, "overloaded", NULL, "The server has no "
                      "connections or no memory left, try again later.");
    }

    ngx_http_llm_socket_say(s, lane, err);
}


/* adds an error's message, of a lane or of none */

static void
ngx_http_llm_socket_say(ngx_http_llm_socket_t *s, uint32_t lane,
    const llm_err_t *err)
{
    llm_buf_t  texts;

    llm_buf_init(&texts, 0);
    llm_api_socket_error(s->api, lane, err, &texts);
    ngx_http_llm_socket_texts(s, &texts);
}


static void
ngx_http_llm_socket_timer(ngx_http_llm_socket_t *s)
{
    llm_err_t          err;
    ngx_connection_t  *c;

    c = s->request->connection;

    /* a pong may be behind what waits to be read */

    if ((s->pinged && !ngx_http_llm_socket_full(s)) || s->closing) {
        c->timedout = 1;
        ngx_http_finalize_request(s->request, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    if ((ngx_msec_int_t) (s->until - ngx_current_msec) <= 0
        && s->running == 0 && !s->job)
    {
        llm_fail_with(&err, 400, "websocket_connection_limit_reached", NULL,
                      "A WebSocket lives for 60 minutes: open a new one to "
                      "continue.");
        ngx_http_llm_socket_say(s, LLM_API_SOCKET_NOWHERE, &err);
        ngx_http_llm_socket_close(s, NGX_HTTP_LLM_SOCKET_BYE);

    } else {
        s->pinged = 1;
        ngx_http_llm_socket_frame(s, NGX_HTTP_LLM_SOCKET_PING, NULL, 0);
    }

    ngx_add_timer(c->read, NGX_HTTP_LLM_SOCKET_IDLE);
    (void) ngx_http_llm_socket_flush(s);
}


static void
ngx_http_llm_socket_write_client(ngx_event_t *wev)
{
    ngx_connection_t       *c;
    ngx_http_request_t     *r;
    ngx_http_llm_socket_t  *s;

    c = wev->data;
    r = c->data;
    s = ngx_http_get_module_ctx(r, ngx_http_llm_socket_module);

    ngx_http_set_log_request(c->log, r);

    if (wev->timedout) {
        c->timedout = 1;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);

    } else if (ngx_http_llm_socket_flush(s) == NGX_OK) {

        /* what waited until the client reads: pongs, the next message, the
           answer */

        ngx_http_llm_socket_resume(s);

        if (s->in.len && s->out.len == 0) {
            ngx_http_llm_socket_next(s);
        }
    }

    ngx_http_run_posted_requests(c);
}
