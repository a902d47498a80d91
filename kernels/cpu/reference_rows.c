/*
 * The reference's operations on single rows: embeddings, norms, activations,
 * scales; see reference.c.
 */

#include "kernels/cpu/reference.h"


void
llm_ref_embed(llm_exec_t *exec, const llm_weight_t *w, llm_act_t *x)
{
    uint32_t         r;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    for (r = 0; r < d->batch->n_tokens; r++) {
        llm_dequantize(w->type,
                       w->data + (size_t) d->batch->tokens[r] * w->row_size,
                       x->data + (size_t) r * x->cols, w->n_in);
    }
}


void
llm_ref_input(llm_exec_t *exec, llm_rows_t rows, uint32_t first, int add,
    llm_act_t *y)
{
    float              *to;
    uint32_t            i, r, row;
    const float        *from;
    llm_ref_exec_t     *d = (llm_ref_exec_t *) exec;
    const llm_batch_t  *b;

    b = d->batch;

    for (r = 0; b->given && r < llm_ref_rows(d, rows); r++) {
        row = rows == LLM_ROWS_OUT ? b->out_rows[r] : r;

        if (b->given[row] == LLM_NOT_GIVEN) {
            continue;
        }

        from = b->rows + (size_t) b->given[row] * b->given_cols + first;
        to = y->data + (size_t) r * y->cols;

        for (i = 0; i < y->cols; i++) {
            to[i] = add ? to[i] + from[i] : from[i];
        }
    }
}


/* normalises one group of a row; first: column of x and y in the row */

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


void
llm_ref_norm(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *x,
    const llm_norm_t *norm, llm_act_t *y)
{
    uint32_t         i, n, r, group;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

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

    case LLM_GLU_CLAMPED:
        x = x > 7 ? 7 : x;

        return x / (1 + exp(-1.702 * x));

    case LLM_GLU_SIGMOID:
        return 1 / (1 + exp(-x));

    case LLM_GLU_LINEAR:
        return x;

    case LLM_GLU_BOUND:
        return x > fn->bound ? fn->bound : x < fn->least ? fn->least : x;

    case LLM_GLU_QUICK:
        return x / (1 + exp(-1.702 * x));
    }

    return 0;
}


double
llm_ref_glu_one(const llm_act_fn_t *fn, double gate, double up)
{
    if (fn->kind == LLM_GLU_CLAMPED) {
        up = (up > 7 ? 7 : up < -7 ? -7 : up) + 1;
    }

    return llm_ref_activate(fn, gate) * up;
}


void
llm_ref_glu(llm_exec_t *exec, llm_rows_t rows, llm_glu_t act,
    const llm_act_t *gate, const llm_act_t *up, llm_act_t *y)
{
    size_t           i, n;
    llm_act_fn_t     fn = { .kind = act };
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    n = (size_t) llm_ref_rows(d, rows) * y->cols;

    for (i = 0; i < n; i++) {
        y->data[i] = (float) llm_ref_glu_one(&fn, gate->data[i],
                                             up->data[i]);
    }
}


void
llm_ref_act(llm_exec_t *exec, llm_rows_t rows, const llm_act_fn_t *fn,
    const llm_act_t *x, llm_act_t *y)
{
    size_t           i, n;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    n = (size_t) llm_ref_rows(d, rows) * y->cols;

    for (i = 0; i < n; i++) {
        y->data[i] = (float) llm_ref_activate(fn, x->data[i]);
    }
}


void
llm_ref_scale(llm_exec_t *exec, llm_rows_t rows, float f, const llm_act_t *x,
    int add, llm_act_t *y)
{
    size_t           i, n;
    double           v;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    n = (size_t) llm_ref_rows(d, rows) * y->cols;

    for (i = 0; i < n; i++) {
        v = (double) f * x->data[i];
        y->data[i] = (float) (add ? y->data[i] + v : v);
    }
}


void
llm_ref_softcap(llm_exec_t *exec, llm_rows_t rows, float cap, llm_act_t *x)
{
    size_t           i, n;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    n = (size_t) llm_ref_rows(d, rows) * x->cols;

    for (i = 0; i < n; i++) {
        x->data[i] = (float) (cap * tanh((double) x->data[i] / cap));
    }
}


void
llm_ref_add_vec(llm_exec_t *exec, llm_rows_t rows, const llm_vec_t *v,
    llm_act_t *x)
{
    uint32_t         i, r, n;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    n = llm_ref_rows(d, rows);

    for (r = 0; r < n; r++) {
        for (i = 0; i < x->cols; i++) {
            x->data[(size_t) r * x->cols + i] += v->data[i];
        }
    }
}


void
llm_ref_embed_pos(llm_exec_t *exec, const llm_weight_t *w, llm_act_t *x)
{
    float           *y;
    uint32_t         i, r;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

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


void
llm_ref_columns(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *x,
    uint32_t first, llm_act_t *y)
{
    uint32_t         r;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    for (r = 0; r < llm_ref_rows(d, rows); r++) {
        memcpy(y->data + (size_t) r * y->cols,
               x->data + (size_t) r * x->cols + first,
               y->cols * sizeof(float));
    }
}


void
llm_ref_pieces(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *x,
    uint32_t first, uint32_t width, uint32_t stride, llm_act_t *y)
{
    uint32_t         r, i;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    for (r = 0; r < llm_ref_rows(d, rows); r++) {
        for (i = 0; i < y->cols; i++) {
            y->data[(size_t) r * y->cols + i]
                = x->data[(size_t) r * x->cols + first + i / width * stride
                          + i % width];
        }
    }
}


void
llm_ref_gather(llm_exec_t *exec, const llm_act_t *x, llm_act_t *y)
{
    uint32_t         i;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    for (i = 0; i < d->batch->n_out; i++) {
        memcpy(y->data + (size_t) i * y->cols,
               x->data + (size_t) d->batch->out_rows[i] * x->cols,
               x->cols * sizeof(float));
    }
}
