/*
 * Random sequences that come and go, for tests of the prefix tree, and what
 * is written in a page.
 */

#ifndef LLM_T_PAGES_RIG_H
#define LLM_T_PAGES_RIG_H

#include "engine/sched/pages.h"
#include "t/unit/random.h"
#include "t/unit/tap.h"

#define N_SEQS    12
#define MAX_LEN   8                     /* pages of a sequence */

typedef struct {
    int           live;
    uint32_t      n;
    uint32_t      n_tree;
    uint32_t      page[MAX_LEN];
    llm_salt_t    salt;
    uint64_t      keys[MAX_LEN * LLM_KV_PAGE];
} seq_t;

/* what is written in a page: the whole prefix that led to it */
typedef struct {
    llm_salt_t    salt;
    uint32_t      n;
    uint64_t      keys[MAX_LEN * LLM_KV_PAGE];
} content_t;

static seq_t      seqs[N_SEQS];


/* a new sequence; few different blocks, so that prefixes meet often */

static inline void
come(seq_t *s)
{
    uint64_t  kind;
    uint32_t  i;

    memset(s, 0, sizeof(*s));
    s->live = 1;
    s->salt.tenant = rnd(2);
    kind = 0;

    for (i = 0; i < MAX_LEN * LLM_KV_PAGE; i++) {
        if (i % LLM_KV_PAGE == 0) {
            kind = rnd(3);
        }

        s->keys[i] = kind * 100 + (uint64_t) (i % LLM_KV_PAGE);
    }
}


static inline uint32_t
alloc(llm_pages_t *p)
{
    uint32_t  evicted;

    return llm_pages_alloc(p, &evicted);
}


/* s, as long as it is, is written */

static inline void
note(content_t *c, const seq_t *s)
{
    c->salt = s->salt;
    c->n = s->n;
    memcpy(c->keys, s->keys, sizeof(c->keys));
}


static inline int
same_prefix(const content_t *c, const seq_t *s, uint32_t n)
{
    return c->n == n && c->salt.tenant == s->salt.tenant
           && c->salt.salt == s->salt.salt
           && memcmp(c->keys, s->keys,
                     n * LLM_KV_PAGE * sizeof(uint64_t)) == 0;
}


static inline uint32_t
parent_of(const seq_t *s, uint32_t i)
{
    return i ? s->page[i - 1] : LLM_PAGE_NONE;
}

#endif /* LLM_T_PAGES_RIG_H */
