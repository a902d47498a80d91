/*
 * The body of /health, over a real zone put into each of its states.
 */

#include "engine/api/api.h"
#include "engine/ipc/zone.h"
#include "t/unit/tap.h"

#include <unistd.h>

#define HEAD(status)  "{\"status\":\"" status "\",\"version\":\""          \
                      LLM_VERSION "\",\"models\":["


static const llm_api_model_t  models[] = {
    { .name = { 3, "one" }, .is_default = 1, .max_tokens = -1 },
    { .name = { 3, "two" }, .max_tokens = -1 }
};

static const llm_zone_model_t  sizes[] = {
    { .parallel = 4 }, { .parallel = 4 }
};


static void
is_health(llm_zone_t *z, uint64_t allowed, int want_ready, const char *want,
    const char *name)
{
    int               ready;
    llm_buf_t         out;
    llm_api_conf_t    conf;
    llm_api_health_t  health;

    memset(&health, 0, sizeof(health));
    memset(&conf, 0, sizeof(conf));
    conf.models = models;
    conf.n_models = 2;
    conf.allowed = allowed;
    conf.fallback = -1;

    ready = -1;
    llm_buf_init(&out, 0);

    ok(llm_api_health_body(z, &conf, &health, &out, &ready) == LLM_OK
       && ready == want_ready, "%s: %s", name,
       want_ready ? "ready" : "not ready");
    is_str(out.data, want, "%s", name);

    llm_buf_free(&out);
}


/* the status of both models by each rule: loaded, any, all, live; a capital
   letter: ready */

static void
are(llm_zone_t *z, int draining, const char *want, const char *name)
{
    int               i, ready;
    char              got[5], c;
    llm_buf_t         out;
    llm_api_conf_t    conf;
    llm_api_health_t  h;

    memset(&conf, 0, sizeof(conf));
    conf.models = models;
    conf.n_models = 2;
    conf.allowed = 3;

    memset(&h, 0, sizeof(h));
    h.draining = draining;
    llm_buf_init(&out, 0);

    for (i = 0; i < 4; i++) {
        h.rule = (llm_health_rule_t) i;
        out.len = 0;
        (void) llm_api_health_body(z, &conf, &h, &out, &ready);

        /* its first letter, "x" for degraded */
        c = strncmp(out.data + 11, "deg", 3) ? out.data[11] : 'x';
        got[i] = ready ? c - 32 : c;
    }

    got[i] = '\0';
    is_str(got, want, "%s", name);

    llm_buf_free(&out);
}


/* loaded models that do not answer */

static void
test_ill(llm_zone_t *z)
{
    int                ready;
    llm_buf_t          out;
    llm_api_conf_t     conf;
    llm_api_health_t   h;
    const char *const  ill[] = { NULL, "it is ill" };

    memset(&conf, 0, sizeof(conf));
    memset(&h, 0, sizeof(h));
    conf.models = models;
    conf.n_models = 2;
    conf.allowed = 2;
    h.ill = ill;

    llm_buf_init(&out, 0);

    llm_zone_set_state(z, 1, LLM_MODEL_READY);
    (void) llm_api_health_body(z, &conf, &h, &out, &ready);
    is_int(ready, 0, "an ill model cannot serve");
    ok(strstr(out.data, "\"status\":\"error\",\"loaded\":false,\"reason\":"
                        "\"it is ill\"") != NULL, "which is said: %s",
       out.data);

    llm_zone_set_state(z, 1, LLM_MODEL_IDLE);
    (void) llm_api_health_body(z, &conf, &h, &out, &ready);
    is_int(ready, 1, "one that is not loaded is not ill");

    conf.allowed = 1;
    llm_zone_set_state(z, 0, LLM_MODEL_READY);
    (void) llm_api_health_body(z, &conf, &h, &out, &ready);
    is_int(ready, 1, "nor is another one");

    llm_buf_free(&out);
}


static void
test_rules(llm_zone_t *z)
{
    are(z, 0, "lllO", "the engine is starting");

    atomic_store(&z->engine_pid, getpid());
    atomic_store(&z->epoch, 1);
    atomic_store(&z->attached, 1);

    llm_zone_set_state(z, 0, LLM_MODEL_LOADING);
    llm_zone_set_state(z, 1, LLM_MODEL_LOADING);
    are(z, 0, "lllO", "two load");

    llm_zone_set_state(z, 0, LLM_MODEL_READY);
    are(z, 0, "lXlO", "one serves, one loads");

    llm_zone_set(z->models[1].wanted, 1);
    are(z, 0, "OOOO", "one loads because a request waits for it");
    llm_zone_set(z->models[1].wanted, 0);

    llm_zone_set_state(z, 1, LLM_MODEL_FAILED);
    are(z, 0, "XXeO", "one serves, one has failed");

    llm_zone_set_state(z, 0, LLM_MODEL_LOADING);
    are(z, 0, "lleO", "one loads, one has failed");

    llm_zone_set_state(z, 0, LLM_MODEL_FAILED);
    are(z, 0, "eeeO", "two have failed");

    llm_zone_set_state(z, 0, LLM_MODEL_IDLE);
    llm_zone_set_state(z, 1, LLM_MODEL_READY);
    are(z, 0, "OOOO", "one is idle");
    are(z, 1, "dddO", "they drain");

    atomic_store(&z->models[1].command.refuse_us, 1);
    are(z, 0, "XXdO", "one is idle, one drains by a command");
    llm_zone_set_state(z, 0, LLM_MODEL_STOPPED);
    are(z, 0, "dddO", "one is stopped, one drains");
    atomic_store(&z->models[1].command.refuse_us, 0);
    are(z, 0, "XXsO", "one is stopped, one serves");
    llm_zone_set_state(z, 1, LLM_MODEL_STOPPED);
    are(z, 0, "sssO", "two are stopped");
    llm_zone_set_state(z, 0, LLM_MODEL_LOADING);
    are(z, 0, "lllO", "one loads");
    llm_zone_set_state(z, 0, LLM_MODEL_IDLE);

    test_ill(z);

    atomic_store(&z->engine_pid, 0);
    are(z, 0, "eeee", "the engine has gone");
    are(z, 1, "ddde", "while they drain");

    atomic_store(&z->attached, 0);
    llm_zone_set_state(z, 1, LLM_MODEL_IDLE);
}


int
main(void)
{
    void        *mem;
    size_t       size;
    llm_zone_t  *z;

    size = llm_zone_size(1, 2, 65536);
    mem = aligned_alloc(64, llm_align(size, 64));
    z = llm_zone_init(mem, 1, sizes, 2, 65536, 8);

    test_rules(z);

    is_health(z, 1, 0,
              HEAD("loading") "{\"id\":\"one\","
              "\"status\":\"loading\",\"loaded\":false,\"progress\":0.000,"
              "\"reason\":\"the engine is starting\",\"device\":\"\","
              "\"ctx\":0,\"running\":0,\"waiting\":0}]}",
              "no engine yet");

    atomic_store(&z->engine_pid, getpid());
    atomic_store(&z->epoch, 1);
    atomic_store(&z->attached, 1);

    llm_zone_set_state(z, 0, LLM_MODEL_LOADING);
    llm_zone_set(z->models[0].permille, 250);
    llm_zone_set_state(z, 1, LLM_MODEL_IDLE);

    is_health(z, 3, 0,
              HEAD("loading") "{\"id\":\"one\","
              "\"status\":\"loading\",\"loaded\":false,\"progress\":0.250,"
              "\"reason\":\"the model is being loaded\",\"device\":\"\","
              "\"ctx\":0,\"running\":0,\"waiting\":0},{\"id\":\"two\","
              "\"status\":\"ok\",\"loaded\":false,\"device\":\"\",\"ctx\":0,"
              "\"running\":0,\"waiting\":0}]}",
              "one loads, one waits to be asked for");

    is_health(z, 2, 1,
              HEAD("ok") "{\"id\":\"two\",\"status\":"
              "\"ok\",\"loaded\":false,\"device\":\"\",\"ctx\":0,"
              "\"running\":0,\"waiting\":0}]}",
              "a location that has only the second");

    llm_zone_set_state(z, 0, LLM_MODEL_READY);
    llm_zone_set_text(z, 0, NULL, "CPU \"AVX2\"");
    llm_zone_set(z->models[0].ctx, 4096);
    llm_zone_set(z->models[0].figures.running, 3);

    is_health(z, 1, 1,
              HEAD("ok") "{\"id\":\"one\",\"status\":"
              "\"ok\",\"loaded\":true,\"device\":\"CPU \\\"AVX2\\\"\","
              "\"ctx\":4096,\"running\":3,\"waiting\":0}]}", "ready");

    llm_zone_set_state(z, 1, LLM_MODEL_LOADING);
    llm_zone_set(z->models[1].wanted, 1);

    is_health(z, 2, 1,
              HEAD("ok") "{\"id\":\"two\",\"status\":"
              "\"loading\",\"loaded\":false,\"progress\":0.000,"
              "\"reason\":\"the model is being loaded\",\"device\":\"\","
              "\"ctx\":0,\"running\":0,\"waiting\":0}]}",
              "it was idle and is wanted: its requests wait");

    llm_zone_set(z->models[1].wanted, 0);
    llm_zone_set_text(z, 1, "two.gguf: truncated", NULL);
    llm_zone_set_state(z, 1, LLM_MODEL_FAILED);

    is_health(z, 2, 0,
              HEAD("error") "{\"id\":\"two\",\"status\":"
              "\"error\",\"loaded\":false,\"reason\":"
              "\"two.gguf: truncated\",\"device\":\"\",\"ctx\":0,"
              "\"running\":0,\"waiting\":0}]}", "the only one has failed");

    llm_zone_set_state(z, 1, LLM_MODEL_STOPPED);

    is_health(z, 2, 0,
              HEAD("stopped") "{\"id\":\"two\",\"status\":"
              "\"stopped\",\"loaded\":false,\"reason\":"
              "\"the model has been unloaded\",\"device\":\"\",\"ctx\":0,"
              "\"running\":0,\"waiting\":0}]}", "it is stopped");

    llm_zone_set_state(z, 1, LLM_MODEL_READY);
    atomic_store(&z->models[1].command.refuse_us, 1);

    is_health(z, 2, 0,
              HEAD("draining") "{\"id\":\"two\",\"status\":"
              "\"draining\",\"loaded\":true,\"reason\":"
              "\"the model takes no new requests\",\"device\":\"\","
              "\"ctx\":0,\"running\":0,\"waiting\":0}]}", "it drains");

    atomic_store(&z->models[1].command.refuse_us, 0);
    llm_zone_set_state(z, 1, LLM_MODEL_FAILED);

    is_health(z, 3, 1,
              HEAD("degraded") "{\"id\":\"one\",\"status\":"
              "\"ok\",\"loaded\":true,\"device\":\"CPU \\\"AVX2\\\"\","
              "\"ctx\":4096,\"running\":3,\"waiting\":0},{\"id\":\"two\","
              "\"status\":\"error\",\"loaded\":false,\"reason\":"
              "\"two.gguf: truncated\",\"device\":\"\",\"ctx\":0,"
              "\"running\":0,\"waiting\":0}]}", "one has failed");

    atomic_store(&z->engine_pid, 0);

    is_health(z, 1, 0,
              HEAD("error") "{\"id\":\"one\",\"status\":"
              "\"error\",\"loaded\":false,\"reason\":"
              "\"the engine does not answer\",\"device\":"
              "\"CPU \\\"AVX2\\\"\",\"ctx\":4096,\"running\":3,"
              "\"waiting\":0}]}", "the engine has gone");

    is_health(z, 0, 1, HEAD("ok") "]}", "no models");

    free(mem);

    return done_testing();
}
