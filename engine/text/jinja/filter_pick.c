/*
 * Filters that go item by item: map, select and reject, min, max, sum.
 */

#include "engine/text/jinja/filter.h"


static const llm_jv_t *
llm_jf_keyword(const llm_jargs_t *args, const char *name)
{
    size_t  i;

    for (i = 0; i < args->n_kw; i++) {
        if (llm_js_is(args->kw[i].key.u.s, name)) {
            return &args->kw[i].value;
        }
    }

    return NULL;
}


/* map(attribute="a.b", default=...) of one item */

static int
llm_jf_map_attribute(llm_jrt_t *rt, const llm_jargs_t *args,
    const llm_jv_t *attribute, llm_jv_t *item)
{
    llm_jv_t         v;
    const llm_jv_t  *def;

    if (llm_jf_attribute(rt, item, attribute, &v) != LLM_OK) {
        return LLM_ERROR;
    }

    def = llm_jf_keyword(args, "default");

    *item = (v.type == LLM_J_UNDEF && def && def->type != LLM_J_NONE) ? *def
                                                                      : v;

    return LLM_OK;
}


static int
llm_jf_map(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int                 rc;
    llm_jv_t            item, v;
    llm_js_t           *name;
    llm_jcur_t          cur;
    llm_jargs_t         rest;
    llm_jlist_t         out;
    const llm_jv_t     *attribute;
    const llm_jfunc_t  *f;

    memset(&out, 0, sizeof(out));

    if (!llm_jv_truth(&args->v[0])) {
        return llm_jv_iter(rt, &out, "generator", res);
    }

    f = NULL;
    attribute = args->n == 1 ? llm_jf_keyword(args, "attribute") : NULL;

    if (attribute == NULL) {
        if (args->n < 2) {
            return llm_jrt_fail(rt, "map requires a filter argument");
        }

        if (llm_jarg_str(rt, &args->v[1], "map", &name) != LLM_OK) {
            return LLM_ERROR;
        }

        f = llm_jinja_filter(llm_js_data(name), name->len);
        if (f == NULL) {
            return llm_jrt_fail(rt, "No filter named '%.*s'.",
                                (int) llm_min(name->len, 40),
                                llm_js_data(name));
        }

        rest = *args;
        rest.v += 2;
        rest.n -= 2;
    }

    if (llm_jcur_init(rt, &cur, &args->v[0]) != LLM_OK) {
        return LLM_ERROR;
    }

    while ((rc = llm_jcur_next(rt, &cur, &item)) == LLM_OK) {
        v = item;

        if ((f ? llm_jinja_call_func(rt, f, &item, &rest, &v)
               : llm_jf_map_attribute(rt, args, attribute, &v)) != LLM_OK
            || llm_jlist_push(rt, &out, &v) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return rc == LLM_AGAIN ? llm_jv_iter(rt, &out, "generator", res)
                           : LLM_ERROR;
}


/*
 * select and its kin: attr says that the first argument names an attribute;
 * then come a test and its arguments, or nothing, which tests for truth.
 */

static int
llm_jf_filter_items(llm_jrt_t *rt, llm_jargs_t *args, int attr, int want,
    llm_jv_t *res)
{
    int                 rc;
    llm_jv_t            item, v, good;
    llm_js_t           *name;
    llm_jcur_t          cur;
    llm_jlist_t         out;
    llm_jargs_t         rest;
    const llm_jfunc_t  *test;

    memset(&out, 0, sizeof(out));

    if (!llm_jv_truth(&args->v[0])) {
        return llm_jv_iter(rt, &out, "generator", res);
    }

    if (attr && args->n < 2) {
        return llm_jrt_fail(rt, "Missing parameter for attribute name");
    }

    test = NULL;
    rest = *args;
    rest.v += 1 + attr;
    rest.n -= (size_t) (1 + attr);

    if (rest.n) {
        if (llm_jarg_str(rt, &rest.v[0], "select", &name) != LLM_OK) {
            return LLM_ERROR;
        }

        test = llm_jinja_test(llm_js_data(name), name->len);
        if (test == NULL) {
            return llm_jrt_fail(rt, "No test named '%.*s'.",
                                (int) llm_min(name->len, 40),
                                llm_js_data(name));
        }

        rest.v++;
        rest.n--;
    }

    if (llm_jcur_init(rt, &cur, &args->v[0]) != LLM_OK) {
        return LLM_ERROR;
    }

    while ((rc = llm_jcur_next(rt, &cur, &item)) == LLM_OK) {
        v = item;

        if (attr
            && llm_jf_attribute(rt, &item, &args->v[1], &v) != LLM_OK)
        {
            return LLM_ERROR;
        }

        good = v;

        if (test && llm_jinja_call_func(rt, test, &v, &rest, &good) != LLM_OK)
        {
            return LLM_ERROR;
        }

        if (llm_jv_truth(&good) == want
            && llm_jlist_push(rt, &out, &item) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return rc == LLM_AGAIN ? llm_jv_iter(rt, &out, "generator", res)
                           : LLM_ERROR;
}


static int
llm_jf_select(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jf_filter_items(rt, args, 0, 1, res);
}


static int
llm_jf_reject(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jf_filter_items(rt, args, 0, 0, res);
}


static int
llm_jf_selectattr(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jf_filter_items(rt, args, 1, 1, res);
}


static int
llm_jf_rejectattr(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jf_filter_items(rt, args, 1, 0, res);
}


static int
llm_jf_extreme(llm_jrt_t *rt, llm_jargs_t *args, int sign, llm_jv_t *res)
{
    int         rc, cmp, fold, found;
    llm_jv_t    item, key, best;
    llm_jcur_t  cur;

    fold = !llm_jv_truth(&args->v[1]);
    best = llm_jv_of(LLM_J_MISSING);

    if (llm_jcur_init(rt, &cur, &args->v[0]) != LLM_OK) {
        return LLM_ERROR;
    }

    for (found = 0; (rc = llm_jcur_next(rt, &cur, &item)) == LLM_OK;
         found = 1)
    {
        if (llm_jf_key(rt, &item, &args->v[2], fold, &key) != LLM_OK) {
            return LLM_ERROR;
        }

        cmp = -1;

        if (found && llm_jv_order(rt, &key, &best, sign < 0 ? "<" : ">", &cmp)
                     != LLM_OK)
        {
            return LLM_ERROR;
        }

        if (!found || cmp * sign > 0) {
            best = key;
            *res = item;
        }
    }

    if (rc != LLM_AGAIN) {
        return LLM_ERROR;
    }

    return found ? LLM_OK
           : llm_jv_undef(rt, "No aggregated item, sequence was empty.", res);
}


static int
llm_jf_min(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jf_extreme(rt, args, -1, res);
}


static int
llm_jf_max(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jf_extreme(rt, args, 1, res);
}


static int
llm_jf_sum(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int         rc;
    llm_jv_t    item, sum;
    llm_jcur_t  cur;

    *res = llm_jv_given(&args->v[2]) ? args->v[2] : llm_jv_int(0);

    if (res->type == LLM_J_STR) {
        return llm_jrt_fail(rt, "sum() can't sum strings [use ''.join(seq) "
                            "instead]");
    }

    if (llm_jcur_init(rt, &cur, &args->v[0]) != LLM_OK) {
        return LLM_ERROR;
    }

    while ((rc = llm_jcur_next(rt, &cur, &item)) == LLM_OK) {
        sum = *res;

        if (llm_jf_key(rt, &item, &args->v[1], 0, &item) != LLM_OK
            || llm_jinja_binary(rt, '+', &sum, &item, res) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return rc == LLM_AGAIN ? LLM_OK : LLM_ERROR;
}


static const llm_jfunc_t  llm_jf_pick_table[] = {
    { "map", llm_jf_map, NULL, 0, 0 },
    { "select", llm_jf_select, NULL, 0, 0 },
    { "reject", llm_jf_reject, NULL, 0, 0 },
    { "selectattr", llm_jf_selectattr, NULL, 0, 0 },
    { "rejectattr", llm_jf_rejectattr, NULL, 0, 0 },
    { "min", llm_jf_min, "case_sensitive? attribute?", 0, 0 },
    { "max", llm_jf_max, "case_sensitive? attribute?", 0, 0 },
    { "sum", llm_jf_sum, "attribute? start?", 0, 0 }
};

const llm_jfilters_t  llm_jf_pick = {
    llm_jf_pick_table, llm_nelems(llm_jf_pick_table)
};
