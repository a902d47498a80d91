/*
 * products=bf16 on a CPU: weights of F32 and F16 are multiplied in bfloat16, but
 * for the head; results do not depend on the rows of a step, are those of a file
 * of such weights, and are as near to the exact ones as bfloat16 is.  A device
 * that cannot do it says so.
 */

#include "engine/base/products.h"
#include "kernels/cpu/cpu.h"
#include "t/unit/model_run.h"
#include "t/unit/random.h"
#include "t/unit/tap.h"

#define DEMO    "models/demo.gguf"
#define N_OUT   40
#define N_IN    96
#define N_ROWS  37

static float  x[N_ROWS * N_IN], weight[N_OUT * N_IN];


static llm_exec_t *
opened(const char *isa, const char *products, llm_err_t *err)
{
    llm_exec_t       *exec;
    llm_exec_opts_t   o;

    memset(&o, 0, sizeof(o));
    memset(err, 0, sizeof(*err));
    o.isa = isa;
    o.threads = 2;
    o.products = products;
    o.max_tokens = N_ROWS;
    o.max_seqs = 1;
    o.max_pages = 1;
    o.max_out = N_ROWS;

    return llm_ops_cpu.open(&exec, &o, err) == LLM_OK ? exec : NULL;
}


/* the product of the first n rows of x with a weight of this type */

static void
product(llm_exec_t *exec, uint32_t type, int usage, const void *rows,
    uint32_t n, float *y)
{
    int32_t           ids[N_ROWS] = { 0 };
    uint32_t          pos[N_ROWS] = { 0 }, seq_rows[2], kv_len, page;
    llm_err_t         err;
    llm_batch_t       b;
    llm_linear_t      out;
    llm_act_t        *from, *to;
    llm_weight_t     *w;
    const llm_ops_t  *ops = exec->ops;

    memset(&b, 0, sizeof(b));
    seq_rows[0] = 0;
    seq_rows[1] = n;
    kv_len = n;
    page = 0;
    b.n_tokens = n;
    b.n_seqs = 1;
    b.max_pages = 1;
    b.tokens = ids;
    b.pos = pos;
    b.seq_rows = seq_rows;
    b.kv_len = &kv_len;
    b.pages[0] = &page;

    w = ops->weight_create(exec, type, N_OUT, N_IN, rows, usage, &err);
    from = ops->act_create(exec, N_ROWS, N_IN, LLM_ACT_VALUE, &err);
    to = ops->act_create(exec, N_ROWS, N_OUT, LLM_ACT_PRODUCT, &err);

    if (w == NULL || from == NULL || to == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    memset(&out, 0, sizeof(out));
    out.w = w;
    out.y = to;

    ops->write(exec, from, 0, n, x);
    (void) ops->begin(exec, &b, &err);
    ops->linear(exec, LLM_ROWS_ALL, from, &out, 1);
    (void) ops->end(exec, &err);
    memcpy(y, ops->map(exec, to, 0, n), n * N_OUT * sizeof(float));

    ops->weight_free(exec, w);
    ops->act_free(exec, from);
    ops->act_free(exec, to);
}


static void
test_product(const char *isa)
{
    float        y[5][N_ROWS * N_OUT];
    size_t       i;
    uint32_t     n;
    llm_err_t    err;
    uint16_t     f16[N_OUT * N_IN], bf16[N_OUT * N_IN];
    llm_exec_t  *exec, *plain;

    exec = opened(isa, LLM_PRODUCTS_BF16, &err);
    plain = opened(isa, NULL, &err);

    for (i = 0; i < N_OUT * N_IN; i++) {
        f16[i] = llm_f32_to_f16(weight[i]);
        bf16[i] = llm_f32_to_bf16(llm_f16_to_f32(f16[i]));
    }

    product(exec, LLM_TYPE_F16, LLM_WEIGHT_LINEAR, f16, N_ROWS, y[0]);
    product(plain, LLM_TYPE_BF16, LLM_WEIGHT_LINEAR, bf16, N_ROWS, y[1]);
    product(plain, LLM_TYPE_F16, LLM_WEIGHT_LINEAR, f16, N_ROWS, y[2]);
    ok(memcmp(y[0], y[1], sizeof(y[0])) == 0,
       "%s: F16 is as a file of BF16", isa);
    ok(run_distance(y[0], y[2], N_ROWS * N_OUT) < 0.004
       && memcmp(y[0], y[2], sizeof(y[0])) != 0,
       "%s: near the exact product: %.5f", isa,
       run_distance(y[0], y[2], N_ROWS * N_OUT));

    for (n = 1; n < N_ROWS; n += 5) {
        product(exec, LLM_TYPE_F16, LLM_WEIGHT_LINEAR, f16, n, y[3]);
        ok(memcmp(y[0], y[3], n * N_OUT * sizeof(float)) == 0,
           "%s: %u of the rows have the same bits", isa, n);
    }

    product(exec, LLM_TYPE_F16, LLM_WEIGHT_LINEAR | LLM_WEIGHT_HEAD, f16,
            N_ROWS, y[3]);
    ok(memcmp(y[3], y[2], sizeof(y[0])) == 0, "%s: the head is exact", isa);

    product(exec, LLM_TYPE_F32, LLM_WEIGHT_LINEAR, weight, N_ROWS, y[3]);
    product(plain, LLM_TYPE_F32, LLM_WEIGHT_LINEAR, weight, N_ROWS, y[4]);
    ok(run_distance(y[3], y[4], N_ROWS * N_OUT) < 0.004
       && memcmp(y[3], y[4], sizeof(y[0])) != 0,
       "%s: F32, too: %.5f", isa, run_distance(y[3], y[4], N_ROWS * N_OUT));

    exec->ops->close(exec);
    plain->ops->close(plain);
}


static void
test_refused(void)
{
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    ok(opened("avx2", LLM_PRODUCTS_BF16, &err) == NULL
       && (strstr(err.msg, "AVX512_BF16 or AMX is needed")
           || strstr(err.msg, "avx2")), "AVX2: %s", err.msg);
    ok(opened(NULL, LLM_PRODUCTS_FP8, &err) == NULL && err.msg[0],
       "fp8: %s", err.msg);

    memset(&o, 0, sizeof(o));
    o.products = LLM_PRODUCTS_BF16;
    o.device = "reference";
    m = llm_model_load(DEMO, &o, &err);
    ok(m == NULL && strstr(err.msg, "products=bf16: this device"),
       "reference: %s", err.msg);

    o.products = NULL;
    o.kv_q8 = 1;
    m = llm_model_load(DEMO, &o, &err);
    ok(m == NULL && strstr(err.msg, "kv=q8_0: this device"),
       "reference: %s", err.msg);

    ok(llm_products_word("bf16", 4) && llm_products_word("fp8", 3)
       && llm_products_word("bf1", 3) == NULL
       && llm_products_word("", 0) == NULL, "words");
}


int
main(void)
{
    size_t              i, tried;
    llm_err_t           err;
    llm_exec_t         *exec;
    static const char  *const isas[] = { "avx512", "amx" };

    for (i = 0; i < N_ROWS * N_IN; i++) {
        x[i] = (float) rnd(2001) / 1000 - 1;
    }

    for (i = 0; i < N_OUT * N_IN; i++) {
        weight[i] = (float) rnd(2001) / 1000 - 1;
    }

    for (i = 0, tried = 0; i < llm_nelems(isas); i++) {
        exec = opened(isas[i], LLM_PRODUCTS_BF16, &err);

        if (exec == NULL) {
            printf("# not with %s: %s\n", isas[i], err.msg);
            continue;
        }

        exec->ops->close(exec);
        test_product(isas[i]);
        tried++;
    }

    printf("# %zu instruction sets of this CPU\n", tried);
    test_refused();

    return done_testing();
}
