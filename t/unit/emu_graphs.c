/*
 * The shapes of decode steps.  When sequences of one length have been computed,
 * as many as each bucket of rows has and at each doubling of the length, which
 * is what a warm-up does (engine/serve/warm.c), then all graphs are there:
 * steps of any number of sequences of any lengths are replayed.  And a graph is
 * replayed only for steps that are launched with as many blocks.  The emulator
 * counts the blocks and runs nothing.
 */

#include "t/unit/emu_count.h"
#include "t/unit/emu_dev.h"
#include "t/unit/ops.h"

#define SEQS    40
#define FEW     8                       /* sequences of several rows each */
#define EACH    8                       /* most rows of one of them */
#define ROWS    64                      /* most of a step */
#define CTX     4096
#define PAGES   (CTX / LLM_KV_PAGE)     /* of a sequence; all have the same */
#define MIXES   500

typedef struct {
    const char      *name;
    uint32_t         heads;
    llm_kv_layer_t   kv;
    int              cross;             /* cross-attention follows */
} shape_t;

static const shape_t  shapes[] = {
    { "heads", 2, { 1, 64, 64, 0 }, 0 },
    { "latent heads", 16, { 1, 576, 512, 1 }, 0 },
    { "heads with cross-attention", 16, { 1, 64, 64, 0 }, 1 }
};

/* a device, and a layer of a shape on it */
typedef struct {
    const shape_t   *shape;
    llm_exec_t      *d;
    llm_kv_t        *kv;
    llm_kv_t        *cross;
    llm_act_t       *q;
    llm_act_t       *out;
} layer_t;

/* of a step's sequences */
static uint32_t  lengths[SEQS];         /* positions after the step */
static uint32_t  rows[SEQS];
static uint32_t  crossed[SEQS];         /* positions of cross-attention */

static uint32_t  zeros[SEQS * PAGES];


static void
must(int rc, llm_err_t *err)
{
    if (rc == LLM_ERROR) {
        printf("Bail out! a step: %s\n", err->msg);
        exit(1);
    }
}


static int
open_layer(layer_t *l, const shape_t *shape, uint32_t seqs)
{
    llm_err_t      err;
    llm_kv_opts_t  k = { .n_layers = 1, .n_pages = 8 * PAGES,
                         .n_kv_heads = shape->kv.n_kv_heads,
                         .head_dim_k = shape->kv.head_dim_k,
                         .head_dim_v = shape->kv.head_dim_v,
                         .n_heads = shape->heads, .layers = &shape->kv };

    memset(l, 0, sizeof(*l));
    l->shape = shape;
    l->d = open_emulator(ROWS, seqs, PAGES, LLM_TYPE_F16);

    if (l->d == NULL) {
        return 0;
    }

    l->kv = l->d->ops->kv_create(l->d, &k, &err);
    k.kind = LLM_KV_CROSS;
    l->cross = shape->cross ? l->d->ops->kv_create(l->d, &k, &err) : NULL;
    l->q = l->d->ops->act_create(l->d, ROWS, k.n_heads * k.head_dim_k,
                                 LLM_ACT_PRODUCT, &err);
    l->out = l->d->ops->act_create(l->d, ROWS, k.n_heads * k.head_dim_v,
                                   LLM_ACT_VALUE, &err);

    return 1;
}


static void
close_layer(layer_t *l)
{
    l->d->ops->act_free(l->d, l->q);
    l->d->ops->act_free(l->d, l->out);
    l->d->ops->kv_free(l->d, l->kv);
    l->d->ops->kv_free(l->d, l->cross);
    l->d->ops->close(l->d);
}


static void
compute(const layer_t *l)
{
    llm_heads_t  h = { .n_heads = l->shape->heads,
                       .n_kv_heads = l->shape->kv.n_kv_heads,
                       .head_dim_k = l->shape->kv.head_dim_k,
                       .head_dim_v = l->shape->kv.head_dim_v,
                       .latent = l->shape->kv.latent, .scale = 1 };

    l->d->ops->attention(l->d, &h, l->q, l->kv, l->out);

    if (l->cross) {
        h.both = 1;
        l->d->ops->attention(l->d, &h, l->q, l->cross, l->out);
    }

    l->d->ops->scale(l->d, LLM_ROWS_ALL, 2, l->out, 0, l->out);
}


/* a step of n sequences; 1: it was replayed */

static int
step(const layer_t *l, uint32_t n)
{
    int          rc;
    uint32_t     i, k, at, pos[ROWS], first[SEQS + 1], out[ROWS];
    llm_err_t    err;
    llm_batch_t  b;

    static const int32_t  tokens[ROWS];

    for (i = 0, at = 0; i < n; i++) {
        first[i] = at;

        for (k = 0; k < rows[i]; k++, at++) {
            pos[at] = lengths[i] - rows[i] + k;
            out[at] = at;
        }
    }

    first[n] = at;
    memset(&b, 0, sizeof(b));
    b.n_tokens = at;
    b.n_seqs = n;
    b.n_out = at;
    b.max_pages = PAGES;
    b.tokens = tokens;
    b.pos = pos;
    b.seq_rows = first;
    b.kv_len = lengths;
    b.pages[LLM_KV_FULL] = zeros;
    b.cross = l->cross ? zeros : NULL;
    b.cross_len = l->cross ? crossed : NULL;
    b.out_rows = out;

    rc = l->d->ops->begin(l->d, &b, &err);
    must(rc, &err);

    if (rc == LLM_OK) {
        compute(l);
    }

    if (l->d->ops->submit(l->d) == LLM_REDO) {
        compute(l);
    }

    must(l->d->ops->end(l->d, &err), &err);

    return rc == LLM_REPLAYED;
}


/* n sequences of one length: launched, captured, replayed */

static void
test_same(const layer_t *l, uint32_t n)
{
    int       was, third;
    uint32_t  i, length, wrong;

    for (length = 64, wrong = 0; length <= CTX; length *= 2) {
        for (i = 0; i < n; i++) {
            lengths[i] = llm_min(length + 1, (uint32_t) CTX);
            rows[i] = 1;
        }

        was = step(l, n);
        wrong += step(l, n) != was;
        third = step(l, n);
        wrong += !third;
    }

    is_int(wrong, 0, "%u sequences: launched, captured, then replayed", n);
}


static void
test_mixed(const layer_t *l)
{
    uint32_t  i, k, n, most, replayed;
    uint64_t  seed = 3;

    for (i = 0, replayed = 0; i < MIXES; i++) {
        n = 1 + (uint32_t) (ops_random(&seed) % SEQS);
        most = CTX >> ops_random(&seed) % 7;

        for (k = 0; k < n; k++) {
            rows[k] = 1;
            lengths[k] = 1 + (uint32_t) (ops_random(&seed)
                                         % (k % 4 ? most : CTX / 8));
        }

        if (step(l, n)) {
            replayed++;
            continue;
        }

        printf("# %u sequences of up to %u positions are launched\n", n, most);
    }

    is_int(replayed, MIXES, "so are as many of any lengths, at first sight");
}


static void
test_lengths(const shape_t *shape)
{
    uint32_t  n;
    layer_t   l;

    printf("# %s\n", shape->name);
    (void) open_layer(&l, shape, SEQS);

    for (n = 1; n < SEQS; n *= 2) {
        test_same(&l, n);
    }

    test_same(&l, SEQS);
    test_mixed(&l);
    close_layer(&l);
}


/* ---- blocks ---- */

/* a device that makes no graphs, because its first one failed */

static void
open_plain(layer_t *l, const shape_t *shape)
{
    uint32_t  i;

    (void) open_layer(l, shape, FEW);
    (void) setenv("LLM_EMU_FAIL_GRAPH", "1", 1);
    lengths[0] = crossed[0] = rows[0] = 1;

    for (i = 0; i < 2; i++) {
        (void) step(l, 1);
    }

    (void) unsetenv("LLM_EMU_FAIL_GRAPH");
}


/* sequences with drafts */

static uint32_t
random_step(uint64_t *seed)
{
    uint32_t  i, n, most, many;

    n = 1 + (uint32_t) (ops_random(seed) % FEW);
    most = CTX >> ops_random(seed) % 7;
    many = 1 + (uint32_t) (ops_random(seed) % EACH);

    for (i = 0; i < n; i++) {
        rows[i] = 1 + (uint32_t) (ops_random(seed) % many);
        lengths[i] = EACH + (uint32_t) (ops_random(seed) % (most - EACH));
        crossed[i] = 1 + (uint32_t) (ops_random(seed) % CTX);
    }

    return n;
}


static void
test_blocks(const shape_t *shape)
{
    uint32_t       i, n, replayed, wrong;
    uint64_t       seed = 5;
    layer_t        l, plain;
    unsigned long  set, was, before, launched;

    (void) open_layer(&l, shape, FEW);
    open_plain(&plain, shape);
    set = 0;

    for (i = 0, replayed = 0, wrong = 0; i < MIXES; i++) {
        n = random_step(&seed);
        before = emu_count("replayed");

        if (!step(&l, n)) {
            continue;
        }

        replayed++;
        before = emu_count("replayed") - before;
        launched = emu_count("llm_k_");
        was = emu_count("cudaFuncSetAttribute");

        if (step(&plain, n)) {
            printf("Bail out! this step had to be launched\n");
            exit(1);
        }

        launched = emu_count("llm_k_") - launched;
        set += emu_count("cudaFuncSetAttribute") - was;

        if (before != launched && wrong++ < 5) {
            printf("# %u sequences: %lu blocks instead of %lu\n", n, before,
                   launched);
        }
    }

    ok(replayed > MIXES / 2 && wrong == 0, "%s: %u of %u steps with drafts are "
       "replayed, %u with another number of blocks", shape->name, replayed,
       MIXES, wrong);
    is_int(set, 0, "no kernel's attribute is set again");

    close_layer(&l);
    close_layer(&plain);
}


int
main(void)
{
    size_t   i;
    layer_t  l;

    (void) setenv("LLM_EMU_DRY", "1", 1);

    if (!open_layer(&l, &shapes[0], SEQS)) {
        skip("there is no llm_emu.so");
        return done_testing();
    }

    close_layer(&l);

    for (i = 0; i < llm_nelems(crossed); i++) {
        crossed[i] = 1 + (uint32_t) i;
    }

    for (i = 0; i < llm_nelems(shapes); i++) {
        test_lengths(&shapes[i]);
        test_blocks(&shapes[i]);
    }

    return done_testing();
}
