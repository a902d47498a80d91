/*
 * Another file beside the present one on a GPU, in the emulator: no memory for
 * both, memory for both and not for all pages, a device that fails while the
 * other file warms up, one that fails the present one meanwhile, and one whose
 * context is lost.
 */

#define _GNU_SOURCE

#include "t/unit/order.h"
#include "kernels/kernels.h"

#define FAIL_LAUNCH  "LLM_EMU_FAIL_LAUNCH"

static char         other[] = "/tmp/llm-swap-XXXXXX";
static const char  *objs;


/* the n-th kernel from now on fails; 0: none does */

static void
arm(unsigned n)
{
    char  value[16];

    snprintf(value, sizeof(value), "%u", n);
    (void) setenv(FAIL_LAUNCH, value, 1);
}


static void
open_emu(uint32_t ctx, uint32_t parallel, int warmup)
{
    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, MODEL, ctx, parallel);
    rig.models[0].device = "emu";
    rig.models[0].warmup = warmup;
    rig.backend_dir = objs;
    rig_open(&rig, 1, 1 << 20, 8);

    if (!rig_engine(&rig) || rig_ready(&rig, 0, ORDER_WAIT_MS) != LLM_OK) {
        printf("Bail out! the engine does not start\n");
        exit(1);
    }
}


/* the first tokens that the model says now */

static int
ask(int32_t *ids)
{
    llm_buf_t      b;
    rig_answer_t  *a;

    rig_req(&b, 0);
    rig_text(&b, "Once upon");
    rig_msg(&b)->flags |= LLM_REQ_IGNORE_EOS;
    rig_msg(&b)->max_tokens = 4;
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 0, ORDER_WAIT_MS);

    a = &rig.answers[0][0];
    memcpy(ids, a->ids[0], 4 * sizeof(int32_t));

    if (a->status) {
        printf("# %u %s: %s\n", a->status, a->code, a->msg);
    }

    return a->over && a->status == 0 && a->n_ids[0] == 4;
}


static int
same(const int32_t *a, const int32_t *b)
{
    return memcmp(a, b, 4 * sizeof(int32_t)) == 0;
}


static void
test_no_memory(void)
{
    int32_t               first[4], now[4];
    uint64_t              n;
    llm_command_status_t  st;

    setenv("LLM_EMU_MEMORY", "37000000", 1);
    open_emu(4096, 1, 0);
    ok(ask(first), "a model on a small GPU");

    n = order_or_die(LLM_COMMAND_LOAD, other, 0);
    is_int(order_wait(n, &st), LLM_COMMAND_FAILED, "no memory for another");
    is_int(st.status, 503, "503");
    is_str(st.code, "no_memory", "which is said");
    ok(st.reason[0] != '\0', "with figures: %s", st.reason);
    is_int(status().state, LLM_MODEL_READY, "the model goes on");
    is_int(status().ctx, 4096, "as it was");
    ok(ask(now) && same(now, first), "and says what it said");

    /* unloaded, it makes room */

    is_int(order_now(LLM_COMMAND_UNLOAD, NULL, 0), LLM_COMMAND_DONE,
           "without it");
    is_int(order_now(LLM_COMMAND_LOAD, other, 0), LLM_COMMAND_DONE,
           "there is memory");
    ok(ask(now) && !same(now, first), "for the other one");

    rig_close(&rig);
    unsetenv("LLM_EMU_MEMORY");
}


/* the kernels of the other file's warm-up fail */

static void
test_warmup_fails(void)
{
    int32_t               first[4], now[4];
    uint64_t              n;
    llm_command_status_t  st;

    arm(0);
    open_emu(64, 1, 1);
    ok(ask(first), "a model on a GPU");

    n = order_or_die(LLM_COMMAND_LOAD, other, 0);

    do {
        usleep(100);
        llm_zone_command(rig.zone, 0, &st);
    } while (!st.warming && st.state < LLM_COMMAND_DONE);

    arm(1);
    is_int(order_wait(n, &st), LLM_COMMAND_FAILED, "another one's step fails");
    ok(st.reason[0] != '\0', "with the reason: %s: %s", st.code, st.reason);
    is_int(status().replaced, 0, "its warm-up is no request");
    ok(ask(now) && same(now, first), "the present one says what it said");
    is_int(status().state, LLM_MODEL_READY, "and is ready");

    arm(0);
    is_int(order_now(LLM_COMMAND_LOAD, other, 0), LLM_COMMAND_DONE,
           "a device that works takes it");
    ok(ask(now) && !same(now, first), "and it serves");

    rig_close(&rig);
    unsetenv(FAIL_LAUNCH);
}


/* a step of the present one fails while the other is loaded */

static void
test_step_fails(void)
{
    llm_buf_t             b;
    int32_t               first[4], now[4];
    uint64_t              n;
    llm_command_status_t  st;

    arm(0);
    open_emu(256, 1, 0);
    ok(ask(first), "a model on a GPU");

    rig_req(&b, 1);
    rig_text(&b, "Once upon");
    rig_msg(&b)->flags |= LLM_REQ_IGNORE_EOS;
    rig_msg(&b)->max_tokens = 60;
    send_or_die(0, &b);
    (void) rig_wait_text(&rig, 0, 1, ORDER_WAIT_MS);

    n = order_or_die(LLM_COMMAND_LOAD, other, 0);
    arm(5);
    (void) order_wait(n, &st);
    (void) rig_wait(&rig, 0, 1, ORDER_WAIT_MS);
    ok(rig.answers[0][1].over, "its request has ended");
    ok(st.state >= LLM_COMMAND_DONE, "so has the command");

    arm(0);
    (void) reaches(LLM_MODEL_READY);
    ok(ask(now), "it serves again");
    is_int(same(now, first), st.state == LLM_COMMAND_FAILED,
           "with the file that the command says");

    rig_close(&rig);
    unsetenv(FAIL_LAUNCH);
}


static uint32_t
pages(void)
{
    return atomic_load(&rig.zone->models[0].figures.kv_pages);
}


/* the least memory with which both are there leaves the other one few pages;
   it gets all of them when the present one has gone */

static void
test_few_pages(void)
{
    int       done;
    char      memory[16];
    int32_t   now[4];
    uint32_t  mb, all, i;

    setenv("LLM_EMU_MEMORY", "53000000", 1);
    open_emu(1024, 2, 0);
    all = pages();
    is_int(all, 2 * 1024 / LLM_KV_PAGE, "a model has its pages");

    for (mb = 40, done = 0; mb < 150 && !done; mb++) {
        snprintf(memory, sizeof(memory), "%u000000", mb);
        setenv("LLM_EMU_MEMORY", memory, 1);
        done = order_now(LLM_COMMAND_LOAD, other, 0) == LLM_COMMAND_DONE;
    }

    ok(done && mb > 41, "with %u MB there is room for another", mb - 1);
    ok(reaches(LLM_MODEL_LOADING), "it is loaded again");

    for (i = 0; i < 3000 && (status().state != LLM_MODEL_READY
                             || pages() != all); i++)
    {
        usleep(10000);
    }

    is_int(pages(), all, "with all pages");
    is_str(status().file, other, "of its file");
    ok(ask(now), "and serves");

    rig_close(&rig);
    unsetenv("LLM_EMU_MEMORY");
}


/* an error that costs the process its GPU, in the other file's warm-up: as
   nothing is served, the process may end at once */

static void
test_lost(void)
{
    uint32_t              i;
    uint64_t              n;
    llm_command_status_t  st;

    arm(0);
    setenv("LLM_EMU_STICKY", "1", 1);
    open_emu(64, 1, 1);
    is_int(llm_engine_lost(rig.engine), 0, "a model on a GPU");

    n = order_or_die(LLM_COMMAND_LOAD, other, 0);

    do {
        usleep(100);
        llm_zone_command(rig.zone, 0, &st);
    } while (!st.warming && st.state < LLM_COMMAND_DONE);

    arm(1);
    is_int(order_wait(n, &st), LLM_COMMAND_FAILED, "its context is lost");
    is_str(st.code, "device_lost", "which is said: %s", st.reason);

    for (i = 0; i < 1000 && !llm_engine_lost(rig.engine); i++) {
        rig_poll(&rig, 0, 10);
    }

    ok(llm_engine_lost(rig.engine), "the process is to end");

    rig_close(&rig);
    unsetenv("LLM_EMU_STICKY");
    unsetenv(FAIL_LAUNCH);
}


int
main(void)
{
    char  emu[4096];

    objs = getenv("LLM_OBJS") ? getenv("LLM_OBJS") : "objs";
    snprintf(emu, sizeof(emu), "%s/llm_emu.so", objs);

    if (access(emu, R_OK) != 0) {
        skip("there is no llm_emu.so in this build");
        return done_testing();
    }

    order_other(other);

    test_no_memory();
    test_warmup_fails();
    test_step_fails();
    test_few_pages();
    test_lost();

    (void) unlink(other);

    return done_testing();
}
