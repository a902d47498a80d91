/*
 * The tools of a Messages request, in the form of a chat request.
 */

#include "engine/api/messages.h"


/* a tool with a type of its own runs on Anthropic's servers, or has a schema
   that only Anthropic's models know; the model is not told of it */

static int
llm_api_mi_tool(llm_api_draft_t *d, const llm_flat_t *tool,
    const llm_api_at_t *at, llm_err_t *err)
{
    const llm_flat_t  *type, *name, *schema, *strict;

    type = llm_api_member(tool, "type");

    if (llm_api_str_is(type, "mcp_toolset")) {
        return llm_api_unsupported(err, llm_api_key(at, "type"),
                                   "this server calls no MCP servers; give "
                                   "their tools as tools of your own");
    }

    if (type && !llm_api_str_is(type, "custom")) {
        return LLM_OK;
    }

    name = llm_api_need(err, at, tool, "name", LLM_FLAT_STRING);
    schema = name ? llm_api_need(err, at, tool, "input_schema",
                                 LLM_FLAT_OBJECT)
                  : NULL;

    if (schema == NULL) {
        return LLM_ERROR;
    }

    if (name->count == 0) {
        return llm_api_bad_value(err, llm_api_key(at, "name"),
                                 "Invalid name of a tool: empty string.");
    }

    strict = llm_api_member(tool, "strict");

    if (strict && llm_api_check_type(err, llm_api_key(at, "strict"), strict,
                                     LLM_FLAT_BOOL)
                  != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_api_draft_tool(d, llm_flat_str(name),
                       llm_api_member(tool, "description"), schema, strict,
                       llm_api_key(at, "input_schema"));

    return LLM_OK;
}


static int
llm_api_mi_choice(llm_api_draft_t *d, const llm_flat_t *choice,
    llm_err_t *err)
{
    size_t               i;
    const llm_flat_t    *type, *name, *v;
    const llm_api_at_t  *at;

    static const char *const  words[][2] = {
        { "auto", "auto" }, { "any", "required" }, { "none", "none" }
    };

    at = llm_api_top("tool_choice");

    type = llm_api_need(err, at, choice, "type", LLM_FLAT_STRING);
    if (type == NULL) {
        return LLM_ERROR;
    }

    v = llm_api_member(choice, "disable_parallel_tool_use");

    if (v) {
        if (llm_api_check_type(err,
                               llm_api_key(at, "disable_parallel_tool_use"),
                               v, LLM_FLAT_BOOL)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        llm_api_draft_key(d, "parallel_tool_calls");
        llm_flat_add_bool(&d->out, !llm_flat_int(v));
    }

    for (i = 0; i < llm_nelems(words); i++) {
        if (llm_api_str_is(type, words[i][0])) {
            llm_api_draft_string(d, "tool_choice",
                                 (llm_str_t) { strlen(words[i][1]),
                                               words[i][1] });
            return LLM_OK;
        }
    }

    if (!llm_api_str_is(type, "tool")) {
        return llm_api_bad_word(err, llm_api_key(at, "type"),
                                llm_flat_str(type), "Supported are 'auto', "
                                "'any', 'tool' and 'none'.");
    }

    name = llm_api_need(err, at, choice, "name", LLM_FLAT_STRING);
    if (name == NULL) {
        return LLM_ERROR;
    }

    llm_api_draft_choose(d, llm_flat_str(name));

    return LLM_OK;
}


/* {"type": "tool_addition", "tool": {"type": "tool_definition", "definition":
   TOOL}} among the blocks of a message */

static int
llm_api_mi_added(llm_api_draft_t *d, const llm_flat_t *blocks,
    const llm_api_at_t *at, llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *v, *tool, *type;
    const llm_api_at_t  *here;

    v = llm_flat_first(blocks);

    for (i = 0; v; i++) {
        here = llm_api_key(llm_api_key(llm_api_idx(at, i), "tool"),
                           "definition");
        tool = llm_api_str_is(llm_api_member(v, "type"), "tool_addition")
               ? llm_api_member(llm_api_member(v, "tool"), "definition")
               : NULL;
        type = llm_api_member(tool, "type");

        if (tool && (type == NULL || llm_api_str_is(type, "custom"))
            && (llm_api_check_type(err, here, tool, LLM_FLAT_OBJECT)
                != LLM_OK
                || llm_api_mi_tool(d, tool, here, err) != LLM_OK))
        {
            return LLM_ERROR;
        }

        v = llm_flat_next(blocks, v);
    }

    return LLM_OK;
}


static int
llm_api_mi_all_tools(const llm_api_messages_t *b, llm_api_draft_t *d,
    llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *msg, *content;
    const llm_api_at_t  *at;

    if (b->tools
        && llm_api_draft_tools_of(d, b->tools, llm_api_top("tools"),
                                  llm_api_mi_tool, err)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    d->once = 1;
    msg = llm_flat_first(b->messages);

    for (i = 0; msg; i++) {
        at = llm_api_idx(llm_api_top("messages"), i);
        content = llm_api_member(msg, "content");

        if (content && content->type == LLM_FLAT_ARRAY
            && llm_api_mi_added(d, content, llm_api_key(at, "content"), err)
               != LLM_OK)
        {
            return LLM_ERROR;
        }

        msg = llm_flat_next(b->messages, msg);
    }

    return LLM_OK;
}


int
llm_api_messages_tools(const llm_api_messages_t *b, llm_api_draft_t *d,
    llm_err_t *err)
{
    int     rc;
    size_t  handle;

    llm_api_draft_key(d, "tools");
    handle = llm_api_draft_tools_begin(d);
    rc = llm_api_mi_all_tools(b, d, err);
    llm_api_draft_tools_end(d, handle);

    if (rc != LLM_OK) {
        return rc;
    }

    return b->tool_choice ? llm_api_mi_choice(d, b->tool_choice, err)
                          : LLM_OK;
}
