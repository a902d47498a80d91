/*
 * Strings that match an expression and have a greatest length.  Each character
 * leads to another state; but far from the greatest length, the same tokens
 * may follow as without one.  So the mask of the expression without the
 * greatest length is used, which few states share.
 *
 * Invariant: the mask equals that of the state itself.  The characters left
 * must suffice for the token and for an end after it: from each state of the
 * expression an end is at most "slack" characters away.
 */

#include "engine/grammar/mask.h"

/* most expressions, and transitions between them, that are looked at to find
   the slack */
#define LLM_LEN_MAX_STATES  256
#define LLM_LEN_MAX_EDGES   4096

/* a greater slack counts as none; marks of expressions: slack + 1, or
   LEN_NONE */
#define LLM_LEN_MAX_SLACK   32
#define LLM_LEN_NONE        255

typedef struct {
    llm_rx_t     states[LLM_LEN_MAX_STATES];
    uint8_t      far[LLM_LEN_MAX_STATES];   /* upper bound of the distance to
                                               the end */
    uint32_t     n;
    uint16_t     from[LLM_LEN_MAX_EDGES];
    uint16_t     to[LLM_LEN_MAX_EDGES];
    uint32_t     n_edges;
} llm_len_graph_t;


/* splits x and CHAR{min,max} into x and CHAR{min,}: 1, or 0 if rx has another
   form */

static int
llm_len_split(llm_rx_pool_t *p, llm_rx_t rx, llm_rx_t *base, uint32_t *max)
{
    int            found;
    uint32_t       i;
    llm_rx_t       one;
    llm_rx_node_t  x, kid;

    x = *llm_rx_node(p, rx);
    found = 0;

    for (i = 0; x.kind == LLM_RXK_AND && i < x.b; i++) {
        one = p->kids.data[x.a + i];
        kid = *llm_rx_node(p, one);

        if (!found && kid.kind == LLM_RXK_REPEAT && kid.a == LLM_RX_CHAR
            && kid.c != LLM_RX_NO_MAX)
        {
            found = 1;
            *max = kid.c;
            one = llm_rx_repeat(p, LLM_RX_CHAR, kid.b, LLM_RX_NO_MAX);
        }

        *base = i ? llm_rx_and(p, *base, one) : one;
    }

    return found && !llm_rx_failed(p);
}


/* the index of an expression in the graph, added if needed; LLM_ERROR: there
   is no room */

static int
llm_len_place(llm_len_graph_t *g, llm_rx_t rx)
{
    uint32_t  i;

    for (i = 0; i < g->n; i++) {
        if (g->states[i] == rx) {
            return (int) i;
        }
    }

    if (g->n == LLM_LEN_MAX_STATES) {
        return LLM_ERROR;
    }

    g->states[g->n++] = rx;

    return (int) i;
}


/* LLM_ERROR: the graph would be too large or take too long */

static int
llm_len_graph(llm_run_t *r, llm_len_graph_t *g)
{
    int              to;
    uint32_t         i, byte;
    llm_rx_t         last;
    const llm_rx_t  *row;

    for (i = 0; i < g->n; i++) {
        g->far[i] = llm_rx_nullable(r->g->pool, g->states[i])
                    ? 0 : LLM_LEN_NONE;
        row = llm_lex_late(&r->lexer) ? NULL
                                      : llm_rx_row(r->g->pool, g->states[i]);
        last = LLM_RX_NONE;

        if (row == NULL) {
            return LLM_ERROR;
        }

        for (byte = 0; byte < 256; byte++) {
            if (row[byte] == last || row[byte] == LLM_RX_NONE) {
                continue;
            }

            last = row[byte];
            to = llm_len_place(g, last);

            if (to == LLM_ERROR || g->n_edges == LLM_LEN_MAX_EDGES) {
                return LLM_ERROR;
            }

            g->from[g->n_edges] = (uint16_t) i;
            g->to[g->n_edges++] = (uint16_t) to;
        }
    }

    return LLM_OK;
}


/* the greatest distance to an end; LLM_LEN_NONE: too far */

static uint32_t
llm_len_farthest(llm_len_graph_t *g)
{
    uint32_t  i, far, round;

    for (round = 0; round < LLM_LEN_MAX_SLACK; round++) {
        for (i = 0; i < g->n_edges; i++) {
            if (g->far[g->to[i]] == round
                && g->far[g->from[i]] > round + 1)
            {
                g->far[g->from[i]] = (uint8_t) (round + 1);
            }
        }
    }

    far = 0;

    for (i = 0; i < g->n; i++) {
        far = llm_max(far, g->far[i]);
    }

    return far;
}


/* marks the expressions of the graph; ends are at most as far away in a part
   of the graph as in all of it */

static int
llm_len_mark(llm_run_t *r, const llm_len_graph_t *g, uint32_t mark)
{
    uint32_t  i, n;

    for (i = 0; i < g->n; i++) {
        if (g->states[i] >= r->slack.n) {
            n = g->states[i] + 1 - r->slack.n;

            if (llm_vec_more(&r->slack, n) != LLM_OK) {
                return LLM_ERROR;
            }

            memset(r->slack.data + r->slack.n, 0, n);
            r->slack.n += n;
        }

        r->slack.data[g->states[i]] = (uint8_t) mark;
    }

    return LLM_OK;
}


/* slack in bytes, which are at least as many as characters; UINT32_MAX: not
   known */

static uint32_t
llm_len_slack(llm_run_t *r, llm_rx_t rx)
{
    uint32_t          mark;
    llm_len_graph_t  *g;

    mark = rx < r->slack.n ? r->slack.data[rx] : 0;

    if (mark == 0) {
        g = malloc(sizeof(llm_len_graph_t));
        if (g == NULL) {
            r->failed = 1;
            return UINT32_MAX;
        }

        g->states[0] = rx;
        g->n = 1;
        g->n_edges = 0;

        mark = llm_len_graph(r, g) == LLM_OK ? llm_len_farthest(g)
                                             : LLM_LEN_NONE;
        mark = mark == LLM_LEN_NONE ? mark : mark + 1;
        r->failed |= llm_len_mark(r, g, mark) != LLM_OK;
        free(g);
    }

    return mark == LLM_LEN_NONE ? UINT32_MAX : mark - 1;
}


int
llm_lex_bounded(llm_run_t *r, const llm_toktree_t *t, uint32_t state,
    llm_lex_bounded_t *b)
{
    uint32_t         slack;
    llm_rx_t         base;
    llm_lex_state_t  s;

    s = r->lexer.states.data[state];

    if (!llm_len_split(r->g->pool, s.rx, &base, &b->max)) {
        return 0;
    }

    slack = llm_len_slack(r, base);

    if (slack >= b->max) {
        return 0;
    }

    b->sure = b->max - slack;

    if (b->sure < (s.mode == LLM_LEX_INSIDE ? LLM_TREE_LENGTHS
                                            : t->quoted_longest))
    {
        return 0;
    }

    b->all = s.mode == LLM_LEX_QUOTE || b->sure >= t->longest;
    b->state = llm_lex_start(&r->lexer, base, (llm_lex_mode_t) s.mode);

    return b->state != LLM_LEX_DEAD;
}


/* does the token stay in the string? */

static int
llm_len_stays(llm_run_t *r, uint32_t state, llm_str_t token)
{
    size_t           i;
    const uint32_t  *row;

    for (i = 0; i < token.len && state != LLM_LEX_DEAD; i++) {
        row = llm_lex_row(&r->lexer, state);

        if (row == NULL) {
            r->failed = 1;
            return 0;
        }

        state = row[(uint8_t) token.data[i]];
    }

    return state != LLM_LEX_DEAD;
}


void
llm_lex_bounded_cut(llm_run_t *r, const llm_toktree_t *t, uint32_t state,
    const llm_lex_bounded_t *b, uint32_t *stays, uint32_t *leaves)
{
    uint32_t           i, id, n;
    const llm_tree_t  *exits;

    for (i = t->n_longer; i > 0 && t->longer_chars[i - 1] > b->sure; i--) {
        id = t->longer[i - 1];

        if ((stays[id / 32] >> id % 32 & 1)
            && (t->longer_chars[i - 1] > b->max
                || !llm_len_stays(r, state, llm_toktree_text(t, id))))
        {
            stays[id / 32] &= ~((uint32_t) 1 << id % 32);
        }
    }

    exits = &t->inside.exits;
    n = exits->nodes[exits->n].first;

    for (i = 0; i < n; i++) {
        if (exits->chars[i] > b->max) {
            id = exits->ids[i];
            leaves[id / 32] &= ~((uint32_t) 1 << id % 32);
        }
    }
}
