/*
 * The engine as a whole, in process, on the demo model: the same request
 * gives the same tokens whatever happens around it: other requests, pauses,
 * models that come and go, workers and engines that end.
 */

#include "engine/ipc/zone.h"
#include "t/unit/engine_rig.h"

#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>


/* what each request gives alone, without the cache */
static int32_t   alone[N][256];
static uint32_t  n_alone[N];


static int
is_alone(uint32_t i, const rig_answer_t *a)
{
    return a->over && a->status == 0 && a->n_ids[0] == n_alone[i]
           && memcmp(a->ids[0], alone[i], n_alone[i] * sizeof(int32_t)) == 0;
}


static void
run_alone(void)
{
    uint32_t       i;
    llm_buf_t      b;
    rig_answer_t  *a;

    open_rig(1024, 4, 0, 0, 8);

    for (i = 0; i < N; i++) {
        make(&b, i, i, LLM_REQ_NO_CACHE);
        send_or_die(0, &b);
        (void) rig_wait(&rig, 0, i, 20000 * SLOW);

        a = &rig.answers[0][i];
        n_alone[i] = a->n_ids[0];
        memcpy(alone[i], a->ids[0], n_alone[i] * sizeof(int32_t));

        if (a->wrong || a->status || n_alone[i] != GEN(i)
            || a->completion_tokens != n_alone[i] || a->cached_tokens)
        {
            ok(0, "request %u alone: %u tokens, %s", i, n_alone[i], a->msg);
        }
    }

    rig_close(&rig);
}


/* all at once from two workers, twice: the second time the cache is warm */

static void
test_together(const char *what, uint32_t parallel, uint32_t batch, size_t kv)
{
    uint32_t           i, round, same, cached;
    llm_buf_t          b;
    llm_model_stats_t  st;

    open_rig(1024, parallel, batch, kv, 64);

    for (round = 0; round < 2; round++) {
        for (i = 0; i < 2 * N; i++) {
            make(&b, i, i % N, 0);
            send_or_die(i % 2, &b);
        }

        same = 0;
        cached = 0;

        for (i = 0; i < 2 * N; i++) {
            (void) rig_wait(&rig, i % 2, i, 60000 * SLOW);
            same += is_alone(i % N, &rig.answers[i % 2][i]);
            cached += rig.answers[i % 2][i].cached_tokens;
        }

        llm_zone_model_stats(rig.zone, NULL, 0, &st);

        is_int(same, 2 * N, "%s, round %u: all as alone (%u tokens cached, "
               "%llu preemptions)", what, round, cached,
               (unsigned long long) st.preemptions);
    }

    is_int(llm_engine_live(rig.engine), 0, "none is left");
    rig_close(&rig);
}


/* requests, cancels and pauses at random; the engine stops in the middle */

static void
test_storm(void)
{
    uint32_t        i, w, slot, live, x, good, whole;
    llm_err_t       err;
    llm_buf_t       b;
    rig_answer_t   *a;

    open_rig(1024, 6, 0, (size_t) 9 << 19, 16);
    srand(3);
    good = 0;
    whole = 0;

    for (i = 0; i < 3000 / SLOW; i++) {
        x = (uint32_t) rand();
        w = x & 1;
        slot = x >> 1 & 15;
        a = &rig.answers[w][slot];

        switch (x >> 8 & 7) {

        case 0:
        case 1:
            if (a->ticket == 0 || a->over) {
                make(&b, slot, slot % N, 0);
                (void) rig_send(&rig, w, &b, &err);
                a->first_us = 0;
            }

            break;

        case 2:
            if (a->ticket && !a->over && (x >> 12) % 5 == 0) {
                llm_client_signal(rig.clients[w], LLM_MSG_CANCEL, slot,
                                a->ticket);
                a->over = 1;
                a->status = 499;
            }

            break;

        case 3:
            llm_client_signal(rig.clients[w], LLM_MSG_PAUSE, slot, a->ticket);
            break;

        case 4:
        case 5:
            llm_client_signal(rig.clients[w], LLM_MSG_RESUME, slot, a->ticket);
            break;

        default:
            rig_poll(&rig, w, 2);
        }

        if (i == 2000 / SLOW) {
            llm_engine_stop(rig.engine);

            if (!rig_engine(&rig) || rig_ready(&rig, 0, 30000) != LLM_OK) {
                ok(0, "the engine starts again");
            }
        }
    }

    for (w = 0; w < 2; w++) {
        for (slot = 0; slot < 16; slot++) {
            a = &rig.answers[w][slot];

            if (a->ticket) {
                llm_client_signal(rig.clients[w], LLM_MSG_RESUME, slot,
                                a->ticket);
            }
        }
    }

    for (w = 0; w < 2; w++) {
        for (slot = 0; slot < 16; slot++) {
            a = &rig.answers[w][slot];

            if (a->ticket == 0) {
                continue;
            }

            whole += rig_wait(&rig, w, slot, 30000 * SLOW) == LLM_OK;
            good += a->status ? a->status == 499 || a->status == 503
                                || a->status == 429
                              : is_alone(slot % N, a);
        }
    }

    (void) all_gone();
    live = llm_engine_live(rig.engine);
    ok(whole && good == whole, "a storm: of the last %u requests %u ended "
       "as they should", whole, good);
    is_int(live, 0, "and none is left");

    rig_close(&rig);
}


static void
test_pause(void)
{
    uint32_t        i, n;
    llm_buf_t       b;
    rig_answer_t   *a;

    open_rig(1024, 1, 0, 0, 8);
    a = rig.answers[0];

    make(&b, 0, 1, 0);
    send_or_die(0, &b);
    (void) rig_wait_text(&rig, 0, 0, 5000 * SLOW);
    llm_client_signal(rig.clients[0], LLM_MSG_PAUSE, 0, a[0].ticket);

    for (i = 0; i < 10; i++) {
        rig_poll(&rig, 0, 20);
    }

    n = a[0].n_ids[0];
    make(&b, 1, 2, 0);
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 1, 10000 * SLOW);
    ok(is_alone(2, &a[1]), "another one runs meanwhile");
    ok(a[0].over || a[0].n_ids[0] == n, "a paused one gets no tokens");

    for (i = 0, n = 0; i < 50; i++) {
        rig_poll(&rig, 0, 2);
        n += llm_zone_get(rig.zone->busy_since_us) == 0;
    }

    ok(a[0].over || n == 0, "an engine that sleeps with it says since when");

    llm_client_signal(rig.clients[0], LLM_MSG_RESUME, 0, a[0].ticket);
    (void) rig_wait(&rig, 0, 0, 10000 * SLOW);
    ok(is_alone(1, &a[0]), "and goes on with what it would have said");

    rig_close(&rig);
}


static void
test_models(void)
{
    uint32_t            i;
    uint64_t            end;
    llm_err_t           err;
    llm_buf_t           b;
    llm_model_status_t  st;

    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, MODEL, 512, 2);
    rig_model(&rig, "t/unit/engine.c", 512, 2);
    rig_model(&rig, MODEL, 256, 2);
    rig.models[2].lazy = 1;
    rig.models[2].idle_s = 1;
    rig_open(&rig, 1, 1 << 20, 8);

    /* requests that come before there is an engine wait for it */

    rig_req(&b, 0);
    rig_chat(&b, "What is 2 + 2?");
    ok(rig_send(&rig, 0, &b, &err) == LLM_OK, "taken before the engine runs");
    rig_req(&b, 1);
    rig_chat(&b, "What is 2 + 2?");
    rig_msg(&b)->model = 1;
    ok(rig_send(&rig, 0, &b, &err) == LLM_OK, "and for a broken model");

    ok(rig_engine(&rig), "the engine starts");
    llm_zone_status(rig.zone, 0, &st);
    ok(st.state != LLM_MODEL_IDLE, "and is known to load its models at once");
    is_int(rig_wait(&rig, 0, 0, 20000 * SLOW), LLM_OK, "the first is answered");
    is_int(rig.answers[0][0].status, 0, "well");
    is_int(rig_wait(&rig, 0, 1, 20000 * SLOW), LLM_OK, "the other one too");
    is_int(rig.answers[0][1].status, 503, "with 503");
    ok(strstr(rig.answers[0][1].msg, "engine.c") != NULL, "%s",
       rig.answers[0][1].msg);

    rig_req(&b, 1);
    rig_chat(&b, "What is 2 + 2?");
    rig_msg(&b)->model = 1;
    ok(rig_send(&rig, 0, &b, &err) == LLM_ERROR && err.status == 503,
       "the next is refused at once: %s", err.msg);

    llm_zone_status(rig.zone, 2, &st);
    is_int(st.state, LLM_MODEL_IDLE, "the lazy one is not loaded");

    rig_req(&b, 2);
    rig_chat(&b, "What is 2 + 2?");
    rig_msg(&b)->model = 2;
    send_or_die(0, &b);
    is_int(rig_wait(&rig, 0, 2, 20000 * SLOW), LLM_OK, "its first request is "
           "answered");
    llm_zone_status(rig.zone, 2, &st);
    is_int(st.state, LLM_MODEL_READY, "then it is loaded");
    is_int(st.ctx, 256, "with its own context");

    end = llm_now_us() + 60000000;

    do {
        usleep(50000);
        llm_zone_status(rig.zone, 2, &st);
    } while (st.state == LLM_MODEL_READY && llm_now_us() < end);

    is_int(st.state, LLM_MODEL_IDLE, "and unloaded when it was idle");

    rig_req(&b, 2);
    rig_chat(&b, "What is 2 + 2?");
    rig_msg(&b)->model = 2;
    send_or_die(0, &b);
    is_int(rig_wait(&rig, 0, 2, 20000 * SLOW), LLM_OK, "it comes back");
    is_int(rig.answers[0][2].status, 0, "and answers");

    for (i = 0; i < 3; i++) {
        is_int(rig.answers[0][i].wrong, 0, "events in order");
    }

    rig_close(&rig);
}


/* a worker process that is killed in mid-stream */

static void
test_dead_worker(void)
{
    int         status;
    pid_t       pid;
    uint32_t    i;
    llm_buf_t   b;

    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, MODEL, 1024, 2);
    rig_open(&rig, 2, 1 << 20, 2);

    /* before there are threads */

    llm_client_detach(rig.clients[1]);
    rig.clients[1] = NULL;
    pid = fork();

    if (pid == 0) {
        rig_attach(&rig, 1);

        for (i = 0; i < 4; i++) {
            make(&b, i, i, 0);
            rig_msg(&b)->max_tokens = 900;
            send_or_die(1, &b);
        }

        (void) rig_wait_text(&rig, 1, 0, 20000 * SLOW);
        raise(SIGKILL);
    }

    if (!rig_engine(&rig) || rig_ready(&rig, 0, 30000) != LLM_OK) {
        printf("Bail out! the engine does not start\n");
        exit(1);
    }

    waitpid(pid, &status, 0);
    ok(WIFSIGNALED(status), "the worker was killed");

    ok(all_gone(), "its requests are gone");

    /* one that died after it counted a request in, before it sent it */

    is_int(llm_zone_admit(rig.zone, 0, llm_zone_epoch(rig.zone), 0), LLM_OK,
           "a request is counted in");
    atomic_store(&llm_zone_worker(rig.zone, 1)->intent, 1);
    usleep(150000);
    is_int(llm_engine_live(rig.engine), 1, "and never comes");

    /* a new one takes its place */

    rig_attach(&rig, 1);

    ok(all_gone(), "the engine finds that out");

    make(&b, 0, 4, 0);
    send_or_die(1, &b);
    (void) rig_wait(&rig, 1, 0, 10000 * SLOW);
    ok(is_alone(4, &rig.answers[1][0]), "a new worker is served");

    rig_close(&rig);
}


/* the last request of a model ends with its worker: from then on it is idle,
   not since long */

static void
test_idle(void)
{
    llm_buf_t           b;
    llm_model_status_t  st;

    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, MODEL, 1024, 2);
    rig.models[0].idle_s = 600;
    rig_open(&rig, 2, 1 << 20, 2);

    if (!rig_engine(&rig) || rig_ready(&rig, 0, 30000) != LLM_OK) {
        printf("Bail out! the engine does not start\n");
        exit(1);
    }

    make(&b, 0, 0, 0);
    rig_msg(&b)->max_tokens = 900;
    send_or_die(1, &b);
    (void) rig_wait_text(&rig, 1, 0, 20000 * SLOW);

    atomic_store(&llm_zone_worker(rig.zone, 1)->pid, 0);
    ok(all_gone(), "a worker goes, and with it the only request");

    atomic_store(&llm_zone_worker(rig.zone, 0)->born, 1);
    make(&b, 1, 0, 0);
    rig_msg(&b)->max_tokens = 900;
    send_or_die(0, &b);
    ok(all_gone(), "so it does if another process has its pid");
    (void) rig_wait(&rig, 0, 1, 100);
    is_int(rig.answers[0][1].over_us, 0, "it has not come to its end");
    usleep(200000);

    llm_zone_status(rig.zone, 0, &st);
    is_int(st.state, LLM_MODEL_READY, "the model stays for its time");

    rig_close(&rig);
}


/* none of the gauges that a killed engine left in the zone is counted */

static void
no_gauges(void)
{
    llm_model_stats_t  st;

    llm_zone_model_stats(rig.zone, NULL, 0, &st);   /* gauges alone */

    is_int(st.running, 0, "none runs");
    is_int(st.parked, 0, "or is parked");
    is_int(st.waiting, 0, "or waits");
    is_int(st.prefilling, 0, "no prompt is computed");
    is_int(st.prompt_left, 0, "or to be computed");
    is_int(st.kv_used, 0, "no page is used");
    is_int(st.kv_cached, 0, "or kept");
    is_int(st.window_pages, 0, "there are no pages of windows");
    is_int(st.window_used, 0, "of which none is used");
    is_int(st.window_cached, 0, "or kept");
    is_int(st.snapshots, 0, "no state is kept");
    is_int(st.request_memory, 0, "no memory is a request's");
}


static void
test_restart(void)
{
    uint32_t    i, failed;
    llm_err_t   err;
    llm_buf_t   b;

    open_rig(8192, 2, 0, 0, 8);

    for (i = 0; i < 6; i++) {
        make(&b, i, i % 2 * 5, 0);
        rig_msg(&b)->max_tokens = 3800;
        send_or_die(i % 2, &b);
    }

    (void) rig_wait_text(&rig, 0, 0, 5000 * SLOW);
    llm_engine_stop(rig.engine);
    rig.engine = NULL;

    for (i = 0, failed = 0; i < 6; i++) {
        (void) rig_wait(&rig, i % 2, i, 2000 * SLOW);
        failed += rig.answers[i % 2][i].status == 503;
    }

    is_int(failed, 6, "all live requests get an error");

    make(&b, 0, 0, 0);
    ok(rig_send(&rig, 0, &b, &err) == LLM_ERROR && err.status == 503,
       "without an engine: 503");

    memset(&rig.zone->models[0].figures, 7,
           offsetof(llm_zone_figures_t, answered));

    ok(rig_engine(&rig) && rig_ready(&rig, 0, 20000) == LLM_OK,
       "another one starts");
    no_gauges();
    is_int(llm_zone_epoch(rig.zone), 2, "in a new epoch");
    make(&b, 0, 0, 0);
    send_or_die(0, &b);
    (void) rig_wait(&rig, 0, 0, 10000 * SLOW);
    ok(is_alone(0, &rig.answers[0][0]), "and gives the same tokens");

    rig_close(&rig);
}


/* a file that is not there is looked for after one second, two, four ... */

static void
test_retries(void)
{
    char                dir[] = "/tmp/llm-engine-XXXXXX", file[64];
    char                model[PATH_MAX];
    uint32_t            i, n, s, pauses[3] = { 0 };
    uint64_t            end;
    llm_model_status_t  st;

    if (mkdtemp(dir) == NULL || realpath(MODEL, model) == NULL) {
        printf("Bail out! no folder\n");
        exit(1);
    }

    snprintf(file, sizeof(file), "%s/late.gguf", dir);

    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, file, 256, 1);
    rig_open(&rig, 1, 1 << 20, 8);
    ok(rig_engine(&rig), "an engine without its model's file");

    end = llm_now_us() + 120000000;

    for (n = 0; n < 3 && llm_now_us() < end; usleep(10000)) {
        llm_zone_status(rig.zone, 0, &st);
        s = atomic_load(&rig.zone->models[0].retry_after);

        if (st.state == LLM_MODEL_FAILED && (n == 0 || s != pauses[n - 1])) {
            pauses[n++] = s;
        }
    }

    ok(pauses[0] > 0, "a pause of %u s", pauses[0]);

    for (i = 1; i < 3; i++) {
        ok(pauses[i] >= 2 * pauses[i - 1], "and one of %u s", pauses[i]);
    }

    ok(symlink(model, file) == 0, "the file comes");

    do {
        usleep(10000);
        llm_zone_status(rig.zone, 0, &st);
    } while (st.state != LLM_MODEL_READY && llm_now_us() < end);

    is_int(st.state, LLM_MODEL_READY, "and is loaded");

    rig_close(&rig);
    (void) unlink(file);
    (void) rmdir(dir);
}


int
main(void)
{
    run_alone();

    test_together("eight at once", 8, 0, 0);
    test_together("steps of 24 rows", 8, 24, 0);
    test_together("one seat", 1, 0, 0);
    test_together("few pages", 8, 0, (size_t) 7 << 19);
    test_pause();
    test_storm();
    test_models();
    test_dead_worker();
    test_idle();
    test_restart();
    test_retries();

    return done_testing();
}
