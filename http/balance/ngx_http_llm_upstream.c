/*
 * llm_upstream: in an upstream whose servers have llm_api, a server that
 * refuses a request (429: full; 503: not now) has not failed.
 *
 * proxy_next_upstream passes such a request to another server, and nginx counts
 * a failure of the first.  With max_fails, a busy server would then get no
 * requests for fail_timeout, and other servers would get all of its
 * conversations, until they are busy, too.  So the result that the balancing
 * method gets is changed here.  The directive must come after the method, which
 * it wraps.
 *
 * A 429 because the client has used up its own quota must be passed to the
 * client: the next server has a separate account, and would serve the request.
 * nginx asks the next server while tries are left, so this try is made the last
 * one.
 */

#include "http/balance/ngx_http_llm_route.h"


/* a request's pass through an upstream; in r->pool, found by its cleanup
   handler */

typedef struct {
    ngx_http_upstream_t     *upstream;
    ngx_int_t              (*process_header)(ngx_http_request_t *r);
    ngx_int_t              (*reinit_request)(ngx_http_request_t *r);
} ngx_http_llm_way_t;


static ngx_int_t ngx_http_llm_add_route(ngx_conf_t *cf);
static void *ngx_http_llm_create_upstream_conf(ngx_conf_t *cf);
static char *ngx_http_llm_upstream(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static ngx_int_t ngx_http_llm_check_upstreams(ngx_conf_t *cf);
static ngx_int_t ngx_http_llm_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_llm_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
static void ngx_http_llm_free_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);
static ngx_int_t ngx_http_llm_watch_answer(ngx_http_request_t *r);
static ngx_http_llm_way_t *ngx_http_llm_find_way(ngx_http_request_t *r);
static ngx_int_t ngx_http_llm_reinit_request(ngx_http_request_t *r);
static ngx_int_t ngx_http_llm_process_header(ngx_http_request_t *r);
static ngx_uint_t ngx_http_llm_is_full(ngx_http_upstream_t *u);
static void ngx_http_llm_way_cleanup(void *data);


static ngx_http_variable_t  ngx_http_llm_route_vars[] = {

    { ngx_string("llm_route_key"), NULL, ngx_http_llm_route_variable,
      0, 0, 0 },

      ngx_http_null_variable
};


static ngx_command_t  ngx_http_llm_upstream_commands[] = {

    { ngx_string("llm_route"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_llm_route_bytes,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("llm_upstream"),
      NGX_HTTP_UPS_CONF|NGX_CONF_NOARGS,
      ngx_http_llm_upstream,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_llm_upstream_module_ctx = {
    ngx_http_llm_add_route,                /* preconfiguration */
    ngx_http_llm_check_upstreams,          /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    ngx_http_llm_create_upstream_conf,     /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_llm_create_route_conf,        /* create location configuration */
    ngx_http_llm_merge_route_conf          /* merge location configuration */
};


ngx_module_t  ngx_http_llm_upstream_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_upstream_module_ctx,     /* module context */
    ngx_http_llm_upstream_commands,        /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_llm_add_route(ngx_conf_t *cf)
{
    return ngx_http_llm_add_variables(cf, ngx_http_llm_route_vars);
}


static void *
ngx_http_llm_create_upstream_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_upstream_conf_t));
}


static char *
ngx_http_llm_upstream(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_llm_upstream_conf_t *lscf = conf;

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


/* a method that comes after llm_upstream replaces it without an error, so that
   is an error here */

static ngx_int_t
ngx_http_llm_check_upstreams(ngx_conf_t *cf)
{
    ngx_uint_t                       i;
    ngx_http_llm_upstream_conf_t         *lscf;
    ngx_http_upstream_srv_conf_t   **us;
    ngx_http_upstream_main_conf_t   *umcf;

    umcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_upstream_module);
    us = umcf->upstreams.elts;

    for (i = 0; i < umcf->upstreams.nelts; i++) {

        if (us[i]->srv_conf == NULL) {
            continue;
        }

        lscf = ngx_http_conf_upstream_srv_conf(us[i],
                                               ngx_http_llm_upstream_module);

        if (lscf->init_upstream && lscf->init_peer == NULL) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"llm_upstream\" must come after the balancing "
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
    ngx_http_llm_upstream_conf_t  *lscf;

    lscf = ngx_http_conf_upstream_srv_conf(us, ngx_http_llm_upstream_module);

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
    ngx_http_llm_upstream_conf_t  *lscf;

    lscf = ngx_http_conf_upstream_srv_conf(us, ngx_http_llm_upstream_module);

    if (lscf->init_peer(r, us) != NGX_OK) {
        return NGX_ERROR;
    }

    /* a method uses the same function for all requests */

    lscf->free_peer = r->upstream->peer.free;
    r->upstream->peer.free = ngx_http_llm_free_peer;

    return ngx_http_llm_watch_answer(r);
}


static void
ngx_http_llm_free_peer(ngx_peer_connection_t *pc, void *data, ngx_uint_t state)
{
    ngx_http_upstream_t      *u;
    ngx_http_llm_upstream_conf_t  *lscf;

    u = (ngx_http_upstream_t *) ((u_char *) pc
                                 - offsetof(ngx_http_upstream_t, peer));

    lscf = ngx_http_conf_upstream_srv_conf(u->upstream,
                                           ngx_http_llm_upstream_module);

    if ((state & NGX_PEER_FAILED)
        && (u->state->status == NGX_HTTP_TOO_MANY_REQUESTS
            || u->state->status == NGX_HTTP_SERVICE_UNAVAILABLE))
    {
        state = NGX_PEER_NEXT;
    }

    lscf->free_peer(pc, data, state);
}


/* ---- the client's own 429 ---- */

static ngx_int_t
ngx_http_llm_watch_answer(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t   *cln;
    ngx_http_llm_way_t   *way;
    ngx_http_upstream_t  *u;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_llm_way_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    u = r->upstream;
    way = cln->data;

    way->upstream = u;
    way->process_header = u->process_header;
    way->reinit_request = u->reinit_request;

    cln->handler = ngx_http_llm_way_cleanup;

    u->process_header = ngx_http_llm_process_header;
    u->reinit_request = ngx_http_llm_reinit_request;

    return NGX_OK;
}


/* the entry exists, because this runs in functions that it has set; an internal
   redirect to another upstream makes another entry */

static ngx_http_llm_way_t *
ngx_http_llm_find_way(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;
    ngx_http_llm_way_t  *way;

    for (cln = r->pool->cleanup; /* void */ ; cln = cln->next) {
        way = cln->data;

        if (cln->handler == ngx_http_llm_way_cleanup
            && way->upstream == r->upstream)
        {
            return way;
        }
    }
}


static void
ngx_http_llm_way_cleanup(void *data)
{
    /* the handler only marks the entry */
}


static ngx_int_t
ngx_http_llm_reinit_request(ngx_http_request_t *r)
{
    ngx_int_t            rc;
    ngx_http_llm_way_t  *way;

    way = ngx_http_llm_find_way(r);
    rc = way->reinit_request(r);

    way->process_header = r->upstream->process_header;
    r->upstream->process_header = ngx_http_llm_process_header;

    return rc;
}


/* the protocol's functions for the parts of a header each set the next one */

static ngx_int_t
ngx_http_llm_process_header(ngx_http_request_t *r)
{
    ngx_int_t             rc;
    ngx_http_llm_way_t   *way;
    ngx_http_upstream_t  *u;

    u = r->upstream;
    way = ngx_http_llm_find_way(r);

    u->process_header = way->process_header;
    rc = way->process_header(r);

    way->process_header = u->process_header;
    u->process_header = ngx_http_llm_process_header;

    if (rc == NGX_OK
        && u->headers_in.status_n == NGX_HTTP_TOO_MANY_REQUESTS
        && !ngx_http_llm_is_full(u))
    {
        u->peer.tries = ngx_min(u->peer.tries, 1);
    }

    return rc;
}


/* is the 429 one of a full server?  A server that cannot start in time
   (overloaded) counts as full */

static ngx_uint_t
ngx_http_llm_is_full(ngx_http_upstream_t *u)
{
    ngx_str_t        *word;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    static const char  name[] = "x-llm-error";
    static ngx_str_t   full[] = {
        ngx_string("queue_full"),
        ngx_string("overloaded"),
        ngx_string("media_memory_full"),
        ngx_null_string
    };

    for (part = &u->headers_in.headers.part; part; part = part->next) {
        h = part->elts;

        for (i = 0; i < part->nelts; i++) {
            if (h[i].key.len != sizeof(name) - 1
                || ngx_strncasecmp(h[i].key.data, (u_char *) name,
                                   sizeof(name) - 1) != 0)
            {
                continue;
            }

            for (word = full; word->len; word++) {
                if (h[i].value.len == word->len
                    && ngx_memcmp(h[i].value.data, word->data, word->len) == 0)
                {
                    return 1;
                }
            }

            return 0;
        }
    }

    return 0;
}
