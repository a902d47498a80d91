/*
 * Headers that announce the end of a model (deprecated=, sunset= and successor=
 * of llm_model): Deprecation (RFC 9745), Sunset (RFC 8594), Link (RFC 5829).
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"
#include "http/request/ngx_http_llm_stage.h"


static ngx_int_t ngx_http_llm_add_link(ngx_http_request_t *r,
    ngx_str_t *name);


static ngx_int_t
ngx_http_llm_sunset_headers(ngx_http_request_t *r)
{
    u_char                *p, *last;
    ngx_http_llm_ctx_t    *ctx;
    ngx_http_llm_model_t  *model;

    ctx = ngx_http_get_module_ctx(r, ngx_http_llm_module);

    if (ctx == NULL || ctx->model < 0) {
        return NGX_OK;
    }

    model = (ngx_http_llm_model_t *) ctx->main->models.elts + ctx->model;

    if (model->deprecated.text.len) {
        p = ngx_pnalloc(r->pool, NGX_INT64_LEN + 1);
        if (p == NULL) {
            return NGX_ERROR;
        }

        last = ngx_sprintf(p, "@%L", model->deprecated.time);

        if (ngx_http_llm_add_header(r, "Deprecation", (char *) p, last - p)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (model->sunset.text.len) {
        p = ngx_pnalloc(r->pool, sizeof("Mon, 28 Sep 1970 06:00:00 GMT"));
        if (p == NULL) {
            return NGX_ERROR;
        }

        last = ngx_http_time(p, model->sunset.time);

        if (ngx_http_llm_add_header(r, "Sunset", (char *) p, last - p)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return model->successor.len
           ? ngx_http_llm_add_link(r, &model->successor) : NGX_OK;
}


/* a link to the successor in the API: GET models/NAME */

static ngx_int_t
ngx_http_llm_add_link(ngx_http_request_t *r, ngx_str_t *name)
{
    size_t               len;
    u_char              *p, *last;
    uintptr_t            escape;
    ngx_str_t            prefix;
    ngx_http_llm_ctx_t  *ctx;

    static const char  rel[] = ">; rel=\"successor-version\"";

    ctx = ngx_http_get_module_ctx(r, ngx_http_llm_module);

    if (ctx->conf->prefix && ctx->conf->prefix <= r->uri.len) {
        prefix.data = r->uri.data;
        prefix.len = ctx->conf->prefix;

    } else {
        ngx_str_set(&prefix, "/v1");
    }

    while (prefix.len && prefix.data[prefix.len - 1] == '/') {
        prefix.len--;
    }

    escape = 2 * ngx_escape_uri(NULL, name->data, name->len,
                                NGX_ESCAPE_URI_COMPONENT);
    len = 3 * prefix.len + sizeof("</models/") + name->len + escape
          + sizeof(rel);

    p = ngx_pnalloc(r->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    last = p;
    *last++ = '<';
    last = (u_char *) ngx_escape_uri(last, prefix.data, prefix.len,
                                     NGX_ESCAPE_URI);
    last = ngx_cpymem(last, "/models/", sizeof("/models/") - 1);
    last = (u_char *) ngx_escape_uri(last, name->data, name->len,
                                     NGX_ESCAPE_URI_COMPONENT);
    last = ngx_cpymem(last, rel, sizeof(rel) - 1);

    return ngx_http_llm_add_header(r, "Link", (char *) p, last - p);
}


ngx_http_llm_stage_t  ngx_http_llm_leaving_stage = {
    .headers = ngx_http_llm_sunset_headers
};
