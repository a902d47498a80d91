/*
 * Another file takes a model's place: each text is of one of them from end to
 * end, and none is lost; one that is broken, or too large to stand beside the
 * present one, changes nothing; and nothing hangs, whatever else happens
 * meanwhile.
 */

#define _GNU_SOURCE

#include "t/unit/order.h"

#define STREAMS  50
#define TOKENS   (160 / SLOW)

static char  other[] = "/tmp/llm-swap-XXXXXX";

/* what both files say to the requests */
static int32_t   says[2][N][256];
static uint32_t  n_says[2][N];


static void
request(uint32_t w, uint32_t slot, uint32_t i)
{
    llm_buf_t  b;

    make(&b, slot, i % N, 0);
    rig_msg(&b)->max_tokens = TOKENS;
    send_or_die(w, &b);
}


/* 0 and 1: the whole text is this file's; -1: of neither */

static int
whose(uint32_t i, const rig_answer_t *a)
{
    int       f;
    uint32_t  k;

    k = i % N;

    for (f = 0; f < 2; f++) {
        if (a->over && a->status == 0 && a->wrong == 0
            && a->n_ids[0] == n_says[f][k]
            && memcmp(a->ids[0], says[f][k], n_says[f][k] * 4) == 0)
        {
            return f;
        }
    }

    printf("# request %u: over %d, %u %s, %u tokens\n", i, a->over, a->status,
           a->code, a->n_ids[0]);

    return -1;
}


static int
ask(uint32_t slot)
{
    request(0, slot, slot);
    (void) rig_wait(&rig, 0, slot, ORDER_WAIT_MS);

    return whose(slot, &rig.answers[0][slot]);
}


static void
learn(int f)
{
    uint32_t       i;
    rig_answer_t  *a;

    for (i = 0; i < N; i++) {
        request(0, i, i);
        (void) rig_wait(&rig, 0, i, ORDER_WAIT_MS);
        a = &rig.answers[0][i];
        n_says[f][i] = llm_min(a->n_ids[0], 256u);
        memcpy(says[f][i], a->ids[0], n_says[f][i] * 4);
    }
}


static void
close_rig(void)
{
    llm_model_stats_t  st;

    ok(all_gone(), "none is left");
    llm_zone_model_stats(rig.zone, NULL, 0, &st);
    is_int(st.request_memory, 0, "nor memory of requests");
    is_int(st.running, 0, "nor sequences");
    rig_close(&rig);
}


/* the files differ; the second is loaded where the first was */

static void
test_files(void)
{
    uint32_t           i, same;
    llm_model_stats_t  before, after;

    open_rig(1024, 4, 0, 0, 8);
    learn(0);
    llm_zone_model_stats(rig.zone, NULL, 0, &before);

    is_int(order_now(LLM_COMMAND_LOAD, other, 0), LLM_COMMAND_DONE,
           "another file takes the place");
    is_str(status().file, other, "which is said");
    is_int(status().state, LLM_MODEL_READY, "it is ready");
    learn(1);

    for (i = 0, same = 0; i < N; i++) {
        same += memcmp(says[0][i], says[1][i], n_says[0][i] * 4) == 0;
    }

    is_int(same, 0, "the files say other things");
    llm_zone_model_stats(rig.zone, NULL, 0, &after);
    is_int(after.kv_pages, before.kv_pages, "pages are those of one");

    is_int(order_now(LLM_COMMAND_LOAD, MODEL, 0), LLM_COMMAND_DONE,
           "the configuration's comes back");
    is_str(status().file, "", "and is not an exception any more");
    is_int(ask(0), 0, "it serves");

    close_rig();
}


/* streams from two workers while the file changes, and more come */

static void
test_streams(int warmup)
{
    int                   f;
    uint32_t              i, of[2], began, kept, more, late;
    uint64_t              n;
    rig_answer_t         *a;
    llm_command_status_t  st;

    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, MODEL, 1024, 16);
    rig.models[0].warmup = warmup;
    rig_open(&rig, 2, 1 << 20, 200);

    if (!rig_engine(&rig) || rig_ready(&rig, 0, ORDER_WAIT_MS) != LLM_OK) {
        ok(0, "the engine starts");
        return;
    }

    for (i = 0; i < STREAMS; i++) {
        request(i % 2, i, i);
    }

    (void) rig_wait_text(&rig, 0, 0, ORDER_WAIT_MS);
    (void) rig_wait_text(&rig, 1, 1, ORDER_WAIT_MS);
    n = order_or_die(LLM_COMMAND_LOAD, other, 0);

    for (more = STREAMS; more < STREAMS + 20; more++) {
        request(more % 2, more, more);
        rig_poll(&rig, more % 2, 1);
    }

    is_int(order_wait(n, &st), LLM_COMMAND_DONE, "the file is changed");

    for (i = 0, began = 0; i < STREAMS; i++) {
        began += !rig.answers[i % 2][i].over;
    }

    printf("# %u of %u streams run, %u requests end with the first file\n",
           began, STREAMS, status().replaced);

    for (late = more; late < more + 10; late++) {
        request(late % 2, late, late);
    }

    of[0] = of[1] = kept = 0;

    for (i = 0; i < late; i++) {
        a = &rig.answers[i % 2][i];
        (void) rig_wait(&rig, i % 2, i, ORDER_WAIT_MS);
        f = whose(i, a);

        if (f >= 0) {
            of[f]++;
        }

        kept += (i < STREAMS && f == 0) || (i >= more && f == 1)
                || (i >= STREAMS && i < more && f >= 0);
    }

    is_int(of[0] + of[1], late, "each text is of one file: %u and %u",
           of[0], of[1]);
    is_int(kept, late, "the first one's of those before, the other's of "
           "those behind");
    ok(of[1] >= 10, "the other one serves");

    for (i = 0; i < 1000 && status().replaced; i++) {
        usleep(1000);
    }

    is_int(status().replaced, 0, "none runs with the first one any more");

    close_rig();
}


/* a file that takes the place of one that has just taken it */

static void
test_again(void)
{
    int       f;
    uint32_t  i, of[2], most;

    open_rig(1024, 4, 0, 0, 64);
    of[0] = of[1] = most = 0;

    for (i = 0; i < 30; i++) {
        request(i % 2, i, i);

        if (i % 10 == 9) {
            is_int(order_now(LLM_COMMAND_LOAD, i == 19 ? MODEL : other, 0),
                   LLM_COMMAND_DONE, "file %u", i / 10);
            most = llm_max(most, status().replaced);
        }
    }

    for (i = 0; i < 30; i++) {
        (void) rig_wait(&rig, i % 2, i, ORDER_WAIT_MS);
        f = whose(i, &rig.answers[i % 2][i]);
        is_int(f, i / 10 == 1, "request %u is of the file of its time", i);
    }

    printf("# up to %u requests end with files that were replaced\n", most);

    for (i = 0; i < 1000 && status().replaced; i++) {
        usleep(1000);
    }

    is_int(status().replaced, 0, "none is left with those");
    close_rig();
}


static void
test_broken(void)
{
    char                  name[LLM_MAX_FILE + 1];
    uint64_t              n;
    llm_err_t             err;
    llm_command_status_t  st;

    open_rig(1024, 4, 0, 0, 8);

    request(0, 1, 1);
    n = order_or_die(LLM_COMMAND_LOAD, "t/unit/engine_swap.c", 0);
    is_int(order_wait(n, &st), LLM_COMMAND_FAILED, "no model: it fails");
    is_int(st.status, 503, "503");
    ok(strstr(st.reason, "engine_swap.c") != NULL, "%s", st.reason);
    is_int(status().state, LLM_MODEL_READY, "the model is ready");
    is_str(status().file, "", "with its file");
    (void) rig_wait(&rig, 0, 1, ORDER_WAIT_MS);
    is_int(whose(1, &rig.answers[0][1]), 0, "whose stream is whole");
    is_int(ask(0), 0, "and that serves");

    is_int(order_now(LLM_COMMAND_LOAD, "/none", 0), LLM_COMMAND_FAILED,
           "neither does one that is not there");
    is_int(ask(2), 0, "change anything");

    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    is_int(order(0, LLM_COMMAND_LOAD, name, 0, &err), 0,
           "a name that is too long is not sent");
    is_int(err.status, 400, "400");
    name[LLM_MAX_FILE - 1] = '\0';
    is_int(order_now(LLM_COMMAND_LOAD, name, 0), LLM_COMMAND_FAILED,
           "the longest is");
    llm_zone_command(rig.zone, 0, &st);
    is_str(st.file, name, "whole");

    close_rig();
}


/* unloaded while another file is on its way, which may be there before: then
   once more */

static void
test_stopped(void)
{
    uint32_t              i;
    uint64_t              n;
    llm_command_status_t  st;

    rig_errors = 0;
    rig_look = "was stopped: the model has been unloaded";
    rig_seen = 0;

    open_rig(1024, 4, 0, 0, 8);

    for (i = 0; i < 100 && rig_seen == 0 && rig_errors == 0; i++) {
        order_taken(order_or_die(LLM_COMMAND_LOAD, other, 0));
        n = order_or_die(LLM_COMMAND_UNLOAD, NULL, 0);
        (void) order_wait(n, &st);
        (void) order_now(LLM_COMMAND_LOAD, MODEL, 0);
    }

    is_int(rig_seen, 1, "the log says that a file is not loaded any more");
    is_int(rig_errors, 0, "which is no error");
    is_int(ask(0), 0, "the present file serves");

    close_rig();
    rig_look = NULL;
}


/* nothing serves, and another file is on its way: requests wait for it, or for
   the present one if it fails */

static void
test_idle(void)
{
    uint64_t              n;
    llm_command_status_t  st;

    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, MODEL, 1024, 4);
    rig.models[0].lazy = 1;
    rig.models[0].idle_s = 1;
    rig_open(&rig, 1, 1 << 20, 8);
    ok(rig_engine(&rig), "a lazy model");

    n = order_or_die(LLM_COMMAND_LOAD, "t/unit/engine_swap.c", 0);
    is_int(ask(0), 0, "a request is served by the present file");
    is_int(order_wait(n, &st), LLM_COMMAND_FAILED, "as the other is none");

    ok(reaches(LLM_MODEL_IDLE), "it is idle");
    n = order_or_die(LLM_COMMAND_LOAD, other, 0);

    while (status().state == LLM_MODEL_IDLE) {
        usleep(100);
    }

    is_int(ask(1), 1, "a request waits for the other");
    is_int(order_wait(n, &st), LLM_COMMAND_DONE, "that takes the place");

    ok(reaches(LLM_MODEL_IDLE), "and is idle after a while");
    is_int(ask(2), 1, "it is what comes back");

    is_int(order_now(LLM_COMMAND_UNLOAD, NULL, 1000), LLM_COMMAND_DONE,
           "it is unloaded");
    is_int(order_now(LLM_COMMAND_LOAD, "t/unit/engine_swap.c", 0),
           LLM_COMMAND_FAILED, "a file that is none");
    is_int(status().state, LLM_MODEL_STOPPED, "leaves it so");
    is_int(order_now(LLM_COMMAND_LOAD, MODEL, 0), LLM_COMMAND_DONE,
           "a good one does not");
    is_int(ask(3), 0, "it serves");

    close_rig();
}


/* the present file has failed and is tried again, until another one comes */

static void
test_retried(void)
{
    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, "/none/a.gguf", 1024, 4);
    rig_open(&rig, 1, 1 << 20, 8);
    ok(rig_engine(&rig) && reaches(LLM_MODEL_FAILED), "a model has failed");

    is_int(order_now(LLM_COMMAND_LOAD, "/none/b.gguf", 0),
           LLM_COMMAND_FAILED, "so has another file");
    is_int(status().state, LLM_MODEL_FAILED, "it has failed");
    ok(strstr(status().error, "a.gguf") != NULL, "for its own reason: %s",
       status().error);
    is_int(order_now(LLM_COMMAND_LOAD, other, 0), LLM_COMMAND_DONE,
           "a good one serves");
    is_int(ask(0), 1, "well");
    usleep(1200000);
    is_int(status().state, LLM_MODEL_READY, "and is not taken away");

    close_rig();
}


/* commands and the end of the engine while another file is loaded */

static void
test_meanwhile(void)
{
    uint32_t              i;
    uint64_t              n;
    llm_err_t             err;
    llm_command_status_t  st;

    open_rig(1024, 4, 0, 0, 8);

    n = order_or_die(LLM_COMMAND_LOAD, other, 0);
    order_taken(n);
    is_int(order(1, LLM_COMMAND_LOAD, MODEL, 0, &err), 0,
           "one file after another");
    is_str(err.code, "model_loading", "which is said: %d", err.status);
    request(0, 0, 0);
    n = order_or_die(LLM_COMMAND_UNLOAD, NULL, ORDER_WAIT_MS);
    is_int(order_wait(n, &st), LLM_COMMAND_DONE, "all is unloaded");
    (void) rig_wait(&rig, 0, 0, ORDER_WAIT_MS);
    ok(rig.answers[0][0].over, "its request has ended");
    is_int(status().state, LLM_MODEL_STOPPED, "it is stopped");
    is_int(status().replaced, 0, "nothing is left");
    rig_close(&rig);

    for (i = 0; i < 6; i++) {
        open_rig(1024, 4, 0, 0, 8);
        request(0, 0, 0);
        n = order_or_die(LLM_COMMAND_LOAD, other, 0);
        usleep(i * 15000);
        llm_engine_stop(rig.engine);
        rig.engine = NULL;
        llm_zone_command(rig.zone, 0, &st);
        ok(st.number == n && st.state != LLM_COMMAND_RUNNING,
           "an engine stops after %u ms of it: %s", i * 15,
           st.state == LLM_COMMAND_DONE ? "done" : st.code);
        ok(rig_engine(&rig) && rig_ready(&rig, 0, ORDER_WAIT_MS) == LLM_OK,
           "another one starts");
        is_int(ask(1), st.state == LLM_COMMAND_DONE, "with the file that "
               "served");
        llm_zone_command(rig.zone, 0, &st);
        ok(st.state >= LLM_COMMAND_DONE, "the command is over");
        rig_close(&rig);
    }
}


/* a zone made anew, as a reload makes it, begins with what the last one had */

static void
test_override(void)
{
    llm_override_t  o;

    open_rig(1024, 4, 0, 0, 8);
    (void) order_now(LLM_COMMAND_LOAD, other, 0);
    llm_zone_override(rig.zone, 0, &o);
    rig_close(&rig);

    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, MODEL, 1024, 4);
    rig_open(&rig, 1, 1 << 20, 8);
    llm_zone_set_override(rig.zone, 0, &o);
    ok(rig_engine(&rig) && rig_ready(&rig, 0, ORDER_WAIT_MS) == LLM_OK,
       "an engine in a new zone");
    is_int(ask(0), 1, "serves the file of the last one");
    close_rig();

    snprintf(o.file, sizeof(o.file), "%s", MODEL);
    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, MODEL, 1024, 4);
    rig_open(&rig, 1, 1 << 20, 8);
    llm_zone_set_override(rig.zone, 0, &o);
    ok(rig_engine(&rig) && rig_ready(&rig, 0, ORDER_WAIT_MS) == LLM_OK,
       "if the configuration has come to name it");
    is_str(status().file, "", "it is no exception any more");
    close_rig();
}


int
main(void)
{
    order_other(other);

    test_files();
    test_streams(0);
    test_streams(1);
    test_again();
    test_broken();
    test_stopped();
    test_idle();
    test_retried();
    test_meanwhile();
    test_override();

    (void) unlink(other);

    return done_testing();
}
