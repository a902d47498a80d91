/*
 * Whatever workers ask for, in whatever order, while commands change the model
 * under their requests: each request ends, once, and nothing that was counted
 * or taken for one is left.  LLM_STORM_SEED in the environment: one storm of
 * that number.
 */

#define _GNU_SOURCE

#include "engine/ipc/client.h"
#include "t/unit/order.h"

#define WORKERS  2
#define SLOTS    24
#define STORMS   (SLOW > 3 ? 1 : 4)
#define ACTIONS  (800 / SLOW)
#define PROMPTS  3

typedef struct {
    int   live;                         /* sent, and neither over nor
                                           cancelled */
    int   metered;
    int   granted;
    int   paused;
} one_t;

static one_t           ones[WORKERS][SLOTS];
static uint64_t        dice;
static char            other[] = "/tmp/llm-storm-XXXXXX";
static llm_buf_t       texts[PROMPTS];
static llm_request_t  *prompts[PROMPTS];


static uint32_t
rnd(uint32_t n)
{
    dice = dice * 6364136223846793005ull + 1442695040888963407ull;

    return (uint32_t) (dice >> 33) % n;
}


static void
send_one(uint32_t w, uint32_t slot)
{
    one_t      *o;
    llm_buf_t   b;
    llm_err_t   err;

    o = &ones[w][slot];
    memset(o, 0, sizeof(*o));
    o->metered = rnd(3) == 0;

    make(&b, slot, rnd(N), o->metered ? LLM_REQ_METERED : 0);
    rig_msg(&b)->n = 1 + rnd(3) / 2;
    rig_msg(&b)->max_tokens = (int32_t) (1 + rnd(60));
    rig_msg(&b)->priority = (int32_t) rnd(3) - 1;
    rig_msg(&b)->tenant = rnd(3);
    rig_msg(&b)->flags |= rnd(8) ? 0 : LLM_REQ_PROBE;

    if (rnd(8) == 0) {
        rig_msg(&b)->deadline_us = llm_now_us() + rnd(200000);
    }

    if (rnd(8) == 0) {
        rig_msg(&b)->queue_deadline_us = llm_now_us() + rnd(100000);
    }

    o->live = rig_send(&rig, w, &b, &err) == LLM_OK;
}


static void
tell(uint32_t w, uint32_t slot, llm_msg_type_t type)
{
    llm_client_signal(rig.clients[w], type, slot,
                      rig.answers[w][slot].ticket);
}


/* something for a request that is there, or another one */

static void
change_one(uint32_t w, uint32_t slot)
{
    one_t  *o;

    o = &ones[w][slot];

    if (!o->live || rig.answers[w][slot].over) {
        send_one(w, slot);
        return;
    }

    switch (rnd(6)) {

    case 0:
        tell(w, slot, LLM_MSG_CANCEL);
        o->live = 0;
        rig.answers[w][slot].over = 1;
        break;

    case 1:
        o->paused = !o->paused;
        tell(w, slot, o->paused ? LLM_MSG_PAUSE : LLM_MSG_RESUME);
        break;

    default:
        break;
    }
}


static void
give_command(void)
{
    llm_err_t            err;
    const char          *file;
    llm_command_kind_t   kind;

    static const char *const  files[] = {
        MODEL, other, "/none", "t/unit/engine_storm.c", NULL, MODEL, other
    };

    file = NULL;
    kind = (llm_command_kind_t) (LLM_COMMAND_LOAD + rnd(8));

    if (kind > LLM_COMMAND_RESUME) {
        kind = kind % 2 ? LLM_COMMAND_LOAD : LLM_COMMAND_RESUME;
    }

    if (kind == LLM_COMMAND_LOAD) {
        file = files[rnd(llm_nelems(files))];
    }

    (void) order(rnd(WORKERS), kind, file, rnd(150), &err);
}


/* a worker that dies, and another one in its place */

static void
kill_worker(uint32_t w)
{
    uint32_t       i;
    llm_client_t  *c;

    c = rig.clients[w];

    if (rnd(2)) {
        llm_client_detach(c);
        rig_attach(&rig, w);

    } else {
        rig_attach(&rig, w);            /* the other one has said nothing */
        free(c->live);
        free(c->pending);
        free(c);
    }

    for (i = 0; i < SLOTS; i++) {
        ones[w][i].live = 0;
        rig.answers[w][i].over = 1;
    }
}


static void
restart_engine(void)
{
    llm_engine_stop(rig.engine);

    if (!rig_engine(&rig)) {
        printf("Bail out! the engine does not start\n");
        exit(1);
    }
}


static void
look(uint32_t ms)
{
    uint32_t       w, i;
    one_t         *o;
    rig_answer_t  *a;

    for (w = 0; w < WORKERS; w++) {
        rig_poll(&rig, w, (int) ms);

        for (i = 0; i < SLOTS; i++) {
            o = &ones[w][i];
            a = &rig.answers[w][i];

            if (o->live && a->prepared && !o->granted && !a->over) {
                o->granted = 1;
                tell(w, i, LLM_MSG_GRANT);
            }
        }
    }
}


static void
act(void)
{
    uint32_t  n;

    n = rnd(400);

    if (n == 0) {
        restart_engine();

    } else if (n < 3) {
        kill_worker(rnd(WORKERS));

    } else if (n < 14) {
        give_command();

    } else {
        change_one(rnd(WORKERS), rnd(SLOTS));
    }
}


/* those that are live end when nobody slows them down */

static uint32_t
settle(void)
{
    uint32_t  w, i, left;
    uint64_t  end;

    for (w = 0; w < WORKERS; w++) {
        for (i = 0; i < SLOTS; i++) {
            if (ones[w][i].live && ones[w][i].paused) {
                tell(w, i, LLM_MSG_RESUME);
            }
        }
    }

    end = llm_now_us() + (uint64_t) ORDER_WAIT_MS * 1000;

    do {
        look(5);

        for (w = 0, left = 0; w < WORKERS; w++) {
            for (i = 0; i < SLOTS; i++) {
                left += ones[w][i].live && !rig.answers[w][i].over;
            }
        }
    } while (left && llm_now_us() < end);

    return left;
}


static void
test_storm(uint64_t seed)
{
    uint32_t              i, w, wrong;
    llm_buf_t             b;
    llm_err_t             err;
    llm_model_stats_t     st;
    llm_command_status_t  last;

    static const llm_zone_bounds_t  bounds[] = {
        { 0, 0, 0 }, { 400, 0, 0 }, { 0, 200000, 1 }, { 400, 200000, 1 }
    };

    dice = seed * 7919 + 1;
    memset(ones, 0, sizeof(ones));
    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, MODEL, 512, 1 + rnd(4));
    rig.models[0].warmup = (int) rnd(2);
    rig.models[0].lazy = (int) rnd(2);
    rig.models[0].idle_s = rnd(2);
    rig.models[0].prompts = (const llm_request_t *const *) prompts;
    rig.models[0].n_prompts = PROMPTS;
    rig_open(&rig, WORKERS, 1 << 17, 6);
    llm_zone_set_bounds(rig.zone, &bounds[rnd(llm_nelems(bounds))]);
    (void) rig_engine(&rig);

    for (i = 0; i < ACTIONS; i++) {
        act();
        look(rnd(4));
    }

    is_int(settle(), 0, "storm %u: all have ended", (unsigned) seed);

    for (w = 0, wrong = 0; w < WORKERS; w++) {
        for (i = 0; i < SLOTS; i++) {
            wrong += ones[w][i].live ? (uint32_t) rig.answers[w][i].wrong : 0;
        }
    }

    is_int(wrong, 0, "each once");

    for (i = 0; i < 6000; i++) {
        llm_zone_command(rig.zone, 0, &last);

        if (last.state != LLM_COMMAND_SENT && last.state != LLM_COMMAND_RUNNING
            && !status().replaced)
        {
            break;
        }

        look(5);
    }

    ok(all_gone(), "none is counted");
    ok(i < 6000, "the last command has ended, and what was replaced");

    /* it serves */

    while (order(0, LLM_COMMAND_RESUME, NULL, 0, &err) == 0
           && strcmp(err.code, "model_stopped") != 0)
    {
        look(5);
    }

    do {
        look(5);
        llm_zone_command(rig.zone, 0, &last);
    } while (last.state < LLM_COMMAND_DONE && last.number);

    if (status().state == LLM_MODEL_STOPPED || status().state
                                               == LLM_MODEL_FAILED)
    {
        (void) order_now(LLM_COMMAND_LOAD, MODEL, 0);

        while (order(0, LLM_COMMAND_RESUME, NULL, 0, &err) == 0) {
            look(5);
        }

        do {
            look(5);
            llm_zone_command(rig.zone, 0, &last);
        } while (last.state < LLM_COMMAND_DONE);
    }

    make(&b, 0, 0, 0);
    rig_msg(&b)->max_tokens = 3;
    ones[0][0].live = rig_send(&rig, 0, &b, &err) == LLM_OK;
    ones[0][0].paused = 0;
    ones[0][0].metered = 0;
    ok(ones[0][0].live, "a request is taken: %s",
       ones[0][0].live ? "" : err.msg);
    is_int(settle(), 0, "and answered");
    is_int(rig.answers[0][0].status, 0, "well: %s", rig.answers[0][0].msg);

    ok(all_gone(), "nothing is left");
    is_int((uint32_t) atomic_load(&rig.zone->waiting), 0, "no place");
    usleep(100000);
    llm_zone_model_stats(rig.zone, NULL, 0, &st);
    printf("# %llu choices have ended well, %llu were cancelled, %llu "
           "requests had errors\n", (unsigned long long)
           (st.finished[LLM_FINISH_STOP] + st.finished[LLM_FINISH_LENGTH]),
           (unsigned long long) st.finished[LLM_FINISH_CANCELLED],
           (unsigned long long) st.errors);
    is_int(st.running, 0, "no sequence");
    is_int(st.parked, 0, "none parked");
    is_int(st.waiting, 0, "no request");
    is_int(st.request_memory, 0, "no memory of one");
    is_int(st.kv_used, 0, "no page");

    rig_close(&rig);
}


static void
make_prompts(void)
{
    int32_t   ids[300];
    uint32_t  i, k;

    for (i = 0; i < PROMPTS; i++) {
        for (k = 0; k < llm_nelems(ids); k++) {
            ids[k] = (int32_t) (50 + (k * 7 + i) % 400);
        }

        rig_req(&texts[i], 0);
        rig_ids(&texts[i], ids, llm_nelems(ids));
        rig_msg(&texts[i])->max_tokens = 1;

        while (texts[i].len % 8) {
            (void) llm_buf_addc(&texts[i], 0);
        }

        prompts[i] = rig_msg(&texts[i]);
        prompts[i]->head.size = (uint32_t) texts[i].len;
    }
}


int
main(void)
{
    uint32_t  i;

    order_other(other);
    make_prompts();

    if (getenv("LLM_STORM_SEED")) {
        test_storm(strtoull(getenv("LLM_STORM_SEED"), NULL, 10));

    } else {
        for (i = 1; i <= STORMS; i++) {
            test_storm(i);
        }
    }

    for (i = 0; i < PROMPTS; i++) {
        llm_buf_free(&texts[i]);
    }

    (void) unlink(other);

    return done_testing();
}
