/*
 * Expands a set of schemas and values to branches: keywords that consist of
 * other schemas ("anyOf", "$ref" ...) are resolved; what remains is types and
 * atoms.
 *
 * A branch has a list of tasks, items still to be expanded.  Where there are
 * alternatives the branch is copied, and each copy is expanded separately.
 */

#include "engine/grammar/schema/internal.h"


/* adds a keyword that is an atom itself */

static int
llm_schema_keyword_atom(llm_schema_t *s, llm_schema_branch_t *b,
    llm_schema_kw_t kw, const llm_flat_t *schema, const llm_flat_t *value,
    const llm_schema_scope_t *scope)
{
    llm_schema_atom_t  a;

    memset(&a, 0, sizeof(a));
    a.kw = kw;
    a.schema = schema;
    a.value = value;
    a.scope = scope;

    return llm_schema_atom(s, b, &a);
}


/* "enum" and "const": one branch for all scalars, one for each object and
   array */

static int
llm_schema_enum(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out)
{
    int                   one;
    uint32_t              types, type, n;
    const llm_flat_t     *c, *first;
    llm_schema_branch_t   copy;

    one = t->kw == LLM_KW_CONST;

    if (!one && llm_schema_is(s, t->value, LLM_FLAT_ARRAY) != LLM_OK) {
        return LLM_ERROR;
    }

    types = 0;
    n = 0;
    first = one ? t->value : llm_flat_first(t->value);

    for (c = first; c; c = one ? NULL : llm_flat_next(t->value, c)) {
        type = llm_schema_type_of(s, c);

        if (type & b->types & (LLM_SCHEMA_ARRAY|LLM_SCHEMA_OBJECT)) {
            n++;

        } else {
            types |= type;
        }
    }

    types &= ~(uint32_t) (LLM_SCHEMA_ARRAY|LLM_SCHEMA_OBJECT);

    for (c = first; c && n; c = one ? NULL : llm_flat_next(t->value, c)) {
        type = llm_schema_type_of(s, c);

        if ((type & b->types & (LLM_SCHEMA_ARRAY|LLM_SCHEMA_OBJECT)) == 0) {
            continue;
        }

        copy = *b;
        copy.types &= type;

        if (llm_schema_todo(s, &copy,
                            llm_schema_item(s, c, LLM_SCHEMA_VALUE), NULL)
            != LLM_OK
            || llm_schema_fork(s, &copy, out) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    b->types &= types;

    return llm_schema_keyword_atom(s, b, t->kw, t->schema, t->value, NULL);
}


/* the value must equal v */

static int
llm_schema_value(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_flat_t *v)
{
    llm_str_t           key;
    const llm_flat_t   *c;
    llm_schema_atom_t   a;
    llm_schema_item_t   item;

    b->types &= llm_schema_type_of(s, v);
    memset(&a, 0, sizeof(a));

    if (v->type == LLM_FLAT_OBJECT) {
        for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
            key = llm_flat_str(c);
            c = llm_flat_next(v, c);
            item = llm_schema_item(s, c, LLM_SCHEMA_VALUE);

            if (llm_schema_has(s, b, key, &item) != LLM_OK) {
                return LLM_ERROR;
            }
        }

        return llm_schema_bound(s, b, LLM_KW_MAX_PROPERTIES, v->count);
    }

    if (v->type == LLM_FLAT_ARRAY) {
        for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
            a.kw = LLM_KW_ITEM;
            a.item = llm_schema_item(s, c, LLM_SCHEMA_VALUE);

            if (llm_schema_atom(s, b, &a) != LLM_OK) {
                return LLM_ERROR;
            }

            a.n++;
        }

        if (llm_schema_bound(s, b, LLM_KW_MIN_ITEMS, v->count) != LLM_OK) {
            return LLM_ERROR;
        }

        return llm_schema_bound(s, b, LLM_KW_MAX_ITEMS, v->count);
    }

    a.kw = LLM_KW_CONST;
    a.value = v;

    return llm_schema_atom(s, b, &a);
}


static int
llm_schema_keyword(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out)
{
    const llm_flat_t  *v;

    switch (t->kw) {

    case LLM_KW_ENUM:
    case LLM_KW_CONST:
        return llm_schema_enum(s, b, t, out);

    case LLM_KW_REF:
    case LLM_KW_DYNAMIC_REF:
    case LLM_KW_RECURSIVE_REF:
        if (llm_schema_target(s, t->value, t->kw, &v) != LLM_OK) {
            return LLM_ERROR;
        }

        return llm_schema_todo(s, b, llm_schema_item(s, v, 0), t->scope);

    case LLM_KW_ALL_OF:
        return llm_schema_all_of(s, b, t);

    case LLM_KW_ANY_OF:
        return llm_schema_any_of(s, b, t, out);

    case LLM_KW_ONE_OF:
        return llm_schema_one_of(s, b, t, out);

    case LLM_KW_NOT:
        s->negated = 1;
        return llm_schema_todo(s, b, llm_schema_item(s, t->value,
                                                     LLM_SCHEMA_NOT), NULL);

    case LLM_KW_IF:
        return llm_schema_if(s, b, t, out);

    case LLM_KW_PROPERTIES:
        return llm_schema_keyword_atom(s, b, t->kw, t->schema, t->value,
                                       t->scope);

    default:
        return llm_schema_depend(s, b, t, out);
    }
}


/*
 * When a keyword is applied. 0: at once, if it does not consist of other
 * schemas; the others in the order of these numbers.  Keywords that always
 * hold are applied in the order in which they are written, which determines
 * the order of the properties.
 */

static unsigned
llm_schema_turn(llm_schema_kw_t kw)
{
    switch (kw) {

    case LLM_KW_ENUM:
    case LLM_KW_CONST:
        return 1;

    case LLM_KW_PROPERTIES:
    case LLM_KW_REF:
    case LLM_KW_DYNAMIC_REF:
    case LLM_KW_RECURSIVE_REF:
    case LLM_KW_ALL_OF:
        return 2;

    default:
        return kw < LLM_KW_FIRST_MADE ? 0 : (unsigned) kw;
    }
}


/* adds the keywords that are applied later as tasks */

static int
llm_schema_later(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_flat_t *v, const llm_schema_scope_t *scope)
{
    size_t                    i, n;
    unsigned                  turn;
    const llm_flat_t         *c;
    llm_schema_todo_t         list[LLM_KW_HAS], t;
    const llm_schema_row_t   *row;

    n = 0;

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        row = llm_schema_row(s, llm_flat_str(c));
        c = llm_flat_next(v, c);
        turn = row && (row->types & b->types) ? llm_schema_turn(row->kw) : 0;

        if (turn == 0 || llm_schema_gone(s, row, c)
            || n == llm_nelems(list))
        {
            continue;
        }

        memset(&t, 0, sizeof(t));
        t.kw = row->kw;
        t.schema = v;
        t.value = c;
        t.scope = scope;

        /* the last task of the list is done first */
        for (i = n++; i && llm_schema_turn(list[i - 1].kw) <= turn; i--) {
            list[i] = list[i - 1];
        }

        list[i] = t;
    }

    for (i = 0; i < n; i++) {
        if (llm_schema_todo_kw(s, b, &list[i]) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_schema_scope(llm_schema_t *s, const llm_flat_t *v,
    const llm_schema_scope_t **scope)
{
    llm_schema_scope_t  *own;

    if (s->draft < LLM_DRAFT_2019 || s->gone.unevaluated
        || (llm_flat_get(v, "unevaluatedProperties") == NULL
            && llm_flat_get(v, "unevaluatedItems") == NULL))
    {
        return LLM_OK;
    }

    own = llm_schema_alloc(s, sizeof(llm_schema_scope_t));
    if (own == NULL) {
        return LLM_ERROR;
    }

    own->parent = *scope;
    *scope = own;

    return LLM_OK;
}


static int
llm_schema_schema(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_flat_t *v, const llm_schema_scope_t *scope)
{
    const llm_flat_t         *c, *ref;
    llm_schema_todo_t         t;
    const llm_schema_row_t   *row;

    ref = llm_flat_get(v, "$ref");

    if (ref && s->draft < LLM_DRAFT_2019) {
        if (llm_schema_gone(s, NULL, ref)) {
            return LLM_OK;
        }

        memset(&t, 0, sizeof(t));
        t.kw = LLM_KW_REF;
        t.schema = v;
        t.value = ref;

        return llm_schema_todo_kw(s, b, &t);
    }

    if (llm_schema_scope(s, v, &scope) != LLM_OK) {
        return LLM_ERROR;
    }

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        row = llm_schema_row(s, llm_flat_str(c));
        c = llm_flat_next(v, c);

        if (row == NULL || (row->types & b->types) == 0
            || llm_schema_turn(row->kw) || llm_schema_gone(s, row, c))
        {
            continue;
        }

        if (row->kw == LLM_KW_TYPE) {
            if (llm_schema_type(s, b, c, 0) != LLM_OK) {
                return LLM_ERROR;
            }

            continue;
        }

        if (llm_schema_keyword_atom(s, b, row->kw, v, c, scope) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return llm_schema_later(s, b, v, scope);
}


static int
llm_schema_item_step(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out)
{
    int                neg;
    const llm_flat_t  *v;

    if (t->item == LLM_SCHEMA_FALSE) {
        return LLM_END;
    }

    v = llm_schema_flat(s, t->item);
    neg = (t->item & LLM_SCHEMA_NOT) != 0;

    if (t->item & LLM_SCHEMA_VALUE) {
        return neg ? llm_schema_not_value(s, b, v, out)
                   : llm_schema_value(s, b, v);
    }

    if (llm_schema_gone(s, NULL, v)) {
        return LLM_OK;
    }

    if (v->type == LLM_FLAT_BOOL) {
        return (llm_flat_int(v) != 0) == neg ? LLM_END : LLM_OK;
    }

    if (v->type != LLM_FLAT_OBJECT) {
        return llm_schema_refuse(s, v, "it must be a schema");
    }

    return neg ? llm_schema_not_schema(s, b, v, out)
               : llm_schema_schema(s, b, v, t->scope);
}


/* does the tasks of b; finished branches go to out */

static int
llm_schema_run(llm_schema_t *s, llm_schema_branch_t *b,
    llm_schema_branches_t *out)
{
    int                       rc;
    const llm_schema_todo_t  *t;

    while (b->todo && b->types) {
        if (++s->work > s->max_work || llm_lex_now_us() > s->until_us) {
            return llm_schema_too_large(s);
        }

        llm_rx_worked(s->pool);
        t = b->todo;
        b->todo = t->next;

        if (t->schema == NULL) {
            rc = llm_schema_item_step(s, b, t, out);

        } else if (t->neg) {
            rc = llm_schema_not(s, b, t, out);

        } else {
            rc = llm_schema_keyword(s, b, t, out);
        }

        if (rc != LLM_OK) {
            return rc == LLM_END ? LLM_OK : LLM_ERROR;
        }
    }

    return b->types ? llm_schema_keep(s, b, out) : LLM_OK;
}


int
llm_schema_expand(llm_schema_t *s, llm_schema_set_t set, uint32_t types,
    llm_schema_branches_t *out)
{
    uint32_t             i;
    llm_schema_branch_t  b;

    memset(out, 0, sizeof(llm_schema_branches_t));
    memset(&b, 0, sizeof(b));
    b.types = types;

    for (i = set.n; i; i--) {
        if (llm_schema_todo(s, &b, set.items[i - 1], NULL) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    if (llm_schema_run(s, &b, out) != LLM_OK) {
        return LLM_ERROR;
    }

    while (out->n_open) {
        b = out->open[--out->n_open];

        /* many branches of a product contradict themselves */

        if (s->negated && !s->loose && out->n + out->n_open >= 16
            && s->contradicts(s, &b))
        {
            continue;
        }

        if (llm_schema_run(s, &b, out) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
