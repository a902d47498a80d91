/*
 * Prompts that become vectors, in the scheduler: every pooling, in chunks,
 * beside sequences that generate, with few pages and preemption, with and
 * without the prefix cache, and results that find no room.
 */

#include "t/unit/sched_rig.h"


typedef enum {
    MEAN = 0,
    FIRST,
    LAST,
    SCORE,
    RAW
} pool_t;


/* makes a request that generates into one that is pooled */

static void
pooled(ask_t *a, pool_t pool)
{
    uint32_t    i;
    llm_seq_t  *q;

    a->req->msg->task = pool >= SCORE ? LLM_TASK_SCORE : LLM_TASK_EMBED;
    a->req->msg->flags |= pool == RAW ? LLM_REQ_RAW : 0;
    a->req->msg->normalize = LLM_NORMALIZE_NONE;

    for (i = 0; i < a->req->run.n_seqs; i++) {
        q = &a->req->run.seqs[i];
        q->max_gen = 0;
        q->pool.next = pool == MEAN || pool == FIRST ? 0 : q->prompt->n - 1;
        q->pool.end = pool == FIRST ? 1 : q->prompt->n;
        q->pool.count = q->pool.end - q->pool.next;
    }
}


/* the same without pages */

static int
is_pooled(const ask_t *a, pool_t pool)
{
    double    sum[N_STATE] = { 0 };
    float     one[N_STATE];
    uint32_t  i, k, from, to;
    uint64_t  h;

    from = pool == MEAN || pool == FIRST ? 0 : a->n_prompt - 1;
    to = pool == FIRST ? 1 : a->n_prompt;

    for (i = 0, h = 0; i < to; i++) {
        h = hash_token(h, a->prompt[i], i);
        fill_state(one, h);

        for (k = 0; i >= from && k < N_STATE; k++) {
            sum[k] += one[k];
        }
    }

    if (pool == RAW) {
        return a->n_vector[0] == 1
               && a->vector[0][0] == (float) (sum[0] - sum[1]);
    }

    if (pool == SCORE) {
        return a->n_vector[0] == 1
               && a->vector[0][0] == (float) (sum[0] + sum[1]);
    }

    for (k = 0; k < N_STATE; k++) {
        if (a->vector[0][k] != (float) (sum[k] / (to - from))) {
            return 0;
        }
    }

    return a->n_vector[0] == N_STATE && a->n_ids[0] == 0;
}


/* alone: what is computed, and what the prefix cache spares */

static void
test_alone(void)
{
    ask_t     *a;
    int32_t    ids[100];
    uint32_t   i, pool;
    uint64_t   before;

    static const struct {
        const char  *name;
        uint32_t     first;             /* rows, the first time */
        uint32_t     again;
    } want[] = {
        { "mean", 100, 100 }, { "the first", 0, 0 },
        { "the last", 100, 4 }, { "a score", 100, 4 },
        { "a raw score", 100, 4 }
    };

    for (i = 0; i < 100; i++) {
        ids[i] = (int32_t) (i * 31 % 250);
    }

    for (pool = MEAN; pool <= RAW; pool++) {
        open_all(60, 300, 4, 32, 1 << 16);

        a = ask(0, ids, 100, 1, 0, 0);
        pooled(a, pool);
        add(a);
        is_int(run(), LLM_OK, "%s: it comes to its end", want[pool].name);
        ok(is_pooled(&asks[0], pool), "%s of 100 states in chunks",
           want[pool].name);
        ok(want[pool].first == 0 || n_rows == want[pool].first,
           "%s: each position once", want[pool].name);
        ok(pool != FIRST || n_rows < 100, "%s: not what comes behind it",
           want[pool].name);

        before = n_rows;
        a = ask(1, ids, 100, 1, 0, 0);
        pooled(a, pool);
        add(a);
        (void) run();
        ok(is_pooled(&asks[1], pool), "%s, again", want[pool].name);
        ok(pool == FIRST || n_rows - before == want[pool].again,
           "%s: %u rows behind the prefix cache", want[pool].name,
           want[pool].again);
        is_int(asks[1].cached, want[pool].first - want[pool].again,
               "%s: so many were cached", want[pool].name);

        is_int(free_pages(), 60, "all pages came back");
        is_int(sched->n_samplers, 0, "and nobody needed a sampler");
        close_all();
    }
}


/* all at once, beside text, with too few pages and cancels */

static void
test_storm(uint32_t n_pages, uint32_t seats, uint32_t chunk)
{
    int        good, stuck;
    ask_t     *a;
    pool_t     pool[MAX_REQS];
    int32_t    ids[200];
    uint32_t   i, n, added, steps, cancelled, text, gen[MAX_REQS];
    uint64_t   preempted;

    open_all(n_pages, 300, seats, chunk, 1 << 14);
    added = 0;
    cancelled = 0;
    stuck = 0;
    text = 0;

    for (steps = 0; n_over < MAX_REQS; steps++) {
        if (steps > 200000) {
            stuck = 1;
            break;
        }

        if (added < MAX_REQS && rnd(3) == 0) {
            n = random_prompt(ids, 180);
            gen[added] = rnd(3) ? 0 : 1 + rnd(80);
            a = ask(added, ids, n, gen[added] ? 1 + rnd(3) : 1, gen[added],
                    rnd(4) ? 0 : LLM_REQ_NO_CACHE);
            a->req->msg->priority = (int32_t) rnd(3);

            if (gen[added] == 0) {
                pool[added] = rnd(4);
                pooled(a, pool[added]);
            }

            add(a);
            added++;
        }

        a = &asks[rnd(MAX_REQS)];

        if (a->req && rnd(40) == 0 && cancelled < MAX_REQS / 4) {
            cancelled++;
            llm_sched_remove(sched, a->req);
            llm_sched_assert(sched);
            llm_req_free(a->req);
            a->req = NULL;
            a->cancelled = 1;
            n_over++;
        }

        (void) step();

        if (rnd(4)) {
            read_events();
        }
    }

    (void) run();
    good = 1;

    for (i = 0; i < MAX_REQS; i++) {
        if (asks[i].cancelled) {
            continue;
        }

        if (gen[i]) {
            good &= is_right(&asks[i], 0, gen[i]);
            text++;

        } else {
            good &= is_pooled(&asks[i], pool[i]);
        }
    }

    preempted = llm_zone_get(zone->models[0].own.preemptions);

    ok(good && !stuck && text > 8, "%u pages, %u seats, chunks of %u: all as "
       "alone, %u of them text, %llu preemptions", n_pages, seats, chunk,
       text, (unsigned long long) preempted);
    is_int(free_pages(), n_pages, "all pages came back");

    close_all();
}


/* a device that fails, and a ring without room */

static void
test_trouble(void)
{
    ask_t     *a;
    int32_t    ids[40];
    uint32_t   i, k;

    for (i = 0; i < 40; i++) {
        ids[i] = (int32_t) i;
    }

    open_all(60, 300, 4, 16, 1 << 16);
    fail_at = 1;
    a = ask(0, ids, 40, 1, 0, 0);
    pooled(a, MEAN);
    add(a);
    (void) run();
    ok(asks[0].status == 500 && asks[0].n_vector[0] == 0,
       "a step that fails gives no vector");
    is_int(free_pages(), 60, "all pages came back");
    close_all();

    /* nobody reads: the ring is full of results, and no one is lost */

    open_all(60, 300, 4, 16, 1 << 12);

    for (k = 0; k < MAX_REQS; k++) {
        a = ask(k, ids, 1 + k % 40, 1, 0, 0);
        pooled(a, MEAN);
        add(a);
    }

    for (i = 0; i < 500; i++) {
        (void) step();
    }

    ok(n_over < MAX_REQS, "%u of %u fit in the ring", n_over, MAX_REQS);

    for (i = 0; i < 500; i++) {
        (void) step();
        read_events();
    }

    for (k = 0; k < MAX_REQS && is_pooled(&asks[k], MEAN); k++) {
        /* void */
    }

    is_int(k, MAX_REQS, "when it is read all come");
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

    for (drawing = 0; drawing < 2; drawing++) {
        for (overlapping = 0; overlapping <= drawing; overlapping++) {
            test_alone();
            test_storm(40, 4, 32);
            test_storm(22, 6, 64);
            test_storm(200, 16, 128);
            test_trouble();
        }
    }

    tv_close(&tiny);

    return done_testing();
}
