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

    if (args->v[0].type == LLM_J_STR
        && llm_jrt_charge(rt, llm_js_counting(args->v[0].u.s)
                              * LLM_J_DECODED) != LLM_OK)
    {
        return LLM_ERROR;
    }

    n = llm_jv_len(&args->v[0]);

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

    return rc == LLM_AGAIN
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


int
llm_jfn_items(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t     v;
    llm_jlist_t  l;
    llm_jview_t  view;

    memset(&l, 0, sizeof(l));

    if (args->v[0].type != LLM_J_UNDEF) {
        if (args->v[0].type != LLM_J_DICT) {
            return llm_jrt_fail(rt, "Can only get item pairs from a "
                                "mapping.");
        }

        view.dict = args->v[0].u.dict;
        view.kind = LLM_J_ITEMS;
        v = llm_jv_of(LLM_J_VIEW);
        v.u.view = &view;

        llm_jtry(llm_jv_items(rt, &v, &l));
    }

    return llm_jv_iter(rt, &l, "generator", res);
}


/* sorts the items of a list by their keys */

static int
llm_jf_sort_items(llm_jrt_t *rt, llm_jlist_t *l, const llm_jv_t *keys,
    int reverse)
{
    size_t        i;
    llm_jpair_t  *v;

    llm_jnew(rt, v, (l->n + 1) * sizeof(llm_jpair_t));

    for (i = 0; i < l->n; i++) {
        v[i].key = keys[i];
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
    int           value;
    size_t        i;
    llm_jv_t      none, *keys;
    llm_js_t     *by;
    llm_jlist_t  *l;
    llm_jpair_t  *p;

    by = llm_jarg_str(args, 2);
    value = by && llm_js_is(by, "value");
    none = LLM_J_NONE_V;

    if (by && !value && !llm_js_is(by, "key")) {
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

    llm_jtry(llm_jv_list(rt, LLM_J_LIST, args->v[0].u.dict->n, res));

    l = res->u.list;

    llm_jnew(rt, keys, (l->cap + 1) * sizeof(llm_jv_t));

    for (i = 0; i < l->cap; i++, l->n++) {
        p = &args->v[0].u.dict->v[i];

        llm_jtry(llm_jv_pair(rt, &p->key, &p->value, &l->v[i]));
        llm_jtry(llm_jf_key(rt, value ? &p->value : &p->key, &none,
                            !llm_jv_truth(&args->v[1]), &keys[i]));
    }

    return llm_jf_sort_items(rt, l, keys, llm_jv_truth(&args->v[3]));
}


/* one key, or a list of them for "a,b" */

static int
llm_jf_sort_key(llm_jrt_t *rt, const llm_jv_t *item, const llm_jv_t *attribute,
    int fold, llm_jv_t *res)
{
    size_t     pos, end;
    llm_jv_t   comma, part, key;
    llm_js_t  *s;

    if (attribute->type != LLM_J_STR
        || memchr(llm_js_data(attribute->u.s), ',', attribute->u.s->len)
           == NULL)
    {
        return llm_jf_key(rt, item, attribute, fold, res);
    }

    s = attribute->u.s;

    llm_jtry(llm_jv_list(rt, LLM_J_LIST, 0, res));
    llm_jtry(llm_js_lit(rt, ",", &comma));

    for (pos = 0; pos <= s->len; pos = end + 1) {
        end = llm_js_find(s, comma.u.s, pos);
        end = end == SIZE_MAX ? s->len : end;

        llm_jtry(llm_js_slice(rt, s, pos, end, &part));
        llm_jtry(llm_jf_key(rt, item, &part, fold, &key));
        llm_jtry(llm_jlist_push(rt, res->u.list, &key));
    }

    return LLM_OK;
}


int
llm_jfn_sort(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           fold;
    size_t        i;
    llm_jv_t     *keys;
    llm_jlist_t  *l;

    fold = !llm_jv_truth(&args->v[2]);

    llm_jtry(llm_jfn_list(rt, args, res));

    l = res->u.list;

    llm_jnew(rt, keys, (l->n + 1) * sizeof(llm_jv_t));

    for (i = 0; i < l->n; i++) {
        llm_jtry(llm_jf_sort_key(rt, &l->v[i], &args->v[3], fold, &keys[i]));
    }

    return llm_jf_sort_items(rt, l, keys, llm_jv_truth(&args->v[1]));
}


/* items from to end, filled up with one more value, as a list in out */

static int
llm_jf_piece(llm_jrt_t *rt, const llm_jlist_t *l, size_t from, size_t end,
    size_t fill, const llm_jv_t *with, llm_jlist_t *out)
{
    llm_jv_t  piece;

    llm_jtry(llm_jrt_charge(rt, end - from + fill));
    llm_jtry(llm_jv_list(rt, LLM_J_LIST, end - from + fill, &piece));

    for ( /* void */ ; from < end; from++) {
        piece.u.list->v[piece.u.list->n++] = l->v[from];
    }

    for ( /* void */ ; fill; fill--) {
        piece.u.list->v[piece.u.list->n++] = *with;
    }

    return llm_jlist_push(rt, out, &piece);
}


int
llm_jfn_batch(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int          fills;
    size_t       i, end;
    int64_t      n;
    llm_jlist_t  l, out;

    memset(&out, 0, sizeof(out));

    llm_jtry(llm_jv_items(rt, &args->v[0], &l));

    n = args->v[1].u.i;
    fills = llm_jv_given(&args->v[2]) && args->v[2].type != LLM_J_NONE;

    /* a size that is never reached again, and for 0 an empty batch first */

    if (n < 1) {
        llm_jtry(n == 0 && l.n && llm_jf_piece(rt, &l, 0, 0, 0, NULL, &out));

        fills = 0;
        n = INT64_MAX;
    }

    for (i = 0; i < l.n; i = end) {
        end = l.n - i > (uint64_t) n ? i + (size_t) n : l.n;

        llm_jtry(llm_jf_piece(rt, &l, i, end, fills ? (size_t) n - (end - i)
                              : 0, &args->v[2], &out));
    }

    return llm_jv_iter(rt, &out, "generator", res);
}


int
llm_jfn_slice(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int          fills;
    size_t       i, from, end, extra;
    int64_t      n;
    llm_jlist_t  l, out;

    memset(&out, 0, sizeof(out));

    llm_jtry(llm_jv_items(rt, &args->v[0], &l));

    n = args->v[1].u.i;

    if (n == 0) {
        return llm_jrt_fail(rt, "integer division or modulo by zero");
    }

    fills = llm_jv_given(&args->v[2]) && args->v[2].type != LLM_J_NONE;

    for (i = 0, from = 0; (int64_t) i < n; i++, from = end) {
        extra = i < l.n % (size_t) n;
        end = from + l.n / (size_t) n + extra;

        llm_jtry(llm_jf_piece(rt, &l, from, end, fills && !extra, &args->v[2],
                              &out));
    }

    return llm_jv_iter(rt, &out, "generator", res);
}


int
llm_jfn_unique(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t        i, n;
    llm_jv_t      key, *found;
    llm_jlist_t   l;
    llm_jdict_t  *seen;

    seen = llm_jdict_new(rt);

    if (seen == NULL || llm_jv_items(rt, &args->v[0], &l) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0, n = 0; i < l.n; i++) {
        llm_jtry(llm_jf_key(rt, &l.v[i], &args->v[2],
                            !llm_jv_truth(&args->v[1]), &key));
        llm_jtry(llm_jdict_get(rt, seen, &key, &found));

        if (found == NULL) {
            llm_jtry(llm_jdict_set(rt, seen, &key, &key));

            l.v[n++] = l.v[i];
        }
    }

    l.n = n;

    return llm_jv_iter(rt, &l, "generator", res);
}
