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


/* white space of HTML and of MIME */

static int
llm_base64_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}


/* bytes above the space: those that are no white space, unless there are
   control characters, which are no digits either */

static size_t
llm_base64_count(const char *s, size_t len)
{
    size_t   i, n;
    uint8_t  k, some;

    for (i = 0, n = 0; len - i >= 64; i += 64) {
        for (k = 0, some = 0; k < 64; k++) {
            some += (unsigned char) s[i + k] > ' ';
        }

        n += some;
    }

    for ( /* void */ ; i < len; i++) {
        n += (unsigned char) s[i] > ' ';
    }

    return n;
}


/* the digits of a text: without white space and padding.  *end: bytes up to the
   last of them */

static size_t
llm_base64_digits(const char *s, size_t len, size_t *end)
{
    size_t  n, pads;

    n = llm_base64_count(s, len);

    for (pads = 0; len; len--) {
        if (llm_base64_blank(s[len - 1])) {
            continue;
        }

        if (n % 4 || pads == 2 || s[len - 1] != '=') {
            break;
        }

        pads++;
    }

    *end = len;

    return n - pads;
}


size_t
llm_base64_size(const char *s, size_t len)
{
    size_t  n, end;

    n = llm_base64_digits(s, len, &end);

    return n % 4 == 1 ? SIZE_MAX : n / 4 * 3 + n % 4 * 3 / 4;
}


/* what a character stands for: a digit's value, or one of these */
#define LLM_BASE64_BLANK  0x40
#define LLM_BASE64_NONE   0x80

static void
llm_base64_table(unsigned char of[256])
{
    int     digit;
    size_t  i;

    for (i = 0; i < 256; i++) {
        digit = llm_base64_digit((char) i);
        of[i] = digit >= 0 ? (unsigned char) digit
                : llm_base64_blank((char) i) ? LLM_BASE64_BLANK
                : LLM_BASE64_NONE;
    }
}


/* takes up to four digits from *s, over white space; *v: their bits, from the
   top of 24.  Returns their number, 5: there is a character that is none */

static uint32_t
llm_base64_take(const unsigned char of[256], const unsigned char **s,
    const unsigned char *end, uint32_t *v)
{
    uint32_t  n, is;

    for (n = 0, *v = 0; n < 4 && *s < end; (*s)++) {
        is = of[**s];

        if (is == LLM_BASE64_NONE) {
            return 5;
        }

        if (is != LLM_BASE64_BLANK) {
            *v |= is << (18 - 6 * n++);
        }
    }

    return n;
}


int
llm_base64_read(unsigned char *out, const char *s, size_t len)
{
    size_t                stop;
    uint32_t              i, n, v, is;
    unsigned char         of[256];
    const unsigned char  *p, *end;

    llm_base64_table(of);

    if (llm_base64_digits(s, len, &stop) % 4 == 1) {
        return LLM_ERROR;
    }

    p = (const unsigned char *) s;
    end = p + stop;

    while (p < end) {
        n = 0;

        if (end - p >= 4) {
            is = of[p[0]] | of[p[1]] | of[p[2]] | of[p[3]];
            v = (uint32_t) of[p[0]] << 18 | (uint32_t) of[p[1]] << 12
                | (uint32_t) of[p[2]] << 6 | of[p[3]];

            if (is < LLM_BASE64_BLANK) {
                n = 4;
                p += 4;
            }
        }

        if (n == 0) {
            n = llm_base64_take(of, &p, end, &v);
        }

        if (n > 4) {
            return LLM_ERROR;
        }

        for (i = 0; i + 1 < n; i++) {
            *out++ = (unsigned char) (v >> (16 - 8 * i));
        }
    }

    return LLM_OK;
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
