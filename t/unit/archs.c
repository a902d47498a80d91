/*
 * Logits of the architectures on the CPU and in the emulator of the CUDA
 * backend, against what Hugging Face transformers computes in float64 (the
 * shared fixtures), position by position: the median and nine of ten; and the
 * same bits for a whole prompt, in chunks, token by token, where the last row
 * alone is wanted, and beside another sequence; where some layers have windows,
 * also with a cache of their own for these.  The emulator and the reference
 * operations are slow: they are spared the chunks and the last row, and only the
 * first tokens are beside others.  Without the fixtures: t/unit/model.c has small models of its own.
 * LLM_GPU_DEVICE=cuda: a GPU in the emulator's place.
 */

#include "t/unit/tap.h"
#include "t/unit/fixture.h"
#include "t/unit/model_run.h"

#include <unistd.h>

/* of a slow device beside another sequence: more than two pages */
#define SLOW_TOKENS  (2 * LLM_KV_PAGE + 4)


/* the median of the positions, and what nine of ten are within */

static void
distances(const fixture_t *f, const float *got, uint32_t n_vocab,
    double *median, double *most)
{
    double    *d;
    uint32_t   i;

    d = malloc(f->n_ids * sizeof(double));

    for (i = 0; i < f->n_ids; i++) {
        d[i] = run_distance(got + (size_t) i * n_vocab,
                            f->want + (size_t) i * n_vocab, n_vocab);
    }

    run_sort(d, f->n_ids);
    *median = d[f->n_ids / 2];
    *most = d[f->n_ids * 9 / 10];
    free(d);
}


/* where the last row alone is wanted, the last layers compute no others */

static void
check_last_row(llm_model_t *m, const fixture_t *f, const float *whole,
    const char *what)
{
    size_t       last;
    uint32_t     n_vocab;
    run_seq_t    s;
    llm_err_t    err;

    n_vocab = llm_model_hparams(m)->n_vocab;
    last = (size_t) (f->n_ids - 1) * n_vocab;

    memset(&s, 0, sizeof(s));
    s.ids = f->ids;
    s.n = f->n_ids;
    s.page = 5;
    s.logits = calloc(last + n_vocab, sizeof(float));

    ok(run_chunks(m, &s, f->n_ids, 0, &err) == LLM_OK
       && memcmp(s.logits + last, whole + last, n_vocab * sizeof(float)) == 0,
       "%s %s: the same bits of the last row alone", f->name, what);
    free(s.logits);
}


/* the same bits one after the other, and beside a sequence of other tokens */

static void
check_bits(llm_model_t *m, const fixture_t *f, const float *whole, int slow,
    const char *what)
{
    int         same;
    size_t      size;
    uint32_t    i, n, n_vocab, take[2];
    run_seq_t   s[2];
    llm_err_t   err;

    static const uint32_t  chunks[] = { 64, 7, 1 };

    n = slow ? llm_min(f->n_ids, (uint32_t) SLOW_TOKENS) : f->n_ids;
    n_vocab = llm_model_hparams(m)->n_vocab;
    size = (size_t) f->n_ids * n_vocab * sizeof(float);

    for (i = 0; !slow && i < llm_nelems(chunks); i++) {
        memset(s, 0, sizeof(s));
        s[0].ids = f->ids;
        s[0].n = f->n_ids;
        s[0].page = 5;
        s[0].logits = calloc(1, size);

        ok(run_chunks(m, s, chunks[i], 1, &err) == LLM_OK
           && memcmp(s[0].logits, whole, size) == 0,
           "%s %s: the same bits in chunks of %u", f->name, what, chunks[i]);
        free(s[0].logits);
    }

    memset(s, 0, sizeof(s));

    for (i = 0; i < 2; i++) {
        s[i].ids = f->ids + i;
        s[i].n = n - i;
        s[i].page = i;
        s[i].logits = calloc(1, size);
    }

    for (i = 0, same = 1; same && s[0].done < s[0].n; i++) {
        take[0] = llm_min(i % 3 == 1 ? 5 : 1, s[0].n - s[0].done);
        take[1] = i % 2 ? 0 : llm_min(17, s[1].n - s[1].done);
        same = run_step(m, s, take, 2, 1, &err) == LLM_OK;
    }

    size = (size_t) n * n_vocab * sizeof(float);
    ok(same && memcmp(s[0].logits, whole, size) == 0,
       "%s %s: the same bits beside another sequence", f->name, what);

    free(s[0].logits);
    free(s[1].logits);
}


/* the same bits where layers with windows have pages of their own, which need a
   ctx longer than a window and two steps */

static void
check_windows(const fixture_t *f, const char *path, llm_model_opts_t *o,
    const float *whole, const char *what)
{
    size_t        size;
    run_seq_t     s;
    llm_err_t     err;
    llm_model_t  *m;

    o->batch = 16;
    m = llm_model_load(path, o, &err);

    if (m && llm_model_n_pages(m, LLM_KV_WINDOW)) {
        size = (size_t) f->n_ids * llm_model_hparams(m)->n_vocab
               * sizeof(float);
        memset(&s, 0, sizeof(s));
        s.ids = f->ids;
        s.n = f->n_ids;
        s.logits = calloc(1, size);

        ok(run_chunks(m, &s, 16, 1, &err) == LLM_OK
           && memcmp(s.logits, whole, size) == 0,
           "%s %s: the same bits with %u pages for windows of %u", f->name,
           what, llm_model_n_pages(m, LLM_KV_WINDOW), llm_model_window(m));
        free(s.logits);
    }

    llm_model_free(m);
}


static void
check(fixture_t *f, const char *device, const char *isa, double bound)
{
    int                slow;
    char               path[2048], what[64];
    float             *whole;
    double             median, most;
    uint32_t           n_vocab;
    run_seq_t          s;
    llm_err_t          err;
    llm_model_t       *m;
    llm_model_opts_t   o;

    snprintf(path, sizeof(path), "%s/models/%s.gguf", f->dir, f->name);
    snprintf(what, sizeof(what), "%s %s", device, isa ? isa : "");

    memset(&o, 0, sizeof(o));
    o.device = device;
    o.isa = isa;
    o.backend_dir = getenv("LLM_OBJS") ? getenv("LLM_OBJS") : "objs";
    o.threads = 2;
    o.ctx = 512;
    o.max_seqs = 4;

    m = llm_model_load(path, &o, &err);

    if (m == NULL && run_lacks(&err)) {
        skip(err.msg);
        return;
    }

    if (!ok(m != NULL, "%s %s: loads", f->name, what)) {
        printf("# %s\n", err.msg);
        return;
    }

    n_vocab = llm_model_hparams(m)->n_vocab;
    memset(&s, 0, sizeof(s));

    if (ok(load_fixture(f, "logits", n_vocab), "%s: ids and logits", f->name)) {
        whole = calloc((size_t) f->n_ids * n_vocab, sizeof(float));
        s.ids = f->ids;
        s.n = f->n_ids;
        s.logits = whole;

        ok(run_chunks(m, &s, f->n_ids, 1, &err) == LLM_OK, "%s %s: runs",
           f->name, what);
        distances(f, whole, n_vocab, &median, &most);
        ok(median <= bound && most <= 10 * bound,
           "%s %s: %.6f of the deviation, nine of ten within %.6f (at most "
           "%g)", f->name, what, median, most, bound);
        slow = strcmp(device, "emu") == 0 || strcmp(device, "reference") == 0;
        check_bits(m, f, whole, slow, what);

        if (!slow) {
            check_last_row(m, f, whole, what);
        }

        if (strcmp(device, "cpu") == 0) {
            check_windows(f, path, &o, whole, what);
        }

        free(whole);
    }

    free(f->want);
    llm_model_free(m);
}


/* what was carried to the GPU's machine: not all fixtures are */

static void
on_gpu(fixture_t *f, const char *device)
{
    char  path[2048];

    snprintf(path, sizeof(path), "%s/models/%s.gguf", f->dir, f->name);

    if (access(path, R_OK) != 0) {
        skip(path);
        return;
    }

    check(f, device, NULL, 0.0025);
}


int
main(void)
{
    size_t       i;
    fixture_t   *f;
    const char  *gpu;

    static const char  *const names[] = {
        "apertus-f16", "arcee-f16", "cohere2-f16", "commandr-f16",
        "ernie45-f16", "exaone4-f16", "falcon-f16", "fi3-f16", "gemma-f16",
        "gemma2-f16", "gemma3-f16", "gemma4-f16", "glm4-f16", "gpt2-f16",
        "granite-f16", "hunyuandense-f16", "ministral3-f16", "nemotron-f16",
        "olmo2-f16", "phi2-f16", "seedoss-f16", "smollm3-f16",
        "stablelm-f16", "starcoder2-f16",

        /* mixtures of experts */
        "deepseek2-f16", "deepseek2-lite-f16",
        "ernie45moe-f16", "gemma4moe-f16", "glm4moe-f16", "gptoss-f16",
        "granitemoe-f16", "hunyuanmoe-f16", "llama4-f16", "minimaxm2-f16",
        "mixtral-f16", "olmoe-f16", "qwen2moe-f16", "qwen3moe-f16",

        /* with recurrent layers */
        "falconh1-f16", "granitehybrid-f16", "lfm2-f16", "lfm2moe-f16",
        "mamba2-f16", "nemotronhmoe-f16", "qwen35-f16", "qwen35moe-f16",
        "qwen3next-f16"
    };

    (void) setenv("LLM_EMU_SEED", "7", 0);
    gpu = getenv("LLM_GPU_DEVICE");

    f = calloc(1, sizeof(fixture_t));
    f->dir = tap_fixtures();

    if (f->dir == NULL) {
        skip("no ../shared/fixtures");
        free(f);
        return done_testing();
    }

    for (i = 0; i < llm_nelems(names); i++) {
        f->name = names[i];

        if (gpu) {
            on_gpu(f, gpu);
            continue;
        }

        check(f, "reference", NULL, 0.00002);
        check(f, "cpu", "avx2", 0.0025);
        check(f, "cpu", "avx512", 0.0025);
        check(f, "cpu", "amx", 0.0025);
        check(f, "emu", NULL, 0.0025);
    }

    free(f);

    return done_testing();
}
