/*
 * Methods that make strings from strings: strip, case, replace, join, pad,
 * prefixes.  (Those that look into them: strfind.c.)  Bytes carry their
 * trust along; what pads is the template's.
 */

#include "engine/text/jinja/strmeth.h"


/* is the character at p, len bytes long, to be stripped? set NULL: space */

static int
llm_jm_strips(const llm_js_t *set, const char *p, size_t len)
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
llm_jm_strip(llm_jrt_t *rt, llm_js_t *s, const llm_js_t *chars, int sides,
    llm_jv_t *res)
{
    size_t       len, work;
    const char  *start, *p, *end, *q;

    start = llm_js_data(s);
    p = start;
    end = start + s->len;
    work = chars ? chars->len * LLM_J_CLASSIFIED : 1;

    while ((sides & LLM_JM_LEFT) && p < end) {
        (void) llm_jc_decode(p, end, &len);

        if (!llm_jm_strips(chars, p, len)) {
            break;
        }

        p += len;

        if (llm_jrt_charge(rt, work) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    while ((sides & LLM_JM_RIGHT) && end > p) {
        q = llm_jc_prev(p, end);

        if (!llm_jm_strips(chars, q, (size_t) (end - q))) {
            break;
        }

        end = q;

        if (llm_jrt_charge(rt, work) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return llm_js_slice(rt, s, (size_t) (p - start), (size_t) (end - start),
                        res);
}


static int
llm_jm_strip_method(llm_jrt_t *rt, llm_jargs_t *args, const char *name,
    int sides, llm_jv_t *res)
{
    llm_js_t  *chars;

    chars = NULL;

    if (llm_jv_given(&args->v[1]) && args->v[1].type != LLM_J_NONE
        && llm_jarg_str(rt, &args->v[1], name, &chars) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_jm_strip(rt, args->v[0].u.s, chars, sides, res);
}


static int
llm_jm_m_strip(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_strip_method(rt, args, "strip", LLM_JM_LEFT | LLM_JM_RIGHT,
                               res);
}


static int
llm_jm_m_lstrip(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_strip_method(rt, args, "lstrip", LLM_JM_LEFT, res);
}


static int
llm_jm_m_rstrip(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_strip_method(rt, args, "rstrip", LLM_JM_RIGHT, res);
}


int
llm_jm_case(llm_jrt_t *rt, llm_js_t *s, llm_jc_mapping_t mapping,
    llm_jv_t *res)
{
    llm_jb_t  b;

    llm_jb_init(&b, rt, 0);

    if (llm_jb_add_mapped(&b, s, 0, s->len, mapping) != LLM_OK
        || llm_jb_done(&b, res) != LLM_OK)
    {
        return LLM_ERROR;
    }

    res->u.s->markup = s->markup;

    return LLM_OK;
}


#define llm_jm_case_method(name, mapping)                                    \
                                                                             \
static int                                                                   \
llm_jm_m_ ## name(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)           \
{                                                                            \
    return llm_jm_case(rt, args->v[0].u.s, mapping, res);                    \
}

llm_jm_case_method(upper, LLM_JC_TO_UPPER)
llm_jm_case_method(lower, LLM_JC_TO_LOWER)
llm_jm_case_method(capitalize, LLM_JC_TO_CAPITAL)
llm_jm_case_method(title, LLM_JC_TO_TITLE)
llm_jm_case_method(swapcase, LLM_JC_TO_SWAPPED)


/* old is empty: new goes before every character and behind the last */

static int
llm_jm_interleave(llm_jb_t *b, llm_js_t *s, const llm_js_t *new,
    int64_t count)
{
    size_t       i, len;
    const char  *p;

    p = llm_js_data(s);

    for (i = 0; i < s->len && count != 0; i += len, count--) {
        (void) llm_jc_decode(p + i, p + s->len, &len);

        if (llm_jb_add_str(b, new) != LLM_OK
            || llm_jb_add_range(b, s, i, i + len) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    if (i < s->len) {
        return llm_jb_add_range(b, s, i, s->len);
    }

    return count ? llm_jb_add_str(b, new) : LLM_OK;
}


int
llm_jm_replace(llm_jrt_t *rt, llm_js_t *s, const llm_js_t *old,
    const llm_js_t *new, int64_t count, llm_jv_t *res)
{
    size_t    pos, at;
    llm_jb_t  b;

    if (llm_jrt_charge_search(rt, s->len, old) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_jb_init(&b, rt, 0);

    if (old->len == 0) {
        if (llm_jm_interleave(&b, s, new, count) != LLM_OK) {
            return LLM_ERROR;
        }

        return llm_jb_done(&b, res);
    }

    for (pos = 0; count != 0; pos = at + old->len, count--) {
        at = llm_js_find(s, old, pos);

        if (at == SIZE_MAX) {
            break;
        }

        if (llm_jb_add_range(&b, s, pos, at) != LLM_OK
            || llm_jb_add_str(&b, new) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    if (pos == 0) {
        return llm_js_slice(rt, s, 0, s->len, res);
    }

    if (llm_jb_add_range(&b, s, pos, s->len) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_jb_done(&b, res);
}


static int
llm_jm_m_replace(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int64_t    count;
    llm_jv_t   by;
    llm_js_t  *s, *old, *new;

    count = -1;
    s = args->v[0].u.s;
    by = args->v[2];

    if (s->markup && llm_jinja_escape(rt, &args->v[2], &by) != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_jarg_str(rt, &args->v[1], "replace", &old) != LLM_OK
        || llm_jarg_str(rt, &by, "replace", &new) != LLM_OK
        || (llm_jv_given(&args->v[3])
            && llm_jarg_int(rt, &args->v[3], "replace", &count) != LLM_OK))
    {
        return LLM_ERROR;
    }

    if (llm_jm_replace(rt, s, old, new, count, res) != LLM_OK) {
        return LLM_ERROR;
    }

    res->u.s->markup = s->markup;

    return LLM_OK;
}


static int
llm_jm_m_join(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int         rc;
    size_t      n;
    llm_jb_t    b;
    llm_jv_t    item, v;
    llm_js_t   *sep;
    llm_jcur_t  cur;

    if (llm_jcur_init(rt, &cur, &args->v[1]) != LLM_OK) {
        return LLM_ERROR;
    }

    sep = args->v[0].u.s;
    llm_jb_init(&b, rt, 0);

    for (n = 0; (rc = llm_jcur_next(rt, &cur, &item)) == LLM_OK; n++) {
        if (sep->markup) {
            v = item;

            if (llm_jinja_escape(rt, &v, &item) != LLM_OK) {
                return LLM_ERROR;
            }
        }

        if (item.type != LLM_J_STR) {
            return llm_jrt_fail(rt, "sequence item %zu: expected str "
                                "instance, %s found", n, llm_jv_type(&item));
        }

        if ((n && llm_jb_add_str(&b, sep) != LLM_OK)
            || llm_jb_add_str(&b, item.u.s) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    if (rc != LLM_AGAIN || llm_jb_done(&b, res) != LLM_OK) {
        return LLM_ERROR;
    }

    res->u.s->markup = sep->markup;

    return LLM_OK;
}


int
llm_jm_pad(llm_jrt_t *rt, llm_js_t *s, int64_t width, const llm_js_t *fill,
    int mode, llm_jv_t *res)
{
    int64_t   pad, left;
    llm_jb_t  b;

    pad = width - (int64_t) llm_js_chars(s);

    if (pad <= 0) {
        return llm_js_slice(rt, s, 0, s->len, res);
    }

    left = mode == '<' ? 0 : mode == '>' ? pad
           : pad / 2 + (pad & width & 1);

    llm_jb_init(&b, rt, 0);

    if (llm_jb_fill(&b, llm_js_data(fill), fill->len, (size_t) left,
                    llm_js_trusted_at(fill, 0)) != LLM_OK
        || llm_jb_add_str(&b, s) != LLM_OK
        || llm_jb_fill(&b, llm_js_data(fill), fill->len,
                       (size_t) (pad - left), llm_js_trusted_at(fill, 0))
           != LLM_OK
        || llm_jb_done(&b, res) != LLM_OK)
    {
        return LLM_ERROR;
    }

    res->u.s->markup = s->markup;

    return LLM_OK;
}


static int
llm_jm_pad_method(llm_jrt_t *rt, llm_jargs_t *args, const char *name,
    int mode, llm_jv_t *res)
{
    int64_t   width;
    llm_jv_t  fill;

    fill = args->v[2];

    if (llm_jarg_int(rt, &args->v[1], name, &width) != LLM_OK
        || (!llm_jv_given(&fill) && llm_js_lit(rt, " ", &fill) != LLM_OK))
    {
        return LLM_ERROR;
    }

    if (fill.type != LLM_J_STR || llm_js_chars(fill.u.s) != 1) {
        return llm_jrt_fail(rt, "%s: the fill character must be exactly one "
                            "character long", name);
    }

    return llm_jm_pad(rt, args->v[0].u.s, width, fill.u.s, mode, res);
}


static int
llm_jm_m_center(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_pad_method(rt, args, "center", '^', res);
}


static int
llm_jm_m_ljust(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_pad_method(rt, args, "ljust", '<', res);
}


static int
llm_jm_m_rjust(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_pad_method(rt, args, "rjust", '>', res);
}


static int
llm_jm_m_zfill(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int        sign;
    int64_t    width, pad;
    llm_jb_t   b;
    llm_js_t  *s;

    s = args->v[0].u.s;

    if (llm_jarg_int(rt, &args->v[1], "zfill", &width) != LLM_OK) {
        return LLM_ERROR;
    }

    pad = width - (int64_t) llm_js_chars(s);

    if (pad <= 0) {
        *res = args->v[0];
        return LLM_OK;
    }

    sign = s->len && (*llm_js_data(s) == '-' || *llm_js_data(s) == '+');

    llm_jb_init(&b, rt, 0);

    if (llm_jb_add_range(&b, s, 0, (size_t) sign) != LLM_OK
        || llm_jb_fill(&b, "0", 1, (size_t) pad, 1) != LLM_OK
        || llm_jb_add_range(&b, s, (size_t) sign, s->len) != LLM_OK
        || llm_jb_done(&b, res) != LLM_OK)
    {
        return LLM_ERROR;
    }

    res->u.s->markup = s->markup;

    return LLM_OK;
}


static int
llm_jm_m_removeprefix(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_js_t  *s, *p;

    s = args->v[0].u.s;

    if (llm_jarg_str(rt, &args->v[1], "removeprefix", &p) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_js_slice(rt, s, p->len <= s->len
                        && memcmp(llm_js_data(s), llm_js_data(p), p->len) == 0
                        ? p->len : 0, s->len, res);
}


static int
llm_jm_m_removesuffix(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_js_t  *s, *p;

    s = args->v[0].u.s;

    if (llm_jarg_str(rt, &args->v[1], "removesuffix", &p) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_js_slice(rt, s, 0, p->len <= s->len
                        && memcmp(llm_js_data(s) + s->len - p->len,
                                  llm_js_data(p), p->len) == 0
                        ? s->len - p->len : s->len, res);
}


static int
llm_jm_m_expandtabs(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t       i, len, column;
    int64_t      size;
    llm_jb_t     b;
    llm_js_t    *s;
    const char  *p;

    s = args->v[0].u.s;
    p = llm_js_data(s);
    size = 8;

    if (llm_jv_given(&args->v[1])
        && llm_jarg_int(rt, &args->v[1], "expandtabs", &size) != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_jb_init(&b, rt, 0);

    for (i = 0, column = 0; i < s->len; i += len) {
        (void) llm_jc_decode(p + i, p + s->len, &len);

        if (p[i] == '\t') {
            len = 1;

            if (size > 0) {
                if (llm_jb_fill(&b, " ", 1, (size_t) size
                                - column % (size_t) size,
                                llm_js_trusted_at(s, i)) != LLM_OK)
                {
                    return LLM_ERROR;
                }

                column = 0;
            }

            continue;
        }

        column = (p[i] == '\n' || p[i] == '\r') ? 0 : column + 1;

        if (llm_jb_add_range(&b, s, i, i + len) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    if (llm_jb_done(&b, res) != LLM_OK) {
        return LLM_ERROR;
    }

    res->u.s->markup = s->markup;

    return LLM_OK;
}


static int
llm_jm_m_format(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jargs_t  rest;

    rest = *args;
    rest.v++;
    rest.n--;

    return llm_jinja_format(rt, args->v[0].u.s, &rest, res);
}


static int
llm_jm_m_format_map(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jargs_t  rest;

    if (args->v[1].type != LLM_J_DICT) {
        return llm_jrt_fail(rt, "format_map() takes a mapping");
    }

    memset(&rest, 0, sizeof(rest));
    rest.kw = args->v[1].u.dict->v;
    rest.n_kw = args->v[1].u.dict->n;

    return llm_jinja_format(rt, args->v[0].u.s, &rest, res);
}


#define LLM_JM_STR  (1u << LLM_J_STR)

const llm_jfunc_t  llm_jm_string_methods[] = {
    { "strip", llm_jm_m_strip, "/chars?", LLM_JM_STR, 0 },
    { "lstrip", llm_jm_m_lstrip, "/chars?", LLM_JM_STR, 0 },
    { "rstrip", llm_jm_m_rstrip, "/chars?", LLM_JM_STR, 0 },
    { "upper", llm_jm_m_upper, "", LLM_JM_STR, 0 },
    { "lower", llm_jm_m_lower, "", LLM_JM_STR, 0 },
    { "casefold", llm_jm_m_lower, "", LLM_JM_STR, 0 },
    { "capitalize", llm_jm_m_capitalize, "", LLM_JM_STR, 0 },
    { "title", llm_jm_m_title, "", LLM_JM_STR, 0 },
    { "swapcase", llm_jm_m_swapcase, "", LLM_JM_STR, 0 },
    { "replace", llm_jm_m_replace, "/old new count?", LLM_JM_STR, 0 },
    { "join", llm_jm_m_join, "/iterable", LLM_JM_STR, 0 },
    { "center", llm_jm_m_center, "/width fill?", LLM_JM_STR, 0 },
    { "ljust", llm_jm_m_ljust, "/width fill?", LLM_JM_STR, 0 },
    { "rjust", llm_jm_m_rjust, "/width fill?", LLM_JM_STR, 0 },
    { "zfill", llm_jm_m_zfill, "/width", LLM_JM_STR, 0 },
    { "removeprefix", llm_jm_m_removeprefix, "/prefix", LLM_JM_STR, 0 },
    { "removesuffix", llm_jm_m_removesuffix, "/suffix", LLM_JM_STR, 0 },
    { "expandtabs", llm_jm_m_expandtabs, "tabsize?", LLM_JM_STR, 0 },
    { "format", llm_jm_m_format, NULL, LLM_JM_STR, 0 },
    { "format_map", llm_jm_m_format_map, "/mapping", LLM_JM_STR, 0 }
};

const size_t  llm_jm_n_string_methods = llm_nelems(llm_jm_string_methods);
