/*
 * Who is prepared next: which jobs the preparation threads take, and in which
 * order.  Nothing runs here, and what a job takes is said.
 */

#include "engine/serve/requests.h"
#include "t/unit/tap.h"


/* an engine without threads: one that would be for small messages, one for
   others */

static void
turns_open(llm_engine_t *e, llm_preparer_t *small, llm_preparer_t *large)
{
    memset(e, 0, sizeof(*e));
    llm_turns_init(&e->turns);
    e->n_idle = 1;

    memset(small, 0, sizeof(*small));
    memset(large, 0, sizeof(*large));
    small->engine = e;
    small->small = 1;
    large->engine = e;
}


static void
turns_close(llm_engine_t *e)
{
    llm_turns_free(&e->turns);
}


static llm_req_t *
weighted(llm_engine_t *e, uint32_t size, uint64_t tenant, int32_t priority,
    uint32_t weight)
{
    llm_req_t      *r;
    llm_request_t  *msg;

    msg = calloc(1, sizeof(*msg));
    msg->head.size = size;
    msg->tenant = tenant;
    msg->priority = priority;
    msg->weight = weight;
    r = llm_req_create(msg);
    r->serial = ++e->serial;
    (void) llm_turns_enter(&e->turns, r);

    return r;
}


static llm_req_t *
job(llm_engine_t *e, uint32_t size, uint64_t tenant, int32_t priority)
{
    return weighted(e, size, tenant, priority, 1000);
}


static llm_req_t *
next_job(llm_preparer_t *p)
{
    llm_req_t  *r;

    r = llm_preparer_take(p);

    if (r && !p->small) {               /* it is done at once */
        p->engine->runs = NULL;
        p->engine->n_idle++;
    }

    return r;
}


/* it has taken so long */

static void
end_job(llm_engine_t *e, llm_req_t *r, uint64_t us)
{
    llm_turns_charge(r, us);
    llm_turns_leave(&e->turns, r);
    llm_req_free(r);
}


/* what the preparation threads take next */

static void
test_turns(void)
{
    int             i;
    llm_req_t      *r[7];
    llm_engine_t    e;
    llm_preparer_t  small, large;

    turns_open(&e, &small, &large);

    for (i = 0; i < 6; i++) {
        r[i] = job(&e, i < 4 ? 2 << 20 : 2 << 10, 1, 0);
    }

    ok(next_job(&small) == r[4], "small ones overtake four large ones");
    ok(next_job(&large) == r[0], "where the oldest is next");
    ok(next_job(&small) == r[5], "all of them");
    ok(next_job(&small) == NULL, "one thread is kept for them");

    for (i = 1; i < 4; i++) {
        ok(next_job(&large) == r[i], "the large ones keep their order");
    }

    ok(next_job(&large) == NULL, "that was all");

    r[6] = job(&e, 2 << 20, 1, 0);
    ok(next_job(&large) == r[6], "and the list is whole");

    for (i = 0; i < 7; i++) {
        end_job(&e, r[i], 0);
    }

    turns_close(&e);
}


/* the thread for all others goes on with its job until somebody is next who has
   had less CPU time; it is put aside then */

static int
slice(llm_engine_t *e, llm_req_t *r, uint64_t us)
{
    llm_turns_charge(r, us);
    llm_turns_put(&e->turns, r, LLM_TURN_PAUSED);

    if (llm_turns_next(&e->turns, LLM_TURNS_ALL) != r) {
        return 0;
    }

    llm_turns_take(&e->turns, r);

    return 1;
}


/* whoever has had less CPU time is next, and what is urgent before all */

static void
test_shares(void)
{
    int             i, n;
    llm_req_t      *r[16], *other, *heavy, *urgent;
    llm_engine_t    e;
    llm_preparer_t  small, large;

    turns_open(&e, &small, &large);

    for (i = 0; i < 16; i++) {
        r[i] = job(&e, 2 << 10, 7, 0);
    }

    ok(next_job(&large) == r[0], "a tenant floods");
    ok(slice(&e, r[0], 10000) && slice(&e, r[0], 10000), "its own are one "
       "after the other");

    other = job(&e, 2 << 10, 8, 0);
    heavy = job(&e, 2 << 10, 8, 0);
    ok(!slice(&e, r[0], 10000), "another one comes, and has had nothing");
    ok(next_job(&large) == other, "so its request is next");
    end_job(&e, other, 1000);
    ok(next_job(&small) == heavy, "and its other one");
    end_job(&e, heavy, 1000);
    ok(next_job(&large) == NULL, "what is put aside is its thread's");

    /* the flood is refused in the end, which does not help it */

    llm_turns_take(&e.turns, r[0]);
    end_job(&e, r[0], 470000);

    heavy = job(&e, 2 << 20, 8, 0);
    urgent = job(&e, 2 << 10, 7, 5);
    ok(next_job(&small) == urgent, "a higher priority is before all");
    end_job(&e, urgent, 1000);

    ok(next_job(&large) == heavy, "one that takes long");
    ok(slice(&e, heavy, 500), "goes on before who has had more");

    /* no thread is free for what is new: then the one that is put aside */

    llm_turns_put(&e.turns, heavy, LLM_TURN_PAUSED);
    other = job(&e, 2 << 10, 9, 0);
    ok(llm_turns_next(&e.turns, llm_turn_bit(LLM_TURN_PAUSED)) == heavy,
       "each has a thread while it waits");
    llm_turns_take(&e.turns, heavy);
    end_job(&e, heavy, 1);
    ok(next_job(&small) == other, "a third one has its share");
    end_job(&e, other, 1000);

    for (i = 1; i < 16; i++) {
        ok(next_job(i % 2 ? &small : &large) == r[i], "then the flood, in its "
           "order");
        end_job(&e, r[i], 500000);
    }

    for (i = 0; i < 16; i++) {
        r[i] = weighted(&e, 2 << 10, 10 + i % 2, 0, i % 2 ? 3000 : 1000);
    }

    for (i = 0, n = 0; i < 8; i++) {
        other = next_job(&large);
        n += other->msg->weight == 3000;
        end_job(&e, other, 1000);
    }

    is_int(n, 6, "three times the weight, three times the CPU time");

    while ((other = next_job(&large)) != NULL) {
        end_job(&e, other, 1000);
    }

    turns_close(&e);
}


/* what is over waits for no turn */

static void
test_over(void)
{
    llm_err_t        err;
    llm_req_t       *r[4];
    uint32_t         i;
    llm_engine_t     e;
    llm_preparer_t   small, large;

    turns_open(&e, &small, &large);
    llm_jobs_init(&e.doomed);
    (void) llm_engine_late(&err);

    for (i = 0; i < 4; i++) {
        r[i] = job(&e, i == 1 ? 2 << 20 : 2 << 10, 7 + i, 0);
        r[i]->state = LLM_REQ_PREPARING;
    }

    llm_engine_fail(&e, r[0], &err, 0);
    llm_engine_fail(&e, r[1], &err, 0);
    ok(r[0]->state == LLM_REQ_DOOMED && r[1]->state == LLM_REQ_DOOMED
       && r[0]->failure->err.status == 504 && r[0]->payer == NULL,
       "one that waits gets its error at once");

    ok(next_job(&large) == r[2], "and no thread");
    llm_engine_fail(&e, r[2], &err, 0);
    ok(r[2]->state == LLM_REQ_PREPARING && r[2]->cancelled && r[2]->payer,
       "one that a thread has is told of");

    ok(next_job(&large) == r[3], "another one");
    llm_turns_put(&e.turns, r[3], LLM_TURN_PAUSED);
    llm_engine_fail(&e, r[3], &err, 0);
    ok(r[3]->state == LLM_REQ_PREPARING
       && llm_turns_next(&e.turns, LLM_TURNS_ALL) == r[3],
       "one that was put aside is its thread's");
    llm_turns_take(&e.turns, r[3]);

    end_job(&e, r[2], 1);
    end_job(&e, r[3], 1);
    llm_req_free(r[0]);
    llm_req_free(r[1]);

    ok(e.turns.waiting == NULL, "nothing is left");
    turns_close(&e);
}


int
main(void)
{
    test_turns();
    test_shares();
    test_over();

    return done_testing();
}
