/*
 * The objects of the reference backend, and what its files share.  kernels.h
 * says who owns an object's memory.
 */

#ifndef LLM_CPU_REFERENCE_H
#define LLM_CPU_REFERENCE_H

#include "kernels/kernels.h"

#include <math.h>


typedef struct {
    llm_exec_t          exec;           /* first: the base of every backend's
                                           struct */
    llm_exec_opts_t     opts;
    const llm_batch_t  *batch;          /* the step, from begin() to end() */
    float              *row;            /* one de-quantised row of a weight */
    uint32_t            row_cap;        /* floats */
    double             *scores;         /* one for each cached position */
    double             *sum;            /* result of one head */
    uint32_t            sum_cap;        /* elements of sum */
} llm_ref_exec_t;

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
    uint32_t            n_matrices;     /* number of experts or heads, or 1 */
    float              *scales;         /* [n_matrices] factors on products;
                                           NULL: 1 */
    const char         *data;           /* the caller's rows */
};

struct llm_vec_s {
    uint32_t            n;
    float               data[];
};

/*
 * k[at[layer]][page][slot][kv head][head_dim_k], and v in the same way with
 * head_dim_v; layers smaller than the largest leave a part of their pages
 * unused
 */
struct llm_kv_s {
    llm_kv_opts_t       opts;
    uint32_t           *at;             /* [n_layers] number of earlier layers
                                           that store anything */
    size_t              k_page;         /* floats of one page of one layer */
    size_t              v_page;
    float              *k;
    float              *v;
};

/* the experts chosen for the rows in one layer, and buffers for one row */
struct llm_choice_s {
    uint32_t            n_used;         /* experts per row in this layer */
    uint32_t           *expert;         /* [rows][n_used] */
    float              *weight;         /* [rows][n_used] */
    float              *x;              /* [n_in] input of an expert */
    float              *hidden;         /* [n_ff] */
    double             *sum;            /* [n_in] result of the row */
};


static inline uint32_t
llm_ref_rows(const llm_ref_exec_t *d, llm_rows_t rows)
{
    return rows == LLM_ROWS_OUT ? d->batch->n_out : d->batch->n_tokens;
}


typedef float   llm_ref_4f_t __attribute__((vector_size(16)));
typedef double  llm_ref_4d_t __attribute__((vector_size(32)));


static inline double
llm_ref_dot(const float *a, const float *b, uint32_t n)
{
    uint32_t      i, k;
    llm_ref_4f_t  x, y;
    llm_ref_4d_t  sum[4] = { 0 };       /* each waits for the one before it:
                                           four overlap */

    for (i = 0; i + 16 <= n; i += 16) {
        for (k = 0; k < 4; k++) {
            memcpy(&x, a + i + 4 * k, sizeof(x));
            memcpy(&y, b + i + 4 * k, sizeof(y));
            sum[k] += __builtin_convertvector(x, llm_ref_4d_t)
                      * __builtin_convertvector(y, llm_ref_4d_t);
        }
    }

    for ( /* void */ ; i < n; i++) {
        sum[0][0] += (double) a[i] * b[i];
    }

    sum[0] += sum[1] + (sum[2] + sum[3]);

    return (sum[0][0] + sum[0][1]) + (sum[0][2] + sum[0][3]);
}


/* dot product of x[n_in] and a de-quantised row of matrix i, times the matrix's
   factor */

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
