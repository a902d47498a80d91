/*
 * What a message says, read from its flat value; see norm.h.
 */

#include "engine/text/chat/norm.h"


int
llm_chat_is(const llm_flat_t *v, const char *s)
{
    llm_str_t  text;

    if (v == NULL || v->type != LLM_FLAT_STRING) {
        return 0;
    }

    text = llm_flat_str(v);

    return text.len == strlen(s) && memcmp(text.data, s, text.len) == 0;
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


int
llm_chat_flag(const llm_flat_t *request, const char *key)
{
    const llm_flat_t  *v;

    v = llm_flat_get(request, key);

    return v && v->type == LLM_FLAT_BOOL && llm_flat_int(v);
}
