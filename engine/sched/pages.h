/*
 * KV pages and the prefix tree over them.
 *
 * A page is free, private (held by sequences, its contents growing), or in
 * the tree: full, its LLM_KV_PAGE tokens and its parent known, so that any
 * sequence with the same beginning may share it.  A page's parent is the
 * page of the block before; a path from the root spells a prompt.
 *
 * Invariants
 *   - A sequence that holds a page of the tree holds all its ancestors, so a
 *     page without holders has no descendants with holders.
 *   - Pages of the tree without holders are in an LRU list, children before
 *     their parents: callers hold() from the root down and drop() from the
 *     leaf up.  Eviction takes the list's head, which is always a leaf.
 *   - A block is found by parent, salt and all its tokens, compared one by
 *     one, never by hash alone.
 *
 * Everything is allocated by create(); one thread uses it.  It knows page
 * numbers only, not the keys and values in the pages.
 */

#ifndef LLM_PAGES_H
#define LLM_PAGES_H

#include "engine/base/base.h"
#include "kernels/kernels.h"

#define LLM_PAGE_NONE    UINT32_MAX

/* who may share pages: only prompts with the same salt */
typedef struct {
    uint64_t         tenant;
    uint64_t         salt;
} llm_salt_t;

typedef struct llm_pages_s  llm_pages_t;

llm_pages_t *llm_pages_create(uint32_t n);
void llm_pages_free(llm_pages_t *p);

/* all pages; those that alloc() could give now; those that only the tree
   keeps */
uint32_t llm_pages_total(const llm_pages_t *p);
uint32_t llm_pages_available(const llm_pages_t *p);
uint32_t llm_pages_cached(const llm_pages_t *p);

/* a private page with one holder, evicting if need be; or LLM_PAGE_NONE */
uint32_t llm_pages_alloc(llm_pages_t *p);

/* the tree's page of this block behind parent (LLM_PAGE_NONE: the root) */
uint32_t llm_pages_find(const llm_pages_t *p, uint32_t parent,
    const llm_salt_t *salt, const int32_t *tokens);

int llm_pages_in_tree(const llm_pages_t *p, uint32_t page);
/* is there no page behind it in the tree? */
int llm_pages_is_leaf(const llm_pages_t *p, uint32_t page);

/* adds a holder; removes one: a private page without holders is free */
void llm_pages_hold(llm_pages_t *p, uint32_t page);
void llm_pages_drop(llm_pages_t *p, uint32_t page);

/*
 * The private page, held by the caller alone, is full with these tokens:
 * put it into the tree.  Returns the page to use from now on: the same, or,
 * when the tree has that block already, the tree's page; then the caller
 * holds that one and the private one is free.  The caller holds parent.
 */
uint32_t llm_pages_commit(llm_pages_t *p, uint32_t page, uint32_t parent,
    const llm_salt_t *salt, const int32_t *tokens);

/* asserts the invariants above; returns the number of holds of all pages */
uint64_t llm_pages_assert(const llm_pages_t *p);

#endif /* LLM_PAGES_H */
