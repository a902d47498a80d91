/*
 * The directive llm_api, and its checks by nginx -t.  The content handler is in
 * ngx_http_llm_handler.c.
 */

#include "http/conf/ngx_http_llm_alias.h"
#include "http/conf/ngx_http_llm_conf.h"
#include "http/conf/ngx_http_llm_param.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"


static const llm_api_endpoint_t *ngx_http_llm_form(ngx_http_request_t *r);
static size_t ngx_http_llm_prefix(ngx_http_core_loc_conf_t *clcf);
static char *ngx_http_llm_check_api(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_loc_conf_t *llcf);
static void ngx_http_llm_check_path(ngx_conf_t *cf,
    ngx_http_llm_loc_conf_t *llcf);


static const ngx_http_llm_serves_t  ngx_http_llm_api_serves = {
    .handler = ngx_http_llm_api_handler,
    .check = ngx_http_llm_check_api,
    .api = 1,
    .main = 1
};


/* llm_api [MODEL ...] [fallback=MODEL] */

char *
ngx_http_llm_api(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_loc_conf_t *llcf = conf;

    char                      *rv;
    ngx_str_t                 *value, *name;
    ngx_uint_t                 i;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_llm_reply_loc_conf_t  *rlcf;

    rv = ngx_http_llm_use(cf, llcf, &ngx_http_llm_api_serves);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    rv = ngx_http_llm_once(cf, 1);
    if (rv != NGX_CONF_OK) {
        return rv;
    }

    name = ngx_palloc(cf->pool, cf->args->nelts * sizeof(ngx_str_t));
    if (name == NULL) {
        return NGX_CONF_ERROR;
    }

    llcf->names = name;

    value = cf->args->elts;

    for (i = 1; i < cf->args->nelts; i++) {

        if (ngx_strncmp(value[i].data, "fallback=", 9) != 0) {
            name[llcf->nnames++] = value[i];
            continue;
        }

        llcf->fallback_name.data = value[i].data + 9;
        llcf->fallback_name.len = value[i].len - 9;

        if (llcf->fallback_name.len == 0) {
            return "has an empty \"fallback=\" parameter";
        }
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    llcf->prefix = ngx_http_llm_prefix(clcf);

    rlcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_llm_filter_module);

    rlcf->form = ngx_http_llm_form;

    return NGX_CONF_OK;
}


/* finds the endpoint, because a request that nginx refuses was not routed */

static const llm_api_endpoint_t *
ngx_http_llm_form(ngx_http_request_t *r)
{
    llm_api_route_t           to;
    ngx_http_llm_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    (void) ngx_http_llm_route(r, llcf, &to);

    return to.path;
}


/*
 * Bytes of the URI before the API's path: the location's prefix, or only the
 * part up to "/v1/" of a prefix such as "/v1/chat".  0 for exact, regex and
 * named locations, where the path is found in each URI.
 */

static size_t
ngx_http_llm_prefix(ngx_http_core_loc_conf_t *clcf)
{
    u_char  *v1;

#if (NGX_PCRE)
    if (clcf->regex) {
        return 0;
    }
#endif

    if (clcf->exact_match || clcf->named || clcf->name.len == 0) {
        return 0;
    }

    v1 = ngx_strnstr(clcf->name.data, "/v1/", clcf->name.len);

    return v1 ? (size_t) (v1 + 4 - clcf->name.data) : clcf->name.len;
}


static char *
ngx_http_llm_check_api(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_loc_conf_t *llcf)
{
    ngx_http_llm_check_path(cf, llcf);

    return ngx_http_llm_check_own_aliases(cf, mcf, llcf);
}


static void
ngx_http_llm_check_path(ngx_conf_t *cf, ngx_http_llm_loc_conf_t *llcf)
{
    llm_api_route_t            to;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = llcf->core;

    if (!clcf->exact_match || ngx_http_llm_rewrites(cf, clcf->loc_conf)) {
        return;
    }

    if (llm_api_route(ngx_http_llm_api_path(&clcf->name), llm_str("POST"), &to)
        == LLM_OK || to.allow[0])
    {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                  "\"llm_api\" has no endpoint for the only path of the "
                  "location \"= %V\" in %V:%ui",
                  &clcf->name, &llcf->file, llcf->line);
}
