/*
 * llm_proxied_usage on | off;
 *
 * In a location that passes requests to another server of an API that is
 * served here (proxy_pass): they pay from the accounts of llm_token_limit what
 * the answer says that it has used, and $llm_prompt_tokens and the like have it
 * for logs.
 *
 * - The limits are checked before the request is passed on.  What it will use
 *   is not known then, so it may leave a debt, as answers beyond a reserve do.
 * - The answer is only looked at, and goes on unchanged.  What it does not say
 *   (a stream whose client has not asked for a usage, or has left before it
 *   came) is estimated: see ngx_http_llm_proxied_estimate().
 * - The record is in r->pool, found by its cleanup handler, because a redirect
 *   clears contexts.  A request that is redirected from one such location to
 *   another has several: the latest is the one whose answer comes, and those
 *   before have got everything back.
 */

#include "http/access/ngx_http_llm_proxied.h"
#include "http/access/ngx_http_llm_quota.h"
#include "http/reply/ngx_http_llm_reply.h"
#include "http/request/ngx_http_llm_request.h"


/* bytes of text that are taken for a token; most bytes of a request that are,
   because the rest may be pictures */
#define NGX_HTTP_LLM_PROXIED_TOKEN  4
#define NGX_HTTP_LLM_PROXIED_TEXT   (256 * 1024)


static ngx_int_t ngx_http_llm_proxied_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_llm_proxied_begin(ngx_http_request_t *r,
    ngx_http_llm_proxied_t *p, llm_err_t *err);
static ngx_int_t ngx_http_llm_proxied_header(ngx_http_request_t *r);
static ngx_uint_t ngx_http_llm_proxied_is_text(ngx_str_t *type);
static void ngx_http_llm_proxied_body(ngx_http_request_t *r, ngx_chain_t *in);
static void ngx_http_llm_proxied_estimate(ngx_http_llm_proxied_t *p);
static void ngx_http_llm_proxied_end(void *data);
static void ngx_http_llm_proxied_cleanup(void *data);


ngx_http_llm_stage_t  ngx_http_llm_proxied_stage = {
    .headers = ngx_http_llm_proxied_header
};


/* the filters are needed without a model, too */

char *
ngx_http_llm_proxied_is_set(ngx_conf_t *cf, void *post, void *data)
{
    ngx_flag_t                      *on = data;
    ngx_http_llm_reply_main_conf_t  *rmcf;

    if (*on) {
        rmcf = ngx_http_conf_get_module_main_conf(cf,
                                                  ngx_http_llm_filter_module);
        rmcf->on = 1;
        rmcf->pass = ngx_http_llm_proxied_body;
    }

    return NGX_CONF_OK;
}


/* after the phases that allow access: the key of an account may be the API
   key */

ngx_int_t
ngx_http_llm_proxied_init(ngx_conf_t *cf)
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
    ngx_http_llm_loc_conf_t         *llcf;
    ngx_http_llm_quotas_loc_conf_t  *qlcf;

    qlcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_quotas_module);
    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);

    /* without a handler nginx serves files; the location may have one that an
       "if" in it has not */

    return qlcf->proxied && llcf->serves == NULL && r->content_handler;
}


ngx_http_llm_proxied_t *
ngx_http_llm_get_proxied(ngx_http_request_t *r)
{
    return ngx_http_llm_find_record(r, ngx_http_llm_proxied_cleanup);
}


void
ngx_http_llm_proxied_leave(ngx_http_request_t *r)
{
    ngx_http_llm_proxied_t  *p;

    p = ngx_http_llm_get_proxied(r);

    if (p && p->bill && !p->answered) {
        ngx_http_llm_bill_return(p->bill);
        p->bill = NULL;
    }
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
        || ngx_http_get_module_ctx(r, ngx_http_llm_quotas_module))
    {
        return NGX_DECLINED;
    }

    ngx_http_llm_proxied_leave(r);

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

    ngx_http_set_ctx(r, p, ngx_http_llm_quotas_module);

    if (ngx_http_llm_proxied_begin(r, p, &err) == NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_http_finalize_request(r, ngx_http_llm_send_error(r, &err, 0));

    return NGX_DONE;
}


/* reading what models there are is free, as where this module answers */

static ngx_int_t
ngx_http_llm_proxied_begin(ngx_http_request_t *r, ngx_http_llm_proxied_t *p,
    llm_err_t *err)
{
    ngx_uint_t                known;
    llm_api_route_t           to;
    ngx_http_llm_reply_t     *reply;
    ngx_http_llm_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(r, ngx_http_llm_module);
    known = ngx_http_llm_route(r, llcf, &to) == NGX_OK;

    p->scope = known ? to.scope : LLM_SCOPE_OTHER;
    p->form = known && llm_api_takes_form(to.endpoint);

    if (p->scope == LLM_SCOPE_MODELS
        && (r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD)))
    {
        return NGX_OK;
    }

    reply = ngx_http_llm_create_reply(r);

    if (reply == NULL) {
        llm_fail(err, "No memory is left for this request.");
        return NGX_ERROR;
    }

    reply->endpoint = known ? to.endpoint : to.path;

    if (ngx_http_llm_bill_open(r, reply, &p->bill, err) != NGX_OK) {
        return NGX_ERROR;
    }

    return p->bill ? ngx_http_llm_bill_claim(p->bill, err) : NGX_OK;
}


/* ---- the answer ---- */

/* nginx's own filters then bring parts of a temporary file into memory */

static ngx_int_t
ngx_http_llm_proxied_header(ngx_http_request_t *r)
{
    ngx_table_elt_t         *coding;
    ngx_http_llm_proxied_t  *p;

    p = ngx_http_get_module_ctx(r, ngx_http_llm_quotas_module);

    if (p == NULL || r->upstream == NULL || r->method == NGX_HTTP_HEAD
        || r->headers_out.status != NGX_HTTP_OK)
    {
        return NGX_OK;
    }

    coding = r->headers_out.content_encoding;

    p->answered = 1;
    p->coded = coding && coding->value.len;
    p->text = p->scope != LLM_SCOPE_MODELS && p->scope != LLM_SCOPE_TOKENIZE
              && ngx_http_llm_proxied_is_text(&r->headers_out.content_type);
    r->filter_need_in_memory = 1;

    return NGX_OK;
}


/* may the answer have a usage?  Sounds and pictures have none */

static ngx_uint_t
ngx_http_llm_proxied_is_text(ngx_str_t *type)
{
    static ngx_str_t  json = ngx_string("json");
    static ngx_str_t  text = ngx_string("text/");

    return type->len == 0
           || ngx_strlcasestrn(type->data, type->data + type->len, json.data,
                               json.len - 1)
           || (type->len > text.len
               && ngx_strncasecmp(type->data, text.data, text.len) == 0);
}


static void
ngx_http_llm_proxied_body(ngx_http_request_t *r, ngx_chain_t *in)
{
    ngx_buf_t               *b;
    ngx_http_llm_proxied_t  *p;

    p = ngx_http_get_module_ctx(r, ngx_http_llm_quotas_module);

    if (p == NULL || !p->answered || !p->text) {
        return;
    }

    for ( /* void */ ; in; in = in->next) {
        b = in->buf;

        if (p->coded) {
            p->usage.bytes += ngx_buf_size(b);

        } else if (ngx_buf_in_memory(b)) {
            llm_proxied_read(&p->usage, (char *) b->pos,
                             (size_t) (b->last - b->pos));
        }

        p->whole |= b->last_buf;
    }
}


/*
 * What the answer does not say, or did not come to say: a prompt has a token for
 * four bytes of the request's body, unless that is a form; so has an answer, but
 * one for each event or line if it is a stream that can be read.
 */

static void
ngx_http_llm_proxied_estimate(ngx_http_llm_proxied_t *p)
{
    off_t     body;
    uint64_t  prompt, answer;

    body = ngx_max(p->request->headers_in.content_length_n, 0);
    body = ngx_min(body, NGX_HTTP_LLM_PROXIED_TEXT);

    prompt = p->form ? 0 : (uint64_t) body / NGX_HTTP_LLM_PROXIED_TOKEN;
    answer = p->usage.events ? p->usage.events
                             : p->usage.bytes / NGX_HTTP_LLM_PROXIED_TOKEN;

    p->usage.prompt = p->usage.prompt ? p->usage.prompt : prompt;
    p->usage.answer = ngx_max(p->usage.answer, answer);

    ngx_log_error(NGX_LOG_INFO, p->request->connection->log, 0,
                  "llm_proxied_usage: the answer %s, %uL tokens are estimated",
                  p->coded ? "is compressed, so its usage cannot be read"
                  : p->whole ? "has no usage" : "has broken off",
                  p->usage.prompt + p->usage.answer);
}


/* the request is over, before it is logged.  It does not count if somebody else
   has answered; a client that has left before an answer counts */

static void
ngx_http_llm_proxied_end(void *data)
{
    ngx_http_llm_proxied_t *p = data;

    ngx_uint_t             i;
    ngx_http_llm_claim_t  *c;

    if (p->answered && p->text && (!p->usage.found || !p->whole)) {
        ngx_http_llm_proxied_estimate(p);
    }

    if (p->bill == NULL) {
        return;
    }

    if (!p->answered && p->request->header_sent) {
        ngx_http_llm_bill_return(p->bill);
        return;
    }

    if (p->answered) {
        ngx_http_llm_bill_use(p->bill, p->usage.prompt, p->usage.cached,
                              p->usage.seconds);

        for (i = 0; i < p->bill->nshares; i++) {
            c = p->bill->shares[i].claim;

            if (c) {
                c->answer = ngx_min(p->usage.answer, LLM_QUOTA_MOST);
            }
        }
    }

    ngx_http_llm_bill_settle(p->bill);
}


static void
ngx_http_llm_proxied_cleanup(void *data)
{
    /* the handler only marks the record */
}
