/*
 * post_action: nginx sends a request that has ended, or whose client has left,
 * on to another location, and runs its cleanups when it has ended there, too.
 * What it still has of the engine, or waits for, would come back meanwhile to
 * a request that is elsewhere; so it ends here, as it comes there.
 */

#include "http/admin/ngx_http_llm_admin.h"


/* in the rewrite phase: the handler of a module that is loaded last is called
   first, so before the location may answer by "return" */

ngx_int_t
ngx_http_llm_after_handler(ngx_http_request_t *r)
{
    ngx_http_cleanup_t  *cln;

    if (!r->post_action || r != r->main) {
        return NGX_DECLINED;
    }

    for (cln = r->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_llm_cleanup
            || cln->handler == ngx_http_llm_admin_cleanup)
        {
            cln->handler(cln->data);
            cln->handler = NULL;
        }
    }

    return NGX_DECLINED;
}
