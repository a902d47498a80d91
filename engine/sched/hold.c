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

    while (q->n_pages > q->n_gone) {
        llm_pages_drop(s->pages, q->pages[--q->n_pages]);
    }

    q->n_pages = 0;
    q->n_gone = 0;

    llm_state_drop(s, q);
    q->n_tree = 0;
    q->n_kv = 0;
}


/*
 * The first page that a sequence with n_kv positions needs: rows from there on
 * see it, or the page that comes into the prefix tree next is behind it.
 */

uint32_t
llm_sched_first_page(const llm_sched_t *s, uint32_t n_kv)
{
    uint32_t  window;

    window = s->conf.runner.window;

    if (window == 0 || n_kv < window || n_kv < LLM_KV_PAGE) {
        return 0;
    }

    return llm_min((n_kv + 1 - window) / LLM_KV_PAGE,
                   n_kv / LLM_KV_PAGE - 1);
}


/* positions up to n_kv are computed: frees the pages that are not needed any
   more */

void
llm_sched_leave(llm_sched_t *s, llm_seq_t *q, uint32_t n_kv)
{
    uint32_t  first;

    first = llm_sched_first_page(s, n_kv);

    for ( /* void */ ; q->n_gone < first; q->n_gone++) {
        llm_pages_drop(s->pages, q->pages[q->n_gone]);
        q->pages[q->n_gone] = LLM_PAGE_NONE;
    }
}


/* room for n pages in a sequence's table; LLM_ERROR: no memory */

int
llm_sched_reserve(llm_sched_t *s, llm_seq_t *q, uint32_t n)
{
    uint32_t  cap, *pages;

    if (n <= q->cap_pages) {
        return LLM_OK;
    }

    cap = llm_min(llm_max(llm_max(q->cap_pages * 2, n), 4u), s->max_pages);

    pages = realloc(q->pages, cap * sizeof(*pages));
    if (pages == NULL) {
        return LLM_ERROR;
    }

    q->pages = pages;
    q->cap_pages = cap;

    return LLM_OK;
}


/* one more page at the end of a sequence's table */

int
llm_sched_add_page(llm_sched_t *s, llm_seq_t *q, uint32_t page)
{
    if (llm_sched_reserve(s, q, q->n_pages + 1) != LLM_OK) {
        return LLM_ERROR;
    }

    q->pages[q->n_pages++] = page;

    return LLM_OK;
}
