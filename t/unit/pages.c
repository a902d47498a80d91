/*
 * KV pages and the prefix tree against a naive model: a list of what the
 * tree should hold.  Random sequences come, share, grow, commit and go.
 */

#include "t/unit/pages_rig.h"

#define N_PAGES   48

static content_t  contents[N_PAGES];


static void
drop_all(llm_pages_t *p, seq_t *s)
{
    while (s->n) {
        llm_pages_drop(p, s->page[--s->n], LLM_KV_FULL);
    }

    s->live = 0;
    s->n_tree = 0;
}


/* a new sequence takes what the tree has; is that what was once put there? */

static int
start(llm_pages_t *p, seq_t *s)
{
    int       good;
    uint32_t  i, page;

    come(s);
    s->salt.salt = rnd(2);
    good = 1;

    for (i = 0; i < MAX_LEN - 1; i++) {
        page = llm_pages_find(p, parent_of(s, i), &s->salt,
                              s->keys + i * LLM_KV_PAGE);
        if (page == LLM_PAGE_NONE) {
            break;
        }

        good &= same_prefix(&contents[page], s, i + 1);
        llm_pages_hold(p, page, LLM_KV_FULL);
        s->page[s->n++] = page;
        s->n_tree++;
    }

    return good;
}


static int
grow(llm_pages_t *p, seq_t *s)
{
    uint32_t  i, k, page;

    if (s->n == MAX_LEN) {
        return 1;
    }

    page = alloc(p);
    if (page == LLM_PAGE_NONE) {
        return llm_pages_available(p, LLM_KV_FULL) == 0;
    }

    /* the page must not be anybody else's */

    for (i = 0; i < N_SEQS; i++) {
        for (k = 0; k < seqs[i].n; k++) {
            if (seqs[i].page[k] == page) {
                return 0;
            }
        }
    }

    s->page[s->n++] = page;

    note(&contents[page], s);

    return 1;
}


static int
commit(llm_pages_t *p, seq_t *s)
{
    uint32_t  i, page;

    if (s->n_tree == s->n) {
        return 1;
    }

    i = s->n_tree++;
    page = llm_pages_commit(p, s->page[i], parent_of(s, i), &s->salt,
                            s->keys + i * LLM_KV_PAGE);
    s->page[i] = page;

    return same_prefix(&contents[page], s, i + 1)
           && llm_pages_find(p, parent_of(s, i), &s->salt,
                             s->keys + i * LLM_KV_PAGE) == page;
}


static int
balanced(const llm_pages_t *p)
{
    uint32_t  i, k, held;
    uint8_t   seen[N_PAGES];

    memset(seen, 0, sizeof(seen));
    held = 0;

    for (i = 0; i < N_SEQS; i++) {
        for (k = 0; k < seqs[i].n; k++) {
            held += !seen[seqs[i].page[k]];
            seen[seqs[i].page[k]] = 1;
        }
    }

    return held + llm_pages_available(p, LLM_KV_FULL) == N_PAGES;
}


static void
test_random(void)
{
    int           good, even;
    seq_t        *s;
    uint32_t      step, shared, i;
    llm_pages_t  *p;

    p = llm_pages_create((uint32_t [LLM_KV_KINDS]) { N_PAGES }, N_PAGES);
    good = 1;
    even = 1;
    shared = 0;

    for (step = 0; step < 300000; step++) {
        s = &seqs[rnd(N_SEQS)];

        if (!s->live) {
            good &= start(p, s);
            shared += s->n;

        } else {
            switch (rnd(8)) {

            case 0:
                drop_all(p, s);
                break;

            case 1:
            case 2:
            case 3:
                good &= commit(p, s);
                break;

            default:
                /* a private page is committed before the next one grows */

                good &= s->n_tree < s->n ? commit(p, s) : grow(p, s);
            }
        }

        if (step % 64 == 0) {
            even &= balanced(p);
        }
    }

    ok(good, "pages found are what was put there; pages given are nobody's");
    ok(even, "pages held and pages available add up");
    ok(shared > 10000, "prefixes were shared %u times", shared);

    for (i = 0; i < N_SEQS; i++) {
        drop_all(p, &seqs[i]);
    }

    is_int(llm_pages_available(p, LLM_KV_FULL), N_PAGES, "all come back");

    llm_pages_free(p);
}


/* the oldest prefix goes first, its end before its beginning */

static void
test_lru(void)
{
    uint64_t      keys[3][LLM_KV_PAGE];
    uint32_t      i, page, a[2], b;
    llm_salt_t    salt = { 0, 0 };
    llm_pages_t  *p;

    for (i = 0; i < 3; i++) {
        memset(keys[i], (int) i + 1, sizeof(keys[i]));
    }

    p = llm_pages_create((uint32_t [LLM_KV_KINDS]) { 3 }, 3);

    a[0] = llm_pages_commit(p, alloc(p), LLM_PAGE_NONE, &salt,
                            keys[0]);
    a[1] = llm_pages_commit(p, alloc(p), a[0], &salt, keys[1]);
    llm_pages_drop(p, a[1], LLM_KV_FULL);
    llm_pages_drop(p, a[0], LLM_KV_FULL);

    b = llm_pages_commit(p, alloc(p), LLM_PAGE_NONE, &salt,
                         keys[2]);
    llm_pages_drop(p, b, LLM_KV_FULL);

    is_int(llm_pages_cached(p, LLM_KV_FULL), 3, "three pages are kept");
    is_int(llm_pages_evicted(p), 0, "none was evicted so far");

    page = alloc(p);
    is_int(page, a[1], "the leaf of the oldest goes first");
    is_int(llm_pages_find(p, LLM_PAGE_NONE, &salt, keys[0]), a[0],
           "its parent is still there");
    is_int(llm_pages_find(p, a[0], &salt, keys[1]), LLM_PAGE_NONE,
           "it is not");

    is_int(alloc(p), a[0], "then the parent");
    is_int(alloc(p), b, "then the younger prefix");
    is_int(alloc(p), LLM_PAGE_NONE, "then nothing is left");

    llm_pages_drop(p, page, LLM_KV_FULL);
    is_int(alloc(p), page, "a private page is free at once");
    is_int(llm_pages_evicted(p), 3, "three were evicted");

    llm_pages_free(p);
}


/* the same tokens under another salt or parent are another block */

static void
test_salt(void)
{
    uint64_t      keys[LLM_KV_PAGE];
    uint32_t      a, b;
    llm_salt_t    one = { 1, 0 }, two = { 2, 0 }, three = { 1, 1 };
    llm_pages_t  *p;

    memset(keys, 0, sizeof(keys));
    p = llm_pages_create((uint32_t [LLM_KV_KINDS]) { 4 }, 4);

    a = llm_pages_commit(p, alloc(p), LLM_PAGE_NONE, &one, keys);
    is_int(llm_pages_find(p, LLM_PAGE_NONE, &one, keys), a, "found");
    is_int(llm_pages_find(p, LLM_PAGE_NONE, &two, keys), LLM_PAGE_NONE,
           "not by another tenant");
    is_int(llm_pages_find(p, LLM_PAGE_NONE, &three, keys), LLM_PAGE_NONE,
           "not with another salt");
    is_int(llm_pages_find(p, a, &one, keys), LLM_PAGE_NONE,
           "not behind itself");

    keys[LLM_KV_PAGE - 1] = 1;
    is_int(llm_pages_find(p, LLM_PAGE_NONE, &one, keys), LLM_PAGE_NONE,
           "not with another last token");
    keys[LLM_KV_PAGE - 1] = (uint64_t) 1 << 63;
    is_int(llm_pages_find(p, LLM_PAGE_NONE, &one, keys), LLM_PAGE_NONE,
           "nor with a key that differs in its last bit");
    keys[LLM_KV_PAGE - 1] = 0;

    b = llm_pages_commit(p, alloc(p), LLM_PAGE_NONE, &one, keys);
    is_int(b, a, "the same block twice becomes one");
    is_int(llm_pages_available(p, LLM_KV_FULL), 3,
           "and the second page is free");

    llm_pages_free(p);
}


static int
is_bare(const llm_pages_t *p, uint32_t node)
{
    return llm_pages_number(p, node, LLM_KV_FULL) == LLM_PAGE_NONE;
}


/* a path of six blocks on four pages: two are held at a time */

static void
test_bare(void)
{
    uint64_t      keys[6][LLM_KV_PAGE];
    uint32_t      i, node[6], parent, evicted, found;
    llm_salt_t    salt = { 0, 0 };
    llm_pages_t  *p;

    for (i = 0; i < 6; i++) {
        memset(keys[i], (int) i + 1, sizeof(keys[i]));
    }

    p = llm_pages_create((uint32_t [LLM_KV_KINDS]) { 4 }, 16);

    for (i = 0; i < 6; i++) {
        parent = i ? node[i - 1] : LLM_PAGE_NONE;
        node[i] = llm_pages_commit(p, llm_pages_alloc(p, &evicted), parent,
                                   &salt, keys[i]);
        is_int(evicted, i < 4 ? LLM_PAGE_NONE : node[i - 4],
               "block %u: what lost its page", i);

        if (i) {
            llm_pages_drop(p, node[i - 1], LLM_KV_FULL);
        }
    }

    (void) llm_pages_assert(p);

    for (i = 0, found = 0, parent = LLM_PAGE_NONE; i < 6; i++) {
        parent = llm_pages_find(p, parent, &salt, keys[i]);
        found += parent == node[i]
                 && is_bare(p, parent) == (i < 2);
    }

    is_int(found, 6, "the path is found, its first two nodes bare");

    /* the first block is computed again */

    i = llm_pages_commit(p, llm_pages_alloc(p, &evicted), LLM_PAGE_NONE,
                         &salt, keys[0]);
    is_int(i, node[0], "computed again: the same node");
    ok(!is_bare(p, i), "which has a page again");
    llm_pages_drop(p, i, LLM_KV_FULL);
    llm_pages_drop(p, node[5], LLM_KV_FULL);
    is_int(llm_pages_available(p, LLM_KV_FULL), 4, "all pages can be had");

    /* four new blocks take all pages: nothing is left of the path */

    for (i = 0; i < 4; i++) {
        (void) llm_pages_alloc(p, &evicted);
        (void) llm_pages_assert(p);
    }

    is_int(llm_pages_find(p, LLM_PAGE_NONE, &salt, keys[0]), LLM_PAGE_NONE,
           "a path without any page is gone");

    llm_pages_free(p);
}


int
main(void)
{
    test_lru();
    test_salt();
    test_random();
    test_bare();

    return done_testing();
}
