/*
 * Mixtures of experts.  The rows that chose an expert are put into adjacent
 * rows of a stage and multiplied in one product with the kernels of linear().
 * These compute a row's bits independently of other rows, so the bits do not
 * depend on which other rows chose the expert.  Then the results for a row are
 * added up, in the order in which its experts were chosen.
 *
 * There are five loops over items, in this order: stage x; gate and up;
 * activation and stage; down; add up.  A piece of a product is some panels of
 * one expert by all of its rows, so weights are read once a step, in order.
 *
 * llm_choice_t owns all buffers; nothing is allocated in a step.
 */

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/route.h"

#include <assert.h>

/* estimated rates of one thread, per nanosecond */
#define LLM_RATE_ROUTE   0.1            /* experts */
#define LLM_RATE_PAIRS   4.0            /* elements of a pair's row */

/* rows, or pairs, of an item */
#define LLM_EXPERT_ROWS  4

#define LLM_EXPERT_TILE  16


typedef struct {
    llm_cpu_t            *cpu;
    llm_choice_t         *c;
    const llm_experts_t  *e;
    const llm_route_t    *r;
    const llm_act_t      *x;            /* rows, or the router's logits */
    llm_act_t            *y;
    uint32_t              n_rows;
    uint32_t              n_pairs;
    int                   what;         /* LLM_STAGE_ bits */

    /* products of the same rows: gate and up, or down */
    uint32_t              n_products;
    const llm_weight_t   *w[2];
    const llm_vec_t      *bias[2];
    float                *out[2];
    double                bytes;        /* bytes of weights of an item, at
                                           least */
} llm_experts_job_t;


void
llm_cpu_choice_free(llm_exec_t *exec, llm_choice_t *c)
{
    (void) exec;

    if (c) {
        free(c->weight);
        free(c->expert);
        llm_cpu_free(c->stage_memory, c->stage_size);
        llm_cpu_free(c->gate, c->ff_size);
        llm_cpu_free(c->up, c->ff_size);
        llm_cpu_free(c->out, c->out_size);
        free(c);
    }
}


/* allocates and divides the memory of c, whose opts are set */

static int
llm_cpu_choice_alloc(llm_choice_t *c)
{
    size_t    pairs, n, width;
    uint32_t  n_experts;

    n_experts = c->opts.n_experts;
    width = llm_max(c->opts.n_in, c->opts.n_ff);

    if (llm_mul_overflow(c->opts.max_rows, c->opts.n_used, &pairs)
        || pairs > UINT32_MAX / 2
        || width > UINT32_MAX / 2)
    {
        return LLM_ERROR;
    }

    n = pairs + (LLM_EXPERT_TILE - 1) * llm_min(pairs, n_experts);
    c->max_places = llm_align(n, LLM_EXPERT_TILE);

    /* a stage needs fewer than 16 bytes per element */
    if (llm_mul_overflow(c->max_places, (width + 128) * 16, &n)) {
        return LLM_ERROR;
    }

    c->weight = calloc(pairs, sizeof(float));
    c->expert = calloc(2 * pairs + 5 * (size_t) n_experts + 1,
                       sizeof(uint32_t));

    if (c->weight == NULL || c->expert == NULL) {
        return LLM_ERROR;
    }

    c->place = c->expert + pairs;
    c->group = c->place + pairs;
    c->first = c->group + n_experts;
    c->n_rows = c->first + n_experts;
    c->next = c->n_rows + n_experts;
    c->first_item = c->next + n_experts;

    c->stage_size = llm_cpu_stage_layout(&c->stage, NULL, c->max_places,
                                         (uint32_t) width);
    c->ff_size = c->max_places * c->opts.n_ff * sizeof(float);
    c->out_size = c->max_places * c->opts.n_in * sizeof(float);

    c->stage_memory = llm_cpu_alloc(c->stage_size, 1);
    c->gate = llm_cpu_alloc(c->ff_size, 0);
    c->up = llm_cpu_alloc(c->ff_size, 0);
    c->out = llm_cpu_alloc(c->out_size, 0);

    if (c->stage_memory == NULL || c->gate == NULL || c->up == NULL
        || c->out == NULL)
    {
        return LLM_ERROR;
    }

    (void) llm_cpu_stage_layout(&c->stage, c->stage_memory, c->max_places,
                                (uint32_t) width);

    return LLM_OK;
}


llm_choice_t *
llm_cpu_choice_create(llm_exec_t *exec, const llm_choice_opts_t *opts,
    llm_err_t *err)
{
    llm_choice_t  *c;

    if (llm_choice_check(opts, err) != LLM_OK) {
        return NULL;
    }

    c = calloc(1, sizeof(llm_choice_t));

    if (c) {
        c->opts = *opts;

        if (llm_cpu_choice_alloc(c) == LLM_OK) {
            return c;
        }
    }

    llm_cpu_choice_free(exec, c);
    llm_fail(err, "cpu: no memory for %u rows that choose %u of %u experts",
             opts->max_rows, opts->n_used, opts->n_experts);

    return NULL;
}


static uint32_t
llm_experts_end(uint32_t item, uint32_t n)
{
    return llm_min((item + 1) * LLM_EXPERT_ROWS, n);
}


static uint32_t
llm_experts_items(uint32_t n)
{
    return (n + LLM_EXPERT_ROWS - 1) / LLM_EXPERT_ROWS;
}


static void
llm_experts_route(void *arg, uint32_t item, uint32_t thread)
{
    size_t              at;
    uint32_t            row;
    llm_choice_t       *c;
    const llm_route_t  *r;
    llm_experts_job_t  *job = arg;

    (void) thread;

    c = job->c;
    r = job->r;

    for (row = item * LLM_EXPERT_ROWS;
         row < llm_experts_end(item, job->n_rows);
         row++)
    {
        at = (size_t) row * r->n_used;
        llm_route_row(r, r->bias ? r->bias->data : NULL,
                      r->factor ? r->factor->data : NULL,
                      job->x->data + (size_t) row * job->x->cols,
                      c->expert + at, c->weight + at);
    }
}


void
llm_cpu_route(llm_exec_t *exec, llm_rows_t rows, const llm_route_t *r,
    const llm_act_t *logits, llm_choice_t *c)
{
    llm_experts_job_t  job = { .cpu = (llm_cpu_t *) exec, .c = c, .r = r,
                               .x = logits };

    c->n_experts = r->n_experts;
    c->n_used = r->n_used;

    job.n_rows = llm_cpu_rows(job.cpu, rows);

    assert(r->n_experts <= c->opts.n_experts && r->n_used <= c->opts.n_used
           && job.n_rows <= c->opts.max_rows);

    llm_cpu_run(job.cpu, llm_experts_route, &job,
                llm_experts_items(job.n_rows),
                (double) job.n_rows * r->n_experts / LLM_RATE_ROUTE);
}


/* gives every pair its place, so that those of an expert are adjacent */

static void
llm_experts_place(llm_choice_t *c, uint32_t n_pairs)
{
    uint32_t  i, e, n, place;

    memset(c->n_rows, 0, c->n_experts * sizeof(uint32_t));

    for (i = 0; i < n_pairs; i++) {
        c->n_rows[c->expert[i]]++;
    }

    for (e = 0, n = 0, place = 0; e < c->n_experts; e++) {
        if (c->n_rows[e]) {
            c->group[n] = e;
            c->first[n++] = place;
            c->next[e] = place;
            place = (uint32_t) llm_align(place + c->n_rows[e],
                                         LLM_EXPERT_TILE);
        }
    }

    c->n_groups = n;

    for (i = 0; i < n_pairs; i++) {
        c->place[i] = c->next[c->expert[i]]++;
    }
}


/* stages x of some pairs; copies x only if it is weighted or needed in
   float32 */

static void
llm_experts_stage(void *arg, uint32_t item, uint32_t thread)
{
    float              *copy;
    uint32_t            i, k, n, place;
    const float        *x;
    llm_choice_t       *c;
    llm_experts_job_t  *job = arg;

    (void) thread;

    c = job->c;
    n = job->x->cols;

    for (i = item * LLM_EXPERT_ROWS; i < llm_experts_end(item, job->n_pairs);
         i++)
    {
        place = c->place[i];
        x = job->x->data + (size_t) (i / c->n_used) * n;

        if (job->e->weigh_input || job->what & LLM_STAGE_FLOAT) {

            copy = c->out + (size_t) place * n;

            for (k = 0; k < n; k++) {
                copy[k] = job->e->weigh_input ? c->weight[i] * x[k] : x[k];
            }

            x = copy;
        }

        llm_cpu_stage_row(job->cpu, &c->stage, x, place, job->what);
    }
}


/* the activation of some pairs, which is also staged for the product by down */

static void
llm_experts_act(void *arg, uint32_t item, uint32_t thread)
{
    float              *gate, *up;
    size_t              at;
    uint32_t            i, n;
    llm_act_fn_t        fn;
    llm_choice_t       *c;
    llm_experts_job_t  *job = arg;

    (void) thread;

    c = job->c;
    n = job->e->up->n_out;
    memset(&fn, 0, sizeof(fn));
    fn.kind = job->e->act;

    for (i = item * LLM_EXPERT_ROWS; i < llm_experts_end(item, job->n_pairs);
         i++)
    {
        at = (size_t) c->place[i] * n;
        gate = c->gate + at;
        up = c->up + at;

        job->cpu->kernels.glu(&fn, job->e->gate ? gate : up,
                              job->e->gate ? up : NULL, gate, n);
        llm_cpu_stage_row(job->cpu, &c->stage, gate, c->place[i], job->what);
    }
}


static void
llm_experts_add(void *arg, uint32_t item, uint32_t thread)
{
    size_t              at;
    uint32_t            row;
    llm_choice_t       *c;
    llm_experts_job_t  *job = arg;

    (void) thread;

    c = job->c;

    for (row = item * LLM_EXPERT_ROWS;
         row < llm_experts_end(item, job->n_rows);
         row++)
    {
        at = (size_t) row * c->n_used;
        job->cpu->kernels.weighted_sum(job->y->data
                                       + (size_t) row * job->y->cols,
                                       c->out, c->place + at,
                                       job->e->weigh_input ? NULL
                                       : c->weight + at,
                                       c->n_used, job->y->cols,
                                       job->e->add);
    }
}


/* the group that an item belongs to */

static uint32_t
llm_experts_find(const llm_choice_t *c, uint32_t item)
{
    uint32_t  low, high, mid;

    for (low = 0, high = c->n_groups; high - low > 1; /* void */ ) {
        mid = (low + high) / 2;

        if (c->first_item[mid] <= item) {
            low = mid;

        } else {
            high = mid;
        }
    }

    return low;
}


static void
llm_experts_product(void *arg, uint32_t item, uint32_t thread)
{
    uint32_t            i, e, group, step, columns;
    llm_choice_t       *c;
    llm_weight_t        w;
    llm_cpu_gemm_t      g;
    llm_experts_job_t  *job = arg;

    c = job->c;
    group = llm_experts_find(c, item);
    item -= c->first_item[group];
    e = c->group[group];

    step = llm_cpu_gemm_step(job->cpu, job->w[0], c->n_rows[e], job->bytes);
    columns = (job->w[0]->n_panels + step - 1) / step;
    i = item / columns;

    /* kernels take one expert's matrix as a weight of its own */
    w = *job->w[i];
    w.data += (size_t) e * w.n_panels * w.panel_size;

    g.w = &w;
    g.x = &c->stage;
    g.bias = job->bias[i] ? job->bias[i]->data + (size_t) e * w.n_out : NULL;
    g.scale = llm_weight_scale(&w, e);
    g.y = job->out[i];
    g.add = 0;
    g.row = c->first[group];
    g.n_rows = c->n_rows[e];
    g.panel = item % columns * step;
    g.n_panels = llm_min(step, w.n_panels - g.panel);
    g.scratch = llm_cpu_scratch(job->cpu, thread);

    llm_cpu_gemm(job->cpu, &g);
}


static void
llm_experts_products(llm_experts_job_t *job)
{
    double         bytes, macs;
    uint32_t       i, n, step;
    llm_choice_t  *c;

    c = job->c;
    bytes = 0;
    macs = 0;

    for (i = 0; i < job->n_products; i++) {
        bytes += (double) job->w[i]->panel_size * job->w[i]->n_panels
                 * c->n_groups;
        macs += (double) job->w[i]->n_out * job->w[i]->n_in * job->n_pairs;
    }

    job->bytes = llm_cpu_gemm_bytes(job->cpu, bytes);

    for (i = 0, n = 0; i < c->n_groups; i++) {
        c->first_item[i] = n;
        step = llm_cpu_gemm_step(job->cpu, job->w[0],
                                 c->n_rows[c->group[i]], job->bytes);
        n += (job->w[0]->n_panels + step - 1) / step * job->n_products;
    }

    c->first_item[i] = n;

    llm_cpu_run(job->cpu, llm_experts_product, job, n,
                llm_cpu_gemm_time(bytes, macs));
}


/* runs a loop over all pairs; cols: elements of a pair, for the estimated
   time */

static void
llm_experts_pairs(llm_experts_job_t *job, llm_pool_pt fn, uint32_t cols)
{
    llm_cpu_run(job->cpu, fn, job, llm_experts_items(job->n_pairs),
                (double) job->n_pairs * cols / LLM_RATE_PAIRS);
}


void
llm_cpu_experts(llm_exec_t *exec, llm_rows_t rows, const llm_experts_t *e,
    const llm_act_t *x, llm_choice_t *c, llm_act_t *y)
{
    llm_experts_job_t  job = { .cpu = (llm_cpu_t *) exec, .c = c, .e = e,
                               .x = x, .y = y };

    job.n_rows = llm_cpu_rows(job.cpu, rows);
    job.n_pairs = job.n_rows * c->n_used;

    assert(x->cols <= c->opts.n_in && e->up->n_out <= c->opts.n_ff
           && e->down->n_out == y->cols && y->cols <= c->opts.n_in
           && e->up->n_experts == c->n_experts);

    if (job.n_rows == 0) {
        return;
    }

    llm_experts_place(c, job.n_pairs);

    job.w[0] = e->up;
    job.bias[0] = e->up_bias;
    job.out[0] = c->up;
    job.what = llm_cpu_stage_wants(job.cpu, e->up);
    job.n_products = 1;

    if (e->gate) {
        job.w[1] = e->gate;
        job.bias[1] = e->gate_bias;
        job.out[1] = c->gate;
        job.what |= llm_cpu_stage_wants(job.cpu, e->gate);
        job.n_products = 2;
    }

    llm_cpu_stage_set(&c->stage, c->out, x->cols,
                      rows == LLM_ROWS_OUT || job.what & LLM_STAGE_FINE);
    llm_experts_pairs(&job, llm_experts_stage, x->cols);
    llm_experts_products(&job);

    job.what = llm_cpu_stage_wants(job.cpu, e->down);
    job.w[0] = e->down;
    job.bias[0] = e->down_bias;
    job.out[0] = c->out;
    job.n_products = 1;

    llm_cpu_stage_set(&c->stage, c->gate, e->up->n_out,
                      rows == LLM_ROWS_OUT || job.what & LLM_STAGE_FINE);
    llm_experts_pairs(&job, llm_experts_act, e->up->n_out * 4);
    llm_experts_products(&job);

    llm_cpu_run(job.cpu, llm_experts_add, &job, llm_experts_items(job.n_rows),
                (double) job.n_pairs * y->cols / LLM_RATE_PAIRS);
}
