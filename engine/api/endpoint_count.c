/*
 * POST /messages/count_tokens, /responses/input_tokens and
 * /chat/completions/input_tokens: how many tokens the prompt of such a request
 * has.
 */

#include "engine/api/chat.h"
#include "engine/api/messages.h"
#include "engine/api/responses.h"


/* reads the request; a count is never streamed */

static int
llm_api_count_messages(llm_api_reader_t *rd, llm_err_t *err)
{
    if (llm_api_messages_parse(rd, err) != LLM_OK) {
        return LLM_ERROR;
    }

    rd->r.flags &= ~(uint32_t) LLM_REQ_STREAM;

    return LLM_OK;
}


static int
llm_api_count_responses(llm_api_reader_t *rd, llm_err_t *err)
{
    if (llm_api_responses_parse(rd, err) != LLM_OK) {
        return LLM_ERROR;
    }

    rd->r.flags &= ~(uint32_t) LLM_REQ_STREAM;
    (void) llm_buf_adds(&rd->head, "\"object\":\"response.input_tokens\",");

    return LLM_OK;
}


/* llama-server's endpoint */

static int
llm_api_count_chat(llm_api_reader_t *rd, llm_err_t *err)
{
    if (llm_api_read_chat(rd, err) != LLM_OK) {
        return LLM_ERROR;
    }

    rd->r.flags &= ~(uint32_t) LLM_REQ_STREAM;
    (void) llm_buf_adds(&rd->head, "\"object\":\"response.input_tokens\",");

    return LLM_OK;
}


/* keeps nothing: the tokens' events are not needed */

static int
llm_api_count_keep(llm_api_t *a, const llm_event_t *ev, llm_err_t *err)
{
    (void) a;
    (void) ev;
    (void) err;

    return LLM_OK;
}


static int
llm_api_count_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    (void) max;

    return llm_buf_addf(out, "{%.*s\"input_tokens\":%u}", (int) a->head.len,
                        a->head.data, a->usage.prompt_tokens);
}


const llm_api_endpoint_t  llm_api_count_tokens = {
    .task = LLM_TASK_TOKENIZE,
    .fields = &llm_api_messages_fields,
    .shared = &llm_api_draft_fields,
    .names = llm_api_messages_names,
    .id_header = "request-id",
    .read = llm_api_count_messages,
    .body = llm_api_count_body,
    .keep = llm_api_count_keep,
    .error = llm_api_messages_error
};

const llm_api_endpoint_t  llm_api_chat_tokens = {
    .task = LLM_TASK_TOKENIZE,
    .fields = &llm_api_chat_fields,
    .shared = &llm_api_shared_fields,
    .read = llm_api_count_chat,
    .body = llm_api_count_body,
    .keep = llm_api_count_keep
};

const llm_api_endpoint_t  llm_api_input_tokens = {
    .task = LLM_TASK_TOKENIZE,
    .fields = &llm_api_responses_fields,
    .shared = &llm_api_draft_fields,
    .names = llm_api_responses_names,
    .read = llm_api_count_responses,
    .body = llm_api_count_body,
    .keep = llm_api_count_keep
};
