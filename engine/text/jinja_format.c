/*
 * Python's "..." % values and "...".format(values).
 *
 * References: "printf-style String Formatting" and "Format Specification
 * Mini-Language" of the Python library reference.
 */

#include "engine/text/jinja_strmeth.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

/* how one value is to look */
typedef struct {
    int              alt;               /* # */
    int              zero;
    char             sign;              /* '-', '+' or ' ' */
    char             align;             /* '<', '>', '^', '=' or 0 */
    char             group;             /* ',' or '_' or 0 */
    char             type;              /* 0: none given */
    int64_t          width;
    int64_t          precision;         /* -1: none given */
    const llm_js_t  *fill;              /* NULL: a space */
} llm_jspec_t;

#define LLM_JFMT_MAX  100000            /* widest field, most digits */


static int
llm_jfmt_fail(llm_jrt_t *rt, const char *what)
{
    return llm_jrt_fail(rt, "format: %s", what);
}


/* text padded to the field's width; sign_len bytes of it stay in front */

static int
llm_jfmt_field(llm_jb_t *b, const llm_jspec_t *spec, const llm_jv_t *text,
    size_t sign_len, char align)
{
    int64_t      pad, left, inner;
    llm_js_t    *s;
    const char  *fill;
    size_t       fill_len;

    s = text->u.s;
    align = spec->align ? spec->align : align;
    fill = spec->fill ? llm_js_data(spec->fill) : spec->zero ? "0" : " ";
    fill_len = spec->fill ? spec->fill->len : 1;

    pad = llm_max(spec->width - (int64_t) llm_js_chars(s), 0);
    left = align == '>' ? pad : align == '^' ? pad / 2 : 0;
    inner = align == '=' ? pad : 0;
    sign_len = align == '=' ? sign_len : 0;

    if (llm_jb_fill(b, fill, fill_len, (size_t) left, 1) != LLM_OK
        || llm_jb_add_range(b, s, 0, sign_len) != LLM_OK
        || llm_jb_fill(b, fill, fill_len, (size_t) inner, 1) != LLM_OK
        || llm_jb_add_range(b, s, sign_len, s->len) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_jb_fill(b, fill, fill_len, (size_t) (pad - left - inner), 1);
}


static int
llm_jfmt_string(llm_jb_t *b, const llm_jspec_t *spec, const llm_jv_t *v,
    char align)
{
    llm_jv_t  s;

    s = *v;

    if (spec->precision >= 0
        && spec->precision < (int64_t) llm_js_chars(s.u.s)
        && llm_js_slice(b->rt, s.u.s, 0,
                        llm_js_offset(s.u.s, (size_t) spec->precision), &s)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_jfmt_field(b, spec, &s, 0, align);
}


/* digits with a separator in every group of size, and the sign before */

static int
llm_jfmt_number(llm_jb_t *b, const llm_jspec_t *spec, int negative,
    const char *prefix, const char *digits, int tainted, char align)
{
    char      sign[8];
    size_t    n, i, group;
    llm_jb_t  t;
    llm_jv_t  text;

    snprintf(sign, sizeof(sign), "%s%s", negative ? "-"
             : spec->sign == '+' ? "+" : spec->sign == ' ' ? " " : "",
             prefix);

    llm_jb_init(&t, b->rt, 0);
    (void) llm_jb_adds(&t, sign, !tainted);

    n = strspn(digits, "0123456789abcdefABCDEF");
    group = spec->type && strchr("xXob", spec->type) ? 4 : 3;

    if (spec->type == 0 || !strchr("xX", spec->type)) {
        n = strspn(digits, "0123456789");
    }

    for (i = 0; spec->group && i < n; i++) {
        if (i && (n - i) % group == 0) {
            (void) llm_jb_add(&t, &spec->group, 1, !tainted);
        }

        (void) llm_jb_add(&t, digits + i, 1, !tainted);
    }

    if (llm_jb_adds(&t, digits + i, !tainted) != LLM_OK
        || llm_jb_done(&t, &text) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_jfmt_field(b, spec, &text, strlen(sign), align);
}


static int
llm_jfmt_int(llm_jb_t *b, const llm_jspec_t *spec, const llm_jv_t *v,
    char align)
{
    char         digits[128], tmp[72], *p;
    int          base;
    uint64_t     u;
    const char  *prefix;

    u = v->u.i < 0 ? -(uint64_t) v->u.i : (uint64_t) v->u.i;
    base = spec->type == 'x' || spec->type == 'X' ? 16
           : spec->type == 'o' ? 8 : spec->type == 'b' ? 2 : 10;
    prefix = !spec->alt ? "" : spec->type == 'x' ? "0x"
             : spec->type == 'X' ? "0X" : spec->type == 'o' ? "0o"
             : spec->type == 'b' ? "0b" : "";

    p = tmp + sizeof(tmp) - 1;
    *p = '\0';

    do {
        *--p = (spec->type == 'X' ? "0123456789ABCDEF"
                                  : "0123456789abcdef")[u % (uint64_t) base];
        u /= (uint64_t) base;
    } while (u);

    /* printf's precision: at least so many digits */

    base = (int) llm_min(llm_max(spec->precision, 0), 120)
           - (int) strlen(p);
    memset(digits, '0', sizeof(digits));
    snprintf(digits + llm_max(base, 0),
             sizeof(digits) - (size_t) llm_max(base, 0), "%s", p);

    return llm_jfmt_number(b, spec, v->u.i < 0, prefix, digits, v->tainted,
                           align);
}


static int
llm_jfmt_float(llm_jb_t *b, const llm_jspec_t *spec, const llm_jv_t *v,
    char align)
{
    int     n, percent, prec;
    char    fmt[16], *buf, type;
    double  f;

    f = llm_jv_as_double(v);
    percent = spec->type == '%';
    type = percent ? 'f' : spec->type == 'F' && !isfinite(f) ? 'F'
           : spec->type;
    prec = spec->precision < 0 ? 6 : (int) spec->precision;
    f = percent ? f * 100 : f;

    buf = llm_jrt_alloc(b->rt, (size_t) prec + 400);
    if (buf == NULL) {
        return LLM_ERROR;
    }

    if ((type == 0 || type == 'r') && spec->precision < 0) {
        (void) llm_jv_float_text(fabs(f), buf, 0);

    } else {
        type = type ? type : 'g';
        snprintf(fmt, sizeof(fmt), "%%%s.*%c", spec->alt ? "#" : "", type);
        n = snprintf(buf, (size_t) prec + 400, fmt,
                     type == 'g' && prec == 0 ? 1 : prec, fabs(f));
        snprintf(buf + n, 2, "%s", percent ? "%" : "");
    }

    return llm_jfmt_number(b, spec, signbit(f) && !isnan(f), "", buf,
                           v->tainted, align);
}


/* % */

typedef struct {
    llm_jrt_t          *rt;
    llm_jb_t            b;
    const llm_jv_t     *value;          /* behind the % */
    const llm_jargs_t  *args;
    size_t              next;
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
    llm_jv_t  s;

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

    if (llm_jb_add_range(&f.b, s, from, s->len) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_jb_done(&f.b, res);
}


/* str.format() */

typedef struct {
    llm_jrt_t          *rt;
    llm_jb_t            b;
    llm_js_t           *s;
    const llm_jargs_t  *args;
    size_t              next;           /* number of the next "{}" */
    int                 numbering;      /* 'a' automatic, 'm' by hand, 0 */
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

            if (llm_jformat_field(&f, start, i) != LLM_OK) {
                return LLM_ERROR;
            }

            continue;
        }

        if (llm_jb_add_range(&f.b, s, i, i + 1) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return llm_jb_done(&f.b, res);
}
