/*
 * The methods of dictionaries, lists and tuples, loops and cyclers.  (Those
 * of strings: builtin_str.c, builtin_find.c, builtin_case.c.)
 */

#include "engine/text/jinja/builtin.h"


int
llm_jfn_get(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t  *found;

    llm_jtry(llm_jdict_get(rt, args->v[0].u.dict, &args->v[1], &found));

    *res = found ? *found
           : llm_jv_given(&args->v[2]) ? args->v[2] : LLM_J_NONE_V;

    return LLM_OK;
}


/* keys, values, items */

int
llm_jfn_view(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    *res = llm_jv_of(LLM_J_VIEW);
    llm_jnew(rt, res->u.view, sizeof(llm_jview_t));

    res->u.view->dict = args->v[0].u.dict;
    res->u.view->kind = (llm_jview_kind_t) args->f->how;

    return LLM_OK;
}


int
llm_jfn_index(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           rc;
    int64_t       i, to;
    llm_jlist_t  *l;

    l = args->v[0].u.list;
    llm_jarg_range(args, 2, (int64_t) l->n, &i, &to);

    for ( /* void */ ; i < to; i++) {
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


int
llm_jfn_count(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           rc;
    size_t        i;
    llm_jlist_t  *l;

    l = args->v[0].u.list;
    *res = llm_jv_int(0);

    for (i = 0; i < l->n; i++) {
        rc = llm_jv_equal(rt, &l->v[i], &args->v[1]);

        if (rc < 0 || llm_jrt_charge(rt, 1) != LLM_OK) {
            return LLM_ERROR;
        }

        res->u.i += rc;
    }

    return LLM_OK;
}


int
llm_jfn_cycle(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    if (args->n < 2) {
        return llm_jrt_fail(rt, "no items for cycling given");
    }

    *res = args->v[1 + (size_t) args->v[0].u.loop->index0 % (args->n - 1)];

    return LLM_OK;
}


int
llm_jfn_changed(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           rc;
    llm_jv_t      now;
    llm_jloop_t  *loop;

    loop = args->v[0].u.loop;

    llm_jtry(llm_jv_list(rt, LLM_J_TUPLE, args->n, &now));

    now.u.list->n = args->n - 1;
    memcpy(now.u.list->v, args->v + 1, now.u.list->n * sizeof(llm_jv_t));

    rc = llm_jv_equal(rt, &loop->changed, &now);
    loop->changed = rc == 0 ? now : loop->changed;
    *res = llm_jv_bool(!rc);

    return rc < 0 ? LLM_ERROR : LLM_OK;
}


int
llm_jfn_next(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jcycle_t  *c;

    (void) rt;
    c = args->v[0].u.cycle;
    *res = c->items.v[c->pos];
    c->pos = (c->pos + 1) % c->items.n;

    return LLM_OK;
}


int
llm_jfn_reset(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    args->v[0].u.cycle->pos = 0;
    *res = LLM_J_NONE_V;

    return LLM_OK;
}
