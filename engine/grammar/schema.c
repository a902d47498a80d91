/*
 * JSON Schema to a grammar.  See schema_internal.h.
 *
 * A set of items that a place must satisfy is one reference to a node; each
 * is built when its turn comes, from a list, so that neither the depth of a
 * document nor its recursion costs stack.
 */

#include "engine/grammar/schema_internal.h"


#define LLM_SCHEMA_MAX_MEMORY  (64 << 20)


/* what a branch allows: texts and strings are collected over all of them */

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


/* the strings without quotes, those that the end is not in */

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


static int
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


static int
llm_schema_compile(llm_schema_t *s, const llm_flat_t *part, llm_str_t end,
    llm_gn_t *root)
{
    int               rc;
    llm_gn_t          node;
    llm_schema_bag_t  bag;
    llm_schema_set_t  set;

    memset(&bag, 0, sizeof(bag));

    if (part->type != LLM_FLAT_OBJECT && part->type != LLM_FLAT_BOOL) {
        return llm_schema_refuse(s, part, "it must be an object");
    }

    if (llm_schema_open(s) != LLM_OK
        || llm_schema_bag_schema(s, &bag, part) != LLM_OK)
    {
        return LLM_ERROR;
    }

    /* the outermost place alone has an end of its own */

    set = llm_schema_bag_set(&bag);
    rc = end.len ? llm_schema_build(s, set, end, root)
                 : llm_schema_state(s, set, root);

    if (rc != LLM_OK) {
        return LLM_ERROR;
    }

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


/*
 * What others of the grammar have left: many that are too large must not take
 * many times as long as one.  Work and time are bounds of the same thing, and
 * are counted as one: whichever of them a schema has used up, its share is
 * gone, however fast the machine is.
 */

static void
llm_schema_limit(llm_schema_t *s, uint64_t spent_us, uint64_t now)
{
    uint64_t  us;

    us = LLM_SCHEMA_ALL * LLM_SCHEMA_MAX_US;
    us -= llm_min(spent_us, us);
    us = llm_min(us, (uint64_t) LLM_SCHEMA_MAX_US);

    s->max_work = (uint32_t) (us * LLM_SCHEMA_MAX_WORK / LLM_SCHEMA_MAX_US);
    s->until_us = now + us;
}


static uint64_t
llm_schema_spent(const llm_schema_t *s, uint64_t begun)
{
    uint64_t  us, work_us;

    us = llm_lex_now_us() - begun;
    work_us = (uint64_t) s->work * LLM_SCHEMA_MAX_US / LLM_SCHEMA_MAX_WORK;

    return llm_max(us, work_us);
}


int
llm_gn_schema(llm_gram_build_t *b, const llm_flat_t *schema, llm_gn_t *node,
    llm_err_t *err)
{
    return llm_gn_schema_part(b, schema, schema, llm_str(""), node, err);
}


int
llm_gn_schema_part(llm_gram_build_t *b, const llm_flat_t *document,
    const llm_flat_t *part, llm_str_t end, llm_gn_t *node, llm_err_t *err)
{
    const llm_flat_t  *refused;

    return llm_schema_read(b, document, part, end, node, err, &refused);
}


int
llm_schema_read(llm_gram_build_t *b, const llm_flat_t *document,
    const llm_flat_t *part, llm_str_t end, llm_gn_t *node, llm_err_t *err,
    const llm_flat_t **refused)
{
    int            rc;
    uint64_t       begun, *spent_us;
    llm_err_t      local;
    llm_schema_t   s;

    begun = llm_lex_now_us();

    memset(&s, 0, sizeof(s));
    s.root = document;
    s.err = err ? err : &local;
    s.err->msg[0] = '\0';
    spent_us = llm_gram_spent_us(b);
    llm_schema_limit(&s, *spent_us, begun);
    s.apart = llm_schema_apart;
    s.contradicts = llm_schema_contradicts;
    s.max_branches = LLM_SCHEMA_MAX_BRANCHES;

    s.b = b;
    s.pool = llm_gram_pool(b);
    llm_arena_init(&s.arena, LLM_SCHEMA_MAX_MEMORY);

    rc = llm_schema_compile(&s, part, end, node);

    *spent_us += llm_schema_spent(&s, begun);
    *refused = rc == LLM_OK ? NULL : s.refused;

    llm_arena_free(&s.arena);

    return rc;
}
