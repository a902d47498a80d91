/*
 * Anchors and look-aheads.  A part of a pattern is compiled together with what
 * follows it, once for each kind of character that can precede it (none, one
 * of a word, another).  Then "here the text begins", "what follows matches A"
 * and "a word ends here" are intersections with the rest.
 */

#include "engine/grammar/regex/pattern.h"

/* what precedes a position */
enum { BEFORE_NOTHING = 0, BEFORE_WORD, BEFORE_OTHER, BEFORE_N };

typedef struct {
    llm_rx_t     after[BEFORE_N];
} llm_rxp_rest_t;

typedef struct {
    llm_rxp_t    *t;
    llm_rx_t      word;                 /* one character that belongs to
                                           words */
    llm_rx_t      other;                /* one character that does not */
    const char   *reason;
} llm_rxp_compile_t;

static void llm_rxp_part(llm_rxp_compile_t *c, uint32_t node,
    const llm_rxp_rest_t *rest, llm_rxp_rest_t *out);


static llm_rxp_rest_t
llm_rxp_same(llm_rx_t rx)
{
    llm_rxp_rest_t  r;

    r.after[BEFORE_NOTHING] = rx;
    r.after[BEFORE_WORD] = rx;
    r.after[BEFORE_OTHER] = rx;

    return r;
}


/* an expression, then the rest, which depends on the expression's last
   character */

static void
llm_rxp_plain(llm_rxp_compile_t *c, llm_rx_t rx, const llm_rxp_rest_t *rest,
    llm_rxp_rest_t *out)
{
    int             k;
    llm_rx_t        all, word, other;
    llm_rx_pool_t  *p;

    p = c->t->pool;

    if (rest->after[0] == rest->after[1] && rest->after[1] == rest->after[2])
    {
        *out = llm_rxp_same(llm_rx_cat(p, rx, rest->after[0]));
        return;
    }

    if (rest->after[BEFORE_WORD] == rest->after[BEFORE_OTHER]) {
        all = llm_rx_and(p, rx, llm_rx_repeat(p, LLM_RX_CHAR, 1,
                                              LLM_RX_NO_MAX));
        all = llm_rx_cat(p, all, rest->after[BEFORE_WORD]);

    } else {
        word = llm_rx_and(p, rx, llm_rx_cat(p, LLM_RX_TEXT, c->word));
        other = llm_rx_and(p, rx, llm_rx_cat(p, LLM_RX_TEXT, c->other));
        all = llm_rx_or(p, llm_rx_cat(p, word, rest->after[BEFORE_WORD]),
                        llm_rx_cat(p, other, rest->after[BEFORE_OTHER]));
    }

    for (k = 0; k < BEFORE_N; k++) {
        out->after[k] = llm_rx_nullable(p, rx)
                        ? llm_rx_or(p, all, rest->after[k]) : all;
    }
}


/* the rest, restricted to texts that begin with a character of a word; or, if
   word is 0, to those that are empty or begin with another one */

static llm_rx_t
llm_rxp_next(llm_rxp_compile_t *c, llm_rx_t rest, int word)
{
    llm_rx_t        with;
    llm_rx_pool_t  *p;

    p = c->t->pool;
    with = llm_rx_cat(p, word ? c->word : c->other, LLM_RX_TEXT);

    return llm_rx_and(p, rest,
                      word ? with : llm_rx_or(p, with, LLM_RX_EMPTY));
}


static void
llm_rxp_boundary(llm_rxp_compile_t *c, int boundary,
    const llm_rxp_rest_t *rest, llm_rxp_rest_t *out)
{
    int  k;

    for (k = 0; k < BEFORE_N; k++) {
        out->after[k] = llm_rxp_next(c, rest->after[k],
                                     (k != BEFORE_WORD) == boundary);
    }
}


static void
llm_rxp_ahead(llm_rxp_compile_t *c, const llm_rxp_node_t *n,
    const llm_rxp_rest_t *rest, llm_rxp_rest_t *out)
{
    int             k;
    llm_rx_t        rx;
    llm_rx_pool_t  *p;
    llm_rxp_rest_t  any, what;

    p = c->t->pool;
    any = llm_rxp_same(LLM_RX_TEXT);
    llm_rxp_part(c, n->first, &any, &what);

    for (k = 0; k < BEFORE_N; k++) {
        rx = what.after[k];

        if (n->kind == LLM_RXP_NOT_AHEAD) {
            rx = llm_rx_not(p, rx);
        }

        out->after[k] = llm_rx_and(p, rx, rest->after[k]);
    }
}


static void
llm_rxp_repeat(llm_rxp_compile_t *c, const llm_rxp_node_t *n,
    const llm_rxp_rest_t *rest, llm_rxp_rest_t *out)
{
    int             k;
    uint32_t        i;
    llm_rxp_rest_t  next;

    if (n->max == LLM_RX_NO_MAX || n->max > LLM_RXP_MAX_UNROLL) {
        c->reason = "an anchor or a look-around inside of a repetition";
        return;
    }

    *out = *rest;

    for (i = n->max; i > 0 && c->reason == NULL; i--) {
        next = *out;
        llm_rxp_part(c, n->first, &next, out);

        for (k = 0; i > n->min && k < BEFORE_N; k++) {
            out->after[k] = llm_rx_or(c->t->pool, out->after[k],
                                      rest->after[k]);
        }
    }
}


static void
llm_rxp_part(llm_rxp_compile_t *c, uint32_t node, const llm_rxp_rest_t *rest,
    llm_rxp_rest_t *out)
{
    int             k;
    uint32_t        i;
    llm_rxp_node_t  n;
    llm_rxp_rest_t  part;

    n = c->t->nodes.data[node];
    *out = *rest;

    if (c->reason || c->t->pool->failed) {
        return;
    }

    switch (n.kind) {

    case LLM_RXP_PLAIN:
        llm_rxp_plain(c, n.rx, rest, out);
        return;

    case LLM_RXP_CAT:
        for (i = n.count; i > 0; i--) {
            part = *out;
            llm_rxp_part(c, c->t->kids.data[n.first + i - 1], &part, out);
        }

        return;

    case LLM_RXP_ALT:
        *out = llm_rxp_same(LLM_RX_NONE);

        for (i = 0; i < n.count; i++) {
            llm_rxp_part(c, c->t->kids.data[n.first + i], rest, &part);

            for (k = 0; k < BEFORE_N; k++) {
                out->after[k] = llm_rx_or(c->t->pool, out->after[k],
                                          part.after[k]);
            }
        }

        return;

    case LLM_RXP_REPEAT:
        llm_rxp_repeat(c, &n, rest, out);
        return;

    case LLM_RXP_START:
        out->after[BEFORE_WORD] = LLM_RX_NONE;
        out->after[BEFORE_OTHER] = LLM_RX_NONE;
        return;

    case LLM_RXP_END:
        for (k = 0; k < BEFORE_N; k++) {
            out->after[k] = llm_rx_nullable(c->t->pool, rest->after[k])
                            ? LLM_RX_EMPTY : LLM_RX_NONE;
        }

        return;

    case LLM_RXP_WORD:
    case LLM_RXP_NO_WORD:
        llm_rxp_boundary(c, n.kind == LLM_RXP_WORD, rest, out);
        return;

    default:
        llm_rxp_ahead(c, &n, rest, out);
    }
}


const char *
llm_rxp_compile(llm_rxp_t *t, uint32_t root, int mode, llm_rx_t *rx)
{
    llm_rxp_rest_t      rest, out;
    llm_rxp_compile_t   c;

    static const llm_rx_range_t  word[] = {
        { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' }
    };
    static const llm_rx_range_t  other[] = {
        { 0, '/' }, { ':', '@' }, { '[', '^' }, { '`', '`' },
        { '{', 0x10ffff }
    };

    c.t = t;
    c.reason = NULL;
    c.word = llm_rx_class(t->pool, word, llm_nelems(word));
    c.other = llm_rx_class(t->pool, other, llm_nelems(other));

    rest = llm_rxp_same(mode == LLM_RX_WHOLE ? LLM_RX_EMPTY : LLM_RX_TEXT);
    llm_rxp_part(&c, root, &rest, &out);
    *rx = out.after[BEFORE_NOTHING];

    if (mode == LLM_RX_SEARCH) {
        rest = out;
        llm_rxp_plain(&c, LLM_RX_TEXT, &rest, &out);
        *rx = out.after[BEFORE_NOTHING];
    }

    return c.reason;
}
