/*
 * Python's str() and repr() of values.  Strings and numbers keep their trust;
 * quotes, brackets and commas count as the template's.
 */

#include "engine/text/jinja/ast.h"

#include <float.h>
#include <math.h>
#include <stdio.h>


/*
 * Writes the shortest digits from which the same double is read, laid out as
 * in Python: positional for exponents from -4 to 15.  out has room for 40
 * bytes.
 */

static size_t
llm_jtext_float(double f, char *out, int json)
{
    int    exp, digits;
    char   buf[40], *e;

    if (isnan(f)) {
        return (size_t) sprintf(out, "%s", json ? "NaN" : "nan");
    }

    if (isinf(f)) {
        return (size_t) sprintf(out, "%s%s", f < 0 ? "-" : "",
                                json ? "Infinity" : "inf");
    }

    /* a number with up to 15 digits is found with 15, the last of which may be
       zeros; only numbers below the smallest normal one need fewer */

    for (digits = fabs(f) < DBL_MIN ? 0 : 14; /* void */ ; digits++) {
        snprintf(buf, sizeof(buf), "%.*e", digits, f);

        if (digits == 16 || strtod(buf, NULL) == f) {
            break;
        }
    }

    e = strchr(buf, 'e');
    exp = atoi(e + 1);

    while (digits && *--e == '0') {
        digits--;
    }

    if (exp < -4 || exp >= 16) {
        return (size_t) sprintf(out, "%.*e", digits, f);
    }

    return (size_t) sprintf(out, "%.*f", llm_max(digits - exp, 1), f);
}


int
llm_jb_add_number(llm_jb_t *b, const llm_jv_t *v, int trusted, int json)
{
    char    buf[48];
    size_t  n;

    if (v->type == LLM_J_BOOL) {
        n = (size_t) sprintf(buf, "%s", v->u.i ? "True" : "False");
        buf[0] |= json ? 0x20 : 0;

    } else if (v->type == LLM_J_INT) {
        n = (size_t) sprintf(buf, "%lld", (long long) v->u.i);

    } else if (v->big) {
        return llm_jb_add(b, b->rt->bigs[v->big - 1].data,
                          b->rt->bigs[v->big - 1].len, trusted);

    } else {
        llm_jtry(llm_jrt_charge(b->rt, LLM_J_FLOAT_TEXT));
        n = llm_jtext_float(v->u.f, buf, json);
    }

    return llm_jb_add(b, buf, n, trusted);
}


/* characters that repr() escapes; of those unassigned in Unicode only some are
   known */

static int
llm_jtext_hidden(uint32_t c)
{
    size_t                 i;
    static const uint32_t  hidden[][2] = {
        { 0, 0x1f }, { 0x7f, 0xa0 }, { 0xad, 0xad }, { 0x600, 0x605 },
        { 0x61c, 0x61c }, { 0x6dd, 0x6dd }, { 0x70f, 0x70f },
        { 0x1680, 0x1680 }, { 0x180e, 0x180e }, { 0x2000, 0x200f },
        { 0x2028, 0x202f }, { 0x205f, 0x206f }, { 0x3000, 0x3000 },
        { 0xd800, 0xf8ff }, { 0xfeff, 0xfeff }, { 0xfff0, 0xfffb },
        { 0xfffe, 0xffff }, { 0xe0000, 0xe00ff }, { 0xe01f0, 0x10ffff }
    };

    for (i = 0; i < llm_nelems(hidden) && c >= hidden[i][0]; i++) {
        if (c <= hidden[i][1]) {
            return 1;
        }
    }

    return 0;
}


static int
llm_jb_add_quoted(llm_jb_t *b, const llm_js_t *s)
{
    char         quote, buf[16];
    size_t       i, len, from;
    uint32_t     c;
    const char  *p;

    p = llm_js_data(s);
    quote = (memchr(p, '\'', s->len) && !memchr(p, '"', s->len)) ? '"' : '\'';

    (void) llm_jb_add(b, &quote, 1, 1);

    for (i = 0, from = 0; i < s->len; i += len) {
        c = llm_jc_decode(p + i, p + s->len, &len);

        if (c != (uint32_t) quote && c != '\\'
            && !llm_jtext_hidden(c))
        {
            continue;
        }

        (void) llm_jb_add_range(b, s, from, i);
        from = i + len;

        if (c == (uint32_t) quote || c == '\\') {
            snprintf(buf, sizeof(buf), "\\%c", (char) c);

        } else if (c == '\n' || c == '\r' || c == '\t') {
            snprintf(buf, sizeof(buf), "\\%c",
                     c == '\n' ? 'n' : c == '\r' ? 'r' : 't');

        } else {
            snprintf(buf, sizeof(buf), c < 0x100 ? "\\x%02x"
                     : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
        }

        (void) llm_jb_adds(b, buf, llm_js_trusted_at(s, i));
    }

    (void) llm_jb_add_range(b, s, from, s->len);

    return llm_jb_add(b, &quote, 1, 1);
}


static int
llm_jb_add_items(llm_jb_t *b, const llm_jlist_t *list, const char *open,
    const char *close)
{
    size_t  i;

    (void) llm_jb_adds(b, open, 1);

    for (i = 0; i < list->n; i++) {
        if (i) {
            (void) llm_jb_adds(b, ", ", 1);
        }

        llm_jtry(llm_jb_add_repr(b, &list->v[i]));
    }

    return llm_jb_adds(b, close, 1);
}


static int
llm_jb_add_pairs(llm_jb_t *b, const llm_jdict_t *d)
{
    size_t  i;

    (void) llm_jb_adds(b, "{", 1);

    for (i = 0; i < d->n; i++) {
        if (i) {
            (void) llm_jb_adds(b, ", ", 1);
        }

        llm_jtry(llm_jb_add_repr(b, &d->v[i].key));

        (void) llm_jb_adds(b, ": ", 1);

        llm_jtry(llm_jb_add_repr(b, &d->v[i].value));
    }

    return llm_jb_adds(b, "}", 1);
}


static int
llm_jb_add_view(llm_jb_t *b, const llm_jv_t *v)
{
    llm_jlist_t  items;

    llm_jtry(llm_jv_items(b->rt, v, &items));

    (void) llm_jb_adds(b, llm_jv_type(v), 1);

    return llm_jb_add_items(b, &items, "([", "])");
}


static int
llm_jb_add_object(llm_jb_t *b, const llm_jv_t *v)
{
    char                 buf[96];
    const llm_jrange_t  *r;

    switch (v->type) {

    case LLM_J_RANGE:
        r = v->u.range;

        if (r->step == 1) {
            snprintf(buf, sizeof(buf), "range(%lld, %lld)",
                     (long long) r->start, (long long) r->stop);

        } else {
            snprintf(buf, sizeof(buf), "range(%lld, %lld, %lld)",
                     (long long) r->start, (long long) r->stop,
                     (long long) r->step);
        }

        break;

    case LLM_J_LOOP:
        snprintf(buf, sizeof(buf), "<LoopContext %lld>",
                 (long long) v->u.loop->index0 + 1);
        break;

    case LLM_J_MACRO:
        if (v->u.macro->node->value.type != LLM_J_STR) {
            return llm_jb_adds(b, "<Macro anonymous>", 1);
        }

        (void) llm_jb_adds(b, "<Macro ", 1);
        (void) llm_jb_add_repr(b, &v->u.macro->node->value);

        return llm_jb_adds(b, ">", 1);

    case LLM_J_NS:
        (void) llm_jb_adds(b, "<Namespace ", 1);
        (void) llm_jb_add_pairs(b, v->u.dict);

        return llm_jb_adds(b, ">", 1);

    default:
        snprintf(buf, sizeof(buf), "<%s>", llm_jv_type(v));
        break;
    }

    return llm_jb_adds(b, buf, 1);
}


int
llm_jb_add_repr(llm_jb_t *b, const llm_jv_t *v)
{
    int  rc;

    llm_jtry(llm_jrt_charge(b->rt, 1));
    llm_jtry(llm_jrt_enter(b->rt));

    switch (v->type) {

    case LLM_J_MISSING:
    case LLM_J_UNDEF:
        rc = llm_jb_adds(b, "Undefined", 1);
        break;

    case LLM_J_NONE:
        rc = llm_jb_adds(b, "None", 1);
        break;

    case LLM_J_BOOL:
    case LLM_J_INT:
    case LLM_J_FLOAT:
        rc = llm_jb_add_number(b, v, !v->tainted, 0);
        break;

    case LLM_J_STR:
        if (v->u.s->markup) {
            (void) llm_jb_adds(b, "Markup(", 1);
        }

        rc = llm_jb_add_quoted(b, v->u.s);

        if (v->u.s->markup) {
            rc = llm_jb_adds(b, ")", 1);
        }

        break;

    case LLM_J_LIST:
        rc = llm_jb_add_items(b, v->u.list, "[", "]");
        break;

    case LLM_J_TUPLE:
        rc = llm_jb_add_items(b, v->u.list, "(",
                              v->u.list->n == 1 ? ",)" : ")");
        break;

    case LLM_J_DICT:
        rc = llm_jb_add_pairs(b, v->u.dict);
        break;

    case LLM_J_VIEW:
        rc = llm_jb_add_view(b, v);
        break;

    default:
        rc = llm_jb_add_object(b, v);
        break;
    }

    llm_jrt_leave(b->rt);

    return rc;
}


int
llm_jb_add_value(llm_jb_t *b, const llm_jv_t *v)
{
    if (v->type == LLM_J_STR) {
        return llm_jb_add_str(b, v->u.s);
    }

    if (v->type == LLM_J_UNDEF || v->type == LLM_J_MISSING) {
        return b->rt->failed;
    }

    return llm_jb_add_repr(b, v);
}


int
llm_jv_tostr(llm_jrt_t *rt, const llm_jv_t *v, llm_jv_t *res)
{
    llm_jb_t  b;

    if (v->type == LLM_J_STR && !v->u.s->markup) {
        *res = *v;
        return LLM_OK;
    }

    if (v->type == LLM_J_STR) {
        llm_jtry(llm_js_slice(rt, v->u.s, 0, v->u.s->len, res));

        res->u.s->markup = 0;

        return LLM_OK;
    }

    llm_jb_init(&b, rt, 0);

    llm_jtry(llm_jb_add_value(&b, v));

    return llm_jb_done(&b, res);
}
