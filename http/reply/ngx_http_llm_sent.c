/*
 * Headers that the client has sent, by name, as far as nginx keeps none of them
 * apart.  Nothing is owned: they are the request's.
 */

#include "http/reply/ngx_http_llm_reply.h"


ngx_table_elt_t *
ngx_http_llm_next_sent(ngx_http_request_t *r, const char *name, ngx_uint_t *n)
{
    size_t            len;
    ngx_uint_t        i, at;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    len = ngx_strlen(name);
    at = 0;

    for (part = &r->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (at++ >= *n && h[i].hash && h[i].key.len == len
                && ngx_strncasecmp(h[i].key.data, (u_char *) name, len) == 0)
            {
                *n = at;
                return &h[i];
            }
        }
    }

    return NULL;
}


ngx_table_elt_t *
ngx_http_llm_sent(ngx_http_request_t *r, const char *name)
{
    ngx_uint_t  n;

    n = 0;

    return ngx_http_llm_next_sent(r, name, &n);
}


ngx_uint_t
ngx_http_llm_same_origin(ngx_http_request_t *r, ngx_str_t *origin)
{
    u_char           *p;
    size_t            len;
    ngx_table_elt_t  *host;

    host = r->headers_in.host;
    p = ngx_strnstr(origin->data, "://", origin->len);

    if (p == NULL || host == NULL) {
        return 0;
    }

    p += 3;
    len = origin->data + origin->len - p;

    return len == host->value.len
           && ngx_strncasecmp(p, host->value.data, len) == 0;
}
