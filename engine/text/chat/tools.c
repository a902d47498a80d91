/*
 * Adapts a request's tools to a template: members that clients may leave out,
 * variables in which one family of templates expects the tools, and a text for
 * templates that show no tools; see norm.h.
 */

#include "engine/text/chat/norm.h"

#include <time.h>


static void
llm_ct_key(llm_buf_t *out, const char *key)
{
    llm_flat_add_str(out, key, strlen(key));
}


static int
llm_ct_is_missing(const llm_flat_t *object, const char *key)
{
    const llm_flat_t  *v;

    v = llm_flat_get(object, key);

    return v == NULL || v->type == LLM_FLAT_NULL;
}


/* adds the pairs of an object that are not null; returns their number */

static uint32_t
llm_ct_pairs(const llm_flat_t *object, llm_buf_t *out)
{
    uint32_t           n;
    const llm_flat_t  *k, *v;

    n = 0;

    for (k = llm_flat_first(object); k; k = llm_flat_next(object, v)) {
        v = llm_flat_next(object, k);

        if (v->type != LLM_FLAT_NULL) {
            llm_flat_add_node(out, k);
            llm_flat_add_node(out, v);
            n++;
        }
    }

    return n;
}


/* adds parameters: an object's schema, with properties; schema may be NULL */

static void
llm_ct_parameters(const llm_flat_t *schema, llm_buf_t *out)
{
    size_t    handle, inner;
    uint32_t  n;

    handle = llm_flat_open(out, LLM_FLAT_OBJECT);
    n = schema ? llm_ct_pairs(schema, out) : 0;

    if (llm_ct_is_missing(schema, "type")) {
        llm_ct_key(out, "type");
        llm_ct_key(out, "object");
        n++;
    }

    if (llm_ct_is_missing(schema, "properties")) {
        llm_ct_key(out, "properties");
        inner = llm_flat_open(out, LLM_FLAT_OBJECT);
        llm_flat_close(out, inner, 0);
        n++;
    }

    llm_flat_close(out, handle, n);
}


static void
llm_ct_function(const llm_flat_t *f, llm_buf_t *out)
{
    size_t             handle;
    uint32_t           n;
    const llm_flat_t  *k, *v, *schema;

    schema = NULL;
    n = 2;
    handle = llm_flat_open(out, LLM_FLAT_OBJECT);

    for (k = llm_flat_first(f); k; k = llm_flat_next(f, v)) {
        v = llm_flat_next(f, k);

        if (llm_chat_is(k, "parameters") && v->type == LLM_FLAT_OBJECT) {
            schema = v;

        } else if (v->type != LLM_FLAT_NULL
                   && !llm_chat_is(k, "description"))
        {
            llm_flat_add_node(out, k);
            llm_flat_add_node(out, v);
            n++;
        }
    }

    llm_ct_key(out, "description");

    if (llm_ct_is_missing(f, "description")) {
        llm_ct_key(out, "");

    } else {
        llm_flat_add_node(out, llm_flat_get(f, "description"));
    }

    llm_ct_key(out, "parameters");
    llm_ct_parameters(schema, out);

    llm_flat_close(out, handle, n);
}


static void
llm_ct_tool(const llm_flat_t *tool, llm_buf_t *out)
{
    size_t             handle;
    const llm_flat_t  *k, *v;

    if (tool->type != LLM_FLAT_OBJECT) {
        llm_flat_add_node(out, tool);
        return;
    }

    handle = llm_flat_open(out, LLM_FLAT_OBJECT);

    for (k = llm_flat_first(tool); k; k = llm_flat_next(tool, v)) {
        v = llm_flat_next(tool, k);
        llm_flat_add_node(out, k);

        if (llm_chat_is(k, "function") && v->type == LLM_FLAT_OBJECT) {
            llm_ct_function(v, out);

        } else {
            llm_flat_add_node(out, v);
        }
    }

    llm_flat_close(out, handle, tool->count);
}


void
llm_chat_add_tools(const llm_flat_t *tools, uint64_t what, llm_buf_t *out)
{
    size_t             handle;
    const llm_flat_t  *tool;

    if (tools == NULL || tools->type == LLM_FLAT_NULL) {

        if (what & LLM_CN_NO_TOOLS) {
            llm_flat_close(out, llm_flat_open(out, LLM_FLAT_ARRAY), 0);

        } else {
            llm_flat_add_null(out);
        }

        return;
    }

    if (!(what & LLM_CN_WHOLE_TOOLS) || tools->type != LLM_FLAT_ARRAY) {
        llm_flat_add_node(out, tools);
        return;
    }

    handle = llm_flat_open(out, LLM_FLAT_ARRAY);

    for (tool = llm_flat_first(tools); tool;
         tool = llm_flat_next(tools, tool))
    {
        llm_ct_tool(tool, out);
    }

    llm_flat_close(out, handle, tools->count);
}


/*
 * Adds "functions", the tools as JSON, and "datetime".  The latter is only a
 * day: a time that changes every second would keep prompts out of the prefix
 * cache.
 */

uint32_t
llm_chat_add_functions(const llm_flat_t *tools, int64_t now, llm_buf_t *out)
{
    char       day[32];
    time_t     t;
    llm_buf_t  json;
    struct tm  tm;

    t = now ? (time_t) now : time(NULL);

    if (localtime_r(&t, &tm) == NULL
        || strftime(day, sizeof(day), "%b %d %Y", &tm) == 0)
    {
        out->failed = 1;
        return 0;
    }

    llm_buf_init(&json, 0);

    if (tools && tools->type == LLM_FLAT_ARRAY && tools->count) {
        (void) llm_chat_add_json(&json, tools);
    }

    llm_ct_key(out, "functions");
    llm_flat_add_str(out, json.len ? json.data : "", json.len);
    llm_ct_key(out, "datetime");
    llm_ct_key(out, day);

    out->failed |= json.failed;
    llm_buf_free(&json);

    return 2;
}


/* ---- tools told in the system message ---- */

static void
llm_ct_tell(const llm_flat_t *tools, llm_buf_t *text)
{
    const llm_flat_t  *tool, *function;

    (void) llm_buf_adds(text, "These functions can be called, each line "
                        "describes one:\n");

    for (tool = llm_flat_first(tools); tool;
         tool = llm_flat_next(tools, tool))
    {
        function = llm_flat_get(tool, "function");
        (void) llm_chat_add_json(text, function ? function : tool);
        (void) llm_buf_addc(text, '\n');
    }

    (void) llm_buf_adds(text, "To call one, write its name and arguments like "
                        "this, once for each call:\n<tool_call>\n{\"name\": "
                        "\"function\", \"arguments\": {\"parameter\": "
                        "\"value\"}}\n</tool_call>\nIts result comes between "
                        "<tool_response> and </tool_response>.");
}


/* adds the system message, followed by the text; msg: NULL if there is none */

static void
llm_ct_system(const llm_flat_t *msg, const llm_buf_t *text, llm_buf_t *out)
{
    size_t             handle;
    uint32_t           n;
    llm_buf_t          all;
    const llm_flat_t  *k, *v;

    llm_buf_init(&all, 0);

    if (msg && llm_chat_add_text(&all, llm_flat_get(msg, "content")) == LLM_OK
        && all.len)
    {
        (void) llm_buf_adds(&all, "\n\n");
    }

    (void) llm_buf_add(&all, text->data, text->len);

    handle = llm_flat_open(out, LLM_FLAT_OBJECT);
    n = 1;

    if (msg == NULL) {
        llm_ct_key(out, "role");
        llm_ct_key(out, "system");
        n++;
    }

    for (k = msg ? llm_flat_first(msg) : NULL; k; k = llm_flat_next(msg, v)) {
        v = llm_flat_next(msg, k);

        if (!llm_chat_is(k, "content")) {
            llm_flat_add_node(out, k);
            llm_flat_add_node(out, v);
            n++;
        }
    }

    llm_ct_key(out, "content");
    llm_flat_add_str(out, all.len ? all.data : "", all.len);
    llm_flat_close(out, handle, n);

    out->failed |= all.failed;
    llm_buf_free(&all);
}


int
llm_chat_tell_tools(const llm_flat_t *messages, const llm_flat_t *tools,
    llm_buf_t *out, llm_err_t *err)
{
    size_t             handle;
    uint32_t           n;
    llm_buf_t          text;
    const llm_flat_t  *msg, *role;

    llm_buf_init(&text, 0);
    llm_ct_tell(tools, &text);

    msg = llm_flat_first(messages);
    n = messages->count;
    role = msg && msg->type == LLM_FLAT_OBJECT ? llm_flat_get(msg, "role")
                                               : NULL;

    handle = llm_flat_open(out, LLM_FLAT_ARRAY);

    if (llm_chat_is(role, "system") || llm_chat_is(role, "developer")) {
        llm_ct_system(msg, &text, out);
        msg = llm_flat_next(messages, msg);

    } else {
        llm_ct_system(NULL, &text, out);
        n++;
    }

    for ( /* void */ ; msg; msg = llm_flat_next(messages, msg)) {
        llm_flat_add_node(out, msg);
    }

    llm_flat_close(out, handle, n);

    out->failed |= text.failed;
    llm_buf_free(&text);

    return out->failed ? llm_fail(err, "the messages are too large") : LLM_OK;
}
