/*
 * The shapes of decode steps.  When sequences of one length have been computed,
 * as many as each bucket of rows has and at each doubling of the length, which
 * is what a warm-up does (engine/serve/warm.c), then all graphs are there:
 * steps of any number of sequences of any lengths are replayed.  The emulator
 * launches all and runs nothing.
 */

#include "t/unit/emu_dev.h"
#include "t/unit/ops.h"

#define SEQS    40
#define ROWS    64                      /* most of a step */
#define CTX     4096
#define PAGES   (CTX / LLM_KV_PAGE)     /* of a sequence; all have the same */
#define HEADS   2
#define DIM     64
#define MIXES   500

static llm_exec_t  *d;
static llm_kv_t    *kv;
static llm_act_t   *q, *out;

static uint32_t     lengths[SEQS];      /* positions after the step */
static uint32_t     zeros[SEQS * PAGES];


/* a row of each of n sequences; 1: it was replayed */

static int
step(uint32_t n)
{
    int          rc;
    uint32_t     i, pos[SEQS], rows[SEQS + 1];
    llm_err_t    err;
    llm_batch_t  b;
    llm_heads_t  h = { .n_heads = HEADS, .n_kv_heads = 1, .head_dim_k = DIM,
                       .head_dim_v = DIM, .scale = 1 };

    static const int32_t  tokens[SEQS];

    for (i = 0; i <= n; i++) {
        rows[i] = i;

        if (i < n) {
            pos[i] = lengths[i] - 1;
        }
    }

    memset(&b, 0, sizeof(b));
    b.n_tokens = n;
    b.n_seqs = n;
    b.n_out = n;
    b.max_pages = PAGES;
    b.tokens = tokens;
    b.pos = pos;
    b.seq_rows = rows;
    b.kv_len = lengths;
    b.pages[LLM_KV_FULL] = zeros;
    b.out_rows = rows;

    rc = d->ops->begin(d, &b, &err);

    if (rc == LLM_OK) {
        d->ops->attention(d, &h, q, kv, out);
    }

    if (rc == LLM_ERROR || d->ops->end(d, &err) != LLM_OK) {
        printf("Bail out! a step: %s\n", err.msg);
        exit(1);
    }

    return rc == LLM_REPLAYED;
}


/* n sequences of one length: launched, captured, replayed */

static void
test_same(uint32_t n)
{
    int       was, third;
    uint32_t  i, length, wrong;

    for (length = 64, wrong = 0; length <= CTX; length *= 2) {
        for (i = 0; i < n; i++) {
            lengths[i] = llm_min(length + 1, (uint32_t) CTX);
        }

        was = step(n);
        wrong += step(n) != was;
        third = step(n);
        wrong += !third;
    }

    is_int(wrong, 0, "%u sequences: launched, captured, then replayed", n);
}


static void
test_mixed(void)
{
    uint32_t  i, k, n, most, replayed;
    uint64_t  seed = 3;

    for (i = 0, replayed = 0; i < MIXES; i++) {
        n = 1 + (uint32_t) (ops_random(&seed) % SEQS);
        most = CTX >> ops_random(&seed) % 7;

        for (k = 0; k < n; k++) {
            lengths[k] = 1 + (uint32_t) (ops_random(&seed)
                                         % (k % 4 ? most : CTX / 8));
        }

        if (step(n)) {
            replayed++;
            continue;
        }

        printf("# %u sequences of up to %u positions are launched\n", n, most);
    }

    is_int(replayed, MIXES, "so are as many of any lengths, at first sight");
}


int
main(void)
{
    uint32_t          n;
    llm_err_t         err;
    llm_kv_opts_t     k = { .n_layers = 1, .n_pages = 8 * PAGES,
                            .n_kv_heads = 1, .head_dim_k = DIM,
                            .head_dim_v = DIM, .n_heads = HEADS };

    (void) setenv("LLM_EMU_DRY", "1", 1);
    d = open_emulator(ROWS, SEQS, PAGES, LLM_TYPE_F16);

    if (d == NULL) {
        skip("there is no llm_emu.so");
        return done_testing();
    }

    kv = d->ops->kv_create(d, &k, &err);
    q = d->ops->act_create(d, ROWS, HEADS * DIM, LLM_ACT_PRODUCT,
                           &err);
    out = d->ops->act_create(d, ROWS, HEADS * DIM, LLM_ACT_VALUE,
                             &err);

    for (n = 1; n < SEQS; n *= 2) {
        test_same(n);
    }

    test_same(SEQS);
    test_mixed();

    d->ops->act_free(d, q);
    d->ops->act_free(d, out);
    d->ops->kv_free(d, kv);
    d->ops->close(d);

    return done_testing();
}
