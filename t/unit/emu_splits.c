/*
 * Attention of a few rows after many positions by the CUDA backend in the
 * emulator: the same bits whether the rows come one by one, several at a time,
 * all at once or beside other sequences, that is with and without split
 * caches, or room for the results of splits, and on a GPU with wgmma; and
 * against the reference.
 * LLM_GPU_DEVICE=cuda: on a GPU instead (t/gpu/run.sh).
 */

#include "t/unit/emu_ops.h"

#define AFTER   1090                    /* positions before the rows */
#define ROWS    40
#define CHUNK   545                     /* positions of a step of AFTER */
#define BESIDE  23                      /* rows of the sequence beside */

/* sequences of a crowd, of which three have room for the results of their
   splits, and their rows */
#define CROWD   5
#define EACH    8

typedef struct {
    const char   *name;
    uint32_t      heads;
    uint32_t      kv_heads;
    uint32_t      dk;
    uint32_t      dv;
    int           fp8;
    int           sinks;
    int           slopes;
    llm_heads_t   h;                    /* what else there is in it */
} splits_case_t;

static const splits_case_t  cases[] = {
    { "heads of 128", 8, 2, 128, 128, .sinks = 0 },
    { "heads of 64 in fp8, with sinks", 6, 1, 64, 64, .fp8 = 1, .sinks = 1 },
    { "a window", 4, 1, 128, 128, .h = { .window = 300 } },
    { "heads of 96 and 80", 6, 2, 96, 80, .sinks = 1 },
    { "heads of 256", 3, 3, 256, 256, .h = { .softcap = 2 } },
    { "slopes", 2, 1, 128, 96, .slopes = 1 },
    { "wide heads", 2, 1, 320, 300, .sinks = 1 },
    { "latent heads", 20, 1, 96, 64, .h = { .latent = 1 } },
    { "many latent heads", 40, 1, 48, 32,
      .h = { .latent = 1, .window = 700 } }
};

/* a layer, and numbers for it */
typedef struct {
    const splits_case_t  *c;
    llm_exec_t           *d;
    llm_kv_t             *kv;
    llm_heads_t           h;
    llm_rope_t            rope;
    uint32_t              cols[4];      /* of q, k, v and the result */
    float                *data[3];
    llm_act_t            *act[4];
} splits_t;


/* what a step has of one sequence or of two: n rows from position pos on, and
   `beside` of one that begins; attention's results of the n rows go to out
   unless it is NULL */

static void
step(splits_t *t, uint32_t pos, uint32_t n, uint32_t beside, float *out)
{
    uint32_t       i;
    step_t        *s;
    const rows_t   rows[2] = { { pos, n, 0 }, { 0, beside, 1 } };

    s = ops_alloc(sizeof(step_t));
    step_fill(s, rows, beside ? 2 : 1, 1);
    s->b.pages[LLM_KV_WINDOW] = s->pages;

    for (i = 0; i < 3; i++) {
        t->d->ops->write(t->d, t->act[i], 0, n,
                         t->data[i] + (size_t) pos * t->cols[i]);

        if (beside) {
            t->d->ops->write(t->d, t->act[i], n, beside, t->data[i] + 5);
        }
    }

    if (t->d->ops->begin(t->d, &s->b, NULL) != LLM_REPLAYED) {
        t->d->ops->rope_kv(t->d, &t->h, &t->rope, t->act[0], t->act[1],
                           t->act[2], t->kv);

        if (out) {
            t->d->ops->attention(t->d, &t->h, t->act[0], t->kv, t->act[3]);
        }
    }

    if (t->d->ops->end(t->d, NULL) != LLM_OK) {
        ok(0, "%s: a step of %u rows ends", t->c->name, n);
    }

    if (out) {
        ops_read(t->d, t->act[3], out, n, t->cols[3]);
    }

    free(s);
}


/* the first rows after AFTER once more, in several sequences of the same pages,
   which have them already */

static void
crowd(splits_t *t, const float *want)
{
    int       same;
    float    *got;
    size_t    n;
    step_t   *s;
    uint32_t  i;

    static const rows_t  rows[CROWD] = {
        { AFTER, EACH, 0 }, { AFTER, EACH, 0 }, { AFTER, EACH, 0 },
        { AFTER, EACH, 0 }, { AFTER, EACH, 0 }
    };

    n = (size_t) EACH * t->cols[3];
    got = ops_alloc(CROWD * n * sizeof(float));
    s = ops_alloc(sizeof(step_t));
    step_fill(s, rows, CROWD, 1);
    s->b.pages[LLM_KV_WINDOW] = s->pages;

    for (i = 0; i < CROWD; i++) {
        t->d->ops->write(t->d, t->act[0], i * EACH, EACH,
                         t->data[0] + (size_t) AFTER * t->cols[0]);
    }

    (void) t->d->ops->begin(t->d, &s->b, NULL);
    t->d->ops->attention(t->d, &t->h, t->act[0], t->kv, t->act[3]);
    (void) t->d->ops->end(t->d, NULL);
    ops_read(t->d, t->act[3], got, CROWD * EACH, t->cols[3]);

    for (i = 0, same = 1; i < CROWD; i++) {
        same &= memcmp(got + i * n, want, n * sizeof(float)) == 0;
    }

    ok(same, "%s: the same bits without room for splits", t->c->name);

    free(got);
    free(s);
}


/* the last ROWS rows in steps of n; closes d */

static void
run(llm_exec_t *d, const splits_case_t *c, float *const data[3], uint32_t n,
    uint32_t beside, float *out)
{
    uint32_t        i, k;
    splits_t        t = { .c = c, .d = d, .h = c->h };
    llm_kv_layer_t  layer = { c->kv_heads, c->dk, c->dv, c->h.latent };
    llm_kv_opts_t   o = { .n_layers = 1, .n_pages = N_PAGES,
                          .n_kv_heads = c->kv_heads, .head_dim_k = c->dk,
                          .head_dim_v = c->dv, .n_heads = c->heads,
                          .layers = &layer };

    float           numbers[64];

    ops_fill(numbers, 64, 4);
    t.kv = d->ops->kv_create(d, &o, NULL);
    t.h.n_heads = c->heads;
    t.h.n_kv_heads = c->kv_heads;
    t.h.head_dim_k = c->dk;
    t.h.head_dim_v = c->dv;
    t.h.scale = 1.0f / sqrtf((float) c->dk);
    t.h.sinks = c->sinks ? d->ops->vec_create(d, numbers, c->heads, NULL)
                         : NULL;
    t.h.slopes = c->slopes ? d->ops->vec_create(d, numbers, c->heads, NULL)
                           : NULL;
    t.rope.mscale = 1;
    t.cols[0] = c->heads * c->dk;
    t.cols[1] = c->kv_heads * (c->dk - (c->h.latent ? c->dv : 0));
    t.cols[2] = c->kv_heads * c->dv;
    t.cols[3] = c->heads * c->dv;

    for (i = 0; i < 3; i++) {
        t.data[i] = data[i];
    }

    for (i = 0; i < 4; i++) {
        t.act[i] = act(d, i < 3 ? LLM_ACT_PRODUCT : LLM_ACT_VALUE, MAX_ROWS,
                       t.cols[i], NULL);
    }

    for (i = 0; i < AFTER; i += CHUNK) {
        step(&t, i, CHUNK, 0, NULL);
    }

    for (i = 0; i < ROWS; i += k) {
        k = llm_min(n, ROWS - i);
        step(&t, AFTER + i, k, beside, out + (size_t) i * t.cols[3]);
    }

    if (n == 4) {
        crowd(&t, out);
    }

    for (i = 0; i < 4; i++) {
        d->ops->act_free(d, t.act[i]);
    }

    d->ops->vec_free(d, (llm_vec_t *) t.h.sinks);
    d->ops->vec_free(d, (llm_vec_t *) t.h.slopes);
    d->ops->kv_free(d, t.kv);
    d->ops->close(d);
}


static void
test(const splits_case_t *c)
{
    float   *data[3], *ref, *want, *got;
    size_t   i, n;

    /* one row at a time is captured; 4 rows of a head are shared by warps;
       20 rows of 5 splits are the most that are split */

    static const uint32_t  steps[][2] = {
        { 1, 0 }, { 4, 0 }, { 7, BESIDE }, { 20, 0 }, { 21, BESIDE },
        { ROWS, BESIDE }
    };

    n = (size_t) (AFTER + ROWS) * c->heads * llm_max(c->dk, c->dv);

    for (i = 0; i < 3; i++) {
        data[i] = ops_alloc(n * sizeof(float));
        ops_fill(data[i], n, 30 + i);
    }

    n = (size_t) ROWS * c->heads * c->dv;
    ref = ops_alloc(n * sizeof(float));
    want = ops_alloc(n * sizeof(float));
    got = ops_alloc(n * sizeof(float));

    run(open_emu(LLM_TYPE_F16, 0, c->fp8), c, data, ROWS, 0, want);

    if (!c->fp8) {
        run(ops_open(&llm_ops_reference, NULL, 1), c, data, ROWS, 0, ref);
        compare(want, ref, n, 0.0015, c->name);
    }

    for (i = 0; i < llm_nelems(steps); i++) {
        memset(got, 0, n * sizeof(float));
        run(open_emu(LLM_TYPE_F16, 0, c->fp8), c, data, steps[i][0],
            steps[i][1], got);
        ok(memcmp(got, want, n * sizeof(float)) == 0,
           "%s: the same bits in steps of %u rows, %u beside", c->name,
           steps[i][0], steps[i][1]);
    }

    (void) setenv("LLM_EMU_CAPABILITY", "90", 1);

    for (i = 0; i < 2; i++) {
        memset(got, 0, n * sizeof(float));
        run(open_emu(LLM_TYPE_F16, 0, c->fp8), c, data, i ? 4 : ROWS, BESIDE,
            got);
        ok(memcmp(got, want, n * sizeof(float)) == 0,
           "%s: the same bits on Hopper", c->name);
    }

    (void) unsetenv("LLM_EMU_CAPABILITY");

    for (i = 0; i < 3; i++) {
        free(data[i]);
    }

    free(ref);
    free(want);
    free(got);
}


int
main(void)
{
    size_t       i;
    llm_exec_t  *d;

    (void) setenv("LLM_EMU_SEED", "23", 0);

    d = open_emu(LLM_TYPE_F16, 0, 1);

    if (d == NULL) {
        return done_without_device();
    }

    d->ops->close(d);

    for (i = 0; i < llm_nelems(cases); i++) {
        test(&cases[i]);
    }

    return done_testing();
}
