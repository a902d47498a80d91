/*
 * Any bytes as a pattern, and texts against it: it is read or refused, and
 * what it matches does not depend on how it is asked.
 */

#include "engine/grammar/regex/regex.h"

#include <stdio.h>

/* a pattern of the fuzzer is small; so is what it may become */
#define FUZZ_NODES  50000


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int             whole;
    size_t          n;
    llm_rx_t        rx, not;
    llm_err_t       err;
    const char     *p;
    llm_rx_pool_t  *pool;

    if (size < 2) {
        return 0;
    }

    /* the first byte says how many at the end are the text */

    p = (const char *) data + 2;
    n = size - 2;
    n -= data[0] % (n + 1);

    pool = llm_rx_create(FUZZ_NODES);
    if (pool == NULL) {
        return 0;
    }

    if (llm_rx_parse(pool, p, n, data[1] & 1, &rx, &err) == LLM_OK) {
        whole = llm_rx_matches(pool, rx, p + n, size - 2 - n);
        not = llm_rx_not(pool, rx);

        /* a text that is no UTF-8 matches neither */

        if (whole && llm_rx_matches(pool, not, p + n, size - 2 - n)) {
            abort();
        }

        if (whole && !llm_rx_failed(pool)
            && llm_rx_is_none(pool, rx, 1000) == 1)
        {
            abort();
        }

    } else if (err.status != 400 || err.msg[0] == '\0') {
        abort();
    }

    llm_rx_free(pool);

    return 0;
}
