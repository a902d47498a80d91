/*
 * The place of a model's last command in the zone: which one may follow which,
 * what is told of it in each state, and what becomes of those whose worker or
 * whose engine has died.
 */

#include "engine/ipc/zone.h"
#include "t/unit/tap.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static llm_zone_t          *z;
static llm_zone_command_t  *c;


static llm_command_status_t
told(void)
{
    llm_command_status_t  st;

    llm_zone_command(z, 0, &st);

    return st;
}


/* its number, or 0 and *code why not */

static uint64_t
claim(llm_command_kind_t kind, const char **code)
{
    uint64_t          number;
    static llm_err_t  err;

    memset(&err, 0, sizeof(err));

    if (llm_command_claim(c, kind, &number, &err) != LLM_OK) {
        *code = err.code;
        return 0;
    }

    *code = "";

    return number;
}


static uint64_t
begin(llm_command_kind_t kind, const char *file)
{
    uint64_t     number;
    const char  *code;

    number = claim(kind, &code);

    return number && llm_command_take(c, number, file, "") == LLM_OK ? number
                                                                     : 0;
}


static void
end(uint64_t number, int status, const char *code, const char *msg)
{
    llm_err_t  err;

    memset(&err, 0, sizeof(err));
    err.status = status;
    snprintf(err.code, sizeof(err.code), "%s", code);
    snprintf(err.msg, sizeof(err.msg), "%s", msg);
    llm_command_end(c, number, &err);
}


static void
test_states(void)
{
    uint64_t     n;
    const char  *code;

    is_int(told().number, 0, "there was none");

    n = claim(LLM_COMMAND_LOAD, &code);
    is_int(n, 1, "the first");
    is_int(told().number, 1, "is told of");
    is_int(told().state, LLM_COMMAND_SENT, "as sent");
    is_int(told().kind, LLM_COMMAND_LOAD, "with its kind");

    is_int(llm_command_take(c, n + 1, "", ""), LLM_STALE, "not of that number");
    is_int(llm_command_take(c, n, "/m/b.gguf", "given"), LLM_OK,
           "the engine has it");
    is_str(told().name, "given", "and says what it is for");
    llm_zone_set(c->permille, 40);
    is_int(told().state, LLM_COMMAND_RUNNING, "it runs");
    is_str(told().file, "/m/b.gguf", "with its file");
    is_int(told().permille, 40, "and how far it is");

    end(n, 503, "no_memory", "too large");
    is_int(told().state, LLM_COMMAND_FAILED, "it has failed");
    is_int(told().status, 503, "with a status");
    is_str(told().code, "no_memory", "a code");
    is_str(told().reason, "too large", "and a reason");
    is_str(told().file, "/m/b.gguf", "of its file");

    n = claim(LLM_COMMAND_DRAIN, &code);
    is_int(n, 2, "the next");
    ok(told().reason[0] == '\0' && told().file[0] == '\0'
       && told().status == 0, "has nothing of the one before it");

    is_int(llm_command_take(c, n, "", ""), LLM_OK, "it runs");
    end(n - 1, 503, "late", "late");
    is_int(told().state, LLM_COMMAND_RUNNING, "whatever another one does");
    end(n, 0, "", "");
    is_int(told().state, LLM_COMMAND_DONE, "until it is done");
}


static void
test_order(void)
{
    uint64_t     n;
    const char  *code;

    n = begin(LLM_COMMAND_LOAD, "");
    ok(n != 0, "a load runs");
    is_int(claim(LLM_COMMAND_LOAD, &code), 0, "another one must wait");
    is_str(code, "model_loading", "because of it");
    is_int(claim(LLM_COMMAND_DRAIN, &code), 0, "so must a drain");
    is_int(claim(LLM_COMMAND_RESUME, &code), 0, "and a resume");
    is_int(claim(LLM_COMMAND_UNLOAD, &code), n + 1, "an unload need not");
    is_int(claim(LLM_COMMAND_UNLOAD, &code), 0, "unless one is on its way");
    is_str(code, "command_pending", "which is said");
    end(n, 0, "", "");
    is_int(told().number, n + 1, "the load is not told of any more");
    is_int(told().state, LLM_COMMAND_SENT, "whatever becomes of it");

    is_int(llm_command_take(c, n + 1, "", ""), LLM_OK, "an unload runs");
    is_int(claim(LLM_COMMAND_LOAD, &code), 0, "a load must wait");
    is_str(code, "model_unloading", "for that");
    n = begin(LLM_COMMAND_UNLOAD, "");
    ok(n != 0, "another unload need not");
    end(n, 0, "", "");

    n = begin(LLM_COMMAND_UNLOAD, "");
    n = begin(LLM_COMMAND_REMOVE, "");
    ok(n != 0, "nor need a removal");
    is_int(claim(LLM_COMMAND_UNLOAD, &code), 0, "which an unload waits for");
    is_str(code, "model_unloading", "and says so");
    is_int(claim(LLM_COMMAND_LOAD, &code), 0, "as a load does");
    n = begin(LLM_COMMAND_REMOVE, "");
    ok(n != 0, "another removal need not");
    end(n, 0, "", "");

    n = begin(LLM_COMMAND_DRAIN, "");
    ok(n && begin(LLM_COMMAND_RESUME, "") == n + 1, "a drain may be ended");
    end(n + 1, 0, "", "");
    n = begin(LLM_COMMAND_DRAIN, "");
    ok(n && begin(LLM_COMMAND_LOAD, "") == n + 1, "by a load, too");
    end(n + 1, 0, "", "");
}


static void
test_dead(void)
{
    int          status;
    pid_t        pid;
    uint64_t     n;
    const char  *code;

    n = told().number;
    pid = fork();

    if (pid == 0) {
        _exit(claim(LLM_COMMAND_LOAD, &code) == n + 1 ? 0 : 1);
    }

    waitpid(pid, &status, 0);
    is_int(status, 0, "a worker dies with its command on its way");
    is_int(told().state, LLM_COMMAND_SENT, "nobody knows of it");
    is_int(claim(LLM_COMMAND_LOAD, &code), n + 2, "another one may follow");
    is_int(llm_command_take(c, n + 1, "", ""), LLM_STALE,
           "then the first is not done any more");

    is_int(claim(LLM_COMMAND_LOAD, &code), 0, "of a live one it may not");
    atomic_fetch_add(&c->born, 1 << 24);
    is_int(claim(LLM_COMMAND_LOAD, &code), n + 3,
           "of one whose pid another process has it may");
    n++;

    llm_command_missed(c, n + 1);
    is_int(told().state, LLM_COMMAND_SENT, "nor is it this one that failed");
    llm_command_missed(c, n + 2);
    is_int(told().state, LLM_COMMAND_FAILED, "one for a dead engine fails");
    is_str(told().code, "engine_restarting", "and says why");

    n = begin(LLM_COMMAND_LOAD, "/m/c.gguf");
    llm_command_sweep(c);
    is_int(told().state, LLM_COMMAND_FAILED, "one that ran when it died, too");
    is_str(told().file, "/m/c.gguf", "with its file");
    end(n, 0, "", "");
    is_int(told().state, LLM_COMMAND_FAILED, "it stays so");
    llm_command_sweep(c);
    is_str(told().code, "engine_restarting", "for later engines");
}


static void
test_override(void)
{
    uint64_t            n;
    llm_override_t      o, back;
    llm_model_status_t  st;

    memset(&o, 0, sizeof(o));
    snprintf(o.file, sizeof(o.file), "/m/d.gguf");
    o.draining = 1;
    o.number = 41;
    llm_zone_set_override(z, 1, &o);

    llm_zone_override(z, 1, &back);
    is_str(back.file, "/m/d.gguf", "a file instead of the configuration's");
    is_int(back.draining, 1, "drains");
    is_int(back.stopped, 0, "and is not stopped");
    is_int(back.number, 41, "after 41 commands");

    llm_zone_status(z, 1, &st);
    is_str(llm_model_state_word(&st), "draining", "which the state says");
    is_str(st.file, "/m/d.gguf", "with its file");

    c = &z->models[1].command;
    is_int(told().number, 0, "another model has none");
    n = begin(LLM_COMMAND_LOAD, "");
    is_int(n, 42, "numbers go on");

    o.draining = 0;
    o.stopped = 1;
    llm_zone_set_override(z, 1, &o);
    llm_zone_status(z, 1, &st);
    is_str(llm_model_state_word(&st), "stopped", "it is stopped");
}


static void
test_words(void)
{
    llm_model_status_t  st;

    memset(&st, 0, sizeof(st));
    is_str(llm_model_state_word(&st), "idle", "idle");
    st.state = LLM_MODEL_LOADING;
    is_str(llm_model_state_word(&st), "loading", "loading");
    st.warming = 1;
    is_str(llm_model_state_word(&st), "warming", "warming");
    st.state = LLM_MODEL_READY;
    is_str(llm_model_state_word(&st), "ready", "ready");
    st.state = LLM_MODEL_FAILED;
    st.draining = 1;
    is_str(llm_model_state_word(&st), "failed", "failed");
}


int
main(void)
{
    size_t            size;
    llm_zone_model_t  models[2] = {
        { .parallel = 1 }, { .parallel = 1 }
    };

    size = llm_zone_size(1, 2, 1 << 20);
    z = llm_zone_init(mmap(NULL, size, PROT_READ|PROT_WRITE,
                           MAP_SHARED|MAP_ANONYMOUS, -1, 0),
                      1, models, 2, 1 << 20, 8);
    c = &z->models[0].command;

    test_states();
    test_order();
    test_dead();

    memset(&z->models[0], 0, sizeof(z->models[0]));
    test_override();
    test_words();

    return done_testing();
}
