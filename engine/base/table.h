/*
 * Containers for numbered items: growing arrays, and a hash table from hashes
 * to the numbers of items, for giving equal items the same number.
 *
 * A table stores only numbers and hashes; the caller compares the items.  The
 * struct that has a table or an array owns its memory and frees it.
 */

#ifndef LLM_TABLE_H
#define LLM_TABLE_H

#include "engine/base/base.h"

typedef struct {
    uint64_t    *slot;                  /* hash << 32 | number + 1; 0: free */
    uint32_t     mask;
    uint32_t     n;
} llm_table_t;


static inline uint32_t
llm_hash(uint32_t h, uint32_t v)
{
    uint64_t  x;

    x = ((uint64_t) h << 32 | v) * 0x9e3779b97f4a7c15u;

    return (uint32_t) (x >> 32) ^ (uint32_t) x;
}


/*
 * Returns the next number with this hash; UINT32_MAX: no more.  *i is the
 * position of the search; the caller sets it to the hash at first.
 */

static inline uint32_t
llm_table_next(const llm_table_t *t, uint32_t hash, uint32_t *i)
{
    uint64_t  s;

    if (t->slot == NULL) {
        return UINT32_MAX;
    }

    for ( ;; ) {
        s = t->slot[*i & t->mask];

        if (s == 0) {
            return UINT32_MAX;
        }

        (*i)++;

        if ((uint32_t) (s >> 32) == hash) {
            return (uint32_t) s - 1;
        }
    }
}


/* LLM_OK, or LLM_ERROR if out of memory; number < UINT32_MAX */

static inline int
llm_table_add(llm_table_t *t, uint32_t hash, uint32_t number)
{
    uint32_t     i, k, size;
    uint64_t    *slot;

    if (t->slot == NULL || t->n >= (t->mask >> 1)) {
        size = t->slot ? (t->mask + 1) * 2 : 64;

        slot = size ? calloc(size, sizeof(uint64_t)) : NULL;
        if (slot == NULL) {
            return LLM_ERROR;
        }

        for (i = 0; t->slot && i <= t->mask; i++) {
            if (t->slot[i]) {
                k = (uint32_t) (t->slot[i] >> 32);

                while (slot[k & (size - 1)]) {
                    k++;
                }

                slot[k & (size - 1)] = t->slot[i];
            }
        }

        free(t->slot);
        t->slot = slot;
        t->mask = size - 1;
    }

    for (i = hash; t->slot[i & t->mask]; i++) { /* void */ }

    t->slot[i & t->mask] = (uint64_t) hash << 32 | (number + 1);
    t->n++;

    return LLM_OK;
}


static inline void
llm_table_clear(llm_table_t *t)
{
    free(t->slot);
    memset(t, 0, sizeof(*t));
}


/*
 * Makes room for `more` elements after the n of an array; size: bytes of one.
 * LLM_ERROR: out of memory, or beyond 2^31 - 1 elements.
 */

static inline int
llm_vec_room(void **data, uint32_t n, uint32_t *cap, uint32_t more,
    size_t size)
{
    void      *p;
    uint64_t   want;

    if (*cap - n >= more) {
        return LLM_OK;
    }

    want = llm_max((uint64_t) n + more, (uint64_t) *cap * 2);
    want = llm_max(want, 16);

    if (want > INT32_MAX) {
        return LLM_ERROR;
    }

    p = realloc(*data, want * size);
    if (p == NULL) {
        return LLM_ERROR;
    }

    *data = p;
    *cap = (uint32_t) want;

    return LLM_OK;
}

#define llm_vec(type)  struct { type *data; uint32_t n; uint32_t cap; }
#define llm_vec_more(v, more)                                                \
    llm_vec_room((void **) &(v)->data, (v)->n, &(v)->cap, (more),            \
                 sizeof(*(v)->data))

#endif /* LLM_TABLE_H */
