/*
 * Keywords that consist of other schemas, turned into branches.
 */

#include "engine/grammar/schema/internal.h"


static int
llm_schema_schemas(llm_schema_t *s, const llm_flat_t *v)
{
    if (llm_schema_is(s, v, LLM_FLAT_ARRAY) != LLM_OK) {
        return LLM_ERROR;
    }

    if (v->count == 0) {
        return llm_schema_refuse(s, v, "it must not be empty");
    }

    return LLM_OK;
}


int
llm_schema_all_of(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t)
{
    llm_schema_todo_t         *e;
    const llm_flat_t          *c;
    const llm_schema_todo_t   *rest, **end;

    if (llm_schema_schemas(s, t->value) != LLM_OK) {
        return LLM_ERROR;
    }

    rest = b->todo;
    end = &b->todo;

    for (c = llm_flat_first(t->value); c; c = llm_flat_next(t->value, c)) {
        e = llm_schema_alloc(s, sizeof(llm_schema_todo_t));
        if (e == NULL) {
            return LLM_ERROR;
        }

        e->item = llm_schema_item(s, c, 0);
        e->scope = t->scope;
        *end = e;
        end = &e->next;
    }

    *end = rest;

    return LLM_OK;
}


/*
 * Below a schema with an unevaluated... keyword it matters which alternatives
 * hold together, so each combination of several is a branch, too: additional
 * alternatives can only allow more.
 */

int
llm_schema_any_of(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out)
{
    uint32_t              i, n, set;
    const llm_flat_t     *c, *v;
    llm_schema_branch_t   copy;

    v = t->value;

    if (llm_schema_schemas(s, v) != LLM_OK) {
        return LLM_ERROR;
    }

    n = t->scope && t->kw == LLM_KW_ANY_OF ? v->count : 0;

    if (n > 8) {
        return llm_schema_refuse(s, v, "it has too many alternatives below"
                                       " unevaluated properties or items");
    }

    if (n == 0) {
        for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
            if (llm_schema_fork_item(s, b, llm_schema_item(s, c, 0),
                                     t->scope, out) != LLM_OK)
            {
                return LLM_ERROR;
            }
        }

        return LLM_END;
    }

    for (set = 1; set < 1u << n; set++) {
        copy = *b;
        c = llm_flat_first(v);

        for (i = 0; i < n; i++, c = llm_flat_next(v, c)) {
            if ((set & 1u << i)
                && llm_schema_todo(s, &copy, llm_schema_item(s, c, 0),
                                   t->scope) != LLM_OK)
            {
                return LLM_ERROR;
            }
        }

        if (llm_schema_fork(s, &copy, out) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_END;
}


/* one of the schemas holds and the others do not; schemas that cannot hold
   together with the one need not be negated */

int
llm_schema_one_of(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out)
{
    int                   rc;
    const llm_flat_t     *c, *d, *v;
    llm_schema_branch_t   copy;

    v = t->value;

    if (s->loose) {
        return llm_schema_any_of(s, b, t, out);
    }

    if (llm_schema_schemas(s, v) != LLM_OK) {
        return LLM_ERROR;
    }

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        copy = *b;

        for (d = llm_flat_first(v); d; d = llm_flat_next(v, d)) {
            if (d == c) {
                continue;
            }

            rc = s->apart(s, c, d, b->types);
            if (rc == LLM_ERROR) {
                return LLM_ERROR;
            }

            if (rc == 0) {
                s->negated = 1;

                if (llm_schema_todo(s, &copy,
                                    llm_schema_item(s, d, LLM_SCHEMA_NOT),
                                    NULL) != LLM_OK)
                {
                    return LLM_ERROR;
                }
            }
        }

        if (llm_schema_todo(s, &copy, llm_schema_item(s, c, 0), t->scope)
            != LLM_OK
            || llm_schema_fork(s, &copy, out) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_END;
}


int
llm_schema_if(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out)
{
    int                   i;
    const llm_flat_t     *cases[2];
    llm_schema_branch_t   copy;

    cases[0] = llm_flat_get(t->schema, "else");
    cases[1] = llm_flat_get(t->schema, "then");

    if (cases[0] == NULL && cases[1] == NULL && t->scope == NULL) {
        return LLM_OK;
    }

    s->negated = 1;

    for (i = 1; i >= 0; i--) {
        copy = *b;

        if (cases[i]
            && llm_schema_todo(s, &copy, llm_schema_item(s, cases[i], 0),
                               t->scope) != LLM_OK)
        {
            return LLM_ERROR;
        }

        if (llm_schema_todo(s, &copy,
                            llm_schema_item(s, t->value,
                                            i ? 0 : LLM_SCHEMA_NOT),
                            t->scope) != LLM_OK
            || llm_schema_fork(s, &copy, out) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_END;
}


/* applies what key needs: the names in an array, or a schema */

static int
llm_schema_need(llm_schema_t *s, llm_schema_branch_t *b, llm_str_t key,
    const llm_flat_t *v, const llm_schema_scope_t *scope)
{
    const llm_flat_t  *c;

    if (llm_schema_has(s, b, key, NULL) != LLM_OK) {
        return LLM_ERROR;
    }

    if (v->type != LLM_FLAT_ARRAY) {
        return llm_schema_todo(s, b, llm_schema_item(s, v, 0), scope);
    }

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        if (llm_schema_is(s, c, LLM_FLAT_STRING) != LLM_OK
            || llm_schema_has(s, b, llm_flat_str(c), NULL) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* "dependencies", "dependentRequired", "dependentSchemas": applies one member;
   the next one is in t->item */

int
llm_schema_depend(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out)
{
    llm_str_t             key;
    const llm_flat_t     *k, *v;
    llm_schema_todo_t     rest;
    llm_schema_branch_t   copy;

    if (llm_schema_is(s, t->value, LLM_FLAT_OBJECT) != LLM_OK) {
        return LLM_ERROR;
    }

    if ((b->types & LLM_SCHEMA_OBJECT) == 0) {
        return LLM_OK;
    }

    k = t->item ? llm_schema_flat(s, t->item) : llm_flat_first(t->value);
    if (k == NULL) {
        return LLM_OK;
    }

    key = llm_flat_str(k);
    v = llm_flat_next(t->value, k);
    k = llm_flat_next(t->value, v);

    if (k) {
        rest = *t;
        rest.item = llm_schema_item(s, k, 0);

        if (llm_schema_todo_kw(s, b, &rest) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    if (llm_schema_trivial(s, v) == 1 || llm_schema_gone(s, NULL, v)
        || (v->type == LLM_FLAT_ARRAY && v->count == 0))
    {
        return LLM_OK;
    }

    s->negated = 1;
    copy = *b;
    copy.types &= LLM_SCHEMA_OBJECT;

    if (llm_schema_need(s, &copy, key, v, t->scope) != LLM_OK
        || llm_schema_fork(s, &copy, out) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_schema_lacks(s, b, key);
}
