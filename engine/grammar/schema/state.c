/*
 * Sets of items, and the nodes that stand for them: one reference for each
 * different set, which is built when its turn comes.
 */

#include "engine/grammar/schema/internal.h"


int
llm_schema_nodes_add(llm_schema_t *s, llm_schema_nodes_t *nodes,
    llm_gn_t node)
{
    if (llm_schema_grow(s, &nodes->items, nodes->n, &nodes->size,
                        sizeof(llm_gn_t)) != LLM_OK)
    {
        return LLM_ERROR;
    }

    nodes->items[nodes->n++] = node;

    return LLM_OK;
}


int
llm_schema_bag_add(llm_schema_t *s, llm_schema_bag_t *bag,
    llm_schema_item_t item)
{
    int       trivial;
    uint32_t  i;

    if (item != LLM_SCHEMA_FALSE && !(item & LLM_SCHEMA_VALUE)) {
        if (llm_schema_gone(s, NULL, llm_schema_flat(s, item))) {
            return LLM_OK;
        }

        trivial = llm_schema_trivial(s, llm_schema_flat(s, item));

        if (trivial >= 0) {
            if (trivial == !(item & LLM_SCHEMA_NOT)) {
                return LLM_OK;
            }

            item = LLM_SCHEMA_FALSE;
        }
    }

    if (item == LLM_SCHEMA_FALSE) {
        bag->none = 1;
    }

    for (i = 0; i < bag->n; i++) {
        if (bag->items[i] == item) {
            return LLM_OK;
        }

        /* a schema together with its own negation */
        if (item != LLM_SCHEMA_FALSE
            && bag->items[i] == (item ^ LLM_SCHEMA_NOT))
        {
            bag->none = 1;
        }
    }

    if (llm_schema_grow(s, &bag->items, bag->n, &bag->size,
                        sizeof(llm_schema_item_t)) != LLM_OK)
    {
        return LLM_ERROR;
    }

    bag->items[bag->n++] = item;

    return LLM_OK;
}


int
llm_schema_bag_schema(llm_schema_t *s, llm_schema_bag_t *bag,
    const llm_flat_t *v)
{
    return llm_schema_bag_add(s, bag, llm_schema_item(s, v, 0));
}


llm_schema_set_t
llm_schema_bag_set(const llm_schema_bag_t *bag)
{
    llm_schema_set_t                set;
    static const llm_schema_item_t  none = LLM_SCHEMA_FALSE;

    set.items = bag->none ? &none : bag->items;
    set.n = bag->none ? 1 : bag->n;

    return set;
}


int
llm_schema_state(llm_schema_t *s, llm_schema_set_t set, llm_gn_t *node)
{
    size_t               size;
    uint32_t             i, k, hash;
    llm_schema_item_t   *items;
    llm_schema_state_t  *e;

    if (set.n && set.items[0] == LLM_SCHEMA_FALSE) {
        *node = LLM_GN_NONE;
        return LLM_OK;
    }

    size = set.n * sizeof(llm_schema_item_t);
    hash = llm_schema_hash(set.items, size);

    for (i = hash; (k = llm_table_next(&s->table, hash, &i)) != UINT32_MAX; ) {
        e = &s->states[k];

        if (e->set.n == set.n
            && (size == 0 || memcmp(e->set.items, set.items, size) == 0))
        {
            *node = e->node;
            return LLM_OK;
        }
    }

    if (s->n_states == LLM_SCHEMA_MAX_STATES) {
        return llm_schema_too_large(s);
    }

    items = llm_schema_alloc(s, size + 1);

    if (items == NULL
        || llm_schema_grow(s, &s->states, s->n_states, &s->states_size,
                           sizeof(llm_schema_state_t)) != LLM_OK
        || llm_table_add(&s->table, hash, s->n_states) != LLM_OK)
    {
        return llm_schema_too_large(s);
    }

    if (size) {
        memcpy(items, set.items, size);
    }

    e = &s->states[s->n_states++];
    e->set.items = items;
    e->set.n = set.n;
    e->node = llm_gn_ref(s->b);

    *node = e->node;

    return LLM_OK;
}
