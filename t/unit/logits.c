/*
 * Logits on models of every architecture, RoPE and type, against what
 * Hugging Face transformers computes in float64 (the shared fixtures); and
 * the same bits for a whole prompt, in chunks, token by token and beside
 * other sequences.  The CUDA backend runs in the emulator, its threads and
 * blocks in random order (LLM_EMU_SEED), fresh and shared memory NaN.  There,
 * and with the reference operations, which are slow, the whole prompt and one
 * in chunks, whose last tokens come one by one; the rest only with the first
 * tokens.  LLM_GPU_DEVICE=cuda: on a GPU instead, all of all (t/gpu/run.sh).
 *
 * Two files also with weights and KV in fp8.  A number of four digits is off
 * by 2^-4 / sqrt(3) = 0.036 at most in the mean of squares, and so is a
 * product of them; what the products of the layers add up to, as squares, is
 * at most 0.1, and 0.0625 for KV alone, of which a layer has two.  The same
 * files with KV in int8, as exact as products with int8 are.  Files of quantised
 * weights also with products=bf16-all, as exact as BF16.
 */

#include "engine/base/products.h"
#include "t/unit/tap.h"
#include "t/unit/model_run.h"

#include <dirent.h>
#include <ctype.h>

#define MAX_IDS  4096

/* of a slow device: more than a page, alone and beside others, and the last few,
   which see the longest cache that the file has */
#define FIRST_TOKENS  (LLM_KV_PAGE + 2)
#define MIXED_TOKENS  (LLM_KV_PAGE + 8)
#define LAST_TOKENS   4


typedef struct {
    char       name[256];
    int32_t    ids[MAX_IDS];
    uint32_t   n_ids;
    float     *want;                    /* [n_ids][n_vocab] */
    size_t     n_want;
} fixture_t;


/* the most that the fixtures allow for a type; 0.006 for BF16, whose products
   and attention round to 16 bits */

static double
bound_of(const char *name)
{
    size_t  i;

    static const struct {
        const char  *suffix;
        double       bound;
    } bounds[] = {
        { "f32", 0.0015 }, { "f16", 0.0015 }, { "bf16", 0.006 },
        { "q8_0", 0.0125 }, { "q4_0", 0.0125 }, { "q4_1", 0.0125 },
        { "q5_0", 0.0125 }, { "q5_1", 0.0125 }, { "q4_k_s", 0.018 },
        { "q4_k_m", 0.018 }, { "q5_k_s", 0.018 }, { "q5_k_m", 0.018 },
        { "q6_k", 0.018 }, { "q2_k", 0.018 }, { "q3_k", 0.018 },
        { "iq1_s", 0.018 }, { "iq1_m", 0.018 }, { "iq2_xxs", 0.018 },
        { "iq2_xs", 0.018 }, { "iq2_s", 0.018 }, { "iq3_xxs", 0.018 },
        { "iq3_s", 0.018 }, { "iq4_nl", 0.0125 }, { "iq4_xs", 0.018 },
        { "tq1_0", 0.018 }, { "tq2_0", 0.018 }, { "mxfp4", 0.0125 },
        { "nvfp4", 0.0125 }
    };

    for (i = 0; i < llm_nelems(bounds); i++) {
        if (strlen(name) > strlen(bounds[i].suffix)
            && strcmp(strrchr(name, '-') + 1, bounds[i].suffix) == 0)
        {
            return bounds[i].bound;
        }
    }

    return 0;
}


static int
wants_fp8(const char *name)
{
    return strcmp(name, "qwen3-norm-f16") == 0
           || strcmp(name, "qwen2-bias-bf16") == 0;
}


static int
load_fixture(const char *dir, fixture_t *f)
{
    FILE   *in;
    char    path[2048];
    long    size;

    snprintf(path, sizeof(path), "%s/%s.ids", dir, f->name);

    in = fopen(path, "r");
    if (in == NULL) {
        return 0;
    }

    f->n_ids = 0;

    while (f->n_ids < MAX_IDS && fscanf(in, "%d", &f->ids[f->n_ids]) == 1) {
        f->n_ids++;
    }

    fclose(in);

    snprintf(path, sizeof(path), "%s/%s.logits", dir, f->name);

    in = fopen(path, "rb");
    if (in == NULL) {
        return 0;
    }

    fseek(in, 0, SEEK_END);
    size = ftell(in);
    rewind(in);

    f->n_want = (size_t) size / sizeof(float);
    f->want = malloc((size_t) size);

    if (fread(f->want, sizeof(float), f->n_want, in) != f->n_want) {
        f->n_want = 0;
    }

    fclose(in);

    return f->n_ids > 0 && f->n_want > 0;
}


/* the first n positions with other sequences in the same steps, of other
   lengths and pages */

static void
check_mixed(llm_model_t *m, const fixture_t *f, uint32_t n,
    const float *alone, const char *what)
{
    int         same;
    uint32_t    i, k, n_vocab, take[3];
    run_seq_t   s[3];
    llm_err_t   err;

    n_vocab = llm_model_hparams(m)->n_vocab;
    memset(s, 0, sizeof(s));

    for (i = 0; i < 3; i++) {
        s[i].ids = f->ids + i;
        s[i].n = n - i;
        s[i].page = i;
        s[i].logits = calloc((size_t) f->n_ids * n_vocab, sizeof(float));
    }

    /* the first token of 1 and 2 differs from f's: only 0 is compared */

    for (k = 0, same = 1; same && s[0].done < s[0].n; k++) {
        take[0] = llm_min(k % 3 == 1 ? 5 : 1, s[0].n - s[0].done);
        take[1] = k % 2 ? 0 : llm_min(3, s[1].n - s[1].done);
        take[2] = k % 4 == 3 ? llm_min(17, s[2].n - s[2].done)
                             : llm_min(1, s[2].n - s[2].done);

        same = run_step(m, s, take, 3, k % 2, &err) == LLM_OK;

        if (same && k % 2 == 0) {
            same = memcmp(s[0].logits + (size_t) (s[0].done - 1) * n_vocab,
                          alone + (size_t) (s[0].done - 1) * n_vocab,
                          n_vocab * sizeof(float)) == 0;
        }
    }

    ok(same, "%s %s: the same bits beside two other sequences", f->name,
       what);

    for (i = 0; i < 3; i++) {
        free(s[i].logits);
    }
}


/* the first n tokens in chunks of so many, the last of them one by one */

static void
check_chunks(llm_model_t *m, const fixture_t *f, uint32_t n, uint32_t chunk,
    uint32_t last, const float *whole, const char *what)
{
    int         same;
    size_t      at;
    float      *again;
    uint32_t    take, n_vocab;
    run_seq_t   s;
    llm_err_t   err;

    n_vocab = llm_model_hparams(m)->n_vocab;
    again = calloc((size_t) n * n_vocab, sizeof(float));

    memset(&s, 0, sizeof(s));
    s.ids = f->ids;
    s.n = n;
    s.page = 5;
    s.logits = again;

    err.msg[0] = '\0';

    for (same = 1; same && s.done < n; /* void */) {
        at = (size_t) s.done * n_vocab;
        take = s.done + last < n ? llm_min(chunk, n - last - s.done) : 1;
        same = run_step(m, &s, &take, 1, 1, &err) == LLM_OK
               && memcmp(again + at, whole + at,
                         take * n_vocab * sizeof(float)) == 0;
    }

    ok(same, "%s %s: the same bits for %u tokens in chunks of %u, the last %u "
       "one by one, up to %u", f->name, what, n, chunk, last, s.done);

    if (err.msg[0]) {
        printf("# %s\n", err.msg);
    }

    free(again);
}


/* the last of the first n tokens alone gives logits */

static void
check_last(llm_model_t *m, const fixture_t *f, uint32_t n, const float *whole,
    const char *what)
{
    size_t      at;
    float      *again;
    uint32_t    n_vocab;
    run_seq_t   s;
    llm_err_t   err;

    n_vocab = llm_model_hparams(m)->n_vocab;
    at = (size_t) (n - 1) * n_vocab;
    again = calloc((size_t) n * n_vocab, sizeof(float));

    memset(&s, 0, sizeof(s));
    s.ids = f->ids;
    s.n = n;
    s.page = 5;
    s.logits = again;

    ok(run_chunks(m, &s, n, 0, &err) == LLM_OK
       && memcmp(whole + at, again + at, n_vocab * sizeof(float)) == 0,
       "%s %s: the same bits for position %u alone", f->name, what, n - 1);

    free(again);
}


static void
check_model(llm_model_t *m, const fixture_t *f, double bound, int slow,
    const char *what)
{
    float      *whole;
    size_t      n;
    double      d;
    uint32_t    n_vocab, few;
    run_seq_t   s;
    llm_err_t   err;

    n_vocab = llm_model_hparams(m)->n_vocab;
    n = (size_t) f->n_ids * n_vocab;

    if (!ok(n == f->n_want, "%s: %u ids of %u logits", f->name, f->n_ids,
            n_vocab))
    {
        return;
    }

    whole = calloc(n, sizeof(float));

    memset(&s, 0, sizeof(s));
    s.ids = f->ids;
    s.n = f->n_ids;
    s.logits = whole;

    if (!ok(run_chunks(m, &s, f->n_ids, 1, &err) == LLM_OK,
            "%s %s: runs", f->name, what))
    {
        printf("# %s\n", err.msg);
    }

    d = run_distance(whole, f->want, n);
    ok(d <= bound, "%s %s: %.6f of the deviation (at most %g)", f->name,
       what, d, bound);

    few = slow ? llm_min(f->n_ids, FIRST_TOKENS) : f->n_ids;
    check_chunks(m, f, f->n_ids, slow ? 40 : 7, LAST_TOKENS, whole, what);
    check_chunks(m, f, few, 1, 0, whole, what);

    few = slow ? llm_min(f->n_ids, MIXED_TOKENS) : f->n_ids;
    check_last(m, f, few, whole, what);
    check_mixed(m, f, few, whole, what);

    free(whole);
}


static const char *
backend_dir(void)
{
    const char  *objs;

    objs = getenv("LLM_OBJS");

    return objs ? objs : "objs";
}


static void
check_fixture(const char *dir, fixture_t *f)
{
    char               path[2048], what[64];
    int                slow;
    size_t             i;
    llm_err_t          err;
    llm_model_t       *m;
    llm_model_opts_t   o;

    static const struct {
        const char  *device;
        const char  *isa;
        double       bound;             /* 0: the type's */
        int          weights_fp8;
        int          kv_fp8;
        int          kv_q8;
        const char  *products;          /* for quantised weights alone */
    } devices[] = {
        { "reference", NULL, 0.00001, 0, 0, 0, NULL },
        { "cpu", "avx2", 0, 0, 0, 0, NULL },
        { "cpu", "avx512", 0, 0, 0, 0, NULL },
        { "cpu", "amx", 0, 0, 0, 0, NULL },
        { "cpu", "amx", 0.006, 0, 0, 0, LLM_PRODUCTS_BF16_ALL },
        { "cpu", "avx2", 0.0125, 0, 0, 1, NULL },
        { "cpu", "avx512", 0.0125, 0, 0, 1, NULL },
        { "emu", NULL, 0, 0, 0, 0, NULL },
        { "emu", NULL, 0.0625, 0, 1, 0, NULL },
        { "emu", NULL, 0.1, 1, 1, 0, NULL }
    };

    if (!ok(load_fixture(dir, f), "%s: ids and logits", f->name)) {
        return;
    }

    snprintf(path, sizeof(path), "%s/%s.gguf", dir, f->name);

    for (i = 0; i < llm_nelems(devices); i++) {

        if ((devices[i].weights_fp8 || devices[i].kv_fp8 || devices[i].kv_q8)
            && !wants_fp8(f->name))
        {
            continue;
        }

        if (getenv("LLM_GPU_DEVICE") && strcmp(devices[i].device, "emu") != 0) {
            continue;
        }

        if (devices[i].products && bound_of(f->name) <= devices[i].bound) {
            continue;
        }

        memset(&o, 0, sizeof(o));
        o.device = devices[i].device;
        o.weights_fp8 = devices[i].weights_fp8;
        o.kv_fp8 = devices[i].kv_fp8;
        o.kv_q8 = devices[i].kv_q8;
        o.products = devices[i].products;

        if (strcmp(o.device, "emu") == 0 && getenv("LLM_GPU_DEVICE")) {
            o.device = getenv("LLM_GPU_DEVICE");
        }

        slow = strcmp(o.device, "emu") == 0
               || strcmp(o.device, "reference") == 0;
        o.isa = devices[i].isa;
        o.backend_dir = backend_dir();
        o.threads = 2;
        o.ctx = 512;
        o.max_seqs = 4;

        snprintf(what, sizeof(what), "%s%s%s%s%s%s%s%s", o.device,
                 o.isa ? " " : "", o.isa ? o.isa : "",
                 o.weights_fp8 ? ", fp8 weights" : "",
                 o.kv_fp8 ? ", fp8 KV" : "", o.kv_q8 ? ", q8_0 KV" : "",
                 o.products ? ", products=" : "",
                 o.products ? o.products : "");

        m = llm_model_load(path, &o, &err);

        if (m == NULL && run_lacks(&err)) {
            skip(err.msg);
            continue;
        }

        if (!ok(m != NULL, "%s %s: loads", f->name, what)) {
            printf("# %s\n", err.msg);
            continue;
        }

        check_model(m, f, devices[i].bound ? devices[i].bound
                                           : bound_of(f->name),
                    slow, what);
        llm_model_free(m);
    }

    free(f->want);
    f->want = NULL;
}


/*
 * A prompt's end that several choices wait for comes several times among the
 * results: more results than the step has rows, all the same.
 */

static void
check_results(const char *device, const char *isa)
{
    enum { TOKENS = 3, RESULTS = 9 };

    int                same;
    float             *alone;
    size_t             size;
    uint32_t           i, kv_len, page;
    uint32_t           out[RESULTS], seq_rows[2] = { 0, TOKENS };
    llm_err_t          err;
    llm_batch_t        b;
    llm_model_t       *m;
    llm_model_opts_t   o;

    static const int32_t   tokens[TOKENS] = { 60, 61, 62 };
    static const uint32_t  pos[TOKENS] = { 0, 1, 2 };

    memset(&o, 0, sizeof(o));
    o.device = device;
    o.isa = isa;
    o.backend_dir = backend_dir();
    o.threads = 2;
    o.ctx = 64;
    o.max_seqs = RESULTS;

    m = llm_model_load("models/demo.gguf", &o, &err);

    if (m == NULL && run_lacks(&err)) {
        skip(err.msg);
        return;
    }

    if (!ok(m != NULL, "%s %s: the demo model loads", device,
            isa ? isa : ""))
    {
        printf("# %s\n", err.msg);
        return;
    }

    memset(&b, 0, sizeof(b));
    kv_len = TOKENS;
    page = 0;
    b.n_tokens = TOKENS;
    b.n_seqs = 1;
    b.n_out = 1;
    b.max_pages = 1;
    b.tokens = tokens;
    b.pos = pos;
    b.seq_rows = seq_rows;
    b.kv_len = &kv_len;
    b.pages[LLM_KV_FULL] = &page;
    b.out_rows = out;

    for (i = 0; i < RESULTS; i++) {
        out[i] = TOKENS - 1;
    }

    size = llm_model_hparams(m)->n_vocab * sizeof(float);
    alone = calloc(1, size);
    same = llm_model_forward(m, &b, &err) == LLM_OK;

    if (same) {
        memcpy(alone, llm_model_logits(m, 0), size);
    }

    b.n_out = RESULTS;
    same = same && llm_model_forward(m, &b, &err) == LLM_OK;

    for (i = 0; same && i < RESULTS; i++) {
        same = memcmp(alone, llm_model_logits(m, i), size) == 0;
    }

    ok(same, "%s%s%s: %d results of %d rows are the same", device,
       isa ? " " : "", isa ? isa : "", RESULTS, TOKENS);

    /* the last row once more, behind a copy of those in front of it */

    llm_model_copy_page(m, LLM_KV_FULL, 0, 2);
    page = 2;
    b.n_tokens = seq_rows[1] = 1;
    b.n_out = 1;
    b.tokens = tokens + TOKENS - 1;
    b.pos = pos + TOKENS - 1;
    out[0] = 0;
    same = llm_model_forward(m, &b, &err) == LLM_OK
           && memcmp(alone, llm_model_logits(m, 0), size) == 0;
    ok(same, "%s%s%s: and from a copy of the page", device,
       isa ? " " : "", isa ? isa : "");

    llm_model_free(m);
    free(alone);
}


static int
is_gguf(const struct dirent *e)
{
    size_t  n;

    n = strlen(e->d_name);

    return n > 5 && n < 250 && strcmp(e->d_name + n - 5, ".gguf") == 0;
}


/* the fixtures of a folder whose names begin so; LLM_LOGITS: with that in
   their names only */

static void
check_folder(const char *folder, const char *prefix)
{
    int              i, n;
    char             dir[1100];
    fixture_t       *f;
    const char      *only;
    struct dirent  **list;

    snprintf(dir, sizeof(dir), "%s/%s", tap_fixtures(), folder);

    only = getenv("LLM_LOGITS");
    n = scandir(dir, &list, is_gguf, alphasort);
    f = calloc(1, sizeof(fixture_t));

    if (n <= 0 || f == NULL) {
        skip("these fixtures are not here");
    }

    for (i = 0; f && i < n; i++) {
        snprintf(f->name, sizeof(f->name), "%.*s",
                 (int) strlen(list[i]->d_name) - 5, list[i]->d_name);

        if (strncmp(f->name, prefix, strlen(prefix)) == 0
            && (only == NULL || strstr(f->name, only)))
        {
            check_fixture(dir, f);
        }

        free(list[i]);
    }

    if (n >= 0) {
        free(list);
    }

    free(f);
}


int
main(void)
{
    (void) setenv("LLM_EMU_SEED", "5", 0);

    check_results("reference", NULL);
    check_results("cpu", "avx2");
    check_results("cpu", "avx512");
    check_results("cpu", "amx");
    check_results(getenv("LLM_GPU_DEVICE") ? getenv("LLM_GPU_DEVICE")
                                           : "emu", NULL);

    if (tap_fixtures() == NULL) {
        skip("the shared fixtures are not here");
        return done_testing();
    }

    check_folder("logits", "");
    check_folder("models", "type-");

    return done_testing();
}
