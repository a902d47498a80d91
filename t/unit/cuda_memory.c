/*
 * The CUDA backend when memory ends, in the emulator: whichever allocation
 * of a load fails, the load ends with a message or does without, and gives
 * back all that it took; KV pages fill what is left of the card, less a
 * margin, and a card that is too small is a message.
 */

#include "engine/model/model.h"
#include "t/unit/model_run.h"
#include "t/unit/shallow.h"
#include "t/unit/tap.h"

#define LAYERS  2

static const char  *path;
static uint64_t  max_seqs = 2;
static uint64_t  kv_bytes;
static int       drafts;                /* the model drafts for itself */


static llm_model_t *
load(uint32_t ctx, llm_err_t *err)
{
    const char        *objs;
    llm_model_opts_t   o;

    objs = getenv("LLM_OBJS");

    memset(&o, 0, sizeof(o));
    o.device = "emu";
    o.backend_dir = objs ? objs : "objs";
    o.ctx = ctx;
    o.batch = 32;
    o.max_seqs = (uint32_t) max_seqs;
    o.kv_bytes = kv_bytes;
    o.drafts = drafts;
    o.draft = drafts ? path : NULL;

    return llm_model_load(path, &o, err);
}


static void
set(const char *name, uint64_t value)
{
    char  text[32];

    snprintf(text, sizeof(text), "%llu", (unsigned long long) value);
    (void) setenv(name, text, 1);
}


/* a step of eight rows gives a number */

static int
runs(llm_model_t *m)
{
    float       *logits;
    int32_t      ids[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    run_seq_t    s;
    llm_err_t    err;

    memset(&s, 0, sizeof(s));
    logits = calloc(8 * llm_model_hparams(m)->n_vocab, sizeof(float));
    s.ids = ids;
    s.n = 8;
    s.logits = logits;

    if (run_chunks(m, &s, 8, 0, &err) != LLM_OK) {
        printf("# %s\n", err.msg);
        free(logits);
        return 0;
    }

    free(logits);

    return 1;
}


/* allocation n fails, for n = 1, 2, ... until a load does not get so far */

static void
test_each_allocation(void)
{
    int           said, worked;
    uint32_t      n, failed;
    llm_err_t     err;
    llm_model_t  *m;

    said = 1;
    worked = 1;
    failed = 0;

    for (n = 1; n < 250; n += n < 16 ? 1 : 3) {
        set("LLM_EMU_FAIL_ALLOC", n);
        err.msg[0] = '\0';
        m = load(64, &err);

        if (m == NULL) {
            failed++;

            if (strstr(err.msg, "CUDA: ") == NULL
                || strstr(err.msg, "memory") == NULL)
            {
                said = 0;
                printf("# allocation %u: %s\n", n, err.msg);
            }

            continue;
        }

        worked &= runs(m);
        llm_model_free(m);
    }

    ok(failed > 25, "%u loads without an allocation fail", failed);
    ok(said, "each says that memory was missing");
    ok(worked, "the others work");
    (void) unsetenv("LLM_EMU_FAIL_ALLOC");
}


static void
test_pages(void)
{
    size_t        need;
    uint32_t      all, n;
    llm_err_t     err;
    llm_model_t  *m;

    max_seqs = 64;

    m = load(512, &err);

    if (!ok(m != NULL, "a card of 4 GiB")) {
        printf("# %s\n", err.msg);
        return;
    }

    all = llm_model_n_pages(m, LLM_KV_FULL);
    is_int(all, 64 * 512 / LLM_KV_PAGE, "pages of all sequences");
    llm_model_free(m);

    /* the least that does, to some MiB */

    for (need = 8 << 20; need < (size_t) 1 << 30; need += 4 << 20) {
        set("LLM_EMU_MEMORY", need);
        m = load(512, &err);

        if (m) {
            break;
        }

        if (strstr(err.msg, "memory") == NULL
            && strstr(err.msg, "KV cache") == NULL)
        {
            break;
        }
    }

    if (ok(m != NULL, "a card of %zu MiB does", need >> 20)) {
        n = llm_model_n_pages(m, LLM_KV_FULL);
        ok(n < all && n >= 32, "with %u pages, fewer than %u", n, all);
        ok(runs(m), "and runs");
        llm_model_free(m);

    } else {
        printf("# %s\n", err.msg);
    }

    set("LLM_EMU_MEMORY", need - (4 << 20));
    m = load(512, &err);
    ok(m == NULL && (strstr(err.msg, "KV cache") || strstr(err.msg, "memory")),
       "a smaller one: %s", m ? "loads" : err.msg);

    if (m) {
        llm_model_free(m);
    }
}


/* what was asked for by name is never made smaller */

static void
test_kv_cache(void)
{
    llm_err_t     err;
    llm_model_t  *m;

    max_seqs = 2;
    set("LLM_EMU_MEMORY", 160 << 20);

    kv_bytes = (uint64_t) 1 << 30;
    m = load(64, &err);
    ok(m == NULL && strstr(err.msg, "kv_cache is 1024 MiB, and ")
       && strstr(err.msg, " MiB are free") && strstr(err.msg, path),
       "more than the card has: %s", m ? "loads" : err.msg);

    /* so much that bytes of pages and layers are near their types' ends */

    kv_bytes = UINT64_MAX / 2;
    m = load(64, &err);
    ok(m == NULL && strstr(err.msg, "kv_cache is "),
       "far more: %s", m ? "loads" : err.msg);

    kv_bytes = 8 << 20;
    m = load(64, &err);
    ok(m && llm_model_n_pages(m, LLM_KV_FULL) > 2 * 64 / LLM_KV_PAGE,
       "8 MiB: %s", m ? "loads" : err.msg);

    if (m) {
        ok(runs(m), "and runs");
        llm_model_free(m);
    }

    (void) unsetenv("LLM_EMU_MEMORY");
    kv_bytes = 0;
}


/* what drafts finds memory after a model that takes all there is */

static void
test_draft(void)
{
    uint32_t      alone, with;
    llm_err_t     err;
    llm_model_t  *m, *d;

    max_seqs = 512;
    set("LLM_EMU_MEMORY", 200 << 20);

    m = load(512, &err);
    alone = m ? llm_model_n_pages(m, LLM_KV_FULL) : 0;
    ok(alone && alone < 512 * 512 / LLM_KV_PAGE,
       "a card that is full: %u pages", alone);
    d = load(512, &err);
    ok(d == NULL, "has no room for another model");
    llm_model_free(d);
    llm_model_free(m);

    drafts = 1;
    m = load(512, &err);
    with = m ? llm_model_n_pages(m, LLM_KV_FULL) : 0;
    drafts = 0;
    d = load(512, &err);
    ok(m && d, "memory was left for what drafts: %s", d ? "yes" : err.msg);
    ok(with < alone && with > alone / 8,
       "%u pages instead of %u", with, alone);
    ok(d && llm_model_n_pages(d, LLM_KV_FULL) >= 512 / LLM_KV_PAGE,
       "one sequence at least of what drafts");
    ok(m && d && runs(m) && runs(d), "both run");
    llm_model_free(d);
    llm_model_free(m);
    (void) unsetenv("LLM_EMU_MEMORY");
}


int
main(void)
{
    llm_err_t     err;
    llm_model_t  *m;

    path = shallow_model(LAYERS);
    m = load(64, &err);

    if (m == NULL && run_lacks(&err)) {
        skip(err.msg);
        return done_testing();
    }

    if (ok(m != NULL, "the demo model loads")) {
        llm_model_free(m);
    }

    /* what failed loads do not give back is missing here */

    set("LLM_EMU_MEMORY", 160 << 20);
    test_each_allocation();
    m = load(64, &err);
    ok(m != NULL, "after all failures there is memory: %s",
       m ? "yes" : err.msg);

    if (m) {
        llm_model_free(m);
    }

    (void) unsetenv("LLM_EMU_MEMORY");
    test_kv_cache();
    test_draft();
    test_pages();

    return done_testing();
}
