/*
 * Tokens and words that may not be drawn; see filter.h.
 */

#include "engine/sample/filter.h"

#include <math.h>


void
llm_filter_mask(const uint32_t *mask, uint32_t n, float *row)
{
    uint32_t  i, word;

    for (i = 0; i < n; i++) {
        word = mask[i / 32];

        if (word == UINT32_MAX && i % 32 == 0 && n - i >= 32) {
            i += 31;
            continue;
        }

        if (!((word >> (i % 32)) & 1)) {
            row[i] = -INFINITY;
        }
    }
}


int
llm_filter_has_words(const llm_filter_t *filter)
{
    uint32_t  i;

    for (i = 0; filter && i < filter->n_bad; i++) {
        if (filter->bad[i].n > 1) {
            return 1;
        }
    }

    return 0;
}


void
llm_filter_apply(const llm_filter_t *filter, const llm_history_t *h,
    float *row, uint32_t n)
{
    int32_t                last;
    uint32_t               i;
    const llm_bad_word_t  *w;

    if (filter == NULL) {
        return;
    }

    for (i = 0; i < filter->n_bad; i++) {
        w = &filter->bad[i];
        last = w->ids[w->n - 1];

        if (last >= 0 && (uint32_t) last < n
            && llm_history_ends(h, w->ids, w->n - 1))
        {
            row[last] = -INFINITY;
        }
    }

    if (filter->allowed) {
        llm_filter_mask(filter->allowed, n, row);
    }
}
