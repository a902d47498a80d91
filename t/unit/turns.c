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
    small->alone = llm_turn_bit(LLM_TURN_QUICK);
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

    if (r && p->alone == 0) {           /* it is done at once */
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


/* a chat with an image */

static llm_req_t *
seeing(llm_engine_t *e, uint64_t tenant, llm_turn_t list)
{
    llm_req_t  *r;

    r = job(e, 2 << 10, tenant, 0);
    llm_turns_take(&e->turns, r);
    r->msg->media.len = 1;
    llm_turns_put(&e->turns, r, list);

    return r;
}


/* the thread waits for a decoder: another one may run */

static llm_req_t *
held_job(llm_engine_t *e, llm_preparer_t *p)
{
    memset(p, 0, sizeof(*p));
    p->engine = e;
    p->job = llm_preparer_take(p);
    e->runs = NULL;

    return p->job;
}


/* it is given back, for its next image */

static void
give_back(llm_engine_t *e, llm_req_t *r)
{
    e->n_idle++;
    e->n_media--;
    r->prep.next = LLM_NEXT_MEDIUM;
    is_int(llm_preparer_back(e, r), LLM_OK, "given back");
}


/* chats with images leave threads to others, and large ones to small ones */

static void
test_media(void)
{
    int             i, n;
    llm_req_t      *r, *text;
    llm_engine_t    e;
    llm_preparer_t  small, large, p[LLM_ENGINE_OTHERS];

    turns_open(&e, &small, &large);
    e.n_idle = LLM_ENGINE_OTHERS;

    for (i = 0; i < LLM_ENGINE_OTHERS; i++) {
        (void) seeing(&e, 1, LLM_TURN_LARGE);
        (void) seeing(&e, 1, LLM_TURN_MEDIA);
    }

    text = job(&e, 2 << 20, 1, 0);
    ok(llm_preparer_take(&small) == NULL, "no image for the quick thread");

    for (n = 0; (r = held_job(&e, &p[n])) != text; n++) {
        ok(r->msg->media.len == 1, "an image");
    }

    is_int(n, LLM_ENGINE_MEDIA + LLM_ENGINE_LARGE, "so many at a time");
    is_int(e.n_large, LLM_ENGINE_LARGE, "so many large ones");
    ok(held_job(&e, &p[n + 1]) == NULL, "others wait");
    ok(e.n_idle > 1, "and threads are idle, for text");

    llm_turns_leave(&e.turns, text);
    llm_req_free(text);

    while (n--) {
        llm_turns_leave(&e.turns, p[n].job);
        llm_req_free(p[n].job);
    }

    while ((r = llm_turns_next(&e.turns, LLM_TURNS_ALL)) != NULL) {
        llm_turns_take(&e.turns, r);
        llm_turns_leave(&e.turns, r);
        llm_req_free(r);
    }

    turns_close(&e);
}


/* between its images a request goes to the end of its tenant's line, and its
   tenant pays for the decoder */

static void
test_between(void)
{
    llm_req_t      *a, *b, *other;
    llm_engine_t    e;
    llm_preparer_t  small, p;

    turns_open(&e, &small, &p);
    pthread_mutex_init(&e.lock, NULL);
    pthread_cond_init(&e.work, NULL);
    e.n_idle = 2;
    e.max_bytes = 1500;

    a = seeing(&e, 1, LLM_TURN_MEDIA);
    b = seeing(&e, 1, LLM_TURN_MEDIA);
    ok(held_job(&e, &p) == a, "the first of two");
    a->prep.begun_bytes = 1000;
    give_back(&e, a);
    is_int(e.turns.bytes, 1000, "what waits for the next image is");
    ok(held_job(&e, &p) == b, "then the second one");
    b->prep.begun_bytes = 501;
    is_int(llm_preparer_back(&e, b), LLM_ERROR, "both are too much");
    ok(b->failure->err.status == 429 && b->turn == LLM_TURN_N
       && b->failure->retry_after, "the second one is refused: %s",
       b->failure->err.msg);
    b->prep.begun_bytes = 500;
    give_back(&e, b);
    ok(held_job(&e, &p) == a, "then the first one again");
    is_int(e.turns.bytes, 500, "what a thread has is not");

    llm_preparer_rest(&p, 1);
    p.rest_us -= 5000000;
    llm_preparer_rest(&p, 0);
    ok(a->payer->share.time >= 5000000, "five seconds of a decoder are paid");

    e.runs = NULL;
    other = seeing(&e, 2, LLM_TURN_MEDIA);
    other->payer->share.time = 4000000;
    ok(held_job(&e, &small) == other, "who has had less is next");

    a->prep.next = LLM_NEXT_LARGE;
    a->prep.begun_bytes = 0;
    (void) llm_preparer_back(&e, a);
    is_int(a->turn, LLM_TURN_LARGE, "a large one goes among the large ones");
    a->msg->task = LLM_TASK_LISTEN;
    llm_turns_take(&e.turns, a);
    (void) llm_preparer_back(&e, a);
    is_int(a->turn, LLM_TURN_LONG, "and a long sound among the long ones");
    llm_turns_take(&e.turns, a);
    a->prep.next = LLM_NEXT_GRAMMAR;
    a->msg->task = LLM_TASK_GENERATE;
    (void) llm_preparer_back(&e, a);
    is_int(a->turn, LLM_TURN_SLOW, "a new grammar among the slow ones");
    llm_turns_take(&e.turns, a);
    llm_turns_take(&e.turns, b);
    end_job(&e, a, 0);
    end_job(&e, b, 0);
    end_job(&e, other, 0);
    pthread_cond_destroy(&e.work);
    pthread_mutex_destroy(&e.lock);
    turns_close(&e);
}


/* a grammar, which may take long, is compiled by threads that nobody's image
   waits for */

static void
test_grammars(void)
{
    size_t          i;
    llm_engine_t    e;
    llm_prep_how_t  how;
    llm_preparer_t  small, p;

    static const struct {
        const char  *name;
        llm_turn_t   from;
        int          never;
        int          large;
    } rows[] = {
        { "a large text", LLM_TURN_SLOW, 0, 0 },
        { "a small one", LLM_TURN_QUICK, 0, 0 },
        { "an image", LLM_TURN_MEDIA, 1, 0 },
        { "a large one", LLM_TURN_LARGE, 1, 1 }
    };

    turns_open(&e, &small, &p);
    llm_preparer_how(&small, &how);
    ok(how.never && how.pause == NULL, "the quick thread compiles nothing");

    for (i = 0; i < llm_nelems(rows); i++) {
        p.from = rows[i].from;
        llm_preparer_how(&p, &how);
        ok(how.never == rows[i].never && how.large == rows[i].large
           && how.pause && how.rest, "%s: what its thread does",
           rows[i].name);
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
    test_media();
    test_between();
    test_grammars();
    test_over();

    return done_testing();
}
