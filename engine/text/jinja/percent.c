/*
 * Python's "..." % values.
 *
 * Reference: "printf-style String Formatting" of the Python library
 * reference.
 */

#include "engine/text/jinja/format.h"

#include <ctype.h>
#include <math.h>

typedef struct {
    llm_jrt_t          *rt;
    llm_jb_t            b;
    const llm_jv_t     *value;          /* behind the % */
    const llm_jargs_t  *args;
    size_t              next;
    int                 markup;         /* values are escaped */
} llm_jpercent_t;


static int
llm_jpercent_next(llm_jpercent_t *f, const llm_jv_t **v)
{
    if (f->next >= f->args->n) {
        return llm_jrt_fail(f->rt, "not enough arguments for format string");
    }

    *v = &f->args->v[f->next++];

    return LLM_OK;
}


/* digits or "*" at s[*i]; *res stays as it is if there are none */

static int
llm_jpercent_count(llm_jpercent_t *f, const llm_js_t *s, size_t *i,
    int64_t *res)
{
    const char      *p;
    const llm_jv_t  *v;

    v = NULL;
    p = llm_js_data(s);

    if (*i < s->len && p[*i] == '*') {
        (*i)++;

        if (llm_jpercent_next(f, &v) != LLM_OK) {
            return LLM_ERROR;
        }

        if (!llm_jv_integral(v)) {
            return llm_jrt_fail(f->rt, "* wants int");
        }

        *res = v->u.i;

    } else if (*i < s->len && isdigit((unsigned char) p[*i])) {
        for (*res = 0; *i < s->len && isdigit((unsigned char) p[*i]); (*i)++)
        {
            *res = llm_min(*res * 10 + (p[*i] - '0'), LLM_JFMT_MAX + 1);
        }
    }

    if (*res > LLM_JFMT_MAX || *res < -LLM_JFMT_MAX) {
        return llm_jfmt_fail(f->rt, "the width or precision is too large");
    }

    return LLM_OK;
}


/* "(name)" at s[*i] picks from the mapping */

static int
llm_jpercent_key(llm_jpercent_t *f, const llm_js_t *s, size_t *i,
    const llm_jv_t **v)
{
    int          depth;
    size_t       start;
    llm_jv_t     key, *found;
    const char  *p;

    p = llm_js_data(s);
    start = ++*i;

    for (depth = 1; *i < s->len; (*i)++) {
        depth += p[*i] == '(' ? 1 : p[*i] == ')' ? -1 : 0;

        if (depth == 0) {
            break;
        }
    }

    if (*i >= s->len) {
        return llm_jrt_fail(f->rt, "incomplete format key");
    }

    if (f->value->type != LLM_J_DICT) {
        return llm_jrt_fail(f->rt, "format requires a mapping");
    }

    if (llm_js_slice(f->rt, s, start, (*i)++, &key) != LLM_OK
        || llm_jdict_get(f->rt, f->value->u.dict, &key, &found) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (found == NULL) {
        return llm_jrt_fail(f->rt, "format: no such key");
    }

    *v = found;
    f->next = f->args->n;

    return LLM_OK;
}


static int
llm_jpercent_value(llm_jpercent_t *f, llm_jspec_t *spec, const llm_jv_t *v)
{
    char      buf[8];
    int64_t   i;
    llm_jb_t  b;
    llm_jv_t  s, raw;

    switch (spec->type) {

    case 's':
    case 'r':
    case 'a':
        llm_jb_init(&b, f->rt, 0);

        if ((spec->type == 's' ? llm_jb_add_value(&b, v)
                               : llm_jb_add_repr(&b, v)) != LLM_OK
            || llm_jb_done(&b, &s) != LLM_OK)
        {
            return LLM_ERROR;
        }

        if (f->markup && !(v->type == LLM_J_STR && v->u.s->markup)) {
            raw = s;

            if (llm_jinja_escape(f->rt, &raw, &s) != LLM_OK) {
                return LLM_ERROR;
            }
        }

        spec->zero = 0;

        return llm_jfmt_string(&f->b, spec, &s, '>');

    case 'c':
        if (v->type == LLM_J_STR && llm_js_chars(v->u.s) == 1) {
            return llm_jfmt_string(&f->b, spec, v, '>');
        }

        if (!llm_jv_integral(v) || v->u.i < 0 || v->u.i > 0x10ffff) {
            return llm_jrt_fail(f->rt, "%%c requires int or char");
        }

        if (llm_js_make(f->rt, buf, llm_jc_encode((uint32_t) v->u.i, buf),
                        !v->tainted, &s) != LLM_OK)
        {
            return LLM_ERROR;
        }

        return llm_jfmt_string(&f->b, spec, &s, '>');
    }

    if (!llm_jv_number(v)) {
        return llm_jrt_fail(f->rt, "%%%c format: a number is required, not "
                            "%s", spec->type, llm_jv_type(v));
    }

    if (strchr("eEfFgG", spec->type)) {
        return llm_jfmt_float(&f->b, spec, v, spec->zero ? '=' : '>');
    }

    if (v->type == LLM_J_FLOAT) {
        if (strchr("xXo", spec->type) || !isfinite(v->u.f)
            || fabs(v->u.f) >= 9e18)
        {
            return llm_jrt_fail(f->rt, "%%%c format: an integer is required, "
                                "not float", spec->type);
        }

        i = (int64_t) v->u.f;
        s = llm_jv_int(i);
        s.tainted = v->tainted;

        return llm_jfmt_int(&f->b, spec, &s, spec->zero ? '=' : '>');
    }

    return llm_jfmt_int(&f->b, spec, v, spec->zero ? '=' : '>');
}


/* one conversion; s[*i] is behind the % */

static int
llm_jpercent_spec(llm_jpercent_t *f, const llm_js_t *s, size_t *i)
{
    const char      *p;
    llm_jspec_t      spec;
    const llm_jv_t  *v;

    p = llm_js_data(s);
    v = NULL;
    memset(&spec, 0, sizeof(spec));
    spec.precision = -1;

    if (*i < s->len && p[*i] == '('
        && llm_jpercent_key(f, s, i, &v) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for ( /* void */ ; *i < s->len; (*i)++) {
        if (p[*i] == '-') {
            spec.align = '<';

        } else if (p[*i] == '+' || (p[*i] == ' ' && spec.sign != '+')) {
            spec.sign = p[*i];

        } else if (p[*i] == '0') {
            spec.zero = 1;

        } else if (p[*i] == '#') {
            spec.alt = 1;

        } else if (p[*i] != ' ') {
            break;
        }
    }

    if (llm_jpercent_count(f, s, i, &spec.width) != LLM_OK) {
        return LLM_ERROR;
    }

    if (spec.width < 0) {
        spec.align = '<';
        spec.width = -spec.width;
    }

    if (*i < s->len && p[*i] == '.') {
        (*i)++;
        spec.precision = 0;

        if (llm_jpercent_count(f, s, i, &spec.precision) != LLM_OK) {
            return LLM_ERROR;
        }

        spec.precision = llm_max(spec.precision, 0);
    }

    while (*i < s->len && p[*i] && strchr("hlL", p[*i])) {
        (*i)++;
    }

    if (*i >= s->len) {
        return llm_jrt_fail(f->rt, "incomplete format");
    }

    spec.type = p[(*i)++];
    spec.zero = spec.zero && spec.align == 0;

    if (spec.type == '%') {
        return llm_jb_adds(&f->b, "%", 1);
    }

    if (spec.type == '\0' || !strchr("sradiucxXoeEfFgG", spec.type)) {
        return llm_jrt_fail(f->rt, "unsupported format character");
    }

    if (v == NULL && llm_jpercent_next(f, &v) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_jpercent_value(f, &spec, v);
}


int
llm_jinja_percent(llm_jrt_t *rt, const llm_jv_t *format,
    const llm_jv_t *value, const llm_jargs_t *args, llm_jv_t *res)
{
    size_t           i, from;
    llm_js_t        *s;
    const char      *p;
    llm_jpercent_t   f;

    memset(&f, 0, sizeof(f));
    f.rt = rt;
    f.value = value;
    f.args = args;
    f.markup = format->u.s->markup;
    llm_jb_init(&f.b, rt, 0);

    s = format->u.s;
    p = llm_js_data(s);

    for (i = 0, from = 0; i < s->len; /* void */ ) {
        if (p[i++] != '%') {
            continue;
        }

        if (llm_jb_add_range(&f.b, s, from, i - 1) != LLM_OK
            || llm_jpercent_spec(&f, s, &i) != LLM_OK)
        {
            return LLM_ERROR;
        }

        from = i;
    }

    if (f.next < args->n && value->type != LLM_J_DICT
        && value->type != LLM_J_LIST)
    {
        return llm_jrt_fail(rt, "not all arguments converted during string "
                            "formatting");
    }

    if (llm_jb_add_range(&f.b, s, from, s->len) != LLM_OK
        || llm_jb_done(&f.b, res) != LLM_OK)
    {
        return LLM_ERROR;
    }

    res->u.s->markup = f.markup;

    return LLM_OK;
}
