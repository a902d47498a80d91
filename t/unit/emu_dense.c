/*
 * The operations on rows that dense decoders have beside the plain ones, by
 * the CUDA backend in the emulator against the reference: the cases of
 * ops_rows.h.  Rows alone and among others have the same bits, launched as in
 * a replayed step.  Attention's kinds are in emu.c.  LLM_GPU_DEVICE=cuda: on a
 * GPU instead (t/gpu/run.sh).
 */

#include "t/unit/emu_ops.h"
#include "t/unit/ops_rows.h"


/* on a device of its own: a captured step belongs to its buffers */

static void
run_new(const row_case_t *c, const float *x, const float *y, const float *w,
    uint32_t step, float *out)
{
    llm_exec_t  *d;

    d = open_emu(LLM_TYPE_F16, 0, 0);
    run_rows(d, c, x, y, w, step, out);
    d->ops->close(d);
}


static void
test_rows(const row_case_t *c)
{
    int          same;
    float       *x, *y, *w, *out[3];
    size_t       i, n;
    llm_exec_t  *ref;

    static const uint32_t  steps[] = { 1, 5 };

    n = ROWS * COLS;
    x = ops_alloc(n * sizeof(float));
    y = ops_alloc(n * sizeof(float));
    w = ops_alloc(n * sizeof(float));

    for (i = 0; i < 3; i++) {
        out[i] = ops_alloc(n * sizeof(float));
    }

    rows_fill(x, y, w);

    ref = ops_open(&llm_ops_reference, NULL, 1);
    run_rows(ref, c, x, y, w, ROWS, out[0]);
    ref->ops->close(ref);

    run_new(c, x, y, w, ROWS, out[1]);
    compare(out[1], out[0], n, 1e-6, c->name);

    for (i = 0, same = 1; i < llm_nelems(steps); i++) {
        run_new(c, x, y, w, steps[i], out[2]);
        same &= memcmp(out[1], out[2], n * sizeof(float)) == 0;
    }

    ok(same, "%s: the same bits row by row", c->name);

    for (i = 0; i < 3; i++) {
        free(out[i]);
    }

    free(x);
    free(y);
    free(w);
}


int
main(void)
{
    size_t       i;
    llm_exec_t  *d;

    (void) setenv("LLM_EMU_SEED", "13", 0);

    d = open_emu(LLM_TYPE_F16, 0, 0);

    if (d == NULL) {
        return done_without_device();
    }

    d->ops->close(d);

    for (i = 0; i < llm_nelems(row_cases); i++) {
        test_rows(&row_cases[i]);
    }

    return done_testing();
}
