/*
 * When a request gets its first token, as it is predicted, and as it then
 * comes: over a model whose steps take a time that is known, by a clock of its
 * own, so that nothing depends on the machine.
 */

#include "engine/serve/requests.h"
#include "t/unit/sched_rig.h"

#include <time.h>

/* the clock of this program, and with it the engine's */

static uint64_t  clock_us = 1000000;


int
clock_gettime(clockid_t id, struct timespec *ts)
{
    (void) id;

    ts->tv_sec = (time_t) (clock_us / 1000000);
    ts->tv_nsec = (long) (clock_us % 1000000 * 1000);

    return 0;
}


/* what a step takes */
static uint32_t  step_us;
static uint32_t  row_us;

static llm_engine_t  engine;
static llm_instance_t  served;
static llm_instance_t *models[1];


static int
timed_wait(void *data, llm_err_t *err)
{
    uint32_t            i, n, rows;
    const llm_batch_t  *b;

    b = steps[n_waited % 3].batch;

    for (i = 0, rows = 0; i < b->n_seqs; i++) {
        n = b->seq_rows[i + 1] - b->seq_rows[i];
        rows += n > 1 ? n : 0;
    }

    clock_us += (rows < b->n_tokens || rows == 0 ? step_us : 0)
                + (uint64_t) rows * row_us;

    return wait_step(data, err);
}


static void
open_timed(uint32_t max_seqs, uint32_t pages, uint64_t tokens,
    uint64_t ttft_us)
{
    llm_zone_bounds_t  b = { tokens, ttft_us, 1 };

    open_all(pages, 1300, max_seqs, 200, 1 << 20);
    sched->conf.runner.wait = timed_wait;
    llm_zone_set_bounds(zone, &b);

    memset(&engine, 0, sizeof(engine));
    memset(&served, 0, sizeof(served));
    served.engine = &engine;
    served.sched = sched;
    served.state = LLM_MODEL_READY;
    served.conf.parallel = max_seqs;
    engine.zone = zone;
    models[0] = &served;
    engine.models = models;
    engine.instances = &served;
    engine.n_models = 1;
}


/* a request of n tokens like no other, that is not added yet */

static ask_t *
prompt(uint32_t slot, uint32_t n, uint32_t max_gen)
{
    static int32_t  last;

    ask_t     *a;
    int32_t    ids[1024];
    uint32_t   i;

    last++;

    for (i = 0; i < n; i++) {
        ids[i] = i < 3 ? last >> (i * 8) & 255 : (int32_t) rnd(256);
    }

    a = ask(slot, ids, n, 1, max_gen, 0);
    a->req->msg->arrival_us = clock_us;
    a->req->entered_us = clock_us;
    a->req->instance = &served;

    return a;
}


static void
drop(ask_t *a)
{
    llm_req_free(a->req);
    memset(a, 0, sizeof(*a));
}


static llm_forecast_t
forecast(const ask_t *a)
{
    llm_forecast_t  f;

    llm_sched_forecast(sched, a ? a->req : NULL, &f);

    return f;
}


/* ---- a model whose weights take 0.1 s, and a row 15 ms ---- */

static void
test_slow(uint32_t n_first)
{
    uint64_t    began, longest;
    llm_err_t   err;

    step_us = 100000;
    row_us = 15000;
    open_timed(2, 400, 0, 1);

    add(prompt(0, n_first, 30));

    while (asks[0].req->out.first_us == 0 || asks[0].n_ids[0] < 3) {
        (void) llm_sched_step(sched, &err);
        (void) llm_sched_send_events(sched);
        read_events();
    }

    add(prompt(1, 200, 1));

    for (longest = 0; !asks[1].over; /* void */ ) {
        began = clock_us;
        (void) llm_sched_step(sched, &err);
        longest = llm_max(longest, clock_us - began);
        (void) llm_sched_send_events(sched);
        read_events();
    }

    ok(longest <= 250000, "a slow model, after a prompt of %u tokens: a stream"
       " beside another waits for %llu us at most", n_first,
       (unsigned long long) longest);

    (void) run();
    close_all();
}


/* ---- what is predicted for each of many, and what comes of it ---- */

static void
test_exact(uint32_t max_seqs, const char *what)
{
    double          worst, off;
    uint32_t        i, over;
    uint64_t        first[24], predicted[24];
    llm_err_t       err;
    llm_forecast_t  f;

    step_us = 10000;
    row_us = 100;
    open_timed(max_seqs, 400, 0, 1);

    ok(!forecast(NULL).known, "%s: nothing is known at first", what);
    ok(!forecast(NULL).waits, "%s: and nobody waits", what);

    /* answers of 30, alone and beside each other, teach the speeds */

    for (i = 0; i < 80; i++) {
        add(prompt(i % 4, 100, 30));

        if (i % 4 == 3) {
            (void) run();
        }
    }

    f = forecast(NULL);
    ok(f.known && !f.waits && f.us < 20000, "%s: an idle one takes %.0f us",
       what, f.us);

    memset(first, 0, sizeof(first));

    for (i = 0; i < 24; i++) {
        (void) prompt(i, 100, 30);
        llm_sched_forecast(sched, asks[i].req, &f);
        asks[i].req->run.judged_us = clock_us;
        asks[i].req->run.wait_us = f.wait_us;
        predicted[i] = (uint64_t) f.wait_us;
        is_int(f.waits, i != 0, "%s: %u before it", what, i);
        add(&asks[i]);
    }

    for (over = 0; over < 24; /* void */ ) {
        if (llm_sched_step(sched, &err) == 0) {
            break;
        }

        for (i = 0, over = 0; i < 24; i++) {
            if (asks[i].req && asks[i].req->out.first_us) {
                first[i] = asks[i].req->out.first_us
                           - asks[i].req->msg->arrival_us;
            }

            over += asks[i].over;
        }

        (void) llm_sched_send_events(sched);
        read_events();
    }

    for (i = 0, worst = 0; i < 24; i++) {
        off = llm_max((double) predicted[i] - first[i],
                      (double) first[i] - predicted[i])
              / (first[i] + 100000);
        worst = llm_max(worst, off);

        if (off > 0.3) {
            printf("# %u: predicted %llu, got %llu\n", i,
                   (unsigned long long) predicted[i],
                   (unsigned long long) first[i]);
        }
    }

    ok(worst < 0.3, "%s: of 24 none is off by more than %.0f %%", what,
       worst * 100);
    is_int(llm_sched_todo(sched), 0, "%s: nothing is left to be computed",
           what);

    close_all();
}


/* ---- who goes first ---- */

static void
test_order(void)
{
    double     low, normal, high, other, phantom;
    uint32_t   i;
    ask_t     *a;

    step_us = 10000;
    row_us = 100;
    open_timed(1, 400, 0, 1);

    add(prompt(0, 100, 20));
    (void) run();

    for (i = 0; i < 10; i++) {
        a = prompt(i, 100, 20);
        a->req->msg->tenant = 1;
        add(a);
    }

    (void) step();

    phantom = forecast(NULL).us;
    a = prompt(10, 100, 20);
    a->req->msg->tenant = 1;
    normal = forecast(a).us;
    a->req->msg->priority = 1;
    high = forecast(a).us;
    a->req->msg->priority = -1;
    low = forecast(a).us;
    a->req->msg->priority = 0;
    a->req->msg->tenant = 2;
    other = forecast(a).us;
    drop(a);

    ok(high < normal / 5 && high < 100000, "a higher priority waits for "
       "nothing: %.0f us, not %.0f", high, normal);
    ok(other < normal / 2, "another tenant does not wait for all of the "
       "first one's: %.0f us", other);
    is_int(low, normal, "a low one is behind as many as a normal one");
    ok(phantom > normal * 0.9 && phantom <= normal,
       "a short prompt that comes last: %.0f us", phantom);

    a = prompt(11, 100, 20);
    a->req->msg->priority = -1;
    a->req->msg->tenant = 3;
    add(a);
    a = prompt(12, 100, 20);
    a->req->msg->tenant = 1;
    is_int(forecast(a).us, normal, "nobody waits for one of a low priority");
    a->req->msg->priority = -1;
    ok(forecast(a).us > normal, "but another low one");
    drop(a);

    (void) run();
    close_all();
}


/* ---- what is to be computed ---- */

static void
test_todo(void)
{
    int32_t    ids[200];
    uint32_t   i;
    ask_t     *a;

    step_us = 10000;
    row_us = 100;
    open_timed(1, 400, 0, 1);

    for (i = 0; i < 200; i++) {
        ids[i] = (int32_t) i;
    }

    add(ask(0, ids, 200, 1, 2, 0));
    is_int(llm_sched_todo(sched), 200, "a prompt");
    (void) run();
    is_int(llm_sched_todo(sched), 0, "is computed");

    ids[170] = 1;
    a = ask(1, ids, 200, 3, 40, 0);
    is_int(forecast(a).tokens, 200 - 160, "what the prefix cache has is not "
           "counted");
    a->req->run.judged_us = clock_us;
    add(a);
    is_int(llm_sched_todo(sched), 40, "nor of one that waits, with choices");

    a = prompt(2, 100, 5);
    a->req->run.judged_us = clock_us;
    add(a);
    is_int(llm_sched_todo(sched), 140, "two");
    (void) step();
    ok(llm_sched_todo(sched) < 140, "a step computes some");
    llm_sched_remove(sched, asks[2].req);
    drop(&asks[2]);
    ok(llm_sched_todo(sched) <= 40, "one goes away");

    (void) run();
    is_int(llm_sched_todo(sched), 0, "all is computed");
    close_all();
}


/* what the engine asks for itself, in a warm-up or by a probe, is a token or
   few, and says nothing of how long clients' answers are */

static void
test_own(void)
{
    double     before;
    uint32_t   i;
    ask_t     *a;

    step_us = 10000;
    row_us = 100;
    open_timed(1, 400, 0, 1);

    for (i = 0; i < 60; i++) {
        add(prompt(0, 100, 60));
        (void) run();
    }

    add(prompt(0, 100, 60));
    (void) step();
    before = forecast(NULL).us;
    (void) run();

    for (i = 0; i < 200; i++) {
        a = prompt(0, 100, 2);

        if (i % 2) {
            a->req->own = 1;

        } else {
            a->req->msg->flags |= LLM_REQ_PROBE;
        }

        add(a);
        (void) run();
    }

    add(prompt(0, 100, 60));
    (void) step();
    ok(forecast(NULL).us > before * 0.9, "behind an answer it takes %.0f us, "
       "before and after those: %.0f", before, forecast(NULL).us);
    (void) run();
    close_all();
}


/* pages, not places, are what is short */

static void
test_pages(void)
{
    uint32_t        i;
    llm_forecast_t  f;
    ask_t          *a;

    step_us = 10000;
    row_us = 100;
    open_timed(8, 82, 0, 1);

    for (i = 0; i < 2; i++) {
        add(prompt(i, 560, 60));
        (void) run();
    }

    add(prompt(0, 900, 60));
    (void) step();

    a = prompt(1, 600, 60);
    f = forecast(a);
    ok(f.waits && f.wait_us > 600000, "it waits for pages: %.0f us",
       f.wait_us);
    drop(a);

    a = prompt(1, 30, 60);
    f = forecast(a);
    ok(f.wait_us < 350000, "a short one finds some: %.0f us", f.wait_us);
    drop(a);

    (void) run();
    close_all();
}


/* others that have had less go first, but not for ever */

static void
test_aged(void)
{
    uint32_t  i, slot;
    ask_t    *a;

    step_us = 10000;
    row_us = 100;
    open_timed(1, 400, 0, 2000000);

    add(prompt(0, 100, 20));
    (void) step();

    a = prompt(1, 100, 20);
    a->req->msg->tenant = 1;
    add(a);
    a->req->run.tenant->share.time += 1000000000;

    for (i = 0; i < 1000 && asks[1].started == 0; i++) {
        for (slot = 2; sched->queue.n_waiting < 3; slot++) {
            if (asks[slot].req == NULL) {
                a = prompt(slot, 100, 20);
                a->req->msg->tenant = 2;
                add(a);
            }
        }

        (void) step();
        read_events();
    }

    ok(asks[1].started > 3, "others go first: %u", asks[1].started - 1);
    ok(asks[1].started < 9, "until it has waited half of the time");

    (void) run();
    close_all();
}


/* ---- the judgement ---- */

static int
judged(ask_t *a, const char **code)
{
    int               rc;
    uint32_t          retry;
    static llm_err_t  err;

    rc = llm_engine_may_wait(&engine, a->req, &retry, &err);
    *code = rc == LLM_OK ? "" : err.code;

    return rc == LLM_OK ? 0 : (int) retry;
}


static void
test_judge(void)
{
    ask_t       *a;
    const char  *code;

    step_us = 10000;
    row_us = 1000;
    open_timed(1, 400, 1500, 3000000);

    a = prompt(0, 1000, 5);
    is_int(judged(a, &code), 0, "nothing is known, and nothing waits");
    add(a);

    a = prompt(1, 501, 5);
    is_int(judged(a, &code), 1, "one token too many");
    is_str(code, "queue_full", "is told so");
    drop(a);

    a = prompt(1, 500, 5);
    is_int(judged(a, &code), 0, "as many as there may be");
    drop(a);

    a = prompt(1, 1, 5);
    a->req->msg->priority = -1;
    ok(judged(a, &code) > 0, "a low priority has half of that");
    a->req->msg->flags |= LLM_REQ_PROBE;
    is_int(judged(a, &code), 0, "but a probe passes");
    drop(a);

    (void) run();

    a = prompt(0, 1000, 5);
    is_int(judged(a, &code), 0, "alone any prompt is let in");
    a->req->entered_us = clock_us - 60000000;
    is_int(judged(a, &code), 0, "however long it took to be prepared");
    add(a);

    a = prompt(1, 200, 5);
    is_int(judged(a, &code), 0, "one behind it is in time");
    a->req->msg->priority = -1;
    ok(judged(a, &code) > 0, "not in half of it");
    a->req->msg->priority = 0;
    a->req->entered_us = clock_us - 10000000;
    is_int(judged(a, &code), 10, "if it had not come ten seconds ago");
    is_str(code, "overloaded", "it is told so");
    served.ready_us = clock_us;
    is_int(judged(a, &code), 0, "what the model's load took does not count");
    drop(a);

    (void) run();
    close_all();
}


/* ---- three times as much as can be served ---- */

typedef struct {
    const char  *name;
    uint32_t     seqs;
    uint32_t     prompt[2];             /* tokens, from, to */
    uint32_t     answer[2];
    uint32_t     tenants;
    uint32_t     low;                   /* per cent of a low priority */
    uint32_t     greedy;                /* per cent of the first tenant; 0: as
                                           many as of any other */
} load_t;

typedef struct {
    uint32_t     came;
    uint32_t     admitted;
    uint32_t     in_time;
    uint32_t     over;
    uint32_t     low_came;
    uint32_t     low_admitted;
    uint32_t     modest_came;           /* of tenants but the first */
    uint32_t     modest_admitted;
    uint32_t     wrong_retry;
    uint64_t     us;
} outcome_t;

#define TTFT_US  2000000


static uint32_t
between(const uint32_t *range)
{
    return range[0] + rnd(range[1] - range[0] + 1);
}


/* one arrives; 0: all slots are in use */

static int
arrive(const load_t *l, outcome_t *o, uint32_t *length, uint8_t *told,
    int bound)
{
    int         low, modest;
    ask_t      *a;
    uint32_t    slot, retry;
    llm_err_t   err;

    for (slot = 0; slot < MAX_REQS && asks[slot].req; slot++) { /* void */ }

    if (slot == MAX_REQS) {
        return 0;
    }

    low = rnd(100) < l->low;
    a = prompt(slot, between(l->prompt), MAX_GEN);
    a->req->msg->tenant = rnd(100) < l->greedy ? 0 : rnd(l->tenants);
    modest = a->req->msg->tenant != 0;
    a->req->msg->priority = low ? -1 : 0;
    length[slot] = between(l->answer);
    told[slot] = 0;
    o->came++;
    o->low_came += low;
    o->modest_came += modest;

    if (bound
        && llm_engine_may_wait(&engine, a->req, &retry, &err) != LLM_OK)
    {
        o->wrong_retry += err.status != 429 || retry < 1
                          || strcmp(err.code, "overloaded") != 0;
        drop(a);
        return 1;
    }

    o->admitted++;
    o->low_admitted += low;
    o->modest_admitted += modest;
    add(a);

    return 1;
}


/* a step; answers end where they end, which nobody knew */

static void
advance(outcome_t *o, const uint32_t *length, uint8_t *told)
{
    uint32_t    i;
    llm_err_t   err;
    llm_req_t  *r;
    llm_seq_t  *q;

    (void) llm_sched_step(sched, &err);

    for (i = 0; i < MAX_REQS; i++) {
        r = asks[i].req;

        if (r == NULL) {
            continue;
        }

        q = &r->run.seqs[0];

        if (r->out.first_us && !told[i]) {
            told[i] = 1;
            o->in_time += r->out.first_us - r->msg->arrival_us <= TTFT_US;
        }

        if (q->state == LLM_SEQ_RUNNING && q->n_gen >= length[i]) {
            llm_sched_end_seq(sched, q, LLM_FINISH_STOP);
            o->over++;
        }
    }

    (void) llm_sched_send_events(sched);
    read_events();
    llm_sched_assert(sched);
}


/* `rate` requests a second; 0: so many that there is always one that waits,
   and none is refused */

static outcome_t
serve(const load_t *l, double rate, uint32_t n)
{
    uint8_t    told[MAX_REQS];
    uint32_t   length[MAX_REQS];
    uint64_t   begin, next;
    outcome_t  o;

    memset(&o, 0, sizeof(o));
    memset(told, 0, sizeof(told));
    open_timed(l->seqs, 500, 0, TTFT_US);

    begin = clock_us;
    next = clock_us;

    while (o.came < n) {
        while (rate > 0 && next <= clock_us && o.came < n
               && arrive(l, &o, length, told, 1))
        {
            next += (uint64_t) (-log((rnd(1000000) + 1) * 1e-6) * 1e6 / rate);
        }

        while (rate == 0 && sched->queue.n_waiting < 4 && o.came < n) {
            (void) arrive(l, &o, length, told, 0);
        }

        if (sched->n_running + sched->queue.n_waiting == 0) {
            clock_us = llm_max(clock_us, next);
            continue;
        }

        advance(&o, length, told);
    }

    o.us = clock_us - begin;

    while (sched->n_running + sched->queue.n_waiting) {
        advance(&o, length, told);
    }

    close_all();

    return o;
}


static void
test_overload(const load_t *l, double capacity)
{
    double     served_now;
    outcome_t  o;

    o = serve(l, 3 * capacity, 4000);
    served_now = o.over / (o.us * 1e-6);

    printf("# %s: capacity %.1f/s; of %u at three times that %u are admitted, "
           "%.2f %% of them in time; %.1f/s are served\n", l->name, capacity,
           o.came, o.admitted, 100.0 * o.in_time / o.admitted, served_now);

    ok(o.in_time >= 0.99 * o.admitted, "%s: 99 %% of those that are admitted "
       "come in time: %u of %u", l->name, o.in_time, o.admitted);
    ok(served_now > 0.85 * capacity, "%s: the machine is busy: %.1f/s of %.1f",
       l->name, served_now, capacity);
    is_int(o.wrong_retry, 0, "%s: the others are told so, and when to come "
           "again", l->name);

    if (l->low) {
        ok((double) o.low_admitted / o.low_came
           < 0.5 * (o.admitted - o.low_admitted)
             / (double) (o.came - o.low_came),
           "%s: low priority goes first: %u of %u, and %u of %u", l->name,
           o.low_admitted, o.low_came, o.admitted - o.low_admitted,
           o.came - o.low_came);
    }

    if (l->greedy) {
        ok((double) o.modest_admitted / o.modest_came
           > 1.1 * (o.admitted - o.modest_admitted)
             / (double) (o.came - o.modest_came),
           "%s: the others are let in more often: %u of %u, and %u of %u",
           l->name, o.modest_admitted, o.modest_came,
           o.admitted - o.modest_admitted, o.came - o.modest_came);
    }
}


/* half the capacity: next to nobody is refused, but for a low priority */

static void
test_calm(const load_t *l, double capacity)
{
    outcome_t  o;

    o = serve(l, capacity / 2, 1000);

    ok(o.admitted - o.low_admitted >= 0.97 * (o.came - o.low_came),
       "%s: at half of that %u of %u are admitted", l->name,
       o.admitted - o.low_admitted, o.came - o.low_came);
    ok(o.in_time >= 0.99 * o.admitted, "%s: and are in time: %u", l->name,
       o.in_time);
}


int
main(void)
{
    double     capacity;
    uint32_t   i;
    llm_err_t  err;
    outcome_t  o;

    static const load_t  loads[] = {
        { "short prompts, long answers", 8, { 10, 60 }, { 10, 120 }, 1, 0, 0 },
        { "long prompts, short answers", 8, { 200, 1000 }, { 2, 8 }, 1, 0, 0 },
        { "both", 8, { 10, 600 }, { 5, 100 }, 1, 0, 0 },
        { "many tenants", 8, { 10, 600 }, { 5, 100 }, 50, 0, 0 },
        { "a greedy tenant", 8, { 10, 600 }, { 5, 100 }, 20, 0, 80 },
        { "two priorities", 8, { 10, 600 }, { 5, 100 }, 5, 30, 0 },
        { "one place", 1, { 10, 100 }, { 2, 20 }, 1, 0, 0 }
    };

    if (tv_open(&tiny, NULL, NULL, 0, &err) != LLM_OK) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }

    test_slow(40);                      /* 0.6 s alone */
    test_slow(4);                       /* tokens are slow, too */
    test_exact(1, "one place");
    test_exact(4, "four places");
    test_order();
    test_todo();
    test_own();
    test_pages();
    test_aged();
    test_judge();

    step_us = 20000;
    row_us = 200;

    for (i = 0; i < llm_nelems(loads); i++) {

        /* what is served if there is always one that waits */

        o = serve(&loads[i], 0, 400);
        capacity = o.over / (o.us * 1e-6);

        test_overload(&loads[i], capacity);
        test_calm(&loads[i], capacity);
    }

    tv_close(&tiny);

    return done_testing();
}
