/*
 * Slots of recurrent state; see slots.h.
 */

#include "engine/sched/lru.h"
#include "engine/sched/state_slots.h"

typedef enum {
    LLM_SLOT_FREE = 0,
    LLM_SLOT_HELD,
    LLM_SLOT_SNAPSHOT
} llm_state_slot_use_t;

typedef struct {
    llm_state_slot_use_t  state;
    uint32_t          page;             /* of a snapshot */
    uint32_t          next;             /* of a free slot: the next free one */
} llm_state_slot_t;

struct llm_state_slots_s {
    llm_state_slot_t       *slot;
    uint32_t          n;

    uint32_t          free;             /* stack of free slots, by next */
    llm_lru_t         snapshots;
    llm_lru_link_t   *links;            /* [n] */

    uint32_t         *of_page;          /* [n_pages] slot of the page's
                                           snapshot, or LLM_SLOT_NONE */
    uint32_t          n_pages;
};


static void
llm_state_slots_push_free(llm_state_slots_t *s, uint32_t i)
{
    s->slot[i].state = LLM_SLOT_FREE;
    s->slot[i].next = s->free;
    s->free = i;
}


llm_state_slots_t *
llm_state_slots_create(uint32_t n, uint32_t n_pages)
{
    uint32_t      i;
    llm_state_slots_t  *s;

    s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }

    s->n = n;
    s->n_pages = n_pages;
    s->slot = calloc(llm_max(n, 1u), sizeof(*s->slot));
    s->links = calloc(llm_max(n, 1u), sizeof(*s->links));
    s->of_page = malloc(llm_max(n_pages, 1u) * sizeof(*s->of_page));

    if (s->slot == NULL || s->links == NULL || s->of_page == NULL) {
        llm_state_slots_free(s);
        return NULL;
    }

    s->free = LLM_SLOT_NONE;
    llm_lru_init(&s->snapshots, s->links);

    for (i = n; i-- > 0; /* void */ ) {
        llm_state_slots_push_free(s, i);
    }

    for (i = 0; i < n_pages; i++) {
        s->of_page[i] = LLM_SLOT_NONE;
    }

    return s;
}


void
llm_state_slots_free(llm_state_slots_t *s)
{
    if (s) {
        free(s->slot);
        free(s->links);
        free(s->of_page);
        free(s);
    }
}


uint32_t
llm_state_slots_n_snapshots(const llm_state_slots_t *s)
{
    return s->snapshots.n;
}


uint32_t
llm_state_slots_take(llm_state_slots_t *s)
{
    uint32_t  i;

    if (s->free == LLM_SLOT_NONE) {
        if (s->snapshots.n == 0) {
            return LLM_SLOT_NONE;
        }

        i = s->snapshots.end[LLM_LRU_OLDEST];
        llm_state_slots_forget(s, s->slot[i].page);
    }

    i = s->free;
    s->free = s->slot[i].next;
    s->slot[i].state = LLM_SLOT_HELD;

    return i;
}


void
llm_state_slots_give(llm_state_slots_t *s, uint32_t i)
{
    assert(s->slot[i].state == LLM_SLOT_HELD);

    llm_state_slots_push_free(s, i);
}


void
llm_state_slots_keep(llm_state_slots_t *s, uint32_t i, uint32_t page)
{
    assert(s->slot[i].state == LLM_SLOT_HELD);

    if (s->of_page[page] != LLM_SLOT_NONE) {
        llm_state_slots_use(s, s->of_page[page]);
        llm_state_slots_push_free(s, i);
        return;
    }

    s->slot[i].state = LLM_SLOT_SNAPSHOT;
    s->slot[i].page = page;
    s->of_page[page] = i;
    llm_lru_add(&s->snapshots, i, LLM_LRU_NEWEST);
}


uint32_t
llm_state_slots_find(const llm_state_slots_t *s, uint32_t page)
{
    return s->of_page[page];
}


void
llm_state_slots_use(llm_state_slots_t *s, uint32_t i)
{
    assert(s->slot[i].state == LLM_SLOT_SNAPSHOT);

    llm_lru_use(&s->snapshots, i);
}


void
llm_state_slots_forget(llm_state_slots_t *s, uint32_t page)
{
    uint32_t  i;

    i = s->of_page[page];

    if (i == LLM_SLOT_NONE) {
        return;
    }

    s->of_page[page] = LLM_SLOT_NONE;
    llm_lru_remove(&s->snapshots, i);
    llm_state_slots_push_free(s, i);
}


uint32_t
llm_state_slots_assert(const llm_state_slots_t *s)
{
    uint32_t  i, n_free, n_pages;

    n_free = n_pages = 0;

    for (i = s->free; i != LLM_SLOT_NONE; i = s->slot[i].next) {
        assert(s->slot[i].state == LLM_SLOT_FREE);
        n_free++;
    }

    for (i = s->snapshots.end[LLM_LRU_OLDEST];
         i != LLM_LRU_NONE;
         i = s->links[i].to[LLM_LRU_NEWEST])
    {
        assert(s->slot[i].state == LLM_SLOT_SNAPSHOT);
        assert(s->of_page[s->slot[i].page] == i);
    }

    for (i = 0; i < s->n_pages; i++) {
        n_pages += s->of_page[i] != LLM_SLOT_NONE;
    }

    assert(llm_lru_assert(&s->snapshots) == n_pages);

    return s->n - n_free - n_pages;
}
