/*
 * The reference's mixtures of experts, row by row and expert by expert; see
 * kernels.h for what they compute, and reference.c.
 */

#include "kernels/cpu/reference.h"
#include "kernels/cpu/route.h"


void
llm_ref_choice_free(llm_exec_t *exec, llm_choice_t *c)
{
    (void) exec;

    if (c) {
        free(c->expert);
        free(c->weight);
        free(c->x);
        free(c->hidden);
        free(c->sum);
        free(c);
    }
}


llm_choice_t *
llm_ref_choice_create(llm_exec_t *exec, const llm_choice_opts_t *opts,
    llm_err_t *err)
{
    size_t         n;
    llm_choice_t  *c;

    if (llm_choice_check(opts, err) != LLM_OK) {
        return NULL;
    }

    n = (size_t) opts->max_rows * opts->n_used;
    c = calloc(1, sizeof(llm_choice_t));

    if (c) {
        c->expert = calloc(n, sizeof(uint32_t));
        c->weight = calloc(n, sizeof(float));
        c->x = calloc(opts->n_in, sizeof(float));
        c->hidden = calloc(opts->n_ff, sizeof(float));
        c->sum = calloc(opts->n_in, sizeof(double));

        if (c->expert && c->weight && c->x && c->hidden && c->sum) {
            return c;
        }
    }

    llm_ref_choice_free(exec, c);
    llm_fail(err, "reference device: no memory for the choice of experts");

    return NULL;
}


void
llm_ref_route(llm_exec_t *exec, llm_rows_t rows, const llm_route_t *r,
    const llm_act_t *logits, llm_choice_t *c)
{
    uint32_t         row;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    c->n_used = r->n_used;

    for (row = 0; row < llm_ref_rows(d, rows); row++) {
        llm_route_row(r, r->bias ? r->bias->data : NULL,
                      r->factor ? r->factor->data : NULL,
                      logits->data + (size_t) row * logits->cols,
                      c->expert + (size_t) row * r->n_used,
                      c->weight + (size_t) row * r->n_used);
    }
}


/* row o of expert e's matrix times x, plus the bias */

static double
llm_ref_expert_dot(llm_ref_exec_t *d, const llm_weight_t *w,
    const llm_vec_t *bias, uint32_t e, uint32_t o, const float *x)
{
    llm_dequantize(w->type, w->data + e * w->stride + o * w->row_size,
                   d->row, w->n_in);

    return llm_ref_product(w, e, x, d->row)
           + (bias ? bias->data[(size_t) e * w->n_out + o] : 0);
}


/* adds weight times the expert's result for x to sum */

static void
llm_ref_expert(llm_ref_exec_t *d, const llm_experts_t *e, uint32_t expert,
    const float *x, float weight, float *hidden, double *sum)
{
    double        g, u;
    uint32_t      o;
    llm_act_fn_t  fn = { .kind = e->act };

    for (o = 0; o < e->up->n_out; o++) {
        u = llm_ref_expert_dot(d, e->up, e->up_bias, expert, o, x);
        g = u;

        if (e->gate) {
            g = llm_ref_expert_dot(d, e->gate, e->gate_bias, expert, o, x);

        } else {
            u = 1;
        }

        hidden[o] = (float) llm_ref_glu_one(&fn, g, u);
    }

    for (o = 0; o < e->down->n_out; o++) {
        sum[o] += weight * llm_ref_expert_dot(d, e->down, e->down_bias,
                                              expert, o, hidden);
    }
}


void
llm_ref_experts(llm_exec_t *exec, llm_rows_t rows, const llm_experts_t *e,
    const llm_act_t *x, llm_choice_t *c, llm_act_t *y)
{
    float           *out, weight;
    size_t           at;
    uint32_t         row, i, k;
    const float     *in;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    for (row = 0; row < llm_ref_rows(d, rows); row++) {

        in = x->data + (size_t) row * x->cols;
        out = y->data + (size_t) row * y->cols;

        for (i = 0; i < y->cols; i++) {
            c->sum[i] = e->add ? out[i] : 0;
        }

        for (k = 0; k < c->n_used; k++) {

            at = (size_t) row * c->n_used + k;
            weight = c->weight[at];

            for (i = 0; i < x->cols; i++) {
                c->x[i] = e->weigh_input ? in[i] * weight : in[i];
            }

            llm_ref_expert(d, e, c->expert[at], c->x,
                           e->weigh_input ? 1 : weight, c->hidden, c->sum);
        }

        for (i = 0; i < y->cols; i++) {
            out[i] = (float) c->sum[i];
        }
    }
}


void
llm_ref_gate_rows(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *gate,
    llm_act_t *x)
{
    float           *p;
    double           f;
    uint32_t         row, i;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    for (row = 0; row < llm_ref_rows(d, rows); row++) {
        p = x->data + (size_t) row * x->cols;
        f = 1 / (1 + exp(-(double) gate->data[row]));

        for (i = 0; i < x->cols; i++) {
            p[i] = (float) (p[i] * f);
        }
    }
}
