/*
 * Reads calls that are almost in their form; see loose.h.
 *
 * The text may be JSON with mistakes, a name and arguments in brackets, or
 * parameters between marks, whatever the form is.
 */

#include "engine/emit/loose_internal.h"
#include "engine/emit/types.h"


static int
llm_loose_done(llm_loose_list_t *l)
{
    if (l->tool == NULL || l->n == LLM_LOOSE_CALLS
        || (l->c->bare && !l->has_args))
    {
        l->unknown = 1;
        return LLM_ERROR;
    }

    if (!l->has_args) {
        (void) llm_buf_adds(&l->json, "{}");
    }

    l->calls[l->n].tool = l->tool;
    l->calls[l->n++].end = l->json.len;
    l->tool = NULL;
    l->has_args = 0;

    return l->json.failed ? LLM_ERROR : LLM_OK;
}


int
llm_loose_take(llm_loose_t *r, char c)
{
    llm_loose_space(r);

    if (r->p == r->end || *r->p != c) {
        return 0;
    }

    r->p++;

    return 1;
}


static int
llm_loose_named(llm_loose_list_t *l, llm_str_t name)
{
    l->tool = llm_tools_named(l->c->tools, name);
    l->unknown |= l->tool == NULL && name.len
                  && (llm_mark_is_word(name.data[0]) || name.data[0] == '_')
                  && llm_loose_word_at(name.data, name.data + name.len).len
                     == name.len;

    return l->tool ? LLM_OK : LLM_ERROR;
}


/* ---- an object that has the name in it ---- */

/* reads a string to its text, without quotes and escapes; LLM_MORE,
   LLM_ERROR */

static int
llm_loose_text(llm_loose_list_t *l, llm_buf_t *out)
{
    int        rc;
    llm_buf_t  json;
    llm_str_t  word;

    llm_loose_space(&l->r);

    if (l->r.p < l->r.end && llm_loose_is_name(*l->r.p)) {
        word = llm_loose_word_at(l->r.p, l->r.end);
        l->r.p += word.len;

        return word.data + word.len == l->r.end
               ? LLM_MORE : llm_buf_add(out, word.data, word.len);
    }

    llm_buf_init(&json, 0);
    l->r.out = &json;
    rc = llm_loose_value(&l->r, NULL);
    l->r.out = NULL;

    if (rc == LLM_OK) {
        rc = json.len > 1 && json.data[0] == '"'
             ? llm_lit_unescape((llm_str_t) { json.len - 2, json.data + 1 },
                                out)
             : LLM_ERROR;
    }

    llm_buf_free(&json);

    return rc;
}


static int
llm_loose_nothing(llm_loose_list_t *l)
{
    llm_str_t  word;

    word = llm_loose_word_at(l->r.p, l->r.end);
    l->r.p += word.len;

    return llm_str_is(word, "null") || llm_str_is(word, "None")
           ? LLM_OK
           : word.data + word.len == l->r.end && l->r.closes != LLM_LOOSE_MARK
           ? LLM_MORE : LLM_ERROR;
}


/* reads arguments: an object, or a string that holds one; null is an empty
   object */

static int
llm_loose_args(llm_loose_list_t *l)
{
    int        rc;
    llm_lit_t  lit;
    llm_buf_t  text;

    llm_loose_space(&l->r);
    l->has_args = 1;

    if (l->r.p < l->r.end && *l->r.p != '"') {
        if (*l->r.p != '{') {
            l->has_args = 0;
            return llm_loose_nothing(l);
        }

        l->r.out = &l->json;
        l->r.root = l->tool ? l->tool->schema : NULL;
        rc = llm_loose_value(&l->r, l->r.root);
        l->r.out = NULL;

        return rc;
    }

    llm_buf_init(&text, 0);
    rc = llm_loose_text(l, &text);

    if (rc == LLM_OK) {
        llm_lit_init(&lit, (llm_str_t) { text.len, text.len ? text.data : "" },
                     llm_str(""), &l->json);
        rc = text.len && text.data[0] == '{' && llm_lit_value(&lit) == LLM_OK
             && lit.p == lit.end ? LLM_OK : LLM_ERROR;
    }

    llm_buf_free(&text);

    return rc;
}


static int llm_loose_object(llm_loose_list_t *l, int depth);


static int
llm_loose_member(llm_loose_list_t *l, int depth)
{
    int        rc;
    llm_buf_t  name;
    llm_str_t  key;

    rc = llm_loose_key(&l->r, &key);

    if (rc != LLM_OK) {
        return llm_loose_key_cut(&l->r) ? LLM_MORE : rc;
    }

    llm_loose_space(&l->r);

    if (depth == 0 && llm_str_is(key, "function") && l->r.p < l->r.end
        && *l->r.p == '{')
    {
        l->r.p++;
        return llm_loose_object(l, 1);
    }

    if (llm_call_is_name(l->c->form, key) && l->tool == NULL) {
        llm_buf_init(&name, 0);
        rc = llm_loose_text(l, &name);

        if (rc == LLM_OK) {
            rc = llm_loose_named(l, (llm_str_t) { name.len, name.len
                                                  ? name.data : "" });
        }

        llm_buf_free(&name);

        return rc;
    }

    if (llm_call_is_args(l->c->form, key) && !l->has_args) {
        return llm_loose_args(l);
    }

    if (l->tool == NULL && l->r.p < l->r.end && *l->r.p == '{'
        && llm_tools_named(l->c->tools, key))
    {
        l->tool = llm_tools_named(l->c->tools, key);
        return llm_loose_args(l);
    }

    return llm_loose_value(&l->r, NULL);
}


/* reads an object whose brace has been read */

static int
llm_loose_object(llm_loose_list_t *l, int depth)
{
    int       rc;
    uint32_t  n;

    llm_loose_space(&l->r);
    l->r.bare = l->r.p < l->r.end && llm_loose_is_name(*l->r.p);

    for (n = 0; llm_loose_next(&l->r, '}', n); n++) {
        l->r.within = '}';
        rc = llm_loose_member(l, depth);

        if (rc != LLM_OK) {
            return rc;
        }
    }

    if (l->r.p < l->r.end) {
        l->r.p++;
        return LLM_OK;
    }

    return l->r.closes || l->has_args ? LLM_OK : LLM_MORE;
}


/* ---- a name, then arguments in brackets ---- */

static int
llm_loose_brackets(llm_loose_list_t *l)
{
    int   rc;
    char  open;

    open = *l->r.p;

    if (open == '(' || open == '{') {
        l->r.p++;
    }

    if (open == '(' && llm_loose_take(&l->r, '{')) {
        open = '{';
    }

    l->has_args = 1;
    l->r.out = &l->json;
    l->r.root = l->tool->schema;
    rc = llm_loose_members(&l->r, l->r.root,
                           open == '{' ? '}' : open == '(' ? ')' : 0);
    l->r.out = NULL;

    return rc;
}


/* ---- all forms ---- */

static int
llm_loose_by_name(llm_loose_list_t *l)
{
    size_t       len;
    llm_str_t    name;
    llm_mark_t   rc;
    const char  *colon;

    if (l->r.end - l->r.p > 5 && memcmp(l->r.p, "call:", 5) == 0) {
        l->r.p += 5;
        llm_loose_space(&l->r);
    }

    name = llm_loose_word_at(l->r.p, l->r.end);
    l->r.p += name.len;

    /* a name at the end of the text may be the beginning of a longer one */

    if (l->r.p == l->r.end && l->r.closes != LLM_LOOSE_MARK) {
        return LLM_MORE;
    }

    /* a counter of calls belongs to the mark after the name */

    colon = memchr(name.data, ':', name.len);

    if (colon && llm_tools_named(l->c->tools, name) == NULL) {
        l->r.p = colon;
        name.len = (size_t) (colon - name.data);
    }

    if (name.len == 0 || llm_loose_named(l, name) != LLM_OK) {
        return LLM_ERROR;
    }

    rc = llm_loose_mark(l, l->c->form->name_end, l->r.p, &len);

    if (rc == LLM_MARK_PART && l->r.closes != LLM_LOOSE_MARK) {
        return LLM_MORE;
    }

    if (rc == LLM_MARK_WHOLE) {
        l->r.p += len;
    }

    llm_loose_space(&l->r);

    if (l->r.p < l->r.end && (*l->r.p == ':' || *l->r.p == '=')) {
        l->r.p++;
        llm_loose_space(&l->r);
    }

    if (l->r.p == l->r.end) {
        return l->r.closes ? LLM_OK : LLM_MORE;
    }

    return l->c->form->kind == LLM_FORM_PARAMS && *l->r.p == '<'
           ? llm_loose_params(l) : llm_loose_brackets(l);
}


static int
llm_loose_one(llm_loose_list_t *l)
{
    int  rc;

    rc = llm_loose_take(&l->r, '{') ? llm_loose_object(l, 0)
                                    : llm_loose_by_name(l);

    return rc == LLM_OK ? llm_loose_done(l) : rc;
}


/* skips superfluous brackets and separators of calls */

static void
llm_loose_extra(llm_loose_list_t *l)
{
    llm_loose_space(&l->r);

    while (l->r.p < l->r.end && *l->r.p && strchr("}]),;", *l->r.p)) {
        l->r.p++;
        llm_loose_space(&l->r);
    }
}


/* does the call, without an end mark, end where no other one begins? */

static int
llm_loose_stops(llm_loose_list_t *l)
{
    llm_str_t  word;

    if (l->r.closes != LLM_LOOSE_MARK && *l->r.p != '{' && *l->r.p != '[') {
        word = llm_loose_word_at(l->r.p, l->r.end);
        l->stopped |= llm_tools_named(l->c->tools, word) == NULL;
    }

    return l->stopped;
}


/* reads one call or more, in a list or one after another, and superfluous
   brackets */

static int
llm_loose_list(llm_loose_list_t *l)
{
    int  rc;

    llm_loose_space(&l->r);
    l->unknown = l->r.p == l->r.end || *l->r.p == '[';
    (void) llm_loose_take(&l->r, '[');

    do {
        rc = llm_loose_one(l);

        if (rc != LLM_OK) {
            return rc;
        }

        llm_loose_extra(l);

    } while (l->r.p < l->r.end && !llm_loose_stops(l));

    return LLM_OK;
}


/* ---- handing out ---- */

static int
llm_loose_put_all(llm_loose_list_t *l, llm_call_put_pt put, void *data)
{
    int        rc;
    size_t     start;
    uint32_t   i;
    llm_str_t  args;

    rc = LLM_OK;
    start = 0;

    for (i = 0; i < l->n && rc == LLM_OK; i++) {
        args.data = l->json.len ? l->json.data + start : "";
        args.len = l->calls[i].end - start;
        start = l->calls[i].end;

        rc = put(data, l->calls[i].tool->name, args);
    }

    return rc;
}


/* hands out the calls that were read; rc: result of llm_loose_list() */

static int
llm_loose_hand_out(llm_loose_list_t *l, int rc, int last, llm_call_put_pt put,
    void *data)
{
    if (rc == LLM_MORE && last) {
        if (l->tool && l->n < LLM_LOOSE_CALLS) {
            l->calls[l->n].tool = l->tool;
            l->calls[l->n++].end = l->json.len;
        }

        rc = l->n ? LLM_OK : LLM_ABSENT;
        l->c->args.len = 0;

    } else if (rc == LLM_ERROR) {
        rc = l->unknown || l->tool || l->n ? LLM_ABSENT : rc;
        l->c->args.off = l->c->at;
        l->c->args.len = (size_t) (l->r.end - l->text.data) - l->c->at;
    }

    if (rc == LLM_OK) {
        l->c->args.off = (size_t) ((l->stopped ? l->r.p : l->r.end)
                                   - l->text.data);
        rc = llm_loose_put_all(l, put, data);
    }

    if (l->json.failed) {
        l->c->params.failed = 1;
        rc = LLM_ERROR;
    }

    llm_buf_free(&l->json);
    free(l);

    return rc;
}


static llm_loose_list_t *
llm_loose_create(llm_call_t *c, llm_str_t text, size_t from, size_t to,
    int closes)
{
    llm_loose_list_t  *l;

    l = calloc(1, sizeof(*l));

    if (l == NULL) {
        c->params.failed = 1;
        return NULL;
    }

    l->c = c;
    l->text = text;
    llm_buf_init(&l->json, 0);
    l->r.p = text.data + from;
    l->r.end = text.data + to;
    l->r.quote = c->form->quote;
    l->r.closes = closes;

    return l;
}


int
llm_loose_body(llm_call_t *c, const llm_tool_t *tool, llm_str_t body,
    int last, llm_call_put_pt put, void *data)
{
    int                rc;
    llm_loose_list_t  *l;

    l = llm_loose_create(c, body, 0, body.len,
                         last == LLM_TEXT_GOES_ON ? LLM_LOOSE_MARK
                         : last == LLM_TEXT_DONE ? LLM_LOOSE_TURN : 0);
    if (l == NULL) {
        return LLM_ERROR;
    }

    c->at = 0;
    l->tool = tool;
    llm_loose_space(&l->r);

    if (l->r.p == l->r.end) {
        rc = l->r.closes ? llm_loose_done(l) : LLM_MORE;

    } else {
        rc = llm_loose_args(l);

        if (rc == LLM_OK) {
            llm_loose_extra(l);
            rc = l->has_args && l->r.p == l->r.end ? llm_loose_done(l)
                                                   : LLM_ERROR;
        }
    }

    if (rc == LLM_MORE && last == LLM_TEXT_GOES_ON) {
        rc = LLM_ERROR;
    }

    return llm_loose_hand_out(l, rc, last, put, data);
}


int
llm_loose_read(llm_call_t *c, llm_str_t text, size_t end, int closes, int last,
    llm_call_put_pt put, void *data)
{
    llm_loose_list_t  *l;

    l = llm_loose_create(c, text, c->at, end, closes);

    return l ? llm_loose_hand_out(l, llm_loose_list(l), last, put, data)
             : LLM_ERROR;
}
