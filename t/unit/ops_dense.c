/*
 * The operations that dense decoders have beside the plain ones, on every
 * instruction set, against the reference: kinds of norms, activations,
 * scales, embeddings of positions; attention with windows, capped scores,
 * sinks, tempered queries, layers of different sizes.  The reference itself
 * is compared with transformers by t/unit/archs.c.
 */

#include "t/unit/ops_rows.h"

#define HEADS     6
#define KV_HEADS  2
#define DK        40
#define DV        24
#define SPLIT     1024                  /* keys that the CPU takes at once */

enum { Q_COLS = HEADS * DK, K_COLS = KV_HEADS * DK, V_COLS = KV_HEADS * DV,
       OUT_COLS = HEADS * DV };


/* ---- rows ---- */

static void
test_rows(const char *isa)
{
    int          same;
    float       *x, *y, *w, *want, *got, *again;
    size_t       i, n;
    double       far;
    llm_exec_t  *ref, *exec;

    n = ROWS * COLS;
    x = ops_alloc(n * sizeof(float));
    y = ops_alloc(n * sizeof(float));
    w = ops_alloc(n * sizeof(float));
    want = ops_alloc(n * sizeof(float));
    got = ops_alloc(n * sizeof(float));
    again = ops_alloc(n * sizeof(float));

    rows_fill(x, y, w);

    ref = ops_open(&llm_ops_reference, NULL, 1);
    exec = ops_open(&llm_ops_cpu, isa, 2);

    for (i = 0; i < llm_nelems(row_cases); i++) {
        run_rows(ref, &row_cases[i], x, y, w, ROWS, want);
        run_rows(exec, &row_cases[i], x, y, w, ROWS, got);
        far = ops_distance(got, want, n);
        ok(far < 1e-6, "%s: %s: %.2g", isa, row_cases[i].name, far);

        run_rows(exec, &row_cases[i], x, y, w, 1, again);
        same = memcmp(got, again, n * sizeof(float)) == 0;
        run_rows(exec, &row_cases[i], x, y, w, 5, again);
        same &= memcmp(got, again, n * sizeof(float)) == 0;
        ok(same, "%s: %s: the same bits row by row", isa, row_cases[i].name);
    }

    ref->ops->close(ref);
    exec->ops->close(exec);
    free(x);
    free(y);
    free(w);
    free(want);
    free(got);
    free(again);
}


/* ---- attention ---- */

typedef struct {
    const char   *name;
    uint32_t      n;                    /* positions */
    llm_heads_t   h;
    int           norms;
    int           sinks;
    int           no_rope;
    uint32_t      rise;                 /* scores rise after so many keys, by
                                           1.2; 0: they do not */
    uint32_t      pages;                /* of the cache; 0: OPS_MAX_PAGES */
} attn_case_t;

static const attn_case_t  attn_cases[] = {
    { .name = "a window", .n = 150, .h = { .window = 24 } },
    { .name = "a window of one key", .n = 70, .h = { .window = 1 } },
    { .name = "a window beyond a split", .n = SPLIT + 250,
      .h = { .window = 100 } },
    { .name = "a window of more than a split", .n = SPLIT * 2 + 60,
      .h = { .window = SPLIT + 30 } },
    { .name = "chunks", .n = 200, .h = { .window = 70, .chunks = 1 } },
    { .name = "capped scores", .n = 100, .h = { .softcap = 1.5f } },
    { .name = "sinks", .n = 100, .sinks = 1 },
    { .name = "tempered queries", .n = 100,
      .h = { .temp_scale = 0.1f, .temp_floor = 16, .temp_offset = 1 } },
    { .name = "no RoPE", .n = 60, .no_rope = 1 },
    { .name = "a large cache", .n = 250, .pages = 4000 },
    { .name = "scores that rise slowly", .n = 800, .rise = 64 },
    { .name = "scores that rise", .n = 800, .rise = 6 },
    { .name = "norms after RoPE", .n = 60, .norms = 1,
      .h = { .norm_last = 1, .norm_eps = 1e-6f } },
    { .name = "all of it", .n = 300, .norms = 1, .sinks = 1,
      .h = { .window = 90, .softcap = 3, .norm_eps = 1e-6f,
             .temp_scale = 0.2f, .temp_floor = 50 } }
};

typedef struct {
    llm_exec_t        *exec;
    const attn_case_t *c;
    llm_heads_t        h;
    llm_rope_t         rope;
    llm_act_t         *q;
    llm_act_t         *k;
    llm_act_t         *v;
    llm_act_t         *out;
    llm_kv_t          *kv;
    llm_vec_t         *vecs[4];
    uint32_t           pages[OPS_MAX_PAGES];
} attn_t;


/* n rows of data from position pos, on the case's pages */

static void
attn_step(attn_t *a, const float *data, uint32_t pos, uint32_t n, float *out)
{
    const float       *k, *v;
    llm_batch_t        b;
    const llm_ops_t   *o = a->exec->ops;

    k = data + (size_t) a->c->n * Q_COLS;
    v = k + (size_t) a->c->n * K_COLS;

    o->write(a->exec, a->q, 0, n, data + (size_t) pos * Q_COLS);
    o->write(a->exec, a->k, 0, n, k + (size_t) pos * K_COLS);
    o->write(a->exec, a->v, 0, n, v + (size_t) pos * V_COLS);

    ops_seq_batch(&b, pos, n, a->pages);
    o->begin(a->exec, &b, NULL);
    o->rope_kv(a->exec, &a->h, &a->rope, a->q, a->k, a->v, a->kv);
    o->attention(a->exec, &a->h, a->q, a->kv, a->out);
    o->end(a->exec, NULL);
    ops_read(a->exec, a->out, out + (size_t) pos * OUT_COLS, n, OUT_COLS);
}


static void
attn_open(attn_t *a, llm_exec_t *exec, const attn_case_t *c, const float *w)
{
    uint32_t           i;
    const llm_ops_t   *o = exec->ops;

    static const llm_kv_layer_t  layers[] = {
        { 1, 64, 8, 0 }, { KV_HEADS, DK, DV, 0 }, { 0, 0, 0, 0 }
    };

    llm_kv_opts_t  kv = { .n_layers = 3,
                          .n_pages = c->pages ? c->pages : OPS_MAX_PAGES,
                          .n_kv_heads = 2, .head_dim_k = 64,
                          .head_dim_v = DV, .n_heads = HEADS,
                          .layers = layers };

    memset(a, 0, sizeof(attn_t));
    a->exec = exec;
    a->c = c;
    a->kv = o->kv_create(exec, &kv, NULL);
    a->q = ops_act(exec, NULL, OPS_MAX_ROWS, Q_COLS);
    a->k = ops_act(exec, NULL, OPS_MAX_ROWS, K_COLS);
    a->v = ops_act(exec, NULL, OPS_MAX_ROWS, V_COLS);
    a->out = ops_act(exec, NULL, OPS_MAX_ROWS, OUT_COLS);

    for (i = 0; i < 4; i++) {
        a->vecs[i] = o->vec_create(exec, w + i * DK,
                                   i == 3 ? DK / 4 : i == 2 ? HEADS : DK,
                                   NULL);
    }

    a->h.layer = 1;
    a->h.n_heads = HEADS;
    a->h.n_kv_heads = KV_HEADS;
    a->h.head_dim_k = DK;
    a->h.head_dim_v = DV;
    a->h.scale = 0.3f;
    a->rope.kind = LLM_ROPE_NEOX;
    a->rope.mscale = 1;
}


/* closes the device, too */

static void
attn_close(attn_t *a)
{
    uint32_t          i;
    const llm_ops_t  *o = a->exec->ops;

    for (i = 0; i < 4; i++) {
        o->vec_free(a->exec, a->vecs[i]);
    }

    o->act_free(a->exec, a->q);
    o->act_free(a->exec, a->k);
    o->act_free(a->exec, a->v);
    o->act_free(a->exec, a->out);
    o->kv_free(a->exec, a->kv);
    o->close(a->exec);
}


/* `step` rows at a time; pages behind the window become page 0, whose keys
   and values are NaN; closes exec */

static void
run_attention(llm_exec_t *exec, const attn_case_t *c, const float *data,
    const float *w, uint32_t step, float *out)
{
    float        *nan;
    attn_t        a;
    uint32_t      i, n, first;
    attn_case_t   broken = { .n = LLM_KV_PAGE };

    attn_open(&a, exec, c, w);

    /* page 0 */
    nan = ops_alloc((size_t) LLM_KV_PAGE * (Q_COLS + K_COLS + V_COLS)
                    * sizeof(float));

    for (i = 0; i < LLM_KV_PAGE * (Q_COLS + K_COLS + V_COLS); i++) {
        nan[i] = NAN;
    }

    a.c = &broken;
    attn_step(&a, nan, 0, LLM_KV_PAGE, out);
    a.c = c;

    n = c->pages ? c->pages : OPS_MAX_PAGES;

    for (i = 0; i < OPS_MAX_PAGES; i++) {
        a.pages[i] = 1 + i * (n / 30) % (n - 1);
    }

    a.h.norm_last = c->h.norm_last;
    a.h.norm_eps = c->h.norm_eps;
    a.h.window = c->h.window;
    a.h.chunks = c->h.chunks;
    a.h.softcap = c->h.softcap;
    a.h.temp_scale = c->h.temp_scale;
    a.h.temp_floor = c->h.temp_floor;
    a.h.temp_offset = c->h.temp_offset;
    a.h.q_norm = c->norms ? a.vecs[0] : NULL;
    a.h.k_norm = c->norms ? a.vecs[1] : NULL;
    a.h.sinks = c->sinks ? a.vecs[2] : NULL;
    a.rope.n_dims = c->no_rope ? 0 : DK / 2;
    a.rope.inv_freq = c->no_rope ? NULL : a.vecs[3];

    for (i = 0; i < c->n; i += n) {
        n = llm_min(llm_min(step, c->n - i), OPS_MAX_ROWS);
        first = llm_heads_first(&a.h, i) / LLM_KV_PAGE;

        if (first) {
            a.pages[first - 1] = 0;
        }

        attn_step(&a, data, i, n, out);
    }

    attn_close(&a);
    free(nan);
}


/* on one instruction set, for weights of one type */

static void
test_attention_for(const attn_case_t *c, const char *isa,
    const ops_attention_t *t, const float *data, const float *w,
    const float *want)
{
    int          same;
    float       *got, *again;
    size_t       k, n;
    double       far;
    llm_exec_t  *exec;

    static const uint32_t  steps[] = { 1, 7, 90 };

    exec = ops_open_for(&llm_ops_cpu, isa, 2, t->type, t->kv);

    if (exec == NULL) {
        skip(isa);
        return;
    }

    n = (size_t) c->n * OUT_COLS;
    got = ops_alloc((n + LLM_KV_PAGE * OUT_COLS) * sizeof(float));
    again = ops_alloc((n + LLM_KV_PAGE * OUT_COLS) * sizeof(float));

    run_attention(exec, c, data, w, OPS_MAX_ROWS, got);
    far = ops_distance(got, want, n);
    ok(far < t->bound, "%s, %s: attention with %s: %.2g", isa,
       t->name, c->name, far);

    for (k = 0, same = 1; k < llm_nelems(steps); k++) {
        exec = ops_open_for(&llm_ops_cpu, isa, 1 + k % 2 * 2,
                            t->type, t->kv);
        run_attention(exec, c, data, w, steps[k], again);
        same &= memcmp(got, again, n * sizeof(float)) == 0;
    }

    ok(same, "%s, %s: attention with %s: the same bits in steps of 1, 7 and "
       "90", isa, t->name, c->name);

    free(got);
    free(again);
}


/* the last row sees the same in copies of all pages, the last one partial, and
   int8 takes half of the memory */

static void
test_copies(const char *isa, const ops_attention_t *t)
{
    enum { N = 5 * LLM_KV_PAGE + 7, PAGES = N / LLM_KV_PAGE + 1 };

    float        *data, *out, want[OUT_COLS];
    attn_t        a;
    size_t        n;
    uint32_t      i;
    llm_exec_t   *exec;
    attn_case_t   c = { .n = N };

    llm_kv_opts_t  o = { .n_layers = 1, .n_kv_heads = 8, .head_dim_k = 128,
                         .head_dim_v = 128, .n_heads = 8 };

    exec = ops_open_for(&llm_ops_cpu, isa, 2, t->type, t->kv);

    if (exec == NULL) {
        skip(isa);
        return;
    }

    n = exec->ops->kv_page_size(exec, &o);
    ok(n * 100 <= (size_t) LLM_KV_PAGE * 8 * 256
                  * (t->kv == 1 ? 106 : t->kv == 2 ? 400 : 200),
       "%s, %s: a page has %zu bytes", isa, t->name, n);

    data = ops_alloc((size_t) N * (Q_COLS + K_COLS + V_COLS) * sizeof(float));
    out = ops_alloc((size_t) N * OUT_COLS * sizeof(float));
    ops_fill(data, (size_t) N * (Q_COLS + K_COLS + V_COLS), 8);

    attn_open(&a, exec, &c, data);

    for (i = 0; i < PAGES; i++) {
        a.pages[i] = 3 + i;
    }

    attn_step(&a, data, 0, N, out);
    memcpy(want, out + (size_t) (N - 1) * OUT_COLS, sizeof(want));

    for (i = 0; i < PAGES; i++) {
        exec->ops->kv_copy(exec, a.kv, 3 + i, 200 - i);
        a.pages[i] = 200 - i;
    }

    attn_step(&a, data, N - 1, 1, out);
    ok(memcmp(want, out + (size_t) (N - 1) * OUT_COLS, sizeof(want)) == 0,
       "%s, %s: the same bits in copies of pages", isa, t->name);

    attn_close(&a);
    free(data);
    free(out);
}


/* an element that is not rotated is 1 in all queries, and rises in the keys */

static void
attn_rise(const attn_case_t *c, float *data)
{
    float     *q, *k;
    uint32_t   i, j;

    q = data;
    k = data + (size_t) c->n * Q_COLS;

    for (i = 0; i < c->n; i++) {
        for (j = 1; j <= HEADS; j++) {
            q[i * Q_COLS + j * DK - 1] = 1;
        }

        for (j = 1; j <= KV_HEADS; j++) {
            k[i * K_COLS + j * DK - 1] = (float) (i / c->rise * 4);
        }
    }
}


static void
test_attention(const attn_case_t *c)
{
    float   *data, *w, *want;
    size_t   i, k, n;

    n = (size_t) c->n * OUT_COLS;
    data = ops_alloc((size_t) c->n * (Q_COLS + K_COLS + V_COLS)
                     * sizeof(float));
    w = ops_alloc(4 * DK * sizeof(float));
    want = ops_alloc((n + LLM_KV_PAGE * OUT_COLS) * sizeof(float));

    ops_fill(data, (size_t) c->n * (Q_COLS + K_COLS + V_COLS), c->n);
    ops_fill(w, 4 * DK, 5);

    if (c->rise) {
        attn_rise(c, data);
    }

    for (i = 3 * DK; i < 4 * DK; i++) {
        w[i] = fabsf(w[i]) / 10;
    }

    run_attention(ops_open(&llm_ops_reference, NULL, 2), c, data, w,
                  OPS_MAX_ROWS, want);

    for (i = 0; i < llm_nelems(ops_isas); i++) {
        for (k = 0; k < llm_nelems(ops_attention); k++) {

            /* in int8 such an element leaves nothing of the others */
            if (c->rise && ops_attention[k].kv == 1) {
                continue;
            }

            test_attention_for(c, ops_isas[i], &ops_attention[k], data, w,
                               want);
        }
    }

    free(data);
    free(w);
    free(want);
}


int
main(void)
{
    size_t       i, k;
    llm_exec_t  *exec;

    for (i = 0; i < llm_nelems(ops_isas); i++) {
        exec = ops_open(&llm_ops_cpu, ops_isas[i], 1);

        if (exec == NULL) {
            skip(ops_isas[i]);
            continue;
        }

        exec->ops->close(exec);
        test_rows(ops_isas[i]);

        for (k = 0; k < llm_nelems(ops_attention); k++) {
            test_copies(ops_isas[i], &ops_attention[k]);
        }
    }

    for (i = 0; i < llm_nelems(attn_cases); i++) {
        test_attention(&attn_cases[i]);
    }

    return done_testing();
}
