/*
 * Token quotas: what their files share.
 *
 *   ngx_http_llm_quota_conf.c     the module, llm_token_limit
 *   ngx_http_llm_quota_zone.c     llm_token_zone
 *   ngx_http_llm_accounts.c       memory of a zone
 *   ngx_http_llm_account.c        accounts in it
 *   ngx_http_llm_claim.c          claims of live requests on accounts
 *   ngx_http_llm_quota_share.c    limits of a request
 *   ngx_http_llm_bill.c           limits and claims of a request
 *   ngx_http_llm_quota.c          what a request is charged, and gets back
 *   ngx_http_llm_proxied.c        answers of other servers
 *   ngx_http_llm_quota_head.c     x-ratelimit-... headers
 *   ngx_http_llm_quota_refusal.c  refusals
 *   ngx_http_llm_usage.c          usage files: when they are written
 *   ngx_http_llm_usage_copy.c     copies of accounts, compared with the file
 *   ngx_http_llm_usage_sync.c     reading, merging and writing the file
 *
 * A zone has an account for each value of its key that was charged something.
 * A live request has a claim on each of its accounts: what the request was
 * charged, and what it has used of that.  When it ends, or its worker dies,
 * what was charged and not used goes back.
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
    uint32_t                     day;           /* days since 1970, UTC */
    int64_t                      day_units;     /* units used on that day */
    uint64_t                     n_requests;    /* totals, as the next three */
    uint64_t                     n_prompt;
    uint64_t                     n_cached;
    uint64_t                     n_answer;
} ngx_http_llm_figures_t;


/*
 * What the usage file had of an account when it was last written or read.  What
 * the account's figures have beyond these is not in the file yet; what the file
 * has beyond these was written by another nginx.
 */

typedef struct {
    uint32_t                     day;
    int64_t                      day_units;     /* used, not reserved */
    int64_t                      held;          /* units reserved by this
                                                   zone */
    int64_t                      others;        /* units reserved by other
                                                   processes while they live */
    uint64_t                     n_requests;
    uint64_t                     n_prompt;
    uint64_t                     n_cached;
    uint64_t                     n_answer;
} ngx_http_llm_known_t;


/* most bytes of an account's key */
#define NGX_HTTP_LLM_MAX_KEY     4096


typedef struct {
    ngx_rbtree_node_t            node;          /* node.key: hash of the key */
    ngx_queue_t                  age;           /* most recently used first */
    ngx_queue_t                  claims;        /* claim->same */
    ngx_http_llm_figures_t       n;
    ngx_http_llm_known_t        *known;         /* NULL: no usage file */
    size_t                       len;
    u_char                       key[];
} ngx_http_llm_account_t;


/*
 * The claim of a live request.  Only its owner writes it, and counts usage
 * without the lock: a claim is settled by its owner, or when the owner is dead.
 * Only ngx_http_llm_account_held() reads the usage while it may change.
 */

typedef struct {
    ngx_queue_t                  all;           /* in the zone's list */
    ngx_queue_t                  same;          /* in the account's list */
    ngx_http_llm_account_t      *account;
    ngx_pid_t                    owner;
    uint64_t                     born;          /* start time of owner, whose
                                                   pid may be used again */
    uint32_t                     day;           /* on which it was charged */
    int64_t                      charged;       /* units */
    ngx_uint_t                   started;
    uint32_t                     prompt;        /* tokens used; 0 until the
                                                   request runs */
    uint32_t                     cached;        /* part of prompt */
    uint64_t                     answer;        /* tokens */
    uint32_t                     seconds;       /* of audio */
} ngx_http_llm_claim_t;


/*
 * In shared memory, under the slab pool's lock.  Before an account changes, its
 * figures are saved in `undo`: if the lock's holder dies during the change, the
 * next holder restores them.
 */

typedef struct {
    ngx_rbtree_t                 tree;
    ngx_rbtree_node_t            sentinel;
    ngx_queue_t                  age;
    ngx_queue_t                  claims;
    ngx_queue_t                  room;          /* free claims, in memory that
                                                   accounts cannot take */
    u_char                      *room_start;
    u_char                      *room_end;
    ngx_uint_t                   changes;       /* counter, for the writer of
                                                   the file */

    /* about the usage file, under the lock of its folder */

    uint32_t                     id;            /* of this memory, among those
                                                   that use the file */
    uint32_t                     place;         /* hash of the file's path */
    ngx_uint_t                   moved;         /* 1: the path has changed since
                                                   the last comparison */
    llm_keys_id_t                file;          /* file that was written or read
                                                   last */
    ngx_uint_t                   beyond;        /* 1: the file has accounts that
                                                   are not in this memory */
    ngx_uint_t                   shared;        /* 1: other processes used it,
                                                   too */
    ngx_uint_t                   loose;         /* 1: it may not survive a power
                                                   failure yet */

    struct {
        ngx_http_llm_account_t  *account;       /* NULL: no change is in
                                                   progress */
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
    ngx_uint_t                   order;         /* position in the order in
                                                   which zones are locked */

    ngx_http_complex_value_t     key;
    ngx_http_llm_amount_t        rate;
    ngx_http_llm_amount_t        day;
    ngx_http_llm_amount_t        requests;
    ngx_http_llm_amount_t        streams;
    unsigned                     in:1;          /* prompts count */
    unsigned                     out:1;         /* answers count */
    unsigned                     audio:1;       /* seconds of audio count, and
                                                   no tokens */
    ngx_int_t                    cached;        /* price of a cached prompt
                                                   token, in 1/1000 */
    ngx_str_t                    state;         /* full path, NUL-terminated;
                                                   len 0: no file */
    uint32_t                     place;         /* hash of state */
    int                          folder;        /* of each process: descriptor
                                                   whose lock says that the
                                                   process uses the file; -1:
                                                   none */
    ngx_uint_t                   locked;        /* of each process: 1 if the
                                                   last write in the event loop
                                                   did not get the lock */
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


/* a limit with the request's values, in r->pool */

typedef struct {
    ngx_http_llm_limit_t        *limit;
    ngx_str_t                    key;
    uint32_t                     hash;
    llm_rate_t                   rate;
    llm_rate_t                   requests;
    int64_t                      burst;         /* units, as the next two; -1:
                                                   no such limit */
    int64_t                      most_requests;
    int64_t                      day;
    int64_t                      streams;       /* -1: no such limit */
    int64_t                      least;         /* units that must be left
                                                   before a request is
                                                   parsed */
    ngx_http_llm_claim_t        *claim;         /* NULL: not made yet, or
                                                   ended */
} ngx_http_llm_share_t;


/* the module's configuration */

typedef struct {
    ngx_array_t                  quotas;        /* ngx_http_llm_quota_t * */
    ngx_array_t                  limits;        /* ngx_array_t *, one per
                                                   location */
    ngx_http_llm_usage_t        *usage;         /* of worker 0; NULL: no file is
                                                   written */
} ngx_http_llm_quotas_main_conf_t;


typedef struct {
    ngx_array_t                 *limits;        /* ngx_http_llm_limit_t; NULL:
                                                   none */
    ngx_flag_t                   proxied;       /* llm_proxied_usage */
} ngx_http_llm_quotas_loc_conf_t;


/* all limits of a request, in r->pool */

typedef struct {
    ngx_http_request_t          *request;
    ngx_http_llm_reply_t        *reply;
    ngx_http_llm_share_t        *shares;
    ngx_uint_t                   nshares;
    uint64_t                     answer_tokens; /* answer tokens that were
                                                   counted */
    ngx_uint_t                   metered;       /* 1: the request's tokens are
                                                   charged */
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
    uint64_t                     wait_us;       /* UINT64_MAX: waiting is
                                                   useless */
} ngx_http_llm_refusal_t;


extern ngx_module_t  ngx_http_llm_quotas_module;


/* ngx_http_llm_quota_zone.c */

char *ngx_http_llm_token_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* is this the parameter `name`?  *s gets the text after it */
ngx_uint_t ngx_http_llm_is_param(ngx_str_t *value, const char *name,
    ngx_str_t *s);

/* ngx_http_llm_accounts.c */

/* uses a new zone's memory, or that of the previous configuration */
ngx_int_t ngx_http_llm_init_quota(ngx_shm_zone_t *shm_zone, void *data);

/* ngx_http_llm_account.c; all but the first two with the zone's lock held */

void ngx_http_llm_quota_lock(ngx_http_llm_quota_t *q);
void ngx_http_llm_quota_unlock(ngx_http_llm_quota_t *q);
/* NULL: there is no account yet */
ngx_http_llm_account_t *ngx_http_llm_account_find(ngx_http_llm_quota_t *q,
    uint32_t hash, ngx_str_t *key);
/* finds an account, or makes one; idle accounts are deleted to make room for
   it, unless it is `spare`; NULL: no memory */
ngx_http_llm_account_t *ngx_http_llm_account_get(ngx_http_llm_quota_t *q,
    uint32_t hash, ngx_str_t *key, ngx_uint_t spare);
/* allocates, and deletes idle accounts to make room, except `keep`; NULL: no
   memory */
void *ngx_http_llm_quota_alloc(ngx_http_llm_quota_t *q, size_t size,
    ngx_http_llm_account_t *keep);
/* saves the account's figures, and what the claim was charged, before a change;
   claim may be NULL */
void ngx_http_llm_account_change(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a, ngx_http_llm_claim_t *claim);
/* ends a change: of the account's figures, or only of `known` */
void ngx_http_llm_account_done(ngx_http_llm_quota_t *q);
void ngx_http_llm_account_known(ngx_http_llm_quota_t *q);
/* empties the buckets by the time that has passed, and begins a new day.  A day
   in the future, because a clock was set back, becomes today */
void ngx_http_llm_account_run(ngx_http_llm_account_t *a, uint64_t rate,
    uint64_t requests);
/* deletes an account that was never charged */
void ngx_http_llm_account_drop(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a);
uint32_t ngx_http_llm_today(void);

/* ngx_http_llm_claim.c; with the zone's lock held */

/* reserves memory for claims; NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_claim_init(ngx_http_llm_quota_t *q);
/* NULL: no memory */
ngx_http_llm_claim_t *ngx_http_llm_claim_create(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a);
/* units that the claim has used */
int64_t ngx_http_llm_claim_used(ngx_http_llm_quota_t *q,
    ngx_http_llm_claim_t *c);
/* charges units; negative ones are given back */
void ngx_http_llm_claim_charge(ngx_http_llm_claim_t *c, int64_t units);
/* settles and frees the claim, and deletes its account if that was never
   charged */
void ngx_http_llm_claim_end(ngx_http_llm_quota_t *q, ngx_http_llm_claim_t *c);
/* gives back what claims of dead workers hold on this account; NULL: on all
   accounts of the zone.  The given account is not deleted */
void ngx_http_llm_account_sweep(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a);
/* number of live requests */
ngx_uint_t ngx_http_llm_account_streams(ngx_http_llm_account_t *a);
/* units that live requests were charged today and have not used */
int64_t ngx_http_llm_account_held(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a);

/* ngx_http_llm_usage.c */

/* this worker uses the usage files from now on */
void ngx_http_llm_usage_attach(ngx_http_llm_quotas_main_conf_t *qmcf);
/* worker 0 begins to write usage files, and ends */
ngx_int_t ngx_http_llm_usage_init(ngx_http_llm_main_conf_t *mcf,
    ngx_http_llm_quotas_main_conf_t *qmcf, ngx_log_t *log);
void ngx_http_llm_usage_stop(ngx_http_llm_quotas_main_conf_t *qmcf);
/* reads the zone's usage file, if there is one */
void ngx_http_llm_usage_load(ngx_http_llm_quota_t *q, ngx_log_t *log);
/* if other processes use the file, too: writes what was charged here, and reads
   what was charged there, unless the file is too large for the event loop */
void ngx_http_llm_usage_share(ngx_http_llm_quota_t *q);

/* ngx_http_llm_usage_copy.c */

/* a copied account, followed by its key and padding */

typedef struct {
    ngx_http_llm_figures_t       n;             /* day_units: used */
    int64_t                      held;          /* units reserved by all
                                                   processes */
    uint32_t                     hash;
    size_t                       len;
    u_char                       key[];
} ngx_http_llm_copied_t;

/* an account of the file */

typedef struct {
    uint32_t                     hash;
    size_t                       key;           /* offset in keys */
    size_t                       len;
    llm_usage_t                  u;             /* except its key */
    ngx_uint_t                   seen;          /* 1: it is in the zone, too */
} ngx_http_llm_line_t;

/* the file; its accounts are in the order of the zone's */

typedef struct {
    ngx_http_llm_line_t         *lines;
    size_t                       n;
    size_t                       cap;
    size_t                       next;          /* first line not examined
                                                   yet */
    llm_buf_t                    keys;
    ngx_uint_t                   read;          /* 1: the file was read; 0: it
                                                   is as this zone has written
                                                   it */
    ngx_uint_t                   there;         /* 1: there is a file */
    ngx_uint_t                   shared;        /* 1: other processes use it,
                                                   too */
    ngx_uint_t                   news;          /* 1: the zone has what the file
                                                   lacks */
    ngx_uint_t                   undo;          /* 1: writing has failed */
} ngx_http_llm_merge_t;

/* most bytes of accounts that are copied under one lock */
#define NGX_HTTP_LLM_USAGE_CHUNK  32768

/* most bytes of a usage file that is read in the event loop */
#define NGX_HTTP_LLM_USAGE_SMALL  65536

/* copies as many accounts as a chunk holds, after `last`, or, if that is NULL,
   from the first.  m, unless NULL: they are compared with the file.  Returns
   the bytes copied; 0: no account is left */
size_t ngx_http_llm_usage_copy(ngx_http_llm_quota_t *q,
    ngx_http_llm_copied_t *last, u_char *chunk, ngx_http_llm_merge_t *m);
/* adds to the account what the file has beyond `known` */
void ngx_http_llm_usage_take(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a, llm_usage_t *u, ngx_uint_t shared);
/* 1: the account has used nothing, and need not be in a file */
ngx_uint_t ngx_http_llm_usage_is_empty(const llm_usage_t *u);
/* writes copied accounts, at most `most`, with `between` between them unless it
   is NULL, and what is reserved if `held` is set.  Returns their number; *last
   gets the last one */
ngx_uint_t ngx_http_llm_usage_add(u_char *chunk, size_t len, ngx_uint_t most,
    const char *between, ngx_uint_t held, ngx_http_llm_copied_t *last,
    llm_buf_t *out);
/* writes accounts, at most `most`, with commas between them: those after the
   key `after`, or, if its data is NULL, from the first.  Returns their number;
   *key, which has room for NGX_HTTP_LLM_MAX_KEY bytes, gets the last one's key;
   NGX_ERROR: no memory */
ngx_int_t ngx_http_llm_usage_page(ngx_http_llm_quota_t *q, ngx_str_t *after,
    ngx_uint_t most, llm_buf_t *out, ngx_str_t *key);

/* ngx_http_llm_usage_sync.c */

/* reads what other processes have written, and writes what the file lacks; in
   any thread.  at_once: in the event loop, which does not wait for the disk */
int ngx_http_llm_usage_sync(ngx_http_llm_quota_t *q, ngx_uint_t at_once,
    llm_err_t *err);
/* this process uses the file from now on */
void ngx_http_llm_usage_open(ngx_http_llm_quota_t *q);
/* does a process with another memory use the file? */
ngx_uint_t ngx_http_llm_usage_shared(ngx_http_llm_quota_t *q);

/* ngx_http_llm_quota.c */

extern ngx_http_llm_stage_t  ngx_http_llm_quota_stage;

/* ngx_http_llm_quota_share.c */

/* evaluates the location's limits for this request; NGX_ERROR: no memory, or
   see *no */
ngx_int_t ngx_http_llm_quota_shares(ngx_http_request_t *r,
    ngx_array_t *limits, ngx_http_llm_share_t **shares, ngx_uint_t *n,
    ngx_http_llm_refusal_t *no);
/* brings the account up to now, at the request's rates */
void ngx_http_llm_quota_run(ngx_http_llm_share_t *s,
    ngx_http_llm_account_t *a);
/* 1 and *no: the account lacks what the request wants; *no gets the first thing
   that is missing.  begins: one more request and one more stream must be
   allowed, too */
ngx_uint_t ngx_http_llm_quota_short(ngx_http_llm_share_t *s,
    ngx_http_llm_account_t *a, ngx_uint_t begins, int64_t wanted,
    ngx_http_llm_refusal_t *no);
/* the same for a request that begins, which must find no debt; before a
   refusal, what dead workers hold is given back */
ngx_uint_t ngx_http_llm_quota_lacks(ngx_http_llm_share_t *s,
    ngx_http_llm_account_t *a, ngx_http_llm_refusal_t *no);

/* ngx_http_llm_bill.c */

/* the bill of a request, with the values of its location's limits; *opened is
   NULL if there are none.  NGX_ERROR: the request is refused with err */
ngx_int_t ngx_http_llm_bill_open(ngx_http_request_t *r,
    ngx_http_llm_reply_t *reply, ngx_http_llm_bill_t **opened, llm_err_t *err);
/* may the request begin?  NGX_ERROR: it is refused with err */
ngx_int_t ngx_http_llm_bill_check(ngx_http_llm_bill_t *bill, llm_err_t *err);
/* the same, and makes its claims and counts a request */
ngx_int_t ngx_http_llm_bill_claim(ngx_http_llm_bill_t *bill, llm_err_t *err);
/* it runs, or is over: what it has used besides its answer, in tokens, of which
   some were cached, and in seconds of audio */
void ngx_http_llm_bill_use(ngx_http_llm_bill_t *bill, uint64_t prompt,
    uint64_t cached, uint64_t seconds);
/* ends its claims: what they have used is charged, the rest goes back */
void ngx_http_llm_bill_settle(ngx_http_llm_bill_t *bill);
/* ends them as if the request had not come: nothing is charged, and it does not
   count */
void ngx_http_llm_bill_return(ngx_http_llm_bill_t *bill);
/* reads what another nginx has charged to the same accounts */
void ngx_http_llm_bill_share(ngx_http_llm_bill_t *bill);
void ngx_http_llm_bill_lock(ngx_http_llm_bill_t *bill);
void ngx_http_llm_bill_unlock(ngx_http_llm_bill_t *bill);

/* ngx_http_llm_quota_head.c */

/* x-ratelimit-... */
extern ngx_http_llm_stage_t  ngx_http_llm_quota_head_stage;

/* ngx_http_llm_quota_refusal.c */

/* logs a refusal; 0: dry run */
ngx_uint_t ngx_http_llm_quota_enforced(ngx_http_request_t *r,
    ngx_http_llm_refusal_t *no);
/* writes the error of a refusal, and when its client may try again */
void ngx_http_llm_quota_refuse(ngx_http_llm_reply_t *reply,
    ngx_http_llm_refusal_t *no, llm_err_t *err);


#endif /* NGX_HTTP_LLM_QUOTA_H */
