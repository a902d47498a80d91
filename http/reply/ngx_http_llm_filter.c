/*
 * Adds x-request-id to every answer of a location with a content handler of
 * ours, also to nginx's own answers, for instance when auth_basic or limit_req
 * refuses a request.  An error that error_page sends from another location
 * gets the header, too, if the request has been in a llm_api location.  An
 * x-request-id that an answer already has, from another server or from
 * "add_header", stays.
 *
 * The bodies of subrequests that fetch files for us end here; nginx's filter
 * that copies files to memory has been called by then.
 *
 * This is a module of its own because it must be called after
 * ngx_http_headers_filter_module, which has "add_header".  nginx calls the
 * filters at the end of its list of modules first, so `config` puts this one
 * before that module.
 */

#include "http/reply/ngx_http_llm_reply.h"


static void *ngx_http_llm_create_reply_main_conf(ngx_conf_t *cf);
static void *ngx_http_llm_create_reply_loc_conf(ngx_conf_t *cf);
static char *ngx_http_llm_merge_reply_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_llm_filter_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_llm_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_llm_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_uint_t ngx_http_llm_is_ours(ngx_http_request_t *r);


static ngx_command_t  ngx_http_llm_filter_commands[] = {

    { ngx_string("llm_intercept_errors"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_reply_loc_conf_t, intercept_errors),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_llm_filter_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_llm_filter_init,              /* postconfiguration */

    ngx_http_llm_create_reply_main_conf,   /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_llm_create_reply_loc_conf,    /* create location configuration */
    ngx_http_llm_merge_reply_loc_conf      /* merge location configuration */
};


ngx_module_t  ngx_http_llm_filter_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_filter_module_ctx,       /* module context */
    ngx_http_llm_filter_commands,          /* module directives */
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


static ngx_http_output_header_filter_pt  ngx_http_llm_next_header_filter;
static ngx_http_output_body_filter_pt    ngx_http_llm_next_body_filter;


static void *
ngx_http_llm_create_reply_main_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_reply_main_conf_t));
}


static void *
ngx_http_llm_create_reply_loc_conf(ngx_conf_t *cf)
{
    ngx_http_llm_reply_loc_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_reply_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->intercept_errors = NGX_CONF_UNSET;

    return conf;
}


/* "if" and "limit_except" blocks inherit the handler of their location */

static char *
ngx_http_llm_merge_reply_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_llm_reply_loc_conf_t *prev = parent;
    ngx_http_llm_reply_loc_conf_t *conf = child;

    ngx_http_core_loc_conf_t  *clcf;

    ngx_conf_merge_value(conf->intercept_errors, prev->intercept_errors, 0);

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->noname && clcf->handler == NULL) {
        conf->ours = prev->ours;
        conf->form = prev->form;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_llm_filter_init(ngx_conf_t *cf)
{
    ngx_str_t                        name = ngx_string("request_id");
    ngx_str_t                        client = ngx_string("http_x_request_id");
    ngx_http_llm_reply_main_conf_t  *rmcf;

    rmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_filter_module);

    rmcf->request_id = ngx_http_get_variable_index(cf, &name);
    rmcf->client_id = ngx_http_get_variable_index(cf, &client);

    if (rmcf->request_id == NGX_ERROR || rmcf->client_id == NGX_ERROR) {
        return NGX_ERROR;
    }

    if (rmcf->on) {
        ngx_http_llm_next_header_filter = ngx_http_top_header_filter;
        ngx_http_top_header_filter = ngx_http_llm_header_filter;

        ngx_http_llm_next_body_filter = ngx_http_top_body_filter;
        ngx_http_top_body_filter = ngx_http_llm_body_filter;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_llm_header_filter(ngx_http_request_t *r)
{
    ngx_http_llm_reply_main_conf_t  *rmcf;

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_llm_filter_module);

    if (r == r->main
        && ((ngx_http_llm_is_ours(r) && ngx_http_llm_add_id(r) != NGX_OK)
            || ngx_http_llm_refusal_header(r) != NGX_OK
            || rmcf->headers(r) != NGX_OK))
    {
        return NGX_ERROR;
    }

    return ngx_http_llm_next_header_filter(r);
}


static ngx_int_t
ngx_http_llm_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_int_t                        rc;
    ngx_http_llm_reply_main_conf_t  *rmcf;

    rmcf = ngx_http_get_module_main_conf(r, ngx_http_llm_filter_module);

    if (r != r->main) {
        rc = rmcf->take(r, in);

        if (rc != NGX_DECLINED) {
            return rc;
        }

    } else if (rmcf->pass) {
        rmcf->pass(r, in);
    }

    in = ngx_http_llm_refusal_body(r, in);

    if (in == NGX_CHAIN_ERROR) {
        return NGX_ERROR;
    }

    return ngx_http_llm_next_body_filter(r, in);
}


static ngx_uint_t
ngx_http_llm_is_ours(ngx_http_request_t *r)
{
    ngx_http_llm_reply_loc_conf_t   *rlcf;
    ngx_http_llm_reply_main_conf_t  *rmcf;

    rlcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_filter_module);
    rmcf = ngx_http_get_module_main_conf(r, ngx_http_llm_filter_module);

    if (!rlcf->ours
        && (r->headers_out.status < NGX_HTTP_BAD_REQUEST || !rmcf->came(r)))
    {
        return 0;
    }

    return !ngx_http_llm_has_header(r, "x-request-id");
}
