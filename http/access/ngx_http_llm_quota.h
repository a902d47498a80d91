/*
 * Token quotas: what their files share.
 *
 *   ngx_http_llm_quota_conf.c     the module, llm_token_limit
 *   ngx_http_llm_quota_zone.c     llm_token_zone
 *   ngx_http_llm_accounts.c       its memory
 *   ngx_http_llm_account.c        accounts in it
 *   ngx_http_llm_claim.c          claims of live requests on them
 *   ngx_http_llm_quota_share.c    what limits are for a request
 *   ngx_http_llm_quota.c          what a request takes and gives back
 *   ngx_http_llm_quota_head.c     x-ratelimit-... headers
 *   ngx_http_llm_quota_refusal.c  refusals
 *   ngx_http_llm_usage.c          days and usage in a file: when
 *   ngx_http_llm_usage_copy.c     accounts as they are now, and what the file
 *                                 has
 *   ngx_http_llm_usage_sync.c     how they become one
 *
 * A zone has an account for each value of its key that was charged something.
 * A request that is being served has a claim on each of its accounts: what it
 * was charged, and what it has used of that so far.  When it ends, or its
 * worker dies, what was charged and not used goes back.
 */

#ifndef NGX_HTTP_LLM_QUOTA_H
#define NGX_HTTP_LLM_QUOTA_H


#include "http/conf/ngx_http_llm_conf.h"
#include "http/request/ngx_http_llm_body.h"
#include "http/request/ngx_http_llm_stage.h"


typedef struct ngx_http_llm_usage_s  ngx_http_llm_usage_t;


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


/*
 * What the file of usage had of an account when it was last written or read.
 * The account's figures beyond these are not in the file yet; what the file
 * has beyond these another nginx has written.
 */

typedef struct {
    uint32_t                     day;
    int64_t                      day_units;     /* used, not reserved */
    int64_t                      held;          /* reserved by this zone */
    int64_t                      others;        /* by others, as long as there
                                                   are any */
    uint64_t                     n_requests;
    uint64_t                     n_prompt;
    uint64_t                     n_cached;
    uint64_t                     n_answer;
} ngx_http_llm_known_t;


/* most bytes of an account's key */
#define NGX_HTTP_LLM_MAX_KEY     4096


typedef struct {
    ngx_rbtree_node_t            node;          /* its key: a hash */
    ngx_queue_t                  age;           /* the most recently used one
                                                   first */
    ngx_queue_t                  claims;        /* claim->same */
    ngx_http_llm_figures_t       n;
    ngx_http_llm_known_t        *known;         /* NULL: no file */
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
    uint64_t                     born;          /* of owner, whose pid may be
                                                   used again */
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
    ngx_queue_t                  room;          /* claim->all: free ones that
                                                   no account can take */
    u_char                      *room_start;
    u_char                      *room_end;
    ngx_uint_t                   changes;       /* for who writes the file */

    /* of the file of usage, under the lock of its folder */

    uint32_t                     id;            /* of this memory, among those
                                                   that have the file */
    uint32_t                     place;         /* hash of the file's path */
    ngx_uint_t                   moved;         /* there was another path when
                                                   figures were compared */
    llm_keys_id_t                file;          /* which one was written or
                                                   read last */
    ngx_uint_t                   beyond;        /* it has accounts that are not
                                                   in this memory */
    ngx_uint_t                   shared;        /* others had it, too */
    ngx_uint_t                   loose;         /* it may not outlive a power
                                                   failure yet */

    struct {
        ngx_http_llm_account_t  *account;       /* NULL: nothing is being
                                                   changed */
        ngx_http_llm_claim_t    *claim;         /* may be NULL */
        ngx_http_llm_figures_t   n;
        ngx_http_llm_known_t     known;
        int64_t                  charged;
    } undo;
} ngx_http_llm_accounts_t;


/* a llm_token_zone directive, in the cycle's pool */

typedef struct {
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
    uint32_t                     place;         /* its hash */
    int                          folder;        /* a process' own, which says
                                                   that it has the file; -1:
                                                   none */
    ngx_uint_t                   locked;        /* a process' own: the last try
                                                   to write at once did not
                                                   get the lock */
} ngx_http_llm_quota_t;


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

typedef struct {
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
} ngx_http_llm_share_t;


/* the module's configuration */

typedef struct {
    ngx_array_t                  quotas;        /* ngx_http_llm_quota_t * */
    ngx_array_t                  limits;        /* ngx_array_t *, of a location
                                                   each */
    ngx_http_llm_usage_t        *usage;         /* of worker 0; NULL: nothing
                                                   is written */
} ngx_http_llm_quotas_main_conf_t;


typedef struct {
    ngx_array_t                 *limits;        /* ngx_http_llm_limit_t; NULL:
                                                   none */
} ngx_http_llm_quotas_loc_conf_t;


/* all of them: the subject's data of a request, in r->pool */

typedef struct {
    ngx_http_llm_ctx_t          *ctx;
    ngx_http_llm_share_t        *shares;
    ngx_uint_t                   nshares;
    uint64_t                     answer_tokens; /* that were paid for */
    ngx_uint_t                   metered;       /* its tokens cost something */
} ngx_http_llm_bill_t;


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


extern ngx_module_t  ngx_http_llm_quotas_module;


/* ngx_http_llm_quota_zone.c */

char *ngx_http_llm_token_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* a parameter with this name; what stands behind it */
ngx_uint_t ngx_http_llm_is_param(ngx_str_t *value, const char *name,
    ngx_str_t *s);

/* ngx_http_llm_accounts.c */

/* a new zone's memory, or that of the previous configuration */
ngx_int_t ngx_http_llm_init_quota(ngx_shm_zone_t *shm_zone, void *data);

/* ngx_http_llm_account.c; all but the first two with the zone's lock held */

void ngx_http_llm_quota_lock(ngx_http_llm_quota_t *q);
void ngx_http_llm_quota_unlock(ngx_http_llm_quota_t *q);
/* NULL: there is none yet */
ngx_http_llm_account_t *ngx_http_llm_account_find(ngx_http_llm_quota_t *q,
    uint32_t hash, ngx_str_t *key);
/* one that was not there is made; others make room for it, or, if it is only
   `spare`, none does; NULL: no memory */
ngx_http_llm_account_t *ngx_http_llm_account_get(ngx_http_llm_quota_t *q,
    uint32_t hash, ngx_str_t *key, ngx_uint_t spare);
/* memory for which accounts make room, but for one; NULL: there is none */
void *ngx_http_llm_quota_alloc(ngx_http_llm_quota_t *q, size_t size,
    ngx_http_llm_account_t *keep);
/* before its figures, or what the claim was charged, change; claim may be
   NULL */
void ngx_http_llm_account_change(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a, ngx_http_llm_claim_t *claim);
/* they have changed; or only what is known of them */
void ngx_http_llm_account_done(ngx_http_llm_quota_t *q);
void ngx_http_llm_account_known(ngx_http_llm_quota_t *q);
/* what has left its buckets has left them; a day that is over, or lies in the
   future because a clock was set back, is today */
void ngx_http_llm_account_run(ngx_http_llm_account_t *a, uint64_t rate,
    uint64_t requests);
/* if nothing was ever charged it is as if it had not been there */
void ngx_http_llm_account_drop(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a);
uint32_t ngx_http_llm_today(void);

/* ngx_http_llm_claim.c; with the zone's lock held */

/* claims get room that no account can take; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_claim_init(ngx_http_llm_quota_t *q);
/* NULL: no memory */
ngx_http_llm_claim_t *ngx_http_llm_claim_create(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a);
/* what it has used, in units */
int64_t ngx_http_llm_claim_used(ngx_http_llm_quota_t *q,
    ngx_http_llm_claim_t *c);
/* charges it; negative: gives back */
void ngx_http_llm_claim_charge(ngx_http_llm_claim_t *c, int64_t units);
/* settles it, and frees it; its account may go, too */
void ngx_http_llm_claim_end(ngx_http_llm_quota_t *q, ngx_http_llm_claim_t *c);
/* gives back what claims of dead workers hold, of the account or, NULL, of
   all; the account stays */
void ngx_http_llm_account_sweep(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a);
/* how many requests are being served */
ngx_uint_t ngx_http_llm_account_streams(ngx_http_llm_account_t *a);
/* what its live requests were charged today and have not used */
int64_t ngx_http_llm_account_held(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a);

/* ngx_http_llm_usage.c */

/* this worker has the files from now on */
void ngx_http_llm_usage_attach(ngx_http_llm_quotas_main_conf_t *qmcf);
/* worker 0 begins to write files of usage, and ends */
ngx_int_t ngx_http_llm_usage_init(ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_quotas_main_conf_t *qmcf, ngx_log_t *log);
void ngx_http_llm_usage_stop(ngx_http_llm_quotas_main_conf_t *qmcf);
/* what the zone's file says, if there is one */
void ngx_http_llm_usage_load(ngx_http_llm_quota_t *q, ngx_log_t *log);
/* where others have the file, too, all is in it that was charged, and all is
   known that they were, if it is small enough to be read at once */
void ngx_http_llm_usage_share(ngx_http_llm_quota_t *q);

/* ngx_http_llm_usage_copy.c */

/* an account that was copied; its key is behind it, then room to align */

typedef struct {
    ngx_http_llm_figures_t       n;             /* day_units: used */
    int64_t                      held;          /* by all */
    uint32_t                     hash;
    size_t                       len;
    u_char                       key[];
} ngx_http_llm_copied_t;

/* one of the file */

typedef struct {
    uint32_t                     hash;
    size_t                       key;           /* offset in keys */
    size_t                       len;
    llm_usage_t                  u;             /* but for its key */
    ngx_uint_t                   seen;          /* it is in the zone, too */
} ngx_http_llm_line_t;

/* the file, its accounts in the order of the zone's */

typedef struct {
    ngx_http_llm_line_t         *lines;
    size_t                       n;
    size_t                       cap;
    size_t                       next;          /* line to be looked at */
    llm_buf_t                    keys;
    ngx_uint_t                   read;          /* 0: it is the one that this
                                                   zone has written */
    ngx_uint_t                   there;         /* there is a file */
    ngx_uint_t                   shared;        /* others have it, too */
    ngx_uint_t                   news;          /* the zone has what the file
                                                   has not */
    ngx_uint_t                   undo;          /* it was not written */
} ngx_http_llm_merge_t;

/* bytes of accounts that are copied under one lock */
#define NGX_HTTP_LLM_USAGE_CHUNK  32768

/* most bytes of a file of usage that is read in the event loop */
#define NGX_HTTP_LLM_USAGE_SMALL  65536

/* as many accounts as a chunk holds, those behind the last one or, NULL, the
   first ones; m: they are compared with the file, or NULL; the bytes, 0: there
   is no other */
size_t ngx_http_llm_usage_copy(ngx_http_llm_quota_t *q,
    ngx_http_llm_copied_t *last, u_char *chunk, ngx_http_llm_merge_t *m);
/* figures of one that the file alone has become the zone's */
void ngx_http_llm_usage_take(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a, llm_usage_t *u, ngx_uint_t shared);
/* one that has used nothing need not be in a file */
ngx_uint_t ngx_http_llm_usage_is_empty(const llm_usage_t *u);
/* writes what was copied, with something between accounts if it is not NULL,
   and what is reserved, if `held`; their number, `most` at most; *last is the
   last one */
ngx_uint_t ngx_http_llm_usage_add(u_char *chunk, size_t len, ngx_uint_t most,
    const char *between, ngx_uint_t held, ngx_http_llm_copied_t *last,
    llm_buf_t *out);
/* writes accounts with commas between them, `most` at most: those behind the
   one of `after`, or, data NULL, the first ones; their number, and the last
   one's key, which has room for NGX_HTTP_LLM_MAX_KEY; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_usage_page(ngx_http_llm_quota_t *q, ngx_str_t *after,
    ngx_uint_t most, llm_buf_t *out, ngx_str_t *key);

/* ngx_http_llm_usage_sync.c */

/* reads what others have written and writes what they do not know, in any
   thread; at_once: in the event loop, which does not wait for the disk */
int ngx_http_llm_usage_sync(ngx_http_llm_quota_t *q, ngx_uint_t at_once,
    llm_err_t *err);
/* this process has the file from now on */
void ngx_http_llm_usage_open(ngx_http_llm_quota_t *q);
/* has any process the file whose zone is in another memory? */
ngx_uint_t ngx_http_llm_usage_shared(ngx_http_llm_quota_t *q);

/* ngx_http_llm_quota.c */

extern ngx_http_llm_stage_t  ngx_http_llm_quota_stage;
/* ngx_http_llm_quota_share.c */

/* what each limit of the location is for this request; NGX_ERROR: no memory,
   or see *no */
ngx_int_t ngx_http_llm_quota_shares(ngx_http_request_t *r,
    ngx_array_t *limits, ngx_http_llm_share_t **shares, ngx_uint_t *n,
    ngx_http_llm_refusal_t *no);
/* the account as it is now */
void ngx_http_llm_quota_run(ngx_http_llm_share_t *s,
    ngx_http_llm_account_t *a);
/* Does the account lack what a request wants?  One that begins wants to count
   as a request, and that there is no debt.  Says the first thing that lacks. */
ngx_uint_t ngx_http_llm_quota_short(ngx_http_llm_share_t *s,
    ngx_http_llm_account_t *a, ngx_uint_t begins, int64_t wanted,
    ngx_http_llm_refusal_t *no);
/* likewise, one that begins; what dead workers hold comes back if it would be
   refused */
ngx_uint_t ngx_http_llm_quota_lacks(ngx_http_llm_share_t *s,
    ngx_http_llm_account_t *a, ngx_http_llm_refusal_t *no);

/* ngx_http_llm_quota_head.c */

/* x-ratelimit-... */
extern ngx_http_llm_stage_t  ngx_http_llm_quota_head_stage;

/* ngx_http_llm_quota_refusal.c */

/* logs a refusal; 0: it is a dry run */
ngx_uint_t ngx_http_llm_quota_enforced(ngx_http_llm_ctx_t *ctx,
    ngx_http_llm_refusal_t *no);
/* the error of a refusal; sets when ctx's client is to try again */
void ngx_http_llm_quota_refuse(ngx_http_llm_ctx_t *ctx,
    ngx_http_llm_refusal_t *no, llm_err_t *err);


#endif /* NGX_HTTP_LLM_QUOTA_H */
