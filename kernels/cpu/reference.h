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


/* reference_rows.c */

/* act(gate) * up; see llm_glu_t */
double llm_ref_glu_one(const llm_act_fn_t *fn, double gate, double up);

void llm_ref_embed(llm_dev_t *dev, const llm_weight_t *w, llm_act_t *x);
void llm_ref_norm(llm_dev_t *dev, llm_rows_t rows, const llm_act_t *x,
    const llm_norm_t *norm, llm_act_t *y);
void llm_ref_glu(llm_dev_t *dev, llm_rows_t rows, llm_glu_t act,
    const llm_act_t *gate, const llm_act_t *up, llm_act_t *y);
void llm_ref_act(llm_dev_t *dev, llm_rows_t rows, const llm_act_fn_t *fn,
    const llm_act_t *x, llm_act_t *y);
void llm_ref_scale(llm_dev_t *dev, llm_rows_t rows, float f,
    const llm_act_t *x, int add, llm_act_t *y);
void llm_ref_softcap(llm_dev_t *dev, llm_rows_t rows, float cap, llm_act_t *x);
void llm_ref_add_vec(llm_dev_t *dev, llm_rows_t rows, const llm_vec_t *v,
    llm_act_t *x);
void llm_ref_embed_pos(llm_dev_t *dev, const llm_weight_t *w, llm_act_t *x);
void llm_ref_columns(llm_dev_t *dev, llm_rows_t rows, const llm_act_t *x,
    uint32_t first, llm_act_t *y);
void llm_ref_pieces(llm_dev_t *dev, llm_rows_t rows, const llm_act_t *x,
    uint32_t first, uint32_t width, uint32_t stride, llm_act_t *y);
void llm_ref_gather(llm_dev_t *dev, const llm_act_t *x, llm_act_t *y);

/* reference_attention.c */
void llm_ref_rope_kv(llm_dev_t *dev, const llm_heads_t *h,
    const llm_rope_t *rope, llm_act_t *q, llm_act_t *k, const llm_act_t *v,
    llm_kv_t *kv);
void llm_ref_attention(llm_dev_t *dev, const llm_heads_t *h,
    const llm_act_t *q, const llm_kv_t *kv, llm_act_t *out);
void llm_ref_linear_heads(llm_dev_t *dev, llm_rows_t rows,
    const llm_weight_t *w, const llm_act_t *x, llm_act_t *y);

/* reference_experts.c */
llm_choice_t *llm_ref_choice_create(llm_dev_t *dev,
    const llm_choice_opts_t *opts, llm_err_t *err);
void llm_ref_choice_free(llm_dev_t *dev, llm_choice_t *c);
void llm_ref_route(llm_dev_t *dev, llm_rows_t rows, const llm_route_t *r,
    const llm_act_t *logits, llm_choice_t *c);
void llm_ref_experts(llm_dev_t *dev, llm_rows_t rows, const llm_experts_t *e,
    const llm_act_t *x, llm_choice_t *c, llm_act_t *y);
void llm_ref_gate_rows(llm_dev_t *dev, llm_rows_t rows,
    const llm_act_t *gate, llm_act_t *x);

/* reference_state.c */
llm_state_t *llm_ref_state_create(llm_dev_t *dev,
    const llm_state_opts_t *opts, llm_err_t *err);
void llm_ref_conv(llm_dev_t *dev, const llm_conv_t *c, const llm_act_t *x,
    llm_state_t *st, llm_act_t *y);
void llm_ref_delta(llm_dev_t *dev, const llm_delta_t *d, const llm_act_t *x,
    const llm_act_t *alpha, const llm_act_t *beta, llm_state_t *st,
    llm_act_t *y);
void llm_ref_scan(llm_dev_t *dev, const llm_scan_t *s, const llm_act_t *x,
    const llm_act_t *dt, llm_state_t *st, llm_act_t *y);

#endif /* LLM_CPU_REFERENCE_H */
