/*
 * The waiting sequences of a model: by priority, then by fair share between
 * tenants, then by arrival.
 *
 * Shares (shares.h) are counted in tokens computed.  A prompt is charged when
 * its sequence is admitted; tokens that were not computed in the end, because
 * other sequences did or the client went away, are refunded.
 *
 * If first tokens have a time limit (llm_queue ttft=), a request that has
 * waited for half of it is served by arrival, before later requests of its
 * priority.
 *
 * The queue owns the tenants, not the sequences.  One thread uses it.
 */

#ifndef LLM_QUEUE_H
#define LLM_QUEUE_H

#include "engine/sched/request.h"
#include "engine/sched/shares.h"

struct llm_tenant_s {
    llm_share_t          share;         /* n_reqs: requests in the scheduler */

    llm_seq_t           *first;         /* waiting sequences, in the order of */
    llm_seq_t           *last;          /* llm_seq_before() */

    llm_tenant_t        *prev;          /* among tenants with waiting
                                           sequences */
    llm_tenant_t        *next;
};

typedef struct {
    llm_shares_t         shares;        /* of llm_tenant_t */
    llm_tenant_t        *waiting;
    uint32_t             n_waiting;     /* sequences */
    uint64_t             aged_us;       /* requests that came until then are
                                           served by arrival, whatever their
                                           tenant; 0: none are */
} llm_queue_t;

void llm_queue_init(llm_queue_t *q);
void llm_queue_free(llm_queue_t *q);

/* a request counts for its tenant between these two calls; LLM_ERROR: no
   memory */
int llm_queue_enter(llm_queue_t *q, llm_req_t *r);
void llm_queue_leave(llm_queue_t *q, llm_req_t *r);

void llm_queue_add(llm_queue_t *q, llm_seq_t *s);
void llm_queue_remove(llm_queue_t *q, llm_seq_t *s);
/* the sequence to run next, or NULL; it stays in the queue */
llm_seq_t *llm_queue_best(const llm_queue_t *q);

/* like llm_seq_before(), with the tenants' shares between priority and
   arrival */
int llm_queue_before(const llm_queue_t *q, const llm_seq_t *a,
    const llm_seq_t *b);
/* is the request served by arrival, see aged_us? */
static inline int
llm_queue_is_aged(const llm_queue_t *q, const llm_req_t *r)
{
    return r->entered_us <= q->aged_us && q->aged_us;
}

#endif /* LLM_QUEUE_H */
