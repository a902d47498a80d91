/*
 * What is known of how a request went.
 */

#ifndef NGX_HTTP_LLM_OUTCOME_H
#define NGX_HTTP_LLM_OUTCOME_H


#include "http/request/ngx_http_llm_request.h"


/* the state of a request to a llm_api location, the last one that it came to,
   or NULL */
ngx_http_llm_ctx_t *ngx_http_llm_find_ctx(ngx_http_request_t *r);

/* microseconds from a request's arrival to its first token, 0: it had none, and
   to its latest one or its end */
void ngx_http_llm_times(ngx_http_llm_ctx_t *ctx, uint64_t *ttft,
    uint64_t *total);
/* and for each further token */
#define NGX_HTTP_LLM_NO_TPOT  UINT64_MAX
uint64_t ngx_http_llm_tpot(ngx_http_llm_ctx_t *ctx);

/* of the first choice; a request that began and did not end was aborted; NULL:
   there is none yet */
const char *ngx_http_llm_finish_reason(ngx_http_llm_ctx_t *ctx);


#endif /* NGX_HTTP_LLM_OUTCOME_H */
