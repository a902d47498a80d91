/*
 * Learns how a template writes calls of tools; see learn.h.
 *
 * The name, the keys and the values of a call are searched in what the
 * template writes for it.  Their positions tell the kind of the form, and what
 * is around them its marks.  A second call after the first tells which marks
 * belong to each call and which to all calls.
 */

#include "engine/text/chat/learn.h"
#include "engine/text/chat/show.h"


/* position of the first call in what the template has written */
typedef struct {
    llm_str_t        text;
    size_t           from;              /* the call itself: its object, or */
    size_t           to;                /* from its name to the last value */
    size_t           second;            /* where the second call begins; 0: in
                                           the same array, or there is none */
    llm_form_t       form;
} llm_learn_t;


/* end of the bracketed value that begins at `at` and contains [from, to), or
   0 */

static size_t
llm_learn_value(llm_str_t s, size_t at, size_t to, llm_str_t quote)
{
    llm_lit_t  r;

    llm_lit_init(&r, llm_learn_cut(s, at, s.len), quote, NULL);

    if (llm_lit_value(&r) != LLM_OK) {
        return 0;
    }

    /* white space after the value does not belong to it */

    while (r.p > s.data && llm_mark_is_space(r.p[-1])) {
        r.p--;
    }

    return (size_t) (r.p - s.data) >= to ? (size_t) (r.p - s.data) : 0;
}


/* finds the outermost value that contains both the name and the arguments */

static int
llm_learn_object(llm_str_t s, size_t name, size_t last, size_t *from,
    size_t *to)
{
    size_t  i;

    for (i = 0; i < name; i++) {
        if (s.data[i] == '{' || s.data[i] == '[') {
            *to = llm_learn_value(s, i, last, llm_str(""));

            if (*to) {
                *from = i;
                return 1;
            }
        }
    }

    return 0;
}


/* the key whose value is the word */

static llm_str_t
llm_learn_name_key(llm_str_t object, const char *word, int depth)
{
    llm_lit_t  r;
    llm_str_t  key, value, none = { 0, "" };

    if (object.len == 0 || depth == 4) {
        return none;
    }

    llm_lit_init(&r, object, llm_str(""), NULL);

    if (*r.p == '[') {
        r.p++;
        return llm_lit_item(&r, &value) == LLM_OK
               ? llm_learn_name_key(value, word, depth + 1) : none;
    }

    if (*r.p++ != '{') {
        return none;
    }

    while (llm_lit_member(&r, &key, &value) == LLM_OK) {
        if (llm_learn_find(value, word, 0) != SIZE_MAX) {
            return value.data[0] == '{'
                   ? llm_learn_name_key(value, word, depth + 1) : key;
        }
    }

    return none;
}


/*
 * Returns the key of the arguments: the key whose value is the innermost
 * object that has the parameter's key.
 */

static llm_str_t
llm_learn_args_key(llm_str_t object, const llm_show_call_t *call, int depth)
{
    llm_lit_t  r;
    llm_str_t  key, value, inner, none = { 0, "" };

    if (object.len == 0 || depth == 4) {
        return none;
    }

    llm_lit_init(&r, object, llm_str(""), NULL);

    if (*r.p == '[') {
        r.p++;
        return llm_lit_item(&r, &value) == LLM_OK
               ? llm_learn_args_key(value, call, depth + 1) : none;
    }

    if (*r.p++ != '{') {
        return none;
    }

    while (llm_lit_member(&r, &key, &value) == LLM_OK) {
        if (llm_str_is(key, call->key) || llm_str_is(key, call->name)) {
            return none;                /* this object is the arguments */
        }

        if (llm_learn_find(value, call->key, 0) != SIZE_MAX) {
            inner = llm_learn_args_key(value, call, depth + 1);
            return inner.len ? inner : key;
        }
    }

    return none;
}


/*
 * Returns the length of the mark before each key: what precedes both keys and
 * begins with a bracket, as a separate mark does; 0: there is none.
 */

static size_t
llm_learn_key_mark(llm_str_t before_first, llm_str_t before_second)
{
    size_t  same;

    for (same = 0; same < before_first.len && same < before_second.len
         && before_first.data[before_first.len - 1 - same]
            == before_second.data[before_second.len - 1 - same]; same++)
    {
        /* void */
    }

    while (same && before_first.data[before_first.len - same] != '<'
           && before_first.data[before_first.len - same] != '[')
    {
        same--;
    }

    return same;
}


/* finds the white space between a value and the marks around it */

static void
llm_learn_value_space(llm_format_t *f, llm_form_t *form, llm_str_t before,
    llm_str_t after)
{
    size_t  n;

    while (before.len && !llm_mark_is_space(before.data[0])) {
        before.data++;
        before.len--;
    }

    if (llm_learn_trim(before).len == 0 && before.len) {
        form->value_lead.data = llm_arena_dup(&f->arena, before.data,
                                              before.len);
        form->value_lead.len = form->value_lead.data ? before.len : 0;
    }

    for (n = 0; n < after.len && llm_mark_is_space(after.data[n]); n++) {
        /* void */
    }

    if (n && n < after.len) {
        form->value_tail.data = llm_arena_dup(&f->arena, after.data, n);
        form->value_tail.len = form->value_tail.data ? n : 0;
    }
}


/* finds the marks of keys and values, if the arguments are not in brackets */

static int
llm_learn_params(llm_format_t *f, llm_learn_t *l, size_t name_end)
{
    size_t                  k1, v1, k2, v2, mark, e1, e2;
    llm_str_t               middle, lead, s;
    llm_form_t             *form;
    const llm_show_call_t  *call;

    s = l->text;
    form = &l->form;
    call = &llm_show_calls[0];

    k1 = llm_learn_find(s, call->key, name_end);
    v1 = llm_learn_find(s, call->value, k1);
    k2 = llm_learn_find(s, call->number_key, v1);
    v2 = llm_learn_find(s, call->number, k2);

    if (v2 == SIZE_MAX) {
        return 0;
    }

    e1 = v1 + strlen(call->value);
    e2 = k2 + strlen(call->number_key);
    middle = llm_learn_cut(s, e1, k2);

    mark = llm_learn_key_mark(llm_learn_cut(s, name_end, k1), middle);
    if (mark == 0) {
        return 0;
    }

    form->kind = LLM_FORM_PARAMS;
    form->key = llm_chat_mark(f, llm_learn_cut(s, k1 - mark, k1));
    form->name_end = llm_chat_mark(f, llm_learn_cut(s, name_end, k1 - mark));

    lead = llm_learn_cut(s, k1 + strlen(call->key), v1);
    form->key_end = llm_chat_mark(f, llm_learn_cut(s, e2, v2));
    form->key_end_text = llm_chat_mark(f, lead);

    if (llm_str_eq(form->key_end, form->key_end_text)) {
        form->key_end_text = llm_str("");
    }

    middle.len -= mark;
    form->value_end = llm_chat_mark(f, middle);
    llm_learn_value_space(f, form, lead, middle);

    l->to = v2 + strlen(call->number);

    /* the rest of a value's end mark */

    s = llm_learn_cut(s, l->to, s.len);

    for (e1 = 0; e1 < s.len && e1 < LLM_LEARN_MARK; e1++) {
        if (llm_mark_match(form->value_end, s.data + e1, s.len - e1, &e2)
            == LLM_MARK_WHOLE)
        {
            l->to += e1 + e2;
            return form->key_end.len && form->value_end.len;
        }
    }

    return 0;
}


/* arguments in brackets after the name */

static int
llm_learn_named(llm_format_t *f, llm_learn_t *l, size_t name_end)
{
    size_t                  key, value, i, to;
    llm_str_t               s, quote;
    const llm_show_call_t  *call;

    s = l->text;
    call = &llm_show_calls[0];
    key = llm_learn_find(s, call->key, name_end);
    value = llm_learn_find(s, call->value, key);

    if (value == SIZE_MAX) {
        return 0;
    }

    quote = llm_str("");

    /* keys without quotes: the values may have quotes of the form's own */

    if (key > name_end && s.data[key - 1] == '{') {
        i = key + strlen(call->key);
        quote = llm_learn_cut(s, i + 1, value);

        if (s.data[i] != ':' || quote.len == 0 || quote.len > 32) {
            return 0;
        }
    }

    for (i = name_end; i < key; i++) {
        if (s.data[i] != '{') {
            continue;
        }

        to = llm_learn_value(s, i, value + strlen(call->value), quote);

        if (to) {
            l->form.kind = LLM_FORM_NAMED;
            l->form.name_end = llm_chat_mark(f, llm_learn_cut(s, name_end,
                                                              i));
            l->form.quote = llm_chat_mark(f, quote);
            l->to = to;

            return 1;
        }
    }

    return 0;
}


/* [f(a="x", b=1)] */

static int
llm_learn_python(llm_learn_t *l, size_t name, size_t name_end)
{
    size_t                  key, depth, i;
    llm_str_t               s;
    const llm_show_call_t  *call;

    s = l->text;
    call = &llm_show_calls[0];
    key = llm_learn_find(s, call->key, name_end);

    if (key != name_end + 1 || s.data[name_end] != '('
        || s.data[key + strlen(call->key)] != '=')
    {
        return 0;
    }

    l->form.kind = LLM_FORM_PYTHON;
    l->from = name && s.data[name - 1] == '[' ? name - 1 : name;

    for (i = l->from, depth = 0; i < s.len; i++) {
        depth += s.data[i] == '[' || s.data[i] == '(';
        depth -= s.data[i] == ']' || s.data[i] == ')';

        if (depth == 0 && (s.data[i] == ']' || s.data[i] == ')')) {
            l->to = i + 1;
            return 1;
        }
    }

    return 0;
}


/* finds the first call in l->text and its kind */

static int
llm_learn_call(llm_format_t *f, llm_learn_t *l)
{
    size_t                  name, key, last, end;
    llm_str_t               object;
    const llm_show_call_t  *call;

    call = &llm_show_calls[0];
    name = llm_learn_find(l->text, call->name, 0);
    key = llm_learn_find(l->text, call->key, 0);
    last = llm_learn_find(l->text, call->value, 0);

    if (name == SIZE_MAX || key == SIZE_MAX || last == SIZE_MAX) {
        return 0;
    }

    end = name + strlen(call->name);

    if (llm_learn_object(l->text, llm_min(name, key), llm_max(last, end),
                         &l->from, &l->to))
    {
        l->form.kind = LLM_FORM_OBJECT;
        object = llm_learn_cut(l->text, l->from, l->to);
        l->form.list = object.data[0] == '[';
        l->form.name_key = llm_chat_mark(f, llm_learn_name_key(object,
                                                               call->name,
                                                               0));
        l->form.args_key = llm_chat_mark(f, llm_learn_args_key(object, call,
                                                               0));
        return 1;
    }

    l->from = name;

    return llm_learn_named(f, l, end) || llm_learn_python(l, name, end)
           || llm_learn_params(f, l, end);
}


/* replaces ids of calls, and numbers that count them, which may be anything */

static llm_str_t
llm_learn_vary(llm_format_t *f, llm_str_t mark, const char *id)
{
    char    *at, *copy;
    size_t   n;

    at = mark.len ? memmem(mark.data, mark.len, id, strlen(id)) : NULL;

    if (at == NULL) {
        return mark;
    }

    copy = llm_arena_dup(&f->arena, mark.data, mark.len);

    if (copy == NULL) {
        return mark;
    }

    n = (size_t) (at - mark.data);
    copy[n] = LLM_MARK_ANY;
    memmove(copy + n + 1, copy + n + strlen(id), mark.len - n - strlen(id));

    return (llm_str_t) { mark.len + 1 - strlen(id), copy };
}


/* if the texts after the names of both calls differ only in a number, name_end
   allows any number there */

static void
llm_learn_number(llm_format_t *f, llm_form_t *form, llm_str_t s, size_t name)
{
    char       *copy;
    size_t      i, end, len;
    llm_str_t   mark;

    mark = form->name_end;
    end = name + strlen(llm_show_calls[1].name);

    for (i = 0; i < mark.len && mark.data[i] != '0'; i++) {
        /* void */
    }

    if (i == mark.len || end + i >= s.len || s.data[end + i] != '1'
        || llm_mark_match(mark, s.data + end, s.len - end, &len)
           != LLM_MARK_NO)
    {
        return;
    }

    copy = llm_arena_dup(&f->arena, mark.data, mark.len);

    if (copy) {
        copy[i] = LLM_MARK_ANY;
        form->name_end.data = copy;
    }
}


/* finds the marks before calls, from what precedes the first call and what is
   between two */

static void
llm_learn_begin(llm_format_t *f, llm_learn_t *l, llm_str_t before,
    llm_str_t gap)
{
    size_t       same;
    llm_form_t  *form;

    form = &l->form;

    for (same = 0; same < before.len && same < gap.len
         && before.data[before.len - 1 - same]
            == gap.data[gap.len - 1 - same]; same++)
    {
        /* void */
    }

    if (same < llm_learn_trim(before).len) {
        while (same && before.data[before.len - same] != '<'
               && before.data[before.len - same] != '[')
        {
            same--;
        }
    }

    if (gap.data && same == 0) {
        form->begin = llm_chat_mark(f, before);
        form->between = llm_chat_mark(f, gap);
        form->chain = form->between.len == 0;

    } else if (gap.data) {
        form->begin = llm_chat_mark(f, llm_learn_cut(before,
                                                     before.len - same,
                                                     before.len));
        form->open = llm_chat_mark(f, llm_learn_cut(before, 0,
                                                    before.len - same));
        gap.len -= same;
        form->end = llm_chat_mark(f, gap);

    } else {
        form->begin = llm_chat_mark(f, before);
    }
}


/* finds the marks after calls, from what follows the last call */

static void
llm_learn_end(llm_format_t *f, llm_learn_t *l, llm_str_t after,
    llm_str_t turn_end)
{
    size_t       len;
    const char  *at;
    llm_form_t  *form;

    form = &l->form;
    after = llm_learn_trim(after);

    if (turn_end.len) {
        at = memmem(after.data, after.len, turn_end.data, turn_end.len);
        after.len = at ? (size_t) (at - after.data) : after.len;
    }

    if (form->end.len
        && llm_mark_match(form->end, after.data, after.len, &len)
           == LLM_MARK_WHOLE)
    {
        after = llm_learn_cut(after, len, after.len);
        after = llm_learn_trim(after);

    } else if (form->end.len == 0 && form->open.len == 0) {
        form->end = llm_chat_mark(f, llm_learn_tag(after));
        return;
    }

    if (after.len <= LLM_LEARN_MARK && llm_learn_tag(after).len) {
        form->close = llm_chat_mark(f, after);
    }
}


/* finds the beginning of a second call, if it is not inside the first call's
   brackets */

static int
llm_learn_second(llm_learn_t *two, llm_str_t s, const llm_learn_t *one)
{
    size_t       name;
    llm_learn_t  l;

    name = llm_learn_find(s, llm_show_calls[1].name, 0);

    if (name == SIZE_MAX || name < two->to) {
        return 0;
    }

    l.text = llm_learn_cut(s, two->to, s.len);
    two->second = name;

    if (one->form.kind == LLM_FORM_OBJECT) {
        name -= two->to;

        if (!llm_learn_object(l.text, name, name, &l.from, &l.to)) {
            return 0;
        }

        two->second = two->to + l.from;
    }

    return two->second >= two->to;
}


void
llm_learn_form(llm_chat_t *c, llm_str_t tail, llm_form_t *form)
{
    llm_str_t      gap, before, after, turn_end;
    llm_learn_t    one, two;
    llm_show_t     show = { 0, 0, 1 };
    llm_shown_t    s, t;
    llm_format_t  *f;

    f = &c->format;
    memset(&one, 0, sizeof(one));
    memset(&two, 0, sizeof(two));
    memset(&t, 0, sizeof(t));

    if (llm_show(c, &show, &s) != LLM_OK) {
        return;
    }

    one.text = s.text;

    if (llm_learn_call(f, &one)) {
        gap = (llm_str_t) { 0, NULL };  /* there is no second call */
        show.calls = 2;

        if (llm_show(c, &show, &t) == LLM_OK) {
            two.text = t.text;

            if (llm_learn_call(f, &two)
                && llm_learn_second(&two, t.text, &one))
            {
                gap = llm_learn_cut(t.text, two.to, two.second);
                llm_learn_number(f, &one.form, t.text,
                                 llm_learn_find(t.text,
                                                llm_show_calls[1].name, 0));
            }
        }

        before = llm_learn_behind(f, llm_learn_cut(s.text, 0, one.from));
        after = llm_learn_cut(s.text, one.to, s.text.len);
        turn_end = llm_learn_tag_in(tail, after);

        if (turn_end.len) {
            f->turn_end = llm_chat_mark(f, turn_end);
        }

        /* the prompt may contain the first call's begin already */

        if (llm_learn_trim(before).len == 0) {
            one.form.bare = 1;

            if (gap.len && s.prompt.len >= gap.len
                && memcmp(s.prompt.data + s.prompt.len - gap.len, gap.data,
                          gap.len) == 0)
            {
                before = gap;
            }
        }

        llm_learn_begin(f, &one, before, gap);
        llm_learn_end(f, &one, after, turn_end);

        one.form.begin = llm_learn_vary(f, one.form.begin,
                                        llm_show_calls[0].id);
        one.form.name_end = llm_learn_vary(f, one.form.name_end,
                                           llm_show_calls[0].id);
        *form = one.form;
    }

    llm_shown_free(&s);
    llm_shown_free(&t);
}
