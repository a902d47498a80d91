/*
 * KV pages and the prefix tree against a naive model: a list of what the
 * tree should hold.  Random sequences come, share, grow, commit and go.
 */

#include "engine/sched/pages.h"

#include "t/unit/tap.h"

#define N_PAGES   48
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
static content_t  contents[N_PAGES];
static uint64_t   state = 88172645463325252ull;


static uint32_t
rnd(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;

    return (uint32_t) ((state >> 20) % n);
}


/* few different blocks, so that prefixes meet often */

static void
fill(int32_t *tokens)
{
    int      i;
    int32_t  kind;

    kind = (int32_t) rnd(3);

    for (i = 0; i < LLM_KV_PAGE; i++) {
        tokens[i] = kind * 100 + i;
    }
}


static uint32_t
alloc(llm_pages_t *p)
{
    uint32_t  evicted;

    return llm_pages_alloc(p, &evicted);
}


static int
same_prefix(const content_t *c, const seq_t *s, uint32_t n)
{
    return c->n == n && c->salt.tenant == s->salt.tenant
           && c->salt.salt == s->salt.salt
           && memcmp(c->tokens, s->tokens,
                     n * LLM_KV_PAGE * sizeof(int32_t)) == 0;
}


static uint32_t
parent_of(const seq_t *s, uint32_t i)
{
    return i ? s->page[i - 1] : LLM_PAGE_NONE;
}


static void
drop_all(llm_pages_t *p, seq_t *s)
{
    while (s->n) {
        llm_pages_drop(p, s->page[--s->n], LLM_PAGES_FIRST);
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

    memset(s, 0, sizeof(*s));
    s->live = 1;
    s->salt.tenant = rnd(2);
    s->salt.salt = rnd(2);

    for (i = 0; i < MAX_LEN; i++) {
        fill(s->tokens + i * LLM_KV_PAGE);
    }

    good = 1;

    for (i = 0; i < MAX_LEN - 1; i++) {
        page = llm_pages_find(p, parent_of(s, i), &s->salt,
                              s->tokens + i * LLM_KV_PAGE);
        if (page == LLM_PAGE_NONE) {
            break;
        }

        good &= same_prefix(&contents[page], s, i + 1);
        llm_pages_hold(p, page, LLM_PAGES_FIRST);
        s->page[s->n++] = page;
        s->n_tree++;
    }

    return good;
}


static int
grow(llm_pages_t *p, seq_t *s)
{
    uint32_t    i, k, page;
    content_t  *c;

    if (s->n == MAX_LEN) {
        return 1;
    }

    page = alloc(p);
    if (page == LLM_PAGE_NONE) {
        return llm_pages_available(p, LLM_PAGES_FIRST) == 0;
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

    c = &contents[page];
    c->salt = s->salt;
    c->n = s->n;
    memcpy(c->tokens, s->tokens, sizeof(c->tokens));

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
                            s->tokens + i * LLM_KV_PAGE);
    s->page[i] = page;

    return same_prefix(&contents[page], s, i + 1)
           && llm_pages_find(p, parent_of(s, i), &s->salt,
                             s->tokens + i * LLM_KV_PAGE) == page;
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

    return held + llm_pages_available(p, LLM_PAGES_FIRST) == N_PAGES;
}


static void
test_random(void)
{
    int           good, even;
    seq_t        *s;
    uint32_t      step, shared, i;
    llm_pages_t  *p;

    p = llm_pages_create(N_PAGES, N_PAGES, 0);
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

    is_int(llm_pages_available(p, LLM_PAGES_FIRST), N_PAGES, "all come back");

    llm_pages_free(p);
}


/* the oldest prefix goes first, its end before its beginning */

static void
test_lru(void)
{
    int32_t       tokens[3][LLM_KV_PAGE];
    uint32_t      i, page, a[2], b;
    llm_salt_t    salt = { 0, 0 };
    llm_pages_t  *p;

    for (i = 0; i < 3; i++) {
        memset(tokens[i], (int) i + 1, sizeof(tokens[i]));
    }

    p = llm_pages_create(3, 3, 0);

    a[0] = llm_pages_commit(p, alloc(p), LLM_PAGE_NONE, &salt,
                            tokens[0]);
    a[1] = llm_pages_commit(p, alloc(p), a[0], &salt, tokens[1]);
    llm_pages_drop(p, a[1], LLM_PAGES_FIRST);
    llm_pages_drop(p, a[0], LLM_PAGES_FIRST);

    b = llm_pages_commit(p, alloc(p), LLM_PAGE_NONE, &salt,
                         tokens[2]);
    llm_pages_drop(p, b, LLM_PAGES_FIRST);

    is_int(llm_pages_cached(p, LLM_PAGES_FIRST), 3, "three pages are kept");

    page = alloc(p);
    is_int(page, a[1], "the leaf of the oldest goes first");
    is_int(llm_pages_find(p, LLM_PAGE_NONE, &salt, tokens[0]), a[0],
           "its parent is still there");
    is_int(llm_pages_find(p, a[0], &salt, tokens[1]), LLM_PAGE_NONE,
           "it is not");

    is_int(alloc(p), a[0], "then the parent");
    is_int(alloc(p), b, "then the younger prefix");
    is_int(alloc(p), LLM_PAGE_NONE, "then nothing is left");

    llm_pages_drop(p, page, LLM_PAGES_FIRST);
    is_int(alloc(p), page, "a private page is free at once");

    llm_pages_free(p);
}


/* the same tokens under another salt or parent are another block */

static void
test_salt(void)
{
    int32_t       tokens[LLM_KV_PAGE];
    uint32_t      a, b;
    llm_salt_t    one = { 1, 0 }, two = { 2, 0 }, three = { 1, 1 };
    llm_pages_t  *p;

    memset(tokens, 0, sizeof(tokens));
    p = llm_pages_create(4, 4, 0);

    a = llm_pages_commit(p, alloc(p), LLM_PAGE_NONE, &one, tokens);
    is_int(llm_pages_find(p, LLM_PAGE_NONE, &one, tokens), a, "found");
    is_int(llm_pages_find(p, LLM_PAGE_NONE, &two, tokens), LLM_PAGE_NONE,
           "not by another tenant");
    is_int(llm_pages_find(p, LLM_PAGE_NONE, &three, tokens), LLM_PAGE_NONE,
           "not with another salt");
    is_int(llm_pages_find(p, a, &one, tokens), LLM_PAGE_NONE,
           "not behind itself");

    tokens[LLM_KV_PAGE - 1] = 1;
    is_int(llm_pages_find(p, LLM_PAGE_NONE, &one, tokens), LLM_PAGE_NONE,
           "not with another last token");
    tokens[LLM_KV_PAGE - 1] = 0;

    b = llm_pages_commit(p, alloc(p), LLM_PAGE_NONE, &one, tokens);
    is_int(b, a, "the same block twice becomes one");
    is_int(llm_pages_available(p, LLM_PAGES_FIRST), 3,
           "and the second page is free");

    llm_pages_free(p);
}


static int
is_bare(const llm_pages_t *p, uint32_t node)
{
    return llm_pages_number(p, node, LLM_PAGES_FIRST) == LLM_PAGE_NONE;
}


/* a path of six blocks on four pages: two are held at a time */

static void
test_bare(void)
{
    int32_t       tokens[6][LLM_KV_PAGE];
    uint32_t      i, node[6], parent, evicted, found;
    llm_salt_t    salt = { 0, 0 };
    llm_pages_t  *p;

    for (i = 0; i < 6; i++) {
        memset(tokens[i], (int) i + 1, sizeof(tokens[i]));
    }

    p = llm_pages_create(4, 16, 0);

    for (i = 0; i < 6; i++) {
        parent = i ? node[i - 1] : LLM_PAGE_NONE;
        node[i] = llm_pages_commit(p, llm_pages_alloc(p, &evicted), parent,
                                   &salt, tokens[i]);
        is_int(evicted, i < 4 ? LLM_PAGE_NONE : node[i - 4],
               "block %u: what lost its page", i);

        if (i) {
            llm_pages_drop(p, node[i - 1], LLM_PAGES_FIRST);
        }
    }

    (void) llm_pages_assert(p);

    for (i = 0, found = 0, parent = LLM_PAGE_NONE; i < 6; i++) {
        parent = llm_pages_find(p, parent, &salt, tokens[i]);
        found += parent == node[i]
                 && is_bare(p, parent) == (i < 2);
    }

    is_int(found, 6, "the path is found, its first two nodes bare");

    /* the first block is computed again */

    i = llm_pages_commit(p, llm_pages_alloc(p, &evicted), LLM_PAGE_NONE,
                         &salt, tokens[0]);
    is_int(i, node[0], "computed again: the same node");
    ok(!is_bare(p, i), "which has a page again");
    llm_pages_drop(p, i, LLM_PAGES_FIRST);
    llm_pages_drop(p, node[5], LLM_PAGES_FIRST);
    is_int(llm_pages_available(p, LLM_PAGES_FIRST), 4, "all pages can be had");

    /* four new blocks take all pages: nothing is left of the path */

    for (i = 0; i < 4; i++) {
        (void) llm_pages_alloc(p, &evicted);
        (void) llm_pages_assert(p);
    }

    is_int(llm_pages_find(p, LLM_PAGE_NONE, &salt, tokens[0]), LLM_PAGE_NONE,
           "a path without any page is gone");

    llm_pages_free(p);
}


/*
 * Random paths of which the last WINDOW pages are held.  Where nodes are few,
 * beginnings of paths are lost; what is found must always be what was put
 * there.
 */

#define WINDOW  2

static void
test_windows(uint32_t n_nodes)
{
    int           good;
    seq_t        *s;
    uint32_t      step, i, page, found, present, evicted, n_bare;
    content_t    *c;
    llm_pages_t  *p;

    static content_t  of[64];           /* by node */

    memset(seqs, 0, sizeof(seqs));
    p = llm_pages_create(30, n_nodes, 0);
    good = 1;
    found = 0;
    n_bare = 0;

    for (step = 0; step < 200000; step++) {
        s = &seqs[rnd(N_SEQS)];

        if (s->live && (s->n == MAX_LEN || rnd(8) == 0)) {
            for (i = s->n; i-- > (s->n > WINDOW ? s->n - WINDOW : 0); ) {
                llm_pages_drop(p, s->page[i], LLM_PAGES_FIRST);
            }

            s->live = 0;
            continue;
        }

        if (!s->live) {
            memset(s, 0, sizeof(*s));
            s->live = 1;
            s->salt.tenant = rnd(2);
            page = LLM_PAGE_NONE;

            for (i = 0; i < MAX_LEN; i++) {
                fill(s->tokens + i * LLM_KV_PAGE);
            }

            for (i = 0, present = 0; i < MAX_LEN - 1; i++) {
                page = llm_pages_find(p, page, &s->salt,
                                      s->tokens + i * LLM_KV_PAGE);
                if (page == LLM_PAGE_NONE) {
                    break;
                }

                s->page[i] = page;
                good &= same_prefix(&of[page], s, i + 1);
                present++;

                if (is_bare(p, page)) {
                    n_bare++;
                    present = 0;
                }

                if (present >= llm_min(i + 1, WINDOW)) {
                    s->n = i + 1;
                }
            }

            for (i = s->n > WINDOW ? s->n - WINDOW : 0; i < s->n; i++) {
                llm_pages_hold(p, s->page[i], LLM_PAGES_FIRST);
            }

            found += s->n > WINDOW;
            continue;
        }

        i = s->n;
        page = llm_pages_alloc(p, &evicted);

        if (page == LLM_PAGE_NONE) {
            good = 0;
            break;
        }

        page = llm_pages_commit(p, page, parent_of(s, i), &s->salt,
                                s->tokens + i * LLM_KV_PAGE);
        s->page[s->n++] = page;
        c = &of[page];
        c->salt = s->salt;
        c->n = s->n;
        memcpy(c->tokens, s->tokens, sizeof(c->tokens));

        if (s->n > WINDOW) {
            llm_pages_drop(p, s->page[s->n - 1 - WINDOW], LLM_PAGES_FIRST);
        }

        if (step % 64 == 0) {
            (void) llm_pages_assert(p);
        }
    }

    ok(good, "%u nodes: what is found is what was put there", n_nodes);
    ok(found > 1000 && n_bare > 100, "%u paths beyond a window, %u bare "
       "nodes", found, n_bare);

    llm_pages_free(p);
}


static content_t  written[LLM_PAGES_KINDS][64];     /* by page */


/* what is in the pages of a node is the beginning of s that leads to it */

static int
holds(const llm_pages_t *p, const seq_t *s, uint32_t i, uint32_t kind)
{
    return same_prefix(&written[kind][llm_pages_number(p, s->page[i], kind)],
                       s, i + 1);
}


static uint32_t
first_window(const seq_t *s)
{
    return s->n > WINDOW ? s->n - WINDOW : 0;
}


static void
drop_both(llm_pages_t *p, seq_t *s)
{
    uint32_t  i;

    for (i = s->n; i-- > first_window(s); /* void */ ) {
        llm_pages_drop(p, s->page[i], LLM_PAGES_WINDOW);
    }

    drop_all(p, s);
}


static int
start_both(llm_pages_t *p, seq_t *s)
{
    int       good;
    uint32_t  i, page, present;

    memset(s, 0, sizeof(*s));
    s->live = 1;
    s->salt.tenant = rnd(2);
    page = LLM_PAGE_NONE;
    good = 1;

    for (i = 0; i < MAX_LEN; i++) {
        fill(s->tokens + i * LLM_KV_PAGE);
    }

    for (i = 0, present = 0; i < MAX_LEN - 1; i++) {
        page = llm_pages_find(p, page, &s->salt,
                              s->tokens + i * LLM_KV_PAGE);
        if (page == LLM_PAGE_NONE) {
            break;
        }

        s->page[i] = page;
        good &= holds(p, s, i, LLM_PAGES_FIRST);
        present++;

        if (llm_pages_number(p, page, LLM_PAGES_WINDOW) == LLM_PAGE_NONE) {
            present = 0;

        } else {
            good &= holds(p, s, i, LLM_PAGES_WINDOW);
        }

        s->n = present >= llm_min(i + 1, WINDOW) ? i + 1 : s->n;
    }

    for (i = 0; i < s->n; i++) {
        llm_pages_hold(p, s->page[i], LLM_PAGES_FIRST);

        if (i >= first_window(s)) {
            llm_pages_hold(p, s->page[i], LLM_PAGES_WINDOW);
        }
    }

    return good;
}


/* one more block of both kinds; LLM_FULL: there is no page */

static int
grow_both(llm_pages_t *p, seq_t *s, int *good)
{
    uint32_t   i, k, page;
    content_t  c;

    i = s->n;
    page = alloc(p);

    if (page == LLM_PAGE_NONE) {
        return LLM_FULL;
    }

    if (llm_pages_attach(p, page) != LLM_OK) {
        *good &= llm_pages_available(p, LLM_PAGES_WINDOW) == 0;
        llm_pages_drop(p, page, LLM_PAGES_FIRST);
        return LLM_FULL;
    }

    c.salt = s->salt;
    c.n = i + 1;
    memcpy(c.tokens, s->tokens, sizeof(c.tokens));

    for (k = 0; k < LLM_PAGES_KINDS; k++) {
        written[k][llm_pages_number(p, page, k)] = c;
    }

    s->page[i] = llm_pages_commit(p, page, parent_of(s, i), &s->salt,
                                  s->tokens + i * LLM_KV_PAGE);
    s->n++;

    for (k = 0; k < LLM_PAGES_KINDS; k++) {
        *good &= holds(p, s, i, k);
    }

    if (s->n > WINDOW && rnd(2)) {
        llm_pages_drop(p, s->page[s->n - 1 - WINDOW], LLM_PAGES_WINDOW);

    } else if (s->n > WINDOW) {
        llm_pages_pass(p, s->page[s->n - 1 - WINDOW], LLM_PAGES_WINDOW);
    }

    return LLM_OK;
}


/* the same where all pages of the first kind are held, and of the second the
   last ones */

static void
test_both(uint32_t n, uint32_t n_windows)
{
    int           good;
    seq_t        *s;
    uint32_t      step, found, full;
    llm_pages_t  *p;

    memset(seqs, 0, sizeof(seqs));
    p = llm_pages_create(n, n, n_windows);
    good = 1;
    found = 0;
    full = 0;

    for (step = 0; step < 200000; step++) {
        s = &seqs[rnd(N_SEQS)];

        if (!s->live) {
            good &= start_both(p, s);
            found += s->n > WINDOW;

        } else if (s->n == MAX_LEN || rnd(8) == 0) {
            drop_both(p, s);

        } else if (grow_both(p, s, &good) != LLM_OK) {
            full++;
            drop_both(p, s);
        }

        if (step % 64 == 0) {
            (void) llm_pages_assert(p);
        }
    }

    for (s = seqs; s < seqs + N_SEQS; s++) {
        drop_both(p, s);
    }

    ok(good && found > 1000 && full > 100, "%u pages, %u of windows: what is "
       "found is what was put there; %u paths, %u times there was none", n,
       n_windows, found, full);
    is_int(llm_pages_assert(p), 0, "nobody holds any");
    ok(llm_pages_available(p, LLM_PAGES_FIRST) == n
       && llm_pages_available(p, LLM_PAGES_WINDOW) == n_windows,
       "and all can be had");

    llm_pages_free(p);
}


/* pages that were passed give way before those that were dropped */

static void
test_pass(void)
{
    int32_t       tokens[3][LLM_KV_PAGE] = { { 1 }, { 2 }, { 3 } };
    uint32_t      i, node[3], page;
    llm_salt_t    salt = { 0, 0 };
    llm_pages_t  *p;

    p = llm_pages_create(4, 4, 3);
    page = LLM_PAGE_NONE;

    for (i = 0; i < 3; i++) {
        page = alloc(p);
        (void) llm_pages_attach(p, page);
        node[i] = llm_pages_commit(p, page, i ? node[i - 1] : LLM_PAGE_NONE,
                                   &salt, tokens[i]);
    }

    llm_pages_drop(p, node[0], LLM_PAGES_WINDOW);
    llm_pages_pass(p, node[1], LLM_PAGES_WINDOW);
    llm_pages_drop(p, node[2], LLM_PAGES_WINDOW);

    page = alloc(p);
    is_int(llm_pages_attach(p, page), LLM_OK, "a page of windows");
    ok(llm_pages_number(p, node[1], LLM_PAGES_WINDOW) == LLM_PAGE_NONE
       && llm_pages_number(p, node[0], LLM_PAGES_WINDOW) != LLM_PAGE_NONE,
       "is one that was passed");
    ok(llm_pages_in_tree(p, node[1])
       && llm_pages_number(p, node[1], LLM_PAGES_FIRST) != LLM_PAGE_NONE,
       "whose node stays");

    llm_pages_drop(p, page, LLM_PAGES_WINDOW);

    for (i = 3; i-- > 0; /* void */ ) {
        llm_pages_drop(p, node[i], LLM_PAGES_FIRST);
    }

    llm_pages_drop(p, page, LLM_PAGES_FIRST);

    for (i = 0; i < 4; i++) {
        (void) alloc(p);
    }

    is_int(llm_pages_available(p, LLM_PAGES_WINDOW), 3,
           "with its other page a node loses that, too");
    (void) llm_pages_assert(p);
    llm_pages_free(p);
}


int
main(void)
{
    test_lru();
    test_salt();
    test_random();
    test_bare();
    test_windows(31);
    test_windows(64);
    test_pass();
    test_both(40, 30);
    test_both(60, 20);

    return done_testing();
}
