/*
 * Mixtures of experts by the CUDA backend in the emulator: the choice of a
 * row, all types of weights, and the cases of mix.h against the reference; the
 * same bits for a row alone and among any others, launched as in a replayed
 * step, in which every step chooses other experts.  LLM_GPU_DEVICE=cuda: on a
 * GPU instead (t/gpu/run.sh).
 */

#include "t/unit/mix.h"
#include "t/unit/emu_ops.h"

#define MIX_ROWS  80


/* on a device of its own: a captured step belongs to its buffers */

static void
run_new(const mix_t *m, uint32_t type, llm_rows_t kind, const float *x,
    const float *logits, const uint32_t *order, uint32_t rows, uint32_t step,
    float *y)
{
    llm_exec_t  *d;

    d = open_emu(type, 0, 0);
    run_mix(d, m, kind, x, logits, order, rows, step, y);
    d->ops->close(d);
}


static void
run_reference(const mix_t *m, const float *x, const float *logits,
    uint32_t rows, float *y)
{
    llm_exec_t  *d;

    d = ops_open(&llm_ops_reference, NULL, 1);
    run_mix(d, m, LLM_ROWS_ALL, x, logits, NULL, rows, rows, y);
    d->ops->close(d);
}


/* the 16 bits that x and the weights are rounded to: 2^-11 or 2^-8 each */

static double
tolerance(uint32_t type)
{
    return type == LLM_TYPE_BF16 ? 0.01 : 0.0015;
}


/* scaled: a factor for each matrix of each expert */

static void
test_case(const mix_case_t *c, uint32_t type, int scaled)
{
    enum { REF = 40, ALONE = 12 };

    int         same;
    float      *x, *logits, *y, *want, scales[3 * MAX_EXPERTS];
    mix_t       m;
    size_t      n;
    double      far;
    uint32_t    i, k, swap, order[MIX_ROWS];
    uint64_t    seed;
    llm_rows_t  kind;

    static const uint32_t  steps[] = { 1, 7, 64, MIX_ROWS };

    n = (size_t) MIX_ROWS * c->n_in;
    x = ops_alloc(n * sizeof(float));
    y = ops_alloc(n * sizeof(float));
    want = ops_alloc(n * sizeof(float));
    logits = ops_alloc((size_t) MIX_ROWS * c->n_experts * sizeof(float));

    make_mix(&m, c);
    make_rows(c, MIX_ROWS, x, logits);
    ops_fill(scales, 3 * c->n_experts, 9);

    for (i = 0; scaled && i < 3; i++) {
        m.scales[i] = scales + i * c->n_experts;
    }

    run_reference(&m, x, logits, REF, want);
    run_new(&m, type, LLM_ROWS_ALL, x, logits, NULL, REF, REF, y);
    far = distance(c, y, want, (size_t) REF * c->n_in);
    ok(far <= tolerance(type), "%s: %s%s: %.2g", llm_type_name(type),
       c->name, scaled ? ", with factors" : "", far);

    for (i = 0, seed = 5; i < MIX_ROWS; i++) {
        order[i] = i;
    }

    for (i = MIX_ROWS - 1; i > 0; i--) {
        k = (uint32_t) (ops_random(&seed) % (i + 1));
        swap = order[i];
        order[i] = order[k];
        order[k] = swap;
    }

    run_new(&m, type, LLM_ROWS_ALL, x, logits, NULL, MIX_ROWS, 13, want);

    for (k = 0, same = 1; k < llm_nelems(steps); k++) {
        kind = k % 2 ? LLM_ROWS_OUT : LLM_ROWS_ALL;
        i = steps[k] == 1 ? ALONE : MIX_ROWS;
        n = (size_t) i * c->n_in;
        memset(y, 0, n * sizeof(float));
        run_new(&m, type, kind, x, logits, steps[k] == 1 ? NULL : order, i,
                steps[k], y);
        same &= memcmp(y, want, n * sizeof(float)) == 0;
    }

    ok(same, "%s: %s: the same bits for rows alone, in any batch and order",
       llm_type_name(type), c->name);

    free_mix(&m);
    free(x);
    free(y);
    free(want);
    free(logits);
}


/* ---- every type ---- */

static const uint32_t  all_types[] = {
#define LLM_TYPE(NAME, name, number, block, bytes)  LLM_TYPE_##NAME,
#include "kernels/types.def"
};


/* by what x must be multiplied so that products are about 1: inside of an
   expert they must not leave the range of 16 bits */

static float
fitting(uint32_t type, const uint8_t *m, uint32_t wide)
{
    float     row[256];
    double    sum;
    uint32_t  i, k;

    for (sum = 0, i = 0; i < wide; i++) {
        llm_dequantize(type, m + i * llm_type_row_size(type, wide), row,
                       wide);

        for (k = 0; k < wide; k++) {
            sum += (double) row[k] * row[k];
        }
    }

    return (float) (1 / sqrt(sum / wide));
}


static void
test_type(uint32_t type)
{
    enum { ROWS = 40, ALONE = 3, WIDTH = 256, FEW = 48 };

    float       fit, *x, *logits, *y, *want;
    mix_t       m;
    double      far;
    uint32_t    i, wide;

    mix_case_t  c = { "type", 6, 2, 0, 0, 0, 0, 0, LLM_GLU_SILU,
                      0, 0, 0, 0, 0, 1 };

    wide = llm_type_block(type) == WIDTH ? WIDTH : FEW;
    wide = llm_type_block(type) == 32 ? 3 * 32 : wide;
    wide = llm_type_block(type) == 64 ? 2 * 64 : wide;
    c.n_in = wide;
    c.n_ff = wide;

    memset(&m, 0, sizeof(m));
    m.c = &c;
    m.type[0] = m.type[1] = m.type[2] = type;
    m.stride[0] = llm_type_row_size(type, wide) * wide;
    m.stride[1] = m.stride[2] = m.stride[0];
    m.gate = matrix(type, wide * c.n_experts, wide, 31);
    m.up = matrix(type, wide * c.n_experts, wide, 32);
    m.down = matrix(type, wide * c.n_experts, wide, 33);
    m.route = (llm_route_t) { .score = LLM_ROUTE_CHOSEN,
                              .n_experts = c.n_experts, .n_used = c.n_used,
                              .scale = 1 };

    x = ops_alloc(ROWS * wide * sizeof(float));
    y = ops_alloc(ROWS * wide * sizeof(float));
    want = ops_alloc(ROWS * wide * sizeof(float));
    logits = ops_alloc(ROWS * c.n_experts * sizeof(float));
    make_rows(&c, ROWS, x, logits);

    fit = fitting(type, m.up, wide);

    for (i = 0; i < ROWS * wide; i++) {
        x[i] *= fit;
    }

    run_reference(&m, x, logits, ROWS, want);
    run_new(&m, LLM_TYPE_F16, LLM_ROWS_ALL, x, logits, NULL, ROWS, ROWS, y);
    far = ops_distance(y, want, ROWS * wide);
    ok(far <= 0.0015, "experts of %s: %.2g", llm_type_name(type), far);

    run_new(&m, LLM_TYPE_F16, LLM_ROWS_ALL, x, logits, NULL, ALONE, 1, want);
    ok(memcmp(y, want, ALONE * wide * sizeof(float)) == 0,
       "experts of %s: the same bits row by row", llm_type_name(type));

    free_mix(&m);
    free(x);
    free(y);
    free(want);
    free(logits);
}


/* ---- the choice ---- */

typedef struct {
    const char    *name;
    llm_route_t    r;
    int            bias;
    int            factor;
    int            ties;
} route_case_t;

static const route_case_t  route_cases[] = {
    { "softmax", { .n_experts = 33, .n_used = 5, .scale = 1 }, 0, 0, 0 },
    { "softmax, normalised", { .n_experts = 8, .n_used = 2, .normalize = 1,
                               .scale = 1 }, 0, 0, 0 },
    { "softmax of the chosen", { .score = LLM_ROUTE_CHOSEN, .n_experts = 32,
                                 .n_used = 4, .scale = 1 }, 0, 1, 0 },
    { "sigmoid", { .score = LLM_ROUTE_SIGMOID, .n_experts = 16, .n_used = 3,
                   .normalize = 1, .scale = 2.5f }, 0, 0, 0 },
    { "a bias", { .score = LLM_ROUTE_SIGMOID, .n_experts = 40, .n_used = 6,
                  .normalize = 1, .scale = 2.5f }, 1, 0, 0 },
    { "softmax and a bias", { .n_experts = 40, .n_used = 6, .normalize = 1,
                              .floor = 0.5f, .scale = 1 }, 1, 1, 0 },
    { "groups", { .n_experts = 32, .n_used = 5, .n_groups = 8,
                  .n_groups_used = 3, .scale = 1 }, 0, 0, 0 },
    { "groups by pairs", { .score = LLM_ROUTE_SIGMOID, .n_experts = 40,
                           .n_used = 5, .n_groups = 10, .n_groups_used = 2,
                           .group_pairs = 1, .normalize = 1, .scale = 1 },
      1, 0, 0 },
    { "groups of one by pairs", { .n_experts = 12, .n_used = 4,
                                  .n_groups = 12, .n_groups_used = 4,
                                  .group_pairs = 1, .scale = 1 }, 0, 0, 0 },
    { "all", { .n_experts = 7, .n_used = 7, .scale = 1 }, 0, 0, 0 },
    { "one", { .n_experts = 1, .n_used = 1, .scale = 1 }, 0, 0, 0 },
    { "ties", { .n_experts = 36, .n_used = 7, .scale = 1 }, 0, 0, 1 },
    { "ties of groups", { .n_experts = 36, .n_used = 7, .n_groups = 9,
                          .n_groups_used = 3, .scale = 1 }, 0, 0, 1 }
};

enum { ROUTE_ROWS = 50 };


/*
 * Experts that show who they are: y[e] becomes the weight of expert e, 0 if it
 * is not chosen.  Their first product is 0, a bias makes it 1.
 */

static void
show_route(llm_exec_t *exec, const route_case_t *t, const float *logits,
    float *y)
{
    float              one[MAX_EXPERTS], zero[MAX_EXPERTS * MAX_EXPERTS];
    float              down[MAX_EXPERTS * MAX_EXPERTS], v[2 * MAX_EXPERTS];
    uint32_t           i, n = t->r.n_experts;
    llm_act_t         *ax, *al, *ay;
    llm_batch_t        b;
    llm_route_t        r = t->r;
    llm_choice_t      *choice;
    llm_experts_t      e;
    const llm_ops_t   *o = exec->ops;
    llm_choice_opts_t  opts = { OPS_MAX_ROWS, n, t->r.n_used, n, 1 };

    memset(zero, 0, sizeof(zero));
    memset(down, 0, sizeof(down));
    ops_fill(v, 2 * n, 77);

    for (i = 0; i < n; i++) {
        one[i] = 1;
        down[i * n + i] = 1;
    }

    memset(&e, 0, sizeof(e));
    e.act = LLM_GLU_RELU2;
    e.up = o->experts_create(exec, LLM_TYPE_F32, n, 1, n, zero,
                             n * sizeof(float), NULL);
    e.down = o->experts_create(exec, LLM_TYPE_F32, n, n, 1, down,
                               n * sizeof(float), NULL);
    e.up_bias = o->vec_create(exec, one, n, NULL);
    r.bias = t->bias ? o->vec_create(exec, v, n, NULL) : NULL;
    r.factor = t->factor ? o->vec_create(exec, v + n, n, NULL) : NULL;
    choice = o->choice_create(exec, &opts, NULL);

    ax = ops_act(exec, NULL, ROUTE_ROWS, n);
    al = ops_act(exec, logits, ROUTE_ROWS, n);
    ay = ops_act(exec, NULL, ROUTE_ROWS, n);

    memset(y, 0, ROUTE_ROWS * n * sizeof(float));
    o->write(exec, ax, 0, ROUTE_ROWS, y);

    ops_begin_rows(exec, &b, ROUTE_ROWS);
    o->route(exec, LLM_ROWS_ALL, &r, al, choice);
    o->experts(exec, LLM_ROWS_ALL, &e, ax, choice, ay);
    ok(o->end(exec, NULL) == LLM_OK, "a step that routes");
    ops_read(exec, ay, y, ROUTE_ROWS, n);

    o->act_free(exec, ax);
    o->act_free(exec, al);
    o->act_free(exec, ay);
    o->choice_free(exec, choice);
    o->weight_free(exec, (llm_weight_t *) e.up);
    o->weight_free(exec, (llm_weight_t *) e.down);
    o->vec_free(exec, (llm_vec_t *) e.up_bias);
    o->vec_free(exec, (llm_vec_t *) r.bias);
    o->vec_free(exec, (llm_vec_t *) r.factor);
}


static void
show_new(const route_case_t *t, const float *logits, float *y)
{
    llm_exec_t  *d;

    d = open_emu(LLM_TYPE_F16, 0, 0);
    show_route(d, t, logits, y);
    d->ops->close(d);
}


static void
test_route(const route_case_t *t)
{
    int          same;
    float        logits[ROUTE_ROWS * MAX_EXPERTS];
    float        got[ROUTE_ROWS * MAX_EXPERTS];
    float        want[ROUTE_ROWS * MAX_EXPERTS];
    size_t       i, n;
    llm_exec_t  *ref;

    n = (size_t) ROUTE_ROWS * t->r.n_experts;
    ops_fill(logits, n, 41);

    for (i = 0; t->ties && i < n; i++) {
        logits[i] = floorf(logits[i]);
    }

    ref = ops_open(&llm_ops_reference, NULL, 1);
    show_route(ref, t, logits, want);
    ref->ops->close(ref);
    show_new(t, logits, got);

    for (i = 0, same = 1; i < n; i++) {
        same &= (got[i] == 0) == (want[i] == 0);
    }

    ok(same, "%s: the same experts", t->name);
    compare(got, want, n, 1e-6, t->name);
}


/* rows that are no numbers harm themselves alone, and choose as many */

static void
test_broken(void)
{
    int                  good;
    float                logits[ROUTE_ROWS * MAX_EXPERTS];
    float                got[ROUTE_ROWS * MAX_EXPERTS];
    float                want[ROUTE_ROWS * MAX_EXPERTS];
    uint32_t             i, k, n;
    const route_case_t  *t;

    static const float  bad[] = { NAN, INFINITY, -INFINITY, -NAN };

    for (k = 0, good = 1; k < llm_nelems(route_cases); k++) {
        t = &route_cases[k];
        n = t->r.n_experts;
        ops_fill(logits, (size_t) ROUTE_ROWS * n, 42);
        show_new(t, logits, want);

        for (i = 0; i < ROUTE_ROWS * n; i++) {
            if (i / n % 2 && (i / n == 7 || i % 3 == 0)) {
                logits[i] = bad[i / n / 2 % 4];
            }
        }

        show_new(t, logits, got);

        for (i = 0; i < ROUTE_ROWS * n; i++) {
            good &= i / n % 2 || memcmp(&got[i], &want[i], 4) == 0;
        }
    }

    ok(good, "rows that are no numbers leave the others alone");
}


static void
test_limits(void)
{
    size_t       i;
    llm_exec_t  *d;
    llm_err_t    err;

    static const llm_choice_opts_t  wrong[] = {
        { 4, 8, 0, 32, 32 },
        { 4, 8, 9, 32, 32 },
        { 4, 0, 0, 32, 32 },
        { 4, LLM_MAX_EXPERTS + 1, 1, 32, 32 },
        { UINT32_MAX, 128, 8, 1 << 30, 1 << 30 },
        { 4096, 128, 8, 1 << 30, 1 << 30 }
    };

    d = open_emu(LLM_TYPE_F16, 0, 0);

    for (i = 0; i < llm_nelems(wrong); i++) {
        err.msg[0] = '\0';
        ok(d->ops->choice_create(d, &wrong[i], &err) == NULL && err.msg[0],
           "%s", err.msg);
    }

    d->ops->close(d);
}


int
main(void)
{
    size_t       i;
    llm_exec_t  *d;

    (void) setenv("LLM_EMU_SEED", "17", 0);

    d = open_emu(LLM_TYPE_F16, 0, 0);

    if (d == NULL) {
        return done_without_device();
    }

    d->ops->close(d);

    for (i = 0; i < llm_nelems(route_cases); i++) {
        test_route(&route_cases[i]);
    }

    test_broken();
    test_limits();

    for (i = 0; i < llm_nelems(all_types); i++) {
        test_type(all_types[i]);
    }

    for (i = 0; i < llm_nelems(cases); i++) {
        test_case(&cases[i], i % 3 == 2 ? LLM_TYPE_BF16 : LLM_TYPE_F16, 0);
        test_case(&cases[i], i % 3 == 1 ? LLM_TYPE_BF16 : LLM_TYPE_F16, 1);
    }

    return done_testing();
}
