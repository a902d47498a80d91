/*
 * KV pages and the prefix tree over them.
 *
 * A node stands for a block of LLM_KV_PAGE tokens.  It is free, private (held
 * by sequences, which still fill its page), or in the tree: full, with its
 * tokens and its parent known, so that any sequence with the same beginning may
 * share it.  Its parent is the node of the block before; a path from the root
 * spells a prompt.
 *
 * A node has a page, which holds the keys and values.  A node of the tree may
 * lose its page and is then called bare: where all layers have a window, a
 * sequence needs only the last pages of its path, and earlier ones are evicted
 * while nodes below them stay.  A bare node gets a page again when its block is
 * computed again.
 *
 * Pages are of the kinds of caches that the model has (llm_kv_kind_t).  If only
 * some layers have a window, these layers have pages of their own, of the kind
 * LLM_KV_WINDOW.  A node may have such a page besides its page of the first
 * kind, LLM_KV_FULL, and loses it earlier; it gets another one when its block
 * is computed again.  With two kinds there are no bare nodes.
 *
 * Invariants
 *   - Private nodes and nodes that are held have a page of the first kind.  A
 *     sequence that holds the page of the second kind holds that of the first,
 *     too.  No two nodes have the same page.
 *   - Nodes of the tree whose page nobody holds are in an LRU list of that
 *     kind, children before their parents if callers hold() from the root down
 *     and drop() from the leaf up.  Eviction takes the page of the list's
 *     oldest node.  A node that loses its page of the first kind leaves the
 *     tree if it has no children; otherwise it stays as a bare node.  When free
 *     nodes run out, the one that has been bare for the longest time without
 *     use leaves.
 *   - A block is found by parent, salt and all its keys, which are compared
 *     one by one, never by hash alone.  A key stands for what is at a position:
 *     a token, or a row of an image.  A parent is identified by a serial
 *     number that is never used again, so children of a node that has left the
 *     tree are not found.
 *
 * Everything is allocated by create(); one thread uses it.  Only page numbers
 * are known here, not the keys and values in the pages.
 */

#ifndef LLM_PAGES_H
#define LLM_PAGES_H

#include "engine/base/base.h"
#include "kernels/kernels.h"

#define LLM_PAGE_NONE    UINT32_MAX

/* only prompts with the same salt share pages */
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

/* n[kind] pages; n_nodes >= the pages of the first kind.  If both numbers are
   equal, there are no bare nodes, and a caller that holds a node must hold all
   nodes before it in the path.  Only then there may be pages of the second
   kind */
llm_pages_t *llm_pages_create(const uint32_t n[LLM_KV_KINDS],
    uint32_t n_nodes);
void llm_pages_free(llm_pages_t *p);

/* numbers of pages of a kind: all; those that alloc() or attach() could give
   now; those that only the tree keeps */
uint32_t llm_pages_total(const llm_pages_t *p, uint32_t kind);
uint32_t llm_pages_available(const llm_pages_t *p, uint32_t kind);
uint32_t llm_pages_cached(const llm_pages_t *p, uint32_t kind);
/* pages of all kinds that were evicted from the tree so far */
uint64_t llm_pages_evicted(const llm_pages_t *p);

/* nodes have the numbers [0, n_nodes) */
uint32_t llm_pages_n_nodes(const llm_pages_t *p);
/* number of the node's page, for the kernels; LLM_PAGE_NONE: it has none */
uint32_t llm_pages_number(const llm_pages_t *p, uint32_t node, uint32_t kind);

/* returns a new private node with one holder and a page of the first kind;
   LLM_PAGE_NONE: all pages are held.  *evicted: the node of the tree that lost
   its page for it, or LLM_PAGE_NONE */
uint32_t llm_pages_alloc(llm_pages_t *p, uint32_t *evicted);
/* gives a private node a page of the second kind, with one holder; LLM_FULL:
   all are held */
int llm_pages_attach(llm_pages_t *p, uint32_t node);

/* the child of parent (LLM_PAGE_NONE: the root) in the tree that has this
   block; LLM_PAGE_NONE: there is none */
uint32_t llm_pages_find(const llm_pages_t *p, uint32_t parent,
    const llm_salt_t *salt, const uint64_t *keys);
int llm_pages_in_tree(const llm_pages_t *p, uint32_t node);
/* has the node no children in the tree? */
int llm_pages_is_leaf(const llm_pages_t *p, uint32_t node);

/* marks a bare node as just used */
void llm_pages_use(llm_pages_t *p, uint32_t node);

/* add and remove a holder of a page that the node has; a private node becomes
   free when nobody holds its pages any more */
void llm_pages_hold(llm_pages_t *p, uint32_t node, uint32_t kind);
void llm_pages_drop(llm_pages_t *p, uint32_t node, uint32_t kind);
/* drop() for a page that will hardly be wanted again: it is evicted first.  Not
   for the first kind, unless there are bare nodes */
void llm_pages_pass(llm_pages_t *p, uint32_t node, uint32_t kind);

/*
 * To try out what preempting sequences would free.  leave(): one more holder
 * would drop the page; nonzero: it is the last one, so the page would become
 * free.  stay(): takes back one leave(); nonzero: the page would not become
 * free any more.  Each leave() must be taken back before other functions are
 * called.
 */
int llm_pages_leave(llm_pages_t *p, uint32_t node, uint32_t kind);
int llm_pages_stay(llm_pages_t *p, uint32_t node, uint32_t kind);

/*
 * Puts a private node, whose pages only the caller holds and which is full with
 * these tokens, into the tree.  The caller holds parent.  Returns the node to
 * use from now on: the same or, if the tree has the block already, the tree's;
 * the caller then holds the same kinds of pages of that node, and the private
 * one is free.
 */
uint32_t llm_pages_commit(llm_pages_t *p, uint32_t node, uint32_t parent,
    const llm_salt_t *salt, const uint64_t *keys);

/* pages_check.c: asserts the invariants above; returns the number of holds of
   all pages */
uint64_t llm_pages_assert(const llm_pages_t *p);

#endif /* LLM_PAGES_H */
