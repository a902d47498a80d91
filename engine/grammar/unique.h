/*
 * Arrays whose items must be unique: what the items are, and whether there are
 * enough different ones; see unique.c.
 */

#ifndef LLM_UNIQUE_H
#define LLM_UNIQUE_H

#include "engine/grammar/internal.h"

/* error for arrays of which it is unknown whether two items are equal */
#define LLM_UNIQUE_UNKNOWN                                                  \
    "items that must be unique may be objects or arrays, or have kinds of " \
    "their own by position"

/* counts the items of new arrays, which must be defined by now */
void llm_unique_count(llm_gram_build_t *b);
/* are there at least as many different items as the array must have? */
int llm_unique_enough(const llm_array_t *a);

#endif /* LLM_UNIQUE_H */
