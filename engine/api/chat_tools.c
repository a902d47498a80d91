/*
 * A chat request's tools, and how its answer may use them: tool_choice,
 * parallel_tool_calls, and the older functions and function_call.  Also its
 * documents, which templates read in the same way as tools.
 *
 * The prompt shows all tools, also those that tool_choice excludes, so that it
 * stays the same from turn to turn; only with "none" it shows none.
 */

#include "engine/api/chat.h"

#define LLM_API_MAX_ALLOWED  128


static const llm_flat_t *
llm_api_tool_list(const llm_api_chat_t *b)
{
    return b->tools && b->tools->count ? b->tools
           : b->functions && b->functions->count ? b->functions : NULL;
}


static const llm_flat_t *
llm_api_tool_choice(const llm_api_chat_t *b)
{
    return b->tool_choice ? b->tool_choice : b->function_call;
}


/* "true" would be a valid schema, but templates read an object's members */

int
llm_api_check_signature(const llm_flat_t *function, const llm_api_at_t *at,
    llm_err_t *err)
{
    const llm_flat_t  *v;

    v = llm_api_member(function, "parameters");

    if (v && llm_api_check_type(err, llm_api_key(at, "parameters"), v,
                                LLM_FLAT_OBJECT)
             != LLM_OK)
    {
        return LLM_ERROR;
    }

    v = llm_api_member(function, "strict");

    return v ? llm_api_check_type(err, llm_api_key(at, "strict"), v,
                                  LLM_FLAT_BOOL)
             : LLM_OK;
}


static int
llm_api_check_tool_list(const llm_flat_t *list, llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *v;
    const llm_api_at_t  *at;

    at = llm_api_top("tools");

    if (llm_api_check_functions(list, at, err) != LLM_OK) {
        return LLM_ERROR;
    }

    v = llm_flat_first(list);

    for (i = 0; v; i++) {
        if (llm_api_check_signature(llm_api_member(v, "function"),
                                    llm_api_key(llm_api_idx(at, i),
                                                "function"),
                                    err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        v = llm_flat_next(list, v);
    }

    return LLM_OK;
}


/* a document must have what templates read: members, such as a "title" and a
   "text" */

static int
llm_api_check_documents(const llm_flat_t *list, llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *v;
    const llm_api_at_t  *at;

    at = llm_api_top("documents");
    v = list ? llm_flat_first(list) : NULL;

    for (i = 0; v; i++) {
        if (llm_api_check_type(err, llm_api_idx(at, i), v, LLM_FLAT_OBJECT)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        v = llm_flat_next(list, v);
    }

    return LLM_OK;
}


int
llm_api_check_tools(const llm_api_chat_t *b, llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *v;
    const llm_api_at_t  *at;

    if (llm_api_check_documents(b->documents, err) != LLM_OK
        || (b->tools && llm_api_check_tool_list(b->tools, err) != LLM_OK))
    {
        return LLM_ERROR;
    }

    if (b->functions == NULL || b->functions->count == 0) {
        return LLM_OK;
    }

    at = llm_api_top("functions");

    if (b->tools && b->tools->count) {
        return llm_api_bad_value(err, at, "'functions' and 'tools' cannot "
                                 "both be given; use 'tools'.");
    }

    v = llm_flat_first(b->functions);

    for (i = 0; v; i++) {
        if (llm_api_check_type(err, llm_api_idx(at, i), v, LLM_FLAT_OBJECT)
            != LLM_OK
            || llm_api_check_name(v, llm_api_idx(at, i), err) != LLM_OK
            || llm_api_check_signature(v, llm_api_idx(at, i), err) != LLM_OK)
        {
            return LLM_ERROR;
        }

        v = llm_flat_next(b->functions, v);
    }

    return LLM_OK;
}


static void
llm_api_add_key(llm_buf_t *out, const char *key)
{
    llm_flat_add_str(out, key, strlen(key));
}


int
llm_api_write_tools(const llm_api_chat_t *b, llm_buf_t *out)
{
    size_t             array, tool;
    const llm_flat_t  *list, *v;

    list = llm_api_tool_list(b);

    if (list == NULL || llm_api_str_is(llm_api_tool_choice(b), "none")) {
        return 0;
    }

    llm_api_add_key(out, "tools");

    if (list == b->tools) {
        llm_flat_add_node(out, list);
        return 1;
    }

    array = llm_flat_open(out, LLM_FLAT_ARRAY);

    for (v = llm_flat_first(list); v; v = llm_flat_next(list, v)) {
        tool = llm_flat_open(out, LLM_FLAT_OBJECT);
        llm_api_add_key(out, "type");
        llm_api_add_key(out, "function");
        llm_api_add_key(out, "function");
        llm_flat_add_node(out, v);
        llm_flat_close(out, tool, 2);
    }

    llm_flat_close(out, array, list->count);

    return 1;
}


/* ---- the choice ---- */

/* the names that may be called, in the form of the message */
typedef struct {
    llm_api_reader_t      *rd;
    const llm_api_chat_t  *b;
    llm_err_t             *err;
    const llm_api_at_t    *at;          /* place of tool_choice */
    llm_ref_t              refs[LLM_API_MAX_ALLOWED];
    uint32_t               n;
} llm_api_choosing_t;


static int
llm_api_is_tool(const llm_api_chat_t *b, const llm_flat_t *name)
{
    const llm_flat_t  *list, *v, *f, *own;

    list = llm_api_tool_list(b);

    for (v = list ? llm_flat_first(list) : NULL; v;
         v = llm_flat_next(list, v))
    {
        f = llm_api_member(v, "function");
        own = llm_api_member(f ? f : v, "name");

        if (own && own->count == name->count
            && memcmp(llm_flat_str(own).data, llm_flat_str(name).data,
                      name->count) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* reads {"function": {"name": n}} or, as in Responses and function_call,
   {"name": n} */

static int
llm_api_choose_name(llm_api_choosing_t *c, const llm_flat_t *v,
    const llm_api_at_t *at)
{
    llm_str_t            s;
    const llm_flat_t    *f, *name;
    const llm_api_at_t  *here;

    f = llm_api_member(v, "function");
    here = f ? llm_api_key(at, "function") : at;

    if (f && llm_api_check_type(c->err, here, f, LLM_FLAT_OBJECT) != LLM_OK) {
        return LLM_ERROR;
    }

    f = f ? f : v;

    if (llm_api_check_name(f, here, c->err) != LLM_OK) {
        return LLM_ERROR;
    }

    name = llm_flat_get(f, "name");
    s = llm_flat_str(name);

    if (!llm_api_is_tool(c->b, name)) {
        return llm_api_bad_value(c->err, llm_api_key(here, "name"),
                                 "There is no tool named '%.*s'.",
                                 (int) llm_min(s.len, 64), s.data);
    }

    if (c->n == LLM_API_MAX_ALLOWED) {
        return llm_api_bad_value(c->err, c->at, "Too many tools are allowed: "
                                 "at most %d can be.", LLM_API_MAX_ALLOWED);
    }

    c->refs[c->n].off = (uint32_t) c->rd->msg->len;
    c->refs[c->n++].len = (uint32_t) s.len;
    (void) llm_buf_add(c->rd->msg, s.data, s.len);

    return LLM_OK;
}


/* reads {"mode": "auto" or "required", "tools": [...]} */

static int
llm_api_choose_allowed(llm_api_choosing_t *c, const llm_flat_t *v,
    const llm_api_at_t *at)
{
    uint32_t             i;
    const llm_flat_t    *mode, *list, *tool;
    const llm_api_at_t  *here;

    mode = llm_api_need(c->err, at, v, "mode", LLM_FLAT_STRING);
    list = mode ? llm_api_need(c->err, at, v, "tools", LLM_FLAT_ARRAY) : NULL;

    if (list == NULL) {
        return LLM_ERROR;
    }

    if (llm_api_str_is(mode, "required")) {
        c->rd->r.tool_choice = LLM_TOOLS_REQUIRED;

    } else if (!llm_api_str_is(mode, "auto")) {
        return llm_api_bad_value(c->err, llm_api_key(at, "mode"),
                                 "Invalid value of 'mode'. Supported values "
                                 "are: 'auto' and 'required'.");
    }

    here = llm_api_key(at, "tools");

    if (list->count == 0) {
        return llm_api_empty(c->err, here);
    }

    tool = llm_flat_first(list);

    for (i = 0; tool; i++) {
        if (llm_api_check_type(c->err, llm_api_idx(here, i), tool,
                               LLM_FLAT_OBJECT)
            != LLM_OK
            || llm_api_choose_name(c, tool, llm_api_idx(here, i)) != LLM_OK)
        {
            return LLM_ERROR;
        }

        tool = llm_flat_next(list, tool);
    }

    return LLM_OK;
}


static int
llm_api_choose_object(llm_api_choosing_t *c, const llm_flat_t *v)
{
    const llm_flat_t  *type, *allowed;

    type = llm_api_member(v, "type");

    if (llm_api_str_is(type, "allowed_tools")) {
        allowed = llm_api_member(v, "allowed_tools");

        if (allowed == NULL) {
            return llm_api_choose_allowed(c, v, c->at);
        }

        return llm_api_check_type(c->err, llm_api_key(c->at, "allowed_tools"),
                                  allowed, LLM_FLAT_OBJECT)
               == LLM_OK
               ? llm_api_choose_allowed(c, allowed,
                                        llm_api_key(c->at, "allowed_tools"))
               : LLM_ERROR;
    }

    if (type && !llm_api_str_is(type, "function")) {
        return llm_api_bad_value(c->err, llm_api_key(c->at, "type"),
                                 "Invalid value. Supported values are: "
                                 "'function' and 'allowed_tools'.");
    }

    /* a named function is called exactly once, as OpenAI documents */

    c->rd->r.tool_choice = LLM_TOOLS_REQUIRED;
    c->rd->r.tool_single = 1;

    return llm_api_choose_name(c, v, c->at);
}


static int
llm_api_choose_word(llm_api_choosing_t *c, const llm_flat_t *v)
{
    if (llm_api_str_is(v, "none")) {
        c->rd->r.tool_choice = LLM_TOOLS_NONE;

    } else if (llm_api_str_is(v, "required")
               || llm_api_str_is(v, "any"))
    {
        c->rd->r.tool_choice = LLM_TOOLS_REQUIRED;

    } else if (!llm_api_str_is(v, "auto")) {
        return llm_api_bad_value(c->err, c->at,
                                 "Invalid value for 'tool_choice'. Supported "
                                 "values are: 'none', 'auto', 'required', or "
                                 "an object that names a function.");
    }

    return LLM_OK;
}


int
llm_api_write_choice(llm_api_reader_t *rd, const llm_api_chat_t *b,
    llm_err_t *err)
{
    int                  rc;
    const llm_flat_t    *v;
    llm_api_choosing_t   c;

    v = llm_api_tool_choice(b);

    c.rd = rd;
    c.b = b;
    c.err = err;
    c.at = llm_api_top(b->tool_choice ? "tool_choice" : "function_call");
    c.n = 0;

    rd->r.tool_choice = LLM_TOOLS_AUTO;
    rd->r.tool_single = b->parallel_tool_calls == 0
                        || (b->functions && b->functions->count);

    if (v == NULL) {
        return LLM_OK;
    }

    if (v->type == LLM_FLAT_STRING) {
        rc = llm_api_choose_word(&c, v);

    } else if (v->type == LLM_FLAT_OBJECT) {
        rc = llm_api_choose_object(&c, v);

    } else {
        return llm_api_bad_type(err, c.at, "a string or an object", v);
    }

    if (rc != LLM_OK) {
        return LLM_ERROR;
    }

    if (rd->r.tool_choice == LLM_TOOLS_REQUIRED
        && llm_api_tool_list(b) == NULL)
    {
        return llm_api_bad_value(err, c.at, "A call can be required only "
                                 "where 'tools' are given.");
    }

    (void) llm_buf_pad(rd->msg);
    rd->r.tool_names.off = (uint32_t) rd->msg->len;
    rd->r.tool_names.len = c.n;
    (void) llm_buf_add(rd->msg, c.refs, c.n * sizeof(llm_ref_t));
    (void) llm_buf_pad(rd->msg);

    return LLM_OK;
}
