/*
 * The reference's recurrent layers: states of sequences, the short
 * convolution, the gated delta rule, the selective scan; see kernels.h.
 *
 * Invariant: sums are in double, and the state between rows is in float32, so
 * the bits are the same however a sequence's rows are divided into steps.
 */

#include "kernels/cpu/reference.h"
#include "kernels/cpu/states.h"


llm_state_t *
llm_ref_state_create(llm_exec_t *exec, const llm_state_opts_t *o,
    llm_err_t *err)
{
    double          *sum;
    uint32_t         i, cols;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    cols = d->sum_cap;

    for (i = 0; i < o->n_layers; i++) {
        cols = llm_max(cols, o->layers[i].n_cols);
    }

    if (cols > d->sum_cap) {
        sum = realloc(d->sum, cols * sizeof(double));
        if (sum == NULL) {
            (void) llm_fail(err, "reference device: no memory for a state's "
                            "row");
            return NULL;
        }

        d->sum = sum;
        d->sum_cap = cols;
    }

    return llm_states_create(exec, o, err);
}


/* one row of all n channels; then shifts the kept inputs by one row */

static void
llm_ref_conv_row(const llm_conv_t *c, uint32_t width, const float *x,
    float *kept, float *y, uint32_t n)
{
    double    sum;
    uint32_t  i, k;

    for (i = 0; i < n; i++) {
        sum = c->bias ? c->bias->data[i] : 0;

        for (k = 0; k + 1 < width; k++) {
            sum += (double) c->w->data[(size_t) k * n + i]
                   * kept[(size_t) k * n + i];
        }

        sum += (double) c->w->data[(size_t) k * n + i] * x[i];
        y[i] = (float) (c->silu ? sum / (1 + exp(-sum)) : sum);
    }

    if (width > 1) {
        memmove(kept, kept + n, (size_t) (width - 2) * n * sizeof(float));
        memcpy(kept + (size_t) (width - 2) * n, x, n * sizeof(float));
    }
}


void
llm_ref_conv(llm_exec_t *exec, const llm_conv_t *c, const llm_act_t *x,
    llm_state_t *st, llm_act_t *y)
{
    uint32_t                  i, r;
    llm_state_seq_t           s;
    llm_ref_exec_t           *d = (llm_ref_exec_t *) exec;
    const llm_state_layer_t  *l = &st->opts.layers[c->layer];

    for (i = 0; i < d->batch->n_seqs; i++) {
        s = llm_states_seq(st, d->batch, c->layer, i);

        if (s.begins) {
            memset(s.conv, 0, (size_t) (l->conv_width - 1) * l->conv_channels
                              * sizeof(float));
        }

        for (r = s.row; r < s.end; r++) {
            llm_ref_conv_row(c, l->conv_width, x->data + (size_t) r * x->cols,
                             s.conv, y->data + (size_t) r * y->cols,
                             l->conv_channels);
        }
    }
}


static double
llm_ref_softplus(double x)
{
    return x > 20 ? x : log1p(exp(x));
}


/* y = S^T k */

static void
llm_ref_state_times(const float *s, const float *k, uint32_t n_rows,
    uint32_t n_cols, double *y)
{
    uint32_t  i, j;

    for (j = 0; j < n_cols; j++) {
        y[j] = 0;

        for (i = 0; i < n_rows; i++) {
            y[j] += (double) s[(size_t) i * n_cols + j] * k[i];
        }
    }
}


/* S = g S + k d^T */

static void
llm_ref_state_add(float *s, double g, const float *k, const double *d,
    uint32_t n_rows, uint32_t n_cols)
{
    uint32_t  i, j;

    for (i = 0; i < n_rows; i++) {
        for (j = 0; j < n_cols; j++) {
            s[(size_t) i * n_cols + j]
                = (float) (g * s[(size_t) i * n_cols + j] + k[i] * d[j]);
        }
    }
}


/* one row of head h of v */

static void
llm_ref_delta_row(const llm_delta_t *p, uint32_t h, const float *x,
    double alpha, double beta, float *s, double *d, float *y)
{
    double        g, q_scale, k_scale;
    uint32_t      j, hk;
    const float  *q, *k, *v;

    hk = p->tiled ? h % p->n_k_heads : h / (p->n_v_heads / p->n_k_heads);
    q = x + (size_t) hk * p->dim_k;
    k = q + (size_t) p->n_k_heads * p->dim_k;
    v = x + (size_t) 2 * p->n_k_heads * p->dim_k + (size_t) h * p->dim_v;

    q_scale = 1 / sqrt(llm_ref_dot(q, q, p->dim_k) + 1e-6) / sqrt(p->dim_k);
    k_scale = 1 / sqrt(llm_ref_dot(k, k, p->dim_k) + 1e-6);
    g = exp(p->a->data[h] * llm_ref_softplus(alpha + p->dt->data[h]));
    beta = 1 / (1 + exp(-beta));

    llm_ref_state_times(s, k, p->dim_k, p->dim_v, d);

    for (j = 0; j < p->dim_v; j++) {
        d[j] = beta * (v[j] - g * k_scale * d[j]) * k_scale;
    }

    llm_ref_state_add(s, g, k, d, p->dim_k, p->dim_v);
    llm_ref_state_times(s, q, p->dim_k, p->dim_v, d);

    for (j = 0; j < p->dim_v; j++) {
        y[(size_t) h * p->dim_v + j] = (float) (d[j] * q_scale);
    }
}


void
llm_ref_delta(llm_exec_t *exec, const llm_delta_t *p, const llm_act_t *x,
    const llm_act_t *alpha, const llm_act_t *beta, llm_state_t *st,
    llm_act_t *y)
{
    float           *m;
    size_t           size;
    uint32_t         i, r, h;
    llm_state_seq_t  s;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    size = (size_t) p->dim_k * p->dim_v;

    for (i = 0; i < d->batch->n_seqs; i++) {
        s = llm_states_seq(st, d->batch, p->layer, i);

        if (s.begins) {
            memset(s.heads, 0, size * p->n_v_heads * sizeof(float));
        }

        for (r = s.row; r < s.end; r++) {
            for (h = 0; h < p->n_v_heads; h++) {
                m = s.heads + h * size;
                llm_ref_delta_row(p, h, x->data + (size_t) r * x->cols,
                                  alpha->data[(size_t) r * alpha->cols + h],
                                  beta->data[(size_t) r * beta->cols + h], m,
                                  d->sum, y->data + (size_t) r * y->cols);
            }
        }
    }
}


/* one row of head h */

static void
llm_ref_scan_row(const llm_scan_t *p, uint32_t h, const float *x, double dt,
    float *s, double *d, float *y)
{
    double        g;
    uint32_t      j, group;
    const float  *b, *c, *v;

    group = h / (p->n_heads / p->n_groups);
    v = x + (size_t) h * p->dim;
    b = x + (size_t) p->n_heads * p->dim + (size_t) group * p->n_state;
    c = b + (size_t) p->n_groups * p->n_state;

    dt = llm_ref_softplus(dt + p->dt_bias->data[h]);
    dt = llm_max(dt, (double) p->dt_min);
    g = exp(p->a->data[h] * dt);

    for (j = 0; j < p->dim; j++) {
        d[j] = dt * v[j];
    }

    llm_ref_state_add(s, g, b, d, p->n_state, p->dim);
    llm_ref_state_times(s, c, p->n_state, p->dim, d);

    for (j = 0; j < p->dim; j++) {
        y[(size_t) h * p->dim + j]
            = (float) (d[j] + (double) p->d->data[h] * v[j]);
    }
}


void
llm_ref_scan(llm_exec_t *exec, const llm_scan_t *p, const llm_act_t *x,
    const llm_act_t *dt, llm_state_t *st, llm_act_t *y)
{
    size_t           size;
    uint32_t         i, r, h;
    llm_state_seq_t  s;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    size = (size_t) p->n_state * p->dim;

    for (i = 0; i < d->batch->n_seqs; i++) {
        s = llm_states_seq(st, d->batch, p->layer, i);

        if (s.begins) {
            memset(s.heads, 0, size * p->n_heads * sizeof(float));
        }

        for (r = s.row; r < s.end; r++) {
            for (h = 0; h < p->n_heads; h++) {
                llm_ref_scan_row(p, h, x->data + (size_t) r * x->cols,
                                 dt->data[(size_t) r * dt->cols + h],
                                 s.heads + h * size, d->sum,
                                 y->data + (size_t) r * y->cols);
            }
        }
    }
}
