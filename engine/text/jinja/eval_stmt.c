/*
 * Execution of statements, macros included (loops: loop.c).  Output goes to
 * rt->out; blocks that capture their output replace rt->out meanwhile.
 */

#include "engine/text/jinja/ast.h"


int
llm_jframe_new(llm_jrt_t *rt, const llm_jscope_t *s, llm_jframe_t *up,
    llm_jframe_t **f)
{
    size_t  size;

    size = sizeof(llm_jframe_t) + s->n * sizeof(llm_jv_t);
    llm_jnew(rt, *f, size);

    memset(*f, 0, size);
    (*f)->up = up;

    return LLM_OK;
}


int
llm_jframe_enter(llm_jrt_t *rt, const llm_jscope_t *s, llm_jframe_t *f)
{
    uint32_t            i;
    llm_jv_t           *found;
    const llm_jvar_t   *slot;

    for (i = 0; i < s->n; i++) {
        slot = &s->v[i];

        switch (slot->init) {

        case LLM_JS_PARAM:
            break;

        case LLM_JS_UNSET:
            f->slots[i] = llm_jv_of(LLM_J_MISSING);
            break;

        case LLM_JS_ALIAS:
            f->slots[i] = *llm_jinja_var(f, slot->hops, slot->slot);
            break;

        case LLM_JS_RESOLVE:
            found = llm_jdict_gets(rt->context, slot->name.u.s);
            f->slots[i] = found ? *found : llm_jv_of(LLM_J_MISSING);
            break;
        }
    }

    return llm_jrt_charge(rt, s->n);
}


/* assignment */

static int
llm_jexec_assign_tuple(llm_jrt_t *rt, llm_jframe_t *f,
    const llm_jnode_t *target, const llm_jv_t *v, int export)
{
    size_t              n;
    llm_jlist_t         items;
    const llm_jnode_t  *p;

    llm_jtry(llm_jv_items(rt, v, &items));

    for (n = 0, p = target->a; p; p = p->next) {
        n++;
    }

    if (items.n != n) {
        return llm_jrt_fail(rt, items.n > n
                            ? "too many values to unpack (expected %zu)"
                            : "not enough values to unpack (expected %zu, "
                              "got %zu)", n, items.n);
    }

    for (n = 0, p = target->a; p; p = p->next, n++) {
        llm_jtry(llm_jinja_assign(rt, f, p, &items.v[n], export));
    }

    return LLM_OK;
}


int
llm_jinja_assign(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *target,
    const llm_jv_t *v, int export)
{
    llm_jv_t  *slot;

    if (target->kind == LLM_JN_TUPLE) {
        return llm_jexec_assign_tuple(rt, f, target, v, export);
    }

    slot = llm_jinja_var(f, target->hops, target->slot);

    if (target->kind == LLM_JN_NSREF) {
        /* jinja2 refuses dicts, too; but templates for other renderers store
           values in messages this way */

        if (slot->type == LLM_J_DICT) {
            return llm_jdict_set(rt, slot->u.dict, &target->attr, v);
        }

        if (slot->type != LLM_J_NS) {
            return llm_jrt_fail(rt, "cannot assign attribute on "
                                "non-namespace object");
        }

        return llm_jinja_ns_set(rt, slot, &target->attr, v);
    }

    *slot = *v;

    if (export) {
        return llm_jdict_set(rt, rt->context, &target->value, v);
    }

    return LLM_OK;
}


/* runs a body and keeps its output: rt->out is a separate builder meanwhile */

static int
llm_jexec_capture(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *body,
    llm_jv_t *res)
{
    int       rc;
    llm_jb_t  b, *out;

    llm_jb_init(&b, rt, rt->max_output);

    out = rt->out;
    rt->out = &b;
    rc = llm_jinja_exec(rt, f, body);
    rt->out = out;

    return rc == LLM_OK ? llm_jb_done(&b, res) : rc;
}


/* makes the frame of a block inside f, and enters it */

static int
llm_jexec_frame(llm_jrt_t *rt, llm_jframe_t *f, const llm_jscope_t *s,
    llm_jframe_t **inner)
{
    llm_jtry(llm_jframe_new(rt, s, f, inner));

    return llm_jframe_enter(rt, s, *inner);
}


/* set and filter blocks */

static int
llm_jexec_block(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n)
{
    int            rc;
    llm_jv_t       v;
    llm_jframe_t  *inner;

    llm_jtry(llm_jexec_frame(rt, f, n->scope, &inner));

    rc = llm_jexec_capture(rt, inner, n->d, &v);
    if (rc != LLM_OK) {
        return rc;
    }

    llm_jtry(n->b && llm_jinja_eval_filter_chain(rt, inner, n->b, &v));

    rt->line = n->line;

    return n->kind == LLM_JN_FILTERBLOCK
           ? llm_jb_add_value(rt->out, &v)
           : llm_jinja_assign(rt, f, n->a, &v, n->op);
}


static int
llm_jexec_with(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n)
{
    llm_jv_t            v;
    llm_jframe_t       *inner;
    const llm_jnode_t  *target, *value;

    llm_jtry(llm_jexec_frame(rt, f, n->scope, &inner));

    for (target = n->a, value = n->b; target;
         target = target->next, value = value->next)
    {
        llm_jtry(llm_jinja_eval(rt, f, value, &v));
        llm_jtry(llm_jinja_assign(rt, inner, target, &v, 0));
    }

    return llm_jinja_exec(rt, inner, n->d);
}


static int
llm_jexec_scope(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n)
{
    llm_jframe_t  *inner;

    llm_jtry(llm_jexec_frame(rt, f, n->scope, &inner));

    return llm_jinja_exec(rt, inner, n->d);
}


static int
llm_jexec_macro_value(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    llm_jv_t *res)
{
    *res = llm_jv_of(LLM_J_MACRO);
    llm_jnew(rt, res->u.macro, sizeof(llm_jmacro_t));

    res->u.macro->node = n;
    res->u.macro->frame = f;

    return LLM_OK;
}


static int
llm_jexec_macro(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n)
{
    llm_jv_t  v;

    llm_jtry(llm_jexec_macro_value(rt, f, n, &v));

    *llm_jinja_var(f, n->hops, n->slot) = v;

    return n->op ? llm_jdict_set(rt, rt->context, &n->value, &v) : LLM_OK;
}


static int
llm_jexec_callblock(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n)
{
    llm_jv_t     macro, callee, v;
    llm_jargs_t  args;

    llm_jtry(llm_jexec_macro_value(rt, f, n, &macro));
    llm_jtry(llm_jinja_eval(rt, f, n->b->a, &callee));
    llm_jtry(llm_jinja_eval_args(rt, f, n->b->b, macro.u.macro, &args));

    rt->line = n->line;
    llm_jtry(llm_jinja_call(rt, &callee, &args, &v));

    return llm_jb_add_value(rt->out, &v);
}


/* macros */

/* removes the keyword from the list and returns its value, MISSING if there is
   none */

static llm_jv_t
llm_jmacro_take(llm_jdict_t *kw, const char *name, size_t len)
{
    size_t           i;
    const llm_js_t  *s;

    for (i = 0; i < kw->n; i++) {
        s = kw->v[i].key.u.s;

        if (llm_jv_given(&kw->v[i].key) && s->len == len
            && memcmp(llm_js_data(s), name, len) == 0)
        {
            kw->v[i].key = llm_jv_of(LLM_J_MISSING);
            return kw->v[i].value;
        }
    }

    return llm_jv_of(LLM_J_MISSING);
}


/* handles arguments without a parameter: varargs and kwargs, or an error */

static int
llm_jmacro_rest(llm_jrt_t *rt, const llm_jnode_t *n, llm_jframe_t *f,
    const llm_jargs_t *args, size_t n_params, llm_jdict_t *kw)
{
    size_t        i;
    llm_jv_t      v;
    llm_jpair_t  *p;

    llm_jtry(llm_jv_dict(rt, LLM_J_DICT, &v));

    for (i = 0; i < kw->n; i++) {
        p = &kw->v[i];

        if (!llm_jv_given(&p->key)) {
            continue;
        }

        if (n->specials.kwargs == LLM_J_NO_SLOT) {
            return llm_jrt_fail(rt, "macro takes no keyword argument '%.*s'",
                                (int) llm_min(p->key.u.s->len, 60),
                                llm_js_data(p->key.u.s));
        }

        llm_jtry(llm_jdict_set(rt, v.u.dict, &p->key, &p->value));
    }

    if (n->specials.kwargs != LLM_J_NO_SLOT) {
        f->slots[n->specials.kwargs] = v;
    }

    if (n->specials.varargs != LLM_J_NO_SLOT) {
        i = llm_min(n_params, args->n);

        llm_jtry(llm_jv_list(rt, LLM_J_TUPLE, args->n - i, &v));

        for ( /* void */ ; i < args->n; i++) {
            v.u.list->v[v.u.list->n++] = args->v[i];
        }

        f->slots[n->specials.varargs] = v;

    } else if (args->n > n_params) {
        return llm_jrt_fail(rt, "macro takes not more than %zu argument(s)",
                            n_params);
    }

    return LLM_OK;
}


static int
llm_jmacro_bind(llm_jrt_t *rt, const llm_jnode_t *n, llm_jframe_t *f,
    const llm_jargs_t *args)
{
    size_t              i;
    llm_jv_t           *slot;
    llm_jdict_t         kw;
    const llm_jnode_t  *p;

    memset(&kw, 0, sizeof(kw));

    if (args->n_kw) {
        kw.n = args->n_kw;
        llm_jnew(rt, kw.v, kw.n * sizeof(llm_jpair_t));
        memcpy(kw.v, args->kw, kw.n * sizeof(llm_jpair_t));
    }

    for (i = 0, p = n->a; p; p = p->next, i++) {
        llm_jtry(llm_jrt_charge(rt, 1 + kw.n * LLM_J_DECODED));

        f->slots[p->slot] = i < args->n ? args->v[i]
                            : llm_jmacro_take(&kw,
                                              llm_js_data(p->value.u.s),
                                              p->value.u.s->len);
    }

    if (n->specials.caller != LLM_J_NO_SLOT) {
        slot = &f->slots[n->specials.caller];
        *slot = llm_jmacro_take(&kw, "caller", 6);

        llm_jtry((!llm_jv_given(slot) || slot->type == LLM_J_NONE)
                 && llm_jv_undef(rt, "No caller defined", slot));
    }

    return llm_jmacro_rest(rt, n, f, args, i, &kw);
}


static int
llm_jmacro_defaults(llm_jrt_t *rt, const llm_jnode_t *n, llm_jframe_t *f)
{
    llm_jv_t           *slot;
    const llm_jnode_t  *p;

    for (p = n->a; p; p = p->next) {
        slot = &f->slots[p->slot];

        if (llm_jv_given(slot)) {
            continue;
        }

        if (p->a == NULL) {
            llm_jtry(llm_jv_undef_param(rt, &p->value, slot));

        } else if (llm_jinja_eval(rt, f, p->a, slot) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_jinja_call_macro(llm_jrt_t *rt, llm_jmacro_t *m, const llm_jargs_t *args,
    llm_jv_t *res)
{
    int                 rc;
    llm_jframe_t       *f;
    const llm_jnode_t  *n;

    n = m->node;
    llm_jtry(llm_jframe_new(rt, n->scope, m->frame, &f));
    llm_jtry(llm_jmacro_bind(rt, n, f, args));
    llm_jtry(llm_jframe_enter(rt, n->scope, f));
    llm_jtry(llm_jmacro_defaults(rt, n, f));
    llm_jtry(llm_jrt_enter(rt));

    rc = llm_jexec_capture(rt, f, n->d, res);
    llm_jrt_leave(rt);

    return rc;
}


static int
llm_jexec_data(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n)
{
    (void) f;

    return llm_jb_add_str(rt->out, n->value.u.s);
}


static int
llm_jexec_output(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n)
{
    llm_jv_t  v;

    llm_jtry(llm_jinja_eval(rt, f, n->a, &v));

    rt->line = n->line;

    return llm_jb_add_value(rt->out, &v);
}


static int
llm_jexec_set(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n)
{
    llm_jv_t  v;

    llm_jtry(llm_jinja_eval(rt, f, n->b, &v));

    rt->line = n->line;

    return llm_jinja_assign(rt, f, n->a, &v, n->op);
}


static int
llm_jexec_if(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n)
{
    llm_jv_t  v;

    for ( ;; ) {
        llm_jtry(llm_jinja_eval(rt, f, n->a, &v));

        if (llm_jv_truth(&v)) {
            return llm_jinja_exec(rt, f, n->b);
        }

        if (n->c == NULL || n->c->kind != LLM_JN_IF || n->c->next) {
            return llm_jinja_exec(rt, f, n->c);
        }

        n = n->c;
    }
}


static int
llm_jexec_control(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n)
{
    (void) rt;
    (void) f;

    return n->kind == LLM_JN_BREAK ? LLM_JX_BREAK : LLM_JX_CONTINUE;
}


typedef int (*llm_jexec_pt)(llm_jrt_t *rt, llm_jframe_t *f,
    const llm_jnode_t *n);

static const llm_jexec_pt  llm_jexecs[LLM_J_N_KINDS] = {
    [LLM_JN_DATA] = llm_jexec_data,
    [LLM_JN_OUTPUT] = llm_jexec_output,
    [LLM_JN_FOR] = llm_jinja_exec_for,
    [LLM_JN_IF] = llm_jexec_if,
    [LLM_JN_SET] = llm_jexec_set,
    [LLM_JN_SETBLOCK] = llm_jexec_block,
    [LLM_JN_MACRO] = llm_jexec_macro,
    [LLM_JN_CALLBLOCK] = llm_jexec_callblock,
    [LLM_JN_FILTERBLOCK] = llm_jexec_block,
    [LLM_JN_WITH] = llm_jexec_with,
    [LLM_JN_SCOPE] = llm_jexec_scope,
    [LLM_JN_BREAK] = llm_jexec_control,
    [LLM_JN_CONTINUE] = llm_jexec_control
};


int
llm_jinja_exec(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *body)
{
    int  rc;

    llm_jtry(llm_jrt_enter(rt));

    rc = LLM_OK;

    for ( /* void */ ; body && rc == LLM_OK; body = body->next) {
        rt->line = body->line;
        llm_jtry(llm_jrt_charge(rt, 1));
        rc = llm_jexecs[body->kind](rt, f, body);
    }

    llm_jrt_leave(rt);

    return rc;
}
