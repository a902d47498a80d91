/*
 * Base64; see base64.h.
 */

#include "engine/base/base64.h"


static void
llm_base64_group(llm_buf_t *out, const unsigned char *p, uint32_t n)
{
    char      text[4];
    uint32_t  i, v;

    static const char  digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "abcdefghijklmnopqrstuvwxyz0123456789+/";

    v = (uint32_t) p[0] << 16;
    v |= (n > 1) ? (uint32_t) p[1] << 8 : 0;
    v |= (n > 2) ? p[2] : 0;

    for (i = 0; i < 4; i++) {
        text[i] = (i <= n) ? digits[v >> (18 - 6 * i) & 63] : '=';
    }

    (void) llm_buf_add(out, text, 4);
}


void
llm_base64_add(llm_base64_t *b, llm_buf_t *out, const void *data, size_t len)
{
    size_t                i;
    unsigned char         group[3];
    const unsigned char  *p;

    p = data;

    for (i = 0; i < len; i++) {

        if (b->n == 0 && len - i >= 3) {
            llm_base64_group(out, p + i, 3);
            i += 2;
            continue;
        }

        if (b->n < 2) {
            b->left[b->n++] = p[i];
            continue;
        }

        memcpy(group, b->left, 2);
        group[2] = p[i];
        b->n = 0;

        llm_base64_group(out, group, 3);
    }
}


void
llm_base64_end(llm_base64_t *b, llm_buf_t *out)
{
    if (b->n) {
        llm_base64_group(out, b->left, b->n);
        b->n = 0;
    }
}


static int
llm_base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }

    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }

    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }

    return c == '+' ? 62 : c == '/' ? 63 : -1;
}


int
llm_base64_decode(llm_buf_t *out, const char *s, size_t len)
{
    int       digit;
    size_t    i, k, n;
    uint32_t  v;

    if (len % 4) {
        return LLM_ERROR;
    }

    for (i = 0; i < len; i += 4) {
        n = 4;

        if (i + 4 == len && s[i + 3] == '=') {
            n = (s[i + 2] == '=') ? 2 : 3;
        }

        v = 0;

        for (k = 0; k < n; k++) {
            digit = llm_base64_digit(s[i + k]);

            if (digit < 0) {
                return LLM_ERROR;
            }

            v |= (uint32_t) digit << (18 - 6 * k);
        }

        for (k = 0; k + 1 < n; k++) {
            (void) llm_buf_addc(out, (char) (v >> (16 - 8 * k) & 255));
        }
    }

    return out->failed ? LLM_ERROR : LLM_OK;
}
