/*
 * What the GPU can do, as JSON lines: its name, and the bandwidth of copies
 * of 4 GiB within its memory (bytes read and written), the best of ten.
 *
 *   nvcc -o peak t/gpu/peak.cu && ./peak
 */

#include <cuda_runtime.h>
#include <stdio.h>

#define SIZE  ((size_t) 4 << 30)


int
main(void)
{
    int             i;
    void           *a, *b;
    float           ms, best;
    cudaEvent_t     from, to;
    cudaDeviceProp  prop;

    if (cudaGetDeviceProperties(&prop, 0) != cudaSuccess
        || cudaMalloc(&a, SIZE) != cudaSuccess
        || cudaMalloc(&b, SIZE) != cudaSuccess
        || cudaMemset(a, 1, SIZE) != cudaSuccess
        || cudaEventCreate(&from) != cudaSuccess
        || cudaEventCreate(&to) != cudaSuccess)
    {
        fprintf(stderr, "peak: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 1;
    }

    best = 1e9f;

    for (i = 0; i < 10; i++) {
        if (cudaEventRecord(from) != cudaSuccess
            || cudaMemcpyAsync(b, a, SIZE, cudaMemcpyDeviceToDevice)
               != cudaSuccess
            || cudaEventRecord(to) != cudaSuccess
            || cudaEventSynchronize(to) != cudaSuccess
            || cudaEventElapsedTime(&ms, from, to) != cudaSuccess)
        {
            fprintf(stderr, "peak: a copy failed\n");
            return 1;
        }

        best = ms < best ? ms : best;
    }

    printf("{\"device\": \"%s\", \"sms\": %d, \"copy_gb_s\": %.1f}\n",
           prop.name, prop.multiProcessorCount, 2.0 * SIZE / best * 1e-6);

    return 0;
}
