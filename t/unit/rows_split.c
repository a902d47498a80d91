/*
 * split=rows: two emulated devices that share each layer give the bits of one,
 * of dense models, of mixtures of experts, of recurrent layers, of latent
 * attention and of encoders; in chunks and token by token, in launched, captured
 * and replayed steps, beside other sequences, from copied pages and states.
 * Their memory counts together, the smaller one twice; a model that cannot be
 * divided this way is refused with what to do; and an error names its device.
 */

#include "t/unit/several.h"

#include <dlfcn.h>

#define FEW_IDS  12


/* graphs that the emulator has launched so far; 0: it does not say */

static unsigned long
launched(void)
{
    char            path[1024];
    void           *lib;
    const char     *objs = getenv("LLM_OBJS");
    unsigned long (*count)(const char *name);

    snprintf(path, sizeof(path), "%s/llm_emu.so", objs ? objs : "objs");
    lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    *(void **) &count = lib ? dlsym(lib, "llm_emu_count") : NULL;

    return count ? count("cudaGraphLaunch") : 0;
}


/* ---- the same bits ---- */

static void
test_demo(void)
{
    uint32_t       i;
    unsigned long  was;

    f.name = "demo";
    f.n_ids = N_IDS;

    for (i = 0; i < f.n_ids; i++) {
        f.ids[i] = (int32_t) (i * 37 % 1000 + 5);
    }

    was = launched();
    check_one(DEMO, "emu:0,1", 1);
    ok(launched() > was, "graphs were launched");

    f.n_ids = FEW_IDS;
    f.name = "demo, the other first";
    check_one(DEMO, "emu:1,0", 0);

    f.name = "demo on Hopper";
    (void) setenv("LLM_EMU_CAPABILITY", "90", 1);
    check_one(DEMO, "emu:0,1", 0);
    (void) unsetenv("LLM_EMU_CAPABILITY");

    f.name = "demo in fp8";
    fp8 = 1;
    check_one(DEMO, "emu:0,1", 0);
    fp8 = 0;

    f.name = "demo without graphs";
    (void) setenv("LLM_EMU_FAIL_GRAPH", "1", 1);
    check_one(DEMO, "emu:0,1", 0);
    (void) unsetenv("LLM_EMU_FAIL_GRAPH");
}


static void
test_bits(void)
{
    char    path[2048];
    size_t  i;

    static const char  *const names[] = {
        "apertus-f16", "arcee-f16", "cohere2-f16", "commandr-f16",
        "ernie45-f16", "exaone4-f16", "fi3-f16", "gemma-f16", "gemma2-f16",
        "gemma3-f16", "gemma4-f16", "glm4-f16", "gpt2-f16", "granite-f16",
        "hunyuandense-f16", "ministral3-f16", "nemotron-f16", "olmo2-f16",
        "phi2-f16", "seedoss-f16", "smollm3-f16", "stablelm-f16",
        "starcoder2-f16",
        "mixtral-f16", "qwen2moe-f16", "qwen3moe-f16", "gptoss-f16",
        "olmoe-f16", "granitemoe-f16", "glm4moe-f16", "ernie45moe-f16",
        "hunyuanmoe-f16", "minimaxm2-f16", "llama4-f16",
        "qwen3next-f16", "qwen35-f16", "mamba2-f16", "falconh1-f16",
        "nemotronhmoe-f16", "lfm2-f16",
        "deepseek2-f16", "deepseek2-lite-f16"
    };

    for (i = 0; i < llm_nelems(names); i++) {
        f.name = names[i];
        snprintf(path, sizeof(path), "%s/models/%s.gguf", f.dir, f.name);

        if (!ok(load_fixture(&f, "logits", 1), "%s: ids", f.name)) {
            continue;
        }

        free(f.want);
        f.n_ids = llm_min(f.n_ids, N_IDS);
        check_one(path, "emu:0,1", 0);
    }
}


static void
test_encoders(void)
{
    char     path[2048];
    float   *one, *two;
    size_t   i;

    static const char  *const names[] = {
        "bert-f16", "modernbert-f16", "gemmaembedding-f16"
    };

    for (i = 0; i < llm_nelems(names); i++) {
        f.name = names[i];
        snprintf(path, sizeof(path), "%s/models/%s.gguf", f.dir, f.name);

        one = encoded(path, "emu");
        two = encoded(path, "emu:0,1");
        ok(one && two && memcmp(one, two, f.n_ids * sizeof(float)) == 0,
           "%s: the same states", f.name);
        free(one);
        free(two);
    }
}


/* ---- memory ---- */

/* pages of the demo model on devices with so much memory; 0: err says why it
   does not load */

static uint32_t
pages_of(const char *device, const char *memory, llm_err_t *err)
{
    uint32_t      pages;
    llm_model_t  *m;

    (void) setenv("LLM_EMU_MEMORY", memory, 1);
    m = load(DEMO, device, 0, err);
    pages = m ? m->n_pages[LLM_KV_FULL] : 0;
    llm_model_free(m);
    (void) unsetenv("LLM_EMU_MEMORY");

    return pages;
}


/* the least memory of each device, in units of 64 KiB, with which the model
   gets all pages */

static uint32_t
least_of(const char *device, uint32_t all)
{
    char       value[32];
    uint32_t   low, high, mid;
    llm_err_t  err;

    for (low = 0, high = 6400; high - low > 1; ) {
        mid = (low + high) / 2;
        snprintf(value, sizeof(value), "%u", mid << 16);

        if (pages_of(device, value, &err) == all) {
            high = mid;

        } else {
            low = mid;
        }
    }

    return high;
}


/* from enough for all pages down to too little for the weights */

static void
test_short(uint32_t all, uint32_t least)
{
    char       value[32];
    uint32_t   i, pages, fewer, none, wrong;
    llm_err_t  err;

    fewer = none = wrong = 0;

    for (i = least - 1; i > 0 && none < 3; i -= llm_min(i, 2u)) {
        snprintf(value, sizeof(value), "%u", i << 16);
        pages = pages_of("emu:0,1", value, &err);
        fewer += pages && pages < all;
        none += pages == 0;
        wrong += pages == 0 && strstr(err.msg, "CUDA: device ") == NULL
                 && strstr(err.msg, " are available") == NULL;
    }

    ok(fewer, "%u times some pages fit", fewer);
    is_int(none, 3, "then none");
    is_int(wrong, 0, "which says what is short");
}


static void
test_memory(void)
{
    char       value[64];
    llm_err_t  err;
    uint32_t   all, one, two;

    f.name = "demo";
    all = pages_of("emu:0,1", "400000000", &err);
    is_int(all, 2 * CTX / LLM_KV_PAGE, "pages for all sequences");

    one = least_of("emu", all);
    two = least_of("emu:0,1", all);
    ok(two < one, "two need %u units each, one %u", two, one);

    snprintf(value, sizeof(value), "%u,400000000", (two - 1) << 16);
    ok(pages_of("emu:0,1", value, &err) < all, "the smaller one counts");

    ok(pages_of("emu:0,1", "400000000,1000000", &err) == 0
       && strstr(err.msg, "CUDA: device 1: "), "too little: %s", err.msg);

    test_short(all, two);
}


/* ---- failures ---- */

/* a kernel of either device fails; allocations fail in the middle of a load:
   nothing is left behind that matters */

static void
test_failures(void)
{
    char          value[32];
    uint32_t      n, named[2];
    llm_err_t     err;
    llm_model_t  *m;

    f.name = "demo";
    named[0] = named[1] = 0;

    for (n = 1; n < 160; n += 13) {
        m = must_load(DEMO, "emu:0,1");
        snprintf(value, sizeof(value), "%u", n);
        (void) setenv("LLM_EMU_FAIL_LAUNCH", value, 1);
        ok(m && runs(m, &err) == LLM_ERROR
           && strcmp(err.code, LLM_DEVICE_ERROR) == 0, "kernel %u fails: %s",
           n, err.msg);
        (void) unsetenv("LLM_EMU_FAIL_LAUNCH");
        llm_model_free(m);

        named[0] += strstr(err.msg, "CUDA: device 0: ") != NULL;
        named[1] += strstr(err.msg, "CUDA: device 1: ") != NULL;
    }

    ok(named[0] && named[1], "of device 0 %u times, of device 1 %u times",
       named[0], named[1]);

    check_allocations(2000, 29);
}


/* an error of a device that sticks: it is named, and the other one is there */

static void
test_lost(void)
{
    int           lost;
    char          name[16];
    const char   *at;
    llm_err_t     err;
    llm_model_t  *m;

    f.name = "demo";
    m = must_load(DEMO, "emu:0,1");
    (void) setenv("LLM_EMU_STICKY", "1", 1);
    (void) setenv("LLM_EMU_FAIL_LAUNCH", "20", 1);
    ok(m && runs(m, &err) == LLM_ERROR
       && strcmp(err.code, LLM_DEVICE_LOST) == 0, "lost: %s: %s", err.code,
       err.msg);
    (void) unsetenv("LLM_EMU_FAIL_LAUNCH");
    (void) unsetenv("LLM_EMU_STICKY");
    llm_model_free(m);

    at = strstr(err.msg, "CUDA: device ");
    lost = at ? at[13] - '0' : 0;

    m = load(DEMO, "emu:0,1", 0, &err);
    snprintf(name, sizeof(name), "device %d: ", lost);
    ok(m == NULL && strcmp(err.code, LLM_DEVICE_LOST) == 0
       && strstr(err.msg, name), "as long as the process lives: %s", err.msg);
    llm_model_free(m);

    snprintf(name, sizeof(name), "emu:%d", 1 - lost);
    m = must_load(DEMO, name);
    ok(m && runs(m, &err) == LLM_OK, "the other device is there");
    llm_model_free(m);
}


/* ---- what cannot be divided ---- */

static void
refused(const char *name, const char *device, const char *why)
{
    char          path[2048];
    llm_err_t     err;
    llm_model_t  *m;

    snprintf(path, sizeof(path), "%s/models/%s.gguf", f.dir, name);
    m = load(strcmp(name, "demo") ? path : DEMO, device, 0, &err);
    ok(m == NULL && strstr(err.msg, why) && strstr(err.msg, "split=layers"),
       "%s: %s", name, m ? "it was loaded" : err.msg);
    llm_model_free(m);
}


static void
test_refused(void)
{
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o = { .device = "cpu", .split_rows = 1, .ctx = CTX };

    (void) setenv("LLM_EMU_DEVICES", "3", 1);
    refused("demo", "emu:0,1,2", "the 2 KV heads of layer 0 cannot be "
            "divided evenly among the 3 devices of device=emu:0,1,2");

    if (f.dir) {
        refused("mamba2-f16", "emu:0,1,2", " recurrent heads of layer 0");
        refused("deepseek2-f16", "emu:0,1,2", " query heads of layer 0");
    }

    (void) unsetenv("LLM_EMU_DEVICES");

    (void) setenv("LLM_EMU_PEERS", "0", 1);
    refused("demo", "emu:0,1", "device 0 cannot read the memory of device 1 "
            "directly");
    (void) unsetenv("LLM_EMU_PEERS");

    m = llm_model_load(DEMO, &o, &err);
    ok(m == NULL && strstr(err.msg, "device=cpu is a single device"),
       "one device: %s", err.msg);
    llm_model_free(m);

    if (f.dir) {
        refused("falcon-f16", "emu:0,1", "the 1 KV head of layer 0");
        refused("gemma4moe-f16", "emu:0,1", "the 1 KV head of layer 2");
    }
}


int
main(void)
{
    llm_err_t     err;
    llm_model_t  *m;

    (void) setenv("LLM_EMU_SEED", "5", 0);
    (void) setenv("LLM_EMU_CLOSE", "53", 0);
    split_rows = 1;
    m = load(DEMO, "emu", 0, &err);

    if (m == NULL && run_lacks(&err)) {
        skip(err.msg);
        return done_testing();
    }

    llm_model_free(m);
    f.dir = tap_fixtures();

    test_demo();

    if (f.dir) {
        test_bits();
        test_encoders();

    } else {
        skip("no ../shared/fixtures");
    }

    test_refused();
    test_memory();
    test_failures();
    test_lost();

    return done_testing();
}
