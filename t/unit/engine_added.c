/*
 * Models that come and go: a place without a name gets one and a file, serves,
 * is removed, and is another model's then.  What was meant for one of them
 * never reaches the next one; an engine that takes the place of another one
 * begins with what there was.
 */

#define _GNU_SOURCE

#include "t/unit/order.h"


static uint32_t
naming(void)
{
    return llm_zone_naming(rig.zone, 0);
}


static uint64_t
command(llm_command_kind_t kind, const char *file, uint32_t of,
    llm_err_t *err)
{
    uint64_t       number;
    llm_command_t  cmd;

    memset(&cmd, 0, sizeof(cmd));
    memset(err, 0, sizeof(*err));
    cmd.kind = kind;
    cmd.file = file;
    cmd.timeout_ms = 600000;
    cmd.naming = of;

    return llm_client_command(rig.clients[0], &cmd, &number, err) == LLM_OK
           ? number : 0;
}


/* its end, and how that was called */

static llm_command_state_t
does(llm_command_kind_t kind, const char *file, uint32_t of,
    llm_command_status_t *st)
{
    uint64_t   number;
    llm_err_t  err;

    number = command(kind, file, of, &err);

    if (number == 0) {
        printf("# refused: %d %s\n", err.status, err.code);
        memset(st, 0, sizeof(*st));
        return 0;
    }

    return order_wait(number, st);
}


/* 0: it is served; else the status of its error */

static uint32_t
asks(uint32_t slot, uint32_t of)
{
    llm_buf_t  b;
    llm_err_t  err;

    make(&b, slot, 1, 0);
    rig_msg(&b)->max_tokens = 3;
    rig_msg(&b)->naming = of;

    if (rig_send(&rig, 0, &b, &err) != LLM_OK) {
        return (uint32_t) err.status;
    }

    (void) rig_wait(&rig, 0, slot, ORDER_WAIT_MS);

    return rig.answers[0][slot].over ? rig.answers[0][slot].status : 1;
}


/* until the engine has taken the name */

static int
vacant(void)
{
    int  i;

    for (i = 0; i < 6000 && naming(); i++) {
        rig_poll(&rig, 0, 10);
    }

    return naming() == 0;
}


static void
open_vacant(void)
{
    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, "", 4096, 2);
    rig.models[0].name = "";
    rig.models[0].added = 1;
    rig_open(&rig, 2, 1 << 20, 8);
    ok(rig_engine(&rig), "an engine whose only model has no name");
}


static void
test_names(void)
{
    char          name[LLM_MAX_NAME + 1];
    uint32_t      n;
    llm_naming_t  given;

    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, "", 4096, 2);
    rig_open(&rig, 1, 1 << 16, 8);

    n = llm_zone_names(rig.zone);
    llm_zone_name(rig.zone, 0, &given);
    is_int(given.naming, 0, "a model without a name");

    memset(name, 'n', LLM_MAX_NAME);
    name[LLM_MAX_NAME] = '\0';
    llm_zone_give_name(rig.zone, 0, name, "/m/a.gguf");

    ok(llm_zone_names(rig.zone) != n, "which is seen when it gets one");
    llm_zone_name(rig.zone, 0, &given);
    ok(given.naming && given.naming == naming(), "with a number");
    is_str(given.name, name, "the longest");
    ok(given.since > 0, "and the time");

    n = given.naming;
    llm_zone_take_name(rig.zone, 0);
    llm_zone_name(rig.zone, 0, &given);
    ok(given.naming == 0 && given.name[0] == '\0', "it has none again");
    llm_zone_give_name(rig.zone, 0, name, "/m/a.gguf");
    ok(naming() && naming() != n, "the same name is another naming");

    rig_close(&rig);
}


static void
test_life(const char *other)
{
    uint32_t              one, two;
    llm_err_t             err;
    llm_command_status_t  st;

    open_vacant();

    is_int(status().state, LLM_MODEL_STOPPED, "it is stopped");
    is_int(asks(0, 0), 503, "requests for nothing are refused");
    is_int(does(LLM_COMMAND_LOAD, NULL, 0, &st), LLM_COMMAND_FAILED,
           "nothing cannot be loaded");
    is_str(st.code, "model_not_found", "as there is no model");
    is_int(does(LLM_COMMAND_LOAD, MODEL, 0, &st), LLM_COMMAND_FAILED,
           "nor with a file");

    llm_zone_give_name(rig.zone, 0, "one", MODEL);
    one = naming();
    is_int(asks(0, one), 503, "one with a name is stopped, too");
    is_int(does(LLM_COMMAND_LOAD, NULL, one, &st), LLM_COMMAND_DONE,
           "it is loaded");
    is_str(st.name, "one", "the command says of which one");
    is_int(status().state, LLM_MODEL_READY, "it is ready");
    is_int(asks(0, one), 0, "and serves");
    is_int(asks(1, 0), 404, "not what was meant for nothing");
    is_int(asks(1, one + 1), 404, "nor for another one");

    is_int(does(LLM_COMMAND_LOAD, other, one, &st), LLM_COMMAND_DONE,
           "another file takes its place");
    is_int(asks(0, one), 0, "and serves");

    /* a name is there until the last request has ended */

    rig_reset(&rig.answers[0][2]);
    {
        llm_buf_t  b;

        make(&b, 2, 1, 0);
        rig_msg(&b)->max_tokens = 300;
        rig_msg(&b)->naming = one;
        send_or_die(0, &b);
    }
    (void) rig_wait_text(&rig, 0, 2, ORDER_WAIT_MS);

    is_int(does(LLM_COMMAND_REMOVE, NULL, one, &st), LLM_COMMAND_DONE,
           "it is removed");
    ok(vacant(), "its name is gone");
    (void) rig_wait(&rig, 0, 2, ORDER_WAIT_MS);
    is_int(rig.answers[0][2].status, 0, "what ran ended as it should");
    is_int(rig.answers[0][2].n_ids[0], 300, "with all its tokens");
    is_int(asks(0, one), 404, "now it is not known");
    is_int(status().state, LLM_MODEL_STOPPED, "and nothing is loaded");
    is_int(does(LLM_COMMAND_REMOVE, NULL, one, &st), LLM_COMMAND_FAILED,
           "it cannot be removed twice");

    /* another one */

    llm_zone_give_name(rig.zone, 0, "two", MODEL);
    two = naming();
    is_int(does(LLM_COMMAND_LOAD, NULL, one, &st), LLM_COMMAND_FAILED,
           "a late command for the first one");
    is_str(st.code, "model_not_found", "does nothing");
    is_int(does(LLM_COMMAND_LOAD, NULL, two, &st), LLM_COMMAND_DONE,
           "the second one is loaded");
    is_str(st.name, "two", "by its name");
    is_int(asks(0, two), 0, "it serves");
    is_int(asks(1, one), 404, "and not for the first one");

    /* engines after this one */

    llm_engine_stop(rig.engine);
    ok(rig_engine(&rig) && rig_ready(&rig, 0, ORDER_WAIT_MS) == LLM_OK,
       "another engine loads it");
    is_int(asks(0, two), 0, "and serves");
    is_int(does(LLM_COMMAND_REMOVE, NULL, two, &st), LLM_COMMAND_DONE,
           "which removes it, too");
    ok(vacant(), "it is gone");

    llm_engine_stop(rig.engine);
    ok(rig_engine(&rig), "a third engine");
    usleep(100000);
    is_int(status().state, LLM_MODEL_STOPPED, "has nothing to load");
    is_int(command(LLM_COMMAND_REMOVE, NULL, two, &err) != 0, 1,
           "a command for what is gone is taken");
    ok(reaches(LLM_MODEL_STOPPED), "and changes nothing");

    rig_close(&rig);
}


/* one that cannot be loaded is removed as any other one */

static void
test_failed(void)
{
    llm_command_status_t  st;

    open_vacant();

    llm_zone_give_name(rig.zone, 0, "none", "/none.gguf");
    is_int(does(LLM_COMMAND_LOAD, NULL, naming(), &st), LLM_COMMAND_FAILED,
           "no file");
    is_int(status().state, LLM_MODEL_FAILED, "the model has failed");
    is_int(asks(0, naming()), 503, "and refuses");
    is_int(does(LLM_COMMAND_REMOVE, NULL, naming(), &st), LLM_COMMAND_DONE,
           "it is removed");
    ok(vacant(), "its name is gone");

    llm_zone_give_name(rig.zone, 0, "some", MODEL);
    is_int(does(LLM_COMMAND_LOAD, NULL, naming(), &st), LLM_COMMAND_DONE,
           "the next one is loaded");
    is_int(asks(0, naming()), 0, "and serves");

    rig_close(&rig);
}


/* a model of the configuration is not removed */

static void
test_configured(void)
{
    llm_command_status_t  st;

    open_rig(4096, 2, 0, 0, 8);

    is_int(does(LLM_COMMAND_REMOVE, NULL, 0, &st), LLM_COMMAND_FAILED,
           "a model of the configuration");
    is_str(st.code, "model_is_configured", "stays");
    is_int(asks(0, 0), 0, "and serves");

    rig_close(&rig);
}


int
main(void)
{
    char  other[] = "/tmp/llm-added-XXXXXX";

    order_other(other);

    test_names();
    test_life(other);
    test_failed();
    test_configured();

    (void) unlink(other);

    return done_testing();
}
