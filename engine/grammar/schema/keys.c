/*
 * The keys of objects: those that a branch's atoms name, in order, and the
 * expressions of other keys.
 */

#include "engine/grammar/schema/internal.h"


/* the entry of key, or NULL; *place: where it is to be inserted */

static llm_schema_key_t *
llm_schema_find_key(const llm_schema_object_t *o, llm_str_t key,
    uint32_t hash, uint32_t *place)
{
    uint32_t           i;
    llm_schema_key_t  *e;

    for (i = hash & (o->table_size - 1); o->table[i];
         i = (i + 1) & (o->table_size - 1))
    {
        e = &o->keys[o->table[i] - 1];

        if (e->hash == hash && llm_str_eq(e->key, key)) {
            return e;
        }
    }

    *place = i;

    return NULL;
}


/* the entry of key, which is added if there is none */

static llm_schema_key_t *
llm_schema_key(llm_schema_t *s, llm_schema_object_t *o, llm_str_t key)
{
    uint32_t           i, k, hash, *table, size;
    llm_schema_key_t  *e;

    if (2 * o->n_keys >= o->table_size) {
        size = o->table_size ? 4 * o->table_size : 16;
        table = llm_schema_alloc(s, size * sizeof(uint32_t));
        if (table == NULL) {
            return NULL;
        }

        for (k = 0; k < o->n_keys; k++) {
            i = o->keys[k].hash & (size - 1);
            while (table[i]) {
                i = (i + 1) & (size - 1);
            }

            table[i] = k + 1;
        }

        o->table = table;
        o->table_size = size;
    }

    hash = llm_schema_hash(key.data, key.len);

    e = llm_schema_find_key(o, key, hash, &i);
    if (e) {
        return e;
    }

    if (llm_schema_grow(s, &o->keys, o->n_keys, &o->keys_size,
                        sizeof(llm_schema_key_t)) != LLM_OK)
    {
        return NULL;
    }

    e = &o->keys[o->n_keys++];
    o->table[i] = o->n_keys;
    e->key = key;
    e->hash = hash;

    return e;
}


/* known: only for keys that have an entry already */

static int
llm_schema_add_properties(llm_schema_t *s, llm_schema_object_t *o,
    const llm_schema_atom_t *a, int known)
{
    uint32_t             place;
    llm_str_t            key;
    llm_schema_key_t    *e;
    const llm_flat_t    *c;
    llm_schema_link_t   *l;

    if (llm_schema_is(s, a->value, LLM_FLAT_OBJECT) != LLM_OK) {
        return LLM_ERROR;
    }

    for (c = llm_flat_first(a->value); c; c = llm_flat_next(a->value, c)) {
        key = llm_flat_str(c);
        c = llm_flat_next(a->value, c);

        if (known) {
            e = llm_schema_find_key(o, key, llm_schema_hash(key.data,
                                                            key.len),
                                    &place);
            if (e == NULL) {
                continue;
            }

        } else {
            e = llm_schema_key(s, o, key);
        }

        l = llm_schema_alloc(s, sizeof(llm_schema_link_t));
        if (e == NULL || l == NULL) {
            return LLM_ERROR;
        }

        l->schema = a->schema;
        l->v = c;
        l->next = e->links;
        e->links = l;
    }

    return LLM_OK;
}


static int
llm_schema_add_required(llm_schema_t *s, llm_schema_object_t *o,
    const llm_flat_t *v)
{
    const llm_flat_t  *c;
    llm_schema_key_t  *e;

    if (llm_schema_is(s, v, LLM_FLAT_ARRAY) != LLM_OK) {
        return LLM_ERROR;
    }

    for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
        if (llm_schema_is(s, c, LLM_FLAT_STRING) != LLM_OK) {
            return LLM_ERROR;
        }

        e = llm_schema_key(s, o, llm_flat_str(c));
        if (e == NULL) {
            return LLM_ERROR;
        }

        e->required = 1;
    }

    return LLM_OK;
}


/* the strings that a schema allows */

static int
llm_schema_strings(llm_schema_t *s, const llm_flat_t *schema, llm_rx_t *rx)
{
    uint32_t               i;
    llm_rx_t               one;
    llm_schema_set_t       set;
    llm_schema_item_t      item;
    llm_schema_branches_t  branches;

    *rx = LLM_RX_NONE;
    item = llm_schema_item(s, schema, 0);
    set.items = &item;
    set.n = 1;

    if (llm_schema_expand(s, set, LLM_SCHEMA_STRING, &branches) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < branches.n; i++) {
        if (branches.items[i].types & LLM_SCHEMA_STRING) {
            if (llm_schema_string(s, &branches.items[i], &one) != LLM_OK) {
                return LLM_ERROR;
            }

            *rx = llm_rx_or(s->pool, *rx, one);
        }
    }

    return LLM_OK;
}


/* the keys that a schema's "properties" and "patternProperties" leave */

static int
llm_schema_additional(llm_schema_t *s, const llm_flat_t *schema,
    llm_rx_t *rx)
{
    uint32_t           n;
    uint64_t           place;
    llm_rx_t           one;
    llm_str_t         *keys;
    const llm_flat_t  *v, *c;

    place = (uint64_t) llm_schema_item(s, schema, LLM_SCHEMA_NOT) + 1;

    if (llm_schema_map_get(&s->regexes, place, rx) == LLM_OK) {
        return LLM_OK;
    }

    *rx = LLM_RX_NONE;

    v = llm_flat_get(schema, "properties");

    if (v && v->type == LLM_FLAT_OBJECT) {
        keys = llm_schema_alloc(s, (v->count + 1) * sizeof(llm_str_t));
        if (keys == NULL) {
            return LLM_ERROR;
        }

        n = 0;
        for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
            keys[n++] = llm_flat_str(c);
            c = llm_flat_next(v, c);
        }

        *rx = llm_rx_literals(s->pool, keys, n);
    }

    v = llm_flat_get(schema, "patternProperties");

    if (v && v->type == LLM_FLAT_OBJECT) {
        for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
            if (llm_schema_pattern(s, c, llm_flat_str(c), &one) != LLM_OK) {
                return LLM_ERROR;
            }

            *rx = llm_rx_or(s->pool, *rx, one);
            c = llm_flat_next(v, c);
        }
    }

    *rx = llm_rx_not(s->pool, *rx);

    return llm_schema_map_put(s, &s->regexes, place, *rx);
}


/* the keys one of which must exist */

static int
llm_schema_some_keys(llm_schema_t *s, const llm_schema_atom_t *a,
    llm_rx_t *rx)
{
    *rx = a->rx;

    if (a->schema) {
        return llm_schema_additional(s, a->schema, rx);
    }

    if (a->names) {
        if (llm_schema_strings(s, a->names, rx) != LLM_OK) {
            return LLM_ERROR;
        }

        *rx = llm_rx_not(s->pool, *rx);
    }

    return LLM_OK;
}


/* collects the atoms about objects in order, and the smallest range of
   counts */

int
llm_schema_object_atoms(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_object_t *o)
{
    uint32_t                  i, n;
    const llm_schema_atom_t  *a;

    o->max = LLM_GN_NO_MAX;

    for (n = 0, a = b->atoms; a; a = a->prev) {
        n++;
    }

    o->atoms = llm_schema_alloc(s, (n + 1) * sizeof(llm_schema_atom_t *));
    if (o->atoms == NULL) {
        return LLM_ERROR;
    }

    o->n_atoms = n;

    for (a = b->atoms; a; a = a->prev) {
        o->atoms[--n] = a;
    }

    for (i = 0; i < o->n_atoms; i++) {
        a = o->atoms[i];
        n = a->n;

        if (a->kw == LLM_KW_SOME && o->some == NULL) {
            o->some = a;

            if (llm_schema_some_keys(s, a, &o->some_rx) != LLM_OK) {
                return LLM_ERROR;
            }
        }

        if (a->kw != LLM_KW_MIN_PROPERTIES && a->kw != LLM_KW_MAX_PROPERTIES)
        {
            continue;
        }

        if (a->value && llm_schema_count(s, a->value, &n) != LLM_OK) {
            return LLM_ERROR;
        }

        if (a->kw == LLM_KW_MIN_PROPERTIES) {
            o->min = llm_max(o->min, n);

        } else {
            o->max = llm_min(o->max, n);
        }
    }

    return LLM_OK;
}


/* adds the keys that must exist, or must not */

static int
llm_schema_object_required(llm_schema_t *s, llm_schema_object_t *o)
{
    uint32_t                  i;
    llm_schema_key_t         *e;
    const llm_schema_atom_t  *a;

    for (i = 0; i < o->n_atoms; i++) {
        a = o->atoms[i];

        if (a->kw == LLM_KW_REQUIRED) {
            if (llm_schema_add_required(s, o, a->value) != LLM_OK) {
                return LLM_ERROR;
            }

        } else if (a->kw == LLM_KW_HAS || a->kw == LLM_KW_MAY_HAVE
                   || a->kw == LLM_KW_LACKS)
        {
            e = llm_schema_key(s, o, a->key);
            if (e == NULL) {
                return LLM_ERROR;
            }

            if (a->kw == LLM_KW_LACKS) {
                e->lacking = 1;
                continue;
            }

            e->required |= a->kw == LLM_KW_HAS;

            if (!a->any
                && llm_schema_bag_add(s, &e->value, a->item) != LLM_OK)
            {
                return LLM_ERROR;
            }
        }
    }

    return LLM_OK;
}


/* adds all named keys, those of "properties" first.  To tell whether a branch
   is empty, only the required ones matter */

int
llm_schema_object_keys(llm_schema_t *s, llm_schema_object_t *o)
{
    int       known;
    uint32_t  i;

    known = s->loose && o->some == NULL;

    if (known) {
        if (llm_schema_object_required(s, o) != LLM_OK) {
            return LLM_ERROR;
        }

        if (o->n_keys == 0) {
            return LLM_OK;
        }
    }

    for (i = 0; i < o->n_atoms; i++) {
        if (o->atoms[i]->kw == LLM_KW_PROPERTIES
            && llm_schema_add_properties(s, o, o->atoms[i], known) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return known ? LLM_OK : llm_schema_object_required(s, o);
}


int
llm_schema_object_names(llm_schema_t *s, llm_schema_object_t *o)
{
    uint32_t  i;
    llm_rx_t  rx;

    o->names = LLM_RX_TEXT;

    for (i = 0; i < o->n_atoms; i++) {
        if (o->atoms[i]->kw != LLM_KW_PROPERTY_NAMES) {
            continue;
        }

        if (llm_schema_strings(s, o->atoms[i]->value, &rx) != LLM_OK) {
            return LLM_ERROR;
        }

        o->names = llm_rx_and(s->pool, o->names, rx);
    }

    return LLM_OK;
}
