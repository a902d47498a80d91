/*
 * llm_proxied_usage on | off;
 *
 * In a location that passes requests to another server of the same API
 * (proxy_pass): they pay from the accounts of llm_token_limit what the answer
 * says that it has used, and $llm_prompt_tokens and the like have it for logs.
 *
 * - The limits are checked before the request is passed on. What it will use is
 *   not known then, so it may leave a debt, as answers beyond a reserve do.
 * - The answer is only looked at, and goes on unchanged. One of 200 without a
 *   usage (a stream whose client has not asked for one, or has left) is
 *   estimated: see ngx_http_llm_proxied_estimate().
 * - The record is in r->pool, found by its cleanup handler, because a redirect
 *   clears contexts. A request may have several, one for each such location;
 *   the latest is the one whose answer comes.
 */

#include "http/access/ngx_http_llm_proxied.h"
#include "http/access/ngx_http_llm_quota.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"


/* bytes of text that are taken for a token */
#define NGX_HTTP_LLM_PROXIED_TOKEN  4


typedef struct {
    ngx_flag_t            on;
} ngx_http_llm_proxied_conf_t;


static ngx_int_t ngx_http_llm_add_proxied(ngx_conf_t *cf);
static void *ngx_http_llm_create_proxied_conf(ngx_conf_t *cf);
static char *ngx_http_llm_merge_proxied_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_llm_proxied_is_set(ngx_conf_t *cf, void *post,
    void *data);
static ngx_int_t ngx_http_llm_add_proxied_handler(ngx_conf_t *cf);
static ngx_int_t ngx_http_llm_proxied_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_llm_proxied_begin(ngx_http_request_t *r,
    ngx_http_llm_proxied_t *p, llm_err_t *err);
static ngx_int_t ngx_http_llm_proxied_header(ngx_http_request_t *r);
static void ngx_http_llm_proxied_body(ngx_http_request_t *r, ngx_chain_t *in);
static void ngx_http_llm_proxied_estimate(ngx_http_llm_proxied_t *p);
static void ngx_http_llm_proxied_end(void *data);
static void ngx_http_llm_proxied_cleanup(void *data);


static ngx_http_llm_stage_t  ngx_http_llm_proxied_stage = {
    .headers = ngx_http_llm_proxied_header
};


static ngx_conf_post_t  ngx_http_llm_proxied_post = {
    ngx_http_llm_proxied_is_set
};


static ngx_command_t  ngx_http_llm_proxied_commands[] = {

    { ngx_string("llm_proxied_usage"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_proxied_conf_t, on),
      &ngx_http_llm_proxied_post },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_llm_proxied_module_ctx = {
    ngx_http_llm_add_proxied,              /* preconfiguration */
    ngx_http_llm_add_proxied_handler,      /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_llm_create_proxied_conf,      /* create location configuration */
    ngx_http_llm_merge_proxied_conf        /* merge location configuration */
};


ngx_module_t  ngx_http_llm_proxied_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_proxied_module_ctx,      /* module context */
    ngx_http_llm_proxied_commands,         /* module directives */
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
ngx_http_llm_add_proxied(ngx_conf_t *cf)
{
    return ngx_http_llm_add_stage(cf, &ngx_http_llm_proxied_stage);
}


static void *
ngx_http_llm_create_proxied_conf(ngx_conf_t *cf)
{
    ngx_http_llm_proxied_conf_t  *conf;

    conf = ngx_palloc(cf->pool, sizeof(ngx_http_llm_proxied_conf_t));

    if (conf) {
        conf->on = NGX_CONF_UNSET;
    }

    return conf;
}


static char *
ngx_http_llm_merge_proxied_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_llm_proxied_conf_t *prev = parent;
    ngx_http_llm_proxied_conf_t *conf = child;

    ngx_conf_merge_value(conf->on, prev->on, 0);

    return NGX_CONF_OK;
}


/* the filters are needed without a model, too */

static char *
ngx_http_llm_proxied_is_set(ngx_conf_t *cf, void *post, void *data)
{
    ngx_http_llm_reply_main_conf_t  *rmcf;

    rmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_filter_module);

    rmcf->on = 1;
    rmcf->pass = ngx_http_llm_proxied_body;

    return NGX_CONF_OK;
}


/* after the phases that allow access: the key of an account may be the API
   key */

static ngx_int_t
ngx_http_llm_add_proxied_handler(ngx_conf_t *cf)
{
    ngx_http_handler_pt             *h;
    ngx_http_core_main_conf_t       *cmcf;
    ngx_http_llm_reply_main_conf_t  *rmcf;

    rmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_llm_filter_module);

    if (rmcf->pass == NULL) {
        return NGX_OK;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_PRECONTENT_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_llm_proxied_handler;

    return NGX_OK;
}


ngx_uint_t
ngx_http_llm_is_proxied(ngx_http_request_t *r)
{
    ngx_http_llm_loc_conf_t      *llcf;
    ngx_http_llm_proxied_conf_t  *conf;

    conf = ngx_http_get_module_loc_conf(r, ngx_http_llm_proxied_module);
    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    return conf->on && llcf->serves == NULL;
}


ngx_http_llm_proxied_t *
ngx_http_llm_get_proxied(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;

    for (cln = r->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_llm_proxied_cleanup) {
            return cln->data;
        }
    }

    return NULL;
}


/* ---- the request ---- */

static ngx_int_t
ngx_http_llm_proxied_handler(ngx_http_request_t *r)
{
    llm_err_t                err;
    ngx_pool_cleanup_t      *pcln;
    ngx_http_cleanup_t      *cln;
    ngx_http_llm_proxied_t  *p;

    if (r != r->main || !ngx_http_llm_is_proxied(r)
        || ngx_http_get_module_ctx(r, ngx_http_llm_proxied_module))
    {
        return NGX_DECLINED;
    }

    pcln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_llm_proxied_t));
    cln = ngx_http_cleanup_add(r, 0);

    if (pcln == NULL || cln == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    p = pcln->data;
    ngx_memzero(p, sizeof(ngx_http_llm_proxied_t));
    p->request = r;
    llm_proxied_init(&p->usage);

    pcln->handler = ngx_http_llm_proxied_cleanup;
    cln->handler = ngx_http_llm_proxied_end;
    cln->data = p;

    ngx_http_set_ctx(r, p, ngx_http_llm_proxied_module);

    if (ngx_http_llm_proxied_begin(r, p, &err) == NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_http_finalize_request(r, ngx_http_llm_send_error(r, &err, 0));

    return NGX_DONE;
}


static ngx_int_t
ngx_http_llm_proxied_begin(ngx_http_request_t *r, ngx_http_llm_proxied_t *p,
    llm_err_t *err)
{
    llm_api_route_t                  to;
    ngx_http_llm_reply_t            *reply;
    ngx_http_llm_loc_conf_t         *llcf;
    ngx_http_llm_quotas_loc_conf_t  *qlcf;

    qlcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_quotas_module);

    if (qlcf->limits == NULL) {
        return NGX_OK;
    }

    reply = ngx_http_llm_create_reply(r);
    p->bill = reply ? ngx_http_llm_bill_create(r, reply) : NULL;

    if (p->bill == NULL) {
        llm_fail(err, "No memory is left for this request.");
        return NGX_ERROR;
    }

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    reply->endpoint = ngx_http_llm_route(r, llcf, &to) == NGX_OK ? to.endpoint
                                                                 : to.path;

    return ngx_http_llm_bill_check(p->bill, err) == NGX_OK
           && ngx_http_llm_bill_claim(p->bill, err) == NGX_OK ? NGX_OK
                                                              : NGX_ERROR;
}


/* ---- the answer ---- */

/* nginx's own filters then bring parts of a temporary file into memory */

static ngx_int_t
ngx_http_llm_proxied_header(ngx_http_request_t *r)
{
    ngx_table_elt_t         *coding;
    ngx_http_llm_proxied_t  *p;

    p = ngx_http_get_module_ctx(r, ngx_http_llm_proxied_module);

    if (p && r->headers_out.status == NGX_HTTP_OK) {
        coding = r->headers_out.content_encoding;

        p->answered = 1;
        p->coded = coding && coding->value.len;
        r->filter_need_in_memory = 1;
    }

    return NGX_OK;
}


static void
ngx_http_llm_proxied_body(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_buf_t               *b;
    ngx_http_llm_proxied_t  *p;

    p = ngx_http_get_module_ctx(r, ngx_http_llm_proxied_module);

    if (p == NULL || !p->answered) {
        return;
    }

    for ( /* void */ ; in; in = in->next) {
        b = in->buf;

        if (ngx_buf_in_memory(b)) {
            llm_proxied_read(&p->usage, (char *) b->pos,
                             (size_t) (b->last - b->pos));
        }
    }
}


/*
 * The prompt has a token for four bytes of the request's body; so has an answer,
 * but one for each event if it is a stream that can be read.
 */

static void
ngx_http_llm_proxied_estimate(ngx_http_llm_proxied_t *p)
{
    off_t  body;

    body = ngx_max(p->request->headers_in.content_length_n, 0);

    p->usage.prompt = (uint64_t) body / NGX_HTTP_LLM_PROXIED_TOKEN;
    p->usage.answer = p->usage.events
                      ? p->usage.events
                      : p->usage.bytes / NGX_HTTP_LLM_PROXIED_TOKEN;

    ngx_log_error(NGX_LOG_WARN, p->request->connection->log, 0,
                  "llm_proxied_usage: the answer has no usage%s, %uL tokens "
                  "are estimated",
                  p->coded ? " that can be read, it is compressed" : "",
                  p->usage.prompt + p->usage.answer);
}


/* the request is over, before it is logged */

static void
ngx_http_llm_proxied_end(void *data)
{
    ngx_http_llm_proxied_t *p = data;

    ngx_uint_t             i;
    ngx_http_llm_claim_t  *c;

    if (p->answered && !p->usage.found) {
        ngx_http_llm_proxied_estimate(p);
    }

    if (p->bill == NULL) {
        return;
    }

    for (i = 0; i < p->bill->nshares; i++) {
        c = p->bill->shares[i].claim;

        if (c && p->answered) {
            c->prompt = (uint32_t) ngx_min(p->usage.prompt, LLM_QUOTA_MOST);
            c->cached = (uint32_t) ngx_min(p->usage.cached, c->prompt);
            c->answer = p->usage.answer;
            c->seconds = (uint32_t) ngx_min(p->usage.seconds, LLM_QUOTA_MOST);
            c->started = 1;
        }
    }

    ngx_http_llm_bill_settle(p->bill);
}


static void
ngx_http_llm_proxied_cleanup(void *data)
{
    /* the handler only marks the record */
}
