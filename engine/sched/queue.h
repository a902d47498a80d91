/*
 * The waiting sequences of a model: by priority, then by fair share between
 * tenants, then by arrival.
 *
 * Fair share is start-time fair queueing (Goyal, Vin, Cheng, 1997) over
 * tokens computed: each tenant has a virtual time that grows by tokens over
 * weight; of equal priority the tenant with the least goes first.  A prompt
 * is charged when its sequence is seated, and what of it was not computed in
 * the end (others did, or the client went away) is given back.  A tenant
 * that comes back starts at the least time of those that are there, or where
 * it was if that is later.
 *
 * The queue owns the tenants, not the sequences.  One thread uses it.
 */

#ifndef LLM_QUEUE_H
#define LLM_QUEUE_H

#include "engine/sched/request.h"

struct llm_tenant_s {
    uint64_t             id;
    uint64_t             weight;        /* in 1/1000 */
    uint64_t             time;          /* virtual */
    uint32_t             n_reqs;        /* scheduled requests */

    llm_seq_t           *first;         /* waiting, llm_seq_before() order */
    llm_seq_t           *last;

    llm_tenant_t        *chain;         /* of its bucket */
    llm_tenant_t        *prev;          /* among those with waiting ones */
    llm_tenant_t        *next;
};

#define LLM_QUEUE_BUCKETS  1024
#define LLM_QUEUE_TENANTS  4096         /* remembered when they are gone */

typedef struct {
    llm_tenant_t        *buckets[LLM_QUEUE_BUCKETS];
    llm_tenant_t        *waiting;
    uint32_t             n_tenants;
    uint32_t             n_active;      /* tenants with requests */
    uint64_t             time;          /* virtual, when nobody had any */
    uint32_t             n_waiting;     /* sequences */
} llm_queue_t;

void llm_queue_init(llm_queue_t *q);
void llm_queue_free(llm_queue_t *q);

/* a request begins and ends to count; LLM_ERROR: no memory */
int llm_queue_enter(llm_queue_t *q, llm_req_t *r);
void llm_queue_leave(llm_queue_t *q, llm_req_t *r);

void llm_queue_add(llm_queue_t *q, llm_seq_t *s);
void llm_queue_remove(llm_queue_t *q, llm_seq_t *s);
/* who goes next, or NULL; stays in the queue */
llm_seq_t *llm_queue_best(const llm_queue_t *q);

/* tokens were computed for a tenant, or will be; some were not after all */
void llm_queue_charge(llm_tenant_t *t, uint64_t tokens);
void llm_queue_refund(llm_tenant_t *t, uint64_t tokens);

/* like llm_seq_before(), with the tenants' shares between priority and
   arrival */
int llm_queue_before(const llm_seq_t *a, const llm_seq_t *b);

#endif /* LLM_QUEUE_H */
