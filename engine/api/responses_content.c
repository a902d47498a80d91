/*
 * The contents of a Responses request's items.
 */

#include "engine/api/responses.h"


void
llm_api_responses_where(const llm_api_draft_t *d, int assistant,
    llm_api_part_at_t *where)
{
    llm_api_media_rules(d->rd, &where->rules);
    where->assistant = assistant;
    where->old = d->old;
    where->goes_on = 0;                 /* the answer is a new item */
    where->known = "This model takes text only: content parts of the types "
                   "'input_text', 'output_text' and 'refusal'.";
}


int
llm_api_responses_content(llm_api_draft_t *d, const llm_flat_t *content,
    const llm_api_at_t *at, llm_err_t *err)
{
    uint32_t            i;
    const llm_flat_t   *part;
    llm_api_part_at_t   where;

    if (content->type == LLM_FLAT_STRING) {
        llm_api_draft_text(d, llm_flat_str(content));
        return LLM_OK;
    }

    if (content->type != LLM_FLAT_ARRAY) {
        return llm_api_bad_type(err, at, "a string or an array of objects",
                                content);
    }

    part = llm_flat_first(content);
    llm_api_responses_where(d, strcmp(d->role, "assistant") == 0, &where);

    for (i = 0; part; i++) {
        if (llm_api_draft_part(d, part, &where, llm_api_idx(at, i), err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        part = llm_flat_next(content, part);
    }

    return LLM_OK;
}


int
llm_api_responses_texts(llm_buf_t *out, const llm_flat_t *list)
{
    int                found;
    llm_str_t          s;
    const llm_flat_t  *v, *text;

    found = 0;

    if (list == NULL || list->type != LLM_FLAT_ARRAY) {
        return 0;
    }

    for (v = llm_flat_first(list); v; v = llm_flat_next(list, v)) {
        text = llm_flat_get(v, "text");

        if (text && text->type == LLM_FLAT_STRING) {
            if (found) {
                (void) llm_buf_addc(out, '\n');
            }

            s = llm_flat_str(text);
            (void) llm_buf_add(out, s.data, s.len);
            found = 1;
        }
    }

    return found;
}
