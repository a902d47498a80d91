/*
 * The CPU's operations on single rows: embeddings, norms, activations,
 * scaling, gathering.  The arithmetic of most is in simd_ops.h.
 *
 * Invariant: a row's result depends only on that row; threads get items of
 * LLM_ROWS_STEP rows.
 */

#include "kernels/cpu/cpu.h"

#include <math.h>

/* estimated rate of one thread: elements per nanosecond */
#define LLM_RATE_ROWS    4.0
#define LLM_ROWS_STEP    4


typedef struct {
    llm_cpu_t           *cpu;
    const llm_weight_t  *w;
    const llm_act_t     *x;
    const llm_act_t     *up;
    const llm_vec_t     *v;
    llm_act_t           *y;
    const llm_norm_t    *norm;
    const llm_act_fn_t  *fn;
    float                factor;
    int                  add;
    llm_rows_t           rows;
    uint32_t             first;         /* first column of x */
    uint32_t             width;         /* columns of a piece */
    uint32_t             stride;        /* columns from piece to piece */
    uint32_t             n_rows;
} llm_rows_job_t;


/* runs a loop over items of LLM_ROWS_STEP rows; cols: elements of a row, for
   the estimated time */

static void
llm_cpu_run_rows(llm_rows_job_t *job, llm_pool_pt fn, uint32_t cols)
{
    llm_cpu_run(job->cpu, fn, job,
                (job->n_rows + LLM_ROWS_STEP - 1) / LLM_ROWS_STEP,
                (double) job->n_rows * cols / LLM_RATE_ROWS);
}


static uint32_t
llm_cpu_rows_end(const llm_rows_job_t *job, uint32_t item)
{
    return llm_min((item + 1) * LLM_ROWS_STEP, job->n_rows);
}


static void
llm_cpu_embed_item(void *arg, uint32_t item, uint32_t thread)
{
    size_t           token;
    uint32_t         row;
    llm_rows_job_t  *job = arg;

    (void) thread;

    for (row = item * LLM_ROWS_STEP; row < llm_cpu_rows_end(job, item);
         row++)
    {
        token = (size_t) job->cpu->batch->tokens[row];
        llm_dequantize(job->w->type, job->w->src + token * job->w->row_size,
                       job->y->data + (size_t) row * job->y->cols,
                       job->y->cols);
    }
}


void
llm_cpu_embed(llm_exec_t *exec, const llm_weight_t *w, llm_act_t *x)
{
    llm_rows_job_t  job = { .cpu = (llm_cpu_t *) exec, .w = w, .y = x };

    job.n_rows = job.cpu->batch->n_tokens;
    llm_cpu_run_rows(&job, llm_cpu_embed_item, x->cols);
}


static void
llm_cpu_input_item(void *arg, uint32_t item, uint32_t thread)
{
    float              *y;
    uint32_t            r, row, i;
    const float        *x;
    llm_rows_job_t     *job = arg;
    const llm_batch_t  *b = job->cpu->batch;

    (void) thread;

    for (r = item * LLM_ROWS_STEP; r < llm_cpu_rows_end(job, item); r++) {
        row = job->rows == LLM_ROWS_OUT ? b->out_rows[r] : r;

        if (b->given[row] == LLM_NOT_GIVEN) {
            continue;
        }

        x = b->rows + (size_t) b->given[row] * b->given_cols + job->first;
        y = job->y->data + (size_t) r * job->y->cols;

        for (i = 0; i < job->y->cols; i++) {
            y[i] = job->add ? y[i] + x[i] : x[i];
        }
    }
}


void
llm_cpu_input(llm_exec_t *exec, llm_rows_t rows, uint32_t first, int add,
    llm_act_t *y)
{
    llm_rows_job_t  job = { .cpu = (llm_cpu_t *) exec, .y = y, .rows = rows,
                            .first = first, .add = add };

    if (job.cpu->batch->given) {
        job.n_rows = llm_cpu_rows(job.cpu, rows);
        llm_cpu_run_rows(&job, llm_cpu_input_item, y->cols);
    }
}


static void
llm_cpu_add_vec_item(void *arg, uint32_t item, uint32_t thread)
{
    float           *y;
    uint32_t         row, i;
    llm_rows_job_t  *job = arg;

    (void) thread;

    for (row = item * LLM_ROWS_STEP; row < llm_cpu_rows_end(job, item);
         row++)
    {
        y = job->y->data + (size_t) row * job->y->cols;

        for (i = 0; i < job->y->cols; i++) {
            y[i] += job->v->data[i];
        }
    }
}


void
llm_cpu_add_vec(llm_exec_t *exec, llm_rows_t rows, const llm_vec_t *v,
    llm_act_t *x)
{
    llm_rows_job_t  job = { .cpu = (llm_cpu_t *) exec, .v = v, .y = x };

    job.n_rows = llm_cpu_rows(job.cpu, rows);
    llm_cpu_run_rows(&job, llm_cpu_add_vec_item, x->cols);
}


static void
llm_cpu_embed_pos_item(void *arg, uint32_t item, uint32_t thread)
{
    size_t           pos;
    float           *e, *y;
    uint32_t         row, i;
    llm_rows_job_t  *job = arg;

    /* the device's scratch has room for a row of any weight */
    e = (float *) (void *) llm_cpu_scratch(job->cpu, thread);

    for (row = item * LLM_ROWS_STEP; row < llm_cpu_rows_end(job, item);
         row++)
    {
        pos = job->cpu->batch->pos[row];
        y = job->y->data + (size_t) row * job->y->cols;
        llm_dequantize(job->w->type, job->w->src + pos * job->w->row_size, e,
                       job->y->cols);

        for (i = 0; i < job->y->cols; i++) {
            y[i] += e[i];
        }
    }
}


void
llm_cpu_embed_pos(llm_exec_t *exec, const llm_weight_t *w, llm_act_t *x)
{
    llm_rows_job_t  job = { .cpu = (llm_cpu_t *) exec, .w = w, .y = x };

    job.n_rows = job.cpu->batch->n_tokens;
    llm_cpu_run_rows(&job, llm_cpu_embed_pos_item, x->cols * 2);
}


static void
llm_cpu_norm_item(void *arg, uint32_t item, uint32_t thread)
{
    size_t           at;
    uint32_t         row;
    llm_rows_job_t  *job = arg;

    (void) thread;

    for (row = item * LLM_ROWS_STEP; row < llm_cpu_rows_end(job, item);
         row++)
    {
        at = (size_t) row * job->x->cols;
        job->cpu->kernels.norm(job->norm, job->x->data + at,
                               job->y->data + at, job->x->cols);
    }
}


void
llm_cpu_norm(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *x,
    const llm_norm_t *norm, llm_act_t *y)
{
    llm_rows_job_t  job = { .cpu = (llm_cpu_t *) exec, .x = x, .norm = norm,
                            .y = y };

    job.n_rows = llm_cpu_rows(job.cpu, rows);
    llm_cpu_run_rows(&job, llm_cpu_norm_item, x->cols);
}


static void
llm_cpu_glu_item(void *arg, uint32_t item, uint32_t thread)
{
    size_t           at, n;
    llm_rows_job_t  *job = arg;

    (void) thread;

    at = (size_t) item * LLM_ROWS_STEP * job->y->cols;
    n = (size_t) llm_cpu_rows_end(job, item) * job->y->cols - at;

    job->cpu->kernels.glu(job->fn, job->x->data + at,
                          job->up ? job->up->data + at : NULL,
                          job->y->data + at, n);
}


void
llm_cpu_glu(llm_exec_t *exec, llm_rows_t rows, llm_glu_t act,
    const llm_act_t *gate, const llm_act_t *up, llm_act_t *y)
{
    llm_act_fn_t    fn = { .kind = act };
    llm_rows_job_t  job = { .cpu = (llm_cpu_t *) exec, .x = gate, .up = up,
                            .y = y, .fn = &fn };

    job.n_rows = llm_cpu_rows(job.cpu, rows);
    llm_cpu_run_rows(&job, llm_cpu_glu_item, y->cols * 4);
}


void
llm_cpu_act(llm_exec_t *exec, llm_rows_t rows, const llm_act_fn_t *fn,
    const llm_act_t *x, llm_act_t *y)
{
    llm_rows_job_t  job = { .cpu = (llm_cpu_t *) exec, .x = x, .y = y,
                            .fn = fn };

    job.n_rows = llm_cpu_rows(job.cpu, rows);
    llm_cpu_run_rows(&job, llm_cpu_glu_item, y->cols * 4);
}


static void
llm_cpu_scale_item(void *arg, uint32_t item, uint32_t thread)
{
    float           *y, v;
    size_t           i, end;
    const float     *x;
    llm_rows_job_t  *job = arg;

    (void) thread;

    x = job->x->data;
    y = job->y->data;
    end = (size_t) llm_cpu_rows_end(job, item) * job->y->cols;

    for (i = (size_t) item * LLM_ROWS_STEP * job->y->cols; i < end; i++) {
        v = job->factor * x[i];
        y[i] = job->add ? y[i] + v : v;
    }
}


void
llm_cpu_scale(llm_exec_t *exec, llm_rows_t rows, float f, const llm_act_t *x,
    int add, llm_act_t *y)
{
    llm_rows_job_t  job = { .cpu = (llm_cpu_t *) exec, .x = x, .y = y,
                            .factor = f, .add = add };

    job.n_rows = llm_cpu_rows(job.cpu, rows);
    llm_cpu_run_rows(&job, llm_cpu_scale_item, y->cols);
}


static void
llm_cpu_softcap_item(void *arg, uint32_t item, uint32_t thread)
{
    size_t           at, n;
    llm_rows_job_t  *job = arg;

    (void) thread;

    at = (size_t) item * LLM_ROWS_STEP * job->y->cols;
    n = (size_t) llm_cpu_rows_end(job, item) * job->y->cols - at;

    job->cpu->kernels.softcap(job->factor, job->y->data + at, n);
}


void
llm_cpu_softcap(llm_exec_t *exec, llm_rows_t rows, float cap, llm_act_t *x)
{
    llm_rows_job_t  job = { .cpu = (llm_cpu_t *) exec, .y = x,
                            .factor = cap };

    job.n_rows = llm_cpu_rows(job.cpu, rows);
    llm_cpu_run_rows(&job, llm_cpu_softcap_item, x->cols * 4);
}


static void
llm_cpu_columns_item(void *arg, uint32_t item, uint32_t thread)
{
    uint32_t         row;
    llm_rows_job_t  *job = arg;

    (void) thread;

    for (row = item * LLM_ROWS_STEP; row < llm_cpu_rows_end(job, item);
         row++)
    {
        memcpy(job->y->data + (size_t) row * job->y->cols,
               job->x->data + (size_t) row * job->x->cols + job->first,
               job->y->cols * sizeof(float));
    }
}


void
llm_cpu_columns(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *x,
    uint32_t first, llm_act_t *y)
{
    llm_rows_job_t  job = { .cpu = (llm_cpu_t *) exec, .x = x, .y = y,
                            .first = first };

    job.n_rows = llm_cpu_rows(job.cpu, rows);
    llm_cpu_run_rows(&job, llm_cpu_columns_item, y->cols);
}


static void
llm_cpu_pieces_item(void *arg, uint32_t item, uint32_t thread)
{
    float           *y;
    uint32_t         row, i;
    const float     *x;
    llm_rows_job_t  *job = arg;

    (void) thread;

    for (row = item * LLM_ROWS_STEP; row < llm_cpu_rows_end(job, item);
         row++)
    {
        x = job->x->data + (size_t) row * job->x->cols + job->first;
        y = job->y->data + (size_t) row * job->y->cols;

        for (i = 0; i < job->y->cols; i += job->width) {
            memcpy(y + i, x, job->width * sizeof(float));
            x += job->stride;
        }
    }
}


void
llm_cpu_pieces(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *x,
    uint32_t first, uint32_t width, uint32_t stride, llm_act_t *y)
{
    llm_rows_job_t  job = { .cpu = (llm_cpu_t *) exec, .x = x, .y = y,
                            .first = first, .width = width,
                            .stride = stride };

    job.n_rows = llm_cpu_rows(job.cpu, rows);
    llm_cpu_run_rows(&job, llm_cpu_pieces_item, y->cols);
}


static void
llm_cpu_gate_item(void *arg, uint32_t item, uint32_t thread)
{
    float           *p, f;
    uint32_t         row, i;
    llm_rows_job_t  *job = arg;

    (void) thread;

    for (row = item * LLM_ROWS_STEP; row < llm_cpu_rows_end(job, item);
         row++)
    {
        p = job->y->data + (size_t) row * job->y->cols;
        f = (float) (1 / (1 + exp(-(double) job->x->data[row])));

        for (i = 0; i < job->y->cols; i++) {
            p[i] *= f;
        }
    }
}


void
llm_cpu_gate_rows(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *gate,
    llm_act_t *x)
{
    llm_rows_job_t  job = { .cpu = (llm_cpu_t *) exec, .x = gate, .y = x };

    job.n_rows = llm_cpu_rows(job.cpu, rows);
    llm_cpu_run_rows(&job, llm_cpu_gate_item, x->cols);
}


void
llm_cpu_gather(llm_exec_t *exec, const llm_act_t *x, llm_act_t *y)
{
    uint32_t            i;
    const llm_batch_t  *b = ((llm_cpu_t *) exec)->batch;

    for (i = 0; i < b->n_out; i++) {
        memcpy(y->data + (size_t) i * y->cols,
               x->data + (size_t) b->out_rows[i] * x->cols,
               x->cols * sizeof(float));
    }
}
