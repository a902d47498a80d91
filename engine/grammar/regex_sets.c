/*
 * Sets of characters that patterns have names for; see regex_internal.h.
 */

#include "engine/grammar/regex_internal.h"
#include "engine/grammar/regex_tables.h"


const llm_rx_range_t *
llm_rx_property(const char *name, size_t len, size_t *n)
{
    size_t                  i;
    const llm_rx_named_t   *p;

    for (i = 0; i < llm_nelems(llm_rx_names); i++) {
        p = &llm_rx_names[i];

        if ((strlen(p->name) == len && memcmp(p->name, name, len) == 0)
            || (strlen(p->alias) == len && memcmp(p->alias, name, len) == 0))
        {
            *n = p->n;
            return llm_rx_ranges + p->first;
        }
    }

    return NULL;
}
