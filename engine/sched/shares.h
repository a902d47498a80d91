/*
 * Fair shares between tenants: start-time fair queueing (Goyal, Vin, Cheng,
 * 1997).  Each tenant has a virtual time that grows by the work done for it,
 * divided by its weight; at equal priority the tenant with the least time goes
 * first.  A tenant that comes back starts at the least time of the tenants with
 * requests, or at its own time if that is later.
 *
 * The user of a table chooses what is charged: tokens of a model (queue.h), CPU
 * time of preparation (engine/serve/turns.h).  Both have a structure for a
 * tenant, whose first member is its llm_share_t.
 *
 * The table owns the tenants.  One thread uses it at a time.
 */

#ifndef LLM_SHARES_H
#define LLM_SHARES_H

#include "engine/base/base.h"

typedef struct llm_share_s  llm_share_t;

struct llm_share_s {
    uint64_t             id;
    uint64_t             weight;        /* in 1/1000 */
    uint64_t             time;          /* virtual time */
    uint32_t             n_reqs;        /* live requests */
    llm_share_t         *chain;         /* next in the hash bucket */
};

#define LLM_SHARES_BUCKETS  1024
#define LLM_SHARES_MOST     4096        /* tenants; of more, only those with
                                           requests are kept */

typedef struct {
    llm_share_t         *buckets[LLM_SHARES_BUCKETS];
    size_t               size;          /* bytes of a tenant's structure */
    uint32_t             n;             /* tenants */
    uint32_t             n_active;      /* tenants with requests */
    uint64_t             time;          /* virtual time while there are no
                                           requests */
} llm_shares_t;

/* size: bytes of a tenant's structure, which is zeroed except its share */
void llm_shares_init(llm_shares_t *s, size_t size);
void llm_shares_free(llm_shares_t *s);

/* counts a request for its tenant, which is returned, until leave(); weight 0:
   1000.  NULL: no memory */
llm_share_t *llm_shares_enter(llm_shares_t *s, uint64_t id, uint64_t weight);
void llm_shares_leave(llm_shares_t *s, llm_share_t *t);

/* the tenant with this id, or NULL */
llm_share_t *llm_shares_find(const llm_shares_t *s, uint64_t id);
/* virtual time at which a request of the tenant would enter now; t NULL: of a
   new tenant */
uint64_t llm_shares_begin(const llm_shares_t *s, const llm_share_t *t);

/* charge n units of work that was done for a tenant, or is about to be; refund
   those that were not done */
void llm_shares_charge(llm_share_t *t, uint64_t n);
void llm_shares_refund(llm_share_t *t, uint64_t n);

#endif /* LLM_SHARES_H */
