/*
 * The engines of one nginx over reloads: who is older, who has died; and a
 * model for which an older engine, or another model, leaves no memory: it
 * waits, its requests with it, and is loaded as soon as that has gone.
 */

#include "engine/base/process.h"
#include "engine/serve/load.h"
#include "engine/ipc/engines.h"
#include "engine/ipc/zone.h"
#include "kernels/kernels.h"
#include "t/unit/rig.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define MODEL  "models/demo.gguf"
#define ROOM   "24000000"               /* bytes, for one model of test_room() */

static llm_engines_t  *engines;
static const char     *objs;


/* an engine in a process of its own, until it is killed */

static pid_t
older(void)
{
    int    fd[2];
    char   c;
    pid_t  pid;

    if (pipe(fd) == -1) {
        exit(1);
    }

    pid = fork();

    if (pid == 0) {
        c = llm_engines_enter(engines) == UINT32_MAX;
        _exit(write(fd[1], &c, 1) == 1 ? pause() : 1);
    }

    ok(read(fd[0], &c, 1) == 1 && c == 0, "another engine enters");
    close(fd[0]);
    close(fd[1]);

    return pid;
}


static void
end(pid_t pid)
{
    int  status;

    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
}


static void
test_table(void)
{
    pid_t     one, two;
    uint32_t  i, mine, last;

    one = older();
    mine = llm_engines_enter(engines);
    two = older();

    is_int(llm_engines_older(engines, mine), 1, "one is older");
    is_int(llm_engines_newer(engines, getpid()), 1, "one is newer");
    is_int(llm_engines_newer(engines, one), 2, "two are newer than that");
    is_int(llm_engines_newer(engines, two), 0, "none than the last");
    is_int(llm_engines_newer(engines, 1), 0, "nor than who has none");
    end(two);
    is_int(llm_engines_newer(engines, getpid()), 0, "it has died");
    is_int(llm_engines_older(engines, mine), 1, "still");
    end(one);
    is_int(llm_engines_older(engines, mine), 0, "it has died");

    last = llm_engines_enter(engines);
    is_int(llm_engines_older(engines, last), 1, "ours is older than the next");
    llm_engines_leave(engines, mine);
    is_int(llm_engines_older(engines, last), 0, "until it leaves");
    is_int(llm_engines_older(NULL, UINT32_MAX), 0, "no table: nobody");
    llm_engines_leave(engines, last);

    for (i = 0; i < LLM_ENGINES_MAX * 3; i++) {
        mine = llm_engines_enter(engines);

        if (i % 3 == 2 && mine != UINT32_MAX) {
            llm_engines_leave(engines, mine);
        }
    }

    is_int(llm_engines_enter(engines), UINT32_MAX, "a full table");
    memset(engines, 0, llm_engines_size());
}


/* the table in a file: what two processes that map it see of each other, and
   files that are none */

static void
test_map(void)
{
    int             fd;
    char            dir[] = "/tmp/llm-engines-XXXXXX", path[64], to[64];
    pid_t           pid;
    uint32_t        mine;
    llm_err_t       err;
    llm_engines_t  *kept, *again;

    if (mkdtemp(dir) == NULL) {
        ok(0, "no folder");
        return;
    }

    snprintf(path, sizeof(path), "%s/nginx.pid.llm", dir);
    snprintf(to, sizeof(to), "%s/link", dir);

    kept = engines;
    engines = llm_engines_map(path, &err);
    again = llm_engines_map(path, &err);

    if (engines == NULL || again == NULL) {
        ok(0, "a table in a file: %s", err.msg);
        return;
    }

    pid = older();
    mine = llm_engines_enter(again);
    is_int(llm_engines_older(again, mine), 1, "one is older, in the file");
    end(pid);
    is_int(llm_engines_older(again, mine), 0, "until it has died");
    engines = kept;

    ok(symlink(path, to) == 0 && llm_engines_map(to, &err) == NULL,
       "a link is not followed: %s", err.msg);
    ok(llm_engines_map(dir, &err) == NULL, "a folder: %s", err.msg);

    fd = open(path, O_WRONLY);
    ok(fd != -1 && pwrite(fd, "another", 7, 0) == 7
       && llm_engines_map(path, &err) == NULL,
       "a file of another version: %s", err.msg);
    close(fd);

    unlink(to);
    unlink(path);
    ok(mkfifo(path, 0600) == 0 && llm_engines_map(path, &err) == NULL,
       "a FIFO: %s", err.msg);
    unlink(path);
    rmdir(dir);
}


static llm_model_state_t
state(rig_t *r)
{
    llm_model_status_t  st;

    llm_zone_status(r->zone, 0, &st);

    return st.state;
}


/* LLM_OK: the model came into the state before long */

static int
reaches(rig_t *r, llm_model_state_t want)
{
    int  i;

    for (i = 0; i < 6000 && state(r) != want; i++) {
        usleep(10000);
    }

    return state(r) == want;
}


/* what the engine says of waiting */

static _Atomic int  waits;
static _Atomic int  rooms;

static void
on_log(void *data, int level, const char *msg)
{
    (void) data;

    printf("# %d: %s\n", level, msg);

    if (strstr(msg, "waits for the engine of an older configuration or ")) {
        atomic_store(&waits, LLM_WAITS_OLDER);

    } else if (strstr(msg, "waits for a model that can be unloaded to ")) {
        atomic_store(&waits, LLM_WAITS_ROOM);

    } else if (strstr(msg, " is unloaded to make room ")) {
        atomic_fetch_add(&rooms, 1);
    }
}


static int
start(rig_t *r)
{
    llm_err_t          err;
    llm_engine_conf_t  conf;

    memset(&conf, 0, sizeof(conf));
    conf.zone = r->zone;
    conf.engines = engines;
    conf.models = r->models;
    conf.n_models = r->n_models;
    conf.engine_fd = r->engine_fd;
    conf.worker_fds = r->worker_fds;
    conf.n_workers = r->n_workers;
    conf.backend_dir = objs;
    conf.log = on_log;

    atomic_store(&waits, 0);
    r->engine = llm_engine_start(&conf, &err);

    return r->engine != NULL;
}


static void
test_wait(const char *memory, uint32_t ctx, const char *name)
{
    pid_t               pid;
    rig_t               rig;
    llm_buf_t           b;
    llm_err_t           err;
    llm_model_status_t  st;

    setenv("LLM_EMU_MEMORY", memory, 1);
    pid = older();

    memset(&rig, 0, sizeof(rig));
    rig_model(&rig, MODEL, ctx, 1);
    rig.models[0].device = "emu";
    rig_open(&rig, 1, 1 << 20, 8);

    ok(start(&rig), "%s: an engine starts", name);

    rig_req(&b, 0);
    rig_text(&b, "one two");
    rig_msg(&b)->max_tokens = 1;
    ok(rig_send(&rig, 0, &b, &err) == LLM_OK, "%s: a request comes", name);

    while (state(&rig) == LLM_MODEL_LOADING && !atomic_load(&waits)) {
        usleep(10000);
    }

    is_int(state(&rig), LLM_MODEL_LOADING, "%s: the model waits", name);
    is_int(rig.answers[0][0].over, 0, "%s: the request with it", name);

    unsetenv("LLM_EMU_MEMORY");
    end(pid);

    ok(reaches(&rig, LLM_MODEL_READY), "%s: then it is loaded", name);
    llm_zone_status(rig.zone, 0, &st);
    is_int(st.ctx, ctx ? ctx : 4096, "%s: with its whole context", name);
    ok(rig_wait(&rig, 0, 0, 60000) == LLM_OK
       && rig.answers[0][0].status == 0, "%s: the request is served", name);

    rig_close(&rig);
}


static int
state_of(rig_t *r, uint32_t model)
{
    llm_model_status_t  st;

    llm_zone_status(r->zone, model, &st);

    return (int) st.state;
}


static void
ask(rig_t *r, uint32_t slot, uint32_t model, uint32_t tokens)
{
    llm_buf_t  b;
    llm_err_t  err;

    memset(&err, 0, sizeof(err));
    rig_req(&b, slot);
    rig_text(&b, "one two");
    rig_msg(&b)->model = model;
    rig_msg(&b)->max_tokens = tokens;
    rig_msg(&b)->flags |= LLM_REQ_IGNORE_EOS;
    ok(rig_send(r, 0, &b, &err) == LLM_OK, "a request for model %u: %s", model,
       err.msg);
}


static void
answered(rig_t *r, uint32_t slot, const char *name)
{
    ok(rig_wait(r, 0, slot, 60000) == LLM_OK
       && r->answers[0][slot].status == 0, "%s: it is answered", name);
    rig_reset(&r->answers[0][slot]);
}


/* an engine with n lazy models, and memory for one; the last one has this ctx */

static int
open_room(rig_t *r, uint32_t n, uint32_t last)
{
    uint32_t  i;

    static const char *const  names[] = { "a", "b", "c" };

    setenv("LLM_EMU_MEMORY", ROOM, 1);
    memset(r, 0, sizeof(rig_t));

    for (i = 0; i < n; i++) {
        rig_model(r, MODEL, i == n - 1 ? last : 256, 1);
        r->models[i].name = names[i];
        r->models[i].device = "emu";
        r->models[i].lazy = 1;
        r->models[i].retry_s = 1;
    }

    rig_open(r, 1, 1 << 20, 8);

    return ok(start(r), "lazy models, with memory for one");
}


static void
close_room(rig_t *r)
{
    rig_close(r);
    unsetenv("LLM_EMU_MEMORY");
}


/* models that a request loads again make room for each other, one at a time;
   one that has a request keeps its memory until that has ended */

static void
test_room(void)
{
    rig_t     rig;
    uint32_t  i;

    if (!open_room(&rig, 3, 256)) {
        return;
    }

    for (i = 0; i < 3; i++) {
        ask(&rig, i, i, 1);
    }

    for (i = 0; i < 3; i++) {
        answered(&rig, i, "of three that are asked at once");
    }

    for (i = 0; i < 4; i++) {
        ask(&rig, 0, i % 2, 1);
        answered(&rig, 0, i % 2 ? "b" : "a");
        is_int(state_of(&rig, i % 2), LLM_MODEL_READY, "its model is loaded");
        is_int(state_of(&rig, !(i % 2)), LLM_MODEL_IDLE, "the other is not");
    }

    /* b's request is paused, and c has to wait */

    atomic_store(&waits, 0);
    ask(&rig, 0, 1, 16);
    llm_client_signal(rig.clients[0], LLM_MSG_PAUSE, 0,
                      rig.answers[0][0].ticket);
    ask(&rig, 1, 2, 1);

    for (i = 0; i < 6000 && !rig.answers[0][0].over && !atomic_load(&waits);
         i++)
    {
        (void) rig_wait(&rig, 0, 0, 10);
    }

    is_int(atomic_load(&waits), LLM_WAITS_ROOM,
           "a model waits while the other has a request");
    llm_client_signal(rig.clients[0], LLM_MSG_RESUME, 0,
                      rig.answers[0][0].ticket);
    answered(&rig, 0, "b");
    answered(&rig, 1, "c");
    is_int(state_of(&rig, 1), LLM_MODEL_IDLE, "then b gives way to it");
    close_room(&rig);
}


/* a model that is always asked does not keep another one away: of two requests
   the second is sent when the first one has begun, so that one always runs */

static void
test_patience(void)
{
    int            wanted;
    rig_t          rig;
    uint32_t       i, again;
    rig_answer_t  *a;

    if (!open_room(&rig, 2, 256)) {
        return;
    }

    a = rig.answers[0];
    atomic_store(&waits, 0);
    ask(&rig, 0, 0, 16);

    for (i = 0; i < 6000 && !a[0].over && a[0].n_tokens[0] < 4; i++) {
        (void) rig_wait(&rig, 0, 0, 10);
    }

    ask(&rig, 1, 0, 16);
    ask(&rig, 7, 1, 1);
    wanted = 1;

    for (i = 0, again = 0; i < 60000 && !a[7].over; i++) {
        (void) rig_wait(&rig, 0, i % 2, 1);
        wanted &= state_of(&rig, 0) != LLM_MODEL_LOADING
                  || rig.zone->models[0].wanted;

        if (a[i % 2].over && state_of(&rig, 1) != LLM_MODEL_READY) {
            rig_reset(&a[i % 2]);
            ask(&rig, i % 2, 0, 16);
            again++;
        }
    }

    is_int(atomic_load(&waits), LLM_WAITS_ROOM,
           "one model waits for another, with %u requests more", again);
    answered(&rig, 7, "and is served");
    answered(&rig, 0, "requests of the other one meanwhile");
    answered(&rig, 1, "all of them");
    ok(wanted, "which a request wants loaded while it waits for its turn");
    close_room(&rig);
}


/* one that never fits unloads another one once, not again and again; and nobody
   is loaded for clients that have left */

static void
test_vain(void)
{
    rig_t          rig;
    uint32_t       i;
    rig_answer_t  *a;

    if (!open_room(&rig, 2, 4096)) {
        return;
    }

    a = rig.answers[0];
    atomic_store(&rooms, 0);
    ask(&rig, 0, 0, 1);
    answered(&rig, 0, "one that fits");

    for (i = 0; i < 2; i++) {
        ask(&rig, 1, 1, 1);
        (void) rig_wait(&rig, 0, 1, 60000);
        is_int(a[1].status, 503, "one that does not");
        rig_reset(&a[1]);
        is_int(atomic_load(&rooms), 1, "it has had one unloaded");
        ask(&rig, 0, 0, 1);
        answered(&rig, 0, "the first again");

        while (state_of(&rig, 1) == LLM_MODEL_FAILED) {
            (void) rig_wait(&rig, 0, 0, 10);
        }

        is_int(state_of(&rig, 1), LLM_MODEL_IDLE, "the next request tries");
    }

    close_room(&rig);

    if (!open_room(&rig, 2, 256)) {
        return;
    }

    a = rig.answers[0];
    ask(&rig, 0, 0, 1);
    answered(&rig, 0, "a model is loaded");
    atomic_store(&waits, 0);
    ask(&rig, 0, 0, 16);
    llm_client_signal(rig.clients[0], LLM_MSG_PAUSE, 0, a[0].ticket);
    ask(&rig, 1, 1, 1);

    for (i = 0; i < 6000 && !a[0].over && !atomic_load(&waits); i++) {
        (void) rig_wait(&rig, 0, 0, 10);
    }

    llm_client_signal(rig.clients[0], LLM_MSG_CANCEL, 1, a[1].ticket);

    for (i = 0; i < 6000 && state_of(&rig, 1) == LLM_MODEL_LOADING; i++) {
        (void) rig_wait(&rig, 0, 0, 10);
    }

    is_int(state_of(&rig, 1), LLM_MODEL_IDLE,
           "a client that leaves: its model waits no more");
    llm_client_signal(rig.clients[0], LLM_MSG_RESUME, 0, a[0].ticket);
    answered(&rig, 0, "the other model goes on");
    close_room(&rig);
}


static uint32_t
pages(rig_t *r)
{
    return atomic_load(&r->zone->models[0].figures.kv_pages);
}


/* beside an older engine, whose pid it returns, a model gets a small cache */

static pid_t
open_cramped(rig_t *r)
{
    pid_t  pid;

    setenv("LLM_EMU_MEMORY", "37000000", 1);
    pid = older();

    memset(r, 0, sizeof(rig_t));
    rig_model(r, MODEL, 4096, 2);
    r->models[0].device = "emu";
    rig_open(r, 1, 1 << 20, 8);

    ok(start(r) && reaches(r, LLM_MODEL_READY),
       "a small cache: the model is ready");

    return pid;
}


/* a cache that an older engine has made small grows once that has gone */

static void
test_cramped(void)
{
    pid_t               pid;
    rig_t               rig;
    llm_buf_t           b;
    llm_err_t           err;
    llm_model_status_t  st;
    uint32_t            small;

    pid = open_cramped(&rig);
    small = pages(&rig);
    ok(small >= 4096 / LLM_KV_PAGE && small < 2 * 4096 / LLM_KV_PAGE,
       "with fewer pages than two sequences want: %u", small);

    unsetenv("LLM_EMU_MEMORY");
    end(pid);

    ok(reaches(&rig, LLM_MODEL_LOADING), "it is loaded again");

    rig_req(&b, 0);
    rig_text(&b, "one two");
    rig_msg(&b)->max_tokens = 1;
    ok(rig_send(&rig, 0, &b, &err) == LLM_OK
       && rig_wait(&rig, 0, 0, 60000) == LLM_OK
       && rig.answers[0][0].status == 0, "a request meanwhile is served");

    llm_zone_status(rig.zone, 0, &st);
    is_int(st.state, LLM_MODEL_READY, "it is ready");
    is_int(pages(&rig), 2 * 4096 / LLM_KV_PAGE, "with all its pages");

    rig_close(&rig);
}


/* a cache that an older engine has made small, and a GPU that fails: once it
   works again, the model is loaded again */

static void
test_cramped_fails(void)
{
    int                 i;
    pid_t               pid;
    rig_t               rig;
    llm_buf_t           b;
    llm_err_t           err;

    pid = open_cramped(&rig);

    /* another number each time: the first launch from then on, or the second */

    for (i = 0; i < 3; i++) {
        setenv("LLM_EMU_FAIL_LAUNCH", i % 2 ? "2" : "1", 1);

        rig_req(&b, 0);
        rig_text(&b, "one two");
        rig_msg(&b)->max_tokens = 1;

        if (rig_send(&rig, 0, &b, &err) != LLM_OK
            || rig_wait(&rig, 0, 0, 60000) != LLM_OK)
        {
            break;
        }

        ok(reaches(&rig, i < 2 ? LLM_MODEL_READY : LLM_MODEL_FAILED),
           "a step fails");
    }

    is_int(i, 3, "three of them: the model is given up");

    unsetenv("LLM_EMU_FAIL_LAUNCH");
    unsetenv("LLM_EMU_MEMORY");
    end(pid);

    ok(reaches(&rig, LLM_MODEL_READY), "it is loaded again");

    rig_close(&rig);
}


/* a pid is that of a process as long as this one is there */

static void
test_born(void)
{
    int       status;
    pid_t     pid;
    uint64_t  born;

    born = llm_process_born(getpid());

    ok(born != 0, "when this process began");
    is_int(llm_process_lives(getpid(), born), 1, "it is there");
    is_int(llm_process_lives(getpid(), 0), 1, "so it is if nobody knows");
    is_int(llm_process_lives(getpid(), born + 1), 0, "another one had its pid");
    is_int(llm_process_lives(0, 0), 0, "no pid");

    pid = fork();

    if (pid == 0) {
        _exit(0);
    }

    born = llm_process_born(pid);
    ok(born != 0, "when another one began");
    (void) waitpid(pid, &status, 0);
    is_int(llm_process_lives(pid, born), 0, "it has ended");
    is_int(llm_process_lives(pid, 0), 0, "whenever it began");
}


int
main(void)
{
    char  emu[4096];

    test_born();

    engines = mmap(NULL, llm_engines_size(), PROT_READ|PROT_WRITE,
                   MAP_SHARED|MAP_ANONYMOUS, -1, 0);

    test_table();
    test_map();

    objs = getenv("LLM_OBJS") ? getenv("LLM_OBJS") : "objs";
    snprintf(emu, sizeof(emu), "%s/llm_emu.so", objs);

    if (access(emu, R_OK) == 0) {
        test_wait("6000000", 256, "no memory for weights");
        test_wait("23000000", 0, "a smaller context");
        test_room();
        test_patience();
        test_vain();
        test_cramped();
        test_cramped_fails();
    }

    return done_testing();
}
