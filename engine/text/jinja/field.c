/*
 * One formatted value: text and numbers in fields, see format.h.
 */

#include "engine/text/jinja/format.h"

#include <math.h>
#include <stdio.h>


int
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


int
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


int
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


int
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
