/*
 * Drafts in the scheduler of sched_rig.h: the text is the same whatever is
 * drafted, and fewer steps are needed for it; what was not drawn leaves nothing
 * behind, in pages, in the prefix tree, in windows, in recurrent state.
 */

#include "t/unit/sched_storm.h"


static uint64_t
counted(const _Atomic uint64_t *counters)
{
    return llm_zone_get(counters[LLM_DRAFT_NGRAM])
           + llm_zone_get(counters[LLM_DRAFT_PREDICTION]);
}


static uint64_t
accepted(void)
{
    return counted(zone->models[0].own.accepted);
}


static uint64_t
drafted(void)
{
    return counted(zone->models[0].own.drafted);
}


static void
some_ids(int32_t *ids, uint32_t n, uint32_t seed)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        ids[i] = (int32_t) ((i * 31 + seed * 7) % 250);
    }
}


/* one sequence; returns its steps */

static uint32_t
run_one(uint32_t percent, uint32_t gen, uint32_t flags)
{
    uint32_t  steps_before;
    int32_t   ids[40];

    predicting = percent;
    some_ids(ids, 40, 3);
    open_all(64, 300, 4, 64, 1 << 17);
    steps_before = n_steps;
    add(ask(0, ids, 40, 1, gen, flags));
    (void) run();

    return n_steps - steps_before;
}


static void
test_right(void)
{
    uint32_t  n;

    n = run_one(100, 150, 0);
    ok(is_right(&asks[0], 0, 150), "a prediction that is right: the text is");
    ok(n < 60, "%u steps for 150 tokens", n);
    ok(accepted() > 100 && accepted() == drafted(),
       "%llu tokens were drafted, all of them drawn",
       (unsigned long long) drafted());
    is_int(free_pages(), 64, "all pages came back");
    close_all();

    n = run_one(80, 150, LLM_REQ_ECHO);
    ok(is_right(&asks[0], 0, 150) && !asks[0].wrong,
       "one that is right in part, with probabilities: the text is right");
    ok(n < 149, "%u steps for 150 tokens", n);
    ok(accepted() > 0 && accepted() < drafted(), "%llu of %llu were drawn",
       (unsigned long long) accepted(), (unsigned long long) drafted());
    close_all();
}


/* text that does not come is soon not drafted any more */

static void
test_wrong(void)
{
    uint32_t  n;

    n = run_one(1, 190, 0);
    ok(is_right(&asks[0], 0, 190), "a wrong prediction: the text is right");
    ok(n >= 185, "%u steps", n);
    ok(drafted() < 30, "%llu tokens were drafted",
       (unsigned long long) drafted());
    close_all();
}


/* the last token is not computed, and none is drafted after it */

static void
test_ends(void)
{
    uint32_t  gen, good;

    for (gen = 1, good = 0; gen < 40; gen++) {
        (void) run_one(100, gen, 0);
        good += is_right(&asks[0], 0, gen) && free_pages() == 64
                && n_rows == 40 + gen - 1;
        close_all();
    }

    is_int(good, 39, "answers of every length, without a row too many");
}


/* choices share the prediction, and each has its own drafts */

static void
test_choices(void)
{
    uint32_t  i, good;
    int32_t   ids[40];

    predicting = 90;
    some_ids(ids, 40, 5);
    open_all(64, 300, 4, 64, 1 << 17);
    add(ask(0, ids, 40, 4, 100, 0));
    (void) run();

    for (i = 0, good = 0; i < 4; i++) {
        good += is_right(&asks[0], i, 100);
    }

    is_int(good, 4, "four choices are right");
    ok(accepted() > 100, "%llu tokens were drafted and drawn",
       (unsigned long long) accepted());
    close_all();
}


/* the next turn finds the answer in the tree, as far as it was drawn */

static void
test_turns(void)
{
    uint32_t  n, turn;
    int32_t   ids[1000];

    predicting = 85;
    some_ids(ids, 1000, 1);
    open_all(128, 1100, 4, 64, 1 << 17);
    n = 50;

    for (turn = 0; turn < 4; turn++) {
        add(ask(turn, ids, n, 1, 150, 0));
        (void) run();
        ok(is_right(&asks[turn], 0, 150), "turn %u is right", turn);

        if (turn) {
            ok(asks[turn].cached >= n - 10 - (recurrent ? 64 : 0)
                                    - LLM_KV_PAGE - LLM_DRAFT_MOST,
               "it finds %u of %u tokens", asks[turn].cached, n);
        }

        memcpy(ids + n, asks[turn].ids[0], 150 * sizeof(*ids));
        n += 160;
    }

    close_all();
}


/* a prompt beside: nothing is drafted until it has its first token */

static void
test_first(void)
{
    int32_t   ids[200];
    uint32_t  i, late;
    uint64_t  before;

    predicting = 100;
    some_ids(ids, 200, 9);
    open_all(64, 300, 4, 7, 1 << 17);
    add(ask(0, ids, 10, 1, 150, 0));

    for (i = 0; i < 8; i++) {
        (void) step();
        read_events();
    }

    ids[0] = 17;
    add(ask(1, ids, 190, 1, 20, 0));

    for (late = 0; asks[1].n_ids[0] == 0; i++) {
        before = drafted();
        (void) step();
        read_events();
        late += asks[1].n_ids[0] == 0 && drafted() != before;
    }

    is_int(late, 0, "none is drafted while a prompt is computed");
    before = drafted();
    (void) run();
    ok(drafted() > before && is_right(&asks[0], 0, 150)
       && is_right(&asks[1], 0, 20), "some are afterwards");
    close_all();
}


/* where rows cost as much as steps, a full step has no drafts */

static void
test_costs(void)
{
    double  step_us, row_us;

    predicting = 100;
    open_all(64, 300, 4, 64, 1 << 17);
    llm_speed_rows(sched, 4, &step_us, &row_us);
    ok(row_us > 0 && step_us >= 4 * row_us, "before a step was measured: %g "
       "and %g", step_us, row_us);

    /* 100 us and 10 for each row */

    sched->speed.line = (llm_line_t) { 2, 12, 320, 104, 2240 };
    llm_speed_rows(sched, 4, &step_us, &row_us);
    ok(fabs(row_us - 10) < 1e-6 && fabs(step_us - 140) < 1e-6,
       "the line through two steps: %g and %g", step_us, row_us);

    close_all();
}


static void
test_storms(void)
{
    static const uint32_t  percents[] = { 100, 90, 60 };

    uint32_t  i;

    for (i = 0; i < llm_nelems(percents); i++) {
        predicting = percents[i];
        printf("# predictions right in %u %%, window %u and %u, %u snapshots, "
               "%s\n", predicting, window, n_windows, recurrent,
               overlapping ? "steps ahead" : "step by step");

        test_storm(200, 8, 64, 0);
        test_storm(40, 8, 64, window ? 0 : LLM_REQ_ECHO);
        test_storm(25, 6, 7, 0);
        test_storm(30, 6, 33, LLM_REQ_NO_CACHE);
    }
}


static void
test_all(void)
{
    test_right();
    test_wrong();
    test_ends();
    test_choices();
    test_turns();
    test_first();
    test_storms();
}


int
main(void)
{
    llm_err_t  err;

    if (tv_open(&tiny, NULL, NULL, 0, &err) != LLM_OK) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }

    test_costs();

    for (overlapping = 0; overlapping < 2; overlapping++) {
        drawing = overlapping;

        test_all();

        recurrent = 10;
        test_all();

        window = 40;
        test_storms();
        recurrent = 0;
        test_storms();

        n_windows = 40;
        test_storms();
        n_windows = 0;
        window = 0;
    }

    tv_close(&tiny);

    return done_testing();
}
