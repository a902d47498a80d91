/*
 * Text as a JSON string literal.  The result is valid UTF-8 and valid JSON
 * for any bytes: what is not UTF-8 becomes U+FFFD.
 */

#include "engine/api/json.h"
#include "engine/api/plain.h"
#include "engine/base/utf8.h"


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

        if ((unsigned char) s[i] < 0x80) {
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


static void
llm_json_add_children(llm_buf_t *b, const llm_flat_t *v)
{
    uint32_t           i;
    const llm_flat_t  *child;

    for (i = 0, child = llm_flat_first(v); child;
         i++, child = llm_flat_next(v, child))
    {
        if (i) {
            (void) llm_buf_addc(b, v->type == LLM_FLAT_OBJECT && i % 2 ? ':'
                                                                       : ',');
        }

        llm_json_add_flat(b, child);
    }
}


void
llm_json_add_flat(llm_buf_t *b, const llm_flat_t *v)
{
    llm_str_t  s;

    switch (v->type) {

    case LLM_FLAT_BOOL:
        (void) llm_buf_adds(b, llm_flat_int(v) ? "true" : "false");
        break;

    case LLM_FLAT_INT:
        (void) llm_buf_addf(b, "%lld", (long long) llm_flat_int(v));
        break;

    case LLM_FLAT_DOUBLE:
        (void) llm_buf_addf(b, "%.17g", llm_flat_double(v));
        break;

    case LLM_FLAT_STRING:
        s = llm_flat_str(v);
        (void) llm_json_add_string(b, s.data, s.len);
        break;

    case LLM_FLAT_ARRAY:
        (void) llm_buf_addc(b, '[');
        llm_json_add_children(b, v);
        (void) llm_buf_addc(b, ']');
        break;

    case LLM_FLAT_OBJECT:
        (void) llm_buf_addc(b, '{');
        llm_json_add_children(b, v);
        (void) llm_buf_addc(b, '}');
        break;

    default:
        (void) llm_buf_adds(b, "null");
    }
}
