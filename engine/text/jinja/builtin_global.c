/*
 * The functions that a template finds in its context: range, dict,
 * namespace, cycler, joiner, and transformers' raise_exception and
 * strftime_now.
 */

#include "engine/text/jinja/builtin.h"

#include <time.h>


int
llm_jfn_range(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int64_t        start, stop, step, span;
    llm_jrange_t  *r;

    start = args->v[0].u.i;
    stop = llm_jarg_int(args, 1, start);
    start = llm_jv_given(&args->v[1]) ? start : 0;
    step = llm_jarg_int(args, 2, 1);

    if (step == 0) {
        return llm_jrt_fail(rt, "range() arg 3 must not be zero");
    }

    llm_jnew(rt, r, sizeof(llm_jrange_t));

    r->start = start;
    r->stop = stop;
    r->step = step;
    r->n = 0;

    if (step > 0 ? stop > start : start > stop) {
        if (__builtin_sub_overflow(stop, start, &span) || step == INT64_MIN
            || (span = step > 0 ? (span - 1) / step : (span + 1) / step)
               >= LLM_J_MAX_RANGE)
        {
            return llm_jrt_fail(rt, "Range too big. The sandbox blocks "
                                "ranges larger than %d.", LLM_J_MAX_RANGE);
        }

        r->n = span + 1;
    }

    *res = llm_jv_of(LLM_J_RANGE);
    res->u.range = r;

    return LLM_OK;
}


/* adds pairs, a list of lists of two, to d */

static int
llm_jglobal_pairs(llm_jrt_t *rt, const llm_jv_t *pairs, llm_jdict_t *d)
{
    size_t       i;
    llm_jlist_t  l, pair;

    llm_jtry(llm_jv_items(rt, pairs, &l));

    for (i = 0; i < l.n; i++) {
        llm_jtry(llm_jv_items(rt, &l.v[i], &pair));

        if (pair.n != 2) {
            return llm_jrt_fail(rt, "dictionary update sequence element "
                                "has length %zu; 2 is required", pair.n);
        }

        llm_jtry(llm_jdict_set(rt, d, &pair.v[0], &pair.v[1]));
    }

    return LLM_OK;
}


static int
llm_jglobal_update(llm_jrt_t *rt, const llm_jpair_t *v, size_t n,
    llm_jdict_t *d)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        llm_jtry(llm_jdict_set(rt, d, &v[i].key, &v[i].value));
    }

    return LLM_OK;
}


/* dict(mapping or pairs, **more) */

int
llm_jfn_dict(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           rc;
    llm_jdict_t  *from;

    llm_jtry(llm_jv_dict(rt, LLM_J_DICT, res));

    if (args->n > 1) {
        return llm_jrt_fail(rt, "dict expected at most 1 argument, got %zu",
                            args->n);
    }

    rc = LLM_OK;

    if (args->n && args->v[0].type == LLM_J_DICT) {
        from = args->v[0].u.dict;
        rc = llm_jglobal_update(rt, from->v, from->n, res->u.dict);

    } else if (args->n) {
        rc = llm_jglobal_pairs(rt, &args->v[0], res->u.dict);
    }

    return rc == LLM_OK ? llm_jglobal_update(rt, args->kw, args->n_kw,
                                             res->u.dict) : LLM_ERROR;
}


int
llm_jinja_ns_set(llm_jrt_t *rt, const llm_jv_t *ns, const llm_jv_t *name,
    const llm_jv_t *value)
{
    if (name->type == LLM_J_STR && name->u.s->len
        && llm_js_data(name->u.s)[0] == '_')
    {
        return llm_jrt_fail(rt, "a namespace cannot have attributes whose "
                            "names begin with an underscore");
    }

    return llm_jdict_set(rt, ns->u.dict, name, value);
}


int
llm_jfn_namespace(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t    i;
    llm_jv_t  all;

    llm_jtry(llm_jv_dict(rt, LLM_J_NS, res));
    llm_jtry(llm_jfn_dict(rt, args, &all));

    for (i = 0; i < all.u.dict->n; i++) {
        llm_jtry(llm_jinja_ns_set(rt, res, &all.u.dict->v[i].key,
                                  &all.u.dict->v[i].value));
    }

    return LLM_OK;
}


int
llm_jfn_joiner(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    *res = llm_jv_of(LLM_J_JOINER);
    llm_jnew(rt, res->u.joiner, sizeof(llm_jjoiner_t));

    res->u.joiner->used = 0;
    res->u.joiner->sep = args->v[0];

    return llm_jv_given(&args->v[0])
           ? LLM_OK : llm_js_lit(rt, ", ", &res->u.joiner->sep);
}


/* the template's own message is shown to the client */

int
llm_jfn_raise(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    *res = args->v[0];
    rt->failed = LLM_ERROR;

    return llm_fail_with(rt->err, 400, NULL, NULL, "%.*s",
                         (int) llm_min(res->u.s->len, 4096),
                         llm_js_data(res->u.s));
}


/* adds one conversion of strftime; Python leaves the zone of a naive time
   empty */

static int
llm_jglobal_time_part(llm_jb_t *b, const char *spec, const struct tm *tm)
{
    char    buf[256];
    size_t  n;

    switch (spec[strlen(spec) - 1]) {

    case 'f':
        return llm_jb_adds(b, "000000", 1);

    case 'z':
    case 'Z':
        return LLM_OK;
    }

    n = strftime(buf, sizeof(buf), spec, tm);

    return llm_jb_add(b, buf, n, 1);
}


int
llm_jfn_strftime(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    char        spec[8];
    size_t      i, n;
    time_t      now;
    llm_jb_t    b;
    llm_js_t   *s;
    struct tm   tm;
    const char *p;

    s = args->v[0].u.s;
    now = (time_t) rt->now;

    if (localtime_r(&now, &tm) == NULL) {
        return llm_jrt_fail(rt, "strftime_now: the time is out of range");
    }

    p = llm_js_data(s);
    llm_jb_init(&b, rt, 0);

    for (i = 0; i < s->len; i += n) {
        n = 1;

        if (p[i] != '%') {
            llm_jtry(llm_jb_add_range(&b, s, i, i + 1));

            continue;
        }

        while (i + n < s->len && n < sizeof(spec) - 2
               && strchr("-_0^#", p[i + n]) && p[i + n])
        {
            n++;
        }

        if (i + n >= s->len || !((p[i + n] | 0x20) >= 'a'
                                 && (p[i + n] | 0x20) <= 'z'))
        {
            n += (i + n < s->len && p[i + n] == '%');
            (void) llm_jb_adds(&b, "%", 1);
            continue;
        }

        n++;
        memcpy(spec, p + i, n);
        spec[n] = '\0';

        llm_jtry(llm_jglobal_time_part(&b, spec, &tm));
    }

    return llm_jb_done(&b, res);
}
