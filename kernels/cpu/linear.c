/*
 * Products of activations and weights: converts x to the forms that the weights
 * need (the stage, see cpu.h), and divides the work into pieces of panels and
 * rows for the threads.
 *
 * The stage holds x of one product at a time, in the device's memory.
 */

#include "kernels/cpu/cpu.h"

/* bytes of weights, or multiply-adds, of one piece, at least */
#define LLM_ITEM_BYTES   49152
#define LLM_ITEM_MACS    4.0e6

/* panels of one piece for products in bfloat16 with tiles, at most: they share x
   as it is read, and are read in advance within a piece */
#define LLM_TILE_PANELS  16

/* estimated rates of one thread, per nanosecond, which decide whether the
   caller's thread runs alone */
#define LLM_RATE_BYTES   20.0
#define LLM_RATE_MACS    200.0
#define LLM_RATE_STAGE   8.0            /* elements of x */

#define LLM_STAGE_ROWS   8              /* rows of an item */


typedef struct {
    llm_cpu_t           *cpu;
    const llm_linear_t  *out;
    uint32_t             n_rows;
    uint32_t             row_step;      /* rows of an item */
    int                  what;          /* LLM_STAGE_ bits */
    double               bytes;         /* bytes of weights of an item, at
                                           least */
} llm_linear_job_t;


size_t
llm_cpu_stage_layout(llm_cpu_stage_t *s, char *p, size_t rows,
    uint32_t n_in)
{
    int     zero;
    size_t  n, size, blocks;

    /* kernels read whole tiles of 16 rows and ignore those that do not exist */
    rows = llm_align(rows, 16);
    n = llm_align(n_in, 64) + 64;
    blocks = n / LLM_BLOCK;

    size = rows * (n * 6 + blocks * 4 * (4 + 2 * LLM_ZERO_N - LLM_ZERO_32))
           + 64 * (7 + LLM_ZERO_N);

    if (p == NULL) {
        return size;
    }

#define llm_stage_take(field, size)                                          \
        s->field = (void *) p;                                               \
        p += llm_align(size, 64)

    llm_stage_take(q, rows * n);
    llm_stage_take(q_low, rows * n);
    llm_stage_take(b, rows * n * 2);
    llm_stage_take(b_low, rows * n * 2);
    llm_stage_take(d, rows * blocks * 4);
    llm_stage_take(sum, rows * blocks * 4);
    llm_stage_take(half, rows * blocks * 8);

    for (zero = 0; zero < LLM_ZERO_N; zero++) {
        llm_stage_take(zero[zero],
                       rows * blocks * (zero >= LLM_ZERO_32 ? 8 : 4));
    }

#undef llm_stage_take

    return size;
}


int
llm_cpu_stage_reserve(llm_cpu_t *cpu, uint32_t n_in, llm_err_t *err)
{
    int     rc;
    size_t  size;

    if (n_in <= cpu->stage_cap) {
        return LLM_OK;
    }

    size = llm_cpu_stage_layout(&cpu->stage, NULL, cpu->opts.max_tokens,
                                n_in);

    llm_cpu_take(cpu->device);
    rc = llm_cpu_reserve(&cpu->device->stage, size);
    llm_cpu_give(cpu->device);

    if (rc != LLM_OK) {
        return llm_fail(err, "cpu: no memory for %u rows of %u elements",
                        cpu->opts.max_tokens, n_in);
    }

    cpu->stage_cap = n_in;

    return LLM_OK;
}


void
llm_cpu_stage_begin(llm_cpu_t *cpu)
{
    (void) llm_cpu_stage_layout(&cpu->stage, cpu->device->stage.data,
                                cpu->opts.max_tokens, cpu->stage_cap);
}


void
llm_cpu_stage_set(llm_cpu_stage_t *s, const float *x, uint32_t n_in,
    int fine)
{
    s->n_in = n_in;
    s->n_blocks = n_in / LLM_BLOCK;
    s->fine = fine;
    s->stride = llm_align(n_in, 64) + 64;
    s->x = x;
}


int
llm_cpu_stage_wants(const llm_cpu_t *cpu, const llm_weight_t *w)
{
    int  what;

    if (w->panels == LLM_TYPE_BF16 && cpu->kernels.bf16) {
        what = LLM_STAGE_BF16;

    } else {
        what = w->format.bits ? w->format.stage : LLM_STAGE_FLOAT;
    }

    if (w->format.bits && w->usage & LLM_WEIGHT_FINE) {
        what |= LLM_STAGE_FINE;
    }

    return what;
}


void
llm_cpu_stage_row(const llm_cpu_t *cpu, const llm_cpu_stage_t *s,
    const float *x, uint32_t row, int what)
{
    if (what & LLM_STAGE_Q8) {
        cpu->kernels.stage_q8(s, x, row, what);
    }

    if (what & LLM_STAGE_BF16) {
        cpu->kernels.stage_bf16(s, x, row);
    }
}


static void
llm_linear_stage(void *arg, uint32_t item, uint32_t thread)
{
    uint32_t           row, end;
    llm_cpu_stage_t   *s;
    llm_linear_job_t  *job = arg;

    (void) thread;

    s = &job->cpu->stage;
    end = llm_min((item + 1) * LLM_STAGE_ROWS, job->n_rows);

    for (row = item * LLM_STAGE_ROWS; row < end; row++) {
        llm_cpu_stage_row(job->cpu, s, s->x + (size_t) row * s->n_in, row,
                          job->what);
    }
}


double
llm_cpu_gemm_bytes(const llm_cpu_t *cpu, double bytes)
{
    return llm_min(LLM_ITEM_BYTES,
                   bytes / (cpu->threads * 4));
}


double
llm_cpu_gemm_time(double bytes, double macs)
{
    return bytes / LLM_RATE_BYTES + macs / LLM_RATE_MACS;
}


/* a multiple of 4: some kernels take 2 or 4 panels at a time */

uint32_t
llm_cpu_gemm_step(const llm_cpu_t *cpu, const llm_weight_t *w,
    uint32_t n_rows, double bytes)
{
    double    step;

    if (n_rows > LLM_GEMM_FEW) {
        step = LLM_ITEM_MACS / ((double) w->n_in * LLM_PANEL * n_rows);

        if (cpu->kernels.tiles
            && llm_cpu_stage_wants(cpu, w) & LLM_STAGE_BF16)
        {
            step = llm_min(LLM_TILE_PANELS, w->n_panels / (cpu->threads * 4.0));
        }

    } else {
        step = bytes / (double) w->panel_size;
    }

    return llm_max(llm_align((uint32_t) llm_min(step, w->n_panels), 4), 4);
}


static uint32_t
llm_linear_step(const llm_linear_job_t *job, const llm_weight_t *w)
{
    return llm_cpu_gemm_step(job->cpu, w, job->row_step, job->bytes);
}


/* rows of a piece: all of them, or parts of equal size, if tiles multiply x */

static uint32_t
llm_linear_rows(const llm_linear_job_t *job)
{
    uint32_t  parts;

    if (!job->cpu->kernels.tiles || !(job->what & LLM_STAGE_BF16)) {
        return job->n_rows;
    }

    parts = (job->n_rows + LLM_TILE_SPAN - 1) / LLM_TILE_SPAN;

    return llm_min(llm_align((job->n_rows + parts - 1) / parts, 32),
                   job->n_rows);
}


static uint32_t
llm_linear_items(const llm_linear_job_t *job, const llm_weight_t *w)
{
    uint32_t  step;

    step = llm_linear_step(job, w);

    return (w->n_panels + step - 1) / step
           * ((job->n_rows + job->row_step - 1) / job->row_step);
}


void
llm_cpu_gemm(const llm_cpu_t *cpu, const llm_cpu_gemm_t *g)
{
    if (g->w->panels == LLM_TYPE_BF16) {
        cpu->kernels.gemm_bf16(g);

    } else if (g->w->format.bits) {
        cpu->kernels.gemm_quant(g);

    } else {
        cpu->kernels.gemm_float(g);
    }
}


static void
llm_linear_item(void *arg, uint32_t item, uint32_t thread)
{
    uint32_t             n, step, columns;
    llm_cpu_t           *cpu;
    llm_cpu_gemm_t       g;
    llm_linear_job_t    *job = arg;
    const llm_weight_t  *w;
    const llm_linear_t  *out;

    cpu = job->cpu;

    for (out = job->out; /* void */ ; out++) {
        n = llm_linear_items(job, out->w);
        if (item < n) {
            break;
        }

        item -= n;
    }

    w = out->w;
    step = llm_linear_step(job, w);
    columns = (w->n_panels + step - 1) / step;

    g.w = w;
    g.x = &cpu->stage;
    g.bias = out->bias ? out->bias->data : NULL;
    g.scale = llm_weight_scale(w, 0);
    g.y = out->y->data;
    g.add = out->add;
    g.panel = item % columns * step;
    g.n_panels = llm_min(step, w->n_panels - g.panel);
    g.row = item / columns * job->row_step;
    g.n_rows = llm_min(job->row_step, job->n_rows - g.row);
    g.scratch = llm_cpu_scratch(cpu, thread);

    llm_cpu_gemm(cpu, &g);
}


void
llm_cpu_linear(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *x,
    const llm_linear_t *out, uint32_t n)
{
    double             bytes, macs;
    uint32_t           i, items, threads;
    llm_cpu_t         *cpu = (llm_cpu_t *) exec;
    llm_linear_job_t   job;

    job.cpu = cpu;
    job.out = out;
    job.n_rows = llm_cpu_rows(cpu, rows);
    job.what = 0;

    if (job.n_rows == 0) {
        return;
    }

    bytes = 0;
    macs = 0;

    for (i = 0; i < n; i++) {
        job.what |= llm_cpu_stage_wants(cpu, out[i].w);
        bytes += (double) out[i].w->size;
        macs += (double) out[i].w->n_out * out[i].w->n_in * job.n_rows;
    }

    llm_cpu_stage_set(&cpu->stage, x->data, x->cols,
                      rows == LLM_ROWS_OUT || job.what & LLM_STAGE_FINE);

    if (job.what != LLM_STAGE_FLOAT) {
        llm_cpu_run(cpu, llm_linear_stage, &job,
                    (job.n_rows + LLM_STAGE_ROWS - 1) / LLM_STAGE_ROWS,
                    (double) job.n_rows * x->cols / LLM_RATE_STAGE);
    }

    threads = cpu->threads;
    job.bytes = llm_cpu_gemm_bytes(cpu, bytes);
    job.row_step = llm_linear_rows(&job);

    for ( ;; ) {
        for (items = 0, i = 0; i < n; i++) {
            items += llm_linear_items(&job, out[i].w);
        }

        /* too few pieces: divide the rows, too */
        if (items >= threads * 4 || job.row_step <= 96) {
            break;
        }

        job.row_step = llm_align(job.row_step / 2, 48);
    }

    llm_cpu_run(cpu, llm_linear_item, &job, items,
                llm_cpu_gemm_time(bytes, macs));
}
