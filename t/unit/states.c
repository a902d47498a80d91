/*
 * Final states and ranks of models made here, against an independent
 * implementation in float64 (states_expected.py), and the same bits whatever
 * the step: whole, in chunks, beside logits, beside another sequence.
 */

#include "t/unit/model_run.h"
#include "t/unit/tiny_model.h"
#include "t/unit/states_expected.h"


/*
 * Positions from ... of the sequence of ids, n of them, on its pages; beside:
 * another sequence of two tokens is in the step.  The rows' states go to out,
 * and their logits to `logits` if they are wanted.
 */

static int
step(llm_model_t *m, uint32_t from, uint32_t n, llm_gives_t gives, int beside,
    float *out, float *logits, llm_err_t *err)
{
    uint32_t     i, n_embd, n_vocab;
    int32_t      tokens[TINY_IDS + 2];
    uint32_t     pos[TINY_IDS + 2], rows[3], kv_len[2], pages[2];
    uint32_t     out_rows[TINY_IDS + 2];
    llm_batch_t  b;

    memset(&b, 0, sizeof(b));
    n_embd = llm_model_hparams(m)->n_embd;
    n_vocab = llm_model_hparams(m)->n_vocab;

    if (beside) {
        tokens[0] = 5;
        tokens[1] = 6;
        pos[0] = 0;
        pos[1] = 1;
        rows[b.n_seqs] = 0;
        kv_len[b.n_seqs] = 2;
        pages[b.n_seqs++] = 3;
        b.n_tokens = 2;
        out_rows[b.n_out++] = 1;
    }

    rows[b.n_seqs] = b.n_tokens;

    for (i = 0; i < n; i++) {
        tokens[b.n_tokens] = tiny_id(from + i);
        pos[b.n_tokens] = from + i;
        out_rows[b.n_out++] = b.n_tokens++;
    }

    kv_len[b.n_seqs] = from + n;
    pages[b.n_seqs++] = 1;
    rows[b.n_seqs] = b.n_tokens;

    b.gives = gives;
    b.max_pages = 1;
    b.tokens = tokens;
    b.pos = pos;
    b.seq_rows = rows;
    b.kv_len = kv_len;
    b.pages[LLM_KV_FULL] = pages;
    b.out_rows = out_rows;

    if (llm_model_forward(m, &b, err) != LLM_OK) {
        return 0;
    }

    for (i = 0; i < n; i++) {
        if (out) {
            memcpy(out + (size_t) i * n_embd,
                   llm_model_hidden(m, (beside != 0) + i),
                   n_embd * sizeof(float));
        }

        if (logits) {
            memcpy(logits + (size_t) i * n_vocab,
                   llm_model_logits(m, (beside != 0) + i),
                   n_vocab * sizeof(float));
        }
    }

    return 1;
}


static void
check_bits(llm_model_t *m, const float *whole, const char *name,
    const char *on)
{
    int        same;
    float      again[TINY_IDS * STATES_MAX];
    float      logits[2][TINY_IDS * TINY_VOCAB];
    size_t     n_embd, size;
    uint32_t   i;
    llm_err_t  err;

    n_embd = llm_model_hparams(m)->n_embd;
    size = TINY_IDS * n_embd * sizeof(float);

    same = 1;

    for (i = 0; i < TINY_IDS; i++) {
        same &= step(m, i, 1, LLM_GIVES_HIDDEN, i % 2, again + i * n_embd,
                     NULL, &err);
    }

    ok(same && memcmp(again, whole, size) == 0,
       "%s on %s: the same bits token by token, and beside another sequence",
       name, on);

    same = step(m, 0, 4, LLM_GIVES_LOGITS, 0, NULL, logits[0], &err)
           && step(m, 4, TINY_IDS - 4, LLM_GIVES_HIDDEN, 1,
                   again + 4 * n_embd, NULL, &err)
           && memcmp(again + 4 * n_embd, whole + 4 * n_embd,
                     size - 4 * n_embd * sizeof(float)) == 0;
    ok(same, "%s on %s: and behind a chunk that gave logits", name, on);

    memset(again, 0, sizeof(again));
    same = step(m, 0, TINY_IDS, LLM_GIVES_LOGITS, 0, NULL, logits[0], &err)
           && step(m, 0, TINY_IDS, LLM_GIVES_BOTH, 0, again, logits[1], &err)
           && memcmp(again, whole, size) == 0
           && memcmp(logits[0], logits[1], sizeof(logits[0])) == 0;
    ok(same, "%s on %s: beside logits, which are as without", name, on);
}


static void
check_rank(llm_model_t *m, const float *last, double want, double bound,
    int rank, const char *name, const char *on)
{
    double     d, got;
    llm_err_t  err;

    if (rank == 0) {
        err.msg[0] = '\0';
        ok(llm_model_can_rank(m, &err) != LLM_OK
           && strstr(err.msg, ".pooling_type") && err.status == 400,
           "%s on %s does not rank", name, on);
        return;
    }

    ok(llm_model_can_rank(m, &err) == LLM_OK, "%s on %s ranks", name, on);

    got = llm_model_rank(m, last, 0);
    d = fabs(got - want);
    ok(d <= bound, "%s on %s: the score is %.6f, off by %.7f (at most %g)",
       name, on, got, d, bound);
}


static void
check_model(const tiny_t *t, uint32_t which, const char *device,
    const char *isa, double bound)
{
    char               on[64];
    float              whole[TINY_IDS * STATES_MAX];
    float              want[TINY_IDS * STATES_MAX];
    double             d;
    uint32_t           i;
    llm_err_t          err;
    llm_model_t       *m;
    llm_model_opts_t   o;

    memset(&o, 0, sizeof(o));
    o.device = device;
    o.isa = isa;
    o.backend_dir = getenv("LLM_OBJS") ? getenv("LLM_OBJS") : "objs";
    o.threads = 2;
    o.max_seqs = 2;
    o.batch = 16;

    snprintf(on, sizeof(on), "%s%s%s", device, isa ? " " : "",
             isa ? isa : "");
    m = llm_model_load(path, &o, &err);

    if (m == NULL && run_lacks(&err)) {
        skip(err.msg);
        return;
    }

    if (!ok(m != NULL, "%s loads on %s", t->name, on)) {
        printf("# %s\n", err.msg);
        return;
    }

    for (i = 0; i < TINY_IDS; i++) {
        memcpy(want + i * t->embd, states_expected[which].states[i],
               t->embd * sizeof(float));
    }

    d = 1;

    if (step(m, 0, TINY_IDS, LLM_GIVES_HIDDEN, 0, whole, NULL, &err)) {
        d = run_distance(whole, want, TINY_IDS * t->embd);
    }

    ok(d <= bound, "%s on %s: states, %.7f of the deviation (at most %g)",
       t->name, on, d, bound);

    check_bits(m, whole, t->name, on);
    check_rank(m, whole + (TINY_IDS - 1) * t->embd,
               t->rank == 2 ? 1 - states_expected[which].score
                            : states_expected[which].score,
               bound, t->rank, t->name, on);

    llm_model_free(m);
}


/* as in t/unit/model.c */

static double
bound_of(uint32_t type)
{
    return llm_type_block(type) == 32 ? 0.025 : 0.003;
}


static void
check_models(void)
{
    uint32_t  i;
    tiny_t    t;

    for (i = 0; i < llm_nelems(states_expected); i++) {
        t = *tiny_named(states_expected[i].name);
        t.rank = (int) (i % 3);

        if (!ok(write_model(&t, NULL), "%s is written", t.name)) {
            continue;
        }

        check_model(&t, i, "reference", NULL, 0.00001);
        check_model(&t, i, "cpu", "avx2", bound_of(t.type));
        check_model(&t, i, "cpu", "avx512", bound_of(t.type));
        check_model(&t, i, "cpu", "amx", bound_of(t.type));
        check_model(&t, i, getenv("LLM_GPU_DEVICE") ? getenv("LLM_GPU_DEVICE")
                                                    : "emu",
                    NULL, bound_of(t.type));
    }
}


static void
refuses(const tiny_t *t, const tiny_change_t *change, const char *why)
{
    llm_err_t          err;
    llm_model_t       *m;
    llm_model_opts_t   o;

    memset(&o, 0, sizeof(o));
    o.device = "reference";
    o.max_seqs = 2;

    err.msg[0] = '\0';
    m = write_model(t, change) ? llm_model_load(path, &o, &err) : NULL;
    ok(m == NULL && strstr(err.msg, why), "refused: %s", err.msg);
    llm_model_free(m);
}


/* what a file may say, and what it then must have */

static void
check_files(void)
{
    tiny_t             t;
    llm_err_t          err;
    llm_model_t       *m;
    llm_model_opts_t   o;

    memset(&o, 0, sizeof(o));
    o.device = "reference";
    o.max_seqs = 2;

    t = *tiny_named("qwen3");
    refuses(&t, &(tiny_change_t) { .u32_key = "qwen3.pooling_type",
                                   .u32 = 9 },
            "qwen3.pooling_type: 9 is not supported");
    refuses(&t, &(tiny_change_t) { .str_key = "qwen3.pooling_type",
                                   .str = "last" },
            "qwen3.pooling_type");
    refuses(&t, &(tiny_change_t) { .extra = "cls.bias" }, "cls.bias");

    t.rank = 1;
    refuses(&t, &(tiny_change_t) { .reshape = "cls.output.weight" },
            "cls.output.weight: a head of 3 classes");

    ok(write_model(&t, &(tiny_change_t) { .drop = "cls.output.weight" }),
       "a ranker without its head");
    m = llm_model_load(path, &o, &err);
    ok(m && llm_model_can_rank(m, &err) != LLM_OK
       && strstr(err.msg, "cls.output.weight"), "it cannot rank: %s",
       err.msg);
    ok(m && llm_model_hparams(m)->pooling == LLM_POOLING_RANK,
       "though it is one");
    llm_model_free(m);

    t.rank = 0;
    ok(write_model(&t, &(tiny_change_t) { .u32_key = "qwen3.pooling_type",
                                          .u32 = LLM_POOLING_MEAN }),
       "a file with a pooling type");
    m = llm_model_load(path, &o, &err);
    ok(m && llm_model_hparams(m)->pooling == LLM_POOLING_MEAN, "is read");
    llm_model_free(m);
}


int
main(void)
{
    int  fd;

    (void) setenv("LLM_EMU_SEED", "5", 0);

    fd = mkstemp(path);
    if (fd == -1) {
        return 1;
    }

    close(fd);

    check_models();
    check_files();

    (void) unlink(path);

    return done_testing();
}
