/*
 * The linear operation and its weights: uploading through pinned memory,
 * the layouts that are kept, and which kernel takes a product.
 *
 *   few rows     linear_16.cu, or int8 activations and linear_q.cu
 *   many rows    cublasLt; quantised weights are de-quantised to 16 bits
 *                first, a piece of the matrix at a time
 *
 * A weight owns its device memory.  Rows of 16-bit matrices are padded with
 * zeros to a multiple of 32 columns, the matrix to a multiple of 16 rows.
 */

#include "kernels/cuda/blas.h"
#include "kernels/cuda/linear.h"

/* elements of a de-quantised piece */
#define LLM_PIECE  ((size_t) 32 << 20)


/* ---- weights ---- */

static void
llm_cuda_upload(llm_cuda_t *d, uint8_t *dst, const uint8_t *src, size_t size)
{
    int     i;
    size_t  n;

    /* while one half of the pinned memory is on its way the other is filled */

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


/* *out gets the 16-bit form of the raw rows that lie on the device */

static int
llm_cuda_make_16(llm_cuda_t *d, llm_weight_t *w, const uint8_t *raw,
    llm_err_t *err)
{
    size_t    size;
    uint32_t  stride;

    stride = llm_cuda_stride(w->n_in);
    size = llm_align((size_t) w->n_out, LLM_TILE_ROWS) * stride
           * sizeof(uint16_t);

    if (llm_cuda_alloc((void **) &w->w16, size, "a weight", err) != LLM_OK) {
        return LLM_ERROR;
    }

    (void) llm_cuda_check(d, cudaMemsetAsync(w->w16, 0, size, d->stream),
                          "clearing of a weight");

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
                       llm_packed_size(w->type, w->n_out, w->n_in),
                       "a weight", err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_packed_view(&p, w->type, w->n_out, w->n_in, w->packed);
    llm_pack(d, &p, w->type, raw, w->row_size);

    return LLM_OK;
}


/* rows of a weight that cublasLt gets at a time */

static uint32_t
llm_cuda_piece_rows(const llm_weight_t *w)
{
    if (w->w16) {
        return w->n_out;
    }

    return (uint32_t) llm_min((size_t) w->n_out,
                              llm_max(LLM_PIECE / w->n_in, (size_t) 1));
}


/* lets cublasLt choose for this shape; without memory it goes untimed */

static void
llm_cuda_prepare(llm_cuda_t *d, const llm_weight_t *w)
{
    float            *y;
    uint32_t          rows;
    llm_blas_args_t   a;

    if (d->opts.max_tokens <= LLM_FEW_ROWS) {
        return;
    }

    memset(&a, 0, sizeof(a));
    a.n_out = llm_cuda_piece_rows(w);
    a.n_in = w->w16 ? llm_cuda_stride(w->n_in) : w->n_in;
    a.x = d->padded;
    a.w = w->w16 ? w->w16 : d->piece;
    a.ldx = a.n_in;
    a.ldw = a.n_in;
    a.ldy = a.n_out;

    if (cudaMalloc(&y, (size_t) d->opts.max_tokens * a.n_out * sizeof(float))
        != cudaSuccess)
    {
        (void) cudaGetLastError();
        return;
    }

    a.y = y;

    for (rows = 128; rows < 2 * d->opts.max_tokens; rows *= 2) {
        a.rows = llm_min(rows, d->opts.max_tokens);
        llm_blas_prepare((llm_blas_t *) d->blas, &a);
    }

    (void) cudaFree(y);
}


static int
llm_cuda_make(llm_cuda_t *d, llm_weight_t *w, int usage, llm_err_t *err)
{
    int  q;

    q = llm_packed_class(w->type) != 0;

    if (usage & LLM_WEIGHT_LINEAR) {
        if (q) {
            if (llm_cuda_make_packed(d, w, w->raw, err) != LLM_OK) {
                return LLM_ERROR;
            }

        } else if (llm_cuda_make_16(d, w, w->raw, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    if (usage & LLM_WEIGHT_LINEAR) {
        llm_cuda_prepare(d, w);
    }

    (void) llm_cuda_check(d, cudaGetLastError(), "packing of a weight");
    (void) llm_cuda_check(d, cudaStreamSynchronize(d->stream),
                          "upload of a weight");

    if (llm_cuda_report(d, err) != LLM_OK) {
        return LLM_ERROR;
    }

    /* many rows want the raw blocks, an embedding the raw rows */

    if (!q && !(usage & LLM_WEIGHT_EMBED)) {
        llm_cuda_free(d, w->raw);
        w->raw = NULL;
    }

    return LLM_OK;
}


llm_weight_t *
llm_cuda_weight_create(llm_dev_t *dev, uint32_t type, uint32_t n_out,
    uint32_t n_in, const void *src, int usage, llm_err_t *err)
{
    size_t         size;
    llm_cuda_t    *d = (llm_cuda_t *) dev;
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
        llm_cuda_weight_free(dev, w);
        return NULL;
    }

    llm_cuda_upload(d, w->raw, (const uint8_t *) src, size);

    if (llm_cuda_make(d, w, usage, err) != LLM_OK) {
        llm_cuda_weight_free(dev, w);
        return NULL;
    }

    return w;
}


void
llm_cuda_weight_free(llm_dev_t *dev, llm_weight_t *w)
{
    llm_cuda_t  *d = (llm_cuda_t *) dev;

    if (w) {
        llm_cuda_free(d, w->raw);
        llm_cuda_free(d, w->w16);
        llm_cuda_free(d, w->packed);
        free(w);
    }
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

    if (cudaMemset(*p, 0, size) != cudaSuccess) {
        return llm_fail(err, "CUDA: clearing of activations failed");
    }

    return LLM_OK;
}


/*
 * Scratch for products with n_in columns: int8 activations of the few rows
 * that the int8 kernels take, and padded 16-bit rows where n_in is odd.
 */

int
llm_cuda_linear_room(llm_cuda_t *d, uint32_t n_in, llm_err_t *err)
{
    size_t  n, rows;

    n = (size_t) LLM_FEW_ROWS * llm_cuda_stride(n_in);

    if (n > d->q8_cap) {
        if (llm_cuda_grow(d, (void **) &d->q8, n, err) != LLM_OK
            || llm_cuda_grow(d, (void **) &d->q8_scale,
                             n / LLM_TILE_COLS * sizeof(float), err)
               != LLM_OK
            || llm_cuda_grow(d, (void **) &d->q8_sum,
                             n / LLM_TILE_COLS * sizeof(float), err)
               != LLM_OK)
        {
            return LLM_ERROR;
        }

        d->q8_cap = n;
    }

    rows = llm_align(llm_max((size_t) d->opts.max_tokens,
                             (size_t) LLM_FEW_ROWS), LLM_FEW_ROWS);
    n = rows * llm_cuda_stride(n_in) * sizeof(uint16_t);

    if (n > d->padded_cap) {
        if (llm_cuda_grow(d, (void **) &d->padded, n, err) != LLM_OK) {
            return LLM_ERROR;
        }

        d->padded_cap = n;
    }

    if (d->piece == NULL) {
        return llm_cuda_alloc((void **) &d->piece,
                              LLM_PIECE * sizeof(uint16_t),
                              "de-quantised weights", err);
    }

    return LLM_OK;
}


/*
 * A warp quantises a block of 32 columns.  The bytes lie as the lanes of an
 * instruction want them: columns 4t .. 4t+3 and 16+4t .. 16+4t+3 side by
 * side for t = 0 .. 3.
 */

__global__ void
llm_k_q8(const uint32_t *count, const uint16_t *x, uint32_t n_in,
    int8_t *q, float *scale, float *sum, int bf16)
{
    int       v;
    float     f, top, s;
    size_t    at;
    uint32_t  row, block, lane, place;

    block = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    row = blockIdx.y;
    lane = threadIdx.x % 32;

    if (row >= *count || block * 32 >= n_in) {
        return;
    }

    at = (size_t) row * (n_in / 32) + block;
    f = llm_load16(&x[(size_t) row * n_in + block * 32 + lane], bf16);
    top = llm_warp_max(fabsf(f));
    s = top / 127.0f;

    v = top > 0 ? __float2int_rn(f * (127.0f / top)) : 0;
    v = v > 127 ? 127 : v < -127 ? -127 : v;

    place = lane % 16 / 4 * 8 + lane / 16 * 4 + lane % 4;
    q[at * 32 + place] = (int8_t) v;

    f = llm_warp_sum((float) v);

    if (lane == 0) {
        scale[at] = s;
        sum[at] = s * f;
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

/* rows [first, first + n) of a quantised weight to 16 bits */

static void
llm_cuda_piece(llm_cuda_t *d, const llm_weight_t *w, uint32_t first,
    uint32_t n)
{
    llm_launch(llm_k_to_16, n, 256, 0, d->stream, w->type,
               (const uint8_t *) w->raw + (size_t) first * w->row_size,
               w->row_size, w->n_in, w->n_in, d->piece, d->bf16);
}


__global__ void
llm_k_bias(const uint32_t *count, const float *bias, uint32_t n_out,
    void *y, int y_is16, int bf16)
{
    uint32_t   i;
    size_t     at;
    uint16_t  *y16;

    if (blockIdx.x >= *count) {
        return;
    }

    for (i = threadIdx.x; i < n_out; i += blockDim.x) {
        at = (size_t) blockIdx.x * n_out + i;

        if (y_is16) {
            y16 = (uint16_t *) y + at;
            *y16 = llm_store16(llm_load16(y16, bf16) + bias[i], bf16);

        } else {
            ((float *) y)[at] += bias[i];
        }
    }
}


/* many rows: cublasLt over the whole weight, or piece by piece */

static void
llm_cuda_many(llm_cuda_t *d, uint32_t rows, const uint16_t *x,
    const llm_linear_t *l, const llm_out_t *o)
{
    uint32_t             at, n, step;
    llm_blas_args_t      a;
    const llm_weight_t  *w = l->w;

    a.rows = rows;
    a.n_in = w->w16 ? llm_cuda_stride(w->n_in) : w->n_in;
    a.x = x;
    a.ldx = a.n_in;
    a.ldw = a.n_in;
    a.ldy = w->n_out;
    a.y_is16 = o->y_is16;
    a.add = o->add;

    step = llm_cuda_piece_rows(w);

    for (at = 0; at < w->n_out; at += n) {
        n = llm_min(w->n_out - at, step);

        if (w->w16 == NULL) {
            llm_cuda_piece(d, w, at, n);
        }

        a.n_out = n;
        a.w = w->w16 ? w->w16 : d->piece;
        a.y = o->y_is16 ? (void *) ((uint16_t *) o->y + at)
                        : (void *) ((float *) o->y + at);

        if (llm_blas_linear((llm_blas_t *) d->blas, &a)) {
            (void) llm_cuda_check(d, cudaErrorInvalidValue,
                                  "a product of cublasLt");
        }
    }

    if (o->bias) {
        llm_launch(llm_k_bias, rows, 256, 0, d->stream, o->count, o->bias,
                   o->n_out, o->y, o->y_is16, o->bf16);
    }
}


void
llm_cuda_linear(llm_dev_t *dev, llm_rows_t which, const llm_act_t *x,
    const llm_linear_t *out, uint32_t n)
{
    int              quantised;
    uint32_t         i, rows, stride;
    llm_out_t        o;
    llm_cuda_t      *d = (llm_cuda_t *) dev;
    llm_packed_t     p;
    const uint16_t  *x16;
    const uint32_t  *count;

    rows = llm_cuda_rows(d, which);
    count = d->step.counts + (which == LLM_ROWS_OUT ? LLM_N_OUT
                                                    : LLM_N_TOKENS);

    if (rows == 0) {
        return;
    }

    x16 = (const uint16_t *) x->data;
    stride = llm_cuda_stride(x->cols);

    for (quantised = 0, i = 0; i < n; i++) {
        quantised |= out[i].w->packed != NULL;
    }

    /* few rows are read in whole groups: none may lie behind the buffer */

    if (stride != x->cols
        || (rows <= LLM_FEW_ROWS && x->max_rows < LLM_FEW_ROWS))
    {
        llm_launch(llm_k_pad, rows, 256, 0, d->stream, count, x16, x->cols,
                   stride, d->padded);
        x16 = d->padded;
    }

    if (quantised && rows <= LLM_FEW_ROWS) {
        llm_launch(llm_k_q8, dim3((x->cols / 32 + 7) / 8, rows), 256, 0,
                   d->stream, count, (const uint16_t *) x->data, x->cols,
                   d->q8, d->q8_scale, d->q8_sum, d->bf16);
    }

    for (i = 0; i < n; i++) {
        o.count = count;
        o.bias = out[i].bias ? out[i].bias->data : NULL;
        o.y = out[i].y->data;
        o.n_out = out[i].w->n_out;
        o.y_is16 = out[i].y->is16;
        o.add = out[i].add;
        o.bf16 = d->bf16;

        if (rows > LLM_FEW_ROWS) {
            llm_cuda_many(d, rows, x16, &out[i], &o);

        } else if (out[i].w->packed) {
            llm_packed_view(&p, out[i].w->type, out[i].w->n_out,
                            out[i].w->n_in, out[i].w->packed);
            llm_linear_q(d, rows, &p, &o);

        } else {
            llm_linear_16(d, rows, x16, out[i].w->w16, stride, &o);
        }
    }
}
