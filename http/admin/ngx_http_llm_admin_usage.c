/*
 * GET usage: usage by the keys of each llm_token_zone, in pages: ?zone=NAME;
 * ?limit=N: accounts of each zone; ?after=KEY: as in "next" of the previous
 * page.
 */

#include "http/access/ngx_http_llm_quota.h"
#include "http/admin/ngx_http_llm_admin.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_model.h"


#define NGX_HTTP_LLM_USAGE_PAGE  1000
#define NGX_HTTP_LLM_USAGE_MOST  10000


static ngx_int_t ngx_http_llm_admin_argument(ngx_http_request_t *r,
    const char *name, ngx_str_t *value);
static ngx_int_t ngx_http_llm_admin_show_zone(ngx_http_llm_admin_request_t *a,
    ngx_http_llm_quota_t *q, ngx_str_t *after, ngx_uint_t limit,
    llm_buf_t *out);
static ngx_int_t ngx_http_llm_admin_next(ngx_http_llm_admin_request_t *a,
    ngx_http_llm_quota_t *q, ngx_str_t *key, ngx_uint_t limit,
    llm_str_t *link);


ngx_int_t
ngx_http_llm_admin_show_usage(ngx_http_llm_admin_request_t *a,
    llm_buf_t *out, llm_err_t *err)
{
    ngx_int_t                         limit;
    ngx_str_t                         zone, after, text, *name;
    ngx_uint_t                        i, n;
    ngx_http_llm_quota_t            **q;
    ngx_http_llm_quotas_main_conf_t  *qmcf;

    if (ngx_http_llm_admin_argument(a->request, "zone", &zone) != NGX_OK
        || ngx_http_llm_admin_argument(a->request, "after", &after) != NGX_OK
        || ngx_http_llm_admin_argument(a->request, "limit", &text) != NGX_OK)
    {
        llm_fail(err, "No memory is left for this answer.");
        return NGX_ERROR;
    }

    limit = text.data ? ngx_atoi(text.data, text.len)
                      : NGX_HTTP_LLM_USAGE_PAGE;

    if (limit < 1 || limit > NGX_HTTP_LLM_USAGE_MOST
        || (after.data && zone.data == NULL))
    {
        llm_fail_with(err, 400, "invalid_value",
                      after.data && zone.data == NULL ? "after" : "limit",
                      "'limit' is a number from 1 to %d, and 'after' needs "
                      "a 'zone'.", NGX_HTTP_LLM_USAGE_MOST);
        return NGX_ERROR;
    }

    qmcf = ngx_http_llm_get_main_conf(a->main, ngx_http_llm_quotas_module);
    q = qmcf->quotas.elts;
    n = 0;

    llm_admin_begin_list(out);

    for (i = 0; i < qmcf->quotas.nelts; i++) {
        name = &q[i]->shm_zone->shm.name;

        if (zone.data && (zone.len != name->len
                          || ngx_memcmp(zone.data, name->data, zone.len)
                             != 0))
        {
            continue;
        }

        n++;
        llm_admin_begin_zone(out, ngx_http_llm_text(name));

        if (ngx_http_llm_admin_show_zone(a, q[i], &after, limit, out)
            != NGX_OK)
        {
            llm_fail(err, "No memory is left for this answer.");
            return NGX_ERROR;
        }
    }

    if (zone.data && n == 0) {
        llm_fail_with(err, 404, "zone_not_found", "zone",
                      "There is no such \"llm_token_zone\".");
        return NGX_ERROR;
    }

    llm_admin_end_list(out);

    return NGX_OK;
}


/* value->data is NULL if the argument is missing */

static ngx_int_t
ngx_http_llm_admin_argument(ngx_http_request_t *r, const char *name,
    ngx_str_t *value)
{
    u_char  *dst, *src;

    ngx_str_null(value);

    if (ngx_http_arg(r, (u_char *) name, ngx_strlen(name), value) != NGX_OK) {
        ngx_str_null(value);
        return NGX_OK;
    }

    src = value->data;
    dst = ngx_pnalloc(r->pool, value->len + 1);

    if (dst == NULL) {
        return NGX_ERROR;
    }

    value->data = dst;
    ngx_unescape_uri(&dst, &src, value->len, 0);
    value->len = dst - value->data;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llm_admin_show_zone(ngx_http_llm_admin_request_t *a,
    ngx_http_llm_quota_t *q, ngx_str_t *after, ngx_uint_t limit,
    llm_buf_t *out)
{
    ngx_int_t   n;
    llm_str_t   next;
    ngx_str_t   last;

    last.data = ngx_pnalloc(a->request->pool, NGX_HTTP_LLM_MAX_KEY);
    if (last.data == NULL) {
        return NGX_ERROR;
    }

    n = ngx_http_llm_usage_page(q, after, limit, out, &last);
    next = llm_str("");

    if (n == NGX_ERROR
        || ((ngx_uint_t) n == limit
            && ngx_http_llm_admin_next(a, q, &last, limit, &next) != NGX_OK))
    {
        return NGX_ERROR;
    }

    llm_admin_end_zone(out, next);

    return NGX_OK;
}


/* the URI of the next page, escaped, because a key may have any bytes */

static ngx_int_t
ngx_http_llm_admin_next(ngx_http_llm_admin_request_t *a,
    ngx_http_llm_quota_t *q, ngx_str_t *key, ngx_uint_t limit,
    llm_str_t *link)
{
    u_char     *p, *last;
    ngx_str_t  *uri, *zone;

    uri = &a->request->uri;
    zone = &q->shm_zone->shm.name;

    p = ngx_pnalloc(a->request->pool, 3 * (uri->len + zone->len + key->len)
                                      + NGX_INT_T_LEN + 32);
    if (p == NULL) {
        return NGX_ERROR;
    }

    last = (u_char *) ngx_escape_uri(p, uri->data, uri->len, NGX_ESCAPE_URI);
    last = ngx_sprintf(last, "?limit=%ui&zone=", limit);
    last = (u_char *) ngx_escape_uri(last, zone->data, zone->len,
                                     NGX_ESCAPE_URI_COMPONENT);
    last = ngx_cpymem(last, "&after=", 7);
    last = (u_char *) ngx_escape_uri(last, key->data, key->len,
                                     NGX_ESCAPE_URI_COMPONENT);

    link->data = (char *) p;
    link->len = last - p;

    return NGX_OK;
}
