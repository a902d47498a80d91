/*
 * All tokens of a vocabulary at once; see mask.c.
 */

#ifndef LLM_MASK_H
#define LLM_MASK_H

#include "engine/grammar/run.h"
#include "engine/grammar/toktree.h"

/*
 * Sets the bits of the tokens that may follow the set, and no others; mask
 * is all zeros before.  What ends the text is not looked at.  r->failed says
 * whether the answer is whole.
 */
void llm_mask_fill(llm_run_t *r, const llm_toktree_t *t, uint32_t set,
    uint32_t *mask);

#endif /* LLM_MASK_H */
