/*
 * Gated networks in one launch (linear_glu()) in the CUDA backend, run by the
 * emulator (LLM_GPU_DEVICE=cuda: on a GPU instead): the bits of linear() and
 * glu(), for every shape of kernel, also where it is launched before x is
 * known; and what it leaves to these two.  On a GPU that may be any of them: if
 * cublasLt has a plan for a product, it is not computed this way.
 */

#include "t/unit/emu_ops.h"

#define MOST  20                        /* rows */

/* a case: `done`: by linear_glu(), without a plan of cublasLt */
typedef struct {
    uint32_t   n_ff;
    uint32_t   n_in;
    uint32_t   rows;
    llm_glu_t  act;
    int        bias;
    uint32_t   type;
    int        done;
} glu_case_t;

static const glu_case_t  cases[] = {
    { 40, 64, 1, LLM_GLU_SILU, 0, LLM_TYPE_F16, 1 },
    { 1, 32, 1, LLM_GLU_GELU, 1, LLM_TYPE_F32, 1 },
    { 30, 2336, 1, LLM_GLU_SILU, 1, LLM_TYPE_BF16, 1 },
    { 4300, 32, 1, LLM_GLU_SILU, 0, LLM_TYPE_F16, 1 },
    { 41, 96, 3, LLM_GLU_CLAMPED, 1, LLM_TYPE_F16, 1 },
    { 24, 1760, 8, LLM_GLU_SILU, 0, LLM_TYPE_F16, 1 },
    { 4250, 160, 5, LLM_GLU_SILU, 1, LLM_TYPE_F16, 1 },
    { 50, 1312, 16, LLM_GLU_GELU, 0, LLM_TYPE_BF16, 1 },
    { 4250, 672, 11, LLM_GLU_SILU, 0, LLM_TYPE_F16, 1 },

    /* more rows, columns that would have to be padded, other weights */
    { 24, 64, MOST, LLM_GLU_SILU, 0, LLM_TYPE_F16, 0 },
    { 24, 33, 4, LLM_GLU_SILU, 0, LLM_TYPE_F16, 0 },
    { 24, 256, 4, LLM_GLU_SILU, 0, LLM_TYPE_Q8_0, 0 }
};


/* `one`: by linear_glu(), if the device does it; returns whether it did */

static int
network(llm_exec_t *d, const glu_case_t *c, int one, float *out)
{
    int            did;
    float         *x, *bias;
    size_t         i;
    rows_t         r = { 0, c->rows, 0 };
    step_t        *s;
    uint8_t       *m[2];
    llm_act_t     *ax, *ay;
    llm_err_t      err;
    llm_linear_t   l[2];

    x = ops_alloc((size_t) c->rows * c->n_in * sizeof(float));
    bias = ops_alloc(c->n_ff * sizeof(float));
    ops_fill(x, (size_t) c->rows * c->n_in, 6);
    s = ops_alloc(sizeof(step_t));
    step_fill(s, &r, 1, 1);
    s->b.n_out = 0;
    ax = act(d, LLM_ACT_VALUE, c->rows, c->n_in, x);
    ay = act(d, LLM_ACT_VALUE, c->rows, c->n_ff, NULL);
    memset(l, 0, sizeof(l));

    for (i = 0; i < 2; i++) {
        m[i] = matrix(c->type, c->n_ff, c->n_in, i + 1);
        ops_fill(bias, c->n_ff, 3 + i);
        l[i].w = d->ops->weight_create(d, c->type, c->n_ff, c->n_in, m[i],
                                       LLM_WEIGHT_LINEAR, &err);
        l[i].bias = c->bias ? d->ops->vec_create(d, bias, c->n_ff, &err)
                            : NULL;
        l[i].y = act(d, LLM_ACT_PRODUCT, c->rows, c->n_ff, NULL);
    }

    (void) d->ops->begin(d, &s->b, &err);
    did = one && d->ops->linear_glu(d, LLM_ROWS_ALL, ax, c->act, &l[0], &l[1],
                                    ay);

    if (!did) {
        d->ops->linear(d, LLM_ROWS_ALL, ax, l, 2);
        d->ops->glu(d, LLM_ROWS_ALL, c->act, l[0].y, l[1].y, ay);
    }

    ok(d->ops->end(d, &err) == LLM_OK, "a step");
    ops_read(d, ay, out, c->rows, c->n_ff);

    for (i = 0; i < 2; i++) {
        d->ops->act_free(d, l[i].y);
        d->ops->weight_free(d, (llm_weight_t *) l[i].w);
        d->ops->vec_free(d, (llm_vec_t *) l[i].bias);
        free(m[i]);
    }

    d->ops->act_free(d, ax);
    d->ops->act_free(d, ay);
    free(x);
    free(bias);
    free(s);

    return did;
}


static void
test(llm_exec_t *d, const glu_case_t *c, int bf16)
{
    int     did;
    size_t  n;
    float  *out[2];

    n = (size_t) c->rows * c->n_ff;
    out[0] = ops_alloc(n * sizeof(float));
    out[1] = ops_alloc(n * sizeof(float));

    (void) network(d, c, 0, out[0]);
    did = network(d, c, 1, out[1]);

    ok(did == c->done || (!did && getenv("LLM_GPU_DEVICE")),
       "%s of [%u, %u], %u rows: %s launch", llm_type_name(c->type), c->n_ff,
       c->n_in, c->rows, did ? "one" : "not one");
    ok(memcmp(out[0], out[1], n * sizeof(float)) == 0,
       "the same bits, %s", bf16 ? "bf16" : "f16");

    free(out[0]);
    free(out[1]);
}


int
main(void)
{
    size_t       i, k;
    llm_exec_t  *d;

    /* on a Hopper kernels are launched early; PTX is for one GPU */
    static const char *const  capabilities[] = { "89", "90" };

    (void) setenv("LLM_EMU_SEED", "13", 0);

    for (k = 0; k < 2; k++) {
        if (!getenv("LLM_EMU_PTX")) {
            (void) setenv("LLM_EMU_CAPABILITY", capabilities[k], 1);
        }

        d = open_emu(k ? LLM_TYPE_BF16 : LLM_TYPE_F16, 0, 0);

        if (d == NULL) {
            return done_without_device();
        }

        for (i = 0; i < llm_nelems(cases); i++) {
            test(d, &cases[i], (int) k);
        }

        d->ops->close(d);
    }

    return done_testing();
}
