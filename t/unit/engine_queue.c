/*
 * What waits in the engine: its memory is counted and has a bound, whoever
 * is refused is told so, and who has which verdict.
 */

#include "engine/serve/requests.h"
#include "t/unit/rig.h"

#include <malloc.h>

#define MODEL  "models/demo.gguf"

static rig_t  rig;


static void
open_rig(size_t ring, uint32_t queue, size_t max_bytes)
{
    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, MODEL, 1024, 1);
    rig.max_bytes = max_bytes;
    rig_open(&rig, 1, ring, queue);

    if (!rig_engine(&rig) || rig_ready(&rig, 0, 30000) != LLM_OK) {
        printf("Bail out! the engine does not start\n");
        exit(1);
    }
}


static uint64_t
gauge(void)
{
    llm_model_stats_t  st;

    llm_zone_model_stats(rig.zone, NULL, 0, &st);

    return st.request_memory;
}


/* bytes that malloc() has given out; nothing under a sanitizer */

static size_t
allocated(void)
{
    struct mallinfo2  m;

    m = mallinfo2();

    return m.uordblks + m.hblkhd;
}


/* takes the only place for long */

static void
occupy(uint32_t slot)
{
    llm_err_t  err;
    llm_buf_t  b;

    rig_req(&b, slot);
    rig_text(&b, "Count: one, two,");
    rig_msg(&b)->max_tokens = 1000;
    rig_msg(&b)->flags = LLM_REQ_IGNORE_EOS;
    (void) rig_send(&rig, 0, &b, &err);
}


static int
ask_many(uint32_t slot, uint32_t n)
{
    llm_err_t  err;
    llm_buf_t  b;

    rig_req(&b, slot);
    rig_chat(&b, "What is 2 + 2?");
    rig_msg(&b)->n = n;
    rig_msg(&b)->max_tokens = 2;
    rig_msg(&b)->sampling.repetition_penalty = 1.1f;

    return rig_send(&rig, 0, &b, &err);
}


/* the answer to a request that is wrong comes from a preparation thread: then
   all before it were prepared, but the ones that are in the other's hands */

static void
all_prepared(uint32_t slot)
{
    uint32_t   i;
    int32_t    id;
    llm_err_t  err;
    llm_buf_t  b;

    for (i = 0; i < 4; i++) {
        id = 100000000;
        rig_req(&b, slot);
        rig_ids(&b, &id, 1);
        (void) rig_send(&rig, 0, &b, &err);
        (void) rig_wait(&rig, 0, slot, 20000);
    }
}


static void
test_memory(void)
{
    size_t     before, after, least;
    uint32_t   i;
    uint64_t   told;

    open_rig(4 << 20, 100, 0);
    is_int(gauge(), 0, "without requests there is no memory of theirs");

    occupy(0);
    all_prepared(100);
    before = allocated();

    for (i = 1; i <= 80; i++) {
        (void) ask_many(i, 128);
    }

    all_prepared(100);
    after = allocated();
    told = gauge();
    least = 80 * 128 * sizeof(llm_seq_t);

    ok(told > least, "80 that wait, of 128 choices each: %llu bytes",
       (unsigned long long) told);
    ok(told < 2 * least, "not much more than their choices take");
    ok(after <= before || after - before < told + (1 << 20),
       "and malloc() knows of no more: %zu", after - before);

    for (i = 0; i <= 80; i++) {
        llm_client_signal(rig.clients[0], LLM_MSG_CANCEL, i,
                        rig.answers[0][i].ticket);
    }

    for (i = 0; i < 3000 && gauge(); i++) {
        usleep(10000);
    }

    is_int(gauge(), 0, "when they are gone, nothing is counted");

    rig_close(&rig);
}


static void
test_bound(void)
{
    uint32_t       i, refused, told, over;
    rig_answer_t  *a;

    /* five such have room, the others are refused at once */

    open_rig(1 << 20, 100, 5 * 128 * sizeof(llm_seq_t) + 30000);

    occupy(0);

    for (i = 1; i <= 20; i++) {
        (void) ask_many(i, 128);
    }

    for (i = 0; i < 3000; i++) {
        for (a = &rig.answers[0][1], over = 0; a <= &rig.answers[0][20]; a++)
        {
            over += a->over;
        }

        if (over >= 14) {
            break;
        }

        rig_poll(&rig, 0, 10);
    }

    refused = 0;
    told = 0;

    for (a = &rig.answers[0][1]; a <= &rig.answers[0][20]; a++) {
        refused += a->over && a->status == 429 && a->retry_after > 0;
        told += strstr(a->msg, "llm_queue memory=") != NULL;
    }

    ok(refused >= 14 && refused <= 16, "%u of 20 find no room: 429", refused);
    is_int(told, refused, "and why: %s", rig.answers[0][20].msg);
    ok(gauge() <= 5 * 128 * sizeof(llm_seq_t) + 30000,
       "the bound holds");

    rig_close(&rig);
}


/* there is room for a message, and not for the tokens of its text beside it:
   that is known when it has been prepared */

static void
test_prepared(void)
{
    char           text[1601];
    uint32_t       i;
    llm_buf_t      b;
    llm_err_t      err;
    rig_answer_t  *a;

    for (i = 0; i < sizeof(text) - 1; i++) {
        text[i] = i % 2 ? ' ' : (char) ('a' + i / 2 % 26);
    }

    text[i] = '\0';

    rig_req(&b, 0);
    rig_text(&b, text);
    rig_msg(&b)->max_tokens = 1;

    open_rig(1 << 20, 100, b.len + sizeof(llm_req_t) + sizeof(llm_seq_t)
                           + sizeof(llm_prompt_ids_t) + 1000);
    a = rig.answers[0];

    (void) rig_send(&rig, 0, &b, &err);
    (void) rig_wait(&rig, 0, 0, 20000);
    is_int(a[0].status, 429, "a text whose tokens find no room: 429");
    ok(strstr(a[0].msg, "llm_queue memory=") != NULL, "and why: %s", a[0].msg);

    text[400] = '\0';
    rig_req(&b, 1);
    rig_text(&b, text);
    rig_msg(&b)->max_tokens = 1;
    (void) rig_send(&rig, 0, &b, &err);
    (void) rig_wait(&rig, 0, 1, 20000);
    is_int(a[1].status, 0, "a shorter one is served: %s", a[1].msg);

    for (i = 0; i < 3000 && gauge(); i++) {
        usleep(10000);
    }

    is_int(gauge(), 0, "and nothing is counted any more");

    rig_close(&rig);
}


/* sends n, as long as there is room on the way down */

static uint32_t
send_refused(uint32_t n, int cancel)
{
    uint32_t  i, sent;

    sent = 0;

    for (i = 0; i < 1000 && sent < n; i++) {

        if (ask_many(sent, 1) != LLM_OK) {
            usleep(1000);
            continue;
        }

        if (cancel) {
            llm_client_signal(rig.clients[0], LLM_MSG_CANCEL, sent,
                            rig.answers[0][sent].ticket);
        }

        sent++;
    }

    return sent;
}


/* more refusals than the ring of events has room for, and nobody reads */

static void
test_refusals(void)
{
    uint32_t  i, sent, told;

    open_rig(0, 1000, 1);

    (void) send_refused(200, 1);
    sent = send_refused(200, 0);

    for (i = 0, told = 0; i < sent; i++) {
        if (rig_wait(&rig, 0, i, 5000) != LLM_OK) {
            break;                      /* it would be so for the others */
        }

        told += rig.answers[0][i].status == 429;
    }

    ok(sent > 30, "%u requests for which there is no memory", sent);
    is_int(told, sent, "each is told so, however slowly the worker reads");
    is_int(llm_engine_live(rig.engine), 0, "and none is counted any more");

    rig_close(&rig);
}


static uint32_t
send_wrong(uint32_t n)
{
    uint32_t   i, sent, live;
    int32_t    id;
    llm_buf_t  b;
    llm_err_t  err;

    for (i = 0, sent = 0; i < 3000 && sent < n; i++) {
        id = 100000000;
        rig_req(&b, sent);
        rig_ids(&b, &id, 1);

        if (rig_send(&rig, 0, &b, &err) == LLM_OK) {
            sent++;

        } else {
            usleep(1000);
        }
    }

    /* until no answer finds room in the ring any more */

    for (i = 0, live = n; i < 6000 && live && (live == n || i < 20); i++) {
        usleep(10000);

        if (llm_engine_live(rig.engine) != live) {
            live = llm_engine_live(rig.engine);
            i = 0;
        }
    }

    printf("# %u wrong requests, no room for the answers of %u\n", sent, live);

    return sent;
}


/* the same of requests that were accepted and turn out to be wrong */

static void
test_errors(void)
{
    uint32_t  i, sent, told;

    open_rig(0, 1000, 0);

    /* answers that the worker does not want, for which it frees the slots */

    for (i = send_wrong(RIG_SLOTS); i-- > 0; /* void */ ) {
        llm_client_signal(rig.clients[0], LLM_MSG_CANCEL, i,
                          rig.answers[0][i].ticket);
    }

    sent = send_wrong(RIG_SLOTS);

    for (i = 0, told = 0; i < sent; i++) {
        if (rig_wait(&rig, 0, i, 5000) != LLM_OK) {
            break;
        }

        told += rig.answers[0][i].status == 400;
    }

    is_int(sent, RIG_SLOTS, "%u requests that are wrong", sent);
    is_int(told, sent, "each is told so, however slowly the worker reads");
    is_int(llm_engine_live(rig.engine), 0, "and none is live any more");

    rig_close(&rig);
}


/* a worker that reads nothing more and dies: its refusal goes with it */

static void
test_dead_reader(void)
{
    uint32_t  i;

    open_rig(0, 1000, 1);

    (void) send_refused(200, 1);
    (void) send_refused(200, 0);

    llm_client_detach(rig.clients[0]);
    rig.clients[0] = NULL;

    for (i = 0; i < 3000 && llm_engine_live(rig.engine); i++) {
        usleep(10000);
    }

    is_int(llm_engine_live(rig.engine), 0, "nobody waits for the dead");

    rig_close(&rig);
}


/* the preparation's verdict and the scheduler's do not mix */

static void
test_verdicts(void)
{
    llm_err_t       bad, late;
    llm_req_t      *r;
    llm_engine_t    e;
    llm_request_t  *msg;

    memset(&e, 0, sizeof(e));
    pthread_mutex_init(&e.lock, NULL);
    pthread_cond_init(&e.work, NULL);

    msg = calloc(1, sizeof(*msg));
    msg->head.size = sizeof(*msg);
    r = llm_req_create(msg);
    r->state = LLM_REQ_PREPARING;
    r->turn = LLM_TURN_N;                   /* a thread has it */

    (void) llm_fail_with(&bad, 400, NULL, NULL, "wrong");
    (void) llm_fail_with(&late, 503, "queue_timeout", NULL, "late");

    llm_req_fail(r, &bad, 0);
    llm_engine_fail(&e, r, &late, 7);

    is_int(r->failure->err.status, 400, "the request is wrong");
    is_int(r->failure->retry_after, 0, "which trying again does not mend");
    ok(atomic_load(&r->cancelled), "nobody needs to prepare what is late");

    llm_req_free(r);
    pthread_cond_destroy(&e.work);
    pthread_mutex_destroy(&e.lock);
}


/* what lies in a ring may change while it is read: what was checked holds */

static void
test_changed(void)
{
    char              *mem, *rec;
    llm_req_t         *r;
    llm_peer_t         peer;
    llm_running_t      order;
    llm_engine_t       e;
    llm_instance_t     m, *models[1] = { &m };
    llm_request_t      head, *there;
    llm_zone_model_t   zm = { .parallel = 1 };
    llm_command_msg_t  command;

    memset(&e, 0, sizeof(e));
    memset(&m, 0, sizeof(m));
    memset(&peer, 0, sizeof(peer));
    memset(&order, 0, sizeof(order));
    memset(&head, 0, sizeof(head));
    memset(&command, 0, sizeof(command));

    mem = aligned_alloc(64, llm_zone_size(1, 1, 4096));
    e.zone = llm_zone_init(mem, 1, &zm, 1, 4096, 10);
    e.max_bytes = 1 << 20;
    e.models = models;
    e.running = &order;
    e.n_models = 1;
    m.engine = &e;
    m.state = LLM_MODEL_LOADING;
    llm_jobs_init(&m.held);

    head.head.size = sizeof(head) + 64;
    rec = calloc(1, head.head.size);
    there = (llm_request_t *) rec;
    there->head.size = UINT32_MAX & ~7u;
    there->model = 77;
    there->head.slot = 1000000000;

    llm_engine_accept(&e, &peer, &head, rec);
    r = m.held.first;

    ok(r && r->msg->head.size == head.head.size && r->model == 0
       && r->out.to.slot == 0, "a request is as it was when it was checked");

    free(rec);
    free(peer.slots);
    llm_req_free(r);

    /* a name that has lost the zero behind it */

    command.head.size = sizeof(command) + 8;
    command.kind = LLM_COMMAND_LOAD;
    command.file.off = sizeof(command);
    command.file.len = 7;
    rec = malloc(command.head.size);
    memset(rec, 'x', command.head.size);

    llm_engine_command(&e, &command, rec);
    is_int(order.number, 0, "a name without an end is no command");

    free(rec);
    free(mem);
}


int
main(void)
{
    test_changed();
    test_memory();
    test_bound();
    test_prepared();
    test_refusals();
    test_errors();
    test_dead_reader();
    test_verdicts();

    return done_testing();
}
