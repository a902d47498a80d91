/*
 * Text as a JSON string literal, and flat values as JSON.  The result is
 * valid UTF-8 and valid JSON for any bytes: what is not UTF-8 becomes U+FFFD,
 * as does U+0000, which many clients and databases cannot store.
 */

#include "engine/api/json.h"
#include "engine/api/plain.h"
#include "engine/base/utf8.h"

#include <math.h>
#include <stdio.h>


static int
llm_json_add_escaped(llm_buf_t *b, unsigned char c)
{
    static const char  hex[] = "0123456789abcdef";

    char  u[6] = { '\\', 'u', '0', '0', 0, 0 };

    switch (c) {

    case '"':
        return llm_buf_add(b, "\\\"", 2);

    case '\\':
        return llm_buf_add(b, "\\\\", 2);

    case '\b':
        return llm_buf_add(b, "\\b", 2);

    case '\f':
        return llm_buf_add(b, "\\f", 2);

    case '\n':
        return llm_buf_add(b, "\\n", 2);

    case '\r':
        return llm_buf_add(b, "\\r", 2);

    case '\t':
        return llm_buf_add(b, "\\t", 2);

    default:
        u[4] = hex[c >> 4];
        u[5] = hex[c & 15];
        return llm_buf_add(b, u, 6);
    }
}


int
llm_json_add_text(llm_buf_t *b, const char *s, size_t len)
{
    size_t  i, n, run;

    i = 0;

    while (i < len) {
        run = i;

        /* runs of plain bytes and whole characters are copied at once */

        for ( ;; ) {
            i += llm_api_plain_run(s + i, len - i, 0);

            if (i == len || (unsigned char) s[i] < 0x80) {
                break;
            }

            n = llm_utf8_decode(s + i, len - i, NULL);
            if (n == 0) {
                break;
            }

            i += n;
        }

        (void) llm_buf_add(b, s + run, i - run);

        if (i == len) {
            break;
        }

        if (s[i] == '\0') {
            (void) llm_buf_adds(b, LLM_UTF8_REPLACEMENT);
            i++;

        } else if ((unsigned char) s[i] < 0x80) {
            (void) llm_json_add_escaped(b, (unsigned char) s[i]);
            i++;

        } else {
            (void) llm_buf_adds(b, LLM_UTF8_REPLACEMENT);
            i += llm_utf8_bad(s + i, len - i, NULL);
        }
    }

    return b->failed ? LLM_ERROR : LLM_OK;
}


int
llm_json_add_string(llm_buf_t *b, const char *s, size_t len)
{
    (void) llm_buf_addc(b, '"');
    (void) llm_json_add_text(b, s, len);

    return llm_buf_addc(b, '"');
}


/* the shortest digits from which the same number is read; always with a
   fraction or an exponent, so that it stays a decimal number */

static void
llm_json_add_double(llm_buf_t *b, double d)
{
    int   digits;
    char  text[40];

    if (!isfinite(d)) {
        (void) llm_buf_adds(b, "null");
        return;
    }

    for (digits = 15; digits < 18; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, d);

        if (strtod(text, NULL) == d) {
            break;
        }
    }

    (void) llm_buf_adds(b, text);

    if (strpbrk(text, ".e") == NULL) {
        (void) llm_buf_adds(b, ".0");
    }
}


static void
llm_json_add_children(llm_buf_t *b, const llm_flat_t *v)
{
    int                object, key;
    const llm_flat_t  *child;

    object = v->type == LLM_FLAT_OBJECT;
    key = 1;

    (void) llm_buf_addc(b, object ? '{' : '[');

    for (child = llm_flat_first(v); child; child = llm_flat_next(v, child)) {
        if (child != llm_flat_first(v)) {
            (void) llm_buf_addc(b, object && !key ? ':' : ',');
        }

        (void) llm_json_add_flat(b, child);
        key = !key;
    }

    (void) llm_buf_addc(b, object ? '}' : ']');
}


int
llm_json_add_flat(llm_buf_t *b, const llm_flat_t *v)
{
    llm_str_t  s;

    switch (v->type) {

    case LLM_FLAT_NULL:
        return llm_buf_adds(b, "null");

    case LLM_FLAT_BOOL:
        return llm_buf_adds(b, llm_flat_int(v) ? "true" : "false");

    case LLM_FLAT_INT:
        return llm_buf_addf(b, "%lld", (long long) llm_flat_int(v));

    case LLM_FLAT_DOUBLE:
        s = llm_flat_digits(v);

        if (s.len) {
            return llm_buf_add(b, s.data, s.len);
        }

        llm_json_add_double(b, llm_flat_double(v));
        break;

    case LLM_FLAT_STRING:
        s = llm_flat_str(v);
        return llm_json_add_string(b, s.data, s.len);

    default:
        llm_json_add_children(b, v);
    }

    return b->failed ? LLM_ERROR : LLM_OK;
}
