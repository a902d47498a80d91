/*
 * Slots of recurrent state: who has which.
 *
 * A slot is free, held by a sequence that computes in it or by a step that
 * has copied a state into it, or a snapshot: the state after the last token
 * of a page of the prefix tree, from where any sequence with the same
 * beginning may go on.  A page is known here by its node (pages.h).
 *
 * Invariants
 *   - A page has one snapshot at most.  One that is evicted must be forgotten:
 *     there is nothing to go on from, and its node comes again for others.
 *   - Snapshots are in a list by their last use; they give way to whoever
 *     takes a slot, the one that was used least recently first.
 *
 * Everything is allocated by create(); one thread uses it.  It knows numbers
 * only, not the states in the slots.
 */

#ifndef LLM_SLOTS_H
#define LLM_SLOTS_H

#include "engine/base/base.h"

#define LLM_SLOT_NONE    UINT32_MAX

typedef struct llm_slots_s  llm_slots_t;

/* n slots, for the pages of nodes [0, n_pages); NULL: no memory */
llm_slots_t *llm_slots_create(uint32_t n, uint32_t n_pages);
void llm_slots_free(llm_slots_t *s);

uint32_t llm_slots_n_snapshots(const llm_slots_t *s);

/* a slot to hold, if need be a snapshot's; LLM_SLOT_NONE: all are held */
uint32_t llm_slots_take(llm_slots_t *s);
/* a slot that was held is free */
void llm_slots_give(llm_slots_t *s, uint32_t slot);

/* a slot that was held becomes the snapshot of a page of the tree; if the page
   has one already, that counts as used, and the slot is free */
void llm_slots_keep(llm_slots_t *s, uint32_t slot, uint32_t page);

/* the slot of the page's snapshot, or LLM_SLOT_NONE; it counts as used, and
   then is the last to give way */
uint32_t llm_slots_find(const llm_slots_t *s, uint32_t page);
void llm_slots_use(llm_slots_t *s, uint32_t slot);

/* the page's snapshot, if any, is free */
void llm_slots_forget(llm_slots_t *s, uint32_t page);

/* asserts the invariants above; returns the number of slots held */
uint32_t llm_slots_assert(const llm_slots_t *s);

#endif /* LLM_SLOTS_H */
