/*
 * POST /apply-template: the body of a chat in, the prompt that it becomes
 * out.  GET /tokenizer_info: the model's template and its special tokens, as
 * vLLM tells them; GET /props: the model, as llama-server tells it.
 */

#include "engine/api/chat.h"


/* ---- /apply-template ---- */

static int
llm_api_template_read(llm_api_reader_t *rd, llm_err_t *err)
{
    size_t          start;
    llm_api_chat_t  b;

    llm_api_chat_defaults(&b);
    start = rd->msg->len;

    if (llm_api_read_plain(rd, &b, &b.body.model, err) != LLM_OK
        || llm_api_check_messages(rd, b.messages, err) != LLM_OK
        || llm_api_check_tools(&b, err) != LLM_OK
        || llm_api_chat_thinking(&b, err) != LLM_OK
        || llm_api_write_chat(rd, &b, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    rd->r.kind = LLM_KIND_CHAT;
    rd->r.chat.off = (uint32_t) start;
    rd->r.chat.len = (uint32_t) (rd->msg->len - start);
    rd->n_choices = 1;

    return LLM_OK;
}


static int
llm_api_template_write(llm_api_t *a, size_t max, llm_buf_t *out)
{
    int                rc;
    llm_api_cursor_t  *cur;

    cur = &a->cursor;

    if (!cur->opened) {
        (void) llm_buf_adds(out, "{\"prompt\":\"");
        cur->opened = 1;
        cur->piece = a->choices[0].own.first;
    }

    rc = llm_api_write_kept(a, max, out);

    return rc == LLM_OK ? llm_buf_adds(out, "\"}") : rc;
}


const llm_api_endpoint_t  llm_api_template = {
    .task = LLM_TASK_RENDER,
    .fields = &llm_api_chat_fields,
    .shared = &llm_api_shared_fields,
    .read = llm_api_template_read,
    .body = llm_api_template_write
};


/* ---- /tokenizer_info, /props ---- */

typedef struct {
    llm_str_t          model;
} llm_api_info_t;


static const llm_api_field_t  llm_api_info_rows[] = {
    { "model", LLM_FIELD_STRING, offsetof(llm_api_info_t, model), 0, 0 }
};

static const llm_api_fields_t  llm_api_info_fields = {
    llm_api_info_rows, llm_nelems(llm_api_info_rows)
};


static int
llm_api_info_read(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_api_info_t  b;

    b.model = rd->conf->model;
    rd->r.kind = LLM_KIND_NONE;
    rd->n_choices = 1;

    return llm_api_read_plain(rd, &b, &b.model, err);
}


static int
llm_api_info_write(llm_api_t *a, size_t max, llm_buf_t *out)
{
    llm_buf_t  flat;

    (void) max;

    if (llm_api_kept_flat(a, &flat) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_json_add_flat(out, (const llm_flat_t *) flat.data);
    llm_buf_free(&flat);

    return out->failed ? LLM_ERROR : LLM_OK;
}


const llm_api_endpoint_t  llm_api_tokenizer_info = {
    .task = LLM_TASK_DESCRIBE,
    .bodiless = 1,
    .fields = &llm_api_info_fields,
    .read = llm_api_info_read,
    .body = llm_api_info_write
};

const llm_api_endpoint_t  llm_api_props = {
    .task = LLM_TASK_PROPS,
    .bodiless = 1,
    .fields = &llm_api_info_fields,
    .read = llm_api_info_read,
    .body = llm_api_info_write
};
