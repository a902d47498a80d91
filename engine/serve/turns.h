/*
 * Which request is prepared next: by priority, then by the tenants' fair
 * shares (engine/sched/shares.h) of the preparation threads' CPU time, then by
 * arrival.  Requests that are refused in the end are charged, too.  Shares of a
 * model are counted separately, in tokens: the CPU time that a tenant has used
 * here says nothing about its use of the model.
 *
 * A request is in one of three lists of its tenant:
 *   QUICK    small message, nothing done yet
 *   SLOW     large message, or one whose grammar is still to be compiled
 *   PAUSED   its thread waits until its tenant is next again
 *   SOUND    a sound to be decoded, nothing done yet
 * or, while a thread works on it, in none.
 *
 * The engine's lock guards all of this.
 */

#ifndef LLM_TURNS_H
#define LLM_TURNS_H

#include "engine/sched/shares.h"
#include "engine/serve/jobs.h"

typedef enum {
    LLM_TURN_QUICK = 0,
    LLM_TURN_SLOW,
    LLM_TURN_PAUSED,
    LLM_TURN_SOUND,
    LLM_TURN_N
} llm_turn_t;

#define llm_turn_bit(t)  (1u << (t))
#define LLM_TURNS_NEW    (llm_turn_bit(LLM_TURN_QUICK)                       \
                          | llm_turn_bit(LLM_TURN_SLOW))
#define LLM_TURNS_ALL    (LLM_TURNS_NEW | llm_turn_bit(LLM_TURN_PAUSED))
/* those that no thread has, when all threads have ended */
#define LLM_TURNS_LEFT   (LLM_TURNS_ALL | llm_turn_bit(LLM_TURN_SOUND))

/* a tenant of the preparation threads */
struct llm_payer_s {
    llm_share_t          share;         /* n_reqs: requests in the lists or in a
                                           thread */
    llm_jobs_t           jobs[LLM_TURN_N];  /* by priority, then arrival */
    uint32_t             n_jobs;        /* requests in the lists */
    llm_payer_t         *prev;          /* in `waiting` */
    llm_payer_t         *next;
};

typedef struct {
    llm_shares_t         shares;        /* of llm_payer_t */
    llm_payer_t         *waiting;       /* list of tenants with jobs */
} llm_turns_t;

void llm_turns_init(llm_turns_t *q);
/* no request may be left */
void llm_turns_free(llm_turns_t *q);

/* bytes of a message up to which it is quick: large ones, however many, never
   delay quick ones */
#define LLM_TURNS_SMALL  ((size_t) 64 << 10)

/* begins to count a request for its tenant, and puts it into a list; LLM_ERROR:
   no memory */
int llm_turns_enter(llm_turns_t *q, llm_req_t *r);
/* the request, in no list, is not counted any more */
void llm_turns_leave(llm_turns_t *q, llm_req_t *r);

/* puts a request that is in no list into one; takes it out of its list */
void llm_turns_put(llm_turns_t *q, llm_req_t *r, llm_turn_t list);
void llm_turns_take(llm_turns_t *q, llm_req_t *r);
/* the next request of these lists (llm_turn_bit()), which stays there; NULL:
   they are empty */
llm_req_t *llm_turns_next(const llm_turns_t *q, uint32_t lists);

/* charges the request's tenant for CPU time */
void llm_turns_charge(llm_req_t *r, uint64_t us);

#endif /* LLM_TURNS_H */
