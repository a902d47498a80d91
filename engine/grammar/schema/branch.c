/*
 * Branches: adding an atom, a task, or a copy of a branch.
 *
 * Atoms and tasks (llm_schema_todo_t) are in lists that copies share and that
 * are never changed; new ones are put in front.
 */

#include "engine/grammar/schema/internal.h"


int
llm_schema_atom(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_atom_t *atom)
{
    llm_schema_atom_t  *a;

    a = llm_schema_alloc(s, sizeof(llm_schema_atom_t));
    if (a == NULL) {
        return LLM_ERROR;
    }

    *a = *atom;
    a->prev = b->atoms;
    b->atoms = a;

    return LLM_OK;
}


/* a property must exist; item is its value unless NULL */

int
llm_schema_has(llm_schema_t *s, llm_schema_branch_t *b, llm_str_t key,
    const llm_schema_item_t *item)
{
    llm_schema_atom_t  a;

    memset(&a, 0, sizeof(a));
    a.kw = LLM_KW_HAS;
    a.key = key;
    a.any = item == NULL;
    a.item = item ? *item : 0;

    return llm_schema_atom(s, b, &a);
}


int
llm_schema_lacks(llm_schema_t *s, llm_schema_branch_t *b, llm_str_t key)
{
    llm_schema_atom_t  a;

    memset(&a, 0, sizeof(a));
    a.kw = LLM_KW_LACKS;
    a.key = key;

    return llm_schema_atom(s, b, &a);
}


/* adds a minimum or a maximum of properties or items */

int
llm_schema_bound(llm_schema_t *s, llm_schema_branch_t *b,
    llm_schema_kw_t kw, uint32_t n)
{
    llm_schema_atom_t  a;

    memset(&a, 0, sizeof(a));
    a.kw = kw;
    a.n = n;

    return llm_schema_atom(s, b, &a);
}


int
llm_schema_todo_kw(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *todo)
{
    llm_schema_todo_t  *t;

    t = llm_schema_alloc(s, sizeof(llm_schema_todo_t));
    if (t == NULL) {
        return LLM_ERROR;
    }

    *t = *todo;
    t->next = b->todo;
    b->todo = t;

    return LLM_OK;
}


int
llm_schema_todo(llm_schema_t *s, llm_schema_branch_t *b,
    llm_schema_item_t item, const llm_schema_scope_t *scope)
{
    llm_schema_todo_t  t;

    memset(&t, 0, sizeof(t));
    t.item = item;
    t.scope = scope;

    return llm_schema_todo_kw(s, b, &t);
}


/* leaves only the types that v names or, negated, only the others */

int
llm_schema_type(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_flat_t *v, int neg)
{
    size_t             i;
    uint32_t           types;
    const llm_flat_t  *c;

    static const struct {
        llm_str_t    name;
        uint32_t     types;
    } names[] = {
        { llm_str("null"), LLM_SCHEMA_NULL },
        { llm_str("boolean"), LLM_SCHEMA_TRUE|LLM_SCHEMA_FALSE_T },
        { llm_str("integer"), LLM_SCHEMA_INT },
        { llm_str("number"), LLM_SCHEMA_NUMBER },
        { llm_str("string"), LLM_SCHEMA_STRING },
        { llm_str("array"), LLM_SCHEMA_ARRAY },
        { llm_str("object"), LLM_SCHEMA_OBJECT },
    };

    types = 0;
    c = v->type == LLM_FLAT_ARRAY ? llm_flat_first(v) : v;

    while (c) {
        if (llm_schema_is(s, c, LLM_FLAT_STRING) != LLM_OK) {
            return LLM_ERROR;
        }

        for (i = 0; i < llm_nelems(names); i++) {
            if (llm_str_eq(llm_flat_str(c), names[i].name)) {
                types |= names[i].types;
                break;
            }
        }

        if (i == llm_nelems(names)) {
            return llm_schema_refuse(s, c, "there is no such type");
        }

        c = c == v ? NULL : llm_flat_next(v, c);
    }

    b->types &= neg ? ~types : types;

    return LLM_OK;
}


/* adds a copy of b to the branches that are not fully expanded */

int
llm_schema_fork(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_branches_t *out)
{
    if (out->n + out->n_open >= s->max_branches) {
        return llm_schema_too_large(s);
    }

    if (llm_schema_grow(s, &out->open, out->n_open, &out->open_size,
                        sizeof(llm_schema_branch_t)) != LLM_OK)
    {
        return LLM_ERROR;
    }

    out->open[out->n_open++] = *b;

    return LLM_OK;
}


int
llm_schema_keep(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_branches_t *out)
{
    if (llm_schema_grow(s, &out->items, out->n, &out->size,
                        sizeof(llm_schema_branch_t)) != LLM_OK)
    {
        return LLM_ERROR;
    }

    out->items[out->n++] = *b;

    return LLM_OK;
}


/* adds a copy of b with one more item to expand */

int
llm_schema_fork_item(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_item_t item, const llm_schema_scope_t *scope,
    llm_schema_branches_t *out)
{
    llm_schema_branch_t  copy;

    copy = *b;

    if (llm_schema_todo(s, &copy, item, scope) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_schema_fork(s, &copy, out);
}


int
llm_schema_fork_atom(llm_schema_t *s, const llm_schema_branch_t *b,
    const llm_schema_atom_t *a, llm_schema_branches_t *out)
{
    llm_schema_branch_t  copy;

    copy = *b;

    if (llm_schema_atom(s, &copy, a) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_schema_fork(s, &copy, out);
}


/* is the atom's schema below the schema of the scope? */

int
llm_schema_in_scope(const llm_schema_atom_t *a,
    const llm_schema_scope_t *scope)
{
    const llm_schema_scope_t  *p;

    for (p = a->scope; p; p = p->parent) {
        if (p == scope) {
            return 1;
        }
    }

    return 0;
}
