/*
 * The machine: what a byte does to a set of cells; see run.h.
 */

#include "engine/grammar/run.h"


/* the node above the cell has ended */

static void
llm_machine_end(llm_run_t *r, uint32_t id)
{
    uint32_t           cell;
    llm_cell_t         c;
    const llm_node_t  *x;

    if (r->ended.data[id] == r->closure) {
        return;
    }

    r->ended.data[id] = r->closure;

    if (id == LLM_ID_END) {
        llm_run_add(r, id);
        return;
    }

    c = r->cells.data[id];
    x = &r->g->nodes.data[c.node];

    switch (x->kind) {

    case LLM_NODE_SEQ:
        if (c.x + 1 == x->b) {
            llm_run_begin(r, c.parent, r->g->kids.data[x->a + c.x]);
            return;
        }

        cell = llm_run_cell(r, LLM_CELL_FRAME, c.node, c.parent, c.x + 1, 0,
                            0);
        llm_run_begin(r, cell, r->g->kids.data[x->a + c.x]);
        return;

    case LLM_NODE_REPEAT:
        if (c.x >= x->b) {
            llm_run_end(r, c.parent);
        }

        if (x->c == LLM_GN_NO_MAX || c.x < x->c) {
            cell = x->c == LLM_GN_NO_MAX ? llm_min(c.x + 1, x->b) : c.x + 1;
            cell = llm_run_cell(r, LLM_CELL_FRAME, c.node, c.parent, cell, 0,
                                0);
            llm_run_begin(r, cell, x->a);
        }

        return;

    default:
        llm_run_value_end(r, id);
    }
}


static void
llm_machine_regex(llm_run_t *r, uint32_t parent, uint32_t node, llm_rx_t rx)
{
    uint32_t  state;

    state = llm_lex_start(&r->lexer, rx, LLM_LEX_RAW);

    if (state == LLM_LEX_DEAD) {
        return;
    }

    if (r->lexer.states.data[state].accepts) {
        llm_run_end(r, parent);
    }

    llm_run_add(r, llm_run_cell(r, LLM_CELL_LEX, node, parent, state, 0, 0));
}


/* is this the first time that this closure begins the node above this cell? */

static int
llm_machine_enter(llm_run_t *r, uint32_t parent, uint32_t node)
{
    uint32_t  cell;

    cell = llm_run_cell(r, LLM_CELL_ENTER, node, parent, 0, 0, 0);

    if (r->begun.data[cell] == r->closure) {
        return 0;
    }

    r->begun.data[cell] = r->closure;

    return 1;
}


static void
llm_machine_begin(llm_run_t *r, uint32_t parent, uint32_t node)
{
    uint32_t    i, cell;
    llm_node_t  x;

    x = r->g->nodes.data[node];

    if (!x.live) {
        return;
    }

    switch (x.kind) {

    case LLM_NODE_EMPTY:
        llm_run_end(r, parent);
        return;

    case LLM_NODE_TEXT:
        llm_run_add(r, llm_run_cell(r, LLM_CELL_TEXT, node, parent, 0, 0, 0));
        return;

    case LLM_NODE_REGEX:
        llm_machine_regex(r, parent, node, x.a);
        return;

    case LLM_NODE_STRING:
        llm_run_add(r, llm_run_cell(r, LLM_CELL_LEX, node, parent,
                                    llm_lex_start(&r->lexer, x.a,
                                                  LLM_LEX_QUOTE), 0, 0));
        return;

    case LLM_NODE_SEQ:
        cell = llm_run_cell(r, LLM_CELL_FRAME, node, parent, 1, 0, 0);
        llm_run_begin(r, cell, r->g->kids.data[x.a]);
        return;

    case LLM_NODE_ALT:
        if (llm_machine_enter(r, parent, node)) {
            for (i = 0; i < x.b; i++) {
                llm_run_begin(r, parent, r->g->kids.data[x.a + i]);
            }
        }

        return;

    case LLM_NODE_REPEAT:
        if (x.b == 0) {
            llm_run_end(r, parent);
        }

        cell = x.c == LLM_GN_NO_MAX ? llm_min(1, x.b) : 1;
        cell = llm_run_cell(r, LLM_CELL_FRAME, node, parent, cell, 0, 0);
        llm_run_begin(r, cell, x.a);
        return;

    case LLM_NODE_OBJECT:
    case LLM_NODE_ARRAY:
        llm_run_add(r, llm_run_cell(r, LLM_CELL_OPEN, node, parent, 0, 0,
                                    0));
        return;

    case LLM_NODE_REF:
        if (llm_machine_enter(r, parent, node)) {
            llm_run_begin(r, parent, x.a);
        }

        return;

    default:
        return;
    }
}


static void
llm_machine_work(llm_run_t *r)
{
    uint32_t    steps;
    llm_work_t  w;

    for (steps = 0; r->work.n > 0 && !r->failed; steps++) {
        if (steps > LLM_RUN_MAX_WORK) {
            r->failed = 1;
            return;
        }

        w = r->work.data[--r->work.n];

        if (w.node == UINT32_MAX) {
            llm_machine_end(r, w.cell);

        } else {
            llm_machine_begin(r, w.cell, w.node);
        }
    }

    r->steps += steps;
    r->failed |= r->lexer.failed || llm_rx_failed(r->g->pool)
                 || (r->max_steps && r->steps > r->max_steps);
}


static void
llm_machine_lex_byte(llm_run_t *r, const llm_cell_t *c, uint8_t byte)
{
    uint32_t         next;
    const uint32_t  *row;

    row = llm_lex_row(&r->lexer, c->x);
    next = row ? row[byte] : LLM_LEX_DEAD;

    if (next == LLM_LEX_DEAD) {
        return;
    }

    if (r->lexer.states.data[next].accepts) {
        llm_run_end(r, c->parent);
    }

    if (next != LLM_LEX_FINAL) {
        llm_run_add(r, llm_run_cell(r, LLM_CELL_LEX, c->node, c->parent,
                                    next, 0, 0));
    }
}


static void
llm_machine_byte(llm_run_t *r, const llm_cell_t *c, uint8_t byte)
{
    const llm_node_t  *x;

    x = &r->g->nodes.data[c->node];

    switch (c->kind) {

    case LLM_CELL_END:
    case LLM_CELL_UNSURE:
        return;

    case LLM_CELL_TEXT:
        if ((uint8_t) r->g->text.data[x->a + c->x] != byte) {
            return;
        }

        if (c->x + 1 == x->b) {
            llm_run_end(r, c->parent);
            return;
        }

        llm_run_add(r, llm_run_cell(r, LLM_CELL_TEXT, c->node, c->parent,
                                    c->x + 1, 0, 0));
        return;

    case LLM_CELL_LEX:
        llm_machine_lex_byte(r, c, byte);
        return;

    default:
        if (x->kind == LLM_NODE_OBJECT) {
            llm_object_byte(r, c, byte);

        } else {
            llm_array_byte(r, c, byte);
        }
    }
}


/* ---- sets ---- */

uint32_t
llm_run_start(llm_run_t *r, llm_gn_t root)
{
    llm_run_open(r);
    llm_run_begin(r, LLM_ID_END, root);
    llm_machine_work(r);

    return llm_run_close(r);
}


static uint32_t
llm_machine_move(llm_run_t *r, uint32_t set, uint8_t byte)
{
    uint32_t    i, first, n;
    llm_cell_t  c;

    llm_run_open(r);

    first = r->sets.data[set].first;
    n = r->sets.data[set].n;
    r->unsure = r->sets.data[set].unsure;

    for (i = 0; i < n && !r->failed; i++) {
        c = r->cells.data[r->members.data[first + i]];
        llm_machine_byte(r, &c, byte);
    }

    r->steps += n;
    llm_machine_work(r);

    return llm_run_close(r);
}


uint32_t
llm_run_move(llm_run_t *r, uint32_t set, uint8_t byte)
{
    uint32_t  hash, i, id, next;
    uint64_t  key;

    key = (uint64_t) set << 8 | byte;
    hash = llm_hash(set, byte);

    for (i = hash;
         (id = llm_table_next(&r->move_table, hash, &i)) != UINT32_MAX; )
    {
        if (r->moves.data[id] == key) {
            return r->moved.data[id];
        }
    }

    next = llm_machine_move(r, set, byte);

    if (r->failed) {
        return LLM_SET_NONE;
    }

    if (llm_vec_more(&r->moves, 1) != LLM_OK
        || llm_vec_more(&r->moved, 1) != LLM_OK
        || llm_table_add(&r->move_table, hash, r->moves.n) != LLM_OK)
    {
        r->failed = 1;
        return LLM_SET_NONE;
    }

    r->moves.data[r->moves.n++] = key;
    r->moved.data[r->moved.n++] = next;
    r->full |= r->moves.n >= LLM_RUN_MAX;

    return next;
}


uint32_t
llm_run_after(llm_run_t *r, uint32_t cell, uint32_t text)
{
    llm_cell_t  c;

    c = r->cells.data[cell];
    llm_run_open(r);

    switch (c.kind) {

    case LLM_CELL_LEX:
        llm_run_end(r, c.parent);
        break;

    case LLM_CELL_KEY:
        llm_object_key(r, &c, text);
        break;

    default:
        llm_array_scalar(r, &c, text);
    }

    llm_machine_work(r);

    return llm_run_close(r);
}


uint32_t
llm_run_subset(llm_run_t *r, const uint32_t *cells, uint32_t n)
{
    uint32_t  i;

    llm_run_open(r);

    for (i = 0; i < n; i++) {
        llm_run_add(r, cells[i]);
    }

    return llm_run_close(r);
}


static void
llm_machine_bytes(llm_run_t *r, const llm_cell_t *c, uint64_t *bytes)
{
    uint8_t            byte;
    uint32_t           i;
    const llm_node_t  *x;

    x = &r->g->nodes.data[c->node];

    switch (c->kind) {

    case LLM_CELL_END:
    case LLM_CELL_UNSURE:
        return;

    case LLM_CELL_TEXT:
        byte = (uint8_t) r->g->text.data[x->a + c->x];
        bytes[byte / 64] |= (uint64_t) 1 << byte % 64;
        return;

    case LLM_CELL_LEX:
    case LLM_CELL_KEY:
        if (llm_lex_row(&r->lexer, c->x)) {
            for (i = 0; i < 4; i++) {
                bytes[i] |= r->lexer.states.data[c->x].first[i];
            }
        }

        return;

    default:
        if (x->kind == LLM_NODE_OBJECT) {
            llm_object_bytes(r, c, bytes);

        } else {
            llm_array_bytes(r, c, bytes);
        }
    }
}


const uint64_t *
llm_run_bytes(llm_run_t *r, uint32_t set)
{
    uint32_t    i;
    llm_cell_t  c;
    llm_set_t  *s;

    s = &r->sets.data[set];

    if (!s->has_bytes) {
        s->has_bytes = 1;

        for (i = 0; i < s->n; i++) {
            c = r->cells.data[r->members.data[s->first + i]];
            llm_machine_bytes(r, &c, s->bytes);
        }
    }

    return s->bytes;
}


int
llm_run_may_end(const llm_run_t *r, uint32_t set)
{
    const llm_set_t  *s;

    s = &r->sets.data[set];

    return s->n > 0 && r->members.data[s->first] == LLM_ID_END;
}
