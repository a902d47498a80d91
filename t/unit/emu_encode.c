/*
 * Attention without a causal mask by the CUDA backend in the emulator, against
 * the reference: the cases of ops_both.h and random ones, with keys and values
 * in f16 and in e4m3; the same bits beside another sequence.  What encoders
 * have beside it is in emu_dense.c.  LLM_GPU_DEVICE=cuda: on a GPU instead
 * (t/gpu/run.sh).
 */

#include "t/unit/emu_ops.h"
#include "t/unit/ops_both.h"

#define RANDOM_CASES  24

static llm_exec_t  *reference, *devs[2]; /* the latter by kv_fp8 */


/* numbers of so few digits that e4m3 has them */

static void
round_all(float *x, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        x[i] = fminf(fmaxf(roundf(x[i] * 4) / 4, -4), 4);
    }
}


static void
test(const both_case_t *c, int fp8)
{
    char    what[256];
    float  *data, *want, *got, *again;
    size_t  n;

    n = (size_t) c->n * c->heads * c->dv;
    data = ops_alloc(both_numbers(c, c->n + BOTH_BESIDE) * sizeof(float));
    want = ops_alloc(n * sizeof(float));
    got = ops_alloc(n * sizeof(float));
    again = ops_alloc(n * sizeof(float));
    ops_fill(data, both_numbers(c, c->n + BOTH_BESIDE), c->n);

    if (fp8) {
        round_all(data, both_numbers(c, c->n + BOTH_BESIDE));
    }

    both_attend(reference, c, data, 0, want);
    both_attend(devs[fp8], c, data, 0, got);
    both_attend(devs[fp8], c, data, 1, again);

    snprintf(what, sizeof(what), "%s%s: %u rows, %u heads of %u and %u, %u "
             "of KV", c->name, fp8 ? ", fp8" : "", c->n, c->heads, c->dk,
             c->dv, c->kv_heads);
    compare(got, want, n, 0.0015, what);
    ok(memcmp(got, again, n * sizeof(float)) == 0,
       "the same bits beside another sequence");

    free(data);
    free(want);
    free(got);
    free(again);
}


static void
test_random(uint64_t seed)
{
    char         name[64];
    uint32_t     r[8], i;
    both_case_t  c;

    for (i = 0; i < llm_nelems(r); i++) {
        r[i] = (uint32_t) (ops_random(&seed) >> 33);
    }

    memset(&c, 0, sizeof(c));
    c.n = 1 + r[0] % (r[1] % 3 ? 80 : 400);
    c.kv_heads = 1 + r[2] % 3;
    c.heads = c.kv_heads * (1 + r[2] / 3 % 4);
    c.dk = 4 * (1 + r[3] % 40);
    c.dv = r[3] / 40 % 2 ? c.dk : 4 * (1 + r[4] % 40);
    c.window = r[5] % 3 ? 1 + r[5] / 3 % 300 : 0;
    c.slopes = r[6] % 2;
    c.sinks = r[6] / 2 % 2;
    c.softcap = r[6] / 4 % 3 ? 0 : 2;

    snprintf(name, sizeof(name), "a window of %u%s%s%s", c.window,
             c.slopes ? ", slopes" : "", c.sinks ? ", sinks" : "",
             c.softcap > 0 ? ", capped" : "");
    c.name = name;

    test(&c, r[7] % 4 == 0);
}


int
main(void)
{
    size_t  i;

    (void) setenv("LLM_EMU_SEED", "19", 0);

    for (i = 0; i < 2; i++) {
        devs[i] = open_emu(LLM_TYPE_F16, 0, (int) i);
    }

    if (devs[0] == NULL || devs[1] == NULL) {
        return done_without_device();
    }

    reference = ops_open(&llm_ops_reference, NULL, 1);

    for (i = 0; i < llm_nelems(both_cases); i++) {
        test(&both_cases[i], 0);
        test(&both_cases[i], 1);
    }

    for (i = 0; i < RANDOM_CASES; i++) {
        test_random(i);
    }

    reference->ops->close(reference);

    for (i = 0; i < 2; i++) {
        devs[i]->ops->close(devs[i]);
    }

    return done_testing();
}
