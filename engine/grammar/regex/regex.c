/*
 * Makes expressions in the simplest form that is cheap to find; see regex.h.
 * Alternatives and intersections are sorted lists without lists of their own
 * kind inside, and alternatives that differ in their next byte are one SWITCH.
 * So an expression has few derivatives, and many with the same meaning are the
 * same node.
 */

#include "engine/grammar/regex/internal.h"

/* longest common beginning of two literals that is merged */
#define LLM_RX_MAX_MERGE  512
/* most alternatives among which equal endings are looked for */
#define LLM_RX_MAX_TAILS  160


static uint32_t
llm_rx_sum(uint32_t a, uint32_t b)
{
    return a >= LLM_RX_NO_MAX - b ? LLM_RX_NO_MAX : a + b;
}


/* a, with or without the empty text */

static llm_rx_t
llm_rx_set_nullable(llm_rx_pool_t *p, llm_rx_t a, int nullable)
{
    uint32_t       i, base;
    llm_rx_node_t  x;

    x = *llm_rx_node(p, a);
    base = p->tmp_arcs.n;

    for (i = 0; i < x.b; i++) {
        llm_rx_push_arc(p, base, p->arcs.data[x.a + i].from,
                        p->arcs.data[x.a + i].to, p->arcs.data[x.a + i].next);
    }

    return llm_rx_switch_tmp(p, base, nullable);
}


/* the arc at byte, or the first one after it: its start, end and what follows;
   a gap is an arc to NONE */

static llm_rx_t
llm_rx_arc_at(const llm_rx_pool_t *p, const llm_rx_node_t *x, uint32_t *i,
    uint32_t byte, uint32_t *to)
{
    const llm_rx_arc_t  *arc;

    while (*i < x->b && p->arcs.data[x->a + *i].to < byte) {
        (*i)++;
    }

    if (*i == x->b) {
        *to = 255;
        return LLM_RX_NONE;
    }

    arc = &p->arcs.data[x->a + *i];

    if (arc->from > byte) {
        *to = arc->from - 1u;
        return LLM_RX_NONE;
    }

    *to = arc->to;

    return arc->next;
}


/* merges two switches into one, with what either or, if both is set, both
   allow */

static llm_rx_t
llm_rx_merge(llm_rx_pool_t *p, llm_rx_t a, llm_rx_t b, int both)
{
    int            nullable;
    uint32_t       byte, i, k, to, to2, base;
    llm_rx_t       next, next2;
    llm_rx_node_t  x, y;

    x = *llm_rx_node(p, a);
    y = *llm_rx_node(p, b);
    base = p->tmp_arcs.n;
    nullable = both ? x.flags & y.flags & LLM_RXF_NULLABLE
                    : (x.flags | y.flags) & LLM_RXF_NULLABLE;

    p->depth++;

    for (byte = 0, i = 0, k = 0; byte < 256 && !p->failed; byte = to + 1) {
        next = llm_rx_arc_at(p, &x, &i, byte, &to);
        next2 = llm_rx_arc_at(p, &y, &k, byte, &to2);
        to = llm_min(to, to2);

        llm_rx_push_arc(p, base, byte, to,
                        both ? llm_rx_and(p, next, next2)
                             : llm_rx_or(p, next, next2));
    }

    p->depth--;

    return llm_rx_switch_tmp(p, base, nullable);
}


/* merges all switches of the list into one, which is pushed */

static void
llm_rx_merge_switches(llm_rx_pool_t *p, uint32_t base, int both)
{
    uint32_t  i, n;
    llm_rx_t  all;

    if (p->depth >= LLM_RX_MAX_MERGE) {
        return;
    }

    all = LLM_RX_NONE;
    n = base;

    for (i = base; i < p->tmp.n && !p->failed; i++) {
        if (llm_rx_node(p, p->tmp.data[i])->kind != LLM_RXK_SWITCH) {
            p->tmp.data[n++] = p->tmp.data[i];

        } else if (all == LLM_RX_NONE) {
            all = p->tmp.data[i];

        } else {
            all = llm_rx_merge(p, all, p->tmp.data[i], both);

            if (all == LLM_RX_NONE) {
                /* an intersection that no text is in */
                p->tmp.n = base;
                llm_rx_push(p, LLM_RX_NONE);
                return;
            }
        }
    }

    p->tmp.n = n;

    if (all != LLM_RX_NONE) {
        llm_rx_push(p, all);
    }
}


/* ---- alternatives ---- */

/* removes alternatives that the others contain */

static void
llm_rx_or_drop(llm_rx_pool_t *p, uint32_t base)
{
    int                   text, nullable;
    uint32_t              i, n;
    llm_rx_t              a, found;
    const llm_rx_node_t  *x;

    text = 0;
    nullable = 0;

    for (i = base; i < p->tmp.n; i++) {
        a = p->tmp.data[i];
        text |= a == LLM_RX_TEXT;

        if (a == p->universe) {
            p->tmp.data[base] = a;
            p->tmp.n = base + 1;
            return;
        }

        nullable |= a != LLM_RX_EMPTY && llm_rx_nullable(p, a);
    }

    found = LLM_RX_NONE;
    n = base;

    for (i = base; i < p->tmp.n; i++) {
        a = p->tmp.data[i];
        x = llm_rx_node(p, a);

        if (a == LLM_RX_NONE || (a == LLM_RX_EMPTY && nullable)
            || (text && a != LLM_RX_TEXT && x->level == 0))
        {
            continue;
        }

        if (a == LLM_RX_EMPTY) {
            found = a;
            continue;
        }

        p->tmp.data[n++] = a;
    }

    p->tmp.n = n;

    if (found != LLM_RX_EMPTY) {
        return;
    }

    /* a switch can take over the empty text */

    for (i = base; i < n; i++) {
        if (llm_rx_node(p, p->tmp.data[i])->kind == LLM_RXK_SWITCH) {
            a = llm_rx_set_nullable(p, p->tmp.data[i], 1);
            p->tmp.data[i] = a;
            return;
        }
    }

    llm_rx_push(p, LLM_RX_EMPTY);
}


/* turns XZ | YZ into (X|Y)Z */

static void
llm_rx_or_tails(llm_rx_pool_t *p, uint32_t base)
{
    uint32_t       i, k, n, from;
    llm_rx_t       tail, a;
    llm_rx_node_t  x;

    for (i = base; i < p->tmp.n && !p->failed; i++) {
        x = *llm_rx_node(p, p->tmp.data[i]);

        if (x.kind != LLM_RXK_CAT) {
            continue;
        }

        tail = x.b;
        from = p->tmp.n;
        n = i + 1;

        for (k = i + 1; k < from; k++) {
            a = p->tmp.data[k];

            if (llm_rx_node(p, a)->kind == LLM_RXK_CAT
                && llm_rx_node(p, a)->b == tail)
            {
                llm_rx_push(p, llm_rx_node(p, a)->a);

            } else {
                p->tmp.data[n++] = a;
            }
        }

        if (p->tmp.n == from || p->failed) {
            continue;
        }

        llm_rx_push(p, x.a);
        a = llm_rx_cat(p, llm_rx_or_list(p, from), tail);

        p->tmp.data[i] = a;
        p->tmp.n = n;
    }
}


/* turns X{a,b} | X{c,d} into X{a,d} where they overlap, so that the counters
   of a repetition that a text can enter in several ways do not multiply */

static void
llm_rx_or_repeats(llm_rx_pool_t *p, uint32_t base)
{
    uint32_t       i, k;
    llm_rx_t       a;
    llm_rx_node_t  x, y;

    for (i = base; i < p->tmp.n && !p->failed; i++) {
        x = *llm_rx_node(p, p->tmp.data[i]);

        for (k = i + 1; x.kind == LLM_RXK_REPEAT && k < p->tmp.n; k++) {
            y = *llm_rx_node(p, p->tmp.data[k]);

            if (y.kind != LLM_RXK_REPEAT || y.a != x.a
                || x.b > llm_rx_sum(y.c, 1) || y.b > llm_rx_sum(x.c, 1))
            {
                continue;
            }

            a = llm_rx_repeat(p, x.a, llm_min(x.b, y.b), llm_max(x.c, y.c));
            p->tmp.data[i] = a;
            p->tmp.data[k] = p->tmp.data[--p->tmp.n];
            x = *llm_rx_node(p, a);
            k = i;
        }
    }
}


llm_rx_t
llm_rx_or_list(llm_rx_pool_t *p, uint32_t base)
{
    uint32_t  n;
    llm_rx_t  a;

    llm_rx_flatten(p, base, LLM_RXK_OR);
    llm_rx_merge_switches(p, base, 0);

    if (p->failed) {
        p->tmp.n = llm_min(p->tmp.n, base);
        return LLM_RX_NONE;
    }

    llm_rx_or_drop(p, base);
    llm_rx_sort(p, base);

    if (p->tmp.n - base <= LLM_RX_MAX_TAILS) {
        llm_rx_or_repeats(p, base);
        llm_rx_or_tails(p, base);
        llm_rx_sort(p, base);
    }

    n = p->tmp.n - base;

    a = n == 0 ? LLM_RX_NONE
        : n == 1 ? p->tmp.data[base]
        : llm_rx_make_list(p, base, LLM_RXK_OR);

    p->tmp.n = base;

    return p->failed ? LLM_RX_NONE : a;
}


llm_rx_t
llm_rx_or(llm_rx_pool_t *p, llm_rx_t a, llm_rx_t b)
{
    uint32_t  base;

    if (a == b || b == LLM_RX_NONE) {
        return a;
    }

    if (a == LLM_RX_NONE) {
        return b;
    }

    base = p->tmp.n;
    llm_rx_push(p, a);
    llm_rx_push(p, b);

    return llm_rx_or_list(p, base);
}


/* ---- intersections ---- */

/* turns complements into the complement of an alternative */

static void
llm_rx_and_compl(llm_rx_pool_t *p, uint32_t base)
{
    uint32_t  i, n, from;
    llm_rx_t  a;

    from = p->tmp.n;
    n = base;

    for (i = base; i < from; i++) {
        a = p->tmp.data[i];

        if (llm_rx_node(p, a)->kind == LLM_RXK_COMPL) {
            llm_rx_push(p, llm_rx_node(p, a)->a);

        } else {
            p->tmp.data[n++] = a;
        }
    }

    if (p->failed || p->tmp.n == from) {
        return;
    }

    a = llm_rx_compl(p, llm_rx_or_list(p, from));
    p->tmp.n = n;
    llm_rx_push(p, a);
}


/* turns X{a,b} of characters and X{c,d} into X{max(a,c),min(b,d)} */

static void
llm_rx_and_lengths(llm_rx_pool_t *p, uint32_t base)
{
    uint32_t              i, n, min, max;
    const llm_rx_node_t  *x;

    min = 0;
    max = LLM_RX_NO_MAX;
    n = base;

    for (i = base; i < p->tmp.n; i++) {
        x = llm_rx_node(p, p->tmp.data[i]);

        if (x->kind == LLM_RXK_REPEAT && x->a == LLM_RX_CHAR) {
            min = llm_max(min, x->b);
            max = llm_min(max, x->c);

        } else {
            p->tmp.data[n++] = p->tmp.data[i];
        }
    }

    if (n == p->tmp.n) {
        return;
    }

    p->tmp.n = n;
    llm_rx_push(p, llm_rx_repeat(p, LLM_RX_CHAR, min, max));
}


/* removes what has no effect; leaves LLM_RX_NONE alone if nothing can match */

static void
llm_rx_and_drop(llm_rx_pool_t *p, uint32_t base)
{
    int                   utf8, nullable, empty, none;
    uint32_t              i, k, n;
    llm_rx_t              a;
    const llm_rx_node_t  *x;

    utf8 = 0;
    nullable = 1;
    empty = 0;
    none = 0;

    for (i = base; i < p->tmp.n; i++) {
        a = p->tmp.data[i];
        x = llm_rx_node(p, a);

        none |= a == LLM_RX_NONE;
        empty |= a == LLM_RX_EMPTY;
        utf8 |= a != LLM_RX_TEXT && x->level == 0;
        nullable &= (x->flags & LLM_RXF_NULLABLE) != 0;

        for (k = base; x->kind == LLM_RXK_COMPL && k < p->tmp.n; k++) {
            none |= p->tmp.data[k] == x->a;
        }
    }

    if (none || empty) {
        p->tmp.data[base] = none || !nullable ? LLM_RX_NONE : LLM_RX_EMPTY;
        p->tmp.n = base + 1;
        return;
    }

    n = base;

    for (i = base; i < p->tmp.n; i++) {
        a = p->tmp.data[i];

        if (a != p->universe && (a != LLM_RX_TEXT || !utf8)) {
            p->tmp.data[n++] = a;
        }
    }

    p->tmp.n = n;
}


llm_rx_t
llm_rx_and_list(llm_rx_pool_t *p, uint32_t base)
{
    uint32_t  n;
    llm_rx_t  a;

    llm_rx_flatten(p, base, LLM_RXK_AND);
    llm_rx_and_compl(p, base);
    llm_rx_and_lengths(p, base);
    llm_rx_merge_switches(p, base, 1);

    if (p->failed) {
        p->tmp.n = llm_min(p->tmp.n, base);
        return LLM_RX_NONE;
    }

    llm_rx_and_drop(p, base);
    llm_rx_sort(p, base);

    n = p->tmp.n - base;

    a = n == 0 ? p->universe
        : n == 1 ? p->tmp.data[base]
        : llm_rx_make_list(p, base, LLM_RXK_AND);

    p->tmp.n = base;

    return p->failed ? LLM_RX_NONE : a;
}


llm_rx_t
llm_rx_and(llm_rx_pool_t *p, llm_rx_t a, llm_rx_t b)
{
    uint32_t  base;

    if (a == b) {
        return a;
    }

    if (a == LLM_RX_NONE || b == LLM_RX_NONE) {
        return LLM_RX_NONE;
    }

    base = p->tmp.n;
    llm_rx_push(p, a);
    llm_rx_push(p, b);

    return llm_rx_and_list(p, base);
}


llm_rx_t
llm_rx_compl(llm_rx_pool_t *p, llm_rx_t a)
{
    llm_rx_node_t         x;
    const llm_rx_node_t  *n;

    n = llm_rx_node(p, a);

    if (n->kind == LLM_RXK_COMPL) {
        return n->a;
    }

    memset(&x, 0, sizeof(x));
    x.kind = LLM_RXK_COMPL;
    x.a = a;
    x.level = -1;
    x.flags = n->flags & LLM_RXF_NULLABLE ? 0 : LLM_RXF_NULLABLE;

    return llm_rx_intern(p, &x);
}


llm_rx_t
llm_rx_not(llm_rx_pool_t *p, llm_rx_t a)
{
    llm_rx_t              b;
    const llm_rx_node_t  *x;

    x = llm_rx_node(p, a);

    /* the complement of "not b" is b */

    if (x->kind == LLM_RXK_AND && x->b == 2) {
        b = p->kids.data[x->a] == LLM_RX_TEXT ? p->kids.data[x->a + 1]
                                              : LLM_RX_NONE;

        if (llm_rx_node(p, b)->kind == LLM_RXK_COMPL) {
            return llm_rx_and(p, LLM_RX_TEXT, llm_rx_node(p, b)->a);
        }
    }

    return llm_rx_and(p, LLM_RX_TEXT, llm_rx_compl(p, a));
}


/* ---- sequences ---- */

/*
 * Joins two neighbours that repeat the same: X{a,b}X{c,d}, X X{c,d} or
 * X{a,b}X; otherwise returns LLM_RX_NONE.
 */

static llm_rx_t
llm_rx_join(llm_rx_pool_t *p, llm_rx_t a, llm_rx_t b)
{
    llm_rx_node_t  x, y;

    x = *llm_rx_node(p, a);
    y = *llm_rx_node(p, b);

    if (x.kind == LLM_RXK_REPEAT && y.kind == LLM_RXK_REPEAT && x.a == y.a) {
        return llm_rx_repeat(p, x.a, llm_rx_sum(x.b, y.b),
                             llm_rx_sum(x.c, y.c));
    }

    if (y.kind == LLM_RXK_REPEAT && y.a == a) {
        return llm_rx_repeat(p, a, llm_rx_sum(y.b, 1), llm_rx_sum(y.c, 1));
    }

    if (x.kind == LLM_RXK_REPEAT && x.a == b) {
        return llm_rx_repeat(p, b, llm_rx_sum(x.b, 1), llm_rx_sum(x.c, 1));
    }

    return LLM_RX_NONE;
}


/* a is not a sequence */

static llm_rx_t
llm_rx_cat2(llm_rx_pool_t *p, llm_rx_t a, llm_rx_t b)
{
    llm_rx_t       joint;
    llm_rx_node_t  x, y;

    if (a == LLM_RX_NONE || b == LLM_RX_NONE) {
        return LLM_RX_NONE;
    }

    if (a == LLM_RX_EMPTY) {
        return b;
    }

    if (b == LLM_RX_EMPTY) {
        return a;
    }

    y = *llm_rx_node(p, b);
    joint = llm_rx_join(p, a, y.kind == LLM_RXK_CAT ? y.a : b);

    if (joint != LLM_RX_NONE) {
        return y.kind == LLM_RXK_CAT ? llm_rx_cat2(p, joint, y.b) : joint;
    }

    x = *llm_rx_node(p, a);

    x.kind = LLM_RXK_CAT;
    x.flags &= y.flags;
    x.level = y.level == 0 ? x.level : -1;
    x.alive = LLM_RX_UNKNOWN;
    x.a = a;
    x.b = b;
    x.c = 0;

    return llm_rx_intern(p, &x);
}


llm_rx_t
llm_rx_cat(llm_rx_pool_t *p, llm_rx_t a, llm_rx_t b)
{
    uint32_t              base;
    const llm_rx_node_t  *x;

    base = p->tmp.n;

    for (x = llm_rx_node(p, a); x->kind == LLM_RXK_CAT && !p->failed; ) {
        llm_rx_push(p, x->a);
        a = x->b;
        x = llm_rx_node(p, a);
    }

    b = llm_rx_cat2(p, a, b);

    while (p->tmp.n > base) {
        b = llm_rx_cat2(p, p->tmp.data[--p->tmp.n], b);
    }

    return p->failed ? LLM_RX_NONE : b;
}


/* a without the empty text where that is easy: a?  repeated is a repeated */

static llm_rx_t
llm_rx_strip(llm_rx_pool_t *p, llm_rx_t a)
{
    uint32_t       i, base;
    llm_rx_node_t  x;

    x = *llm_rx_node(p, a);

    if (x.kind == LLM_RXK_SWITCH) {
        return llm_rx_set_nullable(p, a, 0);
    }

    if (x.kind != LLM_RXK_OR) {
        return a;
    }

    base = p->tmp.n;

    for (i = 0; i < x.b; i++) {
        if (p->kids.data[x.a + i] != LLM_RX_EMPTY) {
            llm_rx_push(p, p->kids.data[x.a + i]);
        }
    }

    return llm_rx_or_list(p, base);
}


llm_rx_t
llm_rx_repeat(llm_rx_pool_t *p, llm_rx_t a, uint32_t min, uint32_t max)
{
    llm_rx_node_t  x, y;

    if (min > max) {
        return LLM_RX_NONE;
    }

    if (max == 0) {
        return LLM_RX_EMPTY;
    }

    if (a == LLM_RX_NONE) {
        return min ? LLM_RX_NONE : LLM_RX_EMPTY;
    }

    if (a == LLM_RX_EMPTY || (min == 1 && max == 1)) {
        return a;
    }

    if (llm_rx_nullable(p, a)) {
        min = 0;
        a = llm_rx_strip(p, a);
    }

    if (p->failed) {
        return LLM_RX_NONE;
    }

    y = *llm_rx_node(p, a);

    /* X* repeated is X*, X+ repeated is X{min,} */

    if (y.kind == LLM_RXK_REPEAT && y.c == LLM_RX_NO_MAX && y.b <= 1) {
        return llm_rx_repeat(p, y.a, min, LLM_RX_NO_MAX);
    }

    if (min == 0 && max == 1) {
        return llm_rx_or(p, a, LLM_RX_EMPTY);
    }

    memset(&x, 0, sizeof(x));
    x.kind = LLM_RXK_REPEAT;
    x.a = a;
    x.b = min;
    x.c = max;
    x.level = y.level == 0 ? 0 : -1;
    x.flags = y.flags & LLM_RXF_PLAIN;

    if (max != LLM_RX_NO_MAX) {
        x.flags |= y.flags & LLM_RXF_FINITE;
    }

    if (min == 0 || y.flags & LLM_RXF_NULLABLE) {
        x.flags |= LLM_RXF_NULLABLE;
    }

    return llm_rx_intern(p, &x);
}


llm_rx_t
llm_rx_residue_at(llm_rx_pool_t *p, uint32_t m, uint32_t r, uint32_t now)
{
    llm_rx_node_t  x;

    memset(&x, 0, sizeof(x));
    x.kind = LLM_RXK_RESIDUE;
    x.a = now;
    x.b = m;
    x.c = r;
    x.flags = LLM_RXF_PLAIN;

    if (now == r) {
        x.flags |= LLM_RXF_NULLABLE;
    }

    return llm_rx_intern(p, &x);
}


llm_rx_t
llm_rx_residue(llm_rx_pool_t *p, uint32_t m, uint32_t r)
{
    return r < m ? llm_rx_residue_at(p, m, r, m) : LLM_RX_NONE;
}
