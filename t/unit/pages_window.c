/*
 * KV pages where a sequence holds its last ones alone: pages of windows,
 * which are the only kind, or beside a kind of which all are held.
 */

#include "t/unit/pages_rig.h"

#define WINDOW     2
#define MAX_PAGES  64

static content_t  nodes[MAX_PAGES];
static content_t  written[LLM_KV_KINDS][MAX_PAGES];  /* by page */


static uint32_t
first_window(const seq_t *s)
{
    return s->n > WINDOW ? s->n - WINDOW : 0;
}


/* is what is in the pages of block i what was put there?  `kind` is the one
   that leaves */

static int
holds(const llm_pages_t *p, const seq_t *s, uint32_t i, uint32_t kind)
{
    int       good;
    uint32_t  k, page;

    good = same_prefix(&nodes[s->page[i]], s, i + 1);

    for (k = 0; k <= kind; k++) {
        page = llm_pages_number(p, s->page[i], k);

        good &= page == LLM_PAGE_NONE
                ? k == kind : same_prefix(&written[k][page], s, i + 1);
    }

    return good;
}


/* a new sequence, behind the longest beginning whose last pages are there */

static int
start(llm_pages_t *p, seq_t *s, uint32_t kind, uint32_t *n_bare)
{
    int       good;
    uint32_t  i, k, page, present;

    come(s);
    page = LLM_PAGE_NONE;
    good = 1;

    for (i = 0, present = 0; i < MAX_LEN - 1; i++) {
        page = llm_pages_find(p, page, &s->salt,
                              s->keys + i * LLM_KV_PAGE);
        if (page == LLM_PAGE_NONE) {
            break;
        }

        s->page[i] = page;
        good &= holds(p, s, i, kind);
        present++;

        if (llm_pages_number(p, page, kind) == LLM_PAGE_NONE) {
            (*n_bare)++;
            present = 0;
        }

        if (present >= llm_min(i + 1, WINDOW)) {
            s->n = i + 1;
        }
    }

    for (k = 0; k <= kind; k++) {
        for (i = k == kind ? first_window(s) : 0; i < s->n; i++) {
            llm_pages_hold(p, s->page[i], k);
        }
    }

    return good;
}


/* one more block, with pages of all kinds; LLM_FULL: there is none */

static int
grow(llm_pages_t *p, seq_t *s, uint32_t kind, int *good)
{
    uint32_t  i, k, page;

    i = s->n;
    page = alloc(p);

    if (page == LLM_PAGE_NONE) {
        return LLM_FULL;
    }

    if (kind == LLM_KV_WINDOW && llm_pages_attach(p, page) != LLM_OK) {
        *good &= llm_pages_available(p, LLM_KV_WINDOW) == 0;
        llm_pages_drop(p, page, LLM_KV_FULL);
        return LLM_FULL;
    }

    s->n++;

    for (k = 0; k <= kind; k++) {
        note(&written[k][llm_pages_number(p, page, k)], s);
    }

    s->page[i] = llm_pages_commit(p, page, parent_of(s, i), &s->salt,
                                  s->keys + i * LLM_KV_PAGE);
    note(&nodes[s->page[i]], s);
    *good &= holds(p, s, i, kind);

    if (i < WINDOW) {
        return LLM_OK;
    }

    if (kind == LLM_KV_FULL || rnd(2)) {
        llm_pages_drop(p, s->page[i - WINDOW], kind);

    } else {
        llm_pages_pass(p, s->page[i - WINDOW], kind);
    }

    return LLM_OK;
}


static void
drop(llm_pages_t *p, seq_t *s, uint32_t kind)
{
    uint32_t  i, k;

    for (k = kind + 1; k-- > 0; /* void */ ) {
        for (i = s->n; i-- > (k == kind ? first_window(s) : 0); /* void */ ) {
            llm_pages_drop(p, s->page[i], k);
        }
    }

    s->live = 0;
    s->n = 0;
}


/*
 * Random paths.  Where nodes are few, beginnings of paths are lost; what is
 * found must always be what was put there.
 */

static void
test_paths(uint32_t n, uint32_t n_nodes, uint32_t n_windows)
{
    int           good;
    seq_t        *s;
    uint32_t      step, kind, found, full, n_bare;
    llm_pages_t  *p;

    memset(seqs, 0, sizeof(seqs));
    p = llm_pages_create((uint32_t [LLM_KV_KINDS]) { n, n_windows },
                         n_nodes);
    kind = n_windows ? LLM_KV_WINDOW : LLM_KV_FULL;
    good = 1;
    found = 0;
    full = 0;
    n_bare = 0;

    for (step = 0; step < 200000; step++) {
        s = &seqs[rnd(N_SEQS)];

        if (!s->live) {
            good &= start(p, s, kind, &n_bare);
            found += s->n > WINDOW;

        } else if (s->n == MAX_LEN || rnd(8) == 0) {
            drop(p, s, kind);

        } else if (grow(p, s, kind, &good) != LLM_OK) {
            full++;
            drop(p, s, kind);
        }

        if (step % 64 == 0) {
            (void) llm_pages_assert(p);
        }
    }

    for (s = seqs; s < seqs + N_SEQS; s++) {
        drop(p, s, kind);
    }

    ok(good, "%u pages, %u nodes, %u of windows: what is found is what was "
       "put there", n, n_nodes, n_windows);
    ok(found > 1000 && n_bare > 100, "%u paths beyond a window, %u nodes "
       "without a page", found, n_bare);
    ok(n_windows ? full > 100 : full == 0, "%u times there was no page", full);
    is_int(llm_pages_assert(p), 0, "nobody holds any");
    ok(llm_pages_available(p, LLM_KV_FULL) == n
       && llm_pages_available(p, LLM_KV_WINDOW) == n_windows,
       "and all can be had");

    llm_pages_free(p);
}


/* pages that were passed give way before those that were dropped */

static void
test_pass(void)
{
    uint64_t      keys[3][LLM_KV_PAGE] = { { 1 }, { 2 }, { 3 } };
    uint32_t      i, node[3], page;
    llm_salt_t    salt = { 0, 0 };
    llm_pages_t  *p;

    p = llm_pages_create((uint32_t [LLM_KV_KINDS]) { 4, 3 }, 4);
    page = LLM_PAGE_NONE;

    for (i = 0; i < 3; i++) {
        page = alloc(p);
        (void) llm_pages_attach(p, page);
        node[i] = llm_pages_commit(p, page, i ? node[i - 1] : LLM_PAGE_NONE,
                                   &salt, keys[i]);
    }

    llm_pages_drop(p, node[0], LLM_KV_WINDOW);
    llm_pages_pass(p, node[1], LLM_KV_WINDOW);
    llm_pages_drop(p, node[2], LLM_KV_WINDOW);

    page = alloc(p);
    is_int(llm_pages_attach(p, page), LLM_OK, "a page of windows");
    ok(llm_pages_number(p, node[1], LLM_KV_WINDOW) == LLM_PAGE_NONE
       && llm_pages_number(p, node[0], LLM_KV_WINDOW) != LLM_PAGE_NONE,
       "is one that was passed");
    ok(llm_pages_in_tree(p, node[1])
       && llm_pages_number(p, node[1], LLM_KV_FULL) != LLM_PAGE_NONE,
       "whose node stays");

    llm_pages_drop(p, page, LLM_KV_WINDOW);

    for (i = 3; i-- > 0; /* void */ ) {
        llm_pages_drop(p, node[i], LLM_KV_FULL);
    }

    llm_pages_drop(p, page, LLM_KV_FULL);

    for (i = 0; i < 4; i++) {
        (void) alloc(p);
    }

    is_int(llm_pages_available(p, LLM_KV_WINDOW), 3,
           "with its other page a node loses that, too");
    (void) llm_pages_assert(p);
    llm_pages_free(p);
}


int
main(void)
{
    test_paths(30, 31, 0);
    test_paths(30, 64, 0);
    test_pass();
    test_paths(40, 40, 30);
    test_paths(60, 60, 20);

    return done_testing();
}
