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
