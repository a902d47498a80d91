/*
 * Cells, sets and texts, and the list of work while a set is being made; see
 * run.h.
 */

#include "engine/grammar/run.h"

/* bounds of the lexer's states and of their rows, a kilobyte each.  A
   character of a text whose length counts takes one row and about ten states */
#define LLM_RUN_MAX_LEX   (1u << 18)
#define LLM_RUN_MAX_ROWS  (1u << 15)


static void
llm_run_grew(llm_run_t *r, uint32_t n)
{
    r->full |= n >= LLM_RUN_MAX;
}


uint32_t
llm_run_cell(llm_run_t *r, llm_cell_kind_t kind, uint32_t node,
    uint32_t parent, uint32_t x, uint32_t y, uint32_t z)
{
    uint32_t     hash, i, id;
    llm_cell_t  *c;

    hash = llm_hash(llm_hash(llm_hash(kind, node), parent), x);
    hash = llm_hash(llm_hash(hash, y), z);

    for (i = hash;
         (id = llm_table_next(&r->cell_table, hash, &i)) != UINT32_MAX; )
    {
        c = &r->cells.data[id];

        if (c->kind == kind && c->node == node && c->parent == parent
            && c->x == x && c->y == y && c->z == z)
        {
            return id;
        }
    }

    id = r->cells.n;

    if (llm_vec_more(&r->cells, 1) != LLM_OK
        || llm_vec_more(&r->begun, 1) != LLM_OK
        || llm_vec_more(&r->ended, 1) != LLM_OK
        || llm_table_add(&r->cell_table, hash, id) != LLM_OK)
    {
        r->failed = 1;
        return LLM_ID_UNSURE;
    }

    c = &r->cells.data[r->cells.n++];
    c->kind = kind;
    c->node = node;
    c->parent = parent;
    c->x = x;
    c->y = y;
    c->z = z;
    r->begun.data[r->begun.n++] = 0;
    r->ended.data[r->ended.n++] = 0;
    llm_run_grew(r, id);

    return id;
}


/* ---- texts ---- */

uint32_t
llm_run_text(llm_run_t *r, uint32_t before, uint8_t byte)
{
    uint32_t     hash, i, id;
    llm_text_t  *t;

    if (before == LLM_TEXT_ANY) {
        return before;
    }

    hash = llm_hash(before, byte);

    for (i = hash;
         (id = llm_table_next(&r->text_table, hash, &i)) != UINT32_MAX; )
    {
        t = &r->texts.data[id];

        if (t->before == before && t->byte == byte) {
            return id;
        }
    }

    id = r->texts.n;

    if (llm_vec_more(&r->texts, 1) != LLM_OK
        || llm_table_add(&r->text_table, hash, id) != LLM_OK)
    {
        r->failed = 1;
        return LLM_TEXT_ANY;
    }

    t = &r->texts.data[r->texts.n++];
    t->before = before;
    t->byte = byte;
    llm_run_grew(r, id);

    return id;
}


void
llm_run_spell(llm_run_t *r, uint32_t text, llm_buf_t *out)
{
    char      *p;
    uint32_t   t, n;

    n = 0;

    for (t = text; t > LLM_TEXT_ANY; t = r->texts.data[t].before) {
        n++;
    }

    p = llm_buf_reserve(out, n);
    if (p == NULL) {
        r->failed = 1;
        return;
    }

    out->len += n;
    p[n] = '\0';

    for (t = text; t > LLM_TEXT_ANY; t = r->texts.data[t].before) {
        p[--n] = (char) r->texts.data[t].byte;
    }
}


/* ---- white space ---- */

uint32_t
llm_space_next(uint32_t space, uint8_t byte)
{
    /* 1: nothing yet; 2: a space; 3 and more: a line feed and space - 3
       characters */

    if (space == 1) {
        return byte == ' ' ? 2 : byte == '\n' ? 3 : 0;
    }

    return space >= 3 && space < 3 + LLM_RUN_MAX_INDENT
           && (byte == ' ' || byte == '\t') ? space + 1 : 0;
}


void
llm_run_add_bytes(uint64_t *bytes, const char *chars)
{
    uint8_t  c;

    while ((c = (uint8_t) *chars++) != 0) {
        bytes[c / 64] |= (uint64_t) 1 << c % 64;
    }
}


/* ---- closures ---- */

void
llm_run_open(llm_run_t *r)
{
    r->closure++;
    r->work.n = 0;
    r->out.n = 0;
    r->unsure = 0;
}


void
llm_run_add(llm_run_t *r, uint32_t cell)
{
    if (r->begun.data[cell] == r->closure) {
        return;
    }

    r->begun.data[cell] = r->closure;

    if (r->out.n >= LLM_RUN_MAX_CELLS || llm_vec_more(&r->out, 1) != LLM_OK) {
        r->failed = 1;
        return;
    }

    r->out.data[r->out.n++] = cell;
}


void
llm_run_begin(llm_run_t *r, uint32_t parent, uint32_t node)
{
    if (llm_vec_more(&r->work, 1) != LLM_OK) {
        r->failed = 1;
        return;
    }

    r->work.data[r->work.n].cell = parent;
    r->work.data[r->work.n++].node = node;
}


void
llm_run_end(llm_run_t *r, uint32_t cell)
{
    llm_run_begin(r, cell, UINT32_MAX);
}


void
llm_run_value_end(llm_run_t *r, uint32_t frame)
{
    llm_run_add(r, llm_run_cell(r, LLM_CELL_AFTER, r->cells.data[frame].node,
                                frame, 1, 0, 0));
}


static int
llm_run_compare(const void *a, const void *b)
{
    uint32_t  x, y;

    x = *(const uint32_t *) a;
    y = *(const uint32_t *) b;

    return x < y ? -1 : x > y;
}


static uint32_t
llm_run_set(llm_run_t *r)
{
    uint32_t    hash, i, id, n;
    llm_set_t  *s;

    n = r->out.n;
    hash = n;

    for (i = 0; i < n; i++) {
        hash = llm_hash(hash, r->out.data[i]);
    }

    for (i = hash;
         (id = llm_table_next(&r->set_table, hash, &i)) != UINT32_MAX; )
    {
        s = &r->sets.data[id];

        if (s->n == n && memcmp(&r->members.data[s->first], r->out.data,
                                n * sizeof(uint32_t)) == 0)
        {
            return id;
        }
    }

    id = r->sets.n;

    if (llm_vec_more(&r->sets, 1) != LLM_OK
        || llm_vec_more(&r->members, n) != LLM_OK
        || llm_table_add(&r->set_table, hash, id) != LLM_OK)
    {
        r->failed = 1;
        return LLM_SET_NONE;
    }

    s = &r->sets.data[r->sets.n++];
    memset(s, 0, sizeof(*s));
    s->first = r->members.n;
    s->n = n;
    s->unsure = n > 0 && (r->out.data[0] == LLM_ID_UNSURE
                          || (n > 1 && r->out.data[1] == LLM_ID_UNSURE));
    memcpy(&r->members.data[s->first], r->out.data, n * sizeof(uint32_t));
    r->members.n += n;
    llm_run_grew(r, r->members.n);

    return id;
}


uint32_t
llm_run_close(llm_run_t *r)
{
    if (r->unsure) {
        llm_run_add(r, LLM_ID_UNSURE);
    }

    if (r->failed || r->out.n == 0) {
        return LLM_SET_NONE;
    }

    if (r->out.n > 1) {
        qsort(r->out.data, r->out.n, sizeof(uint32_t), llm_run_compare);
    }

    return llm_run_set(r);
}


/* ---- the run ---- */

static int
llm_run_first(llm_run_t *r)
{
    if (llm_lex_init(&r->lexer, r->g->pool, LLM_RUN_MAX_LEX,
                     LLM_RUN_MAX_ROWS)
        != LLM_OK
        || llm_vec_more(&r->sets, 1) != LLM_OK
        || llm_vec_more(&r->texts, 2) != LLM_OK
        || llm_vec_more(&r->taken, 1) != LLM_OK)
    {
        return LLM_ERROR;
    }

    memset(r->sets.data, 0, sizeof(llm_set_t));
    memset(r->texts.data, 0, 2 * sizeof(llm_text_t));
    memset(r->taken.data, 0, sizeof(llm_taken_t));
    r->sets.n = 1;
    r->texts.n = 2;
    r->taken.n = 1;

    (void) llm_run_cell(r, LLM_CELL_END, 0, 0, 0, 0, 0);
    (void) llm_run_cell(r, LLM_CELL_UNSURE, 0, 0, 0, 0, 0);

    return r->failed ? LLM_ERROR : LLM_OK;
}


int
llm_run_init(llm_run_t *r, llm_gram_build_t *g)
{
    memset(r, 0, sizeof(*r));
    r->g = g;
    llm_rx_mark(g->pool, &r->mark);

    return llm_run_first(r);
}


void
llm_run_drop_masks(llm_run_t *r)
{
    uint32_t         i;
    llm_lex_mask_t  *m;

    for (i = 0; i < r->lex_masks.n; i++) {
        m = r->lex_masks.data[i];

        if (m) {
            free(m->own);
            free(m->ends);
            free(m);
            r->lex_masks.data[i] = NULL;
        }
    }

    r->n_lex_masks = 0;
    r->lex_mask_bytes = 0;
}


int
llm_run_clear(llm_run_t *r)
{
    llm_run_drop_masks(r);
    r->lex_masks.n = 0;
    r->slack.n = 0;
    llm_table_clear(&r->cell_table);
    llm_table_clear(&r->set_table);
    llm_table_clear(&r->move_table);
    llm_table_clear(&r->text_table);
    llm_table_clear(&r->taken_table);
    llm_lex_free(&r->lexer);

    r->cells.n = 0;
    r->begun.n = 0;
    r->ended.n = 0;
    r->sets.n = 0;
    r->members.n = 0;
    r->moves.n = 0;
    r->moved.n = 0;
    r->texts.n = 0;
    r->taken.n = 0;
    r->failed = 0;
    r->full = 0;

    if (llm_rx_reset(r->g->pool, &r->mark) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_run_first(r);
}


void
llm_run_free(llm_run_t *r)
{
    llm_run_drop_masks(r);
    free(r->lex_masks.data);
    free(r->slack.data);
    llm_table_clear(&r->cell_table);
    llm_table_clear(&r->set_table);
    llm_table_clear(&r->move_table);
    llm_table_clear(&r->text_table);
    llm_table_clear(&r->taken_table);
    llm_lex_free(&r->lexer);

    free(r->cells.data);
    free(r->begun.data);
    free(r->ended.data);
    free(r->sets.data);
    free(r->members.data);
    free(r->moves.data);
    free(r->moved.data);
    free(r->texts.data);
    free(r->taken.data);
    free(r->work.data);
    free(r->out.data);
}
