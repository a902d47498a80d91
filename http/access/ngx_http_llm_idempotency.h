/*
 * llm_idempotency: a request that is sent again gets the first answer.
 *
 *   ngx_http_llm_idempotency.c  what a request does
 *   ngx_http_llm_idem_conf.c    the module, the directive
 *   ngx_http_llm_store.c        answers in shared memory
 */

#ifndef NGX_HTTP_LLM_IDEMPOTENCY_H
#define NGX_HTTP_LLM_IDEMPOTENCY_H


#include "http/conf/ngx_http_llm_conf.h"
#include "http/request/ngx_http_llm_stage.h"


typedef struct ngx_http_llm_entry_s  ngx_http_llm_entry_t;
typedef struct ngx_http_llm_page_s  ngx_http_llm_page_t;


/* the answer of a request with an Idempotency-Key, in shared memory */

struct ngx_http_llm_entry_s {
    ngx_queue_t                  bucket;
    ngx_queue_t                  age;           /* in the list of all entries,
                                                   oldest first */
    u_char                       key[16];       /* digest of client and
                                                   Idempotency-Key */
    u_char                       digest[16];    /* of the request */
    time_t                       until;         /* end of validity, once
                                                   complete */
    ngx_pid_t                    owner;         /* 0: the answer is complete */
    uint64_t                     born;          /* start time of owner, whose
                                                   pid may be used again */
    size_t                       len;           /* bytes of the answer */
    ngx_http_llm_page_t         *first;
    ngx_http_llm_page_t         *last;
};


/* the module's configuration */

typedef struct {
    size_t                       size;          /* 0: off */
    time_t                       valid;         /* seconds */
    ngx_int_t                    header;        /* index of
                                                   $http_idempotency_key */
    ngx_shm_zone_t              *zone;          /* data: the store of answers;
                                                   NULL: off */
} ngx_http_llm_idem_conf_t;


extern ngx_module_t  ngx_http_llm_idempotency_module;


/* ngx_http_llm_store.c; all but the first with the store's lock held */

ngx_int_t ngx_http_llm_init_store(ngx_shm_zone_t *shm_zone, void *data);
/* the valid entry of this key, or NULL; removes an expired or abandoned one */
ngx_http_llm_entry_t *ngx_http_llm_store_find(ngx_shm_zone_t *zone,
    u_char *key);
/* makes an entry owned by this process; NULL: there is no room */
ngx_http_llm_entry_t *ngx_http_llm_store_create(ngx_shm_zone_t *zone,
    u_char *key, u_char *digest);
/* NGX_ERROR: the answer is too large, or there is no room */
ngx_int_t ngx_http_llm_store_append(ngx_shm_zone_t *zone,
    ngx_http_llm_entry_t *e, const char *data, size_t len);
void ngx_http_llm_store_remove(ngx_shm_zone_t *zone,
    ngx_http_llm_entry_t *e);
/* appends the answer to a buffer */
void ngx_http_llm_store_copy(ngx_http_llm_entry_t *e, llm_buf_t *to);


/* ngx_http_llm_idempotency.c */

extern ngx_http_llm_stage_t  ngx_http_llm_idem_stage;


#endif /* NGX_HTTP_LLM_IDEMPOTENCY_H */
