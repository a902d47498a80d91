/*
 * Slots of recurrent state, and what each is used for.
 *
 * A slot is free, held by a sequence that computes in it or by a step that
 * has copied a state into it, or a snapshot: the state after the last token
 * of a page of the prefix tree, from which any sequence with the same
 * beginning may continue.  A page is identified here by its node (pages.h).
 *
 * Invariants
 *   - A page has at most one snapshot.  If the page is evicted, its snapshot
 *     must be forgotten: without keys and values it is of no use, and the node
 *     will be used for another block.
 *   - Snapshots are in a list by their last use.  When a slot is taken and none
 *     is free, the snapshot that was used least recently is dropped.
 *
 * Everything is allocated by create(); one thread uses it.  Only numbers of
 * slots are known here, not the states in them.
 */

#ifndef LLM_STATE_SLOTS_H
#define LLM_STATE_SLOTS_H

#include "engine/base/base.h"

#define LLM_SLOT_NONE    UINT32_MAX

typedef struct llm_state_slots_s  llm_state_slots_t;

/* n slots, for the pages of nodes [0, n_pages); NULL: no memory */
llm_state_slots_t *llm_state_slots_create(uint32_t n, uint32_t n_pages);
void llm_state_slots_free(llm_state_slots_t *s);

uint32_t llm_state_slots_n_snapshots(const llm_state_slots_t *s);

/* returns a slot, which is held from now on, if need be that of a snapshot;
   LLM_SLOT_NONE: all are held */
uint32_t llm_state_slots_take(llm_state_slots_t *s);
/* frees a held slot */
void llm_state_slots_give(llm_state_slots_t *s, uint32_t slot);

/* makes a held slot the snapshot of a page of the tree; if the page has one
   already, that one is marked as used, and the slot is freed */
void llm_state_slots_keep(llm_state_slots_t *s, uint32_t slot, uint32_t page);

/* the slot of the page's snapshot, or LLM_SLOT_NONE */
uint32_t llm_state_slots_find(const llm_state_slots_t *s, uint32_t page);
/* marks a snapshot as just used: it is then dropped last */
void llm_state_slots_use(llm_state_slots_t *s, uint32_t slot);

/* frees the page's snapshot, if it has one */
void llm_state_slots_forget(llm_state_slots_t *s, uint32_t page);

/* asserts the invariants above; returns the number of slots held */
uint32_t llm_state_slots_assert(const llm_state_slots_t *s);

#endif /* LLM_STATE_SLOTS_H */
