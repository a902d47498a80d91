/*
 * Operations on whole rows: embeddings, norms.
 *
 * Invariant: a block works on one row, or a part of it, and the order of a sum
 * depends only on its length.  Rows beyond the step's count are not written.
 */

#include "kernels/cuda/linear.h"

#define LLM_ROW_THREADS  256


/* x[row] = w[at[row]], or += */

__global__ void
llm_k_embed(const uint32_t *count, const uint32_t *at, uint32_t type,
    const uint8_t *w, size_t row_size, uint32_t cols, int add, float *x)
{
    float           v;
    uint32_t        i;
    const uint8_t  *src;

    if (blockIdx.x >= *count) {
        return;
    }

    src = w + (size_t) at[blockIdx.x] * row_size;
    x += (size_t) blockIdx.x * cols;

    for (i = llm_row_value(); i < cols; i += gridDim.y * blockDim.x) {
        v = llm_deq(type, src, i);
        x[i] = add ? x[i] + v : v;
    }
}


static void
llm_cuda_embed_at(llm_cuda_t *d, const llm_weight_t *w, const uint32_t *at,
    int add, llm_act_t *x)
{
    int  cls;

    cls = llm_packed_class(w->type);

    if (cls == LLM_CLASS_CODED || cls == LLM_CLASS_MINS) {
        llm_embed_coded(d, w, at, add, x);
        return;
    }

    llm_launch(llm_k_embed,
               dim3(d->rows, llm_row_blocks(x->cols, LLM_ROW_THREADS)),
               LLM_ROW_THREADS, 0, d->stream,
               d->step.counts + LLM_N_TOKENS, at, w->type,
               (const uint8_t *) w->raw, w->row_size, x->cols, add,
               (float *) x->data);
}


void
llm_cuda_embed(llm_exec_t *exec, const llm_weight_t *w, llm_act_t *x)
{
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    /* tokens are not negative */
    llm_cuda_embed_at(d, w, (const uint32_t *) d->step.tokens, 0, x);
}


/* y[i] = the given row of row i, from `first` on, or += */

__global__ void
llm_k_input(llm_cuda_step_t st, const uint32_t *count, const uint32_t *at,
    const float *rows, uint32_t given_cols, uint32_t first, uint32_t cols,
    int add, void *y, int is16, int bf16)
{
    float     v;
    size_t    to;
    uint32_t  i, row;

    if (blockIdx.x >= *count) {
        return;
    }

    row = st.given[at ? at[blockIdx.x] : blockIdx.x];

    if (row == LLM_NOT_GIVEN) {
        return;
    }

    rows += (size_t) row * given_cols + first;
    to = (size_t) blockIdx.x * cols;

    for (i = llm_row_value(); i < cols; i += gridDim.y * blockDim.x) {
        v = rows[i];
        v += add ? llm_load(y, to + i, is16, bf16) : 0.0f;
        llm_store(y, to + i, v, is16, bf16);
    }
}


void
llm_cuda_input(llm_exec_t *exec, llm_rows_t rows, uint32_t first, int add,
    llm_act_t *y)
{
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    if (d->given_cols == 0) {
        return;
    }

    llm_launch(llm_k_input,
               dim3(llm_cuda_rows(d, rows),
                    llm_row_blocks(y->cols, LLM_ROW_THREADS)),
               LLM_ROW_THREADS, 0, d->stream, d->step,
               llm_cuda_count(d, rows),
               rows == LLM_ROWS_OUT ? d->step.out_rows : NULL, d->given,
               d->given_cols, first, y->cols, add, y->data, y->is16, d->bf16);
}


void
llm_cuda_embed_pos(llm_exec_t *exec, const llm_weight_t *w, llm_act_t *x)
{
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    llm_cuda_embed_at(d, w, d->step.pos, 1, x);
}


/* the sum over a block of LLM_ROW_THREADS threads; s has a float for each
   warp */

static __device__ __forceinline__ float
llm_block_sum(float v, float *s)
{
    float     sum;
    uint32_t  i;

    v = llm_warp_sum(v);

    if (threadIdx.x % 32 == 0) {
        s[threadIdx.x / 32] = v;
    }

    __syncthreads();

    for (sum = 0, i = 0; i < LLM_ROW_THREADS / 32; i++) {
        sum += s[i];
    }

    return sum;
}


typedef struct {
    const uint32_t   *count;
    const void       *x;
    const float      *w;                /* or NULL */
    const float      *bias;             /* or NULL */
    void             *y;
    float             eps;
    uint32_t          cols;
    uint32_t          group;
    int               wide;             /* w is as wide as a row, else as a
                                           group */
    int               layer;            /* the mean is subtracted */
    int               add;
    int               x_is16;
    int               is16;
    int               bf16;
} llm_norm_args_t;


/* element i of the block's group, which begins at element `base` of x */

static __device__ __forceinline__ float
llm_norm_in(const llm_norm_args_t &a, size_t base, uint32_t i)
{
    return llm_load(a.x, base + i, a.x_is16, a.bf16);
}


/* block (row, group of columns); two floats of shared memory a warp */

__global__ void
llm_k_norm(llm_norm_args_t a)
{
    float     v, mean, sum, scale, *s;
    size_t    base;
    uint32_t  i, first;

    LLM_SHARED(mem);

    llm_early_begin();

    if (blockIdx.x >= *a.count) {
        return;
    }

    s = (float *) mem;
    first = blockIdx.y * a.group;
    base = (size_t) blockIdx.x * a.cols + first;
    mean = 0;

    if (a.layer) {
        for (sum = 0, i = threadIdx.x; i < a.group; i += blockDim.x) {
            sum += llm_norm_in(a, base, i);
        }

        mean = llm_block_sum(sum, s + LLM_ROW_THREADS / 32)
               / (float) a.group;
    }

    for (sum = 0, i = threadIdx.x; i < a.group; i += blockDim.x) {
        v = llm_norm_in(a, base, i) - mean;
        sum += v * v;
    }

    sum = llm_block_sum(sum, s);
    scale = rsqrtf(sum / (float) a.group + a.eps);

    for (i = threadIdx.x; i < a.group; i += blockDim.x) {
        v = (llm_norm_in(a, base, i) - mean) * scale;
        v = a.w ? v * a.w[a.wide ? first + i : i] : v;
        v = a.bias ? v + a.bias[first + i] : v;
        v = a.add ? llm_load(a.y, base + i, a.is16, a.bf16) + v : v;
        llm_store(a.y, base + i, v, a.is16, a.bf16);
    }
}


/*
 * RMS norm of whole rows of floats.  Block (row): a thread holds up to EACH
 * times four columns in registers, so that all loads of a row are in flight
 * together.
 */

template<int EACH> __global__ void
llm_k_norm_row(llm_norm_args_t a)
{
    int        i;
    float      sum, scale;
    float4     v[EACH], w[EACH];
    size_t     base;
    uint32_t   at, rows;

    LLM_SHARED(mem);

    llm_early_start();

#pragma unroll
    for (i = 0; i < EACH; i++) {
        at = (i * LLM_ROW_THREADS + threadIdx.x) * 4;
        v[i] = w[i] = make_float4(0, 0, 0, 0);

        if (at < a.cols) {
            w[i] = *(const float4 *) (a.w + at);
        }
    }

    rows = *a.count;

    llm_early_wait();

    base = (size_t) blockIdx.x * a.cols;
    sum = 0;

    /* rows of the bucket that the step does not have are read, too: they have
       memory */

#pragma unroll
    for (i = 0; i < EACH; i++) {
        at = (i * LLM_ROW_THREADS + threadIdx.x) * 4;

        if (at < a.cols) {
            v[i] = *(const float4 *) ((const float *) a.x + base + at);
        }
    }

    if (blockIdx.x >= rows) {
        return;
    }

#pragma unroll
    for (i = 0; i < EACH; i++) {
        sum += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z
               + v[i].w * v[i].w;
    }

    sum = llm_block_sum(sum, (float *) mem);
    scale = rsqrtf(sum / (float) a.cols + a.eps);

#pragma unroll
    for (i = 0; i < EACH; i++) {
        at = (i * LLM_ROW_THREADS + threadIdx.x) * 4;

        if (at < a.cols) {
            v[i].x *= scale * w[i].x;
            v[i].y *= scale * w[i].y;
            v[i].z *= scale * w[i].z;
            v[i].w *= scale * w[i].w;
            llm_store_4(a.y, base + at, v[i], a.is16, a.bf16);
        }
    }
}


/* launches llm_k_norm_row(); returns nonzero if that kernel cannot do it */

static int
llm_cuda_norm_row(llm_cuda_t *d, uint32_t rows, const llm_norm_args_t &a)
{
    uint32_t  each;

    each = (a.cols + 4 * LLM_ROW_THREADS - 1) / (4 * LLM_ROW_THREADS);

    if (a.layer || a.add || a.bias || a.w == NULL || a.x_is16
        || a.group != a.cols || a.cols % 4 || each > 8)
    {
        return 1;
    }

    if (each <= 2) {
        llm_launch_early(llm_cuda_early(d), llm_k_norm_row<2>, rows,
                         LLM_ROW_THREADS,
                         LLM_ROW_THREADS / 32 * sizeof(float), d->stream, a);

    } else if (each <= 4) {
        llm_launch_early(llm_cuda_early(d), llm_k_norm_row<4>, rows,
                         LLM_ROW_THREADS,
                         LLM_ROW_THREADS / 32 * sizeof(float), d->stream, a);

    } else {
        llm_launch_early(llm_cuda_early(d), llm_k_norm_row<8>, rows,
                         LLM_ROW_THREADS,
                         LLM_ROW_THREADS / 32 * sizeof(float), d->stream, a);
    }

    return 0;
}


void
llm_cuda_norm(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *x,
    const llm_norm_t *n, llm_act_t *y)
{
    llm_cuda_t       *d = (llm_cuda_t *) exec;
    llm_norm_args_t   a;

    a.count = llm_cuda_count(d, rows);
    a.x = x->data;
    a.x_is16 = x->is16;
    a.w = n->w ? n->w->data : NULL;
    a.bias = n->bias ? n->bias->data : NULL;
    a.y = y->data;
    a.eps = n->eps;
    a.cols = x->cols;
    a.group = n->group ? n->group : x->cols;
    a.wide = n->w && n->w->n == x->cols;
    a.layer = n->kind == LLM_NORM_LAYER;
    a.add = n->add;
    a.is16 = y->is16;
    a.bf16 = d->bf16;

    if (llm_cuda_norm_row(d, llm_cuda_rows(d, rows), a) == 0) {
        return;
    }

    llm_launch_early(llm_cuda_early(d), llm_k_norm,
                     dim3(llm_cuda_rows(d, rows), a.cols / a.group),
                     LLM_ROW_THREADS,
                     2 * LLM_ROW_THREADS / 32 * sizeof(float), d->stream, a);
}
