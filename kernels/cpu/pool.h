/*
 * The thread pool of the CPU backend: a parallel loop over numbered items.
 *
 * The calling thread takes part.  The other threads, the helpers, spin between
 * enter() and leave() and sleep on a futex at other times, so an idle server
 * uses no CPU.  A loop ends when all claimed items are done: a helper that
 * sleeps or lost its core delays it only if it has claimed an item.  A thread
 * prefers consecutive items, and the same items in loops of equal length; but
 * any thread may run any item, and results must not depend on which one does.
 *
 * Models that use different numbers of threads share a pool.  It has as many
 * threads as the model that uses most; in a step with fewer, the others sleep.
 *
 * The pool owns its threads; one thread at a time may call it.
 */

#ifndef LLM_CPU_POOL_H
#define LLM_CPU_POOL_H

#include "engine/base/base.h"

typedef struct llm_pool_s  llm_pool_t;

/* thread: number of the thread that runs the item; 0: the caller's */
typedef void (*llm_pool_pt)(void *arg, uint32_t item, uint32_t thread);

/* the number of threads that n_threads stands for; 0: as many as the CPUs that
   the process may use */
uint32_t llm_pool_wanted(uint32_t n_threads);

/* n_threads includes the caller; all threads take part until the first
   enter() */
llm_pool_t *llm_pool_create(uint32_t n_threads, llm_err_t *err);
/* starts threads until the pool has at least n_threads; after LLM_ERROR it
   still works, with those that it has */
int llm_pool_grow(llm_pool_t *pool, uint32_t n_threads, llm_err_t *err);
void llm_pool_free(llm_pool_t *pool);
uint32_t llm_pool_threads(const llm_pool_t *pool);

/*
 * enter(): a step begins, in which n_threads of the pool take part; helpers
 * spin from now on.  leave(): the step ends, helpers go to sleep.
 */
void llm_pool_enter(llm_pool_t *pool, uint32_t n_threads);
void llm_pool_leave(llm_pool_t *pool);

/*
 * Calls fn(arg, i, thread) for every i below n, in any order and in parallel;
 * returns after the last call.  thread is below llm_pool_threads(), not always
 * below the step's n_threads: a helper that is late for a step with more
 * threads may run an item of a step with fewer.
 */
void llm_pool_run(llm_pool_t *pool, llm_pool_pt fn, void *arg, uint32_t n);

#endif /* LLM_CPU_POOL_H */
