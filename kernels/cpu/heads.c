/*
 * Products of heads with a matrix for each head, for latent attention.
 *
 * A piece of work is one head of some rows.  These are copied to the thread's
 * scratch, multiplied there with the kernels of linear(), and copied back, so a
 * row has the same bits with any other rows.  The copies take little time
 * compared to the product, and need no memory for all heads of all rows.
 */

#include "kernels/cpu/cpu.h"

#include <assert.h>

/* rows of a piece */
#define LLM_HEADS_ROWS   48


typedef struct {
    llm_cpu_t           *cpu;
    const llm_weight_t  *w;
    const llm_act_t     *x;
    llm_act_t           *y;
    uint32_t             n_rows;
    uint32_t             n_parts;       /* pieces of a head */
    int                  what;          /* LLM_STAGE_ bits */
    int                  fine;
} llm_heads_job_t;


/* bytes of a piece's copies: x, then y */

static size_t
llm_heads_copies(const llm_weight_t *w)
{
    return LLM_HEADS_ROWS * (llm_pad16(w->n_in) + llm_pad16(w->n_out))
           * sizeof(float);
}


/* bytes of scratch that precede the kernels' scratch: copies and stage */

static size_t
llm_heads_scratch(const llm_weight_t *w)
{
    llm_cpu_stage_t  stage;

    return llm_align(llm_heads_copies(w)
                     + llm_cpu_stage_layout(&stage, NULL, LLM_HEADS_ROWS,
                                            w->n_in), 64);
}


llm_weight_t *
llm_cpu_heads_create(llm_exec_t *exec, uint32_t type, uint32_t n_heads,
    uint32_t n_out, uint32_t n_in, const void *src, size_t stride,
    llm_err_t *err)
{
    llm_cpu_t     *cpu = (llm_cpu_t *) exec;
    llm_weight_t  *w;

    w = exec->ops->experts_create(exec, type, n_heads, n_out, n_in, src,
                                  stride, err);

    if (w && llm_cpu_scratch_reserve(cpu, llm_heads_scratch(w)
                                          + llm_cpu_pack_scratch(cpu, w), err)
             != LLM_OK)
    {
        exec->ops->weight_free(exec, w);
        return NULL;
    }

    return w;
}


static void
llm_heads_stage(const llm_heads_job_t *job, uint32_t head, uint32_t row,
    uint32_t n_rows, float *copy, llm_cpu_stage_t *s)
{
    uint32_t      i, n, dim;
    const float  *x;

    n = job->w->n_in;
    dim = job->x->cols / job->w->n_experts;

    for (i = 0; i < n_rows; i++) {
        x = job->x->data + (size_t) (row + i) * job->x->cols + head * dim;
        memcpy(copy + (size_t) i * n, x, n * sizeof(float));
        llm_cpu_stage_row(job->cpu, s, copy + (size_t) i * n, i, job->what);
    }
}


static void
llm_heads_output(const llm_heads_job_t *job, uint32_t head, uint32_t row,
    uint32_t n_rows, const float *out)
{
    float         *y;
    uint32_t       i, n, x_dim, y_dim;
    const float   *rest;

    n = job->w->n_out;
    x_dim = job->x->cols / job->w->n_experts;
    y_dim = job->y->cols / job->w->n_experts;

    for (i = 0; i < n_rows; i++) {
        y = job->y->data + (size_t) (row + i) * job->y->cols + head * y_dim;
        rest = job->x->data + (size_t) (row + i) * job->x->cols
               + head * x_dim + job->w->n_in;

        memcpy(y, out + (size_t) i * n, n * sizeof(float));
        memcpy(y + n, rest, (y_dim - n) * sizeof(float));
    }
}


static void
llm_heads_item(void *arg, uint32_t item, uint32_t thread)
{
    char             *scratch;
    float            *x, *y;
    uint32_t          head, row, n;
    llm_weight_t      w;
    llm_cpu_gemm_t    g;
    llm_heads_job_t  *job = arg;
    llm_cpu_stage_t   stage;

    head = item / job->n_parts;
    row = item % job->n_parts * LLM_HEADS_ROWS;
    n = llm_min(LLM_HEADS_ROWS, job->n_rows - row);

    scratch = (char *) llm_cpu_scratch(job->cpu, thread);
    x = (float *) (void *) scratch;
    y = x + LLM_HEADS_ROWS * llm_pad16(job->w->n_in);

    (void) llm_cpu_stage_layout(&stage, scratch + llm_heads_copies(job->w),
                                LLM_HEADS_ROWS, job->w->n_in);
    llm_cpu_stage_set(&stage, x, job->w->n_in, job->fine);
    llm_heads_stage(job, head, row, n, x, &stage);

    /* kernels take one head's matrix as a weight of its own */
    w = *job->w;
    w.data += (size_t) head * w.n_panels * w.panel_size;

    memset(&g, 0, sizeof(g));
    g.w = &w;
    g.x = &stage;
    g.scale = llm_weight_scale(&w, head);
    g.y = y;
    g.n_rows = n;
    g.n_panels = w.n_panels;
    g.scratch = (uint8_t *) scratch + llm_heads_scratch(job->w);

    llm_cpu_gemm(job->cpu, &g);
    llm_heads_output(job, head, row, n, y);
}


void
llm_cpu_linear_heads(llm_exec_t *exec, llm_rows_t rows, const llm_weight_t *w,
    const llm_act_t *x, llm_act_t *y)
{
    llm_heads_job_t  job = { .cpu = (llm_cpu_t *) exec, .w = w, .x = x,
                             .y = y };

    assert(x->cols % w->n_experts == 0 && y->cols % w->n_experts == 0
           && x->cols / w->n_experts - w->n_in
              == y->cols / w->n_experts - w->n_out);

    job.n_rows = llm_cpu_rows(job.cpu, rows);
    job.n_parts = (job.n_rows + LLM_HEADS_ROWS - 1) / LLM_HEADS_ROWS;
    job.what = llm_cpu_stage_wants(job.cpu, w);
    job.fine = rows == LLM_ROWS_OUT || job.what & LLM_STAGE_FINE;

    llm_cpu_run(job.cpu, llm_heads_item, &job, job.n_parts * w->n_experts,
                llm_cpu_gemm_time((double) w->size,
                                  (double) w->n_experts * w->n_out * w->n_in
                                  * job.n_rows));
}
