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

#include "engine/model/backend.h"
#include "t/unit/ops.h"

#include <string.h>
#include <unistd.h>

#define MAX_ROWS  640

static llm_dev_t  *devs[2];             /* the reference, the emulator */

static llm_dev_t *open_emu(uint32_t weight_type);


/* ---- steps ---- */

/* a sequence's rows in a step: n rows from position pos on */
typedef struct {
    uint32_t      pos;
    uint32_t      n;
    uint32_t      page;                 /* its first page, strides of 3 */
} rows_t;

typedef struct {
    llm_batch_t   b;
    int32_t       tokens[MAX_ROWS];
    uint32_t      pos[MAX_ROWS];
    uint32_t      out[MAX_ROWS];
    uint32_t      seq_rows[OPS_MAX_SEQS + 1];
    uint32_t      kv_len[OPS_MAX_SEQS];
    uint32_t      pages[OPS_MAX_SEQS * OPS_MAX_PAGES];
} step_t;

#define N_PAGES  160


static void
step_fill(step_t *s, const rows_t *r, uint32_t n, int all_out)
{
    uint32_t  i, k, row;

    memset(s, 0, sizeof(step_t));
    row = 0;

    for (i = 0; i < n; i++) {
        s->seq_rows[i] = row;
        s->kv_len[i] = r[i].pos + r[i].n;

        for (k = 0; k < OPS_MAX_PAGES; k++) {
            s->pages[i * OPS_MAX_PAGES + k] = (r[i].page + 3 * k) % N_PAGES;
        }

        for (k = 0; k < r[i].n; k++, row++) {
            s->tokens[row] = (int32_t) (row * 7 % 50);
            s->pos[row] = r[i].pos + k;

            if (all_out || k + 1 == r[i].n) {
                s->out[s->b.n_out++] = row;
            }
        }
    }

    s->seq_rows[n] = row;
    s->b.n_tokens = row;
    s->b.n_seqs = n;
    s->b.max_pages = OPS_MAX_PAGES;
    s->b.tokens = s->tokens;
    s->b.pos = s->pos;
    s->b.seq_rows = s->seq_rows;
    s->b.kv_len = s->kv_len;
    s->b.pages = s->pages;
    s->b.out_rows = s->out;
}


static llm_act_t *
act(llm_dev_t *d, llm_act_kind_t kind, uint32_t rows, uint32_t cols,
    const float *src)
{
    llm_err_t   err;
    llm_act_t  *a;

    a = d->ops->act_create(d, rows, cols, kind, &err);

    if (a == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    if (src) {
        d->ops->write(d, a, 0, rows, src);
    }

    return a;
}


static void
compare(const float *got, const float *want, size_t n, double bound,
    const char *what)
{
    double  dist;

    dist = ops_distance(got, want, n);
    ok(dist <= bound, "%s: %.6f (at most %g)", what, dist, bound);
}


/* ---- products ---- */

static const uint32_t  types[] = {
    LLM_TYPE_F32, LLM_TYPE_F16, LLM_TYPE_BF16, LLM_TYPE_Q8_0, LLM_TYPE_Q4_0,
    LLM_TYPE_Q4_1, LLM_TYPE_Q5_0, LLM_TYPE_Q5_1, LLM_TYPE_Q4_K,
    LLM_TYPE_Q5_K, LLM_TYPE_Q6_K
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


/* rows of a type: random codes, small scales where the format has halves */

static uint8_t *
matrix(uint32_t type, uint32_t n_out, uint32_t n_in, uint64_t seed)
{
    float      f;
    size_t     i, k, size, block;
    uint8_t   *m;
    uint16_t   h;

    size = llm_type_row_size(type, n_in) * n_out;
    block = llm_type_block_size(type);
    m = ops_alloc(size);

    for (i = 0; i < size; i += block) {
        for (k = 0; k < block; k++) {
            m[i + k] = (uint8_t) ops_random(&seed);
        }

        f = ops_normal(&seed);

        if (type == LLM_TYPE_F32) {
            memcpy(m + i, &f, 4);
            continue;
        }

        h = type == LLM_TYPE_BF16 ? llm_f32_to_bf16(f)
            : llm_f32_to_f16(block == 2 ? f : 0.01f * f);
        memcpy(m + i + (type == LLM_TYPE_Q6_K ? 208 : 0), &h, 2);

        if (type == LLM_TYPE_Q4_1 || type == LLM_TYPE_Q5_1
            || type == LLM_TYPE_Q4_K || type == LLM_TYPE_Q5_K)
        {
            h = llm_f32_to_f16(0.02f * ops_normal(&seed));
            memcpy(m + i + 2, &h, 2);
        }
    }

    return m;
}


static void
product(llm_dev_t *d, uint32_t type, const uint8_t *m, uint32_t n_out,
    uint32_t n_in, uint32_t rows, const float *x, const float *bias, int add,
    float *y)
{
    rows_t         r = { 0, rows, 0 };
    step_t        *s;
    llm_act_t     *ax, *ay;
    llm_err_t      err;
    llm_linear_t   l;
    llm_weight_t  *w;

    s = ops_alloc(sizeof(step_t));
    step_fill(s, &r, 1, 1);
    s->b.n_out = 0;                     /* else one row would be captured */

    w = d->ops->weight_create(d, type, n_out, n_in, m, LLM_WEIGHT_LINEAR,
                              &err);
    if (w == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    ax = act(d, LLM_ACT_VALUE, rows, n_in, x);
    ay = act(d, LLM_ACT_RESIDUAL, rows, n_out, y);

    memset(&l, 0, sizeof(l));
    l.w = w;
    l.y = ay;
    l.add = add;
    l.bias = bias ? d->ops->vec_create(d, bias, n_out, &err) : NULL;

    if (!ok(d->ops->begin(d, &s->b, &err) == LLM_OK, "a step begins")) {
        printf("# %s\n", err.msg);
    }

    d->ops->linear(d, LLM_ROWS_ALL, ax, &l, 1);
    ok(d->ops->end(d, &err) == LLM_OK, "a step ends");
    ops_read(d, ay, y, rows, n_out);

    d->ops->act_free(d, ax);
    d->ops->act_free(d, ay);
    d->ops->weight_free(d, w);

    if (l.bias) {
        d->ops->vec_free(d, (llm_vec_t *) l.bias);
    }

    free(s);
}


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

            m = matrix(types[i], shapes[k].n_out, n_in, 77 * i + k);
            x = ops_alloc((size_t) shapes[k].rows * n_in * sizeof(float));
            bias = ops_alloc(shapes[k].n_out * sizeof(float));
            ops_fill(x, (size_t) shapes[k].rows * n_in, i + 3 * k);
            ops_fill(bias, shapes[k].n_out, k);

            for (int d = 0; d < 2; d++) {
                y[d] = ops_alloc(n * sizeof(float));
                ops_fill(y[d], n, 5 * k);
                product(devs[d], types[i], m, shapes[k].n_out, n_in,
                        shapes[k].rows, x, k % 3 ? bias : NULL, add, y[d]);
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
}


/* one row of 1, 8, 9, 64 and more, with and without cublasLt */

static void
test_same_bits(void)
{
    int             same;
    float          *x, *bias, *y, *first;
    size_t          i, k;
    uint8_t        *m;
    uint32_t        n_in, block;

    static const uint32_t     rows[] = { 1, 8, 9, 32, 64, 65, 150 };
    static const char *const  blas[] = { "1", "0" };

    enum { N_OUT = 150, MOST = 150 };

    x = ops_alloc((size_t) MOST * 1024 * sizeof(float));
    bias = ops_alloc(N_OUT * sizeof(float));
    y = ops_alloc((size_t) MOST * N_OUT * sizeof(float));
    first = ops_alloc(N_OUT * sizeof(float));
    ops_fill(x, (size_t) MOST * 1024, 3);
    ops_fill(bias, N_OUT, 4);

    for (i = 0; i < llm_nelems(types); i++) {
        block = (uint32_t) llm_type_block(types[i]);
        n_in = block == 1 ? 301 : block == 32 ? 352 : 768;
        m = matrix(types[i], N_OUT, n_in, i);
        same = 1;

        for (k = 0; k < 2 * llm_nelems(rows); k++) {
            (void) setenv("LLM_EMU_BLAS", blas[k % 2], 1);
            ops_fill(y, (size_t) MOST * N_OUT, 5);
            product(devs[1], types[i], m, N_OUT, n_in, rows[k / 2], x, bias,
                    1, y);

            if (k == 0) {
                memcpy(first, y, N_OUT * sizeof(float));
            }

            if (memcmp(first, y, N_OUT * sizeof(float)) != 0) {
                printf("# %u rows, cublasLt %s\n", rows[k / 2], blas[k % 2]);
                same = 0;
            }
        }

        ok(same, "%s: the same bits for any number of rows",
           llm_type_name(types[i]));
        free(m);
    }

    (void) unsetenv("LLM_EMU_BLAS");
    free(x);
    free(bias);
    free(y);
    free(first);
}


/* ---- rows ---- */

static void
rows_of(llm_dev_t *d, uint32_t cols, const float *x, const float *w,
    float *out[4])
{
    rows_t         r[2] = { { 0, 5, 0 }, { 3, 1, 1 } };
    step_t        *s;
    llm_act_t     *ax, *an, *ag, *au, *ay, *ao;
    llm_vec_t     *v;
    llm_err_t      err;

    s = ops_alloc(sizeof(step_t));
    step_fill(s, r, 2, 0);

    ax = act(d, LLM_ACT_RESIDUAL, 6, cols, x);
    an = act(d, LLM_ACT_VALUE, 6, cols, NULL);
    ag = act(d, LLM_ACT_PRODUCT, 6, cols, x);
    au = act(d, LLM_ACT_PRODUCT, 6, cols, x + cols);
    ay = act(d, LLM_ACT_VALUE, 6, cols, NULL);
    ao = act(d, LLM_ACT_RESIDUAL, 2, cols, NULL);
    v = d->ops->vec_create(d, w, cols, &err);

    (void) d->ops->begin(d, &s->b, &err);
    d->ops->norm(d, LLM_ROWS_ALL, ax, ag, v, 1e-5f, an);
    d->ops->glu(d, LLM_GLU_SILU, ag, au, ay);
    d->ops->gather(d, ax, ao);
    ok(d->ops->end(d, &err) == LLM_OK, "a step of %u columns", cols);

    ops_read(d, an, out[0], 6, cols);
    ops_read(d, ay, out[1], 6, cols);
    ops_read(d, ao, out[2], 2, cols);

    (void) d->ops->begin(d, &s->b, &err);
    d->ops->glu(d, LLM_GLU_GELU, ag, au, ay);
    ok(d->ops->end(d, &err) == LLM_OK, "gelu of %u columns", cols);
    ops_read(d, ay, out[3], 6, cols);

    d->ops->act_free(d, ax);
    d->ops->act_free(d, an);
    d->ops->act_free(d, ag);
    d->ops->act_free(d, au);
    d->ops->act_free(d, ay);
    d->ops->act_free(d, ao);
    d->ops->vec_free(d, v);
    free(s);
}


static void
test_rows(void)
{
    float     *x, *w, *out[2][4];
    size_t     i, k;

    static const uint32_t     cols[] = { 1, 31, 256, 300, 1030 };
    static const char *const  names[] = {
        "norm with a sum", "silu", "gather", "gelu"
    };

    for (i = 0; i < llm_nelems(cols); i++) {
        x = ops_alloc(7 * cols[i] * sizeof(float));
        w = ops_alloc(cols[i] * sizeof(float));
        ops_fill(x, 7 * cols[i], i);
        ops_fill(w, cols[i], i + 9);

        for (int d = 0; d < 2; d++) {
            for (k = 0; k < 4; k++) {
                out[d][k] = ops_alloc(6 * cols[i] * sizeof(float));
            }

            rows_of(devs[d], cols[i], x, w, out[d]);
        }

        for (k = 0; k < 4; k++) {
            compare(out[1][k], out[0][k], (k == 2 ? 2 : 6) * cols[i], 0.001,
                    names[k]);
            free(out[0][k]);
            free(out[1][k]);
        }

        free(x);
        free(w);
    }
}


static void
embedded(llm_dev_t *d, uint32_t type, const uint8_t *m, uint32_t cols,
    float *out)
{
    rows_t         r = { 0, 9, 0 };
    step_t        *s;
    llm_act_t     *ax;
    llm_err_t      err;
    llm_weight_t  *w;

    s = ops_alloc(sizeof(step_t));
    step_fill(s, &r, 1, 0);

    ax = act(d, LLM_ACT_RESIDUAL, 9, cols, NULL);
    w = d->ops->weight_create(d, type, 50, cols, m,
                              LLM_WEIGHT_EMBED | LLM_WEIGHT_LINEAR, &err);

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
            embedded(devs[d], types[i], m, cols, out[d]);
        }

        compare(out[1], out[0], 9 * cols, 1e-6, llm_type_name(types[i]));

        free(m);
        free(out[0]);
        free(out[1]);
    }
}


/* ---- results ---- */

static void
test_best(void)
{
    int            i, k, rc;
    float         *x;
    const float   *row;
    rows_t         r[3] = { { 3, 1, 0 }, { 4, 1, 1 }, { 5, 1, 2 } };
    step_t        *s;
    llm_dev_t     *d;
    llm_act_t     *a;
    llm_err_t      err;

    /* cols, place, value: two equal ones, NaN, both infinities */
    static const struct {
        uint32_t   cols;
        uint32_t   at[2];
        float      value;
        uint32_t   best;
    } cases[] = {
        { 1, { 0, 0 }, 9, 0 }, { 1000, { 700, 31 }, 9, 31 },
        { 257, { 256, 256 }, 9, 256 }, { 1000, { 5, 5 }, NAN, LLM_NO_BEST },
        { 1000, { 999, 1 }, INFINITY, LLM_NO_BEST },
        { 300, { 0, 0 }, -INFINITY, 0 }
    };

    s = ops_alloc(sizeof(step_t));
    step_fill(s, r, 3, 1);

    for (i = 0; i < (int) llm_nelems(cases); i++) {
        uint8_t  greedy[3] = { 1, 0, 1 };

        d = open_emu(LLM_TYPE_F16);
        x = ops_alloc(3 * cases[i].cols * sizeof(float));
        ops_fill(x, 3 * cases[i].cols, 3);

        for (k = 0; k < (int) cases[i].cols; k++) {
            x[2 * cases[i].cols + k] = cases[i].value == -INFINITY
                                       ? -INFINITY : x[k];
        }

        x[2 * cases[i].cols + cases[i].at[0]] = cases[i].value;
        x[2 * cases[i].cols + cases[i].at[1]] = cases[i].value;
        a = act(d, LLM_ACT_LOGITS, 3, cases[i].cols, x);
        s->b.greedy = greedy;

        for (k = 0; k < 2; k++) {
            rc = d->ops->begin(d, &s->b, &err);
            ok(rc == (k ? LLM_AGAIN : LLM_OK)
               && d->ops->end(d, &err) == LLM_OK, "a step of logits");
            is_int(d->ops->best(d)[2], cases[i].value == -INFINITY
                                       ? LLM_NO_BEST : cases[i].best,
                   "the best of %u", cases[i].cols);

            row = d->ops->map(d, a, 1, 1);
            ok(memcmp(row, x + cases[i].cols, cases[i].cols * sizeof(float))
               == 0, "and the row that is wanted");
        }

        d->ops->act_free(d, a);
        d->ops->close(d);
        free(x);
    }

    free(s);
}


/* ---- attention ---- */

typedef struct {
    uint32_t          heads;
    uint32_t          kv_heads;
    uint32_t          dk;
    uint32_t          dv;
    uint32_t          rot;
    llm_rope_kind_t   kind;
    int               norm;
} attention_t;

static const attention_t  attentions[] = {
    { 4, 2, 64, 64, 64, LLM_ROPE_NEOX, 1 },
    { 3, 3, 32, 32, 32, LLM_ROPE_NORM, 0 },
    { 8, 1, 128, 128, 128, LLM_ROPE_NEOX, 1 },
    { 20, 1, 80, 80, 40, LLM_ROPE_NORM, 0 },
    { 2, 1, 100, 36, 100, LLM_ROPE_NEOX, 0 },
    { 2, 2, 192, 256, 192, LLM_ROPE_NEOX, 1 }
};


/* steps of a mixed life: prompts, then decode rows beside a prompt's rest */

static const rows_t  life[][3] = {
    { { 0, 600, 0 }, { 0, 0, 0 }, { 0, 0, 0 } },
    { { 0, 33, 1 }, { 0, 0, 0 }, { 0, 0, 0 } },
    { { 600, 1, 0 }, { 33, 70, 1 }, { 0, 5, 2 } },
    { { 601, 1, 0 }, { 103, 1, 1 }, { 5, 1, 2 } },
    { { 602, 1, 0 }, { 104, 1, 1 }, { 6, 1, 2 } }
};


/* q and the result of the last three steps, one after another */

static size_t
attend(llm_dev_t *d, const attention_t *a, float *out)
{
    int            rc;
    float         *q, *k, *v, freq[128], norm[256];
    size_t         i, n, rows, done;
    step_t        *s;
    llm_kv_t      *kv;
    llm_act_t     *aq, *ak, *av, *ao;
    llm_err_t      err;
    llm_rope_t     rope;
    llm_heads_t    h;
    llm_kv_opts_t  o;

    memset(&o, 0, sizeof(o));
    o.n_layers = 2;
    o.n_pages = N_PAGES;
    o.n_kv_heads = a->kv_heads;
    o.head_dim_k = a->dk;
    o.head_dim_v = a->dv;
    o.n_heads = a->heads;
    kv = d->ops->kv_create(d, &o, &err);

    for (i = 0; i < a->rot / 2; i++) {
        freq[i] = powf(10000.0f, -2.0f * (float) i / (float) a->rot);
    }

    ops_fill(norm, a->dk, 4);

    memset(&h, 0, sizeof(h));
    h.layer = 1;
    h.n_heads = a->heads;
    h.n_kv_heads = a->kv_heads;
    h.head_dim_k = a->dk;
    h.head_dim_v = a->dv;
    h.scale = 1.0f / sqrtf((float) a->dk);
    h.norm_eps = 1e-6f;

    if (a->norm) {
        h.q_norm = d->ops->vec_create(d, norm, a->dk, &err);
        h.k_norm = d->ops->vec_create(d, norm, a->dk, &err);
    }

    memset(&rope, 0, sizeof(rope));
    rope.kind = a->kind;
    rope.n_dims = a->rot;
    rope.inv_freq = d->ops->vec_create(d, freq, a->rot / 2, &err);
    rope.mscale = 1.1f;

    aq = act(d, LLM_ACT_PRODUCT, MAX_ROWS, a->heads * a->dk, NULL);
    ak = act(d, LLM_ACT_PRODUCT, MAX_ROWS, a->kv_heads * a->dk, NULL);
    av = act(d, LLM_ACT_PRODUCT, MAX_ROWS, a->kv_heads * a->dv, NULL);
    ao = act(d, LLM_ACT_VALUE, MAX_ROWS, a->heads * a->dv, NULL);

    q = ops_alloc((size_t) MAX_ROWS * a->heads * a->dk * sizeof(float));
    k = ops_alloc((size_t) MAX_ROWS * a->kv_heads * a->dk * sizeof(float));
    v = ops_alloc((size_t) MAX_ROWS * a->kv_heads * a->dv * sizeof(float));
    s = ops_alloc(sizeof(step_t));
    done = 0;

    for (i = 0; i < llm_nelems(life); i++) {
        for (n = 1; n < 3 && life[i][n].n; n++) { /* void */ }

        step_fill(s, life[i], (uint32_t) n, i > 2);
        rows = s->b.n_tokens;

        ops_fill(q, rows * a->heads * a->dk, 10 + i);
        ops_fill(k, rows * a->kv_heads * a->dk, 20 + i);
        ops_fill(v, rows * a->kv_heads * a->dv, 30 + i);
        d->ops->write(d, aq, 0, (uint32_t) rows, q);
        d->ops->write(d, ak, 0, (uint32_t) rows, k);
        d->ops->write(d, av, 0, (uint32_t) rows, v);

        rc = d->ops->begin(d, &s->b, &err);

        if (rc == LLM_OK) {
            d->ops->rope_kv(d, &h, &rope, aq, ak, av, kv);
            d->ops->attention(d, &h, aq, kv, ao);
        }

        ok(d->ops->end(d, &err) == LLM_OK, "step %zu%s", i,
           rc == LLM_AGAIN ? ", replayed" : "");

        if (i >= 2) {
            ops_read(d, aq, out + done, (uint32_t) rows, a->heads * a->dk);
            done += rows * a->heads * a->dk;
            ops_read(d, ao, out + done, (uint32_t) rows, a->heads * a->dv);
            done += rows * a->heads * a->dv;
        }

        if (i == 2) {
            /* what is copied is what was there */
            d->ops->kv_copy(d, kv, 0, 1);
            d->ops->kv_copy(d, kv, 1, 0);
        }
    }

    d->ops->kv_free(d, kv);
    d->ops->act_free(d, aq);
    d->ops->act_free(d, ak);
    d->ops->act_free(d, av);
    d->ops->act_free(d, ao);
    d->ops->vec_free(d, (llm_vec_t *) rope.inv_freq);

    if (a->norm) {
        d->ops->vec_free(d, (llm_vec_t *) h.q_norm);
        d->ops->vec_free(d, (llm_vec_t *) h.k_norm);
    }

    free(q);
    free(k);
    free(v);
    free(s);

    return done;
}


static llm_dev_t *
open_emu(uint32_t weight_type)
{
    char             dir[1024];
    llm_dev_t       *d;
    llm_err_t        err;
    const char      *objs, *device;
    llm_dev_opts_t   o;

    memset(&o, 0, sizeof(o));
    o.max_tokens = MAX_ROWS;
    o.max_seqs = OPS_MAX_SEQS;
    o.max_pages = OPS_MAX_PAGES;
    o.max_out = MAX_ROWS;
    o.weight_type = weight_type;

    objs = getenv("LLM_OBJS");
    snprintf(dir, sizeof(dir), "%s", objs ? objs : "objs");

    device = getenv("LLM_GPU_DEVICE");

    if (llm_backend_open(device ? device : "emu", dir, &o, &d, &err)
        != LLM_OK)
    {
        printf("# %s\n", err.msg);
        return NULL;
    }

    return d;
}


static void
test_attention(void)
{
    char     what[128];
    float   *out[2];
    size_t   i, n;

    n = (size_t) 90 * 20 * 2 * 256;
    out[0] = ops_alloc(n * sizeof(float));
    out[1] = ops_alloc(n * sizeof(float));

    for (i = 0; i < llm_nelems(attentions); i++) {
        const attention_t  *a = &attentions[i];

        n = attend(devs[0], a, out[0]);

        /* a graph belongs to one model: a device of its own */
        devs[1]->ops->close(devs[1]);
        devs[1] = open_emu(LLM_TYPE_F16);
        (void) attend(devs[1], a, out[1]);

        snprintf(what, sizeof(what), "%u heads of %u and %u, %u of KV",
                 a->heads, a->dk, a->dv, a->kv_heads);
        compare(out[1], out[0], n, 0.0015, what);
    }

    free(out[0]);
    free(out[1]);
}


int
main(void)
{
    (void) setenv("LLM_EMU_SEED", "11", 0);

    devs[1] = open_emu(LLM_TYPE_F16);

    if (devs[1] == NULL) {
        if (getenv("LLM_GPU_DEVICE")) {
            ok(0, "the device that was asked for");
        } else {
            skip("there is no llm_emu.so");
        }

        return done_testing();
    }

    devs[0] = ops_open(&llm_ops_reference, NULL, 1);

    test_products();
    test_same_bits();
    test_rows();
    test_embed();
    test_best();
    test_attention();

    devs[0]->ops->close(devs[0]);
    devs[1]->ops->close(devs[1]);

    return done_testing();
}
