/*
 * The tenants' shares; see shares.h.
 */

#include "engine/sched/shares.h"


void
llm_shares_init(llm_shares_t *s, size_t size)
{
    memset(s, 0, sizeof(*s));
    s->size = size;
}


void
llm_shares_free(llm_shares_t *s)
{
    uint32_t      i;
    llm_share_t  *t, *next;

    for (i = 0; i < LLM_SHARES_BUCKETS; i++) {
        for (t = s->buckets[i]; t; t = next) {
            next = t->chain;
            free(t);
        }
    }

    memset(s, 0, sizeof(*s));
}


/* the least virtual time of tenants with requests; if there are none, the time
   at which the last one stopped */

static uint64_t
llm_shares_time(const llm_shares_t *s)
{
    uint32_t            i;
    uint64_t            least;
    const llm_share_t  *t;

    if (s->n_active == 0) {
        return s->time;
    }

    least = UINT64_MAX;

    for (i = 0; i < LLM_SHARES_BUCKETS; i++) {
        for (t = s->buckets[i]; t; t = t->chain) {
            if (t->n_reqs) {
                least = llm_min(least, t->time);
            }
        }
    }

    return least;
}


/*
 * Forgets tenants without requests whose virtual time is not ahead of now, at
 * which they would start again anyway.  If there are still too many, forgets
 * all tenants without requests.
 */

static void
llm_shares_forget(llm_shares_t *s, uint64_t now)
{
    uint32_t      i;
    llm_share_t  *t, **link;

    for (i = 0; i < LLM_SHARES_BUCKETS; i++) {
        link = &s->buckets[i];

        while ((t = *link) != NULL) {
            if (t->n_reqs == 0
                && (t->time <= now || s->n > LLM_SHARES_MOST))
            {
                *link = t->chain;
                free(t);
                s->n--;
                continue;
            }

            link = &t->chain;
        }
    }
}


static uint32_t
llm_shares_bucket(uint64_t id)
{
    return (uint32_t) ((id * 0x9e3779b97f4a7c15ull) >> 54);
}


llm_share_t *
llm_shares_find(const llm_shares_t *s, uint64_t id)
{
    llm_share_t  *t;

    for (t = s->buckets[llm_shares_bucket(id)];
         t && t->id != id;
         t = t->chain)
    { /* void */ }

    return t;
}


uint64_t
llm_shares_begin(const llm_shares_t *s, const llm_share_t *t)
{
    uint64_t  least;

    if (t && t->n_reqs) {
        return t->time;
    }

    least = llm_shares_time(s);

    return t ? llm_max(t->time, least) : least;
}


llm_share_t *
llm_shares_enter(llm_shares_t *s, uint64_t id, uint64_t weight)
{
    llm_share_t  *t, **bucket;

    t = llm_shares_find(s, id);

    if (t == NULL) {
        bucket = &s->buckets[llm_shares_bucket(id)];

        if (s->n >= LLM_SHARES_MOST) {
            llm_shares_forget(s, llm_shares_time(s));
        }

        t = calloc(1, s->size);
        if (t == NULL) {
            return NULL;
        }

        t->id = id;
        t->chain = *bucket;
        *bucket = t;
        s->n++;
    }

    if (t->n_reqs == 0) {
        t->time = llm_shares_begin(s, t);
        s->n_active++;
    }

    t->weight = weight ? weight : 1000;
    t->n_reqs++;

    return t;
}


void
llm_shares_leave(llm_shares_t *s, llm_share_t *t)
{
    if (--t->n_reqs == 0 && --s->n_active == 0) {
        s->time = llm_max(s->time, t->time);
    }
}


void
llm_shares_charge(llm_share_t *t, uint64_t n)
{
    t->time += n * 1000000 / t->weight;
}


void
llm_shares_refund(llm_share_t *t, uint64_t n)
{
    t->time -= llm_min(t->time, n * 1000000 / t->weight);
}
