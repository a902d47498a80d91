/*
 * KV pages and the prefix tree; see pages.h.  A hash table over (parent, salt,
 * keys) finds children.
 */

#include "engine/sched/pages_internal.h"

#include <assert.h>


static int
llm_pages_init_kind(llm_pages_t *p, uint32_t kind, uint32_t n)
{
    uint32_t          i;
    llm_page_kind_t  *k;

    k = &p->kind[kind];
    k->n = n;
    k->free = calloc(llm_max(n, 1u), sizeof(*k->free));
    k->links = calloc(n ? p->n_nodes : 1, sizeof(*k->links));
    llm_lru_init(&k->idle, k->links);

    if (k->free == NULL || k->links == NULL) {
        return LLM_ERROR;
    }

    for (i = n; i-- > 0; /* void */ ) {
        k->free[k->n_free++] = i;
    }

    return LLM_OK;
}


llm_pages_t *
llm_pages_create(const uint32_t n[LLM_KV_KINDS], uint32_t n_nodes)
{
    int           rc;
    uint32_t      i, k, size;
    llm_pages_t  *p;

    assert(n_nodes >= n[LLM_KV_FULL]);
    assert(n[LLM_KV_WINDOW] == 0 || n_nodes == n[LLM_KV_FULL]);

    p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return NULL;
    }

    for (size = 16; size < n_nodes && size < 1u << 31; size *= 2) {
        /* void */
    }

    p->n_nodes = n_nodes;
    p->mask = size - 1;
    p->node = calloc(llm_max(n_nodes, 1u), sizeof(*p->node));
    p->buckets = malloc((size_t) size * sizeof(*p->buckets));

    for (k = 0, rc = LLM_OK; k < LLM_KV_KINDS && rc == LLM_OK; k++) {
        rc = llm_pages_init_kind(p, k, n[k]);
    }

    if (rc != LLM_OK || p->node == NULL || p->buckets == NULL) {
        llm_pages_free(p);
        return NULL;
    }

    for (i = 0; i < size; i++) {
        p->buckets[i] = LLM_PAGE_NONE;
    }

    p->free = LLM_PAGE_NONE;
    llm_lru_init(&p->bare, p->kind[LLM_KV_FULL].links);

    for (i = n_nodes; i-- > 0; /* void */ ) {
        p->node[i].page[LLM_KV_FULL] = LLM_PAGE_NONE;
        p->node[i].page[LLM_KV_WINDOW] = LLM_PAGE_NONE;
        p->node[i].chain = p->free;
        p->free = i;
    }

    return p;
}


void
llm_pages_free(llm_pages_t *p)
{
    uint32_t  k;

    if (p) {
        for (k = 0; k < LLM_KV_KINDS; k++) {
            free(p->kind[k].free);
            free(p->kind[k].links);
        }

        free(p->node);
        free(p->buckets);
        free(p);
    }
}


uint32_t
llm_pages_total(const llm_pages_t *p, uint32_t kind)
{
    return p->kind[kind].n;
}


uint32_t
llm_pages_available(const llm_pages_t *p, uint32_t kind)
{
    return p->kind[kind].n_free + p->kind[kind].idle.n;
}


uint32_t
llm_pages_cached(const llm_pages_t *p, uint32_t kind)
{
    return p->kind[kind].idle.n;
}


uint64_t
llm_pages_evicted(const llm_pages_t *p)
{
    return p->n_evicted;
}


uint32_t
llm_pages_n_nodes(const llm_pages_t *p)
{
    return p->n_nodes;
}


uint32_t
llm_pages_number(const llm_pages_t *p, uint32_t i, uint32_t kind)
{
    return p->node[i].page[kind];
}


static uint64_t
llm_pages_serial(const llm_pages_t *p, uint32_t i)
{
    return i == LLM_PAGE_NONE ? 0 : p->node[i].serial;
}


static uint64_t
llm_pages_hash(uint64_t behind, const llm_salt_t *salt,
    const uint64_t *keys)
{
    uint32_t  i;
    uint64_t  h;

    h = (behind ^ 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
    h = (h ^ h >> 32 ^ salt->tenant) * 0xc4ceb9fe1a85ec53ull;
    h = (h ^ h >> 32 ^ salt->salt) * 0xff51afd7ed558ccdull;

    for (i = 0; i < LLM_KV_PAGE; i++) {
        h = (h ^ h >> 29 ^ keys[i]) * 0x9fb21c651e98df25ull;
    }

    return h ^ h >> 32;
}


/* frees a node that has no pages and no holders, and is in no list */

static void
llm_pages_push_free(llm_pages_t *p, uint32_t i)
{
    p->node[i].chain = p->free;
    p->free = i;
}


static void
llm_pages_push_page(llm_pages_t *p, uint32_t i, uint32_t kind)
{
    llm_page_kind_t  *k = &p->kind[kind];

    k->free[k->n_free++] = p->node[i].page[kind];
    p->node[i].page[kind] = LLM_PAGE_NONE;
}


/* evicts a page that nobody holds */

static void
llm_pages_take_idle(llm_pages_t *p, uint32_t i, uint32_t kind)
{
    assert(p->node[i].holders[kind] == 0);

    llm_lru_remove(&p->kind[kind].idle, i);
    llm_pages_push_page(p, i, kind);
    p->n_evicted++;
}


/* removes a node without a page from the tree, and then its parent, if that is
   bare and has no other children */

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
            || p->node[parent].page[LLM_KV_FULL] != LLM_PAGE_NONE)
        {
            return;
        }

        llm_lru_remove(&p->bare, parent);
        i = parent;
    }
}


/* frees the pages of the idle node that was used least recently, and returns
   that node */

static uint32_t
llm_pages_evict(llm_pages_t *p)
{
    uint32_t  i;

    i = p->kind[LLM_KV_FULL].idle.end[LLM_LRU_OLDEST];
    llm_pages_take_idle(p, i, LLM_KV_FULL);

    if (p->node[i].page[LLM_KV_WINDOW] != LLM_PAGE_NONE) {
        llm_pages_take_idle(p, i, LLM_KV_WINDOW);
    }

    if (p->node[i].n_children && llm_pages_has_bare(p)) {
        llm_lru_add(&p->bare, i, LLM_LRU_NEWEST);

    } else {
        llm_pages_remove(p, i);
    }

    return i;
}


uint32_t
llm_pages_alloc(llm_pages_t *p, uint32_t *evicted)
{
    uint32_t          i;
    llm_page_t       *node;
    llm_page_kind_t  *k;

    *evicted = LLM_PAGE_NONE;
    k = &p->kind[LLM_KV_FULL];

    if (k->n_free == 0) {
        if (k->idle.n == 0) {
            return LLM_PAGE_NONE;
        }

        *evicted = llm_pages_evict(p);
    }

    if (p->free == LLM_PAGE_NONE) {
        i = p->bare.end[LLM_LRU_OLDEST];
        llm_lru_remove(&p->bare, i);
        llm_pages_remove(p, i);
    }

    i = p->free;
    node = &p->node[i];
    p->free = node->chain;
    node->page[LLM_KV_FULL] = k->free[--k->n_free];
    node->holders[LLM_KV_FULL] = 1;

    return i;
}


int
llm_pages_attach(llm_pages_t *p, uint32_t i)
{
    llm_page_t       *node;
    llm_page_kind_t  *k;

    node = &p->node[i];
    k = &p->kind[LLM_KV_WINDOW];
    assert(!node->in_tree && node->holders[LLM_KV_FULL]
           && node->page[LLM_KV_WINDOW] == LLM_PAGE_NONE);

    if (k->n_free == 0) {
        if (k->idle.n == 0) {
            return LLM_FULL;
        }

        llm_pages_take_idle(p, k->idle.end[LLM_LRU_OLDEST],
                            LLM_KV_WINDOW);
    }

    node->page[LLM_KV_WINDOW] = k->free[--k->n_free];
    node->holders[LLM_KV_WINDOW] = 1;

    return LLM_OK;
}


uint32_t
llm_pages_find(const llm_pages_t *p, uint32_t parent, const llm_salt_t *salt,
    const uint64_t *keys)
{
    uint32_t           i;
    uint64_t           hash, behind;
    const llm_page_t  *node;

    behind = llm_pages_serial(p, parent);
    hash = llm_pages_hash(behind, salt, keys);

    for (i = p->buckets[hash & p->mask];
         i != LLM_PAGE_NONE;
         i = node->chain)
    {
        node = &p->node[i];

        if (node->hash == hash && node->behind == behind
            && llm_salt_same(&node->salt, salt)
            && memcmp(node->keys, keys, sizeof(node->keys)) == 0)
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
    assert(p->node[i].page[LLM_KV_FULL] == LLM_PAGE_NONE
           && p->node[i].in_tree);

    llm_lru_use(&p->bare, i);
}


void
llm_pages_hold(llm_pages_t *p, uint32_t i, uint32_t kind)
{
    assert(p->node[i].page[kind] != LLM_PAGE_NONE);

    if (p->node[i].holders[kind]++ == 0) {
        assert(p->node[i].in_tree);
        llm_lru_remove(&p->kind[kind].idle, i);
    }
}


int
llm_pages_leave(llm_pages_t *p, uint32_t i, uint32_t kind)
{
    return ++p->node[i].leaving == p->node[i].holders[kind];
}


int
llm_pages_stay(llm_pages_t *p, uint32_t i, uint32_t kind)
{
    return p->node[i].leaving-- == p->node[i].holders[kind];
}


/* removes a holder; nonzero: the page is in the tree and now idle, and the
   caller must put it into the list */

static int
llm_pages_unhold(llm_pages_t *p, uint32_t i, uint32_t kind)
{
    llm_page_t  *node = &p->node[i];

    assert(node->holders[kind]);

    if (--node->holders[kind]) {
        return 0;
    }

    assert(kind == LLM_KV_WINDOW || node->holders[LLM_KV_WINDOW] == 0);

    if (node->in_tree) {
        return 1;
    }

    llm_pages_push_page(p, i, kind);

    if (kind == LLM_KV_FULL) {
        llm_pages_push_free(p, i);
    }

    return 0;
}


void
llm_pages_drop(llm_pages_t *p, uint32_t i, uint32_t kind)
{
    if (llm_pages_unhold(p, i, kind)) {
        llm_lru_add(&p->kind[kind].idle, i, LLM_LRU_NEWEST);
    }
}


void
llm_pages_pass(llm_pages_t *p, uint32_t i, uint32_t kind)
{
    assert(kind == LLM_KV_WINDOW || llm_pages_has_bare(p));

    if (llm_pages_unhold(p, i, kind)) {
        llm_lru_add(&p->kind[kind].idle, i, LLM_LRU_OLDEST);
    }
}


/* turns the caller's hold on a page of its private node i, if it has one, into
   a hold on the same kind of page of the tree's node `other`: on the page that
   `other` has (that of i is freed), or else on that of i, which moves there */

static void
llm_pages_merge(llm_pages_t *p, uint32_t i, uint32_t other, uint32_t kind)
{
    llm_page_t  *node = &p->node[i], *to = &p->node[other];

    if (node->page[kind] == LLM_PAGE_NONE) {
        return;
    }

    node->holders[kind] = 0;

    if (to->page[kind] != LLM_PAGE_NONE) {
        llm_pages_hold(p, other, kind);
        llm_pages_push_page(p, i, kind);
        return;
    }

    if (kind == LLM_KV_FULL) {
        llm_lru_remove(&p->bare, other);
    }

    to->page[kind] = node->page[kind];
    to->holders[kind] = 1;
    node->page[kind] = LLM_PAGE_NONE;
}


uint32_t
llm_pages_commit(llm_pages_t *p, uint32_t i, uint32_t parent,
    const llm_salt_t *salt, const uint64_t *keys)
{
    uint32_t     other;
    llm_page_t  *node;

    node = &p->node[i];
    assert(node->holders[LLM_KV_FULL] == 1 && !node->in_tree);

    other = llm_pages_find(p, parent, salt, keys);

    if (other != LLM_PAGE_NONE) {
        llm_pages_merge(p, i, other, LLM_KV_FULL);
        llm_pages_merge(p, i, other, LLM_KV_WINDOW);
        llm_pages_push_free(p, i);
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
    memcpy(node->keys, keys, sizeof(node->keys));

    node->hash = llm_pages_hash(node->behind, salt, keys);
    node->chain = p->buckets[node->hash & p->mask];
    p->buckets[node->hash & p->mask] = i;

    return i;
}
