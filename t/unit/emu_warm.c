/*
 * A model that has warmed up has the graphs of its decode steps: those of its
 * first clients are replayed from the first one on.  On the emulator, which
 * counts graphs that are made and replayed; emu_graphs.c has all shapes.
 */

#include "engine/ipc/zone.h"
#include "t/unit/emu_count.h"
#include "t/unit/rig.h"
#include "t/unit/shallow.h"

#define CTX      330
#define SEATS    4
#define TOKENS   5
#define WAIT_MS  600000

static rig_t  rig;


/* a prompt of n tokens that no other request has */

static void
send(uint32_t n, uint32_t choices)
{
    int32_t          ids[CTX];
    uint32_t         i;
    llm_buf_t        b;
    llm_err_t        err;
    static int32_t   first = 40;

    for (i = 0; i < n; i++) {
        ids[i] = i ? (int32_t) (50 + i * 7 % 400) : first;
    }

    first++;
    rig_req(&b, 0);
    rig_msg(&b)->flags |= LLM_REQ_IGNORE_EOS;
    rig_msg(&b)->max_tokens = TOKENS;
    rig_msg(&b)->n = choices;
    rig_ids(&b, ids, n);

    if (rig_send(&rig, 0, &b, &err) != LLM_OK) {
        printf("# refused: %d %s\n", err.status, err.msg);
    }
}


static int
ends(void)
{
    const rig_answer_t  *a = &rig.answers[0][0];

    if (rig_wait(&rig, 0, 0, WAIT_MS) != LLM_OK || a->status) {
        printf("# %u %s\n", a->status, a->msg);
        return 0;
    }

    return 1;
}


/* requests one after another: each token but the first is a step */

static void
test_served(void)
{
    size_t         i;
    unsigned long  made, replayed;

    static const uint32_t  lengths[] = { 20, 300 };
    static const uint32_t  widths[] = { 1, 3 };

    for (i = 0; i < llm_nelems(lengths) * llm_nelems(widths); i++) {
        made = emu_count("cudaGraphInstantiate");
        replayed = emu_count("cudaGraphLaunch");

        send(lengths[i / 2], widths[i % 2]);
        ok(ends(), "%u choices after %u tokens", widths[i % 2],
           lengths[i / 2]);

        is_int(emu_count("cudaGraphInstantiate") - made, 0,
               "no graph is made for them");
        ok(emu_count("cudaGraphLaunch") - replayed >= TOKENS - 1,
           "each step is replayed, the first one, too");
    }
}


int
main(void)
{
    char         emu[1024];
    const char  *objs;

    objs = getenv("LLM_OBJS");
    objs = objs ? objs : "objs";
    snprintf(emu, sizeof(emu), "%s/llm_emu.so", objs);

    if (access(emu, F_OK) != 0) {
        skip("there is no llm_emu.so in this build");
        return done_testing();
    }

    rig_look = "warm-up failed";
    rig_model(&rig, shallow_model(1), CTX, SEATS);
    rig.models[0].device = "emu";
    rig.models[0].warmup = 1;
    rig.backend_dir = objs;
    rig_open(&rig, 1, 1 << 20, 16);

    if (!rig_engine(&rig) || rig_ready(&rig, 0, WAIT_MS) != LLM_OK) {
        printf("Bail out! the engine does not start\n");
        return 1;
    }

    is_int(rig_seen, 0, "no request of the warm-up fails");
    ok(emu_count("cudaGraphInstantiate") > 0, "a warm-up makes graphs: %lu",
       emu_count("cudaGraphInstantiate"));

    test_served();

    rig_close(&rig);

    return done_testing();
}
