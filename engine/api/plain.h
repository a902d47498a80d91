/*
 * The scan that reading and writing JSON strings share: how far do plain
 * bytes go?
 */

#ifndef LLM_API_PLAIN_H
#define LLM_API_PLAIN_H

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes from s on that stand in a JSON string as they are: no control
 * character, quote or backslash, and ASCII only unless any is set.  Eight
 * at a time; any is a constant.
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

        /* a byte with its top bit set is at or after the first bad one */

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
