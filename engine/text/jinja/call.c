/*
 * Calls: arguments to parameters, and dispatch on what is called.  A
 * builtin's parameters are a string, "a b? c?" (? is optional).
 */

#include "engine/text/jinja/value.h"

#include <stdio.h>


int
llm_jarg_int(llm_jrt_t *rt, const llm_jv_t *v, const char *what, int64_t *res)
{
    if (v->type == LLM_J_UNDEF) {
        return llm_jv_undef_fail(rt, v);
    }

    if (!llm_jv_integral(v)) {
        return llm_jrt_fail(rt, "%s: '%s' object cannot be interpreted as an "
                            "integer", what, llm_jv_type(v));
    }

    *res = v->u.i;

    return LLM_OK;
}


int
llm_jarg_str(llm_jrt_t *rt, const llm_jv_t *v, const char *what,
    llm_js_t **res)
{
    if (v->type != LLM_J_STR) {
        return llm_jrt_fail(rt, "%s: expected a string, not %s", what,
                            llm_jv_type(v));
    }

    *res = v->u.s;

    return LLM_OK;
}


/* the place of a parameter's name in the list, or -1 */

static int
llm_jcall_param(const char *params, const llm_js_t *name)
{
    int     i;
    size_t  n;

    for (i = 0; *params; i++) {
        n = strcspn(params, "? ");

        if (name->len == n && memcmp(llm_js_data(name), params, n) == 0) {
            return i;
        }

        params += n;
        params += strspn(params, "? ");
    }

    return -1;
}


static int
llm_jcall_keywords(llm_jrt_t *rt, const llm_jfunc_t *f, const char *params,
    const llm_jargs_t *args, llm_jv_t *v)
{
    int              place;
    size_t           i;
    const llm_js_t  *name;

    for (i = 0; i < args->n_kw; i++) {
        name = args->kw[i].key.u.s;
        place = params == f->params ? llm_jcall_param(params, name) : -1;

        if (place < 0) {
            return llm_jrt_fail(rt, "%s() got an unexpected keyword argument "
                                "'%.*s'", f->name,
                                (int) llm_min(name->len, 60),
                                llm_js_data(name));
        }

        if (llm_jv_given(&v[place])) {
            return llm_jrt_fail(rt, "%s() got multiple values for argument "
                                "'%.*s'", f->name, (int) name->len,
                                llm_js_data(name));
        }

        v[place] = args->kw[i].value;
    }

    return LLM_OK;
}


/* args in the order of the parameters, behind the subject if there is one */

static int
llm_jcall_bind(llm_jrt_t *rt, const llm_jfunc_t *f, const llm_jv_t *subject,
    const llm_jargs_t *args, llm_jv_t *v, size_t *n)
{
    size_t       i, len;
    llm_jv_t    *param;
    const char  *params, *p;

    memset(v, 0, LLM_J_MAX_PARAMS * sizeof(llm_jv_t));

    param = v;

    if (subject) {
        *param++ = *subject;
    }

    params = f->params + (f->params[0] == '/');
    p = params;

    for (i = 0; *p; i++) {
        len = strcspn(p, " ");

        if (i < args->n) {
            param[i] = args->v[i];
        }

        p += len;
        p += *p == ' ';
    }

    if (args->n > i) {
        return llm_jrt_fail(rt, "%s() takes at most %zu argument(s) (%zu "
                            "given)", f->name, i, args->n);
    }

    *n = i + (size_t) (param - v);

    if (llm_jcall_keywords(rt, f, params, args, param) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0, p = params; *p; i++) {
        len = strcspn(p, " ");

        if (p[len - 1] != '?' && !llm_jv_given(&param[i])) {
            return llm_jrt_fail(rt, "%s() missing required argument: '%.*s'",
                                f->name, (int) len, p);
        }

        p += len;
        p += *p == ' ';
    }

    return LLM_OK;
}


int
llm_jinja_call_func(llm_jrt_t *rt, const llm_jfunc_t *f,
    const llm_jv_t *subject, const llm_jargs_t *args, llm_jv_t *res)
{
    size_t       extra;
    llm_jv_t     v[LLM_J_MAX_PARAMS];
    llm_jargs_t  none, bound;

    if (llm_jrt_charge(rt, 1) != LLM_OK) {
        return LLM_ERROR;
    }

    memset(&none, 0, sizeof(none));
    args = args ? args : &none;

    if (f->params) {
        bound = none;
        bound.v = v;

        if (llm_jcall_bind(rt, f, subject, args, v, &bound.n) != LLM_OK) {
            return LLM_ERROR;
        }

        return f->fn(rt, &bound, res);
    }

    bound = *args;
    extra = subject != NULL;

    if (subject) {
        bound.v = llm_jrt_alloc(rt, (args->n + 1) * sizeof(llm_jv_t));
        if (bound.v == NULL) {
            return LLM_ERROR;
        }

        bound.v[0] = *subject;

        if (args->n) {
            memcpy(bound.v + 1, args->v, args->n * sizeof(llm_jv_t));
        }
    }

    bound.n = args->n + extra;

    return f->fn(rt, &bound, res);
}


int
llm_jinja_call(llm_jrt_t *rt, const llm_jv_t *callee, const llm_jargs_t *args,
    llm_jv_t *res)
{
    llm_jcycle_t  *j;

    switch (callee->type) {

    case LLM_J_MACRO:
        return llm_jinja_call_macro(rt, callee->u.macro, args, res);

    case LLM_J_FUNC:
        return llm_jinja_call_func(rt, callee->u.func, NULL, args, res);

    case LLM_J_METHOD:
        return llm_jinja_call_func(rt, callee->u.bound->func,
                                   &callee->u.bound->self, args, res);

    case LLM_J_LOOP:
        return llm_jinja_call_loop(rt, callee->u.loop, args, res);

    case LLM_J_JOINER:
        j = callee->u.cycle;

        if (j->pos++) {
            *res = j->items.v[0];
            return LLM_OK;
        }

        return llm_js_lit(rt, "", res);

    case LLM_J_UNDEF:
        return llm_jv_undef_fail(rt, callee);

    default:
        return llm_jrt_fail(rt, "'%s' object is not callable",
                            llm_jv_type(callee));
    }
}
