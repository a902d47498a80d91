/*
 * KV pages and the prefix tree; see pages.h.  A node of the tree is a page;
 * nodes are an array indexed by page number, and a hash table over (parent,
 * salt, tokens) finds children.
 */

#include "engine/sched/pages.h"

#include <assert.h>

typedef struct {
    uint32_t         holders;
    uint32_t         in_tree;

    uint32_t         parent;            /* of a tree page */
    uint32_t         n_children;
    uint32_t         chain;             /* next page in the hash bucket; for a
                                           free page the next free one */
    uint32_t         newer;             /* in the LRU list */
    uint32_t         older;

    uint64_t         hash;
    llm_salt_t       salt;
    int32_t          tokens[LLM_KV_PAGE];
} llm_page_t;

struct llm_pages_s {
    llm_page_t      *page;
    uint32_t         n;

    uint32_t         free;              /* a stack through chain */
    uint32_t         n_free;

    uint32_t         oldest;            /* LRU list */
    uint32_t         newest;
    uint32_t         n_lru;

    uint32_t        *buckets;
    uint32_t         mask;
};


llm_pages_t *
llm_pages_create(uint32_t n)
{
    uint32_t      i, size;
    llm_pages_t  *p;

    p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return NULL;
    }

    for (size = 16; size < n && size < 1u << 31; size *= 2) { /* void */ }

    p->n = n;
    p->mask = size - 1;
    p->page = calloc(llm_max(n, 1u), sizeof(*p->page));
    p->buckets = malloc((size_t) size * sizeof(*p->buckets));

    if (p->page == NULL || p->buckets == NULL) {
        llm_pages_free(p);
        return NULL;
    }

    for (i = 0; i < size; i++) {
        p->buckets[i] = LLM_PAGE_NONE;
    }

    p->free = LLM_PAGE_NONE;
    p->oldest = LLM_PAGE_NONE;
    p->newest = LLM_PAGE_NONE;

    for (i = n; i-- > 0; /* void */ ) {
        p->page[i].chain = p->free;
        p->free = i;
        p->n_free++;
    }

    return p;
}


void
llm_pages_free(llm_pages_t *p)
{
    if (p) {
        free(p->page);
        free(p->buckets);
        free(p);
    }
}


uint32_t
llm_pages_total(const llm_pages_t *p)
{
    return p->n;
}


uint32_t
llm_pages_available(const llm_pages_t *p)
{
    return p->n_free + p->n_lru;
}


uint32_t
llm_pages_cached(const llm_pages_t *p)
{
    return p->n_lru;
}


static uint64_t
llm_pages_hash(uint32_t parent, const llm_salt_t *salt,
    const int32_t *tokens)
{
    uint32_t  i;
    uint64_t  h;

    h = (parent ^ 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
    h = (h ^ h >> 32 ^ salt->tenant) * 0xc4ceb9fe1a85ec53ull;
    h = (h ^ h >> 32 ^ salt->salt) * 0xff51afd7ed558ccdull;

    for (i = 0; i < LLM_KV_PAGE; i++) {
        h = (h ^ h >> 29 ^ (uint32_t) tokens[i]) * 0x9fb21c651e98df25ull;
    }

    return h ^ h >> 32;
}


static void
llm_pages_lru_add(llm_pages_t *p, uint32_t i)
{
    llm_page_t  *page = &p->page[i];

    page->newer = LLM_PAGE_NONE;
    page->older = p->newest;

    if (p->newest != LLM_PAGE_NONE) {
        p->page[p->newest].newer = i;

    } else {
        p->oldest = i;
    }

    p->newest = i;
    p->n_lru++;
}


static void
llm_pages_lru_remove(llm_pages_t *p, uint32_t i)
{
    llm_page_t  *page = &p->page[i];

    if (page->newer != LLM_PAGE_NONE) {
        p->page[page->newer].older = page->older;

    } else {
        p->newest = page->older;
    }

    if (page->older != LLM_PAGE_NONE) {
        p->page[page->older].newer = page->newer;

    } else {
        p->oldest = page->newer;
    }

    p->n_lru--;
}


static void
llm_pages_push_free(llm_pages_t *p, uint32_t i)
{
    p->page[i].chain = p->free;
    p->free = i;
    p->n_free++;
}


static void
llm_pages_evict(llm_pages_t *p)
{
    uint32_t   i, *link;

    i = p->oldest;

    llm_pages_lru_remove(p, i);

    link = &p->buckets[p->page[i].hash & p->mask];

    while (*link != i) {
        link = &p->page[*link].chain;
    }

    *link = p->page[i].chain;
    p->page[i].in_tree = 0;

    if (p->page[i].parent != LLM_PAGE_NONE) {
        p->page[p->page[i].parent].n_children--;
    }

    llm_pages_push_free(p, i);
}


uint32_t
llm_pages_alloc(llm_pages_t *p)
{
    uint32_t  i;

    if (p->n_free == 0) {
        if (p->n_lru == 0) {
            return LLM_PAGE_NONE;
        }

        llm_pages_evict(p);
    }

    i = p->free;
    p->free = p->page[i].chain;
    p->n_free--;
    p->page[i].holders = 1;

    return i;
}


uint32_t
llm_pages_find(const llm_pages_t *p, uint32_t parent, const llm_salt_t *salt,
    const int32_t *tokens)
{
    uint32_t           i;
    uint64_t           hash;
    const llm_page_t  *page;

    hash = llm_pages_hash(parent, salt, tokens);

    for (i = p->buckets[hash & p->mask];
         i != LLM_PAGE_NONE;
         i = page->chain)
    {
        page = &p->page[i];

        if (page->hash == hash && page->parent == parent
            && page->salt.tenant == salt->tenant
            && page->salt.salt == salt->salt
            && memcmp(page->tokens, tokens, sizeof(page->tokens)) == 0)
        {
            return i;
        }
    }

    return LLM_PAGE_NONE;
}


int
llm_pages_in_tree(const llm_pages_t *p, uint32_t i)
{
    return p->page[i].in_tree != 0;
}


int
llm_pages_is_leaf(const llm_pages_t *p, uint32_t i)
{
    return p->page[i].n_children == 0;
}


void
llm_pages_hold(llm_pages_t *p, uint32_t i)
{
    if (p->page[i].holders++ == 0) {
        assert(p->page[i].in_tree);
        llm_pages_lru_remove(p, i);
    }
}


void
llm_pages_drop(llm_pages_t *p, uint32_t i)
{
    assert(p->page[i].holders);

    if (--p->page[i].holders) {
        return;
    }

    if (p->page[i].in_tree) {
        llm_pages_lru_add(p, i);

    } else {
        llm_pages_push_free(p, i);
    }
}


uint32_t
llm_pages_commit(llm_pages_t *p, uint32_t i, uint32_t parent,
    const llm_salt_t *salt, const int32_t *tokens)
{
    uint32_t     other;
    llm_page_t  *page;

    page = &p->page[i];
    assert(page->holders == 1 && !page->in_tree);

    other = llm_pages_find(p, parent, salt, tokens);

    if (other != LLM_PAGE_NONE) {
        llm_pages_hold(p, other);
        llm_pages_drop(p, i);
        return other;
    }

    if (parent != LLM_PAGE_NONE) {
        p->page[parent].n_children++;
    }

    page->in_tree = 1;
    page->parent = parent;
    page->salt = *salt;
    memcpy(page->tokens, tokens, sizeof(page->tokens));

    page->hash = llm_pages_hash(parent, salt, tokens);
    page->chain = p->buckets[page->hash & p->mask];
    p->buckets[page->hash & p->mask] = i;

    return i;
}


uint64_t
llm_pages_assert(const llm_pages_t *p)
{
    uint32_t           i, n_free, n_lru, n_idle, n_children;
    uint64_t           holds;
    const llm_page_t  *page;

    n_free = n_lru = n_idle = n_children = 0;
    holds = 0;

    for (i = p->free; i != LLM_PAGE_NONE; i = p->page[i].chain) {
        assert(p->page[i].holders == 0 && !p->page[i].in_tree);
        n_free++;
    }

    for (i = p->oldest; i != LLM_PAGE_NONE; i = p->page[i].newer) {
        page = &p->page[i];

        assert(page->holders == 0 && page->in_tree);
        assert(page->newer == LLM_PAGE_NONE ? p->newest == i
                                            : p->page[page->newer].older == i);
        n_lru++;
    }

    for (i = 0; i < p->n; i++) {
        page = &p->page[i];

        holds += page->holders;
        n_idle += page->holders == 0;
        n_children += page->n_children;
        assert(page->in_tree || page->n_children == 0);

        if (page->in_tree && page->parent != LLM_PAGE_NONE) {
            n_children--;
            assert(p->page[page->parent].in_tree);
            assert(page->holders == 0 || p->page[page->parent].holders);
        }
    }

    assert(n_free == p->n_free && n_lru == p->n_lru);
    assert(n_idle == n_free + n_lru);
    assert(n_children == 0);

    return holds;
}
