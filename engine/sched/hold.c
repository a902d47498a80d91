/*
 * What a sequence holds: the pages of its table, in order, and its slot.
 */

#include "engine/sched/sched_internal.h"


/*
 * Frees the pages of a sequence, the last one first, as the prefix tree needs
 * it, and its state; results of steps in flight for it are dropped.
 */

void
llm_sched_drop(llm_sched_t *s, llm_seq_t *q)
{
    llm_step_forget(s, q);

    while (q->n_pages) {
        llm_pages_drop(s->pages, q->pages[--q->n_pages]);
    }

    llm_state_drop(s, q);
    q->n_tree = 0;
    q->n_kv = 0;
}


/* one more page at the end of a sequence's table */

int
llm_sched_add_page(llm_sched_t *s, llm_seq_t *q, uint32_t page)
{
    uint32_t  cap, *pages;

    if (q->n_pages == q->cap_pages) {
        cap = llm_min(llm_max(q->cap_pages * 2, 4u), s->max_pages);

        pages = realloc(q->pages, cap * sizeof(*pages));
        if (pages == NULL) {
            return LLM_ERROR;
        }

        q->pages = pages;
        q->cap_pages = cap;
    }

    q->pages[q->n_pages++] = page;

    return LLM_OK;
}
