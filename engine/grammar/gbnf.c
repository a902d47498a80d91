/*
 * Turns GBNF into a grammar.  Rules that never refer to themselves become
 * expressions, so that the lexer reads most of a grammar; recursive rules
 * become nodes, with expressions for the parts in between.
 */

#include "engine/grammar/gbnf.h"

static llm_gn_t llm_gbnf_node(llm_gbnf_t *g, llm_gram_build_t *b,
    uint32_t part);


static int
llm_gbnf_complain(llm_gbnf_t *g, uint32_t rule, const char *what)
{
    llm_gbnf_rule_t  *r;

    r = &g->rules.data[rule];

    return llm_fail_with(g->err, 400, NULL, NULL, "the grammar, line %u: the "
                         "rule \"%.*s\" %s", r->line,
                         (int) llm_min(r->name.len, 100), r->name.data, what);
}


/* ---- regular rules ---- */

static int
llm_gbnf_is_regular(const llm_gbnf_t *g, uint32_t part)
{
    uint32_t                i;
    const llm_gbnf_part_t  *x;

    x = &g->parts.data[part];

    switch (x->kind) {

    case LLM_GBNF_CHARS:
        return 1;

    case LLM_GBNF_RULE:
        return g->rules.data[x->first].regular;

    case LLM_GBNF_REPEAT:
        return llm_gbnf_is_regular(g, x->first);

    default:
        for (i = 0; i < x->count; i++) {
            if (!llm_gbnf_is_regular(g, g->kids.data[x->first + i])) {
                return 0;
            }
        }

        return 1;
    }
}


/* the expression of a regular part */

static llm_rx_t
llm_gbnf_rx(llm_gbnf_t *g, uint32_t part)
{
    uint32_t         i, base;
    llm_rx_t         rx;
    llm_gbnf_part_t  x;

    x = g->parts.data[part];

    switch (x.kind) {

    case LLM_GBNF_CHARS:
        return x.rx;

    case LLM_GBNF_RULE:
        return g->rules.data[x.first].rx;

    case LLM_GBNF_REPEAT:
        return llm_rx_repeat(g->pool, llm_gbnf_rx(g, x.first), x.min, x.max);

    case LLM_GBNF_SEQ:
        for (rx = LLM_RX_EMPTY, i = x.count; i > 0; i--) {
            rx = llm_rx_cat(g->pool,
                            llm_gbnf_rx(g, g->kids.data[x.first + i - 1]),
                            rx);
        }

        return rx;

    default:
        base = g->pool->tmp.n;

        for (i = 0; i < x.count; i++) {
            rx = llm_gbnf_rx(g, g->kids.data[x.first + i]);
            llm_rx_push(g->pool, rx);
        }

        return llm_rx_or_list(g->pool, base);
    }
}


/* repeats until nothing changes: a rule is regular if all rules that it names
   are */

static void
llm_gbnf_fix(llm_gbnf_t *g)
{
    int               changed;
    uint32_t          i;
    llm_gbnf_rule_t  *r;

    do {
        changed = 0;

        for (i = 0; i < g->rules.n; i++) {
            r = &g->rules.data[i];

            if (!r->regular && llm_gbnf_is_regular(g, r->part)) {
                r->rx = llm_gbnf_rx(g, r->part);
                r->regular = 1;
                changed = 1;
            }
        }

    } while (changed);
}


/* ---- nodes ---- */

/* regular neighbours in a sequence, or all regular alternatives, become one
   expression */

static llm_gn_t
llm_gbnf_nodes(llm_gbnf_t *g, llm_gram_build_t *b, const llm_gbnf_part_t *x)
{
    int        seq;
    uint32_t   i, kid, n;
    llm_gn_t   node, *nodes;
    llm_rx_t   rx;

    nodes = malloc((2 * (size_t) x->count + 1) * sizeof(llm_gn_t));
    if (nodes == NULL) {
        b->failed = 1;
        return LLM_GN_NONE;
    }

    seq = x->kind == LLM_GBNF_SEQ;
    rx = seq ? LLM_RX_EMPTY : LLM_RX_NONE;
    n = 0;

    for (i = 0; i < x->count; i++) {
        kid = g->kids.data[x->first + i];

        if (llm_gbnf_is_regular(g, kid)) {
            rx = seq ? llm_rx_cat(g->pool, rx, llm_gbnf_rx(g, kid))
                     : llm_rx_or(g->pool, rx, llm_gbnf_rx(g, kid));
            continue;
        }

        if (seq && rx != LLM_RX_EMPTY) {
            nodes[n++] = llm_gn_regex(b, rx);
            rx = LLM_RX_EMPTY;
        }

        nodes[n++] = llm_gbnf_node(g, b, kid);
    }

    if (rx != (seq ? LLM_RX_EMPTY : LLM_RX_NONE)) {
        nodes[n++] = llm_gn_regex(b, rx);
    }

    node = seq ? llm_gn_seq(b, nodes, n) : llm_gn_alt(b, nodes, n);
    free(nodes);

    return node;
}


static llm_gn_t
llm_gbnf_node(llm_gbnf_t *g, llm_gram_build_t *b, uint32_t part)
{
    llm_gbnf_part_t  x;

    x = g->parts.data[part];

    if (llm_gbnf_is_regular(g, part)) {
        return llm_gn_regex(b, llm_gbnf_rx(g, part));
    }

    switch (x.kind) {

    case LLM_GBNF_RULE:
        return g->rules.data[x.first].ref;

    case LLM_GBNF_REPEAT:
        return llm_gn_repeat(b, llm_gbnf_node(g, b, x.first), x.min, x.max);

    default:
        return llm_gbnf_nodes(g, b, &x);
    }
}


/* ---- the whole ---- */

static int
llm_gbnf_check(llm_gbnf_t *g, uint32_t *root)
{
    uint32_t          i;
    llm_gbnf_rule_t  *r;

    *root = UINT32_MAX;

    for (i = 0; i < g->rules.n; i++) {
        r = &g->rules.data[i];

        if (!r->defined) {
            return llm_gbnf_complain(g, i, "is named, but not defined");
        }

        if (llm_str_is(r->name, "root")) {
            *root = i;
        }
    }

    if (*root == UINT32_MAX) {
        return llm_fail_with(g->err, 400, NULL, NULL, "the grammar has no "
                             "rule \"root\"");
    }

    return LLM_OK;
}


static int
llm_gbnf_build(llm_gbnf_t *g, llm_gram_build_t *b, llm_gn_t *node)
{
    uint32_t          i, root;
    llm_gn_t          left;
    llm_gbnf_rule_t  *r;

    if (llm_gbnf_parse(g) != LLM_OK || llm_gbnf_check(g, &root) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_gbnf_fix(g);

    for (i = 0; i < g->rules.n; i++) {
        g->rules.data[i].ref = llm_gn_ref(b);
    }

    for (i = 0; i < g->rules.n; i++) {
        r = &g->rules.data[i];
        llm_gn_define(b, r->ref, r->regular ? llm_gn_regex(b, r->rx)
                                            : llm_gbnf_node(g, b, r->part));
    }

    *node = g->rules.data[root].ref;
    left = llm_gn_left(b);

    for (i = 0; i < g->rules.n && left != LLM_GN_NONE; i++) {
        if (g->rules.data[i].ref == left) {
            return llm_gbnf_complain(g, i, "is left-recursive: it may begin "
                                     "with itself");
        }
    }

    return LLM_OK;
}


int
llm_gn_gbnf(llm_gram_build_t *b, const char *text, size_t len,
    llm_gn_t *node, llm_err_t *err)
{
    int         rc;
    llm_gbnf_t  g;

    memset(&g, 0, sizeof(g));
    g.p = text;
    g.len = len;
    g.pool = llm_gram_pool(b);
    g.err = err;

    rc = llm_gbnf_build(&g, b, node);
    llm_gbnf_free(&g);

    return rc;
}
