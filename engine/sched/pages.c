/*
 * KV pages and the prefix tree; see pages.h.  A hash table over (parent, salt,
 * tokens) finds children.
 */

#include "engine/sched/pages.h"

#include <assert.h>

typedef struct {
    uint32_t         holders;
    uint32_t         in_tree;
    uint32_t         page;              /* or LLM_PAGE_NONE */

    uint32_t         parent;            /* of a tree node: the number, ... */
    uint64_t         behind;            /* ... and which node that was then; 0:
                                           the root */
    uint64_t         serial;            /* of a tree node, never the same
                                           twice */
    uint32_t         n_children;

    uint32_t         chain;             /* next node in the hash bucket; for a
                                           free node the next free one */
    uint32_t         newer;             /* in the list of idle nodes, or in
                                           that of bare ones */
    uint32_t         older;

    uint64_t         hash;
    llm_salt_t       salt;
    int32_t          tokens[LLM_KV_PAGE];
} llm_page_t;

typedef struct {
    uint32_t         oldest;
    uint32_t         newest;
    uint32_t         n;
} llm_page_list_t;

struct llm_pages_s {
    llm_page_t      *node;
    uint32_t         n_nodes;
    uint32_t         n;                 /* pages */

    uint32_t         free;              /* nodes, a stack through chain */
    uint32_t        *free_pages;        /* a stack */
    uint32_t         n_free;            /* pages */

    llm_page_list_t  idle;              /* in the tree without holders */
    llm_page_list_t  bare;

    uint64_t         serial;            /* the last one */
    uint32_t        *buckets;
    uint32_t         mask;
};


llm_pages_t *
llm_pages_create(uint32_t n, uint32_t n_nodes)
{
    uint32_t      i, size;
    llm_pages_t  *p;

    assert(n_nodes >= n);

    p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return NULL;
    }

    for (size = 16; size < n_nodes && size < 1u << 31; size *= 2) {
        /* void */
    }

    p->n = n;
    p->n_nodes = n_nodes;
    p->mask = size - 1;
    p->node = calloc(llm_max(n_nodes, 1u), sizeof(*p->node));
    p->free_pages = calloc(llm_max(n, 1u), sizeof(*p->free_pages));
    p->buckets = malloc((size_t) size * sizeof(*p->buckets));

    if (p->node == NULL || p->free_pages == NULL || p->buckets == NULL) {
        llm_pages_free(p);
        return NULL;
    }

    for (i = 0; i < size; i++) {
        p->buckets[i] = LLM_PAGE_NONE;
    }

    p->free = LLM_PAGE_NONE;
    p->idle = (llm_page_list_t) { LLM_PAGE_NONE, LLM_PAGE_NONE, 0 };
    p->bare = p->idle;

    for (i = n_nodes; i-- > 0; /* void */ ) {
        p->node[i].page = LLM_PAGE_NONE;
        p->node[i].chain = p->free;
        p->free = i;
    }

    for (i = n; i-- > 0; /* void */ ) {
        p->free_pages[p->n_free++] = i;
    }

    return p;
}


void
llm_pages_free(llm_pages_t *p)
{
    if (p) {
        free(p->node);
        free(p->free_pages);
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
    return p->n_free + p->idle.n;
}


uint32_t
llm_pages_cached(const llm_pages_t *p)
{
    return p->idle.n;
}


uint32_t
llm_pages_n_nodes(const llm_pages_t *p)
{
    return p->n_nodes;
}


uint32_t
llm_pages_number(const llm_pages_t *p, uint32_t i)
{
    return p->node[i].page;
}


static uint64_t
llm_pages_serial(const llm_pages_t *p, uint32_t i)
{
    return i == LLM_PAGE_NONE ? 0 : p->node[i].serial;
}


static uint64_t
llm_pages_hash(uint64_t behind, const llm_salt_t *salt,
    const int32_t *tokens)
{
    uint32_t  i;
    uint64_t  h;

    h = (behind ^ 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
    h = (h ^ h >> 32 ^ salt->tenant) * 0xc4ceb9fe1a85ec53ull;
    h = (h ^ h >> 32 ^ salt->salt) * 0xff51afd7ed558ccdull;

    for (i = 0; i < LLM_KV_PAGE; i++) {
        h = (h ^ h >> 29 ^ (uint32_t) tokens[i]) * 0x9fb21c651e98df25ull;
    }

    return h ^ h >> 32;
}


static void
llm_pages_list_add(llm_pages_t *p, llm_page_list_t *list, uint32_t i)
{
    llm_page_t  *node = &p->node[i];

    node->newer = LLM_PAGE_NONE;
    node->older = list->newest;

    if (list->newest != LLM_PAGE_NONE) {
        p->node[list->newest].newer = i;

    } else {
        list->oldest = i;
    }

    list->newest = i;
    list->n++;
}


static void
llm_pages_list_remove(llm_pages_t *p, llm_page_list_t *list, uint32_t i)
{
    llm_page_t  *node = &p->node[i];

    if (node->newer != LLM_PAGE_NONE) {
        p->node[node->newer].older = node->older;

    } else {
        list->newest = node->older;
    }

    if (node->older != LLM_PAGE_NONE) {
        p->node[node->older].newer = node->newer;

    } else {
        list->oldest = node->newer;
    }

    list->n--;
}


/* the node has no page and no holders, and is in no list */

static void
llm_pages_push_free(llm_pages_t *p, uint32_t i)
{
    p->node[i].chain = p->free;
    p->free = i;
}


static void
llm_pages_push_page(llm_pages_t *p, uint32_t i)
{
    p->free_pages[p->n_free++] = p->node[i].page;
    p->node[i].page = LLM_PAGE_NONE;
}


/* takes a node without a page out of the tree; its parent goes with it if that
   is bare and nothing else is behind it */

static void
llm_pages_remove(llm_pages_t *p, uint32_t i)
{
    uint32_t     *link, parent;
    llm_page_t   *node;

    for ( ;; ) {
        node = &p->node[i];
        link = &p->buckets[node->hash & p->mask];

        while (*link != i) {
            link = &p->node[*link].chain;
        }

        *link = node->chain;
        node->in_tree = 0;
        node->serial = 0;
        node->n_children = 0;
        llm_pages_push_free(p, i);

        parent = node->parent;

        if (node->behind == 0 || p->node[parent].serial != node->behind
            || --p->node[parent].n_children
            || p->node[parent].page != LLM_PAGE_NONE)
        {
            return;
        }

        llm_pages_list_remove(p, &p->bare, parent);
        i = parent;
    }
}


/* frees the page of the idle node that was used least recently, and returns
   that node */

static uint32_t
llm_pages_evict(llm_pages_t *p)
{
    uint32_t  i;

    i = p->idle.oldest;

    llm_pages_list_remove(p, &p->idle, i);
    llm_pages_push_page(p, i);

    if (p->node[i].n_children && p->n_nodes > p->n) {
        llm_pages_list_add(p, &p->bare, i);

    } else {
        llm_pages_remove(p, i);
    }

    return i;
}


uint32_t
llm_pages_alloc(llm_pages_t *p, uint32_t *evicted)
{
    uint32_t     i;
    llm_page_t  *node;

    *evicted = LLM_PAGE_NONE;

    if (p->n_free == 0) {
        if (p->idle.n == 0) {
            return LLM_PAGE_NONE;
        }

        *evicted = llm_pages_evict(p);
    }

    if (p->free == LLM_PAGE_NONE) {
        i = p->bare.oldest;
        llm_pages_list_remove(p, &p->bare, i);
        llm_pages_remove(p, i);
    }

    i = p->free;
    node = &p->node[i];
    p->free = node->chain;
    node->page = p->free_pages[--p->n_free];
    node->holders = 1;

    return i;
}


uint32_t
llm_pages_find(const llm_pages_t *p, uint32_t parent, const llm_salt_t *salt,
    const int32_t *tokens)
{
    uint32_t           i;
    uint64_t           hash, behind;
    const llm_page_t  *node;

    behind = llm_pages_serial(p, parent);
    hash = llm_pages_hash(behind, salt, tokens);

    for (i = p->buckets[hash & p->mask];
         i != LLM_PAGE_NONE;
         i = node->chain)
    {
        node = &p->node[i];

        if (node->hash == hash && node->behind == behind
            && node->salt.tenant == salt->tenant
            && node->salt.salt == salt->salt
            && memcmp(node->tokens, tokens, sizeof(node->tokens)) == 0)
        {
            return i;
        }
    }

    return LLM_PAGE_NONE;
}


int
llm_pages_in_tree(const llm_pages_t *p, uint32_t i)
{
    return p->node[i].in_tree != 0;
}


int
llm_pages_is_leaf(const llm_pages_t *p, uint32_t i)
{
    return p->node[i].n_children == 0;
}


void
llm_pages_use(llm_pages_t *p, uint32_t i)
{
    assert(p->node[i].page == LLM_PAGE_NONE && p->node[i].in_tree);

    llm_pages_list_remove(p, &p->bare, i);
    llm_pages_list_add(p, &p->bare, i);
}


void
llm_pages_hold(llm_pages_t *p, uint32_t i)
{
    assert(p->node[i].page != LLM_PAGE_NONE);

    if (p->node[i].holders++ == 0) {
        assert(p->node[i].in_tree);
        llm_pages_list_remove(p, &p->idle, i);
    }
}


void
llm_pages_drop(llm_pages_t *p, uint32_t i)
{
    assert(p->node[i].holders);

    if (--p->node[i].holders) {
        return;
    }

    if (p->node[i].in_tree) {
        llm_pages_list_add(p, &p->idle, i);

    } else {
        llm_pages_push_page(p, i);
        llm_pages_push_free(p, i);
    }
}


/* the caller's private node i is node `other` of the tree */

static void
llm_pages_merge(llm_pages_t *p, uint32_t i, uint32_t other)
{
    if (p->node[other].page != LLM_PAGE_NONE) {
        llm_pages_hold(p, other);
        llm_pages_drop(p, i);
        return;
    }

    llm_pages_list_remove(p, &p->bare, other);
    p->node[other].page = p->node[i].page;
    p->node[other].holders = 1;

    p->node[i].page = LLM_PAGE_NONE;
    p->node[i].holders = 0;
    llm_pages_push_free(p, i);
}


uint32_t
llm_pages_commit(llm_pages_t *p, uint32_t i, uint32_t parent,
    const llm_salt_t *salt, const int32_t *tokens)
{
    uint32_t     other;
    llm_page_t  *node;

    node = &p->node[i];
    assert(node->holders == 1 && !node->in_tree);

    other = llm_pages_find(p, parent, salt, tokens);

    if (other != LLM_PAGE_NONE) {
        llm_pages_merge(p, i, other);
        return other;
    }

    if (parent != LLM_PAGE_NONE) {
        p->node[parent].n_children++;
    }

    node->in_tree = 1;
    node->parent = parent;
    node->behind = llm_pages_serial(p, parent);
    node->serial = ++p->serial;
    node->salt = *salt;
    memcpy(node->tokens, tokens, sizeof(node->tokens));

    node->hash = llm_pages_hash(node->behind, salt, tokens);
    node->chain = p->buckets[node->hash & p->mask];
    p->buckets[node->hash & p->mask] = i;

    return i;
}


/* asserts what is true of a list, and of each of its nodes; returns how many
   they are */

static uint32_t
llm_pages_assert_list(const llm_pages_t *p, const llm_page_list_t *list,
    int bare)
{
    uint32_t           i, n;
    const llm_page_t  *node;

    n = 0;

    for (i = list->oldest; i != LLM_PAGE_NONE; i = node->newer) {
        node = &p->node[i];
        n++;

        assert(node->holders == 0 && node->in_tree);
        assert((node->page == LLM_PAGE_NONE) == bare);
        assert(node->newer == LLM_PAGE_NONE
               ? list->newest == i : p->node[node->newer].older == i);
    }

    assert(n == list->n);

    return n;
}


uint64_t
llm_pages_assert(const llm_pages_t *p)
{
    uint32_t           i, n_free, n_idle, n_bare, n_held, n_children;
    uint64_t           holds;
    const llm_page_t  *node, *parent;

    n_free = n_held = n_children = 0;
    holds = 0;

    for (i = p->free; i != LLM_PAGE_NONE; i = p->node[i].chain) {
        assert(p->node[i].holders == 0 && !p->node[i].in_tree);
        assert(p->node[i].page == LLM_PAGE_NONE);
        n_free++;
    }

    n_idle = llm_pages_assert_list(p, &p->idle, 0);
    n_bare = llm_pages_assert_list(p, &p->bare, 1);

    for (i = 0; i < p->n_nodes; i++) {
        node = &p->node[i];

        holds += node->holders;
        n_held += node->holders != 0;
        n_children += node->n_children;
        assert(node->in_tree || node->n_children == 0);

        if (node->in_tree && node->behind) {
            parent = &p->node[node->parent];

            if (parent->serial == node->behind) {
                n_children--;
                assert(p->n_nodes > p->n || node->holders == 0
                       || parent->holders);

            } else {
                assert(p->n_nodes > p->n);
            }
        }
    }

    assert(n_free + n_idle + n_bare + n_held == p->n_nodes);
    assert(n_idle + n_held + p->n_free == p->n);
    assert(n_bare == 0 || p->n_nodes > p->n);
    assert(n_children == 0);

    return holds;
}
