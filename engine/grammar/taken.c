/*
 * Keys of an object and items of an array that must not be repeated; see
 * run.h.
 */

#include "engine/grammar/run.h"
#include "engine/grammar/values.h"


static uint32_t
llm_taken_intern(llm_run_t *r, uint32_t before, llm_rx_t one, uint32_t raw,
    uint32_t any)
{
    uint32_t      hash, i, id;
    llm_taken_t  *t, old;

    hash = llm_hash(llm_hash(before, one), raw << 1 | any);

    for (i = hash;
         (id = llm_table_next(&r->taken_table, hash, &i)) != UINT32_MAX; )
    {
        t = &r->taken.data[id];

        if (t->before == before && t->one == one && t->raw == raw
            && t->any == any)
        {
            return id;
        }
    }

    id = r->taken.n;

    if (llm_vec_more(&r->taken, 1) != LLM_OK
        || llm_table_add(&r->taken_table, hash, id) != LLM_OK)
    {
        r->failed = 1;
        return before;
    }

    old = r->taken.data[before];
    t = &r->taken.data[r->taken.n++];
    t->before = before;
    t->one = one;
    t->raw = raw;
    t->any = any;
    t->n = old.n + 1;
    t->strings = raw ? old.strings : llm_rx_or(r->g->pool, old.strings, one);
    t->raws = raw ? llm_rx_or(r->g->pool, old.raws, one) : old.raws;

    return id;
}


uint32_t
llm_taken_add(llm_run_t *r, uint32_t taken, uint32_t text, int raw)
{
    llm_rx_t   one;
    llm_buf_t  b;

    if (text == LLM_TEXT_ANY) {
        return llm_taken_intern(r, taken, LLM_RX_NONE, (uint32_t) raw, 1);
    }

    llm_buf_init(&b, 0);
    llm_run_spell(r, text, &b);

    one = raw ? llm_value_raw(r->g->pool, b.data, b.len)
              : llm_value_string(r->g->pool, b.data, b.len);
    llm_buf_free(&b);

    return llm_taken_intern(r, taken, one, (uint32_t) raw,
                            r->taken.data[taken].any);
}


llm_rx_t
llm_taken_rest(llm_run_t *r, uint32_t taken, llm_rx_t rx, int raw)
{
    llm_rx_t            without;
    const llm_taken_t  *t;

    t = &r->taken.data[taken];

    if (t->any) {
        r->unsure = 1;
        return LLM_RX_NONE;
    }

    without = raw ? t->raws : t->strings;

    if (without != LLM_RX_NONE) {
        rx = llm_rx_and(r->g->pool, rx, llm_rx_compl(r->g->pool, without));
    }

    return llm_rx_alive(r->g->pool, rx) ? rx : LLM_RX_NONE;
}


llm_rx_t
llm_taken_some(llm_run_t *r, uint32_t taken, llm_rx_t rx)
{
    /* a finite number of texts is removed from infinitely many, so some are
       left */

    return llm_rx_is_open(r->g->pool, rx) ? rx
                                          : llm_taken_rest(r, taken, rx, 0);
}


int
llm_taken_allows(llm_run_t *r, uint32_t taken, const char *text, size_t len)
{
    llm_rx_t            rx;
    const llm_taken_t  *t;

    t = &r->taken.data[taken];

    if (t->any) {
        r->unsure = 1;
        return 0;
    }

    if (len < 2 || text[0] != '"') {
        return !llm_rx_matches(r->g->pool, t->raws, text, len);
    }

    rx = llm_value_string(r->g->pool, text + 1, len - 2);

    return llm_rx_and(r->g->pool, rx, t->strings) == LLM_RX_NONE;
}
