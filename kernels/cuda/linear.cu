/*
 * The linear operation and its weights: upload through pinned memory, layouts
 * of weights, and the choice of the kernel for a product.
 *
 *                few rows          many rows
 *   16-bit       cublasLt where it gives the same bits and is faster, else
 *                linear_few.cu     linear_16.cu
 *   packed       linear_q.cu       linear_16.cu, from fewer rows on
 *
 * Invariant: both columns of the table give the same bits; see linear_16.cu.
 *
 * A weight owns its device memory.  Rows of 16-bit matrices are padded with
 * zeros to a multiple of 32 columns.
 */

#include "kernels/cuda/blas.h"
#include "kernels/cuda/linear.h"

#include <stdio.h>

static int llm_cuda_linear_room(llm_cuda_t *d, uint32_t n_in, llm_err_t *err);


/* ---- weights ---- */

void
llm_cuda_upload(llm_cuda_t *d, uint8_t *dst, const uint8_t *src, size_t size)
{
    int     i;
    size_t  n;

    /* one half of the pinned memory is filled while the other one is being
       copied */

    for (i = 0; size > 0 && !d->failed; i ^= 1) {
        n = llm_min(size, (size_t) LLM_CUDA_STAGE);

        (void) llm_cuda_check(d, cudaEventSynchronize(d->staged[i]),
                              "upload of a weight");
        memcpy(d->stage + (size_t) i * LLM_CUDA_STAGE, src, n);
        (void) llm_cuda_check(d,
            cudaMemcpyAsync(dst, d->stage + (size_t) i * LLM_CUDA_STAGE, n,
                            cudaMemcpyHostToDevice, d->stream),
            "upload of a weight");
        (void) llm_cuda_check(d, cudaEventRecord(d->staged[i], d->stream),
                              "upload of a weight");

        dst += n;
        src += n;
        size -= n;
    }
}


/* rows of F32, F16, BF16 to padded rows of the device's 16-bit type */

__global__ void
llm_k_to_16(uint32_t type, const uint8_t *raw, size_t row_size,
    uint32_t n_in, uint32_t stride, uint16_t *w, int bf16)
{
    size_t    row;
    uint32_t  i;

    row = blockIdx.x;

    for (i = threadIdx.x; i < stride; i += blockDim.x) {
        w[row * stride + i] = i < n_in
            ? llm_store16(llm_deq(type, raw + row * row_size, i), bf16)
            : (uint16_t) 0;
    }
}


static uint32_t
llm_cuda_stride(uint32_t n)
{
    return (uint32_t) llm_align((size_t) n, LLM_TILE_COLS);
}


/* allocates w->w16 and enqueues the conversion of raw rows on the device */

static int
llm_cuda_make_16(llm_cuda_t *d, llm_weight_t *w, const uint8_t *raw,
    llm_err_t *err)
{
    size_t    size;
    uint32_t  stride;

    stride = llm_cuda_stride(w->n_in);
    size = (size_t) w->n_out * stride * sizeof(uint16_t);

    if (llm_cuda_alloc((void **) &w->w16, size, "a weight", err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_launch(llm_k_to_16, w->n_out, 256, 0, d->stream, w->type, raw,
               w->row_size, w->n_in, stride, w->w16, d->bf16);

    return LLM_OK;
}


static int
llm_cuda_make_packed(llm_cuda_t *d, llm_weight_t *w, const uint8_t *raw,
    llm_err_t *err)
{
    llm_packed_t  p;

    if (llm_cuda_alloc((void **) &w->packed,
                       llm_packed_size(w->cls, w->n_out, w->n_in),
                       "a weight", err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_packed_view(&p, w->cls, w->type, w->n_out, w->n_in, w->packed);

    if (w->cls == LLM_CLASS_FP8) {
        llm_pack_fp8(d, &p, w->type, w->n_in, raw, w->row_size);

    } else {
        llm_pack(d, &p, w->type, w->n_in, raw, w->row_size);
    }

    return LLM_OK;
}


/* fills rows of activations with noise, so that sums in another order have
   other bits */

__global__ void
llm_k_noise(uint16_t *x, size_t n, int bf16)
{
    size_t    i;
    uint32_t  h;

    i = (size_t) blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        h = (uint32_t) i * 2654435761u;
        h = (h ^ h >> 15) * 2246822519u;
        x[i] = llm_store16((float) (int32_t) (h ^ h >> 13) * 0x1p-30f, bf16);
    }
}


/* milliseconds of our kernel: the best of three runs after a first one;
   negative: not known */

static float
llm_cuda_time_ours(llm_cuda_t *d, const llm_blas_args_t *a,
    const llm_weight_t *w, const llm_out_t *o)
{
    int          i;
    float        ms, best;
    cudaEvent_t  e[2];

    best = -1;

    if (cudaEventCreate(&e[0]) != cudaSuccess) {
        return best;
    }

    if (cudaEventCreate(&e[1]) != cudaSuccess) {
        (void) cudaEventDestroy(e[0]);
        return best;
    }

    for (i = 0; i < 4; i++) {
        (void) cudaEventRecord(e[0], d->stream);
        llm_linear_16(d, a->rows, d->padded, w->w16, a->n_in, o);
        (void) cudaEventRecord(e[1], d->stream);

        if (cudaEventSynchronize(e[1]) == cudaSuccess
            && cudaEventElapsedTime(&ms, e[0], e[1]) == cudaSuccess
            && i && (best < 0 || ms < best))
        {
            best = ms;
        }
    }

    (void) cudaEventDestroy(e[0]);
    (void) cudaEventDestroy(e[1]);

    return best;
}


/*
 * Appends a line that compares cublasLt with our kernel to the file that the
 * environment variable LLM_BLAS_TABLE names (t/gpu/run.sh speed).
 */

static void
llm_cuda_log_plan(const llm_blas_args_t *a, float ms, float ours)
{
    FILE        *f;
    const char  *name;

    name = getenv("LLM_BLAS_TABLE");

    if (name == NULL || (f = fopen(name, "a")) == NULL) {
        return;
    }

    fprintf(f, "{\"n_out\": %u, \"n_in\": %u, \"rows\": %u, "
            "\"same_bits\": %s, \"ms\": %.4f, \"ours_ms\": %.4f}\n",
            a->n_out, a->n_in, a->rows, ms < 0 ? "false" : "true",
            (double) ms, (double) ours);
    (void) fclose(f);
}


/*
 * Lets cublasLt look for plans for this shape with up to `most` rows, each
 * compared with our kernel on the same rows.  Without memory for that there are
 * no plans, and our kernel computes all products.
 */

static void
llm_cuda_prepare(llm_cuda_t *d, const llm_weight_t *w, uint32_t most)
{
    size_t            size, n;
    float            *y, ms, ours;
    uint32_t          least;
    llm_out_t         o;
    llm_blas_args_t   a;

    memset(&a, 0, sizeof(a));
    memset(&o, 0, sizeof(o));
    a.n_out = w->n_out;
    a.n_in = llm_cuda_stride(w->n_in);
    a.x = d->padded;
    a.w = w->w16;
    a.ldx = a.n_in;
    a.ldw = a.n_in;
    a.ldy = a.n_out;
    a.rows = most;

    if (llm_blas_is_prepared(d->blas, &a)) {
        return;
    }

    n = (size_t) a.rows * a.n_in;
    size = (size_t) a.rows * a.n_out;

    if (cudaMalloc(&y, 2 * size * sizeof(float)) != cudaSuccess) {
        (void) cudaGetLastError();
        return;
    }

    llm_launch(llm_k_noise, (unsigned) ((n + 255) / 256), 256, 0, d->stream,
               d->padded, n, d->bf16);

    o.count = (const uint32_t *) d->step_dev;
    o.n_out = a.n_out;
    o.n_rows = a.n_out;
    o.bf16 = d->bf16;
    a.y = y + size;

    for (least = 1; least <= most; least = a.rows + 1) {
        a.rows = llm_min(llm_blas_bucket(least), most);
        llm_cuda_put(d, d->step_dev, &a.rows, sizeof(a.rows), "a count");
        o.y = a.y;
        ours = llm_cuda_time_ours(d, &a, w, &o);
        o.y = y;
        llm_linear_16(d, a.rows, d->padded, w->w16, a.n_in, &o);

        ms = llm_blas_prepare(d->blas, &a, least, y, ours);
        llm_cuda_log_plan(&a, ms, ours);
    }

    (void) cudaFree(y);
}


static int
llm_cuda_make(llm_cuda_t *d, llm_weight_t *w, int usage, llm_err_t *err)
{
    w->cls = llm_packed_class(w->type);

    if (w->cls == 0 && d->opts.weights_fp8 && !(usage & LLM_WEIGHT_HEAD)) {
        w->cls = LLM_CLASS_FP8;
    }

    if (usage & LLM_WEIGHT_LINEAR) {
        if (w->cls) {
            if (llm_cuda_make_packed(d, w, w->raw, err) != LLM_OK) {
                return LLM_ERROR;
            }

        } else if (llm_cuda_make_16(d, w, w->raw, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    if (w->w16) {
        llm_cuda_prepare(d, w, usage & LLM_WEIGHT_HEAD ? d->opts.max_out
                                                       : d->opts.max_tokens);
    }

    (void) llm_cuda_check(d, cudaGetLastError(), "packing of a weight");
    (void) llm_cuda_check(d, cudaStreamSynchronize(d->stream),
                          "upload of a weight");

    if (llm_cuda_report(d, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (!(usage & LLM_WEIGHT_EMBED)) {
        llm_cuda_free(d, w->raw);
        w->raw = NULL;
    }

    return LLM_OK;
}


llm_weight_t *
llm_cuda_weight_create(llm_exec_t *exec, uint32_t type, uint32_t n_out,
    uint32_t n_in, const void *src, int usage, llm_err_t *err)
{
    size_t         size;
    llm_cuda_t    *d = (llm_cuda_t *) exec;
    llm_weight_t  *w;

    w = (llm_weight_t *) calloc(1, sizeof(llm_weight_t));
    if (w == NULL) {
        (void) llm_fail(err, "no memory for a weight");
        return NULL;
    }

    w->type = type;
    w->n_out = n_out;
    w->n_in = n_in;
    w->row_size = llm_type_row_size(type, n_in);
    size = w->row_size * n_out;

    if (llm_cuda_alloc((void **) &w->raw, size, "a weight", err) != LLM_OK
        || llm_cuda_linear_room(d, n_in, err) != LLM_OK)
    {
        llm_cuda_weight_free(exec, w);
        return NULL;
    }

    llm_cuda_upload(d, w->raw, (const uint8_t *) src, size);

    if (llm_cuda_make(d, w, usage, err) != LLM_OK) {
        llm_cuda_weight_free(exec, w);
        return NULL;
    }

    return w;
}


void
llm_cuda_weight_free(llm_exec_t *exec, llm_weight_t *w)
{
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    if (w) {
        llm_cuda_free(d, w->raw);
        llm_cuda_free(d, w->w16);
        llm_cuda_free(d, w->packed);
        llm_cuda_free(d, w->factors);
        free(w);
    }
}


int
llm_cuda_weight_scale(llm_exec_t *exec, llm_weight_t *w, const float *scales,
    llm_err_t *err)
{
    size_t       size;
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    size = llm_max(w->n_experts, 1u) * sizeof(float);

    if (llm_cuda_alloc((void **) &w->factors, size, "a weight's factors", err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_cuda_put(d, w->factors, scales, size, "upload of a weight's factors");

    return llm_cuda_report(d, err);
}


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
   folded for linear_q.cu */

static int
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


/* one of a call's products; the list's x is folded if it has to be, x16 not */

static void
llm_cuda_product(llm_cuda_t *d, llm_few_list_t *f, const uint16_t *x16,
    uint32_t stride, const llm_weight_t *w, llm_out_t *o)
{
    llm_packed_t  p;

    if (w->packed) {
        llm_packed_view(&p, w->cls, w->type, w->n_out, w->n_in, w->packed);
        o->scales = p.scales;

        if (f->rows <= LLM_FEW_ROWS_Q) {
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
    int              packed;
    uint32_t         i, rows, stride;
    llm_out_t        o;
    llm_cuda_t      *d = (llm_cuda_t *) exec;
    const uint16_t  *x16;
    llm_few_list_t   few, few_q;

    rows = llm_cuda_rows(d, which);

    if (rows == 0) {
        return;
    }

    x16 = (const uint16_t *) x->data;
    stride = llm_cuda_stride(x->cols);

    for (packed = 0, i = 0; i < n; i++) {
        packed |= out[i].w->packed != NULL;
    }

    few.n = few_q.n = 0;
    few.rows = few_q.rows = rows;

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

    few.n_in = stride;
    few.x = x16;

    for (i = 0; i < n; i++) {
        o = llm_cuda_out(d, which, &out[i]);
        llm_cuda_product(d, out[i].w->packed ? &few_q : &few, x16, stride,
                         out[i].w, &o);
    }

    llm_few_flush(d, &few);
    llm_few_flush(d, &few_q);
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
