/*
 * The values of objects: for each named key, the set of everything that its
 * value must satisfy.  All other keys are divided by the patterns that match
 * them, so that each kind has one set, too.
 */

#include "engine/grammar/schema/internal.h"


#define LLM_SCHEMA_MAX_PATTERNS  24
#define LLM_SCHEMA_MAX_OTHERS    256

/* a pattern of "patternProperties" */
typedef struct {
    const llm_flat_t    *schema;
    const llm_flat_t    *v;
    llm_rx_t             rx;
} llm_schema_match_t;


/* collects the patterns that constrain keys */

static int
llm_schema_object_matches(llm_schema_t *s, const llm_schema_object_t *o,
    llm_schema_match_t *m, uint32_t *n)
{
    uint32_t                  i;
    llm_str_t                 key;
    const llm_flat_t         *c, *v;
    const llm_schema_atom_t  *a;

    *n = 0;

    for (i = 0; i < o->n_atoms; i++) {
        a = o->atoms[i];

        if (a->kw != LLM_KW_PATTERN_PROPERTIES) {
            continue;
        }

        v = a->value;
        if (llm_schema_is(s, v, LLM_FLAT_OBJECT) != LLM_OK) {
            return LLM_ERROR;
        }

        for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
            key = llm_flat_str(c);

            if (*n == LLM_SCHEMA_MAX_PATTERNS) {
                return llm_schema_refuse(s, v, "more than %d patterns that"
                                         " apply together are not supported",
                                         LLM_SCHEMA_MAX_PATTERNS);
            }

            if (llm_schema_pattern(s, c, key, &m[*n].rx) != LLM_OK) {
                return LLM_ERROR;
            }

            c = llm_flat_next(v, c);
            m[*n].schema = a->schema;
            m[(*n)++].v = c;
        }
    }

    return LLM_OK;
}


/* does schema's "properties" have the key? */

static const llm_schema_link_t *
llm_schema_linked(const llm_schema_key_t *e, const llm_flat_t *schema)
{
    const llm_schema_link_t  *l;

    for (l = e ? e->links : NULL; l; l = l->next) {
        if (l->schema == schema) {
            return l;
        }
    }

    return NULL;
}


/*
 * What the atoms require of the value of a key that matches the patterns in
 * bits: of key e, or, if e is NULL, of a key that is not named.
 */

static int
llm_schema_object_value(llm_schema_t *s, const llm_schema_object_t *o,
    const llm_schema_match_t *m, uint32_t n_m, uint32_t bits,
    const llm_schema_key_t *e, llm_schema_bag_t *bag)
{
    int                        found, *evaluated;
    uint32_t                   i, k;
    const llm_schema_atom_t   *a;
    const llm_schema_link_t   *l;

    evaluated = llm_schema_alloc(s, (o->n_atoms + 1) * sizeof(int));
    if (evaluated == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < o->n_atoms; i++) {
        a = o->atoms[i];
        found = 0;

        switch (a->kw) {

        case LLM_KW_PROPERTIES:
            l = llm_schema_linked(e, a->schema);

            if (l) {
                evaluated[i] = 1;

                if (llm_schema_bag_schema(s, bag, l->v) != LLM_OK) {
                    return LLM_ERROR;
                }
            }

            break;

        case LLM_KW_PATTERN_PROPERTIES:
            for (k = 0; k < n_m; k++) {
                if (m[k].schema == a->schema && (bits & 1u << k)) {
                    evaluated[i] = 1;

                    if (llm_schema_bag_schema(s, bag, m[k].v) != LLM_OK) {
                        return LLM_ERROR;
                    }
                }
            }

            break;

        case LLM_KW_ADDITIONAL_PROPERTIES:
            found = llm_schema_linked(e, a->schema) != NULL;

            for (k = 0; k < n_m && !found; k++) {
                found = m[k].schema == a->schema && (bits & 1u << k);
            }

            if (!found) {
                evaluated[i] = 1;

                if (llm_schema_bag_schema(s, bag, a->value) != LLM_OK) {
                    return LLM_ERROR;
                }
            }

            break;

        default:
            break;
        }
    }

    /* from the inner ones outwards, because inner ones come later */

    for (i = o->n_atoms; i--; /* void */) {
        a = o->atoms[i];

        if (a->kw != LLM_KW_UNEVALUATED_PROPERTIES) {
            continue;
        }

        for (found = 0, k = 0; k < o->n_atoms && !found; k++) {
            found = k != i && evaluated[k]
                    && llm_schema_in_scope(o->atoms[k], a->scope);
        }

        if (!found) {
            evaluated[i] = 1;

            if (llm_schema_bag_schema(s, bag, a->value) != LLM_OK) {
                return LLM_ERROR;
            }
        }
    }

    return LLM_OK;
}


static int
llm_schema_object_named(llm_schema_t *s, llm_schema_object_t *o,
    const llm_schema_match_t *m, uint32_t n_m)
{
    uint32_t           i, k, bits;
    llm_schema_bag_t   own;
    llm_schema_key_t  *e;

    for (i = 0; i < o->n_keys; i++) {
        e = &o->keys[i];
        bits = 0;

        for (k = 0; k < n_m; k++) {
            if (llm_rx_matches(s->pool, m[k].rx, e->key.data, e->key.len)) {
                bits |= 1u << k;
            }
        }

        own = e->value;
        memset(&e->value, 0, sizeof(llm_schema_bag_t));

        if (llm_schema_object_value(s, o, m, n_m, bits, e, &e->value)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        for (k = 0; k < own.n; k++) {
            if (llm_schema_bag_add(s, &e->value, own.items[k]) != LLM_OK) {
                return LLM_ERROR;
            }
        }

        if (e->lacking
            || (o->names != LLM_RX_TEXT
                && !llm_rx_matches(s->pool, o->names, e->key.data,
                                   e->key.len)))
        {
            e->value.none = 1;
        }

        if (e->required) {
            o->required++;
            o->dead |= e->value.none;
        }
    }

    return LLM_OK;
}


/* adds a kind of other keys, joining it with a kind that has the same set */

static int
llm_schema_add_others(llm_schema_t *s, llm_schema_object_t *o, llm_rx_t rx,
    const llm_schema_bag_t *value)
{
    uint32_t              i;
    llm_schema_others_t  *k;

    if (value->none) {
        return LLM_OK;
    }

    for (i = 0; i < o->n_others; i++) {
        k = &o->others[i];

        if (k->value.n == value->n
            && (value->n == 0
                || memcmp(k->value.items, value->items,
                          value->n * sizeof(llm_schema_item_t)) == 0))
        {
            k->rx = llm_rx_or(s->pool, k->rx, rx);
            return LLM_OK;
        }
    }

    if (o->n_others == LLM_SCHEMA_MAX_OTHERS) {
        return llm_schema_too_large(s);
    }

    if (llm_schema_grow(s, &o->others, o->n_others, &o->others_size,
                        sizeof(llm_schema_others_t)) != LLM_OK)
    {
        return LLM_ERROR;
    }

    o->others[o->n_others].rx = rx;
    o->others[o->n_others++].value = *value;

    return LLM_OK;
}


/* divides the keys of rx by the patterns from k on */

static int
llm_schema_divide(llm_schema_t *s, llm_schema_object_t *o,
    const llm_schema_match_t *m, uint32_t n_m, uint32_t k, uint32_t bits,
    llm_rx_t rx)
{
    llm_rx_t          in;
    llm_schema_bag_t  bag;

    if (++s->work > s->max_work) {
        return llm_schema_too_large(s);
    }

    /* an empty kind need not be divided further; but the test takes long, so
       it is not done for the first few patterns */

    if (rx == LLM_RX_NONE
        || (k > 3 && llm_rx_is_none(s->pool, rx, 200) == 1))
    {
        return LLM_OK;
    }

    if (k == n_m) {
        memset(&bag, 0, sizeof(bag));

        if (llm_schema_object_value(s, o, m, n_m, bits, NULL, &bag)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        return llm_schema_add_others(s, o, rx, &bag);
    }

    in = llm_rx_and(s->pool, rx, m[k].rx);

    if (llm_schema_divide(s, o, m, n_m, k + 1, bits | 1u << k, in)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_schema_divide(s, o, m, n_m, k + 1, bits,
                             llm_rx_and(s->pool, rx,
                                        llm_rx_not(s->pool, m[k].rx)));
}


/* all keys that are not named; most branches of a place have the same */

static int
llm_schema_not_named(llm_schema_t *s, const llm_schema_object_t *o,
    llm_rx_t *rx)
{
    uint32_t                i;
    llm_str_t              *keys;
    llm_schema_names_t     *n;

    n = &s->names;

    for (i = 0; i < o->n_keys && i < n->n; i++) {
        if (!llm_str_eq(o->keys[i].key, n->keys[i])) {
            break;
        }
    }

    if (n->n == o->n_keys && i == n->n) {
        *rx = n->rx;
        return LLM_OK;
    }

    keys = llm_schema_alloc(s, 2 * o->n_keys * sizeof(llm_str_t));
    if (keys == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < o->n_keys; i++) {
        keys[i] = o->keys[i].key;
        keys[o->n_keys + i] = o->keys[i].key;
    }

    n->rx = llm_rx_not(s->pool, llm_rx_literals(s->pool, keys + o->n_keys,
                                                o->n_keys));
    n->keys = keys;
    n->n = o->n_keys;
    *rx = n->rx;

    return LLM_OK;
}


/* adds the kinds of keys that are not named */

static int
llm_schema_object_others(llm_schema_t *s, llm_schema_object_t *o,
    const llm_schema_match_t *m, uint32_t n_m)
{
    uint32_t  i;
    llm_rx_t  named;

    if (o->max <= o->required || (s->loose && o->some == NULL)) {
        return LLM_OK;
    }

    if (llm_schema_divide(s, o, m, n_m, 0, 0, o->names) != LLM_OK) {
        return LLM_ERROR;
    }

    if (o->n_others == 0 || o->n_keys == 0) {
        return LLM_OK;
    }

    if (llm_schema_not_named(s, o, &named) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < o->n_others; i++) {
        o->others[i].rx = llm_rx_and(s->pool, o->others[i].rx, named);
    }

    return LLM_OK;
}


int
llm_schema_object_plan(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_object_t *o)
{
    uint32_t            n;
    llm_schema_match_t  matches[LLM_SCHEMA_MAX_PATTERNS];

    memset(o, 0, sizeof(llm_schema_object_t));

    if (llm_schema_object_atoms(s, b, o) != LLM_OK
        || llm_schema_object_keys(s, o) != LLM_OK
        || llm_schema_object_names(s, o) != LLM_OK
        || llm_schema_object_matches(s, o, matches, &n) != LLM_OK
        || llm_schema_object_named(s, o, matches, n) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (o->dead || o->min > o->max || o->required > o->max) {
        o->dead = 1;
        return LLM_OK;
    }

    return llm_schema_object_others(s, o, matches, n);
}


/* b without one of its atoms */

static int
llm_schema_without(llm_schema_t *s, const llm_schema_branch_t *b,
    const llm_schema_object_t *o, const llm_schema_atom_t *without,
    llm_schema_branch_t *out)
{
    uint32_t  i;

    *out = *b;
    out->types = LLM_SCHEMA_OBJECT;
    out->atoms = NULL;

    for (i = 0; i < o->n_atoms; i++) {
        if (o->atoms[i] != without
            && llm_schema_atom(s, out, o->atoms[i]) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* resolves SOME: for each named key, the branches in which it is that key */

int
llm_schema_object_split(llm_schema_t *s, const llm_schema_branch_t *b,
    const llm_schema_object_t *o, llm_schema_branches_t *out)
{
    uint32_t                   i;
    llm_schema_branch_t        rest, copy;
    const llm_schema_key_t    *e;
    const llm_schema_atom_t   *some;

    memset(out, 0, sizeof(llm_schema_branches_t));
    some = o->some;

    if (llm_schema_without(s, b, o, some, &rest) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < o->n_keys; i++) {
        e = &o->keys[i];

        if (e->value.none
            || !llm_rx_matches(s->pool, o->some_rx, e->key.data, e->key.len))
        {
            continue;
        }

        copy = rest;

        if (llm_schema_has(s, &copy, e->key, some->any ? NULL : &some->item)
            != LLM_OK
            || llm_schema_keep(s, &copy, out) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    for (i = 0; i < o->n_others; i++) {
        if (llm_rx_is_none(s->pool, llm_rx_and(s->pool, o->others[i].rx,
                                               o->some_rx), 2000) != 1)
        {
            if (s->loose) {
                return llm_schema_keep(s, &rest, out);
            }

            return llm_schema_refuse(s, some->value, "its negation needs a"
                                     " property with a name that is not"
                                     " known to fail");
        }
    }

    return LLM_OK;
}
