/*
 * Comparing a model on one emulated device with the same on several: shared by
 * several.c and rows_split.c.
 */

#ifndef LLM_T_SEVERAL_H
#define LLM_T_SEVERAL_H

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
static int        split_rows;           /* models on several devices are split
                                           by rows */
static int        fp8;                  /* weights and KV cache are in fp8 */
static char       last_log[1024];


static inline void
keep_log(void *data, int level, const char *msg)
{
    (void) data;
    (void) level;

    if (strstr(msg, ": layers ")) {
        snprintf(last_log + strlen(last_log),
                 sizeof(last_log) - strlen(last_log), "%s\n", msg);
    }
}


static inline llm_model_t *
load(const char *path, const char *device, size_t kv_bytes, llm_err_t *err)
{
    const char        *objs;
    llm_model_opts_t   o;

    objs = getenv("LLM_OBJS");
    last_log[0] = '\0';
    memset(&o, 0, sizeof(o));
    o.device = device;
    o.split_rows = split_rows && strchr(device, ',');
    o.weights_fp8 = fp8;
    o.kv_fp8 = fp8;
    o.backend_dir = objs ? objs : "objs";
    o.ctx = CTX;
    o.batch = BATCH;
    o.max_seqs = 2;
    o.kv_bytes = kv_bytes;
    o.log = keep_log;

    return llm_model_load(path, &o, err);
}


static inline llm_model_t *
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

static inline float *
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

static inline int
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

static inline int
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


/* each device as slow as may be, or as fast: `all` of the four ways, or the next
   one of them */

static inline void
check_late(llm_model_t *m, const float *want, int all)
{
    size_t           i;
    static uint32_t  turn;

    static const char  *const eager[] = { "0", "1", "0,1", "1,0" };

    turn++;

    for (i = 0; i < llm_nelems(eager); i++) {
        if (!all && i != turn % llm_nelems(eager)) {
            continue;
        }

        (void) setenv("LLM_EMU_EAGER", eager[i], 1);
        ok(in_flight(m, want), "%s: two steps in flight, %s", f.name,
           eager[i]);
    }

    (void) unsetenv("LLM_EMU_EAGER");
}


/* all: every way to divide the tokens; else what the kinds of layers may differ
   in */

static inline void
check_one(const char *path, const char *devices, int all)
{
    float        *want, *got;
    size_t        i, size;
    uint32_t      chunks[3];
    llm_model_t  *one, *some;

    /* steps of one token are captured and replayed; between layers these are
       the graphs of one device */

    chunks[0] = BATCH;
    chunks[1] = all && split_rows ? 1 : 0;
    chunks[2] = all || !split_rows ? 5 : 0;

    one = must_load(path, "emu");
    some = must_load(path, devices);
    want = one ? in_chunks(one, BATCH) : NULL;

    if (want && some) {
        size = (size_t) f.n_ids * llm_model_hparams(one)->n_vocab
               * sizeof(float);

        for (i = 0; i < llm_nelems(chunks); i++) {
            if (chunks[i] == 0) {
                continue;
            }

            got = in_chunks(some, chunks[i]);
            ok(got && memcmp(got, want, size) == 0, "%s on %s: the same bits "
               "in chunks of %u", f.name, devices, chunks[i]);
            free(got);
        }

        ok(beside_and_copied(some, want),
           "%s: and beside another sequence, from copies", f.name);

        if (llm_model_n_pages(some, LLM_KV_WINDOW) == 0) {
            check_late(some, want, all);
        }

        is_int(split_rows ? some->n_members : some->n_parts, 2, "%s",
               last_log);
    }

    free(want);
    llm_model_free(one);
    llm_model_free(some);
}


/* ---- encoders ---- */

static inline float *
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


/* the first tokens of the demo model */

static inline int
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


/* allocations fail in the middle of a load, each time `step` later, until one
   of the first `most` is not reached any more */

static inline void
check_allocations(uint32_t most, uint32_t step)
{
    char          value[32];
    uint32_t      i, loads, wrong;
    llm_err_t     err;
    llm_model_t  *m;

    for (i = 1, loads = 0, wrong = 0; i < most && loads == 0; i += step) {
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

#endif /* LLM_T_SEVERAL_H */
