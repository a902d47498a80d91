/*
 * The CUDA device: opening it, closing it, and the table of its operations.
 */

#include "kernels/cuda/blas.h"

#include <stdio.h>

/* memory of a GPU that the KV cache leaves to the driver and cublasLt: one part
   in LLM_CUDA_MARGIN_PART, but at most LLM_CUDA_MARGIN bytes */
#define LLM_CUDA_MARGIN      ((size_t) 1 << 30)
#define LLM_CUDA_MARGIN_PART 20

/* the first driver that captures launches of llm_launch_early() */
#define LLM_CUDA_EARLY  12030


void
llm_cuda_describe(llm_exec_t *exec, char *buf, size_t size)
{
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    snprintf(buf, size, "%s, %s%s%s", d->gpu->name, d->bf16 ? "bf16" : "f16",
             d->products_fp8 ? ", fp8 products"
             : d->opts.weights_fp8 ? ", fp8 weights" : "",
             d->opts.kv_fp8 ? ", fp8 KV" : "");
}


size_t
llm_cuda_memory_free(llm_exec_t *exec)
{
    size_t  avail, total;

    llm_cuda_enter(exec);

    if (cudaMemGetInfo(&avail, &total) != cudaSuccess) {
        return 0;
    }

    total = llm_min(total / LLM_CUDA_MARGIN_PART, LLM_CUDA_MARGIN);

    return avail > total ? avail - total : 0;
}


/* frees what it has on the GPU and of pinned memory */

static void
llm_cuda_close_all(llm_cuda_t *d)
{
    uint32_t  i;

    for (i = 0; i < d->n_graphs; i++) {
        if (d->graphs[i].exec) {
            (void) cudaGraphExecDestroy(d->graphs[i].exec);
        }
    }

    for (i = 0; i < 2; i++) {
        if (d->staged[i]) {
            (void) cudaEventDestroy(d->staged[i]);
        }

        if (d->hosts[i].done) {
            (void) cudaEventDestroy(d->hosts[i].done);
        }

        (void) cudaFreeHost(d->hosts[i].arrays);
    }

    if (d->received) {
        (void) cudaEventDestroy(d->received);
    }

    if (d->mark) {
        (void) cudaEventDestroy(d->mark);
    }

    llm_blas_free(d->blas, 1);
    (void) cudaFree(d->followed);
    (void) cudaFree(d->step_dev);
    (void) cudaFree(d->given);
    (void) cudaFree(d->padded);
    (void) cudaFree(d->x8);
    (void) cudaFreeHost(d->stage);
    (void) cudaFree(d->partial);
    (void) cudaFree(d->dev_rows);
    (void) cudaFreeHost(d->host_rows);

    if (d->stream) {
        (void) cudaStreamDestroy(d->stream);
    }
}


void
llm_cuda_close(llm_exec_t *exec)
{
    llm_cuda_t  *d = (llm_cuda_t *) exec;

    if (llm_cuda_alive(d->gpu)) {
        llm_cuda_close_all(d);

    } else {
        llm_blas_free(d->blas, 0);
    }

    if (d->owns_gpu) {
        llm_cuda_device_close(&d->gpu->device);
    }

    free(d);
}


static const llm_ops_t *llm_cuda_ops(void);


/* without a driver, the runtime's own message would be about versions */

static int
llm_cuda_no_device(cudaError_t e, llm_err_t *err)
{
    int  version = 0;

    if (cudaDriverGetVersion(&version) == cudaSuccess && version == 0) {
        return llm_fail(err, "CUDA: there is no NVIDIA driver on this "
                        "machine");
    }

    return llm_fail(err, "CUDA: %s (the driver is for CUDA %d.%d)",
                    cudaGetErrorString(e), version / 1000,
                    version % 1000 / 10);
}


/* can launches be early?  The code that the GPU runs needs the instructions for
   it, which it has if it was compiled for 9.0 or later. */

static int
llm_cuda_can_early(const llm_cuda_gpu_t *gpu)
{
    int  version;

    return gpu->compiled >= 90
           && cudaDriverGetVersion(&version) == cudaSuccess
           && version >= LLM_CUDA_EARLY;
}


int
llm_cuda_device_open(llm_device_t **device, const llm_exec_opts_t *opts,
    llm_err_t *err)
{
    int              n;
    cudaError_t      e;
    cudaDeviceProp   prop;
    llm_cuda_gpu_t  *gpu, found;

    e = cudaGetDeviceCount(&n);

    if (e != cudaSuccess) {
        return llm_cuda_no_device(e, err);
    }

    memset(&found, 0, sizeof(found));
    found.device.ops = llm_cuda_ops();
    found.index = opts->index < 0 ? 0 : opts->index;

    if (found.index >= llm_min(n, LLM_CUDA_MAX_GPUS)) {
        return llm_fail(err, "CUDA: there is no device %d: this machine has "
                        "%d, numbered from 0", found.index, n);
    }

    if (!llm_cuda_alive(&found)) {
        return llm_cuda_fail_lost(err, found.index, "an earlier error");
    }

    if (cudaSetDevice(found.index) != cudaSuccess
        || cudaGetDeviceProperties(&prop, found.index) != cudaSuccess)
    {
        return llm_fail(err, "CUDA: device %d does not answer", found.index);
    }

    if (prop.major < 8) {
        return llm_fail(err, "CUDA: %s has compute capability %d.%d; 8.0 "
                        "(Ampere) or later is needed", prop.name, prop.major,
                        prop.minor);
    }

    snprintf(found.name, sizeof(found.name), "%s", prop.name);
    found.capability = prop.major * 10 + prop.minor;
    found.shared = prop.sharedMemPerBlockOptin;

    if (llm_cuda_image(&found, opts, err) != LLM_OK) {
        return LLM_ERROR;
    }

    found.early = llm_cuda_can_early(&found);
    found.wgmma = llm_cuda_wgmma_compiled() && found.capability == 90
                  && found.compiled == 90;

    gpu = (llm_cuda_gpu_t *) malloc(sizeof(llm_cuda_gpu_t));
    if (gpu == NULL) {
        return llm_fail(err, "no memory for a device");
    }

    *gpu = found;
    *device = &gpu->device;

    return LLM_OK;
}


void
llm_cuda_device_close(llm_device_t *device)
{
    free(device);
}


/* is the GPU there for this thread, and has it what the model wants? */

static int
llm_cuda_select(const llm_cuda_t *d, llm_err_t *err)
{
    const llm_cuda_gpu_t  *gpu = d->gpu;

    if (!llm_cuda_alive(gpu)) {
        return llm_cuda_fail_lost(err, gpu->index, "an earlier error");
    }

    if (cudaSetDevice(gpu->index) != cudaSuccess) {
        return llm_fail(err, "CUDA: device %d does not answer", gpu->index);
    }

    if (d->opts.products && !d->products_fp8) {
        return llm_fail(err, "products=%s: a GPU has only products=fp8",
                        d->opts.products);
    }

    if ((d->opts.weights_fp8 || d->opts.kv_fp8) && gpu->capability < 89) {
        return llm_fail(err, "%s=fp8: %s has compute capability %d.%d; 8.9 "
                        "(Ada) or later is needed",
                        d->products_fp8 ? "products"
                        : d->opts.weights_fp8 ? "weights" : "kv", gpu->name,
                        gpu->capability / 10, gpu->capability % 10);
    }

    /* PTX of an earlier one has no instruction for e4m3, and that of 9.0 none
       that a Hopper is fast with */

    if (d->products_fp8
        && (gpu->compiled < 89 || (gpu->capability == 90 && !gpu->wgmma)))
    {
        return llm_fail(err, "products=fp8: llm_cuda.so has no code for it on "
                        "%s: CUDA_ARCH=%d%s ./build.sh build", gpu->name,
                        gpu->capability, gpu->capability == 90 ? "a" : "");
    }

    return LLM_OK;
}


int
llm_cuda_open(llm_exec_t **exec, const llm_exec_opts_t *opts, llm_err_t *err)
{
    size_t         size;
    llm_cuda_t    *d;
    llm_device_t  *device;

    device = opts->device;

    if (device == NULL && llm_cuda_device_open(&device, opts, err) != LLM_OK) {
        return LLM_ERROR;
    }

    d = (llm_cuda_t *) calloc(1, sizeof(llm_cuda_t));
    if (d == NULL) {
        if (opts->device == NULL) {
            llm_cuda_device_close(device);
        }

        return llm_fail(err, "no memory for a device");
    }

    d->exec.ops = llm_cuda_ops();
    d->team[0] = d;
    d->n_team = 1;
    d->opts = *opts;
    d->opts.max_out = llm_max(opts->max_out, opts->max_seqs);
    d->gpu = (llm_cuda_gpu_t *) device;
    d->owns_gpu = opts->device == NULL;
    d->bf16 = opts->weight_type == LLM_TYPE_BF16;
    d->products_fp8 = llm_products_is(opts->products, LLM_PRODUCTS_FP8);
    d->opts.weights_fp8 |= d->products_fp8;

    size = llm_cuda_step_layout(d, NULL, &d->step);

    if (llm_cuda_select(d, err) != LLM_OK) {
        goto failed;
    }

    if (cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking)
        != cudaSuccess
        || cudaMallocHost(&d->hosts[0].arrays, size) != cudaSuccess
        || cudaMallocHost(&d->hosts[1].arrays, size) != cudaSuccess
        || cudaEventCreateWithFlags(&d->hosts[0].done,
                                    cudaEventDisableTiming) != cudaSuccess
        || cudaEventCreateWithFlags(&d->hosts[1].done,
                                    cudaEventDisableTiming) != cudaSuccess
        || cudaMallocHost(&d->stage, 2 * LLM_CUDA_STAGE) != cudaSuccess
        || cudaEventCreateWithFlags(&d->staged[0], cudaEventDisableTiming)
           != cudaSuccess
        || cudaEventCreateWithFlags(&d->staged[1], cudaEventDisableTiming)
           != cudaSuccess)
    {
        (void) llm_fail(err, "CUDA: no memory for a step's arrays");
        goto failed;
    }

    memset(d->hosts[0].arrays, 0, size);
    memset(d->hosts[1].arrays, 0, size);

    if (llm_cuda_alloc((void **) &d->step_dev, size, "a step's arrays", err)
        != LLM_OK)
    {
        goto failed;
    }

    (void) llm_cuda_step_layout(d, d->step_dev, &d->step);

    d->blas = llm_blas_create(d->stream, d->bf16, err);
    if (d->blas == NULL) {
        goto failed;
    }

    *exec = &d->exec;

    return LLM_OK;

failed:

    llm_cuda_close(&d->exec);

    return LLM_ERROR;
}


/* matrices of heads are packed like those of experts; the operations that are
   NULL do not exist here */
#define llm_cuda_heads_create  llm_cuda_experts_create
#define llm_cuda_kv_unused     NULL
#define llm_cuda_weight_size   NULL
#define llm_cuda_packed_key    NULL
#define llm_cuda_packed_use    NULL
#define llm_cuda_packed_write  NULL

static const llm_ops_t  llm_ops_cuda = {
#ifdef LLM_EMU
    "emu",
#else
    "cuda",
#endif
    LLM_CAN_NORMS | LLM_CAN_ACTS | LLM_CAN_WINDOWS | LLM_CAN_SCORES
        | LLM_CAN_ROPE | LLM_CAN_KV | LLM_CAN_SCALE | LLM_CAN_EMBED
        | LLM_CAN_EXPERTS | LLM_CAN_STATE | LLM_CAN_ENCODE
        | LLM_CAN_LATENT | LLM_CAN_FACTORS | LLM_CAN_MEDIA | LLM_CAN_CROSS,
#define LLM_OP(group, needs, result, name, parameters)  llm_cuda_##name,
#include "kernels/ops.def"
};


static const llm_ops_t *
llm_cuda_ops(void)
{
    return &llm_ops_cuda;
}


extern "C" LLM_EXPORT const llm_ops_t *
llm_backend_table(uint32_t interface, size_t size)
{
    return interface == LLM_INTERFACE && size == sizeof(llm_ops_t)
           ? llm_cuda_ops() : NULL;
}
