/*
 * llm_upstream: in an upstream whose servers have llm_api, a server that
 * refuses a request (429: it is full; 503: not now) has not failed.
 *
 * proxy_next_upstream passes such a request on, and then nginx counts it as a
 * failure of the server's: with max_fails a server that is busy would get
 * nothing for fail_timeout, and others all of its conversations, until they
 * are busy, too.  So what the balancing method is told is changed here; it is
 * called as before, and this directive stands behind it.
 */

#include "http/ngx_http_llm_route.h"


static ngx_int_t ngx_http_llm_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_llm_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
static void ngx_http_llm_free_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);


void *
ngx_http_llm_create_srv_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_srv_conf_t));
}


char *
ngx_http_llm_upstream(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_srv_conf_t *lscf = conf;

    ngx_http_upstream_srv_conf_t  *us;

    if (lscf->init_upstream) {
        return "is duplicate";
    }

    us = ngx_http_conf_get_module_srv_conf(cf, ngx_http_upstream_module);

    lscf->init_upstream = us->peer.init_upstream
                          ? us->peer.init_upstream
                          : ngx_http_upstream_init_round_robin;

    us->peer.init_upstream = ngx_http_llm_init_upstream;

    lscf->file = cf->conf_file->file.name.data;
    lscf->line = cf->conf_file->line;

    return NGX_CONF_OK;
}


/* a method that stands behind it takes its place, without an error */

ngx_int_t
ngx_http_llm_check_upstreams(ngx_conf_t *cf)
{
    ngx_uint_t                       i;
    ngx_http_llm_srv_conf_t         *lscf;
    ngx_http_upstream_srv_conf_t   **us;
    ngx_http_upstream_main_conf_t   *umcf;

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_upstream_module);
    us = umcf->upstreams.elts;

    for (i = 0; i < umcf->upstreams.nelts; i++) {

        if (us[i]->srv_conf == NULL) {
            continue;
        }

        lscf = ngx_http_conf_upstream_srv_conf(us[i], ngx_http_llm_module);

        if (lscf->init_upstream && lscf->init_peer == NULL) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"llm_upstream\" must stand behind the balancing "
                          "method of the upstream \"%V\" in %s:%ui",
                          &us[i]->host, lscf->file, lscf->line);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_llm_init_upstream(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_llm_srv_conf_t  *lscf;

    lscf = ngx_http_conf_upstream_srv_conf(us, ngx_http_llm_module);

    if (lscf->init_upstream(cf, us) != NGX_OK) {
        return NGX_ERROR;
    }

    lscf->init_peer = us->peer.init;
    us->peer.init = ngx_http_llm_init_peer;

    return NGX_OK;
}


static ngx_int_t
ngx_http_llm_init_peer(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_llm_srv_conf_t  *lscf;

    lscf = ngx_http_conf_upstream_srv_conf(us, ngx_http_llm_module);

    if (lscf->init_peer(r, us) != NGX_OK) {
        return NGX_ERROR;
    }

    /* a method has the same function for all requests */

    lscf->free_peer = r->upstream->peer.free;
    r->upstream->peer.free = ngx_http_llm_free_peer;

    return NGX_OK;
}


static void
ngx_http_llm_free_peer(ngx_peer_connection_t *pc, void *data, ngx_uint_t state)
{
    ngx_http_upstream_t      *u;
    ngx_http_llm_srv_conf_t  *lscf;

    u = (ngx_http_upstream_t *) ((u_char *) pc
                                 - offsetof(ngx_http_upstream_t, peer));

    lscf = ngx_http_conf_upstream_srv_conf(u->upstream, ngx_http_llm_module);

    if ((state & NGX_PEER_FAILED)
        && (u->state->status == NGX_HTTP_TOO_MANY_REQUESTS
            || u->state->status == NGX_HTTP_SERVICE_UNAVAILABLE))
    {
        state = NGX_PEER_NEXT;
    }

    lscf->free_peer(pc, data, state);
}
