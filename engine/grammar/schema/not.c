/*
 * Negations: a keyword that must not hold, turned into branches.
 *
 * A schema fails if one of its keywords fails, so there is a branch for each
 * keyword.  A keyword can fail only for values of its own type.
 */

#include "engine/grammar/schema/internal.h"


/* adds a copy of b in which v must not hold */

static int
llm_schema_fork_not(llm_schema_t *s, const llm_schema_branch_t *b,
    const llm_flat_t *v, llm_schema_branches_t *out)
{
    return llm_schema_fork_item(s, b, llm_schema_item(s, v, LLM_SCHEMA_NOT),
                                NULL, out);
}


int
llm_schema_not_schema(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_flat_t *v, llm_schema_branches_t *out)
{
    int                       alone;
    const llm_flat_t         *c;
    llm_schema_todo_t         t;
    llm_schema_branch_t       copy;
    const llm_schema_row_t   *row;

    alone = s->draft < LLM_DRAFT_2019 && llm_flat_get(v, "$ref") != NULL;

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        row = llm_schema_row(s, llm_flat_str(c));
        c = llm_flat_next(v, c);

        if (row == NULL || (alone && row->kw != LLM_KW_REF)
            || (row->types & b->types) == 0)
        {
            continue;
        }

        memset(&t, 0, sizeof(t));
        t.kw = row->kw;
        t.schema = v;
        t.value = c;
        t.neg = 1;

        copy = *b;

        if (row->types != LLM_SCHEMA_ANY) {
            copy.types &= row->types;
        }

        if ((!llm_schema_gone(s, row, c)
             && llm_schema_todo_kw(s, &copy, &t) != LLM_OK)
            || llm_schema_fork(s, &copy, out) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_END;
}


/* none of the schemas holds, or two do */

static int
llm_schema_not_one_of(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_flat_t *v, llm_schema_branches_t *out)
{
    int                   rc;
    const llm_flat_t     *c, *d;
    llm_schema_branch_t   none, two;

    if (llm_schema_is(s, v, LLM_FLAT_ARRAY) != LLM_OK) {
        return LLM_ERROR;
    }

    none = *b;

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        if (llm_schema_todo(s, &none, llm_schema_item(s, c, LLM_SCHEMA_NOT),
                            NULL) != LLM_OK)
        {
            return LLM_ERROR;
        }

        for (d = llm_flat_next(v, c); d; d = llm_flat_next(v, d)) {
            rc = s->loose ? 0 : s->apart(s, c, d, b->types);
            if (rc == LLM_ERROR) {
                return LLM_ERROR;
            }

            two = *b;

            if (rc == 0
                && (llm_schema_todo(s, &two, llm_schema_item(s, c, 0), NULL)
                    != LLM_OK
                    || llm_schema_fork_item(s, &two, llm_schema_item(s, d, 0),
                                            NULL, out) != LLM_OK))
            {
                return LLM_ERROR;
            }
        }
    }

    return llm_schema_fork(s, &none, out) == LLM_OK ? LLM_END : LLM_ERROR;
}


static int
llm_schema_not_if(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out)
{
    int                   i;
    uint32_t              flags;
    const llm_flat_t     *v;
    llm_schema_branch_t   copy;

    for (i = 0; i < 2; i++) {
        v = llm_flat_get(t->schema, i ? "else" : "then");
        if (v == NULL) {
            continue;
        }

        copy = *b;
        flags = i ? LLM_SCHEMA_NOT : 0;

        if (llm_schema_todo(s, &copy, llm_schema_item(s, v, LLM_SCHEMA_NOT),
                            NULL) != LLM_OK
            || llm_schema_fork_item(s, &copy,
                                    llm_schema_item(s, t->value, flags),
                                    NULL, out) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_END;
}


static int
llm_schema_not_depend(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out)
{
    int                   rc;
    llm_str_t             key;
    const llm_flat_t     *c, *v;
    llm_schema_branch_t   copy;

    v = t->value;

    if (llm_schema_is(s, v, LLM_FLAT_OBJECT) != LLM_OK) {
        return LLM_ERROR;
    }

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        key = llm_flat_str(c);
        c = llm_flat_next(v, c);
        copy = *b;

        if (llm_schema_has(s, &copy, key, NULL) != LLM_OK) {
            return LLM_ERROR;
        }

        rc = c->type == LLM_FLAT_ARRAY && !llm_schema_gone(s, NULL, c)
             ? llm_schema_not_required(s, &copy, NULL, c, out)
             : llm_schema_fork_not(s, &copy, c, out);

        if (rc == LLM_ERROR) {
            return LLM_ERROR;
        }
    }

    return LLM_END;
}


/* lists of schemas: all of them fail, or one does */

static int
llm_schema_not_list(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out)
{
    const llm_flat_t  *c;

    if (llm_schema_is(s, t->value, LLM_FLAT_ARRAY) != LLM_OK) {
        return LLM_ERROR;
    }

    for (c = llm_flat_first(t->value); c; c = llm_flat_next(t->value, c)) {
        if (t->kw == LLM_KW_ALL_OF) {
            if (llm_schema_fork_not(s, b, c, out) != LLM_OK) {
                return LLM_ERROR;
            }

        } else if (llm_schema_todo(s, b, llm_schema_item(s, c,
                                                         LLM_SCHEMA_NOT),
                                   NULL) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return t->kw == LLM_KW_ALL_OF ? LLM_END : LLM_OK;
}


int
llm_schema_not(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out)
{
    const llm_flat_t  *v;

    switch (t->kw) {

    case LLM_KW_TYPE:
        return llm_schema_type(s, b, t->value, 1);

    case LLM_KW_ENUM:
    case LLM_KW_CONST:
        return llm_schema_not_enum(s, b, t);

    case LLM_KW_PROPERTIES:
    case LLM_KW_PATTERN_PROPERTIES:
        return llm_schema_not_properties(s, b, t, out);

    case LLM_KW_ADDITIONAL_PROPERTIES:
    case LLM_KW_PROPERTY_NAMES:
        return llm_schema_not_others(s, b, t);

    case LLM_KW_REQUIRED:
        return llm_schema_not_required(s, b, t->schema, t->value, out);

    case LLM_KW_MIN_PROPERTIES:
    case LLM_KW_MAX_PROPERTIES:
    case LLM_KW_MIN_ITEMS:
    case LLM_KW_MAX_ITEMS:
        return llm_schema_not_bound(s, b, t);

    case LLM_KW_PREFIX_ITEMS:
    case LLM_KW_ITEMS:
    case LLM_KW_ADDITIONAL_ITEMS:
        return llm_schema_not_items(s, b, t, out);

    case LLM_KW_CONTAINS:
        return llm_schema_not_contains(s, b, t);

    case LLM_KW_UNIQUE_ITEMS:
        if (t->value->type == LLM_FLAT_BOOL && !llm_flat_int(t->value)) {
            return LLM_END;
        }

        return llm_schema_not_refuse(s, t->value, "two equal items");

    case LLM_KW_UNEVALUATED_PROPERTIES:
    case LLM_KW_UNEVALUATED_ITEMS:
        return llm_schema_not_refuse(s, t->value, "to know what was"
                                                  " evaluated");

    case LLM_KW_REF:
    case LLM_KW_DYNAMIC_REF:
    case LLM_KW_RECURSIVE_REF:
        if (llm_schema_target(s, t->value, t->kw, &v) != LLM_OK) {
            return LLM_ERROR;
        }

        return llm_schema_todo(s, b, llm_schema_item(s, v, LLM_SCHEMA_NOT),
                               NULL);

    case LLM_KW_ALL_OF:
    case LLM_KW_ANY_OF:
        return llm_schema_not_list(s, b, t, out);

    case LLM_KW_ONE_OF:
        return llm_schema_not_one_of(s, b, t->value, out);

    case LLM_KW_NOT:
        return llm_schema_todo(s, b, llm_schema_item(s, t->value, 0), NULL);

    case LLM_KW_IF:
        return llm_schema_not_if(s, b, t, out);

    case LLM_KW_DEPENDENCIES:
    case LLM_KW_DEPENDENT_REQUIRED:
    case LLM_KW_DEPENDENT_SCHEMAS:
        return llm_schema_not_depend(s, b, t, out);

    default:
        return llm_schema_not_scalar(s, b, t);
    }
}
