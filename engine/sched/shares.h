/*
 * Fair shares between tenants: start-time fair queueing (Goyal, Vin, Cheng,
 * 1997).  Each tenant has a virtual time that grows by what was done for it,
 * divided by its weight; at equal priority the one with the least time goes
 * first.  A tenant that comes back starts at the least time of the tenants with
 * requests, or at its own time if that is later.
 *
 * What is charged the user says: tokens of a model (queue.h), CPU time of
 * preparation (engine/serve/turns.h).  A tenant of either begins with its
 * share.
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
    uint64_t             time;          /* virtual */
    uint32_t             n_reqs;        /* requests that are under way */
    llm_share_t         *chain;         /* next in the hash bucket */
};

#define LLM_SHARES_BUCKETS  1024
#define LLM_SHARES_MOST     4096        /* beyond, none is kept without
                                           requests */

typedef struct {
    llm_share_t         *buckets[LLM_SHARES_BUCKETS];
    size_t               size;          /* of a tenant */
    uint32_t             n;
    uint32_t             n_active;      /* tenants with requests */
    uint64_t             time;          /* virtual, while there are no
                                           requests */
} llm_shares_t;

/* tenants are so large, zeroed but for their shares */
void llm_shares_init(llm_shares_t *s, size_t size);
void llm_shares_free(llm_shares_t *s);

/* a request counts for its tenant, which is returned, until leave(); weight 0:
   1000.  NULL: no memory */
llm_share_t *llm_shares_enter(llm_shares_t *s, uint64_t id, uint64_t weight);
void llm_shares_leave(llm_shares_t *s, llm_share_t *t);

/* the tenant, or NULL; the virtual time at which a request of it would enter
   now */
llm_share_t *llm_shares_find(const llm_shares_t *s, uint64_t id);
uint64_t llm_shares_begin(const llm_shares_t *s, const llm_share_t *t);

/* what was done for a tenant, or is about to be; gives back what was not */
void llm_shares_charge(llm_share_t *t, uint64_t n);
void llm_shares_refund(llm_share_t *t, uint64_t n);

#endif /* LLM_SHARES_H */
