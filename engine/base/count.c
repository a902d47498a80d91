/*
 * Parsing of counts with suffixes; see count.h.
 */

#include "engine/base/count.h"


int
llm_count(const char *s, size_t len, uint64_t most, uint64_t *n)
{
    int     shift;
    size_t  i;

    shift = 0;

    if (len > 1) {
        switch (s[len - 1]) {

        case 'k':
        case 'K':
            shift = 10;
            len--;
            break;

        case 'm':
        case 'M':
            shift = 20;
            len--;
            break;
        }
    }

    *n = 0;

    for (i = 0; i < len; i++) {
        if (s[i] < '0' || s[i] > '9'
            || *n > (UINT64_MAX - (uint64_t) (s[i] - '0')) / 10)
        {
            return LLM_ERROR;
        }

        *n = *n * 10 + (uint64_t) (s[i] - '0');
    }

    if (len == 0 || *n > most >> shift) {
        return LLM_ERROR;
    }

    *n <<= shift;

    return LLM_OK;
}
