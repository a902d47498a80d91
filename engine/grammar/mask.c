/*
 * Masks: which tokens may come.  The tree of tokens is walked along with the
 * sets of the machine; where one lexer's state says all, its rows are
 * followed instead, and inside strings of JSON that may go on with any
 * character the vocabulary's ready sets are taken.
 */

#include "engine/grammar/mask.h"

typedef struct {
    llm_run_t            *r;
    const llm_toktree_t  *t;
    uint32_t             *mask;
    int                   unsure;       /* a set was */
} llm_mask_t;

/* a walk inside one cell's text */
typedef struct {
    uint32_t              cell;
    uint32_t              after;        /* what may come behind it, whatever
                                           its text */
    int                   text;         /* it matters which text it was */
    uint32_t              depth;        /* bytes of path */
    uint8_t               path[512];
} llm_mask_lex_t;

#define LLM_MASK_UNKNOWN  UINT32_MAX

static void llm_mask_set(llm_mask_t *m, const llm_tree_t *tree, uint32_t set,
    uint32_t from, uint32_t to);


static void
llm_mask_tokens(llm_mask_t *m, const llm_tree_t *tree, uint32_t node)
{
    uint32_t  i, id;

    for (i = tree->nodes[node].first; i < tree->nodes[node + 1].first; i++) {
        id = tree->ids[i];
        m->mask[id / 32] |= (uint32_t) 1 << id % 32;
    }
}


/* ---- inside a lexer's text ---- */

static const llm_cell_t *
llm_mask_cell(const llm_mask_t *m, uint32_t cell)
{
    return &m->r->cells.data[cell];
}


/* is the cell read by the lexer alone? */

static int
llm_mask_is_lex(const llm_mask_t *m, uint32_t cell)
{
    const llm_cell_t  *c;

    c = llm_mask_cell(m, cell);

    return c->kind == LLM_CELL_LEX || c->kind == LLM_CELL_KEY
           || (c->kind == LLM_CELL_SCALAR
               && m->r->g->nodes.data[c->z].kind != LLM_NODE_TEXT);
}


static void
llm_mask_lex_init(llm_mask_t *m, llm_mask_lex_t *x, uint32_t cell)
{
    x->cell = cell;
    x->after = LLM_MASK_UNKNOWN;
    x->text = llm_mask_cell(m, cell)->kind != LLM_CELL_LEX;
    x->depth = 0;
}


static uint32_t
llm_mask_after(llm_mask_t *m, llm_mask_lex_t *x)
{
    if (x->after == LLM_MASK_UNKNOWN) {
        x->after = llm_run_after(m->r, x->cell, LLM_TEXT_ANY);
    }

    return x->after;
}


/* the set behind the text so far, which ends before the last keep bytes */

static uint32_t
llm_mask_after_text(llm_mask_t *m, llm_mask_lex_t *x)
{
    uint8_t     byte;
    uint32_t    i, n, text, state;
    llm_cell_t  c;

    c = *llm_mask_cell(m, x->cell);
    text = c.y;
    state = c.x;
    n = x->depth;

    for (i = 0; i < n; i++) {
        byte = x->path[i];

        if (m->r->lexer.states.data[state].mode != LLM_LEX_QUOTE) {
            text = llm_run_text(m->r, text, byte);
        }

        state = llm_lex_row(&m->r->lexer, state)[byte];
    }

    return llm_run_after(m->r, x->cell, text);
}


/* the cell's text has ended at this node */

static void
llm_mask_leave(llm_mask_t *m, llm_mask_lex_t *x, uint32_t node, int final)
{
    int                unsure;
    uint32_t           set;
    const llm_tree_t  *tree;

    tree = &m->t->all;

    if (llm_tree_end(tree, node) == node + 1) {
        return;
    }

    unsure = m->unsure;
    m->unsure = 0;
    set = llm_mask_after(m, x);
    llm_mask_set(m, tree, set, node + 1, llm_tree_end(tree, node));

    if (m->unsure && x->text) {
        /* a closing quote is no part of the text */

        x->depth -= final;
        set = llm_mask_after_text(m, x);
        x->depth += final;
        m->unsure = 0;
        llm_mask_set(m, tree, set, node + 1, llm_tree_end(tree, node));
    }

    m->unsure |= unsure;
}


static void
llm_mask_lex(llm_mask_t *m, llm_mask_lex_t *x, uint32_t state, uint32_t from,
    uint32_t to)
{
    uint32_t           i, next;
    const uint32_t    *row;
    const llm_tree_t  *tree;

    tree = &m->t->all;
    row = llm_lex_row(&m->r->lexer, state);

    for (i = from; row && i < to; i = llm_tree_end(tree, i)) {
        next = row[tree->nodes[i].byte];

        if (next == LLM_LEX_DEAD) {
            continue;
        }

        llm_mask_tokens(m, tree, i);

        if (x->depth == sizeof(x->path)) {
            m->r->failed = 1;
            return;
        }

        x->path[x->depth++] = tree->nodes[i].byte;

        if (m->r->lexer.states.data[next].accepts) {
            llm_mask_leave(m, x, i, next == LLM_LEX_FINAL);
        }

        if (next != LLM_LEX_FINAL && llm_tree_end(tree, i) > i + 1) {
            llm_mask_lex(m, x, next, i + 1, llm_tree_end(tree, i));
        }

        x->depth--;
    }
}


/* ---- sets ---- */

static void
llm_mask_set(llm_mask_t *m, const llm_tree_t *tree, uint32_t set,
    uint32_t from, uint32_t to)
{
    uint32_t         i, cell, next;
    uint64_t         bytes[4];
    llm_set_t        s;
    llm_mask_lex_t   x;

    if (set == LLM_SET_NONE || m->r->failed) {
        return;
    }

    s = m->r->sets.data[set];
    m->unsure |= s.unsure;
    cell = m->r->members.data[s.first];

    if (s.n == 1 && tree == &m->t->all && llm_mask_is_lex(m, cell)) {
        llm_mask_lex_init(m, &x, cell);
        llm_mask_lex(m, &x, llm_mask_cell(m, cell)->x, from, to);
        return;
    }

    memcpy(bytes, llm_run_bytes(m->r, set), sizeof(bytes));

    for (i = from; i < to; i = llm_tree_end(tree, i)) {
        if (!(bytes[tree->nodes[i].byte / 64]
              >> tree->nodes[i].byte % 64 & 1))
        {
            continue;
        }

        next = llm_run_move(m->r, set, (uint8_t) tree->nodes[i].byte);

        if (next == LLM_SET_NONE) {
            continue;
        }

        /* unsure sets say nothing of the bytes that led to them */

        if (m->r->sets.data[next].n > m->r->sets.data[next].unsure) {
            llm_mask_tokens(m, tree, i);
        }

        llm_mask_set(m, tree, next, i + 1, llm_tree_end(tree, i));
    }
}


void
llm_mask_fill(llm_run_t *r, const llm_toktree_t *t, uint32_t set,
    uint32_t *mask)
{
    llm_mask_t  m;

    m.r = r;
    m.t = t;
    m.mask = mask;
    m.unsure = 0;

    llm_mask_set(&m, &t->all, set, 0, t->all.n);
}
