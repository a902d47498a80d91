/*
 * The thread pool; see pool.h.
 *
 * A job (one loop) is published by storing each thread's share of the items,
 * [next, end) in one word.  A thread claims the items of its own share in
 * order, then those of other shares, from their ends.  It reads fn, arg and n
 * only after a claim; they do not change until the claimed item is counted in
 * `done`.  So a late helper never runs an item with fn and arg of another job,
 * and the caller need not know which threads take part.
 */

#define _GNU_SOURCE

#include "engine/base/thread.h"
#include "engine/base/machine.h"
#include "kernels/cpu/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#define llm_pool_pause()  __builtin_ia32_pause()
#else
#define llm_pool_pause()  ((void) 0)
#endif

/* time for which a thread spins before it sleeps, and the number of spins
   between two readings of the clock */
#define LLM_POOL_SPIN_US     50
#define LLM_POOL_SPIN_CHECK  16

#define LLM_POOL_MAX         1024


/* next and end of a share of the items */
#define llm_pool_share(next, end)  ((uint64_t) (end) << 32 | (next))
#define llm_pool_next(share)       ((uint32_t) (share))
#define llm_pool_end(share)        ((uint32_t) ((share) >> 32))


typedef struct {
    /* the thread's items: the caller stores (release), every thread claims
       (acquire) */
    _Alignas(64) _Atomic uint64_t  share;

    llm_pool_t                    *pool;
    pthread_t                      id;
    uint32_t                       index;
} llm_pool_thread_t;


struct llm_pool_s {
    /* the job: written by the caller before the shares, read after a claim */
    llm_pool_pt        fn;
    void              *arg;
    uint32_t           n;               /* items */

    uint32_t           n_threads;       /* threads of the pool, the caller
                                           included; only the caller uses this
                                           and the next */
    uint32_t           n_helpers;       /* threads that were started */

    /* number of threads that take part: the caller stores, helpers read; futex
       of the helpers that do not take part */
    _Alignas(64) _Atomic uint32_t  limit;

    /*
     * done: items that were run; every thread adds (seq_cst), the caller
     * reads (acquire).  waiting: 1 while the caller sleeps on the futex `done`.
     */
    _Alignas(64) _Atomic uint32_t  done;
    _Atomic uint32_t               waiting;

    /*
     * seq: futex of the helpers; the caller increments it when there is a new
     * job, a new step or `stop`.  sleepers: helpers that sleep on it or are
     * about to; each counts itself.  in_step, stop: the caller writes, helpers
     * read.
     */
    _Alignas(64) _Atomic uint32_t  seq;
    _Atomic uint32_t               sleepers;
    _Atomic uint32_t               in_step;
    _Atomic uint32_t               stop;

    llm_pool_thread_t              threads[LLM_POOL_MAX];   /* 0 is the
                                                               caller */
};


static void
llm_futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}


static void
llm_futex_wake(_Atomic uint32_t *word, int n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}


/* claims an item of a share: the first if it is the thread's own share, else
   the last; returns 0 if none is left */

static int
llm_pool_claim(_Atomic uint64_t *share, int own, uint32_t *item)
{
    uint64_t  s;
    uint32_t  next, end;

    s = atomic_load_explicit(share, memory_order_relaxed);

    do {
        next = llm_pool_next(s);
        end = llm_pool_end(s);

        if (next == end) {
            return 0;
        }

        *item = own ? next++ : --end;

    } while (!atomic_compare_exchange_weak_explicit(share, &s,
                                                    llm_pool_share(next, end),
                                                    memory_order_acquire,
                                                    memory_order_relaxed));

    return 1;
}


/* claims and runs items until no share has any */

static void
llm_pool_work(llm_pool_t *pool, uint32_t thread)
{
    uint32_t  i, n, item, limit, victim;

    limit = atomic_load_explicit(&pool->limit, memory_order_relaxed);

    if (thread >= limit) {
        return;
    }

    victim = thread;

    for (i = 0; i < limit; /* void */) {

        if (!llm_pool_claim(&pool->threads[victim].share, i == 0, &item)) {
            victim = (victim + 1) % limit;
            i++;
            continue;
        }

        n = pool->n;
        pool->fn(pool->arg, item, thread);

        /* once the last item is counted, the caller may start another job */
        if (atomic_fetch_add(&pool->done, 1) + 1 == n
            && atomic_load(&pool->waiting))
        {
            llm_futex_wake(&pool->done, 1);
        }
    }
}


/* spins while the step runs; returns 1 if there may be a new job, 0 if the
   thread should sleep */

static int
llm_pool_spin(llm_pool_t *pool, uint32_t seq)
{
    uint32_t  i;
    uint64_t  end;

    end = 0;

    for (i = 1; atomic_load_explicit(&pool->in_step, memory_order_relaxed);
         i++)
    {
        if (atomic_load_explicit(&pool->seq, memory_order_relaxed) != seq) {
            return 1;
        }

        llm_pool_pause();

        if (i % LLM_POOL_SPIN_CHECK == 0) {
            if (end == 0) {
                end = llm_now_us() + LLM_POOL_SPIN_US;

            } else if (llm_now_us() >= end) {
                return 0;
            }
        }
    }

    return 0;
}


static void *
llm_pool_thread(void *data)
{
    uint32_t            seq, limit;
    llm_pool_t         *pool;
    llm_pool_thread_t  *t;

    t = data;
    pool = t->pool;

    (void) pthread_setname_np(pthread_self(), "llm-compute");

    for ( ;; ) {
        limit = atomic_load(&pool->limit);

        if (t->index >= limit) {
            /* returns at once if the limit has changed */
            llm_futex_wait(&pool->limit, limit);
            continue;
        }

        seq = atomic_load(&pool->seq);

        llm_pool_work(pool, t->index);

        if (llm_pool_spin(pool, seq)) {
            continue;
        }

        atomic_fetch_add(&pool->sleepers, 1);

        if (atomic_load(&pool->stop)) {
            return NULL;
        }

        /* returns at once if seq has changed */
        llm_futex_wait(&pool->seq, seq);

        atomic_fetch_sub(&pool->sleepers, 1);
    }
}


static void
llm_pool_wake(llm_pool_t *pool)
{
    atomic_fetch_add(&pool->seq, 1);

    if (atomic_load(&pool->sleepers)) {
        llm_futex_wake(&pool->seq, LLM_POOL_MAX);
    }
}


/* sets the number of threads that take part from now on */

static void
llm_pool_limit(llm_pool_t *pool, uint32_t limit)
{
    uint32_t  before;

    before = atomic_exchange(&pool->limit, limit);

    if (limit > before) {
        llm_futex_wake(&pool->limit, LLM_POOL_MAX);
    }
}


uint32_t
llm_pool_wanted(uint32_t n_threads)
{
    return n_threads ? n_threads
                     : llm_min(llm_machine_cpus(), (uint32_t) LLM_POOL_MAX);
}


llm_pool_t *
llm_pool_create(uint32_t n_threads, llm_err_t *err)
{
    llm_pool_t  *pool;

    pool = aligned_alloc(64, sizeof(llm_pool_t));
    if (pool == NULL) {
        llm_fail(err, "no memory for %u threads", n_threads);
        return NULL;
    }

    /* the others' elements are cleared when their threads are started */
    memset(pool, 0, offsetof(llm_pool_t, threads) + sizeof(pool->threads[0]));
    pool->n_threads = 1;

    if (llm_pool_grow(pool, llm_pool_wanted(n_threads), err) != LLM_OK) {
        llm_pool_free(pool);
        return NULL;
    }

    llm_pool_limit(pool, pool->n_threads);

    return pool;
}


int
llm_pool_grow(llm_pool_t *pool, uint32_t n_threads, llm_err_t *err)
{
    int                 rc;
    llm_pool_thread_t  *t;

    if (n_threads > LLM_POOL_MAX) {
        return llm_fail(err, "%u threads are too many, the maximum is %d",
                        n_threads, LLM_POOL_MAX);
    }

    while (pool->n_threads < n_threads) {
        t = &pool->threads[pool->n_threads];

        memset(t, 0, sizeof(llm_pool_thread_t));
        t->pool = pool;
        t->index = pool->n_threads;

        rc = llm_thread_start(&t->id, llm_pool_thread, t);

        if (rc != 0) {
            return llm_fail(err, "cannot start thread %u of %u: %s",
                            t->index + 1, n_threads, strerror(rc));
        }

        pool->n_helpers++;
        pool->n_threads++;
    }

    return LLM_OK;
}


void
llm_pool_free(llm_pool_t *pool)
{
    uint32_t  i;

    if (pool == NULL) {
        return;
    }

    atomic_store(&pool->stop, 1);
    atomic_store(&pool->in_step, 0);
    llm_pool_limit(pool, pool->n_threads);
    llm_pool_wake(pool);

    for (i = 1; i <= pool->n_helpers; i++) {
        pthread_join(pool->threads[i].id, NULL);
    }

    free(pool);
}


uint32_t
llm_pool_threads(const llm_pool_t *pool)
{
    return pool->n_threads;
}


void
llm_pool_enter(llm_pool_t *pool, uint32_t n_threads)
{
    if (n_threads != atomic_load_explicit(&pool->limit, memory_order_relaxed))
    {
        llm_pool_limit(pool, llm_min(n_threads, pool->n_threads));
    }

    if (n_threads > 1 && pool->n_helpers) {
        atomic_store(&pool->in_step, 1);
        llm_pool_wake(pool);
    }
}


void
llm_pool_leave(llm_pool_t *pool)
{
    atomic_store_explicit(&pool->in_step, 0, memory_order_relaxed);
}


void
llm_pool_run(llm_pool_t *pool, llm_pool_pt fn, void *arg, uint32_t n)
{
    uint32_t  i, done, next, last, limit;
    uint64_t  end;

    limit = atomic_load_explicit(&pool->limit, memory_order_relaxed);

    if (limit < 2 || n < 2) {
        for (i = 0; i < n; i++) {
            fn(arg, i, 0);
        }

        return;
    }

    pool->fn = fn;
    pool->arg = arg;
    pool->n = n;

    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);

    for (i = 0, next = 0; i < limit; i++, next = last) {
        last = (uint32_t) ((uint64_t) n * (i + 1) / limit);
        atomic_store_explicit(&pool->threads[i].share,
                              llm_pool_share(next, last),
                              memory_order_release);
    }

    llm_pool_wake(pool);

    llm_pool_work(pool, 0);

    end = 0;

    for (i = 1; /* void */ ; i++) {
        done = atomic_load_explicit(&pool->done, memory_order_acquire);
        if (done == n) {
            return;
        }

        if (i % LLM_POOL_SPIN_CHECK) {
            llm_pool_pause();
            continue;
        }

        if (end == 0) {
            end = llm_now_us() + LLM_POOL_SPIN_US;

        } else if (llm_now_us() >= end) {
            /* a helper may have lost its core during an item: sleep */
            atomic_store(&pool->waiting, 1);

            done = atomic_load(&pool->done);
            if (done != n) {
                llm_futex_wait(&pool->done, done);
            }

            atomic_store(&pool->waiting, 0);
        }
    }
}
