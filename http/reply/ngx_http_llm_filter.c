/*
 * x-request-id, which every answer of a location with a handler of ours has:
 * also nginx's own, as the refusals of auth_basic or limit_req.  So has a page
 * that error_page sends, with an error, for a request that came to a llm_api
 * location; an id that such an answer has already, because another server or
 * "add_header" made it, stays.
 *
 * This is a module of its own, as it has to be called after
 * ngx_http_headers_filter_module, the one with "add_header": it comes before
 * that in the list of modules (../config), and later filters of the list are
 * called first.
 */

#include "http/ngx_http_llm_module.h"


static ngx_int_t ngx_http_llm_filter_init(ngx_conf_t *cf);
static ngx_int_t ngx_http_llm_header_filter(ngx_http_request_t *r);
static ngx_int_t ngx_http_llm_body_filter(ngx_http_request_t *r,
    ngx_chain_t *in);
static ngx_uint_t ngx_http_llm_is_ours(ngx_http_request_t *r);


static ngx_http_module_t  ngx_http_llm_filter_module_ctx = {
    NULL,                                  /* preconfiguration */
    ngx_http_llm_filter_init,              /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    NULL,                                  /* create location configuration */
    NULL                                   /* merge location configuration */
};


ngx_module_t  ngx_http_llm_filter_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_filter_module_ctx,       /* module context */
    NULL,                                  /* module directives */
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


static ngx_int_t
ngx_http_llm_filter_init(ngx_conf_t *cf)
{
    ngx_http_llm_main_conf_t  *mcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_module);

    if (mcf->models.nelts) {
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
    if (r == r->main
        && ((ngx_http_llm_is_ours(r) && ngx_http_llm_add_id(r) != NGX_OK)
            || ngx_http_llm_refusal_header(r) != NGX_OK
            || ngx_http_llm_quota_headers(r) != NGX_OK
            || ngx_http_llm_sunset_headers(r) != NGX_OK))
    {
        return NGX_ERROR;
    }

    return ngx_http_llm_next_header_filter(r);
}


static ngx_int_t
ngx_http_llm_body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
    in = ngx_http_llm_refusal_body(r, in);

    if (in == NGX_CHAIN_ERROR) {
        return NGX_ERROR;
    }

    return ngx_http_llm_next_body_filter(r, in);
}


static ngx_uint_t
ngx_http_llm_is_ours(ngx_http_request_t *r)
{
    ngx_http_llm_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    if (llcf->serves == NULL
        && (r->headers_out.status < NGX_HTTP_BAD_REQUEST
            || !ngx_http_llm_is_counted(r)))
    {
        return 0;
    }

    return !ngx_http_llm_has_header(r, "x-request-id");
}
