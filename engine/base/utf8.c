/*
 * UTF-8; see utf8.h.
 */

#include "engine/base/utf8.h"


/*
 * The length of a character with the first byte c; 0: no character begins with
 * c.  *low and *high: range of its second byte, which excludes overlong forms,
 * surrogates and values above U+10FFFF.
 */

static size_t
llm_utf8_lead(unsigned char c, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xbf;

    if (c < 0x80) {
        return 1;
    }

    if (c < 0xc2 || c > 0xf4) {
        return 0;
    }

    if (c < 0xe0) {
        return 2;
    }

    if (c < 0xf0) {
        *low = c == 0xe0 ? 0xa0 : 0x80;
        *high = c == 0xed ? 0x9f : 0xbf;
        return 3;
    }

    *low = c == 0xf0 ? 0x90 : 0x80;
    *high = c == 0xf4 ? 0x8f : 0xbf;

    return 4;
}


/*
 * Bytes from p on that belong to the first character, whose full length is
 * *want; 0: no character begins with p[0]
 */

static size_t
llm_utf8_scan(const unsigned char *p, size_t n, size_t *want)
{
    size_t         i;
    unsigned char  low, high;

    *want = llm_utf8_lead(p[0], &low, &high);

    if (*want == 0) {
        return 0;
    }

    for (i = 1; i < *want && i < n; i++) {
        if (p[i] < low || p[i] > high) {
            break;
        }

        low = 0x80;
        high = 0xbf;
    }

    return i;
}


size_t
llm_utf8_decode(const char *p, size_t n, uint32_t *cp)
{
    size_t                i, want;
    uint32_t              c;
    const unsigned char  *u;

    if (n == 0) {
        return 0;
    }

    u = (const unsigned char *) p;

    if (llm_utf8_scan(u, n, &want) != want || want == 0) {
        return 0;
    }

    if (cp) {
        c = want == 1 ? u[0] : u[0] & (0x7fu >> want);

        for (i = 1; i < want; i++) {
            c = c << 6 | (u[i] & 0x3f);
        }

        *cp = c;
    }

    return want;
}


size_t
llm_utf8_bad(const char *p, size_t n, int *partial)
{
    size_t  have, want;

    have = llm_utf8_scan((const unsigned char *) p, n, &want);

    if (partial) {
        *partial = have == n && have < want;
    }

    return have ? have : 1;
}


size_t
llm_utf8_encode(char *out, uint32_t cp)
{
    if (cp < 0x80) {
        out[0] = (char) cp;
        return 1;
    }

    if (cp < 0x800) {
        out[0] = (char) (0xc0 | cp >> 6);
        out[1] = (char) (0x80 | (cp & 0x3f));
        return 2;
    }

    if (cp < 0x10000) {
        out[0] = (char) (0xe0 | cp >> 12);
        out[1] = (char) (0x80 | (cp >> 6 & 0x3f));
        out[2] = (char) (0x80 | (cp & 0x3f));
        return 3;
    }

    out[0] = (char) (0xf0 | cp >> 18);
    out[1] = (char) (0x80 | (cp >> 12 & 0x3f));
    out[2] = (char) (0x80 | (cp >> 6 & 0x3f));
    out[3] = (char) (0x80 | (cp & 0x3f));

    return 4;
}


size_t
llm_utf8_valid(const char *p, size_t n)
{
    size_t    i, len;
    uint64_t  w;

    i = 0;

    while (i < n) {

        if (n - i >= sizeof(w)) {
            memcpy(&w, p + i, sizeof(w));

            if ((w & 0x8080808080808080) == 0) {
                i += sizeof(w);
                continue;
            }
        }

        len = llm_utf8_decode(p + i, n - i, NULL);
        if (len == 0) {
            break;
        }

        i += len;
    }

    return i;
}
