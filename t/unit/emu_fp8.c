/*
 * fp8 in the CUDA backend, run by the emulator (LLM_GPU_DEVICE=cuda: on a
 * GPU instead): weights that are made e4m3 when they are loaded, and a KV
 * cache in e4m3.
 *
 * The reference operations get what the format makes of the numbers, which
 * is worked out here from its table of 256 codes; what is left is the error
 * of the 16-bit values between operations, so the bounds are those of emu.c.
 * For K and V as they come, the format's own error is in the bound: a
 * number of four digits is off by 2^-4 at most, V's are as likely up as
 * down, K's move the scores.
 */

#include "t/unit/e4m3.h"
#include "t/unit/emu_ops.h"

static llm_exec_t  *reference;


/* heads of n_dim as the cache has them, some of them large or small: the
   least power of two that brings the largest to 448 or below */

static void
cached(float *x, size_t n, uint32_t dim)
{
    int     e;
    size_t  i, k;

    static const float  sizes[] = { 1.0f, 0x1p-6f, 1.7f, 0x1p-8f, 0.3f };

    for (i = 0; i < n; i++, x += dim) {
        for (k = 0; k < dim; k++) {
            x[k] *= sizes[i % llm_nelems(sizes)];
        }

        for (e = -14; e < 7 && e4m3_largest(x, dim) > ldexpf(448.0f, e); e++) {
            /* void */
        }

        for (k = 0; k < dim; k++) {
            x[k] = ldexpf(e4m3_nearest(ldexpf(x[k], -e)), e);
        }
    }
}


/* ---- weights ---- */

static const uint32_t  types[] = {
    LLM_TYPE_F32, LLM_TYPE_F16, LLM_TYPE_BF16
};

static const struct {
    uint32_t   n_out;
    uint32_t   n_in;
    uint32_t   rows;
} shapes[] = {
    { 1, 8, 1 }, { 16, 33, 2 }, { 40, 100, 8 }, { 33, 127, 9 },
    { 100, 96, 17 }, { 50, 290, 64 }, { 49, 65, 70 }, { 300, 544, 131 }
};


static void
test_products(llm_exec_t *d, int bf16)
{
    int         add;
    char        what[128];
    float      *x, *y[2], *bias;
    size_t      i, k, n;
    double      bound;
    uint8_t    *m, *f;
    uint32_t    n_out, n_in, rows;

    for (i = 0; i < llm_nelems(types); i++) {
        for (k = 0; k < llm_nelems(shapes); k++) {
            n_out = shapes[k].n_out;
            n_in = shapes[k].n_in;
            rows = shapes[k].rows;
            n = (size_t) rows * n_out;
            add = k % 2;

            m = matrix(types[i], n_out, n_in, 99 * i + k);
            f = e4m3_matrix(types[i], m, n_out, n_in);
            x = ops_alloc((size_t) rows * n_in * sizeof(float));
            bias = ops_alloc(n_out * sizeof(float));
            y[0] = ops_alloc(n * sizeof(float));
            y[1] = ops_alloc(n * sizeof(float));
            ops_fill(x, (size_t) rows * n_in, i + 3 * k);
            ops_fill(bias, n_out, k);
            ops_fill(y[0], n, 5 * k);
            memcpy(y[1], y[0], n * sizeof(float));

            product(reference, LLM_TYPE_F32, f, n_out, n_in,
                    LLM_WEIGHT_LINEAR, rows, x, k % 3 ? bias : NULL, add,
                    y[0]);
            product(d, types[i], m, n_out, n_in, LLM_WEIGHT_LINEAR, rows, x,
                    k % 3 ? bias : NULL, add, y[1]);

            /* x is f16 or bf16; a single sum's errors have no others to
               average with */
            bound = (n == 1 ? 0.006 : 0.0015) * (bf16 ? 4 : 1);

            snprintf(what, sizeof(what), "%s [%u, %u] by %u %s rows%s",
                     llm_type_name(types[i]), n_out, n_in, rows,
                     bf16 ? "bf16" : "f16", add ? ", added" : "");
            compare(y[1], y[0], n, bound, what);

            free(m);
            free(f);
            free(x);
            free(bias);
            free(y[0]);
            free(y[1]);
        }
    }
}


static void
test_same_bits(llm_exec_t *d, const char *what)
{
    int       same;
    float    *x, *bias, *y, *first;
    size_t    i, k;
    uint8_t  *m;

    static const uint32_t  rows[] = { 1, 8, 9, 16, 17, 32, 33, 64, 65, 150 };
    static const uint32_t  cols[] = { 301, 352 };

    enum { N_OUT = 150, MOST = 150, COLS = 352 };

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

        ok(same, "%s, %u columns: the same bits for any number of rows",
           what, cols[i]);
        free(m);
    }

    free(x);
    free(bias);
    free(y);
    free(first);
}


/* quantised types and the head have the bits that they have without fp8 */

static void
test_untouched(llm_exec_t *fp8, llm_exec_t *plain)
{
    size_t  i;

    static const struct {
        uint32_t   type;
        int        usage;
    } cases[] = {
        { LLM_TYPE_Q8_0, LLM_WEIGHT_LINEAR },
        { LLM_TYPE_Q4_K, LLM_WEIGHT_LINEAR },
        { LLM_TYPE_F16, LLM_WEIGHT_LINEAR | LLM_WEIGHT_HEAD }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        ok(same_product(fp8, plain, cases[i].type, cases[i].usage, i),
           "%s%s stays as it is", llm_type_name(cases[i].type),
           cases[i].usage & LLM_WEIGHT_HEAD ? " of the head" : "");
    }

    ok(!same_product(fp8, plain, LLM_TYPE_F16, LLM_WEIGHT_LINEAR, 2),
       "F16 otherwise does not");
}


/* ---- the cache ---- */

/* the head that is furthest off, of n */

static double
worst(const float *got, const float *want, size_t n, uint32_t dim)
{
    size_t  i;
    double  d, most;

    for (most = 0, i = 0; i < n; i++, got += dim, want += dim) {
        d = ops_distance(got, want, dim);
        most = d <= most ? most : d;    /* NaN, too */
    }

    return most;
}


/* all heads together, and each for itself */

static void
test_attention(void)
{
    enum { PLAIN = 6 };                 /* attentions without more */

    int          k;
    char         what[128];
    float       *q, *out[2];
    double       d;
    size_t       i, n;
    llm_exec_t  *exec;

    static const struct {
        const char  *name;
        void       (*cook)(float *x, size_t n, uint32_t dim);
        double       bound;
        double       most;
    } cases[] = {
        { "of the format's numbers", cached, 0.0015, 0.01 },
        { "of any numbers", NULL, 0.08, 0.35 }
    };

    q = ops_alloc(ATTEND_HEADS * 576 * sizeof(float));
    out[0] = ops_alloc(ATTEND_HEADS * 576 * sizeof(float));
    out[1] = ops_alloc(ATTEND_HEADS * 576 * sizeof(float));

    for (i = 0; i < llm_nelems(attentions); i++) {
        const attention_t  *a = &attentions[i];

        /* of the kinds of attention those that read the cache otherwise */

        if (i >= PLAIN && a->h.window == 0 && a->dk <= 256) {
            continue;
        }

        for (k = 0; k < (i < PLAIN ? 2 : 1); k++) {
            n = attend(reference, a, cases[k].cook, q, out[0]);

            /* a graph belongs to one model: a device of its own */
            exec = open_emu(LLM_TYPE_F16, 0, 1);
            (void) attend(exec, a, cases[k].cook, q, out[1]);
            exec->ops->close(exec);

            snprintf(what, sizeof(what), "%u heads of %u and %u, %u of KV, "
                     "%s", a->heads, a->dk, a->dv, a->kv_heads,
                     cases[k].name);
            compare(out[1], out[0], n * a->dv, cases[k].bound, what);

            d = worst(out[1], out[0], n, a->dv);
            ok(d <= cases[k].most, "and the worst of %zu: %.6f (at most %g)",
               n, d, cases[k].most);
        }
    }

    free(q);
    free(out[0]);
    free(out[1]);
}


/* pages take what is said, and half of what they take in 16 bits */

static void
test_pages(void)
{
    size_t          size[2], before, after;
    llm_kv_t       *kv;
    llm_exec_t     *d;
    llm_err_t       err;
    llm_kv_opts_t   o;

    memset(&o, 0, sizeof(o));
    o.n_layers = 2;
    o.n_pages = 1000;
    o.n_kv_heads = 8;
    o.n_heads = 8;
    o.head_dim_k = 128;
    o.head_dim_v = 128;

    for (int fp8 = 0; fp8 < 2; fp8++) {
        d = open_emu(LLM_TYPE_F16, 0, fp8);
        size[fp8] = d->ops->kv_page_size(d, &o);

        before = d->ops->memory_free(d);
        kv = d->ops->kv_create(d, &o, &err);
        after = d->ops->memory_free(d);

        ok(kv && before - after >= size[fp8] * o.n_pages
           && before - after <= size[fp8] * o.n_pages + ((size_t) 8 << 20),
           "1000 pages of %zu bytes take %zu", size[fp8], before - after);

        d->ops->kv_free(d, kv);
        d->ops->close(d);
    }

    ok(size[1] * 100 <= size[0] * 51, "twice the pages: %zu bytes, not %zu",
       size[1], size[0]);
}


/* heads that attention's kernels do not take, latent ones they do */

static void
test_odd_heads(void)
{
    llm_exec_t      *d;
    llm_err_t        err;
    llm_kv_opts_t    o;
    llm_kv_layer_t   layer = { .n_kv_heads = 1, .head_dim_k = 65,
                               .head_dim_v = 33 };

    memset(&o, 0, sizeof(o));
    o.n_layers = 1;
    o.n_pages = 4;
    o.n_kv_heads = 1;
    o.n_heads = 1;
    o.head_dim_k = 65;
    o.head_dim_v = 33;
    o.layers = &layer;

    d = open_emu(LLM_TYPE_F16, 0, 0);
    ok(d->ops->kv_create(d, &o, &err) == NULL
       && strstr(err.msg, "heads of 65 and 33 dimensions: odd numbers are not "
                 "supported") != NULL, "odd heads are refused: %s", err.msg);
    d->ops->close(d);
}


/* ---- devices without fp8 ---- */

static void
refused(const char *device, int weights, int kv, const char *why)
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
    o.weights_fp8 = weights;
    o.kv_fp8 = kv;

    ok(llm_backend_open(device, getenv("LLM_OBJS") ? getenv("LLM_OBJS")
                                                   : "objs", NULL, &o, &d,
                        &err) != LLM_OK && strstr(err.msg, why),
       "%s: %s", device, err.msg);
}


static void
test_refused(void)
{
    refused("cpu", 1, 0, "weights=fp8: the CPU has no fp8");
    refused("cpu", 0, 1, "kv=fp8: the CPU has no fp8");
    refused("reference", 1, 1, "weights=fp8: the CPU has no fp8");

    if (getenv("LLM_GPU_DEVICE")) {
        return;
    }

    (void) setenv("LLM_EMU_CAPABILITY", "80", 1);
    refused("emu", 1, 0, "weights=fp8: emulated GPU has compute capability "
            "8.0; 8.9");
    refused("emu", 0, 1, "kv=fp8: emulated GPU has compute capability 8.0");
    (void) unsetenv("LLM_EMU_CAPABILITY");
}


int
main(void)
{
    int          bf16;
    llm_exec_t  *plain, *fp8;

    (void) setenv("LLM_EMU_SEED", "13", 0);
    e4m3_make();

    plain = open_emu(LLM_TYPE_F16, 0, 0);

    if (plain == NULL) {
        return done_without_device();
    }

    reference = ops_open(&llm_ops_reference, NULL, 1);

    for (bf16 = 0; bf16 < 2; bf16++) {
        fp8 = open_emu(bf16 ? LLM_TYPE_BF16 : LLM_TYPE_F16, 1, 0);

        if (fp8 == NULL) {
            skip("this GPU has no fp8");
            return done_testing();
        }

        test_products(fp8, bf16);
        test_same_bits(fp8, bf16 ? "bf16" : "f16");

        if (!bf16) {
            test_untouched(fp8, plain);
        }

        fp8->ops->close(fp8);
    }

    test_attention();
    test_pages();
    test_odd_heads();
    test_refused();

    plain->ops->close(plain);
    reference->ops->close(reference);

    return done_testing();
}
