/*
 * Pages that have left the window of all layers, or of those that have pages
 * of their own: they are given back, and the text stays the same; the prefix
 * cache goes on from the last window of a path.
 */

#include "t/unit/sched_storm.h"


static void
random_ids(int32_t *ids, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        ids[i] = (int32_t) rnd(256);
    }
}


/* the most pages of a kind held at once until nothing lives */

static uint32_t
run_counting(uint32_t kind)
{
    uint32_t  i, idle, held, most;

    most = 0;

    for (i = 0, idle = 0; i < 20000 && idle < 5; i++) {
        idle = step() ? 0 : idle + 1;
        read_events();
        held = llm_pages_total(sched->pages, kind)
               - llm_pages_available(sched->pages, kind);
        most = llm_max(most, held);
    }

    return most;
}


/* a sequence holds its window, whatever its length */

static void
test_memory(uint32_t flags)
{
    int32_t   ids[1000];
    uint32_t  most;

    random_ids(ids, 1000);
    window = 40;
    open_all(60, 1200, 2, 64, 1 << 17);

    add(ask(0, ids, 1000, 1, 150, flags));
    most = run_counting(LLM_KV_FULL);

    ok(is_right(&asks[0], 0, 150), "1150 tokens, a window of 40: right");

    /* the window, a chunk in flight and the next one, the page before */
    ok(most <= 3 + 4 + 4 + 2, "%u pages at most", most);
    is_int(free_pages(), 60, "all pages came back");

    close_all();

    /* the least there may be, so that a chunk is cut */

    open_all(window / LLM_KV_PAGE + 4, 1200, 2, 64, 1 << 17);
    add(ask(0, ids, 900, 1, 100, flags));
    add(ask(1, ids, 700, 1, 100, flags));
    (void) run();
    ok(is_right(&asks[0], 0, 100) && is_right(&asks[1], 0, 100),
       "two on the least pages: right");
    close_all();
}


static void
test_prefix(void)
{
    int32_t   ids[1000], other[1000];
    uint32_t  i, found;

    random_ids(ids, 1000);
    random_ids(other, 1000);
    window = 40;
    open_all(24, 1200, 2, 64, 1 << 17);

    add(ask(0, ids, 900, 1, 5, 0));
    (void) run();
    is_int(asks[0].cached, 0, "nothing is cached at first");

    add(ask(1, ids, 900, 1, 5, 0));
    (void) run();
    is_int(asks[1].cached, 896, "56 pages of a prompt, in a cache of 24");
    ok(is_right(&asks[1], 0, 5), "the text is right");

    (void) ask(2, ids, 900, 1, 5, 0);
    asks[2].req->prep.salt.tenant = 9;
    add(&asks[2]);
    (void) run();
    is_int(asks[2].cached, 0, "not for another tenant");
    ok(is_right(&asks[2], 0, 5), "the text is right");

    /* evicted by others, and computed again */

    for (i = 0; i < 4; i++) {
        other[0] = (int32_t) i;
        add(ask(3, other, 400, 1, 5, 0));
        (void) run();
        ok(is_right(&asks[3], 0, 5), "others evict it, %u", i);
    }

    for (i = 0, found = 0; i < 3; i++) {
        add(ask(4, ids, 900, 1, 5, 0));
        (void) run();
        found += asks[4].cached == (i ? 896 : 0);
        ok(is_right(&asks[4], 0, 5), "computed again: right, %u", i);
    }

    is_int(found, 3, "and then found again");

    close_all();
}


/* the pages of some layers leave their window, those of others stay */

static void
test_mixed_memory(uint32_t flags)
{
    int32_t   ids[1000];
    uint32_t  most;

    random_ids(ids, 1000);
    window = 40;
    n_windows = 40;
    open_all(75, 1200, 2, 64, 1 << 17);

    add(ask(0, ids, 1000, 1, 150, flags));
    most = run_counting(LLM_KV_WINDOW);

    ok(is_right(&asks[0], 0, 150), "mixed, 1150 tokens: right");
    ok(most > 3 && most <= 3 + 4 + 4 + 2, "%u pages of windows at most", most);
    ok(free_pages() == 75 && free_windows() == 40, "all pages came back");

    add(ask(1, ids, 1000, 1, 150, flags));
    most = run_counting(LLM_KV_FULL);
    ok(is_right(&asks[1], 0, 150) && most == 72,
       "the others grow with the text: %u", most);
    close_all();

    /* the least there may be */

    n_windows = window / LLM_KV_PAGE + 4;
    open_all(120, 1200, 2, 64, 1 << 17);
    add(ask(0, ids, 900, 1, 100, flags));
    add(ask(1, ids, 700, 1, 100, flags));
    (void) run();
    ok(is_right(&asks[0], 0, 100) && is_right(&asks[1], 0, 100),
       "two on the least pages of windows: right");
    close_all();
    n_windows = 0;
}


static uint32_t
cached(uint32_t slot, const int32_t *ids, uint32_t n, uint32_t max_gen)
{
    add(ask(slot, ids, n, 1, max_gen, 0));
    (void) run();
    ok(is_right(&asks[slot], 0, max_gen), "request %u of %u tokens: right",
       slot, n);

    return asks[slot].cached;
}


static void
test_mixed_prefix(void)
{
    int32_t   ids[1000], other[1000];
    uint32_t  i, n;

    random_ids(ids, 1000);
    random_ids(other, 1000);
    window = 40;
    n_windows = 24;
    open_all(400, 1200, 2, 64, 1 << 17);

    is_int(cached(0, ids, 900, 5), 0, "nothing is cached at first");
    is_int(cached(1, ids, 900, 5), 896, "56 pages, 24 of windows");

    /* what another prompt passes does not push it out, their ends do */

    is_int(cached(2, other, 1000, 5), 0, "nothing of another prompt");
    is_int(cached(3, ids, 900, 5), 896, "the first one is still there");

    for (i = 0; i < 10; i++) {
        other[0] = (int32_t) i;
        (void) cached(4, other, 90, 5);
    }

    is_int(cached(5, ids, 900, 5), 0, "without its window it is not found");
    is_int(llm_pages_cached(sched->pages, LLM_KV_FULL) < 200, 1,
           "what is computed again is there once");
    is_int(cached(6, ids, 900, 5), 896, "then it is found again");

    (void) ask(7, ids, 900, 1, 5, 0);
    asks[7].req->prep.salt.tenant = 9;
    add(&asks[7]);
    (void) run();
    ok(asks[7].cached == 0 && is_right(&asks[7], 0, 5),
       "not for another tenant");

    /* the next turn */

    n = 900 + 5;
    memcpy(ids + 900, asks[6].ids[0], 5 * sizeof(*ids));
    is_int(cached(8, ids, 900, 5), 896, "its turn");
    is_int(cached(9, ids, n + 40, 20), 896, "the next one");
    close_all();

    /* a beginning that many have, with few pages of windows */

    n_windows = 20;
    open_all(400, 1200, 1, 64, 1 << 17);

    for (i = 0; i < 6; i++) {
        random_ids(ids + 400, 600);
        n = cached(i, ids, 1000, 5);
        ok(i < 2 || n == 400, "prompt %u with the same beginning: %u", i, n);
    }

    close_all();
    n_windows = 0;
}


/*
 * A prompt goes on behind what the cache has, and its rows take all pages that
 * are left: those that the window leaves come back only with their results.
 */

static void
test_tight(uint32_t n_pages, uint32_t n_of_windows)
{
    int      good;
    int32_t  ids[145];

    random_ids(ids, 145);
    window = 70;
    n_windows = n_of_windows;
    open_all(n_pages, 300, 1, 64, 1 << 17);

    add(ask(0, ids, 81, 1, 1, 0));
    (void) run();
    add(ask(1, ids, 145, 1, 40, 0));
    good = run() == LLM_OK && asks[1].cached == 80
           && is_right(&asks[1], 0, 40);

    ok(good && llm_zone_get(zone->models[0].own.preemptions) == 0,
       "145 tokens with %u pages, behind %u: right", n_pages,
       asks[1].cached);
    close_all();
    n_windows = 0;
}


static void
test_choices(void)
{
    int32_t   ids[200];
    uint32_t  i, good;

    random_ids(ids, 200);
    window = 40;
    open_all(60, 400, 4, 64, 1 << 17);
    add(ask(0, ids, 170, 4, 100, 0));
    (void) run();

    for (i = 0, good = 0; i < 4; i++) {
        good += (uint32_t) is_right(&asks[0], i, 100);
    }

    is_int(good, 4, "four choices are right");
    is_int(llm_zone_get(zone->models[0].own.prompt_computed), 170,
           "the prompt was computed once");
    close_all();
}


static void
test_storms(void)
{
    static const uint32_t  windows[] = { 1, 15, 16, 33, 70, 500 };

    uint32_t  i;

    for (i = 0; i < llm_nelems(windows); i++) {
        window = windows[i];
        recurrent = i % 2 ? 0 : 6;
        printf("# a window of %u, %u snapshots\n", window, recurrent);

        test_storm(200, 8, 64, 0);
        test_storm(40, 8, 64, 0);
        test_storm(23, 6, 7, 0);
        test_storm(30, 6, 33, LLM_REQ_NO_CACHE);

        if (window < 200) {
            test_storm(9, 3, 64, 0);
        }
    }

    recurrent = 0;
}


/* the same with pages of their own for the windows of some layers */

static void
test_mixed_storms(void)
{
    static const uint32_t  windows[] = { 1, 15, 16, 33, 70 };

    uint32_t  i, least;

    for (i = 0; i < llm_nelems(windows); i++) {
        window = windows[i];
        recurrent = i % 2 ? 6 : 0;
        least = window / LLM_KV_PAGE + 4;
        printf("# a window of %u in some layers, %u snapshots\n", window,
               recurrent);

        n_windows = 200;
        test_storm(200, 8, 64, 0);
        test_storm(40, 8, 64, 0);

        n_windows = 23;
        test_storm(200, 8, 64, 0);
        test_storm(60, 6, 33, LLM_REQ_NO_CACHE);

        n_windows = least;
        test_storm(100, 3, 7, 0);
        test_storm(25, 3, 64, 0);
    }

    recurrent = 0;
    n_windows = 0;
}


int
main(void)
{
    llm_err_t  err;

    if (tv_open(&tiny, NULL, NULL, 0, &err) != LLM_OK) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }

    for (overlapping = 0; overlapping < 2; overlapping++) {
        drawing = overlapping;

        test_memory(0);
        test_memory(LLM_REQ_NO_CACHE);
        test_prefix();
        test_choices();
        test_tight(9, 0);
        test_tight(8, 0);
        test_tight(30, 9);
        test_tight(30, 8);
        test_storms();

        test_mixed_memory(0);
        test_mixed_memory(LLM_REQ_NO_CACHE);
        test_mixed_prefix();
        n_windows = 40;
        test_choices();
        n_windows = 0;
        test_mixed_storms();
    }

    tv_close(&tiny);

    return done_testing();
}
