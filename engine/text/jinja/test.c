/*
 * The tests of "x is ...".
 */

#include "engine/text/jinja/ast.h"


static int
llm_jtest_type(llm_jargs_t *args, unsigned types, llm_jv_t *res)
{
    *res = llm_jv_bool((types >> args->v[0].type) & 1);

    return LLM_OK;
}


#define llm_jtest_of_type(name, types)                                       \
                                                                             \
static int                                                                   \
llm_jtest_ ## name(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)          \
{                                                                            \
    (void) rt;                                                               \
                                                                             \
    return llm_jtest_type(args, types, res);                                 \
}

llm_jtest_of_type(undefined, 1u << LLM_J_UNDEF)
llm_jtest_of_type(defined, ~(1u << LLM_J_UNDEF))
llm_jtest_of_type(none, 1u << LLM_J_NONE)
llm_jtest_of_type(string, 1u << LLM_J_STR)
llm_jtest_of_type(boolean, 1u << LLM_J_BOOL)
llm_jtest_of_type(integer, 1u << LLM_J_INT)
llm_jtest_of_type(float, 1u << LLM_J_FLOAT)
llm_jtest_of_type(mapping, 1u << LLM_J_DICT)
llm_jtest_of_type(number, 1u << LLM_J_BOOL | 1u << LLM_J_INT
                          | 1u << LLM_J_FLOAT)
llm_jtest_of_type(sequence, 1u << LLM_J_STR | 1u << LLM_J_LIST
                            | 1u << LLM_J_TUPLE | 1u << LLM_J_DICT
                            | 1u << LLM_J_RANGE | 1u << LLM_J_UNDEF)


static int
llm_jtest_true(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    *res = llm_jv_bool(args->v[0].type == LLM_J_BOOL && args->v[0].u.i);

    return LLM_OK;
}


static int
llm_jtest_false(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    *res = llm_jv_bool(args->v[0].type == LLM_J_BOOL && !args->v[0].u.i);

    return LLM_OK;
}


static int
llm_jtest_iterable(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    *res = llm_jv_bool(llm_jv_iterable(&args->v[0]));

    return LLM_OK;
}


static int
llm_jtest_callable(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    *res = llm_jv_bool(llm_jv_callable(&args->v[0]));

    return LLM_OK;
}


static int
llm_jtest_escaped(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    (void) rt;
    *res = llm_jv_bool(args->v[0].type == LLM_J_STR
                       && args->v[0].u.s->markup);

    return LLM_OK;
}


/* is the remainder of v[0] by num this? */

static int
llm_jtest_remainder(llm_jrt_t *rt, llm_jargs_t *args, const llm_jv_t *num,
    int64_t want, llm_jv_t *res)
{
    int       rc;
    llm_jv_t  r, w;

    if (llm_jinja_binary(rt, '%', &args->v[0], num, &r) != LLM_OK) {
        return LLM_ERROR;
    }

    w = llm_jv_int(want);
    rc = llm_jv_equal(rt, &r, &w);
    *res = llm_jv_bool(rc);

    return rc < 0 ? LLM_ERROR : LLM_OK;
}


static int
llm_jtest_odd(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t  two = llm_jv_int(2);

    return llm_jtest_remainder(rt, args, &two, 1, res);
}


static int
llm_jtest_even(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t  two = llm_jv_int(2);

    return llm_jtest_remainder(rt, args, &two, 0, res);
}


static int
llm_jtest_divisibleby(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jtest_remainder(rt, args, &args->v[1], 0, res);
}


static int
llm_jtest_relation(llm_jrt_t *rt, llm_jargs_t *args, int op, llm_jv_t *res)
{
    int  rc;

    rc = llm_jinja_relation(rt, op, &args->v[0], &args->v[1]);
    *res = llm_jv_bool(rc);

    return rc < 0 ? LLM_ERROR : LLM_OK;
}


#define llm_jtest_of_relation(name, op)                                      \
                                                                             \
static int                                                                   \
llm_jtest_ ## name(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)          \
{                                                                            \
    return llm_jtest_relation(rt, args, op, res);                            \
}

llm_jtest_of_relation(eq, LLM_JOP_EQ)
llm_jtest_of_relation(ne, LLM_JOP_NE)
llm_jtest_of_relation(lt, '<')
llm_jtest_of_relation(le, LLM_JOP_LE)
llm_jtest_of_relation(gt, '>')
llm_jtest_of_relation(ge, LLM_JOP_GE)
llm_jtest_of_relation(in, LLM_JOP_IN)


/* Python's "is", as far as values here have an identity */

static int
llm_jtest_sameas(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_jv_t  *a, *b;

    a = &args->v[0];
    b = &args->v[1];

    if (a->type != b->type) {
        *res = llm_jv_bool(0);
        return LLM_OK;
    }

    *res = llm_jv_bool((llm_jv_number(a) || a->type == LLM_J_STR
                        || a->type == LLM_J_NONE)
                       ? llm_jv_equal(rt, a, b) == 1
                       : a->u.list == b->u.list);

    return LLM_OK;
}


static int
llm_jtest_case(llm_jrt_t *rt, llm_jargs_t *args, const char *method,
    llm_jv_t *res)
{
    llm_jv_t            s, name;
    const llm_jfunc_t  *f;

    if (llm_jv_tostr(rt, &args->v[0], &s) != LLM_OK
        || llm_js_lit(rt, method, &name) != LLM_OK)
    {
        return LLM_ERROR;
    }

    f = llm_jinja_method(&s, name.u.s);

    return llm_jinja_call_func(rt, f, &s, NULL, res);
}


static int
llm_jtest_lower(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jtest_case(rt, args, "islower", res);
}


static int
llm_jtest_upper(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_jtest_case(rt, args, "isupper", res);
}


static int
llm_jtest_filter(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_js_t  *s;

    (void) rt;
    s = args->v[0].u.s;

    *res = llm_jv_bool(args->v[0].type == LLM_J_STR
                       && llm_jinja_filter(llm_js_data(s), s->len));

    return LLM_OK;
}


static int
llm_jtest_test(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    llm_js_t  *s;

    (void) rt;
    s = args->v[0].u.s;

    *res = llm_jv_bool(args->v[0].type == LLM_J_STR
                       && llm_jinja_test(llm_js_data(s), s->len));

    return LLM_OK;
}


static const llm_jfunc_t  llm_jtests[] = {
    { "defined", llm_jtest_defined, "", 0, 0 },
    { "undefined", llm_jtest_undefined, "", 0, 0 },
    { "none", llm_jtest_none, "", 0, 0 },
    { "string", llm_jtest_string, "", 0, 0 },
    { "boolean", llm_jtest_boolean, "", 0, 0 },
    { "true", llm_jtest_true, "", 0, 0 },
    { "false", llm_jtest_false, "", 0, 0 },
    { "integer", llm_jtest_integer, "", 0, 0 },
    { "float", llm_jtest_float, "", 0, 0 },
    { "number", llm_jtest_number, "", 0, 0 },
    { "mapping", llm_jtest_mapping, "", 0, 0 },
    { "sequence", llm_jtest_sequence, "", 0, 0 },
    { "iterable", llm_jtest_iterable, "", 0, 0 },
    { "callable", llm_jtest_callable, "", 0, 0 },
    { "sameas", llm_jtest_sameas, "other", 0, 0 },
    { "escaped", llm_jtest_escaped, "", 0, 0 },
    { "in", llm_jtest_in, "seq", 0, 0 },
    { "odd", llm_jtest_odd, "", 0, 0 },
    { "even", llm_jtest_even, "", 0, 0 },
    { "divisibleby", llm_jtest_divisibleby, "num", 0, 0 },
    { "lower", llm_jtest_lower, "", 0, 0 },
    { "upper", llm_jtest_upper, "", 0, 0 },
    { "filter", llm_jtest_filter, "", 0, 0 },
    { "test", llm_jtest_test, "", 0, 0 },
    { "==", llm_jtest_eq, "/b", 0, 0 },
    { "eq", llm_jtest_eq, "/b", 0, 0 },
    { "equalto", llm_jtest_eq, "/b", 0, 0 },
    { "!=", llm_jtest_ne, "/b", 0, 0 },
    { "ne", llm_jtest_ne, "/b", 0, 0 },
    { ">", llm_jtest_gt, "/b", 0, 0 },
    { "gt", llm_jtest_gt, "/b", 0, 0 },
    { "greaterthan", llm_jtest_gt, "/b", 0, 0 },
    { ">=", llm_jtest_ge, "/b", 0, 0 },
    { "ge", llm_jtest_ge, "/b", 0, 0 },
    { "<", llm_jtest_lt, "/b", 0, 0 },
    { "lt", llm_jtest_lt, "/b", 0, 0 },
    { "lessthan", llm_jtest_lt, "/b", 0, 0 },
    { "<=", llm_jtest_le, "/b", 0, 0 },
    { "le", llm_jtest_le, "/b", 0, 0 }
};


const llm_jfunc_t *
llm_jinja_test(const char *name, size_t len)
{
    size_t  i;

    for (i = 0; i < llm_nelems(llm_jtests); i++) {
        if (strlen(llm_jtests[i].name) == len
            && memcmp(llm_jtests[i].name, name, len) == 0)
        {
            return &llm_jtests[i];
        }
    }

    return NULL;
}
