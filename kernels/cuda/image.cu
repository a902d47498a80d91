/*
 * What the kernels were compiled for, and whether a GPU can run them: it needs
 * machine code for its generation, or PTX of an earlier one, which its driver
 * compiles.
 *
 * Every source is compiled for the same architectures, so one kernel answers
 * for all.
 */

#include "kernels/cuda/internal.h"

#include <stdio.h>

/* memory.cu */
__global__ void llm_k_to_float(const uint16_t *x, float *y, size_t n,
    int bf16);

#ifdef LLM_EMU
static const int  llm_cuda_compiled[] = { 800, 900 };
#else
static const int  llm_cuda_compiled[] = { __CUDA_ARCH_LIST__ };
#endif


/* "8.0, 9.0": the architectures */

static void
llm_cuda_list(char *buf, size_t size)
{
    int     arch;
    size_t  i, n;

    n = 0;
    buf[0] = '\0';

    for (i = 0; i < sizeof(llm_cuda_compiled) / sizeof(int); i++) {
        arch = llm_cuda_compiled[i] / 10;

        if (n < size) {
            n += (size_t) snprintf(buf + n, size - n, "%s%d.%d",
                                   i ? ", " : "", arch / 10, arch % 10);
        }
    }
}


/* what to set CUDA_ARCH to for a GPU */

static void
llm_cuda_arch(const llm_cuda_gpu_t *gpu, char *buf, size_t size)
{
    snprintf(buf, size, "%d%s", gpu->capability,
             gpu->capability == 90 ? "a" : "");
}


static int
llm_cuda_no_image(const llm_cuda_gpu_t *gpu, cudaError_t e, llm_err_t *err)
{
    char  arch[16], list[128];

    llm_cuda_arch(gpu, arch, sizeof(arch));
    llm_cuda_list(list, sizeof(list));

    switch (e) {

    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
        return llm_fail(err, "CUDA: %s has compute capability %d.%d, and "
                        "llm_cuda.so was built for %s: build it for this GPU: "
                        "CUDA_ARCH=%s ./build.sh build", gpu->name,
                        gpu->capability / 10, gpu->capability % 10, list,
                        arch);

    case cudaErrorInvalidPtx:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorJitCompilationDisabled:
        return llm_fail(err, "CUDA: %s has compute capability %d.%d, for which "
                        "llm_cuda.so has PTX only, and its driver cannot "
                        "compile it: %s: update the driver, or build machine "
                        "code: CUDA_ARCH=%s ./build.sh build", gpu->name,
                        gpu->capability / 10, gpu->capability % 10,
                        cudaGetErrorString(e), arch);

    default:
        return llm_fail(err, "CUDA: the kernels cannot be loaded on %s: %s",
                        gpu->name, cudaGetErrorString(e));
    }
}


/* the driver keeps what it has compiled, if it finds a place for that */

static void
llm_cuda_say_ptx(const llm_cuda_gpu_t *gpu, const llm_exec_opts_t *opts)
{
    char  arch[16], msg[640];

    if (opts->log == NULL) {
        return;
    }

    llm_cuda_arch(gpu, arch, sizeof(arch));
    snprintf(msg, sizeof(msg), "CUDA: %s has compute capability %d.%d, for "
             "which llm_cuda.so has PTX of %d.%d only: its driver compiles "
             "each kernel, which makes loads longer; CUDA_ARCH=%s ./build.sh "
             "build makes machine code", gpu->name, gpu->capability / 10,
             gpu->capability % 10, gpu->compiled / 10, gpu->compiled % 10,
             arch);
    opts->log(opts->log_data, LLM_LOG_NOTICE, msg);
}


int
llm_cuda_image(llm_cuda_gpu_t *gpu, const llm_exec_opts_t *opts,
    llm_err_t *err)
{
    cudaError_t          e;
    cudaFuncAttributes   of;

    e = cudaFuncGetAttributes(&of, llm_k_to_float);

    if (e != cudaSuccess) {
        (void) cudaGetLastError();
        return llm_cuda_no_image(gpu, e, err);
    }

    gpu->compiled = of.ptxVersion;

    if (of.ptxVersion < of.binaryVersion) {
        llm_cuda_say_ptx(gpu, opts);
    }

    return LLM_OK;
}
