/*
 * The scan for plain bytes, which reading and writing JSON strings share.
 */

#ifndef LLM_API_PLAIN_H
#define LLM_API_PLAIN_H

#include <stddef.h>
#include <stdint.h>

/*
 * The number of bytes at s that need no escape in a JSON string: no control
 * character, quote or backslash, and only ASCII unless any is set.  Compares
 * eight bytes at a time; any is a constant.
 */
static inline size_t
llm_api_plain_run(const char *s, size_t len, int any)
{
    size_t         i;
    uint64_t       w, q, b, bad;
    unsigned char  c;

    const uint64_t  one = 0x0101010101010101ull;
    const uint64_t  top = 0x8080808080808080ull;

    for (i = 0; i + 8 <= len; i += 8) {
        __builtin_memcpy(&w, s + i, 8);

        /* the first byte whose top bit is set is bad; a later one may be set
           wrongly */

        q = w ^ (one * '"');
        b = w ^ (one * '\\');
        bad = ((w - one * 0x20) & ~w) | ((q - one) & ~q) | ((b - one) & ~b);

        if ((any ? bad : bad | w) & top) {
            break;
        }
    }

    for ( /* void */ ; i < len; i++) {
        c = (unsigned char) s[i];

        if (c < 0x20 || c == '"' || c == '\\' || (c >= 0x80 && !any)) {
            break;
        }
    }

    return i;
}

#endif /* LLM_API_PLAIN_H */
