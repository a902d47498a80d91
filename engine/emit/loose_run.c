/*
 * Finds where a call begins and ends that is almost in its form; see loose.h.
 *
 * It extends from its begin to its end mark, or to the next begin, or to the
 * end of the text, provided that the text after its begin looks like a call.
 */

#include "engine/emit/loose_internal.h"
#include "engine/emit/types.h"

/* most end marks that may be inside strings */
#define LLM_LOOSE_ENDS  16


/* ---- the end ---- */

/* matches at i a mark that ends the call, or begins what follows: its length,
   and whether it belongs to the call */

static llm_mark_t
llm_loose_end_at(const llm_call_t *c, llm_str_t text, size_t i, size_t *len)
{
    size_t             k;
    llm_str_t          marks[6];
    llm_mark_t         rc, part;
    const llm_form_t  *f;

    f = c->form;
    marks[0] = f->end;
    marks[1] = llm_mark_tag(f->end);
    marks[2] = f->close;
    marks[3] = llm_mark_last_tag(f->end);
    marks[4] = f->begin;
    marks[5] = f->open;
    part = LLM_MARK_NO;

    for (k = 0; k < llm_nelems(marks); k++) {
        if (marks[k].len == 0 || marks[k].data[0] != text.data[i]) {
            continue;
        }

        rc = llm_mark_match(marks[k], text.data + i, text.len - i, len);

        if (rc == LLM_MARK_WHOLE) {
            *len = k < 4 ? *len : 0;
            return rc;
        }

        part = rc == LLM_MARK_PART ? rc : part;
    }

    return part;
}


/* finds the first of these marks from c->seen on: LLM_OK, LLM_MORE */

static int
llm_loose_find_end(llm_call_t *c, llm_str_t text, int last, size_t *len)
{
    llm_mark_t  rc;

    for ( /* void */ ; c->seen < text.len; c->seen++) {
        rc = llm_loose_end_at(c, text, c->seen, len);

        if (rc == LLM_MARK_WHOLE) {
            return LLM_OK;
        }

        if (rc == LLM_MARK_PART && !last) {
            return LLM_MORE;
        }
    }

    return LLM_MORE;
}


/* ---- does it look like a call? ---- */

/* does a tool's name begin with this word and go on? */

static int
llm_loose_may_name(const llm_call_t *c, llm_str_t word)
{
    size_t     i, n;
    uint32_t   k;
    llm_str_t  name, tool;

    static const char *const  before[] = {
        "", "call:", "functions.", "function.", "tools.", "tool.",
        "default_api."
    };

    for (i = 0; i < llm_nelems(before); i++) {
        n = strlen(before[i]);

        if (memcmp(before[i], word.data, llm_min(n, word.len)) != 0) {
            continue;
        }

        if (word.len < n) {
            return 1;
        }

        name.data = word.data + n;
        name.len = word.len - n;

        for (k = 0; k < c->tools->n; k++) {
            tool = c->tools->tool[k].name;

            if (memcmp(tool.data, name.data, llm_min(tool.len, name.len)) == 0
                && (tool.len >= name.len || name.data[tool.len] == ':'))
            {
                return 1;
            }
        }
    }

    return 0;
}


/* does s have a word? */

static int
llm_loose_has_words(llm_str_t s)
{
    size_t  i;

    for (i = 0; i + 1 < s.len; i++) {
        if (llm_mark_is_space(s.data[i]) && !llm_mark_is_space(s.data[i + 1])
            && s.data[i + 1] != '<')
        {
            return 1;
        }
    }

    return 0;
}


/* is there a name, where the form has one, that is no tool's, followed by what
   follows names?  LLM_OK, LLM_MORE, LLM_ERROR */

static int
llm_loose_unknown(const llm_call_t *c, llm_str_t text, size_t at, int last)
{
    size_t             len, end_len;
    llm_mark_t         rc;
    llm_str_t          s;
    const llm_form_t  *f;

    f = c->form;

    if (f->kind != LLM_FORM_NAMED && f->kind != LLM_FORM_PARAMS) {
        return LLM_ERROR;
    }

    s.data = text.data + at;
    s.len = text.len - at;
    len = 0;

    if (f->name_end.len) {
        rc = llm_mark_match(f->name_end, s.data, s.len, &len);

        if (rc == LLM_MARK_PART && llm_loose_has_words(s)) {
            return LLM_ERROR;
        }

        if (rc != LLM_MARK_WHOLE) {
            return rc == LLM_MARK_NO ? LLM_ERROR : last ? LLM_OK : LLM_MORE;
        }
    }

    while (len < s.len && llm_mark_is_space(s.data[len])) {
        len++;
    }

    if (len == s.len) {
        return last ? LLM_OK : LLM_MORE;
    }

    s.data += len;
    s.len -= len;

    if (f->kind == LLM_FORM_NAMED) {
        return s.data[0] == '{' ? LLM_OK : LLM_ERROR;
    }

    rc = llm_mark_match(f->key, s.data, s.len, &len);

    if (rc != LLM_MARK_WHOLE && f->end.len && f->name_end.len) {
        rc = llm_max(rc, llm_mark_match(llm_mark_tag(f->end), s.data, s.len,
                                        &end_len));
    }

    return rc == LLM_MARK_NO ? LLM_ERROR
           : rc == LLM_MARK_PART && !last ? LLM_MORE : LLM_OK;
}


/* an object that no mark says is a call counts as one if its first member has
   the name of a tool */

int
llm_loose_object_names(const llm_call_t *c, llm_str_t text, int last)
{
    size_t       n;
    llm_str_t    key, name;
    llm_loose_t  r;

    memset(&r, 0, sizeof(r));
    r.p = text.data + c->at;
    r.end = text.data + text.len;
    n = text.len - c->at;

    if (c->form->kind != LLM_FORM_OBJECT || !llm_loose_take(&r, '{')) {
        return LLM_ERROR;
    }

    llm_loose_space(&r);

    if (llm_loose_key(&r, &key) != LLM_OK) {
        return last || n > LLM_LOOSE_KEY || (r.p < r.end && *r.p != '"'
                                             && *r.p != '\'')
               ? LLM_ERROR : LLM_MORE;
    }

    if (!llm_call_is_name(c->form, key)) {
        return LLM_ERROR;
    }

    if (!llm_loose_take(&r, '"') && !llm_loose_take(&r, '\'')) {
        return r.p == r.end && !last ? LLM_MORE : LLM_ERROR;
    }

    name = llm_loose_word_at(r.p, r.end);

    if (name.data + name.len == r.end) {
        return last ? LLM_ERROR : LLM_MORE;
    }

    return (name.data[name.len] == '"' || name.data[name.len] == '\'')
           && llm_tools_named(c->tools, name) ? LLM_OK : LLM_ERROR;
}


/* is there the name of a tool and then an object, without marks? */

static int
llm_loose_name_leads(const llm_call_t *c, llm_str_t text, int last)
{
    size_t      at, len;
    llm_str_t   word;
    llm_mark_t  rc;

    len = 0;
    word = llm_loose_word_at(text.data + c->at, text.data + text.len);
    at = c->at + word.len;

    if (at == text.len) {
        return last || !llm_loose_may_name(c, word) ? LLM_ERROR : LLM_MORE;
    }

    if (llm_tools_named(c->tools, word) == NULL) {
        return LLM_ERROR;
    }

    rc = llm_mark_match(c->form->name_end, text.data + at, text.len - at,
                        &len);

    for (at += len; rc == LLM_MARK_WHOLE && at < text.len
         && llm_mark_is_space(text.data[at]); at++)
    {
        /* void */
    }

    if (rc == LLM_MARK_PART || (rc == LLM_MARK_WHOLE && at == text.len)) {
        return last ? LLM_ERROR : LLM_MORE;
    }

    return rc == LLM_MARK_WHOLE && text.data[at] == '{' ? LLM_OK : LLM_ERROR;
}


/* is there k=v or k: v?  If nothing follows and the answer was not cut, the
   word counts only if it is one of the tool's parameters */

static int
llm_loose_pair(const llm_call_t *c, const llm_tool_t *tool, llm_str_t text,
    size_t at, int last)
{
    int          known;
    size_t       len;
    llm_str_t    key;
    llm_mark_t   rc;
    llm_loose_t  r;

    memset(&r, 0, sizeof(r));
    r.p = text.data + at;
    r.end = text.data + text.len;
    key.data = r.p;

    while (r.p < r.end && llm_loose_is_name(*r.p)) {
        r.p++;
    }

    key.len = (size_t) (r.p - key.data);
    llm_loose_space(&r);

    if (key.len == 0 || key.len > LLM_LOOSE_NAME) {
        return LLM_ERROR;
    }

    known = llm_type_schema(tool->schema, tool->schema, key) != NULL;

    if (r.p == r.end) {
        return !last ? LLM_MORE
               : last == LLM_TEXT_CUT || known ? LLM_OK : LLM_ERROR;
    }

    rc = known ? llm_loose_end_at(c, text, (size_t) (r.p - text.data), &len)
               : LLM_MARK_NO;

    if (rc != LLM_MARK_NO) {
        return rc == LLM_MARK_PART && !last ? LLM_MORE : LLM_OK;
    }

    return *r.p == ':' || *r.p == '=' ? LLM_OK : LLM_ERROR;
}


/* does the text after a tool's name look like arguments?  LLM_OK: yes;
   LLM_MORE; LLM_ERROR: no */

static int
llm_loose_arguments(const llm_call_t *c, const llm_tool_t *tool,
    llm_str_t text, size_t at, int last)
{
    size_t       n, len;
    llm_mark_t   rc;
    llm_loose_t  r;

    memset(&r, 0, sizeof(r));
    r.p = text.data + at;
    r.end = text.data + text.len;
    llm_loose_space(&r);
    n = (size_t) (r.end - r.p);
    rc = n ? llm_loose_end_at(c, text, text.len - n, &len) : LLM_MARK_NO;

    if (rc != LLM_MARK_NO) {
        return rc == LLM_MARK_PART && !last ? LLM_MORE : LLM_OK;
    }

    if (n && strchr("<:=", *r.p) && *r.p && r.p == text.data + at) {
        return llm_loose_unknown(c, text, at, last) == LLM_ERROR && *r.p == '<'
               ? LLM_ERROR : LLM_OK;
    }

    if (n == 0 || *r.p == '{' || *r.p == '(' || *r.p == '<') {
        return n || last ? LLM_OK : LLM_MORE;
    }

    return llm_loose_pair(c, tool, text, (size_t) (r.p - text.data), last);
}


/* is there a name at text[at], followed by what follows names?  As
   llm_loose_plausible() */

static int
llm_loose_plausible_name(const llm_call_t *c, llm_str_t text, size_t at,
    int last)
{
    int                rc, called;
    size_t             end;
    llm_str_t          word;
    const llm_tool_t  *tool;

    /* the text before a name may show that it is one */

    called = at == c->at && ((c->form->kind == LLM_FORM_NAMED
                              && c->form->name_end.len)
                             || llm_form_inner(c->form).len);

    if (text.len - at >= 5 && memcmp(text.data + at, "call:", 5) == 0) {
        called = 1;

        for (at += 5; at < text.len && llm_mark_is_space(text.data[at]); at++) {
            /* void */
        }

        if (at == text.len) {
            return last ? LLM_OK : LLM_MORE;
        }
    }

    word = llm_loose_word_at(text.data + at, text.data + text.len);

    if (word.len == 0 || word.len > 2 * LLM_LOOSE_NAME) {
        return LLM_ERROR;
    }

    /* colons at the end of a word may be part of a name */

    for (end = at + word.len; end < text.len && text.data[end] == ':'; end++) {
        /* void */
    }

    if (end == text.len) {
        return !last ? LLM_MORE
               : called || last == LLM_TEXT_CUT || llm_loose_may_name(c, word)
               ? LLM_OK : LLM_ERROR;
    }

    tool = llm_tools_named(c->tools, word);

    if (tool) {
        rc = llm_loose_arguments(c, tool, text, at + word.len, last);

        if (rc != LLM_ERROR) {
            return rc;
        }
    }

    return llm_loose_unknown(c, text, at + word.len, last);
}


/* LLM_OK: it may be a call, of a tool or of an unknown one; LLM_MORE;
   LLM_ERROR: it is text */

static int
llm_loose_plausible(llm_call_t *c, llm_str_t text, int last)
{
    size_t      at, len;
    llm_mark_t  rc;

    if (c->bare) {
        return c->form->kind == LLM_FORM_NAMED
               ? llm_loose_name_leads(c, text, last)
               : llm_loose_object_names(c, text, last);
    }

    for (at = c->at; at < text.len && llm_mark_is_space(text.data[at]); at++) {
        /* void */
    }

    if (at == text.len) {
        return last ? LLM_OK : LLM_MORE;
    }

    rc = llm_loose_end_at(c, text, at, &len);

    if (rc != LLM_MARK_NO) {
        return rc == LLM_MARK_PART && !last ? LLM_MORE : LLM_OK;
    }

    if (text.data[at] == '{' || (text.data[at] == '['
                                 && c->form->kind != LLM_FORM_PARAMS))
    {
        return LLM_OK;
    }

    return llm_loose_plausible_name(c, text, at, last);
}


/* ---- the whole call ---- */

/* reads the begin after the open */

static int
llm_loose_begin(llm_call_t *c, llm_str_t text, int last)
{
    size_t      len;
    llm_mark_t  rc;

    while (c->at < text.len && llm_mark_is_space(text.data[c->at])) {
        c->at++;
    }

    rc = llm_mark_match(c->form->begin, text.data + c->at, text.len - c->at,
                        &len);

    if (rc == LLM_MARK_WHOLE) {
        c->at += len;
        c->step = LLM_CALL_NAME;
        return LLM_OK;
    }

    c->args.len = 0;

    if (rc == LLM_MARK_NO) {
        rc = c->at < text.len ? llm_loose_end_at(c, text, c->at, &len)
                              : LLM_MARK_PART;

        if (rc == LLM_MARK_NO) {
            return LLM_ERROR;
        }

        if (rc == LLM_MARK_WHOLE) {
            c->at += len;
            return LLM_ABSENT;
        }
    }

    c->at = last ? text.len : c->at;

    return last ? LLM_ABSENT : LLM_MORE;
}


int
llm_loose_run(llm_call_t *c, llm_str_t text, int last, llm_call_put_pt put,
    void *data)
{
    int     rc;
    size_t  len;

    rc = c->step == LLM_CALL_BEGIN ? llm_loose_begin(c, text, last) : LLM_OK;

    if (rc == LLM_OK) {
        rc = llm_loose_plausible(c, text, last);
    }

    if (rc != LLM_OK) {
        return rc;
    }

    c->seen = llm_max(c->seen, c->at);

    /* only the first few end marks are tried, so that each byte is looked at a
       bounded number of times */

    while (c->n_ends < LLM_LOOSE_ENDS
           && llm_loose_find_end(c, text, last, &len) == LLM_OK)
    {
        if (c->cut) {
            return LLM_ERROR;
        }

        rc = llm_loose_read(c, text, c->seen, LLM_LOOSE_MARK, 0, put, data);

        /* the mark may be inside a string */

        if (rc != LLM_MORE) {
            c->at = c->seen + len;
            return rc;
        }

        c->seen++;
        c->n_ends++;
    }

    if (!last) {
        return LLM_MORE;
    }

    rc = llm_loose_read(c, text, text.len,
                        last == LLM_TEXT_DONE ? LLM_LOOSE_TURN : 0, last, put,
                        data);
    c->at = rc == LLM_OK ? c->args.off : text.len;

    return rc;
}
