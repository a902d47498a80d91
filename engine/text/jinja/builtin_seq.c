/*
 * Filters over sequences as a whole: length, join, sort, cut.
 */

#include "engine/text/jinja/builtin.h"


int
llm_jfn_length(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int64_t   n;
    llm_jv_t  name;

    if (args->v[0].type == LLM_J_LOOP) {
        llm_jtry(llm_js_lit(rt, "length", &name));

        return llm_jloop_attr(rt, args->v[0].u.loop, name.u.s, res);
    }

    llm_jtry(llm_jv_count(rt, &args->v[0], &n));

    if (n < 0) {
        return llm_jrt_fail(rt, "object of type '%s' has no len()",
                            llm_jv_type(&args->v[0]));
    }

    *res = llm_jv_int(n);

    return LLM_OK;
}


int
llm_jfn_first(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int         rc;
    llm_jcur_t  cur;

    llm_jtry(llm_jcur_init(rt, &cur, &args->v[0]));

    rc = llm_jcur_next(rt, &cur, res);

    return rc == LLM_END
           ? llm_jv_undef(rt, "No first item, sequence was empty.", res) : rc;
}


static int
llm_jf_reversible(llm_jrt_t *rt, const llm_jv_t *v)
{
    if (llm_jv_len(v) >= 0) {
        return LLM_OK;
    }

    return llm_jrt_fail(rt, "'%s' object is not reversible", llm_jv_type(v));
}


int
llm_jfn_last(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t     last;
    llm_jlist_t  l;

    last = llm_jv_int(-1);

    llm_jtry(llm_jf_reversible(rt, &args->v[0]));

    if (args->v[0].type != LLM_J_DICT && args->v[0].type != LLM_J_VIEW) {
        if (llm_jv_len(&args->v[0])) {
            return llm_jinja_getitem(rt, &args->v[0], &last, res);
        }

    } else {
        llm_jtry(llm_jv_items(rt, &args->v[0], &l));

        if (l.n) {
            *res = l.v[l.n - 1];
            return LLM_OK;
        }
    }

    return llm_jv_undef(rt, "No last item, sequence was empty.", res);
}


int
llm_jfn_join(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t       i;
    llm_jb_t     b;
    llm_jv_t     item;
    llm_js_t    *sep;
    llm_jlist_t  l;

    sep = llm_jarg_str(args, 1);

    llm_jtry(llm_jv_items(rt, &args->v[0], &l));

    llm_jb_init(&b, rt, 0);

    for (i = 0; i < l.n; i++) {
        llm_jtry(llm_jf_key(rt, &l.v[i], &args->v[2], 0, &item));

        if (i && sep) {
            llm_jtry(llm_jb_add_str(&b, sep));
        }

        llm_jtry(llm_jb_add_value(&b, &item));
    }

    return llm_jb_done(&b, res);
}


int
llm_jfn_list(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jtry(llm_jv_list(rt, LLM_J_LIST, 0, res));

    return llm_jv_items(rt, &args->v[0], res->u.list);
}


int
llm_jfn_reverse(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t     none, step;
    llm_jlist_t  l;

    none = LLM_J_NONE_V;
    step = llm_jv_int(-1);

    if (args->v[0].type == LLM_J_STR) {
        return llm_jinja_slice(rt, &args->v[0], &none, &none, &step, res);
    }

    llm_jtry(llm_jv_items(rt, &args->v[0], &l));

    llm_jlist_reverse(&l);

    if (args->v[0].type != LLM_J_ITER) {
        return llm_jv_iter(rt, &l, "reversed", res);
    }

    llm_jtry(llm_jv_list(rt, LLM_J_LIST, 0, res));

    *res->u.list = l;

    return LLM_OK;
}


/* the (key, value) pairs of a dictionary */

static int
llm_jf_pairs(llm_jrt_t *rt, const llm_jv_t *dict, llm_jlist_t *l)
{
    llm_jv_t     v;
    llm_jview_t  view;

    view.dict = dict->u.dict;
    view.kind = LLM_J_ITEMS;
    v = llm_jv_of(LLM_J_VIEW);
    v.u.view = &view;

    return llm_jv_items(rt, &v, l);
}


int
llm_jfn_items(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jlist_t  l;

    memset(&l, 0, sizeof(l));

    if (args->v[0].type != LLM_J_UNDEF && args->v[0].type != LLM_J_DICT) {
        return llm_jrt_fail(rt, "Can only get item pairs from a mapping.");
    }

    if (args->v[0].type == LLM_J_DICT) {
        llm_jtry(llm_jf_pairs(rt, &args->v[0], &l));
    }

    return llm_jv_iter(rt, &l, "generator", res);
}


/* sorts a list by its items, or by an attribute of them */

static int
llm_jf_sort_by(llm_jrt_t *rt, llm_jlist_t *l, const llm_jv_t *attribute,
    int fold, int reverse)
{
    size_t        i;
    llm_jpair_t  *v;

    llm_jnew(rt, v, (l->n + 1) * sizeof(llm_jpair_t));

    for (i = 0; i < l->n; i++) {
        llm_jtry(llm_jf_key(rt, &l->v[i], attribute, fold, &v[i].key));
        v[i].value = l->v[i];
        v[i].hash = 0;
    }

    llm_jtry(llm_jpairs_sort(rt, v, l->n, reverse));

    for (i = 0; i < l->n; i++) {
        l->v[i] = v[i].value;
    }

    return LLM_OK;
}


int
llm_jfn_dictsort(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t   which;
    llm_js_t  *by;

    by = llm_jarg_str(args, 2);
    which = llm_jv_int(by && llm_js_is(by, "value"));

    if (by && which.u.i == 0 && !llm_js_is(by, "key")) {
        return llm_jrt_fail(rt, "You can only sort by either \"key\" or "
                            "\"value\"");
    }

    if (args->v[0].type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, &args->v[0]);
    }

    if (args->v[0].type != LLM_J_DICT) {
        return llm_jrt_fail(rt, "'%s object' has no attribute 'items'",
                            llm_jv_type(&args->v[0]));
    }

    llm_jtry(llm_jv_list(rt, LLM_J_LIST, 0, res));
    llm_jtry(llm_jf_pairs(rt, &args->v[0], res->u.list));

    return llm_jf_sort_by(rt, res->u.list, &which,
                          !llm_jv_truth(&args->v[1]),
                          llm_jv_truth(&args->v[3]));
}


int
llm_jfn_sort(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    const llm_jv_t  *by;

    by = &args->v[3];

    if (by->type == LLM_J_STR
        && memchr(llm_js_data(by->u.s), ',', by->u.s->len))
    {
        return llm_jrt_fail(rt, "sort: only one attribute is supported");
    }

    llm_jtry(llm_jfn_list(rt, args, res));

    return llm_jf_sort_by(rt, res->u.list, by, !llm_jv_truth(&args->v[2]),
                          llm_jv_truth(&args->v[1]));
}


int
llm_jfn_unique(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t       i, n;
    llm_jv_t     key, seen, *found;
    llm_jlist_t  l;

    llm_jtry(llm_jv_dict(rt, LLM_J_DICT, &seen));
    llm_jtry(llm_jv_items(rt, &args->v[0], &l));

    for (i = 0, n = 0; i < l.n; i++) {
        llm_jtry(llm_jf_key(rt, &l.v[i], &args->v[2],
                            !llm_jv_truth(&args->v[1]), &key));
        llm_jtry(llm_jdict_get(rt, seen.u.dict, &key, &found));

        if (found == NULL) {
            llm_jtry(llm_jdict_set(rt, seen.u.dict, &key, &key));
            l.v[n++] = l.v[i];
        }
    }

    l.n = n;

    return llm_jv_iter(rt, &l, "generator", res);
}
