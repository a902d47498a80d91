/*
 * Evaluation of expressions.  Values are allocated in the rendering's arena.
 */

#include "engine/text/jinja/ast.h"


llm_jv_t *
llm_jinja_var(llm_jframe_t *f, uint32_t hops, uint32_t slot)
{
    while (hops--) {
        f = f->up;
    }

    return &f->slots[slot];
}


static int
llm_jeval_list(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    llm_jv_t *res)
{
    size_t              count;
    llm_jv_t            v;
    const llm_jnode_t  *p;

    for (count = 0, p = n->a; p; p = p->next) {
        count++;
    }

    llm_jtry(llm_jv_list(rt, n->kind == LLM_JN_LIST ? LLM_J_LIST : LLM_J_TUPLE,
                         count, res));

    for (p = n->a; p; p = p->next) {
        llm_jtry(llm_jinja_eval(rt, f, p, &v));

        res->u.list->v[res->u.list->n++] = v;
    }

    return LLM_OK;
}


static int
llm_jeval_dict(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    llm_jv_t *res)
{
    llm_jv_t            key, value;
    const llm_jnode_t  *p;

    llm_jtry(llm_jv_dict(rt, LLM_J_DICT, res));

    for (p = n->a; p; p = p->next->next) {
        llm_jtry(llm_jinja_eval(rt, f, p, &key));
        llm_jtry(llm_jinja_eval(rt, f, p->next, &value));
        llm_jtry(llm_jdict_set(rt, res->u.dict, &key, &value));
    }

    return LLM_OK;
}


static int
llm_jeval_concat(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    llm_jv_t *res)
{
    llm_jv_t            v, s;
    const llm_jnode_t  *p;

    llm_jtry(llm_jinja_eval(rt, f, n->a, &v));
    llm_jtry(llm_jv_tostr(rt, &v, res));

    for (p = n->a->next; p; p = p->next) {
        llm_jtry(llm_jinja_eval(rt, f, p, &v));
        llm_jtry(llm_jv_tostr(rt, &v, &s));
        llm_jtry(llm_js_concat(rt, res->u.s, s.u.s, res));
    }

    return LLM_OK;
}


/* 1, 0 or LLM_ERROR */

int
llm_jinja_relation(llm_jrt_t *rt, int op, const llm_jv_t *a,
    const llm_jv_t *b)
{
    int   rc, cmp;
    char  text[3] = { (char) (op & 0xff), (char) (op >> 8), '\0' };

    if (op == LLM_JOP_EQ || op == LLM_JOP_NE) {
        rc = llm_jv_equal(rt, a, b);
        return rc < 0 ? rc : rc == (op == LLM_JOP_EQ);
    }

    if (op == LLM_JOP_IN || op == LLM_JOP_NOTIN) {
        rc = llm_jv_contains(rt, b, a);
        return rc < 0 ? rc : rc == (op == LLM_JOP_IN);
    }

    llm_jtry(llm_jv_order(rt, a, b, text, &cmp));

    /* 2: a NaN is neither less nor greater than the other */

    if (cmp == 2 && llm_jv_number(a)) {
        return 0;
    }

    return op == '<' ? cmp < 0 : op == '>' ? cmp > 0
           : op == LLM_JOP_LE ? cmp <= 0 : cmp >= 0;
}


static int
llm_jeval_compare(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    llm_jv_t *res)
{
    int                 rc;
    llm_jv_t            a, b;
    const llm_jnode_t  *p;

    llm_jtry(llm_jinja_eval(rt, f, n->a, &a));

    for (p = n->b; p; p = p->next) {
        llm_jtry(llm_jinja_eval(rt, f, p->a, &b));

        rt->line = p->line;
        rc = llm_jinja_relation(rt, p->op, &a, &b);

        if (rc < 0) {
            return LLM_ERROR;
        }

        *res = llm_jv_bool(rc);

        if (rc == 0) {
            break;
        }

        a = b;
    }

    return LLM_OK;
}


static int
llm_jeval_slice(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    llm_jv_t *res)
{
    size_t              i;
    llm_jv_t            obj, v[3];
    const llm_jnode_t  *bounds[3] = { n->b, n->c, n->d };

    llm_jtry(llm_jinja_eval(rt, f, n->a, &obj));

    for (i = 0; i < 3; i++) {
        v[i] = LLM_J_NONE_V;

        llm_jtry(bounds[i] && llm_jinja_eval(rt, f, bounds[i], &v[i]));
    }

    rt->line = n->line;

    return llm_jinja_slice(rt, &obj, &v[0], &v[1], &v[2], res);
}


/* *args and **kwargs */

static int
llm_jeval_star(llm_jrt_t *rt, const llm_jv_t *v, llm_jlist_t *pos)
{
    size_t       i;
    llm_jlist_t  items;

    llm_jtry(llm_jv_items(rt, v, &items));

    for (i = 0; i < items.n; i++) {
        llm_jtry(llm_jlist_push(rt, pos, &items.v[i]));
    }

    return LLM_OK;
}


static int
llm_jeval_starstar(llm_jrt_t *rt, const llm_jv_t *v, llm_jdict_t *kw)
{
    size_t        i, n;
    llm_jpair_t  *p;

    if (v->type != LLM_J_DICT) {
        return llm_jrt_fail(rt, "argument after ** must be a mapping, not %s",
                            llm_jv_type(v));
    }

    for (i = 0; i < v->u.dict->n; i++) {
        p = &v->u.dict->v[i];

        if (p->key.type != LLM_J_STR) {
            return llm_jrt_fail(rt, "keywords must be strings");
        }

        n = kw->n;
        llm_jtry(llm_jdict_set(rt, kw, &p->key, &p->value));

        if (kw->n == n) {
            return llm_jrt_fail(rt, "got multiple values for a keyword "
                                "argument");
        }
    }

    return LLM_OK;
}


int
llm_jinja_eval_args(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *list,
    const llm_jmacro_t *caller, llm_jargs_t *args)
{
    int                 rc;
    llm_jv_t            v, key;
    llm_jlist_t         pos;
    llm_jdict_t         kw;
    const llm_jnode_t  *p;

    memset(&pos, 0, sizeof(pos));
    memset(&kw, 0, sizeof(kw));

    for (p = list; p; p = p->next) {
        llm_jtry(llm_jinja_eval(rt, f, p->kind == LLM_JN_KEYWORD
                                || p->kind == LLM_JN_STAR
                                || p->kind == LLM_JN_STARSTAR ? p->a : p, &v));

        switch (p->kind) {

        case LLM_JN_KEYWORD:
            rc = llm_jdict_set(rt, &kw, &p->value, &v);
            break;

        case LLM_JN_STAR:
            rc = llm_jeval_star(rt, &v, &pos);
            break;

        case LLM_JN_STARSTAR:
            rc = llm_jeval_starstar(rt, &v, &kw);
            break;

        default:
            rc = llm_jlist_push(rt, &pos, &v);
            break;
        }

        llm_jtry(rc);
    }

    if (caller) {
        v = llm_jv_of(LLM_J_MACRO);
        v.u.macro = (llm_jmacro_t *) caller;

        llm_jtry(llm_js_lit(rt, "caller", &key));
        llm_jtry(llm_jdict_set(rt, &kw, &key, &v));
    }

    args->v = pos.v;
    args->n = pos.n;
    args->kw = kw.v;
    args->n_kw = kw.n;

    return LLM_OK;
}


static int
llm_jeval_call(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    llm_jv_t *res)
{
    llm_jv_t     callee;
    llm_jargs_t  args;

    llm_jtry(llm_jinja_eval(rt, f, n->a, &callee));
    llm_jtry(llm_jinja_eval_args(rt, f, n->b, NULL, &args));

    rt->line = n->line;

    return llm_jinja_call(rt, &callee, &args, res);
}


/* applies a filter or a test to a subject */

static int
llm_jeval_apply(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    const llm_jv_t *subject, llm_jv_t *res)
{
    llm_jargs_t  args;

    if (n->func == NULL) {
        rt->line = n->line;

        return llm_jrt_fail(rt, "No %s named '%.*s' found.",
                            n->kind == LLM_JN_FILTER ? "filter" : "test",
                            (int) llm_min(n->value.u.s->len, 40),
                            llm_js_data(n->value.u.s));
    }

    llm_jtry(llm_jinja_eval_args(rt, f, n->b, NULL, &args));

    rt->line = n->line;

    return llm_jinja_call_func(rt, n->func, subject, &args, res);
}


int
llm_jinja_eval_filter_chain(llm_jrt_t *rt, llm_jframe_t *f,
    const llm_jnode_t *n, llm_jv_t *v)
{
    llm_jv_t  subject;

    llm_jtry(n->a && llm_jinja_eval_filter_chain(rt, f, n->a, v));

    subject = *v;

    return llm_jeval_apply(rt, f, n, &subject, v);
}


static int
llm_jeval_filter(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    llm_jv_t *res)
{
    llm_jv_t  subject;

    llm_jtry(llm_jinja_eval(rt, f, n->a, &subject));

    return llm_jeval_apply(rt, f, n, &subject, res);
}


static int
llm_jeval_access(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    llm_jv_t *res)
{
    llm_jv_t  obj, index;

    llm_jtry(llm_jinja_eval(rt, f, n->a, &obj));

    if (n->kind == LLM_JN_GETATTR) {
        rt->line = n->line;
        return llm_jinja_getattr(rt, &obj, &n->value, res);
    }

    llm_jtry(llm_jinja_eval(rt, f, n->b, &index));

    rt->line = n->line;

    return llm_jinja_getitem(rt, &obj, &index, res);
}


static int
llm_jeval_binary(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    llm_jv_t *res)
{
    llm_jv_t  a, b;

    llm_jtry(llm_jinja_eval(rt, f, n->a, &a));
    llm_jtry(llm_jinja_eval(rt, f, n->b, &b));

    rt->line = n->line;

    return llm_jinja_binary(rt, n->op, &a, &b, res);
}


static int
llm_jeval_unary(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    llm_jv_t *res)
{
    llm_jv_t  a;

    llm_jtry(llm_jinja_eval(rt, f, n->a, &a));

    if (n->kind == LLM_JN_NOT) {
        *res = llm_jv_bool(!llm_jv_truth(&a));
        return LLM_OK;
    }

    rt->line = n->line;

    return llm_jinja_unary(rt, n->op, &a, res);
}


static int
llm_jeval_logic(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    llm_jv_t *res)
{
    llm_jtry(llm_jinja_eval(rt, f, n->a, res));

    if (llm_jv_truth(res) == (n->kind == LLM_JN_OR)) {
        return LLM_OK;
    }

    return llm_jinja_eval(rt, f, n->b, res);
}


static int
llm_jeval_cond(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    llm_jv_t *res)
{
    llm_jv_t  test;

    llm_jtry(llm_jinja_eval(rt, f, n->a, &test));

    if (llm_jv_truth(&test)) {
        return llm_jinja_eval(rt, f, n->b, res);
    }

    if (n->c) {
        return llm_jinja_eval(rt, f, n->c, res);
    }

    return llm_jv_undef(rt, "the inline if-expression evaluated to false and "
                        "no else section was defined.", res);
}


typedef int (*llm_jeval_pt)(llm_jrt_t *rt, llm_jframe_t *f,
    const llm_jnode_t *n, llm_jv_t *res);

static const llm_jeval_pt  llm_jevals[LLM_J_N_KINDS] = {
    [LLM_JN_TUPLE] = llm_jeval_list,
    [LLM_JN_LIST] = llm_jeval_list,
    [LLM_JN_DICT] = llm_jeval_dict,
    [LLM_JN_COND] = llm_jeval_cond,
    [LLM_JN_AND] = llm_jeval_logic,
    [LLM_JN_OR] = llm_jeval_logic,
    [LLM_JN_NOT] = llm_jeval_unary,
    [LLM_JN_UNARY] = llm_jeval_unary,
    [LLM_JN_BINARY] = llm_jeval_binary,
    [LLM_JN_CONCAT] = llm_jeval_concat,
    [LLM_JN_COMPARE] = llm_jeval_compare,
    [LLM_JN_GETATTR] = llm_jeval_access,
    [LLM_JN_GETITEM] = llm_jeval_access,
    [LLM_JN_SLICE] = llm_jeval_slice,
    [LLM_JN_CALL] = llm_jeval_call,
    [LLM_JN_FILTER] = llm_jeval_filter,
    [LLM_JN_TEST] = llm_jeval_filter
};


int
llm_jinja_eval(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    llm_jv_t *res)
{
    int  rc;

    llm_jtry(llm_jrt_charge(rt, 1));

    if (n->kind == LLM_JN_CONST) {
        *res = n->value;
        return LLM_OK;
    }

    if (n->kind == LLM_JN_NAME) {
        *res = *llm_jinja_var(f, n->hops, n->slot);

        return llm_jv_given(res) ? LLM_OK
               : llm_jv_undef_of(rt, NULL, &n->value, res);
    }

    rt->line = n->line;
    llm_jtry(llm_jrt_enter(rt));
    rc = llm_jevals[n->kind](rt, f, n, res);
    llm_jrt_leave(rt);

    return rc;
}
