/*
 * Derivatives of expressions: what must follow a byte, whether anything can
 * follow at all, whether a text matches; see regex.h.
 */

#include "engine/grammar/regex/internal.h"

/* most derivatives computed to decide whether an expression matches anything */
#define LLM_RX_BUDGET  20000

/* marks the bytes at which what follows may change */
typedef struct {
    uint8_t      at[257];
} llm_rx_cuts_t;


static llm_rx_t llm_rx_derive(llm_rx_pool_t *p, llm_rx_t a, uint8_t byte);


static llm_rx_t
llm_rx_arc(const llm_rx_pool_t *p, const llm_rx_node_t *x, uint8_t byte)
{
    uint32_t             low, high, mid;
    const llm_rx_arc_t  *arcs;

    arcs = p->arcs.data + x->a;
    low = 0;
    high = x->b;

    while (low < high) {
        mid = (low + high) / 2;

        if (arcs[mid].to < byte) {
            low = mid + 1;

        } else {
            high = mid;
        }
    }

    return low < x->b && arcs[low].from <= byte ? arcs[low].next
                                                : LLM_RX_NONE;
}


/* for XY: what follows in X and, if X may be empty, what follows in Y, and so
   on */

static llm_rx_t
llm_rx_derive_cat(llm_rx_pool_t *p, llm_rx_t a, uint8_t byte)
{
    uint32_t       base;
    llm_rx_t       d;
    llm_rx_node_t  x;

    base = p->tmp.n;

    for ( ;; ) {
        x = *llm_rx_node(p, a);

        if (x.kind != LLM_RXK_CAT) {
            d = llm_rx_derive(p, a, byte);
            llm_rx_push(p, d);
            break;
        }

        d = llm_rx_cat(p, llm_rx_derive(p, x.a, byte), x.b);
        llm_rx_push(p, d);

        if (!llm_rx_nullable(p, x.a)) {
            break;
        }

        a = x.b;
    }

    return llm_rx_or_list(p, base);
}


static llm_rx_t
llm_rx_derive(llm_rx_pool_t *p, llm_rx_t a, uint8_t byte)
{
    uint32_t       i, base;
    llm_rx_t       d;
    llm_rx_node_t  x;

    if (p->failed) {
        return LLM_RX_NONE;
    }

    x = *llm_rx_node(p, a);

    switch (x.kind) {

    case LLM_RXK_SWITCH:
        return llm_rx_arc(p, &x, byte);

    case LLM_RXK_CAT:
        return llm_rx_derive_cat(p, a, byte);

    case LLM_RXK_OR:
    case LLM_RXK_AND:
        base = p->tmp.n;

        for (i = 0; i < x.b; i++) {
            d = llm_rx_derive(p, p->kids.data[x.a + i], byte);

            if (d == LLM_RX_NONE && x.kind == LLM_RXK_AND) {
                p->tmp.n = base;
                return LLM_RX_NONE;
            }

            if (d != LLM_RX_NONE) {
                llm_rx_push(p, d);
            }
        }

        return x.kind == LLM_RXK_OR ? llm_rx_or_list(p, base)
                                    : llm_rx_and_list(p, base);

    case LLM_RXK_COMPL:
        return llm_rx_compl(p, llm_rx_derive(p, x.a, byte));

    case LLM_RXK_REPEAT:
        d = llm_rx_derive(p, x.a, byte);

        if (d == LLM_RX_NONE) {
            return d;
        }

        return llm_rx_cat(p, d, llm_rx_repeat(p, x.a, x.b ? x.b - 1 : 0,
                                              x.c == LLM_RX_NO_MAX
                                              ? x.c : x.c - 1));

    case LLM_RXK_RESIDUE:
        if (byte < '0' || byte > '9') {
            return LLM_RX_NONE;
        }

        return llm_rx_residue_at(p, x.b, x.c,
                                 (uint32_t) (((uint64_t) (x.a % x.b) * 10
                                              + byte - '0') % x.b));

    default:
        return LLM_RX_NONE;
    }
}


static void
llm_rx_cut(const llm_rx_pool_t *p, llm_rx_t a, llm_rx_cuts_t *cuts)
{
    uint32_t              i;
    const llm_rx_arc_t   *arc;
    const llm_rx_node_t  *x;

    for ( ;; ) {
        x = llm_rx_node(p, a);

        switch (x->kind) {

        case LLM_RXK_SWITCH:
            for (i = 0; i < x->b; i++) {
                arc = &p->arcs.data[x->a + i];
                cuts->at[arc->from] = 1;
                cuts->at[arc->to + 1] = 1;
            }

            return;

        case LLM_RXK_OR:
        case LLM_RXK_AND:
            for (i = 0; i < x->b; i++) {
                llm_rx_cut(p, p->kids.data[x->a + i], cuts);
            }

            return;

        case LLM_RXK_CAT:
            llm_rx_cut(p, x->a, cuts);

            if (!llm_rx_nullable(p, x->a)) {
                return;
            }

            a = x->b;
            break;

        case LLM_RXK_COMPL:
        case LLM_RXK_REPEAT:
            a = x->a;
            break;

        case LLM_RXK_RESIDUE:
            for (i = '0'; i <= '9' + 1; i++) {
                cuts->at[i] = 1;
            }

            return;

        default:
            return;
        }
    }
}


/* ---- is there a text that matches? ---- */

/* a node that a search has reached, from which step, and by which byte */
typedef struct {
    llm_rx_t     a;
    uint32_t     from;
    uint8_t      byte;
} llm_rx_step_t;

typedef llm_vec(llm_rx_step_t)  llm_rx_steps_t;


static int
llm_rx_step_to(llm_rx_pool_t *p, llm_rx_steps_t *s, llm_rx_t a, uint32_t from,
    uint32_t byte)
{
    uint32_t  n;

    if (p->seen.n < p->nodes.n) {
        n = p->nodes.n - p->seen.n;

        if (llm_vec_more(&p->seen, n) != LLM_OK) {
            return LLM_ERROR;
        }

        memset(p->seen.data + p->seen.n, 0, n * sizeof(uint32_t));
        p->seen.n = p->nodes.n;
    }

    if (p->seen.data[a] == p->search) {
        return LLM_OK;
    }

    if (llm_vec_more(s, 1) != LLM_OK) {
        return LLM_ERROR;
    }

    p->seen.data[a] = p->search;
    s->data[s->n].a = a;
    s->data[s->n].byte = (uint8_t) byte;
    s->data[s->n++].from = from;

    return LLM_OK;
}


/*
 * Searches breadth first.  When a text is found, all nodes on its way are
 * known to match something.  So a state that was called alive always has a
 * next state that is called alive, too.
 */

static llm_rx_alive_t
llm_rx_search(llm_rx_pool_t *p, llm_rx_steps_t *s, uint32_t budget)
{
    uint32_t       i, k, byte;
    llm_rx_t       d;
    llm_rx_cuts_t  cuts;

    for (i = 0; i < s->n; i++) {

        if (p->nodes.data[s->data[i].a].alive == LLM_RX_ALIVE) {
            for (k = i; k != UINT32_MAX; k = s->data[k].from) {
                p->nodes.data[s->data[k].a].alive = LLM_RX_ALIVE;
            }

            return LLM_RX_ALIVE;
        }

        memset(&cuts, 0, sizeof(cuts));
        cuts.at[0] = 1;
        llm_rx_cut(p, s->data[i].a, &cuts);

        for (byte = 0; byte < 256; byte++) {
            if (!cuts.at[byte]) {
                continue;
            }

            if (budget-- == 0) {
                return LLM_RX_UNDECIDED;
            }

            llm_rx_worked(p);
            d = llm_rx_derive(p, s->data[i].a, (uint8_t) byte);

            if (d == LLM_RX_NONE || p->nodes.data[d].alive == LLM_RX_DEAD) {
                continue;
            }

            if (p->failed || llm_rx_step_to(p, s, d, i, byte) != LLM_OK) {
                p->failed = 1;
                return LLM_RX_UNDECIDED;
            }
        }
    }

    for (i = 0; i < s->n; i++) {
        p->nodes.data[s->data[i].a].alive = LLM_RX_DEAD;
    }

    return LLM_RX_DEAD;
}


int
llm_rx_is_none(llm_rx_pool_t *p, llm_rx_t a, uint32_t budget)
{
    llm_rx_alive_t  alive;
    llm_rx_steps_t  s;

    if (p->failed) {
        return LLM_ERROR;
    }

    alive = p->nodes.data[a].alive;

    if (alive == LLM_RX_UNKNOWN
        || (alive == LLM_RX_HARD && budget >= LLM_RX_BUDGET))
    {
        memset(&s, 0, sizeof(s));
        p->search++;

        alive = llm_rx_step_to(p, &s, a, UINT32_MAX, 0) == LLM_OK
                ? llm_rx_search(p, &s, budget) : LLM_RX_UNDECIDED;

        if (alive == LLM_RX_UNDECIDED && budget < LLM_RX_BUDGET) {
            alive = LLM_RX_HARD;
        }

        free(s.data);
        p->nodes.data[a].alive = (uint8_t) alive;
        p->undecided |= alive == LLM_RX_UNDECIDED;
    }

    return alive == LLM_RX_ALIVE ? 0 : alive == LLM_RX_DEAD ? 1 : LLM_ERROR;
}


int
llm_rx_alive(llm_rx_pool_t *p, llm_rx_t a)
{
    return llm_rx_is_none(p, a, LLM_RX_BUDGET) == 0;
}


/* ---- rows ---- */

static int
llm_rx_row_room(llm_rx_pool_t *p)
{
    uint32_t  n;

    if (p->rows.n >= p->nodes.n) {
        return LLM_OK;
    }

    n = p->nodes.n - p->rows.n;

    if (llm_vec_more(&p->rows, n) != LLM_OK) {
        return LLM_ERROR;
    }

    memset(p->rows.data + p->rows.n, 0, n * sizeof(llm_rx_t *));
    p->rows.n = p->nodes.n;

    return LLM_OK;
}


const llm_rx_t *
llm_rx_row(llm_rx_pool_t *p, llm_rx_t a)
{
    uint32_t        byte;
    llm_rx_t       *row, d;
    llm_rx_cuts_t   cuts;

    if (p->failed) {
        return NULL;
    }

    if (a < p->rows.n && p->rows.data[a]) {
        return p->rows.data[a];
    }

    row = llm_rx_row_room(p) == LLM_OK ? malloc(256 * sizeof(llm_rx_t))
                                       : NULL;
    if (row == NULL) {
        p->failed = 1;
        return NULL;
    }

    memset(&cuts, 0, sizeof(cuts));
    cuts.at[0] = 1;
    llm_rx_cut(p, a, &cuts);
    d = LLM_RX_NONE;

    for (byte = 0; byte < 256; byte++) {
        if (cuts.at[byte]) {
            d = llm_rx_derive(p, a, (uint8_t) byte);
            d = llm_rx_alive(p, d) ? d : LLM_RX_NONE;
        }

        row[byte] = d;
    }

    if (p->failed) {
        free(row);
        return NULL;
    }

    p->rows.data[a] = row;
    p->n_rows++;

    return row;
}


int
llm_rx_matches(llm_rx_pool_t *p, llm_rx_t a, const char *text, size_t len)
{
    size_t           i;
    const llm_rx_t  *row;

    for (i = 0; i < len && a != LLM_RX_NONE; i++) {
        row = llm_rx_row(p, a);
        a = row ? row[(uint8_t) text[i]] : LLM_RX_NONE;
    }

    return llm_rx_nullable(p, a);
}


/* ---- an example ---- */

/* appends the bytes on the way to step i */

static int
llm_rx_spell(const llm_rx_steps_t *s, uint32_t i, llm_buf_t *out)
{
    char      *p;
    uint32_t   k, n;

    n = 0;

    for (k = i; s->data[k].from != UINT32_MAX; k = s->data[k].from) {
        n++;
    }

    p = llm_buf_reserve(out, n);
    if (p == NULL) {
        return LLM_ERROR;
    }

    out->len += n;
    p[n] = '\0';

    for (k = i; s->data[k].from != UINT32_MAX; k = s->data[k].from) {
        p[--n] = (char) s->data[k].byte;
    }

    return LLM_OK;
}


/* as llm_rx_step_to(), but with marks of its own, because computing rows
   starts searches, too */

static int
llm_rx_example_step(llm_rx_steps_t *s, llm_table_t *seen, llm_rx_t a,
    uint32_t from, uint32_t byte)
{
    uint32_t  i;

    i = a;

    if (llm_table_next(seen, a, &i) != UINT32_MAX) {
        return LLM_OK;
    }

    if (llm_vec_more(s, 1) != LLM_OK
        || llm_table_add(seen, a, a) != LLM_OK)
    {
        return LLM_ERROR;
    }

    s->data[s->n].a = a;
    s->data[s->n].byte = (uint8_t) byte;
    s->data[s->n++].from = from;

    return LLM_OK;
}


static int
llm_rx_example_search(llm_rx_pool_t *p, llm_rx_steps_t *s, llm_table_t *seen,
    llm_buf_t *out)
{
    uint32_t         i, byte;
    const llm_rx_t  *row;

    for (i = 0; i < s->n && i < LLM_RX_BUDGET; i++) {
        if (llm_rx_nullable(p, s->data[i].a)) {
            return llm_rx_spell(s, i, out);
        }

        row = llm_rx_row(p, s->data[i].a);

        for (byte = 0; row && byte < 256; byte++) {
            if (row[byte] != LLM_RX_NONE
                && llm_rx_example_step(s, seen, row[byte], i, byte)
                   != LLM_OK)
            {
                return LLM_ERROR;
            }
        }
    }

    return LLM_ERROR;
}


int
llm_rx_example(llm_rx_pool_t *p, llm_rx_t a, llm_buf_t *out)
{
    int             rc;
    llm_table_t     seen;
    llm_rx_steps_t  s;

    memset(&s, 0, sizeof(s));
    memset(&seen, 0, sizeof(seen));

    rc = llm_rx_example_step(&s, &seen, a, UINT32_MAX, 0) == LLM_OK
         ? llm_rx_example_search(p, &s, &seen, out) : LLM_ERROR;

    llm_table_clear(&seen);
    free(s.data);

    return rc;
}


/* ---- open expressions ---- */

/*
 * Can every text of whole characters be continued to one that matches?  That
 * is certain for any text, for any text before something else, and for all
 * texts but a finite number.
 */

int
llm_rx_is_open(const llm_rx_pool_t *p, llm_rx_t a)
{
    uint32_t              i;
    llm_rx_t              kid;
    const llm_rx_node_t  *x;

    x = llm_rx_node(p, a);

    switch (x->kind) {

    case LLM_RXK_REPEAT:
        return x->a == LLM_RX_CHAR && x->c == LLM_RX_NO_MAX;

    case LLM_RXK_CAT:
        x = llm_rx_node(p, x->a);

        return x->kind == LLM_RXK_REPEAT && x->a == LLM_RX_CHAR
               && x->c == LLM_RX_NO_MAX
               && (llm_rx_node(p, llm_rx_node(p, a)->b)->flags
                   & LLM_RXF_PLAIN);

    case LLM_RXK_OR:
        for (i = 0; i < x->b; i++) {
            if (llm_rx_is_open(p, p->kids.data[x->a + i])) {
                return 1;
            }
        }

        return 0;

    case LLM_RXK_AND:
        for (i = 0; i < x->b; i++) {
            kid = p->kids.data[x->a + i];

            if (llm_rx_node(p, kid)->kind == LLM_RXK_COMPL) {
                if (!(llm_rx_node(p, llm_rx_node(p, kid)->a)->flags
                      & LLM_RXF_FINITE))
                {
                    return 0;
                }

            } else if (llm_rx_node(p, kid)->kind != LLM_RXK_REPEAT
                       || !llm_rx_is_open(p, kid))
            {
                return 0;
            }
        }

        return 1;

    default:
        return 0;
    }
}
