/*
 * Arrays of JSON, byte by byte: how many items may follow, which of them
 * "contains" requires, and that unique items differ.
 */

#include "engine/grammar/run.h"


static const llm_array_t *
llm_array_of(const llm_run_t *r, uint32_t node)
{
    return &r->g->arrays.data[r->g->nodes.data[node].a];
}


/* items that contains still requires after those of frame */

static uint32_t
llm_array_missing(const llm_array_t *a, const llm_cell_t *frame)
{
    return a->min_contains - llm_min(a->min_contains, frame->y);
}


/* may an item follow that matches contains (asked 1), or that does not (0)? */

static int
llm_array_may(const llm_array_t *a, const llm_cell_t *frame, uint32_t asked)
{
    uint32_t  missing;

    if (a->max == LLM_GN_NO_MAX) {
        return 1;
    }

    missing = llm_array_missing(a, frame);
    missing -= llm_min(missing, asked);

    return frame->x < a->max
           && a->max - llm_max(frame->x + 1, a->n_prefix) >= missing;
}


static int
llm_array_may_close(const llm_array_t *a, const llm_cell_t *frame)
{
    return frame->x >= a->min && llm_array_missing(a, frame) == 0;
}


/* the frame after one more item */

static uint32_t
llm_array_frame(llm_run_t *r, const llm_array_t *a, const llm_cell_t *frame,
    uint32_t asked, uint32_t taken)
{
    uint32_t  n, y;

    n = frame->x + 1;

    if (a->max == LLM_GN_NO_MAX) {
        n = llm_min(n, llm_max(a->min, a->n_prefix));
    }

    y = llm_min(frame->y + asked, a->min_contains);

    return llm_run_cell(r, LLM_CELL_FRAME, frame->node, frame->parent, n, y,
                        taken);
}


/* ---- unique items ---- */

/* begins those scalars that may follow; returns their number */

static uint32_t
llm_array_scalars(llm_run_t *r, const llm_array_t *a, uint32_t frame,
    int begin)
{
    int                raw;
    uint32_t           i, n, state, node, taken;
    llm_rx_t           rx;
    const llm_node_t  *x;

    n = 0;
    taken = r->cells.data[frame].z;

    for (i = 0; i < a->n_scalars; i++) {
        node = r->g->kids.data[a->scalars + i];
        x = &r->g->nodes.data[node];

        if (x->kind == LLM_NODE_TEXT) {
            state = 0;

            if (!llm_taken_allows(r, taken, r->g->text.data + x->a, x->b)) {
                continue;
            }

        } else {
            raw = x->kind == LLM_NODE_REGEX;
            rx = llm_taken_rest(r, taken, x->a, raw);
            state = rx == LLM_RX_NONE ? LLM_LEX_DEAD
                    : llm_lex_start(&r->lexer, rx,
                                    raw ? LLM_LEX_RAW : LLM_LEX_QUOTE);

            if (state == LLM_LEX_DEAD) {
                continue;
            }
        }

        n++;

        if (begin) {
            llm_run_add(r, llm_run_cell(r, LLM_CELL_SCALAR,
                                        r->cells.data[frame].node, frame,
                                        state, LLM_TEXT_EMPTY, node));
        }
    }

    return n;
}


void
llm_array_scalar(llm_run_t *r, const llm_cell_t *c, uint32_t text)
{
    int                 raw;
    char               *p;
    uint32_t            i, taken;
    llm_cell_t          frame;
    const llm_node_t   *x;

    frame = r->cells.data[c->parent];
    x = &r->g->nodes.data[c->z];
    raw = x->kind == LLM_NODE_REGEX;

    if (x->kind == LLM_NODE_TEXT) {
        p = r->g->text.data + x->a;
        raw = x->b < 2 || p[0] != '"';
        text = LLM_TEXT_EMPTY;

        for (i = raw ? 0 : 1; i < x->b - (raw ? 0 : 1); i++) {
            text = llm_run_text(r, text, (uint8_t) p[i]);
        }
    }

    taken = llm_taken_add(r, frame.z, text, raw);
    llm_run_value_end(r, llm_array_frame(r, llm_array_of(r, c->node), &frame,
                                         0, taken));
}


static void
llm_array_scalar_byte(llm_run_t *r, const llm_cell_t *c, uint8_t byte)
{
    uint32_t           next, text;
    const uint32_t    *row;
    const llm_node_t  *x;

    x = &r->g->nodes.data[c->z];

    if (x->kind == LLM_NODE_TEXT) {
        if ((uint8_t) r->g->text.data[x->a + c->x] != byte) {
            return;
        }

        if (c->x + 1 == x->b) {
            llm_array_scalar(r, c, LLM_TEXT_EMPTY);
            return;
        }

        llm_run_add(r, llm_run_cell(r, LLM_CELL_SCALAR, c->node, c->parent,
                                    c->x + 1, 0, c->z));
        return;
    }

    row = llm_lex_row(&r->lexer, c->x);
    next = row ? row[byte] : LLM_LEX_DEAD;

    if (next == LLM_LEX_DEAD) {
        return;
    }

    if (next == LLM_LEX_FINAL) {
        llm_array_scalar(r, c, c->y);
        return;
    }

    /* a string's text is what is inside its quotes */

    text = r->lexer.states.data[c->x].mode == LLM_LEX_QUOTE
           ? LLM_TEXT_EMPTY : llm_run_text(r, c->y, byte);

    llm_run_add(r, llm_run_cell(r, LLM_CELL_SCALAR, c->node, c->parent, next,
                                text, c->z));

    if (r->lexer.states.data[next].accepts) {
        llm_array_scalar(r, c, text);
    }
}


/* ---- items ---- */

/* begins the next item: the white space before it, and the items that may
   follow */

static void
llm_array_items(llm_run_t *r, const llm_array_t *a, uint32_t id,
    uint32_t space, uint32_t first)
{
    llm_gn_t    node;
    llm_cell_t  frame;

    frame = r->cells.data[id];

    llm_run_add(r, llm_run_cell(r, LLM_CELL_SPACE, frame.node, id, space,
                                first, 0));

    if (a->unique) {
        if (llm_array_may(a, &frame, 0)) {
            (void) llm_array_scalars(r, a, id, 1);
        }

        return;
    }

    node = frame.x < a->n_prefix ? r->g->kids.data[a->prefix + frame.x]
                                 : a->items;

    if (llm_array_may(a, &frame, 0)) {
        llm_run_begin(r, llm_array_frame(r, a, &frame, 0, frame.z), node);
    }

    if (frame.x >= a->n_prefix && frame.y < a->min_contains
        && llm_array_may(a, &frame, 1))
    {
        llm_run_begin(r, llm_array_frame(r, a, &frame, 1, frame.z),
                      a->contains);
    }
}


static int
llm_array_may_go_on(llm_run_t *r, const llm_array_t *a, uint32_t id)
{
    uint32_t    asked;
    llm_cell_t  frame;

    frame = r->cells.data[id];
    asked = frame.x >= a->n_prefix && llm_array_missing(a, &frame) > 0;

    if (!llm_array_may(a, &frame, 0)
        && !(asked && llm_array_may(a, &frame, 1)))
    {
        return 0;
    }

    return !a->unique || llm_array_scalars(r, a, id, 0) > 0;
}


static void
llm_array_after_byte(llm_run_t *r, const llm_cell_t *c, uint8_t byte)
{
    uint32_t            next;
    llm_cell_t          frame;
    const llm_array_t  *a;

    a = llm_array_of(r, c->node);
    frame = r->cells.data[c->parent];

    if (byte == ',') {
        if (c->x == 1 && llm_array_may_go_on(r, a, c->parent)) {
            llm_array_items(r, a, c->parent, 1, 0);
        }

        return;
    }

    if (!llm_array_may_close(a, &frame)) {
        return;
    }

    next = llm_space_next(c->x, byte);

    if (next) {
        llm_run_add(r, llm_run_cell(r, LLM_CELL_AFTER, c->node, c->parent,
                                    next, 0, 0));

    } else if (byte == ']') {
        llm_run_end(r, frame.parent);
    }
}


void
llm_array_byte(llm_run_t *r, const llm_cell_t *c, uint8_t byte)
{
    uint32_t            frame, next;
    const llm_array_t  *a;

    a = llm_array_of(r, c->node);

    switch (c->kind) {

    case LLM_CELL_OPEN:
        if (byte == '[') {
            frame = llm_run_cell(r, LLM_CELL_FRAME, c->node, c->parent, 0, 0,
                                 LLM_TAKEN_NONE);
            llm_array_items(r, a, frame, 1, 1);
        }

        return;

    case LLM_CELL_SPACE:
        next = llm_space_next(c->x, byte);

        if (next) {
            llm_array_items(r, a, c->parent, next, c->y);

        } else if (byte == ']' && c->y
                   && llm_array_may_close(a, &r->cells.data[c->parent]))
        {
            llm_run_end(r, r->cells.data[c->parent].parent);
        }

        return;

    case LLM_CELL_SCALAR:
        llm_array_scalar_byte(r, c, byte);
        return;

    default:
        llm_array_after_byte(r, c, byte);
    }
}


void
llm_array_bytes(llm_run_t *r, const llm_cell_t *c, uint64_t *bytes)
{
    uint8_t            byte;
    uint32_t           i;
    const llm_node_t  *x;

    switch (c->kind) {

    case LLM_CELL_OPEN:
        llm_run_add_bytes(bytes, "[");
        return;

    case LLM_CELL_SPACE:
        llm_run_add_bytes(bytes, c->y ? " \n\t]" : " \n\t");
        return;

    case LLM_CELL_SCALAR:
        x = &r->g->nodes.data[c->z];

        if (x->kind == LLM_NODE_TEXT) {
            byte = (uint8_t) r->g->text.data[x->a + c->x];
            bytes[byte / 64] |= (uint64_t) 1 << byte % 64;

        } else if (llm_lex_row(&r->lexer, c->x)) {
            for (i = 0; i < 4; i++) {
                bytes[i] |= r->lexer.states.data[c->x].first[i];
            }
        }

        return;

    default:
        llm_run_add_bytes(bytes, " \n\t,]");
    }
}
