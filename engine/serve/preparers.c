/*
 * The threads that prepare requests: each takes a request from the engine's
 * turns and puts it into e->prepared, both under the engine's lock.
 * engine/prepare says how a request is prepared, turns.c which one is next.
 *
 * The first thread takes small messages and compiles no grammars, as a small
 * message can ask for a grammar that takes long.  A request whose grammar was
 * not compiled before goes on in another thread.
 *
 * The second one takes sounds and nothing else: one after another, so that the
 * memory of sounds that are being decoded has the bound of one.
 *
 * The other threads run one at a time.  While a thread compiles a grammar, and
 * between renderings of a prompt that its template refuses, it calls
 * llm_preparer_pause(): when its slice is over and another request is next, it
 * waits, with its job, until its job is next again.  So a long compilation
 * delays others by one slice, and all these threads together use one CPU.
 * While another process decodes a thread's image, others run, too.
 */

#include "engine/grammar/lexer.h"
#include "engine/serve/requests.h"

/* CPU time of a slice; a usual schema takes less */
#define LLM_PREPARER_SLICE_US  10000


static int
llm_preparer_is_cancelled(const llm_req_t *r)
{
    return atomic_load_explicit(&r->cancelled, memory_order_relaxed) != 0;
}


/* the next request; a new one only while a thread is idle */

static llm_req_t *
llm_preparer_next(const llm_engine_t *e)
{
    return llm_turns_next(&e->turns, e->n_idle
                                     ? LLM_TURNS_ALL
                                     : llm_turn_bit(LLM_TURN_PAUSED));
}


llm_req_t *
llm_preparer_take(llm_preparer_t *p)
{
    llm_req_t     *r;
    llm_engine_t  *e;

    e = p->engine;

    if (p->small) {
        r = llm_turns_next(&e->turns, p->sound
                                      ? llm_turn_bit(LLM_TURN_SOUND)
                                      : llm_turn_bit(LLM_TURN_QUICK));

    } else {
        r = e->runs ? NULL : llm_preparer_next(e);

        if (r && r->turn == LLM_TURN_PAUSED) {
            r = NULL;                   /* its own thread goes on */
        }
    }

    if (r == NULL) {
        return NULL;
    }

    llm_turns_take(&e->turns, r);

    if (!p->small) {
        e->runs = p;
        e->n_idle--;
    }

    return r;
}


/* charges the CPU time since the last charge, and begins a slice; the caller
   holds the lock */

static void
llm_preparer_charge(llm_preparer_t *p)
{
    uint64_t  now;

    now = llm_lex_now_us();
    llm_turns_charge(p->job, llm_max(now - p->charged_us, (uint64_t) 1));
    p->charged_us = now;
    p->slice_us = now + LLM_PREPARER_SLICE_US;
}


/* waits until the job is next again; nonzero: it is not needed any more; the
   caller holds the lock */

static int
llm_preparer_return(llm_preparer_t *p)
{
    int            others;
    llm_req_t     *r;
    llm_engine_t  *e;

    e = p->engine;
    r = p->job;
    llm_turns_put(&e->turns, r, LLM_TURN_PAUSED);
    others = 0;

    while (!e->quit && !llm_preparer_is_cancelled(r)
           && (e->runs || llm_preparer_next(e) != r))
    {
        if (!others) {
            pthread_cond_broadcast(&e->work);
            others = 1;
        }

        pthread_cond_wait(&e->work, &e->lock);
    }

    llm_turns_take(&e->turns, r);
    e->runs = e->runs ? e->runs : p;

    return e->quit || llm_preparer_is_cancelled(r);
}


/* called before and after a job waits for another process: others run
   meanwhile */

static void
llm_preparer_rest(void *data, int begins)
{
    llm_engine_t    *e;
    llm_preparer_t  *p = data;

    e = p->engine;
    pthread_mutex_lock(&e->lock);

    if (begins) {
        llm_preparer_charge(p);
        e->runs = e->runs == p ? NULL : e->runs;
        pthread_cond_broadcast(&e->work);

    } else {
        (void) llm_preparer_return(p);
    }

    pthread_mutex_unlock(&e->lock);
}


/* called while a job runs: when the slice is over, lets the requests that are
   next go first; nonzero: the job is not needed any more */

static int
llm_preparer_pause(void *data)
{
    int              over;
    llm_engine_t    *e;
    llm_preparer_t  *p = data;

    e = p->engine;

    if (llm_preparer_is_cancelled(p->job)) {
        return 1;
    }

    if (llm_lex_now_us() < p->slice_us) {
        return 0;
    }

    pthread_mutex_lock(&e->lock);

    llm_preparer_charge(p);
    e->runs = NULL;
    over = llm_preparer_return(p);

    pthread_mutex_unlock(&e->lock);

    return over;
}


/* prepares a request and writes when it did into r->prepared */

static int
llm_prepare(llm_preparer_t *p, llm_req_t *r)
{
    int             rc;
    uint64_t        begin, end;
    llm_err_t       err;
    llm_prep_how_t  how;

    memset(&err, 0, sizeof(err));
    begin = llm_now_us();

    if (!r->prep.staged) {
        r->prepared.at_us = (uint32_t) llm_min(begin
                                - llm_min(r->msg->arrival_us, begin),
                                (uint64_t) UINT32_MAX);
    }

    how.never = p->small;
    how.pause = p->small ? NULL : llm_preparer_pause;
    how.rest = p->small ? NULL : llm_preparer_rest;
    how.data = p;

    rc = llm_prep_request(&r->instance->env, r, &how, &err);

    if (rc == LLM_ERROR) {
        llm_req_fail(r, &err, 0);
    }

    end = llm_now_us();
    begin = llm_min(r->msg->arrival_us, end) + r->prepared.at_us;

    r->prepared.us = (uint32_t) llm_min(end - llm_min(begin, end - 1),
                                        (uint64_t) UINT32_MAX);

    return rc;
}


/* runs a job; the caller holds the lock, which is released meanwhile */

static void
llm_preparer_run(llm_preparer_t *p, llm_req_t *r)
{
    int            rc;
    llm_engine_t  *e;

    e = p->engine;
    p->job = r;
    p->charged_us = llm_lex_now_us();
    p->slice_us = p->charged_us + LLM_PREPARER_SLICE_US;

    pthread_mutex_unlock(&e->lock);

    rc = llm_preparer_is_cancelled(r) ? LLM_OK : llm_prepare(p, r);

    pthread_mutex_lock(&e->lock);

    llm_preparer_charge(p);
    p->job = NULL;

    if (!p->small) {
        e->runs = e->runs == p ? NULL : e->runs;
        e->n_idle++;
    }

    rc = llm_preparer_is_cancelled(r) ? LLM_OK : rc;

    if (rc == LLM_LATER) {
        llm_turns_put(&e->turns, r, LLM_TURN_SLOW);

    } else {
        llm_turns_leave(&e->turns, r);
        llm_jobs_add(&e->prepared, r);
    }

    if (e->turns.waiting) {
        pthread_cond_broadcast(&e->work);
    }

    pthread_mutex_unlock(&e->lock);

    if (rc != LLM_LATER) {
        llm_engine_wake(e);
    }

    pthread_mutex_lock(&e->lock);
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
        r = llm_preparer_take(p);

        if (r) {
            llm_preparer_run(p, r);

        } else {
            pthread_cond_wait(&e->work, &e->lock);
        }
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
