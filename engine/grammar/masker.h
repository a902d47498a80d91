/*
 * Masks are made by threads of their own, so that nobody waits for a slow one.
 *
 * A text (llm_masked_t) has a matcher and the mask of the tokens that may come
 * next.  After each token it is given to the threads, which make the next
 * mask; until they have, llm_masked_get() says LLM_LATER.  There are two
 * threads, and one of them leaves aside grammars whose last mask was slow:
 * however many there are of these, the others are served.
 *
 * Ownership: one thread, the masker's owner, creates, uses and drops texts; a
 * text that is dropped while a mask of it is being made is freed by the thread
 * that makes it.  A text keeps its grammar.  The masker is freed after its
 * texts were dropped, and before the cache of the grammars.
 */

#ifndef LLM_MASKER_H
#define LLM_MASKER_H

#include "engine/grammar/cache.h"

typedef struct llm_masker_s  llm_masker_t;
typedef struct llm_masked_s  llm_masked_t;

/* done() is called from the masker's threads when a mask has been made;
   n_vocab: bits of a mask, at least the vocabulary's */
llm_masker_t *llm_masker_create(uint32_t n_vocab, void (*done)(void *data),
    void *data, llm_err_t *err);
void llm_masker_free(llm_masker_t *m);

/* a text that begins with these bytes, and then these tokens; both are
   copied */
llm_masked_t *llm_masked_create(llm_masker_t *m, llm_gram_ref_t *ref,
    llm_str_t begin, const int32_t *ids, uint32_t n, llm_err_t *err);
/* NULL is nothing */
void llm_masked_drop(llm_masked_t *x);

/*
 * The mask of the next token, which stays until llm_masked_add().  LLM_LATER:
 * not yet; LLM_STOPPED: only the end may follow; LLM_ABSENT: the bytes that it
 * begins with are not allowed; LLM_ERROR: a token was not
 * allowed, out of memory, or the grammar is too ambiguous.
 */
int llm_masked_get(llm_masked_t *x, const uint32_t **mask, llm_err_t *err);

/*
 * The next token, after its mask was got.  LLM_STOPPED: only the end may
 * follow (if it is known at once: else llm_masked_get() says it).
 */
int llm_masked_add(llm_masked_t *x, int32_t id, llm_err_t *err);

#endif /* LLM_MASKER_H */
