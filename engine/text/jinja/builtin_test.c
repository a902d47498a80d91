/*
 * The tests of "x is ...".
 */

#include "engine/text/jinja/builtin.h"


/* how: the types, as bits */

int
llm_jfn_is_type(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int  type;

    (void) rt;
    type = args->v[0].big ? LLM_J_INT : args->v[0].type;
    *res = llm_jv_bool((args->f->how >> type) & 1);

    return LLM_OK;
}


int
llm_jfn_is_bool(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    *res = llm_jv_bool(args->v[0].type == LLM_J_BOOL
                       && args->v[0].u.i == args->f->how);

    return LLM_OK;
}


int
llm_jfn_iterable(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    *res = llm_jv_bool(llm_jv_iterable(&args->v[0]));

    return LLM_OK;
}


int
llm_jfn_callable(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    *res = llm_jv_bool(llm_jv_callable(&args->v[0]));

    return LLM_OK;
}


int
llm_jfn_escaped(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    *res = llm_jv_bool(args->v[0].type == LLM_J_STR
                       && args->v[0].u.s->markup);

    return LLM_OK;
}


/* odd, even and divisibleby; how: the remainder, by the argument or by 2 */

int
llm_jfn_remainder(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int       rc;
    llm_jv_t  by, r, want;

    by = args->n > 1 ? args->v[1] : llm_jv_int(2);
    want = llm_jv_int(args->f->how);

    llm_jtry(llm_jinja_binary(rt, '%', &args->v[0], &by, &r));

    rc = llm_jv_equal(rt, &r, &want);
    *res = llm_jv_bool(rc);

    return rc < 0 ? LLM_ERROR : LLM_OK;
}


/* how: the operator */

int
llm_jfn_relation(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int  rc;

    rc = llm_jinja_relation(rt, args->f->how, &args->v[0], &args->v[1]);
    *res = llm_jv_bool(rc);

    return rc < 0 ? LLM_ERROR : LLM_OK;
}


/* Python's "is", as far as values have an identity here */

int
llm_jfn_sameas(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t  *a, *b;

    a = &args->v[0];
    b = &args->v[1];

    *res = llm_jv_bool(a->type == b->type
                       && ((llm_jv_number(a) || a->type == LLM_J_STR
                            || a->type == LLM_J_NONE)
                           ? llm_jv_equal(rt, a, b) == 1
                           : a->u.list == b->u.list));

    return LLM_OK;
}


int
llm_jfn_is_filter(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    *res = llm_jv_bool(args->v[0].type == LLM_J_STR
                       && llm_jinja_filter(args->v[0].u.s));

    return LLM_OK;
}


int
llm_jfn_is_test(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    *res = llm_jv_bool(args->v[0].type == LLM_J_STR
                       && llm_jinja_test(args->v[0].u.s));

    return LLM_OK;
}
