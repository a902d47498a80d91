/*
 * What a call says: the name of a tool and its arguments, as JSON; see call.h.
 *
 * A value between marks has no quotes, so only the tool's schema tells whether
 * 5 is a number or a string; without a schema a value has the type that it
 * looks like.
 */

#include "engine/emit/loose_internal.h"
#include "engine/emit/types.h"

#define LLM_ARGS_CALLS  256             /* most calls of one list */

/* calls that are being read; none is handed out before all are read */
typedef struct {
    const llm_call_t  *call;
    llm_str_t          text;
    llm_buf_t          json;            /* arguments of all calls */
    uint32_t           n;
    struct {
        llm_str_t      name;            /* the tool's name */
        size_t         end;             /* end of its arguments in json */
    } calls[LLM_ARGS_CALLS];
} llm_args_t;


/* adds a call whose arguments have been appended to json */

static int
llm_args_done(llm_args_t *a, llm_str_t name)
{
    const llm_tool_t  *tool;

    tool = llm_tools_named(a->call->tools, name);

    if (tool == NULL || a->n == LLM_ARGS_CALLS || a->json.failed) {
        return LLM_ERROR;
    }

    a->calls[a->n].name = tool->name;
    a->calls[a->n++].end = a->json.len;

    return LLM_OK;
}


static int
llm_args_json(llm_args_t *a, llm_str_t text, llm_str_t quote)
{
    llm_lit_t  r;

    llm_lit_init(&r, text, quote, &a->json);

    return llm_lit_value(&r) == LLM_OK && r.p == r.end ? LLM_OK : LLM_ERROR;
}


/* ---- an object that has the name in it ---- */

static int
llm_args_among(llm_str_t key, llm_str_t own, const char *const *usual,
    size_t n)
{
    size_t  i;

    if (own.len && llm_str_eq(own, key)) {
        return 1;
    }

    for (i = 0; i < n; i++) {
        if (llm_str_is(key, usual[i])) {
            return 1;
        }
    }

    return 0;
}


int
llm_call_is_name(const llm_form_t *form, llm_str_t key)
{
    static const char *const  usual[] = {
        "name", "tool_name", "function", "tool", "function_name"
    };

    return llm_args_among(key, form->name_key, usual, llm_nelems(usual));
}


int
llm_call_is_args(const llm_form_t *form, llm_str_t key)
{
    static const char *const  usual[] = {
        "arguments", "parameters", "args", "input", "params"
    };

    return llm_args_among(key, form->args_key, usual, llm_nelems(usual));
}


static llm_str_t
llm_args_trim(llm_str_t s)
{
    while (s.len && llm_mark_is_space(s.data[s.len - 1])) {
        s.len--;
    }

    while (s.len && llm_mark_is_space(s.data[0])) {
        s.data++;
        s.len--;
    }

    return s;
}


/* a string's text without its quotes, escapes unchanged */

static llm_str_t
llm_args_unquote(llm_str_t s)
{
    s = llm_args_trim(s);

    return s.len < 2 ? s : (llm_str_t) { s.len - 2, s.data + 1 };
}


/* reads the arguments of an object: an object, nothing, or a string that holds
   an object */

static int
llm_args_value(llm_args_t *a, llm_str_t value)
{
    int        rc;
    llm_buf_t  text;

    value = llm_args_trim(value);

    if (value.len == 0 || llm_str_is(value, "null")
        || llm_str_is(value, "None") || llm_str_is(value, "\"\""))
    {
        return llm_buf_adds(&a->json, "{}");
    }

    if (value.data[0] == '{') {
        return llm_args_json(a, value, llm_str(""));
    }

    if (value.data[0] != '"') {
        return LLM_ERROR;
    }

    llm_buf_init(&text, value.len + 1);
    rc = llm_lit_unescape(llm_args_unquote(value), &text);

    if (rc == LLM_OK && text.len) {
        value = llm_args_trim((llm_str_t) { text.len, text.data });
        rc = value.len && value.data[0] == '{'
             ? llm_args_json(a, value, llm_str("")) : LLM_ERROR;
    }

    llm_buf_free(&text);

    return rc;
}


/* reads an object: {"function": {...}} stands for the inner object, {"f":
   {...}} calls f */

static int
llm_args_object(llm_args_t *a, llm_str_t text, int depth)
{
    int                rc;
    uint32_t           n;
    llm_lit_t          r;
    llm_str_t          key, value, name, args, only, inner;
    const llm_form_t  *form;

    form = a->call->form;
    memset(&name, 0, sizeof(name));
    memset(&args, 0, sizeof(args));
    memset(&only, 0, sizeof(only));
    memset(&inner, 0, sizeof(inner));

    llm_lit_init(&r, text, llm_str(""), NULL);
    r.p++;

    for (n = 0; (rc = llm_lit_member(&r, &key, &value)) == LLM_OK; n++) {
        value = llm_args_trim(value);
        only = key;

        if (llm_call_is_name(form, key) && name.len == 0
            && (value.data[0] == '"' || value.data[0] == '\''))
        {
            name = llm_args_unquote(value);

        } else if (llm_call_is_args(form, key)) {
            args = value;

        } else if (llm_str_is(key, "function") && value.data[0] == '{') {
            inner = value;
        }
    }

    if (rc != LLM_END) {
        return LLM_ERROR;
    }

    if (inner.len && name.len == 0 && depth == 0) {
        return llm_args_object(a, inner, 1);
    }

    if (name.len == 0 && n == 1 && value.data[0] == '{') {
        name = only;
        args = value;
    }

    if (name.len == 0 || (args.len == 0 && a->call->bare)) {
        return LLM_ERROR;
    }

    rc = llm_args_value(a, args);

    return rc == LLM_OK ? llm_args_done(a, name) : rc;
}


static int
llm_args_objects(llm_args_t *a, llm_str_t text)
{
    int        rc;
    llm_lit_t  r;
    llm_str_t  item;

    if (text.data[0] == '{') {
        return llm_args_object(a, text, 0);
    }

    llm_lit_init(&r, text, llm_str(""), NULL);
    r.p++;

    while ((rc = llm_lit_item(&r, &item)) == LLM_OK) {
        item = llm_args_trim(item);

        if (item.data[0] != '{' || llm_args_object(a, item, 0) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return rc == LLM_END && a->n ? LLM_OK : LLM_ERROR;
}


/* ---- Python's calls ---- */

static int
llm_args_keyword(llm_args_t *a, llm_lit_t *r)
{
    llm_str_t  key;

    key.data = r->p;

    while (r->p < r->end && (*r->p == '_' || (*r->p >= '0' && *r->p <= '9')
                             || (*r->p >= 'a' && *r->p <= 'z')
                             || (*r->p >= 'A' && *r->p <= 'Z')))
    {
        r->p++;
    }

    key.len = (size_t) (r->p - key.data);
    r->out = NULL;
    llm_lit_space(r);

    if (key.len == 0 || r->p == r->end || *r->p++ != '=') {
        return LLM_ERROR;
    }

    (void) llm_lit_quote(key, &a->json);
    (void) llm_buf_adds(&a->json, ": ");

    llm_lit_space(r);
    r->out = &a->json;

    return llm_lit_value(r);
}


/* reads f(a=1, b='x') at r->p */

static int
llm_args_python_call(llm_args_t *a, llm_lit_t *r)
{
    int        more;
    llm_str_t  name;

    r->out = NULL;
    llm_lit_space(r);
    name.data = r->p;

    while (r->p < r->end && *r->p != '(') {
        r->p++;
    }

    if (r->p == r->end) {
        return LLM_ERROR;
    }

    name.len = (size_t) (r->p - name.data);
    r->p++;
    llm_lit_space(r);
    (void) llm_buf_addc(&a->json, '{');

    for (more = 0; r->p < r->end && *r->p != ')'; more = 1) {

        if (more) {
            if (*r->p++ != ',') {
                return LLM_ERROR;
            }

            llm_lit_space(r);
            (void) llm_buf_adds(&a->json, ", ");
        }

        if (llm_args_keyword(a, r) != LLM_OK) {
            return LLM_ERROR;
        }

        r->out = NULL;
    }

    if (r->p == r->end) {
        return LLM_ERROR;
    }

    r->p++;
    llm_lit_space(r);
    (void) llm_buf_addc(&a->json, '}');

    return llm_args_done(a, name);
}


static int
llm_args_python(llm_args_t *a, llm_str_t text)
{
    llm_lit_t  r;

    llm_lit_init(&r, text, llm_str(""), NULL);

    if (*r.p != '[') {
        return llm_args_python_call(a, &r) == LLM_OK && r.p == r.end
               ? LLM_OK : LLM_ERROR;
    }

    do {
        r.p++;

        if (llm_args_python_call(a, &r) != LLM_OK || r.p == r.end) {
            return LLM_ERROR;
        }

    } while (*r.p == ',');

    return *r.p == ']' && r.p + 1 == r.end ? LLM_OK : LLM_ERROR;
}


/* ---- parameters between marks ---- */

/* removes the white space that belongs to the marks, once */

static llm_str_t
llm_args_inside(const llm_form_t *form, llm_str_t s)
{
    llm_str_t  lead, tail;

    lead = form->value_lead;
    tail = form->value_tail;

    if (lead.len && s.len >= lead.len
        && memcmp(s.data, lead.data, lead.len) == 0)
    {
        s.data += lead.len;
        s.len -= lead.len;
    }

    if (tail.len && s.len >= tail.len
        && memcmp(s.data + s.len - tail.len, tail.data, tail.len) == 0)
    {
        s.len -= tail.len;
    }

    return s;
}


/* reads an object or an array that is almost JSON */

static int
llm_args_loose(llm_args_t *a, llm_str_t value, const llm_flat_t *root,
    const llm_flat_t *schema)
{
    llm_loose_t  r;

    if (value.len == 0 || (value.data[0] != '{' && value.data[0] != '[')) {
        return LLM_ERROR;
    }

    memset(&r, 0, sizeof(r));
    r.p = value.data;
    r.end = value.data + value.len;
    r.out = &a->json;
    r.closes = LLM_LOOSE_MARK;
    r.root = root;

    return llm_loose_value(&r, schema) == LLM_OK && r.p == r.end ? LLM_OK
                                                                 : LLM_ERROR;
}


static int
llm_args_param(llm_args_t *a, const llm_param_t *p, const llm_flat_t *schema)
{
    size_t     start;
    unsigned   type, types;
    llm_str_t  key, value;

    key.data = a->text.data + p->key.off;
    key.len = p->key.len;
    key = llm_args_trim(key);
    value.data = a->text.data + p->value.off;
    value.len = p->value.len;

    types = p->is_text ? LLM_TYPE_STRING
            : p->is_data ? ~(unsigned) LLM_TYPE_STRING
            : llm_types_of(schema, llm_type_schema(schema, schema, key));

    (void) llm_lit_quote(key, &a->json);
    (void) llm_buf_adds(&a->json, ": ");

    value = llm_args_inside(a->call->form, value);
    start = a->json.len;

    if (types != LLM_TYPE_STRING
        && llm_args_json(a, llm_args_trim(value), llm_str("")) == LLM_OK)
    {
        type = llm_type_at(a->json.data[start]);

        /* without a schema, text in quotes keeps its quotes */

        if (types == 0 ? type != LLM_TYPE_STRING
            : (types & type) || !(types & LLM_TYPE_STRING))
        {
            return LLM_OK;
        }
    }

    a->json.len = start;

    if (types && !(types & LLM_TYPE_STRING)
        && llm_args_loose(a, llm_args_trim(value), schema,
                          llm_type_schema(schema, schema, key)) == LLM_OK)
    {
        return LLM_OK;
    }

    if (a->json.failed) {
        return LLM_ERROR;
    }

    a->json.len = start;

    return llm_lit_quote(value, &a->json);
}


int
llm_call_param(const llm_call_t *c, llm_str_t text, size_t i,
    const llm_flat_t *schema, llm_buf_t *out)
{
    int                 rc;
    llm_args_t          a;
    const llm_param_t  *params;

    params = (const llm_param_t *) c->params.data;

    a.call = c;
    a.text = text;
    a.json = *out;
    rc = llm_args_param(&a, &params[i], schema);
    *out = a.json;

    return rc;
}


static int
llm_args_params(llm_args_t *a, llm_str_t name)
{
    size_t              i, n;
    const llm_tool_t   *tool;
    const llm_param_t  *params;

    tool = llm_tools_find(a->call->tools, name);

    if (tool == NULL) {
        return LLM_ERROR;
    }

    params = (const llm_param_t *) a->call->params.data;
    n = a->call->params.len / sizeof(*params);

    (void) llm_buf_addc(&a->json, '{');

    for (i = 0; i < n; i++) {
        if (i) {
            (void) llm_buf_adds(&a->json, ", ");
        }

        if (llm_args_param(a, &params[i], tool->schema) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    (void) llm_buf_addc(&a->json, '}');

    return llm_args_done(a, name);
}


static int
llm_args_read(llm_args_t *a)
{
    llm_str_t          name, args;
    const llm_call_t  *c;

    c = a->call;
    name.data = a->text.data + c->name.off;
    name.len = c->name.len;
    args.data = a->text.data + c->args.off;
    args.len = c->args.len;

    switch (c->form->kind) {

    case LLM_FORM_OBJECT:
        return llm_args_objects(a, args);

    case LLM_FORM_NAMED:
        return llm_args_json(a, args, c->form->quote) == LLM_OK
               ? llm_args_done(a, name) : LLM_ERROR;

    case LLM_FORM_PARAMS:
        return llm_args_params(a, name);

    default:
        return llm_args_python(a, args);
    }
}


int
llm_call_read(const llm_call_t *c, llm_str_t text, llm_call_put_pt put,
    void *data)
{
    int         rc;
    size_t      start;
    uint32_t    i;
    llm_str_t   args;
    llm_args_t  a;

    a.call = c;
    a.text = text;
    a.n = 0;
    llm_buf_init(&a.json, 0);

    rc = llm_args_read(&a);

    for (i = 0, start = 0; i < a.n && rc == LLM_OK; i++) {
        args.data = a.json.data + start;
        args.len = a.calls[i].end - start;
        start = a.calls[i].end;

        rc = put(data, a.calls[i].name, args);
    }

    llm_buf_free(&a.json);

    return rc;
}
