/*
 * Commands for a model's present file: it is unloaded, loaded again, drained;
 * what they mean for requests that run, wait and come, and for an engine that
 * takes the place of this one.
 */

#define _GNU_SOURCE

#include "t/unit/order.h"

/* tokens: what ends, after a while, and what is ended before */
#define LONG    3000
#define LONGER  7000


/* is it refused at once, with this code? */

static int
refused(const char *code)
{
    llm_err_t  err;
    llm_buf_t  b;

    make(&b, 99, 1, 0);
    rig_msg(&b)->max_tokens = 1;

    if (rig_send(&rig, 0, &b, &err) == LLM_OK) {
        printf("# it is not refused\n");
        (void) rig_wait(&rig, 0, 99, ORDER_WAIT_MS);
        return 0;
    }

    printf("# %d %s: %s\n", err.status, err.code, err.msg);

    return err.status == 503 && strcmp(err.code, code) == 0;
}


static int
served(uint32_t slot)
{
    stream(slot, 3);
    (void) rig_wait(&rig, 0, slot, ORDER_WAIT_MS);

    if (rig.answers[0][slot].status) {
        printf("# %u %s\n", rig.answers[0][slot].status,
               rig.answers[0][slot].code);
    }

    return rig.answers[0][slot].over && rig.answers[0][slot].status == 0;
}


static void
test_unload(void)
{
    uint64_t              n, begin;
    llm_err_t             err;
    rig_answer_t         *a;
    llm_model_stats_t     stats;
    llm_command_status_t  st;

    open_rig(8192, 2, 0, 0, 8);
    a = rig.answers[0];
    is_int(order_now(LLM_COMMAND_LOAD, NULL, 0), LLM_COMMAND_DONE,
           "to load what is loaded is nothing");

    /* one ends in time, one does not, one waits for its turn */

    stream(0, LONGER);
    stream(1, 10);
    stream(2, LONGER);
    (void) rig_wait_text(&rig, 0, 0, ORDER_WAIT_MS);

    begin = llm_now_us();
    n = order_or_die(LLM_COMMAND_UNLOAD, NULL, 150);
    (void) reaches(LLM_MODEL_STOPPED);
    ok(refused("model_stopped"), "new requests are refused at once");
    is_int(order_wait(n, &st), LLM_COMMAND_DONE, "it is unloaded");
    ok(llm_now_us() - begin >= 150000, "after its time");
    (void) rig_wait(&rig, 0, 0, ORDER_WAIT_MS);
    (void) rig_wait(&rig, 0, 1, ORDER_WAIT_MS);
    (void) rig_wait(&rig, 0, 2, ORDER_WAIT_MS);

    is_int(a[0].status, 503, "a long one has got an error");
    is_str(a[0].code, "model_stopped", "with its code");
    ok(a[0].n_ids[0] > 0, "behind %u tokens", a[0].n_ids[0]);
    is_int(a[2].status, 503, "so has one that waited");
    is_int(status().state, LLM_MODEL_STOPPED, "the state says it");

    llm_zone_model_stats(rig.zone, NULL, 0, &stats);
    is_int(stats.kv_pages, 0, "there are no pages any more");
    is_int(stats.request_memory, 0, "nor memory of requests");
    is_int(llm_engine_live(rig.engine), 0, "nor requests");

    ok(refused("model_stopped"), "a request does not load it");
    is_int(status().state, LLM_MODEL_STOPPED, "it is still unloaded");
    is_int(order(0, LLM_COMMAND_RESUME, NULL, 0, &err), 0,
           "it cannot be resumed");
    is_int(err.status, 409, "409");
    is_str(err.code, "model_stopped", "because it is unloaded");
    is_int(order_now(LLM_COMMAND_UNLOAD, NULL, 0), LLM_COMMAND_DONE,
           "it can be unloaded again");

    /* another worker loads it */

    n = order(1, LLM_COMMAND_LOAD, NULL, 0, &err);
    is_int(order_wait(n, &st), LLM_COMMAND_DONE, "a command loads it");
    is_int(status().state, LLM_MODEL_READY, "it is ready");
    ok(served(3), "and serves");
    llm_zone_model_stats(rig.zone, NULL, 0, &stats);
    ok(stats.kv_pages > 0, "with pages");

    /* who ends in time gets no error */

    stream(4, 20);
    is_int(order_now(LLM_COMMAND_UNLOAD, NULL, ORDER_WAIT_MS),
           LLM_COMMAND_DONE, "it is unloaded when its request has ended");
    (void) rig_wait(&rig, 0, 4, ORDER_WAIT_MS);
    is_int(a[4].status, 0, "which got no error");
    is_int(a[4].n_ids[0], 20, "but all its tokens");

    rig_close(&rig);
}


/* a load that takes its time, on demand */

static void
test_while_loading(void)
{
    uint64_t              n;
    llm_err_t             err;
    llm_command_status_t  st;

    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, MODEL, 1024, 2);
    rig.models[0].lazy = 1;
    rig.models[0].idle_s = 1;
    rig_open(&rig, 1, 1 << 20, 8);
    is_int(order(0, LLM_COMMAND_LOAD, NULL, 0, &err), 0,
           "without an engine there are no commands");
    is_int(err.status, 503, "503");
    ok(rig_engine(&rig), "an engine");

    is_int(status().state, LLM_MODEL_IDLE, "a lazy model");
    n = order_or_die(LLM_COMMAND_LOAD, NULL, 0);
    is_int(order(0, LLM_COMMAND_LOAD, NULL, 0, &err), 0,
           "is not loaded twice");
    is_int(err.status, 409, "409: %s", err.code);

    while (status().state == LLM_MODEL_IDLE) {
        usleep(100);
    }

    stream(0, 3);
    n = order_or_die(LLM_COMMAND_UNLOAD, NULL, 60000);
    is_int(order_wait(n, &st), LLM_COMMAND_DONE, "but unloaded meanwhile");
    (void) rig_wait(&rig, 0, 0, ORDER_WAIT_MS);
    ok(rig.answers[0][0].over, "a request that waited for it has ended");
    ok(rig.answers[0][0].status == 0
       || strcmp(rig.answers[0][0].code, "model_stopped") == 0,
       "because of that, if it was not served before");

    is_int(order_now(LLM_COMMAND_LOAD, NULL, 0), LLM_COMMAND_DONE,
           "then it can be loaded");
    ok(served(1), "and serves");
    ok(reaches(LLM_MODEL_IDLE), "and is idle in the end, as before");
    ok(served(2), "a request loads it");

    rig_close(&rig);
}


static void
test_drain(void)
{
    uint64_t              n;
    rig_answer_t         *a;
    llm_command_status_t  st;

    open_rig(4096, 2, 0, 0, 8);
    a = rig.answers[0];

    stream(0, LONG);
    (void) rig_wait_text(&rig, 0, 0, ORDER_WAIT_MS);
    n = order_or_die(LLM_COMMAND_DRAIN, NULL, 0);

    while (!status().draining) {
        rig_poll(&rig, 0, 1);
    }

    ok(refused("model_draining"), "new requests are refused");
    llm_zone_command(rig.zone, 0, &st);
    is_int(st.state, LLM_COMMAND_RUNNING, "while one runs it drains");
    is_int(order_wait(n, &st), LLM_COMMAND_DONE, "then it has drained");
    (void) rig_wait(&rig, 0, 0, ORDER_WAIT_MS);
    is_int(a[0].status, 0, "the one that ran has got no error");
    is_int(a[0].n_ids[0], LONG, "but all its tokens");
    is_int(status().state, LLM_MODEL_READY, "the model stays loaded");
    ok(refused("model_draining"), "and refuses");

    is_int(order_now(LLM_COMMAND_RESUME, NULL, 0), LLM_COMMAND_DONE,
           "until it resumes");
    ok(served(1), "then it serves");

    /* those who look know before the first is refused */

    n = order_or_die(LLM_COMMAND_DRAIN, NULL, 3000 * SLOW);

    while (!status().draining) {
        usleep(1000);
    }

    ok(served(2), "a model that will drain serves until then");
    llm_zone_command(rig.zone, 0, &st);
    is_int(st.state, LLM_COMMAND_RUNNING, "and has not drained");
    is_int(order_wait(n, &st), LLM_COMMAND_DONE, "before its time");
    ok(refused("model_draining"), "then it refuses");

    rig_close(&rig);
}


/* another engine in the zone goes on where this one was */

static void
test_kept(void)
{
    llm_err_t             err;
    llm_command_status_t  st;

    open_rig(8192, 2, 0, 0, 8);

    (void) order_now(LLM_COMMAND_UNLOAD, NULL, 0);
    llm_engine_stop(rig.engine);
    rig.engine = NULL;

    is_int(order(0, LLM_COMMAND_LOAD, NULL, 0, &err), 0, "no engine");
    is_str(err.code, "engine_restarting", "no commands");

    ok(rig_engine(&rig), "another engine");
    usleep(100000);
    is_int(status().state, LLM_MODEL_STOPPED, "does not load it either");
    ok(refused("model_stopped"), "nor do requests");
    is_int(order_now(LLM_COMMAND_LOAD, NULL, 0), LLM_COMMAND_DONE,
           "a command does");
    (void) order_now(LLM_COMMAND_DRAIN, NULL, 0);

    llm_engine_stop(rig.engine);
    ok(rig_engine(&rig) && rig_ready(&rig, 0, ORDER_WAIT_MS) == LLM_OK,
       "a third engine loads it");
    ok(refused("model_draining"), "and drains");
    is_int(order_now(LLM_COMMAND_RESUME, NULL, 0), LLM_COMMAND_DONE,
           "until told otherwise");
    ok(served(1), "then it serves");

    stream(2, LONGER);
    (void) order_or_die(LLM_COMMAND_UNLOAD, NULL, 600000);
    llm_engine_stop(rig.engine);
    rig.engine = NULL;
    llm_zone_command(rig.zone, 0, &st);
    is_int(st.state, LLM_COMMAND_FAILED, "a command that ran has ended");
    is_str(st.code, "shutting_down", "with the engine");

    rig_close(&rig);
}


/* a model whose file is not there: commands, and the tries of its own */

static void
test_failed(void)
{
    char                  dir[] = "/tmp/llm-commands-XXXXXX", file[64];
    char                  model[4096];
    uint64_t              n;
    llm_command_status_t  st;

    if (mkdtemp(dir) == NULL || realpath(MODEL, model) == NULL) {
        printf("Bail out! no folder\n");
        exit(1);
    }

    snprintf(file, sizeof(file), "%s/late.gguf", dir);

    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, file, 256, 1);
    rig.models[0].retry_s = 0;
    rig_open(&rig, 1, 1 << 20, 8);
    ok(rig_engine(&rig) && reaches(LLM_MODEL_FAILED), "a model has failed");

    n = order_or_die(LLM_COMMAND_LOAD, NULL, 0);
    is_int(order_wait(n, &st), LLM_COMMAND_FAILED, "it fails again");
    is_int(st.status, 503, "503");
    is_str(st.code, "model_failed", "which is said");
    ok(strstr(st.reason, "late.gguf") && !strstr(st.reason, dir),
       "with the reason, without the folder: %s", st.reason);

    is_int(order_now(LLM_COMMAND_UNLOAD, NULL, 0), LLM_COMMAND_DONE,
           "it can be stopped");
    is_int(status().state, LLM_MODEL_STOPPED, "then it is stopped");

    ok(symlink(model, file) == 0, "its file comes");
    is_int(order_now(LLM_COMMAND_LOAD, NULL, 0), LLM_COMMAND_DONE,
           "it is loaded");
    ok(served(0), "and serves");

    rig_close(&rig);
    (void) unlink(file);
    (void) rmdir(dir);
}


int
main(void)
{
    test_unload();
    test_while_loading();
    test_drain();
    test_kept();
    test_failed();

    return done_testing();
}
