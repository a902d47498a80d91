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
    int32_t       tokens[MAX_LEN * LLM_KV_PAGE];
} seq_t;

/* what is written in a page: the whole prefix that led to it */
typedef struct {
    llm_salt_t    salt;
    uint32_t      n;
    int32_t       tokens[MAX_LEN * LLM_KV_PAGE];
} content_t;

static seq_t      seqs[N_SEQS];


/* a new sequence; few different blocks, so that prefixes meet often */

static inline void
come(seq_t *s)
{
    int32_t   kind;
    uint32_t  i;

    memset(s, 0, sizeof(*s));
    s->live = 1;
    s->salt.tenant = rnd(2);
    kind = 0;

    for (i = 0; i < MAX_LEN * LLM_KV_PAGE; i++) {
        if (i % LLM_KV_PAGE == 0) {
            kind = (int32_t) rnd(3);
        }

        s->tokens[i] = kind * 100 + (int32_t) (i % LLM_KV_PAGE);
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
    memcpy(c->tokens, s->tokens, sizeof(c->tokens));
}


static inline int
same_prefix(const content_t *c, const seq_t *s, uint32_t n)
{
    return c->n == n && c->salt.tenant == s->salt.tenant
           && c->salt.salt == s->salt.salt
           && memcmp(c->tokens, s->tokens,
                     n * LLM_KV_PAGE * sizeof(int32_t)) == 0;
}


static inline uint32_t
parent_of(const seq_t *s, uint32_t i)
{
    return i ? s->page[i - 1] : LLM_PAGE_NONE;
}

#endif /* LLM_T_PAGES_RIG_H */
