/*
 * What a Responses request says to the model: its input, a list of items, in
 * the form of a chat request.
 *
 * This server stores nothing, so an item that only refers to a stored one is
 * refused.  Reasoning comes back sealed (output.h), or as text; what another
 * server has sealed is skipped.  responses_items.c reads other items that
 * servers have recorded.
 */

#include "engine/api/responses.h"


static int
llm_api_ri_message(llm_api_draft_t *d, const llm_flat_t *item,
    const llm_api_at_t *at, llm_err_t *err)
{
    size_t             i;
    const llm_flat_t  *role, *content;

    /* nearly all templates treat a developer's message as a system message;
       consecutive ones become one */

    static const char *const  roles[][2] = {
        { "user", "user" }, { "assistant", "assistant" },
        { "system", "system" }, { "developer", "system" }
    };

    role = llm_api_need(err, at, item, "role", LLM_FLAT_STRING);
    if (role == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < llm_nelems(roles); i++) {
        if (llm_api_str_is(role, roles[i][0])) {
            break;
        }
    }

    if (i == llm_nelems(roles)) {
        return llm_api_bad_word(err, llm_api_key(at, "role"),
                                llm_flat_str(role),
                                "Supported values are: 'assistant', "
                                "'system', 'developer', and 'user'.");
    }

    content = llm_api_member(item, "content");
    if (content == NULL) {
        return llm_api_missing(err, llm_api_key(at, "content"));
    }

    llm_api_draft_open(d, roles[i][1]);

    return llm_api_responses_content(d, content, llm_api_key(at, "content"),
                                     err);
}


/* adds a call of a function, or of a custom tool, whose input is a text */

static int
llm_api_ri_call(llm_api_draft_t *d, const llm_flat_t *item,
    const llm_api_at_t *at, int custom, llm_err_t *err)
{
    llm_buf_t          json, name;
    llm_str_t          args;
    const llm_flat_t  *id, *text;

    id = llm_api_need(err, at, item, "call_id", LLM_FLAT_STRING);
    text = id ? llm_api_need(err, at, item, custom ? "input" : "arguments",
                             LLM_FLAT_STRING)
              : NULL;

    if (text == NULL
        || llm_api_responses_name(item, llm_api_member(item, "namespace"), at,
                                  &name, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    args = llm_flat_str(text);
    llm_buf_init(&json, 0);

    if (custom) {
        (void) llm_buf_adds(&json, "{\"input\":");
        (void) llm_json_add_string(&json, args.data, args.len);
        (void) llm_buf_addc(&json, '}');

        args = (llm_str_t) { json.len, json.data };
        d->out.failed |= json.failed;
    }

    llm_api_draft_open(d, "assistant");
    llm_api_draft_call(d, llm_flat_str(id),
                       (llm_str_t) { name.len, name.data }, args);
    d->out.failed |= name.failed;
    llm_buf_free(&name);
    llm_buf_free(&json);

    return LLM_OK;
}


static int
llm_api_ri_result(llm_api_draft_t *d, const llm_flat_t *item,
    const llm_api_at_t *at, llm_err_t *err)
{
    const llm_flat_t  *id, *output;

    id = llm_api_need(err, at, item, "call_id", LLM_FLAT_STRING);
    if (id == NULL) {
        return LLM_ERROR;
    }

    output = llm_api_member(item, "output");
    if (output == NULL) {
        return llm_api_missing(err, llm_api_key(at, "output"));
    }

    llm_api_draft_result(d, llm_flat_str(id));

    return llm_api_responses_content(d, output, llm_api_key(at, "output"), err);
}


static void
llm_api_ri_reasoning(llm_api_draft_t *d, const llm_flat_t *item)
{
    llm_buf_t          text;
    const llm_flat_t  *sealed;

    llm_buf_init(&text, 0);
    sealed = llm_api_member(item, "encrypted_content");

    if ((sealed && sealed->type == LLM_FLAT_STRING
         && llm_api_unseal(llm_flat_str(sealed), &text) == LLM_OK)
        || llm_api_responses_texts(&text, llm_flat_get(item, "content"))
        || llm_api_responses_texts(&text, llm_flat_get(item, "summary")))
    {
        llm_api_draft_open(d, "assistant");
        llm_api_draft_reasoning(d, (llm_str_t) { text.len, text.data });
    }

    d->out.failed |= text.failed;
    llm_buf_free(&text);
}


static int
llm_api_ri_item(llm_api_draft_t *d, const llm_flat_t *item,
    const llm_api_at_t *at, llm_err_t *err)
{
    int                rc;
    const llm_flat_t  *type;

    if (llm_api_check_type(err, at, item, LLM_FLAT_OBJECT) != LLM_OK) {
        return LLM_ERROR;
    }

    type = llm_api_member(item, "type");

    if (type == NULL) {

        /* messages and references may have no type */

        if (llm_api_member(item, "role") || !llm_api_member(item, "id")) {
            return llm_api_ri_message(d, item, at, err);
        }

    } else if (llm_api_check_type(err, llm_api_key(at, "type"), type,
                                  LLM_FLAT_STRING)
               != LLM_OK)
    {
        return LLM_ERROR;

    } else if (llm_api_str_is(type, "message")) {
        return llm_api_ri_message(d, item, at, err);

    } else if (llm_api_str_is(type, "function_call")) {
        return llm_api_ri_call(d, item, at, 0, err);

    } else if (llm_api_str_is(type, "custom_tool_call")) {
        return llm_api_ri_call(d, item, at, 1, err);

    } else if (llm_api_str_is(type, "function_call_output")
               || llm_api_str_is(type, "custom_tool_call_output"))
    {
        return llm_api_ri_result(d, item, at, err);

    } else if (llm_api_str_is(type, "reasoning")) {
        llm_api_ri_reasoning(d, item);
        return LLM_OK;

    } else if (!llm_api_str_is(type, "item_reference")) {
        rc = llm_api_responses_recorded(d, item, type, at, err);

        return rc != LLM_END ? rc
               : llm_api_bad_word(err, llm_api_key(at, "type"),
                                  llm_flat_str(type), "Supported are "
                                  "'message', 'function_call', "
                                  "'function_call_output', "
                                  "'custom_tool_call', "
                                  "'custom_tool_call_output', 'reasoning', "
                                  "and what other servers have recorded.");
    }

    /* the AI SDK refers to an item instead of sending it, because it assumes
       OpenAI's default for this server */

    return llm_api_bad_value(err, at, "An item cannot be referred to by its "
                             "id: this server stores nothing. Send the item "
                             "itself, as clients do with \"store\": false.");
}


int
llm_api_responses_input(const llm_api_responses_t *b, llm_api_draft_t *d,
    llm_err_t *err)
{
    uint32_t             i, old;
    const llm_flat_t    *item;
    const llm_api_at_t  *at;

    at = llm_api_top("input");

    llm_api_draft_messages(d);

    if (b->instructions.len) {
        llm_api_draft_open(d, "system");
        llm_api_draft_text(d, b->instructions);
    }

    if (b->input->type == LLM_FLAT_STRING) {
        llm_api_draft_open(d, "user");
        llm_api_draft_text(d, llm_flat_str(b->input));
        llm_api_draft_messages_end(d);
        return LLM_OK;
    }

    if (b->input->type != LLM_FLAT_ARRAY) {
        return llm_api_bad_type(err, at, "a string or an array of objects",
                                b->input);
    }

    if (b->input->count == 0) {
        return llm_api_empty(err, at);
    }

    item = llm_flat_first(b->input);
    old = llm_api_old_turns(b->input, llm_api_responses_is_said);

    for (i = 0; item; i++) {
        d->old = i < old;

        if (llm_api_ri_item(d, item, llm_api_idx(at, i), err) != LLM_OK) {
            return LLM_ERROR;
        }

        item = llm_flat_next(b->input, item);
    }

    llm_api_draft_messages_end(d);

    if (d->n_messages == 0) {
        return llm_api_bad_value(err, at, "None of the items of 'input' says "
                                 "anything to the model.");
    }

    return LLM_OK;
}
