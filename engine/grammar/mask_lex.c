/*
 * What a lexer's state does to all tokens, computed once per state.  In
 * strings of JSON that may continue with any character, the vocabulary's own
 * sets tell which tokens stay in the string, by length or all of them, and
 * only tokens that reach a closing quote are looked at.  Otherwise the tree is
 * walked along the state's rows.
 */

#include "engine/grammar/mask.h"

typedef struct {
    llm_run_t            *r;
    const llm_toktree_t  *t;
    llm_lex_mask_t       *out;
    const llm_tree_view_t  *view;
    uint32_t              cap;          /* capacity of ends */
} llm_lex_walk_t;


static void
llm_lex_set(uint32_t *set, const llm_tree_t *tree, uint32_t from, uint32_t to)
{
    uint32_t  i, id;

    for (i = from; i < to; i++) {
        id = tree->ids[i];
        set[id / 32] |= (uint32_t) 1 << id % 32;
    }
}


static void
llm_lex_add_end(llm_lex_walk_t *w, uint32_t node)
{
    if (llm_vec_room((void **) &w->out->ends, w->out->n_ends, &w->cap, 1,
                     sizeof(uint32_t))
        != LLM_OK)
    {
        w->r->failed = 1;
        return;
    }

    w->out->ends[w->out->n_ends++] = node;
}


/* walks all tokens below the nodes from .. to */

static void
llm_lex_walk(llm_lex_walk_t *w, uint32_t state, uint32_t from, uint32_t to)
{
    uint32_t           i, end, next;
    const uint32_t    *row;
    const llm_tree_t  *tree;

    tree = &w->t->all;
    row = llm_lex_row(&w->r->lexer, state);

    if (row == NULL) {
        w->r->failed = 1;
        return;
    }

    for (i = from; i < to; i = end) {
        end = llm_tree_end(tree, i);
        next = row[tree->nodes[i].byte];

        if (next == LLM_LEX_DEAD) {
            continue;
        }

        if (next == LLM_LEX_FINAL && w->view) {
            llm_lex_set(w->out->leaves, tree, tree->nodes[i].first,
                        tree->nodes[end].first);
            continue;
        }

        llm_lex_set(w->out->stays, tree, tree->nodes[i].first,
                    tree->nodes[i + 1].first);

        if (end == i + 1) {
            continue;
        }

        if (!w->view && w->r->lexer.states.data[next].accepts) {
            llm_lex_add_end(w, i);
        }

        if (next != LLM_LEX_FINAL) {
            llm_lex_walk(w, next, i + 1, end);
        }
    }
}


/* walks the tokens that leave a string, along the paths to its closing quote */

static void
llm_lex_walk_paths(llm_lex_walk_t *w, uint32_t state, uint32_t from,
    uint32_t to)
{
    uint32_t           i, node, next;
    const uint32_t    *row;
    const llm_tree_t  *paths, *all;

    paths = &w->t->paths;
    all = &w->t->all;
    row = llm_lex_row(&w->r->lexer, state);

    if (row == NULL) {
        w->r->failed = 1;
        return;
    }

    for (i = from; i < to; i = llm_tree_end(paths, i)) {
        next = row[paths->nodes[i].byte];

        if (next == LLM_LEX_FINAL) {
            node = paths->ids[i];
            llm_lex_set(w->out->leaves, all, all->nodes[node].first,
                        all->nodes[llm_tree_end(all, node)].first);

        } else if (next != LLM_LEX_DEAD) {
            llm_lex_walk_paths(w, next, i + 1, llm_tree_end(paths, i));
        }
    }
}


static int
llm_lex_own(llm_lex_walk_t *w)
{
    w->out->own = calloc(2 * (size_t) w->t->words, sizeof(uint32_t));

    if (w->out->own == NULL) {
        w->r->failed = 1;
        return LLM_ERROR;
    }

    w->r->lex_mask_bytes += 2 * (size_t) w->t->words * sizeof(uint32_t);
    w->out->stays = w->out->own;
    w->out->leaves = w->out->own + w->t->words;

    return LLM_OK;
}


/* ---- any text of min to max characters ---- */

static void
llm_lex_stays_within(const llm_toktree_t *t, uint32_t max, uint32_t *set)
{
    uint32_t  i, id;

    memcpy(set, t->inside.stays, t->words * sizeof(uint32_t));

    for (i = t->n_longer; i > 0 && t->longer_chars[i - 1] > max; i--) {
        id = t->longer[i - 1];
        set[id / 32] &= ~((uint32_t) 1 << id % 32);
    }
}


static void
llm_lex_leaves_within(const llm_toktree_t *t, uint32_t min, uint32_t max,
    uint32_t *set)
{
    uint32_t           i, id, n;
    const llm_tree_t  *exits;

    exits = &t->inside.exits;
    n = exits->nodes[exits->n].first;

    for (i = 0; i < n; i++) {
        if (exits->chars[i] >= min && exits->chars[i] <= max) {
            id = exits->ids[i];
            set[id / 32] |= (uint32_t) 1 << id % 32;
        }
    }
}


static void
llm_lex_counted(llm_lex_walk_t *w, uint32_t min, uint32_t max)
{
    const llm_toktree_t  *t;

    t = w->t;

    if (min == 0 && max == LLM_RX_NO_MAX) {
        w->out->stays = t->inside.stays;
        w->out->leaves = t->inside.leaves;
        return;
    }

    if (min == 0 && max <= LLM_TREE_LENGTHS) {
        w->out->stays = t->stays[max];
        w->out->leaves = t->leaves[max];
        return;
    }

    if (llm_lex_own(w) != LLM_OK) {
        return;
    }

    llm_lex_leaves_within(t, min, max, w->out->leaves);

    if (max <= LLM_TREE_LENGTHS) {
        w->out->stays = t->stays[max];

    } else {
        llm_lex_stays_within(t, max, w->out->stays);
    }
}


/* ---- states ---- */

/* is it CHAR{min,max}? */

static int
llm_lex_is_counted(const llm_run_t *r, llm_rx_t rx, uint32_t *min,
    uint32_t *max)
{
    const llm_rx_node_t  *n;

    n = llm_rx_node(r->g->pool, rx);

    if (n->kind == LLM_RXK_REPEAT && n->a == LLM_RX_CHAR) {
        *min = n->b;
        *max = n->c;
        return 1;
    }

    *min = rx == LLM_RX_CHAR;
    *max = 1;

    return rx == LLM_RX_CHAR;
}


/* within a character the views cannot be used */

const llm_tree_view_t *
llm_lex_view(const llm_run_t *r, const llm_toktree_t *t, uint32_t state)
{
    const llm_lex_state_t  *s;

    s = &r->lexer.states.data[state];

    if (llm_rx_node(r->g->pool, s->rx)->level != 0) {
        return NULL;
    }

    return s->mode == LLM_LEX_INSIDE ? &t->inside
           : s->mode == LLM_LEX_QUOTE ? &t->quoted : NULL;
}


/* uses the mask of a state that is far from the greatest length */

static void
llm_lex_copy(llm_lex_walk_t *w, uint32_t state, const llm_lex_bounded_t *b)
{
    size_t                 size;
    const llm_lex_mask_t  *x;

    x = llm_lex_mask(w->r, w->t, b->state);

    if (x == NULL || llm_lex_own(w) != LLM_OK) {
        return;
    }

    size = w->t->words * sizeof(uint32_t);
    memcpy(w->out->stays, x->stays, size);
    memcpy(w->out->leaves, x->leaves, size);

    llm_lex_bounded_cut(w->r, w->t, state, b, w->out->stays, w->out->leaves);
}


static void
llm_lex_compute(llm_lex_walk_t *w, uint32_t state)
{
    uint32_t         min, max;
    llm_lex_state_t  s;

    s = w->r->lexer.states.data[state];
    w->view = llm_lex_view(w->r, w->t, state);

    if (s.mode == LLM_LEX_QUOTE && s.rx == LLM_RX_TEXT) {
        w->out->stays = w->t->quoted.stays;
        w->out->leaves = w->t->quoted.leaves;
        return;
    }

    if (s.mode == LLM_LEX_INSIDE
        && llm_lex_is_counted(w->r, s.rx, &min, &max))
    {
        llm_lex_counted(w, min, max);
        return;
    }

    if (llm_lex_own(w) != LLM_OK) {
        return;
    }

    if (w->view == &w->t->inside && llm_rx_is_open(w->r->g->pool, s.rx)) {
        w->out->stays = w->t->inside.stays;
        llm_lex_walk_paths(w, state, 0, w->t->paths.n);
        return;
    }

    llm_lex_walk(w, state, 0, w->t->all.n);
}


const llm_lex_mask_t *
llm_lex_mask(llm_run_t *r, const llm_toktree_t *t, uint32_t state)
{
    int                bounded;
    uint32_t           n;
    llm_lex_walk_t     w;
    llm_lex_bounded_t  b;

    const llm_tree_view_t  *view;

    if (state < r->lex_masks.n && r->lex_masks.data[state]) {
        return r->lex_masks.data[state];
    }

    view = llm_lex_view(r, t, state);
    bounded = view && llm_lex_bounded(r, t, state, &b)
              && llm_lex_view(r, t, b.state) == view;

    if (bounded && b.all) {
        return llm_lex_mask(r, t, b.state);
    }

    if (r->n_lex_masks >= LLM_RUN_MAX_MASKS) {
        llm_run_drop_masks(r);
    }

    memset(&w, 0, sizeof(w));
    w.r = r;
    w.t = t;
    w.out = calloc(1, sizeof(llm_lex_mask_t));

    if (w.out == NULL) {
        r->failed = 1;
        return NULL;
    }

    if (bounded) {
        llm_lex_copy(&w, state, &b);

    } else {
        llm_lex_compute(&w, state);
    }

    /* states that the walk has made */

    n = r->lexer.states.n - r->lex_masks.n;

    if (llm_vec_more(&r->lex_masks, n) != LLM_OK) {
        r->failed = 1;
        free(w.out->own);
        free(w.out->ends);
        free(w.out);
        return NULL;
    }

    if (n) {
        memset(r->lex_masks.data + r->lex_masks.n, 0,
               n * sizeof(llm_lex_mask_t *));
        r->lex_masks.n += n;
    }

    r->lex_masks.data[state] = w.out;
    r->n_lex_masks++;

    return w.out;
}
