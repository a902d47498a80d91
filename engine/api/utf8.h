/*
 * The one question that the wire formats ask of bytes: how long is the
 * UTF-8 character here, and is it one (RFC 3629: no overlong forms, no
 * surrogates, nothing above U+10FFFF)?
 */

#ifndef LLM_API_UTF8_H
#define LLM_API_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* bytes of the character at p, 1 to 4; 0: not UTF-8; len is at least 1 */
static inline size_t
llm_api_utf8_char(const char *s, size_t len)
{
    size_t          n, i;
    unsigned char   lo, hi;
    const uint8_t  *p = (const uint8_t *) s;

    if (p[0] < 0x80) {
        return 1;
    }

    /* the second byte's range is what rules out the forbidden ones */

    lo = 0x80;
    hi = 0xbf;

    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        n = 2;

    } else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        n = 3;
        lo = (p[0] == 0xe0) ? 0xa0 : lo;
        hi = (p[0] == 0xed) ? 0x9f : hi;

    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        n = 4;
        lo = (p[0] == 0xf0) ? 0x90 : lo;
        hi = (p[0] == 0xf4) ? 0x8f : hi;

    } else {
        return 0;
    }

    if (len < n || p[1] < lo || p[1] > hi) {
        return 0;
    }

    for (i = 2; i < n; i++) {
        if (p[i] < 0x80 || p[i] > 0xbf) {
            return 0;
        }
    }

    return n;
}


/*
 * Bytes from s on that stand in a JSON string as they are and are ASCII:
 * no control character, quote or backslash.  Eight at a time.
 */
static inline size_t
llm_api_plain_run(const char *s, size_t len)
{
    size_t    i;
    uint64_t  w, q, b, bad;

    const uint64_t  one = 0x0101010101010101ull;
    const uint64_t  top = 0x8080808080808080ull;

    for (i = 0; i + 8 <= len; i += 8) {
        __builtin_memcpy(&w, s + i, 8);

        /* a byte with its top bit set is at or after the first bad one */

        q = w ^ (one * '"');
        b = w ^ (one * '\\');
        bad = (w | (w - one * 0x20) | (q - one) | (b - one)) & top;

        if (bad) {
            break;
        }
    }

    while (i < len && (unsigned char) s[i] >= 0x20
           && (unsigned char) s[i] < 0x80 && s[i] != '"' && s[i] != '\\')
    {
        i++;
    }

    return i;
}

#endif /* LLM_API_UTF8_H */
