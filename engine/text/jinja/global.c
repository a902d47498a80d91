/*
 * The functions that a template finds in its context: range, dict,
 * namespace, cycler, joiner, and transformers' raise_exception and
 * strftime_now.
 */

#include "engine/text/jinja/value.h"

#include <time.h>


static int
llm_jglobal_range(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int64_t        v[3] = { 0, 0, 1 }, span;
    llm_jrange_t  *r;

    if (llm_jarg_int(rt, &args->v[0], "range", &v[1]) != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_jv_given(&args->v[1])) {
        v[0] = v[1];

        if (llm_jarg_int(rt, &args->v[1], "range", &v[1]) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    if (llm_jv_given(&args->v[2])
        && llm_jarg_int(rt, &args->v[2], "range", &v[2]) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (v[2] == 0) {
        return llm_jrt_fail(rt, "range() arg 3 must not be zero");
    }

    r = llm_jrt_alloc(rt, sizeof(llm_jrange_t));
    if (r == NULL) {
        return LLM_ERROR;
    }

    r->start = v[0];
    r->stop = v[1];
    r->step = v[2];
    r->n = 0;

    if (v[2] > 0 ? v[1] > v[0] : v[0] > v[1]) {
        if (__builtin_sub_overflow(v[1], v[0], &span) || v[2] == INT64_MIN
            || (span = v[2] > 0 ? (span - 1) / v[2] : (span + 1) / v[2])
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


/* dict(mapping or pairs, **more) into d */

static int
llm_jglobal_fill(llm_jrt_t *rt, llm_jargs_t *args, llm_jdict_t *d)
{
    int           rc;
    size_t        i;
    llm_jv_t      item;
    llm_jcur_t    cur;
    llm_jlist_t   pair;

    if (args->n > 1) {
        return llm_jrt_fail(rt, "dict expected at most 1 argument, got %zu",
                            args->n);
    }

    if (args->n && args->v[0].type == LLM_J_DICT) {
        for (i = 0; i < args->v[0].u.dict->n; i++) {
            if (llm_jdict_set(rt, d, &args->v[0].u.dict->v[i].key,
                              &args->v[0].u.dict->v[i].value) != LLM_OK)
            {
                return LLM_ERROR;
            }
        }

    } else if (args->n) {
        if (llm_jcur_init(rt, &cur, &args->v[0]) != LLM_OK) {
            return LLM_ERROR;
        }

        while ((rc = llm_jcur_next(rt, &cur, &item)) == LLM_OK) {
            if (llm_jv_items(rt, &item, &pair) != LLM_OK) {
                return LLM_ERROR;
            }

            if (pair.n != 2) {
                return llm_jrt_fail(rt, "dictionary update sequence element "
                                    "has length %zu; 2 is required", pair.n);
            }

            if (llm_jdict_set(rt, d, &pair.v[0], &pair.v[1]) != LLM_OK) {
                return LLM_ERROR;
            }
        }

        if (rc != LLM_AGAIN) {
            return LLM_ERROR;
        }
    }

    for (i = 0; i < args->n_kw; i++) {
        if (llm_jdict_set(rt, d, &args->kw[i].key, &args->kw[i].value)
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_jglobal_dict(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    if (llm_jv_dict(rt, LLM_J_DICT, res) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_jglobal_fill(rt, args, res->u.dict);
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


static int
llm_jglobal_namespace(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t    i;
    llm_jv_t  all;

    if (llm_jv_dict(rt, LLM_J_NS, res) != LLM_OK
        || llm_jglobal_dict(rt, args, &all) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < all.u.dict->n; i++) {
        if (llm_jinja_ns_set(rt, res, &all.u.dict->v[i].key,
                             &all.u.dict->v[i].value) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_jglobal_cycle(llm_jrt_t *rt, llm_jtype_t type, const llm_jv_t *v,
    size_t n, llm_jv_t *res)
{
    size_t         i;
    llm_jcycle_t  *c;

    c = llm_jrt_alloc(rt, sizeof(llm_jcycle_t));
    if (c == NULL) {
        return LLM_ERROR;
    }

    memset(c, 0, sizeof(*c));

    for (i = 0; i < n; i++) {
        if (llm_jlist_push(rt, &c->items, &v[i]) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    *res = llm_jv_of(type);
    res->u.cycle = c;

    return LLM_OK;
}


static int
llm_jglobal_cycler(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    if (args->n == 0 || args->n_kw) {
        return llm_jrt_fail(rt, "cycler: at least one item has to be "
                            "provided");
    }

    return llm_jglobal_cycle(rt, LLM_J_CYCLER, args->v, args->n, res);
}


static int
llm_jglobal_joiner(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t  sep;

    sep = args->v[0];

    if (!llm_jv_given(&sep) && llm_js_lit(rt, ", ", &sep) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_jglobal_cycle(rt, LLM_J_JOINER, &sep, 1, res);
}


/* the template's own words go to the client */

static int
llm_jglobal_raise(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    if (llm_jv_tostr(rt, &args->v[0], res) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_fail_with(rt->err, 400, NULL, NULL, "%.*s",
                         (int) llm_min(res->u.s->len, 4096),
                         llm_js_data(res->u.s));
}


/* one conversion of strftime; Python leaves zones of a naive time empty */

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


static int
llm_jglobal_strftime(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    char        spec[8];
    size_t      i, n;
    time_t      now;
    llm_jb_t    b;
    llm_js_t   *s;
    struct tm   tm;
    const char *p;

    if (llm_jarg_str(rt, &args->v[0], "strftime_now", &s) != LLM_OK) {
        return LLM_ERROR;
    }

    now = (time_t) rt->now;

    if (localtime_r(&now, &tm) == NULL) {
        return llm_jrt_fail(rt, "strftime_now: the time is out of range");
    }

    p = llm_js_data(s);
    llm_jb_init(&b, rt, 0);

    for (i = 0; i < s->len; i += n) {
        n = 1;

        if (p[i] != '%') {
            if (llm_jb_add_range(&b, s, i, i + 1) != LLM_OK) {
                return LLM_ERROR;
            }

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

        if (llm_jglobal_time_part(&b, spec, &tm) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return llm_jb_done(&b, res);
}


static const llm_jfunc_t  llm_jglobals[] = {
    { "range", llm_jglobal_range, "/start stop? step?", 0, 0 },
    { "dict", llm_jglobal_dict, NULL, 0, 0 },
    { "namespace", llm_jglobal_namespace, NULL, 0, 0 },
    { "cycler", llm_jglobal_cycler, NULL, 0, 0 },
    { "joiner", llm_jglobal_joiner, "sep?", 0, 0 },
    { "raise_exception", llm_jglobal_raise, "message", 0, 0 },
    { "strftime_now", llm_jglobal_strftime, "format", 0, 0 }
};


int
llm_jinja_globals(llm_jrt_t *rt, llm_jdict_t *context)
{
    size_t    i;
    llm_jv_t  name, v;

    for (i = 0; i < llm_nelems(llm_jglobals); i++) {
        v = llm_jv_of(LLM_J_FUNC);
        v.u.func = &llm_jglobals[i];

        if (llm_js_lit(rt, llm_jglobals[i].name, &name) != LLM_OK
            || llm_jdict_set(rt, context, &name, &v) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
