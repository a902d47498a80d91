/*
 * Objects of JSON, byte by byte: which keys may follow, and when the object
 * may end.
 *
 * Counts decide what may follow, so that each step leaves a way to the end:
 * there must be enough keys for the minimum, and room for the required ones.
 */

#include "engine/grammar/run.h"


static const llm_object_t *
llm_object_of(const llm_run_t *r, uint32_t node)
{
    return &r->g->objects.data[r->g->nodes.data[node].a];
}


static const llm_counts_t *
llm_object_counts(const llm_run_t *r, const llm_object_t *o, uint32_t i)
{
    return &r->g->counts.data[o->counts + i];
}


/* keys that others can still have, counted up to what the minimum needs */

static uint32_t
llm_object_keys_left(const llm_run_t *r, const llm_object_t *o,
    const llm_cell_t *frame)
{
    uint32_t  used;

    used = r->taken.data[frame->z].n;

    return o->n_keys > used ? o->n_keys - used : 0;
}


/* may the named property come next? */

static int
llm_object_may(const llm_run_t *r, const llm_object_t *o,
    const llm_cell_t *frame, uint32_t named)
{
    uint32_t             i;
    const llm_counts_t  *c;

    i = named - o->named;

    if (i < frame->x || i > llm_object_counts(r, o, frame->x)->next) {
        return 0;
    }

    c = llm_object_counts(r, o, i + 1);

    return (o->max == LLM_GN_NO_MAX || frame->y + 1 + c->required <= o->max)
           && (uint64_t) frame->y + 1 + c->live
              + llm_object_keys_left(r, o, frame) >= o->min;
}


static int
llm_object_may_any(const llm_run_t *r, const llm_object_t *o,
    const llm_cell_t *frame, uint32_t from, uint32_t to)
{
    uint32_t  i;

    for (i = from; i < to; i++) {
        if (llm_object_may(r, o, frame, r->g->by_key.data[i])) {
            return 1;
        }
    }

    return 0;
}


static int
llm_object_may_close(const llm_run_t *r, const llm_object_t *o,
    const llm_cell_t *frame)
{
    return frame->y >= o->min
           && llm_object_counts(r, o, frame->x)->required == 0;
}


/* the state of the lexer where a key of the k-th others begins, or none;
   without begin, any state if such a key may come */

static uint32_t
llm_object_other(llm_run_t *r, const llm_object_t *o, const llm_cell_t *frame,
    uint32_t k, int begin)
{
    llm_rx_t                rx;
    const llm_gn_others_t  *other;

    other = &r->g->others.data[o->others + k];

    if (llm_object_counts(r, o, frame->x)->required > 0
        || (o->max != LLM_GN_NO_MAX && frame->y >= o->max)
        || (frame->y < o->min
            && frame->y + llm_object_keys_left(r, o, frame) < o->min)
        || !r->g->nodes.data[other->value].live)
    {
        return LLM_LEX_DEAD;
    }

    rx = begin ? llm_taken_rest(r, frame->z, other->key, 0)
               : llm_taken_some(r, frame->z, other->key);

    return rx == LLM_RX_NONE
           ? LLM_LEX_DEAD : llm_lex_start(&r->lexer, rx, LLM_LEX_INSIDE);
}


static int
llm_object_may_go_on(llm_run_t *r, const llm_object_t *o,
    const llm_cell_t *frame)
{
    uint32_t  k;

    if (llm_object_may_any(r, o, frame, o->order, o->order + o->n_order)) {
        return 1;
    }

    for (k = 0; k < o->n_others; k++) {
        if (llm_object_other(r, o, frame, k, 0) != LLM_LEX_DEAD) {
            return 1;
        }
    }

    return 0;
}


/* ---- keys ---- */

/* begins the value after a key and its colon; frame: the object's frame before
   the key */

static void
llm_object_value(llm_run_t *r, const llm_object_t *o, const llm_cell_t *frame,
    uint32_t next, uint32_t taken, uint32_t value, int colon)
{
    uint32_t  cell, count;

    count = frame->y + 1;

    if (o->max == LLM_GN_NO_MAX) {
        count = llm_min(count, o->min);
    }

    cell = llm_run_cell(r, LLM_CELL_FRAME, frame->node, frame->parent, next,
                        count, taken);

    if (colon) {
        llm_run_add(r, llm_run_cell(r, LLM_CELL_COLON, frame->node, cell,
                                    value, 0, 0));
        return;
    }

    llm_run_add(r, llm_run_cell(r, LLM_CELL_VALUE, frame->node, cell, value,
                                0, 0));
    llm_run_begin(r, cell, value);
}


void
llm_object_key(llm_run_t *r, const llm_cell_t *c, uint32_t text)
{
    uint32_t             taken;
    llm_cell_t           frame;
    const llm_object_t  *o;

    o = llm_object_of(r, c->node);
    frame = r->cells.data[c->parent];
    taken = llm_taken_add(r, frame.z, text, 0);

    llm_object_value(r, o, &frame, o->n_named, taken,
                     r->g->others.data[o->others + c->z].value, 1);
}


static void
llm_object_key_byte(llm_run_t *r, const llm_cell_t *c, uint8_t byte)
{
    uint32_t         next;
    const uint32_t  *row;

    row = llm_lex_row(&r->lexer, c->x);
    next = row ? row[byte] : LLM_LEX_DEAD;

    if (next == LLM_LEX_FINAL) {
        llm_object_key(r, c, c->y);

    } else if (next != LLM_LEX_DEAD) {
        llm_run_add(r, llm_run_cell(r, LLM_CELL_KEY, c->node, c->parent, next,
                                    llm_run_text(r, c->y, byte), c->z));
    }
}


static uint8_t
llm_object_char(const llm_run_t *r, uint32_t i, uint32_t depth)
{
    const llm_named_t  *n;

    n = &r->g->named.data[r->g->by_key.data[i]];

    return (uint8_t) r->g->text.data[n->text + depth];
}


/* the first index in from .. to whose byte at depth is at least byte */

static uint32_t
llm_object_bound(const llm_run_t *r, uint32_t from, uint32_t to,
    uint32_t depth, uint32_t byte)
{
    uint32_t  mid;

    while (from < to) {
        mid = from + (to - from) / 2;

        if (llm_object_char(r, mid, depth) < byte) {
            from = mid + 1;

        } else {
            to = mid;
        }
    }

    return from;
}


static void
llm_object_named_byte(llm_run_t *r, const llm_cell_t *c, uint8_t byte)
{
    uint32_t             from, to, named;
    llm_cell_t           frame;
    const llm_named_t   *n;
    const llm_object_t  *o;

    o = llm_object_of(r, c->node);
    frame = r->cells.data[c->parent];
    from = llm_object_bound(r, c->x, c->y, c->z, byte);
    to = llm_object_bound(r, from, c->y, c->z, byte + 1u);

    if (!llm_object_may_any(r, o, &frame, from, to)) {
        return;
    }

    named = r->g->by_key.data[from];
    n = &r->g->named.data[named];

    if (n->len > c->z + 1) {
        llm_run_add(r, llm_run_cell(r, LLM_CELL_NAMED, c->node, c->parent,
                                    from, to, c->z + 1));
        return;
    }

    llm_object_value(r, o, &frame, named - o->named + 1, frame.z, n->value,
                     0);
}


/* handles the opening quote of a key */

static void
llm_object_quote(llm_run_t *r, const llm_cell_t *c, const llm_object_t *o,
    const llm_cell_t *frame)
{
    uint32_t  k, from, to, state;

    from = o->order;
    to = o->order + o->n_order;

    if (llm_object_may_any(r, o, frame, from, to)) {
        llm_run_add(r, llm_run_cell(r, LLM_CELL_NAMED, c->node, c->parent,
                                    from, to, 1));
    }

    for (k = 0; k < o->n_others; k++) {
        state = llm_object_other(r, o, frame, k, 1);

        if (state != LLM_LEX_DEAD) {
            llm_run_add(r, llm_run_cell(r, LLM_CELL_KEY, c->node, c->parent,
                                        state, LLM_TEXT_EMPTY, k));
        }
    }
}


/* ---- the rest ---- */

static void
llm_object_space_byte(llm_run_t *r, const llm_cell_t *c, uint8_t byte)
{
    uint32_t             next;
    llm_cell_t           frame;
    const llm_object_t  *o;

    o = llm_object_of(r, c->node);
    frame = r->cells.data[c->parent];
    next = llm_space_next(c->x, byte);

    if (next) {
        llm_run_add(r, llm_run_cell(r, LLM_CELL_SPACE, c->node, c->parent,
                                    next, c->y, 0));

    } else if (byte == '"') {
        llm_object_quote(r, c, o, &frame);

    } else if (byte == '}' && c->y && llm_object_may_close(r, o, &frame)) {
        llm_run_end(r, frame.parent);
    }
}


static void
llm_object_after_byte(llm_run_t *r, const llm_cell_t *c, uint8_t byte)
{
    uint32_t             next;
    llm_cell_t           frame;
    const llm_object_t  *o;

    o = llm_object_of(r, c->node);
    frame = r->cells.data[c->parent];

    if (byte == ',') {
        if (c->x == 1 && llm_object_may_go_on(r, o, &frame)) {
            llm_run_add(r, llm_run_cell(r, LLM_CELL_SPACE, c->node,
                                        c->parent, 1, 0, 0));
        }

        return;
    }

    if (!llm_object_may_close(r, o, &frame)) {
        return;
    }

    next = llm_space_next(c->x, byte);

    if (next) {
        llm_run_add(r, llm_run_cell(r, LLM_CELL_AFTER, c->node, c->parent,
                                    next, 0, 0));

    } else if (byte == '}') {
        llm_run_end(r, frame.parent);
    }
}


void
llm_object_byte(llm_run_t *r, const llm_cell_t *c, uint8_t byte)
{
    uint32_t  frame;

    switch (c->kind) {

    case LLM_CELL_OPEN:
        if (byte == '{') {
            frame = llm_run_cell(r, LLM_CELL_FRAME, c->node, c->parent, 0, 0,
                                 LLM_TAKEN_NONE);
            llm_run_add(r, llm_run_cell(r, LLM_CELL_SPACE, c->node, frame, 1,
                                        1, 0));
        }

        return;

    case LLM_CELL_SPACE:
        llm_object_space_byte(r, c, byte);
        return;

    case LLM_CELL_NAMED:
        llm_object_named_byte(r, c, byte);
        return;

    case LLM_CELL_KEY:
        llm_object_key_byte(r, c, byte);
        return;

    case LLM_CELL_COLON:
        if (byte == ':') {
            llm_run_add(r, llm_run_cell(r, LLM_CELL_VALUE, c->node, c->parent,
                                        c->x, 0, 0));
            llm_run_begin(r, c->parent, c->x);
        }

        return;

    case LLM_CELL_VALUE:
        if (byte == ' ') {
            llm_run_begin(r, c->parent, c->x);
        }

        return;

    default:
        llm_object_after_byte(r, c, byte);
    }
}


void
llm_object_bytes(llm_run_t *r, const llm_cell_t *c, uint64_t *bytes)
{
    uint32_t  i;
    uint8_t   byte;

    switch (c->kind) {

    case LLM_CELL_OPEN:
        llm_run_add_bytes(bytes, "{");
        return;

    case LLM_CELL_SPACE:
        llm_run_add_bytes(bytes, c->y ? " \n\t\"}" : " \n\t\"");
        return;

    case LLM_CELL_NAMED:
        for (i = c->x; i < c->y; i++) {
            byte = llm_object_char(r, i, c->z);
            bytes[byte / 64] |= (uint64_t) 1 << byte % 64;
        }

        return;

    case LLM_CELL_COLON:
        llm_run_add_bytes(bytes, ":");
        return;

    case LLM_CELL_VALUE:
        llm_run_add_bytes(bytes, " ");
        return;

    default:
        llm_run_add_bytes(bytes, " \n\t,}");
    }
}
