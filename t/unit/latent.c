/*
 * Latent attention's operations: products of heads with a matrix each, and
 * attention whose V is the beginning of K.  The reference against sums in
 * float64 written down here, every instruction set against the reference, and
 * the same bits whatever rows a step has.
 */

#include "t/unit/ops.h"

#include <string.h>

#define MAX_N  1200                     /* positions */


/* ---- heads ---- */

typedef struct {
    uint32_t   type;
    uint32_t   n_heads;
    uint32_t   n_in;
    uint32_t   n_out;
    uint32_t   rest;                    /* elements behind, copied */
    uint32_t   rows;
    double     bound;                   /* of an instruction set */
} heads_case_t;

static const heads_case_t  heads_cases[] = {
    { LLM_TYPE_F32,  4, 32, 64, 16, 70, 1e-6 },
    { LLM_TYPE_F32,  3, 7, 19, 5, 9, 1e-6 },
    { LLM_TYPE_F16,  5, 64, 50, 0, 130, 1e-6 },
    { LLM_TYPE_F16,  1, 33, 16, 1, 49, 1e-6 },
    { LLM_TYPE_BF16, 4, 64, 48, 8, 97, 0.004 },
    { LLM_TYPE_Q8_0, 3, 64, 40, 16, 100, 0.01 },
    { LLM_TYPE_Q8_0, 16, 96, 64, 0, 20, 0.01 },
    { LLM_TYPE_Q8_0, 2, 32, 512, 64, 1, 0.015 }
};


static void *
heads_matrix(const heads_case_t *c)
{
    float      f;
    size_t     i, n;
    uint8_t   *m;
    uint16_t   h;
    uint64_t   seed = 7;

    n = (size_t) c->n_heads * c->n_out * c->n_in;
    m = ops_alloc(llm_type_row_size(c->type, c->n_in) * c->n_heads
                  * c->n_out);

    for (i = 0; i < n; i++) {
        f = ops_normal(&seed);

        switch (c->type) {

        case LLM_TYPE_F32:
            memcpy(m + i * 4, &f, 4);
            break;

        case LLM_TYPE_Q8_0:
            h = llm_f32_to_f16(f / 64);
            memcpy(m + i / 32 * 34, &h, 2);
            m[i / 32 * 34 + 2 + i % 32] = (uint8_t) ops_random(&seed);
            break;

        default:
            h = c->type == LLM_TYPE_F16 ? llm_f32_to_f16(f)
                                        : llm_f32_to_bf16(f);
            memcpy(m + i * 2, &h, 2);
        }
    }

    return m;
}


/* `step` rows at a time */

static void
run_heads(const llm_ops_t *ops, const char *isa, const heads_case_t *c,
    const void *m, const float *x, uint32_t step, float *y)
{
    uint32_t       i, n, x_cols, y_cols;
    llm_act_t     *ax, *ay;
    llm_dev_t     *dev;
    llm_batch_t    b;
    llm_weight_t  *w;

    dev = ops_open(ops, isa, 2);
    x_cols = c->n_heads * (c->n_in + c->rest);
    y_cols = c->n_heads * (c->n_out + c->rest);
    ax = ops_act(dev, NULL, c->rows, x_cols);
    ay = ops_act(dev, NULL, c->rows, y_cols);
    w = dev->ops->heads_create(dev, c->type, c->n_heads, c->n_out, c->n_in,
                               m, llm_type_row_size(c->type, c->n_in)
                                  * c->n_out, NULL);

    for (i = 0; i < c->rows; i += n) {
        n = llm_min(step, c->rows - i);
        dev->ops->write(dev, ax, 0, n, x + (size_t) i * x_cols);
        ops_begin_rows(dev, &b, n);
        dev->ops->linear_heads(dev, LLM_ROWS_ALL, w, ax, ay);
        dev->ops->end(dev, NULL);
        ops_read(dev, ay, y + (size_t) i * y_cols, n, y_cols);
    }

    dev->ops->weight_free(dev, w);
    dev->ops->act_free(dev, ax);
    dev->ops->act_free(dev, ay);
    dev->ops->close(dev);
}


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
    run_heads(&llm_ops_reference, NULL, c, m, x, c->rows, got);
    far = ops_distance(got, want, n);
    ok(far < 1e-6, "reference: %s: %.2g", what, far);

    for (i = 0; i < llm_nelems(ops_isas); i++) {
        llm_dev_t  *dev = ops_open(&llm_ops_cpu, ops_isas[i], 1);

        if (dev == NULL) {
            skip(ops_isas[i]);
            continue;
        }

        dev->ops->close(dev);
        run_heads(&llm_ops_cpu, ops_isas[i], c, m, x, c->rows, got);
        far = ops_distance(got, want, n);
        ok(far < c->bound, "%s: %s: %.2g", ops_isas[i], what, far);

        run_heads(&llm_ops_cpu, ops_isas[i], c, m, x, 1, again);
        same = memcmp(got, again, n * sizeof(float)) == 0;
        run_heads(&llm_ops_cpu, ops_isas[i], c, m, x, 19, again);
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

typedef struct {
    const char       *name;
    uint32_t          n;                /* positions */
    uint32_t          n_heads;
    uint32_t          n_kv_heads;
    uint32_t          dim_k;
    uint32_t          dim_v;
    llm_rope_kind_t   kind;
    uint32_t          window;
    float             temper;
} latent_case_t;

static const latent_case_t  latent_cases[] = {
    { "as DeepSeek's", 90, 16, 1, 576, 512, LLM_ROPE_NORM, 0, 0 },
    { "small", 150, 4, 1, 80, 64, LLM_ROPE_NORM, 0, 0 },
    { "odd sizes", 100, 5, 1, 50, 40, LLM_ROPE_NEOX, 0, 0 },
    { "smaller than a vector", 70, 3, 1, 13, 5, LLM_ROPE_NORM, 0, 0 },
    { "more heads than a tile", 70, 35, 1, 48, 32, LLM_ROPE_NORM, 0, 0 },
    { "beyond a split", MAX_N, 4, 1, 40, 24, LLM_ROPE_NORM, 0, 0 },
    { "two heads of keys", 90, 6, 2, 44, 28, LLM_ROPE_NEOX, 0, 0 },
    { "a window", 140, 4, 1, 40, 24, LLM_ROPE_NORM, 30, 0 },
    { "tempered queries", 80, 4, 1, 40, 24, LLM_ROPE_NORM, 0, 0.1f }
};

/* a case's numbers: q, k, v, each [n][heads][elements] */
typedef struct {
    const latent_case_t  *c;
    uint32_t              q_cols;
    uint32_t              k_cols;
    uint32_t              v_cols;
    uint32_t              out_cols;
    float                *q;
    float                *k;
    float                *v;
    float                *freq;
} latent_t;


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


/* rows [pos, pos + n) of the case, on pages that lie apart */

static void
latent_step(llm_dev_t *dev, const latent_t *t, const llm_vec_t *freq,
    llm_kv_t *kv, llm_act_t **a, uint32_t pos, uint32_t n)
{
    uint32_t         i, len, at[OPS_MAX_ROWS], ends[2];
    llm_batch_t      b;
    llm_rope_t       rope;
    llm_heads_t      h;
    static uint32_t  pages[OPS_MAX_PAGES];

    for (i = 0; i < OPS_MAX_PAGES; i++) {
        pages[i] = (i * 37 + 5) % OPS_MAX_PAGES;
    }

    for (i = 0; i < n; i++) {
        at[i] = pos + i;
    }

    memset(&b, 0, sizeof(b));
    memset(&h, 0, sizeof(h));
    ends[0] = 0;
    ends[1] = n;
    len = pos + n;
    b.n_tokens = n;
    b.n_seqs = 1;
    b.max_pages = OPS_MAX_PAGES;
    b.pos = at;
    b.seq_rows = ends;
    b.kv_len = &len;
    b.pages = pages;

    rope.kind = t->c->kind;
    rope.n_dims = (t->c->dim_k - t->c->dim_v) / 2 * 2;
    rope.inv_freq = freq;
    rope.mscale = 1;

    h.n_heads = t->c->n_heads;
    h.n_kv_heads = t->c->n_kv_heads;
    h.head_dim_k = t->c->dim_k;
    h.head_dim_v = t->c->dim_v;
    h.scale = 0.1f;
    h.latent = 1;
    h.window = t->c->window;
    h.temp_scale = t->c->temper;
    h.temp_floor = 16;
    h.temp_offset = 1;

    dev->ops->write(dev, a[0], 0, n, t->q + (size_t) pos * t->q_cols);
    dev->ops->write(dev, a[1], 0, n, t->k + (size_t) pos * t->k_cols);
    dev->ops->write(dev, a[2], 0, n, t->v + (size_t) pos * t->v_cols);
    dev->ops->begin(dev, &b, NULL);
    dev->ops->rope_kv(dev, &h, &rope, a[0], a[1], a[2], kv);
    dev->ops->attention(dev, &h, a[0], kv, a[3]);
    dev->ops->end(dev, NULL);
}


static void
run_latent(const llm_ops_t *ops, const char *isa, const latent_t *t,
    uint32_t step, float *out)
{
    uint32_t        i, n;
    llm_kv_t       *kv;
    llm_vec_t      *freq;
    llm_act_t      *a[4];
    llm_dev_t      *dev;
    llm_kv_layer_t  layer = { t->c->n_kv_heads, t->c->dim_k, t->c->dim_v,
                              1 };
    llm_kv_opts_t   o = { .n_layers = 1, .n_pages = OPS_MAX_PAGES,
                          .n_kv_heads = t->c->n_kv_heads,
                          .head_dim_k = t->c->dim_k,
                          .head_dim_v = t->c->dim_v,
                          .n_heads = t->c->n_heads, .layers = &layer };

    dev = ops_open(ops, isa, 2);
    kv = dev->ops->kv_create(dev, &o, NULL);
    freq = dev->ops->vec_create(dev, t->freq, (t->c->dim_k - t->c->dim_v) / 2,
                                NULL);
    a[0] = ops_act(dev, NULL, OPS_MAX_ROWS, t->q_cols);
    a[1] = ops_act(dev, NULL, OPS_MAX_ROWS, t->k_cols);
    a[2] = ops_act(dev, NULL, OPS_MAX_ROWS, t->v_cols);
    a[3] = ops_act(dev, NULL, OPS_MAX_ROWS, t->out_cols);

    for (i = 0; i < t->c->n; i += n) {
        n = llm_min(step, t->c->n - i);
        latent_step(dev, t, freq, kv, a, i, n);
        ops_read(dev, a[3], out + (size_t) i * t->out_cols, n, t->out_cols);
    }

    for (i = 0; i < 4; i++) {
        dev->ops->act_free(dev, a[i]);
    }

    dev->ops->vec_free(dev, freq);
    dev->ops->kv_free(dev, kv);
    dev->ops->close(dev);
}


static void
latent_init(latent_t *t, const latent_case_t *c)
{
    uint32_t  i, rot;

    rot = c->dim_k - c->dim_v;
    t->c = c;
    t->q_cols = c->n_heads * c->dim_k;
    t->k_cols = c->n_kv_heads * rot;
    t->v_cols = c->n_kv_heads * c->dim_v;
    t->out_cols = c->n_heads * c->dim_v;
    t->q = ops_alloc((size_t) c->n * t->q_cols * sizeof(float));
    t->k = ops_alloc((size_t) c->n * t->k_cols * sizeof(float));
    t->v = ops_alloc((size_t) c->n * t->v_cols * sizeof(float));
    t->freq = ops_alloc(rot / 2 * sizeof(float));

    ops_fill(t->q, (size_t) c->n * t->q_cols, 11);
    ops_fill(t->k, (size_t) c->n * t->k_cols, 12);
    ops_fill(t->v, (size_t) c->n * t->v_cols, 13);

    for (i = 0; i < rot / 2; i++) {
        t->freq[i] = (float) pow(100, -(double) i / (rot / 2));
    }
}


static void
test_latent(const latent_case_t *c)
{
    int         same;
    float      *want, *got, *again;
    size_t      i, n;
    double      far;
    latent_t    t;
    uint32_t    row, h;
    llm_dev_t  *dev;

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

    run_latent(&llm_ops_reference, NULL, &t, OPS_MAX_ROWS, got);
    far = ops_distance(got, want, n);
    ok(far < 1e-6, "reference: %s: %.2g", c->name, far);

    for (i = 0; i < llm_nelems(ops_isas); i++) {
        dev = ops_open(&llm_ops_cpu, ops_isas[i], 1);

        if (dev == NULL) {
            skip(ops_isas[i]);
            continue;
        }

        dev->ops->close(dev);
        run_latent(&llm_ops_cpu, ops_isas[i], &t, OPS_MAX_ROWS, got);
        far = ops_distance(got, want, n);
        ok(far < 0.001, "%s: %s: %.2g", ops_isas[i], c->name, far);

        run_latent(&llm_ops_cpu, ops_isas[i], &t, 1, again);
        same = memcmp(got, again, n * sizeof(float)) == 0;
        run_latent(&llm_ops_cpu, ops_isas[i], &t, 29, again);
        same &= memcmp(got, again, n * sizeof(float)) == 0;
        ok(same, "%s: %s: the same bits in any steps", ops_isas[i], c->name);
    }

    free(t.q);
    free(t.k);
    free(t.v);
    free(t.freq);
    free(want);
    free(got);
    free(again);
}


/* a page holds what is kept once, whatever the device adds to it */

static void
test_page(const llm_ops_t *ops, const char *isa)
{
    size_t           once, twice;
    llm_dev_t       *dev;
    llm_kv_layer_t   layer = { 1, 576, 512, 1 };
    llm_kv_opts_t    o = { .n_layers = 1, .n_kv_heads = 1,
                           .head_dim_k = 576, .head_dim_v = 512,
                           .n_heads = 16, .layers = &layer };

    dev = ops_open(ops, isa, 1);
    once = dev->ops->kv_page_size(dev, &o);
    o.layers = NULL;
    twice = dev->ops->kv_page_size(dev, &o);

    ok(once * (576 + 512) == twice * 576, "%s: a latent page has %zu bytes, "
       "not %zu", isa ? isa : "reference", once, twice);
    dev->ops->close(dev);
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
