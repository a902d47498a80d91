/*
 * The scheduler when pages and seats are few: preemption, choices, chunks,
 * slow readers, failures, and all of it at random.
 */

#include "t/unit/sched_storm.h"


/* ten sequences that need three times the pages there are */

static void
test_preempt(void)
{
    int       good;
    int32_t   ids[200];
    uint32_t  i, k;

    /* each needs (100 + 60) / 16 = 10 pages */

    open_all(34, 200, 10, 64, 1 << 17);

    for (i = 0; i < 10; i++) {
        for (k = 0; k < 100; k++) {
            ids[k] = (int32_t) rnd(256);
        }

        add(ask(i, ids, 100, 1, 60, 0));
    }

    is_int(run(), LLM_OK, "comes to an end");

    for (i = 0, good = 1; i < 10; i++) {
        good &= asks[i].over && is_right(&asks[i], 0, 60);
    }

    ok(good, "ten sequences on a third of the pages are whole");
    ok(llm_zone_get(zone->models[0].own.preemptions) > 0,
       "some were preempted");
    is_int(asks[0].order, 1, "the oldest ended first");

    close_all();
}


/* tokens are timed for the model, and for the account of their request */

static void
test_accounts(void)
{
    int32_t             ids[40];
    uint32_t            i, k;
    llm_hist_t          ttft, itl;
    llm_kept_t          kept;
    llm_model_stats_t   st;

    open_all(64, 200, 4, 64, 1 << 17);

    memset(&kept, 0, sizeof(kept));
    kept.models[0] = &zone->models[0].own;
    kept.times = aligned_alloc(64, 2 * llm_times_size());
    memset(kept.times, 0, 2 * llm_times_size());
    kept.n_times = 2;
    llm_sched_count_in(sched, zone, &kept);

    for (i = 0; i < 3; i++) {
        for (k = 0; k < 40; k++) {
            ids[k] = (int32_t) rnd(256);
        }

        (void) ask(i, ids, 40, 1 + i, 10, 0);
        asks[i].req->msg->account = i;
        add(&asks[i]);
    }

    (void) run();

    llm_zone_model_stats(zone, NULL, 0, &st);
    is_int(st.ttft.count, 3, "each request had a first token");
    is_int(st.itl.count, 6 * 9, "and each choice further ones");
    is_int(st.answered, 6 * 10 + 3, "the model has moved by so much");

    llm_times_stats(kept.times, 0, &ttft, &itl);
    is_int(ttft.count, 1, "the first account: a request");
    is_int(itl.count, 2 * 9, "its choices");

    llm_times_stats(kept.times, 1, &ttft, &itl);
    is_int(ttft.count, 1, "the second one");
    is_int(itl.count, 3 * 9, "its choices");

    close_all();
    free(kept.times);
}


/* the last request is ended: no step comes that would tell of it */

static void
test_gauges(void)
{
    int32_t    ids[40];
    uint32_t   k;
    llm_err_t  err;

    for (k = 0; k < 40; k++) {
        ids[k] = (int32_t) rnd(256);
    }

    open_all(64, 200, 4, 64, 1 << 17);
    add(ask(0, ids, 40, 2, 100, 0));

    is_int(llm_sched_todo(sched), 40, "its prompt is to be computed");
    (void) step();
    is_int(llm_zone_get(zone->models[0].figures.prefilling), 2,
           "after a step of 32 rows none of two choices has a token");
    is_int(llm_zone_get(zone->models[0].figures.prompt_left), 8,
           "and some of the prompt is left");
    (void) step();
    is_int(llm_zone_get(zone->models[0].figures.prefilling), 0,
           "then both have one");
    is_int(llm_zone_get(zone->models[0].figures.prompt_left), 0,
           "and nothing is left");

    is_int(llm_zone_get(zone->models[0].figures.running), 2, "two run");

    (void) llm_fail_with(&err, 504, "timeout", NULL, "too late");
    llm_sched_fail(sched, asks[0].req, &err, 0);

    is_int(llm_zone_get(zone->models[0].figures.running), 0, "none does");
    is_int(llm_zone_get(zone->models[0].figures.kv_used), 0,
           "nor holds any page");

    (void) run();
    close_all();
}


/* the prefix cache gives its pages to others */

static void
test_evictions(void)
{
    int32_t   ids[100];
    uint32_t  i, k;
    uint64_t  evictions;

    /* for two of them */
    open_all(14, 120, 2, 64, 1 << 17);

    for (i = 0; i < 2; i++) {
        for (k = 0; k < 100; k++) {
            ids[k] = (int32_t) rnd(256);
        }

        add(ask(i, ids, 100, 1, 5, 0));
        (void) run();
    }

    evictions = llm_zone_get(zone->models[0].own.evictions);
    is_int(evictions, 0, "two prompts are in the prefix cache");

    for (k = 0; k < 100; k++) {
        ids[k] = (int32_t) rnd(256);
    }

    add(ask(2, ids, 100, 1, 5, 0));
    (void) run();

    evictions = llm_zone_get(zone->models[0].own.evictions);
    is_int(evictions, 5, "the third has the pages of the first, but for the "
           "two that were free");

    close_all();
}


/* who is preempted: the last of those with the least priority */

static void
test_preempt_order(void)
{
    int       good;
    int32_t   ids[60];
    uint32_t  i;

    /* room for two of the four that run */
    open_all(24, 200, 4, 48, 1 << 17);

    for (i = 0; i < 60; i++) {
        ids[i] = (int32_t) rnd(256);
    }

    for (i = 0; i < 4; i++) {
        ids[0] = (int32_t) i;
        (void) ask(i, ids, 60, 1, 120, 0);
        asks[i].req->msg->priority = i >= 2 ? 5 : 0;
        add(&asks[i]);
    }

    (void) run();

    for (i = 0, good = 1; i < 4; i++) {
        good &= is_right(&asks[i], 0, 120);
    }

    ok(good && llm_zone_get(zone->models[0].own.preemptions) > 0,
       "four on the pages of two are whole");
    is_int(asks[2].order, 1, "the first of the higher priority ends first");
    is_int(asks[3].order, 2, "then the other one, though it came last");
    is_int(asks[0].order, 3, "then the first of the lower");

    close_all();
}


static void
test_choices(uint32_t seats, uint32_t flags)
{
    int       good;
    int32_t   ids[100];
    uint32_t  i;
    uint64_t  prompt;

    for (i = 0; i < 100; i++) {
        ids[i] = (int32_t) rnd(256);
    }

    open_all(64, 300, seats, 64, 1 << 17);
    add(ask(0, ids, 70, 3, 40, flags));
    (void) run();

    for (i = 0, good = 1; i < 3; i++) {
        good &= is_right(&asks[0], i, 40);
    }

    prompt = llm_zone_get(zone->models[0].own.prompt_computed);

    ok(good, "three choices on %u seats are right", seats);

    if (seats >= 3) {
        is_int(prompt, 70, "the prompt was computed once");
        is_int(n_copies, 2, "its last page was copied for the others");
    }

    is_int(free_pages(), 64, "all pages came back");
    close_all();
}


/* a stream beside a long prompt gets a token in every step */

static void
test_chunks(void)
{
    int32_t   ids[1000];
    uint32_t  i, steps, got;

    for (i = 0; i < 1000; i++) {
        ids[i] = (int32_t) rnd(256);
    }

    open_all(200, 1200, 4, 512, 1 << 17);
    add(ask(0, ids, 20, 1, 150, 0));

    while (asks[0].n_ids[0] < 10) {
        (void) step();
        read_events();
    }

    add(ask(1, ids, 1000, 1, 5, 0));
    got = asks[0].req->run.seqs[0].n_gen;

    for (steps = 0;
         asks[1].req->run.seqs[0].n_gen == 0 && steps < 1000;
         steps++)
    {
        (void) step();
        read_events();
    }

    is_int(asks[0].req->run.seqs[0].n_gen - got, steps, "a token in each of the "
           "%u steps of a long prompt", steps);
    ok(steps >= 20, "the prompt took many steps");
    ok(max_rows_beside <= 1000 / 20, "no more than %u of its rows in one",
       max_rows_beside);
    (void) run();
    ok(is_right(&asks[0], 0, 150) && is_right(&asks[1], 0, 5),
       "both are right");

    close_all();
}


/* a reader that does not read stops its own sequences and nobody else's */

static void
test_parked(void)
{
    int32_t   ids[4] = { 9, 8, 7, 6 };
    uint32_t  i, got;

    open_all(64, 300, 1, 16, 1 << 17);

    add(ask(0, ids, 4, 1, 100, 0));

    for (i = 0; i < 10; i++) {
        (void) step();
        read_events();
    }

    asks[0].req->out.paused = 1;
    got = asks[0].n_ids[0];
    ids[0] = 5;
    add(ask(1, ids, 4, 1, 50, 0));

    for (i = 0; i < 100; i++) {
        (void) step();
        read_events();
    }

    is_int(asks[0].n_ids[0], got, "no token for a paused one");
    ok(asks[1].over && is_right(&asks[1], 0, 50), "its seat went to another");
    is_int(llm_zone_get(zone->models[0].figures.parked), 1, "it is parked");

    asks[0].req->out.paused = 0;
    (void) run();
    ok(is_right(&asks[0], 0, 100), "it goes on where it was");

    /* a ring that nobody empties */

    for (i = 0; i < 8; i++) {
        ids[0] = (int32_t) (20 + i);
        add(ask(2 + i, ids, 4, 2, 150, 0));
    }

    for (i = 0; i < 100000 && step(); i++) { /* void */ }

    ok(i < 100000, "a full ring brings the steps to an end");

    (void) run();

    for (i = 0, got = 0; i < 8; i++) {
        got += is_right(&asks[2 + i], 0, 150) && is_right(&asks[2 + i], 1, 150);
    }

    is_int(got, 8, "and nothing is lost");

    close_all();
}


/* the largest of what may be drawn, without pages and steps */

static uint32_t
right_without(const ask_t *a, const int32_t *banned, uint32_t n_banned,
    uint32_t min_tokens)
{
    float     row[N_VOCAB];
    int32_t   id;
    uint32_t  i, k;
    uint64_t  h;

    for (i = 0, h = 0; i < a->n_prompt; i++) {
        h = hash_token(h, a->prompt[i], i);
    }

    for (i = 0; i < a->n_ids[0]; i++) {
        fill_row(row, h);

        for (k = 0; k < n_banned && i < min_tokens; k++) {
            row[banned[k]] = -INFINITY;
        }

        for (k = 1, id = 0; k < N_VOCAB; k++) {
            id = row[k] > row[id] ? (int32_t) k : id;
        }

        if (a->ids[0][i] != id) {
            break;
        }

        h = hash_token(h, id, a->n_prompt + i);
    }

    return i;
}


/*
 * What is banned before min_tokens is not drawn up to there, and then it is.
 * More bans than a device takes: the host draws as long as there are some.
 */

static void
test_banned(uint32_t n_banned)
{
    ask_t     *a;
    int32_t    ids[20], *banned;
    uint32_t   i, k, good;

    open_all(64, 300, 4, 16, 1 << 17);

    banned = malloc(n_banned * sizeof(*banned));

    for (i = 0; i < n_banned; i++) {
        banned[i] = (int32_t) (i * 2 % 256);
    }

    for (i = 0; i < 20; i++) {
        ids[i] = (int32_t) rnd(256);
    }

    for (i = 0; i < 4; i++) {
        a = ask(i, ids, 5 + 4 * i, 1, 60, 0);
        a->req->prep.banned = malloc(n_banned * sizeof(*banned));
        memcpy(a->req->prep.banned, banned, n_banned * sizeof(*banned));
        a->req->prep.n_banned = n_banned;
        a->req->msg->min_tokens = (int32_t) (10 + 11 * i);
        add(a);
    }

    (void) run();

    for (i = 0, good = 0, k = 0; i < 4; i++) {
        good += right_without(&asks[i], banned, n_banned, 10 + 11 * i);
        k += asks[i].n_ids[0];
    }

    is_int(k, 4 * 60, "%u bans: all tokens", n_banned);
    is_int(good, k, "those that may be drawn");

    free(banned);
    close_all();
}


/*
 * A sequence without a draw in the step under way is parked when that fails:
 * it fails, too.
 */

static void
test_parked_failure(void)
{
    int32_t     ids[60];
    uint32_t    i, n, hits;
    llm_seq_t  *q;

    hits = 0;

    for (n = 0; n < 400; n++) {
        open_all(7, 100, 2, 16, 1 << 17);

        for (i = 0; i < 60; i++) {
            ids[i] = (int32_t) rnd(250);
        }

        add(ask(0, ids, 20, 1, 70, LLM_REQ_NO_CACHE));
        ids[0] ^= 1;
        add(ask(1, ids, 1 + n % 39, 1, 60, LLM_REQ_NO_CACHE));

        for (i = 0; i < 2000 && step() >= 0 && asks[1].req; i++) {
            read_events();

            if (asks[1].req == NULL) {
                break;
            }

            q = &asks[1].req->run.seqs[0];

            if (sched->in_flight && q->state == LLM_SEQ_RUNNING && q->n_gen
                && q->pending == 0 && llm_seq_due(q) - q->n_kv == 1
                && sched->in_flight->n_prefill
                && !steps[n_waited % 3].done)
            {
                asks[1].req->out.paused = 1;
                fail_at = (int) n_steps;
                hits++;
            }
        }

        fail_at = -1;

        if (asks[1].req) {
            asks[1].req->out.paused = 0;
        }

        if (run() != LLM_OK || !asks[0].over || !asks[1].over) {
            break;
        }

        close_all();
    }

    is_int(n, 400, "parked when its step fails: all end");
    ok(hits > 0, "%u times", hits);
}


/* nobody waits for the last step */

static void
test_free(void)
{
    int32_t  ids[4] = { 1, 2, 3, 4 };

    open_all(64, 300, 4, 16, 1 << 17);
    add(ask(0, ids, 4, 1, 100, 0));
    (void) step();
    (void) step();

    llm_sched_remove(sched, asks[0].req);
    llm_req_free(asks[0].req);
    asks[0].req = NULL;

    ok(n_waited < n_submitted, "a step is under way");
    close_all();
    is_int(n_waited, n_submitted, "none is when the scheduler is gone");
}


/* a client that wants to know hears that its prompt begins before the first step
   computes any of it, and others do not */

static uint32_t  n_begun;
static uint64_t  begun_us;

static void
look_for_starts(const llm_batch_t *b)
{
    const llm_event_t  *ev;

    (void) b;
    (void) llm_ring_publish(&port.ring);

    while ((ev = (const llm_event_t *) llm_ring_next(&up)) != NULL) {
        if (ev->type == LLM_EV_START) {
            begun_us = ev->u.start.start_us;
        }

        n_begun += ev->type == LLM_EV_PROGRESS
                   && ev->u.progress.processed == 0;
    }
}


static void
test_begin(int asked)
{
    ask_t     *a;
    int32_t    ids[4] = { 1, 2, 3, 4 };
    uint64_t   before;

    open_all(64, 300, 4, 16, 1 << 17);
    a = ask(0, ids, 4, 1, 100, 0);
    a->req->msg->flags |= asked ? LLM_REQ_PROGRESS : 0;

    n_begun = 0;
    begun_us = 0;
    look_at = look_for_starts;
    before = llm_now_us();
    add(a);
    (void) llm_sched_step(sched, &(llm_err_t) { 0 });
    look_at = NULL;

    is_int(n_begun, asked, "a prompt begins before its first step");
    ok(!asked || (begun_us >= before && begun_us <= llm_now_us()),
       "START says when");
    (void) run();
    close_all();
}


/* a prompt that waits for another request, which computes its beginning, has not
   begun: the cache will have more of it */

static void
test_begin_behind(void)
{
    uint32_t  i;
    int32_t   ids[64];

    for (i = 0; i < 64; i++) {
        ids[i] = (int32_t) i + 1;
    }

    open_all(64, 300, 4, 16, 1 << 17);
    n_begun = 0;
    look_at = look_for_starts;

    for (i = 0; i < 2; i++) {
        add(ask(i, ids, 64, 1, 4, 0));
        asks[i].req->msg->flags |= LLM_REQ_PROGRESS;
    }

    (void) llm_sched_step(sched, &(llm_err_t) { 0 });
    look_at = NULL;

    is_int(n_begun, 1, "of two with the same prompt one begins");
    (void) run();
    close_all();
}


static void
test_failure(void)
{
    int        rc;
    int32_t    ids[4] = { 1, 2, 3, 4 };
    llm_err_t  err;

    open_all(64, 300, 4, 16, 1 << 17);
    fail_at = 3;

    add(ask(0, ids, 4, 2, 100, 0));
    add(ask(1, ids, 4, 1, 100, 0));

    while ((rc = llm_sched_step(sched, &err)) > 0) {
        (void) llm_sched_send_events(sched);
    }

    llm_sched_assert(sched);
    is_int(rc, LLM_ERROR, "the step fails");
    is_str(err.msg, "the device is on fire", "with the reason");

    (void) run();
    is_int(asks[0].status, 500, "its requests fail");
    is_int(asks[1].status, 500, "all of them");
    is_int(free_pages(), 64, "and give their pages back");

    ids[0] = 77;
    add(ask(2, ids, 4, 1, 20, 0));
    (void) run();
    ok(is_right(&asks[2], 0, 20), "the next one works");

    close_all();
}


static void
test_all(void)
{
    test_choices(4, 0);
    test_choices(4, LLM_REQ_NO_CACHE);
    test_choices(1, 0);
    test_choices(2, 0);
    test_chunks();
    test_parked();
    test_preempt();
    test_preempt_order();
    test_accounts();
    test_gauges();
    test_evictions();
    test_begin(1);
    test_begin(0);
    test_begin_behind();
    test_failure();
    test_banned(128);
    test_banned(LLM_DRAW_EDITS + 1);

    if (overlapping) {
        test_parked_failure();
        test_free();
    }

    test_storm(200, 8, 64, 0);
    test_storm(40, 8, 64, 0);
    test_storm(25, 6, 7, 0);
    test_storm(19, 3, 1, 0);
    test_storm(30, 6, 33, LLM_REQ_NO_CACHE);
    test_storm(200, 8, 64, LLM_REQ_ECHO);
    test_storm(25, 6, 7, LLM_REQ_ECHO);
    test_storm(30, 6, 33, LLM_REQ_ECHO|LLM_REQ_NO_CACHE);
}


int
main(void)
{
    int        device;
    llm_err_t  err;

    static const uint32_t  snapshots[3] = { 0, 40, 1 };

    if (tv_open(&tiny, NULL, NULL, 0, &err) != LLM_OK) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }

    /* the host looks at the logits; then the device draws; then it takes a
       step behind another, too; all that once more with recurrent layers, many
       snapshots of them, and hardly any */

    for (device = 0; device < 9; device++) {
        drawing = device % 3 > 0;
        overlapping = device % 3 > 1;
        recurrent = snapshots[device / 3];

        printf("# %u slots for snapshots\n", recurrent);

        test_all();
    }

    tv_close(&tiny);

    return done_testing();
}
