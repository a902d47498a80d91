/*
 * post_action: nginx passes a request that has ended, or whose client has left,
 * to another location, and runs the request's cleanups only at its end there.
 * Pending events of the engine, timers and threads would reach a request that
 * post_action has moved on, so they are detached here.
 */

#include "http/request/ngx_http_llm_request.h"


/* called in the rewrite phase before the location may answer by "return",
   because handlers of modules that are loaded last are called first */

ngx_int_t
ngx_http_llm_post_action_handler(ngx_http_request_t *r)
{
    ngx_http_llm_detach(r, ngx_http_llm_cleanup);

    return NGX_DECLINED;
}


void
ngx_http_llm_detach(ngx_http_request_t *r, ngx_http_cleanup_pt cleanup)
{
    ngx_http_cleanup_t  *cln;

    if (!r->post_action || r != r->main) {
        return;
    }

    for (cln = r->cleanup; cln; cln = cln->next) {
        if (cln->handler == cleanup) {
            cln->handler(cln->data);
            cln->handler = NULL;
        }
    }
}
