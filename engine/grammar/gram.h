/*
 * The inside of a grammar: what its matchers share.
 *
 * Any thread may use a grammar; what has been computed for texts is guarded by
 * its lock.  The grammar owns everything.
 */

#ifndef LLM_GRAMMAR_GRAM_H
#define LLM_GRAMMAR_GRAM_H

#include "engine/grammar/run.h"

#include <pthread.h>
#include <stdatomic.h>

struct llm_gram_s {
    llm_gram_build_t     *build;
    llm_gn_t              root;
    const llm_toktree_t  *tree;

    pthread_mutex_t       lock;         /* guards all members below */
    llm_run_t             run;
    uint32_t              start;
    uint32_t              generation;   /* counts how often the computed states
                                           have been dropped */

    /* written with the lock by the grammar's users, read by any thread without
       it, relaxed: possibly slightly old */
    _Atomic size_t        bytes;        /* memory of the whole grammar */
    _Atomic uint32_t      mask_us;      /* time of the last mask, in
                                           microseconds */

    /* written by the cache, read with the lock, relaxed: the run is dropped
       when it takes more memory */
    _Atomic size_t        max_run;
};

/* memory.c: bytes, estimated from the numbers of elements */
size_t llm_run_memory(const llm_run_t *r);
size_t llm_build_memory(const llm_gram_build_t *b);

#endif /* LLM_GRAMMAR_GRAM_H */
