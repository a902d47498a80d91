/*
 * Python's "...".format(values).
 *
 * Reference: "Format String Syntax" of the Python library reference.
 */

#include "engine/text/jinja/format.h"

#include <ctype.h>

typedef struct {
    llm_jrt_t          *rt;
    llm_jb_t            b;
    llm_js_t           *s;
    const llm_jargs_t  *args;
    size_t              next;           /* number of the next "{}" */
    int                 numbering;      /* 'a' automatic, 'm' by hand, 0 */
    int                 markup;         /* the last field's value was it */
} llm_jformat_t;


/* "0", "name" or "": the argument that s[start, end) names */

static int
llm_jformat_arg(llm_jformat_t *f, size_t start, size_t end, llm_jv_t *res)
{
    size_t       i, n;
    char         mode;
    const char  *p;

    p = llm_js_data(f->s);

    for (i = start, n = 0; i < end && isdigit((unsigned char) p[i]); i++) {
        n = llm_min(n * 10 + (size_t) (p[i] - '0'), 100000);
    }

    if (i == end) {
        mode = start == end ? 'a' : 'm';

        if (f->numbering && f->numbering != mode) {
            return llm_jfmt_fail(f->rt, "cannot mix manual and automatic "
                                 "field numbering");
        }

        f->numbering = mode;
        n = mode == 'a' ? f->next++ : n;

        if (n >= f->args->n) {
            return llm_jrt_fail(f->rt, "Replacement index %zu out of range "
                                "for positional args tuple", n);
        }

        *res = f->args->v[n];

        return LLM_OK;
    }

    for (i = 0; i < f->args->n_kw; i++) {
        if (f->args->kw[i].key.type == LLM_J_STR
            && f->args->kw[i].key.u.s->len == end - start
            && memcmp(llm_js_data(f->args->kw[i].key.u.s), p + start,
                      end - start) == 0)
        {
            *res = f->args->kw[i].value;
            return LLM_OK;
        }
    }

    return llm_jfmt_fail(f->rt, "no such keyword argument");
}


/* "0.name[key]" */

static int
llm_jformat_path(llm_jformat_t *f, size_t start, size_t end, llm_jv_t *res)
{
    int          attr;
    size_t       i, k;
    int64_t      n;
    llm_jv_t     key, obj;
    const char  *p;

    p = llm_js_data(f->s);

    for (i = start; i < end && p[i] != '.' && p[i] != '['; i++) { /* void */ }

    if (llm_jformat_arg(f, start, i, res) != LLM_OK) {
        return LLM_ERROR;
    }

    while (i < end) {
        attr = p[i] == '.';
        start = ++i;

        for (n = 0, k = 0; i < end && (attr ? p[i] != '.' && p[i] != '['
                                            : p[i] != ']'); i++)
        {
            if (isdigit((unsigned char) p[i]) && n < 100000000) {
                n = n * 10 + (p[i] - '0');
                k++;
            }
        }

        if (i == start || (!attr && i == end)) {
            return llm_jfmt_fail(f->rt, "Empty attribute in format string");
        }

        if (llm_js_slice(f->rt, f->s, start, i, &key) != LLM_OK) {
            return LLM_ERROR;
        }

        if (!attr && k == i - start) {
            key = llm_jv_int(n);
        }

        i += !attr;
        obj = *res;

        if ((attr ? llm_jinja_getattr(f->rt, &obj, &key, res)
                  : llm_jinja_getitem(f->rt, &obj, &key, res)) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static const char *
llm_jformat_digits(const char *p, const char *end, int64_t *res)
{
    for (*res = 0; p < end && isdigit((unsigned char) *p); p++) {
        *res = llm_min(*res * 10 + (*p - '0'), LLM_JFMT_MAX + 1);
    }

    return p;
}


/* [[fill]align][sign][#][0][width][grouping][.precision][type] */

static int
llm_jformat_parse(llm_jformat_t *f, llm_js_t *text, llm_jspec_t *spec)
{
    size_t       len;
    llm_jv_t     fill;
    const char  *p, *end;

    memset(spec, 0, sizeof(*spec));
    spec->precision = -1;

    p = llm_js_data(text);
    end = p + text->len;

    if (p < end) {
        (void) llm_jc_decode(p, end, &len);

        if (p + len < end && strchr("<>^=", p[len]) && p[len]) {
            if (llm_js_slice(f->rt, text, 0, len, &fill) != LLM_OK) {
                return LLM_ERROR;
            }

            spec->fill = fill.u.s;
            spec->align = p[len];
            p += len + 1;

        } else if (*p && strchr("<>^=", *p)) {
            spec->align = *p++;
        }
    }

    if (p < end && *p && strchr("+- ", *p)) {
        spec->sign = *p++;
    }

    if (p < end && *p == '#') {
        spec->alt = 1;
        p++;
    }

    if (p < end && *p == '0') {
        spec->zero = spec->fill == NULL;
        spec->align = spec->align ? spec->align : '=';
        p++;
    }

    p = llm_jformat_digits(p, end, &spec->width);

    if (p < end && (*p == ',' || *p == '_')) {
        spec->group = *p++;
    }

    if (p < end && *p == '.') {
        if (p + 1 == end || !isdigit((unsigned char) p[1])) {
            return llm_jfmt_fail(f->rt, "Format specifier missing precision");
        }

        p = llm_jformat_digits(p + 1, end, &spec->precision);
    }

    if (p < end) {
        spec->type = *p++;
    }

    if (p < end || spec->width > LLM_JFMT_MAX
        || spec->precision > LLM_JFMT_MAX)
    {
        return llm_jfmt_fail(f->rt, "Invalid format specifier");
    }

    return LLM_OK;
}


static int
llm_jformat_value(llm_jformat_t *f, const llm_jv_t *v, llm_js_t *text)
{
    llm_jspec_t  spec;

    if (llm_jformat_parse(f, text, &spec) != LLM_OK) {
        return LLM_ERROR;
    }

    f->markup = v->type == LLM_J_STR && v->u.s->markup;

    if (v->type == LLM_J_STR) {
        if ((spec.type && spec.type != 's') || spec.sign || spec.alt
            || spec.group || spec.align == '=')
        {
            return llm_jfmt_fail(f->rt, "Invalid format specifier for str");
        }

        return llm_jfmt_string(&f->b, &spec, v, '<');
    }

    if (!llm_jv_number(v)) {
        if (text->len) {
            return llm_jrt_fail(f->rt, "unsupported format string passed to "
                                "%s.__format__", llm_jv_type(v));
        }

        return llm_jb_add_value(&f->b, v);
    }

    if (v->type == LLM_J_BOOL && text->len == 0) {
        return llm_jb_add_value(&f->b, v);
    }

    if (spec.type && strchr("eEfFgG%", spec.type)) {
        return llm_jfmt_float(&f->b, &spec, v, '>');
    }

    if (v->type == LLM_J_FLOAT && (spec.type == 0 || spec.type == 'n')) {
        return llm_jfmt_float(&f->b, &spec, v, '>');
    }

    if (v->type == LLM_J_FLOAT || spec.precision >= 0
        || (spec.type && !strchr("dxXobn", spec.type)))
    {
        return llm_jfmt_fail(f->rt, "Unknown format code");
    }

    return llm_jfmt_int(&f->b, &spec, v, '>');
}


/* nested fields, "{:{width}}", in a format specification */

static int
llm_jformat_nested(llm_jformat_t *f, size_t start, size_t end, llm_jv_t *res)
{
    size_t       i, close;
    llm_jb_t     b;
    llm_jv_t     v;
    const char  *p;

    p = llm_js_data(f->s);
    llm_jb_init(&b, f->rt, 0);

    for (i = start; i < end; i = close + 1) {
        close = i;

        if (p[i] != '{') {
            if (llm_jb_add_range(&b, f->s, i, i + 1) != LLM_OK) {
                return LLM_ERROR;
            }

            continue;
        }

        while (close < end && p[close] != '}') {
            close++;
        }

        if (llm_jformat_path(f, i + 1, close, &v) != LLM_OK
            || llm_jb_add_value(&b, &v) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return llm_jb_done(&b, res);
}


/* the field between braces: s[start, end) */

static int
llm_jformat_field(llm_jformat_t *f, size_t start, size_t end)
{
    char         conversion;
    size_t       name;
    llm_jb_t     b;
    llm_jv_t     v, spec, text;
    const char  *p;

    p = llm_js_data(f->s);
    conversion = 0;

    for (name = start; name < end && p[name] != ':' && p[name] != '!';
         name++)
    {
        if (p[name] == '[') {
            while (name < end && p[name] != ']') {
                name++;
            }
        }
    }

    name = llm_min(name, end);

    if (llm_jformat_path(f, start, name, &v) != LLM_OK) {
        return LLM_ERROR;
    }

    if (name < end && p[name] == '!') {
        if (name + 1 >= end || (name + 2 < end && p[name + 2] != ':')) {
            return llm_jfmt_fail(f->rt, "expected ':' after conversion "
                                 "specifier");
        }

        conversion = p[name + 1];
        name += 2;
    }

    if (llm_jformat_nested(f, llm_min(name + 1, end), end, &spec) != LLM_OK) {
        return LLM_ERROR;
    }

    if (conversion) {
        if (!strchr("sra", conversion)) {
            return llm_jfmt_fail(f->rt, "Unknown conversion specifier");
        }

        llm_jb_init(&b, f->rt, 0);

        if ((conversion == 's' ? llm_jb_add_value(&b, &v)
                               : llm_jb_add_repr(&b, &v)) != LLM_OK
            || llm_jb_done(&b, &text) != LLM_OK)
        {
            return LLM_ERROR;
        }

        v = text;
    }

    return llm_jformat_value(f, &v, spec.u.s);
}


/* a field of markup: what it comes to, escaped unless it is markup itself */

static int
llm_jformat_escaped(llm_jformat_t *f, size_t start, size_t end)
{
    llm_jb_t  out;
    llm_jv_t  raw, text;

    out = f->b;
    llm_jb_init(&f->b, f->rt, 0);
    f->markup = 0;

    if (llm_jformat_field(f, start, end) != LLM_OK
        || llm_jb_done(&f->b, &raw) != LLM_OK)
    {
        return LLM_ERROR;
    }

    raw.u.s->markup = f->markup;
    f->b = out;

    if (llm_jinja_escape(f->rt, &raw, &text) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_jb_add_str(&f->b, text.u.s);
}


int
llm_jinja_format(llm_jrt_t *rt, llm_js_t *s, const llm_jargs_t *args,
    llm_jv_t *res)
{
    int            depth;
    size_t         i, start;
    const char    *p;
    llm_jformat_t  f;

    memset(&f, 0, sizeof(f));
    f.rt = rt;
    f.s = s;
    f.args = args;
    llm_jb_init(&f.b, rt, 0);
    p = llm_js_data(s);

    for (i = 0; i < s->len; i++) {
        if ((p[i] == '{' || p[i] == '}') && i + 1 < s->len
            && p[i + 1] == p[i])
        {
            i++;

        } else if (p[i] == '}') {
            return llm_jfmt_fail(rt, "Single '}' encountered in format "
                                 "string");

        } else if (p[i] == '{') {
            start = i + 1;

            for (depth = 1, i++; i < s->len; i++) {
                depth += p[i] == '{' ? 1 : p[i] == '}' ? -1 : 0;

                if (depth == 0) {
                    break;
                }
            }

            if (i == s->len) {
                return llm_jfmt_fail(rt, "expected '}' before end of string");
            }

            if ((s->markup ? llm_jformat_escaped(&f, start, i)
                           : llm_jformat_field(&f, start, i)) != LLM_OK)
            {
                return LLM_ERROR;
            }

            continue;
        }

        if (llm_jb_add_range(&f.b, s, i, i + 1) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    if (llm_jb_done(&f.b, res) != LLM_OK) {
        return LLM_ERROR;
    }

    res->u.s->markup = s->markup;

    return LLM_OK;
}
