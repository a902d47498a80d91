/*
 * A grammar from the inside: what its matchers share.
 *
 * Any thread may use a grammar; what texts have led to is under its lock.
 * Everything belongs to the grammar.
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

    pthread_mutex_t       lock;         /* of all below */
    llm_run_t             run;
    uint32_t              start;
    uint32_t              generation;   /* of what was computed */

    /* written with the lock by who has used the grammar, read by any thread
       without it, relaxed: as they were a moment ago */
    _Atomic size_t        bytes;        /* memory of all of it */
    _Atomic uint32_t      mask_us;      /* time of the last mask */

    /* written by the cache, read with the lock, relaxed: what texts have led
       to is dropped when it takes more memory */
    _Atomic size_t        max_run;
};

/* memory.c: bytes, from the numbers of things */
size_t llm_run_memory(const llm_run_t *r);
size_t llm_build_memory(const llm_gram_build_t *b);

#endif /* LLM_GRAMMAR_GRAM_H */
