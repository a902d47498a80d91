/*
 * Who is prepared next: by priority, then by the tenants' shares
 * (engine/sched/shares.h) of the CPU time that preparation takes, then by
 * arrival.  What is refused in the end has been paid for like all else.  A
 * model's share is counted apart, in tokens: what a tenant has done to these
 * threads says nothing of what it has had of the model.
 *
 * A request is in one of three lists of its tenant:
 *   QUICK    a small message that nothing was done for yet
 *   SLOW     a large one, or one whose grammar is still to be compiled
 *   PAUSED   its compilation was put aside; the thread that has it waits
 * or, while a thread works on it, in none.
 *
 * The engine's lock guards all of it.
 */

#ifndef LLM_TURNS_H
#define LLM_TURNS_H

#include "engine/sched/shares.h"
#include "engine/serve/jobs.h"

typedef enum {
    LLM_TURN_QUICK = 0,
    LLM_TURN_SLOW,
    LLM_TURN_PAUSED,
    LLM_TURN_N
} llm_turn_t;

#define llm_turn_bit(t)  (1u << (t))
#define LLM_TURNS_NEW    (llm_turn_bit(LLM_TURN_QUICK)                       \
                          | llm_turn_bit(LLM_TURN_SLOW))
#define LLM_TURNS_ALL    (LLM_TURNS_NEW | llm_turn_bit(LLM_TURN_PAUSED))

struct llm_payer_s {
    llm_share_t          share;         /* n_reqs: those that are here, or that
                                           a thread has */
    llm_jobs_t           jobs[LLM_TURN_N];  /* by priority, then arrival */
    uint32_t             n_jobs;        /* in these */
    llm_payer_t         *prev;          /* among those that have jobs */
    llm_payer_t         *next;
};

typedef struct {
    llm_shares_t         shares;        /* of llm_payer_t */
    llm_payer_t         *waiting;
} llm_turns_t;

void llm_turns_init(llm_turns_t *q);
/* no request may be left */
void llm_turns_free(llm_turns_t *q);

/* messages up to this size are quick: large ones, however many, never delay
   them */
#define LLM_TURNS_SMALL  ((size_t) 64 << 10)

/* a request comes into a list, and goes when it is prepared; LLM_ERROR: no
   memory */
int llm_turns_enter(llm_turns_t *q, llm_req_t *r);
void llm_turns_leave(llm_turns_t *q, llm_req_t *r);

/* into another list, and out of it */
void llm_turns_put(llm_turns_t *q, llm_req_t *r, llm_turn_t list);
void llm_turns_take(llm_turns_t *q, llm_req_t *r);
/* the next one of these lists (bits), which stays there; NULL: they are
   empty */
llm_req_t *llm_turns_next(const llm_turns_t *q, uint32_t lists);

/* so many microseconds were spent on it */
void llm_turns_charge(llm_req_t *r, uint64_t us);

#endif /* LLM_TURNS_H */
