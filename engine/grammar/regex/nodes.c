/*
 * Nodes of expressions and their numbers: equal nodes have the same number;
 * see regex.h.
 */

#include "engine/grammar/regex/internal.h"

/* units of work between two pauses, which take some microseconds */
#define LLM_RX_PAUSE  64


static int
llm_rx_same(const llm_rx_pool_t *p, const llm_rx_node_t *x,
    const llm_rx_node_t *y)
{
    if (x->kind != y->kind || x->b != y->b) {
        return 0;
    }

    switch (x->kind) {

    case LLM_RXK_SWITCH:
        return ((x->flags ^ y->flags) & LLM_RXF_NULLABLE) == 0
               && memcmp(&p->arcs.data[x->a], &p->arcs.data[y->a],
                         x->b * sizeof(llm_rx_arc_t)) == 0;

    case LLM_RXK_OR:
    case LLM_RXK_AND:
        return memcmp(&p->kids.data[x->a], &p->kids.data[y->a],
                      x->b * sizeof(llm_rx_t)) == 0;

    default:
        return x->a == y->a && x->c == y->c;
    }
}


static uint32_t
llm_rx_hash(const llm_rx_pool_t *p, const llm_rx_node_t *x)
{
    uint32_t             h, i;
    const llm_rx_arc_t  *arc;

    h = llm_hash(x->kind, x->b);

    switch (x->kind) {

    case LLM_RXK_SWITCH:
        h = llm_hash(h, x->flags & LLM_RXF_NULLABLE);

        for (i = 0; i < x->b; i++) {
            arc = &p->arcs.data[x->a + i];
            h = llm_hash(h, (uint32_t) arc->from << 8 | arc->to);
            h = llm_hash(h, arc->next);
        }

        return h;

    case LLM_RXK_OR:
    case LLM_RXK_AND:
        for (i = 0; i < x->b; i++) {
            h = llm_hash(h, p->kids.data[x->a + i]);
        }

        return h;

    default:
        return llm_hash(llm_hash(h, x->a), x->c);
    }
}


static llm_rx_t
llm_rx_fail(llm_rx_pool_t *p)
{
    p->failed = 1;

    return LLM_RX_NONE;
}


/*
 * Counts a unit of work, and calls pause() from time to time.
 */

void
llm_rx_worked(llm_rx_pool_t *p)
{
    if (p->pause && p->n_since++ >= LLM_RX_PAUSE) {
        p->n_since = 0;

        if (p->pause(p->pause_data)) {
            p->failed = 1;
        }
    }
}


llm_rx_t
llm_rx_intern(llm_rx_pool_t *p, llm_rx_node_t *x)
{
    uint32_t  hash, i, id;

    llm_rx_worked(p);

    if (p->failed) {
        return LLM_RX_NONE;
    }

    hash = llm_rx_hash(p, x);

    for (i = hash; (id = llm_table_next(&p->table, hash, &i)) != UINT32_MAX; )
    {
        if (llm_rx_same(p, x, llm_rx_node(p, id))) {
            if (x->kind == LLM_RXK_SWITCH) {
                p->arcs.n = x->a;

            } else if (x->kind == LLM_RXK_OR || x->kind == LLM_RXK_AND) {
                p->kids.n = x->a;
            }

            return id;
        }
    }

    id = p->nodes.n;

    if (id >= p->max_nodes || llm_vec_more(&p->nodes, 1) != LLM_OK
        || llm_table_add(&p->table, hash, id) != LLM_OK)
    {
        return llm_rx_fail(p);
    }

    if (x->flags & LLM_RXF_PLAIN || x->flags & LLM_RXF_NULLABLE) {
        x->alive = LLM_RX_ALIVE;
    }

    p->nodes.data[id] = *x;
    p->nodes.n++;

    return id;
}


int
llm_rx_number(llm_rx_pool_t *p, llm_rx_t a)
{
    return llm_table_add(&p->table, llm_rx_hash(p, llm_rx_node(p, a)), a);
}


/* ---- lists that are being made ---- */

void
llm_rx_push(llm_rx_pool_t *p, llm_rx_t a)
{
    if (llm_vec_more(&p->tmp, 1) != LLM_OK) {
        p->failed = 1;
        return;
    }

    p->tmp.data[p->tmp.n++] = a;
}


void
llm_rx_push_arc(llm_rx_pool_t *p, uint32_t base, uint32_t from, uint32_t to,
    llm_rx_t next)
{
    llm_rx_arc_t  *last;

    if (next == LLM_RX_NONE) {
        return;
    }

    if (p->tmp_arcs.n > base) {
        last = &p->tmp_arcs.data[p->tmp_arcs.n - 1];

        if (last->next == next && last->to + 1u == from) {
            last->to = (uint8_t) to;
            return;
        }
    }

    if (llm_vec_more(&p->tmp_arcs, 1) != LLM_OK) {
        p->failed = 1;
        return;
    }

    last = &p->tmp_arcs.data[p->tmp_arcs.n++];
    memset(last, 0, sizeof(*last));
    last->from = (uint8_t) from;
    last->to = (uint8_t) to;
    last->next = next;
}


static int
llm_rx_compare(const void *a, const void *b)
{
    llm_rx_t  x, y;

    x = *(const llm_rx_t *) a;
    y = *(const llm_rx_t *) b;

    return x < y ? -1 : x > y;
}


/* sorts the list from base on and removes duplicates */

void
llm_rx_sort(llm_rx_pool_t *p, uint32_t base)
{
    uint32_t   i, n;
    llm_rx_t  *list;

    list = p->tmp.data + base;
    n = p->tmp.n - base;

    if (n < 2) {
        return;
    }

    qsort(list, n, sizeof(llm_rx_t), llm_rx_compare);

    p->tmp.n = base + 1;

    for (i = 1; i < n; i++) {
        if (list[i] != list[i - 1]) {
            p->tmp.data[p->tmp.n++] = list[i];
        }
    }
}


/* replaces lists of this kind in the list by their kids */

void
llm_rx_flatten(llm_rx_pool_t *p, uint32_t base, llm_rx_kind_t kind)
{
    uint32_t       i, k;
    llm_rx_node_t  x;

    for (i = base; i < p->tmp.n && !p->failed; i++) {
        x = *llm_rx_node(p, p->tmp.data[i]);

        if (x.kind != kind) {
            continue;
        }

        p->tmp.data[i] = p->kids.data[x.a];

        for (k = 1; k < x.b; k++) {
            llm_rx_push(p, p->kids.data[x.a + k]);
        }
    }
}


llm_rx_t
llm_rx_make_list(llm_rx_pool_t *p, uint32_t base, llm_rx_kind_t kind)
{
    int            is_or;
    uint32_t       i, n;
    llm_rx_node_t  x;

    const llm_rx_node_t  *kid;

    n = p->tmp.n - base;
    is_or = kind == LLM_RXK_OR;

    if (llm_vec_more(&p->kids, n) != LLM_OK) {
        return llm_rx_fail(p);
    }

    memset(&x, 0, sizeof(x));
    x.kind = (uint8_t) kind;
    x.a = p->kids.n;
    x.b = n;
    x.flags = is_or ? LLM_RXF_PLAIN | LLM_RXF_FINITE : LLM_RXF_NULLABLE;
    x.level = -2;

    for (i = 0; i < n; i++) {
        kid = llm_rx_node(p, p->tmp.data[base + i]);
        p->kids.data[p->kids.n++] = p->tmp.data[base + i];

        if (is_or) {
            x.flags |= kid->flags & LLM_RXF_NULLABLE;
            x.flags &= kid->flags | LLM_RXF_NULLABLE;
            x.level = x.level == -2 || x.level == kid->level ? kid->level
                                                             : -1;

        } else {
            x.flags &= kid->flags | LLM_RXF_FINITE;
            x.flags |= kid->flags & LLM_RXF_FINITE;
            x.level = llm_max(x.level, kid->level);
        }
    }

    return llm_rx_intern(p, &x);
}


/* ---- switches ---- */

/* the level of the character that begins with this arc, if something of level
   `next` follows */

static int
llm_rx_level(const llm_rx_arc_t *arc, int next)
{
    if (next < 0) {
        return -1;
    }

    if (arc->to < 0x80) {
        return next == 0 ? 0 : -1;
    }

    if (arc->to < 0xc0) {
        return arc->from >= 0x80 && next < 3 ? next + 1 : -1;
    }

    if (arc->from < 0xc2 || arc->to > 0xf4) {
        return -1;
    }

    return (arc->to < 0xe0 ? 1 : arc->from >= 0xe0 && arc->to < 0xf0 ? 2
            : arc->from >= 0xf0 ? 3 : -1) == next ? 0 : -1;
}


llm_rx_t
llm_rx_switch(llm_rx_pool_t *p, const llm_rx_arc_t *arcs, uint32_t n,
    int nullable)
{
    int            level;
    uint32_t       i;
    llm_rx_node_t  x;

    const llm_rx_node_t  *next;

    if (n == 0) {
        return nullable ? LLM_RX_EMPTY : LLM_RX_NONE;
    }

    if (p->failed || llm_vec_more(&p->arcs, n) != LLM_OK) {
        return llm_rx_fail(p);
    }

    memset(&x, 0, sizeof(x));
    x.kind = LLM_RXK_SWITCH;
    x.a = p->arcs.n;
    x.b = n;
    x.flags = LLM_RXF_PLAIN | LLM_RXF_FINITE;
    x.level = -2;

    for (i = 0; i < n; i++) {
        p->arcs.data[p->arcs.n++] = arcs[i];

        next = llm_rx_node(p, arcs[i].next);
        level = llm_rx_level(&arcs[i], next->level);

        x.flags &= next->flags;
        x.level = (int8_t) (x.level == -2 || x.level == level ? level : -1);
    }

    if (nullable) {
        x.flags |= LLM_RXF_NULLABLE;
        x.level = x.level == 0 ? 0 : -1;

    } else {
        x.flags &= (uint8_t) ~LLM_RXF_NULLABLE;
    }

    return llm_rx_intern(p, &x);
}


llm_rx_t
llm_rx_switch_tmp(llm_rx_pool_t *p, uint32_t base, int nullable)
{
    llm_rx_t       a;
    llm_rx_arc_t  *arcs;

    arcs = p->tmp_arcs.data ? p->tmp_arcs.data + base : NULL;
    a = llm_rx_switch(p, arcs, p->tmp_arcs.n - base, nullable);
    p->tmp_arcs.n = base;

    return a;
}
