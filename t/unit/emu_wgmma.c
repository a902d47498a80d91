/*
 * Products with many rows by wgmma in the CUDA backend, run by the emulator
 * (LLM_GPU_DEVICE=cuda: on a GPU instead): the bits of the kernels for few rows,
 * for every type of weight, whatever the shape.  cublasLt takes no part.
 */

#include "t/unit/emu_ops.h"

#define FEW  64                         /* rows that those kernels take */

typedef struct {
    uint32_t   type;
    uint32_t   n_out;
    uint32_t   n_in;
    uint32_t   rows;
    int        bias;
    int        add;
} wgmma_case_t;

static const wgmma_case_t  cases[] = {
    /* columns: half a stage, a stage and a half, more than the ring */
    { LLM_TYPE_F16, 1, 32, 65, 0, 0 },
    { LLM_TYPE_F16, 130, 96, 128, 1, 0 },
    { LLM_TYPE_BF16, 64, 512, 129, 0, 1 },
    { LLM_TYPE_F32, 300, 1056, 200, 1, 1 },
    { LLM_TYPE_F16, 129, 50, 70, 0, 0 },

    /* too many for small blocks: blocks of 128 rows, and of 256 */
    { LLM_TYPE_F16, 8600, 160, 70, 1, 1 },
    { LLM_TYPE_F16, 16800, 96, 130, 0, 0 },
    { LLM_TYPE_BF16, 8400, 32, 300, 1, 0 },

    /* packed: columns that end within a quad, fewer quads than parts of K, and
       more */
    { LLM_TYPE_Q8_0, 130, 96, 129, 0, 0 },
    { LLM_TYPE_Q8_0, 20, 1312, 65, 1, 1 },
    { LLM_TYPE_Q4_0, 100, 160, 70, 1, 0 },
    { LLM_TYPE_Q4_0, 257, 2080, 66, 0, 1 },
    { LLM_TYPE_Q4_K, 140, 512, 131, 1, 0 },
    { LLM_TYPE_Q5_0, 60, 416, 80, 0, 0 },
    { LLM_TYPE_Q5_K, 16, 1280, 128, 1, 1 },
    { LLM_TYPE_Q6_K, 129, 768, 100, 0, 0 },
    { LLM_TYPE_Q2_K, 70, 1280, 90, 1, 0 },
    { LLM_TYPE_Q3_K, 64, 256, 66, 0, 1 },
    { LLM_TYPE_IQ4_XS, 150, 512, 65, 1, 0 },
    { LLM_TYPE_MXFP4, 33, 1184, 67, 0, 0 },

    /* too many for small blocks */
    { LLM_TYPE_Q8_0, 2900, 160, 129, 1, 0 },
    { LLM_TYPE_Q4_0, 4300, 1056, 65, 0, 1 },
    { LLM_TYPE_Q5_K, 2900, 256, 130, 0, 0 },
    { LLM_TYPE_Q6_K, 2830, 256, 129, 0, 0 },
    { LLM_TYPE_Q2_K, 2900, 256, 129, 0, 0 },
    { LLM_TYPE_IQ4_NL, 2900, 288, 129, 0, 0 }
};

/* F16 as class 1 */
static const wgmma_case_t  cases_fp8[] = {
    { LLM_TYPE_F16, 130, 100, 129, 0, 0 },
    { LLM_TYPE_F32, 257, 1312, 70, 1, 1 },
    { LLM_TYPE_F16, 2900, 200, 129, 0, 0 }
};


static void
test(llm_exec_t *d, const wgmma_case_t *c, const char *what)
{
    float     *x, *y[2], *bias;
    size_t     i, n;
    uint8_t   *m;
    uint32_t   at, rows;

    n = (size_t) c->rows * c->n_out;
    m = matrix(c->type, c->n_out, c->n_in, c->n_in);
    x = ops_alloc((size_t) c->rows * c->n_in * sizeof(float));
    bias = ops_alloc(c->n_out * sizeof(float));
    ops_fill(x, (size_t) c->rows * c->n_in, c->rows);
    ops_fill(bias, c->n_out, 4);

    for (i = 0; i < 2; i++) {
        y[i] = ops_alloc(n * sizeof(float));
        ops_fill(y[i], n, 5);
    }

    product(d, c->type, m, c->n_out, c->n_in, LLM_WEIGHT_LINEAR, c->rows, x,
            c->bias ? bias : NULL, c->add, y[0]);

    for (at = 0; at < c->rows; at += rows) {
        rows = llm_min(c->rows - at, (uint32_t) FEW);
        product(d, c->type, m, c->n_out, c->n_in, LLM_WEIGHT_LINEAR, rows,
                x + (size_t) at * c->n_in, c->bias ? bias : NULL, c->add,
                y[1] + (size_t) at * c->n_out);
    }

    ok(memcmp(y[0], y[1], n * sizeof(float)) == 0,
       "%s, %s [%u, %u]: %u rows have the bits of %u at a time%s%s", what,
       llm_type_name(c->type), c->n_out, c->n_in, c->rows, FEW,
       c->bias ? ", bias" : "", c->add ? ", added" : "");

    free(m);
    free(x);
    free(bias);
    free(y[0]);
    free(y[1]);
}


int
main(void)
{
    int          bf16;
    size_t       i;
    llm_exec_t  *d;

    (void) setenv("LLM_EMU_CAPABILITY", "90", 0);
    (void) setenv("LLM_EMU_SEED", "7", 0);
    (void) setenv("LLM_EMU_BLAS", "0", 0);

    for (bf16 = 0; bf16 < 2; bf16++) {
        d = open_emu(bf16 ? LLM_TYPE_BF16 : LLM_TYPE_F16, 0, 0);

        if (d == NULL) {
            return done_without_device();
        }

        for (i = 0; i < llm_nelems(cases); i++) {
            test(d, &cases[i], bf16 ? "bf16" : "f16");
        }

        d->ops->close(d);
        d = open_emu(bf16 ? LLM_TYPE_BF16 : LLM_TYPE_F16, 1, 0);

        for (i = 0; d && i < llm_nelems(cases_fp8); i++) {
            test(d, &cases_fp8[i], bf16 ? "bf16, fp8" : "f16, fp8");
        }

        d->ops->close(d);
    }

    return done_testing();
}
