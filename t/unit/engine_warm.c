/*
 * Warm-ups: what the engine runs for itself is in no figure, and tells nothing
 * of requests; and who is replaced does not come back because of one.
 */

#define _GNU_SOURCE

#include "engine/serve/engine.h"
#include "t/unit/order.h"

#include <limits.h>

#define PROMPTS  (40 / SLOW)

static char            other[] = "/tmp/llm-warm-XXXXXX";

/* a warm-up of a second or so */
static llm_buf_t       texts[PROMPTS];
static llm_request_t  *prompts[PROMPTS];


static void
prompt(uint32_t i, uint32_t n_ids)
{
    int32_t   ids[2048];
    uint32_t  k;

    for (k = 0; k < n_ids; k++) {
        ids[k] = (int32_t) (50 + (k * 7 + i) % 400);
    }

    rig_req(&texts[i], 0);
    rig_ids(&texts[i], ids, n_ids);
    rig_msg(&texts[i])->max_tokens = 1;

    while (texts[i].len % 8) {
        (void) llm_buf_addc(&texts[i], 0);
    }

    prompts[i] = rig_msg(&texts[i]);
    prompts[i]->head.size = (uint32_t) texts[i].len;
}


static void
open_warm(const char *file, uint32_t ctx, uint32_t parallel,
    uint32_t n_prompts)
{
    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, file, ctx, parallel);
    rig.models[0].warmup = 1;
    rig.models[0].prompts = (const llm_request_t *const *) prompts;
    rig.models[0].n_prompts = n_prompts;
    rig_open(&rig, 1, 1 << 20, 16);

    if (!rig_engine(&rig) || rig_ready(&rig, 0, ORDER_WAIT_MS) != LLM_OK) {
        printf("Bail out! the engine does not start\n");
        exit(1);
    }
}


/* prompts of which one is too long: it fails, and nobody's request has */

static void
test_figures(void)
{
    open_warm(MODEL, 256, 2, PROMPTS);

    is_int(stats().errors, 0, "a warm-up's error is in no figure");
    is_int(stats().waiting, 0, "nor are its requests");
    is_int((long long) rig.engine->models[0]->request_us, 0,
           "nor what they took");

    stream(0, 4);
    (void) rig_wait(&rig, 0, 0, ORDER_WAIT_MS);
    ok(all_gone() && rig.engine->models[0]->request_us > 0,
       "as what a client's takes is");

    rig_close(&rig);
}


/* requests wait, and other files warm up */

static void
test_waiting(void)
{
    uint32_t              n, wrong, waiting;
    uint64_t              number;
    llm_command_status_t  st;

    open_warm(MODEL, 8192, 1, PROMPTS);

    stream(0, 7500);
    (void) rig_wait_text(&rig, 0, 0, ORDER_WAIT_MS);

    /* they come behind it: who is prepared first runs first */

    for (n = 1; n < 4; n++) {
        stream(n, 7500);
    }

    while (stats().waiting != 3) {
        rig_poll(&rig, 0, 10);
    }

    number = order_or_die(LLM_COMMAND_LOAD, other, 0);
    n = wrong = 0;

    /* the end of the one that runs is told before another one runs */

    do {
        usleep(200);
        llm_zone_command(rig.zone, 0, &st);
        waiting = stats().waiting;
        rig_poll(&rig, 0, 0);

        if (rig.answers[0][0].over) {
            break;
        }

        n++;
        wrong += waiting != 3;
    } while (st.state < LLM_COMMAND_DONE);

    is_int(wrong, 0, "as many wait, whenever one looks: %u times", n);
    is_int(order_wait(number, &st), LLM_COMMAND_DONE, "another file is there");

    /* all that is live is of the one that was replaced */

    while (stats().waiting == 0) {
        rig_poll(&rig, 0, 10);
    }

    for (n = 0; n < 4; n++) {
        llm_client_signal(rig.clients[0], LLM_MSG_CANCEL, n,
                          rig.answers[0][n].ticket);
    }

    ok(all_gone(), "all go away");
    usleep(20000);
    is_int(stats().waiting, 0, "none waits");

    rig_close(&rig);
}


static void
copy(const char *from, const char *to)
{
    char    *data;
    FILE    *f;
    size_t   n, size;

    f = fopen(from, "rb");
    size = 0;
    data = NULL;

    if (f && fseek(f, 0, SEEK_END) == 0) {
        size = (size_t) ftell(f);
        rewind(f);
        data = malloc(size);
    }

    n = data ? fread(data, 1, size, f) : 0;

    if (f) {
        fclose(f);
    }

    f = fopen(to, "wb");

    if (n == 0 || f == NULL || fwrite(data, 1, n, f) != n || fclose(f)) {
        printf("Bail out! %s cannot be copied\n", from);
        exit(1);
    }

    free(data);
}


/* the present file breaks while another one warms up: it is loaded again, and
   has not warmed up when the other one takes its place */

static void
test_replaced(void)
{
    char                  dir[] = "/tmp/llm-warm-XXXXXX";
    char                  file[64], name[64], model[PATH_MAX];
    uint32_t              warms;
    uint64_t              number;
    llm_command_status_t  st;

    if (mkdtemp(dir) == NULL || realpath(MODEL, model) == NULL) {
        printf("Bail out! no folder\n");
        exit(1);
    }

    snprintf(file, sizeof(file), "%s/a.gguf", dir);
    snprintf(name, sizeof(name), "%s/model.gguf", dir);
    copy(MODEL, file);
    (void) !symlink(file, name);

    open_warm(name, 2048, 2, PROMPTS);
    number = order_or_die(LLM_COMMAND_LOAD, other, 0);

    do {
        usleep(1000);
        llm_zone_command(rig.zone, 0, &st);
    } while (!st.warming && st.state < LLM_COMMAND_DONE);

    /* it finds another file when it is loaded again */

    (void) unlink(name);
    (void) !symlink(model, name);
    (void) !truncate(file, 8192);
    stream(0, 4);
    (void) rig_wait(&rig, 0, 0, ORDER_WAIT_MS);
    is_str(rig.answers[0][0].code, LLM_FILE_ERROR, "its file is gone");

    for (warms = 0; st.state < LLM_COMMAND_DONE; usleep(1000)) {
        warms |= status().warming;
        llm_zone_command(rig.zone, 0, &st);
    }

    is_int(order_wait(number, &st), LLM_COMMAND_DONE,
           "another one takes its place");
    ok(warms, "while it warms up again");
    is_str(status().file, other, "which is said");

    while (status().warming) {
        rig_poll(&rig, 0, 10);
    }

    usleep(200000);
    is_str(status().file, other, "and stays so");
    is_int(status().state, LLM_MODEL_READY, "it is ready");
    stream(1, 4);
    (void) rig_wait(&rig, 0, 1, ORDER_WAIT_MS);
    is_int(rig.answers[0][1].status, 0, "and serves");
    ok(all_gone(), "nothing is left");
    is_int(stats().running, 0, "that runs");
    is_int(stats().generation_tokens, 4, "no token of a warm-up is counted");
    is_int(stats().errors, 1, "nor an error");

    rig_close(&rig);
    (void) unlink(name);
    (void) unlink(file);
    (void) rmdir(dir);
}


int
main(void)
{
    uint32_t  i;

    order_other(other);

    for (i = 0; i < PROMPTS; i++) {
        prompt(i, 200 + 400 * i / PROMPTS);
    }

    test_figures();
    test_waiting();
    test_replaced();

    for (i = 0; i < PROMPTS; i++) {
        llm_buf_free(&texts[i]);
    }

    (void) unlink(other);

    return done_testing();
}
