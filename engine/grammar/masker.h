/*
 * Threads that make masks, so that nobody waits for a slow one.
 *
 * A text (llm_masked_t) has a matcher and the mask of the tokens that may come
 * next.  After each token the text is given to the threads, which make the
 * next mask; until it is made, llm_masked_get() returns LLM_LATER.  There are
 * two threads.  One of them leaves aside grammars whose last mask was slow, so
 * that the other grammars are served however many slow ones there are.
 *
 * Ownership: one thread, the masker's owner, creates, uses and drops texts.
 * If a text is dropped while its mask is being made, the thread that makes the
 * mask frees the text.  A text keeps its grammar.  The masker is freed after
 * its texts were dropped, and before the cache of the grammars.
 */

#ifndef LLM_MASKER_H
#define LLM_MASKER_H

#include "engine/grammar/cache.h"

typedef struct llm_masker_s  llm_masker_t;
typedef struct llm_masked_s  llm_masked_t;

/* done() is called by the masker's threads when a mask has been made; n_vocab:
   bits of a mask, at least as many as the vocabulary has */
llm_masker_t *llm_masker_create(uint32_t n_vocab, void (*done)(void *data),
    void *data, llm_err_t *err);
void llm_masker_free(llm_masker_t *m);

/* a text that begins with these bytes, then these tokens; both are copied.
   forced: llm_masked_forced() will be asked for */
llm_masked_t *llm_masked_create(llm_masker_t *m, llm_gram_ref_t *ref,
    llm_str_t begin, const int32_t *ids, uint32_t n, int forced,
    llm_err_t *err);
/* x may be NULL */
void llm_masked_drop(llm_masked_t *x);

/*
 * The mask of the next token, valid until llm_masked_add().  LLM_LATER: not
 * ready; LLM_STOPPED: only the end may follow; LLM_ABSENT: the first bytes are
 * not allowed; LLM_ERROR: a token was not allowed, out of memory, or the
 * grammar is too ambiguous.
 */
int llm_masked_get(llm_masked_t *x, const uint32_t **mask, llm_err_t *err);

/*
 * Adds the next token, after its mask was used.  LLM_STOPPED: only the end may
 * follow.  If that is not known yet, llm_masked_get() reports it later.
 */
int llm_masked_add(llm_masked_t *x, int32_t id, llm_err_t *err);

/* copies the tokens, at most n, that must follow the last one that was added,
   as far as that was known at once; returns their number.  They need not be the
   only tokens with this text */
uint32_t llm_masked_forced(const llm_masked_t *x, int32_t *ids, uint32_t n);
/* waits for a mask that takes little time, us microseconds at most */
void llm_masked_wait(llm_masked_t *x, uint32_t us);

#endif /* LLM_MASKER_H */
