/*
 * Where a call begins and ends in a text that still comes; see call.h.
 */

#include "engine/emit/call.h"

#define LLM_CALL_KEY_MOST  256


int
llm_tools_init(llm_tools_t *t, const llm_flat_t *list)
{
    uint32_t           i;
    const llm_flat_t  *v, *f, *name, *strict;

    t->n = 0;
    t->tool = NULL;

    if (list == NULL || list->type != LLM_FLAT_ARRAY || list->count == 0) {
        return LLM_OK;
    }

    t->tool = malloc(list->count * sizeof(*t->tool));
    if (t->tool == NULL) {
        return LLM_ERROR;
    }

    i = 0;

    for (v = llm_flat_first(list); v; v = llm_flat_next(list, v), i++) {
        f = v->type == LLM_FLAT_OBJECT ? llm_flat_get(v, "function") : NULL;
        f = f && f->type == LLM_FLAT_OBJECT ? f : v;
        name = f->type == LLM_FLAT_OBJECT ? llm_flat_get(f, "name") : NULL;

        if (name && name->type == LLM_FLAT_STRING && name->count) {
            strict = llm_flat_get(f, "strict");

            t->tool[t->n].name = llm_flat_str(name);
            t->tool[t->n].index = i;
            t->tool[t->n].strict = strict && strict->type == LLM_FLAT_BOOL
                                   && llm_flat_int(strict);
            t->tool[t->n++].schema = llm_flat_get(f, "parameters");
        }
    }

    return LLM_OK;
}


void
llm_tools_free(llm_tools_t *t)
{
    free(t->tool);
    t->tool = NULL;
    t->n = 0;
}


const llm_tool_t *
llm_tools_find(const llm_tools_t *t, llm_str_t name)
{
    uint32_t  i;

    for (i = 0; i < t->n; i++) {
        if (llm_str_eq(t->tool[i].name, name)) {
            return &t->tool[i];
        }
    }

    return NULL;
}


/* does a tool's name begin so? */

static int
llm_tools_begin(const llm_tools_t *t, const char *p, size_t n)
{
    uint32_t  i;

    for (i = 0; i < t->n; i++) {
        if (t->tool[i].name.len >= n
            && memcmp(t->tool[i].name.data, p, n) == 0)
        {
            return 1;
        }
    }

    return 0;
}


void
llm_call_init(llm_call_t *c)
{
    memset(c, 0, sizeof(*c));
    llm_buf_init(&c->params, 0);
}


void
llm_call_free(llm_call_t *c)
{
    llm_buf_free(&c->params);
}


void
llm_call_start(llm_call_t *c, const llm_form_t *form,
    const llm_tools_t *tools, size_t at, llm_call_step_t step, int bare)
{
    c->form = form;
    c->tools = tools;
    c->at = at;
    c->bare = bare;
    c->params.len = 0;
    c->has_param = 0;
    c->scanning = 0;
    memset(&c->scan, 0, sizeof(c->scan));

    c->step = step ? step
              : form->kind == LLM_FORM_NAMED || form->kind == LLM_FORM_PARAMS
              ? LLM_CALL_NAME : LLM_CALL_ARGS;
}


static void
llm_call_skip(llm_call_t *c, llm_str_t text)
{
    while (c->at < text.len && llm_mark_is_space(text.data[c->at])) {
        c->at++;
    }
}


static llm_mark_t
llm_call_mark(const llm_call_t *c, llm_str_t mark, llm_str_t text, size_t *len)
{
    return llm_mark_match(mark, text.data + c->at, text.len - c->at, len);
}


/* a mark that must be there */

static int
llm_call_expect(llm_call_t *c, llm_str_t mark, llm_str_t text,
    llm_call_step_t next)
{
    size_t      len;
    llm_mark_t  rc;

    llm_call_skip(c, text);
    rc = llm_call_mark(c, mark, text, &len);

    if (rc == LLM_MARK_PART) {
        return LLM_MORE;
    }

    if (rc == LLM_MARK_NO) {
        return LLM_ERROR;
    }

    c->at += len;
    c->step = next;

    return LLM_OK;
}


/* the longest name of a tool, no byte more: a longer word is another name */

static int
llm_call_name(llm_call_t *c, llm_str_t text)
{
    size_t     end;
    llm_str_t  name;

    llm_call_skip(c, text);
    name.data = text.data + c->at;

    for (end = c->at; end < text.len; end++) {
        if (!llm_tools_begin(c->tools, name.data, end + 1 - c->at)) {
            break;
        }
    }

    if (end == text.len) {
        return LLM_MORE;
    }

    name.len = end - c->at;

    if (name.len == 0 || llm_tools_find(c->tools, name) == NULL) {
        c->at = end;
        return LLM_ERROR;
    }

    c->name.off = c->at;
    c->name.len = name.len;
    c->at = end;
    c->step = LLM_CALL_NAME_END;

    return LLM_OK;
}


/* ---- arguments in brackets ---- */

static int
llm_call_opens(const llm_call_t *c, char ch)
{
    switch (c->form->kind) {

    case LLM_FORM_NAMED:
        return ch == '{';

    case LLM_FORM_OBJECT:
        return ch == '{' || ch == '[';

    default:
        return ch == '[' || ch == '_' || (ch >= 'a' && ch <= 'z')
               || (ch >= 'A' && ch <= 'Z');
    }
}


/*
 * Where nothing but its own look says that an object is a call, it has one
 * of the keys of calls first, so that other JSON is not held back.  A list
 * in Python's manner begins with the name of a tool.
 */

static int
llm_call_plausible(const llm_call_t *c, llm_str_t text)
{
    size_t     i, end;
    llm_str_t  key;

    static const char *const  keys[] = {
        "name", "tool_name", "function", "tool", "type", "id", "arguments",
        "parameters", "tool_call_id"
    };

    i = c->args.off;

    while (i < text.len && (llm_mark_is_space(text.data[i])
                            || strchr("[{\"", text.data[i])))
    {
        i++;
    }

    key.data = text.data + i;

    if (c->form->kind == LLM_FORM_PYTHON) {
        for (end = i; end < text.len && text.data[end] != '('; end++) {
            if (!llm_tools_begin(c->tools, key.data, end + 1 - i)) {
                return 0;
            }
        }

        return 1;
    }

    for (end = i; end < text.len && text.data[end] != '"'; end++) {
        /* void */
    }

    key.len = end - i;

    if (key.len == 0
        || (c->form->name_key.len >= key.len
            && memcmp(c->form->name_key.data, key.data, key.len) == 0))
    {
        return 1;
    }

    for (i = 0; i < llm_nelems(keys); i++) {
        if (strlen(keys[i]) >= key.len
            && memcmp(keys[i], key.data, key.len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


static int
llm_call_args(llm_call_t *c, llm_str_t text)
{
    int  rc;

    if (!c->scanning) {
        llm_call_skip(c, text);

        if (c->at == text.len) {
            return LLM_MORE;
        }

        if (!llm_call_opens(c, text.data[c->at])) {
            return LLM_ERROR;
        }

        c->args.off = c->at;
        c->scan.pos = c->at;
        c->scan.quote = c->form->quote;
        c->scanning = 1;
    }

    rc = llm_lit_scan(&c->scan, text);

    if (rc != LLM_ERROR && c->bare && c->form->kind != LLM_FORM_NAMED
        && !llm_call_plausible(c, text))
    {
        rc = LLM_ERROR;
    }

    if (rc == LLM_OK) {
        c->at = c->scan.pos;
        c->args.len = c->at - c->args.off;
        c->step = LLM_CALL_END;

    } else if (rc == LLM_ERROR) {
        c->at = c->scan.pos;
    }

    return rc;
}


/* ---- arguments between marks ---- */

static int
llm_call_key(llm_call_t *c, llm_str_t text)
{
    size_t      i, len[2];
    llm_mark_t  text_end, end;

    for (i = c->at; i <= text.len; i++) {
        end = llm_mark_match(c->form->key_end, text.data + i, text.len - i,
                             &len[0]);
        text_end = c->form->key_end_text.len == 0 ? LLM_MARK_NO
                   : llm_mark_match(c->form->key_end_text, text.data + i,
                                    text.len - i, &len[1]);

        if (end == LLM_MARK_WHOLE || text_end == LLM_MARK_WHOLE) {
            c->param.key.off = c->at;
            c->param.key.len = i - c->at;
            c->param.is_text = text_end == LLM_MARK_WHOLE;
            c->param.is_data = c->form->key_end_text.len
                               && !c->param.is_text;
            c->at = i + len[c->param.is_text];
            c->param.value.off = c->at;
            c->seen = c->at;
            c->step = LLM_CALL_VALUE;

            return LLM_OK;
        }

        if (end == LLM_MARK_PART || text_end == LLM_MARK_PART
            || i == text.len)
        {
            return LLM_MORE;
        }

        if (i - c->at == LLM_CALL_KEY_MOST || text.data[i] == '\n') {
            break;
        }
    }

    c->at = i;

    return LLM_ERROR;
}


static int
llm_call_value(llm_call_t *c, llm_str_t text)
{
    size_t       len;
    const char  *p;
    llm_mark_t   rc;

    for ( ;; ) {
        p = memchr(text.data + c->seen, c->form->value_end.data[0],
                   text.len - c->seen);

        if (p == NULL) {
            c->seen = text.len;
            return LLM_MORE;
        }

        c->seen = (size_t) (p - text.data);
        rc = llm_mark_match(c->form->value_end, p, text.len - c->seen, &len);

        if (rc == LLM_MARK_PART) {
            return LLM_MORE;
        }

        if (rc == LLM_MARK_WHOLE) {
            c->param.value.len = c->seen - c->param.value.off;
            c->at = c->seen + len;
            c->has_param = 1;
            c->step = LLM_CALL_KEY_OR_END;

            return LLM_OK;
        }

        c->seen++;
    }
}


/*
 * Behind a value comes another key or the end of the call; if neither does,
 * what looked like the value's end was part of it.
 */

static int
llm_call_key_or_end(llm_call_t *c, llm_str_t text, int last)
{
    size_t      key_len, end_len;
    llm_mark_t  key, end;

    llm_call_skip(c, text);

    key = llm_call_mark(c, c->form->key, text, &key_len);
    end = c->form->end.len == 0 ? LLM_MARK_NO
          : llm_call_mark(c, c->form->end, text, &end_len);

    if (key != LLM_MARK_WHOLE && end != LLM_MARK_WHOLE
        && (key == LLM_MARK_PART || end == LLM_MARK_PART) && !last)
    {
        return LLM_MORE;
    }

    if (key != LLM_MARK_WHOLE && end != LLM_MARK_WHOLE
        && c->form->end.len && !(last && c->has_param && c->at == text.len))
    {
        if (!c->has_param) {
            return LLM_ERROR;
        }

        c->has_param = 0;
        c->seen++;
        c->step = LLM_CALL_VALUE;

        return LLM_OK;
    }

    if (c->has_param
        && llm_buf_add(&c->params, &c->param, sizeof(c->param)) != LLM_OK)
    {
        return LLM_ERROR;
    }

    c->has_param = 0;

    if (key == LLM_MARK_WHOLE) {
        c->at += key_len;
        c->step = LLM_CALL_KEY;

        return LLM_OK;
    }

    c->at += end == LLM_MARK_WHOLE ? end_len : 0;
    c->step = 0;

    return LLM_OK;
}


/* ---- the end, which may be missing: the call is whole without it ---- */

static int
llm_call_end(llm_call_t *c, llm_str_t text, int last)
{
    size_t      at, len;
    llm_mark_t  rc;

    c->step = 0;

    if (c->form->end.len == 0) {
        return LLM_OK;
    }

    at = c->at;
    llm_call_skip(c, text);
    rc = llm_call_mark(c, c->form->end, text, &len);

    if (rc == LLM_MARK_WHOLE) {
        c->at += len;
        return LLM_OK;
    }

    c->at = at;

    if (rc == LLM_MARK_PART && !last) {
        c->step = LLM_CALL_END;
        return LLM_MORE;
    }

    return LLM_OK;
}


static int
llm_call_do(llm_call_t *c, llm_str_t text, int last)
{
    switch (c->step) {

    case LLM_CALL_BEGIN:
        return llm_call_expect(c, c->form->begin, text,
                               c->form->kind == LLM_FORM_NAMED
                               || c->form->kind == LLM_FORM_PARAMS
                               ? LLM_CALL_NAME : LLM_CALL_ARGS);

    case LLM_CALL_NAME:
        return llm_call_name(c, text);

    case LLM_CALL_NAME_END:
        return llm_call_expect(c, c->form->name_end, text,
                               c->form->kind == LLM_FORM_PARAMS
                               ? LLM_CALL_KEY_OR_END : LLM_CALL_ARGS);

    case LLM_CALL_ARGS:
        return llm_call_args(c, text);

    case LLM_CALL_KEY_OR_END:
        return llm_call_key_or_end(c, text, last);

    case LLM_CALL_KEY:
        return llm_call_key(c, text);

    case LLM_CALL_VALUE:
        return llm_call_value(c, text);

    default:
        return llm_call_end(c, text, last);
    }
}


int
llm_call_run(llm_call_t *c, llm_str_t text, int last)
{
    int  rc;

    do {
        rc = llm_call_do(c, text, last);
    } while (rc == LLM_OK && c->step);

    if (rc == LLM_MORE && last) {
        c->at = text.len;
        rc = LLM_ERROR;
    }

    /* what only looked like a call may have a real one in it */

    if (rc == LLM_ERROR && c->bare) {
        c->at = 0;
    }

    return rc;
}
