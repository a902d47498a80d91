/*
 * Lists of requests; see jobs.h.
 */

#include "engine/serve/jobs.h"


void
llm_jobs_init(llm_jobs_t *j)
{
    j->first = NULL;
    j->last = &j->first;
}


void
llm_jobs_add(llm_jobs_t *j, llm_req_t *r)
{
    r->job_next = NULL;
    *j->last = r;
    j->last = &r->job_next;
}


llm_req_t *
llm_jobs_take(llm_jobs_t *j)
{
    llm_req_t  *r;

    r = j->first;

    if (r) {
        j->first = r->job_next;

        if (j->first == NULL) {
            j->last = &j->first;
        }
    }

    return r;
}


void
llm_jobs_move(llm_jobs_t *to, llm_jobs_t *from)
{
    if (from->first) {
        *to->last = from->first;
        to->last = from->last;
        llm_jobs_init(from);
    }
}


void
llm_jobs_remove(llm_jobs_t *j, llm_req_t *r)
{
    llm_req_t  **link;

    for (link = &j->first; *link; link = &(*link)->job_next) {
        if (*link == r) {
            *link = r->job_next;

            if (*link == NULL) {
                j->last = link;
            }

            return;
        }
    }
}
