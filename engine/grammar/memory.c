/*
 * The memory of a grammar, which grows with the texts that it sees.  It is
 * estimated from the numbers of elements, because arrays keep their room when
 * they are emptied.
 */

#include "engine/grammar/gram.h"

#define llm_vec_memory(v)  ((v)->n * sizeof(*(v)->data))


static size_t
llm_table_memory(const llm_table_t *t)
{
    return t->slot ? ((size_t) t->mask + 1) * sizeof(*t->slot) : 0;
}


static size_t
llm_rx_memory(const llm_rx_pool_t *p)
{
    return llm_vec_memory(&p->nodes) + llm_vec_memory(&p->arcs)
           + llm_vec_memory(&p->kids) + llm_vec_memory(&p->rows)
           + llm_vec_memory(&p->seen) + llm_table_memory(&p->table)
           + p->n_rows * (256 * sizeof(llm_rx_t));
}


size_t
llm_build_memory(const llm_gram_build_t *b)
{
    return sizeof(*b) + llm_rx_memory(b->pool) + llm_vec_memory(&b->nodes)
           + llm_vec_memory(&b->kids) + llm_vec_memory(&b->named)
           + llm_vec_memory(&b->others) + llm_vec_memory(&b->objects)
           + llm_vec_memory(&b->arrays) + llm_vec_memory(&b->by_key)
           + llm_vec_memory(&b->counts) + b->text.cap;
}


size_t
llm_run_memory(const llm_run_t *r)
{
    size_t  n;

    n = llm_vec_memory(&r->lexer.states) + llm_table_memory(&r->lexer.table)
        + r->lexer.n_rows * (256 * sizeof(uint32_t))
        + llm_vec_memory(&r->lex_masks) + r->lex_mask_bytes
        + llm_vec_memory(&r->slack);

    n += llm_vec_memory(&r->cells) + llm_vec_memory(&r->begun)
         + llm_vec_memory(&r->ended) + llm_table_memory(&r->cell_table);

    n += llm_vec_memory(&r->sets) + llm_vec_memory(&r->members)
         + llm_table_memory(&r->set_table);

    n += llm_vec_memory(&r->moves) + llm_vec_memory(&r->moved)
         + llm_table_memory(&r->move_table);

    n += llm_vec_memory(&r->texts) + llm_table_memory(&r->text_table)
         + llm_vec_memory(&r->taken) + llm_table_memory(&r->taken_table);

    return n;
}
