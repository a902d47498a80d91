/*
 * Builds the node of a set, which is that of its branches, and then the nodes
 * of the sets that these refer to, one after another, from a list.
 */

#include "engine/grammar/schema/internal.h"


/* what the branches allow; texts and strings of all branches are collected */

typedef struct {
    uint32_t             types;
    llm_rx_t             strings;
    llm_rx_t             numbers;
    llm_schema_nodes_t   nodes;
    llm_str_t            end;           /* see llm_gn_schema_part() */
} llm_schema_parts_t;


static int
llm_schema_branch(llm_schema_t *s, llm_schema_branch_t *b,
    llm_schema_parts_t *p)
{
    llm_rx_t             rx;
    llm_schema_branch_t  one;

    p->types |= b->types;

    if (b->types & LLM_SCHEMA_STRING) {
        if (llm_schema_string(s, b, &rx) != LLM_OK) {
            return LLM_ERROR;
        }

        p->strings = llm_rx_or(s->pool, p->strings, rx);
    }

    if (b->types & LLM_SCHEMA_NUMBER) {
        one = *b;
        one.types &= LLM_SCHEMA_NUMBER;

        if (llm_schema_number(s, &one, &rx) != LLM_OK) {
            return LLM_ERROR;
        }

        p->numbers = llm_rx_or(s->pool, p->numbers, rx);
    }

    if ((b->types & LLM_SCHEMA_OBJECT)
        && llm_schema_object(s, b, &p->nodes) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if ((b->types & LLM_SCHEMA_ARRAY)
        && llm_schema_array(s, b, &p->nodes) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return LLM_OK;
}


/* the strings without quotes that do not contain the end */

static llm_gn_t
llm_schema_bare(llm_schema_t *s, const llm_schema_parts_t *p)
{
    llm_rx_t  rx;

    rx = llm_rx_literal(s->pool, p->end.data, p->end.len);
    rx = llm_rx_cat(s->pool, LLM_RX_TEXT,
                    llm_rx_cat(s->pool, rx, LLM_RX_TEXT));

    return llm_gn_regex(s->b, llm_rx_and(s->pool, p->strings,
                                         llm_rx_not(s->pool, rx)));
}


static int
llm_schema_parts(llm_schema_t *s, llm_schema_parts_t *p, llm_gn_t *node)
{
    size_t    i;
    llm_gn_t  one;

    static const struct {
        uint32_t     type;
        llm_str_t    text;
    } texts[] = {
        { LLM_SCHEMA_NULL, llm_str("null") },
        { LLM_SCHEMA_TRUE, llm_str("true") },
        { LLM_SCHEMA_FALSE_T, llm_str("false") },
    };

    for (i = 0; i < llm_nelems(texts); i++) {
        if (p->types & texts[i].type) {
            one = llm_gn_text(s->b, texts[i].text.data, texts[i].text.len);

            if (llm_schema_nodes_add(s, &p->nodes, one) != LLM_OK) {
                return LLM_ERROR;
            }
        }
    }

    if (p->strings != LLM_RX_NONE) {
        one = p->end.len ? llm_schema_bare(s, p)
                         : llm_gn_string(s->b, p->strings);

        if (llm_schema_nodes_add(s, &p->nodes, one) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    if (p->numbers != LLM_RX_NONE
        && llm_schema_nodes_add(s, &p->nodes,
                                llm_gn_regex(s->b, p->numbers)) != LLM_OK)
    {
        return LLM_ERROR;
    }

    *node = p->nodes.n == 1 ? p->nodes.items[0]
                            : llm_gn_alt(s->b, p->nodes.items, p->nodes.n);

    return LLM_OK;
}


int
llm_schema_build(llm_schema_t *s, llm_schema_set_t set, llm_str_t end,
    llm_gn_t *node)
{
    uint32_t               i;
    llm_schema_parts_t     parts;
    llm_schema_branches_t  branches;

    s->negated = 0;

    if (llm_schema_expand(s, set, LLM_SCHEMA_ANY, &branches) != LLM_OK) {
        return LLM_ERROR;
    }

    memset(&parts, 0, sizeof(parts));
    parts.end = end;

    for (i = 0; i < branches.n; i++) {
        if (s->negated && branches.n > 1
            && llm_schema_branch_empty(s, &branches.items[i], 2) == 1)
        {
            continue;
        }

        if (llm_schema_branch(s, &branches.items[i], &parts) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return llm_schema_parts(s, &parts, node);
}


/* builds the sets that have a node but are not built yet */

int
llm_schema_build_all(llm_schema_t *s)
{
    llm_gn_t  node;

    while (s->n_built < s->n_states) {
        if (llm_schema_build(s, s->states[s->n_built].set, llm_str(""), &node)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        llm_gn_define(s->b, s->states[s->n_built].node, node);
        s->n_built++;

        if (llm_rx_failed(s->pool)) {
            return llm_schema_too_large(s);
        }
    }

    return LLM_OK;
}
