/*
 * What kernels/cuda/blas.cu needs of cublasLt, on the emulator (cublaslt.cpp).
 * Names and meanings are those of NVIDIA's documentation ("Using the cublasLt
 * API"); a call that goes beyond what is written here does not compile.
 */

#ifndef LLM_EMU_CUBLASLT_H
#define LLM_EMU_CUBLASLT_H

#include "t/gpu/emu/emu.h"

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_NOT_SUPPORTED = 15
} cublasStatus_t;

typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 } cublasOperation_t;
typedef enum { CUBLAS_COMPUTE_32F = 68 } cublasComputeType_t;
typedef enum {
    CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14
} cudaDataType_t;

typedef enum { CUBLASLT_MATMUL_DESC_TRANSA = 3 }
    cublasLtMatmulDescAttributes_t;
typedef enum {
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
    CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3
} cublasLtMatmulPreferenceAttributes_t;
typedef enum { CUBLASLT_REDUCTION_SCHEME_NONE = 0 }
    cublasLtReductionScheme_t;
typedef enum { CUBLASLT_ALGO_CONFIG_SPLITK_NUM = 2 }
    cublasLtMatmulAlgoConfigAttributes_t;

typedef struct EmuLtHandle      *cublasLtHandle_t;
typedef struct EmuLtDesc        *cublasLtMatmulDesc_t;
typedef struct EmuLtLayout      *cublasLtMatrixLayout_t;
typedef struct EmuLtPreference  *cublasLtMatmulPreference_t;

typedef struct { uint64_t data[8]; } cublasLtMatmulAlgo_t;

typedef struct {
    cublasLtMatmulAlgo_t   algo;
    size_t                 workspaceSize;
    cublasStatus_t         state;
    float                  wavesCount;
    int                    reserved[4];
} cublasLtMatmulHeuristicResult_t;

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle);
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle);

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc,
    cublasComputeType_t compute, cudaDataType_t scale);
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
    cublasLtMatmulDescAttributes_t attr, const void *buf, size_t size);
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc);

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
    cudaDataType_t type, uint64_t rows, uint64_t cols, int64_t ld);
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout);

cublasStatus_t cublasLtMatmulPreferenceCreate(
    cublasLtMatmulPreference_t *pref);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t pref, cublasLtMatmulPreferenceAttributes_t attr,
    const void *buf, size_t size);
cublasStatus_t cublasLtMatmulPreferenceDestroy(
    cublasLtMatmulPreference_t pref);

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
    cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
    cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t pref, int most,
    cublasLtMatmulHeuristicResult_t *results, int *found);
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(
    const cublasLtMatmulAlgo_t *algo,
    cublasLtMatmulAlgoConfigAttributes_t attr, void *buf, size_t size,
    size_t *written);

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle,
    cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
    cublasLtMatrixLayout_t a_layout, const void *b,
    cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
    cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
    const cublasLtMatmulAlgo_t *algo, void *workspace, size_t size,
    cudaStream_t stream);

#endif /* LLM_EMU_CUBLASLT_H */
