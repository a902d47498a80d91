/*
 * Every kernel of the CUDA backend, run by the emulator, against the
 * reference operations: one table of operations and shapes, all types, few
 * rows and many, mixed steps.  The order of threads and blocks is drawn at
 * random (LLM_EMU_SEED), fresh memory is NaN.  LLM_GPU_DEVICE=cuda: on a GPU
 * instead (t/gpu/run.sh).
 *
 * Bounds: values are f16 (2^-11) or bf16 (2^-8) between operations, and
 * quantised weights are f16 when they are multiplied.  A row of a product
 * has the same bits among few and among many, through cublasLt's stand-in
 * and where that refuses.
 */

#include "t/unit/emu_ops.h"

static llm_exec_t  *devs[2];            /* the reference, the emulator */


/* ---- products ---- */

static const uint32_t  types[] = {
#define LLM_TYPE(NAME, name, number, block, bytes)  LLM_TYPE_##NAME,
#include "kernels/types.def"
};

/* outputs, blocks, columns where a block is one element, rows */
static const struct {
    uint32_t      n_out;
    uint32_t      blocks;
    uint32_t      columns;
    uint32_t      rows;
} shapes[] = {
    { 1, 1, 8, 1 },
    { 16, 2, 33, 2 },
    { 40, 3, 100, 8 },
    { 33, 5, 127, 9 },
    { 100, 2, 96, 17 },
    { 50, 9, 290, 64 },
    { 49, 2, 65, 70 }
};


static void
test_products(void)
{
    int         add;
    char        what[128];
    float      *x, *y[2], *bias;
    size_t      i, k, n;
    double      bound;
    uint8_t    *m;
    uint32_t    n_in, block;

    for (i = 0; i < llm_nelems(types); i++) {
        for (k = 0; k < llm_nelems(shapes); k++) {
            block = (uint32_t) llm_type_block(types[i]);
            n_in = block == 1 ? shapes[k].columns : block * shapes[k].blocks;
            n = (size_t) shapes[k].rows * shapes[k].n_out;
            add = k % 2;
            product_factor = k % 3 ? 0 : 1.7f;

            m = matrix(types[i], shapes[k].n_out, n_in, 79 * i + k);
            x = ops_alloc((size_t) shapes[k].rows * n_in * sizeof(float));
            bias = ops_alloc(shapes[k].n_out * sizeof(float));
            ops_fill(x, (size_t) shapes[k].rows * n_in, i + 3 * k);
            ops_fill(bias, shapes[k].n_out, k);

            for (int d = 0; d < 2; d++) {
                y[d] = ops_alloc(n * sizeof(float));
                ops_fill(y[d], n, 5 * k);
                product(devs[d], types[i], m, shapes[k].n_out, n_in,
                        LLM_WEIGHT_LINEAR, shapes[k].rows, x,
                        k % 3 ? bias : NULL, add, y[d]);
            }

            /* the errors of a single sum have no others to average with */
            bound = n == 1 ? 0.006 : 0.0015;

            snprintf(what, sizeof(what), "%s [%u, %u] by %u rows%s",
                     llm_type_name(types[i]), shapes[k].n_out, n_in,
                     shapes[k].rows, add ? ", added" : "");
            compare(y[1], y[0], n, bound, what);

            free(m);
            free(x);
            free(bias);
            free(y[0]);
            free(y[1]);
        }
    }

    product_factor = 0;
}


/* scales far from 1 that differ from row to row, of one row and of many */

static void
test_scales(void)
{
    char       what[64];
    float     *x, *y[2];
    size_t     i, k;
    uint8_t   *m;
    uint32_t   r, b;

    static const int       powers[] = { -60, -24, 24, 60 };
    static const uint32_t  rows[] = { 1, 20 };

    enum { N_OUT = 40, N_IN = 256, BLOCKS = N_IN / 32 };

    x = ops_alloc((size_t) 20 * N_IN * sizeof(float));
    y[0] = ops_alloc((size_t) 20 * N_OUT * sizeof(float));
    y[1] = ops_alloc((size_t) 20 * N_OUT * sizeof(float));
    ops_fill(x, (size_t) 20 * N_IN, 3);
    m = matrix(LLM_TYPE_MXFP4, N_OUT, N_IN, 5);

    for (i = 0; i < 2 * llm_nelems(powers); i++) {

        /* the first byte of a block is its exponent */

        for (r = 0; r < N_OUT; r++) {
            for (b = 0; b < BLOCKS; b++) {
                m[(r * BLOCKS + b) * 17] = (uint8_t) (127 + powers[i / 2]
                                                      + (int) (r % 3 + b % 4));
            }
        }

        for (k = 0; k < 2; k++) {
            product(devs[k], LLM_TYPE_MXFP4, m, N_OUT, N_IN,
                    LLM_WEIGHT_LINEAR, rows[i % 2], x, NULL, 0, y[k]);
        }

        snprintf(what, sizeof(what), "scales near 2^%d, %u rows",
                 powers[i / 2], rows[i % 2]);
        compare(y[1], y[0], (size_t) rows[i % 2] * N_OUT, 0.0015, what);
    }

    free(m);
    free(x);
    free(y[0]);
    free(y[1]);
}


/* one row of 1, 8, 9, 64 and more, with and without cublasLt */

static void
test_same_bits(float factor)
{
    int             same;
    float          *x, *bias, *y, *first;
    size_t          i, k;
    uint8_t        *m;
    uint32_t        n_in, block;

    static const uint32_t     rows[] = { 1, 8, 9, 32, 64, 65, 150 };
    static const char *const  blas[] = { "1", "0" };

    /* LONG: the rings of linear_few.cu are filled more than once */

    enum { N_OUT = 150, MOST = 150, LONG = 2661 };

    x = ops_alloc((size_t) MOST * LONG * sizeof(float));
    bias = ops_alloc(N_OUT * sizeof(float));
    y = ops_alloc((size_t) MOST * N_OUT * sizeof(float));
    first = ops_alloc(N_OUT * sizeof(float));
    ops_fill(x, (size_t) MOST * LONG, 3);
    ops_fill(bias, N_OUT, 4);
    product_factor = factor;

    for (i = 0; i < llm_nelems(types); i++) {

        /* a factor is the same for all of them: F16 and some others do */

        if (factor != 0 && i % 4 != 1) {
            continue;
        }

        block = (uint32_t) llm_type_block(types[i]);
        n_in = block == 1 ? LONG : 352 % block == 0 ? 352 : 768;
        m = matrix(types[i], N_OUT, n_in, i);
        same = 1;

        for (k = 0; k < 2 * llm_nelems(rows); k++) {
            (void) setenv("LLM_EMU_BLAS", blas[k % 2], 1);
            ops_fill(y, (size_t) MOST * N_OUT, 5);
            product(devs[1], types[i], m, N_OUT, n_in, LLM_WEIGHT_LINEAR,
                    rows[k / 2], x, bias, 1, y);

            if (k == 0) {
                memcpy(first, y, N_OUT * sizeof(float));
            }

            if (memcmp(first, y, N_OUT * sizeof(float)) != 0) {
                printf("# %u rows, cublasLt %s\n", rows[k / 2], blas[k % 2]);
                same = 0;
            }
        }

        ok(same, "%s: the same bits for any number of rows%s",
           llm_type_name(types[i]), factor != 0 ? ", with a factor" : "");
        free(m);
    }

    product_factor = 0;
    (void) unsetenv("LLM_EMU_BLAS");
    free(x);
    free(bias);
    free(y);
    free(first);
}


/* so many outputs that a block of linear_few.cu has several warps' of them */

static void
test_many_outputs(void)
{
    float    *x, *y, *alone;
    size_t    i, n;
    uint8_t  *m;

    static const struct {
        uint32_t  n_out;
        uint32_t  rows;
    } cases[] = { { 8460, 2 }, { 8460, 9 }, { 4230, 17 }, { 4230, 33 } };

    enum { N_IN = 540 };

    x = ops_alloc((size_t) 33 * N_IN * sizeof(float));
    ops_fill(x, (size_t) 33 * N_IN, 6);

    for (i = 0; i < llm_nelems(cases); i++) {
        n = cases[i].n_out;
        m = matrix(LLM_TYPE_F16, cases[i].n_out, N_IN, i);
        y = ops_alloc(n * cases[i].rows * sizeof(float));
        alone = ops_alloc(n * sizeof(float));

        (void) setenv("LLM_EMU_BLAS", "0", 1);
        product(devs[1], LLM_TYPE_F16, m, cases[i].n_out, N_IN,
                LLM_WEIGHT_LINEAR, cases[i].rows, x, NULL, 0, y);
        product(devs[1], LLM_TYPE_F16, m, cases[i].n_out, N_IN,
                LLM_WEIGHT_LINEAR, 1,
                x + (size_t) (cases[i].rows - 1) * N_IN, NULL, 0, alone);
        (void) unsetenv("LLM_EMU_BLAS");

        ok(memcmp(y + n * (cases[i].rows - 1), alone, n * sizeof(float)) == 0,
           "%u outputs: the last of %u rows has the bits of a row alone",
           cases[i].n_out, cases[i].rows);

        free(m);
        free(y);
        free(alone);
    }

    free(x);
}


/* ---- rows ---- */

static void
rows_of(llm_exec_t *d, uint32_t cols, const float *x, const float *w,
    float *out[5])
{
    rows_t         r[2] = { { 0, 5, 0 }, { 3, 1, 1 } };
    float         *own;
    step_t        *s;
    llm_act_t     *ax, *an, *ag, *au, *ay, *ao, *as;
    llm_vec_t     *v;
    llm_err_t      err;
    llm_norm_t     norm;

    s = ops_alloc(sizeof(step_t));
    step_fill(s, r, 2, 0);

    /* what was handed over may change, even before it is looked at */

    own = ops_alloc(6 * cols * sizeof(float));
    memcpy(own, w, cols * sizeof(float));
    v = d->ops->vec_create(d, own, cols, &err);
    memcpy(own, x, 6 * cols * sizeof(float));
    ax = act(d, LLM_ACT_RESIDUAL, 6, cols, own);
    memset(own, 0xff, 6 * cols * sizeof(float));
    free(own);

    an = act(d, LLM_ACT_VALUE, 6, cols, NULL);
    ag = act(d, LLM_ACT_PRODUCT, 6, cols, x);
    au = act(d, LLM_ACT_PRODUCT, 6, cols, x + cols);
    ay = act(d, LLM_ACT_VALUE, 6, cols, NULL);
    ao = act(d, LLM_ACT_RESIDUAL, 2, cols, NULL);
    as = act(d, LLM_ACT_HIDDEN, 2, cols, NULL);
    norm = (llm_norm_t) { .eps = 1e-5f, .w = v };

    s->b.gives = LLM_GIVES_HIDDEN;

    (void) d->ops->begin(d, &s->b, &err);
    d->ops->norm(d, LLM_ROWS_ALL, ax, &norm, an);
    d->ops->glu(d, LLM_ROWS_ALL, LLM_GLU_SILU, ag, au, ay);
    d->ops->gather(d, ax, ao);
    d->ops->norm(d, LLM_ROWS_OUT, ao, &norm, as);
    ok(d->ops->end(d, &err) == LLM_OK, "a step of %u columns", cols);

    ops_read(d, as, out[4], 2, cols);
    ops_read(d, an, out[0], 6, cols);
    ops_read(d, ay, out[1], 6, cols);
    ops_read(d, ao, out[2], 2, cols);

    (void) d->ops->begin(d, &s->b, &err);
    d->ops->glu(d, LLM_ROWS_ALL, LLM_GLU_GELU, ag, au, ay);
    ok(d->ops->end(d, &err) == LLM_OK, "gelu of %u columns", cols);
    ops_read(d, ay, out[3], 6, cols);

    d->ops->act_free(d, ax);
    d->ops->act_free(d, an);
    d->ops->act_free(d, ag);
    d->ops->act_free(d, au);
    d->ops->act_free(d, ay);
    d->ops->act_free(d, ao);
    d->ops->act_free(d, as);
    d->ops->vec_free(d, v);
    free(s);
}


static void
test_rows(void)
{
    float     *x, *w, *out[2][5];
    size_t     i, k;

    static const uint32_t  cols[] = { 1, 31, 256, 300, 1030 };

    static const struct {
        const char  *name;
        uint32_t     rows;
        double       far;               /* a state is not rounded to 16 bits */
    } what[] = {
        { "norm", 6, 0.001 }, { "silu", 6, 0.001 }, { "gather", 2, 0.001 },
        { "gelu", 6, 0.001 }, { "norm to a state", 2, 1e-6 }
    };

    for (i = 0; i < llm_nelems(cols); i++) {
        x = ops_alloc(7 * cols[i] * sizeof(float));
        w = ops_alloc(cols[i] * sizeof(float));
        ops_fill(x, 7 * cols[i], i);
        ops_fill(w, cols[i], i + 9);

        for (int d = 0; d < 2; d++) {
            for (k = 0; k < llm_nelems(what); k++) {
                out[d][k] = ops_alloc(6 * cols[i] * sizeof(float));
            }

            rows_of(devs[d], cols[i], x, w, out[d]);
        }

        for (k = 0; k < llm_nelems(what); k++) {
            compare(out[1][k], out[0][k], what[k].rows * cols[i],
                    what[k].far, what[k].name);
            free(out[0][k]);
            free(out[1][k]);
        }

        free(x);
        free(w);
    }
}


/* as many results as are wanted, whether the step has fewer rows or more */

static void
glu_of(llm_exec_t *d, uint32_t rows, uint32_t n_out, const float *x,
    float *out)
{
    enum { COLS = 300 };

    rows_t      r = { 0, rows, 0 };
    step_t     *s;
    uint32_t    i;
    llm_act_t  *ag, *au, *ay;
    llm_err_t   err;

    s = ops_alloc(sizeof(step_t));
    step_fill(s, &r, 1, 0);

    for (i = 0; i < n_out; i++) {
        s->out[i] = rows - 1;
    }

    s->b.n_out = n_out;

    ag = act(d, LLM_ACT_PRODUCT, 40, COLS, x);
    au = act(d, LLM_ACT_PRODUCT, 40, COLS, x + COLS);
    ay = act(d, LLM_ACT_VALUE, 40, COLS, NULL);

    (void) d->ops->begin(d, &s->b, &err);
    d->ops->glu(d, LLM_ROWS_OUT, LLM_GLU_SILU, ag, au, ay);
    ok(d->ops->end(d, &err) == LLM_OK, "%u results of %u rows", n_out, rows);
    ops_read(d, ay, out, n_out, COLS);

    d->ops->act_free(d, ag);
    d->ops->act_free(d, au);
    d->ops->act_free(d, ay);
    free(s);
}


static void
test_glu_rows(void)
{
    float   *x, *out[2];
    size_t   i;

    static const uint32_t  sizes[][2] = { { 2, 40 }, { 40, 2 }, { 9, 9 } };

    x = ops_alloc(41 * 300 * sizeof(float));
    ops_fill(x, 41 * 300, 7);

    for (i = 0; i < llm_nelems(sizes); i++) {
        for (int d = 0; d < 2; d++) {
            out[d] = ops_alloc(40 * 300 * sizeof(float));
            glu_of(devs[d], sizes[i][0], sizes[i][1], x, out[d]);
        }

        compare(out[1], out[0], sizes[i][1] * 300, 0.001, "their silu");
        free(out[0]);
        free(out[1]);
    }

    free(x);
}


static void
embedded(llm_exec_t *d, uint32_t type, const uint8_t *m, uint32_t cols,
    int usage, float *out)
{
    rows_t         r = { 0, 9, 0 };
    step_t        *s;
    llm_act_t     *ax;
    llm_err_t      err;
    llm_weight_t  *w;

    s = ops_alloc(sizeof(step_t));
    step_fill(s, &r, 1, 0);

    ax = act(d, LLM_ACT_RESIDUAL, 9, cols, NULL);
    w = d->ops->weight_create(d, type, 50, cols, m, usage, &err);

    (void) d->ops->begin(d, &s->b, &err);
    d->ops->embed(d, w, ax);
    ok(d->ops->end(d, &err) == LLM_OK, "a step embeds");
    ops_read(d, ax, out, 9, cols);

    d->ops->weight_free(d, w);
    d->ops->act_free(d, ax);
    free(s);
}


static void
test_embed(void)
{
    float     *out[2];
    size_t     i;
    uint8_t   *m;
    uint32_t   cols;

    for (i = 0; i < llm_nelems(types); i++) {
        cols = llm_type_block(types[i]) == 1
               ? 37 : 2 * (uint32_t) llm_type_block(types[i]);
        m = matrix(types[i], 50, cols, i);

        for (int d = 0; d < 2; d++) {
            out[d] = ops_alloc(9 * cols * sizeof(float));
            embedded(devs[d], types[i], m, cols,
                     LLM_WEIGHT_EMBED | LLM_WEIGHT_LINEAR, out[d]);
        }

        compare(out[1], out[0], 9 * cols, 1e-6, llm_type_name(types[i]));

        free(m);
        free(out[0]);
        free(out[1]);
    }
}


/* a weight of 42 MB, which is uploaded in three pieces: the third has the room
   of the first */

static void
test_large(void)
{
    enum { COLS = 210000 };

    float    *out[2];
    uint8_t  *m;

    m = matrix(LLM_TYPE_F32, 50, COLS, 5);

    for (int d = 0; d < 2; d++) {
        out[d] = ops_alloc(9 * COLS * sizeof(float));
        embedded(devs[d], LLM_TYPE_F32, m, COLS, LLM_WEIGHT_EMBED, out[d]);
    }

    compare(out[1], out[0], 9 * COLS, 1e-6, "a large weight");

    free(m);
    free(out[0]);
    free(out[1]);
}


/* ---- attention ---- */

static void
test_attention(void)
{
    char     what[128];
    float   *q[2], *out[2];
    size_t   i, k, n;

    for (k = 0; k < 2; k++) {
        q[k] = ops_alloc(ATTEND_HEADS * 576 * sizeof(float));
        out[k] = ops_alloc(ATTEND_HEADS * 576 * sizeof(float));
    }

    for (i = 0; i < llm_nelems(attentions); i++) {
        const attention_t  *a = &attentions[i];

        n = attend(devs[0], a, NULL, q[0], out[0]);

        /* a graph belongs to one model: a device of its own */
        devs[1]->ops->close(devs[1]);
        devs[1] = open_emu(LLM_TYPE_F16, 0, 0);
        attend_replayed = 0;
        (void) attend(devs[1], a, NULL, q[1], out[1]);
        is_int(attend_replayed, 1, "a step of several rows a sequence is a "
               "captured one");

        snprintf(what, sizeof(what), "%u heads of %u and %u, %u of KV",
                 a->heads, a->dk, a->dv, a->kv_heads);
        compare(q[1], q[0], n * a->dk, 0.0001, "queries");
        compare(out[1], out[0], n * a->dv, 0.0015, what);
    }

    for (k = 0; k < 2; k++) {
        free(q[k]);
        free(out[k]);
    }
}


int
main(void)
{
    (void) setenv("LLM_EMU_SEED", "11", 0);

    devs[1] = open_emu(LLM_TYPE_F16, 0, 0);

    if (devs[1] == NULL) {
        return done_without_device();
    }

    devs[0] = ops_open(&llm_ops_reference, NULL, 1);

    test_products();
    test_scales();
    test_same_bits(0);
    test_same_bits(0.3f);
    test_many_outputs();
    test_rows();
    test_glu_rows();
    test_embed();
    test_large();
    test_attention();

    devs[0]->ops->close(devs[0]);
    devs[1]->ops->close(devs[1]);

    return done_testing();
}
