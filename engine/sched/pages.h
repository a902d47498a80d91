/*
 * KV pages and the prefix tree over them.
 *
 * A node is free, private (held by sequences, its page's contents growing), or
 * in the tree: full, its LLM_KV_PAGE tokens and its parent known, so that any
 * sequence with the same beginning may share it.  A node's parent is that of
 * the block before; a path from the root spells a prompt.
 *
 * A node has a page, where the keys and values are.  One of the tree may lose
 * it, and is bare then: where attention sees only a window of positions, a
 * sequence needs the last pages of its path alone, and those before are
 * evicted while nodes behind them stay.  Computing its block again gives a
 * bare node a page.
 *
 * Pages are of the kinds of caches that the model has (llm_kv_kind_t).  Where
 * some layers see a window and others everything, the former have pages of
 * their own, of the kind LLM_KV_WINDOW.  A node may have one of these beside
 * its page of LLM_KV_FULL, the first kind, and loses it earlier; computing its
 * block again gives it another.  Then there are no bare nodes.
 *
 * Invariants
 *   - Private nodes and those that are held have a page of the first kind, and
 *     who holds one of the second holds the first, too; no two nodes have the
 *     same page.
 *   - Nodes of the tree whose page nobody holds are in an LRU list of its kind,
 *     children before their parents if callers hold() from the root down and
 *     drop() from the leaf up.  Eviction takes the page of the list's head.
 *     Without a page of the first kind the node goes, too, if nothing is behind
 *     it, else it stays as a bare one, while there are nodes to spare: those
 *     bare for the longest time go first.
 *   - A block is found by parent, salt and all its tokens, compared one by
 *     one, never by hash alone.  A parent is known by a number that never
 *     comes again, so what was behind a node that has gone is not found.
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


static inline int
llm_salt_same(const llm_salt_t *a, const llm_salt_t *b)
{
    return a->tenant == b->tenant && a->salt == b->salt;
}


typedef struct llm_pages_s  llm_pages_t;

/* n[kind] pages; n_nodes >= those of the first kind.  If they are as many,
   there are no bare nodes, and callers must hold all nodes before one that they
   hold.  Only then there may be pages of the second kind */
llm_pages_t *llm_pages_create(const uint32_t n[LLM_KV_KINDS],
    uint32_t n_nodes);
void llm_pages_free(llm_pages_t *p);

/* of a kind: all pages; those that alloc() or attach() could give now; those
   that only the tree keeps */
uint32_t llm_pages_total(const llm_pages_t *p, uint32_t kind);
uint32_t llm_pages_available(const llm_pages_t *p, uint32_t kind);
uint32_t llm_pages_cached(const llm_pages_t *p, uint32_t kind);
/* how many, of all kinds, the tree has lost to others */
uint64_t llm_pages_evicted(const llm_pages_t *p);

/* nodes are numbers below this one */
uint32_t llm_pages_n_nodes(const llm_pages_t *p);
/* the node's page, for the kernels, or LLM_PAGE_NONE: it has none */
uint32_t llm_pages_number(const llm_pages_t *p, uint32_t node, uint32_t kind);

/* a private node with one holder and a page of the first kind; or
   LLM_PAGE_NONE.  *evicted: the node of the tree that lost its page for that,
   or LLM_PAGE_NONE */
uint32_t llm_pages_alloc(llm_pages_t *p, uint32_t *evicted);
/* gives a private node a page of the second kind, with one holder; LLM_FULL:
   all are held */
int llm_pages_attach(llm_pages_t *p, uint32_t node);

/* the tree's node of this block behind parent (LLM_PAGE_NONE: the root) */
uint32_t llm_pages_find(const llm_pages_t *p, uint32_t parent,
    const llm_salt_t *salt, const int32_t *tokens);
int llm_pages_in_tree(const llm_pages_t *p, uint32_t node);
/* is there no node behind it in the tree? */
int llm_pages_is_leaf(const llm_pages_t *p, uint32_t node);

/* a bare node counts as used */
void llm_pages_use(llm_pages_t *p, uint32_t node);

/* adds a holder to a node's page, which it has; removes one: a private node
   whose pages nobody holds is free */
void llm_pages_hold(llm_pages_t *p, uint32_t node, uint32_t kind);
void llm_pages_drop(llm_pages_t *p, uint32_t node, uint32_t kind);
/* drop(), of a page that will hardly be wanted again: it gives way first.  Not
   of the first kind, unless there are bare nodes */
void llm_pages_pass(llm_pages_t *p, uint32_t node, uint32_t kind);

/*
 * What if?  leave(): one more of the holders of this page is to drop it;
 * nonzero: that is the last one, so that the page would come free.  stay():
 * that one is not to, nonzero: so that it would not.  Each leave() has its
 * stay() before anything else is done.
 */
int llm_pages_leave(llm_pages_t *p, uint32_t node, uint32_t kind);
int llm_pages_stay(llm_pages_t *p, uint32_t node, uint32_t kind);

/*
 * The private node, whose pages the caller alone holds, is full with these
 * tokens: put it into the tree.  Returns the node to use from now on: the
 * same, or, when the tree has that block already, the tree's; then the caller
 * holds the same kinds of pages of that one and the private one is free.  The
 * caller holds parent.
 */
uint32_t llm_pages_commit(llm_pages_t *p, uint32_t node, uint32_t parent,
    const llm_salt_t *salt, const int32_t *tokens);

/* pages_check.c: asserts the invariants above; returns the number of holds of
   all pages */
uint64_t llm_pages_assert(const llm_pages_t *p);

#endif /* LLM_PAGES_H */
