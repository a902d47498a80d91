/*
 * Reads what a message says from its flat value; see norm.h.
 */

#include "engine/text/chat/norm.h"

#include <stdio.h>


int
llm_chat_is(const llm_flat_t *v, const char *s)
{
    llm_str_t  text;

    if (v == NULL || v->type != LLM_FLAT_STRING) {
        return 0;
    }

    text = llm_flat_str(v);

    return llm_str_is(text, s);
}


int
llm_chat_add_text(llm_buf_t *out, const llm_flat_t *content)
{
    int                more;
    llm_str_t          s;
    const llm_flat_t  *part, *text;

    if (content == NULL) {
        return LLM_OK;
    }

    if (content->type == LLM_FLAT_STRING) {
        s = llm_flat_str(content);
        return llm_buf_add(out, s.data, s.len);
    }

    if (content->type != LLM_FLAT_ARRAY) {
        return LLM_OK;
    }

    more = 0;

    for (part = llm_flat_first(content); part;
         part = llm_flat_next(content, part))
    {
        text = part->type == LLM_FLAT_STRING ? part
               : llm_flat_get(part, "text");

        if (text == NULL || text->type != LLM_FLAT_STRING) {
            continue;
        }

        s = llm_flat_str(text);

        if ((more && llm_buf_addc(out, '\n') != LLM_OK)
            || llm_buf_add(out, s.data, s.len) != LLM_OK)
        {
            return LLM_ERROR;
        }

        more = 1;
    }

    return LLM_OK;
}


uint32_t
llm_chat_add_members(llm_buf_t *out, const llm_flat_t *object,
    const char *but, const char *or)
{
    uint32_t           n;
    const llm_flat_t  *k, *v;

    n = 0;

    for (k = llm_flat_first(object); k; k = llm_flat_next(object, v)) {
        v = llm_flat_next(object, k);

        if ((but && llm_chat_is(k, but)) || (or && llm_chat_is(k, or))) {
            continue;
        }

        llm_flat_add_node(out, k);
        llm_flat_add_node(out, v);
        n++;
    }

    return n;
}


int
llm_chat_flag(const llm_flat_t *request, const char *key)
{
    const llm_flat_t  *v;

    v = llm_flat_get(request, key);

    return v && v->type == LLM_FLAT_BOOL && llm_flat_int(v);
}


int
llm_chat_add_json(llm_buf_t *out, const llm_flat_t *v)
{
    char               close, c[8];
    size_t             i;
    llm_str_t          s;
    const llm_flat_t  *p;

    switch (v->type) {

    case LLM_FLAT_NULL:
        return llm_buf_adds(out, "null");

    case LLM_FLAT_BOOL:
        return llm_buf_adds(out, llm_flat_int(v) ? "true" : "false");

    case LLM_FLAT_INT:
        return llm_buf_addf(out, "%lld", (long long) llm_flat_int(v));

    case LLM_FLAT_DOUBLE:
        s = llm_flat_digits(v);

        return s.len ? llm_buf_add(out, s.data, s.len)
                     : llm_buf_addf(out, "%.17g", llm_flat_double(v));

    case LLM_FLAT_STRING:
        s = llm_flat_str(v);
        (void) llm_buf_addc(out, '"');

        for (i = 0; i < s.len; i++) {
            if (s.data[i] == '"' || s.data[i] == '\\') {
                snprintf(c, sizeof(c), "\\%c", s.data[i]);

            } else if ((unsigned char) s.data[i] < 0x20) {
                snprintf(c, sizeof(c), "\\u%04x", s.data[i]);

            } else {
                snprintf(c, sizeof(c), "%c", s.data[i]);
            }

            (void) llm_buf_adds(out, c);
        }

        return llm_buf_addc(out, '"');
    }

    close = v->type == LLM_FLAT_ARRAY ? ']' : '}';
    (void) llm_buf_addc(out, v->type == LLM_FLAT_ARRAY ? '[' : '{');

    for (p = llm_flat_first(v), i = 0; p; p = llm_flat_next(v, p), i++) {
        if (i) {
            (void) llm_buf_adds(out, close == '}' && i % 2 ? ": " : ", ");
        }

        if (llm_chat_add_json(out, p) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return llm_buf_addc(out, close);
}
