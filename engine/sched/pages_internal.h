/*
 * Nodes and pages, for pages.c and pages_check.c; see pages.h.
 */

#ifndef LLM_PAGES_INTERNAL_H
#define LLM_PAGES_INTERNAL_H

#include "engine/sched/lru.h"
#include "engine/sched/pages.h"

typedef struct {
    uint32_t         holders[LLM_KV_KINDS];
    uint32_t         page[LLM_KV_KINDS];        /* or LLM_PAGE_NONE */
    uint32_t         in_tree;
    uint32_t         leaving;           /* holders that would leave; see
                                           llm_pages_leave() */

    uint32_t         parent;            /* of a tree node */
    uint64_t         behind;            /* serial that the parent had when the
                                           node got into the tree; 0: the parent
                                           is the root */
    uint64_t         serial;            /* of a tree node, from 1, never used
                                           twice */
    uint32_t         n_children;

    uint32_t         chain;             /* next node in the hash bucket; of a
                                           free node: the next free one */

    uint64_t         hash;
    llm_salt_t       salt;
    uint64_t         keys[LLM_KV_PAGE];
} llm_page_t;

/* the pages of a kind */
typedef struct {
    uint32_t         n;
    uint32_t        *free;              /* a stack */
    uint32_t         n_free;
    llm_lru_link_t  *links;             /* [n_nodes] */
    llm_lru_t        idle;              /* nodes of the tree whose page is not
                                           held */
} llm_page_kind_t;

struct llm_pages_s {
    llm_page_t      *node;
    uint32_t         n_nodes;
    uint32_t         free;              /* stack of free nodes, by chain */
    llm_lru_t        bare;              /* bare nodes; uses the links of the
                                           first kind */

    llm_page_kind_t  kind[LLM_KV_KINDS];

    uint64_t         serial;            /* the last serial in use */
    uint64_t         n_evicted;
    uint32_t        *buckets;
    uint32_t         mask;
};


/* can nodes be bare? */
static inline int
llm_pages_has_bare(const llm_pages_t *p)
{
    return p->n_nodes > p->kind[LLM_KV_FULL].n;
}

#endif /* LLM_PAGES_INTERNAL_H */
