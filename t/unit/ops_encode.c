/*
 * Attention without a causal mask, on every instruction set, against the
 * reference: whole sequences, windows on either side, slopes; the same bits
 * on other numbers of threads and beside another sequence; keys and values that
 * are tiny, and those that are no numbers.  The reference
 * itself is compared with plain sums here, and with transformers by
 * t/unit/encoders.c.
 */

#include "t/unit/ops_both.h"


static void
test_reference(const both_case_t *c, const float *data, const float *got)
{
    double    want[BOTH_MAX_DIM], far;
    uint32_t  row, head, k;

    far = 0;

    for (row = 0; row < c->n; row++) {
        for (head = 0; head < c->heads; head++) {
            both_plain(c, data, row, head, want);

            for (k = 0; k < c->dv; k++, got++) {
                far = llm_max(far, fabs(want[k] - *got));
            }
        }
    }

    ok(far < 1e-5, "the reference, %s: %.2g from plain sums", c->name, far);
}


/* on one instruction set, for weights of one type */

static void
test_for(const both_case_t *c, const char *isa, const ops_attention_t *t,
    const float *data, const float *want)
{
    int          same;
    float       *got, *again;
    size_t       n;
    double       far, bound;
    uint32_t     threads;
    llm_exec_t  *exec;

    /* cross-attention's K and V have no more bits than the weights */

    bound = c->cross && t->type == LLM_TYPE_F16 ? ops_attention[0].bound
                                                : t->bound;
    n = (size_t) c->n * c->heads * c->dv;
    got = ops_alloc(n * sizeof(float));
    again = ops_alloc(n * sizeof(float));

    for (threads = 1, same = 1; threads <= 3; threads++) {
        exec = ops_open_for(&llm_ops_cpu, isa, threads,
                            t->type, t->kv);

        if (exec == NULL) {
            break;
        }

        both_attend(exec, c, data, 0, threads == 1 ? got : again);
        same &= threads == 1 || memcmp(got, again, n * sizeof(float)) == 0;
        both_attend(exec, c, data, 1, again);
        same &= memcmp(got, again, n * sizeof(float)) == 0;
        exec->ops->close(exec);
    }

    if (threads == 1) {
        skip(isa);

    } else {
        far = ops_distance(got, want, n);
        ok(far < bound, "%s, %s: %s: %.2g", isa, t->name, c->name, far);
        ok(same, "%s, %s: %s: the same bits on 1 to 3 threads, alone and "
           "beside another sequence", isa, t->name, c->name);
    }

    free(got);
    free(again);
}


static void
test(const both_case_t *c)
{
    float       *data, *want;
    size_t       i, k, n;
    llm_exec_t  *exec;

    n = (size_t) c->n * c->heads * c->dv;
    data = ops_alloc(both_numbers(c, c->n + BOTH_BESIDE) * sizeof(float));
    want = ops_alloc(n * sizeof(float));
    ops_fill(data, both_numbers(c, c->n + BOTH_BESIDE), c->n);

    exec = ops_open(&llm_ops_reference, NULL, 1);
    both_attend(exec, c, data, 0, want);
    exec->ops->close(exec);
    test_reference(c, data, want);

    for (i = 0; i < llm_nelems(ops_isas); i++) {
        for (k = 0; k < llm_nelems(ops_attention); k++) {
            test_for(c, ops_isas[i], &ops_attention[k], data, want);
        }
    }

    free(data);
    free(want);
}


/* ---- keys and values of other sizes ---- */

static const both_case_t  extreme = {
    .name = "extremes", .n = 150, BOTH_HEADS(6, 2, 24, 24), .window = 24
};


/* the results of the case on each instruction set and for each kind of cache;
   calls the check with the reference's results for the same data */

static void
test_extreme(const float *data, void (*check)(const float *want,
    const float *got, const char *isa, const ops_attention_t *t))
{
    float       *want, *got;
    size_t       i, k, n;
    llm_exec_t  *exec;

    n = (size_t) extreme.n * extreme.heads * extreme.dv;
    want = ops_alloc(n * sizeof(float));
    got = ops_alloc(n * sizeof(float));
    exec = ops_open(&llm_ops_reference, NULL, 1);
    both_attend(exec, &extreme, data, 0, want);
    exec->ops->close(exec);

    for (i = 0; i < llm_nelems(ops_isas); i++) {
        for (k = 0; k < llm_nelems(ops_attention); k++) {
            exec = ops_open_for(&llm_ops_cpu, ops_isas[i], 2,
                                ops_attention[k].type, ops_attention[k].kv);

            if (exec == NULL) {
                skip(ops_isas[i]);
                continue;
            }

            both_attend(exec, &extreme, data, 0, got);
            exec->ops->close(exec);
            check(want, got, ops_isas[i], &ops_attention[k]);
        }
    }

    free(want);
    free(got);
}


/* of values up to 2^-16, for which the scale of an int8 has few bits, a fourth;
   of others 2^-6 */

static void
check_tiny(const float *want, const float *got, const char *isa,
    const ops_attention_t *t)
{
    size_t  i, n;
    double  far;

    n = (size_t) extreme.n * extreme.heads * extreme.dv;

    for (i = 0, far = 0; i < n; i++) {
        far = llm_max(far, fabs((double) got[i] - want[i]));
    }

    ok(far < (t->kv ? 0x1p-18 : 0x1p-22), "%s, %s: tiny values: %.2g", isa,
       t->name, far);
}


/* a result that is no number in the reference is none; other numbers of its
   head may be none, either */

static void
check_nan(const float *want, const float *got, const char *isa,
    const ops_attention_t *t)
{
    size_t  i, n, lost;

    n = (size_t) extreme.n * extreme.heads * extreme.dv;

    for (i = 0, lost = 0; i < n; i++) {
        lost += isnan(want[i]) && !isnan(got[i]);
    }

    is_int(lost, 0, "%s, %s: a NaN is not lost", isa, t->name);
}


static void
test_extremes(void)
{
    float   *data, *key, *value;
    size_t   i, n;

    n = both_numbers(&extreme, extreme.n);
    data = ops_alloc(n * sizeof(float));
    key = data + (size_t) extreme.n * extreme.heads * extreme.dk;
    value = key + (size_t) extreme.n * extreme.kv_heads * extreme.dk;

    ops_fill(data, n, 3);

    for (i = 0; i < (size_t) extreme.n * extreme.kv_heads * extreme.dv; i++) {
        value[i] *= 0x1p-16f;
    }

    test_extreme(data, check_tiny);

    ops_fill(data, n, 3);
    value[70 * extreme.kv_heads * extreme.dv + 5] = NAN;
    test_extreme(data, check_nan);

    ops_fill(data, n, 3);
    key[70 * extreme.kv_heads * extreme.dk + 5] = INFINITY;
    test_extreme(data, check_nan);

    free(data);
}


/* which positions a row sees */

static void
test_bounds(void)
{
    llm_heads_t  h;

    memset(&h, 0, sizeof(h));
    h.both = 1;
    ok(llm_heads_first(&h, 9) == 0 && llm_heads_end(&h, 9, 20) == 20,
       "without a window a row sees all");

    h.window = 6;
    ok(llm_heads_first(&h, 9) == 6 && llm_heads_end(&h, 9, 20) == 13,
       "a window of 6: three on either side");
    ok(llm_heads_first(&h, 3) == 0 && llm_heads_first(&h, 2) == 0,
       "at the beginning");
    ok(llm_heads_end(&h, 16, 20) == 20 && llm_heads_end(&h, 17, 20) == 20
       && llm_heads_end(&h, 19, 20) == 20, "at the end");

    h.both = 0;
    ok(llm_heads_first(&h, 9) == 4 && llm_heads_end(&h, 9, 20) == 10,
       "with a causal mask nothing behind it");
}


int
main(void)
{
    size_t  i;

    test_bounds();

    for (i = 0; i < llm_nelems(both_cases); i++) {
        test(&both_cases[i]);
    }

    test_extremes();

    return done_testing();
}
