/*
 * The path of the API in a URI, and the endpoint that matches it.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/request/ngx_http_llm_request.h"


llm_str_t
ngx_http_llm_api_path(ngx_str_t *uri)
{
    u_char     *p;
    llm_str_t   path;

    p = ngx_strnstr(uri->data, "/v1/", uri->len);
    p = p ? p + 1 : uri->data;

    path.data = (char *) p;
    path.len = uri->data + uri->len - p;

    return path;
}


/* bytes of "api" or "v1" at the end of a prefix, and of a slash after it; 0:
   the prefix ends with something else */

static size_t
ngx_http_llm_dialect(u_char *name, size_t len)
{
    size_t  slash;

    slash = len && name[len - 1] == '/';
    len -= slash;

    if (len >= 4 && ngx_strncmp(name + len - 4, "/api", 4) == 0) {
        return 3 + slash;
    }

    return len >= 3 && ngx_strncmp(name + len - 3, "/v1", 3) == 0 ? 2 + slash
                                                                  : 0;
}


/*
 * The API's path is what follows the location's prefix, with the "api" or "v1"
 * of a prefix that ends in it, which tell the dialect.  In an exact, regex or
 * named location, and after a rewrite to somewhere else, it is what begins with
 * "v1/", or else the whole path.
 */

ngx_int_t
ngx_http_llm_path(ngx_http_request_t *r, ngx_http_llm_loc_conf_t *llcf,
    llm_str_t *path)
{
    u_char                    *p, *last;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    p = r->uri.data;
    last = p + r->uri.len;

    if (llcf->prefix && r->uri.len >= llcf->prefix
        && ngx_memcmp(p, clcf->name.data, llcf->prefix) == 0)
    {
        p += llcf->prefix;

        if (p < last && *p != '/' && p[-1] != '/') {
            return NGX_DECLINED;
        }

        if (last - p < 4 || ngx_strncmp(p + (*p == '/'), "v1/", 3) != 0) {
            p -= ngx_http_llm_dialect(clcf->name.data, llcf->prefix);
        }

    } else {
        p = (u_char *) ngx_http_llm_api_path(&r->uri).data;
    }

    while (p < last && *p == '/') {
        p++;
    }

    path->data = (char *) p;
    path->len = last - p;

    return NGX_OK;
}


ngx_int_t
ngx_http_llm_route(ngx_http_request_t *r, ngx_http_llm_loc_conf_t *llcf,
    llm_api_route_t *to)
{
    llm_str_t  path, method;

    ngx_memzero(to, sizeof(llm_api_route_t));

    if (ngx_http_llm_path(r, llcf, &path) != NGX_OK) {
        return NGX_DECLINED;
    }

    method.data = (char *) r->method_name.data;
    method.len = r->method_name.len;

    return llm_api_route(path, method, to) == LLM_OK ? NGX_OK : NGX_DECLINED;
}
