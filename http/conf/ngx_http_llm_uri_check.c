/*
 * Finds the location that serves a URI of the configuration: nginx -t warns
 * about URIs that no location serves, and about "mirror" to a location of ours
 * that refuses subrequests.
 *
 * There is no warning where directives of the rewrite module ("rewrite",
 * "return", "set", "if") may change the URI, because the result is unknown.
 */

#include "http/conf/ngx_http_llm_conf.h"


/* since Angie 1.3.0 a "location" block may have several names, and has a list
   of ngx_http_core_loc_t, one for each name */

#if (angie_version >= 1003000)

typedef ngx_http_core_loc_t       ngx_http_llm_place_t;

#define ngx_http_llm_place_conf(place)  (place)->conf

#else

typedef ngx_http_core_loc_conf_t  ngx_http_llm_place_t;

#define ngx_http_llm_place_conf(place)  (place)

#endif


static void *ngx_http_llm_others(ngx_conf_t *cf, void **loc_conf,
    const char *name);
static ngx_http_core_loc_conf_t *ngx_http_llm_find_location(
    ngx_http_core_loc_conf_t *clcf, ngx_str_t *uri, ngx_uint_t *regex);


/*
 * The first pointer in the private configuration of an nginx module: the
 * compiled directives of the rewrite module, or the URIs of "mirror".  It has
 * been the first member since these modules exist; if that ever changes, a
 * warning may be missing or wrong.
 */

static void *
ngx_http_llm_others(ngx_conf_t *cf, void **loc_conf, const char *name)
{
    void          **conf;
    ngx_uint_t      i;
    ngx_module_t  **modules;

    modules = cf->cycle->modules;

    for (i = 0; modules[i]; i++) {

        if (ngx_strcmp(modules[i]->name, name) == 0) {
            conf = loc_conf[modules[i]->ctx_index];
            return *conf;
        }
    }

    return NULL;
}


ngx_uint_t
ngx_http_llm_rewrites(ngx_conf_t *cf, void **loc_conf)
{
    return ngx_http_llm_others(cf, loc_conf, "ngx_http_rewrite_module") != NULL;
}


/* warns where "mirror" is written, not where it is inherited */

void
ngx_http_llm_check_mirror(ngx_conf_t *cf, ngx_http_llm_loc_conf_t *prev,
    ngx_http_llm_loc_conf_t *conf)
{
    ngx_str_t                 *uri;
    ngx_uint_t                 i;
    ngx_array_t               *uris;
    ngx_http_conf_ctx_t       *ctx;
    ngx_http_core_srv_conf_t  *cscf;

    ctx = cf->ctx;
    uris = ngx_http_llm_others(cf, ctx->loc_conf, "ngx_http_mirror_module");

    if (uris == NGX_CONF_UNSET_PTR) {
        uris = NULL;
    }

    conf->mirror = uris;

    if (uris == NULL || uris == prev->mirror
        || uris->size != sizeof(ngx_str_t))
    {
        return;
    }

    uri = uris->elts;
    cscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_core_module);

    for (i = 0; i < uris->nelts; i++) {

        if (ngx_http_llm_leads(cf, cscf, &uri[i]) == NGX_HTTP_LLM_LEADS_MAIN)
        {
            ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                          "\"mirror %V\" leads to a location that serves no "
                          "subrequests: the mirrored requests will fail",
                          &uri[i]);
        }
    }
}


ngx_http_llm_leads_e
ngx_http_llm_leads(ngx_conf_t *cf, ngx_http_core_srv_conf_t *cscf,
    ngx_str_t *uri)
{
    ngx_str_t                  path;
    ngx_uint_t                 regex;
    ngx_http_llm_loc_conf_t   *llcf;
    ngx_http_core_loc_conf_t  *clcf;

    path.data = uri->data;
    path.len = strcspn((char *) uri->data, "?#");

    /* nginx decodes, merges or rewrites these, so the final URI is unknown */

    if (strcspn((char *) uri->data, "%") < path.len
        || ngx_strnstr(path.data, "//", path.len)
        || ngx_strnstr(path.data, "/.", path.len)
        || ngx_http_llm_rewrites(cf, cscf->ctx->loc_conf))
    {
        return NGX_HTTP_LLM_LEADS_MAYBE;
    }

    clcf = cscf->ctx->loc_conf[ngx_http_core_module.ctx_index];
    regex = 0;

    clcf = ngx_http_llm_find_location(clcf, &path, &regex);

    if (regex) {
        return NGX_HTTP_LLM_LEADS_MAYBE;
    }

    if (clcf == NULL) {
        return NGX_HTTP_LLM_LEADS_NOWHERE;
    }

    if (ngx_http_llm_rewrites(cf, clcf->loc_conf)) {
        return NGX_HTTP_LLM_LEADS_MAYBE;
    }

    llcf = clcf->loc_conf[ngx_http_llm_module.ctx_index];

    if (llcf->serves == NULL) {
        return NGX_HTTP_LLM_LEADS_MAYBE;
    }

    return llcf->serves->main ? NGX_HTTP_LLM_LEADS_MAIN
                              : NGX_HTTP_LLM_LEADS_OURS;
}


/* the location with exactly this path, or else with the longest prefix; NULL:
   none.  *regex is set if a regex location might match the path. */

static ngx_http_core_loc_conf_t *
ngx_http_llm_find_location(ngx_http_core_loc_conf_t *clcf, ngx_str_t *uri,
    ngx_uint_t *regex)
{
    ngx_queue_t                *q;
    ngx_http_llm_place_t       *l, *best;
    ngx_http_core_loc_conf_t   *inner;
    ngx_http_location_queue_t  *lq;

    best = NULL;

    if (clcf->locations == NULL) {
        return NULL;
    }

    for (q = ngx_queue_head(clcf->locations);
         q != ngx_queue_sentinel(clcf->locations);
         q = ngx_queue_next(q))
    {
        lq = (ngx_http_location_queue_t *) q;
        l = lq->exact ? lq->exact : lq->inclusive;

        if (l->named || ngx_http_llm_place_conf(l)->noname) {
            continue;
        }

#if (NGX_PCRE)
        if (l->regex) {
            *regex = 1;
            continue;
        }
#endif

        if (l->name.len > uri->len
            || ngx_filename_cmp(l->name.data, uri->data, l->name.len) != 0)
        {
            continue;
        }

        if (l->exact_match) {
            if (l->name.len == uri->len) {
                *regex = 0;
                return ngx_http_llm_place_conf(l);
            }

        } else if (best == NULL || best->name.len < l->name.len) {
            best = l;
        }
    }

    if (best == NULL) {
        return NULL;
    }

    clcf = ngx_http_llm_place_conf(best);
    inner = ngx_http_llm_find_location(clcf, uri, regex);

    return inner ? inner : clcf;
}
