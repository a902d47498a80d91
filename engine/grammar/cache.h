/*
 * The grammars of a model's requests.  Clients send the same schema again and
 * again, so a compiled one is kept for the next request, with all that
 * matchers have computed in it.
 *
 * Ownership: a request holds a reference (llm_gram_ref_t) and gives it back
 * when it ends; the cache outlives them.  It keeps the latest entries that
 * nobody holds: LLM_GRAM_CACHE at most, of LLM_GRAM_CACHE_BYTES together.  Any
 * thread may call these functions; a grammar is compiled outside the lock.
 */

#ifndef LLM_GRAMMAR_CACHE_H
#define LLM_GRAMMAR_CACHE_H

#include "engine/grammar/grammar.h"

#define LLM_GRAM_CACHE        16
#define LLM_GRAM_CACHE_BYTES  ((size_t) 64 << 20)
#define LLM_GRAM_CACHE_ERRORS 32

/* what texts have led to, of all grammars together, but for so much of each */
#define LLM_GRAM_RUN_BYTES    ((size_t) 256 << 20)
#define LLM_GRAM_RUN_LEAST    ((size_t) 2 << 20)

typedef struct llm_gram_cache_s  llm_gram_cache_t;
typedef struct llm_gram_ref_s    llm_gram_ref_t;

/* v outlives it; NULL: no memory */
llm_gram_cache_t *llm_gram_cache_create(const llm_vocab_t *v);
void llm_gram_cache_free(llm_gram_cache_t *c);

/* makes the grammar; NULL and *err */
typedef llm_gram_t *(*llm_gram_compile_pt)(void *data,
    const llm_toktree_t *tree, llm_err_t *err);

/*
 * The grammar of this key, or a new one; equal keys are equal grammars.  NULL
 * and *err: compile() failed, or no memory.  A client's error of compile() is
 * kept, too, so that the same one is not compiled again and again.
 */
llm_gram_ref_t *llm_gram_cache_get(llm_gram_cache_t *c, llm_str_t key,
    llm_gram_compile_pt compile, void *data, llm_err_t *err);
/* the same without compiling: LLM_OK and *ref, LLM_ERROR and *err, or, if
   nothing is known of it, LLM_ABSENT */
int llm_gram_cache_look(llm_gram_cache_t *c, llm_str_t key,
    llm_gram_ref_t **ref, llm_err_t *err);
llm_gram_t *llm_gram_of(const llm_gram_ref_t *ref);
/* its memory, divided among the requests that hold it */
size_t llm_gram_share(const llm_gram_ref_t *ref);
/* gives it back; NULL is nothing */
void llm_gram_release(llm_gram_ref_t *ref);
/* for a text (masker.h), which may outlive the request for a moment */
void llm_gram_keep(llm_gram_ref_t *ref);
void llm_gram_unkeep(llm_gram_ref_t *ref);

#endif /* LLM_GRAMMAR_CACHE_H */
