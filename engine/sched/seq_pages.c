/*
 * What a sequence holds: the pages of its table, in order, and its state slot.
 */

#include "engine/sched/sched_internal.h"


/*
 * Frees the pages of a sequence, the last one first, as pages.h requires, and
 * its state slot; its results in steps in flight are dropped.
 */

void
llm_sched_drop(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t  k;

    llm_step_forget(s, q);
    llm_draft_model_leave(s->draft_model, q);
    llm_draft_head_leave(s->draft_head, q);

    for (k = s->n_kinds; k-- > 0; /* void */ ) {
        while (q->n_pages[k] > q->n_gone[k]) {
            llm_pages_drop(s->pages, q->pages[--q->n_pages[k]], k);
        }

        q->n_pages[k] = 0;
        q->n_gone[k] = 0;
    }

    llm_state_drop(s, q);
    q->branch = 0;
    q->entry = 0;
    q->n_tree = 0;
    q->n_kv = 0;
}


/* the sequence's table of pages of a kind, `width` long; pages that it has not
   got, or that have left its window, are 0 */

void
llm_sched_table(const llm_sched_t *s, const llm_seq_t *q, uint32_t kind,
    uint32_t *table, uint32_t width)
{
    uint32_t  i;

    memset(table, 0, width * sizeof(*table));

    for (i = q->n_gone[kind]; i < q->n_pages[kind]; i++) {
        table[i] = llm_pages_number(s->pages, q->pages[i], kind);
    }
}


/* positions that a row sees in pages of this kind; 0: all */

uint32_t
llm_sched_window(const llm_sched_t *s, uint32_t kind)
{
    return kind == llm_sched_leaving(s) ? s->conf.runner.window : 0;
}


/*
 * The first page of a kind that a sequence needs when n_kv positions are
 * computed: the first in the window of later rows, or the parent of the page
 * that is put into the prefix tree next, whichever comes first.
 */

uint32_t
llm_sched_first_page(const llm_sched_t *s, uint32_t kind, uint32_t n_kv)
{
    uint32_t  window;

    window = llm_sched_window(s, kind);

    if (window == 0 || n_kv < window || n_kv < LLM_KV_PAGE) {
        return 0;
    }

    return llm_min((n_kv + 1 - window) / LLM_KV_PAGE,
                   n_kv / LLM_KV_PAGE - 1);
}


/*
 * Page i has left the window: will another sequence want it?  A sequence does
 * that continues where this one has, or where others have left its path, or
 * that has the same prompt.  All other pages of a long prompt would push out of
 * the cache what many sequences share.
 */

static int
llm_sched_is_wanted(const llm_sched_t *s, const llm_seq_t *q, uint32_t kind,
    uint32_t i)
{
    uint32_t  k, at[3];

    at[0] = q->entry;
    at[1] = q->branch;
    at[2] = (q->prompt->n - 1) / LLM_KV_PAGE * LLM_KV_PAGE;

    for (k = 0; k < llm_nelems(at); k++) {
        if (i < at[k] / LLM_KV_PAGE
            && i >= llm_sched_first_page(s, kind, at[k]))
        {
            return 1;
        }
    }

    return 0;
}


/* frees the pages that are not needed any more when the positions below n_kv
   are computed */

void
llm_sched_leave(llm_sched_t *s, llm_seq_t *q, uint32_t n_kv)
{
    uint32_t  i, kind, first;

    kind = llm_sched_leaving(s);
    first = llm_sched_first_page(s, kind, n_kv);

    while (q->n_gone[kind] < first) {
        i = q->n_gone[kind]++;

        if (llm_sched_is_wanted(s, q, kind, i)) {
            llm_pages_drop(s->pages, q->pages[i], kind);

        } else {
            llm_pages_pass(s->pages, q->pages[i], kind);
        }

        if (kind == LLM_KV_FULL) {
            q->pages[i] = LLM_PAGE_NONE;
        }
    }
}


/* makes room for n pages in a sequence's table; LLM_ERROR: no memory */

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


/* adds a node at the end of a sequence's table; the sequence holds its page of
   the first kind.  LLM_ERROR: no memory */

int
llm_sched_add_page(llm_sched_t *s, llm_seq_t *q, uint32_t node)
{
    uint32_t  n;

    n = q->n_pages[LLM_KV_FULL];

    if (llm_sched_reserve(s, q, n + 1) != LLM_OK) {
        return LLM_ERROR;
    }

    q->pages[n] = node;
    q->n_pages[LLM_KV_FULL]++;

    return LLM_OK;
}
