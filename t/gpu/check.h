/*
 * Errors of CUDA in the programs of this folder: they end with a message.
 */

#ifndef LLM_GPU_CHECK_H
#define LLM_GPU_CHECK_H

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>


static void
die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what,
            cudaGetErrorString(cudaGetLastError()));
    exit(1);
}


static void
check(cudaError_t e, const char *what)
{
    if (e != cudaSuccess) {
        die(what);
    }
}

#endif /* LLM_GPU_CHECK_H */
