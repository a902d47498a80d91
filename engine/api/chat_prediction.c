/*
 * A chat request's prediction: text that the answer may have.  It becomes a
 * draft (engine/sched/speculate.c), so it changes how fast the answer comes,
 * never what it says.
 */

#include "engine/api/chat.h"


/* the text of a part, {"type": "text", "text": ...}; NULL and *err: none */

static const llm_flat_t *
llm_api_predicted_part(const llm_flat_t *part, const llm_api_at_t *at,
    llm_err_t *err)
{
    const llm_flat_t  *type;

    if (llm_api_check_type(err, at, part, LLM_FLAT_OBJECT) != LLM_OK) {
        return NULL;
    }

    type = llm_api_need(err, at, part, "type", LLM_FLAT_STRING);

    if (type == NULL) {
        return NULL;
    }

    if (!llm_api_str_is(type, "text")) {
        (void) llm_api_bad_word(err, llm_api_key(at, "type"),
                                llm_flat_str(type),
                                "Supported values are: 'text'.");
        return NULL;
    }

    return llm_api_need(err, at, part, "text", LLM_FLAT_STRING);
}


/* appends the texts of all parts to the message */

static int
llm_api_predicted_parts(const llm_flat_t *list, const llm_api_at_t *at,
    llm_buf_t *msg, llm_err_t *err)
{
    uint32_t           i;
    llm_str_t          s;
    const llm_flat_t  *part, *text;

    part = llm_flat_first(list);

    for (i = 0; part; i++, part = llm_flat_next(list, part)) {
        text = llm_api_predicted_part(part, llm_api_idx(at, i), err);

        if (text == NULL) {
            return LLM_ERROR;
        }

        s = llm_flat_str(text);
        (void) llm_buf_add(msg, s.data, s.len);
    }

    return LLM_OK;
}


int
llm_api_write_prediction(llm_api_reader_t *rd, const llm_api_chat_t *b,
    llm_err_t *err)
{
    size_t               start;
    llm_str_t            s;
    const llm_flat_t    *content;
    const llm_api_at_t  *at;

    content = llm_api_member(b->prediction, "content");

    if (content == NULL) {
        return LLM_OK;
    }

    at = llm_api_key(llm_api_top("prediction"), "content");
    start = rd->msg->len;

    if (content->type == LLM_FLAT_STRING) {
        s = llm_flat_str(content);
        (void) llm_buf_add(rd->msg, s.data, s.len);

    } else if (content->type != LLM_FLAT_ARRAY) {
        return llm_api_bad_type(err, at, "a string or an array of objects",
                                content);

    } else if (llm_api_predicted_parts(content, at, rd->msg, err) != LLM_OK) {
        return LLM_ERROR;
    }

    rd->r.prediction.off = (uint32_t) start;
    rd->r.prediction.len = (uint32_t) (rd->msg->len - start);
    (void) llm_buf_pad(rd->msg);

    return LLM_OK;
}
