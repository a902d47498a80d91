/*
 * Masks: which tokens may follow.  The tree of tokens is walked along with the
 * machine's sets.  Where a single state of the lexer decides, its rows are
 * followed instead; inside strings of JSON that may continue with any
 * character, precomputed sets of the vocabulary are used.
 */

#include "engine/grammar/mask.h"

typedef struct {
    llm_run_t            *r;
    const llm_toktree_t  *t;
    uint32_t              set;          /* set at which the tokens begin */
    uint32_t             *mask;
    int                   begun;        /* 1: mask has bits already */
} llm_mask_t;

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


/*
 * Checks the tokens of a subtree, each byte by byte: where keys or items must
 * not be repeated, a set that many tokens share may not know enough.
 */

static void
llm_mask_exact(llm_mask_t *m, const llm_tree_t *tree, uint32_t node)
{
    size_t     i;
    uint32_t   k, id, set;
    llm_str_t  s;

    for (k = tree->nodes[node].first;
         k < tree->nodes[llm_tree_end(tree, node)].first; k++)
    {
        id = tree->ids[k];
        s = llm_toktree_text(m->t, id);
        set = m->set;

        for (i = 0; i < s.len && set != LLM_SET_NONE; i++) {
            set = llm_run_move(m->r, set, (uint8_t) s.data[i]);
        }

        if (set != LLM_SET_NONE) {
            m->mask[id / 32] |= (uint32_t) 1 << id % 32;
        }
    }
}


static int
llm_mask_has(const uint64_t *bytes, uint32_t byte)
{
    return bytes[byte / 64] >> byte % 64 & 1;
}


/* ---- inside a lexer's text ---- */

/* does the lexer alone read this cell? */

static int
llm_mask_is_lex(const llm_mask_t *m, uint32_t cell)
{
    const llm_cell_t  *c;

    c = &m->r->cells.data[cell];

    return c->kind == LLM_CELL_LEX || c->kind == LLM_CELL_KEY
           || (c->kind == LLM_CELL_SCALAR
               && m->r->g->nodes.data[c->z].kind != LLM_NODE_TEXT);
}


/* handles the nodes from .. to with a lexer's state; after: the set after its
   text */

static void
llm_mask_lex(llm_mask_t *m, uint32_t state, uint32_t after, uint32_t from,
    uint32_t to)
{
    uint32_t           i, end, next;
    const uint32_t    *row;
    const llm_tree_t  *tree;

    tree = &m->t->all;
    row = llm_lex_row(&m->r->lexer, state);

    for (i = from; row && i < to; i = end) {
        end = llm_tree_end(tree, i);
        next = row[tree->nodes[i].byte];

        if (next == LLM_LEX_DEAD) {
            continue;
        }

        llm_mask_tokens(m, tree, i);

        if (end == i + 1) {
            continue;
        }

        if (m->r->lexer.states.data[next].accepts) {
            llm_mask_set(m, tree, after, i + 1, end);
        }

        if (next != LLM_LEX_FINAL) {
            llm_mask_lex(m, next, after, i + 1, end);
        }
    }
}


/* ---- sets ---- */

/* the set after the byte of a node; LLM_SET_NONE if there is none, or if what
   is allowed at the node and below it had to be found token by token */

static uint32_t
llm_mask_move(llm_mask_t *m, const llm_tree_t *tree, uint32_t set,
    uint32_t node)
{
    uint32_t  next;

    next = llm_run_move(m->r, set, (uint8_t) tree->nodes[node].byte);

    if (next != LLM_SET_NONE && m->r->sets.data[next].unsure) {
        llm_mask_exact(m, tree, node);
        return LLM_SET_NONE;
    }

    return next;
}


/* handles the tokens at a node of the tree and below it */

static void
llm_mask_node(llm_mask_t *m, const llm_tree_t *tree, uint32_t set,
    uint32_t node)
{
    uint32_t  next;

    next = llm_mask_move(m, tree, set, node);

    if (next == LLM_SET_NONE) {
        return;
    }

    llm_mask_tokens(m, tree, node);
    llm_mask_set(m, tree, next, node + 1, llm_tree_end(tree, node));
}


static void
llm_mask_set(llm_mask_t *m, const llm_tree_t *tree, uint32_t set,
    uint32_t from, uint32_t to)
{
    uint32_t   i, cell;
    uint64_t   bytes[4];
    llm_set_t  s;

    if (set == LLM_SET_NONE || m->r->failed) {
        return;
    }

    s = m->r->sets.data[set];
    cell = m->r->members.data[s.first];

    if (s.n == 1 && llm_mask_is_lex(m, cell)) {
        llm_mask_lex(m, m->r->cells.data[cell].x,
                     llm_run_after(m->r, cell, LLM_TEXT_ANY), from, to);
        return;
    }

    memcpy(bytes, llm_run_bytes(m->r, set), sizeof(bytes));

    for (i = from; i < to; i = llm_tree_end(tree, i)) {
        if (llm_mask_has(bytes, tree->nodes[i].byte)) {
            llm_mask_node(m, tree, set, i);
        }
    }
}


/* ---- the root of the tree ---- */

static void
llm_mask_root(llm_mask_t *m, uint32_t set)
{
    uint32_t           i, byte;
    uint64_t           bytes[4], bits;
    const llm_tree_t  *tree;

    tree = &m->t->all;
    memcpy(bytes, llm_run_bytes(m->r, set), sizeof(bytes));

    for (i = 0; i < 4; i++) {
        for (bits = bytes[i]; bits; bits &= bits - 1) {
            byte = i * 64 + (uint32_t) __builtin_ctzll(bits);

            if (tree->root[byte]) {
                llm_mask_node(m, tree, set, tree->root[byte] - 1);
            }
        }
    }
}


/* handles tokens that end a string and continue with what may follow it;
   leaves: those of which the string's part matches */

static void
llm_mask_exits(llm_mask_t *m, const llm_tree_t *exits, uint32_t set,
    uint32_t from, uint32_t to, const uint32_t *leaves)
{
    uint32_t  i, k, id, next, end;
    uint64_t  bytes[4];

    memcpy(bytes, llm_run_bytes(m->r, set), sizeof(bytes));

    for (i = from; i < to; i = end) {
        end = llm_tree_end(exits, i);

        if (!llm_mask_has(bytes, exits->nodes[i].byte)) {
            continue;
        }

        next = llm_mask_move(m, exits, set, i);

        if (next == LLM_SET_NONE) {
            continue;
        }

        for (k = exits->nodes[i].first; k < exits->nodes[i + 1].first; k++) {
            id = exits->ids[k];
            m->mask[id / 32] |= leaves[id / 32] & (uint32_t) 1 << id % 32;
        }

        if (end > i + 1) {
            llm_mask_exits(m, exits, next, i + 1, end, leaves);
        }
    }
}


/* most sets have one such cell, so the first mask is copied and others are
   or-ed, in pieces of a size that compilers vectorise */

static void
llm_mask_stays(llm_mask_t *m, const uint32_t *restrict stays)
{
    uint32_t            i, k;
    uint32_t *restrict  mask;

    mask = m->mask;

    if (!m->begun) {
        m->begun = 1;
        memcpy(mask, stays, m->t->words * sizeof(uint32_t));
        return;
    }

    for (i = 0; i + 16 <= m->t->words; i += 16) {
        for (k = 0; k < 16; k++) {
            mask[i + k] |= stays[i + k];
        }
    }

    for ( /* void */ ; i < m->t->words; i++) {
        mask[i] |= stays[i];
    }
}


/* handles a cell that the lexer reads */

static void
llm_mask_lex_cell(llm_mask_t *m, uint32_t cell)
{
    uint32_t                i, id, state, after;
    const llm_tree_t       *exits, *all;
    const llm_lex_mask_t   *x;
    const llm_tree_view_t  *view;

    all = &m->t->all;
    state = m->r->cells.data[cell].x;
    view = llm_lex_view(m->r, m->t, state);
    x = llm_lex_mask(m->r, m->t, state);
    after = llm_run_after(m->r, cell, LLM_TEXT_ANY);

    if (x == NULL || after == LLM_SET_NONE) {
        return;
    }

    llm_mask_stays(m, x->stays);

    if (view) {
        exits = &view->exits;

        for (i = 0; i < exits->nodes[0].first; i++) {
            id = exits->ids[i];
            m->mask[id / 32] |= x->leaves[id / 32]
                                & (uint32_t) 1 << id % 32;
        }

        llm_mask_exits(m, exits, after, 0, exits->n, x->leaves);
    }

    for (i = 0; i < x->n_ends && !m->r->failed; i++) {
        llm_mask_set(m, all, after, x->ends[i] + 1,
                     llm_tree_end(all, x->ends[i]));
    }
}


void
llm_mask_fill(llm_run_t *r, const llm_toktree_t *t, uint32_t set,
    uint32_t *mask)
{
    uint32_t    i, cell, n, n_rest, *rest;
    llm_mask_t  m;

    m.r = r;
    m.t = t;
    m.set = set;
    m.mask = mask;
    m.begun = 0;

    n = r->sets.data[set].n;
    n_rest = 0;

    rest = malloc(n * sizeof(uint32_t));
    if (rest == NULL) {
        r->failed = 1;
        return;
    }

    for (i = 0; i < n && !r->failed; i++) {
        cell = r->members.data[r->sets.data[set].first + i];

        if (llm_mask_is_lex(&m, cell)) {
            llm_mask_lex_cell(&m, cell);

        } else if (cell != LLM_ID_END) {
            rest[n_rest++] = cell;
        }
    }

    if (!m.begun) {
        memset(mask, 0, t->words * sizeof(uint32_t));
    }

    if (n_rest && !r->failed) {
        llm_mask_root(&m, n_rest == n ? set
                                      : llm_run_subset(r, rest, n_rest));
    }

    free(rest);
}
