/*
 * Token quotas: what their files share.
 *
 *   ngx_http_llm_quota_conf.c  llm_token_zone, llm_token_limit
 *   ngx_http_llm_account.c     accounts and claims in shared memory
 *   ngx_http_llm_quota.c       what a request takes and gives back
 *   ngx_http_llm_quota_head.c  x-ratelimit-... headers, refusals
 *   ngx_http_llm_usage.c       days and usage in a file
 *
 * A zone has an account for each value of its key.  A request that is being
 * served has a claim on each of its accounts: what it was charged, and what it
 * has used of that so far.  When it ends, or its worker dies, what was charged
 * and not used goes back.
 */

#ifndef NGX_HTTP_LLM_QUOTA_H
#define NGX_HTTP_LLM_QUOTA_H


#include "http/ngx_http_llm_module.h"


/* figures of an account */

typedef struct {
    llm_bucket_t                 tokens;
    llm_bucket_t                 requests;
    uint32_t                     day;           /* since 1970, UTC */
    int64_t                      day_units;     /* taken on that day */
    uint64_t                     n_requests;    /* since ever; as these: */
    uint64_t                     n_prompt;
    uint64_t                     n_cached;
    uint64_t                     n_answer;
} ngx_http_llm_figures_t;


/* most bytes of an account's key */
#define NGX_HTTP_LLM_MAX_KEY     4096


typedef struct {
    ngx_rbtree_node_t            node;          /* its key: a hash */
    ngx_queue_t                  age;           /* the most recently used one
                                                   first */
    ngx_queue_t                  claims;        /* claim->same */
    ngx_http_llm_figures_t       n;
    size_t                       len;
    u_char                       key[];
} ngx_http_llm_account_t;


/*
 * The claim of a live request.  Its owner writes all of it; what is used is
 * counted without the lock, for others read it only when the owner is dead.
 */

typedef struct {
    ngx_queue_t                  all;           /* in the zone */
    ngx_queue_t                  same;          /* in the account */
    ngx_http_llm_account_t      *account;
    ngx_pid_t                    owner;
    uint32_t                     day;           /* on which it was charged */
    int64_t                      charged;       /* units */
    ngx_uint_t                   started;
    uint32_t                     prompt;        /* tokens used: nothing before
                                                   the request began to run */
    uint32_t                     cached;        /* of these */
    uint64_t                     answer;
} ngx_http_llm_claim_t;


/*
 * In shared memory, under the slab pool's lock.  An account is changed under
 * `undo`: if the lock's holder dies meanwhile, the next one finds the figures
 * there as they were.
 */

typedef struct {
    ngx_rbtree_t                 tree;
    ngx_rbtree_node_t            sentinel;
    ngx_queue_t                  age;
    ngx_queue_t                  claims;
    ngx_uint_t                   changes;       /* for who writes the file */
    ngx_uint_t                   bad_file;      /* it could not be used, and is
                                                   to be kept */

    struct {
        ngx_http_llm_account_t  *account;       /* NULL: nothing is being
                                                   changed */
        ngx_http_llm_claim_t    *claim;         /* may be NULL */
        ngx_http_llm_figures_t   n;
        int64_t                  charged;
    } undo;
} ngx_http_llm_accounts_t;


/* a llm_token_zone directive, in the cycle's pool */

struct ngx_http_llm_quota_s {
    ngx_shm_zone_t              *shm_zone;      /* data: this */
    ngx_slab_pool_t             *shpool;
    ngx_http_llm_accounts_t     *sh;
    ngx_uint_t                   order;         /* in which zones are locked */

    ngx_http_complex_value_t     key;
    ngx_http_llm_amount_t        rate;
    ngx_http_llm_amount_t        day;
    ngx_http_llm_amount_t        requests;
    ngx_http_llm_amount_t        streams;
    unsigned                     in:1;          /* prompts count */
    unsigned                     out:1;         /* answers do */
    ngx_int_t                    cached;        /* 1/1000 that a cached token
                                                   of a prompt counts */
    ngx_str_t                    state;         /* full, NUL-terminated; len 0:
                                                   none */
};


/* a llm_token_limit directive */

typedef struct {
    ngx_str_t                    zone;
    ngx_http_llm_quota_t        *quota;
    ngx_str_t                    file;
    ngx_uint_t                   line;
    ngx_http_llm_amount_t        burst;
    uint64_t                     reserve;       /* tokens */
    unsigned                     dry_run:1;
} ngx_http_llm_limit_t;


/* what a limit is for a request: in r->pool */

struct ngx_http_llm_share_s {
    ngx_http_llm_limit_t        *limit;
    ngx_str_t                    key;
    uint32_t                     hash;
    llm_rate_t                   rate;
    llm_rate_t                   requests;
    int64_t                      burst;         /* units; -1 of these: no such
                                                   limit */
    int64_t                      most_requests; /* units */
    int64_t                      day;           /* units */
    int64_t                      streams;
    ngx_http_llm_claim_t        *claim;         /* NULL: not yet, or no more */
};


typedef enum {
    NGX_HTTP_LLM_SHORT_NONE = 0,
    NGX_HTTP_LLM_SHORT_TOKENS,
    NGX_HTTP_LLM_SHORT_DAY,
    NGX_HTTP_LLM_SHORT_REQUESTS,
    NGX_HTTP_LLM_SHORT_STREAMS,
    NGX_HTTP_LLM_SHORT_MEMORY,
    NGX_HTTP_LLM_SHORT_VALUE
} ngx_http_llm_short_e;


/* why a request is refused */

typedef struct {
    ngx_http_llm_short_e         what;
    ngx_http_llm_share_t        *share;
    int64_t                      wanted;        /* units */
    int64_t                      left;
    uint64_t                     wait_us;       /* UINT64_MAX: no use */
} ngx_http_llm_refusal_t;


/* ngx_http_llm_account.c; all but the first two with the zone's lock held */

void ngx_http_llm_quota_lock(ngx_http_llm_quota_t *q);
void ngx_http_llm_quota_unlock(ngx_http_llm_quota_t *q);
/* NULL: there is none yet */
ngx_http_llm_account_t *ngx_http_llm_account_find(ngx_http_llm_quota_t *q,
    uint32_t hash, ngx_str_t *key);
/* NULL: no memory */
ngx_http_llm_account_t *ngx_http_llm_account_get(ngx_http_llm_quota_t *q,
    uint32_t hash, ngx_str_t *key);
/* before its figures, or what the claim was charged, change; claim may be
   NULL */
void ngx_http_llm_account_change(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a, ngx_http_llm_claim_t *claim);
/* they have changed */
void ngx_http_llm_account_done(ngx_http_llm_quota_t *q);
/* gives back what claims of dead workers hold, of the account or, NULL, of
   all */
void ngx_http_llm_account_sweep(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a);
/* how many requests are being served */
ngx_uint_t ngx_http_llm_account_streams(ngx_http_llm_account_t *a);
/* NULL: no memory */
ngx_http_llm_claim_t *ngx_http_llm_claim_create(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a);
/* what it has used, in units */
int64_t ngx_http_llm_claim_used(ngx_http_llm_quota_t *q,
    ngx_http_llm_claim_t *c);
/* charges it; negative: gives back */
void ngx_http_llm_claim_charge(ngx_http_llm_claim_t *c, int64_t units);
/* settles it, and frees it */
void ngx_http_llm_claim_end(ngx_http_llm_quota_t *q, ngx_http_llm_claim_t *c);
/* a new zone's memory, or that of the previous configuration */
ngx_int_t ngx_http_llm_init_quota(ngx_shm_zone_t *shm_zone, void *data);

/* ngx_http_llm_usage.c */

/* what the zone's file says, if there is one */
void ngx_http_llm_usage_load(ngx_http_llm_quota_t *q, ngx_log_t *log);
/* writes accounts with commas between them, `most` at most: those behind the
   one of `after`, or, data NULL, the first ones; their number, and the last
   one's key, which has room for NGX_HTTP_LLM_MAX_KEY; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_usage_page(ngx_http_llm_quota_t *q, ngx_str_t *after,
    ngx_uint_t most, llm_buf_t *out, ngx_str_t *key);

/* ngx_http_llm_quota.c */

/* what each limit of the location is for this request; NGX_ERROR: no memory,
   or see *no */
ngx_int_t ngx_http_llm_quota_shares(ngx_http_request_t *r,
    ngx_array_t *limits, ngx_http_llm_share_t **shares, ngx_uint_t *n,
    ngx_http_llm_refusal_t *no);
/* the account as it is now: what has left its buckets has left them */
void ngx_http_llm_quota_run(ngx_http_llm_share_t *s,
    ngx_http_llm_account_t *a);

/* ngx_http_llm_quota_head.c */

/* logs a refusal; 0: it is a dry run */
ngx_uint_t ngx_http_llm_quota_enforced(ngx_http_llm_ctx_t *ctx,
    ngx_http_llm_refusal_t *no);
/* the error of a refusal; sets when ctx's client is to try again */
void ngx_http_llm_quota_refuse(ngx_http_llm_ctx_t *ctx,
    ngx_http_llm_refusal_t *no, llm_err_t *err);


#endif /* NGX_HTTP_LLM_QUOTA_H */
