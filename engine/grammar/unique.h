/*
 * Arrays whose items must be unique: what their items are, and whether there
 * are enough of them; see unique.c.
 */

#ifndef LLM_UNIQUE_H
#define LLM_UNIQUE_H

#include "engine/grammar/internal.h"

/* of arrays of which we cannot tell whether two items are the same */
#define LLM_UNIQUE_UNKNOWN                                                  \
    "items that must be unique may be objects or arrays, or have kinds of " \
    "their own by position"

/* of all arrays that are new, whose items are defined by now */
void llm_unique_count(llm_gram_build_t *b);
/* are there as many different items as the array must have? */
int llm_unique_enough(const llm_gram_build_t *b, const llm_array_t *a);

#endif /* LLM_UNIQUE_H */
