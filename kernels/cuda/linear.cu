/*
 * The linear operation: the choice of the kernel for a product.
 *
 *                few rows          many rows
 *   16-bit       cublasLt where it gives the same bits and is faster, else
 *                linear_few.cu     linear_16.cu
 *   packed       linear_q.cu       linear_16.cu, from fewer rows on
 *   fp8          linear_fp8.cu     the same
 *
 * On a Hopper linear_wgmma.cu is in the place of linear_16.cu from more than
 * LLM_FEW_ROWS rows on.
 *
 * Invariant: both columns of the table give the same bits; see linear_16.cu.
 */

#include "kernels/cuda/blas.h"
#include "kernels/cuda/linear.h"


/* ---- activations ---- */

static int
llm_cuda_grow(llm_cuda_t *d, void **p, size_t size, llm_err_t *err)
{
    llm_cuda_free(d, *p);
    *p = NULL;

    if (llm_cuda_alloc(p, size, "activations", err) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_cuda_clear(d, *p, size, "clearing of activations", err);
}


/* allocates scratch for products with n_in columns: rows that are padded, or
   folded for linear_q.cu; and those in fp8 */

int
llm_cuda_linear_room(llm_cuda_t *d, uint32_t n_in, llm_err_t *err)
{
    size_t  n, rows;

    rows = llm_align(llm_max((size_t) d->opts.max_tokens,
                             (size_t) LLM_FEW_ROWS), LLM_FEW_ROWS);
    n = rows * llm_align((size_t) n_in, LLM_QUAD_COLS) * sizeof(uint16_t);

    if (n > d->padded_cap) {
        d->padded_cap = 0;

        if (llm_cuda_grow(d, (void **) &d->padded, n, err) != LLM_OK) {
            return LLM_ERROR;
        }

        d->padded_cap = n;
    }

    n = d->products_fp8 ? llm_fp8_size((uint32_t) rows, n_in) : 0;

    if (n > d->x8_cap) {
        d->x8_cap = 0;

        if (llm_cuda_grow(d, (void **) &d->x8, n, err) != LLM_OK) {
            return LLM_ERROR;
        }

        d->x8_cap = n;
    }

    return LLM_OK;
}


/* folds rows of x for linear_q.cu: see llm_fold() */

__global__ void
llm_k_fold(const uint32_t *count, const uint16_t *x, uint32_t n_in,
    uint32_t stride, uint16_t *y)
{
    uint32_t  i, c;

    if (blockIdx.x >= *count) {
        return;
    }

    for (i = threadIdx.x; i < stride; i += blockDim.x) {
        c = llm_fold(i);
        y[(size_t) blockIdx.x * stride + i] = c < n_in
            ? x[(size_t) blockIdx.x * n_in + c] : (uint16_t) 0;
    }
}


__global__ void
llm_k_pad(const uint32_t *count, const uint16_t *x, uint32_t n_in,
    uint32_t stride, uint16_t *y)
{
    uint32_t  i;

    if (blockIdx.x >= *count) {
        return;
    }

    for (i = threadIdx.x; i < stride; i += blockDim.x) {
        y[(size_t) blockIdx.x * stride + i] = i < n_in
            ? x[(size_t) blockIdx.x * n_in + i] : (uint16_t) 0;
    }
}


/* ---- products ---- */

__global__ void
llm_k_bias(const uint32_t *count, const float *bias, uint32_t n_out,
    float *y)
{
    uint32_t  i;

    if (blockIdx.x >= *count) {
        return;
    }

    for (i = threadIdx.x; i < n_out; i += blockDim.x) {
        y[(size_t) blockIdx.x * n_out + i] += bias[i];
    }
}


/* the arguments of a product for cublasLt; returns nonzero if it is none for
   cublasLt: the plans' bits were compared for float results without a factor */

static int
llm_cuda_blas_args(llm_blas_args_t *a, uint32_t rows, const uint16_t *x,
    const llm_weight_t *w, const llm_out_t *o)
{
    a->rows = rows;
    a->n_out = w->n_out;
    a->n_in = llm_cuda_stride(w->n_in);
    a->x = x;
    a->w = w->w16;
    a->y = (float *) o->y;
    a->ldx = a->n_in;
    a->ldw = a->n_in;
    a->ldy = w->n_out;
    a->add = o->add;

    return o->y_is16 || o->factor;
}


/* returns nonzero if cublasLt does not compute the product */

static int
llm_cuda_blas(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_weight_t *w, const llm_out_t *o)
{
    llm_blas_args_t  a;

    if (llm_cuda_blas_args(&a, rows, x, w, o)
        || llm_blas_linear(d->blas, &a))
    {
        return 1;
    }

    if (o->bias) {
        llm_launch(llm_k_bias, rows, 256, 0, d->stream, o->count, o->bias,
                   o->n_out, (float *) o->y);
    }

    return 0;
}


/* the weights of a call that wait for a launch for few rows: 16-bit ones, or
   packed ones of a class */
typedef struct {
    const uint16_t   *x;
    uint32_t          n_in;
    uint32_t          rows;
    uint32_t          n;
    const uint16_t   *w[LLM_FEW_WEIGHTS];
    llm_packed_t      p[LLM_FEW_WEIGHTS];
    llm_out_t         o[LLM_FEW_WEIGHTS];
} llm_few_list_t;


static void
llm_few_flush(llm_cuda_t *d, llm_few_list_t *f)
{
    if (f->n == 0) {
        return;
    }

    if (f->w[0]) {
        llm_linear_few(d, f->rows, f->x, f->n_in, f->w, f->o, f->n);

    } else if (f->p[0].cls == LLM_CLASS_E4) {
        llm_linear_fp8(d, f->rows, d->x8, f->p, f->o, f->n);

    } else {
        llm_linear_q(d, f->rows, f->x, f->n_in, f->p, f->o, f->n);
    }

    f->n = 0;
}


/* adds a 16-bit weight, or if w is NULL packed p; a list has one kind */

static void
llm_few_add(llm_cuda_t *d, llm_few_list_t *f, const uint16_t *w,
    const llm_packed_t *p, const llm_out_t *o)
{
    if (f->n == LLM_FEW_WEIGHTS
        || (f->n && w == NULL && f->p[0].cls != p->cls))
    {
        llm_few_flush(d, f);
    }

    f->w[f->n] = w;

    if (w == NULL) {
        f->p[f->n] = *p;
    }

    f->o[f->n++] = *o;
}


static llm_out_t
llm_cuda_out(const llm_cuda_t *d, llm_rows_t which, const llm_linear_t *l)
{
    llm_out_t  o;

    o.count = llm_cuda_count(d, which);
    o.scales = NULL;
    o.factor = l->w->factors;
    o.bias = l->bias ? l->bias->data : NULL;
    o.y = l->y->data;
    o.n_out = l->w->n_out;
    o.n_rows = o.n_out;
    o.y_is16 = l->y->is16;
    o.add = l->add;
    o.bf16 = d->bf16;

    return o;
}


/* one of a call's products; the list's x is folded if it has to be, or d->x8,
   x16 not */

static void
llm_cuda_product(llm_cuda_t *d, llm_few_list_t *f, const uint16_t *x16,
    uint32_t stride, const llm_weight_t *w, llm_out_t *o)
{
    llm_packed_t  p;

    if (w->packed) {
        llm_packed_view(&p, w->cls, w->type, w->n_out, w->n_in, w->packed);
        o->scales = p.scales;

        if (f->rows <= LLM_FEW_ROWS_Q || w->cls == LLM_CLASS_E4) {
            llm_few_add(d, f, NULL, &p, o);

        } else {
            llm_linear_packed(d, f->rows, x16, &p, stride, o);
        }

    } else if (llm_cuda_blas(d, f->rows, x16, w, o)) {
        if (f->rows <= LLM_FEW_ROWS) {
            llm_few_add(d, f, w->w16, NULL, o);

        } else {
            llm_linear_16(d, f->rows, x16, w->w16, stride, o);
        }
    }
}


void
llm_cuda_linear(llm_exec_t *exec, llm_rows_t which, const llm_act_t *x,
    const llm_linear_t *out, uint32_t n)
{
    int              packed, fp8;
    uint32_t         i, rows, stride;
    llm_out_t        o;
    llm_cuda_t      *d = (llm_cuda_t *) exec;
    const uint16_t  *x16;
    llm_few_list_t   few, few_q, few_8, *list;

    rows = llm_cuda_rows(d, which);

    if (rows == 0) {
        return;
    }

    x16 = (const uint16_t *) x->data;
    stride = llm_cuda_stride(x->cols);

    for (packed = fp8 = 0, i = 0; i < n; i++) {
        fp8 |= out[i].w->cls == LLM_CLASS_E4;
        packed |= out[i].w->packed && out[i].w->cls != LLM_CLASS_E4;
    }

    few.n = few_q.n = few_8.n = 0;
    few.rows = few_q.rows = few_8.rows = rows;

    if (fp8) {
        llm_fp8_rows(d, which, x16, x->cols, d->x8);
    }

    /* x is never needed both folded and padded: if its columns are not a
       multiple of 32, no weight is quantised, and either all are fp8 or none */

    if (packed && rows <= LLM_FEW_ROWS_Q
        && llm_linear_q_folds(rows, x->cols))
    {
        few_q.n_in = (uint32_t) llm_align((size_t) x->cols, LLM_QUAD_COLS);
        few_q.x = d->padded;
        llm_launch(llm_k_fold, rows, 256, 0, d->stream,
                   llm_cuda_count(d, which), x16, x->cols, few_q.n_in,
                   d->padded);

    } else {
        if (stride != x->cols) {
            llm_launch(llm_k_pad, rows, 256, 0, d->stream,
                       llm_cuda_count(d, which), x16, x->cols, stride,
                       d->padded);
            x16 = d->padded;
        }

        few_q.n_in = stride;
        few_q.x = x16;
    }

    few.n_in = few_8.n_in = stride;
    few.x = few_8.x = x16;

    for (i = 0; i < n; i++) {
        o = llm_cuda_out(d, which, &out[i]);
        list = out[i].w->packed == NULL ? &few
               : out[i].w->cls == LLM_CLASS_E4 ? &few_8 : &few_q;
        llm_cuda_product(d, list, x16, stride, out[i].w, &o);
    }

    llm_few_flush(d, &few);
    llm_few_flush(d, &few_q);
    llm_few_flush(d, &few_8);
}


int
llm_cuda_linear_glu(llm_exec_t *exec, llm_rows_t which, const llm_act_t *x,
    llm_glu_t act, const llm_linear_t *gate, const llm_linear_t *up,
    llm_act_t *y)
{
    uint32_t             i, rows;
    llm_out_t            o[2];
    llm_cuda_t          *d = (llm_cuda_t *) exec;
    const uint16_t      *w[2], *x16;
    llm_blas_args_t      a;

    const llm_linear_t  *l[] = { gate, up };

    rows = llm_cuda_rows(d, which);
    x16 = (const uint16_t *) x->data;

    if (rows == 0 || rows > LLM_FEW_GLU || gate->w->n_out != up->w->n_out
        || x->cols % LLM_TILE_COLS)
    {
        return 0;
    }

    for (i = 0; i < 2; i++) {
        w[i] = l[i]->w->w16;
        o[i] = llm_cuda_out(d, which, l[i]);

        if (w[i] == NULL || o[i].add || o[i].y_is16
            || (llm_cuda_blas_args(&a, rows, x16, l[i]->w, &o[i]) == 0
                && llm_blas_has_plan(d->blas, &a)))
        {
            return 0;
        }
    }

    llm_linear_few_glu(d, rows, x16, x->cols, w, o, act, y);

    return 1;
}
