/*
 * The threads that prepare requests: each takes a job from one list and puts
 * the request into another, both under the engine's lock.  How a request is
 * prepared: prep.c.
 */

#include "engine/serve/engine.h"


/* is there much to read?  A query is read once for each of its documents; the
   message has not been checked yet, so this is a bound */

static int
llm_prep_is_large(const llm_request_t *msg)
{
    size_t  size;

    size = msg->head.size;

    if (msg->task == LLM_TASK_SCORE) {
        size *= llm_max(msg->prompts.len / 2, 1u);
    }

    return size > LLM_ENGINE_SMALL;
}


llm_req_t *
llm_prep_next(llm_engine_t *e, int small)
{
    llm_req_t  *r;

    r = e->to_prepare.first;

    while (r && small && llm_prep_is_large(r->msg)) {
        r = r->job_next;
    }

    if (r) {
        llm_jobs_remove(&e->to_prepare, r);
    }

    return r;
}


/* prepares it and notes when */

static void
llm_prepare(llm_req_t *r)
{
    uint64_t   begin, end, arrival;
    llm_err_t  err;

    memset(&err, 0, sizeof(err));
    begin = llm_now_us();

    if (llm_prep_request(r->served, r, &err) != LLM_OK) {
        llm_req_fail(r, &err, 0);
    }

    end = llm_now_us();
    arrival = llm_min(r->msg->arrival_us, begin);

    r->prepared.at_us = (uint32_t) llm_min(begin - arrival,
                                           (uint64_t) UINT32_MAX);
    r->prepared.us = (uint32_t) llm_min(llm_max(end - begin, (uint64_t) 1),
                                        (uint64_t) UINT32_MAX);
}


void *
llm_engine_prepare_main(void *data)
{
    llm_req_t       *r;
    llm_engine_t    *e;
    llm_preparer_t  *p = data;

    e = p->engine;

    (void) pthread_setname_np(pthread_self(), "llm-prepare");

    pthread_mutex_lock(&e->lock);

    while (!e->quit) {
        r = llm_prep_next(e, p->small);

        if (r == NULL) {
            pthread_cond_wait(&e->work, &e->lock);
            continue;
        }

        pthread_mutex_unlock(&e->lock);

        if (!atomic_load_explicit(&r->cancelled, memory_order_relaxed)) {
            llm_prepare(r);
        }

        pthread_mutex_lock(&e->lock);
        llm_jobs_add(&e->prepared, r);
        pthread_mutex_unlock(&e->lock);

        llm_engine_wake(e);

        pthread_mutex_lock(&e->lock);
    }

    pthread_mutex_unlock(&e->lock);

    return NULL;
}


void
llm_engine_quit(llm_engine_t *e)
{
    uint32_t  i;

    pthread_mutex_lock(&e->lock);
    e->quit = 1;
    pthread_cond_broadcast(&e->work);
    pthread_mutex_unlock(&e->lock);

    for (i = 0; i < e->n_preparers; i++) {
        (void) pthread_join(e->preparers[i].thread, NULL);
    }
}
