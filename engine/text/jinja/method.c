/*
 * Which methods values have, and those of dictionaries, lists and tuples.
 * Methods that change their object are known so that they can be refused:
 * templates run in jinja2's immutable sandbox.
 */

#include "engine/text/jinja/strmeth.h"


/* dictionaries */

static int
llm_jm_dict_get(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t  *found;

    if (llm_jdict_get(rt, args->v[0].u.dict, &args->v[1], &found) != LLM_OK) {
        return LLM_ERROR;
    }

    *res = found ? *found
           : llm_jv_given(&args->v[2]) ? args->v[2] : LLM_J_NONE_V;

    return LLM_OK;
}


static int
llm_jm_dict_view(llm_jrt_t *rt, llm_jargs_t *args, llm_jview_kind_t kind,
    llm_jv_t *res)
{
    *res = llm_jv_of(LLM_J_VIEW);
    res->u.view = llm_jrt_alloc(rt, sizeof(llm_jview_t));

    if (res->u.view == NULL) {
        return LLM_ERROR;
    }

    res->u.view->dict = args->v[0].u.dict;
    res->u.view->kind = kind;

    return LLM_OK;
}


static int
llm_jm_dict_keys(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_dict_view(rt, args, LLM_J_KEYS, res);
}


static int
llm_jm_dict_values(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_dict_view(rt, args, LLM_J_VALUES, res);
}


static int
llm_jm_dict_items(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jm_dict_view(rt, args, LLM_J_ITEMS, res);
}


/* nothing can change a value, so it is its own copy */

static int
llm_jm_copy(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    *res = args->v[0];

    return LLM_OK;
}


/* lists and tuples */

static int
llm_jm_list_index(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           rc;
    int64_t       i, n, from, to;
    llm_jlist_t  *l;

    l = args->v[0].u.list;
    n = (int64_t) l->n;
    from = 0;
    to = n;

    if ((llm_jv_given(&args->v[2])
         && llm_jarg_int(rt, &args->v[2], "index", &from) != LLM_OK)
        || (llm_jv_given(&args->v[3])
            && llm_jarg_int(rt, &args->v[3], "index", &to) != LLM_OK))
    {
        return LLM_ERROR;
    }

    from = from < -n ? 0 : from < 0 ? from + n : from;
    to = to < -n ? 0 : to < 0 ? to + n : llm_min(to, n);

    for (i = from; i < to; i++) {
        rc = llm_jv_equal(rt, &l->v[i], &args->v[1]);

        if (rc < 0 || llm_jrt_charge(rt, 1) != LLM_OK) {
            return LLM_ERROR;
        }

        if (rc) {
            *res = llm_jv_int(i);
            return LLM_OK;
        }
    }

    return llm_jrt_fail(rt, "the item is not in the list");
}


static int
llm_jm_list_count(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           rc;
    size_t        i;
    int64_t       n;
    llm_jlist_t  *l;

    l = args->v[0].u.list;

    for (i = 0, n = 0; i < l->n; i++) {
        rc = llm_jv_equal(rt, &l->v[i], &args->v[1]);

        if (rc < 0 || llm_jrt_charge(rt, 1) != LLM_OK) {
            return LLM_ERROR;
        }

        n += rc;
    }

    *res = llm_jv_int(n);

    return LLM_OK;
}


/* loops and cyclers */

static int
llm_jm_loop_cycle(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    if (args->n < 2) {
        return llm_jrt_fail(rt, "no items for cycling given");
    }

    *res = args->v[1 + (size_t) args->v[0].u.loop->index0 % (args->n - 1)];

    return LLM_OK;
}


static int
llm_jm_loop_changed(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           rc;
    size_t        i;
    llm_jv_t      now;
    llm_jloop_t  *loop;

    loop = args->v[0].u.loop;

    if (llm_jv_list(rt, LLM_J_TUPLE, args->n - 1, &now) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 1; i < args->n; i++) {
        now.u.list->v[now.u.list->n++] = args->v[i];
    }

    rc = llm_jv_equal(rt, &loop->changed, &now);
    if (rc < 0) {
        return LLM_ERROR;
    }

    if (!rc) {
        loop->changed = now;
    }

    *res = llm_jv_bool(!rc);

    return LLM_OK;
}


static int
llm_jm_cycler_next(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jcycle_t  *c;

    (void) rt;
    c = args->v[0].u.cycle;
    *res = c->items.v[c->pos];
    c->pos = (c->pos + 1) % c->items.n;

    return LLM_OK;
}


static int
llm_jm_cycler_reset(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    args->v[0].u.cycle->pos = 0;
    *res = LLM_J_NONE_V;

    return LLM_OK;
}


#define LLM_JM_DICT    (1u << LLM_J_DICT)
#define LLM_JM_LIST    (1u << LLM_J_LIST)
#define LLM_JM_LISTS   (LLM_JM_LIST | 1u << LLM_J_TUPLE)
#define LLM_JM_LOOP    (1u << LLM_J_LOOP)
#define LLM_JM_CYCLER  (1u << LLM_J_CYCLER)

static const llm_jfunc_t  llm_jm_methods[] = {
    { "get", llm_jm_dict_get, "/key default?", LLM_JM_DICT, 0 },
    { "keys", llm_jm_dict_keys, "", LLM_JM_DICT, 0 },
    { "values", llm_jm_dict_values, "", LLM_JM_DICT, 0 },
    { "items", llm_jm_dict_items, "", LLM_JM_DICT, 0 },
    { "copy", llm_jm_copy, "", LLM_JM_DICT | LLM_JM_LIST, 0 },
    { "index", llm_jm_list_index, "/value start? stop?", LLM_JM_LISTS, 0 },
    { "count", llm_jm_list_count, "/value", LLM_JM_LISTS, 0 },
    { "cycle", llm_jm_loop_cycle, NULL, LLM_JM_LOOP, 0 },
    { "changed", llm_jm_loop_changed, NULL, LLM_JM_LOOP, 0 },
    { "next", llm_jm_cycler_next, "", LLM_JM_CYCLER, 0 },
    { "reset", llm_jm_cycler_reset, "", LLM_JM_CYCLER, 0 },

    { "clear", NULL, NULL, LLM_JM_DICT | LLM_JM_LIST, ~0u },
    { "pop", NULL, NULL, LLM_JM_DICT | LLM_JM_LIST, ~0u },
    { "popitem", NULL, NULL, LLM_JM_DICT, ~0u },
    { "setdefault", NULL, NULL, LLM_JM_DICT, ~0u },
    { "update", NULL, NULL, LLM_JM_DICT, ~0u },
    { "append", NULL, NULL, LLM_JM_LIST, ~0u },
    { "reverse", NULL, NULL, LLM_JM_LIST, ~0u },
    { "insert", NULL, NULL, LLM_JM_LIST, ~0u },
    { "sort", NULL, NULL, LLM_JM_LIST, ~0u },
    { "extend", NULL, NULL, LLM_JM_LIST, ~0u },
    { "remove", NULL, NULL, LLM_JM_LIST, ~0u }
};


static const llm_jfunc_t *
llm_jm_find(const llm_jfunc_t *v, size_t n, unsigned type,
    const llm_js_t *name)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if ((v[i].on & type) && llm_js_is(name, v[i].name)) {
            return &v[i];
        }
    }

    return NULL;
}


const llm_jfunc_t *
llm_jinja_method(const llm_jv_t *obj, const llm_js_t *name)
{
    const llm_jfunc_t  *f;

    if (obj->type != LLM_J_STR) {
        return llm_jm_find(llm_jm_methods, llm_nelems(llm_jm_methods),
                           1u << obj->type, name);
    }

    f = llm_jm_find(llm_jm_search_methods, llm_jm_n_search_methods,
                    1u << LLM_J_STR, name);

    return f ? f : llm_jm_find(llm_jm_string_methods, llm_jm_n_string_methods,
                               1u << LLM_J_STR, name);
}
