/*
 * Masks of all tokens of a vocabulary: mask.c for sets, mask_lex.c for a
 * single state of the lexer.
 */

#ifndef LLM_MASK_H
#define LLM_MASK_H

#include "engine/grammar/run.h"
#include "engine/grammar/toktree.h"

/*
 * Writes the bits of all tokens that may follow the set, t->words words,
 * except tokens that end the text.  If r->failed is set, the mask is
 * incomplete.
 */
void llm_mask_fill(llm_run_t *r, const llm_toktree_t *t, uint32_t set,
    uint32_t *mask);

/*
 * What a lexer's state does to all tokens.  The run owns it; it is valid until
 * the next call.  NULL: out of memory, and r->failed is set.
 */
const llm_lex_mask_t *llm_lex_mask(llm_run_t *r, const llm_toktree_t *t,
    uint32_t state);
/* the vocabulary's view whose tokens leave the state in the same way, or
   NULL */
const llm_tree_view_t *llm_lex_view(const llm_run_t *r,
    const llm_toktree_t *t, uint32_t state);

/*
 * mask_length.c: a state of a string with a greatest length that is still far
 * away, and the state of the same string without a greatest length.  Both have
 * the same mask, for all tokens or for tokens up to some number of characters.
 */
typedef struct {
    uint32_t     state;
    uint32_t     max;                   /* characters left */
    uint32_t     sure;                  /* tokens of at most this many
                                           characters have the same mask */
    int          all;                   /* 1: no token is longer */
} llm_lex_bounded_t;

/* fills *b for a state that has a view; 0: the state is not of this kind */
int llm_lex_bounded(llm_run_t *r, const llm_toktree_t *t, uint32_t state,
    llm_lex_bounded_t *b);
/* removes longer tokens that may not follow from b->state's sets */
void llm_lex_bounded_cut(llm_run_t *r, const llm_toktree_t *t, uint32_t state,
    const llm_lex_bounded_t *b, uint32_t *stays, uint32_t *leaves);

#endif /* LLM_MASK_H */
