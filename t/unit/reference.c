/*
 * The reference operations one by one, on numbers worked out by hand: what
 * models in t/unit/model.c do not use, and the corners.
 */

#include "t/unit/tap.h"
#include "kernels/kernels.h"

#include <math.h>

#define ROWS  4


static const llm_ops_t  *ops = &llm_ops_reference;
static llm_exec_t       *exec;
static llm_err_t         err;

/* three rows of two sequences; rows 0 and 2 want logits */
static const int32_t    tokens[] = { 1, 0, 2 };
static const uint32_t   pos[] = { 0, 1, 0 };
static const uint32_t   seq_rows[] = { 0, 2, 3 };
static const uint32_t   kv_len[] = { 2, 1 };
static const uint32_t   pages[] = { 1, 0 };
static const uint32_t   out_rows[] = { 0, 2 };

static const llm_batch_t  batch = {
    .n_tokens = 3, .n_seqs = 2, .n_out = 2, .max_pages = 1,
    .tokens = tokens, .pos = pos, .seq_rows = seq_rows, .kv_len = kv_len,
    .pages = { pages }, .out_rows = out_rows
};


static llm_act_t *
act(uint32_t cols, const float *rows, uint32_t n)
{
    llm_act_t  *a;

    a = ops->act_create(exec, ROWS, cols, LLM_ACT_VALUE, &err);

    if (a && rows) {
        ops->write(exec, a, 0, n, rows);
    }

    return a;
}


/* rows of an activation against what they should be */

static void
same(const llm_act_t *a, uint32_t row, const float *want, uint32_t n,
    const char *what)
{
    uint32_t      i;
    const float  *got;

    got = ops->map(exec, a, row, 1);

    for (i = 0; i < n && fabsf(got[i] - want[i]) <= 1e-6f; i++) {
        /* void */
    }

    if (!ok(i == n, "%s", what)) {
        printf("# [%u] is %.9g, not %.9g\n", i, got[i], want[i]);
    }
}


static void
test_glu(void)
{
    llm_act_t  *gate, *up, *y;

    /* x / (1 + e^-x), and x (1 + tanh(sqrt(2 / pi) (x + .044715 x^3))) / 2 */
    static const float  g[] = { -1, 0, 1, 2, -1, 0, 1, 2, 3, -3, 50, -50 };
    static const float  u[] = { 1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1 };
    static const float  silu[] = { -0.26894143f, 0, 0.73105860f, 1.7615942f };
    static const float  gelu[] = { -0.15880801f, 0, 0.84119199f, 1.9545977f };
    static const float  twice[] = { -0.53788286f, 0, 1.4621172f,
                                    3.5231884f };
    static const float  far[] = { 2.9963627f, -0.0036374f, 50, 0 };

    gate = act(4, g, 3);
    up = act(4, u, 3);
    y = act(4, NULL, 0);

    (void) ops->begin(exec, &batch, &err);
    ops->glu(exec, LLM_ROWS_ALL, LLM_GLU_SILU, gate, up, y);
    (void) ops->end(exec, &err);
    same(y, 0, silu, 4, "SiLU");
    same(y, 1, twice, 4, "SiLU times up");

    (void) ops->begin(exec, &batch, &err);
    ops->glu(exec, LLM_ROWS_ALL, LLM_GLU_GELU, gate, up, y);
    (void) ops->end(exec, &err);
    same(y, 0, gelu, 4, "GELU by tanh");
    same(y, 2, far, 4, "GELU far out");

    ops->act_free(exec, gate);
    ops->act_free(exec, up);
    ops->act_free(exec, y);
}


static void
test_norm_gather(void)
{
    llm_vec_t  *w;
    llm_act_t  *x, *y, *few;
    llm_norm_t  norm = { .eps = 0 };

    static const float  weight[] = { 1, 2 };
    static const float  rows[] = { 3, 4, 6, 8, 0, 2 };
    static const float  first[] = { 3, 4 };
    static const float  third[] = { 0, 2 };
    /* rms(3, 4) = sqrt(12.5) */
    static const float  normed[] = { 0.84852814f, 2.2627417f };

    w = ops->vec_create(exec, weight, 2, &err);
    norm.w = w;
    x = act(2, rows, 3);
    y = act(2, NULL, 0);
    few = act(2, NULL, 0);

    (void) ops->begin(exec, &batch, &err);
    ops->norm(exec, LLM_ROWS_ALL, x, &norm, y);
    ops->gather(exec, x, few);
    (void) ops->end(exec, &err);

    same(y, 1, normed, 2, "x / rms(x) * w");
    same(few, 0, first, 2, "row 0 is gathered first");
    same(few, 1, third, 2, "row 2 second");

    (void) ops->begin(exec, &batch, &err);
    ops->write(exec, y, 2, 1, third);
    ops->norm(exec, LLM_ROWS_OUT, few, &norm, y);
    (void) ops->end(exec, &err);

    same(y, 0, normed, 2, "norm of the gathered rows");
    same(y, 2, third, 2, "and of no row behind them");

    ops->vec_free(exec, w);
    ops->act_free(exec, x);
    ops->act_free(exec, y);
    ops->act_free(exec, few);
}


static void
test_linear(void)
{
    char           unaligned[2 * 3 * sizeof(float) + 1];
    llm_vec_t     *bias;
    llm_act_t     *x, *y, *z;
    llm_weight_t  *w;

    static const float  matrix[] = { 1, 2, 3, 4, 5, 6 };    /* [2, 3] */
    static const float  b[] = { 10, 20 };
    static const float  rows[] = { 1, 0, 0, 0, 1, 0, 1, 1, 1 };
    static const float  old[] = { 100, 100, 100, 100, 100, 100 };
    static const float  last[] = { 6, 15 };
    static const float  added[] = { 116, 135 };

    memcpy(unaligned + 1, matrix, sizeof(matrix));

    w = ops->weight_create(exec, LLM_TYPE_F32, 2, 3, unaligned + 1,
                           LLM_WEIGHT_LINEAR, &err);
    bias = ops->vec_create(exec, b, 2, &err);
    x = act(3, rows, 3);
    y = act(2, NULL, 0);
    z = act(2, old, 3);

    {
        llm_linear_t  out[] = { { w, NULL, y, 0 }, { w, bias, z, 1 } };

        (void) ops->begin(exec, &batch, &err);
        ops->linear(exec, LLM_ROWS_ALL, x, out, 2);
        (void) ops->end(exec, &err);
    }

    same(y, 2, last, 2, "x W^T, of unaligned weights");
    same(z, 2, added, 2, "with a bias, added to what is there");

    ops->weight_free(exec, w);
    ops->vec_free(exec, bias);
    ops->act_free(exec, x);
    ops->act_free(exec, y);
    ops->act_free(exec, z);
}


/*
 * One head of two dimensions that are both turned, by a quarter of a circle
 * a position; values are as wide as one.
 */

static void
test_attention(void)
{
    llm_kv_t      *kv;
    llm_act_t     *q, *k, *v, *out;
    llm_vec_t     *freq;
    llm_kv_opts_t  o = { .n_layers = 2, .n_pages = 2, .n_kv_heads = 1,
                         .head_dim_k = 2, .head_dim_v = 1 };
    llm_heads_t    h = { .layer = 1, .n_heads = 1, .n_kv_heads = 1,
                         .head_dim_k = 2, .head_dim_v = 1, .scale = 1 };
    llm_rope_t     rope = { .kind = LLM_ROPE_NEOX, .n_dims = 2,
                            .mscale = 1 };

    static const float  quarter = 1.57079633f;
    static const float  ones[] = { 1, 0, 1, 0, 1, 0 };
    static const float  values[] = { 1, 2, 5 };
    static const float  turned[] = { 0, 1 };
    static const float  first[] = { 1 };
    /* scores 0 (turned away) and 1: (1 + 2 e) / (1 + e) */
    static const float  second[] = { 1.7310586f };
    static const float  other[] = { 5 };

    kv = ops->kv_create(exec, &o, &err);
    freq = ops->vec_create(exec, &quarter, 1, &err);
    q = act(2, ones, 3);
    k = act(2, ones, 3);
    v = act(1, values, 3);
    out = act(1, NULL, 0);
    rope.inv_freq = freq;

    (void) ops->begin(exec, &batch, &err);
    ops->rope_kv(exec, &h, &rope, q, k, v, kv);
    ops->attention(exec, &h, q, kv, out);
    (void) ops->end(exec, &err);

    same(q, 1, turned, 2, "position 1 is turned by a quarter");
    same(out, 0, first, 1, "position 0 sees itself");
    same(out, 1, second, 1, "position 1 sees both");
    same(out, 2, other, 1, "another sequence sees neither");

    is_int(ops->kv_page_size(exec, &o), 2 * LLM_KV_PAGE * 3 * sizeof(float),
           "a page of both layers");

    ops->kv_free(exec, kv);
    ops->vec_free(exec, freq);
    ops->act_free(exec, q);
    ops->act_free(exec, k);
    ops->act_free(exec, v);
    ops->act_free(exec, out);
}


int
main(void)
{
    llm_exec_opts_t  o;

    memset(&o, 0, sizeof(o));
    o.max_tokens = ROWS;
    o.max_seqs = 2;
    o.max_pages = 1;

    if (!ok(ops->open(&exec, &o, &err) == LLM_OK, "the device opens")) {
        return done_testing();
    }

    ok(ops->memory_free(exec) > 0, "it has memory");

    test_glu();
    test_norm_gather();
    test_linear();
    test_attention();

    ops->close(exec);

    return done_testing();
}
