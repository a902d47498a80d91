/*
 * Requests in the engine: from the ring through preparation and admission to
 * the scheduler of their model, and to their end.  The scheduler's thread calls
 * these functions, but for those of preparers.c, which preparation threads run.
 */

#ifndef LLM_REQUESTS_H
#define LLM_REQUESTS_H

#include "engine/serve/engine.h"

/* requests.c */
/* msg is a copy of the fixed part of what lies in the ring, rec, and was
   checked: only this says how large it is, and whose */
void llm_engine_accept(llm_engine_t *e, llm_peer_t *p,
    const llm_request_t *msg, const void *rec);
/* a request becomes live */
void llm_engine_enter(llm_engine_t *e, llm_peer_t *p, llm_req_t *r);
/* sends the error of a refused request; 1: there is still no room for it */
int llm_engine_send_refusal(llm_engine_t *e, llm_peer_t *p);
/* replaces the memory that is counted for a request */
void llm_engine_count(llm_engine_t *e, llm_req_t *r, size_t bytes);
void llm_engine_prepare(llm_engine_t *e, llm_req_t *r);
/* hands it on: to preparation, to those that wait for the model, or it is
   refused */
void llm_engine_route(llm_engine_t *e, llm_req_t *r);
/* one that waits for its model's load goes to another file's */
void llm_engine_move(llm_req_t *r, llm_instance_t *to);
void llm_engine_prepared(llm_engine_t *e, llm_req_t *r);
/* a prepared request is answered, or waits for its turn */
void llm_engine_admit(llm_engine_t *e, llm_req_t *r);
void llm_engine_ended(void *engine, llm_req_t *r);
void llm_engine_cancel(llm_engine_t *e, llm_req_t *r);
void llm_engine_fail(llm_engine_t *e, llm_req_t *r, const llm_err_t *err,
    uint32_t retry_after);
int llm_engine_send_errors(llm_engine_t *e);
uint32_t llm_engine_retry_after(const llm_instance_t *m);
/* the error of a request whose deadline has passed; LLM_ERROR */
int llm_engine_late(llm_err_t *err);

/* admission.c */
/* may it wait?  LLM_ERROR: no, and when it should be tried again, in seconds */
int llm_engine_may_wait(llm_engine_t *e, llm_req_t *r, uint32_t *retry_after,
    llm_err_t *err);
void llm_engine_show_forecast(llm_instance_t *m, uint64_t now);

/* grant.c: requests that run only when their worker agrees */
void llm_engine_ask_grant(llm_engine_t *e, llm_req_t *r);
/* sends what there is room for; nonzero if something is left */
int llm_engine_send_grants(llm_engine_t *e);

/* answers.c */
/* sends what there is room for; nonzero if something is left */
int llm_engine_send_answers(llm_engine_t *e);

/* preparers.c */
void *llm_engine_prepare_main(void *preparer);
/* takes the next job for a thread; NULL: there is none.  The caller has the
   lock */
llm_req_t *llm_preparer_take(llm_preparer_t *p);
/* ends the preparation threads */
void llm_engine_quit(llm_engine_t *e);

#endif /* LLM_REQUESTS_H */
