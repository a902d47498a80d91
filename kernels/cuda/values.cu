/*
 * Operations on single values: activations, scales, caps, columns, gathering of
 * rows.
 *
 * Invariant: an element depends only on its own row.  All operations but
 * gathering work on all rows of the bucket; what they write beyond the step's
 * count is not used.
 */

#include "kernels/cuda/values.h"

#define LLM_VALUE_THREADS  256


/* blocks for n values, a thread each */

static unsigned
llm_value_blocks(size_t n)
{
    return (unsigned) ((n + LLM_VALUE_THREADS - 1) / LLM_VALUE_THREADS);
}


/* index of this thread's value; threads after the last one get n or more */

static __device__ __forceinline__ size_t
llm_value(void)
{
    return (size_t) blockIdx.x * blockDim.x + threadIdx.x;
}


__global__ void
llm_k_glu(llm_act_fn_t fn, const float *gate, const float *up, size_t n,
    void *y, int is16, int bf16)
{
    size_t  i;

    llm_early_begin();
    i = llm_value();

    if (i < n) {
        llm_store(y, i, llm_glu_one(fn, gate[i], up ? up[i] : 1.0f), is16,
                  bf16);
    }
}


/* four values a thread; n is the number of such fours */

__global__ void
llm_k_glu_4(llm_act_fn_t fn, const float *gate, const float *up, size_t n,
    void *y, int is16, int bf16)
{
    float4  g, u;
    size_t  i;

    llm_early_begin();
    i = llm_value();

    if (i < n) {
        g = ((const float4 *) gate)[i];
        u = up ? ((const float4 *) up)[i] : make_float4(1, 1, 1, 1);
        g.x = llm_glu_one(fn, g.x, u.x);
        g.y = llm_glu_one(fn, g.y, u.y);
        g.z = llm_glu_one(fn, g.z, u.z);
        g.w = llm_glu_one(fn, g.w, u.w);
        llm_store_4(y, i * 4, g, is16, bf16);
    }
}


/* up NULL: act(), else glu() */

static void
llm_cuda_activate(llm_cuda_t *d, llm_rows_t rows, const llm_act_fn_t *fn,
    const llm_act_t *gate, const llm_act_t *up, llm_act_t *y)
{
    size_t  n;

    n = (size_t) llm_cuda_rows(d, rows) * y->cols;

    if (n % 4 == 0) {
        llm_launch_early(llm_cuda_early(d), llm_k_glu_4,
                         llm_value_blocks(n / 4), LLM_VALUE_THREADS, 0,
                         d->stream, *fn, (const float *) gate->data,
                         (const float *) (up ? up->data : NULL), n / 4,
                         y->data, y->is16, d->bf16);
        return;
    }

    llm_launch_early(llm_cuda_early(d), llm_k_glu, llm_value_blocks(n),
                     LLM_VALUE_THREADS, 0, d->stream, *fn,
                     (const float *) gate->data,
                     (const float *) (up ? up->data : NULL), n, y->data,
                     y->is16, d->bf16);
}


void
llm_cuda_glu(llm_exec_t *exec, llm_rows_t rows, llm_glu_t act,
    const llm_act_t *gate, const llm_act_t *up, llm_act_t *y)
{
    llm_act_fn_t  fn;

    memset(&fn, 0, sizeof(fn));
    fn.kind = act;
    llm_cuda_activate((llm_cuda_t *) exec, rows, &fn, gate, up, y);
}


/* of 16-bit values, as inputs of products are */

__global__ void
llm_k_act_16(llm_act_fn_t fn, const void *x, size_t n, void *y, int is16,
    int bf16)
{
    size_t  i;

    i = llm_value();

    if (i < n) {
        llm_store(y, i, llm_act_one(fn, llm_load(x, i, 1, bf16)), is16,
                  bf16);
    }
}


void
llm_cuda_act(llm_exec_t *exec, llm_rows_t rows, const llm_act_fn_t *fn,
    const llm_act_t *x, llm_act_t *y)
{
    size_t       n;
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    if (!x->is16) {
        llm_cuda_activate(d, rows, fn, x, NULL, y);
        return;
    }

    n = (size_t) llm_cuda_rows(d, rows) * y->cols;

    llm_launch(llm_k_act_16, llm_value_blocks(n), LLM_VALUE_THREADS, 0,
               d->stream, *fn, (const void *) x->data, n, y->data, y->is16,
               d->bf16);
}


__global__ void
llm_k_scale(float f, const void *x, int x_is16, int add, size_t n, void *y,
    int y_is16, int bf16)
{
    float   v;
    size_t  i;

    i = llm_value();

    if (i < n) {
        v = f * llm_load(x, i, x_is16, bf16);
        v = add ? llm_load(y, i, y_is16, bf16) + v : v;
        llm_store(y, i, v, y_is16, bf16);
    }
}


void
llm_cuda_scale(llm_exec_t *exec, llm_rows_t rows, float f, const llm_act_t *x,
    int add, llm_act_t *y)
{
    size_t       n;
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    n = (size_t) llm_cuda_rows(d, rows) * y->cols;

    llm_launch(llm_k_scale, llm_value_blocks(n), LLM_VALUE_THREADS, 0,
               d->stream, f, (const void *) x->data, x->is16, add, n,
               y->data, y->is16, d->bf16);
}


__global__ void
llm_k_softcap(float cap, size_t n, float *x)
{
    size_t  i;

    i = llm_value();

    if (i < n) {
        x[i] = cap * tanhf(x[i] / cap);
    }
}


void
llm_cuda_softcap(llm_exec_t *exec, llm_rows_t rows, float cap, llm_act_t *x)
{
    size_t       n;
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    n = (size_t) llm_cuda_rows(d, rows) * x->cols;

    llm_launch(llm_k_softcap, llm_value_blocks(n), LLM_VALUE_THREADS, 0,
               d->stream, cap, n, (float *) x->data);
}


__global__ void
llm_k_add_vec(const float *v, uint32_t cols, size_t n, void *x, int is16,
    int bf16)
{
    size_t  i;

    i = llm_value();

    if (i < n) {
        llm_store(x, i, llm_load(x, i, is16, bf16) + v[i % cols], is16, bf16);
    }
}


void
llm_cuda_add_vec(llm_exec_t *exec, llm_rows_t rows, const llm_vec_t *v,
    llm_act_t *x)
{
    size_t       n;
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    n = (size_t) llm_cuda_rows(d, rows) * x->cols;

    llm_launch(llm_k_add_vec, llm_value_blocks(n), LLM_VALUE_THREADS, 0,
               d->stream, (const float *) v->data, x->cols, n, x->data,
               x->is16, d->bf16);
}


__global__ void
llm_k_pieces(const float *x, uint32_t x_cols, uint32_t first, uint32_t width,
    uint32_t stride, size_t n, float *y, uint32_t y_cols)
{
    size_t    i;
    uint32_t  c;

    i = llm_value();

    if (i < n) {
        c = (uint32_t) (i % y_cols);
        y[i] = x[i / y_cols * x_cols + first + c / width * stride
                 + c % width];
    }
}


/* x and y are float32 buffers */

void
llm_cuda_pieces(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *x,
    uint32_t first, uint32_t width, uint32_t stride, llm_act_t *y)
{
    size_t       n;
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    n = (size_t) llm_cuda_rows(d, rows) * y->cols;

    llm_launch(llm_k_pieces, llm_value_blocks(n), LLM_VALUE_THREADS, 0,
               d->stream, (const float *) x->data, x->cols, first, width,
               stride, n, (float *) y->data, y->cols);
}


void
llm_cuda_columns(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *x,
    uint32_t first, llm_act_t *y)
{
    llm_cuda_pieces(exec, rows, x, first, y->cols, 0, y);
}


__global__ void
llm_k_gate_rows(const float *gate, uint32_t cols, size_t n, void *x,
    int is16, int bf16)
{
    float   g;
    size_t  i;

    i = llm_value();

    if (i < n) {
        g = 1.0f / (1.0f + expf(-gate[i / cols]));
        llm_store(x, i, llm_load(x, i, is16, bf16) * g, is16, bf16);
    }
}


void
llm_cuda_gate_rows(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *gate,
    llm_act_t *x)
{
    size_t       n;
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    n = (size_t) llm_cuda_rows(d, rows) * x->cols;

    llm_launch(llm_k_gate_rows, llm_value_blocks(n), LLM_VALUE_THREADS, 0,
               d->stream, (const float *) gate->data, x->cols, n, x->data,
               x->is16, d->bf16);
}


/* copies rows of 16-bit or 32-bit elements; halves: 16-bit units of a row */

__global__ void
llm_k_gather(llm_cuda_step_t st, const uint16_t *x, uint16_t *y,
    uint32_t halves)
{
    uint32_t  i, from;

    llm_early_begin();

    if (blockIdx.x >= st.counts[LLM_N_OUT]) {
        return;
    }

    from = st.out_rows[blockIdx.x];

    for (i = llm_row_value(); i < halves; i += gridDim.y * blockDim.x) {
        y[(size_t) blockIdx.x * halves + i] = x[(size_t) from * halves + i];
    }
}


void
llm_cuda_gather(llm_exec_t *exec, const llm_act_t *x, llm_act_t *y)
{
    uint32_t     halves;
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    halves = x->is16 ? x->cols : 2 * x->cols;

    llm_launch_early(llm_cuda_early(d), llm_k_gather,
                     dim3(d->out_rows,
                          llm_row_blocks(halves, LLM_VALUE_THREADS)),
                     LLM_VALUE_THREADS, 0, d->stream, d->step,
                     (const uint16_t *) x->data, (uint16_t *) y->data, halves);
}
