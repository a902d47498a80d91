/*
 * The threads of the CPU backend: a parallel loop over numbered items.
 *
 * The calling thread takes part.  Helpers spin between enter() and leave()
 * and sleep on a futex outside, so an idle server costs nothing.  A helper
 * that sleeps or lost its core is never waited for: only items that were
 * claimed are.  A thread runs items that follow each other while it can, and
 * the same ones of equal loops; but which thread runs an item is not fixed,
 * and items must not depend on it.
 *
 * Models that want different numbers of threads share a pool: it has as many
 * as the one that wants most, and the others sleep while a step wants fewer.
 *
 * The pool owns its threads; one thread at a time drives it.
 */

#ifndef LLM_CPU_POOL_H
#define LLM_CPU_POOL_H

#include "engine/base/base.h"

typedef struct llm_pool_s  llm_pool_t;

/* thread counts from 0, the caller's */
typedef void (*llm_pool_pt)(void *arg, uint32_t item, uint32_t thread);

/* the number of threads for a wish, 0: the CPUs that this process may use */
uint32_t llm_pool_wanted(uint32_t n_threads);

/* n_threads includes the caller; all take part until enter() says otherwise */
llm_pool_t *llm_pool_create(uint32_t n_threads, llm_err_t *err);
/* at least n_threads from now on; after LLM_ERROR it has those that it had */
int llm_pool_grow(llm_pool_t *pool, uint32_t n_threads, llm_err_t *err);
void llm_pool_free(llm_pool_t *pool);
uint32_t llm_pool_threads(const llm_pool_t *pool);

/*
 * A step begins: n_threads of the pool take part in it, and helpers spin; it
 * ends: they go to sleep.
 */
void llm_pool_enter(llm_pool_t *pool, uint32_t n_threads);
void llm_pool_leave(llm_pool_t *pool);

/*
 * fn(arg, i, thread) for every i below n, in any order; then returns.  thread
 * is below llm_pool_threads(): a helper that is late for a step with more
 * threads may run an item of one with fewer.
 */
void llm_pool_run(llm_pool_t *pool, llm_pool_pt fn, void *arg, uint32_t n);

#endif /* LLM_CPU_POOL_H */
