/*
 * Negations of single keywords: the values that they refuse, as atoms.
 */

#include "engine/grammar/schema/internal.h"


/* refuses what no branch can express; in loose mode anything may hold
   instead */

int
llm_schema_not_refuse(llm_schema_t *s, const llm_flat_t *v,
    const char *what)
{
    if (s->loose) {
        return LLM_OK;
    }

    return llm_schema_refuse(s, v, "a negation (of \"not\", \"if\" or the"
                                   " other schemas of a \"oneOf\") would"
                                   " need %s", what);
}


/* not equal to an object: a member is missing or differs, or there are more */

static int
llm_schema_not_object(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_flat_t *v, llm_schema_branches_t *out)
{
    llm_str_t             key;
    const llm_flat_t     *c;
    llm_schema_item_t     item;
    llm_schema_branch_t   copy;

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        key = llm_flat_str(c);
        c = llm_flat_next(v, c);
        item = llm_schema_item(s, c, LLM_SCHEMA_VALUE|LLM_SCHEMA_NOT);

        copy = *b;
        if (llm_schema_lacks(s, &copy, key) != LLM_OK
            || llm_schema_fork(s, &copy, out) != LLM_OK)
        {
            return LLM_ERROR;
        }

        copy = *b;
        if (llm_schema_has(s, &copy, key, &item) != LLM_OK
            || llm_schema_fork(s, &copy, out) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return llm_schema_bound(s, b, LLM_KW_MIN_PROPERTIES, v->count + 1);
}


static int
llm_schema_not_array(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_flat_t *v, llm_schema_branches_t *out)
{
    const llm_flat_t     *c;
    llm_schema_atom_t     a;
    llm_schema_branch_t   copy;

    memset(&a, 0, sizeof(a));
    a.kw = LLM_KW_ITEM;

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        a.item = llm_schema_item(s, c, LLM_SCHEMA_VALUE|LLM_SCHEMA_NOT);

        if (llm_schema_fork_atom(s, b, &a, out) != LLM_OK) {
            return LLM_ERROR;
        }

        a.n++;
    }

    if (v->count) {
        copy = *b;

        if (llm_schema_bound(s, &copy, LLM_KW_MAX_ITEMS, v->count - 1)
            != LLM_OK
            || llm_schema_fork(s, &copy, out) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return llm_schema_bound(s, b, LLM_KW_MIN_ITEMS, v->count + 1);
}


int
llm_schema_not_value(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_flat_t *v, llm_schema_branches_t *out)
{
    uint32_t             type;
    llm_schema_atom_t    a;
    llm_schema_branch_t  rest;

    type = llm_schema_type_of(s, v);

    if ((type & b->types) == 0) {
        return LLM_OK;
    }

    if (type & (LLM_SCHEMA_NULL|LLM_SCHEMA_TRUE|LLM_SCHEMA_FALSE_T)) {
        b->types &= ~type;
        return LLM_OK;
    }

    if (type & (LLM_SCHEMA_ARRAY|LLM_SCHEMA_OBJECT)) {
        rest = *b;
        rest.types &= ~type;

        if (llm_schema_fork(s, &rest, out) != LLM_OK) {
            return LLM_ERROR;
        }

        b->types &= type;

        return type == LLM_SCHEMA_OBJECT ? llm_schema_not_object(s, b, v, out)
                                         : llm_schema_not_array(s, b, v, out);
    }

    memset(&a, 0, sizeof(a));
    a.kw = LLM_KW_CONST;
    a.value = v;
    a.neg = 1;

    return llm_schema_atom(s, b, &a);
}


int
llm_schema_not_enum(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t)
{
    const llm_flat_t  *c;

    if (t->kw == LLM_KW_CONST) {
        return llm_schema_todo(s, b,
                               llm_schema_item(s, t->value, LLM_SCHEMA_VALUE
                                                            |LLM_SCHEMA_NOT),
                               NULL);
    }

    if (llm_schema_is(s, t->value, LLM_FLAT_ARRAY) != LLM_OK) {
        return LLM_ERROR;
    }

    for (c = llm_flat_first(t->value); c; c = llm_flat_next(t->value, c)) {
        if (llm_schema_todo(s, b,
                            llm_schema_item(s, c, LLM_SCHEMA_VALUE
                                                  |LLM_SCHEMA_NOT), NULL)
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static const llm_flat_t *
llm_schema_property(const llm_flat_t *schema, llm_str_t key)
{
    const llm_flat_t  *c, *v;

    v = llm_flat_get(schema, "properties");
    if (v == NULL || v->type != LLM_FLAT_OBJECT) {
        return NULL;
    }

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        if (llm_str_eq(llm_flat_str(c), key)) {
            return llm_flat_next(v, c);
        }

        c = llm_flat_next(v, c);
    }

    return NULL;
}


static int
llm_schema_requires(const llm_flat_t *schema, llm_str_t key)
{
    const llm_flat_t  *c, *v;

    v = llm_flat_get(schema, "required");
    if (v == NULL || v->type != LLM_FLAT_ARRAY) {
        return 0;
    }

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        if (c->type == LLM_FLAT_STRING
            && llm_str_eq(llm_flat_str(c), key))
        {
            return 1;
        }
    }

    return 0;
}


/* a property fails: it exists with another value or, if it is required, it may
   also be missing, which one branch expresses for both keywords */

int
llm_schema_not_properties(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out)
{
    const llm_flat_t    *c, *k, *v;
    llm_schema_atom_t    a;

    v = t->value;

    if (llm_schema_is(s, v, LLM_FLAT_OBJECT) != LLM_OK) {
        return LLM_ERROR;
    }

    for (k = llm_flat_first(v); k; k = llm_flat_next(v, c)) {
        c = llm_flat_next(v, k);

        if (llm_schema_trivial(s, c) == 1) {
            continue;
        }

        memset(&a, 0, sizeof(a));
        a.value = v;
        a.item = llm_schema_item(s, c, LLM_SCHEMA_NOT);

        if (t->kw == LLM_KW_PATTERN_PROPERTIES) {
            a.kw = LLM_KW_SOME;

            if (llm_schema_pattern(s, k, llm_flat_str(k), &a.rx) != LLM_OK) {
                return LLM_ERROR;
            }

        } else {
            a.key = llm_flat_str(k);
            a.kw = llm_schema_requires(t->schema, a.key) ? LLM_KW_MAY_HAVE
                                                         : LLM_KW_HAS;
        }

        if (llm_schema_fork_atom(s, b, &a, out) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_END;
}


/* a property that is not named fails, or its name does */

int
llm_schema_not_others(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t)
{
    llm_schema_atom_t  a;

    memset(&a, 0, sizeof(a));
    a.kw = LLM_KW_SOME;
    a.value = t->value;

    if (llm_schema_trivial(s, t->value) == 1) {
        return LLM_END;
    }

    if (t->kw == LLM_KW_ADDITIONAL_PROPERTIES) {
        a.item = llm_schema_item(s, t->value, LLM_SCHEMA_NOT);
        a.schema = t->schema;

    } else {
        a.names = t->value;
        a.any = 1;
    }

    return llm_schema_atom(s, b, &a);
}


/* schema: the one that has the names as its "required", or NULL */

int
llm_schema_not_required(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_flat_t *schema, const llm_flat_t *names,
    llm_schema_branches_t *out)
{
    llm_str_t             key;
    const llm_flat_t     *c, *v;
    llm_schema_branch_t   copy;

    if (llm_schema_is(s, names, LLM_FLAT_ARRAY) != LLM_OK) {
        return LLM_ERROR;
    }

    for (c = llm_flat_first(names); c; c = llm_flat_next(names, c)) {
        if (llm_schema_is(s, c, LLM_FLAT_STRING) != LLM_OK) {
            return LLM_ERROR;
        }

        key = llm_flat_str(c);
        v = schema ? llm_schema_property(schema, key) : NULL;

        if (v && llm_schema_trivial(s, v) != 1) {
            /* covered by the negation of "properties" */
            continue;
        }

        copy = *b;

        if (llm_schema_lacks(s, &copy, key) != LLM_OK
            || llm_schema_fork(s, &copy, out) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_END;
}


/* negates minimum and maximum numbers of properties or items */

int
llm_schema_not_bound(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t)
{
    uint32_t  n;

    if (llm_schema_count(s, t->value, &n) != LLM_OK) {
        return LLM_ERROR;
    }

    switch (t->kw) {

    case LLM_KW_MAX_PROPERTIES:
        return llm_schema_bound(s, b, LLM_KW_MIN_PROPERTIES, n + 1);

    case LLM_KW_MAX_ITEMS:
        return llm_schema_bound(s, b, LLM_KW_MIN_ITEMS, n + 1);

    default:
        if (n == 0) {
            return LLM_END;
        }

        return llm_schema_bound(s, b,
                                t->kw == LLM_KW_MIN_PROPERTIES
                                ? LLM_KW_MAX_PROPERTIES : LLM_KW_MAX_ITEMS,
                                n - 1);
    }
}


int
llm_schema_not_items(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out)
{
    llm_schema_atom_t   a;
    const llm_flat_t   *c, *prefix;

    memset(&a, 0, sizeof(a));

    if (t->value->type == LLM_FLAT_ARRAY) {
        a.kw = LLM_KW_ITEM;

        for (c = llm_flat_first(t->value); c;
             c = llm_flat_next(t->value, c))
        {
            a.item = llm_schema_item(s, c, LLM_SCHEMA_NOT);

            if (llm_schema_trivial(s, c) != 1
                && llm_schema_fork_atom(s, b, &a, out) != LLM_OK)
            {
                return LLM_ERROR;
            }

            a.n++;
        }

        return LLM_END;
    }

    prefix = llm_flat_get(t->schema, t->kw == LLM_KW_ITEMS ? "prefixItems"
                                                           : "items");

    if (t->kw == LLM_KW_ADDITIONAL_ITEMS
        && (prefix == NULL || prefix->type != LLM_FLAT_ARRAY))
    {
        return LLM_END;
    }

    if (llm_schema_trivial(s, t->value) == 1) {
        return LLM_END;
    }

    a.kw = LLM_KW_SOME_ITEM;
    a.value = t->value;
    a.item = llm_schema_item(s, t->value, LLM_SCHEMA_NOT);
    a.n = prefix && (t->kw == LLM_KW_ADDITIONAL_ITEMS
                     || s->draft == LLM_DRAFT_2020) ? prefix->count : 0;

    return llm_schema_atom(s, b, &a);
}


int
llm_schema_not_contains(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t)
{
    uint32_t            min;
    const llm_flat_t   *v;
    llm_schema_atom_t   a;

    min = 1;

    if (s->draft >= LLM_DRAFT_2019) {
        v = llm_flat_get(t->schema, "minContains");
        if (v && llm_schema_count(s, v, &min) != LLM_OK) {
            return LLM_ERROR;
        }

        if (llm_flat_get(t->schema, "maxContains")) {
            min = UINT32_MAX;
        }
    }

    if (min == 0) {
        return LLM_END;
    }

    if (min > 1) {
        return llm_schema_not_refuse(s, t->value, "to count the items that"
                                                  " match from above");
    }

    memset(&a, 0, sizeof(a));
    a.kw = LLM_KW_EACH_ITEM;
    a.item = llm_schema_item(s, t->value, LLM_SCHEMA_NOT);

    return llm_schema_atom(s, b, &a);
}


/* a number or a string that the keyword refuses */

int
llm_schema_not_scalar(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t)
{
    int                rc;
    llm_rx_t           rx;
    llm_schema_atom_t  a;

    if (t->value->type == LLM_FLAT_BOOL) {
        /* draft 4's exclusiveMinimum only modifies minimum */
        return LLM_END;
    }

    if (t->kw == LLM_KW_FORMAT) {
        rc = llm_schema_format(s, t->value, &rx);
        if (rc != LLM_OK) {
            return rc == LLM_ABSENT ? LLM_END : LLM_ERROR;
        }
    }

    memset(&a, 0, sizeof(a));
    a.kw = t->kw;
    a.schema = t->schema;
    a.value = t->value;
    a.neg = 1;

    return llm_schema_atom(s, b, &a);
}
