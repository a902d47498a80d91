/*
 * A model on several devices, in the emulator: the same bits as on one, of
 * models with windows, recurrent states, experts, latent attention, shared keys
 * and values, their own inputs of layers, and encoders; in chunks and token by
 * token, beside other sequences, from copied pages and states.  Layers are
 * divided by the memory that devices have; what does not fit is said with the
 * device; and a list of devices that is none is refused.
 */

#include "engine/model/model_internal.h"
#include "t/unit/tap.h"
#include "t/unit/fixture.h"
#include "t/unit/model_run.h"

#define DEMO      "models/demo.gguf"
#define CTX       128
#define BATCH     16
#define N_IDS     40
#define ENCODED   20
#define FAR       4                     /* pages, and slots, between a sequence
                                           and its copy */

static fixture_t  f;
static char       last_log[1024];


static void
keep_log(void *data, int level, const char *msg)
{
    (void) data;
    (void) level;

    if (strstr(msg, ": layers ")) {
        snprintf(last_log + strlen(last_log),
                 sizeof(last_log) - strlen(last_log), "%s\n", msg);
    }
}


static llm_model_t *
load(const char *path, const char *device, size_t kv_bytes, llm_err_t *err)
{
    const char        *objs;
    llm_model_opts_t   o;

    objs = getenv("LLM_OBJS");
    last_log[0] = '\0';
    memset(&o, 0, sizeof(o));
    o.device = device;
    o.backend_dir = objs ? objs : "objs";
    o.ctx = CTX;
    o.batch = BATCH;
    o.max_seqs = 2;
    o.kv_bytes = kv_bytes;
    o.log = keep_log;

    return llm_model_load(path, &o, err);
}


static llm_model_t *
must_load(const char *path, const char *device)
{
    llm_err_t     err;
    llm_model_t  *m;

    m = load(path, device, 0, &err);

    if (!ok(m != NULL, "%s on %s loads", f.name, device)) {
        printf("# %s\n", err.msg);
    }

    return m;
}


/* ---- the same bits ---- */

/* logits of the fixture's tokens in chunks, or NULL */

static float *
in_chunks(llm_model_t *m, uint32_t chunk)
{
    run_seq_t   s;
    llm_err_t   err;

    memset(&s, 0, sizeof(s));
    s.ids = f.ids;
    s.n = f.n_ids;
    s.logits = calloc((size_t) s.n * llm_model_hparams(m)->n_vocab,
                      sizeof(float));

    if (run_chunks(m, &s, chunk, 1, &err) != LLM_OK) {
        printf("# %s\n", err.msg);
        free(s.logits);
        return NULL;
    }

    return s.logits;
}


/* two sequences, the second of other tokens, in steps of other lengths; then
   the first one again on other pages, of which the first half is copied */

static int
beside_and_copied(llm_model_t *m, const float *want)
{
    int          same;
    size_t       row;
    uint32_t     i, half, take[2];
    run_seq_t    s[2];
    llm_err_t    err;

    row = llm_model_hparams(m)->n_vocab;
    half = f.n_ids / 2 / LLM_KV_PAGE * LLM_KV_PAGE;
    memset(s, 0, sizeof(s));

    for (i = 0; i < 2; i++) {
        s[i].ids = f.ids + i;
        s[i].n = f.n_ids - i;
        s[i].page = i;
        s[i].logits = calloc(f.n_ids * row, sizeof(float));
    }

    for (i = 0, same = 1; same && s[0].done < half; i++) {
        take[0] = llm_min(i % 3 ? 1 : 7, half - s[0].done);
        take[1] = llm_min(i % 2 ? 0 : 6, s[1].n - s[1].done);
        same = run_step(m, s, take, 2, 1, &err) == LLM_OK;
    }

    /* the pages of windows are the sequence's place in the step, so they are
       not copied */

    for (i = 0; i < half / LLM_KV_PAGE; i++) {
        llm_model_copy_page(m, LLM_KV_FULL, i * RUN_STRIDE,
                            FAR + i * RUN_STRIDE);
    }

    if (llm_model_n_slots(m) > 2) {
        llm_model_copy_slot(m, 0, 2);
    }

    s[0].page = FAR;

    if (llm_model_n_slots(m)) {
        s[0].page = FAR / llm_model_n_slots(m) * llm_model_n_slots(m) + 2;

        for (i = 0; i < half / LLM_KV_PAGE; i++) {
            llm_model_copy_page(m, LLM_KV_FULL, i * RUN_STRIDE,
                                s[0].page + i * RUN_STRIDE);
        }
    }

    for (i = 0; same && s[0].done < s[0].n; i++) {
        take[0] = llm_min(i % 2 ? 9 : 1, s[0].n - s[0].done);
        take[1] = 0;
        same = run_step(m, s, take, 2, 1, &err) == LLM_OK;
    }

    same = same && memcmp(s[0].logits, want, f.n_ids * row * sizeof(float))
                   == 0;
    free(s[0].logits);
    free(s[1].logits);

    return same;
}


/* the first tokens, in chunks that are launched ahead, two at a time: are the
   last row's logits those of `want`? */

static int
in_flight(llm_model_t *m, const float *want)
{
    int          rc;
    size_t       n_vocab;
    uint32_t     i, k, n, pos[2][5], rows[2] = { 0, 5 }, len[2], out = 4;
    uint32_t     pages[CTX / LLM_KV_PAGE], slot = 0;
    llm_err_t    err;
    llm_batch_t  b[2];

    for (i = 0; i < llm_nelems(pages); i++) {
        pages[i] = i;
    }

    rc = LLM_OK;
    n = f.n_ids / 5;

    for (k = 0; k < n && rc == LLM_OK; k++) {
        for (i = 0; i < 5; i++) {
            pos[k % 2][i] = k * 5 + i;
        }

        len[k % 2] = k * 5 + 5;

        b[k % 2] = (llm_batch_t) {
            .n_tokens = 5, .n_seqs = 1, .n_out = k == n - 1,
            .max_pages = llm_nelems(pages), .tokens = f.ids + k * 5,
            .pos = pos[k % 2], .seq_rows = rows, .kv_len = &len[k % 2],
            .pages = { pages, pages }, .out_rows = &out, .slots = &slot
        };

        rc = llm_model_submit(m, &b[k % 2], &err);

        if (rc == LLM_OK && k) {
            rc = llm_model_wait(m, &err);
        }
    }

    rc = rc == LLM_OK ? llm_model_wait(m, &err) : rc;
    n_vocab = llm_model_hparams(m)->n_vocab;

    return rc == LLM_OK
           && memcmp(llm_model_logits(m, 0), want + (n * 5 - 1) * n_vocab,
                     n_vocab * sizeof(float)) == 0;
}


/* each device as slow as may be, or as fast */

static void
check_late(llm_model_t *m, const float *want)
{
    size_t  i;

    static const char  *const eager[] = { "0", "1", "0,1", "1,0" };

    for (i = 0; i < llm_nelems(eager); i++) {
        (void) setenv("LLM_EMU_EAGER", eager[i], 1);
        ok(in_flight(m, want), "%s: two steps in flight, %s", f.name,
           eager[i]);
    }

    (void) unsetenv("LLM_EMU_EAGER");
}


static void
check_one(const char *path, const char *devices)
{
    float        *want, *got;
    size_t        i, size;
    llm_model_t  *one, *some;

    static const uint32_t  chunks[] = { BATCH, 5 };

    one = must_load(path, "emu");
    some = must_load(path, devices);
    want = one ? in_chunks(one, BATCH) : NULL;

    if (want && some) {
        size = (size_t) f.n_ids * llm_model_hparams(one)->n_vocab
               * sizeof(float);

        for (i = 0; i < llm_nelems(chunks); i++) {
            got = in_chunks(some, chunks[i]);
            ok(got && memcmp(got, want, size) == 0, "%s on %s: the same bits "
               "in chunks of %u", f.name, devices, chunks[i]);
            free(got);
        }

        ok(beside_and_copied(some, want),
           "%s: and beside another sequence, from copies", f.name);

        if (llm_model_n_pages(some, LLM_KV_WINDOW) == 0) {
            check_late(some, want);
        }

        is_int(some->n_parts, 1 + (devices[5] == ','), "%s", last_log);
    }

    free(want);
    llm_model_free(one);
    llm_model_free(some);
}


static void
test_demo(void)
{
    uint32_t  i;

    f.name = "demo";
    f.n_ids = N_IDS;

    for (i = 0; i < f.n_ids; i++) {
        f.ids[i] = (int32_t) (i * 37 % 1000 + 5);
    }

    check_one(DEMO, "emu:0,1");

    /* kernels are launched early, the first one on the second device not */

    f.name = "demo on Hopper";
    (void) setenv("LLM_EMU_CAPABILITY", "90", 1);
    check_one(DEMO, "emu:0,1");
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
        check_one(path, models[i].devices);
    }
}


/* ---- encoders ---- */

static float *
encoded(const char *path, const char *device)
{
    float         *states;
    size_t         width;
    int32_t        ids[ENCODED];
    uint32_t       i, rows[2], len, pos[ENCODED], pages[CTX / LLM_KV_PAGE];
    llm_err_t      err;
    llm_batch_t    b;
    llm_model_t   *m;

    m = must_load(path, device);

    if (m == NULL) {
        return NULL;
    }

    width = llm_model_hparams(m)->n_embd;
    states = calloc(ENCODED * width, sizeof(float));
    rows[0] = 0;
    rows[1] = len = ENCODED;

    for (i = 0; i < ENCODED; i++) {
        ids[i] = (int32_t) (7 + i * 5);
        pos[i] = i;
    }

    for (i = 0; i < llm_nelems(pages); i++) {
        pages[i] = i;
    }

    memset(&b, 0, sizeof(b));
    b.n_tokens = b.n_out = ENCODED;
    b.n_seqs = 1;
    b.gives = LLM_GIVES_HIDDEN;
    b.max_pages = llm_nelems(pages);
    b.tokens = ids;
    b.pos = pos;
    b.seq_rows = rows;
    b.kv_len = &len;
    b.pages[LLM_KV_FULL] = pages;
    b.out_rows = pos;

    ok(llm_model_forward(m, &b, &err) == LLM_OK, "%s on %s: runs", f.name,
       device);

    for (i = 0; i < ENCODED; i++) {
        memcpy(states + i * width, llm_model_hidden(m, i),
               width * sizeof(float));
    }

    f.n_ids = ENCODED * (uint32_t) width;
    llm_model_free(m);

    return states;
}


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

/* the first tokens of the demo model */

static int
runs(llm_model_t *m, llm_err_t *err)
{
    int         rc;
    run_seq_t   s;

    memset(&s, 0, sizeof(s));
    s.ids = f.ids;
    s.n = 8;
    s.logits = calloc((size_t) s.n * llm_model_hparams(m)->n_vocab,
                      sizeof(float));
    rc = run_chunks(m, &s, 4, 0, err);
    free(s.logits);

    return rc;
}


/* a kernel of either device fails, in the first step or the second; allocations
   fail in the middle of a load: nothing is left behind that matters */

static void
test_failures(void)
{
    char          value[32];
    uint32_t      i, n, loads, wrong;
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

    for (i = 1, loads = 0, wrong = 0; i < 600 && loads == 0; i += 13) {
        snprintf(value, sizeof(value), "%u", i);
        (void) setenv("LLM_EMU_FAIL_ALLOC", value, 1);
        m = load(DEMO, "emu:0,1", 0, &err);
        (void) unsetenv("LLM_EMU_FAIL_ALLOC");

        loads += m && runs(m, &err) == LLM_OK;
        wrong += m == NULL && strstr(err.msg, "CUDA: ") == NULL;
        llm_model_free(m);
    }

    is_int(wrong, 0, "a load without memory says so");
    ok(loads, "and the last one runs");
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
