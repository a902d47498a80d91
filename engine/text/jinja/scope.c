/*
 * Names to slots, as jinja2's compiler does it.
 *
 * Every construct with a scope of its own (the template, a loop's body, its
 * test and its else branch, macros, call, set and filter blocks, with,
 * generation) has a table of the variables that live in it.  What a variable
 * holds on entry follows from what the scope does to it first in the text:
 *
 *   a load          nothing if an outer scope has the name (then it is the
 *                   outer variable), else a look-up in the context
 *   a store         the outer variable's value if there is one, else unset
 *   a store in if   the same, but a look-up in the context instead of unset
 *
 * A scope's table is complete before the scopes inside it are looked at.
 */

#include "engine/text/jinja/ast.h"

static void llm_jscope_visit(llm_jcomp_t *c, llm_jscope_t *s, llm_jnode_t *n,
    int in_if);
static void llm_jscope_resolve(llm_jcomp_t *c, llm_jscope_t *s,
    llm_jnode_t *n, int soft);


static llm_jscope_t *
llm_jscope_new(llm_jcomp_t *c, llm_jscope_t *up)
{
    llm_jscope_t  *s;

    s = llm_jcomp_alloc(c, sizeof(llm_jscope_t));
    s = s ? s : &c->spare_scope;

    memset(s, 0, sizeof(*s));
    s->up = up;

    return s;
}


/* the position of a name in the index: its slot's, or a free one */

static uint32_t *
llm_jscope_place(const llm_jscope_t *s, llm_js_t *name)
{
    uint32_t  i, mask;

    mask = s->cap * 2 - 1;

    for (i = llm_js_hash(name) & mask; s->index[i] != LLM_J_NO_SLOT;
         i = (i + 1) & mask)
    {
        if (llm_js_equal(s->v[s->index[i]].name.u.s, name)) {
            break;
        }
    }

    return &s->index[i];
}


static uint32_t
llm_jscope_find(const llm_jscope_t *s, llm_js_t *name)
{
    return s->cap ? *llm_jscope_place(s, name) : LLM_J_NO_SLOT;
}


/* makes room for one more variable */

static int
llm_jscope_grow(llm_jcomp_t *c, llm_jscope_t *s)
{
    uint32_t      i, cap, *index;
    llm_jvar_t   *v;

    if (s->n < s->cap) {
        return LLM_OK;
    }

    cap = s->cap ? s->cap * 2 : 8;

    v = llm_jcomp_alloc(c, cap * sizeof(llm_jvar_t));
    index = llm_jcomp_alloc(c, cap * 2 * sizeof(uint32_t));

    if (v == NULL || index == NULL) {
        return LLM_ERROR;
    }

    if (s->n) {
        memcpy(v, s->v, s->n * sizeof(llm_jvar_t));
    }

    for (i = 0; i < cap * 2; i++) {
        index[i] = LLM_J_NO_SLOT;
    }

    s->v = v;
    s->index = index;
    s->cap = cap;

    for (i = 0; i < s->n; i++) {
        *llm_jscope_place(s, v[i].name.u.s) = i;
    }

    return LLM_OK;
}


/* finds the variable as seen from s: 1 and its position, or 0 */

static int
llm_jscope_lookup(const llm_jscope_t *s, llm_js_t *name,
    uint32_t *hops, uint32_t *slot)
{
    for (*hops = 0; s; s = s->up, (*hops)++) {
        *slot = llm_jscope_find(s, name);

        if (*slot != LLM_J_NO_SLOT) {
            return 1;
        }
    }

    return 0;
}


/* the slot of a name that lives in s; adds one if needed */

static uint32_t
llm_jscope_add(llm_jcomp_t *c, llm_jscope_t *s, const llm_jv_t *name,
    llm_jvar_init_t init)
{
    uint32_t      slot;
    llm_jvar_t   *v;

    slot = llm_jscope_find(s, name->u.s);

    if (slot != LLM_J_NO_SLOT || llm_jscope_grow(c, s) != LLM_OK) {
        return slot;
    }

    slot = s->n;
    *llm_jscope_place(s, name->u.s) = slot;

    v = &s->v[s->n++];
    memset(v, 0, sizeof(*v));
    v->name = *name;
    v->init = init;

    if (init == LLM_JS_ALIAS) {
        (void) llm_jscope_lookup(s->up, name->u.s, &v->hops, &v->slot);
        v->hops++;
    }

    return slot;
}


static void
llm_jscope_load(llm_jcomp_t *c, llm_jscope_t *s, const llm_jv_t *name)
{
    uint32_t  hops, slot;

    if (!llm_jscope_lookup(s, name->u.s, &hops, &slot)) {
        (void) llm_jscope_add(c, s, name, LLM_JS_RESOLVE);
    }
}


static void
llm_jscope_store(llm_jcomp_t *c, llm_jscope_t *s, const llm_jv_t *name,
    int in_if)
{
    uint32_t          hops, slot;
    llm_jvar_init_t   init;

    init = in_if ? LLM_JS_RESOLVE : LLM_JS_UNSET;

    if (llm_jscope_lookup(s->up, name->u.s, &hops, &slot)) {
        init = LLM_JS_ALIAS;
    }

    (void) llm_jscope_add(c, s, name, init);
}


static void
llm_jscope_target(llm_jcomp_t *c, llm_jscope_t *s, llm_jnode_t *n,
    int in_if)
{
    llm_jnode_t  *item;

    if (n->kind == LLM_JN_NAME) {
        llm_jscope_store(c, s, &n->value, in_if);

    } else if (n->kind == LLM_JN_NSREF) {
        llm_jscope_load(c, s, &n->value);

    } else {
        for (item = n->a; item; item = item->next) {
            llm_jscope_target(c, s, item, in_if);
        }
    }
}


/* targets of a loop or with: parameters of the scope */

static void
llm_jscope_params(llm_jcomp_t *c, llm_jscope_t *s, llm_jnode_t *n)
{
    llm_jnode_t  *item;

    if (n->kind == LLM_JN_NAME) {
        (void) llm_jscope_add(c, s, &n->value, LLM_JS_PARAM);
        return;
    }

    for (item = n->a; item; item = item->next) {
        llm_jscope_params(c, s, item);
    }
}


static void
llm_jscope_visit_list(llm_jcomp_t *c, llm_jscope_t *s, llm_jnode_t *n,
    int in_if)
{
    for ( /* void */ ; n; n = n->next) {
        llm_jscope_visit(c, s, n, in_if);
    }
}


/* an "elif" is an IF that is alone in the c of another IF */

static llm_jnode_t *
llm_jscope_elif(const llm_jnode_t *n)
{
    return n->c && n->c->kind == LLM_JN_IF && !n->c->next ? n->c : NULL;
}


/*
 * Children of a node, each a list of nodes, that are in the scope of the node
 * itself.  In kinds that are not listed all children are.
 */

#define LLM_JS_INSIDE  1                /* none: the rest is in an inner
                                           scope */
#define LLM_JS_B       2                /* only b */

static const uint8_t  llm_jscope_here[LLM_J_N_KINDS] = {
    [LLM_JN_FOR] = LLM_JS_B,
    [LLM_JN_SET] = LLM_JS_B,
    [LLM_JN_CALLBLOCK] = LLM_JS_B,
    [LLM_JN_FILTERBLOCK] = LLM_JS_B,
    [LLM_JN_WITH] = LLM_JS_B,
    [LLM_JN_SETBLOCK] = LLM_JS_INSIDE,
    [LLM_JN_MACRO] = LLM_JS_INSIDE,
    [LLM_JN_SCOPE] = LLM_JS_INSIDE
};


/* records what the node does to the names of s, without inner scopes */

static void
llm_jscope_visit(llm_jcomp_t *c, llm_jscope_t *s, llm_jnode_t *n, int in_if)
{
    while (n->kind == LLM_JN_IF) {
        llm_jscope_visit(c, s, n->a, in_if);
        llm_jscope_visit_list(c, s, n->b, 1);

        if (llm_jscope_elif(n) == NULL) {
            llm_jscope_visit_list(c, s, n->c, 1);
            return;
        }

        n = n->c;
    }

    if (n->kind == LLM_JN_NAME) {
        llm_jscope_load(c, s, &n->value);
    }

    if (llm_jscope_here[n->kind] != LLM_JS_INSIDE) {
        llm_jscope_visit_list(c, s, n->b, in_if);
    }

    if (llm_jscope_here[n->kind] == 0) {
        llm_jscope_visit_list(c, s, n->a, in_if);
        llm_jscope_visit_list(c, s, n->c, in_if);
        llm_jscope_visit_list(c, s, n->d, in_if);
    }

    if (n->kind == LLM_JN_SET || n->kind == LLM_JN_SETBLOCK) {
        llm_jscope_target(c, s, n->a, in_if);

    } else if (n->kind == LLM_JN_MACRO) {
        llm_jscope_store(c, s, &n->value, in_if);
    }
}


/*
 * Returns what comes first in the nodes, including inner scopes: a load of the
 * name (1), a store (-1), or neither (0).
 */

static int
llm_jscope_first_use(const llm_jnode_t *n, const char *name, int target)
{
    int                 rc;
    const llm_jnode_t  *next;

    for ( /* void */ ; n; n = next) {
        next = n->next;

        if (n->kind == LLM_JN_NAME) {
            if (llm_js_is(n->value.u.s, name)) {
                return target ? -1 : 1;
            }

            continue;
        }

        if (n->kind == LLM_JN_PARAM && llm_js_is(n->value.u.s, name)) {
            return -1;
        }

        rc = llm_jscope_first_use(n->a, name, target
                                  || n->kind == LLM_JN_SET
                                  || n->kind == LLM_JN_SETBLOCK
                                  || n->kind == LLM_JN_FOR
                                  || n->kind == LLM_JN_WITH);

        rc = rc ? rc : llm_jscope_first_use(n->b, name, 0);
        rc = rc ? rc : llm_jscope_first_use(n->d, name, 0);
        rc = rc ? rc : llm_jscope_first_use(n->e, name, 0);

        /* a chain of elif is followed in a loop, not by recursion */

        if (n->kind == LLM_JN_IF && next == NULL) {
            next = n->c;

        } else if (rc == 0) {
            rc = llm_jscope_first_use(n->c, name, 0);
        }

        if (rc) {
            return rc;
        }
    }

    return 0;
}


static void
llm_jscope_resolve_list(llm_jcomp_t *c, llm_jscope_t *s, llm_jnode_t *n,
    int soft)
{
    for ( /* void */ ; n && !c->failed; n = n->next) {
        llm_jscope_resolve(c, s, n, soft);
    }
}


/* handles a body in the scope s: first what it does to names, then where they
   are */

static void
llm_jscope_inside(llm_jcomp_t *c, llm_jscope_t *s, llm_jnode_t *body)
{
    llm_jscope_visit_list(c, s, body, 0);
    llm_jscope_resolve_list(c, s, body, 0);
}


static void
llm_jscope_for(llm_jcomp_t *c, llm_jscope_t *s, llm_jnode_t *n)
{
    llm_jv_t  name;

    n->scope = llm_jscope_new(c, s);
    n->test_scope = llm_jscope_new(c, s);
    n->else_scope = llm_jscope_new(c, s);
    n->slot = LLM_J_NO_SLOT;

    if (llm_jscope_first_use(n->a, "loop", 1)) {
        (void) llm_jcomp_fail(c, n->line, "can't assign to special loop "
                              "variable in for-loop target");
        return;
    }

    /* targets come first in both scopes, so that they have the same slots */

    llm_jscope_params(c, n->scope, n->a);
    llm_jscope_params(c, n->test_scope, n->a);
    llm_jscope_resolve(c, n->scope, n->a, 0);

    if (n->op || llm_jscope_first_use(n->d, "loop", 0) == 1) {
        name = llm_jcomp_str(c, llm_str("loop"));
        n->slot = llm_jscope_add(c, n->scope, &name, LLM_JS_PARAM);
    }

    llm_jscope_inside(c, n->test_scope, n->c);
    llm_jscope_inside(c, n->scope, n->d);
    llm_jscope_inside(c, n->else_scope, n->e);
}


/* the slot of a variable that a macro has only if its body uses it without
   declaring it */

static uint32_t
llm_jscope_special(llm_jcomp_t *c, llm_jnode_t *n, const char *name)
{
    llm_jv_t      v;
    llm_jnode_t  *p;

    if (llm_jscope_first_use(n->d, name, 0) != 1) {
        return LLM_J_NO_SLOT;
    }

    for (p = n->a; p; p = p->next) {
        if (!llm_js_is(p->value.u.s, name)) {
            continue;
        }

        if (p->a == NULL && strcmp(name, "caller") == 0) {
            (void) llm_jcomp_fail(c, n->line, "the special \"caller\" "
                                  "argument must be omitted or be given "
                                  "a default");
        }

        return LLM_J_NO_SLOT;
    }

    v = llm_jcomp_str(c, (llm_str_t) { strlen(name), name });

    return llm_jscope_add(c, n->scope, &v, LLM_JS_PARAM);
}


static void
llm_jscope_macro(llm_jcomp_t *c, llm_jscope_t *s, llm_jnode_t *n)
{
    llm_jnode_t  *p;

    n->scope = llm_jscope_new(c, s);

    for (p = n->a; p; p = p->next) {
        p->slot = llm_jscope_add(c, n->scope, &p->value, LLM_JS_PARAM);
    }

    n->specials.caller = llm_jscope_special(c, n, "caller");
    n->specials.varargs = llm_jscope_special(c, n, "varargs");
    n->specials.kwargs = llm_jscope_special(c, n, "kwargs");

    for (p = n->a; p; p = p->next) {
        llm_jscope_visit_list(c, n->scope, p->a, 0);
    }

    llm_jscope_visit_list(c, n->scope, n->d, 0);

    for (p = n->a; p; p = p->next) {
        llm_jscope_resolve_list(c, n->scope, p->a, 0);
    }

    llm_jscope_resolve_list(c, n->scope, n->d, 0);
}


/* set, filter and generation blocks, and with: a filter (b) and a body in a
   scope of their own */

static void
llm_jscope_block(llm_jcomp_t *c, llm_jscope_t *s, llm_jnode_t *n)
{
    llm_jnode_t  *p, *filter;

    n->scope = llm_jscope_new(c, s);
    filter = n->kind == LLM_JN_WITH ? NULL : n->b;

    for (p = n->kind == LLM_JN_WITH ? n->a : NULL; p; p = p->next) {
        llm_jscope_params(c, n->scope, p);
        llm_jscope_resolve(c, n->scope, p, 0);
    }

    llm_jscope_visit_list(c, n->scope, filter, 0);
    llm_jscope_visit_list(c, n->scope, n->d, 0);
    llm_jscope_resolve_list(c, n->scope, filter, 0);
    llm_jscope_resolve_list(c, n->scope, n->d, 0);
}


/*
 * Finds the slots of the node's names and handles inner scopes.  soft: within
 * an if, where an unknown filter is an error only when it is used.
 */

static void
llm_jscope_resolve(llm_jcomp_t *c, llm_jscope_t *s, llm_jnode_t *n,
    int soft)
{
    while (n->kind == LLM_JN_IF) {
        llm_jscope_resolve(c, s, n->a, 1);
        llm_jscope_resolve_list(c, s, n->b, 1);

        if (llm_jscope_elif(n) == NULL) {
            llm_jscope_resolve_list(c, s, n->c, 1);
            return;
        }

        n = n->c;
    }

    if (n->kind == LLM_JN_NAME || n->kind == LLM_JN_NSREF
        || n->kind == LLM_JN_MACRO)
    {
        (void) llm_jscope_lookup(s, n->value.u.s, &n->hops, &n->slot);
    }

    if ((n->kind == LLM_JN_FILTER || n->kind == LLM_JN_TEST)
        && n->func == NULL && !soft)
    {
        (void) llm_jcomp_fail(c, n->line, "No %s named '%.*s'.",
                              n->kind == LLM_JN_FILTER ? "filter" : "test",
                              (int) llm_min(n->value.u.s->len, 40),
                              llm_js_data(n->value.u.s));
    }

    if (n->kind == LLM_JN_SET || n->kind == LLM_JN_SETBLOCK
        || n->kind == LLM_JN_MACRO)
    {
        n->op = s->up == NULL;
    }

    if (n->kind == LLM_JN_SET || n->kind == LLM_JN_SETBLOCK) {
        llm_jscope_resolve(c, s, n->a, soft);
    }

    soft |= n->kind == LLM_JN_COND;

    if (llm_jscope_here[n->kind] != LLM_JS_INSIDE) {
        llm_jscope_resolve_list(c, s, n->b, soft);
    }

    if (llm_jscope_here[n->kind] == 0) {
        llm_jscope_resolve_list(c, s, n->a, soft);
        llm_jscope_resolve_list(c, s, n->c, soft);
        llm_jscope_resolve_list(c, s, n->d, soft);
    }

    if (n->kind == LLM_JN_FOR) {
        llm_jscope_for(c, s, n);

    } else if (n->kind == LLM_JN_MACRO || n->kind == LLM_JN_CALLBLOCK) {
        llm_jscope_macro(c, s, n);

    } else if (llm_jscope_here[n->kind] && n->kind != LLM_JN_SET) {
        llm_jscope_block(c, s, n);
    }
}


int
llm_jinja_scopes(llm_jcomp_t *c)
{
    c->t->scope = llm_jscope_new(c, NULL);
    llm_jscope_inside(c, c->t->scope, c->t->body);

    return c->failed;
}
