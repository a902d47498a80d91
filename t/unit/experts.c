/*
 * Mixtures of experts: the reference against a computation in float64, every
 * instruction set against the reference, and the same bits for a row alone
 * and among any others.  How rows choose is route.c's.
 *
 * Where x is rounded to int8, so is what is inside of an expert: the results
 * of random weights are then some 0.01 of their deviation off.
 */

#include "t/unit/ops.h"
#include "t/unit/route_naive.h"

#include <string.h>

/* a random matrix of GGUF rows: offsets of binary16 scales in a block */
typedef struct {
    uint32_t      type;
    uint32_t      n_scales;
    uint32_t      scales[2];
} mix_type_t;

static const mix_type_t  types[] = {
    { LLM_TYPE_F32,  0, { 0, 0 } },
    { LLM_TYPE_F16,  0, { 0, 0 } },
    { LLM_TYPE_BF16, 0, { 0, 0 } },
    { LLM_TYPE_Q8_0, 1, { 0, 0 } },
    { LLM_TYPE_Q4_0, 1, { 0, 0 } },
    { LLM_TYPE_Q4_K, 2, { 0, 2 } },
    { LLM_TYPE_Q6_K, 1, { 208, 0 } },
};

enum { F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q6_K };

/* a mixture, and how its rows choose */
typedef struct {
    const char   *name;
    uint32_t      n_experts;
    uint32_t      n_used;
    uint32_t      n_in;
    uint32_t      n_ff;
    uint32_t      gate;                 /* of types[] */
    uint32_t      up;
    uint32_t      down;
    llm_glu_t     act;
    int           ungated;
    int           biases;
    int           fused;                /* gate and up in one tensor */
    int           weigh_input;
    int           same;                 /* all rows choose the same */
    int           fresh;                /* y = instead of y += */
} mix_case_t;

static const mix_case_t  cases[] = {
    { "float32", 8, 2, 40, 24, F32, F32, F32,
      LLM_GLU_SILU, 0, 0, 0, 0, 0, 0 },
    { "float16 and bfloat16", 5, 3, 64, 50, F16, BF16, F16,
      LLM_GLU_GELU, 0, 1, 0, 0, 0, 0 },
    { "bfloat16", 16, 4, 96, 64, BF16, BF16, BF16,
      LLM_GLU_SILU, 0, 0, 1, 0, 0, 0 },
    { "like gpt-oss", 12, 4, 96, 160, Q4_0, Q4_0, Q4_0,
      LLM_GLU_CLAMPED, 0, 1, 0, 0, 0, 0 },
    { "like qwen3moe", 32, 8, 256, 256, Q4_K, Q4_K, Q6_K,
      LLM_GLU_SILU, 0, 0, 0, 0, 0, 0 },
    { "three types", 6, 2, 256, 512, Q6_K, Q8_0, Q4_K,
      LLM_GLU_SILU, 0, 0, 0, 0, 0, 0 },
    { "integers and floats", 6, 2, 64, 96, Q8_0, F16, Q4_0,
      LLM_GLU_SILU, 0, 1, 0, 0, 0, 0 },
    { "fused", 10, 3, 64, 72, Q8_0, Q8_0, F16,
      LLM_GLU_SILU, 0, 1, 1, 0, 0, 0 },
    { "ungated", 9, 3, 64, 96, Q8_0, Q8_0, Q8_0,
      LLM_GLU_RELU2, 1, 1, 0, 0, 0, 0 },
    { "weighs its input", 7, 1, 64, 96, Q8_0, Q8_0, Q8_0,
      LLM_GLU_SILU, 0, 0, 0, 1, 0, 0 },
    { "one for all rows", 40, 2, 64, 64, Q4_0, Q4_0, Q8_0,
      LLM_GLU_SILU, 0, 0, 0, 0, 1, 0 },
    { "all experts", 4, 4, 64, 64, Q8_0, Q8_0, Q8_0,
      LLM_GLU_SILU, 0, 0, 0, 0, 0, 1 },
    { "one expert", 1, 1, 32, 32, Q8_0, Q8_0, Q8_0,
      LLM_GLU_SILU, 0, 0, 0, 0, 0, 0 },
};

/* a case with its numbers; up is behind gate if they are fused */
typedef struct {
    const mix_case_t  *c;
    uint8_t           *gate;
    uint8_t           *up;
    uint8_t           *down;
    size_t             stride[3];       /* of gate, up and down */
    float             *gate_bias;
    float             *up_bias;
    float             *down_bias;
    llm_route_t        route;
} mix_t;


static uint8_t *
make_matrix(const mix_type_t *t, uint32_t n_out, uint32_t n_in,
    uint64_t seed)
{
    float      f, scale;
    size_t     i, size;
    uint8_t   *m;
    uint16_t   h;
    uint32_t   k;

    size = llm_type_row_size(t->type, n_in) * n_out;
    m = ops_alloc(size);
    scale = 1 / sqrtf((float) n_in);

    if (t->n_scales == 0) {
        for (i = 0; i < (size_t) n_out * n_in; i++) {
            f = scale * ops_normal(&seed);
            h = t->type == LLM_TYPE_F16 ? llm_f32_to_f16(f)
                                        : llm_f32_to_bf16(f);

            if (t->type == LLM_TYPE_F32) {
                memcpy(m + i * 4, &f, 4);

            } else {
                memcpy(m + i * 2, &h, 2);
            }
        }

        return m;
    }

    for (i = 0; i < size; i++) {
        m[i] = (uint8_t) ops_random(&seed);
    }

    for (i = 0; i < size; i += llm_type_block_size(t->type)) {
        for (k = 0; k < t->n_scales; k++) {
            h = llm_f32_to_f16(0.02f * scale * ops_normal(&seed));
            memcpy(m + i + t->scales[k], &h, 2);
        }
    }

    return m;
}


static void
make_mix(mix_t *m, const mix_case_t *c)
{
    size_t  i, n, gate, up, down;

    memset(m, 0, sizeof(mix_t));
    m->c = c;

    gate = llm_type_row_size(types[c->gate].type, c->n_in) * c->n_ff;
    up = llm_type_row_size(types[c->up].type, c->n_in) * c->n_ff;
    down = llm_type_row_size(types[c->down].type, c->n_ff) * c->n_in;
    n = c->n_experts;

    if (c->fused) {
        m->gate = make_matrix(&types[c->gate], 2 * c->n_ff * c->n_experts,
                              c->n_in, 1);
        m->up = m->gate + gate;
        m->stride[0] = m->stride[1] = 2 * gate;

    } else {
        m->gate = make_matrix(&types[c->gate], c->n_ff * c->n_experts,
                              c->n_in, 1);
        m->up = make_matrix(&types[c->up], c->n_ff * c->n_experts, c->n_in,
                            2);
        m->stride[0] = gate;
        m->stride[1] = up;
    }

    m->down = make_matrix(&types[c->down], c->n_in * c->n_experts, c->n_ff,
                          3);
    m->stride[2] = down;

    if (c->biases) {
        m->gate_bias = ops_alloc(n * c->n_ff * sizeof(float));
        m->up_bias = ops_alloc(n * c->n_ff * sizeof(float));
        m->down_bias = ops_alloc(n * c->n_in * sizeof(float));
        ops_fill(m->gate_bias, n * c->n_ff, 4);
        ops_fill(m->up_bias, n * c->n_ff, 5);
        ops_fill(m->down_bias, n * c->n_in, 6);

        /* beyond where gpt-oss cuts them off */
        for (i = 0; i < n * c->n_ff; i++) {
            m->gate_bias[i] *= 5;
            m->up_bias[i] *= 5;
        }
    }

    m->route = (llm_route_t) { .score = LLM_ROUTE_SIGMOID,
                               .n_experts = c->n_experts,
                               .n_used = c->n_used,
                               .normalize = c->n_used > 1, .scale = 1.5f };
}


static void
free_mix(mix_t *m)
{
    free(m->gate);
    free(m->c->fused ? NULL : m->up);
    free(m->down);
    free(m->gate_bias);
    free(m->up_bias);
    free(m->down_bias);
}


/*
 * Rows of x, order[i] the i-th if given, `step` at a time; y [rows] is in the
 * order of x again and starts as 0.5, which is added to
 */

static void
run_mix(llm_dev_t *dev, const mix_t *m, llm_rows_t kind, const float *x,
    const float *logits, const uint32_t *order, uint32_t rows, uint32_t step,
    float *y)
{
    float              half[512];
    uint32_t           i, n, row, r;
    llm_act_t         *ax, *al, *ay;
    llm_err_t          err;
    llm_vec_t         *v[3];
    llm_batch_t        b;
    llm_choice_t      *choice;
    llm_weight_t      *w[3];
    llm_experts_t      e;
    const mix_case_t  *c = m->c;
    const llm_ops_t   *o = dev->ops;
    llm_choice_opts_t  opts = { OPS_MAX_ROWS, c->n_experts, c->n_used,
                                c->n_in, c->n_ff };

    w[0] = c->ungated ? NULL
           : o->experts_create(dev, types[c->gate].type, c->n_experts,
                               c->n_ff, c->n_in, m->gate, m->stride[0],
                               &err);
    w[1] = o->experts_create(dev, types[c->up].type, c->n_experts, c->n_ff,
                             c->n_in, m->up, m->stride[1], &err);
    w[2] = o->experts_create(dev, types[c->down].type, c->n_experts,
                             c->n_in, c->n_ff, m->down, m->stride[2], &err);

    v[0] = v[1] = v[2] = NULL;

    if (c->biases) {
        n = c->n_experts;
        v[0] = o->vec_create(dev, m->gate_bias, n * c->n_ff, &err);
        v[1] = o->vec_create(dev, m->up_bias, n * c->n_ff, &err);
        v[2] = o->vec_create(dev, m->down_bias, n * c->n_in, &err);
    }

    choice = o->choice_create(dev, &opts, &err);
    ax = ops_act(dev, NULL, OPS_MAX_ROWS, c->n_in);
    al = ops_act(dev, NULL, OPS_MAX_ROWS, c->n_experts);
    ay = ops_act(dev, NULL, OPS_MAX_ROWS, c->n_in);

    e = (llm_experts_t) { w[0], w[1], w[2], v[0], v[1], v[2], c->act,
                          c->weigh_input, !c->fresh };

    for (i = 0; i < c->n_in; i++) {
        half[i] = 0.5f;
    }

    for (row = 0; row < rows; row += n) {
        n = llm_min(step, rows - row);

        for (i = 0; i < n; i++) {
            r = order ? order[row + i] : row + i;
            o->write(dev, ax, i, 1, x + (size_t) r * c->n_in);
            o->write(dev, al, i, 1, logits + (size_t) r * c->n_experts);
            o->write(dev, ay, i, 1, half);
        }

        ops_begin_rows(dev, &b, n);
        o->route(dev, kind, &m->route, al, choice);
        o->experts(dev, kind, &e, ax, choice, ay);
        o->end(dev, NULL);

        for (i = 0; i < n; i++) {
            r = order ? order[row + i] : row + i;
            memcpy(y + (size_t) r * c->n_in, o->map(dev, ay, i, 1),
                   c->n_in * sizeof(float));
        }
    }

    o->act_free(dev, ax);
    o->act_free(dev, al);
    o->act_free(dev, ay);
    o->choice_free(dev, choice);

    for (i = 0; i < 3; i++) {
        o->vec_free(dev, v[i]);
        o->weight_free(dev, w[i]);
    }
}


/* a row of W x + b in float64 */

static double
naive_dot(uint32_t type, const uint8_t *w, size_t row, const float *bias,
    const double *x, uint32_t n)
{
    float     v[512];
    double    sum;
    uint32_t  i;

    llm_dequantize(type, w + row * llm_type_row_size(type, n), v, n);
    sum = bias ? bias[row] : 0;

    for (i = 0; i < n; i++) {
        sum += v[i] * x[i];
    }

    return sum;
}


static double
naive_act(llm_glu_t act, double g, double u)
{
    switch (act) {

    case LLM_GLU_SILU:
        return g / (1 + exp(-g)) * u;

    case LLM_GLU_GELU:
        return g * u / 2 * (1 + tanh(0.7978845608028654
                                     * (g + 0.044715 * pow(g, 3))));

    case LLM_GLU_CLAMPED:
        g = fmin(g, 7);
        return g / (1 + exp(-1.702 * g)) * (fmax(fmin(u, 7), -7) + 1);

    default:
        return pow(fmax(g, 0), 2) * u;
    }
}


static void
naive_row(const mix_t *m, const float *x, const float *logits, float *y)
{
    double             weight[MAX_EXPERTS], in[512], h[512], sum[512], g, u;
    size_t             at;
    uint32_t           i, k, e, expert[MAX_EXPERTS];
    const mix_case_t  *c = m->c;

    naive_route(&m->route, NULL, NULL, logits, expert, weight);

    for (i = 0; i < c->n_in; i++) {
        sum[i] = c->fresh ? 0 : 0.5;
    }

    for (k = 0; k < c->n_used; k++) {
        e = expert[k];

        for (i = 0; i < c->n_in; i++) {
            in[i] = c->weigh_input ? x[i] * weight[k] : x[i];
        }

        for (i = 0; i < c->n_ff; i++) {
            at = e * (size_t) c->n_ff + i;

            u = naive_dot(types[c->up].type, m->up + e * m->stride[1], i,
                          NULL, in, c->n_in)
                + (m->up_bias ? m->up_bias[at] : 0);
            g = naive_dot(types[c->gate].type, m->gate + e * m->stride[0], i,
                          NULL, in, c->n_in)
                + (m->gate_bias ? m->gate_bias[at] : 0);

            h[i] = c->ungated ? naive_act(c->act, u, 1)
                              : naive_act(c->act, g, u);
        }

        for (i = 0; i < c->n_in; i++) {
            sum[i] += (c->weigh_input ? 1 : weight[k])
                      * naive_dot(types[c->down].type, m->down,
                                  e * (size_t) c->n_in + i, m->down_bias, h,
                                  c->n_ff);
        }
    }

    for (i = 0; i < c->n_in; i++) {
        y[i] = (float) sum[i];
    }
}


/* rows and logits of a case; 0.5 is what y starts as */

static void
make_rows(const mix_case_t *c, uint32_t rows, float *x, float *logits)
{
    uint32_t  i;

    ops_fill(x, (size_t) rows * c->n_in, 11);
    ops_fill(logits, (size_t) rows * c->n_experts, 12);

    for (i = 1; c->same && i < rows; i++) {
        memcpy(logits + (size_t) i * c->n_experts, logits,
               c->n_experts * sizeof(float));
    }
}


/* how far y is from what it should be, what it started as taken off */

static double
distance(const mix_case_t *c, float *y, float *want, size_t n)
{
    float   start;
    size_t  i;

    start = c->fresh ? 0 : 0.5f;

    for (i = 0; i < n; i++) {
        y[i] -= start;
        want[i] -= start;
    }

    return ops_distance(y, want, n);
}


static void
test_reference(const mix_case_t *c)
{
    enum { ROWS = 5 };

    float       x[ROWS * 512], logits[ROWS * MAX_EXPERTS], y[ROWS * 512];
    float       want[ROWS * 512];
    mix_t       m;
    double      d;
    uint32_t    i;
    llm_dev_t  *dev;

    make_mix(&m, c);
    make_rows(c, ROWS, x, logits);
    dev = ops_open(&llm_ops_reference, NULL, 1);
    run_mix(dev, &m, LLM_ROWS_ALL, x, logits, NULL, ROWS, ROWS, y);
    dev->ops->close(dev);

    for (i = 0; i < ROWS; i++) {
        naive_row(&m, x + i * c->n_in, logits + i * c->n_experts,
                  want + i * c->n_in);
    }

    d = distance(c, y, want, ROWS * c->n_in);
    ok(d < 1e-6, "reference: %s is what float64 gives: %.2g", c->name, d);

    free_mix(&m);
}


/* what rounding leaves: int8, bfloat16, or 16 bits for rows with results */

static double
tolerance(const mix_case_t *c, llm_rows_t kind)
{
    if (c->gate == F32 || (c->gate == F16 && c->up == F16)) {
        return 2e-6;
    }

    return kind == LLM_ROWS_OUT ? 2e-4 : 0.02;
}


static void
test_isa(const char *isa, const mix_case_t *c)
{
    enum { ROWS = 512, REF = 40 };

    int         same;
    float      *x, *logits, *y, *want;
    mix_t       m;
    size_t      n;
    double      d[2];
    uint32_t    i, k, swap, order[ROWS];
    uint64_t    seed;
    llm_dev_t  *dev, *ref;
    llm_rows_t  kind;

    static const uint32_t  steps[] = { 1, 7, 64, 512 };
    static const uint32_t  threads[] = { 1, 3 };

    n = (size_t) ROWS * c->n_in;
    x = ops_alloc(n * sizeof(float));
    y = ops_alloc(n * sizeof(float));
    want = ops_alloc(n * sizeof(float));
    logits = ops_alloc((size_t) ROWS * c->n_experts * sizeof(float));

    make_mix(&m, c);
    make_rows(c, ROWS, x, logits);

    ref = ops_open(&llm_ops_reference, NULL, 1);
    dev = ops_open(&llm_ops_cpu, isa, 2);

    for (k = 0; k < 2; k++) {
        kind = k ? LLM_ROWS_OUT : LLM_ROWS_ALL;
        run_mix(ref, &m, kind, x, logits, NULL, REF, REF, want);
        run_mix(dev, &m, kind, x, logits, NULL, REF, REF, y);
        d[k] = distance(c, y, want, (size_t) REF * c->n_in);
    }

    ok(d[0] <= tolerance(c, LLM_ROWS_ALL) && d[1] <= tolerance(c,
                                                               LLM_ROWS_OUT),
       "%s: %s is what the reference gives: %.2g, %.2g", isa, c->name, d[0],
       d[1]);

    ref->ops->close(ref);

    for (i = 0, seed = 5; i < ROWS; i++) {
        order[i] = i;
    }

    for (i = ROWS - 1; i > 0; i--) {
        k = (uint32_t) (ops_random(&seed) % (i + 1));
        swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }

    same = 1;

    for (i = 0; i < llm_nelems(threads); i++) {
        kind = i ? LLM_ROWS_OUT : LLM_ROWS_ALL;
        run_mix(dev, &m, kind, x, logits, NULL, ROWS, 13, want);
        dev->ops->close(dev);
        dev = ops_open(&llm_ops_cpu, isa, threads[i]);

        for (k = 0; k < llm_nelems(steps); k++) {
            memset(y, 0, n * sizeof(float));
            run_mix(dev, &m, kind, x, logits, i ? order : NULL, ROWS,
                    steps[k], y);
            same &= memcmp(y, want, n * sizeof(float)) == 0;
        }
    }

    dev->ops->close(dev);

    ok(same, "%s: %s: the same bits for rows alone, in any batch and order",
       isa, c->name);

    free_mix(&m);
    free(x);
    free(y);
    free(want);
    free(logits);
}


/* rows that are no numbers harm themselves alone */

static void
test_broken(const char *isa)
{
    enum { ROWS = 24 };

    int                good;
    float              x[ROWS * 64], logits[ROWS * 12], y[ROWS * 64];
    float              want[ROWS * 64];
    mix_t              m;
    uint32_t           i, row;
    llm_dev_t         *dev;
    static const mix_case_t  c = {
        "broken", 12, 3, 64, 64, Q8_0, Q8_0, Q4_0, LLM_GLU_SILU,
        0, 0, 0, 0, 0, 0
    };

    static const float  bad[] = { NAN, INFINITY, -INFINITY, -NAN };

    make_mix(&m, &c);
    make_rows(&c, ROWS, x, logits);
    dev = ops_open(&llm_ops_cpu, isa, 2);
    run_mix(dev, &m, LLM_ROWS_ALL, x, logits, NULL, ROWS, ROWS, want);

    for (row = 1; row < ROWS; row += 2) {
        if (row % 4 == 1) {
            logits[row * 12 + row % 12] = bad[row / 4 % 4];

        } else {
            x[row * 64 + row] = bad[row / 4 % 4];
        }
    }

    for (i = 0; i < 12; i++) {
        logits[5 * 12 + i] = NAN;
    }

    run_mix(dev, &m, LLM_ROWS_ALL, x, logits, NULL, ROWS, ROWS, y);
    dev->ops->close(dev);

    for (i = 0, good = 1; i < ROWS * 64; i++) {
        row = i / 64;
        good &= row % 2 == 0 ? memcmp(&y[i], &want[i], 4) == 0
                : row == 5 || row % 4 == 3 ? !isfinite(y[i]) : 1;
    }

    ok(good, "%s: rows that are no numbers leave the others alone", isa);
    free_mix(&m);
}


static void
test_gate_rows(const llm_ops_t *ops, const char *isa)
{
    enum { ROWS = 9, COLS = 37 };

    float        x[ROWS * COLS], gate[ROWS], y[ROWS * COLS], e;
    uint32_t     i, out[2] = { 0, 1 };
    llm_act_t   *ax, *ag;
    llm_dev_t   *dev;
    llm_batch_t  b;

    ops_fill(x, ROWS * COLS, 1);
    ops_fill(gate, ROWS, 2);

    dev = ops_open(ops, isa, 1);
    ax = ops_act(dev, x, ROWS, COLS);
    ag = ops_act(dev, gate, ROWS, 1);

    ops_begin_rows(dev, &b, ROWS);
    b.n_out = 2;
    b.out_rows = out;
    dev->ops->gate_rows(dev, LLM_ROWS_ALL, ag, ax);
    dev->ops->gate_rows(dev, LLM_ROWS_OUT, ag, ax);
    dev->ops->end(dev, NULL);
    ops_read(dev, ax, y, ROWS, COLS);

    for (i = 0, e = 0; i < ROWS * COLS; i++) {
        x[i] /= 1 + expf(-gate[i / COLS]);

        if (i / COLS < 2) {
            x[i] /= 1 + expf(-gate[i / COLS]);
        }

        e = fmaxf(e, fabsf(y[i] - x[i]));
    }

    ok(e < 1e-6f, "%s: rows times the sigmoid of their gate", ops->name);

    dev->ops->act_free(dev, ax);
    dev->ops->act_free(dev, ag);
    dev->ops->close(dev);
}


int
main(void)
{
    size_t             i, k;
    llm_err_t          err;
    llm_dev_t         *dev;
    llm_choice_opts_t  huge = { UINT32_MAX, 128, 8, 1 << 30, 1 << 30 };

    static const llm_choice_opts_t  wrong[] = {
        { 4, 8, 0, 32, 32 },
        { 4, 8, 9, 32, 32 },
        { 4, 0, 0, 32, 32 },
        { 4, LLM_MAX_EXPERTS + 1, 1, 32, 32 },
    };

    test_gate_rows(&llm_ops_reference, NULL);

    for (i = 0; i < llm_nelems(cases); i++) {
        test_reference(&cases[i]);
    }

    for (k = 0; k < llm_nelems(ops_isas); k++) {
        dev = ops_open(&llm_ops_cpu, ops_isas[k], 1);

        if (dev == NULL) {
            skip(ops_isas[k]);
            continue;
        }

        err.msg[0] = '\0';
        ok(dev->ops->choice_create(dev, &huge, &err) == NULL && err.msg[0],
           "%s: too much memory: %s", ops_isas[k], err.msg);

        for (i = 0; i < llm_nelems(wrong); i++) {
            err.msg[0] = '\0';
            ok(dev->ops->choice_create(dev, &wrong[i], &err) == NULL
               && err.msg[0], "%s: %s", ops_isas[k], err.msg);
        }

        dev->ops->close(dev);

        for (i = 0; i < llm_nelems(cases); i++) {
            test_isa(ops_isas[k], &cases[i]);
        }

        test_broken(ops_isas[k]);
        test_gate_rows(&llm_ops_cpu, ops_isas[k]);
    }

    return done_testing();
}
