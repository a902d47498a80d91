/*
 * How many blocks of a step's attention have nothing to do.  The step is what
 * a busy server computes: a chunk of a prompt and a row of each of many
 * sequences, in the shape of the layers of Qwen3-8B, of DeepSeek-V2-Lite and of
 * DeepSeek-V3.  The emulator counts the blocks that are launched, which are
 * those of the host's list of items (items.cu), and runs none.
 */

#include "t/unit/emu_count.h"
#include "t/unit/emu_dev.h"

#define PROMPT    2048                  /* rows of the chunk */
#define SINGLES   511                   /* sequences of one row */
#define ROWS      (PROMPT + SINGLES)
#define SEQS      (1 + SINGLES)
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


typedef struct {
    const char      *name;
    uint32_t         heads;
    llm_kv_layer_t   kv;
    uint32_t         splits;            /* the most for which all single rows
                                           find room */
} shape_t;

static const shape_t  shapes[] = {
    { "Qwen3", 32, { 8, 128, 128, 0 }, 7 },
    { "DeepSeek Lite", 16, { 1, 576, 512, 1 }, 3 },
    { "DeepSeek", 128, { 1, 576, 512, 1 }, 1 }
};

/* blocks of a KV head, by GPU and shape */
static const struct {
    const char      *capability;
    const char      *name;
    struct {
        uint32_t     rows;              /* query rows of a block of the chunk */
        uint32_t     single;            /* blocks of a single row */
    }                of[llm_nelems(shapes)];
} gpus[] = {
    { "89", "Ada", { { 64, 1 }, { 16, 1 }, { 16, 8 } } },
    { "90", "Hopper", { { 128, 1 }, { 32, 1 }, { 32, 2 } } }
};


/* attention's blocks so far, without those that merge splits */

static unsigned long
blocks_so_far(void)
{
    return emu_count("llm_k_attention") - emu_count("llm_k_attention_merge")
           + emu_count("llm_k_latent");
}


/* attention's blocks, and those that merge splits, of one layer of the step;
   0: the step fails */

static int
launched(const shape_t *s, uint32_t end, uint32_t seen, unsigned long *blocks,
    unsigned long *merges)
{
    int              rc;
    llm_act_t       *q, *out;
    llm_err_t        err;
    llm_exec_t      *d;
    llm_kv_t        *kv;
    llm_batch_t      b;

    llm_kv_opts_t    k = { .n_layers = 1, .n_pages = PAGES,
                           .n_kv_heads = s->kv.n_kv_heads,
                           .head_dim_k = s->kv.head_dim_k,
                           .head_dim_v = s->kv.head_dim_v,
                           .n_heads = s->heads, .layers = &s->kv };
    llm_heads_t      h = { .n_heads = s->heads,
                           .n_kv_heads = s->kv.n_kv_heads,
                           .head_dim_k = s->kv.head_dim_k,
                           .head_dim_v = s->kv.head_dim_v,
                           .latent = s->kv.latent, .scale = 1 };

    d = open_emulator(ROWS, SEQS, PAGES, LLM_TYPE_BF16);

    if (d == NULL) {
        return 0;
    }

    kv = d->ops->kv_create(d, &k, &err);
    q = d->ops->act_create(d, ROWS, s->heads * s->kv.head_dim_k,
                           LLM_ACT_PRODUCT, &err);
    out = d->ops->act_create(d, ROWS, s->heads * s->kv.head_dim_v,
                             LLM_ACT_VALUE, &err);

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


static void
test(size_t gpu, size_t shape, uint32_t end, uint32_t seen)
{
    char            name[64];
    double          idle;
    uint32_t        splits;
    unsigned long   blocks, merges, busy;
    const shape_t  *s = &shapes[shape];

    snprintf(name, sizeof(name), "%s, %s", gpus[gpu].name, s->name);
    splits = (seen + SPLIT - 1) / SPLIT;
    busy = PROMPT * (s->heads / s->kv.n_kv_heads) / gpus[gpu].of[shape].rows
           + SINGLES * splits * gpus[gpu].of[shape].single;
    busy *= s->kv.n_kv_heads;

    if (!ok(launched(s, end, seen, &blocks, &merges), "%s: a step", name)) {
        return;
    }

    idle = 1 - (double) busy / (double) blocks;
    ok(blocks >= busy && idle <= MOST_IDLE, "%s, rows that see %u positions: "
       "%lu blocks, %.1f %% of them idle", name, seen, blocks, 100 * idle);
    is_int(merges, splits > 1 ? SINGLES * s->heads : 0,
           "%s: a block for each row and head to merge", name);
}


int
main(void)
{
    size_t    i, k;
    char      path[1024];
    FILE     *f;

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

        for (k = 0; k < llm_nelems(shapes); k++) {
            test(i, k, PROMPT, 200);

            if (shapes[k].splits > 1) {
                test(i, k, PAGES * LLM_KV_PAGE, shapes[k].splits * SPLIT - 5);
            }
        }
    }

    return done_testing();
}
