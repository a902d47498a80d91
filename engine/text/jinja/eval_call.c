/*
 * Calls: binds arguments to parameters, and calls functions of all kinds.  See
 * llm_jfunc_t for the form of a builtin's parameters.
 */

#include "engine/text/jinja/value.h"

#include <stdio.h>

typedef struct {
    const char  *name;
    size_t       len;
    char         type;                  /* type letter; 0: any */
    int          optional;
} llm_jparam_t;


/* reads the next parameter of the list; returns 0 at its end */

static int
llm_jcall_param(const char **list, llm_jparam_t *p)
{
    size_t  n;

    n = strcspn(*list, " ");
    if (n == 0) {
        return 0;
    }

    p->name = *list;
    p->len = strcspn(*list, ":? ");
    p->type = p->name[p->len] == ':' ? p->name[p->len + 1] : 0;
    p->optional = p->name[n - 1] == '?';

    *list += n;
    *list += **list == ' ';

    return 1;
}


/* converts an argument to the parameter's type */

static int
llm_jcall_convert(llm_jrt_t *rt, const llm_jfunc_t *f, char type, llm_jv_t *v)
{
    llm_jv_t  given;

    if ((type == 'I' || type == 'S') && v->type == LLM_J_NONE) {
        *v = llm_jv_of(LLM_J_MISSING);
    }

    if (type == 0 || !llm_jv_given(v)) {
        return LLM_OK;
    }

    if (type == 't') {
        given = *v;
        return llm_jv_tostr(rt, &given, v);
    }

    if (type == 'i' || type == 'I') {
        if (v->type == LLM_J_UNDEF) {
            return llm_jv_undef_fail(rt, v);
        }

        return llm_jv_integral(v) ? LLM_OK
               : llm_jrt_fail(rt, "%s: '%s' object cannot be interpreted as "
                              "an integer", f->name, llm_jv_type(v));
    }

    return v->type == LLM_J_STR ? LLM_OK
           : llm_jrt_fail(rt, "%s: expected a string, not %s", f->name,
                          llm_jv_type(v));
}


/* the index of a parameter in the list, or -1 */

static int
llm_jcall_place(const char *list, const llm_js_t *name)
{
    int           i;
    llm_jparam_t  p;

    for (i = 0; llm_jcall_param(&list, &p); i++) {
        if (name->len == p.len
            && memcmp(llm_js_data(name), p.name, p.len) == 0)
        {
            return i;
        }
    }

    return -1;
}


static int
llm_jcall_keywords(llm_jrt_t *rt, const llm_jfunc_t *f,
    const llm_jargs_t *args, llm_jv_t *v)
{
    int              place;
    size_t           i;
    const llm_js_t  *name;

    for (i = 0; i < args->n_kw; i++) {
        name = args->kw[i].key.u.s;
        place = f->params[0] == '/' ? -1 : llm_jcall_place(f->params, name);

        if (place < 0 || llm_jv_given(&v[place])) {
            return llm_jrt_fail(rt, place < 0
                                ? "%s() got an unexpected keyword argument "
                                  "'%.*s'"
                                : "%s() got multiple values for argument "
                                  "'%.*s'", f->name,
                                (int) llm_min(name->len, 60),
                                llm_js_data(name));
        }

        v[place] = args->kw[i].value;
    }

    return LLM_OK;
}


/* puts args in the order of the parameters */

static int
llm_jcall_bind(llm_jrt_t *rt, const llm_jfunc_t *f, const llm_jargs_t *args,
    llm_jv_t *v, size_t *n)
{
    size_t         i;
    const char    *list, *params;
    llm_jparam_t   p;

    params = f->params + (f->params[0] == '/');

    for (i = 0, list = params; llm_jcall_param(&list, &p); i++) {
        v[i] = i < args->n ? args->v[i] : llm_jv_of(LLM_J_MISSING);
    }

    *n = i;

    if (args->n > i) {
        return llm_jrt_fail(rt, "%s() takes at most %zu argument(s) (%zu "
                            "given)", f->name, i, args->n);
    }

    llm_jtry(llm_jcall_keywords(rt, f, args, v));

    for (i = 0, list = params; llm_jcall_param(&list, &p); i++) {
        if (!p.optional && !llm_jv_given(&v[i])) {
            return llm_jrt_fail(rt, "%s() missing required argument: '%.*s'",
                                f->name, (int) p.len, p.name);
        }

        llm_jtry(llm_jcall_convert(rt, f, p.type, &v[i]));
    }

    return LLM_OK;
}


int
llm_jinja_call_func(llm_jrt_t *rt, const llm_jfunc_t *f,
    const llm_jv_t *subject, const llm_jargs_t *args, llm_jv_t *res)
{
    size_t       n;
    llm_jv_t     v[LLM_J_MAX_PARAMS];
    llm_jargs_t  bound;

    llm_jtry(llm_jrt_charge(rt, 1));

    memset(&bound, 0, sizeof(bound));
    bound.f = f;
    bound.v = v;
    n = subject != NULL;

    if (f->params == NULL) {
        bound = *args;
        bound.f = f;
        llm_jnew(rt, bound.v, (args->n + 1) * sizeof(llm_jv_t));

        if (args->n) {
            memcpy(bound.v + n, args->v, args->n * sizeof(llm_jv_t));
        }

    } else if (llm_jcall_bind(rt, f, args, v + n, &bound.n) != LLM_OK) {
        return LLM_ERROR;
    }

    bound.n += n;

    if (subject) {
        bound.v[0] = *subject;

        llm_jtry((f->on == LLM_J_PLAIN || (f->on == LLM_J_TEXT
                                           && subject->type != LLM_J_STR))
                 && llm_jv_tostr(rt, subject, &bound.v[0]));
    }

    return f->fn(rt, &bound, res);
}


int
llm_jinja_call(llm_jrt_t *rt, const llm_jv_t *callee, const llm_jargs_t *args,
    llm_jv_t *res)
{
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
        if (callee->u.joiner->used) {
            *res = callee->u.joiner->sep;
            return LLM_OK;
        }

        callee->u.joiner->used = 1;

        return llm_js_lit(rt, "", res);

    case LLM_J_UNDEF:
        return llm_jv_undef_fail(rt, callee);

    default:
        return llm_jrt_fail(rt, "'%s' object is not callable",
                            llm_jv_type(callee));
    }
}
