/*
 * The bytes of the request that a message of a WebSocket becomes: the headers of
 * the handshake, and a body of its own.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/socket/ngx_http_llm_socket.h"


static ngx_uint_t ngx_http_llm_socket_keeps(ngx_str_t *name);


void
ngx_http_llm_socket_write_ask(ngx_http_llm_socket_lane_t *lane,
    llm_buf_t *body)
{
    ngx_uint_t           i;
    llm_buf_t           *out;
    ngx_list_part_t     *part;
    ngx_table_elt_t     *h;
    ngx_http_request_t  *r;

    r = lane->socket->request;
    out = &lane->ask;

    (void) llm_buf_adds(out, "POST ");
    (void) llm_buf_add(out, r->unparsed_uri.data, r->unparsed_uri.len);
    (void) llm_buf_adds(out, " HTTP/1.0\r\n");

    part = &r->headers_in.headers.part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {
        if (i >= part->nelts) {
            if (part->next == NULL) {
                break;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        if (h[i].hash && ngx_http_llm_socket_keeps(&h[i].key)) {
            (void) llm_buf_add(out, h[i].key.data, h[i].key.len);
            (void) llm_buf_adds(out, ": ");
            (void) llm_buf_add(out, h[i].value.data, h[i].value.len);
            (void) llm_buf_adds(out, "\r\n");
        }
    }

    (void) llm_buf_addf(out, "Content-Type: application/json\r\n"
                        "Content-Length: %zu\r\n\r\n", body->len);
    (void) llm_buf_add(out, body->data, body->len);
}


/* is it a header of the handshake that each request has, too?  Not those of the
   connection or of a body, nor what makes two requests one */

static ngx_uint_t
ngx_http_llm_socket_keeps(ngx_str_t *name)
{
    ngx_uint_t  i;

    static ngx_str_t  others[] = {
        ngx_string("accept-encoding"), ngx_string("connection"),
        ngx_string("content-encoding"), ngx_string("content-length"),
        ngx_string("content-type"), ngx_string("expect"),
        ngx_string("idempotency-key"), ngx_string("keep-alive"),
        ngx_string("te"), ngx_string("trailer"),
        ngx_string("transfer-encoding"), ngx_string("upgrade")
    };

    if (name->len > 14
        && ngx_strncasecmp(name->data, (u_char *) "sec-websocket-", 14) == 0)
    {
        return 0;
    }

    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (name->len == others[i].len
            && ngx_strncasecmp(name->data, others[i].data, name->len) == 0)
        {
            return 0;
        }
    }

    return 1;
}


void
ngx_http_llm_socket_write(ngx_event_t *wev)
{
    ssize_t                      n;
    ngx_connection_t            *c;
    ngx_http_llm_socket_lane_t  *lane;

    c = wev->data;
    lane = c->data;

    while (lane->asked < lane->ask.len) {
        n = c->send(c, (u_char *) lane->ask.data + lane->asked,
                    lane->ask.len - lane->asked);

        if ((n == NGX_AGAIN || n == 0)
            && ngx_handle_write_event(wev, 0) == NGX_OK)
        {
            return;
        }

        /* it was refused before it was read: the answer says why */

        if (n <= 0) {
            break;
        }

        lane->asked += (size_t) n;
    }

    llm_buf_free(&lane->ask);
    llm_buf_init(&lane->ask, 0);
    lane->asked = 0;
}
