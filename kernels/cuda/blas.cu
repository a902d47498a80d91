/*
 * The products of blas.h through cublasLt.
 *
 * When a weight is created, the candidates of cublasLt's heuristic are run
 * for its shape and each bucket of rows.  The fastest candidate with the right
 * bits becomes the plan, unless our kernel is faster.  Products without a plan
 * are refused.
 *
 * llm_blas_t owns its handle, its workspace and its table of plans.
 */

#include "kernels/cuda/blas.h"

#include <cublasLt.h>
#include <stdio.h>

#define LLM_BLAS_WORKSPACE   ((size_t) 32 << 20)
#define LLM_BLAS_CANDIDATES  8
#define LLM_BLAS_MAX_PLANS   1024        /* enough for 60 shapes */
#define LLM_BLAS_TIMINGS     3

/* what a plan depends on */
typedef struct {
    uint32_t             bucket;        /* of rows */
    uint32_t             n_out;
    uint32_t             n_in;
} llm_blas_key_t;

typedef struct {
    llm_blas_key_t           key;
    int                      none;      /* no candidate has the right bits and
                                           is faster than our kernel */
    cublasLtMatmulAlgo_t     algo;
} llm_blas_plan_t;

struct llm_blas_s {
    cublasLtHandle_t         handle;
    cudaStream_t             stream;
    cudaDataType_t           type;      /* of x and w */
    void                    *workspace;
    uint32_t                *differ;    /* on the device: result of a
                                           comparison */
    llm_blas_plan_t          plans[LLM_BLAS_MAX_PLANS];
    uint32_t                 n_plans;
};

/* the descriptors of one product, made for one call */
typedef struct {
    cublasLtMatmulDesc_t     op;
    cublasLtMatrixLayout_t   w;
    cublasLtMatrixLayout_t   x;
    cublasLtMatrixLayout_t   y;
} llm_blas_desc_t;


llm_blas_t *
llm_blas_create(cudaStream_t stream, int bf16, llm_err_t *err)
{
    llm_blas_t  *b;

    b = (llm_blas_t *) calloc(1, sizeof(llm_blas_t));
    if (b == NULL) {
        (void) llm_fail(err, "no memory for cublasLt");
        return NULL;
    }

    b->stream = stream;
    b->type = bf16 ? CUDA_R_16BF : CUDA_R_16F;

    if (cublasLtCreate(&b->handle) != CUBLAS_STATUS_SUCCESS) {
        b->handle = NULL;
        (void) llm_fail(err, "cublasLt does not start on this device");
        llm_blas_free(b, 1);
        return NULL;
    }

    if (llm_cuda_alloc(&b->workspace, LLM_BLAS_WORKSPACE,
                       "cublasLt's workspace", err) != LLM_OK
        || llm_cuda_alloc((void **) &b->differ, sizeof(uint32_t),
                          "a comparison", err) != LLM_OK)
    {
        llm_blas_free(b, 1);
        return NULL;
    }

    return b;
}


void
llm_blas_free(llm_blas_t *b, int alive)
{
    if (b == NULL) {
        return;
    }

    if (alive) {
        if (b->handle) {
            (void) cublasLtDestroy(b->handle);
        }

        (void) cudaFree(b->workspace);
        (void) cudaFree(b->differ);
    }

    free(b);
}


static void
llm_blas_desc_free(llm_blas_desc_t *d)
{
    if (d->op) {
        (void) cublasLtMatmulDescDestroy(d->op);
    }

    if (d->w) {
        (void) cublasLtMatrixLayoutDestroy(d->w);
    }

    if (d->x) {
        (void) cublasLtMatrixLayoutDestroy(d->x);
    }

    if (d->y) {
        (void) cublasLtMatrixLayoutDestroy(d->y);
    }
}


/* cublasLt's matrices are column-major: Y^T [n_out, rows] = W [n_out, n_in]
   X^T; returns nonzero on failure */

static int
llm_blas_desc(llm_blas_t *b, const llm_blas_args_t *a, llm_blas_desc_t *d)
{
    cublasOperation_t  trans = CUBLAS_OP_T;

    memset(d, 0, sizeof(*d));

    return cublasLtMatmulDescCreate(&d->op, CUBLAS_COMPUTE_32F, CUDA_R_32F)
               != CUBLAS_STATUS_SUCCESS
           || cublasLtMatmulDescSetAttribute(d->op,
                  CUBLASLT_MATMUL_DESC_TRANSA, &trans, sizeof(trans))
               != CUBLAS_STATUS_SUCCESS
           || cublasLtMatrixLayoutCreate(&d->w, b->type, a->n_in, a->n_out,
                  a->ldw)
               != CUBLAS_STATUS_SUCCESS
           || cublasLtMatrixLayoutCreate(&d->x, b->type, a->n_in, a->rows,
                  a->ldx)
               != CUBLAS_STATUS_SUCCESS
           || cublasLtMatrixLayoutCreate(&d->y,
                  CUDA_R_32F, a->n_out, a->rows,
                  a->ldy)
               != CUBLAS_STATUS_SUCCESS;
}


/* fills r[] with the heuristic's candidates that do not split K, in its order;
   returns their number */

static int
llm_blas_candidates(llm_blas_t *b, const llm_blas_desc_t *d,
    cublasLtMatmulHeuristicResult_t *r)
{
    int                         i, n, found;
    size_t                      size;
    uint32_t                    scheme, one;
    cublasLtMatmulPreference_t  pref;

    if (cublasLtMatmulPreferenceCreate(&pref) != CUBLAS_STATUS_SUCCESS) {
        return 0;
    }

    size = LLM_BLAS_WORKSPACE;
    scheme = CUBLASLT_REDUCTION_SCHEME_NONE;
    found = 0;

    if (cublasLtMatmulPreferenceSetAttribute(pref,
            CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &size, sizeof(size))
            == CUBLAS_STATUS_SUCCESS
        && cublasLtMatmulPreferenceSetAttribute(pref,
            CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &scheme,
            sizeof(scheme))
            == CUBLAS_STATUS_SUCCESS)
    {
        (void) cublasLtMatmulAlgoGetHeuristic(b->handle, d->op, d->w, d->x,
                                              d->y, d->y, pref,
                                              LLM_BLAS_CANDIDATES, r,
                                              &found);
    }

    (void) cublasLtMatmulPreferenceDestroy(pref);

    for (i = 0, n = 0; i < found; i++) {
        one = 1;

        (void) cublasLtMatmulAlgoConfigGetAttribute(&r[i].algo,
                   CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &one, sizeof(one), NULL);

        if (r[i].state == CUBLAS_STATUS_SUCCESS && one <= 1) {
            r[n++] = r[i];
        }
    }

    return n;
}


static cublasStatus_t
llm_blas_run(llm_blas_t *b, const llm_blas_args_t *a,
    const llm_blas_desc_t *d, const cublasLtMatmulAlgo_t *algo)
{
    float  one = 1.0f, beta = a->add ? 1.0f : 0.0f;

    return cublasLtMatmul(b->handle, d->op, &one, a->w, d->w, a->x, d->x,
                          &beta, a->y, d->y, a->y, d->y, algo, b->workspace,
                          LLM_BLAS_WORKSPACE, b->stream);
}


/* milliseconds of the fastest of a few runs; negative if one fails */

static float
llm_blas_time(llm_blas_t *b, const llm_blas_args_t *a,
    const llm_blas_desc_t *d, const cublasLtMatmulAlgo_t *algo)
{
    int          i;
    float        ms, best;
    cudaEvent_t  from, to;

    if (cudaEventCreate(&from) != cudaSuccess) {
        return -1;
    }

    if (cudaEventCreate(&to) != cudaSuccess) {
        (void) cudaEventDestroy(from);
        return -1;
    }

    best = -1;

    for (i = 0; i <= LLM_BLAS_TIMINGS; i++) {
        (void) cudaEventRecord(from, b->stream);

        if (llm_blas_run(b, a, d, algo) != CUBLAS_STATUS_SUCCESS) {
            best = -1;
            break;
        }

        (void) cudaEventRecord(to, b->stream);

        if (cudaEventSynchronize(to) != cudaSuccess
            || cudaEventElapsedTime(&ms, from, to) != cudaSuccess)
        {
            best = -1;
            break;
        }

        /* the first run warms up */

        if (i && (best < 0 || ms < best)) {
            best = ms;
        }
    }

    (void) cudaEventDestroy(from);
    (void) cudaEventDestroy(to);

    return best;
}


static llm_blas_plan_t *
llm_blas_find(llm_blas_t *b, const llm_blas_key_t *key)
{
    uint32_t  i;

    for (i = 0; i < b->n_plans; i++) {
        if (memcmp(&b->plans[i].key, key, sizeof(*key)) == 0) {
            return &b->plans[i];
        }
    }

    return NULL;
}


static llm_blas_key_t
llm_blas_key(const llm_blas_args_t *a)
{
    llm_blas_key_t  key;

    memset(&key, 0, sizeof(key));

    key.bucket = llm_blas_bucket(a->rows);
    key.n_out = a->n_out;
    key.n_in = a->n_in;

    return key;
}


__global__ void
llm_k_differ(const uint32_t *a, const uint32_t *b, size_t n,
    uint32_t *differ)
{
    size_t  i;

    i = (size_t) blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n && a[i] != b[i]) {
        *differ = 1;
    }
}


/* does y, the result of the candidate's last run, have the right bits? */

static int
llm_blas_same(llm_blas_t *b, const llm_blas_args_t *a, const float *want)
{
    size_t    n;
    uint32_t  differ;

    n = (size_t) a->rows * a->ldy;
    differ = 1;

    if (cudaMemsetAsync(b->differ, 0, sizeof(differ), b->stream)
        != cudaSuccess)
    {
        return 0;
    }

    llm_launch(llm_k_differ, (unsigned) ((n + 255) / 256), 256, 0, b->stream,
               (const uint32_t *) a->y, (const uint32_t *) want, n,
               b->differ);

    return cudaMemcpyAsync(&differ, b->differ, sizeof(differ),
                           cudaMemcpyDeviceToHost, b->stream) == cudaSuccess
           && cudaStreamSynchronize(b->stream) == cudaSuccess && differ == 0;
}


int
llm_blas_is_prepared(llm_blas_t *b, const llm_blas_args_t *a)
{
    llm_blas_key_t  key;

    key = llm_blas_key(a);

    return llm_blas_find(b, &key) != NULL;
}


/* does the candidate have the right bits with the fewest rows of the plan? */

static int
llm_blas_same_few(llm_blas_t *b, const llm_blas_args_t *a, uint32_t least,
    const cublasLtMatmulAlgo_t *algo, const float *want)
{
    int               same;
    llm_blas_args_t   few = *a;
    llm_blas_desc_t   d;

    few.rows = least;

    same = llm_blas_desc(b, &few, &d) == 0
           && llm_blas_run(b, &few, &d, algo) == CUBLAS_STATUS_SUCCESS
           && llm_blas_same(b, &few, want);

    llm_blas_desc_free(&d);

    return same;
}


static float
llm_blas_choose(llm_blas_t *b, const llm_blas_args_t *a, uint32_t least,
    const llm_blas_desc_t *d, const float *want, llm_blas_plan_t *p)
{
    int                              i, n;
    float                            ms, best;
    cublasLtMatmulHeuristicResult_t  r[LLM_BLAS_CANDIDATES];

    n = llm_blas_candidates(b, d, r);
    best = -1;

    for (i = 0; i < n; i++) {
        ms = llm_blas_time(b, a, d, &r[i].algo);

        if (ms >= 0 && (best < 0 || ms < best)
            && llm_blas_same(b, a, want)
            && llm_blas_same_few(b, a, least, &r[i].algo, want))
        {
            best = ms;
            p->algo = r[i].algo;
        }
    }

    return best;
}


float
llm_blas_prepare(llm_blas_t *b, const llm_blas_args_t *a, uint32_t least,
    const float *want, float ours)
{
    float             ms;
    llm_blas_desc_t   d;
    llm_blas_plan_t  *p;

    ms = -1;

    if (b->n_plans == LLM_BLAS_MAX_PLANS || llm_blas_is_prepared(b, a)) {
        return ms;
    }

    p = &b->plans[b->n_plans++];
    p->key = llm_blas_key(a);

    if (llm_blas_desc(b, a, &d) == 0) {
        ms = llm_blas_choose(b, a, least, &d, want, p);
    }

    p->none = ms < 0 || (ours >= 0 && ms >= ours);
    llm_blas_desc_free(&d);

    return ms;
}


/* the plan of a product, or NULL */

static llm_blas_plan_t *
llm_blas_plan(llm_blas_t *b, const llm_blas_args_t *a)
{
    llm_blas_key_t    key;
    llm_blas_plan_t  *p;

    key = llm_blas_key(a);
    p = llm_blas_find(b, &key);

    return p && !p->none ? p : NULL;
}


int
llm_blas_has_plan(llm_blas_t *b, const llm_blas_args_t *a)
{
    return llm_blas_plan(b, a) != NULL;
}


int
llm_blas_linear(llm_blas_t *b, const llm_blas_args_t *a)
{
    int               rc;
    llm_blas_desc_t   d;
    llm_blas_plan_t  *p;

    p = llm_blas_plan(b, a);

    if (p == NULL) {
        return 1;
    }

    rc = llm_blas_desc(b, a, &d)
         || llm_blas_run(b, a, &d, &p->algo) != CUBLAS_STATUS_SUCCESS;

    llm_blas_desc_free(&d);

    return rc;
}
