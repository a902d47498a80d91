/*
 * Methods that look into strings: find, count, split, partition, startswith,
 * the is...() family.  Positions are in characters, as in Python.
 */

#include "engine/text/jinja/strmeth.h"


/* Python's [start, end) arguments in bytes; *end is SIZE_MAX: nothing */

static int
llm_jm_range(llm_jrt_t *rt, llm_js_t *s, const llm_jv_t *v, const char *what,
    size_t *start, size_t *end)
{
    int64_t  n, from, to;

    n = (int64_t) llm_js_chars(s);
    from = 0;
    to = n;

    if (llm_jv_given(&v[0]) && v[0].type != LLM_J_NONE
        && llm_jarg_int(rt, &v[0], what, &from) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (llm_jv_given(&v[1]) && v[1].type != LLM_J_NONE
        && llm_jarg_int(rt, &v[1], what, &to) != LLM_OK)
    {
        return LLM_ERROR;
    }

    from = from < -n ? 0 : from < 0 ? from + n : from;
    to = to < -n ? 0 : to < 0 ? to + n : llm_min(to, n);

    if (from > to) {
        *start = 0;
        *end = SIZE_MAX;
        return LLM_OK;
    }

    *start = llm_js_offset(s, (size_t) from);
    *end = llm_js_offset(s, (size_t) to);

    return llm_jrt_charge(rt, s->len * LLM_J_DECODED);
}


/* characters in the first bytes of s */

static int64_t
llm_jm_chars_until(llm_js_t *s, size_t bytes)
{
    size_t       len;
    int64_t      n;
    const char  *p, *end;

    if (llm_js_chars(s) == s->len) {
        return (int64_t) bytes;
    }

    p = llm_js_data(s);

    for (n = 0, end = p + bytes; p < end; n++) {
        (void) llm_jc_decode(p, end, &len);
        p += len;
    }

    return n;
}


/* the search from the end compares at each place */

static int
llm_jm_charge_rfind(llm_jrt_t *rt, size_t len, const llm_js_t *sub)
{
    return llm_jrt_charge(rt, len * (LLM_J_CLASSIFIED + sub->len));
}


static int
llm_jm_search(llm_jrt_t *rt, llm_jargs_t *args, const char *what, int last,
    llm_jv_t *res)
{
    size_t     start, end, at;
    llm_js_t  *s, *sub;

    s = args->v[0].u.s;

    if (llm_jarg_str(rt, &args->v[1], what, &sub) != LLM_OK
        || llm_jm_range(rt, s, &args->v[2], what, &start, &end) != LLM_OK)
    {
        return LLM_ERROR;
    }

    at = SIZE_MAX;

    if (end != SIZE_MAX) {
        if ((last ? llm_jm_charge_rfind(rt, end - start, sub)
                  : llm_jrt_charge_search(rt, s->len - start, sub))
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        at = last ? llm_js_rfind(s, sub, end) : llm_js_find(s, sub, start);

        if (at != SIZE_MAX && (at < start || at + sub->len > end)) {
            at = SIZE_MAX;
        }
    }

    *res = llm_jv_int(at == SIZE_MAX ? -1 : llm_jm_chars_until(s, at));

    return LLM_OK;
}


static int
llm_jm_m_find(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_search(rt, args, "find", 0, res);
}


static int
llm_jm_m_rfind(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_search(rt, args, "rfind", 1, res);
}


static int
llm_jm_m_index(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    if (llm_jm_search(rt, args, "index", 0, res) != LLM_OK) {
        return LLM_ERROR;
    }

    return res->u.i >= 0 ? LLM_OK : llm_jrt_fail(rt, "substring not found");
}


static int
llm_jm_m_rindex(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    if (llm_jm_search(rt, args, "rindex", 1, res) != LLM_OK) {
        return LLM_ERROR;
    }

    return res->u.i >= 0 ? LLM_OK : llm_jrt_fail(rt, "substring not found");
}


static int
llm_jm_m_count(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t     start, end, at;
    int64_t    n;
    llm_js_t  *s, *sub;

    s = args->v[0].u.s;

    if (llm_jarg_str(rt, &args->v[1], "count", &sub) != LLM_OK
        || llm_jm_range(rt, s, &args->v[2], "count", &start, &end) != LLM_OK)
    {
        return LLM_ERROR;
    }

    n = 0;

    if (end == SIZE_MAX) {
        *res = llm_jv_int(0);
        return LLM_OK;
    }

    if (llm_jrt_charge_search(rt, s->len - start, sub) != LLM_OK) {
        return LLM_ERROR;
    }

    if (sub->len == 0) {
        n = llm_jm_chars_until(s, end) - llm_jm_chars_until(s, start) + 1;

    } else {
        for (at = llm_js_find(s, sub, start);
             at != SIZE_MAX && at + sub->len <= end;
             at = llm_js_find(s, sub, at + sub->len))
        {
            n++;
        }
    }

    *res = llm_jv_int(n);

    return LLM_OK;
}


/* startswith and endswith: a string or a tuple of them */

static int
llm_jm_affix(llm_jrt_t *rt, llm_jargs_t *args, const char *what, int suffix,
    llm_jv_t *res)
{
    size_t        i, n, start, end;
    llm_jv_t     *v;
    llm_js_t     *s, *p;
    const char   *base;

    s = args->v[0].u.s;
    v = &args->v[1];
    n = 1;

    if (v->type == LLM_J_TUPLE) {
        n = v->u.list->n;
        v = v->u.list->v;
    }

    start = 0;
    end = s->len;

    if (args->v[2].type != LLM_J_MISSING
        && llm_jm_range(rt, s, &args->v[2], what, &start, &end) != LLM_OK)
    {
        return LLM_ERROR;
    }

    *res = llm_jv_bool(0);

    for (i = 0; i < n; i++) {
        if (v[i].type != LLM_J_STR) {
            return llm_jrt_fail(rt, "%s first arg must be str or a tuple of "
                                "str, not %s", what, llm_jv_type(&v[i]));
        }

        p = v[i].u.s;

        if (llm_jrt_charge(rt, llm_min(p->len, s->len) + 1) != LLM_OK) {
            return LLM_ERROR;
        }

        if (end == SIZE_MAX || p->len > end - start) {
            continue;
        }

        base = llm_js_data(s) + (suffix ? end - p->len : start);

        if (memcmp(base, llm_js_data(p), p->len) == 0) {
            *res = llm_jv_bool(1);
        }
    }

    return LLM_OK;
}


static int
llm_jm_m_startswith(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_affix(rt, args, "startswith", 0, res);
}


static int
llm_jm_m_endswith(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_affix(rt, args, "endswith", 1, res);
}


/* splitting */

static int
llm_jm_push(llm_jrt_t *rt, llm_js_t *s, size_t start, size_t end,
    llm_jlist_t *list)
{
    llm_jv_t  v;

    if (llm_js_slice(rt, s, start, end, &v) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_jlist_push(rt, list, &v);
}


static int
llm_jm_split_space(llm_jrt_t *rt, llm_js_t *s, int64_t max, llm_jlist_t *l)
{
    size_t       n, len;
    const char  *base, *p, *end, *word;

    base = llm_js_data(s);
    end = base + s->len;

    for (p = base; /* void */ ; max--) {
        while ((n = llm_jc_space(p, end)) != 0) {
            p += n;
        }

        if (p >= end) {
            return LLM_OK;
        }

        word = p;

        while (p < end && (max == 0 || !llm_jc_space(p, end))) {
            (void) llm_jc_decode(p, end, &len);
            p += len;
        }

        if (llm_jm_push(rt, s, (size_t) (word - base), (size_t) (p - base), l)
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }
}


/* from the right; the pieces come in reverse */

static int
llm_jm_rsplit_space(llm_jrt_t *rt, llm_js_t *s, int64_t max, llm_jlist_t *l)
{
    const char  *base, *p, *q, *word;

    base = llm_js_data(s);
    p = base + s->len;

    for ( ;; max--) {
        while (p > base) {
            q = llm_jc_prev(base, p);

            if (!llm_jc_space(q, p)) {
                break;
            }

            p = q;
        }

        if (p == base) {
            return LLM_OK;
        }

        word = p;

        while (p > base) {
            q = llm_jc_prev(base, p);

            if (max != 0 && llm_jc_space(q, p)) {
                break;
            }

            p = q;
        }

        if (llm_jm_push(rt, s, (size_t) (p - base), (size_t) (word - base), l)
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }
}


static int
llm_jm_split_sep(llm_jrt_t *rt, llm_js_t *s, const llm_js_t *sep, int64_t max,
    llm_jlist_t *l)
{
    size_t  pos, at;

    for (pos = 0; max != 0; pos = at + sep->len, max--) {
        at = llm_js_find(s, sep, pos);

        if (at == SIZE_MAX) {
            break;
        }

        if (llm_jm_push(rt, s, pos, at, l) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return llm_jm_push(rt, s, pos, s->len, l);
}


static int
llm_jm_rsplit_sep(llm_jrt_t *rt, llm_js_t *s, const llm_js_t *sep,
    int64_t max, llm_jlist_t *l)
{
    size_t  end, at;

    for (end = s->len; max != 0; end = at, max--) {
        at = llm_js_rfind(s, sep, end);

        if (at == SIZE_MAX) {
            break;
        }

        if (llm_jm_push(rt, s, at + sep->len, end, l) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return llm_jm_push(rt, s, 0, end, l);
}


static void
llm_jm_reverse(llm_jlist_t *l)
{
    size_t    i;
    llm_jv_t  t;

    for (i = 0; i < l->n / 2; i++) {
        t = l->v[i];
        l->v[i] = l->v[l->n - 1 - i];
        l->v[l->n - 1 - i] = t;
    }
}


static int
llm_jm_split(llm_jrt_t *rt, llm_jargs_t *args, int right, llm_jv_t *res)
{
    int           rc;
    int64_t       max;
    llm_js_t     *s, *sep;
    llm_jlist_t  *l;

    s = args->v[0].u.s;
    sep = NULL;
    max = -1;

    if ((llm_jv_given(&args->v[1]) && args->v[1].type != LLM_J_NONE
         && llm_jarg_str(rt, &args->v[1], "split", &sep) != LLM_OK)
        || (llm_jv_given(&args->v[2])
            && llm_jarg_int(rt, &args->v[2], "split", &max) != LLM_OK)
        || llm_jv_list(rt, LLM_J_LIST, 0, res) != LLM_OK
        || (sep == NULL ? llm_jrt_charge(rt, s->len * LLM_J_DECODED)
            : right ? llm_jm_charge_rfind(rt, s->len, sep)
            : llm_jrt_charge_search(rt, s->len, sep)) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (sep && sep->len == 0) {
        return llm_jrt_fail(rt, "empty separator");
    }

    max = max < 0 ? -1 : max;
    l = res->u.list;

    if (!right) {
        return sep ? llm_jm_split_sep(rt, s, sep, max, l)
                   : llm_jm_split_space(rt, s, max, l);
    }

    rc = sep ? llm_jm_rsplit_sep(rt, s, sep, max, l)
             : llm_jm_rsplit_space(rt, s, max, l);
    llm_jm_reverse(l);

    return rc;
}


static int
llm_jm_m_split(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_split(rt, args, 0, res);
}


static int
llm_jm_m_rsplit(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_split(rt, args, 1, res);
}


static int
llm_jm_partition(llm_jrt_t *rt, llm_jargs_t *args, int right, llm_jv_t *res)
{
    size_t     at, cut[4];
    llm_js_t  *s, *sep;
    size_t     i;

    s = args->v[0].u.s;

    if (llm_jarg_str(rt, &args->v[1], "partition", &sep) != LLM_OK
        || llm_jv_list(rt, LLM_J_TUPLE, 3, res) != LLM_OK
        || (right ? llm_jm_charge_rfind(rt, s->len, sep)
                  : llm_jrt_charge_search(rt, s->len, sep)) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (sep->len == 0) {
        return llm_jrt_fail(rt, "empty separator");
    }

    at = right ? llm_js_rfind(s, sep, s->len) : llm_js_find(s, sep, 0);

    cut[0] = 0;
    cut[1] = at != SIZE_MAX ? at : right ? 0 : s->len;
    cut[2] = at != SIZE_MAX ? at + sep->len : cut[1];
    cut[3] = s->len;

    for (i = 0; i < 3; i++) {
        if (llm_jm_push(rt, s, cut[i], cut[i + 1], res->u.list) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_jm_m_partition(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_partition(rt, args, 0, res);
}


static int
llm_jm_m_rpartition(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_partition(rt, args, 1, res);
}


size_t
llm_jm_line(const llm_js_t *s, size_t pos, size_t *next)
{
    size_t       len;
    uint32_t     c;
    const char  *p;

    p = llm_js_data(s);

    for ( /* void */ ; pos < s->len; pos += len) {
        c = llm_jc_decode(p + pos, p + s->len, &len);

        if ((c >= 10 && c <= 13) || (c >= 0x1c && c <= 0x1e) || c == 0x85
            || c == 0x2028 || c == 0x2029)
        {
            *next = pos + len + (c == '\r' && pos + 1 < s->len
                                 && p[pos + 1] == '\n');
            return pos;
        }
    }

    *next = s->len;

    return s->len;
}


static int
llm_jm_m_splitlines(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int        keep;
    size_t     pos, end, next;
    llm_js_t  *s;

    s = args->v[0].u.s;
    keep = llm_jv_truth(&args->v[1]);

    if (llm_jrt_charge(rt, s->len * LLM_J_DECODED) != LLM_OK
        || llm_jv_list(rt, LLM_J_LIST, 0, res) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (pos = 0; pos < s->len; pos = next) {
        end = llm_jm_line(s, pos, &next);

        if (llm_jm_push(rt, s, pos, keep ? next : end, res->u.list)
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* is...(): every character of a class, and there are some */

#define LLM_JM_ALNUM  100
#define LLM_JM_SPACE  101

static int
llm_jm_all(llm_jrt_t *rt, llm_jargs_t *args, int class, llm_jv_t *res)
{
    int          good;
    size_t       len;
    uint32_t     c;
    const char  *p, *end;

    p = llm_js_data(args->v[0].u.s);
    end = p + args->v[0].u.s->len;
    good = p < end;

    for ( /* void */ ; p < end && good; p += len) {
        c = llm_jc_decode(p, end, &len);

        good = class == LLM_JM_SPACE ? llm_jc_space(p, end) != 0
               : class == LLM_JM_ALNUM ? llm_jc_is(c, LLM_JC_ALPHA)
                                         || llm_jc_is(c, LLM_JC_NUMERIC)
               : llm_jc_is(c, (llm_jc_class_t) class);
    }

    *res = llm_jv_bool(good);

    return llm_jrt_charge(rt, args->v[0].u.s->len * LLM_J_CLASSIFIED);
}


#define llm_jm_class_method(name, class)                                     \
                                                                             \
static int                                                                   \
llm_jm_m_ ## name(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)           \
{                                                                            \
    return llm_jm_all(rt, args, class, res);                                 \
}

llm_jm_class_method(isalpha, LLM_JC_ALPHA)
llm_jm_class_method(isdecimal, LLM_JC_DECIMAL)
llm_jm_class_method(isdigit, LLM_JC_DIGIT)
llm_jm_class_method(isnumeric, LLM_JC_NUMERIC)
llm_jm_class_method(isalnum, LLM_JM_ALNUM)
llm_jm_class_method(isspace, LLM_JM_SPACE)


/* islower, isupper: at least one cased character, none of the other case */

static int
llm_jm_cased(llm_jrt_t *rt, llm_jargs_t *args, llm_jc_class_t class,
    llm_jv_t *res)
{
    int          good, bad;
    size_t       len;
    uint32_t     c;
    const char  *p, *end;

    p = llm_js_data(args->v[0].u.s);
    end = p + args->v[0].u.s->len;

    for (good = 0, bad = 0; p < end; p += len) {
        c = llm_jc_decode(p, end, &len);

        if (llm_jc_is(c, class)) {
            good = 1;

        } else if (llm_jc_is(c, LLM_JC_CASED)) {
            bad = 1;
        }
    }

    *res = llm_jv_bool(good && !bad);

    return llm_jrt_charge(rt, args->v[0].u.s->len * LLM_J_CLASSIFIED);
}


static int
llm_jm_m_islower(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_cased(rt, args, LLM_JC_LOWER, res);
}


static int
llm_jm_m_isupper(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_cased(rt, args, LLM_JC_UPPER, res);
}


/* upper or title case behind what has no case, lower case behind the rest */

static int
llm_jm_m_istitle(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int          good, bad, inside;
    size_t       len;
    uint32_t     c;
    const char  *p, *end;

    p = llm_js_data(args->v[0].u.s);
    end = p + args->v[0].u.s->len;

    for (good = 0, bad = 0, inside = 0; p < end; p += len) {
        c = llm_jc_decode(p, end, &len);

        if (llm_jc_is(c, LLM_JC_LOWER)) {
            bad |= !inside;
            inside = 1;
            good = 1;

        } else if (llm_jc_is(c, LLM_JC_CASED)) {
            bad |= inside;
            inside = 1;
            good = 1;

        } else {
            inside = 0;
        }
    }

    *res = llm_jv_bool(good && !bad);

    return llm_jrt_charge(rt, args->v[0].u.s->len * LLM_J_CLASSIFIED);
}


#define LLM_JM_STR  (1u << LLM_J_STR)

const llm_jfunc_t  llm_jm_search_methods[] = {
    { "split", llm_jm_m_split, "sep? maxsplit?", LLM_JM_STR, 0 },
    { "rsplit", llm_jm_m_rsplit, "sep? maxsplit?", LLM_JM_STR, 0 },
    { "splitlines", llm_jm_m_splitlines, "keepends?", LLM_JM_STR, 0 },
    { "startswith", llm_jm_m_startswith, "/prefix start? end?", LLM_JM_STR,
      0 },
    { "endswith", llm_jm_m_endswith, "/suffix start? end?", LLM_JM_STR, 0 },
    { "find", llm_jm_m_find, "/sub start? end?", LLM_JM_STR, 0 },
    { "rfind", llm_jm_m_rfind, "/sub start? end?", LLM_JM_STR, 0 },
    { "index", llm_jm_m_index, "/sub start? end?", LLM_JM_STR, 0 },
    { "rindex", llm_jm_m_rindex, "/sub start? end?", LLM_JM_STR, 0 },
    { "count", llm_jm_m_count, "/sub start? end?", LLM_JM_STR, 0 },
    { "partition", llm_jm_m_partition, "/sep", LLM_JM_STR, 0 },
    { "rpartition", llm_jm_m_rpartition, "/sep", LLM_JM_STR, 0 },
    { "isalpha", llm_jm_m_isalpha, "", LLM_JM_STR, 0 },
    { "isdecimal", llm_jm_m_isdecimal, "", LLM_JM_STR, 0 },
    { "isdigit", llm_jm_m_isdigit, "", LLM_JM_STR, 0 },
    { "isnumeric", llm_jm_m_isnumeric, "", LLM_JM_STR, 0 },
    { "isalnum", llm_jm_m_isalnum, "", LLM_JM_STR, 0 },
    { "isspace", llm_jm_m_isspace, "", LLM_JM_STR, 0 },
    { "islower", llm_jm_m_islower, "", LLM_JM_STR, 0 },
    { "isupper", llm_jm_m_isupper, "", LLM_JM_STR, 0 },
    { "istitle", llm_jm_m_istitle, "", LLM_JM_STR, 0 }
};

const size_t  llm_jm_n_search_methods = llm_nelems(llm_jm_search_methods);
