/*
 * Images and sound of messages: which of them a template gets to see, and in
 * which order.  Templates write a placeholder of their own for each such part,
 * as text that is theirs (trusted); a client's text that is spelt alike is not.
 */

#include "engine/text/chat/norm.h"
#include "engine/llm.h"


/* the index of a part's media; -1: it is none */

static int64_t
llm_chat_media_of(const llm_flat_t *part)
{
    const llm_flat_t  *type, *index;

    if (part->type != LLM_FLAT_OBJECT) {
        return -1;
    }

    type = llm_flat_get(part, "type");

    if (!llm_chat_is(type, "image") && !llm_chat_is(type, "audio")) {
        return -1;
    }

    index = llm_flat_get(part, LLM_CHAT_MEDIA);

    return index && index->type == LLM_FLAT_INT ? llm_flat_int(index) : -1;
}


/* writes the indices of the media in messages, in order, to list, `most` at
   most; returns how many there are */

static uint32_t
llm_chat_find_media(const llm_flat_t *messages, uint32_t *list, uint32_t most)
{
    int64_t            index;
    uint32_t           n;
    const llm_flat_t  *msg, *content, *part;

    n = 0;
    msg = messages && messages->type == LLM_FLAT_ARRAY
          ? llm_flat_first(messages) : NULL;

    for ( /* void */ ; msg; msg = llm_flat_next(messages, msg)) {
        content = llm_flat_get(msg, "content");

        if (content == NULL || content->type != LLM_FLAT_ARRAY) {
            continue;
        }

        for (part = llm_flat_first(content); part;
             part = llm_flat_next(content, part))
        {
            index = llm_chat_media_of(part);

            if (index < 0) {
                continue;
            }

            if (n < most) {
                list[n] = (uint32_t) llm_min(index, (int64_t) UINT32_MAX);
            }

            n++;
        }
    }

    return n;
}


int
llm_chat_keeps_media(const llm_flat_t *before, const llm_flat_t *after,
    llm_err_t *err)
{
    uint32_t  n;

    n = llm_chat_find_media(before, NULL, 0);

    if (n == 0 || n == llm_chat_find_media(after, NULL, 0)) {
        return LLM_OK;
    }

    return llm_fail_with(err, 400, LLM_JINJA_FAILED, "messages",
                         "The model's chat template has a place for text "
                         "only in messages of such a role, none for images or "
                         "sound.");
}


int
llm_chat_note_media(const llm_flat_t *messages, llm_prompt_t *out,
    llm_err_t *err)
{
    uint32_t  n;

    n = llm_chat_find_media(messages, NULL, 0);

    if (n == 0) {
        return LLM_OK;
    }

    out->media = malloc(n * sizeof(uint32_t));
    if (out->media == NULL) {
        return llm_fail(err, "chat template: out of memory");
    }

    out->n_media = llm_chat_find_media(messages, out->media, n);

    return LLM_OK;
}
