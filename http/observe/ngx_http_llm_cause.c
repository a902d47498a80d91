/*
 * Why a request failed, for logs: in a word ($llm_error), and as a line of the
 * error log.  What a client has sent is in neither: messages of errors name
 * values, keys of objects and places in texts, so those below 500 are for the
 * client alone.
 */

#include "http/ngx_http_llm_module.h"


static void ngx_http_llm_cause_cleanup(void *data);


/* a request that was refused before it had a state keeps it in r->pool */

void
ngx_http_llm_set_cause(ngx_http_request_t *r, const llm_err_t *err)
{
    ngx_str_t            word, *to;
    ngx_pool_cleanup_t  *cln;
    ngx_http_llm_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_llm_module);
    to = ctx ? &ctx->cause : NULL;

    if (to == NULL) {
        cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_str_t));
        if (cln == NULL) {
            return;
        }

        cln->handler = ngx_http_llm_cause_cleanup;
        to = cln->data;
        ngx_str_null(to);
    }

    word.data = (u_char *) llm_api_error_word(err);
    word.len = ngx_strlen(word.data);

    to->data = ngx_pstrdup(r->pool, &word);
    to->len = to->data ? word.len : 0;
}


ngx_str_t
ngx_http_llm_cause(ngx_http_request_t *r)
{
    ngx_str_t            none = ngx_null_string;
    ngx_pool_cleanup_t  *cln;
    ngx_http_llm_ctx_t  *ctx;

    ctx = ngx_http_llm_find_ctx(r);

    if (ctx) {
        return ctx->cause;
    }

    for (cln = r->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_llm_cause_cleanup) {
            return *(ngx_str_t *) cln->data;
        }
    }

    return none;
}


static void
ngx_http_llm_cause_cleanup(void *data)
{
    /* nothing to be done: the pool frees it */
}


/* of a parameter its first name alone: what follows may be a key of the
   client's; a chat template may say what it likes */

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
