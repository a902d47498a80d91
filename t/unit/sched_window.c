/*
 * Pages that have left the window of all layers: they are given back, and the
 * text stays the same; the prefix cache goes on from the last window of a
 * path.
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


/* the most pages held at once until nothing lives */

static uint32_t
run_counting(void)
{
    uint32_t  i, idle, held, most;

    most = 0;

    for (i = 0, idle = 0; i < 20000 && idle < 5; i++) {
        idle = step() ? 0 : idle + 1;
        read_events();
        held = llm_pages_total(sched->pages) - free_pages();
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
    most = run_counting();

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


/*
 * A prompt goes on behind what the cache has, and its rows take all pages that
 * are left: those that the window leaves come back only with their results.
 */

static void
test_tight(uint32_t n_pages)
{
    int      good;
    int32_t  ids[145];

    random_ids(ids, 145);
    window = 70;
    open_all(n_pages, 300, 1, 64, 1 << 17);

    add(ask(0, ids, 81, 1, 1, 0));
    (void) run();
    add(ask(1, ids, 145, 1, 40, 0));
    good = run() == LLM_OK && asks[1].cached == 80
           && is_right(&asks[1], 0, 40);

    ok(good && llm_zone_get(zone->models[0].figures.preemptions) == 0,
       "145 tokens with %u pages, behind %u: right", n_pages,
       asks[1].cached);
    close_all();
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
    is_int(llm_zone_get(zone->models[0].figures.prompt_computed), 170,
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
        test_tight(9);
        test_tight(8);
        test_storms();
    }

    tv_close(&tiny);

    return done_testing();
}
