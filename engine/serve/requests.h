/*
 * Requests in the engine: from the ring through preparation and admission to
 * the scheduler of their model, and to their end.  The scheduler's thread calls
 * these functions; preparation threads run those of preparers.c but the last.
 */

#ifndef LLM_REQUESTS_H
#define LLM_REQUESTS_H

#include "engine/serve/engine.h"

/* accept.c */
/* takes a request in, or refuses it.  rec: the message in its ring; msg: a
   checked copy of its fixed part, which alone says its size and owner. */
void llm_engine_accept(llm_engine_t *e, llm_peer_t *p,
    const llm_request_t *msg, const void *rec);
/* adds a request to e->live and to the counts */
void llm_engine_enter(llm_engine_t *e, llm_peer_t *p, llm_req_t *r);
/* sends the error of a refused request; 1: there is still no room for it */
int llm_engine_send_refusal(llm_engine_t *e, llm_peer_t *p);

/* requests.c */
/* sets the bytes of memory that are counted for a request */
void llm_engine_count(llm_engine_t *e, llm_req_t *r, size_t bytes);
/* queues a request for the preparation threads */
void llm_engine_prepare(llm_engine_t *e, llm_req_t *r);
/* those that have waited for a model */
void llm_engine_prepare_held(llm_instance_t *m);
/* by the model's state: prepares the request, holds it until the model is
   loaded, or refuses it */
void llm_engine_route(llm_engine_t *e, llm_req_t *r);
/* a request that waits for a load belongs to another instance from now on */
void llm_engine_move(llm_req_t *r, llm_instance_t *to);
void llm_engine_prepared(llm_engine_t *e, llm_req_t *r);
/* a prepared request goes to the scheduler, or its answer is sent */
void llm_engine_admit(llm_engine_t *e, llm_req_t *r);
/* frees a request that has ended; engine: llm_engine_t */
void llm_engine_ended(void *engine, llm_req_t *r);
void llm_engine_cancel(llm_engine_t *e, llm_req_t *r);
void llm_engine_fail(llm_engine_t *e, llm_req_t *r, const llm_err_t *err,
    uint32_t retry_after);
/* sends the ERROR events there is room for; nonzero if some are left */
int llm_engine_send_errors(llm_engine_t *e);
uint32_t llm_engine_retry_after(const llm_instance_t *m);
/* makes the error of a request whose deadline has passed; returns LLM_ERROR */
int llm_engine_late(llm_err_t *err);
/* makes the error of a request for which no memory is left; returns LLM_ERROR */
int llm_engine_full(const llm_engine_t *e, llm_err_t *err);

/* admission.c */
/* may a prepared request wait in the queue?  LLM_ERROR: no; then *retry_after
   has the seconds after which the client may try again */
int llm_engine_may_wait(llm_engine_t *e, llm_req_t *r, uint32_t *retry_after,
    llm_err_t *err);
void llm_engine_show_forecast(llm_instance_t *m, uint64_t now);

/* grant.c: requests that run only after their worker has granted it */
void llm_engine_ask_grant(llm_engine_t *e, llm_req_t *r);
/* sends the PREPARED events there is room for; nonzero if some are left */
int llm_engine_send_grants(llm_engine_t *e);

/* answers.c */
/* sends the answers there is room for; nonzero if some are left */
int llm_engine_send_answers(llm_engine_t *e);

/* preparers.c */
void *llm_engine_prepare_main(void *preparer);
/* takes the next job for a thread; NULL: there is none.  The caller holds the
   lock. */
llm_req_t *llm_preparer_take(llm_preparer_t *p);
/* what a thread may do with the job that it has taken */
void llm_preparer_how(llm_preparer_t *p, llm_prep_how_t *how);
/* puts a request whose preparation is not over into its list; LLM_ERROR: it has
   failed, there is no memory for what it has laid out */
int llm_preparer_back(llm_engine_t *e, llm_req_t *r);
/* called before (1) and after (0) a thread's job waits for another process:
   others run meanwhile, and the tenant pays for that time */
void llm_preparer_rest(void *preparer, int begins);
/* ends the preparation threads */
void llm_engine_quit(llm_engine_t *e);

#endif /* LLM_REQUESTS_H */
