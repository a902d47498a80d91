/*
 * Weights: upload through pinned memory, their layouts, and the plans of
 * cublasLt for 16-bit ones.  linear.cu multiplies by them.
 *
 * A weight owns its device memory.  Rows of 16-bit matrices are padded with
 * zeros to a multiple of 32 columns.
 */

#include "kernels/cuda/blas.h"
#include "kernels/cuda/linear.h"

#include <stdio.h>


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

    if (w->cls == LLM_CLASS_FP8 || w->cls == LLM_CLASS_E4) {
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
        w->cls = d->products_fp8 ? LLM_CLASS_E4 : LLM_CLASS_FP8;
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
