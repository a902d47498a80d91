/*
 * Frames of a WebSocket (RFC 6455), without extensions.
 *
 * A frame is parsed once it is there as a whole; its length is bounded before.
 * Frames for the client are sent as it reads them.
 */

#include "http/socket/ngx_http_llm_socket.h"


typedef struct {
    ngx_uint_t                   opcode;
    ngx_uint_t                   fin;
    size_t                       head;          /* bytes before the data */
    size_t                       len;
    u_char                       mask[4];
} ngx_http_llm_frame_t;


static ngx_int_t ngx_http_llm_socket_head(ngx_http_llm_socket_t *s,
    u_char *p, size_t n, ngx_http_llm_frame_t *f);
static void ngx_http_llm_socket_data(ngx_http_llm_socket_t *s,
    ngx_http_llm_frame_t *f, u_char *p);
static void ngx_http_llm_socket_control(ngx_http_llm_socket_t *s,
    ngx_http_llm_frame_t *f, u_char *p);


void
ngx_http_llm_socket_parse(ngx_http_llm_socket_t *s)
{
    size_t                 at, i;
    u_char                *p;
    ngx_http_llm_frame_t   f;

    at = 0;

    /* a client that sends pings and reads nothing has to wait */

    while (!s->closing && !s->whole && at < s->in.len
           && s->out.len - s->sent < NGX_HTTP_LLM_SOCKET_HIGH)
    {
        p = (u_char *) s->in.data + at;

        if (ngx_http_llm_socket_head(s, p, s->in.len - at, &f) != NGX_OK) {
            break;
        }

        p += f.head;

        for (i = 0; i < f.len; i++) {
            p[i] ^= f.mask[i % 4];
        }

        if (f.opcode & 0x8) {
            ngx_http_llm_socket_control(s, &f, p);

        } else {
            ngx_http_llm_socket_data(s, &f, p);
        }

        at += f.head + f.len;
    }

    if (at) {
        s->in.len -= at;
        ngx_memmove(s->in.data, s->in.data + at, s->in.len);
    }
}


/* NGX_AGAIN: the frame is not complete, or wrong: the connection closes then */

static ngx_int_t
ngx_http_llm_socket_head(ngx_http_llm_socket_t *s, u_char *p, size_t n,
    ngx_http_llm_frame_t *f)
{
    size_t    ext, i;
    uint64_t  len;

    if (n < 2) {
        return NGX_AGAIN;
    }

    f->fin = p[0] >> 7;
    f->opcode = p[0] & 0xf;
    len = p[1] & 0x7f;
    ext = len == 126 ? 2 : len == 127 ? 8 : 0;

    /* no extension was agreed on; what a client sends is masked; control
       frames are short and whole */

    if ((p[0] & 0x70) || !(p[1] & 0x80)
        || ((f->opcode & 0x8) && (len > 125 || !f->fin))
        || (f->opcode > NGX_HTTP_LLM_SOCKET_BINARY && f->opcode < 0x8)
        || f->opcode > NGX_HTTP_LLM_SOCKET_PONG)
    {
        ngx_http_llm_socket_close(s, NGX_HTTP_LLM_SOCKET_PROTOCOL);
        return NGX_AGAIN;
    }

    f->head = 2 + ext + 4;

    if (n < f->head) {
        return NGX_AGAIN;
    }

    for (len = ext ? 0 : len, i = 0; i < ext; i++) {
        len = len << 8 | p[2 + i];
    }

    if (len > s->most || s->message.len + len > s->most) {
        ngx_http_llm_socket_close(s, NGX_HTTP_LLM_SOCKET_LARGE);
        return NGX_AGAIN;
    }

    f->len = (size_t) len;
    ngx_memcpy(f->mask, p + 2 + ext, 4);

    return n - f->head < f->len ? NGX_AGAIN : NGX_OK;
}


static void
ngx_http_llm_socket_data(ngx_http_llm_socket_t *s, ngx_http_llm_frame_t *f,
    u_char *p)
{
    if (f->opcode == NGX_HTTP_LLM_SOCKET_BINARY) {
        ngx_http_llm_socket_close(s, NGX_HTTP_LLM_SOCKET_TYPE);
        return;
    }

    /* the first frame of a message has its type, the others have 0 */

    if ((f->opcode == 0) != s->begun) {
        ngx_http_llm_socket_close(s, NGX_HTTP_LLM_SOCKET_PROTOCOL);
        return;
    }

    if (f->len && llm_buf_add(&s->message, p, f->len) != LLM_OK) {
        ngx_http_llm_socket_close(s, NGX_HTTP_LLM_SOCKET_FAILED);
        return;
    }

    s->begun = !f->fin;
    s->whole = f->fin;
}


static void
ngx_http_llm_socket_control(ngx_http_llm_socket_t *s, ngx_http_llm_frame_t *f,
    u_char *p)
{
    ngx_uint_t  code;

    switch (f->opcode) {

    case NGX_HTTP_LLM_SOCKET_CLOSE:
        code = f->len >= 2 ? (ngx_uint_t) (p[0] << 8 | p[1])
                           : NGX_HTTP_LLM_SOCKET_BYE;
        ngx_http_llm_socket_close(s, f->len == 1 || code < 1000 || code > 4999
                                     || (code > 1003 && code < 1007)
                                     ? NGX_HTTP_LLM_SOCKET_PROTOCOL : code);
        break;

    case NGX_HTTP_LLM_SOCKET_PING:
        ngx_http_llm_socket_frame(s, NGX_HTTP_LLM_SOCKET_PONG, p, f->len);
        break;

    default:                            /* a pong */
        break;
    }
}


void
ngx_http_llm_socket_frame(ngx_http_llm_socket_t *s, ngx_uint_t opcode,
    const void *data, size_t len)
{
    u_char  head[10], *p;
    size_t  i, ext;

    if (s->closing) {
        return;
    }

    ext = len < 126 ? 0 : len < 65536 ? 2 : 8;
    p = head;
    *p++ = (u_char) (0x80 | opcode);
    *p++ = (u_char) (ext == 0 ? len : ext == 2 ? 126 : 127);

    for (i = ext; i; i--) {
        *p++ = (u_char) ((uint64_t) len >> 8 * (i - 1));
    }

    (void) llm_buf_add(&s->out, head, (size_t) (p - head));

    if (len) {
        (void) llm_buf_add(&s->out, data, len);
    }
}


void
ngx_http_llm_socket_close(ngx_http_llm_socket_t *s, ngx_uint_t code)
{
    u_char  p[2];

    p[0] = (u_char) (code >> 8);
    p[1] = (u_char) code;

    ngx_http_llm_socket_frame(s, NGX_HTTP_LLM_SOCKET_CLOSE, p, 2);
    s->closing = 1;
}


void
ngx_http_llm_socket_texts(ngx_http_llm_socket_t *s, llm_buf_t *texts)
{
    char    *p, *end, *last;

    if (texts->failed) {
        ngx_http_llm_socket_close(s, NGX_HTTP_LLM_SOCKET_FAILED);
    }

    last = texts->data + texts->len;

    for (p = texts->data; p < last; p = end + 1) {
        end = memchr(p, '\0', (size_t) (last - p));
        end = end ? end : last;
        ngx_http_llm_socket_frame(s, NGX_HTTP_LLM_SOCKET_TEXT, p,
                                  (size_t) (end - p));
    }

    llm_buf_free(texts);
    llm_buf_init(texts, 0);
}


ngx_int_t
ngx_http_llm_socket_flush(ngx_http_llm_socket_t *s)
{
    ssize_t                    n;
    ngx_uint_t                 full;
    ngx_event_t               *wev;
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = s->request;
    c = r->connection;
    wev = c->write;
    n = 0;
    full = (s->out.len - s->sent >= NGX_HTTP_LLM_SOCKET_HIGH);

    if (s->out.failed
        || (r->out && ngx_http_output_filter(r, NULL) == NGX_ERROR))
    {
        ngx_http_finalize_request(r, NGX_ERROR);
        return NGX_DONE;
    }

    while (r->out == NULL && s->sent < s->out.len) {
        n = c->send(c, (u_char *) s->out.data + s->sent,
                    s->out.len - s->sent);

        if (n == NGX_AGAIN || n == 0) {
            break;
        }

        if (n < 0) {
            ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
            return NGX_DONE;
        }

        s->sent += (size_t) n;
    }

    if (s->sent >= NGX_HTTP_LLM_SOCKET_HIGH && s->sent < s->out.len) {
        s->out.len -= s->sent;
        ngx_memmove(s->out.data, s->out.data + s->sent, s->out.len);
        s->sent = 0;
    }

    if (r->out || s->sent < s->out.len) {
        clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

        if (!wev->timer_set || n > 0) {
            ngx_add_timer(wev, clcf->send_timeout);
        }

        if (ngx_handle_write_event(wev, 0) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_ERROR);
            return NGX_DONE;
        }

        return NGX_OK;
    }

    if (wev->timer_set) {
        ngx_del_timer(wev);
    }

    /* a large buffer is not kept: most connections are idle */

    llm_buf_free(&s->out);
    llm_buf_init(&s->out, 0);
    s->sent = 0;

    if (s->closing) {
        ngx_http_finalize_request(r, NGX_DONE);
        return NGX_DONE;
    }

    c->idle = s->running == 0 && s->job == NULL;

    /* what stopped because so much waited to be sent goes on: as all of it was
       sent at once, no event of the connection will say so */

    if (full) {
        ngx_post_event(c->read, &ngx_posted_events);
    }

    return NGX_OK;
}
