/*
 * A model on several devices, in the emulator: the same bits as on one, of
 * models with windows, recurrent states, experts, latent attention, shared keys
 * and values, their own inputs of layers, and encoders; in chunks and token by
 * token, beside other sequences, from copied pages and states.  Layers are
 * divided by the memory that devices have; what does not fit is said with the
 * device; and a list of devices that is none is refused.
 */

#include "t/unit/several.h"


static void
test_demo(void)
{
    uint32_t  i;

    f.name = "demo";
    f.n_ids = N_IDS;

    for (i = 0; i < f.n_ids; i++) {
        f.ids[i] = (int32_t) (i * 37 % 1000 + 5);
    }

    check_one(DEMO, "emu:0,1", 1);

    /* kernels are launched early, the first one on the second device not */

    f.name = "demo on Hopper";
    (void) setenv("LLM_EMU_CAPABILITY", "90", 1);
    check_one(DEMO, "emu:0,1", 1);
    (void) unsetenv("LLM_EMU_CAPABILITY");
}


static void
test_bits(void)
{
    char    path[2048];
    size_t  i;

    static const struct {
        const char  *name;
        const char  *devices;
    } models[] = {
        { "gemma3-f16", "emu:0,1" },            /* windows */
        { "gemma4-f16", "emu:0,1" },            /* shared KV, inputs */
        { "gptoss-f16", "emu:0,1" },            /* experts, windows, sinks */
        { "deepseek2-f16", "emu:0,1" },         /* latent */
        { "qwen35-f16", "emu:1,0" },            /* recurrent */
        { "mamba2-f16", "emu:0,1" },
        { "lfm2-f16", "emu:0,1" },
        { "falcon-f16", "emu:0,1" },            /* parallel, tied */
        { "gpt2-f16", "emu:0,1" }               /* positions */
    };

    for (i = 0; i < llm_nelems(models); i++) {
        f.name = models[i].name;
        snprintf(path, sizeof(path), "%s/models/%s.gguf", f.dir, f.name);

        if (!ok(load_fixture(&f, "logits", 1), "%s: ids", f.name)) {
            continue;
        }

        free(f.want);
        f.n_ids = llm_min(f.n_ids, N_IDS);
        check_one(path, models[i].devices, 0);
    }
}


/* ---- encoders ---- */

static void
test_encoders(void)
{
    char     path[2048];
    float   *one, *two;
    size_t   i;

    static const char  *const names[] = { "bert-f16", "modernbert-f16" };

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

/* pages of the demo model if each device has n * 64 KiB; 0: it does not load */

static uint32_t
pages_of(uint32_t n, llm_err_t *err)
{
    char          value[64];
    uint32_t      pages;
    llm_model_t  *m;

    snprintf(value, sizeof(value), "%u", n << 16);
    (void) setenv("LLM_EMU_MEMORY", value, 1);
    m = load(DEMO, "emu:0,1", 0, err);
    pages = m ? m->n_pages[LLM_KV_FULL] : 0;
    llm_model_free(m);

    return pages;
}


/* from enough for all pages down to too little for the weights */

static void
test_short(uint32_t all)
{
    uint32_t   i, pages, unnamed, tight, fewer, last;
    llm_err_t  err;

    unnamed = tight = fewer = last = 0;

    for (i = 1600; pages_of(i, &err) == all; i -= 32) { /* void */ }

    for (i += 32; !last; i--) {
        pages = pages_of(i, &err);

        if (pages) {
            fewer += pages < all;
            continue;
        }

        unnamed += strstr(err.msg, "CUDA: device ") == NULL
                   && strstr(err.msg, " on emu:") == NULL;
        last = strstr(err.msg, " are available: no more fits beside the "
                               "layers on emu:") == NULL;
        tight += !last;
    }

    is_int(unnamed, 0, "each device that was too small has its name");
    ok(tight, "%u times pages did not fit", tight);
    ok(fewer, "%u times some pages did", fewer);
}


static void
test_memory(void)
{
    llm_err_t     err;
    uint32_t      even, pages;
    llm_model_t  *m;

    f.name = "demo";
    m = must_load(DEMO, "emu:0,1");

    if (m == NULL) {
        return;
    }

    even = m->parts[0].end;
    pages = m->n_pages[LLM_KV_FULL];
    is_int(m->parts[1].first, even, "the second device goes on");
    is_int(m->parts[1].end, m->desc.hp.n_layers, "to the last layer");
    ok(strstr(last_log, ", and the embeddings, on emu:0")
       && strstr(last_log, ", and the head, on emu:1"), "%s", last_log);
    llm_model_free(m);

    /* a smaller second device gets fewer layers */

    (void) setenv("LLM_EMU_MEMORY", "200000000,80000000", 1);
    m = must_load(DEMO, "emu:0,1");
    ok(m && m->parts[0].end > even, "less memory, fewer layers: %u before %u",
       m ? m->parts[0].end : 0, even);
    llm_model_free(m);

    (void) setenv("LLM_EMU_MEMORY", "80000000,200000000", 1);
    m = must_load(DEMO, "emu:0,1");
    ok(m && m->parts[0].end < even, "on either: %u before %u",
       m ? m->parts[0].end : 0, even);
    llm_model_free(m);

    test_short(pages);

    (void) setenv("LLM_EMU_MEMORY", "200000000,1000000", 1);
    m = load(DEMO, "emu:0,1", 0, &err);
    ok(m == NULL && strstr(err.msg, "CUDA: device 1: "), "too short: %s",
       err.msg);
    llm_model_free(m);

    (void) setenv("LLM_EMU_MEMORY", "200000000,200000000", 1);
    m = load(DEMO, "emu:0,1", (size_t) 400 << 20, &err);
    ok(m == NULL && strstr(err.msg, " are free on emu:0: CUDA: device 0: "),
       "kv_cache: %s", err.msg);
    llm_model_free(m);

    (void) unsetenv("LLM_EMU_MEMORY");
}


/* ---- failures ---- */

/* a kernel of either device fails, in the first step or the second; allocations
   fail in the middle of a load: nothing is left behind that matters */

static void
test_failures(void)
{
    char          value[32];
    uint32_t      n;
    llm_err_t     err;
    llm_model_t  *m;

    f.name = "demo";

    for (n = 1; n < 116; n += 38) {
        m = must_load(DEMO, "emu:0,1");
        snprintf(value, sizeof(value), "%u", n);
        (void) setenv("LLM_EMU_FAIL_LAUNCH", value, 1);
        ok(m && runs(m, &err) == LLM_ERROR
           && strcmp(err.code, LLM_DEVICE_ERROR) == 0, "kernel %u fails: %s",
           n, err.msg);
        (void) unsetenv("LLM_EMU_FAIL_LAUNCH");
        llm_model_free(m);
    }

    check_allocations(600, 13);
}


/* an error of the first device that sticks, and that the second one sees first,
   as the first one's next call is later */

static void
test_lost(void)
{
    llm_err_t     err;
    llm_model_t  *m;

    f.name = "demo";
    m = must_load(DEMO, "emu:0,1");
    (void) setenv("LLM_EMU_EAGER", "1,0", 1);
    (void) setenv("LLM_EMU_STICKY", "1", 1);
    (void) setenv("LLM_EMU_FAIL_LAUNCH", "3", 1);
    ok(m && runs(m, &err) == LLM_ERROR
       && strcmp(err.code, LLM_DEVICE_LOST) == 0, "lost: %s: %s", err.code,
       err.msg);
    (void) unsetenv("LLM_EMU_FAIL_LAUNCH");
    (void) unsetenv("LLM_EMU_STICKY");
    (void) unsetenv("LLM_EMU_EAGER");
    llm_model_free(m);

    m = load(DEMO, "emu:0,1", 0, &err);
    ok(m == NULL && strcmp(err.code, LLM_DEVICE_LOST) == 0,
       "as long as the process lives: %s", err.msg);
    llm_model_free(m);

    m = must_load(DEMO, "emu:1");
    ok(m && runs(m, &err) == LLM_OK, "the second device is there");
    llm_model_free(m);
}


/* ---- lists ---- */

static void
test_lists(void)
{
    size_t        i;
    char          path[2048];
    llm_err_t     err;
    llm_model_t  *m;

    static const struct {
        const char  *device;
        const char  *why;
    } lists[] = {
        { "emu:", "\"emu:\" is followed by numbers of devices" },
        { "emu:0,", "is followed by numbers of devices" },
        { "emu:0,x", "is followed by numbers of devices" },
        { "emu:,1", "is followed by numbers of devices" },
        { "emu:0 1", "is followed by numbers of devices" },
        { "emu:0,99999", "is followed by numbers of devices" },
        { "emu:0,0", "0 is listed twice" },
        { "emu:1,0,01", "1 is listed twice" },
        { "emu:0,9", "there is no device 9: this machine has 2" },
        { "emu:9", "there is no device 9: this machine has 2" },
        { "emu:0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
          "at most 16 devices" },
        { "cpu:0,1", "is unknown" },
        { "emulator", "is unknown" }
    };

    for (i = 0; i < llm_nelems(lists); i++) {
        m = load(DEMO, lists[i].device, 0, &err);
        ok(m == NULL && strstr(err.msg, lists[i].why), "%s: %s",
           lists[i].device, err.msg);
        llm_model_free(m);
    }

    if (f.dir == NULL) {
        return;
    }

    (void) setenv("LLM_EMU_DEVICES", "3", 1);
    snprintf(path, sizeof(path), "%s/models/falcon-f16.gguf", f.dir);
    m = load(path, "emu:0,1,2", 0, &err);
    ok(m == NULL && strstr(err.msg, "its 2 layers can be divided among at most "
                                    "2 devices"), "three of two: %s", err.msg);
    llm_model_free(m);
    (void) unsetenv("LLM_EMU_DEVICES");
}


int
main(void)
{
    llm_err_t     err;
    llm_model_t  *m;

    (void) setenv("LLM_EMU_SEED", "5", 0);
    (void) setenv("LLM_EMU_CLOSE", "53", 0);
    m = load(DEMO, "emu", 0, &err);

    if (m == NULL && run_lacks(&err)) {
        skip(err.msg);
        return done_testing();
    }

    llm_model_free(m);
    f.dir = tap_fixtures();

    test_lists();
    test_memory();
    test_failures();
    test_demo();

    if (f.dir) {
        test_bits();
        test_encoders();

    } else {
        skip("no ../shared/fixtures");
    }

    test_lost();

    return done_testing();
}
