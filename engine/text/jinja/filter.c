/*
 * Filters that make text, and the table of all filters.
 */

#include "engine/text/jinja/filter.h"


int
llm_jf_soft_str(llm_jrt_t *rt, const llm_jv_t *v, llm_jv_t *res)
{
    if (v->type == LLM_J_STR) {
        *res = *v;
        return LLM_OK;
    }

    return llm_jv_tostr(rt, v, res);
}


static int
llm_jf_case(llm_jrt_t *rt, llm_jargs_t *args, llm_jc_mapping_t mapping,
    llm_jv_t *res)
{
    llm_jv_t  s;

    if (llm_jf_soft_str(rt, &args->v[0], &s) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_jm_case(rt, s.u.s, mapping, res);
}


static int
llm_jf_upper(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jf_case(rt, args, LLM_JC_TO_UPPER, res);
}


static int
llm_jf_lower(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jf_case(rt, args, LLM_JC_TO_LOWER, res);
}


static int
llm_jf_capitalize(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jf_case(rt, args, LLM_JC_TO_CAPITAL, res);
}


/* words begin behind spaces and - ( { [ <, unlike in str.title() */

static int
llm_jf_title(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t       i, len, next;
    llm_jb_t     b;
    llm_jv_t     s;
    const char  *p, *end;

    if (llm_jf_soft_str(rt, &args->v[0], &s) != LLM_OK) {
        return LLM_ERROR;
    }

    p = llm_js_data(s.u.s);
    end = p + s.u.s->len;
    llm_jb_init(&b, rt, 0);

#define llm_jf_break(q)  (llm_jc_space(q, end) || strchr("-({[<", *(q)))

    for (i = 0; i < s.u.s->len; i = next) {
        if (p[i] && llm_jf_break(p + i)) {
            (void) llm_jc_decode(p + i, end, &len);
            next = i + len;

            if (llm_jb_add_range(&b, s.u.s, i, next) != LLM_OK) {
                return LLM_ERROR;
            }

            continue;
        }

        (void) llm_jc_decode(p + i, end, &len);

        for (next = i + len; next < s.u.s->len
             && !(p[next] && llm_jf_break(p + next)); next++) { /* void */ }

        if (llm_jb_add_mapped(&b, s.u.s, i, i + len, LLM_JC_TO_UPPER)
            != LLM_OK
            || llm_jb_add_mapped(&b, s.u.s, i + len, next, LLM_JC_TO_LOWER)
               != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return llm_jb_done(&b, res);
}


static int
llm_jf_trim(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t   s;
    llm_js_t  *chars;

    chars = NULL;

    if (llm_jf_soft_str(rt, &args->v[0], &s) != LLM_OK
        || (llm_jv_given(&args->v[1]) && args->v[1].type != LLM_J_NONE
            && llm_jarg_str(rt, &args->v[1], "trim", &chars) != LLM_OK))
    {
        return LLM_ERROR;
    }

    return llm_jm_strip(rt, s.u.s, chars, LLM_JM_LEFT | LLM_JM_RIGHT, res);
}


static int
llm_jf_replace(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int64_t   count;
    llm_jv_t  s, old, new;

    count = -1;

    if (llm_jv_tostr(rt, &args->v[0], &s) != LLM_OK
        || llm_jv_tostr(rt, &args->v[1], &old) != LLM_OK
        || llm_jv_tostr(rt, &args->v[2], &new) != LLM_OK
        || (llm_jv_given(&args->v[3]) && args->v[3].type != LLM_J_NONE
            && llm_jarg_int(rt, &args->v[3], "replace", &count) != LLM_OK))
    {
        return LLM_ERROR;
    }

    return llm_jm_replace(rt, s.u.s, old.u.s, new.u.s, count, res);
}


static int
llm_jf_string(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jf_soft_str(rt, &args->v[0], res);
}


static int
llm_jf_center(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int64_t   width;
    llm_jv_t  s, fill;

    width = 80;

    if (llm_jf_soft_str(rt, &args->v[0], &s) != LLM_OK
        || llm_js_lit(rt, " ", &fill) != LLM_OK
        || (llm_jv_given(&args->v[1])
            && llm_jarg_int(rt, &args->v[1], "center", &width) != LLM_OK))
    {
        return LLM_ERROR;
    }

    return llm_jm_pad(rt, s.u.s, width, fill.u.s, '^', res);
}


/* what a line is indented by: a string, or that many spaces */

static int
llm_jf_indention(llm_jrt_t *rt, const llm_jv_t *v, llm_jv_t *res)
{
    int64_t   width;
    llm_jb_t  b;

    if (v->type == LLM_J_STR) {
        *res = *v;
        return LLM_OK;
    }

    width = 4;

    if (llm_jv_given(v) && llm_jarg_int(rt, v, "indent", &width) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_jb_init(&b, rt, 0);

    if (llm_jb_fill(&b, " ", 1, (size_t) llm_max(width, 0), 1) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_jb_done(&b, res);
}


static int
llm_jf_indent(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int        first, blank;
    size_t     pos, end, next, lines;
    llm_jb_t   b;
    llm_jv_t   by;
    llm_js_t  *s;

    if (args->v[0].type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, &args->v[0]);
    }

    if (llm_jarg_str(rt, &args->v[0], "indent", &s) != LLM_OK
        || llm_jf_indention(rt, &args->v[1], &by) != LLM_OK)
    {
        return LLM_ERROR;
    }

    first = llm_jv_truth(&args->v[2]);
    blank = llm_jv_truth(&args->v[3]);
    llm_jb_init(&b, rt, 0);

    if (first && llm_jb_add_str(&b, by.u.s) != LLM_OK) {
        return LLM_ERROR;
    }

    /* the filter adds a newline and splits: a last line may be empty */

    for (pos = 0, lines = 0; pos < s->len || lines == 0; pos = next, lines++)
    {
        end = llm_jm_line(s, pos, &next);

        if (lines && llm_jb_adds(&b, "\n", 1) != LLM_OK) {
            return LLM_ERROR;
        }

        if (lines && (blank || end > pos)
            && llm_jb_add_str(&b, by.u.s) != LLM_OK)
        {
            return LLM_ERROR;
        }

        if (llm_jb_add_range(&b, s, pos, end) != LLM_OK) {
            return LLM_ERROR;
        }

        /* "\r" at the end and the newline added are one line break */

        if (next == s->len && next > end
            && llm_js_data(s)[s->len - 1] != '\r')
        {
            if (llm_jb_adds(&b, "\n", 1) != LLM_OK
                || (blank && llm_jb_add_str(&b, by.u.s) != LLM_OK))
            {
                return LLM_ERROR;
            }
        }
    }

    if (llm_jb_done(&b, res) != LLM_OK) {
        return LLM_ERROR;
    }

    res->u.s->markup = s->markup;

    return LLM_OK;
}


static int
llm_jf_truncate(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t     cut, at;
    int64_t    length, leeway, room;
    llm_jv_t   end, space, head;
    llm_js_t  *s;

    length = 255;
    leeway = 5;
    end = args->v[3];

    if ((llm_jv_given(&args->v[1])
         && llm_jarg_int(rt, &args->v[1], "truncate", &length) != LLM_OK)
        || (llm_jv_given(&args->v[4]) && args->v[4].type != LLM_J_NONE
            && llm_jarg_int(rt, &args->v[4], "truncate", &leeway) != LLM_OK)
        || (!llm_jv_given(&end) && llm_js_lit(rt, "...", &end) != LLM_OK)
        || llm_js_lit(rt, " ", &space) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (end.type != LLM_J_STR || leeway < 0
        || length < (int64_t) llm_js_chars(end.u.s))
    {
        return llm_jrt_fail(rt, "truncate: length or leeway is too small");
    }

    room = length - (int64_t) llm_js_chars(end.u.s);

    /* anything with a length will do, as long as it is short */

    if (llm_jv_len(&args->v[0]) >= 0
        && llm_jv_len(&args->v[0]) - leeway <= length)
    {
        *res = args->v[0];
        return LLM_OK;
    }

    if (llm_jarg_str(rt, &args->v[0], "truncate", &s) != LLM_OK) {
        return LLM_ERROR;
    }

    cut = llm_js_offset(s, (size_t) room);

    if (!llm_jv_truth(&args->v[2])) {
        at = llm_js_rfind(s, space.u.s, cut);
        cut = at == SIZE_MAX ? cut : at;
    }

    if (llm_js_slice(rt, s, 0, cut, &head) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_js_concat(rt, head.u.s, end.u.s, res);
}


static int
llm_jf_wordcount(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int          word, inside;
    size_t       len;
    int64_t      n;
    uint32_t     c;
    llm_jv_t     s;
    const char  *p, *end;

    if (llm_jf_soft_str(rt, &args->v[0], &s) != LLM_OK
        || llm_jrt_charge(rt, s.u.s->len * LLM_J_CLASSIFIED) != LLM_OK)
    {
        return LLM_ERROR;
    }

    p = llm_js_data(s.u.s);
    end = p + s.u.s->len;

    for (n = 0, inside = 0; p < end; p += len) {
        c = llm_jc_decode(p, end, &len);
        word = c == '_' || llm_jc_is(c, LLM_JC_ALPHA)
               || llm_jc_is(c, LLM_JC_NUMERIC);
        n += word && !inside;
        inside = word;
    }

    *res = llm_jv_int(n);

    return LLM_OK;
}


static int
llm_jf_format(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t     s, value;
    llm_jargs_t  rest;

    if (llm_jf_soft_str(rt, &args->v[0], &s) != LLM_OK) {
        return LLM_ERROR;
    }

    if (args->n > 1 && args->n_kw) {
        return llm_jrt_fail(rt, "can't handle positional and keyword "
                            "arguments at the same time");
    }

    rest = *args;
    rest.v++;
    rest.n--;

    /* the tuple of the positional, or the dict of the keyword arguments */

    if (args->n_kw) {
        if (llm_jv_dict(rt, LLM_J_DICT, &value) != LLM_OK) {
            return LLM_ERROR;
        }

        value.u.dict->v = args->kw;
        value.u.dict->n = args->n_kw;
        rest.v = &value;
        rest.n = 1;

    } else if (llm_jv_list(rt, LLM_J_TUPLE, 0, &value) != LLM_OK) {
        return LLM_ERROR;
    }

    rest.n_kw = 0;

    return llm_jinja_percent(rt, &s, &value, &rest, res);
}


static int
llm_jf_default(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    if (args->v[0].type != LLM_J_UNDEF
        && !(llm_jv_truth(&args->v[2]) && !llm_jv_truth(&args->v[0])))
    {
        *res = args->v[0];
        return LLM_OK;
    }

    if (llm_jv_given(&args->v[1])) {
        *res = args->v[1];
        return LLM_OK;
    }

    return llm_js_lit(rt, "", res);
}


static int
llm_jf_attr(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_js_t  *name;

    if (llm_jarg_str(rt, &args->v[1], "attr", &name) != LLM_OK) {
        return LLM_ERROR;
    }

    if (args->v[0].type == LLM_J_DICT
        && llm_jinja_method(&args->v[0], name) == NULL)
    {
        return llm_jv_undef_of(rt, &args->v[0], &args->v[1], res);
    }

    return llm_jinja_getattr(rt, &args->v[0], &args->v[1], res);
}


static const llm_jfunc_t  llm_jf_text_table[] = {
    { "upper", llm_jf_upper, "", 0, 0 },
    { "lower", llm_jf_lower, "", 0, 0 },
    { "capitalize", llm_jf_capitalize, "", 0, 0 },
    { "title", llm_jf_title, "", 0, 0 },
    { "trim", llm_jf_trim, "chars?", 0, 0 },
    { "replace", llm_jf_replace, "old new count?", 0, 0 },
    { "string", llm_jf_string, "", 0, 0 },
    { "center", llm_jf_center, "width?", 0, 0 },
    { "indent", llm_jf_indent, "width? first? blank?", 0, 0 },
    { "truncate", llm_jf_truncate, "length? killwords? end? leeway?", 0, 0 },
    { "wordcount", llm_jf_wordcount, "", 0, 0 },
    { "format", llm_jf_format, NULL, 0, 0 },
    { "default", llm_jf_default, "default_value? boolean?", 0, 0 },
    { "d", llm_jf_default, "default_value? boolean?", 0, 0 },
    { "attr", llm_jf_attr, "name", 0, 0 },
    { "tojson", llm_jinja_tojson,
      "ensure_ascii? indent? separators? sort_keys?", 0, 0 }
};

const llm_jfilters_t  llm_jf_text = {
    llm_jf_text_table, llm_nelems(llm_jf_text_table)
};


const llm_jfunc_t *
llm_jinja_filter(const char *name, size_t len)
{
    size_t                             i, k;
    static const llm_jfilters_t *const tables[] = {
        &llm_jf_text, &llm_jf_seq, &llm_jf_pick, &llm_jf_number, &llm_jf_html
    };

    for (i = 0; i < llm_nelems(tables); i++) {
        for (k = 0; k < tables[i]->n; k++) {
            if (strlen(tables[i]->v[k].name) == len
                && memcmp(tables[i]->v[k].name, name, len) == 0)
            {
                return &tables[i]->v[k];
            }
        }
    }

    return NULL;
}
