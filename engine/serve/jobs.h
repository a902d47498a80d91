/*
 * Lists of requests, linked through job_next: a request is in at most one of
 * them.
 */

#ifndef LLM_JOBS_H
#define LLM_JOBS_H

#include "engine/sched/request.h"

/* first in, first out */
typedef struct {
    llm_req_t           *first;
    llm_req_t          **last;
} llm_jobs_t;

void llm_jobs_init(llm_jobs_t *j);
void llm_jobs_add(llm_jobs_t *j, llm_req_t *r);
/* removes the first request; NULL: the list is empty */
llm_req_t *llm_jobs_take(llm_jobs_t *j);
/* appends all requests of `from` to `to`; `from` is empty afterwards */
void llm_jobs_move(llm_jobs_t *to, llm_jobs_t *from);
void llm_jobs_remove(llm_jobs_t *j, llm_req_t *r);

#endif /* LLM_JOBS_H */
