/*
 * cublasLt on the emulator, for kernels/cuda/blas.cu: a heuristic whose
 * candidates are what the real one's may be, and their products.
 *
 *   PARTS      cuts K in two; by blas.cu's preference it is not to be there
 *   FAILS      is offered, and fails when it is run
 *   OTHER      adds in another order
 *   UNEVEN     adds in another order unless the rows are a multiple of 8
 *   SLOW       has our kernels' bits
 *   RIGHT      has them, too, and is faster
 *
 * The time that each takes, by the emulator's clock, is such that one with wrong
 * bits would be chosen if nobody compared.  For at most LLM_EMU_BLAS_FEW rows (8)
 * RIGHT and SLOW take longer than our kernel does.
 *
 * LLM_EMU_BLAS_FAIL=n: the n-th call that makes something fails, counted from
 * the last cublasLtCreate().  Objects that are not destroyed, and a workspace
 * beyond the limit, end the process.
 */

#include "t/gpu/emu/cublas/cublasLt.h"
#include "t/gpu/emu/internal.h"
#include "t/gpu/emu/product.h"

struct EmuLtHandle { int device; };
struct EmuLtDesc { bool turned; };
struct EmuLtPreference { size_t workspace; uint32_t schemes; };
struct EmuLtLayout { cudaDataType_t type; uint64_t rows, cols; int64_t ld; };

namespace {

enum Kind { PARTS, FAILS, OTHER, UNEVEN, SLOW, RIGHT, KINDS };

const double  times[KINDS] = { 0.1, 0.1, 0.2, 0.3, 0.8, 0.4 };

emu::Fault  fault("LLM_EMU_BLAS_FAIL");
long        objects;


/* one more object at *p, unless this call is to fail */

template<class T> cublasStatus_t
make(T **p, const T &value)
{
    std::lock_guard<std::recursive_mutex>  guard(emu::lock);

    if (fault.now()) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }

    *p = new T(value);
    objects++;

    return CUBLAS_STATUS_SUCCESS;
}


template<class T> cublasStatus_t
destroy(T *p)
{
    std::lock_guard<std::recursive_mutex>  guard(emu::lock);

    delete p;
    objects--;

    return CUBLAS_STATUS_SUCCESS;
}


template<class T> cublasStatus_t
take(T *to, const void *from, size_t size)
{
    if (size != sizeof(T)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }

    memcpy(to, from, size);

    return CUBLAS_STATUS_SUCCESS;
}


double
time_of(Kind kind, size_t rows)
{
    return rows <= emu::setting("LLM_EMU_BLAS_FEW", 8) && kind >= SLOW
           ? times[kind] + 10 : times[kind];
}

}  /* namespace */


cublasStatus_t
cublasLtCreate(cublasLtHandle_t *handle)
{
    fault.calls = 0;

    return make(handle, { emu::current });
}


cublasStatus_t
cublasLtDestroy(cublasLtHandle_t handle)
{
    (void) destroy(handle);

    if (objects) {
        emu::die("cublasLt: an object was not destroyed before its handle");
    }

    return CUBLAS_STATUS_SUCCESS;
}


cublasStatus_t
cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc,
    cublasComputeType_t compute, cudaDataType_t scale)
{
    return compute == CUBLAS_COMPUTE_32F && scale == CUDA_R_32F
           ? make(desc, { false }) : CUBLAS_STATUS_NOT_SUPPORTED;
}


cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
    cublasLtMatmulDescAttributes_t attr, const void *buf, size_t size)
{
    cublasOperation_t  op;

    if (attr != CUBLASLT_MATMUL_DESC_TRANSA
        || take(&op, buf, size) != CUBLAS_STATUS_SUCCESS)
    {
        return CUBLAS_STATUS_INVALID_VALUE;
    }

    desc->turned = op == CUBLAS_OP_T;

    return CUBLAS_STATUS_SUCCESS;
}


cublasStatus_t
cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return destroy(desc);
}


cublasStatus_t
cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
    cudaDataType_t type, uint64_t rows, uint64_t cols, int64_t ld)
{
    return ld >= (int64_t) rows ? make(layout, { type, rows, cols, ld })
                                : CUBLAS_STATUS_INVALID_VALUE;
}


cublasStatus_t
cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return destroy(layout);
}


cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref)
{
    return make(pref, { 0, ~(uint32_t) 0 });
}


cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
    cublasLtMatmulPreferenceAttributes_t attr, const void *buf, size_t size)
{
    return attr == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
           ? take(&pref->workspace, buf, size)
           : take(&pref->schemes, buf, size);
}


cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref)
{
    return destroy(pref);
}


/* PARTS is offered even if its scheme is not wanted: blas.cu must not trust the
   mask alone */

cublasStatus_t
cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle,
    cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
    cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t pref, int most,
    cublasLtMatmulHeuristicResult_t *results, int *found)
{
    int  kind;

    (void) handle;
    (void) c;

    *found = 0;

    if (!desc->turned || a->rows != b->rows || d->rows != a->cols
        || d->cols != b->cols || a->type != b->type || d->type != CUDA_R_32F)
    {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }

    for (kind = 0; kind < KINDS && *found < most; kind++) {
        cublasLtMatmulHeuristicResult_t  *r = &results[(*found)++];

        memset(r, 0, sizeof(*r));
        r->algo.data[0] = (uint64_t) kind;
        r->workspaceSize = llm_min(pref->workspace, (size_t) 1 << 20);
        r->state = CUBLAS_STATUS_SUCCESS;
    }

    return CUBLAS_STATUS_SUCCESS;
}


cublasStatus_t
cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
    cublasLtMatmulAlgoConfigAttributes_t attr, void *buf, size_t size,
    size_t *written)
{
    uint32_t  parts = algo->data[0] == PARTS ? 2 : 1;

    (void) attr;
    (void) written;

    return take((uint32_t *) buf, &parts, size);
}


/* D = alpha A^T B + beta C, column-major, with C = D: Y^T = W X^T */

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
    const void *alpha, const void *a, cublasLtMatrixLayout_t a_layout,
    const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
    const void *c, cublasLtMatrixLayout_t c_layout, void *d,
    cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
    void *workspace, size_t size, cudaStream_t stream)
{
    int               bf16;
    bool              backwards;
    Kind              kind = (Kind) algo->data[0];
    llm_blas_args_t   p;

    if (!desc->turned || handle->device != emu::current || c != d
        || *(const float *) alpha != 1.0f || kind == FAILS || !workspace
        || size < (size_t) 1 << 20)
    {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }

    memset(&p, 0, sizeof(p));
    p.rows = (uint32_t) b_layout->cols;
    p.n_out = (uint32_t) a_layout->cols;
    p.n_in = (uint32_t) a_layout->rows;
    p.x = b;
    p.w = a;
    p.y = (float *) d;
    p.ldx = (uint32_t) b_layout->ld;
    p.ldw = (uint32_t) a_layout->ld;
    p.ldy = (uint32_t) d_layout->ld;
    p.add = *(const float *) beta != 0;

    (void) c_layout;
    bf16 = a_layout->type == CUDA_R_16BF;
    backwards = kind < UNEVEN || (kind == UNEVEN && p.rows % 8);

    emu_enqueue(stream, [=]() { emu_product(p, bf16, backwards); },
                time_of(kind, p.rows));

    return CUBLAS_STATUS_SUCCESS;
}
