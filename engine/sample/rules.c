/*
 * Rules for tokens and words; see rules.h.
 */

#include "engine/sample/rules.h"

#include <math.h>


void
llm_rules_mask(const uint32_t *mask, uint32_t n, float *row)
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
llm_rules_have_words(const llm_rules_t *rules)
{
    uint32_t  i;

    for (i = 0; rules && i < rules->n_bad; i++) {
        if (rules->bad[i].n > 1) {
            return 1;
        }
    }

    return 0;
}


void
llm_rules_apply(const llm_rules_t *rules, const llm_history_t *h, float *row,
    uint32_t n)
{
    int32_t                last;
    uint32_t               i;
    const llm_bad_word_t  *w;

    if (rules == NULL) {
        return;
    }

    for (i = 0; i < rules->n_bad; i++) {
        w = &rules->bad[i];
        last = w->ids[w->n - 1];

        if (last >= 0 && (uint32_t) last < n
            && llm_history_ends(h, w->ids, w->n - 1))
        {
            row[last] = -INFINITY;
        }
    }

    if (rules->allowed) {
        llm_rules_mask(rules->allowed, n, row);
    }
}
