/*
 * Slots of recurrent state; see slots.h.  The list of snapshots and the stack
 * of free slots go through the same links.
 */

#include "engine/sched/slots.h"

#include <assert.h>

typedef enum {
    LLM_SLOT_FREE = 0,
    LLM_SLOT_HELD,
    LLM_SLOT_SNAPSHOT
} llm_slot_state_t;

typedef struct {
    llm_slot_state_t  state;
    uint32_t          page;             /* of a snapshot */
    uint32_t          newer;            /* snapshot; next free slot */
    uint32_t          older;
} llm_slot_t;

struct llm_slots_s {
    llm_slot_t       *slot;
    uint32_t          n;

    uint32_t          free;
    uint32_t          oldest;           /* snapshots */
    uint32_t          newest;
    uint32_t          n_snapshots;

    uint32_t         *of_page;          /* [n_pages] its snapshot */
    uint32_t          n_pages;
};


static void
llm_slots_push_free(llm_slots_t *s, uint32_t i)
{
    s->slot[i].state = LLM_SLOT_FREE;
    s->slot[i].newer = s->free;
    s->free = i;
}


llm_slots_t *
llm_slots_create(uint32_t n, uint32_t n_pages)
{
    uint32_t      i;
    llm_slots_t  *s;

    s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }

    s->n = n;
    s->n_pages = n_pages;
    s->slot = calloc(llm_max(n, 1u), sizeof(*s->slot));
    s->of_page = malloc(llm_max(n_pages, 1u) * sizeof(*s->of_page));

    if (s->slot == NULL || s->of_page == NULL) {
        llm_slots_free(s);
        return NULL;
    }

    s->free = LLM_SLOT_NONE;
    s->oldest = LLM_SLOT_NONE;
    s->newest = LLM_SLOT_NONE;

    for (i = n; i-- > 0; /* void */ ) {
        llm_slots_push_free(s, i);
    }

    for (i = 0; i < n_pages; i++) {
        s->of_page[i] = LLM_SLOT_NONE;
    }

    return s;
}


void
llm_slots_free(llm_slots_t *s)
{
    if (s) {
        free(s->slot);
        free(s->of_page);
        free(s);
    }
}


uint32_t
llm_slots_n_snapshots(const llm_slots_t *s)
{
    return s->n_snapshots;
}


static void
llm_slots_lru_add(llm_slots_t *s, uint32_t i)
{
    llm_slot_t  *slot = &s->slot[i];

    slot->newer = LLM_SLOT_NONE;
    slot->older = s->newest;

    if (s->newest != LLM_SLOT_NONE) {
        s->slot[s->newest].newer = i;

    } else {
        s->oldest = i;
    }

    s->newest = i;
}


static void
llm_slots_lru_remove(llm_slots_t *s, uint32_t i)
{
    llm_slot_t  *slot = &s->slot[i];

    if (slot->newer != LLM_SLOT_NONE) {
        s->slot[slot->newer].older = slot->older;

    } else {
        s->newest = slot->older;
    }

    if (slot->older != LLM_SLOT_NONE) {
        s->slot[slot->older].newer = slot->newer;

    } else {
        s->oldest = slot->newer;
    }
}


uint32_t
llm_slots_take(llm_slots_t *s)
{
    uint32_t  i;

    if (s->free == LLM_SLOT_NONE) {
        if (s->oldest == LLM_SLOT_NONE) {
            return LLM_SLOT_NONE;
        }

        llm_slots_forget(s, s->slot[s->oldest].page);
    }

    i = s->free;
    s->free = s->slot[i].newer;
    s->slot[i].state = LLM_SLOT_HELD;

    return i;
}


void
llm_slots_give(llm_slots_t *s, uint32_t i)
{
    assert(s->slot[i].state == LLM_SLOT_HELD);

    llm_slots_push_free(s, i);
}


void
llm_slots_keep(llm_slots_t *s, uint32_t i, uint32_t page)
{
    assert(s->slot[i].state == LLM_SLOT_HELD);

    if (s->of_page[page] != LLM_SLOT_NONE) {
        llm_slots_use(s, s->of_page[page]);
        llm_slots_push_free(s, i);
        return;
    }

    s->slot[i].state = LLM_SLOT_SNAPSHOT;
    s->slot[i].page = page;
    s->of_page[page] = i;
    s->n_snapshots++;
    llm_slots_lru_add(s, i);
}


uint32_t
llm_slots_find(const llm_slots_t *s, uint32_t page)
{
    return s->of_page[page];
}


void
llm_slots_use(llm_slots_t *s, uint32_t i)
{
    assert(s->slot[i].state == LLM_SLOT_SNAPSHOT);

    llm_slots_lru_remove(s, i);
    llm_slots_lru_add(s, i);
}


void
llm_slots_forget(llm_slots_t *s, uint32_t page)
{
    uint32_t  i;

    i = s->of_page[page];

    if (i == LLM_SLOT_NONE) {
        return;
    }

    s->of_page[page] = LLM_SLOT_NONE;
    s->n_snapshots--;
    llm_slots_lru_remove(s, i);
    llm_slots_push_free(s, i);
}


uint32_t
llm_slots_assert(const llm_slots_t *s)
{
    uint32_t  i, n_free, n_listed, n_pages;

    n_free = n_listed = n_pages = 0;

    for (i = s->free; i != LLM_SLOT_NONE; i = s->slot[i].newer) {
        assert(s->slot[i].state == LLM_SLOT_FREE);
        n_free++;
    }

    for (i = s->oldest; i != LLM_SLOT_NONE; i = s->slot[i].newer) {
        assert(s->slot[i].state == LLM_SLOT_SNAPSHOT);
        assert(s->of_page[s->slot[i].page] == i);
        n_listed++;
    }

    for (i = 0; i < s->n_pages; i++) {
        n_pages += s->of_page[i] != LLM_SLOT_NONE;
    }

    assert(n_listed == s->n_snapshots && n_pages == s->n_snapshots);

    return s->n - n_free - n_listed;
}
