/*
 * Filters over sequences as a whole: length, join, sort, group, cut.
 */

#include "engine/text/jinja/filter.h"


int
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

    if (llm_js_lit(rt, ".", &dot) != LLM_OK) {
        return LLM_ERROR;
    }

    for (pos = 0; pos <= s->len; pos = end + 1) {
        end = llm_js_find(s, dot.u.s, pos);
        end = end == SIZE_MAX ? s->len : end;

        if (llm_js_slice(rt, s, pos, end, &part) != LLM_OK) {
            return LLM_ERROR;
        }

        /* a number is an index */

        for (n = 0, i = pos; i < end && end - pos < 18
             && llm_js_data(s)[i] >= '0' && llm_js_data(s)[i] <= '9'; i++)
        {
            n = n * 10 + (llm_js_data(s)[i] - '0');
        }

        if (i == end && end > pos) {
            part = llm_jv_int(n);
        }

        if (llm_jinja_getitem(rt, &obj, &part, res) != LLM_OK) {
            return LLM_ERROR;
        }

        obj = *res;
    }

    return LLM_OK;
}


int
llm_jf_key(llm_jrt_t *rt, const llm_jv_t *item, const llm_jv_t *attribute,
    int fold, llm_jv_t *res)
{
    *res = *item;

    if (llm_jv_given(attribute) && attribute->type != LLM_J_NONE
        && llm_jf_attribute(rt, item, attribute, res) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (fold && res->type == LLM_J_STR) {
        return llm_jm_case(rt, res->u.s, LLM_JC_TO_LOWER, res);
    }

    return LLM_OK;
}


static int
llm_jf_length(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int64_t   n;
    llm_jv_t  name;

    if (args->v[0].type == LLM_J_LOOP) {
        if (llm_js_lit(rt, "length", &name) != LLM_OK) {
            return LLM_ERROR;
        }

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


static int
llm_jf_first(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int         rc;
    llm_jcur_t  cur;

    if (llm_jcur_init(rt, &cur, &args->v[0]) != LLM_OK) {
        return LLM_ERROR;
    }

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


static int
llm_jf_last(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t     last;
    llm_jlist_t  l;

    last = llm_jv_int(-1);

    if (llm_jf_reversible(rt, &args->v[0]) != LLM_OK) {
        return LLM_ERROR;
    }

    if (args->v[0].type != LLM_J_DICT && args->v[0].type != LLM_J_VIEW) {
        if (llm_jv_len(&args->v[0])) {
            return llm_jinja_getitem(rt, &args->v[0], &last, res);
        }

    } else {
        if (llm_jv_items(rt, &args->v[0], &l) != LLM_OK) {
            return LLM_ERROR;
        }

        if (l.n) {
            *res = l.v[l.n - 1];
            return LLM_OK;
        }
    }

    return llm_jv_undef(rt, "No last item, sequence was empty.", res);
}


static int
llm_jf_join(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int         rc, more;
    llm_jb_t    b;
    llm_jv_t    item, sep;
    llm_jcur_t  cur;

    if (llm_jv_tostr(rt, &args->v[1], &sep) != LLM_OK
        || llm_jcur_init(rt, &cur, &args->v[0]) != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_jb_init(&b, rt, 0);

    for (more = 0; (rc = llm_jcur_next(rt, &cur, &item)) == LLM_OK; more = 1)
    {
        if (llm_jf_key(rt, &item, &args->v[2], 0, &item) != LLM_OK
            || (more && llm_jb_add_str(&b, sep.u.s) != LLM_OK)
            || llm_jb_add_value(&b, &item) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return rc == LLM_AGAIN ? llm_jb_done(&b, res) : LLM_ERROR;
}


static int
llm_jf_list(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    if (llm_jv_list(rt, LLM_J_LIST, 0, res) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_jv_items(rt, &args->v[0], res->u.list);
}


static int
llm_jf_reverse(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t       i;
    llm_jv_t     t, none, step;
    llm_jlist_t  l;

    none = LLM_J_NONE_V;
    step = llm_jv_int(-1);

    if (args->v[0].type == LLM_J_STR) {
        return llm_jinja_slice(rt, &args->v[0], &none, &none, &step, res);
    }

    if (llm_jv_items(rt, &args->v[0], &l) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < l.n / 2; i++) {
        t = l.v[i];
        l.v[i] = l.v[l.n - 1 - i];
        l.v[l.n - 1 - i] = t;
    }

    if (args->v[0].type != LLM_J_ITER) {
        return llm_jv_iter(rt, &l, "reversed", res);
    }

    if (llm_jv_list(rt, LLM_J_LIST, 0, res) != LLM_OK) {
        return LLM_ERROR;
    }

    *res->u.list = l;

    return LLM_OK;
}


static int
llm_jf_items(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
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

        if (llm_jv_items(rt, &v, &l) != LLM_OK) {
            return LLM_ERROR;
        }
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

    v = llm_jrt_alloc(rt, (l->n + 1) * sizeof(llm_jpair_t));
    if (v == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < l->n; i++) {
        v[i].key = keys[i];
        v[i].value = l->v[i];
        v[i].hash = 0;
    }

    if (llm_jpairs_sort(rt, v, l->n, reverse) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < l->n; i++) {
        l->v[i] = v[i].value;
    }

    return LLM_OK;
}


static int
llm_jf_dictsort(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           fold, value;
    size_t        i;
    llm_jv_t      none, *keys;
    llm_js_t     *by;
    llm_jlist_t  *l;

    fold = !llm_jv_truth(&args->v[1]);
    value = 0;
    none = LLM_J_NONE_V;

    if (llm_jv_given(&args->v[2])) {
        if (llm_jarg_str(rt, &args->v[2], "dictsort", &by) != LLM_OK) {
            return LLM_ERROR;
        }

        value = llm_js_is(by, "value");

        if (!value && !llm_js_is(by, "key")) {
            return llm_jrt_fail(rt, "You can only sort by either \"key\" or "
                                "\"value\"");
        }
    }

    if (args->v[0].type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, &args->v[0]);
    }

    if (args->v[0].type != LLM_J_DICT) {
        return llm_jrt_fail(rt, "'%s object' has no attribute 'items'",
                            llm_jv_type(&args->v[0]));
    }

    if (llm_jv_list(rt, LLM_J_LIST, args->v[0].u.dict->n, res) != LLM_OK) {
        return LLM_ERROR;
    }

    l = res->u.list;

    keys = llm_jrt_alloc(rt, (l->cap + 1) * sizeof(llm_jv_t));
    if (keys == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < args->v[0].u.dict->n; i++, l->n++) {
        if (llm_jv_pair(rt, &args->v[0].u.dict->v[i].key,
                        &args->v[0].u.dict->v[i].value, &l->v[i]) != LLM_OK
            || llm_jf_key(rt, &l->v[i].u.list->v[value], &none, fold,
                          &keys[i]) != LLM_OK)
        {
            return LLM_ERROR;
        }
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

    if (llm_jv_list(rt, LLM_J_LIST, 0, res) != LLM_OK
        || llm_js_lit(rt, ",", &comma) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (pos = 0; pos <= s->len; pos = end + 1) {
        end = llm_js_find(s, comma.u.s, pos);
        end = end == SIZE_MAX ? s->len : end;

        if (llm_js_slice(rt, s, pos, end, &part) != LLM_OK
            || llm_jf_key(rt, item, &part, fold, &key) != LLM_OK
            || llm_jlist_push(rt, res->u.list, &key) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_jf_sort(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           fold;
    size_t        i;
    llm_jv_t     *keys;
    llm_jlist_t  *l;

    fold = !llm_jv_truth(&args->v[2]);

    if (llm_jf_list(rt, args, res) != LLM_OK) {
        return LLM_ERROR;
    }

    l = res->u.list;

    keys = llm_jrt_alloc(rt, (l->n + 1) * sizeof(llm_jv_t));
    if (keys == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < l->n; i++) {
        if (llm_jf_sort_key(rt, &l->v[i], &args->v[3], fold, &keys[i])
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return llm_jf_sort_items(rt, l, keys, llm_jv_truth(&args->v[1]));
}


/* (key, items with that key), in order of the keys */

static int
llm_jf_groupby(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           rc, fold;
    size_t        i;
    llm_jv_t      group, items, title, key, *last;
    llm_jlist_t   l;
    llm_jpair_t  *v;

    fold = !llm_jv_truth(&args->v[3]);

    if (llm_jv_items(rt, &args->v[0], &l) != LLM_OK
        || llm_jv_list(rt, LLM_J_LIST, 0, res) != LLM_OK)
    {
        return LLM_ERROR;
    }

    v = llm_jrt_alloc(rt, (l.n + 1) * sizeof(llm_jpair_t));
    if (v == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < l.n; i++) {
        if (llm_jf_attribute(rt, &l.v[i], &args->v[1], &key) != LLM_OK) {
            return LLM_ERROR;
        }

        if (key.type == LLM_J_UNDEF && llm_jv_given(&args->v[2])
            && args->v[2].type != LLM_J_NONE)
        {
            key = args->v[2];
        }

        title = LLM_J_NONE_V;

        if (llm_jf_key(rt, &key, &title, fold, &v[i].key) != LLM_OK
            || llm_jv_pair(rt, &key, &l.v[i], &v[i].value) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    if (llm_jpairs_sort(rt, v, l.n, 0) != LLM_OK) {
        return LLM_ERROR;
    }

    last = NULL;

    for (i = 0; i < l.n; i++) {
        rc = last ? llm_jv_equal(rt, last, &v[i].key) : 0;
        if (rc < 0) {
            return LLM_ERROR;
        }

        if (rc == 0) {
            if (llm_jv_list(rt, LLM_J_LIST, 0, &items) != LLM_OK
                || llm_jv_pair(rt, &v[i].value.u.list->v[0], &items, &group)
                   != LLM_OK
                || llm_jlist_push(rt, res->u.list, &group) != LLM_OK)
            {
                return LLM_ERROR;
            }

            group.u.list->group = 1;
            last = &v[i].key;
        }

        if (llm_jlist_push(rt, items.u.list, &v[i].value.u.list->v[1])
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* items from to end, filled up with one more value, as a list in out */

static int
llm_jf_piece(llm_jrt_t *rt, const llm_jlist_t *l, size_t from, size_t end,
    size_t fill, const llm_jv_t *with, llm_jlist_t *out)
{
    llm_jv_t  piece;

    if (llm_jrt_charge(rt, end - from + fill) != LLM_OK
        || llm_jv_list(rt, LLM_J_LIST, end - from + fill, &piece) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for ( /* void */ ; from < end; from++) {
        piece.u.list->v[piece.u.list->n++] = l->v[from];
    }

    for ( /* void */ ; fill; fill--) {
        piece.u.list->v[piece.u.list->n++] = *with;
    }

    return llm_jlist_push(rt, out, &piece);
}


static int
llm_jf_batch(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int          fills;
    size_t       i, end;
    int64_t      n;
    llm_jlist_t  l, out;

    memset(&out, 0, sizeof(out));

    if (llm_jv_items(rt, &args->v[0], &l) != LLM_OK
        || llm_jarg_int(rt, &args->v[1], "batch", &n) != LLM_OK)
    {
        return LLM_ERROR;
    }

    fills = llm_jv_given(&args->v[2]) && args->v[2].type != LLM_J_NONE;

    /* a size that is never reached again, and for 0 an empty batch first */

    if (n < 1) {
        if (n == 0 && l.n
            && llm_jf_piece(rt, &l, 0, 0, 0, NULL, &out) != LLM_OK)
        {
            return LLM_ERROR;
        }

        fills = 0;
        n = INT64_MAX;
    }

    for (i = 0; i < l.n; i = end) {
        end = l.n - i > (uint64_t) n ? i + (size_t) n : l.n;

        if (llm_jf_piece(rt, &l, i, end, fills ? (size_t) n - (end - i) : 0,
                         &args->v[2], &out) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return llm_jv_iter(rt, &out, "generator", res);
}


static int
llm_jf_slice(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int          fills;
    size_t       i, from, end, extra;
    int64_t      n;
    llm_jlist_t  l, out;

    memset(&out, 0, sizeof(out));

    if (llm_jv_items(rt, &args->v[0], &l) != LLM_OK
        || llm_jarg_int(rt, &args->v[1], "slice", &n) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (n == 0) {
        return llm_jrt_fail(rt, "integer division or modulo by zero");
    }

    fills = llm_jv_given(&args->v[2]) && args->v[2].type != LLM_J_NONE;

    for (i = 0, from = 0; (int64_t) i < n; i++, from = end) {
        extra = i < l.n % (size_t) n;
        end = from + l.n / (size_t) n + extra;

        if (llm_jf_piece(rt, &l, from, end, fills && !extra, &args->v[2],
                         &out) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return llm_jv_iter(rt, &out, "generator", res);
}


static int
llm_jf_unique(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           rc, fold;
    llm_jv_t      item, key, *found;
    llm_jcur_t    cur;
    llm_jlist_t   out;
    llm_jdict_t  *seen;

    fold = !llm_jv_truth(&args->v[1]);
    memset(&out, 0, sizeof(out));

    seen = llm_jdict_new(rt);

    if (seen == NULL || llm_jcur_init(rt, &cur, &args->v[0]) != LLM_OK) {
        return LLM_ERROR;
    }

    while ((rc = llm_jcur_next(rt, &cur, &item)) == LLM_OK) {
        if (llm_jf_key(rt, &item, &args->v[2], fold, &key) != LLM_OK
            || llm_jdict_get(rt, seen, &key, &found) != LLM_OK)
        {
            return LLM_ERROR;
        }

        if (found == NULL
            && (llm_jdict_set(rt, seen, &key, &key) != LLM_OK
                || llm_jlist_push(rt, &out, &item) != LLM_OK))
        {
            return LLM_ERROR;
        }
    }

    return rc == LLM_AGAIN ? llm_jv_iter(rt, &out, "generator", res)
                           : LLM_ERROR;
}


static const llm_jfunc_t  llm_jf_seq_table[] = {
    { "length", llm_jf_length, "", 0, 0 },
    { "count", llm_jf_length, "", 0, 0 },
    { "first", llm_jf_first, "", 0, 0 },
    { "last", llm_jf_last, "", 0, 0 },
    { "join", llm_jf_join, "d? attribute?", 0, 0 },
    { "list", llm_jf_list, "", 0, 0 },
    { "reverse", llm_jf_reverse, "", 0, 0 },
    { "items", llm_jf_items, "", 0, 0 },
    { "dictsort", llm_jf_dictsort, "case_sensitive? by? reverse?", 0, 0 },
    { "sort", llm_jf_sort, "reverse? case_sensitive? attribute?", 0, 0 },
    { "groupby", llm_jf_groupby, "attribute default? case_sensitive?", 0,
      0 },
    { "batch", llm_jf_batch, "linecount fill_with?", 0, 0 },
    { "slice", llm_jf_slice, "slices fill_with?", 0, 0 },
    { "unique", llm_jf_unique, "case_sensitive? attribute?", 0, 0 }
};

const llm_jfilters_t  llm_jf_seq = {
    llm_jf_seq_table, llm_nelems(llm_jf_seq_table)
};
