/*
 * Lists of numbered items in the order of their last use.  Several lists may
 * share the links; an item is in at most one of them.
 */

#ifndef LLM_LRU_H
#define LLM_LRU_H

#include "engine/base/base.h"

#include <assert.h>

#define LLM_LRU_NONE     UINT32_MAX

/* ends of a list, and directions from an item to its neighbours */
#define LLM_LRU_OLDEST   0
#define LLM_LRU_NEWEST   1

typedef struct {
    uint32_t          to[2];
} llm_lru_link_t;

typedef struct {
    llm_lru_link_t   *links;            /* of all items, not owned */
    uint32_t          end[2];
    uint32_t          n;
} llm_lru_t;


static inline void
llm_lru_init(llm_lru_t *l, llm_lru_link_t *links)
{
    l->links = links;
    l->end[LLM_LRU_OLDEST] = LLM_LRU_NONE;
    l->end[LLM_LRU_NEWEST] = LLM_LRU_NONE;
    l->n = 0;
}


/* puts item i, which is in no list, at this end */

static inline void
llm_lru_add(llm_lru_t *l, uint32_t i, int end)
{
    uint32_t  last = l->end[end];

    l->links[i].to[end] = LLM_LRU_NONE;
    l->links[i].to[!end] = last;

    if (last != LLM_LRU_NONE) {
        l->links[last].to[end] = i;

    } else {
        l->end[!end] = i;
    }

    l->end[end] = i;
    l->n++;
}


static inline void
llm_lru_remove(llm_lru_t *l, uint32_t i)
{
    int              end;
    llm_lru_link_t  *link = &l->links[i];

    for (end = 0; end < 2; end++) {
        if (link->to[end] != LLM_LRU_NONE) {
            l->links[link->to[end]].to[!end] = link->to[!end];

        } else {
            l->end[end] = link->to[!end];
        }
    }

    l->n--;
}


static inline void
llm_lru_use(llm_lru_t *l, uint32_t i)
{
    llm_lru_remove(l, i);
    llm_lru_add(l, i, LLM_LRU_NEWEST);
}


/* asserts that both directions agree; returns the number of items */

static inline uint32_t
llm_lru_assert(const llm_lru_t *l)
{
    uint32_t  i, n, last;

    n = 0;
    last = LLM_LRU_NONE;

    for (i = l->end[LLM_LRU_OLDEST];
         i != LLM_LRU_NONE;
         i = l->links[i].to[LLM_LRU_NEWEST])
    {
        assert(l->links[i].to[LLM_LRU_OLDEST] == last);
        last = i;
        n++;
    }

    assert(l->end[LLM_LRU_NEWEST] == last && l->n == n);

    return n;
}

#endif /* LLM_LRU_H */
