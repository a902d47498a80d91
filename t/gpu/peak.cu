/*
 * The GPU's rates, as a JSON line: its name and number of SMs; the bandwidth of
 * copies of 4 GiB within its memory (bytes read and written), the best of ten;
 * the rate at which a kernel reads as much and writes nothing, as a step of few
 * rows does, the best of ten; and the rate of cublasLt's product of two
 * 8192 x 8192 bf16 matrices of random numbers, the mean of ten after three
 * (zeros take less power, so the GPU's clock, and the rate, would be higher).
 *
 *   nvcc -o peak t/gpu/peak.cu -lcublasLt && ./peak
 *
 * -DPEAK_COPY_ONLY: without cuBLAS: the matrix rate is 0, which
 * is not known.
 */

#ifndef PEAK_COPY_ONLY
#include <cublasLt.h>
#endif
#include "check.h"

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SIZE    ((size_t) 4 << 30)
#define N       8192
#define ROOM    ((size_t) 64 << 20)
#define COPIES  10
#define AT_ONCE 4
#define WARM    3
#define RUNS    10

static cudaEvent_t  from, to;


/* milliseconds since `from` was recorded */

static float
elapsed(void)
{
    float  ms;

    check(cudaEventRecord(to), "an event");
    check(cudaEventSynchronize(to), "an event");
    check(cudaEventElapsedTime(&ms, from, to), "an event");

    return ms;
}


/* reads n times 16 bytes, AT_ONCE of them before it adds any.  The sum is kept
   only in order that nothing is left out. */

__global__ void
sum(const uint4 *p, size_t n, uint32_t *kept)
{
    int       k;
    size_t    i, all;
    uint4     v[AT_ONCE];
    uint32_t  s;

    all = (size_t) gridDim.x * blockDim.x;
    s = 0;

    for (i = (size_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += AT_ONCE * all)
    {
#pragma unroll
        for (k = 0; k < AT_ONCE; k++) {
            v[k] = i + k * all < n ? __ldcs(p + i + k * all)
                                   : make_uint4(0, 0, 0, 0);
        }

#pragma unroll
        for (k = 0; k < AT_ONCE; k++) {
            s += v[k].x + v[k].y + v[k].z + v[k].w;
        }
    }

    if (s == 12345) {
        *kept = s;
    }
}


/* milliseconds of the fastest of copies of SIZE bytes from a to b; b NULL: of
   reads */

static float
fastest(const void *a, void *b, uint32_t *kept, int sms)
{
    int    i;
    float  ms, best = 1e9f;

    for (i = 0; i < COPIES; i++) {
        check(cudaEventRecord(from), "an event");

        if (b) {
            check(cudaMemcpyAsync(b, a, SIZE, cudaMemcpyDeviceToDevice),
                  "a copy");

        } else {
            sum<<<(unsigned) sms * 4, 512>>>((const uint4 *) a, SIZE / 16,
                                             kept);
            check(cudaGetLastError(), "a kernel");
        }

        ms = elapsed();
        best = ms < best ? ms : best;
    }

    return best;
}


static void
memory_gb_s(int sms, double *copy, double *read)
{
    void  *a, *b, *kept;

    check(cudaMalloc(&a, SIZE), "memory");
    check(cudaMalloc(&b, SIZE), "memory");
    check(cudaMalloc(&kept, sizeof(uint32_t)), "memory");
    check(cudaMemset(a, 1, SIZE), "memory");

    *copy = 2.0 * SIZE / fastest(a, b, NULL, sms) * 1e-6;
    *read = 1.0 * SIZE / fastest(a, NULL, (uint32_t *) kept, sms) * 1e-6;

    check(cudaFree(a), "memory");
    check(cudaFree(b), "memory");
    check(cudaFree(kept), "memory");
}


/* n elements of bf16 from -1 to 1: hashes of their places */

__global__ void
fill(uint16_t *p, uint32_t n, uint32_t seed)
{
    uint32_t  i, h;

    i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        h = (i ^ seed) * 0x9e3779b1u;
        h = (h ^ h >> 15) * 0x85ebca77u;
        h = (h ^ h >> 13) * 0xc2b2ae3du;
        h ^= h >> 16;

        p[i] = (uint16_t) (__float_as_uint((float) (int32_t) h
                                           * (1.0f / 2147483648.0f)) >> 16);
    }
}


#ifdef PEAK_COPY_ONLY

static double
matrix_tflops(void)
{
    return 0;                           /* not known without cuBLAS */
}

#else

static double
matrix_tflops(void)
{
    int                     i;
    void                   *m[3], *room;
    float                   one = 1, zero = 0, ms;
    cublasLtHandle_t        lt;
    cublasLtMatmulDesc_t    op;
    cublasLtMatrixLayout_t  layout;
    cublasOperation_t       turned = CUBLAS_OP_T;

    for (i = 0; i < 3; i++) {
        check(cudaMalloc(&m[i], (size_t) N * N * 2), "memory");
        fill<<<(unsigned) N * N / 256, 256>>>((uint16_t *) m[i], N * N,
                                              (uint32_t) i + 1);
        check(cudaGetLastError(), "a kernel");
    }

    check(cudaMalloc(&room, ROOM), "memory");

    if (cublasLtCreate(&lt) != CUBLAS_STATUS_SUCCESS
        || cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F)
           != CUBLAS_STATUS_SUCCESS
        || cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSA,
                                          &turned, sizeof(turned))
           != CUBLAS_STATUS_SUCCESS
        || cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, N, N, N)
           != CUBLAS_STATUS_SUCCESS)
    {
        die("cublasLt");
    }

    for (i = 0; i < WARM + RUNS; i++) {
        if (i == WARM) {
            check(cudaEventRecord(from), "an event");
        }

        if (cublasLtMatmul(lt, op, &one, m[0], layout, m[1], layout, &zero,
                           m[2], layout, m[2], layout, NULL, room, ROOM, 0)
            != CUBLAS_STATUS_SUCCESS)
        {
            die("a product");
        }
    }

    ms = elapsed() / RUNS;

    for (i = 0; i < 3; i++) {
        check(cudaFree(m[i]), "memory");
    }

    check(cudaFree(room), "memory");
    (void) cublasLtMatrixLayoutDestroy(layout);
    (void) cublasLtMatmulDescDestroy(op);
    (void) cublasLtDestroy(lt);

    return 2.0 * N * N * N / ms * 1e-9;
}

#endif


int
main(void)
{
    double          copy, read, matrix;
    cudaDeviceProp  prop;

    check(cudaGetDeviceProperties(&prop, 0), "a device");
    check(cudaEventCreate(&from), "an event");
    check(cudaEventCreate(&to), "an event");

    memory_gb_s(prop.multiProcessorCount, &copy, &read);
    matrix = matrix_tflops();

    printf("{\"device\": \"%s\", \"sms\": %d, \"copy_gb_s\": %.1f, "
           "\"read_gb_s\": %.1f, \"matrix_tflops\": %.1f}\n", prop.name,
           prop.multiProcessorCount, copy, read, matrix);

    return 0;
}
