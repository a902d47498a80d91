/*
 * Asserts the invariants of pages and the prefix tree, for tests and for
 * check.c; see pages.h.
 */

#include "engine/sched/pages_internal.h"

#include <assert.h>


/* checks a list and each of its nodes; returns their number */

static uint32_t
llm_pages_assert_list(const llm_pages_t *p, const llm_lru_t *list,
    uint32_t kind, int bare)
{
    uint32_t           i;
    const llm_page_t  *node;

    for (i = list->end[LLM_LRU_OLDEST];
         i != LLM_LRU_NONE;
         i = list->links[i].to[LLM_LRU_NEWEST])
    {
        node = &p->node[i];
        assert(node->holders[kind] == 0 && node->in_tree);
        assert((node->page[kind] == LLM_PAGE_NONE) == bare);
    }

    return llm_lru_assert(list);
}


/* asserts that each page of a kind is free, idle or held; returns the number of
   held pages, and adds their holders to *holds */

static uint32_t
llm_pages_assert_kind(const llm_pages_t *p, uint32_t kind, uint64_t *holds)
{
    uint32_t                i, n_held;
    const llm_page_t       *node;
    const llm_page_kind_t  *k;

    k = &p->kind[kind];
    n_held = 0;

    for (i = 0; i < p->n_nodes; i++) {
        node = &p->node[i];

        *holds += node->holders[kind];
        assert(node->leaving == 0);
        n_held += node->holders[kind] != 0;
        assert(node->holders[kind] == 0
               || (node->page[kind] != LLM_PAGE_NONE
                   && node->holders[LLM_KV_FULL] != 0));
        assert(node->page[kind] == LLM_PAGE_NONE || node->in_tree
               || node->holders[kind]);
    }

    assert(llm_pages_assert_list(p, &k->idle, kind, 0) + n_held + k->n_free
           == k->n);

    return n_held;
}


static void
llm_pages_assert_tree(const llm_pages_t *p)
{
    uint32_t           i, n_children;
    const llm_page_t  *node, *parent;

    n_children = 0;

    for (i = 0; i < p->n_nodes; i++) {
        node = &p->node[i];
        n_children += node->n_children;
        assert(node->in_tree || node->n_children == 0);

        if (!node->in_tree || node->behind == 0) {
            continue;
        }

        parent = &p->node[node->parent];

        if (parent->serial == node->behind) {
            n_children--;
            assert(llm_pages_has_bare(p)
                   || node->holders[LLM_KV_FULL] == 0
                   || parent->holders[LLM_KV_FULL]);

        } else {
            assert(llm_pages_has_bare(p));
        }
    }

    assert(n_children == 0);
}


uint64_t
llm_pages_assert(const llm_pages_t *p)
{
    uint32_t  i, n_free, n_bare, n_held;
    uint64_t  holds;

    n_free = 0;
    holds = 0;

    for (i = p->free; i != LLM_PAGE_NONE; i = p->node[i].chain) {
        assert(p->node[i].holders[LLM_KV_FULL] == 0
               && !p->node[i].in_tree);
        assert(p->node[i].page[LLM_KV_FULL] == LLM_PAGE_NONE
               && p->node[i].page[LLM_KV_WINDOW] == LLM_PAGE_NONE);
        n_free++;
    }

    n_bare = llm_pages_assert_list(p, &p->bare, LLM_KV_FULL, 1);
    n_held = llm_pages_assert_kind(p, LLM_KV_FULL, &holds);
    (void) llm_pages_assert_kind(p, LLM_KV_WINDOW, &holds);

    assert(n_free + p->kind[LLM_KV_FULL].idle.n + n_bare + n_held
           == p->n_nodes);
    assert(n_bare == 0 || llm_pages_has_bare(p));
    llm_pages_assert_tree(p);

    return holds;
}
