/*
 * Makes and frees pools of expressions; see regex.h.
 */

#include "engine/grammar/regex/internal.h"


/*
 * Gives the node that was made last the number of a constant; its own number
 * is free again.
 */

static void
llm_rx_renumber(llm_rx_pool_t *p, llm_rx_t a, llm_rx_t constant)
{
    uint32_t  i;

    if (p->failed) {
        return;
    }

    p->nodes.data[constant] = p->nodes.data[a];
    p->nodes.n = a;

    for (i = 0; i <= p->table.mask; i++) {
        if ((uint32_t) p->table.slot[i] == a + 1) {
            p->table.slot[i] -= a - constant;
            return;
        }
    }
}


static void
llm_rx_constants(llm_rx_pool_t *p)
{
    llm_rx_node_t   x;
    llm_rx_range_t  all = { 0, 0x10ffff };

    memset(&x, 0, sizeof(x));
    x.kind = LLM_RXK_NONE;
    x.flags = LLM_RXF_FINITE;
    x.alive = LLM_RX_DEAD;
    (void) llm_rx_intern(p, &x);

    x.kind = LLM_RXK_EMPTY;
    x.flags = LLM_RXF_NULLABLE | LLM_RXF_PLAIN | LLM_RXF_FINITE;
    (void) llm_rx_intern(p, &x);

    if (p->failed) {
        return;
    }

    p->nodes.n = 4;
    p->nodes.data[LLM_RX_CHAR] = x;
    p->nodes.data[LLM_RX_TEXT] = x;

    llm_rx_renumber(p, llm_rx_class(p, &all, 1), LLM_RX_CHAR);
    llm_rx_renumber(p, llm_rx_repeat(p, LLM_RX_CHAR, 0, LLM_RX_NO_MAX),
                    LLM_RX_TEXT);

    p->universe = llm_rx_compl(p, LLM_RX_NONE);
}


llm_rx_pool_t *
llm_rx_create(uint32_t max_nodes)
{
    llm_rx_pool_t  *p;

    p = calloc(1, sizeof(llm_rx_pool_t));
    if (p == NULL) {
        return NULL;
    }

    p->max_nodes = llm_max(max_nodes, 64);
    p->universe = UINT32_MAX;
    llm_rx_constants(p);

    if (p->failed) {
        llm_rx_free(p);
        return NULL;
    }

    return p;
}


static void
llm_rx_free_rows(llm_rx_pool_t *p)
{
    uint32_t  i;

    for (i = 0; i < p->rows.n; i++) {
        free(p->rows.data[i]);
    }

    p->rows.n = 0;
    p->n_rows = 0;
}


void
llm_rx_free(llm_rx_pool_t *p)
{
    if (p == NULL) {
        return;
    }

    llm_rx_free_rows(p);
    free(p->rows.data);
    free(p->seen.data);
    free(p->nodes.data);
    free(p->arcs.data);
    free(p->kids.data);
    free(p->tmp.data);
    free(p->tmp_arcs.data);
    llm_table_clear(&p->table);
    free(p);
}


int
llm_rx_failed(const llm_rx_pool_t *p)
{
    return p->failed;
}


void
llm_rx_mark(const llm_rx_pool_t *p, llm_rx_mark_t *m)
{
    m->nodes = p->nodes.n;
    m->arcs = p->arcs.n;
    m->kids = p->kids.n;
}


int
llm_rx_reset(llm_rx_pool_t *p, const llm_rx_mark_t *m)
{
    uint32_t  i;

    llm_rx_free_rows(p);
    llm_table_clear(&p->table);

    p->nodes.n = m->nodes;
    p->arcs.n = m->arcs;
    p->kids.n = m->kids;
    p->tmp.n = 0;
    p->tmp_arcs.n = 0;
    p->depth = 0;
    p->failed = 0;

    for (i = 0; i < p->nodes.n; i++) {
        if (llm_rx_number(p, i) != LLM_OK) {
            p->failed = 1;
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
