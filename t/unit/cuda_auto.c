/*
 * A model that device=auto has put on a GPU: when the GPU fails and does not
 * come back, the model fails with a message, and is not served by the CPU
 * without a word.  The GPU is the emulator under llm_cuda.so's name.
 */

#include "engine/ipc/zone.h"
#include "t/unit/gpu_seen.h"
#include "t/unit/rig.h"

#include <limits.h>

#define WAIT_MS  120000

static rig_t  rig;


int
main(void)
{
    char            dir[] = "/tmp/llm-auto-XXXXXX", from[PATH_MAX];
    char            to[sizeof(dir) + 16];
    uint64_t        end;
    llm_buf_t       b;
    llm_err_t       err;
    const char     *objs;
    rig_answer_t   *a;

    llm_model_status_t  st;

    objs = getenv("LLM_OBJS");

    if (realpath(objs ? objs : "objs", from) == NULL
        || strlen(from) + 12 > sizeof(from))
    {
        skip("there is no folder of this build");
        return done_testing();
    }

    strcat(from, "/llm_emu.so");

    if (access(from, F_OK) != 0 || mkdtemp(dir) == NULL) {
        skip("there is no llm_emu.so in this build");
        return done_testing();
    }

    snprintf(to, sizeof(to), "%s/llm_cuda.so", dir);

    if (symlink(from, to) == -1) {
        perror(to);
        return 1;
    }

    (void) setenv("LLM_EMU_FAIL_LAUNCH", "0", 1);

    rig_model(&rig, "models/demo.gguf", 256, 4);
    rig.models[0].device = "auto";
    rig.models[0].kv_cache = 8 << 20;
    rig.backend_dir = dir;
    rig_open(&rig, 1, 1 << 20, 16);

    if (!rig_engine(&rig) || rig_ready(&rig, 0, WAIT_MS) != LLM_OK) {
        printf("Bail out! the engine does not start\n");
        return 1;
    }

    llm_zone_status(rig.zone, 0, &st);
    ok(strstr(st.device, "emulated GPU") != NULL, "auto: %s", st.device);

    (void) unlink(to);
    (void) rmdir(dir);
    (void) setenv("LLM_EMU_FAIL_LAUNCH", "1", 1);

    rig_req(&b, 0);
    rig_msg(&b)->max_tokens = 4;
    rig_text(&b, "Once upon a time");
    is_int(rig_send(&rig, 0, &b, &err), LLM_OK, "a request");
    is_int(rig_wait(&rig, 0, 0, WAIT_MS), LLM_OK, "ends");

    a = &rig.answers[0][0];
    is_int(a->status, 500, "with an error: %s", a->msg);

    end = llm_now_us() + (uint64_t) WAIT_MS * 1000;

    do {
        rig_poll(&rig, 0, 20);
        llm_zone_status(rig.zone, 0, &st);
    } while (st.state == LLM_MODEL_LOADING && llm_now_us() < end);

    ok(st.state == LLM_MODEL_FAILED && strstr(st.error, "there is no"),
       "the model does not go on elsewhere: %s", st.error);

    rig_close(&rig);

    return done_testing();
}
