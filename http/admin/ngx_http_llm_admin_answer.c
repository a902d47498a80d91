/*
 * Answers and errors of llm_admin, and the lines that actions write to the log.
 */

#include "http/access/ngx_http_llm_keys.h"
#include "http/admin/ngx_http_llm_admin.h"
#include "http/reply/ngx_http_llm_reply.h"


void
ngx_http_llm_admin_answer(ngx_http_llm_admin_request_t *a, ngx_uint_t status,
    llm_buf_t *body)
{
    llm_err_t            err;
    ngx_http_request_t  *r;

    r = a->request;

    if (body->failed) {
        llm_buf_free(body);
        llm_fail(&err, "No memory is left for this answer.");
        ngx_http_finalize_request(r, ngx_http_llm_send_error(r, &err, 0));
        return;
    }

    ngx_http_finalize_request(r, ngx_http_llm_send_body(r, status,
                                                        "application/json",
                                                        body));
}


/* a refused action on a model or an alias is logged, too */

ngx_int_t
ngx_http_llm_admin_refuse(ngx_http_llm_admin_request_t *a, llm_err_t *err)
{
    char  text[sizeof(err->code) + 32];

    if (a->to.whole.len
        && !(a->request->method & (NGX_HTTP_GET|NGX_HTTP_HEAD)))
    {
        (void) ngx_snprintf((u_char *) text, sizeof(text), "refused, %d %s%Z",
                            err->status, llm_api_error_word(err));
        ngx_http_llm_admin_audit(a, NULL, text);
    }

    return ngx_http_llm_send_error(a->request, err,
                                   err->status == 503 ? 1 : 0);
}


void
ngx_http_llm_admin_fail(ngx_http_llm_admin_request_t *a, llm_err_t *err)
{
    ngx_http_finalize_request(a->request,
                              ngx_http_llm_admin_refuse(a, err));
}


/* escapes what a client has sent, so that it can end neither the line nor the
   quotes */

static u_char *
ngx_http_llm_admin_quote(ngx_http_request_t *r, ngx_str_t *value)
{
    u_char     *p, *last;
    ngx_str_t   text;

    if (value == NULL || value->len == 0) {
        return (u_char *) "-";
    }

    text.data = ngx_http_llm_clean(r, value);
    text.len = ngx_strlen(text.data);

    p = ngx_pnalloc(r->pool, 2 * text.len + 1);
    if (p == NULL) {
        return (u_char *) "";
    }

    last = (u_char *) ngx_escape_json(p, text.data, text.len);
    *last = '\0';

    return p;
}


/* the client is a key, or else the user that auth_basic has checked, or else
   unknown */

void
ngx_http_llm_admin_audit(ngx_http_llm_admin_request_t *a, ngx_str_t *to,
    const char *result)
{
    ngx_str_t            who, name;
    const char          *kind;
    const llm_key_t     *key;
    ngx_http_request_t  *r;

    r = a->request;
    key = ngx_http_llm_key(r);
    who = r->headers_in.user;
    kind = who.len ? "user" : "client";

    if (key) {
        kind = "key";
        who.data = (u_char *) llm_key_member(key, "id", 2);
        who.len = ngx_strlen(who.data);
    }

    name.data = (u_char *) a->to.name.data;
    name.len = a->to.name.len;

    ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0,
                  "llm_admin: %s \"%s\" at %V: %V %s \"%s\", from \"%s\" to "
                  "\"%s\": %s",
                  kind, ngx_http_llm_admin_quote(r, &who),
                  &r->connection->addr_text, &r->method_name,
                  llm_admin_word(a->to.what),
                  ngx_http_llm_admin_quote(r, &name),
                  ngx_http_llm_admin_quote(r, &a->from),
                  ngx_http_llm_admin_quote(r, to), result);
}
