/*
 * Recurrent state in the scheduler: which prompts find a snapshot, how much is
 * computed, and that the text is the same whatever is found.
 */

#include "t/unit/sched_rig.h"


static void
random_ids(int32_t *ids, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        ids[i] = (int32_t) rnd(256);
    }
}


/* asks and runs to the end; returns how many rows that took */

static uint32_t
run_one(uint32_t slot, const int32_t *ids, uint32_t n, uint32_t gen,
    uint32_t flags)
{
    uint64_t  before;

    before = n_rows;
    add(ask(slot, ids, n, 1, gen, flags));
    (void) run();

    return (uint32_t) (n_rows - before);
}


static uint32_t
snapshots(void)
{
    return (uint32_t) llm_zone_get(zone->models[0].figures.snapshots);
}


static void
test_repeated(void)
{
    int32_t   ids[200];
    uint32_t  n;

    random_ids(ids, 200);
    open_all(64, 300, 4, 64, 1 << 17);

    n = run_one(0, ids, 100, 10, 0);
    is_int(asks[0].cached, 0, "nothing is cached at first");
    is_int(n, 109, "a row for each token but the last");
    is_int(snapshots(), 1, "a snapshot of the prompt");

    n = run_one(1, ids, 100, 10, 0);
    is_int(asks[1].cached, 96, "the same prompt finds it");
    is_int(n, 13, "and the rest is computed");
    ok(is_right(&asks[0], 0, 10) && is_right(&asks[1], 0, 10),
       "the texts are right");

    (void) run_one(2, ids, 96, 1, 0);
    is_int(asks[2].cached, 0, "nothing is found before it");
    ok(is_right(&asks[2], 0, 1), "the text is right");

    (void) run_one(3, ids, 100, 10, LLM_REQ_NO_CACHE);
    is_int(asks[3].cached, 0, "nor if the request does not want it");
    ok(is_right(&asks[3], 0, 10), "the text is the same");

    (void) ask(4, ids, 100, 1, 10, 0);
    asks[4].req->prep.salt.tenant = 9;
    add(&asks[4]);
    (void) run();
    is_int(asks[4].cached, 0, "nor by another tenant");
    ok(is_right(&asks[4], 0, 10), "the text is the same");

    (void) ask(5, ids, 100, 1, 10, 0);
    asks[5].req->prep.salt.salt = 9;
    add(&asks[5]);
    (void) run();
    is_int(asks[5].cached, 0, "nor with another salt");

    close_all();
}


/* the answer is a part of the next prompt */

static void
test_turns(void)
{
    uint32_t  n, turn, gen;
    int32_t   ids[1000];

    random_ids(ids, 1000);
    open_all(128, 1100, 4, 64, 1 << 17);
    n = 50;
    gen = 150;

    for (turn = 0; turn < 4; turn++) {
        (void) run_one(turn, ids, n, gen, 0);
        ok(is_right(&asks[turn], 0, gen), "turn %u is right", turn);

        if (turn) {
            ok(asks[turn].cached >= n - 10 - 64 - LLM_KV_PAGE,
               "it finds %u of %u tokens", asks[turn].cached, n);
        }

        memcpy(ids + n, asks[turn].ids[0], gen * sizeof(*ids));
        n += gen + 10;
    }

    is_int(snapshots(), 8, "two snapshots a turn: its prompt's and its "
           "answer's");

    close_all();
}


/* several prompts with one beginning: the second finds that it is one */

static void
test_beginning(void)
{
    uint32_t  i;
    int32_t   ids[400];

    random_ids(ids, 400);
    open_all(200, 500, 4, 64, 1 << 17);

    for (i = 0; i < 4; i++) {
        random_ids(ids + 330, 70);
        (void) run_one(i, ids, 400, 5, 0);
        ok(is_right(&asks[i], 0, 5), "prompt %u is right", i);
        is_int(asks[i].cached, i < 2 ? 0 : 320, "%u of it are found",
               asks[i].cached);
    }

    close_all();
}


/* a long prompt leaves snapshots on its way */

static void
test_long(void)
{
    int32_t  ids[1000];

    random_ids(ids, 1000);
    open_all(200, 1100, 4, 300, 1 << 17);

    (void) run_one(0, ids, 1000, 5, 0);
    ids[700] ^= 1;
    (void) run_one(1, ids, 1000, 5, 0);
    is_int(asks[1].cached, 512, "another way at 700: 512 are found");
    ok(is_right(&asks[1], 0, 5), "the text is right");

    close_all();
}


/* they come together and begin alike: that is computed once */

static void
test_together(uint32_t n_same, uint32_t chunk)
{
    int       good;
    int32_t   ids[300];
    uint32_t  i, once;
    uint64_t  n;

    random_ids(ids, 300);
    open_all(300, 400, 8, chunk, 1 << 17);

    for (i = 0; i < 8; i++) {
        ids[n_same] = (int32_t) i;
        add(ask(i, ids, 230, 1, 20, 0));
    }

    (void) run();

    for (i = 0, good = 1; i < 8; i++) {
        good &= is_right(&asks[i], 0, 20);
    }

    n = llm_zone_get(zone->models[0].own.prompt_computed);
    once = n_same / LLM_KV_PAGE * LLM_KV_PAGE;

    ok(good, "eight with %u tokens alike, %u rows a step: right", n_same,
       chunk);
    is_int(n, 230 + 7 * (230 - once), "these were computed once");

    close_all();
}


/* choices get copies of the state, not the computing */

static void
test_choices(void)
{
    int32_t   ids[100];
    uint32_t  i, good;

    random_ids(ids, 100);
    open_all(64, 300, 4, 128, 1 << 17);
    add(ask(0, ids, 70, 4, 40, 0));
    (void) run();

    for (i = 0, good = 0; i < 4; i++) {
        good += (uint32_t) is_right(&asks[0], i, 40);
    }

    is_int(good, 4, "four choices are right");
    is_int(llm_zone_get(zone->models[0].own.prompt_computed), 70,
           "the prompt was computed once");
    close_all();
}


/* a preempted sequence goes on from its last snapshot */

static void
test_resumed(void)
{
    int32_t   ids[100];
    uint32_t  i, k, good;
    uint64_t  all;

    open_all(24, 300, 3, 48, 1 << 17);
    all = 0;

    for (i = 0; i < 3; i++) {
        random_ids(ids, 100);
        add(ask(i, ids, 100, 1, 120, 0));
        all += 219;
    }

    (void) run();

    for (k = 0, good = 0; k < 3; k++) {
        good += (uint32_t) is_right(&asks[k], 0, 120);
    }

    is_int(good, 3, "three on the pages of one and a half are right");
    ok(llm_zone_get(zone->models[0].own.preemptions) > 0
       && n_rows < all + 2 * 219, "%u rows of %u were computed again",
       (uint32_t) (n_rows - all), (uint32_t) all);

    close_all();
}


/* who comes often keeps its snapshot, and pages take theirs with them */

static void
test_evicted(void)
{
    int32_t   often[64], ids[96];
    uint32_t  i, found;

    random_ids(often, 64);
    open_all(400, 100, 2, 64, 1 << 17);
    (void) run_one(0, often, 64, 1, 0);

    for (i = 0, found = 0; i < 20; i++) {
        random_ids(ids, 64);
        (void) run_one(1, ids, 64, 1, 0);
        (void) run_one(0, often, 64, 1, 0);
        found += asks[0].cached == 48;
    }

    is_int(found, 20, "used often: always found");
    ok(snapshots() <= recurrent + 2, "%u snapshots of 21", snapshots());

    (void) run_one(1, ids, 64, 1, 0);
    is_int(asks[1].cached, 48, "so is the last one");

    close_all();

    /* pages for one prompt and a half */

    open_all(8, 100, 1, 64, 1 << 17);
    random_ids(ids, 96);
    (void) run_one(0, often, 64, 1, 0);
    (void) run_one(1, ids, 96, 1, 0);
    is_int(snapshots(), 1, "pages of another: their snapshots only");
    (void) run_one(0, often, 64, 1, 0);
    ok(asks[0].cached == 0 && is_right(&asks[0], 0, 1),
       "the first is computed again");

    close_all();
}


/* a parked sequence keeps its state; if that is taken it is made again */

static void
test_parked(void)
{
    int32_t   ids[64];
    uint32_t  i, k, good;

    for (k = 0; k < 2; k++) {
        open_all(k ? 12 : 64, 150, 1, 32, 1 << 17);
        random_ids(ids, 64);
        add(ask(0, ids, 40, 1, 100, 0));

        for (i = 0; i < 30; i++) {
            (void) step();
            read_events();
        }

        asks[0].req->out.paused = 1;
        ids[3] ^= 1;
        add(ask(1, ids, 40, 1, 100, 0));

        for (i = 0; i < 400 && !asks[1].over; i++) {
            (void) step();
            read_events();
        }

        asks[0].req->out.paused = 0;
        (void) run();

        good = (uint32_t) (is_right(&asks[0], 0, 100)
                           && is_right(&asks[1], 0, 100));
        ok(good, "parked, %s: both are right",
           k ? "its pages taken" : "its state kept");
        close_all();
    }
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
        recurrent = 10;

        test_repeated();
        test_turns();
        test_beginning();
        test_long();
        test_together(210, 48);
        test_together(210, 250);
        test_together(229, 100);
        test_choices();
        test_resumed();
        test_parked();

        recurrent = 3;
        test_evicted();
    }

    tv_close(&tiny);

    return done_testing();
}
