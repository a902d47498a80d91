/*
 * Requests to llm_admin without a key: they are accepted from command line
 * tools and programs, and from a browser only for pages of this server.
 *
 * - A page of another site can make a browser send requests here.  The browser
 *   then sends "Origin"; and such a page can add a header of its own only if
 *   this server agrees, which it never does.
 * - With DNS rebinding the other site's name resolves to this machine, so its
 *   page has the same origin and may add and read everything.  It cannot change
 *   "Host", which has the other site's name: so a request must be for an
 *   address, for localhost, or for a name of its server{}.
 *
 * Requests with a key of llm_api_keys are not checked: no such page knows a
 * key.
 */

#include "http/access/ngx_http_llm_keys.h"
#include "http/admin/ngx_http_llm_admin.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/reply/ngx_http_llm_reply.h"


static ngx_uint_t ngx_http_llm_admin_is_own_host(ngx_http_request_t *r);
static ngx_uint_t ngx_http_llm_admin_is_server_name(ngx_http_request_t *r,
    ngx_http_server_name_t *sn, ngx_str_t *host);


ngx_int_t
ngx_http_llm_admin_check_origin(ngx_http_request_t *r, llm_err_t *err)
{
    ngx_table_elt_t  *origin, *site;

    if (ngx_http_llm_key(r)) {
        return NGX_OK;
    }

    if (!ngx_http_llm_admin_is_own_host(r)) {
        llm_fail_with(err, 403, "unknown_host", NULL,
                      "'%.*s' is not a name of this server: add it to the "
                      "server_name, use an address, or send a key of "
                      "llm_api_keys.",
                      (int) ngx_min(r->headers_in.server.len, 128),
                      r->headers_in.server.data);
        return NGX_ERROR;
    }

    origin = ngx_http_llm_sent(r, "Origin");
    site = ngx_http_llm_sent(r, "Sec-Fetch-Site");

    if ((origin == NULL && site == NULL)
        || (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD)))
    {
        return NGX_OK;
    }

    if ((origin && !ngx_http_llm_same_origin(r, &origin->value))
        || (site
            && ngx_strcasecmp(site->value.data, (u_char *) "same-origin") != 0
            && ngx_strcasecmp(site->value.data, (u_char *) "none") != 0))
    {
        llm_fail_with(err, 403, "cross_origin", NULL,
                      "A page of another site may not use llm_admin.");
        return NGX_ERROR;
    }

    if (ngx_http_llm_sent(r, NGX_HTTP_LLM_ADMIN_HEADER) == NULL) {
        llm_fail_with(err, 403, "header_required", NULL,
                      "A request of a page must have the header "
                      NGX_HTTP_LLM_ADMIN_HEADER ", or a key of "
                      "llm_api_keys.");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* nginx frees its own list after the configuration was read */

char *
ngx_http_llm_admin_keep_server_names(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_loc_conf_t *llcf)
{
    ngx_array_t                    *names;
    ngx_http_server_name_t         *copy;
    ngx_http_llm_admin_loc_conf_t  *alcf;

    alcf = ngx_http_llm_get_loc_conf(llcf, ngx_http_llm_admin_module);
    names = &alcf->server->server_names;

    if (ngx_array_init(&alcf->server_names, cf->pool, names->nelts + 1,
                       sizeof(ngx_http_server_name_t))
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    copy = ngx_array_push_n(&alcf->server_names, names->nelts);
    if (copy == NULL) {
        return NGX_CONF_ERROR;
    }

    ngx_memcpy(copy, names->elts,
               names->nelts * sizeof(ngx_http_server_name_t));

    return NGX_CONF_OK;
}


/* every browser sends a host, so a request without one is accepted */

static ngx_uint_t
ngx_http_llm_admin_is_own_host(ngx_http_request_t *r)
{
    u_char                          text[NGX_INET6_ADDRSTRLEN + 1];
    ngx_str_t                       host;
    ngx_uint_t                      i;
    struct in6_addr                 in6;
    ngx_http_server_name_t         *sn;
    ngx_http_llm_admin_loc_conf_t  *alcf;

    host = r->headers_in.server;

    if (host.len == 0 || ngx_inet_addr(host.data, host.len) != INADDR_NONE) {
        return 1;
    }

    if (host.data[0] == '[' && host.len <= sizeof(text)) {
        (void) ngx_cpystrn(text, host.data + 1, host.len - 1);
        return inet_pton(AF_INET6, (char *) text, &in6) == 1;
    }

    if (host.len >= 9
        && ngx_strncasecmp(host.data + host.len - 9, (u_char *) "localhost",
                           9)
           == 0
        && (host.len == 9 || host.data[host.len - 10] == '.'))
    {
        return 1;
    }

    alcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_admin_module);
    sn = alcf->server_names.elts;

    for (i = 0; i < alcf->server_names.nelts; i++) {
        if (ngx_http_llm_admin_is_server_name(r, &sn[i], &host)) {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_llm_admin_is_server_name(ngx_http_request_t *r,
    ngx_http_server_name_t *sn, ngx_str_t *host)
{
    size_t      len;
    u_char     *name;

#if (NGX_PCRE)
    if (sn->regex) {
        return ngx_http_regex_exec(r, sn->regex, host) == NGX_OK;
    }
#endif

    name = sn->name.data;
    len = sn->name.len;

    if (len > 2 && name[0] == '*' && name[1] == '.') {
        name++;
        len--;

        return host->len > len
               && ngx_strncasecmp(host->data + host->len - len, name, len)
                  == 0;
    }

    if (len > 1 && name[0] == '.') {
        return (host->len > len
                && ngx_strncasecmp(host->data + host->len - len, name, len)
                   == 0)
               || (host->len == len - 1
                   && ngx_strncasecmp(host->data, name + 1, len - 1) == 0);
    }

    if (len > 2 && name[len - 1] == '*' && name[len - 2] == '.') {
        return host->len >= len
               && ngx_strncasecmp(host->data, name, len - 1) == 0;
    }

    return len && host->len == len
           && ngx_strncasecmp(host->data, name, len) == 0;
}
