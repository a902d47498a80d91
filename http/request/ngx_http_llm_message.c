/*
 * The end of a request's message: a message that was not sent owns blocks of
 * the memory for media.  All of this runs in the event loop.
 */

#include "http/conf/ngx_http_llm_conf.h"
#include "http/request/ngx_http_llm_body.h"


static void ngx_http_llm_drop_media(void *data);


/* blocks that were sent are not in the message any more */

void
ngx_http_llm_free_message(ngx_http_llm_body_t *body)
{
    if (body->media) {
        body->media = 0;
        llm_media_release(body->ctx->main->zone, body->conf.holder,
                          (llm_request_t *) body->msg.data);
    }

    llm_buf_free(&body->msg);
}


/* the request may end while it waits for something */

ngx_int_t
ngx_http_llm_keep_media(ngx_http_llm_body_t *body)
{
    ngx_http_cleanup_t  *cln;

    if (!body->media) {
        return NGX_OK;
    }

    cln = ngx_http_cleanup_add(body->ctx->request, 0);

    if (cln == NULL) {
        ngx_http_llm_free_message(body);
        llm_fail(&body->err, "No memory is left for this request.");
        return NGX_ERROR;
    }

    cln->handler = ngx_http_llm_drop_media;
    cln->data = body;
    body->brief = 0;

    return NGX_OK;
}


static void
ngx_http_llm_drop_media(void *data)
{
    ngx_http_llm_body_t *body = data;

    if (body->media) {
        ngx_http_llm_free_message(body);
    }
}
