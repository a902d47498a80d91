/*
 * A model some of whose layers have a window, with a cache of pages for these:
 * the same bits as with one cache, in any steps, though the pages of what has
 * left the window are others' by then; and how memory is shared between the
 * two.
 */

#include "t/unit/tap.h"
#include "t/unit/gguf_edit.h"
#include "t/unit/model_run.h"

#include <sys/mman.h>
#include <unistd.h>

#define DEMO      "models/demo.gguf"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define N_IDS     120
#else
#define N_IDS     200
#endif

#define CTX       320
#define BATCH     16
#define WINDOW    40
#define PERIOD    3                     /* every third layer has no window */
#define N_LAYERS  6

/* bytes of a page of one layer on the CPU: K and V of two heads */
#define PAGE      ((size_t) 2 * 2 * 64 * LLM_KV_PAGE * sizeof(uint16_t))

/* what a sequence holds of windows: the window, two steps, and four */
#define RING      ((WINDOW + 2 * BATCH) / LLM_KV_PAGE + 4)

static char         path[64];
static int32_t      ids[2][N_IDS];
static edit_file_t  file;
static uint32_t     n_vocab;


static void
set_u32(const char *field, uint8_t v)
{
    uint8_t  i;

    for (i = 0; strcmp(edit_fields[i], field) != 0; i++) { /* void */ }

    edit_add_key(&file, i, v, 0);
}


/* the demo model with windows, as a file in memory */

static int
write_file(void)
{
    int          fd;
    llm_buf_t    b;
    llm_err_t    err;
    llm_gguf_t  *g;

    g = llm_gguf_open(DEMO, &err);
    if (g == NULL) {
        return -1;
    }

    edit_take(&file, g);
    set_u32("attention.sliding_window", WINDOW);
    set_u32("attention.sliding_window_pattern", PERIOD);
    edit_write(&file, &b);

    fd = memfd_create("model", 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

    if (fd >= 0 && write(fd, b.data, b.len) != (ssize_t) b.len) {
        fd = -1;
    }

    llm_buf_free(&b);
    edit_free(&file);
    llm_gguf_close(g);

    return fd;
}


static llm_model_t *
load(const char *device, const char *isa, uint32_t ctx, uint32_t batch,
    size_t kv_bytes, llm_err_t *err)
{
    llm_model_opts_t  o;

    memset(&o, 0, sizeof(o));
    o.device = device;
    o.isa = isa;
    o.backend_dir = getenv("LLM_OBJS") ? getenv("LLM_OBJS") : "objs";
    o.threads = 2;
    o.ctx = ctx;
    o.batch = batch;
    o.max_seqs = 2;
    o.kv_bytes = kv_bytes;

    return llm_model_load(path, &o, err);
}


/* both sequences in steps of these sizes, by turns, as far as n tokens */

static int
run_both(llm_model_t *m, run_seq_t *s, uint32_t first, uint32_t second)
{
    uint32_t   i, take[2];
    llm_err_t  err;

    s[0].done = 0;
    s[1].done = 0;

    for (i = 0; s[0].done < N_IDS; i++) {
        take[0] = llm_min(i % 4 == 3 ? 1 : first, N_IDS - s[0].done);
        take[1] = llm_min(second, N_IDS - s[1].done);

        if (run_step(m, s, take, 2, 1, &err) != LLM_OK) {
            printf("# %s\n", err.msg);
            return 0;
        }
    }

    return 1;
}


static void
check_bits(const char *device, const char *isa)
{
    int           slow;
    size_t        size;
    uint32_t      i;
    float        *want;
    run_seq_t     s[2];
    llm_err_t     err;
    llm_model_t  *m;

    static const struct {
        uint32_t  first;
        uint32_t  second;
    } steps[] = { { 15, 1 }, { 3, 13 }, { 1, 2 } };

    slow = strcmp(device, "emu") == 0;
    m = load(device, isa, CTX, CTX, 0, &err);

    if (m == NULL && run_lacks(&err)) {
        skip(err.msg);
        return;
    }

    if (!ok(m != NULL, "%s %s: loads", device, isa ? isa : "")) {
        printf("# %s\n", err.msg);
        return;
    }

    is_int(llm_model_n_pages(m, LLM_KV_WINDOW), 0,
           "%s %s: a step as long as ctx: one cache", device,
           isa ? isa : "");

    n_vocab = llm_model_hparams(m)->n_vocab;
    size = (size_t) N_IDS * n_vocab * sizeof(float);
    want = calloc(1, size);

    for (i = 0; i < 2; i++) {
        memset(&s[i], 0, sizeof(s[i]));
        s[i].ids = ids[i];
        s[i].n = N_IDS;
        s[i].page = i;
        s[i].logits = i ? calloc(1, size) : want;
    }

    ok(run_chunks(m, s, N_IDS, 1, &err) == LLM_OK, "a whole prompt");
    s[0].logits = calloc(1, size);
    llm_model_free(m);

    m = load(device, isa, CTX, BATCH, 0, &err);

    if (ok(m != NULL, "%s: two caches", device)) {
        is_int(llm_model_window(m), WINDOW, "its window");
        is_int(llm_model_n_pages(m, LLM_KV_FULL), 2 * CTX / LLM_KV_PAGE,
               "pages for all");
        is_int(llm_model_n_pages(m, LLM_KV_WINDOW),
               2 * RING + 2 * CTX / LLM_KV_PAGE / 8, "and for windows");

        for (i = 0; i < (slow ? 1 : llm_nelems(steps)); i++) {
            memset(s[0].logits, 0, size);
            ok(run_both(m, s, steps[i].first, steps[i].second)
               && memcmp(s[0].logits, want, size) == 0,
               "%s %s: the same bits in steps of %u, beside %u", device,
               isa ? isa : "", steps[i].first, steps[i].second);
        }
    }

    llm_model_free(m);
    free(s[0].logits);
    free(s[1].logits);
    free(want);
}


/* a page of windows is copied, and the sequence goes on with the copy */

static void
check_copy(void)
{
    float         *whole;
    uint32_t       i, pos[BATCH], rows[2] = { 0, BATCH }, kv_len, out, n;
    uint32_t       pages[CTX / LLM_KV_PAGE], windows[CTX / LLM_KV_PAGE];
    llm_err_t      err;
    llm_batch_t    b;
    llm_model_t   *m;

    m = load("cpu", NULL, CTX, BATCH, 0, &err);
    n = 6 * BATCH;
    whole = malloc(n_vocab * sizeof(float));
    out = BATCH - 1;

    memset(&b, 0, sizeof(b));
    b.n_tokens = BATCH;
    b.n_seqs = 1;
    b.n_out = 1;
    b.max_pages = CTX / LLM_KV_PAGE;
    b.pos = pos;
    b.seq_rows = rows;
    b.kv_len = &kv_len;
    b.pages[LLM_KV_FULL] = pages;
    b.pages[LLM_KV_WINDOW] = windows;
    b.out_rows = &out;

    for (i = 0; i < CTX / LLM_KV_PAGE; i++) {
        pages[i] = i;
        windows[i] = i % RING;
    }

    for (kv_len = BATCH; kv_len <= n; kv_len += BATCH) {
        for (i = 0; i < BATCH; i++) {
            pos[i] = kv_len - BATCH + i;
        }

        b.tokens = ids[0] + kv_len - BATCH;
        (void) llm_model_forward(m, &b, &err);
    }

    memcpy(whole, llm_model_logits(m, 0), n_vocab * sizeof(float));

    /* the last step once more, what it sees in another place */

    i = n / LLM_KV_PAGE - 2;
    llm_model_copy_page(m, LLM_KV_WINDOW, windows[i], RING + 1);
    llm_model_copy_page(m, LLM_KV_WINDOW, RING, windows[i]);
    windows[i] = RING + 1;
    kv_len = n;

    ok(llm_model_forward(m, &b, &err) == LLM_OK
       && memcmp(llm_model_logits(m, 0), whole, n_vocab * sizeof(float)) == 0,
       "a copied page of windows: the same bits");

    free(whole);
    llm_model_free(m);
}


/* how kv_cache= is shared; pages of the CPU, four layers of six with windows */

static void
check_sizes(void)
{
    size_t        bytes, one;
    uint32_t      n[2] = { 0, 0 }, pages;
    llm_err_t     err;
    llm_model_t  *m;

    const size_t  first = 2 * PAGE, windows = 4 * PAGE;

    pages = CTX / LLM_KV_PAGE;
    one = pages * first + RING * windows;

    m = load("cpu", NULL, CTX, BATCH, one, &err);
    ok(m && llm_model_n_pages(m, LLM_KV_FULL) == pages
       && llm_model_n_pages(m, LLM_KV_WINDOW) == RING,
       "memory for one sequence");
    llm_model_free(m);

    m = load("cpu", NULL, CTX, BATCH, one - 1, &err);
    ok(m == NULL && strstr(err.msg, "one sequence of ctx=320 takes 576 KiB, "
              "but only 575 KiB are available"),
       "a byte less: %s", err.msg);
    llm_model_free(m);

    m = load("cpu", NULL, 0, BATCH, one - 1, &err);
    ok(m && llm_model_ctx(m) == (pages - 1) * LLM_KV_PAGE,
       "without ctx= it gives way: %u", m ? llm_model_ctx(m) : 0);
    llm_model_free(m);

    m = load("cpu", NULL, 0, BATCH, 4 * (first + windows), &err);
    ok(m && llm_model_ctx(m) == 4 * LLM_KV_PAGE
       && llm_model_n_pages(m, LLM_KV_WINDOW) == 4,
       "down to less than a window");
    llm_model_free(m);

    for (bytes = 2 * one; bytes < 20 * one; bytes += one / 3) {
        m = load("cpu", NULL, CTX, BATCH, bytes, &err);

        if (m == NULL) {
            ok(0, "%zu bytes: %s", bytes, err.msg);
            break;
        }

        n[0] = llm_model_n_pages(m, LLM_KV_FULL);
        n[1] = llm_model_n_pages(m, LLM_KV_WINDOW);
        llm_model_free(m);

        if (n[0] * first + n[1] * windows > bytes
            || n[0] * first + n[1] * windows + first <= bytes
            || n[0] < pages * 9 / 5 || n[1] < 2 * RING || n[1] > n[0])
        {
            break;
        }
    }

    ok(bytes >= 20 * one, "%zu bytes: %u pages and %u of windows", bytes,
       n[0], n[1]);

    /* one cache of six layers would hold so many */

    ok(n[0] * (first + windows) > 2 * bytes, "twice the tokens: %u pages, not "
       "%zu", n[0], bytes / (first + windows));
}


int
main(void)
{
    int        fd;
    uint32_t   i;
    uint32_t   x = 12345;

    static const char  *const isas[] = {
        "reference", "avx2", "avx512", "amx", NULL
    };

    fd = write_file();

    if (fd < 0) {
        printf("Bail out! no file in memory\n");
        return 1;
    }

    for (i = 0; i < 2 * N_IDS; i++) {
        x = x * 1664525 + 1013904223;
        ids[i / N_IDS][i % N_IDS] = (int32_t) (300 + (x >> 8) % 1500);
    }

    for (i = 0; i < llm_nelems(isas); i++) {
        check_bits("cpu", isas[i]);
    }

    check_bits("emu", NULL);
    check_copy();
    check_sizes();
    close(fd);

    return done_testing();
}
