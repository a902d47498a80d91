/*
 * The threads that prepare requests: each takes a request from the engine's
 * turns and puts it into e->prepared, both under the engine's lock.
 * engine/prepare says how a request is prepared, turns.c which one is next.
 *
 * The first thread takes small messages and compiles no grammars, as a small
 * message can ask for a grammar that takes long.  A request whose grammar was
 * not compiled before goes on in another thread.
 *
 * Two threads take transcriptions and nothing else, one after another, so that
 * the memory of sounds that are being decoded has a bound.  The first one
 * decodes each up to a bound of samples and of time.  What is beyond it goes to
 * the second one, which decodes it from the beginning, to its end: a long sound
 * delays other long ones, and a short one only by its own first part.
 *
 * The other threads run one at a time.  While a thread compiles a grammar, and
 * between renderings of a prompt that its template refuses, it calls
 * llm_preparer_pause(): when its slice is over and another request is next, it
 * waits, with its job, until its job is next again.  So a long compilation
 * delays others by one slice, and all these threads together use one CPU.
 *
 * While another process decodes a thread's image, others run, too.  A thread
 * that waits for a decoder cannot do anything else, so
 *   - only some of them may have a request with images or sounds at a time,
 *     and fewer one whose next image is large (LLM_ENGINE_MEDIA and _LARGE):
 *     text, grammars and small images always find a thread;
 *   - a request has its thread for one image, then it is given back, and goes
 *     on after all others of its tenant, with what it has laid out so far;
 *   - whether an image is large is known by its header, or by a short time that
 *     is over: then it is given back, too, to go on among the large ones;
 *   - a new grammar is compiled when all of its images are laid out, by a
 *     thread that is not counted among those;
 *   - its tenant pays for its decoder's time as for that of a thread.
 * What the requests that were given back have laid out has the bound of all
 * requests' memory (llm_queue memory=).
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


/* the next request of the other threads; a new one only while one is idle */

static llm_req_t *
llm_preparer_next(const llm_engine_t *e)
{
    uint32_t  lists;

    lists = LLM_TURNS_TEXT;
    lists |= e->n_media < LLM_ENGINE_MEDIA ? llm_turn_bit(LLM_TURN_MEDIA) : 0;
    lists |= e->n_large < LLM_ENGINE_LARGE ? llm_turn_bit(LLM_TURN_LARGE) : 0;

    return llm_turns_next(&e->turns, e->n_idle ? lists
                                               : llm_turn_bit(LLM_TURN_PAUSED));
}


/* one of the others gets a job (1), or has done with it (-1) */

static void
llm_preparer_count(const llm_preparer_t *p, int n)
{
    llm_engine_t  *e;

    e = p->engine;

    if (p->alone == 0) {
        e->n_idle -= (uint32_t) n;
        e->n_media += p->from == LLM_TURN_MEDIA ? (uint32_t) n : 0;
        e->n_large += p->from == LLM_TURN_LARGE ? (uint32_t) n : 0;
    }
}


llm_req_t *
llm_preparer_take(llm_preparer_t *p)
{
    llm_req_t     *r;
    llm_engine_t  *e;

    e = p->engine;

    if (p->alone) {
        r = llm_turns_next(&e->turns, p->alone);

    } else {
        r = e->runs ? NULL : llm_preparer_next(e);

        if (r && r->turn == LLM_TURN_PAUSED) {
            r = NULL;                   /* its own thread goes on */
        }
    }

    if (r == NULL) {
        return NULL;
    }

    p->from = r->turn;
    llm_turns_take(&e->turns, r);
    llm_preparer_count(p, 1);
    e->runs = p->alone ? e->runs : p;

    return r;
}


static void
llm_preparer_slice(llm_preparer_t *p)
{
    p->charged_us = llm_lex_now_us();
    p->slice_us = p->charged_us + LLM_PREPARER_SLICE_US;
}


/* charges the CPU time since the last charge, and begins a slice; the caller
   holds the lock */

static void
llm_preparer_charge(llm_preparer_t *p)
{
    uint64_t  begin;

    begin = p->charged_us;
    llm_preparer_slice(p);
    llm_turns_charge(p->job, llm_max(p->charged_us - begin, (uint64_t) 1));
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


void
llm_preparer_rest(void *data, int begins)
{
    llm_engine_t    *e;
    llm_preparer_t  *p = data;

    e = p->engine;
    pthread_mutex_lock(&e->lock);

    if (begins) {
        llm_preparer_charge(p);
        p->rest_us = llm_now_us();
        e->runs = e->runs == p ? NULL : e->runs;
        pthread_cond_broadcast(&e->work);

    } else {
        /* the thread's own time is in that of its decoder */
        llm_turns_charge(p->job, llm_now_us() - p->rest_us);
        llm_preparer_slice(p);

        if (p->alone == 0) {
            (void) llm_preparer_return(p);
        }
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


void
llm_preparer_how(llm_preparer_t *p, llm_prep_how_t *how)
{
    how->never = p->alone || p->from == LLM_TURN_MEDIA
                 || p->from == LLM_TURN_LARGE;
    how->large = p->from == LLM_TURN_LARGE || p->from == LLM_TURN_LONG;
    how->pause = p->alone ? NULL : llm_preparer_pause;
    how->rest = llm_preparer_rest;
    how->data = p;
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

    if (!r->prep.checked) {
        r->prepared.at_us = (uint32_t) llm_min(begin
                                - llm_min(r->msg->arrival_us, begin),
                                (uint64_t) UINT32_MAX);
    }

    llm_preparer_how(p, &how);
    rc = llm_prep_request(&r->instance->env, r, &how, &err);

    /* what it was cancelled for is said by whoever did so */

    if (rc == LLM_ERROR && !llm_preparer_is_cancelled(r)) {
        llm_req_fail(r, &err, 0);
    }

    end = llm_now_us();
    begin = llm_min(r->msg->arrival_us, end) + r->prepared.at_us;

    r->prepared.us = (uint32_t) llm_min(end - llm_min(begin, end - 1),
                                        (uint64_t) UINT32_MAX);

    return rc;
}


int
llm_preparer_back(llm_engine_t *e, llm_req_t *r)
{
    llm_err_t  err;

    if (r->prep.begun_bytes > e->max_bytes - llm_min(e->turns.bytes,
                                                     e->max_bytes))
    {
        (void) llm_fail_with(&err, 429, "queue_full", NULL, "no memory is left "
                             "for the images of another request: %zu of %zu "
                             "bytes are taken by those that wait for their "
                             "next image (llm_queue memory=)", e->turns.bytes,
                             e->max_bytes);
        llm_req_fail(r, &err, 1);

        return LLM_ERROR;
    }

    if (r->prep.next == LLM_NEXT_GRAMMAR) {
        llm_turns_put(&e->turns, r, LLM_TURN_SLOW);
        return LLM_OK;
    }

    llm_turns_back(&e->turns, r);
    llm_turns_put(&e->turns, r, r->msg->task == LLM_TASK_LISTEN ? LLM_TURN_LONG
                                : r->prep.next == LLM_NEXT_LARGE
                                ? LLM_TURN_LARGE : LLM_TURN_MEDIA);

    return LLM_OK;
}


/* runs a job; the caller holds the lock, which is released meanwhile */

static void
llm_preparer_run(llm_preparer_t *p, llm_req_t *r)
{
    int            rc;
    llm_engine_t  *e;

    e = p->engine;
    p->job = r;
    llm_preparer_slice(p);

    pthread_mutex_unlock(&e->lock);

    rc = llm_preparer_is_cancelled(r) ? LLM_OK : llm_prepare(p, r);

    pthread_mutex_lock(&e->lock);

    llm_preparer_charge(p);
    llm_preparer_count(p, -1);
    p->job = NULL;
    e->runs = e->runs == p ? NULL : e->runs;

    rc = llm_preparer_is_cancelled(r) ? LLM_OK : rc;

    if (rc == LLM_LATER && llm_preparer_back(e, r) != LLM_OK) {
        rc = LLM_ERROR;
    }

    if (rc != LLM_LATER) {
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
