/*
 * POST /messages, Anthropic's Messages: content blocks in, content blocks
 * out.  The request becomes a chat request (draft.h; messages_input.c reads
 * the messages), the answer of its one choice a list of blocks (output.h;
 * messages_output.c writes them): thinking, text, calls.
 */

#include "engine/api/messages.h"

#define AT(f)               offsetof(llm_api_messages_t, f)


static const llm_api_field_t  llm_api_messages_rows[] = {
    { "max_tokens", LLM_FIELD_INT, AT(max_tokens), 1, INT32_MAX },
    { "mcp_servers", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
    { "messages", LLM_FIELD_REQUIRED, AT(messages), 0, 0 },
    { "output_config", LLM_FIELD_OBJECT, AT(output_config), 0, 0 },
    { "output_format", LLM_FIELD_OBJECT, AT(output_format), 0, 0 },
    { "stop", LLM_FIELD_ANY, LLM_FIELD_NOWHERE, 0, 0 },
    { "stop_sequences", LLM_FIELD_ARRAY, AT(stop_sequences), 0, 0 },
    { "system", LLM_FIELD_ANY, AT(system), 0, 0 },
    { "temperature", LLM_FIELD_PARAM_NUMBER, AT(temperature), 0, 1 },
    { "thinking", LLM_FIELD_OBJECT, AT(thinking), 0, 0 },
    { "tool_choice", LLM_FIELD_OBJECT, AT(tool_choice), 0, 0 },
    { "tools", LLM_FIELD_ARRAY, AT(tools), 0, 0 },
    { "top_logprobs", LLM_FIELD_ANY, LLM_FIELD_NOWHERE, 0, 0 },
};

const llm_api_fields_t  llm_api_messages_fields = {
    llm_api_messages_rows, llm_nelems(llm_api_messages_rows)
};


const llm_api_name_t  llm_api_messages_names[] = {
    { "response_format.json_schema", "output_config.format" },
    { "response_format", "output_config.format" },
    { "reasoning_effort", "output_config.effort" },
    { "max_completion_tokens", "max_tokens" },
    { "stop", "stop_sequences" },
    { NULL, NULL }
};


/* with "adaptive" and "between_tools" the model decides itself, as without the
   field */

static int
llm_api_messages_thinking(const llm_api_messages_t *b, llm_api_draft_t *d,
    llm_err_t *err)
{
    int                  on;
    const llm_flat_t    *type, *budget;
    const llm_api_at_t  *at;

    at = llm_api_top("thinking");

    if (b->thinking == NULL) {
        return LLM_OK;
    }

    type = llm_api_need(err, at, b->thinking, "type", LLM_FLAT_STRING);
    if (type == NULL) {
        return LLM_ERROR;
    }

    if (llm_api_str_is(type, "adaptive")
        || llm_api_str_is(type, "between_tools"))
    {
        return LLM_OK;
    }

    on = llm_api_str_is(type, "enabled");

    if (!on && !llm_api_str_is(type, "disabled")) {
        return llm_api_bad_word(err, llm_api_key(at, "type"),
                                llm_flat_str(type), "Supported are "
                                "'enabled', 'adaptive', 'between_tools' and "
                                "'disabled'.");
    }

    budget = llm_api_member(b->thinking, "budget_tokens");

    if (budget && llm_api_check_int(err, llm_api_key(at, "budget_tokens"),
                                    budget, 1, INT32_MAX)
                  != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (budget && on) {
        llm_api_draft_node(d, "thinking_budget", budget);
    }

    llm_api_draft_key(d, "enable_thinking");
    llm_flat_add_bool(&d->out, on);

    return LLM_OK;
}


/* reads output_config: {effort, format}; output_format is the older name of
   its format */

static int
llm_api_messages_config(const llm_api_messages_t *b, llm_api_draft_t *d,
    llm_err_t *err)
{
    const llm_flat_t    *effort, *format, *type, *schema;
    const llm_api_at_t  *at, *old;

    at = llm_api_top("output_config");
    old = llm_api_top("output_format");
    effort = llm_api_member(b->output_config, "effort");
    format = llm_api_member(b->output_config, "format");

    if (effort) {
        if (llm_api_check_type(err, llm_api_key(at, "effort"), effort,
                               LLM_FLAT_STRING)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        llm_api_draft_node(d, "reasoning_effort", effort);
    }

    at = llm_api_key(at, "format");

    if (format == NULL) {
        format = b->output_format;
        at = old;
    }

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
        return llm_api_bad_value(err, llm_api_key(at, "type"),
                                 "Invalid value of 'type': the only format is "
                                 "'json_schema'.");
    }

    schema = llm_api_need(err, at, format, "schema", LLM_FLAT_OBJECT);
    if (schema == NULL) {
        return LLM_ERROR;
    }

    llm_api_draft_schema(d, NULL, schema, NULL);

    return LLM_OK;
}


static int
llm_api_messages_draft(llm_api_reader_t *rd, void *body, llm_api_draft_t *d,
    llm_err_t *err)
{
    const llm_api_messages_t *b = body;

    uint32_t           i;
    const llm_flat_t  *v;

    if (llm_api_messages_input(b, d, err) != LLM_OK
        || llm_api_messages_tools(b, d, err) != LLM_OK
        || llm_api_messages_thinking(b, d, err) != LLM_OK
        || llm_api_messages_config(b, d, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    v = b->stop_sequences ? llm_flat_first(b->stop_sequences) : NULL;

    for (i = 0; v; i++) {
        if (llm_api_check_type(err,
                               llm_api_idx(llm_api_top("stop_sequences"), i),
                               v, LLM_FLAT_STRING)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        v = llm_flat_next(b->stop_sequences, v);
    }

    llm_api_draft_node(d, "stop", b->stop_sequences);

    /* the log's user */

    v = llm_api_member(llm_api_member(rd->root, "metadata"), "user_id");

    if (v && v->type == LLM_FLAT_STRING) {
        llm_api_draft_node(d, "user", v);
    }

    if (b->max_tokens != LLM_API_UNSET) {
        llm_api_draft_key(d, "max_completion_tokens");
        llm_flat_add_int(&d->out, b->max_tokens);
    }

    if (b->temperature >= 0) {
        llm_api_draft_key(d, "temperature");
        llm_flat_add_double(&d->out, (double) b->temperature);
    }

    return LLM_OK;
}


/* writes what a body and message_start begin with, left open */

static void
llm_api_messages_head(llm_api_reader_t *rd)
{
    llm_buf_t              *out;
    const llm_api_conf_t   *conf;
    const llm_api_model_t  *m;

    out = &rd->head;
    conf = rd->conf;
    m = &conf->models[rd->r.model];

    (void) llm_buf_adds(out, "{\"id\":\"msg_");
    (void) llm_json_add_text(out, conf->id.data, conf->id.len);
    (void) llm_buf_adds(out, "\",\"type\":\"message\",\"role\":\"assistant\","
                        "\"model\":");
    (void) llm_json_add_string(out, m->name.data, m->name.len);
}


int
llm_api_messages_parse(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_api_messages_t  b;

    memset(&b, 0, sizeof(llm_api_messages_t));
    b.max_tokens = LLM_API_UNSET;
    b.temperature = -1;

    return llm_api_draft_message(rd, &b, llm_api_messages_draft, err);
}


static int
llm_api_messages_read(llm_api_reader_t *rd, llm_err_t *err)
{
    if (llm_api_messages_parse(rd, err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_api_messages_head(rd);

    return LLM_OK;
}


const llm_api_endpoint_t  llm_api_messages = {
    .task = LLM_TASK_GENERATE,
    .fields = &llm_api_messages_fields,
    .shared = &llm_api_draft_fields,
    .names = llm_api_messages_names,
    .id_header = "request-id",
    .read = llm_api_messages_read,
    .event = llm_api_messages_event,
    .body = llm_api_messages_body,
    .keep = llm_api_messages_keep,
    .error = llm_api_messages_error,
    .fail = llm_api_messages_fail
};
