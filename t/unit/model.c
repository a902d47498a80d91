/*
 * Models made here: logits against an independent implementation in float64
 * (tiny_expected.py), options of a load, and what a model has of pages and
 * slots.  What must be refused: refused.c.
 */

#include "engine/model/arch.h"
#include "t/unit/model_run.h"
#include "t/unit/tiny_model.h"


/*
 * For a backend that rounds activations: twice what the fixtures allow on
 * average, since this is one row of few logits.
 */

static double
bound_of(uint32_t type)
{
    if (llm_type_block(type) == 256) {
        return 0.036;
    }

    if (llm_type_block(type) == 32) {
        return 0.025;
    }

    return type == LLM_TYPE_BF16 ? 0.009 : 0.003;
}


static void
check_logits(const tiny_t *t, const char *device, const char *isa,
    double bound)
{
    float             logits[TINY_IDS * TINY_VOCAB];
    double            d;
    int32_t           ids[TINY_IDS];
    uint32_t          i;
    run_seq_t         s;
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    set_opts(&o, device, isa);
    o.backend_dir = getenv("LLM_OBJS") ? getenv("LLM_OBJS") : "objs";
    m = llm_model_load(path, &o, &err);

    if (m == NULL && run_lacks(&err)) {
        skip(err.msg);
        return;
    }

    if (!ok(m != NULL, "%s loads on %s", t->name, device)) {
        printf("# %s\n", err.msg);
        return;
    }

    for (i = 0; i < TINY_IDS; i++) {
        ids[i] = tiny_id(i);
    }

    memset(&s, 0, sizeof(s));
    s.ids = ids;
    s.n = TINY_IDS;
    s.logits = logits;

    d = 1;

    if (run_chunks(m, &s, 4, 0, &err) == LLM_OK) {
        d = run_distance(logits + (TINY_IDS - 1) * TINY_VOCAB, t->logits,
                         TINY_VOCAB);
    }

    ok(d <= bound, "%s on %s %s: %.7f of the deviation (at most %g)",
       t->name, device, isa ? isa : "", d, bound);

    llm_model_free(m);
}


static void
test_expected(void)
{
    size_t       i, k;
    const char  *gpu;

    static const char  *const isas[] = { "avx2", "avx512", "amx" };

    gpu = getenv("LLM_GPU_DEVICE");

    for (i = 0; i < llm_nelems(tinies); i++) {
        if (!ok(write_model(&tinies[i], NULL), "%s is written",
                tinies[i].name))
        {
            continue;
        }

        check_logits(&tinies[i], "reference", NULL, 1e-5);

        for (k = 0; k < llm_nelems(isas); k++) {
            check_logits(&tinies[i], "cpu", isas[k],
                         bound_of(tinies[i].type));
        }

        check_logits(&tinies[i], gpu ? gpu : "emu", NULL,
                     bound_of(tinies[i].type));
    }
}


static char  last_log[1024];


static void
keep_log(void *data, int level, const char *msg)
{
    if (level <= LLM_LOG_WARN) {
        snprintf(data, sizeof(last_log), "%s", msg);
    }
}


static llm_model_t *
load_with(llm_model_opts_t *o, const tiny_change_t *change, llm_err_t *err)
{
    last_log[0] = '\0';
    memset(err, 0, sizeof(llm_err_t));
    o->log = keep_log;
    o->log_data = last_log;

    if (!write_model(tiny_named("qwen3"), change)) {
        return NULL;
    }

    return llm_model_load(path, o, err);
}


static void
count_progress(void *data, int permille)
{
    int  *last = data;

    *last = permille >= *last && permille <= 1000 ? permille : -1;
}


static void
test_options(void)
{
    int               last, cancel;
    char              device[128];
    size_t            page;
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    set_opts(&o, "reference", NULL);
    last = 0;
    o.progress = count_progress;
    o.progress_data = &last;
    m = load_with(&o, NULL, &err);

    ok(m && llm_model_ctx(m) == 256, "ctx is the trained one");
    ok(m && llm_model_n_pages(m, LLM_KV_FULL) == 32, "pages for two sequences");
    ok(m && llm_model_max_out(m) == 16, "every row may give logits");
    is_int(last, 1000, "progress only rises, to the end");

    if (m) {
        llm_model_device(m, device, sizeof(device));
        ok(strstr(device, "reference"), "the device is named: %s", device);
    }

    llm_model_free(m);

    cancel = 1;
    o.cancel = &cancel;
    m = load_with(&o, NULL, &err);
    ok(m == NULL && strstr(err.msg, "cancelled"), "a load can be cancelled");
    o.cancel = NULL;

    o.ctx = 100;
    m = load_with(&o, NULL, &err);
    ok(m && llm_model_ctx(m) == 100 && llm_model_n_pages(m, LLM_KV_FULL) == 14,
       "ctx=100 takes 7 pages a sequence");
    llm_model_free(m);

    o.ctx = 512;
    m = load_with(&o, NULL, &err);
    ok(m && strstr(last_log, "trained for 256"), "a warning beyond training");
    llm_model_free(m);

    m = load_with(&o, &change(.u32_key =
                              "qwen3.rope.scaling.original_context_length",
                              .u32 = 512), &err);
    ok(m && strstr(last_log, "trained for") == NULL,
       "none where the file says that it was trained for as much");
    llm_model_free(m);

    /* 2 layers, 16 tokens, 2 heads of 8 and 8 floats */
    page = 2 * 16 * 2 * 16 * sizeof(float);

    o.ctx = 256;
    o.kv_bytes = 15 * page;
    m = load_with(&o, NULL, &err);
    ok(m == NULL && strstr(err.msg, "ctx=256"),
       "15 pages are too few for ctx=256: %s", err.msg);
    llm_model_free(m);

    o.ctx = 0;
    m = load_with(&o, NULL, &err);
    ok(m && llm_model_ctx(m) == 240 && llm_model_n_pages(m, LLM_KV_FULL) == 15
       && strstr(last_log, "ctx is 240 of 256"), "ctx gives way to them");
    llm_model_free(m);
    o.kv_bytes = 0;

    m = load_with(&o, &change(.u32_key = "qwen3.attention.sliding_window",
                              .u32 = 64), &err);
    ok(m && llm_model_ctx(m) == 256, "a sliding window leaves ctx as it is");
    llm_model_free(m);

    o.kv_bytes = 5 * page;
    m = load_with(&o, &change(.u32_key = "qwen3.attention.sliding_window",
                              .u32 = 64), &err);
    ok(m && llm_model_ctx(m) == 80 && llm_model_n_pages(m, LLM_KV_FULL) == 5
       && strstr(last_log, "ctx is 80 of 256: more does not fit in the 20 KiB"),
       "unless there is no memory for it: %s", last_log);
    llm_model_free(m);

    o.ctx = 256;
    m = load_with(&o, &change(.u32_key = "qwen3.attention.sliding_window",
                              .u32 = 64), &err);
    ok(m == NULL && strstr(err.msg, " KiB, but only 20 KiB are available"),
       "and it was not asked for: %s", err.msg);
    llm_model_free(m);
    o.kv_bytes = 0;

    o.ctx = 0;
    m = load_with(&o, &change(.extra = "mystery"), &err);
    ok(m && strstr(last_log, "mystery"), "an unknown tensor is named");
    llm_model_free(m);
}


static void
test_devices(void)
{
    size_t            i;
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    static const struct {
        const char  *device;
        const char  *why;
    } devices[] = {
        { "gpu", "is unknown" }, { "", "is unknown" },
        { "cuda:", "is unknown" }, { "cuda:x", "is unknown" },
        { "cuda:1x", "is unknown" }, { "cuda:99999", "is unknown" },
        { "cuda", "there is no /nowhere/llm_cuda.so" },
        { "cuda:0", "there is no /nowhere/llm_cuda.so" },
        { "emu", "there is no /nowhere/llm_emu.so" }
    };

    for (i = 0; i < llm_nelems(devices); i++) {
        set_opts(&o, devices[i].device, NULL);
        o.backend_dir = "/nowhere";
        m = load_with(&o, NULL, &err);

        ok(m == NULL && strstr(err.msg, devices[i].why),
           "device \"%s\": %s", devices[i].device, err.msg);
        llm_model_free(m);
    }

    set_opts(&o, "cpu", "reference");
    m = load_with(&o, NULL, &err);
    ok(m != NULL, "cpu with isa=reference");
    llm_model_free(m);
}


/* layers that predict more tokens are in the file, and nothing of them runs */

static void
test_skipped(void)
{
    tiny_t         t;
    tiny_change_t  change;

    t = *tiny_named("llama");
    t.name = "llama with a layer that predicts more";
    t.layers = 3;
    change = change(.u32_key = "llama.nextn_predict_layers", .u32 = 1);

    if (ok(write_model(&t, &change), "%s is written", t.name)) {
        check_logits(&t, "reference", NULL, 1e-5);
    }
}


/* sequences of the same ids, on pages of their own */

static void
two_alike(run_seq_t *s, int32_t *ids, float (*logits)[TINY_IDS * TINY_VOCAB])
{
    uint32_t  i;

    for (i = 0; i < TINY_IDS; i++) {
        ids[i] = tiny_id(i);
    }

    memset(s, 0, 2 * sizeof(*s));
    memset(logits, 0, 2 * sizeof(*logits));

    for (i = 0; i < 2; i++) {
        s[i].ids = ids;
        s[i].n = TINY_IDS;
        s[i].logits = logits[i];
        s[i].page = i;
    }
}


/* a page copied is the same cache */

static void
test_copy_page(void)
{
    float             logits[2][TINY_IDS * TINY_VOCAB];
    int32_t           ids[TINY_IDS];
    uint32_t          take;
    run_seq_t         s[2];
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    set_opts(&o, "reference", NULL);
    m = load_with(&o, NULL, &err);

    two_alike(s, ids, logits);

    if (ok(m && run_chunks(m, &s[0], TINY_IDS, 1, &err) == LLM_OK,
           "a sequence in page 0"))
    {
        llm_model_copy_page(m, LLM_KV_FULL, 0, 1);
        s[1].done = TINY_IDS - 1;
        take = 1;

        ok(run_step(m, &s[1], &take, 1, 1, &err) == LLM_OK
           && memcmp(logits[0] + (TINY_IDS - 1) * TINY_VOCAB,
                     logits[1] + (TINY_IDS - 1) * TINY_VOCAB,
                     TINY_VOCAB * sizeof(float)) == 0,
           "the last token again, on a copy of the page: the same bits");
    }

    llm_model_free(m);
}


/* what a step of one token reads: no table of embeddings that is not the
   head, and of the six experts the two that are used */

static void
test_step_bytes(void)
{
    size_t                i;
    uint64_t              all, step, a_third;
    llm_err_t             err;
    llm_model_t          *m;
    llm_gguf_t           *g;
    llm_model_opts_t      o;

    const llm_gguf_tensor_t  *t;

    set_opts(&o, "reference", NULL);

    if (!ok(write_model(tiny_named("qwen3moe"), NULL), "a mixture")) {
        return;
    }

    m = llm_model_load(path, &o, &err);
    g = llm_gguf_open(path, &err);

    for (i = 0, all = 0, a_third = 0; g && i < llm_gguf_n_tensors(g); i++) {
        t = llm_gguf_tensor(g, i);
        all += t->size;
        a_third += t->n_dims == 3 ? t->size : 0;
    }

    step = all - a_third + a_third / 6 * 2;

    if (g && llm_gguf_find_tensor(g, "output.weight")) {
        step -= llm_gguf_find_tensor(g, "token_embd.weight")->size;
    }

    ok(m && g && a_third && llm_model_hparams(m)->n_bytes == all
       && llm_model_hparams(m)->n_bytes_step == step,
       "a step reads %llu of %llu bytes", (unsigned long long) step,
       (unsigned long long) all);

    llm_gguf_close(g);
    llm_model_free(m);
}


/* with the key, or without it, the model computes what it did */

static void
stays_right(const char *name, tiny_change_t change, const char *key)
{
    const tiny_t  *t = tiny_named(name);

    if (ok(write_model(t, &change), "%s %s %s", name,
           change.drop_key ? "without" : "with", key))
    {
        check_logits(t, "reference", NULL, 1e-5);
    }
}


/* numbers that say nothing more are no reason to refuse a file */

static void
test_said_twice(void)
{
    size_t  i;

    static const struct {
        const char  *model;
        const char  *key;
        uint32_t     v;
    } all[] = {
        { "granitehybrid",
          "granitehybrid.expert_shared_feed_forward_length", 64 },
        { "deepseek2, lite", "deepseek2.attention.q_lora_rank", 1536 }
    };

    for (i = 0; i < llm_nelems(all); i++) {
        stays_right(all[i].model, change(.u32_key = all[i].key,
                                         .u32 = all[i].v), all[i].key);
    }
}


/* the number of the norms by the name of another kind, or by both */

static void
test_epsilon(void)
{
    size_t         i;
    const tiny_t  *t;

    static const struct {
        const char     *model;
        tiny_change_t   change;
    } files[] = {
        { "qwen3", { .f32_key = "qwen3.attention.layer_norm_epsilon",
                     .f32 = 0.5f } },
        { "gpt2", { .f32_key = "gpt2.attention.layer_norm_rms_epsilon",
                    .f32 = 0.5f } },
        { "qwen3", { .drop_key = "qwen3.attention.layer_norm_rms_epsilon",
                     .f32_key = "qwen3.attention.layer_norm_epsilon",
                     .f32 = 1e-5f } }
    };

    for (i = 0; i < llm_nelems(files); i++) {
        t = tiny_named(files[i].model);

        if (ok(write_model(t, &files[i].change), "%s, %s", t->name,
               files[i].change.f32_key))
        {
            check_logits(t, "reference", NULL, 1e-5);
        }
    }
}


/* where all layers are mixtures the width of another network says nothing, and
   those of the experts can be seen */

static void
test_no_width(void)
{
    size_t  i;

    static const char  *const keys[] = {
        "qwen3moe.feed_forward_length", "qwen3moe.expert_feed_forward_length",
        "qwen2moe.expert_feed_forward_length",
        "qwen2moe.expert_shared_feed_forward_length"
    };

    for (i = 0; i < llm_nelems(keys); i++) {
        stays_right(i < 2 ? "qwen3moe" : "qwen2moe",
                    change(.drop_key = keys[i]), keys[i]);
    }
}


/* pages that take no memory: as many as the sequences need */

static void
test_no_attention(void)
{
    float             logits[2][TINY_IDS * TINY_VOCAB];
    tiny_t            t;
    int32_t           ids[TINY_IDS];
    run_seq_t         s[2];
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    t = *tiny_named("granitehybrid");
    t.interval = t.layers + 1;
    set_opts(&o, "cpu", NULL);
    o.max_seqs = 2;
    o.kv_bytes = 1 << 20;

    m = write_model(&t, NULL) ? llm_model_load(path, &o, &err) : NULL;

    if (!ok(m != NULL, "a model without attention loads")) {
        return;
    }

    ok(llm_model_n_pages(m, LLM_KV_FULL)
       == 2 * ((llm_model_ctx(m) + LLM_KV_PAGE - 1) / LLM_KV_PAGE),
       "with %u pages", llm_model_n_pages(m, LLM_KV_FULL));

    two_alike(s, ids, logits);

    ok(run_chunks(m, &s[0], TINY_IDS, 1, &err) == LLM_OK
       && run_chunks(m, &s[1], 1, 1, &err) == LLM_OK
       && memcmp(logits[0], logits[1], sizeof(logits[0])) == 0,
       "and gives the same bits token by token");

    llm_model_free(m);
}


/* slots for running sequences and for snapshots, and a copied one */

static void
test_slots(void)
{
    float             logits[2][TINY_IDS * TINY_VOCAB];
    int32_t           ids[TINY_IDS];
    uint32_t          slots, pages, take;
    run_seq_t         s[2];
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    set_opts(&o, "reference", NULL);
    o.max_seqs = 3;

    if (!write_model(tiny_named("qwen35"), NULL)) {
        return;
    }

    o.kv_bytes = 1;
    m = llm_model_load(path, &o, &err);
    ok(m == NULL && strstr(err.msg, "the recurrent states of 3 sequences"),
       "too little memory for states: %s", err.msg);
    llm_model_free(m);

    o.kv_bytes = 1 << 20;
    m = llm_model_load(path, &o, &err);

    if (!ok(m != NULL, "memory for states")) {
        return;
    }

    slots = llm_model_n_slots(m);
    pages = llm_model_n_pages(m, LLM_KV_FULL);
    ok(slots > 4 && slots - 3 <= pages, "%u slots, %u pages", slots, pages);

    two_alike(s, ids, logits);

    take = TINY_IDS - 2;
    ok(run_step(m, &s[0], &take, 1, 1, &err) == LLM_OK, "a sequence");

    /* the other goes on from copies of its page and slot */

    llm_model_copy_page(m, LLM_KV_FULL, 0, 1);
    llm_model_copy_slot(m, 0, 1);
    s[1].done = TINY_IDS - 2;
    take = 2;

    ok(run_step(m, &s[0], &take, 1, 1, &err) == LLM_OK
       && run_step(m, &s[1], &take, 1, 1, &err) == LLM_OK
       && memcmp(logits[0] + (TINY_IDS - 2) * TINY_VOCAB,
                 logits[1] + (TINY_IDS - 2) * TINY_VOCAB,
                 2 * TINY_VOCAB * sizeof(float)) == 0,
       "a copy of its page and slot: the same bits");

    llm_model_free(m);
}


int
main(void)
{
    if (!tiny_begin()) {
        return done_testing();
    }

    test_expected();
    test_options();
    test_devices();
    test_skipped();
    test_copy_page();
    test_step_bytes();
    test_said_twice();
    test_no_width();
    test_epsilon();
    test_no_attention();
    test_slots();

    tiny_end();

    return done_testing();
}
