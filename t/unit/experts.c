/*
 * Mixtures of experts: the reference against a computation in float64, every
 * instruction set against the reference, and the same bits for a row alone
 * and among any others.  How rows choose is route.c's.
 *
 * Where x is rounded to int8, so is what is inside of an expert: the results
 * of random weights are then some 0.01 of their deviation off.
 */

#include "t/unit/mix.h"

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

            u = naive_dot(m->type[1], m->up + e * m->stride[1], i,
                          NULL, in, c->n_in)
                + (m->up_bias ? m->up_bias[at] : 0);
            g = naive_dot(m->type[0], m->gate + e * m->stride[0], i,
                          NULL, in, c->n_in)
                + (m->gate_bias ? m->gate_bias[at] : 0);

            h[i] = c->ungated ? naive_act(c->act, u, 1)
                              : naive_act(c->act, g, u);
        }

        for (i = 0; i < c->n_in; i++) {
            sum[i] += (c->weigh_input ? 1 : weight[k])
                      * naive_dot(m->type[2], m->down,
                                  e * (size_t) c->n_in + i, m->down_bias, h,
                                  c->n_ff);
        }
    }

    for (i = 0; i < c->n_in; i++) {
        y[i] = (float) sum[i];
    }
}


static void
test_reference(const mix_case_t *c)
{
    enum { ROWS = 5 };

    float        x[ROWS * 512], logits[ROWS * MAX_EXPERTS], y[ROWS * 512];
    float        want[ROWS * 512];
    mix_t        m;
    double       d;
    uint32_t     i;
    llm_exec_t  *exec;

    make_mix(&m, c);
    make_rows(c, ROWS, x, logits);
    exec = ops_open(&llm_ops_reference, NULL, 1);
    run_mix(exec, &m, LLM_ROWS_ALL, x, logits, NULL, ROWS, ROWS, y);
    exec->ops->close(exec);

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

    int          same;
    float       *x, *logits, *y, *want;
    mix_t        m;
    size_t       n;
    double       d[2];
    uint32_t     i, k, swap, order[ROWS];
    uint64_t     seed;
    llm_exec_t  *exec, *ref;
    llm_rows_t   kind;

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
    exec = ops_open(&llm_ops_cpu, isa, 2);

    for (k = 0; k < 2; k++) {
        kind = k ? LLM_ROWS_OUT : LLM_ROWS_ALL;
        run_mix(ref, &m, kind, x, logits, NULL, REF, REF, want);
        run_mix(exec, &m, kind, x, logits, NULL, REF, REF, y);
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
        run_mix(exec, &m, kind, x, logits, NULL, ROWS, 13, want);
        exec->ops->close(exec);
        exec = ops_open(&llm_ops_cpu, isa, threads[i]);

        for (k = 0; k < llm_nelems(steps); k++) {
            memset(y, 0, n * sizeof(float));
            run_mix(exec, &m, kind, x, logits, i ? order : NULL, ROWS,
                    steps[k], y);
            same &= memcmp(y, want, n * sizeof(float)) == 0;
        }
    }

    exec->ops->close(exec);

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
    llm_exec_t        *exec;
    static const mix_case_t  c = {
        "broken", 12, 3, 64, 64, Q8_0, Q8_0, Q4_0, LLM_GLU_SILU,
        0, 0, 0, 0, 0, 0
    };

    static const float  bad[] = { NAN, INFINITY, -INFINITY, -NAN };

    make_mix(&m, &c);
    make_rows(&c, ROWS, x, logits);
    exec = ops_open(&llm_ops_cpu, isa, 2);
    run_mix(exec, &m, LLM_ROWS_ALL, x, logits, NULL, ROWS, ROWS, want);

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

    run_mix(exec, &m, LLM_ROWS_ALL, x, logits, NULL, ROWS, ROWS, y);
    exec->ops->close(exec);

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
    llm_exec_t  *exec;
    llm_batch_t  b;

    ops_fill(x, ROWS * COLS, 1);
    ops_fill(gate, ROWS, 2);

    exec = ops_open(ops, isa, 1);
    ax = ops_act(exec, x, ROWS, COLS);
    ag = ops_act(exec, gate, ROWS, 1);

    ops_begin_rows(exec, &b, ROWS);
    b.n_out = 2;
    b.out_rows = out;
    exec->ops->gate_rows(exec, LLM_ROWS_ALL, ag, ax);
    exec->ops->gate_rows(exec, LLM_ROWS_OUT, ag, ax);
    exec->ops->end(exec, NULL);
    ops_read(exec, ax, y, ROWS, COLS);

    for (i = 0, e = 0; i < ROWS * COLS; i++) {
        x[i] /= 1 + expf(-gate[i / COLS]);

        if (i / COLS < 2) {
            x[i] /= 1 + expf(-gate[i / COLS]);
        }

        e = fmaxf(e, fabsf(y[i] - x[i]));
    }

    ok(e < 1e-6f, "%s: rows times the sigmoid of their gate", ops->name);

    exec->ops->act_free(exec, ax);
    exec->ops->act_free(exec, ag);
    exec->ops->close(exec);
}


int
main(void)
{
    size_t             i, k;
    llm_err_t          err;
    llm_exec_t        *exec;
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
        exec = ops_open(&llm_ops_cpu, ops_isas[k], 1);

        if (exec == NULL) {
            skip(ops_isas[k]);
            continue;
        }

        err.msg[0] = '\0';
        ok(exec->ops->choice_create(exec, &huge, &err) == NULL && err.msg[0],
           "%s: too much memory: %s", ops_isas[k], err.msg);

        for (i = 0; i < llm_nelems(wrong); i++) {
            err.msg[0] = '\0';
            ok(exec->ops->choice_create(exec, &wrong[i], &err) == NULL
               && err.msg[0], "%s: %s", ops_isas[k], err.msg);
        }

        exec->ops->close(exec);

        for (i = 0; i < llm_nelems(cases); i++) {
            test_isa(ops_isas[k], &cases[i]);
        }

        test_broken(ops_isas[k]);
        test_gate_rows(&llm_ops_cpu, ops_isas[k]);
    }

    return done_testing();
}
