/*
 * How this GPU's tensor cores add, as JSON lines; see t/gpu/README.md.
 *
 *   bits RESULTS.bin
 *
 * Single instructions: mma.sync (m16n8k16 of f16 and bf16, m16n8k32 of e4m3)
 * and, on compute capability 9.0, wgmma (m64n8k16, m64n8k32) of the same random
 * operands and sums, and the number of results that differ.  Operands are
 * hashes of their places (bits.h), so the results, written to RESULTS.bin, are
 * enough to find the rule of addition on a machine without a GPU.
 *
 * Whole products: a chain of mma.sync over K in order, as our kernels compute
 * it, against each candidate of cublasLt's heuristic, for the shapes of
 * Qwen3-8B and several numbers of rows.
 *
 *   nvcc -gencode arch=compute_90a,code=sm_90a -o bits t/gpu/bits.cu \
 *        -lcublasLt
 *
 * -DBITS_NO_BLAS: without cuBLAS.
 */

#ifndef BITS_NO_BLAS
#include <cublasLt.h>
#endif
#include "bits.h"
#include "check.h"

#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TILES       128                 /* of 64 x 8 results, in each test */
#define CANDIDATES  16
#define ROOM        ((size_t) 64 << 20)

enum { BF16 = BITS_BF16, F16 = BITS_F16, E4M3 = BITS_E4M3 };

static const char *const  names[BITS_TYPES] = { "bf16", "f16", "e4m3" };

/* ranges of exponents: see bits_value() */
static const int  spreads[] = { 0, 4, 12 };


/* ---- one instruction ---- */

/* packs elements from `first` on: four of e4m3, two of 16-bit types */

__device__ static uint32_t
bits_pack(int type, uint32_t first, uint32_t seed, int spread)
{
    uint32_t  i, w = 0;

    for (i = 0; i < (type == E4M3 ? 4 : 2); i++) {
        w |= (uint32_t) bits_value(type, first + i, seed, spread)
             << i * (type == E4M3 ? 8 : 16);
    }

    return w;
}


template<int TYPE> __device__ static void
bits_mma(float d[4], const uint32_t a[4], const uint32_t b[2])
{
#define BITS_MMA(op)                                                         \
    asm volatile("mma.sync.aligned." op " {%0, %1, %2, %3}, "                \
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"           \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])            \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]),               \
                   "r"(b[0]), "r"(b[1]))

    if (TYPE == BF16) {
        BITS_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
    }

    if (TYPE == F16) {
        BITS_MMA("m16n8k16.row.col.f32.f16.f16.f32");
    }

#if __CUDA_ARCH__ >= 890
    if (TYPE == E4M3) {
        BITS_MMA("m16n8k32.row.col.f32.e4m3.e4m3.f32");
    }
#endif
}


/*
 * Block: a tile of 64 x 8.  Operands are rows of 32 bytes: of A by rows, from
 * element tile * 64 * K on, of B by columns, from tile * 8 * K on; sums and
 * results are by rows, from tile * 512 on.
 */

template<int TYPE> __global__ void
bits_by_mma(float *y, uint32_t seed, int spread)
{
    int       i;
    float     d[4];
    uint32_t  tile, row, col, lane, k, a[4], b[2];

    const uint32_t  K = TYPE == E4M3 ? 32 : 16, PER = K / 8;

    tile = blockIdx.x;
    lane = threadIdx.x % 32;
    row = threadIdx.x / 32 * 16 + lane / 4;
    k = lane % 4 * PER;

    for (i = 0; i < 4; i++) {
        a[i] = bits_pack(TYPE, (tile * 64 + row + i % 2 * 8) * K + k
                               + i / 2 * (K / 2), seed, spread);
    }

    for (i = 0; i < 2; i++) {
        b[i] = bits_pack(TYPE, (tile * 8 + lane / 4) * K + k + i * (K / 2),
                         seed + 1, spread);
    }

    col = lane % 4 * 2;

    for (i = 0; i < 4; i++) {
        d[i] = bits_sum(tile * 512 + (row + i / 2 * 8) * 8 + col + i % 2,
                        seed + 2, spread);
    }

    bits_mma<TYPE>(d, a, b);

    for (i = 0; i < 4; i++) {
        y[tile * 512 + (row + i / 2 * 8) * 8 + col + i % 2] = d[i];
    }
}


/*
 * The same by wgmma.  In shared memory, without a swizzle, 8 rows of 16 bytes
 * follow one another as a block; blocks are LEAD bytes apart along K and STRIDE
 * bytes along the rows.
 */

template<int TYPE> __global__ void
bits_by_wgmma(float *y, uint32_t seed, int spread)
{
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __shared__ __align__(128) uint32_t  a[64 * 8], b[8 * 8];

    int       i;
    float     d[4];
    uint32_t  tile, row, col, w, r, lane;
    uint64_t  da, db;

    const uint32_t  K = TYPE == E4M3 ? 32 : 16;
    const uint64_t  LEAD = 128, STRIDE = 256;

    tile = blockIdx.x;

    for (i = threadIdx.x; i < 72 * 8; i += 128) {
        r = i / 8;
        w = i % 8;

        if (r < 64) {
            a[r / 8 * 64 + w / 4 * 32 + r % 8 * 4 + w % 4] =
                bits_pack(TYPE, (tile * 64 + r) * K + w * (K / 8), seed,
                          spread);

        } else {
            r -= 64;
            b[w / 4 * 32 + r * 4 + w % 4] =
                bits_pack(TYPE, (tile * 8 + r) * K + w * (K / 8), seed + 1,
                          spread);
        }
    }

    lane = threadIdx.x % 32;
    row = threadIdx.x / 32 * 16 + lane / 4;
    col = lane % 4 * 2;

    for (i = 0; i < 4; i++) {
        d[i] = bits_sum(tile * 512 + (row + i / 2 * 8) * 8 + col + i % 2,
                        seed + 2, spread);
    }

    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
    __syncthreads();

    da = (__cvta_generic_to_shared(a) & 0x3ffff) >> 4 | LEAD >> 4 << 16
         | STRIDE >> 4 << 32;
    db = (__cvta_generic_to_shared(b) & 0x3ffff) >> 4 | LEAD >> 4 << 16
         | STRIDE >> 4 << 32;

#define BITS_WGMMA(op, more)                                                 \
    asm volatile("{\n"                                                       \
                 "wgmma.fence.sync.aligned;\n"                               \
                 "wgmma.mma_async.sync.aligned." op                          \
                 " {%0, %1, %2, %3}, %4, %5, 1, 1, 1" more ";\n"             \
                 "wgmma.commit_group.sync.aligned;\n"                        \
                 "wgmma.wait_group.sync.aligned 0;\n"                        \
                 "}\n"                                                       \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])            \
                 : "l"(da), "l"(db) : "memory")

    if (TYPE == BF16) {
        BITS_WGMMA("m64n8k16.f32.bf16.bf16", ", 0, 0");
    }

    if (TYPE == F16) {
        BITS_WGMMA("m64n8k16.f32.f16.f16", ", 0, 0");
    }

    if (TYPE == E4M3) {
        BITS_WGMMA("m64n8k32.f32.e4m3.e4m3", "");
    }

    for (i = 0; i < 4; i++) {
        y[tile * 512 + (row + i / 2 * 8) * 8 + col + i % 2] = d[i];
    }
#endif
}


template<int TYPE> static void
instruction(FILE *out)
{
    float           *y[2], *host[2];
    size_t           n = (size_t) TILES * 512, i, s, differ, far;
    cudaDeviceProp   prop;

    check(cudaGetDeviceProperties(&prop, 0), "a device");

    for (i = 0; i < 2; i++) {
        check(cudaMalloc(&y[i], n * sizeof(float)), "memory");
        host[i] = (float *) malloc(n * sizeof(float));
    }

    for (s = 0; s < sizeof(spreads) / sizeof(int); s++) {
        check(cudaMemset(y[0], 0xff, n * sizeof(float)), "memory");
        check(cudaMemset(y[1], 0xff, n * sizeof(float)), "memory");

        bits_by_mma<TYPE><<<TILES, 128>>>(y[0], bits_seed(TYPE, s),
                                          spreads[s]);
        bits_by_wgmma<TYPE><<<TILES, 128>>>(y[1], bits_seed(TYPE, s),
                                            spreads[s]);
        check(cudaDeviceSynchronize(), "an instruction");

        for (i = 0; i < 2; i++) {
            check(cudaMemcpy(host[i], y[i], n * sizeof(float),
                             cudaMemcpyDeviceToHost), "a copy");
        }

        for (differ = 0, far = 0, i = 0; i < n; i++) {
            differ += memcmp(host[0] + i, host[1] + i, sizeof(float)) != 0;
            far += !(host[0][i] - host[1][i] < 1e-2f
                     && host[1][i] - host[0][i] < 1e-2f);
        }

        printf("{\"test\": \"instruction\", \"type\": \"%s\", \"spread\": %d, "
               "\"results\": %zu, \"wgmma_differs\": %zu, \"wgmma_far\": %zu, "
               "\"offset\": %ld}\n", names[TYPE], spreads[s], n, differ, far,
               ftell(out));
        fflush(stdout);

        for (i = 0; i < 2; i++) {
            if (fwrite(host[i], sizeof(float), n, out) != n) {
                die("RESULTS.bin");
            }
        }
    }

    for (i = 0; i < 2; i++) {
        check(cudaFree(y[i]), "memory");
        free(host[i]);
    }
}


/* ---- whole products ---- */

#ifndef BITS_NO_BLAS

__global__ void
bits_fill(uint16_t *p, size_t n, uint32_t seed)
{
    size_t  i = (size_t) blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        p[i] = bits_value(BF16, (uint32_t) i, seed, 4);
    }
}


/* y = x w^T: a warp has 16 columns (rows of w) by 8 rows of x, in one chain */

__global__ void
bits_chain(const uint16_t *w, const uint16_t *x, uint32_t n_out,
    uint32_t n_in, uint32_t rows, float *y)
{
    int       i;
    float     d[4] = { 0, 0, 0, 0 };
    uint32_t  c, r, k, lane, a[4], b[2];

    lane = threadIdx.x % 32;
    c = (blockIdx.x * 4 + threadIdx.x / 32) * 16 + lane / 4;
    r = blockIdx.y * 8 + lane / 4;

    for (k = lane % 4 * 2; k < n_in; k += 16) {
        for (i = 0; i < 4; i++) {
            a[i] = *(const uint32_t *) (w + (size_t) (c + i % 2 * 8) * n_in
                                        + k + i / 2 * 8);
        }

        for (i = 0; i < 2; i++) {
            b[i] = r < rows ? *(const uint32_t *) (x + (size_t) r * n_in + k
                                                   + i * 8)
                            : 0;
        }

        bits_mma<BF16>(d, a, b);
    }

    for (i = 0; i < 4; i++) {
        r = blockIdx.y * 8 + lane % 4 * 2 + i % 2;

        if (r < rows) {
            y[(size_t) r * n_out + c + i / 2 * 8] = d[i];
        }
    }
}


__global__ void
bits_differ(const uint32_t *a, const uint32_t *b, size_t n, uint32_t *differ)
{
    size_t  i = (size_t) blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n && a[i] != b[i]) {
        atomicAdd(differ, 1u);
    }
}


typedef struct {
    cublasLtHandle_t    lt;
    cudaEvent_t         from, to;
    uint16_t           *w, *x;
    float              *y, *want;
    uint32_t           *differ;
    void               *room;
} product_t;


static uint32_t
attribute(const cublasLtMatmulAlgo_t *algo,
    cublasLtMatmulAlgoConfigAttributes_t what)
{
    size_t    n = 0;
    uint64_t  v = 0;

    (void) cublasLtMatmulAlgoConfigGetAttribute(algo, what, &v,
                                                sizeof(uint32_t), &n);

    return (uint32_t) v;
}


/* milliseconds of the best of three runs (-1: it fails), and the number of
   results that differ */

static void
candidate(product_t *p, cublasLtMatmulDesc_t op,
    const cublasLtMatrixLayout_t l[3], const cublasLtMatmulAlgo_t *algo,
    size_t n, float *ms, uint32_t *differ)
{
    int    i;
    float  one = 1, zero = 0, t;

    *ms = -1;

    for (i = 0; i < 4; i++) {
        check(cudaEventRecord(p->from), "an event");

        if (cublasLtMatmul(p->lt, op, &one, p->w, l[0], p->x, l[1], &zero,
                           p->y, l[2], p->y, l[2], algo, p->room, ROOM, 0)
            != CUBLAS_STATUS_SUCCESS)
        {
            *ms = -1;
            return;
        }

        check(cudaEventRecord(p->to), "an event");
        check(cudaEventSynchronize(p->to), "an event");
        check(cudaEventElapsedTime(&t, p->from, p->to), "an event");
        *ms = i && (*ms < 0 || t < *ms) ? t : *ms;
    }

    check(cudaMemset(p->differ, 0, 4), "memory");
    bits_differ<<<(unsigned) ((n + 255) / 256), 256>>>(
        (uint32_t *) p->y, (uint32_t *) p->want, n, p->differ);
    check(cudaMemcpy(differ, p->differ, 4, cudaMemcpyDeviceToHost),
          "a copy");
}


static void
product(product_t *p, uint32_t n_out, uint32_t n_in, uint32_t rows)
{
    int                              i, found = 0;
    float                            ms, best = -1, same = -1;
    size_t                           room = ROOM;
    uint32_t                         differ;
    cublasOperation_t                turned = CUBLAS_OP_T;
    cublasLtMatmulDesc_t             op;
    cublasLtMatrixLayout_t           l[3];
    cublasLtMatmulPreference_t       pref;
    cublasLtMatmulHeuristicResult_t  r[CANDIDATES];

    bits_chain<<<dim3(n_out / 64, (rows + 7) / 8), 128>>>(
        p->w, p->x, n_out, n_in, rows, p->want);
    check(cudaDeviceSynchronize(), "a chain");

    if (cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F)
        || cublasLtMatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSA,
                                          &turned, sizeof(turned))
        || cublasLtMatrixLayoutCreate(&l[0], CUDA_R_16BF, n_in, n_out, n_in)
        || cublasLtMatrixLayoutCreate(&l[1], CUDA_R_16BF, n_in, rows, n_in)
        || cublasLtMatrixLayoutCreate(&l[2], CUDA_R_32F, n_out, rows, n_out)
        || cublasLtMatmulPreferenceCreate(&pref)
        || cublasLtMatmulPreferenceSetAttribute(pref,
               CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof(room))
        || cublasLtMatmulAlgoGetHeuristic(p->lt, op, l[0], l[1], l[2], l[2],
                                          pref, CANDIDATES, r, &found))
    {
        die("cublasLt");
    }

    printf("{\"test\": \"product\", \"n_out\": %u, \"n_in\": %u, "
           "\"rows\": %u, \"candidates\": [", n_out, n_in, rows);

    for (i = 0; i < found; i++) {
        candidate(p, op, l, &r[i].algo, (size_t) rows * n_out, &ms, &differ);

        printf("%s[%u, %u, %u, %u, %.4f, %u]", i ? ", " : "",
               attribute(&r[i].algo, CUBLASLT_ALGO_CONFIG_ID),
               attribute(&r[i].algo, CUBLASLT_ALGO_CONFIG_TILE_ID),
               attribute(&r[i].algo, CUBLASLT_ALGO_CONFIG_STAGES_ID),
               attribute(&r[i].algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
               ms, differ);

        best = ms >= 0 && (best < 0 || ms < best) ? ms : best;
        same = ms >= 0 && differ == 0 && (same < 0 || ms < same) ? ms : same;
    }

    printf("], \"best_ms\": %.4f, \"same_bits_ms\": %.4f}\n", best, same);
    fflush(stdout);

    (void) cublasLtMatmulPreferenceDestroy(pref);
    (void) cublasLtMatmulDescDestroy(op);

    for (i = 0; i < 3; i++) {
        (void) cublasLtMatrixLayoutDestroy(l[i]);
    }
}


static void
products(void)
{
    size_t     i, k;
    product_t  p;

    static const uint32_t  shapes[][2] = {
        { 4096, 4096 }, { 1024, 4096 }, { 6144, 4096 }, { 12288, 4096 },
        { 24576, 4096 }, { 4096, 12288 }
    };
    static const uint32_t  rows[] = { 1, 16, 64, 65, 96, 128, 200, 256, 384,
                                      512, 1100, 2048 };
    const size_t  W = (size_t) 24576 * 4096, X = (size_t) 2048 * 12288,
                  Y = (size_t) 2048 * 24576;

    check(cudaMalloc(&p.w, W * 2), "memory");
    check(cudaMalloc(&p.x, X * 2), "memory");
    check(cudaMalloc(&p.y, Y * 4), "memory");
    check(cudaMalloc(&p.want, Y * 4), "memory");
    check(cudaMalloc(&p.differ, 4), "memory");
    check(cudaMalloc(&p.room, ROOM), "memory");
    check(cudaEventCreate(&p.from), "an event");
    check(cudaEventCreate(&p.to), "an event");

    if (cublasLtCreate(&p.lt) != CUBLAS_STATUS_SUCCESS) {
        die("cublasLt");
    }

    bits_fill<<<(unsigned) (W / 256), 256>>>(p.w, W, 1);
    bits_fill<<<(unsigned) (X / 256), 256>>>(p.x, X, 2);

    for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
            product(&p, shapes[i][0], shapes[i][1], rows[k]);
        }
    }

    (void) cublasLtDestroy(p.lt);
    check(cudaFree(p.w), "memory");
    check(cudaFree(p.x), "memory");
    check(cudaFree(p.y), "memory");
    check(cudaFree(p.want), "memory");
    check(cudaFree(p.differ), "memory");
    check(cudaFree(p.room), "memory");
}

#endif


int
main(int argc, char **argv)
{
    FILE  *out;

    if (argc != 2 || (out = fopen(argv[1], "wb")) == NULL) {
        fprintf(stderr, "usage: bits RESULTS.bin\n");
        return 1;
    }

    instruction<BF16>(out);
    instruction<F16>(out);
    instruction<E4M3>(out);

    if (fclose(out) != 0) {
        die("RESULTS.bin");
    }

#ifndef BITS_NO_BLAS
    products();
#endif

    return 0;
}
