/*
 * Products through cublasLt (kernels/cuda/blas.cu), run by an emulator that has
 * one, whose candidates are not all right: t/gpu/emu/cublas/cublaslt.cpp.  The
 * bits are those of our kernels, whoever computes; the plans are the fastest
 * candidate with these bits; and what cublasLt, or memory, lacks is a plan less
 * and no error.
 */

#include "t/unit/emu_count.h"
#include "t/unit/emu_ops.h"

#define N_OUT  130
#define N_IN   160
#define MOST   100                      /* rows of a step */

static char  table[64];                 /* LLM_BLAS_TABLE */


static llm_exec_t *
open_blas(uint32_t type, llm_err_t *err)
{
    llm_exec_t       *d;
    llm_exec_opts_t   o;

    memset(&o, 0, sizeof(o));
    o.index = -1;
    o.max_tokens = MOST;
    o.max_seqs = OPS_MAX_SEQS;
    o.max_pages = OPS_MAX_PAGES;
    o.max_out = MOST;
    o.weight_type = type;
    o.n_kinds = LLM_KV_KINDS;

    return llm_backend_open("emu", getenv("LLM_OBJS"), NULL, &o, &d, err)
           == LLM_OK ? d : NULL;
}


/* our kernels' blocks since the last call */

static unsigned long
ours(void)
{
    unsigned long         now, n;
    static unsigned long  before;

    now = emu_count("llm_k_linear");
    n = now - before;
    before = now;

    return n;
}


/* rows of the product with bias and sums, in one step */

static void
rows_of(llm_exec_t *d, const uint8_t *m, uint32_t rows, const float *x,
    const float *bias, float *y)
{
    ops_fill(y, (size_t) rows * N_OUT, 5);
    product(d, LLM_TYPE_F16, m, N_OUT, N_IN, LLM_WEIGHT_LINEAR, rows, x, bias,
            1, y);
}


/* the same, row by row */

static void
one_by_one(llm_exec_t *d, const uint8_t *m, const float *x, const float *bias,
    float *y)
{
    uint32_t  i;

    ops_fill(y, (size_t) MOST * N_OUT, 5);

    for (i = 0; i < MOST; i++) {
        product(d, LLM_TYPE_F16, m, N_OUT, N_IN, LLM_WEIGHT_LINEAR, 1,
                x + (size_t) i * N_IN, bias, 1, y + (size_t) i * N_OUT);
    }
}


/* what the table says of each bucket: the candidate has our bits, and takes the
   emulator's 0.4 ms, or 10.4 with few rows; our kernel takes 1 */

static void
test_table(void)
{
    int       n, same;
    FILE     *f;
    char      line[256], bits[8];
    float     ms, kernel;
    uint32_t  out, in, rows, want;

    n = 0;
    want = 1;
    f = fopen(table, "r");

    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "{\"n_out\": %u, \"n_in\": %u, \"rows\": %u, "
                   "\"same_bits\": %7[a-z], \"ms\": %f, \"ours_ms\": %f}",
                   &out, &in, &rows, bits, &ms, &kernel) != 6)
        {
            printf("# %s", line);
            break;
        }

        same = strcmp(bits, "true") == 0
               && fabsf(ms - (rows > 8 ? 0.4f : 10.4f)) < 0.01f
               && fabsf(kernel - 1) < 0.01f;
        ok(same && out == N_OUT && in == N_IN && rows == want,
           "%u rows: the fastest with our bits", rows);
        want = llm_min(want == 1 ? 8 : 2 * want, (uint32_t) MOST);
        n++;
    }

    ok(n == 6, "all buckets were compared, once: %d", n);

    if (f) {
        (void) fclose(f);
    }
}


static void
test_bits(llm_exec_t *d, const char *name, const uint8_t *m)
{
    float          *x, *y, *want, *bias;
    size_t          i;
    unsigned long   n;

    static const struct {
        uint32_t  rows;
        int       ours;
    } of[] = {
        { 1, 1 }, { 2, 1 }, { 8, 1 }, { 9, 0 }, { 16, 0 }, { 17, 0 },
        { 63, 0 }, { 64, 0 }, { 65, 0 }, { MOST, 0 }
    };

    x = ops_alloc((size_t) MOST * N_IN * sizeof(float));
    y = ops_alloc((size_t) MOST * N_OUT * sizeof(float));
    want = ops_alloc((size_t) MOST * N_OUT * sizeof(float));
    bias = ops_alloc(N_OUT * sizeof(float));
    ops_fill(x, (size_t) MOST * N_IN, 3);
    ops_fill(bias, N_OUT, 4);

    one_by_one(d, m, x, bias, want);

    for (i = 0; i < llm_nelems(of); i++) {
        (void) ours();
        rows_of(d, m, of[i].rows, x, bias, y);
        n = ours();
        ok(memcmp(y, want, (size_t) of[i].rows * N_OUT * sizeof(float)) == 0
           && (n != 0) == of[i].ours, "%s, %u rows: the bits of one, by %s",
           name, of[i].rows, n ? "our kernel" : "cublasLt");
    }

    /* plans are for products without a factor */

    product_factor = 0.5f;
    (void) ours();
    rows_of(d, m, MOST, x, bias, y);
    ok(ours() != 0, "%s: a product with a factor is our kernel's", name);
    product_factor = 0;

    free(x);
    free(y);
    free(want);
    free(bias);
}


/* a device opens while one call after the other fails, those that `what` counts;
   `until`: until it is open */

static void
test_faults(const char *what, int until, const uint8_t *m)
{
    int          i, refused, right;
    char         n[16];
    float       *x, *y, *want;
    llm_err_t    err;
    llm_exec_t  *d;

    enum { CALLS = 40 };

    x = ops_alloc((size_t) MOST * N_IN * sizeof(float));
    y = ops_alloc((size_t) MOST * N_OUT * sizeof(float));
    want = ops_alloc((size_t) MOST * N_OUT * sizeof(float));
    ops_fill(x, (size_t) MOST * N_IN, 3);
    d = open_blas(LLM_TYPE_F16, &err);
    one_by_one(d, m, x, NULL, want);
    d->ops->close(d);

    refused = right = 0;

    for (i = 1; i <= CALLS; i++) {
        snprintf(n, sizeof(n), "%d", i);
        (void) setenv(what, n, 1);
        err.msg[0] = '\0';
        d = open_blas(LLM_TYPE_F16, &err);

        if (until) {
            (void) unsetenv(what);
        }

        if (d == NULL) {
            refused += strstr(err.msg, "cublasLt") != NULL;
            right += err.msg[0] != '\0';
            continue;
        }

        rows_of(d, m, MOST, x, NULL, y);
        right += memcmp(y, want, (size_t) MOST * N_OUT * sizeof(float)) == 0;
        d->ops->close(d);
    }

    (void) unsetenv(what);
    ok(right == CALLS, "%s, %d calls: an error that says why, or our bits",
       what, CALLS);
    ok(refused == 1, "one of them is cublasLt's, at the start");

    free(x);
    free(y);
    free(want);
}


int
main(void)
{
    int          fd;
    char         objs[1024];
    uint8_t     *m;
    llm_err_t    err;
    llm_exec_t  *d;
    const char  *set;

    if (getenv("LLM_GPU_DEVICE") || getenv("LLM_EMU_PTX")) {
        skip("cublasLt here is the emulator's");
        return done_testing();
    }

    set = getenv("LLM_OBJS");
    snprintf(objs, sizeof(objs), "%s/blas", set ? set : "objs");
    snprintf(table, sizeof(table), "/tmp/emu_blas.XXXXXX");
    fd = mkstemp(table);
    (void) setenv("LLM_OBJS", objs, 1);
    (void) setenv("LLM_BLAS_TABLE", table, 1);

    m = matrix(LLM_TYPE_F16, N_OUT, N_IN, 1);
    d = open_blas(LLM_TYPE_F16, &err);

    if (d == NULL) {
        (void) unlink(table);
        printf("# %s\n", err.msg);
        return done_without_device();
    }

    test_bits(d, "f16", m);
    test_table();
    d->ops->close(d);
    (void) unsetenv("LLM_BLAS_TABLE");

    d = open_blas(LLM_TYPE_BF16, &err);
    test_bits(d, "bf16", m);
    d->ops->close(d);

    test_faults("LLM_EMU_BLAS_FAIL", 0, m);
    test_faults("LLM_EMU_FAIL_ALLOC", 1, m);

    (void) close(fd);
    (void) unlink(table);
    free(m);

    return done_testing();
}
