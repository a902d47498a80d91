/*
 * What a Messages request says to the model: system prompt, messages and
 * tools, in the form of a chat request.
 *
 * A user's message may hold results of tools: they come first, as tools'
 * messages, and what the user says follows.  Thinking comes back as it was
 * sent, its signature needs no check: it is only text for the model.
 */

#include "engine/api/messages.h"


/* what may stand in a list of content blocks */
typedef int (*llm_api_mi_block_t)(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_flat_t *type, const llm_api_at_t *at, llm_err_t *err);


static int
llm_api_mi_blocks(llm_api_draft_t *d, const llm_flat_t *blocks,
    const llm_api_at_t *at, llm_api_mi_block_t write, llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *v, *type;
    const llm_api_at_t  *here;

    v = llm_flat_first(blocks);

    for (i = 0; v; i++) {
        here = llm_api_idx(at, i);

        if (llm_api_check_type(err, here, v, LLM_FLAT_OBJECT) != LLM_OK) {
            return LLM_ERROR;
        }

        type = llm_api_need(err, here, v, "type", LLM_FLAT_STRING);

        if (type == NULL || write(d, v, type, here, err) != LLM_OK) {
            return LLM_ERROR;
        }

        v = llm_flat_next(blocks, v);
    }

    return LLM_OK;
}


/* texts, and what has text in it */

static int
llm_api_mi_text(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_flat_t *type, const llm_api_at_t *at, llm_err_t *err)
{
    llm_api_part_at_t  where;

    (void) type;

    where.assistant = 0;
    where.old = d->old;
    where.known = "This model takes text only: content blocks of the type "
                  "'text'.";

    return llm_api_draft_part(d, block, &where, at, err);
}


/* a string, or a list of text blocks, for the open message */

static int
llm_api_mi_content(llm_api_draft_t *d, const llm_flat_t *content,
    const llm_api_at_t *at, llm_err_t *err)
{
    if (content->type == LLM_FLAT_STRING) {
        llm_api_draft_text(d, llm_flat_str(content));
        return LLM_OK;
    }

    if (content->type != LLM_FLAT_ARRAY) {
        return llm_api_bad_type(err, at, "a string or an array of objects",
                                content);
    }

    return llm_api_mi_blocks(d, content, at, llm_api_mi_text, err);
}


/* ---- a user's message: results of tools, then what the user says ---- */

static int
llm_api_mi_result(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_flat_t *type, const llm_api_at_t *at, llm_err_t *err)
{
    const llm_flat_t  *id, *content;

    if (!llm_api_str_is(type, "tool_result")) {
        return LLM_OK;
    }

    id = llm_api_need(err, at, block, "tool_use_id", LLM_FLAT_STRING);
    if (id == NULL) {
        return LLM_ERROR;
    }

    llm_api_draft_result(d, llm_flat_str(id));
    content = llm_api_member(block, "content");

    return content ? llm_api_mi_content(d, content,
                                        llm_api_key(at, "content"), err)
                   : LLM_OK;
}


static int
llm_api_mi_said(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_flat_t *type, const llm_api_at_t *at, llm_err_t *err)
{
    if (llm_api_str_is(type, "tool_result")) {
        return LLM_OK;
    }

    if (d->role == NULL || strcmp(d->role, "user") != 0) {
        llm_api_draft_open(d, "user");
    }

    return llm_api_mi_text(d, block, type, at, err);
}


static int
llm_api_mi_user(llm_api_draft_t *d, const llm_flat_t *content,
    const llm_api_at_t *at, llm_err_t *err)
{
    uint32_t  before;

    if (content->type != LLM_FLAT_ARRAY) {
        llm_api_draft_open(d, "user");
        return llm_api_mi_content(d, content, at, err);
    }

    llm_api_draft_end_message(d);
    before = d->n_messages;

    if (llm_api_mi_blocks(d, content, at, llm_api_mi_result, err) != LLM_OK
        || llm_api_mi_blocks(d, content, at, llm_api_mi_said, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (d->role == NULL && d->n_messages == before) {
        llm_api_draft_open(d, "user");  /* an empty list */
    }

    return LLM_OK;
}


/* ---- an assistant's message ---- */

static int
llm_api_mi_call(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_api_at_t *at, llm_err_t *err)
{
    llm_buf_t          json;
    const llm_flat_t  *id, *name, *input;

    id = llm_api_need(err, at, block, "id", LLM_FLAT_STRING);
    name = id ? llm_api_need(err, at, block, "name", LLM_FLAT_STRING) : NULL;
    input = name ? llm_api_need(err, at, block, "input", LLM_FLAT_OBJECT)
                 : NULL;

    if (input == NULL) {
        return LLM_ERROR;
    }

    if (name->count == 0) {
        return llm_api_bad_value(err, llm_api_key(at, "name"),
                                 "Invalid name of a tool: empty string.");
    }

    llm_buf_init(&json, 0);
    (void) llm_json_add_flat(&json, input);

    d->out.failed |= json.failed;
    llm_api_draft_call(d, llm_flat_str(id), llm_flat_str(name),
                       (llm_str_t) { json.len, json.data });
    llm_buf_free(&json);

    return LLM_OK;
}


/* what a tool of another server has answered: texts, pages that were found, or
   an object */

static int
llm_api_mi_served(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_api_at_t *at, llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *content, *v, *url;
    const llm_api_at_t  *here;
    llm_api_part_at_t    where;

    where.assistant = 1;
    where.old = 1;
    where.known = "";

    here = llm_api_key(at, "content");
    content = llm_api_member(block, "content");

    if (content == NULL) {
        return LLM_OK;
    }

    if (content->type == LLM_FLAT_OBJECT) {
        v = llm_api_member(content, "content");

        if (v && llm_api_str_is(llm_api_member(v, "type"), "document")) {
            return llm_api_draft_part(d, v, &where, here, err);
        }

        llm_api_draft_json(d, content);

        return LLM_OK;
    }

    if (content->type != LLM_FLAT_ARRAY) {
        return llm_api_mi_content(d, content, here, err);
    }

    v = llm_flat_first(content);

    for (i = 0; v; i++) {
        url = llm_api_member(v, "url");

        if (url && url->type == LLM_FLAT_STRING) {
            llm_api_draft_text(d, llm_flat_str(url));

        } else if (llm_api_draft_part(d, v, &where, llm_api_idx(here, i), err)
                   != LLM_OK)
        {
            return LLM_ERROR;
        }

        v = llm_flat_next(content, v);
    }

    return LLM_OK;
}


/* does the type's name end so? */

static int
llm_api_mi_ends(const llm_flat_t *type, const char *end)
{
    size_t     n;
    llm_str_t  s;

    n = strlen(end);
    s = llm_flat_str(type);

    return s.len >= n && memcmp(s.data + s.len - n, end, n) == 0;
}


static int
llm_api_mi_answer(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_flat_t *type, const llm_api_at_t *at, llm_err_t *err)
{
    const llm_flat_t   *id, *content;
    llm_api_part_at_t   where;

    /* calls of tools that another server has, and their results */

    if (llm_api_mi_ends(type, "tool_result")) {
        id = llm_api_need(err, at, block, "tool_use_id", LLM_FLAT_STRING);
        if (id == NULL) {
            return LLM_ERROR;
        }

        llm_api_draft_result(d, llm_flat_str(id));

        return llm_api_mi_served(d, block, at, err);
    }

    llm_api_draft_open(d, "assistant");

    if (llm_api_mi_ends(type, "tool_use")) {
        return llm_api_mi_call(d, block, at, err);
    }

    if (llm_api_str_is(type, "thinking")
        && llm_api_need(err, at, block, "thinking", LLM_FLAT_STRING) == NULL)
    {
        return LLM_ERROR;
    }

    /* the summary of what was said before, as a server has made it */

    if (llm_api_str_is(type, "compaction")) {
        content = llm_api_member(block, "content");

        return content ? llm_api_mi_content(d, content,
                                            llm_api_key(at, "content"), err)
                       : LLM_OK;
    }

    where.assistant = 1;
    where.old = 1;
    where.known = "";

    return llm_api_draft_part(d, block, &where, at, err);
}


/* ---- messages ---- */

static int
llm_api_mi_message(llm_api_draft_t *d, const llm_flat_t *msg,
    const llm_api_at_t *at, llm_err_t *err)
{
    const llm_flat_t  *role, *content;

    if (llm_api_check_type(err, at, msg, LLM_FLAT_OBJECT) != LLM_OK) {
        return LLM_ERROR;
    }

    role = llm_api_need(err, at, msg, "role", LLM_FLAT_STRING);
    if (role == NULL) {
        return LLM_ERROR;
    }

    content = llm_api_member(msg, "content");
    if (content == NULL) {
        return llm_api_missing(err, llm_api_key(at, "content"));
    }

    if (llm_api_str_is(role, "user")) {
        return llm_api_mi_user(d, content, llm_api_key(at, "content"), err);
    }

    if (llm_api_str_is(role, "assistant")) {
        llm_api_draft_open(d, "assistant");

        return content->type == LLM_FLAT_ARRAY
               ? llm_api_mi_blocks(d, content, llm_api_key(at, "content"),
                                   llm_api_mi_answer, err)
               : llm_api_mi_content(d, content, llm_api_key(at, "content"),
                                    err);
    }

    if (llm_api_str_is(role, "system")) {
        llm_api_draft_open(d, "system");
        return llm_api_mi_content(d, content, llm_api_key(at, "content"),
                                  err);
    }

    return llm_api_bad_word(err, llm_api_key(at, "role"), llm_flat_str(role),
                            "Supported values are: 'user', 'assistant', and "
                            "'system'.");
}


/*
 * Claude Code's first system block is a header for Anthropic's accounts.  It
 * is nothing for the model, and changes with the client's version and the
 * way that it was started: prompts that are the same but for it would not
 * share the prefix cache.
 */

static int
llm_api_mi_system_block(llm_api_draft_t *d, const llm_flat_t *block,
    const llm_flat_t *type, const llm_api_at_t *at, llm_err_t *err)
{
    llm_str_t          s;
    const llm_flat_t  *text;

    static const char  header[] = "x-anthropic-billing-header:";

    text = llm_flat_get(block, "text");

    if (text && text->type == LLM_FLAT_STRING) {
        s = llm_flat_str(text);

        if (s.len >= sizeof(header) - 1
            && memcmp(s.data, header, sizeof(header) - 1) == 0)
        {
            return LLM_OK;
        }
    }

    llm_api_draft_open(d, "system");

    return llm_api_mi_text(d, block, type, at, err);
}


static int
llm_api_mi_system(llm_api_draft_t *d, const llm_flat_t *system,
    llm_err_t *err)
{
    const llm_api_at_t  *at;

    at = llm_api_top("system");

    if (system->type == LLM_FLAT_ARRAY) {
        return llm_api_mi_blocks(d, system, at, llm_api_mi_system_block, err);
    }

    if (system->type == LLM_FLAT_STRING && system->count == 0) {
        return LLM_OK;
    }

    llm_api_draft_open(d, "system");

    return llm_api_mi_content(d, system, at, err);
}


int
llm_api_messages_input(const llm_api_messages_t *b, llm_api_draft_t *d,
    llm_err_t *err)
{
    uint32_t             i, old;
    const llm_flat_t    *msg;
    const llm_api_at_t  *at;

    at = llm_api_top("messages");

    if (b->messages->type != LLM_FLAT_ARRAY) {
        return llm_api_bad_type(err, at, "an array of objects", b->messages);
    }

    if (b->messages->count == 0) {
        return llm_api_empty(err, at);
    }

    llm_api_draft_messages(d);

    if (b->system && llm_api_mi_system(d, b->system, err) != LLM_OK) {
        return LLM_ERROR;
    }

    msg = llm_flat_first(b->messages);
    old = llm_api_old_messages(b->messages);

    for (i = 0; msg; i++) {
        d->old = i < old;

        if (llm_api_mi_message(d, msg, llm_api_idx(at, i), err) != LLM_OK) {
            return LLM_ERROR;
        }

        msg = llm_flat_next(b->messages, msg);
    }

    llm_api_draft_messages_end(d);

    return LLM_OK;
}


/* ---- tools ---- */

/* a tool with a type of its own runs on Anthropic's servers, or has a schema
   that only its models know: the model is not told of it */

static int
llm_api_mi_tool(llm_api_draft_t *d, const llm_flat_t *tool,
    const llm_api_at_t *at, llm_err_t *err)
{
    const llm_flat_t  *type, *name, *schema;

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

    llm_api_draft_tool(d, llm_flat_str(name),
                       llm_api_member(tool, "description"), schema,
                       llm_api_member(tool, "strict"));

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
