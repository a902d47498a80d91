/*
 * Arrays: what the atoms of a branch require of the item at each position, and
 * of some item.
 *
 * A plan has a set for each position of a prefix, and one for all later
 * positions.
 */

#include "engine/grammar/schema/internal.h"


#define LLM_SCHEMA_MAX_PREFIX  4096
#define LLM_SCHEMA_BEHIND      UINT32_MAX       /* stands for all positions
                                                   after the prefix */


/* the number of positions that an atom names */

static uint32_t
llm_schema_prefix(const llm_schema_atom_t *a)
{
    const llm_flat_t  *v;

    switch (a->kw) {

    case LLM_KW_PREFIX_ITEMS:
        return a->value->count;

    case LLM_KW_ITEMS:
        return a->value->type == LLM_FLAT_ARRAY ? a->value->count : 0;

    case LLM_KW_ADDITIONAL_ITEMS:
        v = llm_flat_get(a->schema, "items");
        return v && v->type == LLM_FLAT_ARRAY ? v->count : 0;

    case LLM_KW_ITEM:
        return a->n + 1;

    case LLM_KW_SOME_ITEM:
        return a->n;

    default:
        return 0;
    }
}


static const llm_flat_t *
llm_schema_nth(const llm_flat_t *v, uint32_t n)
{
    const llm_flat_t  *c;

    c = llm_flat_first(v);

    while (c && n--) {
        c = llm_flat_next(v, c);
    }

    return c;
}


/* what one atom requires of the item at a position: a schema, or NULL */

static const llm_flat_t *
llm_schema_at(const llm_schema_t *s, const llm_schema_atom_t *a, uint32_t at)
{
    const llm_flat_t  *v;

    switch (a->kw) {

    case LLM_KW_PREFIX_ITEMS:
        return at < a->value->count ? llm_schema_nth(a->value, at) : NULL;

    case LLM_KW_ITEMS:
        if (a->value->type == LLM_FLAT_ARRAY) {
            return at < a->value->count ? llm_schema_nth(a->value, at)
                                        : NULL;
        }

        v = s->draft == LLM_DRAFT_2020
            ? llm_flat_get(a->schema, "prefixItems") : NULL;

        return v == NULL || at >= v->count ? a->value : NULL;

    case LLM_KW_ADDITIONAL_ITEMS:
        v = llm_flat_get(a->schema, "items");

        return v && v->type == LLM_FLAT_ARRAY && at >= v->count ? a->value
                                                                : NULL;

    default:
        return NULL;
    }
}


/* does a schema below that of u evaluate the item at this position? */

static int
llm_schema_evaluated(llm_schema_t *s, const llm_schema_branch_t *b,
    const llm_schema_atom_t *u, uint32_t at)
{
    const llm_schema_atom_t  *a;

    for (a = b->atoms; a; a = a->prev) {
        if (a == u || !llm_schema_in_scope(a, u->scope)) {
            continue;
        }

        if (llm_schema_at(s, a, at)
            || a->kw == LLM_KW_UNEVALUATED_ITEMS)
        {
            return 1;
        }

        if (a->kw == LLM_KW_CONTAINS && s->draft == LLM_DRAFT_2020) {
            return llm_schema_refuse(s, u->value, "beside \"contains\" it is"
                                     " not supported");
        }
    }

    return 0;
}


static int
llm_schema_array_value(llm_schema_t *s, const llm_schema_branch_t *b,
    uint32_t at, llm_schema_bag_t *bag)
{
    int                       rc;
    const llm_flat_t         *v;
    const llm_schema_atom_t  *a;

    for (a = b->atoms; a; a = a->prev) {
        v = llm_schema_at(s, a, at);

        if (a->kw == LLM_KW_UNEVALUATED_ITEMS) {
            rc = llm_schema_evaluated(s, b, a, at);
            if (rc == LLM_ERROR) {
                return LLM_ERROR;
            }

            v = rc ? NULL : a->value;
        }

        if (v && llm_schema_bag_schema(s, bag, v) != LLM_OK) {
            return LLM_ERROR;
        }

        if ((a->kw == LLM_KW_EACH_ITEM
             || (a->kw == LLM_KW_ITEM && a->n == at))
            && llm_schema_bag_add(s, bag, a->item) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_schema_array_count(llm_schema_t *s, const llm_schema_atom_t *a,
    llm_schema_array_t *p)
{
    uint32_t  n;

    n = a->n;

    if (a->value && llm_schema_count(s, a->value, &n) != LLM_OK) {
        return LLM_ERROR;
    }

    if (a->kw == LLM_KW_MIN_ITEMS) {
        p->min = llm_max(p->min, n);

    } else {
        p->max = llm_min(p->max, n);
    }

    return LLM_OK;
}


/* handles "contains"; where an item is required, sets p->some */

static int
llm_schema_contains(llm_schema_t *s, const llm_schema_atom_t *a,
    llm_schema_array_t *p)
{
    uint32_t            min, max;
    const llm_flat_t   *v;
    llm_schema_item_t   item;

    min = 1;
    max = LLM_GN_NO_MAX;

    if (a->kw == LLM_KW_CONTAINS && s->draft >= LLM_DRAFT_2019) {
        v = llm_flat_get(a->schema, "minContains");
        if (v && !llm_schema_gone(s, NULL, v)
            && llm_schema_count(s, v, &min) != LLM_OK)
        {
            return LLM_ERROR;
        }

        v = llm_flat_get(a->schema, "maxContains");
        if (v && llm_schema_gone(s, NULL, v)) {
            v = NULL;
        }

        if (v && llm_schema_count(s, v, &max) != LLM_OK) {
            return LLM_ERROR;
        }

        if (max != LLM_GN_NO_MAX && !s->loose) {
            return llm_schema_refuse(s, v, "it is not supported");
        }
    }

    if (min == 0) {
        return LLM_OK;
    }

    item = a->kw == LLM_KW_CONTAINS ? llm_schema_item(s, a->value, 0)
                                    : a->item;

    if (p->some && p->contains != item) {
        if (s->loose) {
            return LLM_OK;
        }

        return llm_schema_refuse(s, a->value, "together with another"
                                 " \"contains\", or a negation of \"items\","
                                 " it is not supported");
    }

    p->some = a;
    p->contains = item;
    p->min_contains = llm_max(p->min_contains, min);
    p->min = llm_max(p->min, min);

    return LLM_OK;
}


static int
llm_schema_array_atoms(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_array_t *p)
{
    int                       rc;
    const llm_schema_atom_t  *a;

    for (a = b->atoms; a; a = a->prev) {
        rc = LLM_OK;

        switch (a->kw) {

        case LLM_KW_PREFIX_ITEMS:
            rc = llm_schema_is(s, a->value, LLM_FLAT_ARRAY);
            break;

        case LLM_KW_ITEM:
            p->min = llm_max(p->min, a->n + 1);
            break;

        case LLM_KW_MIN_ITEMS:
        case LLM_KW_MAX_ITEMS:
            rc = llm_schema_array_count(s, a, p);
            break;

        case LLM_KW_UNIQUE_ITEMS:
            rc = llm_schema_is(s, a->value, LLM_FLAT_BOOL);

            if (rc == LLM_OK && llm_flat_int(a->value)) {
                p->unique = a->value;
            }

            break;

        case LLM_KW_CONTAINS:
        case LLM_KW_SOME_ITEM:
            rc = llm_schema_contains(s, a, p);
            break;

        default:
            break;
        }

        if (rc != LLM_OK) {
            return LLM_ERROR;
        }

        if (!(a->kw == LLM_KW_SOME_ITEM && p->some != a)) {
            p->n_prefix = llm_max(p->n_prefix, llm_schema_prefix(a));
        }
    }

    return LLM_OK;
}


int
llm_schema_array_plan(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_array_t *p)
{
    uint32_t  i;

    memset(p, 0, sizeof(llm_schema_array_t));
    p->max = LLM_GN_NO_MAX;

    if (llm_schema_array_atoms(s, b, p) != LLM_OK) {
        return LLM_ERROR;
    }

    p->n_prefix = llm_min(p->n_prefix, p->max);

    if (p->n_prefix > LLM_SCHEMA_MAX_PREFIX) {
        return llm_schema_too_large(s);
    }

    p->prefix = llm_schema_alloc(s, (p->n_prefix + 1)
                                    * sizeof(llm_schema_bag_t));
    if (p->prefix == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < p->n_prefix; i++) {
        if (llm_schema_array_value(s, b, i, &p->prefix[i]) != LLM_OK) {
            return LLM_ERROR;
        }

        if (p->prefix[i].none) {
            p->max = i;
            p->n_prefix = i;
        }
    }

    if (llm_schema_array_value(s, b, LLM_SCHEMA_BEHIND, &p->items) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (p->items.none) {
        p->max = llm_min(p->max, p->n_prefix);
    }

    p->dead = p->min > p->max;

    return LLM_OK;
}


/* the branches in which a required item is one of the prefix */

static int
llm_schema_array_split(llm_schema_t *s, const llm_schema_branch_t *b,
    const llm_schema_array_t *p, llm_schema_nodes_t *nodes)
{
    uint32_t                  i, from;
    llm_schema_atom_t         item;
    llm_schema_branch_t       rest, copy;
    const llm_schema_atom_t  *a, **list;

    from = llm_schema_prefix(p->some);

    if (p->min_contains > 1) {
        return llm_schema_refuse(s, p->some->value, "behind items with"
                                 " schemas of their own, it can only ask for"
                                 " one item");
    }

    list = llm_schema_alloc(s, LLM_SCHEMA_MAX_PREFIX * sizeof(*list));
    if (list == NULL) {
        return LLM_ERROR;
    }

    rest = *b;
    rest.atoms = NULL;

    for (i = 0, a = b->atoms; a && i < LLM_SCHEMA_MAX_PREFIX; a = a->prev) {
        if (a->kw != LLM_KW_SOME_ITEM && a->kw != LLM_KW_CONTAINS) {
            list[i++] = a;
        }
    }

    if (a) {
        return llm_schema_too_large(s);
    }

    while (i) {
        if (llm_schema_atom(s, &rest, list[--i]) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    memset(&item, 0, sizeof(item));
    item.value = p->some->value;
    item.item = p->contains;

    for (i = from; i <= p->n_prefix; i++) {
        copy = rest;
        item.kw = i < p->n_prefix ? LLM_KW_ITEM : LLM_KW_SOME_ITEM;
        item.n = i;

        if (llm_schema_atom(s, &copy, &item) != LLM_OK
            || llm_schema_array(s, &copy, nodes) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_schema_array_unique(llm_schema_t *s, llm_gn_t node,
    const llm_flat_t *value)
{
    llm_schema_unique_t  *u;

    u = llm_schema_alloc(s, sizeof(llm_schema_unique_t));
    if (u == NULL) {
        return LLM_ERROR;
    }

    u->node = node;
    u->value = value;
    u->prev = s->unique;
    s->unique = u;

    return LLM_OK;
}


int
llm_schema_array(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_nodes_t *nodes)
{
    uint32_t            i;
    llm_gn_t           *prefix, node;
    llm_gn_array_t      x;
    llm_schema_bag_t    both;
    llm_schema_array_t  p;

    if (llm_schema_array_plan(s, b, &p) != LLM_OK) {
        return LLM_ERROR;
    }

    if (p.dead) {
        return LLM_OK;
    }

    if (p.some && llm_schema_prefix(p.some) < p.n_prefix) {
        return llm_schema_array_split(s, b, &p, nodes);
    }

    prefix = llm_schema_alloc(s, (p.n_prefix + 1) * sizeof(llm_gn_t));
    if (prefix == NULL) {
        return LLM_ERROR;
    }

    memset(&x, 0, sizeof(x));

    for (i = 0; i < p.n_prefix; i++) {
        if (llm_schema_state(s, llm_schema_bag_set(&p.prefix[i]),
                             &prefix[i]) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    x.prefix = prefix;
    x.n_prefix = p.n_prefix;
    x.min = p.min;
    x.max = p.max;
    x.unique = p.unique != NULL;

    if (p.items.none) {
        x.items = LLM_GN_NONE;

    } else if (llm_schema_state(s, llm_schema_bag_set(&p.items), &x.items)
               != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (p.some) {
        both.items = NULL;
        memset(&both, 0, sizeof(both));

        for (i = 0; i < p.items.n; i++) {
            if (llm_schema_bag_add(s, &both, p.items.items[i]) != LLM_OK) {
                return LLM_ERROR;
            }
        }

        if (llm_schema_bag_add(s, &both, p.contains) != LLM_OK) {
            return LLM_ERROR;
        }

        if (both.none) {
            return LLM_OK;
        }

        if (llm_schema_state(s, llm_schema_bag_set(&both), &x.contains)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        x.min_contains = p.min_contains;
    }

    node = llm_gn_array(s->b, &x);

    if (p.unique && llm_schema_array_unique(s, node, p.unique) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_schema_nodes_add(s, nodes, node);
}
