/*
 * The methods of dictionaries, lists and tuples, and loops.  (Those of
 * strings: builtin_str.c, builtin_find.c, builtin_case.c.)
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


/* the index of a value, or how often it occurs */

int
llm_jfn_index(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int           rc;
    size_t        i;
    llm_jlist_t  *l;

    l = args->v[0].u.list;
    *res = llm_jv_int(0);

    for (i = 0; i < l->n; i++) {
        rc = llm_jv_equal(rt, &l->v[i], &args->v[1]);
        llm_jtry(rc < 0 || llm_jrt_charge(rt, 1) != LLM_OK);

        if (rc && args->f->how == LLM_JF_MUST) {
            *res = llm_jv_int((int64_t) i);
            return LLM_OK;
        }

        res->u.i += rc;
    }

    return args->f->how == LLM_JF_MUST
           ? llm_jrt_fail(rt, "the item is not in the list") : LLM_OK;
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
