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
    p = p ? p + 4 : uri->data;

    path.data = (char *) p;
    path.len = uri->data + uri->len - p;

    return path;
}


/* bytes of "api" or "api/" at the end of a prefix; 0: the prefix ends with
   something else */

static size_t
ngx_http_llm_ollama(u_char *name, size_t len)
{
    size_t  slash;

    slash = len && name[len - 1] == '/';
    len -= slash;

    return len >= 4 && ngx_strncmp(name + len - 4, "/api", 4) == 0 ? 3 + slash
                                                                   : 0;
}


/*
 * The API's path is what follows the location's prefix, with the "api" of a
 * prefix that ends in it: such paths are Ollama's.  In an exact, regex or named
 * location, and after a rewrite to somewhere else, it is what follows "/v1/", or
 * else the whole path.
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

        p -= ngx_http_llm_ollama(clcf->name.data, llcf->prefix);

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
