/*
 * Why a request failed, for logs: in a word ($llm_error), and as a line of the
 * error log.  Neither contains text from the client.  The messages of errors
 * below 500 may quote values, keys of objects and places in texts, so only the
 * client gets them.
 */

#include "http/reply/ngx_http_llm_reply.h"


static void ngx_http_llm_reply_cleanup(void *data);
static void ngx_http_llm_cause_cleanup(void *data);


ngx_http_llm_reply_t *
ngx_http_llm_create_reply(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_llm_reply_t));
    if (cln == NULL) {
        return NULL;
    }

    cln->handler = ngx_http_llm_reply_cleanup;
    ngx_memzero(cln->data, sizeof(ngx_http_llm_reply_t));

    ngx_http_set_ctx(r, cln->data, ngx_http_llm_filter_module);

    return cln->data;
}


ngx_http_llm_reply_t *
ngx_http_llm_get_reply(ngx_http_request_t *r)
{
    return ngx_http_get_module_ctx(r, ngx_http_llm_filter_module);
}


void *
ngx_http_llm_find_record(ngx_http_request_t *r, ngx_pool_cleanup_pt handler)
{
    ngx_pool_cleanup_t  *cln;

    for (cln = r->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == handler) {
            return cln->data;
        }
    }

    return NULL;
}


static void
ngx_http_llm_reply_cleanup(void *data)
{
    /* the pool frees the record, which is found by this handler */
}


static void
ngx_http_llm_cause_cleanup(void *data)
{
    /* the same for a record that has nothing but the cause */
}


/* a request that is refused before it reaches its handler gets a record with
   nothing but the cause */

void
ngx_http_llm_set_cause(ngx_http_request_t *r, const llm_err_t *err)
{
    ngx_str_t              word;
    ngx_pool_cleanup_t    *cln;
    ngx_http_llm_reply_t  *reply;

    reply = ngx_http_llm_get_reply(r);

    if (reply == NULL) {
        cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_llm_reply_t));
        if (cln == NULL) {
            return;
        }

        cln->handler = ngx_http_llm_cause_cleanup;
        reply = cln->data;
        ngx_memzero(reply, sizeof(ngx_http_llm_reply_t));
    }

    word.data = (u_char *) llm_api_error_word(err);
    word.len = ngx_strlen(word.data);

    reply->cause.data = ngx_pstrdup(r->pool, &word);
    reply->cause.len = reply->cause.data ? word.len : 0;
}


ngx_str_t
ngx_http_llm_cause(ngx_http_request_t *r)
{
    ngx_str_t              none = ngx_null_string;
    ngx_http_llm_reply_t  *reply;

    reply = ngx_http_llm_get_reply(r->main);

    if (reply == NULL && r->main->internal) {
        reply = ngx_http_llm_find_record(r, ngx_http_llm_reply_cleanup);
    }

    if (reply == NULL) {
        reply = ngx_http_llm_find_record(r, ngx_http_llm_cause_cleanup);
    }

    return reply ? reply->cause : none;
}


/* only the first name of a parameter is logged, because what follows may be a
   key from the client.  A 500 with a code comes from a chat template, whose
   message may quote the client, so only the code is logged. */

void
ngx_http_llm_log_error(ngx_http_request_t *r, const llm_err_t *err)
{
    size_t       len;
    ngx_log_t   *log;
    ngx_uint_t   level;

    log = r->connection->log;
    level = (err->status < 500) ? NGX_LOG_INFO : NGX_LOG_WARN;

    if (err->status > 500 || (err->status == 500 && *err->code == '\0')) {
        ngx_log_error(level, log, 0, "llm: %d: %s", err->status, err->msg);
        return;
    }

    len = strcspn(err->param, ".[' ");

    ngx_log_error(level, log, 0,
                  len ? "llm: %d: %s in \"%*s\"" : "llm: %d: %s",
                  err->status, llm_api_error_word(err), len, err->param);
}
