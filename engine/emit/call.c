/*
 * Finds where a call begins and ends while its text still comes; see call.h.
 */

#include "engine/emit/call_internal.h"
#include "engine/emit/loose.h"


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
    c->ended = 0;
    c->n_ends = 0;
    c->needs_end = 0;
    c->cut = 0;
    c->loose = 0;
    c->seen = 0;
    c->scanning = 0;
    memset(&c->scan, 0, sizeof(c->scan));

    c->step = step ? step
              : form->kind == LLM_FORM_NAMED || form->kind == LLM_FORM_PARAMS
              ? LLM_CALL_NAME : LLM_CALL_ARGS;
}


/* reads a mark that must be there */

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


/* end of the longest text at which a tool's name begins */

static size_t
llm_call_longest(const llm_call_t *c, llm_str_t text, size_t at)
{
    size_t  end;

    for (end = at; end < text.len; end++) {
        if (!llm_tools_begin(c->tools, text.data + at, end + 1 - at)) {
            break;
        }
    }

    return end;
}


/* is the name in the text longer than the tool's name found so far?  A mark
   that may begin with anything cannot tell */

static int
llm_call_goes_on(const llm_call_t *c, char next)
{
    return c->form->name_end.len && c->form->name_end.data[0] == LLM_MARK_ANY
           && (llm_mark_is_word(next) || next == '_' || next == '-'
               || next == '.');
}


/* reads the longest name of a tool, and no byte more: a longer word is another
   name */

static int
llm_call_name(llm_call_t *c, llm_str_t text)
{
    int        part;
    size_t     end, n;
    llm_str_t  name;

    llm_call_skip(c, text);
    end = llm_call_longest(c, text, c->at);

    if (end < text.len
        && llm_tools_find(c->tools, (llm_str_t) { end - c->at,
                                                  text.data + c->at }) == NULL)
    {
        n = llm_tools_space(text.data + c->at, text.len - c->at, &part);

        if (part) {
            return LLM_MORE;
        }

        c->at += n;
        end = llm_call_longest(c, text, c->at);
    }

    if (end == text.len) {
        return LLM_MORE;
    }

    name.data = text.data + c->at;
    name.len = end - c->at;

    if (name.len == 0 || llm_tools_find(c->tools, name) == NULL
        || llm_call_goes_on(c, text.data[end]))
    {
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


/* is it NAME.call(, the form of Llama's own tools? */

static int
llm_call_is_llamas(const llm_call_t *c, llm_str_t name, llm_str_t text)
{
    size_t  n;

    n = (size_t) (text.data + text.len - name.data) - name.len;

    return llm_tools_find(c->tools, name)
           && memcmp(name.data + name.len, ".call(", llm_min(n, (size_t) 6))
              == 0;
}


/*
 * An object that no mark says is a call must begin with one of the keys of
 * calls, so that other JSON is not held back.  A list in Python's manner must
 * begin with the name of a tool.
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
                key.len = end - i;
                return llm_call_is_llamas(c, key, text);
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
llm_call_args(llm_call_t *c, llm_str_t text, int last)
{
    int  rc;

    if (c->needs_end && !c->scanning) {
        rc = llm_loose_object_names(c, text, last);

        if (rc != LLM_OK) {
            return rc;
        }
    }

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

    /* superfluous closing brackets */

    while (c->at < text.len && (text.data[c->at] == '}'
                                || text.data[c->at] == ']'))
    {
        c->at++;
        llm_call_skip(c, text);
    }

    rc = llm_call_mark(c, c->form->end, text, &len);

    if (rc == LLM_MARK_WHOLE) {
        c->at += len;
        c->ended = 1;
        return LLM_OK;
    }

    if (c->needs_end) {
        c->step = LLM_CALL_END;
        return rc == LLM_MARK_PART ? LLM_MORE : LLM_ERROR;
    }

    if (last && (rc == LLM_MARK_PART || c->at == text.len)) {
        c->at = text.len;
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
        return llm_call_args(c, text, last);

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

    /* text that only looked like a call may contain a real one */

    if (rc == LLM_ERROR && c->bare) {
        c->at = 0;
    }

    return rc;
}
