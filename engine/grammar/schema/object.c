/*
 * Objects: builds the nodes of a branch's plan.
 */

#include "engine/grammar/schema/internal.h"


static int
llm_schema_object_node(llm_schema_t *s, const llm_schema_object_t *o,
    llm_gn_t *node)
{
    uint32_t            i, n;
    llm_gn_object_t     x;
    llm_gn_others_t    *others;
    llm_gn_property_t  *named;

    named = llm_schema_alloc(s, (o->n_keys + 1) * sizeof(llm_gn_property_t));
    others = llm_schema_alloc(s, (o->n_others + 1)
                                 * sizeof(llm_gn_others_t));
    if (named == NULL || others == NULL) {
        return LLM_ERROR;
    }

    for (i = 0, n = 0; i < o->n_keys; i++) {
        if (o->keys[i].value.none) {
            continue;
        }

        named[n].key = o->keys[i].key;
        named[n].required = o->keys[i].required;

        if (llm_schema_state(s, llm_schema_bag_set(&o->keys[i].value),
                             &named[n].value) != LLM_OK)
        {
            return LLM_ERROR;
        }

        n++;
    }

    memset(&x, 0, sizeof(x));
    x.named = named;
    x.n_named = n;

    for (i = 0; i < o->n_others; i++) {
        others[i].key = o->others[i].rx;

        if (llm_schema_state(s, llm_schema_bag_set(&o->others[i].value),
                             &others[i].value) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    x.others = others;
    x.n_others = o->n_others;
    x.min = o->min;
    x.max = o->max;

    *node = llm_gn_object(s->b, &x);

    return LLM_OK;
}


int
llm_schema_object(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_nodes_t *nodes)
{
    uint32_t               i;
    llm_gn_t               node;
    llm_schema_object_t    o;
    llm_schema_branches_t  split;

    if (llm_schema_object_plan(s, b, &o) != LLM_OK) {
        return LLM_ERROR;
    }

    if (o.dead) {
        return LLM_OK;
    }

    if (o.some == NULL) {
        if (llm_schema_object_node(s, &o, &node) != LLM_OK) {
            return LLM_ERROR;
        }

        return llm_schema_nodes_add(s, nodes, node);
    }

    if (llm_schema_object_split(s, b, &o, &split) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < split.n; i++) {
        if (llm_schema_object(s, &split.items[i], nodes) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}