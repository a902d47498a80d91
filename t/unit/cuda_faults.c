/*
 * The engine when its GPU fails, in the emulator: whatever runs or waits
 * ends once, with its text or with an error; the model is loaded again and
 * gives the same tokens; and many failures leave no memory behind.  A kernel
 * that fails costs all that is on the device (LLM_EMU_FAIL_LAUNCH); a graph
 * that finds no memory, a new one or one that was launched before, costs
 * nothing (LLM_EMU_FAIL_GRAPH).
 */

#include "engine/ipc/zone.h"
#include "kernels/kernels.h"
#include "t/unit/rig.h"
#include "t/unit/shallow.h"

#include <malloc.h>

#define LAYERS   2
#define N        7                      /* requests at once, of 4 seats */
#define SMALL    4                      /* tokens */
#define CYCLES   5
#define SETTLED  2                      /* cycles until memory stays as it is */
#define WAIT_MS  120000

#define FAIL_LAUNCH  "LLM_EMU_FAIL_LAUNCH"
#define FAIL_GRAPH   "LLM_EMU_FAIL_GRAPH"

/* what the allocator may hold more after the last cycle than before: caches
   of threads, buffers that grew */
#define SLACK    (64 << 10)

static rig_t     rig;
static int32_t   alone[N][SMALL];


/* request i: some with dice, two choices, logprobs, a chat */

static void
send(uint32_t i, int32_t max_tokens, uint32_t flags)
{
    llm_buf_t   b;
    llm_err_t   err;

    static const char  *texts[] = {
        "Once upon a time", "The sky is", "nginx serves", "A dog and a cat",
        "The capital of France is", "What is 2 + 2?", "One, two, three"
    };

    rig_req(&b, i);
    rig_msg(&b)->flags |= LLM_REQ_IGNORE_EOS | flags;
    rig_msg(&b)->max_tokens = max_tokens;

    if (i % 3 == 1) {
        rig_msg(&b)->sampling.temperature = 0.8f;
        rig_msg(&b)->sampling.has_seed = 1;
        rig_msg(&b)->sampling.seed = 7 + i;
    }

    if (i == 2) {
        rig_msg(&b)->n = 2;
    }

    if (i == 3) {
        rig_msg(&b)->sampling.n_logprobs = 2;
    }

    if (i == 5) {
        rig_chat(&b, texts[i]);

    } else {
        rig_text(&b, texts[i]);
    }

    if (rig_send(&rig, 0, &b, &err) != LLM_OK) {
        printf("# request %u is refused: %d %s\n", i, err.status, err.msg);
    }
}


static int
ended_well(uint32_t i)
{
    const rig_answer_t  *a = &rig.answers[0][i];

    return a->over && a->status == 0 && !a->wrong;
}


/*
 * The first tokens of some, one after another: graphs of more than one
 * sequence are left to be made by the next failure.
 */

static int
as_alone(int first)
{
    uint32_t  i, n, same;

    for (i = 0, n = 0, same = 0; i < N; i += 3, n++) {
        send(i, SMALL, 0);

        if (rig_wait(&rig, 0, i, WAIT_MS) != LLM_OK || !ended_well(i)) {
            printf("# request %u: %s\n", i, rig.answers[0][i].msg);
            continue;
        }

        if (first) {
            memcpy(alone[i], rig.answers[0][i].ids[0], sizeof(alone[i]));
        }

        same += memcmp(alone[i], rig.answers[0][i].ids[0], sizeof(alone[i]))
                == 0;
    }

    return same == n;
}


/* the variable is there from the start: its value alone changes under the
   engine's eyes */

static void
arm(const char *name, unsigned at)
{
    char  value[16];

    snprintf(value, sizeof(value), "%u", at);
    (void) setenv(name, value, 1);
}


static void
send_all(int32_t max_tokens, uint32_t flags)
{
    uint32_t  i;

    for (i = 0; i < N; i++) {
        send(i, max_tokens, flags);
    }
}


/* all that was sent waits for its grant; has it, and the first has got tokens
   twice since: each has a seat or waits for one */

static void
grant_all(void)
{
    uint32_t       i, from;
    uint64_t       end;
    rig_answer_t  *a = rig.answers[0];

    end = llm_now_us() + (uint64_t) WAIT_MS * 1000;

    for (i = 0; i < N; i++) {
        while (!a[i].prepared && !a[i].over && llm_now_us() < end) {
            rig_poll(&rig, 0, 20);
        }
    }

    for (i = 0; i < N; i++) {
        llm_client_signal(rig.clients[0], LLM_MSG_GRANT, i, a[i].ticket);
    }

    rig_poll(&rig, 0, 0);

    for (i = 0; i < 2; i++) {
        from = a->n_tokens[0];

        while (!a->over && a->n_tokens[0] == from && llm_now_us() < end) {
            rig_poll(&rig, 0, 20);
        }
    }
}


/* how many ended with an error that says why, or -1 if one ended in another
   way than that or well */

static int
count_failed(const char *why)
{
    int            failed;
    uint32_t       i;
    rig_answer_t  *a;

    for (i = 0, failed = 0; i < N; i++) {
        if (rig_wait(&rig, 0, i, WAIT_MS) != LLM_OK) {
            printf("# request %u does not end\n", i);
            return -1;
        }

        a = &rig.answers[0][i];

        if (a->status == 500 && strcmp(a->code, LLM_DEVICE_ERROR) == 0
            && strstr(a->msg, why) && !a->wrong)
        {
            failed++;

        } else if (!ended_well(i)) {
            printf("# request %u: %u %s %s\n", i, a->status, a->code,
                   a->msg);
            return -1;
        }
    }

    return failed;
}


static void
one_cycle(uint32_t n)
{
    int  failed;

    if (n % 3 == 2) {

        /* the first of more than one sequence, maybe not of all */

        arm(FAIL_GRAPH, 1);
        send_all(24, 0);
        is_int(count_failed("nothing"), 0, "failure %u: every request ends "
               "well", n);

    } else {

        /* at another place of a step each time */

        send_all(200, LLM_REQ_METERED);
        grant_all();
        arm(FAIL_LAUNCH, 1 + 37 * n);
        failed = count_failed("launch failure");
        is_int(failed, N, "failure %u: every request, running or waiting, "
               "ends with device_error", n);
    }

    ok(rig_ready(&rig, 0, WAIT_MS) == LLM_OK, "the model is loaded again");
    arm(FAIL_GRAPH, 0);
    arm(FAIL_LAUNCH, 0);
    is_int(llm_engine_live(rig.engine), 0, "no request is left");
    ok(as_alone(0), "and gives the same tokens");
}


int
main(void)
{
    char              emu[1024];
    size_t            before, after;
    uint32_t          n;
    const char       *objs;

    objs = getenv("LLM_OBJS");
    objs = objs ? objs : "objs";

    snprintf(emu, sizeof(emu), "%s/llm_emu.so", objs);

    if (access(emu, F_OK) != 0) {
        skip("there is no llm_emu.so in this build");
        return done_testing();
    }

    rig_model(&rig, shallow_model(LAYERS), 256, 4);
    rig.models[0].device = "emu";
    rig.models[0].kv_cache = 8 << 20;
    rig.backend_dir = objs;

    /* a model that is not given back leaves no room for the next */
    (void) setenv("LLM_EMU_MEMORY", "100000000", 1);
    arm(FAIL_GRAPH, 0);
    arm(FAIL_LAUNCH, 0);

    rig_open(&rig, 1, 1 << 20, 16);

    if (!rig_engine(&rig) || rig_ready(&rig, 0, WAIT_MS) != LLM_OK) {
        printf("Bail out! the engine does not start\n");
        return 1;
    }

    ok(as_alone(1), "three requests, one after another");

    /* their steps are replayed by now: the first of these is not */

    arm(FAIL_GRAPH, 1);
    ok(as_alone(0), "a graph that was launched before fails: the same tokens");
    arm(FAIL_GRAPH, 0);
    ok(as_alone(0), "and behind it, without that graph");

    before = 0;

    for (n = 0; n < CYCLES; n++) {
        if (n == SETTLED) {
            before = mallinfo2().uordblks;
        }

        one_cycle(n);
    }

    after = mallinfo2().uordblks;
    ok(after < before + SLACK, "%u failures leave no memory behind: %zu KiB, "
       "then %zu", CYCLES - SETTLED, before >> 10, after >> 10);

    rig_close(&rig);

    return done_testing();
}
