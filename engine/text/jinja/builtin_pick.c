/*
 * Filters that work item by item: map, select and reject, min, max, sum; also
 * default and attr.
 */

#include "engine/text/jinja/builtin.h"


/* item.attribute, where attribute is an index or a "dotted.path" */

static int
llm_jf_attribute(llm_jrt_t *rt, const llm_jv_t *item,
    const llm_jv_t *attribute, llm_jv_t *res)
{
    size_t     pos, end, i;
    int64_t    n;
    llm_jv_t   part, dot, obj;
    llm_js_t  *s;

    if (attribute->type != LLM_J_STR) {
        return llm_jinja_getitem(rt, item, attribute, res);
    }

    s = attribute->u.s;
    obj = *item;

    llm_jtry(llm_js_lit(rt, ".", &dot));

    for (pos = 0; pos <= s->len; pos = end + 1) {
        end = llm_js_find(s, dot.u.s, pos);
        end = end == SIZE_MAX ? s->len : end;

        llm_jtry(llm_js_slice(rt, s, pos, end, &part));

        /* a part that is a number is an index */

        for (n = 0, i = pos; i < end && end - pos < 18
             && llm_js_data(s)[i] >= '0' && llm_js_data(s)[i] <= '9'; i++)
        {
            n = n * 10 + (llm_js_data(s)[i] - '0');
        }

        if (i == end && end > pos) {
            part = llm_jv_int(n);
        }

        llm_jtry(llm_jinja_getitem(rt, &obj, &part, res));

        obj = *res;
    }

    return LLM_OK;
}


int
llm_jf_key(llm_jrt_t *rt, const llm_jv_t *item, const llm_jv_t *attribute,
    int fold, llm_jv_t *res)
{
    *res = *item;

    if (llm_jv_given(attribute) && attribute->type != LLM_J_NONE) {
        llm_jtry(llm_jf_attribute(rt, item, attribute, res));
    }

    if (fold && res->type == LLM_J_STR) {
        return llm_js_lower(rt, res->u.s, res);
    }

    return LLM_OK;
}


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

    llm_jtry(llm_jf_attribute(rt, item, attribute, &v));

    def = llm_jf_keyword(args, "default");

    *item = (v.type == LLM_J_UNDEF && def && def->type != LLM_J_NONE) ? *def
                                                                      : v;

    return LLM_OK;
}


/* the filter or test that argument i names */

static const llm_jfunc_t *
llm_jf_named(llm_jrt_t *rt, const llm_jargs_t *args, size_t i,
    const llm_jfunc_t *(*find)(const llm_js_t *name), const char *kind)
{
    const llm_jv_t     *v;
    const llm_jfunc_t  *f;

    v = &args->v[i];

    if (v->type != LLM_J_STR) {
        (void) llm_jrt_fail(rt, "%s: expected a string, not %s",
                            args->f->name, llm_jv_type(v));
        return NULL;
    }

    f = find(v->u.s);

    if (f == NULL) {
        (void) llm_jrt_fail(rt, "No %s named '%.*s'.", kind,
                            (int) llm_min(v->u.s->len, 40),
                            llm_js_data(v->u.s));
    }

    return f;
}


int
llm_jfn_map(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t              i;
    llm_jv_t            v;
    llm_jargs_t         rest;
    llm_jlist_t         l;
    const llm_jv_t     *attribute;
    const llm_jfunc_t  *f;

    memset(&l, 0, sizeof(l));

    if (!llm_jv_truth(&args->v[0])) {
        return llm_jv_iter(rt, &l, "generator", res);
    }

    f = NULL;
    rest = *args;
    attribute = args->n == 1 ? llm_jf_keyword(args, "attribute") : NULL;

    if (attribute == NULL) {
        if (args->n < 2) {
            return llm_jrt_fail(rt, "map requires a filter argument");
        }

        f = llm_jf_named(rt, args, 1, llm_jinja_filter, "filter");
        if (f == NULL) {
            return LLM_ERROR;
        }

        rest.v += 2;
        rest.n -= 2;
    }

    llm_jtry(llm_jv_items(rt, &args->v[0], &l));

    for (i = 0; i < l.n; i++) {
        v = l.v[i];

        llm_jtry(f ? llm_jinja_call_func(rt, f, &v, &rest, &l.v[i])
                 : llm_jf_map_attribute(rt, args, attribute, &l.v[i]));
    }

    return llm_jv_iter(rt, &l, "generator", res);
}


/*
 * select and its variants: for some an attribute, then a test with its
 * arguments; without a test, truth decides.
 */

int
llm_jfn_select(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int                 attr, want;
    size_t              i, n;
    llm_jv_t            v, good;
    llm_jlist_t         l;
    llm_jargs_t         rest;
    const llm_jfunc_t  *test;

    attr = args->f->how & LLM_JF_ATTR;
    want = !(args->f->how & LLM_JF_REJECT);
    memset(&l, 0, sizeof(l));

    if (!llm_jv_truth(&args->v[0])) {
        return llm_jv_iter(rt, &l, "generator", res);
    }

    n = attr ? 2 : 1;

    if (args->n < n) {
        return llm_jrt_fail(rt, "Missing parameter for attribute name");
    }

    test = NULL;
    rest = *args;

    if (args->n > n) {
        test = llm_jf_named(rt, args, n++, llm_jinja_test, "test");
        if (test == NULL) {
            return LLM_ERROR;
        }
    }

    rest.v += n;
    rest.n -= n;

    llm_jtry(llm_jv_items(rt, &args->v[0], &l));

    for (i = 0, n = 0; i < l.n; i++) {
        v = l.v[i];

        llm_jtry(attr && llm_jf_attribute(rt, &l.v[i], &args->v[1], &v));

        good = v;

        llm_jtry(test && llm_jinja_call_func(rt, test, &v, &rest, &good));

        if (llm_jv_truth(&good) == want) {
            l.v[n++] = l.v[i];
        }
    }

    l.n = n;

    return llm_jv_iter(rt, &l, "generator", res);
}


/* min and max; how: sign of the comparison */

int
llm_jfn_extreme(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int          cmp, sign;
    size_t       i;
    llm_jv_t     key, best;
    llm_jlist_t  l;

    sign = args->f->how;

    llm_jtry(llm_jv_items(rt, &args->v[0], &l));

    if (l.n == 0) {
        return llm_jv_undef(rt, "No aggregated item, sequence was empty.",
                            res);
    }

    for (i = 0; i < l.n; i++) {
        cmp = sign;

        llm_jtry(llm_jf_key(rt, &l.v[i], &args->v[2],
                            !llm_jv_truth(&args->v[1]), &key));

        if (i) {
            llm_jtry(llm_jv_order(rt, &key, &best, sign < 0 ? "<" : ">",
                                  &cmp));
        }

        if (i == 0 || cmp * sign > 0) {
            best = key;
            *res = l.v[i];
        }
    }

    return LLM_OK;
}


int
llm_jfn_sum(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t       i;
    llm_jv_t     item, sum;
    llm_jlist_t  l;

    *res = llm_jv_given(&args->v[2]) ? args->v[2] : llm_jv_int(0);

    if (res->type == LLM_J_STR) {
        return llm_jrt_fail(rt, "sum() can't sum strings [use ''.join(seq) "
                            "instead]");
    }

    llm_jtry(llm_jv_items(rt, &args->v[0], &l));

    for (i = 0; i < l.n; i++) {
        sum = *res;

        llm_jtry(llm_jf_key(rt, &l.v[i], &args->v[1], 0, &item));
        llm_jtry(llm_jinja_binary(rt, '+', &sum, &item, res));
    }

    return LLM_OK;
}


int
llm_jfn_default(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    if (args->v[0].type != LLM_J_UNDEF
        && !(llm_jv_truth(&args->v[2]) && !llm_jv_truth(&args->v[0])))
    {
        *res = args->v[0];
        return LLM_OK;
    }

    if (llm_jv_given(&args->v[1])) {
        *res = args->v[1];
        return LLM_OK;
    }

    return llm_js_lit(rt, "", res);
}


int
llm_jfn_attr(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    if (args->v[0].type == LLM_J_DICT
        && llm_jinja_method(&args->v[0], args->v[1].u.s) == NULL)
    {
        return llm_jv_undef_of(rt, &args->v[0], &args->v[1], res);
    }

    return llm_jinja_getattr(rt, &args->v[0], &args->v[1], res);
}
