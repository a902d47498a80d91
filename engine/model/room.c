/*
 * What a model's caches leave of a device's memory for what is loaded after it
 * (beside.c).
 *
 * On a GPU what drafts has of the memory for KV caches the share of its pages
 * in the pages of both, so that it drafts for as long a sequence as the model
 * has.  In the machine's memory each model takes half of what is free, so what
 * is left is what the least of its cache needs.
 */

#include "engine/model/model_internal.h"


size_t
llm_beside_part(const llm_beside_t *b, const llm_model_t *m, uint32_t i,
    size_t room, size_t page)
{
    size_t    n, share;
    uint32_t  parts;

    n = i == 0 ? b->tower * llm_max(m->n_members, 1u) : 0;

    /* a head is on the last device, a small model on all */

    if (b->head && i + 1 < m->n_parts) {
        return n;
    }

    parts = b->head ? 1 : m->n_parts;

    if (!b->gpu) {
        return n + llm_beside_draft_bytes(b) / parts;
    }

    n += b->draft / parts;

    if (b->page == 0) {
        return n;
    }

    room -= llm_min(room, n);
    share = (size_t) ((double) room * (double) b->page
                      / ((double) page * parts + (double) b->page));
    share = llm_min(share, b->pages / parts * b->page);

    return n + llm_min(share, room / 2);
}
