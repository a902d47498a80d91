/*
 * A GPU for which the kernels have no code, in the emulator: opening it fails
 * and says which GPU it is, what was compiled, and what to do; device=auto
 * takes the CPU and says why, and loads nothing where no GPU is seen.  A GPU
 * whose driver compiles an earlier one's PTX gives the same bits: kernels that
 * cannot wait for those before them are not launched early.
 */

#include "engine/model/backend.h"
#include "t/unit/gpu_seen.h"
#include "t/unit/model_run.h"
#include "t/unit/tap.h"

#include <limits.h>
#include <unistd.h>

#define N_IDS  12

static char  logged[2048];


static void
keep_log(void *data, int level, const char *msg)
{
    (void) data;
    (void) level;

    snprintf(logged, sizeof(logged), "%s", msg);
}


static int
opens(const char *device, const char *dir, llm_err_t *err)
{
    llm_exec_t       *d;
    llm_exec_opts_t   o;

    memset(&o, 0, sizeof(o));
    o.max_tokens = 16;
    o.max_seqs = 1;
    o.max_pages = 1;
    o.threads = 1;
    o.log = keep_log;
    logged[0] = '\0';

    if (llm_backend_open(device, dir, NULL, &o, &d, err) != LLM_OK) {
        return 0;
    }

    d->ops->close(d);

    return 1;
}


static void
set(const char *capability, const char *name, const char *value)
{
    (void) unsetenv("LLM_EMU_NO_IMAGE");
    (void) unsetenv("LLM_EMU_COMPILED");
    (void) setenv("LLM_EMU_CAPABILITY", capability, 1);

    if (name) {
        (void) setenv(name, value, 1);
    }
}


static void
test_refused(const char *dir)
{
    size_t     i;
    llm_err_t  err;

    static const struct {
        const char  *capability;
        const char  *error;             /* of the runtime */
        const char  *why;
    } cases[] = {
        { "89", "209", "CUDA: emulated GPU has compute capability 8.9, and "
          "llm_cuda.so was built for 8.0, 9.0: build it for this GPU: "
          "CUDA_ARCH=89 ./build.sh build" },
        { "90", "209", "CUDA_ARCH=90a ./build.sh build" },
        { "87", "98", "capability 8.7, and llm_cuda.so was built for" },
        { "120", "222", "emulated GPU has compute capability 12.0, for which "
          "llm_cuda.so has PTX only, and its driver cannot compile it: the "
          "provided PTX was compiled with an unsupported toolchain.: update "
          "the driver, or build machine code: CUDA_ARCH=120 ./build.sh build" },
        { "89", "2", "the kernels cannot be loaded on emulated GPU: out of "
          "memory" },
        { "75", NULL, "CUDA: emulated GPU has compute capability 7.5; 8.0 "
          "(Ampere) or later is needed" }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        set(cases[i].capability, cases[i].error ? "LLM_EMU_NO_IMAGE" : NULL,
            cases[i].error);
        memset(&err, 0, sizeof(err));

        if (!ok(!opens("emu", dir, &err) && strstr(err.msg, cases[i].why),
                "capability %s, error %s: refused", cases[i].capability,
                cases[i].error ? cases[i].error : "none"))
        {
            printf("# %s\n", err.msg);
        }

        is_str(err.code, "", "the GPU is not lost");
    }

    set("89", NULL, NULL);
    ok(opens("emu", dir, &err), "it opens when there is code");
    is_str(logged, "", "and nothing is said");
}


/* the emulator under llm_cuda.so's name */

static void
test_auto(const char *emu)
{
    char       dir[] = "/tmp/llm-image-XXXXXX", to[sizeof(dir) + 16];
    llm_err_t  err;

    if (mkdtemp(dir) == NULL) {
        perror(dir);
        exit(1);
    }

    snprintf(to, sizeof(to), "%s/llm_cuda.so", dir);
    (void) !symlink(emu, to);

    set("89", "LLM_EMU_NO_IMAGE", "209");
    ok(opens("auto", dir, &err), "device=auto opens");

    if (!ok(strstr(logged, "device auto: CPU: ") == logged
            && strstr(logged, "; not CUDA: CUDA: emulated GPU has compute "
                              "capability 8.9, and llm_cuda.so was built for"),
            "the CPU, and says why"))
    {
        printf("# %s\n", logged);
    }

    set("75", NULL, NULL);
    ok(opens("auto", dir, &err) && strstr(logged, "capability 7.5; 8.0"),
       "so it does with an old GPU");

    ok(!llm_backend_is_cpu("auto", dir), "a GPU is seen: it may be no CPU");
    gpu_seen = 0;

    if (access("/dev/nvidiactl", F_OK) == 0) {
        skip("there is a GPU");
        skip("there is a GPU");

    } else {
        ok(opens("auto", dir, &err)
           && strstr(logged, "; not CUDA: no GPU of NVIDIA is seen"),
           "without a GPU the backend is not loaded");
        ok(llm_backend_is_cpu("auto", dir), "which is known before");
    }

    gpu_seen = 1;

    (void) unlink(to);
    (void) rmdir(dir);
}


/* the last row's logits: a prompt, then a row that is captured, launched and
   replayed */

static float *
logits(const char *dir, uint32_t *n)
{
    float             *last;
    uint32_t           i, take;
    run_seq_t          s;
    llm_err_t          err;
    llm_model_t       *m;
    llm_model_opts_t   o;

    static int32_t     ids[N_IDS];

    memset(&o, 0, sizeof(o));
    o.device = "emu";
    o.backend_dir = dir;
    o.ctx = 64;
    o.batch = 16;
    o.max_seqs = 1;
    o.log = keep_log;

    m = llm_model_load("models/demo.gguf", &o, &err);

    if (m == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    for (i = 0; i < N_IDS; i++) {
        ids[i] = (int32_t) (20 + i * 9);
    }

    *n = llm_model_hparams(m)->n_vocab;
    memset(&s, 0, sizeof(s));
    s.ids = ids;
    s.n = N_IDS;
    s.logits = calloc((size_t) N_IDS * *n, sizeof(float));
    take = N_IDS - 4;

    while (s.done < N_IDS) {
        if (run_step(m, &s, &take, 1, 0, &err) != LLM_OK) {
            printf("# %s\n", err.msg);
            break;
        }

        take = 1;
    }

    is_int(s.done, N_IDS, "all steps end");

    last = calloc(*n, sizeof(float));
    memcpy(last, s.logits + (size_t) (N_IDS - 1) * *n, *n * sizeof(float));
    free(s.logits);
    llm_model_free(m);

    return last;
}


static void
test_ptx(const char *dir)
{
    float      *native, *ptx;
    uint32_t    n;
    llm_err_t   err;

    set("90", "LLM_EMU_COMPILED", "80");
    ok(opens("emu", dir, &err), "PTX of an earlier GPU");

    if (!ok(strstr(logged, "CUDA: emulated GPU has compute capability 9.0, for "
                   "which llm_cuda.so has PTX of 8.0 only")
            && strstr(logged, "CUDA_ARCH=90a ./build.sh build"),
            "is said, as loads take longer"))
    {
        printf("# %s\n", logged);
    }

    ptx = logits(dir, &n);
    set("90", NULL, NULL);
    native = logits(dir, &n);
    ok(memcmp(native, ptx, n * sizeof(float)) == 0,
       "it gives the bits of machine code");

    free(ptx);
    free(native);
}


int
main(void)
{
    char         emu[PATH_MAX], dir[PATH_MAX];
    const char  *objs;

    objs = getenv("LLM_OBJS");

    if (realpath(objs ? objs : "objs", dir) == NULL
        || (size_t) snprintf(emu, sizeof(emu), "%s/llm_emu.so", dir)
           >= sizeof(emu)
        || access(emu, F_OK) != 0)
    {
        skip("there is no llm_emu.so in this build");
        return done_testing();
    }

    test_refused(dir);
    test_auto(emu);
    test_ptx(dir);

    return done_testing();
}
