/*
 * The grammars of a model's requests.  Clients send the same schema again and
 * again, so a compiled grammar is kept for the next request, with all that
 * matchers have computed in it.
 *
 * Ownership: a request holds a reference (llm_gram_ref_t) and releases it when
 * it ends; the cache outlives all references.  It keeps the latest entries
 * that nobody holds: at most LLM_GRAM_CACHE of them, in at most
 * LLM_GRAM_CACHE_BYTES.  Any thread may call these functions; a grammar is
 * compiled outside the lock.
 */

#ifndef LLM_GRAMMAR_CACHE_H
#define LLM_GRAMMAR_CACHE_H

#include "engine/grammar/grammar.h"

#define LLM_GRAM_CACHE        16
#define LLM_GRAM_CACHE_BYTES  ((size_t) 64 << 20)
#define LLM_GRAM_CACHE_ERRORS 32

/* bytes of computed states of all grammars together; each grammar may have at
   least RUN_LEAST */
#define LLM_GRAM_RUN_BYTES    ((size_t) 256 << 20)
#define LLM_GRAM_RUN_LEAST    ((size_t) 2 << 20)

typedef struct llm_gram_cache_s  llm_gram_cache_t;
typedef struct llm_gram_ref_s    llm_gram_ref_t;

/* v outlives the cache; NULL: no memory */
llm_gram_cache_t *llm_gram_cache_create(const llm_vocab_t *v);
void llm_gram_cache_free(llm_gram_cache_t *c);

/* makes the grammar; NULL and *err on failure */
typedef llm_gram_t *(*llm_gram_compile_pt)(void *data,
    const llm_toktree_t *tree, llm_err_t *err);

/*
 * Returns the grammar of this key, compiling it if it is new; equal keys stand
 * for equal grammars.  NULL and *err: compile() failed, or no memory.  A
 * client's error from compile() is kept, too, so that the same text is not
 * compiled again and again.
 */
llm_gram_ref_t *llm_gram_cache_get(llm_gram_cache_t *c, llm_str_t key,
    llm_gram_compile_pt compile, void *data, llm_err_t *err);
/* the same without compiling: LLM_OK and *ref; LLM_ERROR and *err; LLM_ABSENT
   if the key is unknown */
int llm_gram_cache_look(llm_gram_cache_t *c, llm_str_t key,
    llm_gram_ref_t **ref, llm_err_t *err);
llm_gram_t *llm_gram_of(const llm_gram_ref_t *ref);
/* the grammar's memory, divided among the requests that hold it */
size_t llm_gram_share(const llm_gram_ref_t *ref);
/* releases a reference; ref may be NULL */
void llm_gram_release(llm_gram_ref_t *ref);
/* adds a reference for a text (masker.h), which may outlive its request
   briefly */
void llm_gram_keep(llm_gram_ref_t *ref);
void llm_gram_unkeep(llm_gram_ref_t *ref);

#endif /* LLM_GRAMMAR_CACHE_H */
