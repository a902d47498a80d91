/*
 * Latent attention's operations: products of heads with a matrix each, and
 * attention whose V is the beginning of K.  The reference against sums in
 * float64 written down here, every instruction set against the reference, and
 * the same bits whatever rows a step has.
 */

#include "t/unit/latent.h"


/* ---- heads ---- */

static void
naive_heads(const heads_case_t *c, const char *m, const float *x, float *y)
{
    float         *row;
    double         sum;
    size_t         size;
    uint32_t       r, h, o, i, in, out;
    const float   *from;

    in = c->n_in + c->rest;
    out = c->n_out + c->rest;
    size = llm_type_row_size(c->type, c->n_in);
    row = ops_alloc(c->n_in * sizeof(float));

    for (h = 0; h < c->n_heads; h++) {
        for (o = 0; o < out; o++) {
            if (o < c->n_out) {
                llm_dequantize(c->type, m + (h * c->n_out + o) * size, row,
                               c->n_in);
            }

            for (r = 0; r < c->rows; r++) {
                from = x + ((size_t) r * c->n_heads + h) * in;

                for (i = 0, sum = 0; i < c->n_in; i++) {
                    sum += (double) from[i] * row[i];
                }

                y[((size_t) r * c->n_heads + h) * out + o]
                    = o < c->n_out ? (float) sum
                                   : from[c->n_in + o - c->n_out];
            }
        }
    }

    free(row);
}


static void
test_heads(const heads_case_t *c)
{
    int       same;
    void     *m;
    float    *x, *want, *got, *again;
    char      what[96];
    size_t    i, n;
    double    far;

    n = (size_t) c->rows * c->n_heads;
    x = ops_alloc(n * (c->n_in + c->rest) * sizeof(float));
    n *= c->n_out + c->rest;
    want = ops_alloc(n * sizeof(float));
    got = ops_alloc(n * sizeof(float));
    again = ops_alloc(n * sizeof(float));
    m = heads_matrix(c);

    ops_fill(x, (size_t) c->rows * c->n_heads * (c->n_in + c->rest), 3);
    snprintf(what, sizeof(what), "%s, %u heads, %u to %u and %u",
             llm_type_name(c->type), c->n_heads, c->n_in, c->n_out, c->rest);

    naive_heads(c, m, x, want);
    run_heads(ops_open(&llm_ops_reference, NULL, 2), c, LLM_ACT_RESIDUAL, m,
              NULL, x, c->rows, got);
    far = ops_distance(got, want, n);
    ok(far < 1e-6, "reference: %s: %.2g", what, far);

    for (i = 0; i < llm_nelems(ops_isas); i++) {
        llm_exec_t  *exec = ops_open(&llm_ops_cpu, ops_isas[i], 2);

        if (exec == NULL) {
            skip(ops_isas[i]);
            continue;
        }

        run_heads(exec, c, LLM_ACT_RESIDUAL, m, NULL, x, c->rows, got);
        far = ops_distance(got, want, n);
        ok(far < c->bound, "%s: %s: %.2g", ops_isas[i], what, far);

        exec = ops_open(&llm_ops_cpu, ops_isas[i], 2);
        run_heads(exec, c, LLM_ACT_RESIDUAL, m, NULL, x, 1, again);
        same = memcmp(got, again, n * sizeof(float)) == 0;
        exec = ops_open(&llm_ops_cpu, ops_isas[i], 2);
        run_heads(exec, c, LLM_ACT_RESIDUAL, m, NULL, x, 19, again);
        same &= memcmp(got, again, n * sizeof(float)) == 0;
        ok(same, "%s: %s: the same bits row by row", ops_isas[i], what);
    }

    free(m);
    free(x);
    free(want);
    free(got);
    free(again);
}


/* ---- attention ---- */

static void
naive_turn(const latent_t *t, double *x, uint32_t pos)
{
    double    angle, a, b;
    uint32_t  i, n, first, second;

    n = t->c->dim_k - t->c->dim_v;
    n -= n % 2;

    for (i = 0; i < n / 2; i++) {
        first = t->c->kind == LLM_ROPE_NORM ? 2 * i : i;
        second = t->c->kind == LLM_ROPE_NORM ? 2 * i + 1 : i + n / 2;
        angle = pos * (double) t->freq[i];
        a = x[first];
        b = x[second];
        x[first] = a * cos(angle) - b * sin(angle);
        x[second] = a * sin(angle) + b * cos(angle);
    }
}


/* one head of K, or of Q: `v` elements from v, the others from k, turned */

static void
naive_head(const latent_t *t, const float *v, const float *k, uint32_t pos,
    double *out)
{
    uint32_t  i;

    for (i = 0; i < t->c->dim_v; i++) {
        out[i] = v[i];
    }

    for ( /* void */ ; i < t->c->dim_k; i++) {
        out[i] = k[i - t->c->dim_v];
    }

    naive_turn(t, out + t->c->dim_v, pos);
}


static void
naive_attend(const latent_t *t, uint32_t pos, uint32_t head, float *out)
{
    double                sum, score, f, q[640], k[640], acc[640];
    uint32_t              i, p, first, at;
    const float          *v;
    const latent_case_t  *c = t->c;

    v = t->q + (size_t) pos * t->q_cols + head * c->dim_k;
    naive_head(t, v, v + c->dim_v, pos, q);
    f = c->temper > 0 ? 1 + c->temper * log(1 + floor((pos + 1) / 16.0)) : 1;
    at = head / (c->n_heads / c->n_kv_heads);
    first = c->window && pos >= c->window ? pos + 1 - c->window : 0;
    memset(acc, 0, sizeof(acc));
    sum = 0;

    for (p = first; p <= pos; p++) {
        v = t->v + (size_t) p * t->v_cols + at * c->dim_v;
        naive_head(t, v, t->k + (size_t) p * t->k_cols
                         + at * (c->dim_k - c->dim_v), p, k);

        for (i = 0, score = 0; i < c->dim_k; i++) {
            score += q[i] * k[i];
        }

        score = exp(0.1 * f * score);
        sum += score;

        for (i = 0; i < c->dim_v; i++) {
            acc[i] += score * k[i];
        }
    }

    for (i = 0; i < c->dim_v; i++) {
        out[i] = (float) (acc[i] / sum);
    }
}


static void
test_latent(const latent_case_t *c)
{
    int          same;
    float       *want, *got, *again;
    size_t       i, n;
    double       far;
    latent_t     t;
    uint32_t     row, h;
    llm_exec_t  *exec;

    latent_init(&t, c);
    n = (size_t) c->n * t.out_cols;
    want = ops_alloc(n * sizeof(float));
    got = ops_alloc(n * sizeof(float));
    again = ops_alloc(n * sizeof(float));

    for (row = 0; row < c->n; row++) {
        for (h = 0; h < c->n_heads; h++) {
            naive_attend(&t, row, h, want + (size_t) row * t.out_cols
                                     + h * c->dim_v);
        }
    }

    run_latent(ops_open(&llm_ops_reference, NULL, 2), &t, OPS_MAX_ROWS, got);
    far = ops_distance(got, want, n);
    ok(far < 1e-6, "reference: %s: %.2g", c->name, far);

    for (i = 0; i < llm_nelems(ops_isas); i++) {
        exec = ops_open(&llm_ops_cpu, ops_isas[i], 2);

        if (exec == NULL) {
            skip(ops_isas[i]);
            continue;
        }

        run_latent(exec, &t, OPS_MAX_ROWS, got);
        far = ops_distance(got, want, n);
        ok(far < 0.001, "%s: %s: %.2g", ops_isas[i], c->name, far);

        run_latent(ops_open(&llm_ops_cpu, ops_isas[i], 2), &t, 1, again);
        same = memcmp(got, again, n * sizeof(float)) == 0;
        run_latent(ops_open(&llm_ops_cpu, ops_isas[i], 2), &t, 29, again);
        same &= memcmp(got, again, n * sizeof(float)) == 0;
        ok(same, "%s: %s: the same bits in any steps", ops_isas[i], c->name);
    }

    latent_free(&t);
    free(want);
    free(got);
    free(again);
}


/* a page holds what is kept once, whatever the device adds to it */

static void
test_page(const llm_ops_t *ops, const char *isa)
{
    size_t           once, twice;
    llm_exec_t      *exec;
    llm_kv_layer_t   layer = { 1, 576, 512, 1 };
    llm_kv_opts_t    o = { .n_layers = 1, .n_kv_heads = 1,
                           .head_dim_k = 576, .head_dim_v = 512,
                           .n_heads = 16, .layers = &layer };

    exec = ops_open(ops, isa, 1);
    once = exec->ops->kv_page_size(exec, &o);
    o.layers = NULL;
    twice = exec->ops->kv_page_size(exec, &o);

    ok(once * (576 + 512) == twice * 576, "%s: a latent page has %zu bytes, "
       "not %zu", isa ? isa : "reference", once, twice);
    exec->ops->close(exec);
}


int
main(void)
{
    size_t  i;

    for (i = 0; i < llm_nelems(heads_cases); i++) {
        test_heads(&heads_cases[i]);
    }

    for (i = 0; i < llm_nelems(latent_cases); i++) {
        test_latent(&latent_cases[i]);
    }

    test_page(&llm_ops_reference, NULL);
    test_page(&llm_ops_cpu, NULL);

    return done_testing();
}
