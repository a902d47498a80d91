/*
 * A Responses request's tools, and those that items of its input bring, in the
 * form of a chat request.
 *
 * A tool of the type "namespace" is a list of functions.  In the request's
 * input and in the answer, a call has the namespace and the function's own
 * name as two members; for the model the name is both joined.  The answer must
 * split such names: rd->own is a flat array of pairs of namespace and name.
 */

#include "engine/api/responses.h"

/* joins a namespace and a name; Codex' namespaces may end with it */
#define LLM_API_SPACE  "__"


/* the text between a namespace and a name in the model's name of a function */

static llm_str_t
llm_api_rt_gap(llm_str_t space)
{
    size_t     n;
    llm_str_t  gap;

    gap = llm_str(LLM_API_SPACE);
    n = space.len;

    if (n >= gap.len && memcmp(space.data + n - gap.len, gap.data, gap.len)
                        == 0)
    {
        gap.len = 0;
    }

    return gap;
}


int
llm_api_responses_name(const llm_flat_t *v, const llm_flat_t *space,
    const llm_api_at_t *at, llm_buf_t *full, llm_err_t *err)
{
    llm_str_t          s;
    const llm_flat_t  *name;

    name = llm_api_need(err, at, v, "name", LLM_FLAT_STRING);
    if (name == NULL) {
        return LLM_ERROR;
    }

    if (name->count == 0) {
        return llm_api_bad_value(err, llm_api_key(at, "name"),
                                 "Invalid name of a function: empty string.");
    }

    if (space && llm_api_check_type(err, llm_api_key(at, "namespace"), space,
                                    LLM_FLAT_STRING)
                 != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_buf_init(full, 0);

    if (space && space->count) {
        s = llm_flat_str(space);
        (void) llm_buf_add(full, s.data, s.len);
        s = llm_api_rt_gap(s);
        (void) llm_buf_add(full, s.data, s.len);
    }

    s = llm_flat_str(name);
    (void) llm_buf_add(full, s.data, s.len);

    return LLM_OK;
}


/* removes `what` from the beginning of s; returns 1 if it was there */

static int
llm_api_rt_take(llm_str_t *s, llm_str_t what)
{
    if (s->len < what.len || memcmp(s->data, what.data, what.len) != 0) {
        return 0;
    }

    s->data += what.len;
    s->len -= what.len;

    return 1;
}


llm_str_t
llm_api_responses_space(const llm_api_t *a, llm_str_t *name)
{
    llm_str_t          rest, space;
    const llm_flat_t  *v, *own;

    for (v = llm_flat_first(a->own); v; v = llm_flat_next(a->own, own)) {
        own = llm_flat_next(a->own, v);
        space = llm_flat_str(v);
        rest = *name;

        if (llm_api_rt_take(&rest, space)
            && llm_api_rt_take(&rest, llm_api_rt_gap(space))
            && llm_api_rt_take(&rest, llm_flat_str(own)) && rest.len == 0)
        {
            *name = llm_flat_str(own);
            return space;
        }
    }

    return llm_str("");
}


static int
llm_api_rt_function(llm_api_draft_t *d, const llm_flat_t *tool,
    const llm_flat_t *space, const llm_api_at_t *at, llm_err_t *err)
{
    llm_buf_t  name;

    if (llm_api_check_signature(tool, at, err) != LLM_OK
        || llm_api_responses_name(tool, space, at, &name, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_api_draft_tool(d, (llm_str_t) { name.len, name.data },
                       llm_api_member(tool, "description"),
                       llm_api_member(tool, "parameters"),
                       llm_api_member(tool, "strict"),
                       llm_api_key(at, "parameters"));
    d->out.failed |= name.failed;
    llm_buf_free(&name);

    return LLM_OK;
}


/* adds the functions of a namespace, also those with "defer_loading", which a
   search would find: there is no search here */

static int
llm_api_rt_namespace(llm_api_draft_t *d, const llm_flat_t *tool,
    const llm_api_at_t *at, llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *list, *space, *type, *v;
    const llm_api_at_t  *here;

    space = llm_api_need(err, at, tool, "name", LLM_FLAT_STRING);
    list = space ? llm_api_need(err, at, tool, "tools", LLM_FLAT_ARRAY) : NULL;

    if (list == NULL) {
        return LLM_ERROR;
    }

    v = llm_flat_first(list);

    for (i = 0; v; i++) {
        here = llm_api_idx(llm_api_key(at, "tools"), i);

        if (llm_api_check_type(err, here, v, LLM_FLAT_OBJECT) != LLM_OK) {
            return LLM_ERROR;
        }

        type = llm_api_need(err, here, v, "type", LLM_FLAT_STRING);

        if (type == NULL
            || (llm_api_str_is(type, "function")
                && llm_api_rt_function(d, v, space, here, err) != LLM_OK))
        {
            return LLM_ERROR;
        }

        v = llm_flat_next(list, v);
    }

    return LLM_OK;
}


/* other types of tools run on OpenAI's servers, or are new; the model is not
   told of them */

static int
llm_api_rt_tool(llm_api_draft_t *d, const llm_flat_t *tool,
    const llm_api_at_t *at, llm_err_t *err)
{
    const llm_flat_t  *type;

    type = llm_api_need(err, at, tool, "type", LLM_FLAT_STRING);
    if (type == NULL) {
        return LLM_ERROR;
    }

    if (llm_api_str_is(type, "namespace")) {
        return llm_api_rt_namespace(d, tool, at, err);
    }

    /* without the client's MCP server a model would invent an answer */

    if (llm_api_str_is(type, "mcp")) {
        return llm_api_unsupported(err, llm_api_key(at, "type"),
                                   "this server calls no MCP servers; give "
                                   "their tools as functions");
    }

    return llm_api_str_is(type, "function")
           ? llm_api_rt_function(d, tool, llm_api_member(tool, "namespace"),
                                 at, err)
           : LLM_OK;
}


static uint32_t
llm_api_rt_keep_pair(llm_buf_t *own, const llm_flat_t *space,
    const llm_flat_t *tool)
{
    if (space == NULL
        || !llm_api_str_is(llm_api_member(tool, "type"), "function"))
    {
        return 0;
    }

    llm_flat_add_node(own, space);
    llm_flat_add_node(own, llm_api_member(tool, "name"));

    return 2;
}


/* keeps the pairs of names of a checked tool; returns the number of strings */

static uint32_t
llm_api_rt_keep(llm_buf_t *own, const llm_flat_t *tool)
{
    uint32_t           n;
    const llm_flat_t  *list, *v;

    if (!llm_api_str_is(llm_api_member(tool, "type"), "namespace")) {
        return llm_api_rt_keep_pair(own, llm_api_member(tool, "namespace"),
                                    tool);
    }

    n = 0;
    list = llm_api_member(tool, "tools");

    for (v = llm_flat_first(list); v; v = llm_flat_next(list, v)) {
        n += llm_api_rt_keep_pair(own, llm_api_member(tool, "name"), v);
    }

    return n;
}


static uint32_t
llm_api_rt_keep_all(llm_buf_t *own, const llm_flat_t *tools)
{
    uint32_t           n;
    const llm_flat_t  *v;

    n = 0;

    for (v = tools ? llm_flat_first(tools) : NULL; v;
         v = llm_flat_next(tools, v))
    {
        n += llm_api_rt_keep(own, v);
    }

    return n;
}


/* {"type":"allowed_tools","mode":…,"tools":[…]}; in a chat, mode and tools are
   inside "allowed_tools", and a tool's name is inside "function" */

static int
llm_api_rt_allowed(llm_api_draft_t *d, const llm_flat_t *choice,
    llm_err_t *err)
{
    size_t               handle, inner;
    const llm_flat_t    *mode, *tools;
    const llm_api_at_t  *at;

    at = llm_api_top("tool_choice");

    mode = llm_api_need(err, at, choice, "mode", LLM_FLAT_STRING);
    tools = mode ? llm_api_need(err, at, choice, "tools", LLM_FLAT_ARRAY)
                 : NULL;

    if (tools == NULL) {
        return LLM_ERROR;
    }

    llm_api_draft_key(d, "tool_choice");
    handle = llm_flat_open(&d->out, LLM_FLAT_OBJECT);
    llm_flat_add_str(&d->out, "type", 4);
    llm_flat_add_str(&d->out, "allowed_tools", 13);
    llm_flat_add_str(&d->out, "allowed_tools", 13);
    inner = llm_flat_open(&d->out, LLM_FLAT_OBJECT);
    llm_flat_add_str(&d->out, "mode", 4);
    llm_flat_add_node(&d->out, mode);
    llm_flat_add_str(&d->out, "tools", 5);

    if (llm_api_draft_tools(d, tools, llm_api_key(at, "tools"),
                            llm_api_rt_tool, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_flat_close(&d->out, inner, 2);
    llm_flat_close(&d->out, handle, 2);

    return LLM_OK;
}


static int
llm_api_rt_choice(llm_api_draft_t *d, const llm_flat_t *choice,
    llm_err_t *err)
{
    llm_buf_t            name;
    const llm_flat_t    *type;
    const llm_api_at_t  *at;

    at = llm_api_top("tool_choice");

    if (choice == NULL || choice->type != LLM_FLAT_OBJECT) {
        llm_api_draft_node(d, "tool_choice", choice);
        return LLM_OK;
    }

    type = llm_api_need(err, at, choice, "type", LLM_FLAT_STRING);
    if (type == NULL) {
        return LLM_ERROR;
    }

    if (llm_api_str_is(type, "allowed_tools")) {
        return llm_api_rt_allowed(d, choice, err);
    }

    if (!llm_api_str_is(type, "function")) {
        return llm_api_bad_word(err, llm_api_key(at, "type"),
                                llm_flat_str(type), "Supported are "
                                "'function' and 'allowed_tools': this server "
                                "has no tools of its own.");
    }

    if (llm_api_responses_name(choice, llm_api_member(choice, "namespace"), at,
                               &name, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_api_draft_choose(d, (llm_str_t) { name.len, name.data });
    d->out.failed |= name.failed;
    llm_buf_free(&name);

    return LLM_OK;
}


/* the same for an item's tools, of which another server may have left some
   that are skipped here */

static int
llm_api_rt_brought(llm_api_draft_t *d, const llm_flat_t *tool,
    const llm_api_at_t *at, llm_err_t *err)
{
    const llm_flat_t  *type;

    type = llm_api_member(tool, "type");

    return llm_api_str_is(type, "function")
           || llm_api_str_is(type, "namespace")
           ? llm_api_rt_tool(d, tool, at, err) : LLM_OK;
}


/* reads the request's tools, then those that its items bring; *n: pairs of
   names kept */

static int
llm_api_rt_all(llm_api_reader_t *rd, const llm_api_responses_t *b,
    llm_api_draft_t *d, uint32_t *n, llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *item, *tools;
    const llm_api_at_t  *at;

    if (b->tools && llm_api_draft_tools_of(d, b->tools, llm_api_top("tools"),
                                           llm_api_rt_tool, err)
                    != LLM_OK)
    {
        return LLM_ERROR;
    }

    *n = llm_api_rt_keep_all(&rd->own, b->tools);

    if (b->input->type != LLM_FLAT_ARRAY) {
        return LLM_OK;
    }

    d->once = 1;
    item = llm_flat_first(b->input);

    for (i = 0; item; i++) {
        tools = llm_api_responses_brought(item);
        at = llm_api_idx(llm_api_top("input"), i);

        if (tools) {
            at = llm_api_key(at, "tools");

            if (llm_api_check_type(err, at, tools, LLM_FLAT_ARRAY) != LLM_OK
                || llm_api_draft_tools_of(d, tools, at, llm_api_rt_brought,
                                          err)
                   != LLM_OK)
            {
                return LLM_ERROR;
            }

            *n += llm_api_rt_keep_all(&rd->own, tools);
        }

        item = llm_flat_next(b->input, item);
    }

    return LLM_OK;
}


int
llm_api_responses_tools(llm_api_reader_t *rd, const llm_api_responses_t *b,
    llm_api_draft_t *d, llm_err_t *err)
{
    int       rc;
    size_t    own, handle;
    uint32_t  n;

    n = 0;
    own = llm_flat_open(&rd->own, LLM_FLAT_ARRAY);

    llm_api_draft_key(d, "tools");
    handle = llm_api_draft_tools_begin(d);
    rc = llm_api_rt_all(rd, b, d, &n, err);
    llm_api_draft_tools_end(d, handle);

    llm_flat_close(&rd->own, own, n);

    return rc == LLM_OK ? llm_api_rt_choice(d, b->tool_choice, err) : rc;
}
