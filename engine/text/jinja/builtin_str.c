/*
 * Filters and methods that make strings from strings: strip, replace, join,
 * indent, truncate, escape. (Letters: builtin_case.c; those that look into
 * strings: builtin_find.c.) Bytes keep their trust; indentation counts as the
 * template's.
 */

#include "engine/text/jinja/builtin.h"


/* should the character at p, len bytes long, be stripped?  set NULL: white
   space is */

static int
llm_jstr_strips(const llm_js_t *set, const char *p, size_t len)
{
    size_t       n;
    const char  *q, *end;

    if (set == NULL) {
        return llm_jc_space(p, p + len) != 0;
    }

    q = llm_js_data(set);

    for (end = q + set->len; q < end; q += n) {
        (void) llm_jc_decode(q, end, &n);

        if (n == len && memcmp(p, q, n) == 0) {
            return 1;
        }
    }

    return 0;
}


int
llm_jfn_strip(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t       len, work;
    llm_js_t    *s, *chars;
    const char  *start, *p, *end, *q;

    s = args->v[0].u.s;
    chars = llm_jarg_str(args, 1);
    start = llm_js_data(s);
    p = start;
    end = start + s->len;
    work = chars ? chars->len * LLM_J_CLASSIFIED : 1;

    while ((args->f->how & LLM_JF_LEFT) && p < end) {
        (void) llm_jc_decode(p, end, &len);

        if (!llm_jstr_strips(chars, p, len)) {
            break;
        }

        p += len;

        llm_jtry(llm_jrt_charge(rt, work));
    }

    while ((args->f->how & LLM_JF_RIGHT) && end > p) {
        q = llm_jc_prev(p, end);

        if (!llm_jstr_strips(chars, q, (size_t) (end - q))) {
            break;
        }

        end = q;

        llm_jtry(llm_jrt_charge(rt, work));
    }

    return llm_js_slice(rt, s, (size_t) (p - start), (size_t) (end - start),
                        res);
}


/* old is empty: puts new before every character and after the last */

static int
llm_jstr_interleave(llm_jb_t *b, llm_js_t *s, const llm_js_t *new,
    int64_t count)
{
    size_t       i, len;
    const char  *p;

    p = llm_js_data(s);

    for (i = 0; i < s->len && count != 0; i += len, count--) {
        (void) llm_jc_decode(p + i, p + s->len, &len);

        llm_jtry(llm_jb_add_str(b, new));
        llm_jtry(llm_jb_add_range(b, s, i, i + len));
    }

    if (i < s->len) {
        return llm_jb_add_range(b, s, i, s->len);
    }

    return count ? llm_jb_add_str(b, new) : LLM_OK;
}


int
llm_jfn_replace(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t      pos, at;
    int64_t     count;
    llm_jb_t    b;
    llm_jv_t    new;
    llm_js_t   *s, *old;

    s = args->v[0].u.s;
    old = args->v[1].u.s;
    new = args->v[2];
    count = llm_jarg_int(args, 3, -1);

    llm_jtry(s->markup && llm_jinja_escape(rt, &args->v[2], &new));

    if (new.type != LLM_J_STR) {
        return llm_jrt_fail(rt, "replace: expected a string, not %s",
                            llm_jv_type(&new));
    }

    llm_jtry(llm_jrt_charge_search(rt, s->len, old));

    llm_jb_init(&b, rt, 0);

    if (old->len == 0) {
        llm_jtry(llm_jstr_interleave(&b, s, new.u.s, count));

        return llm_jb_done_as(&b, s, res);
    }

    for (pos = 0; count != 0; pos = at + old->len, count--) {
        at = llm_js_find(s, old, pos);

        if (at == SIZE_MAX) {
            break;
        }

        llm_jtry(llm_jb_add_range(&b, s, pos, at));
        llm_jtry(llm_jb_add_str(&b, new.u.s));
    }

    if (pos == 0) {
        return llm_js_slice(rt, s, 0, s->len, res);
    }

    (void) llm_jb_add_range(&b, s, pos, s->len);

    return llm_jb_done_as(&b, s, res);
}


/* the method: items must be strings */

int
llm_jfn_join_str(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t        i;
    llm_jb_t      b;
    llm_jv_t      item;
    llm_js_t     *sep;
    llm_jlist_t   l;

    llm_jtry(llm_jv_items(rt, &args->v[1], &l));

    sep = args->v[0].u.s;
    llm_jb_init(&b, rt, 0);

    for (i = 0; i < l.n; i++) {
        item = l.v[i];

        llm_jtry(sep->markup && llm_jinja_escape(rt, &l.v[i], &item));

        if (item.type != LLM_J_STR) {
            return llm_jrt_fail(rt, "sequence item %zu: expected str "
                                "instance, %s found", i, llm_jv_type(&item));
        }

        if (i) {
            llm_jtry(llm_jb_add_str(&b, sep));
        }

        llm_jtry(llm_jb_add_str(&b, item.u.s));
    }

    return llm_jb_done_as(&b, sep, res);
}


/* removeprefix, removesuffix */

int
llm_jfn_remove(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t     at, left;
    llm_js_t  *s, *affix;

    s = args->v[0].u.s;
    affix = args->v[1].u.s;

    if (affix->len > s->len) {
        return llm_js_slice(rt, s, 0, s->len, res);
    }

    left = args->f->how == LLM_JF_LEFT ? affix->len : 0;
    at = left ? 0 : s->len - affix->len;

    if (memcmp(llm_js_data(s) + at, llm_js_data(affix), affix->len) != 0) {
        return llm_js_slice(rt, s, 0, s->len, res);
    }

    return llm_js_slice(rt, s, left, left ? s->len : at, res);
}


/* string: returns the subject, which eval_call.c has turned into text */

int
llm_jfn_self(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    *res = args->v[0];

    return LLM_OK;
}


/* the indentation of a line: a string, or a number of spaces */

static int
llm_jstr_indention(llm_jrt_t *rt, const llm_jv_t *v, llm_jv_t *res)
{
    llm_jb_t  b;

    if (v->type == LLM_J_STR) {
        *res = *v;
        return LLM_OK;
    }

    if (v->type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, v);
    }

    if (llm_jv_given(v) && !llm_jv_integral(v)) {
        return llm_jrt_fail(rt, "indent: '%s' object cannot be interpreted "
                            "as an integer", llm_jv_type(v));
    }

    llm_jb_init(&b, rt, 0);

    (void) llm_jb_spaces(&b, !llm_jv_given(v) ? 4 : v->u.i < 0 ? 0
                         : (size_t) v->u.i, 1);

    return llm_jb_done(&b, res);
}


int
llm_jfn_indent(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int        first, blank;
    size_t     pos, end, next, lines;
    llm_jb_t   b;
    llm_jv_t   by;
    llm_js_t  *s;

    if (args->v[0].type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, &args->v[0]);
    }

    if (args->v[0].type != LLM_J_STR) {
        return llm_jrt_fail(rt, "indent: expected a string, not %s",
                            llm_jv_type(&args->v[0]));
    }

    llm_jtry(llm_jstr_indention(rt, &args->v[1], &by));

    s = args->v[0].u.s;
    first = llm_jv_truth(&args->v[2]);
    blank = llm_jv_truth(&args->v[3]);
    llm_jb_init(&b, rt, 0);

    if (first) {
        (void) llm_jb_add_str(&b, by.u.s);
    }

    /* the filter adds a newline before splitting, so the last line may be
       empty */

    for (pos = 0, lines = 0; pos < s->len || lines == 0; pos = next, lines++)
    {
        end = llm_js_line(s, pos, &next);

        if (lines) {
            (void) llm_jb_adds(&b, "\n", 1);
        }

        if (lines && (blank || end > pos)) {
            (void) llm_jb_add_str(&b, by.u.s);
        }

        llm_jtry(llm_jb_add_range(&b, s, pos, end));

        /* a "\r" at the end and the added newline are one line break */

        if (next == s->len && next > end
            && llm_js_data(s)[s->len - 1] != '\r')
        {
            (void) llm_jb_adds(&b, "\n", 1);

            if (blank) {
                (void) llm_jb_add_str(&b, by.u.s);
            }
        }
    }

    return llm_jb_done_as(&b, s, res);
}


int
llm_jfn_truncate(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t     cut, at;
    int64_t    length, leeway, room;
    llm_jv_t   end, space, head;
    llm_js_t  *s;

    length = llm_jarg_int(args, 1, 255);
    leeway = llm_jarg_int(args, 4, 5);
    end = args->v[3];

    if (!llm_jv_given(&end)) {
        llm_jtry(llm_js_lit(rt, "...", &end));
    }

    llm_jtry(llm_js_lit(rt, " ", &space));

    room = length - (int64_t) llm_js_chars(end.u.s);

    if (leeway < 0 || room < 0) {
        return llm_jrt_fail(rt, "truncate: length or leeway is too small");
    }

    /* any value with a length will do, as long as it is short enough */

    if (llm_jv_len(&args->v[0]) >= 0
        && llm_jv_len(&args->v[0]) - leeway <= length)
    {
        *res = args->v[0];
        return LLM_OK;
    }

    if (args->v[0].type != LLM_J_STR) {
        return llm_jrt_fail(rt, "truncate: expected a string, not %s",
                            llm_jv_type(&args->v[0]));
    }

    s = args->v[0].u.s;
    cut = llm_js_offset(s, (size_t) room);

    if (!llm_jv_truth(&args->v[2])) {
        at = llm_js_rfind(s, space.u.s, cut);
        cut = at == SIZE_MAX ? cut : at;
    }

    llm_jtry(llm_js_slice(rt, s, 0, cut, &head));

    return llm_js_concat(rt, head.u.s, end.u.s, res);
}


/*
 * Markup.  Chat templates do not escape by themselves; "safe" only marks text,
 * so that other text is escaped when it is joined to it.
 */

int
llm_jfn_safe(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jtry(llm_js_slice(rt, args->v[0].u.s, 0, args->v[0].u.s->len, res));

    res->u.s->markup = 1;

    return LLM_OK;
}


int
llm_jinja_escape(llm_jrt_t *rt, const llm_jv_t *v, llm_jv_t *res)
{
    size_t                     i, from;
    llm_jb_t                   b;
    llm_jv_t                   text;
    const char                *p, *q;
    static const char          chars[] = "&<>'\"";
    static const char *const   to[] = {
        "&amp;", "&lt;", "&gt;", "&#39;", "&#34;"
    };

    if (v->type == LLM_J_STR && v->u.s->markup) {
        *res = *v;
        return LLM_OK;
    }

    llm_jtry(llm_jv_tostr(rt, v, &text));

    p = llm_js_data(text.u.s);
    llm_jb_init(&b, rt, 0);

    for (i = 0, from = 0; i < text.u.s->len; i++) {
        q = p[i] ? strchr(chars, p[i]) : NULL;

        if (q) {
            (void) llm_jb_add_range(&b, text.u.s, from, i);
            (void) llm_jb_adds(&b, to[q - chars],
                               llm_js_trusted_at(text.u.s, i));
            from = i + 1;
        }
    }

    (void) llm_jb_add_range(&b, text.u.s, from, i);

    llm_jtry(llm_jb_done(&b, res));

    res->u.s->markup = 1;

    return LLM_OK;
}


int
llm_jfn_escape(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jinja_escape(rt, &args->v[0], res);
}
