/*
 * The operations of kernels.h in plain C: float32 values, sums in double,
 * one thread, weights de-quantised a row at a time, the KV cache in float32.
 *
 * This is the yardstick that every other backend is checked against, and
 * all that a port has to replace.  It is written to be obviously right, not
 * fast; a server never chooses it by itself while llm_ops_cpu runs.
 *
 * Invariant: a result row is computed from its own row, its own sequence
 * and the weights, in an order that neither the batch nor the pages change.
 *
 * The device owns its scratch; weights point into the caller's file.
 */

#include "kernels/kernels.h"

#include <math.h>
#include <stdio.h>


typedef struct {
    llm_dev_t           dev;            /* first: the base of every device */
    llm_dev_opts_t      opts;
    const llm_batch_t  *batch;          /* of the step, begin() to end() */
    float              *row;            /* one de-quantised row of a weight */
    uint32_t            row_cap;
    double             *scores;         /* one for each cached position */
    double             *sum;            /* one head of attention's result */
    uint32_t            sum_cap;
} llm_refdev_t;

struct llm_act_s {
    uint32_t            cols;
    float              *data;           /* [rows][cols] */
};

struct llm_weight_s {
    uint32_t            type;
    uint32_t            n_out;
    uint32_t            n_in;
    size_t              row_size;       /* bytes */
    const char         *data;           /* the caller's */
};

struct llm_vec_s {
    uint32_t            n;
    float               data[];
};

/*
 * k[layer][page][slot][kv head][head_dim_k], v likewise; layers that are
 * smaller than the largest leave the rest of their pages unused
 */
struct llm_kv_s {
    llm_kv_opts_t       opts;
    size_t              k_page;         /* floats of one page of one layer */
    size_t              v_page;
    float              *k;
    float              *v;
};


static void llm_ref_close(llm_dev_t *dev);


static int
llm_ref_no_memory(llm_err_t *err, const char *what)
{
    return llm_fail(err, "reference device: no memory for %s", what);
}


static int
llm_ref_open(llm_dev_t **dev, const llm_dev_opts_t *opts, llm_err_t *err)
{
    size_t         n;
    llm_refdev_t  *d;

    d = calloc(1, sizeof(llm_refdev_t));
    if (d == NULL) {
        return llm_ref_no_memory(err, "the device");
    }

    d->dev.ops = &llm_ops_reference;
    d->opts = *opts;

    if (llm_mul_overflow(opts->max_pages, LLM_KV_PAGE * sizeof(double), &n)
        || (d->scores = malloc(n ? n : 1)) == NULL)
    {
        llm_ref_close(&d->dev);
        return llm_ref_no_memory(err, "the scores");
    }

    *dev = &d->dev;

    return LLM_OK;
}


static void
llm_ref_close(llm_dev_t *dev)
{
    llm_refdev_t  *d = (llm_refdev_t *) dev;

    free(d->row);
    free(d->scores);
    free(d->sum);
    free(d);
}


static void
llm_ref_describe(llm_dev_t *dev, char *buf, size_t size)
{
    (void) dev;
    snprintf(buf, size, "reference, plain C, 1 thread");
}


static size_t
llm_ref_memory_free(llm_dev_t *dev)
{
    FILE               *f;
    char                line[128];
    unsigned long long  kb;

    (void) dev;
    kb = 0;

    f = fopen("/proc/meminfo", "re");
    if (f == NULL) {
        return 0;
    }

    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1) {
            break;
        }
    }

    fclose(f);

    return (size_t) kb * 1024 / 2;
}


static llm_weight_t *
llm_ref_weight_create(llm_dev_t *dev, uint32_t type, uint32_t n_out,
    uint32_t n_in, const void *src, int usage, llm_err_t *err)
{
    float         *row;
    llm_refdev_t  *d = (llm_refdev_t *) dev;
    llm_weight_t  *w;

    (void) usage;

    if (n_in > d->row_cap) {
        row = realloc(d->row, (size_t) n_in * sizeof(float));
        if (row == NULL) {
            (void) llm_ref_no_memory(err, "a row of a weight");
            return NULL;
        }

        d->row = row;
        d->row_cap = n_in;
    }

    w = malloc(sizeof(llm_weight_t));
    if (w == NULL) {
        (void) llm_ref_no_memory(err, "a weight");
        return NULL;
    }

    w->type = type;
    w->n_out = n_out;
    w->n_in = n_in;
    w->row_size = llm_type_row_size(type, n_in);
    w->data = src;

    return w;
}


static void
llm_ref_weight_free(llm_dev_t *dev, llm_weight_t *w)
{
    (void) dev;
    free(w);
}


static llm_vec_t *
llm_ref_vec_create(llm_dev_t *dev, const float *src, uint32_t n,
    llm_err_t *err)
{
    llm_vec_t  *v;

    (void) dev;

    v = malloc(sizeof(llm_vec_t) + (size_t) n * sizeof(float));
    if (v == NULL) {
        (void) llm_ref_no_memory(err, "a vector");
        return NULL;
    }

    v->n = n;
    memcpy(v->data, src, (size_t) n * sizeof(float));

    return v;
}


static void
llm_ref_vec_free(llm_dev_t *dev, llm_vec_t *v)
{
    (void) dev;
    free(v);
}


static llm_act_t *
llm_ref_act_create(llm_dev_t *dev, uint32_t max_rows, uint32_t cols,
    llm_act_kind_t kind, llm_err_t *err)
{
    llm_act_t  *a;

    (void) dev;
    (void) kind;

    a = malloc(sizeof(llm_act_t));
    if (a == NULL) {
        (void) llm_ref_no_memory(err, "activations");
        return NULL;
    }

    a->cols = cols;
    a->data = calloc((size_t) max_rows * cols, sizeof(float));

    if (a->data == NULL) {
        free(a);
        (void) llm_ref_no_memory(err, "activations");
        return NULL;
    }

    return a;
}


static void
llm_ref_act_free(llm_dev_t *dev, llm_act_t *a)
{
    (void) dev;

    if (a) {
        free(a->data);
        free(a);
    }
}


static void
llm_ref_act_cols(llm_act_t *a, uint32_t cols)
{
    a->cols = cols;
}


static size_t
llm_ref_kv_page_size(llm_dev_t *dev, const llm_kv_opts_t *opts)
{
    (void) dev;

    return sizeof(float) * LLM_KV_PAGE * opts->n_layers * opts->n_kv_heads
           * ((size_t) opts->head_dim_k + opts->head_dim_v);
}


static void
llm_ref_kv_free(llm_dev_t *dev, llm_kv_t *kv)
{
    (void) dev;

    if (kv) {
        free(kv->k);
        free(kv->v);
        free(kv);
    }
}


static llm_kv_t *
llm_ref_kv_create(llm_dev_t *dev, const llm_kv_opts_t *opts, llm_err_t *err)
{
    double        *sum;
    size_t         pages;
    llm_kv_t      *kv;
    llm_refdev_t  *d = (llm_refdev_t *) dev;

    if (opts->head_dim_v > d->sum_cap) {
        sum = realloc(d->sum, opts->head_dim_v * sizeof(double));
        if (sum == NULL) {
            (void) llm_ref_no_memory(err, "a head");
            return NULL;
        }

        d->sum = sum;
        d->sum_cap = opts->head_dim_v;
    }

    kv = calloc(1, sizeof(llm_kv_t));
    if (kv == NULL) {
        (void) llm_ref_no_memory(err, "the KV cache");
        return NULL;
    }

    kv->opts = *opts;
    kv->k_page = (size_t) LLM_KV_PAGE * opts->n_kv_heads * opts->head_dim_k;
    kv->v_page = (size_t) LLM_KV_PAGE * opts->n_kv_heads * opts->head_dim_v;

    pages = (size_t) opts->n_layers * opts->n_pages;
    kv->k = calloc(pages, kv->k_page * sizeof(float));
    kv->v = calloc(pages, kv->v_page * sizeof(float));

    if (kv->k == NULL || kv->v == NULL) {
        llm_ref_kv_free(dev, kv);
        (void) llm_ref_no_memory(err, "the KV cache");
        return NULL;
    }

    return kv;
}


static void
llm_ref_kv_copy(llm_dev_t *dev, llm_kv_t *kv, uint32_t src, uint32_t dst)
{
    size_t    base;
    uint32_t  i;

    (void) dev;

    for (i = 0; i < kv->opts.n_layers; i++) {
        base = (size_t) i * kv->opts.n_pages;

        memcpy(kv->k + (base + dst) * kv->k_page,
               kv->k + (base + src) * kv->k_page,
               kv->k_page * sizeof(float));
        memcpy(kv->v + (base + dst) * kv->v_page,
               kv->v + (base + src) * kv->v_page,
               kv->v_page * sizeof(float));
    }
}


/* where position pos of sequence seq lies, counted in slots of all layers */

static size_t
llm_ref_slot(const llm_batch_t *b, const llm_kv_t *kv, uint32_t layer,
    uint32_t seq, uint32_t pos)
{
    uint32_t  page;

    page = b->pages[(size_t) seq * b->max_pages + pos / LLM_KV_PAGE];

    return ((size_t) layer * kv->opts.n_pages + page) * LLM_KV_PAGE
           + pos % LLM_KV_PAGE;
}


static int
llm_ref_begin(llm_dev_t *dev, const llm_batch_t *batch, llm_err_t *err)
{
    (void) err;
    ((llm_refdev_t *) dev)->batch = batch;

    return LLM_OK;
}


static int
llm_ref_end(llm_dev_t *dev, llm_err_t *err)
{
    (void) err;
    ((llm_refdev_t *) dev)->batch = NULL;

    return LLM_OK;
}


static uint32_t
llm_ref_rows(const llm_refdev_t *d, llm_rows_t rows)
{
    return rows == LLM_ROWS_OUT ? d->batch->n_out : d->batch->n_tokens;
}


static void
llm_ref_embed(llm_dev_t *dev, const llm_weight_t *w, llm_act_t *x)
{
    uint32_t       r;
    llm_refdev_t  *d = (llm_refdev_t *) dev;

    for (r = 0; r < d->batch->n_tokens; r++) {
        llm_dequantize(w->type,
                       w->data + (size_t) d->batch->tokens[r] * w->row_size,
                       x->data + (size_t) r * x->cols, w->n_in);
    }
}


/* y = x / rms(x) * w, one row; x and y may be the same */

static void
llm_ref_rms(const float *x, const float *w, float eps, uint32_t n, float *y)
{
    double    sum;
    uint32_t  i;

    sum = 0;

    for (i = 0; i < n; i++) {
        sum += (double) x[i] * x[i];
    }

    sum = 1 / sqrt(sum / n + eps);

    for (i = 0; i < n; i++) {
        y[i] = (float) (x[i] * sum * w[i]);
    }
}


/* one group of a row, which begins at column `first` */

static void
llm_ref_norm_group(const llm_norm_t *norm, const float *x, uint32_t first,
    uint32_t n, float *y)
{
    double    mean, sum, v;
    uint32_t  i;

    mean = 0;
    sum = 0;

    for (i = 0; norm->kind == LLM_NORM_LAYER && i < n; i++) {
        mean += (double) x[i] / n;
    }

    for (i = 0; i < n; i++) {
        sum += (x[i] - mean) * (x[i] - mean);
    }

    sum = 1 / sqrt(sum / n + norm->eps);

    for (i = 0; i < n; i++) {
        v = (x[i] - mean) * sum;
        v *= norm->w ? norm->w->data[(first + i) % norm->w->n] : 1;
        v += norm->bias ? norm->bias->data[first + i] : 0;
        y[i] = (float) (norm->add ? y[i] + v : v);
    }
}


static void
llm_ref_norm(llm_dev_t *dev, llm_rows_t rows, const llm_act_t *x,
    const llm_norm_t *norm, llm_act_t *y)
{
    uint32_t       i, n, r, group;
    llm_refdev_t  *d = (llm_refdev_t *) dev;

    n = llm_ref_rows(d, rows);
    group = norm->group ? norm->group : x->cols;

    for (r = 0; r < n; r++) {
        for (i = 0; i < x->cols; i += group) {
            llm_ref_norm_group(norm, x->data + (size_t) r * x->cols + i, i,
                               group, y->data + (size_t) r * y->cols + i);
        }
    }
}


static double
llm_ref_dot(const float *a, const float *b, uint32_t n)
{
    double    sum;
    uint32_t  i;

    sum = 0;

    for (i = 0; i < n; i++) {
        sum += (double) a[i] * b[i];
    }

    return sum;
}


static void
llm_ref_linear(llm_dev_t *dev, llm_rows_t rows, const llm_act_t *x,
    const llm_linear_t *out, uint32_t n)
{
    float               *y;
    double               v;
    uint32_t             i, o, r, n_rows;
    llm_refdev_t        *d = (llm_refdev_t *) dev;
    const llm_weight_t  *w;

    n_rows = llm_ref_rows(d, rows);

    for (i = 0; i < n; i++) {
        w = out[i].w;

        for (o = 0; o < w->n_out; o++) {
            llm_dequantize(w->type, w->data + (size_t) o * w->row_size,
                           d->row, w->n_in);

            for (r = 0; r < n_rows; r++) {
                y = out[i].y->data + (size_t) r * out[i].y->cols + o;
                v = llm_ref_dot(x->data + (size_t) r * x->cols, d->row,
                                w->n_in);

                if (out[i].bias) {
                    v += out[i].bias->data[o];
                }

                *y = (float) (out[i].add ? *y + v : v);
            }
        }
    }
}


/* turns the pairs of one head by the angles of position pos */

static void
llm_ref_rotate(float *x, const llm_rope_t *rope, uint32_t pos)
{
    double    angle, c, s, a, b;
    uint32_t  i, half, first, second;

    half = rope->n_dims / 2;

    for (i = 0; i < half; i++) {
        angle = (double) pos * rope->inv_freq->data[i];
        c = cos(angle) * rope->mscale;
        s = sin(angle) * rope->mscale;

        first = rope->kind == LLM_ROPE_NORM ? 2 * i : i;
        second = rope->kind == LLM_ROPE_NORM ? 2 * i + 1 : i + half;

        a = x[first];
        b = x[second];
        x[first] = (float) (a * c - b * s);
        x[second] = (float) (a * s + b * c);
    }
}


static void
llm_ref_heads(float *x, uint32_t n_heads, const llm_heads_t *heads,
    const llm_vec_t *norm, const llm_rope_t *rope, uint32_t pos)
{
    uint32_t  h, dim;

    dim = heads->head_dim_k;

    for (h = 0; h < n_heads; h++, x += dim) {
        if (norm && !heads->norm_last) {
            llm_ref_rms(x, norm->data, heads->norm_eps, dim, x);
        }

        llm_ref_rotate(x, rope, pos);

        if (norm && heads->norm_last) {
            llm_ref_rms(x, norm->data, heads->norm_eps, dim, x);
        }
    }
}


/* queries of far positions are made sharper */

static void
llm_ref_temper(float *q, const llm_heads_t *h, uint32_t pos)
{
    double    f;
    uint32_t  i;

    f = 1 + h->temp_scale * log(1 + floor((double) (pos + h->temp_offset)
                                          / h->temp_floor));

    for (i = 0; i < h->n_heads * h->head_dim_k; i++) {
        q[i] = (float) (q[i] * f);
    }
}


/* where a row's keys or values of one layer lie, of `cols` floats */

static float *
llm_ref_kv_row(float *data, size_t page, size_t slot, size_t cols)
{
    return data + slot / LLM_KV_PAGE * page + slot % LLM_KV_PAGE * cols;
}


static void
llm_ref_rope_kv(llm_dev_t *dev, const llm_heads_t *h, const llm_rope_t *rope,
    llm_act_t *q, llm_act_t *k, const llm_act_t *v, llm_kv_t *kv)
{
    float              *row;
    size_t              slot, k_cols, v_cols;
    uint32_t            s, r;
    llm_refdev_t       *d = (llm_refdev_t *) dev;
    const llm_batch_t  *b;

    b = d->batch;
    k_cols = (size_t) h->n_kv_heads * h->head_dim_k;
    v_cols = (size_t) h->n_kv_heads * h->head_dim_v;

    for (s = 0; s < b->n_seqs; s++) {
        for (r = b->seq_rows[s]; r < b->seq_rows[s + 1]; r++) {
            row = q->data + (size_t) r * q->cols;
            llm_ref_heads(row, h->n_heads, h, h->q_norm, rope, b->pos[r]);

            if (h->temp_scale != 0) {
                llm_ref_temper(row, h, b->pos[r]);
            }

            if (k == NULL) {
                continue;
            }

            row = k->data + (size_t) r * k->cols;
            llm_ref_heads(row, h->n_kv_heads, h, h->k_norm, rope, b->pos[r]);

            slot = llm_ref_slot(b, kv, h->layer, s, b->pos[r]);

            memcpy(llm_ref_kv_row(kv->k, kv->k_page, slot, k_cols), row,
                   k_cols * sizeof(float));
            memcpy(llm_ref_kv_row(kv->v, kv->v_page, slot, v_cols),
                   v->data + (size_t) r * v->cols, v_cols * sizeof(float));
        }
    }
}


static double
llm_ref_score(const llm_refdev_t *d, const llm_heads_t *h,
    const llm_kv_t *kv, uint32_t seq, uint32_t pos, uint32_t kv_head,
    const float *q)
{
    double        score;
    size_t        slot;
    const float  *k;

    slot = llm_ref_slot(d->batch, kv, h->layer, seq, pos);
    k = llm_ref_kv_row(kv->k, kv->k_page, slot,
                       (size_t) h->n_kv_heads * h->head_dim_k)
        + (size_t) kv_head * h->head_dim_k;
    score = h->scale * llm_ref_dot(q, k, h->head_dim_k);

    return h->softcap > 0 ? h->softcap * tanh(score / h->softcap) : score;
}


/* one head of one row over the positions of its sequence that it sees */

static void
llm_ref_attend(llm_refdev_t *d, const llm_heads_t *h, const llm_kv_t *kv,
    uint32_t seq, uint32_t pos, uint32_t head, const float *q, float *out)
{
    size_t        slot;
    double        max, total, p;
    uint32_t      i, t, first, kv_head;
    const float  *v;

    kv_head = head / (h->n_heads / h->n_kv_heads);
    first = llm_heads_first(h, pos);
    max = h->sinks ? (double) h->sinks->data[head] : (double) -INFINITY;

    for (t = first; t <= pos; t++) {
        d->scores[t] = llm_ref_score(d, h, kv, seq, t, kv_head, q);
        max = llm_max(max, d->scores[t]);
    }

    total = h->sinks ? exp(h->sinks->data[head] - max) : 0;
    memset(d->sum, 0, h->head_dim_v * sizeof(double));

    for (t = first; t <= pos; t++) {
        slot = llm_ref_slot(d->batch, kv, h->layer, seq, t);
        v = llm_ref_kv_row(kv->v, kv->v_page, slot,
                           (size_t) h->n_kv_heads * h->head_dim_v)
            + (size_t) kv_head * h->head_dim_v;
        p = exp(d->scores[t] - max);
        total += p;

        for (i = 0; i < h->head_dim_v; i++) {
            d->sum[i] += p * v[i];
        }
    }

    for (i = 0; i < h->head_dim_v; i++) {
        out[i] = (float) (d->sum[i] / total);
    }
}


static void
llm_ref_attention(llm_dev_t *dev, const llm_heads_t *h, const llm_act_t *q,
    const llm_kv_t *kv, llm_act_t *out)
{
    uint32_t            s, r, i;
    llm_refdev_t       *d = (llm_refdev_t *) dev;
    const llm_batch_t  *b;

    b = d->batch;

    for (s = 0; s < b->n_seqs; s++) {
        for (r = b->seq_rows[s]; r < b->seq_rows[s + 1]; r++) {
            for (i = 0; i < h->n_heads; i++) {
                llm_ref_attend(d, h, kv, s, b->pos[r], i,
                               q->data + (size_t) r * q->cols
                               + (size_t) i * h->head_dim_k,
                               out->data + (size_t) r * out->cols
                               + (size_t) i * h->head_dim_v);
            }
        }
    }
}


static double
llm_ref_activate(const llm_act_fn_t *fn, double x)
{
    const float  *p;

    switch (fn->kind) {

    case LLM_GLU_SILU:
        return x / (1 + exp(-x));

    case LLM_GLU_GELU:
        return 0.5 * x * (1 + tanh(sqrt(2 / M_PI)
                                   * (x + 0.044715 * x * x * x)));

    case LLM_GLU_GELU_ERF:
        return 0.5 * x * (1 + erf(x * M_SQRT1_2));

    case LLM_GLU_RELU2:
        return x > 0 ? x * x : 0 * x;

    case LLM_GLU_XIELU:
        p = fn->xielu;

        return x > 0 ? p[0] * x * x + p[2] * x
                     : p[1] * (expm1(llm_min(x, (double) p[3])) - x)
                       + p[2] * x;
    }

    return 0;
}


static void
llm_ref_glu(llm_dev_t *dev, llm_rows_t rows, llm_glu_t act,
    const llm_act_t *gate, const llm_act_t *up, llm_act_t *y)
{
    size_t         i, n;
    llm_act_fn_t   fn = { .kind = act };
    llm_refdev_t  *d = (llm_refdev_t *) dev;

    n = (size_t) llm_ref_rows(d, rows) * y->cols;

    for (i = 0; i < n; i++) {
        y->data[i] = (float) (llm_ref_activate(&fn, gate->data[i])
                              * up->data[i]);
    }
}


static void
llm_ref_act(llm_dev_t *dev, llm_rows_t rows, const llm_act_fn_t *fn,
    const llm_act_t *x, llm_act_t *y)
{
    size_t         i, n;
    llm_refdev_t  *d = (llm_refdev_t *) dev;

    n = (size_t) llm_ref_rows(d, rows) * y->cols;

    for (i = 0; i < n; i++) {
        y->data[i] = (float) llm_ref_activate(fn, x->data[i]);
    }
}


static void
llm_ref_scale(llm_dev_t *dev, llm_rows_t rows, float f, const llm_act_t *x,
    int add, llm_act_t *y)
{
    size_t         i, n;
    double         v;
    llm_refdev_t  *d = (llm_refdev_t *) dev;

    n = (size_t) llm_ref_rows(d, rows) * y->cols;

    for (i = 0; i < n; i++) {
        v = (double) f * x->data[i];
        y->data[i] = (float) (add ? y->data[i] + v : v);
    }
}


static void
llm_ref_softcap(llm_dev_t *dev, llm_rows_t rows, float cap, llm_act_t *x)
{
    size_t         i, n;
    llm_refdev_t  *d = (llm_refdev_t *) dev;

    n = (size_t) llm_ref_rows(d, rows) * x->cols;

    for (i = 0; i < n; i++) {
        x->data[i] = (float) (cap * tanh((double) x->data[i] / cap));
    }
}


static void
llm_ref_embed_pos(llm_dev_t *dev, const llm_weight_t *w, llm_act_t *x)
{
    float         *y;
    uint32_t       i, r;
    llm_refdev_t  *d = (llm_refdev_t *) dev;

    for (r = 0; r < d->batch->n_tokens; r++) {
        llm_dequantize(w->type,
                       w->data + (size_t) d->batch->pos[r] * w->row_size,
                       d->row, w->n_in);
        y = x->data + (size_t) r * x->cols;

        for (i = 0; i < w->n_in; i++) {
            y[i] += d->row[i];
        }
    }
}


static void
llm_ref_columns(llm_dev_t *dev, llm_rows_t rows, const llm_act_t *x,
    uint32_t first, llm_act_t *y)
{
    uint32_t       r;
    llm_refdev_t  *d = (llm_refdev_t *) dev;

    for (r = 0; r < llm_ref_rows(d, rows); r++) {
        memcpy(y->data + (size_t) r * y->cols,
               x->data + (size_t) r * x->cols + first,
               y->cols * sizeof(float));
    }
}


static void
llm_ref_gather(llm_dev_t *dev, const llm_act_t *x, llm_act_t *y)
{
    uint32_t       i;
    llm_refdev_t  *d = (llm_refdev_t *) dev;

    for (i = 0; i < d->batch->n_out; i++) {
        memcpy(y->data + (size_t) i * y->cols,
               x->data + (size_t) d->batch->out_rows[i] * x->cols,
               x->cols * sizeof(float));
    }
}


static const float *
llm_ref_map(llm_dev_t *dev, const llm_act_t *a, uint32_t row, uint32_t n)
{
    (void) dev;
    (void) n;

    return a->data + (size_t) row * a->cols;
}


static void
llm_ref_write(llm_dev_t *dev, llm_act_t *a, uint32_t row, uint32_t n,
    const float *src)
{
    (void) dev;
    memcpy(a->data + (size_t) row * a->cols, src,
           (size_t) n * a->cols * sizeof(float));
}


const llm_ops_t  llm_ops_reference = {
    .name = "reference",
    .open = llm_ref_open,
    .close = llm_ref_close,
    .describe = llm_ref_describe,
    .memory_free = llm_ref_memory_free,
    .weight_create = llm_ref_weight_create,
    .weight_free = llm_ref_weight_free,
    .vec_create = llm_ref_vec_create,
    .vec_free = llm_ref_vec_free,
    .act_create = llm_ref_act_create,
    .act_free = llm_ref_act_free,
    .kv_create = llm_ref_kv_create,
    .kv_free = llm_ref_kv_free,
    .kv_page_size = llm_ref_kv_page_size,
    .kv_copy = llm_ref_kv_copy,
    .begin = llm_ref_begin,
    .end = llm_ref_end,
    .embed = llm_ref_embed,
    .norm = llm_ref_norm,
    .linear = llm_ref_linear,
    .rope_kv = llm_ref_rope_kv,
    .attention = llm_ref_attention,
    .glu = llm_ref_glu,
    .gather = llm_ref_gather,
    .map = llm_ref_map,
    .write = llm_ref_write,
    .can = UINT32_MAX,
    .act_cols = llm_ref_act_cols,
    .act = llm_ref_act,
    .scale = llm_ref_scale,
    .softcap = llm_ref_softcap,
    .embed_pos = llm_ref_embed_pos,
    .columns = llm_ref_columns
};
