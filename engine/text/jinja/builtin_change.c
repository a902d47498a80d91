/*
 * The methods that change a list or a dictionary.  The sandbox of transformers
 * refuses them; templates that were written for other renderers call them all
 * the same (a queue of ids: append and pop).  The changed values belong to the
 * rendering and end with it.
 *
 * A list's memory never shrinks, so code that iterates over the list while it
 * changes reads values that are, or were, in it.
 */

#include "engine/text/jinja/builtin.h"


/* append, extend */

int
llm_jfn_append(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    *res = LLM_J_NONE_V;

    return llm_jlist_push(rt, args->v[0].u.list, &args->v[1]);
}


int
llm_jfn_extend(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t       i;
    llm_jlist_t  more;

    *res = LLM_J_NONE_V;
    llm_jtry(llm_jv_items(rt, &args->v[1], &more));

    for (i = 0; i < more.n; i++) {
        llm_jtry(llm_jlist_push(rt, args->v[0].u.list, &more.v[i]));
    }

    return LLM_OK;
}


int
llm_jfn_insert(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int64_t       at, n;
    llm_jlist_t  *l;

    *res = LLM_J_NONE_V;
    l = args->v[0].u.list;
    n = (int64_t) l->n;
    at = args->v[1].u.i;
    at = at < 0 ? llm_max(at + n, 0) : llm_min(at, n);

    llm_jtry(llm_jrt_charge(rt, (size_t) (n - at)));
    llm_jtry(llm_jlist_push(rt, l, &args->v[2]));

    memmove(&l->v[at + 1], &l->v[at], (size_t) (n - at) * sizeof(llm_jv_t));
    l->v[at] = args->v[2];

    return LLM_OK;
}


static int
llm_jlist_take(llm_jrt_t *rt, llm_jlist_t *l, size_t at)
{
    llm_jtry(llm_jrt_charge(rt, l->n - at));

    memmove(&l->v[at], &l->v[at + 1], (l->n - at - 1) * sizeof(llm_jv_t));
    l->n--;

    return LLM_OK;
}


int
llm_jfn_pop(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int64_t       at;
    llm_jlist_t  *l;

    l = args->v[0].u.list;

    if (l->n == 0) {
        return llm_jrt_fail(rt, "pop from empty list");
    }

    at = llm_jarg_int(args, 1, -1);
    at += at < 0 ? (int64_t) l->n : 0;

    if (at < 0 || at >= (int64_t) l->n) {
        return llm_jrt_fail(rt, "pop index out of range");
    }

    *res = l->v[at];

    return llm_jlist_take(rt, l, (size_t) at);
}


int
llm_jfn_remove_item(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           rc;
    size_t        i;
    llm_jlist_t  *l;

    *res = LLM_J_NONE_V;
    l = args->v[0].u.list;

    for (i = 0; i < l->n; i++) {
        llm_jtry(llm_jrt_charge(rt, 1));
        rc = llm_jv_equal(rt, &l->v[i], &args->v[1]);

        if (rc) {
            return rc > 0 ? llm_jlist_take(rt, l, i) : LLM_ERROR;
        }
    }

    return llm_jrt_fail(rt, "list.remove(x): x not in list");
}


int
llm_jfn_reverse_list(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    *res = LLM_J_NONE_V;
    llm_jtry(llm_jrt_charge(rt, args->v[0].u.list->n));
    llm_jlist_reverse(args->v[0].u.list);

    return LLM_OK;
}


/* clear, of lists and dictionaries */

int
llm_jfn_clear(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    *res = LLM_J_NONE_V;

    if (args->v[0].type == LLM_J_LIST) {
        args->v[0].u.list->n = 0;

    } else {
        llm_jdict_clear(args->v[0].u.dict);
    }

    return LLM_OK;
}


/* copy, of lists and dictionaries */

int
llm_jfn_copy(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    if (args->v[0].type == LLM_J_LIST) {
        llm_jtry(llm_jv_list(rt, LLM_J_LIST, 0, res));
        return llm_jv_items(rt, &args->v[0], res->u.list);
    }

    llm_jtry(llm_jv_dict(rt, LLM_J_DICT, res));

    return llm_jdict_update(rt, res->u.dict, args->v[0].u.dict);
}


/* dictionaries */

int
llm_jfn_update(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    size_t        i;
    llm_jdict_t  *d;

    *res = LLM_J_NONE_V;
    d = args->v[0].u.dict;

    if (args->n > 2 || (args->n == 2 && args->v[1].type != LLM_J_DICT)) {
        return llm_jrt_fail(rt, "update() takes one dict and keyword "
                            "arguments");
    }

    if (args->n == 2) {
        llm_jtry(llm_jdict_update(rt, d, args->v[1].u.dict));
    }

    for (i = 0; i < args->n_kw; i++) {
        llm_jtry(llm_jdict_set(rt, d, &args->kw[i].key, &args->kw[i].value));
    }

    return LLM_OK;
}


int
llm_jfn_setdefault(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t  *found;

    llm_jtry(llm_jdict_get(rt, args->v[0].u.dict, &args->v[1], &found));

    if (found) {
        *res = *found;
        return LLM_OK;
    }

    *res = llm_jv_given(&args->v[2]) ? args->v[2] : LLM_J_NONE_V;

    return llm_jdict_set(rt, args->v[0].u.dict, &args->v[1], res);
}


int
llm_jfn_pop_key(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t  *found;

    llm_jtry(llm_jdict_get(rt, args->v[0].u.dict, &args->v[1], &found));

    if (found == NULL) {
        *res = args->v[2];

        return llm_jv_given(res) ? LLM_OK
               : llm_jrt_fail(rt, "pop(): the key is not in the dict");
    }

    *res = *found;

    return llm_jdict_take(rt, args->v[0].u.dict, found);
}
