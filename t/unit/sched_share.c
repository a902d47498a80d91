/*
 * Who is served first and what is shared: priorities, fair shares between
 * tenants, prefixes.
 */

#include "t/unit/sched_rig.h"


static void
test_order(void)
{
    int32_t   ids[4] = { 1, 2, 3, 4 };
    uint32_t  i;
    int32_t   priority[6] = { 0, 0, 5, -5, 5, 0 };
    uint32_t  want[6] = { 3, 4, 1, 6, 2, 5 };

    open_all(32, 64, 1, 16, 1 << 17);

    for (i = 0; i < 6; i++) {
        ids[0] = (int32_t) i;
        (void) ask(i, ids, 4, 1, 5, 0);
        asks[i].req->msg->priority = priority[i];
        add(&asks[i]);
    }

    (void) run();

    for (i = 0; i < 6; i++) {
        is_int(asks[i].order, want[i], "priority %d, request %u", priority[i],
               i);
    }

    close_all();
}


/* a tenant with many requests does not keep one with few waiting */

static void
test_fair(void)
{
    int32_t   ids[8];
    uint32_t  i, last;

    open_all(64, 64, 2, 16, 1 << 17);

    for (i = 0; i < 40; i++) {
        ids[0] = (int32_t) i;
        memset(ids + 1, 0, sizeof(ids) - 4);
        (void) ask(i, ids, 8, 1, 20, 0);
        asks[i].req->msg->tenant = i < 30 ? 1 : 2;
        add(&asks[i]);
    }

    (void) run();

    for (last = 0, i = 30; i < 40; i++) {
        last = llm_max(last, asks[i].order);
    }

    ok(last >= 18 && last <= 24, "10 of one tenant behind 30 of another end "
       "among the first %u", last);

    close_all();

    /* three times the weight, three times the tokens */

    open_all(64, 64, 2, 16, 1 << 17);

    for (i = 0; i < 60; i++) {
        ids[0] = (int32_t) i;
        (void) ask(i, ids, 8, 1, 20, 0);
        asks[i].req->msg->tenant = i < 30 ? 1 : 2;
        asks[i].req->msg->weight = i < 30 ? 1000 : 3000;
        add(&asks[i]);
    }

    (void) run();

    for (last = 0, i = 30; i < 60; i++) {
        last = llm_max(last, asks[i].order);
    }

    ok(last >= 37 && last <= 44, "30 of weight 3 against 30 of weight 1 end "
       "among the first %u", last);

    close_all();
}


/* tokens of prompts that were found: by the requests and by the metrics */

static uint64_t
found(uint32_t n)
{
    uint32_t  i;
    uint64_t  sum;

    for (i = 0, sum = 0; i < n; i++) {
        sum += asks[i].cached;
    }

    return sum;
}


static uint64_t
hits(void)
{
    return llm_zone_get(zone->models[0].own.prefix_hits);
}


/* a tenant pays for the rows that were computed, no more and no less */

static void
test_paid(void)
{
    int32_t        ids[600];
    uint32_t       i;
    uint64_t       paid;
    llm_tenant_t  *t;

    for (i = 0; i < 600; i++) {
        ids[i] = (int32_t) rnd(256);
    }

    open_all(300, 700, 8, 48, 1 << 17);

    for (i = 0; i < 8; i++) {
        ids[210] = (int32_t) i;
        add(ask(i, ids, 230, 1, 20, 0));
    }

    t = asks[0].req->run.tenant;
    (void) run();

    /* the last token of each is never computed */
    is_int(t->share.time / 1000, n_rows + 8, "eight that begin alike pay for %u rows",
           (unsigned) n_rows);
    is_int(found(8), 7 * 208, "and seven of them find what the first has");
    is_int(hits(), 7 * 208, "of which the metrics tell");

    paid = t->share.time / 1000 - n_rows;

    ids[0]++;
    add(ask(0, ids, 600, 1, 20, LLM_REQ_NO_CACHE));
    (void) step();
    ok(t->share.time / 1000 - n_rows - paid > 400, "a prompt is paid in advance");
    (void) step();
    llm_sched_remove(sched, asks[0].req);
    llm_req_free(asks[0].req);

    is_int(t->share.time / 1000 - n_rows, paid, "who goes away pays for what was "
           "computed");

    close_all();

    /* on few pages: preempted, and what is computed again is free */

    open_all(24, 300, 3, 48, 1 << 17);

    for (i = 0; i < 3; i++) {
        ids[0] = (int32_t) i;
        add(ask(i, ids, 100, 1, 100, 0));
    }

    t = asks[0].req->run.tenant;
    (void) run();

    ok(llm_zone_get(zone->models[0].own.preemptions) > 0
       && n_rows > 3 * 199, "some are preempted");
    is_int(t->share.time / 1000, 3 * 200, "and pay once");
    is_int(found(3), 0, "what they find of their own was not cached");
    is_int(hits(), 0, "nor do the metrics say so");

    close_all();
}


static void
test_prefix(void)
{
    int32_t   ids[200];
    uint32_t  i;
    uint64_t  before;

    for (i = 0; i < 200; i++) {
        ids[i] = (int32_t) (i % 250);
    }

    open_all(64, 300, 4, 64, 1 << 17);

    add(ask(0, ids, 100, 1, 10, 0));
    (void) run();
    is_int(asks[0].cached, 0, "nothing is cached at first");
    is_int(n_rows, 109, "a row for each token but the last");

    before = n_rows;
    add(ask(1, ids, 100, 1, 10, 0));
    (void) run();
    is_int(asks[1].cached, 96, "the whole pages of the prompt are");
    is_int(n_rows - before, 13, "only the rest is computed");
    ok(is_right(&asks[1], 0, 10), "the text is the same");

    before = n_rows;
    add(ask(2, ids, 96, 1, 1, 0));
    (void) run();
    is_int(asks[2].cached, 80, "never the last token");
    is_int(n_rows - before, 16, "so that there are logits");
    ok(is_right(&asks[2], 0, 1), "the text is right");

    add(ask(3, ids, 100, 1, 10, LLM_REQ_NO_CACHE));
    (void) run();
    is_int(asks[3].cached, 0, "not when the request does not want it");
    ok(is_right(&asks[3], 0, 10), "the text is the same");

    (void) ask(4, ids, 100, 1, 10, 0);
    asks[4].req->prep.salt.tenant = 9;
    add(&asks[4]);
    (void) run();
    is_int(asks[4].cached, 0, "not for another tenant");

    /* a second turn: the answer is part of the prompt */

    memcpy(ids + 100, asks[1].ids[0], 10 * sizeof(*ids));
    add(ask(5, ids, 150, 1, 5, 0));
    (void) run();
    ok(asks[5].cached >= 96, "the second turn finds %u tokens",
       asks[5].cached);
    ok(is_right(&asks[5], 0, 5), "and is right");

    close_all();
}


/* eight that come together and begin alike compute the beginning once */

static void
test_together(void)
{
    int       good;
    int32_t   ids[300];
    uint32_t  i;
    uint64_t  n;

    for (i = 0; i < 300; i++) {
        ids[i] = (int32_t) rnd(256);
    }

    open_all(300, 400, 8, 48, 1 << 17);

    for (i = 0; i < 8; i++) {
        ids[210] = (int32_t) i;
        add(ask(i, ids, 230, 1, 20, 0));
    }

    (void) run();

    for (i = 0, good = 1; i < 8; i++) {
        good &= is_right(&asks[i], 0, 20);
    }

    n = llm_zone_get(zone->models[0].own.prompt_computed);

    ok(good, "eight that begin alike are right");
    is_int(n, 230 + 7 * (230 - 208), "the beginning was computed once");

    close_all();
}


/* steps until request i is over, so many at most */

static uint32_t
steps_until(uint32_t i, uint32_t most)
{
    uint32_t  n;

    for (n = 0; n < most && !asks[i].over; n++) {
        (void) step();
        read_events();
    }

    return n;
}


/* an urgent request does not wait for a place that a lower one has, nor does
   that one lose anything but time */

static void
test_urgent(uint32_t seats)
{
    int       good;
    uint64_t  rows;
    int32_t   ids[60];
    uint32_t  i, n;

    memset(ids, 1, sizeof(ids));
    open_all(128, 200, seats, 64, 1 << 17);

    for (i = 0; i < seats; i++) {
        ids[0] = (int32_t) i;
        add(ask(i, ids, 60, 1, 100, LLM_REQ_NO_CACHE));
    }

    for (i = 0; i < 20 + seats; i++) {
        (void) step();
    }

    /* of the same priority and a tenant that has had nothing: it waits */

    add(ask(10, ids, 50, 1, 10, LLM_REQ_NO_CACHE));
    asks[10].req->msg->tenant = 2;
    (void) step();
    is_int(llm_zone_get(zone->models[0].own.preemptions), 0,
           "nobody of %u gives way to one of the same priority", seats);

    rows = n_rows;
    ask(11, ids, 50, 1, 10, LLM_REQ_NO_CACHE)->req->msg->priority = 1;
    add(&asks[11]);

    n = steps_until(11, 20);
    ok(asks[11].over && n_over == 1, "an urgent one is over after %u steps, "
       "before the %u that ran", n, seats);
    is_int(llm_zone_get(zone->models[0].own.preemptions), 1,
           "one has given way");

    is_int(run(), LLM_OK, "then the others go on");

    for (i = 0, good = 1; i < seats; i++) {
        good &= is_right(&asks[i], 0, 100);
    }

    ok(good && is_right(&asks[10], 0, 10) && is_right(&asks[11], 0, 10),
       "with the same text");
    ok(overlapping || n_rows == seats * 159u + 2 * 59u,
       "and what it has computed was kept: %u rows, %u of them later",
       (unsigned) n_rows, (unsigned) (n_rows - rows));

    close_all();
}


/* nor for pages; but nobody loses any if that would not be enough */

static void
test_urgent_pages(void)
{
    int32_t   ids[150];
    uint32_t  i;

    memset(ids, 1, sizeof(ids));
    open_all(16, 200, 4, 64, 1 << 17);

    ask(0, ids, 110, 1, 60, LLM_REQ_NO_CACHE)->req->msg->priority = 2;
    ask(1, ids, 60, 1, 60, LLM_REQ_NO_CACHE)->req->msg->priority = 0;
    add(&asks[0]);
    add(&asks[1]);

    for (i = 0; i < 10; i++) {
        (void) step();
    }

    ask(2, ids, 150, 1, 10, LLM_REQ_NO_CACHE)->req->msg->priority = 1;
    add(&asks[2]);
    (void) step();
    ok(asks[1].req->run.seqs[0].state == LLM_SEQ_RUNNING,
       "the pages of one that gives way would not be enough: it goes on");

    ask(3, ids, 100, 1, 10, LLM_REQ_NO_CACHE)->req->msg->priority = 3;
    add(&asks[3]);
    (void) steps_until(3, 20);
    ok(asks[3].over && n_over == 1, "pages come from those of a lower "
       "priority");

    is_int(run(), LLM_OK, "all come to an end");
    ok(is_right(&asks[0], 0, 60) && is_right(&asks[1], 0, 60)
       && is_right(&asks[2], 0, 10) && is_right(&asks[3], 0, 10),
       "with their text");

    close_all();
}


/* a prompt of 112 tokens, 7 pages, of one's own or that others have, too */

static void
ask_prompt(uint32_t i, int32_t first, int32_t priority)
{
    int32_t  ids[112];

    memset(ids, 1, sizeof(ids));
    ids[0] = first;
    ask(i, ids, 112, 1, 60, 0)->req->msg->priority = priority;
    add(&asks[i]);

    while (asks[i].req->run.seqs[0].n_gen < 2) {
        (void) step();
    }
}


static int
runs(uint32_t i)
{
    return asks[i].req->run.seqs[0].state == LLM_SEQ_RUNNING;
}


/* a page comes free when nobody has it any more */

static void
test_urgent_shared(void)
{
    int32_t   ids[220];
    uint32_t  i, good;

    memset(ids, 2, sizeof(ids));

    /* of the three that have a prompt one goes before who waits */

    open_all(20, 300, 4, 128, 1 << 17);

    for (i = 0; i < 3; i++) {
        ask_prompt(i, 5, i == 0 ? 2 : 0);
    }

    ask(3, ids, 220, 1, 10, LLM_REQ_NO_CACHE)->req->msg->priority = 1;
    add(&asks[3]);
    (void) step();
    ok(runs(1) && runs(2) && !runs(3), "what a third one has, too, does not "
       "come free: they go on");
    is_int(llm_zone_get(zone->models[0].own.preemptions), 0, "nobody gives "
           "way in vain");
    is_int(run(), LLM_OK, "all come to an end");
    close_all();

    /* all who have it give way: it comes free */

    open_all(20, 300, 4, 128, 1 << 17);

    for (i = 0; i < 3; i++) {
        ask_prompt(i, 5, 0);
    }

    ask(3, ids, 220, 1, 10, LLM_REQ_NO_CACHE)->req->msg->priority = 1;
    add(&asks[3]);
    (void) step();
    ok(runs(3), "when all who have it give way, it comes free");
    is_int(run(), LLM_OK, "all come to an end");
    close_all();

    /* one has pages of its own: the two behind it need not give way */

    open_all(26, 300, 4, 128, 1 << 17);
    ask_prompt(0, 5, 2);
    ask_prompt(1, 6, 0);
    ask_prompt(2, 5, 0);
    ask(3, ids, 150, 1, 10, LLM_REQ_NO_CACHE)->req->msg->priority = 1;
    add(&asks[3]);
    (void) step();
    ok(!runs(1) && runs(2) && runs(3), "who has nothing to give goes on");
    is_int(llm_zone_get(zone->models[0].own.preemptions), 1, "one is enough");
    is_int(run(), LLM_OK, "all come to an end");

    for (i = 0, good = 1; i < 3; i++) {
        good &= is_right(&asks[i], 0, 60);
    }

    ok(good && is_right(&asks[3], 0, 10), "with their text");
    close_all();
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

        test_prefix();
        test_together();
        test_order();
        test_fair();
        test_paid();
        test_urgent(1);
        test_urgent(4);
        test_urgent_pages();
        test_urgent_shared();
    }

    tv_close(&tiny);

    return done_testing();
}
