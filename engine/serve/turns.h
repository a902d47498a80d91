/*
 * Which request is prepared next: by priority, then by the tenants' fair
 * shares (engine/sched/shares.h) of the preparation threads' CPU time and of
 * the time that decoders take, then by arrival; a request that was given back
 * between two of its images is at the end of its tenant's line.  Requests that
 * are refused in the end are charged, too.  Shares of a model are counted
 * separately, in tokens: the time that a tenant has used here says nothing
 * about its use of the model.
 *
 * A request is in one of the lists of its tenant:
 *   QUICK    small message, nothing done yet
 *   SLOW     large message, or one whose grammar is still to be compiled
 *   PAUSED   its thread waits until its tenant is next again
 *   MEDIA    a chat whose next image or sound is to be decoded
 *   LARGE    the same, which is known to be large
 *   SOUND    a transcription, nothing done yet
 *   LONG     the same, whose sound is known to be large
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
    LLM_TURN_MEDIA,
    LLM_TURN_LARGE,
    LLM_TURN_SOUND,
    LLM_TURN_LONG,
    LLM_TURN_N
} llm_turn_t;

#define llm_turn_bit(t)  (1u << (t))
/* those of text, and the paused ones */
#define LLM_TURNS_TEXT   (llm_turn_bit(LLM_TURN_QUICK)                       \
                          | llm_turn_bit(LLM_TURN_SLOW)                      \
                          | llm_turn_bit(LLM_TURN_PAUSED))
#define LLM_TURNS_ALL    (llm_turn_bit(LLM_TURN_N) - 1)

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
    uint64_t             line;          /* place in line of the last request */
    size_t               bytes;         /* of pixels and samples of the requests
                                           in the lists */
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

/* puts a request that is in no list into one; before that, llm_turns_back():
   at the end of its tenant's line; takes it out of its list */
void llm_turns_back(llm_turns_t *q, llm_req_t *r);
void llm_turns_put(llm_turns_t *q, llm_req_t *r, llm_turn_t list);
void llm_turns_take(llm_turns_t *q, llm_req_t *r);
/* the next request of these lists (llm_turn_bit()), which stays there; NULL:
   they are empty */
llm_req_t *llm_turns_next(const llm_turns_t *q, uint32_t lists);

/* charges the request's tenant for time of a CPU or of a decoder */
void llm_turns_charge(llm_req_t *r, uint64_t us);

#endif /* LLM_TURNS_H */
