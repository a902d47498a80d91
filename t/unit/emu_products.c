/*
 * products=fp8 in the CUDA backend, run by the emulator (LLM_GPU_DEVICE=cuda:
 * on a GPU instead), for GPUs with mma.sync of e4m3 and with wgmma.
 *
 * The reference gets what the format makes of weights and of activations, which
 * is worked out here from its table of codes (e4m3.h).  Products of two e4m3
 * are exact, so what is left on the emulator is the order of the sums; a GPU
 * also adds with fewer bits.
 */

#include "t/unit/e4m3.h"
#include "t/unit/emu_ops.h"

static llm_exec_t  *reference;
static const char  *gpu;                /* for names of tests */

static const uint32_t  types[] = {
    LLM_TYPE_F32, LLM_TYPE_F16, LLM_TYPE_BF16
};

static const struct {
    uint32_t   n_out;
    uint32_t   n_in;
    uint32_t   rows;
} shapes[] = {
    { 1, 8, 1 }, { 16, 33, 2 }, { 40, 100, 8 }, { 33, 127, 9 },
    { 100, 128, 16 }, { 70, 290, 17 }, { 129, 1200, 64 }, { 49, 65, 70 },
    { 300, 544, 131 }
};


/* numbers that the device's 16 bits hold, as rows of activations have them */

static void
fill_16(float *x, size_t n, int bf16, uint64_t seed)
{
    size_t  i;

    ops_fill(x, n, seed);

    for (i = 0; i < n; i++) {
        x[i] = bf16 ? llm_bf16_to_f32(llm_f32_to_bf16(x[i]))
                    : llm_f16_to_f32(llm_f32_to_f16(x[i]));
    }
}


static void
test_product(llm_exec_t *d, uint32_t type, size_t k, int bf16)
{
    int        add;
    char       what[160];
    float     *x, *y[3], *bias;
    size_t     i, n;
    double     exact, bound;
    uint8_t   *m, *f;

    const uint32_t  n_out = shapes[k].n_out, n_in = shapes[k].n_in,
                    rows = shapes[k].rows;

    n = (size_t) rows * n_out;
    add = k % 2;
    m = matrix(type, n_out, n_in, 99 * type + k);
    f = e4m3_matrix(type, m, n_out, n_in);
    x = ops_alloc((size_t) rows * n_in * sizeof(float));
    bias = ops_alloc(n_out * sizeof(float));
    fill_16(x, (size_t) rows * n_in, bf16, 3 * k);
    ops_fill(bias, n_out, k);

    for (i = 0; i < 3; i++) {
        y[i] = ops_alloc(n * sizeof(float));
        ops_fill(y[i], n, 5 * k);
    }

    product(d, type, m, n_out, n_in, LLM_WEIGHT_LINEAR, rows, x,
            k % 3 ? bias : NULL, add, y[1]);
    product(reference, type, m, n_out, n_in, LLM_WEIGHT_LINEAR, rows, x,
            k % 3 ? bias : NULL, add, y[2]);

    for (i = 0; i < rows; i++) {
        e4m3_round(x + i * n_in, n_in);
    }

    product(reference, LLM_TYPE_F32, f, n_out, n_in, LLM_WEIGHT_LINEAR, rows,
            x, k % 3 ? bias : NULL, add, y[0]);

    bound = getenv("LLM_GPU_DEVICE") ? 0.004 : 1e-5;
    snprintf(what, sizeof(what), "%s, %s [%u, %u] by %u %s rows%s", gpu,
             llm_type_name(type), n_out, n_in, rows, bf16 ? "bf16" : "f16",
             add ? ", added" : "");
    compare(y[1], y[0], n, bound, what);

    /* what the format costs: both factors of a product are off by 2^-4 at
       most, and by 2.6 % as a rule */

    exact = ops_distance(y[1], y[2], n);
    ok(n < 100 || (exact > 0.01 && exact < 0.05), "without fp8: %.4f", exact);

    for (i = 0; i < 3; i++) {
        free(y[i]);
    }

    free(m);
    free(f);
    free(x);
    free(bias);
}


static void
test_same_bits(llm_exec_t *d)
{
    int       same;
    float    *x, *bias, *y, *first;
    size_t    i, k;
    uint8_t  *m;

    static const uint32_t  rows[] = { 1, 8, 9, 16, 17, 64, 65, 150 };
    static const uint32_t  cols[] = { 301, 640 };

    enum { N_OUT = 150, MOST = 150, COLS = 640 };

    x = ops_alloc((size_t) MOST * COLS * sizeof(float));
    bias = ops_alloc(N_OUT * sizeof(float));
    y = ops_alloc((size_t) MOST * N_OUT * sizeof(float));
    first = ops_alloc(N_OUT * sizeof(float));
    ops_fill(x, (size_t) MOST * COLS, 3);
    ops_fill(bias, N_OUT, 4);

    for (i = 0; i < llm_nelems(cols); i++) {
        m = matrix(LLM_TYPE_F16, N_OUT, cols[i], i);

        for (same = 1, k = 0; k < llm_nelems(rows); k++) {
            ops_fill(y, (size_t) MOST * N_OUT, 5);
            product(d, LLM_TYPE_F16, m, N_OUT, cols[i], LLM_WEIGHT_LINEAR,
                    rows[k], x, bias, 1, y);

            if (k == 0) {
                memcpy(first, y, N_OUT * sizeof(float));
            }

            same &= memcmp(first, y, N_OUT * sizeof(float)) == 0;
        }

        ok(same, "%s, %u columns: the same bits for any number of rows", gpu,
           cols[i]);
        free(m);
    }

    free(x);
    free(bias);
    free(y);
    free(first);
}


/* products of one call with weights of several kinds */

static void
test_call(llm_exec_t *d, uint32_t rows)
{
    enum { N_OUT = 40, N_IN = 256, N = 3 };

    int            same;
    float         *x, *y, *got;
    size_t         i;
    rows_t         r = { 0, rows, 0 };
    step_t        *s;
    uint8_t       *m[N];
    llm_act_t     *ax;
    llm_err_t      err;
    llm_linear_t   l[N];

    static const struct {
        uint32_t   type;
        int        usage;
    } w[N] = {
        { LLM_TYPE_F16, LLM_WEIGHT_LINEAR },
        { LLM_TYPE_Q4_K, LLM_WEIGHT_LINEAR },
        { LLM_TYPE_F16, LLM_WEIGHT_LINEAR | LLM_WEIGHT_HEAD }
    };

    x = ops_alloc((size_t) rows * N_IN * sizeof(float));
    y = ops_alloc((size_t) rows * N_OUT * sizeof(float));
    got = ops_alloc((size_t) rows * N_OUT * sizeof(float));
    ops_fill(x, (size_t) rows * N_IN, 6);
    s = ops_alloc(sizeof(step_t));
    step_fill(s, &r, 1, 1);
    s->b.n_out = 0;
    ax = act(d, LLM_ACT_VALUE, rows, N_IN, x);
    memset(l, 0, sizeof(l));

    for (i = 0; i < N; i++) {
        m[i] = matrix(w[i].type, N_OUT, N_IN, i);
        l[i].w = d->ops->weight_create(d, w[i].type, N_OUT, N_IN, m[i],
                                       w[i].usage, &err);
        l[i].y = act(d, LLM_ACT_RESIDUAL, rows, N_OUT, NULL);
    }

    (void) d->ops->begin(d, &s->b, &err);
    d->ops->linear(d, LLM_ROWS_ALL, ax, l, N);
    ok(d->ops->end(d, &err) == LLM_OK, "a call of three weights");

    for (same = 1, i = 0; i < N; i++) {
        ops_read(d, l[i].y, got, rows, N_OUT);
        product(d, w[i].type, m[i], N_OUT, N_IN, w[i].usage, rows, x, NULL, 0,
                y);
        same &= memcmp(got, y, (size_t) rows * N_OUT * sizeof(float)) == 0;
    }

    ok(same, "%s, %u rows: weights of several kinds in one call", gpu, rows);

    for (i = 0; i < N; i++) {
        d->ops->act_free(d, l[i].y);
        d->ops->weight_free(d, (llm_weight_t *) l[i].w);
        free(m[i]);
    }

    d->ops->act_free(d, ax);
    free(x);
    free(y);
    free(got);
    free(s);
}


/* quantised types and the head have the bits that they have without */

static void
test_untouched(llm_exec_t *d, llm_exec_t *plain)
{
    size_t  i;

    static const struct {
        uint32_t   type;
        int        usage;
    } cases[] = {
        { LLM_TYPE_Q8_0, LLM_WEIGHT_LINEAR },
        { LLM_TYPE_IQ4_NL, LLM_WEIGHT_LINEAR },
        { LLM_TYPE_F16, LLM_WEIGHT_LINEAR | LLM_WEIGHT_HEAD }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        ok(same_product(d, plain, cases[i].type, cases[i].usage, i),
           "%s%s stays as it is", llm_type_name(cases[i].type),
           cases[i].usage & LLM_WEIGHT_HEAD ? " of the head" : "");
    }
}


static void
refused(const char *device, const char *products, const char *why)
{
    llm_exec_t      *d;
    llm_err_t        err;
    llm_exec_opts_t  o;

    memset(&o, 0, sizeof(o));
    memset(&err, 0, sizeof(err));
    o.max_tokens = 8;
    o.max_seqs = 1;
    o.max_pages = 1;
    o.max_out = 8;
    o.products = products;

    ok(llm_backend_open(device, getenv("LLM_OBJS") ? getenv("LLM_OBJS")
                                                   : "objs", NULL, &o, &d,
                        &err) != LLM_OK && strstr(err.msg, why),
       "%s: %s", device, err.msg);
}


static void
test_refused(void)
{
    refused("cpu", "fp8", "products=fp8: the CPU has no fp8");
    refused("reference", "fp8", "products=fp8: the CPU has no fp8");

    if (getenv("LLM_GPU_DEVICE")) {
        return;
    }

    refused("emu", "other", "products=other: a GPU has only products=fp8");

    (void) setenv("LLM_EMU_CAPABILITY", "80", 1);
    refused("emu", "fp8", "products=fp8: emulated GPU has compute capability "
            "8.0; 8.9");
    (void) setenv("LLM_EMU_CAPABILITY", "90", 1);
    (void) setenv("LLM_EMU_COMPILED", "80", 1);
    refused("emu", "fp8", "products=fp8: llm_cuda.so has no code for it on "
            "emulated GPU: CUDA_ARCH=90a");
    (void) unsetenv("LLM_EMU_COMPILED");
    (void) unsetenv("LLM_EMU_CAPABILITY");
}


/* all of one GPU; 0: it has no fp8 */

static int
test_gpu(void)
{
    int          bf16;
    size_t       i, k;
    llm_exec_t  *d, *plain;

    for (bf16 = 0; bf16 < 2; bf16++) {
        d = open_emu_products(bf16 ? LLM_TYPE_BF16 : LLM_TYPE_F16, 0, 0,
                              "fp8");
        if (d == NULL) {
            return 0;
        }

        for (i = 0; i < llm_nelems(types); i++) {
            for (k = 0; k < llm_nelems(shapes); k++) {
                test_product(d, types[i], k, bf16);
            }
        }

        test_same_bits(d);
        test_call(d, 5);
        test_call(d, 40);

        if (!bf16) {
            plain = open_emu(LLM_TYPE_F16, 0, 0);
            test_untouched(d, plain);
            plain->ops->close(plain);
        }

        d->ops->close(d);
    }

    return 1;
}


int
main(void)
{
    size_t       i;
    llm_exec_t  *plain;

    static const struct {
        const char  *capability;
        const char  *name;
    } gpus[] = {
        { "89", "Ada" }, { "90", "Hopper" }
    };

    (void) setenv("LLM_EMU_SEED", "13", 0);
    e4m3_make();

    plain = open_emu(LLM_TYPE_F16, 0, 0);

    if (plain == NULL) {
        return done_without_device();
    }

    plain->ops->close(plain);
    reference = ops_open(&llm_ops_reference, NULL, 1);

    if (getenv("LLM_GPU_DEVICE") || getenv("LLM_EMU_PTX")) {
        gpu = "GPU";                    /* PTX is for one of them */

        if (!test_gpu()) {
            skip("this GPU has no products in fp8");
        }

    } else {
        for (i = 0; i < llm_nelems(gpus); i++) {
            (void) setenv("LLM_EMU_CAPABILITY", gpus[i].capability, 1);
            gpu = gpus[i].name;
            ok(test_gpu(), "%s has products in fp8", gpu);
        }

        (void) unsetenv("LLM_EMU_CAPABILITY");
    }

    test_refused();
    reference->ops->close(reference);

    return done_testing();
}
