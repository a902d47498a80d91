/*
 * Recurrent layers: the short convolution, the gated delta rule and the
 * selective scan against computations in float64, on the reference, every
 * instruction set and the CUDA backend in the emulator (LLM_GPU_DEVICE=cuda: on
 * a GPU); and the same bits however sequences are cut into steps, whoever
 * shares the step, however many threads there are, and from a copy of a state.
 */

#include "t/unit/ops.h"
#include "t/unit/emu_count.h"
#include "t/unit/emu_dev.h"

#include <string.h>

#define N_SEQS     3
#define N_SLOTS    5

typedef enum { CONV, DELTA, SCAN } kind_t;

typedef struct {
    const char   *name;
    kind_t        kind;
    uint32_t      width;                /* of a convolution; silu, bias */
    int           silu;
    int           bias;
    uint32_t      n_heads;              /* of V; or channels */
    uint32_t      n_groups;             /* heads of K */
    uint32_t      n_rows;
    uint32_t      n_cols;
    int           tiled;
    float         dt_min;
} case_t;

static const case_t  cases[] = {
    { "convolution of 4", CONV, 4, 1, 0, 300, 0, 0, 0, 0, 0 },
    { "convolution of 4, bias", CONV, 4, 1, 1, 64, 0, 0, 0, 0, 0 },
    { "convolution of 3, no SiLU", CONV, 3, 0, 0, 37, 0, 0, 0, 0, 0 },
    { "convolution of 2", CONV, 2, 0, 1, 5, 0, 0, 0, 0, 0 },
    { "convolution of 1", CONV, 1, 1, 1, 20, 0, 0, 0, 0, 0 },
    { "convolution of 32", CONV, 32, 1, 0, 19, 0, 0, 0, 0, 0 },
    { "convolution of many channels", CONV, 4, 1, 1, 2500, 0, 0, 0, 0, 0 },
    { "delta rule, tiled", DELTA, 1, 0, 0, 6, 2, 32, 32, 1, 0 },
    { "delta rule, grouped", DELTA, 1, 0, 0, 6, 2, 24, 20, 0, 0 },
    { "delta rule, 128 x 128", DELTA, 1, 0, 0, 2, 2, 128, 128, 1, 0 },
    { "delta rule, odd sizes", DELTA, 1, 0, 0, 3, 1, 7, 81, 1, 0 },
    { "delta rule, 1 x 1", DELTA, 1, 0, 0, 2, 1, 1, 1, 0, 0 },
    { "scan", SCAN, 1, 0, 0, 4, 1, 32, 64, 0, 0 },
    { "scan, groups, steps not below 0.6", SCAN, 1, 0, 0, 6, 3, 16, 24, 0,
      0.6f },
    { "scan, odd sizes", SCAN, 1, 0, 0, 5, 5, 9, 133, 0, 0 }
};

/* what a case is made of; x has the rows of one sequence behind the other */
typedef struct {
    const case_t  *c;
    uint32_t       cols;                /* of x */
    uint32_t       out;                 /* of y */
    uint32_t       first[N_SEQS + 1];   /* row of each sequence */
    float         *x;
    float         *dt;                  /* [rows][n_heads] */
    float         *beta;
    float         *w;                   /* [width][channels] */
    float         *vec[3];              /* a, dt's bias, d; or a bias */
    double        *want;
} input_t;


static void
make_input(input_t *in, const case_t *c)
{
    uint32_t  i, rows;
    uint64_t  seed;

    static const uint32_t  lengths[N_SEQS] = { 75, 34, 3 };

    in->c = c;
    in->first[0] = 0;

    for (i = 0; i < N_SEQS; i++) {
        in->first[i + 1] = in->first[i] + lengths[i];
    }

    rows = in->first[N_SEQS];
    in->out = c->kind == CONV ? c->n_heads : c->n_heads * c->n_cols;
    in->cols = c->kind == CONV ? c->n_heads
                               : in->out + 2 * c->n_groups * c->n_rows;

    in->x = ops_alloc((size_t) rows * in->cols * sizeof(float));
    in->dt = ops_alloc((size_t) rows * c->n_heads * sizeof(float));
    in->beta = ops_alloc((size_t) rows * c->n_heads * sizeof(float));
    in->w = ops_alloc((size_t) c->width * c->n_heads * sizeof(float));
    in->want = ops_alloc((size_t) rows * in->out * sizeof(double));

    ops_fill(in->x, (size_t) rows * in->cols, 1);
    ops_fill(in->dt, (size_t) rows * c->n_heads, 2);
    ops_fill(in->beta, (size_t) rows * c->n_heads, 3);
    ops_fill(in->w, (size_t) c->width * c->n_heads, 4);

    for (i = 0; i < 3; i++) {
        in->vec[i] = ops_alloc(c->n_heads * sizeof(float));
        ops_fill(in->vec[i], c->n_heads, 5 + i);
    }

    /* decays between 0 and 1 */

    for (i = 0, seed = 9; c->kind != CONV && i < c->n_heads; i++) {
        in->vec[0][i] = -0.05f - (float) (ops_random(&seed) % 100) / 90.0f;
    }
}


static void
free_input(input_t *in)
{
    uint32_t  i;

    free(in->x);
    free(in->dt);
    free(in->beta);
    free(in->w);
    free(in->want);

    for (i = 0; i < 3; i++) {
        free(in->vec[i]);
    }
}


/* ---- in float64, from the formulas of kernels.h ---- */

static double
softplus(double x)
{
    return log(1 + exp(x));
}


static void
naive_conv(input_t *in, uint32_t from, uint32_t end)
{
    double         sum;
    uint32_t       t, i, k;
    const case_t  *c = in->c;

    for (t = from; t < end; t++) {
        for (i = 0; i < in->out; i++) {
            sum = c->bias ? in->vec[0][i] : 0;

            for (k = 0; k < c->width && k <= t - from; k++) {
                sum += (double) in->w[(c->width - 1 - k) * in->out + i]
                       * in->x[(size_t) (t - k) * in->cols + i];
            }

            in->want[(size_t) t * in->out + i]
                = c->silu ? sum / (1 + exp(-sum)) : sum;
        }
    }
}


/* q and k of one row, normalised if it is the delta rule */

static void
naive_keys(const input_t *in, uint32_t t, uint32_t h, double *q, double *k)
{
    double         qq, kk;
    uint32_t       i, of;
    const float   *x, *xq, *xk;
    const case_t  *c = in->c;

    x = in->x + (size_t) t * in->cols;
    of = c->tiled ? h % c->n_groups : h / (c->n_heads / c->n_groups);

    if (c->kind == DELTA) {
        xq = x + of * c->n_rows;
        xk = x + (c->n_groups + of) * c->n_rows;

    } else {
        xk = x + in->out + of * c->n_rows;
        xq = x + in->out + (c->n_groups + of) * c->n_rows;
    }

    for (i = 0, qq = kk = 1e-6; i < c->n_rows; i++) {
        qq += (double) xq[i] * xq[i];
        kk += (double) xk[i] * xk[i];
    }

    for (i = 0; i < c->n_rows; i++) {
        q[i] = xq[i];
        k[i] = xk[i];

        if (c->kind == DELTA) {
            q[i] /= sqrt(qq) * sqrt(c->n_rows);
            k[i] /= sqrt(kk);
        }
    }
}


static void
naive_head(input_t *in, uint32_t h, uint32_t from, uint32_t end)
{
    double         *s, *y, q[256], k[256], g, step, sum, d;
    uint32_t        t, i, j;
    const float    *v;
    const case_t   *c = in->c;

    s = ops_alloc((size_t) c->n_rows * c->n_cols * sizeof(double));

    for (t = from; t < end; t++) {
        naive_keys(in, t, h, q, k);
        v = in->x + (size_t) t * in->cols + h * c->n_cols
            + (c->kind == DELTA ? 2 * c->n_groups * c->n_rows : 0);
        y = in->want + (size_t) t * in->out + h * c->n_cols;

        step = softplus((double) in->dt[t * c->n_heads + h]
                        + in->vec[1][h]);
        step = step < (double) c->dt_min ? (double) c->dt_min : step;
        g = exp(in->vec[0][h] * step);

        for (j = 0; j < c->n_cols; j++) {
            sum = 0;

            for (i = 0; i < c->n_rows; i++) {
                s[i * c->n_cols + j] *= g;
                sum += s[i * c->n_cols + j] * k[i];
            }

            d = c->kind == DELTA
                ? (v[j] - sum) / (1 + exp(-in->beta[t * c->n_heads + h]))
                : step * v[j];
            y[j] = c->kind == DELTA ? 0 : in->vec[2][h] * v[j];

            for (i = 0; i < c->n_rows; i++) {
                s[i * c->n_cols + j] += k[i] * d;
                y[j] += s[i * c->n_cols + j] * q[i];
            }
        }
    }

    free(s);
}


static void
naive(input_t *in)
{
    uint32_t  i, h;

    for (i = 0; i < N_SEQS; i++) {
        if (in->c->kind == CONV) {
            naive_conv(in, in->first[i], in->first[i + 1]);
            continue;
        }

        for (h = 0; h < in->c->n_heads; h++) {
            naive_head(in, h, in->first[i], in->first[i + 1]);
        }
    }
}


/* ---- on a device ---- */

typedef struct {
    llm_exec_t     *exec;
    const input_t  *in;
    llm_state_t    *st;
    llm_vec_t      *w;
    llm_vec_t      *vec[3];
    float          *y;                  /* [rows][out] of all sequences */
    uint32_t        done[N_SEQS];
    uint32_t        slot[N_SEQS];
} run_t;


static void
operate(const run_t *r, const llm_act_t *x, const llm_act_t *dt,
    const llm_act_t *beta, llm_act_t *y)
{
    const case_t     *c = r->in->c;
    const llm_ops_t  *o = r->exec->ops;

    llm_conv_t   conv = { 1, r->w, c->bias ? r->vec[0] : NULL, c->silu };
    llm_delta_t  delta = { 1, c->n_groups, c->n_heads, c->n_rows, c->n_cols,
                           c->tiled, r->vec[0], r->vec[1] };
    llm_scan_t   scan = { 1, c->n_heads, c->n_cols, c->n_groups, c->n_rows,
                          c->dt_min, r->vec[0], r->vec[1], r->vec[2] };

    switch (c->kind) {

    case CONV:
        o->conv(r->exec, &conv, x, r->st, y);
        break;

    case DELTA:
        o->delta(r->exec, &delta, x, dt, beta, r->st, y);
        break;

    case SCAN:
        o->scan(r->exec, &scan, x, dt, r->st, y);
        break;
    }
}


/* the next rows of one buffer of the step, from those of all sequences */

static llm_act_t *
take_rows(const run_t *r, const float *all, uint32_t cols,
    const uint32_t *take)
{
    float      *p;
    uint32_t    i, n;
    llm_act_t  *a;

    p = ops_alloc((size_t) OPS_MAX_ROWS * cols * sizeof(float));

    for (i = 0, n = 0; i < N_SEQS; n += take[i++]) {
        memcpy(p + (size_t) n * cols,
               all + (size_t) (r->in->first[i] + r->done[i]) * cols,
               (size_t) take[i] * cols * sizeof(float));
    }

    a = ops_act(r->exec, p, n, cols);
    free(p);

    return a;
}


/* one step: take[i] more rows of sequence i, 0: it sits the step out */

static void
step(run_t *r, const uint32_t *take)
{
    uint32_t          i, k, n, n_seqs;
    uint32_t          pos[OPS_MAX_ROWS], ends[N_SEQS + 1], slots[N_SEQS];
    uint32_t          kv_len[N_SEQS] = { 0, 0, 0 }, pages[1] = { 0 };
    int32_t           tokens[OPS_MAX_ROWS] = { 0 };
    llm_act_t        *x, *dt, *beta, *y;
    llm_batch_t       b;
    const case_t     *c = r->in->c;
    const llm_ops_t  *o = r->exec->ops;

    ends[0] = 0;

    for (i = 0, n = 0, n_seqs = 0; i < N_SEQS; i++) {
        for (k = 0; k < take[i]; k++) {
            pos[n++] = r->done[i] + k;
        }

        if (take[i]) {
            slots[n_seqs++] = r->slot[i];
            ends[n_seqs] = n;
        }
    }

    memset(&b, 0, sizeof(b));
    b.n_tokens = n;
    b.n_seqs = n_seqs;
    b.tokens = tokens;
    b.pos = pos;
    b.seq_rows = ends;
    b.kv_len = kv_len;
    b.pages[LLM_KV_FULL] = pages;
    b.slots = slots;

    x = take_rows(r, r->in->x, r->in->cols, take);
    dt = take_rows(r, r->in->dt, c->n_heads, take);
    beta = take_rows(r, r->in->beta, c->n_heads, take);
    y = ops_act(r->exec, NULL, n, r->in->out);

    o->begin(r->exec, &b, NULL);
    operate(r, x, dt, beta, y);
    o->end(r->exec, NULL);

    for (i = 0, n = 0; i < N_SEQS; n += take[i++]) {
        if (take[i]) {
            memcpy(r->y + (size_t) (r->in->first[i] + r->done[i])
                          * r->in->out,
                   o->map(r->exec, y, n, take[i]),
                   (size_t) take[i] * r->in->out * sizeof(float));
            r->done[i] += take[i];
        }
    }

    o->act_free(r->exec, x);
    o->act_free(r->exec, dt);
    o->act_free(r->exec, beta);
    o->act_free(r->exec, y);
}


/* all sequences, cut at random; seed 0: whole */

static void
run(run_t *r, uint64_t seed)
{
    uint32_t  i, left, busy, cut, take[N_SEQS];

    for (i = 0; i < N_SEQS; i++) {
        r->done[i] = 0;
        r->slot[i] = (i + (uint32_t) seed) % N_SLOTS;
    }

    do {
        for (i = 0, busy = 0; i < N_SEQS; i++) {
            left = r->in->first[i + 1] - r->in->first[i] - r->done[i];
            take[i] = left;

            if (seed) {
                cut = (uint32_t) (ops_random(&seed) % (seed % 3 ? 3 : 40));
                take[i] = llm_min(cut, left);
            }

            busy += take[i];
        }

        if (busy) {
            step(r, take);
        }

        for (i = 0, left = 0; i < N_SEQS; i++) {
            left += r->in->first[i + 1] - r->in->first[i] - r->done[i];
        }

    } while (left);
}


/* the last sequence's state is copied between its rows, to a slot that
   another has used, and the old one is given to others */

static void
run_copied(run_t *r)
{
    uint32_t  i, take[N_SEQS];

    for (i = 0; i < N_SEQS; i++) {
        r->done[i] = 0;
        r->slot[i] = i;
    }

    take[0] = 40;
    take[1] = 5;
    take[2] = 2;
    step(r, take);

    r->exec->ops->state_copy(r->exec, r->st, 0, 4);
    r->exec->ops->state_copy(r->exec, r->st, 1, 0);
    r->exec->ops->state_copy(r->exec, r->st, 4, 1);
    r->slot[0] = 1;
    r->slot[1] = 0;

    for (i = 0; i < N_SEQS; i++) {
        take[i] = r->in->first[i + 1] - r->in->first[i] - r->done[i];
    }

    step(r, take);
}


static double
distance(const input_t *in, const float *y)
{
    size_t  i, n;
    double  d, all;

    n = (size_t) in->first[N_SEQS] * in->out;

    for (i = 0, d = 0, all = 0; i < n; i++) {
        d += (y[i] - in->want[i]) * (y[i] - in->want[i]);
        all += in->want[i] * in->want[i];
    }

    return sqrt(d / all);
}


static void
open_run(run_t *r, llm_exec_t *exec, const input_t *in)
{
    uint32_t          i;
    const case_t     *c = in->c;
    const llm_ops_t  *o = exec->ops;

    static llm_state_layer_t  layers[2];

    llm_state_opts_t  opts = { 2, N_SLOTS, layers };

    /* the case's layer lies behind another one */

    layers[0] = (llm_state_layer_t) { 3, 2, 1, 1, 5 };
    layers[1] = (llm_state_layer_t) { 2, 2, c->n_heads, c->n_rows,
                                      c->n_cols };

    if (c->kind == CONV) {
        layers[1] = (llm_state_layer_t) { c->n_heads, c->width, 0, 0, 0 };
    }

    memset(r, 0, sizeof(run_t));
    r->exec = exec;
    r->in = in;
    r->st = o->state_create(exec, &opts, NULL);
    r->w = o->vec_create(exec, in->w, c->width * c->n_heads, NULL);

    for (i = 0; i < 3; i++) {
        r->vec[i] = o->vec_create(exec, in->vec[i], c->n_heads, NULL);
    }

    r->y = ops_alloc((size_t) in->first[N_SEQS] * in->out * sizeof(float));
}


static void
close_run(run_t *r)
{
    uint32_t  i;

    r->exec->ops->state_free(r->exec, r->st);
    r->exec->ops->vec_free(r->exec, r->w);

    for (i = 0; i < 3; i++) {
        r->exec->ops->vec_free(r->exec, r->vec[i]);
    }

    free(r->y);
}


/* calls of the emulator so far that set a kernel's attribute; of other devices
   nothing is counted */

static unsigned long
attributes_set(const llm_ops_t *ops)
{
    return ops || getenv("LLM_GPU_DEVICE") ? 0
                                           : emu_count("cudaFuncSetAttribute");
}


/* ops NULL: the device that emu_dev.h opens */

static llm_exec_t *
open_device(const llm_ops_t *ops, const char *isa, uint32_t threads)
{
    llm_exec_opts_t  o;

    if (ops) {
        return ops_open(ops, isa, threads);
    }

    memset(&o, 0, sizeof(o));
    o.max_tokens = OPS_MAX_ROWS;
    o.max_seqs = OPS_MAX_SEQS;
    o.max_pages = OPS_MAX_PAGES;

    return open_tested(&o);
}


static void
check_device(const input_t *in, const llm_ops_t *ops, const char *isa,
    double bound)
{
    int            same;
    float         *whole;
    run_t          r;
    size_t         size;
    double         d;
    uint64_t       seed;
    llm_exec_t    *exec;
    unsigned long  set;

    const char  *name = in->c->name;

    exec = open_device(ops, isa, 1);

    if (exec == NULL) {
        skip(isa);
        return;
    }

    isa = isa ? isa : "reference";
    size = (size_t) in->first[N_SEQS] * in->out * sizeof(float);
    whole = ops_alloc(size);

    open_run(&r, exec, in);
    run(&r, 0);
    d = distance(in, r.y);
    ok(d <= bound, "%s: %s: %.2g of the values, at most %.2g", isa, name, d,
       bound);
    memcpy(whole, r.y, size);
    set = attributes_set(ops);

    for (seed = 1, same = 1; seed < 6; seed++) {
        run(&r, seed);
        same &= memcmp(whole, r.y, size) == 0;
    }

    is_int(attributes_set(ops) - set, 0, "%s: %s: no kernel's attribute is set "
           "again", isa, name);

    ok(same, "%s: %s: the same bits in any steps", isa, name);

    run_copied(&r);
    ok(memcmp(whole, r.y, size) == 0, "%s: %s: the same bits from a copy",
       isa, name);
    close_run(&r);
    exec->ops->close(exec);

    exec = open_device(ops, strcmp(isa, "reference") == 0 ? NULL : isa, 3);
    open_run(&r, exec, in);
    run(&r, 7);
    ok(memcmp(whole, r.y, size) == 0, "%s: %s: and with three threads", isa,
       name);
    close_run(&r);
    exec->ops->close(exec);

    free(whole);
}


/* sizes of a hostile file */

static void
check_sizes(const llm_ops_t *ops, const char *what)
{
    llm_err_t         err;
    llm_exec_t       *exec;
    llm_state_t      *st;
    llm_state_opts_t  o;

    static const llm_state_layer_t  layers[] = {
        { 4, 3, 2, 3, 5 }, { 0, 0, 0, 0, 0 },
        { 1, 1, UINT32_MAX, UINT32_MAX, UINT32_MAX },
        { UINT32_MAX, LLM_MAX_CONV, 1u << 20, 1u << 20, 1u << 20 },
        { UINT32_MAX, LLM_MAX_CONV, 1u << 20, 1u << 20, 1u << 20 },
    };

    exec = open_device(ops, NULL, 1);

    if (exec == NULL) {
        skip(what);
        return;
    }

    ops = exec->ops;
    o = (llm_state_opts_t) { 2, 1, layers };
    ok(ops->state_size(exec, &o) >= (2 * 4 + 30) * 4
       && ops->state_size(exec, &o) < 1024, "%s: a slot's size", what);

    o = (llm_state_opts_t) { 1, 1, layers + 2 };
    ok(ops->state_size(exec, &o) == SIZE_MAX
       && ops->state_create(exec, &o, &err) == NULL
       && strstr(err.msg, "no memory"), "%s: a product too large", what);

    o = (llm_state_opts_t) { 2, 1, layers + 3 };
    ok(ops->state_size(exec, &o) == SIZE_MAX, "%s: a sum too large", what);

    o = (llm_state_opts_t) { 1, UINT32_MAX, layers + 3 };
    st = ops->state_create(exec, &o, &err);
    ok(st == NULL, "%s: too many slots", what);

    exec->ops->close(exec);
}


int
main(void)
{
    size_t   i, k;
    input_t  in;

    (void) setenv("LLM_EMU_SEED", "19", 0);

    for (i = 0; i < llm_nelems(cases); i++) {
        make_input(&in, &cases[i]);
        naive(&in);

        check_device(&in, &llm_ops_reference, NULL, 1e-6);

        for (k = 0; k < llm_nelems(ops_isas); k++) {
            check_device(&in, &llm_ops_cpu, ops_isas[k], 2e-6);
        }

        check_device(&in, NULL, "the CUDA backend", 2e-6);

        free_input(&in);
    }

    check_sizes(&llm_ops_reference, "reference");
    check_sizes(&llm_ops_cpu, "cpu");
    check_sizes(NULL, "the CUDA backend");

    return done_testing();
}
