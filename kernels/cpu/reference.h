/*
 * The objects of the reference device, and what its files share.  Who owns
 * what is said in kernels.h.
 */

#ifndef LLM_CPU_REFERENCE_H
#define LLM_CPU_REFERENCE_H

#include "kernels/kernels.h"

#include <math.h>


typedef struct {
    llm_dev_t           dev;            /* first: the base of every device */
    llm_dev_opts_t      opts;
    const llm_batch_t  *batch;          /* of the step, begin() to end() */
    float              *row;            /* one de-quantised row of a weight */
    uint32_t            row_cap;
    double             *scores;         /* one for each cached position */
    double             *sum;            /* one head's result */
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
    size_t              stride;         /* bytes from expert to expert, or
                                           head to head */
    uint32_t            n_matrices;     /* experts, heads, or 1 */
    float              *scales;         /* [n_matrices] factors on products,
                                           or NULL: 1 */
    const char         *data;           /* the caller's */
};

struct llm_vec_s {
    uint32_t            n;
    float               data[];
};

/*
 * k[at[layer]][page][slot][kv head][head_dim_k], v likewise; layers that are
 * smaller than the largest leave the rest of their pages unused
 */
struct llm_kv_s {
    llm_kv_opts_t       opts;
    uint32_t           *at;             /* [n_layers] how many before it keep
                                           something */
    size_t              k_page;         /* floats of one page of one layer */
    size_t              v_page;
    float              *k;
    float              *v;
};

/* the choices of the rows of one layer, and the numbers of one row */
struct llm_choice_s {
    uint32_t            n_used;         /* of the layer */
    uint32_t           *expert;         /* [rows][n_used] */
    float              *weight;
    float              *x;              /* [n_in] what an expert gets */
    float              *hidden;         /* [n_ff] */
    double             *sum;            /* [n_in] what a row becomes */
};


static inline uint32_t
llm_ref_rows(const llm_refdev_t *d, llm_rows_t rows)
{
    return rows == LLM_ROWS_OUT ? d->batch->n_out : d->batch->n_tokens;
}


static inline double
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


/* x[n_in] times a de-quantised row of matrix i */

static inline double
llm_ref_product(const llm_weight_t *w, uint32_t i, const float *x,
    const float *row)
{
    return llm_ref_dot(x, row, w->n_in) * (w->scales ? w->scales[i] : 1);
}


/* y = x / rms(x) * w, one row; x and y may be the same */

static inline void
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


/* the operations: reference.c, reference_rows.c, reference_attention.c,
   reference_experts.c, reference_state.c */
#define LLM_OP(group, needs, result, name, parameters)                       \
    result llm_ref_##name parameters;
#include "kernels/ops.def"

/* reference_rows.c: act(gate) * up; see llm_glu_t */
double llm_ref_glu_one(const llm_act_fn_t *fn, double gate, double up);

#endif /* LLM_CPU_REFERENCE_H */
