/*
 * POST /responses, OpenAI's Responses: input items in, output items out.  The
 * request becomes a chat request (draft.h; responses_input.c reads the items,
 * responses_tools.c the tools), the answer of its one choice a list of items
 * (output.h; responses_output.c writes them): reasoning, a message, calls.
 */

#include "engine/api/responses.h"

#define AT(f)               offsetof(llm_api_responses_t, f)


static const llm_api_field_t  llm_api_responses_rows[] = {
    { "background", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "context_management", LLM_FIELD_ANY, LLM_FIELD_NOWHERE, 0, 0 },
    { "conversation", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "include", LLM_FIELD_ARRAY, AT(include), 0, 0 },
    { "input", LLM_FIELD_REQUIRED, AT(input), 0, 0 },
    { "instructions", LLM_FIELD_STRING, AT(instructions), 0, 0 },
    { "max_output_tokens", LLM_FIELD_INT, AT(max_output_tokens),
      1, INT32_MAX },
    { "max_tool_calls", LLM_FIELD_INT, LLM_FIELD_NOWHERE, 1, INT32_MAX },
    { "messages", LLM_FIELD_ANY, LLM_FIELD_NOWHERE, 0, 0 },
    { "previous_response_id", LLM_FIELD_ANY, AT(previous), 0, 0 },
    { "prompt", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "reasoning", LLM_FIELD_OBJECT, AT(reasoning), 0, 0 },
    { "text", LLM_FIELD_OBJECT, AT(text), 0, 0 },
    { "tool_choice", LLM_FIELD_ANY, AT(tool_choice), 0, 0 },
    { "tools", LLM_FIELD_ARRAY, AT(tools), 0, 0 },
    { "top_logprobs", LLM_FIELD_INT, AT(top_logprobs), 0, 20 },
    { "truncation", LLM_FIELD_STRING, LLM_FIELD_NOWHERE, 0, 0 },
};

const llm_api_fields_t  llm_api_responses_fields = {
    llm_api_responses_rows, llm_nelems(llm_api_responses_rows)
};


const llm_api_name_t  llm_api_responses_names[] = {
    { "response_format.json_schema", "text.format" },
    { "response_format", "text.format" },
    { "reasoning_effort", "reasoning.effort" },
    { "max_completion_tokens", "max_output_tokens" },
    { "messages", "input" },
    { NULL, NULL }
};


/* ---- the reader ---- */

static int
llm_api_responses_reasoning(llm_api_reader_t *rd,
    const llm_api_responses_t *b, llm_api_draft_t *d, llm_err_t *err)
{
    const llm_flat_t    *effort, *summary;
    const llm_api_at_t  *at;

    at = llm_api_top("reasoning");
    effort = llm_api_member(b->updated, "effort");
    effort = effort ? effort : llm_api_member(b->reasoning, "effort");
    summary = llm_api_member(b->reasoning, "summary");

    if ((effort && llm_api_check_type(err, llm_api_key(at, "effort"), effort,
                                      LLM_FLAT_STRING)
                   != LLM_OK)
        || (summary && llm_api_check_type(err, llm_api_key(at, "summary"),
                                          summary, LLM_FLAT_STRING)
                       != LLM_OK))
    {
        return LLM_ERROR;
    }

    llm_api_draft_node(d, "reasoning_effort", effort);

    if (summary && !llm_api_str_is(summary, "none")) {
        rd->options |= LLM_API_OUT_SUMMARY;
    }

    return LLM_OK;
}


static int
llm_api_responses_format(const llm_api_responses_t *b, llm_api_draft_t *d,
    llm_err_t *err)
{
    const llm_flat_t    *format, *type, *schema;
    const llm_api_at_t  *at;

    at = llm_api_key(llm_api_top("text"), "format");
    format = llm_api_member(b->text, "format");

    if (format == NULL) {
        return LLM_OK;
    }

    if (llm_api_check_type(err, at, format, LLM_FLAT_OBJECT) != LLM_OK) {
        return LLM_ERROR;
    }

    type = llm_api_need(err, at, format, "type", LLM_FLAT_STRING);
    if (type == NULL) {
        return LLM_ERROR;
    }

    if (!llm_api_str_is(type, "json_schema")) {
        llm_api_draft_node(d, "response_format", format);
        return LLM_OK;
    }

    schema = llm_api_need(err, at, format, "schema", LLM_FLAT_OBJECT);
    if (schema == NULL) {
        return LLM_ERROR;
    }

    llm_api_draft_schema(d, llm_api_member(format, "name"), schema,
                         llm_api_member(format, "strict"));

    return LLM_OK;
}


static int
llm_api_responses_include(llm_api_reader_t *rd, const llm_api_responses_t *b,
    llm_api_draft_t *d, llm_err_t *err)
{
    uint32_t           i;
    const llm_flat_t  *v;

    v = b->include ? llm_flat_first(b->include) : NULL;

    for (i = 0; v; i++) {
        if (llm_api_check_type(err, llm_api_idx(llm_api_top("include"), i), v,
                               LLM_FLAT_STRING)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        if (llm_api_str_is(v, "reasoning.encrypted_content")) {
            rd->options |= LLM_API_OUT_SEALED;

        } else if (llm_api_str_is(v, "message.output_text.logprobs")) {
            rd->options |= LLM_API_OUT_LOGPROBS;
        }

        v = llm_flat_next(b->include, v);
    }

    if (rd->options & LLM_API_OUT_LOGPROBS) {
        llm_api_draft_key(d, "logprobs");
        llm_flat_add_bool(&d->out, 1);
        llm_api_draft_key(d, "top_logprobs");
        llm_flat_add_int(&d->out, b->top_logprobs);
    }

    return LLM_OK;
}


/* applies items that change settings: the last one of each setting holds for
   the answer */

static void
llm_api_responses_updates(llm_api_responses_t *b)
{
    const llm_flat_t  *item, *v;

    if (b->input->type != LLM_FLAT_ARRAY) {
        return;
    }

    for (item = llm_flat_first(b->input); item;
         item = llm_flat_next(b->input, item))
    {
        if (!llm_api_str_is(llm_api_member(item, "type"),
                            "configuration_update"))
        {
            continue;
        }

        v = llm_api_member(item, "reasoning");
        b->updated = v && v->type == LLM_FLAT_OBJECT ? v : b->updated;

        v = llm_api_member(item, "text");
        b->text = v && v->type == LLM_FLAT_OBJECT ? v : b->text;
    }
}


static int
llm_api_responses_draft(llm_api_reader_t *rd, void *body, llm_api_draft_t *d,
    llm_err_t *err)
{
    llm_api_responses_t *b = body;

    llm_api_responses_updates(b);

    if (b->previous) {
        return llm_api_bad_value(err, llm_api_top("previous_response_id"),
                                 "No previous response can be referred to: "
                                 "this server stores nothing. Send its items "
                                 "in 'input'.");
    }

    if (llm_api_responses_input(b, d, err) != LLM_OK
        || llm_api_responses_tools(rd, b, d, err) != LLM_OK
        || llm_api_responses_reasoning(rd, b, d, err) != LLM_OK
        || llm_api_responses_format(b, d, err) != LLM_OK
        || llm_api_responses_include(rd, b, d, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (b->max_output_tokens != LLM_API_UNSET) {
        llm_api_draft_key(d, "max_completion_tokens");
        llm_flat_add_int(&d->out, b->max_output_tokens);
    }

    /* an assistant's message at the end of the input is complete: the answer
       is a new message */

    llm_api_draft_key(d, "add_generation_prompt");
    llm_flat_add_bool(&d->out, 1);

    return LLM_OK;
}


int
llm_api_responses_parse(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_api_responses_t  b;

    memset(&b, 0, sizeof(llm_api_responses_t));
    b.max_output_tokens = LLM_API_UNSET;

    return llm_api_draft_message(rd, &b, llm_api_responses_draft, err);
}


static int
llm_api_responses_read(llm_api_reader_t *rd, llm_err_t *err)
{
    if (llm_api_responses_parse(rd, err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_api_responses_head(rd);

    return LLM_OK;
}


const llm_api_endpoint_t  llm_api_responses = {
    .task = LLM_TASK_GENERATE,
    .fields = &llm_api_responses_fields,
    .shared = &llm_api_draft_fields,
    .names = llm_api_responses_names,
    .read = llm_api_responses_read,
    .event = llm_api_responses_event,
    .body = llm_api_responses_body,
    .keep = llm_api_responses_keep,
    .fail = llm_api_responses_fail
};
