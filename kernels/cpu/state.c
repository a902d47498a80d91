/*
 * The recurrent layers of the CPU backend: the short convolution, the gated
 * delta rule, the selective scan; see kernels.h.  The arithmetic of matrices is
 * in simd_state.h, the memory of states in states.c.
 *
 * Invariant: an item of work is all rows of a sequence, for some channels or
 * one head; no other item uses that part of the state.  A row's decay and
 * weight are computed from that row alone, so neither the division into steps
 * nor the threads change a bit of the results.
 */

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/states.h"

#include <math.h>

/* channels of an item of a convolution */
#define LLM_CONV_STEP    1024

/* estimated rates of one thread, per nanosecond: products of a convolution,
   elements of a matrix */
#define LLM_RATE_CONV    8.0
#define LLM_RATE_STATE   16.0


typedef struct {
    llm_cpu_t           *cpu;
    llm_state_t         *st;
    const llm_conv_t    *c;             /* one of these three is set */
    const llm_delta_t   *delta;
    const llm_scan_t    *scan;
    const llm_act_t     *x;
    const llm_act_t     *alpha;         /* alpha of the delta rule, or dt of
                                           the scan */
    const llm_act_t     *beta;
    llm_act_t           *y;
    uint32_t             n_items;       /* items of each sequence */
} llm_state_job_t;


static void
llm_cpu_state_run(llm_state_job_t *job, llm_pool_pt fn, double work)
{
    const llm_batch_t  *b = job->cpu->batch;

    llm_cpu_run(job->cpu, fn, job, job->n_items * b->n_seqs,
                work * b->n_tokens);
}


/* input t of a sequence, from channel `first` on: t counts from the first row
   of the step; below 0: an input kept in the state */

static const float *
llm_conv_input(const llm_state_job_t *job, const llm_state_seq_t *s,
    int64_t t, uint32_t first)
{
    const llm_state_layer_t  *l = &job->st->opts.layers[job->c->layer];

    if (t < 0) {
        t += l->conv_width - 1;
        return s->conv + (size_t) t * l->conv_channels + first;
    }

    return job->x->data + (s->row + (size_t) t) * job->x->cols + first;
}


static void
llm_cpu_conv_item(void *arg, uint32_t item, uint32_t thread)
{
    size_t                    channels;
    int64_t                   t, n, kept;
    uint32_t                  k, first;
    llm_cpu_conv_t            c;
    llm_state_seq_t           s;
    llm_state_job_t          *job = arg;
    const llm_state_layer_t  *l = &job->st->opts.layers[job->c->layer];

    (void) thread;

    s = llm_states_seq(job->st, job->cpu->batch, job->c->layer,
                       item / job->n_items);
    first = item % job->n_items * LLM_CONV_STEP;
    channels = l->conv_channels;
    kept = l->conv_width - 1;
    n = s.end - s.row;

    c.w = job->c->w->data + first;
    c.stride = channels;
    c.bias = job->c->bias ? job->c->bias->data + first : NULL;
    c.width = l->conv_width;
    c.n = llm_min(l->conv_channels - first, LLM_CONV_STEP);
    c.silu = job->c->silu;

    for (t = 0; s.begins && t < kept; t++) {
        memset(s.conv + (size_t) t * channels + first, 0,
               c.n * sizeof(float));
    }

    for (t = 0; t < n; t++) {
        for (k = 0; k < c.width; k++) {
            c.x[k] = llm_conv_input(job, &s, t - kept + k, first);
        }

        job->cpu->kernels.conv(&c, job->y->data
                                   + (s.row + (size_t) t) * job->y->cols
                                   + first);
    }

    /* in this order, a kept input is read before it is overwritten */

    for (t = 0; t < kept; t++) {
        memcpy(s.conv + (size_t) t * channels + first,
               llm_conv_input(job, &s, n - kept + t, first),
               c.n * sizeof(float));
    }
}


void
llm_cpu_conv(llm_exec_t *exec, const llm_conv_t *c, const llm_act_t *x,
    llm_state_t *st, llm_act_t *y)
{
    const llm_state_layer_t  *l = &st->opts.layers[c->layer];

    llm_state_job_t  job = { .cpu = (llm_cpu_t *) exec, .st = st, .c = c,
                             .x = x, .y = y };

    job.n_items = (l->conv_channels + LLM_CONV_STEP - 1) / LLM_CONV_STEP;
    llm_cpu_state_run(&job, llm_cpu_conv_item,
                      (double) l->conv_channels * l->conv_width
                      / LLM_RATE_CONV);
}


static float
llm_state_softplus(float x)
{
    return x > 20 ? x : (float) log1p(exp(x));
}


/* g, the decay of head h's state at row `row`, and the weight of what the row
   adds */

static void
llm_state_weights(const llm_state_job_t *job, uint32_t h, size_t row,
    float *g, float *weight)
{
    float  s;

    s = job->alpha->data[row * job->alpha->cols + h];

    if (job->delta) {
        s = llm_state_softplus(s + job->delta->dt->data[h]);
        *g = (float) exp((double) job->delta->a->data[h] * s);
        s = job->beta->data[row * job->beta->cols + h];
        *weight = (float) (1 / (1 + exp(-(double) s)));

    } else {
        s = llm_state_softplus(s + job->scan->dt_bias->data[h]);
        s = llm_max(s, job->scan->dt_min);
        *g = (float) exp((double) job->scan->a->data[h] * s);
        *weight = s;
    }
}


/* sets q, k and v of head h to their places in the first row of x */

static void
llm_state_places(const llm_state_job_t *job, uint32_t h, llm_cpu_state_t *p)
{
    uint32_t            of;
    const float        *x = job->x->data;
    const llm_scan_t   *s = job->scan;
    const llm_delta_t  *d = job->delta;

    if (d) {
        of = d->tiled ? h % d->n_k_heads
                      : h / (d->n_v_heads / d->n_k_heads);
        p->q = x + (size_t) of * d->dim_k;
        p->k = p->q + (size_t) d->n_k_heads * d->dim_k;
        p->v = x + (size_t) 2 * d->n_k_heads * d->dim_k
               + (size_t) h * d->dim_v;
        p->is_delta = 1;
        p->skip = 0;

        return;
    }

    of = h / (s->n_heads / s->n_groups);
    p->k = x + (size_t) s->n_heads * s->dim + (size_t) of * s->n_state;
    p->q = p->k + (size_t) s->n_groups * s->n_state;
    p->v = x + (size_t) h * s->dim;
    p->is_delta = 0;
    p->skip = s->d->data[h];
}


static void
llm_cpu_head_item(void *arg, uint32_t item, uint32_t thread)
{
    size_t                    row, size;
    uint32_t                  h, i;
    llm_cpu_state_t           p;
    llm_state_seq_t           s;
    llm_state_job_t          *job = arg;
    const llm_state_layer_t  *l;

    (void) thread;

    i = job->delta ? job->delta->layer : job->scan->layer;
    l = &job->st->opts.layers[i];
    s = llm_states_seq(job->st, job->cpu->batch, i, item / job->n_items);
    h = item % job->n_items;
    size = (size_t) l->n_rows * l->n_cols;

    p.s = s.heads + h * size;
    p.n_rows = l->n_rows;
    p.n_cols = l->n_cols;
    p.x_stride = job->x->cols;
    p.y_stride = job->y->cols;
    llm_state_places(job, h, &p);

    p.q += s.row * p.x_stride;
    p.k += s.row * p.x_stride;
    p.v += s.row * p.x_stride;
    p.y = job->y->data + s.row * p.y_stride + (size_t) h * l->n_cols;

    if (s.begins) {
        memset(p.s, 0, size * sizeof(float));
    }

    for (row = s.row; row < s.end; row += p.n) {
        p.n = (uint32_t) llm_min(s.end - row, (size_t) LLM_STATE_STEP);

        for (i = 0; i < p.n; i++) {
            llm_state_weights(job, h, row + i, &p.g[i], &p.weight[i]);
        }

        job->cpu->kernels.state(&p);

        p.q += p.n * p.x_stride;
        p.k += p.n * p.x_stride;
        p.v += p.n * p.x_stride;
        p.y += p.n * p.y_stride;
    }
}


void
llm_cpu_delta(llm_exec_t *exec, const llm_delta_t *d, const llm_act_t *x,
    const llm_act_t *alpha, const llm_act_t *beta, llm_state_t *st,
    llm_act_t *y)
{
    llm_state_job_t  job = { .cpu = (llm_cpu_t *) exec, .st = st, .delta = d,
                             .x = x, .alpha = alpha, .beta = beta, .y = y };

    job.n_items = d->n_v_heads;
    llm_cpu_state_run(&job, llm_cpu_head_item,
                      (double) d->n_v_heads * d->dim_k * d->dim_v
                      / LLM_RATE_STATE);
}


void
llm_cpu_scan(llm_exec_t *exec, const llm_scan_t *s, const llm_act_t *x,
    const llm_act_t *dt, llm_state_t *st, llm_act_t *y)
{
    llm_state_job_t  job = { .cpu = (llm_cpu_t *) exec, .st = st, .scan = s,
                             .x = x, .alpha = dt, .y = y };

    job.n_items = s->n_heads;
    llm_cpu_state_run(&job, llm_cpu_head_item,
                      (double) s->n_heads * s->dim * s->n_state
                      / LLM_RATE_STATE);
}
