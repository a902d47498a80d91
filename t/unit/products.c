/*
 * products=bf16 on a CPU: weights of F32 and F16, and with bf16-all and tiles
 * those of all quantised types, are multiplied in bfloat16, but for the head;
 * results do not depend on the rows of a step, are those of a file of such
 * weights, and are as near to the exact ones as bfloat16 is.  A device that
 * cannot do it says so.
 */

#include "engine/base/products.h"
#include "kernels/cpu/cpu.h"
#include "t/unit/model_run.h"
#include "t/unit/blocks.h"
#include "t/unit/random.h"
#include "t/unit/tap.h"

#define DEMO    "models/demo.gguf"
#define N_OUT   40
#define N_IN    96
#define N_ROWS  37
#define MAX_IN  1792                    /* three chunks, the last one longer */

/* several pieces of rows, and groups of panels, the last one with a panel
   alone */
#define MANY      300
#define SOME      100
#define MANY_OUT  1160
#define MANY_IN   1280

static float  x[N_ROWS * MAX_IN], weight[N_OUT * MAX_IN];


static llm_exec_t *
opened_with(const char *isa, const char *products, uint32_t threads,
    llm_err_t *err)
{
    llm_exec_t       *exec;
    llm_exec_opts_t   o;

    memset(&o, 0, sizeof(o));
    memset(err, 0, sizeof(*err));
    o.isa = isa;
    o.threads = threads;
    o.products = products;
    o.max_tokens = MANY;
    o.max_seqs = 1;
    o.max_pages = 1;
    o.max_out = MANY;

    return llm_ops_cpu.open(&exec, &o, err) == LLM_OK ? exec : NULL;
}


static llm_exec_t *
opened(const char *isa, const char *products, llm_err_t *err)
{
    return opened_with(isa, products, 2, err);
}


/* the product of n rows of x_rows[][n_in] with a weight of this type */

static void
product_of(llm_exec_t *exec, uint32_t type, uint32_t n_out, uint32_t n_in,
    int usage, const void *rows, const float *x_rows, uint32_t n, float *y)
{
    int32_t           ids[MANY] = { 0 };
    uint32_t          pos[MANY] = { 0 }, seq_rows[2], kv_len, page;
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

    w = ops->weight_create(exec, type, n_out, n_in, rows, usage, &err);
    from = ops->act_create(exec, n, n_in, LLM_ACT_VALUE, &err);
    to = ops->act_create(exec, n, n_out, LLM_ACT_PRODUCT, &err);

    if (w == NULL || from == NULL || to == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    memset(&out, 0, sizeof(out));
    out.w = w;
    out.y = to;

    ops->write(exec, from, 0, n, x_rows);
    (void) ops->begin(exec, &b, &err);
    ops->linear(exec, LLM_ROWS_ALL, from, &out, 1);
    (void) ops->end(exec, &err);
    memcpy(y, ops->map(exec, to, 0, n), (size_t) n * n_out * sizeof(float));

    ops->weight_free(exec, w);
    ops->act_free(exec, from);
    ops->act_free(exec, to);
}


/* of the first n rows of x[][n_in] */

static void
product_in(llm_exec_t *exec, uint32_t type, uint32_t n_in, int usage,
    const void *rows, uint32_t n, float *y)
{
    product_of(exec, type, N_OUT, n_in, usage, rows, x, n, y);
}


static void
product(llm_exec_t *exec, uint32_t type, int usage, const void *rows,
    uint32_t n, float *y)
{
    product_in(exec, type, N_IN, usage, rows, n, y);
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


/* random blocks as rows of n_in elements; their values rounded to bfloat16 */

static void
quantised(uint32_t type, uint32_t n_in, uint8_t *rows, uint16_t *bf16)
{
    size_t  i, size;

    size = llm_type_row_size(type, n_in) * N_OUT;

    for (i = 0; i < size; i++) {
        rows[i] = (uint8_t) rnd(256);
    }

    for (i = 0; i < size; i += llm_type_block_size(type)) {
        blocks_scale(type, rows + i, (float) (1 + rnd(100)) / 5000,
                     (float) (1 + rnd(100)) / 5000);
    }

    llm_dequantize(type, rows, weight, (size_t) N_OUT * n_in);

    for (i = 0; i < (size_t) N_OUT * n_in; i++) {
        bf16[i] = llm_f32_to_bf16(weight[i]);
    }
}


static void
test_quantised(const char *isa, uint32_t type, uint32_t n_in)
{
    size_t       size;
    uint8_t     *rows;
    uint32_t     n;
    uint16_t    *bf16;
    llm_err_t    err;
    llm_exec_t  *exec, *plain;

    static float  y[3][N_ROWS * N_OUT];

    exec = opened(isa, LLM_PRODUCTS_BF16_ALL, &err);
    plain = opened(isa, NULL, &err);
    rows = malloc(llm_type_row_size(type, n_in) * N_OUT);
    bf16 = malloc((size_t) N_OUT * n_in * 2);
    size = sizeof(y[0]);

    quantised(type, n_in, rows, bf16);

    product_in(exec, type, n_in, LLM_WEIGHT_LINEAR, rows, N_ROWS, y[0]);
    product_in(plain, LLM_TYPE_BF16, n_in, LLM_WEIGHT_LINEAR, bf16, N_ROWS,
               y[1]);
    product_in(plain, type, n_in, LLM_WEIGHT_LINEAR, rows, N_ROWS, y[2]);
    ok(memcmp(y[0], y[1], size) == 0,
       "%s: %s x %u is as a file of BF16: %.7f", isa, llm_type_name(type), n_in,
       run_distance(y[0], y[1], N_ROWS * N_OUT));
    ok(run_distance(y[0], y[2], N_ROWS * N_OUT) < 0.012
       && memcmp(y[0], y[2], size) != 0, "%s: near the usual product: %.5f",
       isa, run_distance(y[0], y[2], N_ROWS * N_OUT));

    for (n = 1; n < N_ROWS; n += 9) {
        product_in(exec, type, n_in, LLM_WEIGHT_LINEAR, rows, n, y[1]);
        ok(memcmp(y[0], y[1], n * N_OUT * sizeof(float)) == 0,
           "%s: %u of the rows have the same bits", isa, n);
    }

    product_in(exec, type, n_in, LLM_WEIGHT_LINEAR | LLM_WEIGHT_HEAD, rows,
               N_ROWS, y[1]);
    ok(memcmp(y[1], y[2], size) == 0, "%s: the head is as usual", isa);

    exec->ops->close(exec);
    plain->ops->close(plain);
    free(rows);
    free(bf16);
}


/* many rows by a large matrix: each row has the bits that it has alone */

static void
test_many(const char *isa, uint32_t type)
{
    int          same;
    float       *many, *y, *one;
    size_t       i, size;
    uint8_t     *rows;
    llm_err_t    err;
    llm_exec_t  *exec;

    exec = opened_with(isa, LLM_PRODUCTS_BF16_ALL, 1, &err);
    size = llm_type_row_size(type, MANY_IN) * MANY_OUT;
    rows = malloc(size);
    many = malloc((size_t) MANY * MANY_IN * sizeof(float));
    y = malloc((size_t) MANY * MANY_OUT * sizeof(float));
    one = malloc(SOME * MANY_OUT * sizeof(float));

    for (i = 0; i < size; i++) {
        rows[i] = (uint8_t) (0x20 | rnd(0x20));
    }

    for (i = 0; i < size && llm_type_block(type) > 1;
         i += llm_type_block_size(type))
    {
        blocks_scale(type, rows + i, 0.01f, 0.01f);
    }

    for (i = 0; i < MANY * MANY_IN; i++) {
        many[i] = (float) rnd(2001) / 1000 - 1;
    }

    product_of(exec, type, MANY_OUT, MANY_IN, LLM_WEIGHT_LINEAR, rows, many,
               MANY, y);

    for (i = 0, same = 1; i < MANY; i += 13) {
        product_of(exec, type, MANY_OUT, MANY_IN, LLM_WEIGHT_LINEAR, rows,
                   many + i * MANY_IN, 1, one);
        same &= memcmp(y + i * MANY_OUT, one, MANY_OUT * sizeof(float)) == 0;
    }

    ok(same, "%s: %s, %u rows by %u outputs have the bits of single rows", isa,
       llm_type_name(type), MANY, MANY_OUT);

    product_of(exec, type, MANY_OUT, MANY_IN, LLM_WEIGHT_LINEAR, rows, many,
               SOME, one);
    ok(memcmp(y, one, SOME * MANY_OUT * sizeof(float)) == 0,
       "%s: so have %u", isa, SOME);

    exec->ops->close(exec);
    free(rows);
    free(many);
    free(y);
    free(one);
}


/* with bf16 alone quantised weights are multiplied as usual: in int8 */

static void
test_unchanged(const char *isa)
{
    llm_err_t    err;
    llm_exec_t  *exec, *plain;

    static float     y[2][N_ROWS * N_OUT];
    static uint8_t   rows[N_OUT * 256 * 2];
    static uint16_t  bf16[N_OUT * 256];

    exec = opened(isa, LLM_PRODUCTS_BF16, &err);
    plain = opened(isa, NULL, &err);

    quantised(LLM_TYPE_Q8_0, 256, rows, bf16);
    product_in(exec, LLM_TYPE_Q8_0, 256, LLM_WEIGHT_LINEAR, rows, N_ROWS, y[0]);
    product_in(plain, LLM_TYPE_Q8_0, 256, LLM_WEIGHT_LINEAR, rows, N_ROWS,
               y[1]);
    ok(memcmp(y[0], y[1], sizeof(y[0])) == 0, "%s: Q8_0 is as without", isa);

    exec->ops->close(exec);
    plain->ops->close(plain);
}


static void
test_types(const char *isa)
{
    uint32_t     type;
    llm_err_t    err;
    llm_exec_t  *exec;

    test_unchanged(isa);

    exec = opened(isa, LLM_PRODUCTS_BF16_ALL, &err);
    ok((exec != NULL) == (strcmp(isa, "amx") == 0)
       && (exec || strstr(err.msg, "multiplies quantised weights faster in "
                          "int8, so it takes products=bf16 alone")),
       "%s: bf16-all is for AMX: %s", isa, exec ? "there" : err.msg);

    if (exec == NULL) {
        return;
    }

    exec->ops->close(exec);

    for (type = 0; type < LLM_TYPE_END; type++) {
        if (llm_type_name(type) && llm_type_block(type) > 1) {
            test_quantised(isa, type, MAX_IN);
        }
    }

    test_quantised(isa, LLM_TYPE_Q8_0, 96);
    test_quantised(isa, LLM_TYPE_Q4_0, 544);

    test_many(isa, LLM_TYPE_BF16);
    test_many(isa, LLM_TYPE_Q8_0);
    test_many(isa, LLM_TYPE_Q4_K);
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
       && llm_products_word("bf16-all", 8)
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

    for (i = 0; i < N_ROWS * MAX_IN; i++) {
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
        test_types(isas[i]);
        tried++;
    }

    printf("# %zu instruction sets of this CPU\n", tried);
    test_refused();

    return done_testing();
}
