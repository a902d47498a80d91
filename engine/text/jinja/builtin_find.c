/*
 * Methods that look into strings: find, count, startswith, split, partition.
 * Positions are in characters, as in Python.
 */

#include "engine/text/jinja/builtin.h"


/* the arguments start and end, in bytes; *end SIZE_MAX: the range is empty */

static int
llm_jfind_range(llm_jrt_t *rt, const llm_jargs_t *args, size_t *start,
    size_t *end)
{
    int64_t    n, from, to;
    llm_js_t  *s;

    s = args->v[0].u.s;
    n = (int64_t) llm_js_chars(s);
    from = llm_jarg_int(args, 2, 0);
    to = llm_jarg_int(args, 3, n);

    from = from < -n ? 0 : from < 0 ? from + n : from;
    to = to < -n ? 0 : to < 0 ? to + n : llm_min(to, n);

    *start = from > to ? 0 : llm_js_offset(s, (size_t) from);
    *end = from > to ? SIZE_MAX : llm_js_offset(s, (size_t) to);

    return llm_jrt_charge(rt, s->len * LLM_J_DECODED);
}


/* number of characters in the first bytes of s */

static int64_t
llm_jfind_chars(llm_js_t *s, size_t bytes)
{
    llm_js_t  head;

    if (llm_js_chars(s) == s->len) {
        return (int64_t) bytes;
    }

    head = *s;
    head.len = bytes;
    head.chars = LLM_J_UNCOUNTED;

    return (int64_t) llm_js_chars(&head);
}


/* charges a search from the left, or one from the right, which compares at
   each position */

static int
llm_jfind_charge(llm_jrt_t *rt, int how, size_t len, const llm_js_t *sub)
{
    return how & LLM_JF_RIGHT
           ? llm_jrt_charge(rt, len * (LLM_J_CLASSIFIED + sub->len))
           : llm_jrt_charge_search(rt, len, sub);
}


int
llm_jfn_find(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int        how;
    size_t     start, end, at;
    llm_js_t  *s, *sub;

    how = args->f->how;
    s = args->v[0].u.s;
    sub = args->v[1].u.s;

    llm_jtry(llm_jfind_range(rt, args, &start, &end));
    llm_jtry(llm_jfind_charge(rt, how, s->len, sub));

    at = end == SIZE_MAX ? SIZE_MAX
         : how & LLM_JF_RIGHT ? llm_js_rfind(s, sub, end)
         : llm_js_find(s, sub, start);

    if (at != SIZE_MAX && (at < start || at + sub->len > end)) {
        at = SIZE_MAX;
    }

    if (at == SIZE_MAX && (how & LLM_JF_MUST)) {
        return llm_jrt_fail(rt, "substring not found");
    }

    *res = llm_jv_int(at == SIZE_MAX ? -1 : llm_jfind_chars(s, at));

    return LLM_OK;
}


int
llm_jfn_count_str(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t     at;
    llm_js_t  *s, *sub;

    s = args->v[0].u.s;
    sub = args->v[1].u.s;
    llm_jtry(llm_jrt_charge_search(rt, s->len, sub));

    if (sub->len == 0) {
        llm_jtry(llm_jv_count(rt, &args->v[0], &res->u.i));
        *res = llm_jv_int(res->u.i + 1);
        return LLM_OK;
    }

    *res = llm_jv_int(0);

    for (at = llm_js_find(s, sub, 0); at != SIZE_MAX;
         at = llm_js_find(s, sub, at + sub->len))
    {
        res->u.i++;
    }

    return LLM_OK;
}


/* startswith and endswith: a string or a tuple of them */

int
llm_jfn_affix(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t       i, n, start, end;
    llm_jv_t    *v;
    llm_js_t    *s, *p;
    const char  *base;

    s = args->v[0].u.s;
    v = &args->v[1];
    n = 1;

    if (v->type == LLM_J_TUPLE) {
        n = v->u.list->n;
        v = v->u.list->v;
    }

    start = 0;
    end = s->len;

    llm_jtry((llm_jv_given(&args->v[2]) || llm_jv_given(&args->v[3]))
             && llm_jfind_range(rt, args, &start, &end));

    *res = llm_jv_bool(0);

    for (i = 0; i < n; i++) {
        if (v[i].type != LLM_J_STR) {
            return llm_jrt_fail(rt, "%s first arg must be str or a tuple of "
                                "str, not %s", args->f->name,
                                llm_jv_type(&v[i]));
        }

        p = v[i].u.s;

        llm_jtry(llm_jrt_charge(rt, llm_min(p->len, s->len) + 1));

        if (end == SIZE_MAX || p->len > end - start) {
            continue;
        }

        base = llm_js_data(s)
               + (args->f->how == LLM_JF_RIGHT ? end - p->len : start);

        if (memcmp(base, llm_js_data(p), p->len) == 0) {
            *res = llm_jv_bool(1);
        }
    }

    return LLM_OK;
}


/* splitting */

static int
llm_jfind_push(llm_jrt_t *rt, llm_js_t *s, size_t start, size_t end,
    llm_jlist_t *list)
{
    llm_jv_t  v;

    llm_jtry(llm_js_slice(rt, s, start, end, &v));

    return llm_jlist_push(rt, list, &v);
}


static int
llm_jfind_split_space(llm_jrt_t *rt, llm_js_t *s, int64_t max, llm_jlist_t *l)
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

        llm_jtry(llm_jfind_push(rt, s, (size_t) (word - base),
                                (size_t) (p - base), l));
    }
}


static int
llm_jfind_split_sep(llm_jrt_t *rt, llm_js_t *s, const llm_js_t *sep,
    int64_t max, llm_jlist_t *l)
{
    size_t  pos, at;

    for (pos = 0; max != 0; pos = at + sep->len, max--) {
        at = llm_js_find(s, sep, pos);

        if (at == SIZE_MAX) {
            break;
        }

        llm_jtry(llm_jfind_push(rt, s, pos, at, l));
    }

    return llm_jfind_push(rt, s, pos, s->len, l);
}


/* splits from the right; the pieces come in reverse order */

static int
llm_jfind_rsplit_sep(llm_jrt_t *rt, llm_js_t *s, const llm_js_t *sep,
    int64_t max, llm_jlist_t *l)
{
    size_t  end, at;

    for (end = s->len; max != 0; end = at, max--) {
        at = llm_js_rfind(s, sep, end);

        if (at == SIZE_MAX) {
            break;
        }

        llm_jtry(llm_jfind_push(rt, s, at + sep->len, end, l));
    }

    return llm_jfind_push(rt, s, 0, end, l);
}


int
llm_jfn_split(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           rc, right;
    int64_t       max;
    llm_js_t     *s, *sep;
    llm_jlist_t  *l;

    s = args->v[0].u.s;
    sep = llm_jarg_str(args, 1);
    max = llm_max(llm_jarg_int(args, 2, -1), -1);
    right = args->f->how == LLM_JF_RIGHT;

    llm_jtry(llm_jv_list(rt, LLM_J_LIST, 0, res));
    llm_jtry(sep ? llm_jfind_charge(rt, args->f->how, s->len, sep)
             : llm_jrt_charge(rt, s->len * LLM_J_DECODED));

    if (sep && sep->len == 0) {
        return llm_jrt_fail(rt, "empty separator");
    }

    l = res->u.list;

    if (!right) {
        return sep ? llm_jfind_split_sep(rt, s, sep, max, l)
                   : llm_jfind_split_space(rt, s, max, l);
    }

    if (sep == NULL) {
        return llm_jrt_fail(rt, "rsplit: a separator is needed");
    }

    rc = llm_jfind_rsplit_sep(rt, s, sep, max, l);
    llm_jlist_reverse(l);

    return rc;
}


int
llm_jfn_partition(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int        right;
    size_t     i, at, cut[4];
    llm_js_t  *s, *sep;

    s = args->v[0].u.s;
    sep = args->v[1].u.s;
    right = args->f->how == LLM_JF_RIGHT;

    llm_jtry(llm_jv_list(rt, LLM_J_TUPLE, 3, res));
    llm_jtry(llm_jfind_charge(rt, args->f->how, s->len, sep));

    if (sep->len == 0) {
        return llm_jrt_fail(rt, "empty separator");
    }

    at = right ? llm_js_rfind(s, sep, s->len) : llm_js_find(s, sep, 0);

    cut[0] = 0;
    cut[1] = at != SIZE_MAX ? at : right ? 0 : s->len;
    cut[2] = at != SIZE_MAX ? at + sep->len : cut[1];
    cut[3] = s->len;

    for (i = 0; i < 3; i++) {
        llm_jtry(llm_jfind_push(rt, s, cut[i], cut[i + 1], res->u.list));
    }

    return LLM_OK;
}


size_t
llm_js_line(const llm_js_t *s, size_t pos, size_t *next)
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


int
llm_jfn_splitlines(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int        keep;
    size_t     pos, end, next;
    llm_js_t  *s;

    s = args->v[0].u.s;
    keep = llm_jv_truth(&args->v[1]);

    llm_jtry(llm_jrt_charge(rt, s->len * LLM_J_DECODED));
    llm_jtry(llm_jv_list(rt, LLM_J_LIST, 0, res));

    for (pos = 0; pos < s->len; pos = next) {
        end = llm_js_line(s, pos, &next);

        llm_jtry(llm_jfind_push(rt, s, pos, keep ? next : end, res->u.list));
    }

    return LLM_OK;
}
