/*
 * Finds the end of a value whose text still comes; see literal.h.
 */

#include "engine/emit/literal.h"


/* may the byte stand outside of strings? */

static int
llm_lit_plain(const llm_lit_scan_t *s, char c)
{
    if (s->quote.len) {
        return c != '<';
    }

    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z')
           || (c >= 'A' && c <= 'Z') || (c && strchr(" \t\r\n,:=.+-_", c));
}


/* reads a string: 1: the scan goes on at s->pos; 0: the text ends first */

static int
llm_lit_scan_string(llm_lit_scan_t *s, llm_str_t text)
{
    char        c;
    const char  *end;

    if (s->inside == 1) {
        end = memmem(text.data + s->pos, text.len - s->pos, s->quote.data,
                     s->quote.len);

        if (end == NULL) {
            if (text.len - s->pos >= s->quote.len) {
                s->pos = text.len - s->quote.len + 1;
            }

            return 0;
        }

        s->pos = (size_t) (end - text.data) + s->quote.len;
        s->inside = 0;

        return 1;
    }

    while (s->pos < text.len) {
        c = text.data[s->pos];

        if (c == '\\') {
            if (text.len - s->pos < 2) {
                return 0;
            }

            s->pos++;

        } else if (c == s->inside) {
            s->inside = 0;
            s->pos++;
            return 1;
        }

        s->pos++;
    }

    return 0;
}


int
llm_lit_scan(llm_lit_scan_t *s, llm_str_t text)
{
    char    c;
    size_t  left;

    while (s->pos < text.len) {

        if (s->inside) {
            if (!llm_lit_scan_string(s, text)) {
                return LLM_MORE;
            }

            continue;
        }

        c = text.data[s->pos];
        left = text.len - s->pos;

        if (s->quote.len && c == s->quote.data[0]) {
            if (memcmp(text.data + s->pos, s->quote.data,
                       llm_min(left, s->quote.len))
                != 0)
            {
                return LLM_ERROR;
            }

            if (left < s->quote.len) {
                return LLM_MORE;
            }

            s->inside = 1;
            s->pos += s->quote.len;
            continue;
        }

        s->pos++;

        if (c == '{' || c == '[' || c == '(') {
            s->depth++;

        } else if (c == '}' || c == ']' || c == ')') {
            if (s->depth == 0) {
                s->pos--;
                return LLM_ERROR;
            }

            if (--s->depth == 0) {
                return LLM_OK;
            }

        } else if (s->quote.len == 0 && (c == '"' || c == '\'')) {
            s->inside = c;

        } else if (!llm_lit_plain(s, c)) {
            s->pos--;
            return LLM_ERROR;
        }
    }

    return LLM_MORE;
}
