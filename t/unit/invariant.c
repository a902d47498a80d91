/*
 * Batch invariance: the logits of each position of a sequence are the same
 * bits, whatever the steps it was computed in, whatever ran beside it, on
 * however many threads, and whoever computed the pages before it; with the KV
 * cache in 16 bits and in int8, and with quantised weights in bfloat16.
 */

#define RUN_MAX_SEQS  17
#define RUN_STRIDE    17

#include "engine/base/products.h"
#include "t/unit/tap.h"
#include "t/unit/model_run.h"
#include "t/unit/shallow.h"

#include <stdlib.h>

#define LAYERS   2
#define N_OTHER  16

/* sanitizers are slow */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define N_IDS    100
#define CTX      160
#else
#define N_IDS    200
#define CTX      320
#endif

/* of these the pages are taken that were computed among others */
#define N_WARM   (N_IDS / 2 / LLM_KV_PAGE * LLM_KV_PAGE)

static const char  *path;

static int32_t   ids[1 + N_OTHER][CTX];
static float    *want;                  /* [N_IDS][n_vocab], of one thread,
                                           the whole prompt in one step */
static uint32_t  n_vocab;
static int       kv_q8;
static const char  *products;           /* of products=; NULL: as usual */
static float    *rubbish;               /* where the others' logits go */


/* NULL: this machine has no such instructions, or it fails */

static llm_model_t *
open_model(const char *isa, uint32_t threads, uint32_t batch)
{
    llm_err_t          err;
    llm_model_t       *m;
    llm_model_opts_t   o;

    memset(&o, 0, sizeof(o));
    o.device = "cpu";
    o.isa = isa;
    o.kv_q8 = kv_q8;
    o.products = products;
    o.threads = threads;
    o.batch = batch;
    o.ctx = CTX;
    o.max_seqs = 1 + N_OTHER;

    m = llm_model_load(path, &o, &err);

    if (m == NULL && run_lacks(&err)) {
        skip(err.msg);

    } else if (!ok(m != NULL, "loads with %s", isa)) {
        printf("# %s\n", err.msg);
    }

    return m;
}


static int
same(const float *got, uint32_t from)
{
    return memcmp(got + (size_t) from * n_vocab,
                  want + (size_t) from * n_vocab,
                  (size_t) (N_IDS - from) * n_vocab * sizeof(float)) == 0;
}


/*
 * A token a step beside sixteen others, which are at other places: some read
 * prompts in chunks of several sizes, most generate.
 */

static int
run_beside(llm_model_t *m, run_seq_t *s)
{
    int        rc;
    uint32_t   i, k, room, take[1 + N_OTHER];
    llm_err_t  err;

    for (i = 1; i <= N_OTHER; i++) {
        s[i].done = 0;
    }

    s[0].done = 0;
    rc = LLM_OK;

    for (k = 0; rc == LLM_OK && s[0].done < s[0].n; k++) {
        room = llm_model_batch(m);

        for (i = 0; i <= N_OTHER; i++) {
            take[i] = 1;

            if (i && (s[i].done == 0 || i % 5 == 0)) {
                take[i] = 1 + (i * 7 + k) % 23;
            }

            if (s[i].done + take[i] > s[i].n) {
                s[i].done = 0;
            }

            take[i] = llm_min(take[i], room - (N_OTHER - i));
            room -= take[i];
        }

        rc = run_step(m, s, take, 1 + N_OTHER, 0, &err);
    }

    return rc;
}


static void
check_model(const char *isa, uint32_t threads, uint32_t batch)
{
    char          what[80];
    float        *got;
    uint32_t      i;
    run_seq_t     s[1 + N_OTHER];
    llm_err_t     err;
    llm_model_t  *m;

    static const uint32_t  chunks[] = { 1, 16, 33, N_IDS };

    m = open_model(isa, threads, batch);
    if (m == NULL) {
        return;
    }

    n_vocab = llm_model_hparams(m)->n_vocab;
    got = calloc((size_t) N_IDS * n_vocab, sizeof(float));

    if (rubbish == NULL) {
        rubbish = calloc((size_t) CTX * n_vocab, sizeof(float));
    }

    memset(s, 0, sizeof(s));

    for (i = 0; i <= N_OTHER; i++) {
        s[i].ids = ids[i];
        s[i].n = i ? CTX - i : N_IDS;
        s[i].page = i;
        s[i].logits = i ? rubbish : got;
    }

    snprintf(what, sizeof(what), "%s%s%s, %u threads, at most %u rows", isa,
             kv_q8 ? ", KV in int8" : "", products ? ", products in bf16" : "",
             threads, batch);

    if (want == NULL) {
        want = calloc((size_t) N_IDS * n_vocab, sizeof(float));
        s[0].logits = want;
        ok(run_chunks(m, &s[0], N_IDS, 1, &err) == LLM_OK, "%s: runs", what);
        s[0].logits = got;
    }

    for (i = 0; i < llm_nelems(chunks); i++) {
        if (chunks[i] > batch) {
            continue;
        }

        memset(got, 0, (size_t) N_IDS * n_vocab * sizeof(float));

        ok(run_chunks(m, &s[0], chunks[i], 1, &err) == LLM_OK && same(got, 0),
           "%s: the same bits in chunks of %u", what, chunks[i]);
    }

    memset(got, 0, (size_t) N_IDS * n_vocab * sizeof(float));

    ok(run_beside(m, s) == LLM_OK && same(got, 0),
       "%s: the same bits among sixteen others", what);

    /* the pages of its first half stay as they were computed there */

    memset(got, 0, (size_t) N_IDS * n_vocab * sizeof(float));
    s[0].done = N_WARM;

    while (s[0].done < N_IDS) {
        i = llm_min(batch, N_IDS - s[0].done);

        if (run_step(m, s, &i, 1, 1, &err) != LLM_OK) {
            break;
        }
    }

    ok(same(got, N_WARM), "%s: the same bits behind pages computed there",
       what);

    free(got);
    llm_model_free(m);
}


int
main(void)
{
    uint32_t  i, k, state;

    static const char *isas[] = { "avx2", "avx512", "amx" };

    path = shallow_model(LAYERS);
    state = 12345;

    for (i = 0; i <= N_OTHER; i++) {
        for (k = 0; k < CTX; k++) {
            state = state * 1664525 + 1013904223;
            ids[i][k] = (int32_t) (100 + (state >> 16) % 900);
        }
    }

    for (i = 0; i < llm_nelems(isas); i++) {
        check_model(isas[i], 1, 512);
        check_model(isas[i], 2, 512);
        check_model(isas[i], 2, 64);

        free(want);
        want = NULL;
        kv_q8 = 1;

        check_model(isas[i], 1, 512);
        check_model(isas[i], 2, 64);

        free(want);
        want = NULL;
        kv_q8 = 0;
    }

    products = LLM_PRODUCTS_BF16_ALL;

    check_model("amx", 1, 512);
    check_model("amx", 2, 64);

    free(want);
    free(rubbish);

    return done_testing();
}
