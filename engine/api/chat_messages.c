/*
 * Checks a chat request's messages.  chat_object.c then writes them without
 * checking again.
 */

#include "engine/api/chat.h"


int
llm_api_check_name(const llm_flat_t *function, const llm_api_at_t *at,
    llm_err_t *err)
{
    const llm_flat_t  *name;

    name = llm_api_need(err, at, function, "name", LLM_FLAT_STRING);
    if (name == NULL) {
        return LLM_ERROR;
    }

    if (name->count == 0) {
        return llm_api_bad_value(err, llm_api_key(at, "name"),
                                 "Invalid name of a function: empty string.");
    }

    if (name->count > LLM_API_MAX_NAME) {
        return llm_api_bad_value(err, llm_api_key(at, "name"),
                                 "Invalid name of a function: expected at "
                                 "most %d bytes, got %u.", LLM_API_MAX_NAME,
                                 name->count);
    }

    return LLM_OK;
}


static int
llm_api_check_role(const llm_flat_t *msg, const llm_api_at_t *at,
    llm_err_t *err)
{
    size_t             i;
    const llm_flat_t  *role;

    static const char *const  roles[] = {
        "system", "developer", "user", "assistant", "tool"
    };

    role = llm_api_need(err, at, msg, "role", LLM_FLAT_STRING);
    if (role == NULL) {
        return LLM_ERROR;
    }

    if (llm_api_str_is(role, "function")) {
        return llm_api_check_name(msg, at, err);
    }

    for (i = 0; i < llm_nelems(roles); i++) {
        if (llm_api_str_is(role, roles[i])) {
            return LLM_OK;
        }
    }

    return llm_api_bad_word(err, llm_api_key(at, "role"), llm_flat_str(role),
                            "Supported values are: 'system', 'developer', "
                            "'user', 'assistant', 'tool', and 'function'.");
}


void
llm_api_chat_where(const llm_api_reader_t *rd, const llm_flat_t *msg, int old,
    llm_api_part_at_t *where)
{
    llm_api_media_rules(rd, &where->rules);
    where->assistant = llm_api_str_is(llm_flat_get(msg, "role"), "assistant");
    where->old = old;
    where->goes_on = 0;
    where->known = "This model takes text only: content parts of the type "
                   "'text'.";
}


static int
llm_api_check_parts(const llm_flat_t *content, const llm_api_part_at_t *where,
    const llm_api_at_t *at, llm_err_t *err)
{
    int                rc;
    uint32_t           i;
    llm_api_part_t     p;
    const llm_flat_t  *part;

    rc = LLM_OK;
    part = llm_flat_first(content);
    llm_api_part_init(&p);

    for (i = 0; part && rc == LLM_OK; i++) {
        rc = llm_api_part_read(&p, part, where, llm_api_idx(at, i), err);
        part = llm_flat_next(content, part);
    }

    llm_api_part_free(&p);

    return rc;
}


static int
llm_api_check_content(const llm_api_reader_t *rd, const llm_flat_t *msg,
    int old, const llm_api_at_t *at, llm_err_t *err)
{
    const llm_flat_t    *content;
    llm_api_part_at_t    where;
    const llm_api_at_t  *here;

    here = llm_api_key(at, "content");
    content = llm_flat_get(msg, "content");
    llm_api_chat_where(rd, msg, old, &where);

    if (content == NULL || content->type == LLM_FLAT_NULL) {

        /* an assistant's message may consist of calls alone */

        if (where.assistant) {
            return LLM_OK;
        }

        if (content == NULL) {
            return llm_api_missing(err, here);
        }
    }

    if (content->type == LLM_FLAT_STRING) {
        return LLM_OK;
    }

    if (content->type != LLM_FLAT_ARRAY) {
        return llm_api_bad_type(err, here,
                                "a string or an array of objects", content);
    }

    return llm_api_check_parts(content, &where, here, err);
}


int
llm_api_check_goes_on(const llm_api_reader_t *rd, const llm_flat_t *messages,
    const llm_flat_t *last, llm_err_t *err)
{
    const llm_flat_t    *content;
    llm_api_part_at_t    where;
    const llm_api_at_t  *at;

    content = llm_api_member(last, "content");

    if (content == NULL || content->type != LLM_FLAT_ARRAY) {
        return LLM_OK;
    }

    at = llm_api_key(llm_api_idx(llm_api_top("messages"),
                                 messages->count - 1), "content");

    llm_api_chat_where(rd, last, 0, &where);
    where.goes_on = 1;
    where.known = "The answer goes on from this message, so it has content "
                  "parts of the type 'text'.";

    return llm_api_check_parts(content, &where, at, err);
}


/* checks a tool, or a call of one: {type: "function", function: {name, ...}} */

static int
llm_api_check_function(const llm_flat_t *v, const llm_api_at_t *at,
    llm_err_t *err)
{
    const llm_flat_t  *type, *function;

    if (llm_api_check_type(err, at, v, LLM_FLAT_OBJECT) != LLM_OK) {
        return LLM_ERROR;
    }

    type = llm_api_member(v, "type");

    if (type && llm_api_check_type(err, llm_api_key(at, "type"), type,
                                   LLM_FLAT_STRING)
                != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (type && !llm_api_str_is(type, "function")) {
        return llm_api_bad_word(err, llm_api_key(at, "type"),
                                llm_flat_str(type),
                                "Supported values are: 'function'.");
    }

    function = llm_api_need(err, at, v, "function", LLM_FLAT_OBJECT);
    if (function == NULL) {
        return LLM_ERROR;
    }

    return llm_api_check_name(function, llm_api_key(at, "function"), err);
}


int
llm_api_check_functions(const llm_flat_t *list, const llm_api_at_t *at,
    llm_err_t *err)
{
    uint32_t           i;
    const llm_flat_t  *v;

    if (list->type != LLM_FLAT_ARRAY) {
        return llm_api_bad_type(err, at, "an array of objects", list);
    }

    v = llm_flat_first(list);

    for (i = 0; v; i++) {
        if (llm_api_check_function(v, llm_api_idx(at, i), err) != LLM_OK) {
            return LLM_ERROR;
        }

        v = llm_flat_next(list, v);
    }

    return LLM_OK;
}


static int
llm_api_check_message(const llm_api_reader_t *rd, const llm_flat_t *msg,
    int old, const llm_api_at_t *at, llm_err_t *err)
{
    size_t             i;
    const llm_flat_t  *v;

    static const char *const  strings[] = {
        "name", "tool_call_id", "reasoning_content", "reasoning"
    };

    if (llm_api_check_type(err, at, msg, LLM_FLAT_OBJECT) != LLM_OK
        || llm_api_check_role(msg, at, err) != LLM_OK
        || llm_api_check_content(rd, msg, old, at, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < llm_nelems(strings); i++) {
        v = llm_api_member(msg, strings[i]);

        if (v && llm_api_check_type(err, llm_api_key(at, strings[i]), v,
                                    LLM_FLAT_STRING)
                 != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    v = llm_api_member(msg, "function_call");

    if (v && (llm_api_check_type(err, llm_api_key(at, "function_call"), v,
                                 LLM_FLAT_OBJECT)
              != LLM_OK
              || llm_api_check_name(v, llm_api_key(at, "function_call"), err)
                 != LLM_OK))
    {
        return LLM_ERROR;
    }

    v = llm_api_member(msg, "tool_calls");

    if (v == NULL) {
        return LLM_OK;
    }

    return llm_api_check_functions(v, llm_api_key(at, "tool_calls"), err);
}


int
llm_api_check_messages(const llm_api_reader_t *rd, const llm_flat_t *messages,
    llm_err_t *err)
{
    uint32_t             i, old;
    const llm_flat_t    *msg;
    const llm_api_at_t  *at;

    at = llm_api_top("messages");

    if (messages->type != LLM_FLAT_ARRAY) {
        return llm_api_bad_type(err, at, "an array of objects", messages);
    }

    if (messages->count == 0) {
        return llm_api_empty(err, at);
    }

    msg = llm_flat_first(messages);
    old = llm_api_old_messages(messages);

    for (i = 0; msg; i++) {
        if (llm_api_check_message(rd, msg, i < old, llm_api_idx(at, i), err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        msg = llm_flat_next(messages, msg);
    }

    return LLM_OK;
}
