/*
 * The outcome of a request, as far as it is known.
 */

#ifndef NGX_HTTP_LLM_OUTCOME_H
#define NGX_HTTP_LLM_OUTCOME_H


#include "http/request/ngx_http_llm_request.h"


/* microseconds from a request's arrival to its first token, 0: none; and to its
   latest token, or its end */
void ngx_http_llm_times(ngx_http_llm_ctx_t *ctx, uint64_t *ttft,
    uint64_t *total);
/* microseconds for each token after the first; NGX_HTTP_LLM_NO_TPOT: fewer than
   two tokens */
#define NGX_HTTP_LLM_NO_TPOT  UINT64_MAX
uint64_t ngx_http_llm_tpot(ngx_http_llm_ctx_t *ctx);

/* finish reason of the first choice, "abort" for a request that began and did
   not end; NULL: none yet */
const char *ngx_http_llm_finish_reason(ngx_http_llm_ctx_t *ctx);


#endif /* NGX_HTTP_LLM_OUTCOME_H */
