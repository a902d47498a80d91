/*
 * Reads what a call says while its text still comes; see call.h.
 *
 * Arguments in JSON are handed out byte by byte, arguments between marks
 * parameter by parameter.
 */

#include "engine/emit/call.h"


void
llm_live_start(llm_live_t *v)
{
    memset(v, 0, sizeof(*v));
}


/* ---- an object that has the name in it ---- */

static void
llm_live_skip(llm_str_t *s)
{
    while (s->len && llm_mark_is_space(s->data[0])) {
        s->data++;
        s->len--;
    }
}


/* takes c from the text: LLM_OK; LLM_MORE; LLM_ERROR: there is another byte */

static int
llm_live_char(llm_str_t *s, char c)
{
    llm_live_skip(s);

    if (s->len == 0) {
        return LLM_MORE;
    }

    if (s->data[0] != c) {
        return LLM_ERROR;
    }

    s->data++;
    s->len--;

    return LLM_OK;
}


/* takes a string in quotes; *what: its text, escapes unchanged */

static int
llm_live_string(llm_str_t *s, llm_str_t *what)
{
    int     rc;
    size_t  i;

    rc = llm_live_char(s, '"');

    if (rc != LLM_OK) {
        return rc;
    }

    for (i = 0; i < s->len && s->data[i] != '"'; i++) {
        i += s->data[i] == '\\';
    }

    if (i >= s->len) {
        return LLM_MORE;
    }

    what->data = s->data;
    what->len = i;
    s->data += i + 1;
    s->len -= i + 1;

    return LLM_OK;
}


/* the tool with this name, escapes unchanged, or NULL */

static const llm_tool_t *
llm_live_find(const llm_tools_t *tools, llm_str_t name)
{
    llm_buf_t          b;
    const llm_tool_t  *tool;

    if (memchr(name.data, '\\', name.len) == NULL) {
        return llm_tools_find(tools, name);
    }

    llm_buf_init(&b, 0);
    tool = NULL;

    if (llm_lit_unescape(name, &b) == LLM_OK) {
        tool = llm_tools_find(tools, (llm_str_t) { b.len, b.data });
    }

    llm_buf_free(&b);

    return tool;
}


/* takes this key and its colon */

static int
llm_live_key(llm_str_t *s, llm_str_t key)
{
    int        rc;
    llm_str_t  what;

    rc = llm_live_string(s, &what);

    if (rc != LLM_OK) {
        return rc;
    }

    if (!llm_str_eq(what, key)) {
        return LLM_ERROR;
    }

    return llm_live_char(s, ':');
}


/* the part of text in which the call's end has been looked for */

static llm_str_t
llm_live_text(const llm_call_t *c, llm_str_t text, size_t from)
{
    text.len = llm_min(c->scan.pos, text.len) - from;
    text.data += from;

    return text;
}


/* reads up to the arguments, each time from the object's beginning, because
   that is short */

static int
llm_live_object(llm_live_t *v, const llm_call_t *c, llm_str_t text)
{
    int        rc;
    llm_str_t  s, name;

    s = llm_live_text(c, text, v->from);
    rc = llm_live_char(&s, '{');

    if (rc == LLM_OK) {
        rc = llm_live_key(&s, llm_form_name_key(c->form));
    }

    if (rc == LLM_OK) {
        rc = llm_live_string(&s, &name);
    }

    if (rc != LLM_OK) {
        return rc;
    }

    v->tool = llm_live_find(c->tools, name);

    if (v->tool == NULL) {
        return LLM_ERROR;
    }

    rc = llm_live_char(&s, ',');

    if (rc == LLM_OK) {
        rc = llm_live_key(&s, llm_form_args_key(c->form));
    }

    if (rc != LLM_OK) {
        return rc;
    }

    llm_live_skip(&s);

    if (s.len == 0 || s.data[0] != '{') {
        return s.len ? LLM_ERROR : LLM_MORE;
    }

    v->from = (size_t) (s.data - text.data);
    memset(&v->scan, 0, sizeof(v->scan));
    v->scan.pos = v->from;
    v->stage = LLM_LIVE_ARGS;

    return LLM_OK;
}


int
llm_live_next(llm_live_t *v, const llm_call_t *c, llm_str_t text)
{
    llm_str_t  s;

    if (v->stage != LLM_LIVE_TAIL || c->form->kind != LLM_FORM_OBJECT) {
        return 0;
    }

    s = llm_live_text(c, text, v->from);

    if (llm_live_char(&s, '}') != LLM_OK || llm_live_char(&s, ',') != LLM_OK) {
        return 0;
    }

    v->from = (size_t) (s.data - text.data);
    v->tool = NULL;
    v->stage = LLM_LIVE_HEAD;

    return 1;
}


static void
llm_live_first(llm_live_t *v, const llm_call_t *c, llm_str_t text)
{
    if (v->from == 0) {
        v->from = c->args.off + (text.data[c->args.off] == '[');
    }
}


/* ---- all forms ---- */

const llm_tool_t *
llm_live_tool(llm_live_t *v, const llm_call_t *c, llm_str_t text)
{
    if (v->stage != LLM_LIVE_HEAD) {
        return v->tool;
    }

    if (c->form->kind == LLM_FORM_OBJECT) {
        if (c->scanning) {
            llm_live_first(v, c, text);

            if (llm_live_object(v, c, text) == LLM_ERROR) {
                v->stage = LLM_LIVE_LOST;
            }
        }

        return v->tool;
    }

    if (c->form->kind == LLM_FORM_PYTHON || c->form->quote.len
        || c->step == LLM_CALL_BEGIN || c->step == LLM_CALL_NAME
        || c->step == LLM_CALL_NAME_END)
    {
        return NULL;
    }

    v->tool = llm_tools_find(c->tools, (llm_str_t) { c->name.len,
                                                     text.data + c->name.off });

    if (c->form->kind == LLM_FORM_PARAMS) {
        v->stage = LLM_LIVE_ARGS;

    } else if (c->scanning) {
        v->stage = LLM_LIVE_ARGS;
        v->from = c->args.off;
    }

    return v->tool;
}


static int
llm_live_params(llm_live_t *v, const llm_call_t *c, llm_str_t text, int whole,
    llm_buf_t *out)
{
    size_t  n;

    n = c->params.len / sizeof(llm_param_t);

    for ( /* void */ ; v->from < n; v->from++) {
        (void) llm_buf_adds(out, v->from ? ", " : "{");

        if (llm_call_param(c, text, v->from, v->tool->schema, out) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    if (whole) {
        (void) llm_buf_adds(out, n ? "}" : "{}");
    }

    return out->failed ? LLM_ERROR : LLM_OK;
}


int
llm_live_args(llm_live_t *v, const llm_call_t *c, llm_str_t text, int whole,
    llm_buf_t *out)
{
    size_t  to;

    if (v->stage != LLM_LIVE_ARGS) {
        return LLM_OK;
    }

    if (c->form->kind == LLM_FORM_PARAMS) {
        return llm_live_params(v, c, text, whole, out);
    }

    to = c->scan.pos;

    if (c->form->kind == LLM_FORM_OBJECT) {
        text.len = llm_min(text.len, to);

        if (llm_lit_scan(&v->scan, text) != LLM_MORE) {
            v->stage = LLM_LIVE_TAIL;
            whole = 1;
        }

        to = v->scan.pos;
    }

    v->from += llm_lit_pass((llm_str_t) { to - v->from, text.data + v->from },
                            whole, out);

    return out->failed ? LLM_ERROR : LLM_OK;
}
