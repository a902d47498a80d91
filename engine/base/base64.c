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


/* the digits of a text, without its padding */

static size_t
llm_base64_digits(const char *s, size_t len)
{
    if (len % 4 == 0 && len && s[len - 1] == '=') {
        len -= s[len - 2] == '=' ? 2 : 1;
    }

    return len;
}


size_t
llm_base64_size(const char *s, size_t len)
{
    size_t  n;

    n = llm_base64_digits(s, len);

    return n % 4 == 1 ? SIZE_MAX : n / 4 * 3 + n % 4 * 3 / 4;
}


int
llm_base64_read(unsigned char *out, const char *s, size_t len)
{
    int            bad, digit;
    size_t         i, k, n, rest;
    uint32_t       v;
    unsigned char  of[256];

    /* a value above 63 is no digit */

    for (i = 0; i < sizeof(of); i++) {
        digit = llm_base64_digit((char) i);
        of[i] = digit < 0 ? 0x80 : (unsigned char) digit;
    }

    bad = 0;
    n = llm_base64_digits(s, len);

    if (n % 4 == 1) {
        return LLM_ERROR;
    }

    for (i = 0; i + 4 <= n; i += 4) {
        v = 0;

        for (k = 0; k < 4; k++) {
            digit = of[(unsigned char) s[i + k]];
            bad |= digit;
            v = v << 6 | (digit & 63);
        }

        *out++ = (unsigned char) (v >> 16);
        *out++ = (unsigned char) (v >> 8);
        *out++ = (unsigned char) v;
    }

    for (v = 0, rest = n - i, k = 0; k < rest; k++) {
        digit = of[(unsigned char) s[i + k]];
        bad |= digit;
        v |= (uint32_t) (digit & 63) << (18 - 6 * k);
    }

    for (k = 0; k + 1 < rest; k++) {
        *out++ = (unsigned char) (v >> (16 - 8 * k));
    }

    return bad & 0x80 ? LLM_ERROR : LLM_OK;
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
