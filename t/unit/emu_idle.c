/*
 * How many blocks of a step's attention have nothing to do.  The step is what
 * a busy server computes: a chunk of a prompt and a row of each of many
 * sequences, in the shape of Qwen3-8B's layers.  The emulator counts the blocks
 * that are launched, which are those of the host's list of items (items.cu),
 * and runs none.
 */

#include "t/unit/emu_count.h"
#include "t/unit/emu_dev.h"

#define PROMPT    2048                  /* rows of the chunk */
#define SINGLES   511                   /* sequences of one row */
#define ROWS      (PROMPT + SINGLES)
#define SEQS      (1 + SINGLES)
#define HEADS     32
#define KV_HEADS  8
#define DIM       128
#define PAGES     256                   /* of a sequence; all have the same */
#define SPLIT     256                   /* positions of a block of a row */

#define MOST_IDLE  0.05

static int32_t   tokens[ROWS];
static uint32_t  pos[ROWS], seq_rows[SEQS + 1], kv_len[SEQS];
static uint32_t  pages[SEQS * PAGES];


/* a chunk that ends at position `end`, rows that see `seen` positions */

static void
fill(llm_batch_t *b, uint32_t end, uint32_t seen)
{
    uint32_t  i;

    for (i = 0; i < PROMPT; i++) {
        pos[i] = end - PROMPT + i;
    }

    kv_len[0] = end;
    seq_rows[0] = 0;

    for (i = 1; i <= SINGLES; i++) {
        seq_rows[i] = PROMPT + i - 1;
        pos[seq_rows[i]] = seen - 1;
        kv_len[i] = seen;
    }

    seq_rows[SEQS] = ROWS;

    for (i = 0; i < SEQS * PAGES; i++) {
        pages[i] = i % PAGES;
    }

    memset(b, 0, sizeof(*b));
    b->n_tokens = ROWS;
    b->n_seqs = SEQS;
    b->max_pages = PAGES;
    b->tokens = tokens;
    b->pos = pos;
    b->seq_rows = seq_rows;
    b->kv_len = kv_len;
    b->pages[LLM_KV_FULL] = pages;
}


/* attention's blocks so far, without those that merge splits */

static unsigned long
blocks_so_far(void)
{
    return emu_count("llm_k_attention") - emu_count("llm_k_attention_merge");
}


/* attention's blocks, and those that merge splits, of one layer of the step;
   0: the step fails */

static int
launched(uint32_t end, uint32_t seen, unsigned long *blocks,
    unsigned long *merges)
{
    int              rc;
    llm_act_t       *q, *out;
    llm_err_t        err;
    llm_exec_t      *d;
    llm_kv_t        *kv;
    llm_batch_t      b;

    llm_kv_opts_t    k = { .n_layers = 1, .n_pages = PAGES,
                           .n_kv_heads = KV_HEADS, .head_dim_k = DIM,
                           .head_dim_v = DIM, .n_heads = HEADS };
    llm_heads_t      h = { .n_heads = HEADS, .n_kv_heads = KV_HEADS,
                           .head_dim_k = DIM, .head_dim_v = DIM, .scale = 1 };

    d = open_emulator(ROWS, SEQS, PAGES, LLM_TYPE_BF16);

    if (d == NULL) {
        return 0;
    }

    kv = d->ops->kv_create(d, &k, &err);
    q = d->ops->act_create(d, ROWS, HEADS * DIM, LLM_ACT_PRODUCT, &err);
    out = d->ops->act_create(d, ROWS, HEADS * DIM, LLM_ACT_VALUE, &err);

    if (kv == NULL || q == NULL || out == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    *merges = emu_count("llm_k_attention_merge");
    *blocks = blocks_so_far();

    fill(&b, end, seen);
    rc = d->ops->begin(d, &b, &err);

    if (rc == LLM_OK) {
        d->ops->attention(d, &h, q, kv, out);
        rc = d->ops->end(d, &err);
    }

    *merges = emu_count("llm_k_attention_merge") - *merges;
    *blocks = blocks_so_far() - *blocks;

    if (rc != LLM_OK) {
        printf("# %s\n", err.msg);
    }

    d->ops->act_free(d, q);
    d->ops->act_free(d, out);
    d->ops->kv_free(d, kv);
    d->ops->close(d);

    return rc == LLM_OK;
}


/* `rows`: of a KV head in a block of the chunk */

static void
test(const char *name, uint32_t rows, uint32_t end, uint32_t seen)
{
    double         idle;
    uint32_t       splits;
    unsigned long  blocks, merges, busy;

    splits = (seen + SPLIT - 1) / SPLIT;
    busy = PROMPT * (HEADS / KV_HEADS) / rows + SINGLES * splits;
    busy *= KV_HEADS;

    if (!ok(launched(end, seen, &blocks, &merges), "%s: a step", name)) {
        return;
    }

    idle = 1 - (double) busy / (double) blocks;
    ok(blocks >= busy && idle <= MOST_IDLE, "%s, rows that see %u positions: "
       "%lu blocks, %.1f %% of them idle", name, seen, blocks, 100 * idle);
    is_int(merges, splits > 1 ? SINGLES * HEADS : 0,
           "%s: a block for each row and head to merge", name);
}


int
main(void)
{
    size_t    i;
    char      path[1024];
    FILE     *f;

    static const struct {
        const char  *capability;
        const char  *name;
        uint32_t     rows;
    } gpus[] = {
        { "89", "Ada", 64 },
        { "90", "Hopper", 128 }
    };

    snprintf(path, sizeof(path), "%s/llm_emu.so",
             getenv("LLM_OBJS") ? getenv("LLM_OBJS") : "objs");
    f = fopen(path, "r");

    if (f == NULL) {
        skip("there is no llm_emu.so");
        return done_testing();
    }

    fclose(f);
    (void) setenv("LLM_EMU_DRY", "1", 1);

    for (i = 0; i < llm_nelems(gpus); i++) {
        (void) setenv("LLM_EMU_CAPABILITY", gpus[i].capability, 1);

        /* 7 splits of each row are the most for which all find room */

        test(gpus[i].name, gpus[i].rows, PROMPT, 200);
        test(gpus[i].name, gpus[i].rows, PAGES * LLM_KV_PAGE, 7 * SPLIT - 5);
    }

    return done_testing();
}
