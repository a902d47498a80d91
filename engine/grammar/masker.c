/*
 * The threads that make masks; see masker.h.
 */

#include "engine/grammar/masker.h"

#include "engine/base/thread.h"

#include <assert.h>

#define LLM_MASKER_THREADS  2

/* a grammar whose last mask took longer is slow; one whose last mask took
   longer than the second time is not waited for */
#define LLM_MASKER_SLOW_US  5000
#define LLM_MASKER_QUICK_US 300

/* tokens that must follow, which are kept */
#define LLM_MASKER_FORCED   16

typedef enum {
    LLM_MASKED_LISTED = 0,              /* waits for a thread */
    LLM_MASKED_TAKEN,                   /* a thread works on it */
    LLM_MASKED_READY                    /* its owner may use it */
} llm_masked_state_t;

struct llm_masked_s {
    llm_masker_t        *masker;
    llm_gram_ref_t      *ref;           /* owned reference */

    /* guarded by the masker's lock: */
    llm_masked_state_t   state;
    int                  slow;          /* 1: its grammar was slow */
    int                  dropped;       /* 1: dropped by the owner while
                                           TAKEN */
    llm_masked_t        *next;          /* next in the list while LISTED */

    /* used by the thread or the owner, as state says: */
    llm_matcher_t       *matcher;
    llm_buf_t            begin;         /* bytes that the matcher has not
                                           seen */
    int32_t             *todo;          /* tokens after begin that the matcher
                                           has not seen; owned */
    uint32_t             n_todo;
    int32_t              forced[LLM_MASKER_FORCED];
    uint32_t             n_forced;
    int                  wants_forced;
    uint32_t            *mask;
    int                  rc;            /* result for llm_masked_get() */
    llm_err_t            err;
};

typedef struct {
    llm_masker_t        *masker;
    pthread_t            thread;
    int                  fast;          /* 1: this thread leaves slow grammars
                                           aside */
} llm_masker_thread_t;

struct llm_masker_s {
    uint32_t             words;         /* words of a mask */
    void               (*done)(void *data);
    void                *data;

    llm_masker_thread_t  threads[LLM_MASKER_THREADS];
    uint32_t             n_threads;

    pthread_mutex_t      lock;          /* guards all members below */
    pthread_cond_t       work;
    pthread_cond_t       made;          /* the owner waits for a mask; of the
                                           monotonic clock */
    llm_masked_t        *first;
    llm_masked_t       **last;
    int                  quit;
};


static void
llm_masked_free(llm_masked_t *x)
{
    llm_matcher_free(x->matcher);
    llm_buf_free(&x->begin);
    llm_gram_unkeep(x->ref);
    free(x->todo);
    free(x->mask);
    free(x);
}


/* ---- the threads ---- */

/* takes a text from the list; the caller has the lock */

static llm_masked_t *
llm_masker_take(llm_masker_t *m, int fast)
{
    llm_masked_t  *x, **at;

    for (at = &m->first; (x = *at) != NULL; at = &x->next) {

        if (fast && x->slow) {
            continue;
        }

        *at = x->next;

        if (m->last == &x->next) {
            m->last = at;
        }

        x->state = LLM_MASKED_TAKEN;

        return x;
    }

    return NULL;
}


static int
llm_masked_make(llm_masked_t *x)
{
    int        rc;
    uint32_t   i;
    llm_str_t  begin;

    if (x->begin.len) {
        begin = (llm_str_t) { x->begin.len, x->begin.data };
        rc = llm_matcher_push(x->matcher, begin, &x->err);

        if (rc != LLM_OK) {
            return rc;
        }

        x->begin.len = 0;
    }

    for (i = 0; i < x->n_todo; i++) {
        if (llm_matcher_accept(x->matcher, x->todo[i], &x->err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    if (i && llm_matcher_must_end(x->matcher)) {
        return LLM_STOPPED;
    }

    return llm_matcher_mask(x->matcher, x->mask, &x->err);
}


static void *
llm_masker_main(void *data)
{
    llm_masked_t         *x;
    llm_masker_t         *m;
    llm_masker_thread_t  *t = data;

    m = t->masker;

    (void) pthread_setname_np(pthread_self(), "llm-mask");
    (void) pthread_mutex_lock(&m->lock);

    while (!m->quit) {
        x = llm_masker_take(m, t->fast);

        if (x == NULL) {
            (void) pthread_cond_wait(&m->work, &m->lock);
            continue;
        }

        (void) pthread_mutex_unlock(&m->lock);

        x->rc = llm_masked_make(x);
        x->n_todo = 0;

        (void) pthread_mutex_lock(&m->lock);

        if (x->dropped) {
            (void) pthread_mutex_unlock(&m->lock);
            llm_masked_free(x);
            (void) pthread_mutex_lock(&m->lock);
            continue;
        }

        x->state = LLM_MASKED_READY;
        (void) pthread_cond_signal(&m->made);
        (void) pthread_mutex_unlock(&m->lock);

        m->done(m->data);

        (void) pthread_mutex_lock(&m->lock);
    }

    (void) pthread_mutex_unlock(&m->lock);

    return NULL;
}


llm_masker_t *
llm_masker_create(uint32_t n_vocab, void (*done)(void *data), void *data,
    llm_err_t *err)
{
    uint32_t              i;
    llm_masker_t         *m;
    pthread_condattr_t    attr;
    llm_masker_thread_t  *t;

    m = calloc(1, sizeof(*m));
    if (m == NULL) {
        (void) llm_fail(err, "no memory for masks");
        return NULL;
    }

    m->words = n_vocab / 32 + 1;
    m->done = done;
    m->data = data;
    m->last = &m->first;
    (void) pthread_mutex_init(&m->lock, NULL);
    (void) pthread_cond_init(&m->work, NULL);
    (void) pthread_condattr_init(&attr);
    (void) pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void) pthread_cond_init(&m->made, &attr);
    (void) pthread_condattr_destroy(&attr);

    for (i = 0; i < LLM_MASKER_THREADS; i++) {
        t = &m->threads[i];
        t->masker = m;
        t->fast = i == 0;

        if (llm_thread_start(&t->thread, llm_masker_main, t) != 0) {
            llm_masker_free(m);
            (void) llm_fail(err, "no thread to make masks");
            return NULL;
        }

        m->n_threads++;
    }

    return m;
}


void
llm_masker_free(llm_masker_t *m)
{
    uint32_t  i;

    if (m == NULL) {
        return;
    }

    (void) pthread_mutex_lock(&m->lock);
    assert(m->first == NULL);
    m->quit = 1;
    (void) pthread_cond_broadcast(&m->work);
    (void) pthread_mutex_unlock(&m->lock);

    for (i = 0; i < m->n_threads; i++) {
        (void) pthread_join(m->threads[i].thread, NULL);
    }

    (void) pthread_cond_destroy(&m->work);
    (void) pthread_cond_destroy(&m->made);
    (void) pthread_mutex_destroy(&m->lock);
    free(m);
}


/* ---- texts, from their owner's side ---- */

static void
llm_masked_list(llm_masked_t *x)
{
    llm_masker_t  *m;

    m = x->masker;
    x->slow = llm_gram_mask_us(llm_gram_of(x->ref)) > LLM_MASKER_SLOW_US;

    (void) pthread_mutex_lock(&m->lock);

    x->state = LLM_MASKED_LISTED;
    x->next = NULL;
    *m->last = x;
    m->last = &x->next;

    if (x->slow) {
        /* wakes all threads, because not every thread may take the text */
        (void) pthread_cond_broadcast(&m->work);

    } else {
        (void) pthread_cond_signal(&m->work);
    }

    (void) pthread_mutex_unlock(&m->lock);
}


llm_masked_t *
llm_masked_create(llm_masker_t *m, llm_gram_ref_t *ref, llm_str_t begin,
    const int32_t *ids, uint32_t n, int forced, llm_err_t *err)
{
    llm_masked_t  *x;

    x = calloc(1, sizeof(*x));
    if (x == NULL) {
        (void) llm_fail(err, "no memory for a mask");
        return NULL;
    }

    llm_gram_keep(ref);

    x->masker = m;
    x->ref = ref;
    x->wants_forced = forced;
    x->matcher = llm_matcher_create(llm_gram_of(ref), err);
    x->mask = calloc(m->words, sizeof(*x->mask));
    x->todo = malloc(llm_max(n, 1u) * sizeof(*x->todo));
    llm_buf_init(&x->begin, 0);
    (void) llm_buf_add(&x->begin, begin.data, begin.len);

    if (x->matcher == NULL || x->mask == NULL || x->todo == NULL
        || x->begin.failed)
    {
        llm_masked_free(x);
        (void) llm_fail(err, "no memory for a mask");
        return NULL;
    }

    if (n) {
        memcpy(x->todo, ids, n * sizeof(*x->todo));
        x->n_todo = n;
    }

    llm_masked_list(x);

    return x;
}


void
llm_masked_drop(llm_masked_t *x)
{
    int             mine;
    llm_masker_t   *m;
    llm_masked_t  **at;

    if (x == NULL) {
        return;
    }

    m = x->masker;
    mine = 1;

    (void) pthread_mutex_lock(&m->lock);

    if (x->state == LLM_MASKED_TAKEN) {
        x->dropped = 1;
        mine = 0;

    } else if (x->state == LLM_MASKED_LISTED) {
        for (at = &m->first; *at != x; at = &(*at)->next) { /* void */ }

        *at = x->next;
        m->last = m->last == &x->next ? at : m->last;
    }

    (void) pthread_mutex_unlock(&m->lock);

    if (mine) {
        llm_masked_free(x);
    }
}


int
llm_masked_get(llm_masked_t *x, const uint32_t **mask, llm_err_t *err)
{
    int  ready;

    (void) pthread_mutex_lock(&x->masker->lock);
    ready = x->state == LLM_MASKED_READY;
    (void) pthread_mutex_unlock(&x->masker->lock);

    if (!ready) {
        return LLM_LATER;
    }

    if (x->rc == LLM_ERROR && err) {
        *err = x->err;
    }

    *mask = x->mask;

    return x->rc;
}


int
llm_masked_add(llm_masked_t *x, int32_t id, llm_err_t *err)
{
    int  rc, ends;

    assert(x->state == LLM_MASKED_READY && x->n_todo == 0);

    x->n_forced = 0;
    rc = llm_matcher_accept_now(x->matcher, id, &ends, err);

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (rc == LLM_OK && ends) {
        x->rc = LLM_STOPPED;
        return LLM_STOPPED;
    }

    if (rc == LLM_LATER) {
        x->todo[x->n_todo++] = id;

    } else if (x->wants_forced && !x->slow) {
        x->n_forced = llm_matcher_forced_now(x->matcher, x->forced,
                                             LLM_MASKER_FORCED);
    }

    llm_masked_list(x);

    return LLM_OK;
}


uint32_t
llm_masked_forced(const llm_masked_t *x, int32_t *ids, uint32_t n)
{
    n = llm_min(n, x->n_forced);
    memcpy(ids, x->forced, n * sizeof(*ids));

    return n;
}


void
llm_masked_wait(llm_masked_t *x, uint32_t us)
{
    int               rc;
    uint64_t          until;
    llm_masker_t     *m;
    struct timespec   ts;

    if (llm_gram_mask_us(llm_gram_of(x->ref)) > LLM_MASKER_QUICK_US) {
        return;
    }

    m = x->masker;
    until = llm_now_us() + us;
    ts.tv_sec = (time_t) (until / 1000000);
    ts.tv_nsec = (long) (until % 1000000) * 1000;

    (void) pthread_mutex_lock(&m->lock);

    for (rc = 0; rc == 0 && x->state != LLM_MASKED_READY; /* void */ ) {
        rc = pthread_cond_timedwait(&m->made, &m->lock, &ts);
    }

    (void) pthread_mutex_unlock(&m->lock);
}
