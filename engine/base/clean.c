/*
 * Makes text from outside safe for messages and logs.
 */

#include "engine/base/base.h"
#include "engine/base/utf8.h"


/* control characters, and those that break a line or change its direction */

static int
llm_is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c
           || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e)
           || (c >= 0x2066 && c <= 0x2069);
}


size_t
llm_clean(char *out, size_t size, const char *s, size_t len)
{
    size_t    i, n, j, bytes;
    uint32_t  c;

    static const char  hex[] = "0123456789abcdef";

    n = 0;

    for (i = 0; i < len; i += bytes) {
        c = 0;
        bytes = llm_utf8_decode(s + i, len - i, &c);

        if (bytes && !llm_is_control(c)) {
            if (n + bytes >= size) {
                break;
            }

            memcpy(out + n, s + i, bytes);
            n += bytes;
            continue;
        }

        bytes = bytes ? bytes : 1;

        if (n + 4 * bytes >= size) {
            break;
        }

        for (j = i; j < i + bytes; j++) {
            out[n++] = '\\';
            out[n++] = 'x';
            out[n++] = hex[(unsigned char) s[j] >> 4];
            out[n++] = hex[(unsigned char) s[j] & 15];
        }
    }

    out[n] = '\0';

    return n;
}


void
llm_hide_folder(char *msg, const char *path)
{
    char        *p;
    size_t       len;
    const char  *base;

    base = path ? strrchr(path, '/') : NULL;

    if (base == NULL) {
        return;
    }

    len = (size_t) (base + 1 - path);

    for (p = msg; (p = memmem(p, strlen(p), path, len)) != NULL; ) {
        memmove(p, p + len, strlen(p + len) + 1);
    }
}
