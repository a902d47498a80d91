/*
 * All tokens of a vocabulary at once: mask.c for sets, mask_lex.c for a
 * lexer's states alone.
 */

#ifndef LLM_MASK_H
#define LLM_MASK_H

#include "engine/grammar/run.h"
#include "engine/grammar/toktree.h"

/*
 * Writes the bits of all tokens that may follow the set, t->words words; what
 * ends the text is not looked at.  r->failed says whether the answer is whole.
 */
void llm_mask_fill(llm_run_t *r, const llm_toktree_t *t, uint32_t set,
    uint32_t *mask);

/*
 * What the state does to all tokens; it belongs to the run and stays until
 * the next call.  NULL: memory has ended, and r->failed is set.
 */
const llm_lex_mask_t *llm_lex_mask(llm_run_t *r, const llm_toktree_t *t,
    uint32_t state);
/* its tokens leave as those of the vocabulary's view do, or NULL */
const llm_tree_view_t *llm_lex_view(const llm_run_t *r,
    const llm_toktree_t *t, uint32_t state);

/*
 * mask_length.c: a state of a string with a greatest length, but far from it,
 * and the state without it, whose mask is the same: for all tokens or for
 * those of at most so many characters.
 */
typedef struct {
    uint32_t     state;
    uint32_t     max;                   /* characters that are left */
    uint32_t     sure;                  /* tokens of no more are the same */
    int          all;                   /* no token has more */
} llm_lex_bounded_t;

/* the state has a view; 0: it is no such state */
int llm_lex_bounded(llm_run_t *r, const llm_toktree_t *t, uint32_t state,
    llm_lex_bounded_t *b);
/* takes longer tokens that may not come out of b->state's sets */
void llm_lex_bounded_cut(llm_run_t *r, const llm_toktree_t *t, uint32_t state,
    const llm_lex_bounded_t *b, uint32_t *stays, uint32_t *leaves);

#endif /* LLM_MASK_H */
